"""Features of If, Loop and Scan."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import TypeAlias

import onnx_ir as ir

from tensorsplit.core.dimensions import Dim, Shape, are_known, is_known, may_be_same, names_in
from tensorsplit.core.records.openvino import DOMAIN
from tensorsplit.model.features.from_constants import MOST_STEPS, is_constant, is_fixed
from tensorsplit.model.features.given_as_is import given_inputs
from tensorsplit.model.features.rounds import (
    empty_rows_may_be_0,
    has_no_rows,
    may_have_no_round,
    rounds_may_be_0,
    rows_may_be_0,
)
from tensorsplit.model.features.shared_memory import (
    carried_numbers,
    loop_layer,
    overwritten,
    shared_states,
)
from tensorsplit.model.features.split_features import splits_open_axis
from tensorsplit.model.features.values import has_known_shape, has_strings, is_empty
from tensorsplit.model.graph.called_in_onnx import OF_SHAPES, gives_shape, operator_of
from tensorsplit.model.graph.facts import Tensor
from tensorsplit.model.graph.held_tensors import constant, tensor_of
from tensorsplit.model.graph.loops import (
    FIRST_SCAN_WITHOUT_BATCHES,
    Carried,
    axes_of_scan,
    body_of,
    captured_by,
    captured_in_scan,
    carried_by,
    is_loop,
    loop_body,
    obeys_condition,
    scanned_by,
    states_of,
)
from tensorsplit.model.graph.nodes import (
    NodeRef,
    attribute_of,
    bodies,
    branch_label,
    is_operator,
    is_used,
    nodes_within,
    scopes_inside,
)
from tensorsplit.model.graph.producers import first_input, passed_from, producer_of
from tensorsplit.model.graph.uses import calculated_from, is_needed, is_passed_on
from tensorsplit.model.infer.analysis import Facts
from tensorsplit.model.infer.shape_rules import REDUCTIONS
from tensorsplit.model.reached import each_once

_CALCULATED_TYPES = frozenset(
    {
        *(ir.DataType.FLOAT, ir.DataType.FLOAT16, ir.DataType.INT32),
        *(ir.DataType.INT8, ir.DataType.UINT8),
    }
)
"""Element types that OpenVINO calculates in, so that it converts no output of them."""


_HIDES_RANK = frozenset({"ConcatFromSequence", "Loop", "MeanVarianceNormalization", "SequenceAt"})
"""Operators of which ONNX Runtime takes the rank of the result from declarations only."""


_RANKED_BY = frozenset({"Split", "Squeeze", "Unsqueeze", *REDUCTIONS})
"""Operators of which ONNX Runtime finds no rank where their lengths or axes are not constant."""

_HIDDEN_AT = {
    "Compress": range(9, 11),
    "GreaterOrEqual": range(12, 16),
    "GroupNormalization": range(21, 29),
    "LessOrEqual": range(12, 16),
}
"""Opsets at which ONNX Runtime finds no rank of the results of an operator."""

_FIRST_RANKED_BY_LENGTH = 14
"""From here on ONNX Runtime finds the rank of a Reshape by how many lengths it is given."""


_FIRST_IF_OF_ANY_SHAPES = 11
"""From here on the branches of an If may give different shapes."""

_OF_TENSORS = frozenset({"SequenceLength"})

_HAS_FIXED_RANK = OF_SHAPES | _OF_TENSORS
"""Operators whose results have the same rank, whatever they are given."""


def results_to_settle(ref: NodeRef, seen: Facts) -> list[ir.Value]:
    """Return results of an If that are read by nodes without bodies, and whose shape is not seen.

    OpenVINO adds such a node at an output of the model, too, which converts most element types.
    Strings are left out, which no loop carries, and what an IR gives no dimensions, as scalars.
    """
    node = ref.node
    if operator_of(node) != "If":
        return []
    is_outer = ref.function is None and not ref.around
    return [
        made
        for made in node.outputs
        if isinstance(fact := seen.of(made), Tensor)
        and fact.element_type not in (None, ir.DataType.STRING)
        and not (are_known(fact.shape) if fact.shape is not None else node.domain == DOMAIN)
        and 0 not in (fact.shape or ())
        and (
            any(use.node.graph is node.graph and not bodies(use.node) for use in made.uses())
            or (is_outer and made.is_graph_output() and fact.element_type not in _CALCULATED_TYPES)
        )
    ]


def unused_and_changing(node: ir.Node, facts: Facts, seen: Facts) -> list[Carried]:
    """Return the states of a Loop that no output depends on and whose dimensions may change.

    They may be others than are seen at the start. A loop of which nothing is used has none.
    """
    changing = [
        each
        for each in carried_by(node)
        if _may_differ(facts.tensor(each.result).shape, seen.tensor(each.start).shape)
    ]
    unused = [each for each in changing if not is_needed(each.result)]
    return unused if unused and any(map(is_needed, node.outputs)) else []


def _may_differ(shape: Shape | None, start: Shape | None) -> bool:
    """Return whether a shape may have other dimensions than the numbers at the start."""
    if start is None:
        return False
    if shape is None or len(shape) != len(start):
        return any(map(is_known, start))
    return any(is_known(one) and one != other for one, other in zip(start, shape, strict=True))


def ignores_condition(node: ir.Node) -> bool:
    """Return whether a Loop does not obey the condition of its body, which may not hold.

    Such a condition has no meaning: the loop has as many rounds as its number.
    """
    if not is_loop(node) or obeys_condition(node.inputs):
        return False
    body = body_of(node)
    if not body.outputs:  # which is refused elsewhere
        return False
    source = passed_from(body.outputs[0])
    known = constant(source)
    return source not in body.inputs[1:2] and not (known is not None and known.all())


def reads_of_condition(node: ir.Node) -> list[tuple[ir.Node, int]]:
    """Return the readers of a Loop's condition in its body, except the node that passes it on.

    These are nodes, each with the place of its input.
    """
    if not is_loop(node) or len(body_of(node).inputs) < 2:
        return []
    condition = body_of(node).inputs[1]
    passed = _passed_condition(node)
    made = producer_of(passed)
    held = dict.fromkeys(filter(None, (condition, passed)))
    return [(use.node, use.idx) for each in held for use in each.uses() if use.node is not made]


def _passed_condition(node: ir.Node) -> ir.Value | None:
    """Return the condition that a body gives, if that is its own, or an Identity makes it of it."""
    end = next(iter(body_of(node).outputs), None)
    given = list(body_of(node).inputs[1:2])  # none, in a body that is refused elsewhere
    made = producer_of(end)
    if end in given or not is_operator(made, "Identity"):
        return end if end in given else None
    return end if given and list(made.inputs[:1]) == given else None


def reads_condition(node: ir.Node) -> bool:
    """Return whether nodes use a Loop's condition in its body, where OpenVINO's import loses it.

    That is where the loop is given none, or the body passes on the one that it is given.
    """
    is_lost = is_loop(node) and (not any(node.inputs[1:2]) or _passed_condition(node) is not None)
    readers = (reader for reader, _ in reads_of_condition(node)) if is_lost else ()
    return any(is_needed(made) for reader in readers for made in reader.outputs)


def scanned_across(node: ir.Node, facts: Facts) -> bool:
    """Return whether a Scan goes along another axis than the first of what may have no elements."""
    scanned = len(scanned_by(node))
    if not scanned or not any(map(any, axes_of_scan(node))):
        return False
    ends = (*node.inputs[len(node.inputs) - scanned :], *node.outputs[len(states_of(node)) :])
    shapes = [
        facts.tensor(held).shape
        for held, axis in zip(ends, chain(*axes_of_scan(node)), strict=False)
        if axis
    ]
    return any(shape is None or not all(is_known(dim) and dim for dim in shape) for shape in shapes)


def has_unread_rows(node: ir.Node) -> bool:
    """Return whether nothing that a Scan gives goes back to its rows.

    A number of tensors does not, of which the import makes a constant.
    """
    rows = scanned_by(node)
    return bool(rows) and not any(is_passed_on(row, node, but=_counts_tensors) for row in rows)


def _counts_tensors(node: ir.Node) -> bool:
    return operator_of(node) in _OF_TENSORS


_SMALLER_THAN_BYTES = ("FLOAT4E2M1", "INT2", "INT4", "UINT2", "UINT4")


def small_rows(node: ir.Node, facts: Facts) -> tuple[str, ...]:
    """Return the types of rows of a Loop or Scan whose elements are smaller than a byte."""
    if loop_body(node) is None:
        return ()
    made = [each for each in node.outputs[len(states_of(node)) :] if is_used(each)]
    given = node.inputs[len(node.inputs) - len(scanned_by(node)) :]
    kinds = set[ir.DataType]().union(*map(facts.element_types, (*made, *given)))
    return tuple(sorted(each.name.lower() for each in kinds if each.name in _SMALLER_THAN_BYTES))


def unread_rows(node: ir.Node, facts: Facts) -> list[int]:
    """Return the places of the Parameters of a TensorIterator that are rows, if none is read.

    OpenVINO calculates no shape that it knows, but that of a row itself, and leaves out what
    nothing uses of what the layer gives. It has a number of rounds for a Loop, read or not.
    """
    held = loop_layer(node) if node.op_type == "TensorIterator" else None
    if held is None:
        return []
    body, ports = held
    rows = [port.inner for port in ports.inputs if port.axis is not None]
    going = {end for end, start in ports.back_edges if is_used(body.inputs[start])}
    left = {
        port.inner
        for port in ports.outputs
        if port.outer is not None and not is_used(node.outputs[port.outer])
    }
    ends = {held for place, held in enumerate(body.outputs) if place not in left - going}

    def is_known_shape(reader: ir.Node) -> bool:
        held = first_input(reader)
        is_other = gives_shape(reader) and held not in body.inputs
        return is_other and has_known_shape(held, facts)

    read = (calculated_from(body.inputs[row], but=is_known_shape) for row in rows)
    return rows if all(map(ends.isdisjoint, read)) else []


def joins_across(node: ir.Node, facts: Facts) -> bool:
    """Return whether a loop of an IR joins what may be empty along another axis than the first."""
    held = loop_layer(node)
    for port in () if held is None else held[1].outputs:
        if port.axis is None or port.outer is None or not is_used(node.outputs[port.outer]):
            continue
        shape = facts.tensor(node.outputs[port.outer]).shape
        before = (None,) if shape is None else shape[: port.axis]
        if (
            port.axis
            and not are_known(shape or before)
            and not all(is_known(dim) and dim > 0 for dim in before)
        ):
            return True
    return False


def takes_strings(node: ir.Node, facts: Facts) -> bool:
    """Return whether a loop of an IR gives out rows of strings, and not only their known shape."""
    held = loop_layer(node)
    return held is not None and any(
        has_strings(held[0].outputs[port.inner], facts)
        and _is_read(node.outputs[port.outer], facts)
        for port in held[1].outputs
        if port.axis is not None and port.outer is not None
    )


def _is_read(value: ir.Value, facts: Facts) -> bool:
    """Return whether anything reads a value that does more than measure what is known."""
    is_known = has_known_shape(value, facts)
    return value.is_graph_output() or any(
        not (is_known and gives_shape(use.node)) for use in value.uses()
    )


def _gives_unknown_rank(node: ir.Node, facts: Facts) -> bool:
    """Return whether the rank of something that a body gives is not known, nor declared."""
    ends = [facts.of(end) for _, body in bodies(node) for end in body.outputs]
    return any(isinstance(end, Tensor) and end.shape is None for end in ends)


def _hides_rows(ref: NodeRef, facts: Facts) -> bool:
    """Return whether a Loop that may have no round puts together rows of shapes that it hides."""
    node = ref.node
    if not is_loop(node) or not may_have_no_round(node, facts):
        return False
    states = len(states_of(node))
    pairs = zip(node.outputs[states:], body_of(node).outputs[1 + states :], strict=False)
    rows = [row for made, row in pairs if is_used(made)]
    return hides_ranks(ref, rows, facts, has_lengths=True)


def hides_ranks(
    ref: NodeRef, ends: Sequence[ir.Value], facts: Facts, *, has_lengths: bool = False
) -> bool:
    """Return whether a body gives what follows from a sequence or a Loop, and declares no rank.

    ONNX Runtime does not look for the ranks of these, nor of what a Loop carries, of a Reshape by
    lengths of run time before opset 14, or, if lengths matter, for how many rows a Loop gives.
    Ranks that nobody knows are left out. Around the node so many steps are taken at most: each of
    many Scans would go through all the model.
    """
    inside, steps = set(scopes_inside(ref.node)), 0
    waiting = [end for end in ends if facts.tensor(end).shape is not None]
    known = set(waiting)
    owners = (*ref.outer, *nodes_within(ref.node))
    given = dict(chain(*map(_given_to_bodies, owners)))
    while waiting and steps < MOST_STEPS:
        held = waiting.pop()
        made = held.producer()
        steps += held.graph not in inside
        if _declares(held, facts) if has_lengths else held.shape is not None:
            continue
        sources: set[ir.Value] | None
        if made is None:
            sources = given.get(held, set())
        elif operator_of(made) in _HAS_FIXED_RANK:
            continue
        else:
            is_counted = has_lengths and operator_of(made) == "Loop"
            sources = None if is_counted else _sources_of_rank(held, made, ref.opset, facts)
        if sources is None:
            return True
        waiting += sources - known
        known |= sources
    return False


def _given_to_bodies(node: ir.Node) -> Iterator[tuple[ir.Value, set[ir.Value] | None]]:
    """Yield the inputs of a loop's body, each with the sources of its rank for ONNX Runtime.

    It does not look for the rank of what a Loop carries: then that is None.
    """
    if is_loop(node):
        yield from dict.fromkeys(body_of(node).inputs[2:]).items()
    elif scanned_by(node):
        inner = body_of(node).inputs
        outer = node.inputs[max(0, len(node.inputs) - len(inner)) :]  # a batch has lengths before
        yield from zip(inner, ({held} - {None} for held in outer), strict=False)


def _declares(held: ir.Value, facts: Facts) -> bool:
    """Return whether a value declares a shape, with each length that is known of it."""
    known = facts.tensor(held).shape
    if held.shape is None or known is None:
        return held.shape is not None
    pairs = zip(held.shape, known, strict=False)
    return all(isinstance(declared, int) for declared, length in pairs if is_known(length))


def _sources_of_rank(
    held: ir.Value, made: ir.Node, opset: int, facts: Facts
) -> set[ir.Value] | None:
    """Return the values that ONNX Runtime infers a result's rank from; None if it infers none."""
    if is_loop(made) and (place := made.outputs.index(held)) >= len(states_of(made)):
        return {body_of(made).outputs[1 + place]}  # the rows that it puts together
    if made.domain == "" and made.op_type in _HIDES_RANK:
        return None
    operator, operand = operator_of(made), made.inputs[1] if len(made.inputs) > 1 else None
    if opset in _HIDDEN_AT.get(operator, ()) or (operator == "Slice" and _mixes_axes(made)):
        return None
    is_reshape = operator == "Reshape"
    if operand is not None and (operator in _RANKED_BY or is_reshape):
        is_seen = _is_fixed_for_onnx(operand, facts)
        if not is_seen and not (is_reshape and opset >= _FIRST_RANKED_BY_LENGTH):
            return None
        if is_reshape and facts.tensor(operand).shape is not None:
            return {operand}
    return {*filter(None, made.inputs), *(end for _, b in bodies(made) for end in b.outputs)}


