"""`check`: everything that can be found out about the splits of a model without running it."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any

from onnx import GraphProto, ModelProto

from tensorsplit.core.dimensions import is_known, may_be_same
from tensorsplit.core.errors import (
    EXTERNAL_DATA,
    MALFORMED_MODEL,
    UNKNOWN_OPERATOR,
    UNSUPPORTED_NODE,
    SplitError,
    show,
)
from tensorsplit.model import profiles
from tensorsplit.model.check.checks import (
    DECLARED_ENDS,
    NOT_CALLED,
    SHADOWED_NAME,
    TARGET_DEPENDS,
    TARGET_REFUSES,
    TARGET_WRONG,
    UNTYPED_OUTPUT,
)
from tensorsplit.model.check.findings import (
    REWRITE,
    CheckReport,
    Finding,
    gathered,
    of_check,
    of_error,
)
from tensorsplit.model.check.node_checks import findings_of, has_fed_floats
from tensorsplit.model.features import data_features, features_of, layer_features, model_features
from tensorsplit.model.features.from_constants import is_constant
from tensorsplit.model.features.split_features import split_length
from tensorsplit.model.features.vocabulary import seen_feature
from tensorsplit.model.feeds import DeclaredInput, fits
from tensorsplit.model.graph.building import full_collections_deferred
from tensorsplit.model.graph.calculation import (
    FIRST_WITH_BOUNDS_AS_INPUTS,
    FIRST_WITH_INTEGERS_COMPARED,
)
from tensorsplit.model.graph.facts import Tensor
from tensorsplit.model.graph.loops import FIRST_SCAN_WITHOUT_BATCHES
from tensorsplit.model.graph.message import NodeList, copied, node_lists
from tensorsplit.model.graph.nodes import (
    NodeRef,
    bodies,
    domain_name,
    function_label,
    is_split,
    walk,
)
from tensorsplit.model.graph.tensors import element_name
from tensorsplit.model.graph.uses import used_nodes
from tensorsplit.model.infer.analysis import Facts, analyse
from tensorsplit.model.infer.seen import seen
from tensorsplit.model.profiles import Limitation, Profile, Target, must_go
from tensorsplit.model.reading import ModelLike, OnnxModel, declared_input, read_model
from tensorsplit.model.validity.message_errors import has_type, message_errors, shadowed_names
from tensorsplit.model.validity.model_errors import model_errors
from tensorsplit.model.view import View

if TYPE_CHECKING:
    import onnx_ir

_BROKEN = (MALFORMED_MODEL, EXTERNAL_DATA, UNKNOWN_OPERATOR)
"""Refusals of a model that can be read, and whose fault is a finding."""

_ILL_FORMED = (MALFORMED_MODEL, UNSUPPORTED_NODE)
"""Refusals of a node that nothing could make right but another model."""

_NEVER_RUNS = "the code around it never runs"
_NOBODY = "nothing that the model gives out depends on it"


def check(
    model: str | os.PathLike[str] | ModelProto | onnx_ir.Model, target: Target | None = None
) -> list[Finding]:
    """Find what is wrong or odd with the splits of a model, in bodies and functions too.

    Nothing is run, no weights are read, and the model is left as it is.

    Args:
        model: A path (``.onnx``, or an OpenVINO IR ``.xml``), an ``onnx.ModelProto`` or an
            ``onnx_ir.Model``.
        target: ``onnxruntime``, ``openvino`` or ``portable``, or the path of a profile: report as
            well what this engine was measured not to run, or to run wrongly. None for what holds
            everywhere.

    Returns:
        The findings, in the order of the nodes. Those of severity ``error`` have the code of the
        `SplitError` that running or rewriting the model would raise, or a code of their own;
        ``docs/errors.md`` explains each. Empty if there is nothing to say.

    Raises:
        SplitError: TS501, TS503 if it can't be read as a model at all; TS601 for an unknown
            target. A model that can be read but is broken gives findings.

    Example:
        >>> [finding.code for finding in ts.check("uneven.onnx", target="portable")]
        ['TS841']
    """
    return list(examine(model, target).findings)


@full_collections_deferred()
def examine(model: ModelLike, target: str | os.PathLike[str] | None = None) -> CheckReport:
    """Do as `check`, and count the split nodes that were examined."""
    profile = None if target is None else profiles.load(target)
    wrong: list[SplitError] = []
    try:
        read = read_model(model, without_weights=True)
        try:
            read.model  # noqa: B018 - refuses what contradicts itself
        except SplitError:
            wrong += message_errors(read.original, read.lists)
            places = [path for listed in read.lists for path in (listed.path, *listed.paths)]
            rest = _without_wrong_functions(read.original, wrong)
            if next(message_errors(rest, node_lists(rest)), None):  # there is no graph to look at
                return gathered(map(of_error, wrong), 0, places)
            report = _examine(replace(read, original=rest), None)
            others = (each for each in report.findings if each.code != NOT_CALLED.code)
            return gathered([*map(of_error, wrong), *others], report.split_nodes, places)
        return _examine(read, profile)
    except SplitError as error:
        if error.kind not in _BROKEN:
            raise
        return gathered(map(of_error, [*wrong, error]), 0)


def _of_model(
    profile: Profile, features: Mapping[str, object], needed: Mapping[str, object], blocked: str
) -> Iterator[Finding]:
    """Yield the findings on the features of a model, as warnings on those that are not needed."""
    for entry, each in of_features(
        profile, features, "graph", partial(_fix, first=blocked)
    ).items():
        is_needed = needed.get(entry.feature) == features[entry.feature]
        yield each if is_needed else each.as_warning(_NOBODY)


def _needed_features(model: onnx_ir.Model, used: set[onnx_ir.Node]) -> Mapping[str, object]:
    """Return the features of a model without the functions that only unused nodes call."""
    called = {node.op_identifier() for node in used}
    unused = [each for each in model.functions.values() if each.identifier() not in called]
    return model_features(model, unused)


def _without_wrong_functions(message: ModelProto, wrong: list[SplitError]) -> ModelProto:
    """Copy a message without the functions that contradict themselves, and their overloads.

    Then nothing is known of what a call of one gives.
    """
    rest, at = copied(message), [f"{error.node}/" for error in wrong]
    for function in message.functions:
        label = function_label(function)
        if domain_name(function.domain) and any(node.startswith(f"{label}/") for node in at):
            for other in list(rest.functions):
                if (other.domain, other.name) == (function.domain, function.name):
                    rest.functions.remove(other)
    return rest


def _examine(read: OnnxModel, profile: Profile | None) -> CheckReport:
    """Look at the nodes of a model, for the target of a profile if there is one."""
    model, is_layer = read.model, read.openvino is not None
    facts = analyse(model)
    refused = defaultdict[str, list[SplitError]](list)
    for error in facts.errors:
        refused[error.node or "graph"].append(error)
    findings: list[Finding] = []
    blocked = ""
    if profile is not None and is_layer and profile.engine != "openvino":
        problem = f"{profile.name}: the model is an OpenVINO IR, which only OpenVINO reads"
        findings.append(of_check(TARGET_REFUSES, "model", problem, "start from the ONNX model"))
        profile = None
    view = None if profile is None or is_layer else profile.view
    imported = facts if view is None else seen(model, view)
    used = set() if profile is None else used_nodes(model, _knows_before(view, imported))
    if profile is not None and not is_layer:
        features = model_features(model, facts.uncalled)
        blocked = _before_any(profile, features)
        findings += _of_model(profile, features, _needed_features(model, used), blocked)
    findings += (of_error(each) for each in model_errors(model) if each.kind in _ILL_FORMED)
    findings += map(_not_called, facts.uncalled)
    if not is_layer:
        findings += chain(_of_ends(read.original.graph), _of_names(read.lists))
    told_at, limits = {finding.node for finding in findings}, set[Limitation]()
    places, count = ["graph"], 0
    refs = list(walk(model, "checking"))
    for ref in refs:
        places += _places(ref)
        if ref.function in facts.uncalled:
            continue
        count += is_split(ref.node)
        wrong, is_told = refused.pop(ref.path, []), ref.path in told_at
        findings += _of_ref(ref, facts, wrong, is_refused=is_told)
        if profile is None:
            continue
        if is_layer:
            found = of_features(profile, layer_features(ref, facts), ref.path, _fix_layer)
            findings += found.values()
        else:
            first = blocked or _before_lowering(ref, facts)
            fix = partial(_fix, first=first, has_ranks=partial(_has_ranks, ref, facts))
            if has_fed_floats(ref, facts):
                fix = partial(_fix_floats, fix)
            found = of_features(profile, features_of(ref, facts, imported), ref.path, fix)
            why = _NEVER_RUNS if facts.never_runs(ref.path) else _NOBODY
            is_used = ref.node in used and why is _NOBODY
            findings += (each if is_used else each.as_warning(why) for each in found.values())
        limits |= found.keys()
    if profile is not None:
        found = of_features(profile, data_features(refs, facts), "graph", _fix)
        findings += (each for entry, each in found.items() if entry not in limits)
    findings += map(of_error, chain.from_iterable(refused.values()))
    return gathered(findings, count, places)


def _knows_before(view: View | None, seen: Facts) -> Callable[[onnx_ir.Value], bool]:
    """Return what tells whether an engine with a view knows a value before the model runs."""
    return (lambda _: False) if view is None else partial(is_constant, facts=seen)


def _places(ref: NodeRef) -> Iterator[str]:
    """Yield the paths of the function that a node is in, of the node and of the bodies in it."""
    if ref.function is not None:
        yield function_label(ref.function)
    yield ref.path
    yield from (f"{ref.path}.{label}" for label, _ in bodies(ref.node))


def _of_names(lists: list[NodeList]) -> Iterator[Finding]:
    """Yield a finding for each name in a body that a graph around it uses too."""
    for path, name in shadowed_names(lists):
        problem = f"its output {show(name)} has the name of a value around the body"
        yield of_check(SHADOWED_NAME, path, problem, "rename one of the two")


def _of_ends(graph: GraphProto) -> Iterator[Finding]:
    """Yield findings on inputs and outputs without a type, and on defaults of another type."""
    defaults = {held.name: (held.data_type, held.dims) for held in graph.initializer}
    defaults |= {
        held.values.name: (held.values.data_type, held.dims) for held in graph.sparse_initializer
    }
    inputs = {value.name: declared_input(value, False) for value in graph.input}
    for what, values in (("input", graph.input), ("output", graph.output)):
        for value in values:
            whose = f"the {what} {show(value.name)}"
            if not value.type.WhichOneof("value"):
                check = DECLARED_ENDS if what == "input" else UNTYPED_OUTPUT
                yield of_check(check, "graph", f"{whose} has no type", "declare it")
            elif not has_type(value.type):
                problem = f"{whose} has a type that ONNX does not have"
                yield of_check(DECLARED_ENDS, "graph", problem, "correct it")
            elif value.name in defaults:
                element, dims = defaults[value.name]
                entry, name = declared_input(value, True), element_name(element)
                is_tensor = (entry.kind, entry.element_type) == ("tensor", name)
                if not (is_tensor and fits(entry, tuple(dims))):
                    held = "a default" if what == "input" else "an initializer"
                    problem = f"{whose} has {held} of another type or shape than it is declared"
                    yield of_check(DECLARED_ENDS, "graph", problem, "correct one of the two")
            elif what == "output" and not _agree(declared_input(value, False), inputs):
                problem = f"{whose} is an input, which is declared with another type or shape"
                yield of_check(DECLARED_ENDS, "graph", problem, "correct one of the two")


def _agree(one: DeclaredInput, inputs: Mapping[str, DeclaredInput]) -> bool:
    """Return whether an output may be declared as it is, where it is one of the inputs."""
    other = inputs.get(one.name, one)
    is_alike = (one.kind, one.element_type) == (other.kind, other.element_type)
    return is_alike and may_be_same(one.shape, other.shape)


def _of_ref(
    ref: NodeRef, facts: Facts, refused: list[SplitError], *, is_refused: bool
) -> list[Finding]:
    """Return the findings on a node."""
    if ref.opset == 0:  # the missing import is reported already
        refused = [error for error in refused if error.kind is not UNKNOWN_OPERATOR]
    found = list(map(of_error, refused))
    found += findings_of(ref, facts, is_refused=is_refused or bool(refused))
    if facts.never_runs(ref.path):
        found = [finding.as_warning(_NEVER_RUNS) for finding in found]
    return found


def _not_called(function: onnx_ir.Function) -> Finding:
    message, fix = "no node that can run calls the function", "remove it"
    return of_check(NOT_CALLED, function_label(function), message, fix)


_COMMAND = "tensorsplit "
"""What an advice holds that names a command, which refuses a model as long as it can't do that."""

