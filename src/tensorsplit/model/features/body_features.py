"""What loops ask of an engine: what they capture and carry, and what they give after no round."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from itertools import chain, zip_longest

import onnx_ir as ir

from tensorsplit.core.dimensions import Dim, Shape, are_known, is_at_least, is_known
from tensorsplit.core.errors import SplitError
from tensorsplit.core.records.openvino import DOMAIN
from tensorsplit.model.features.called_in_onnx import operator_of
from tensorsplit.model.features.from_constants import gives_shape, is_constant
from tensorsplit.model.features.values import has_strings, is_empty
from tensorsplit.model.graph.calculation import FIRST_WITH_RANGE
from tensorsplit.model.graph.facts import Tensor
from tensorsplit.model.graph.nodes import (
    Carried,
    NodeRef,
    attribute_of,
    bodies,
    carried_by,
    constant,
    is_split,
    is_used,
    passed_from,
    scopes_in,
    tensor_of,
)
from tensorsplit.model.graph.rejoined import may_pass, passed_by
from tensorsplit.model.graph.uses import calculated_from, is_needed
from tensorsplit.model.infer.analysis import Facts
from tensorsplit.model.openvino_ir import LAYER_PORTS
from tensorsplit.model.openvino_ir.port_maps import read_ports

FIRST_SCAN_WITHOUT_BATCHES = 9

_AS_CALCULATED = frozenset(
    {
        *(ir.DataType.FLOAT, ir.DataType.FLOAT16, ir.DataType.INT32),
        *(ir.DataType.INT8, ir.DataType.UINT8),
    }
)
"""Element types that OpenVINO calculates in, so that it converts no output of them."""


def captured_in_scan(node: ir.Node) -> list[ir.Value]:
    """Return what the body of a Scan uses from around it, but for constants, in order.

    An input with a default is among them: another value may be fed (D20).
    """
    return captured_by(node) if (node.domain, node.op_type) == ("", "Scan") else []


_IN_PLACE = frozenset(
    {
        *("GroupNormalization", "LayerNormalization", "ScatterND", "Softmax"),
        *("GRN", "MVN", "ScatterUpdate"),
    }
)
"""What OpenVINO writes the result of where the data was, if nothing else reads that."""


def overwritten(node: ir.Node, seen: Facts) -> list[ir.Value]:
    """Return what a Loop's body uses from around it and overwrites, so that later rounds read that.

    These are tensors of a shape that is seen, of which a view may be all that is overwritten.
    """
    if not is_loop(node):
        return []
    shapes = {held: seen.tensor(held).shape for held in captured_by(node)}
    return [
        held
        for held, shape in shapes.items()
        if shape is not None and are_known(shape) and any(_overwriting(held, body_of(node)))
    ]


def overwriting_layers(node: ir.Node, facts: Facts) -> list[ir.Node]:
    """Return the layers in a Loop or TensorIterator that overwrite what each round is given again.

    Those are given tensors of a known shape.
    """
    if node.domain != DOMAIN or node.op_type not in ("Loop", "TensorIterator"):
        return []
    ((label, body),) = bodies(node)
    with suppress(SplitError):  # ports that do not fit
        ports = read_ports(str(node.metadata_props.get(LAYER_PORTS + label)), "")
        carried = {to for start, to in ports.back_edges if not _is_given_on(body, start, to)}
        again = {
            body.inputs[port.inner]: node.inputs[port.outer]
            for port in ports.inputs
            if port.outer is not None and port.axis is None and port.inner not in carried
        }
        shapes = {inner: facts.tensor(outer).shape for inner, outer in again.items()}
        held = [inner for inner, shape in shapes.items() if shape is not None and are_known(shape)]
        return list(dict.fromkeys(chain(*(_overwriting(each, body) for each in held))))
    return []


def _is_given_on(body: ir.Graph, start: int, to: int) -> bool:
    """Return whether a body carries on what it is given as it is."""
    return passed_from(body.outputs[start]) is body.inputs[to]


def _overwriting(held: ir.Value, body: ir.Graph) -> Iterator[ir.Node]:
    """Yield the nodes of a body that overwrite a tensor, or a view or a part of it."""
    waiting, known = [held], {held}
    while waiting:
        for use in waiting.pop().uses():
            reader = use.node
            operator = operator_of(reader)
            if not operator or reader.graph is not body:
                continue
            if operator in _IN_PLACE and use.idx == 0:
                yield reader
            elif may_pass(reader, use.idx) or operator == "Concat" or is_split(reader):
                waiting += [made for made in reader.outputs if made not in known]
                known.update(reader.outputs)


def captured_by(node: ir.Node) -> list[ir.Value]:
    """Return what the bodies of a node use from around it, but for constants, in order."""
    inside = [scope for _, body in bodies(node) for scope in scopes_in(body)]
    own, used = set(inside), dict[ir.Value, None]()
    for value in chain(*(inner.inputs for inner in chain(*inside))):  # which make all outputs
        if value is not None and value.graph not in own:
            used[value] = None
    return [value for value in used if not _is_constant(passed_from(value) or value)]


def _is_constant(value: ir.Value) -> bool:
    """Return whether a value is a constant, and not a default that may be overridden (D20)."""
    return tensor_of(value) is not None and not value.is_graph_input()


def results_to_settle(ref: NodeRef, seen: Facts) -> list[ir.Value]:
    """Return what an If gives to nodes, of a shape that is not seen, but for those with bodies.

    OpenVINO adds such a node at an output of the model, too, which converts most element types.
    Strings are left out, which no loop carries, and what an IR says no dimension of, as of scalars.
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
        and (
            any(use.node.graph is node.graph and not bodies(use.node) for use in made.uses())
            or (is_outer and made.is_graph_output() and fact.element_type not in _AS_CALCULATED)
        )
    ]


