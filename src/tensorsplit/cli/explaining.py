"""``tensorsplit explain``: splits drawn as pictures, of an operator or of a model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tensorsplit.arrays.arguments import bind_values
from tensorsplit.cli.files import FILE_TO_WRITE, PIPE, WritingCommand, read_source, write_files
from tensorsplit.cli.parsing import is_operand, parse_operands, parse_shape
from tensorsplit.cli.screen import examples, note, say, show, write
from tensorsplit.cli.sentences import WORDS, amount, joined, known, tr
from tensorsplit.cli.words import OPERATOR, Word
from tensorsplit.core.dimensions import Shape
from tensorsplit.core.errors import UNKNOWN_OPERATOR, UNWRITABLE, USAGE, SplitError, printable
from tensorsplit.core.records import (
    near_operator,
    operator_named,
    operator_names,
    operators,
    versions_of,
)
from tensorsplit.core.schema import Operator
from tensorsplit.pages.content import RULES
from tensorsplit.pages.explained import ExplainedSplit, split_of_intent, splits_of_model
from tensorsplit.pictures.svg import sheet

if TYPE_CHECKING:
    from rich.console import RenderableType


_OTHER_PICTURES = (".png", ".jpg", ".jpeg", ".gif", ".webp", ".pdf")
_MODELS = (".onnx", ".xml", ".pb")
_OPERANDS = tuple(dict.fromkeys(name for record in operators.values() for name in record.operands))


def _operand_options(command: Callable[..., object]) -> Callable[..., object]:
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
        "explain torch.chunk 7 chunks=3",
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
        data = _one_shape(record, shapes)
        intent = bind_values(record, parse_operands(record, written))
        given = ", ".join(f"{name} = {value}" for name, value in written)
        explained = split_of_intent(intent, data, given)
        if explained.refused is not None:
            raise explained.refused
        _draw([explained], svg)
        return
    path = Path(target)
    is_word = path.name == target != PIPE and path.suffix not in _MODELS
    if is_word and not path.exists():
        near = near_operator(target, operator_names())
        raise SplitError(
            UNKNOWN_OPERATOR,
            tr("{target} is neither an operator nor a model file", target=repr(target)),
            near.rstrip()
            or tr(
                "give one of {names}, a name such as Split, or a model's path",
                names=", ".join(operators),
            ),
            parameter="operator",
        )
    if shapes or written or opset is not None:
        raise SplitError(
            USAGE,
            tr("{target} is a model, which has its own shapes, operands and opset", target=target),
            tr("give the model alone, or an operator"),
            parameter=(written[0][0] if written else "shape" if shapes else "opset"),
        )
    found = splits_of_model(read_source(target).model)
    if not found and svg is None:
        say(f"{target}: {tr('no split nodes')}")
    else:
        _draw(found, svg)


def _one_shape(record: Operator, shapes: Sequence[str]) -> Shape:
    if len(shapes) == 1:
        return parse_shape(shapes[0])
    raise SplitError(
        USAGE,
        tr("{shapes} are given as shape", shapes=joined(shapes))
        if shapes
        else tr("no shape is given"),
        tr("give one, such as 7,4 or 7x4 or N,4; operands are written as axis=0"),
        operator=record.id,
        parameter="shape",
    )


def _draw(explanations: Sequence[ExplainedSplit], svg: Path | None) -> None:
    """Draw splits in the terminal, and into a file; without a plan, say what is known."""
    from rich.text import Text

    from tensorsplit.pages.terminal import Picture

    if svg is not None and svg.suffix.lower() in _OTHER_PICTURES:
        raise click.UsageError(tr("{path} would hold an SVG; give --svg FILE.svg", path=svg))
    if svg is not None:
        _write_svg(explanations, svg)
    for number, entry in enumerate(explanations):
        if number:
            write("\n")
        title = printable("  ".join(filter(None, (entry.node, entry.operator))))
        given = f"  {printable(entry.given)}" if entry.given else ""
        parts: list[RenderableType] = [Text.assemble((title, "bold"), given)]
        if entry.rule is not None:
            rule = tr("Rule: {rule}", rule=known(RULES[entry.rule]))
            parts.append(Text(rule, style="dim"))
        if entry.note:
            parts.append(Text(printable(entry.note)))
        if entry.plan is not None:
            parts.append(Picture(entry.plan, WORDS))
        show(*parts)


def _write_svg(explanations: Sequence[ExplainedSplit], target: Path) -> None:
    figures = [(each.node or each.operator, each.drawn) for each in explanations if each.drawn]
    if not figures:
        raise SplitError(
            UNWRITABLE,
            tr(
                "{target}: there is no split to draw, as none is known before the model runs",
                target=target,
            ),
            tr("leave out --svg to read what is known"),
            parameter="svg",
        )
    write_files({target: sheet(figures)})
    note(f"{target}: {amount(len(figures), 'picture')}")
