"""What the layers of an OpenVINO IR are in ONNX: a rule for each type of layer.

A rule names the versions and attributes that it knows, so that nothing of a layer is lost. Layers
are written at opset 18; splits have rules of their own, by what they ask for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

import onnx_ir as ir

from tensorsplit.model.convert.layer_conversion import LayerConversion

FAR = (1 << 63) - 1
"""A bound that is larger than every dimension."""

OPSET = 18
"""The opset that layers are written at."""

Rewrite = Callable[[LayerConversion], ir.Value]


@dataclass(frozen=True, slots=True)
class LayerRule:
    """How a type of layer is written.

    Attributes:
        make: Makes the nodes; returns the only output.
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


def _with_axis(op_type: str, versions: str = "opset1") -> LayerRule:
    """Return the rule of a layer that is one node, along an axis."""

    def make(layer: LayerConversion) -> ir.Value:
        return layer.op(op_type, layer.inputs, {"axis": layer.integer("axis")})

    return _rule(make, "axis", versions)


def _broadcast(op_type: str, versions: str = "opset1", *, negated: bool = False) -> LayerRule:
    """Return the rule of a layer whose operands are broadcast as NumPy does."""

    def make(layer: LayerConversion) -> ir.Value:
        layer.check_broadcast()
        made = layer.op(op_type, layer.inputs)
        return layer.op("Not", [made]) if negated else made

    return _rule(make, "auto_broadcast", versions)


def _broadcast_to(layer: LayerConversion) -> ir.Value:
    """Write a Broadcast; one in a single direction where the data has no more than the target."""
    mode = layer.text("mode", "numpy")
    data = layer.node.shape()
    if mode == "numpy":
        if data is None or any(dim != 1 for dim in data):
            known = layer.node.known(1)
            target = None if known is None else tuple(known.reshape(-1).tolist())
            is_alike = data is not None and target is not None and len(data) <= len(target)
            ends = zip(reversed(data or ()), reversed(target or ()), strict=False)
            if not is_alike or any(dim not in (1, size) for dim, size in ends):
                raise layer.refusal("ONNX's Expand would also take a target that is smaller")
    elif mode != "bidirectional":
        raise layer.refusal(f"its mode is {mode}")
    return layer.op("Expand", [layer.inputs[0], layer.listed(1)])


def _clamp(layer: LayerConversion) -> ir.Value:
    bounds = [layer.filled(layer.number(name)) for name in ("min", "max")]
    return layer.op("Clip", [*layer.inputs, *bounds])


def _convolution(layer: LayerConversion) -> ir.Value:
    modes = {"explicit": "NOTSET", "valid": "VALID"}
    modes |= {"same_upper": "SAME_UPPER", "same_lower": "SAME_LOWER"}
    mode = layer.text("auto_pad", "explicit")
    if mode not in modes:
        raise layer.refusal(f"its auto_pad is {mode}")
    attributes: dict[str, object] = {
        "auto_pad": modes[mode],
        "strides": layer.numbers("strides"),
        "dilations": layer.numbers("dilations"),
    }
    if mode == "explicit":
        attributes["pads"] = [*layer.numbers("pads_begin"), *layer.numbers("pads_end")]
    return layer.op("Conv", layer.inputs, attributes)


def _divide(layer: LayerConversion) -> ir.Value:
    """Write a quotient; of integers, ``m_pythondiv`` says that it is rounded down."""
    layer.check_broadcast()
    left, right = layer.inputs
    made = layer.op("Div", [left, right])
    kind = layer.element_type()
    if kind.is_floating_point() or not kind.is_signed() or not layer.flag("m_pythondiv", True):
        return made
    rest = layer.op("Sub", [left, layer.op("Mul", [made, right])])
    zero, one = layer.filled(0), layer.filled(1)
    signs = [layer.op("Less", [each, zero]) for each in (rest, right)]
    is_whole = layer.op("Equal", [rest, zero])
    is_below = layer.op("And", [layer.op("Not", [is_whole]), layer.op("Xor", signs)])
    return layer.op("Where", [is_below, layer.op("Sub", [made, one]), made])


def _elu(layer: LayerConversion) -> ir.Value:
    return layer.op("Elu", layer.inputs, {"alpha": layer.number("alpha")})


def _floor_mod(layer: LayerConversion) -> ir.Value:
    layer.check_broadcast()
    if layer.element_type().is_floating_point():
        raise layer.refusal("ONNX's Mod of floats has the sign of the dividend")
    return layer.op("Mod", layer.inputs)


def _mod(layer: LayerConversion) -> ir.Value:
    layer.check_broadcast()
    return layer.op("Mod", layer.inputs, {"fmod": 1})


def _round(layer: LayerConversion) -> ir.Value:
    if layer.text("mode") != "half_to_even":
        raise layer.refusal("ONNX's Round takes halves to the even number")
    return layer.op("Round", layer.inputs)


