"""How ``torch.compile`` sees the functions that split: by Dynamo, which follows Python.

Dynamo follows no C and takes ``torch.SymInt`` for ``int``. So what is known is decided while it
traces, by functions that it runs and whose results it takes for constants; the length rule is
traced only where a dimension or a length is not known, and what it decides is then guarded. In the
graph there is nothing but torch's operations.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, Protocol, TypeAlias, TypeVar

import numpy as np
import torch
from torch.fx.experimental.symbolic_shapes import guard_or_false, guard_or_true, has_static_value

from tensorsplit import arrays
from tensorsplit.arrays import torch as tensors
from tensorsplit.arrays.pool import BufferPool
from tensorsplit.arrays.remembered import compiled_as
from tensorsplit.core import arithmetic, rules
from tensorsplit.core.dimensions import Shape, are_known
from tensorsplit.core.errors import (
    KINDS,
    NOT_AN_ARRAY,
    OPERAND_TYPE,
    OUT_COUNT,
    OUT_OVERLAP,
    OUT_SHAPE,
    OUT_TYPE,
    UNKNOWN_COUNT,
    SplitError,
)
from tensorsplit.core.plan import SplitPlan
from tensorsplit.core.resolve import Intent, check_element_type

Tensor: TypeAlias = Any
_Function = TypeVar("_Function", bound=Callable[..., Any])

_TRACED, _ARRAY = "(traced)", "(an array)"
"""They stand for arguments that are not known while tracing."""


class Decisions(Protocol):
    """What decides a call: the memory of a function, or a plan."""

    def intent_of(self, arguments: tuple[Any, ...], library: Any) -> Intent | None:
        """Return the intent of a call with these operands."""

    def plan_of(self, intent: Any, shape: Shape) -> SplitPlan:
        """Return the plan for a shape, whose dimensions are None where they are not known."""


def _decided(function: _Function) -> _Function:
    """Have Dynamo run a function; an exception of it ends the trace."""
    decided: _Function = torch.compiler.assume_constant_result(function)
    return decided


def run(
    source: Decisions,
    data: Any,
    arguments: tuple[Any, ...],
    copy: Any,
    out: Any,
    *,
    planned: Shape | None = None,
) -> list[Tensor]:
    """Split a tensor, of a planned shape if there is one."""
    if isinstance(data, np.ndarray):
        torch._dynamo.graph_break()  # noqa: SLF001 - that is how it is documented
    if not isinstance(data, torch.Tensor):
        _refuse_data(type(data))
    dims = tuple(data.shape)
    if planned is not None and len(planned) == len(dims):
        pairs = zip(dims, planned, strict=True)
        dims = tuple([plan if type(plan) is int and dim == plan else dim for dim, plan in pairs])
    axis, keepdims, sizes, rule, given = _resolve(
        source,
        tuple([_known(argument) for argument in arguments]),
        tuple([_known(dim) for dim in dims]),
        dtype=data.dtype,
        layout=data.layout,
        copy=copy,
        is_pooled=isinstance(out, BufferPool),
    )
    if sizes is None:
        values: Any = given
        for argument in arguments:
            if isinstance(argument, (list, tuple)):
                values = argument
        values = tuple([length + 0 for length in values])  # Dynamo guards no element of a constant
        try:
            sizes = getattr(rules, rule)(dims[axis], values)
        except _DoesNotFitError:
            example = tuple([_number(argument) for argument in arguments])
            _explain(source, example, tuple([_number(dim) for dim in dims]))
    if out is not None:
        return _write(data, axis, keepdims, sizes, out)
    if keepdims:
        parts = (torch.split_with_sizes_copy if copy else torch.split_with_sizes)(data, sizes, axis)
    else:
        parts = (torch.unbind_copy if copy else torch.unbind)(data, axis)
    return list(parts)


def _known(value: Any) -> Any:
    """Return an argument as far as it is known."""
    if isinstance(value, (torch.Tensor, np.ndarray)):
        return _ARRAY
    if isinstance(value, (list, tuple)):
        return tuple([_known(item) for item in value])
    if type(value) is int and not has_static_value(value):
        return _TRACED
    return value


def _number(value: Any) -> Any:
    """Return an argument with the numbers of the example that is traced."""
    if isinstance(value, (list, tuple)):
        return tuple([_number(item) for item in value])
    return operator.index(value) if type(value) is int else value


@_decided
def _resolve(
    source: Decisions,
    given: tuple[Any, ...],
    shape: tuple[Any, ...],
    *,
    dtype: Any,
    layout: Any,
    copy: Any,
    is_pooled: bool,
) -> tuple[int, bool, tuple[int, ...] | None, str, tuple[int, ...] | None]:
    """Return the axis, whether it is kept, and the sizes; or None, their rule and what it is given.

    What the rule is given is None if it is in the arguments and not known.
    """
    is_quantized = str(dtype).startswith(("torch.q", "torch.uq"))
    if layout is not torch.strided or is_quantized:
        tensors.refuse_kind(layout, is_quantized)
    if any(argument == _ARRAY for argument in given):
        problem = "an operand is an array, whose values are not known while tracing"
        raise SplitError(OPERAND_TYPE, problem, "give integers")
    if any(argument == _TRACED for argument in given):
        raise SplitError(
            UNKNOWN_COUNT, "an operand is known only when the trace runs", "give a number"
        )
    is_open = any(isinstance(argument, tuple) and _TRACED in argument for argument in given)
    if is_open:
        given = tuple(_closed(argument) for argument in given)
    intent = source.intent_of(given, tensors)
    dims = tuple(None if is_open or dim == _TRACED else dim for dim in shape)
    plan = source.plan_of(intent, dims)
    check_element_type(plan.operator, tensors.type_name(dtype), plan.element_types)
    arrays.as_flag(copy, plan.operator)
    if is_pooled:
        problem, fix = "a pool can't be used in a compiled function", "use copy=True"
        raise SplitError(OUT_TYPE, problem, fix, operator=plan.operator, parameter="out")
    if intent is None or (dims[plan.axis] is not None and are_known(plan.sizes)):
        return plan.axis, plan.keepdims, plan.sizes, "", None
    rule = getattr(intent.rule, "__name__", "")
    return plan.axis, plan.keepdims, None, rule, None if is_open else intent.given


def _closed(argument: Any) -> Any:
    """Return lengths with legal numbers in the place of those that are not known."""
    if isinstance(argument, tuple):
        return tuple(0 if item == _TRACED else item for item in argument)
    return argument


class _DoesNotFitError(Exception):
    """A length rule refuses what is traced."""


def _holds(condition: Any) -> bool:
    """Return whether a condition holds; what can't be told while tracing is checked at run time."""
    holds = guard_or_true(condition)
    if holds and not guard_or_false(condition):
        torch._check(condition)  # noqa: SLF001 - that is how it is documented
    return bool(holds)


