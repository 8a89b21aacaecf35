"""Adapters for operators whose operands moved between attributes and inputs."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from tensorsplit.core.arithmetic import (
    Number,
    Numbers,
    at_least,
    choose,
    clamped,
    minimum,
    pick,
    value,
)
from tensorsplit.core.dimensions import MAX_DIM, are_known, is_known
from tensorsplit.model.convert.adapter_kinds import (
    attribute_renamed,
    attribute_to_input,
    input_to_attribute,
    only,
    renamed,
    table,
    take_only,
    to_attributes,
    to_inputs,
)
from tensorsplit.model.convert.conversion import NodeConversion
from tensorsplit.model.graph.axes import axes_from_front
from tensorsplit.model.graph.calculation import FLOATS, TO_THE_END, Calculation, few_numbers
from tensorsplit.model.graph.nodes import is_used
from tensorsplit.model.graph.tensors import Array
from tensorsplit.model.infer.shape_rules import REDUCTIONS

_NEGATIVE_AXES = 11
_FIRST_WITH_BROADCAST_MAX = 8
_FIRST_WITH_INTEGER_CLIP = 12

_OTHER_REDUCTIONS = " ".join(each for each in REDUCTIONS if each != "ReduceSum")
_AXIS_OPERATORS = (
    "ArgMax ArgMin Compress Concat Flatten Gather Softmax LogSoftmax Hardmax Squeeze Unsqueeze"
    f" ReduceSum {_OTHER_REDUCTIONS}"
)
_FLOAT_LIMITS = (ir.DataType.FLOAT, ir.DataType.FLOAT16)
"""Types whose values all lie in the limits of float."""

_INDICES = (ir.DataType.INT32, ir.DataType.INT64)
"""Types of indices of OneHot that can be chosen between at opset 9."""

_MOST_JOINED = 64
"""Data that Tile-1 does not take are joined with themselves at most so often."""


def _axes_up(node: NodeConversion) -> None:
    """Turn the axes into an input; an empty list means all axes, as does none."""
    axes = node.node.attributes.get("axes")
    if axes is not None and not axes.value:
        node.take("axes")
    to_inputs("axes")(node)


def _reducer_down(node: NodeConversion) -> None:
    """Turn the axes into an attribute; refuse `noop_with_empty_axes` where they may be empty."""
    noop = node.take("noop_with_empty_axes", 0)
    axes, known = node.input(1), node.known(1)
    if noop and (axes is None or known is None or not known.size):
        raise node.refusal(
            f"it reduces nothing where no axes are given, which is not expressible at opset"
            f" {node.opset}"
        )
    if known is None or known.size:
        input_to_attribute(node, 1, "axes")
    node.keep_inputs(1)


def count_from_front(node: NodeConversion) -> None:
    """Count axes from the front, in order, if the rank is known; before 11 none are < 0 (D13).

    Where it is not, they stay: every engine counts them from the back in older versions, too. Axes
    in another order are read as others by onnx's inference, and by engines that do as it does.
    """
    rank = node.rank()
    for name in ("axis", "axes"):
        attribute = node.node.attributes.get(name)
        if attribute is None:
            continue
        given = list(attribute.value if name == "axes" else [attribute.value])
        axes = axes_from_front(node.op_type, given, rank)
        if axes is not None and axes != given:
            node.put(**{name: axes if name == "axes" else axes[0]})


def _one_hot(node: NodeConversion) -> None:
    """Rewrite negative indices of OneHot, which count from the back since opset 11.

    Before, they set nothing, but onnxruntime 1.32.0 counts them there, too. What is beyond the
    depth sets nothing in any version.
    """
    indices, kind, make = node.known(0), node.dtype(), node.make
    is_unsigned = kind is not None and kind.name.startswith("UINT")
    if not is_unsigned and (indices is None or (indices < 0).any()):
        depth = None if node.step.up else node.known(1)
        if kind is None or kind not in _INDICES or not (depth is not None or node.step.up):
            raise node.refusal(
                "its indices may be negative: before opset 11 those set nothing, since then they"
                " count from the back",
                "give the indices as a constant or as int64, and the depth as a constant",
            )
        places, kept = node.given(0), node.node.inputs[1:]
        if depth is not None:
            count = make.constant(min(int(depth.item()), np.iinfo(np.int32).max), kind.numpy())
            places = _unless_negative(make, places, make.op("Add", [places, count]), kind)
        beyond = make.constant(np.iinfo(kind.numpy()).max, kind.numpy())
        node.set_inputs(_unless_negative(make, places, beyond, kind), *kept)
    count_from_front(node)


def _unless_negative(
    make: Calculation, places: ir.Value, other: ir.Value, kind: ir.DataType
) -> ir.Value:
    """Return integers, or others where they are below 0."""
    is_negative = make.op("Less", [places, make.constant(0, kind.numpy())])
    return make.op("Where", [is_negative, other, places])


def _dft_up(node: NodeConversion) -> None:
    node.set_inputs(node.input(0), node.input(1), node.make.constant(node.take("axis", 1)))


def _dft_down(node: NodeConversion) -> None:
    node.put(axis=-2)
    input_to_attribute(node, 2, "axis")
    node.keep_inputs(2)


def _shape_down(node: NodeConversion) -> None:
    """Replace a part of a shape by a Slice of the whole shape."""
    start, end = node.take("start", 0), node.take("end")
    if start or end is not None:
        shape = node.make.op("Shape", [node.input(0)])
        last = MAX_DIM if end is None else end
        bounds = [node.make.constant([start]), node.make.constant([last])]
        node.replace(node.make.op("Slice", [shape, *bounds]))


def _slice_down(node: NodeConversion) -> None:
    """Make attributes of constant bounds; with steps, or other bounds, take elements by index."""
    steps = node.known(4)
    if steps is None and node.input(4) is not None:
        problem = f"its steps are known only at run time; at opset {node.opset} they are 1"
        raise node.refusal(problem, "make them a constant")
    if steps is not None and not steps.all():
        raise node.refusal(f"its steps are {steps.tolist()}, and a step is not 0")
    is_stepping = steps is not None and bool((steps != 1).any())
    if is_stepping or node.known(1) is None or node.known(2) is None:
        _take_by_index(node)
        return
    to_attributes("starts", "ends", "axes")(node)
    rank, axes = node.rank(), node.node.attributes.get("axes")
    if rank is not None and axes is not None:
        node.put(axes=[axis + rank if axis < 0 else axis for axis in axes.value])


def _take_by_index(node: NodeConversion) -> None:
    """Take elements one by one on axes with steps, or with bounds known only at run time."""
    make, data, rank = node.make, node.given(0), node.needed_rank()
    plain: list[tuple[int, int, int]] = []
    indices: dict[int, ir.Value] = {}
    for axis, start, end, step in _slices(node, rank):
        dim = node.length(axis)
        first, last = _walk(start, end, step, dim)
        if step == 1 and is_known(start) and is_known(end):
            plain.append((axis, start, end))
        elif is_known(first) and is_known(last) and not range(first, last, step):
            plain.append((axis, 0, 0))  # some engines read an index that is empty as a scalar
        else:
            if few_numbers(first, last, step) is None:
                node.need_numbering()
            indices[axis] = make.range(first, last, step)
    taken = data
    if plain:
        axes, starts, ends = map(list, zip(*sorted(plain), strict=True))
        taken = make.op("Slice", [taken], {"axes": axes, "starts": starts, "ends": ends})
    is_text = node.dtype() in (None, ir.DataType.STRING)
    for axis, index in indices.items():
        at = rank - 1 if is_text else axis  # where onnxruntime takes strings, too
        moved = make.op("Gather", [make.moved(taken, rank, axis, at), index], {"axis": at})
        taken = make.moved(moved, rank, at, axis)
    node.replace(make.op("Identity", [data]) if taken is data else taken)


def _slices(node: NodeConversion, rank: int) -> list[tuple[int, Number, Number, int]]:
    """Return each axis that a Slice takes a part of, with its start, end and step."""
    axes, shape = node.known(3), node.shape(1)
    count = shape[0] if shape is not None and len(shape) == 1 else None
    if axes is None and node.input(3) is None and is_known(count):
        axes = np.arange(count)
    if axes is None:
        raise node.refusal("neither its bounds nor its axes are constants", "make the axes one")
    steps = node.known(4)
    starts, ends = (_integers(node, place) for place in (1, 2))
    return [
        (
            int(axis) % rank,
            pick(starts, place),
            pick(ends, place),
            1 if steps is None else _stepping(int(steps[place])),
        )
        for place, axis in enumerate(axes.ravel())
    ]


def _integers(node: NodeConversion, place: int) -> Numbers:
    """Return the integers that an input lists."""
    known = node.known(place)
    if known is not None:
        return tuple(map(int, known.ravel()))
    return value(node.make.int64(node.given(place), node.dtype(place)))


def _stepping(step: int) -> int:
    """Return a step that is added without leaving 64 bits; longer ones take one element, too."""
    return max(-TO_THE_END, min(step, TO_THE_END))


def _walk(start: Number, end: Number, step: int, dim: Number) -> tuple[Number, Number]:
    """Return at which elements a slice starts and before which it ends, within the dimension."""
    if step > 0:
        return _from_front(start, dim, 0, dim), _from_front(end, dim, 0, dim)
    last = dim - 1
    if start == -1 or _is_far(start, 1):  # of no elements, none is the last one
        return last, _from_front(end, dim, -1, last)
    return _from_front(start, dim, minimum(last, 0), last), _from_front(end, dim, -1, last)


def _from_front(bound: Number, dim: Number, least: Number, most: Number) -> Number:
    """Return where a bound of a slice lies that may count from the back, or lie outside."""
    if bound == least == 0 or (_is_far(bound, -1) and not is_known(dim)):
        return least
    if _is_far(bound, 1) and not is_known(dim):
        return most
    return clamped(choose(at_least(0, bound), bound, bound + dim), least, most)


def _is_far(bound: Number, sign: int) -> bool:
    """Return whether a bound is a number that lies beyond every dimension."""
    return is_known(bound) and bound * sign >= TO_THE_END


def _depth_down(node: NodeConversion) -> None:
    """Put the channels in the order of the other mode, DCR, the only one before opset 11."""
    mode, block = node.take("mode", "DCR"), node.attribute("blocksize")
    if mode not in ("DCR", "CRD"):
        raise node.refusal(f"its mode is {mode!r}; known are DCR and CRD")
    make, count, size = node.make, node.length(1), block * block
    is_alike = is_known(count) and (count <= size or count % size)  # or no engine runs it
    if mode == "DCR" or block <= 1 or is_alike:
        return
    if is_known(count) and few_numbers(0, count, 1) is not None:
        order = make.make(tuple(np.arange(count).reshape(-1, size).T.ravel().tolist()))
    else:
        node.need_numbering()
        table = make.op("Reshape", [make.range(0, count), make.make((-1, size))])
        order = make.elements(make.op("Transpose", [table]))
    node.set_inputs(make.op("Gather", [node.input(0), order], {"axis": 1}))


def _clip_up(node: NodeConversion) -> None:
    """Turn Clip's limits into inputs; the default limits were those of float."""
    dtype = node.needed_dtype()
    if not dtype.is_floating_point():
        raise node.refusal(f"its data is {dtype.name.lower()}, which opset {node.opset - 1} lacks")
    limits: list[ir.Value | None] = []
    for name, sign in (("min", -1), ("max", 1)):
        value = node.take(name)
        if value is None and dtype not in _FLOAT_LIMITS:
            value = sign * float(np.finfo(np.float32).max)
        limits.append(None if value is None else node.make.constant(value, dtype.numpy()))
    node.set_inputs(node.input(0), *limits)


