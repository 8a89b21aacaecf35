"""The eager functions: operands as Python values in, parts out.

They are thin: values become operands, `resolve` decides the plan, `arrays` runs it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, SupportsIndex, overload

from numpy import ndarray

from tensorsplit import arrays
from tensorsplit.arrays import numpy as numpy_arrays
from tensorsplit.arrays.arguments import bind_values
from tensorsplit.arrays.buffers import snapshot
from tensorsplit.arrays.naming import named_call
from tensorsplit.arrays.prepared import PreparedSplit
from tensorsplit.arrays.remembered import Callee, at_once, compiled_as, make_plans
from tensorsplit.arrays.typed import (
    ArrayT,
    Axis,
    Flag,
    KeepDims,
    Lengths,
    Named,
    NamedOut,
    Out,
    PartT_co,
    TensorOf,
)
from tensorsplit.core.dimensions import Shape
from tensorsplit.core.errors import SplitError
from tensorsplit.core.given import is_mapping
from tensorsplit.core.records import NEWEST_OPSET, in_force
from tensorsplit.core.resolve import Intent, check_element_type
from tensorsplit.core.schema import Operator

_MOST_PLANS = 1024
_MOST_PARTS = 1 << 16
_shape_of = ndarray.shape.__get__  # of the memory, and faster than a view


class _Memo(Callee):
    """The plans of one function's calls; ``names`` are its arguments, but the tensor."""

    __slots__ = ("_names", "_operator", "_parts", "plans")

    def __init__(self, operator: str, *names: str) -> None:
        self._operator, self._names = operator, names
        self.plans = make_plans()
        self._parts = 0  # about as many as the plans have; threads that meet here may lose some

    @property
    def decisions(self) -> _Memo:
        """Decides calls under ``torch.compile``."""
        return self

    def intent_of(
        self, arguments: tuple[object, ...], library: arrays.ArrayLibrary | None
    ) -> Intent:
        """Bind a call; OpenVINO's functions have no opset, and are of version 1."""
        values: dict[str, Any] = dict(zip(self._names, arguments, strict=True))
        return bind_values(self._record_at(values.pop("opset", 1)), values, library)

    def _record_at(self, opset: SupportsIndex) -> Operator:
        vendor, _, name = self._operator.partition(".")
        return in_force(name, opset, vendor=vendor)

    def named(
        self,
        lengths: Mapping[object, object],
        out: object,
        parameter: str,
        opset: SupportsIndex = 1,
    ) -> tuple[tuple[str, ...], tuple[Any, ...], Any]:
        """Return the names, the lengths, and the buffers in the same order (TS315, TS316)."""
        try:
            return named_call(lengths, out, parameter)
        except SplitError as error:
            raise error.located(operator=self._record_at(opset).id) from None

    def plan_of(self, intent: Intent, shape: Shape, unknown: str | None = None) -> PreparedSplit:
        """Return the plan of an intent for a shape."""
        return PreparedSplit.of(intent, shape, unknown)

    def add(self, array: object, arguments: tuple[object, ...], plan: PreparedSplit) -> None:
        """Cache a plan; once the plans are too many or too long, all others are dropped."""
        count = 1 + len(plan.sizes)
        if count > _MOST_PARTS:
            return
        if len(self.plans) >= _MOST_PLANS or self._parts + count > _MOST_PARTS:
            self.plans.clear()
            self._parts = 0
        plan.accept(array)
        self.plans.add(array, arguments, plan)
        self._parts += count


_split = _Memo("onnx.Split", "split", "axis", "num_outputs", "opset")
_split_to_sequence = _Memo("onnx.SplitToSequence", "split", "axis", "keepdims", "opset")
_variadic_split = _Memo("openvino.VariadicSplit", "axis", "split_lengths")
_openvino_split = _Memo("openvino.Split", "axis", "num_splits")