_LOWER = f"{REWRITE}tensorsplit check MODEL --for {{engine}} --fix"
_CONVERT = "(tensorsplit convert MODEL --opset 13 -o MODEL)"


def _before_any(profile: Profile, features: Mapping[str, object]) -> str:
    """Say what has to be done before a model can be lowered; empty for most."""
    names = {entry.feature for entry in profile.about(features)}
    return next((_REFUSED[name] for name in _ENDS if name in names), "")


def _before_lowering(ref: NodeRef, facts: Facts) -> str:
    """Say what has to be done before a node can be lowered; empty for most."""
    if ref.op_type == "Loop" and ref.opset < FIRST_WITH_INTEGERS_COMPARED:
        first = FIRST_WITH_INTEGERS_COMPARED
        why = f"as integers can't be compared before opset {first}"
        return f"convert it to opset 13, {why} {_CONVERT}"
    if ref.op_type == "Scan" and ref.opset < FIRST_SCAN_WITHOUT_BATCHES:
        return "write it as a Scan of opset 9 or newer, which has no batches"
    is_known_at_all = not is_split(ref.node) or is_known(split_length(facts.split(ref).plan))
    if ref.opset >= FIRST_WITH_BOUNDS_AS_INPUTS or is_known_at_all:
        return ""
    why = f"as lengths can't be computed before opset {FIRST_WITH_BOUNDS_AS_INPUTS}"
    return f"convert it to opset 13, {why} {_CONVERT}"


