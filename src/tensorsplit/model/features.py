"""What a node or a model asks of an engine, in a fixed vocabulary.

The profiles of engines say of these features which an engine was measured not to run, or to run
wrongly. Checking and lowering both look at a model through them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import TypeAlias

import onnx_ir as ir
from onnx import defs

from tensorsplit.core.dimensions import Dim, Shape, are_known, is_known, may_be_same
from tensorsplit.core.emit import counted
from tensorsplit.core.errors import short_name
from tensorsplit.core.maker import MOST_EXACT
from tensorsplit.core.plan import SplitPlan, UncountedPlan
from tensorsplit.core.records.openvino import DOMAIN
from tensorsplit.core.resolve import Intent
from tensorsplit.core.rules import ceil, chunk, equal, explicit, ones, remainder
from tensorsplit.model.graph.checked_lengths import are_checked
from tensorsplit.model.graph.facts import SequenceFact, Tensor
from tensorsplit.model.graph.nodes import (
    NodeRef,
    Scope,
    attribute_of,
    axes_from_front,
    bodies,
    constant,
    domain_opsets,
    is_onnx_split,
    is_vendor_split,
    passed_from,
    scopes_in,
    tensor_of,
)
from tensorsplit.model.graph.rejoined import gives_only_shapes, is_rejoined, is_unused, may_pass
from tensorsplit.model.graph.tensors import SparseTensor
from tensorsplit.model.infer.analysis import Facts
from tensorsplit.model.infer.calculated import always_fit
from tensorsplit.model.infer.sequence_operators import POSITIONS
from tensorsplit.model.integer_features import integer_features, is_of_constants, is_of_joined
from tensorsplit.model.loop_features import (
    captured_in_scan,
    has_unread_rows,
    ignores_condition,
    overwritten,
    reads_condition,
    results_to_settle,
    rounds_may_be_0,
    unused_and_changing,
)
from tensorsplit.model.validity.node_errors import types_of

Features: TypeAlias = dict[str, object]
"""Features that are there, by name; the value is True, or what the feature says: names in a tuple
where it says several, as of types that calls of a function differ in."""

SEQUENCE_OPERATORS = frozenset(
    {
        *("SequenceAt", "SequenceConstruct", "SequenceEmpty", "SequenceErase", "SequenceInsert"),
        *("SequenceLength", "SequenceMap", "ConcatFromSequence", "SplitToSequence"),
    }
)
"""The operators that make or take sequences and nothing else."""

OPTIONAL_OPERATORS = frozenset({"Optional", "OptionalGetElement", "OptionalHasElement"})
"""The operators that make or take optional values and nothing else."""

REJOINED = "rejoined"
"""The feature of a Split that stays as it is until all other nodes are lowered."""

NODE_FEATURES: Mapping[str, str] = MappingProxyType(
    {
        "operator": "uses the operator {}",
        "version": "uses the version {}",
        "element_type": "has data of type {}",
        "wide_values": "has data of type {}",
        "count_on_dynamic_axis": "uses num_outputs, and the length of the axis is not known",
        "count_with_empty_part": "uses num_outputs, and its last part is empty (D2)",
        "uneven_count_on_negative_axis": "uses num_outputs on an axis that counts from the back,"
        " and its parts may be uneven",
        "count": "uses num_outputs",
        "equal_parts": "gives no lengths, and has equal parts",
        "equal_parts_alike": "gives no lengths, and neither does another Split of a similar tensor"
        " on the same axis, which has another number of parts",
        "runtime_lengths": "has lengths that are known only at run time",
        "checked_lengths": "has lengths that nodes made by lowering check",
        "uncounted_lengths": "has lengths whose values and number are known only at run time",
        "external_lengths": "has lengths that are external data",
        "uneven_count": "uses num_outputs, and its parts are not equal",
        "omitted_lengths": "uses num_outputs, and has an input for the lengths that has no name",
        "overridable_lengths": "has lengths that are a default, which can be overridden (D20)",
        "chunks": "gives one length for all parts",
        "runtime_axis": "has an axis that is known only at run time",
        "negative_axis": "counts the axis from the back",
        "unnamed_output": "has an output without a name",
        "keepdims_ignored": "sets keepdims to 0, and gives split, so that the axis stays (D8)",
        "keepdims_of_call": "takes keepdims from calls of its function, and gives split (D8)",
        "keepdims_0": "drops the axis of the parts",
        "unknown_number_of_parts": "has a sequence of an unknown number of tensors",
        "runtime_sequence_index": "has a position in a sequence that is known only at run time"
        " (D19)",
        "input_taken_out": "takes an input of the model out of a sequence, at a constant position",
        "taken_apart": "gives a sequence to SequenceAt or ConcatFromSequence",
        "joined": "gives a sequence to ConcatFromSequence",
        "later_parts": "has parts after the first that are used",
        REJOINED: "has parts that are all joined again in order, and lengths that may not fit",
        "unread_parts": "has constant lengths that may not fit, and of its parts only shapes are"
        " used, or one of length 0",
        "no_parts": "gives a sequence without tensors",
        "empty_lengths": "has a list of lengths without elements",
        "sequence_in_body": "takes a sequence into a body, or gives one out",
        "identity_before_14": "is an Identity of a sequence at an opset where it takes tensors"
        " only",
        "sequence_in_body_before_13": "takes a sequence into a body, or gives one out, at an opset"
        " where bodies take tensors only",
        "joined_for_nodes": "joins the tensors of a sequence, and nodes use the result",
        "captured_sequence": "uses a sequence that was made outside of the body around it",
        "optional": "makes or takes an optional value",
        "unsorted_axes": "is a Squeeze or Unsqueeze before opset 11 with axes that are not in"
        " order, or count from the back",
        "constant_form": "is a Constant that gives {}",
        "constant_form_before_13": "is a Constant before opset 13 that gives {}",
        "sparse_initializer": "takes an initializer that is written as a sparse tensor",
        "unused_in_loop": "is a loop that carries a tensor whose shape changes, and that nothing"
        " uses afterwards",
        "of_constants": "calculates a tensor from constants alone, whose shape is known only then",
        "rounds_may_be_0": "is a Loop whose number of rounds may be 0 or below, and of which more"
        " is used than what it carries on",
        "ignored_condition": "is a Loop without a condition, whose body gives one that may not"
        " hold",
        "reads_condition": "is a Loop whose body reads its condition, which the body passes on, or"
        " the loop is given none",
        "used_result": "is an If that gives a tensor of a shape known only at run time to nodes, or"
        " to an output",
        "strings_passed_on": "is an Identity of strings",
        "strings_sliced": "is a Slice of strings",
        "small_quotient": "is a Div of int8 or uint8",
        "fused_quotient": "is a Div of integers, one constant, the other from a reduction, a matrix"
        " product or a Resize",
        "folded_quotient": "is a Div of constant integers, whose quotient is below 0 and not exact",
        "abs_of_shapes": "is an Abs of what is calculated from shapes and constants",
        "abs_of_joined": "is an Abs of a Concat that other nodes use as well, or that joins what is"
        " calculated from shapes",
        "empty_range": "is a Range that may be empty, its limit on the other side of its start",
        "turned_beside_recurrence": "is a Transpose by [1, 0, 2] of what an LSTM, GRU or RNN reads",
        "strings_in_loop": "is a loop that takes in or gives out strings",
        "if_in_scan": "is in an If in a Scan",
        "scan_in_scan": "is a Scan in the body of a Scan",
        "captured_in_scan": "is a Scan whose body uses values from around it, not constants",
        "overwritten": "is a Loop whose body takes a tensor from around it into a Softmax or a"
        " normalization",
        "long_slice": "is a Slice of a tensor with a dimension above 2^24",
        "flattened": "is a Flatten by an axis of 2 or higher, of data that may have no elements",
        "taken_from_nothing": "is a Gather of data without elements, whose shape is known",
        "takes_nothing": "is a Gather without indices, or a Compress by a constant without True",
        "empty_constant": "takes, or gives out of its graph, a constant without elements",
        "unread_rows": "is a Scan of whose rows nothing that it gives is calculated",
        "empty_in_loop": "has a dimension of 0, in a Loop",
        "empty_axis": "splits an axis of length 0",
        "unused": "is a Split that nothing uses, with lengths that may not fit",
        "vendor_operator": "is of the domain org.openvinotoolkit",
        "dynamic_axis": "splits an axis of which the length is not known",
        "equal_parts_on_dynamic_axis": "gives no lengths, and the length of the axis is not known",
        "computed_lengths": "has lengths that nodes made by lowering calculate",
        "open_remainder": "has a length of -1, and the length of the axis is not known",
    }
)
"""The features of a node, each with what such a node is or does; ``{}`` is the feature's value.

