"""Split nodes, and OpenVINO's VariadicSplit, with operands that the target takes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import onnx_ir as ir

from tensorsplit.core.arithmetic import Number, Numbers, fed, pick
from tensorsplit.core.dimensions import are_known, is_known
from tensorsplit.core.errors import CANNOT_EXPRESS, SplitError
from tensorsplit.core.resolve import MANY_PARTS, Intent, part_sizes
from tensorsplit.core.rules import Chunks, chunk, equal, explicit, remainder
from tensorsplit.model.features.split_features import known_lengths
from tensorsplit.model.graph.building import inherit
from tensorsplit.model.graph.calculation import FIRST_WITH_SUMS, Calculation
from tensorsplit.model.graph.nodes import NodeRef
from tensorsplit.model.graph.split_records import is_onnx_split, is_vendor_split
from tensorsplit.model.infer.analysis import Facts
from tensorsplit.model.infer.calculated import rule_of_lengths
from tensorsplit.model.lower.state import InsertionPoint, Lowering, refusal
from tensorsplit.model.profiles import must_go


def lower_split(lowering: Lowering, ref: NodeRef) -> None:
    """Lower a split node that gives one tensor for each part."""
    node = ref.node
    intent, data, axis, dim = request_of(lowering, ref)
    point = InsertionPoint.before(lowering, ref)
    try:
        lengths = sizes_of(lowering, ref, point, intent, dim)
        assert not isinstance(lengths, Chunks)  # noqa: S101 - no rule of a node with these outputs
        made = point.split(data, axis, dim, lengths, len(node.outputs))
        producer = made[0].producer()
        assert producer is not None  # noqa: S101 - it was just made
        became = _NAMES[producer.op_type]
    except SplitError as error:
        if error.kind is not CANNOT_EXPRESS:
            raise
        held = {} if intent.rule is equal and not is_vendor_split(node) else _attribute(intent)
        if held is None or lowering.takes_by_index(data):
            raise
        for entry in lowering.limitations[node]:
            if entry.extent == "edge":  # it stays, where a dimension is known only at run time
                lowering.note(entry)
        attributes, more = {"axis": axis, **held}, _axes_to_differ_by(lowering, node)
        if not more and is_onnx_split(node) and _is_written(node, attributes):
            return
        made = _parts(point, data, attributes, more, len(node.outputs))
        became = "Split of the data with more axes" if more else "Split"
    pairs = list(zip(node.outputs, made, strict=True))
    inherit(point.nodes, node, pairs)
    lowering.stand_in(*((old, new) for old, new in pairs if old.name))
    lowering.changed(ref, became, *filter(must_go, lowering.limitations[node]))
    lowering.edits.retire(node)


def _axes_to_differ_by(lowering: Lowering, node: ir.Node) -> list[int]:
    """Return axes of length 1 that a Split without lengths needs, before those of its data.

    Otherwise the target takes it for another one of the same data into more or fewer parts.
    """
    if all(entry.feature != "equal_parts_alike" for entry in lowering.limitations[node]):
        return []
    counts = lowering.facts.counts_alike[node]
    return list(range(sum(count < len(node.outputs) for count in counts)))


def _parts(
    point: InsertionPoint, data: ir.Value, held: Mapping[str, Any], more: list[int], count: int
) -> list[ir.Value]:
    """Split by attributes, with more axes in front meanwhile."""
    ends, axis = ["part"] * count, held["axis"]
    if not more:
        return point.ops("Split", [data], held, ends)
    moved = {**held, "axis": axis if axis < 0 else axis + len(more)}
    made = point.ops("Split", [point.unsqueeze(data, more)], moved, ends)
    return [point.squeeze(part, more) for part in made]


def _is_written(node: ir.Node, attributes: Mapping[str, object]) -> bool:
    """Return whether a node has these attributes already, only the data as input, named outputs."""
    held = {name: _plain(each.value) for name, each in node.attributes.items()}
    is_named = all(value.name for value in node.outputs)
    return is_named and {"axis": 0} | held == attributes and len(node.inputs) == 1


def _plain(value: object) -> object:
    return list(value) if isinstance(value, tuple) else value


_NAMES = {"Split": "Split with explicit lengths", "Gather": "Gather", "Slice": "Slice"}


def _attribute(intent: Intent) -> dict[str, list[int]] | None:
    """Return lengths that can be an attribute; None where they depend on the dimension."""
    given = known_lengths(intent)
    if given is None or intent.rule not in (explicit, remainder) or min(given, default=0) < 0:
        return None
    return {"split": list(given)}


def request_of(lowering: Lowering, ref: NodeRef) -> tuple[Intent, ir.Value, int, Number]:
    """Return a split's intent, its data, the axis (from the front if known), and its length."""
    data, intent = ref.input(0), lowering.facts.split(ref).require_intent()
    assert data is not None  # noqa: S101 - `bind` looked
    intent = _without_lengths(intent, ref, lowering.facts)
    axis, shape = intent.axis, lowering.facts.tensor(data).shape
    if axis is None:
        raise refusal("the axis is known only at run time", "give it as a constant")
    if shape is not None and -len(shape) <= axis < len(shape):
        axis %= len(shape)
    elif axis < 0 and lowering.limitation("negative_axis") is not None:
        problem = f"the axis is {axis}, and the rank of the data is not known"
        raise refusal(problem, "declare the shape of the data")
    return intent, data, axis, lowering.length(data, axis)


