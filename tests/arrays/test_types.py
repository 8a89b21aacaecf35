"""What type checkers know of the parts: they are of the type of the array.

Checking this file is the test; the libraries that aren't installed everywhere have stand-ins with
the signatures that matter.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, assert_type

import numpy as np

import tensorsplit as ts

Matrix = np.ndarray[tuple[int, int], np.dtype[np.float32]]
PLAN = ts.plan("onnx.Split-18", (4, 6), num_outputs=2)


class Array:
    """An array of the standard."""

    shape: tuple[int, ...]
    dtype: object


class Tensor(Array):
    """PyTorch's; its methods give tensors, whatever subclass they are called on."""

    def split_with_sizes(self, split_sizes: Sequence[int], dim: int = 0) -> tuple[Tensor, ...]:
        raise NotImplementedError


class Parameter(Tensor):
    pass


class Named(np.ndarray[Any, Any]):
    pass


def test_numpy() -> None:
    x: Matrix = np.ones((4, 6), np.float32)
    named = x.view(Named)
    assert_type(ts.split(x, num_outputs=2), list[Matrix])
    assert_type(ts.split(input=x, num_outputs=2, copy=True), list[Matrix])
    assert_type(ts.split_to_sequence(named, 2), list[Named])
    assert_type(ts.variadic_split(x, 0, [1, -1]), list[Matrix])
    assert_type(ts.openvino.split(named, 0, 2), list[Named])
    assert_type(ts.split(x, num_outputs=2, out=ts.BufferPool(0)), list[Matrix])
    assert_type(PLAN(x), list[Matrix])
    assert_type(PLAN(named, copy=True), list[Named])


def tensors(array: Array, tensor: Tensor, parameter: Parameter, any_kind: Any) -> None:
    """Checked, and never run."""
    assert_type(ts.split(array, num_outputs=2), list[Array])
    assert_type(ts.split(any_kind, num_outputs=2), list[Any])
    assert_type(ts.split(tensor, num_outputs=2), list[Tensor])
    assert_type(ts.split(parameter, num_outputs=2, out=[tensor, tensor]), list[Tensor])
    assert_type(ts.split_to_sequence(parameter, 2), list[Tensor])
    assert_type(ts.variadic_split(parameter, 0, [1, -1]), list[Tensor])
    assert_type(ts.openvino.split(parameter, 0, 2), list[Tensor])
    assert_type(PLAN(parameter), list[Tensor])
    ts.split([1, 2], num_outputs=2)  # type: ignore[call-overload]
    PLAN("data")  # type: ignore[call-overload]
