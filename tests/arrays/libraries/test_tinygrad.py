"""What every library does not show of tinygrad: bits of every float, gradients, laziness."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import pytest

import tensorsplit as ts
from tensorsplit.arrays import numpy as numpy_arrays
from tests.refusals import refused

os.environ.setdefault("DEV", "PYTHON")  # its CPU device needs clang
tinygrad = pytest.importorskip("tinygrad")
dtypes = tinygrad.dtypes


def bits(count: int, width: int) -> Any:
    """Random integers, of which the first is the bits of -0.0 and the second those of a NaN."""
    raw = np.random.default_rng(5).integers(0, 256, count * width, np.uint8).view(f"u{width}")
    raw[:2] = 1 << (8 * width - 1), np.iinfo(raw.dtype).max
    return raw


@pytest.mark.parametrize(
    "dtype", [dtypes.half, dtypes.bfloat16, dtypes.fp8e4m3, dtypes.fp8e5m2, dtypes.float]
)
def test_parts_have_the_bits_of_the_whole(dtype: Any) -> None:
    width = dtype.itemsize
    raw = bits(96, width)
    whole = tinygrad.Tensor(raw).bitcast(dtype)
    integers = {1: dtypes.uint8, 2: dtypes.uint16, 4: dtypes.uint32}[width]
    parts = ts.variadic_split(whole, 0, [1, 0, -1, 5])
    seen = [part.bitcast(integers).numpy() for part in parts]
    assert [part.shape for part in parts] == [(1,), (0,), (90,), (5,)]
    assert np.concatenate(seen).tolist() == raw.tolist()


def test_lengths_that_are_too_many_are_not_calculated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(numpy_arrays, "MAX_PARTS", 3)
    with refused("TS308", "it has 4 elements", parameter="split"):
        ts.split(tinygrad.Tensor([5, 6, 7, 8]), tinygrad.Tensor([1, 1, 1, 1]))


def test_zeros_keep_their_sign_when_parts_are_joined() -> None:
    data = np.random.default_rng(3).standard_normal((4, 9)).astype(np.float32)
    data[::2, ::3] = -0.0
    whole = tinygrad.Tensor(data)
    for lengths in ([3, 3, 3], [1, 8], [4, 0, 5]):
        joined = ts.join(ts.split(whole, lengths, axis=1), axis=1)
        assert joined.numpy().tobytes() == data.tobytes()


def test_gradients_flow_through_parts_and_through_what_is_joined() -> None:
    x = tinygrad.Tensor(np.ones((3, 5), np.float32))
    one, four = ts.split(x, [1, 4], axis=1)
    ts.join([2 * one, 3 * four], axis=1).sum().backward()
    assert x.grad.numpy().tolist() == [[2, 3, 3, 3, 3]] * 3


def test_a_copy_shares_no_memory_with_the_whole() -> None:
    data = np.arange(6, dtype=np.int32)
    whole = tinygrad.Tensor(data.copy()).realize()
    first, _ = ts.split(whole, [2, 4], copy=True)
    first.realize()
    whole.assign(tinygrad.Tensor(-data)).realize()
    assert first.numpy().tolist() == [0, 1]


def test_a_dimension_that_is_a_variable() -> None:
    rows = tinygrad.Variable("rows", 1, 8).bind(4)
    some = tinygrad.Tensor(np.ones((8, 6), np.float32))[:rows]
    assert ts.split(some, [2, 4], axis=1)[1].shape[1] == 4
    with refused("TS309", "bind no variable"):
        ts.split(some, [2, 2])
