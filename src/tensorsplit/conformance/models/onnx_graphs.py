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
from typing import Any

import numpy as np
import onnx
from onnx import AttributeProto, GraphProto, NodeProto, TensorProto, ValueInfoProto, helper
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

    def info(self) -> ValueInfoProto:
        """Return the declaration."""
        kind = helper.make_tensor_type_proto(data.tensor_type(self.element_type), self.shape)
        kind = helper.make_sequence_type_proto(kind) if self.is_sequence else kind
        return helper.make_value_info(self.name, kind)

    def into(
        self, name: str, make: Callable[[Any], Any], is_sequence: bool = False, **changes: Any
    ) -> Value:
        """Apply a function; nothing is expected of the result if nothing is expected of this."""
        found = None if self.expected is None else make(self.expected)
        return replace(self, name=name, expected=found, is_sequence=is_sequence, **changes)


_FLAG, _NUMBER = Value("", "bool", ()), Value("", "int64", ())


@dataclass(slots=True)
class Scope:
    """The main graph in the making: what nodes inside anything may refer to.

    Adding a name a second time changes nothing.
    """

    model: SplitModel
    rng: np.random.Generator
    inputs: dict[str, ValueInfoProto] = field(default_factory=dict)
    initializers: dict[str, TensorProto] = field(default_factory=dict)
    functions: list[onnx.FunctionProto] = field(default_factory=list)
    feeds: dict[str, Any] = field(default_factory=dict)
    arrays: dict[str, Array] = field(default_factory=dict)

    def input(
        self, name: str, element_type: str, array: Array, shape: Shape, *, is_fed: bool = True
    ) -> str:
        """Return a graph input, and the array to feed unless it is left to its default."""
        if name not in self.inputs:
            self.inputs[name] = Value(name, element_type, shape).info()
            if is_fed:
                self.feeds[name] = array
        return name

    def data(self, name: str, shape: tuple[int, ...], declared: Shape) -> Value:
        """Return a graph input with random elements of the element type of the data."""
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
        """Return more data, of the same shape and declared in the same way."""
        return self.data(name, x.expected.shape, x.shape)

    def initializer(self, name: str, array: Array) -> str:
        """Return an initializer."""
        self.initializers.setdefault(name, from_array(array, name))
        return name


@dataclass(frozen=True, slots=True)
class NodeBlock:
    """The nodes of a graph in the making, and what the names that they make begin with."""

    scope: Scope
    prefix: str
    nodes: list[NodeProto] = field(default_factory=list)

    def inside(self, prefix: str) -> NodeBlock:
        """Return a block for a body of one of its nodes."""
        return NodeBlock(self.scope, self.prefix + prefix)

    def add(
        self, op_type: str, inputs: Sequence[str], outputs: list[Value], **attributes: Any
    ) -> list[Value]:
        """Add a node, and give its outputs."""
        self.nodes.append(helper.make_node(op_type, inputs, _names(outputs), **attributes))
        return outputs

    def like(self, value: Value, name: str, **changes: Any) -> Value:
        """Return a value of the block that is declared as another one."""
        return replace(value, name=self.prefix + name, **changes)

    def constant(self, name: str, array: Array) -> str:
        """Add a Constant, and give its output."""
        name = self.prefix + name
        self.nodes.append(helper.make_node("Constant", [], [name], value=from_array(array, name)))
        return name

    def split(self, places: Sequence[str], x: Value) -> list[Value]:
        """Add nodes that split a value in some places, and what is done with its sequence."""
        return _BODIES[places[0]](self, places[1:], x) if places else _split(self, x)

    def graph(self, name: str, outputs: list[Value], inputs: Iterable[Value] = ()) -> GraphProto:
        """Return the block as the body of a node."""
        given, made = ([value.info() for value in values] for values in (inputs, outputs))
        return helper.make_graph(self.nodes, name, given, made)

    def renamed(self, values: Iterable[Value]) -> list[Value]:
        """Return values of a body under the names that its node gives them."""
        return [self.like(value, f"y{n}") for n, value in enumerate(values)]


