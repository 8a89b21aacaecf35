"""The parts of the page that stand in it as HTML: the worst deviations, and the tables."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from html import escape
from itertools import groupby
from urllib.parse import quote, urlencode

from tensorsplit.conformance.document import Document, SubjectInfo
from tensorsplit.conformance.report.summary import (
    OUTCOMES,
    PASS,
    WORST,
    Group,
    Outcome,
    Tally,
    conditions,
    judged,
    operators,
    told,
)
from tensorsplit.pages.layout import printable, shortened

_MOST_KINDS = 3
_LONGEST = 160
_CAPITAL = re.compile(r"(?<=[.a-z])(?=[A-Z])")
_KINDS = {"engine": "Engines", "tool": "Tools"}


def _text(text: str) -> str:
    """Text of a model or an engine, for HTML."""
    return escape(printable(text))


def _icon(outcome: Outcome) -> str:
    return f'<svg class="icon" aria-hidden="true"><use href="#i-{outcome.key}"/></svg>'


def badge(outcome: Outcome) -> str:
    """An outcome as a coloured sign with its name."""
    return f'<span class="badge o-{outcome.key}">{_icon(outcome)}{outcome.title}</span>'


def _address(**state: str) -> str:
    """A link into the page, in the words that its script reads."""
    return escape(f"#{urlencode(state, safe='/,', quote_via=quote)}")


def conditions_list(document: Document) -> str:
    """When, where and with what was measured, as a list of terms."""
    rows = (
        f"<div><dt>{name}</dt><dd>{_text(value)}</dd></div>" for name, value in conditions(document)
    )
    return f'<dl class="conditions">{"".join(rows)}</dl>'


def headline(document: Document, tally: Tally) -> str:
    """What came of the run, in one paragraph."""
    passed = sum(counts[PASS] for counts in tally.totals.values())
    runs = sum(judged(counts) for counts in tally.totals.values())
    return (
        f"<strong>{len(document.cases):,}</strong> cases put to"
        f" <strong>{len(document.subjects)}</strong> engines and tools: {passed:,} of {runs:,}"
        f" results pass, <strong>{tally.known:,}</strong> are known deviations,"
        f" <strong>{tally.news:,}</strong> {'is' if tally.news == 1 else 'are'} new."
    )


def worst(found: Iterable[Group]) -> str:
    """The deviations that do harm unseen, and the crashes: a card for each with each subject."""
    listed = [group for group in found if group.severity in WORST]
    if not listed:
        return (
            '<p class="none">None: in this run no subject returned wrong data, touched memory that'
            " is not its own, or crashed.</p>"
        )
    same = groupby(listed, key=lambda group: (group.severity, group.subject.name))
    cards = "".join(_card(list(kinds)) for _, kinds in same)
    return f'<ol class="findings">{cards}</ol>'


def _card(kinds: Sequence[Group]) -> str:
    """One outcome with one subject: the first kinds of it, and the way to all cases."""
    outcome, subject = kinds[0].outcome, kinds[0].subject
    count = sum(len(kind.results) for kind in kinds)
    address = _address(only=subject.name, verdict=outcome.key)
    left = len(kinds) - _MOST_KINDS
    more = f", {left:,} more {'kind' if left == 1 else 'kinds'} among them" if left > 0 else ""
    return (
        f'<li class="o-{outcome.key}"><h3>{badge(outcome)} {_text(subject.name)}'
        f' <span class="version">{_text(subject.version)}</span></h3>'
        f"<ul>{''.join(map(_kind, kinds[:_MOST_KINDS]))}</ul>"
        f'<p><a href="{address}">{_cases(count)}</a>{more}</p></li>'
    )


def _kind(group: Group) -> str:
    """Deviations that are alike: what was seen, by the first case."""
    result, more = group.results[0], len(group.results) - 1
    address = _address(case=result.case, engine=group.subject.name)
    words = told(result)
    signal = "" if result.signal in words else f"<code>{_text(result.signal)}</code> "
    new = '<span class="tag">new</span> ' if group.news else ""
    return (
        f"<li>{new}{signal}{_text(shortened(words, _LONGEST))}"
        f'<a class="id" href="{address}">{_text(result.case)}</a>'
        f"{f' and {more:,} more like it' if more else ''}</li>"
    )


def _cases(count: int) -> str:
    return "1 case" if count == 1 else f"all {count:,} cases"


def subjects_table(document: Document, tally: Tally) -> str:
    """Who was run, and how often each outcome came up, as a table."""
    used = _used(tally)
    heads = "".join(
        f'<th scope="col">{_icon(OUTCOMES[at])} {OUTCOMES[at].title}</th>' for at in used
    )
    lines = [
        "<table><caption><span>What came of the cases with each subject</span></caption>",
        f'<thead><tr><th scope="col">subject</th><th scope="col">share</th>{heads}</tr></thead>',
    ]
    for kind, subjects in groupby(_ordered(document), key=lambda subject: subject.kind):
        span = len(used) + 2
        title = _text(_KINDS.get(kind, kind))
        lines.append(f'<tbody><tr><th colspan="{span}" scope="rowgroup">{title}</th></tr>')
        lines += [_subject_row(subject, tally.total(subject.name), used) for subject in subjects]
        lines.append("</tbody>")
    return "\n".join([*lines, "</table>"])


def _used(tally: Tally) -> list[int]:
    """The outcomes that came up, the passes before the rest, worst first."""
    places = [at for at in range(PASS) if any(counts[at] for counts in tally.totals.values())]
    return [PASS, *places]


def _ordered(document: Document) -> list[SubjectInfo]:
    return sorted(document.subjects, key=lambda subject: subject.kind != "engine")


def _subject_row(subject: SubjectInfo, counts: Sequence[int], used: Iterable[int]) -> str:
    cells = "".join(_count(counts[at], OUTCOMES[at], only=subject.name) for at in used)
    return f"<tr>{_subject_head(subject)}<td>{_bar(counts)}</td>{cells}</tr>"


def _subject_head(subject: SubjectInfo) -> str:
    return (
        f'<th scope="row">{_text(subject.name)}'
        f' <span class="version">{_text(subject.version)}</span></th>'
    )


def _count(count: int, outcome: Outcome, **state: str) -> str:
    if not count:
        return '<td class="zero">0</td>'
    address = _address(**state, verdict=outcome.key)
    return f'<td class="o-{outcome.key}"><a href="{address}">{count:,}</a></td>'


def _bar(counts: Sequence[int]) -> str:
    """The shares as a bar; the numbers beside it say the same."""
    whole, at, pieces = judged(counts), 0.0, []
    for outcome, count in reversed(list(zip(OUTCOMES[: PASS + 1], counts, strict=False))):
        if count:
            width = 100 * count / whole
            pieces.append(
                f'<rect class="o-{outcome.key}" x="{at:.2f}" width="{width:.2f}" height="10"/>'
            )
            at += width
    return (
        '<svg class="bar" viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true">'
        f"{''.join(pieces)}</svg>"
    )


def operators_table(document: Document, tally: Tally) -> str:
    """The subjects against the operators, as a table whose cells lead to their cases."""
    names = operators(document)
    heads = "".join(f'<th scope="col">{_broken(name)}</th>' for name in names)
    rows = "".join(
        f"<tr>{_subject_head(subject)}{''.join(_cells(subject, names, tally))}</tr>"
        for subject in _ordered(document)
    )
    return (
        "<table><caption><span>Deviations of each subject with each operator, worst first; a check"
        " mark means that every case passed</span></caption>"
        f'<thead><tr><th scope="col">subject</th>{heads}</tr></thead><tbody>{rows}</tbody></table>'
    )


def _broken(operator: str) -> str:
    """An operator's name, which may break after its vendor and before its inner capitals."""
    pieces = _CAPITAL.split(operator)
    return "<wbr>".join(f'<span class="whole">{_text(piece)}</span>' for piece in pieces)


