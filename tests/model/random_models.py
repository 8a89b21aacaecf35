"""Random legal models around split nodes, at every opset: a `Program` for each seed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache, partial
from typing import Any

import ml_dtypes
import numpy as np
import onnx
from onnx import TensorProto, helper

from tests.model.programs import (
    BINARY,
    COMPARED,
    LOCAL,
    REDUCED,
    UNARY,
    Apply,
    Array,
    Function,
    Graph,
    Parameter,
    Program,
    Scope,
    Step,
    arg_max,
    average_pool,
    call,
    compress,
    concat_from_sequence,
    conv,
    declaration,
    dequantize,
    divide,
    equal,
    evaluate,
    expand,
    gather,
    if_,
    ints,
    is_exact,
    know,
    loop,
    max_pool,
    nearest,
    one,
    pad,
    quantize,
    range_,
    reduced,
    reshape,
    scan,
    sequence_at,
    sequence_erase,
    sequence_insert,
    slice_,
    softmax,
    split,
    split_to_sequence,
    squeeze,
    tile,
    top_k,
    unsqueeze,
)

Choices = tuple[Callable[[], Any], ...]

OPSETS = (1, *range(7, min(28, onnx.defs.onnx_opset_version() + 1)))
SIZES = (0, 1, 2, 3, 4, 5, 6, 8)
NAMES = ("N", "M", "a/b:0")
"""Names of dimensions; exporters write some that no parser of formulas takes."""
BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
MOVED_ONLY = (
    *(np.dtype(name) for name in ("O", "bool", "uint8", "int8", "uint16", "uint64", "complex64")),
    *(BFLOAT16, np.dtype(ml_dtypes.float8_e4m3fn), np.dtype(ml_dtypes.int4)),
)
"""Element types that nothing is calculated in."""
CALCULATED = tuple(np.dtype(name) for name in ("float16", "double", "int32", "int64"))
"""Element types besides float that something is calculated in."""
MOST_ELEMENTS = 2048


class Skip(Exception):  # noqa: N818 - no error
    """A step that can't be here."""


def version(op_type: str, opset: int) -> Version | None:
    """What an operator takes and gives at an opset; None if there is none."""
    try:
        since = onnx.defs.get_schema(op_type, opset).since_version
    except onnx.defs.SchemaError:
        return None
    return version_since(op_type, since)


@cache
def version_since(op_type: str, since: int) -> Version:
    """What a version of an operator takes and gives."""
    schema = onnx.defs.get_schema(op_type, since)
    is_variadic = onnx.defs.OpSchema.FormalParameterOption.Variadic
    ends = (schema.inputs, schema.outputs)
    allowed = {each.type_param_str: each.allowed_type_strs for each in schema.type_constraints}
    types = [
        [
            (
                each.type_str if each.is_homogeneous else "",
                frozenset(allowed.get(each.type_str, [each.type_str])),
            )
            for each in end
        ]
        for end in ends
    ]
    repeats = [bool(each) and each[-1].option == is_variadic for each in ends]
    return Version(schema.since_version, types, repeats)


@dataclass(frozen=True)
class Version:
    """The types of the inputs and outputs of an operator, and whether the last ones repeat.

    A type is a name, such as T1, and those that it may stand for, of which it is one in a node. It
    has no name where it need not be one.
    """

    since: int
    types: Sequence[Sequence[tuple[str, frozenset[str]]]]
    repeats: Sequence[bool]

    def fits(self, inputs: Sequence[Any], outputs: Sequence[Any]) -> bool:
        """Whether these may be its inputs and outputs; None is one that is left out."""
        names: dict[str, str] = {}
        for values, types, repeats in zip((inputs, outputs), self.types, self.repeats, strict=True):
            if len(values) > len(types) and not repeats:
                return False
            for index, value in enumerate(values):
                name, allowed = types[min(index, len(types) - 1)]
                if value is None:
                    continue
                is_same = names.setdefault(name, type_of(value)) == type_of(value)
                if type_of(value) not in allowed or not (is_same or not name):
                    return False
        return True


def type_of(value: Any) -> str:
    """The type as schemas write it; an empty sequence is one of float."""
    if isinstance(value, list):
        return f"seq({type_of(value[0]) if value else 'tensor(float)'})"
    kind = TensorProto.DataType.Name(helper.np_dtype_to_tensor_dtype(value.dtype)).lower()
    return f"tensor({kind})"


def gemm(x: Any, weights: Any, bias: Any) -> Any:
    """Gemm with transposed weights; ValueError for data that is no matrix."""
    _rows, _columns = x.shape
    return x @ weights.T + bias


def ranks(value: Any) -> set[int]:
    """The ranks of a tensor, or of those of a sequence."""
    return {each.ndim for each in (value if isinstance(value, list) else [value])}


@dataclass
class Body:
    """The nodes of a graph or function that is being made, and the values that they can see."""

    opset: int
    given: Mapping[str, int] = field(default_factory=dict)  # the attributes of a function
    is_closed: bool = False  # whether new operands have to be constants of its own
    steps: list[Step] = field(default_factory=list)
    values: dict[str, Any] = field(default_factory=dict)
    own: list[str] = field(default_factory=list)
    lengths: str = ""  # the input of a function that calls may omit, for splits and calls alone


