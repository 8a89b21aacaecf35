"""The split nodes of an ONNX model, and the sequence operators around them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import onnx_ir as ir

from tensorsplit.core.errors import MALFORMED_MODEL, SplitError
from tensorsplit.model.check.cuts import look_at
from tensorsplit.model.check.declared import contradictions
from tensorsplit.model.check.finding import Finding, Report, gathered, of_error
from tensorsplit.model.check.sequences import misfits
from tensorsplit.model.check.splits import oddities
from tensorsplit.model.check.targets import of_ir, of_model, of_node
from tensorsplit.model.graph.nodes import NodeRef, domain_name, is_split, is_vendor_split, walk
from tensorsplit.model.graph.reading import OnnxModel
from tensorsplit.model.infer.analysis import Facts, analyse
from tensorsplit.model.profiles import Profile
from tensorsplit.model.run.program import compile_model


def examine_nodes(read: OnnxModel, profile: Profile | None) -> Report:
    """Look at the split nodes of an ONNX model.

    Args:
        read: The model.
        profile: What is known of the engine that it is for, or None.

    Returns:
        What was found.

    Raises:
        SplitError: TS502 for a model whose nodes can't be put together to a graph.
    """
    model, is_layer = read.model, read.openvino is not None
    facts = analyse(model)
    findings = [of_error(error) for error in _structure(read)]
    refused = _by_node(facts.errors)
    count = 0
    called = {_key(place.node) for place in walk(model)}
    for place in walk(model, "checking"):
        if _is_open(place, called):
            refused.pop(place.path, None)
        findings += refused.pop(place.path, ())
        if is_split(place.node) or is_vendor_split(place.node):
            count += 1
            findings += _of_split(place, facts)
        else:
            findings += misfits(place, facts)
        if profile is not None:
            findings += of_node(profile, place, facts, is_layer=is_layer)
    for rest in refused.values():
        findings += rest
    if profile is not None:
        findings += of_ir(profile) if is_layer else of_model(profile, model)
    return gathered(findings, count)


def _by_node(errors: Iterable[SplitError]) -> dict[str | None, list[Finding]]:
    """The refusals of the analysis, which knows every call of a function, by node."""
    found: dict[str | None, list[Finding]] = {}
    for error in errors:
        found.setdefault(error.node, []).append(of_error(error))
    return found


def _is_open(place: NodeRef, called: set[tuple[str, str, str]]) -> bool:
    """Whether a node takes attributes from the calls of a function that nobody calls."""
    if place.function is None or not any(a.is_ref() for a in place.node.attributes.values()):
        return False
    domain, name, overload = place.function.identifier()
    return (domain_name(domain), name, overload) not in called


def _key(node: ir.Node) -> tuple[str, str, str]:
    return domain_name(node.domain), node.op_type, node.overload


def _of_split(place: NodeRef, facts: Facts) -> Iterator[Finding]:
    cut = look_at(place, facts)
    yield from map(of_error, cut.errors)
    yield from contradictions(cut, facts)
    yield from oddities(cut)


def _structure(read: OnnxModel) -> Iterator[SplitError]:
    """What makes the model not well-formed as a whole, if anything."""
    try:
        compile_model(read)
    except SplitError as error:
        if error.kind is MALFORMED_MODEL:
            yield error
