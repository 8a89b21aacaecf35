"""Values that OpenVINO keeps in the memory of others in a loop, so that one overwrites another."""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence, Set
from functools import cache, partial
from itertools import chain
from typing import TypeAlias

import onnx_ir as ir

from tensorsplit.core.dimensions import are_known
from tensorsplit.core.records.openvino import DOMAIN
from tensorsplit.model.features.in_place import (
    ELEMENTWISE,
    IDEMPOTENT,
    IN_PLACE,
    MAY_OVERWRITE,
    NOT_FUSED,
    LoopBody,
    data_of,
    is_in_a_view,
    is_in_place,
    is_joined_in_place,
    starts_softmax_or_norm,
    tensors_of,
)
from tensorsplit.model.graph.called_in_onnx import operator_of
from tensorsplit.model.graph.held_tensors import fixed_tensor_of
from tensorsplit.model.graph.loops import (
    body_of,
    captured_by,
    carried_by,
    is_loop,
    scanned_by,
    states_of,
)
from tensorsplit.model.graph.nodes import NodeRef, attribute_of, bodies, is_used
from tensorsplit.model.graph.producers import (
    KEEPING_ELEMENTS,
    first_input,
    origins,
    passed_from,
)
from tensorsplit.model.graph.rejoined import first_passed, may_pass, passed_by, rejoined_by
from tensorsplit.model.graph.split_records import is_split
from tensorsplit.model.infer.analysis import Facts
from tensorsplit.model.openvino_ir.port_maps import BodyPorts, fitting_ports
from tensorsplit.model.reached import each_once

_Use: TypeAlias = tuple[ir.Node, int]
"""A node, and the place at which it reads a value."""

_LOOP_LAYERS = frozenset({"Loop", "TensorIterator"})
"""The layers of an IR that run their body again and again."""


def overwritten(node: ir.Node, seen: Facts) -> list[ir.Value]:
    """Return what a Loop's body uses from around it and overwrites, so that later rounds read that.

    These are tensors of a shape that is seen, of which a view may be all that is overwritten.
    """
    if not is_loop(node):
        return []
    known = [held for held in captured_by(node) if _is_known(held, seen)]
    graph = body_of(node)
    rows = graph.outputs[1 + len(carried_by(node)) :]
    body = LoopBody(graph, rows)
    joins = body.joins(seen) if known else set[ir.Node]()
    return [held for held in known if any(_overwriting(held, body, joins))]


def overwriting_layers(node: ir.Node, facts: Facts) -> list[_Use]:
    """Return the layers in a Loop or TensorIterator that overwrite what each round is given again.

    Each is given with the port that reads it; those are given tensors of a known shape.
    """
    if (loop := loop_layer(node)) is None:
        return []
    graph, ports = loop
    again = _given_in_each_round(node, graph, ports)
    known = [inner for inner, outer in again.items() if _is_known(outer, facts)]
    body = LoopBody(graph, _rows_given(graph, ports), adds_axis=False)
    joins = body.joins(facts) if known else set[ir.Node]()
    return list(dict.fromkeys(chain(*(_overwriting(each, body, joins) for each in known))))


def _rows_given(body: ir.Graph, ports: BodyPorts) -> list[ir.Value]:
    return [body.outputs[port.inner] for port in ports.outputs if port.axis is not None]


def _given_in_each_round(
    node: ir.Node, body: ir.Graph, ports: BodyPorts
) -> dict[ir.Value, ir.Value | None]:
    """Return the inputs of a layer's body that are the same in each round, with what they are."""
    carried = {
        to
        for start, to in ports.back_edges
        if passed_from(body.outputs[start]) is not body.inputs[to]
    }
    return {
        body.inputs[port.inner]: node.inputs[port.outer]
        for port in ports.inputs
        if port.outer is not None and port.axis is None and port.inner not in carried
    }


def given_again(ref: NodeRef) -> set[ir.Value]:
    """Return what the loops around a node are given in each round as it was in the one before."""
    given = set[ir.Value]()
    for node in ref.outer:
        if is_loop(node):
            given.update(captured_by(node))
        elif (loop := loop_layer(node)) is not None:
            given.update(_given_in_each_round(node, *loop))
    return given


def is_in_memory_of(held: ir.Value, others: Container[ir.Value]) -> bool:
    """Return whether an engine may keep a value, or what it is a part of, where others are."""
    return any(each in others for each in each_once([held], _values_before))


def loop_layer(node: ir.Node) -> tuple[ir.Graph, BodyPorts] | None:
    """Return the body of a Loop or TensorIterator with its ports; None if they do not fit."""
    if node.domain != DOMAIN or node.op_type not in _LOOP_LAYERS:
        return None
    for label, body in bodies(node):
        if (ports := fitting_ports(node.metadata_props, label)) is not None:
            return body, ports
    return None


