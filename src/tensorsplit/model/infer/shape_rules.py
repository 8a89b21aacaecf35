"""Dimensions as expressions of named ones, where onnx's own inference leaves them open.

Each rule gives the shape of an output of an operator as far as it follows; what onnx knows already
goes before it, and what it refuses does not come here. A name stands for any number from 0 on:
nothing is assumed of it.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import partial, reduce
from itertools import zip_longest
from typing import TypeAlias

from tensorsplit.core.dimensions import (
    Dim,
    Shape,
    add,
    are_known,
    combine,
    is_at_least,
    is_known,
    larger,
    product_of,
    quotient,
    smaller,
    times,
)
from tensorsplit.model.graph.calculation import TO_THE_END
from tensorsplit.model.graph.facts import NotKnownError
from tensorsplit.model.graph.opsets import ATTENTION_PAST_KEY
from tensorsplit.model.infer.elements import WHOLE, Node, elements_of, slice_bounds

_ShapeFunction: TypeAlias = Callable[[Node], Shape]
_Window: TypeAlias = tuple[Dim, int, int, int]


def rule_of(op_type: str, place: int) -> _ShapeFunction | None:
    """Return the rule for the shape of an output of an operator of ONNX's own, by its place."""
    return (_LATER.get(place, {}) if place else _RULES).get(op_type)


def followed_shape(node: Node, place: int = 0) -> Shape | None:
    """Return the shape of an output of a node of ONNX's own; None where nothing follows."""
    rule = rule_of(node.proto.op_type, place)
    with suppress(NotKnownError):
        return None if rule is None else rule(node)
    return None


def _concat(node: Node) -> Shape:
    shapes = [node.tensor(index).shape for index in range(len(node.inputs))]
    known = [shape for shape in shapes if shape is not None]
    if not known:
        raise NotKnownError
    axis = node.attribute("axis", 1)
    made = [reduce(_merged_dim, dims) for dims in zip(*known, strict=True)]
    made[axis] = (
        reduce(add, [shape[axis] for shape in known]) if len(known) == len(shapes) else None
    )
    return tuple(made)


def _merged_dim(left: Dim, right: Dim) -> Dim:
    """Return the dimension that two shapes share, as far as it is known."""
    return right if left is None or is_known(right) else left


def _flatten(node: Node) -> Shape:
    shape, axis = node.shape(0), node.attribute("axis", 1)
    return product_of(shape[:axis]), product_of(shape[axis:])


def _reshape(node: Node) -> Shape:
    data, requested = node.tensor(0).shape, node.operand("shape", 1, 5)
    keeps_zeros = bool(node.attribute("allowzero", 0))
    if data is None:
        return tuple(
            dim if is_at_least(dim, 0 if keeps_zeros else 1) else None for dim in requested
        )
    made = [_reshaped(at, requested, data, keeps_zeros=keeps_zeros) for at in range(len(requested))]
    open_places = [at for at, dim in enumerate(made) if dim is None and requested[at] != 0]
    if len(open_places) != 1:
        return tuple(made)
    (place,) = open_places
    others = {at: dim for at, dim in enumerate(made) if at != place}
    if requested[place] == -1:  # beside a 0 it is refused
        kept = {at for at in others if requested[at] == 0}
        rest = (dim for at, dim in enumerate(data) if at not in kept)
        made[place] = quotient(rest, (dim for at, dim in others.items() if at not in kept))
    elif all(is_at_least(dim, 1) for dim in others.values()):
        made[place] = quotient(data, others.values())
    return tuple(made)


def _reshaped(at: int, requested: Shape, data: Shape, *, keeps_zeros: bool) -> Dim:
    """Return a dimension as a Reshape takes it; None if it may be -1, or a 0 for another."""
    dim, held = requested[at], data[at] if at < len(data) else None
    if dim == 0 and not keeps_zeros:
        return held
    if is_at_least(dim, 0 if keeps_zeros else 1):
        return dim
    if not is_at_least(dim, 0):
        return None
    # A 0 stands for what the data has there: that is not there, is 0 too, or does not fit
    is_zero_too = is_known(quotient([dim], [held])) or quotient([held], [dim]) is not None
    return dim if at >= len(data) or is_zero_too else None