def _has_ranks(ref: NodeRef, facts: Facts) -> bool:
    """Return whether the rank of each tensor that a node reads or gives is known."""
    ends = [end for end in (*ref.node.inputs, *ref.node.outputs) if end is not None]
    known = map(facts.of, ends)
    return all(fact.shape is not None for fact in known if isinstance(fact, Tensor))


def _fix_floats(fix: Callable[..., str], profile: Profile, entry: Limitation) -> str:
    """Return the advice for a limitation on a split whose lengths are floats until it runs."""
    advice: str = fix(profile, entry)
    if _COMMAND not in advice:
        return advice
    return f"give the lengths as the attribute, then {advice}"


_REFUSED = {
    "sequence_input": "have the model take tensors, and make the sequence in it",
    "sequence_output": "have the model give out tensors, for example with ConcatFromSequence",
    "strings_in_loop": "keep the strings out of the loop",
}
"""What to do about features for which lowering refuses a model."""

_ENDS = ("sequence_input", "sequence_output")
"""Features of a model that can't be lowered as long as it has them."""

_ELSEWHERE = "run it in another engine, if data without elements matter"
_CHECKED = "lower it for portable, where the model itself checks the lengths, if they may not fit"

_LEFT = {
    "overridable_initializer": "take it off the graph's inputs if it is a constant",
    "version": f"convert it to opset 13 {_CONVERT}",
    "if_in_scan": "move the If out of the Scan",
    "unused": "use a part of it, or leave it out",
    "empty_in_loop": _ELSEWHERE,
    "calculated_from_nothing": _ELSEWHERE,
    "expanded_from_nothing": _ELSEWHERE,
    "expanded_to_nothing": _ELSEWHERE,
    "top_of_none": _ELSEWHERE,
    "unranked_in_scan": "declare the shapes of what the body gives",
    "unknown_rank": "give the axes or the shape as a constant, or declare how many there are",
    "uncounted_axes": "declare how many axes or counts there are, or give them as a constant",
    "constant_lengths_on_dynamic_axis": _CHECKED,
    "equal_parts_on_dynamic_axis": _CHECKED,
    "empty_part": "leave the part out",
    "lost_dimension": "declare the dimension, or run it in another engine, if such data matter",
    "long_slice": "use Split in its place, or run it in another engine",
    "runtime_lengths": "feed no length of 2^31 or more, or give the lengths as a constant",
    "wide_values": "run it in another engine, if these values matter",
}
"""What to do about features where lowering leaves them as they are."""