def _overwriting(held: ir.Value, body: LoopBody, joins: Container[ir.Node]) -> Iterator[_Use]:
    """Yield where nodes of a body overwrite a tensor, a view or a part of it, or what it joins."""
    waiting, known, joined = [held], {held}, set[ir.Value]()
    while waiting:
        each = waiting.pop()
        is_joined = each in joined and body.is_read_once(each)
        for use in each.uses():
            reader = use.node
            operator = operator_of(reader)
            if not operator or reader.graph is not body.graph:
                continue
            is_here = (
                (use.idx == 0 and is_in_place(reader))
                or (is_joined and operator in ELEMENTWISE)
                or (each is data_of(reader) and is_in_a_view(reader, body, is_carried=False))
            )
            if is_here:
                yield reader, use.idx
            elif (
                may_pass(reader, use.idx)
                or operator == "Concat"
                or is_split(reader)
                or (is_joined and operator in IDEMPOTENT)
            ):
                if is_joined or reader in joins:
                    joined.update(reader.outputs)
                waiting += [made for made in reader.outputs if made not in known]
                known.update(reader.outputs)


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
        if is_used(each.inside) and number in origins(each.end, _kept_in_memory)
    ]


def shared_states(node: ir.Node, facts: Facts) -> list[int]:
    """Return what a loop carries in the memory of a row or of something else carried.

    Returns the places of the outputs of its body. Of a Scan these are rows, states of other places,
    what another place is given as well, and what nodes that may be left out make of them; what a
    row is joined into, or is calculated by elements where the row was; and what two nodes calculate
    alike, which are one for an engine. A state that stays in its place is its own. Of a Loop it is
    what is calculated where another state was.
    """
    if is_loop(node):
        pairs = [(each.inside, each.end) for each in carried_by(node)]
        body = LoopBody(body_of(node), body_of(node).outputs[1 + len(pairs) :])
        return [1 + place for place in _States(pairs, set(), body, facts).shared()]
    rows = scanned_by(node)
    if not rows:
        return []
    pairs = [*zip(states_of(node), body_of(node).outputs, strict=False)]
    body = LoopBody(body_of(node), body_of(node).outputs[len(pairs) :])
    return _States(pairs, set(rows), body, facts).shared()


def shared_layer_states(node: ir.Node, facts: Facts) -> list[int]:
    """Do as `shared_states` of a Loop or TensorIterator; places are those of its body's Results."""
    if (loop := loop_layer(node)) is None:
        return []
    graph, ports = loop
    rows = {graph.inputs[port.inner] for port in ports.inputs if port.axis is not None}
    pairs = [(graph.inputs[to], graph.outputs[start]) for start, to in ports.back_edges]
    body = LoopBody(graph, _rows_given(graph, ports), adds_axis=False)
    found = _States(pairs, rows, body, facts).shared()
    return sorted({ports.back_edges[place][0] for place in found})


