"""Splitting tensors of PyTorch."""

from __future__ import annotations

import sys
from contextlib import suppress
from typing import Any, TypeGuard

import numpy as np
import torch

from tensorsplit import native
from tensorsplit.arrays.buffers import (
    are_disjoint,
    check_buffer,
    check_buffer_count,
    check_buffers,
    strides_of_whole,
)
from tensorsplit.arrays.numpy import check_few, join_by_kernel, standard_name
from tensorsplit.arrays.pool import BufferPool
from tensorsplit.arrays.remembered import joined_at_once
from tensorsplit.arrays.typed import Array as Tensor
from tensorsplit.core.dimensions import Shape, are_known, is_known
from tensorsplit.core.emit import check_concat, check_split
from tensorsplit.core.errors import (
    NOT_AN_ARRAY,
    OPERAND_TYPE,
    OUT_OVERLAP,
    OUT_READ_ONLY,
    OUT_SHAPE,
    OUT_TYPE,
    SplitError,
)
from tensorsplit.core.given import is_a
from tensorsplit.core.plan import SplitPlan, part_shapes, shape_of
from tensorsplit.core.rules import ceil

unknown: str | None = None
"""Torch decides what holds while it traces."""

_PLAIN = (torch.Tensor, torch.nn.Parameter)
_SMALL = [f"{kind}{bits}" for kind in ("int", "uint") for bits in range(1, 8)]
_SHELLS = frozenset(
    getattr(torch, name) for name in (*_SMALL, "float4_e2m1fn_x2") if hasattr(torch, name)
)
"""Types of less than a byte: torch copies and concatenates their bytes, and not them."""
_SAME_SIZE = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64, 16: np.complex128}
"""Element types of NumPy that torch knows, by their size."""

_KERNEL_FROM = 1 << 18
"""Fewer bytes are copied to new tensors by torch's own operation: what leads to the kernel takes
longer."""


def is_array(value: object) -> TypeGuard[Tensor]:
    """Return whether the value is a tensor."""
    return is_a(value, torch.Tensor)


def check(array: Tensor) -> None:
    """Refuse the kinds of tensors whose parts are not views of memory (TS204)."""
    if type(array) not in _PLAIN and torch.nn.parameter.is_lazy(array):
        problem = "it is a parameter without a shape"
        raise SplitError(NOT_AN_ARRAY, problem, "run its module once")
    if array.layout is not torch.strided or array.is_quantized or array.is_nested:
        refuse_kind(array.layout, array.is_quantized)


def refuse_kind(layout: object, quantized: bool) -> None:
    """Raise a refusal that names the function to call, for a tensor that can't be split (TS204)."""
    if quantized:
        kind, fix = "a quantized", "pass its `int_repr()` or `dequantize()`"
    elif layout in (torch.strided, torch.jagged):
        kind, fix = "a nested", "split each tensor of its `unbind()`"
    else:
        kind, fix = str(layout).removeprefix("torch."), "pass its `to_dense()`"
        kind = "an MKL-DNN" if kind == "_mkldnn" else f"a sparse ({kind})"
    raise SplitError(NOT_AN_ARRAY, f"it is {kind} tensor", fix)


def element_type(array: Tensor) -> str:
    """Return the name of the element type, as in the schemas of ONNX."""
    return type_name(array.dtype)


def type_name(dtype: object) -> str:
    """Return the name of an element type in the schemas of ONNX."""
    return standard_name(str(dtype).removeprefix("torch.").removesuffix("_x2"))


def shape(array: Tensor) -> Shape:
    """Return the shape; the dimensions of a traced tensor may be ``torch.SymInt``."""
    if _is_tracing():  # they are tensors, and the trace holds for this shape
        return tuple(map(int, array.shape))
    return tuple(array.shape)


def operand_parts(value: Tensor, name: str) -> tuple[tuple[float, ...], int, str]:
    """Return the elements in order as Python numbers, the rank, and the element type.

    Those of a tensor on a device are fetched; one that is traced or has no elements is refused.
    """
    check_few(value.numel(), name)
    with suppress(Exception):  # what a traced tensor raises is nowhere written down
        items = value.reshape(-1).tolist()
        if {int, bool, float, complex}.issuperset(map(type, items)):
            return tuple(items), value.ndim, element_type(value)
    raise SplitError(
        OPERAND_TYPE,
        f"it is a tensor ({type(value).__name__}) whose values are not known yet",
        "give integers",
        parameter=name,
    )


