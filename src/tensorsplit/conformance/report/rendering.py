"""A run as one HTML page, and as Markdown for the documentation: both from templates.

The HTML page needs nothing else: no network, no fonts, no framework. What is most important is in
it as HTML, readable without JavaScript: the worst deviations and the tables. The cases are the run
as JSON, which the page's script filters and opens.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from importlib.resources import files
from typing import TYPE_CHECKING, TypeAlias
from urllib.parse import quote, urlencode

from tensorsplit.conformance.case import CaseSplit
from tensorsplit.conformance.document import OUTCOMES, PASS, SKIPPED, Document
from tensorsplit.conformance.known import Deviation
from tensorsplit.conformance.report.summary import WORST, Group, Summary, by_outcome, observation
from tensorsplit.core.errors import DOCUMENTATION, printable
from tensorsplit.core.extras import needs
from tensorsplit.core.plan import SplitPlan
from tensorsplit.pages.content import DECISIONS
from tensorsplit.pages.markdown import environment
from tensorsplit.pictures.layout import shortened
from tensorsplit.pictures.svg import style, svg

if TYPE_CHECKING:
    from jinja2 import Environment

Scripts: TypeAlias = "Callable[[str, str], str | None]"
"""Makes the reproduction of a case with a subject from their names; None where there is none."""

Contents: TypeAlias = "Callable[[str], Mapping[str, str]]"
"""Returns the ``model``, ``input`` and ``expected`` of a case as texts, as far as there are any."""

_SCRIPTS = ("data.js", "cases.js", "detail.js", "page.js")
_CAPITAL = re.compile(r"(?<=[.a-z])(?=[A-Z])")
_MARKS = re.compile(r"([\\`*_\[\]<>&#|])")


def html(
    document: Document,
    scripts: Scripts,
    known: Iterable[Deviation] = (),
    contents: Contents | None = None,
) -> str:
    """Return a run as a page: an HTML document in ASCII.

    Its policy forbids every connection, and every style and script but its own. The reproduction
    of each deviation, and the contents of each case, are requested once. The known deviations give
    their words and links.
    """
    with needs("report"):
        from markupsafe import Markup

    css = f"{_text_of('page.css')}\n{style()}\n"
    script = f'"use strict";\n(async () => {{\n{"".join(map(_text_of, _SCRIPTS))}}})();\n'
    page = (
        _environment()
        .get_template("page.html.jinja")
        .render(
            summary=Summary(document),
            document=document,
            policy=_policy(css, script),
            style=Markup(css),  # noqa: S704 - our own files, as is the script
            script=Markup(script),  # noqa: S704 - see above
            run=_packed(_run(document, known)),
            scripts=_packed(_lines(document, scripts, contents)),
        )
    )
    # In ASCII the page is right whatever encoding a server or a file claims for it.
    return page.encode("ascii", "xmlcharrefreplace").decode("ascii")


def markdown(document: Document, known: Iterable[Deviation] = ()) -> str:
    """Return a run as Markdown, as in ``docs/conformance.md``; the same run gives the same text."""
    decisions = {case.id: case.decision for case in document.cases}

    def decisions_of(group: Group) -> list[str]:
        names = {decisions[result.case] for result in group.results} - {""}
        return sorted(names, key=lambda name: (len(name), name))

    return (
        _environment()
        .get_template("conformance.md.jinja")
        .render(
            summary=Summary(document),
            document=document,
            known={entry.id: entry for entry in known},
            first=next(document.deviations(), None),
            decisions_of=decisions_of,
        )
    )


def _environment() -> Environment:
    made = environment(__package__)
    made.globals |= {
        "outcomes": OUTCOMES,
        "passed": next(entry for entry in OUTCOMES if entry.key == PASS),
        "shown": [entry for entry in OUTCOMES if entry.key not in (PASS, SKIPPED)],
        "worst": WORST,
        "address": _address,
        "last_decision": DECISIONS[-1].id,
    }
    made.filters |= {
        "number": "{:,}".format,
        "printable": printable,
        "text": _one_line,
        "observation": observation,
        "by_outcome": by_outcome,
        "pieces": _CAPITAL.split,
        "shortened": shortened,
    }
    return made


def _one_line(text: str) -> str:
    """Put an engine's text on one line, escaped for Markdown and HTML."""
    return _MARKS.sub(r"\\\1", printable(" ".join(text.split())))


