"""What is quantised by channels, of which ONNX Runtime makes nodes that it does not load."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from types import MappingProxyType

import onnx_ir as ir

from tensorsplit.core.dimensions import Shape
from tensorsplit.model.features.from_constants import is_fixed
from tensorsplit.model.features.quantized import BYTES, ZERO_POINT, has_blocks
from tensorsplit.model.features.requantized import gives_same, only_reader
from tensorsplit.model.graph.producers import first_input, origins, producer_of
from tensorsplit.model.infer.analysis import Facts
from tensorsplit.model.reached import each_once

_NUMBER: tuple[Shape, ...] = ((),)
_ONE: tuple[Shape, ...] = ((), (1,))

_JOINED: Mapping[str, tuple[Shape, ...]] = MappingProxyType(
    {
        "AveragePool": _NUMBER,
        "GlobalAveragePool": _ONE,
        "LeakyRelu": _ONE,
        "Sigmoid": _ONE,
    }
)
"""What the engine makes one node of with the two around it, and the shapes of scales it takes."""


def of_channels(node: ir.Node, facts: Facts) -> Iterator[str]:
    """Yield whether the engine puts a node before what gives back its data by channels."""
    if node.domain != "":
        return
    is_turned = node.op_type == "Transpose" and "perm" in node.attributes
    is_other = node.op_type in _JOINED
    before = _given_back_before(node, facts) if is_turned or is_other else None
    if before is None or has_blocks(before):
        return
    if is_turned and _is_moved(before, facts) and not _is_quantized_again(node.outputs[0], facts):
        yield "turned_by_channels"
    elif is_other and _is_joined(before, node, facts):
        yield "joined_by_channels"


def _given_back_before(node: ir.Node, facts: Facts) -> ir.Node | None:
    """Return the node in the same graph that gives back what a node reads, if through others."""

    def same(made: ir.Node) -> ir.Value | None:
        return first_input(made) if made.domain == "" and gives_same(made, facts) else None

    made = producer_of([None, *origins(first_input(node), same)][-1])
    if made is None or made.graph is not node.graph or len(made.inputs) < ZERO_POINT:
        return None
    return made if (made.domain, made.op_type) == ("", "DequantizeLinear") else None


def _is_moved(before: ir.Node, facts: Facts) -> bool:
    """Return whether a node gives back int32 by a list, with a zero point."""
    is_number = facts.tensor(before.inputs[0]).element_type == ir.DataType.INT32
    return is_number and _is_by_list(before, _ONE, facts) and any(before.inputs[ZERO_POINT:])


def _is_quantized_again(made: ir.Value, facts: Facts) -> bool:
    """Return whether a value is quantised, if only after another Transpose."""
    turned = each_once([made], partial(_turned_on, facts=facts))
    readers = (use.node for held in turned for use in held.uses() if not use.idx)
    return any(reader.op_type == "QuantizeLinear" for reader in readers)


def _turned_on(held: ir.Value, facts: Facts) -> list[ir.Value]:
    readers = (use.node for use in held.uses() if use.node.domain == "")
    return [
        each.outputs[0]
        for each in readers
        if each.op_type == "Transpose" or gives_same(each, facts)
    ]


def _is_joined(before: ir.Node, node: ir.Node, facts: Facts) -> bool:
    """Return whether a node is between two, by a list, that the engine makes one of with it."""
    after, data = only_reader(node.outputs[0], facts), before.inputs[0]
    if after is None or (after.domain, after.op_type) != ("", "QuantizeLinear"):
        return False
    kind = facts.tensor(data).element_type
    kinds = (
        facts.tensor(before.outputs[0]).element_type,
        facts.tensor(after.outputs[0]).element_type,
    )
    if kind not in BYTES or kinds != (ir.DataType.FLOAT, kind) or is_fixed(data, facts):
        return False
    return any(_is_by_list(each, _JOINED[node.op_type], facts) for each in (before, after))


def _is_by_list(node: ir.Node, others: tuple[Shape, ...], facts: Facts) -> bool:
    """Return whether the scale of a node is known to have another shape than some."""
    shape = facts.tensor(node.inputs[1]).shape
    return shape is not None and shape not in others
