"""What OpenVINO keeps in the memory of another value in a loop: one overwrites the other."""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from contextlib import suppress
from functools import partial
from itertools import chain
from typing import TypeAlias

import onnx_ir as ir

from tensorsplit.core.dimensions import are_known, is_known
from tensorsplit.core.errors import SplitError
from tensorsplit.core.records.openvino import DOMAIN
from tensorsplit.model.graph.called_in_onnx import gives_shape, operator_of
from tensorsplit.model.graph.held_tensors import fixed_tensor_of
from tensorsplit.model.graph.loops import (
    body_of,
    captured_by,
    carried_by,
    is_loop,
    scanned_by,
    states_of,
)
from tensorsplit.model.graph.nodes import NodeRef, Scope, attribute_of, bodies, is_used, scopes_in
from tensorsplit.model.graph.producers import (
    first_input,
    origins,
    passed_from,
    passed_on,
    producer_of,
)
from tensorsplit.model.graph.rejoined import first_passed, may_pass, passed_by
from tensorsplit.model.graph.split_records import is_split
from tensorsplit.model.graph.uses import is_unused, twins_of
from tensorsplit.model.infer.analysis import Facts
from tensorsplit.model.openvino_ir import LAYER_PORTS
from tensorsplit.model.openvino_ir.port_maps import BodyPorts, read_ports
from tensorsplit.model.reached import each_once

_Use: TypeAlias = tuple[ir.Node, int]
"""A node, and the place at which it reads a value."""

_IN_PLACE = frozenset(
    {
        *("GroupNormalization", "InstanceNormalization", "LayerNormalization"),
        *("MeanVarianceNormalization", "RotaryEmbedding", "Softmax"),
        *("ScatterElements", "ScatterND"),
        *("GRN", "MVN", "ScatterElementsUpdate", "ScatterUpdate"),
    }
)
"""What OpenVINO writes the result of where the data was, if nothing else reads that."""

_AT_ONCE = frozenset({"Clip", "Max", "Min", "Relu", "Round"})
"""What OpenVINO calculates with what reads it, and gives itself again if it is applied again."""

_BY_ELEMENT = frozenset(
    {
        *("Add", "Div", "Mean", "Mod", "Mul", "PRelu", "Pow", "Sub", "Sum"),
        *("Elu", "Erf", "Exp", "Gelu", "HardSwish", "LeakyRelu", "Log", "Mish", "Neg", "Not"),
        *("Reciprocal", "Sigmoid", "Softplus", "Softsign", "Sqrt", "Swish", "Tanh"),
    }
)
"""What it writes so where the data is a Concat of what is around, without memory of its own."""

_NOT_FUSED = frozenset({"LayerNormalization", "LeakyRelu"})
"""What it calculates alone, so that the node that reads the result may write it there as well."""

_OVER_ROWS = _IN_PLACE | _AT_ONCE | _BY_ELEMENT | _NOT_FUSED | {"Abs", "Ceil", "Floor"}
"""What it writes where a row was that nothing else reads."""


_LOOP_LAYERS = frozenset({"Loop", "TensorIterator"})
"""The layers of an IR that run their body again and again."""


def overwritten(node: ir.Node, seen: Facts) -> list[ir.Value]:
    """Return what a Loop's body uses from around it and overwrites, so that later rounds read that.

    These are tensors of a shape that is seen, of which a view may be all that is overwritten.
    """
    if not is_loop(node):
        return []
    shapes = {held: seen.tensor(held).shape for held in captured_by(node)}
    joins = _joins(body_of(node), seen) if shapes else ()
    return [
        held
        for held, shape in shapes.items()
        if shape is not None and are_known(shape) and any(_overwriting(held, body_of(node), joins))
    ]


def overwriting_layers(node: ir.Node, facts: Facts) -> list[_Use]:
    """Return the layers in a Loop or TensorIterator that overwrite what each round is given again.

    Each is given with the port that reads it; those are given tensors of a known shape.
    """
    if (loop := loop_layer(node)) is None:
        return []
    body, ports = loop
    again = _given_in_each_round(node, body, ports)
    shapes = {inner: facts.tensor(outer).shape for inner, outer in again.items()}
    held = [inner for inner, shape in shapes.items() if shape is not None and are_known(shape)]
    joins = _joins(body, facts) if held else ()
    return list(dict.fromkeys(chain(*(_overwriting(each, body, joins) for each in held))))


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
    return any(each in others for each in each_once([held], _before))