def _clip_integers(node: NodeConversion) -> None:
    """Replace Clip of integers, which it takes from opset 12 on, by a Max and a Min."""
    if node.needed_dtype().is_integer():
        node.opset = _FIRST_WITH_INTEGER_CLIP
        _between(node)


def _between(node: NodeConversion) -> None:
    """Replace Clip by a Max and a Min of its limits."""
    data, make = node.given(0), node.make
    result = data
    for index, op_type in ((1, "Max"), (2, "Min")):
        limit = node.input(index)
        if limit is not None:
            result = make.op(op_type, [result, limit])
    node.replace(make.op("Identity", [data]) if result is data else result)


def _clip_down(node: NodeConversion) -> None:
    """Replace limits that are known only at run time by a Max and a Min."""
    limits = ((1, "min"), (2, "max"))
    if any(node.known(index) is None and node.input(index) is not None for index, _ in limits):
        if node.conversion.target < _FIRST_WITH_BROADCAST_MAX:
            raise node.refusal(
                f"its limits are known only at run time; at opset {node.opset} they are attributes"
            )
        _between(node)
        return
    dtype = node.needed_dtype()
    for index, name in limits:
        value = node.known(index)
        if value is not None and float(np.float32(value.item())) == float(value.item()):
            node.put(**{name: float(value.item())})
        elif value is not None or dtype not in _FLOAT_LIMITS:
            raise node.refusal(
                f"its limit '{name}' is not exact as a float, the type of the attribute"
            )
    node.keep_inputs(1)