@overload
def split(
    input: TensorOf[PartT_co],
    split: Lengths | None = ...,
    axis: SupportsIndex = ...,
    *,
    num_outputs: SupportsIndex | None = ...,
    opset: SupportsIndex = ...,
    copy: Flag = ...,
    out: Out = ...,
) -> list[PartT_co]: ...
@overload
def split(
    input: TensorOf[PartT_co],
    split: Named,
    axis: SupportsIndex = ...,
    *,
    num_outputs: SupportsIndex | None = ...,
    opset: SupportsIndex = ...,
    copy: Flag = ...,
    out: NamedOut = ...,
) -> dict[str, PartT_co]: ...
@overload
def split(
    input: ArrayT,
    split: Lengths | None = ...,
    axis: SupportsIndex = ...,
    *,
    num_outputs: SupportsIndex | None = ...,
    opset: SupportsIndex = ...,
    copy: Flag = ...,
    out: Out = ...,
) -> list[ArrayT]: ...
@overload
def split(
    input: ArrayT,
    split: Named,
    axis: SupportsIndex = ...,
    *,
    num_outputs: SupportsIndex | None = ...,
    opset: SupportsIndex = ...,
    copy: Flag = ...,
    out: NamedOut = ...,
) -> dict[str, ArrayT]: ...
@at_once(_split.plans)
def split(
    input: object,
    split: Lengths | Named | None = None,
    axis: SupportsIndex = 0,
    *,
    num_outputs: SupportsIndex | None = None,
    opset: SupportsIndex = NEWEST_OPSET,
    copy: Flag = False,
    out: NamedOut = None,
) -> object:
    """Split a tensor along an axis, as ONNX Split does.

    Args:
        input: The tensor, of rank 1 or more and an element type that the version allows.
        split: The length of each part: integers or a 1-D integer array. Before opset 13 it is
            the attribute, from 13 on the input; an array given at opset 1 is the second input,
            which has the float type of the data. A dict gives each part a name.
        axis: The axis, in [-rank, rank-1].
        num_outputs: The attribute of Split-18; before it, how many outputs the node has.
        opset: The model's opset, which selects the version: 12 means Split-11.
        copy: Return new C-contiguous arrays; by default the parts are views.
        out: Arrays to write the parts to, one for each, which are returned; or a `BufferPool` to
            take them from. Implies a copy. In a loop over large data both save the time in which
            the system clears new memory, which is about that of the copy.

    Returns:
        The parts, in order, as arrays of the library of `input`; in a dict if they have names.

    Raises:
        SplitError: TS101 to TS405; TS315 and TS316 for names; see ``docs/errors.md``.

    Example:
        >>> x = np.arange(12).reshape(2, 6)
        >>> a, b = ts.split(x, [2, 4], axis=1)
        >>> a.shape, b.shape
        ((2, 2), (2, 4))
        >>> sorted(ts.split(x, {"head": 2, "rest": 4}, axis=1))
        ['head', 'rest']

    See Also:
        https://onnx.ai/onnx/operators/onnx__Split.html
    """
    if is_mapping(split):
        names, split, out = _split.named(split, out, "split", opset)
        parts = _run(_split, input, (split, axis, num_outputs, opset), copy, out)
        return dict(zip(names, parts, strict=True))
    return _run(_split, input, (split, axis, num_outputs, opset), copy, out)


