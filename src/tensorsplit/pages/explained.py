"""Explanations of splits: of one operator, or of each split node of a model."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, SupportsIndex, cast

from tensorsplit.arrays.arguments import bind_values
from tensorsplit.arrays.typed import DialectOperand, GivenShape, Lengths
from tensorsplit.core.dimensions import Dim, Shape, as_shape, is_known, show_dim
from tensorsplit.core.errors import SplitError, count_of, show
from tensorsplit.core.extras import needs
from tensorsplit.core.given import as_string, is_a
from tensorsplit.core.records import operator_named, versions_of
from tensorsplit.core.resolve import Intent, part_sizes
from tensorsplit.core.resolve import plan as plan_intent
from tensorsplit.core.rules import LengthRule, explicit, remainder
from tensorsplit.core.schema import Operator
from tensorsplit.pictures.layout import Plan, heading
from tensorsplit.pictures.refused import RefusedSplit
from tensorsplit.pictures.svg import sheet

if TYPE_CHECKING:
    import onnx
    import onnx_ir

    from tensorsplit.model.graph.nodes import NodeRef
    from tensorsplit.model.infer.analysis import Facts

_MOST_LENGTHS = 12
_MOST_REQUESTED = 1000


@dataclass(frozen=True, slots=True)
class ExplainedSplit:
    """A split to draw, as text and as a plan."""

    operator: str  # the version; only the name of the operator where that is not known
    given: str = ""  # the operands
    rule: LengthRule | None = None
    plan: Plan | None = None  # None if it is not known before the model runs
    note: str = ""  # why it is not known, or a remark
    node: str = ""  # its path in a model
    refused: SplitError | None = None
    drawn: Plan | RefusedSplit | None = None  # what a picture shows


@dataclass(frozen=True, slots=True)
class ExplainedSplits:
    """What `explain` returns: notebooks show it as a picture.

    Attributes:
        splits: One entry for each split: its `operator`, `given`, `plan`, `note` and `node`, and
            `refused`, the error of a split that is refused.
    """

    splits: tuple[ExplainedSplit, ...]

    def __repr__(self) -> str:
        return "\n".join(map(_line, self.splits)) or "no splits"

    def _repr_svg_(self) -> str | None:
        """Return the picture of the splits; None where there is nothing to draw."""
        figures = [(each.node or each.operator, each.drawn) for each in self.splits if each.drawn]
        return sheet(figures) if figures else None


def explain(
    operator: str | os.PathLike[str] | Operator | onnx.ModelProto | onnx_ir.Model,
    shape: GivenShape | None = None,
    split: Lengths | SupportsIndex | None = None,
    *,
    num_outputs: SupportsIndex | None = None,
    opset: SupportsIndex | None = None,
    **operands: DialectOperand,
) -> ExplainedSplits:
    """Explain a split, or each split of a model: as text, and as a picture in a notebook.

    Args:
        operator: An operator as in `plan`, or a model: its path, ``onnx.ModelProto`` or
            ``onnx_ir.Model``.
        shape: The shape of the data; only for an operator.
        split: The lengths, for operators with an operand of this name.
        num_outputs: The attribute, or in a Split without it how many outputs the node has.
        opset: The opset at which a name is looked up; the newest if None.
        **operands: The other operands, by the standard's names.

    Returns:
        The splits. A split that is refused is among them, with the error as `refused`; its picture
        shows in red what does not fit.

    Raises:
        SplitError: TS101 to TS107 for operands that the operator does not take; TS205 if `shape`
            is not one; TS501 to TS504 for a model that can't be read, TS101 to TS308 for a wrong
            split in it, TS711 without the extra ``models``.

    Example:
        >>> ts.explain("onnx.Split-18", (7, 4), num_outputs=3)
        onnx.Split-18: axis 0 (7) of (7, 4): 3 parts
        >>> ts.explain("onnx.Split-18", (5,), num_outputs=4).splits[0].refused.code
        'TS304'
    """
    if shape is None and not _is_operator(operator):
        with needs("models"):
            from tensorsplit.model.reading import read_model

        read = read_model(operator, without_weights=True)  # type: ignore[arg-type]  # as above
        return ExplainedSplits(tuple(splits_of_model(read.model)))
    record = operator_named(operator, opset)  # type: ignore[arg-type]  # it refuses all but a name
    intent = bind_values(record, {"split": split, "num_outputs": num_outputs, **operands})
    try:
        checked = as_shape(() if shape is None else shape)
    except SplitError as error:
        raise error.located(operator=record.id) from None
    return ExplainedSplits((split_of_intent(intent, checked, _given(intent)),))


def _is_operator(operator: object) -> bool:
    name = as_string(operator)
    return is_a(operator, Operator) or (name is not None and bool(versions_of(name)))


def _line(split: ExplainedSplit) -> str:
    """Return a split in one line."""
    name = f"{split.node}: {split.operator}" if split.node else split.operator
    if split.refused is not None:
        return str(split.refused)
    return f"{name}: {heading(split.plan) if split.plan is not None else split.note}"


def split_of_intent(intent: Intent, shape: Shape, given: str) -> ExplainedSplit:
    """Explain the split of one operator; a refusal is part of what is returned."""
    operator = intent.operator.id
    try:
        plan = plan_intent(intent, shape)
    except SplitError as error:
        return ExplainedSplit(
            operator, given, intent.rule, refused=error, drawn=_refused(intent, shape, error)
        )
    return ExplainedSplit(operator, given, intent.rule, plan, drawn=plan)


def _refused(intent: Intent, shape: Shape, refusal: SplitError) -> RefusedSplit | None:
    """Return a refused split to draw; None where its axis is not a number."""
    axis = intent.axis
    if axis is None or not -len(shape) <= axis < len(shape):
        return None
    axis %= len(shape)
    dim = shape[axis]
    if not is_known(dim):
        return None
    sizes = _requested(intent, dim)
    return RefusedSplit(intent.operator.id, shape, axis, dim, sizes, refusal)


def _requested(intent: Intent, dim: int) -> tuple[int, ...]:
    """Return the lengths that a refused split asks for; none where a count gives no lengths.

    Those of a count are what its rule makes of a dimension that is a name.
    """
    if intent.given is None or intent.rule in (explicit, remainder):
        return intent.given or ()
    try:
        made = part_sizes(intent, "d")
    except SplitError:
        return ()
    if not isinstance(made, tuple) or len(made) > _MOST_REQUESTED:
        return ()
    return tuple(_evaluated(size, dim) for size in made)


def _evaluated(size: Dim, dim: int) -> int:
    if is_known(size):
        return size
    return int(str(cast("onnx_ir.SymbolicDim", size).evaluate({"d": dim})))


def splits_of_model(model: onnx_ir.Model) -> list[ExplainedSplit]:
    """Return the split nodes of a model, in order, in bodies and functions too.

    Initializers that are also inputs count with the values that they have. A split that is wrong
    and may run is refused (TS101 to TS308).
    """
    from tensorsplit.model.graph.nodes import walk
    from tensorsplit.model.graph.split_records import is_split
    from tensorsplit.model.infer.analysis import analyse

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
        show(value.name)
        for value in node.inputs[1:]
        if value is not None and value.is_graph_input() and value.is_initializer()
    ]
    if defaults:
        default = f"With the default of {', '.join(defaults)}, which can be fed otherwise."
        note = f"{default} {note}".strip()
    given = _given(split.intent)
    return ExplainedSplit(
        split.intent.operator.id,
        given,
        split.intent.rule,
        split.plan,
        note,
        ref.path,
        drawn=split.plan,
    )


def _given(intent: Intent) -> str:
    """Return the axis and the operand that gives the lengths, as text."""
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
