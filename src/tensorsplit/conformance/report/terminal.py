"""A run on a terminal: the worst deviations by name, then operators against subjects."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from tensorsplit.conformance.document import Document, SubjectInfo
from tensorsplit.conformance.report.summary import (
    OUTCOMES,
    PASS,
    WORST,
    Group,
    Tally,
    by_outcome,
    conditions,
    groups,
    judged,
    named,
    operators,
    told,
)
from tensorsplit.pages.layout import printable

_STYLES = (
    "bold magenta",
    "bold red",
    "red",
    "yellow",
    "bold yellow",
    "cyan",
    "dim",
    "green",
    "dim",
)
_MOST_GROUPS = 5
_MOST_OTHERS = 2
_LEAST_WIDTH = 60
_GUTTER = 2


def matrix(document: Document) -> RenderableType:
    """A run as a rich renderable, at the width of the console it is shown on.

    Args:
        document: The run.

    Returns:
        The worst deviations and every new one, a table of operators against subjects (in several
        pieces where the console is narrow), and a line that sums it up.
    """
    return _Matrix(document)


class _Matrix:
    def __init__(self, document: Document) -> None:
        self._document = document
        self._tally = Tally.of(document)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        width = max(options.max_width, _LEAST_WIDTH)
        yield from _deviations(groups(self._document))
        for number, subjects in enumerate(self._pieces(width)):
            if number:
                yield Text("")
            yield self._table(subjects)
        yield Text("")
        yield _legend(self._tally)
        yield Text("")
        yield self._summary()

    def _pieces(self, width: int) -> Iterator[list[SubjectInfo]]:
        """The subjects whose columns stand side by side."""
        first = max(map(len, (*operators(self._document), "all")), default=3)
        room, piece = width - first, list[SubjectInfo]()
        for subject in self._document.subjects:
            needed = self._width(subject) + _GUTTER
            if piece and needed > room:
                yield piece
                room, piece = width - first, []
            piece.append(subject)
            room -= needed
        if piece:
            yield piece

    def _width(self, subject: SubjectInfo) -> int:
        counts = [self._tally.cell(name, subject.name) for name in operators(self._document)]
        cells = [_cell(row).cell_len for row in (*counts, self._tally.total(subject.name))]
        return max(len(subject.name), len(subject.version), *cells)

    def _table(self, subjects: Sequence[SubjectInfo]) -> Table:
        """The operators as rows, these subjects as columns; the number is that of the passes."""
        table = Table(box=None, pad_edge=False, padding=(0, _GUTTER, 0, 0), header_style="bold")
        table.add_column("", no_wrap=True)
        for subject in subjects:
            title = Text(printable(subject.name)).append(f"\n{printable(subject.version)}", "dim")
            table.add_column(title, no_wrap=True)
        for operator in operators(self._document):
            cells = (_cell(self._tally.cell(operator, subject.name)) for subject in subjects)
            table.add_row(printable(operator), *cells)
        totals = (_cell(self._tally.total(subject.name)) for subject in subjects)
        table.add_row(Text("all", "bold"), *totals)
        return table

    def _summary(self) -> Text:
        tally = self._tally
        facts = ", ".join(value for name, value in conditions(self._document) if name == "date")
        text = f"{len(self._document.cases):,} cases, {len(self._document.subjects)} subjects"
        line = Text(f"{text}{f', {facts}' if facts else ''}: ", "bold")
        line.append(f"{tally.known:,} known deviations, ")
        return line.append(f"{tally.news:,} new", "bold red" if tally.news else "bold green")


def _cell(counts: Sequence[int]) -> Text:
    """The passes, then how often each failure came up behind its letter."""
    if not judged(counts):
        return Text("-", "dim")
    clean = counts[PASS] == judged(counts)
    cell = Text(str(counts[PASS]), _STYLES[PASS] if clean else "")
    for outcome, style, count in zip(OUTCOMES[:PASS], _STYLES, counts, strict=False):
        if count:
            cell.append(" ").append(f"{outcome.sign}{count}", style)
    return cell


def _legend(tally: Tally) -> Text:
    """What the letters mean that were used."""
    used = [any(counts[place] for counts in tally.totals.values()) for place in range(PASS)]
    line = Text("the number: passed", "dim")
    for outcome, style, shown in zip(OUTCOMES[:PASS], _STYLES, used, strict=False):
        if shown:
            line.append("   ").append(outcome.sign, style).append(f" {outcome.title}", "dim")
    return line


def _deviations(found: Sequence[Group]) -> Iterator[RenderableType]:
    """The deviations of the worst outcomes, and the new ones of any."""
    shown = [group for group in found if group.severity in WORST or group.news]
    for outcome, same in by_outcome(shown):
        style = _STYLES[OUTCOMES.index(outcome)]
        count = sum(len(group.results) for group in same)
        yield Text.assemble((outcome.title, style), f"  {count:,}  ", (outcome.meaning, "dim"))
        for subject, theirs in groupby(same, key=lambda group: group.subject):
            yield from _of_subject(subject, list(theirs))
        yield Text("")


def _of_subject(subject: SubjectInfo, same: Sequence[Group]) -> Iterator[RenderableType]:
    yield Text(f"  {printable(named(subject))}", "bold")
    most = _MOST_GROUPS if same[0].severity in WORST else _MOST_OTHERS
    for group in same[:most]:
        yield from _group(group)
    left = sum(len(group.results) for group in same[most:])
    if left:
        yield Text(f"    and {left:,} more cases of other kinds", "dim")


def _group(group: Group) -> Iterator[RenderableType]:
    """The first case of a group by its id, what came of it, and how many more are like it."""
    result = group.results[0]
    new = Text("  new", "bold red") if group.news else Text("")
    yield Padding(Text(printable(result.case), overflow="fold").append(new), (0, 0, 0, 4))
    signal = f"{result.signal}: " if result.signal and result.signal not in result.detail else ""
    detail = f"      {printable(signal + told(result))}"
    yield Text(detail, "dim", no_wrap=True, overflow="ellipsis")
    more = len(group.results) - 1
    if more:
        yield Text(f"      and {more:,} more like it", "dim")
