"""Operators that onnx's reference evaluator computes wrong, or refuses, in NumPy.

Each takes the inputs of a node, of which absent ones are None, and by name its attributes and its
opset; what it gives follows the text of the operator's schema.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable, Sequence
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import onnx_ir as ir

from tensorsplit.core.dimensions import show_shape
from tensorsplit.model.graph.axes import clamped, in_range
from tensorsplit.model.graph.tensors import Array
from tensorsplit.model.run.program import node_failed


def squeeze(data: Array, *, axes: Sequence[int] | None = None, **_: object) -> list[Array]:
    """Remove axes of length 1, in whatever order they are given; without axes all of them."""
    return [np.squeeze(data, None if axes is None else tuple(axes))]


def unsqueeze(data: Array, *, axes: Sequence[int], **_: object) -> list[Array]:
    """Put axes of length 1 at places of the result, in whatever order they are given."""
    return [np.expand_dims(data, tuple(axes))]


def shape(data: Array, *, start: int = 0, end: int | None = None, **_: object) -> list[Array]:
    """Return dimensions from one to another; both are clamped to the rank."""
    return [np.array(data.shape[start:end], np.int64)]


def slice_(data: Array, *operands: Any, **attributes: object) -> list[Array]:
    """Slice data; bounds and steps are attributes before opset 10."""
    given = [*operands, None, None, None, None]
    if not operands:
        given = [attributes.get(name) for name in ("starts", "ends", "axes", "steps")]
    starts, ends, axes, steps = given[:4]
    axes = range(len(starts)) if axes is None else axes
    steps = [1] * len(starts) if steps is None else steps
    taken = [slice(None)] * data.ndim
    for start, end, axis, step in zip(starts, ends, axes, steps, strict=True):
        taken[axis] = clamped(int(start), int(end), int(step), data.shape[axis])
    return [data[tuple(taken)]]


def tile(data: Array, tiles: Array, axis: Array, **_: object) -> list[Array]:
    """Repeat data along one axis (Tile-1); both operands are numbers of the data's own type."""
    repeats = np.ones(data.ndim, np.int64)
    repeats[int(axis.item())] = int(tiles.item())
    return [np.tile(data, repeats)]


class _Windows(NamedTuple):
    """The windows of a pool, whose elements lie along the last axis.

    Attributes:
        values: The elements; 0 for padding.
        in_data: Which of them are elements of the data.
        in_padded: Which of them are elements of the data or of the requested padding.
        places: The place of each of them in the data, for each axis.
    """

    values: Array
    in_data: Array
    in_padded: Array
    places: list[Array]


def _windows(
    data: Array,
    *,
    kernel_shape: Sequence[int],
    strides: Sequence[int] = (),
    dilations: Sequence[int] = (),
    **given: Any,
) -> _Windows:
    """Return the windows of a pool; the data are padded by `_padding`."""
    count = len(kernel_shape)
    offsets = np.array(list(product(*map(range, kernel_shape))))
    places, bounds = [], []
    for at, (side, size) in enumerate(zip(data.shape[2:], kernel_shape, strict=True)):
        stride = strides[at] if strides else 1
        dilation = dilations[at] if dilations else 1
        reach = (size - 1) * dilation + 1
        before, after, length = _padding(at, (side, stride, reach), **given)
        starts = (np.arange(length) * stride - before).reshape(-1, *[1] * (count - at))
        places.append(starts + offsets[:, at] * dilation)
        bounds.append((before, side, after))
    grids = np.broadcast_arrays(*places)
    pairs = list(zip(grids, bounds, strict=True))
    in_data = np.logical_and.reduce([(g >= 0) & (g < side) for g, (_, side, _) in pairs])
    in_padded = np.logical_and.reduce(
        [(g >= -before) & (g < side + after) for g, (before, side, after) in pairs]
    )
    inside: list[Any] = [np.where(in_data, grid, 0) for grid in grids]
    if 0 in data.shape[2:]:  # every window is of padding
        values = np.zeros((*data.shape[:2], *in_data.shape), data.dtype)
    else:
        values = np.where(in_data, data[(..., *inside)], 0).astype(data.dtype)
    return _Windows(values, in_data, in_padded, inside)


