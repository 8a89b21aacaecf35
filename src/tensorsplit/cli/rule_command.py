"""``tensorsplit rule``: what the codes of errors and findings stand for."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from tensorsplit.cli.screen import (
    Table,
    examples,
    format_option,
    say,
    show,
    wrapped,
    write,
    write_json,
)
from tensorsplit.cli.sentences import known, tr
from tensorsplit.cli.words import CODE
from tensorsplit.core.errors import USAGE, Kind, SplitError, did_you_mean
from tensorsplit.core.errors import show as quoted

if TYPE_CHECKING:
    from tensorsplit.pages.codes import CodePage

_BEGINNING = re.compile(r"TS\d{0,2}", re.IGNORECASE)
"""The beginning of a code: a guess would be another code, and not the one that is meant."""


@click.command(epilog=examples("rule", "rule TS304", "rule TS825 --format markdown"))
@click.argument("codes", metavar="[CODE]...", nargs=-1, type=CODE)
@format_option("text", "json", "markdown")
def rule(codes: Sequence[str], style: str) -> None:
    """List the codes of errors and findings, or print the page of each code that is given."""
    from tensorsplit.model.check.checks import REPORTED
    from tensorsplit.pages.codes import codes_page, page_of_code, section

    kinds = list(map(kind_of, codes))
    if style == "json":
        pages = [asdict(page_of_code(kind)) for kind in kinds or REPORTED.values()]
        write_json(pages[0] if len(kinds) == 1 else pages)
    elif style == "markdown":
        write("\n".join(section(page_of_code(kind)) for kind in kinds) or codes_page())
    elif kinds:
        for number, kind in enumerate(kinds):
            if number:
                say("")
            _show(page_of_code(kind))
    else:
        show(Table([(kind.code, known(kind.title)) for kind in REPORTED.values()]))


def kind_of(word: str) -> Kind:
    """Return the kind of refusal or check that a code stands for; TS703 for others."""
    from tensorsplit.model.check.checks import REPORTED

    if word.upper() in REPORTED:
        return REPORTED[word.upper()]
    begun = [code for code in REPORTED if word and code.startswith(word.upper())]
    near = "" if _BEGINNING.fullmatch(word) else did_you_mean(word, REPORTED)
    some = ""
    if begun:
        some = tr(
            "give a whole code, such as {codes}; ", codes=tr(" or ").join((begun[0], begun[-1]))
        )
    raise SplitError(
        USAGE,
        tr("{word} is not a code", word=quoted(word)),
        (some or near) + tr("tensorsplit rule lists them"),
        parameter="code",
    )


def _show(page: CodePage) -> None:
    from rich.text import Text

    title = Text.assemble(
        (page.code, "bold"), f"  {known(page.title)}  ", (known(page.severity), "dim")
    )
    show(title, "", wrapped(known(page.meaning).replace("`", "")))
    if page.decisions:
        say("")
        show(Table([(note.name, known(note.text).replace("`", "")) for note in page.decisions]))
    say("", *(f"    {line}" for line in page.example.call.splitlines()), "")
    show(page.example.message)
    if page.url:
        say("", page.url)  # whole, however narrow the terminal is