def _elementwise(node: Node) -> Shape:
    return reduce(_broadcast, map(node.shape, range(len(node.inputs))))


def _broadcast(left: Shape, right: Shape) -> Shape:
    pairs = zip_longest(reversed(left), reversed(right), fillvalue=1)
    return tuple(_broadcast_dim(a, b) for a, b in pairs)[::-1]


def _broadcast_dim(left: Dim, right: Dim) -> Dim:
    for one, other in ((left, right), (right, left)):
        if one == 1:
            return other
        if is_known(one):
            return one
    return left if left is not None and str(left) == str(right) else None


def _tile(node: Node) -> Shape:
    return tuple(times(*dims) for dims in zip(node.shape(0), node.elements(1), strict=True))


def _pad(node: Node) -> Shape:
    made, pads = list(node.shape(0)), node.operand("pads", 1, 11)
    axes = node.elements(3) if node.has(3) else range(len(made))
    count = len(axes)
    for axis, before, after in zip(axes, pads[:count], pads[count:], strict=True):
        place = _known(axis)
        made[place] = larger(0, add(made[place], add(before, after)))
    return tuple(made)


def _known(dim: Dim) -> int:
    if not is_known(dim):
        raise NotKnownError
    return int(dim)


def _slice(node: Node) -> Shape:
    made = list(node.shape(0))
    for start, end, axis, step in slice_bounds(node):
        place = _known(axis)
        made[place] = _sliced(made[place], start, end, step)
    return tuple(made)


def _sliced(dim: Dim, start: Dim, end: Dim, step: Dim) -> Dim:
    """Return how many elements a slice has."""
    if dim == 0:
        return 0
    if not is_known(step) or step == 0:
        return None
    if step < 0:
        is_last = is_known(start) and (start == -1 or start >= TO_THE_END)
        is_whole = is_known(end) and end < -TO_THE_END and is_last
        return _rounded_up(dim, -step) if is_whole else None
    if _never_begins(start, end):
        return 0
    last = _end(end, dim)
    count = None if _is_open(start) else combine(operator.sub, last, start)
    if is_known(start) and start < 0:  # from there, or from 0 where there are fewer
        count = last if start <= -TO_THE_END else smaller(last, combine(operator.sub, count, dim))
    return _rounded_up(larger(0, count), step)


def _never_begins(start: Dim, end: Dim) -> bool:
    """Return whether a slice forwards ends where it starts, or before, along any axis."""
    if is_known(start) and is_known(end) and (start < 0) == (end < 0):
        return end <= start
    return start is not None and start == end


def _counted(start: Dim, end: Dim, step: int) -> Dim:
    """Return how many numbers there are from one to before another."""
    if start is not None and start == end:
        return 0
    return _rounded_up(larger(0, combine(operator.sub, end, start)), step)


def _end(bound: Dim, dim: Dim) -> Dim:
    """Return the end of a slice as a place before which it ends, counted from the front.

    It may be below 0 where that is before the start. None where it can't be known.
    """
    if _is_open(bound):
        return None
    if is_known(bound) and bound < 0:
        return 0 if bound <= -TO_THE_END else add(dim, bound)
    return dim if is_known(bound) and bound >= TO_THE_END else smaller(bound, dim)


def _is_open(bound: Dim) -> bool:
    """Return whether it can't be known of a bound of a slice from where it counts."""
    return not is_known(bound) and not is_at_least(bound, 0)