def build(model: SplitModel, rng: np.random.Generator) -> Built:
    """Return the files of a case, with elements sampled from `rng`.

    Inputs that are left to their default are the last ones, so that values can be given in order.
    The IR version is an old one that has all that is in the model.
    """
    scope = Scope(model, rng)
    block = NodeBlock(scope, "")
    x = scope.data("x", model.shape, model.declared)
    outputs = block.split(model.places, x)
    inputs = sorted(scope.inputs.values(), key=lambda entry: entry.name not in scope.feeds)
    imports = [helper.make_opsetid("", model.opset), helper.make_opsetid(LOCAL, 1)]
    graph = block.graph("case", outputs)
    graph.input.extend(inputs)
    graph.initializer.extend(scope.initializers.values())
    proto = helper.make_model(
        graph,
        opset_imports=imports[: 1 + bool(scope.functions)],
        functions=scope.functions,
        ir_version=10 if model.opset >= 21 else 8,
        producer_name="tensorsplit.conformance",
    )
    expected = None
    if model.sizes is not None:
        expected = {value.name: value.expected for value in outputs}
    octets = proto.SerializeToString(deterministic=True)
    return Built(octets, b"", scope.feeds, tuple(_names(outputs)), expected)


def _split(block: NodeBlock, x: Value) -> list[Value]:
    """Add the split node, and what is done with its sequence."""
    model, prefix = block.scope.model, block.prefix
    inputs = [x.name, *_lengths(block)]
    parts: Sequence[Array | None] = [None] * model.outputs
    if model.sizes is not None:
        parts = oracle.parts(x.expected, model.axis, model.sizes, model.keepdims)
    if model.use:
        expected = None if model.sizes is None else parts
        outputs = [Value(f"{prefix}parts", x.element_type, _any_part(model, x), expected, True)]
    else:
        outputs = [
            Value("" if n in model.unnamed else f"{prefix}y{n}", x.element_type, shape, part)
            for n, (shape, part) in enumerate(zip(_shapes(model, x), parts, strict=True))
        ]
    block.add(model.op_type, inputs, outputs, **model.attributes)
    if model.by_reference:  # to attributes of the function, which have the same names
        for entry in block.nodes[-1].attribute:
            name, kind = entry.name, entry.type
            entry.CopyFrom(AttributeProto(name=name, type=kind, ref_attr_name=name))
    if model.use:
        return _USES[model.use](block, outputs[0])
    if model.also_halves:
        return [_reversed(block, "parts", outputs), _reversed(block, "halves", _halves(block, x))]
    return [value for value in outputs if value.name]


def _halves(block: NodeBlock, x: Value) -> list[Value]:
    """Add a node that splits the data into halves."""
    model = block.scope.model
    half = model.shape[model.axis] // 2
    parts = oracle.parts(x.expected, model.axis, (half, half), keepdims=True)
    shape = oracle.resized(x.shape, model.axis, None)
    values = [Value(f"{block.prefix}h{n}", x.element_type, shape, p) for n, p in enumerate(parts)]
    return block.add("Split", [x.name], values, **model.attributes)


def _reversed(block: NodeBlock, name: str, parts: list[Value]) -> Value:
    """Join parts again, the last one first."""
    axis = block.scope.model.axis
    joined = np.concatenate([part.expected for part in parts[::-1]], axis)
    shape = oracle.resized(parts[0].shape, axis, None)
    made = Value(block.prefix + name, parts[0].element_type, shape, joined)
    return block.add("Concat", _names(parts[::-1]), [made], axis=axis)[0]


