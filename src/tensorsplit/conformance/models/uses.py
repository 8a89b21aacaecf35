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
class Site:
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


def _output(site: Site) -> Fragment:
    """The sequence is what comes out."""
    return Fragment([], [site.parts])


def _at(site: Site) -> Fragment:
    """SequenceAt: `option` holds the positions, and whether they come at run time."""
    positions, is_runtime = site.model.option
    nodes, outputs = [], []
    for number, position in enumerate(positions):
        made, name = _position(site, number, position, is_runtime)
        expected = None if site.model.sizes is None else site.parts.expected[position]
        value = Value(
            f"{site.prefix}y{number}", site.parts.element_type, site.parts.shape, expected
        )
        node = helper.make_node("SequenceAt", [site.parts.name, name], [value.name])
        nodes += [*made, node]
        outputs.append(value)
    return Fragment(nodes, outputs)


def _position(
    site: Site, number: int, position: int, is_runtime: bool
) -> tuple[list[NodeProto], str]:
    """A position in the sequence: its name, and the nodes that make it."""
    index = np.array(position)
    if is_runtime:
        return [], site.scope.input(f"at{number}", "int64", index)
    name = f"{site.prefix}at{number}"
    return [constant(name, index)], name


def _given_position(site: Site) -> tuple[int | None, list[NodeProto], list[str]]:
    """The one position of `option`, if it holds one, and the names of the inputs that say it."""
    if site.model.option is None:
        return None, [], []
    (position,), is_runtime = site.model.option
    nodes, name = _position(site, 0, position, is_runtime)
    return position, nodes, [name]


def _length(site: Site) -> Fragment:
    """SequenceLength."""
    count = None if site.model.sizes is None else np.array(len(site.parts.expected))
    value = Value(f"{site.prefix}y0", "int64", (), count)
    return Fragment([helper.make_node("SequenceLength", [site.parts.name], [value.name])], [value])


def _insert(site: Site) -> Fragment:
    """SequenceInsert of another tensor at the position `option`; None: at the end."""
    extra = site.scope.data("extra", site.model, _part_of_length(site.model, 2), site.parts.shape)
    place, nodes, where = _given_position(site)
    expected = None
    if site.model.sizes is not None:
        expected = list(site.parts.expected)
        expected.insert(len(expected) if place is None else place, extra.expected)
    value = replace(site.parts, name=f"{site.prefix}longer", expected=expected)
    inputs = [site.parts.name, extra.name, *where]
    return Fragment([*nodes, helper.make_node("SequenceInsert", inputs, [value.name])], [value])


def _erase(site: Site) -> Fragment:
    """SequenceErase of the part at the position `option`; None: the last one."""
    place, nodes, where = _given_position(site)
    expected = None
    if site.model.sizes is not None:
        expected = list(site.parts.expected)
        del expected[-1 if place is None else place]
    value = replace(site.parts, name=f"{site.prefix}shorter", expected=expected)
    inputs = [site.parts.name, *where]
    return Fragment([*nodes, helper.make_node("SequenceErase", inputs, [value.name])], [value])


def _concat(site: Site) -> Fragment:
    """ConcatFromSequence: on the axis, or (`option` 1) on a new one."""
    expected: Any = None
    if site.model.option:
        shape = (None, *site.parts.shape)
        attributes: dict[str, Any] = {"axis": 0, "new_axis": 1}
        if site.model.sizes is not None:
            expected = np.stack(site.parts.expected)
    else:
        shape, attributes = site.parts.shape, {"axis": site.model.axis}
        if site.model.sizes is not None:
            expected = np.concatenate(site.parts.expected, axis=site.model.axis)
    value = Value(f"{site.prefix}y0", site.parts.element_type, shape, expected)
    node = helper.make_node("ConcatFromSequence", [site.parts.name], [value.name], **attributes)
    return Fragment([node], [value])


def _loop(site: Site) -> Fragment:
    """A Loop that goes over the sequence and puts each part in front of those before it."""
    axis = site.model.axis
    start = site.scope.data("start", site.model, _part_of_length(site.model, 1), site.parts.shape)
    expected = None
    if site.model.sizes is not None:
        expected = np.concatenate([*reversed(site.parts.expected), start.expected], axis=axis)
    names = {key: f"{site.prefix}l_{key}" for key in ("i", "c", "was", "c_out", "part", "now")}
    carried = Value(names["was"], site.parts.element_type, site.parts.shape)
    flag, number = TensorProto.BOOL, TensorProto.INT64
    body = helper.make_graph(
        [
            helper.make_node("Identity", [names["c"]], [names["c_out"]]),
            helper.make_node("SequenceAt", [site.parts.name, names["i"]], [names["part"]]),
            helper.make_node("Concat", [names["part"], names["was"]], [names["now"]], axis=axis),
        ],
        f"{site.prefix}each",
        [
            helper.make_tensor_value_info(names["i"], number, []),
            helper.make_tensor_value_info(names["c"], flag, []),
            carried.info(),
        ],
        [helper.make_tensor_value_info(names["c_out"], flag, []), carried.info(names["now"])],
    )
    value = Value(f"{site.prefix}y0", site.parts.element_type, site.parts.shape, expected)
    always = site.scope.initializer("always", np.array(True))
    nodes = [
        helper.make_node("SequenceLength", [site.parts.name], [f"{site.prefix}count"]),
        helper.make_node(
            "Loop", [f"{site.prefix}count", always, start.name], [value.name], body=body
        ),
    ]
    return Fragment(nodes, [value])


def _part_of_length(model: SplitModel, length: int) -> tuple[int, ...]:
    """The shape of a part of a length; without the axis, its length doesn't matter."""
    if not model.keepdims:
        return oracle.without(model.shape, model.axis)
    return oracle.resized(model.shape, model.axis, length)


def _map(site: Site) -> Fragment:
    """SequenceMap with a body that hands each part on."""
    inner = Value(f"{site.prefix}m_in", site.parts.element_type, site.parts.shape)
    body = helper.make_graph(
        [helper.make_node("Identity", [inner.name], [f"{site.prefix}m_out"])],
        f"{site.prefix}each",
        [inner.info()],
        [inner.info(f"{site.prefix}m_out")],
    )
    value = replace(site.parts, name=f"{site.prefix}mapped")
    return Fragment(
        [helper.make_node("SequenceMap", [site.parts.name], [value.name], body=body)], [value]
    )


USES: Mapping[str, Callable[[Site], Fragment]] = MappingProxyType(
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
