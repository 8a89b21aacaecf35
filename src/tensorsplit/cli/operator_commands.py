"""The commands about operators: ``ops`` (the list, or the page of one) and ``diff``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, astuple
from itertools import groupby
from operator import attrgetter
from typing import TYPE_CHECKING

import click

from tensorsplit.cli.parsing import operator_named
from tensorsplit.cli.screen import examples, format_option, show, write, write_json
from tensorsplit.core.differences import OperatorDiff
from tensorsplit.core.differences import diff as compare_records
from tensorsplit.core.records import operators
from tensorsplit.core.rules import Rule, equal, ones
from tensorsplit.pages import Page, index, markdown, page_of
from tensorsplit.pages.content import opsets

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table

_ABSENT = "-"


@click.command(
    epilog=examples("ops", "ops onnx.Split-13", "ops Split --opset 12 --format markdown")
)
@click.argument("operator", required=False)
@click.option("--opset", type=int, help="The opset, where OPERATOR is a name such as Split.")
@format_option("text", "json", "markdown")
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
        write_json(asdict(page))
    elif style == "markdown":
        write(markdown(page))
    else:
        show(*_page(page))
        write(f"\nSource: {page.source}\n")  # whole, however narrow the terminal is


def _list(style: str) -> None:
    from rich.table import Table

    if style == "json":
        write_json([asdict(page_of(record)) for record in operators.values()])
    elif style == "markdown":
        write(index())
    else:
        table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
        for name in ("operator", "opsets", "lengths from", "with none given"):
            table.add_column(name, no_wrap=name in ("operator", "opsets"))
        absent: dict[Rule | None, str] = {
            None: "refused",
            equal: "equal parts",
            ones: "parts of length 1",
        }
        for record in operators.values():
            sources = " or ".join(f"{entry.kind} {entry.operand}" for entry in record.lengths)
            table.add_row(record.id, opsets(record), sources, absent[record.absent])
        show(table)


def _page(page: Page) -> Iterator[RenderableType]:
    """The page for a terminal."""
    from rich.text import Text

    types = ((entry.name, f"{entry.meaning}: {', '.join(entry.types)}") for entry in page.types)
    decisions = (
        (note.name, " ".join((note.text, *(f"[{code}]" for code in note.codes))))
        for note in page.decisions
    )
    calls = (f"  {entry.call(page.id)}\n    = {entry.sizes}" for entry in page.examples)
    yield from (Text(page.id, style="bold"), page.summary, "")
    yield _table((fact.name, fact.text) for fact in page.facts)
    for title, part in (
        ("Attributes", _table(map(astuple, page.attributes))),
        ("Inputs", _table(map(astuple, page.inputs))),
        ("Outputs", _table(map(astuple, page.outputs))),
        ("Types", _table(types)),
        ("Where the lengths come from", _table((row.given, row.rule) for row in page.lengths)),
        ("Examples", Text("\n".join(calls))),
        ("Behaviour", _table((note.name, note.text) for note in page.behaviour)),
        ("Decisions, where the text is silent or contradicts itself", _table(decisions)),
    ):
        yield from ("", Text(title, style="bold"), part)


def _table(rows: Iterable[Sequence[str]]) -> RenderableType:
    """Rows as columns of text, indented."""
    from rich.table import Table

    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    for name, *texts in rows:
        table.add_row(f"  {name}", *(text.replace("`", "") for text in texts))
    return table if table.row_count else "  none"


@click.command(
    epilog=examples(
        "diff onnx.Split-13 onnx.Split-18", "diff onnx.Split-18 openvino.VariadicSplit-1"
    )
)
@click.argument("before")
@click.argument("after")
@format_option("text", "json")
def diff(before: str, after: str, style: str) -> None:
    """Show what changed between two operator versions, side by side.

    BEFORE and AFTER are identifiers such as onnx.Split-13; a name such as Split is its newest
    version.
    """
    found = compare_records(operator_named(before), operator_named(after))
    if style == "json":
        fields = ("aspect", "name", "before", "after")
        changes = [{name: getattr(change, name) for name in fields} for change in found.changes]
        write_json({"before": found.before.id, "after": found.after.id, "changes": changes})
    elif found.changes:
        show(_comparison(found))
    else:
        write(f"{found.before.id} and {found.after.id}: no differences\n")


def _comparison(found: OperatorDiff) -> Table:
    """A row for each change, in sections."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    table = Table(box=SIMPLE_HEAD, pad_edge=False, header_style="bold")
    table.add_column("")
    table.add_column(found.before.id, ratio=1)
    table.add_column(found.after.id, ratio=1)
    for _, changes in groupby(found.rows, attrgetter("aspect")):
        for change in changes:
            cells = [side or _ABSENT for side in (change.before, change.after)]
            table.add_row(
                f"{change.aspect} {change.name}", *(cell.replace("`", "") for cell in cells)
            )
        table.add_section()
    return table
