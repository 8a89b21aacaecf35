"""Joining parts: the way back from what a split made."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from itertools import chain
from typing import Any, SupportsIndex, overload

import numpy as np

from tensorsplit import arrays, native
from tensorsplit.arrays.buffers import snapshot
from tensorsplit.arrays.pool import BufferPool
from tensorsplit.arrays.remembered import Callee, at_once, compiled_as, joined_at_once
from tensorsplit.arrays.typed import ArrayT, Flag, KeepDims, Like, OutWhole, PartT_co, TensorOf
from tensorsplit.core.dimensions import (
    Dim,
    Shape,
    are_known,
    as_index,
    decide,
    is_known,
    is_traced,
    show_dim,
    show_shape,
    sum_of,
)
from tensorsplit.core.errors import (
    AXIS_RANGE,
    NEEDS_COPY,
    OPERAND_TYPE,
    OPERAND_VALUE,
    PART_COUNT,
    PART_SHAPE,
    PART_TYPE,
    SCALAR_DATA,
    Kind,
    SplitError,
    count_of,
    show,
    wrong_type,
)
from tensorsplit.core.given import as_dict, is_a
from tensorsplit.core.plan import SplitPlan
from tensorsplit.core.resolve import check_element_type

_JOIN = "join"
"""What stands for the operator version where there is none."""


class _AnyLengths(Callee):
    """Decides calls of `join` under ``torch.compile``."""

    @property
    def decisions(self) -> _AnyLengths:
        """Decides calls under ``torch.compile``."""
        return self

    def fit(
        self,
        arguments: tuple[object, ...],
        shapes: list[Shape],
        like: Shape | None,
        _kind: str,
        library: arrays.ArrayLibrary,
    ) -> SplitPlan:
        """Return the plan of parts that are joined along an axis."""
        axis, keepdims = arguments
        return plan_of_parts(shapes, like, axis, keepdims, library)


_any_lengths = _AnyLengths()


def _compiled(
    parts: object,
    *,
    axis: object = 0,
    keepdims: object = 1,
    like: object = None,
    copy: object = None,
    out: object = None,
) -> object:
    """Stand in for `join` where ``torch.compile`` traces."""
    from tensorsplit.arrays import torch_compiled

    return torch_compiled.join(_any_lengths, parts, (axis, keepdims), like=like, copy=copy, out=out)


@overload
def join(
    parts: Sequence[TensorOf[PartT_co]] | Mapping[str, TensorOf[PartT_co]],
    *,
    axis: SupportsIndex = ...,
    keepdims: KeepDims = ...,
    like: Like = ...,
    copy: Flag | None = ...,
    out: OutWhole = ...,
) -> PartT_co: ...
@overload
def join(
    parts: Sequence[ArrayT] | Mapping[str, ArrayT],
    *,
    axis: SupportsIndex = ...,
    keepdims: KeepDims = ...,
    like: Like = ...,
    copy: Flag | None = ...,
    out: OutWhole = ...,
) -> ArrayT: ...
@compiled_as(_compiled)
@at_once(None)
def join(
    parts: object,
    *,
    axis: SupportsIndex = 0,
    keepdims: KeepDims = 1,
    like: Like = None,
    copy: Flag | None = None,
    out: OutWhole = None,
) -> object:
    """Join parts along an axis; the inverse of a split with any lengths.

    Args:
        parts: The parts in order: arrays of one library, element type and device, whose shapes
            differ on the axis only. Of a dict, its values in order.
        axis: The axis, in [-rank, rank-1] of the whole.
        keepdims: 0 if the parts have no such axis: they are then of the length 1 each.
        like: An array like the whole, which must have its shape and be of the kind of the parts.
            Without parts, it decides what the empty whole is like.
        copy: None returns a view of the memory of the parts if they are all of one array, in order,
            and else a new array. False refuses to copy, True always copies.
        out: An array to write the parts to, which is returned; or a `BufferPool` to take the
            memory from. Implies a copy.

    Returns:
        The whole, as an array of the library of the parts.

    Raises:
        SplitError: TS311 to TS314 for parts that can't be joined; TS105, TS107, TS202, TS203 for
            the axis and `keepdims`; TS204 if a part is not an array; TS310 for a node that the
            opset does not have; TS402 to TS405 for `out`.

    Example:
        >>> x = np.arange(12).reshape(2, 6)
        >>> a, b = ts.split(x, [2, 4], axis=1)
        >>> ts.join([a, b], axis=1).tolist() == x.tolist()
        True

    See Also:
        ``SplitPlan.join`` of a prepared plan, which knows what each part must be.
    """
    given = _listed(parts, _JOIN)
    library = _library_of(given, like, _JOIN)
    shapes = [library.shape(part) for part in given]
    like_shape = None if like is None else library.shape(like)
    plan = plan_of_parts(shapes, like_shape, axis, keepdims, library)
    return _execute(plan, given, library, like=like, copy=copy, out=out)


def plan_of_parts(
    shapes: list[Shape],
    like: Shape | None,
    axis: object,
    keepdims: object,
    library: arrays.ArrayLibrary,
) -> SplitPlan:
    """Return the plan that makes parts of these shapes (TS312 for shapes that no plan makes)."""
    axis, keepdims = as_integer("axis", axis), as_keepdims(keepdims)
    plan = _plan_of(shapes, axis, keepdims, like)
    _check_shapes(shapes, plan, library)
    return plan


def _compiled_by(
    plan: Any, _for_shape: object, parts: object, *, like: object, copy: object, out: object
) -> object:
    """Stand in for `join_by` where ``torch.compile`` traces."""
    from tensorsplit.arrays import torch_compiled

    return torch_compiled.join(plan, parts, (), like=like, copy=copy, out=out)


@compiled_as(_compiled_by)
def join_by(
    plan: SplitPlan,
    for_shape: Callable[[Shape, str | None], SplitPlan],
    parts: object,
    *,
    like: object,
    copy: object,
    out: object,
) -> object:
    """Join the parts of a plan; ``for_shape`` gives the plan for a whole of another shape."""
    if like is None and type(parts) is list and native.kernel is not None:
        whole = _join_at_once(plan, parts, copy, out)
        if whole is not None:
            return whole
    given = _listed(parts, plan.operator)
    check_part_count(plan, len(given))
    library = _library_of(given, like, plan.operator)
    shapes = [library.shape(part) for part in given]
    like_shape = None if like is None else library.shape(like)
    kind = library.element_type(given[0] if given else like)
    plan = plan_by(plan, for_shape, shapes, like_shape, kind=kind, library=library)
    return _execute(plan, given, library, like=like, copy=copy, out=out)


def _join_at_once(plan: SplitPlan, parts: list[object], copy: object, out: object) -> object:
    """Join the parts of a plan with the kernel; None, with nothing written, where it can't."""
    if not parts or not joined_at_once.issuperset(map(type, parts)):
        return None
    library, allowed = arrays.library_of(parts[0], plan.operator, "parts"), plan.element_types
    if tuple(map(library.shape, parts)) != plan.output_shapes:
        return None
    if allowed is not None and library.element_type(parts[0]) not in allowed:
        return None
    return native.kernel.join(parts, plan.axis, plan.keepdims, copy, out)