def _mixes_axes(node: ir.Node) -> bool:
    """Return whether an attribute gives axes that are not in order."""
    axes = attribute_of(node, "axes", ir.AttributeType.INTS) or ()
    return [*axes] != sorted(axes)


def _is_fixed_for_onnx(held: ir.Value, facts: Facts) -> bool:
    """Return whether numbers are constant, and from no shape but one that is declared or follows.

    It follows where all before it is known, too. We may know others by what onnx does not infer.
    """
    waiting, known, measured = [held], {held}, set[ir.Value]()
    while waiting and len(known) < MOST_STEPS:
        each = waiting.pop()
        made = each.producer()
        sources = set[ir.Value]() if made is None else {*filter(None, made.inputs)}
        if each in measured:
            if each.shape is not None and each.shape.is_static():
                continue
            if not are_known(facts.tensor(each).shape or (None,)):
                return False
        if each in measured or gives_shape(made):
            measured |= sources
        waiting += sources - known
        known |= sources
    return is_fixed(held, facts)


def keeps_strings(node: ir.Node, facts: Facts, seen: Facts) -> bool:
    """Return whether a loop that is used holds strings which an engine can't leave out before.

    Those are carried, or given out as rows that are used; or something that the loop gives is
    calculated from strings that its body uses or is given as rows, or from their shape.
    """

    def is_seen(reader: ir.Node) -> bool:
        return gives_shape(reader) and all(is_constant(made, seen) for made in reader.outputs)

    has_body = "body" in dict(bodies(node))
    if not has_body or not any(is_needed(made, is_seen) for made in node.outputs):
        return False
    states = states_of(node)
    rows = [made for made in node.outputs[len(states) :] if is_needed(made)]
    inside = [*scanned_by(node), *captured_by(node)]
    return any(has_strings(held, facts) for held in (*states, *rows)) or any(
        has_strings(held, facts) and is_passed_on(held, node) for held in inside
    )


