"""Adapters for operators that older opsets lack: the nodes that replace them."""

from __future__ import annotations

from itertools import accumulate
from math import prod

import numpy as np
import onnx_ir as ir

from tensorsplit.core.arithmetic import Number, maximum, value
from tensorsplit.core.dimensions import are_known, is_known
from tensorsplit.model.convert.adapter_kinds import table
from tensorsplit.model.convert.conversion import NodeConversion
from tensorsplit.model.convert.definitions import replace_by_definition
from tensorsplit.model.convert.einsum import einsum_down
from tensorsplit.model.graph.calculation import TO_THE_END, Calculation, few_numbers
from tensorsplit.model.graph.facts import SequenceFact

_MOST_ADDED = 64
"""So many parts, and no more, are added up by a node for each."""

_FIRST_ROUNDED = 1 << 24
"""Smaller whole numbers are exact as float."""

_MOST_MASKED = 1 << 16
"""A mask of so many elements, and no more, is a constant."""

_DIVIDED = (ir.DataType.INT32, ir.DataType.INT64, ir.DataType.UINT32, ir.DataType.UINT64)
"""The integers that Div takes at opset 9."""


def _constant_of_shape_down(node: NodeConversion) -> None:
    """Replace ConstantOfShape by one element, expanded to the shape."""
    value = node.take("value")
    array = np.zeros(1, np.float32) if value is None else value.numpy()
    if array.size != 1:
        raise node.refusal(f"its value has {array.size} elements")
    element = node.make.constant(array.reshape(()), array.dtype)
    node.replace(node.make.op("Expand", [element, node.input(0)]))