Those of more than yes or no are the types of operators and elements. `wide_values` is there for
int64, uint64 and double (D16); `computed_lengths` is not a node's own feature.
"""

MODEL_FEATURES: Mapping[str, str] = MappingProxyType(
    {
        "opset": "is at opset {}",
        "sequence_input": "has a sequence as an input",
        "sequence_output": "has a sequence as an output",
        "local_function": "has functions of its own",
        "function_opset": "has a function that is written for another opset",
        "duplicate_node_name": "has two nodes of one name in a graph or function",
        "overridable_initializer": "has an input with a default (D20)",
        "calculated_integers": "has nodes, made by lowering, that calculate whole numbers above"
        " 2^24",
        "runtime_checks": "has nodes, made by lowering, that check values known only at run time",
    }
)
"""The features of a model, each with what such a model is or does; ``{}`` is the value."""


def seen_feature(name: str, value: object) -> str:
    """Return what is seen of a node or model with a feature, such as ``uses num_outputs``."""
    text = ", ".join(value) if isinstance(value, tuple) else value
    return (NODE_FEATURES.get(name) or MODEL_FEATURES[name]).format(text)


_WIDE = frozenset({"int64", "uint64", "double"})
_INDICES = {"tensor(int32)", "tensor(int64)"}
_COMPLEX = frozenset({ir.DataType.COMPLEX64, ir.DataType.COMPLEX128})
_BODIES = frozenset({"If", "Loop", "Scan"})
_WITH_STRINGS = {
    "Identity": "strings_passed_on",
    "Slice": "strings_sliced",
    "Loop": "strings_in_loop",
    "Scan": "strings_in_loop",
}


def is_sequence(value: ir.Value | None, facts: Facts) -> bool:
    """Return whether a value is a sequence of tensors."""
    if value is None:
        return False
    # Its classes are protocols, for which `isinstance` takes ten times as long
    return isinstance(facts.of(value), SequenceFact) or type(value.type) is ir.SequenceType


_INPUTS_WITH_LENGTHS = 3
"""The inputs of a split layer that has an input for the lengths."""

_FIRST_WITH_SEQUENCES_IN_BODIES = 13
"""From here on If and Loop take sequences and give them out."""

_FIRST_WITH_NUMBERS_IN_CONSTANTS = 13
"""From here on engines read Constants that give numbers; the standard has them from 12 on."""

FIRST_WITH_AXES_IN_ANY_ORDER = 11
"""Before, engines may infer the shape that onnx does, from axes in order and from the front."""


def features_of(ref: NodeRef, facts: Facts, seen: Facts | None = None) -> Features:
    """Find what of `NODE_FEATURES` holds; little of nodes on neither splits nor sequences.

    Args:
        ref: The node.
        facts: What is known of the model.
        seen: What the engine knows of it at import; None for the same. What it has to know, and
            does not, is a feature; whether it may meet wrong data follows from the facts.
    """
    node, seen = ref.node, facts if seen is None else seen
    found: Features
    if is_onnx_split(node):
        return _of_split(ref, facts, seen)
    if is_vendor_split(node):
        found = {"operator": node.op_type, "vendor_operator": True} | _type_of(node, facts)
        return found | dict(_of_constants(ref))
    own = node.domain == ""
    if own and node.op_type in OPTIONAL_OPERATORS:
        return {"optional": True}
    has_sequences = own and any(
        is_sequence(value, facts) for value in (*node.inputs, *node.outputs)
    )
    found = dict(_of_constants(ref)) if own else {}
    if has_sequences and node.op_type in _BODIES:
        found |= {"operator": node.op_type, "sequence_in_body": True}
        if ref.opset < _FIRST_WITH_SEQUENCES_IN_BODIES:
            found["sequence_in_body_before_13"] = True
    elif has_sequences or (own and node.op_type in SEQUENCE_OPERATORS):
        found |= {"operator": node.op_type} | dict(_of_sequences(ref, facts, seen))
    return found | (dict(_of_any_operator(ref, facts, seen, has_sequences)) if own else {})


def _of_any_operator(
    ref: NodeRef, facts: Facts, seen: Facts, has_sequences: bool
) -> Iterator[tuple[str, object]]:
    """Yield what holds of nodes of ONNX's own domain whether they have sequences or not."""
    node, captured = ref.node, captured_in_scan(ref.node)
    yield from _of_form(ref)
    yield from _of_loops(ref, captured, facts, seen)
    takes_nothing = _takes_nothing(node, facts)
    holds = {
        "unsorted_axes": ref.opset < FIRST_WITH_AXES_IN_ANY_ORDER
        and axes_in_order(node, facts) is not None,
        "turned_beside_recurrence": _is_turned_beside_recurrence(node, facts),
        "flattened": _is_flattened(node, facts),
        "takes_nothing": takes_nothing,
        "taken_from_nothing": not takes_nothing and _takes_from_nothing(node, facts, seen),
        "of_constants": to_calculate(ref, seen),
        "used_result": results_to_settle(ref, seen),
        "long_slice": node.op_type == "Slice"
        and any(may_be_long(held, facts, known=True) for held in node.inputs[:1]),
    }
    found = [*integer_features(ref, facts), *(name for name, held in holds.items() if held)]
    if found:
        yield "operator", node.op_type
    yield from ((name, True) for name in found)
    if node.op_type in _WITH_STRINGS:
        ends = map(facts.element_types, (*node.inputs, *node.outputs, *captured))
        has_strings = any(ir.DataType.STRING in types for types in ends)
        if has_strings and not (node.op_type == "Identity" and has_sequences):
            yield _WITH_STRINGS[node.op_type], True