def check_part_count(plan: SplitPlan, count: int) -> None:
    """Refuse another number of parts than the plan makes (TS311)."""
    if count != len(plan.sizes):
        problem = f"{count_of(count, 'part')} given"
        raise _refusal(plan, PART_COUNT, problem, f"give {count_of(len(plan.sizes), 'part')}")


def plan_by(
    plan: SplitPlan,
    for_shape: Callable[[Shape, str | None], SplitPlan],
    shapes: list[Shape],
    like: Shape | None,
    *,
    kind: str,
    library: arrays.ArrayLibrary,
) -> SplitPlan:
    """Return the plan for a whole whose parts have these shapes (TS201, TS206, TS312)."""
    all_is_known = are_known(plan.input_shape)
    _check_shapes(shapes, plan, library, all_is_known)
    if not all_is_known:
        whole = like or ()
        if shapes:
            whole = _plan_of(shapes, plan.axis, plan.keepdims).input_shape
        plan = for_shape(whole, library.unknown)
        _check_shapes(shapes, plan, library)
    check_element_type(plan.operator, kind, plan.element_types, "parts")
    if like is not None:
        _check_like(like, plan)
    return plan


def _listed(parts: object, operator: str) -> list[object]:
    """Return the parts in order, in a new list (TS311)."""
    held = as_dict(parts)
    listed = snapshot(parts) if held is None else [*held.values()]
    if type(listed) is list:
        return listed
    problem = f"it is of type {type(parts).__name__}"
    fix = "give a list of arrays, or a dict of them"
    raise SplitError(PART_COUNT, problem, fix, operator=operator, parameter="parts")


