"""ONNX models of a split node: the place that it is in, and what is done with its sequence.

Each place makes the nodes inside and those around them. What else a place is made of (Identity, the
control flow itself) is kept to what every engine runs.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np
from onnx import AttributeProto, FunctionProto, GraphProto, NodeProto, TensorProto, ValueInfoProto
from onnx.helper import (
    make_function,
    make_graph,
    make_model,
    make_node,
    make_opsetid,
    make_tensor_sequence_value_info,
    make_tensor_value_info,
)
from onnx.numpy_helper import from_array

from tensorsplit.conformance import data, oracle
from tensorsplit.conformance.case import Built
from tensorsplit.conformance.models.onnx_model import Shape, SplitModel
from tensorsplit.conformance.oracle import Array

LOCAL = "conformance.local"
"""The domain of the functions that the models bring along."""

_TURNS = 2
"""How often a body runs."""


@dataclass(frozen=True, slots=True)
class Value:
    """A value inside a model; of a sequence, the shape is that of its elements."""

    name: str
    element_type: str
    shape: Shape  # what is declared
    expected: Any = None  # None where a refusal is expected
    is_sequence: bool = False

    def info(self, name: str = "") -> ValueInfoProto:
        """The declaration, of another name if one is given."""
        make = make_tensor_sequence_value_info if self.is_sequence else make_tensor_value_info
        return make(name or self.name, data.tensor_type(self.element_type), self.shape)

    def into(
        self, name: str, make: Callable[[Any], Any], is_sequence: bool = False, **changes: Any
    ) -> Value:
        """What is made of it; nothing is expected of that if nothing is expected of it."""
        found = None if self.expected is None else make(self.expected)
        return replace(self, name=name, expected=found, is_sequence=is_sequence, **changes)


_FLAG, _NUMBER = Value("", "bool", ()), Value("", "int64", ())


class Fragment(NamedTuple):
    """Nodes, and the values that they are there for."""

    nodes: list[NodeProto]
    outputs: list[Value]


@dataclass(slots=True)
class Scope:
    """The main graph in the making: what nodes inside of anything may refer to.

    Adding a name a second time changes nothing.
    """

    model: SplitModel
    rng: np.random.Generator
    inputs: dict[str, ValueInfoProto] = field(default_factory=dict)
    initializers: dict[str, TensorProto] = field(default_factory=dict)
    functions: list[FunctionProto] = field(default_factory=list)
    feeds: dict[str, Any] = field(default_factory=dict)
    arrays: dict[str, Array] = field(default_factory=dict)

    def input(
        self, name: str, element_type: str, array: Array, shape: Shape, *, is_fed: bool = True
    ) -> str:
        """A graph input, and the array to feed unless it is left to its default."""
        if name not in self.inputs:
            self.inputs[name] = Value(name, element_type, shape).info()
            if is_fed:
                self.feeds[name] = array
        return name

    def data(self, name: str, shape: tuple[int, ...], declared: Shape) -> Value:
        """A graph input with random elements of the element type of the data."""
        kind = self.model.element_type
        if name not in self.arrays:
            array = data.values(kind, shape, self.rng, self.model.extreme)
            self.arrays[name] = array
            if self.model.is_constant:
                self.initializer(name, array)
            else:
                self.input(name, kind, array, declared)
        return Value(name, kind, declared, self.arrays[name])

    def like(self, x: Value, name: str) -> Value:
        """More data, of the same shape and declared in the same way."""
        return self.data(name, x.expected.shape, x.shape)

    def initializer(self, name: str, array: Array) -> str:
        """An initializer."""
        self.initializers.setdefault(name, from_array(array, name))
        return name

    def fragment(self, places: Sequence[str], x: Value, prefix: str) -> Fragment:
        """Nodes that split a value in some places, with names that begin as told."""
        if not places:
            return _split(self, x, prefix)
        return _BODIES[places[0]](self, places[1:], x, prefix)


def build(model: SplitModel, rng: np.random.Generator) -> Built:
    """The files of a case, with elements drawn from `rng`.

    Inputs that are left to their default are the last ones, so that values can be given in order.
    The IR version is an old one that has all that is in the model.
    """
    scope = Scope(model, rng)
    x = scope.data("x", model.shape, model.declared_shape)
    nodes, outputs = scope.fragment(model.places, x, "")
    inputs = sorted(scope.inputs.values(), key=lambda entry: entry.name not in scope.feeds)
    imports = [make_opsetid("", model.opset), make_opsetid(LOCAL, 1)]
    infos = [value.info() for value in outputs]
    proto = make_model(
        make_graph(nodes, "case", inputs, infos, list(scope.initializers.values())),
        opset_imports=imports[: 1 + bool(scope.functions)],
        functions=scope.functions,
        ir_version=10 if model.opset >= 21 else 8,
        producer_name="tensorsplit.conformance",
    )
    expected = None
    if model.sizes is not None:
        expected = {value.name: value.expected for value in outputs}
    return Built(proto.SerializeToString(deterministic=True), b"", scope.feeds, expected)


def _split(scope: Scope, x: Value, prefix: str) -> Fragment:
    """The split node, and what is done with its sequence."""
    model = scope.model
    nodes, inputs = _lengths(scope, prefix)
    expected = None
    if model.sizes is not None:
        expected = oracle.parts(x.expected, model.axis, model.sizes, model.keepdims)
    if model.use:
        parts = Value(f"{prefix}parts", x.element_type, _any_part(model, x), expected, True)
        names = [parts.name]
        used = _USES[model.use](scope, parts, prefix)
    else:
        names = [
            "" if place in model.unnamed else f"{prefix}y{place}" for place in range(model.outputs)
        ]
        wanted: Sequence[Array | None] = expected or [None] * model.outputs
        used = Fragment(
            [],
            [
                Value(name, x.element_type, _part(model, x, place), part)
                for place, (name, part) in enumerate(zip(names, wanted, strict=True))
                if name
            ],
        )
    node = make_node(model.op_type, [x.name, *inputs], names, **model.attributes)
    if model.by_reference:  # to attributes of the function, which have the same names
        for entry in node.attribute:
            name, kind = entry.name, entry.type
            entry.CopyFrom(AttributeProto(name=name, type=kind, ref_attr_name=name))
    return Fragment([*nodes, node, *used.nodes], used.outputs)


def _lengths(scope: Scope, prefix: str) -> tuple[list[NodeProto], list[str]]:
    """The second input of a split node, if there is one, and the nodes that make it."""
    operand = scope.model.operand
    if operand is None:
        return [], [""] * scope.model.blank
    array = operand.array(operand.value)
    if operand.form == "constant":
        return _constant(f"{prefix}split", array)
    if operand.form != "runtime":
        is_other = operand.default is not None
        scope.initializer("split", operand.array(operand.default) if is_other else array)
    if operand.form != "initializer":
        is_fed = operand.form == "runtime" or operand.default is not None
        shape = array.shape if operand.declared is None else operand.declared
        scope.input("split", operand.element_type, array, shape, is_fed=is_fed)
    return [], ["split"]


def _constant(name: str, array: Array) -> tuple[list[NodeProto], list[str]]:
    """A Constant node, and its output."""
    return [make_node("Constant", [], [name], value=from_array(array, name))], [name]


def _part(model: SplitModel, x: Value, place: int) -> Shape:
    """What is declared of a part: its length only where the model knows that of the data."""
    if not x.shape:
        return ()
    axis = model.axis if -len(x.shape) <= model.axis < len(x.shape) else 0
    is_overridden = model.operand is not None and model.operand.default is not None
    if model.sizes is None or is_overridden or not isinstance(x.shape[axis], int):
        return oracle.resized(x.shape, axis, None)
    return oracle.resized(x.shape, axis, model.sizes[place])


def _any_part(model: SplitModel, x: Value) -> Shape:
    """What is declared of every part of a sequence."""
    if not -len(x.shape) <= model.axis < len(x.shape):
        return x.shape
    return _of_length(model, x.shape, None)


def _of_length(model: SplitModel, shape: Shape, length: int | None) -> tuple[Any, ...]:
    """The shape of a part of a length; without the axis, its length doesn't matter."""
    if not model.keepdims:
        return oracle.without(shape, model.axis)
    return oracle.resized(shape, model.axis, length)


