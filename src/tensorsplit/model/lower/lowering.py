"""The steps of lowering, in order."""

from __future__ import annotations

import onnx_ir as ir

from tensorsplit.core.errors import MALFORMED_MODEL, SplitError, show
from tensorsplit.core.records.openvino import DOMAIN
from tensorsplit.model.features import (
    SEQUENCE_OPERATORS,
    features_of,
    model_features,
)
from tensorsplit.model.graph.building import Edits, Names, collector_paused
from tensorsplit.model.graph.nodes import (
    NodeRef,
    bodies,
    domain_name,
    is_split,
    is_vendor_split,
    walk,
)
from tensorsplit.model.graph.progress import counted
from tensorsplit.model.infer.analysis import Facts, analyse
from tensorsplit.model.lower.branches import lower_if
from tensorsplit.model.lower.clusters import Clusters, must_go
from tensorsplit.model.lower.context import Context, refusal
from tensorsplit.model.lower.control import Control
from tensorsplit.model.lower.functions import inline
from tensorsplit.model.lower.loops import lower_loop
from tensorsplit.model.lower.maps import expand
from tensorsplit.model.lower.outputs import give_out
from tensorsplit.model.lower.report import Change, Report
from tensorsplit.model.lower.sequences import HANDLERS
from tensorsplit.model.lower.splits import lower_split
from tensorsplit.model.lower.step import Reps, Step
from tensorsplit.model.profiles import Entry, Profile, load


@collector_paused()
def lower_graph(model: ir.Model, target: str, version: str | None = None) -> Report:
    """Lower a model in place.

    Args:
        model: The model, which is changed; after a refusal it may be half changed.
        target: An engine, or ``portable``.
        version: The version of the engine; the installed one if None.

    Returns:
        What was changed, and what could not be.

    Raises:
        SplitError: As `lower`.
    """
    profile = load(target, version)
    report = Report(profile.name)
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


def _lower(model: ir.Model, profile: Profile, report: Report) -> None:
    _check_ends(model, profile, report)
    facts = analyse(model, strict=True)
    if inline(model, facts, profile, report):
        facts = analyse(model, strict=True)
    if _expand_maps(model, facts, profile, report):
        facts = analyse(model, strict=True)
    Lowering(model, facts, profile, report).run()


def _check_ends(model: ir.Model, profile: Profile, report: Report) -> None:
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


def _expand_maps(model: ir.Model, facts: Facts, profile: Profile, report: Report) -> bool:
    """Replace every SequenceMap that the target can't run by a Loop; whether there were any."""
    found = [
        place
        for place in walk(model)
        if place.node.op_type == "SequenceMap" and domain_name(place.node.domain) == ""
    ]
    needed = {
        place.node: entry
        for place in found
        for entry in profile.about(features_of(place, facts))
        if must_go(entry)
    }
    names, edits = Names(model) if needed else None, Edits()
    for place in reversed(found):
        if names is not None and place.node in needed:
            expand(place, facts, names, edits)
            note = needed[place.node].note
            report.changes.append(Change(place.path, "SequenceMap", "Loop", note))
    edits.finish()
    return bool(needed)


_WITH_BODIES = {"If": lower_if, "Loop": lower_loop}


class Lowering:
    """One pass over a model whose facts are known.

    Args:
        model: The model.
        facts: What is known of its values.
        profile: What the target can't do.
        report: Where to say what was done.
    """

    def __init__(self, model: ir.Model, facts: Facts, profile: Profile, report: Report) -> None:
        self.context = Context(model, facts, profile, report)
        self.clusters = Clusters(model, facts, profile)
        self.reps: Reps = {}
        self._had_vendor_splits = False
        self._opsets = {
            domain_name(domain): version for domain, version in model.opset_imports.items()
        }

    def run(self) -> None:
        """Lower the main graph and its bodies; functions that need it were inlined."""
        graph = self.context.model.graph
        self._walk(graph, "graph")
        for value in tuple(graph.outputs):
            if value in self.reps:
                give_out(self.context, value, self.reps[value])
        self.context.edits.finish()
        self._drop_vendor_import()

    def _walk(self, graph: ir.Graph, path: str) -> None:
        nodes, is_main = tuple(graph), graph is self.context.model.graph
        for index, node in enumerate(counted("lowering", nodes) if is_main else nodes):
            here = f"{path}/{node.name or f'{node.op_type}[{index}]'}"
            place = NodeRef(node, here, self._opsets, graph, None)
            try:
                self._node(place)
            except SplitError as error:
                raise error.located(node=here) from None

    def _node(self, place: NodeRef) -> None:
        node = place.node
        own = domain_name(node.domain) == ""
        features = features_of(place, self.context.facts)
        entries = list(self.context.profile.about(features))
        self._note(place, entries)
        reason = self.clusters.reason(node) if own else None
        if next(bodies(node), None) is not None:
            if self._bodies(place) and reason is not None:
                self.context.changed(place, "tensors in place of sequences", reason.note)
        elif reason is not None and node.op_type in HANDLERS:
            self._sequence(place, reason)
        elif reason is not None:
            raise refusal(
                f"a sequence goes through {node.op_type}, and sequences can't stay ({reason.note})",
                place,
            )
        elif (own and is_split(node) and node.op_type not in SEQUENCE_OPERATORS) or (
            is_vendor_split(node)
        ):
            wanted = {entry.feature: entry.note for entry in entries if must_go(entry)}
            if wanted:
                lower_split(self.context, place, wanted)
                self._had_vendor_splits |= not own

    def _bodies(self, place: NodeRef) -> bool:
        """Lower a node with bodies; whether it was replaced by another one."""
        node = place.node
        control = Control(place, self.context, self.clusters, self.reps, self._walk)
        own = domain_name(node.domain) == ""
        if own and node.op_type in _WITH_BODIES:
            return _WITH_BODIES[node.op_type](control)
        for label, body in bodies(node):
            self._walk(body, f"{place.path}.{label}")
        if any(map(self.clusters.goes, (*node.inputs, *node.outputs))):
            raise refusal(f"a sequence goes through {node.op_type}", place)
        return False

    def _sequence(self, place: NodeRef, reason: Entry) -> None:
        step = Step(self.context, place, self.reps)
        result = HANDLERS[place.node.op_type](step)
        if isinstance(result, str):
            became = result
        else:
            self.reps[place.node.outputs[0]] = result
            became = "a tensor and where its parts start" if result.cut else "the parts themselves"
        self.context.changed(place, became, reason.note)
        self.context.edits.retire(place.node)

    def _note(self, place: NodeRef, entries: list[Entry]) -> None:
        profile = self.context.profile
        for entry in entries:
            if entry.feature == "element_type" and not entry.operators:
                raise refusal(f"{profile.name} can't hold the data: {entry.note}", place)
            if not must_go(entry):
                self.context.report.note(f"{profile.name}: {entry.note}")

    def _drop_vendor_import(self) -> None:
        """Leave no import behind of a domain whose nodes are all gone."""
        if not self._had_vendor_splits:
            return
        used = {place.node.domain for place in walk(self.context.model)}
        if DOMAIN not in used:
            self.context.model.graph.opset_imports.pop(DOMAIN, None)