def views(array: Tensor, plan: SplitPlan) -> list[Tensor]:
    """Return the parts as views of the tensor."""
    if is_exported():
        check_split(OPSET, element_type(array), plan.operator)
        return _split_node(array, plan)
    if plan.keepdims:
        return list(torch.split_with_sizes(array, plan.sizes, plan.axis))
    return list(torch.unbind(array, plan.axis))


def is_exported() -> bool:
    """Return whether torch makes a model of what is called, without the older tracer."""
    return getattr(sys.modules.get("torch.onnx"), "is_in_onnx_export", bool)() and not _is_tracing()


OPSET = 18
"""The opset of the nodes that are made."""


def _split_node(array: Tensor, plan: SplitPlan) -> list[Tensor]:
    """Return the parts as the outputs of one node of ONNX."""
    count, intent = len(plan.sizes), getattr(plan, "intent", None)
    before, after = plan.input_shape[: plan.axis], plan.input_shape[plan.axis + 1 :]
    inputs, attributes = [array], {"axis": plan.axis}
    if not are_known(plan.sizes) and intent is not None and intent.rule is ceil:
        attributes["num_outputs"] = count
    else:
        inputs.append(_lengths(plan.sizes))
    parts = torch.onnx.ops.symbolic_multi_out(
        "Split",
        inputs,
        attributes,
        dtypes=[array.dtype] * count,
        shapes=[(*before, size, *after) for size in plan.sizes],
        version=OPSET,
    )
    return list(parts) if plan.keepdims else [part.squeeze(plan.axis) for part in parts]


def _lengths(sizes: Any) -> Tensor:
    """Return the lengths as a tensor; traced ones stay so."""
    kind = {"dtype": torch.int64, "device": "cpu"}
    if are_known(sizes):
        return torch.tensor(sizes, **kind)
    return torch.stack([torch.scalar_tensor(size, **kind) for size in sizes])


def copies(array: Tensor, plan: SplitPlan) -> list[Tensor]:
    """Return the parts as new contiguous tensors that share no memory with the tensor."""
    if array.dtype in _SHELLS:
        return [part.view(array.dtype) for part in copies(array.view(torch.uint8), plan)]
    if plan.keepdims:
        return list(torch.split_with_sizes_copy(array, plan.sizes, plan.axis))
    return list(torch.unbind_copy(array, plan.axis))


def pooled(array: Tensor, plan: SplitPlan, pool: BufferPool) -> list[Tensor]:
    """Return the parts as contiguous tensors in the memory of a pool."""
    return copies_into(array, plan, [_pooled(array, shape, pool) for shape in part_shapes(plan)])


def _pooled(array: Tensor, shape: tuple[int, ...], pool: BufferPool) -> Tensor:
    """Return a tensor in the memory of a pool for elements of another one."""
    is_traced = _transform() is not None or _is_tracing()
    if type(array) not in _PLAIN or not array.is_cpu or is_traced:
        raise SplitError(
            OUT_TYPE,
            f"a pool has memory of the CPU, and the data is a {type(array).__name__} on"
            f" {array.device}{', which is traced' if is_traced else ''}",
            "use copy=True",
        )
    memory = pool.empty(shape, _SAME_SIZE[array.element_size()])
    return torch.from_numpy(memory).view(array.dtype)


def copies_into(array: Tensor, plan: SplitPlan, out: Any) -> list[Tensor]:
    """Return the parts written into tensors, which are returned.

    Tensors that don't fit are refused before any byte is written (TS401 to TS405).
    """
    _check_buffers(array, plan, out)
    if not _is_transformed() and all(map(_has_address, (array, *out))):
        if not _are_surely_disjoint(out, [array]):
            check_buffers(_addresses(array), plan, list(map(_addresses, out)))
    elif len({*map(id, (array, *out))}) <= len(out):
        problem = "a buffer is the data, or another buffer"
        raise SplitError(OUT_OVERLAP, problem, "give buffers of their own")
    for buffer, part in zip(map(_bytes, out), views(_bytes(array), plan), strict=True):
        buffer.copy_(part)
    parts: list[Tensor] = out
    return parts


def kind(array: Tensor) -> tuple[object, ...]:
    """Return the element type and the device."""
    return array.dtype, array.device