def unused_and_changing(node: ir.Node, facts: Facts, seen: Facts) -> list[Carried]:
    """Return what a Loop carries and no output is calculated from, if its dimensions may change.

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


def count_and_condition(node: ir.Node) -> tuple[ir.Value | None, ir.Value | None]:
    """Return what a Loop is given for the most rounds, and whether the first one takes place.

    A condition that is constant and holds is left out.
    """
    count, going = (*node.inputs, None, None)[:2]
    known = constant(passed_from(going))
    return count, None if known is not None and known.size == 1 and known.all() else going


def ignores_condition(node: ir.Node) -> bool:
    """Return whether a Loop is given no condition, and its body gives one that may not hold.

    Such a condition has no meaning: the loop has as many rounds as its number says.
    """
    if not is_loop(node) or any(node.inputs[1:2]):
        return False
    body = body_of(node)
    if not body.outputs:  # which is refused elsewhere
        return False
    source = passed_from(body.outputs[0])
    known = constant(source)
    return source not in body.inputs[1:2] and not (known is not None and known.all())


def reads_of_condition(node: ir.Node) -> list[tuple[ir.Node, int]]:
    """Return what reads a Loop's condition in its body, but for the node that passes it on.

    These are nodes, each with the place of its input.
    """
    if not is_loop(node) or len(body_of(node).inputs) < 2:
        return []
    condition = body_of(node).inputs[1]
    passed = _passed_condition(node)
    made = None if passed is None else passed.producer()
    uses = [*condition.uses(), *(() if passed is None else passed.uses())]
    return [(use.node, use.idx) for use in uses if use.node is not made]


def _passed_condition(node: ir.Node) -> ir.Value | None:
    """Return what one Identity makes of a Loop's condition, if the body gives that as condition."""
    end = next(iter(body_of(node).outputs), None)
    made = None if end is None else end.producer()
    if made is None or (made.domain, made.op_type) != ("", "Identity"):
        return None
    given = list(body_of(node).inputs[1:2])  # none, in a body that is refused elsewhere
    return end if given and list(made.inputs[:1]) == given else None


def reads_condition(node: ir.Node) -> bool:
    """Return whether nodes use a Loop's condition in its body, where OpenVINO's import loses it.

    That is where the loop is given none, or the body passes on the one that it is given.
    """
    is_lost = is_loop(node) and (not any(node.inputs[1:2]) or _passed_condition(node) is not None)
    readers = (reader for reader, _ in reads_of_condition(node)) if is_lost else ()
    return any(is_needed(made) for reader in readers for made in reader.outputs)


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