def empty_operands(ref: NodeRef) -> list[int]:
    """Return the places of a node's data that are constants without elements.

    Operands that are left out so, such as the lengths of `Resize`, and those that are integers
    only, such as shapes and axes, are none.
    """
    empty = [i for i, held in enumerate(ref.node.inputs) if held is not None and _holds_none(held)]
    if not empty or is_vendor_split(ref.node):
        return [place for place in empty if place == 0]
    schema = ref.schema
    if schema is None or not schema.inputs:
        return []
    last = len(schema.inputs) - 1
    return [place for place in empty if _is_data(schema, schema.inputs[min(place, last)])]


def _holds_none(held: ir.Value) -> bool:
    """Return whether a value is a constant without elements."""
    tensor = None if held.is_graph_input() else tensor_of(held)
    return tensor is not None and 0 in tensor.shape


def _is_data(schema: defs.OpSchema, formal: defs.OpSchema.FormalParameter) -> bool:
    is_optional = formal.option == defs.OpSchema.FormalParameterOption.Optional
    return not is_optional and not types_of(schema, formal) <= _INDICES


def sparse_initializers(node: ir.Node) -> dict[ir.Value, SparseTensor]:
    """Return the initializers that a node takes and that are sparse tensors, without defaults."""
    given = (value for value in node.inputs if value is not None and not value.is_graph_input())
    held = {value: value.const_value for value in given}
    return {value: each for value, each in held.items() if isinstance(each, SparseTensor)}


