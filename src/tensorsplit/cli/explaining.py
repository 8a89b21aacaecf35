"""``tensorsplit explain``: splits drawn as pictures, of an operator or of a model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from tensorsplit.arrays.arguments import bind_values
from tensorsplit.cli.files import write_files
from tensorsplit.cli.parsing import (
    is_operand,
    is_operator,
    operator_named,
    parse_operands,
    parse_shape,
    unknown_operator,
)
from tensorsplit.cli.screen import examples, say, show, write
from tensorsplit.core.dimensions import Shape
from tensorsplit.core.errors import UNWRITABLE, USAGE, SplitError
from tensorsplit.core.plan import SplitPlan, UncountedPlan
from tensorsplit.core.records import operators
from tensorsplit.core.resolve import Intent
from tensorsplit.core.resolve import plan as plan_intent
from tensorsplit.core.schema import Operator
from tensorsplit.pages.content import RULES
from tensorsplit.pages.layout import printable

_OPERANDS = tuple(dict.fromkeys(name for record in operators.values() for name in record.operands))


@dataclass(frozen=True, slots=True)
class ExplainedSplit:
    """A split to draw.

    Attributes:
        operator: The operator version; only its name where the version is not known.
        given: The operands, as text.
        intent: What is asked for; None if not even that is known.
        plan: What follows; None if it is not known before the model runs.
        note: Why it is not known, or a remark.
        node: The path of the node in a model; empty if there is no model.
    """

    operator: str
    given: str
    intent: Intent | None
    plan: SplitPlan | UncountedPlan | None
    note: str = ""
    node: str = ""


def _operand_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """An option for each operand of any version."""
    for name in reversed(_OPERANDS):
        option = click.option(
            f"--{name.replace('_', '-')}", name, metavar="VALUE", help=f"The operand {name}."
        )
        command = option(command)
    return command


@click.command(
    epilog=examples(
        "explain onnx.Split-18 7,4 axis=0 num_outputs=3",
        "explain Split --opset 13 --shape 7x4 --split 2,5",
        "explain openvino.VariadicSplit-1 N,8 axis=0 split_lengths=-1,2 --svg split.svg",
        "explain model.onnx --svg splits.svg",
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
    """Draw the split of one operator, or every split of a model.

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
        _draw([_explanation(record, _one_shape(record, shapes), written)], svg)
        return
    if not Path(target).exists() and not _looks_like_file(target):
        raise unknown_operator(target)
    if shapes or written or opset is not None:
        raise SplitError(
            USAGE,
            f"{target} is a model, which has its own shapes, operands and opset",
            "give the model alone, or an operator",
            parameter=(written[0][0] if written else "shape" if shapes else "opset"),
        )
    from tensorsplit.cli.explain_model import explanations

    found = explanations(target)
    if not found and svg is None:
        say(f"{target}: no split nodes")
    else:
        _draw(found, svg)


def _looks_like_file(target: str) -> bool:
    return Path(target).suffix in {".onnx", ".xml", ".pb"} or Path(target).name != target


def _one_shape(record: Operator, shapes: Sequence[str]) -> Shape:
    if len(shapes) == 1:
        return parse_shape(shapes[0])
    raise SplitError(
        USAGE,
        f"{' and '.join(shapes)} are given as shape" if shapes else "no shape is given",
        "give one, such as 7,4 or 7x4 or N,4",
        operator=record.id,
        parameter="shape",
    )


def _explanation(
    record: Operator, shape: Shape, written: Sequence[tuple[str, str]]
) -> ExplainedSplit:
    intent = bind_values(record, parse_operands(record, written))
    given = ", ".join(f"{name} = {value}" for name, value in written)
    return ExplainedSplit(record.id, given, intent, plan_intent(intent, shape))


def _draw(explanations: Sequence[ExplainedSplit], svg: Path | None) -> None:
    """Draw splits in the terminal, and into a file; without a plan, say what is known."""
    from rich.text import Text

    from tensorsplit.pages.terminal import Picture

    if svg is not None:
        _write_svg(explanations, svg)
    for number, entry in enumerate(explanations):
        if number:
            write("\n")
        title = "  ".join(filter(None, (entry.node, entry.operator)))
        given = f"  {printable(entry.given)}" if entry.given else ""
        parts = [Text.assemble((printable(title), "bold"), given)]
        rule = entry.intent.rule if entry.intent is not None else None
        if rule is not None:
            parts.append(Text(f"Rule: {RULES[rule]}", style="dim"))
        if entry.note:
            parts.append(Text(printable(entry.note)))
        show(*parts, *([Picture(entry.plan)] if entry.plan is not None else []))


def _write_svg(explanations: Sequence[ExplainedSplit], target: Path) -> None:
    from tensorsplit.pages.svg import sheet

    figures = [
        (entry.node or entry.operator, entry.plan)
        for entry in explanations
        if entry.plan is not None
    ]
    if not figures:
        raise SplitError(
            UNWRITABLE,
            f"{target}: there is no split to draw, as none is known before the model runs",
            "leave out --svg to read what is known",
            parameter="svg",
        )
    write_files({target: sheet(figures)})
