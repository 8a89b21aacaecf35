"""What the commands write: results to standard output, one line per refusal to standard error."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

from tensorsplit.pages.layout import printable

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.progress import Progress, TaskID

_LONGEST_MESSAGE = 2000
_REDRAWN = 0.05


def examples(*commands: str) -> str:
    """The end of a help text: commands to try, on lines that click does not wrap."""
    return "\n".join(("\b", "Examples:", *(f"  tensorsplit {command}" for command in commands)))


def show(*renderables: RenderableType) -> None:
    """Write rich renderables, in colour only on a terminal that wants it (NO_COLOR)."""
    from rich.console import Console

    console = Console(highlight=False, markup=False, emoji=False)
    with console.capture() as captured:
        for renderable in renderables:
            console.print(renderable)
    lines = [line.rstrip() for line in captured.get().splitlines()]
    write("\n".join(lines).strip("\n") + "\n")


def write(text: str) -> None:
    """Write text to standard output; characters that its encoding lacks become question marks."""
    stream = sys.stdout
    if stream is None:  # closed by whoever started us
        return
    encoding = stream.encoding or "utf-8"
    stream.write(text.encode(encoding, "replace").decode(encoding))


@contextlib.contextmanager
def working(what: str) -> Iterator[None]:
    """Show how far a command is, on standard error and only if that is a terminal."""
    from tensorsplit.model.graph.progress import watched_by

    with progress_bar(what) as bar:
        if bar is None:
            yield
            return
        with watched_by(_Bar(*bar)):
            yield


@contextlib.contextmanager
def progress_bar(what: str, total: int | None = None) -> Iterator[tuple[Progress, TaskID] | None]:
    """A bar on standard error; None if that is no terminal.

    Args:
        what: What is done.
        total: How many steps it has; None if that is not known yet.
    """
    if sys.stderr is None or not sys.stderr.isatty():
        yield None
        return
    from rich import progress as bars
    from rich.console import Console

    columns = (
        *(bars.TextColumn("{task.description}"), bars.BarColumn(), bars.MofNCompleteColumn()),
        *(bars.TimeElapsedColumn(), bars.TimeRemainingColumn()),
    )
    with bars.Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        yield progress, progress.add_task(what, total=total)


class _Bar:
    """A progress bar as what is told of the work; drawn some times a second, not at each step."""

    def __init__(self, progress: Progress, task: TaskID) -> None:
        self._progress, self._task = progress, task
        self._done, self._drawn = 0, 0.0

    def begin(self, what: str, total: int | None) -> None:
        self._done, self._drawn = 0, 0.0
        self._progress.reset(self._task, total=total, description=what)

    def step(self) -> None:
        self._done += 1
        now = time.monotonic()
        if now - self._drawn > _REDRAWN:
            self._drawn = now
            self._progress.update(self._task, completed=self._done)


def complain(message: str) -> None:
    """Write one line to standard error, whatever is in the message."""
    line = printable(" ".join(message.split()))
    if len(line) > _LONGEST_MESSAGE:
        line = f"{line[:_LONGEST_MESSAGE]}..."
    if sys.stderr is not None:
        sys.stderr.write(f"tensorsplit: error: {line}\n")


def silence() -> None:
    """Send what is left of standard output nowhere: nobody reads it any more."""
    try:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
    except (OSError, ValueError, AttributeError):  # not a real file, or closed already
        sys.stdout = None