def _expand_down(node: NodeConversion) -> None:
    """Repeat the data along axes, where their lengths are known."""
    shape, wanted, make = node.shape(), node.known(1), node.make
    if shape is None or not are_known(shape) or wanted is None:
        lengths = "the lengths of the data and of what it is expanded to are not known"
        raise node.refusal(f"there is no Expand at opset {node.opset}, and {lengths}")
    ends = np.broadcast_shapes(shape, tuple(wanted.tolist()))
    if ends == shape:
        node.replace(make.op("Identity", [node.given(0)]))
        return
    held = [1] * (len(ends) - len(shape)) + list(shape)
    counts = [end // size if size else 1 for end, size in zip(ends, held, strict=True)]
    data = make.op("Reshape", [node.given(0), make.constant(held)])
    node.replace(make.op("Tile", [data, make.constant(counts)]))


def _cum_sum_down(node: NodeConversion) -> None:
    """Add up the parts of a short axis one by one, and those of others in a Scan."""
    axis, count = _axis_of_sums(node)
    if node.attribute("exclusive") or not is_known(count) or count > _MOST_ADDED:
        _scan_sums(node, axis)
        return
    make, data = node.make, node.given(0)
    if count < 2:
        node.replace(make.op("Identity", [data]))
        return
    way = -1 if node.attribute("reverse") else 1
    lengths = {"axis": axis, "split": [1] * count}
    parts = make.ops("Split", [data], lengths, ["part"] * count)
    sums = list(accumulate(parts[::way], lambda left, right: make.op("Add", [left, right])))
    node.replace(make.op("Concat", sums[::way], {"axis": axis}))


def _axis_of_sums(node: NodeConversion) -> tuple[int, Number]:
    """Return the axis of a CumSum, counted from the front, and its length."""
    axis = node.known(1)
    if axis is None:
        raise node.refusal(
            f"there is no CumSum at opset {node.opset}, and its axis is known only at run time",
            "make it a constant",
        )
    rank = node.needed_rank()
    found = int(axis.item()) % max(rank, 1)
    return found, node.length(found)


def _scan_sums(node: NodeConversion, axis: int) -> None:
    """Add up the parts of an axis in a Scan, which has no batch from opset 9 on.

    There is a part of zeros more, and the axis is moved to the front: onnxruntime 1.32.0 refuses to
    scan no parts, and dies of another axis where there are no elements.
    """
    node.need_numbering()
    make, kind, rank = node.make, node.needed_dtype(), node.needed_rank()
    is_back, is_exclusive = (bool(node.attribute(name)) for name in ("reverse", "exclusive"))
    zeros = _zeros_of_a_part(node, axis, kind)
    parts = [make.unsqueeze(zeros, [0]), make.moved(node.given(0), rank, axis, 0)]
    attributes = {"body": _adding(make, kind, rank - 1), "num_scan_inputs": 1}
    if is_back:
        attributes |= {f"scan_{end}_directions": [1] for end in ("input", "output")}
        parts.reverse()
    _, sums = make.ops("Scan", [zeros, make.concat(parts, 0)], attributes, ("last", "sums"))
    limits = (1, TO_THE_END) if is_back == is_exclusive else (0, -1)
    node.replace(make.moved(make.slice(sums, *limits, 0), rank, 0, axis))


def _adding(make: Calculation, kind: ir.DataType, rank: int) -> ir.Graph:
    """Return the body of a Scan that gives the sum of each part and those before it.

    It declares their rank, which onnxruntime 1.32.0 has to know.
    """
    inner = make.inner()
    before, part = make.new("before", kind), make.new("part", kind)
    total = inner.op("Add", [before, part])
    row = inner.op("Identity", [total])
    for each in (total, row):
        each.type, each.shape = ir.TensorType(kind), ir.Shape([None] * rank)
    name = make.names.fresh(f"{make.stem}_body")
    return ir.Graph([before, part], [total, row], nodes=inner.nodes, name=name)


def _zeros_of_a_part(node: NodeConversion, axis: int, kind: ir.DataType) -> ir.Value:
    """Return zeros of the shape of the data without an axis."""
    make, rank = node.make, node.needed_rank()
    others = [each for each in range(rank) if each != axis]
    dims = [node.length(each) for each in others]
    if are_known(dims):
        return make.filled(list(dims), kind)
    shape = make.op("Gather", [make.op("Shape", [node.given(0)]), make.make(tuple(others))])
    zero = ir.tensor(np.zeros(1, kind.numpy()), dtype=kind)
    return make.op("ConstantOfShape", [shape], {"value": zero})


def _gather_elements_down(node: NodeConversion) -> None:
    """Take the elements of a list by their places in it; an index out of range has none."""
    node.need_numbering()
    make, data, rank = node.make, node.given(0), node.needed_rank()
    axis = node.attribute("axis", 0) % max(rank, 1)
    size = node.length(axis)
    index = make.int64(node.given(1), node.dtype(1))
    is_below = make.op("Less", [index, make.make(0)])
    counted = make.op("Where", [is_below, make.op("Add", [index, make.make(size)]), index])
    is_inside = make.op(
        "And",
        [make.op("Less", [make.make(-1), counted]), make.op("Less", [counted, make.make(size)])],
    )
    places = make.op("Mul", [counted, make.make(_stride(node, axis))])
    for other in range(rank):
        if other != axis:
            numbers = value(make.range(0, node.length(other, 1))) * _stride(node, other)
            others = [each for each in range(rank) if each != other]
            places = make.op("Add", [places, make.unsqueeze(make.make(numbers), others)])
    nowhere = make.make(np.iinfo(np.int64).max)
    inside = make.op("Where", [is_inside, places, nowhere])
    node.replace(make.op("Gather", [make.elements(data), inside]))


def _stride(node: NodeConversion, axis: int) -> Number:
    """Return how many elements of the data lie between neighbours on an axis."""
    return prod((node.length(each) for each in range(axis + 1, node.needed_rank())), start=1)


def _trilu_down(node: NodeConversion) -> None:
    """Choose between the elements and zero by a mask."""
    make, kind, data = node.make, node.needed_dtype(), node.given(0)
    mask = _triangle(node)
    if kind == ir.DataType.BOOL:
        node.replace(make.op("And", [data, mask]))
    else:
        node.replace(make.op("Where", [mask, data, make.filled([], kind)]))


def _triangle(node: NodeConversion) -> ir.Value:
    """Return where the elements of a triangle lie, in the last two axes."""
    make, is_upper = node.make, bool(node.attribute("upper", 1))
    rank, diagonal = node.needed_rank(), node.known(1)
    sizes = [node.length(axis) for axis in (rank - 2, rank - 1)]
    far = 0 if node.input(1) is None else None if diagonal is None else int(diagonal.item())
    if far is not None and are_known(sizes) and sizes[0] * sizes[1] <= _MOST_MASKED:
        row, column = np.ogrid[: sizes[0], : sizes[1]]
        inside = column - row >= far if is_upper else column - row <= far
        return make.constant(inside, np.bool_)
    node.need_numbering()
    rows, columns = (make.range(0, size) for size in sizes)
    distances = make.op("Sub", [make.unsqueeze(columns, [0]), make.unsqueeze(rows, [1])])
    limit = make.number(node.given(1), node.dtype(1)) if far is None else far
    pair = [distances, make.make(limit)]
    return make.op("Not", [make.op("Less", pair if is_upper else pair[::-1])])


def _range_down(node: NodeConversion) -> None:
    """Number the elements of a tensor of ones instead; only where these are whole numbers."""
    kind, step, make = node.needed_dtype(), node.known(2), node.make
    if kind in (ir.DataType.FLOAT, ir.DataType.DOUBLE):
        _range_of_floats(node, kind)
        return
    by = int(step.item()) if step is not None and step.size == 1 else 0
    if kind not in (ir.DataType.INT32, ir.DataType.INT64) or by == 0:
        raise node.refusal(
            f"there is no Range at opset {node.opset}, and only a range of int32 or int64 with a"
            " constant step can be written otherwise"
        )
    start, end = (_number(node, index) for index in (0, 1))
    if few_numbers(start, end, by) is None:
        node.need_numbering()
    numbers = make.range(start, end, by)
    is_long = kind == ir.DataType.INT64
    node.replace(numbers if is_long else make.op("Cast", [numbers], {"to": int(kind)}))


def _number(node: NodeConversion, index: int) -> Number:
    """Return the integer that an input holds."""
    known = node.known(index)
    return node.make.number(node.given(index), node.dtype(index)) if known is None else int(known)


def _range_of_floats(node: NodeConversion, kind: ir.DataType) -> None:
    """Count up or down by 1 from a whole number, to a limit that need not be whole."""
    make, (start, end, step) = node.make, map(node.known, range(3))
    is_whole = start is not None and start % 1 == 0 and abs(start) < _FIRST_ROUNDED
    if start is None or step is None or not is_whole or abs(step) != 1:
        raise node.refusal(
            f"there is no Range at opset {node.opset}, and only a range of floats that goes by 1"
            " or -1 from a constant whole number can be written otherwise"
        )
    way, first = int(step.item()), int(start.item())
    count: Number
    if end is not None and np.isfinite(end):
        count = int(np.ceil((end - start) * way))
    else:
        pair = [node.given(1), make.constant(first, kind.numpy())][::way]
        rounded = make.op("Ceil", [make.op("Sub", pair)])
        count = maximum(make.number(rounded, kind), 0)
    if few_numbers(0, count, 1) is None:
        node.need_numbering()
    numbers = value(make.range(0, count)) * way + first
    node.replace(make.op("Cast", [make.make(numbers)], {"to": int(kind)}))


def _mod_down(node: NodeConversion) -> None:
    """Write the remainder of a division, of integers only: that of floats is not exact so."""
    kind, left, right, make = node.needed_dtype(), node.input(0), node.input(1), node.make
    if kind not in _DIVIDED:
        raise node.refusal(
            f"there is no Mod at opset {node.opset}, and only one of"
            f" {', '.join(each.name.lower() for each in _DIVIDED)} can be written otherwise"
        )
    rest = make.op("Sub", [left, make.op("Mul", [_quotient(node, kind), right])])
    if not node.attribute("fmod", 0) and kind.is_signed():
        node.need_numbering()
        zero = make.constant(0, kind.numpy())
        has_other_sign = make.op("Xor", [make.op("Less", [each, zero]) for each in (rest, right)])
        is_some = make.op("Not", [make.op("Equal", [rest, zero])])
        turns = make.op("And", [has_other_sign, is_some])
        rest = make.op("Where", [turns, make.op("Add", [rest, right]), rest])
    node.replace(rest)


def _quotient(node: NodeConversion, kind: ir.DataType) -> ir.Value:
    """Return the quotient of two integers; onnxruntime takes a product with 1 / x for one by x."""
    make, left, right = node.make, node.known(0), node.given(1)
    if left is None or not (left == 1).all() or not kind.is_signed():
        return make.op("Div", [node.given(0), right])
    return make.op("Neg", [make.op("Div", [make.constant(-left, kind.numpy()), right])])


def _round_down(node: NodeConversion) -> None:
    """Round down, and one up from above a half, or from a half if what is below it is odd.

    What is left after rounding is exact; infinity leaves no number, of which nothing is less.
    """
    node.need_numbering()
    make, data, kind = node.make, node.given(0), node.needed_dtype().numpy()
    half, one, two = (make.constant(number, kind) for number in (0.5, 1, 2))
    below = make.op("Floor", [data])
    rest = make.op("Sub", [data, below])
    pairs = make.op("Mul", [make.op("Floor", [make.op("Mul", [below, half])]), two])
    is_odd = make.op("Less", [half, make.op("Sub", [below, pairs])])
    is_half = make.op("And", [make.op("Not", [make.op("Less", [rest, half])]), is_odd])
    goes_up = make.op("Or", [make.op("Less", [half, rest]), is_half])
    above = make.op("Add", [below, one])
    node.replace(make.op("Where", [goes_up, above, below]), is_exact=True)


def _dynamic_quantization_down(node: NodeConversion) -> None:
    """Calculate the scale and the zero point, which QuantizeLinear rounds and limits.

    By the definition the scale of zeros is 0, and their zero point no number; ONNX Runtime's is 1.
    """
    make, data = node.make, node.given(0)
    zero, one, steps = (make.constant(number, np.float32) for number in (0, 1, 255))
    least, most = (
        make.op(name, [make.op(f"Reduce{name}", [data], {"keepdims": 0}), zero])
        for name in ("Min", "Max")
    )
    span = make.op("Sub", [most, least])
    scale = make.op("Where", [make.op("Less", [zero, span]), make.op("Div", [span, steps]), one])
    start = make.op("Sub", [zero, make.op("Div", [least, scale])])
    origin = make.op("QuantizeLinear", [start, one, make.constant(0, np.uint8)])
    quantized = make.op("QuantizeLinear", [data, scale, origin])
    node.replace(*(quantized, scale, origin)[: len(node.node.outputs)])


def _layer_normalization_down(node: NodeConversion) -> None:
    """Normalize over the last axes as they are.

    The operator's definition makes them one and reshapes what comes out: to dimensions of 0, that
    is illegal, and scales are not broadcast. It is taken where the axes can't be counted.
    """
    axis, rank, kind = node.attribute("axis", -1), node.rank(), node.needed_dtype()
    if axis >= 0 and rank is None:
        if not replace_by_definition(node):
            node.needed_rank()
        return
    make, stash = node.make, node.attribute("stash_type", int(ir.DataType.FLOAT))
    first, end = (axis, 0) if rank is None else (axis % max(rank, 1), rank)
    reduced = {"axes": list(range(first, end)), "keepdims": 1}

    def cast(data: ir.Value, before: int, after: int) -> ir.Value:
        return data if before == after else make.op("Cast", [data], {"to": after})

    data = cast(node.given(0), int(kind), stash)
    epsilon = make.constant(node.attribute("epsilon", 1e-5), ir.DataType(stash).numpy())
    mean = make.op("ReduceMean", [data], reduced)
    deviation = make.op("Sub", [data, mean])
    variance = make.op("ReduceMean", [make.op("Mul", [deviation, deviation])], reduced)
    root = make.op("Sqrt", [make.op("Add", [variance, epsilon])])
    normalized = cast(make.op("Div", [deviation, root]), stash, int(kind))
    scaled = make.op("Mul", [normalized, node.given(1)])
    shifted = scaled if node.input(2) is None else make.op("Add", [scaled, node.given(2)])
    inverse = make.op("Reciprocal", [root]) if len(node.node.outputs) > 2 else None
    node.replace(*(shifted, mean, inverse)[: len(node.node.outputs)])


def _quantize_linear_down(node: NodeConversion) -> None:
    """Keep one scale, and calculate with those of channels, for which there is no axis."""
    if _keeps_one_scale(node):
        return
    make, (scales, zeros) = node.make, _scales_and_zeros(node)
    data = make.op("Cast", [node.given(0)], {"to": ir.DataType.FLOAT})  # of int32, too
    data = make.op("Round", [make.op("Div", [data, scales])])
    if zeros is not None:
        data = make.op("Add", [data, make.op("Cast", [zeros], {"to": ir.DataType.FLOAT})])
    kind = ir.DataType.UINT8 if zeros is None else node.needed_dtype(2)
    ends = np.iinfo(kind.numpy())
    bounds = (make.constant(end, np.float32) for end in (ends.min, ends.max))
    node.replace(make.op("Cast", [make.op("Clip", [data, *bounds])], {"to": kind}))


def _dequantize_linear_down(node: NodeConversion) -> None:
    """Keep one scale, and calculate with those of channels, for which there is no axis."""
    if _keeps_one_scale(node):
        return
    make, (scales, zeros) = node.make, _scales_and_zeros(node)
    data = node.given(0)
    if zeros is not None:
        pair = [make.op("Cast", [each], {"to": ir.DataType.INT32}) for each in (data, zeros)]
        data = make.op("Sub", pair)
    data = make.op("Cast", [data], {"to": ir.DataType.FLOAT})
    node.replace(make.op("Mul", [data, scales]))


def _keeps_one_scale(node: NodeConversion) -> bool:
    """Take away the axis of a node that surely has one scale; return whether it has."""
    scale = node.shape(1)
    has_one = scale is not None and all(dim == 1 for dim in scale)
    if has_one:
        node.take("axis")
    return has_one


def _scales_and_zeros(node: NodeConversion) -> tuple[ir.Value, ir.Value | None]:
    """Return the scales and zero points of channels, broadcast along their axis."""
    scales, zeros = node.given(1), node.input(2)
    if axes := _axes_after_channels(node):
        scales = node.make.unsqueeze(scales, axes)
        zeros = None if zeros is None else node.make.unsqueeze(zeros, axes)
    return scales, zeros


def _axes_after_channels(node: NodeConversion) -> list[int]:
    """Return where a list of scales gets axes, to be broadcast along the axis of channels."""
    axis, scale, rank = node.attribute("axis", 1), node.shape(1), node.rank()
    if scale is None or len(scale) != 1 or (axis >= 0 and rank is None):
        problem = "it may have a scale for each channel; before opset 13 there is only one"
        raise node.refusal(problem, "declare the shapes of its data and scales")
    return list(range(1, -axis if axis < 0 else (rank or 0) - axis))


def _identity_down(node: NodeConversion) -> None:
    """Pass a sequence on as what is left of it after a tensor is put at its end and taken away.

    The tensor is of the shape of the others, as far as that is known.
    """
    held = node.conversion.facts.of(node.input(0))
    if not isinstance(held, SequenceFact) or held.element_type in (None, ir.DataType.BFLOAT16):
        return
    make, shape = node.make, [dim if is_known(dim) else 1 for dim in held.part or ()]
    longer = make.op("SequenceInsert", [node.input(0), make.filled(shape, held.element_type)])
    node.replace(make.op("SequenceErase", [longer]))


ADAPTERS = table(
    ("Identity", 14, None, _identity_down),
    ("ConstantOfShape", 9, None, _constant_of_shape_down),
    ("Expand", 8, None, _expand_down),
    ("CumSum", 11, None, _cum_sum_down),
    ("Range", 11, None, _range_down),
    ("GatherElements", 11, None, _gather_elements_down),
    ("Einsum", 12, None, einsum_down),
    ("Round", 11, None, _round_down),
    ("DynamicQuantizeLinear", 11, None, _dynamic_quantization_down),
    ("Mod", 10, None, _mod_down),
    ("Trilu", 14, None, _trilu_down),
    ("LayerNormalization", 17, None, _layer_normalization_down),
    ("QuantizeLinear", 13, None, _quantize_linear_down),
    ("DequantizeLinear", 13, None, _dequantize_linear_down),
)
