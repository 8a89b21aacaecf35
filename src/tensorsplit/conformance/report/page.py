"""A run as one HTML page that needs nothing else: no network, no fonts, no framework.

What is most important stands in the page as HTML, readable without JavaScript: the worst deviations
and the tables. The cases are data, which the page's script filters and opens.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterable
from importlib.resources import files
from string import Template

from tensorsplit.conformance.document import Document
from tensorsplit.conformance.known import Deviation
from tensorsplit.conformance.report import sections
from tensorsplit.conformance.report.packing import Scripts, packed
from tensorsplit.conformance.report.summary import Tally, groups
from tensorsplit.pages.svg import style as picture_style

_SCRIPTS = ("data.js", "address.js", "parts.js", "list.js", "detail.js", "page.js")


def html(document: Document, scripts: Scripts, known: Iterable[Deviation] = ()) -> str:
    """A run as a page.

    Args:
        document: The run.
        scripts: The reproduction of a deviation, as a function or a mapping of the case's and the
            subject's names; it is asked for each deviation once.
        known: The known deviations, for their words and their links.

    Returns:
        An HTML document in ASCII. Its policy forbids every connection, and every style and script
        but its own.
    """
    style = f"{_template('page.css')}\n{picture_style()}\n"
    script = '"use strict";\n(async () => {\n' + "\n".join(map(_template, _SCRIPTS)) + "})();\n"
    tally = Tally.of(document)
    page = Template(_template("page.html")).substitute(
        policy=_policy(style, script),
        style=style,
        icons=_template("icons.svg"),
        conditions=sections.conditions_list(document),
        headline=sections.headline(document, tally),
        worst=sections.worst(groups(document)),
        subjects=sections.subjects_table(document, tally),
        operators=sections.operators_table(document, tally),
        legend=sections.legend(),
        # Numbers and base64: nothing in it could end the element that it stands in.
        data=json.dumps(packed(document, scripts, known), separators=(",", ":")),
        script=script,
    )
    # In ASCII the page is right whatever encoding a server or a file claims for it.
    return page.encode("ascii", "xmlcharrefreplace").decode("ascii")


def _template(name: str) -> str:
    return (files(__package__) / "templates" / name).read_text(encoding="utf-8")


def _policy(style: str, script: str) -> str:
    """The Content-Security-Policy: the page's own style and script, by their digests."""
    rules = (
        "default-src 'none'",
        f"style-src {_digest(style)}",
        f"script-src {_digest(script)}",
        "img-src data:",
        "base-uri 'none'",
        "form-action 'none'",
    )
    return "; ".join(rules)


def _digest(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode('ascii')}'"
