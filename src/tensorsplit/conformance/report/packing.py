"""A run as compact data for the page: every text once, and all of it deflated."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from tensorsplit.conformance.case import Cut
from tensorsplit.conformance.document import CaseInfo, Document, Result
from tensorsplit.conformance.known import Deviation
from tensorsplit.conformance.report.chunks import CHUNK, Store, blocks, deflated
from tensorsplit.conformance.report.summary import OUTCOMES
from tensorsplit.core.plan import SplitPlan
from tensorsplit.pages.decisions import DECISIONS
from tensorsplit.pages.svg import svg

Scripts: TypeAlias = "Callable[[str, str], str | None] | Mapping[tuple[str, str], str]"
"""The reproduction of a case with a subject, from their names; None where there is none."""

FIELDS = (
    "operator",
    "element_type",
    "decision",
    "place",
    "spelling",
    "shape_class",
    "use",
    "expects",
    "model_format",
    "rule",
)
"""What is said of a case in words, many cases in the same ones."""

_NO_RESULT = "."


def packed(document: Document, scripts: Scripts, known: Iterable[Deviation] = ()) -> dict[str, Any]:
    """What the page's script reads.

    Args:
        document: The run.
        scripts: Gives the reproduction of a deviation.
        known: The known deviations, for their words and their links.

    Returns:
        Texts for `json.dumps`. ``run`` is what the list of cases needs, as `_run` makes it; a
        script is given by the places of its pieces in ``blocks``, and stands in ``scripts``;
        ``pictures`` are SVG.
    """
    pictures, pieces = Store[str](), Store[str]()
    long = Store[tuple[int, ...]]()

    def place(result: Result) -> int:
        key = (result.case, result.subject)
        text = scripts(*key) if callable(scripts) else scripts.get(key)
        return long.place(tuple(map(pieces.place, blocks(text)))) if text else -1

    run = _run(document, pictures, place, known)
    return {
        "run": deflated(run),
        "chunk": CHUNK,
        "pictures": pictures.deflated(),
        "scripts": long.deflated(),
        "blocks": pieces.deflated(),
    }


def _run(
    document: Document,
    pictures: Store[str],
    script: Callable[[Result], int],
    known: Iterable[Deviation],
) -> dict[str, Any]:
    """A run as lists and texts.

    ``fields`` holds for each of `FIELDS` its texts and where each case's stands among them;
    ``verdicts`` for each subject one digit for each case, its place in ``outcomes``; ``found`` a
    row for each deviation: the case, the subject, where its words stand in ``texts``, whether
    memory is concerned, and where its script stands.
    """
    texts = Store[str]()
    places = {case.id: place for place, case in enumerate(document.cases)}
    numbers = {subject.name: number for number, subject in enumerate(document.subjects)}
    found = [
        [
            places[result.case],
            numbers[result.subject],
            *(texts.place(word) for word in _words(result)),
            int(result.memory),
            script(result),
        ]
        for result in document.results  # those of one case side by side: they deflate well
        if result.is_deviation
    ]
    return {
        "outcomes": [[outcome.key, outcome.title, outcome.meaning] for outcome in OUTCOMES],
        "subjects": [[told.name, told.kind, told.versions] for told in document.subjects],
        "decisions": _decisions(),
        "known": {deviation.id: [deviation.seen, _web(deviation.link)] for deviation in known},
        "ids": [case.id for case in document.cases],
        "fields": {name: _column(document.cases, name) for name in FIELDS},
        "ranks": [case.rank for case in document.cases],
        "opsets": [case.opset for case in document.cases],
        "cuts": [_picture(case, pictures) for case in document.cases],
        "verdicts": _verdicts(document, places, numbers),
        "found": found,
        "texts": texts.items(),
    }


def _web(link: str) -> str:
    """The link if it leads to the web: a file of known deviations may come from anywhere."""
    return link if link.startswith("https://") else ""


def _decisions() -> dict[str, str]:
    worded: dict[str, str] = {}
    for decision in DECISIONS:
        worded[decision.id] = f"{worded.get(decision.id, '')} {decision.text}".strip()
    return worded


def _column(cases: Iterable[CaseInfo], name: str) -> dict[str, list[Any]]:
    """A field of every case: its texts in order, and for each case the place of its own."""
    column = [str(getattr(case, name)) for case in cases]
    values = sorted(set(column))
    places = {value: place for place, value in enumerate(values)}
    return {"values": values, "at": [places[value] for value in column]}


def _verdicts(
    document: Document, places: Mapping[str, int], numbers: Mapping[str, int]
) -> list[str]:
    rows = [[_NO_RESULT] * len(document.cases) for _ in document.subjects]
    for result in document.results:
        rows[numbers[result.subject]][places[result.case]] = str(result.severity)
    return ["".join(row) for row in rows]


def _words(result: Result) -> Sequence[str]:
    index = str(list(result.index)) if result.index else ""
    where = (result.output, index, result.expected, result.seen)
    return (result.detail, result.signal, *where, result.deviation)


def _picture(case: CaseInfo, pictures: Store[str]) -> int:
    """Where the picture of a case stands; -1 if there is nothing that could be drawn."""
    cut = case.cut
    if cut is None or not _is_cut(cut):
        return -1
    plan = SplitPlan(case.operator, cut.shape, cut.axis % len(cut.shape), cut.sizes, cut.keepdims)
    return pictures.place(svg(plan, styled=False))  # the page has the style, and allows no other


def _is_cut(cut: Cut) -> bool:
    """Whether the parts make up the axis: a case may ask for lengths that don't."""
    rank = len(cut.shape)
    return (
        -rank <= cut.axis < rank
        and sum(cut.sizes) == cut.shape[cut.axis]
        and all(size >= 0 for size in cut.sizes)
    )
