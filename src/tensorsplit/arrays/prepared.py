"""Plans that are made once and run many times, and shape inference for one operator."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import TYPE_CHECKING, Any, SupportsIndex, TypeVar, Unpack, overload

from numpy import ndarray

from tensorsplit import arrays, native
from tensorsplit.arrays import numpy as numpy_arrays
from tensorsplit.arrays.arguments import bind_values
from tensorsplit.arrays.buffers import snapshot
from tensorsplit.arrays.joining import check_part_count, join_by, plan_by
from tensorsplit.arrays.naming import check_count, in_order, names_and_lengths, names_of
from tensorsplit.arrays.remembered import Callee, compiled_as, left_as_it_is
from tensorsplit.arrays.typed import (
    ArrayT,
    Axis,
    DialectOperand,
    Flag,
    GivenShape,
    Lengths,
    Like,
    Named,
    NamedOut,
    Operands,
    Out,
    OutWhole,
    PartT_co,
    TensorOf,
)
from tensorsplit.core.dimensions import (
    Dim,
    Shape,
    are_known,
    as_shape,
    is_known,
    show_dim,
    show_shape,
)
from tensorsplit.core.errors import PLAN_MISMATCH, UNKNOWN_COUNT, UNUSABLE_NAMES, SplitError, show
from tensorsplit.core.given import is_mapping
from tensorsplit.core.plan import SplitPlan, UncountedPlan
from tensorsplit.core.records import operator_named
from tensorsplit.core.records.names import Counted, DialectName, OperatorName, Uncounted
from tensorsplit.core.resolve import Intent, check_element_type
from tensorsplit.core.resolve import plan as plan_intent
from tensorsplit.core.schema import Operator

Plan = TypeVar("Plan", bound=SplitPlan)

if TYPE_CHECKING:
    from tensorsplit.native import _kernel

    Prepared = _kernel.Prepared
else:
    Prepared = object if native.kernel is None else native.kernel.Prepared


def _call_compiled(
    plan: PreparedSplit, _run: object, data: object, copy: Flag, out: Out
) -> list[object]:
    """Stand in for `_called` where ``torch.compile`` traces."""
    from tensorsplit.arrays import torch_compiled

    return torch_compiled.run(plan, data, (), copy, out, planned=plan.input_shape)


@compiled_as(_call_compiled)
def _called(
    _plan: PreparedSplit, run: Callable[..., list[object]], data: object, copy: Flag, out: Out
) -> list[object]:
    """Split an array by a plan."""
    return run(data, copy, out)


def _called_at_once(base: type[Plan]) -> type[Plan]:
    """Make a class like one of plans; the kernel answers calls of its objects where it can."""
    if native.kernel is None:
        return base
    made: type[Plan] = native.kernel.called_at_once(base)
    made.__doc__ = base.__doc__
    return made


@_called_at_once
@dataclass(frozen=True, repr=False)
class PreparedSplit(SplitPlan, Callee, Prepared):
    """A plan that can be run: ``plan(x)``, ``plan(x, copy=True)``, ``plan(x, out=buffers)``."""

    intent: Intent | None = field(default=None, repr=False, compare=False)
    _seen: object = field(default=None, init=False, repr=False, compare=False)
    """The type object of the last array of the planned shape; it needs no second look."""

    def __post_init__(self) -> None:
        """Refuse sizes that do not split the axis (TS206): copies rely on them."""
        sizes, shape, axis = self.sizes, self.input_shape, self.axis
        if type(sizes) is tuple and type(axis) is int and 0 <= axis < len(shape):
            is_open = self.intent is not None and not (are_known(sizes) and is_known(shape[axis]))
            if is_open or (are_known(sizes) and _divide(sizes, shape[axis], self.keepdims)):
                return
        raise SplitError(
            PLAN_MISMATCH,
            f"{show(sizes)} on axis {show(axis)} does not split {show_shape(shape)}",
            "make plans with `tensorsplit.plan`",
            operator=self.operator,
            parameter="sizes",
        )

    @classmethod
    def of(cls, intent: Intent, shape: Shape, unknown: str | None = None) -> PreparedSplit:
        """Return the plan of an intent; TS309, with what to do, if its parts can't be counted."""
        made = counted(plan_intent(intent, shape), unknown)
        return cls(**vars(made), intent=intent)  # nothing is derived from it yet

    @overload
    def __call__(
        self, input: TensorOf[PartT_co], *, copy: Flag = ..., out: Out = ...
    ) -> list[PartT_co]: ...
    @overload
    def __call__(self, input: ArrayT, *, copy: Flag = ..., out: Out = ...) -> list[ArrayT]: ...
    def __call__(self, input: object, *, copy: Flag = False, out: Out = None) -> list[Any]:
        """Split an array of the planned shape.

        Args:
            input: The array. Where the planned shape has symbolic dimensions, any array that
                agrees with its numbers; its lengths are then computed again.
            copy: Return new C-contiguous arrays and not views.
            out: Arrays to write the parts to, one for each, which are returned; or a
                `BufferPool` to take them from. Implies a copy.

        Returns:
            The parts, in order, as arrays of the library of `input`.

        Raises:
            SplitError: TS201, TS204, TS206 for an array that does not fit; TS401 to TS405 for
                buffers that don't.
        """
        return _called(self, self._run, input, copy, out)

    @overload
    def join(
        self,
        parts: Sequence[TensorOf[PartT_co]],
        *,
        like: Like = ...,
        copy: Flag | None = ...,
        out: OutWhole = ...,
    ) -> PartT_co: ...
    @overload
    def join(
        self,
        parts: Sequence[ArrayT],
        *,
        like: Like = ...,
        copy: Flag | None = ...,
        out: OutWhole = ...,
    ) -> ArrayT: ...
    def join(
        self, parts: object, *, like: Like = None, copy: Flag | None = None, out: OutWhole = None
    ) -> object:
        """Join parts as the plan makes them: ``plan.join(plan(x))`` is ``x``, bit for bit.

        Args:
            parts: The parts in order: arrays of one library, element type and device, each of the
                shape that the plan gives it.
            like: An array like the whole; needed only where the plan makes no parts.
            copy: None returns a view of the memory of the parts if they are all of one array, in
                order, and else a new array. False refuses to copy, True always copies.
            out: An array to write the parts to, which is returned; or a `BufferPool` to take the
                memory from. Implies a copy.

        Returns:
            The whole, as an array of the library of the parts.

        Raises:
            SplitError: TS311 to TS314 for parts that are not those of the plan; TS201, TS204,
                TS206; TS310 for a node that the opset does not have; TS402 to TS405 for `out`.

        Example:
            >>> plan = ts.plan("onnx.Split-18", (2, 6), [2, 4], axis=1)
            >>> x = np.arange(12).reshape(2, 6)
            >>> plan.join(plan(x)).tolist() == x.tolist()
            True
        """
        return join_by(self, self.for_shape, parts, like=like, copy=copy, out=out)

    def _run(self, data: object, copy: Flag, out: Out) -> list[object]:
        if out is not None:
            out = snapshot(out)
        if type(data) is ndarray and data.dtype is self._seen:
            if copy is False and out is None:
                parts = self.views(data)
                if parts is not None:
                    return parts
            elif data.shape == self.input_shape:
                return arrays.execute(self, data, numpy_arrays, copy, out)
        return self._split(data, copy, out)

    def _split(self, data: object, copy: Flag, out: Out) -> list[object]:
        """Split an array that is not known to fit."""
        library = arrays.library_of(data, self.operator, self._data)
        check_element_type(
            self.operator, library.element_type(data), self.element_types, self._data
        )
        shape = library.shape(data)
        if shape == self.input_shape:
            self.accept(data)
        plan = self.for_shape(shape, library.unknown)
        if plan is not self:
            plan = PreparedSplit(**vars(plan), intent=self.intent)
        return arrays.execute(plan, data, library, copy=copy, out=out)

    def accept(self, array: object) -> None:
        """Split arrays like this one, of the planned shape, without a second look."""
        if type(array) is ndarray:
            object.__setattr__(self, "_seen", array.dtype)
        if native.kernel is not None and are_known(self.input_shape):
            self._accept(array, self.input_shape, self.axis, self.sizes, self.keepdims)

    def for_shape(self, shape: Shape, unknown: str | None = None) -> SplitPlan:
        """Return the plan for a shape that agrees with the numbers of the planned one (TS206)."""
        if shape == self.input_shape:
            return self
        fits = len(shape) == len(self.input_shape) and all(
            type(planned) is not int or planned == seen
            for planned, seen in zip(self.input_shape, shape, strict=True)
        )
        if not fits or self.intent is None or not _name_alike(self.input_shape, shape):
            raise SplitError(
                PLAN_MISMATCH,
                f"the array has shape {show_shape(shape)}, the plan is for"
                f" {show_shape(self.input_shape)}",
                "make a plan for each shape",
                operator=self.operator,
                parameter=self._data,
            )
        return counted(plan_intent(self.intent, shape), unknown)

    def _repr_svg_(self) -> str:
        """Return the picture that notebooks show."""
        from tensorsplit.pictures.svg import svg

        return svg(self)

    @property
    def decisions(self) -> _Planned:
        """Decides calls under ``torch.compile``."""
        return _Planned(self)

    @cached_property
    def views(self) -> Callable[[object], list[object] | None]:
        """The function that splits an array of the planned shape; see `arrays.numpy.viewer`."""
        return numpy_arrays.viewer(self)

    @cached_property
    def _data(self) -> str:
        """The name of the data in the operator version."""
        return self.intent.operator.inputs[0].name if self.intent else "input"


