"""The features of a node or a model that matter to engines, in a fixed vocabulary.

The profiles of engines list which of these features an engine was measured not to run, or to run
wrongly. Checking and lowering both look at a model through them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType

import onnx_ir as ir

from tensorsplit.core.records.openvino import DOMAIN
from tensorsplit.model.features.body_features import (
    is_declared_empty,
    joins_across,
    of_bodies,
    results_to_settle,
    small_rows,
    takes_strings,
    unread_rows,
)
from tensorsplit.model.features.byte_products import of_products
from tensorsplit.model.features.forms import of_axes, of_choices, of_form
from tensorsplit.model.features.from_constants import is_packed_constant, of_constants
from tensorsplit.model.features.given_as_is import given_as_is, given_by_function
from tensorsplit.model.features.inlined import Inlined
from tensorsplit.model.features.integers import of_integers
from tensorsplit.model.features.limited_lengths import of_slices
from tensorsplit.model.features.misread import of_misread
from tensorsplit.model.features.quantized import of_quantized
from tensorsplit.model.features.ranks import (
    gives_unknown_rank,
    has_unranked_input,
    of_ranks,
    reads_unknown_rank,
)
from tensorsplit.model.features.recurrences import is_read_beside_recurrence, of_recurrences
from tensorsplit.model.features.requantized import of_channels, of_requantized
from tensorsplit.model.features.rounds import (
    has_no_rows,
    layer_may_have_no_round,
    rows_may_be_0,
)
from tensorsplit.model.features.sequences import (
    OPTIONAL_OPERATORS,
    SEQUENCE_OPERATORS,
    of_sequences,
)
from tensorsplit.model.features.shared_memory import overwriting_layers, shared_layer_states
from tensorsplit.model.features.split_features import of_layer_lengths, of_split
from tensorsplit.model.features.unrun import of_unrun
from tensorsplit.model.features.values import (
    has_strings,
    is_empty,
    is_sequence,
    of_backward_slices,
    of_casts,
    of_data,
    of_gathered_strings,
    of_long_slices,
)
from tensorsplit.model.features.vocabulary import Features
from tensorsplit.model.features.without_elements import of_constant_operands, of_no_elements
from tensorsplit.model.graph.called_in_onnx import operator_of
from tensorsplit.model.graph.calls import called_in_part
from tensorsplit.model.graph.held_tensors import (
    RARE_TYPES,
    is_in_words,
    tensors,
    unread_initializers,
)
from tensorsplit.model.graph.message import NAMED_DOMAIN
from tensorsplit.model.graph.nodes import (
    NodeRef,
    Scope,
    bodies,
    namesakes,
    nodes_in,
    scopes_in,
)
from tensorsplit.model.graph.opsets import domain_opsets
from tensorsplit.model.graph.producers import first_input
from tensorsplit.model.graph.split_records import is_onnx_split, is_vendor_split
from tensorsplit.model.graph.uses import is_needed
from tensorsplit.model.infer.analysis import Facts
from tensorsplit.model.infer.foreign_operators import DOMAIN as FOREIGN

_BODIES = frozenset({"If", "Loop", "Scan"})

_STRING_FEATURES = {
    "Expand": "strings_repeated",
    "Identity": "strings_passed_on",
    "Slice": "strings_sliced",
    "Tile": "strings_repeated",
}

_FIRST_WITH_SEQUENCES_IN_BODIES = 13
"""From here on If and Loop take sequences and give them out."""


def features_of(
    ref: NodeRef, facts: Facts, seen: Facts | None = None, inlined: Inlined | None = None
) -> Features:
    """Find which of `NODE_FEATURES` hold; only a few are looked for without splits or sequences.

    Args:
        ref: The node.
        facts: What is known of the model.
        seen: What the engine knows of it at import; None for the same. What it has to know, and
            does not, is a feature; whether it may meet wrong data follows from the facts.
        inlined: Where the nodes of the model are once functions are inlined; None for where they
            are now.
    """
    node, seen = ref.node, facts if seen is None else seen
    found: Features
    if is_onnx_split(node):
        return of_split(ref, facts, seen)
    if is_vendor_split(node):
        found = {"operator": node.op_type, "vendor_operator": True} | of_data(node, facts)
        return found | dict(of_constant_operands(ref, facts))
    if node.overload and ref.scope is ref.function:
        return {"overload_in_function": True}
    own = node.domain == ""
    if own and node.op_type in OPTIONAL_OPERATORS:
        return {"optional": True}
    has_sequences = own and any(
        is_sequence(value, facts) for value in (*node.inputs, *node.outputs)
    )
    found = dict(of_constant_operands(ref, facts)) if own else {}
    if own and (given := {each.what for each in given_as_is(node)}):
        found |= {"operator": node.op_type, "given_as_is": tuple(sorted(given))}
    if has_sequences and node.op_type in _BODIES:
        found |= {"operator": node.op_type, "sequence_in_body": True}
        if ref.opset < _FIRST_WITH_SEQUENCES_IN_BODIES:
            found["sequence_in_body_before_13"] = True
    elif has_sequences or (own and node.op_type in SEQUENCE_OPERATORS):
        found |= {"operator": node.op_type} | dict(of_sequences(ref, facts, seen))
    if own:
        found |= dict(_of_any_operator(ref, facts, seen, has_sequences))
    elif node.domain == FOREIGN:
        found |= dict.fromkeys(of_quantized(ref, facts), True)
    for name in _of_inlined(ref, facts, inlined) if node.domain in ("", FOREIGN) else ():
        found |= {"operator": node.op_type, name: True}
    return found


def _of_inlined(ref: NodeRef, facts: Facts, inlined: Inlined | None) -> Iterator[str]:
    """Yield the features of a node, or of its copies, once ONNX Runtime has inlined functions."""
    refs, known = ([ref], facts) if inlined is None else inlined.of(ref)
    for each in refs:
        yield from of_channels(each.node, known)
        yield from of_products(each, known)
        yield from of_requantized(each, known)
    yield from sorted(inlined.of_taken(ref.node) if inlined is not None else ())


def _of_any_operator(
    ref: NodeRef, facts: Facts, seen: Facts, has_sequences: bool
) -> Iterator[tuple[str, object]]:
    """Yield the features of any node of ONNX's own domain, with sequences or without."""
    yield from of_form(ref)
    yield from of_choices(ref.node)
    if kinds := small_rows(ref.node, facts):
        yield from (("operator", ref.op_type), ("small_rows", kinds))
    if ref.op_type in _BODIES and (wrong := dict(of_unrun(ref, facts, seen))):
        yield from (("operator", ref.op_type), *wrong.items())
    found = [
        *of_axes(ref, facts),
        *of_bodies(ref, facts, seen),
        *of_casts(ref.node, facts),
        *of_constants(ref, seen),
        *of_integers(ref, facts),
        *of_no_elements(ref, facts, seen),
        *of_misread(ref, seen),
        *of_quantized(ref, facts),
        *of_recurrences(ref.node, facts),
        *of_ranks(ref, seen),
        *of_long_slices(ref.node, facts),
        *of_slices(ref.node, seen),
        *of_backward_slices(ref.node, facts),
        *of_gathered_strings(ref.node, facts),
        *_of_strings(ref.node, facts, has_sequences),
    ]
    if bodies(ref.node) and not all(made.name for made in ref.node.outputs):
        found.append("unnamed_output")
    if found and ref.op_type != "Identity":  # profiles mean one of sequences by its name
        yield "operator", ref.op_type
    yield from ((name, True) for name in found)


