"""ONNX models of a split node: the place that it is in, and what is done with its sequence.

Each place takes what makes the nodes inside, and makes the nodes around them. What else a place is
made of (Identity, the control flow itself) is kept to what every engine runs.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial
from operator import itemgetter
from typing import Any

import numpy as np
from onnx import AttributeProto, GraphProto, NodeProto, TensorProto, ValueInfoProto, helper
from onnx.helper import make_graph, make_node, make_opsetid, make_tensor_value_info

from tensorsplit.conformance import data, oracle
from tensorsplit.conformance.case import Built
from tensorsplit.conformance.models.onnx_model import (
    LOCAL,
    Fragment,
    Scope,
    Shape,
    SplitModel,
    Value,
    constant,
    operand_name,
)
from tensorsplit.conformance.oracle import Array

Inside = Callable[[Value, str], Fragment]
"""Makes nodes that split a value, with names that begin as told."""

_TURNS = 2
"""How often a body runs."""


def _if(model: SplitModel, scope: Scope, inside: Inside, x: Value, prefix: str) -> Fragment:
    """Both branches split, one of them what was asked for, the other one other data."""
    other = _like(scope, model, x, f"{prefix}other")
    cond = scope.input(f"{prefix}cond", "bool", np.array(scope.rng.integers(2) == 0))
    branches = [inside(x, f"{prefix}t_"), inside(other, f"{prefix}e_")]
    taken = branches[0 if scope.feeds[cond] else 1].outputs
    outputs = [_renamed(value, prefix, place) for place, value in enumerate(taken)]
    graphs = [_graph(name, branch) for name, branch in zip(("then", "else"), branches, strict=True)]
    bodies = {"then_branch": graphs[0], "else_branch": graphs[1]}
    node = make_node("If", [cond], [value.name for value in outputs], **bodies)
    return Fragment([node], outputs)


def _loop(model: SplitModel, scope: Scope, inside: Inside, x: Value, prefix: str) -> Fragment:
    """A body that splits one of two tensors in turn; what comes out is the last turn's parts."""
    other = _like(scope, model, x, f"{prefix}other")
    seen = [x, other][(_TURNS - 1) % 2]
    names = {key: f"{prefix}b_{key}" for key in ("i", "c", "u", "v", "c_out", "u_out", "v_out")}
    body = inside(replace(seen, name=names["u"]), f"{prefix}b_")
    starts = [_start(scope, value, f"{prefix}start{n}") for n, value in enumerate(body.outputs)]
    outputs = [_renamed(value, prefix, place) for place, value in enumerate(body.outputs)]
    swap = [
        make_node("Identity", [names[source]], [names[to]])
        for source, to in (("c", "c_out"), ("v", "u_out"), ("u", "v_out"))
    ]
    flag, number = TensorProto.BOOL, TensorProto.INT64
    graph = make_graph(
        [*body.nodes, *swap],
        f"{prefix}body",
        [
            make_tensor_value_info(names["i"], number, []),
            make_tensor_value_info(names["c"], flag, []),
            *(replace(x, name=names[key]).info() for key in "uv"),
            *(value.info(f"{prefix}b_was{n}") for n, value in enumerate(body.outputs)),
        ],
        [
            make_tensor_value_info(names["c_out"], flag, []),
            *(replace(x, name=names[f"{key}_out"]).info() for key in "uv"),
            *(value.info() for value in body.outputs),
        ],
    )
    turns = scope.initializer("turns", np.array(_TURNS))
    always = scope.initializer("always", np.array(True))
    last = [f"{prefix}last_u", f"{prefix}last_v", *(value.name for value in outputs)]
    inputs = [turns, always, x.name, other.name, *starts]
    return Fragment([make_node("Loop", inputs, last, body=graph)], outputs)


def _scan(model: SplitModel, scope: Scope, inside: Inside, x: Value, prefix: str) -> Fragment:
    """A body that splits each slice of a stack; what comes out are stacks of parts."""
    stack = scope.data(f"{prefix}stack", model, (_TURNS, *x.expected.shape), (_TURNS, *x.shape))
    piece = replace(x, name=f"{prefix}s_x", expected=stack.expected[0])
    bodies = [inside(piece, f"{prefix}s_")]
    count = len(scope.functions)
    for turn in range(1, _TURNS):  # for what is expected of them; the model has the body once
        bodies.append(inside(replace(piece, expected=stack.expected[turn]), f"{prefix}s_"))
        del scope.functions[count:]
    outputs = [
        replace(
            _renamed(values[0], prefix, place),
            shape=(_TURNS, *values[0].shape),
            expected=None if model.sizes is None else np.stack([v.expected for v in values]),
        )
        for place, values in enumerate(zip(*(body.outputs for body in bodies), strict=True))
    ]
    graph = _graph("body", bodies[0])
    graph.input.append(piece.info())
    node = make_node(
        "Scan", [stack.name], [value.name for value in outputs], body=graph, num_scan_inputs=1
    )
    return Fragment([node], outputs)


