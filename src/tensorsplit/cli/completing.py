"""What a shell offers for a word that is begun; what is offered is loaded when it is asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeAlias

import click
from click.shell_completion import CompletionItem

Complete: TypeAlias = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]


def engine_names() -> Iterable[str]:
    """The names of the engines."""
    from tensorsplit.engines import ENGINES

    return ENGINES


def target_names() -> Iterable[str]:
    """What models are checked and lowered for."""
    from tensorsplit.model.profiles import targets

    return targets()


def operator_names() -> Iterable[str]:
    """The identifiers of the operator versions, and the names that stand for the newest ones."""
    from tensorsplit.core.records import operators

    return dict.fromkeys((*operators, *(record.name for record in operators.values())))


def codes() -> Iterable[str]:
    """The codes of errors and findings."""
    from tensorsplit.model.check.checks import REPORTED

    return REPORTED


def completes(words: Callable[[], Iterable[str]], *others: str, files: bool = False) -> Complete:
    """The `shell_complete` of an argument or option: words, and files where these will do too."""

    def complete(_: click.Context, __: click.Parameter, begun: str) -> list[CompletionItem]:
        found = [word for word in (*others, *words()) if word.startswith(begun)]
        items = [CompletionItem(begun, type="file")] if files else []
        return items + list(map(CompletionItem, found))

    return complete