def _of_strings(node: ir.Node, facts: Facts, has_sequences: bool) -> Iterator[str]:
    """Yield the features of nodes that move strings."""
    operator = operator_of(node)
    if operator not in _STRING_FEATURES or (operator == "Identity" and has_sequences):
        return
    if operator == "Slice" and any(is_empty(made, facts) for made in node.outputs):
        return
    if any(has_strings(end, facts) for end in (*node.inputs, *node.outputs)):
        yield _STRING_FEATURES[operator]


def layer_features(ref: NodeRef, facts: Facts) -> Features:
    """Return the features of a split layer; ONNX's Split is one too, once OpenVINO read it.

    Other layers have features that nodes of ONNX have, if engines calculate the two alike.
    """
    node = ref.node
    if not is_vendor_split(node):
        others = dict.fromkeys(_of_other_layer(ref, facts), True)
        return {"operator": operator_of(node), **others} if others else {}
    split = facts.split(ref)
    operator = split.operator
    if operator is None:
        return {}
    found: Features = {"operator": "Split", "version": operator.id} | of_data(node, facts)
    if split.intent is not None:
        found |= dict(of_layer_lengths(split.intent, ref, facts))
    if reads_unknown_rank(ref, facts):
        found["unknown_rank"] = True
    if is_packed_constant(first_input(node), facts):
        found["packed_constant"] = True
    return found


def _of_other_layer(ref: NodeRef, facts: Facts) -> Iterator[str]:
    """Yield the features of a layer that is not a split."""
    if ref.node.domain == DOMAIN:
        yield from of_casts(ref.node, facts)
        yield from of_integers(ref, facts)
        yield from _of_strings(ref.node, facts, has_sequences=False)
        yield from of_misread(ref, facts)
    if is_read_beside_recurrence(ref.node):
        yield "turned_beside_recurrence"
    yield from of_no_elements(ref, facts, facts)
    yield from of_slices(ref.node, facts)
    if reads_unknown_rank(ref, facts) or gives_unknown_rank(ref, facts):
        yield "unknown_rank"
    if has_no_rows(ref, facts):
        yield "no_rows"
    elif rows_may_be_0(ref, facts):
        yield "rows_may_be_0"
    yield from (name for name, holds in _LAYER_FEATURES.items() if holds(ref.node, facts))
    if results_to_settle(ref, facts):
        yield "used_result"


