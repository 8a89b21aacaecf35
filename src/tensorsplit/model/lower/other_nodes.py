"""Nodes other than splits that the target was measured to calculate wrongly."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from types import MappingProxyType

import onnx_ir as ir

from tensorsplit.model.graph.nodes import NodeRef
from tensorsplit.model.lower import (
    arithmetic_nodes,
    body_nodes,
    hidden_lengths,
    indexing_nodes,
    neural_nodes,
    quantized_nodes,
    shown_operands,
    transform_nodes,
    unfused_nodes,
)
from tensorsplit.model.lower.state import ChangeAfterSplits, Lowering, NodeChange
from tensorsplit.model.profiles import Limitation


def _leave_out_end(lowering: Lowering, ref: NodeRef, entry: Limitation) -> None:
    """Leave out the inputs at the end that have an empty name."""
    ref.set_inputs(ref.node.inputs)
    lowering.changed(ref, "the same, without inputs of an empty name", entry)


_CHANGES: Mapping[str, NodeChange] = MappingProxyType(
    {
        "empty_end": _leave_out_end,
        **body_nodes.CHANGES,
        **unfused_nodes.CHANGES,
        **neural_nodes.CHANGES,
        **arithmetic_nodes.CHANGES,
        **indexing_nodes.CHANGES,
        **quantized_nodes.CHANGES,
        **transform_nodes.CHANGES,
        **hidden_lengths.CHANGES,
        **shown_operands.CHANGES,
    }
)

_CHANGES_AFTER_SPLITS: Mapping[str, ChangeAfterSplits] = MappingProxyType(
    {
        **body_nodes.CHANGES_AFTER_SPLITS,
        **unfused_nodes.CHANGES_AFTER_SPLITS,
        **neural_nodes.CHANGES_AFTER_SPLITS,
        **arithmetic_nodes.CHANGES_AFTER_SPLITS,
        **indexing_nodes.CHANGES_AFTER_SPLITS,
        **quantized_nodes.CHANGES_AFTER_SPLITS,
        **hidden_lengths.CHANGES_AFTER_SPLITS,
        **shown_operands.CHANGES_AFTER_SPLITS,
    }
)


def change_other_nodes(lowering: Lowering) -> bool:
    """Write nodes other than splits in a way that the target can take.

    Only those with one limitation are written at a time; the next ones need another `look`. Returns
    whether any was changed.
    """
    return any(lowering.change_limited(each, change) for each, change in _CHANGES.items())


def change_other_nodes_again(lowering: Lowering) -> None:
    """Write nodes in such a way that the target can't take because of how splits were lowered."""
    for feature, (operators, change) in _CHANGES_AFTER_SPLITS.items():
        lowering.change_each(feature, partial(_is_of, operators), change)


def _is_of(operators: tuple[str, ...], node: ir.Node) -> bool:
    """Return whether a node is of one of some operators, of whatever domain."""
    return node.op_type in operators
