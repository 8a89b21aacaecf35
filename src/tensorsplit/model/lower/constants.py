"""Constants that the target does not read, or calculates wrongly, and nodes that give nothing."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import prod
from typing import Any

import numpy as np
import onnx_ir as ir

from tensorsplit.core.dimensions import are_known, is_known
from tensorsplit.core.errors import SplitError, show
from tensorsplit.model.features.forms import sparse_initializers
from tensorsplit.model.features.from_constants import to_calculate
from tensorsplit.model.features.integers import folded_quotient
from tensorsplit.model.features.without_elements import (
    empty_operands,
    gives_empty_constant,
    is_repeated_by_none,
    summed_axis,
)
from tensorsplit.model.graph.axes import in_range
from tensorsplit.model.graph.held_tensors import (
    LARGEST_CONSTANT,
    constant,
    held_by,
    is_in_words,
    tensor_of,
    unread_initializers,
)
from tensorsplit.model.graph.nodes import (
    NodeRef,
    Scope,
    attribute_of,
    change_inputs,
    is_operator,
    is_used,
    scopes_in,
)
from tensorsplit.model.graph.producers import passed_from
from tensorsplit.model.graph.tensors import SparseTensor
from tensorsplit.model.lower.state import InsertionPoint, LoweredNode, Lowering, refusal
from tensorsplit.model.profiles import Limitation
from tensorsplit.model.run.evaluator import evaluate
from tensorsplit.model.run.program import Block, compile_graph


def slice_empty(lowering: Lowering) -> bool:
    """Replace constants without elements that nodes use as data by slices of nothing.

    Returns whether there were any.
    """
    return lowering.change_limited("empty_constant", _slice_empty)


def _slice_empty(lowering: Lowering, ref: NodeRef, entry: Limitation) -> None:
    node = ref.node
    before = InsertionPoint.before(lowering, ref)
    old = {place: ref.input(place) for place in empty_operands(ref, lowering.facts)}
    made = node.outputs if gives_empty_constant(node) else ()
    if any(_elements(_shape_of(held)) > _MOST_SLICED for held in (*old.values(), *made)):
        lowering.note(entry)
        return
    if is_repeated_by_none(ref, lowering.facts):
        data = ref.input(0)
        assert data is not None  # noqa: S101 - the first input of the operators
        before.put_instead(ref, before.passed_on(data), "Identity", entry)
        _drop(lowering, old.values())
        return
    one_more = _one_more_row(before, lowering, node)
    change_inputs(node, {place: _nothing(before, held) for place, held in old.items()} | one_more)
    if made:
        before.replace(node.outputs[0], _nothing(before, node.outputs[0]))
        lowering.edits.retire(node)
    _drop(lowering, old.values())
    lowering.changed(ref, "the same, with a slice of nothing for a constant", entry)


def _one_more_row(make: InsertionPoint, lowering: Lowering, node: ir.Node) -> dict[int, ir.Value]:
    """Return the factors of a product of sums of nothing with a zero to sum; nothing of others.

    The target folds a slice of nothing, and what it then gives for such sums was never written. A
    first factor with elements to sum is refused as before.
    """
    axis = summed_axis(node)
    if axis is None:
        return {}
    data, factor = node.inputs[:2]
    shape = lowering.facts.tensor(data).shape
    element_type = lowering.facts.tensor(factor).element_type
    if data is None or shape is None or element_type is None:
        return {}
    rows = make.filled([size or 1 for size in _shape_of(factor)], element_type)
    axis += len(shape)
    return {0: make.concat([data, make.total(data, axis)], axis), 1: rows}


_MOST_SLICED = 1 << 20
"""A slice of nothing is one of a constant, which has no more elements than these."""

_MOST_COPIES = 64
"""What nothing is gathered by in larger tables stays as it is."""


def slice_nothing(lowering: Lowering) -> bool:
    """Replace a node that takes no elements along an axis by a slice of length 0.

    Returns whether there were any.
    """
    return lowering.change_limited("takes_nothing", _slice_nothing)


def _slice_nothing(lowering: Lowering, ref: NodeRef, entry: Limitation) -> None:
    data, axis = ref.input(0), attribute_of(ref.node, "axis", ir.AttributeType.INT) or 0
    assert data is not None  # noqa: S101 - see the feature
    make = InsertionPoint.instead_of(lowering, ref)
    if ref.op_type == "Compress" and "axis" not in ref.node.attributes:  # which flattens its data
        data = make.op("Reshape", [data, make.constant([-1])])
    shape = lowering.imported.tensor(ref.input(1)).shape or ()
    dims = [dim for dim in shape if is_known(dim)] if ref.op_type == "Gather" else []
    if len(dims) < 2:
        make.put_instead(ref, make.slice(data, 0, 0, axis), "a Slice of length 0", entry)
        return
    rank = len(lowering.facts.tensor(data).shape or ())
    is_there = -rank <= axis < rank if rank else 0 <= axis < _MOST_COPIES
    if not is_there or max(dims) > _MOST_COPIES:
        return
    axis, place = axis % rank if axis < 0 else axis, dims.index(0)
    # the other way around, OpenVINO loses dimensions that it does not see
    data = make.unsqueeze(data, [axis + i for i in range(len(dims)) if i != place])
    new = make.slice(data, 0, 0, axis + place)
    for i, dim in enumerate(dims):
        new = make.concat([new] * max(dim, 1), axis + i)
    make.put_instead(ref, new, "a Slice of length 0", entry)


def give_nothing(lowering: Lowering) -> bool:
    """Replace a Gather of data without elements by a slice of nothing.

    One with indices that may be out of range stays, as it has to refuse these. Returns whether
    anything was changed.
    """
    return lowering.change_limited("taken_from_nothing", _give_nothing)


def give_nothing_for_parts(lowering: Lowering) -> None:
    """Do as `give_nothing`, of the nodes that stand for splits by now."""
    lowering.change_each(
        "taken_from_nothing", lambda node: is_operator(node, "Gather"), _give_nothing
    )


def _give_nothing(lowering: Lowering, ref: NodeRef, entry: Limitation) -> None:
    made, axis = ref.node.outputs[0], attribute_of(ref.node, "axis", ir.AttributeType.INT) or 0
    given = lowering.imported.tensor(ref.input(0)).shape or ()  # the feature is of what is seen
    shape = lowering.facts.tensor(made).shape or ()
    element_type = lowering.facts.tensor(made).element_type
    assert are_known(given) and are_known(shape)  # noqa: PT018, S101 - see the feature
    taken = constant(passed_from(ref.input(1)))
    if taken is None or element_type is None or not in_range(taken, given[axis]):
        return
    make = InsertionPoint.instead_of(lowering, ref)
    if taken.ndim < 2 and (taken.size or not given[axis]):  # a Split before it is still used
        dims = [
            taken.size if place == axis % len(given) else dim for place, dim in enumerate(given)
        ]
        new = make.op("Reshape", [ref.input(0), make.constant(dims)])
        new = new if taken.ndim else make.squeeze(new, [axis % len(given)])
        make.put_instead(ref, new, "a Reshape of nothing", entry)
    elif _elements(shape) > _MOST_SLICED:
        lowering.note(entry)
    else:
        make.put_instead(ref, make.empty(shape, element_type), "a slice of nothing", entry)


def _nothing(make: InsertionPoint, constant: ir.Value | None) -> ir.Value:
    tensor = None if constant is None else tensor_of(constant)
    assert tensor is not None  # noqa: S101 - see the feature
    return make.empty(tensor.shape.numpy(), tensor.dtype)


def _shape_of(constant: ir.Value | None) -> Sequence[int]:
    tensor = None if constant is None else tensor_of(constant)
    return () if tensor is None else tensor.shape.numpy()


def _elements(shape: Iterable[int]) -> int:
    """Return the elements of a constant of which a slice is a tensor that has none."""
    return prod(size or 1 for size in shape)


def _drop(lowering: Lowering, constants: Iterable[ir.Value | None]) -> None:
    """Remove constants that nothing uses any more."""
    for held in constants:
        if held is None or is_used(held):
            continue
        if (made := held.producer()) is not None:
            lowering.edits.retire(made)
        elif held.graph is not None and held.name is not None:
            held.graph.initializers.pop(held.name, None)


def write_quotient(lowering: Lowering, ref: NodeRef, entry: Limitation) -> None:
    """Replace a quotient of constants, which the target would round down, by a constant."""
    node, made = ref.node, ref.node.outputs[0]
    quotient = folded_quotient(node, lowering.facts)
    if quotient is None:
        quotient = _calculated(compile_graph(lowering.model), [made]).get(made.name or "")
    if quotient is None:
        return
    element_type = lowering.facts.tensor(made).element_type or ir.DataType.INT64
    make = InsertionPoint.instead_of(lowering, ref)
    make.put_instead(ref, make.constant(quotient, element_type.numpy()), "a constant", entry)


def write_tensors(lowering: Lowering) -> bool:
    """Rewrite Constants as tensors, where the target does not read the form that they have.

    Returns whether there were any.
    """
    forms = ("constant_form_before_13", "constant_form")
    wanted = {pair[0].node: pair for form in forms for pair in lowering.limited(form)}
    for ref, entry in wanted.values():
        held = held_by(ref.node.attributes)
        if held is None or (isinstance(held, SparseTensor) and held.kept is not None):
            problem = f"the Constant can't be written as a tensor ({entry.note})"
            raise refusal(problem, "make it an initializer").located(node=ref.path)
        dense = ir.tensor(held.numpy()) if isinstance(held, SparseTensor) else held
        ref.node.attributes.clear()
        ref.node.attributes["value"] = ir.AttrTensor("value", dense)
        lowering.changed(ref, "the same, with its value as a tensor", entry)
    return bool(wanted)


def write_initializers(lowering: Lowering) -> bool:
    """Write sparse initializers as dense ones, where the target does not read them.

    Returns whether there were any.
    """
    return lowering.change_limited("sparse_initializer", _write_initializers)


def _write_initializers(lowering: Lowering, ref: NodeRef, entry: Limitation) -> None:
    for value, held in sparse_initializers(ref.node).items():
        if held.kept is not None:
            problem = f"the initializer {show(value.name)} is a sparse tensor ({entry.note})"
            fix = "write it as a dense one, which lowering does for smaller ones"
            raise refusal(problem, fix)
        value.const_value = ir.tensor(held.numpy(), name=value.name)
        lowering.changed(ref, "the same, with a dense initializer", entry)


def write_words(lowering: Lowering) -> bool:
    """Write constants as bytes, where the target does not read their words as the elements.

    Returns whether there were any.
    """
    entry = lowering.limitation("constant_in_words")
    if entry is None:
        return False
    before = len(lowering.report.changes)
    owners: list[Scope] = [lowering.model.graph, *lowering.model.functions.values()]
    for scope in (inner for owner in owners for inner in scopes_in(owner)):
        held = scope.initializers.values() if isinstance(scope, ir.Graph) else ()
        for each in held:
            if each.const_value is not None and is_in_words(each.const_value):
                each.const_value = _as_bytes(each.const_value)
                _note(lowering, f"initializer {show(each.name)}", _BYTES, entry)
        for node in scope:
            value = attribute_of(node, "value", ir.AttributeType.TENSOR)
            if value is not None and is_in_words(value):
                node.attributes["value"] = ir.AttrTensor("value", _as_bytes(value))
                _note(lowering, lowering.refs[node].path, _BYTES, entry)
    return len(lowering.report.changes) > before


def drop_unread(lowering: Lowering) -> bool:
    """Leave out initializers that nothing reads, where the target does not load them.

    Returns whether there were any.
    """
    before = len(lowering.report.changes)
    owners: list[Scope] = [lowering.model.graph, *lowering.model.functions.values()]
    scopes = (scope for owner in owners for scope in scopes_in(owner))
    graphs = [scope for scope in scopes if isinstance(scope, ir.Graph)]
    for feature in ("unread_initializer", "unread_strings"):
        entry = lowering.limitation(feature)
        if entry is None:
            continue
        for graph in graphs:
            for name in unread_initializers(graph, are_strings=feature == "unread_strings"):
                del graph.initializers[name]
                _note(lowering, f"initializer {show(name)}", "left out", entry)
    return len(lowering.report.changes) > before


def _as_bytes(tensor: ir.TensorProtocol) -> ir.TensorProtocol:
    """Return the same tensor, with the type and shape that the model declares."""
    return ir.Tensor(
        tensor.numpy(),
        dtype=tensor.dtype,
        name=tensor.name,
        doc_string=tensor.doc_string,
        metadata_props=dict(tensor.metadata_props),
    )


_BYTES = "the same, as bytes"


def _note(lowering: Lowering, path: str, became: str, entry: Limitation) -> None:
    reason = lowering.profile.sentence(entry)
    lowering.report.changes.append(LoweredNode(path, "constant", became, reason))


def calculate_constants(lowering: Lowering) -> bool:
    """Replace values that nodes calculate from constants alone by constants.

    It is for targets that do so too as they load the model, but wrongly. What our engine refuses,
    and what is large, stays as it is. Returns whether anything was changed.
    """
    wanted = lowering.limited("of_constants")
    if not wanted:
        return False
    graph = compile_graph(lowering.model)
    before = len(lowering.report.changes)
    for ref, entry in wanted:
        outputs = to_calculate(ref, lowering.imported)
        values = _calculated(graph, outputs)
        if not values:
            continue
        make = InsertionPoint.before(lowering, ref)
        for old in outputs:
            make.replace(old, _as_constant(make, values[old.name or ""]))
        lowering.edits.retire(ref.node)
        lowering.changed(ref, "what it gives, which is constant", entry)
    lowering.edits.finish()
    return len(lowering.report.changes) > before


def _calculated(graph: Block, outputs: list[ir.Value]) -> dict[str, Any]:
    """Return the outputs of our own engine, by name; none if it refuses, or if they are large."""
    try:
        values = evaluate(graph, {}, outputs)
    except SplitError:  # the target has to refuse it, too
        return {}
    is_large = any(np.size(held) > LARGEST_CONSTANT for held in values.values())
    return {} if is_large else values


def _as_constant(make: InsertionPoint, held: np.ndarray) -> ir.Value:
    if not held.size:
        return make.empty(held.shape, ir.DataType.from_numpy(held.dtype))
    return make.op("Constant", [], {"value": ir.tensor(held)})
