"""One node that makes or takes sequences, as the handlers of its operator see it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import onnx_ir as ir

from tensorsplit.core.errors import SEQUENCE_INDEX, SplitError
from tensorsplit.model.graph.facts import Sequence
from tensorsplit.model.graph.nodes import NodeRef
from tensorsplit.model.lower.arithmetic import Arithmetic, Number
from tensorsplit.model.lower.context import Context, Home, refusal
from tensorsplit.model.lower.reps import Rep

Reps: TypeAlias = "dict[ir.Value, Rep]"
Result: TypeAlias = "Rep | str"
"""What stands for the sequence that a node made, or what its tensor is made with now."""


class Step:
    """One node that makes or takes sequences.

    Args:
        context: The lowering.
        place: The node.
        reps: What stands for each sequence so far.
    """

    def __init__(self, context: Context, place: NodeRef, reps: Reps) -> None:
        assert isinstance(place.node.graph, ir.Graph)  # noqa: S101 - functions were inlined
        self.context, self.place, self.reps = context, place, reps
        self.node = place.node
        self.home = Home(place.node.graph, place.node)
        self.stem = self.node.name or self.node.op_type

    def input(self, index: int) -> ir.Value | None:
        """An input, None if it is left out."""
        return self.node.inputs[index] if index < len(self.node.inputs) else None

    def rep(self) -> Rep:
        """What stands for the first input."""
        value = self.input(0)
        if value is None or value not in self.reps:
            raise refusal("the sequence comes from a node that can't be lowered", self.place)
        return self.reps[value]

    @property
    def fact(self) -> Sequence:
        """What is known of the sequence that the node makes."""
        fact = self.context.facts.of(self.node.outputs[0])
        return fact if isinstance(fact, Sequence) else Sequence()

    def build(self, make: Callable[[Arithmetic], ir.Value]) -> ir.Value:
        """Make nodes in front of this one."""
        return self.context.build(self.home, self.stem, make)

    def result(self, make: Callable[[Arithmetic], ir.Value]) -> None:
        """Make nodes whose last output takes the place of this node's output."""
        self.alias(self.build(make))

    def alias(self, value: ir.Value) -> None:
        """Have a value that is there take the place of this node's output."""
        self.context.replace(self.node.outputs[0], value, self.home)

    def position(self, index: int) -> int | ir.Value | None:
        """A position: an integer, a value to be made a number, or None for one that is absent."""
        value = self.input(index)
        if value is None:
            return None
        known = self.context.tensor(value).constant
        return known[0] if known is not None and len(known) == 1 else value

    def number(self, make: Arithmetic, value: int | ir.Value) -> Number:
        """An operand as a number."""
        if isinstance(value, int):
            return value
        return make.number(value, self.context.tensor(value).element_type == ir.DataType.INT64)

    def constant_position(self, index: int, count: int, extra: int) -> int | None:
        """A constant position among a known number of tensors, counted from the front.

        Raises:
            SplitError: TS511 if it is out of range.
        """
        found = self.position(index)
        if found is None:
            return count - 1 + extra
        if not isinstance(found, int):
            return None
        if not -count <= found < count + extra:
            raise SplitError(
                SEQUENCE_INDEX,
                f"the position {found} is out of range, the sequence has {count} tensors",
                f"give a position in [{-count}, {count - 1 + extra}]",
                operator=self.node.op_type,
                node=self.place.path,
            )
        return found + count if found < 0 else found
