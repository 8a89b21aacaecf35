"""Random graphs that calculate with small integers: what shapes and lengths are computed from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from tests.model.operator_cases import FAR, Case, Draw, Operand, finished

OPSETS = (7, 8, 9, 10, 11, 12, 13, 14, 15, 17, 18, 19, 20, 21, 23, 25)


@dataclass
class Chain:
    """Nodes so far, and the values that they give: by name the element type and the length."""

    draw: Draw
    nodes: list[onnx.NodeProto] = field(default_factory=list)
    values: dict[str, tuple[str, int | None]] = field(default_factory=dict)
    inputs: dict[str, Operand] = field(default_factory=dict)

    @property
    def opset(self) -> int:
        return self.draw.opset

    def add(
        self, op_type: str, inputs: list[str], kind: str, length: int | None, **attributes: Any
    ) -> None:
        name = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(op_type, inputs, [name], **attributes))
        self.values[name] = kind, length

    def constant(self, items: Any, kind: str = "int64") -> str:
        array = np.array(items, kind)
        name = f"c{len(self.inputs)}"
        shape = () if array.ndim == 0 else (len(array),)
        self.inputs[name] = Operand(shape, kind, tuple(array.ravel().tolist()), None, "constant")
        return name

    def pick(self, *kinds: str, rank: int | None = None) -> tuple[str, str, int | None]:
        """A value of some kind; the last ones more often."""
        found = [
            (name, kind, length)
            for name, (kind, length) in self.values.items()
            if kind in kinds and (rank is None or (length is None) == (rank == 0))
        ]
        if not found:
            raise LookupError
        return self.draw.random.choice(found[-3:])

    def alike(self, kind: str, length: int | None) -> tuple[str, int | None]:
        """Another operand of an elementwise operator, and the length of the result."""
        d = self.draw
        others = [
            (name, other)
            for name, (each, other) in self.values.items()
            if each == kind and (other == length or None in (other, length))
        ]
        if others and d.maybe(0.6):
            name, other = d.random.choice(others)
            return name, length if other is None else other
        number = d.choose(*([True, False] if kind == "bool" else [-3, -1, 0, 1, 2, 5]))
        items = [number] * length if length is not None and d.maybe(0.3) else number
        return self.constant(items, kind), length


def _arithmetic(c: Chain) -> None:
    name, kind, length = c.pick("int64", "int32", "float32")
    other, made = c.alike(kind, length)
    operators = ["Add", "Sub", "Mul"]
    if c.opset >= 12 or (kind == "float32" and c.opset >= 8):
        operators += ["Min", "Max"]
    if kind == "float32" and c.opset >= 8:
        operators.append("Sum")
    pair = [name, other]
    c.draw.random.shuffle(pair)
    c.add(c.draw.choose(*operators), pair, kind, made)


def _division(c: Chain) -> None:
    name, kind, length = c.pick("int64", "int32", "float32")
    by = c.constant(c.draw.choose(-3, -2, 2, 3, 4), kind)
    if c.opset >= 10 and kind != "float32" and c.draw.maybe():
        c.add("Mod", [name, by], kind, length, **({"fmod": 1} if c.draw.maybe(0.4) else {}))
    else:
        c.add("Div", [name, by], kind, length)


def _one(c: Chain) -> None:
    name, kind, length = c.pick("int64", "float32")
    operators = ["Neg", "Abs", "Identity"] + (["Sign"] if c.opset >= 9 else [])
    operators += ["Floor", "Ceil"] if kind == "float32" else []
    c.add(c.draw.choose(*operators), [name], kind, length)


def _cast(c: Chain) -> None:
    name, _, length = c.pick("int64", "int32", "float32", "bool")
    kind = c.draw.choose("int64", "int32", "float32", "bool", "int64")
    c.add("Cast", [name], kind, length, to=helper.np_dtype_to_tensor_dtype(np.dtype(kind)))


def _comparison(c: Chain) -> None:
    name, kind, length = c.pick("int64", "int32", "float32")
    other, made = c.alike(kind, length)
    operators = ["Equal"] if kind != "float32" else []
    if c.opset >= 9:
        operators += ["Less", "Greater"]
    if c.opset >= 12:
        operators += ["LessOrEqual", "GreaterOrEqual"]
    if operators:
        c.add(c.draw.choose(*operators), [name, other], "bool", made)


def _logic(c: Chain) -> None:
    name, _, length = c.pick("bool")
    other, made = c.alike("bool", length)
    if c.draw.maybe(0.3):
        c.add("Not", [name], "bool", length)
    else:
        c.add(c.draw.choose("And", "Or", "Xor"), [name, other], "bool", made)


def _where(c: Chain) -> None:
    if c.opset < 9:
        return
    condition, _, length = c.pick("bool")
    left, made = c.alike("int64", length)
    right, made = c.alike("int64", made)
    c.add("Where", [condition, left, right], "int64", made)


def _gather(c: Chain) -> None:
    name, kind, length = c.pick("int64", "bool", "int32", rank=1)
    if not length:
        return
    low = -length if c.opset >= 11 else 0
    count = c.draw.choose(None, 0, 1, 2, 3)
    at = c.draw.int(low, length - 1)
    places = at if count is None else [c.draw.int(low, length - 1) for _ in range(count)]
    axis = {"axis": c.draw.choose(0, -1)} if c.draw.maybe() else {}
    c.add("Gather", [name, c.constant(places)], kind, count, **axis)


def _slice(c: Chain) -> None:
    name, kind, length = c.pick("int64", "bool", "int32", rank=1)
    bounds = (0, 1, 2, 5, -1, -2, -9, FAR, -FAR)
    start, end = c.draw.choose(*bounds), c.draw.choose(*bounds)
    step = c.draw.choose(1, 1, 2, -1, -2) if c.opset >= 10 else 1
    if step < 0 and end >= FAR:
        end = -FAR
    axes = [c.draw.choose(0, -1)]
    count = len(range(length or 0)[_clamped(start, end, step, length or 0)])
    if c.opset < 10:
        c.add("Slice", [name], kind, count, starts=[start], ends=[end], axes=axes)
        return
    operands = [c.constant([item]) for item in (start, end)]
    if step != 1 or c.draw.maybe():
        operands += [c.constant(axes), c.constant([step])]
    c.add("Slice", [name, *operands], kind, count)


def _clamped(start: int, end: int, step: int, length: int) -> slice:
    """The same slice as Python has it, where the end before the first element is None."""
    if step < 0 and end < -length:
        return slice(start, None, step)
    return slice(start, end, step)


def _concat(c: Chain) -> None:
    name, kind, length = c.pick("int64", "bool", "float32", rank=1)
    parts = [name] * c.draw.int(1, 2)
    total = (length or 0) * len(parts)
    for other, (each, count) in c.values.items():
        if each == kind and count is not None and c.draw.maybe(0.3):
            parts.append(other)
            total += count
    c.draw.random.shuffle(parts)
    c.add("Concat", parts, kind, total, axis=c.draw.choose(0, -1) if c.opset >= 11 else 0)


def _reduce(c: Chain) -> None:
    name, kind, length = c.pick("int64", "float32", "int32", rank=1)
    if not length:
        return
    op_type = c.draw.choose("ReduceSum", "ReduceProd", "ReduceMax", "ReduceMin")
    keep = c.draw.choose(None, 0, 1)
    attributes: dict[str, Any] = {} if keep is None else {"keepdims": keep}
    inputs = [name]
    if c.draw.maybe():
        axes = [c.draw.choose(0, -1)] if c.opset >= 11 else [0]
        if c.opset >= (13 if op_type == "ReduceSum" else 18):
            inputs.append(c.constant(axes))
        else:
            attributes["axes"] = axes
    c.add(op_type, inputs, kind, None if keep == 0 else 1, **attributes)


def _ranked(c: Chain) -> None:
    """Squeeze and Unsqueeze."""
    name, kind, length = c.pick("int64", "bool", "float32")
    if length not in (None, 1):
        return
    op_type, made = ("Unsqueeze", 1) if length is None else ("Squeeze", None)
    axes = [c.draw.choose(0, -1)] if c.opset >= 11 else [0]
    if c.opset >= 13:
        c.add(op_type, [name, c.constant(axes)], kind, made)
    else:
        c.add(op_type, [name], kind, made, axes=axes)


def _reshape(c: Chain) -> None:
    name, kind, length = c.pick("int64", "bool", "float32")
    if length is None or c.draw.maybe(0.6):
        c.add("Reshape", [name, c.constant([-1])], kind, 1 if length is None else length)
    elif length == 1:
        c.add("Reshape", [name, c.constant([])], kind, None)


def _range(c: Chain) -> None:
    if c.opset < 11:
        return
    ends = [c.constant(c.draw.choose(0, 1, 5, -2)), c.constant(c.draw.choose(4, 0, -3, 7))]
    step = c.draw.choose(1, 2, -1, -3)
    first, last = (c.inputs[name].elements for name in ends)
    assert first is not None
    assert last is not None
    count = len(range(first[0], last[0], step))
    c.add("Range", [*ends, c.constant(step)], "int64", count)


def _filled(c: Chain) -> None:
    if c.opset < 9:
        return
    length, kind = c.draw.int(0, 3), c.draw.choose("int64", "int64", "float32", "bool")
    value = numpy_helper.from_array(np.array([c.draw.choose(0, 1, -2)]).astype(kind))
    attributes = {"value": value} if kind != "float32" or c.draw.maybe() else {}
    c.add("ConstantOfShape", [c.constant([length])], kind, length, **attributes)


def _cumulative(c: Chain) -> None:
    name, kind, length = c.pick("int64", "int32", rank=1)
    if c.opset >= 11:
        flags = {key: 1 for key in ("exclusive", "reverse") if c.draw.maybe(0.4)}
        c.add("CumSum", [name, c.constant(c.draw.choose(0, -1))], kind, length, **flags)


def _clip(c: Chain) -> None:
    name, kind, length = c.pick("int64", "int32", "float32")
    low, high = c.draw.choose(-2, 0, 1), c.draw.choose(1, 2, 4)
    if c.opset >= 12 or (c.opset == 11 and kind == "float32"):
        bounds = [c.constant(low, kind) if c.draw.maybe(0.7) else "", c.constant(high, kind)]
        c.add("Clip", [name, *bounds[: c.draw.int(0, 2)]], kind, length)
    elif kind == "float32":
        c.add("Clip", [name], kind, length, min=float(low), max=float(high))


def _repeated(c: Chain) -> None:
    name, kind, length = c.pick("int64", "bool", "float32", rank=1)
    if length is not None and c.draw.maybe():
        times = c.draw.int(0, 2)
        c.add("Tile", [name, c.constant([times])], kind, length * times)
    elif length == 1 and c.opset >= 8:
        count = c.draw.int(0, 3)
        c.add("Expand", [name, c.constant([count])], kind, count)


def _of_a_shape(c: Chain) -> None:
    name = c.draw.random.choice([name for name, each in c.inputs.items() if each.given == "fed"])
    rank = len(c.inputs[name].shape)
    if c.draw.maybe(0.2):
        c.add("Size", [name], "int64", None)
        return
    attributes: dict[str, int] = {}
    if c.opset >= 15:
        for key in ("start", "end"):
            if c.draw.maybe():
                attributes[key] = c.draw.choose(0, 1, 2, 5, -1, -2, -6)
    places = range(rank)[attributes.get("start", 0) : attributes.get("end", rank)]
    c.add("Shape", [name], "int64", len(places), **attributes)


STEPS: tuple[Callable[[Chain], None], ...] = (
    *(_arithmetic, _arithmetic, _division, _one, _cast, _comparison, _logic, _where, _gather),
    *(_slice, _concat, _reduce, _ranked, _reshape, _range, _filled, _cumulative, _clip),
    *(_repeated, _of_a_shape),
)


def sample_chain(seed: int) -> Case:
    """A graph of some steps, of which each value is an output."""
    random = Random(f"elements {seed}")
    draw = Draw(random, "", random.choice(OPSETS))
    chain = Chain(draw)
    for name in ("x", "z")[: draw.int(1, 2)]:
        chain.inputs[name] = Operand(draw.dims(1, 3), "float32")
    for name, operand in list(chain.inputs.items()):
        chain.add("Shape", [name], "int64", len(operand.shape))
    for _ in range(draw.int(4, 9)):
        try:
            random.choice(STEPS)(chain)
        except LookupError:  # nothing of that kind is there yet
            continue
    case = finished(random, draw.opset, chain.nodes, chain.inputs, draw.sizes, seed)
    case.unranked = frozenset()
    return case
