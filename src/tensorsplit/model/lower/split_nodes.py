"""Split nodes, and OpenVINO's VariadicSplit, with operands that the target takes."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import onnx_ir as ir

from tensorsplit.core.arithmetic import Number, Numbers, dimension, fed
from tensorsplit.core.dimensions import is_known
from tensorsplit.core.errors import CANNOT_EXPRESS, SplitError
from tensorsplit.core.resolve import Intent, part_sizes
from tensorsplit.core.rules import Chunks, chunk, equal, explicit, remainder
from tensorsplit.model.features import known_lengths
from tensorsplit.model.graph.binding import bind
from tensorsplit.model.graph.calculation import Calculation
from tensorsplit.model.graph.nodes import NodeRef, is_vendor_split
from tensorsplit.model.lower.context import Context, InsertionPoint, graph_of, refusal


def lower_split(context: Context, place: NodeRef, reasons: Mapping[str, str]) -> None:
    """Lower a split node that gives one tensor for each part.

    Args:
        context: The lowering.
        place: The node.
        reasons: Why the target needs it, by feature.

    Raises:
        SplitError: TS513; whatever is wrong with the node itself.
    """
    node = place.node
    intent = bound(context, place)
    data = node.inputs[0]
    assert data is not None  # noqa: S101 - `bind` looked
    axis = known_axis(context, place, intent)
    dim = known_dim(context, data, axis)
    by_index = context.takes_by_index(data)
    point = InsertionPoint(graph_of(node), node)

    def make_parts(make: Calculation) -> list[ir.Value]:
        length = dimension(data, axis) if dim is None else dim
        lengths = sizes_of(context, place, make, intent, length)
        assert not isinstance(lengths, Chunks)  # noqa: S101 - no rule of a node with these outputs
        return make.parts(
            data,
            axis,
            length,
            lengths,
            len(node.outputs),
            checks_sum=context.checks_sum,
            by_index=by_index,
        )

    try:
        made = context.build(point, node.name or node.op_type, make_parts)
        became = _NAMES[str(_type_of(made[0]))]
    except SplitError as error:
        if error.kind is not CANNOT_EXPRESS:
            raise
        held = {} if intent.rule is equal and not is_vendor_split(node) else _attribute(intent)
        if held is None:
            raise refusal(error.problem, place, error.fix) from None
        make_same = partial(_unchecked, place, {"axis": axis, **held})
        made = context.build(point, node.name or node.op_type, make_same)
        became = "Split"
        context.report.note(
            f"{place.path} has no check of its lengths against a dimension that is known only at"
            f" run time, and not every engine refuses those that do not fit: {error.problem}"
        )
    for old, new in zip(node.outputs, made, strict=True):
        if old.name:
            context.stand_in(old, new)
    context.changed(place, became, "; ".join(dict.fromkeys(reasons.values())))
    context.edits.retire(node)


_NAMES = {"Split": "Split with explicit lengths", "Gather": "Gather", "Slice": "Slice"}


def _type_of(made: ir.Value) -> str | None:
    producer = made.producer()
    return None if producer is None else producer.op_type


def _attribute(intent: Intent) -> dict[str, list[int]] | None:
    """Lengths that can be an attribute; None where they depend on the dimension."""
    given = known_lengths(intent)
    if given is None or intent.rule not in (explicit, remainder) or min(given, default=0) < 0:
        return None
    return {"split": list(given)}


def _unchecked(
    place: NodeRef, attributes: Mapping[str, int | list[int]], make: Calculation
) -> list[ir.Value]:
    names = [make.names.fresh(f"{make.stem}_part") for _ in place.node.outputs]
    values = [ir.Value(name=name) for name in names]
    make.op("Split", [place.node.inputs[0]], attributes, values)
    return values


def bound(context: Context, place: NodeRef) -> Intent:
    """What a split node asks for.

    Raises:
        SplitError: TS101 to TS107, TS305, with the node.
    """
    inputs = [context.facts.of(value) for value in place.node.inputs]
    try:
        return bind(place.node, place.opset, inputs, {})
    except SplitError as error:
        raise error.located(node=place.path) from None


def known_axis(context: Context, place: NodeRef, intent: Intent) -> int:
    """The axis, from the front where the rank is known.

    Raises:
        SplitError: TS513 if it is not known, or can't be counted from the front for a target that
            needs it.
    """
    if intent.axis is None:
        raise refusal("the axis is known only at run time", place, "give it as a constant")
    shape = context.tensor(place.node.inputs[0]).shape
    if shape is not None and -len(shape) <= intent.axis < len(shape):
        return intent.axis % len(shape)
    if intent.axis < 0 and not context.takes_negative_axis:
        raise refusal(
            f"the axis is {intent.axis}, and the rank of the data is not known",
            place,
            "declare the shape of the data",
        )
    return intent.axis


def known_dim(context: Context, data: ir.Value, axis: int) -> int | None:
    """The dimension that is split, if it is a number."""
    shape = context.tensor(data).shape
    if shape is None or not -len(shape) <= axis < len(shape):
        return None
    return shape[axis] if is_known(shape[axis]) else None


def sizes_of(
    context: Context, place: NodeRef, make: Calculation, intent: Intent, dim: Number
) -> Numbers | Chunks:
    """What the rule makes of the dimension, and of lengths that may be known at run time only.

    Raises:
        SplitError: TS301 to TS308 for what is known to be wrong.
    """
    given: Numbers | None = known_lengths(intent)
    if given is not None:
        known = part_sizes(intent, dim if is_known(dim) else None)
        if is_known(dim) and not isinstance(known, Chunks):
            return known
    assert intent.rule is not None  # noqa: S101 - checked by the caller
    if given is not None:
        return intent.rule(dim, given)
    names = [entry.name for entry in intent.operator.inputs]
    held = place.node.inputs[names.index(intent.source or "")]
    assert held is not None  # noqa: S101 - the intent says that it gives the lengths
    fact = context.tensor(held)
    integers = make.int64(held, fact.element_type)
    if intent.rule is chunk:
        one = make.op("Reshape", [integers, make.make(1)])
        return intent.rule(dim, (fed(one, dim),))
    outputs = None if intent.operator.is_sequence else len(place.node.outputs)
    return intent.rule(dim, fed(integers, dim, None if fact.shape == (outputs,) else outputs))
