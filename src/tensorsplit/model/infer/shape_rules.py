"""Dimensions as expressions of named ones, where onnx's own inference leaves them open.

Each rule gives the shape of the first output of an operator as far as it follows; what onnx knows
already goes before it. A name stands for any number from 0 on: nothing is assumed of it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial, reduce
from itertools import zip_longest
from typing import TypeAlias

from tensorsplit.core.dimensions import (
    Dim,
    Shape,
    add,
    combine,
    is_at_least,
    is_known,
    larger,
    quotient,
    smaller,
    times,
)
from tensorsplit.model.infer.elements import Node

_ShapeRule: TypeAlias = Callable[[Node], "Shape | None"]

_FAR = (1 << 31) - 1
"""Exporters write this, or more, for the end of an axis."""


def followed_shape(node: Node) -> Shape | None:
    """The shape of the first output of a node of ONNX's own; None where nothing follows."""
    rule = _RULES.get(node.proto.op_type)
    return None if rule is None else rule(node)


def _concat(node: Node) -> Shape | None:
    shapes = [node.shape(index) for index in range(len(node.inputs))]
    known = [shape for shape in shapes if shape is not None]
    axis = node.attribute("axis", 1)
    if not known or any(len(shape) != len(known[0]) for shape in known):
        return None
    rank = len(known[0])
    if not -rank <= axis < rank:
        return None
    made = list(known[0])
    for shape in known[1:]:
        made = [b if a is None or is_known(b) else a for a, b in zip(made, shape, strict=True)]
    whole = len(known) == len(shapes)
    lengths = [shape[axis] for shape in known]
    made[axis] = reduce(add, lengths) if whole else None
    return tuple(made)


def _flatten(node: Node) -> Shape | None:
    shape, axis = node.shape(0), node.attribute("axis", 1)
    if shape is None or not -len(shape) <= axis <= len(shape):
        return None
    axis += len(shape) if axis < 0 else 0
    return reduce(times, shape[:axis], 1), reduce(times, shape[axis:], 1)


def _reshape(node: Node) -> Shape | None:
    data = node.shape(0)
    asked = tuple(node.attribute("shape", ())) if node.opset < 5 else node.elements(1)
    if asked is None:
        return None
    made: list[Dim] = list(asked)
    rest = None if data is None else list(data)
    for index, dim in enumerate(asked):
        if dim == 0 and not node.attribute("allowzero", 0):
            made[index] = None if data is None or index >= len(data) else data[index]
        elif dim == -1:
            made[index] = None
        if rest is not None and data is not None and _is_copied(dim, data, index):
            rest[index] = 1
    open_places = [
        index
        for index, dim in enumerate(made)
        if dim is None and not (asked[index] == 0 and data is not None)
    ]
    if len(open_places) == 1 and data is not None and rest is not None:
        (place,) = open_places
        others = [
            made[index]
            for index, dim in enumerate(asked)
            if index != place and not _is_copied(dim, data, index)
        ]
        if _is_copied(asked[place], data, place) or 0 in others:
            return tuple(made)
        made[place] = quotient(rest, others)
    return tuple(made)


def _is_copied(dim: Dim, data: Shape, index: int) -> bool:
    """Whether a length of a new shape is the same as the old one at the same place."""
    if index >= len(data) or dim is None:
        return False
    return dim == 0 or (not is_known(dim) and str(dim) == str(data[index]))


def _expand(node: Node) -> Shape | None:
    shape, asked = node.shape(0), node.elements(1)
    return None if shape is None or asked is None else _broadcast(shape, asked)


def _broadcast(left: Shape, right: Shape) -> Shape:
    pairs = zip_longest(reversed(left), reversed(right), fillvalue=1)
    return tuple(_broadcast_dim(a, b) for a, b in pairs)[::-1]


def _broadcast_dim(left: Dim, right: Dim) -> Dim:
    for one, other in ((left, right), (right, left)):
        if one == 1:
            return other
        if is_known(one):
            return one
    return left if left is not None and right is not None and str(left) == str(right) else None


def _elementwise(node: Node) -> Shape | None:
    shapes = [node.shape(index) for index in range(len(node.inputs))]
    known = [shape for shape in shapes if shape is not None]
    return reduce(_broadcast, known) if known and len(known) == len(shapes) else None


def _tile(node: Node) -> Shape | None:
    shape, repeats = node.shape(0), node.elements(1)
    if shape is None or repeats is None or len(shape) != len(repeats):
        return None
    return tuple(map(times, shape, repeats))