_LAYER_FEATURES: Mapping[str, Callable[[ir.Node, Facts], object]] = MappingProxyType(
    {
        "overwritten": overwriting_layers,
        "shares_states": shared_layer_states,
        "scanned_across": joins_across,
        "rounds_may_be_0": layer_may_have_no_round,
        "strings_in_loop": takes_strings,
        "unread_rows": unread_rows,
    }
)
"""Features of layers that follow from the layer and what is known."""


def model_features(model: ir.Model, without: Sequence[ir.Function] = ()) -> Features:
    """Return the features of a model without some functions: what of `MODEL_FEATURES` holds."""
    functions = [each for each in model.functions.values() if each not in without]
    graph, opset = model.graph, domain_opsets(model.opset_imports).get("", 0)
    owners: list[Scope] = [graph, *functions]
    found: dict[str, object] = {
        "opset": opset,
        "sequence_input": any(isinstance(value.type, ir.SequenceType) for value in graph.inputs),
        "sequence_output": any(isinstance(value.type, ir.SequenceType) for value in graph.outputs),
        "empty_input": any(map(is_declared_empty, graph.inputs)),
        "local_function": bool(functions),
        "function_opset": any(
            function.opset_imports.get("", opset) != opset for function in functions
        ),
        **dict.fromkeys(of_named_domain(model, functions), True),
        "passing_function": any(map(given_by_function, model.functions.values())),
        "shortened_call": bool(called_in_part(model, without)),
        "duplicate_node_name": any(
            any(namesakes(scope)) for each in owners for scope in scopes_in(each)
        ),
        "constant_in_words": any(
            is_in_words(tensor)
            for each in owners
            for scope in scopes_in(each)
            for tensor in tensors(scope)
        ),
        **{
            name: any(
                unread_initializers(scope, are_strings=name == "unread_strings")
                for each in owners
                for scope in scopes_in(each)
                if isinstance(scope, ir.Graph)
            )
            for name in ("unread_initializer", "unread_strings")
        },
        "overridable_initializer": any(value.name in graph.initializers for value in graph.inputs),
    }
    return {name: value for name, value in found.items() if value}


def of_named_domain(model: ir.Model, functions: Sequence[ir.Function]) -> Iterator[str]:
    """Yield whether nodes call ONNX's own domain by its name, and some in bodies and functions.

    Those that nothing needs, or in other functions than these, count only as the latter.
    """
    if NAMED_DOMAIN not in model.meta:
        return
    owners: list[Scope] = [model.graph, *functions]
    if any(map(_names_domain, (node for each in owners for node in nodes_in(each)))):
        yield "named_domain"
    inner = [each for each in scopes_in(model.graph) if each is not model.graph]
    for scope in (*inner, *model.functions.values()):
        if any(NAMED_DOMAIN in node.meta for node in nodes_in(scope)):
            yield "named_domain_inside"
            return


def _names_domain(node: ir.Node) -> bool:
    return NAMED_DOMAIN in node.meta and any(map(is_needed, node.outputs))


def data_features(refs: Iterable[NodeRef], facts: Facts, inputs: Iterable[ir.Value]) -> Features:
    """Return the features of the data that nodes work on, whatever they do with it.

    They are whether there are doubles (D16), and types that few engines have; and whether the model
    has inputs of unknown rank that no node reads.
    """
    nodes = [ref.node for ref in refs if ref.function not in facts.uncalled]
    values = {value for node in nodes for value in (*node.inputs, *node.outputs)}
    types = set[ir.DataType]().union(*map(facts.element_types, values))
    if any(each.name in RARE_TYPES for each in types):  # engines leave out what nothing needs
        needed = [node for node in nodes if any(map(is_needed, node.outputs))]
        ends = {value for node in needed for value in (*node.inputs, *node.outputs)}
        types = {each for each in types if each.name not in RARE_TYPES}.union(
            *map(facts.element_types, ends)
        )
    fed = [*inputs]
    given = set[ir.DataType]().union(*map(facts.element_types, fed))
    types |= {each for each in given if each.name in RARE_TYPES}  # inputs are never left out
    found: Features = {"wide_values": "double"} if ir.DataType.DOUBLE in types else {}
    rare = sorted(each.name.lower() for each in types if each.name in RARE_TYPES)
    if has_unranked_input(fed, facts):
        found["unranked_input"] = True
    return found | ({"element_type": tuple(rare)} if rare else {})
