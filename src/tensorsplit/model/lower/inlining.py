"""Functions of the model put in the place of their calls."""

from __future__ import annotations

import onnx
import onnx_ir as ir
from onnx_ir.passes.common import InlinePass

from tensorsplit.core.arithmetic import dimension, fitting
from tensorsplit.core.records import in_force
from tensorsplit.core.rules import equal
from tensorsplit.model.graph.binding import bind
from tensorsplit.model.graph.nodes import NodeRef, domain_name, is_onnx_split
from tensorsplit.model.lower.state import (
    InsertionPoint,
    LoweredNode,
    Lowering,
    must_go,
    refusal,
)


def inline(lowering: Lowering) -> bool:
    """Inline the functions for which the target needs it; whether any was.

    Raises:
        SplitError: TS513 for a function that calls itself, or that is written for another opset
            and has an operator that differs at the model's opset.
    """
    model, wanted = lowering.model, _wanted(lowering)
    if not wanted:
        return False
    for ref in lowering.refs.values():
        is_inlined = ref.function is not None and ref.function.identifier() in wanted
        if is_inlined and ref.opset != lowering.opset and domain_name(ref.node.domain) == "":
            _to_opset(lowering, ref)
    for key in wanted:
        imports = model.functions[key].opset_imports
        imports.update((domain, lowering.opset) for domain in imports if not domain_name(domain))
    try:
        InlinePass(lambda function: function.identifier() in wanted)(model)
    except Exception as error:
        raise refusal(f"a function can't be inlined: {error}", None) from error
    for key, reason in wanted.items():
        model.functions.pop(key, None)  # the pass leaves those that nobody calls
        domain, name, _ = key
        path = f"function {domain}::{name}"
        lowering.report.changes.append(LoweredNode(path, name, "inlined", reason))
    return True


def _wanted(lowering: Lowering) -> dict[ir.OperatorIdentifier, str]:
    """The functions to inline, each with the reason.

    More of them may be wanted after that: a sequence that can't stay may get into others.
    """
    functions, entries = lowering.model.functions, lowering.profile.entries
    whole = next((e for e in entries if e.feature == "local_function" and must_go(e)), None)
    if whole is not None:
        return dict.fromkeys(functions, whole.note)
    other = next((e for e in entries if e.feature == "function_opset"), None)
    wanted: dict[ir.OperatorIdentifier, str] = {}
    for ref in lowering.refs.values():
        node, function = ref.node, ref.function
        entry = lowering.reason(node)
        if entry is None and ref.opset != lowering.opset and is_onnx_split(node):
            entry = other
        if function is not None and entry is not None:
            wanted.setdefault(function.identifier(), entry.note)
        ends = (*node.inputs, *node.outputs)
        if node.op_identifier() in functions and any(end in lowering.reasons for end in ends):
            wanted.setdefault(node.op_identifier(), "it passes a sequence on")
    return wanted


def _to_opset(lowering: Lowering, ref: NodeRef) -> None:
    """Refuse a node that means something else at the model's opset; a Split is rewritten."""
    node, opset = ref.node, lowering.opset
    if is_onnx_split(node):
        if in_force(node.op_type, ref.opset) is not in_force(node.op_type, opset):
            _rewrite(lowering, ref)
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


def _rewrite(lowering: Lowering, ref: NodeRef) -> None:
    """Give a Split without lengths, which are equal parts, lengths that are calculated."""
    node, opset = ref.node, lowering.opset
    intent = bind(node, ref.opset)
    if intent.rule is not equal or intent.given is None:
        raise refusal("the function's Split belongs to another opset", ref, "convert the model")
    if in_force(node.op_type, opset).absent is equal:
        return
    make = InsertionPoint(lowering, node.name or node.op_type, ref.scope, node)
    dim = dimension(node.inputs[0], make.axis_of(node))
    lengths = equal(dim, intent.given)
    fit = make.make(fitting(dim, lengths, len(node.outputs), checks_sum=False))
    node.resize_inputs(2)
    node.replace_input_with(1, fit)
