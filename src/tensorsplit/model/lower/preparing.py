"""The changes that are made before nodes are lowered one by one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cache, partial
from itertools import chain

import numpy as np
import onnx_ir as ir

from tensorsplit.model.features import of_named_domain
from tensorsplit.model.features.forms import axes_in_order, needs_axes_in_order
from tensorsplit.model.features.sequences import OPTIONAL_OPERATORS, SEQUENCE_OPERATORS
from tensorsplit.model.features.unrun import WRONG_UNRUN
from tensorsplit.model.graph.building import take_out
from tensorsplit.model.graph.calculation import FIRST_WITH_BOUNDS_AS_INPUTS
from tensorsplit.model.graph.facts import Tensor
from tensorsplit.model.graph.held_tensors import constant
from tensorsplit.model.graph.loops import is_loop
from tensorsplit.model.graph.message import NAMED_DOMAIN
from tensorsplit.model.graph.nodes import (
    NodeRef,
    bodies,
    branch_label,
    is_operator,
    namesakes,
    nodes_in,
    scopes,
)
from tensorsplit.model.graph.producers import is_identity, passed_from
from tensorsplit.model.graph.split_records import is_split
from tensorsplit.model.graph.uses import gives_only_shapes, led_to_shapes, owners_in
from tensorsplit.model.lower.loop_rounds import leave_out_loop
from tensorsplit.model.lower.split_nodes import lower_split
from tensorsplit.model.lower.state import InsertionPoint, LoweredNode, Lowering, at, refusal
from tensorsplit.model.profiles import Limitation, must_go
from tensorsplit.model.refusals import malformed
from tensorsplit.model.validity.node_errors import wrong_types

_CHECKED = SEQUENCE_OPERATORS | OPTIONAL_OPERATORS


def check_sequence_nodes(lowering: Lowering) -> None:
    """Refuse nodes that mix sequences and tensors where the standard does not (TS502)."""
    for ref in lowering.refs.values():
        node = ref.node
        if node.domain != "" or node.op_identifier() in lowering.model.functions:
            continue
        inside = [value for _, body in bodies(node) for value in (*body.inputs, *body.outputs)]
        ends = (*node.inputs, *node.outputs, *inside)
        if node.op_type in _CHECKED or not lowering.reasons.keys().isdisjoint(ends):
            with at(ref):
                _check_node(lowering, ref)


def _check_node(lowering: Lowering, ref: NodeRef) -> None:
    node = ref.node
    schema = ref.schema
    if schema is None:
        raise malformed(f"there is no {node.op_type} at opset {ref.opset}", "repair it")
    checked = schema if node.op_type in SEQUENCE_OPERATORS else None
    for error in wrong_types(ref, checked, lambda value: type(lowering.facts.of(value))()):
        raise error


def rename_duplicates(lowering: Lowering) -> None:
    """Give nodes names of their own in their graph, where the target needs that."""
    entry = lowering.limitation("duplicate_node_name")
    if entry is None:
        return
    for scope in scopes(lowering.model):
        for node in list(namesakes(scope)):
            lowering.changed(lowering.refs[node], "the same with another name", entry)
            node.name = lowering.names.fresh(node.name or "")


def forget_domain(lowering: Lowering) -> None:
    """Write ONNX's own domain without its name, where the target does not know that of a node."""
    model = lowering.model
    found = map(lowering.limitation, of_named_domain(model, list(model.functions.values())))
    if (entry := next(filter(None, found), None)) is not None:
        del model.meta[NAMED_DOMAIN]
        functions = (each.opset_imports for each in model.functions.values())
        for imports in (model.opset_imports, *functions):
            if (opset := imports.pop(NAMED_DOMAIN, None)) is not None:
                imports.setdefault("", opset)
        reason = lowering.profile.sentence(entry)
        change = LoweredNode("graph", "nodes of ai.onnx", "the same, of the domain ''", reason)
        lowering.report.changes.append(change)


def inline_lengths(lowering: Lowering) -> bool:
    """Write lengths that are external data into the model, where the target can't read them.

    Returns whether there were any.
    """
    return lowering.change_limited("external_lengths", _inline_lengths)


def _inline_lengths(lowering: Lowering, ref: NodeRef, entry: Limitation) -> None:
    source = passed_from(ref.input(1))
    lengths = constant(source)
    assert source is not None and lengths is not None  # noqa: S101, PT018 - see the feature
    producer, inside = source.producer(), ir.tensor(lengths, name=source.name)
    if producer is None:
        source.const_value = inside
    else:
        producer.attributes["value"] = ir.AttrTensor("value", inside)
    lowering.changed(ref, "the same, with its lengths in the model", entry)