def joined_view(parts: list[Tensor], plan: SplitPlan) -> Tensor | None:
    """Return the tensor whose views the parts are, in order; None if they are not.

    None too where gradients are recorded, which flow through the parts, or where torch traces.
    """
    if _is_transformed() or not all(map(_is_plain_memory, parts)):
        return None
    if len({part.untyped_storage().data_ptr() for part in parts}) > 1:
        return None
    found = strides_of_whole(
        plan, [part.stride() for part in parts], [part.storage_offset() for part in parts]
    )
    if found is None:
        return None
    first, strides = found
    length = plan.input_shape[plan.axis]
    if strides[plan.axis] == 0 and is_known(length) and length > 1:
        return None
    with suppress(RuntimeError):  # for a stride below zero, or a storage shorter than another there
        start = parts[first].storage_offset()
        return torch.as_strided(parts[first], plan.input_shape, strides, start)
    return None


def _is_plain_memory(part: Tensor) -> bool:
    """Return whether a tensor is its memory, and nothing else."""
    records = part.requires_grad and torch.is_grad_enabled()
    return (
        type(part) in _PLAIN
        and not records
        and not part.is_conj()
        and not part.is_neg()
        and _has_address(part)
    )


def joined(parts: list[Tensor], plan: SplitPlan) -> Tensor:
    """Return the parts as one new tensor (TS310 in a model whose Concat does not take them)."""
    if is_exported():
        check_concat(OPSET, element_type(parts[0]), plan.operator)
    elif not _is_transformed() and sum(part.nbytes for part in parts) >= _KERNEL_FROM:
        new: Tensor = torch.empty(shape_of(plan), dtype=parts[0].dtype, device="cpu")
        if _join_by_kernel(new, parts, plan):
            return new
    return concatenated(parts, plan.axis, plan.keepdims)


def concatenated(parts: list[Tensor], axis: int, keepdims: bool) -> Tensor:
    """Return tensors of one kind as one new tensor; they are stacked if they have no such axis."""
    dtype = parts[0].dtype
    if dtype in _SHELLS:
        bits = [part.view(torch.uint8) for part in parts]
        return concatenated(bits, axis, keepdims).view(dtype)
    return (torch.cat if keepdims else torch.stack)(parts, axis)


def joined_in_pool(parts: list[Tensor], plan: SplitPlan, pool: BufferPool) -> Tensor:
    """Return the parts as one tensor in the memory of a pool."""
    return joined_into(parts, plan, _pooled(parts[0], shape_of(plan), pool))


def joined_into(parts: list[Tensor], plan: SplitPlan, out: object) -> object:
    """Return the buffer, with the parts written to it.

    One that doesn't fit is refused before any byte is written (TS402 to TS405).
    """
    shape = plan.input_shape
    _check_buffer("the buffer", out, parts[0] if parts else out, shape, f"the whole has {shape}")
    if not _is_transformed() and all(map(_has_address, (out, *parts))):
        if _join_by_kernel(out, parts, plan):
            torch.autograd.graph.increment_version([out])
            return out
        if not _are_surely_disjoint([out], parts):
            whole, *held = map(_addresses, (out, *parts))
            check_buffer(held, plan, whole)
    elif any(out is part for part in parts):
        raise SplitError(OUT_OVERLAP, "the buffer is a part", "give a buffer of its own")
    whole = _bytes(out)
    for part, index in zip(parts, plan.indices, strict=True):
        whole[index].copy_(_bytes(part))
    return out


def _join_by_kernel(whole: object, parts: list[Tensor], plan: SplitPlan) -> bool:
    """Join tensors in another one with the kernel; False, with nothing written, where it can't."""
    if not all(map(_is_for_the_kernel, (whole, *parts))):
        return False
    # Other threads can't give these other memory while the kernel uses it.
    held, *others = (each.detach() for each in (whole, *parts))
    return join_by_kernel(_addresses(held), list(map(_addresses, others)), plan)


def _is_for_the_kernel(array: Tensor) -> bool:
    """Return whether nothing of torch has to know that a tensor is read or written."""
    return array.is_cpu and not array.is_inference() and _is_plain_memory(array)


def _check_buffers(array: Tensor, plan: SplitPlan, out: object) -> None:
    """Refuse buffers that can't be written to; whether they share memory is checked later."""
    listed = check_buffer_count(out, plan, "tensor")
    for number, (buffer, shape) in enumerate(zip(listed, plan.output_shapes, strict=True)):
        _check_buffer(f"buffer {number}", buffer, array, shape, f"its part has {shape}")