def _without_lengths(intent: Intent, ref: NodeRef, facts: Facts) -> Intent:
    """Return the split by the rule of its calculated lengths, if that rule needs no lengths."""
    data, lengths = ref.input(0), ref.input(1)
    if data is None or lengths is None or intent.axis is None or not is_onnx_split(ref.node):
        return intent
    if intent.operator.is_sequence or known_lengths(intent) is not None:
        return intent
    found = rule_of_lengths(lengths, data, intent.axis, len(ref.node.outputs), facts)
    if found is None:
        return intent
    rule, given = found
    return replace(intent, source=None, rule=rule, given=given)


def sizes_of(
    lowering: Lowering, ref: NodeRef, make: Calculation, intent: Intent, dim: Number
) -> Numbers | Chunks:
    """Return the rule's lengths of a dimension, for operands known at run time only as well."""
    given = known_lengths(intent)
    if given is not None:
        known = part_sizes(intent, dim if is_known(dim) else None, MANY_PARTS)
        if isinstance(known, tuple) and is_known(dim) and are_known(known):
            return known
    assert intent.rule is not None  # noqa: S101 - checked by the caller
    if given is not None:
        return intent.rule(dim, given)
    names = [entry.name for entry in intent.operator.inputs]
    held = ref.input(names.index(intent.source or ""))
    assert held is not None  # noqa: S101 - of such an intent it gives the lengths
    integers = make.int64(held, lowering.facts.tensor(held).element_type)
    if intent.rule is chunk:
        one = make.op("Reshape", [integers, make.make(1)])
        return intent.rule(dim, (fed(one, dim),))
    if lowering.facts.tensor(held).shape is None:
        integers = _as_list(make, integers)
    outputs = None if intent.operator.is_sequence else len(ref.node.outputs)
    both = lowering.facts, lowering.imported  # the target takes defaults of inputs for constants
    is_counted = all(known.tensor(held).shape == (outputs,) for known in both) and not any(
        entry.feature == "uncounted_lengths"  # without those defaults
        for entry in lowering.limitations[ref.node]
    )
    lengths: Numbers = fed(integers, dim, None if is_counted else outputs)
    if outputs is not None and ref.opset < FIRST_WITH_SUMS:
        lengths = tuple(pick(lengths, place) for place in range(outputs))
    return intent.rule(dim, lengths)


def _as_list(make: Calculation, held: ir.Value) -> ir.Value:
    """Return a tensor of unknown rank as a list; the model stops if it is not one."""
    shape = make.op("Reshape", [make.op("Shape", [held]), make.constant([1])])
    return make.op("Reshape", [held, shape])
