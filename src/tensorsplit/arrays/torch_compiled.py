"""How ``torch.compile`` sees the functions that split: by Dynamo, which follows Python.

Dynamo follows no C and takes ``torch.SymInt`` for ``int``. So what is known is decided while it
traces, by functions that it runs and whose results it takes for constants; the length rule is
traced only where a dimension or a length is not known, and what it decides is then guarded. In the
graph there is nothing but torch's operations.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol, TypeAlias, TypeVar, cast

import numpy as np
import torch
from torch.fx.experimental.symbolic_shapes import guard_or_false, guard_or_true, has_static_value

from tensorsplit import arrays
from tensorsplit.arrays import torch as tensors
from tensorsplit.arrays.pool import BufferPool
from tensorsplit.arrays.remembered import Callee, compiled_as
from tensorsplit.core import arithmetic, rules
from tensorsplit.core.dimensions import Dim, Shape, are_known
from tensorsplit.core.emit import check_concat, check_split
from tensorsplit.core.errors import (
    KINDS,
    NEEDS_COPY,
    NOT_AN_ARRAY,
    OPERAND_TYPE,
    OUT_COUNT,
    OUT_OVERLAP,
    OUT_SHAPE,
    OUT_TYPE,
    PART_COUNT,
    PART_SHAPE,
    PART_TYPE,
    UNKNOWN_COUNT,
    SplitError,
)
from tensorsplit.core.plan import SplitPlan
from tensorsplit.core.resolve import Intent, check_element_type

Tensor: TypeAlias = torch.Tensor
_Function = TypeVar("_Function", bound=Callable[..., object])

_INTEGERS = (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8)

_TRACED, _ARRAY = "(traced)", "(an array)"
"""They stand for arguments that are not known while tracing."""


class Decisions(Protocol):
    """Decides a split: the cache of a function, or a plan."""

    def intent_of(
        self, arguments: tuple[object, ...], library: arrays.ArrayLibrary
    ) -> Intent | None:
        """Return the intent of a call with these operands."""

    def plan_of(self, intent: object, shape: Shape) -> SplitPlan:
        """Return the plan for a shape, whose dimensions are None where they are not known."""


class Joins(Protocol):
    """Decides how parts are joined: with any lengths, or with those of a plan."""

    def fit(
        self,
        arguments: tuple[object, ...],
        shapes: list[Shape],
        like: Shape | None,
        kind: str,
        library: arrays.ArrayLibrary,
    ) -> SplitPlan:
        """Return the plan that makes parts of these shapes, whose dimensions may be None."""


torch.compiler.assume_constant_result(Callee.decided)


def _decided(function: _Function) -> _Function:
    """Let Dynamo run a function; its refusals are raised in the trace, to be caught there."""
    decide = torch.compiler.assume_constant_result(_caught(function))

    @functools.wraps(function)
    def decided(*given: object, **named: object) -> object:
        return _answered(*decide(*given, **named))

    return cast("_Function", decided)


def _decided_about(function: _Function) -> _Function:
    """Let Dynamo run a function whose first argument is the callee, as `_decided` does."""
    decide = _caught(function)

    @functools.wraps(function)
    def decided(called: Callee, *given: object, **named: object) -> object:
        id(called)  # Dynamo guards then that it is the same object
        return _answered(*called.decided(decide, *given, **named))

    return cast("_Function", decided)


def _caught(function: Callable[..., object]) -> Callable[..., tuple[object, Any]]:
    """Return a function that returns a refusal as the second of two values."""

    def decide(*given: object, **named: object) -> tuple[object, Any]:
        try:
            return function(*given, **named), None
        except SplitError as error:
            return None, (error.code, error.problem, error.fix, error.parameter, error.operator)

    return decide


def _answered(answer: object, refusal: Any) -> object:
    """Return an answer, or raise the refusal in its place."""
    if refusal is not None:
        _refuse(*refusal)
    return answer


class _TracedError(SplitError):
    """A refusal under Dynamo, which shows the arguments of an exception that nobody catches."""

    def __init__(self, _text: str, code: str, problem: str, fix: str, **place: Any) -> None:
        super().__init__(KINDS[code], problem, fix, **place)


def _refuse(
    code: str, problem: str, fix: str, parameter: str | None = "out", operator: str | None = None
) -> None:
    text = _text(code, problem, fix, parameter, operator)
    raise _TracedError(text, code, problem, fix, parameter=parameter, operator=operator)


@torch.compiler.assume_constant_result  # type: ignore[untyped-decorator, unused-ignore]
def _text(code: str, problem: str, fix: str, parameter: str | None, operator: str | None) -> str:
    return str(SplitError(KINDS[code], problem, fix, parameter=parameter, operator=operator))


def run(
    called: Callee,
    data: Tensor,
    arguments: tuple[object, ...],
    copy: object,
    out: Any,
    *,
    planned: Shape | None = None,
) -> list[Tensor]:
    """Split a tensor, of a planned shape if there is one."""
    if isinstance(data, np.ndarray):
        torch._dynamo.graph_break()  # noqa: SLF001 - that is how it is documented
    if not isinstance(data, torch.Tensor):
        _refuse_data(type(data))
    arguments = tuple([_plain(argument) for argument in arguments])
    dims = tuple(data.shape)
    if planned is not None:
        dims = _settled(dims, planned)
    axis, keepdims, sizes, rule, given = _resolve(
        called,
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
            _explain(called, example, tuple([_number(dim) for dim in dims]))
    if out is not None:
        return _write(data, axis, keepdims, sizes or (), out)
    if keepdims:
        parts = (torch.split_with_sizes_copy if copy else torch.split_with_sizes)(data, sizes, axis)
    else:
        parts = (torch.unbind_copy if copy else torch.unbind)(data, axis)
    return list(parts)


def _settled(dims: tuple[object, ...], planned: Shape) -> tuple[Any, ...]:
    """Return dimensions with the numbers of a plan, where they are the same."""
    if len(planned) != len(dims):
        return dims
    settled = list(dims)
    for place in range(len(dims)):
        plan = planned[place]
        if isinstance(plan, int) and dims[place] == plan:
            settled[place] = plan + 0  # Dynamo guards no element of a constant
    return tuple(settled)


def _plain(value: Any) -> object:
    """Return an argument with an ``int`` in the place of each integer of NumPy."""
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    is_scalar = isinstance(value, np.ndarray) and value.ndim == 0
    if is_scalar and torch.as_tensor(value).dtype in _INTEGERS:
        return operator.index(int(value))
    return value


def _known(value: object) -> Any:
    """Return an argument as far as it is known."""
    if isinstance(value, (torch.Tensor, np.ndarray)):
        return _ARRAY
    if isinstance(value, (list, tuple)):
        return tuple([_known(item) for item in value])
    if type(value) is int:
        return operator.index(value) if has_static_value(value) else _TRACED
    return value


def _number(value: object) -> Any:
    """Return an argument with the numbers of the example that is traced."""
    if isinstance(value, (list, tuple)):
        return tuple([_number(item) for item in value])
    return operator.index(value) if type(value) is int else value


@_decided_about
def _resolve(
    called: Callee,
    given: tuple[object, ...],
    shape: tuple[Any, ...],
    *,
    dtype: torch.dtype,
    layout: torch.layout,
    copy: object,
    is_pooled: bool,
) -> tuple[int, bool, tuple[Dim, ...] | None, str, tuple[int, ...] | None]:
    """Return the axis, whether it is kept, and the sizes; or None, their rule and what it is given.

    What the rule is given is None if it is in the arguments and not known.
    """
    _refuse_layout(layout)
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
    decisions: Decisions = called.decisions
    intent = decisions.intent_of(given, tensors)
    dims = tuple(None if is_open or dim == _TRACED else dim for dim in shape)
    plan = decisions.plan_of(intent, dims)
    check_element_type(plan.operator, tensors.type_name(dtype), plan.element_types)
    if tensors.is_exported():
        check_split(tensors.OPSET, tensors.type_name(dtype), plan.operator)
    arrays.as_flag(copy, plan.operator)
    if is_pooled:
        _refuse_pool(plan.operator)
    if intent is None or (dims[plan.axis] is not None and are_known(plan.sizes)):
        return plan.axis, plan.keepdims, plan.sizes, "", None
    rule = getattr(intent.rule, "__name__", "")
    return plan.axis, plan.keepdims, None, rule, None if is_open else intent.given


def _refuse_layout(layout: torch.layout) -> None:
    """Refuse the kinds of tensors whose parts are not views of memory (TS204).

    Those that are quantized are not traced.
    """
    if layout is not torch.strided:
        tensors.refuse_kind(layout, quantized=False)


def _refuse_pool(operator: str) -> None:
    problem, fix = "a pool can't be used in a compiled function", "use copy=True"
    raise SplitError(OUT_TYPE, problem, fix, operator=operator, parameter="out")


def _closed(argument: object) -> object:
    """Return lengths with legal numbers in the place of those that are not known."""
    if isinstance(argument, tuple):
        return tuple(0 if item == _TRACED else item for item in argument)
    return argument


class _DoesNotFitError(Exception):
    """A length rule refuses what is traced."""


def _holds(condition: object) -> bool:
    """Return whether a condition holds; one that tracing can't decide is checked at run time."""
    holds = guard_or_true(condition)
    if holds and not guard_or_false(condition):
        torch._check(condition)  # noqa: SLF001 - that is how it is documented
    return bool(holds)