def _lengths(block: NodeBlock) -> list[str]:
    """Return the second input of a split node, if there is one."""
    scope, operand = block.scope, block.scope.model.operand
    if operand is None:
        return [""] * scope.model.blank
    array = operand.array(operand.value)
    if operand.form == "constant":
        return [block.constant("split", array)]
    if operand.form != "runtime":
        is_other = operand.default is not None
        scope.initializer("split", operand.array(operand.default) if is_other else array)
    if operand.form != "initializer":
        is_fed = operand.form == "runtime" or operand.default is not None
        shape = array.shape if operand.declared is None else operand.declared
        scope.input("split", operand.element_type, array, shape, is_fed=is_fed)
    return ["split"]


def _shapes(model: SplitModel, x: Value) -> list[Shape]:
    """Return the declared shapes of parts; lengths only where the model knows those of the data."""
    if not x.shape:
        return [()] * model.outputs
    axis = model.axis if -len(x.shape) <= model.axis < len(x.shape) else 0
    is_overridden = model.operand is not None and model.operand.default is not None
    is_known = isinstance(x.shape[axis], int) and not is_overridden
    lengths = model.sizes if model.sizes is not None and is_known else [None] * model.outputs
    return [oracle.resized(x.shape, axis, length) for length in lengths]


def _any_part(model: SplitModel, x: Value) -> Shape:
    """Return the declaration of every part of a sequence."""
    if not -len(x.shape) <= model.axis < len(x.shape):
        return x.shape
    return _of_length(model, x.shape, None)


def _of_length(model: SplitModel, shape: Shape, length: int | None) -> tuple[Any, ...]:
    """Return the shape of a part of a length; without the axis, its length doesn't matter."""
    if not model.keepdims:
        return oracle.without(shape, model.axis)
    return oracle.resized(shape, model.axis, length)


def _if(block: NodeBlock, places: Sequence[str], x: Value) -> list[Value]:
    """Split in both branches: in one the case's split, in the other one other data."""
    scope, prefix = block.scope, block.prefix
    other = scope.like(x, f"{prefix}other")
    cond = scope.input(f"{prefix}cond", "bool", np.array(scope.rng.integers(2) == 0), ())
    then, otherwise = block.inside("t_"), block.inside("e_")
    parts, others = then.split(places, x), otherwise.split(places, other)
    bodies = {
        "then_branch": then.graph("then", parts),
        "else_branch": otherwise.graph("else", others),
    }
    outputs = block.renamed(parts if scope.feeds[cond] else others)
    return block.add("If", [cond], outputs, **bodies)


def _loop(block: NodeBlock, places: Sequence[str], x: Value) -> list[Value]:
    """Split one of two tensors in turn in a body; the last turn's parts come out."""
    scope, prefix = block.scope, block.prefix
    other = scope.like(x, f"{prefix}other")
    body = block.inside("b_")
    i, c, c_out = body.like(_NUMBER, "i"), body.like(_FLAG, "c"), body.like(_FLAG, "c_out")
    u, v, u_out, v_out = (body.like(x, name) for name in ("u", "v", "u_out", "v_out"))
    last = [x, other][(_TURNS - 1) % 2]
    parts = body.split(places, replace(u, expected=last.expected))
    starts = [_start(scope, value, f"{prefix}start{n}") for n, value in enumerate(parts)]
    for one, two in ((c, c_out), (v, u_out), (u, v_out)):
        body.add("Identity", [one.name], [two])
    was = [body.like(value, f"was{n}") for n, value in enumerate(parts)]
    graph = body.graph(f"{prefix}body", [c_out, u_out, v_out, *parts], [i, c, u, v, *was])
    turns = scope.initializer("turns", np.array(_TURNS))
    always = scope.initializer("always", np.array(True))
    inputs = [turns, always, x.name, other.name, *starts]
    ends = [block.like(x, "last_u"), block.like(x, "last_v")]
    return block.add("Loop", inputs, [*ends, *block.renamed(parts)], body=graph)[2:]


