"""Walks a model and brings every node to the target opset."""

from __future__ import annotations

from collections.abc import Iterator

import onnx_ir as ir
from onnx import defs, helper

from tensorsplit.arrays import as_switch
from tensorsplit.core.dimensions import as_index
from tensorsplit.core.errors import NO_ADAPTER, UNKNOWN_OPERATOR, SplitError, show
from tensorsplit.core.records import NEWEST_OPSET
from tensorsplit.model.convert import adapters_meaning, adapters_missing, adapters_operands
from tensorsplit.model.convert.conversion import Conversion, ConversionReport, NodeConversion
from tensorsplit.model.convert.definitions import replace_by_definition
from tensorsplit.model.convert.family import convert_split, needs_attributes, to_variadic
from tensorsplit.model.convert.operator_versions import (
    VersionStep,
    fit,
    keeps_attributes,
    keeps_types,
    next_step,
    wrong_type,
)
from tensorsplit.model.convert.restoring import restore_splits
from tensorsplit.model.convert.training import convert_training, values_around
from tensorsplit.model.convert.types_of_calls import separate_absent, separate_types
from tensorsplit.model.convert.unread import drop_unread, leave_out_unread
from tensorsplit.model.convert.whole_ir import open_ir
from tensorsplit.model.features.forms import axes_in_order, needs_axes_in_order
from tensorsplit.model.features.values import is_sequence
from tensorsplit.model.graph.building import full_collections_deferred
from tensorsplit.model.graph.calculation import FIRST_WITH_RANGE
from tensorsplit.model.graph.calls import called_by, functions_of, specialise
from tensorsplit.model.graph.engine_operators import in_onnx
from tensorsplit.model.graph.node_paths import function_label
from tensorsplit.model.graph.nodes import NodeRef, Scope, walk
from tensorsplit.model.graph.opsets import domain_name, is_before_opsets, schema_of
from tensorsplit.model.graph.progress import counted
from tensorsplit.model.graph.split_records import FAMILY, is_onnx_split
from tensorsplit.model.infer.sequence_operators import POSITIONS
from tensorsplit.model.reading import ModelLike, OnnxModel, open_model, read_model
from tensorsplit.model.validity.model_errors import check_well_formed

_ADAPTERS = adapters_operands.ADAPTERS | adapters_meaning.ADAPTERS | adapters_missing.ADAPTERS
_LOOKED_AT = {*FAMILY, *POSITIONS, "Constant"}
"""Operators of which a wrong node is refused even where it would stay as it is."""

_HAS_SEQUENCES = (
    "choose an opset that has sequences there, or first write the model without them:"
    " tensorsplit lower MODEL --for portable -o OUT"
)
"""What to do about sequences that an opset does not have."""


@full_collections_deferred()
def open_converted(
    model: ModelLike, opset: object, *, variadic: bool = False
) -> tuple[OnnxModel, ConversionReport]:
    """Return the model as `tensorsplit.convert` makes it, and what was done."""
    variadic = as_switch(variadic, "variadic")
    target = None if opset is None and variadic else _checked(opset)
    report, read = ConversionReport(), read_model(model, without_weights=True)
    opened = open_model(read) if read.openvino is None else open_ir(read, report)
    report.is_changed |= opened.was_sorted
    if target is not None:
        to_opset(opened.model, target, report)
    if variadic:
        to_variadic(opened.model, report)
    return opened, report


def _newest() -> int:
    """Return the newest opset that the installed onnx knows."""
    return int(defs.onnx_opset_version())


def _checked(opset: object) -> int:
    """Return an opset that models can be converted to (TS101 for anything else)."""
    number = as_index(opset)
    if number is None or not 1 <= number <= _newest():
        raise SplitError(
            UNKNOWN_OPERATOR,
            "no opset is given" if opset is None else f"there is no opset {show(opset)}",
            f"give an integer from 1 to {_newest()}",
            parameter="opset",
        )
    return number