def _stop(condition: object, *_: object) -> None:
    """Stand in for `arithmetic.explain` under Dynamo, which can't format the message."""
    if isinstance(condition, bool) and not _holds(condition):
        raise _DoesNotFitError


def _none_below(smallest: int, numbers: Iterable[int]) -> bool:
    """Stand in for `arithmetic.none_below` under Dynamo: it tests each length alone."""
    return all(_holds(number >= smallest) for number in numbers)


def _are_numbers(dims: Iterable[object]) -> bool:
    """Stand in for `dimensions.are_known` under Dynamo, whose first versions know few sets."""
    return all(type(dim) is int for dim in dims)


compiled_as(_stop)(arithmetic.explain)
compiled_as(_none_below)(arithmetic.none_below)
compiled_as(_are_numbers)(are_known)


@_decided
def _refuse_data(kind: type) -> None:
    raise SplitError(NOT_AN_ARRAY, f"it is of type {kind.__name__}", "give a tensor")


@_decided_about
def _explain(called: Callee, arguments: tuple[object, ...], shape: tuple[int, ...]) -> None:
    """Refuse the example that is traced."""
    decisions: Decisions = called.decisions
    decisions.plan_of(decisions.intent_of(arguments, tensors), shape)
    raise SplitError(UNKNOWN_COUNT, "the lengths do not fit", "give lengths that fit")


