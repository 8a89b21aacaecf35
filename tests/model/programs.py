"""Models as steps that are nodes, each with what it does to arrays, from the text of the standard.

Nothing here knows the package: what a `Program` gives is calculated in NumPy, for any data; it
gives values, or a split in it is `Refused`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from tests.oracle import slices

Array = np.ndarray[Any, np.dtype[Any]]
Apply = Callable[[list[Any], dict[str, Any], "Scope"], Sequence[Any]]

LOCAL = "local"
MOST_CALCULATED = 1 << 16
"""A node that gives more elements ends a calculation: loops may double what they carry."""


class Refused(Exception):  # noqa: N818 - what the standard does, no error here
    """Data that a split node, or the index of a sequence, must refuse; has the node's outputs."""

    def __init__(self, step: Step) -> None:
        super().__init__(step.outputs[0])
        self.step = step
        self.values: dict[str, Any] = {}


class Illegal(Exception):  # noqa: N818 - as above
    """What a split node does not take, for `Refused`."""


class NotExact(Exception):  # noqa: N818 - no error
    """Numbers that engines may round differently, what the standard leaves open, or too much."""


@dataclass(frozen=True)
class Parameter:
    """An attribute of a function, where a node in it takes one; the value that it had once."""

    name: str
    value: int


@dataclass(frozen=True, eq=False)
class Step:
    """A node; ``apply`` gives its outputs from its inputs, its attributes and its scope."""

    op_type: str
    inputs: Sequence[str]
    outputs: Sequence[str]
    attributes: Mapping[str, Any]
    apply: Apply
    domain: str = ""
    is_calculated: bool = False

    def node(self) -> onnx.NodeProto:
        """Build the node, without a name, as many exporters leave it."""
        plain = {}
        for name, value in self.attributes.items():
            if isinstance(value, Graph):
                plain[name] = value.proto(name)
            elif isinstance(value, np.ndarray):
                plain[name] = numpy_helper.from_array(value)
            elif not isinstance(value, Parameter):
                plain[name] = value
        made = helper.make_node(
            self.op_type, self.inputs, self.outputs, domain=self.domain, **plain
        )
        for name, value in self.attributes.items():
            if isinstance(value, Parameter):
                kind = onnx.AttributeProto.INT
                made.attribute.add(name=name, ref_attr_name=value.name, type=kind)
        return made

    def bodies(self) -> Iterator[Graph]:
        """Yield the graphs among the attributes."""
        yield from (value for value in self.attributes.values() if isinstance(value, Graph))


@dataclass(frozen=True)
class Graph:
    """Steps with the ends of their graph; ``samples`` has what each value held once."""

    steps: Sequence[Step]
    inputs: Sequence[str]
    outputs: Sequence[str]
    declared: Mapping[str, onnx.ValueInfoProto]
    samples: Mapping[str, Any]
    initializers: Mapping[str, Array] = field(default_factory=dict)

    def proto(self, name: str) -> onnx.GraphProto:
        """Build the graph."""
        return helper.make_graph(
            [step.node() for step in self.steps],
            name,
            [self.declared[each] for each in self.inputs],
            [self.declared[each] for each in self.outputs],
            [numpy_helper.from_array(value, each) for each, value in self.initializers.items()],
        )


@dataclass(frozen=True)
class Function:
    """A local function: its body, its opset, and the value that its attribute ``at`` stands for."""

    graph: Graph
    opset: int
    has_default: bool
    at: int

    def proto(self, name: str) -> onnx.FunctionProto:
        """Build the function."""
        imports = [helper.make_opsetid("", self.opset), helper.make_opsetid(LOCAL, 1)]
        at = helper.make_attribute("at", self.at)
        return helper.make_function(
            LOCAL,
            name,
            self.graph.inputs,
            self.graph.outputs,
            [step.node() for step in self.graph.steps],
            imports,
            [] if self.has_default else ["at"],
            [at] if self.has_default else [],
        )


@dataclass
class Scope:
    """The values that a step may see, and the attributes of the function it is in."""

    values: dict[str, Any]
    functions: Mapping[str, Function]
    given: Mapping[str, Any] = field(default_factory=dict)

    def run(self, graph: Graph, fed: Sequence[Any]) -> list[Any]:
        """Calculate a body; return its outputs."""
        inner = replace(self, values={**self.values, **dict(zip(graph.inputs, fed, strict=True))})
        evaluate(graph.steps, inner)
        return [inner.values[name] for name in graph.outputs]


