"""The final uses of a value, through nodes and bodies; engines leave out the rest."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache, cached_property, partial
from types import MappingProxyType
from typing import TypeAlias

import onnx_ir as ir

from tensorsplit.core.records.openvino import DOMAIN
from tensorsplit.model.graph.called_in_onnx import gives_shape
from tensorsplit.model.graph.loops import body_of, states_of
from tensorsplit.model.graph.nodes import Scope, bodies, nodes_in
from tensorsplit.model.graph.producers import passed_from, passed_on
from tensorsplit.model.openvino_ir.port_maps import fitting_ports
from tensorsplit.model.reached import each_once

_FEW_LEVELS = 4
MOST_LEVELS = 16
"""Splits of parts of splits, and nodes that nothing uses, are followed so deep."""

Owners: TypeAlias = Mapping[object, ir.Node]
"""The nodes that bodies belong to, by body."""

_Test: TypeAlias = Callable[[ir.Node], bool]

NO_OWNERS: Owners = MappingProxyType({})


def _no_node(_: ir.Node) -> bool:
    return False


def owners_in(scope: Scope | None) -> dict[object, ir.Node]:
    """Return the node that each body in a graph belongs to, bodies in bodies included."""
    inside = nodes_in(scope) if scope is not None else ()
    return {body: node for node in inside for _, body in bodies(node)}


def calculated_from(value: ir.Value, but: _Test = _no_node) -> Iterator[ir.Value]:
    """Yield a value, and all that is calculated from it in its graph and in bodies in that.

    All that a node with a body gives is calculated from each output of the body. Some nodes may be
    left out.
    """
    owners = cache(partial(owners_in, value.graph))

    def calculated(held: ir.Value) -> Iterator[ir.Value]:
        readers = list(held.consumers())
        if held.is_graph_output() and held.graph is not value.graph and held.graph in owners():
            readers.append(owners()[held.graph])
        return (made for reader in readers if not but(reader) for made in reader.outputs)

    return each_once([value], calculated)


def used_nodes(model: ir.Model, is_known: Callable[[ir.Value], bool]) -> set[ir.Node]:
    """Return the nodes of a model, its bodies and functions that an output of the model depends on.

    A used node uses all that its bodies and the function that it calls give. A SequenceLength that
    is known uses nothing.
    """

    def needed(node: ir.Node) -> Iterator[ir.Node]:
        if node.op_type == "SequenceLength" and all(map(is_known, node.outputs)):
            return iter(())
        called = model.functions.get(node.op_identifier())
        given = [*node.inputs, *(value for _, body in bodies(node) for value in body.outputs)]
        return _makers((*given, *(() if called is None else called.outputs)))

    return set(each_once(_makers(model.graph.outputs), needed))


def _makers(values: Iterable[ir.Value | None]) -> Iterator[ir.Node]:
    made = (value.producer() for value in values if value is not None)
    return (node for node in made if node is not None)


def is_passed_on(inside: ir.Value, node: ir.Node, but: _Test = _no_node) -> bool:
    """Return whether something that a loop gives goes back to a value in its body.

    What it carries counts though nothing uses it but the body, and scan outputs that nothing uses
    do not. What some nodes calculate may be left out.
    """
    after = _after_round(node, body_of(node))
    ends = {end for end, made in after if made is None or is_needed(made)}
    return not ends.isdisjoint(calculated_from(inside, but))


def is_needed(value: ir.Value, but: _Test = _no_node) -> bool:
    """Return whether an output of the graph that a value is in is calculated from it.

    What some nodes calculate may be left out.
    """
    return any(
        made.is_graph_output() and made.graph is value.graph for made in calculated_from(value, but)
    )


def is_unused(node: ir.Node, owners: Owners = NO_OWNERS) -> bool:
    """Return whether nothing that the model gives out is calculated from what a node gives."""
    return Uses(node, owners).are_dead(node, MOST_LEVELS)


def twins_of(node: ir.Node) -> Iterator[ir.Node]:
    """Yield the other nodes that do the same with the same inputs; engines make one of them."""
    first = passed_from(next((each for each in node.inputs if each is not None), None))
    for held in () if first is None else each_once([first], passed_on):
        for other in held.consumers():
            if are_twins(node, other):
                yield other


def are_twins(node: ir.Node, other: ir.Node) -> bool:
    """Return whether two nodes do the same with the same inputs, if through Identity nodes."""
    return (
        other is not node
        and (other.domain, other.op_type) == (node.domain, node.op_type)
        and [*map(passed_from, other.inputs)] == [*map(passed_from, node.inputs)]
        and any(node.inputs)
        and other.attributes == node.attributes
    )


def gives_only_shapes(node: ir.Node, owners: Owners = NO_OWNERS) -> bool:
    """Return whether all that is used of what a node gives is the shapes, if anything."""
    return Uses(node, owners, but=gives_shape).are_dead(node, _FEW_LEVELS)


def led_to_shapes(node: ir.Node) -> Iterator[ir.Value]:
    """Yield the outputs of a node, and what is calculated from them up to where shapes are taken.

    The node is one of which only shapes are used.
    """

    def readers(node: ir.Node) -> list[ir.Node]:
        uses = (use.node for made in node.outputs for use in made.uses())
        return [each for each in uses if not gives_shape(each)]

    for each in each_once([node], readers):
        yield from each.outputs


class Uses:
    """The uses of the values that are calculated from a node's outputs, a few nodes deep.

    So a walk from each node of a long chain ends soon. Some nodes count for nothing.

    Args:
        node: The node.
        owners: The nodes whose bodies it is in, by body. All that other bodies give out is used.
        but: Whether a node counts for nothing.
    """

    def __init__(self, node: ir.Node, owners: Owners = NO_OWNERS, but: _Test = _no_node) -> None:
        self._scope, self._around, self._but = node.graph, owners, but
        self._known: dict[tuple[ir.Value, int], bool] = {}

    @cached_property
    def _inside(self) -> dict[object, ir.Node]:
        return owners_in(self._scope)

    def are_dead(self, node: ir.Node, levels: int) -> bool:
        """Return whether nothing uses what a node gives, so that an engine leaves it out before."""
        return levels > 0 and all(self._is_dead(value, levels) for value in node.outputs)

    def _is_dead(self, value: ir.Value, levels: int) -> bool:
        if (value, levels) not in self._known:  # many ways may lead to it
            self._known[value, levels] = not self.give_out(value, levels) and all(
                self._but(use.node) or self.are_dead(use.node, levels - 1) for use in value.uses()
            )
        return self._known[value, levels]

    def give_out(self, value: ir.Value, levels: int) -> bool:
        """Return whether a value is an output of the model, or one of a body that is used."""
        if not value.is_graph_output() or not levels:
            return value.is_graph_output()
        owner = self._around.get(value.graph)
        if owner is None and value.graph is not self._scope:
            owner = self._inside.get(value.graph)
        if owner is None:
            return True
        made = [after for end, after in _after_round(owner, value.graph) if end is value]
        is_left = (each is not None and self._is_dead(each, levels - 1) for each in made)
        return not made or not all(is_left)


def _after_round(owner: ir.Node, inner: object) -> Iterator[tuple[ir.Value, ir.Value | None]]:
    """Yield the outputs of a body, each with what it becomes; a condition becomes nothing.

    They become what the node gives, and what the body is given in the next round.
    """
    for label, body in bodies(owner):
        if body is not inner:
            continue
        if owner.domain != DOMAIN:
            first = owner.op_type == "Loop"
            yield from zip(body.outputs, (*[None] * first, *owner.outputs), strict=False)
            states = states_of(owner) if label == "body" else ()
            yield from zip(body.outputs[first:], states, strict=False)
            continue
        if (ports := fitting_ports(owner.metadata_props, label)) is not None:
            for port in ports.outputs:
                made = None if port.outer is None else owner.outputs[port.outer]
                yield body.outputs[port.inner], made
            yield from ((body.outputs[end], body.inputs[start]) for end, start in ports.back_edges)
