"""Nodes with bodies, of which the target needs other declarations, names or operands."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType

import onnx_ir as ir

from tensorsplit.model.features.body_features import (
    declared_empty,
    read_as_outputs,
    undeclared_inputs,
)
from tensorsplit.model.graph.loops import body_of, scanned_by
from tensorsplit.model.graph.nodes import NodeRef, change_inputs, nodes_within
from tensorsplit.model.infer.filling import fill_value
from tensorsplit.model.lower.preparing import take_branch
from tensorsplit.model.lower.state import (
    ChangeAfterSplits,
    InsertionPoint,
    Lowering,
    NodeChange,
    refusal,
)
from tensorsplit.model.profiles import Limitation


def _squeeze_condition(lowering: Lowering, ref: NodeRef, entry: Limitation) -> None:
    """Reshape the condition of an If to a scalar."""
    held = ref.input(0)
    rank = len(lowering.imported.tensor(held).shape or ())
    make = InsertionPoint.before(lowering, ref)
    assert held is not None  # noqa: S101 - see the feature
    change_inputs(ref.node, {0: make.squeeze(held, list(range(rank)))})
    lowering.changed(ref, "the same, with a scalar as its condition", entry)


def _copy_outputs(lowering: Lowering, ref: NodeRef, entry: Limitation) -> None:
    """Let branches read copies of the values that are outputs as well."""
    for held in read_as_outputs(ref.node):
        copy = InsertionPoint.before(lowering, ref).op("Identity", [held])
        lowering.describe(copy, held)
        for inner in nodes_within(ref.node):
            places = [place for place, value in enumerate(inner.inputs) if value is held]
            change_inputs(inner, dict.fromkeys(places, copy))
    lowering.changed(ref, "the same, with copies of what is an output as well", entry)


def _name_outputs(lowering: Lowering, ref: NodeRef, entry: Limitation) -> None:
    """Give a name to each output of a node that has none, as nobody uses it."""
    for made in ref.node.outputs:
        made.name = made.name or lowering.names.fresh(f"{ref.stem}_output")
    lowering.changed(ref, "the same, with names for all outputs", entry)


def _declare_round(lowering: Lowering, ref: NodeRef, entry: Limitation) -> None:
    """Declare the type of the round's number, or of the condition, in the body of a Loop."""
    what, place, kind = _ROUND_INPUTS[entry.feature]
    given = body_of(ref.node).inputs[place]
    given.type, given.shape = ir.TensorType(kind), ir.Shape([])
    lowering.changed(ref, f"the same, with the {what} of the round declared", entry)


_ROUND_INPUTS: Mapping[str, tuple[str, int, ir.DataType]] = MappingProxyType(
    {
        "undeclared_round": ("number", 0, ir.DataType.INT64),
        "undeclared_condition": ("condition", 1, ir.DataType.BOOL),
    }
)
"""What the body of a Loop is given first, its place and its type, by the feature."""


def _open_empty(lowering: Lowering, ref: NodeRef, entry: Limitation) -> None:
    """Leave the length of what is declared to be of shape (0) open, in the body of a node."""
    for held in declared_empty(ref.node):
        held.shape = ir.Shape([None])
    lowering.changed(ref, "the same, with the lengths of empty inputs of its body open", entry)


def _declare_ranks(lowering: Lowering, ref: NodeRef, entry: Limitation) -> None:
    """Declare the ranks of what the body of a loop is given; lengths may change in each round."""
    for held in undeclared_inputs(ref.node, lowering.facts):
        held.shape = ir.Shape([None] * len(lowering.facts.tensor(held).shape or ()))
    lowering.changed(ref, "the same, with the ranks of what its body is given declared", entry)


def _declare_rows(lowering: Lowering, ref: NodeRef, entry: Limitation) -> None:
    """Declare the type of the rows in the body of a Scan."""
    _declare(lowering, scanned_by(ref.node))
    lowering.changed(ref, "the same, with its rows declared", entry)


def _declare_results(lowering: Lowering, ref: NodeRef, entry: Limitation) -> None:
    """Declare the results of the body of a SequenceMap, a Scan or a Loop."""
    _declare(lowering, body_of(ref.node).outputs)
    lowering.changed(ref, "the same, with what its body gives declared", entry)


def _declare(lowering: Lowering, values: Iterable[ir.Value]) -> None:
    for held in values:
        fill_value(held, lowering.facts)
        if held.type is None:
            raise refusal(f"the type of '{held.name}' is not known", "declare it")


CHANGES: Mapping[str, NodeChange] = MappingProxyType(
    {
        "ranked_condition": _squeeze_condition,
        "output_in_branch": _copy_outputs,
        "undeclared_round": _declare_round,
        "undeclared_condition": _declare_round,
        "empty_body_input": _open_empty,
        "undeclared_rows": _declare_rows,
        "undeclared_inputs": _declare_ranks,
        "undeclared_results": _declare_results,
        "undeclared_ranks": _declare_results,
        "hidden_rows": _declare_results,
    }
)
"""How these nodes are written before splits are, by what the target can't do."""

CHANGES_AFTER_SPLITS: Mapping[str, ChangeAfterSplits] = MappingProxyType(
    {
        "unnamed_output": (("If", "Loop", "Scan", "SequenceMap"), _name_outputs),
        "lost_operand": (("If",), take_branch),
        "lost_result": (("If",), take_branch),
        "shortened_loop": (("If",), take_branch),
    }
)
"""How they are written after splits are, and their operators, by what the target can't do."""