@overload
def split_to_sequence(
    input: TensorOf[PartT_co],
    split: Lengths | SupportsIndex | None = ...,
    axis: SupportsIndex = ...,
    *,
    keepdims: KeepDims = ...,
    opset: SupportsIndex = ...,
    copy: Flag = ...,
    out: Out = ...,
) -> list[PartT_co]: ...
@overload
def split_to_sequence(
    input: TensorOf[PartT_co],
    split: Named,
    axis: SupportsIndex = ...,
    *,
    keepdims: KeepDims = ...,
    opset: SupportsIndex = ...,
    copy: Flag = ...,
    out: NamedOut = ...,
) -> dict[str, PartT_co]: ...
@overload
def split_to_sequence(
    input: ArrayT,
    split: Lengths | SupportsIndex | None = ...,
    axis: SupportsIndex = ...,
    *,
    keepdims: KeepDims = ...,
    opset: SupportsIndex = ...,
    copy: Flag = ...,
    out: Out = ...,
) -> list[ArrayT]: ...
@overload
def split_to_sequence(
    input: ArrayT,
    split: Named,
    axis: SupportsIndex = ...,
    *,
    keepdims: KeepDims = ...,
    opset: SupportsIndex = ...,
    copy: Flag = ...,
    out: NamedOut = ...,
) -> dict[str, ArrayT]: ...
@at_once(_split_to_sequence.plans)
def split_to_sequence(
    input: object,
    split: Lengths | Named | SupportsIndex | None = None,
    axis: SupportsIndex = 0,
    *,
    keepdims: KeepDims = 1,
    opset: SupportsIndex = NEWEST_OPSET,
    copy: Flag = False,
    out: NamedOut = None,
) -> object:
    """Split a tensor into a sequence, as ONNX SplitToSequence does.

    Args:
        input: The tensor, of rank 1 or more and an element type that the version allows.
        split: A number is the length of each chunk (> 0), of which the last may be smaller; a
            list or 1-D array holds the length of each part, and a dict gives each a name. None
            means parts of length 1.
        axis: The axis, in [-rank, rank-1].
        keepdims: 0 drops the axis from parts of length 1; ignored if `split` is given (D8).
        opset: The model's opset, from 11 on.
        copy: Return new C-contiguous arrays; by default the parts are views.
        out: Arrays to write the parts to, one for each, which are returned; or a `BufferPool` to
            take them from. Implies a copy.

    Returns:
        The sequence, as a list of arrays of the library of `input`, or as a dict of them.

    Raises:
        SplitError: TS101 to TS405; TS315 and TS316 for names; see ``docs/errors.md``.

    Example:
        >>> [part.shape for part in ts.split_to_sequence(np.arange(7), 3)]
        [(3,), (3,), (1,)]

    See Also:
        https://onnx.ai/onnx/operators/onnx__SplitToSequence.html
    """
    if is_mapping(split):
        names, split, out = _split_to_sequence.named(split, out, "split", opset)
        parts = _run(_split_to_sequence, input, (split, axis, keepdims, opset), copy, out)
        return dict(zip(names, parts, strict=True))
    return _run(_split_to_sequence, input, (split, axis, keepdims, opset), copy, out)


@overload
def variadic_split(
    data: TensorOf[PartT_co],
    axis: Axis,
    split_lengths: Lengths,
    *,
    copy: Flag = ...,
    out: Out = ...,
) -> list[PartT_co]: ...
@overload
def variadic_split(
    data: TensorOf[PartT_co],
    axis: Axis,
    split_lengths: Named,
    *,
    copy: Flag = ...,
    out: NamedOut = ...,
) -> dict[str, PartT_co]: ...
@overload
def variadic_split(
    data: ArrayT,
    axis: Axis,
    split_lengths: Lengths,
    *,
    copy: Flag = ...,
    out: Out = ...,
) -> list[ArrayT]: ...
@overload
def variadic_split(
    data: ArrayT,
    axis: Axis,
    split_lengths: Named,
    *,
    copy: Flag = ...,
    out: NamedOut = ...,
) -> dict[str, ArrayT]: ...
@at_once(_variadic_split.plans)
def variadic_split(
    data: object,
    axis: Axis,
    split_lengths: Lengths | Named,
    *,
    copy: Flag = False,
    out: NamedOut = None,
) -> object:
    """Split a tensor along an axis, as OpenVINO VariadicSplit-1 does.

    Args:
        data: The tensor, of rank 1 or more and any element type.
        axis: The axis, in [-rank, rank-1]: an integer, or an integer array of shape () or [1].
        split_lengths: The length of each part, of which one may be -1 for the remainder. A dict
            gives each part a name.
        copy: Return new C-contiguous arrays; by default the parts are views.
        out: Arrays to write the parts to, one for each, which are returned; or a `BufferPool` to
            take them from. Implies a copy.

    Returns:
        The parts, in order, as arrays of the library of `data`; in a dict if they have names.

    Raises:
        SplitError: TS102 to TS405; TS315 and TS316 for names; see ``docs/errors.md``.

    Example:
        >>> head, rest = ts.variadic_split(np.arange(7), axis=0, split_lengths=[2, -1])
        >>> head.shape, rest.shape
        ((2,), (5,))

    See Also:
        The page named by ``operators["openvino.VariadicSplit-1"].source``.
    """
    if is_mapping(split_lengths):
        names, split_lengths, out = _variadic_split.named(split_lengths, out, "split_lengths")
        parts = _run(_variadic_split, data, (axis, split_lengths), copy, out)
        return dict(zip(names, parts, strict=True))
    return _run(_variadic_split, data, (axis, split_lengths), copy, out)


