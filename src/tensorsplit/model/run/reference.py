"""Operators outside the family, by onnx's reference implementations, one node at a time.

The reference evaluator's own handling of graphs is not used: it ignores function overloads and
attribute defaults, mixes up omitted outputs and inputs, and hides which node failed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from onnx import AttributeProto, GraphProto, NodeProto, TensorProto, ValueInfoProto
from onnx.reference import ReferenceEvaluator

from tensorsplit.core.errors import UNSUPPORTED_NODE, SplitError, short_name
from tensorsplit.model.graph.message import bodies
from tensorsplit.model.run.blocks import Step
from tensorsplit.model.run.legacy import run_version
from tensorsplit.model.run.oprun import NEW_OPS


def run_reference(step: Step, inputs: Sequence[Any]) -> list[Any]:
    """Run a node.

    Args:
        step: The node; it has been checked against its schema.
        inputs: The value of each input; None for one that is absent.

    Returns:
        The value of each output; None for those that the node does not name.

    Raises:
        SplitError: TS509 if there is no implementation of the operator at this opset.
        Exception: Whatever the implementation raises.
    """

    def run(values: Sequence[Any], attributes: Mapping[str, AttributeProto]) -> list[Any]:
        if step.kernel is None:
            step.kernel = _kernel(step, attributes)
        feeds = {f"i{k}": value for k, value in enumerate(values) if step.node.input[k]}
        names = [f"o{k}" if name else "" for k, name in enumerate(step.node.output)]
        results = iter(step.kernel.run([name for name in names if name], feeds))
        return [next(results) if name else None for name in names]

    return run_version(step, inputs, run)


def _kernel(step: Step, attributes: Mapping[str, AttributeProto]) -> ReferenceEvaluator:
    """An evaluator of the node alone, with names of our own."""
    node = NodeProto(
        op_type=step.node.op_type,
        domain=step.domain,
        input=[f"i{k}" if name else "" for k, name in enumerate(step.node.input)],
        output=[f"o{k}" if name else "" for k, name in enumerate(step.node.output)],
        attribute=attributes.values(),
    )
    for label, body in bodies(node.attribute):
        if _has_external(body):  # the evaluator would look for it in the working directory
            raise SplitError(
                UNSUPPORTED_NODE, f"{label} holds external data", "embed it in the model"
            )
    outputs = [ValueInfoProto(name=name) for name in node.output if name]
    graph = GraphProto(node=[node], output=outputs)
    try:
        return ReferenceEvaluator(graph, opsets=dict(step.opsets), new_ops=list(NEW_OPS))
    except (NotImplementedError, RuntimeError, ImportError) as error:
        name = f"{short_name(step.domain or 'ai.onnx')}::{short_name(step.node.op_type)}"
        raise SplitError(
            UNSUPPORTED_NODE,
            f"{name} has no implementation at opset {step.opset}",
            "run the model on another engine",
        ) from error


def _has_external(graph: GraphProto) -> bool:
    tensors = [*graph.initializer, *(a.t for node in graph.node for a in node.attribute)]
    return any(tensor.data_location == TensorProto.EXTERNAL for tensor in tensors) or any(
        _has_external(body) for node in graph.node for _, body in bodies(node.attribute)
    )