def sort_axes(lowering: Lowering) -> bool:
    """Put axes in order where the target infers a wrong shape otherwise.

    Returns whether there were any.
    """
    return lowering.change_limited("unsorted_axes", _sort)


def keep_unread(lowering: Lowering) -> bool:
    """Calculate lengths before the other nodes, where the target would leave a Split out.

    It no longer sees the shapes of such parts at import then, and what follows is lowered for that.
    Returns whether anything was changed.
    """
    return lowering.change_limited("unread_parts", _calculate_lengths)


def _calculate_lengths(lowering: Lowering, ref: NodeRef, _entry: Limitation) -> None:
    can_check = ref.opset >= FIRST_WITH_BOUNDS_AS_INPUTS
    if can_check and gives_only_shapes(ref.node):
        _forget_shapes(lowering, ref)
    lower_split(lowering, ref)


def forget_shapes(lowering: Lowering) -> bool:
    """Remove declared shapes that the target would take for those of the parts of a split."""
    return lowering.change_limited("declared_parts", _leave_out_shapes)


def _leave_out_shapes(lowering: Lowering, ref: NodeRef, entry: Limitation) -> None:
    _forget_shapes(lowering, ref)
    lowering.changed(ref, "the same, without declared shapes of its parts", entry)


def _forget_shapes(lowering: Lowering, ref: NodeRef) -> None:
    """Keep only the declared ranks of the data that are split, and of what follows from them."""
    for held in led_to_shapes(ref.node):
        fact = lowering.facts.of(held)
        if isinstance(fact, Tensor) and fact.shape is not None:
            lowering.facts.set(held, replace(fact, shape=(None,) * len(fact.shape)))
        if held.shape is not None:
            held.shape = ir.Shape([None] * len(held.shape))


def keep_left_unread(lowering: Lowering) -> bool:
    """Do as `keep_unread`, where nodes were replaced and a Split may have lost its readers so.

    One that nothing uses any more is noted.
    """
    owners = cache(partial(owners_in, lowering.model.graph))

    def may_have(node: ir.Node) -> bool:
        return is_split(node) and gives_only_shapes(node, owners())

    if not lowering.report.changes or not lowering.look_for("unread_parts", may_have):
        return False
    for _, entry in lowering.limited("unused"):
        lowering.note(entry)
    return keep_unread(lowering)


def sort_axes_for_onnx(lowering: Lowering) -> None:
    """Put axes in order in a model that was changed, for any target.

    Onnx's inference is wrong about others (see errata), so that what lowering declares after such a
    node contradicts it, and onnx's checker refuses the model.
    """
    if not lowering.report.changes or not any(map(_may_be_unsorted, lowering.refs.values())):
        return
    lowering.look()
    for ref in filter(_may_be_unsorted, lowering.refs.values()):
        if axes_in_order(ref.node, lowering.facts) is not None:
            _sort(lowering, ref, reason="onnx infers a wrong shape for others")


def _may_be_unsorted(ref: NodeRef) -> bool:
    return needs_axes_in_order(ref.node, ref.opset)


def _sort(lowering: Lowering, ref: NodeRef, *entries: Limitation, reason: str = "") -> None:
    axes = axes_in_order(ref.node, lowering.facts)
    assert axes is not None  # noqa: S101 - see the callers
    ref.node.attributes["axes"] = ir.AttrInt64s("axes", axes)
    lowering.changed(ref, "the same, with its axes in order", *entries, reason=reason)


def take_branches(lowering: Lowering) -> bool:
    """Replace an If that gives sequences to lower by the branch that is always taken.

    Nothing is known of the two together: the sequences of the other branch may be of another kind.
    Returns whether there was any.
    """
    wanted = [
        ref
        for ref in lowering.refs.values()
        if is_operator(ref.node, "If")
        and any(made in lowering.reasons for made in ref.node.outputs)
        and lowering.facts.tensor(ref.input(0)).constant is not None
    ]
    for ref in wanted:
        reasons = (lowering.reasons.get(made) for made in ref.node.outputs)
        with at(ref):
            take_branch(lowering, ref, next(filter(None, reasons)))
    lowering.edits.finish()
    return bool(wanted)