def _pad_up(node: NodeConversion) -> None:
    pads, value = attribute_to_input(node, "pads"), node.take("value", 0.0)
    filling = None if value == 0 else node.make.constant(value, node.needed_dtype().numpy())
    node.set_inputs(node.input(0), pads, filling)


def _pad_down(node: NodeConversion) -> None:
    input_to_attribute(node, 1, "pads")
    if node.input(2) is not None:
        value = float(node.needed(2, "constant_value").item())
        if not np.isnan(value) and value != float(np.float32(value)):
            raise node.refusal(
                f"its value {value!r} is not exact as a float, the type of the attribute"
            )
        node.put(value=value)
    node.keep_inputs(1)


def _pad_all_axes(node: NodeConversion) -> None:
    """Replace pads of some axes by pads of all of them."""
    if node.input(3) is None:
        return
    rank = node.needed_rank()
    axes, pads = node.needed(3, "axes").ravel(), node.needed(1, "pads").ravel()
    whole = np.zeros(2 * rank, np.int64)
    for index, axis in enumerate(axes):
        whole[axis % rank], whole[axis % rank + rank] = pads[index], pads[index + len(axes)]
    node.set_inputs(node.input(0), node.make.constant(whole), node.input(2))


def _reshape_zero(node: NodeConversion) -> None:
    """Make dimensions of 0 where the older version takes a zero as "keep".

    Data without elements get one, are made a tensor of dimensions of 1, and are expanded to the
    shape, which takes the element away again; data with elements then have one too many. A zero
    beside a -1 stays wrong: there all dimensions become -1.
    """
    if not node.attribute("allowzero", 0):
        return
    known, make = node.known(1), node.make
    if known is not None and (known != 0).all():
        node.take("allowzero")
        return
    data, shape = node.given(0), node.given(1)
    element = make.filled([1], node.needed_dtype())
    if known is not None:
        node.replace(_empty_of_shape(make, data, element, known))
        return
    zero, one = make.make(0), make.make(1)
    listed = make.concat([one, shape], 0)  # a shape may be empty, of which there is no least
    has_zero = make.op("Equal", [_least(make, make.op("Abs", [listed])), zero])
    has_open = make.op("Less", [_least(make, listed), zero])
    more = make.op("Slice", [element, zero, make.op("Where", [has_zero, one, zero])])
    filled = make.concat([make.elements(data), more], 0)
    ones = make.op("Where", [has_open, make.make(-1), one])
    made = make.op("Reshape", [filled, make.op("Where", [has_zero, ones, shape])])
    is_open = make.op("Less", [shape, zero])
    node.replace(make.op("Expand", [made, make.op("Where", [is_open, one, shape])]))


