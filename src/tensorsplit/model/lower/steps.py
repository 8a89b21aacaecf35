"""The steps of lowering, in order, and the way through bodies."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import chain

import onnx_ir as ir

from tensorsplit.core.arithmetic import value
from tensorsplit.core.dimensions import is_known
from tensorsplit.core.errors import SplitError
from tensorsplit.core.records.openvino import DOMAIN
from tensorsplit.model.features import data_features, model_features
from tensorsplit.model.features.sequences import SEQUENCE_OPERATORS
from tensorsplit.model.features.vocabulary import REJOINED
from tensorsplit.model.graph.building import full_collections_deferred
from tensorsplit.model.graph.facts import SequenceFact, Tensor, join_shapes
from tensorsplit.model.graph.loops import Carried, carried_by
from tensorsplit.model.graph.nodes import NodeRef, Scope, bodies, walk
from tensorsplit.model.graph.opsets import domain_name
from tensorsplit.model.graph.producers import passed_from
from tensorsplit.model.graph.progress import counted
from tensorsplit.model.graph.split_records import is_split
from tensorsplit.model.infer.analysis import analyse
from tensorsplit.model.lower.constants import (
    calculate_constants,
    drop_unread,
    give_nothing,
    give_nothing_for_parts,
    slice_empty,
    slice_nothing,
    write_initializers,
    write_tensors,
    write_words,
)
from tensorsplit.model.lower.inlining import inline
from tensorsplit.model.lower.inner_scans import loop_for_no_rows, loop_inner_scans
from tensorsplit.model.lower.known_lengths import write_lengths
from tensorsplit.model.lower.loop_rounds import (
    hold_conditions,
    leave_out_loops,
    leave_out_scans,
    pass_conditions_on,
    settle_rounds,
)
from tensorsplit.model.lower.loop_states import (
    copy_numbers,
    copy_states,
    give_own_values,
    pass_results_on,
    use_states,
)
from tensorsplit.model.lower.lowered_sequence import (
    Layout,
    LoweredSequence,
    PackedParts,
    layout_for,
)
from tensorsplit.model.lower.other_nodes import change_other_nodes, change_other_nodes_again
from tensorsplit.model.lower.preparing import (
    check_sequence_nodes,
    forget_domain,
    forget_shapes,
    inline_lengths,
    keep_left_unread,
    keep_unread,
    leave_out_unrun,
    rename_duplicates,
    sort_axes,
    sort_axes_for_onnx,
    take_branches,
    unwrap_optionals,
)
from tensorsplit.model.lower.rejoined_parts import keep_checks
from tensorsplit.model.lower.scan_states import (
    carry_captured,
    carry_overwritten,
    carry_sizes,
    scan_first_axes,
)
from tensorsplit.model.lower.sequence_loops import expand_maps, give_out
from tensorsplit.model.lower.sequence_nodes import HANDLERS, LoweredSequences, SequenceNode
from tensorsplit.model.lower.sliced_strings import take_slice
from tensorsplit.model.lower.split_nodes import lower_split
from tensorsplit.model.lower.state import (
    InsertionPoint,
    LoweredNode,
    Lowering,
    LoweringReport,
    at,
    check_loop,
    refusal,
)
from tensorsplit.model.profiles import Limitation, load, must_go
from tensorsplit.model.reading import OnnxModel
from tensorsplit.model.refusals import own_fault
from tensorsplit.model.validity.model_errors import check_well_formed
from tensorsplit.model.validity.node_errors import wrong_types


@full_collections_deferred()
def lower_graph(opened: OnnxModel, target: str | os.PathLike[str]) -> LoweringReport:
    """Do as `lower`, but in place; after a refusal the onnx-ir model may be half changed."""
    profile = load(target)
    report = LoweringReport(profile.name)
    check_well_formed(opened.model)
    if opened.was_sorted:
        report.changes.append(
            LoweredNode("graph", "its nodes", "the same, in order", _OUT_OF_ORDER)
        )
    try:
        _lower(Lowering(opened.model, profile, report))
    except SplitError as error:
        raise error.located(node="graph") from None
    except Exception as error:  # graphs contradict themselves in more ways than can be listed
        problem = "the graph can't be rewritten"
        raise (_mistyped(opened) or own_fault(problem, error)).located(node="graph") from error
    return report


_OUT_OF_ORDER = "some nodes read what only later ones give"

_MOST_PASSES = 2
"""So often more is looked for in what was written; a third time nothing was found but the same.