def _pad(node: Node) -> Shape | None:
    shape = node.shape(0)
    pads = node.elements(1) if node.opset >= 11 else node.attribute("pads")
    if shape is None or pads is None:
        return None
    axes = node.elements(3) if node.has(3) else tuple(range(len(shape)))
    if axes is None or None in axes or len(pads) != 2 * len(axes):
        return None
    made = list(shape)
    for axis, before, after in zip(axes, pads, pads[len(axes) :], strict=False):
        if not is_known(axis) or not -len(shape) <= axis < len(shape):
            return None
        made[axis] = add(made[axis], add(before, after))
    return tuple(made)


def _slice(node: Node) -> Shape | None:
    shape = node.shape(0)
    if node.opset < 10:
        starts, ends = node.attribute("starts"), node.attribute("ends")
        axes, steps = node.attribute("axes"), None
    else:
        starts, ends = node.elements(1), node.elements(2)
        axes = node.elements(3) if node.has(3) else None
        steps = node.elements(4) if node.has(4) else None
        if (node.has(3) and axes is None) or (node.has(4) and steps is None):
            return None
    if shape is None or starts is None or ends is None:
        return None
    axes = tuple(range(len(starts))) if axes is None else axes
    steps = (1,) * len(starts) if steps is None else steps
    made = list(shape)
    for start, end, axis, step in zip(starts, ends, axes, steps, strict=True):
        if not is_known(axis) or not -len(shape) <= axis < len(shape):
            return (None,) * len(shape)
        made[axis] = _sliced(shape[axis], start, end, step)
    return tuple(made)


def _sliced(dim: Dim, start: Dim, end: Dim, step: Dim) -> Dim:
    """How many elements a slice has."""
    if not is_known(step) or step == 0:
        return None
    if step < 0:
        is_whole = is_known(start) and is_known(end) and end < -_FAR
        is_whole = is_whole and (start == -1 or start >= _FAR)
        return _rounded_up(dim, -step) if is_whole else None
    start, end = _bound(start, dim), _bound(end, dim)
    if start is not None and start == end:
        return 0
    length = combine(lambda a, b: a - b, end, start)
    return None if length is None else _rounded_up(larger(0, length), step)


def _bound(bound: Dim, dim: Dim) -> Dim:
    """A bound of a slice as a place in [0, dim]; None where it can't be told."""
    if bound is None:
        return None
    if not is_known(bound):
        return smaller(bound, dim) if is_at_least(bound, 0) else None
    if bound >= _FAR:
        return dim
    if bound > 0:
        return smaller(bound, dim)
    if bound == 0 or bound <= -_FAR:
        return 0
    return larger(0, add(dim, bound))


