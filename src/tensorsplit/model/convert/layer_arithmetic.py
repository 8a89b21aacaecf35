"""Layers that calculate with elements: quotients, activations, normalisations, attention."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from tensorsplit.core.dimensions import is_known
from tensorsplit.model.convert.layer_conversion import LayerConversion


def clamp(layer: LayerConversion) -> ir.Value:
    """Write a Clamp, whose limits are attributes."""
    bounds = [layer.filled(layer.number(name)) for name in ("min", "max")]
    return layer.op("Clip", [*layer.inputs, *bounds])


def divide(layer: LayerConversion) -> ir.Value:
    """Write a quotient; of integers it is rounded down if ``m_pythondiv`` is set."""
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


def gelu(layer: LayerConversion) -> ir.Value:
    """Write x * (1 + erf(x / sqrt(2))) / 2, or what tanh makes of it."""
    data, half, one = layer.inputs[0], layer.filled(0.5), layer.filled(1)
    if layer.choice("approximation_mode", {"erf": True, "tanh": False}, "erf"):
        curve = layer.op("Erf", [layer.op("Mul", [data, layer.filled(0.5**0.5)])])
    else:
        cube = layer.op("Mul", [data, layer.op("Mul", [data, data])])
        added = layer.op("Add", [data, layer.op("Mul", [cube, layer.filled(0.044715)])])
        curve = layer.op("Tanh", [layer.op("Mul", [added, layer.filled((2 / np.pi) ** 0.5)])])
    return layer.op("Mul", [layer.op("Mul", [data, half]), layer.op("Add", [curve, one])])


def prelu(layer: LayerConversion) -> ir.Value:
    """Write a PReLU; a list of slopes is of the channels, on the second axis."""
    data, slope = layer.inputs
    shape, slopes = layer.node.shape(), layer.node.shape(1)
    if shape is None or slopes is None:
        raise layer.refusal("a rank is not known")
    if len(slopes) == 1 and slopes[0] != 1 and len(shape) > 2:
        if not is_known(slopes[0]) or shape[1] != slopes[0]:
            raise layer.refusal("it is not known that there is a slope for each channel")
        target = layer.node.make.make((-1, *[1] * (len(shape) - 2)))
        slope = layer.op("Reshape", [slope, target])
    return layer.op("PRelu", [data, slope])


def is_finite(layer: LayerConversion) -> ir.Value:
    """Write an IsFinite: neither infinite nor not a number."""
    either = [layer.op(name, layer.inputs) for name in ("IsNaN", "IsInf")]
    return layer.op("Not", [layer.op("Or", either)])


def _normalised(layer: LayerConversion, data: ir.Value, axes: ir.Value) -> ir.Value:
    """Return the distance of elements from their mean."""
    return layer.op("Sub", [data, layer.op("ReduceMean", [data, axes])])


def mvn(layer: LayerConversion) -> ir.Value:
    """Write an MVN: less the mean, by the deviation; eps is added before the root, or after."""
    axes, eps = layer.listed(1), layer.filled(layer.number("eps"))
    inside = layer.choice("eps_mode", {"inside_sqrt": True, "outside_sqrt": False})
    centred = _normalised(layer, layer.inputs[0], axes)
    if layer.is_empty(1):
        raise layer.refusal("it names no axes")
    if not layer.flag("normalize_variance", True):
        return centred
    squares = layer.op("ReduceMean", [layer.op("Mul", [centred, centred]), axes])
    if inside:
        deviation = layer.op("Sqrt", [layer.op("Add", [squares, eps])])
    else:
        deviation = layer.op("Add", [layer.op("Sqrt", [squares]), eps])
    return layer.op("Div", [centred, deviation])


def group_normalization(layer: LayerConversion) -> ir.Value:
    """Write a GroupNormalization, whose scale and bias are of channels."""
    make, (data, *channels), rank = layer.node.make, layer.inputs, layer.rank()
    grouped = layer.op("Reshape", [data, make.make((0, layer.integer("num_groups"), -1))])
    last = make.make(-1)
    centred = _normalised(layer, grouped, last)
    squares = layer.op("ReduceMean", [layer.op("Mul", [centred, centred]), last])
    eps = layer.filled(layer.number("epsilon"))
    deviation = layer.op("Sqrt", [layer.op("Add", [squares, eps])])
    shape = layer.op("Shape", [data])
    normal = layer.op("Reshape", [layer.op("Div", [centred, deviation]), shape])
    target = make.make((-1, *[1] * (rank - 2)))
    scale, bias = (layer.op("Reshape", [each, target]) for each in channels)
    return layer.op("Add", [layer.op("Mul", [normal, scale]), bias])


def attention(layer: LayerConversion) -> ir.Value:
    """Write an attention: a mask of booleans selects keys, one of numbers is added."""
    query, _, values, *others = layer.inputs
    scale = others[1] if len(others) > 1 else _attention_scale(layer)
    scaled = layer.op("Mul", [query, scale])
    scores = layer.op("MatMul", [scaled, layer.with_last_axes_swapped(1)])
    if layer.flag("causal", False):
        rows, columns = (_positions(layer, place) for place in (0, 1))
        counts = layer.op(
            "LessOrEqual", [columns, layer.op("Reshape", [rows, layer.node.make.make((-1, 1))])]
        )
        scores = layer.op("Where", [counts, scores, layer.filled(-np.inf)])
    elif others and layer.element_type(3) == ir.DataType.BOOL:
        scores = layer.op("Where", [others[0], scores, layer.filled(-np.inf)])
    elif others:
        scores = layer.op("Add", [scores, others[0]])
    return layer.op("MatMul", [layer.op("Softmax", [scores], {"axis": -1}), values])


def _attention_scale(layer: LayerConversion) -> ir.Value:
    """Return one by the root of how many elements a query has."""
    size = layer.op("Shape", layer.inputs[:1], {"start": -1})
    root = layer.op("Sqrt", [layer.cast(size, layer.element_type())])
    return layer.op("Reciprocal", [root])


def _positions(layer: LayerConversion, place: int) -> ir.Value:
    """Return the positions of an input on its last axis but one."""
    make = layer.node.make
    size = layer.op("Shape", [layer.inputs[place]], {"start": -2, "end": -1})
    ends = [make.constant(0), make.squeeze(size, [0]), make.constant(1)]
    return layer.op("Range", ends)


def fake_quantized(layer: LayerConversion) -> ir.Value:
    """Write a range quantised to steps, of as many numbers as there are levels."""
    layer.check_broadcast()
    kind, levels = layer.element_type(), layer.integer("levels")
    if not kind.is_floating_point() or levels < 2:
        raise layer.refusal("only numbers with a fraction are quantised, to 2 levels or more")
    for place in range(1, 5):
        _check_fits(layer, place)
    bounds = [layer.node.known(place) for place in (1, 2)]
    if bounds[0] is not None and bounds[1] is not None and np.any(bounds[0] >= bounds[1]):
        raise layer.refusal("OpenVINO departs from its text where a range does not rise")
    is_small = kind in (ir.DataType.FLOAT16, ir.DataType.BFLOAT16)  # calculated as float32
    wide = ir.DataType.FLOAT if is_small else kind
    data, *ends = (layer.cast(each, wide) if is_small else each for each in layer.inputs)
    begin, end, first, last = ends
    steps = layer.node.make.constant(np.array(levels - 1).astype(wide.numpy()), wide.numpy())
    share = layer.op("Div", [layer.op("Sub", [data, begin]), layer.op("Sub", [end, begin])])
    step = layer.op("Div", [layer.op("Round", [layer.op("Mul", [share, steps])]), steps])
    inside = layer.op("Add", [layer.op("Mul", [step, layer.op("Sub", [last, first])]), first])
    is_above = layer.op("Greater", [data, layer.op("Max", [begin, end])])
    is_below = layer.op("LessOrEqual", [data, layer.op("Min", [begin, end])])
    upper = layer.op("Where", [is_above, last, inside])
    made = layer.op("Where", [is_below, first, upper])
    return layer.cast(made, kind) if is_small else made


def _check_fits(layer: LayerConversion, place: int) -> None:
    """Refuse an operand that ONNX may broadcast to more than the data."""
    data, shape = layer.node.shape(), layer.node.shape(place)
    if data is not None and shape is not None and len(shape) <= len(data):
        ends = zip(reversed(shape), reversed(data), strict=False)
        if all(dim == 1 or (is_known(dim) and dim == size) for dim, size in ends):
            return
    raise layer.refusal(f"its input {place} may have more elements than the data")


def floor_mod(layer: LayerConversion) -> ir.Value:
    """Write the remainder of a quotient that is rounded down."""
    layer.check_broadcast()
    if not layer.element_type().is_floating_point():
        return layer.op("Mod", layer.inputs)
    left, right = layer.inputs
    whole = layer.op("Floor", [layer.op("Div", [left, right])])
    return layer.op("Sub", [left, layer.op("Mul", [whole, right])])


def round_(layer: LayerConversion) -> ir.Value:
    """Write a Round; halves go to the even number."""
    if layer.word("mode") != "half_to_even":
        raise layer.refusal("ONNX's Round takes halves to the even number")
    return layer.op("Round", layer.inputs)


def squared_difference(layer: LayerConversion) -> ir.Value:
    """Write the square of a difference."""
    layer.check_broadcast()
    rest = layer.op("Sub", layer.inputs)
    return layer.op("Mul", [rest, rest])


def select(layer: LayerConversion) -> ir.Value:
    """Write a Select; onnxruntime 1.32 has no Where of booleans."""
    layer.check_broadcast()
    condition, yes, no = layer.inputs
    if layer.element_type(1) != ir.DataType.BOOL:
        return layer.op("Where", layer.inputs)
    otherwise = layer.op("And", [layer.op("Not", [condition]), no])
    return layer.op("Or", [layer.op("And", [condition, yes]), otherwise])


def swish(layer: LayerConversion) -> ir.Value:
    """Write a Swish: x * sigmoid(x), or of x times a factor."""
    data, *factor = layer.inputs
    scaled = layer.op("Mul", [data, *factor]) if factor else data
    return layer.op("Mul", [data, layer.op("Sigmoid", [scaled])])
