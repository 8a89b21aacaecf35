"""``tensorsplit ops``: the operators, or the page of one."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import click

from tensorsplit.cli.names import operator_named
from tensorsplit.cli.screen import examples, show, write
from tensorsplit.core.records import operators
from tensorsplit.pages import Page, index, markdown, page_of
from tensorsplit.pages.content import Operand, lengths_in_short, opsets

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table


@click.command(
    epilog=examples(
        "ops",
        "ops onnx.Split-13",
        "ops Split --opset 12 --format markdown",
    ),
)
@click.argument("operator", required=False)
@click.option("--opset", type=int, help="The opset, where OPERATOR is a name such as Split.")
@click.option(
    "--format",
    "style",
    type=click.Choice(["text", "json", "markdown"]),
    default="text",
    show_default=True,
    help="How to write it.",
)
def ops(operator: str | None, opset: int | None, style: str) -> None:
    """List the operator versions, or print the page of one.

    OPERATOR is an identifier such as onnx.Split-13, or a name such as Split (with --opset, or the
    newest version).
    """
    if operator is None:
        if opset is not None:
            raise click.UsageError("--opset needs an OPERATOR")
        _list(style)
        return
    page = page_of(operator_named(operator, opset))
    if style == "json":
        write(_json(dataclasses.asdict(page)))
    elif style == "markdown":
        write(markdown(page))
    else:
        show(*_page(page))
        write(f"\nSource: {page.source}\n")  # whole, however narrow the terminal is


def _list(style: str) -> None:
    if style == "json":
        write(_json([dataclasses.asdict(page_of(record)) for record in operators.values()]))
    elif style == "markdown":
        write(index())
    else:
        rows = (
            (record.id, opsets(record), *lengths_in_short(record)) for record in operators.values()
        )
        show(_table(("operator", "opsets", "lengths from", "with none given"), rows))


def _json(value: object) -> str:
    return json.dumps(value, indent=2) + "\n"


def _page(page: Page) -> list[RenderableType]:
    from rich.text import Text

    parts: list[RenderableType] = [Text(page.id, style="bold"), page.summary, ""]
    parts += [_pairs((fact.name, fact.text) for fact in page.facts), ""]
    parts += [Text("Attributes", style="bold"), _operands(page.attributes), ""]
    parts += [Text("Inputs", style="bold"), _operands(page.inputs), ""]
    parts += [Text("Outputs", style="bold"), _operands(page.outputs), ""]
    parts.append(Text("Types", style="bold"))
    parts += [
        _pairs([(entry.name, f"{entry.meaning}: {', '.join(entry.types)}")]) for entry in page.types
    ]
    parts += ["", Text("Where the lengths come from", style="bold")]
    parts += [_pairs((row.given, row.rule) for row in page.lengths), ""]
    parts.append(Text("Examples", style="bold"))
    parts += [
        Text(f"  {example.call(page.id)}\n    = {example.sizes}") for example in page.examples
    ]
    parts += ["", Text("Behaviour", style="bold")]
    parts += [_pairs((note.name, note.text) for note in page.behaviour), ""]
    parts.append(Text("Decisions, where the text is silent or contradicts itself", style="bold"))
    decisions = (
        (note.name, " ".join((note.text, *(f"[{code}]" for code in note.codes))))
        for note in page.decisions
    )
    parts.append(_pairs(decisions))
    return parts


def _operands(rows: Sequence[Operand]) -> RenderableType:
    if not rows:
        return "  none"
    table = _plain()
    for row in rows:
        table.add_row(f"  {row.name}", row.type, row.need, row.meaning)
    return table


def _pairs(rows: Iterable[tuple[str, str]]) -> Table:
    table = _plain()
    for name, text in rows:
        table.add_row(f"  {name}", text.replace("`", ""))
    return table


def _plain() -> Table:
    from rich.table import Table

    return Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))


def _table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> Table:
    table = _plain()
    table.show_header, table.header_style = True, "bold"
    for number, name in enumerate(header):
        table.add_column(name, no_wrap=number < 2)
    for row in rows:
        table.add_row(*row)
    return table