def _if(scope: Scope, places: Sequence[str], x: Value, prefix: str) -> Fragment:
    """Both branches split, one of them what was asked for, the other one other data."""
    other = scope.like(x, f"{prefix}other")
    cond = scope.input(f"{prefix}cond", "bool", np.array(scope.rng.integers(2) == 0), ())
    branches = [scope.fragment(places, x, f"{prefix}t_")]
    branches.append(scope.fragment(places, other, f"{prefix}e_"))
    outputs = _renamed(branches[0 if scope.feeds[cond] else 1].outputs, prefix)
    bodies = {
        f"{name}_branch": _graph(name, branch)
        for name, branch in zip(("then", "else"), branches, strict=True)
    }
    return Fragment([make_node("If", [cond], _names(outputs), **bodies)], outputs)


def _loop(scope: Scope, places: Sequence[str], x: Value, prefix: str) -> Fragment:
    """A body that splits one of two tensors in turn; what comes out is the last turn's parts."""
    other = scope.like(x, f"{prefix}other")
    last = [x, other][(_TURNS - 1) % 2]
    i, c, u, v = (f"{prefix}b_{key}" for key in "icuv")
    body = scope.fragment(places, replace(last, name=u), f"{prefix}b_")
    starts = [_start(scope, value, f"{prefix}start{n}") for n, value in enumerate(body.outputs)]
    outputs = _renamed(body.outputs, prefix)
    swap = [make_node("Identity", [one], [f"{two}_out"]) for one, two in ((c, c), (v, u), (u, v))]
    was = [value.info(f"{prefix}b_was{n}") for n, value in enumerate(body.outputs)]
    made = [value.info() for value in body.outputs]
    graph = make_graph(
        [*body.nodes, *swap],
        f"{prefix}body",
        [_NUMBER.info(i), _FLAG.info(c), x.info(u), x.info(v), *was],
        [_FLAG.info(f"{c}_out"), x.info(f"{u}_out"), x.info(f"{v}_out"), *made],
    )
    turns = scope.initializer("turns", np.array(_TURNS))
    always = scope.initializer("always", np.array(True))
    inputs = [turns, always, x.name, other.name, *starts]
    names = [f"{prefix}last_u", f"{prefix}last_v", *_names(outputs)]
    return Fragment([make_node("Loop", inputs, names, body=graph)], outputs)


