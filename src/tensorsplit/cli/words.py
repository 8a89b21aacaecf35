"""Words that stand for something: their names in the help, and completions for a shell.

The offered words are loaded on request. The command decides whether a word means anything.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import isnan
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

import click
from click.shell_completion import CompletionItem
from click.types import StringParamType

from tensorsplit.cli.files import outputs
from tensorsplit.cli.screen import note
from tensorsplit.cli.sentences import localized, tr


class Word(StringParamType):
    """The type of a word that is one of a set, or perhaps the name of a file to read.

    Attributes:
        name: What the help calls it, in capitals.
        known: Where the set is, or a function that returns it: ``module:name`` in the package.
        others: What it may be besides.
        suffix: That of files which it may name, and which no output may be; None for no files.
        aliases: Where the other names of some words are, each with the word it stands for.
    """

    def __init__(
        self, name: str, known: str, *others: str, suffix: str | None = None, aliases: str = ""
    ) -> None:
        self.name = name
        self.known = known
        self.others = others
        self.suffix = suffix
        self.aliases = aliases

    def convert(self, value: str, *_: object) -> str:
        """Return the word that is meant."""
        if self.suffix is not None and value.endswith(self.suffix):
            outputs().reads.append(Path(value))
        if self.aliases:
            value = resolve_name(f"tensorsplit.{self.aliases}").get(value, value)
        return value

    def shell_complete(self, _: click.Context, __: object, incomplete: str) -> list[CompletionItem]:
        """Return the words that begin so, and files where these will do too."""
        known = resolve_name(f"tensorsplit.{self.known}")
        words = (*self.others, *(known() if callable(known) else known))
        files = [] if self.suffix is None else [CompletionItem(incomplete, type="file")]
        return files + [CompletionItem(word) for word in words if word.startswith(incomplete)]


_ENGINE_ALIASES = "engines.engine_names:ALIASES"


def subject_word(name: str, *others: str) -> Word:
    """Return the type of a built-in engine or tool, or the path of an adapter."""
    subjects = "conformance.subjects:SUBJECTS"
    return Word(name, subjects, *others, suffix=".py", aliases=_ENGINE_ALIASES)


class Count(click.IntRange):
    """The type of an integer in a range, which click calls an "integer range" in messages."""

    name = "integer"


class Number(click.FloatRange):
    """The type of a number in a range, which NaN is not: click lets it through."""

    name = "number"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Return the number."""
        number = float(super().convert(value, param, ctx))
        return self.fail(tr("nan is not a valid number"), param, ctx) if isnan(number) else number


def note_remarks(targets: Iterable[str]) -> None:
    """Print remarks on the profiles of targets, such as another version; each once.

    SplitError as of `tensorsplit.model.profiles.load`.
    """
    from tensorsplit.model.profiles import load

    remarks = dict.fromkeys(remark for target in targets for remark in load(target).remarks)
    note(*map(localized, remarks))


ENGINE = Word("engine", "engines.engine_names:ENGINES", aliases=_ENGINE_ALIASES)
TARGET = Word("engine", "model.profiles:targets", suffix=".json")
OPERATOR = Word("operator", "core.records:operator_names")
SECONDS = Number(0, 1_000_000, min_open=True)
SIZE = Number(min=0)
CODE = Word("code", "model.check.checks:REPORTED")

JOBS_OPTION = click.option(
    *("--jobs", "-j"),
    metavar="N",
    type=Count(1),
    help="The number of processes that run at a time.",
)