def fixed_ends(node: ir.Node, facts: Facts, seen: Facts) -> list[tuple[int, dict[int, int]]]:
    """Return what a body gives of a shape that is seen, where no round may leave another shape.

    Each is given by its place among what the loop carries, with the lengths of those axes.
    """
    found = []
    for place, each in enumerate(carried_by(node) if _may_have_no_round(node, facts) else ()):
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
    makers = [None if each is None else each.producer() for each in made.inputs[1:2]]
    return any(maker is not None and maker.op_type == "Range" for maker in makers)


def rounds_by_default(node: ir.Node, facts: Facts) -> list[int]:
    """Return the places of a Loop's number of rounds and condition that are defaults, and 0.

    An engine that takes defaults for constants knows then that there is no round.
    """
    if not _may_have_no_round(node, facts):
        return []
    return [i for i, held in enumerate(node.inputs[:2]) if held is not None and _is_default(held)]


def _is_default(value: ir.Value) -> bool:
    """Return whether a value is calculated from defaults and constants alone, which may be 0.

    What a CumSum gives counts as fed: engines do not calculate it beforehand.
    """
    waiting, known, found = [value], {value}, False
    while waiting:
        held = waiting.pop()
        made = held.producer()
        if held.is_initializer():
            found = found or held.is_graph_input()
        elif made is None or made.op_type == "CumSum" or bodies(made):
            return False
        else:
            inputs = {each for each in made.inputs if each is not None} - known
            waiting += inputs
            known |= inputs
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
    """Return what a Loop may give after no round that is not what it was given, and is used.

    These are what it carries if its body does not read that, and scan outputs, but for those that
    are left out at once if the first round did not take place.
    """
    if not _may_have_no_round(node, facts):
        return []
    kept = {each.result for each in carried_by(node) if _is_passed_on(each.inside, node)}
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


def carried_numbers(node: ir.Node) -> list[int]:
    """Return the places of what a Loop carries that is the number of its round, or a view of it.

    What the body does not read is left out.
    """
    if not is_loop(node) or not body_of(node).inputs:
        return []
    number = body_of(node).inputs[0]
    return [
        i
        for i, each in enumerate(carried_by(node))
        if is_used(each.inside) and _is_view(each.end, number)
    ]


def shared_states(node: ir.Node) -> list[int]:
    """Return the places of what a Scan carries in the memory of a row or of something else carried.

    These are rows, states of other places, what another place is given as well, and what nodes that
    may be left out make of them; and what two nodes calculate alike, which are one for an engine. A
    state that stays in its place is its own.
    """
    if operator_of(node) != "Scan" or not scanned_by(node):
        return []
    states, body, found = states_of(node), body_of(node), list[int]()
    taken: set[ir.Value] = set()
    for place, (state, end) in enumerate(zip(states, body.outputs, strict=False)):
        sources = _sources(end) - {state}
        if sources & {*body.inputs, *taken} or any(map(_is_made_twice, sources)):
            found.append(place)
        taken |= sources
    return found


def _sources(held: ir.Value | None) -> set[ir.Value]:
    """Return the values in whose memory an engine may keep one, if nodes between are left out."""
    waiting, found = [held], set[ir.Value]()
    while waiting:
        if (each := waiting.pop()) is None:
            continue
        made = each.producer()
        before = []
        if made is not None and (is_split(made) or each is made.outputs[0]):
            before = list(made.inputs[:1]) if is_split(made) else passed_by(made)
        waiting += before
        if not before and not _is_constant(each):
            found.add(each)
    return found


def _is_made_twice(held: ir.Value) -> bool:
    """Return whether another node of its graph makes the same of the same."""
    made = held.producer()
    if made is None or not any(made.inputs):
        return False
    first = next(each for each in made.inputs if each is not None)
    return any(
        other is not made
        and (other.graph, operator_of(other)) == (made.graph, operator_of(made))
        and tuple(other.inputs) == tuple(made.inputs)
        and other.attributes == made.attributes
        for other in first.consumers()
    )