def _write(
    data: Tensor, axis: int, keepdims: bool, sizes: Sequence[object], out: Sequence[Tensor]
) -> list[Tensor]:
    """Write the parts to buffers; of memory that is shared only the same tensors can be seen."""
    if not isinstance(out, (list, tuple)) or len(out) != len(sizes):
        _refuse(OUT_COUNT.code, "its length is not that of the parts", f"give {len(sizes)} tensors")
    parts = torch.split_with_sizes(data, sizes, axis) if keepdims else torch.unbind(data, axis)
    for number in range(len(out)):
        name = f"buffer {number}"
        _check_buffer(name, out[number], data, parts[number].shape, [data, *out[:number]])
    for buffer, part in zip(out, parts, strict=True):
        buffer.copy_(part)
    return list(out)


def _check_buffer(
    name: str, buffer: Tensor, like: Tensor, shape: Sequence[object], others: list[Tensor]
) -> None:
    if not isinstance(buffer, torch.Tensor):
        _refuse(OUT_TYPE.code, f"{name} is not a tensor", "give tensors")
    if buffer.ndim != len(shape) or buffer.shape != shape:
        problem = f"{name} does not have the shape of what is written to it"
        _refuse(OUT_SHAPE.code, problem, "give one that does")
    if buffer.dtype != like.dtype or buffer.device != like.device:
        problem = f"{name} is of another element type or device than the data"
        _refuse(OUT_TYPE.code, problem, "give one of the same")
    if any(buffer is other for other in others):
        problem = f"{name} is the data, or another buffer"
        _refuse(OUT_OVERLAP.code, problem, "give buffers of their own")


def join(
    called: Callee,
    parts: Any,
    arguments: tuple[object, ...],
    *,
    like: Tensor | None,
    copy: object,
    out: Tensor | None,
) -> Tensor:
    """Join tensors; ``called`` decides the plan of their shapes. The whole is new memory."""
    given = list(parts.values()) if isinstance(parts, Mapping) else parts
    if not isinstance(given, (list, tuple)):
        fix = "give a list of tensors, or a dict of them"
        _refuse(PART_COUNT.code, "it is not a list of parts", fix, "parts", "join")
    tensors_given = [*given] if like is None else [*given, like]
    _check_kinds(tensors_given)
    arguments = tuple([_plain(argument) for argument in arguments])
    dims = [tuple(tensor.shape) for tensor in tensors_given]
    planned = _planned_shapes(called)
    for number in range(min(len(given), len(planned))):
        dims[number] = _settled(dims[number], planned[number])
    axis, keepdims, wanted, rule, lengths = _resolve_join(
        called,
        arguments,
        tuple([tuple([_known(dim) for dim in shape]) for shape in dims]),
        is_like=like is not None,
        dtype=tensors_given[0].dtype,
        layout=tensors_given[0].layout,
        copy=copy,
        is_pooled=isinstance(out, BufferPool),
    )
    try:
        _check_traced(dims[: len(given)], axis if keepdims else -1, wanted, rule, lengths)
    except _DoesNotFitError:
        example = tuple([tuple([_number(dim) for dim in shape]) for shape in dims])
        _explain_join(called, arguments, example, tensors_given[0].dtype, like is not None)
    given = [*given] if len(given) else [like]
    if out is None:
        return tensors.concatenated(given, axis, keepdims)
    whole = list(given[0].shape)
    if keepdims:
        whole[axis] = sum([part.shape[axis] for part in given])
    else:
        whole.insert(axis, len(given))
    _check_buffer("the buffer", out, given[0], tuple(whole), given)
    start = 0
    for part in given:
        length = part.shape[axis] if keepdims else 1
        place = out.narrow(axis, start, length) if keepdims else out.select(axis, start)
        place.copy_(part)
        start = start + length
    return out


