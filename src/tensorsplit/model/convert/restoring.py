"""Splits whose lengths or parts are calculated, for opsets where only attributes can hold them.

Before opset 10 Slice takes its bounds as attributes, and before 13 Split its lengths. What nodes
calculate there is found by trying them (ADR 26).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace

import onnx_ir as ir

from tensorsplit.core.emit import written_out
from tensorsplit.core.errors import SplitError
from tensorsplit.core.records import in_force
from tensorsplit.core.resolve import Intent, plan
from tensorsplit.core.rules import explicit
from tensorsplit.model.convert.conversion import Conversion
from tensorsplit.model.graph.building import inherit
from tensorsplit.model.graph.calculation import (
    FIRST_WITH_BOUNDS_AS_INPUTS,
    FIRST_WITH_LENGTHS_AS_INPUT,
    Calculation,
)
from tensorsplit.model.graph.held_tensors import constant
from tensorsplit.model.graph.nodes import NodeRef, change_inputs, is_operator, walk
from tensorsplit.model.graph.producers import producer_of
from tensorsplit.model.graph.split_records import is_onnx_split
from tensorsplit.model.infer.calculated import are_in_order, rule_of, rule_of_lengths
from tensorsplit.model.infer.length_program import program_of


@dataclass(frozen=True, slots=True)
class _Part:
    """A node that takes a part of its data, from a position to before another.

    Attributes:
        along: The data and the axis.
    """

    ref: NodeRef
    along: tuple[ir.Value, int]
    start: ir.Value
    end: ir.Value


def restore_splits(conversion: Conversion) -> None:
    """Restore splits whose bounds or lengths the target can hold as attributes."""
    refs = list(walk(conversion.model))
    if conversion.target < FIRST_WITH_BOUNDS_AS_INPUTS:
        for ref in refs:
            if is_onnx_split(ref.node) and ref.input(1) is not None:
                _restore_lengths(conversion, ref)
        for parts in _rows(filter(None, map(_part_of, refs))):
            _restore_parts(conversion, parts)
    else:
        for part in filter(None, map(_part_of, refs)):
            if part.ref.op_type == "Gather":
                _slice_instead(conversion, part)
    conversion.edits.finish()


def _restore_lengths(conversion: Conversion, ref: NodeRef) -> None:
    """Restore the rule of a Split whose calculated lengths follow from one that needs none."""
    intent, (data, lengths) = conversion.facts.split(ref).intent, ref.node.inputs[:2]
    if intent is None or intent.axis is None or data is None or lengths is None:
        return
    if intent.operator.is_sequence:
        return
    count = len(ref.node.outputs)
    found = rule_of_lengths(lengths, data, intent.axis, count, conversion.facts)
    if found is not None:
        rule, given = found
        conversion.restored[ref.node] = replace(intent, source=None, rule=rule, given=given)
        ref.set_inputs([data])
        conversion.drop_calculated([lengths])


def _part_of(ref: NodeRef) -> _Part | None:
    """Return a Slice on one axis, or a Gather of neighbours, with bounds that are calculated."""
    node, data = ref.node, ref.input(0)
    if node.domain != "" or data is None or len(node.outputs) != 1:
        return None
    if node.op_type == "Slice" and 3 <= len(node.inputs) <= 4:
        start, end, axis = ref.input(1), ref.input(2), _number(ref.input(3))
    elif node.op_type == "Gather" and len(node.inputs) == 2:
        indices = node.inputs[1]
        range_ = producer_of(indices)
        if not is_operator(range_, "Range"):
            return None
        start, end, step = range_.inputs
        axis = node.attributes.get_int("axis", 0) if _number(step) == 1 else None
    else:
        return None
    if axis is None or start is None or end is None:
        return None
    return _Part(ref, (data, axis), start, end)


def _number(value: ir.Value | None) -> int | None:
    """Return the one element of a constant."""
    held = constant(value)
    return int(held.item()) if held is not None and held.size == 1 else None


def _rows(parts: Iterable[_Part]) -> Iterator[list[_Part]]:
    """Yield rows of parts that may be adjacent; each row starts at 0."""
    rows: dict[tuple[object, ...], list[_Part]] = {}
    for part in parts:
        key = (part.ref.scope, part.ref.op_type, *part.along)
        if _number(part.start) == 0:
            if key in rows:
                yield rows.pop(key)
            rows[key] = [part]
        elif key in rows:
            rows[key].append(part)
    yield from rows.values()


def _restore_parts(conversion: Conversion, parts: list[_Part]) -> None:
    """Let one Split give all parts, if that is what they are."""
    first, axis = parts[0].ref, parts[0].along[1]
    data = first.node.inputs[0]  # by now it may be a part that was restored itself
    assert data is not None  # noqa: S101 - it is a part of it
    bounds = tuple(bound for part in parts for bound in (part.start, part.end))
    if all(constant(bound) is not None for bound in bounds):
        return  # attributes can hold them
    program = program_of(bounds, data, axis, conversion.facts)
    found = program and rule_of(program, len(parts))
    if not found:
        return
    rule, given = found
    operator = in_force("Split", first.opset)
    intent = Intent(operator, axis, None, rule, given, len(parts), True, None)
    shape = conversion.facts.tensor(data).shape
    with suppress(SplitError):  # the running model refuses what does not fit
        intent = written_out(intent, None if shape is None else plan(intent, shape))
    make = Calculation(conversion.names, first.opset, first.node.name or "Split")
    lengths = {"split": list(intent.given or ())} if intent.rule is explicit else {}
    as_input = first.opset >= FIRST_WITH_LENGTHS_AS_INPUT
    attributes = {"axis": axis, **({} if as_input else lengths)}
    outputs = make.ops("Split", [data], attributes, ["part"] * len(parts))
    (node,) = make.nodes
    pairs = [(part.ref.node.outputs[0], made) for part, made in zip(parts, outputs, strict=True)]
    inherit([node], first.node, pairs)
    first.scope.insert_before(first.node, node)
    if as_input:
        conversion.restored[node] = intent
    _stand_in(conversion, pairs)
    _retire(conversion, parts)


def _slice_instead(conversion: Conversion, part: _Part) -> None:
    """Replace a Gather of neighbours by a Slice: there is no Range at the target."""
    ref, axis = part.ref, part.along[1]
    data = ref.node.inputs[0]  # by now it may be a part that was replaced itself
    assert data is not None  # noqa: S101 - it is a part of it
    program = program_of((part.start, part.end), data, axis, conversion.facts)
    if program is None or not are_in_order(program):
        return
    make = Calculation(conversion.names, ref.opset, ref.stem)
    start, end = (make.number(bound, ir.DataType.INT64) for bound in (part.start, part.end))
    pairs = [(ref.node.outputs[0], make.slice(data, start, end, axis))]
    inherit(make.nodes, ref.node, pairs)
    ref.scope.insert_before(ref.node, make.nodes)
    _stand_in(conversion, pairs)
    _retire(conversion, [part])


def _stand_in(conversion: Conversion, pairs: list[tuple[ir.Value, ir.Value]]) -> None:
    for old, new in pairs:
        conversion.facts.set(new, conversion.facts.of(old))
    conversion.edits.stand_in(pairs)


def _retire(conversion: Conversion, parts: list[_Part]) -> None:
    """Remove nodes that nothing reads any more, and what only they read."""
    for part in parts:
        inputs = list(part.ref.node.inputs)
        change_inputs(part.ref.node, {}, 0)
        conversion.edits.retire(part.ref.node)
        conversion.drop_calculated(inputs[1:])
