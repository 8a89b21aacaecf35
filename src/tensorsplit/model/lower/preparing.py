"""What is put right before nodes are lowered one by one."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain
from typing import Any

import numpy as np
import onnx_ir as ir

from tensorsplit.core.dimensions import are_known
from tensorsplit.core.errors import SplitError, show
from tensorsplit.model.features import (
    FIRST_WITH_AXES_IN_ANY_ORDER,
    OPTIONAL_OPERATORS,
    SEQUENCE_OPERATORS,
    axes_in_order,
    empty_operands,
    flattened_at,
    gives_empty_constant,
    sparse_initializers,
    to_calculate,
)
from tensorsplit.model.graph.calculation import FIRST_WITH_INTEGERS_COMPARED
from tensorsplit.model.graph.nodes import (
    LARGEST_CONSTANT,
    NodeRef,
    attribute_of,
    bodies,
    change_inputs,
    constant,
    held_by,
    is_split,
    malformed,
    passed_from,
    scopes,
    tensor_of,
)
from tensorsplit.model.graph.rejoined import gives_only_shapes
from tensorsplit.model.graph.tensors import SparseTensor
from tensorsplit.model.integer_features import folded_quotient, fused_operand
from tensorsplit.model.lower.split_nodes import lower_split
from tensorsplit.model.lower.state import InsertionPoint, Lowering, at, refusal
from tensorsplit.model.profiles import Limitation
from tensorsplit.model.run.evaluator import evaluate
from tensorsplit.model.run.program import Block, compile_graph
from tensorsplit.model.validity.node_errors import wrong_types

_CHECKED = SEQUENCE_OPERATORS | OPTIONAL_OPERATORS


def check_sequence_nodes(lowering: Lowering) -> None:
    """Refuse nodes that mix sequences and tensors where the standard does not (TS502)."""
    for ref in lowering.refs.values():
        node = ref.node
        if node.domain != "" or node.op_identifier() in lowering.model.functions:
            continue
        inside = [value for _, body in bodies(node) for value in (*body.inputs, *body.outputs)]
        ends = (*node.inputs, *node.outputs, *inside)
        if node.op_type in _CHECKED or not lowering.reasons.keys().isdisjoint(ends):
            with at(ref):
                _check_node(lowering, ref)


def _check_node(lowering: Lowering, ref: NodeRef) -> None:
    node = ref.node
    schema = ref.schema
    if schema is None:
        raise malformed(f"there is no {node.op_type} at opset {ref.opset}", "repair it")
    checked = schema if node.op_type in SEQUENCE_OPERATORS else None
    for error in wrong_types(ref, checked, lambda value: type(lowering.facts.of(value))()):
        raise error


def rename_duplicates(lowering: Lowering) -> None:
    """Give nodes names of their own in their graph, where the target needs that."""
    entry = lowering.limitation("duplicate_node_name")
    if entry is None:
        return
    for scope in scopes(lowering.model):
        seen: set[str] = set()
        for node in scope:
            if node.name and node.name in seen:
                lowering.changed(lowering.refs[node], "the same with another name", entry)
                node.name = lowering.names.fresh(node.name)
            seen.add(node.name or "")


def inline_lengths(lowering: Lowering) -> bool:
    """Write lengths that are external data into the model, where the target can't read them.

    Returns whether there were any.
    """
    return lowering.change_limited("external_lengths", _inline_lengths)


def _inline_lengths(lowering: Lowering, ref: NodeRef, entry: Limitation) -> None:
    source = passed_from(ref.input(1))
    lengths = constant(source)
    assert source is not None and lengths is not None  # noqa: S101, PT018 - see the feature
    producer, inside = source.producer(), ir.tensor(lengths, name=source.name)
    if producer is None:
        source.const_value = inside
    else:
        producer.attributes["value"] = ir.AttrTensor("value", inside)
    lowering.changed(ref, "the same, with its lengths in the model", entry)


def slice_empty(lowering: Lowering) -> bool:
    """Put slices of nothing in the place of constants without elements that nodes use as data.

    Returns whether there were any.
    """
    return lowering.change_limited("empty_constant", _slice_empty)


def _slice_empty(lowering: Lowering, ref: NodeRef, entry: Limitation) -> None:
    node = ref.node
    before = InsertionPoint.before(lowering, ref)
    old = {place: ref.input(place) for place in empty_operands(ref)}
    change_inputs(node, {place: _nothing(before, held) for place, held in old.items()})
    if gives_empty_constant(node):
        before.replace(node.outputs[0], _nothing(before, node.outputs[0]))
        lowering.edits.retire(node)
    _drop(lowering, old.values())
    lowering.changed(ref, "the same, with a slice of nothing for a constant", entry)


def slice_nothing(lowering: Lowering) -> bool:
    """Put a slice of length 0 in the place of a node that takes no elements along an axis.

    Returns whether there were any.
    """
    return lowering.change_limited("takes_nothing", _slice_nothing)


def _slice_nothing(lowering: Lowering, ref: NodeRef, entry: Limitation) -> None:
    data, axis = ref.input(0), attribute_of(ref.node, "axis", ir.AttributeType.INT) or 0
    assert data is not None  # noqa: S101 - see the feature
    make = InsertionPoint.instead_of(lowering, ref)
    make.replace(ref.node.outputs[0], make.slice(data, 0, 0, axis))
    lowering.edits.retire(ref.node)
    _drop(lowering, [ref.input(1)])
    lowering.changed(ref, "a Slice of length 0", entry)


def give_nothing(lowering: Lowering) -> bool:
    """Put a slice of nothing in the place of a Gather of data without elements.

    One with indices that may be out of range stays, as it has to refuse these. Returns whether
    anything was changed.
    """
    return lowering.change_limited("taken_from_nothing", _give_nothing)


def _give_nothing(lowering: Lowering, ref: NodeRef, entry: Limitation) -> None:
    made, axis = ref.node.outputs[0], attribute_of(ref.node, "axis", ir.AttributeType.INT) or 0
    given, shape = (lowering.facts.tensor(held).shape or () for held in (ref.input(0), made))
    element_type = lowering.facts.tensor(made).element_type
    assert are_known(given) and are_known(shape)  # noqa: PT018, S101 - see the feature
    taken = constant(passed_from(ref.input(1)))
    if taken is None or element_type is None or not _in_range(taken, given[axis]):
        return
    make = InsertionPoint.instead_of(lowering, ref)
    make.replace(made, make.empty(shape, shape.index(0), element_type))
    lowering.edits.retire(ref.node)
    lowering.changed(ref, "a slice of nothing", entry)


def _in_range(indices: np.ndarray, length: int) -> bool:
    return bool(np.all((indices >= -length) & (indices < length)))


def _nothing(make: InsertionPoint, constant: ir.Value | None) -> ir.Value:
    tensor = None if constant is None else tensor_of(constant)
    assert tensor is not None  # noqa: S101 - see the feature
    shape = tensor.shape.numpy()
    return make.empty(shape, shape.index(0), tensor.dtype)


def _drop(lowering: Lowering, constants: Iterable[ir.Value | None]) -> None:
    """Remove constants that nothing uses any more."""
    for held in constants:
        if held is None or held.uses() or held.is_graph_output():
            continue
        if (made := held.producer()) is not None:
            lowering.edits.retire(made)
        elif held.graph is not None and held.name is not None:
            held.graph.initializers.pop(held.name, None)


def turn_apart(lowering: Lowering) -> bool:
    """Turn what recurrent layers read as a tensor of rank 4, which the target does right.

    Returns whether there was any.
    """
    return lowering.change_limited("turned_beside_recurrence", _turn_apart)


def _turn_apart(lowering: Lowering, ref: NodeRef, entry: Limitation) -> None:
    node, data = ref.node, ref.input(0)
    assert data is not None  # noqa: S101 - see the feature
    make = InsertionPoint.instead_of(lowering, ref)
    order = attribute_of(node, "perm", ir.AttributeType.INTS) or (2, 1, 0)
    turned = make.op("Transpose", [make.unsqueeze(data, [3])], {"perm": [*order, 3]})
    make.replace(node.outputs[0], make.squeeze(turned, [3]))
    lowering.edits.retire(node)
    lowering.changed(ref, "Transpose with one more axis", entry)


def widen_quotients(lowering: Lowering) -> bool:
    """Divide integers of 8 bits as int32, where the target rounds their quotients.

    Returns whether there were any.
    """
    return lowering.change_limited("small_quotient", _widen_quotient)


def _widen_quotient(lowering: Lowering, ref: NodeRef, entry: Limitation) -> None:
    node, made = ref.node, ref.node.outputs[0]
    make = InsertionPoint.instead_of(lowering, ref)
    wide = [make.op("Cast", [held], {"to": ir.DataType.INT32}) for held in node.inputs]
    narrow = {"to": lowering.facts.tensor(made).element_type}
    make.replace(made, make.op("Cast", [make.op("Div", wide)], narrow))
    lowering.edits.retire(node)
    lowering.changed(ref, "Div of int32", entry)


def keep_from_fusing(lowering: Lowering) -> bool:
    """Put nodes that are not fused before quotients that would be rounded otherwise.

    What they give is the number itself, even if it overflows on the way. Returns whether there were
    any.
    """
    return lowering.change_limited("fused_quotient", _keep_from_fusing)


def _keep_from_fusing(lowering: Lowering, ref: NodeRef, entry: Limitation) -> None:
    node, held = ref.node, fused_operand(ref.node, lowering.facts)
    make = InsertionPoint.instead_of(lowering, ref)
    same = make.op("Sub", [make.op("Add", [held, held]), held])
    change_inputs(node, {node.inputs.index(held): same})
    lowering.changed(ref, "the same, of a number that was doubled and subtracted once", entry)


def write_quotients(lowering: Lowering) -> bool:
    """Put constants in the place of quotients of constants, which the target would round down.

    Returns whether there were any.
    """
    return lowering.change_limited("folded_quotient", _write_quotient)


def _write_quotient(lowering: Lowering, ref: NodeRef, entry: Limitation) -> None:
    node, made = ref.node, ref.node.outputs[0]
    quotient = folded_quotient(node, lowering.facts)
    if quotient is None:
        quotient = _calculated(compile_graph(lowering.model), [made]).get(made.name or "")
    if quotient is None:
        return
    element_type = lowering.facts.tensor(made).element_type or ir.DataType.INT64
    make = InsertionPoint.instead_of(lowering, ref)
    make.replace(made, make.constant(quotient, element_type.numpy()))
    lowering.edits.retire(node)
    lowering.changed(ref, "a constant", entry)


def turn_flattened(lowering: Lowering) -> bool:
    """Have a Flatten by the last axis, or after it, take axis 1 or 0, which are always right.

    What it gives is transposed then. Others stay. Returns whether any was changed.
    """
    return lowering.change_limited("flattened", _turn_flattened)


def _turn_flattened(lowering: Lowering, ref: NodeRef, entry: Limitation) -> None:
    node, data, axis = ref.node, ref.input(0), flattened_at(ref.node, lowering.facts)
    assert data is not None and axis is not None  # noqa: S101, PT018 - see the feature
    fact = lowering.facts.tensor(data)
    shape, element_type = fact.shape or (), fact.element_type
    if axis < len(shape) - 1 or not shape or element_type in (None, ir.DataType.STRING):
        return
    make = InsertionPoint(lowering, node.name or node.op_type, ref.scope, node, node)
    if axis == len(shape) and 0 in shape:  # which OpenVINO refuses by axis 0
        new = make.empty((0, 1), 0, element_type)
    else:
        data = make.moved(data, len(shape), axis, 0) if axis < len(shape) else data
        flat = make.op("Flatten", [data], {"axis": len(shape) - axis})
        new = make.op("Transpose", [flat], {"perm": [1, 0]})
    make.replace(node.outputs[0], new)
    lowering.edits.retire(node)
    lowering.changed(ref, "Flatten by another axis, between Transposes", entry)


def choose_signs(lowering: Lowering) -> bool:
    """Choose between a number and its negative, where the target would leave Abs out.

    Opsets before 9 compare no integers; nodes of those stay. Returns whether any was changed.
    """
    return lowering.change_limited("abs_of_shapes", _choose_sign)


def _choose_sign(lowering: Lowering, ref: NodeRef, entry: Limitation) -> None:
    node, held = ref.node, ref.input(0)
    if ref.opset < FIRST_WITH_INTEGERS_COMPARED:
        return
    assert held is not None  # noqa: S101 - see the feature
    make = InsertionPoint.instead_of(lowering, ref)
    element_type = lowering.facts.tensor(held).element_type or ir.DataType.INT64
    zero = make.constant(0, element_type.numpy())
    chosen = [make.op("Greater", [held, zero]), held, make.op("Sub", [zero, held])]
    make.replace(node.outputs[0], make.op("Where", chosen))
    lowering.edits.retire(node)
    lowering.changed(ref, "Where", entry)


def keep_ranges_empty(lowering: Lowering) -> None:
    """Give a Range its start as its limit, where the target would go the other way."""
    lowering.change_each("empty_range", _is_range, _limit_range)


def _is_range(node: ir.Node) -> bool:
    return (node.domain, node.op_type) == ("", "Range")


def _limit_range(lowering: Lowering, ref: NodeRef, entry: Limitation) -> None:
    node, (start, limit, step) = ref.node, ref.node.inputs
    make = InsertionPoint.instead_of(lowering, ref)
    known = lowering.facts.tensor(step).constant
    upward = None if known else make.op("Less", [make.op("Sub", [step, step]), step])
    above = make.op("Less", [start, limit]) if not known or known[0] > 0 else None
    below = make.op("Less", [limit, start]) if not known or known[0] < 0 else None
    is_inside = above or below if known else make.op("Where", [upward, above, below])
    change_inputs(node, {1: make.op("Where", [is_inside, limit, start])})
    lowering.changed(ref, "the same, with its start as its limit if it is empty", entry)


def negate_joined(lowering: Lowering) -> None:
    """Take Abs of the negative, where the target would change what is joined for other nodes."""
    lowering.change_each("abs_of_joined", _is_abs, _negate)


def _is_abs(node: ir.Node) -> bool:
    return (node.domain, node.op_type) == ("", "Abs")


def _negate(lowering: Lowering, ref: NodeRef, entry: Limitation) -> None:
    node = ref.node
    make = InsertionPoint.instead_of(lowering, ref)
    change_inputs(node, {0: make.op("Neg", [ref.input(0)])})
    lowering.changed(ref, "Abs of the negative", entry)


def write_tensors(lowering: Lowering) -> bool:
    """Have Constants give a tensor, where the target does not read the form that they have.

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


