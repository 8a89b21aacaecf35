"""A node on its way to another opset."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import onnx_ir as ir

from tensorsplit.core.errors import NO_ADAPTER, SplitError
from tensorsplit.model.graph.nodes import Scope


@dataclass(slots=True)
class Site:
    """A node on its way to another opset.

    Attributes:
        node: The node.
        path: Where it stands in the model.
        scope: The graph or function that lists it.
        opset: The opset whose words it is written in at the moment.
        function: The function it belongs to, through whatever bodies; None in the main graph.
        origin: The operator and opset of the model's own node that this one was made for.
    """

    node: ir.Node
    path: str
    scope: Scope
    opset: int
    function: ir.Function | None
    origin: tuple[str, int] | None = None

    @property
    def op_type(self) -> str:
        """The operator."""
        return self.node.op_type

    def input(self, index: int) -> ir.Value | None:
        """An input, or None if it is left out."""
        return self.node.inputs[index] if index < len(self.node.inputs) else None

    def attribute(self, name: str, default: Any = None) -> Any:
        """The value of an attribute, or the default if it is absent.

        Raises:
            SplitError: TS512 if it stands for an attribute of a function.
        """
        attribute = self.node.attributes.get(name)
        if attribute is None:
            return default
        if attribute.is_ref():
            raise self.refusal(
                f"its attribute '{name}' is known only where the function is called",
                "give its value in the function",
            )
        return attribute.value

    def take(self, name: str, default: Any = None) -> Any:
        """Remove an attribute; returns its value, or the default if it is absent."""
        value = self.attribute(name, default)
        self.node.attributes.pop(name, None)
        return value

    def put(self, name: str, value: Any) -> None:
        """Set an attribute to a Python value."""
        self.node.attributes[name] = ir.convenience.convert_attribute(name, value)

    def set_inputs(self, values: Sequence[ir.Value | None]) -> None:
        """Replace all inputs; those left out at the end are cut off."""
        given = list(values)
        while given and given[-1] is None:
            given.pop()
        self.node.resize_inputs(len(given))
        for index, value in enumerate(given):
            if self.node.inputs[index] is not value:
                self.node.replace_input_with(index, value)

    def refusal(self, reason: str, fix: str = "") -> SplitError:
        """TS512 for this node; whoever drives the conversion adds where it was to go."""
        return SplitError(NO_ADAPTER, reason, fix, operator=self.op_type, node=self.path)