@dataclass(frozen=True)
class Program:
    """A model as steps, and what may be fed to it; the first feeds are legal.

    With a seed to shuffle by, its nodes are written in another order.
    """

    graph: Graph
    functions: Mapping[str, Function]
    opset: int
    ir_version: int
    feeds: Sequence[Mapping[str, Any]]
    shuffle: int | None = None

    def model(self) -> onnx.ModelProto:
        """Build the model."""
        imports = {"": self.opset, LOCAL: 1, "com.example": 3}
        made = helper.make_model(
            self.graph.proto("random"),
            opset_imports=[helper.make_opsetid(*each) for each in imports.items()],
            functions=[made.proto(name) for name, made in self.functions.items()],
            ir_version=self.ir_version,
        )
        return made if self.shuffle is None else shuffled(made, self.shuffle)

    def values(self, feeds: Mapping[str, Any]) -> dict[str, Any]:
        """Calculate all values of the main graph.

        Raises:
            Refused: If a split does not fit.
            Exception: Of any kind, if another node can't be calculated exactly.
        """
        scope = Scope({**self.graph.initializers, **feeds}, self.functions)
        try:
            evaluate(self.graph.steps, scope)
        except Refused as refused:
            refused.values = scope.values
            raise
        return scope.values


def shuffled(model: onnx.ModelProto, seed: int) -> onnx.ModelProto:
    """The same with the nodes of its graph, bodies and functions in another order."""
    made, random = onnx.ModelProto(), Random(seed)
    made.CopyFrom(model)

    def shuffle(scope: onnx.GraphProto | onnx.FunctionProto) -> None:
        for node in scope.node:
            for attribute in node.attribute:
                if attribute.HasField("g"):
                    shuffle(attribute.g)
        nodes = [onnx.NodeProto.FromString(node.SerializeToString()) for node in scope.node]
        random.shuffle(nodes)
        del scope.node[:]
        scope.node.extend(nodes)

    for scope in (made.graph, *made.functions):
        shuffle(scope)
    return made


def evaluate(steps: Sequence[Step], scope: Scope) -> None:
    """Add what the steps give to the values of the scope."""
    with np.errstate(all="ignore"):
        for step in steps:
            attributes = {
                name: scope.given[value.name] if isinstance(value, Parameter) else value
                for name, value in step.attributes.items()
            }
            inputs = [scope.values[name] if name else None for name in step.inputs]
            try:
                outputs = step.apply(inputs, attributes, scope)
            except Illegal as error:
                raise Refused(step) from error
            if step.is_calculated and not all(map(is_exact, outputs)):
                raise NotExact
            if sum(getattr(each, "size", 0) for each in outputs) > MOST_CALCULATED:
                raise NotExact
            scope.values.update(zip(step.outputs, outputs, strict=True))


def is_exact(value: Any) -> bool:
    """Whether the numbers are few bits each, so that sums of them come out the same anyhow."""
    if not isinstance(value, np.ndarray) or value.dtype.kind in "bO" or not value.size:
        return True
    if value.dtype.kind in "iu":
        return bool(np.abs(value).max() < 1 << 24)
    small = value.dtype.itemsize == 2
    wide = value.astype(np.float64)
    return bool(np.isfinite(wide).all() and np.abs(wide).max() <= (64 if small else 8192)) and bool(
        (wide * (4 if small else 128) % 1 == 0).all()
    )


def declaration(
    name: str, value: Any, shape: Sequence[Any] | None = None, *, has_rank: bool = True
) -> onnx.ValueInfoProto:
    """Declare a value with a shape, else of its rank, if it always has that."""
    if isinstance(value, list):
        dtype = value[0].dtype if value else np.dtype(np.float32)
        kind = helper.np_dtype_to_tensor_dtype(dtype)
        return helper.make_tensor_sequence_value_info(name, kind, None)
    kind = helper.np_dtype_to_tensor_dtype(value.dtype)
    open_shape = [None] * value.ndim if has_rank else None
    return helper.make_tensor_value_info(name, kind, open_shape if shape is None else shape)


# What the nodes do, from the text of the standard


def demand(condition: object) -> None:
    """Refuse unless it holds; only splits and indices of sequences call it."""
    if not condition:
        raise Illegal


def know(condition: object) -> None:
    """Give up unless it holds, where the standard or engines are open."""
    if not condition:
        raise NotExact


def ints(value: Any) -> list[int]:
    """The elements as a list."""
    return [int(item) for item in np.asarray(value).reshape(-1)]