@dataclass(frozen=True, repr=False)
class NamedSplit(SplitPlan):
    """A plan whose parts have names: ``plan(x)`` is a dict of them.

    Attributes:
        names: The name of each part.
        unnamed: The same plan without names.
    """

    names: tuple[str, ...] = field(kw_only=True)
    unnamed: PreparedSplit = field(kw_only=True, compare=False)

    def __post_init__(self) -> None:
        """Refuse names that are not those of the parts (TS316), and another plan (TS206)."""
        check_count(names_of(self.names, "names", self.operator), len(self.sizes), self.operator)
        own = [getattr(self, each.name) for each in fields(SplitPlan)]
        if own != [getattr(self.unnamed, each.name, None) for each in fields(SplitPlan)]:
            raise SplitError(
                PLAN_MISMATCH,
                "it is not this plan without names",
                "make plans with `tensorsplit.plan`",
                operator=self.operator,
                parameter="unnamed",
            )

    @classmethod
    def of(cls, plan: PreparedSplit, names: tuple[str, ...]) -> NamedSplit:
        """Return a plan with names, of which there is one for each part (TS316)."""
        own = {each.name: getattr(plan, each.name) for each in fields(SplitPlan)}
        return cls(**own, names=names, unnamed=plan)

    @overload
    def __call__(
        self, input: TensorOf[PartT_co], *, copy: Flag = ..., out: NamedOut = ...
    ) -> dict[str, PartT_co]: ...
    @overload
    def __call__(
        self, input: ArrayT, *, copy: Flag = ..., out: NamedOut = ...
    ) -> dict[str, ArrayT]: ...
    def __call__(self, input: Any, *, copy: Flag = False, out: NamedOut = None) -> dict[str, Any]:
        """Split an array as `PreparedSplit` does; the parts are a dict, in order.

        ``out`` may be a dict too, in any order; TS315 for names other than those of the parts.

        Example:
            >>> plan = ts.plan("onnx.Split-18", (6,), {"q": 4, "k": 1, "v": 1})
            >>> plan(np.arange(6))["k"].tolist()
            [4]
        """
        buffers: Any = out
        if is_mapping(out):
            buffers = in_order(out, self.names, "out", self.operator)
        return dict(zip(self.names, self.unnamed(input, copy=copy, out=buffers), strict=True))

    @overload
    def join(
        self,
        parts: Mapping[str, TensorOf[PartT_co]] | Sequence[TensorOf[PartT_co]],
        *,
        like: Like = ...,
        copy: Flag | None = ...,
        out: OutWhole = ...,
    ) -> PartT_co: ...
    @overload
    def join(
        self,
        parts: Mapping[str, ArrayT] | Sequence[ArrayT],
        *,
        like: Like = ...,
        copy: Flag | None = ...,
        out: OutWhole = ...,
    ) -> ArrayT: ...
    def join(
        self, parts: Any, *, like: Like = None, copy: Flag | None = None, out: OutWhole = None
    ) -> object:
        """Join parts as `PreparedSplit.join` does, from a dict of them in any order.

        A dict has each name and no other (TS315).

        Example:
            >>> plan = ts.plan("onnx.Split-18", (3,), {"a": 1, "b": 2})
            >>> plan.join({"b": np.array([8, 9]), "a": np.array([7])}).tolist()
            [7, 8, 9]
        """
        if is_mapping(parts):
            parts = in_order(parts, self.names, "parts", self.operator)
        return self.unnamed.join(parts, like=like, copy=copy, out=out)


