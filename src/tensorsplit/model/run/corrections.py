"""Operators that onnx's reference runs wrong or slowly, or not for all inputs, run right."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from threading import Thread
from typing import Any

import numpy as np
import onnx_ir as ir

from tensorsplit import native
from tensorsplit.core.errors import UNSUPPORTED_NODE, SplitError
from tensorsplit.model.graph.opsets import ATTENTION_MASK
from tensorsplit.model.graph.tensors import Array
from tensorsplit.model.run import kernels
from tensorsplit.model.run.older_versions import alike, upsampled, with_aligned
from tensorsplit.model.run.program import Values, node_failed
from tensorsplit.model.run.reference_calls import Call, RunCall, computed

_LARGE = 1 << 20


_LARGE_FOR_TWO = 1 << 22
"""From so many bytes on fresh pages cost more than copying."""


def _divided(call: Call) -> list[Array]:
    """Run Div, which rounds integers toward zero; the reference of onnx 1.20 rounds them down."""
    aligned = with_aligned(call) if call.step.opset < 7 else call
    left, right = aligned.inputs
    (made,) = aligned.run()
    if made.dtype.kind != "i":
        return [made]
    with np.errstate(all="ignore"):  # the lowest integer by -1
        rest = left - made * right
    is_below = (rest != 0) & ((rest < 0) != (left < 0))
    return [np.asarray(made + is_below, made.dtype)]  # of no dimensions, NumPy gives no array


def _joined(call: Call) -> list[Array]:
    """Join large tensors in memory that an earlier run has left; it needs no fresh pages."""
    if call.step.opset < 4 and "axis" not in call.attributes:
        call = call.given(axis=1)
    first, axis = call.inputs[0], call.attribute("axis")
    if first.nbytes * len(call.inputs) < _LARGE or not -first.ndim <= axis < first.ndim:
        return call.run()
    if any(value.dtype != first.dtype or value.ndim != first.ndim for value in call.inputs):
        return call.run()
    shape = list(first.shape)
    shape[axis] = sum(value.shape[axis] for value in call.inputs)
    made = call.step.pool.empty(shape, first.dtype)
    _join([*call.inputs], axis, made)
    return [made]


def _join(parts: Sequence[Any], axis: int, out: Any) -> None:
    """Join arrays, and where that is worth it with a second thread: NumPy lets it run meanwhile."""
    across = 0 if axis % out.ndim else 1
    has_halves = out.ndim > 1 and {part.shape[across] for part in parts} == {out.shape[across]}
    if out.nbytes < _LARGE_FOR_TWO or not has_halves or native.threads < 2 or out.dtype.hasobject:
        np.concatenate(parts, axis, out=out)
        return
    middle = out.shape[across] // 2
    (*first, start), (*second, end) = zip(
        *(np.split(array, [middle], across) for array in (*parts, out)), strict=True
    )
    other = Thread(target=np.concatenate, args=(second, axis, end))
    other.start()
    np.concatenate(first, axis, start)
    other.join()


def _sampled(call: Call) -> list[Array]:
    """Run GridSample before opset 20, two modes of which have other names, on no points too."""
    data, grid = call.inputs
    shape = *data.shape[:2], *grid.shape[1:-1]
    if 0 in shape:
        return [np.empty(shape, data.dtype)]
    if call.step.opset >= 20:
        return call.run()
    modes = {"bilinear": "linear", "bicubic": "cubic"}
    mode = call.attribute("mode", "bilinear")
    return call.given(mode=modes.get(mode, mode)).run(opset=20)


def _normalized_in_float(call: Call) -> list[Array]:
    """Normalise narrow floats in float, as the reference lets their squares overflow.

    The standard normalises in float, and scales in the type of the scale.
    """
    data, scale, *bias = call.inputs
    if data.dtype.itemsize >= np.dtype(np.float32).itemsize:
        return call.run()
    plain = [np.float32(0) if value is not None else None for value in bias]
    wide = [data.astype(np.float32), np.ones_like(scale, np.float32), *plain]
    result, *others = call.given(*wide).run()
    if result is not None:
        result = result.astype(scale.dtype) * scale
        for value in bias:
            result = result if value is None else result + value
    return [result, *others]


def _attended(call: Call) -> Values:
    """Run Attention; the reference takes the rows of the mask for the queries if it is causal.

    That of onnx 1.20 makes NaN of a mask of booleans then.
    """
    if len(call.inputs) <= ATTENTION_MASK or call.inputs[ATTENTION_MASK] is None:
        return call.run()
    queries, mask = call.inputs[0], call.inputs[ATTENTION_MASK]
    if mask.dtype == bool:
        mask = np.where(mask, 0, -np.inf).astype(queries.dtype)
    if mask.ndim < 2 or mask.shape[-2] == 1:
        mask = np.broadcast_to(mask, (*mask.shape[:-2], queries.shape[-2], mask.shape[-1]))
    return call.given(*call.inputs[:ATTENTION_MASK], mask, *call.inputs[ATTENTION_MASK + 1 :]).run()


def _suppressed(call: Call) -> list[Array]:
    """Run NonMaxSuppression; the reference wants lists, and no limit left out."""
    boxes, scores, *limits = call.inputs
    defaults = [np.zeros(1, np.int64), np.zeros(1, np.float32), np.full(1, -np.inf, np.float32)]
    given = [*limits, None, None, None][:3]
    pairs = zip(given, defaults, strict=True)
    known = [default if value is None else value.reshape(1) for value, default in pairs]
    return call.given(boxes, scores, *known).run()


def _resized(call: Call) -> list[Array]:
    """Run Resize; the reference wants axes that are sorted, and counted from the front.

    What has no elements is left out: older references take that for what it is.
    """
    if call.step.opset < 11:
        return upsampled(call)
    first, *others = call.inputs
    call = call.given(first, *(None if v is None or not v.size else v for v in others))
    axes = call.attribute("axes")
    data, roi, scales, sizes = [*call.inputs, None, None, None][:4]
    places = [axis % data.ndim for axis in (range(data.ndim) if axes is None else axes)]
    if 0 in (shape := _resized_shape(call, places)):
        return [np.empty(shape, data.dtype)]
    if call.attribute("coordinate_transformation_mode") == "pytorch_half_pixel":
        data, scales = _at_start(call, places, shape)
        call = call.given(data, roi, scales, sizes)
    if axes is None:
        return call.run()
    order = np.argsort(places)
    if roi is not None:
        roi = np.concatenate([half[order] for half in np.split(roi, 2)])
    lists = [None if value is None else value[order] for value in (scales, sizes)]
    return call.given(data, roi, *lists, axes=sorted(places)).run()


def _at_start(call: Call, places: Sequence[int], shape: Sequence[int]) -> tuple[object, object]:
    """Keep the first element where one is made: pytorch_half_pixel takes it from position 0.

    The reference takes it from elsewhere. An antialiased one has others in it, too.
    """
    held: list[Any] = [*call.inputs, None, None]
    data, _, scales, *_ = held
    if call.attribute("antialias", 0):
        return data, scales
    kept = data[tuple(slice(1 if length == 1 else None) for length in shape)]
    if shape and scales is not None:
        scales = np.where([shape[place] == 1 for place in places], np.float32(1), scales)
    return kept, scales


def _resized_shape(call: Call, places: Sequence[int]) -> list[int]:
    """Return the shape that sizes or scales make on some axes; without a 0 if others have a say."""
    data, _, scales, sizes = [*call.inputs, None, None, None][:4]
    shape = [*data.shape]
    is_cropped = call.attribute("coordinate_transformation_mode") == "tf_crop_and_resize"
    if is_cropped or call.attribute("keep_aspect_ratio_policy", "stretch") != "stretch":
        return []
    for at, place in enumerate(places):
        shape[place] = int(shape[place] * scales[at] if sizes is None else sizes[at])
    return shape


def _reshaped(call: Call) -> list[Array]:
    """Run Reshape; the reference takes any number below 0 for -1."""
    if len(call.inputs) > 1 and (call.inputs[1] < -1).any():
        problem = f"the new shape is {call.inputs[1].tolist()}"
        raise node_failed(problem, "no number is below -1, which stands for what the others leave")
    return call.run()


def _transposed(call: Call) -> list[Array]:
    """Run ConvTranspose, each group by itself, as the reference mixes up their weights.

    Where the shape of the output is given, the padding is what is left over.
    """
    data, weights, *rest = call.inputs
    if "output_shape" in call.attributes:
        held = {name: attribute.value for name, attribute in call.attributes.items()}
        pads = kernels.transposed_pads(data.shape[2:], weights.shape[2:], **held)
        call = call.given(pads=pads, auto_pad="NOTSET")
    bias: Any = rest[0] if rest else None
    groups = call.attribute("group", 1)
    if groups == 1:
        return call.run()
    shares: list[Any] = [np.split(data, groups, 1), np.split(weights, groups)]
    shares.append([None] * groups if bias is None else np.split(bias, groups))
    parts = [call.given(*share, group=1).run()[0] for share in zip(*shares, strict=True)]
    return [np.concatenate(parts, 1)]


def _also_without_rows(run: RunCall) -> RunCall:
    """Return a kernel that runs batches without rows, too: it runs one of zeros and drops it."""

    def run_all(call: Call) -> Values:
        data, *others = call.inputs
        if data.shape[0]:
            return run(call)
        one = np.zeros((1, *data.shape[1:]), data.dtype)
        return [made[:0] for made in run(call.given(one, *others))]

    return run_all


def _also_of_rank_0(call: Call) -> Values:
    """Run an operator whose reference wants data of rank 1 or more: on a list of one."""
    data = call.inputs[0]
    if data.ndim:
        return call.run()
    return [np.asarray(made[0]) for made in call.given(data.reshape(1)).run()]


def _lost(call: Call) -> Values:
    """Run a loss, of no labels too: their sum is 0, and their mean is not a number."""
    data, labels, *_ = call.inputs
    if labels.size:
        return call.run()
    reduced = {"mean": np.array(np.nan), "sum": np.array(0)}
    loss = reduced.get(call.attribute("reduction", "mean"), np.empty(labels.shape))
    return [loss.astype(data.dtype), data]


def _cumulated(call: Call) -> Values:
    """Run CumSum or CumProd along an axis that may be a list of one, as engines take it."""
    data, axis = call.inputs
    return call.given(data, axis.reshape(())).run()


def _quantized_by_range(call: Call) -> list[Array]:
    """Run DynamicQuantizeLinear, of no elements as of a 0, which is in every range."""
    (data,) = call.inputs
    if data.size:
        return call.run()
    _, *range_of_zero = call.given(np.zeros(1, data.dtype)).run()
    return [np.empty(data.shape, np.uint8), *range_of_zero]


def _quantized(call: Call) -> Values:
    """Run QuantizeLinear, which divides in the type of the scale and limits what it gives.

    The reference divides in the wider type, and takes what is beyond 32 bits for the lowest number.
    """
    data, scale, zero = [*call.inputs, None][:3]
    precision = call.attribute("precision") or ir.DataType.from_numpy(scale.dtype)
    if precision not in (ir.DataType.INT32, ir.DataType.FLOAT8E8M0):  # they hold no quotients
        data, scale = (each.astype(ir.DataType(precision).numpy()) for each in (data, scale))
    given = None if zero is None else ir.DataType.from_numpy(zero.dtype)
    kind = ir.DataType(call.attribute("output_dtype") or given or ir.DataType.UINT8)
    if not kind.is_integer() or given not in (None, kind):
        return call.given(data, scale, zero).run()
    zero = np.zeros_like(scale, kind.numpy()) if zero is None else zero
    names = {"axis", "block_size"} & call.attributes.keys()
    return kernels.quantized(data, scale, zero, **{each: call.attribute(each) for each in names})


def _recurrent(*usual: str) -> RunCall:
    """Return a kernel of LSTM, GRU or RNN that runs each row of the batch by its length.

    The reference takes all rows for as long as the data, knows the usual activations only, and
    limits nothing.
    """

    def run(call: Call) -> Values:
        activations = list(call.attribute("activations", usual))
        changes = usual and activations not in (list(usual), [*usual, *usual])
        if changes or any(call.attribute(name) for name in ("clip", "input_forget")):
            problem = "its activations, clip or input_forget are not the usual ones"
            raise SplitError(UNSUPPORTED_NODE, problem, "run the model on another engine")
        data, *others = call.inputs
        lengths = others[3] if len(others) > 3 else None
        by_batch = call.attribute("layout", 0)
        if not data.shape[by_batch]:
            return _without_steps(call, by_batch)
        if lengths is None or (lengths == data.shape[by_batch]).all():
            return _stepped(call)
        rows = [_row(call, row, int(length), by_batch) for row, length in enumerate(lengths)]
        axes = [0] * 3 if by_batch else [2, 1, 1]
        return [np.concatenate(parts, axis) for axis, *parts in zip(axes, *rows, strict=False)]

    return run


def _stepped(call: Call) -> list[Array]:
    """Run a recurrent layer as one of opset 14; the reference of onnx 1.20 needs that of RNN.

    Before opset 7 `output_sequence` = 0 lets a node name no first output; that changes no value.
    """
    attributes = {k: a for k, a in call.attributes.items() if k != "output_sequence"}
    return call._replace(attributes=attributes).run(opset=max(14, call.step.opset))


def _without_steps(call: Call, by_batch: int) -> list[Array]:
    """Give the states as they begin, after no step; the reference can't."""
    data, weights, recurrent, *others = call.inputs
    count = 2 if call.step.op_type == "LSTM" else 1
    states: list[Array | None] = [*others[2:4], None, None][:count]
    widths = [(0, int(axis == by_batch)) for axis in range(3)]
    every = _stepped(call.given(np.pad(data, widths), weights, recurrent))[0]
    nothing = np.zeros_like(every.take(0, by_batch))
    kept = [nothing if start is None else start for start in states]
    return [every.take(range(0), by_batch), *kept]


