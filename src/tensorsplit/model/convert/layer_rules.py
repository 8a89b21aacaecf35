"""The layers of an OpenVINO IR in ONNX: a rule for each type of layer.

A rule names the versions and attributes that it knows, so that nothing of a layer is lost. Layers
are written at opset 18; splits have rules of their own, by what they ask for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType

import onnx_ir as ir

from tensorsplit.model.convert import (
    layer_arithmetic,
    layer_indexing,
    layer_recurrent,
    layer_windows,
)
from tensorsplit.model.convert.layer_conversion import LayerConversion
from tensorsplit.model.graph.called_in_onnx import name_in_onnx
from tensorsplit.model.openvino_ir.attributes import BROADCAST

Rewrite = Callable[[LayerConversion], ir.Value | Sequence[ir.Value]]


@dataclass(frozen=True, slots=True)
class LayerRule:
    """How a type of layer is written.

    Attributes:
        make: Makes the nodes; returns the output, or all of them.
        attributes: The attributes that it reads, or that change nothing.
        versions: The versions of the layer, such as ``opset1``.
    """

    make: Rewrite
    attributes: frozenset[str] = frozenset()
    versions: frozenset[str] = frozenset({"opset1"})


def _rule(make: Rewrite, attributes: str = "", versions: str = "opset1") -> LayerRule:
    return LayerRule(make, frozenset(attributes.split()), frozenset(versions.split()))


def _same(op_type: str, versions: str = "opset1") -> LayerRule:
    """Return the rule of a layer that is one node, without attributes."""
    return _rule(lambda layer: layer.op(op_type, layer.inputs), versions=versions)


def _read(
    op_type: str,
    read: Callable[[LayerConversion, str], object],
    *names: str,
    versions: str = "opset1",
) -> LayerRule:
    """Return the rule of a layer that is one node, with attributes of the same names."""

    def make(layer: LayerConversion) -> ir.Value:
        return layer.op(op_type, layer.inputs, {name: read(layer, name) for name in names})

    return _rule(make, " ".join(names), versions)


_off = partial(LayerConversion.flag, default=False)
_on = partial(LayerConversion.flag, default=True)
_or_0 = partial(LayerConversion.integer, default=0)


def _typed(op_type: str, versions: str) -> LayerRule:
    """Return the rule of a layer that is one node, whose integers may be of another type."""

    def make(layer: LayerConversion) -> ir.Value:
        made, kind = layer.op(op_type, layer.inputs), layer.named_type("output_type", "i64")
        return made if kind == ir.DataType.INT64 else layer.cast(made, kind)

    return _rule(make, "output_type", versions)


def _broadcast(
    op_type: str, versions: str = "opset1", *, negated: bool = False, **attributes: int
) -> LayerRule:
    """Return the rule of a layer whose operands are broadcast as NumPy does."""

    def make(layer: LayerConversion) -> ir.Value:
        layer.check_broadcast()
        made = layer.op(op_type, layer.inputs, attributes)
        return layer.op("Not", [made]) if negated else made

    return _rule(make, "auto_broadcast", versions)


def _rounded(op_type: str) -> LayerRule:
    """Return the rule of a layer that rounds, and leaves integers as they are."""

    def make(layer: LayerConversion) -> ir.Value:
        if not layer.element_type().is_floating_point():
            return layer.inputs[0]
        return layer.op(op_type, layer.inputs)

    return _rule(make)


def _with_constants(op_type: str, *names: str) -> LayerRule:
    """Return the rule of a layer whose further inputs are attributes in ONNX."""

    def make(layer: LayerConversion) -> ir.Value:
        attributes = {name: layer.scalar(place) for place, name in enumerate(names, 1)}
        return layer.op(op_type, layer.inputs[:1], attributes)

    return _rule(make)


def _logical(*, every: bool) -> LayerRule:
    """Return the rule of a reduction of booleans: by how many are true, or not true."""

    def make(layer: LayerConversion) -> ir.Value:
        data = layer.op("Not", layer.inputs[:1]) if every else layer.inputs[0]
        attributes = {"keepdims": layer.flag("keep_dims", False), "noop_with_empty_axes": 1}
        numbers = layer.cast(data, ir.DataType.INT64)
        count = layer.op("ReduceSum", [numbers, layer.listed(1)], attributes)
        found = layer.op("Greater", [count, layer.node.make.constant(0)])
        return layer.op("Not", [found]) if every else found

    return _rule(make, "keep_dims")


_REDUCTIONS = {"none": "none", "sum": "add", "prod": "mul", "max": "max", "min": "min"}


def _scattered(op_type: str, versions: str, *, with_axis: bool) -> LayerRule:
    """Return the rule of a layer that puts updates into data."""

    def make(layer: LayerConversion) -> ir.Value:
        reduction = layer.choice("reduction", _REDUCTIONS, "none")
        if reduction != "none" and not layer.flag("use_init_val", True):
            raise layer.refusal("its use_init_val is false")
        attributes: dict[str, object] = {"reduction": reduction}
        if with_axis:
            (attributes["axis"],) = layer.integers(3)
        return layer.op(op_type, layer.inputs[:3], attributes)

    return _rule(make, "reduction use_init_val" if with_axis else "reduction", versions)


def _matmul(layer: LayerConversion) -> ir.Value:
    operands = [
        layer.with_last_axes_swapped(place) if layer.flag(f"transpose_{name}", False) else operand
        for place, (name, operand) in enumerate(zip("ab", layer.inputs, strict=True))
    ]
    return layer.op("MatMul", operands)


def _reduced(op_type: str, versions: str = "opset1", *, floats: bool = False) -> LayerRule:
    """Return the rule of a reduction; no axes at all reduce nothing."""

    def make(layer: LayerConversion) -> ir.Value:
        if floats and not layer.element_type().is_floating_point():
            raise layer.refusal("how integers are rounded differs")
        attributes = {"keepdims": layer.flag("keep_dims", False), "noop_with_empty_axes": 1}
        return layer.op(op_type, [layer.inputs[0], layer.listed(1)], attributes)

    return _rule(make, "keep_dims", versions)


RULES: Mapping[str, LayerRule] = MappingProxyType(
    {
        **{
            name: _same(name_in_onnx(name))
            for name in (
                *("Abs", "Acos", "Asin", "Atan", "Cos", "Cosh", "Erf", "Exp", "Log", "LogicalNot"),
                *("Negative", "ReLU", "Sigmoid", "Sign", "Sin", "Sinh", "Sqrt", "Tan", "Tanh"),
            )
        },
        **{
            name: _same(name_in_onnx(name), "opset4")
            for name in ("Acosh", "Asinh", "Atanh", "HSwish", "Mish", "SoftPlus")
        },
        **{name: _broadcast(name_in_onnx(name)) for name in (*BROADCAST, "Power")},
        "AvgPool": _rule(
            layer_windows.average_pool,
            f"{layer_windows.POOL} exclude-pad",
            "opset1 opset14 opset16",
        ),
        "Ceiling": _rounded("Ceil"),
        "CumSum": _read("CumSum", _off, "exclusive", "reverse", versions="opset3"),
        "DepthToSpace": _rule(layer_indexing.depth_to_space, "mode block_size"),
        "Einsum": _read("Einsum", LayerConversion.text, "equation", versions="opset7"),
        "FakeQuantize": _rule(layer_arithmetic.fake_quantized, "levels auto_broadcast"),
        "Floor": _rounded("Floor"),
        "Broadcast": _rule(layer_indexing.broadcast_to, "mode", "opset3"),
        "Clamp": _rule(layer_arithmetic.clamp, "min max"),
        "Concat": _read("Concat", LayerConversion.integer, "axis"),
        "Convert": _rule(
            lambda layer: layer.cast(layer.inputs[0], layer.named_type("destination_type")),
            "destination_type",
        ),
        "Convolution": _rule(layer_windows.convolution, layer_windows.WINDOW),
        "ConvolutionBackpropData": _rule(
            layer_windows.transposed_convolution, f"{layer_windows.WINDOW} output_padding"
        ),
        "Divide": _rule(layer_arithmetic.divide, "auto_broadcast m_pythondiv"),
        "Elu": _read("Elu", LayerConversion.number, "alpha"),
        "FloorMod": _rule(layer_arithmetic.floor_mod, "auto_broadcast"),
        "Gather": _rule(layer_indexing.gather, "batch_dims", "opset1 opset7 opset8"),
        "GatherElements": _read(
            "GatherElements", LayerConversion.integer, "axis", versions="opset6"
        ),
        "GatherND": _read("GatherND", _or_0, "batch_dims", versions="opset8"),
        "Gelu": _rule(layer_arithmetic.gelu, "approximation_mode", "opset2 opset7"),
        "GroupConvolution": _rule(layer_windows.grouped_convolution, layer_windows.WINDOW),
        "GroupConvolutionBackpropData": _rule(
            layer_windows.grouped_transposed_convolution, f"{layer_windows.WINDOW} output_padding"
        ),
        "GroupNormalization": _rule(
            layer_arithmetic.group_normalization, "num_groups epsilon", "opset12"
        ),
        "GRUSequence": _rule(
            layer_recurrent.gru, f"{layer_recurrent.ATTRIBUTES} linear_before_reset", "opset5"
        ),
        "HardSigmoid": _with_constants("HardSigmoid", "alpha", "beta"),
        "HSigmoid": _rule(
            lambda layer: layer.op("HardSigmoid", layer.inputs, {"alpha": 1 / 6, "beta": 0.5}),
            versions="opset5",
        ),
        "Identity": _same("Identity", "opset16"),
        "Interpolate": _rule(layer_windows.interpolate, layer_windows.RESIZING, "opset4 opset11"),
        "IsFinite": _rule(layer_arithmetic.is_finite, "", "opset10"),
        "IsInf": _read("IsInf", _on, "detect_negative", "detect_positive", versions="opset10"),
        "IsNaN": _same("IsNaN", "opset10"),
        "LogSoftmax": _read("LogSoftmax", LayerConversion.integer, "axis", versions="opset5"),
        "LogicalXor": _broadcast("Xor", "opset1 opset2"),
        "LSTMSequence": _rule(layer_recurrent.lstm, layer_recurrent.ATTRIBUTES, "opset5"),
        "MatMul": _rule(_matmul, "transpose_a transpose_b"),
        "MaxPool": _rule(
            layer_windows.max_pool,
            f"{layer_windows.POOL} index_element_type axis",
            "opset1 opset8 opset14",
        ),
        "Mod": _broadcast("Mod", fmod=1),
        "MVN": _rule(layer_arithmetic.mvn, "eps normalize_variance eps_mode", "opset6"),
        "NonZero": _typed("NonZero", "opset3"),
        "NotEqual": _broadcast("Equal", negated=True),
        "OneHot": _rule(layer_indexing.one_hot, "axis"),
        "Pad": _rule(layer_windows.pad, "pad_mode", "opset1 opset12"),
        "PReLU": _rule(layer_arithmetic.prelu),
        "Range": _rule(layer_indexing.range_, "output_type", "opset4"),
        "ReduceL1": _reduced("ReduceL1", "opset4"),
        "ReduceL2": _reduced("ReduceL2", "opset4", floats=True),
        "ReduceLogicalAnd": _logical(every=True),
        "ReduceLogicalOr": _logical(every=False),
        "ReduceMax": _reduced("ReduceMax"),
        "ReduceMean": _reduced("ReduceMean", floats=True),
        "ReduceMin": _reduced("ReduceMin"),
        "ReduceProd": _reduced("ReduceProd"),
        "ReduceSum": _reduced("ReduceSum"),
        "Reshape": _rule(layer_indexing.reshape, "special_zero"),
        "RNNSequence": _rule(layer_recurrent.rnn, layer_recurrent.ATTRIBUTES, "opset5"),
        "Roll": _rule(layer_indexing.roll, "", "opset7"),
        "Round": _rule(layer_arithmetic.round_, "mode", "opset5"),
        "ScaledDotProductAttention": _rule(layer_arithmetic.attention, "causal", "opset13"),
        "ScatterElementsUpdate": _scattered("ScatterElements", "opset3 opset12", with_axis=True),
        "ScatterNDUpdate": _scattered("ScatterND", "opset4 opset15", with_axis=False),
        "Select": _rule(layer_arithmetic.select, "auto_broadcast"),
        "Selu": _with_constants("Selu", "alpha", "gamma"),
        "ShapeOf": _typed("Shape", "opset1 opset3"),
        "Slice": _rule(layer_indexing.slice_, "", "opset8"),
        "SoftMax": _read("Softmax", LayerConversion.integer, "axis", versions="opset1 opset8"),
        "SoftSign": _same("Softsign", "opset9"),
        "SpaceToDepth": _rule(layer_indexing.space_to_depth, "mode block_size"),
        "SquaredDifference": _rule(layer_arithmetic.squared_difference, "auto_broadcast"),
        "Squeeze": _rule(layer_indexing.squeeze),
        "StridedSlice": _rule(
            layer_indexing.strided_slice,
            "begin_mask end_mask new_axis_mask shrink_axis_mask ellipsis_mask",
        ),
        "TopK": _rule(
            layer_indexing.top_k,
            "axis mode sort index_element_type stable",
            "opset1 opset3 opset11",
        ),
        "Tile": _rule(layer_indexing.tile),
        "Swish": _rule(layer_arithmetic.swish, "", "opset4"),
        "Transpose": _rule(layer_indexing.transpose),
        "Unsqueeze": _rule(partial(layer_indexing.with_axes, "Unsqueeze")),
    }
)
"""The rule of each type of layer that has a counterpart, beside splits."""