def _divide(sizes: tuple[int, ...], dim: Dim, keepdims: bool) -> bool:
    """Return whether numbers are lengths of parts that make up a dimension."""
    return sum(sizes) == dim and all(size == 1 or (keepdims and size >= 0) for size in {*sizes})


def _name_alike(planned: Shape, seen: Shape) -> bool:
    """Return whether dimensions of one name, or expression, have one number, where it is known."""
    sizes: dict[str, int] = {}
    return all(
        sizes.setdefault(show_dim(dim), size) == size
        for dim, size in zip(planned, seen, strict=True)
        if dim is not None and is_known(size)
    )


class _Planned:
    """The decisions on a plan's calls, where ``torch.compile`` follows them."""

    def __init__(self, plan: PreparedSplit) -> None:
        self._plan = plan

    def intent_of(self, _arguments: tuple[object, ...], _library: object) -> Intent | None:
        """Return the intent that the plan was made for."""
        return self._plan.intent

    def plan_of(self, _intent: Intent | None, shape: Shape) -> SplitPlan:
        """Return the plan for a shape."""
        return self._plan.for_shape(shape)

    def fit(
        self,
        _arguments: tuple[object, ...],
        shapes: list[Shape],
        like: Shape | None,
        kind: str,
        library: arrays.ArrayLibrary,
    ) -> SplitPlan:
        """Return the plan for a whole whose parts have these shapes."""
        check_part_count(self._plan, len(shapes))
        plan = self._plan
        return plan_by(plan, plan.for_shape, shapes, like, kind=kind, library=library)


