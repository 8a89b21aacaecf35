"""Random programs of OpenVINO's layers around split layers, one for each seed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np
import onnx

from tests.model.openvino_ir import layers
from tests.model.programs import (
    BINARY,
    COMPARED,
    REDUCED,
    UNARY,
    Apply,
    Array,
    Graph,
    Program,
    Scope,
    divide,
    gather,
    one,
    range_,
    reduced,
    slice_,
    squeeze,
    tile,
    top_k,
    unsqueeze,
)
from tests.model.random_models import BFLOAT16, Body, Choices, Generator, Skip

OPSET = 24
"""The opset of ONNX whose types the constants may have."""
OPEN = ("?", "-1", "0..8", "1..6", "2..")
"""Dimensions that are not known, each of one size at a time."""
TYPES = ("float16", "double", "int32", "int64", "int8", "uint8", "int16", "bool", "O")
INTEGERS = (np.dtype(np.int64), np.dtype(np.int32))
NAMES = {
    "Sub": "Subtract",
    "Mul": "Multiply",
    "Max": "Maximum",
    "Min": "Minimum",
    "Neg": "Negative",
}


class LayerGenerator(Generator):
    """Makes one program of layers from one seed."""

    def __init__(self, seed: int, nodes: tuple[int, int] = (3, 25)) -> None:
        super().__init__(seed, nodes)
        self._top = self._body = Body(OPSET)
        self._symbols = {name: self._one((2, 3, 4, 6)) for name in OPEN}
        other = self._one([BFLOAT16, *map(np.dtype, TYPES)])
        self._types = (np.dtype(np.float32), np.dtype(np.float32), other)

    def _layer(
        self,
        op_type: str,
        inputs: Sequence[str],
        apply: Apply,
        *,
        since: int = 1,
        count: int = 1,
        calculated: bool = False,
        **attributes: Any,
    ) -> list[str]:
        return self._step(
            op_type, inputs, count, apply, f"opset{since}", calculated=calculated, **attributes
        )

    def _add(self, depth: int = 0) -> None:
        """Add one layer, with those that it needs."""
        splits: Choices = (self._variadic, self._variadic, self._split)
        moves: Choices = (self._transpose, self._reshape, self._slice, self._strided, self._squeeze)
        moves += (self._unsqueeze, self._concat, self._gather, self._pad, self._expand, self._tile)
        numbers: Choices = (self._binary, self._unary, self._compare, self._reduce, self._top_k)
        numbers += (self._mat_mul, self._cast, self._where, self._range, self._non_zero)
        kinds: list[Choices] = [splits, splits, moves, moves, numbers]
        if not self._body.is_closed:
            kinds.append((self._branches, self._rounds))
        with suppress(Skip):
            self._one(self._one(kinds))()

    # operands

    def _integers(self, values: Any, kind: Any = None) -> str:
        """Integers of one type as a constant, fed, or calculated from dimensions."""
        kind = kind or self._one(INTEGERS)
        array = np.asarray(values, kind)
        choice = self._pick(0, 5)
        if choice == 0 and not self._body.is_closed:
            name = self._add_input(array, array.shape)
            self._operands.add(name)
            return name
        if choice < 4 or array.ndim != 1 or not array.size:
            return self._constant(array)
        parts = [self._counted_from(int(number), kind) for number in array]
        return self._layer("Concat", parts, one(lambda *v: np.concatenate(v)), axis=0)[0]

    def _counted_from(self, number: int, kind: Any) -> str:
        """A vector of one number: a dimension, half of one, a difference, or a constant."""
        if self._chance(0.4):
            return self._constant(np.array([number], kind))
        data = self._tensor()
        axis = self._pick(0, self._value(data).ndim - 1)
        size = self._value(data).shape[axis]
        made = self._dimension_of(data, axis, kind)
        if size == number:
            return made
        if size and size // 2 == number:
            two = self._constant(np.array([2], kind))
            return self._layer("Divide", [made, two], divide)[0]
        rest = self._constant(np.array([size - number], kind))
        return self._layer("Subtract", [made, rest], one(np.subtract))[0]

    def _dimension_of(self, data: str, axis: int, kind: Any) -> str:
        apply = one(lambda x: np.array(x.shape, kind))
        shape = self._layer("ShapeOf", [data], apply, since=3, output_type=name_of(kind))[0]
        at = [self._constant(np.array([axis + more], kind)) for more in (0, 1)]
        step = self._constant(np.array([1], kind))
        if self._chance(0.3):
            return self._layer("Slice", [shape, *at, step], sliced, since=8)[0]
        zero = self._constant(np.array(0, kind))
        since = self._one((1, 7, 8))
        return self._layer("Gather", [shape, at[0], zero], gathered, since=since)[0]

    def _axis_of(self, data: str) -> int:
        rank = self._value(data).ndim
        return self._pick(-rank, rank - 1)

    def _axes(self, axes: Any) -> str:
        return self._constant(np.asarray(axes, self._one(INTEGERS)))

    # splits

    def _variadic(self) -> None:
        data = self._tensor()
        axis, count = self._axis_of(data), self._pick(1, 4)
        lengths = self._lengths(self._value(data).shape[axis], count)
        if self._chance(0.4):
            lengths[self._pick(0, count - 1)] = -1
        at = self._integers(axis) if self._chance(0.2) else self._axes(axis)
        inputs = [data, at, self._integers(lengths)]
        parts = self._layer("VariadicSplit", inputs, layers.variadic_split, count=count)
        if self._chance(0.2):
            self._layer("Concat", parts, one(lambda *v: np.concatenate(v, axis)), axis=axis)

    def _split(self, data: str = "") -> None:
        data = data or self._tensor()
        axis = self._axis_of(data)
        size = self._value(data).shape[axis]
        count = self._one([n for n in (1, 2, 3, 4) if size % n == 0])
        inputs = [data, self._axes(axis)]
        self._layer("Split", inputs, layers.split, count=count, num_splits=count)

    # what moves elements

    def _transpose(self, data: str = "") -> None:
        data = data or self._tensor()
        order = self._random.permutation(self._value(data).ndim)
        self._layer("Transpose", [data, self._axes(order)], one(np.transpose))

    def _reshape(self, data: str = "") -> None:
        data = data or self._tensor()
        shape: list[Any] = list(self._value(data).shape)
        at = self._pick(0, len(shape) - 1)
        if self._chance(0.4):
            shape[at : at + 2] = [int(np.prod(shape[at : at + 2]))]
        else:
            divisor = self._one([n for n in (1, 2, 3, 4) if shape[at] % n == 0])
            shape[at : at + 1] = self._some([divisor, shape[at] // divisor], 2)
        if self._chance(0.6):
            shape[self._pick(0, len(shape) - 1)] = -1
        zero = self._chance(0.5)
        for place, size in enumerate(self._value(data).shape[: len(shape)] if zero else ()):
            if shape[place] == size and self._chance(0.4):
                shape[place] = 0
        inputs = [data, self._integers(shape)]
        self._layer("Reshape", inputs, layers.reshape, special_zero=zero)

    def _slice(self, data: str = "") -> None:
        data = data or self._tensor()
        shape = self._value(data).shape
        axes = self._some(range(len(shape)), self._pick(1, 2))
        kind = self._one(INTEGERS)
        starts = [self._pick(-shape[axis] - 1, shape[axis]) for axis in axes]
        ends = [self._one((self._pick(-shape[axis], shape[axis]), 2**31 - 1)) for axis in axes]
        steps = [self._one((1, 1, 2, -1)) for _ in axes]
        inputs = [self._integers(bounds, kind) for bounds in (starts, ends)]
        inputs += [self._constant(np.array(each, kind)) for each in (steps, axes)]
        self._layer("Slice", [data, *inputs], sliced, since=8)

    def _strided(self) -> None:
        data = self._tensor()
        shape = self._value(data).shape
        count, kind = self._pick(1, len(shape)), self._one(INTEGERS)
        starts = [self._pick(-size, size) for size in shape[:count]]
        shrunk = [
            int(-size <= start < size and self._chance(0.2))
            for start, size in zip(starts, shape, strict=False)
        ]
        steps = [1 if shrink else self._one((1, 1, 2, -1)) for shrink in shrunk]
        ends = [
            (start + 1 or 99) if shrink else self._pick(-size, size)
            for start, shrink, size in zip(starts, shrunk, shape, strict=False)
        ]
        masks: dict[str, Any] = {
            name: [int(not shrink and self._chance(0.3)) for shrink in shrunk]
            for name in ("begin_mask", "end_mask")
        }
        inputs = [self._constant(np.array(each, kind)) for each in (starts, ends, steps)]
        masks |= {"new_axis_mask": [0] * count, "shrink_axis_mask": shrunk, "ellipsis_mask": []}
        if self._chance(0.2) and not shrunk[0]:
            masks["new_axis_mask"] = [1, *[0] * (count - 1)]
        self._layer("StridedSlice", [data, *inputs], layers.strided_slice, **masks)

    def _squeeze(self) -> None:
        data = self._find(lambda v: isinstance(v, np.ndarray) and 1 in v.shape)
        shape = self._value(data).shape
        ones = self._some([axis for axis, size in enumerate(shape) if size == 1], self._pick(1, 2))
        self._layer("Squeeze", [data, self._axes(ones)], squeeze)

    def _unsqueeze(self) -> None:
        data = self._find(lambda v: isinstance(v, np.ndarray) and v.ndim < 4)
        rank = self._value(data).ndim + 1
        self._layer("Unsqueeze", [data, self._axes([self._pick(-rank, rank - 1)])], unsqueeze)

    def _concat(self) -> None:
        data = self._tensor()
        axis = self._axis_of(data)
        others = self._alike(data, axis % self._value(data).ndim)
        inputs = self._some([data, *(self._one(others) for _ in range(self._pick(0, 2)))], 3)
        self._layer("Concat", inputs, one(lambda *v: np.concatenate(v, axis)), axis=axis)

    def _gather(self) -> None:
        data = self._tensor()
        axis, since = self._axis_of(data), self._one((1, 7, 8))
        size = self._value(data).shape[axis]
        if not size:
            raise Skip
        shape = self._one([(), (1,), (2,), (0,)])
        found = self._random.integers(-size if since == 8 else 0, size, shape)
        inputs = [data, self._constant(found.astype(np.int64)), self._axes(axis)]
        self._layer("Gather", inputs, gathered, since=since)

    def _pad(self) -> None:
        data = self._tensor(1, calculated=True)
        value, kind = self._value(data), self._one(INTEGERS)
        pads = [self._integers(self._random.integers(0, 2, value.ndim), kind) for _ in range(2)]
        inputs = [data, *pads, self._constant(np.array(3, value.dtype))]
        self._layer("Pad", inputs, layers.pad, pad_mode="constant")

    def _expand(self) -> None:
        data = self._tensor()
        shape = [self._one((2, 3)) if n == 1 else n for n in self._value(data).shape]
        inputs = [data, self._integers([*self._one([(), (2,), (1,)]), *shape])]
        mode = self._one(("numpy", "bidirectional"))
        self._layer("Broadcast", inputs, layers.broadcast, since=3, mode=mode)

    def _tile(self) -> None:
        data = self._tensor()
        counts = [self._one((1, 1, 2)) for _ in self._value(data).shape]
        self._layer("Tile", [data, self._integers(counts)], tile)

    def _cast(self) -> None:
        data = self._tensor(1, calculated=True)
        kind = self._one((np.float32, np.float16, *INTEGERS))
        apply = one(lambda x: x.astype(kind))
        self._layer("Convert", [data], apply, calculated=True, destination_type=name_of(kind))

    # what calculates

    def _binary(self) -> None:
        data = self._tensor(0, calculated=True)
        other, name = self._one(self._alike(data)), self._one(list(BINARY))
        apply = one(BINARY[name])
        self._layer(NAMES.get(name, name), [data, other], apply, calculated=True)

    def _unary(self) -> None:
        data, name = self._tensor(0, calculated=True), self._one(list(UNARY))
        self._layer(NAMES.get(name, name), [data], one(UNARY[name]), calculated=True)

    def _compare(self) -> None:
        data, name = self._tensor(0, calculated=True), self._one(list(COMPARED))
        other = self._constant(np.array(1, self._value(data).dtype))
        self._layer(name, [data, other], one(COMPARED[name]))

    def _where(self) -> None:
        condition = self._find(lambda v: isinstance(v, np.ndarray) and v.dtype == bool)
        data = self._tensor(0, calculated=True)
        other = self._constant(np.array(2, self._value(data).dtype))
        self._layer("Select", [condition, data, other], one(np.where))

    def _reduce(self) -> None:
        data, name = self._tensor(1, calculated=True), self._one(list(REDUCED))
        axes = self._axes(self._some(range(self._value(data).ndim), self._pick(1, 2)))
        keep = self._chance(0.5)
        since = 4 if name == "ReduceL1" else 1

        def apply(v: list[Any], _: dict[str, Any], scope: Scope) -> Sequence[Any]:
            return reduced(REDUCED[name])(v, {"keepdims": keep}, scope)

        self._layer(name, [data, axes], apply, since=since, calculated=True, keep_dims=keep)

    def _top_k(self) -> None:
        data = self._tensor(1, calculated=True)
        axis = self._axis_of(data)
        count = self._constant(np.array(self._pick(1, max(1, self._value(data).shape[axis]))))
        options: dict[str, Any] = {"mode": "max", "sort": "value", "index_element_type": "i64"}
        self._layer("TopK", [data, count], largest, since=3, count=2, axis=axis, **options)

    def _mat_mul(self) -> None:
        data = self._tensor(1, calculated=True)
        value = self._value(data)
        weights = self._constant(self._data(value.dtype, (value.shape[-1], self._pick(1, 3))))
        options = {"transpose_a": False, "transpose_b": False}
        self._layer("MatMul", [data, weights], one(np.matmul), calculated=True, **options)

    def _range(self) -> None:
        data, kind = self._tensor(), self._one(INTEGERS)
        size = self._dimension_of(data, self._pick(0, self._value(data).ndim - 1), kind)
        limit = self._layer("Squeeze", [size, self._axes([0])], squeeze)[0]
        inputs = [self._constant(np.array(0, kind)), limit, self._constant(np.array(1, kind))]
        self._layer("Range", inputs, range_, since=4, output_type=name_of(kind))

    def _non_zero(self) -> None:
        data = self._tensor(1, calculated=True)
        apply = one(lambda x: np.array(np.nonzero(x), np.int64))
        self._layer("NonZero", [data], apply, since=3, output_type="i64")

    # bodies

    def _body_of(self, fed: Mapping[str, Any], outputs: Callable[[], list[str]]) -> Graph:
        outer = self._body
        self._body = Body(OPSET, is_closed=True, values=dict(fed), own=[*fed])
        try:
            self._some_steps(4, 1)
            ends, body = outputs(), self._body
        finally:
            self._body = outer
        declared = self._declared([*fed, *ends], body.values)
        return Graph(body.steps, list(fed), ends, declared, body.values)

    def _branches(self) -> None:
        names = [self._tensor(0) for _ in range(2)]
        condition = self._greater()
        values = [self._value(name) for name in names]

        def last() -> list[str]:
            return [self._find(lambda v: v.dtype == values[0].dtype and v.ndim == values[0].ndim)]

        then, other = (
            self._body_of({self._name(): value for value in values}, last) for _ in range(2)
        )
        self._layer("If", [condition, *names], layers.if_, since=8, then_body=then, else_body=other)

    def _greater(self) -> str:
        data = self._tensor()
        size = self._dimension_of(data, 0, np.int64)
        bound = self._constant(np.array([self._pick(0, 4)]))
        return self._layer("Greater", [size, bound], one(np.greater))[0]

    def _rounds(self) -> None:
        data = self._find(lambda v: v.ndim and 0 < max(v.shape) < 5)
        shape = self._value(data).shape
        axis = self._one([at for at, size in enumerate(shape) if size] or [0])
        state, around = self._tensor(0), self._tensor(0)
        first, carried = self._value(data).take([0], axis), self._value(state)
        joined = 0

        def ends() -> list[str]:
            nonlocal joined
            values = self._body.values
            changed = self._find(lambda v: v.dtype == carried.dtype and v.shape == carried.shape)
            part = self._find(lambda v: 1 in v.shape)
            joined = values[part].shape.index(1)
            return [changed, part, self._find(lambda v: True)]

        fed = {self._name(): value for value in (first, carried, self._value(around))}
        body, op_type = self._body_of(fed, ends), self._one(("Loop", "TensorIterator"))
        rounds = shape[axis] if op_type == "Loop" else -1
        options = {"axis": axis, "joined": joined, "rounds": rounds}
        self._layer(
            op_type, [data, state, around], layers.iterated, count=3, since=5, body=body, **options
        )


def name_of(kind: Any) -> str:
    """OpenVINO's name of a number's type, such as i64."""
    dtype = np.dtype(kind)
    return f"{dtype.kind}{dtype.itemsize * 8}"


def sliced(v: list[Any], a: dict[str, Any], scope: Any) -> list[Array]:
    """Slice-8, whose steps come before its axes."""
    data, starts, ends, steps, *axes = v
    return slice_(
        [data, starts, ends, axes[0] if axes else np.arange(len(starts)), steps], a, scope
    )


def largest(v: list[Any], a: dict[str, Any], scope: Scope) -> list[Array]:
    """TopK, whose count is a scalar."""
    return top_k([v[0], v[1].reshape(1)], a, scope)


def gathered(v: list[Any], _: dict[str, Any], scope: Any) -> list[Array]:
    """Gather along an axis that is an input."""
    return gather(v[:2], {"axis": int(v[2])}, scope)


def random_layers(seed: int) -> Program:
    """Make the program of a seed, with the feeds that its declarations allow."""
    program = LayerGenerator(seed).make()
    declared = program.graph.declared
    feeds = [fed for fed in program.feeds if all(fits(declared[name], fed[name]) for name in fed)]
    return replace(program, feeds=feeds)


def fits(entry: onnx.ValueInfoProto, value: Array) -> bool:
    """Whether a value has the dimensions that are declared."""
    for dim, size in zip(entry.type.tensor_type.shape.dim, value.shape, strict=True):
        low, dots, high = dim.dim_param.partition("..")
        if dots and not int(low) <= size <= int(high or size):
            return False
    return True