_VIEWS = frozenset(
    {"Dropout", "Expand", "Flatten", "Identity", "Reshape", "Squeeze", "Transpose", "Unsqueeze"}
)


def _is_view(held: ir.Value | None, of: ir.Value) -> bool:
    """Return whether OpenVINO may keep an integer in the memory of another."""
    while held is not None and held is not of:
        made = held.producer()
        held = made.inputs[0] if made is not None and _keeps_memory(made) else None
    return held is of


def _keeps_memory(node: ir.Node) -> bool:
    if node.op_type == "Cast":
        return attribute_of(node, "to", ir.AttributeType.INT) in _INTEGERS
    is_move = node.domain == "" and node.op_type in _VIEWS
    return bool(node.inputs) and (is_move or is_split(node))


_INTEGERS = (ir.DataType.INT32, ir.DataType.INT64)
"""The types between which OpenVINO has nothing to cast."""


def is_loop(node: ir.Node) -> bool:
    """Return whether a node is a Loop with a body."""
    return (node.domain, node.op_type) == ("", "Loop") and "body" in dict(bodies(node))


def body_of(node: ir.Node) -> ir.Graph:
    """Return the body of a Loop or a Scan that has one."""
    return dict(bodies(node))["body"]


def states_of(node: ir.Node) -> list[ir.Value]:
    """Return what the body of a Loop or a Scan that has one is given of what it carries."""
    first = 2 if node.op_type == "Loop" else 0  # after the number of the round and the condition
    inputs = body_of(node).inputs
    return list(inputs[first : len(inputs) - len(scanned_by(node))])


def _may_have_no_round(node: ir.Node, facts: Facts) -> bool:
    count, going = count_and_condition(node)
    return going is not None or not (count is None or _is_at_least(1, count, facts))


def _is_seen_to_run(node: ir.Node, seen: Facts) -> bool:
    """Return whether a Loop is given a condition, and a number, that are seen to have a round."""
    count, going = (*node.inputs, None, None)[:2]
    known = () if going is None else seen.tensor(going).constant
    has_count = count is None or _is_at_least(1, count, seen)
    return has_count and known is not None and all(known)


def _is_at_least(least: int, count: ir.Value, facts: Facts) -> bool:
    values: tuple[Dim, ...] = facts.tensor(count).values or ()
    return len(values) == 1 and values[0] is not None and is_at_least(values[0], least)


def _implies_a_round(going: ir.Value | None, count: ir.Value) -> bool:
    """Return whether a condition includes that a number is above 0."""
    waiting, known = [going], {going}
    while waiting:
        made = None if (held := waiting.pop()) is None else held.producer()
        if made is None or made.domain != "":
            continue
        if made.op_type == "Less" and len(made.inputs) > 1:
            least = constant(made.inputs[0])
            is_above = least is not None and bool((least >= 0).all())
            if is_above and _same_number(made.inputs[1], count):
                return True
        elif made.op_type == "And":
            waiting += [each for each in made.inputs if each not in known]
            known.update(made.inputs)
    return False


def _same_number(one: ir.Value | None, other: ir.Value) -> bool:
    """Return whether two values hold one number, maybe with another rank."""
    while one is not None and one is not other:
        made = one.producer()
        passes = made is not None and made.domain == "" and made.op_type in ("Reshape", "Squeeze")
        one = made.inputs[0] if made is not None and passes and made.inputs else None
    return one is other


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
    made = None if limit is None else limit.producer()
    return made is not None and _is_limited(made, going)


_LIMITS = {"Compress": 1, "Slice": 2}
"""The last input of what ends rows: it says which of them stay, or where they end."""


def _is_limited(node: ir.Node, going: ir.Value | None) -> bool:
    """Return whether a number of rows is made conditions, or 0, if a condition does not hold."""
    if node.op_type == "Expand":
        return node.inputs[0] is going
    casts = (held.producer() for held in node.inputs if held is not None)
    return node.op_type == "Mul" and any(
        cast is not None and cast.op_type == "Cast" and cast.inputs[0] is going for cast in casts
    )


