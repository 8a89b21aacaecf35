"""What OpenVINO's layers do to arrays, from the text of their pages, for steps of a `Program`."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.model.programs import Array, Scope, demand, ints, know
from tests.oracle import slices


def variadic_split(v: list[Any], _: dict[str, Any], __: Scope) -> list[Array]:
    """VariadicSplit; one length may be -1, for what the others leave."""
    (axis,), lengths = ints(v[1]), ints(v[2])
    demand(lengths.count(-1) <= 1)
    rest = v[0].shape[axis] - sum(length for length in lengths if length != -1)
    lengths = [rest if length == -1 else length for length in lengths]
    demand(min(lengths) >= 0 and sum(lengths) == v[0].shape[axis])
    return slices(v[0], axis, lengths)


def split(v: list[Any], a: dict[str, Any], _: Scope) -> list[Array]:
    """Split into equal parts."""
    (axis,), count = ints(v[1]), a["num_splits"]
    demand(v[0].shape[axis] % count == 0)
    return slices(v[0], axis, [v[0].shape[axis] // count] * count)


def reshape(v: list[Any], a: dict[str, Any], _: Scope) -> list[Array]:
    """Reshape; with special_zero, 0 stands for the same dimension of the data."""
    shape = ints(v[1])
    demand(min(shape, default=0) >= -1)
    know(-1 not in shape or v[0].size)
    if a["special_zero"]:
        shape = [v[0].shape[at] if size == 0 else size for at, size in enumerate(shape)]
    return [v[0].reshape(shape)]


def strided_slice(v: list[Any], a: dict[str, Any], _: Scope) -> list[Array]:
    """StridedSlice of the first axes, some of which it takes one element of, or adds."""
    index: list[Any] = []
    for at, (start, end, step) in enumerate(zip(*map(ints, v[1:4]), strict=True)):
        if a["new_axis_mask"][at]:
            index.append(None)
        elif a["shrink_axis_mask"][at]:
            index.append(start)
        else:
            start_is_open, end_is_open = a["begin_mask"][at], a["end_mask"][at]
            index.append(
                slice(None if start_is_open else start, None if end_is_open else end, step)
            )
    return [v[0][tuple(index)]]


def broadcast(v: list[Any], a: dict[str, Any], _: Scope) -> list[Array]:
    """Broadcast to a shape; `bidirectional` where the shape may be broadcast, too."""
    shape = tuple(ints(v[1]))
    if a["mode"] == "bidirectional":
        shape = np.broadcast_shapes(v[0].shape, shape)
    return [np.broadcast_to(v[0], shape)]


def pad(v: list[Any], _: dict[str, Any], __: Scope) -> list[Array]:
    """Pad with a constant."""
    return [np.pad(v[0], list(zip(ints(v[1]), ints(v[2]), strict=True)), constant_values=v[3])]


def if_(v: list[Any], a: dict[str, Any], scope: Scope) -> list[Any]:
    """If on a condition of one element."""
    return scope.run(a["then_body" if v[0].reshape(()) else "else_body"], v[1:])


def iterated(v: list[Any], a: dict[str, Any], scope: Scope) -> list[Any]:
    """TensorIterator, or Loop, over the rows of the first input; the second is carried."""
    data, state, around = v
    know(data.shape[a["axis"]] == a["rounds"] or (a["rounds"] == -1 and data.shape[a["axis"]]))
    joined = []
    for row in slices(data, a["axis"], [1] * data.shape[a["axis"]]):
        before = state
        state, part, last = scope.run(a["body"], [row, state, around])
        know(state.shape == before.shape and part.shape[a["joined"]] == 1)
        joined.append(part)
    return [state, np.concatenate(joined, a["joined"]), last]
