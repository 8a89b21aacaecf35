"""`check`: everything that can be found out about the splits of a model without running it."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Container, Iterator, Mapping
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING

from onnx import GraphProto, ModelProto

from tensorsplit.core.dimensions import may_be_same
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
    TARGET_REFUSES,
    UNTYPED_OUTPUT,
)
from tensorsplit.model.check.findings import CheckReport, Finding, gathered, of_check, of_error
from tensorsplit.model.check.node_checks import findings_of
from tensorsplit.model.check.target_checks import NEVER_RUNS, TargetChecks
from tensorsplit.model.feeds import DeclaredInput, fits
from tensorsplit.model.graph.building import full_collections_deferred
from tensorsplit.model.graph.calls import called_by, functions_of
from tensorsplit.model.graph.engine_operators import ENGINE_OPERATORS, is_of_engines
from tensorsplit.model.graph.message import NodeList, copied, node_lists
from tensorsplit.model.graph.node_paths import function_label, node_paths
from tensorsplit.model.graph.nodes import NodeRef, bodies, walk
from tensorsplit.model.graph.opsets import domain_name
from tensorsplit.model.graph.split_records import is_split
from tensorsplit.model.graph.tensors import element_name
from tensorsplit.model.infer.analysis import Facts, analyse
from tensorsplit.model.profiles import Profile, Target
from tensorsplit.model.reading import ModelLike, OnnxModel, declared_input, read_model
from tensorsplit.model.validity.message_errors import has_type, message_errors, shadowed_names
from tensorsplit.model.validity.model_errors import BodyOrderError, OrderError, model_errors

if TYPE_CHECKING:
    import onnx_ir

_BROKEN = (MALFORMED_MODEL, EXTERNAL_DATA, UNKNOWN_OPERATOR)
"""Refusals of a model that can be read, and whose fault is a finding."""

_ILL_FORMED = (MALFORMED_MODEL, UNSUPPORTED_NODE)
"""Refusals of a node that nothing could make right but another model."""

_KNOWN_TO_ENGINES = "some engines have it"


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
        ``docs/errors.md`` explains each. Empty if there is nothing to report.

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
            read.as_read  # noqa: B018 - refuses what contradicts itself
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
    model, is_layers = read.model, read.openvino is not None
    facts = analyse(model)
    refused = defaultdict[str | None, list[SplitError]](list)
    for error in facts.errors:
        refused[error.node].append(error)
    findings: list[Finding] = []
    if is_layers and profile is not None and (problem := profile.problem_with_irs()):
        findings.append(of_check(TARGET_REFUSES, "model", problem, "start from the ONNX model"))
        profile = None
    target = None if profile is None else TargetChecks(profile, model, facts, is_layers=is_layers)
    findings += () if target is None else target.of_model()
    ill_formed = [each for each in model_errors(read.as_read) if each.kind in _ILL_FORMED]
    findings += _of_form(ill_formed, profile, read.as_read.graph)
    findings += map(_not_called, facts.uncalled)
    if not is_layers:
        findings += chain(_of_ends(read.original.graph), _of_names(read.lists))
    reported_at = {finding.node for finding in findings}
    places, count = ["graph"], 0
    refs, functions = list(walk(model, "checking")), functions_of(model)
    for ref in refs:
        places += _places(ref)
        if ref.function in facts.uncalled:
            continue
        count += is_split(ref.node)
        findings += _of_ref(
            ref, facts, refused.pop(ref.path, []), is_refused=ref.path in reported_at
        )
        findings += [_of_engines(ref)] if _is_of_engines(ref, functions) else []
        findings += () if target is None else target.of_node(ref)
    findings += () if target is None else target.of_data(refs)
    findings += map(of_error, chain.from_iterable(refused.values()))
    return gathered(findings, count, places)


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
        found = [finding.as_warning(NEVER_RUNS) for finding in found]
    return found


def _of_form(
    errors: list[SplitError], profile: Profile | None, graph: onnx_ir.Graph
) -> Iterator[Finding]:
    """Yield errors of form; as a warning where they are of an order of nodes that the target sorts.

    None sorts the nodes of bodies.
    """
    sorts = "" if profile is None or not errors else profile.sorts
    own = set(node_paths("graph", graph)) if sorts else set[str]()
    for error in errors:
        found = of_error(error)
        is_own = isinstance(error, OrderError) and error.node in own
        is_sorted = is_own or (isinstance(error, BodyOrderError) and sorts == "all")
        if profile is not None and is_sorted:
            found = found.as_warning(f"{profile.name} sorts the nodes")
        yield found


def _is_of_engines(ref: NodeRef, functions: Container[object]) -> bool:
    """Return whether a node calls an operator of engines, not a function of the model."""
    is_own = ref.node.domain == "" and ref.opset != 0 and is_of_engines(ref.op_type, ref.opset)
    return is_own and called_by(ref.node) not in functions


def _of_engines(ref: NodeRef) -> Finding:
    """Return the finding on an operator that engines have where ONNX has none."""
    problem = f"there is no operator {show(ref.op_type)} at opset {ref.opset}"
    fix = "write it with operators of ONNX"
    if ref.op_type in ENGINE_OPERATORS:
        fix = "convert the model to another opset, which writes operators of ONNX in its place"
    refusal = SplitError(UNSUPPORTED_NODE, problem, fix, node=ref.path)
    return of_error(refusal).as_warning(_KNOWN_TO_ENGINES)


def _not_called(function: onnx_ir.Function) -> Finding:
    message, fix = "no node that can run calls the function", "remove it"
    return of_check(NOT_CALLED, function_label(function), message, fix)