def equal(dimension: int, count: int) -> list[int]:
    """Equal lengths; the last is smaller where they don't divide the dimension."""
    length = -(-dimension // count)
    return [length] * (count - 1) + [dimension - length * (count - 1)]


def split(count: int, v: list[Any], a: dict[str, Any], _: Scope) -> list[Array]:
    """Split, in any version."""
    axis = a.get("axis", 0)
    dimension = v[0].shape[axis]
    if len(v) > 1 and v[1] is not None:
        lengths = ints(v[1])
        demand((v[1] == lengths).all())  # they are floats at opset 1
    else:
        lengths = a.get("split", equal(dimension, count))
        demand("num_outputs" in a or "split" in a or dimension % count == 0)
    demand(len(lengths) == count and min(lengths) >= 0 and sum(lengths) == dimension)
    return slices(v[0], axis, lengths)


def split_to_sequence(v: list[Any], a: dict[str, Any], _: Scope) -> list[list[Array]]:
    """SplitToSequence: parts of length 1, chunks, or of given lengths."""
    axis = a.get("axis", 0)
    dimension, keepdims = v[0].shape[axis], True
    if len(v) == 1:
        lengths, keepdims = [1] * dimension, bool(a.get("keepdims", 1))
    elif v[1].ndim == 0:
        chunk = int(v[1])
        demand(chunk > 0)
        lengths = [min(chunk, dimension - at) for at in range(0, dimension, chunk)]
    else:
        lengths = ints(v[1])
        demand(min(lengths, default=0) >= 0 and sum(lengths) == dimension)
    return [slices(v[0], axis, lengths, keepdims)]


def position(v: list[Any], most: int) -> int:
    """The index that the last input is, counted from the front; ``most`` is the largest."""
    length, index = len(v[0]), int(v[-1])
    demand(-length <= index <= most)
    return index + length if index < 0 else index


def sequence_at(v: list[Any], *_: Any) -> list[Any]:
    return [v[0][position(v, len(v[0]) - 1)]]


def sequence_erase(v: list[Any], *_: Any) -> list[Any]:
    know(v[0])
    index = position(v, len(v[0]) - 1) if len(v) > 1 else len(v[0]) - 1
    return [v[0][:index] + v[0][index + 1 :]]


def sequence_insert(v: list[Any], *_: Any) -> list[Any]:
    index = position(v, len(v[0])) if len(v) > 2 else len(v[0])
    return [[*v[0][:index], v[1], *v[0][index:]]]


def concat_from_sequence(v: list[Any], a: dict[str, Any], _: Scope) -> list[Array]:
    join = np.stack if a.get("new_axis", 0) else np.concatenate
    return [join(v[0], axis=a["axis"])]


def reshape(v: list[Any], *_: Any) -> list[Array]:
    shape = ints(v[1])
    know((v[0].size or -1 not in shape) and min(shape, default=0) >= -1)
    return [v[0].reshape([v[0].shape[n] if size == 0 else size for n, size in enumerate(shape)])]


def slice_(v: list[Any], a: dict[str, Any], _: Scope) -> list[Array]:
    if len(v) == 1:
        starts, ends, axes, steps = a["starts"], a["ends"], a["axes"], [1] * len(a["axes"])
    else:
        starts, ends = ints(v[1]), ints(v[2])
        axes = ints(v[3]) if len(v) > 3 else range(len(starts))
        steps = ints(v[4]) if len(v) > 4 else [1] * len(starts)
    know(len({axis % v[0].ndim for axis in axes}) == len(axes))
    index = [slice(None)] * v[0].ndim
    for axis, start, end, step in zip(axes, starts, ends, steps, strict=True):
        # backwards from before the data the text begins at the first element, and Python nowhere
        first = max(start, -v[0].shape[axis]) if step < 0 else start
        index[axis] = slice(first, end, step)
    return [v[0][tuple(index)]]


def tile(v: list[Any], _: dict[str, Any], __: Scope) -> list[Array]:
    """Repeat along each axis; OpenVINO dies where a constant without elements is repeated."""
    counts = ints(v[1])
    know(len(counts) == v[0].ndim and v[0].size)
    return [np.tile(v[0], counts)]


def squeeze(v: list[Any], a: dict[str, Any], _: Scope) -> list[Array]:
    axes = ints(v[1]) if len(v) > 1 else a["axes"]
    return [np.squeeze(v[0], tuple(axes))]


def unsqueeze(v: list[Any], a: dict[str, Any], _: Scope) -> list[Array]:
    axes = ints(v[1]) if len(v) > 1 else a["axes"]
    return [np.expand_dims(v[0], tuple(axes))]


def pad(v: list[Any], a: dict[str, Any], _: Scope) -> list[Array]:
    pads = np.reshape(ints(v[1]) if len(v) > 1 else a["pads"], (2, v[0].ndim))
    know((pads >= 0).all())
    know((np.minimum(pads, 0).sum(0) + v[0].shape >= 0).all())  # what is padded is not cut
    cut = tuple(
        slice(max(0, -low), max(0, size - max(0, -high)))
        for low, high, size in zip(*pads, v[0].shape, strict=True)
    )
    mode = {"constant": "constant", "edge": "edge"}[a.get("mode", "constant")]
    return [np.pad(v[0][cut], np.maximum(pads, 0).T, mode=mode)]  # type: ignore[call-overload]


def expand(v: list[Any], *_: Any) -> list[Array]:
    return [np.broadcast_to(v[0], np.broadcast_shapes(v[0].shape, tuple(ints(v[1]))))]


def gather(v: list[Any], a: dict[str, Any], _: Scope) -> list[Array]:
    length = v[0].shape[axis := a.get("axis", 0)]
    know(bool(np.all((v[1] >= -length) & (v[1] < length))))  # NumPy lets all pass of empty slices
    made = np.take(v[0], v[1], axis=axis)
    return [np.asarray(made, v[0].dtype)]  # one string of a list comes out as a plain str


def compress(v: list[Any], a: dict[str, Any], _: Scope) -> list[Array]:
    condition, axis = v[1].astype(bool), a.get("axis")
    know(len(condition) <= (v[0].size if axis is None else v[0].shape[axis]))
    return [np.compress(condition, v[0], axis)]


def l1_norm(x: Array, **options: Any) -> Any:
    return np.sum(np.abs(x), **options)


def reduced(function: Callable[..., Any]) -> Apply:
    def apply(v: list[Any], a: dict[str, Any], _: Scope) -> list[Array]:
        axes = tuple(ints(v[1])) if len(v) > 1 else tuple(a.get("axes", range(v[0].ndim)))
        keepdims = bool(a.get("keepdims", 1))
        know(v[0].size or function is not np.mean)
        return [np.asarray(function(v[0], axis=axes, keepdims=keepdims), v[0].dtype)]

    return apply


def arg_max(v: list[Any], a: dict[str, Any], _: Scope) -> list[Array]:
    return [np.asarray(np.argmax(v[0], a["axis"], keepdims=bool(a["keepdims"])))]


def top_k(v: list[Any], a: dict[str, Any], _: Scope) -> list[Array]:
    axis, count = a["axis"], int(v[1][0]) if len(v) > 1 else a["k"]
    know(0 <= count <= v[0].shape[axis])
    order = np.argsort(-v[0], axis=axis, kind="stable")
    ranked = np.take_along_axis(v[0], order, axis)
    know((np.diff(ranked, axis=axis) != 0).all())
    index = np.take(order, range(count), axis)
    return [np.take_along_axis(v[0], index, axis), index]


def windows(v: Array, size: Sequence[int]) -> Array:
    return np.lib.stride_tricks.sliding_window_view(v, size, axis=(-2, -1))


def conv(v: list[Any], *_: Any) -> list[Array]:
    know(v[0].shape[1] == v[1].shape[1])  # einsum broadcasts
    return [np.einsum("nchwij,ocij->nohw", windows(v[0], v[1].shape[2:]), v[1])]


def max_pool(v: list[Any], a: dict[str, Any], _: Scope) -> list[Array]:
    return [windows(v[0], a["kernel_shape"]).max((-2, -1))]


def average_pool(v: list[Any], a: dict[str, Any], _: Scope) -> list[Array]:
    return [windows(v[0], a["kernel_shape"]).mean((-2, -1), dtype=v[0].dtype)]


def nearest(v: list[Any], *_: Any) -> list[Array]:
    know(v[0].ndim == 4)  # its scales are four
    return [v[0].repeat(2, -1).repeat(2, -2)]


def by_axis(v: list[Any], a: Mapping[str, Any]) -> list[Any]:
    """Return a scale and a zero point, if there is one, as they are applied along an axis."""
    shape = [1] * v[0].ndim
    if v[1].ndim:
        know(v[0].ndim and v[0].shape[a["axis"]] == v[1].size)
        shape[a["axis"]] = -1
    return [each.reshape(shape) if each.ndim else each for each in v[1:]]


def quantize(v: list[Any], a: dict[str, Any], _: Scope) -> list[Array]:
    scale, *zero = by_axis(v, a)
    dtype = zero[0].dtype if zero else np.dtype(np.uint8)
    limits, whole = np.iinfo(dtype), np.rint(v[0] / scale) + sum(zero)
    return [np.clip(whole, limits.min, limits.max).astype(dtype)]


def dequantize(v: list[Any], a: dict[str, Any], _: Scope) -> list[Array]:
    scale, *zero = by_axis(v, a)
    moved = v[0].astype(np.int32) - sum(each.astype(np.int32) for each in zero)
    return [(moved * scale).astype(np.float32)]


def softmax(is_flat: bool) -> Apply:
    """Softmax, before opset 13 of all axes from one on together; exact where most is 0 in it."""

    def apply(v: list[Any], a: dict[str, Any], _: Scope) -> list[Array]:
        rank, first = v[0].ndim, a["axis"] % v[0].ndim
        axes = tuple(range(first, rank if is_flat else first + 1))
        know(v[0].size)
        powers = np.exp(v[0].astype(np.float64) - v[0].max(axes, keepdims=True))
        return [(powers / powers.sum(axes, keepdims=True)).astype(v[0].dtype)]

    return apply


def divide(v: list[Any], *_: Any) -> list[Array]:
    know(v[1].all())
    quotient = np.abs(v[0]) // np.abs(v[1])
    return [np.where((v[0] < 0) != (v[1] < 0), -quotient, quotient)]


def range_(v: list[Any], *_: Any) -> list[Array]:
    return [np.arange(int(v[0]), int(v[1]), int(v[2]), dtype=v[0].dtype)]


def if_(v: list[Any], a: dict[str, Any], scope: Scope) -> list[Any]:
    return scope.run(a["then_branch" if v[0] else "else_branch"], [])


def loop(v: list[Any], a: dict[str, Any], scope: Scope) -> list[Any]:
    """Loop; the rows of none have no known shape, and come out as None."""
    body, state, rows, go = a["body"], v[2:], [], v[1] is None or bool(v[1])
    count = len(v) - 2
    for trip in range(max(0, int(v[0]))):
        if not go:
            break
        after = scope.run(body, [np.array(trip), np.array(True), *state])
        go, state = v[1] is None or bool(after[0]), after[1 : 1 + count]
        rows.append(after[1 + count :])
    number = len(body.outputs) - 1 - count
    stacked: list[Any] = [np.stack(each) for each in zip(*rows, strict=True)]
    return [*state, *(stacked or [None] * number)]


def scan(v: list[Any], a: dict[str, Any], scope: Scope) -> list[Any]:
    """Scan; the rows of none have no known shape, and come out as None."""
    state, rows = v[0], []
    for row in np.moveaxis(v[1], a.get("scan_input_axes", [0])[0], 0):
        before = state
        state, *more = scope.run(a["body"], [state, row])
        know(state.shape == before.shape)
        rows.append(more)
    number = len(a["body"].outputs) - 1
    if not rows:
        return [state, *[None] * number]
    axes = a.get("scan_output_axes", [0] * number)
    given = zip(zip(*rows, strict=True), axes, strict=False)
    return [state, *(np.stack(each, axis) for each, axis in given)]


def call(name: str, v: list[Any], a: dict[str, Any], scope: Scope) -> list[Any]:
    made = scope.functions[name]
    inner = Scope({}, scope.functions, {"at": a.get("at", made.at)})
    omitted = [None] * (len(made.graph.inputs) - len(v))
    return inner.run(made.graph, [*v, *omitted])


def one(function: Callable[..., Any]) -> Apply:
    """A node with one output, calculated from its inputs alone."""
    return lambda v, a, scope: [np.asarray(function(*v))]


BINARY: dict[str, Callable[..., Any]] = {
    "Add": np.add,
    "Sub": np.subtract,
    "Mul": np.multiply,
    "Max": np.maximum,
}
BINARY |= {"Min": np.minimum}
COMPARED: Mapping[str, Callable[..., Any]]
COMPARED = {"Less": np.less, "Greater": np.greater, "Equal": np.equal}
UNARY: Mapping[str, Callable[..., Any]]
UNARY = {"Neg": np.negative, "Abs": np.abs, "Relu": lambda x: np.maximum(x, x.dtype.type(0))}
REDUCED: Mapping[str, Callable[..., Any]]
REDUCED = {"ReduceSum": np.sum, "ReduceMax": np.max, "ReduceMin": np.min, "ReduceMean": np.mean}
REDUCED |= {"ReduceL1": l1_norm}
