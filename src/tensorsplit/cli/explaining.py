"""``tensorsplit explain``: splits drawn as pictures, of an operator or of a model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tensorsplit.arrays.arguments import bind_values
from tensorsplit.cli.files import (
    FILE_TO_WRITE,
    PIPE,
    WritingCommand,
    read_source,
    write_files,
)
from tensorsplit.cli.parsing import (
    is_operand,
    parse_operands,
    parse_shape,
)
from tensorsplit.cli.screen import examples, say, show, write
from tensorsplit.cli.words import OPERATOR, Word
from tensorsplit.core.dimensions import Shape, show_dim
from tensorsplit.core.errors import (
    UNKNOWN_OPERATOR,
    UNWRITABLE,
    USAGE,
    SplitError,
    count_of,
    printable,
)
from tensorsplit.core.errors import show as shown
from tensorsplit.core.records import operator_named, operators, versions_of
from tensorsplit.core.resolve import Intent
from tensorsplit.core.resolve import plan as plan_intent
from tensorsplit.core.rules import Rule
from tensorsplit.core.schema import Operator
from tensorsplit.pages.content import RULES
from tensorsplit.pages.layout import Plan

if TYPE_CHECKING:
    from rich.console import RenderableType

    from tensorsplit.model.graph.nodes import NodeRef
    from tensorsplit.model.infer.analysis import Facts

_MODELS = (".onnx", ".xml", ".pb")
_MOST_LENGTHS = 12
_OPERANDS = tuple(dict.fromkeys(name for record in operators.values() for name in record.operands))


@dataclass(frozen=True, slots=True)
class ExplainedSplit:
    """A split to draw, as text and as a plan."""

    operator: str  # the version; only the name of the operator where that is not known
    given: str = ""  # the operands
    rule: Rule | None = None
    plan: Plan | None = None  # None if it is not known before the model runs
    note: str = ""  # why it is not known, or a remark
    node: str = ""  # its path in a model


def _operand_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Return an option for each operand of any version."""
    for name in reversed(_OPERANDS):
        option = click.option(
            f"--{name.replace('_', '-')}", name, metavar="VALUE", help=f"The operand {name}."
        )
        command = option(command)
    return command


@click.command(
    cls=WritingCommand,
    epilog=examples(
        "explain onnx.Split-18 7,4 axis=0 num_outputs=3",
        "explain Split --opset 13 --shape 7x4 --split 2,5",
        "explain openvino.VariadicSplit-1 N,8 axis=0 split_lengths=-1,2 --svg split.svg",
        "explain model.onnx --svg splits.svg",
    ),
)
@click.argument(
    "target",
    metavar="OPERATOR|MODEL",
    type=Word("operator", OPERATOR.known, suffix=""),
)
@click.argument("words", metavar="[SHAPE] [NAME=VALUE]...", nargs=-1)
@click.option("--shape", help="The shape of the data, such as 7,4 or N,4; ? is unknown.")
@_operand_options
@click.option("--opset", type=int, help="The opset, where OPERATOR is a name such as Split.")
@click.option("--svg", type=FILE_TO_WRITE, help="Write the picture to this file too.")
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
    written += [word.partition("=")[::2] for word in words if is_operand(word)]
    shapes = [] if shape is None else [shape]
    shapes += [word for word in words if not is_operand(word)]
    if versions_of(target):
        record = operator_named(target, opset)
        intent = bind_values(record, parse_operands(record, written))
        given = ", ".join(f"{name} = {value}" for name, value in written)
        plan = plan_intent(intent, _one_shape(record, shapes))
        _draw([ExplainedSplit(record.id, given, intent.rule, plan)], svg)
        return
    path = Path(target)
    is_word = path.name == target != PIPE and path.suffix not in _MODELS
    if is_word and not path.exists():
        raise SplitError(
            UNKNOWN_OPERATOR,
            f"{target!r} is neither an operator nor a model file",
            f"use one of {', '.join(operators)}, a name such as Split, or the path of a model",
            parameter="operator",
        )
    if shapes or written or opset is not None:
        raise SplitError(
            USAGE,
            f"{target} is a model, which has its own shapes, operands and opset",
            "give the model alone, or an operator",
            parameter=(written[0][0] if written else "shape" if shapes else "opset"),
        )
    found = _splits_of_model(target)
    if not found and svg is None:
        say(f"{target}: no split nodes")
    else:
        _draw(found, svg)


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


