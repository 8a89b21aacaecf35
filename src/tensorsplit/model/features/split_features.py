"""Features of splits: how their axis, lengths and parts are given, and used."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import zip_longest

import onnx_ir as ir

from tensorsplit.core.dimensions import Dim, Shape, are_known, is_known
from tensorsplit.core.emit import counted
from tensorsplit.core.plan import SplitPlan, UncountedPlan
from tensorsplit.core.resolve import Intent
from tensorsplit.core.rules import ceil, chunk, equal, explicit, ones, remainder
from tensorsplit.core.schema import Operator
from tensorsplit.model.features.from_constants import is_calculated, of_constants
from tensorsplit.model.features.sequences import SEQUENCE_OPERATORS, of_uses
from tensorsplit.model.features.values import has_known_shape, has_strings, is_empty, of_data
from tensorsplit.model.features.vocabulary import REJOINED, Features
from tensorsplit.model.features.without_elements import of_constant_operands
from tensorsplit.model.graph.calculation import FIRST_WITH_BOUNDS_AS_INPUTS
from tensorsplit.model.graph.called_in_onnx import gives_shape
from tensorsplit.model.graph.checked_lengths import INPUTS_WITH_LENGTHS, are_checked
from tensorsplit.model.graph.held_tensors import fixed_tensor_of
from tensorsplit.model.graph.nodes import NodeRef, attribute_of, is_used
from tensorsplit.model.graph.producers import first_input, passed_from
from tensorsplit.model.graph.rejoined import is_rejoined
from tensorsplit.model.graph.split_records import is_onnx_split
from tensorsplit.model.graph.uses import (
    gives_only_shapes,
    is_needed,
    is_unused,
    led_to_shapes,
)
from tensorsplit.model.infer.analysis import Facts
from tensorsplit.model.infer.calculated import always_fit
from tensorsplit.model.infer.splits import length_of_axis


def of_split(ref: NodeRef, facts: Facts, seen: Facts) -> Features:
    """Return the features of one of ONNX's splits."""
    node = ref.node
    found: Features = {"operator": node.op_type} | of_data(node, facts)
    found |= dict(_of_place(ref, facts)) | dict(of_uses(node))
    found |= dict(of_constant_operands(ref, facts))
    found |= dict.fromkeys(of_constants(ref, seen), True)
    if any(not value.name for value in node.outputs):
        found["unnamed_output"] = True
    split = facts.split(ref)
    if has_strings(ref.input(0), facts) and any(
        _is_misplaced(part, seen) for part in _away_from_start(node, split.plan)
    ):
        found["misplaced_strings"] = True
    if split.intent is not None:  # others report what is wrong with the node itself
        found["version"] = split.intent.operator.id
        found.update(_of_intent(split.intent, split.plan, ref, facts))
        if _has_external_lengths(ref, split.plan):
            found["external_lengths"] = True
        imported = seen.split(ref)
        # of one part the number may follow from what the loop around it is given
        is_of_round = "Loop" in ref.around and len(node.outputs) == 1
        counting = facts if is_of_round else seen
        found.update(_of_import(imported.intent or split.intent, split.plan, node, seen, counting))
    return found


def _away_from_start(node: ir.Node, plan: SplitPlan | UncountedPlan | None) -> list[ir.Value]:
    """Return the parts that do not begin where the data does, as far as is known."""
    begins = plan.offsets if isinstance(plan, SplitPlan) else ()
    pairs = zip_longest(node.outputs[1:], begins[1 : len(node.outputs)])
    return [part for part, begin in pairs if part is not None and begin != 0]


def _is_misplaced(part: ir.Value, seen: Facts) -> bool:
    """Return whether elements of a part are used, and its shape is seen."""
    is_whole = has_known_shape(part, seen) and not is_empty(part, seen)
    return is_whole and is_needed(part, but=gives_shape)


def _of_place(ref: NodeRef, facts: Facts) -> Iterator[tuple[str, object]]:
    """Yield the features of a split that follow from the bodies it is in."""
    around = ref.around
    if around:
        yield "body", around[0] if len({*around}) == 1 else tuple(dict.fromkeys(around))
    if "Scan" in around and "If" in around[around.index("Scan") :]:
        yield "if_in_scan", True
    if "Loop" in around and ref.node.inputs and is_empty(ref.node.inputs[0], facts):
        yield "empty_in_loop", True


def _has_external_lengths(ref: NodeRef, plan: SplitPlan | UncountedPlan | None) -> bool:
    """Return whether shape inference has to read lengths of a node that are external data."""
    held = passed_from(ref.input(1))
    if held is None or not isinstance(fixed_tensor_of(held), ir.ExternalTensor):
        return False
    return ref.op_type in SEQUENCE_OPERATORS or is_known(split_length(plan))


def split_length(plan: SplitPlan | UncountedPlan | None) -> Dim:
    """Return the length of the axis that is split; None if it is not known."""
    return None if plan is None else plan.input_shape[plan.axis]


def known_lengths(intent: Intent) -> tuple[int, ...] | None:
    """Return the operand of the length rule if all of it is numbers, without expressions."""
    given = intent.given
    return given if given is not None and all(map(is_known, given)) else None