@overload
def openvino_split(
    data: TensorOf[PartT_co],
    axis: Axis,
    num_splits: SupportsIndex,
    *,
    copy: Flag = ...,
    out: Out = ...,
) -> list[PartT_co]: ...
@overload
def openvino_split(
    data: ArrayT,
    axis: Axis,
    num_splits: SupportsIndex,
    *,
    copy: Flag = ...,
    out: Out = ...,
) -> list[ArrayT]: ...
@at_once(_openvino_split.plans)
def openvino_split(
    data: object,
    axis: Axis,
    num_splits: SupportsIndex,
    *,
    copy: Flag = False,
    out: Out = None,
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

    Example:
        >>> [part.tolist() for part in ts.openvino.split(np.arange(4), axis=0, num_splits=2)]
        [[0, 1], [2, 3]]

    See Also:
        The page named by ``operators["openvino.Split-1"].source``.
    """
    return _run(_openvino_split, data, (axis, num_splits), copy, out)


def _run_compiled(
    memo: _Memo, data: object, arguments: tuple[object, ...], copy: object, out: object
) -> list[object]:
    """Stand in for `_run` where ``torch.compile`` traces."""
    from tensorsplit.arrays import torch_compiled

    return torch_compiled.run(memo, data, arguments, copy, out)


@compiled_as(_run_compiled)
def _run(
    memo: _Memo,
    data: object,
    arguments: tuple[object, ...],
    copy: Flag,
    out: NamedOut,
) -> list[object]:
    """Split an array: at once if a call with the same arguments was validated for one like it."""
    if out is not None:
        out = snapshot(out)
    plan: PreparedSplit | None = memo.plans.find(data, arguments)
    if plan is not None:
        if type(data) is not ndarray:
            known = arrays.find_library(data)  # the plan may be that of a tensor of another class
            if known is not None and _fits(plan, data, known):
                return arrays.execute(plan, data, known, copy, out)
        elif copy is not False or out is not None:
            return arrays.execute(plan, data, numpy_arrays, copy, out)
        else:
            parts = plan.views(data)
            if parts is not None:
                return parts
    library, plan = _validate(memo, data, tuple(map(_snapshot, arguments)))
    return arrays.execute(plan, data, library, copy, out)


def _fits(plan: PreparedSplit, data: object, library: arrays.ArrayLibrary) -> bool:
    """Return whether a plan that is kept is of the memory of an array; its class may say more."""
    return library is not numpy_arrays or _shape_of(data) == plan.input_shape


def _snapshot(value: Any) -> object:
    """Return an immutable copy of a value; never of large arrays."""
    is_small = issubclass(type(value), ndarray) and ndarray.view(value, ndarray).size <= _MOST_PARTS
    return value.copy() if is_small or type(value) is list else value


def _validate(
    memo: _Memo, data: object, arguments: tuple[object, ...]
) -> tuple[arrays.ArrayLibrary, PreparedSplit]:
    """Resolve and cache the plan; nobody else can change the arguments."""
    library, plan = arrays.find_library(data), memo.plans.find(data, arguments)
    if library is None or plan is None or not _fits(plan, data, library):
        intent = memo.intent_of(arguments, library)
        parameter = intent.operator.inputs[0].name
        library = arrays.library_of(data, intent.operator.id, parameter)
        plan = memo.plan_of(intent, library.shape(data), library.unknown)
        check_element_type(plan.operator, library.element_type(data), plan.element_types, parameter)
        if not library.check(data):
            memo.add(data, arguments, plan)
    return library, plan
