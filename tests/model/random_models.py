"""Random legal models with split nodes, and what they give, worked out beside them by slicing.

Each step of a model is written down as a node and as what it does to arrays; nothing here knows
the package.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from tests.oracle import slices

Array = np.ndarray[Any, np.dtype[Any]]
Values = Mapping[str, Any]

OPSETS = (11, 12, 13, 17, 18, 21, 24)
DIMENSIONS = (0, 1, 2, 3, 4, 6, 7)
LOCAL = "local"


@dataclass(frozen=True)
class Parameter:
    """An attribute of a function, where a node in it takes one."""

    name: str


@dataclass
class Step:
    """A node; ``apply`` gives its outputs from its inputs, its attributes and all outer values."""

    op_type: str
    inputs: list[str]
    outputs: list[str]
    attributes: dict[str, Any]
    apply: Callable[[list[Any], dict[str, Any], Values], Sequence[Any]]
    domain: str = ""

    def node(self) -> onnx.NodeProto:
        """The node, without a name, as many exporters leave it."""
        plain = {k: v for k, v in self.attributes.items() if not isinstance(v, Parameter)}
        made = helper.make_node(
            self.op_type, self.inputs, self.outputs, domain=self.domain, **plain
        )
        for name, value in self.attributes.items():
            if isinstance(value, Parameter):
                kind = onnx.AttributeProto.INT
                made.attribute.add(name=name, ref_attr_name=value.name, type=kind)
        return made


def evaluate(steps: Sequence[Step], values: Values, given: Mapping[str, Any]) -> dict[str, Any]:
    """All values after the steps; ``given`` are the attributes of the function they are in."""
    known = dict(values)
    for step in steps:
        attributes = {
            name: given[value.name] if isinstance(value, Parameter) else value
            for name, value in step.attributes.items()
        }
        inputs = [known[name] if name else None for name in step.inputs]
        known.update(zip(step.outputs, step.apply(inputs, attributes, known), strict=True))
    return known


def equal(dimension: int, count: int) -> list[int]:
    """Equal lengths; the last is smaller where they don't divide the dimension."""
    length = -(-dimension // count)
    return [length] * (count - 1) + [dimension - length * (count - 1)]


@dataclass
class Body:
    """The nodes of a graph or function, and the values that they can see with what they hold."""

    steps: list[Step] = field(default_factory=list)
    values: dict[str, Any] = field(default_factory=dict)
    own: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class RandomModel:
    """A model, what to feed it, and what it gives."""

    seed: int
    model: onnx.ModelProto
    feeds: dict[str, Any]
    expected: dict[str, Any]


class Generator:
    """Makes one model from one seed."""

    def __init__(self, seed: int) -> None:
        self._random = np.random.default_rng(seed)
        self._seed = seed
        self._opset = int(self._random.choice(OPSETS))
        self._count = 0
        self._inputs: list[onnx.ValueInfoProto] = []
        self._initializers: list[onnx.TensorProto] = []
        self._functions: list[onnx.FunctionProto] = []
        self._feeds: dict[str, Any] = {}
        self._top = self._body = Body()
        self._closed = False  # whether lengths have to be constants of the body itself

    def make(self) -> RandomModel:
        """The model."""
        for _ in range(self._pick(1, 2)):
            self._input()
        for _ in range(self._pick(3, 8)):
            self._add()
        values, tensors_only = self._top.values, self._chance(0.5)
        results = [n for n in self._top.own if not (tensors_only and isinstance(values[n], list))]
        outputs = self._some(results, 4) or [
            self._step("Identity", [self._tensor()], 1, lambda v, *_: [v[0]])[0]
        ]
        graph = helper.make_graph(
            [step.node() for step in self._top.steps],
            "random",
            self._inputs,
            [self._declare(name, shaped=False) for name in outputs],
            self._initializers,
        )
        imports = [helper.make_opsetid("", self._opset), helper.make_opsetid(LOCAL, 1)]
        model = helper.make_model(
            graph,
            opset_imports=imports,
            functions=self._functions,
            ir_version=max(8, helper.find_min_ir_version_for(imports, ignore_unknown=True)),
        )
        expected = evaluate(self._top.steps, self._start, {})
        return RandomModel(
            self._seed, model, self._feeds, {name: expected[name] for name in outputs}
        )

    # choices

    def _pick(self, low: int, high: int) -> int:
        return int(self._random.integers(low, high + 1))

    def _chance(self, probability: float) -> bool:
        return bool(self._random.random() < probability)

    def _one(self, items: Sequence[Any]) -> Any:
        return items[self._pick(0, len(items) - 1)]

    def _some(self, items: Sequence[str], most: int) -> list[str]:
        number = min(len(items), most)
        return [items[index] for index in self._random.permutation(len(items))[:number]]

    def _name(self) -> str:
        self._count += 1
        return f"v{self._count}"

    def _find(self, want: Callable[[Any], bool]) -> str | None:
        found = [name for name, value in self._body.values.items() if want(value)]
        return self._one(found) if found else None

    def _tensor(self) -> str:
        name = self._find(
            lambda v: isinstance(v, np.ndarray) and v.ndim > 0 and v.dtype.kind == "f"
        )
        return name if name is not None else self._constant(self._data((2, 3)))

    def _sequence(self) -> str:
        name = self._find(lambda value: isinstance(value, list))
        if name is None:
            self._split_to_sequence()
            name = self._body.own[-1]
        return name

    def _data(self, shape: Sequence[int]) -> Array:
        return self._random.standard_normal(shape).astype(np.float32)

    def _lengths(self, dimension: int, count: int) -> list[int]:
        cuts = sorted(self._pick(0, dimension) for _ in range(count - 1))
        return [b - a for a, b in zip([0, *cuts], [*cuts, dimension], strict=True)]

    # graphs

    @property
    def _start(self) -> dict[str, Any]:
        constants = {made.name: numpy_helper.to_array(made) for made in self._initializers}
        return {**constants, **self._feeds}

    def _declare(self, name: str, shaped: bool = True) -> onnx.ValueInfoProto:
        value = self._body.values[name]
        if isinstance(value, list):
            return helper.make_tensor_sequence_value_info(name, TensorProto.FLOAT, None)
        shape: list[Any] = [None] * value.ndim
        if shaped:
            named = {size: f"{name}_{axis}" for axis, size in enumerate(value.shape)}
            shape = [named[size] if self._chance(0.4) else size for size in value.shape]
        return helper.make_tensor_value_info(
            name, helper.np_dtype_to_tensor_dtype(value.dtype), shape
        )

    def _input(self, value: Any = None, shaped: bool = True) -> str:
        name = self._name()
        if value is None:
            rank = self._pick(1, 3)
            value = self._data([self._one(DIMENSIONS) for _ in range(rank)])
        self._feeds[name] = self._top.values[name] = value
        body, self._body = self._body, self._top
        self._inputs.append(self._declare(name, shaped))
        self._body = body
        body.values[name] = value
        return name

    def _initializer(self, value: Array) -> str:
        name = self._name()
        self._initializers.append(numpy_helper.from_array(value, name))
        self._body.values[name] = self._top.values[name] = value
        return name

    def _constant(self, value: Any) -> str:
        array = np.asarray(value)
        tensor = numpy_helper.from_array(array)
        return self._step("Constant", [], 1, lambda *_: [array], value=tensor)[0]

    def _step(
        self,
        op_type: str,
        inputs: list[str],
        count: int,
        apply: Callable[[list[Any], dict[str, Any], Values], Sequence[Any]],
        domain: str = "",
        given: Mapping[str, Any] | None = None,
        unused: int = 0,
        **attributes: Any,
    ) -> list[str]:
        """Add a node, whose last outputs may go unused; ``given`` is what the caller gives."""
        outputs = [self._name() for _ in range(count)]
        step = Step(op_type, inputs, outputs, attributes, apply, domain)
        self._body.values = evaluate([step], self._body.values, given or {})
        for name in outputs[count - unused :]:
            del self._body.values[name]
        self._body.steps.append(step)
        if op_type != "Constant":  # OpenVINO gives a number for an output that is an empty constant
            self._body.own += outputs[: count - unused]
        return outputs

    def _inner(self, fill: Callable[[], list[str]], **values: Any) -> tuple[Body, list[str]]:
        """A body made by a function that gives its outputs; it sees what is outside."""
        outer, self._body = self._body, Body([], {**self._body.values, **values})
        outputs = fill()
        inner, self._body = self._body, outer
        return inner, outputs

    def _graph(self, body: Body, inputs: Sequence[str], outputs: Sequence[str]) -> onnx.GraphProto:
        outer, self._body = self._body, body
        declared = [self._declare(name, shaped=self._chance(0.5)) for name in inputs]
        results = [self._declare(name, shaped=False) for name in outputs]
        self._body = outer
        return helper.make_graph([step.node() for step in body.steps], "body", declared, results)

    # nodes

    def _add(self, depth: int = 0) -> None:
        plain = (self._split, self._split, self._split_to_sequence, self._arithmetic)
        of_sequences = (self._at, self._insert, self._erase, self._concatenate, self._length)
        nested: tuple[Callable[[], None], ...] = ()
        if depth == 0 and not self._closed:
            nested = (self._if, self._loop, self._scan, self._call)
        self._one((*plain, *of_sequences, *nested, *nested))()

    def _operand(self, value: list[int] | int) -> str:
        """Lengths: a constant, an initializer, an input with or without a default, or computed."""
        array = np.asarray(value, np.int64)
        if self._closed:
            return self._constant(array)
        match self._pick(0, 4):
            case 0:
                return self._constant(array)
            case 1:
                return self._initializer(array)
            case 2:
                return self._input(array)
            case 3:  # the default is another division; what is fed counts
                name = self._input(array)
                default = np.roll(array, 1) if array.ndim else array
                self._initializers.append(numpy_helper.from_array(default, name))
                return name
        one = self._constant(np.ones_like(array))
        less = self._constant(array - 1)
        return self._step("Add", [one, less], 1, lambda v, *_: [v[0] + v[1]])[0]

    def _split(self) -> None:
        data = self._tensor()
        shape = self._body.values[data].shape
        axis = self._pick(0, len(shape) - 1)
        count, dimension = self._pick(1, 4), shape[axis]
        given = axis - len(shape) if self._chance(0.3) else axis
        even = self._opset >= 18 or dimension % count == 0
        if (
            even
            and self._chance(0.5)
            and (self._opset < 18 or dimension > (count - 1) * -(-dimension // count))
        ):
            lengths, inputs = equal(dimension, count), [data]
            attributes: dict[str, Any] = {"num_outputs": count} if self._opset >= 18 else {}
            if self._opset >= 13 and self._chance(0.3):
                inputs.append("")
        else:
            lengths = self._lengths(dimension, count)
            attributes = {"split": lengths} if self._opset < 13 else {}
            inputs = [data] if self._opset < 13 else [data, self._operand(lengths)]
        self._step(
            "Split",
            inputs,
            count,
            lambda values, *_: slices(values[0], axis, lengths),
            axis=given,
            **attributes,
        )

    def _split_to_sequence(self) -> None:
        data = self._tensor()
        shape = self._body.values[data].shape
        axis = self._pick(0, len(shape) - 1)
        dimension, keepdims, inputs = shape[axis], True, [data]
        attributes: dict[str, Any] = {"axis": axis}
        match self._pick(0, 2):
            case 0:
                lengths = [1] * dimension
                if len(shape) > 1 and self._chance(0.5):
                    keepdims, attributes["keepdims"] = False, 0
            case 1:
                chunk = self._pick(1, 4)
                lengths = [min(chunk, dimension - at) for at in range(0, dimension, chunk)]
                inputs.append(self._operand(chunk))
            case _:
                lengths = self._lengths(dimension, self._pick(1, 3))
                inputs.append(self._operand(lengths))
        self._step(
            "SplitToSequence",
            inputs,
            1,
            lambda values, *_: [slices(values[0], axis, lengths, keepdims)],
            **attributes,
        )

    def _arithmetic(self) -> None:
        data = self._tensor()
        match self._pick(0, 3):
            case 0:
                self._step("Add", [data, data], 1, lambda v, *_: [v[0] + v[1]])
            case 1:
                self._step("Transpose", [data], 1, lambda v, *_: [np.transpose(v[0])])
            case 2:
                self._step("Concat", [data, data], 1, lambda v, *_: [np.concatenate(v)], axis=0)
            case _:
                self._step("Identity", [data], 1, lambda v, *_: [v[0]])

    def _position(self, length: int) -> tuple[str, int]:
        index = self._pick(-length, length - 1)
        return self._operand(index), index

    def _at(self) -> None:
        name = self._sequence()
        length = len(self._body.values[name])
        if length:
            position, index = self._position(length)
            self._step("SequenceAt", [name, position], 1, lambda v, *_: [v[0][index]])

    def _insert(self) -> None:
        name, part = self._sequence(), self._tensor()
        self._step("SequenceInsert", [name, part], 1, lambda v, *_: [[*v[0], v[1]]])

    def _erase(self) -> None:
        name = self._sequence()
        length = len(self._body.values[name])
        if length:
            position, index = self._position(length)
            index %= length
            self._step(
                "SequenceErase",
                [name, position],
                1,
                lambda v, *_: [v[0][:index] + v[0][index + 1 :]],
            )

    def _length(self) -> None:
        name = self._sequence()
        self._step("SequenceLength", [name], 1, lambda v, *_: [np.array(len(v[0]), np.int64)])

    def _concatenate(self) -> None:
        def joins(value: Any) -> bool:
            return (
                isinstance(value, list)
                and bool(value)
                and all(part.ndim and part.shape[1:] == value[0].shape[1:] for part in value)
            )

        name = self._find(joins)
        if name is not None:
            self._step(
                "ConcatFromSequence", [name], 1, lambda v, *_: [np.concatenate(v[0])], axis=0
            )

    # bodies

    def _if(self) -> None:
        choice = self._chance(0.5)
        condition = self._input(np.array(choice)) if self._chance(0.7) else self._constant(choice)
        wants_sequence = self._opset >= 13 and self._chance(0.4)

        def fill() -> list[str]:
            for _ in range(self._pick(0, 2)):
                self._add(depth=1)
            kind = list if wants_sequence else np.ndarray
            fitting = [
                name
                for name in self._body.own
                if isinstance(self._body.values[name], kind)
                and (wants_sequence or self._body.values[name].dtype.kind == "f")
            ]
            if fitting:
                return [self._one(fitting)]
            if wants_sequence:
                self._split_to_sequence()
            else:
                self._step("Identity", [self._tensor()], 1, lambda v, *_: [v[0]])
            return [self._body.own[-1]]

        self._closed = same_names = self._chance(0.5)
        start = self._count
        then_body, then_out = self._inner(fill)
        end = self._count
        if same_names:
            self._count = start
        else_body, else_out = self._inner(fill)
        self._count, self._closed = max(end, self._count), False

        def apply(inputs: list[Any], _: Any, outer: Values) -> list[Any]:
            body, outputs = (then_body, then_out) if inputs[0] else (else_body, else_out)
            return [evaluate(body.steps, outer, {})[outputs[0]]]

        self._step(
            "If",
            [condition],
            1,
            apply,
            then_branch=self._graph(then_body, [], then_out),
            else_branch=self._graph(else_body, [], else_out),
        )

    def _loop(self) -> None:
        if self._opset < 13:  # the first Loop that carries sequences
            return
        trips = self._pick(0, 3)
        data, sequence = self._tensor(), self._sequence()
        values = self._body.values
        number, condition, tensor, parts = (self._name() for _ in range(4))
        inside = {
            number: np.array(0, np.int64),
            condition: np.array(True),
            tensor: values[data],
            parts: values[sequence],
        }

        def fill() -> list[str]:
            go = self._step("Identity", [condition], 1, lambda v, *_: [v[0]])[0]
            for _ in range(self._pick(0, 2)):
                self._one((self._split, self._arithmetic))()
            changed = self._step("Add", [tensor, tensor], 1, lambda v, *_: [v[0] + v[1]])[0]
            part = tensor  # of the rank of the others, as onnx's inference takes for granted
            if any(each.ndim != values[data].ndim for each in values[sequence]):
                part = self._constant(values[sequence][0])
            longer = self._step("SequenceInsert", [parts, part], 1, lambda v, *_: [[*v[0], v[1]]])
            kept = self._step("Identity", [tensor], 1, lambda v, *_: [v[0]])
            return [go, changed, *longer, *kept]

        body, outputs = self._inner(fill, **inside)

        def apply(inputs: list[Any], _: Any, outer: Values) -> list[Any]:
            state, scanned = inputs[2:], []
            for trip in range(trips):
                names = zip(
                    (number, condition, tensor, parts), (np.array(trip), True, *state), strict=True
                )
                after = evaluate(body.steps, {**outer, **dict(names)}, {})
                _, *state, row = (after[name] for name in outputs)
                scanned.append(row)
            return [*state, np.stack(scanned) if scanned else None]

        limit = self._operand(trips)
        names = [number, condition, tensor, parts]
        graph = self._graph(body, names, outputs)
        # nothing says what the shape of no rows is
        self._step("Loop", [limit, "", data, sequence], 3, apply, unused=int(not trips), body=graph)

    def _scan(self) -> None:
        data = self._tensor()
        array = self._body.values[data]
        state, row = self._name(), self._name()
        if array.ndim < 2 or not len(array):
            return

        def fill() -> list[str]:
            total = self._step("Add", [state, row], 1, lambda v, *_: [v[0] + v[1]])[0]
            lengths = self._lengths(array.shape[1], 2)
            inputs = [row] if self._opset < 13 else [row, self._constant(np.array(lengths))]
            attributes: dict[str, Any] = {"split": lengths} if self._opset < 13 else {}
            parts = self._step(
                "Split", inputs, 2, lambda v, *_: slices(v[0], 0, lengths), axis=0, **attributes
            )
            return [total, *parts]

        body, outputs = self._inner(fill, **{state: array[0], row: array[0]})
        start = self._constant(array[0] * 0)

        def apply(inputs: list[Any], _: Any, outer: Values) -> list[Any]:
            total, scanned = inputs[0], []
            for item in inputs[1]:
                after = evaluate(body.steps, {**outer, state: total, row: item}, {})
                total = after[outputs[0]]
                scanned.append([after[name] for name in outputs[1:]])
            return [total, *(np.stack(each) for each in zip(*scanned, strict=True))]

        self._step(
            "Scan",
            [start, data],
            3,
            apply,
            body=self._graph(body, [state, row], outputs),
            num_scan_inputs=1,
        )

    def _call(self) -> None:
        """A function whose values have the names of the caller's, called with an attribute."""
        data = self._tensor()
        array = self._body.values[data]
        axis, name = self._pick(0, array.ndim - 1), f"F{len(self._functions)}"
        inner = "v1" if self._chance(0.5) else self._name()
        outer, self._body, self._closed = self._body, Body([], {inner: array}), True
        count = self._one([n for n in (1, 2, 3) if array.shape[axis] % n == 0])
        default = self._chance(0.3)
        uneven: dict[str, Any] = {"num_outputs": count} if self._opset >= 18 else {}
        parts = self._step(
            "Split",
            [inner],
            count,
            lambda v, a, _: slices(v[0], a["axis"], equal(v[0].shape[a["axis"]], count)),
            given={"at": axis},
            axis=Parameter("at"),
            **uneven,
        )
        for _ in range(self._pick(0, 2)):
            self._add(depth=1)
        made, self._body, self._closed = self._body, outer, False
        floats = [n for n in made.own if isinstance(made.values[n], np.ndarray)]
        outputs = list(dict.fromkeys([parts[-1], self._one(floats)]))
        self._functions.append(
            helper.make_function(
                LOCAL,
                name,
                [inner],
                outputs,
                [step.node() for step in made.steps],
                [helper.make_opsetid("", self._opset)],
                [] if default else ["at"],
                [helper.make_attribute("at", axis)] if default else [],
            )
        )

        def apply(inputs: list[Any], _: Any, __: Any) -> list[Any]:
            after = evaluate(made.steps, {inner: inputs[0]}, {"at": axis})
            return [after[name] for name in outputs]

        attributes: dict[str, Any] = {} if default else {"at": axis}
        self._step(name, [data], len(outputs), apply, domain=LOCAL, **attributes)


def random_model(seed: int) -> RandomModel:
    """The model of a seed."""
    return Generator(seed).make()
