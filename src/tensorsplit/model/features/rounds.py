"""How many rounds a Loop or a Scan has, and what a Loop gives after none."""

from __future__ import annotations

from collections.abc import Iterable

import onnx_ir as ir

from tensorsplit.core.dimensions import Dim, is_at_least, is_known
from tensorsplit.model.features.shared_memory import loop_layer
from tensorsplit.model.features.values import has_known_shape
from tensorsplit.model.graph.calculation import FIRST_WITH_RANGE
from tensorsplit.model.graph.held_tensors import constant
from tensorsplit.model.graph.loops import (
    FIRST_SCAN_WITHOUT_BATCHES,
    axes_of_scan,
    body_of,
    carried_by,
    count_and_condition,
    is_loop,
    scanned_by,
    states_of,
)
from tensorsplit.model.graph.nodes import NodeRef, bodies, is_operator, is_used
from tensorsplit.model.graph.producers import first_input, origins, passed_from, producer_of
from tensorsplit.model.graph.uses import is_passed_on
from tensorsplit.model.infer.analysis import Facts
from tensorsplit.model.reached import each_once


def rounds_may_be_0(node: ir.Node, opset: int, facts: Facts, seen: Facts) -> bool:
    """Return whether a Loop may have no round, and gives more then than what it was given.

    It has one where the engine sees so, as of a number and a condition that are defaults (D20).
    """
    return (
        is_loop(node)
        and not _is_seen_to_run(node, seen)
        and (
            _counts_below_0(node, facts)
            or bool(given_without_rounds(node, facts))
            or has_no_round(node, facts)
            or (
                opset >= FIRST_WITH_RANGE
                and bool(fixed_ends(node, facts, seen) or rounds_by_default(node, facts))
            )
        )
    )


def layer_may_have_no_round(node: ir.Node, facts: Facts) -> bool:
    """Return whether a Loop of an IR may have no round, and gives more than what it was given.

    A number of rounds below 0 does not limit them there.
    """
    held = loop_layer(node) if node.op_type == "Loop" else None
    if held is None or all(any(facts.tensor(each).constant or ()) for each in node.inputs[:2]):
        return False
    _, ports = held
    outside = {each.inner: each.outer for each in ports.inputs}
    starts = {end: outside.get(state) for end, state in ports.back_edges}
    for port in ports.outputs:
        if port.outer is None or not is_used(node.outputs[port.outer]):
            continue
        start = starts.get(port.inner) if port.axis is None else None
        ends = (None if start is None else node.inputs[start]), node.outputs[port.outer]
        if start is None or len({facts.tensor(each).shape for each in ends}) > 1:
            return True
    return False


def has_no_rows(ref: NodeRef, facts: Facts) -> bool:
    """Return whether a Scan is given no rows by all it scans; one with batches is left out.

    So may a TensorIterator be.
    """
    numbers = _numbers_of_rows(ref, facts)
    return bool(numbers) and all(is_known(number) and number == 0 for number in numbers)


def rows_may_be_0(ref: NodeRef, facts: Facts) -> bool:
    """Return whether a Scan may be given no rows, or some; one with batches is left out.

    So is one of rows without elements: see `empty_rows_may_be_0`. A TensorIterator counts too.
    """
    return _rows_may_be_0(ref, facts) and not _are_empty(ref, facts)


def empty_rows_may_be_0(ref: NodeRef, facts: Facts) -> bool:
    """Return whether a Scan may be given no rows, or some without elements.

    In a Loop that takes its place a Gather would take them, of which OpenVINO dies.
    """
    return _rows_may_be_0(ref, facts) and _are_empty(ref, facts)


def _rows_may_be_0(ref: NodeRef, facts: Facts) -> bool:
    numbers = _numbers_of_rows(ref, facts)
    is_sure = any(number is not None and is_at_least(number, 1) for number in numbers)
    return bool(numbers) and not (is_sure or has_no_rows(ref, facts))


def _are_empty(ref: NodeRef, facts: Facts) -> bool:
    """Return whether a Scan takes rows without elements."""
    axes, _ = axes_of_scan(ref.node)
    shapes = [facts.tensor(held).shape or () for held in ref.node.inputs[-len(axes) :]]
    pairs = zip(shapes, axes, strict=False)
    return any(0 in shape[:axis] + shape[axis:][1:] for shape, axis in pairs)