def has_ranked_condition(node: ir.Node, seen: Facts) -> bool:
    """Return whether the condition of an If, which is one element, is seen to have several axes."""
    return node.op_type == "If" and len(seen.tensor(first_input(node)).shape or ()) > 1


def _has_uneven_branches(ref: NodeRef, seen: Facts) -> bool:
    """Return whether an If is seen to give different shapes, which is illegal before opset 11."""
    if ref.op_type != "If" or ref.opset >= _FIRST_IF_OF_ANY_SHAPES:
        return False
    held = dict(bodies(ref.node))
    labels = [label for label in map(branch_label, (True, False)) if label in held]
    ends = (held[label].outputs for label in labels)
    pairs = zip(*ends, strict=False) if len(labels) > 1 else ()
    return any(_are_uneven(list(pair), seen) for pair in pairs)


def _are_uneven(ends: list[ir.Value], seen: Facts) -> bool:
    """Return whether the engine sees two different shapes.

    Before opset 13 it knows no length of a part of an axis that is not known, nor what follows.
    """
    shapes = [seen.tensor(each).shape for each in ends]
    if may_be_same(shapes[0], shapes[1]):
        return False
    if len({None if shape is None else len(shape) for shape in shapes}) > 1:
        return True
    before = each_once(ends, _made_from)
    return not any(splits_open_axis(producer_of(each), seen) for each in before)


