"""The steps of lowering, in order."""

from __future__ import annotations

from collections.abc import Iterable

import onnx_ir as ir

from tensorsplit.core.errors import MALFORMED_MODEL, SplitError, show
from tensorsplit.core.records.openvino import DOMAIN
from tensorsplit.model.features import (
    SEQUENCE_OPERATORS,
    features_of,
    is_sequence,
    model_features,
)
from tensorsplit.model.graph.building import Edits, Names, collector_paused
from tensorsplit.model.graph.nodes import (
    NodeRef,
    bodies,
    domain_name,
    domain_opsets,
    is_onnx_split,
    is_vendor_split,
    node_path,
    walk,
)
from tensorsplit.model.graph.progress import counted
from tensorsplit.model.infer.analysis import Facts, analyse
from tensorsplit.model.lower.context import (
    Context,
    LoweredNode,
    LoweringReport,
    must_go,
    refusal,
)
from tensorsplit.model.lower.inlining import inline
from tensorsplit.model.lower.sequence_bodies import (
    ControlFlow,
    expand_map,
    give_out,
    lower_if,
    lower_loop,
)
from tensorsplit.model.lower.sequence_nodes import (
    HANDLERS,
    LoweredSequences,
    SequenceNode,
)
from tensorsplit.model.lower.split_nodes import lower_split
from tensorsplit.model.profiles import Limitation, Profile, load


@collector_paused()
def lower_graph(model: ir.Model, target: str, version: str | None = None) -> LoweringReport:
    """Lower a model in place; after a refusal it may be half changed.

    Args:
        model: The model.
        target: An engine, or ``portable``.
        version: The version of the engine; the installed one if None.

    Raises:
        SplitError: As `lower`.
    """
    profile = load(target, version)
    report = LoweringReport(profile.name)
    try:
        _lower(model, profile, report)
    except SplitError:
        raise
    except Exception as error:  # graphs contradict themselves in more ways than can be listed
        raise SplitError(
            MALFORMED_MODEL,
            f"the graph can't be rewritten ({type(error).__name__}: {show(str(error))})",
            "repair the model",
            node="graph",
        ) from error
    return report


def _lower(model: ir.Model, profile: Profile, report: LoweringReport) -> None:
    _check_ends(model, profile, report)
    facts = analyse(model, strict=True)
    if inline(model, facts, profile, report):
        facts = analyse(model, strict=True)
    if _expand_maps(model, facts, profile, report):
        facts = analyse(model, strict=True)
    Lowering(model, facts, profile, report).run()


def _check_ends(model: ir.Model, profile: Profile, report: LoweringReport) -> None:
    """What of the model as a whole the target can't take."""
    features = model_features(model)
    for entry in profile.about(features):
        if entry.feature in ("sequence_input", "sequence_output"):
            what = entry.feature.replace("sequence_", "a sequence is an ")
            raise refusal(
                f"{what} of the model, which {profile.name} can't take ({entry.note})",
                None,
                "make it a tensor, for example with ConcatFromSequence",
            )
        if not must_go(entry):
            report.note(f"{profile.name}: {entry.note}")


def _expand_maps(model: ir.Model, facts: Facts, profile: Profile, report: LoweringReport) -> bool:
    """Replace every SequenceMap that the target can't run by a Loop; whether there were any."""
    found = [
        ref
        for ref in walk(model)
        if ref.op_type == "SequenceMap" and domain_name(ref.node.domain) == ""
    ]
    needed = {
        ref.node: entry
        for ref in found
        for entry in profile.about(features_of(ref, facts))
        if must_go(entry)
    }
    if not needed:
        return False
    names, edits = Names(model), Edits()
    for ref in reversed(found):
        if ref.node in needed:
            expand_map(ref, facts, names, edits)
            note = needed[ref.node].note
            report.changes.append(LoweredNode(ref.path, "SequenceMap", "Loop", note))
    edits.finish()
    return True


class SequenceGroups:
    """The sequences of a model, in groups that can only be lowered together.

    Attributes:
        reasons: Why each group must go, by its representative.
    """

    def __init__(self, model: ir.Model, facts: Facts, profile: Profile) -> None:
        self._facts = facts
        self._parent: dict[ir.Value, ir.Value] = {}
        self.reasons: dict[ir.Value, Limitation] = {}
        found: list[tuple[ir.Value, Limitation]] = []
        for ref in walk(model):
            values = self._values(ref.node)
            self._join(values)
            if values:
                self._join_bodies(ref.node)
                needed = next(filter(must_go, profile.about(features_of(ref, facts))), None)
                if needed is not None:
                    found.append((values[0], needed))
        for value, entry in found:
            self.reasons.setdefault(self._root(value), entry)

    def reason(self, node: ir.Node) -> Limitation | None:
        """Why the sequences of a node must go; None if they may stay."""
        found = (self.reasons.get(self._root(value)) for value in self._values(node))
        return next((entry for entry in found if entry is not None), None)

    def goes(self, value: ir.Value | None) -> bool:
        """Whether a value is a sequence that must go."""
        return value is not None and value in self._parent and self._root(value) in self.reasons

    def _values(self, node: ir.Node) -> list[ir.Value]:
        values = (*node.inputs, *node.outputs)
        return [value for value in values if value is not None and is_sequence(value, self._facts)]

    def _join_bodies(self, node: ir.Node) -> None:
        """What a body takes in and gives out is the same sequence as outside of it."""
        for _, body in bodies(node):
            carried = len(node.inputs) - 2
            pairs: list[tuple[ir.Value | None, ir.Value | None]] = []
            if node.op_type == "If":
                pairs += zip(node.outputs, body.outputs, strict=False)
            elif node.op_type == "Loop":
                pairs += zip(node.inputs[2:], body.inputs[2:], strict=False)
                pairs += zip(node.outputs[:carried], body.outputs[1:], strict=False)
                pairs += zip(node.outputs[:carried], node.inputs[2:], strict=False)
            for left, right in pairs:
                if left is not None and right is not None and is_sequence(left, self._facts):
                    self._join([left, right])

    def _join(self, values: Iterable[ir.Value]) -> None:
        roots = [self._root(value) for value in values]
        for root in roots[1:]:
            self._parent[self._root(root)] = self._root(roots[0])

    def _root(self, value: ir.Value) -> ir.Value:
        self._parent.setdefault(value, value)
        while self._parent[value] is not value:
            self._parent[value] = self._parent[self._parent[value]]
            value = self._parent[value]
        return value


