"""Checks of a node's operands by the standard, where onnx's reference takes any others.

The reference then gives something: data of another shape, or elements from a wrong place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from typing import TypeAlias

from tensorsplit.core.dimensions import show_shape
from tensorsplit.model.run.program import Values, described, node_failed
from tensorsplit.model.run.reference_calls import Call, RunCall

Check: TypeAlias = Callable[[Call], Iterator[str]]
"""Yields what would be right, if the operands are not."""


def checked(run: RunCall, checks: Sequence[Check]) -> RunCall:
    """Return a kernel that runs an operator on right operands and refuses others (TS510)."""

    def run_checked(call: Call) -> Values:
        for fit in chain.from_iterable(check(call) for check in checks):
            held = ", ".join(map(described, call.inputs))
            raise node_failed(f"{call.step.op_type} failed on {held}", fit)
        return run(call)

    return run_checked


def _of_rank(lowest: int, highest: int | None = None) -> Check:
    def check(call: Call) -> Iterator[str]:
        rank = call.inputs[0].ndim
        if rank < lowest or (highest is not None and rank > highest):
            yield f"give data of rank {lowest}{' or more' if highest is None else ''}"

    return check


def _with_numbers_by_channel(call: Call) -> Iterator[str]:
    data, *others = call.inputs
    channels = data.shape[1:2] or (1,)
    if call.attribute("spatial", 1) and any(each.shape != channels for each in others):
        yield f"give a number for each channel, shape {show_shape(channels)}"


def _broadcast_to_data(call: Call) -> Iterator[str]:
    data, *others = call.inputs
    if not all(each is None or _is_broadcast(each.shape, data.shape) for each in others):
        yield f"give a scale and a bias that are broadcast to shape {show_shape(data.shape)}"


def _is_broadcast(given: Sequence[int], shape: Sequence[int]) -> bool:
    ends = zip(reversed(given), reversed(shape), strict=False)
    return len(given) <= len(shape) and all(one in (1, other) for one, other in ends)


def _within_its_axis(call: Call) -> Iterator[str]:
    """Check a condition beyond the axis, which NumPy looks at only where there are elements."""
    data, condition = call.inputs
    axis = call.attribute("axis", None)
    length = data.size if axis is None else data.shape[axis]
    if condition[length:].any():
        yield f"give a condition of which nothing after the first {length} is true"


def _within_limits(call: Call) -> Iterator[str]:
    data, *limits = call.inputs
    for limit in limits:  # ONNX Runtime takes a list of one, too
        if limit is not None and (limit.size != 1 or limit.ndim > min(1, data.ndim)):
            yield "give one number as each limit"


def _of_one_batch(call: Call) -> Iterator[str]:
    first, second, *_ = call.inputs
    if first.shape[:1] != second.shape[:1]:
        yield "give the first two the same batch, which is axis 0"


def _of_integers_unless_as_in_c(call: Call) -> Iterator[str]:
    is_whole = call.inputs[0].dtype.kind in "iu"
    if call.step.opset < _FLOORS_FLOATS and not is_whole and not call.attribute("fmod", 0):
        yield f"set fmod to 1, which floats need before opset {_FLOORS_FLOATS}"


def _of_two_values(call: Call) -> Iterator[str]:
    _, depth, values = call.inputs
    if values.shape != (2,):
        yield "give two values, that for off and that for on"
    if depth.ndim > 1 or depth.size != 1 or depth.item() < 0:
        yield "give one depth of 0 or more"


def _with_lengths_of_rows(call: Call) -> Iterator[str]:
    data, lengths = call.inputs
    batch, time = call.attribute("batch_axis", 1), call.attribute("time_axis", 0)
    if data.ndim < 2 or {batch, time} != {0, 1}:
        yield "give data of rank 2 or more, and 0 and 1 as batch_axis and time_axis"
    elif lengths.shape != (data.shape[batch],):
        yield f"give a length for each row, shape {show_shape((data.shape[batch],))}"
    elif ((lengths < 0) | (lengths > data.shape[time])).any():
        yield f"give lengths from 0 to {data.shape[time]}"


def _of_regions(call: Call) -> Iterator[str]:
    data, regions, batches = call.inputs
    if batches.shape != regions.shape[:1]:
        yield f"give an index for each region, shape {show_shape(regions.shape[:1])}"
    elif ((batches < 0) | (batches >= len(data))).any():
        yield f"give indices from 0 to {len(data) - 1}"


def _with_an_update_for_each_index(call: Call) -> Iterator[str]:
    _, indices, updates = call.inputs
    if updates.shape != indices.shape:
        yield f"give updates of the shape of the indices, {show_shape(indices.shape)}"


def _with_updates_of_slices(call: Call) -> Iterator[str]:
    data, indices, updates = call.inputs
    shape = (*indices.shape[:-1], *data.shape[indices.shape[-1] :])
    if updates.shape != shape:
        yield f"give updates of shape {show_shape(shape)}"


def _along_axes(place: int) -> Check:
    """Return a check that axes, the operand at a place or an attribute, are there once each."""

    def check(call: Call) -> Iterator[str]:
        given = dict(enumerate(call.inputs)).get(place)
        axes = [*map(int, call.attribute("axes", ()) if given is None else given.flat)]
        rank = call.inputs[0].ndim
        if rank and len({axis % rank for axis in axes}) < len(axes):
            yield f"name each axis once; the axes are {axes}"

    return check


def _with_a_count_for_each_axis(call: Call) -> Iterator[str]:
    data, counts, *others = call.inputs
    if len(others) == 1:  # Tile before opset 6 has one axis
        return
    axes = call.attribute("axes")
    wanted = (data.ndim if axes is None else len(axes),)
    if counts.shape != wanted:
        yield f"give a number for each axis, shape {show_shape(wanted)}"


def _of_one_count(call: Call) -> Iterator[str]:
    if len(call.inputs) > 1 and (call.inputs[1].shape != (1,) or call.inputs[1].item() < 0):
        yield "give one k of 0 or more, in a list"


def _padded_with_one_value(call: Call) -> Iterator[str]:
    value = dict(enumerate(call.inputs)).get(2)
    if value is not None and value.size != 1:
        yield "give one value to pad with"


def _of_hidden_size(call: Call) -> Iterator[str]:
    weights, size = call.inputs[2], call.attribute("hidden_size")
    if size not in (None, weights.shape[-1]):
        yield f"set hidden_size to {weights.shape[-1]}, as the recurrent weights have it"


_FLOORS_FLOATS = 28
"""From here on Mod rounds quotients of floats down, too."""

CHECKS: Mapping[str, tuple[Check, ...]] = {
    "BatchNormalization": (_with_numbers_by_channel,),
    "CenterCropPad": (_with_a_count_for_each_axis, _along_axes(2)),
    "Clip": (_within_limits,),
    "Compress": (_within_its_axis,),
    "CumProd": (_of_rank(1),),
    "CumSum": (_of_rank(1),),
    "EyeLike": (_of_rank(2, 2),),
    "GRU": (_of_hidden_size,),
    "Gather": (_of_rank(1),),
    "GridSample": (_of_one_batch,),
    "InstanceNormalization": (_with_numbers_by_channel,),
    "LSTM": (_of_hidden_size,),
    "LayerNormalization": (_broadcast_to_data,),
    "Mod": (_of_integers_unless_as_in_c,),
    "NonMaxSuppression": (_of_one_batch,),
    "OneHot": (_of_two_values,),
    "Pad": (_padded_with_one_value, _along_axes(3)),
    "RMSNormalization": (_broadcast_to_data,),
    "RNN": (_of_hidden_size,),
    "ReverseSequence": (_with_lengths_of_rows,),
    "RoiAlign": (_of_regions,),
    "Scatter": (_with_an_update_for_each_index,),
    "ScatterElements": (_with_an_update_for_each_index,),
    "ScatterND": (_with_updates_of_slices,),
    "SimplifiedLayerNormalization": (_broadcast_to_data,),
    "Slice": (_along_axes(3),),
    "Tile": (_with_a_count_for_each_axis,),
    "TopK": (_of_one_count,),
    "Trilu": (_of_rank(2),),
}
"""What is checked before an operator runs, at every opset."""
