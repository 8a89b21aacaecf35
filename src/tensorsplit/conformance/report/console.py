"""A run in a terminal: the worst deviations by name, then operators against subjects."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from tensorsplit.conformance.document import PASS, Document, SubjectInfo
from tensorsplit.conformance.report.summary import (
    WORST,
    Counts,
    Group,
    Succession,
    Summary,
    by_outcome,
    observation,
)
from tensorsplit.core.errors import ENGLISH, Words, printable

_MOST_GROUPS = 5
_MOST_OTHERS = 2
_LEAST_WIDTH = 60
_GUTTER = 2


class Matrix:
    """A run as a rich renderable, at the width of the console it is shown on.

    It has the worst deviations and every new one, a table of operators against subjects (in several
    pieces where the console is narrow), and a line that sums it up.
    """

    def __init__(self, document: Document, words: Words = ENGLISH) -> None:
        self.words = words
        self.summary = Summary(document)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        summary, words = self.summary, self.words
        yield from _deviations(summary.groups, piped=not console.is_terminal)
        for succession in summary.successions:
            yield from _succession(succession, piped=not console.is_terminal)
        for subjects in _pieces(summary, max(options.max_width, _LEAST_WIDTH)):
            yield _table(summary, subjects)
            yield Text("")
        legend = Text(words.text("the number: passed"), "dim")
        for outcome in summary.used:
            legend.append(f"   {outcome.sign}", outcome.style).append(f" {outcome.title}", "dim")
        yield legend
        yield Text("")
        counts = words.text(
            "{cases}, {subjects}",
            cases=words.amount(len(summary.document.cases), "case"),
            subjects=words.amount(len(summary.document.subjects), "subject"),
        )
        date = dict(summary.conditions).get("date")
        yield Text.assemble(
            (f"{counts}{f', {date}' if date else ''}: ", "bold"),
            words.text("{known}, ", known=words.amount(summary.known, "known deviation")),
            (
                words.text("{n} new", n=f"{summary.news:,}"),
                "bold red" if summary.news else "bold green",
            ),
        )


def _pieces(summary: Summary, width: int) -> Iterator[list[SubjectInfo]]:
    """Yield the subjects whose columns fit beside each other."""
    first = max(map(len, (*summary.operators, "all")))
    room, piece = width - first, list[SubjectInfo]()
    for subject in summary.document.subjects:
        cells = [_cell(summary.counts(subject, name)) for name in (*summary.operators, "")]
        widest = max(len(subject.title), len(subject.version), *(cell.cell_len for cell in cells))
        if piece and widest + _GUTTER > room:
            yield piece
            room, piece = width - first, []
        piece.append(subject)
        room -= widest + _GUTTER
    if piece:
        yield piece


def _table(summary: Summary, subjects: Sequence[SubjectInfo]) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, _GUTTER, 0, 0), header_style="bold")
    table.add_column("", no_wrap=True)
    for subject in subjects:
        title = Text(printable(subject.title)).append(f"\n{printable(subject.version)}", "dim")
        table.add_column(title, no_wrap=True)
    for operator in (*summary.operators, ""):
        cells = (_cell(summary.counts(subject, operator)) for subject in subjects)
        table.add_row(printable(operator) or Text("all", "bold"), *cells)
    return table


def _cell(counts: Counts) -> Text:
    """Return the number of passes, then each failure's letter with its number."""
    if not counts.judged:
        return Text("-", "dim")
    cell = Text(str(counts[PASS]), "green" if counts[PASS] == counts.judged else "")
    for outcome, count in counts.others:
        cell.append(" ").append(f"{outcome.sign}{count}", outcome.style)
    return cell


def _deviations(groups: Sequence[Group], *, piped: bool) -> Iterator[RenderableType]:
    """Yield the deviations of the worst outcomes, and the new ones of any."""
    shown = [group for group in groups if group.outcome in WORST or group.news]
    for outcome, subjects in by_outcome(shown):
        count = sum(len(group.results) for _, same in subjects for group in same)
        meaning = (outcome.meaning, "dim")
        yield Text.assemble((outcome.title, outcome.style), f"  {count:,}  ", meaning)
        most = _MOST_GROUPS if outcome in WORST else _MOST_OTHERS
        for subject, same in subjects:
            yield Text(f"  {printable(f'{subject.title} {subject.version}')}".rstrip(), "bold")
            for group in same[:most]:
                yield from _group(group, piped=piped)
            left = sum(len(group.results) for group in same[most:])
            if left:
                yield Text(f"    and {left:,} more cases of other kinds", "dim")
        yield Text("")


def _succession(found: Succession, *, piped: bool) -> Iterator[RenderableType]:
    """Yield the changes between versions of a subject, the first cases of each kind."""
    before, after = (
        f"{subject.version}{f' ({subject.date})' if subject.date else ''}"
        for subject in (found.before, found.after)
    )
    changed = sum(len(change.cases) for change in found.changes)
    yield Text.assemble(
        (printable(f"{found.after.title} {before} -> {after}"), "bold"),
        f"  {changed:,} of {found.compared:,} cases changed",
    )
    for change in found.changes:
        words = Text(f"  {change.direction}: ")
        words.append(change.before.title, change.before.style).append(" -> ")
        words.append(change.after.title, change.after.style)
        yield words.append(f"  {len(change.cases):,}")
        for case in change.cases[:_MOST_GROUPS]:
            yield _case(Text(printable(case), overflow="fold"), piped=piped)
        if len(change.cases) > _MOST_GROUPS:
            yield Text(f"    and {len(change.cases) - _MOST_GROUPS:,} more", "dim")
    yield Text("")


def _case(case: Text, *, piped: bool) -> RenderableType:
    """Return the id of a case; it stays whole where no terminal shows it."""
    if piped:
        return Text("    ", no_wrap=True, overflow="ignore").append(case)
    return Padding(case, (0, 0, 0, 4))


def _group(group: Group, *, piped: bool) -> Iterator[RenderableType]:
    """Yield the first case of a group by its id, its outcome, and how many more are like it."""
    result = group.results[0]
    new = Text("  new", "bold red") if group.news else Text("")
    yield _case(Text(printable(result.case), overflow="fold").append(new), piped=piped)
    seen = observation(result)
    signal = f"{result.signal}: " if result.signal not in seen else ""
    detail = f"      {printable(signal + seen)}"
    yield Text(detail, "dim", no_wrap=True, overflow="ellipsis")
    if len(group.results) > 1:
        yield Text(f"      and {len(group.results) - 1:,} more like it", "dim")