def _made_from(held: ir.Value) -> list[ir.Value]:
    made = producer_of(held)
    return [] if made is None else [each for each in made.inputs if each is not None]


def _is_undeclared(node: ir.Node, place: int) -> bool:
    """Return whether a Loop's body declares no shape for one of its inputs."""
    inputs = body_of(node).inputs[place : place + 1] if is_loop(node) else ()
    return any(each.shape is None for each in inputs)


def undeclared_inputs(node: ir.Node, facts: Facts) -> list[ir.Value]:
    """Return the inputs of a loop's body whose rank is known, but not declared."""
    body = loop_body(node)
    given = () if body is None else body.inputs
    return [each for each in given if each.shape is None and facts.tensor(each).shape is not None]


def _needs_ranks(ref: NodeRef, facts: Facts, seen: Facts) -> bool:
    """Return whether a body with such inputs has a node that is imported for known ranks only."""
    return bool(undeclared_inputs(ref.node, facts)) and any(
        seen.tensor(held).shape is None and facts.tensor(held).shape is not None
        for inner in nodes_within(ref.node)
        for held in _imported_by_rank(inner, ref.opset, seen)
    )


def _imported_by_rank(node: ir.Node, opset: int, seen: Facts) -> list[ir.Value]:
    """Return the operands whose ranks OpenVINO has to know to import a node."""
    of_rank = _NEEDS_RANK.get(node.op_type) if node.domain == "" else None
    if of_rank is None or not of_rank(node, opset, seen):
        return []
    given = enumerate(node.inputs)
    places = _RANKED_AT.get(node.op_type, range(1))
    return [held for place, held in given if held is not None and place in places]


