"""Dequantised data that ONNX Runtime moves: it quantises them again, or does not load the model."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from itertools import islice
from types import MappingProxyType
from typing import TypeAlias

import numpy as np
import onnx_ir as ir

from tensorsplit.core.dimensions import MAX_DIM, Shape
from tensorsplit.model.features.from_constants import is_fixed
from tensorsplit.model.features.quantized import (
    BYTES,
    JOINED,
    ZERO_POINT,
    constant_or_cast,
    has_blocks,
)
from tensorsplit.model.graph.held_tensors import constant
from tensorsplit.model.graph.nodes import NodeRef, attribute_of, bodies, is_operator, is_used
from tensorsplit.model.graph.producers import first_input, origins, passed_from, producer_of
from tensorsplit.model.infer.analysis import Facts
from tensorsplit.model.reached import each_once

_MOVING = frozenset({"MaxPool", "Reshape", "Slice", "Squeeze", "Transpose", "Unsqueeze"})
"""The operators after which ONNX Runtime quantises again what is given back, and gives it back."""

_SIGNED = frozenset({ir.DataType.INT8, ir.DataType.INT32})
"""The types that it quantises to uint8 without a zero point."""

_NOT_POOLED = frozenset({ir.DataType.INT4, ir.DataType.UINT4})
"""The types of which it has no MaxPool, though it puts that before the node that gives back."""

_FIRST_POOLED = 12
"""From here on a MaxPool takes what is quantised."""

_FIRST_WITH_TYPE = 21
"""From here on a QuantizeLinear has an attribute for the type that it quantises to."""

_Use: TypeAlias = "tuple[ir.Node, int]"
"""A node, and the place at which it reads a value."""


def of_requantized(ref: NodeRef, facts: Facts) -> Iterator[str]:
    """Yield the features of a DequantizeLinear by one scale, and of its readers."""
    node = ref.node
    if ref.op_type != "DequantizeLinear" or has_blocks(node) or len(node.outputs) != 1:
        return
    if not _is_by_one_constant(node, facts):
        return
    yield from _of_moved(ref, facts)
    if not ref.around and _is_between_two(node, facts):
        yield "rounded_once"


def _is_by_one_constant(node: ir.Node, facts: Facts) -> bool:
    """Return whether a scale and a zero point are constants of one element."""
    by = [held for held in node.inputs[1:3] if held is not None]
    return bool(by) and all(
        facts.tensor(held).shape in ((), (1,)) and is_fixed(held, facts) for held in by
    )


def _of_moved(ref: NodeRef, facts: Facts) -> Iterator[str]:
    """Yield the features of nodes that move data dequantised by one scale, in ONNX Runtime."""
    node, kind = ref.node, facts.tensor(ref.input(0)).element_type
    zero = ref.input(ZERO_POINT)
    source = passed_from(zero)
    has_type = node.domain == "" and ref.opset >= _FIRST_WITH_TYPE
    is_number = kind == ir.DataType.INT32
    is_pooled = ref.opset >= _FIRST_POOLED
    moves = _Moves(_MOVING if is_pooled else _MOVING - {"MaxPool"}, facts)
    every = moves.after(node.outputs[0])
    moved = list(filter(moves.uses, every))
    is_turned = any(made.op_type == "Transpose" for made in map(producer_of, every) if made)
    moving = {made.op_type for made in map(producer_of, moved) if made is not None}
    if is_fixed(ref.input(0), facts):  # what is given back is calculated when the model is loaded
        moved, moving = [], set()
    elif any(moves.is_read_in_body(held) for held in moved):
        yield "moved_into_body"
    if moving and kind in _SIGNED and not (zero or has_type):
        yield "moved_without_zero_point"
    if (
        (is_number and zero and is_turned)  # also of a constant, or if nothing reads it
        or (moving and is_number and (zero or (has_type and any(map(_is_read_on, moved)))))
        or (
            kind == ir.DataType.INT8
            and has_type
            and source is not None
            and source.graph is node.graph
            and moves.is_any_used_once(node.outputs[0], moved)
        )
        or ("MaxPool" in moving and kind in _NOT_POOLED)
    ):
        yield "moved_signed"


def _is_read_on(moved: ir.Value) -> bool:
    """Return whether nodes read what was moved, or it is not all of what was given back."""
    made = producer_of(moved)
    return bool(moved.uses()) or made is None or not _takes_all(made)


class _Moves:
    """The values that nodes make of one by moving it, as ONNX Runtime sees these nodes.

    Attributes:
        _moving: The operators that move.
        _known: What reads a value, after nodes that ONNX Runtime leaves out.
    """

    def __init__(self, moving: frozenset[str], facts: Facts) -> None:
        self._moving = moving
        self._facts = facts
        self._known: dict[ir.Value, list[_Use]] = {}

    def after(self, made: ir.Value) -> list[ir.Value]:
        """Return the values made of one by moving it in its graph, if not quantised again.

        Where a node quantises what was moved by a scale of one number, and nothing else reads that,
        all moves before it come after.
        """
        again, ended = set[ir.Value](), set[ir.Value]()
        for held in reversed(list(each_once([made], self._moved))):  # what follows comes before
            quantizing = [
                node
                for node, _ in self._readers(held)
                if node.op_type == "QuantizeLinear" and node.graph is held.graph
            ]
            is_before = not again.isdisjoint(self._moved(held))
            if quantizing or is_before:
                ended.add(held)
            is_first = any(_is_by_one_constant(each, self._facts) for each in quantizing)
            if (is_first or is_before) and self.uses(held) == 1:
                again.add(held)
        _, *moved = each_once([made], lambda held: () if held in ended else self._moved(held))
        return [held for held in moved if held not in ended]

    def is_read_in_body(self, held: ir.Value) -> bool:
        """Return whether a body reads a value."""
        return any(node.graph is not held.graph for node, _ in self._readers(held))

    def is_any_used_once(self, made: ir.Value, moved: Iterable[ir.Value]) -> bool:
        """Return whether one of the values is read once, or given out and not read.

        Nodes that do the same are one, but for those that read the first value itself. None is, as
        far as ONNX Runtime sees, if a Transpose and others read what a node gives that is left out
        after the first value.
        """
        for passed in _passed_on(made, self._facts):
            readers = [node for node, _ in self._readers(passed)]
            if len(readers) > 1 and any(node.op_type == "Transpose" for node in readers):
                return False
        uses = Counter[object]()
        for held in moved:
            node = producer_of(held)
            if node is not None and not _takes_all(node) and not self._is_reshaped_again(held):
                uses[node if node.inputs[0] is made else _sort(node)] += self.uses(held)
        return 1 in uses.values()

    def _is_reshaped_again(self, held: ir.Value) -> bool:
        """Return whether only a Reshape reads what a Reshape gives: ONNX Runtime makes one of both.

        Not of those whose zeros are lengths.
        """
        made, readers = producer_of(held), [node for node, _ in self._readers(held)]
        if made is None or len(set(map(_sort, readers))) != 1 or held.is_graph_output():
            return False
        return all(
            each.op_type == "Reshape" and not attribute_of(each, "allowzero", ir.AttributeType.INT)
            for each in (made, readers[0])
        )

    def _readers(self, held: ir.Value) -> list[_Use]:
        if held not in self._known:
            self._known[held] = list(_readers(held, self._facts))
        return self._known[held]

    def uses(self, held: ir.Value) -> int:
        """Return how often a value is read or given out; by nodes that do the same, once."""
        read = {(_sort(node), place) for node, place in self._readers(held)}
        return len(read) + held.is_graph_output()

    def _moved(self, held: ir.Value) -> list[ir.Value]:
        """Return the values that nodes of one graph make of one by moving it."""
        near = (node for node, place in self._readers(held) if not place)
        return [
            node.outputs[0]
            for node in near
            if node.graph is held.graph and node.domain == "" and node.outputs
            if node.op_type in self._moving
        ]


def _sort(node: ir.Node) -> object:
    """Return a key that is equal for nodes that do the same, of which ONNX Runtime keeps one."""
    if any(made.is_graph_output() for made in node.outputs) or any(bodies(node)):
        return node
    return node.op_identifier(), tuple(node.inputs), str(node.attributes)


def _readers(held: ir.Value, facts: Facts) -> Iterator[_Use]:
    """Yield the readers of a value, also through nodes that ONNX Runtime leaves out."""
    for value in each_once([held], partial(_passed_on, facts=facts)):
        yield from (use for use in value.uses() if _passed(use, value, facts) is None)


def _passed_on(held: ir.Value, facts: Facts) -> list[ir.Value]:
    passed = (_passed(use, held, facts) for use in held.uses())
    return [made for made in passed if made is not None]


def _passed(use: _Use, held: ir.Value, facts: Facts) -> ir.Value | None:
    """Return the output of a node that equals its input, if ONNX Runtime leaves the node out."""
    node, place = use
    if place or node.graph is not held.graph or node.domain != "" or not node.outputs:
        return None
    made, *others = node.outputs
    is_left_out = not (made.is_graph_output() or any(map(is_used, others)))
    return made if is_left_out and gives_same(node, facts) else None


def gives_same(node: ir.Node, facts: Facts) -> bool:
    """Return whether a node gives what it is given, by what is known of it as it is loaded."""
    if node.op_type == "Cast" and node.inputs and node.outputs:
        return facts.element_types(node.inputs[0]) == facts.element_types(node.outputs[0])
    return node.op_type in ("Dropout", "Identity") or _takes_all(node)


def _takes_all(node: ir.Node) -> bool:
    """Return whether a Slice goes from 0 to the largest number, along each of its axes."""
    if node.op_type != "Slice":
        return False
    places = {1: 0, 2: MAX_DIM, 4: 1}
    given = {at: node.inputs[at] for at in places if at < len(node.inputs)}
    numbers = {at: constant(passed_from(held)) for at, held in given.items() if held is not None}
    return {1, 2} <= numbers.keys() and all(
        held is not None and held.dtype == np.int64 and bool((held == places[at]).all())
        for at, held in numbers.items()
    )


def _is_between_two(node: ir.Node, facts: Facts) -> bool:
    """Return whether a node gives back what is then quantised to the same type by other constants.

    Nothing else may read any of it, up to what gives it back at last, by the same constants.
    """
    before = producer_of(passed_from(node.inputs[0]))
    after = only_reader(node.outputs[0], facts)
    if before is None or after is None or only_reader(before.outputs[0], facts) is not node:
        return False
    if after.outputs[0].is_graph_output():
        return False
    last = [node for node, _ in _readers(after.outputs[0], facts)]
    nodes = (before, node, after, *last)
    named = [each.op_type for each in nodes]
    if named[:3] != _QUANTISED_TWICE or {*named[3:]} != {"DequantizeLinear"}:
        return False
    if any(len(each.inputs) <= ZERO_POINT or has_blocks(each) or each.domain for each in nodes):
        return False
    kinds = {facts.tensor(each.outputs[0]).element_type for each in (before, after)}
    return (
        len(kinds) == 1
        and kinds <= JOINED
        and facts.tensor(node.outputs[0]).element_type == ir.DataType.FLOAT
        and all(_is_by_one_constant(each, facts) for each in nodes)
        and _are_by_same(before, node)
        and all(_are_by_same(after, each) for each in last)
        and not _are_by_same(node, after)
    )


_QUANTISED_TWICE = ["QuantizeLinear", "DequantizeLinear", "QuantizeLinear"]


def only_reader(held: ir.Value, facts: Facts) -> ir.Node | None:
    """Return the only node that reads a value, in its graph; after nodes that are left out."""
    uses = list(islice(_readers(held, facts), 2))
    if len(uses) != 1 or held.is_graph_output():
        return None
    ((reader, place),) = uses
    return reader if not place and reader.graph is held.graph and reader.outputs else None


def _are_by_same(one: ir.Node, other: ir.Node) -> bool:
    """Return whether two nodes have the same scale and zero point."""
    pairs = zip(one.inputs[1:], other.inputs[1:], strict=True)
    return all(_is_same_constant(*pair) for pair in pairs)


def _is_same_constant(one: ir.Value | None, other: ir.Value | None) -> bool:
    if passed_from(one) is passed_from(other):
        return True
    first, second = constant_or_cast(one), constant_or_cast(other)
    return first is not None and second is not None and np.array_equal(first, second)


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
    return made if is_operator(made, "DequantizeLinear") else None


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
    if not is_operator(after, "QuantizeLinear"):
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
