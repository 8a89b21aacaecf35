"""Random models that calculate lengths and shapes from named dimensions, and what they give.

What a node gives is calculated in NumPy, by hand, while the model is made.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir

import tensorsplit as ts
from tensorsplit.model.infer.analysis import analyse
from tests.model.build import FLOAT, graph, model, node, tensor, value
from tests.model.infer.test_infer_shapes import shape_of as shape_in

NAMES = ("N", "M", "K")
LENGTHS = (0, 1, 2, 3, 5, 8)
INPUTS: dict[str, tuple[Any, ...]] = {
    "x": ("N", "M"),
    "u": ("K", 4),
    "w": ("N",),
    "t": (2, "M", 3),
}
FAR = (1 << 63) - 1
OPSETS = (13, 17, 18, 21)


EMPTY = "empty"


class Refused(Exception):  # noqa: N818 - it is not an error of the test
    """The standard does not define what the node gives."""


def bindings(rng: np.random.Generator, count: int) -> Iterator[dict[str, int]]:
    """Numbers for the names: all 0, each 0 alone, and others."""
    yield dict.fromkeys(NAMES, 0)
    for name in NAMES:
        yield {**{each: int(rng.choice(LENGTHS[1:])) for each in NAMES}, name: 0}
    for _ in range(count):
        yield {name: int(rng.choice(LENGTHS)) for name in NAMES}


def _number(dim: Any, names: dict[str, int]) -> Any:
    """A dimension or an element as a number, its expression by Python."""
    if dim is None or isinstance(dim, (int, float)):
        return dim
    calls: dict[str, Any] = {"floor": math.floor, "max": max, "min": min, "Max": max, "Min": min}
    numbers = {name: Fraction(number) for name, number in names.items()}
    return eval(str(dim), {"__builtins__": {}}, calls | numbers)


class ShapeModel:
    """A model in the making: nodes, and a function in NumPy for what each value is."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.opset = int(self.rng.choice(OPSETS))
        self.nodes: list[onnx.NodeProto] = []
        self.constants = [tensor(EMPTY, [])]
        self.steps: list[tuple[tuple[str, ...], tuple[str, ...], Callable[..., Any]]] = []
        self.lists: dict[str, int] = {}  # lists of int64, with their lengths
        self.tensors: dict[str, int] = {name: len(dims) for name, dims in INPUTS.items()}
        makers = [*LIST_MAKERS, *TENSOR_MAKERS]
        for place in self.rng.integers(0, len(makers), int(self.rng.integers(4, 14))):
            makers[place](self)
        TENSOR_MAKERS[int(self.rng.integers(0, len(TENSOR_MAKERS)))](self)

    def name(self) -> str:
        return f"v{len(self.steps)}"

    def constant(self, numbers: Any, dtype: Any = np.int64) -> str:
        name = f"c{len(self.constants)}"
        held = np.asarray(numbers, dtype)
        self.constants.append(tensor(name, held, dtype))
        self.steps.append(((), (name,), lambda: held))
        return name

    def add(
        self,
        op_type: str,
        inputs: Sequence[str],
        function: Callable[..., Any],
        count: int = 1,
        **attributes: Any,
    ) -> list[str]:
        outputs = [f"{self.name()}_{index}" for index in range(count)]
        made = node(op_type, " ".join(name or "_" for name in inputs), " ".join(outputs))
        made.attribute.extend(onnx.helper.make_attribute(*each) for each in attributes.items())
        self.nodes.append(made)
        self.steps.append((tuple(filter(None, inputs)), tuple(outputs), function))
        return outputs

    def add_list(self, length: int, *arguments: Any, **attributes: Any) -> str:
        (name,) = self.add(*arguments, **attributes)
        self.lists[name] = length
        return name

    def add_tensor(self, rank: int, *arguments: Any, **attributes: Any) -> str:
        (name,) = self.add(*arguments, **attributes)
        self.tensors[name] = rank
        return name

    def tensor(self) -> str:
        return str(self.rng.choice(list(self.tensors)))

    def list(self) -> str:
        """A list: mostly one that was made, newer ones more often."""
        if not self.lists or self.rng.random() < 0.25:
            return shape_of(self)
        return str(self.rng.choice(list(self.lists)[-5:]))

    def one(self, low: int = -3, high: int = 7) -> str:
        """A list of one number."""
        if self.rng.random() < 0.3:
            return self.constant([int(self.rng.integers(low, high))])
        name = self.list()
        if self.lists[name] == 1:
            return name
        if self.lists[name] == 0:
            return self.constant([2])
        at = int(self.rng.integers(0, self.lists[name]))
        return self.add_list(
            1, "Gather", [name, self.constant([at])], lambda held, place: held[place], axis=0
        )

    def several(self, count: int) -> str:
        """A list of so many numbers."""
        parts = [self.one() for _ in range(count)]
        return self.add_list(count, "Concat", parts, lambda *held: np.concatenate(held), axis=0)

    def proto(self) -> onnx.ModelProto:
        inputs = [value(name, FLOAT, dims) for name, dims in INPUTS.items()]
        outputs = [name for made in self.nodes for name in made.output]
        made = model(graph(self.nodes, inputs, outputs, self.constants), self.opset)
        made.ir_version = 8
        return made

    def feeds(self, names: dict[str, int]) -> dict[str, Any]:
        rng = np.random.default_rng(sum(names.values()))
        return {
            name: rng.random([names.get(str(dim), dim) for dim in dims]).astype(np.float32) + 1
            for name, dims in INPUTS.items()
        }

    def run(self, feeds: dict[str, Any]) -> dict[str, Any]:
        """What every value is that the standard defines, in NumPy."""
        found: dict[str, Any] = {**feeds, EMPTY: np.array([], np.int64)}
        for inputs, outputs, function in self.steps:
            if not found.keys() >= set(inputs):
                continue
            try:
                with np.errstate(all="ignore"):
                    made = function(*(found[name] for name in inputs))
            except Refused:
                continue
            found.update(zip(outputs, made if len(outputs) > 1 else [made], strict=True))
        return found