def _of_constants(ref: NodeRef) -> Iterator[tuple[str, object]]:
    if sparse_initializers(ref.node):
        yield "sparse_initializer", True
    if gives_empty_constant(ref.node) or empty_operands(ref):
        yield "empty_constant", True


def flattened_at(node: ir.Node, facts: Facts) -> int | None:
    """Return the axis of a Flatten from the front, where it is known."""
    axis: int | None = attribute_of(node, "axis", ir.AttributeType.INT, 1)
    if axis is None or axis >= 0:
        return axis
    shape = facts.tensor(node.inputs[0]).shape if node.inputs else None
    return None if shape is None else axis + len(shape)


def _is_flattened(node: ir.Node, facts: Facts) -> bool:
    """Return whether more than one axis comes before a Flatten's of data maybe without elements."""
    if node.op_type != "Flatten" or not node.inputs or (flattened_at(node, facts) or 0) < 2:
        return False
    shape = facts.tensor(node.inputs[0]).shape
    return shape is None or 0 in shape or not are_known(shape)


def _takes_nothing(node: ir.Node, facts: Facts) -> bool:
    """Return whether a node takes no elements along an axis, whatever its data holds.

    Strings are left out: those are taken one by one.
    """
    if len(node.inputs) < 2 or ir.DataType.STRING in facts.element_types(node.inputs[0]):
        return False
    if node.op_type == "Gather":
        return facts.tensor(node.inputs[1]).shape == (0,)
    taken = constant(passed_from(node.inputs[1])) if node.op_type == "Compress" else None
    return taken is not None and not taken.any() and "axis" in node.attributes


def _takes_from_nothing(node: ir.Node, facts: Facts, seen: Facts) -> bool:
    """Return whether a Gather's data and result are seen to have no elements, at one axis."""
    if node.op_type != "Gather" or len(node.inputs) != 2:
        return False
    shapes = seen.tensor(node.inputs[0]).shape, facts.tensor(node.outputs[0]).shape
    return all(shape is not None and are_known(shape) and shape.count(0) == 1 for shape in shapes)


def gives_empty_constant(node: ir.Node) -> bool:
    """Return whether a graph gives out a constant without elements as it is."""
    return any(value.is_graph_output() and _holds_none(value) for value in node.outputs)


_TURNED = (1, 0, 2)
"""The order of axes in which steps and batches change places."""

_MOST_PASSING = 16
"""Nodes that change nothing are followed so far."""


def _is_turned_beside_recurrence(node: ir.Node, facts: Facts) -> bool:
    """Return whether steps and batches change places of what a recurrent layer reads as well.

    Other Transposes may do a part of it, and nodes that change nothing may be in between.
    """
    if node.op_type != "Transpose" or len(node.outputs) != 1:
        return False
    made = facts.tensor(node.outputs[0]).shape or (None,) * len(_TURNED)
    return any(
        order == _TURNED
        and may_be_same(facts.tensor(source).shape, (*made[1::-1], *made[2:]))
        and _is_read_by_recurrence(source)
        for source, order in _sources(node.outputs[0])
    )


def _sources(value: ir.Value) -> Iterator[tuple[ir.Value, tuple[int, ...]]]:
    """Yield what a value of rank 3 may be with its axes in another order, each with that order."""
    order: tuple[int, ...] = (0, 1, 2)
    for _ in range(_MOST_PASSING):
        yield value, order
        made = value.producer()
        held = () if made is None else enumerate(made.inputs)
        given = next((each for i, each in held if made is not None and may_pass(made, i)), None)
        if made is None or given is None:
            return
        if made.op_type == "Transpose":
            moved = attribute_of(made, "perm", ir.AttributeType.INTS) or (2, 1, 0)
            if sorted(moved) != [0, 1, 2] or made.domain != "":
                return
            order = tuple(moved[i] for i in order)
        value = given


