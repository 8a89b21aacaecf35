"""Where an analysed scope stands, and what a rule for an operator is given."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias

import onnx_ir as ir

from tensorsplit.model.graph.facts import Fact


@dataclass(frozen=True)
class Frame:
    """Where a scope stands.

    Attributes:
        path: The path of the graph or function.
        opsets: The opset of each domain in force.
        attributes: The values of a function's attributes, in the call under analysis.
        depth: How many bodies and calls lie around it.
        calls: The functions whose calls lie around it.
    """

    path: str
    opsets: Mapping[str, int]
    attributes: Mapping[str, Any] = field(default_factory=dict)
    depth: int = 0
    calls: frozenset[Any] = frozenset()


class Bodies(Protocol):
    """What analyses the body of a node."""

    def body(self, graph: ir.Graph, inputs: Iterable[Fact], label: str, frame: Frame) -> list[Fact]:
        """Analyse a body with what is known of its inputs; returns what is known of its outputs."""


Rule: TypeAlias = Callable[[Bodies, ir.Node, "list[Fact]", Frame], "list[Fact] | None"]
"""What an operator gives, from what is known of its inputs; None where nothing can be said."""