def loop_layer(node: ir.Node) -> tuple[ir.Graph, BodyPorts] | None:
    """Return the body of a Loop or TensorIterator with its ports; None if they do not fit."""
    if node.domain != DOMAIN or node.op_type not in _LOOP_LAYERS:
        return None
    for label, body in bodies(node):
        with suppress(SplitError):
            return body, read_ports(str(node.metadata_props.get(LAYER_PORTS + label)), "")
    return None


def _joins(body: ir.Graph, facts: Facts) -> set[ir.Node]:
    """Return the Concats of a body whose inputs have no memory but that of the output."""
    inside = set(scopes_in(body))
    made = [node for node in body if _is_joined_in_place(node, facts)]
    once = {part: _is_read_once(part, inside) for node in made for part in node.inputs}
    return {node for node in made if all(once[part] for part in node.inputs)}


def _overwriting(held: ir.Value, body: ir.Graph, joins: Container[ir.Node]) -> Iterator[_Use]:
    """Yield where nodes of a body overwrite a tensor, a view or a part of it, or what it joins."""
    waiting, known, joined = [held], {held}, set[ir.Value]()
    inside = set(scopes_in(body))
    while waiting:
        each = waiting.pop()
        is_joined = each in joined and _is_read_once(each, inside)
        for use in each.uses():
            reader = use.node
            operator = operator_of(reader)
            if not operator or reader.graph is not body:
                continue
            is_data = use.idx == 0
            if (is_data and _is_in_place(reader)) or (is_joined and operator in _BY_ELEMENT):
                yield reader, use.idx
            elif (
                may_pass(reader, use.idx)
                or operator == "Concat"
                or is_split(reader)
                or (is_joined and operator in _AT_ONCE)
            ):
                if is_joined or reader in joins:
                    joined.update(reader.outputs)
                waiting += [made for made in reader.outputs if made not in known]
                known.update(reader.outputs)


def _is_in_place(node: ir.Node) -> bool:
    """Return whether a node, or one that is made of it and others, is written over its data."""
    return operator_of(node) in _IN_PLACE or _starts_softmax_or_norm(node)


def _starts_softmax_or_norm(node: ir.Node) -> bool:
    """Return whether a node is the first of several that OpenVINO makes one of.

    These are Exp and a Div by its sum, also of what is below the largest element; and what is above
    the mean and a Div by its root mean square.
    """
    held, *others = [*map(passed_from, node.inputs)] or [None]
    results = list(chain(*((made, *passed_on(made)) for made in node.outputs[:1])))
    readers = [use.node for made in results for use in made.uses() if use.idx == 0]
    divisors = [producer_of(passed_from(each.inputs[1])) for each in readers if _divides(each)]
    operator = operator_of(node)
    if operator == "Exp":
        return any(_is_of(each, "ReduceSum", results) and _has_axes(each) for each in divisors)
    below = [producer_of(each) for each in others[:1]] if operator == "Sub" else []
    if any(_is_of(each, "ReduceMax", [held]) for each in below):
        return any(_starts_softmax_or_norm(each) for each in readers if operator_of(each) == "Exp")
    has_root = any(each is not None and operator_of(each) in _ROOTS for each in divisors)
    return has_root and any(_is_of(each, "ReduceMean", [held]) for each in below)


_ROOTS = frozenset({"Add", "Pow", "Sqrt"})
"""What gives the root mean square, or adds a small number to it."""


def _has_axes(reduction: ir.Node | None) -> bool:
    return reduction is not None and (len(reduction.inputs) > 1 or "axes" in reduction.attributes)


def _is_swish(node: ir.Node) -> bool:
    """Return whether a node multiplies what it reads by the Sigmoid of that."""
    factors = [*map(passed_from, node.inputs)] if operator_of(node) == "Mul" else []
    gates = (each for each in map(producer_of, factors) if each is not None)
    return any(_is_of(each, "Sigmoid", factors) for each in gates)


def _divides(node: ir.Node) -> bool:
    return operator_of(node) == "Div" and len(node.inputs) > 1


def _is_of(node: ir.Node | None, operator: str, values: Container[ir.Value | None]) -> bool:
    """Return whether a node is of an operator, and reads one of some values."""
    if node is None or operator_of(node) != operator:
        return False
    return passed_from(first_input(node)) in values