@overload
def plan(
    operator: OperatorName | Operator,
    shape: GivenShape,
    split: Lengths | SupportsIndex | None = ...,
    *,
    num_outputs: SupportsIndex | None = ...,
    opset: SupportsIndex | None = ...,
    names: None = ...,
    **operands: Unpack[Operands],
) -> PreparedSplit: ...
@overload
def plan(
    operator: OperatorName | Operator,
    shape: GivenShape,
    split: Lengths | SupportsIndex | None = ...,
    *,
    num_outputs: SupportsIndex | None = ...,
    opset: SupportsIndex | None = ...,
    names: Iterable[str],
    **operands: Unpack[Operands],
) -> NamedSplit: ...
@overload
def plan(
    operator: OperatorName | Operator,
    shape: GivenShape,
    split: Named,
    *,
    num_outputs: SupportsIndex | None = ...,
    opset: SupportsIndex | None = ...,
    names: None = ...,
    **operands: Unpack[Operands],
) -> NamedSplit: ...
@overload
def plan(
    operator: OperatorName | Operator,
    shape: GivenShape,
    *,
    axis: Axis,
    split_lengths: Named,
    opset: SupportsIndex | None = ...,
) -> NamedSplit: ...
@overload
def plan(
    operator: DialectName,
    shape: GivenShape,
    *,
    names: None = ...,
    **operands: DialectOperand,
) -> PreparedSplit: ...
@overload
def plan(
    operator: DialectName,
    shape: GivenShape,
    *,
    names: Iterable[str],
    **operands: DialectOperand,
) -> NamedSplit: ...
@left_as_it_is
def plan(
    operator: OperatorName | DialectName | Operator,
    shape: GivenShape,
    split: Lengths | Named | SupportsIndex | None = None,
    *,
    num_outputs: DialectOperand = None,
    opset: Any = None,
    names: Iterable[str] | None = None,
    **operands: object,
) -> PreparedSplit | NamedSplit:
    """Validate once, to run many times.

    Args:
        operator: An identifier such as ``onnx.Split-18``, a name such as ``Split`` or
            ``openvino.Split``, or a record.
        shape: The shape of the data.
        split: The lengths, for operators with an operand of this name. A dict, here or as
            ``split_lengths``, gives each part a name.
        num_outputs: The attribute, or in a Split without it how many outputs the node has.
        opset: The opset at which a name is looked up; the newest if None.
        names: A name for each part.
        **operands: The other operands, by the standard's names.

    Returns:
        The plan, with `axis`, `sizes`, `offsets`, `indices`, `keepdims` and `output_shapes`; call
        it with an array to split it. With names it is a `NamedSplit`.

    Raises:
        SplitError: TS101 to TS309; TS316 for names; TS703 for an identifier or a record with an
            opset.

    Example:
        >>> plan = ts.plan("onnx.Split-18", (7, 4), axis=0, num_outputs=3)
        >>> plan.sizes, plan.offsets
        ((3, 3, 1), (0, 3, 6))
        >>> [part.shape for part in plan(np.ones((7, 4)))]
        [(3, 4), (3, 4), (1, 4)]
    """
    record = operator_named(operator, opset)
    given = {"split": split, "num_outputs": num_outputs, **operands}
    found = None if names is None else names_of(names, "names", record.id)
    for name, lengths in given.items():
        if is_mapping(lengths):
            if found is not None:
                problem, fix = "the lengths have names, too", "give the names once"
                raise SplitError(
                    UNUSABLE_NAMES, problem, fix, operator=record.id, parameter="names"
                )
            found, given[name] = names_and_lengths(lengths, name, record.id)
    made = PreparedSplit.of(*_bound(record, shape, given))
    return made if found is None else NamedSplit.of(made, found)