def _function(model: SplitModel, scope: Scope, inside: Inside, x: Value, prefix: str) -> Fragment:
    """A function of the model, whose inputs are all that its nodes refer to."""
    body = inside(replace(x, name=f"{prefix}f_x"), f"{prefix}f_")
    used = free_names(body.nodes)
    name = f"Cut{len(scope.functions)}"
    outputs = [_renamed(value, prefix, place) for place, value in enumerate(body.outputs)]
    imports = [make_opsetid("", model.opset), make_opsetid(LOCAL, 1)]
    inner = [value.name for value in body.outputs]
    attributes = _to_references(model, body.nodes) if model.by_reference else {}
    scope.functions.append(
        helper.make_function(LOCAL, name, used, inner, body.nodes, imports, list(attributes))
    )
    given = [x.name if entry == f"{prefix}f_x" else entry for entry in used]
    call = make_node(name, given, [value.name for value in outputs], domain=LOCAL, **attributes)
    return Fragment([call], outputs)


def _to_references(model: SplitModel, nodes: list[NodeProto]) -> dict[str, Any]:
    """Let the attributes of the split node stand for those of the function; their values."""
    values: dict[str, Any] = {}
    for node in nodes:
        if node.op_type == model.op_type:
            for attribute in node.attribute:
                values[attribute.name] = helper.get_attribute_value(attribute)
                name, kind = attribute.name, attribute.type
                attribute.CopyFrom(AttributeProto(name=name, type=kind, ref_attr_name=name))
    return values


def _graph(name: str, fragment: Fragment) -> GraphProto:
    return make_graph(fragment.nodes, name, [], [value.info() for value in fragment.outputs])


def _like(scope: Scope, model: SplitModel, x: Value, name: str) -> Value:
    """More data, of the same shape and declared in the same way."""
    return scope.data(name, model, x.expected.shape, x.shape)


def _renamed(value: Value, prefix: str, place: int) -> Value:
    return replace(value, name=f"{prefix}y{place}")


def _start(scope: Scope, value: Value, name: str) -> str:
    """What a loop would give for a part if its body never ran."""
    shape = tuple(dim if isinstance(dim, int) else 1 for dim in value.shape)
    shape = shape if value.expected is None else value.expected.shape
    array = data.values(value.element_type, shape, scope.rng)
    return scope.input(name, value.element_type, array, value.shape)


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


_BODIES = {"if": _if, "loop": _loop, "scan": _scan, "function": _function}
"""What makes each place, but for the main graph."""


@dataclass(frozen=True, slots=True)
class SequenceUse:
    """Where a sequence is used, and what the names of new values begin with."""

    model: SplitModel
    scope: Scope
    parts: Value
    prefix: str

    def value(self, name: str, shape: Shape, expected: Callable[[list[Array]], Any]) -> Value:
        """A new tensor, and what it is expected to be of the parts, if any are expected."""
        parts = self.parts.expected
        found = None if self.model.sizes is None else expected(parts)
        return Value(f"{self.prefix}{name}", self.parts.element_type, shape, found)


def _at(used: SequenceUse) -> Fragment:
    """SequenceAt: `option` holds the positions, and whether they come at run time."""
    positions, is_runtime = used.model.option
    nodes, outputs = [], []
    for number, position in enumerate(positions):
        made, name = _position(used, number, position, is_runtime)
        value = used.value(f"y{number}", used.parts.shape, itemgetter(position))
        node = make_node("SequenceAt", [used.parts.name, name], [value.name])
        nodes += [*made, node]
        outputs.append(value)
    return Fragment(nodes, outputs)


def _position(
    used: SequenceUse, number: int, position: int, is_runtime: bool
) -> tuple[list[NodeProto], str]:
    """A position in the sequence: its name, and the nodes that make it."""
    index = np.array(position)
    if is_runtime:
        return [], used.scope.input(f"at{number}", "int64", index)
    name = f"{used.prefix}at{number}"
    return [constant(name, index)], name