def _is_read_by_recurrence(value: ir.Value) -> bool:
    """Return whether a recurrent layer reads a value that counts steps first as it is."""
    waiting = [value]
    for held in waiting:
        for use in held.uses():
            if use.idx == 0 and _reads_steps_first(use.node):
                return True
            is_moved = use.node.op_type == "Transpose" or len(waiting) == _MOST_PASSING
            if may_pass(use.node, use.idx) and not is_moved:
                waiting.append(use.node.outputs[0])
    return False


def _reads_steps_first(node: ir.Node) -> bool:
    is_recurrent = node.domain == "" and node.op_type in ("GRU", "LSTM", "RNN")
    return is_recurrent and not attribute_of(node, "layout", ir.AttributeType.INT)


def _of_loops(
    ref: NodeRef, captured: list[ir.Value], facts: Facts, seen: Facts
) -> Iterator[tuple[str, object]]:
    """Yield what holds of a Loop or a Scan, with its operator if anything does."""
    node = ref.node
    if node.op_type not in ("Loop", "Scan"):
        return
    is_loop, is_inner = node.op_type == "Loop", ref.around[-1:] == ("Scan",)
    holds = {
        "empty_in_loop": is_loop and any(_is_empty(each, facts) for each in node.inputs[2:]),
        "scan_in_scan": not is_loop and is_inner,
        "captured_in_scan": captured,
        "overwritten": overwritten(node, seen),
        "unread_rows": has_unread_rows(node),
        "unused_in_loop": unused_and_changing(node, facts, seen),
        "ignored_condition": ignores_condition(node),
        "reads_condition": reads_condition(node),
        "rounds_may_be_0": rounds_may_be_0(node, ref.opset, facts, seen),
    }
    found = [name for name, held in holds.items() if held]
    if found:
        yield "operator", node.op_type
    yield from ((name, True) for name in found)


def to_calculate(ref: NodeRef, seen: Facts) -> list[ir.Value]:
    """Return what a Split, Loop or Scan of the main graph gives, if it reads constants alone.

    There is nothing to calculate where all of it that is used has a shape that is seen.
    """
    node = ref.node
    if not (is_onnx_split(node) or bodies(node)):
        return []
    used = [made for made in node.outputs if made.uses() or made.is_graph_output()]
    facts = [seen.of(made) for made in used]
    shapes = [fact.shape for fact in facts if isinstance(fact, Tensor)]
    are_seen = all(shape is not None and are_known(shape) for shape in shapes)
    return [] if are_seen or len(shapes) < len(used) or not is_of_constants(ref) else used


def _of_form(ref: NodeRef) -> Iterator[tuple[str, object]]:
    """Yield the form in which a Constant that is used gives its value, if not as a tensor."""
    if ref.op_type != "Constant":
        return
    form = next(iter(ref.node.attributes), "value")
    if any(isinstance(tensor_of(value), SparseTensor) for value in ref.node.outputs):
        form = "sparse_value"  # read as `value`
    if form == "value" or is_unused(ref.node):
        return
    yield "constant_form", form
    if ref.opset < _FIRST_WITH_NUMBERS_IN_CONSTANTS:
        yield "constant_form_before_13", form


def may_be_long(held: ir.Value | None, facts: Facts, *, known: bool = False) -> bool:
    """Return whether a tensor may have, or is ``known`` to have, a dimension above 2^24."""
    shape = facts.tensor(held).shape
    if shape is None:
        return not known
    return any(dim > MOST_EXACT if is_known(dim) else not known for dim in shape)


def axes_in_order(node: ir.Node, facts: Facts) -> list[int] | None:
    """Return the axes of a Squeeze or Unsqueeze in order, counted from the front.

    None where they are so already, for other operators, and for what counts from the back of a
    tensor of unknown rank. Unsqueeze has an order of its own only for axes that do so.
    """
    if node.op_type not in ("Squeeze", "Unsqueeze") or not node.inputs:
        return None
    given = list(attribute_of(node, "axes", ir.AttributeType.INTS) or ())
    if node.op_type == "Unsqueeze" and min(given, default=0) >= 0:
        return None
    shape = facts.tensor(node.inputs[0]).shape
    axes = axes_from_front(node.op_type, given, None if shape is None else len(shape))
    return None if axes == given else axes


def recurrences_of(node: ir.Node) -> list[ir.Node]:
    """Return the recurrent layers of an IR that read what a Transpose by [1, 0, 2] gives."""
    if (node.domain, node.op_type) != (DOMAIN, "Transpose") or len(node.inputs) != 2:
        return []
    order = constant(node.inputs[1])
    if order is None or tuple(order.reshape(-1).tolist()) != _TURNED:
        return []
    uses = node.outputs[0].uses()
    return [use.node for use in uses if use.idx == 0 and use.node.op_type in _RECURRENT_LAYERS]


_RECURRENT_LAYERS = frozenset({"GRUSequence", "LSTMSequence", "RNNSequence"})