def scanned_by(node: ir.Node) -> list[ir.Value]:
    """Return the rows that a Scan gives its body; nothing for other nodes."""
    if (node.domain, node.op_type) != ("", "Scan") or "body" not in dict(bodies(node)):
        return []
    count = attribute_of(node, "num_scan_inputs", ir.AttributeType.INT) or 0
    inputs = body_of(node).inputs
    return list(inputs[len(inputs) - count :])


SCANNED_AXES = ("scan_input_axes", "scan_output_axes")
"""The attributes of a Scan that say along which axes rows are taken, and put together."""

SCANNED_DIRECTIONS = ("scan_input_directions", "scan_output_directions")
"""The attributes of a Scan that say which rows are taken, and put together, from the last."""


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


def axes_of_scan(node: ir.Node) -> tuple[list[int], list[int]]:
    """Return the axes of the rows that a Scan takes, and of those that it gives."""
    scanned = len(scanned_by(node))
    counts = (scanned, len(node.outputs) - len(states_of(node)))
    given, made = (
        list(attribute_of(node, name, ir.AttributeType.INTS) or [0] * count)
        for name, count in zip(SCANNED_AXES, counts, strict=True)
    )
    return given, made


def has_unread_rows(node: ir.Node) -> bool:
    """Return whether nothing that a Scan gives goes back to its rows."""
    rows = scanned_by(node)
    return bool(rows) and not any(_is_passed_on(row, node) for row in rows)


def _gives_unknown_rank(node: ir.Node, facts: Facts) -> bool:
    """Return whether the rank of something that a body gives is not known, nor declared."""
    ends = [facts.of(end) for _, body in bodies(node) for end in body.outputs]
    return any(isinstance(end, Tensor) and end.shape is None for end in ends)


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
        has_strings(held, facts) and _is_passed_on(held, node) for held in inside
    )


def _is_passed_on(inside: ir.Value, node: ir.Node) -> bool:
    """Return whether something that a loop gives goes back to a value in its body.

    What it carries counts though nothing uses it but the body, and scan outputs that nothing uses
    do not.
    """
    body, states = body_of(node), states_of(node)
    first = int(node.op_type == "Loop")  # its condition
    given = zip_longest(body.outputs[first:], node.outputs, states)
    ends = {
        *body.outputs[:first],
        *(end for end, *held in given if any(each is not None and is_used(each) for each in held)),
    }
    return not ends.isdisjoint(calculated_from(inside))


def of_bodies(ref: NodeRef, facts: Facts, seen: Facts) -> Iterator[str]:
    """Yield what holds of an If, a Loop or a Scan."""
    node = ref.node
    if node.op_type not in ("If", "Loop", "Scan"):
        return
    is_inner, captured = ref.around[-1:] == ("Scan",), captured_in_scan(node)
    holds = {
        "empty_in_loop": is_loop(node) and any(is_empty(each, facts) for each in node.inputs[2:]),
        "unranked_in_scan": node.op_type == "Scan" and _gives_unknown_rank(node, facts),
        "scan_in_scan": node.op_type == "Scan" and is_inner,
        "captured_in_scan": any(tensor_of(held) is None for held in captured),
        "default_in_scan": any(tensor_of(held) is not None for held in captured),
        "carries_number": carried_numbers(node),
        "overwritten": overwritten(node, seen),
        "shares_states": shared_states(node),
        "unread_rows": has_unread_rows(node),
        "scanned_across": ref.opset >= FIRST_SCAN_WITHOUT_BATCHES and scanned_across(node, facts),
        "unused_in_loop": unused_and_changing(node, facts, seen),
        "ignored_condition": ignores_condition(node),
        "reads_condition": reads_condition(node),
        "rounds_may_be_0": rounds_may_be_0(node, ref.opset, facts, seen),
        "used_result": results_to_settle(ref, seen),
        "strings_in_loop": keeps_strings(node, facts, seen),
    }
    yield from (name for name, held in holds.items() if held)
