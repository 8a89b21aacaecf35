"""The eager functions: operands as Python values in, parts out.

They are thin: values become operands, `resolve` decides the plan, `arrays` runs it.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any

from numpy import ndarray

from tensorsplit import arrays
from tensorsplit.arrays import numpy as numpy_arrays
from tensorsplit.arrays.arguments import bind_values, cache_key, lookup_key
from tensorsplit.arrays.pool import BufferPool
from tensorsplit.arrays.prepared import ArrayPlan, counted
from tensorsplit.core.records import NEWEST_OPSET, in_force, operators
from tensorsplit.core.resolve import Intent, check_element_type
from tensorsplit.core.resolve import plan as plan_intent


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
    """Split a tensor along an axis, as ONNX Split does.

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
    return _run(_split, input, (split, axis, num_outputs, opset), copy, out)


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
    """Split a tensor into a sequence, as ONNX SplitToSequence does.

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
    return _run(_split_to_sequence, input, (split, axis, keepdims, opset), copy, out)


def variadic_split(
    data: Any,
    axis: Any,
    split_lengths: Any,
    *,
    copy: bool = False,
    out: Sequence[Any] | BufferPool | None = None,
) -> list[Any]:
    """Split a tensor along an axis, as OpenVINO VariadicSplit-1 does.

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
    return _run(_variadic_split, data, (split_lengths, axis), copy, out)


def openvino_split(
    data: Any,
    axis: Any,
    num_splits: int,
    *,
    copy: bool = False,
    out: Sequence[Any] | BufferPool | None = None,
) -> list[Any]:
    """Split a tensor into equal parts, as OpenVINO Split-1 does (``tensorsplit.openvino.split``).

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
    return _run(_openvino_split, data, (num_splits, axis), copy, out)


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


class _Memo:
    """The plans of the calls of one function, by the key of the call."""

    __slots__ = ("_parts", "bind", "plans")

    def __init__(self, bind: Callable[..., Intent]) -> None:
        self.bind = bind
        self.plans: dict[Hashable, ArrayPlan] = {}
        self._parts = 0  # about as many as the plans have; threads that meet here may lose some

    def add(self, key: Hashable, plan: ArrayPlan) -> None:
        """Keep a plan, in the place of all others once they are too many or too long."""
        count = 1 + len(plan.sizes)
        if count > _MOST_PARTS:
            return
        if len(self.plans) >= _MOST_PLANS or self._parts + count > _MOST_PARTS:
            self.plans.clear()
            self._parts = 0
        self.plans[key] = plan
        self._parts += count


_split = _Memo(_bind_split)
_split_to_sequence = _Memo(_bind_split_to_sequence)
_variadic_split = _Memo(_bind_variadic_split)
_openvino_split = _Memo(_bind_openvino_split)


def _run(
    memo: _Memo,
    data: Any,
    arguments: tuple[Any, ...],
    copy: bool,
    out: Sequence[Any] | BufferPool | None,
) -> list[Any]:
    """Split an array: at once if a call with the same arguments was validated for one like it."""
    try:
        plan = memo.plans.get(lookup_key(data, arguments))
    except (MemoryError, TypeError, ValueError):  # no key, or none that can be hashed
        plan = None
    if plan is not None:
        if copy is not False or out is not None:
            return arrays.execute(plan, data, numpy_arrays, copy, out)
        parts = plan.views(data)
        if parts is not None:
            return parts
    library, plan = _validate(memo, data, tuple(map(_snapshot, arguments)))
    return arrays.execute(plan, data, library, copy, out)


def _snapshot(value: Any) -> Any:
    """A value as it is now, which no one else can change; large arrays are never remembered."""
    if type(value) is list:
        return value.copy()
    if isinstance(value, ndarray) and value.size <= _MOST_PARTS:
        return value.copy()
    return value


def _validate(
    memo: _Memo, data: Any, arguments: tuple[Any, ...]
) -> tuple[arrays.ArrayLibrary, ArrayPlan]:
    """Resolve and cache the plan; nobody else can change the arguments."""
    key = cache_key(data, arguments)
    library, plan = arrays.find_library(data), memo.plans.get(key)
    if library is None or plan is None:
        intent = memo.bind(*arguments)
        parameter = intent.operator.inputs[0].name
        library = arrays.library_of(data, intent.operator.id, parameter)
        plan = ArrayPlan.of(counted(plan_intent(intent, tuple(data.shape))))
        check_element_type(plan.operator, library.element_type(data), plan.element_types, parameter)
        if key is not None:
            memo.add(key, plan)
    return library, plan