def _given_position(used: SequenceUse) -> tuple[int | None, list[NodeProto], list[str]]:
    """The one position of `option`, if it holds one, and the names of the inputs that say it."""
    if used.model.option is None:
        return None, [], []
    (position,), is_runtime = used.model.option
    nodes, name = _position(used, 0, position, is_runtime)
    return position, nodes, [name]


def _length(used: SequenceUse) -> Fragment:
    """SequenceLength."""
    count = used.value("y0", (), lambda parts: np.array(len(parts)))
    value = replace(count, element_type="int64")
    return Fragment([make_node("SequenceLength", [used.parts.name], [value.name])], [value])


def _insert(used: SequenceUse) -> Fragment:
    """SequenceInsert of another tensor at the position `option`; None: at the end."""
    extra = used.scope.data("extra", used.model, _part_of_length(used.model, 2), used.parts.shape)
    place, nodes, where = _given_position(used)
    expected = None
    if used.model.sizes is not None:
        expected = list(used.parts.expected)
        expected.insert(len(expected) if place is None else place, extra.expected)
    value = replace(used.parts, name=f"{used.prefix}longer", expected=expected)
    inputs = [used.parts.name, extra.name, *where]
    return Fragment([*nodes, make_node("SequenceInsert", inputs, [value.name])], [value])


def _erase(used: SequenceUse) -> Fragment:
    """SequenceErase of the part at the position `option`; None: the last one."""
    place, nodes, where = _given_position(used)
    expected = None
    if used.model.sizes is not None:
        expected = list(used.parts.expected)
        del expected[-1 if place is None else place]
    value = replace(used.parts, name=f"{used.prefix}shorter", expected=expected)
    inputs = [used.parts.name, *where]
    return Fragment([*nodes, make_node("SequenceErase", inputs, [value.name])], [value])


def _concat(used: SequenceUse) -> Fragment:
    """ConcatFromSequence: on the axis, or (`option` 1) on a new one."""
    axis = used.model.axis
    if used.model.option:
        attributes: dict[str, Any] = {"axis": 0, "new_axis": 1}
        value = used.value("y0", (None, *used.parts.shape), np.stack)
    else:
        attributes = {"axis": axis}
        value = used.value("y0", used.parts.shape, lambda parts: np.concatenate(parts, axis=axis))
    node = make_node("ConcatFromSequence", [used.parts.name], [value.name], **attributes)
    return Fragment([node], [value])


def _each(used: SequenceUse) -> Fragment:
    """A Loop that goes over the sequence and puts each part in front of those before it."""
    axis = used.model.axis
    start = used.scope.data("start", used.model, _part_of_length(used.model, 1), used.parts.shape)
    names = {key: f"{used.prefix}l_{key}" for key in ("i", "c", "was", "c_out", "part", "now")}
    carried = Value(names["was"], used.parts.element_type, used.parts.shape)
    flag, number = TensorProto.BOOL, TensorProto.INT64
    body = make_graph(
        [
            make_node("Identity", [names["c"]], [names["c_out"]]),
            make_node("SequenceAt", [used.parts.name, names["i"]], [names["part"]]),
            make_node("Concat", [names["part"], names["was"]], [names["now"]], axis=axis),
        ],
        f"{used.prefix}each",
        [
            make_tensor_value_info(names["i"], number, []),
            make_tensor_value_info(names["c"], flag, []),
            carried.info(),
        ],
        [make_tensor_value_info(names["c_out"], flag, []), carried.info(names["now"])],
    )
    value = used.value(
        "y0",
        used.parts.shape,
        lambda parts: np.concatenate([*reversed(parts), start.expected], axis=axis),
    )
    always = used.scope.initializer("always", np.array(True))
    nodes = [
        make_node("SequenceLength", [used.parts.name], [f"{used.prefix}count"]),
        make_node("Loop", [f"{used.prefix}count", always, start.name], [value.name], body=body),
    ]
    return Fragment(nodes, [value])


def _part_of_length(model: SplitModel, length: int) -> tuple[int, ...]:
    """The shape of a part of a length; without the axis, its length doesn't matter."""
    if not model.keepdims:
        return oracle.without(model.shape, model.axis)
    return oracle.resized(model.shape, model.axis, length)


