"""A layer of an OpenVINO IR that becomes ONNX nodes: its operands and attributes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import zip_longest
from typing import ClassVar

import numpy as np
import onnx_ir as ir

from tensorsplit.core.dimensions import Shape, are_known, is_known
from tensorsplit.core.errors import NO_COUNTERPART, SplitError, short_name
from tensorsplit.model.convert.conversion import NodeConversion
from tensorsplit.model.graph.facts import Tensor
from tensorsplit.model.graph.nodes import NodeRef, is_used
from tensorsplit.model.graph.opsets import existing_schema
from tensorsplit.model.infer.node_outputs import infer_outputs
from tensorsplit.model.openvino_ir import LAYER_VERSION
from tensorsplit.model.openvino_ir.attributes import LayerAttributes
from tensorsplit.model.validity.node_errors import not_taken


def no_counterpart(ref: NodeRef, reason: str, fix: str = "") -> SplitError:
    """Return the refusal of a layer (TS514)."""
    version = short_name(str(ref.node.metadata_props.get(LAYER_VERSION, "")))
    kind = short_name(ref.node.op_type)
    problem = f"the layer of type {kind} ({version}) has no counterpart in ONNX: {reason}"
    return SplitError(NO_COUNTERPART, problem, fix, node=ref.path)


class LayerConversion(LayerAttributes):
    """A layer, and the nodes that are made of it; what has no counterpart is refused (TS514)."""

    element_types: ClassVar = {
        name: LayerAttributes.element_types[name]
        for name in (
            *("boolean", "bf16", "f16", "f32", "f64", "i8", "i16", "i32", "i64"),
            *("u8", "u16", "u32", "u64"),
        )
    }
    """The element types that ONNX casts to and from as OpenVINO does."""

    def __init__(self, node: NodeConversion) -> None:
        super().__init__(node.node)
        self.node = node
        self.inputs: list[ir.Value] = [value for value in node.node.inputs if value is not None]

    @property
    def version(self) -> str:
        """The version of the layer, such as ``opset1``."""
        return str(self.node.node.metadata_props.get(LAYER_VERSION, ""))

    def refusal(self, reason: str, fix: str = "") -> SplitError:
        """Return the refusal of the layer (TS514)."""
        return no_counterpart(self.node.ref, reason, fix)

    def shapes(self) -> list[Shape | None]:
        """Return the shape of each input, or None where it is not known."""
        return [self.node.shape(place) for place in range(len(self.inputs))]

    def finish(self, made: Sequence[ir.Value]) -> None:
        """Replace the layer by what was made, if ONNX takes the element types.

        There may be fewer values than outputs, if nothing reads the last ones.
        """
        nodes = self.node.make.nodes  # of a layer that changes nothing there are none
        made = [m if m.producer() in nodes else self.op("Identity", [m]) for m in made]
        facts, opset = self.node.conversion.facts, self.node.opset
        for node in self.node.make.nodes:
            found = infer_outputs(node, list(map(facts.of, node.inputs)), {"": opset})
            for value, fact in zip(node.outputs, found, strict=False):
                facts.set(value, fact)
            schema = existing_schema(node.op_type, opset)
            reason = next(not_taken(node, schema, f"ONNX's {node.op_type}", facts.of), None)
            if reason is not None:
                raise self.refusal(reason)
        outputs = self.node.node.outputs
        if any(map(is_used, outputs[len(made) :])):
            raise self.refusal("it has more outputs than such a layer gives")
        for output, value in zip(outputs, made, strict=False):
            fact = facts.of(value)
            is_known = isinstance(fact, Tensor) and None not in (fact.element_type, fact.shape)
            if is_known:
                facts.set(output, fact)  # what a port declares is not needed
        self.node.replace(*(value for _, value in zip_longest(outputs, made)))

    def is_read(self, place: int) -> bool:
        """Return whether something reads an output."""
        outputs = self.node.node.outputs
        return place < len(outputs) and is_used(outputs[place])

    def op(
        self,
        op_type: str,
        inputs: Iterable[ir.Value],
        attributes: Mapping[str, object] | None = None,
    ) -> ir.Value:
        """Add a node; returns its output."""
        return self.node.make.op(op_type, inputs, attributes)

    def ops(
        self,
        op_type: str,
        inputs: Iterable[ir.Value | None],
        attributes: Mapping[str, object],
        count: int,
    ) -> list[ir.Value]:
        """Add a node that has several outputs; returns them."""
        return self.node.make.ops(op_type, inputs, attributes, ["part"] * count)

    def cast(self, value: ir.Value, kind: ir.DataType) -> ir.Value:
        """Convert a tensor to an element type."""
        return self.op("Cast", [value], {"to": int(kind)})

    def filled(self, number: float) -> ir.Value:
        """Return a number as a scalar of the type of the data."""
        kind = self.element_type()
        array = np.array(number).astype(kind.numpy())
        if not kind.is_floating_point() and array != number:
            raise self.refusal(f"{number} is not a number of the type {kind.name.lower()}")
        return self.node.make.constant(array, kind.numpy())

    def element_type(self, place: int = 0) -> ir.DataType:
        """Return the element type of an input."""
        kind = self.node.dtype(place)
        if kind is None:
            raise self.refusal("the element type of its data is not known")
        return kind

    def listed(self, place: int) -> ir.Value:
        """Return an input of integers as a list of int64."""
        known = self.node.known(place)
        if known is not None:
            return self.node.make.make(tuple(known.reshape(-1).tolist()))
        made, shape = self.inputs[place], self.node.shape(place)
        if self.node.dtype(place) != ir.DataType.INT64:
            made = self.cast(made, ir.DataType.INT64)
        if shape is None or len(shape) != 1:
            made = self.op("Reshape", [made, self.node.make.make(-1)])
        return made

    def integers(self, place: int) -> list[int]:
        """Return an input of integers, which has to be constant."""
        known = self.node.known(place)
        if known is None:
            raise self.refusal(f"its input {place} is known only at run time", "make it a constant")
        return [int(number) for number in known.reshape(-1)]

    def scalar(self, place: int) -> float:
        """Return an input of one number, which has to be constant."""
        known = self.node.known(place)
        if known is None or known.size != 1:
            raise self.refusal(f"its input {place} is not one constant number")
        return float(known.reshape(-1)[0])

    def dims(self, place: int) -> tuple[int, ...]:
        """Return the shape of an input, which has to be known."""
        shape = self.node.shape(place)
        if shape is None or not are_known(shape):
            raise self.refusal(f"the shape of its input {place} is not known")
        return tuple(map(int, shape))

    def rank(self, place: int = 0) -> int:
        """Return the rank of an input."""
        shape = self.node.shape(place)
        if shape is None:
            raise self.refusal(f"the rank of its input {place} is not known")
        return len(shape)

    def is_empty(self, place: int) -> bool:
        """Return whether an input may have no elements."""
        shape = self.node.shape(place)
        return shape is None or any(not is_known(dim) or dim == 0 for dim in shape)

    def count(self, place: int) -> int:
        """Return how many elements an input has."""
        shape = self.node.shape(place)
        if shape is None or len(shape) != 1 or not are_known(shape):
            raise self.refusal(f"it is not known how many elements its input {place} has")
        return int(shape[0])

    def every_axis(self, place: int) -> ir.Value:
        """Return the first axes, as many as an input has elements."""
        return self.node.make.make(tuple(range(self.count(place))))

    def with_last_axes_swapped(self, place: int) -> ir.Value:
        """Return an input with its last two axes swapped; as it is if it has one only."""
        order = list(range(self.rank(place)))
        if len(order) < 2:
            return self.inputs[place]
        order[-2:] = order[:-3:-1]
        return self.op("Transpose", [self.inputs[place]], {"perm": order})