_OfRank: TypeAlias = Callable[[ir.Node, int, Facts], bool]


def _always(_: ir.Node, __: int, ___: Facts) -> bool:
    return True


def _up_to(last: int) -> _OfRank:
    return lambda _, opset, __: opset <= last


def _says(name: str, value: int) -> _OfRank:
    """Return whether an attribute has a value that is not its default."""
    return lambda node, _, __: attribute_of(node, name, ir.AttributeType.INT, 1 - value) == value


def _finds_place(node: ir.Node, opset: int, seen: Facts) -> bool:
    """Return whether an ArgMax or ArgMin drops the axis, or takes the last of equal elements."""
    without = _says("keepdims", 0), _says("select_last_index", 1)
    return any(holds(node, opset, seen) for holds in without)


def is_along_axis(node: ir.Node, opset: int, seen: Facts) -> bool:
    """Return whether a QuantizeLinear or DequantizeLinear is not known to be by one scale."""
    shape = seen.tensor(node.inputs[1]).shape if len(node.inputs) > 1 else None
    return opset >= _FIRST_ALONG_AXIS and shape not in ((), (1,))


_FIRST_ALONG_AXIS = 13
"""From here on QuantizeLinear and DequantizeLinear may have a scale for each channel."""

_NEEDS_RANK: Mapping[str, _OfRank] = {
    **dict.fromkeys(("ArgMax", "ArgMin"), _finds_place),
    **dict.fromkeys(("Attention", "Conv", "ConvInteger", "DepthToSpace", "SpaceToDepth"), _always),
    **dict.fromkeys(("InstanceNormalization", "LpNormalization", "QLinearMatMul"), _always),
    **dict.fromkeys(("ReverseSequence", "RotaryEmbedding"), _always),
    **dict.fromkeys(("LogSoftmax", "Softmax"), _up_to(12)),
    "DFT": _up_to(19),
    "DequantizeLinear": is_along_axis,
    "MaxPool": _says("storage_order", 1),
    "Pad": _up_to(10),
}
"""Operators that OpenVINO does not import for data of a rank that it does not know, and when."""