def _is_read_once(held: ir.Value | None, inside: Container[Scope]) -> bool:
    """Return whether one node of a body reads a value, once, but for its shape."""
    if held is None:
        return False
    readers = [
        use.node
        for use in held.uses()
        if use.node.graph in inside and not gives_shape(use.node) and not is_unused(use.node)
    ]
    partners = {
        producer_of(passed_from(other))
        for node in readers
        if _starts_softmax_or_norm(node) or _is_swish(node)
        for other in node.inputs
    }
    readers = [node for node in readers if node not in partners]
    return len(readers) == 1 and not (held.graph in inside and held.is_graph_output())


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
        ends = [(each.inside, each.end) for each in carried_by(node)]
        return [1 + place for place in _exchanged(ends, body_of(node), facts)]
    rows = scanned_by(node)
    if not rows:
        return []
    body = body_of(node)
    pairs = [*zip(states_of(node), body.outputs, strict=False)]
    return _shared(pairs, body, set(rows), facts)


def shared_layer_states(node: ir.Node, facts: Facts) -> list[int]:
    """Do as `shared_states` of a Loop or TensorIterator; places are those of its body's Results."""
    if (loop := loop_layer(node)) is None:
        return []
    body, ports = loop
    rows = {body.inputs[port.inner] for port in ports.inputs if port.axis is not None}
    pairs = [(body.inputs[to], body.outputs[start]) for start, to in ports.back_edges]
    found = _shared(pairs, body, rows, facts) if rows else _exchanged(pairs, body, facts)
    return sorted({ports.back_edges[place][0] for place in found})


def _exchanged(
    pairs: Sequence[tuple[ir.Value, ir.Value]], body: ir.Graph, facts: Facts
) -> list[int]:
    """Return the places of states that are calculated where states of other places were."""
    states = {state for state, _ in pairs if _is_known_and_read(state, facts)}
    return [
        place
        for place, (state, end) in enumerate(pairs)
        if state in states and _is_in_place_of(end, states - {state}, body)
    ]


def _shared(
    pairs: Sequence[tuple[ir.Value, ir.Value]],
    body: ir.Graph,
    rows: set[ir.Value],
    facts: Facts,
) -> list[int]:
    """Return the places of the states, each with what the next round gets, that share a memory."""
    found, taken = list[int](), set[ir.Value]()
    states = {state for state, _ in pairs if _is_known_and_read(state, facts)}
    for place, (state, end) in enumerate(pairs):
        sources = _sources(end) - {state}
        is_shared = sources & {*body.inputs, *taken} or rows & _joined(sources, facts)
        is_over = state in states and (
            _is_over_row(end, rows, body) or _is_in_place_of(end, states - {state}, body)
        )
        if is_shared or is_over or any(map(_is_made_twice, sources)):
            found.append(place)
        taken |= sources
    return found


def _is_known_and_read(state: ir.Value, facts: Facts) -> bool:
    """Return whether a body reads a state of a known shape."""
    shape = facts.tensor(state).shape
    return shape is not None and are_known(shape) and bool(state.uses())


def _is_over_row(end: ir.Value, rows: set[ir.Value], body: ir.Graph) -> bool:
    """Return whether what is carried is calculated by elements where a row was."""
    if not (found := _calculated_from(end, rows, body)):
        return False
    counts = [len(_tensors_of(node)) for node in found]
    is_read_on = bool(end.uses()) or [*body.outputs].count(end) > 1
    is_alone = operator_of(found[-1]) in _NOT_FUSED | _IN_PLACE
    return counts[-1] > 1 or is_alone or (max(counts) == 1 and is_read_on)


def _is_in_place_of(end: ir.Value, states: set[ir.Value], body: ir.Graph) -> bool:
    """Return whether what is carried is calculated in the memory of one of some states."""
    found = _calculated_from(end, states, body)
    if not found or not _is_in_place(found[-1]):
        return False
    inside = set(scopes_in(body))
    between = (node.outputs[0] for node in found[1:] if not _starts_softmax_or_norm(node))
    return all(_is_read_once(made, inside) for made in between)