def _check_buffer(name: str, buffer: object, array: Tensor, shape: Shape, fix: str) -> None:
    """Refuse a buffer that elements of a tensor can't be written to (TS402 to TS404)."""
    if not is_array(buffer):
        raise SplitError(OUT_TYPE, f"{name} is a {type(buffer).__name__}", "give tensors")
    check(buffer)
    if buffer.shape != shape:
        raise SplitError(OUT_SHAPE, f"{name} has shape {tuple(buffer.shape)}", fix)
    if (buffer.dtype, buffer.device) != (array.dtype, array.device):
        raise SplitError(
            OUT_TYPE,
            f"{name} is of {buffer.dtype} on {buffer.device}",
            f"the data is of {array.dtype} on {array.device}",
        )
    if torch.is_grad_enabled() and buffer.requires_grad and buffer.is_leaf:
        fix = "give tensors without `requires_grad`, or write under `torch.no_grad()`"
        raise SplitError(OUT_READ_ONLY, f"{name} is a leaf that requires gradients", fix)
    if buffer.is_inference() and not torch.is_inference_mode_enabled():
        problem = f"{name} is a tensor of inference mode"
        raise SplitError(OUT_READ_ONLY, problem, "write it under `torch.inference_mode()`")


# Torch gives these in no other way; looked up once, since each small copy needs them.
_modes = torch._C._len_torch_dispatch_stack  # noqa: SLF001 - as above
_function_modes = torch._C._len_torch_function_stack  # noqa: SLF001 - as above
_transform = torch._C._functorch.peek_interpreter_stack  # noqa: SLF001 - as above
_is_tracing = torch._C._is_tracing  # noqa: SLF001 - as above
_forward_ad = torch.autograd.forward_ad


def _is_transformed() -> bool:
    """Return whether a mode, a trace, a functorch transform or forward AD is active."""
    return bool(
        _modes()
        or _function_modes()
        or _transform() is not None
        or _is_tracing()
        or _forward_ad._current_level >= 0  # noqa: SLF001 - as above
    )


class _Memory:
    """Where the elements of a tensor are, on any device."""

    def __init__(self, array: Tensor) -> None:
        size = array.element_size()
        self.__array_interface__ = {
            "version": 3,
            "shape": tuple(array.shape),
            "typestr": f"|V{size}",
            "data": (array.data_ptr(), False),
            "strides": tuple(size * stride for stride in array.stride()),
        }


def _has_address(array: Tensor) -> bool:
    """Return whether a tensor's memory is known; meta tensors have none, and DTensors hide it."""
    with suppress(RuntimeError):  # of fake tensors
        return bool(array.data_ptr()) or array.numel() == 0
    return False


def _are_surely_disjoint(written: list[Tensor], read: list[Tensor]) -> bool:
    """Return whether it is seen at once that nothing that is written shares memory."""
    if not all(buffer.is_contiguous() for buffer in written):
        return False
    ranges = [[_range(array) for array in side if array.numel()] for side in (written, read)]
    return are_disjoint(*ranges)


def _range(array: Tensor) -> tuple[int, int]:
    """Return where the elements of a tensor, of which there are some, begin and end."""
    last = sum(
        (size - 1) * stride for size, stride in zip(array.shape, array.stride(), strict=True)
    )
    start = array.data_ptr()
    return start, start + (last + 1) * array.element_size()


def _addresses(array: Tensor) -> Any:
    """Return an array with the addresses of a tensor on any device, to see which share memory."""
    return np.asarray(_Memory(array))


def _bytes(array: Tensor) -> Tensor:
    """Return a tensor that can be copied: torch knows no copy of types of less than a byte."""
    return array.view(torch.uint8) if array.dtype in _SHELLS else array


if native.kernel is not None:
    joined_at_once.update(_PLAIN)
    native.kernel.use_torch(
        *_PLAIN,
        torch.strided,
        _SHELLS,
        torch.split_with_sizes,
        torch.unbind,
        torch.split_with_sizes_copy,
        torch.unbind_copy,
        torch.cat,
        torch.stack,
        torch.as_strided,
        torch.is_grad_enabled,
        torch.is_inference_mode_enabled,
        _is_transformed,
        torch.autograd.graph.increment_version,
        _KERNEL_FROM,
        getattr(torch.Tensor, "__dlpack_c_exchange_api__", None),  # from torch 2.10 on
    )