def _padding(
    at: int,
    sizes: tuple[int, int, int],
    *,
    opset: int,
    auto_pad: str = "NOTSET",
    pads: Sequence[int] = (),
    ceil_mode: int = 0,
    **_: object,
) -> tuple[int, int, int]:
    """Return the padding before and after the data along an axis, and how many windows there are.

    The sizes are the length of the data, the stride, and the reach of a window.
    """
    side, stride, reach = sizes
    if auto_pad.startswith("SAME"):
        length = -(-side // stride)
        both = max((length - 1) * stride + reach - side, 0)
        less, more = both // 2, both - both // 2
        return (less, more, length) if auto_pad == "SAME_UPPER" else (more, less, length)
    is_given = auto_pad == "NOTSET"
    before, after = (pads[at], pads[at + len(pads) // 2]) if pads and is_given else (0, 0)
    spare = side + before + after - reach
    length = spare // stride + 1
    if ceil_mode and is_given and spare % stride:
        is_left_out = opset >= 22 and length * stride >= side + before
        length += not is_left_out
    if length < 0:
        problem = f"a window of {reach} elements does not fit into {side + before + after}"
        raise node_failed(problem, "run it on longer data")
    return before, after, length


def transposed_pads(
    sides: Sequence[int],
    kernel: Sequence[int],
    *,
    output_shape: Sequence[int],
    strides: Sequence[int] = (),
    dilations: Sequence[int] = (),
    output_padding: Sequence[int] = (),
    auto_pad: str = "NOTSET",
    **_: object,
) -> list[int]:
    """Return the padding of a ConvTranspose whose output has a given shape; none is negative."""
    ends: list[tuple[int, int]] = []
    for at, (side, size, length) in enumerate(zip(sides, kernel, output_shape, strict=True)):
        reach = (size - 1) * (dilations[at] if dilations else 1) + 1
        more = output_padding[at] if output_padding else 0
        whole = (side - 1) * (strides[at] if strides else 1) + more + reach
        both = max(whole - length, 0)
        less = both // 2
        ends.append((less, both - less) if auto_pad == "SAME_UPPER" else (both - less, less))
    return [before for before, _ in ends] + [after for _, after in ends]


def max_pool(data: Array, *, storage_order: int = 0, **given: Any) -> list[Array]:
    """Return the MaxPool, and where its elements are in the data as one list."""
    windows = _windows(data, **given)
    lowest = np.iinfo(data.dtype).min if data.dtype.kind in "iu" else -np.inf
    candidates = np.where(windows.in_data, windows.values, lowest).astype(data.dtype)
    if not candidates.size:
        empty = candidates.reshape(candidates.shape[:-1])
        return [empty, empty.astype(np.int64)]
    best = candidates.argmax(-1)
    first = np.broadcast_to(windows.in_data.argmax(-1), best.shape)
    chosen = np.where(_taken(windows.in_data, best), best, first)
    at, sides = [_taken(places, chosen) for places in windows.places], data.shape[2:]
    if storage_order:
        at, sides = at[::-1], sides[::-1]
    planes = np.arange(math.prod(data.shape[:2])).reshape(*data.shape[:2], *[1] * len(sides))
    index = np.ravel_multi_index(at, sides) if data.size else np.zeros(best.shape)
    index = index + planes * math.prod(sides)
    return [_taken(candidates, chosen), index.astype(np.int64)]


def _taken(array: Array, at: Any) -> Any:
    """Return one element of each window; those of the planes may all be alike."""
    every = np.broadcast_to(array, (*at.shape, array.shape[-1]))
    return np.take_along_axis(every, at[..., None], -1)[..., 0]


def average_pool(data: Array, *, count_include_pad: int = 0, **given: Any) -> list[Array]:
    """Return the AveragePool; padding counts only on request."""
    windows = _windows(data, **given)
    count = (windows.in_padded if count_include_pad else windows.in_data).sum(-1)
    total = windows.values.sum(-1, dtype=np.float32 if data.itemsize < 4 else None)
    return [(total / count).astype(data.dtype)]


def lp_pool(data: Array, *, p: float = 2, **given: Any) -> list[Array]:
    """Return the LpPool: the p-norm of each window."""
    return [_norm(_windows(data, **given).values, p, -1).astype(data.dtype)]


def global_lp_pool(data: Array, *, p: float = 2, **_: object) -> list[Array]:
    """Return the GlobalLpPool: the p-norm of each plane."""
    norm = _norm(data, p, tuple(range(2, data.ndim)), keepdims=True)
    return [norm.astype(data.dtype)]


def _norm(data: Array, p: float, axes: object, *, keepdims: bool = False) -> Any:
    return (np.abs(data) ** p).sum(axes, keepdims=keepdims) ** (1 / p)


def lp_normalization(data: Array, *, p: float = 2, axis: int = -1, **_: object) -> list[Array]:
    """Return the LpNormalization; what has norm 0 stays 0."""
    norm = _norm(data, p, axis, keepdims=True)
    return [np.where(norm == 0, 0, data / norm).astype(data.dtype)]


def group_normalization(
    data: Array,
    scale: Array,
    bias: Array,
    *,
    num_groups: int,
    epsilon: float = 1e-5,
    stash_type: int = ir.DataType.FLOAT,
    **_: object,
) -> list[Array]:
    """Normalize groups of channels in float32 or double, then scale and shift each channel."""
    channels = data.shape[1]
    if num_groups < 1 or channels % num_groups:
        raise ValueError(f"{channels} channels can't be put into {num_groups} groups")
    kind = np.dtype(np.float64 if stash_type == ir.DataType.DOUBLE else np.float32)
    shape = len(data), num_groups, channels // num_groups * math.prod(data.shape[2:])
    grouped = data.astype(kind).reshape(shape)
    if grouped.size:
        spread = grouped.var(2, keepdims=True) + kind.type(epsilon)
        grouped = (grouped - grouped.mean(2, keepdims=True)) / np.sqrt(spread)
    sides = (channels, *[1] * (data.ndim - 2))
    normal = grouped.reshape(data.shape).astype(data.dtype)
    return [scale.reshape(sides) * normal + bias.reshape(sides)]


def local_response_normalization(
    data: Array,
    *,
    size: int,
    alpha: float = 1e-4,
    beta: float = 0.75,
    bias: float = 1.0,
    **_: object,
) -> list[Array]:
    """Normalize each channel by the squares of a region of channels around it (LRN)."""
    before, after = math.floor((size - 1) / 2), math.ceil((size - 1) / 2)
    total = np.empty_like(data)
    for channel in range(data.shape[1]):
        region = data[:, max(0, channel - before) : channel + after + 1]
        total[:, channel] = (region**2).sum(1)
    return [(data / (bias + alpha / size * total) ** beta).astype(data.dtype)]


def mean(first: Array, *others: Array, **_: object) -> list[Array]:
    """Return the mean of tensors that are broadcast."""
    total = sum(others, first)
    return [np.asarray(total / (1 + len(others))).astype(first.dtype)]


def softsign(data: Array, **_: object) -> list[Array]:
    """Return the Softsign of each element."""
    return [np.asarray(data / (1 + np.abs(data)))]


def unique(data: Array, *, axis: int | None = None, sorted: int = 1, **_: object) -> list[Array]:
    """Return the Unique elements, sorted or in the order in which they first occur."""
    found, first, back, counts = np.unique(
        data, return_index=True, return_inverse=True, return_counts=True, axis=axis
    )
    if not sorted:
        order = first.argsort()
        found = found.take(order, 0 if axis is None else axis)
        back, first, counts = order.argsort()[back], first[order], counts[order]
    return [found, *(each.ravel().astype(np.int64) for each in (first, back, counts))]


def quantized(
    data: Array, scale: Array, zero: Array, *, axis: int = 1, block_size: int = 0
) -> list[Array]:
    """Quantise to the integers of the zero point, which limit what is beyond them.

    What is not a number becomes the lowest one, as in ONNX Runtime.
    """
    scale, zero = (_along(each, data.shape, axis, block_size) for each in (scale, zero))
    quotients = np.rint(data / scale).astype(np.float64)
    kind, start = ir.DataType.from_numpy(zero.dtype), zero.astype(np.float64)
    lowest = -(1 << kind.bitwidth - 1) if kind.is_signed() else 0
    highest = lowest + (1 << kind.bitwidth) - 1
    quotients = np.where(np.isnan(quotients), -np.inf, quotients)
    made = np.clip(quotients, lowest - start, highest - start) + start
    return [np.asarray(made, np.int64).astype(zero.dtype)]  # of a number, NumPy made no array


def _along(held: Array, shape: Sequence[int], axis: int, block_size: int) -> Array:
    """Return scales or zero points as they are broadcast: one, one for each element, or block."""
    if held.size == 1:
        return held.reshape(())
    if not _fits_along(held.shape, shape, axis, block_size):
        shapes = show_shape(held.shape), show_shape(shape)
        problem = (
            f"a scale of shape {shapes[0]} does not fit data of shape {shapes[1]}, axis {axis}"
        )
        raise node_failed(problem, "give one scale, or one for each element of the axis or block")
    if block_size:
        return np.repeat(held, block_size, axis).take(range(shape[axis]), axis)
    return held.reshape([-1 if place == axis % len(shape) else 1 for place in range(len(shape))])


def _fits_along(held: Sequence[int], shape: Sequence[int], axis: int, block_size: int) -> bool:
    """Return whether scales of a shape are one for each element of an axis of data, or block."""
    if axis not in range(-len(shape), len(shape)):
        return False
    if not block_size:
        return [*held] == [shape[axis]]
    blocks = [*shape]
    blocks[axis] = -(-shape[axis] // block_size)
    return [*held] == blocks


def requantized(values: Array, scale: Array, zero: Array) -> Array:
    """Scale integers into a quantised type: halves go to the even one before zero is added."""
    bounds = np.iinfo(zero.dtype)
    rounded = np.rint(values * scale) + zero.astype(np.float32)
    clipped: Array = np.clip(rounded, bounds.min, bounds.max)
    return clipped.astype(zero.dtype)


def gather(data: Array, indices: Array, *, axis: int = 0, **_: object) -> list[Array]:
    """Take slices along an axis; onnx 1.20 takes no list of none, nor strided indices.

    NumPy looks at no index where the slices have no elements.
    """
    taken: Any = np.take(data, indices.astype(np.int64), axis)
    made = np.asarray(taken, data.dtype)  # of no dimensions, NumPy gives no array
    _check_unread(made, [(indices, data.shape[axis])])
    return [made]


def _check_unread(made: Array, indices: Iterable[tuple[Array, int]]) -> None:
    """Refuse indices beyond the lengths of their axes where NumPy looks at none: it gives none."""
    for each, length in indices if not made.size else ():
        if not in_range(each, length):
            problem = f"an index is out of range for an axis of length {length}"
            raise node_failed(problem, f"give indices from {-length} to {length - 1}")


def gather_nd(data: Array, indices: Array, *, batch_dims: int = 0, **_: object) -> list[Array]:
    """Take the elements that lists of indices point at, of data without elements too."""
    shape, at = data.shape, indices.shape
    is_batch = 0 <= batch_dims < min(len(shape), len(at))
    if not is_batch or shape[:batch_dims] != at[:batch_dims]:
        problem = f"data {shape} and indices {at} do not share {batch_dims} batch dimensions"
        fix = "give both the same first `batch_dims` dimensions, and more after them"
        raise node_failed(problem, fix)
    lists = at[:-1]
    batch = np.indices(lists, sparse=True)[:batch_dims]
    first = np.zeros(lists, np.int64)  # of an axis of length 1: lists of no indices are lists too
    places = np.moveaxis(indices, -1, 0)
    made = np.asarray(data[None][(first, *batch, *places)], data.dtype)
    _check_unread(made, zip(places, shape[batch_dims:], strict=False))
    return [made]


def gather_elements(data: Array, indices: Array, *, axis: int = 0, **_: object) -> list[Array]:
    """Take elements along an axis; along the others there may be fewer indices than data."""
    shape = list(indices.shape)
    fits = data.ndim == indices.ndim and -data.ndim <= axis < data.ndim
    if fits:
        shape[axis] = data.shape[axis]
    if not fits or any(map(operator.gt, shape, data.shape)):
        problem = f"data {data.shape} and indices {indices.shape} do not fit along axis {axis}"
        fix = "give both one rank, an axis in it, and along the others no more indices than data"
        raise node_failed(problem, fix)
    part = data[tuple(map(slice, shape))]
    return [np.take_along_axis(part, indices.astype(np.int64), axis)]


def global_average_pool(data: Array, **_: object) -> list[Array]:
    """Take the mean along all spatial axes, of no rows too, where the reference divides by 0."""
    return [data.mean(axis=_spatial_axes(data), keepdims=True)]


def global_max_pool(data: Array, **_: object) -> list[Array]:
    """Take the maximum along all spatial axes; the reference takes the last two of any data."""
    return [data.max(axis=_spatial_axes(data), keepdims=True)]


def _spatial_axes(data: Array) -> tuple[int, ...]:
    """Return the axes that a global pool takes together."""
    if data.ndim < 3 or 0 in data.shape[2:]:
        problem = f"the data has shape {data.shape}"
        raise node_failed(problem, "give at least one spatial axis, none of them of size 0")
    return tuple(range(2, data.ndim))


def flatten(data: Array, *, axis: int = 1, **_: object) -> list[Array]:
    """Make a matrix of data, without elements too, of which the reference can't."""
    if not -data.ndim <= axis <= data.ndim:
        problem = f"the axis is {axis}, but the data has rank {data.ndim}"
        raise node_failed(problem, f"give an axis in [{-data.ndim}, {data.ndim}]")
    return [data.reshape(math.prod(data.shape[:axis]), math.prod(data.shape[axis:]))]


def one_hot(
    given: Array, depth: Array, values: Array, *, opset: int, axis: int = -1
) -> list[Array]:
    """Set the elements at indices: one out of range sets none; below 0 is in range since opset 11.

    The depth may be a list of one. The reference of onnx 1.20 takes every index modulo the depth.
    """
    count = int(depth.reshape(()))
    with np.errstate(invalid="ignore"):  # of what is not a number
        indices = given.astype(np.int64)
    if opset >= 11 and given.dtype.kind != "u":
        indices = np.where(indices < 0, indices + count, indices)
    one_more = np.expand_dims(indices, axis)
    places = np.moveaxis(np.arange(count).reshape([-1] + [1] * indices.ndim), 0, axis)
    return [values[(one_more == places).astype(np.intp)]]


def pad(
    data: Array, *operands: Any, opset: int, mode: str = "constant", **attributes: object
) -> list[Array]:
    """Pad data, or cut it where the padding is negative, which the reference does not take."""
    pads, value, axes = [*operands, None, None, None][:3]
    if opset < 11:
        pads = attributes.get("pads", attributes.get("paddings"))
        value = attributes.get("value", 0.0)
    places = range(data.ndim) if axes is None else [int(axis) % data.ndim for axis in axes]
    is_inside = axes is None or np.all((-data.ndim <= axes) & (axes < data.ndim))
    if len(pads) != 2 * len(places) or not is_inside:
        fix = f"give {2 * len(places)} numbers, for axes in [{-data.ndim}, {data.ndim - 1}]"
        raise node_failed(f"the padding is {[*map(int, pads)]} for data of rank {data.ndim}", fix)
    widths = [(0, 0)] * data.ndim
    for place, before, after in zip(places, pads, pads[len(places) :], strict=False):
        widths[place] = int(before), int(after)
    return [_padded(data, widths, mode, 0 if value is None else np.ravel(value)[0])]


def _padded(data: Array, widths: Sequence[tuple[int, int]], mode: str, value: object) -> Any:
    """Pad data, of which negative padding removes elements: those of a constant are added before.

    More may be removed than there are, if as many are added at the other end.
    """
    added = [(max(0, before), max(0, after)) for before, after in widths]
    removed = [(max(0, -before), max(0, -after)) for before, after in widths]
    pad: Any = np.pad
    if mode == "constant":
        return _cut(pad(data, added, constant_values=value), removed).astype(data.dtype)
    return pad(_cut(data, removed), added, mode).astype(data.dtype)


def _cut(data: Array, removed: Sequence[tuple[int, int]]) -> Array:
    """Remove so many elements from the start and the end of each axis."""
    for axis, (side, counts) in enumerate(zip(data.shape, removed, strict=True)):
        if sum(counts) > side:
            problem = f"{sum(counts)} of {side} elements are removed on axis {axis}"
            raise node_failed(problem, "remove no more elements than there are")
    pairs = zip(data.shape, removed, strict=True)
    return data[tuple(slice(start, side - end) for side, (start, end) in pairs)]