def _squared_difference(layer: LayerConversion) -> ir.Value:
    layer.check_broadcast()
    rest = layer.op("Sub", layer.inputs)
    return layer.op("Mul", [rest, rest])


def _convert(layer: LayerConversion) -> ir.Value:
    return layer.cast(layer.inputs[0], layer.named_type("destination_type"))


def _gather(layer: LayerConversion) -> ir.Value:
    data, indices, _ = layer.inputs
    if layer.integer("batch_dims", 0):
        raise layer.refusal("ONNX's Gather has no batches")
    (axis,) = layer.integers(2)
    return layer.op("Gather", [data, indices], {"axis": axis})


def _matmul(layer: LayerConversion) -> ir.Value:
    operands = [
        layer.with_last_axes_swapped(place) if layer.flag(f"transpose_{name}", False) else operand
        for place, (name, operand) in enumerate(zip("ab", layer.inputs, strict=True))
    ]
    return layer.op("MatMul", operands)


def _range(layer: LayerConversion) -> ir.Value:
    kind = layer.named_type("output_type")
    if any(layer.element_type(place) != kind for place in range(3)):
        raise layer.refusal("its numbers are of another type than the output")
    return layer.op("Range", layer.inputs)


def _reduced(op_type: str, versions: str = "opset1", *, floats: bool = False) -> LayerRule:
    """Return the rule of a reduction; no axes at all reduce nothing."""

    def make(layer: LayerConversion) -> ir.Value:
        if floats and not layer.element_type().is_floating_point():
            raise layer.refusal("how integers are rounded differs")
        attributes = {"keepdims": layer.flag("keep_dims", False), "noop_with_empty_axes": 1}
        return layer.op(op_type, [layer.inputs[0], layer.listed(1)], attributes)

    return _rule(make, "keep_dims", versions)


def _reshape(layer: LayerConversion) -> ir.Value:
    allows_zero = not layer.flag("special_zero", False)
    return layer.op("Reshape", [layer.inputs[0], layer.listed(1)], {"allowzero": allows_zero})


def _shape_of(layer: LayerConversion) -> ir.Value:
    made, kind = layer.op("Shape", layer.inputs), layer.named_type("output_type", "i64")
    return made if kind == ir.DataType.INT64 else layer.cast(made, kind)


def _slice(layer: LayerConversion) -> ir.Value:
    data, start, stop, step, *axes = (
        layer.inputs[0] if place == 0 else layer.listed(place) for place in range(len(layer.inputs))
    )
    if not axes:
        axes = [layer.every_axis(1)]
    return layer.op("Slice", [data, start, stop, *axes, step])


def _strided_slice(layer: LayerConversion) -> ir.Value:
    """Write a StridedSlice; a bit of a mask says that a bound is left out."""
    if any(layer.numbers("new_axis_mask")) or any(layer.numbers("ellipsis_mask")):
        raise layer.refusal("it adds axes, or leaves some out")
    count = layer.count(1)
    steps = layer.integers(3) if len(layer.inputs) > 3 else [1] * count
    shrunk = _mask(layer, "shrink_axis_mask", count)
    if any(shrunk):
        return _with_single(layer, steps, shrunk)
    ends = [FAR if step > 0 else -FAR for step in steps]
    starts = [0 if step > 0 else FAR for step in steps]
    bounds = [_bounds(layer, 1, "begin_mask", starts), _bounds(layer, 2, "end_mask", ends)]
    make = layer.node.make.make
    axes = make(tuple(range(count)))
    return layer.op("Slice", [layer.inputs[0], *bounds, axes, make(tuple(steps))])


def _bounds(layer: LayerConversion, place: int, name: str, instead: list[int]) -> ir.Value:
    """Return the bounds of a slice, and others instead of those that a mask leaves out."""
    mask = _mask(layer, name, len(instead))
    if not any(mask):
        return layer.listed(place)
    given = instead if all(mask) else layer.integers(place)
    chosen = zip(mask, instead, given, strict=True)
    return layer.node.make.make(tuple(far if gone else bound for gone, far, bound in chosen))


def _mask(layer: LayerConversion, name: str, count: int) -> list[int]:
    return [*layer.numbers(name), *[0] * count][:count]


def _with_single(layer: LayerConversion, steps: list[int], shrunk: list[int]) -> ir.Value:
    """Write a StridedSlice that takes one position of an axis, and all of each other axis."""
    starts = layer.integers(1)
    names = ("begin_mask", "end_mask")
    masks = zip(*(_mask(layer, name, len(steps)) for name in names), strict=True)
    whole = [begin and end and step == 1 for (begin, end), step in zip(masks, steps, strict=True)]
    if shrunk.count(1) != 1 or not all(a or b for a, b in zip(whole, shrunk, strict=True)):
        raise layer.refusal("it takes single positions, and slices of other axes")
    axis = shrunk.index(1)
    index = layer.node.make.constant(starts[axis])
    return layer.op("Gather", [layer.inputs[0], index], {"axis": axis})