def _row(call: Call, row: int, length: int, by_batch: int) -> list[Array]:
    """Run one row of a batch; what follows its last step is zero."""
    data, weights, recurrent, biases, _, *states = call.inputs
    longest = data.shape[by_batch]
    if not 0 < length <= longest:
        raise node_failed(f"a row of {longest} steps has the length {length}", "give 1 or more")
    batch, steps = 1 - by_batch, by_batch
    mine = data.take([row], batch).take(range(length), steps)
    starts = [
        each if place > 1 or each is None else each.take([row], batch)
        for place, each in enumerate(states)
    ]
    lengths = np.array([length], np.int32)
    given = call.given(mine, weights, recurrent, biases, lengths, *starts)
    every, *last = _stepped(given)
    missing = [(0, longest - length if axis == steps else 0) for axis in range(4)]
    return [np.pad(every, missing), *last]


def _quantized_product(call: Call) -> list[Array]:
    """Run QLinearMatMul; the reference rounds after it added the zero point: halves get odd.

    It also takes the scales of rows for those of columns.
    """
    left, left_scale, left_zero, right, right_scale, right_zero, scale, zero = call.inputs
    if left.ndim > 1:
        rows = [each[:, np.newaxis] if each.ndim == 1 else each for each in (left_scale, left_zero)]
        left_scale, left_zero = rows
    if zero.dtype.kind not in "iu":
        call = call.given(left, left_scale, left_zero, *call.inputs[3:])
        return call.run()
    wide = [left.astype(np.int32) - left_zero, right.astype(np.int32) - right_zero]
    product = np.matmul(*wide).astype(np.float32)
    return [kernels.requantized(product, left_scale * right_scale / scale, zero)]


