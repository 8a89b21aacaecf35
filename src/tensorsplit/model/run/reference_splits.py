"""The splits as classes for onnx's reference evaluator, at whatever opset a model imports."""

from __future__ import annotations

from typing import Any

import onnx_ir as ir
from onnx import NodeProto
from onnx.reference.op_run import OpRun, RefAttrName

from tensorsplit.model.graph.binding import bind, execute
from tensorsplit.model.graph.opsets import domain_opsets
from tensorsplit.model.validity.message_errors import check_attributes


class _SplitRun(OpRun):
    """One of the family's operators, at whatever opset the evaluator's model imports."""

    op_domain = ""

    def __init__(self, onnx_node: NodeProto, run_params: dict[str, Any]) -> None:
        super().__init__(onnx_node, run_params)
        check_attributes(onnx_node)
        self._node = ir.serde.deserialize_node(onnx_node)
        self._opset = domain_opsets(run_params["opsets"])[""]

    def _load_attributes(self) -> None:
        """Leave attributes to `bind`: the base class would add defaults of the newest version.

        Those that refer to an attribute of a function are noted, for `run` to pass their values.
        """
        links = [a for a in self.onnx_node.attribute if a.ref_attr_name]
        for link in links:
            if not hasattr(self, link.name):
                setattr(self, link.name, RefAttrName(link.ref_attr_name))
        self.has_linked_attribute = bool(links)
        self.attributes_names_ = {link.name for link in links}

    def _run(self, *inputs: Any, **attributes: Any) -> tuple[Any, ...]:
        given = [*inputs, *[None] * (len(self._node.inputs) - len(inputs))]
        linked = {name: ir.convenience.convert_attribute(name, v) for name, v in attributes.items()}
        known = {**self._node.attributes, **linked}
        return tuple(execute(bind(self._node, self._opset, given, known), given[0]))


class Split(_SplitRun):
    """ONNX Split in every version, for ``ReferenceEvaluator(model, new_ops=[Split])``."""


class SplitToSequence(_SplitRun):
    """ONNX SplitToSequence in every version, for ``new_ops`` of the reference evaluator."""


NEW_OPS: list[type[OpRun]] = [Split, SplitToSequence]
"""Both classes, to be given as ``new_ops``."""
