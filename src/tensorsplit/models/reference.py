"""Operators outside the family, by onnx's reference implementations, one node at a time.

The reference evaluator's own handling of graphs is not used: it ignores function overloads and
attribute defaults, mixes up omitted outputs and inputs, and hides which node failed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from onnx import AttributeProto, GraphProto, NodeProto, ValueInfoProto
from onnx.reference import ReferenceEvaluator

from tensorsplit.errors import UNSUPPORTED_NODE, SplitError
from tensorsplit.models.blocks import Step
from tensorsplit.models.legacy import run_version
from tensorsplit.models.oprun import NEW_OPS


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
    outputs = [ValueInfoProto(name=name) for name in node.output if name]
    graph = GraphProto(node=[node], output=outputs)
    try:
        return ReferenceEvaluator(graph, opsets=dict(step.opsets), new_ops=NEW_OPS)
    except (NotImplementedError, RuntimeError, ImportError) as error:
        raise SplitError(
            UNSUPPORTED_NODE,
            f"{step.domain or 'ai.onnx'}::{step.node.op_type} has no implementation at opset"
            f" {step.opset}",
            "run the model on another engine",
        ) from error
