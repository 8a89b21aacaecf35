"""Inlining of a model's functions."""

from __future__ import annotations

import onnx_ir as ir

from tensorsplit.model.convert.conversion import ConversionReport
from tensorsplit.model.convert.driver import to_opset
from tensorsplit.model.features.given_as_is import given_by_function
from tensorsplit.model.graph import calls
from tensorsplit.model.graph.calls import called_in_part
from tensorsplit.model.graph.opsets import domain_opsets
from tensorsplit.model.graph.split_records import is_onnx_split
from tensorsplit.model.lower.state import LoweredNode, Lowering
from tensorsplit.model.profiles import must_go


def inline(lowering: Lowering) -> bool:
    """Inline the functions for which the target needs it; return whether there were any.

    Functions of another opset are converted first, and stay if the target then runs them.
    """
    model, wanted = lowering.model, _wanted(lowering)
    others = [key for key in wanted if _opset(model.functions[key], lowering) != lowering.opset]
    if others:
        report = ConversionReport()
        to_opset(model, lowering.opset, report)
        for rounded in (each for each in report.changes if not each.is_exact):
            lowering.report.note(f"{rounded.node} was converted to other operators, up to rounding")
    else:
        calls.inline(model, wanted)
    became = f"converted to opset {lowering.opset}" if others else "inlined"
    for domain, name, overload in others or wanted:
        path, reason = f"function {domain}::{name}", wanted[domain, name, overload]
        lowering.report.changes.append(LoweredNode(path, name, became, reason))
    return bool(wanted)


def _opset(function: ir.Function, lowering: Lowering) -> int:
    """Return the opset of ONNX's own domain in a function; that of the graph if it uses none."""
    return domain_opsets(function.opset_imports).get("", lowering.opset)


def _wanted(lowering: Lowering) -> dict[ir.OperatorIdentifier, str]:
    """Return the functions to inline, each with the reason.

    More of them may be wanted after that: a sequence that can't stay may get into others.
    """
    functions = lowering.model.functions
    whole = lowering.limitation("local_function")
    if whole is not None and must_go(whole):
        return dict.fromkeys(functions, lowering.profile.sentence(whole))
    names = "function_opset", "passing_function", "shortened_call"
    other, passing, short = map(lowering.limitation, names)
    wanted: dict[ir.OperatorIdentifier, str] = {}
    if passing is not None:
        reason = lowering.profile.sentence(passing)
        wanted = {key: reason for key, each in functions.items() if given_by_function(each)}
    if short is not None:
        found = called_in_part(lowering.model, lowering.facts.uncalled)
        wanted |= dict.fromkeys(found, lowering.profile.sentence(short))
    for ref in lowering.refs.values():
        node, function = ref.node, ref.function
        entry = lowering.reason(node)
        if entry is None and ref.opset != lowering.opset and is_onnx_split(node):
            entry = other
        if function is not None and entry is not None:
            wanted.setdefault(function.identifier(), lowering.profile.sentence(entry))
        ends = (*node.inputs, *node.outputs)
        if node.op_identifier() in functions and any(end in lowering.reasons for end in ends):
            wanted.setdefault(node.op_identifier(), "it passes a sequence on")
    return wanted