def calculate_constants(lowering: Lowering) -> bool:
    """Put constants in the place of what nodes calculate from constants alone.

    It is for targets that do so too as they load the model, but wrongly. What our engine refuses,
    and what is large, stays as it is. Returns whether anything was changed.
    """
    wanted = lowering.limited("of_constants")
    graph = compile_graph(lowering.model) if wanted else None
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


def _calculated(graph: Block | None, outputs: list[ir.Value]) -> dict[str, Any]:
    """Return what our engine gives, by name; nothing if it refuses that, or if it is large."""
    try:
        values = {} if graph is None else evaluate(graph, {}, outputs)
    except SplitError:  # the target has to refuse it, too
        return {}
    is_large = any(np.size(held) > LARGEST_CONSTANT for held in values.values())
    return {} if is_large else dict(values)


def _as_constant(make: InsertionPoint, held: np.ndarray) -> ir.Value:
    if not held.size:
        return make.empty(held.shape, held.shape.index(0), ir.DataType.from_numpy(held.dtype))
    return make.op("Constant", [], {"value": ir.tensor(held)})


def sort_axes(lowering: Lowering) -> bool:
    """Put axes in order where the target infers a wrong shape otherwise.

    Returns whether there were any.
    """
    return lowering.change_limited("unsorted_axes", _sort)


