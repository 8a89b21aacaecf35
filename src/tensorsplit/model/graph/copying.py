"""Copies of the nodes of a function, made to replace one call."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace

import onnx_ir as ir

from tensorsplit.core.errors import show
from tensorsplit.model.graph.nodes import GRAPH_TYPES, bodies
from tensorsplit.model.graph.tensors import with_name
from tensorsplit.model.refusals import malformed


@dataclass(frozen=True, slots=True)
class Copies:
    """Copies of nodes, with the bodies in them.

    Attributes:
        given: What stands for each value that the nodes do not make; None if it is omitted.
        attributes_of: Returns the attributes that the copy of a node has.
        fresh: Returns a new name for a stem.
        noted: What every copy notes, where its node does not note something else.
        nodes: The copies, each before those in its bodies.
        made: What stands for each value that the nodes, or bodies in them, make or are given.
    """

    given: Mapping[ir.Value, ir.Value | None]
    attributes_of: Callable[[ir.Node], Mapping[str, ir.Attr]]
    fresh: Callable[[str], str]
    noted: Mapping[str, str]
    nodes: list[ir.Node] = field(default_factory=list)
    made: dict[ir.Value, ir.Value] = field(default_factory=dict)

    def of(self, nodes: Iterable[ir.Node]) -> list[ir.Node]:
        """Copy nodes that are sorted; returns the copies without those in their bodies."""
        return [self._node(node) for node in nodes]

    def stands_for(self, value: ir.Value) -> ir.Value | None:
        """Return the value that stands for another one; None for one that is omitted.

        Raises:
            SplitError: TS502 for a value of another graph, which a function can't use.
        """
        made = self.made.get(value)
        if made is None and value not in self.given:
            problem = f"a node of a function uses {show(value.name)} of the graph around its call"
            raise malformed(problem, "make it an input of the function")
        return self.given[value] if made is None else made

    def _node(self, node: ir.Node) -> ir.Node:
        name, place = self.fresh(node.name or node.op_type), len(self.nodes)
        for _, body in bodies(node):
            for value in body.inputs:
                self._value(value)
        outputs = [self._value(value) for value in node.outputs]
        inputs = [None if value is None else self.stands_for(value) for value in node.inputs]
        copy = ir.Node(
            node.domain,
            node.op_type,
            inputs,
            [self._attribute(held) for held in self.attributes_of(node).values()],
            overload=node.overload,
            outputs=outputs,
            version=node.version,
            name=name,
            doc_string=node.doc_string,
            metadata_props={**node.metadata_props, **self.noted, **node.metadata_props},
            device_configurations=tuple(map(self._placed, node.device_configurations)),
        )
        _keep_meta(copy, node)
        self.nodes.insert(place, copy)
        return copy

    def _placed(self, placed: ir.NodeDeviceConfiguration) -> ir.NodeDeviceConfiguration:
        """Copy the configuration of a node's devices."""
        values = [spec.value and self.stands_for(spec.value) for spec in placed.sharding_specs]
        pairs = zip(placed.sharding_specs, values, strict=True)
        specs = (replace(spec, value=value) for spec, value in pairs if value is not None)
        return replace(placed, sharding_specs=tuple(specs))

    def _value(self, value: ir.Value) -> ir.Value:
        """Copy a value that a body is given, holds or makes, or that a node makes."""
        copy = ir.Value(
            name=value.name and self.fresh(value.name),
            shape=None if value.shape is None else value.shape.copy(),
            type=value.type,
            doc_string=value.doc_string,
            const_value=value.const_value,
            metadata_props=dict(value.metadata_props),
        )
        _keep_meta(copy, value)
        self.made[value] = copy
        return copy

    def _initializer(self, value: ir.Value) -> ir.Value:
        """Copy an initializer of a body, with a new name.

        Under its old one it could hide what the call passes, or an output of the function, which
        takes over the name of the call's.
        """
        copy = self._value(value)
        if value.const_value is not None:
            copy.const_value = with_name(value.const_value, copy.name or "")
        return copy

    def _attribute(self, held: ir.Attr) -> ir.Attr:
        if held.is_ref() or held.type not in GRAPH_TYPES:
            return held
        if held.type == ir.AttributeType.GRAPH:
            return ir.AttrGraph(held.name, self._body(held.as_graph()), held.doc_string)
        return ir.AttrGraphs(held.name, [*map(self._body, held.as_graphs())], held.doc_string)

    def _body(self, body: ir.Graph) -> ir.Graph:
        initializers = [
            self.made.get(value) or self._initializer(value) for value in body.initializers.values()
        ]
        nodes = self.of(body)
        copy = ir.Graph(
            [self.made[value] for value in body.inputs],
            [self.made[value] for value in body.outputs],
            nodes=nodes,
            initializers=initializers,
            doc_string=body.doc_string,
            opset_imports=dict(body.opset_imports),
            name=body.name,
            metadata_props=dict(body.metadata_props),
        )
        _keep_meta(copy, body)
        return copy


def _keep_meta(copy: ir.Node | ir.Value | ir.Graph, origin: ir.Node | ir.Value | ir.Graph) -> None:
    if origin.meta:
        copy.meta.update(origin.meta)
