"""Split nodes as Slice nodes with calculated bounds, where Split itself takes attributes only."""

from __future__ import annotations

from collections.abc import Iterator

import onnx_ir as ir

from tensorsplit.core.errors import CANNOT_EXPRESS, SplitError
from tensorsplit.core.resolve import Intent
from tensorsplit.core.rules import ceil, explicit
from tensorsplit.core.schema import Operator
from tensorsplit.model.convert.conversion import Conversion
from tensorsplit.model.convert.lengths import axis_value, ceil_size, dimension, zero_if
from tensorsplit.model.graph.building import Builder
from tensorsplit.model.graph.nodes import NodeRef

FIRST_OPSET = 10
"""From here on Slice takes its bounds as inputs."""

_LAST_OPSET = 12


def can_replace(intent: Intent, target: Operator) -> bool:
    """Whether Slice nodes can say what a version of Split can't."""
    source = None if intent.source is None else intent.operator.input(intent.source)
    holds_integers = source is None or source.type_str != intent.operator.inputs[0].type_str
    return (
        not target.is_sequence
        and any(lengths.spelling == "attribute" for lengths in target.lengths)
        and target.since_version <= _LAST_OPSET
        and intent.rule in (explicit, ceil)
        and holds_integers
    )


def replace_by_slices(site: NodeRef, change: Conversion, intent: Intent) -> None:
    """Put a Slice node in the place of each output of a Split node.

    What the Split node would refuse at run time, the new nodes refuse too.

    Raises:
        SplitError: TS310 before opset 10, where bounds are attributes.
    """
    if change.target < FIRST_OPSET:
        raise SplitError(
            CANNOT_EXPRESS,
            f"opset {change.target} can't say this: the lengths are known only at run time, and"
            " Split takes them as attribute; Slice, too, takes its bounds as attributes before"
            f" opset {FIRST_OPSET}",
            f"convert to opset {FIRST_OPSET} or newer, or give the lengths as a constant",
            operator=intent.operator.id,
            parameter=intent.source,
        )
    builder = change.builder(site, change.target)
    axis = axis_value(site, builder)
    dim = dimension(site, builder, axis)
    count = len(site.node.outputs)
    if intent.rule is ceil:
        bounds = _ceil_bounds(builder, dim, count)
    else:
        split = site.node.inputs[1]
        assert split is not None  # noqa: S101 - the rule says that it is given
        bounds = _explicit_bounds(builder, dim, split, count)
    outputs: list[ir.Value | None] = []
    for old, (start, end) in zip(site.node.outputs, bounds, strict=True):
        if not old.name:
            outputs.append(None)
            continue
        outputs.append(builder.op("Slice", [site.node.inputs[0], start, end, axis]))
    change.replace(site, builder, outputs)


def _explicit_bounds(
    builder: Builder, dim: ir.Value, split: ir.Value, count: int
) -> Iterator[tuple[ir.Value, ir.Value]]:
    """Sums of the lengths; they are as many as the outputs, in [0, d], and sum to d."""
    outside = builder.op(
        "Or",
        [
            builder.op("Less", [split, builder.constant([0])]),
            builder.op("Greater", [split, dim]),
        ],
    )
    marked = builder.op("Cast", [outside], {"to": ir.DataType.INT64.value})
    total = builder.op("ReduceSum", [split], {"keepdims": 1, "axes": [0]})
    missing = builder.op("Abs", [builder.op("Sub", [total, dim])])
    counted = builder.op("Sub", [builder.op("Shape", [split]), builder.constant([count])])
    wrong = builder.op("ReduceSum", [marked], {"keepdims": 1, "axes": [0]})
    for excess in (missing, builder.op("Abs", [counted])):
        wrong = builder.op("Add", [wrong, excess])
    start = zero_if(builder, wrong)
    for index in range(count):
        position = builder.constant([index])
        length = builder.op("Gather", [split, position], {"axis": 0})
        end = builder.op("Add", [start, length])
        yield start, end
        start = end


def _ceil_bounds(
    builder: Builder, dim: ir.Value, count: int
) -> Iterator[tuple[ir.Value, ir.Value]]:
    """Multiples of the dimension divided by the count and rounded up; the last part is >= 0."""
    size = ceil_size(builder, dim, count)
    before_last = builder.op("Mul", [size, builder.constant([count - 1])])
    over = builder.op("Sub", [before_last, dim])
    start = zero_if(builder, builder.op("Add", [builder.op("Abs", [over]), over]))
    for _ in range(count - 1):
        end = builder.op("Add", [start, size])
        yield start, end
        start = end
    yield start, dim
