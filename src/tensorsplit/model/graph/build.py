"""New nodes in an onnx-ir graph, with names that occur nowhere else in the model."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from tensorsplit.model.graph.nodes import Scope, bodies


class Names:
    """Names that no value or node of a model has, in whatever scope.

    Args:
        model: The model whose names are taken.
    """

    def __init__(self, model: ir.Model) -> None:
        self._taken: set[str] = set()
        self._next: dict[str, int] = {}
        self._take(model.graph)
        for function in model.functions.values():
            self._take(function)

    def _take(self, scope: Scope) -> None:
        names: list[str | None] = [value.name for value in scope.inputs]
        if isinstance(scope, ir.Graph):
            names += scope.initializers
        for node in scope:
            names += [node.name, *(value.name for value in node.outputs)]
            for _, body in bodies(node):
                self._take(body)
        self._taken.update(name for name in names if name)

    def fresh(self, stem: str) -> str:
        """A new name that starts with the stem, and is taken from now on."""
        number = self._next.get(stem, 0)
        while (name := f"{stem}_{number}" if number else stem) in self._taken:
            number += 1
        self._next[stem] = number + 1
        self._taken.add(name)
        return name


class Builder:
    """Makes nodes of ONNX's own domain and collects them in order.

    Args:
        names: Where names come from.
        opset: The opset of the scope that the nodes will stand in.
        stem: What new names start with.

    Attributes:
        nodes: What was made so far; whoever asked for it inserts it into a graph.
    """

    def __init__(self, names: Names, opset: int, stem: str) -> None:
        self.names, self.opset, self.stem = names, opset, stem
        self.nodes: list[ir.Node] = []

    def op(
        self,
        op_type: str,
        inputs: Iterable[ir.Value | None],
        attributes: Mapping[str, Any] | None = None,
        outputs: int | Sequence[ir.Value] = 1,
    ) -> ir.Value:
        """Add a node; returns its first output.

        Args:
            op_type: The operator, spelled as the opset of the builder has it.
            inputs: Its inputs; None for one that is left out.
            attributes: Python values by name.
            outputs: How many outputs it has, or the values that it is to produce.
        """
        values = (
            [
                ir.Value(name=self.names.fresh(f"{self.stem}_{op_type.lower()}"))
                for _ in range(outputs)
            ]
            if isinstance(outputs, int)
            else list(outputs)
        )
        node = ir.Node(
            "",
            op_type,
            list(inputs),
            ir.convenience.convert_attributes(dict(attributes or {})),
            outputs=values,
            name=self.names.fresh(f"{self.stem}_{op_type}"),
        )
        self.nodes.append(node)
        return values[0]

    def constant(self, value: Any, dtype: Any = np.int64) -> ir.Value:
        """Add a Constant node; returns its output, whose value is known to later readers too."""
        array = np.array(value, dtype)
        # Said in full: what onnx-ir finds out for itself costs more than the node
        shape, element = ir.Shape(array.shape), ir.DataType.from_numpy(array.dtype)
        tensor = ir.Tensor(array, element, shape=shape)
        attribute = ir.Attr("value", ir.AttributeType.TENSOR, tensor)
        output = self.op("Constant", [], {"value": attribute})
        output.shape, output.type = ir.Shape(array.shape), ir.TensorType(element)
        return output