_RANKED_AT: Mapping[str, Container[int]] = {
    **dict.fromkeys(("Attention", "DequantizeLinear"), range(3)),
    "QLinearMatMul": (0, 3),
}
"""The operands whose rank it has to know, where that is not the first one alone."""


def declared_empty(node: ir.Node) -> list[ir.Value]:
    """Return the inputs of a Loop's or a Scan's body that it declares to be of shape (0)."""
    body = loop_body(node)
    return [] if body is None else [each for each in body.inputs if is_declared_empty(each)]


def is_declared_empty(held: ir.Value) -> bool:
    """Return whether a value is declared to be a list of no elements."""
    return held.shape is not None and tuple(held.shape) == (0,)


def has_uneven_rows(node: ir.Node, facts: Facts) -> bool:
    """Return whether what a Loop collects may have another shape in each round.

    The standard refuses that, at run time. What has a name only in the body may be another number
    in each round.
    """
    if not is_loop(node):
        return False
    states = len(states_of(node))
    rows = zip(node.outputs[states:], body_of(node).outputs[1 + states :], strict=False)
    shapes = [facts.tensor(row).shape for made, row in rows if is_used(made)]
    if any(shape is None or None in shape for shape in shapes):
        return True
    names = set().union(*(_names(shape or ()) for shape in shapes))
    if not names:
        return False
    around = [facts.tensor(held) for held in (*captured_by(node), *node.inputs) if held is not None]
    known = (_names((*(each.shape or ()), *(each.integers or ()))) for each in around)
    return not names <= set().union(*known)


