"""The figures as text for the terminal."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from tensorsplit.bench import words
from tensorsplit.bench.figures import Figures, Measured, Timed
from tensorsplit.bench.peers import OURS

if TYPE_CHECKING:
    from rich.text import Text

_LONGEST_REASON = 72


def lines(figures: Figures) -> Iterator[Text]:
    """The machine, a block for each workload, and what was wrong.

    Args:
        figures: What was measured.
    """
    from rich.text import Text

    yield from (Text(line) for line in words.about(figures.about))
    for measured in figures.measured:
        yield Text("")
        yield from _block(measured)
    yield Text("")
    if figures.wrong:
        yield from (Text(f"wrong: {fault}", "bold red") for fault in figures.wrong)
    else:
        yield Text("every result is the same, bit for bit, as that of plain slicing")


def as_text(figures: Figures) -> str:
    """The same without colours."""
    return "".join(f"{line.plain}\n" for line in lines(figures))


def _block(measured: Measured) -> Iterator[Text]:
    from rich.text import Text

    workload, baseline = measured.workload, words.seconds(measured.baseline.median)
    yield Text.assemble((workload.name, "bold"), f"  {workload.stands_for}")
    yield Text(words.cut(workload), "dim")
    yield Text(f"1 = {words.against(workload)}: {baseline}; {measured.rounds} rounds", "dim")
    for entry in measured.entries:
        style = "bold red" if entry.wrong else "bold" if entry.peer == OURS else ""
        yield Text(f"  {entry.peer:12} {entry.mode:7} {_figure(entry)}", style)


def _figure(entry: Timed) -> str:
    """The ratio, its spread and the time of one call; or why there are none."""
    if entry.ratio is None or entry.seconds is None or entry.wrong is not None:
        reason = f"wrong: {entry.wrong}" if entry.wrong else entry.cannot or ""
        return f"{'':5} {words.short(reason, _LONGEST_REASON)}"
    ratio, time = words.ratio(entry.ratio.median), words.seconds(entry.seconds.median)
    return f"{ratio:>5}  {words.span(entry.ratio):13} {time:>8}"