@_decided_about
def _planned_shapes(called: Callee) -> tuple[Shape, ...]:
    """Return the shapes of a plan's parts, with None for what is not a number; none of a join."""
    return _numbers_of(getattr(called, "output_shapes", ()))


def _numbers_of(shapes: tuple[Shape, ...]) -> tuple[Shape, ...]:
    return tuple(tuple(dim if type(dim) is int else None for dim in shape) for shape in shapes)


def _check_kinds(given: Sequence[Tensor]) -> None:
    """Refuse parts that are not tensors of one element type and device."""
    if len(given) == 0:
        problem = "there are no parts, and so no element type"
        fix = "give an array like the whole as `like`"
        _refuse(PART_COUNT.code, problem, fix, "parts", "join")
    for number, part in enumerate(given):
        name = f"parts[{number}]"
        if not isinstance(part, torch.Tensor):
            _refuse(NOT_AN_ARRAY.code, "it is not a tensor", "give tensors", name, "join")
        if part.dtype != given[0].dtype or part.device != given[0].device:
            problem = "it is of another element type or device than parts[0]"
            _refuse(PART_TYPE.code, problem, "give arrays of one kind", name, "join")


@_decided_about
def _resolve_join(
    called: Callee,
    arguments: tuple[object, ...],
    shapes: tuple[Any, ...],
    *,
    is_like: bool,
    dtype: torch.dtype,
    layout: torch.layout,
    copy: object,
    is_pooled: bool,
) -> tuple[int, bool, tuple[Shape, ...], str, tuple[int, ...] | None]:
    """Return the axis, whether it is kept, and the shape that each part must have.

    What is not known of the shapes is None; if the lengths are not, their rule and what it is given
    come too.
    """
    _refuse_layout(layout)
    dims = [tuple(None if dim == _TRACED else dim for dim in shape) for shape in shapes]
    like = dims.pop() if is_like else None
    joins: Joins = called.decisions
    plan = joins.fit(arguments, dims, like, tensors.type_name(dtype), tensors)
    if tensors.is_exported():
        check_concat(tensors.OPSET, tensors.type_name(dtype), plan.operator)
    if is_pooled:
        _refuse_pool(plan.operator)
    if copy is not None and not arrays.as_flag(copy, plan.operator):
        problem = "parts are joined to new memory in a compiled function"
        fix = "leave out `copy`"
        raise SplitError(NEEDS_COPY, problem, fix, operator=plan.operator, parameter="copy")
    intent: Intent | None = getattr(called, "intent", None)
    rule, lengths = "", None
    if intent is not None and not are_known(plan.sizes):
        rule, lengths = getattr(intent.rule, "__name__", ""), intent.given
    return plan.axis, plan.keepdims, _numbers_of(plan.output_shapes), rule, lengths


def _check_traced(
    dims: list[tuple[Any, ...]],
    axis: int,
    wanted: Sequence[Shape],
    rule: str,
    lengths: Sequence[int] | None,
) -> None:
    """Check what is not known while shapes are decided; along ``axis`` parts may differ."""
    for shape, planned in zip(dims, wanted, strict=True):
        for place in range(len(shape)):
            other = dims[0][place] if planned[place] is None else planned[place]
            if (place != axis or planned[place] is not None) and not _holds(shape[place] == other):
                raise _DoesNotFitError
    if rule != "":
        own = [shape[axis] for shape in dims]
        values = None if lengths is None else tuple([length + 0 for length in lengths])
        for length, size in zip(own, getattr(rules, rule)(sum(own), values), strict=True):
            if not _holds(length == size):
                raise _DoesNotFitError


@_decided_about
def _explain_join(
    called: Callee,
    arguments: tuple[object, ...],
    shapes: Sequence[Shape],
    dtype: torch.dtype,
    is_like: bool,
) -> None:
    """Refuse the example that is traced."""
    like = shapes[-1] if is_like else None
    own = list(shapes[:-1] if is_like else shapes)
    joins: Joins = called.decisions
    joins.fit(arguments, own, like, tensors.type_name(dtype), tensors)
    raise SplitError(PART_SHAPE, "the shapes of the parts do not fit", "give parts that fit")