def shape_of(made: ShapeModel) -> str:
    name = made.tensor()
    return made.add_list(
        made.tensors[name], "Shape", [name], lambda held: np.array(held.shape, np.int64)
    )


ARITHMETIC: dict[str, Callable[..., Any]] = {
    "Add": np.add,
    "Sub": np.subtract,
    "Mul": np.multiply,
    "Div": np.divide,
    "Mod": np.mod,
    "Min": np.minimum,
    "Max": np.maximum,
    "Neg": np.negative,
    "Abs": np.abs,
    "Less": np.less,
    "Equal": np.equal,
    "Greater": np.greater,
    "Floor": np.floor,
    "Ceil": np.ceil,
    "ReduceSum": np.sum,
    "ReduceProd": np.prod,
    "ReduceMax": np.max,
    "ReduceMin": np.min,
}


def divided(left: Any, right: Any) -> Any:
    """Integers, towards 0."""
    return np.sign(left) * np.sign(right) * (np.abs(left) // np.abs(right))


def elementwise(made: ShapeModel) -> None:
    left = made.list()
    length = made.lists[left]
    op_type = str(made.rng.choice(["Add", "Sub", "Sub", "Mul", "Div", "Mod", "Min", "Max"]))
    functions: dict[str, Callable[..., Any]] = ARITHMETIC | {"Div": divided}
    if op_type in ("Div", "Mod"):  # a division by 0 ends the process of an engine
        right = made.constant([int(made.rng.choice([-3, -2, 2, 3, 4]))])
    else:
        right = made.one() if made.rng.random() < 0.7 else left
    pair = [left, right]
    if op_type in ("Sub", "Add") and made.rng.random() < 0.3:
        pair.reverse()
    made.add_list(length, op_type, pair, functions[op_type])


def chosen(made: ShapeModel) -> None:
    left, right = made.list(), made.one()
    op_type = str(made.rng.choice(["Less", "Equal", "Greater"]))
    compare = ARITHMETIC[op_type]
    (condition,) = made.add(op_type, [left, right], compare)
    yes, no = made.one(), left if made.rng.random() < 0.6 else made.one()
    made.add_list(made.lists[left], "Where", [condition, yes, no], np.where)


def unary(made: ShapeModel) -> None:
    name = made.list()
    op_type = str(made.rng.choice(["Neg", "Abs"]))
    function = ARITHMETIC[op_type]
    made.add_list(made.lists[name], op_type, [name], function)


def through_int32(made: ShapeModel) -> None:
    """Integers of 32 bits wrap."""
    name, other = made.list(), made.one()
    op_type = str(made.rng.choice(["Add", "Sub", "Mul"]))
    function = ARITHMETIC[op_type]
    small: list[str] = []
    for each in (name, other):
        small += made.add("Cast", [each], lambda held: held.astype(np.int32), to=6)
    if made.rng.random() < 0.3:
        small[1] = made.constant([int(made.rng.choice([1 << 30, 1 << 16, 3]))], np.int32)
    (result,) = made.add(op_type, small, function)
    made.add_list(made.lists[name], "Cast", [result], lambda held: held.astype(np.int64), to=7)


def through_floats(made: ShapeModel) -> None:
    name = made.list()
    (floats,) = made.add("Cast", [name], lambda held: held.astype(np.float32), to=1)
    factor = made.constant([float(made.rng.choice([0.5, 2.0, 0.25, 3.0, 1.5]))], np.float32)
    op_type = str(made.rng.choice(["Mul", "Div"]))
    function = ARITHMETIC[op_type]
    (result,) = made.add(op_type, [floats, factor], function)
    if made.rng.random() < 0.4:
        other = made.constant([float(made.rng.choice([3.0, 7.0, -0.5]))], np.float32)
        op_type = str(made.rng.choice(["Mul", "Add", "Div"]))
        function = ARITHMETIC[op_type]
        (result,) = made.add(op_type, [result, other], function)
    if made.rng.random() < 0.6:
        op_type = str(made.rng.choice(["Floor", "Ceil"]))
        (result,) = made.add(op_type, [result], ARITHMETIC[op_type])
    made.add_list(made.lists[name], "Cast", [result], lambda held: held.astype(np.int64), to=7)


def reduced(made: ShapeModel) -> None:
    name = made.list()
    if made.lists[name] == 0:
        return
    op_type = str(made.rng.choice(["ReduceSum", "ReduceProd", "ReduceMax", "ReduceMin"]))
    function = ARITHMETIC[op_type]
    as_input = made.opset >= (13 if op_type == "ReduceSum" else 18)
    inputs = [name, made.constant([0])] if as_input else [name]
    attributes: dict[str, Any] = {"keepdims": 1} if as_input else {"keepdims": 1, "axes": [0]}
    made.add_list(
        1, op_type, inputs, lambda held, *_: np.asarray(function(held, keepdims=True)), **attributes
    )


def summed(made: ShapeModel) -> None:
    name = made.list()
    made.add_list(
        made.lists[name],
        "CumSum",
        [name, made.constant(0)],
        lambda held, _: np.cumsum(held),
    )


def picked(made: ShapeModel) -> None:
    name = made.list()
    count = made.lists[name]
    if not count:
        return
    start, end = sorted(int(each) for each in made.rng.integers(0, count + 1, 2))
    made.add_list(
        end - start,
        "Slice",
        [name, made.constant([start]), made.constant([end])],
        lambda held, *_: held[start:end],
    )


def joined(made: ShapeModel) -> None:
    parts = [made.list(), made.list()]
    made.add_list(
        sum(made.lists[name] for name in parts),
        "Concat",
        parts,
        lambda *held: np.concatenate(held),
        axis=0,
    )


def bound(made: ShapeModel) -> str:
    numbers = [0, 1, 2, -1, -2, 4, -4, FAR, (1 << 31) - 1, -FAR]
    if made.rng.random() < 0.5:
        return made.constant([int(made.rng.choice(numbers))])
    return made.one()


def sliced(made: ShapeModel) -> None:
    name = made.tensor()
    if not made.tensors[name]:
        return
    axis = int(made.rng.integers(0, made.tensors[name]))
    step = int(made.rng.choice([1, 1, 1, 2, 3, -1]))
    inputs = [name, bound(made), bound(made), made.constant([axis]), made.constant([step])]

    def cut(held: Any, start: Any, end: Any, *_: Any) -> Any:
        dim = held.shape[axis]
        first, last = (int(each[0]) + dim * (int(each[0]) < 0) for each in (start, end))
        if step > 0:
            places = range(min(max(first, 0), dim), min(max(last, 0), dim), step)
        else:
            places = range(min(max(first, 0), dim - 1), min(max(last, -1), dim - 1), step)
        return held.take(list(places), axis)

    made.add_tensor(made.tensors[name], "Slice", inputs, cut)


def target(made: ShapeModel, rank: int) -> str:
    """A shape as exporters write one: parts of shapes, numbers, perhaps a -1."""
    parts = []
    for _ in range(rank):
        if made.rng.random() < 0.3:
            parts.append(made.constant([int(made.rng.choice([-1, 0, 1, 2, 4]))]))
        else:
            parts.append(made.one())
    return made.add_list(rank, "Concat", parts, lambda *held: np.concatenate(held), axis=0)


def reshaped(made: ShapeModel) -> None:
    name, rank = made.tensor(), int(made.rng.integers(1, 4))
    keeps_zeros = made.opset >= 14 and made.rng.random() < 0.3

    def shaped(held: Any, asked: Any) -> Any:
        dims = [int(dim) for dim in asked]
        if keeps_zeros and 0 in dims and -1 in dims:
            raise Refused
        for place, dim in enumerate(dims):
            if dim == 0 and not keeps_zeros:
                if place >= held.ndim:
                    raise Refused
                dims[place] = held.shape[place]
        if dims.count(-1) > 1 or min(dims) < -1:
            raise Refused
        if -1 in dims:
            others = int(np.prod([dim for dim in dims if dim != -1], dtype=np.int64))
            if others == 0 or held.size % others:
                raise Refused
            dims[dims.index(-1)] = held.size // others
        if np.prod(dims, dtype=object) != held.size:
            raise Refused
        return held.reshape(dims)

    attributes = {"allowzero": 1} if keeps_zeros else {}
    made.add_tensor(rank, "Reshape", [name, target(made, rank)], shaped, **attributes)


def checked(shape: Any) -> list[int]:
    """A shape that may be made."""
    dims = [int(dim) for dim in shape]
    if any(dim < 0 for dim in dims) or np.prod(dims, dtype=object) > 1 << 16:
        raise Refused
    return dims


def expanded(made: ShapeModel) -> None:
    name, rank = made.tensor(), int(made.rng.integers(1, 4))

    def broadcast(held: Any, asked: Any) -> Any:
        try:
            shape = np.broadcast_shapes(held.shape, checked(asked))
        except ValueError:
            raise Refused from None
        return np.broadcast_to(held, checked(shape))

    made.add_tensor(max(rank, made.tensors[name]), "Expand", [name, made.several(rank)], broadcast)


def added(made: ShapeModel) -> None:
    left, right = made.tensor(), made.tensor()

    def total(one: Any, other: Any) -> Any:
        try:
            return one + other
        except ValueError:
            raise Refused from None

    rank = max(made.tensors[left], made.tensors[right])
    made.add_tensor(rank, "Add", [left, right], total)


def filled(made: ShapeModel) -> None:
    rank = int(made.rng.integers(1, 3))
    made.add_tensor(
        rank,
        "ConstantOfShape",
        [made.several(rank)],
        lambda asked: np.zeros(checked(asked), np.float32),
    )


def tiled(made: ShapeModel) -> None:
    name = made.tensor()
    rank = made.tensors[name]
    if not rank:
        return

    def repeated(held: Any, counts: Any) -> Any:
        checked(counts)
        checked(np.maximum(held.shape, 1).astype(object) * np.maximum(counts, 1))
        return np.tile(held, counts)

    made.add_tensor(rank, "Tile", [name, made.several(rank)], repeated)


def stacked(made: ShapeModel) -> None:
    name = made.tensor()
    rank = made.tensors[name]
    if not rank:
        return
    alike = [each for each, other in made.tensors.items() if other == rank]
    other, axis = str(made.rng.choice(alike)), int(made.rng.integers(0, rank))

    def concatenated(*held: Any) -> Any:
        try:
            return np.concatenate(held, axis)
        except ValueError:
            raise Refused from None

    made.add_tensor(rank, "Concat", [name, other], concatenated, axis=axis)


def ranged(made: ShapeModel) -> None:
    ends: list[str] = []
    for low, high in ((0, 3), (0, 9)):
        ends += made.add("Reshape", [made.one(low, high), EMPTY], lambda held, _: held.reshape(()))
    step = int(made.rng.choice([1, 1, 2, -1]))

    def counted(start: Any, end: Any, *_: Any) -> Any:
        found = range(int(start), int(end), step)
        return np.array(found[: checked([len(found)])[0]], np.float32)

    (numbers,) = made.add(
        "Range",
        [*ends, made.constant(step)],
        lambda *held: counted(*held).astype(np.int64),
    )
    made.add_tensor(1, "Cast", [numbers], lambda held: held.astype(np.float32), to=1)


def split(made: ShapeModel) -> None:
    name = made.tensor()
    rank = made.tensors[name]
    if not rank:
        return
    axis, count = int(made.rng.integers(0, rank)), int(made.rng.integers(1, 4))
    inputs, attributes = [name], {"axis": axis}
    kind = int(made.rng.integers(0, 4))
    if kind == 3 and made.opset >= 18:
        attributes["num_outputs"] = count
    elif kind == 2 and made.opset < 18:
        pass
    else:  # what is left, behind lengths that are calculated
        (whole,) = made.add("Shape", [name], lambda held: np.array(held.shape, np.int64))
        place = made.constant([axis])
        (dim,) = made.add("Gather", [whole, place], lambda held, at: held[at], axis=0)
        parts = [made.one() for _ in range(count - 1)]
        for part in parts:
            (dim,) = made.add("Sub", [dim, part], np.subtract)
        inputs.append(
            made.add_list(
                count, "Concat", [*parts, dim], lambda *held: np.concatenate(held), axis=0
            )
        )

    def parted(held: Any, lengths: Any = None) -> Any:
        dim = held.shape[axis]
        if lengths is None:
            size = -(-dim // count)
            sizes = [size] * (count - 1) + [dim - size * (count - 1)]
            if "num_outputs" not in attributes and dim % count:
                raise Refused
        else:
            sizes = [int(length) for length in lengths]
        if min(sizes) < 0 or sum(sizes) != dim:
            raise Refused
        found = np.split(held, np.cumsum(sizes)[:-1], axis)
        return found if count > 1 else found[0]

    for output in made.add("Split", inputs, parted, count, **attributes):
        made.tensors[output] = rank


LIST_MAKERS = [
    *(shape_of, elementwise, elementwise, chosen, unary, through_int32, through_floats),
    *(reduced, summed, picked, joined),
]
TENSOR_MAKERS = [
    *(sliced, sliced, reshaped, reshaped, expanded, added, filled, tiled, stacked, ranged),
    *(split, split, split),
]


def wrongly_inferred(made: ShapeModel, count: int = 6) -> list[str]:
    """What inference knows of a model's values that is not so for some numbers."""
    proto = made.proto()
    walked = ir.serde.deserialize_model(proto)
    facts = analyse(walked)
    outputs = [value for node in walked.graph for value in node.outputs]
    elements = {value.name: facts.tensor(value).values for value in outputs}
    inferred = ts.infer_shapes(proto).graph
    shapes = {
        entry.name: shape_in(entry.type) for entry in (*inferred.value_info, *inferred.output)
    }
    found = []
    for names in bindings(np.random.default_rng(len(made.steps)), count):
        for name, got in made.run(made.feeds(names)).items():
            shape, values = shapes.get(name), elements.get(name)
            if shape is not None and not _is_so(shape, got.shape, names):
                found.append(f"{names}: {name} has shape {got.shape}, not {shape}")
            is_exact = got.dtype.kind in "ib"  # quotients of floats are rounded
            if values is not None and is_exact and not _is_so(values, got.ravel(), names):
                found.append(f"{names}: {name} is {got.tolist()}, not {values}")
    return found


def _is_so(known: Sequence[Any], got: Sequence[int], names: dict[str, int]) -> bool:
    """Whether numbers are what is known of them."""
    pairs = zip((_number(dim, names) for dim in known), got, strict=True)
    return len(known) == len(got) and all(dim is None or dim == number for dim, number in pairs)