def _swish(layer: LayerConversion) -> ir.Value:
    data, *factor = layer.inputs
    scaled = layer.op("Mul", [data, *factor]) if factor else data
    return layer.op("Mul", [data, layer.op("Sigmoid", [scaled])])


def _tile(layer: LayerConversion) -> ir.Value:
    shape = layer.node.shape()
    if shape is None or len(shape) != layer.count(1):
        raise layer.refusal("it has not one count for each axis")
    return layer.op("Tile", [layer.inputs[0], layer.listed(1)])


def _transpose(layer: LayerConversion) -> ir.Value:
    order = layer.integers(1)
    return layer.op("Transpose", [layer.inputs[0]], {"perm": order} if order else {})


def _with_axes(op_type: str) -> LayerRule:
    """Return the rule of a layer that takes axes away, or adds them."""

    def make(layer: LayerConversion) -> ir.Value:
        data, *axes = layer.inputs
        if axes and layer.is_empty(1):
            raise layer.refusal("it names no axes")
        return layer.op(op_type, [data, layer.listed(1)] if axes else [data])

    return _rule(make)


RULES: Mapping[str, LayerRule] = MappingProxyType(
    {
        **{
            name: _same(name)
            for name in (
                *("Abs", "Acos", "Asin", "Atan", "Cos", "Cosh", "Erf", "Exp", "Floor", "Log"),
                *("Sigmoid", "Sign", "Sin", "Sinh", "Sqrt", "Tan", "Tanh"),
            )
        },
        "Acosh": _same("Acosh", "opset4"),
        "Add": _broadcast("Add"),
        "Asinh": _same("Asinh", "opset4"),
        "Atanh": _same("Atanh", "opset4"),
        "Ceiling": _same("Ceil"),
        "Broadcast": _rule(_broadcast_to, "mode", "opset3"),
        "Clamp": _rule(_clamp, "min max"),
        "Concat": _with_axis("Concat"),
        "Convert": _rule(_convert, "destination_type"),
        "Convolution": _rule(_convolution, "auto_pad strides dilations pads_begin pads_end"),
        "Divide": _rule(_divide, "auto_broadcast m_pythondiv"),
        "Elu": _rule(_elu, "alpha"),
        "Equal": _broadcast("Equal"),
        "FloorMod": _rule(_floor_mod, "auto_broadcast"),
        "Gather": _rule(_gather, "batch_dims", "opset1 opset7 opset8"),
        "Greater": _broadcast("Greater"),
        "GreaterEqual": _broadcast("GreaterOrEqual"),
        "Identity": _same("Identity", "opset16"),
        "HSwish": _same("HardSwish", "opset4"),
        "Less": _broadcast("Less"),
        "LessEqual": _broadcast("LessOrEqual"),
        "LogSoftmax": _with_axis("LogSoftmax", "opset5"),
        "LogicalAnd": _broadcast("And"),
        "LogicalNot": _same("Not"),
        "LogicalOr": _broadcast("Or"),
        "LogicalXor": _broadcast("Xor", "opset1 opset2"),
        "MatMul": _rule(_matmul, "transpose_a transpose_b"),
        "Maximum": _broadcast("Max"),
        "Minimum": _broadcast("Min"),
        "Mod": _rule(_mod, "auto_broadcast"),
        "Multiply": _broadcast("Mul"),
        "Negative": _same("Neg"),
        "NotEqual": _broadcast("Equal", negated=True),
        "Power": _broadcast("Pow"),
        "Range": _rule(_range, "output_type", "opset4"),
        "ReduceL1": _reduced("ReduceL1", "opset4"),
        "ReduceL2": _reduced("ReduceL2", "opset4", floats=True),
        "ReduceMax": _reduced("ReduceMax"),
        "ReduceMean": _reduced("ReduceMean", floats=True),
        "ReduceMin": _reduced("ReduceMin"),
        "ReduceProd": _reduced("ReduceProd"),
        "ReduceSum": _reduced("ReduceSum"),
        "ReLU": _same("Relu"),
        "Reshape": _rule(_reshape, "special_zero"),
        "Round": _rule(_round, "mode", "opset5"),
        "Select": _broadcast("Where"),
        "ShapeOf": _rule(_shape_of, "output_type", "opset1 opset3"),
        "Slice": _rule(_slice, "", "opset8"),
        "SoftMax": _with_axis("Softmax", "opset1 opset8"),
        "SoftPlus": _same("Softplus", "opset4"),
        "SquaredDifference": _rule(_squared_difference, "auto_broadcast"),
        "Squeeze": _with_axes("Squeeze"),
        "StridedSlice": _rule(
            _strided_slice,
            "begin_mask end_mask new_axis_mask shrink_axis_mask ellipsis_mask",
        ),
        "Subtract": _broadcast("Sub"),
        "Tile": _rule(_tile),
        "Swish": _rule(_swish, "", "opset4"),
        "Transpose": _rule(_transpose),
        "Unsqueeze": _with_axes("Unsqueeze"),
    }
)
"""The rule of each type of layer that has a counterpart, beside splits."""