def leave_out_unrun(lowering: Lowering) -> bool:
    """Leave out branches, and loops without a round, of which the target refuses something.

    It does so though they never run (D22). Returns whether there were any.
    """
    before = len(lowering.report.changes)
    for ref in lowering.refs.values():
        if ref.function is not None or lowering.facts.never_runs(ref.path):
            continue
        entry = next(_refused_unrun(lowering, ref), None)
        if entry is None:
            continue
        with at(ref):
            if ref.op_type == "If" and lowering.facts.tensor(ref.input(0)).constant is not None:
                take_branch(lowering, ref, entry)
            elif is_loop(ref.node):
                leave_out_loop(lowering, ref, entry)
    lowering.edits.finish()
    return len(lowering.report.changes) > before


def _refused_unrun(lowering: Lowering, ref: NodeRef) -> Iterator[Limitation]:
    """Yield the limitations of the target in the bodies of a node that never run."""
    own = lowering.limitations.get(ref.node, ())
    yield from (entry for entry in own if entry.feature in WRONG_UNRUN)
    for _, body in bodies(ref.node):
        for node in nodes_in(body):
            inner = lowering.refs.get(node)
            if inner is not None and lowering.facts.never_runs(inner.path):
                entries = filter(lowering.profile.refuses_unrun, lowering.limitations.get(node, ()))
                yield from (each for each in entries if must_go(each) or each.extent == "all")


def take_branch(lowering: Lowering, ref: NodeRef, entry: Limitation) -> None:
    """Put the nodes of the branch that is always taken before its If, and what it gives out."""
    known = lowering.facts.tensor(ref.input(0)).constant
    assert known is not None  # noqa: S101 - see the callers
    label = branch_label(known[0])
    node, body = ref.node, dict(bodies(ref.node))[label]
    inside, scope = list(body), node.graph
    assert scope is not None  # noqa: S101 - it is in the model
    point = InsertionPoint(lowering, ref.stem, scope, node)
    ends = take_out(node, body, lambda held: point.op("Constant", [], {"value": held.const_value}))
    for held in chain(*(inner.outputs for inner in inside)):
        if held.name:
            held.name = lowering.names.fresh(held.name)
    for old, new in zip(node.outputs, ends, strict=True):
        point.replace(old, new)
    lowering.changed(ref, f"its {label}, which is always taken", entry)
    lowering.edits.retire(node)


def unwrap_optionals(lowering: Lowering) -> bool:
    """Replace optional values by their content, if the target has none; return whether any were."""
    wanted = [
        ref
        for ref in lowering.refs.values()
        if ref.node.domain == ""
        and ref.op_type in OPTIONAL_OPERATORS
        and lowering.reason(ref.node) is not None
    ]
    held: dict[ir.Value, ir.Value | None] = {}
    for ref in wanted:
        with at(ref):
            became = _unwrap(lowering, ref, held)
            entry = lowering.reason(ref.node)
            lowering.changed(ref, became, entry)
        lowering.edits.retire(ref.node)
    lowering.edits.finish()
    return bool(wanted)


def _unwrap(lowering: Lowering, ref: NodeRef, held: dict[ir.Value, ir.Value | None]) -> str:
    """Replace one node; returns what it became. What each optional holds is noted in `held`."""
    node, given = ref.node, passed_from(ref.input(0))
    made = node.outputs[0]
    if ref.op_type == "Optional":
        _check_readers(lowering, made)
        held[made] = given
        return "its element"
    if given is not None and given not in held and isinstance(given.type, ir.OptionalType):
        raise refusal(
            f"whether '{given.name}' has an element is known only at run time, and the target has"
            " no optional values",
            "make it a tensor",
        )
    element = held.get(given, given) if given is not None else None
    point = InsertionPoint.before(lowering, ref)
    if ref.op_type == "OptionalHasElement":
        point.replace(made, point.constant(element is not None, np.bool_))
        return "Constant"
    if element is None:
        raise refusal("it takes the element of an optional value that has none")
    point.replace(made, element)
    return "the element itself"


def _check_readers(lowering: Lowering, made: ir.Value) -> None:
    """Refuse an optional value that other nodes read; those that pass it on are left out."""
    waiting = [made]
    while waiting:
        passed = waiting.pop()
        readers = [reader for reader in passed.consumers() if not is_identity(reader)]
        users = {reader.op_type for reader in readers} - OPTIONAL_OPERATORS
        if passed.is_graph_output() or users:
            where = ", ".join(sorted(users)) or "an output"
            raise refusal(f"an optional value goes to {where}, and the target has none")
        for reader in filter(is_identity, passed.consumers()):
            waiting += reader.outputs
            lowering.edits.retire(reader)
