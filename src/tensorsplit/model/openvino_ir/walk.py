"""One walk over the layers of an IR graph: it cuts what is known, and checks what is not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tensorsplit.arrays import execute
from tensorsplit.arrays import numpy as numpy_arrays
from tensorsplit.core.dimensions import Shape, is_known
from tensorsplit.core.errors import MISSING_OPERAND, UNKNOWN_COUNT, UNKNOWN_OPERAND, SplitError
from tensorsplit.core.operands import Operand
from tensorsplit.core.plan import SplitPlan
from tensorsplit.core.records import operators
from tensorsplit.core.records.openvino import ELEMENT_TYPES
from tensorsplit.core.resolve import Intent, bind, part_sizes, plan
from tensorsplit.core.schema import Operator
from tensorsplit.model.openvino_ir.declared import CONSTANTS, constant_of, read_constant
from tensorsplit.model.openvino_ir.graph import Graph, Layer
from tensorsplit.model.openvino_ir.types import is_held
from tensorsplit.model.openvino_ir.xml import whole

FAMILY = frozenset(record.name for record in operators.values() if record.vendor == "openvino")
"""The layer types that this package defines."""


@dataclass(frozen=True, slots=True)
class Value:
    """What is known of a tensor.

    Attributes:
        shape: Its shape, with None for unknown dimensions; None if the rank is not known.
        element_type: Its element type in the package's spelling, or None.
        array: The tensor itself, or None.
    """

    shape: Shape | None = None
    element_type: str | None = None
    array: Any = None

    @classmethod
    def of(cls, array: Any) -> Value:
        """Everything about an array."""
        return cls(array.shape, numpy_arrays.element_type(array), array)


def record_of(layer: Layer) -> Operator | None:
    """The record of a split layer; None for a layer of another type.

    Raises:
        SplitError: TS101 for a split layer of a version that there is not.
    """
    if layer.type not in FAMILY:
        return None
    try:
        return operators[f"openvino.{layer.type}-{layer.version.removeprefix('opset')}"]
    except SplitError as error:
        raise SplitError(
            error.kind,
            f"the layer is {layer.type} of version {layer.version[:40]!r}",
            f"the versions are {', '.join(op for op in operators if op.startswith('openvino.'))}",
            node=layer.path,
        ) from None


class Walk:
    """A walk over a graph, from its inputs to its results.

    Args:
        weights: The ``.bin`` file.
        load_all: Whether to read every constant, or only those that hold operands.

    Attributes:
        undecided: The paths of the split layers that could not be checked completely.
        cuts: The path of each split layer, what it asks for, and the shape of its data, if known.
        known: What was found of each layer's outputs, by layer id, in the graph of the last `run`.
    """

    def __init__(self, weights: Path, *, load_all: bool) -> None:
        self._weights = weights
        self._load_all = load_all
        self.undecided: list[str] = []
        self.cuts: list[tuple[str, Intent, Shape | None]] = []
        self.known: dict[int, tuple[Value, ...]] = {}

    def run(self, graph: Graph, fed: Mapping[int, Value]) -> list[Value]:
        """Go through a graph.

        Args:
            graph: The graph.
            fed: What is known of its Parameters, by layer id.

        Returns:
            What is known of each Result, in the order of the file.

        Raises:
            SplitError: For a split layer that is wrong, or a constant that can't be read.
        """
        holds_operands = {
            source.layer
            for layer in graph.order
            if layer.type in FAMILY
            for source in layer.sources[1:]
        }
        values: dict[int, tuple[Value, ...]] = {}
        for layer in graph.order:
            inputs = [values[source.layer][source.output] for source in layer.sources]
            if layer.type == "Parameter":
                values[layer.id] = (fed.get(layer.id, Value()),)
            elif layer.type in CONSTANTS:
                values[layer.id] = (self._constant(layer, layer.id in holds_operands),)
            elif layer.type == "Result":
                values[layer.id] = (inputs[0],)
            else:
                values[layer.id] = self._run_layer(layer, inputs)
        self.known = values
        return [values[layer.id][0] for layer in graph.of_type("Result")]

    def _constant(self, layer: Layer, holds_operand: bool) -> Value:
        constant = constant_of(layer)
        read = self._load_all or (holds_operand and is_held(constant.element_type))
        array = read_constant(layer, self._weights) if read else None
        return Value(constant.shape, ELEMENT_TYPES[constant.element_type], array)

    def _run_layer(self, layer: Layer, inputs: list[Value]) -> tuple[Value, ...]:
        record = record_of(layer)
        if record is None:
            for body in layer.bodies:
                self.run(body, {})
            return (Value(),) * len(layer.outputs)
        try:
            return self._cut(record, layer, inputs)
        except SplitError as error:
            raise error.located(operator=record.id, node=layer.path) from None

    def _cut(self, record: Operator, layer: Layer, inputs: list[Value]) -> tuple[Value, ...]:
        intent = bind(record, _operands(record, layer, inputs), len(layer.outputs))
        data = inputs[0]
        self.cuts.append((layer.path, intent, data.shape))
        unknown = (Value(element_type=data.element_type),) * len(layer.outputs)
        try:
            if data.shape is None:
                part_sizes(intent, None)  # lengths may be wrong for whatever shape
                made = None
            else:
                made = plan(intent, data.shape)
        except SplitError as error:
            if error.kind is not UNKNOWN_COUNT:
                raise
            made = None
        if not isinstance(made, SplitPlan) or data.shape is None:
            self.undecided.append(layer.path)
            return unknown
        if not is_known(data.shape[made.axis]):
            self.undecided.append(layer.path)
        if data.array is None:
            return tuple(Value(shape, data.element_type) for shape in made.output_shapes)
        return tuple(map(Value.of, execute(made, data.array, numpy_arrays)))


def _operands(record: Operator, layer: Layer, inputs: list[Value]) -> list[tuple[str, Operand]]:
    """The operands of a split layer: attributes from its data, the rest from its inputs."""
    if not inputs:
        raise SplitError(
            MISSING_OPERAND,
            "the layer has no inputs",
            "connect the data",
            parameter=record.inputs[0].name,
        )
    if len(inputs) > len(record.inputs):
        raise SplitError(
            UNKNOWN_OPERAND,
            f"the layer has {len(inputs)} inputs",
            f"its inputs are {', '.join(parameter.name for parameter in record.inputs)}",
        )
    found = []
    for attribute in record.attributes:
        text = layer.attributes.get(attribute.name)
        if text is not None:
            unsigned = text.strip().removeprefix("-")
            number = whole(unsigned, f"its {attribute.name}", layer.path)
            values = (-number if unsigned != text.strip() else number,)
            found.append((attribute.name, Operand(values, attribute.rank, None, "attribute")))
    for parameter, value in zip(record.inputs[1:], inputs[1:], strict=False):
        found.append((parameter.name, _operand(parameter.name, value)))
    return found


def _operand(name: str, value: Value) -> Operand:
    if value.array is None:
        rank = None if value.shape is None else len(value.shape)
        return Operand(None, rank, value.element_type, "input")
    values, rank, element_type = numpy_arrays.operand_parts(value.array, name)
    return Operand(values, rank, element_type, "input")