def keep_unread(lowering: Lowering) -> bool:
    """Have lengths calculated where the target would leave a Split out, before the other nodes.

    It no longer sees the shapes of such parts at import then, and what follows is lowered for that.
    Returns whether anything was changed.
    """
    return lowering.change_limited("unread_parts", _calculate_lengths)


def _calculate_lengths(lowering: Lowering, ref: NodeRef, _entry: Limitation) -> None:
    lower_split(lowering, ref)


def keep_left_unread(lowering: Lowering) -> bool:
    """Do as `keep_unread`, where nodes were replaced and a Split may have lost its readers so.

    One that nothing uses any more is noted.
    """
    if not lowering.report.changes or not lowering.look_for("unread_parts", _may_be_unread):
        return False
    for _, entry in lowering.limited("unused"):
        lowering.note(entry)
    return keep_unread(lowering)


def _may_be_unread(node: ir.Node) -> bool:
    return is_split(node) and gives_only_shapes(node)


def sort_axes_for_onnx(lowering: Lowering) -> None:
    """Put axes in order in a model that was changed, for any target.

    Onnx's inference is wrong about others (see errata), so that what lowering declares after such a
    node contradicts it, and onnx's checker refuses the model.
    """
    if not lowering.report.changes or not any(map(_may_be_unsorted, lowering.refs.values())):
        return
    lowering.look()
    for ref in filter(_may_be_unsorted, lowering.refs.values()):
        if axes_in_order(ref.node, lowering.facts) is not None:
            _sort(lowering, ref, reason="onnx infers a wrong shape for others")