def _rounded_up(dim: Dim, divisor: int) -> Dim:
    if divisor == 1:
        return dim
    return combine(lambda a, b: (a + (b - 1)) // b, dim, divisor)


def _range(node: Node) -> Shape | None:
    bounds = [node.elements(index) for index in range(3)]
    if any(bound is None or len(bound) != 1 for bound in bounds):
        return (None,)
    start, limit, step = (bound[0] for bound in bounds if bound is not None)
    if not is_known(step) or step == 0 or isinstance(start, float) or isinstance(limit, float):
        return (None,)
    first, last = (start, limit) if step > 0 else (limit, start)
    length = combine(lambda a, b: a - b, last, first)
    return (None if length is None else _rounded_up(larger(0, length), abs(step)),)


def _constant_of_shape(node: Node) -> Shape | None:
    return node.elements(0)


def _resize(node: Node) -> Shape | None:
    shape, policy = node.shape(0), node.attribute("keep_aspect_ratio_policy", "stretch")
    first = 1 if node.opset < 11 else 2
    if shape is None or policy != "stretch":
        return None
    axes = node.attribute("axes") or tuple(range(len(shape)))
    sizes = node.elements(3) if first == 2 and node.has(3) else None
    scales = node.elements(first) if node.has(first) else node.attribute("scales")
    asked = sizes if sizes is not None and len(sizes) == len(axes) else None
    made = list(shape)
    for place, axis in enumerate(axes):
        if not -len(shape) <= axis < len(shape):
            return None
        if asked is not None:
            made[axis] = asked[place]
        elif scales is not None and len(scales) == len(axes):
            made[axis] = _scaled(shape[axis], scales[place])
        else:
            made[axis] = None
    return tuple(made)


def _scaled(dim: Dim, scale: Dim) -> Dim:
    """A dimension times a float, rounded down; only where no rounding of floats has a say."""
    if not isinstance(scale, (int, float)) or scale <= 0:
        return None
    dividend, divisor = float(scale).as_integer_ratio()
    if divisor > 1 << 10 or dividend > 1 << 10:
        return None
    return combine(lambda a, b: a * dividend // b, dim, divisor)


def _window(node: Node, kernel_from: int | None) -> Shape | None:
    """The shape after a convolution or pooling, which slides a window along the data."""
    shape = node.shape(0)
    kernel = node.attribute("kernel_shape")
    weights = None if kernel_from is None else node.shape(kernel_from)
    if shape is None or len(shape) < 3 or node.attribute("ceil_mode", 0):
        return None
    if kernel_from is not None and weights is None:
        return None
    if kernel is None:
        kernel = () if weights is None else weights[2:]
    count = len(shape) - 2
    strides = node.attribute("strides") or (1,) * count
    dilations = node.attribute("dilations") or (1,) * count
    pads, padding = node.attribute("pads") or (0,) * 2 * count, node.attribute("auto_pad", "NOTSET")
    if not len(kernel) == len(strides) == len(dilations) == count or len(pads) != 2 * count:
        return None
    made: list[Dim] = [shape[0], shape[1] if weights is None else weights[0]]
    for index, (dim, size, step) in enumerate(zip(shape[2:], kernel, strides, strict=True)):
        if padding.startswith("SAME"):
            made.append(_rounded_up(dim, step))
        elif is_known(size):
            padded = 0 if padding == "VALID" else pads[index] + pads[index + count]
            spare = padded - dilations[index] * (size - 1) - 1
            made.append(add(combine(lambda a, b: a // b, add(dim, spare), step), 1))
        else:
            made.append(None)
    return tuple(made)


def _transposed(node: Node) -> Shape | None:
    """The shape after a transposed convolution with padding that is given."""
    shape, weights = node.shape(0), node.shape(1)
    if shape is None or weights is None or len(shape) < 3 or len(weights) != len(shape):
        return None
    count = len(shape) - 2
    if node.attribute("output_shape") or node.attribute("auto_pad", "NOTSET") != "NOTSET":
        return None
    kernel = node.attribute("kernel_shape") or weights[2:]
    strides = node.attribute("strides") or (1,) * count
    dilations = node.attribute("dilations") or (1,) * count
    pads = node.attribute("pads") or (0,) * 2 * count
    extra = node.attribute("output_padding") or (0,) * count
    made: list[Dim] = [shape[0], times(weights[1], node.attribute("group", 1))]
    for index, dim in enumerate(shape[2:]):
        if not is_known(kernel[index]):
            made.append(None)
            continue
        spare = extra[index] - pads[index] - pads[index + count]
        spare += (kernel[index] - 1) * dilations[index] + 1 - strides[index]
        made.append(add(times(dim, strides[index]), spare))
    return tuple(made)


def _blocks(node: Node, *, to_depth: bool) -> Shape | None:
    shape, size = node.shape(0), node.attribute("blocksize")
    if shape is None or len(shape) != 4 or not size:
        return None
    batch, depth, *sides = shape
    if to_depth:
        return batch, times(depth, size * size), *(quotient([side], [size]) for side in sides)
    return batch, quotient([depth], [size * size]), *(times(side, size) for side in sides)


def _top_k(node: Node) -> Shape | None:
    shape = node.shape(0)
    count = node.elements(1) if node.opset >= 10 else (node.attribute("k"),)
    axis = node.attribute("axis", -1)
    if shape is None or not -len(shape) <= axis < len(shape):
        return None
    made = list(shape)
    made[axis] = count[0] if count is not None and len(count) == 1 else None
    return tuple(made)


def _one_hot(node: Node) -> Shape | None:
    shape, depth, axis = node.shape(0), node.elements(1), node.attribute("axis", -1)
    if shape is None or not -len(shape) - 1 <= axis <= len(shape):
        return None
    axis += len(shape) + 1 if axis < 0 else 0
    length = depth[0] if depth is not None and len(depth) == 1 else None
    return (*shape[:axis], None if isinstance(length, float) else length, *shape[axis:])


_RULES: Mapping[str, _ShapeRule] = {
    "AveragePool": partial(_window, kernel_from=None),
    "Concat": _concat,
    "ConstantOfShape": _constant_of_shape,
    "Conv": partial(_window, kernel_from=1),
    "ConvInteger": partial(_window, kernel_from=1),
    "ConvTranspose": _transposed,
    "DepthToSpace": partial(_blocks, to_depth=False),
    "Expand": _expand,
    "Flatten": _flatten,
    "LpPool": partial(_window, kernel_from=None),
    "MaxPool": partial(_window, kernel_from=None),
    "OneHot": _one_hot,
    "Pad": _pad,
    "QLinearConv": partial(_window, kernel_from=3),
    "Range": _range,
    "Reshape": _reshape,
    "Resize": _resize,
    "Slice": _slice,
    "SpaceToDepth": partial(_blocks, to_depth=True),
    "Tile": _tile,
    "TopK": _top_k,
    "Upsample": _resize,
    **dict.fromkeys(("Add", "Div", "Mul", "Pow", "Sub", "Where"), _elementwise),
}
"""How the shape of an output follows, by operator."""