def _start(scope: Scope, value: Value, name: str) -> str:
    """What a loop would give for a part if its body never ran."""
    shape = tuple(dim if isinstance(dim, int) else 1 for dim in value.shape)
    shape = shape if value.expected is None else value.expected.shape
    array = data.values(value.element_type, shape, scope.rng)
    return scope.input(name, value.element_type, array, value.shape)


def _scan(scope: Scope, places: Sequence[str], x: Value, prefix: str) -> Fragment:
    """A body that splits each slice of a stack; what comes out are stacks of parts."""
    stack = scope.data(f"{prefix}stack", (_TURNS, *x.expected.shape), (_TURNS, *x.shape))
    for made in (scope.inputs, scope.feeds):
        made.pop(x.name, None)  # the stack is there instead
    piece = replace(x, name=f"{prefix}s_x")
    bodies = [  # one for what is expected of each slice; the model has the first
        scope.fragment(places, replace(piece, expected=entry), f"{prefix}s_")
        for entry in stack.expected
    ]
    outputs = [
        replace(
            values[0],
            name=f"{prefix}y{place}",
            shape=(_TURNS, *values[0].shape),
            expected=None if scope.model.sizes is None else np.stack([v.expected for v in values]),
        )
        for place, values in enumerate(zip(*(body.outputs for body in bodies), strict=True))
    ]
    graph = _graph("body", bodies[0])
    graph.input.append(piece.info())
    node = make_node("Scan", [stack.name], _names(outputs), body=graph, num_scan_inputs=1)
    return Fragment([node], outputs)


