"""The eager functions: operands as Python values in, parts out.

They are thin: values become operands, `resolve` decides, `arrays` cuts.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from marshal import dumps
from typing import Any

from numpy import ndarray

from tensorsplit import arrays
from tensorsplit.arguments import bind_values, fingerprint
from tensorsplit.arrays import numpy as numpy_arrays
from tensorsplit.arrays.pool import BufferPool
from tensorsplit.operators import NEWEST_OPSET, in_force, operators
from tensorsplit.plan import SplitPlan
from tensorsplit.prepared import counted
from tensorsplit.resolve import Intent, check_element_type
from tensorsplit.resolve import plan as plan_intent


def split(
    input: Any,
    split: Any = None,
    *,
    axis: int = 0,
    num_outputs: int | None = None,
    opset: int = NEWEST_OPSET,
    copy: bool = False,
    out: Sequence[Any] | BufferPool | None = None,
) -> list[Any]:
    """Cut a tensor along an axis, as ONNX Split does.

    Args:
        input: The tensor, of rank 1 or more and an element type that the version allows.
        split: The length of each part: integers or a 1-D integer array. Before opset 13 it is
            the attribute, from 13 on the input; an array given at opset 1 is the second input,
            which has the float type of the data.
        axis: The axis, in [-rank, rank-1].
        num_outputs: The attribute of Split-18; before it, how many outputs the node has.
        opset: The model's opset, which selects the version: 12 means Split-11.
        copy: Return new C-contiguous arrays; by default the parts are views.
        out: Arrays to write the parts to, one for each, which are returned; or a `BufferPool` to
            take them from. Implies a copy.

    Returns:
        The parts, in order, as arrays of the library of `input`.

    Raises:
        SplitError: TS101 to TS405; see ``docs/errors.md``.

    See Also:
        https://onnx.ai/onnx/operators/onnx__Split.html
    """
    return _run(_bind_split, input, (split, axis, num_outputs, opset), copy, out)


def split_to_sequence(
    input: Any,
    split: Any = None,
    *,
    axis: int = 0,
    keepdims: int = 1,
    opset: int = NEWEST_OPSET,
    copy: bool = False,
    out: Sequence[Any] | BufferPool | None = None,
) -> list[Any]:
    """Cut a tensor into a sequence, as ONNX SplitToSequence does.

    Args:
        input: The tensor, of rank 1 or more and an element type that the version allows.
        split: A number is the length of each chunk (> 0), of which the last may be smaller; a
            list or 1-D array holds the length of each part. None means parts of length 1.
        axis: The axis, in [-rank, rank-1].
        keepdims: 0 drops the axis from parts of length 1; ignored if `split` is given (D8).
        opset: The model's opset, from 11 on.
        copy: Return new C-contiguous arrays; by default the parts are views.
        out: Arrays to write the parts to, one for each, which are returned; or a `BufferPool` to
            take them from. Implies a copy.

    Returns:
        The sequence, as a list of arrays of the library of `input`.

    Raises:
        SplitError: TS101 to TS405; see ``docs/errors.md``.

    See Also:
        https://onnx.ai/onnx/operators/onnx__SplitToSequence.html
    """
    return _run(_bind_split_to_sequence, input, (split, axis, keepdims, opset), copy, out)


def variadic_split(
    data: Any,
    axis: Any,
    split_lengths: Any,
    *,
    copy: bool = False,
    out: Sequence[Any] | BufferPool | None = None,
) -> list[Any]:
    """Cut a tensor along an axis, as OpenVINO VariadicSplit-1 does.

    Args:
        data: The tensor, of rank 1 or more and any element type.
        axis: The axis, in [-rank, rank-1]: an integer, or an integer array of shape () or [1].
        split_lengths: The length of each part, of which one may be -1 for the remainder.
        copy: Return new C-contiguous arrays; by default the parts are views.
        out: Arrays to write the parts to, one for each, which are returned; or a `BufferPool` to
            take them from. Implies a copy.

    Returns:
        The parts, in order, as arrays of the library of `data`.

    Raises:
        SplitError: TS102 to TS405; see ``docs/errors.md``.

    See Also:
        The page named by ``operators["openvino.VariadicSplit-1"].source``.
    """
    return _run(_bind_variadic_split, data, (split_lengths, axis), copy, out)


def openvino_split(
    data: Any,
    axis: Any,
    num_splits: int,
    *,
    copy: bool = False,
    out: Sequence[Any] | BufferPool | None = None,
) -> list[Any]:
    """Cut a tensor into equal parts, as OpenVINO Split-1 does (``tensorsplit.openvino.split``).

    Args:
        data: The tensor, of rank 1 or more and any element type.
        axis: The axis, in [-rank, rank-1]: an integer, or an integer array of shape ().
        num_splits: How many parts; it divides the dimension.
        copy: Return new C-contiguous arrays; by default the parts are views.
        out: Arrays to write the parts to, one for each, which are returned; or a `BufferPool` to
            take them from. Implies a copy.

    Returns:
        The parts, in order, as arrays of the library of `data`.

    Raises:
        SplitError: TS102 to TS405; see ``docs/errors.md``.

    See Also:
        The page named by ``operators["openvino.Split-1"].source``.
    """
    return _run(_bind_openvino_split, data, (num_splits, axis), copy, out)


def _bind_split(split: Any, axis: Any, num_outputs: Any, opset: int) -> Intent:
    record = in_force("Split", opset)
    operands = {"split": split, "axis": axis, "num_outputs": num_outputs}
    return bind_values(record, operands)


def _bind_split_to_sequence(split: Any, axis: Any, keepdims: Any, opset: int) -> Intent:
    record = in_force("SplitToSequence", opset)
    return bind_values(record, {"split": split, "axis": axis, "keepdims": keepdims})


def _bind_variadic_split(split_lengths: Any, axis: Any) -> Intent:
    record = operators["openvino.VariadicSplit-1"]
    return bind_values(record, {"axis": axis, "split_lengths": split_lengths})


def _bind_openvino_split(num_splits: Any, axis: Any) -> Intent:
    record = operators["openvino.Split-1"]
    return bind_values(record, {"axis": axis, "num_splits": num_splits})


_MOST_PLANS = 1024
_MOST_PARTS = 1 << 16
_cache: dict[Hashable, SplitPlan] = {}
_parts = 0
"""About how many parts the plans of the cache have; threads that meet here may lose some."""


def _run(
    bind: Callable[..., Intent],
    data: Any,
    arguments: tuple[Any, ...],
    copy: bool,
    out: Sequence[Any] | BufferPool | None,
) -> list[Any]:
    """Cut an array: at once if a call with the same arguments was validated for one like it.

    The first of the arguments is what gives the lengths. ``marshal`` spells them out with their
    types, so that True is not 1, nor is 1.0, and a list as it is at this moment; of an array it
    spells the bytes only. Version 2 of its format has one spelling for each value.
    """
    plan = None
    if type(data) is ndarray:
        try:
            key = (bind, data.shape, data.dtype, dumps(arguments, 2))
            plan = _cache.get(key)
            if plan is None and type(arguments[0]) is ndarray:
                plan = _cache.get((key, arguments[0].dtype, arguments[0].shape))
        except (MemoryError, TypeError, ValueError):  # what has no spelling, or no hash
            pass
        if plan is not None:
            if copy is False and out is None:
                return plan.cut(data)
            return arrays.execute(plan, data, numpy_arrays, copy, out)
    library, plan = _validate(bind, data, tuple(map(_snapshot, arguments)))
    return arrays.execute(plan, data, library, copy, out)


def _snapshot(value: Any) -> Any:
    """A value as it is now, which no one else can change; large arrays are never remembered."""
    if type(value) is list:
        return value.copy()
    if isinstance(value, ndarray) and value.size <= _MOST_PARTS:
        return value.copy()
    return value


def _validate(
    bind: Callable[..., Intent], data: Any, arguments: tuple[Any, ...]
) -> tuple[arrays.ArrayLibrary, SplitPlan]:
    """Decide the cut, and remember it; nobody else can change the arguments."""
    key = _key(bind, data, arguments)
    library, plan = arrays.find_library(data), _cache.get(key)
    if library is None or plan is None:
        intent = bind(*arguments)
        parameter = intent.operator.inputs[0].name
        library = arrays.library_of(data, intent.operator.id, parameter)
        plan = counted(plan_intent(intent, tuple(data.shape)))
        check_element_type(plan.operator, library.element_type(data), plan.element_types, parameter)
        if key is not None:
            _remember(key, plan)
    return library, plan


def _remember(key: Hashable, plan: SplitPlan) -> None:
    """Keep a plan, in the place of all others once they are too many or too long."""
    global _parts  # noqa: PLW0603 - the cache is one for the whole process
    count = 1 + len(plan.sizes)
    if count > _MOST_PARTS:
        return
    if len(_cache) >= _MOST_PLANS or _parts + count > _MOST_PARTS:
        _cache.clear()
        _parts = 0
    _cache[key] = plan
    _parts += count


def _key(bind: Callable[..., Intent], data: Any, arguments: tuple[Any, ...]) -> Hashable:
    """What a call is remembered by; None if it must not be, as it can't be told from others."""
    lengths, *others = arguments
    key: Hashable
    try:
        spelled = (bind, data.shape, data.dtype, dumps(arguments, 2))
        plain = type(data) is ndarray and all(map(_is_plain, others))
        if plain and _is_plain(lengths):
            key = spelled
        elif plain and type(lengths) is ndarray and lengths.dtype.kind in "iu":
            key = (spelled, lengths.dtype, lengths.shape)
        else:
            key = (bind, data.shape, data.dtype, *map(fingerprint, arguments))
        hash(key)
    except (AttributeError, MemoryError, TypeError, ValueError):
        return None
    return key


def _is_plain(value: Any) -> bool:
    """Whether nothing else is spelled as this value is."""
    if type(value) in (list, tuple):
        return all(type(item) is int for item in value)
    return value is None or type(value) is int
