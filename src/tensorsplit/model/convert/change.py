"""What the adapters work with beside the node: the model around it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np
import onnx_ir as ir

from tensorsplit.core.dimensions import Shape
from tensorsplit.model.convert.site import Site
from tensorsplit.model.graph.building import Builder, Edits, Names
from tensorsplit.model.graph.facts import UNKNOWN, Tensor
from tensorsplit.model.graph.nodes import NodeRef, bodies, constant, walk
from tensorsplit.model.infer import others
from tensorsplit.model.infer.analysis import Facts

FIRST_WITH_ANY_CONSTANT = 9
"""Before this opset constants hold floats and nothing else."""

_FIRST_WITH_VALUE_INTS = 12


class Change:
    """A model that is being converted.

    Args:
        model: The model.
        facts: What is known of its values.
        target: The opset that is wanted.

    Attributes:
        pending: New nodes that are not in the words of the target yet.
        edits: What is replaced and removed.
    """

    def __init__(self, model: ir.Model, facts: Facts, target: int) -> None:
        self.model, self.facts, self.target = model, facts, target
        self.names = Names(model)
        self.pending: list[Site] = []
        self.edits = Edits()
        self._maybe_unused: dict[ir.Value, None] = {}
        # Facts go by identity, so that nothing they were found for may be forgotten
        self._kept: list[object] = [value for place in walk(model) for value in _values(place)]

    def tensor(self, value: ir.Value | None) -> Tensor:
        """What is known of a tensor."""
        fact = self.facts.of(value)
        return fact if isinstance(fact, Tensor) else Tensor()

    def shape(self, value: ir.Value | None) -> Shape | None:
        """Its shape; None if not even the rank is known."""
        return self.tensor(value).shape

    def rank(self, value: ir.Value | None) -> int | None:
        """Its rank."""
        shape = self.shape(value)
        return None if shape is None else len(shape)

    def needed_rank(self, site: Site, index: int = 0) -> int:
        """The rank of an input.

        Raises:
            SplitError: TS512 if it is not known.
        """
        rank = self.rank(site.input(index))
        if rank is None:
            raise site.refusal("the rank of its data is not known", "declare the data's shape")
        return rank

    def dtype(self, value: ir.Value | None) -> ir.DataType | None:
        """Its element type."""
        return self.tensor(value).element_type

    def needed_dtype(self, site: Site, index: int = 0) -> ir.DataType:
        """The element type of an input.

        Raises:
            SplitError: TS512 if it is not known.
        """
        dtype = self.dtype(site.input(index))
        if dtype is None:
            raise site.refusal("the element type of its data is not known", "declare its type")
        return dtype

    def constant(self, value: ir.Value | None) -> np.ndarray[Any, Any] | None:
        """The value of a constant, or of what follows from shapes alone."""
        found = constant(value)
        tensor = self.tensor(value)
        if found is not None or tensor.constant is None or tensor.shape is None:
            return found
        dtype = tensor.element_type
        if dtype is None or value is None or value.is_graph_input():
            return None
        return np.array(tensor.constant, dtype.numpy()).reshape(tensor.shape)

    def needed_constant(self, site: Site, index: int, name: str) -> np.ndarray[Any, Any]:
        """The value of an input that the other version has as attribute.

        Raises:
            SplitError: TS512 if it is known only at run time.
        """
        value = self.constant(site.input(index))
        if value is None:
            raise site.refusal(
                f"its input '{name}' is known only at run time, and there an attribute",
                "give it as a constant",
            )
        return value

    def builder(self, site: Site, opset: int) -> Builder:
        """Makes nodes that belong to a node, in the words of an opset."""
        return Builder(self.names, opset, site.node.name or site.op_type.lower())

    def before(self, site: Site, builder: Builder) -> None:
        """Insert new nodes before a node; they too go to the target."""
        if builder.nodes:
            site.scope.insert_before(site.node, builder.nodes)
            self.queue(site, builder)

    def queue(self, site: Site, builder: Builder) -> None:
        """Let new nodes be brought to the target."""
        if builder.opset != self.target or self.target < FIRST_WITH_ANY_CONSTANT:
            for node in builder.nodes:
                self._infer(node, builder.opset)
                made = replace(site, node=node, opset=builder.opset)
                self._queue(node, made)

    def _infer(self, node: ir.Node, opset: int) -> None:
        """Find out what a new node gives, for whoever has to know on its way to the target."""
        if node.op_type != "Constant" and not any(True for _ in bodies(node)):
            known = [self.facts.of(value) for value in node.inputs]
            found = others.infer(node, known, {"": opset}, None)
            for value, fact in zip(node.outputs, found, strict=False):
                if self.facts.of(value) in (UNKNOWN, Tensor()):
                    self.facts.set(value, fact)
                    self._kept.append(value)

    def _queue(self, node: ir.Node, site: Site) -> None:
        self.pending.append(site)
        for label, body in bodies(node):
            for inner in body:
                path = f"{site.path}.{label}"
                self._queue(inner, replace(site, node=inner, path=path, scope=body))

    def replace(self, site: Site, builder: Builder, outputs: Iterable[ir.Value | None]) -> None:
        """Put new nodes in the place of a node; None for an output that nobody reads."""
        pairs = [
            (old, new)
            for old, new in zip(site.node.outputs, outputs, strict=True)
            if new is not None
        ]
        for old, new in pairs:
            self.facts.set(new, self.facts.of(old))
            new.metadata_props.update(old.metadata_props)
            new.name, new.doc_string = old.name or new.name, old.doc_string
            new.type = old.type or new.type
            new.shape = new.shape if old.shape is None else old.shape
            self.edits.replace(old, new)
        site.scope.insert_after(site.node, builder.nodes)
        for value in site.node.inputs:
            self.drop_unused(value)
        site.set_inputs([])
        self.edits.retire(site.node)
        self._kept += [new for _, new in pairs]
        self.queue(site, builder)

    def drop_unused(self, value: ir.Value | None) -> None:
        """Have a value that a node read removed, if it is a constant that nothing else reads."""
        if value is not None:
            self._maybe_unused[value] = None

    def drop_constants(self) -> None:
        """Remove the constants that nothing reads any more."""
        # Once for each, and not for each node that stopped reading it: onnx-ir copies the readers
        for value in self._maybe_unused:
            if value.uses() or value.is_graph_output() or value.is_graph_input():
                continue
            producer = value.producer()
            if producer is None:
                if value.is_initializer() and value.graph is not None and value.name is not None:
                    del value.graph.initializers[value.name]
            elif producer.op_type == "Constant" and producer.domain in ("", "ai.onnx"):
                self.edits.retire(producer)
        self._maybe_unused.clear()

    def finish(self) -> None:
        """Remove what was replaced or is no longer needed."""
        self.drop_constants()
        self.edits.finish()

    def attribute_as_input(
        self, site: Site, builder: Builder, name: str, dtype: Any = np.int64
    ) -> ir.Value | None:
        """Take an attribute of integers off a node and make it an input; None if it is absent.

        Raises:
            SplitError: TS512 for a function's attribute that the opset has no constant for.
        """
        attribute = site.node.attributes.get(name)
        if attribute is None:
            return None
        if attribute.is_ref() and builder.opset >= _FIRST_WITH_VALUE_INTS:
            site.node.attributes.pop(name)
            return linked_constant(builder, "value_ints", attribute)
        return builder.constant(site.take(name), dtype)

    def input_as_attribute(self, site: Site, index: int, name: str) -> None:
        """Take a constant input of integers off a node and make it an attribute.

        Raises:
            SplitError: TS512 if it is known only at run time.
        """
        value = site.input(index)
        if value is None:
            return
        link = link_of(value)
        if link is not None:
            site.node.attributes[name] = ir.RefAttr(
                name, link.ref_attr_name or "", ir.AttributeType.INTS
            )
        else:
            array = self.needed_constant(site, index, name)
            site.put(name, [int(item) for item in array.ravel()])
            if not array.size:
                site.node.attributes[name] = ir.AttrInt64s(name, [])
        self.cut_inputs(site, index)

    def cut_inputs(self, site: Site, count: int) -> None:
        """Leave the first inputs only."""
        cut = list(site.node.inputs[count:])
        site.set_inputs(site.node.inputs[:count])
        for value in cut:
            self.drop_unused(value)


def _values(place: NodeRef) -> Iterable[ir.Value]:
    """The values that are known at a node, at least once for each value of the model."""
    yield from place.node.outputs
    yield from (value for value in place.node.inputs if value is not None)


def linked_constant(builder: Builder, kind: str, attribute: ir.Attr) -> ir.Value:
    """A Constant that holds what an attribute of the function holds."""
    output = builder.op("Constant", [])
    node = output.producer()
    assert node is not None  # noqa: S101 - it was just made
    node.attributes[kind] = ir.RefAttr(kind, attribute.ref_attr_name or "", attribute.type)
    output.dtype = ir.DataType.INT64
    return output


def link_of(value: ir.Value | None) -> ir.Attr | None:
    """The attribute that makes a Constant hold an attribute of the function, if it does."""
    producer = None if value is None else value.producer()
    if producer is None or producer.op_type != "Constant":
        return None
    attribute = producer.attributes.get("value_ints")
    return attribute if attribute is not None and attribute.is_ref() else None
