"""What is done with the sequence that SplitToSequence gives."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from operator import itemgetter
from typing import Any

import numpy as np
from onnx import NodeProto, TensorProto
from onnx.helper import make_graph, make_node, make_tensor_value_info

from tensorsplit.conformance import oracle
from tensorsplit.conformance.models.onnx_model import (
    Fragment,
    Scope,
    Shape,
    SplitModel,
    Value,
    constant,
)
from tensorsplit.conformance.oracle import Array


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


def _loop(used: SequenceUse) -> Fragment:
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


USES: dict[str, Callable[[SequenceUse], Fragment]] = {
    "output": lambda used: Fragment([], [used.parts]),
    "SequenceAt": _at,
    "SequenceLength": _length,
    "SequenceInsert": _insert,
    "SequenceErase": _erase,
    "ConcatFromSequence": _concat,
    "Loop": _loop,
    "SequenceMap": _map,
}
"""What makes the nodes behind SplitToSequence."""