def _rounded_up(dim: Dim, divisor: int) -> Dim:
    if divisor == 1:
        return dim
    return combine(lambda a, b: (a + (b - 1)) // b, dim, divisor)


def _range(node: Node) -> Shape:
    start, limit, step = map(node.element, range(3))
    if not isinstance(step, int | float) or step == 0:
        raise NotKnownError
    first, last = (start, limit) if step > 0 else (limit, start)
    if is_known(step) and node.tensor(0).element_type in WHOLE:
        return (_counted(first, last, abs(step)),)
    if isinstance(first, int | float) and isinstance(last, int | float) and first >= last:
        return (0,)
    raise NotKnownError


def _resize(node: Node) -> Shape:
    if node.attribute("keep_aspect_ratio_policy", "stretch") != "stretch":
        raise NotKnownError
    made, first = list(node.shape(0)), 1 if node.opset < 11 else 2
    axes = node.attribute("axes") or range(len(made))
    scales = elements_of(node.tensor(first)) if node.has(first) else node.attribute("scales")
    sizes = elements_of(node.tensor(3)) if first == 2 else None
    for place, axis in enumerate(axes):
        if sizes is not None and len(sizes) == len(axes):
            made[axis] = sizes[place]
        elif scales is not None and len(scales) == len(axes):
            made[axis] = _scaled(made[axis], scales[place])
        else:
            made[axis] = None
    return tuple(made)


def _scaled(dim: Dim, scale: Dim) -> Dim:
    """Return a dimension times a float, rounded down, only where no rounding of floats matters."""
    if not isinstance(scale, (int, float)) or scale <= 0:
        return None
    dividend, divisor = float(scale).as_integer_ratio()
    if divisor > 1 << 10 or dividend > 1 << 10:
        return None
    return combine(lambda a, b: a * dividend // b, dim, divisor)


def _window(node: Node, weights_at: int | None) -> Shape:
    """Return the shape after a convolution or pooling, which slides a window along the data."""
    data, padding = node.shape(0), node.attribute("auto_pad", "NOTSET")
    is_ceil = node.attribute("ceil_mode", 0)
    # onnxruntime forgets the padding then
    is_doubtful = weights_at is None and {*(node.attribute("dilations") or ())} - {1}
    weights = (data[1], None) if weights_at is None else node.shape(weights_at)
    made = [data[0], weights[0]]
    for dim, window in zip(data[2:], _windows(node, weights[2:]), strict=True):
        reach, stride, before, after = window
        if padding.startswith("SAME"):
            made.append(None if is_doubtful else _rounded_up(dim, stride))
            continue
        spare = add(dim, add(0 if padding == "VALID" else before + after, times(-1, reach)))
        count = add(combine(operator.floordiv, spare, stride), 1)
        if is_ceil:
            has_last = _has_last(node, spare, window) if padding == "NOTSET" else None
            count = None if has_last is None else add(count, int(has_last))
        made.append(count)
    return tuple(made)


def _has_last(node: Node, spare: Dim, window: _Window) -> bool | None:
    """Return whether one more window reaches beyond the end, if it starts before; None if unknown.

    One that starts beyond the data is left out since opset 22, and by onnxruntime before.
    """
    reach, stride, _, after = window
    if not is_known(spare) or not is_known(reach):
        return None
    missing = int(-spare % stride)
    if missing and missing + after >= reach:
        return False if node.opset >= 22 else None
    return missing > 0


def _transposed(node: Node) -> Shape:
    """Return the shape after a transposed convolution; unknown where padding would be negative."""
    data, weights, padding = node.shape(0), node.shape(1), node.attribute("auto_pad", "NOTSET")
    sides, windows = data[2:], _windows(node, weights[2:])
    extra = node.attribute("output_padding") or (0,) * len(sides)
    wanted = node.attribute("output_shape") or (None,) * len(sides)
    made = [data[0], times(weights[1], node.attribute("group", 1))]
    for dim, more, side, window in zip(sides, extra, wanted, windows, strict=True):
        reach, stride, before, after = window
        is_free = side is None and not padding.startswith("SAME")
        whole = add(times(dim, stride), add(reach, more - stride))
        if is_free:
            made.append(add(whole, 0 if padding == "VALID" else -before - after))
        else:
            same = times(dim, stride)
            made.append(side or (same if is_at_least(whole, same) else None))
    return tuple(made)


def _windows(node: Node, sides: Shape) -> Iterator[_Window]:
    """Return the window on each axis: its reach, its stride, the padding before and after.

    The kernel has the sides that the weights have, if the node does not give them.
    """
    kernel = node.attribute("kernel_shape") or sides
    count = len(kernel)
    dilations = node.attribute("dilations") or (1,) * count
    pads = node.attribute("pads") or (0,) * 2 * count
    reaches = (add(times(add(size, -1), d), 1) for size, d in zip(kernel, dilations, strict=True))
    strides = node.attribute("strides") or (1,) * count
    return zip(reaches, strides, pads[:count], pads[count:], strict=True)


def _blocks(node: Node, *, to_depth: bool) -> Shape:
    (batch, depth, *sides), size = node.shape(0), node.attribute("blocksize")
    if to_depth:
        return batch, times(depth, size * size), *(quotient([side], [size]) for side in sides)
    return batch, quotient([depth], [size * size]), *(times(side, size) for side in sides)


def _attention(node: Node) -> Shape:
    """Return the shape after Attention; without an axis of heads these stand side by side."""
    query, value = node.shape(0), node.tensor(2).shape
    length = None if value is None else value[-1]
    if len(query) == 3:
        heads = node.attribute("q_num_heads")
        length = quotient([length, heads], [node.attribute("kv_num_heads")])
    return *query[:-1], length


def _scores(node: Node) -> Shape:
    """Return the shape of the products of queries and keys, those of before too."""
    query, key = node.shape(0), node.shape(1)
    heads = node.attribute("q_num_heads") if len(query) == 3 else query[1]
    before = node.shape(ATTENTION_PAST_KEY)[-2] if node.has(ATTENTION_PAST_KEY) else 0
    return query[0], heads, query[-2], add(key[-2], before)


def _top_k(node: Node) -> Shape:
    made = list(node.shape(0))
    made[node.attribute("axis", -1)] = node.element(1)
    return tuple(made)


def _fourier(node: Node) -> Shape:
    """Return the shape after DFT; half the frequencies of a real signal are enough."""
    made = list(node.shape(0))
    is_half, is_inverse = node.attribute("onesided", 0), node.attribute("inverse", 0)
    if is_half or node.has(1):
        axis = node.attribute("axis", 1) if node.opset < 20 else -2
        axis = node.element(2) if node.has(2) else axis
        if not is_known(axis):
            return (*[None] * (len(made) - 1), 1 if is_half and is_inverse else 2)
        length = times(2, add(made[axis], -1)) if is_half and is_inverse else made[axis]
        length = node.element(1) if node.has(1) else length
        made[axis] = _half(length) if is_half and not is_inverse else length
    return (*made[:-1], 1 if is_half and is_inverse else 2)


def _half(length: Dim) -> Dim:
    """Return how many frequencies of a real signal are different."""
    return add(combine(operator.floordiv, length, 2), 1)


def _short_fourier(node: Node) -> Shape:
    """Return the shape after STFT, whose frames are as long as its window."""
    batch, whole, _ = node.shape(0)
    length = whole
    if node.has(3):
        length = node.element(3)
    elif node.has(2):
        (length,) = node.shape(2)
    step = node.element(1)
    spare = add(whole, times(-1, length))
    frames = add(combine(operator.floordiv, spare, step), 1) if is_known(step) and step else None
    return batch, frames, _half(length) if node.attribute("onesided", 1) else length, 2


def _one_hot(node: Node) -> Shape:
    shape, length = node.shape(0), node.element(1)
    axis = node.attribute("axis", -1) % (len(shape) + 1)
    return (*shape[:axis], length, *shape[axis:])


def _compress(node: Node) -> Shape:
    taken, axis = node.elements(1), node.attribute("axis")
    if not are_known(taken):
        raise NotKnownError
    count = sum(map(bool, taken))
    if axis is None:
        return (count,)
    made = list(node.shape(0))
    made[axis] = count
    return tuple(made)


def _non_zero(node: Node) -> Shape:
    """Return the shape of the places in data without elements, which has none."""
    if 0 not in node.shape(0):
        raise NotKnownError
    return len(node.shape(0)), 0


def _selected(node: Node) -> Shape:
    """Return the shape of the boxes that NonMaxSuppression selects where there are none."""
    shapes = [node.tensor(place).shape or () for place in (0, 1)]
    most = node.tensor(2).constant if node.has(2) else (0,)
    if most != (0,) and not any(0 in shape for shape in shapes):
        raise NotKnownError
    return 0, 3


def _squeeze(node: Node) -> Shape:
    """Return the shape after one axis was removed that is known only at run time."""
    if node.tensor(1).shape != (1,):
        raise NotKnownError
    return (None,) * (len(node.shape(0)) - 1)


def _unsqueeze(node: Node) -> Shape:
    """Return the shape of a number with more axes, which are of length 1 wherever they are.

    Of other data, of which the axes are known only at run time, the rank is known by their number.
    """
    shape = node.shape(0)
    if not shape:
        return (1,) * len(node.operand("axes", 1, 13))
    match node.tensor(1).shape:
        case (int(count),):
            return (None,) * (len(shape) + count)
    raise NotKnownError


def _reduced(node: Node) -> Shape:
    """Return the shape after a reduction along axes that are known only at run time."""
    if node.attribute("keepdims", 1):
        return tuple(dim if dim == 1 else None for dim in node.shape(0))
    return _squeeze(node)


REDUCTIONS = (
    *("ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMax", "ReduceMean"),
    *("ReduceMin", "ReduceProd", "ReduceSum", "ReduceSumSquare"),
)
"""The operators that reduce along axes."""

_RULES: Mapping[str, _ShapeFunction] = {
    "Attention": _attention,
    "AveragePool": partial(_window, weights_at=None),
    "Compress": _compress,
    "Concat": _concat,
    "ConstantOfShape": lambda node: node.elements(0),
    "Conv": partial(_window, weights_at=1),
    "ConvInteger": partial(_window, weights_at=1),
    "ConvTranspose": _transposed,
    "DFT": _fourier,
    "DepthToSpace": partial(_blocks, to_depth=False),
    "Expand": lambda node: _broadcast(node.shape(0), node.elements(1)),
    "Flatten": _flatten,
    "LpPool": partial(_window, weights_at=None),
    "MaxPool": partial(_window, weights_at=None),
    "NonMaxSuppression": _selected,
    "NonZero": _non_zero,
    "OneHot": _one_hot,
    "Pad": _pad,
    "QLinearConv": partial(_window, weights_at=3),
    "Range": _range,
    "Reshape": _reshape,
    "Resize": _resize,
    "Slice": _slice,
    "STFT": _short_fourier,
    "SpaceToDepth": partial(_blocks, to_depth=True),
    "Squeeze": _squeeze,
    "Tile": _tile,
    "TopK": _top_k,
    "Unsqueeze": _unsqueeze,
    "Upsample": _resize,
    **dict.fromkeys(REDUCTIONS, _reduced),
    **dict.fromkeys(("Add", "Div", "Mul", "Pow", "Sub", "Where"), _elementwise),
}
"""How the shape of the first output follows, by operator."""

_LATER: Mapping[int, Mapping[str, _ShapeFunction]] = {
    1: {name: _RULES[name] for name in ("MaxPool", "TopK")},
    3: {"Attention": _scores},
}
"""How the shapes of later outputs follow, by their place."""

COUNTED_WRONG = frozenset({"Range"})
"""Operators for which onnx infers no elements where it can't count them."""

ALONE = frozenset(
    {
        # a window longer than the data counts as one; one that starts beyond the data counts
        *("AveragePool", "LpPool", "MaxPool", "Conv", "ConvInteger", "QLinearConv"),
        "Attention",  # a length that is not known counts as 0
        "ConvTranspose",  # output_padding is added to what SAME gives
        "DFT",  # a length that is not known is that of the data
        "STFT",  # onesided is ignored where the window gives the length
    }
)
"""Operators of which onnx infers wrong shapes in every version, as `docs/errata.md` lists them."""
