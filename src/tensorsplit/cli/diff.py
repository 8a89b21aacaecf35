"""``tensorsplit diff``: what changed between two operator versions."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import groupby

import click

from tensorsplit.cli.names import operator_named
from tensorsplit.cli.screen import examples, show, write
from tensorsplit.core.differences import Change, OperatorDiff
from tensorsplit.core.differences import diff as compare_records

_ABSENT = "-"


@click.command(
    epilog=examples(
        "diff onnx.Split-13 onnx.Split-18",
        "diff onnx.Split-18 openvino.VariadicSplit-1",
    ),
)
@click.argument("before")
@click.argument("after")
@click.option(
    "--format",
    "style",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="How to write it.",
)
def diff(before: str, after: str, style: str) -> None:
    """Tell what changed between two operator versions, side by side.

    BEFORE and AFTER are identifiers such as onnx.Split-13; a name such as Split is its newest
    version.
    """
    found = compare_records(operator_named(before), operator_named(after))
    if style == "json":
        write(_json(found))
    else:
        _print(found)


def _json(found: OperatorDiff) -> str:
    changes = [
        {
            "aspect": change.aspect,
            "name": change.name,
            "before": change.before,
            "after": change.after,
        }
        for change in found.changes
    ]
    told = {"before": found.before.id, "after": found.after.id, "changes": changes}
    return json.dumps(told, indent=2) + "\n"


def _print(found: OperatorDiff) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    if not found.changes:
        write(f"{found.before.id} and {found.after.id}: no differences\n")
        return
    table = Table(box=SIMPLE_HEAD, pad_edge=False, header_style="bold")
    table.add_column("")
    table.add_column(found.before.id, ratio=1)
    table.add_column(found.after.id, ratio=1)
    previous = ""
    for aspect, name, before, after in _rows(found.changes):
        if previous and aspect != previous:
            table.add_section()
        table.add_row(f"{aspect} {name}", before, after)
        previous = aspect
    show(table)


def _rows(changes: tuple[Change, ...]) -> Iterator[tuple[str, str, str, str]]:
    """One row for each change; the element types of one operand share a row."""
    for (aspect, name), group in groupby(
        changes, key=lambda change: (change.aspect, change.subject)
    ):
        several = list(group)
        if aspect != "type":
            (change,) = several
            yield aspect, name, _cell(change.before), _cell(change.after)
            continue
        before = [_element(change) for change in several if change.before]
        after = [_element(change) for change in several if change.after]
        yield "types of", name, _only(before), _only(after)


def _element(change: Change) -> str:
    return change.name.partition(": ")[2]


def _cell(text: str | None) -> str:
    return (text or _ABSENT).replace("`", "")


def _only(elements: list[str]) -> str:
    return f"only here: {', '.join(elements)}" if elements else _ABSENT
