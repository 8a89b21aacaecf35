"""Functions of the model put in the place of their calls."""

from __future__ import annotations

from collections.abc import Container

import onnx
import onnx_ir as ir

from tensorsplit.core.arithmetic import dimension, fitting
from tensorsplit.core.records import in_force
from tensorsplit.core.rules import equal
from tensorsplit.model.graph import calls
from tensorsplit.model.graph.binding import bind
from tensorsplit.model.graph.nodes import NodeRef, domain_name, is_onnx_split
from tensorsplit.model.lower.state import (
    InsertionPoint,
    LoweredNode,
    Lowering,
    at,
    refusal,
)
from tensorsplit.model.profiles import must_go


def inline(lowering: Lowering) -> bool:
    """Inline the functions for which the target needs it; whether any was."""
    model, wanted = lowering.model, _wanted(lowering)
    if not wanted:
        return False
    if calls.specialise(model, lambda ref: _is_rewritten(lowering, ref, wanted)):
        lowering.look()
        wanted = _wanted(lowering)
    for ref in lowering.refs.values():
        is_inlined = ref.function is not None and ref.function.identifier() in wanted
        if is_inlined and ref.opset != lowering.opset and domain_name(ref.node.domain) == "":
            with at(ref):
                _to_opset(lowering, ref)
    for key in wanted:
        imports = model.functions[key].opset_imports
        imports.update({name: lowering.opset for name in imports if domain_name(name) == ""})
    calls.inline(model, wanted)
    for key, reason in wanted.items():
        domain, name, _ = key
        path = f"function {domain}::{name}"
        lowering.report.changes.append(LoweredNode(path, name, "inlined", reason))
    return True


def _is_rewritten(
    lowering: Lowering, ref: NodeRef, wanted: Container[ir.OperatorIdentifier]
) -> bool:
    """Whether a split node of a function gets lengths that are calculated from its axis."""
    is_inlined = ref.function is not None and ref.function.identifier() in wanted
    return is_inlined and ref.opset != lowering.opset and is_onnx_split(ref.node)


def _wanted(lowering: Lowering) -> dict[ir.OperatorIdentifier, str]:
    """The functions to inline, each with the reason.

    More of them may be wanted after that: a sequence that can't stay may get into others.
    """
    functions = lowering.model.functions
    whole = lowering.limitation("local_function")
    if whole is not None and must_go(whole):
        return dict.fromkeys(functions, lowering.profile.says(whole))
    other = lowering.limitation("function_opset")
    wanted: dict[ir.OperatorIdentifier, str] = {}
    for ref in lowering.refs.values():
        node, function = ref.node, ref.function
        entry = lowering.reason(node)
        if entry is None and ref.opset != lowering.opset and is_onnx_split(node):
            entry = other
        if function is not None and entry is not None:
            wanted.setdefault(function.identifier(), lowering.profile.says(entry))
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
        schemas = (onnx.defs.get_schema(node.op_type, each, "") for each in (ref.opset, opset))
        is_same = len({schema.since_version for schema in schemas}) == 1
    except onnx.defs.SchemaError:
        is_same = False
    if not is_same:
        raise refusal(
            f"the function is written for opset {ref.opset}, the model for {opset}, and the"
            " operator differs between the two",
            "convert the model to one opset first",
        )


def _rewrite(lowering: Lowering, ref: NodeRef) -> None:
    """Give a Split without lengths, which are equal parts, lengths that are calculated."""
    node, opset = ref.node, lowering.opset
    intent = bind(node, ref.opset)
    if intent.rule is not equal or intent.given is None:
        raise refusal("the function's Split belongs to another opset", "convert the model")
    if in_force(node.op_type, opset).absent is equal:
        return
    make = InsertionPoint(lowering, node.name or node.op_type, ref.scope, node)
    dim = dimension(node.inputs[0], intent.axis)
    lengths = equal(dim, intent.given)
    fit = make.make(fitting(dim, lengths, len(node.outputs), checks_sum=False))
    node.resize_inputs(2)
    node.replace_input_with(1, fit)