def _cells(subject: SubjectInfo, names: Iterable[str], tally: Tally) -> Iterator[str]:
    for operator in names:
        counts = tally.cell(operator, subject.name)
        if not judged(counts):
            yield '<td class="zero"><span aria-label="not run">\N{EN DASH}</span></td>'
            continue
        passed = OUTCOMES[PASS]
        deviations = [
            _deviation(outcome, count, subject.name, operator)
            for outcome, count in zip(OUTCOMES[:PASS], counts, strict=False)
            if count
        ]
        if deviations:
            yield f'<td><span class="stack">{"".join(deviations)}</span></td>'
        else:
            address = _address(only=subject.name, operator=operator)
            label = f"all {counts[PASS]:,} cases pass"
            yield (
                f'<td><a class="cell o-{passed.key}" href="{address}" aria-label="{label}"'
                f' title="{label}">{_icon(passed)}</a></td>'
            )


def _deviation(outcome: Outcome, count: int, subject: str, operator: str) -> str:
    address = _address(only=subject, operator=operator, verdict=outcome.key)
    label = f"{count:,} {outcome.title}"
    return (
        f'<a class="cell o-{outcome.key}" href="{address}" aria-label="{label}" title="{label}">'
        f"{_icon(outcome)}{count:,}</a>"
    )


def legend() -> str:
    """What the outcomes mean, as a list of terms."""
    rows = (
        f"<div><dt>{badge(outcome)}</dt><dd>{outcome.meaning}</dd></div>" for outcome in OUTCOMES
    )
    return f'<dl class="legend">{"".join(rows)}</dl>'