def _empty_of_shape(make: Calculation, data: ir.Value, element: ir.Value, shape: Array) -> ir.Value:
    """Do as `_reshape_zero` where the shape is constant, and has a 0.

    A Slice makes the 0: onnxruntime 1.32.0 leaves out an Expand to a constant with one.
    """
    ones = make.constant([-1 if (shape < 0).any() else 1] * len(shape))
    made = make.op("Reshape", [make.concat([make.elements(data), element], 0), ones])
    for axis in np.flatnonzero(shape == 0).tolist():
        made = make.slice(made, 0, 0, axis)
    if shape.max() > 1:
        made = make.op("Expand", [made, make.constant(np.maximum(shape, 1))])
    return made


def _least(make: Calculation, numbers: ir.Value) -> ir.Value:
    """Return the smallest of some integers, as a list of one."""
    return make.op("ReduceMin", [numbers], {"axes": [0], "keepdims": 1})


def _topk_up(node: NodeConversion) -> None:
    node.set_inputs(node.input(0), node.make.constant([node.take("k")]))


def _topk_down(node: NodeConversion) -> None:
    """Make an attribute of k, which is 1 or more before opset 10."""
    if node.needed(1, "k").item() == 0:
        raise node.refusal(f"its k is 0; at opset {node.opset} it is 1 or more")
    to_attributes("k")(node)