def _start(scope: Scope, value: Value, name: str) -> str:
    """Return the value that a loop would give for a part if its body never ran."""
    shape = tuple(dim if isinstance(dim, int) else 1 for dim in value.shape)
    shape = shape if value.expected is None else value.expected.shape
    array = data.values(value.element_type, shape, scope.rng)
    return scope.input(name, value.element_type, array, value.shape)


def _scan(block: NodeBlock, places: Sequence[str], x: Value) -> list[Value]:
    """Return a body that splits each slice of a stack; what comes out are stacks of parts."""
    scope, prefix = block.scope, block.prefix
    stack = scope.data(f"{prefix}stack", (_TURNS, *x.expected.shape), (_TURNS, *x.shape))
    for made in (scope.inputs, scope.feeds):
        made.pop(x.name, None)  # the stack is there instead
    bodies = [block.inside("s_") for _ in stack.expected]  # the model has the first
    piece = bodies[0].like(x, "x")
    parts = [
        body.split(places, replace(piece, expected=entry))
        for body, entry in zip(bodies, stack.expected, strict=True)
    ]
    outputs = block.renamed(
        replace(
            values[0],
            shape=(_TURNS, *values[0].shape),
            expected=None if scope.model.sizes is None else np.stack([v.expected for v in values]),
        )
        for values in zip(*parts, strict=True)
    )
    graph = bodies[0].graph("body", parts[0], [piece])
    return block.add("Scan", [stack.name], outputs, body=graph, num_scan_inputs=1)


def _function(block: NodeBlock, places: Sequence[str], x: Value) -> list[Value]:
    """Return a function of the model, whose inputs are all that its nodes refer to."""
    scope, model, body = block.scope, block.scope.model, block.inside("f_")
    inner = body.like(x, "x")
    parts = body.split(places, inner)
    used, name = free_names(body.nodes), f"Cut{len(scope.functions)}"
    imports = [helper.make_opsetid("", model.opset), helper.make_opsetid(LOCAL, 1)]
    attributes = model.attributes if model.by_reference else {}
    scope.functions.append(
        helper.make_function(
            LOCAL, name, used, _names(parts), body.nodes, imports, sorted(attributes)
        )
    )
    given = [x.name if entry == inner.name else entry for entry in used]
    return block.add(name, given, block.renamed(parts), domain=LOCAL, **attributes)


_BODIES = {"if": _if, "loop": _loop, "scan": _scan, "function": _function}
"""What makes each place, but for the main graph."""


def free_names(nodes: Iterable[NodeProto], inputs: Iterable[ValueInfoProto] = ()) -> list[str]:
    """List the names that nodes use and neither they nor inputs make, by first use."""
    made = {entry.name for entry in inputs}
    found: dict[str, None] = {}
    for node in nodes:
        bodies = [free_names(a.g.node, a.g.input) for a in node.attribute if a.HasField("g")]
        wanted = itertools.chain(node.input, *bodies)
        found.update(dict.fromkeys(name for name in wanted if name and name not in made))
        made.update(node.output)
    return list(found)


def _names(values: Iterable[Value]) -> list[str]:
    return [value.name for value in values]


def _at(block: NodeBlock, parts: Value) -> list[Value]:
    """Use SequenceAt: `option` holds the positions, and whether they come at run time."""
    outputs = []
    for number, position in enumerate(block.scope.model.option[0]):
        inputs = [parts.name, *_position(block, number)]
        value = parts.into(f"{block.prefix}y{number}", itemgetter(position))
        outputs += block.add("SequenceAt", inputs, [value])
    return outputs


def _position(block: NodeBlock, number: int = 0) -> list[str]:
    """Return the input for one of the positions of `option`, if it has any."""
    if block.scope.model.option is None:
        return []
    positions, is_runtime = block.scope.model.option
    name, index = f"at{number}", np.array(positions[number])
    if is_runtime:
        return [block.scope.input(name, "int64", index, ())]
    return [block.constant(name, index)]


def _length(block: NodeBlock, parts: Value) -> list[Value]:
    """Use SequenceLength."""
    count = parts.into(f"{block.prefix}y0", lambda items: np.array(len(items)), shape=())
    return block.add("SequenceLength", [parts.name], [replace(count, element_type="int64")])