def _splits_of_model(path: str) -> list[ExplainedSplit]:
    """Return the split nodes of a model, in order, in bodies and functions too.

    Initializers that are also inputs count with the values that they have. A model that can't be
    read is refused (TS501 to TS504), and a split that is wrong and may run (TS101 to TS308).
    """
    from tensorsplit.model.graph.nodes import is_split, walk
    from tensorsplit.model.infer.analysis import analyse

    model = read_source(path).model
    facts = analyse(model, {}, strict=True)
    return [_split_of(ref, facts) for ref in walk(model) if is_split(ref.node)]


def _split_of(ref: NodeRef, facts: Facts) -> ExplainedSplit:
    node, split = ref.node, facts.split(ref)
    linked = [name for name, attribute in node.attributes.items() if attribute.is_ref()]
    if linked:
        note = f"Not drawn: each call of the function gives {', '.join(linked)}."
        return ExplainedSplit(node.op_type, note=note, node=ref.path)
    if split.errors or split.intent is None:
        note = f"Not drawn: it never runs, and is wrong: {split.errors[0].problem}."
        return ExplainedSplit(node.op_type, note=note, node=ref.path)
    note = f"Not drawn: {split.missing}." if split.missing else ""
    defaults = [
        shown(value.name)
        for value in node.inputs[1:]
        if value is not None and value.is_graph_input() and value.is_initializer()
    ]
    if defaults:
        default = f"With the default of {', '.join(defaults)}, which can be fed otherwise."
        note = f"{default} {note}".strip()
    given = _given(split.intent)
    return ExplainedSplit(
        split.intent.operator.id, given, split.intent.rule, split.plan, note, ref.path
    )


def _given(intent: Intent) -> str:
    """Return the axis and what tells the lengths, as text."""
    axis = "known at run time" if intent.axis is None else show_dim(intent.axis)
    words = [f"{intent.operator.axis} = {axis}"]
    if intent.source is None:
        if intent.outputs and not intent.operator.is_sequence:
            words.append(count_of(intent.outputs, "output"))
    elif intent.given is None:
        words.append(f"{intent.source} known at run time")
    else:
        first = ", ".join(map(show_dim, intent.given[:_MOST_LENGTHS]))
        more = ", ..." if len(intent.given) > _MOST_LENGTHS else ""
        words.append(f"{intent.source} = {first}{more}")
    return ", ".join(words)


def _draw(explanations: Sequence[ExplainedSplit], svg: Path | None) -> None:
    """Draw splits in the terminal, and into a file; without a plan, say what is known."""
    from rich.text import Text

    from tensorsplit.pages.terminal import Picture

    if svg is not None:
        _write_svg(explanations, svg)
    for number, entry in enumerate(explanations):
        if number:
            write("\n")
        title = printable("  ".join(filter(None, (entry.node, entry.operator))))
        given = f"  {printable(entry.given)}" if entry.given else ""
        parts: list[RenderableType] = [Text.assemble((title, "bold"), given)]
        if entry.rule is not None:
            parts.append(Text(f"Rule: {RULES[entry.rule]}", style="dim"))
        if entry.note:
            parts.append(Text(printable(entry.note)))
        if entry.plan is not None:
            parts.append(Picture(entry.plan))
        show(*parts)


def _write_svg(explanations: Sequence[ExplainedSplit], target: Path) -> None:
    from tensorsplit.pages.svg import sheet

    figures = [(each.node or each.operator, each.plan) for each in explanations if each.plan]
    if not figures:
        raise SplitError(
            UNWRITABLE,
            f"{target}: there is no split to draw, as none is known before the model runs",
            "leave out --svg to read what is known",
            parameter="svg",
        )
    write_files({target: sheet(figures)})