Nothing is where only splits into tensors were lowered and there are no sequences: of other nodes no
more is seen than before.
"""


def _mistyped(opened: OnnxModel) -> SplitError | None:
    """Return the first error in a model's types, if there is one; it may be half lowered."""
    with suppress(Exception):  # what fails here too is not a fault of the model
        read = replace(opened)
        facts = analyse(read.model)
        for ref in walk(read.model):
            for wrong in () if is_split(ref.node) else wrong_types(ref, ref.schema, facts.of):
                return wrong.located(node=ref.path)
    return None


def _lower(lowering: Lowering) -> None:
    """Rewrite the nodes that the target can't run, again as long as that reveals more of them."""
    passes = 0
    while True:
        is_less_known, may_be_more = _lower_once(lowering)
        if not is_less_known and (not may_be_more or passes == _MOST_PASSES):
            return
        lowering.look()
        if is_less_known:
            passes = 0
        elif any(map(_may_be_written, chain.from_iterable(lowering.limitations.values()))):
            passes += 1
        else:
            return


def _lower_once(lowering: Lowering) -> tuple[bool, bool]:
    """Rewrite once the nodes that the target is now seen not to run.

    Returns:
        Whether less is known, or seen at import, of what follows, or axes may be alike; and whether
        more may be seen in what was written.
    """
    if leave_out_unrun(lowering):
        lowering.look()
    check_sequence_nodes(lowering)
    _check(lowering)
    while any(step(lowering) for step in _BEFORE_SPLITS):
        lowering.look()
    check_sequence_nodes(lowering)
    rename_duplicates(lowering)
    forget_domain(lowering)
    changes = lowering.report.changes
    had_alike, before = any(map(lowering.limited, _MAKE_ALIKE)), len(changes)
    had_vendor_nodes = any(node.domain == DOMAIN for node in lowering.refs)
    had_sequences = _lower_splits(lowering)
    written = len(changes)
    is_less_known = [step(lowering) for step in _AFTER_SPLITS]
    if had_vendor_nodes and all(ref.node.domain != DOMAIN for ref in walk(lowering.model)):
        lowering.model.opset_imports.pop(DOMAIN, None)
    has_changed, may_be_more = len(changes) > before, had_sequences or len(changes) > written
    if has_changed and any(ref.op_type in SEQUENCE_OPERATORS for ref in lowering.refs.values()):
        may_be_more = True  # their positions may follow from shapes of parts
    return (had_alike and has_changed) or any(is_less_known), may_be_more


def _lower_splits(lowering: Lowering) -> bool:
    """Lower splits and the nodes that read them; return whether there were sequences."""
    sequences: LoweredSequences = {}
    graph = lowering.model.graph
    _lower_scope(lowering, sequences, graph)
    for output in tuple(graph.outputs):
        if output in sequences:
            give_out(lowering, output, sequences[output])
    lowering.edits.finish()
    return bool(sequences)


def _calculate_in_bodies(lowering: Lowering) -> None:
    """Replace values in bodies that have become constant since splits were lowered."""
    if lowering.look_for("of_constants", bodies):
        calculate_constants(lowering)


_MAKE_ALIKE = ("equal_parts_alike", "negative_axis")
"""Writing what has these features may make Splits without lengths alike."""

_BEFORE_SPLITS: tuple[Callable[[Lowering], bool], ...] = (
    inline_lengths,
    sort_axes,
    inline,
    leave_out_unrun,
    write_tensors,
    write_initializers,
    write_words,
    drop_unread,
    slice_empty,
    slice_nothing,
    give_nothing,
    take_branches,
    # of loops
    give_own_values,
    leave_out_loops,
    leave_out_scans,
    pass_conditions_on,
    hold_conditions,
    expand_maps,
    loop_inner_scans,
    loop_for_no_rows,
    scan_first_axes,
    # of other nodes
    change_other_nodes,
    unwrap_optionals,
    calculate_constants,
    write_lengths,
    keep_unread,
    forget_shapes,
)
"""What comes before splits. After the first that changes something, it begins again."""