def _may_be_unsorted(ref: NodeRef) -> bool:
    has_axes = ref.node.domain == "" and ref.op_type in ("Squeeze", "Unsqueeze")
    return has_axes and ref.opset < FIRST_WITH_AXES_IN_ANY_ORDER


def _sort(lowering: Lowering, ref: NodeRef, *entries: Limitation, reason: str = "") -> None:
    axes = axes_in_order(ref.node, lowering.facts)
    assert axes is not None  # noqa: S101 - see the callers
    ref.node.attributes["axes"] = ir.AttrInt64s("axes", axes)
    lowering.changed(ref, "the same, with its axes in order", *entries, reason=reason)


def take_branches(lowering: Lowering) -> bool:
    """Put the branch that is always taken in the place of an If that gives sequences to lower.

    Nothing is known of the two together: the sequences of the other branch may be of another kind.
    Returns whether there was any.
    """
    wanted = [
        (ref, known[0])
        for ref in lowering.refs.values()
        if (ref.node.domain, ref.op_type) == ("", "If")
        and any(made in lowering.reasons for made in ref.node.outputs)
        and (known := lowering.facts.tensor(ref.input(0)).constant) is not None
    ]
    for ref, condition in wanted:
        with at(ref):
            _take_branch(lowering, ref, "then_branch" if condition else "else_branch")
        lowering.edits.retire(ref.node)
    lowering.edits.finish()
    return bool(wanted)


