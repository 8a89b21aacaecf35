"""Random models with splits behind splits, and what they give, worked out beside them by slicing.

What a later split needs to know follows from the parts of an earlier one: through shapes, loops,
branches, sequences and lengths that the graph computes. Some dimensions are names or open; each
model comes with two bindings of these that are legal, and others that may not be. Nothing here
knows the package.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from tests.oracle import slices

Values = Mapping[str, Any]
Apply = Callable[[list[Any], dict[str, Any], Values], Sequence[Any]]

OPSETS = (11, 12, 13, 14, 16, 17, 18, 19, 21, 22, 24)
BINDINGS = 2
"""How many bindings each model is legal with."""


class IllegalError(Exception):
    """The standard refuses what a split or a position is given."""


class UnfitError(Exception):
    """A node that the generator does not want in the model."""


@dataclass(frozen=True)
class Step:
    """A node; ``apply`` gives its outputs from its inputs, its attributes and all outer values."""

    op_type: str
    inputs: list[str]
    outputs: list[str]
    attributes: dict[str, Any]
    apply: Apply

    def node(self) -> onnx.NodeProto:
        """Build the node."""
        return helper.make_node(self.op_type, self.inputs, self.outputs, **self.attributes)


@dataclass
class Body:
    """The nodes of a graph, and the values that they see; its own are those that they give."""

    steps: list[Step] = field(default_factory=list)
    values: dict[str, Any] = field(default_factory=dict)
    own: list[str] = field(default_factory=list)


def evaluate(steps: Sequence[Step], values: Values) -> dict[str, Any]:
    """Calculate all values after the steps."""
    known = dict(values)
    for step in steps:
        inputs = [known[name] if name else None for name in step.inputs]
        known.update(zip(step.outputs, step.apply(inputs, step.attributes, known), strict=True))
    return known


def parts_of(data: Any, axis: int, lengths: Sequence[int]) -> list[Any]:
    """The parts; refused unless the lengths are >= 0 and sum to the dimension."""
    if min(lengths, default=0) < 0 or sum(lengths) != data.shape[axis]:
        raise IllegalError
    return slices(data, axis, lengths)


def equal_parts(dim: int, count: int) -> list[int]:
    """Equal lengths that divide the dimension (D3)."""
    if dim % count:
        raise IllegalError
    return [dim // count] * count


def rounded_parts(dim: int, count: int) -> list[int]:
    """Lengths of the dimension divided by the count, rounded up; the last is the rest (D1)."""
    size = -(-dim // count)
    if dim - size * (count - 1) < 0:
        raise IllegalError
    return [size] * (count - 1) + [dim - size * (count - 1)]


def chunks_of(dim: int, size: int) -> list[int]:
    """Lengths of one size; the last may be smaller (D10)."""
    if size < 1:
        raise IllegalError
    return [min(size, dim - start) for start in range(0, dim, size)]


def within(index: int, count: int, behind: int = 0) -> int:
    """A position from the front (D19)."""
    if not -count <= index < count + behind:
        raise IllegalError
    return index + count if index < 0 else index


def only(function: Callable[..., Any]) -> Apply:
    """A node of one output, by a function of its inputs."""
    return lambda inputs, *_: [function(*inputs)]


@dataclass(frozen=True)
class Fed:
    """What to feed, and what must come out; None where the standard refuses."""

    feeds: dict[str, Any]
    expected: list[Any] | None


@dataclass(frozen=True)
class Chain:
    """A model with what to feed it; what is illegal comes last."""

    seed: int
    model: onnx.ModelProto
    fed: list[Fed]


class _Generator:
    """Makes one model from one seed; a value is held once for each legal binding."""

    def __init__(self, seed: int) -> None:
        self._random = np.random.default_rng(seed)
        self._seed = seed
        self._opset = int(self._random.choice(OPSETS))
        self._count = 0
        self._inputs: list[tuple[onnx.ValueInfoProto, Callable[[Mapping[str, int]], Any]]] = []
        self._names: dict[str, list[int]] = {}
        self._body = Body()  # its values are lists, with one for each binding
        self._top = self._body
        self._depth = 0
        self._has_sequences = self._chance(0.5)

    def make(self) -> Chain:
        """The model."""
        for _ in range(self._pick(1, 2)):
            self._data_input()
        if self._has_sequences:
            self._try(self._split_to_sequence)
        for _ in range(self._pick(3, 12)):
            self._try(self._one(self._kinds))
        steps, outputs = self._ends()
        graph = helper.make_graph(
            [step.node() for step in steps],
            "chain",
            [declared for declared, _ in self._inputs],
            [
                helper.make_tensor_value_info(
                    name,
                    helper.np_dtype_to_tensor_dtype(self._top.values[name][0].dtype),
                    [None] * self._top.values[name][0].ndim,
                )
                for name in outputs
            ],
        )
        imports = [helper.make_opsetid("", self._opset)]
        model = helper.make_model(graph, opset_imports=imports, ir_version=8)
        bindings = [{n: sizes[at] for n, sizes in self._names.items()} for at in range(BINDINGS)]
        bindings += [{n: self._pick(1, 9) for n in self._names} for _ in range(3)]
        fed = []
        for at, binding in enumerate(bindings):
            feeds = {declared.name: make({**binding, "at": at}) for declared, make in self._inputs}
            try:
                found = evaluate(steps, feeds)
                fed.append(Fed(feeds, [found[name] for name in outputs]))
            except IllegalError:
                fed.append(Fed(feeds, None))
            except (UnfitError, ValueError, IndexError):
                continue  # another node takes no such shapes: nothing to do with splits
        fed.sort(key=lambda each: each.expected is None)  # an OpenVINO Loop keeps what these leave
        return Chain(self._seed, model, fed)

    def _ends(self) -> tuple[list[Step], list[str]]:
        """The nodes of the model and its outputs: of every node that stays, what nobody uses.

        The data of every split is used, not only its shape: an engine may leave out a split, and
        its refusals, where nobody looks at the data.
        """
        used = {name for step in self._top.steps for name in names_in(step)}
        outputs = [name for name in self._top.own if name not in used and self._is_array(name)]
        outputs = outputs or self._step("Identity", [self._tensor()], only(lambda x: x))
        steps = live(self._top.steps, outputs)
        for step in steps:
            looked_at = {name for each in live(steps, outputs, firm=True) for name in each.outputs}
            used = {name for each in steps for name in names_in(each)}
            ends = [
                name for name in step.outputs if name not in used and step.op_type != "Constant"
            ]
            if step.op_type == "Split" and looked_at.isdisjoint(step.outputs):
                ends.append(step.outputs[0])
            outputs += [name for name in ends if name not in outputs and self._is_array(name)]
        return steps, outputs

    def _is_array(self, name: str) -> bool:
        return not isinstance(self._top.values[name][0], list)

    # choices

    def _pick(self, low: int, high: int) -> int:
        return int(self._random.integers(low, high + 1))

    def _chance(self, probability: float) -> bool:
        return bool(self._random.random() < probability)

    def _one(self, items: Sequence[Any]) -> Any:
        if not items:
            raise UnfitError
        return items[self._pick(0, len(items) - 1)]

    def _name(self) -> str:
        self._count += 1
        return f"v{self._count}"

    def _is_float(self, name: str) -> bool:
        value = self._body.values[name][0]
        return isinstance(value, np.ndarray) and value.dtype == np.float32

    def _find(self, want: Callable[[Any], bool]) -> str:
        """A value, the newest ones more often."""
        found = [name for name, values in self._body.values.items() if want(values[0])]
        if found and self._chance(0.6):
            return found[-self._pick(1, min(3, len(found)))]
        return str(self._one(found))

    def _tensor(self, rank: int = 1) -> str:
        """A tensor, mostly one with elements: engines have limits of their own without any."""

        def is_wanted(value: Any) -> bool:
            is_float = isinstance(value, np.ndarray) and value.dtype == np.float32
            return is_float and value.ndim >= rank

        if self._chance(0.95):
            return self._find(lambda value: is_wanted(value) and bool(value.size))
        return self._find(is_wanted)

    def _shape(self, name: str) -> tuple[int, ...]:
        return tuple(self._body.values[name][0].shape)

    def _dims(self, name: str, axis: int) -> list[int]:
        """The length of an axis with each binding."""
        return [value.shape[axis] for value in self._body.values[name]]

    def _data(self, shape: Sequence[int]) -> Any:
        return self._random.standard_normal(shape).astype(np.float32)

    # graphs

    def _data_input(self) -> None:
        """An input of floats whose dimensions are numbers, names, or open."""
        name, dims, known = self._name(), list[Any](), list[Any]()
        for axis in range(self._pick(1, 3)):
            kind = self._pick(0, 3)
            if kind < 2:
                known.append(self._pick(1, 8))
                dims.append(known[-1])
            else:
                symbol = self._one("NM") if kind == 2 else f"{name}_{axis}"
                self._names.setdefault(symbol, [self._pick(2, 8) for _ in range(BINDINGS)])
                known.append(symbol)
                dims.append(symbol if kind == 2 else None)
        declared = helper.make_tensor_value_info(name, TensorProto.FLOAT, dims)
        self._add_input(
            declared,
            lambda binding: self._data([binding.get(dim, dim) for dim in known]),
        )

    def _add_input(
        self, declared: onnx.ValueInfoProto, make: Callable[[Mapping[str, int]], Any]
    ) -> str:
        name = declared.name
        self._inputs.append((declared, make))
        values = [
            make({**{n: sizes[at] for n, sizes in self._names.items()}, "at": at})
            for at in range(BINDINGS)
        ]
        self._top.values[name] = self._body.values[name] = values
        return name

    def _fed(self, values: Sequence[Any], dtype: Any = np.int64) -> str:
        """An input with a value for each binding, and near ones for others."""
        arrays = [np.asarray(value, dtype) for value in values]
        kind = helper.np_dtype_to_tensor_dtype(arrays[0].dtype)
        declared = helper.make_tensor_value_info(self._name(), kind, list(arrays[0].shape))

        def make(binding: Mapping[str, int]) -> Any:
            if binding["at"] < len(arrays):
                return arrays[binding["at"]]
            near = arrays[self._pick(0, len(arrays) - 1)]
            if dtype is not np.bool_ and self._chance(0.4):
                return near + self._random.integers(-1, 2, near.shape)
            return near

        return self._add_input(declared, make)

    def _constant(self, value: Any) -> str:
        array = np.asarray(value)
        tensor = numpy_helper.from_array(array)
        return self._step("Constant", [], lambda *_: [array], value=tensor)[0]

    def _step(
        self,
        op_type: str,
        inputs: list[str],
        apply: Apply,
        count: int = 1,
        **attributes: Any,
    ) -> list[str]:
        """Add a node; it is given up if it is not legal with each binding."""
        outputs = [self._name() for _ in range(count)]
        step = Step(op_type, inputs, outputs, attributes, apply)
        made: list[dict[str, Any]] = []
        for at in range(BINDINGS):
            values = {name: held[at] for name, held in self._body.values.items()}
            try:
                made.append(evaluate([step], values))
            except (IllegalError, ValueError, IndexError) as error:
                raise UnfitError from error
        for name in outputs:
            held = [each[name] for each in made]
            if any(isinstance(each, np.ndarray) and each.size > 4000 for each in held):
                raise UnfitError
            self._body.values[name] = held
        self._body.steps.append(step)
        if op_type != "Constant":
            self._body.own += outputs
        return outputs

    def _try(self, kind: Callable[[], Any]) -> None:
        with suppress(UnfitError):
            kind()

    def _inner(
        self, fill: Callable[[], list[str]], *, closed: bool = False, **values: list[Any]
    ) -> tuple[Body, list[str]]:
        """A body made by a function that gives its outputs; if closed, it sees nothing outside."""
        around = {} if closed else self._body.values
        outer, self._body = self._body, Body([], {**around, **values})
        self._depth += 1
        try:
            outputs = fill()
            return self._body, outputs
        finally:
            self._body = outer
            self._depth -= 1

    def _graph(self, body: Body, inputs: Sequence[str], outputs: Sequence[str]) -> onnx.GraphProto:
        def declare(name: str, *, ranked: bool) -> onnx.ValueInfoProto:
            value = body.values[name][0]
            if isinstance(value, list):
                return helper.make_tensor_sequence_value_info(name, TensorProto.FLOAT, None)
            kind = helper.np_dtype_to_tensor_dtype(np.asarray(value).dtype)
            shape = [None] * np.ndim(value) if ranked or not np.ndim(value) else None
            return helper.make_tensor_value_info(name, kind, shape)

        body.steps = live(body.steps, outputs)
        if len(live(body.steps, outputs, firm=True)) < len(body.steps):
            splits = {step.outputs[0] for step in body.steps if step.op_type == "Split"}
            firm = {step.outputs[0] for step in live(body.steps, outputs, firm=True)}
            if splits - firm:
                raise UnfitError
        return helper.make_graph(
            [step.node() for step in body.steps],
            "body",
            [declare(name, ranked=self._chance(0.7)) for name in inputs],
            [declare(name, ranked=self._chance(0.7)) for name in outputs],
        )

    # numbers that the graph computes: int64 of shape [1]

    def _number(self) -> str:
        """A dimension of a value, a constant, a length of a sequence, or what follows of them."""
        match self._pick(0, 6):
            case 0:
                return self._constant([self._pick(1, 4)])
            case 1 | 2 | 3:
                data = self._tensor()
                return self._dimension(data, self._pick(0, len(self._shape(data)) - 1))
            case 4:
                name = self._find(lambda v: isinstance(v, list))
                count = self._step(
                    "SequenceLength", [name], only(lambda v: np.array(len(v), np.int64))
                )
                return self._reshaped(count[0], [1])
            case _:
                one, other = self._dimension_of_any(), self._number()
                op_type, rule = self._one(
                    [
                        ("Sub", np.subtract),
                        ("Add", np.add),
                        ("Div", np.floor_divide),
                        ("Min", np.minimum),
                        ("Max", np.maximum),
                    ]
                )
                if op_type in ("Min", "Max") and self._opset < 12:
                    raise UnfitError
                if op_type == "Div":
                    other = self._constant([self._pick(1, 3)])
                made = self._step(op_type, [one, other], only(rule))[0]
                if min(value.item() for value in self._body.values[made]) < 0:
                    raise UnfitError
                return made

    def _dimension_of_any(self) -> str:
        data = self._tensor()
        return self._dimension(data, self._pick(0, len(self._shape(data)) - 1))

    def _dimension(self, data: str, axis: int) -> str:
        """A dimension as the graph computes it, in one of the ways that exporters take."""
        way = self._pick(0, 3)
        if way == 0 and self._opset >= 15:
            return self._step(
                "Shape",
                [data],
                only(lambda x: np.array(x.shape[axis : axis + 1], np.int64)),
                start=axis,
                end=axis + 1,
            )[0]
        rank = len(self._shape(data))
        shape = self._step("Shape", [data], only(lambda x: np.array(x.shape, np.int64)))[0]
        if way == 1:
            bounds = [self._constant(np.array([n], np.int64)) for n in (axis, axis + 1)]
            return self._step("Slice", [shape, *bounds], only(lambda s, *_: s[axis : axis + 1]))[0]
        if way == 2 and rank > 1:
            inputs, attributes = [shape], dict[str, Any](split=[1] * rank)
            if self._opset >= 13:
                inputs, attributes = [shape, self._constant([1] * rank)], {}
            return self._step(
                "Split",
                inputs,
                lambda v, *_: [v[0][n : n + 1] for n in range(rank)],
                rank,
                axis=0,
                **attributes,
            )[axis]
        if way == 3:
            index = self._constant(np.int64(axis))
            found = self._step("Gather", [shape, index], only(lambda s, _: s[axis]))[0]
            return self._unsqueezed(found, 0)
        index = self._constant([axis])
        return self._step("Gather", [shape, index], only(lambda s, _: s[[axis]]))[0]

    def _reshaped(self, data: str, shape: list[int]) -> str:
        wanted = self._constant(np.array(shape, np.int64))
        return self._step("Reshape", [data, wanted], only(lambda x, _: x.reshape(shape)))[0]

    def _unsqueezed(self, data: str, axis: int) -> str:
        inputs, attributes = self._with_axes(data, axis, 13)
        return self._step(
            "Unsqueeze", inputs, lambda v, *_: [np.expand_dims(v[0], axis)], **attributes
        )[0]

    def _joined(self, numbers: list[str]) -> str:
        return self._step("Concat", numbers, lambda v, *_: [np.concatenate(v)], axis=0)[0]

    def _values(self, name: str) -> list[int]:
        return [int(value.item()) for value in self._body.values[name]]

    def _lengths(self, data: str, axis: int) -> str:
        """Lengths that sum to the dimension with each binding, from one source or another."""
        dims, count = self._dims(data, axis), self._pick(1, 4)
        kind = self._pick(0, 3)
        if kind == 0 and len(set(dims)) == 1:
            return self._constant(np.array(self._cuts(dims[0], count), np.int64))
        if kind == 1 and self._depth == 0:
            return self._fed([self._cuts(dim, count) for dim in dims])
        numbers: list[str] = []
        rest = self._dimension(data, axis)
        for _ in range(count - 1):
            number = self._number()
            left = self._step("Sub", [rest, number], only(np.subtract))[0]
            if min(self._values(left)) < 0:
                continue
            numbers.append(number)
            rest = left
        numbers.insert(self._pick(0, len(numbers)), rest)
        return self._joined(numbers)

    def _cuts(self, dim: int, count: int) -> list[int]:
        if dim >= count and self._chance(0.9):  # most parts are not empty
            inner = self._random.permutation(dim - 1)[: count - 1] + 1
            cuts = sorted(map(int, inner))
        else:
            cuts = sorted(self._pick(0, dim) for _ in range(count - 1))
        return [b - a for a, b in zip([0, *cuts], [*cuts, dim], strict=True)]

    # nodes

    @property
    def _kinds(self) -> list[Callable[[], Any]]:
        kinds = [self._split] * 4 + [self._count_split] * 4 + [self._plain] * 3
        if not self._has_sequences:
            kinds += [self._split_to_sequence]
        else:
            kinds += [self._split_to_sequence] * 2 + [self._at] * 3 + [self._length] * 2
            kinds += [self._insert, self._erase, self._concatenate, self._construct]
        if self._depth == 0:
            kinds += [self._if, self._loop, self._loop, self._scan]
        return kinds

    def _axis(self, data: str) -> tuple[int, int]:
        """An axis, from the front, and as a node is given it."""
        rank = len(self._shape(data))
        axis = self._pick(0, rank - 1)
        return axis, axis - rank if self._chance(0.3) else axis

    def _split(self) -> None:
        """A Split with lengths."""
        data = self._tensor()
        axis, given = self._axis(data)
        if self._opset >= 13:
            lengths = self._lengths(data, axis)
            self._step(
                "Split",
                [data, lengths],
                lambda v, *_: parts_of(v[0], axis, v[1].tolist()),
                len(self._body.values[lengths][0]),
                axis=given,
            )
            return
        dims = self._dims(data, axis)
        if len(set(dims)) > 1:
            raise UnfitError
        sizes = self._cuts(dims[0], self._pick(1, 4))
        self._step(
            "Split",
            [data],
            lambda v, *_: parts_of(v[0], axis, sizes),
            len(sizes),
            axis=given,
            split=sizes,
        )

    def _count_split(self) -> None:
        """A Split without lengths."""
        data, count = self._tensor(), self._pick(1, 4)
        axis, given = self._axis(data)
        rule = rounded_parts if self._opset >= 18 else equal_parts
        attributes: dict[str, Any] = {"num_outputs": count} if self._opset >= 18 else {}
        inputs = [data, ""] if self._opset >= 13 and self._chance(0.2) else [data]
        self._step(
            "Split",
            inputs,
            lambda v, *_: parts_of(v[0], axis, rule(v[0].shape[axis], count)),
            count,
            axis=given,
            **attributes,
        )

    def _split_to_sequence(self) -> None:
        data = self._tensor()
        axis, given = self._axis(data)
        inputs, attributes, kind = [data], {"axis": given}, self._pick(0, 2)
        if kind == 0:
            keepdims = len(self._shape(data)) == 1 or self._chance(0.5)
            attributes["keepdims"] = int(keepdims)

            def apply(v: list[Any], *_: Any) -> list[Any]:
                return [slices(v[0], axis, [1] * v[0].shape[axis], keepdims)]
        elif kind == 1:
            size = (
                self._constant(np.int64(self._pick(1, 4)))
                if self._chance(0.6)
                else self._scalar(self._number())
            )
            inputs.append(size)

            def apply(v: list[Any], *_: Any) -> list[Any]:
                return [slices(v[0], axis, chunks_of(v[0].shape[axis], int(v[1])))]
        else:
            inputs.append(self._lengths(data, axis))

            def apply(v: list[Any], *_: Any) -> list[Any]:
                return [parts_of(v[0], axis, v[1].tolist())]

        self._step("SplitToSequence", inputs, apply, **attributes)

    def _scalar(self, number: str) -> str:
        if self._chance(0.5):
            return self._reshaped(number, [])
        inputs, attributes = self._with_axes(number, 0, 13)
        return self._step("Squeeze", inputs, lambda v, *_: [np.squeeze(v[0], 0)], **attributes)[0]

    def _sequence(self) -> str:
        return self._find(lambda v: isinstance(v, list))

    def _position(self, name: str, behind: int = 0) -> str:
        counts = [len(value) for value in self._body.values[name]]
        most = min(counts) - 1 + behind
        if most < 0:
            raise UnfitError
        kind = self._pick(0, 2)
        if kind == 0 or self._depth:
            return self._constant(np.int64(self._pick(-min(counts), most)))
        if kind == 1:
            return self._fed([self._pick(-n, n - 1 + behind) for n in counts])
        number = self._number()
        if any(not -n <= v < n + behind for v, n in zip(self._values(number), counts, strict=True)):
            raise UnfitError
        return self._scalar(number)

    def _at(self) -> None:
        name = self._sequence()
        self._step(
            "SequenceAt",
            [name, self._position(name)],
            only(lambda v, i: v[within(int(i), len(v))]),
        )

    def _insert(self) -> None:
        name, part = self._sequence(), self._tensor()
        ranks = {each.ndim for value in self._body.values[name] for each in value}
        if ranks - {len(self._shape(part))}:
            raise UnfitError
        inputs = [name, part]
        if self._chance(0.5):
            inputs.append(self._position(name, behind=1))

        def apply(v: list[Any], *_: Any) -> list[Any]:
            place = len(v[0]) if len(v) < 3 else within(int(v[2]), len(v[0]), behind=1)
            return [[*v[0][:place], v[1], *v[0][place:]]]

        self._step("SequenceInsert", inputs, apply)

    def _erase(self) -> None:
        name = self._sequence()
        inputs = [name, self._position(name)]
        if min(len(value) for value in self._body.values[name]) < 2:
            raise UnfitError

        def apply(v: list[Any], *_: Any) -> list[Any]:
            place = within(int(v[1]), len(v[0]))
            return [v[0][:place] + v[0][place + 1 :]]

        self._step("SequenceErase", inputs, apply)

    def _construct(self) -> None:
        first = self._tensor()
        rank = len(self._shape(first))
        others = [self._tensor() for _ in range(self._pick(0, 2))]
        self._step(
            "SequenceConstruct",
            [first, *(name for name in others if len(self._shape(name)) == rank)],
            lambda v, *_: [list(v)],
        )

    def _length(self) -> None:
        self._step("SequenceLength", [self._sequence()], only(lambda v: np.array(len(v), np.int64)))

    def _concatenate(self) -> None:
        name = self._sequence()
        values = self._body.values[name]
        if not all(values) or values[0][0].ndim < 1:
            raise UnfitError
        axis = self._pick(0, values[0][0].ndim - 1)
        self._step("ConcatFromSequence", [name], only(lambda v: np.concatenate(v, axis)), axis=axis)

    def _plain(self) -> None:
        """A node that is not a split."""
        self._one(
            [
                *(self._same, self._same, self._transpose, self._join),
                *(self._slice, self._reshape, self._unsqueeze, self._reduce),
            ]
        )()

    def _any_axis(self) -> tuple[str, int]:
        data = self._tensor()
        return data, self._pick(0, len(self._shape(data)) - 1)

    def _same(self) -> None:
        data = self._tensor()
        match self._pick(0, 2):
            case 0:
                self._step("Add", [data, data], only(np.add))
            case 1:
                self._step("Neg", [data], only(np.negative))
            case _:
                self._step("Identity", [data], only(lambda x: x))

    def _transpose(self) -> None:
        data = self._tensor()
        order = [int(axis) for axis in self._random.permutation(len(self._shape(data)))]
        self._step("Transpose", [data], only(lambda x: x.transpose(order)), perm=order)

    def _join(self) -> None:
        data, axis = self._any_axis()
        self._step(
            "Concat", [data, self._tensor()], lambda v, *_: [np.concatenate(v, axis)], axis=axis
        )

    def _slice(self) -> None:
        """A Slice whose end the graph computes."""
        data, axis = self._any_axis()
        start, where = self._constant([self._pick(0, 1)]), self._constant([axis])
        before = (slice(None),) * axis

        def cut(x: Any, first: Any, end: Any, _: Any) -> Any:
            if end < 0:
                raise UnfitError
            return x[(*before, slice(first.item(), end.item()))]

        self._step("Slice", [data, start, self._number(), where], only(cut))

    def _reshape(self) -> None:
        """A Reshape that keeps some of the dimensions, and joins the others."""
        data, keep = self._any_axis()
        kept = [self._dimension(data, axis) for axis in range(keep)]

        def reshape(x: Any, shape: Any) -> Any:
            if not x.size:
                raise UnfitError
            return x.reshape(shape)

        self._step("Reshape", [data, self._joined([*kept, self._constant([-1])])], only(reshape))

    def _unsqueeze(self) -> None:
        self._unsqueezed(*self._any_axis())

    def _reduce(self) -> None:
        data, axis = self._any_axis()
        inputs, attributes = self._with_axes(data, axis, 18)
        self._step(
            "ReduceMax",
            inputs,
            lambda v, *_: [np.max(v[0], axis=axis, keepdims=True)],
            **attributes,
            keepdims=1,
        )

    def _with_axes(self, data: str, axis: int, first: int) -> tuple[list[str], dict[str, Any]]:
        """The inputs and attributes of a node that takes axes as an input from an opset on."""
        if self._opset >= first:
            return [data, self._constant([axis])], {}
        return [data], {"axes": [axis]}

    # bodies

    def _own_tensor(self) -> str:
        """A tensor of the body, or a copy of one outside."""
        own = [name for name in self._body.own if self._is_float(name)]
        if own and self._chance(0.8):
            return str(self._one(own))
        return self._step("Identity", [self._tensor()], only(lambda x: x))[0]

    def _if(self) -> None:
        choice = [self._chance(0.5) for _ in range(BINDINGS)]
        condition = self._fed(choice, np.bool_) if self._chance(0.8) else None
        if condition is None:
            condition = self._constant(np.array(choice[0]))
        rank: list[int] = []

        def fill() -> list[str]:
            for _ in range(self._pick(1, 3)):
                self._try(self._one(self._kinds))
            made = self._own_tensor()
            if rank and len(self._shape(made)) != rank[0]:
                raise UnfitError
            rank.append(len(self._shape(made)))
            return [made]

        bodies = [self._inner(fill), self._inner(fill)]

        def apply(inputs: list[Any], _: Any, outer: Values) -> list[Any]:
            body, outputs = bodies[0 if inputs[0] else 1]
            return [evaluate(body.steps, outer)[outputs[0]]]

        graphs = [self._graph(body, [], outputs) for body, outputs in bodies]
        self._step("If", [condition], apply, **dict(zip(_BRANCHES, graphs, strict=True)))

    def _loop(self) -> None:
        trips = self._pick(1, 3)
        limit = self._constant(np.int64(trips))
        if self._chance(0.5):
            limit = self._fed([trips] * BINDINGS)
        starts = [self._tensor()]
        if self._opset >= 13 and self._chance(0.3):
            starts.append(self._sequence())
        number, condition = self._name(), self._name()
        carried = [self._name() for _ in starts]
        inside = {
            number: [np.array(0, np.int64)] * BINDINGS,
            condition: [np.array(True)] * BINDINGS,
            **dict(zip(carried, (self._body.values[name] for name in starts), strict=True)),
        }

        def fill() -> list[str]:
            go = self._step("Identity", [condition], only(lambda x: x))[0]
            for _ in range(self._pick(1, 3)):
                self._try(self._one(self._kinds))
            shape = self._shape(carried[0])
            fits = [
                name
                for name in self._body.own
                if self._is_float(name) and len(self._shape(name)) == len(shape)
            ]
            alike = [name for name in fits if self._shape(name) == shape]
            if alike and self._chance(0.6):
                fits = alike
            if not fits or self._chance(0.3):
                fits = self._step("Add", [carried[0], carried[0]], only(np.add))
            outputs = [go, self._one(fits)]
            for name in carried[1:]:
                outputs += self._step(
                    "SequenceInsert", [name, self._own_tensor()], only(lambda s, x: [*s, x])
                )
            return [*outputs, self._step("Identity", [self._own_tensor()], only(lambda x: x))[0]]

        body, outputs = self._inner(fill, **inside)
        graph = self._graph(body, [number, condition, *carried], outputs)

        def apply(inputs: list[Any], _: Any, outer: Values) -> list[Any]:
            state, rows = inputs[2:], []
            if int(inputs[0]) < 1:
                raise UnfitError
            for trip in range(int(inputs[0])):
                names = zip(
                    (number, condition, *carried),
                    (np.array(trip), np.array(True), *state),
                    strict=True,
                )
                after = evaluate(body.steps, {**outer, **dict(names)})
                _, *state, row = (after[name] for name in outputs)
                rows.append(row)
            return [*state, np.stack(rows)]

        self._step("Loop", [limit, "", *starts], apply, len(starts) + 1, body=graph)

    def _scan(self) -> None:
        data = self._tensor(rank=2)
        if min(self._dims(data, 0)) < 1:
            raise UnfitError
        row = self._name()

        def fill() -> list[str]:
            for _ in range(self._pick(1, 3)):
                self._try(self._one(self._kinds))
            made = self._step("Identity", [self._own_tensor()], only(lambda x: x))
            if row not in {name for step in live(self._body.steps, made) for name in step.inputs}:
                raise UnfitError
            return made

        rows = [value[0] for value in self._body.values[data]]
        body, outputs = self._inner(fill, closed=True, **{row: rows})  # OpenVINO's captures nothing
        graph = self._graph(body, [row], outputs)

        def apply(inputs: list[Any], _: Any, outer: Values) -> list[Any]:
            rounds = [evaluate(body.steps, {**outer, row: item}) for item in inputs[0]]
            return [np.stack([each[outputs[0]] for each in rounds])]

        self._step("Scan", [data], apply, body=graph, num_scan_inputs=1)


_BRANCHES = ("then_branch", "else_branch")


def names_in(step: Step) -> set[str]:
    """The values that a node uses, in its bodies too."""
    found = set(step.inputs)
    for value in step.attributes.values():
        if isinstance(value, onnx.GraphProto):
            found |= _used(value)
    return found


def _used(graph: onnx.GraphProto) -> set[str]:
    found = {value.name for value in graph.output}
    for node in graph.node:
        found |= set(node.input)
        for attribute in node.attribute:
            if attribute.type == onnx.AttributeProto.GRAPH:
                found |= _used(attribute.g)
    return found


def live(steps: Sequence[Step], outputs: Sequence[str], *, firm: bool = False) -> list[Step]:
    """The nodes that outputs need; if ``firm``, not those of which only the shape is needed."""
    wanted, kept = set(outputs), list[Step]()
    for step in reversed(steps):
        if wanted.intersection(step.outputs):
            kept.append(step)
            wanted |= set() if firm and step.op_type == "Shape" else names_in(step)
    return kept[::-1]


def split_chain(seed: int) -> Chain:
    """The model of a seed."""
    return _Generator(seed).make()