_AFTER_SPLITS: tuple[Callable[[Lowering], bool | None], ...] = (
    _calculate_in_bodies,
    give_nothing_for_parts,
    carry_captured,
    carry_overwritten,
    carry_sizes,
    keep_checks,
    pass_results_on,
    copy_numbers,
    copy_states,
    use_states,
    settle_rounds,
    sort_axes_for_onnx,
    change_other_nodes_again,
    keep_left_unread,
)
"""What comes after splits, each once; some return whether less is known of what follows now."""


_NOTED_WHERE_LEFT = frozenset({"lengths_of_constants", "rows_may_be_0"})
"""Features that a step removes from most nodes; it notes those that it leaves."""


def _may_be_written(entry: Limitation) -> bool:
    return must_go(entry) or entry.feature in _NOTED_WHERE_LEFT


def _check(lowering: Lowering) -> None:
    """Refuse features that no rewrite removes; note those that the target may run wrongly."""
    profile = lowering.profile
    for entry in profile.about(model_features(lowering.model)):
        if entry.feature in ("sequence_input", "sequence_output"):
            what = entry.feature.replace("sequence_", "a sequence is an ")
            raise refusal(
                f"{what} of the model, which {profile.name} can't take ({entry.note})",
                "make it a tensor, for example with ConcatFromSequence",
            )
        if not must_go(entry):
            lowering.note(entry)
    for node, entries in lowering.limitations.items():
        for entry in entries:
            with at(lowering.refs[node]):
                check_loop(entries)
                _check_type(lowering, entry)
                _check_opset(lowering, entry)
            if not _may_be_written(entry):
                lowering.note(entry)
    refs, inputs = lowering.refs.values(), lowering.model.graph.inputs
    for entry in profile.about(data_features(refs, lowering.facts, inputs)):
        _check_type(lowering, entry)
        lowering.note(entry)


def _check_type(lowering: Lowering, entry: Limitation) -> None:
    """Refuse data that the target has no tensors for."""
    if entry.feature == "element_type" and not entry.operators:
        types = ", ".join(map(str, entry.values))
        raise refusal(f"{lowering.profile.name} can't hold data of {types}: {entry.note}")


_OPSET_FEATURES = ("uneven_branches", "version")
"""Features of nodes for which another opset is needed."""


def _check_opset(lowering: Lowering, entry: Limitation) -> None:
    """Refuse nodes that the target does not run at this opset, where no other nodes would do."""
    if entry.feature in _OPSET_FEATURES and entry.extent == "all":
        raise refusal(lowering.profile.sentence(entry), "convert it to opset 13")


def _lower_scope(lowering: Lowering, sequences: LoweredSequences, scope: Scope) -> None:
    """Lower the nodes of the main graph, or of a body; functions that need it were inlined."""
    nodes = tuple(scope)
    for node in counted("lowering", nodes) if scope is lowering.model.graph else nodes:
        ref = lowering.refs[node]
        with at(ref):
            _lower_node(lowering, sequences, ref)


def _lower_node(lowering: Lowering, sequences: LoweredSequences, ref: NodeRef) -> None:
    node, own = ref.node, domain_name(ref.node.domain) == ""
    ends = (*node.inputs, *node.outputs)
    reason = next((lowering.reasons[end] for end in ends if end in lowering.reasons), None)
    if own and node.op_type in _WITH_BODIES:
        step = SequenceNode(lowering, ref, sequences)
        if _WITH_BODIES[node.op_type](step) and reason is not None:
            lowering.changed(ref, "tensors in place of sequences", reason)
        return
    for _, body in bodies(node):
        _lower_scope(lowering, sequences, body)
    if reason is None:
        entry = lowering.reason(node, but=REJOINED)
        if entry is not None and is_split(node) and node.op_type not in SEQUENCE_OPERATORS:
            lower_split(lowering, ref)
        elif entry is not None and entry.feature == "strings_passed_on":
            SequenceNode(lowering, ref, sequences).pass_on()
            lowering.changed(ref, "Gather", entry)
            lowering.edits.retire(node)
        elif entry is not None and entry.feature == "strings_sliced":
            take_slice(lowering, ref)
            lowering.changed(ref, "Gather", entry)
            lowering.edits.retire(node)
    elif own and node.op_type in HANDLERS:
        step = SequenceNode(lowering, ref, sequences)
        result = HANDLERS[node.op_type](step)
        step.keep_notes()
        if isinstance(result, LoweredSequence):
            sequences[node.outputs[0]] = result
            is_packed = result.packed is not None
            result = "a tensor and where its parts start" if is_packed else "the parts themselves"
        lowering.changed(ref, result, reason)
        lowering.edits.retire(node)
    else:
        problem = f"a sequence goes through {node.op_type}, and sequences can't stay"
        raise refusal(f"{problem} ({reason.note})")