def _topk_ascending(node: NodeConversion) -> None:
    """Remove `sorted=0`, which allows any order; take the largest, on an axis from the front."""
    if not node.attribute("sorted", 1):
        node.take("sorted")
    rank, axis = node.rank(), node.attribute("axis", -1)
    if rank is not None and axis < 0:
        node.put(axis=axis + rank)
    if not node.take("largest", 1):
        _largest_of_negatives(node)


def _largest_of_negatives(node: NodeConversion) -> None:
    """Take the smallest numbers as the largest ones of the opposite sign."""
    if not node.needed_dtype().is_floating_point():
        raise node.refusal(f"it takes the smallest integers; opset {node.opset} the largest floats")
    make, inputs = node.make, [node.make.op("Neg", [node.given(0)]), node.input(1)]
    along = {"axis": node.attribute("axis", -1)}
    most, places = make.ops("TopK", inputs, along, ("most", "places"))
    node.replace(make.op("Neg", [most]), places)


def _dropout_down(node: NodeConversion) -> None:
    """Rewrite a Dropout, which outside training gives its data whatever the ratio."""
    if node.input(2) is not None and node.needed(2, "training_mode").any():
        raise node.refusal(f"it is in training mode, not expressible at opset {node.opset}")
    node.take("seed")
    if node.known(1) is not None:
        input_to_attribute(node, 1, "ratio")
    node.keep_inputs(1)
    _mask_of_all(node)  # of which engines made something else before


def _mask_of_all(node: NodeConversion) -> None:
    """Write a mask that is used as what is true of each element, of NaN as well."""
    if any(map(is_used, node.node.outputs[1:])):
        data = node.given(0)
        mask = node.make.op("Not", [node.make.op("Less", [data, data])])
        node.replace(node.make.op("Identity", [data]), mask)


def _mask_of_ones(node: NodeConversion) -> None:
    """Write a mask that is used as ones of the type of the data."""
    if any(map(is_used, node.node.outputs[1:])):
        data, kind = node.given(0), node.needed_dtype()
        shape = node.make.op("Shape", [data])
        ones = node.make.op("Expand", [node.make.constant(1, kind.numpy()), shape])
        node.replace(node.make.op("Identity", [data]), ones)


