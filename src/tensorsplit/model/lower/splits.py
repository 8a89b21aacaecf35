"""Split nodes, and OpenVINO's VariadicSplit, with operands that the target takes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import onnx_ir as ir

from tensorsplit.core.dimensions import is_known
from tensorsplit.core.errors import SplitError
from tensorsplit.core.resolve import Intent, part_sizes
from tensorsplit.core.rules import Chunks, ceil, equal, explicit, remainder
from tensorsplit.model.features import known_lengths
from tensorsplit.model.graph.binding import bind
from tensorsplit.model.graph.nodes import NodeRef, is_vendor_split
from tensorsplit.model.lower.arithmetic import Arithmetic, Number
from tensorsplit.model.lower.context import Context, Home, refusal
from tensorsplit.model.lower.cuts import split


@dataclass(frozen=True)
class _Job:
    """A node to lower.

    Attributes:
        context: The lowering.
        place: The node.
        intent: What it asks for.
        data: The tensor to cut.
        axis: The axis, from the front where the rank is known.
        dim: The dimension, if it is a number.
    """

    context: Context
    place: NodeRef
    intent: Intent
    data: ir.Value
    axis: int
    dim: int | None


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
    intent = _intent(context, place)
    data = node.inputs[0]
    axis = _axis(context, place, intent)
    dim = _dim(context, data, axis)
    assert data is not None  # noqa: S101 - `_intent` looked
    job = _Job(context, place, intent, data, axis, dim)
    home = Home(_graph(place), node)
    stem = node.name or node.op_type
    if context.takes_by_index(data):
        made = context.build(home, stem, lambda make: _by_index(make, job))
        became = "Gather"
    else:
        made = context.build(home, stem, lambda make: _split(make, job))
        became = "Split with explicit lengths" if "negative_axis" not in reasons else "Split"
    for old, new in zip(node.outputs, made, strict=True):
        if old.name:
            context.stand_in(old, new)
    context.changed(place, became, "; ".join(dict.fromkeys(reasons.values())))
    context.edits.retire(node)


def _intent(context: Context, place: NodeRef) -> Intent:
    node = place.node
    inputs = [context.facts.of(value) for value in node.inputs]
    try:
        return bind(node, place.opset, inputs, {})
    except SplitError as error:
        raise error.located(node=place.path) from None


def _axis(context: Context, place: NodeRef, intent: Intent) -> int:
    if intent.axis is None:
        raise refusal("the axis is known only at run time", place, "give it as a constant")
    data = place.node.inputs[0]
    shape = None if data is None else context.tensor(data).shape
    if shape is not None and -len(shape) <= intent.axis < len(shape):
        return intent.axis % len(shape)
    forbidden = any(entry.feature == "negative_axis" for entry in context.profile.entries)
    if intent.axis < 0 and forbidden:
        raise refusal(
            f"the axis is {intent.axis}, and the rank of the data is not known",
            place,
            "declare the shape of the data",
        )
    return intent.axis


def _dim(context: Context, data: ir.Value | None, axis: int) -> int | None:
    shape = None if data is None else context.tensor(data).shape
    if shape is None or not -len(shape) <= axis < len(shape):
        return None
    return shape[axis] if is_known(shape[axis]) else None


def _sizes(intent: Intent, dim: int | None) -> tuple[int, ...] | None:
    """The lengths, where they are numbers."""
    if known_lengths(intent) is None:
        return None
    sizes = part_sizes(intent, dim)
    if isinstance(sizes, Chunks) or not all(map(is_known, sizes)):
        return None
    return sizes


def _split(make: Arithmetic, job: _Job) -> list[ir.Value]:
    data, axis, place = job.data, job.axis, job.place
    sizes = _sizes(job.intent, job.dim)
    if sizes is not None:
        return split(make, data, axis, list(sizes))
    values = [ir.Value(name=make.names.fresh(f"{make.stem}_part")) for _ in place.node.outputs]
    if make.opset >= 13:
        lengths = _lengths(make, job)
        make.op("Split", [data, lengths], {"axis": axis}, values)
        return values
    if job.intent.rule is equal and not is_vendor_split(place.node):
        job.context.report.note(
            f"{place.path} keeps its equal parts without lengths: at opset {make.opset} the"
            " lengths are an attribute, and the dimension is not known"
        )
        make.op("Split", [data], {"axis": axis}, values)
        return values
    raise refusal(
        f"at opset {make.opset} the lengths are an attribute, but they are known only at run time",
        place,
        "convert the model to opset 13 first",
    )


def _lengths(make: Arithmetic, job: _Job) -> ir.Value:
    """The lengths, computed where the model runs."""
    node, given, rule = job.place.node, known_lengths(job.intent), job.intent.rule
    if rule is explicit:
        lengths = node.inputs[1]
        assert lengths is not None  # noqa: S101 - the rule says so
        if job.context.tensor(lengths).shape in (None, (None,)):
            return make.op("Reshape", [lengths, make.numbers([len(node.outputs)])])
        return lengths
    length = make.dimension(job.data, job.axis)
    if given is not None and rule in _COMPUTED:
        return _COMPUTED[rule](make, length, given)
    source = node.inputs[-1]
    if rule is not remainder or source is None:
        raise refusal("the lengths are known only at run time", job.place)
    return _runtime_remainder(make, job.context, length, source)


def _ceil(make: Arithmetic, length: ir.Value, given: tuple[int, ...]) -> ir.Value:
    """Parts of the length rounded up, and what is left; a negative rest is made 0 (D1)."""
    (count,) = given
    if count == 1:
        return length
    size = make.divide_up(length, count)
    rest = make.subtract(length, make.multiply(size, count - 1))
    last = make.not_below_zero(make.tensor(rest))
    return make.listed([*[size] * (count - 1), last])


def _equal(make: Arithmetic, length: ir.Value, given: tuple[int, ...]) -> ir.Value:
    """The length divided; if there is a rest, the lengths do not add up and the engine refuses."""
    (count,) = given
    if count == 1:
        return length
    size = make.op("Div", [length, make.numbers([count])])
    return make.listed([size] * count)


def _remainder(make: Arithmetic, length: ir.Value, given: tuple[int, ...]) -> ir.Value:
    """What the other lengths leave; if it is negative it is made 0, and the engine refuses."""
    rest = make.subtract(length, sum(size for size in given if size != -1))
    left = make.not_below_zero(make.tensor(rest))
    numbers: list[Number] = [left if size == -1 else size for size in given]
    return make.listed(numbers)


_COMPUTED = {ceil: _ceil, equal: _equal, remainder: _remainder}


def _runtime_remainder(
    make: Arithmetic, context: Context, length: ir.Value, source: ir.Value
) -> ir.Value:
    lengths = source
    if context.tensor(source).element_type != ir.DataType.INT64:
        lengths = make.op("Cast", [source], {"to": int(ir.DataType.INT64)})
    open_one = make.op("Equal", [lengths, make.numbers([-1])])
    rest = make.subtract(length, make.add(make.total(lengths), 1))
    return make.not_below_zero(make.op("Where", [open_one, make.tensor(rest), lengths]))


def _by_index(make: Arithmetic, job: _Job) -> list[ir.Value]:
    """The parts, element by element, for types that the engine can't split."""
    node, data, axis = job.place.node, job.data, job.axis
    sizes = _sizes(job.intent, job.dim)
    ends: list[Number] = []
    if sizes is not None:
        running = 0
        for size in sizes:
            ends.append(running := running + size)
    else:
        if make.opset < 13:
            raise refusal(
                "the lengths are known only at run time", job.place, "convert to opset 13"
            )
        dimension = make.dimension(data, axis)
        lengths = make.sure_lengths(_lengths(make, job), dimension)
        reach = make.op("CumSum", [lengths, make.constant(0)])
        ends += [make.pick(reach, index) for index in range(len(node.outputs))]
    starts: list[Number] = [0, *ends[:-1]]
    return [
        make.slice(data, start, end, axis, by_index=True)
        for start, end in zip(starts, ends, strict=True)
    ]


def _graph(place: NodeRef) -> ir.Graph:
    assert isinstance(place.node.graph, ir.Graph)  # noqa: S101 - functions were inlined
    return place.node.graph
