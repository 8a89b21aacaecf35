"""Walks a model and brings every node to the target."""

from __future__ import annotations

from collections.abc import Mapping

import onnx_ir as ir
from onnx import defs, helper

from tensorsplit.core.dimensions import as_index
from tensorsplit.core.errors import MALFORMED_MODEL, UNKNOWN_OPERATOR, SplitError, show
from tensorsplit.core.records import NEWEST_OPSET
from tensorsplit.model.convert.adapters import convert_other
from tensorsplit.model.convert.change import Change
from tensorsplit.model.convert.family import convert_split
from tensorsplit.model.convert.site import Site
from tensorsplit.model.graph.building import collector_paused
from tensorsplit.model.graph.nodes import (
    NodeRef,
    Scope,
    domain_name,
    function_label,
    is_split,
    walk,
)
from tensorsplit.model.infer.analysis import analyse

_FIRST_IR_WITH_OPSETS = 3


def newest_opset() -> int:
    """The newest opset that both the records and the installed onnx know."""
    return min(NEWEST_OPSET, int(defs.onnx_opset_version()))


def check_opset(opset: object) -> int:
    """An opset that models can be converted to.

    Raises:
        SplitError: TS101 for what is none.
    """
    number = as_index(opset)
    if number is None or not 1 <= number <= newest_opset():
        raise SplitError(
            UNKNOWN_OPERATOR,
            f"there is no opset {show(opset)}",
            f"give an integer from 1 to {newest_opset()}",
            parameter="opset",
        )
    return number


@collector_paused()
def convert_model(model: ir.Model, target: int) -> bool:
    """Bring a model to another opset, in place.

    Args:
        model: The model.
        target: An opset that `check_opset` let pass.

    Returns:
        Whether anything was to be done.

    Raises:
        SplitError: As `tensorsplit.convert`.
    """
    if not model.opset_imports and 0 < model.ir_version < _FIRST_IR_WITH_OPSETS:
        model.opset_imports[""] = 1
    scopes: list[tuple[str, Scope]] = [("graph", model.graph)]
    for function in model.functions.values():
        scopes.append((function_label(function), function))
    imports = [(path, scope, _own_domain(scope, path)) for path, scope in scopes]
    if all(not names or scope.opset_imports[names[0]] == target for _, scope, names in imports):
        return False
    for path, scope, names in imports:
        _check_source(path, scope, names)
    change = Change(model, analyse(model), target)
    # A wrong node in a body or function may never run, and then it is no mistake
    wrong = {error.node: error for error in reversed(change.facts.errors)}
    functions = {(domain_name(key[0]), key[1], key[2]) for key in model.functions}
    constants: list[Site] = []
    _check_outputs(model)
    for place in walk(model, "converting"):
        _check_inputs(place)
        if _needs_work(place, target, functions):
            _convert_place(place, change, wrong, constants)
    change.drop_constants()
    for site in constants:  # last, for by now many are attributes of what they were inputs of
        if not change.edits.is_retired(site.node):
            _convert_site(site, change)
    change.finish()
    for _, scope, names in imports:
        for name in names:
            scope.opset_imports[name] = target
    needed = helper.find_min_ir_version_for([helper.make_opsetid("", target)], ignore_unknown=True)
    model.ir_version = max(model.ir_version, needed)
    return True


def _check_inputs(place: NodeRef) -> None:
    """Refuse a node that reads what nothing produces."""
    for value in place.node.inputs:
        if value is not None and _is_nowhere(value):
            raise SplitError(
                MALFORMED_MODEL,
                f"nothing produces its input {show(value.name)}",
                "repair the model",
                node=place.path,
            )


def _check_outputs(model: ir.Model) -> None:
    for value in model.graph.outputs:
        if _is_nowhere(value):
            raise SplitError(
                MALFORMED_MODEL,
                f"nothing produces the output {show(value.name)}",
                "repair the model",
                node="graph",
            )


def _is_nowhere(value: ir.Value) -> bool:
    return value.producer() is None and not value.is_graph_input() and not value.is_initializer()


def _own_domain(scope: Scope, path: str) -> list[str]:
    """How the scope spells the import of ONNX's own domain; empty if it does not import it."""
    names = [name for name in scope.opset_imports if domain_name(name) == ""]
    if len({scope.opset_imports[name] for name in names}) > 1:
        raise SplitError(
            MALFORMED_MODEL, "ONNX's domain is imported at two opsets", "import one", node=path
        )
    return names


def _check_source(path: str, scope: Scope, names: list[str]) -> None:
    for name in names:
        version = scope.opset_imports[name]
        if not 1 <= version <= newest_opset():
            raise SplitError(
                UNKNOWN_OPERATOR,
                f"the model imports opset {version}",
                f"known are the opsets from 1 to {newest_opset()}",
                node=path,
                parameter="opset_import",
            )


def _needs_work(place: NodeRef, target: int, functions: set[tuple[str, str, str]]) -> bool:
    """Whether a node is an operator of ONNX's own domain at another opset."""
    node = place.node
    domain = domain_name(node.domain)
    if domain != "" or (domain, node.op_type, node.overload or "") in functions:
        return False
    if place.opset == 0:
        raise SplitError(
            MALFORMED_MODEL,
            "there is no opset import for ONNX's own domain",
            "import it",
            node=place.path,
        )
    return place.opset != target


def _convert_place(
    place: NodeRef, change: Change, wrong: Mapping[str | None, SplitError], constants: list[Site]
) -> None:
    site = Site(place.node, place.path, place.scope, place.opset, place.function)
    if site.scope is change.model.graph and site.path in wrong:
        raise wrong[site.path]
    change.pending.append(site)
    constants += _drain(change)


def _drain(change: Change) -> list[Site]:
    """Convert what is pending but constants, which are returned."""
    constants = []
    while change.pending:
        site = change.pending.pop()
        if site.op_type == "Constant":
            constants.append(site)
        else:
            _convert_site(site, change)
    return constants


def _convert_site(site: Site, change: Change) -> None:
    try:
        if is_split(site.node):
            convert_split(site, change)
        else:
            convert_other(site, change)
    except SplitError:
        raise
    except Exception as error:  # attributes and constants may hold anything
        raise SplitError(
            MALFORMED_MODEL,
            f"the node can't be understood ({type(error).__name__}: {show(str(error))})",
            "repair it",
            operator=f"ai.onnx.{site.op_type}",
            node=site.path,
        ) from error
