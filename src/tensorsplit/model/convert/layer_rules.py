"""What the layers of an OpenVINO IR are in ONNX: a rule for each type of layer.

A rule names the versions and attributes that it knows, so that nothing of a layer is lost. Layers
are written at opset 18; splits have rules of their own, by what they ask for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType

import numpy as np
import onnx_ir as ir

from tensorsplit.core.dimensions import is_known
from tensorsplit.model.convert import layer_recurrent, layer_windows
from tensorsplit.model.convert.layer_conversion import LayerConversion

FAR = (1 << 63) - 1
"""A bound that is larger than every dimension."""

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


def _broadcast_to(layer: LayerConversion) -> ir.Value:
    """Write a Broadcast; one in a single direction where the data has no more than the target."""
    mode = layer.word("mode", "numpy")
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


def _gelu(layer: LayerConversion) -> ir.Value:
    """Write x * (1 + erf(x / sqrt(2))) / 2, or what tanh makes of it."""
    data, half, one = layer.inputs[0], layer.filled(0.5), layer.filled(1)
    if layer.choice("approximation_mode", {"erf": True, "tanh": False}, "erf"):
        curve = layer.op("Erf", [layer.op("Mul", [data, layer.filled(0.5**0.5)])])
    else:
        cube = layer.op("Mul", [data, layer.op("Mul", [data, data])])
        added = layer.op("Add", [data, layer.op("Mul", [cube, layer.filled(0.044715)])])
        curve = layer.op("Tanh", [layer.op("Mul", [added, layer.filled((2 / np.pi) ** 0.5)])])
    return layer.op("Mul", [layer.op("Mul", [data, half]), layer.op("Add", [curve, one])])


def _prelu(layer: LayerConversion) -> ir.Value:
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


def _is_finite(layer: LayerConversion) -> ir.Value:
    either = [layer.op(name, layer.inputs) for name in ("IsNaN", "IsInf")]
    return layer.op("Not", [layer.op("Or", either)])


def _normalised(layer: LayerConversion, data: ir.Value, axes: ir.Value) -> ir.Value:
    """Return the distance of elements from their mean."""
    return layer.op("Sub", [data, layer.op("ReduceMean", [data, axes])])


def _mvn(layer: LayerConversion) -> ir.Value:
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


def _group_normalization(layer: LayerConversion) -> ir.Value:
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


def _attention(layer: LayerConversion) -> ir.Value:
    """Write an attention: a mask of booleans says what counts, one of numbers is added."""
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


def _depth_to_space(layer: LayerConversion) -> ir.Value:
    mode = layer.choice("mode", {"blocks_first": "DCR", "depth_first": "CRD"})
    if layer.rank() != 4:
        raise layer.refusal(f"its data has {layer.rank()} axes, and in ONNX 4")
    attributes = {"blocksize": layer.integer("block_size", 1), "mode": mode}
    return layer.op("DepthToSpace", layer.inputs, attributes)


def _space_to_depth(layer: LayerConversion) -> ir.Value:
    if layer.word("mode") != "blocks_first" or layer.rank() != 4:
        raise layer.refusal("ONNX's SpaceToDepth is of 4 axes, with the blocks first")
    attributes = {"blocksize": layer.integer("block_size", 1)}
    return layer.op("SpaceToDepth", layer.inputs, attributes)


def _roll(layer: LayerConversion) -> ir.Value:
    """Write a Roll: the element of a position is of the one before by the shift."""
    made, shifts, axes = layer.inputs[0], layer.integers(1), layer.integers(2)
    make = layer.node.make
    if len(shifts) != len(axes):
        raise layer.refusal("it has not one shift for each axis")
    shape = layer.op("Shape", layer.inputs[:1])
    for shift, axis in zip(shifts, axes, strict=True):
        size = layer.op("Gather", [shape, make.constant(axis)])
        every = layer.op("Range", [make.constant(0), size, make.constant(1)])
        moved = layer.op("Sub", [every, make.constant(shift)])
        made = layer.op("Gather", [made, layer.op("Mod", [moved, size])], {"axis": axis})
    return made


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


def _one_hot(layer: LayerConversion) -> ir.Value:
    """Write a OneHot by comparing: an index that is not below the depth is of no position."""
    make, axis, rank = layer.node.make, layer.integer("axis"), layer.rank()
    indices, depth, *values = layer.inputs
    axis += rank + 1 if axis < 0 else 0
    number = layer.op("Reshape", [layer.cast(depth, ir.DataType.INT64), make.make(())])
    every = layer.op("Range", [make.constant(0), number, make.constant(1)])
    every = layer.op("Reshape", [every, make.make((-1, *[1] * (rank - axis)))])
    wide = make.unsqueeze(layer.cast(indices, ir.DataType.INT64), [axis])
    return layer.op("Where", [layer.op("Equal", [wide, every]), *values])


def _top_k(layer: LayerConversion) -> list[ir.Value]:
    """Write a TopK; elements in no order may be in any, so that they are sorted as well."""
    layer.choice("sort", {"value": True, "none": True})
    largest = layer.choice("mode", {"max": True, "min": False})
    kind = layer.named_type("index_element_type", "i32")
    attributes = {"axis": layer.integer("axis"), "largest": largest}
    inputs = [layer.inputs[0], layer.listed(1)]
    values, indices = layer.ops("TopK", inputs, attributes, 2)
    return [values, indices if kind == ir.DataType.INT64 else layer.cast(indices, kind)]


def _fake_quantized(layer: LayerConversion) -> ir.Value:
    """Write what a range becomes in steps, of as many numbers as there are levels."""
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


def _floor_mod(layer: LayerConversion) -> ir.Value:
    """Write what a quotient that is rounded down leaves."""
    layer.check_broadcast()
    if not layer.element_type().is_floating_point():
        return layer.op("Mod", layer.inputs)
    left, right = layer.inputs
    whole = layer.op("Floor", [layer.op("Div", [left, right])])
    return layer.op("Sub", [left, layer.op("Mul", [whole, right])])


def _round(layer: LayerConversion) -> ir.Value:
    if layer.word("mode") != "half_to_even":
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
    kinds = {layer.element_type(place) for place in range(3)}
    is_wider = kind == ir.DataType.INT64 and kinds <= {ir.DataType.INT32, ir.DataType.INT64}
    if kinds != {kind} and not is_wider:
        raise layer.refusal("its numbers are of another type than the output")
    if ir.DataType.INT32 not in kinds:
        return layer.op("Range", layer.inputs)
    # onnxruntime 1.32 takes dimensions that it knows for int64 here, although they are cast before
    wide = [layer.cast(each, ir.DataType.INT64) for each in layer.inputs]
    made = layer.op("Range", wide)
    return made if is_wider else layer.cast(made, kind)


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


def _select(layer: LayerConversion) -> ir.Value:
    """Write a Select; onnxruntime 1.32 has no Where of booleans."""
    layer.check_broadcast()
    condition, yes, no = layer.inputs
    if layer.element_type(1) != ir.DataType.BOOL:
        return layer.op("Where", layer.inputs)
    otherwise = layer.op("And", [layer.op("Not", [condition]), no])
    return layer.op("Or", [layer.op("And", [condition, yes]), otherwise])


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


def _squeeze(layer: LayerConversion) -> ir.Value:
    """Remove axes; OpenVINO keeps those that it is asked to remove and whose length is not 1."""
    data, *axes = layer.inputs
    if not axes:
        return layer.op("Squeeze", [data])
    shape, given = layer.node.shape() or (), layer.node.known(1)
    named = [] if given is None else given.reshape(-1).tolist()
    within = range(-len(shape), len(shape))
    kept = [at for at in named if at in within and is_known(shape[at]) and shape[at] != 1]
    if not kept:
        return _with_axes("Squeeze", layer)
    removed = tuple(at for at in named if at not in kept)
    return layer.op("Squeeze", [data, layer.node.make.make(removed)]) if removed else data


def _with_axes(op_type: str, layer: LayerConversion) -> ir.Value:
    """Remove or add the axes that the second input names."""
    if layer.is_empty(1):
        raise layer.refusal("it names no axes")
    return layer.op(op_type, [layer.inputs[0], layer.listed(1)])


RULES: Mapping[str, LayerRule] = MappingProxyType(
    {
        **{
            name: _same(name)
            for name in (
                *("Abs", "Acos", "Asin", "Atan", "Cos", "Cosh", "Erf", "Exp", "Log"),
                *("Sigmoid", "Sign", "Sin", "Sinh", "Sqrt", "Tan", "Tanh"),
            )
        },
        "Acosh": _same("Acosh", "opset4"),
        "Add": _broadcast("Add"),
        "Asinh": _same("Asinh", "opset4"),
        "Atanh": _same("Atanh", "opset4"),
        "AvgPool": _rule(
            layer_windows.average_pool,
            f"{layer_windows.POOL} exclude-pad",
            "opset1 opset14 opset16",
        ),
        "Ceiling": _rounded("Ceil"),
        "CumSum": _read("CumSum", _off, "exclusive", "reverse", versions="opset3"),
        "DepthToSpace": _rule(_depth_to_space, "mode block_size"),
        "Einsum": _read("Einsum", LayerConversion.text, "equation", versions="opset7"),
        "FakeQuantize": _rule(_fake_quantized, "levels auto_broadcast"),
        "Floor": _rounded("Floor"),
        "Broadcast": _rule(_broadcast_to, "mode", "opset3"),
        "Clamp": _rule(_clamp, "min max"),
        "Concat": _read("Concat", LayerConversion.integer, "axis"),
        "Convert": _rule(_convert, "destination_type"),
        "Convolution": _rule(layer_windows.convolution, layer_windows.WINDOW),
        "ConvolutionBackpropData": _rule(
            layer_windows.transposed_convolution, f"{layer_windows.WINDOW} output_padding"
        ),
        "Divide": _rule(_divide, "auto_broadcast m_pythondiv"),
        "Elu": _read("Elu", LayerConversion.number, "alpha"),
        "Equal": _broadcast("Equal"),
        "FloorMod": _rule(_floor_mod, "auto_broadcast"),
        "Gather": _rule(_gather, "batch_dims", "opset1 opset7 opset8"),
        "GatherElements": _read(
            "GatherElements", LayerConversion.integer, "axis", versions="opset6"
        ),
        "GatherND": _read("GatherND", _or_0, "batch_dims", versions="opset8"),
        "Gelu": _rule(_gelu, "approximation_mode", "opset2 opset7"),
        "Greater": _broadcast("Greater"),
        "GreaterEqual": _broadcast("GreaterOrEqual"),
        "GroupConvolution": _rule(layer_windows.grouped_convolution, layer_windows.WINDOW),
        "GroupConvolutionBackpropData": _rule(
            layer_windows.grouped_transposed_convolution, f"{layer_windows.WINDOW} output_padding"
        ),
        "GroupNormalization": _rule(_group_normalization, "num_groups epsilon", "opset12"),
        "GRUSequence": _rule(
            layer_recurrent.gru, f"{layer_recurrent.ATTRIBUTES} linear_before_reset", "opset5"
        ),
        "HardSigmoid": _with_constants("HardSigmoid", "alpha", "beta"),
        "HSigmoid": _rule(
            lambda layer: layer.op("HardSigmoid", layer.inputs, {"alpha": 1 / 6, "beta": 0.5}),
            versions="opset5",
        ),
        "Identity": _same("Identity", "opset16"),
        "HSwish": _same("HardSwish", "opset4"),
        "Interpolate": _rule(layer_windows.interpolate, layer_windows.RESIZING, "opset4 opset11"),
        "IsFinite": _rule(_is_finite, "", "opset10"),
        "IsInf": _read("IsInf", _on, "detect_negative", "detect_positive", versions="opset10"),
        "IsNaN": _same("IsNaN", "opset10"),
        "Less": _broadcast("Less"),
        "LessEqual": _broadcast("LessOrEqual"),
        "LogSoftmax": _read("LogSoftmax", LayerConversion.integer, "axis", versions="opset5"),
        "LogicalAnd": _broadcast("And"),
        "LogicalNot": _same("Not"),
        "LogicalOr": _broadcast("Or"),
        "LogicalXor": _broadcast("Xor", "opset1 opset2"),
        "LSTMSequence": _rule(layer_recurrent.lstm, layer_recurrent.ATTRIBUTES, "opset5"),
        "MatMul": _rule(_matmul, "transpose_a transpose_b"),
        "Maximum": _broadcast("Max"),
        "MaxPool": _rule(
            layer_windows.max_pool,
            f"{layer_windows.POOL} index_element_type axis",
            "opset1 opset8 opset14",
        ),
        "Minimum": _broadcast("Min"),
        "Mish": _same("Mish", "opset4"),
        "Mod": _broadcast("Mod", fmod=1),
        "Multiply": _broadcast("Mul"),
        "MVN": _rule(_mvn, "eps normalize_variance eps_mode", "opset6"),
        "Negative": _same("Neg"),
        "NonZero": _typed("NonZero", "opset3"),
        "NotEqual": _broadcast("Equal", negated=True),
        "OneHot": _rule(_one_hot, "axis"),
        "Pad": _rule(layer_windows.pad, "pad_mode", "opset1 opset12"),
        "Power": _broadcast("Pow"),
        "PReLU": _rule(_prelu),
        "Range": _rule(_range, "output_type", "opset4"),
        "ReduceL1": _reduced("ReduceL1", "opset4"),
        "ReduceL2": _reduced("ReduceL2", "opset4", floats=True),
        "ReduceLogicalAnd": _logical(every=True),
        "ReduceLogicalOr": _logical(every=False),
        "ReduceMax": _reduced("ReduceMax"),
        "ReduceMean": _reduced("ReduceMean", floats=True),
        "ReduceMin": _reduced("ReduceMin"),
        "ReduceProd": _reduced("ReduceProd"),
        "ReduceSum": _reduced("ReduceSum"),
        "ReLU": _same("Relu"),
        "Reshape": _rule(_reshape, "special_zero"),
        "RNNSequence": _rule(layer_recurrent.rnn, layer_recurrent.ATTRIBUTES, "opset5"),
        "Roll": _rule(_roll, "", "opset7"),
        "Round": _rule(_round, "mode", "opset5"),
        "ScaledDotProductAttention": _rule(_attention, "causal", "opset13"),
        "ScatterElementsUpdate": _scattered("ScatterElements", "opset3 opset12", with_axis=True),
        "ScatterNDUpdate": _scattered("ScatterND", "opset4 opset15", with_axis=False),
        "Select": _rule(_select, "auto_broadcast"),
        "Selu": _with_constants("Selu", "alpha", "gamma"),
        "ShapeOf": _typed("Shape", "opset1 opset3"),
        "Slice": _rule(_slice, "", "opset8"),
        "SoftMax": _read("Softmax", LayerConversion.integer, "axis", versions="opset1 opset8"),
        "SoftPlus": _same("Softplus", "opset4"),
        "SoftSign": _same("Softsign", "opset9"),
        "SpaceToDepth": _rule(_space_to_depth, "mode block_size"),
        "SquaredDifference": _rule(_squared_difference, "auto_broadcast"),
        "Squeeze": _rule(_squeeze),
        "StridedSlice": _rule(
            _strided_slice,
            "begin_mask end_mask new_axis_mask shrink_axis_mask ellipsis_mask",
        ),
        "Subtract": _broadcast("Sub"),
        "TopK": _rule(_top_k, "axis mode sort index_element_type stable", "opset1 opset3 opset11"),
        "Tile": _rule(_tile),
        "Swish": _rule(_swish, "", "opset4"),
        "Transpose": _rule(_transpose),
        "Unsqueeze": _rule(partial(_with_axes, "Unsqueeze")),
    }
)
"""The rule of each type of layer that has a counterpart, beside splits."""
