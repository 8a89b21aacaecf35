"""The eager functions: operands as Python values in, parts out.

They are thin: values become operands, `resolve` decides, `arrays` cuts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tensorsplit import arrays
from tensorsplit.arguments import bind_values, fingerprint
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
    out: Sequence[Any] | None = None,
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
        out: Arrays to write the parts to, one for each; implies a copy and is returned.

    Returns:
        The parts, in order, as arrays of the library of `input`.

    Raises:
        SplitError: TS101 to TS405; see ``docs/errors.md``.

    See Also:
        https://onnx.ai/onnx/operators/onnx__Split.html
    """
    return _run(input, copy, out, _bind_split, split, axis, num_outputs, opset)


def split_to_sequence(
    input: Any,
    split: Any = None,
    *,
    axis: int = 0,
    keepdims: int = 1,
    opset: int = NEWEST_OPSET,
    copy: bool = False,
    out: Sequence[Any] | None = None,
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
        out: Arrays to write the parts to, one for each; implies a copy and is returned.

    Returns:
        The sequence, as a list of arrays of the library of `input`.

    Raises:
        SplitError: TS101 to TS405; see ``docs/errors.md``.

    See Also:
        https://onnx.ai/onnx/operators/onnx__SplitToSequence.html
    """
    return _run(input, copy, out, _bind_split_to_sequence, split, axis, keepdims, opset)


def variadic_split(
    data: Any,
    axis: Any,
    split_lengths: Any,
    *,
    copy: bool = False,
    out: Sequence[Any] | None = None,
) -> list[Any]:
    """Cut a tensor along an axis, as OpenVINO VariadicSplit-1 does.

    Args:
        data: The tensor, of rank 1 or more and any element type.
        axis: The axis, in [-rank, rank-1]: an integer, or an integer array of shape () or [1].
        split_lengths: The length of each part, of which one may be -1 for the remainder.
        copy: Return new C-contiguous arrays; by default the parts are views.
        out: Arrays to write the parts to, one for each; implies a copy and is returned.

    Returns:
        The parts, in order, as arrays of the library of `data`.

    Raises:
        SplitError: TS102 to TS405; see ``docs/errors.md``.

    See Also:
        The page named by ``operators["openvino.VariadicSplit-1"].source``.
    """
    return _run(data, copy, out, _bind_variadic_split, axis, split_lengths)


def openvino_split(
    data: Any,
    axis: Any,
    num_splits: int,
    *,
    copy: bool = False,
    out: Sequence[Any] | None = None,
) -> list[Any]:
    """Cut a tensor into equal parts, as OpenVINO Split-1 does (``tensorsplit.openvino.split``).

    Args:
        data: The tensor, of rank 1 or more and any element type.
        axis: The axis, in [-rank, rank-1]: an integer, or an integer array of shape ().
        num_splits: How many parts; it divides the dimension.
        copy: Return new C-contiguous arrays; by default the parts are views.
        out: Arrays to write the parts to, one for each; implies a copy and is returned.

    Returns:
        The parts, in order, as arrays of the library of `data`.

    Raises:
        SplitError: TS102 to TS405; see ``docs/errors.md``.

    See Also:
        The page named by ``operators["openvino.Split-1"].source``.
    """
    return _run(data, copy, out, _bind_openvino_split, axis, num_splits)


def _bind_split(split: Any, axis: Any, num_outputs: Any, opset: int) -> Intent:
    record = in_force("Split", opset)
    operands = {"split": split, "axis": axis, "num_outputs": num_outputs}
    return bind_values(record, operands)


def _bind_split_to_sequence(split: Any, axis: Any, keepdims: Any, opset: int) -> Intent:
    record = in_force("SplitToSequence", opset)
    return bind_values(record, {"split": split, "axis": axis, "keepdims": keepdims})


def _bind_variadic_split(axis: Any, split_lengths: Any) -> Intent:
    record = operators["openvino.VariadicSplit-1"]
    return bind_values(record, {"axis": axis, "split_lengths": split_lengths})


def _bind_openvino_split(axis: Any, num_splits: Any) -> Intent:
    record = operators["openvino.Split-1"]
    return bind_values(record, {"axis": axis, "num_splits": num_splits})


_CACHED_PLANS = 1024
_CACHED_PARTS = 64
_cache: dict[tuple[Any, ...], SplitPlan] = {}


def _run(
    data: Any,
    copy: bool,
    out: Sequence[Any] | None,
    bind_arguments: Callable[..., Intent],
    *arguments: Any,
) -> list[Any]:
    """Cut an array; the plan of a call with the same arguments, shape and type is reused.

    The key holds the arguments' values and types (True is not 1, nor is 1.0), so a list that has
    changed since is another key.
    """
    library = arrays.find_library(data)
    key, plan = None, None
    if library is not None:
        try:
            key = (bind_arguments, data.shape, data.dtype, *map(fingerprint, arguments))
            plan = _cache.get(key)
        except TypeError:  # an argument that can't be told apart from others
            key = None
    if library is None or plan is None:
        intent = bind_arguments(*arguments)
        parameter = intent.operator.inputs[0].name
        library = arrays.library_of(data, intent.operator.id, parameter)
        plan = counted(plan_intent(intent, tuple(data.shape)))
        check_element_type(plan.operator, library.element_type(data), plan.element_types, parameter)
        if key is not None:
            _remember(key, plan, arguments)
    return arrays.execute(plan, data, library, copy, out)


def _remember(key: tuple[Any, ...], plan: SplitPlan, arguments: tuple[Any, ...]) -> None:
    """Keep a plan, unless it is long, or another thread changed an argument as it was made."""
    try:
        unchanged = key[3:] == tuple(map(fingerprint, arguments))
    except TypeError:
        unchanged = False
    if unchanged and len(plan.sizes) <= _CACHED_PARTS:
        if len(_cache) >= _CACHED_PLANS:
            _cache.clear()
        _cache[key] = plan