def _function(scope: Scope, places: Sequence[str], x: Value, prefix: str) -> Fragment:
    """A function of the model, whose inputs are all that its nodes refer to."""
    model, inner = scope.model, replace(x, name=f"{prefix}f_x")
    body = scope.fragment(places, inner, f"{prefix}f_")
    used = free_names(body.nodes)
    name = f"Cut{len(scope.functions)}"
    outputs = _renamed(body.outputs, prefix)
    imports = [make_opsetid("", model.opset), make_opsetid(LOCAL, 1)]
    attributes = model.attributes if model.by_reference else {}
    names = _names(body.outputs)
    scope.functions.append(
        make_function(LOCAL, name, used, names, body.nodes, imports, sorted(attributes))
    )
    given = [x.name if entry == inner.name else entry for entry in used]
    call = make_node(name, given, _names(outputs), domain=LOCAL, **attributes)
    return Fragment([call], outputs)


_BODIES = {"if": _if, "loop": _loop, "scan": _scan, "function": _function}
"""What makes each place, but for the main graph."""


def free_names(nodes: Iterable[NodeProto], inputs: Iterable[ValueInfoProto] = ()) -> list[str]:
    """The names that nodes use and neither they nor inputs make, in the order of first use."""
    made = {entry.name for entry in inputs}
    found: dict[str, None] = {}
    for node in nodes:
        bodies = [free_names(a.g.node, a.g.input) for a in node.attribute if a.HasField("g")]
        wanted = itertools.chain(node.input, *bodies)
        found.update(dict.fromkeys(name for name in wanted if name and name not in made))
        made.update(node.output)
    return list(found)


def _graph(name: str, fragment: Fragment) -> GraphProto:
    return make_graph(fragment.nodes, name, [], [value.info() for value in fragment.outputs])


def _names(values: Iterable[Value]) -> list[str]:
    return [value.name for value in values]


def _renamed(values: Iterable[Value], prefix: str) -> list[Value]:
    return [replace(value, name=f"{prefix}y{place}") for place, value in enumerate(values)]


def _at(scope: Scope, parts: Value, prefix: str) -> Fragment:
    """SequenceAt: `option` holds the positions, and whether they come at run time."""
    nodes, outputs = [], []
    for number, position in enumerate(scope.model.option[0]):
        made, where = _position(scope, prefix, number)
        value = parts.into(f"{prefix}y{number}", itemgetter(position))
        nodes += [*made, make_node("SequenceAt", [parts.name, *where], [value.name])]
        outputs.append(value)
    return Fragment(nodes, outputs)


def _position(scope: Scope, prefix: str, number: int = 0) -> tuple[list[NodeProto], list[str]]:
    """The nodes and the input that say one of the positions of `option`, if it has any."""
    if scope.model.option is None:
        return [], []
    positions, is_runtime = scope.model.option
    index = np.array(positions[number])
    if is_runtime:
        return [], [scope.input(f"at{number}", "int64", index, ())]
    return _constant(f"{prefix}at{number}", index)


def _length(_: Scope, parts: Value, prefix: str) -> Fragment:
    """SequenceLength."""
    count = parts.into(
        f"{prefix}y0", lambda items: np.array(len(items)), element_type="int64", shape=()
    )
    return Fragment([make_node("SequenceLength", [parts.name], [count.name])], [count])