@dataclass(frozen=True)
class Passage:
    """How a value gets in or out of a body: as it is, or as tensors that stand for a sequence.

    Attributes:
        step: The node with the body.
        fact: What is known of the sequence; None for a value that stays what it was.
        layout: How the first tensor holds it; None if each one is a tensor of the sequence.
        tensors: What is known of the values that get through: none for a sequence that is the same
            on both sides.
    """

    step: SequenceNode
    fact: SequenceFact | None = None
    layout: Layout | None = None
    tensors: tuple[Tensor, ...] = (Tensor(),)

    @classmethod
    def packed(cls, step: SequenceNode, fact: SequenceFact, layout: Layout) -> Passage:
        """Return the way of a sequence in one tensor, beside the lengths of its parts."""
        return cls(step, fact, layout, layout.tensors(fact))

    def given(self, held: ir.Value, point: InsertionPoint) -> list[ir.Value]:
        """Return the values that are passed in or out for a value."""
        if self.fact is None:
            return [held] * len(self.tensors)
        sequence = replace(self.step.sequence(held), fact=self.fact)
        if self.layout is None:
            return sequence.tensors()
        return sequence.in_layout(self.layout, point).tensors()

    def values(self, old: ir.Value) -> list[ir.Value]:
        """Return new values for it on the other side."""
        names, facts = self.step.lowering.names, self.step.lowering.facts
        made = []
        for fact in self.tensors:
            name = names.fresh(f"{old.name or 'sequence'}_tensor")
            dims = fact.shape
            shape = None if dims is None else [d if is_known(d) else None for d in dims]
            new = ir.val(name, fact.element_type, shape)
            facts.set(new, fact)
            made.append(new)
        return made

    def taken(self, old: ir.Value, values: list[ir.Value], point: InsertionPoint) -> None:
        """Let the new values replace the old one after the point."""
        sequences = self.step.sequences
        if self.fact is None:
            for new in values:
                self.step.lowering.stand_in((old, new))
        elif self.layout is None:
            sequences[old] = LoweredSequence(self.fact, tuple(values))
        else:
            packed = PackedParts.of(point, values[0], self.layout, value(values[-1]))
            fact = SequenceFact(self.fact.element_type, self.fact.part)
            sequences[old] = LoweredSequence.of(packed, fact)


def _lower_if(step: SequenceNode) -> bool:
    """Lower an If and its branches; return whether it was replaced."""
    node, branches = step.node, [body for _, body in bodies(step.node)]
    for body in branches:
        _lower_scope(step.lowering, step.sequences, body)
    ends = [end for body in branches for end in body.outputs]
    if step.lowering.reasons.keys().isdisjoint(node.outputs) and step.sequences.keys().isdisjoint(
        ends
    ):
        return False
    passages = [
        _out_of_branches(step, old, [body.outputs[index] for body in branches])
        for index, old in enumerate(node.outputs)
    ]
    for body in branches:
        body.outputs[:] = _given_out(step, passages, body, body.outputs[: len(passages)])
    _replace(step, node.inputs, passages)
    return True