def _insert(block: NodeBlock, parts: Value) -> list[Value]:
    """Use SequenceInsert of another tensor at the position `option`; None: at the end."""
    model = block.scope.model
    extra = block.scope.data("extra", _of_length(model, model.shape, 2), parts.shape)

    def longer(items: list[Array]) -> list[Array]:
        place = model.option[0][0] if model.option else len(items)
        return [*items[:place], extra.expected, *items[place:]]

    value = parts.into(f"{block.prefix}longer", longer, is_sequence=True)
    inputs = [parts.name, extra.name, *_position(block)]
    return block.add("SequenceInsert", inputs, [value])


def _erase(block: NodeBlock, parts: Value) -> list[Value]:
    """Use SequenceErase of the part at the position `option`; None: the last one."""
    option = block.scope.model.option
    place = option[0][0] if option else -1

    def shorter(items: list[Array]) -> list[Array]:
        return [item for n, item in enumerate(items) if n != place % len(items)]

    value = parts.into(f"{block.prefix}shorter", shorter, is_sequence=True)
    return block.add("SequenceErase", [parts.name, *_position(block)], [value])


def _concat(block: NodeBlock, parts: Value) -> list[Value]:
    """Use ConcatFromSequence: on the axis, or (`option` 1) on a new one."""
    model = block.scope.model
    attributes: dict[str, Any] = {"axis": model.axis}
    shape, join = parts.shape, partial(np.concatenate, axis=model.axis)
    if model.option:
        attributes, shape, join = {"axis": 0, "new_axis": 1}, (None, *shape), partial(np.stack)
    value = parts.into(f"{block.prefix}y0", join, shape=shape)
    return block.add("ConcatFromSequence", [parts.name], [value], **attributes)


def _each(block: NodeBlock, parts: Value) -> list[Value]:
    """Return a Loop that goes over the sequence and puts each part in front of those before it."""
    scope, model, body = block.scope, block.scope.model, block.inside("l_")
    start = scope.data("start", _of_length(model, model.shape, 1), parts.shape)
    i, c, c_out = body.like(_NUMBER, "i"), body.like(_FLAG, "c"), body.like(_FLAG, "c_out")
    was, part, now = (body.like(start, name) for name in ("was", "part", "now"))
    body.add("Identity", [c.name], [c_out])
    body.add("SequenceAt", [parts.name, i.name], [part])
    body.add("Concat", [part.name, was.name], [now], axis=model.axis)
    graph = body.graph(f"{block.prefix}each", [c_out, now], [i, c, was])
    value = parts.into(
        f"{block.prefix}y0",
        lambda items: np.concatenate([*reversed(items), start.expected], axis=model.axis),
    )
    always = scope.initializer("always", np.array(True))
    (count,) = block.add("SequenceLength", [parts.name], [block.like(_NUMBER, "count")])
    return block.add("Loop", [count.name, always, start.name], [value], body=graph)


def _map(block: NodeBlock, parts: Value) -> list[Value]:
    """Use SequenceMap with a body that hands each part on."""
    body = block.inside("m_")
    one, two = (body.like(parts, name, is_sequence=False) for name in ("in", "out"))
    body.add("Identity", [one.name], [two])
    graph = body.graph(f"{block.prefix}each", [two], [one])
    return block.add("SequenceMap", [parts.name], [block.like(parts, "mapped")], body=graph)


_USES: dict[str, Callable[[NodeBlock, Value], list[Value]]] = {
    "output": lambda _, parts: [parts],
    "SequenceAt": _at,
    "SequenceLength": _length,
    "SequenceInsert": _insert,
    "SequenceErase": _erase,
    "ConcatFromSequence": _concat,
    "Loop": _each,
    "SequenceMap": _map,
}
"""The functions that add the nodes after SplitToSequence."""