def splits_open_axis(node: ir.Node | None, facts: Facts) -> bool:
    """Return whether a node is a split along an axis whose length is not known.

    Engines may know no length of its parts then, though their lengths are given.
    """
    if node is None or not is_onnx_split(node):
        return False
    shape = facts.tensor(first_input(node)).shape
    axis = attribute_of(node, "axis", ir.AttributeType.INT, 0)
    if shape is None or axis is None or not -len(shape) <= axis < len(shape):
        return True
    return not is_known(shape[axis])


def as_counted(
    ref: NodeRef, intent: Intent, plan: SplitPlan | UncountedPlan | None
) -> Intent | None:
    """Return the split without its lengths, if a tracer may have written them.

    They are constants, of a dimension that is known only at run time, and what `num_outputs`
    gives for one value of it. Sequences and functions are left as they are.
    """
    is_rewritten = is_onnx_split(ref.node) and ref.function is None
    if not is_rewritten or intent.operator.is_sequence or not isinstance(plan, SplitPlan):
        return None
    return None if is_known(plan.input_shape[plan.axis]) else counted(intent)


def _of_intent(
    intent: Intent, made: SplitPlan | UncountedPlan | None, ref: NodeRef, facts: Facts
) -> Iterator[tuple[str, object]]:
    node = ref.node
    dim = dimension_of(intent, node, facts)
    if intent.axis is None:
        yield "runtime_axis", True
    elif intent.axis < 0:
        yield "negative_axis", True
    if _are_checked(intent, dim, node, facts):
        yield "checked_lengths", True
    if intent.rule is ceil:
        sizes = made.sizes if isinstance(made, SplitPlan) and is_known(dim) else ()
        yield from _of_count(intent, sizes, len(node.inputs) > 1)
    yield from _of_lengths(intent, dim, node)
    is_open = known_lengths(intent) is None and is_known(dim)
    if is_open and is_calculated(next(iter(node.inputs[1:]), None), facts, of_shapes=False):
        yield "lengths_of_constants", True
    if intent.rule is equal:
        yield "equal_parts", True
        if len(facts.counts_alike.get(node, ())) > 1:
            yield "equal_parts_alike", True
    yield from _of_lost_checks(intent, dim, ref, facts)
    yield from _of_dimension(intent, made, dim, ref.opset)
    if intent.operator.is_sequence:
        yield from _of_parts(intent, dim, node)


def _of_dimension(
    intent: Intent, made: SplitPlan | UncountedPlan | None, dim: Dim, opset: int
) -> Iterator[tuple[str, object]]:
    """Yield the features of the length of the axis, and of parts of it."""
    if dim == 0:
        yield "empty_axis", True
    elif isinstance(made, SplitPlan) and 0 in made.sizes:
        yield "empty_part", True
    if is_known(dim):
        return
    yield "dynamic_axis", True
    is_fixed = intent.rule is explicit and known_lengths(intent) is not None
    if opset < FIRST_WITH_BOUNDS_AS_INPUTS and (is_fixed or intent.rule is equal):
        yield "unchecked_lengths", True
    if intent.rule is equal:
        yield "equal_parts_on_dynamic_axis", True
    elif is_fixed and isinstance(made, SplitPlan):
        yield "constant_lengths_on_dynamic_axis", True


def _of_lost_checks(
    intent: Intent, dim: Dim, ref: NodeRef, facts: Facts
) -> Iterator[tuple[str, object]]:
    """Yield uses in which an engine may leave out a Split, and the check that its lengths fit."""
    node, owners = ref.node, ref.owners
    if not _may_not_fit(intent, dim):
        return
    if is_rejoined(node, owners):
        yield REJOINED, True
    if is_unused(node, owners):
        yield "unused", True
    elif not intent.operator.is_sequence and _gives_constants(intent, ref, facts):
        yield "unread_parts", True
        declared = (held.shape for held in led_to_shapes(node) if held.shape is not None)
        if gives_only_shapes(node) and any(shape.is_static() for shape in declared):
            yield "declared_parts", True


def _of_lengths(intent: Intent, dim: Dim, node: ir.Node) -> Iterator[tuple[str, object]]:
    lengths = known_lengths(intent)
    source = node.inputs[1] if len(node.inputs) > 1 else None
    if source is not None and takes_floats(intent.operator, intent.source):
        if len(set(lengths or ())) > 1:
            yield "uneven_float_lengths", True
        elif lengths is None or not is_known(dim):
            yield "float_lengths", True
    if lengths is None and source is not None:  # those of a call are constant
        yield "runtime_lengths", True
    if intent.rule is chunk:
        yield "chunks", True
    if source is not None and source.is_graph_input() and source.is_initializer():
        yield "overridable_lengths", True


def takes_floats(operator: Operator, source: str | None) -> bool:
    """Return whether the lengths of an operator's version are floats, where they are an input."""
    parameter = operator.input(source or "")
    return parameter is not None and "int64" not in operator.types_of(parameter).element_types