def _quantized_convolution(call: Call) -> list[Array]:
    """Run a quantised convolution as a product."""
    data, scale, zero, weights, weight_scale, weight_zero, out_scale, out_zero, *bias = call.inputs
    (found,) = call.given(data, weights, zero, weight_zero).run(op_type="ConvInteger")
    along = (-1, *[1] * (data.ndim - 2))
    if bias and bias[0] is not None:
        found = found + bias[0].reshape(along)
    factors = (scale * weight_scale / out_scale).reshape(along)
    return [kernels.requantized(found.astype(np.float32), factors, out_zero)]


def _log_sum(call: Call) -> list[Array]:
    """Run ReduceLogSum, but not of integers, which opset 28 removed."""
    if call.inputs[0].dtype.kind in "iu":
        problem = "the standard does not say how to round logarithms of integers"
        raise SplitError(UNSUPPORTED_NODE, problem, "cast the data to a float type")
    return call.run()


def _log_sum_exp(call: Call) -> list[Array]:
    """Run ReduceLogSumExp; the reference can't reduce what has rank 0."""
    data = call.inputs[0]
    return _log_sum(call) if data.ndim or data.dtype.kind in "iu" else [data]


def _aligned(call: Call) -> Values:
    """Run RoiAlign; of planes without elements all points of a region are outside, and so 0."""
    data, regions, *_ = call.inputs
    if 0 not in data.shape[2:]:
        return call.run()
    sides = (call.attribute(name, 1) for name in ("output_height", "output_width"))
    return [np.zeros((len(regions), data.shape[1], *sides), data.dtype)]