def _insert(scope: Scope, parts: Value, prefix: str) -> Fragment:
    """SequenceInsert of another tensor at the position `option`; None: at the end."""
    model = scope.model
    extra = scope.data("extra", _of_length(model, model.shape, 2), parts.shape)
    nodes, where = _position(scope, prefix)

    def longer(items: list[Array]) -> list[Array]:
        place = model.option[0][0] if model.option else len(items)
        return [*items[:place], extra.expected, *items[place:]]

    value = parts.into(f"{prefix}longer", longer, is_sequence=True)
    inputs = [parts.name, extra.name, *where]
    return Fragment([*nodes, make_node("SequenceInsert", inputs, [value.name])], [value])


def _erase(scope: Scope, parts: Value, prefix: str) -> Fragment:
    """SequenceErase of the part at the position `option`; None: the last one."""
    nodes, where = _position(scope, prefix)
    place = scope.model.option[0][0] if scope.model.option else -1
    value = parts.into(
        f"{prefix}shorter",
        lambda items: [item for n, item in enumerate(items) if n != place % len(items)],
        is_sequence=True,
    )
    node = make_node("SequenceErase", [parts.name, *where], [value.name])
    return Fragment([*nodes, node], [value])


def _concat(scope: Scope, parts: Value, prefix: str) -> Fragment:
    """ConcatFromSequence: on the axis, or (`option` 1) on a new one."""
    name, axis = f"{prefix}y0", scope.model.axis
    if scope.model.option:
        attributes: dict[str, Any] = {"axis": 0, "new_axis": 1}
        value = parts.into(name, np.stack, shape=(None, *parts.shape))
    else:
        attributes = {"axis": axis}
        value = parts.into(name, partial(np.concatenate, axis=axis))
    node = make_node("ConcatFromSequence", [parts.name], [value.name], **attributes)
    return Fragment([node], [value])


def _each(scope: Scope, parts: Value, prefix: str) -> Fragment:
    """A Loop that goes over the sequence and puts each part in front of those before it."""
    model = scope.model
    start = scope.data("start", _of_length(model, model.shape, 1), parts.shape)
    i, c, was, c_out, part, now = (
        f"{prefix}l_{key}" for key in ("i", "c", "was", "c_out", "part", "now")
    )
    body = make_graph(
        [
            make_node("Identity", [c], [c_out]),
            make_node("SequenceAt", [parts.name, i], [part]),
            make_node("Concat", [part, was], [now], axis=model.axis),
        ],
        f"{prefix}each",
        [_NUMBER.info(i), _FLAG.info(c), start.info(was)],
        [_FLAG.info(c_out), start.info(now)],
    )
    value = parts.into(
        f"{prefix}y0",
        lambda items: np.concatenate([*reversed(items), start.expected], axis=model.axis),
    )
    count, always = f"{prefix}count", scope.initializer("always", np.array(True))
    nodes = [
        make_node("SequenceLength", [parts.name], [count]),
        make_node("Loop", [count, always, start.name], [value.name], body=body),
    ]
    return Fragment(nodes, [value])


def _map(_: Scope, parts: Value, prefix: str) -> Fragment:
    """SequenceMap with a body that hands each part on."""
    one, two = f"{prefix}m_in", f"{prefix}m_out"
    part = replace(parts, is_sequence=False)
    identity = make_node("Identity", [one], [two])
    body = make_graph([identity], f"{prefix}each", [part.info(one)], [part.info(two)])
    value = replace(parts, name=f"{prefix}mapped")
    return Fragment([make_node("SequenceMap", [parts.name], [value.name], body=body)], [value])


_USES: dict[str, Callable[[Scope, Value, str], Fragment]] = {
    "output": lambda _scope, parts, _prefix: Fragment([], [parts]),
    "SequenceAt": _at,
    "SequenceLength": _length,
    "SequenceInsert": _insert,
    "SequenceErase": _erase,
    "ConcatFromSequence": _concat,
    "Loop": _each,
    "SequenceMap": _map,
}
"""What makes the nodes behind SplitToSequence."""
