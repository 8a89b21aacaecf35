"""What is done with the sequence that SplitToSequence gives."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

import numpy as np
from onnx import NodeProto, TensorProto, helper

from tensorsplit.conformance import oracle
from tensorsplit.conformance.models.onnx_model import (
    Fragment,
    Scope,
    SplitModel,
    Value,
    constant,
)


@dataclass(frozen=True, slots=True)
class SequenceUse:
    """Where a sequence is used.

    Attributes:
        model: What the model says.
        scope: The main graph.
        parts: The sequence.
        prefix: What the names of new values begin with.
    """

    model: SplitModel
    scope: Scope
    parts: Value
    prefix: str


def _output(used: SequenceUse) -> Fragment:
    """The sequence is what comes out."""
    return Fragment([], [used.parts])


def _at(used: SequenceUse) -> Fragment:
    """SequenceAt: `option` holds the positions, and whether they come at run time."""
    positions, is_runtime = used.model.option
    nodes, outputs = [], []
    for number, position in enumerate(positions):
        made, name = _position(used, number, position, is_runtime)
        expected = None if used.model.sizes is None else used.parts.expected[position]
        value = Value(
            f"{used.prefix}y{number}", used.parts.element_type, used.parts.shape, expected
        )
        node = helper.make_node("SequenceAt", [used.parts.name, name], [value.name])
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
    count = None if used.model.sizes is None else np.array(len(used.parts.expected))
    value = Value(f"{used.prefix}y0", "int64", (), count)
    return Fragment([helper.make_node("SequenceLength", [used.parts.name], [value.name])], [value])


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
    return Fragment([*nodes, helper.make_node("SequenceInsert", inputs, [value.name])], [value])


def _erase(used: SequenceUse) -> Fragment:
    """SequenceErase of the part at the position `option`; None: the last one."""
    place, nodes, where = _given_position(used)
    expected = None
    if used.model.sizes is not None:
        expected = list(used.parts.expected)
        del expected[-1 if place is None else place]
    value = replace(used.parts, name=f"{used.prefix}shorter", expected=expected)
    inputs = [used.parts.name, *where]
    return Fragment([*nodes, helper.make_node("SequenceErase", inputs, [value.name])], [value])


def _concat(used: SequenceUse) -> Fragment:
    """ConcatFromSequence: on the axis, or (`option` 1) on a new one."""
    expected: Any = None
    if used.model.option:
        shape = (None, *used.parts.shape)
        attributes: dict[str, Any] = {"axis": 0, "new_axis": 1}
        if used.model.sizes is not None:
            expected = np.stack(used.parts.expected)
    else:
        shape, attributes = used.parts.shape, {"axis": used.model.axis}
        if used.model.sizes is not None:
            expected = np.concatenate(used.parts.expected, axis=used.model.axis)
    value = Value(f"{used.prefix}y0", used.parts.element_type, shape, expected)
    node = helper.make_node("ConcatFromSequence", [used.parts.name], [value.name], **attributes)
    return Fragment([node], [value])


def _loop(used: SequenceUse) -> Fragment:
    """A Loop that goes over the sequence and puts each part in front of those before it."""
    axis = used.model.axis
    start = used.scope.data("start", used.model, _part_of_length(used.model, 1), used.parts.shape)
    expected = None
    if used.model.sizes is not None:
        expected = np.concatenate([*reversed(used.parts.expected), start.expected], axis=axis)
    names = {key: f"{used.prefix}l_{key}" for key in ("i", "c", "was", "c_out", "part", "now")}
    carried = Value(names["was"], used.parts.element_type, used.parts.shape)
    flag, number = TensorProto.BOOL, TensorProto.INT64
    body = helper.make_graph(
        [
            helper.make_node("Identity", [names["c"]], [names["c_out"]]),
            helper.make_node("SequenceAt", [used.parts.name, names["i"]], [names["part"]]),
            helper.make_node("Concat", [names["part"], names["was"]], [names["now"]], axis=axis),
        ],
        f"{used.prefix}each",
        [
            helper.make_tensor_value_info(names["i"], number, []),
            helper.make_tensor_value_info(names["c"], flag, []),
            carried.info(),
        ],
        [helper.make_tensor_value_info(names["c_out"], flag, []), carried.info(names["now"])],
    )
    value = Value(f"{used.prefix}y0", used.parts.element_type, used.parts.shape, expected)
    always = used.scope.initializer("always", np.array(True))
    nodes = [
        helper.make_node("SequenceLength", [used.parts.name], [f"{used.prefix}count"]),
        helper.make_node(
            "Loop", [f"{used.prefix}count", always, start.name], [value.name], body=body
        ),
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
    body = helper.make_graph(
        [helper.make_node("Identity", [inner.name], [f"{used.prefix}m_out"])],
        f"{used.prefix}each",
        [inner.info()],
        [inner.info(f"{used.prefix}m_out")],
    )
    value = replace(used.parts, name=f"{used.prefix}mapped")
    return Fragment(
        [helper.make_node("SequenceMap", [used.parts.name], [value.name], body=body)], [value]
    )


USES: Mapping[str, Callable[[SequenceUse], Fragment]] = MappingProxyType(
    {
        "output": _output,
        "SequenceAt": _at,
        "SequenceLength": _length,
        "SequenceInsert": _insert,
        "SequenceErase": _erase,
        "ConcatFromSequence": _concat,
        "Loop": _loop,
        "SequenceMap": _map,
    }
)
"""What makes the nodes behind SplitToSequence."""