def may_have_uneven_rows(ref: NodeRef, facts: Facts) -> bool:
    """Return whether what a Scan scans may have different numbers of rows."""
    numbers = _numbers_of_rows(ref, facts)
    return len(numbers) > 1 and not (all(map(is_known, numbers)) and len(set(numbers)) == 1)


def has_open_rows(node: ir.Node, facts: Facts) -> bool:
    """Return whether a Scan puts rows together of which its body gives a dimension not known.

    Without rows, engines and lowering know no such dimension. Rows that are not used are left out.
    """
    states = len(states_of(node))
    pairs = zip(node.outputs[states:], body_of(node).outputs[states:], strict=False)
    return any(is_used(made) and not has_known_shape(row, facts) for made, row in pairs)


def _numbers_of_rows(ref: NodeRef, facts: Facts) -> list[Dim]:
    """Return the length of each axis that a Scan goes along; of one with batches none.

    Of layers, a TensorIterator goes along axes.
    """
    if ref.op_type == "TensorIterator" and (held := loop_layer(ref.node)) is not None:
        ends = ((port.outer, port.axis) for port in held[1].inputs if port.axis is not None)
        known = (
            (facts.tensor(ref.input(outer)).shape, axis)
            for outer, axis in ends
            if outer is not None
        )
        return [
            None if shape is None or axis >= len(shape) else shape[axis] for shape, axis in known
        ]
    scanned = len(scanned_by(ref.node))
    if not scanned or ref.opset < FIRST_SCAN_WITHOUT_BATCHES:
        return []
    shapes = [facts.tensor(held).shape for held in ref.node.inputs[-scanned:]]
    return [
        shape[axis] if shape is not None and -len(shape) <= axis < len(shape) else None
        for shape, axis in zip(shapes, axes_of_scan(ref.node)[0], strict=False)
    ]


def fixed_ends(node: ir.Node, facts: Facts, seen: Facts) -> list[tuple[int, dict[int, int]]]:
    """Return the outputs of a body whose shape is seen, where no round may leave another shape.

    Each is given by its place among what the loop carries, with the lengths of those axes.
    """
    found = []
    for place, each in enumerate(carried_by(node) if may_have_no_round(node, facts) else ()):
        start, end = facts.tensor(each.start).shape, seen.tensor(each.end).shape
        if start is None or end is None or len(start) != len(end) or _is_opened(each.end):
            continue  # OpenVINO runs no loop whose tensors change their rank
        pairs = enumerate(zip(start, end, strict=True))
        axes = {axis: to for axis, (one, to) in pairs if is_known(to) and one != to}
        found += [(place, axes)] if axes else []
    return found


def _is_opened(end: ir.Value) -> bool:
    """Return whether a tensor is gathered by a Range, so that an engine sees no length of it."""
    made = end.producer()
    if made is None or made.op_type != "Gather":
        return False
    makers = map(producer_of, made.inputs[1:2])
    return any(maker is not None and maker.op_type == "Range" for maker in makers)


def rounds_by_default(node: ir.Node, facts: Facts) -> list[int]:
    """Return the places of a Loop's number of rounds and condition that are defaults, and 0.

    An engine that takes defaults for constants knows then that there is no round.
    """
    if not may_have_no_round(node, facts):
        return []
    return [i for i, held in enumerate(node.inputs[:2]) if held is not None and _is_default(held)]


def _is_default(value: ir.Value) -> bool:
    """Return whether a value is calculated from defaults and constants alone, which may be 0.

    What a CumSum gives counts as fed: engines do not calculate it beforehand.
    """

    def operands(held: ir.Value) -> Iterable[ir.Value]:
        made = None if held.is_initializer() else held.producer()
        return () if made is None else filter(None, made.inputs)

    found = False
    for held in each_once([value], operands):
        made = held.producer()
        if held.is_initializer():
            found = found or held.is_graph_input()
        elif made is None or made.op_type == "CumSum" or bodies(made):
            return False
    return found


def _counts_below_0(node: ir.Node, facts: Facts) -> bool:
    """Return whether a Loop may be given a number of rounds below 0, and its condition holds."""
    count, _ = count_and_condition(node)
    return not (count is None or _is_at_least(0, count, facts) or includes_count(node, facts))