def _address(**state: str) -> str:
    """Return a link into the page, as its script reads it."""
    return f"#{urlencode(state, safe='/,', quote_via=quote)}"


def _text_of(name: str) -> str:
    return (files(__package__) / "templates" / name).read_text(encoding="utf-8")


def _policy(css: str, script: str) -> str:
    """Return the Content-Security-Policy: the page's own style and script, by their digests."""

    def digest(text: str) -> str:
        return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode("ascii")

    return (
        f"default-src 'none'; style-src 'sha256-{digest(css)}'; script-src"
        f" 'sha256-{digest(script)}'; img-src data:; base-uri 'none'; form-action 'none'"
    )


def _packed(content: object) -> str:
    """Compress JSON to base64: nothing in it can end the element that it is in."""
    text = json.dumps(content, separators=(",", ":"))
    return base64.b64encode(gzip.compress(text.encode(), mtime=0)).decode("ascii")


def _run(document: Document, known: Iterable[Deviation]) -> dict[str, object]:
    """Return the run as ``--format json`` writes it, and what the page needs besides.

    Each case has its ``results``, each with ``severity``, the place of its outcome; and
    ``picture``, its place in ``pictures``, if it has one.
    """
    content = document.to_json()
    places = {outcome.key: place for place, outcome in enumerate(OUTCOMES)}
    results: dict[str, list[dict[str, object]]] = defaultdict(list)
    for result, record in zip(document.results, content.pop("results"), strict=True):
        record["severity"] = places[result.outcome.key]
        results[record.pop("case")].append(record)
    pictures: dict[tuple[str, CaseSplit], int] = {}
    for case, entry in zip(document.cases, content["cases"], strict=True):
        entry["results"] = results[case.id]
        if case.cut is not None and _fits(case.cut):
            entry["picture"] = pictures.setdefault((case.operator, case.cut), len(pictures))
    decisions: dict[str, str] = {}
    for decision in DECISIONS:
        decisions.setdefault(decision.id, decision.text)  # the first text of D7 says it all
    return content | {
        "outcomes": [{"key": entry.key, "meaning": entry.meaning} for entry in OUTCOMES],
        "decisions": decisions,
        "errata": f"{DOCUMENTATION}/errata.html" if DOCUMENTATION else "",
        "known": {entry.id: [entry.seen, _web(entry.link)] for entry in known},
        "pictures": [_picture(*pictured) for pictured in pictures],
    }


def _web(link: str) -> str:
    """Return the link if it leads to the web: a file of known deviations may come from anywhere."""
    return link if link.startswith("https://") else ""


def _fits(split: CaseSplit) -> bool:
    """Return whether the parts make up the axis: a case may ask for lengths that don't."""
    rank = len(split.shape)
    return (
        -rank <= split.axis < rank
        and min(split.sizes, default=0) >= 0
        and (sum(split.sizes) == split.shape[split.axis])
    )


def _picture(operator: str, split: CaseSplit) -> str:
    axis = split.axis % len(split.shape)
    plan = SplitPlan(operator, split.shape, axis, split.sizes, split.keepdims)
    return svg(plan, styled=False)  # the page has the style, and its policy allows no other


def _lines(document: Document, scripts: Scripts, contents: Contents | None) -> dict[str, object]:
    """Return reproductions by case and subject, and contents by case, as numbers of shared lines.

    A reproduction has nearly all lines of its case's contents.
    """
    lines: dict[str, int] = {}

    def numbered(text: str) -> list[int]:
        return [lines.setdefault(line, len(lines)) for line in text.split("\n")]

    found: dict[str, dict[str, list[int]]] = defaultdict(dict)
    for result in document.results:
        if result.is_deviation and (text := scripts(result.case, result.subject)):
            found[result.case][result.subject] = numbered(text)
    of_cases: dict[str, dict[str, list[int]]] = {}
    for case in document.cases:
        if texts := contents(case.id) if contents else {}:
            of_cases[case.id] = {title: numbered(text) for title, text in texts.items() if text}
    return {"lines": list(lines), "scripts": found, "contents": of_cases}
