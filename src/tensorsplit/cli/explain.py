"""``tensorsplit explain``: a cut, drawn for a person."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import click

from tensorsplit.arrays.arguments import bind_values
from tensorsplit.cli.arguments import is_operand, parse_operands, parse_shape
from tensorsplit.cli.cuts import Cut, draw
from tensorsplit.cli.names import is_operator, operator_named, unknown
from tensorsplit.cli.screen import examples, write
from tensorsplit.core.dimensions import Shape
from tensorsplit.core.errors import USAGE, SplitError
from tensorsplit.core.records import operators
from tensorsplit.core.resolve import plan as plan_intent
from tensorsplit.core.schema import Operator
from tensorsplit.pages.layout import printable

OPERANDS = tuple(dict.fromkeys(name for record in operators.values() for name in record.operands))
"""The operands of every version, each of which is an option."""


def _operand_options(command: Callable[..., Any]) -> Callable[..., Any]:
    for name in reversed(OPERANDS):
        option = click.option(
            f"--{name.replace('_', '-')}", name, metavar="VALUE", help=f"The operand {name}."
        )
        command = option(command)
    return command


@click.command(
    epilog=examples(
        "explain onnx.Split-18 7,4 axis=0 num_outputs=3",
        "explain Split --opset 13 --shape 7x4 --split 2,5",
        "explain openvino.VariadicSplit-1 N,8 axis=0 split_lengths=-1,2 --svg cut.svg",
        "explain model.onnx --svg cuts.svg",
    ),
)
@click.argument("target", metavar="OPERATOR|MODEL")
@click.argument("words", metavar="[SHAPE] [NAME=VALUE]...", nargs=-1)
@click.option("--shape", help="The shape of the data, such as 7,4 or N,4; ? is unknown.")
@_operand_options
@click.option("--opset", type=int, help="The opset, where OPERATOR is a name such as Split.")
@click.option("--svg", type=click.Path(path_type=Path), help="Write the picture to this file too.")
def explain(
    *,
    target: str,
    words: Sequence[str],
    shape: str | None,
    opset: int | None,
    svg: Path | None,
    **options: str | None,
) -> None:
    """Draw a cut, of one operator or of every split of a model.

    Axis, sizes and offsets are drawn in the terminal, and with --svg for a browser. The shape and
    the operands are options, or words: 7,4 or 7x4 is a shape, axis=0 an operand. A number alone
    is a scalar where the operator takes one; [2] is always a list.
    """
    written = [(name, value) for name, value in options.items() if value is not None]
    shapes = [] if shape is None else [shape]
    for word in words:
        if is_operand(word):
            name, _, value = word.partition("=")
            written.append((name, value))
        else:
            shapes.append(word)
    if is_operator(target):
        record = operator_named(target, opset)
        _explain_operator(record, _one_shape(record, shapes), written, svg)
        return
    if not Path(target).exists() and not _looks_like_file(target):
        raise unknown(target)
    if shapes or written or opset is not None:
        raise SplitError(
            USAGE,
            f"{target} is a model, which has its own shapes, operands and opset",
            "give the model alone, or an operator",
            parameter=(written[0][0] if written else "shape" if shapes else "opset"),
        )
    from tensorsplit.cli.explain_model import cuts_of

    cuts = cuts_of(target)
    if not cuts and svg is None:
        write(f"{printable(target)}: no split nodes\n")
    else:
        draw(cuts, svg)


def _looks_like_file(target: str) -> bool:
    return Path(target).suffix in {".onnx", ".xml", ".pb"} or Path(target).name != target


def _one_shape(record: Operator, shapes: Sequence[str]) -> Shape:
    if len(shapes) == 1:
        return parse_shape(shapes[0])
    problem = f"{' and '.join(shapes)} are given as shape" if shapes else "no shape is given"
    raise SplitError(
        USAGE,
        problem,
        "give one, such as 7,4 or 7x4 or N,4",
        operator=record.id,
        parameter="shape",
    )


def _explain_operator(
    record: Operator, shape: Shape, written: Sequence[tuple[str, str]], svg: Path | None
) -> None:
    intent = bind_values(record, parse_operands(record, written))
    plan = plan_intent(intent, shape)
    given = ", ".join(f"{name} = {value}" for name, value in written)
    draw([Cut(record.id, given, intent, plan)], svg)
