"""The language of the commands: English, or another that has a catalogue in ``locale``; the help.

``TENSORSPLIT_LANG`` names it, such as zh_CN, or else the system does: ``LANGUAGE``, ``LC_ALL``,
``LC_MESSAGES`` or ``LANG``. ``python scripts/messages.py`` brings the catalogues up to date. What
else the commands say is in ``sentences.py``.
"""

from __future__ import annotations

import gettext
import inspect
import os
import re
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

import click

DOMAIN = "tensorsplit"
CATALOGUES = Path(__file__).with_name("locale")
WORDS = (
    *("Usage:", "Options", "Commands", "Examples:", "default:", "required"),
    "Show this message and exit.",
)
"""What the help of each command has, besides its own texts; most of it comes from click."""

_TERM = 30  # columns, at most, as click has it
_GAP = 2
PIECES = re.compile(
    r"\s+|[（“「]*(?:[一-鿿]|[^\s一-鿿（“「，。；：、？！）”」]+|.)[，。；：、？！）”」]*"
)
"""What a line may end after: blanks, a word, or a Chinese character and its punctuation."""


@cache
def catalogue() -> gettext.NullTranslations:
    """Return the translations into the language of the user; none for English."""
    chosen = os.environ.get("TENSORSPLIT_LANG")
    return gettext.translation(DOMAIN, CATALOGUES, [chosen] if chosen else None, fallback=True)


def is_english() -> bool:
    """Return whether texts stay as they are written in the source."""
    return not isinstance(catalogue(), gettext.GNUTranslations)


def paragraphs(text: str) -> Iterator[str]:
    """Yield the paragraphs of a help text, each on one line, but for examples."""
    for paragraph in inspect.cleandoc(text).split("\n\n"):
        yield paragraph if paragraph.startswith("\b") else " ".join(paragraph.split())


def translated(text: str) -> str:
    """Return a help text in the language of the user; a paragraph without a translation stays."""
    return "\n\n".join(
        "\n".join(map(catalogue().gettext, paragraph.split("\n"))) for paragraph in paragraphs(text)
    )


class HelpWriter(click.HelpFormatter):
    """Writes help in the language of the user."""

    def write_usage(self, prog: str, args: str = "", prefix: str | None = None) -> None:
        """Write the line of the usage."""
        prefix = None if is_english() else f"{catalogue().gettext('Usage:')} "
        super().write_usage(prog, args, prefix)

    def write_heading(self, heading: str) -> None:
        """Write the heading of a list."""
        super().write_heading(catalogue().gettext(heading))

    def write_text(self, text: str) -> None:
        """Write paragraphs."""
        if not is_english():
            text = _folded(translated(text), self.width - self.current_indent)
        super().write_text(text)

    def write_dl(
        self, rows: Iterable[tuple[str, str]], col_max: int = _TERM, col_spacing: int = _GAP
    ) -> None:
        """Write options or commands, and what each does."""
        rows = list(rows)
        if not is_english():
            first = min(max(len(term) for term, _ in rows), col_max) + col_spacing
            width = max(self.width - first - _GAP, 10)
            rows = [(term, _folded(_with_notes(text), width)) for term, text in rows]
        super().write_dl(rows, col_max, col_spacing)


class HelpContext(click.Context):
    """The context of a command whose help is in the language of the user."""

    formatter_class = HelpWriter


def _with_notes(text: str) -> str:
    """Return the help of an option, translated, with the notes that click adds in brackets."""
    text, gap, notes = text.partition("  [")
    for word in ("default:", "required"):
        notes = notes.replace(word, catalogue().gettext(word))
    return translated(text) + gap + notes


def _folded(text: str, width: int) -> str:
    """Fold paragraphs to a width in columns, of which a Chinese character takes two.

    click counts characters and folds only between words. A backspace tells it to leave the lines.
    """
    folded = []
    for paragraph in text.split("\n\n"):
        if paragraph.startswith("\b"):
            folded.append(paragraph)
            continue
        folded.append("\n".join(("\b", *lines_of(paragraph, width))))
    return "\n\n".join(folded)


def lines_of(paragraph: str, width: int) -> Iterator[str]:
    """Yield the lines of a paragraph, at most `width` columns wide unless one piece is wider."""
    from rich.cells import cell_len

    line = ""
    for piece in PIECES.findall(paragraph):
        if line and cell_len((line + piece).rstrip()) > width:
            yield line.rstrip()
            line = ""
        line += piece if line else piece.lstrip()
    yield line