def _out_of_branches(step: SequenceNode, old: ir.Value, ends: list[ir.Value]) -> Passage:
    """Return how an output leaves the branches."""
    if old not in step.lowering.reasons and step.sequences.keys().isdisjoint(ends):
        return Passage(step)
    sequences, fact = list(map(step.sequence, ends)), step.lowering.sequence(old)
    counts = {None if each.parts is None else len(each.parts) for each in sequences}
    if len(counts) == 1 and None not in counts and counts != {0}:
        count = len(sequences[0].parts or ())
        return Passage(step, fact, None, (Tensor(fact.element_type),) * count)
    return Passage.packed(step, fact, layout_for(fact, sequences))


def _lower_loop(step: SequenceNode) -> bool:
    """Lower a Loop and its body; return whether it was replaced."""
    node = step.node
    ((_, body),) = bodies(node)
    carried = carried_by(node)
    passages = [_into_loop(step, each) for each in carried]
    inputs, inside = list(node.inputs[:2]), list(body.inputs[:2])
    first = InsertionPoint(step.lowering, step.point.stem, body, next(iter(body), None))
    for passage, (start, old, *_) in zip(passages, carried, strict=True):
        inputs += [None] if start is None else passage.given(start, step.point)
        if passage.fact is None:
            inside += [old] * len(passage.tensors)
        else:
            inside += (values := passage.values(old))
            passage.taken(old, values, first)
    _lower_scope(step.lowering, step.sequences, body)
    reasons = step.lowering.reasons
    for each in carried:
        if each.start not in reasons and each.end in step.sequences:
            step.sequence(each.start)  # which is refused: it has no stand-in
    if not any(each.start in reasons for each in carried):
        return False
    count = len(carried)
    ends, others = body.outputs[1 : count + 1], body.outputs[count + 1 :]
    outputs = _given_out(step, passages, body, ends)
    body.inputs[:] = inside
    body.outputs[:] = [body.outputs[0], *outputs, *others]
    _replace(step, inputs, passages + [Passage(step)] * (len(node.outputs) - count))
    return True


def _into_loop(step: SequenceNode, carried: Carried) -> Passage:
    """Return how a loop carries a value."""
    start, inside, end, old = carried
    if start not in step.lowering.reasons:
        return Passage(step)
    sequence = step.sequence(start)
    if passed_from(end) is inside:
        step.sequences[inside] = step.sequences[old] = sequence
        return Passage(step, tensors=())
    fact, given = map(step.lowering.sequence, (inside, end))
    if given.part is not None:  # the body may declare more of what it takes than it gives
        fact = replace(fact, part=join_shapes(fact.part, given.part))
    return Passage.packed(step, fact, layout_for(fact, [sequence]))


def _given_out(
    step: SequenceNode, passages: list[Passage], body: ir.Graph, ends: Sequence[ir.Value]
) -> list[ir.Value]:
    """Return the new outputs of a body; a sequence's stand-in is made in it, for one output."""
    point, given = InsertionPoint(step.lowering, step.point.stem, body), dict.fromkeys(body.outputs)
    outputs = []
    for passage, end in zip(passages, ends, strict=True):
        for made in passage.given(end, point):
            is_own = made.graph is body and made.producer() is not None and made not in given
            stays = is_own or passage.fact is None
            outputs.append(made if stays else point.passed_on(made))
            given[made] = None
    return outputs


def _replace(
    step: SequenceNode, inputs: Sequence[ir.Value | None], passages: list[Passage]
) -> None:
    """Replace a node with bodies by one with other inputs and outputs."""
    old = step.node
    made = [passage.values(output) for passage, output in zip(passages, old.outputs, strict=True)]
    step.lowering.edits.retire(old)
    if not any(made):
        return
    attributes = list(old.attributes.values())
    old.attributes.clear()  # its bodies are the new node's
    new = ir.Node(
        old.domain,
        old.op_type,
        inputs,
        attributes,
        outputs=list(chain.from_iterable(made)),
        name=old.name,
        doc_string=old.doc_string,
        metadata_props=dict(old.metadata_props),
    )
    step.ref.scope.insert_before(old, new)
    for passage, output, values in zip(passages, old.outputs, made, strict=True):
        passage.taken(output, values, step.point)


_WITH_BODIES: Mapping[str, Callable[[SequenceNode], bool]] = {
    "If": _lower_if,
    "Loop": _lower_loop,
}
