"""The output of the commands: results to standard output, errors and progress to standard error."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import sys
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import click

from tensorsplit.cli.language import PIECES, is_english, lines_of
from tensorsplit.cli.sentences import known, localized, named, tr
from tensorsplit.core.errors import SplitWarning, printable

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
    from rich.progress import Progress

Command = TypeVar("Command", bound=Callable[..., object])

FINDINGS = 1
"""The exit status for findings of error level, a mismatch, or a case that is not as recorded."""

SECONDS_BEFORE_PROGRESS = 0.5
"""How long a command takes before it shows its progress."""

_LONGEST_MESSAGE = 2000
_GUTTER = 2
_MOST_NAMES = 6


class StandardOutputError(OSError):
    """Standard output can't be written to."""


@contextlib.contextmanager
def writing_out() -> Iterator[None]:
    """Tell an error of standard output from those of files; a pipe that is closed is none."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        if error.filename is not None:
            raise
        raise StandardOutputError(error.errno, error.strerror) from None


def examples(*commands: str) -> str:
    """Return the end of a help text: commands to try, on lines that click does not wrap."""
    return "\n".join(("\b", "Examples:", *(f"  tensorsplit {command}" for command in commands)))


def format_option(*formats: str, text: str = "How to write it.") -> Callable[[Command], Command]:
    """Add the option ``--format``, passed on as `style`; the first format is the default."""
    return click.option(
        "--format",
        "style",
        type=click.Choice(formats),
        default=formats[0],
        show_default=True,
        help=text,
    )


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of text for the console that they are shown on.

    A column is at least as wide as its longest word, so that none is broken. Where that is too wide
    for the console, each row becomes a block: its first cell, and the others on lines below it.

    Attributes:
        heads: The words above the columns; empty for none.
        indent: How many blanks stand before each row.
    """

    rows: Sequence[Sequence[str]]
    heads: Sequence[str] = ()
    indent: int = 0

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        from rich.cells import cell_len
        from rich.padding import Padding
        from rich.table import Table as RichTable

        if not self.rows:
            yield f"{'':{self.indent}}{tr('none')}"
            return
        lines = [*([self.heads] if self.heads else []), *self.rows]
        least = [max(map(_longest_word, column)) for column in zip(*lines, strict=True)]
        whole = max(cell_len(line[0]) for line in lines)
        least[0] = whole if whole <= options.max_width // 2 else least[0]
        room = options.max_width - self.indent - _GUTTER * (len(least) - 1)
        if sum(least) > room:
            yield from self._folded()
            return
        table = RichTable(
            box=None, padding=(0, _GUTTER, 0, 0), header_style="bold", show_header=bool(self.heads)
        )
        longest = [max(map(_longest_line, column)) for column in zip(*lines, strict=True)]
        widths = _widths(least, longest, room)  # Rich's own may be more than there is room for
        for width, head in zip(widths, self.heads or [""] * len(least), strict=True):
            table.add_column(head, width=width, overflow="fold")  # Chinese has no blanks
        for row in self.rows:
            table.add_row(*row)
        wide = options.update(max_width=options.max_width + _GUTTER)  # blanks after the last column
        yield from console.render(Padding(table, (0, 0, 0, self.indent)), wide)

    def _folded(self) -> Iterator[RenderableType]:
        from rich.padding import Padding
        from rich.text import Text

        for first, *cells in self.rows:
            yield Text(" " * self.indent + first, "bold", no_wrap=True, overflow="ignore")
            for head, cell in zip(self.heads[1:] or [""] * len(cells), cells, strict=True):
                yield Padding(Text(f"{head}: {cell}" if head else cell), (0, 0, 0, self.indent + 2))


def _widths(least: Sequence[int], longest: Sequence[int], room: int) -> list[int]:
    """Return the widths of columns: those of their longest cells, or less for the widest ones."""
    for most in range(room, 0, -1):
        widths = [max(low, min(high, most)) for low, high in zip(least, longest, strict=True)]
        if sum(widths) <= room:
            break
    return widths


def _longest_line(text: str) -> int:
    from rich.cells import cell_len

    return max(map(cell_len, text.splitlines()), default=0)


def _longest_word(text: str) -> int:
    from rich.cells import cell_len

    return max(map(cell_len, PIECES.findall(text)), default=0)


def show(*renderables: RenderableType, folds: bool = True) -> None:
    """Write rich renderables, in colour only on a terminal that wants it (NO_COLOR).

    With `folds` False a long line stays one line, which a terminal folds by itself.
    """
    write(rendered(*renderables, soft_wrap=not folds))


def wrapped(text: str) -> str:
    """Fold a paragraph to the width of the terminal; English is left to Rich, which folds words."""
    if is_english():
        return text
    return "\n".join(lines_of(text, shutil.get_terminal_size().columns))


def rendered(*renderables: RenderableType, soft_wrap: bool = False, **console: Any) -> str:
    """Return Rich renderables as text, for standard output if the console has no other file."""
    from rich.console import Console

    made = Console(highlight=False, markup=False, emoji=False, **console)
    with writing_out(), made.capture() as captured:  # it flushes its file
        for renderable in renderables:
            made.print(renderable, soft_wrap=soft_wrap, crop=False)
    lines = [line.rstrip() for line in captured.get().splitlines()]
    return "\n".join(lines).strip("\n") + "\n"