class Generator:
    """Makes one program from one seed."""

    def __init__(self, seed: int, nodes: tuple[int, int] = (5, 40)) -> None:
        self._random = np.random.default_rng(seed)
        self._passes = np.random.default_rng(~seed % 2**64)  # apart, so that other choices stay
        self._nodes = nodes
        opset = int(self._one(OPSETS))
        self._count = 0
        self._symbols = {name: self._one(SIZES[1:]) for name in NAMES}
        self._shapes: dict[str, list[Any]] = {}
        self._initializers: dict[str, Array] = {}
        self._functions: dict[str, Function] = {}
        self._feeds: dict[str, Any] = {}
        self._operands: set[str] = set()  # inputs that are lengths, indices, conditions and so on
        self._loose: set[str] = set()  # what may have another rank for other data
        self._top = self._body = Body(opset)
        self._types: tuple[Any, ...] = (np.dtype(np.float32),) * 3
        if opset < OPSETS[1]:
            self._types += (np.dtype("float16"), np.dtype("double"))  # Split takes no others
        elif self._chance(0.5):
            self._types += (self._one(CALCULATED), self._one(MOVED_ONLY))

    def make(self) -> Program:
        """Make the program, with other data that fits its declared inputs."""
        for _ in range(self._pick(1, 3)):
            self._new_input()
        wanted = self._pick(*self._nodes)
        while len(self._top.steps) < wanted:
            self._add()
        tensors_only = self._chance(0.5)
        values = self._top.values
        results = [n for n in self._top.own if not (tensors_only and isinstance(values[n], list))]
        results = [name for name in results if name not in self._loose]  # they are declared
        outputs = self._some(results, 4) or [self._identity(next(iter(self._shapes)))]
        declared = self._declared(outputs, values)
        for name, shape in self._shapes.items():
            declared[name] = declaration(name, values[name], shape)
        graph = Graph(
            self._top.steps, list(self._shapes), outputs, declared, values, self._initializers
        )
        imports = [helper.make_opsetid("", self._top.opset)]
        least = helper.find_min_ir_version_for(imports)
        feeds = [self._feeds, *(self._other_feeds() for _ in range(2))]
        return Program(graph, self._functions, self._top.opset, max(8, least), feeds)

    def _other_feeds(self) -> dict[str, Any]:
        """Data of other sizes where the declaration leaves them open, or other lengths."""
        sizes = {name: self._one(SIZES) for name in self._symbols}
        if self._chance(0.5):  # one of them only
            kept = self._one(list(sizes))
            sizes = {**self._symbols, kept: sizes[kept]}
        change = self._chance(0.5)
        feeds = {}
        for name, declared in self._shapes.items():
            old = self._feeds[name]
            shape = [
                sizes.get(size, size) if size is not None else old.shape[axis]
                for axis, size in enumerate(declared)
            ]
            feeds[name] = old if tuple(shape) == old.shape else self._data(old.dtype, shape)
            if name not in self._operands:
                continue
            feeds[name] = old
            if old.size and change and self._chance(0.5):
                index = tuple(self._pick(0, size - 1) for size in old.shape)
                feeds[name] = old.copy()
                feeds[name][index] += self._one((-2, -1, 1, 40))
        return feeds

    # choices

    def _pick(self, low: int, high: int) -> int:
        return int(self._random.integers(low, high + 1))

    def _chance(self, probability: float) -> bool:
        return bool(self._random.random() < probability)

    def _one(self, items: Sequence[Any]) -> Any:
        return items[self._pick(0, len(items) - 1)]

    def _some(self, items: Sequence[Any], most: int) -> list[Any]:
        number = min(len(items), most)
        return [items[index] for index in self._random.permutation(len(items))[:number]]

    def _name(self) -> str:
        self._count += 1
        return f"v{self._count}"

    def _find(self, want: Callable[[Any], bool]) -> str:
        """Choose a value, of the body itself rather than from outside; Skip without one."""
        body = self._body
        own = [name for name in body.own if want(body.values[name])]
        if own and self._chance(0.6):
            return str(self._one(own[-4:]))
        found = [name for name, value in body.values.items() if want(value)]
        if not found:
            raise Skip
        return str(self._one(found))

    def _tensor(self, rank: int = 1, calculated: bool = False) -> str:
        """Choose a tensor of at least this rank; one that is calculated with is exact."""
        kinds = (np.dtype(np.float32), *CALCULATED)

        def fits(value: Any) -> bool:
            is_tensor = isinstance(value, np.ndarray) and value.ndim >= rank
            return is_tensor and (not calculated or (value.dtype in kinds and is_exact(value)))

        return self._find(fits)

    def _sequence(self) -> str:
        try:
            return self._find(lambda value: isinstance(value, list))
        except Skip:
            self._split_to_sequence()
            return self._body.own[-1]

    def _value(self, name: str) -> Any:
        return self._body.values[name]

    def _data(self, dtype: np.dtype[Any], shape: Sequence[int]) -> Array:
        """Random elements; few bits each, so that sums of them are exact."""
        if dtype.kind == "O":
            words = np.array(["", "a", "split", "é", "longer than the others"], object)
            return words[self._random.integers(0, 5, shape)]
        low = 0 if dtype.kind in "ub" else -4
        made = self._random.integers(low, 5, shape) / (2 if dtype.kind == "f" else 1)
        return np.asarray(made.astype(np.int64) if dtype.kind not in "fcV" else made).astype(dtype)

    def _lengths(self, dimension: int, count: int) -> list[int]:
        cuts = sorted(self._pick(0, dimension) for _ in range(count - 1))
        return [b - a for a, b in zip([0, *cuts], [*cuts, dimension], strict=True)]

    # ends of graphs

    def _new_input(self) -> str:
        """Add an input whose dimensions are named, numbers or open."""
        rank = self._one((1, 2, 2, 3, 3, 4))
        named = dict(self._symbols)
        declared = [
            self._one(list(named)) if self._chance(0.5) else self._one((*SIZES, 4, 6))
            for _ in range(rank)
        ]
        value = self._data(self._one(self._types), [named.get(size, size) for size in declared])
        return self._add_input(value, [None if self._chance(0.1) else size for size in declared])

    def _add_input(self, value: Array, declared: Sequence[Any]) -> str:
        name = self._name()
        self._feeds[name] = self._top.values[name] = self._body.values[name] = value
        self._shapes[name] = list(declared)
        return name

    def _initializer(self, value: Array) -> str:
        if self._body.is_closed:
            return self._constant(value)
        name = self._name()
        self._initializers[name] = value
        self._body.values[name] = self._top.values[name] = value
        return name

    def _constant(self, value: Any) -> str:
        array = np.asarray(value)
        return self._step("Constant", [], 1, lambda *_: [array], value=array)[0]

    def _identity(self, name: str) -> str:
        return self._step("Identity", [name], 1, lambda v, *_: [v[0]])[0]

    def _passed(self, name: str) -> str:
        """Give out what a body is given, as it is or through an Identity."""
        return name if self._passes.random() < 0.4 else self._identity(name)

    def _step(
        self,
        op_type: str,
        inputs: Sequence[str],
        count: int,
        apply: Apply,
        domain: str = "",
        calculated: bool = False,
        **attributes: Any,
    ) -> list[str]:
        """Add a node, whose outputs without a value may not be used; Skip if it can't be here."""
        body = self._body
        outputs = [self._name() for _ in range(count)]
        step = Step(op_type, inputs, outputs, attributes, apply, domain, calculated)
        scope = Scope(dict(body.values), self._functions, body.given)
        try:
            evaluate([step], scope)
        except Exception as error:  # whatever NumPy raises, it is not a legal node here
            raise Skip from error
        results = {name: scope.values[name] for name in outputs}
        is_float = all(
            type_of(body.values[name]).endswith("(float)") for name in inputs[:1] if name
        )
        if any(isinstance(each, list) and not each for each in results.values()) and not is_float:
            raise Skip  # the type of an empty sequence can't be seen here
        sizes = [each.size for each in results.values() if isinstance(each, np.ndarray)]
        if max(sizes, default=0) > MOST_ELEMENTS:
            raise Skip
        if not domain:
            here, there = version(op_type, body.opset), version(op_type, self._top.opset)
            fed = [body.values[name] if name else None for name in inputs]
            if here is None or here is not there:  # onnx's checker wants the same in functions
                raise Skip
            if not here.fits(fed, list(results.values())):
                raise Skip
        ends = [name for inner in step.bodies() for name in (*inner.inputs, *inner.outputs)]
        if not self._loose.isdisjoint([*inputs, *ends]):
            self._loose.update(outputs)
        known = {name: value for name, value in results.items() if value is not None}
        body.values.update(known)
        body.steps.append(step)
        if op_type != "Constant":
            body.own += known
        return outputs

    def _declared(
        self, names: Sequence[str], values: Mapping[str, Any]
    ) -> dict[str, onnx.ValueInfoProto]:
        return {
            name: declaration(name, values[name], has_rank=name not in self._loose)
            for name in names
        }

    # nodes

    def _add(self, depth: int = 0) -> None:
        """Add some nodes, of one kind; what was begun and can't be here stays behind."""
        moves: Choices = (
            self._transpose,
            self._reshape,
            self._slice,
            self._squeeze,
            self._unsqueeze,
        )
        moves += (
            self._concat,
            self._gather,
            self._compress,
            self._pad,
            self._expand,
            self._tile,
            self._flatten,
        )
        moves += (self._cast, self._where, lambda: self._identity(self._tensor()), self._range)
        moves += (self._nothing,)
        numbers: Choices = (self._binary, self._binary, self._unary, self._compare, self._reduce)
        numbers += (self._arg_max, self._top_k, self._mat_mul, self._gemm, self._quantize)
        numbers += (self._non_zero, self._shape_of, self._slice_of_shape, self._quotient)
        images: Choices = (self._conv, self._pool, self._resize, self._normalize)
        splits: Choices = (self._split, self._split, self._split_to_sequence)
        sequences: Choices = (
            self._at,
            self._insert,
            self._erase,
            self._join,
            self._length,
            self._construct,
        )
        kinds: list[Choices] = [splits, splits, moves, moves, numbers]
        rounded: Choices = (self._quantize, self._quantize, self._softmax)
        kinds += [self._one((images, moves, sequences, rounded))]
        if self._body.opset < OPSETS[1]:  # most others have other attributes there
            kinds = [splits[:1], (self._transpose, self._squeeze, self._concat)]
        elif depth == 0 or (depth == 1 and self._chance(0.2)):
            kinds += [
                (partial(self._if, depth), partial(self._loop, depth), self._scan, self._calls)
            ]
        with suppress(Skip):
            self._one(self._one(kinds))()

    def _axis(self, rank: int, since: int = 11) -> int:
        """Choose an axis; a negative one where the version of the operator has them."""
        axis = self._pick(0, rank - 1)
        return axis - rank if self._body.opset >= since and self._chance(0.3) else axis

    def _operand(self, value: Any) -> str:
        """Integers as a constant, an initializer, an input, one with a default, or calculated."""
        array = np.asarray(value, np.int64)
        choice = self._pick(0, 5)
        if choice >= 4 and array.ndim < 2:
            return self._calculated(array)
        if self._body.is_closed or choice == 0:
            return self._constant(array)
        if choice == 1:
            return self._initializer(array)
        name = self._add_input(array, array.shape)
        self._operands.add(name)
        if choice == 2:  # the default is another value; what is fed counts
            self._initializers[name] = np.roll(array, 1)
        return name

    def _calculated(self, array: Array) -> str:
        """Integers from the shapes of values, one by one."""
        parts = [self._from_shape(int(number)) for number in array.reshape(-1)]
        if not array.ndim:
            return self._with_axes("Squeeze", parts[0], squeeze, [0], 1)[0]
        if not parts:
            return self._constant(array)
        return self._step("Concat", parts, 1, lambda v, *_: [np.concatenate(v)], axis=0)[0]

    def _from_shape(self, number: int) -> str:
        """A vector of one number: calculated, sometimes in float16 at last, or a constant."""
        if self._chance(0.3):
            return self._constant([number])
        if not self._body.is_closed and 0 <= number <= MOST_ELEMENTS and self._chance(0.2):
            return self._counted(number)
        made = self._number(number)
        if not self._chance(0.1):
            return made
        half, dtype = np.dtype(np.float16), np.dtype(np.int64)
        made = self._cast_to(made, half)
        one_half = self._constant(np.array([1], half))
        made = self._step("Mul", [made, one_half], 1, one(np.multiply), calculated=True)[0]
        return self._cast_to(made, dtype)

    def _counted(self, number: int) -> str:
        """A vector of one number: how many elements of an input are above 0."""
        sizes = {name: size for name, size in self._symbols.items() if size >= number}
        declared: Any = self._one(list(sizes)) if sizes else number
        is_above = self._random.permutation(np.arange(sizes.get(declared, number)) < number)
        scores = self._add_input(np.where(is_above, 2, -1).astype(np.float32), [declared])
        zero = self._constant(np.array(0, np.float32))
        found = self._step("Greater", [scores, zero], 1, one(np.greater))[0]
        numbers = self._cast_to(found, np.dtype(np.int64))
        return self._with_axes("ReduceSum", numbers, reduced(np.sum), [0], 1, calculated=True)[0]

    def _number(self, number: int) -> str:
        """A vector of one number: a dimension, a difference of two, or a half."""
        name = self._tensor(1)
        index = self._pick(0, self._value(name).ndim - 1)
        size = self._value(name).shape[index]
        made = self._dimension(name, index)
        if size and size // 2 == number and self._chance(0.5):
            return self._step("Div", [made, self._constant([2])], 1, divide, calculated=True)[0]
        if size == number:
            return made
        rest = self._constant([size - number])
        if self._chance(0.5):
            for other, value in self._body.values.items():
                if not isinstance(value, np.ndarray):
                    continue
                if value.dtype == np.int64 and np.array_equal(value, [size - number]):
                    rest = other
                    break
                if size - number in value.shape:
                    rest = self._dimension(other, value.shape.index(size - number))
                    break
        return self._step("Sub", [made, rest], 1, one(np.subtract), calculated=True)[0]

    def _dimension(self, name: str, index: int) -> str:
        """A dimension of a value, as a vector."""
        if self._body.opset >= 15 and self._chance(0.3):
            attributes: dict[str, Any] = {"start": index, "end": index + 1}
            apply = one(lambda x: np.array(x.shape[index : index + 1], np.int64))
            return self._step("Shape", [name], 1, apply, **attributes)[0]
        shape = self._step("Shape", [name], 1, one(lambda x: np.array(x.shape, np.int64)))[0]
        return self._step("Gather", [shape, self._constant([index])], 1, gather, axis=0)[0]

    # nodes that move elements

    def _split(self, data: str = "") -> None:
        data, opset = data or self._tensor(), self._body.opset
        shape = self._value(data).shape
        axis, count = self._axis(len(shape)), self._pick(1, 4)
        dimension = shape[axis]
        inputs = [data]
        attributes: dict[str, Any] = {"axis": axis}
        if self._chance(0.5) and min(equal(dimension, count)) >= 0:
            if opset >= 18:
                attributes["num_outputs"] = count
            if opset >= 13 and self._chance(0.3):
                inputs.append("")
        elif opset < OPSETS[1] and self._chance(0.5):
            inputs.append(self._float_lengths(self._lengths(dimension, count), data))
        elif opset < 13:
            attributes["split"] = self._lengths(dimension, count)
        elif self._chance(0.15) and not self._body.is_closed:
            count = 2
            inputs.append(self._as_many_as_found(data, axis % len(shape)))
        else:
            inputs.append(self._operand(self._lengths(dimension, count)))
        if inputs[1:] != [""] and self._body.given and axis >= 0:
            at = self._body.given["at"]
            attributes["axis"] = Parameter("at", at) if at == axis else axis
        parts = self._step("Split", inputs, count, partial(split, count), **attributes)
        if self._chance(0.2):
            self._join_again(parts, axis)

    def _float_lengths(self, lengths: list[int], data: str) -> str:
        """Lengths of the type of the data, as a constant, an initializer or an input."""
        array = np.array(lengths, self._value(data).dtype)
        make = self._one((self._constant, self._initializer, None))
        if make is not None:
            return str(make(array))
        name = self._add_input(array, array.shape)
        self._operands.add(name)
        return name

    def _as_many_as_found(self, data: str, axis: int) -> str:
        """Lengths of two parts: as many as elements of an input are above 0, and the rest."""
        dimension = self._value(data).shape[axis]
        first = self._counted(self._pick(0, dimension))
        whole = self._dimension(data, axis)
        rest = self._step("Sub", [whole, first], 1, one(np.subtract), calculated=True)[0]
        return self._step("Concat", [first, rest], 1, one(lambda *v: np.concatenate(v)), axis=0)[0]

    def _join_again(self, parts: list[str], axis: int) -> None:
        """Join all parts in order, some of them passed on: an engine may leave all of it out."""
        held = [self._identity(part) if self._chance(0.2) else part for part in parts]
        apply = one(lambda *each: np.concatenate(each, axis))
        whole = self._step("Concat", held, 1, apply, axis=axis)
        self._step("Neg", whole, 1, one(np.negative))

    def _split_to_sequence(self) -> None:
        data = self._tensor()
        shape = self._value(data).shape
        axis = self._axis(len(shape))
        inputs = [data]
        attributes: dict[str, Any] = {"axis": axis}
        match self._pick(0, 2):
            case 0:
                if len(shape) > 1 and self._chance(0.5):
                    attributes["keepdims"] = 0
            case 1:
                inputs.append(self._operand(self._pick(1, 4)))
            case _:
                inputs.append(self._operand(self._lengths(shape[axis], self._pick(1, 3))))
        self._step("SplitToSequence", inputs, 1, split_to_sequence, **attributes)

    def _transpose(self, data: str = "") -> None:
        data = data or self._tensor()
        perm = [int(axis) for axis in self._random.permutation(self._value(data).ndim)]
        self._step("Transpose", [data], 1, one(lambda x: np.transpose(x, perm)), perm=perm)

    def _reshape(self, data: str = "") -> None:
        data = data or self._tensor()
        shape = list(self._value(data).shape)
        if self._chance(0.3):
            shape = [int(np.prod(shape))]
        elif len(shape) > 1 and self._chance(0.5):
            at = self._pick(0, len(shape) - 2)
            shape[at : at + 2] = [shape[at] * shape[at + 1]]
        else:
            at = self._pick(0, len(shape) - 1)
            divisor = self._one([n for n in (1, 2, 3, 4) if shape[at] % n == 0])
            shape[at : at + 1] = self._some([divisor, shape[at] // divisor], 2)
        index = self._pick(0, len(shape) - 1)
        if self._chance(0.3):
            shape[index] = -1
        elif shape[index : index + 1] == list(self._value(data).shape[index : index + 1]):
            shape[index] = self._one((0, shape[index]))
        self._step("Reshape", [data, self._operand(shape)], 1, reshape)

    def _slice(self, data: str = "") -> None:
        data = data or self._tensor()
        shape = self._value(data).shape
        axes = sorted(self._some(range(len(shape)), self._pick(1, 2)))
        starts = [self._pick(-shape[axis], shape[axis]) for axis in axes]
        ends = [self._one((self._pick(-shape[a], shape[a]), (1 << 31) - 1, -1)) for a in axes]
        if self._body.opset < 10:
            self._step("Slice", [data], 1, slice_, axes=axes, starts=starts, ends=ends)
            return
        inputs = [data, self._operand(starts), self._operand(ends)]
        if axes != list(range(len(axes))) or self._chance(0.7):
            inputs.append(self._operand(axes))
            if self._chance(0.3):
                inputs.append(self._operand([self._one((1, 2, -1)) for _ in axes]))
        self._step("Slice", inputs, 1, slice_)

    def _with_axes(
        self,
        op_type: str,
        data: str,
        apply: Apply,
        axes: Sequence[int],
        rank: int,
        since: int = 13,
        **options: Any,
    ) -> list[str]:
        """Add a node with axes, in any order, as an attribute or since an opset as an input.

        Exporters write negative ones of Squeeze and Unsqueeze from opset 7 on.
        """
        since_7 = self._body.opset >= OPSETS[1] and op_type in ("Squeeze", "Unsqueeze")
        if self._body.opset >= 11 or since_7:
            axes = [axis - rank if self._chance(0.3) else axis for axis in axes]
        if self._body.opset < since:
            return self._step(op_type, [data], 1, apply, axes=axes, **options)
        return self._step(op_type, [data, self._operand(axes)], 1, apply, **options)

    def _squeeze(self) -> None:
        data = self._find(lambda v: isinstance(v, np.ndarray) and 1 in v.shape)
        shape = self._value(data).shape
        ones = [axis for axis, size in enumerate(shape) if size == 1]
        self._with_axes("Squeeze", data, squeeze, self._some(ones, self._pick(1, 2)), len(shape))

    def _unsqueeze(self) -> None:
        data = self._find(lambda v: isinstance(v, np.ndarray) and v.ndim < 4)
        rank = self._value(data).ndim
        count = self._pick(1, 2)
        axes = self._some(range(rank + count), count)
        self._with_axes("Unsqueeze", data, unsqueeze, axes, rank + count)

    def _alike(self, name: str, axis: int | None = None) -> list[str]:
        """All values of the type and shape of one, but for the size along an axis."""
        value = self._value(name)

        def outline(shape: Sequence[int]) -> list[int]:
            return [size for at, size in enumerate(shape) if at != axis]

        return [
            other
            for other, each in self._body.values.items()
            if isinstance(each, np.ndarray) and each.dtype == value.dtype
            if each.ndim == value.ndim and outline(each.shape) == outline(value.shape)
        ]

    def _concat(self) -> None:
        data = self._tensor()
        axis = self._pick(0, self._value(data).ndim - 1)
        others = self._alike(data, axis)
        inputs = [data, *(self._one(others) for _ in range(self._pick(0, 2)))]
        if self._body.opset >= 11 and self._chance(0.3):
            axis -= self._value(data).ndim
        apply = one(lambda *parts: np.concatenate(parts, axis))
        self._step("Concat", self._some(inputs, 3), 1, apply, axis=axis)

    def _gather(self) -> None:
        data = self._tensor()
        shape = self._value(data).shape
        axis = self._axis(len(shape))
        low = -shape[axis] if self._body.opset >= 11 else 0
        if not shape[axis]:
            raise Skip
        wanted = [self._pick(low, shape[axis] - 1) for _ in range(self._pick(0, 3))]
        index = self._operand(self._one((wanted, self._pick(low, shape[axis] - 1))))
        self._step("Gather", [data, index], 1, gather, axis=axis)

    def _pad(self) -> None:
        data = self._tensor()
        pads = [self._pick(-1, 2) for _ in range(2 * self._value(data).ndim)]
        mode = self._one(("constant", "constant", "edge"))
        if self._body.opset < 11:
            self._step("Pad", [data], 1, pad, mode=mode, pads=pads)
        else:
            self._step("Pad", [data, self._operand(pads)], 1, pad, mode=mode)

    def _expand(self) -> None:
        data = self._tensor()
        shape = [self._pick(1, 3) if size == 1 else size for size in self._value(data).shape]
        if self._chance(0.3):
            shape = [2, *shape]
        self._step("Expand", [data, self._operand(shape)], 1, expand)

    def _tile(self) -> None:
        data = self._tensor()
        repeats = [self._one((1, 1, 2, 0)) for _ in self._value(data).shape]
        self._step("Tile", [data, self._operand(repeats)], 1, tile)

    def _flatten(self) -> None:
        data = self._tensor()
        axis = self._pick(0, self._value(data).ndim)

        def apply(v: list[Any], a: dict[str, Any], _: Scope) -> list[Array]:
            shape = v[0].shape
            know(axis <= len(shape))
            return [
                v[0].reshape(np.prod(shape[:axis], dtype=int), np.prod(shape[axis:], dtype=int))
            ]

        self._step("Flatten", [data], 1, apply, axis=axis)

    def _compress(self) -> None:
        """Take elements by a condition that is constant, or calculated from an operand."""
        data = self._tensor()
        rank, size = self._value(data).ndim, self._value(data).size
        axis: dict[str, Any] = {} if self._chance(0.3) else {"axis": self._axis(rank)}
        length = self._pick(0, min(size, self._value(data).shape[axis["axis"]] if axis else 8))
        chosen = self._random.random(length) < self._one((0.0, 0.5, 1.0))
        if self._chance(0.5):
            condition = self._constant(chosen)
        else:
            condition = self._cast_to(self._operand(chosen), np.dtype(bool))
        self._step("Compress", [data, condition], 1, compress, **axis)

    def _cast(self) -> None:
        data = self._tensor(1, calculated=True)
        names = ("float32", "float32", "int64", "int32", "float64", "float16", BFLOAT16, "bool")
        self._cast_to(data, np.dtype(self._one(names)))

    def _cast_to(self, data: str, dtype: np.dtype[Any]) -> str:
        kind = helper.np_dtype_to_tensor_dtype(dtype)
        apply = one(lambda x: x.astype(dtype))
        return self._step("Cast", [data], 1, apply, calculated=True, to=kind)[0]

    def _nothing(self) -> None:
        """Cast a constant without elements, of types too that few operators take."""
        since = {np.float32: 9, np.int64: 9, np.bool_: 9, ml_dtypes.bfloat16: 13}
        since |= {ml_dtypes.float8_e5m2: 19, ml_dtypes.int4: 21, ml_dtypes.uint4: 21}
        taken = [each for each, first in since.items() if first <= self._body.opset]
        if not taken:
            raise Skip
        nothing = self._constant(np.zeros((0, self._pick(0, 3)), self._one(taken[-3:])))
        self._cast_to(nothing, np.dtype(np.float32))

    def _where(self) -> None:
        data = self._tensor()
        wanted = self._value(data).shape
        condition = self._find(
            lambda v: (
                isinstance(v, np.ndarray) and v.dtype == bool and v.shape in (wanted, (), (1,))
            )
        )
        inputs = [condition, data, self._one(self._alike(data))]
        self._step("Where", inputs, 1, one(np.where))

    def _range(self) -> None:
        start, step = self._pick(0, 2), self._pick(1, 2)
        inputs = [self._operand(n) for n in (start, self._pick(start, 6), step)]
        self._step("Range", inputs, 1, range_)

    # nodes that calculate

    def _binary(self) -> None:
        left = self._tensor(0, calculated=True)
        fitting = self._alike(left)
        if self._chance(0.2):
            fitting = [n for n in self._body.values if self._is_broadcast(n, left)] or fitting
        op_type = self._one(list(BINARY))
        if op_type in ("Max", "Min") and self._body.opset < 8:  # which take one shape only
            fitting = self._alike(left)
        inputs = self._some([left, self._one(fitting)], 2)
        self._step(op_type, inputs, 1, one(BINARY[op_type]), calculated=True)

    def _is_broadcast(self, name: str, other: str) -> bool:
        value, shape = self._value(name), self._value(other).shape
        if not isinstance(value, np.ndarray) or value.dtype != self._value(other).dtype:
            return False
        pairs = zip(reversed(value.shape), reversed(shape), strict=False)
        return all(1 in pair or pair[0] == pair[1] for pair in pairs)

    def _unary(self) -> None:
        op_type = self._one(list(UNARY))
        data = self._tensor(0, calculated=True)
        if op_type == "Abs" and self._body.opset < 9:
            return  # OpenVINO leaves it out of what is calculated from a shape (docs/errata.md)
        self._step(op_type, [data], 1, one(UNARY[op_type]), calculated=True)

    def _quotient(self) -> None:
        """A quotient of integers, with a constant that is not 0."""
        data = self._tensor(0, calculated=True)
        dtype = self._value(data).dtype
        if dtype.kind != "i":
            return
        divisor = self._constant(np.array([self._one((-3, 2, 3))], dtype))
        self._step("Div", [data, divisor], 1, divide, calculated=True)

    def _compare(self) -> None:
        left = self._tensor(0, calculated=True)
        op_type = self._one(list(COMPARED))
        self._step(op_type, [left, self._one(self._alike(left))], 1, one(COMPARED[op_type]))

    def _reduce(self) -> None:
        op_type = self._one(list(REDUCED))
        data = self._tensor(1, calculated=True)
        rank = self._value(data).ndim
        axes = self._some(range(rank), self._pick(1, rank))
        since = 13 if op_type == "ReduceSum" else 18
        keepdims, apply = self._pick(0, 1), reduced(REDUCED[op_type])
        options = {"since": since, "keepdims": keepdims, "calculated": True}
        self._with_axes(op_type, data, apply, axes, rank, **options)

    def _arg_max(self) -> None:
        data = self._tensor(1, calculated=True)
        axis = self._axis(self._value(data).ndim)
        self._step("ArgMax", [data], 1, arg_max, axis=axis, keepdims=self._pick(0, 1))

    def _top_k(self) -> None:
        data = self._tensor(1, calculated=True)
        axis = self._axis(self._value(data).ndim)
        count = self._pick(0, self._value(data).shape[axis])
        if self._body.opset < 10:
            self._step("TopK", [data], 2, top_k, axis=axis, k=count)
        else:
            self._step("TopK", [data, self._operand([count])], 2, top_k, axis=axis)

    def _mat_mul(self) -> None:
        left = self._tensor(2, calculated=True)
        value = self._value(left)
        columns = self._pick(1, 4)
        weights = self._initializer(self._data(value.dtype, [value.shape[-1], columns]))
        self._step("MatMul", [left, weights], 1, one(np.matmul), calculated=True)

    def _gemm(self) -> None:
        left = self._find(
            lambda v: isinstance(v, np.ndarray) and v.ndim == 2 and v.dtype.kind == "f"
        )
        value = self._value(left)
        columns = self._pick(1, 4)
        weights = self._initializer(self._data(value.dtype, [columns, value.shape[1]]))
        bias = self._initializer(self._data(value.dtype, [columns]))
        self._step("Gemm", [left, weights, bias], 1, one(gemm), calculated=True, transB=1)

    def _quantize(self) -> None:
        """Quantise and give back, by one scale or one for each part; often it is moved then."""
        data = self._tensor(1, calculated=True)
        rank, axis = self._value(data).ndim, self._axis(self._value(data).ndim, since=13)
        options: dict[str, Any] = {}
        size: list[int] = []
        if self._body.opset >= 13 and self._chance(0.4):
            options, size = {"axis": axis}, [self._value(data).shape[axis % rank]]
        scale = self._initializer(self._random.choice([0.5, 1, 2], size).astype(np.float32))
        names = [
            "int8",
            "int8",
            "uint8",
            "uint8",
            "int32",
            *["int16", "uint16"][: 2 * (self._body.opset >= 21)],
        ]
        dtype = np.dtype(self._one(names))
        zero = [0] if dtype == np.int32 else [0, 3]
        by = [scale, self._initializer(self._random.choice(zero, size).astype(dtype))]
        if dtype in (np.uint8, np.int32) and self._chance(0.4):
            del by[1:]
        if dtype == np.int32:
            made = self._cast_to(data, dtype)
        else:
            made = self._step("QuantizeLinear", [data, *by], 1, quantize, **options)[0]
        if self._chance(0.5):
            made = self._identity(made)
        elif self._chance(0.3):
            self._move(made)
        made = self._step("DequantizeLinear", [made, *by], 1, dequantize, **options)[0]
        if self._chance(0.6):
            self._move(made)

    def _move(self, data: str) -> None:
        """Move the elements of a tensor."""
        self._one((self._transpose, self._reshape, self._slice, self._split))(data)

    def _softmax(self) -> None:
        """The largest elements of each row are 1, or a half, and all others 0: that is exact."""
        data = self._tensor(1, calculated=True)
        value, opset = self._value(data), self._body.opset
        if value.dtype.itemsize < 4 or value.dtype.kind != "f":
            raise Skip
        wide = self._constant(np.array(1024, value.dtype))
        far = self._step("Mul", [data, wide], 1, one(np.multiply), calculated=True)
        apply, axis = softmax(opset < 13), self._axis(value.ndim)
        self._step("Softmax", far, 1, apply, calculated=True, axis=axis)

    def _non_zero(self) -> None:
        data = self._tensor(1, calculated=True)
        self._step("NonZero", [data], 1, one(lambda x: np.array(np.nonzero(x), np.int64)))

    def _shape_of(self) -> None:
        """A value made of a dimension, that only its shape comes from."""
        op_type = self._one(("Shape", "Size", "ConstantOfShape"))
        if op_type == "ConstantOfShape":
            size = self._operand([self._pick(0, 4) for _ in range(self._pick(1, 2))])
            fill = np.array([2], np.float32)
            apply = one(lambda shape: np.full(ints(shape), 2, np.float32))
            self._step(op_type, [size], 1, apply, value=fill)
        else:
            apply = one(lambda x: np.array(x.shape if op_type == "Shape" else x.size, np.int64))
            self._step(op_type, [self._tensor(0)], 1, apply)

    def _slice_of_shape(self) -> None:
        """Some dimensions, by bounds and steps that may be extreme; often they are a new shape."""
        data = self._tensor()
        rank = self._value(data).ndim
        shape = self._step("Shape", [data], 1, one(lambda x: np.array(x.shape, np.int64)))[0]
        far = (1 << 63) - 1
        start = self._one((0, 0, 1, -1, -rank, rank, far, -far))
        end = self._one((rank, -1, far, far, -far, -far - 1, (1 << 31) - 1))
        if self._body.opset < 10:
            bounds: dict[str, Any] = {"starts": [start], "ends": [end], "axes": [0]}
            made = self._step("Slice", [shape], 1, slice_, **bounds)[0]
        else:
            step = self._one((1, 2, far, 1 << 31, -1, -2, -far))
            inputs = [shape, *(self._constant([each]) for each in (start, end, 0, step))]
            made = self._step("Slice", inputs, 1, slice_)[0]
        if self._chance(0.6):
            fill = np.array([2], np.float32)
            apply = one(lambda shape: np.full(ints(shape), 2, np.float32))
            self._step("ConstantOfShape", [made], 1, apply, value=fill)

    # nodes for images

    def _image(self) -> str:
        def fits(value: Any) -> bool:
            return isinstance(value, np.ndarray) and value.ndim == 4 and value.dtype == np.float32

        try:
            return self._find(fits)
        except Skip:
            if self._body.is_closed:
                raise
        channels = self._pick(1, 4)
        batch = self._one((NAMES[0], 1, 2))
        shape = [self._symbols.get(batch, batch), channels, 4, 6]
        return self._add_input(self._data(np.dtype(np.float32), shape), [batch, channels, 4, 6])

    def _conv(self) -> None:
        data = self._image()
        kernel = self._one(([1, 1], [3, 3], [2, 2]))
        shape = [self._pick(1, 3), self._value(data).shape[1], *kernel]
        weights = self._initializer(self._data(np.dtype(np.float32), shape))
        self._step("Conv", [data, weights], 1, conv, calculated=True, kernel_shape=kernel)

    def _pool(self) -> None:
        op_type, apply = self._one((("MaxPool", max_pool), ("AveragePool", average_pool)))
        data = self._image()
        self._step(op_type, [data], 1, apply, calculated=True, kernel_shape=[2, 2])

    def _normalize(self) -> None:
        """Channels in groups, of zeros, as all else is not exact; often with others then."""
        data = self._image()
        shape = self._value(data).shape
        if self._body.opset < 21 or 0 in shape:
            raise Skip
        bias = self._data(np.dtype(np.float32), shape[1:2])
        by = [self._initializer(bias + 1), self._initializer(bias)]
        zeros = self._step("Sub", [data, data], 1, one(np.subtract), calculated=True)[0]
        apply = one(lambda x, _, b: np.zeros_like(x) + b.reshape(x.shape[1], 1, 1))
        kind = "GroupNormalization"
        made = self._step(kind, [zeros, *by], 1, apply, calculated=True, num_groups=shape[1])[0]
        if self._chance(0.7):
            other = self._step("Neg", [data], 1, one(np.negative), calculated=True)[0]
            self._step("Add", [made, other], 1, one(np.add), calculated=True)

    def _resize(self) -> None:
        data, opset = self._image(), self._body.opset
        scales = np.array([1, 1, 2, 2], np.float32)
        if opset < 9:
            self._step("Upsample", [data], 1, nearest, mode="nearest", scales=[1.0, 1.0, 2.0, 2.0])
            return
        given = self._initializer(scales)
        if opset < 11:
            op_type = "Upsample" if opset < 10 else "Resize"
            self._step(op_type, [data, given], 1, nearest, mode="nearest")
            return
        options: dict[str, Any] = {
            "coordinate_transformation_mode": "asymmetric",
            "nearest_mode": "floor",
        }
        empty = self._initializer(np.zeros(0, np.float32)) if opset < 13 else ""
        self._step("Resize", [data, empty, given], 1, nearest, "", False, mode="nearest", **options)

    # sequences

    def _at(self) -> None:
        name = self._sequence()
        length = len(self._value(name))
        if length:
            index = self._operand(self._pick(-length, length - 1))
            self._step("SequenceAt", [name, index], 1, sequence_at)

    def _insert(self) -> None:
        name, part = self._sequence(), self._tensor()
        parts = self._value(name)
        if type_of([self._value(part)]) != type_of(parts):
            raise Skip
        inputs = [name, part]
        if self._chance(0.4):
            inputs.append(self._operand(self._pick(-len(parts), len(parts))))
        self._step("SequenceInsert", inputs, 1, sequence_insert)

    def _erase(self) -> None:
        name = self._sequence()
        length = len(self._value(name))
        if length:
            more = [self._operand(self._pick(-length, length - 1))] if self._chance(0.7) else []
            self._step("SequenceErase", [name, *more], 1, sequence_erase)

    def _length(self) -> None:
        apply = one(lambda parts: np.array(len(parts), np.int64))
        length = self._step("SequenceLength", [self._sequence()], 1, apply)
        if self._chance(0.3):  # which may be calculated from shapes once it is lowered
            self._step("Abs", length, 1, one(np.abs), calculated=True)

    def _join(self) -> None:
        name = self._sequence()
        parts = self._value(name)
        if not parts or not parts[0].ndim:
            raise Skip
        axis = self._axis(parts[0].ndim)
        options: dict[str, Any] = {"new_axis": 1} if self._chance(0.2) else {}
        self._step("ConcatFromSequence", [name], 1, concat_from_sequence, axis=axis, **options)

    def _construct(self) -> None:
        data = self._tensor()
        inputs = [data, *self._some(self._alike(data, 0), 2)]
        self._step("SequenceConstruct", inputs, 1, lambda v, *_: [list(v)])

    # bodies

    def _inner(
        self, fill: Callable[[], list[str]], fed: Mapping[str, Any], is_closed: bool = False
    ) -> Graph:
        """Make a body by a function that gives its outputs; it sees what is outside."""
        outer = self._body
        closed = is_closed or outer.is_closed
        self._body = Body(outer.opset, outer.given, closed, [], {**outer.values, **fed}, [*fed])
        try:
            outputs = fill()
            body = self._body
        finally:
            self._body = outer
        ends = [*fed, *outputs]
        declared = self._declared(ends, body.values)
        return Graph(body.steps, list(fed), outputs, declared, body.values)

    def _some_steps(self, most: int, depth: int) -> None:
        for _ in range(self._pick(0, most)):
            self._add(depth)

    def _bool(self, value: bool) -> str:
        if self._body.is_closed or self._chance(0.4):
            return self._constant(value)
        name = self._add_input(np.array(value), [])
        self._operands.add(name)
        return name

    def _if(self, depth: int) -> None:
        condition = self._bool(self._chance(0.5))
        wants_list = self._body.opset >= 13 and self._chance(0.3)
        dtype, count = np.dtype(np.float32), self._pick(1, 2)

        def fill() -> list[str]:
            self._some_steps(3, depth + 1)
            outputs = [self._one_of(dtype) for _ in range(count)]
            if len(set(outputs)) < count:  # onnxruntime 1.31.1 gives one of them other memory
                outputs[-1] = self._identity(outputs[-1])
            if wants_list:
                sequence = self._sequence()
                outputs[0] = sequence if sequence in self._body.own else self._identity(sequence)
            return outputs

        start, same_names = self._count, self._chance(0.3)
        branches = [self._inner(fill, {}, same_names)]
        end = self._count
        if same_names:
            self._count = start
        branches.append(self._inner(fill, {}, same_names))
        self._count = max(end, self._count)
        types = [[type_of(body.samples[name]) for name in body.outputs] for body in branches]
        if types[0] != types[1]:
            raise Skip
        pairs = zip(
            *([body.samples[name] for name in body.outputs] for body in branches), strict=True
        )
        if self._body.opset < 11 and any(a.shape != b.shape for a, b in pairs):
            raise Skip  # they have to be the same there
        options: dict[str, Any] = dict(zip(("then_branch", "else_branch"), branches, strict=True))
        outputs = self._step("If", [condition], count, if_, **options)
        kinds = ([ranks(body.samples[end]) for end in body.outputs] for body in branches)
        self._loose |= {name for name, a, b in zip(outputs, *kinds, strict=True) if a != b}

    def _one_of(self, dtype: np.dtype[Any]) -> str:
        """Choose a tensor of a type that the body has made itself, for its outputs."""
        own = [
            name
            for name in self._body.own
            if isinstance(self._value(name), np.ndarray) and self._value(name).dtype == dtype
        ]
        outside = self._find(lambda v: isinstance(v, np.ndarray) and v.dtype == dtype)
        return str(self._one(own)) if own and self._chance(0.8) else self._identity(outside)

    def _loop(self, depth: int) -> None:
        trips, data = self._pick(0, 3), self._tensor(1, calculated=True)
        fed = {self._name(): value for value in (np.array(0), np.array(True), self._value(data))}
        number, condition, state = fed
        if data in self._loose:
            self._loose.add(state)
        inputs = [self._operand(trips), "" if self._chance(0.6) else self._bool(True), data]
        parts = None
        if self._body.opset >= 13 and self._chance(0.3):
            inputs.append(self._sequence())
            parts = self._name()
            fed[parts] = self._value(inputs[-1])

        def fill() -> list[str]:
            negative = self._negate_joined() if self._chance(0.3) else None
            self._some_steps(3, depth + 1)
            go = self._passed(condition)
            if self._chance(0.4):  # without a condition what the body gives is ignored
                two = self._constant(np.array(1))
                go = self._step("Less", [number, two], 1, one(np.less))[0]
            changed = self._changed(state)
            if parts is None:
                last = negative or self._tensor()
                if self._value(last).dtype == BFLOAT16 and self._body.opset < 16:
                    raise Skip  # Loop does not take it yet
                return [go, changed, self._identity(last)]
            part = state
            if any(each.ndim != self._value(state).ndim for each in fed[parts]):
                part = self._constant(fed[parts][0])
            if type_of([self._value(part)]) != type_of(fed[parts]):
                raise Skip
            longer = self._step("SequenceInsert", [parts, part], 1, sequence_insert)[0]
            return [go, changed, longer, self._passed(state)]

        body = self._inner(fill, fed)
        self._step("Loop", inputs, len(body.outputs) - 1, loop, body=body)

    def _negate_joined(self) -> str | None:
        """The negative of two tensors in one, such as of those from around a body, if there are."""
        data = self._tensor(calculated=True)
        others = [other for other in self._alike(data, 0) if other != data]
        if not others:
            return None
        apply = one(lambda *parts: np.concatenate(parts))
        joined = self._step("Concat", [data, self._one(others)], 1, apply, axis=0)
        return self._step("Neg", joined, 1, one(np.negative), calculated=True)[0]

    def _changed(self, state: str) -> str:
        """What a Loop carries on: other numbers, or of another size."""
        match self._pick(0, 3):
            case 0:
                apply = one(lambda *parts: np.concatenate(parts))
                return self._step("Concat", [state, state], 1, apply, axis=0)[0]
            case 1:
                first = partial(split, 2)
                size = self._value(state).shape[0]
                if self._body.opset >= 18 and size:
                    return self._step("Split", [state], 2, first, num_outputs=2)[0]
            case 2:
                return self._passed(state)
        return self._step("Add", [state, state], 1, one(np.add), calculated=True)[0]

    def _scan(self) -> None:
        data = self._tensor(2, calculated=True)
        value = self._value(data)
        axis = self._pick(0, value.ndim - 1) if self._chance(0.2) else 0
        if data in self._loose:  # onnxruntime wants shapes in its body
            raise Skip
        state, row = self._name(), self._name()
        first = np.moveaxis(value, axis, 0)[:1].sum(0, value.dtype)  # zeros where there is no row
        is_window = self._chance(0.3)
        held = np.stack([first] * 3) if is_window else first
        start = self._constant(np.zeros_like(held))

        def fill() -> list[str]:
            if is_window:
                total = self._slide(state, row)
            elif self._chance(0.3):  # a delay: what is carried is a row, and is given out
                total = self._identity(row)
                self._identity(state)
            else:
                total = self._step("Add", [state, row], 1, one(np.add), calculated=True)[0]
            self._split()
            if self._chance(0.2):
                self._sequence_of_parts()
            tensors = [n for n in self._body.own[2:] if isinstance(self._value(n), np.ndarray)]
            return [total, *self._some([n for n in tensors if n != total], 2)]

        body = self._inner(fill, {state: held, row: first}, is_closed=True)
        count = len(body.outputs)
        options: dict[str, Any] = {"scan_input_axes": [axis]} if axis else {}
        if self._chance(0.2):  # at the end of each, or before that
            ranks = [body.samples[name].ndim for name in body.outputs[1:]]
            options["scan_output_axes"] = [self._pick(0, rank) for rank in ranks]
        self._step("Scan", [start, data], count, scan, body=body, num_scan_inputs=1, **options)

    def _sequence_of_parts(self) -> None:
        """Make a sequence, and tensors of it again."""
        self._split_to_sequence()
        for change in self._some((self._at, self._insert, self._erase, self._join), 3):
            with suppress(Skip):
                change()

    def _slide(self, state: str, row: str) -> str:
        """A window of three rows: the oldest is split off, and the new one joined to the rest."""
        inputs, options = [state], dict[str, Any](axis=0)
        if self._body.opset >= 13:
            inputs.append(self._operand([1, 2]))
        else:
            options["split"] = [1, 2]
        rest = self._step("Split", inputs, 2, partial(split, 2), **options)[1]
        new = self._with_axes("Unsqueeze", row, unsqueeze, [0], self._value(state).ndim)[0]
        apply = one(lambda *parts: np.concatenate(parts))
        return self._step("Concat", [rest, new], 1, apply, axis=0)[0]

    def _calls(self) -> None:
        """A call of a new function, or of one that there is."""
        if self._functions and self._chance(0.6):
            self._call_again()
        else:
            self._call()

    def _call_again(self) -> None:
        """Call a function with other data, maybe of another type and rank."""
        name = self._one(list(self._functions))
        made = self._functions[name]
        data = self._tensor(made.at + 1)
        if not self._takes(made, self._value(data)):
            raise Skip
        options: dict[str, Any] = {} if made.has_default else {"at": made.at}
        count = len(made.graph.outputs)
        inputs = [data, *self._passed_lengths(made, self._value(data).shape[made.at])]
        self._step(name, inputs, count, partial(call, name), LOCAL, **options)

    def _passed_lengths(self, made: Function, dimension: int) -> list[str]:
        """The lengths that a call passes, if its function takes any; it may omit them."""
        if len(made.graph.inputs) == 1:
            return []
        parts = len(made.graph.steps[0].outputs)
        if dimension % parts == 0 and self._chance(0.5):
            return [""] if self._chance(0.5) else []
        return [self._operand(self._lengths(dimension, parts))]

    def _takes(self, made: Function, value: Array) -> bool:
        """Whether a function takes data; its bodies declare one type and rank."""
        name = made.graph.inputs[0]
        sample = made.graph.samples[name]
        if (value.dtype, value.ndim) == (sample.dtype, sample.ndim):
            return True
        if any(step.domain or any(step.bodies()) for step in made.graph.steps):
            return False
        values = {**dict.fromkeys(made.graph.inputs), name: value}
        scope = Scope(values, self._functions, {"at": made.at})
        try:
            evaluate(made.graph.steps, scope)
        except Exception:  # noqa: BLE001 - whatever NumPy raises
            return False
        for step in made.graph.steps:
            here = version(step.op_type, made.opset)
            fed = [scope.values[each] if each else None for each in step.inputs]
            if here is None or not here.fits(fed, [scope.values[each] for each in step.outputs]):
                return False
        return True

    def _call(self) -> None:
        """A function whose values may have the names of the caller's, called with an attribute."""
        data = self._tensor()
        value, name = self._value(data), f"F{len(self._functions)}"
        at = self._pick(0, value.ndim - 1)
        opset = self._body.opset if self._chance(0.8) else self._pick(13, 21)
        inner = "v1" if self._chance(0.5) else self._name()
        outer, caller = self._body, self._body.given.get("at")
        lengths = self._name() if 13 <= opset < 18 and self._chance(0.5) else ""
        self._body = Body(opset, {"at": at}, True, [], {inner: value}, [inner], lengths)
        try:
            self._split_at(inner, at)
            self._some_steps(4, 1)
            if self._functions and self._chance(0.3):
                self._call_another()
            outputs = self._some([n for n in self._body.own if n != inner], 2)
            body = self._body
        finally:
            self._body = outer
        inputs = [inner, lengths] if lengths else [inner]
        graph = Graph(body.steps, inputs, outputs, {}, body.values)
        made = Function(graph, opset, self._chance(0.3), at)
        self._functions[name] = made
        attributes: dict[str, Any] = {} if made.has_default else {"at": at}
        if caller == at:
            attributes = {"at": Parameter("at", at)}
        try:
            inputs = [data, *self._passed_lengths(made, value.shape[at])]
            self._step(name, inputs, len(outputs), partial(call, name), LOCAL, **attributes)
        except Skip:
            del self._functions[name]
            raise

    def _split_at(self, name: str, axis: int) -> None:
        """Split along the axis that is the attribute of the function."""
        size = self._value(name).shape[axis]
        count = self._one([n for n in (1, 2, 3) if size % n == 0])
        options: dict[str, Any] = {"num_outputs": count} if self._body.opset >= 18 else {}
        options["axis"] = Parameter("at", axis)
        if options.get("num_outputs") == axis and self._chance(0.5):
            options["num_outputs"] = Parameter("at", axis)
        with self._omitted() as lengths:
            self._step("Split", [name, *lengths], count, partial(split, count), **options)

    @contextmanager
    def _omitted(self) -> Iterator[list[str]]:
        """Give the lengths that calls may omit, as they do here; nothing else may use them."""
        held = [self._body.lengths] if self._body.lengths else []
        self._body.values.update(dict.fromkeys(held))
        try:
            yield held
        finally:
            for name in held:
                del self._body.values[name]

    def _call_another(self) -> None:
        name = self._one(list(self._functions))
        made = self._functions[name]
        kind = made.graph.samples[made.graph.inputs[0]].dtype  # what its nodes take
        data = self._find(
            lambda v: isinstance(v, np.ndarray) and v.ndim > 0 and bool(v.dtype == kind)
        )
        count, at = len(made.graph.outputs), self._body.given["at"]
        with self._omitted() as lengths:
            inputs = [data, *(lengths if len(made.graph.inputs) > 1 else [])]
            self._step(name, inputs, count, partial(call, name), LOCAL, at=Parameter("at", at))


@dataclass(frozen=True)
class RandomModel:
    """A model, what to feed it, and what it gives."""

    seed: int
    program: Program
    model: onnx.ModelProto
    feeds: dict[str, Any]
    expected: dict[str, Any]


def random_program(seed: int) -> Program:
    """Make the program of a seed."""
    return Generator(seed).make()


def random_model(seed: int) -> RandomModel:
    """Make the model of a seed, small enough to be put through many tools."""
    program = Generator(seed, nodes=(3, 12)).make()
    values = program.values(program.feeds[0])
    expected = {name: values[name] for name in program.graph.outputs}
    return RandomModel(seed, program, program.model(), dict(program.feeds[0]), expected)