def _calculated_from(end: ir.Value, starts: set[ir.Value], body: ir.Graph) -> list[ir.Node]:
    """Return the nodes, the last first, that calculate by elements from a value read only there.

    A node of it alone is calculated with the node of several tensors that reads the result, in
    other memory.
    """
    found, walked = list[ir.Node](), set[ir.Value]()
    held: ir.Value | None = end
    while held is not None and held not in starts:
        made = held.producer()
        if made is None or held is not made.outputs[0] or held in walked:
            return []
        walked.add(held)
        passed = first_passed(made)
        if passed is None:
            if operator_of(made) not in _OVER_ROWS:
                return []
            found.append(made)
            passed = next(filter(_is_not_fused, _tensors_of(made)), first_input(made))
        held = passed
    return found if held is not None and _is_read_once(held, set(scopes_in(body))) else []


def _tensors_of(node: ir.Node) -> list[ir.Value]:
    return [each for each in node.inputs if each and fixed_tensor_of(each) is None]


def _is_not_fused(held: ir.Value) -> bool:
    made = held.producer()
    return made is not None and operator_of(made) in _NOT_FUSED


def _sources(held: ir.Value | None, *, parts: bool = True) -> set[ir.Value]:
    """Return the values in whose memory an engine may keep one, if nodes between are left out.

    What a value is a part of is among them, but not without `parts`.
    """
    before = partial(_before, parts=parts)
    met = each_once([] if held is None else [held], before)
    return {each for each in met if not before(each) and fixed_tensor_of(each) is None}


def _before(held: ir.Value, *, parts: bool = True) -> list[ir.Value]:
    made = held.producer()
    if made is not None and parts and is_split(made):
        return list(filter(None, made.inputs[:1]))
    is_passed = made is not None and held is made.outputs[0]
    return list(filter(None, passed_by(made))) if made is not None and is_passed else []


def _joined(held: set[ir.Value], facts: Facts) -> set[ir.Value]:
    """Return values, and what Concats put into them as it is, in the memory of what they make.

    So it is where a node writes its result over the Concat.
    """

    def over(each: ir.Value) -> list[ir.Value]:
        made = each.producer()
        data = first_input(made) if made is not None and operator_of(made) in _IN_PLACE else None
        return [] if data is None else [*_sources(data)]

    wholes = {each for each in each_once(held, over) if each in held or _is_joined(each)}

    def joined(each: ir.Value) -> set[ir.Value]:
        made = each.producer()
        is_kept = made is not None and _is_joined_in_place(made, facts)
        inputs = made.inputs if made is not None and is_kept else ()
        return set[ir.Value]().union(*(_sources(part, parts=False) for part in inputs))

    return set(each_once(wholes, joined))


def _is_joined(held: ir.Value) -> bool:
    made = held.producer()
    return made is not None and operator_of(made) == "Concat"


def _is_joined_in_place(node: ir.Node, facts: Facts) -> bool:
    """Return whether a node is a Concat whose inputs an engine keeps in the memory of the output.

    It does so along an axis that has none before it but those of length 1, and copies constants.
    """
    if operator_of(node) != "Concat" or len(node.inputs) < 2 or not node.outputs:
        return False
    if any(each is not None and fixed_tensor_of(each) is not None for each in node.inputs):
        return False
    axis = attribute_of(node, "axis", ir.AttributeType.INT) or 0
    shape = facts.tensor(node.outputs[0]).shape
    return shape is None or all(dim == 1 or not is_known(dim) for dim in shape[:axis])


def _is_made_twice(held: ir.Value) -> bool:
    """Return whether another node of its graph makes the same of the same."""
    made = held.producer()
    return made is not None and any(twin.graph is made.graph for twin in twins_of(made))


_VIEWS = frozenset(
    {"Dropout", "Expand", "Flatten", "Identity", "Reshape", "Squeeze", "Transpose", "Unsqueeze"}
)


def _kept_in_memory(node: ir.Node) -> ir.Value | None:
    """Return the integer whose memory OpenVINO may give on; None for other nodes."""
    is_kept = is_split(node) or (node.domain == "" and node.op_type in _VIEWS)
    if node.op_type == "Cast":
        is_kept = attribute_of(node, "to", ir.AttributeType.INT) in _INTEGERS
    return first_input(node) if is_kept else None


_INTEGERS = (ir.DataType.INT32, ir.DataType.INT64)
"""The types between which OpenVINO has nothing to cast."""