def _is_read_beside_recurrence(node: ir.Node) -> bool:
    """Return whether a Transpose before recurrent layers, or one that may be like it, is read."""
    if not recurrences_of(node) or node.inputs[0] is None:
        return False
    made = node.outputs[0]
    others = {reader.op_type for reader in made.consumers()} - {*_RECURRENT_LAYERS, "ShapeOf"}
    if others or made.is_graph_output():
        return True
    waiting = [held for held, _ in _sources(node.inputs[0])][-1:]
    for held in waiting:
        for use in held.uses():
            reader = use.node
            if reader is node or not may_pass(reader, use.idx) or len(waiting) > _MOST_PASSING:
                continue
            if reader.op_type == "Transpose":
                return True
            waiting.append(reader.outputs[0])
    return False


def layer_features(ref: NodeRef, facts: Facts) -> Features:
    """Return the features of a split layer; ONNX's Split is one too, once OpenVINO read it.

    Of other layers, there are those of a Transpose that a recurrent layer reads, and of an Abs of a
    Concat.
    """
    node = ref.node
    if (node.domain, node.op_type) == (DOMAIN, "Abs") and is_of_joined(node, facts):
        return {"operator": "Abs", "abs_of_joined": True}
    if _is_read_beside_recurrence(node):
        return {"operator": "Transpose", "turned_beside_recurrence": True}
    if not is_vendor_split(node):
        return {}
    split = facts.split(ref)
    operator = split.operator
    if operator is None:
        return {}
    found: Features = {"operator": "Split", "version": operator.id} | _type_of(node, facts)
    if split.intent is not None:
        found |= dict(_of_layer_lengths(split.intent, node, facts))
    return found


def _of_layer_lengths(intent: Intent, node: ir.Node, facts: Facts) -> Iterator[tuple[str, object]]:
    """Yield what holds of the lengths of a split layer."""
    given, dim = known_lengths(intent), _dimension(intent, node, facts)
    if given is not None and -1 in given and not is_known(dim):
        yield "open_remainder", True
    yield from _of_lost_checks(intent, dim, node)
    if given is not None or len(node.inputs) < _INPUTS_WITH_LENGTHS:
        return
    yield "runtime_lengths", True
    lengths = node.inputs[2]
    if lengths is not None and lengths.is_graph_input() and facts.tensor(lengths).shape == (None,):
        yield "uncounted_lengths", True
    if are_checked(intent, node, facts.tensor(node.inputs[1]).element_type):
        yield "checked_lengths", True


def model_features(model: ir.Model, without: Sequence[ir.Function] = ()) -> Features:
    """Return the features of a model without some functions: what of `MODEL_FEATURES` holds."""
    functions = [each for each in model.functions.values() if each not in without]
    graph, opset = model.graph, domain_opsets(model.opset_imports).get("", 0)
    owners: list[Scope] = [graph, *functions]
    found: dict[str, object] = {
        "opset": opset,
        "sequence_input": any(isinstance(value.type, ir.SequenceType) for value in graph.inputs),
        "sequence_output": any(isinstance(value.type, ir.SequenceType) for value in graph.outputs),
        "local_function": bool(functions),
        "function_opset": any(
            function.opset_imports.get("", opset) != opset for function in functions
        ),
        "duplicate_node_name": any(
            _has_duplicates(scope) for each in owners for scope in scopes_in(each)
        ),
        "overridable_initializer": any(value.name in graph.initializers for value in graph.inputs),
    }
    return {name: value for name, value in found.items() if value}


def data_features(refs: Iterable[NodeRef], facts: Facts) -> Features:
    """Return the features of the data that nodes work on, whatever they do with it.

    They are whether there are doubles (D16), and complex numbers, which few engines have.
    """
    nodes = (ref.node for ref in refs if ref.function not in facts.uncalled)
    values = {value for node in nodes for value in (*node.inputs, *node.outputs)}
    types = set[ir.DataType]().union(*map(facts.element_types, values))
    found: Features = {"wide_values": "double"} if ir.DataType.DOUBLE in types else {}
    numbers = sorted(each.name.lower() for each in types & _COMPLEX)
    return found | ({"element_type": tuple(numbers)} if numbers else {})


def _has_duplicates(scope: Scope) -> bool:
    names = [node.name for node in scope if node.name]
    return len(set(names)) < len(names)


def _of_split(ref: NodeRef, facts: Facts, seen: Facts) -> Features:
    node = ref.node
    found: Features = {"operator": node.op_type} | _type_of(node, facts)
    found |= dict(_of_place(ref, facts)) | dict(_of_uses(node)) | dict(_of_constants(ref))
    if any(not value.name for value in node.outputs):
        found["unnamed_output"] = True
    if to_calculate(ref, seen):
        found["of_constants"] = True
    split = facts.split(ref)
    if split.intent is not None:  # what is wrong with the node itself is for others to say
        found["version"] = split.intent.operator.id
        found.update(_of_intent(split.intent, split.plan, node, facts))
        if _has_external_lengths(ref, split.plan):
            found["external_lengths"] = True
        imported = seen.split(ref)
        found.update(_of_import(imported.intent or split.intent, split.plan, node, seen))
    return found


