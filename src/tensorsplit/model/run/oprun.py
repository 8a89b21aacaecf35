"""The family as classes for onnx's reference evaluator."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from onnx import NodeProto
from onnx.reference.op_run import OpRun, RefAttrName

from tensorsplit.model.graph.binding import cut
from tensorsplit.model.graph.nodes import domain_name


class _SplitRun(OpRun):
    """One of the family's operators, at whatever opset the evaluator's model imports."""

    op_domain = ""

    def __init__(self, onnx_node: NodeProto, run_params: dict[str, Any]) -> None:
        super().__init__(onnx_node, run_params)
        opsets: Mapping[str, int] = run_params["opsets"]
        self._opset = {domain_name(domain): opset for domain, opset in opsets.items()}[""]

    def _load_attributes(self) -> None:
        """Leave attributes to `cut`: the base class would add the newest version's to each node.

        Those that stand for an attribute of a function are noted, for `run` to pass their values.
        """
        links = [a for a in self.onnx_node.attribute if a.ref_attr_name]
        for link in links:
            if not hasattr(self, link.name):
                setattr(self, link.name, RefAttrName(link.ref_attr_name))
        self.has_linked_attribute = bool(links)
        self.attributes_names_ = {link.name for link in links}

    def _run(self, *inputs: Any, **attributes: Any) -> tuple[Any, ...]:
        given = [*inputs, *[None] * (len(self.onnx_node.input) - len(inputs))]
        return tuple(cut(self.onnx_node, self._opset, given, attributes))


class Split(_SplitRun):
    """ONNX Split in every version, for ``ReferenceEvaluator(model, new_ops=[Split])``."""


class SplitToSequence(_SplitRun):
    """ONNX SplitToSequence in every version, for ``new_ops`` of the reference evaluator."""


NEW_OPS: list[type[OpRun]] = [Split, SplitToSequence]
"""Both classes, to be given as ``new_ops``."""