def _tile_down(node: NodeConversion) -> None:
    """Write one Tile-1 per repeated axis; types other than float are repeated by Concat."""
    repeats = [int(item) for item in node.needed(1, "repeats").ravel()]
    kind, result = node.needed_dtype(), node.input(0)
    is_float = kind in FLOATS
    if not is_float and not all(0 < count <= _MOST_JOINED for count in repeats):
        raise node.refusal(
            f"it repeats data of type {kind.name} {max(repeats)} times; opset {node.opset} repeats"
            f" floats, and joins at most {_MOST_JOINED}"
        )
    for axis, count in enumerate(repeats):
        if not is_float and count > 1:
            result = node.make.op("Concat", [result] * count, {"axis": axis})
        elif is_float and (count != 1 or len(repeats) == 1):
            dtype = kind.numpy()
            operands = [node.make.constant(count, dtype), node.make.constant(axis, dtype)]
            result = node.make.op("Tile", [result, *operands])
    if result is node.input(0):
        result = node.make.op("Identity", [result])
    node.replace(result)


def _tile_up(node: NodeConversion) -> None:
    repeats = [1] * node.needed_rank()
    repeats[int(node.needed(2, "axis").item())] = int(node.needed(1, "tiles").item())
    node.set_inputs(node.input(0), node.make.constant(repeats))


def _gemm_zero(node: NodeConversion) -> None:
    """Add a zero as C where it is not optional."""
    if node.input(2) is not None:
        return
    dtype = node.needed_dtype()
    if dtype == ir.DataType.STRING:
        raise node.refusal("its data are strings")
    zero = node.make.constant(0, dtype.numpy())
    node.set_inputs(node.input(0), node.input(1), zero)


def _resize_up(node: NodeConversion) -> None:
    """Convert Resize-10: asymmetric coordinates, and `nearest` rounds down."""
    _check_neighbours(node, node.known(1))
    node.set_inputs(node.input(0), node.make.constant([], np.float32), node.input(1))
    node.put(coordinate_transformation_mode="asymmetric")
    if node.attribute("mode", "nearest") == "nearest":
        node.put(nearest_mode="floor")


def _check_neighbours(node: NodeConversion, scales: Array | None) -> None:
    """Refuse to make data smaller by what leaves open at opset 10 which neighbour is nearest.

    The standard does not say it: onnxruntime 1.32.0 rounds up there, and down from 11 on.
    """
    if node.attribute("mode", "nearest") != "nearest" or scales is None:
        return
    if any(0 < each < 1 and 1 / each % 1 != 0 for each in scales.ravel().tolist()):
        raise node.refusal(
            f"its scales are {scales.tolist()}, and where data becomes smaller, opset 10 does not"
            " say which neighbour is the nearest"
        )


def _resize_down(node: NodeConversion) -> None:
    sizes, scales = node.known(3), node.input(2)
    if node.input(3) is not None and (sizes is None or sizes.size):
        scales = _scales_of_sizes(node, sizes)
    if scales is None:
        raise node.refusal(f"it is given sizes; at opset {node.opset} it takes scales")
    _check_neighbours(node, node.conversion.constant(scales))
    if node.attribute("mode", "nearest") == "nearest":
        take_only(node, "nearest_mode", "floor")
    elif node.attribute("mode") == "cubic":
        raise node.refusal("its mode is cubic, which opset 10 does not have")
    take_only(node, "coordinate_transformation_mode", "asymmetric")
    for name in ("nearest_mode", "cubic_coeff_a", "extrapolation_value", "exclude_outside"):
        node.take(name)
    node.set_inputs(node.input(0), scales)


def _resize_to_upsample(node: NodeConversion) -> None:
    """Give Resize its older name, under which it makes nothing smaller."""
    scales = node.known(1)
    if scales is not None and (scales < 1).any():
        raise node.refusal(
            f"its scales are {scales.tolist()}; opset {node.opset} has Upsample, whose scales are 1"
            " or more"
        )
    node.node.op_type = "Upsample"


