"""Random nodes of ONNX's own operators, at every opset, with the arrays that they run on.

A case has dimensions with names, and two sizes for each name: what is inferred of the names has to
hold for both. Nothing here knows the package.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from random import Random
from typing import Any, NamedTuple

import numpy as np
import onnx
from onnx import defs, helper, numpy_helper

Dims = Sequence[int | str]
FAR = (1 << 63) - 1


class Operand(NamedTuple):
    """An input of a node.

    Attributes:
        elements: Numbers, and names of dimensions; None for random data.
        data: Makes random data of a shape.
        given: "constant", "fed", or "computed" from the shapes of other inputs.
    """

    shape: tuple[int | str, ...]
    kind: str
    elements: tuple[Any, ...] | None = None
    data: Callable[[np.random.Generator, tuple[int, ...]], Any] | None = None
    given: str = "fed"


_FIRST_THAT_JOINS_INTEGERS = 4
"""Before, Concat takes floats only."""


@dataclass
class Case:
    """Nodes, and what goes into them.

    Attributes:
        sizes: Of each dimension with a name: two numbers.
        declared: How it is declared: "number" (the first of the two), "name", or "open".
    """

    opset: int
    nodes: list[onnx.NodeProto]
    inputs: dict[str, Operand]
    sizes: dict[str, tuple[int, int]]
    declared: dict[str, str]
    seed: int
    unranked: frozenset[str] = frozenset()

    def bindings(self) -> list[dict[str, int]]:
        """The sizes of the names: those of the first binding, and those of the second."""
        return [
            {
                name: pair[0 if self.declared[name] == "number" else which]
                for name, pair in self.sizes.items()
            }
            for which in (0, 1)
        ]

    def outputs(self) -> list[str]:
        return [name for node in self.nodes for name in node.output if name]

    def feeds(self, binding: Mapping[str, int]) -> dict[str, Any]:
        """The arrays that are fed."""
        generator = np.random.default_rng(self.seed)
        return {
            name: array_of(operand, binding, generator)
            for name, operand in self.inputs.items()
            if self._is_fed(operand)
        }

    def _is_fed(self, operand: Operand) -> bool:
        return operand.given == "fed" or (operand.given == "constant" and not self._fixed(operand))

    def _fixed(self, operand: Operand) -> bool:
        names = [*operand.shape, *(operand.elements or ())]
        return all(self.declared[name] == "number" for name in names if isinstance(name, str))

    def model(self) -> onnx.ModelProto:
        """The model; what is computed comes from the shapes of what is fed."""
        binding, generator = self.bindings()[0], np.random.default_rng(self.seed)
        inputs: list[onnx.ValueInfoProto] = []
        constants: list[onnx.TensorProto] = []
        nodes: list[onnx.NodeProto] = []
        for name, operand in self.inputs.items():
            kind = helper.np_dtype_to_tensor_dtype(np.dtype(operand.kind))
            if self._is_fed(operand):
                dims = [self._declared(dim) for dim in operand.shape]
                shape = None if name in self.unranked else dims
                inputs.append(helper.make_tensor_value_info(name, kind, shape))
            elif operand.given == "constant":
                array = array_of(operand, binding, generator)
                constants.append(numpy_helper.from_array(array, name))
            else:
                nodes += self._computed(name, operand, constants)
        graph = helper.make_graph(
            [*nodes, *self.nodes],
            "g",
            inputs,
            [onnx.ValueInfoProto(name=name) for name in self.outputs()],
            constants,
        )
        imports = [helper.make_opsetid("", self.opset)]
        return helper.make_model(graph, opset_imports=imports, ir_version=8)

    def _declared(self, dim: int | str) -> int | str | None:
        if isinstance(dim, int):
            return dim
        how = self.declared[dim]
        return self.sizes[dim][0] if how == "number" else dim if how == "name" else None

    def _computed(
        self, name: str, operand: Operand, constants: list[onnx.TensorProto]
    ) -> list[onnx.NodeProto]:
        """The nodes that read the elements of an operand from shapes."""
        nodes: list[onnx.NodeProto] = []

        def add(op_type: str, *inputs: str, **attributes: Any) -> str:
            output = f"{name}.{len(nodes)}"
            nodes.append(helper.make_node(op_type, inputs, [output], **attributes))
            return output

        def constant(items: Any) -> str:
            made = numpy_helper.from_array(np.array(items, np.int64), f"{name}.c{len(constants)}")
            constants.append(made)
            return made.name

        parts = []
        for element in operand.elements or ():
            if isinstance(element, str):
                source, place = next(
                    (key, each.shape.index(element))
                    for key, each in self.inputs.items()
                    if element in each.shape and self._is_fed(each)
                )
                at = constant([place] if operand.shape else place)
                parts.append(add("Gather", add("Shape", source), at))
            else:
                parts.append(constant([element] if operand.shape else element))
        if len(parts) == 1:
            nodes.append(helper.make_node("Identity", parts, [name]))
        else:
            nodes.append(helper.make_node("Concat", parts, [name], axis=0))
        return nodes


def array_of(operand: Operand, binding: Mapping[str, int], generator: np.random.Generator) -> Any:
    """The array of an operand for some sizes."""
    shape = tuple(binding[dim] if isinstance(dim, str) else dim for dim in operand.shape)
    dtype = np.dtype(operand.kind)
    if operand.elements is not None:
        made = [binding[each] if isinstance(each, str) else each for each in operand.elements]
        return np.array(made, dtype).reshape(shape)
    if operand.data is not None:
        return np.asarray(operand.data(generator, shape)).astype(dtype)
    if dtype.kind == "f":
        return np.asarray(generator.normal(size=shape)).astype(dtype)
    if dtype.kind == "b":
        return np.asarray(generator.random(shape) < 0.5)
    if dtype.kind in "OU":
        return np.array([f"s{k}" for k in range(int(np.prod(shape)))], object).reshape(shape)
    low = 0 if dtype.kind == "u" else -5
    return np.asarray(generator.integers(low, 6, shape)).astype(dtype)


@dataclass
class Draw:
    """Samples the parts of one case of an operator."""

    random: Random
    op_type: str
    opset: int
    sizes: dict[str, tuple[int, int]] = field(default_factory=dict)
    inputs: list[Operand | None] = field(default_factory=list)
    attributes: dict[str, Any] = field(default_factory=dict)
    outputs: int = 1

    def dim(self, least: int = 0, most: int = 5) -> str:
        """A new name of a dimension."""
        name = "NMCHWKLPQRSTUVXYZ"[len(self.sizes)]
        small = self.random.choice([least, least, 1])
        pair = [self.random.randint(max(least, 1), most), max(least, small)]
        if self.random.random() < 0.7:
            pair[1] = self.random.randint(least, most)
        if self.random.random() < 0.15:
            pair[0] = least
        self.sizes[name] = pair[0], pair[1]
        return name

    def dims(self, least: int, most: int, size: int = 0) -> tuple[str, ...]:
        """A shape of new names."""
        return tuple(self.dim(size) for _ in range(self.random.randint(least, most)))

    def data(self, *shape: int | str, kind: str = "float32", make: Any = None) -> None:
        """An input with random data."""
        self.inputs.append(Operand(shape, kind, data=make))

    def absent(self) -> None:
        self.inputs.append(None)

    def numbers(self, elements: Any, kind: str = "int64", give: str | None = None) -> None:
        """An input whose elements are given: a list, or one for a scalar."""
        is_list = isinstance(elements, (list, tuple))
        listed = tuple(elements) if is_list else (elements,)
        ways = ["constant"] * 4 + ["fed"]
        is_joined = len(listed) > 1 and self.opset < _FIRST_THAT_JOINS_INTEGERS
        if kind == "int64" and listed and not is_joined:
            ways += ["computed"] * 2
        if any(isinstance(each, str) for each in listed):
            ways = ["fed"] if is_joined else ["computed"] * 4 + ["fed"]
        way = give or self.random.choice(ways)
        self.inputs.append(Operand((len(listed),) if is_list else (), kind, listed, None, way))

    def operand(self, name: str, elements: Any, since: int, **options: Any) -> None:
        """An attribute before an opset, and an input from then on."""
        if self.opset < since:
            self.attributes[name] = elements
        else:
            self.numbers(elements, **options)

    def maybe(self, chance: float = 0.5) -> bool:
        return self.random.random() < chance

    def axis(self, rank: int, beyond: int = 0) -> int:
        """An axis of a rank, counted from the front or from the back."""
        return self.random.randint(-rank - beyond, rank + beyond - 1)

    def axes(self, rank: int, least: int = 0) -> list[int]:
        """Some axes, in any order, counted from either end."""
        count = self.random.randint(min(least, rank), rank)
        chosen = self.random.sample(range(rank), count)
        return [axis - rank if self.maybe(0.4) else axis for axis in chosen]

    def option(self, name: str, *values: Any, chance: float = 0.6) -> Any:
        """An attribute that may be left out; returns it, or None."""
        if not self.maybe(chance):
            return None
        self.attributes[name] = value = self.random.choice(values)
        return value

    def choose(self, *values: Any) -> Any:
        return self.random.choice(values)

    def int(self, low: int, high: int) -> int:
        return self.random.randint(low, high)


@cache
def versions(op_type: str) -> tuple[int, ...]:
    """The opsets at which an operator changed, without those that took it away."""
    return tuple(sorted(each.since_version for each in _schemas(op_type) if not each.deprecated))


@cache
def last_version(op_type: str) -> int:
    """The last opset that has an operator."""
    newest = versions(op_type)[-1]
    ends = [each.since_version for each in _schemas(op_type) if each.since_version > newest]
    return min(ends, default=defs.onnx_opset_version() + 1) - 1


def _schemas(op_type: str) -> list[defs.OpSchema]:
    return [each for each in _every_schema() if each.name == op_type and each.domain == ""]


@cache
def _every_schema() -> Sequence[defs.OpSchema]:
    return defs.get_all_schemas_with_history()


def sample(op_type: str, seed: int) -> Case:
    """A case of an operator at some opset at which it changed, or at another."""
    random = Random(f"{op_type} {seed}")
    changed, last = versions(op_type), last_version(op_type)
    lowest = max(changed[0], 7)
    opset = random.choice([*changed[:3], *changed, random.randint(min(lowest, last), last)])
    draw = Draw(random, op_type, opset)
    CASES[op_type](draw)
    names = [f"x{k}" for k in range(len(draw.inputs))]
    pairs = list(zip(names, draw.inputs, strict=True))
    node = helper.make_node(
        op_type,
        ["" if operand is None else name for name, operand in pairs],
        [f"y{k}" for k in range(draw.outputs)],
        **draw.attributes,
    )
    inputs = {name: operand for name, operand in pairs if operand is not None}
    return finished(random, opset, [node], inputs, draw.sizes, seed)


def finished(
    random: Random,
    opset: int,
    nodes: list[onnx.NodeProto],
    inputs: dict[str, Operand],
    sizes: dict[str, tuple[int, int]],
    seed: int,
) -> Case:
    """A case of these nodes, with declarations of every kind."""
    manner = random.choice(["number", "name", "name", "name", "open", "mixed", "mixed"])
    ways = ["number", "name", "open"]
    declared = {name: random.choice(ways) if manner == "mixed" else manner for name in sizes}
    unranked = frozenset(name for name in inputs if random.random() < 0.06)
    return Case(opset, nodes, inputs, sizes, declared, seed, unranked)


# What follows gives each operator its inputs and attributes. A case that its opset does not allow
# is left out where it is run.


def _unary(*kinds: str) -> Callable[[Draw], None]:
    def make(d: Draw) -> None:
        d.data(*d.dims(0, 4), kind=kinds[0] if d.opset < 6 else d.choose(*kinds))

    return make


def _positive(g: np.random.Generator, shape: tuple[int, ...]) -> Any:
    return g.uniform(0.1, 0.9, shape)


def _from_one(g: np.random.Generator, shape: tuple[int, ...]) -> Any:
    return g.uniform(1, 3, shape)


def _within(make: Callable[..., Any]) -> Callable[[Draw], None]:
    def case(d: Draw) -> None:
        d.data(*d.dims(0, 3), make=make)

    return case


def _broadcast_pair(d: Draw) -> tuple[tuple[int | str, ...], tuple[int | str, ...]]:
    whole = d.dims(0, 3)
    if d.opset < 7 and d.maybe(0.8):
        return whole, whole
    left = tuple(1 if d.maybe(0.25) else dim for dim in whole)
    right = tuple(1 if d.maybe(0.25) else dim for dim in whole)
    cut = d.int(0, len(whole)) if d.maybe() else 0
    pair = left, right[cut:]
    return pair if d.maybe() else (pair[1], pair[0])


def _not_zero(g: np.random.Generator, shape: tuple[int, ...]) -> Any:
    return g.integers(1, 6, shape) * g.choice([-1, 1], shape)


def _binary(*kinds: str, right: Any = None) -> Callable[[Draw], None]:
    def make(d: Draw) -> None:
        first, second = _broadcast_pair(d)
        kind = kinds[0] if d.opset < 7 else d.choose(*kinds)
        d.data(*first, kind=kind)
        d.data(*second, kind=kind, make=right)
        if d.opset < 7 and d.op_type not in ("Max", "Min", "Sum", "Mean", "Mod", "BitShift"):
            d.option("broadcast", 1, chance=0.4)

    return make


def _pow(d: Draw) -> None:
    first, second = _broadcast_pair(d)
    d.data(*first, make=_positive)
    d.data(*second)


def _mod(d: Draw) -> None:
    kind = d.choose("int64", "int32", "float32")
    first, second = _broadcast_pair(d)
    d.data(*first, kind=kind)
    d.data(*second, kind=kind, make=_not_zero)
    if kind == "float32" or d.maybe(0.3):
        d.attributes["fmod"] = 1


def _bit_shift(d: Draw) -> None:
    first, second = _broadcast_pair(d)
    d.data(*first, kind="uint32")
    d.data(*second, kind="uint32", make=lambda g, shape: g.integers(0, 5, shape))
    d.attributes["direction"] = d.choose("LEFT", "RIGHT")


def _where(d: Draw) -> None:
    whole = d.dims(0, 3)
    kind = d.choose("float32", "int64")
    for each in ("bool", kind, kind):
        shape = tuple(1 if d.maybe(0.25) else dim for dim in whole)
        d.data(*shape[d.int(0, len(whole)) if d.maybe(0.3) else 0 :], kind=each)


def _many(*kinds: str) -> Callable[[Draw], None]:
    def make(d: Draw) -> None:
        whole, kind = d.dims(0, 3), d.choose(*kinds)
        for _ in range(d.int(1, 3)):
            shape = whole if d.opset < 8 else tuple(1 if d.maybe(0.2) else n for n in whole)
            d.data(*shape, kind=kind)

    return make


def _axis_of(default: int, *, least: int = 1, beyond: int = 0) -> Callable[[Draw], None]:
    def make(d: Draw) -> None:
        shape = d.dims(least, 4)
        d.data(*shape)
        if d.maybe(0.8) and shape:
            d.attributes["axis"] = d.axis(len(shape), beyond)

    return make


def _flatten(d: Draw) -> None:
    shape = d.dims(0, 4)
    d.data(*shape)
    if d.maybe(0.8):
        d.attributes["axis"] = d.int(-len(shape), len(shape))


def _concat(d: Draw) -> None:
    shape = list(d.dims(1, 4))
    axis = d.axis(len(shape))
    for _ in range(d.int(1, 3)):
        if d.maybe(0.7):
            shape[axis] = d.choose(d.dim(), d.int(0, 3))
        d.data(*shape, kind="float32")
    if d.opset >= 4 or d.maybe(0.7):
        d.attributes["axis"] = axis


def _slice(d: Draw) -> None:
    shape = d.dims(1, 4)
    d.data(*shape, kind=d.choose("float32", "int64"))
    axes = d.axes(len(shape), 1)
    are_given = d.maybe(0.8)
    if not are_given:
        axes = list(range(d.int(1, len(shape))))
    bounds = (0, 1, 2, 4, -1, -2, -4, 7, FAR, (1 << 31) - 1, -FAR, -FAR - 1)
    starts, ends = ([d.choose(*bounds) for _ in axes] for _ in "se")
    if d.maybe(0.2) and d.opset > 9:
        d.choose(starts, ends)[d.int(0, len(axes) - 1)] = d.choose(*shape)
    d.operand("starts", starts, 10)
    d.operand("ends", ends, 10)
    steps = [d.choose(1, 1, 2, 3, -1, -2, FAR, -FAR) for _ in axes]
    has_steps = d.opset >= 10 and d.maybe(0.6)
    if are_given:
        d.operand("axes", axes, 10)
    elif has_steps:
        d.absent()
    if has_steps:
        d.numbers(steps)


def _squeeze(d: Draw) -> None:
    rank = d.int(0, 4)
    axes = d.axes(rank, 1)
    ones = {axis % rank for axis in axes}
    shape = tuple(1 if k in ones else d.dim() for k in range(rank))
    if d.maybe(0.15):
        shape = tuple(d.choose(1, d.dim()) for _ in range(rank))
    d.data(*shape, kind=d.choose("float32", "int64"))
    if d.maybe(0.85) and (axes or d.opset >= 13):
        d.operand("axes", axes, 13)


def _unsqueeze(d: Draw) -> None:
    shape = d.dims(0, 3)
    d.data(*shape, kind=d.choose("float32", "int64"))
    rank = len(shape) + d.int(1, 3)
    chosen = d.random.sample(range(rank), rank - len(shape))
    axes = [axis - rank if d.maybe(0.4) else axis for axis in chosen]
    d.operand("axes", axes, 13)


def _transpose(d: Draw) -> None:
    shape = d.dims(0, 4)
    d.data(*shape)
    if shape and d.maybe(0.8):
        perm = list(range(len(shape)))
        d.random.shuffle(perm)
        d.attributes["perm"] = perm


def _reshape(d: Draw) -> None:
    shape: list[int | str] = list(d.dims(1, 3))
    if d.maybe(0.5):
        shape[d.int(0, len(shape) - 1)] = d.choose(2, 4, 6)
    d.data(*shape, kind="float32" if d.opset < 5 else d.choose("float32", "int64"))
    asked: list[int | str] = []
    for place, dim in enumerate(shape):
        asked.append(d.choose(dim, dim, 0 if len(asked) == place else dim))
    if d.maybe(0.4):
        d.random.shuffle(asked)
    if d.maybe(0.6):
        asked[d.int(0, len(asked) - 1)] = -1
    if d.maybe(0.4):
        asked.insert(d.int(0, len(asked)), d.choose(1, 1, 2, -1))
    if d.opset < 5:
        asked = [dim if isinstance(dim, int) else d.choose(0, -1) for dim in asked]
    d.operand("shape", asked, 5)
    if d.opset >= 14:
        d.option("allowzero", 0, 1, chance=0.4)


def _expand(d: Draw) -> None:
    shape = tuple(d.choose(dim, dim, 1) for dim in d.dims(0, 3))
    d.data(*shape)
    asked = [d.choose(dim, 1, d.int(0, 3)) if dim != 1 else d.int(0, 3) for dim in shape]
    asked = asked[d.int(0, len(asked)) :] if d.maybe(0.3) else [*([2] * d.int(0, 2)), *asked]
    d.numbers(asked)


def _tile(d: Draw) -> None:
    shape = d.dims(1, 3)
    d.data(*shape, kind=d.choose("float32", "int64"))
    if d.opset < 6:
        d.numbers(d.int(0, 3), kind="float32")
        d.numbers(d.int(0, len(shape) - 1), kind="float32")
        d.inputs[0] = Operand(shape, "float32")
    else:
        d.numbers([d.choose(0, 1, 2, 3, *shape) for _ in shape])


def _pad(d: Draw) -> None:
    shape = d.dims(1, 3, 1)
    d.data(*shape)
    mode = d.option("mode", "constant", "reflect", "edge", *(["wrap"] if d.opset >= 19 else []))
    axes = d.axes(len(shape), 1) if d.opset >= 18 and d.maybe(0.6) else None
    count = len(shape) if axes is None else len(axes)
    pads = [d.choose(0, 0, 1, 2, -1) for _ in range(2 * count)]
    name = "paddings" if d.opset < 2 else "pads"
    d.operand(name, pads, 11)
    if d.opset >= 11 and (axes is not None or d.maybe(0.3)):
        if d.maybe() and mode in (None, "constant"):
            d.numbers(1.5, kind="float32")
        elif axes is not None:
            d.absent()
    elif d.opset < 11 and d.maybe(0.3):
        d.attributes["value"] = 1.5
    if axes is not None:
        d.numbers(axes, kind=d.choose("int64", "int32"))


def _gather(d: Draw) -> None:
    shape = d.dims(1, 3, 2)
    d.data(*shape)
    axis = d.axis(len(shape)) if d.maybe(0.8) else None
    if axis is not None:
        d.attributes["axis"] = axis
    low = 0 if d.opset < 11 else -2
    kind = d.choose("int64", "int32")
    if d.maybe(0.3):
        d.numbers(d.int(low, 1), kind)
    elif d.maybe(0.5):
        d.numbers([d.int(low, 1) for _ in range(d.int(0, 3))], kind)
    else:
        d.data(*d.dims(0, 3), kind=kind, make=lambda g, s: g.integers(low, 2, s))


def _gather_elements(d: Draw) -> None:
    shape = d.dims(1, 3, 2)
    d.data(*shape)
    axis = d.axis(len(shape))
    d.attributes["axis"] = axis
    at = list(shape)
    at[axis] = d.dim()
    low = 0 if d.opset < 11 else -2
    d.data(*at, kind="int64", make=lambda g, s: g.integers(low, 2, s))


def _gather_nd(d: Draw) -> None:
    shape = d.dims(1, 4, 2)
    d.data(*shape)
    batch = d.int(0, len(shape) - 1) if d.opset >= 12 else 0
    if batch or (d.maybe(0.2) and d.opset >= 12):
        d.attributes["batch_dims"] = batch
    depth = d.int(1, len(shape) - batch)
    at: list[int | str] = [*shape[:batch], *d.dims(0, 2), depth]
    d.data(*at, kind="int64", make=lambda g, s: g.integers(-2, 2, s))


def _scatter(d: Draw) -> None:
    shape = d.dims(1, 3, 2)
    d.data(*shape)
    axis = d.axis(len(shape)) if d.opset >= 11 else d.int(0, len(shape) - 1)
    d.attributes["axis"] = axis
    at: list[int | str] = [*shape]
    at[axis] = 1
    d.data(*at, kind="int64", make=lambda g, s: g.integers(0, 2, s))
    d.data(*at)
    if d.op_type == "ScatterElements" and d.opset >= 16:
        d.option("reduction", "none", "add", "mul", *(["max"] if d.opset >= 18 else []))


def _scatter_nd(d: Draw) -> None:
    shape = d.dims(1, 3, 2)
    d.data(*shape)
    depth = d.int(1, len(shape))
    d.data(1, depth, kind="int64", make=lambda g, s: g.integers(0, 2, s))
    d.data(1, *shape[depth:])
    if d.opset >= 16:
        d.option("reduction", "none", "add", "mul")


def _reduce(d: Draw) -> None:
    shape = d.dims(0, 4, 1)
    kind = "float32" if d.op_type != "ReduceSum" else d.choose("float32", "int64")
    d.data(*shape, kind=kind, make=_from_one if "Log" in d.op_type else None)
    d.option("keepdims", 0, 1)
    since = 13 if d.op_type == "ReduceSum" else 18
    axes = d.axes(len(shape))
    if d.maybe(0.8) and (axes or d.opset >= since):
        d.operand("axes", axes, since)
    if d.opset >= since:
        d.option("noop_with_empty_axes", 0, 1, chance=0.4)


def _arg(d: Draw) -> None:
    shape = d.dims(1, 4, 1)
    d.data(*shape)
    if d.maybe(0.8):
        d.attributes["axis"] = d.axis(len(shape))
    d.option("keepdims", 0, 1)
    if d.opset >= 12:
        d.option("select_last_index", 0, 1)


def _cumulative(d: Draw) -> None:
    shape = d.dims(1, 3)
    d.data(*shape, kind=d.choose("float32", "int64"))
    d.numbers(d.axis(len(shape)), kind=d.choose("int32", "int64"))
    d.option("exclusive", 0, 1)
    d.option("reverse", 0, 1)


def _top_k(d: Draw) -> None:
    shape = d.dims(1, 3, 1)
    d.data(*shape)
    axis = d.axis(len(shape)) if d.maybe(0.7) else None
    if axis is not None:
        d.attributes["axis"] = axis
    count = d.choose(0, 1, 1, 2)
    if d.opset < 10:
        d.attributes["k"] = count
    else:
        d.numbers([d.choose(count, count, shape[-1 if axis is None else axis])])
    if d.opset >= 11:
        d.option("largest", 0, 1)
    d.outputs = 2


def _window(d: Draw, sides: int, *, pool: bool) -> list[int]:
    """The window of a pool or a convolution; its reach is in `_reach`."""
    kernel = [d.int(1, 3) for _ in range(sides)]
    if d.maybe(0.7):
        d.attributes["strides"] = [d.int(1, 3) for _ in kernel]
    may_dilate = d.op_type not in ("AveragePool", "LpPool", "MaxPool") or d.opset >= {
        "MaxPool": 10,
        "LpPool": 18,
        "AveragePool": 19,
    }.get(d.op_type, 1)
    if may_dilate and d.maybe(0.3):
        d.attributes["dilations"] = [d.int(1, 2) for _ in kernel]
    padding = d.option("auto_pad", "NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER", chance=0.4)
    if padding in (None, "NOTSET") and d.maybe(0.6):
        most = min(kernel) - 1 if pool else 2
        d.attributes["pads"] = [d.int(0, most) for _ in range(2 * sides)]
    return kernel


def _reached(d: Draw, kernel: list[int]) -> tuple[str, ...]:
    """Sides that are not shorter than the window."""
    dilations = d.attributes.get("dilations", [1] * len(kernel))
    return tuple(d.dim((k - 1) * by + 1, 9) for k, by in zip(kernel, dilations, strict=True))


def _pool(d: Draw) -> None:
    kernel = _window(d, d.int(1, 3), pool=True)
    d.data(d.dim(), d.dim(1), *_reached(d, kernel))
    d.attributes["kernel_shape"] = kernel
    since = {"MaxPool": 10, "AveragePool": 10, "LpPool": 18}[d.op_type]
    if d.opset >= since:
        d.option("ceil_mode", 0, 1, chance=0.5)
    if d.op_type == "AveragePool" and d.opset >= 7:
        d.option("count_include_pad", 0, 1)
    if d.op_type == "MaxPool" and d.opset >= 8 and d.maybe(0.4):
        d.outputs = 2


def _conv(d: Draw) -> None:
    sides, group = d.int(1, 3), d.choose(1, 1, 2)
    integer = d.op_type == "ConvInteger"
    channels, made = d.int(1, 3), d.int(1, 3)
    kernel, kind = _window(d, sides, pool=False), "uint8" if integer else "float32"
    d.data(d.dim(), channels * group, *_reached(d, kernel), kind=kind)
    d.data(made * group, channels, *kernel, kind=kind)
    if group > 1:
        d.attributes["group"] = group
    if d.maybe(0.4):
        d.attributes["kernel_shape"] = kernel
    if not integer and d.maybe(0.3):
        d.data(made * group)


def _conv_transpose(d: Draw) -> None:
    sides, group = d.int(1, 2), d.choose(1, 1, 2)
    channels, made = d.int(1, 3), d.int(1, 3)
    d.data(d.dim(1), channels * group, *(d.dim(1, 6) for _ in range(sides)))
    kernel = _window(d, sides, pool=False)
    d.data(channels * group, made, *kernel)
    if group > 1:
        d.attributes["group"] = group
    if d.maybe(0.4):
        d.attributes["kernel_shape"] = kernel
    strides = d.attributes.get("strides", [1] * sides)
    if d.maybe(0.3):
        d.attributes["output_padding"] = [d.int(0, max(0, s - 1)) for s in strides]
    if d.maybe(0.15):
        d.attributes["output_shape"] = [d.int(6, 9) for _ in kernel]


def _global_pool(d: Draw) -> None:
    d.data(*d.dims(3, 5, 1))


def _lp_normalization(d: Draw) -> None:
    shape = d.dims(1, 4, 1)
    d.data(*shape)
    d.attributes["axis"] = d.axis(len(shape))
    d.option("p", 1, 2)


def _blocks(d: Draw) -> None:
    size = d.choose(1, 2, 3)
    d.attributes["blocksize"] = size
    if d.op_type == "DepthToSpace":
        d.data(d.dim(), d.choose(size * size, 2 * size * size), d.dim(), d.dim())
        if d.opset >= 11:
            d.option("mode", "DCR", "CRD")
    else:
        d.data(d.dim(), d.dim(), *(d.choose(size, 2 * size, d.dim()) for _ in "hw"))


def _resize(d: Draw) -> None:
    rank = d.int(1, 4)
    shape = d.dims(rank, rank, 1)
    d.data(*shape)
    mode = d.choose("nearest", "linear") if rank in (2, 4) else "nearest"
    d.attributes["mode"] = mode
    if d.opset == 10 or d.op_type == "Upsample":
        low = [1.0] if d.op_type == "Upsample" else [0.5, 0.6, 1.0]
        scales = [d.choose(*low, 1.0, 1.5, 2.0, 2.3, 3.0) for _ in shape]
        if d.op_type == "Upsample" and d.opset < 7:
            d.attributes["height_scale"], d.attributes["width_scale"] = 2.0, 1.5
        else:
            d.operand("scales", scales, 9, kind="float32")
        return
    axes = d.axes(rank, 1) if d.opset >= 18 and d.maybe(0.4) else None
    count = rank if axes is None else len(axes)
    if axes is not None:
        d.attributes["axes"] = axes
    if d.opset >= 13 or d.maybe():
        if d.opset >= 13:
            d.absent()
        else:
            d.numbers([], kind="float32", give="constant")
    else:
        d.data(2 * rank)
    if d.maybe():
        d.numbers(
            [d.choose(0.5, 0.6, 1.0, 1.5, 2.0, 2.3, 0.1) for _ in range(count)], kind="float32"
        )
    else:
        if d.opset >= 13:
            d.absent()
        else:
            d.numbers([], kind="float32", give="constant")
        places = range(rank) if axes is None else [axis % rank for axis in axes]
        d.numbers([d.choose(1, 2, 3, 5, shape[place]) for place in places])
        if d.opset >= 18:
            d.option("keep_aspect_ratio_policy", "stretch", "not_larger", "not_smaller", chance=0.4)
    d.option(
        "coordinate_transformation_mode", "half_pixel", "asymmetric", "align_corners", chance=0.4
    )


def _one_hot(d: Draw) -> None:
    shape = d.dims(0, 3)
    d.data(*shape, kind="int64", make=lambda g, s: g.integers(0 if d.opset < 11 else -2, 2, s))
    depth = d.int(2, 4)
    if d.maybe():
        d.numbers(depth)
    else:
        d.numbers([depth])
    d.numbers([0.0, 1.0], kind="float32", give="constant")
    if d.maybe(0.7):
        d.attributes["axis"] = d.int(-len(shape) - 1, len(shape))


def _range(d: Draw) -> None:
    if d.maybe(0.6):
        d.data(d.dim(), d.dim())  # for names; not an input of the node
        source = d.inputs.pop()
        assert source is not None
        for element in (d.choose(0, 1, -2, *source.shape), d.choose(4, -3, *source.shape)):
            d.numbers(element, give="fed" if isinstance(element, str) else None)
        d.numbers(d.choose(1, 2, -1, -3, 3))
    else:
        for element in (d.choose(0, 0.5, -2), d.choose(4, 2.5, -3.5), d.choose(0.5, 1, -1, 2)):
            d.numbers(float(element), kind="float32")


def _constant_of_shape(d: Draw) -> None:
    d.numbers([d.int(0, 3) for _ in range(d.int(0, 3))])
    if d.maybe():
        d.attributes["value"] = numpy_helper.from_array(
            np.array([d.choose(3, -2)], d.choose("int64", "float32"))
        )


def _non_zero(d: Draw) -> None:
    d.data(*d.dims(1, 3), kind=d.choose("float32", "int64", "bool"))


def _compress(d: Draw) -> None:
    shape = d.dims(1, 3, 1)
    d.data(*shape)
    d.numbers([d.choose(True, False)], kind="bool")
    if d.maybe(0.7):
        d.attributes["axis"] = d.axis(len(shape)) if d.opset >= 11 else d.int(0, len(shape) - 1)


def _mat_mul(d: Draw) -> None:
    kind = {"MatMulInteger": "uint8"}.get(d.op_type, "float32")
    rows, inner, columns, batch = d.dim(), d.dim(1), d.dim(), d.dims(0, 2)
    first: tuple[int | str, ...] = (*batch, rows, inner) if d.maybe(0.7) else (inner,)
    second = (*batch[d.int(0, len(batch)) :], inner, columns) if d.maybe(0.8) else (inner,)
    if d.maybe(0.3) and len(first) > 2:
        first = (1, *first[1:])
    d.data(*first, kind=kind)
    d.data(*second, kind=kind)


def _gemm(d: Draw) -> None:
    rows, inner, columns = d.dim(), d.dim(1), d.dim()
    a, b = d.option("transA", 0, 1), d.option("transB", 0, 1)
    d.data(*((inner, rows) if a else (rows, inner)))
    d.data(*((columns, inner) if b else (inner, columns)))
    if d.opset < 7:
        d.attributes["broadcast"] = 1
    if d.opset < 11 or d.maybe(0.7):
        d.data(*d.choose((rows, columns), (columns,), (1,), (1, columns), (rows, 1)))
    d.option("alpha", 0.5)
    d.option("beta", 2.0)


def _einsum(d: Draw) -> None:
    a, b, c = d.dim(), d.dim(), d.dim()
    cases: list[tuple[str, list[tuple[int | str, ...]]]] = [
        ("ij,jk->ik", [(a, b), (b, c)]),
        ("ij,jk", [(a, b), (b, c)]),
        ("ij->ji", [(a, b)]),
        ("ij->", [(a, b)]),
        ("...ij,...jk->...ik", [(2, a, b), (2, b, c)]),
        ("...i,...i->...", [(a, b), (a, b)]),
        ("ii->i", [(a, a)]),
        ("ba", [(a, b)]),
        ("i,j->ij", [(a,), (b,)]),
        ("bij,bjk->bik", [(c, a, b), (c, b, 2)]),
    ]
    text, shapes = d.random.choice(cases)
    d.attributes["equation"] = text
    for shape in shapes:
        d.data(*shape)


def _shape(d: Draw) -> None:
    d.data(*d.dims(0, 4))
    if d.opset >= 15:
        d.option("start", 0, 1, 2, -1, -2, 5, -7)
        d.option("end", 0, 1, 2, -1, -2, 5, -7)


def _size(d: Draw) -> None:
    d.data(*d.dims(0, 3))


def _cast(d: Draw) -> None:
    kind = d.choose("float32", "int64", "bool", "int32", "float64")
    d.data(*d.dims(0, 3), kind=kind)
    to = d.choose("FLOAT", "INT64", "BOOL", "INT32", "DOUBLE", "UINT8")
    if to == "UINT8":
        d.inputs[0] = d.inputs[0] and d.inputs[0]._replace(data=_from_one)
    d.attributes["to"] = to if d.opset < 6 else onnx.TensorProto.DataType.Value(to)


def _cast_like(d: Draw) -> None:
    d.data(*d.dims(0, 3))
    d.data(*d.dims(0, 2), kind=d.choose("int64", "float64", "bool"))


def _clip(d: Draw) -> None:
    d.data(*d.dims(0, 3))
    low, high = d.maybe(), d.maybe()
    if d.opset < 11:
        if low:
            d.attributes["min"] = -0.5
        if high:
            d.attributes["max"] = 0.5
        return
    if low:
        d.numbers(-0.5, kind="float32")
    elif high:
        d.absent()
    if high:
        d.numbers(0.5, kind="float32")


def _trilu(d: Draw) -> None:
    d.data(*d.dims(2, 4))
    if d.maybe(0.6):
        d.numbers(d.choose(0, 1, -1, 4))
    d.option("upper", 0, 1)


def _reverse_sequence(d: Draw) -> None:
    shape = d.dims(2, 3, 1)
    d.data(*shape)
    batch, time = d.choose((0, 1), (1, 0))
    d.data(shape[batch], kind="int64", make=lambda g, s: np.ones(s))
    d.attributes |= {"batch_axis": batch, "time_axis": time}


def _unique(d: Draw) -> None:
    shape = d.dims(1, 3, 1)
    d.data(*shape, kind="int64", make=lambda g, s: g.integers(0, 2, s))
    if d.maybe():
        d.attributes["axis"] = d.axis(len(shape))
    d.option("sorted", 0, 1)
    d.outputs = d.int(1, 4)


def _grid_sample(d: Draw) -> None:
    sides = 2 if d.opset < 20 else d.choose(2, 2, 3)
    batch = d.dim(1)
    d.data(batch, d.dim(1), *(d.dim(2) for _ in range(sides)))  # what is between corners, if any
    d.data(
        batch, *(d.dim() for _ in range(sides)), sides, make=lambda g, s: g.uniform(-1.2, 1.2, s)
    )
    names = ("bilinear", "nearest", "bicubic") if d.opset < 20 else ("linear", "nearest", "cubic")
    d.option("mode", *names[: 3 if sides == 2 else 2])
    d.option("align_corners", 0, 1)
    d.option("padding_mode", "zeros", "border", "reflection")


def _affine_grid(d: Draw) -> None:
    sides, batch = d.choose(2, 3), d.dim(1)
    d.data(batch, sides, sides + 1)
    d.numbers([batch, 2, *(d.int(2, 3) for _ in range(sides))])
    d.option("align_corners", 0, 1)


def _center_crop_pad(d: Draw) -> None:
    shape = d.dims(1, 3, 1)
    d.data(*shape)
    axes = d.axes(len(shape), 1) if d.maybe() else None
    if axes is not None:
        d.attributes["axes"] = axes
    d.numbers([d.int(1, 6) for _ in (shape if axes is None else axes)])


def _col2im(d: Draw) -> None:
    height, width = d.int(3, 5), d.int(3, 5)
    block, channels = (d.int(1, 2), d.int(1, 2)), d.int(1, 2)
    places = (height - block[0] + 1) * (width - block[1] + 1)
    d.data(d.dim(1), channels * block[0] * block[1], places)
    d.numbers([height, width])
    d.numbers(list(block))


def _batch_normalization(d: Draw) -> None:
    shape = d.dims(2, 4, 1)
    d.data(*shape)
    for make in (None, None, None, _positive):
        d.data(shape[1], make=make)
    if d.opset < 7:
        d.attributes["is_test"] = 1
        if d.opset < 6:
            d.attributes["consumed_inputs"] = [0, 0, 0, 1, 1]
    d.option("epsilon", 1e-3)
    if d.opset >= 14 and d.maybe(0.3):
        d.attributes["training_mode"] = 1
        d.outputs = 3


def _channel_normalization(d: Draw) -> None:
    shape = d.dims(3, 4, 1)
    d.data(*shape)
    d.data(shape[1])
    d.data(shape[1])


def _group_normalization(d: Draw) -> None:
    groups, each = d.int(1, 3), d.int(1, 2)
    d.data(d.dim(1), groups * each, *d.dims(1, 2, 1))
    count = groups if d.opset < 21 else groups * each
    d.data(count)
    d.data(count)
    d.attributes["num_groups"] = groups


def _last_normalization(d: Draw) -> None:
    shape = d.dims(1, 3, 1)
    d.data(*shape)
    axis = d.axis(len(shape)) if d.maybe(0.7) else -1
    d.attributes["axis"] = axis
    d.data(*shape[axis:])
    if d.op_type == "LayerNormalization":
        if d.maybe():
            d.data(*shape[axis:])
        d.outputs = d.choose(1, 3)


def _lrn(d: Draw) -> None:
    d.data(*d.dims(4, 4, 1))
    d.attributes["size"] = d.choose(1, 3, 5)


def _mean_variance(d: Draw) -> None:
    d.data(*d.dims(4, 4, 1))
    if d.maybe(0.4):
        d.attributes["axes"] = d.choose([0, 2, 3], [2, 3], [1], [0, -1])


def _dropout(d: Draw) -> None:
    d.data(*d.dims(1, 3))
    if d.opset < 7:
        d.attributes["is_test"] = 1
    if d.opset < 12:
        d.option("ratio", 0.3)
    elif d.maybe():
        d.numbers(0.3, kind="float32")
    if d.opset >= 12:
        d.outputs = d.choose(1, 2)


def _recurrent(d: Draw) -> None:
    gates = {"RNN": 1, "GRU": 3, "LSTM": 4}[d.op_type]
    direction = d.option("direction", "forward", "reverse", "bidirectional", chance=0.5)
    ways, hidden = 2 if direction == "bidirectional" else 1, d.int(1, 3)
    time, batch, size = d.dim(1), d.dim(1), d.int(1, 3)
    d.data(time, batch, size)
    d.data(ways, gates * hidden, size)
    d.data(ways, gates * hidden, hidden)
    d.attributes["hidden_size"] = hidden
    if d.maybe(0.3):
        d.data(ways, 2 * gates * hidden)
    d.outputs = d.int(1, 3 if gates == 4 else 2)


def _quantize(d: Draw) -> None:
    shape = d.dims(1, 3, 1)
    d.data(*shape)
    if d.opset >= 13 and d.maybe(0.5):
        axis = d.axis(len(shape))
        d.attributes["axis"] = axis
        d.data(shape[axis], make=_positive)
        d.data(shape[axis], kind="uint8")
    else:
        d.numbers(0.25, kind="float32")
        if d.maybe():
            d.numbers(3, kind=d.choose("uint8", "int8"))


def _dynamic_quantize(d: Draw) -> None:
    d.data(*d.dims(0, 3, 1))
    d.outputs = 3


def _dequantize(d: Draw) -> None:
    shape, kind = d.dims(1, 3, 1), d.choose("uint8", "int8")
    d.data(*shape, kind=kind)
    if d.opset >= 13 and d.maybe(0.5):
        axis = d.axis(len(shape))
        d.attributes["axis"] = axis
        d.data(shape[axis], make=_positive)
        d.data(shape[axis], kind=kind)
    else:
        d.numbers(0.25, kind="float32")
        if d.maybe():
            d.numbers(3, kind=kind)


def _q_linear_mat_mul(d: Draw) -> None:
    rows, inner, columns = d.dim(1), d.dim(1), d.dim(1)
    for shape in ((rows, inner), (inner, columns)):
        d.data(*shape, kind="uint8")
        d.numbers(0.25, kind="float32")
        d.numbers(3, kind="uint8")
    d.numbers(0.5, kind="float32")
    d.numbers(5, kind="uint8")


def _q_linear_conv(d: Draw) -> None:
    kernel = [d.int(1, 3), d.int(1, 3)]
    d.data(d.dim(1), 2, d.dim(3, 7), d.dim(3, 7), kind="uint8")
    d.numbers(0.25, kind="float32")
    d.numbers(3, kind="uint8")
    d.data(3, 2, *kernel, kind="uint8")
    d.numbers(0.25, kind="float32")
    d.numbers(3, kind="uint8")
    d.numbers(0.5, kind="float32")
    d.numbers(5, kind="uint8")
    d.option("strides", [1, 2])
    d.option("pads", [1, 0, 1, 1])


def _eye_like(d: Draw) -> None:
    d.data(*d.dims(2, 2))
    d.option("k", 0, 1, -1)
    d.option("dtype", onnx.TensorProto.INT64, onnx.TensorProto.DOUBLE)


def _det(d: Draw) -> None:
    side = d.dim(1)
    d.data(*d.dims(0, 2), side, side)


def _p_relu(d: Draw) -> None:
    shape = d.dims(1, 3)
    d.data(*shape)
    if d.opset < 7:
        d.data(*d.choose((1,), shape[1:2] or (1,)))
    else:
        d.data(*(d.choose(1, dim) for dim in shape[d.int(0, len(shape)) :]))


def _max_roi_pool(d: Draw) -> None:
    d.data(1, d.dim(1), d.dim(2), d.dim(2))
    d.data(d.dim(), 5, make=lambda g, s: np.tile([0, 0, 0, 1, 1], (s[0], 1)))
    d.attributes["pooled_shape"] = [d.int(1, 2), d.int(1, 2)]


def _roi_align(d: Draw) -> None:
    count = d.dim()
    d.data(1, d.dim(1), d.dim(2), d.dim(2))
    d.data(count, 4, make=lambda g, s: np.tile([0, 0, 1, 1], (s[0], 1)))
    d.data(count, kind="int64", make=lambda g, s: np.zeros(s))
    d.option("output_height", 1, 2)
    d.option("output_width", 1, 2)
    d.option("mode", "avg", "max")
    d.attributes["sampling_ratio"] = 2


def _max_unpool(d: Draw) -> None:
    shape = (d.dim(1), d.dim(1), d.dim(1), d.dim(1))
    d.data(*shape)
    d.data(*shape, kind="int64", make=lambda g, s: np.arange(np.prod(s)).reshape(s))
    d.attributes["kernel_shape"] = [2, 2]
    d.option("strides", [1, 2], [2, 2], chance=0.9)


def _non_max_suppression(d: Draw) -> None:
    boxes, batch = d.dim(1), d.dim(1)
    d.data(batch, boxes, 4, make=_positive)
    d.data(batch, d.dim(1), boxes, make=_positive)
    d.numbers(d.int(0, 3))


def _dft(d: Draw) -> None:
    shape = (d.dim(1), *d.dims(1, 2, 1))
    d.data(*shape, d.choose(1, 2))
    axis = d.int(1, len(shape) - 1)
    length = d.choose(None, 2, 3, 4)
    if d.opset < 20:
        d.attributes["axis"] = axis
        if length:
            d.numbers(length)
    else:
        if length:
            d.numbers(length)
        else:
            d.absent()
        d.numbers(axis)
    if d.option("onesided", 0, 1) != 1:  # else engines differ in what they add to the half
        d.option("inverse", 0, 1, chance=0.3)


def _stft(d: Draw) -> None:
    d.data(d.dim(1), d.dim(5, 9), 1)
    d.numbers(d.int(1, 3))
    d.data(4, make=_positive)
    d.option("onesided", 0, 1)


def _window_function(d: Draw) -> None:
    d.numbers(d.int(1, 6))
    d.option("periodic", 0, 1)


def _mel(d: Draw) -> None:
    for size in (d.int(2, 5), d.int(8, 16), d.int(4000, 8000)):
        d.numbers(size)
    d.numbers(100.0, kind="float32")
    d.numbers(2000.0, kind="float32")


def _loss(d: Draw) -> None:
    batch, places = d.dim(1), d.dims(0, 2, 1)
    d.data(batch, 3, *places)
    d.data(batch, *places, kind="int64", make=lambda g, s: g.integers(0, 3, s))
    if d.maybe(0.3):
        d.data(3, make=_positive)
    d.option("reduction", "none", "mean", "sum")
    if d.op_type == "SoftmaxCrossEntropyLoss":
        d.outputs = d.choose(1, 2)


def _identity(d: Draw) -> None:
    d.data(*d.dims(0, 4), kind=d.choose("float32", "int64", "bool"))


def _max_or_min(d: Draw) -> None:
    _many("float32", "int64" if d.opset >= 12 else "float32")(d)


def _string_concat(d: Draw) -> None:
    first, second = _broadcast_pair(d)
    d.data(*first, kind="object")
    d.data(*second, kind="object")


def _rotary(d: Draw) -> None:
    batch, heads, length, size = d.dim(1), d.dim(1), d.dim(1), d.choose(2, 4)
    d.data(batch, heads, length, size)
    d.data(batch, length, size // 2)
    d.data(batch, length, size // 2)
    d.option("interleaved", 0, 1)


def _attention(d: Draw) -> None:
    batch, heads, queries, keys = d.dim(1), d.int(1, 2), d.dim(1), d.dim(1)
    size, other = d.int(1, 3), d.int(1, 3)
    if d.maybe():
        d.data(batch, heads, queries, size)
        d.data(batch, heads, keys, size)
        d.data(batch, heads, keys, other)
    else:
        d.data(batch, queries, heads * size)
        d.data(batch, keys, heads * size)
        d.data(batch, keys, heads * other)
        d.attributes |= {"q_num_heads": heads, "kv_num_heads": heads}


def _tensor_scatter(d: Draw) -> None:
    batch, size, length = d.dim(1), d.int(1, 3), d.dim(3)
    d.data(batch, length, size)
    d.data(batch, d.int(1, 2), size)
    d.data(batch, kind="int64", make=lambda g, s: np.zeros(s))


_FLOATING = (
    *("Acos", "Asin", "Atan", "Atanh", "Cos", "Cosh", "Sin", "Sinh", "Asinh", "Tan", "Tanh"),
    *("Elu", "Erf", "Exp", "Floor", "Ceil", "HardSigmoid", "HardSwish", "LeakyRelu", "Mish"),
    *("Relu", "Round", "Selu", "Shrink", "Sigmoid", "Softplus", "Softsign", "ThresholdedRelu"),
    *("Celu", "Gelu", "Swish", "IsNaN", "IsInf", "Reciprocal"),
)
_REDUCED = ("L1", "L2", "LogSum", "LogSumExp", "Max", "Mean", "Min", "Prod", "Sum", "SumSquare")

CASES: Mapping[str, Callable[[Draw], None]] = {
    **dict.fromkeys(_FLOATING, _within(_positive)),
    **dict.fromkeys(("Acosh", "Log", "Sqrt"), _within(_from_one)),
    **dict.fromkeys(("Abs", "Neg", "Sign"), _unary("float32", "int64")),
    **dict.fromkeys(("Add", "Sub", "Mul"), _binary("float32", "int64")),
    **dict.fromkeys(("And", "Or", "Xor"), _binary("bool")),
    **dict.fromkeys(("Less", "Greater", "LessOrEqual", "GreaterOrEqual"), _binary("float32")),
    **dict.fromkeys(("BitwiseAnd", "BitwiseOr", "BitwiseXor"), _binary("int32")),
    **dict.fromkeys(("Sum", "Mean"), _many("float32")),
    **dict.fromkeys(("Max", "Min"), _max_or_min),
    **dict.fromkeys(("Softmax", "LogSoftmax", "Hardmax"), _axis_of(1)),
    **{f"Reduce{name}": _reduce for name in _REDUCED},
    **dict.fromkeys(("ArgMax", "ArgMin"), _arg),
    **dict.fromkeys(("CumSum", "CumProd"), _cumulative),
    **dict.fromkeys(("AveragePool", "LpPool", "MaxPool"), _pool),
    **dict.fromkeys(("Conv", "ConvInteger"), _conv),
    **dict.fromkeys(("GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool"), _global_pool),
    **dict.fromkeys(("DepthToSpace", "SpaceToDepth"), _blocks),
    **dict.fromkeys(("Resize", "Upsample"), _resize),
    **dict.fromkeys(("MatMul", "MatMulInteger"), _mat_mul),
    **dict.fromkeys(("Scatter", "ScatterElements"), _scatter),
    **dict.fromkeys(("RNN", "GRU", "LSTM"), _recurrent),
    **dict.fromkeys(("LayerNormalization", "RMSNormalization"), _last_normalization),
    **dict.fromkeys(("HannWindow", "HammingWindow", "BlackmanWindow"), _window_function),
    **dict.fromkeys(("NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss"), _loss),
    "AffineGrid": _affine_grid,
    "Attention": _attention,
    "BatchNormalization": _batch_normalization,
    "BitShift": _bit_shift,
    "BitwiseNot": _unary("int32"),
    "Cast": _cast,
    "CastLike": _cast_like,
    "CenterCropPad": _center_crop_pad,
    "Clip": _clip,
    "Col2Im": _col2im,
    "Compress": _compress,
    "Concat": _concat,
    "ConstantOfShape": _constant_of_shape,
    "ConvTranspose": _conv_transpose,
    "DFT": _dft,
    "DequantizeLinear": _dequantize,
    "Det": _det,
    "Div": _binary("float32", "int64", right=_not_zero),
    "Dropout": _dropout,
    "DynamicQuantizeLinear": _dynamic_quantize,
    "Einsum": _einsum,
    "Equal": _binary("int64", "bool"),
    "Expand": _expand,
    "EyeLike": _eye_like,
    "Flatten": _flatten,
    "Gather": _gather,
    "GatherElements": _gather_elements,
    "GatherND": _gather_nd,
    "Gemm": _gemm,
    "GridSample": _grid_sample,
    "GroupNormalization": _group_normalization,
    "Identity": _identity,
    "InstanceNormalization": _channel_normalization,
    "LRN": _lrn,
    "LpNormalization": _lp_normalization,
    "MaxRoiPool": _max_roi_pool,
    "MaxUnpool": _max_unpool,
    "MeanVarianceNormalization": _mean_variance,
    "MelWeightMatrix": _mel,
    "Mod": _mod,
    "NonMaxSuppression": _non_max_suppression,
    "NonZero": _non_zero,
    "Not": _unary("bool"),
    "OneHot": _one_hot,
    "PRelu": _p_relu,
    "Pad": _pad,
    "Pow": _pow,
    "QLinearConv": _q_linear_conv,
    "QLinearMatMul": _q_linear_mat_mul,
    "QuantizeLinear": _quantize,
    "Range": _range,
    "Reshape": _reshape,
    "ReverseSequence": _reverse_sequence,
    "RoiAlign": _roi_align,
    "RotaryEmbedding": _rotary,
    "STFT": _stft,
    "ScatterND": _scatter_nd,
    "Shape": _shape,
    "Size": _size,
    "Slice": _slice,
    "Squeeze": _squeeze,
    "StringConcat": _string_concat,
    "TensorScatter": _tensor_scatter,
    "Tile": _tile,
    "TopK": _top_k,
    "Transpose": _transpose,
    "Trilu": _trilu,
    "Unique": _unique,
    "Unsqueeze": _unsqueeze,
    "Where": _where,
}
"""Every operator that is not random, has no bodies, and gives tensors."""