_WITH_RANKS = frozenset({"strings_gathered", "used_result"})
"""Features that lowering removes only where ranks are known."""


def _fix(
    profile: Profile,
    entry: Limitation,
    first: str = "",
    *,
    has_ranks: Callable[[], bool] = lambda: True,
) -> str:
    """Return the advice for a limitation: lowering only where lowering removes it.

    What has to be done before comes first.
    """
    if entry.feature in _WITH_RANKS and not has_ranks():
        first = first or "give its tensors a known rank"
    is_about_type = entry.feature == "element_type" and not entry.operators
    is_lowered = entry.feature not in _REFUSED and not is_about_type
    if must_go(entry) and is_lowered:
        lower = _LOWER.format(engine=profile.engine)
        return f"{first}, then {lower}" if first else lower
    return (_REFUSED | _LEFT).get(entry.feature, "use another element type, or another engine")


def _fix_layer(profile: Profile, entry: Limitation) -> str:
    """Return the advice for a limitation on a layer of an IR."""
    if must_go(entry):
        return f"rewrite the layer: tensorsplit lower MODEL --for {profile.engine} -o OUT"
    return _fix(profile, entry)


_AFFECTED = {
    "all": "",
    "some": " (for some inputs)",
    "uses": " (in some uses)",
    "edge": " (for rare inputs only)",
    "illegal": " (for inputs that the standard refuses)",
    "values": " (for some values only)",
}
"""How a message says for which inputs something holds."""


def of_features(
    profile: Profile,
    features: Mapping[str, Any],
    node: str,
    fix: Callable[[Profile, Limitation], str] = lambda *_: "",
) -> dict[Limitation, Finding]:
    """Return the engine's limitations on a node or model, each with its finding and advice."""
    found: dict[Limitation, Finding] = {}
    for entry in profile.about(features):
        check = TARGET_WRONG if entry.verdict in ("wrong", "crash") else TARGET_REFUSES
        if entry.extent != "all":
            check = TARGET_DEPENDS
        seen = seen_feature(entry.feature, features[entry.feature])
        this = f"this model {seen}" if node == "graph" else f"this node {seen}"
        message = f"{profile.says(entry)}; {this}{_AFFECTED[entry.extent]}"
        operator = features.get("version")
        found[entry] = of_check(check, node, message, fix(profile, entry), operator=operator)
    return found
