"""Layers that choose, move and repeat elements, and that change shapes."""

from __future__ import annotations

from math import prod

import onnx_ir as ir

from tensorsplit.core.dimensions import MAX_DIM, are_known, is_known
from tensorsplit.model.convert.layer_conversion import LayerConversion


def broadcast_to(layer: LayerConversion) -> ir.Value:
    """Write a Broadcast; one in a single direction where the data has no more than the target."""
    mode = layer.word("mode", "numpy")
    data = layer.node.shape()
    if mode == "numpy":
        if data is None or any(dim != 1 for dim in data):
            known = layer.node.known(1)
            target = None if known is None else tuple(known.reshape(-1).tolist())
            is_alike = data is not None and target is not None and len(data) <= len(target)
            ends = zip(reversed(data or ()), reversed(target or ()), strict=False)
            if not is_alike or any(dim not in (1, size) for dim, size in ends):
                raise layer.refusal("ONNX's Expand would also take a target that is smaller")
    elif mode != "bidirectional":
        raise layer.refusal(f"its mode is {mode}")
    return layer.op("Expand", [layer.inputs[0], layer.listed(1)])


def depth_to_space(layer: LayerConversion) -> ir.Value:
    """Write a DepthToSpace of data with 4 axes."""
    mode = layer.choice("mode", {"blocks_first": "DCR", "depth_first": "CRD"})
    if layer.rank() != 4:
        raise layer.refusal(f"its data has {layer.rank()} axes, and in ONNX 4")
    attributes = {"blocksize": layer.integer("block_size", 1), "mode": mode}
    return layer.op("DepthToSpace", layer.inputs, attributes)


def space_to_depth(layer: LayerConversion) -> ir.Value:
    """Write a SpaceToDepth of data with 4 axes, with the blocks first."""
    if layer.word("mode") != "blocks_first" or layer.rank() != 4:
        raise layer.refusal("ONNX's SpaceToDepth is of 4 axes, with the blocks first")
    attributes = {"blocksize": layer.integer("block_size", 1)}
    return layer.op("SpaceToDepth", layer.inputs, attributes)


def roll(layer: LayerConversion) -> ir.Value:
    """Write a Roll: the element of a position is of the one before by the shift."""
    made, shifts, axes = layer.inputs[0], layer.integers(1), layer.integers(2)
    make = layer.node.make
    if len(shifts) != len(axes):
        raise layer.refusal("it has not one shift for each axis")
    shape = layer.op("Shape", layer.inputs[:1])
    for shift, axis in zip(shifts, axes, strict=True):
        size = layer.op("Gather", [shape, make.constant(axis)])
        every = layer.op("Range", [make.constant(0), size, make.constant(1)])
        moved = layer.op("Sub", [every, make.constant(shift)])
        made = layer.op("Gather", [made, layer.op("Mod", [moved, size])], {"axis": axis})
    return made


def one_hot(layer: LayerConversion) -> ir.Value:
    """Write a OneHot by comparing: an index that is not below the depth is of no position."""
    make, axis, rank = layer.node.make, layer.integer("axis"), layer.rank()
    indices, depth, *values = layer.inputs
    axis += rank + 1 if axis < 0 else 0
    number = layer.op("Reshape", [layer.cast(depth, ir.DataType.INT64), make.make(())])
    every = layer.op("Range", [make.constant(0), number, make.constant(1)])
    every = layer.op("Reshape", [every, make.make((-1, *[1] * (rank - axis)))])
    wide = make.unsqueeze(layer.cast(indices, ir.DataType.INT64), [axis])
    return layer.op("Where", [layer.op("Equal", [wide, every]), *values])


def top_k(layer: LayerConversion) -> list[ir.Value]:
    """Write a TopK; elements in no order may be in any, so that they are sorted as well."""
    layer.choice("sort", {"value": True, "none": True})
    largest = layer.choice("mode", {"max": True, "min": False})
    kind = layer.named_type("index_element_type", "i32")
    attributes = {"axis": layer.integer("axis"), "largest": largest}
    inputs = [layer.inputs[0], layer.listed(1)]
    values, indices = layer.ops("TopK", inputs, attributes, 2)
    return [values, indices if kind == ir.DataType.INT64 else layer.cast(indices, kind)]


def gather(layer: LayerConversion) -> ir.Value:
    """Write a Gather along a constant axis, without batches."""
    data, indices, _ = layer.inputs
    if layer.integer("batch_dims", 0):
        raise layer.refusal("ONNX's Gather has no batches")
    (axis,) = layer.integers(2)
    return layer.op("Gather", [data, indices], {"axis": axis})


def range_(layer: LayerConversion) -> ir.Value:
    """Write a Range; of numbers of another type than the output, only integers that get wider."""
    kind = layer.named_type("output_type")
    kinds = {layer.element_type(place) for place in range(3)}
    is_wider = kind == ir.DataType.INT64 and kinds <= {ir.DataType.INT32, ir.DataType.INT64}
    if kinds != {kind} and not is_wider:
        raise layer.refusal("its numbers are of another type than the output")
    if ir.DataType.INT32 not in kinds:
        return layer.op("Range", layer.inputs)
    # onnxruntime 1.32 takes dimensions that it knows for int64 here, although they are cast before
    wide = [layer.cast(each, ir.DataType.INT64) for each in layer.inputs]
    made = layer.op("Range", wide)
    return made if is_wider else layer.cast(made, kind)