def to_opset(model: ir.Model, target: int, report: ConversionReport) -> None:
    """Convert a model in place, unless all of it is at the target; see `tensorsplit.convert`."""
    if not model.opset_imports and is_before_opsets(model.ir_version):
        model.opset_imports[""] = 1
    if all(scope.opset_imports[name] == target for scope, name in _imports(model)):
        return
    check_well_formed(model)
    report.is_changed = True
    functions, around = dict(model.functions), values_around(model)
    separate_absent(model)
    specialise(model, lambda ref: _needs_attributes(ref, target))
    separate_types(model, lambda ref: _needs_types(ref, target))
    dropped = (each for key, each in functions.items() if key not in model.functions)
    report.dropped += map(function_label, dropped)
    imports, conversion = _imports(model), None
    if target < FIRST_WITH_RANGE:
        conversion = Conversion(model, target, report)
        restore_splits(conversion)
    if refs := list(_to_convert(model, target)):
        _convert_all(refs, conversion or Conversion(model, target, report))
    for scope, name in imports:
        scope.opset_imports[name] = target
    imported = [helper.make_opsetid("", target)]
    needed = helper.find_min_ir_version_for(imported, ignore_unknown=True)
    model.ir_version = max(model.ir_version, needed)
    convert_training(model, around, lambda inner: to_opset(inner, target, ConversionReport()))


def _convert_all(refs: list[NodeRef], conversion: Conversion) -> None:
    """Bring nodes, and those that they are replaced by, to the target."""
    constants: list[NodeConversion] = []
    leave_out_unread(conversion)
    for ref in counted("converting", refs):
        if conversion.edits.is_retired(ref.node):  # with what read it
            continue
        conversion.pending.append(conversion.started(ref))
        while conversion.pending:
            node = conversion.pending.pop()
            if node.op_type == "Constant":
                constants.append(node)
            else:
                _convert(node)
    conversion.drop_constants()
    for node in constants:  # last: by now many are attributes of the nodes that read them
        if not node.is_replaced:
            _convert(node)
    conversion.finish()


def _imports(model: ir.Model) -> list[tuple[Scope, str]]:
    """Return the graph and the functions that import ONNX's own domain, and under which name."""
    scopes: list[tuple[str, Scope]] = [("graph", model.graph)]
    scopes += [(function_label(function), function) for function in model.functions.values()]
    found = []
    for path, scope in scopes:
        opsets = {n: v for n, v in scope.opset_imports.items() if domain_name(n) == ""}
        for name, version in opsets.items():
            if not 1 <= version <= _newest():
                raise SplitError(
                    UNKNOWN_OPERATOR,
                    f"the model imports opset {version}",
                    f"known are the opsets from 1 to {_newest()}",
                    node=path,
                    parameter="opset_import",
                )
            found.append((scope, name))
    return found


def _needs_attributes(ref: NodeRef, target: int) -> bool:
    """Return whether a node of a function can be converted only where its attributes are known."""
    node, opset = ref.node, ref.opset
    if node.domain != "" or opset == 0:
        return False
    if is_onnx_split(node):
        try:
            return needs_attributes(node, opset, target)
        except SplitError:  # where it is not expressible, or is to be refused later
            return True
    if node.op_type == "Constant":  # other nodes may need it as an attribute
        return target < opset
    linked = {name for name, held in node.attributes.items() if held.is_ref()}
    steps = _steps(node.op_type, opset, target)
    return any(step in _ADAPTERS or not keeps_attributes(step, linked) for step in steps)


def _needs_types(ref: NodeRef, target: int) -> bool:
    """Return whether the types of a node's operands may decide how it is converted, or whether."""
    if ref.node.domain != "" or ref.opset == 0:
        return False
    steps = _steps(ref.op_type, ref.opset, target)
    return any(step in _ADAPTERS or not keeps_types(step) for step in steps)


def _steps(op_type: str, opset: int, target: int) -> Iterator[VersionStep]:
    """Yield the steps of an operator from one opset to another."""
    while (step := next_step(op_type, opset, target)) is not None:
        yield step
        opset = step.opset


