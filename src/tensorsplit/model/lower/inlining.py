"""Functions of the model put in the place of their calls."""

from __future__ import annotations

import onnx
import onnx_ir as ir
from onnx_ir.passes.common import InlinePass

from tensorsplit.core.arithmetic import dimension, fitting
from tensorsplit.core.records import in_force
from tensorsplit.core.rules import equal
from tensorsplit.model.features import features_of, is_sequence
from tensorsplit.model.graph.binding import bind
from tensorsplit.model.graph.building import Names
from tensorsplit.model.graph.calculation import Calculation
from tensorsplit.model.graph.nodes import NodeRef, domain_name, domain_opsets, is_onnx_split, walk
from tensorsplit.model.infer.analysis import Facts
from tensorsplit.model.lower.context import LoweredNode, LoweringReport, must_go, refusal
from tensorsplit.model.profiles import Profile


def inline(model: ir.Model, facts: Facts, profile: Profile, report: LoweringReport) -> bool:
    """Inline the functions for which the target needs it; whether any was.

    Raises:
        SplitError: TS513 for a function that calls itself, or that is written for another opset
            and has an operator that differs at the model's opset.
    """
    wanted = _wanted(model, facts, profile)
    if not wanted:
        return False
    for function in model.functions.values():
        if function.identifier() in wanted:
            _to_opset(model, function)
    try:
        InlinePass(lambda function: function.identifier() in wanted)(model)
    except Exception as error:
        raise refusal(f"a function can't be inlined: {error}", None) from error
    for key, reason in wanted.items():
        domain, name, _ = key
        report.changes.append(LoweredNode(f"function {domain}::{name}", name, "inlined", reason))
    return True


def _wanted(model: ir.Model, facts: Facts, profile: Profile) -> dict[ir.OperatorIdentifier, str]:
    """The functions to inline, each with the reason."""
    whole = next((e for e in profile.entries if e.feature == "local_function" and must_go(e)), None)
    if whole is not None:
        return {function.identifier(): whole.note for function in model.functions.values()}
    wanted: dict[ir.OperatorIdentifier, str] = {}
    opset = domain_opsets(model.opset_imports).get("", 0)
    other = next((e for e in profile.entries if e.feature == "function_opset"), None)
    for ref in walk(model):
        function = ref.function
        if function is None:
            continue
        entry = next(filter(must_go, profile.about(features_of(ref, facts))), None)
        if entry is None and ref.opset != opset and is_onnx_split(ref.node):
            entry = other
        if entry is not None:
            wanted.setdefault(function.identifier(), entry.note)
    for function in model.functions.values():
        ends = (*function.inputs, *function.outputs)
        if any(is_sequence(value, facts) for value in ends) and wanted:
            wanted.setdefault(function.identifier(), "it passes a sequence on")
    return wanted


def _to_opset(model: ir.Model, function: ir.Function) -> None:
    """Move a function to the model's opset, where its operators mean the same there."""
    opset = domain_opsets(model.opset_imports).get("", 0)
    here = domain_opsets(function.opset_imports).get("", opset)
    if here == opset:
        return
    for ref in walk(model):
        if ref.function is function and domain_name(ref.node.domain) == "":
            _check_same(model, ref, opset)
    for domain in list(function.opset_imports):
        if domain_name(domain) == "":
            function.opset_imports[domain] = opset


def _check_same(model: ir.Model, ref: NodeRef, opset: int) -> None:
    """Refuse a node that means something else at another opset; a Split is rewritten."""
    node = ref.node
    if is_onnx_split(node):
        if in_force(node.op_type, ref.opset) is not in_force(node.op_type, opset):
            _rewrite(model, ref, opset)
        return
    try:
        versions = {
            onnx.defs.get_schema(node.op_type, at, "").since_version for at in (ref.opset, opset)
        }
    except onnx.defs.SchemaError:
        versions = {ref.opset, opset}
    if len(versions) > 1:
        raise refusal(
            f"the function is written for opset {ref.opset}, the model for {opset}, and the"
            " operator differs between the two",
            ref,
            "convert the model to one opset first",
        )


def _rewrite(model: ir.Model, ref: NodeRef, opset: int) -> None:
    """Give a Split without lengths, which are equal parts, lengths that are calculated."""
    node, target = ref.node, in_force(ref.node.op_type, opset)
    intent = bind(node, ref.opset)
    if intent.rule is not equal or intent.given is None:
        raise refusal("the function's Split belongs to another opset", ref, "convert the model")
    if target.absent is equal:
        return
    make = Calculation(Names(model), opset, node.name or node.op_type)
    data = node.inputs[0]
    dim = dimension(data, make.axis_of(node))
    lengths = equal(dim, intent.given)
    fit = make.make(fitting(dim, lengths, len(node.outputs), checks_sum=False))
    ref.scope.insert_before(node, make.nodes)
    node.resize_inputs(2)
    node.replace_input_with(1, fit)