class _States:
    """What a loop carries from round to round, and where an engine may keep it.

    Args:
        pairs: Each state with what the next round gets for it.
        rows: What each round is given of what the loop goes through; none of a Loop of ONNX.
        body: The body of the loop.
        facts: What is known of the model.
    """

    def __init__(
        self,
        pairs: Sequence[tuple[ir.Value, ir.Value]],
        rows: set[ir.Value],
        body: LoopBody,
        facts: Facts,
    ) -> None:
        self._pairs, self._rows, self._body, self._facts = pairs, rows, body, facts
        self._read = {state for state, _ in pairs if _is_known(state, facts) and state.uses()}
        self._sources, self._before = cache(_sources), cache(_before_calculation)

    def shared(self) -> list[int]:
        """Return the places of the states that share a memory with rows, or with each other.

        Without rows these are only states that are calculated where those of other places were.
        """
        return self._with_rows() if self._rows else self._over_others()

    def _over_others(self) -> list[int]:
        found = list[int]()
        for place, (state, end) in enumerate(self._pairs):
            sources, others = self._sources(end), self._read - {state}
            if state in self._read and (
                self._overwrites_state(end, others)
                or not others.isdisjoint(self._joined(sources) - sources)
            ):
                found.append(place)
        return found

    def _with_rows(self) -> list[int]:
        found, taken = list[int](), {*self._body.graph.inputs}
        for place, (state, end) in enumerate(self._pairs):
            sources, others = self._sources(end) - {state}, self._read - {state}
            if (
                not sources.isdisjoint(taken)
                or not sources.isdisjoint(self._body.alike)
                or not self._joined(sources).isdisjoint(self._rows | others)
                or (state in self._read and self._overwrites_row(end))
                or (state in self._read and self._overwrites_state(end, others))
            ):
                found.append(place)
            taken |= sources
        return found

    def _overwrites_row(self, end: ir.Value) -> bool:
        """Return whether what is carried is calculated by elements where a row was."""
        if not (found := self._calculated_from(end, self._rows)):
            return False
        counts = [len(tensors_of(node)) for node in found]
        is_read_on = bool(end.uses()) or [*self._body.graph.outputs].count(end) > 1
        is_alone = operator_of(found[-1]) in NOT_FUSED | IN_PLACE
        return counts[-1] > 1 or is_alone or (max(counts) == 1 and is_read_on)

    def _overwrites_state(self, end: ir.Value, states: set[ir.Value]) -> bool:
        """Return whether what is carried is calculated in the memory of one of some states."""
        if not (found := self._calculated_from(end, states)):
            return False
        if is_in_a_view(found[-1], self._body, is_carried=True):
            return True
        if not is_in_place(found[-1]):
            return False
        between = (node.outputs[0] for node in found[1:] if not starts_softmax_or_norm(node))
        return all(map(self._body.is_read_once, between))

    def _calculated_from(self, end: ir.Value, starts: set[ir.Value]) -> list[ir.Node]:
        """Return the nodes, the last first, that calculate from a value that is read only there."""
        found, walked = list[ir.Node](), set[ir.Value]()
        held: ir.Value | None = end
        while held is not None and held not in starts:
            if held in walked:
                return []
            walked.add(held)
            held, made = self._before(held)
            found += [] if made is None else [made]
        return found if held is not None and self._body.is_read_once(held) else []

    def _joined(self, held: Set[ir.Value]) -> set[ir.Value]:
        """Return values, and what Concats put into them as it is, in the memory of what they make.

        So it is where a node writes its result over the Concat.
        """

        def over(each: ir.Value) -> list[ir.Value]:
            made = each.producer()
            data = None if made is None else first_input(made)
            if made is None or data is None or operator_of(made) not in IN_PLACE | ELEMENTWISE:
                return []
            sources = self._sources(data)
            return [*(sources if operator_of(made) in IN_PLACE else filter(_is_joined, sources))]

        wholes = {each for each in each_once(held, over) if each in held or _is_joined(each)}

        def joined(each: ir.Value) -> set[ir.Value]:
            made = each.producer()
            is_kept = made is not None and is_joined_in_place(made, self._facts)
            inputs = made.inputs if made is not None and is_kept else ()
            return set[ir.Value]().union(*(self._sources(part, parts=False) for part in inputs))

        return set(each_once(wholes, joined))


def _is_known(held: ir.Value | None, facts: Facts) -> bool:
    shape = facts.tensor(held).shape
    return shape is not None and are_known(shape)


def _before_calculation(held: ir.Value) -> tuple[ir.Value | None, ir.Node | None]:
    """Return what a value is calculated from by elements, and the node that does; None of others.

    A node of it alone is calculated with the node of several tensors that reads the result, in
    other memory. One that may pass a value on is left out.
    """
    made = held.producer()
    if made is None or held is not made.outputs[0]:
        return None, None
    passed = first_passed(made) or rejoined_by(made)
    if passed is not None:
        return passed, None
    if operator_of(made) not in MAY_OVERWRITE:
        return None, None
    return next(filter(_is_not_fused, tensors_of(made)), first_input(made)), made


def _is_not_fused(held: ir.Value) -> bool:
    made = held.producer()
    return made is not None and operator_of(made) in NOT_FUSED


def _sources(held: ir.Value | None, *, parts: bool = True) -> frozenset[ir.Value]:
    """Return the values in whose memory an engine may keep one, if nodes between are left out.

    What a value is a part of is among them, but not without `parts`.
    """
    before = partial(_values_before, parts=parts)
    met = each_once([] if held is None else [held], before)
    return frozenset(each for each in met if not before(each) and fixed_tensor_of(each) is None)


def _values_before(held: ir.Value, *, parts: bool = True) -> list[ir.Value]:
    made = held.producer()
    if made is not None and parts and is_split(made):
        return list(filter(None, made.inputs[:1]))
    is_passed = made is not None and held is made.outputs[0]
    if made is None or not is_passed:
        return []
    return [*filter(None, (*passed_by(made), rejoined_by(made)))]


def _is_joined(held: ir.Value) -> bool:
    made = held.producer()
    return made is not None and operator_of(made) == "Concat"


def _kept_in_memory(node: ir.Node) -> ir.Value | None:
    """Return the integer whose memory OpenVINO may give on; None for other nodes."""
    kept = KEEPING_ELEMENTS | {"Expand"}
    is_kept = is_split(node) or (node.domain == "" and node.op_type in kept)
    if node.op_type == "Cast":
        is_kept = attribute_of(node, "to", ir.AttributeType.INT) in _INTEGERS
    return first_input(node) if is_kept else None


_INTEGERS = (ir.DataType.INT32, ir.DataType.INT64)
"""The types between which OpenVINO has nothing to cast."""