def _library_of(parts: list[object], like: object, operator: str) -> arrays.ArrayLibrary:
    """Return the library of the parts, which are of one kind (TS204, TS311, TS313)."""
    given = parts if like is None else [*parts, like]
    if not given:
        problem = "there are no parts, and so no element type"
        fix = "give an array like the whole as `like`"
        raise SplitError(PART_COUNT, problem, fix, operator=operator, parameter="parts")
    first = given[0]
    library = arrays.library_of(first, operator, _name_of(0, parts))
    kind = library.kind(first)
    for number in range(1, len(given)):
        part = given[number]
        try:
            if arrays.library_of(part, operator, "parts") is not library:
                raise _mixed(f"of type {type(part).__name__}", f"of type {type(first).__name__}")
            own = library.kind(part)
            if own != kind and not _are_alike(own, kind):
                raise _mixed(_shown(own), _shown(kind))
        except SplitError as error:  # the name is made where it is needed, for that takes long
            error.parameter = _name_of(number, parts)
            raise error.located(operator=operator) from None
    return library


def _mixed(found: str, wanted: str) -> SplitError:
    """Return the refusal of arrays of two kinds; the first of them is a part."""
    return SplitError(PART_TYPE, f"it is {found}", f"give arrays of one kind: parts[0] is {wanted}")


def _name_of(number: int, parts: list[object]) -> str:
    """Return the name of a part in messages, or of the array after the last one."""
    return f"parts[{number}]" if number < len(parts) else "like"


def _are_alike(left: tuple[object, ...], right: tuple[object, ...]) -> bool:
    """Return whether two arrays are of one kind, as far as it is known."""
    return all(a is None or b is None or a == b for a, b in zip(left, right, strict=True))


def _shown(kind: tuple[object, ...]) -> str:
    names = (" ".join(str(each).split()) for each in kind if each is not None)
    return " on ".join(name if len(name) <= 80 else f"{name[:77]}..." for name in names)


def as_integer(name: str, value: object) -> int:
    """Return an operand of a join, which is an integer (TS105)."""
    found = value if type(value) is int else as_index(value)
    if found is None:
        problem = wrong_type(value)
        raise SplitError(OPERAND_TYPE, problem, "give an integer", operator=_JOIN, parameter=name)
    return found


def as_keepdims(value: object) -> bool:
    """Return whether parts have the axis that they are joined along (TS105, TS107)."""
    found = int(bool(value)) if is_a(value, (bool, np.bool_)) else as_integer("keepdims", value)
    if found not in (0, 1):
        fix = "give 0 (the parts have no such axis) or 1"
        raise SplitError(
            OPERAND_VALUE, f"it is {show(value)}", fix, operator=_JOIN, parameter="keepdims"
        )
    return bool(found)


def _plan_of(
    shapes: list[Shape], axis: int, keepdims: bool, like: Shape | None = None
) -> SplitPlan:
    """Return the plan that makes such parts, which is remembered if their shapes are numbers."""
    if like is None and {int}.issuperset(map(type, chain.from_iterable(shapes))):
        return _known_plan(tuple(shapes), None, axis, keepdims)
    return _new_plan(shapes, like, axis, keepdims)