def reshape(layer: LayerConversion) -> ir.Value:
    """Write a Reshape; ``special_zero`` keeps dimensions."""
    allows_zero = not layer.flag("special_zero", False)
    shape = layer.listed(1) if allows_zero else _shape_beside_kept(layer)
    return layer.op("Reshape", [layer.inputs[0], shape], {"allowzero": allows_zero})


def _shape_beside_kept(layer: LayerConversion) -> ir.Value:
    """Return the shape of a Reshape that keeps dimensions, with the number for a -1 if it is known.

    It is what the other dimensions leave, also where one that is kept is 0; ONNX refuses that.
    """
    held, dims = layer.node.known(1), layer.shapes()[0]
    numbers = [] if held is None else held.reshape(-1).tolist()
    if dims is None or not {0, -1} <= {*numbers}:
        return layer.listed(1)
    kept = [numbers[axis : axis + 1] == [0] for axis in range(len(dims))]
    others = tuple(dim for dim, is_kept in zip(dims, kept, strict=True) if not is_kept)
    divisor = prod(number for number in numbers if number > 0)
    if not are_known(others) or prod(others) % divisor:
        return layer.listed(1)
    rest = prod(others) // divisor
    return layer.node.make.make(tuple(rest if number == -1 else number for number in numbers))


def slice_(layer: LayerConversion) -> ir.Value:
    """Write a Slice; without axes, it is of the first ones."""
    data, start, stop, step, *axes = (
        layer.inputs[0] if place == 0 else layer.listed(place) for place in range(len(layer.inputs))
    )
    if not axes:
        axes = [layer.every_axis(1)]
    return layer.op("Slice", [data, start, stop, *axes, step])


def strided_slice(layer: LayerConversion) -> ir.Value:
    """Write a StridedSlice; a bit of a mask means that a bound is left out."""
    if any(layer.numbers("new_axis_mask")) or any(layer.numbers("ellipsis_mask")):
        raise layer.refusal("it adds axes, or leaves some out")
    count = layer.count(1)
    steps = layer.integers(3) if len(layer.inputs) > 3 else [1] * count
    shrunk = layer.masked("shrink_axis_mask", count)
    if any(shrunk):
        return _with_single(layer, steps, shrunk)
    ends = [MAX_DIM if step > 0 else -MAX_DIM for step in steps]
    starts = [0 if step > 0 else MAX_DIM for step in steps]
    bounds = [_bounds(layer, 1, "begin_mask", starts), _bounds(layer, 2, "end_mask", ends)]
    make = layer.node.make.make
    axes = make(tuple(range(count)))
    return layer.op("Slice", [layer.inputs[0], *bounds, axes, make(tuple(steps))])


def _bounds(layer: LayerConversion, place: int, name: str, instead: list[int]) -> ir.Value:
    """Return the bounds of a slice, and others instead of those that a mask leaves out."""
    mask = layer.masked(name, len(instead))
    if not any(mask):
        return layer.listed(place)
    given = instead if all(mask) else layer.integers(place)
    chosen = zip(mask, instead, given, strict=True)
    return layer.node.make.make(tuple(far if gone else bound for gone, far, bound in chosen))


def _with_single(layer: LayerConversion, steps: list[int], shrunk: list[int]) -> ir.Value:
    """Write a StridedSlice that takes one position of an axis, and all of each other axis."""
    starts = layer.integers(1)
    names = ("begin_mask", "end_mask")
    masks = zip(*(layer.masked(name, len(steps)) for name in names), strict=True)
    whole = [begin and end and step == 1 for (begin, end), step in zip(masks, steps, strict=True)]
    if shrunk.count(1) != 1 or not all(a or b for a, b in zip(whole, shrunk, strict=True)):
        raise layer.refusal("it takes single positions, and slices of other axes")
    axis = shrunk.index(1)
    index = layer.node.make.constant(starts[axis])
    return layer.op("Gather", [layer.inputs[0], index], {"axis": axis})


def tile(layer: LayerConversion) -> ir.Value:
    """Write a Tile with a count for each axis."""
    shape = layer.node.shape()
    if shape is None or len(shape) != layer.count(1):
        raise layer.refusal("it has not one count for each axis")
    return layer.op("Tile", [layer.inputs[0], layer.listed(1)])


def transpose(layer: LayerConversion) -> ir.Value:
    """Write a Transpose with a constant order; an empty one turns all axes around."""
    order = layer.integers(1)
    return layer.op("Transpose", [layer.inputs[0]], {"perm": order} if order else {})


def squeeze(layer: LayerConversion) -> ir.Value:
    """Remove axes; OpenVINO keeps those that it is to remove and whose length is not 1."""
    data, *axes = layer.inputs
    if not axes:
        return layer.op("Squeeze", [data])
    shape, given = layer.node.shape() or (), layer.node.known(1)
    named = [] if given is None else given.reshape(-1).tolist()
    within = range(-len(shape), len(shape))
    kept = [at for at in named if at in within and is_known(shape[at]) and shape[at] != 1]
    if not kept:
        return with_axes("Squeeze", layer)
    removed = tuple(at for at in named if at not in kept)
    return layer.op("Squeeze", [data, layer.node.make.make(removed)]) if removed else data


def with_axes(op_type: str, layer: LayerConversion) -> ir.Value:
    """Remove or add the axes that the second input names."""
    if layer.is_empty(1):
        raise layer.refusal("it names no axes")
    return layer.op(op_type, [layer.inputs[0], layer.listed(1)])