def _cast_like(call: Call) -> list[Array]:
    """Run CastLike with a mode of rounding, which the reference has of Cast alone."""
    if "round_mode" not in call.attributes:
        return call.run()
    data, like = call.inputs
    cast = call.given(data, to=ir.DataType.from_numpy(like.dtype).value)
    return cast._replace(made=[]).run(op_type="Cast")  # `like` may be of another type next time


def _of_own_type(call: Call) -> list[Array]:
    """Run ReduceSumSquare; the reference adds integers of 32 bits up as those of 64."""
    return [result.astype(call.inputs[0].dtype, copy=False) for result in call.run()]


CORRECTED: Mapping[str, RunCall] = {
    "Attention": _attended,
    "AveragePool": computed(kernels.average_pool),
    "CastLike": _cast_like,
    "Col2Im": _also_without_rows(Call.run),
    "Concat": _joined,
    "ConvTranspose": _also_without_rows(_transposed),
    "CumProd": _cumulated,
    "CumSum": _cumulated,
    "Div": _divided,
    "DynamicQuantizeLinear": _quantized_by_range,
    "Flatten": computed(kernels.flatten),
    "GRU": _recurrent("Sigmoid", "Tanh"),
    "Gather": computed(kernels.gather),
    "GatherElements": computed(kernels.gather_elements),
    "GatherND": computed(kernels.gather_nd),
    "GlobalAveragePool": computed(kernels.global_average_pool),
    "GlobalLpPool": computed(kernels.global_lp_pool),
    "GlobalMaxPool": computed(kernels.global_max_pool),
    "GridSample": _sampled,
    "GroupNormalization": computed(kernels.group_normalization),
    "LRN": computed(kernels.local_response_normalization),
    "LSTM": _recurrent("Sigmoid", "Tanh", "Tanh"),
    "LayerNormalization": _normalized_in_float,
    "LpNormalization": computed(kernels.lp_normalization),
    "LpPool": computed(kernels.lp_pool),
    "MaxPool": computed(kernels.max_pool),
    "Mean": alike(computed(kernels.mean)),
    "NegativeLogLikelihoodLoss": _lost,
    "NonMaxSuppression": _suppressed,
    "OneHot": computed(kernels.one_hot),
    "Pad": computed(kernels.pad),
    "QLinearConv": _quantized_convolution,
    "QLinearMatMul": _quantized_product,
    "QuantizeLinear": _quantized,
    "RMSNormalization": _normalized_in_float,
    "RNN": _recurrent(),
    "RandomNormalLike": _also_of_rank_0,
    "RandomUniformLike": _also_of_rank_0,
    "ReduceLogSum": _log_sum,
    "ReduceLogSumExp": _log_sum_exp,
    "ReduceSumSquare": _of_own_type,
    "Reshape": _reshaped,
    "Resize": _resized,
    "Shape": computed(kernels.shape),
    "RoiAlign": _aligned,
    "SimplifiedLayerNormalization": _normalized_in_float,
    "Slice": computed(kernels.slice_),
    "SoftmaxCrossEntropyLoss": _lost,
    "Softsign": computed(kernels.softsign),
    "StringSplit": _also_of_rank_0,
    "Unique": computed(kernels.unique),
    "Upsample": upsampled,
}
"""What runs an operator at every opset that `OLDER` leaves."""