def _new_plan(shapes: Sequence[Shape], like: Shape | None, axis: int, keepdims: bool) -> SplitPlan:
    rank = len(like) if like is not None else len(shapes[0]) + (not keepdims)
    if rank == 0:
        problem, fix = "the parts are scalars (rank 0)", "stack them with keepdims=0"
        raise SplitError(SCALAR_DATA, problem, fix, operator=_JOIN, parameter="parts")
    if not -rank <= axis < rank:
        problem = f"the axis is {show(axis)}, but the whole has rank {rank}"
        fix = f"give an axis in [{-rank}, {rank - 1}]"
        raise SplitError(AXIS_RANGE, problem, fix, operator=_JOIN, parameter="axis")
    axis %= rank
    sizes: tuple[Dim, ...] = (1,) * len(shapes)
    if keepdims:  # of a part of another rank, which is refused later, any length will do
        sizes = tuple(shape[axis] if len(shape) == rank else 0 for shape in shapes)
    dim = sum_of(sizes)
    if like is not None:
        plan = SplitPlan(_JOIN, (*like[:axis], dim, *like[axis + 1 :]), axis, sizes, keepdims)
        _check_like(like, plan)
        return plan
    around = shapes[0]
    after = around[axis + 1 :] if keepdims else around[axis:]
    return SplitPlan(_JOIN, (*around[:axis], dim, *after), axis, sizes, keepdims)


_known_plan = lru_cache(256)(_new_plan)


def _check_shapes(
    shapes: list[Shape], plan: SplitPlan, library: arrays.ArrayLibrary, all_is_known: bool = True
) -> None:
    """Refuse a part of another shape than the plan gives it (TS312).

    Where not all is known, only numbers are compared.
    """
    is_strict = all_is_known and library.unknown is not None
    for number, (seen, wanted) in enumerate(zip(shapes, plan.output_shapes, strict=True)):
        if seen == wanted:
            continue
        pairs = zip(seen, wanted, strict=False)
        if len(seen) != len(wanted) or not all(_agree(*pair, is_strict) for pair in pairs):
            problem = f"part {number} has shape {show_shape(seen)}"
            raise _refusal(plan, PART_SHAPE, problem, f"give one of shape {show_shape(wanted)}")


def _agree(seen: Dim, wanted: Dim, is_strict: bool) -> bool:
    """Return whether two dimensions may be the same; or must be, if it is to be proved."""
    if is_known(seen) and is_known(wanted):
        return bool(seen == wanted)
    if is_traced(seen) or is_traced(wanted):
        return decide(seen == wanted) is not False
    return not is_strict or show_dim(seen) == show_dim(wanted)


def _check_like(like: Shape, plan: SplitPlan) -> None:
    """Refuse an array that the whole is not like (TS312)."""
    whole = plan.input_shape
    if len(like) != len(whole) or not all(
        _agree(*pair, is_strict=False) for pair in zip(like, whole, strict=True)
    ):
        problem = f"the whole has shape {show_shape(whole)}, and `like` {show_shape(like)}"
        raise _refusal(plan, PART_SHAPE, problem, "give the parts of an array like it")


def _refusal(plan: SplitPlan, kind: Kind, problem: str, fix: str) -> SplitError:
    return SplitError(kind, problem, fix, operator=plan.operator, parameter="parts")


def _execute(
    plan: SplitPlan,
    parts: list[object],
    library: arrays.ArrayLibrary,
    *,
    like: object,
    copy: object,
    out: object,
) -> object:
    """Join parts that fit a plan."""
    if copy is not None:
        copy = arrays.as_flag(copy, plan.operator)
    if not parts:
        parts, plan = [like], SplitPlan(plan.operator, plan.input_shape, plan.axis, (0,))
    if out is not None:
        try:
            if is_a(out, BufferPool):
                return library.joined_in_pool(parts, plan, out)
            return library.joined_into(parts, plan, out)
        except SplitError as error:
            if error.parameter is None:
                error.parameter = "out"
            raise error.located(operator=plan.operator) from None
    whole = None if copy else library.joined_view(parts, plan)
    if whole is not None:
        return whole
    if copy is False:
        problem = "the parts are not known to be the views of one array, in order"
        fix = "leave out `copy`, or join the parts that the plan made of an array, without copies"
        raise SplitError(NEEDS_COPY, problem, fix, operator=plan.operator, parameter="copy")
    return library.joined(parts, plan)