_WITH_BODIES = {"If": lower_if, "Loop": lower_loop}


class Lowering:
    """One pass over a model whose facts are known."""

    def __init__(
        self, model: ir.Model, facts: Facts, profile: Profile, report: LoweringReport
    ) -> None:
        self.context = Context(model, facts, profile, report)
        self.groups = SequenceGroups(model, facts, profile)
        self.sequences: LoweredSequences = {}
        self._had_vendor_splits = False
        self._opsets = domain_opsets(model.opset_imports)

    def run(self) -> None:
        """Lower the main graph and its bodies; functions that need it were inlined."""
        graph = self.context.model.graph
        self._walk(graph, "graph")
        for value in tuple(graph.outputs):
            if value in self.sequences:
                give_out(self.context, value, self.sequences[value])
        self.context.edits.finish()
        self._drop_vendor_import()

    def _walk(self, graph: ir.Graph, path: str) -> None:
        nodes, is_main = tuple(graph), graph is self.context.model.graph
        for index, node in enumerate(counted("lowering", nodes) if is_main else nodes):
            here = node_path(path, node, index)
            ref = NodeRef(node, here, self._opsets, graph, None)
            try:
                self._node(ref)
            except SplitError as error:
                raise error.located(node=here) from None

    def _node(self, ref: NodeRef) -> None:
        node = ref.node
        own = domain_name(node.domain) == ""
        features = features_of(ref, self.context.facts)
        entries = list(self.context.profile.about(features))
        self._note(ref, entries)
        reason = self.groups.reason(node) if own else None
        if next(bodies(node), None) is not None:
            if self._bodies(ref) and reason is not None:
                self.context.changed(ref, "tensors in place of sequences", reason.note)
        elif reason is not None and node.op_type in HANDLERS:
            self._sequence(ref, reason)
        elif reason is not None:
            raise refusal(
                f"a sequence goes through {node.op_type}, and sequences can't stay ({reason.note})",
                ref,
            )
        elif (own and is_onnx_split(node) and node.op_type not in SEQUENCE_OPERATORS) or (
            is_vendor_split(node)
        ):
            wanted = {entry.feature: entry.note for entry in entries if must_go(entry)}
            if wanted:
                lower_split(self.context, ref, wanted)
                self._had_vendor_splits |= not own

    def _bodies(self, ref: NodeRef) -> bool:
        """Lower a node with bodies; whether it was replaced by another one."""
        node = ref.node
        control = ControlFlow(self.context, ref, self.sequences, self.groups.goes, self._walk)
        own = domain_name(node.domain) == ""
        if own and node.op_type in _WITH_BODIES:
            return _WITH_BODIES[node.op_type](control)
        for label, body in bodies(node):
            self._walk(body, f"{ref.path}.{label}")
        if any(map(self.groups.goes, (*node.inputs, *node.outputs))):
            raise refusal(f"a sequence goes through {node.op_type}", ref)
        return False

    def _sequence(self, ref: NodeRef, reason: Limitation) -> None:
        step = SequenceNode(self.context, ref, self.sequences)
        result = HANDLERS[ref.op_type](step)
        if isinstance(result, str):
            became = result
        else:
            self.sequences[ref.node.outputs[0]] = result
            became = (
                "a tensor and where its parts start" if result.packed else "the parts themselves"
            )
        self.context.changed(ref, became, reason.note)
        self.context.edits.retire(ref.node)

    def _note(self, ref: NodeRef, entries: list[Limitation]) -> None:
        profile = self.context.profile
        for entry in entries:
            if entry.feature == "element_type" and not entry.operators:
                raise refusal(f"{profile.name} can't hold the data: {entry.note}", ref)
            if not must_go(entry):
                self.context.report.note(f"{profile.name}: {entry.note}")

    def _drop_vendor_import(self) -> None:
        """Leave no import behind of a domain whose nodes are all gone."""
        if not self._had_vendor_splits:
            return
        used = {ref.node.domain for ref in walk(self.context.model)}
        if DOMAIN not in used:
            self.context.model.graph.opset_imports.pop(DOMAIN, None)
