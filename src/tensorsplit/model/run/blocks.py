"""Models ready to run, as data: blocks of steps, each name resolved."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from onnx import NodeProto, TypeProto

from tensorsplit.model.graph.tensors import Constant


@dataclass(slots=True, eq=False)
class Step:
    """A node, ready to run.

    Attributes:
        node: The node; no attribute is a link, and no input is one that the call leaves out.
        path: Where it stands, for messages.
        domain: Its domain; ONNX's own is ``""``.
        opset: The opset of its domain.
        opsets: The opsets in force.
        blocks: Its bodies by attribute name.
        callee: The function that it calls, or None.
        release: Names that no later step reads.
        kernel: What runs it, kept from one run to the next by whoever runs it.
    """

    node: NodeProto
    path: str
    domain: str
    opset: int
    opsets: Mapping[str, int]
    blocks: Mapping[str, Block]
    callee: Block | None = None
    release: tuple[str, ...] = ()
    kernel: Any = None


@dataclass(slots=True, eq=False)
class Block:
    """A graph, a body, or a function for one kind of call.

    Attributes:
        inputs: The names of what is passed in, in order.
        input_types: Their declared types; empty messages where none is.
        outputs: The names of what is returned, in order.
        output_types: Their declared types; empty messages where none is.
        constants: Initializers and results of Constant nodes, by name.
        steps: The nodes in order.
        captures: Names that are read from the blocks around it.
        weight: How many nodes it runs, with all that it calls.
    """

    inputs: tuple[str, ...]
    input_types: tuple[TypeProto, ...]
    outputs: tuple[str, ...]
    output_types: tuple[TypeProto, ...]
    constants: dict[str, Constant]
    steps: list[Step] = field(default_factory=list)
    captures: set[str] = field(default_factory=set)
    weight: int = 0


def plan_release(block: Block) -> None:
    """Note after which step each value is not read any more, so that it can be let go."""
    needed = set(block.outputs) | set(block.constants)
    local = set(block.inputs) | {name for step in block.steps for name in step.node.output}
    for step in reversed(block.steps):
        used = {*step.node.input, *step.node.output}.union(
            *(entry.captures for entry in step.blocks.values())
        )
        step.release = tuple(sorted((used & local) - needed - {""}))
        needed |= used
