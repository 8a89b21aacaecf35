"""The split layers of an OpenVINO IR."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from tensorsplit.core.errors import SplitError
from tensorsplit.core.records.openvino import ELEMENT_TYPES
from tensorsplit.core.schema import Operator
from tensorsplit.model.check.cuts import as_text
from tensorsplit.model.check.declared import contradict
from tensorsplit.model.check.finding import Finding, Report, gathered, of_check, of_error
from tensorsplit.model.check.table import (
    DEAD_OUTPUT,
    DECLARED_SHAPE,
    DOES_NOTHING,
    EMPTY_PART,
    RUNTIME_LENGTHS,
    Check,
)
from tensorsplit.model.check.targets import of_features, of_ir
from tensorsplit.model.openvino_ir.declared import ranges_of
from tensorsplit.model.openvino_ir.graph import Graph, Layer
from tensorsplit.model.openvino_ir.ir import OpenVinoModel
from tensorsplit.model.openvino_ir.walk import FAMILY, Value, Walk, record_of
from tensorsplit.model.profiles import Profile

_WIDE = ("int64", "uint64", "double")
"""Element types whose large values OpenVINO does not keep (D16)."""


def examine_layers(model: OpenVinoModel, profile: Profile | None) -> Report:
    """Look at the split layers of an OpenVINO IR, in bodies too.

    Args:
        model: The model.
        profile: What is known of the engine that it is for, or None.
    """
    walk = _Look(model, profile)
    try:
        walk.run(model.graph, {layer.id: _parameter(layer) for layer in model.parameters})
    except SplitError as error:
        walk.findings.append(of_error(error))
    if profile is not None:
        walk.findings += of_ir(profile)
    return gathered(walk.findings, walk.split_layers)


def _parameter(layer: Layer) -> Value:
    ranges = ranges_of(layer)
    shape = None if ranges is None else tuple(low if low == high else None for low, high in ranges)
    return Value(shape, ELEMENT_TYPES.get(layer.attributes.get("element_type", "")))


class _Look(Walk):
    """A walk that notes what it finds, and goes on after a refusal.

    Args:
        model: The model.
        profile: What is known of the engine that it is for, or None.
    """

    def __init__(self, model: OpenVinoModel, profile: Profile | None) -> None:
        super().__init__(model.weights, load_all=False)
        self._profile = profile
        self.findings: list[Finding] = []
        self.split_layers = 0
        self._used: set[tuple[int, int]] = set()

    def run(self, graph: Graph, fed: Mapping[int, Value]) -> list[Value]:
        """As `Walk.run`, with the outputs that are used known to what is found in the graph."""
        used = {(source.layer, source.output) for layer in graph.order for source in layer.sources}
        outer, self._used = self._used, used
        try:
            return super().run(graph, fed)
        finally:
            self._used = outer

    def _constant(self, layer: Layer, holds_operand: bool) -> Value:
        try:
            return super()._constant(layer, holds_operand)
        except SplitError as error:
            self.findings.append(of_error(error.located(node=layer.path)))
            return Value()

    def _run_layer(self, layer: Layer, inputs: list[Value]) -> tuple[Value, ...]:
        declared = tuple(Value(port.shape) for port in layer.outputs)
        try:
            record = record_of(layer)
            self.split_layers += layer.type in FAMILY
            made = super()._run_layer(layer, inputs)
        except SplitError as error:
            self.findings.append(of_error(error.located(node=layer.path)))
            return declared
        if record is None:
            return declared
        dead = [p for p in range(len(layer.outputs)) if (layer.id, p) not in self._used]
        self.findings += _oddities(record, layer, inputs, made, dead)
        if self._profile is not None and self._profile.engine == "openvino":
            features = _features(record, inputs)
            self.findings += of_features(self._profile, features, layer.path)
        return made


def _features(record: Operator, inputs: list[Value]) -> dict[str, Any]:
    """The features of a layer; ONNX's Split is such a layer too, once OpenVINO has read it."""
    found: dict[str, Any] = {"operator": "Split", "version": record.id}
    element_type = inputs[0].element_type
    if element_type is not None:
        found["element_type"] = element_type
        if element_type in _WIDE:
            found["wide_values"] = element_type
    if any(value.array is None for value in inputs[2:]):
        found["runtime_lengths"] = True
    return found


def _oddities(
    record: Operator,
    layer: Layer,
    inputs: list[Value],
    made: tuple[Value, ...],
    dead: list[int],
) -> Iterator[Finding]:
    """What is odd about a split layer that no rule refuses."""

    def found(check: Check, message: str, fix: str, parameter: str | None = None) -> Finding:
        return of_check(check, layer.path, message, fix, operator=record.id, parameter=parameter)

    parts = record.outputs[0].name
    for parameter, value in zip(record.inputs[1:], inputs[1:], strict=False):
        if value.array is None:
            yield found(
                RUNTIME_LENGTHS,
                "it is known only at run time",
                "give it as a Const if it is always the same",
                parameter.name,
            )
    for port, value in zip(layer.outputs, made, strict=True):
        if port.shape and value.shape is not None and contradict(port.shape, value.shape):
            yield found(
                DECLARED_SHAPE,
                f"the output port {port.id} has dimensions {as_text(port.shape)}, but the part has"
                f" shape {as_text(value.shape)}",
                "correct the <dim> elements of the port",
                parts,
            )
    for place, value in enumerate(made):
        if value.shape and 0 in value.shape and 0 not in (inputs[0].shape or (0,)):
            yield found(
                EMPTY_PART, f"part {place} has no elements", "leave it out if it is not meant"
            )
    if len(made) == 1:
        yield found(
            DOES_NOTHING, "the one part is all of the data", "use the data, and remove the layer"
        )
    if dead:
        which = ", ".join(str(place) for place in dead[:8]) + (", ..." if len(dead) > 8 else "")
        yield found(
            DEAD_OUTPUT,
            "nobody uses what the layer makes"
            if len(dead) == len(made)
            else f"nobody uses {len(dead)} of the {len(made)} parts: {which}",
            "remove the layer"
            if len(dead) == len(made)
            else "use a Slice for the parts that are needed, if they are few",
            parts,
        )