def _scales_of_sizes(node: NodeConversion, sizes: Array | None) -> ir.Value | None:
    """Return the scales that give sizes, if all are known and the scales exact."""
    dims = node.shape()
    if sizes is None or dims is None or not are_known(dims) or 0 in dims:
        return None
    scales = (sizes / np.array(dims)).astype(np.float32)
    is_exact = (scales.astype(np.float64) * dims == sizes).all()
    return node.make.constant(scales, np.float32) if is_exact else None


def _resize_empty(node: NodeConversion) -> None:
    """Give absent inputs as empty tensors, as before opset 13."""
    inputs = [node.input(index) for index in range(4)]
    for index in (1, 2):
        inputs[index] = inputs[index] or node.make.constant([], np.float32)
    node.set_inputs(*inputs)


def _scales_of_image(node: NodeConversion) -> None:
    height, width = node.take("height_scale"), node.take("width_scale")
    node.put(scales=[1.0, 1.0, float(height), float(width)])
    if node.attribute("mode") == "bilinear":
        node.put(mode="linear")


def _scales_to_image(node: NodeConversion) -> None:
    scales = list(node.take("scales"))
    if len(scales) != 4 or scales[:2] != [1.0, 1.0]:
        raise node.refusal(
            f"its scales are {scales}; opset {node.opset} scales height and width only"
        )
    node.put(height_scale=scales[2], width_scale=scales[3])
    if node.attribute("mode") == "linear":
        node.put(mode="bilinear")


_RESIZES = only(
    "coordinate_transformation_mode",
    *("half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric", "tf_crop_and_resize"),
)


def _resize_omitting(node: NodeConversion) -> None:
    """Leave out what is empty of scales and sizes, as is possible from opset 13 on.

    In a body, nobody who takes both for given sees that a tensor from around it is empty.
    """
    _RESIZES(node)
    inputs = [node.input(index) for index in range(4)]
    for index in (2, 3):
        given = node.known(index)
        if given is not None and not given.size:
            inputs[index] = None
    node.set_inputs(*inputs)


ADAPTERS = table(
    ("ReduceSum", 13, _axes_up, _reducer_down),
    (_OTHER_REDUCTIONS, 18, _axes_up, _reducer_down),
    ("Squeeze Unsqueeze", 13, _axes_up, to_attributes("axes")),
    (_AXIS_OPERATORS, _NEGATIVE_AXES, None, count_from_front),
    ("OneHot", _NEGATIVE_AXES, _one_hot, _one_hot),
    ("DFT", 20, _dft_up, _dft_down),
    ("Shape", 15, None, _shape_down),
    ("Slice", 10, to_inputs("starts", "ends", "axes"), _slice_down),
    ("DepthToSpace", 11, None, _depth_down),
    ("Clip", 11, _clip_up, _clip_down),
    ("Clip", 12, None, _clip_integers),
    ("Pad", 2, attribute_renamed("paddings", "pads"), attribute_renamed("pads", "paddings")),
    ("Pad", 11, _pad_up, _pad_down),
    ("Pad", 18, None, _pad_all_axes),
    ("Reshape", 5, to_inputs("shape"), to_attributes("shape")),
    ("Reshape", 14, None, _reshape_zero),
    ("TopK", 10, _topk_up, _topk_down),
    ("TopK", 11, None, _topk_ascending),
    ("Dropout", 10, _mask_of_ones, _mask_of_all),
    ("Dropout", 12, to_inputs("ratio"), _dropout_down),
    ("Tile", 6, _tile_up, _tile_down),
    ("Gemm", 11, None, _gemm_zero),
    ("Upsample", 7, _scales_of_image, _scales_to_image),
    ("Upsample", 9, to_inputs("scales"), to_attributes("scales")),
    ("Upsample", 10, renamed("Resize"), None),
    ("Resize", 10, None, _resize_to_upsample),
    ("Resize", 11, _resize_up, _resize_down),
    ("Resize", 13, _resize_omitting, _resize_empty),
    ("Resize", 19, None, _RESIZES),
)