def _of_place(ref: NodeRef, facts: Facts) -> Iterator[tuple[str, object]]:
    """Yield what the bodies that a split is in say of it."""
    around = ref.around
    if "Scan" in around and "If" in around[around.index("Scan") :]:
        yield "if_in_scan", True
    if "Loop" in around and ref.node.inputs and _is_empty(ref.node.inputs[0], facts):
        yield "empty_in_loop", True


def _is_empty(value: ir.Value | None, facts: Facts) -> bool:
    """Return whether a tensor is known to have no elements."""
    return 0 in (facts.tensor(value).shape or ())


def _of_uses(node: ir.Node) -> Iterator[tuple[str, object]]:
    """Yield what the nodes that follow say of a node: the operators that its outputs go to."""
    first, *later = node.outputs or (None,)
    following = {user.op_type for user in (() if first is None else first.consumers())}
    if not following.isdisjoint({"SequenceAt", "ConcatFromSequence"}):
        yield "taken_apart", True
    if "ConcatFromSequence" in following:
        yield "joined", True
    if any(value.uses() or value.is_graph_output() for value in later):
        yield "later_parts", True


def _has_external_lengths(ref: NodeRef, plan: SplitPlan | UncountedPlan | None) -> bool:
    """Return whether shape inference has to read lengths of a node that are external data."""
    held = passed_from(ref.input(1))
    if held is None or held.is_graph_input() or not isinstance(tensor_of(held), ir.ExternalTensor):
        return False
    return ref.op_type in SEQUENCE_OPERATORS or is_known(split_length(plan))


def split_length(plan: SplitPlan | UncountedPlan | None) -> Dim:
    """Return the length of the axis that is split; None if it is not known."""
    return None if plan is None else plan.input_shape[plan.axis]


def known_lengths(intent: Intent) -> tuple[int, ...] | None:
    """Return the operand of the length rule if all of it is numbers, without expressions."""
    given = intent.given
    return given if given is not None and all(map(is_known, given)) else None


def as_counted(
    ref: NodeRef, intent: Intent, plan: SplitPlan | UncountedPlan | None
) -> Intent | None:
    """Return what a split would ask for without its lengths, if a tracer may have written them.

    They are constants, of a dimension that is known only at run time, and what `num_outputs`
    gives for one value of it. Sequences and functions are left as they are.
    """
    is_rewritten = is_onnx_split(ref.node) and ref.function is None
    if not is_rewritten or intent.operator.is_sequence or not isinstance(plan, SplitPlan):
        return None
    return None if is_known(plan.input_shape[plan.axis]) else counted(intent)


def _of_intent(
    intent: Intent, made: SplitPlan | UncountedPlan | None, node: ir.Node, facts: Facts
) -> Iterator[tuple[str, object]]:
    dim = _dimension(intent, node, facts)
    if intent.axis is None:
        yield "runtime_axis", True
    elif intent.axis < 0:
        yield "negative_axis", True
    if _are_checked(intent, dim, node, facts):
        yield "checked_lengths", True
    if intent.rule is ceil:
        sizes = made.sizes if isinstance(made, SplitPlan) and is_known(dim) else ()
        yield from _of_count(intent, sizes, len(node.inputs) > 1)
    yield from _of_lengths(intent, node)
    if dim == 0:
        yield "empty_axis", True
    if intent.rule is equal:
        yield "equal_parts", True
        if len(facts.counts_alike.get(node, ())) > 1:
            yield "equal_parts_alike", True
    if not intent.operator.is_sequence:
        yield from _of_lost_checks(intent, dim, node)
    if not is_known(dim):
        yield "dynamic_axis", True
        if intent.rule is equal:
            yield "equal_parts_on_dynamic_axis", True
    if intent.operator.is_sequence:
        yield from _of_parts(intent, dim, node)


def _of_lost_checks(intent: Intent, dim: Dim, node: ir.Node) -> Iterator[tuple[str, object]]:
    """Yield uses in which an engine may leave out a Split, and the check that its lengths fit."""
    if not _may_not_fit(intent, dim):
        return
    if is_rejoined(node):
        yield REJOINED, True
    if is_unused(node):
        yield "unused", True
    elif _gives_constants(intent, node):
        yield "unread_parts", True


def _of_lengths(intent: Intent, node: ir.Node) -> Iterator[tuple[str, object]]:
    if known_lengths(intent) is None:
        yield "runtime_lengths", True
    if intent.rule is chunk:
        yield "chunks", True
    source = node.inputs[1] if len(node.inputs) > 1 else None
    if source is not None and source.is_graph_input() and source.is_initializer():
        yield "overridable_lengths", True


def _of_import(
    intent: Intent, made: SplitPlan | UncountedPlan | None, node: ir.Node, seen: Facts
) -> Iterator[tuple[str, object]]:
    """Yield what an engine has to know at import and does not."""
    dim = _dimension(intent, node, seen)
    if intent.rule is ceil and not is_known(dim) and len(node.outputs) > 1:
        sizes = made.sizes if isinstance(made, SplitPlan) else ()
        if not are_known(sizes) or len(set(sizes)) != 1:
            yield "count_on_dynamic_axis", True
    if _has_known_count(intent, dim, node, seen):
        return
    if intent.operator.is_sequence:
        yield "unknown_number_of_parts", True
    elif known_lengths(intent) is None:
        yield "uncounted_lengths", True