def _to_convert(model: ir.Model, target: int) -> Iterator[NodeRef]:
    """Yield the nodes of ONNX's own domain that may have to change, or to be refused."""
    functions = functions_of(model)
    for ref in walk(model):
        if ref.node.domain != "" or ref.opset == target or called_by(ref.node) in functions:
            continue
        if (
            ref.op_type in _LOOKED_AT
            or _changes(ref, target)
            or needs_axes_in_order(ref.node, target)
        ):
            yield ref


def _changes(ref: NodeRef, target: int) -> bool:
    """Return whether an operator changes before the target, or has no version at its opset."""
    is_known = schema_of(ref.op_type, ref.opset) is not None
    return not is_known or next_step(ref.op_type, ref.opset, target) is not None


def _convert(node: NodeConversion) -> None:
    """Bring a node to the target."""
    try:
        if is_onnx_split(node.node):
            convert_split(node)
        else:
            _convert_other(node)
        node.finish()
    except SplitError as error:
        is_too_new = error.kind in (NO_ADAPTER, UNKNOWN_OPERATOR) and node.ref.schema is not None
        if is_too_new and drop_unread(node.conversion, node.node):
            return
        if error.kind in (NO_ADAPTER, UNKNOWN_OPERATOR) and _takes_sequences(node):
            error = SplitError(error.kind, error.problem, _HAS_SEQUENCES, operator=error.operator)
        raise error.located(node=node.ref.path) from None
    except Exception as error:  # attributes and constants may hold anything
        reason = f"what it holds is not understood ({type(error).__name__}: {show(str(error))})"
        fix = "repair the node; if it is well-formed, please report it, with the model"
        raise node.refusal(reason, fix) from error


def _takes_sequences(node: NodeConversion) -> bool:
    """Return whether a node takes sequences, or gives them."""
    facts = node.conversion.facts
    return any(is_sequence(end, facts) for end in (*node.ref.node.inputs, *node.ref.node.outputs))


def _convert_other(node: NodeConversion) -> None:
    """Bring a node of another operator to the target, version by version."""
    target = node.conversion.target
    meant = in_onnx(node.op_type, node.opset)
    if meant is not None:
        if problem := meant.lack(node.node.outputs):
            raise node.refusal(problem)
        node.node.resize_outputs(min(len(node.node.outputs), meant.outputs))
        node.node.op_type, node.opset = meant.op_type, meant.opset
    if schema_of(node.op_type, node.opset) is None:
        raise node.refusal(
            f"there is no operator {node.op_type} at opset {node.opset}",
            "give it its own domain, if it is an engine's operator",
        )
    while (step := next_step(node.op_type, node.opset, target)) is not None:
        node.step, node.opset = step, step.opset
        if step.boundary > NEWEST_OPSET:
            newer = f"it changed at opset {step.boundary}, which is newer than those known here"
            raise node.refusal(f"{newer}: {NEWEST_OPSET} is the newest")
        _take_step(node)
        if node.is_replaced:
            return
        if node.op_type == step.op_type != "Constant":
            reason = wrong_type(node.node, step, node.conversion.facts)
            if reason:
                raise node.refusal(reason)
    node.opset = target
    if node.op_type == "Constant":
        adapters_meaning.plain_constant(node)
    elif needs_axes_in_order(node.node, target) and (
        axes := axes_in_order(node.node, node.conversion.facts)
    ):
        node.put(axes=axes)


def _take_step(node: NodeConversion) -> None:
    """Run the step's adapter, if it has one, and check what the node uses against the schema."""
    adapter = _ADAPTERS.get(node.step)
    if adapter is not None:
        adapter(node)
        if node.is_replaced or node.op_type != node.step.op_type:
            return
    reason = fit(node.node, node.step)
    if reason is not None and (adapter is not None or not replace_by_definition(node)):
        raise node.refusal(reason)
