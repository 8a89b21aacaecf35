"""The commands about operators: ``ops`` (the list, or the page of one) and ``diff``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, astuple
from textwrap import indent
from typing import TYPE_CHECKING, Any

import click

from tensorsplit.cli.screen import Table, examples, format_option, say, show, write, write_json
from tensorsplit.cli.sentences import known, tr
from tensorsplit.cli.words import OPERATOR
from tensorsplit.core.differences import Change, OperatorDiff
from tensorsplit.core.differences import diff as compare_records
from tensorsplit.core.records import operator_named, operators
from tensorsplit.core.rules import LengthRule, equal, ones
from tensorsplit.pages import Page, index, markdown, page_of
from tensorsplit.pages.content import opsets

if TYPE_CHECKING:
    from rich.console import RenderableType

_ABSENT = "-"


@click.command(
    epilog=examples("ops", "ops onnx.Split-13", "ops Split --opset 12 --format markdown")
)
@click.argument("operator", required=False, type=OPERATOR)
@click.option("--opset", type=int, help="The opset, where OPERATOR is a name such as Split.")
@format_option("text", "json", "markdown")
def ops(operator: str | None, opset: int | None, style: str) -> None:
    """List the operator versions, or print the page of one.

    OPERATOR is an identifier such as onnx.Split-13, a name such as Split (with --opset, or the
    newest version), or a dialect such as torch.chunk.
    """
    if operator is None:
        if opset is not None:
            raise click.UsageError(tr("--opset needs an OPERATOR"))
        _list(style)
        return
    page = page_of(operator_named(operator, opset))
    if style == "json":
        write_json(asdict(page))
    elif style == "markdown":
        write(markdown(page))
    else:
        show(*_page(page))
        write(
            f"\n{tr('Source: {address}', address=page.source)}\n"
        )  # whole, however narrow the terminal is


def _list(style: str) -> None:
    if style == "json":
        write_json([asdict(page_of(record)) for record in operators.values()])
    elif style == "markdown":
        write(index())
    else:
        absent: dict[LengthRule | None, str] = {
            None: tr("refused"),
            equal: tr("equal parts"),
            ones: tr("parts of length 1"),
        }
        rows = []
        for record in operators.values():
            sources = tr(" or ").join(
                f"{known(entry.kind)} {entry.operand}" for entry in record.lengths
            )
            rows.append((record.id, known(opsets(record)), sources, absent[record.absent]))
        heads = (tr("operator"), tr("opsets"), tr("lengths from"), tr("with none given"))
        show(Table(rows, heads))


def _page(page: Page) -> Iterator[RenderableType]:
    """Yield the page for a terminal."""
    from rich.text import Text

    types = (
        (entry.name, f"{known(entry.meaning)}: {', '.join(entry.types)}") for entry in page.types
    )
    decisions = (
        (note.name, " ".join((known(note.text), *(f"[{code}]" for code in note.codes))))
        for note in page.decisions
    )
    behaviour = ((known(each.name), known(each.text)) for each in page.behaviour)
    calls = (f"  {entry.call(page.id)}\n    = {entry.sizes}" for entry in page.examples)
    lengths = (
        (known(entry.given), ": ".join(filter(None, (known(entry.rule), entry.length))))
        for entry in page.lengths
    )
    drawn = (
        f"  {each.title}: {each.operands}\n{indent(each.drawing, '    ')}" for each in page.drawn
    )
    shown = "\n".join((*drawn, *(indent(layer, "  ") for layer in page.layers)))
    yield from (Text(page.id, style="bold"), known(page.summary), "")
    yield _plain(((known(fact.name), known(fact.text)) for fact in page.facts), indent=2)
    parts: tuple[tuple[str, RenderableType], ...] = (
        (tr("Attributes"), _operands(page.attributes)),
        (tr("Inputs"), _operands(page.inputs)),
        (tr("Outputs"), _operands(page.outputs)),
        (tr("Types"), _plain(types, indent=2)),
        (tr("Where the lengths come from"), _plain(lengths, indent=2)),
        (tr("Examples"), Text("\n".join(calls))),
        (tr("Examples of the standard"), Text(shown)),
        (tr("Behaviour"), _plain(behaviour, indent=2)),
        (
            tr("Decisions, where the text is silent or contradicts itself"),
            _plain(decisions, indent=2),
        ),
    )
    for title, part in parts:
        if part:
            yield from ("", Text(title, style="bold"), part)


def _operands(entries: Iterable[Any]) -> Table:
    """Return a row for each operand; its name and type stay as they are."""
    rows = ((name, *map(known, rest)) for name, *rest in map(astuple, entries))
    return _plain(rows, indent=2)


@click.command(
    epilog=examples("diff onnx.Split-13 onnx.Split-18", "diff torch.chunk onnx.Split-18")
)
@click.argument("before", type=OPERATOR)
@click.argument("after", type=OPERATOR)
@format_option("text", "json")
def diff(before: str, after: str, style: str) -> None:
    """Show what changed between two operator versions or dialects, side by side.

    BEFORE and AFTER are identifiers such as onnx.Split-13 or torch.chunk; a name such as Split is
    its newest version.
    """
    found = compare_records(operator_named(before), operator_named(after))
    if style == "json":
        fields = ("aspect", "name", "before", "after")
        changes = [{name: getattr(change, name) for name in fields} for change in found.changes]
        write_json({"before": found.before.id, "after": found.after.id, "changes": changes})
    elif found.changes:
        show(_comparison(found))
    else:
        names = {"before": found.before.id, "after": found.after.id}
        say(tr("{before} and {after}: no differences", **names))


def _comparison(found: OperatorDiff) -> Table:
    """Return a row for each change."""
    rows = [
        (
            f"{known(change.aspect)} {_subject(change)}",
            known(change.before or "") or _ABSENT,
            known(change.after or "") or _ABSENT,
        )
        for change in found.rows
    ]
    return _plain(rows, ("", found.before.id, found.after.id))


def _subject(change: Change) -> str:
    """Return the subject of a change; the name of an operand stays as it is."""
    return known(change.name) if change.aspect in ("fact", "behaviour") else change.name


def _plain(rows: Iterable[Sequence[str]], heads: Sequence[str] = (), indent: int = 0) -> Table:
    """Return a table of texts in Markdown."""
    return Table([[text.replace("`", "") for text in row] for row in rows], heads, indent)