def _stop(condition: Any, *_: Any) -> None:
    """Stand in for `arithmetic.explain` under Dynamo, which can't format the message."""
    if isinstance(condition, bool) and not _holds(condition):
        raise _DoesNotFitError


def _none_below(smallest: int, numbers: Any) -> bool:
    """Stand in for `arithmetic.none_below` under Dynamo: it tests each length alone."""
    return all(_holds(number >= smallest) for number in numbers)


compiled_as(_stop)(arithmetic.explain)
compiled_as(_none_below)(arithmetic.none_below)


@_decided
def _refuse_data(kind: type) -> None:
    raise SplitError(NOT_AN_ARRAY, f"it is of type {kind.__name__}", "give a tensor")


@_decided
def _explain(source: Decisions, arguments: tuple[Any, ...], shape: tuple[int, ...]) -> None:
    """Refuse the example that is traced."""
    source.plan_of(source.intent_of(arguments, tensors), shape)
    raise SplitError(UNKNOWN_COUNT, "the lengths do not fit", "give lengths that fit")


@_decided
def _refuse(code: str, problem: str, fix: str) -> None:
    raise SplitError(KINDS[code], problem, fix, parameter="out")


def _write(data: Tensor, axis: int, keepdims: bool, sizes: Any, out: Any) -> list[Tensor]:
    """Write the parts to buffers; of memory that is shared only the same tensors can be seen."""
    if not isinstance(out, (list, tuple)) or len(out) != len(sizes):
        _refuse(OUT_COUNT.code, "its length is not that of the parts", f"give {len(sizes)} tensors")
    parts = torch.split_with_sizes(data, sizes, axis) if keepdims else torch.unbind(data, axis)
    for number in range(len(out)):
        buffer, part = out[number], parts[number]
        if not isinstance(buffer, torch.Tensor):
            _refuse(OUT_TYPE.code, f"buffer {number} is not a tensor", "give tensors")
        if buffer.ndim != part.ndim or buffer.shape != part.shape:
            _refuse(OUT_SHAPE.code, f"buffer {number} has not the shape of its part", "give one")
        if buffer.dtype != part.dtype or buffer.device != part.device:
            problem = f"buffer {number} is of another element type or device than the data"
            _refuse(OUT_TYPE.code, problem, "give one of the same")
        if buffer is data or any(buffer is other for other in out[:number]):
            problem = f"buffer {number} is the data, or another buffer"
            _refuse(OUT_OVERLAP.code, problem, "give buffers of their own")
    for buffer, part in zip(out, parts, strict=True):
        buffer.copy_(part)
    return list(out)