def _of_import(
    intent: Intent,
    made: SplitPlan | UncountedPlan | None,
    node: ir.Node,
    seen: Facts,
    counting: Facts,
) -> Iterator[tuple[str, object]]:
    """Yield what an engine does not know at import but has to; ``counting`` is for the lengths."""
    dim = dimension_of(intent, node, seen)
    if intent.rule is ceil and not is_known(dim) and len(node.outputs) > 1:
        sizes = made.sizes if isinstance(made, SplitPlan) else ()
        if not are_known(sizes) or len(set(sizes)) != 1:
            yield "count_on_dynamic_axis", True
    if intent.rule in (equal, ceil) and not is_known(dim) and split_length(made) == 0:
        yield "unseen_empty_axis", True
    if _has_known_count(intent, dim, node, counting):
        return
    if intent.operator.is_sequence:
        yield "unknown_number_of_parts", True
    elif known_lengths(intent) is None and len(node.inputs) > 1:  # those of a call are constant
        are_folded = is_calculated(node.inputs[1], seen, of_shapes=False)
        yield "uncounted_lengths", "of constants" if are_folded else True


def _are_checked(intent: Intent, dim: Dim, node: ir.Node, facts: Facts) -> bool:
    """Return whether nodes before a Split stop the model where the lengths do not fit."""
    data, lengths = (*node.inputs, None)[:2]
    if intent.operator.is_sequence or intent.axis is None or data is None or lengths is None:
        return False
    is_open = _may_not_fit(intent, dim)
    return is_open and always_fit(lengths, data, intent.axis, len(node.outputs), facts)


def _gives_constants(intent: Intent, ref: NodeRef, facts: Facts) -> bool:
    """Return whether what is used of a split may be known before the model runs.

    It is shapes of parts of constant lengths, or a part without elements.
    """
    lengths = known_lengths(intent)
    if lengths is None or intent.rule not in (explicit, remainder):
        return False
    if gives_only_shapes(ref.node, ref.owners):
        return True
    parts = zip(lengths, ref.node.outputs, strict=False)
    return any(not length or is_empty(part, facts) for length, part in parts if is_used(part))


def _may_not_fit(intent: Intent, dim: Dim) -> bool:
    """Return whether it is known only at run time whether lengths fit."""
    if intent.rule in (chunk, ones) and known_lengths(intent) is not None:
        return False
    return not is_known(dim) or (intent.source is not None and known_lengths(intent) is None)


def _of_parts(intent: Intent, dim: Dim, node: ir.Node) -> Iterator[tuple[str, object]]:
    if not intent.keepdims:
        yield "keepdims_0", True
    attribute = node.attributes.get(intent.operator.keepdims or "")
    if attribute is not None and intent.source is not None:
        if attribute.is_ref():
            yield "keepdims_of_call", True
        elif attribute.value == 0:
            yield "keepdims_ignored", True
    if intent.rule in (chunk, ones) and dim == 0:
        yield "no_parts", True
    if known_lengths(intent) == () and intent.source is not None:
        yield "empty_lengths", True


def _of_count(intent: Intent, sizes: Shape, names_lengths: bool) -> Iterator[tuple[str, object]]:
    yield "count", True
    if names_lengths:
        yield "omitted_lengths", True
        if len(set(sizes)) != 1:
            yield "omitted_uneven_lengths", True
    if len(set(sizes)) > 1:
        yield "uneven_count", True
    if intent.axis is not None and intent.axis < 0 and len(set(sizes)) != 1:
        yield "uneven_count_on_negative_axis", True
    if sizes and sizes[-1] == 0:
        yield "count_with_empty_part", True


def dimension_of(intent: Intent, node: ir.Node, facts: Facts) -> Dim:
    """Return the length of the axis, where it is known."""
    return length_of_axis(intent, facts.tensor(node.inputs[0]))


def _has_known_count(intent: Intent, dim: object, node: ir.Node, facts: Facts) -> bool:
    if intent.rule in (chunk, ones):
        return is_known(dim) and known_lengths(intent) is not None
    lengths = facts.tensor(node.inputs[1]).shape or () if len(node.inputs) > 1 else ()
    return intent.rule in (explicit, None) and len(lengths) == 1 and is_known(lengths[0])


def of_layer_lengths(intent: Intent, ref: NodeRef, facts: Facts) -> Iterator[tuple[str, object]]:
    """Yield the features of the lengths of a split layer."""
    node = ref.node
    given, dim = known_lengths(intent), dimension_of(intent, node, facts)
    if given is not None and -1 in given and not is_known(dim):
        yield "open_remainder", True
    yield from _of_lost_checks(intent, dim, ref, facts)
    if given is not None or len(node.inputs) < INPUTS_WITH_LENGTHS:
        return
    yield "runtime_lengths", True
    lengths = node.inputs[2]
    if lengths is not None and lengths.is_graph_input() and facts.tensor(lengths).shape == (None,):
        yield "uncounted_lengths", True
    if are_checked(intent, ref, facts.tensor(node.inputs[1]).element_type, dim):
        yield "checked_lengths", True
