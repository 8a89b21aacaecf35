"""Splitting tensors of PyTorch."""

from __future__ import annotations

from typing import Any, TypeAlias

import torch

from tensorsplit.arrays.numpy import standard_name
from tensorsplit.arrays.pool import BufferPool
from tensorsplit.core.dimensions import Shape
from tensorsplit.core.errors import TOO_MANY_PARTS, SplitError
from tensorsplit.core.plan import SplitPlan
from tensorsplit.core.rules import MAX_PARTS

Tensor: TypeAlias = Any


def is_array(value: object) -> bool:
    """Whether the value is a tensor."""
    return isinstance(value, torch.Tensor)


def check(array: Tensor) -> None:
    """Refuse the kinds of tensors that have no views (TS204)."""


def element_type(array: Tensor) -> str:
    """The name of the element type, as in the schemas of ONNX."""
    return standard_name(str(array.dtype).removeprefix("torch."))


def shape(array: Tensor) -> Shape:
    """The shape; the dimensions of a traced tensor may be ``torch.SymInt``."""
    return tuple(array.shape)


def operand_parts(value: Tensor, name: str) -> tuple[tuple[Any, ...], int, str]:
    """The elements in order as Python numbers, the rank, and the element type."""
    if value.numel() > MAX_PARTS:
        problem = f"it has {value.numel()} elements"
        raise SplitError(TOO_MANY_PARTS, problem, "give fewer", parameter=name)
    return tuple(value.reshape(-1).tolist()), value.ndim, element_type(value)


def views(array: Tensor, plan: SplitPlan) -> list[Tensor]:
    """The parts as views of the tensor."""
    if plan.keepdims:
        return list(torch.split_with_sizes(array, plan.sizes, plan.axis))
    return list(torch.unbind(array, plan.axis))


def copies(array: Tensor, plan: SplitPlan) -> list[Tensor]:
    """The parts as new contiguous tensors."""
    contiguous = torch.contiguous_format
    return [part.clone(memory_format=contiguous) for part in views(array, plan)]


def pooled(array: Tensor, plan: SplitPlan, pool: BufferPool) -> list[Tensor]:
    """The parts as contiguous tensors in the memory of a pool."""
    raise NotImplementedError


def copies_into(array: Tensor, plan: SplitPlan, out: Any) -> list[Tensor]:
    """The parts written into tensors."""
    raise NotImplementedError
