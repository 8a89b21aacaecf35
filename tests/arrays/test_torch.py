"""Tensors of PyTorch."""

from __future__ import annotations

import pytest

import tensorsplit as ts

torch = pytest.importorskip("torch")


def test_parts_are_views_through_which_gradients_flow() -> None:
    x = torch.nn.Parameter(torch.arange(24.0).reshape(4, 6))
    parts = ts.split(x, [2, 4], axis=1)
    assert [type(part) for part in parts] == [torch.Tensor] * 2
    assert parts[1].data_ptr() == x.data_ptr() + 2 * x.element_size()
    (parts[0].sum() * 3).backward()
    assert x.grad.equal(torch.tensor([[3.0, 3, 0, 0, 0, 0]] * 4))


def test_a_dropped_axis() -> None:
    parts = ts.split_to_sequence(torch.arange(6).reshape(3, 2), keepdims=0)
    assert [part.tolist() for part in parts] == [[0, 1], [2, 3], [4, 5]]
