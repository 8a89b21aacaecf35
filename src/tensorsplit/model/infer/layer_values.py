"""The lengths of splits that layers of an OpenVINO IR calculate from shapes and constants.

Such a layer is inferred as a node of ONNX that gives the same. Nothing is known of other layers,
versions and attributes but what their ports declare.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import TypeAlias

import onnx_ir as ir

from tensorsplit.core.dimensions import MAX_DIM, Dim, Shape, is_at_least
from tensorsplit.model.graph.called_in_onnx import name_in_onnx
from tensorsplit.model.graph.facts import UNKNOWN, Fact, NotKnownError, Tensor, as_tensor
from tensorsplit.model.infer.elements import WHOLE
from tensorsplit.model.infer.node_outputs import infer_outputs
from tensorsplit.model.openvino_ir import LAYER_VERSION
from tensorsplit.model.openvino_ir.attributes import BROADCAST, OPSET, LayerAttributes


def infer_layer(node: ir.Node, inputs: list[Fact]) -> list[Fact]:
    """Return a fact for each output of a layer that is not a split."""
    rule = _RULES.get((node.op_type, str(node.metadata_props.get(LAYER_VERSION))))
    found: list[Fact] = [UNKNOWN] * len(node.outputs)
    if rule is not None:
        with suppress(NotKnownError):
            found[:1] = [rule(_KnownLayer(node, inputs))]
    return found


class _KnownLayer(LayerAttributes):
    """A layer and the facts about its inputs; it raises where a rule asks for an unknown one."""

    def __init__(self, node: ir.Node, inputs: list[Fact]) -> None:
        super().__init__(node)
        self.inputs = [as_tensor(fact) for fact in inputs]

    def refusal(self, reason: str) -> NotKnownError:
        """Return the exception for a layer that stays open."""
        return NotKnownError(reason)

    def shapes(self) -> list[Shape | None]:
        """Return the shape of each input, or None where it is not known."""
        return [each.shape for each in self.inputs]

    def listed(self, place: int) -> Tensor:
        """Return an input of integers as a list of int64."""
        values = self.given(place).values
        if values is None:
            raise NotKnownError
        return _listed(values)

    def integers(self, place: int) -> tuple[int, ...]:
        """Return an input of integers that are all known."""
        values = self.given(place).constant
        if values is None:
            raise NotKnownError
        return values

    def given(self, place: int) -> Tensor:
        """Return an input."""
        if place >= len(self.inputs):
            raise NotKnownError
        return self.inputs[place]

    def as_node(
        self, op_type: str, inputs: list[Tensor], attributes: Mapping[str, int] | None = None
    ) -> Tensor:
        """Return the fact about the output of a node of ONNX."""
        held = [ir.AttrInt64(name, int(value)) for name, value in (attributes or {}).items()]
        outputs = [ir.Value(name="made")]
        node = ir.Node("", op_type, [ir.Value() for _ in inputs], held, outputs=outputs)
        (found,) = infer_outputs(node, list(inputs), {"": OPSET})
        return as_tensor(found)


_Rule: TypeAlias = Callable[[_KnownLayer], Tensor]


def _same(op_type: str) -> _Rule:
    def rule(layer: _KnownLayer) -> Tensor:
        layer.check_broadcast()
        return layer.as_node(op_type, layer.inputs)

    return rule


def _divide(layer: _KnownLayer) -> Tensor:
    """Infer a quotient of integers >= 0, which is rounded down in both."""
    layer.check_broadcast()
    values = [entry for each in layer.inputs for entry in each.values or (None,)]
    are_whole = all(each.element_type in WHOLE for each in layer.inputs)
    if not are_whole or not all(is_at_least(entry, 0) for entry in values):
        raise NotKnownError
    return layer.as_node("Div", layer.inputs)


def _shape_of(layer: _KnownLayer) -> Tensor:
    return replace(
        layer.as_node("Shape", layer.inputs), element_type=layer.named_type("output_type", "i64")
    )


def _convert(layer: _KnownLayer) -> Tensor:
    return layer.as_node("Cast", layer.inputs, {"to": layer.named_type("destination_type")})


def _gather(layer: _KnownLayer) -> Tensor:
    axis = layer.listed(2).constant
    if axis is None or len(axis) != 1 or layer.integer("batch_dims", 0) != 0:
        raise NotKnownError
    return layer.as_node("Gather", layer.inputs[:2], {"axis": axis[0]})


def _gather_before_8(layer: _KnownLayer) -> Tensor:
    """Infer a Gather in which no index counts from the back."""
    if not all(is_at_least(index, 0) for index in layer.integers(1)):
        raise NotKnownError
    return _gather(layer)


def _with_list(op_type: str) -> _Rule:
    """Return the rule of a layer with a list of integers, which may be left out."""

    def rule(layer: _KnownLayer) -> Tensor:
        lists = [layer.listed(place) for place in range(1, len(layer.inputs))]
        return layer.as_node(op_type, [layer.given(0), *lists])

    return rule


def _reshape(layer: _KnownLayer) -> Tensor:
    allows_zero = not layer.flag("special_zero", False)
    inputs = [layer.given(0), layer.listed(1)]
    return layer.as_node("Reshape", inputs, {"allowzero": allows_zero})


def _broadcast(layer: _KnownLayer) -> Tensor:
    if layer.word("mode", "numpy") != "numpy":
        raise NotKnownError
    return layer.as_node("Expand", [layer.given(0), layer.listed(1)])


def _reduced(op_type: str) -> _Rule:
    def rule(layer: _KnownLayer) -> Tensor:
        attributes = {"keepdims": layer.flag("keep_dims", False), "noop_with_empty_axes": 1}
        return layer.as_node(op_type, [layer.given(0), layer.listed(1)], attributes)

    return rule


def _tile(layer: _KnownLayer) -> Tensor:
    """Infer a Tile with a count for each axis; of more counts or fewer, ONNX has none."""
    data, counts = layer.given(0), layer.listed(1)
    if data.shape is None or counts.shape != (len(data.shape),):
        raise NotKnownError
    return layer.as_node("Tile", [data, counts])


def _cumulated(layer: _KnownLayer) -> Tensor:
    """Infer the shape of sums; engines know none of them before the model runs."""
    return replace(layer.given(0), values=None)


def _slice(layer: _KnownLayer) -> Tensor:
    start, stop, step, axes = map(layer.listed, range(1, 5))
    return layer.as_node("Slice", [layer.given(0), start, stop, axes, step])


def _strided_slice(layer: _KnownLayer) -> Tensor:
    """Infer a StridedSlice that adds no axes; those that it shrinks have one position each."""
    if any(layer.numbers("new_axis_mask")) or any(layer.numbers("ellipsis_mask")):
        raise NotKnownError
    starts, stops = layer.integers(1), layer.integers(2)
    steps = layer.integers(3) if len(layer.inputs) > 3 else (1,) * len(starts)
    if not starts or not len(starts) == len(stops) == len(steps):
        raise NotKnownError
    shrunk = layer.masked("shrink_axis_mask", len(starts))
    no_start, no_stop = (layer.masked(f"{end}_mask", len(starts)) for end in ("begin", "end"))
    bounds = []
    for axis, (start, stop, step) in enumerate(zip(starts, stops, steps, strict=True)):
        if shrunk[axis]:
            bounds.append((start, start + 1 or MAX_DIM, 1))
        else:
            first, last = (0, MAX_DIM) if step > 0 else (MAX_DIM, -MAX_DIM)
            given = first if no_start[axis] else start, last if no_stop[axis] else stop
            bounds.append((*given, step))
    begins, ends, strides = map(_listed, zip(*bounds, strict=True))
    axes = _listed(range(len(starts)))
    part = layer.as_node("Slice", [layer.given(0), begins, ends, axes, strides])
    if not any(shrunk):
        return part
    return layer.as_node("Squeeze", [part, _listed(at for at, gone in enumerate(shrunk) if gone)])


def _listed(numbers: Iterable[Dim]) -> Tensor:
    """Return a list of int64, as far as its elements are known."""
    values = tuple(numbers)
    return Tensor(ir.DataType.INT64, (len(values),), values)


_RULES: Mapping[tuple[str, str], _Rule] = {
    **{
        (name, "opset1"): _same(name_in_onnx(name))
        for name in (*BROADCAST, "FloorMod", "LogicalNot", "Mod", "Negative", "Select")
    },
    **{
        (name, "opset1"): _reduced(name)
        for name in ("ReduceMax", "ReduceMin", "ReduceProd", "ReduceSum")
    },
    ("Broadcast", "opset3"): _broadcast,
    ("Concat", "opset1"): lambda layer: layer.as_node(
        "Concat", layer.inputs, {"axis": layer.integer("axis")}
    ),
    ("Convert", "opset1"): _convert,
    ("CumSum", "opset3"): _cumulated,
    ("Divide", "opset1"): _divide,
    ("Gather", "opset1"): _gather_before_8,
    ("Gather", "opset7"): _gather_before_8,
    ("Gather", "opset8"): _gather,
    ("Reshape", "opset1"): _reshape,
    ("ShapeOf", "opset1"): _shape_of,
    ("ShapeOf", "opset3"): _shape_of,
    ("Slice", "opset8"): _slice,
    ("StridedSlice", "opset1"): _strided_slice,
    ("Tile", "opset1"): _tile,
    **{(name, "opset1"): _with_list(name) for name in ("Squeeze", "Unsqueeze")},
}
"""How a type and version of layer is inferred."""
