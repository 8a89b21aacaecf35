"""``tensorsplit rules``: the rules of model families that come along, to be printed and copied."""

from __future__ import annotations

import click

from tensorsplit.cli.screen import Table, examples, show, write
from tensorsplit.cli.sentences import tr
from tensorsplit.core.errors import USAGE, SplitError, did_you_mean
from tensorsplit.core.errors import show as quoted
from tensorsplit.files.model_rules import built_in, title_of


@click.command(epilog=examples("rules", "rules show llama", "rules show llama > my-llama.toml"))
@click.argument("words", nargs=-1, metavar="[show NAME]")
def rules(words: tuple[str, ...]) -> None:
    """List the rules of model families, or print those of one.

    The output is a file of rules: save it, change it, and give it to --rules.
    """
    if not words:
        show(Table([(name, title_of(text)) for name, text in built_in().items()]))
        return
    if len(words) != 2 or words[0] != "show":
        name = words[-1] if words != ("show",) else "NAME"
        command = f"tensorsplit rules show {name}"
        raise click.UsageError(
            tr("rules takes no words, or show and a name: {command}", command=command)
        )
    name = words[1]
    if name not in built_in():
        raise SplitError(
            USAGE,
            tr("there are no rules {name}", name=quoted(name)),
            did_you_mean(name, built_in()) + tr("tensorsplit rules lists them"),
            parameter="name",
        )
    write(built_in()[name])