def has_no_round(node: ir.Node, facts: Facts) -> bool:
    """Return whether a Loop has no round, whatever it is given at run time."""
    count, going = count_and_condition(node)
    holds = constant(passed_from(going))
    most = None if count is None else facts.tensor(count).constant
    return (holds is not None and not holds.any()) or (bool(most) and max(most or ()) < 1)


def includes_count(node: ir.Node, facts: Facts) -> bool:
    """Return whether the first round of a Loop takes place wherever its condition holds."""
    count, going = count_and_condition(node)
    return count is None or _is_at_least(1, count, facts) or _implies_a_round(going, count)


def given_without_rounds(node: ir.Node, facts: Facts) -> list[ir.Value]:
    """Return the used results of a Loop that, after no round, may differ from what it was given.

    These are what it carries if its body does not read that, and scan outputs, but for those that
    are left out at once if the first round did not take place.
    """
    if not may_have_no_round(node, facts):
        return []
    kept = {each.result for each in carried_by(node) if is_passed_on(each.inside, node)}
    rows = node.outputs[len(states_of(node)) :] if includes_count(node, facts) else ()
    _, going = count_and_condition(node)
    return [
        given
        for given in node.outputs
        if given not in kept
        and is_used(given)
        and not (
            given in rows
            and not given.is_graph_output()
            and all(_leaves_out(use.node, going) for use in given.uses())
        )
    ]


def may_have_no_round(node: ir.Node, facts: Facts) -> bool:
    """Return whether a Loop may have no round, whatever it gives then."""
    count, going = count_and_condition(node)
    return going is not None or not (count is None or _is_at_least(1, count, facts))


def _is_seen_to_run(node: ir.Node, seen: Facts) -> bool:
    """Return whether a Loop is given a condition, and a number, that are seen to have a round."""
    count, going = (*node.inputs, None, None)[:2]
    known = () if going is None else seen.tensor(going).constant
    has_count = count is None or _is_at_least(1, count, seen)
    return has_count and known is not None and all(known)


def _is_at_least(least: int, count: ir.Value, facts: Facts) -> bool:
    number = facts.tensor(count).integer
    return number is not None and is_at_least(number, least)


def _implies_a_round(going: ir.Value | None, count: ir.Value) -> bool:
    """Return whether a condition includes that a number is above 0."""
    waiting, known = [going], {going}
    while waiting:
        made = producer_of(waiting.pop())
        if made is None or made.domain != "":
            continue
        if made.op_type == "Less" and len(made.inputs) > 1:
            least = constant(made.inputs[0])
            is_above = least is not None and bool((least >= 0).all())
            if is_above and count in origins(made.inputs[1], _reranked):
                return True
        elif made.op_type == "And":
            waiting += [each for each in made.inputs if each not in known]
            known.update(made.inputs)
    return False


def _reranked(node: ir.Node) -> ir.Value | None:
    """Return the number that a node gives with another rank; None for other nodes."""
    is_own = is_operator(node, "Reshape", "Squeeze")
    return first_input(node) if is_own else None


def _leaves_out(reader: ir.Node, going: ir.Value | None) -> bool:
    """Return whether a node leaves out all rows if a condition does not hold, or counts them."""
    if reader.op_type == "Shape":
        counts = [node for value in reader.outputs for node in value.consumers()]
        users = [node for count in counts for value in count.outputs for node in value.consumers()]
        return all(each.op_type == "Gather" for each in counts) and all(
            _is_limited(each, going) for each in users
        )
    place = _LIMITS.get(reader.op_type)
    if place is None or place != len(reader.inputs) - 1:
        return False
    limit = reader.inputs[place]
    made = producer_of(limit)
    return made is not None and _is_limited(made, going)


_LIMITS = {"Compress": 1, "Slice": 2}
"""The last input of what ends rows: it gives which of them stay, or where they end."""


def _is_limited(node: ir.Node, going: ir.Value | None) -> bool:
    """Return whether a number of rows is made conditions, or 0, if a condition does not hold."""
    if node.op_type == "Expand":
        return node.inputs[0] is going
    casts = map(producer_of, node.inputs)
    return node.op_type == "Mul" and any(
        cast is not None and cast.op_type == "Cast" and cast.inputs[0] is going for cast in casts
    )