def _map(used: SequenceUse) -> Fragment:
    """SequenceMap with a body that hands each part on."""
    inner = Value(f"{used.prefix}m_in", used.parts.element_type, used.parts.shape)
    body = make_graph(
        [make_node("Identity", [inner.name], [f"{used.prefix}m_out"])],
        f"{used.prefix}each",
        [inner.info()],
        [inner.info(f"{used.prefix}m_out")],
    )
    value = replace(used.parts, name=f"{used.prefix}mapped")
    return Fragment([make_node("SequenceMap", [used.parts.name], [value.name], body=body)], [value])


_USES: dict[str, Callable[[SequenceUse], Fragment]] = {
    "output": lambda used: Fragment([], [used.parts]),
    "SequenceAt": _at,
    "SequenceLength": _length,
    "SequenceInsert": _insert,
    "SequenceErase": _erase,
    "ConcatFromSequence": _concat,
    "Loop": _each,
    "SequenceMap": _map,
}
"""What makes the nodes behind SplitToSequence."""


def build(model: SplitModel, rng: np.random.Generator) -> Built:
    """The files of a case, with elements drawn from `rng`.

    Inputs that are left to their default are the last ones, so that values can be given in order.
    The IR version is an old one that has all that is in the model.
    """
    scope = Scope(rng)
    make = partial(_split, model, scope)
    for place in reversed(model.places):
        make = partial(_BODIES[place], model, scope, make)
    x = scope.data("x", model, model.shape, model.declared_shape)
    fragment = make(x, "")
    scope.keep(free_names(fragment.nodes))
    inputs = sorted(scope.inputs.values(), key=lambda entry: entry.name not in scope.feeds)
    outputs = [value.info() for value in fragment.outputs]
    initializers = list(scope.initializers.values())
    imports = [make_opsetid("", model.opset), make_opsetid(LOCAL, 1)]
    proto = helper.make_model(
        make_graph(fragment.nodes, "case", inputs, outputs, initializers),
        opset_imports=imports[: 1 + bool(scope.functions)],
        functions=scope.functions,
        ir_version=10 if model.opset >= 21 else 8,
        producer_name="tensorsplit.conformance",
    )
    expected = None
    if model.sizes is not None:
        expected = {value.name: value.expected for value in fragment.outputs}
    return Built(proto.SerializeToString(deterministic=True), b"", scope.feeds, expected)


def _split(model: SplitModel, scope: Scope, x: Value, prefix: str) -> Fragment:
    """The split node, and what is done with its sequence."""
    nodes: list[NodeProto] = []
    inputs = [x.name]
    if model.operand is not None:
        nodes, split = operand_name(scope, model.operand, prefix)
        inputs.append(split)
    elif model.blank:
        inputs.append("")
    parts = _parts(model, x)
    if model.use:
        sequence = Value(f"{prefix}parts", x.element_type, _any_part(model, x), parts, True)
        nodes.append(make_node(model.op_type, inputs, [sequence.name], **model.attributes))
        used = _USES[model.use](SequenceUse(model, scope, sequence, prefix))
        return Fragment([*nodes, *used.nodes], used.outputs)
    names = [
        "" if place in model.unnamed else f"{prefix}y{place}" for place in range(model.outputs)
    ]
    nodes.append(make_node(model.op_type, inputs, names, **model.attributes))
    outputs = [
        Value(name, x.element_type, _shape(model, x, place), part)
        for place, (name, part) in enumerate(zip(names, parts, strict=True))
        if name
    ]
    return Fragment(nodes, outputs)


def _parts(model: SplitModel, x: Value) -> list[Array | None]:
    if model.sizes is None:
        return [None] * model.outputs
    return list(oracle.parts(x.expected, model.axis, model.sizes, model.keepdims))


def _shape(model: SplitModel, x: Value, place: int) -> Shape:
    """What is declared of a part: its length only where the model knows that of the data."""
    axis = model.axis if -len(x.shape) <= model.axis < len(x.shape) else 0
    if not x.shape:
        return ()
    is_overridden = model.operand is not None and model.operand.default is not None
    if model.sizes is None or is_overridden or not isinstance(x.shape[axis], int):
        return oracle.resized(x.shape, axis, None)
    return oracle.resized(x.shape, axis, model.sizes[place])


def _any_part(model: SplitModel, x: Value) -> Shape:
    """What is declared of every part of a sequence."""
    if not x.shape or not -len(x.shape) <= model.axis < len(x.shape):
        return x.shape
    if not model.keepdims:
        return oracle.without(x.shape, model.axis)
    return oracle.resized(x.shape, model.axis, None)