@dataclass(frozen=True, slots=True)
class SequenceShape:
    """What is known of a sequence whose number of parts is not known.

    Attributes:
        count: The number of parts, as an expression; None where nothing is known.
        part: The shape of every part, with None where parts may differ.
    """

    count: Dim
    part: Shape


@overload
def infer(
    operator: Counted,
    shape: GivenShape,
    split: Lengths | None = ...,
    *,
    num_outputs: SupportsIndex | None = ...,
    opset: SupportsIndex | None = ...,
    **operands: Unpack[Operands],
) -> list[Shape]: ...
@overload
def infer(
    operator: Uncounted | Operator,
    shape: GivenShape,
    split: Lengths | SupportsIndex | None = ...,
    *,
    num_outputs: SupportsIndex | None = ...,
    opset: SupportsIndex | None = ...,
    **operands: Unpack[Operands],
) -> list[Shape] | SequenceShape: ...
@overload
def infer(
    operator: DialectName, shape: GivenShape, **operands: DialectOperand
) -> list[Shape] | SequenceShape: ...
def infer(
    operator: OperatorName | DialectName | Operator,
    shape: GivenShape,
    split: Lengths | SupportsIndex | None = None,
    *,
    num_outputs: DialectOperand = None,
    opset: Any = None,
    **operands: object,
) -> list[Shape] | SequenceShape:
    """Return the shapes of the parts, by the same rules.

    Args:
        operator: An identifier such as ``onnx.Split-18``, a name such as ``Split`` or
            ``openvino.Split``, or a record.
        shape: The shape of the data: each dimension an integer, a name, an onnx-ir or SymPy
            expression, or None for unknown.
        split: The lengths, for operators with an operand of this name.
        num_outputs: The attribute, or in a Split without it how many outputs the node has.
        opset: The opset at which a name is looked up; the newest if None.
        **operands: The other operands, by the standard's names.

    Returns:
        One shape for each part. Computed dimensions are integers where all is known, None where
        the dimension is None, and else expressions: ``onnx_ir.SymbolicDim`` for a name (its text
        is such as ``N - 2``), of the caller's own kind for an expression. Where the number of
        parts depends on a dimension that is not known, a `SequenceShape`.

    Raises:
        SplitError: TS101 to TS309; TS703 for an identifier or a record with an opset.

    Example:
        >>> operands = {"axis": 0, "split_lengths": [-1, 2]}
        >>> [str(shape[0]) for shape in ts.infer("VariadicSplit", ("N", 8), **operands)]
        ['N - 2', '2']
    """
    record = operator_named(operator, opset)
    given = {"split": split, "num_outputs": num_outputs, **operands}
    made = plan_intent(*_bound(record, shape, given))
    if isinstance(made, UncountedPlan):
        return SequenceShape(made.count, made.part_shape)
    return list(made.output_shapes)


def _bound(
    record: Operator, shape: GivenShape, operands: dict[str, object]
) -> tuple[Intent, Shape]:
    intent = bind_values(record, operands)
    try:
        return intent, as_shape(shape)
    except SplitError as error:
        raise error.located(operator=record.id) from None


def counted(made: SplitPlan | UncountedPlan, fix: str | None = None) -> SplitPlan:
    """Return the plan, refused (TS309) if the number of its parts is not known."""
    if isinstance(made, SplitPlan):
        return made
    raise SplitError(
        UNKNOWN_COUNT,
        f"the number of parts is {'unknown' if made.count is None else show_dim(made.count)}",
        fix or "plan for a shape whose split dimension is a number, or use infer",
        operator=made.operator,
        parameter="shape",
    )