def _take_branch(lowering: Lowering, ref: NodeRef, label: str) -> None:
    """Put the nodes of a branch before its If, and what it gives out in the place of the If's."""
    node, body = ref.node, dict(bodies(ref.node))[label]
    scope, ends = node.graph, list(body.outputs)
    if not isinstance(scope, ir.Graph):
        raise refusal("a sequence goes through a branch of a function", "inline the function")
    body.outputs.clear()
    inside, point = list(body), InsertionPoint(lowering, node.name or "If", scope, node)
    for held in body.initializers.values():  # it would lend a new name to the caller's tensor
        made = point.op("Constant", [], {"value": held.const_value})
        ir.convenience.replace_all_uses_with(held, made)
        ends = [made if end is held else end for end in ends]
    body.remove(inside)
    scope.insert_before(node, inside)
    for held in chain(*(inner.outputs for inner in inside)):
        if held.name:
            held.name = lowering.names.fresh(held.name)
    for old, new in zip(node.outputs, ends, strict=True):
        point.replace(old, new)
    reason = next(lowering.reasons[made] for made in node.outputs if made in lowering.reasons)
    lowering.changed(ref, f"its {label}, which is always taken", reason)


def unwrap_optionals(lowering: Lowering) -> bool:
    """Put what optional values hold in their place, where the target has none; whether any was."""
    wanted = [
        ref
        for ref in lowering.refs.values()
        if ref.node.domain == ""
        and ref.op_type in OPTIONAL_OPERATORS
        and lowering.reason(ref.node) is not None
    ]
    held: dict[ir.Value, ir.Value | None] = {}
    for ref in wanted:
        with at(ref):
            became = _unwrap(lowering, ref, held)
            entry = lowering.reason(ref.node)
            lowering.changed(ref, became, entry)
        lowering.edits.retire(ref.node)
    lowering.edits.finish()
    return bool(wanted)


def _unwrap(lowering: Lowering, ref: NodeRef, held: dict[ir.Value, ir.Value | None]) -> str:
    """Replace one node; returns what it became. What each optional holds is noted in `held`."""
    node, given = ref.node, ref.input(0)
    made = node.outputs[0]
    if ref.op_type == "Optional":
        users = {user.op_type for user, _ in made.uses()} - OPTIONAL_OPERATORS
        if made.is_graph_output() or users:
            where = ", ".join(sorted(users)) or "an output"
            raise refusal(f"an optional value goes to {where}, and the target has none")
        held[made] = given
        return "its element"
    if given is not None and given not in held and isinstance(given.type, ir.OptionalType):
        raise refusal(
            f"whether '{given.name}' has an element is known only at run time, and the target has"
            " no optional values",
            "make it a tensor",
        )
    element = held.get(given, given) if given is not None else None
    point = InsertionPoint.before(lowering, ref)
    if ref.op_type == "OptionalHasElement":
        point.replace(made, point.constant(element is not None, np.bool_))
        return "Constant"
    if element is None:
        raise refusal("it takes the element of an optional value that has none")
    point.replace(made, element)
    return "the element itself"