def _names(dims: Iterable[Dim]) -> frozenset[str]:
    """Return the names that dimensions are made of."""
    return frozenset[str]().union(*map(names_in, dims))


def to_carry(node: ir.Node, facts: Facts) -> list[ir.Value]:
    """Return the values from around it that the body of a Scan uses and the Scan can carry.

    Engines want to know the ranks of tensors that a Scan carries.
    """
    return [
        held
        for held in captured_in_scan(node)
        if not isinstance(fact := facts.of(held), Tensor) or fact.shape is not None
    ]


def read_as_outputs(node: ir.Node) -> list[ir.Value]:
    """Return values from around an If that its branches read and a graph gives out in such a place.

    It is a place at which the branches give out something, too.
    """
    read = captured_by(node) if is_operator(node, "If") else []
    outputs = ((held, held.graph.outputs) for held in read if held.graph and held.producer())
    return [held for held, given in outputs if held in given[: len(node.outputs)]]


def of_bodies(ref: NodeRef, facts: Facts, seen: Facts) -> Iterator[str]:
    """Yield the features of an If, a Loop or a Scan."""
    node = ref.node
    if node.op_type not in ("If", "Loop", "Scan"):
        return
    is_inner, captured = ref.around[-1:] == ("Scan",), to_carry(node, facts)
    holds = {
        "empty_in_loop": is_loop(node) and any(is_empty(each, facts) for each in node.inputs[2:]),
        "unranked_in_scan": node.op_type == "Scan" and _gives_unknown_rank(node, facts),
        "scan_in_scan": node.op_type == "Scan" and is_inner,
        "captured_in_scan": any(tensor_of(held) is None for held in captured),
        "default_in_scan": any(tensor_of(held) is not None for held in captured),
        "carries_number": carried_numbers(node),
        "overwritten": overwritten(node, seen),
        "shares_states": shared_states(node, facts),
        "no_rows": has_no_rows(ref, facts),
        "empty_rows_may_be_0": node.op_type == "Scan" and empty_rows_may_be_0(ref, facts),
        "rows_may_be_0": node.op_type == "Scan" and rows_may_be_0(ref, facts),
        "undeclared_ranks": node.op_type == "Scan"
        and hides_ranks(ref, [end for _, body in bodies(node) for end in body.outputs], facts),
        "hidden_rows": _hides_rows(ref, facts),
        "unread_rows": has_unread_rows(node),
        "scanned_across": ref.opset >= FIRST_SCAN_WITHOUT_BATCHES and scanned_across(node, facts),
        "unused_in_loop": unused_and_changing(node, facts, seen),
        "ignored_condition": ignores_condition(node),
        "reads_condition": reads_condition(node),
        "uneven_rows": has_uneven_rows(node, facts),
        "ranked_condition": has_ranked_condition(node, seen),
        "output_in_branch": read_as_outputs(node),
        "uneven_branches": _has_uneven_branches(ref, seen),
        "undeclared_round": _is_undeclared(node, 0),
        "undeclared_condition": _is_undeclared(node, 1) and ref.input(1) is None,
        "empty_body_input": declared_empty(node),
        "undeclared_inputs": _needs_ranks(ref, facts, seen),
        "gives_inputs": given_inputs(node),
        "undeclared_rows": any(row.type is None for row in scanned_by(node)),
        "rounds_may_be_0": rounds_may_be_0(node, ref.opset, facts, seen),
        "used_result": results_to_settle(ref, seen),
        "strings_in_loop": keeps_strings(node, facts, seen),
    }
    yield from (name for name, held in holds.items() if held)