def write(text: str) -> None:
    """Write text to standard output; characters that its encoding lacks become question marks."""
    stream = sys.stdout
    if stream is None:  # the caller closed it
        return
    encoding = stream.encoding or "utf-8"
    with writing_out():
        stream.write(text.encode(encoding, "replace").decode(encoding))


def flush() -> None:
    """Write out the buffer of standard output."""
    if sys.stdout is not None:
        with writing_out():
            sys.stdout.flush()


def say(*lines: str) -> None:
    """Write lines to standard output, without the control characters that a model may hold."""
    write("".join(f"{printable(line)}\n" for line in lines))


def listed(names: Sequence[str]) -> str:
    """Join names in one line; of many, the first ones and how many there are."""
    more = f", ... ({len(names)})" if len(names) > _MOST_NAMES else ""
    return ", ".join(names[:_MOST_NAMES]) + more


def write_json(value: object) -> None:
    """Write a value as JSON to standard output."""
    write(json.dumps(value, indent=2) + "\n")


def complain(message: str) -> None:
    """Write one line to standard error, whatever is in the message."""
    line = printable(" ".join(named(message).split()))
    if len(line) > _LONGEST_MESSAGE:
        line = f"{line[:_LONGEST_MESSAGE]}..."
    stream = sys.stderr
    if stream is not None:
        word = tr("error:")
        word = click.style(word, "red", bold=True) if wants_colour(stream) else word
        with contextlib.suppress(OSError):
            stream.write(f"tensorsplit: {word} {line}\n")


def note(*lines: str) -> None:
    """Write lines to standard error, if that can be written to."""
    if sys.stderr is not None:
        with contextlib.suppress(OSError):
            sys.stderr.write("".join(f"tensorsplit: {printable(named(line))}\n" for line in lines))


def note_warnings() -> None:
    """Note our own warnings from now on, and no others, which name lines of code.

    With ``python -W``, ``-X dev`` or PYTHONWARNINGS, Python shows all of them, as it was asked to.
    """
    if not sys.warnoptions:
        warnings.showwarning = _note_warning  # type: ignore[assignment]  # it needs no line


def _note_warning(message: Warning | str, category: type[Warning], *_: object) -> None:
    if issubclass(category, SplitWarning):
        note(localized(str(message)))


def is_terminal(stream: object) -> bool:
    """Return whether a standard stream is a terminal; one that its caller closed is None."""
    return stream is not None and hasattr(stream, "isatty") and bool(stream.isatty())


def wants_colour(stream: object) -> bool:
    """Return whether to colour what a standard stream shows: NO_COLOR, FORCE_COLOR, a terminal."""
    if os.environ.get("NO_COLOR"):
        return False
    return bool(os.environ.get("FORCE_COLOR")) or (
        is_terminal(stream) and os.environ.get("TERM") != "dumb"
    )


def flush_or_silence() -> None:
    """Write out the buffers of standard output and error, or discard them if that fails."""
    for name in ("stderr", "stdout"):
        try:
            if (stream := getattr(sys, name)) is not None:
                stream.flush()
        except (OSError, ValueError):
            _silence(name)


def _silence(name: str) -> None:
    """Discard the rest of a standard stream: its reader is gone, or its disk is full."""
    try:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, getattr(sys, name).fileno())
        os.close(nowhere)
    except (OSError, ValueError, AttributeError):  # not a real file, or closed already
        setattr(sys, name, None)


@contextlib.contextmanager
def progress_of(
    what: str, total: int | None = None, *, in_bytes: bool = False
) -> Iterator[Callable[[int], None]]:
    """Show progress on standard error during the block, if it is a terminal and takes a while.

    Yields a function that takes the number of steps, or bytes, done since its last call. Without
    `total`, the passes over a model report their own steps.
    """
    if not is_terminal(sys.stderr):
        yield lambda _: None
        return
    from rich import progress as bars
    from rich.console import Console

    done = bars.DownloadColumn() if in_bytes else bars.MofNCompleteColumn()
    columns = (
        *(bars.TextColumn("{task.description}"), bars.BarColumn(), done),
        *(bars.TimeElapsedColumn(), bars.TimeRemainingColumn()),
    )
    progress = bars.Progress(*columns, console=Console(stderr=True), transient=True)
    with _started_later(progress):
        task = progress.add_task(known(what), total=total)
        advance = partial(progress.advance, task)
        if total is not None:
            yield advance
            return
        from tensorsplit.model.graph.progress import watched_by

        def begin(what: str, total: int | None) -> Callable[[], None]:
            progress.reset(task, total=total, description=known(what))
            return advance

        with watched_by(begin):
            yield advance


@contextlib.contextmanager
def _started_later(progress: Progress) -> Iterator[None]:
    """Show a display during the block, from the time on when that has taken a while."""
    timer = threading.Timer(SECONDS_BEFORE_PROGRESS, progress.start)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()
        if progress.live.is_started:
            progress.stop()