def _are_checked(intent: Intent, dim: Dim, node: ir.Node, facts: Facts) -> bool:
    """Return whether nodes before a Split stop the model where the lengths do not fit."""
    data, lengths = (*node.inputs, None)[:2]
    if intent.operator.is_sequence or intent.axis is None or data is None or lengths is None:
        return False
    is_open = _may_not_fit(intent, dim)
    return is_open and always_fit(lengths, data, intent.axis, len(node.outputs), facts)


def _gives_constants(intent: Intent, node: ir.Node) -> bool:
    """Return whether what is used of a split may be known before the model runs.

    It is shapes of parts of constant lengths, or a part of the length 0.
    """
    lengths = known_lengths(intent)
    if lengths is None or intent.rule not in (explicit, remainder):
        return False
    if gives_only_shapes(node):
        return True
    parts = zip(lengths, node.outputs, strict=False)
    return any(not length and (part.uses() or part.is_graph_output()) for length, part in parts)


def _may_not_fit(intent: Intent, dim: Dim) -> bool:
    """Return whether it is known only at run time whether lengths fit."""
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
    if len(set(sizes)) > 1:
        yield "uneven_count", True
    if intent.axis is not None and intent.axis < 0 and len(set(sizes)) != 1:
        yield "uneven_count_on_negative_axis", True
    if sizes and sizes[-1] == 0:
        yield "count_with_empty_part", True


def _dimension(intent: Intent, node: ir.Node, facts: Facts) -> Dim:
    """Return the length of the axis, where it is known."""
    shape, axis = facts.tensor(node.inputs[0]).shape or (), intent.axis
    return None if axis is None or not -len(shape) <= axis < len(shape) else shape[axis]


def _has_known_count(intent: Intent, dim: object, node: ir.Node, facts: Facts) -> bool:
    if intent.rule in (chunk, ones):
        return is_known(dim) and known_lengths(intent) is not None
    lengths = facts.tensor(node.inputs[1]).shape or () if len(node.inputs) > 1 else ()
    return intent.rule in (explicit, None) and len(lengths) == 1 and is_known(lengths[0])


def _type_of(node: ir.Node, facts: Facts) -> Features:
    """Return the features of the element type of a node's data."""
    return _of_type(node.inputs[0], facts) if node.inputs else {}


def _of_type(value: ir.Value | None, facts: Facts) -> Features:
    names = sorted(each.name.lower() for each in facts.element_types(value))
    wide = [name for name in names if name in _WIDE]
    found = {"element_type": names, "wide_values": wide}
    return {key: each[0] if len(each) == 1 else tuple(each) for key, each in found.items() if each}


def _of_sequences(ref: NodeRef, facts: Facts, seen: Facts) -> Iterator[tuple[str, object]]:
    node = ref.node
    yield from _of_uses(node)
    for value in (*node.inputs, *node.outputs):
        fact = facts.of(value)
        if not isinstance(fact, SequenceFact):
            continue
        yield from _of_type(value, facts).items()
        imported = seen.of(value)
        if not isinstance(imported, SequenceFact) or not is_known(imported.count):
            yield "unknown_number_of_parts", True
        if value in node.inputs and value is not None and value.graph not in (None, node.graph):
            yield "captured_sequence", True
    if node.op_type == "Identity" and ref.opset < 14:
        yield "identity_before_14", True
    if node.op_type == "ConcatFromSequence" and _is_used(ref):
        yield "joined_for_nodes", True
    index = ref.input(POSITIONS.get(node.op_type, len(node.inputs)))
    if index is not None and seen.tensor(index).constant is None:
        yield "runtime_sequence_index", True
    elif node.op_type == "SequenceAt" and _holds_an_input(ref.input(0)):
        yield "input_taken_out", True


def _holds_an_input(sequence: ir.Value | None) -> bool:
    """Return whether an input of the model was put into a sequence, as far as is seen here."""
    while sequence is not None and (maker := sequence.producer()) is not None:
        if maker.op_type == "SequenceConstruct":
            return any(value is not None and value.is_graph_input() for value in maker.inputs)
        if maker.op_type not in ("SequenceInsert", "SequenceErase", "Identity"):
            return False
        sequence, *operands = maker.inputs or (None,)
        put = operands[0] if maker.op_type == "SequenceInsert" and operands else None
        if put is not None and put.is_graph_input():
            return True
    return False


def _is_used(ref: NodeRef) -> bool:
    """Return whether anything but an output of the model uses what a node makes."""
    node = ref.node
    rest = ref.path.removeprefix(f"graph/{short_name(node.name or node.op_type)}")
    is_inside = rest != "" and not rest.startswith("[")
    return any(value.uses() or is_inside for value in node.outputs)
