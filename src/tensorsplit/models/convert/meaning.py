"""Operators that look the same and mean something else, and what goes on under other names."""

from __future__ import annotations

from collections.abc import Callable, Collection

import numpy as np
import onnx_ir as ir

from tensorsplit.dims import is_known
from tensorsplit.models.convert.change import Change, Site
from tensorsplit.models.convert.schemas import Step, fit
from tensorsplit.models.convert.table import Adapter, Adapters, both


def _fitted(site: Site, step: Step) -> None:
    reason = fit(site, step)
    if reason:
        raise site.refusal(reason)


def _only(name: str, allowed: Collection[str]) -> Adapter:
    """The older version knows fewer values of an attribute."""

    def adapt(site: Site, step: Step, _change: Change) -> None:
        value = site.attribute(name)
        if value is not None and value not in allowed:
            raise site.refusal(
                f"its attribute '{name}' is {value!r}; opset {step.opset} knows"
                f" {', '.join(sorted(allowed))}"
            )
        _fitted(site, step)

    return adapt


def _with(**values: object) -> Adapter:
    """The newer version has to be told what the older one always did."""

    def adapt(site: Site, step: Step, _change: Change) -> None:
        for name, value in values.items():
            if name not in site.node.attributes:
                site.put(name, value)
        _fitted(site, step)

    return adapt


def _without(**values: object) -> Adapter:
    """The older version always does one thing, and the newer one can be told to do it."""

    def adapt(site: Site, step: Step, _change: Change) -> None:
        for name, value in values.items():
            if site.attribute(name) != value:
                raise site.refusal(
                    f"opset {step.opset} always does what '{name}' = {value!r} says",
                    "which it does not say",
                )
            site.take(name)
        _fitted(site, step)

    return adapt


def _refused(reason: str) -> Adapter:
    """The two versions have nothing in common but the name."""

    def adapt(site: Site, _step: Step, _change: Change) -> None:
        raise site.refusal(reason)

    return adapt


def _renamed(op_type: str) -> Adapter:
    """The operator goes on under another name."""

    def adapt(site: Site, _step: Step, _change: Change) -> None:
        site.node.op_type = op_type

    return adapt


def _modes(names: dict[str, str]) -> Adapter:
    """The values of the attribute `mode` go on under other names."""

    def adapt(site: Site, step: Step, change: Change) -> None:
        if not step.up and change.rank(site.input(0)) not in (None, 4):
            raise site.refusal("its data has no rank of 4, the only one of the older version")
        mode = site.attribute("mode")
        if mode is not None:
            site.put("mode", names.get(mode, mode))

    return adapt


def _same_padding(site: Site, step: Step, _change: Change) -> None:
    """ConvTranspose: the sides of an odd padding changed places at opset 11."""
    if site.attribute("auto_pad", "NOTSET").startswith("SAME") or site.attribute("output_shape"):
        raise site.refusal(
            "opset 11 changed which side an odd padding goes to, where the output's shape decides",
            "give 'pads'",
        )
    _fitted(site, step)


def _windows(site: Site, step: Step, _change: Change) -> None:
    """Pooling: since opset 22 a window that would start in the padding at the end is left out."""
    if site.attribute("ceil_mode", 0):
        kernel = list(site.attribute("kernel_shape", ()))
        count = len(kernel)
        strides = site.attribute("strides", [1] * count)
        dilations = site.attribute("dilations", [1] * count)
        pads = list(site.attribute("pads", [0] * (2 * count)))[count:]
        for size, stride, dilation, pad in zip(kernel, strides, dilations, pads, strict=False):
            if pad + stride > (size - 1) * dilation + 1:
                raise site.refusal(
                    "its last window may start in the padding, where opset 22 leaves it out",
                    "choose pads and strides that keep windows within the data",
                )
    _fitted(site, step)


def _branches(site: Site, step: Step, change: Change) -> None:
    """Before opset 11 both branches of an If give the same shapes."""
    branches = [site.attribute(name).outputs for name in ("then_branch", "else_branch")]
    for one, other in zip(*branches, strict=False):
        left, right = change.shape(one), change.shape(other)
        if left is None or right is None:
            continue
        pairs = zip(left, right, strict=False)
        differ = any(is_known(a) and is_known(b) and a != b for a, b in pairs)
        if differ or len(left) != len(right):
            raise site.refusal(
                "its branches give different shapes, which have to be the same before opset 11"
            )
    _fitted(site, step)


def _inference(site: Site, step: Step) -> None:
    """Refuse a BatchNormalization or Dropout that is in training mode."""
    extra = [value for value in site.node.outputs[1:] if value.uses() or value.is_graph_output()]
    if extra and site.op_type == "BatchNormalization":
        raise site.refusal(f"it is in training mode, which opset {step.opset} says otherwise")
    site.node.resize_outputs(1 if site.op_type == "BatchNormalization" else len(site.node.outputs))


def _training_flag_up(site: Site, step: Step, _change: Change) -> None:
    if not site.take("is_test", 0):
        raise site.refusal("it is in training mode (is_test is 0), which opset 7 does not have")
    _inference(site, step)
    _fitted(site, step)


def _training_flag_down(site: Site, step: Step, _change: Change) -> None:
    _inference(site, step)
    _fitted(site, step)
    site.put("is_test", 1)


def _normalization(site: Site, step: Step, _change: Change) -> None:
    _inference(site, step)
    _fitted(site, step)


def _consumed(site: Site, step: Step, _change: Change) -> None:
    site.put("consumed_inputs", [0, 0, 0, 1, 1])
    _fitted(site, step)


def _recurrent(site: Site, step: Step, _change: Change) -> None:
    """The output of the whole sequence had to be asked for before opset 7."""
    if step.up:
        site.take("output_sequence")
    else:
        whole = site.node.outputs[0]
        if whole.name and (whole.uses() or whole.is_graph_output()):
            site.put("output_sequence", 1)
    _fitted(site, step)


def _number(kind: Callable[[float], object]) -> Adapter:
    """The attribute `p` was a float once."""

    def adapt(site: Site, step: Step, _change: Change) -> None:
        value = site.attribute("p", 2)
        if value != int(value):
            raise site.refusal(f"its attribute 'p' is {value}, and a whole number there")
        site.put("p", kind(value))
        _fitted(site, step)

    return adapt


def _cast_name_up(site: Site, _step: Step, _change: Change) -> None:
    name = str(site.take("to")).upper()
    if name not in ir.DataType.__members__:
        raise site.refusal(f"it casts to {name!r}, which is no element type")
    site.put("to", ir.DataType[name].value)


def _cast_name_down(site: Site, _step: Step, _change: Change) -> None:
    site.put("to", ir.DataType(site.take("to")).name)


def _cast_plain(site: Site, step: Step, change: Change) -> None:
    """How to round and to saturate matters to the narrowest floats only."""
    to = site.attribute("to") if site.op_type == "Cast" else change.dtype(site.input(1))
    for name in ("saturate", "round_mode"):
        if to is not None and not ir.DataType(to).name.startswith("FLOAT8"):
            site.take(name)
    _fitted(site, step)


def _cast_like(site: Site, _step: Step, change: Change) -> None:
    site.put("to", change.needed_dtype(site, 1).value)
    site.node.op_type = "Cast"
    change.cut_inputs(site, 1)


def _tensor_scale(site: Site, step: Step, change: Change) -> None:
    """Before opset 13 scales are scalars, and there is no axis to take them along."""
    scale = change.shape(site.input(1))
    if scale is None or any(dim != 1 for dim in scale):
        raise site.refusal("it may have a scale for each channel, and only one scale there")
    site.take("axis")
    _fitted(site, step)


def _quantized_type(site: Site, step: Step, change: Change) -> None:
    """The type that is named is often the one that follows from the inputs anyway."""
    zero = change.dtype(site.input(2)) if site.op_type == "QuantizeLinear" else None
    like = change.dtype(site.input(1)) if site.op_type == "DequantizeLinear" else zero
    if like is not None and site.attribute("output_dtype", 0) == like.value:
        site.take("output_dtype")
    _fitted(site, step)


def _no_floats(site: Site, step: Step, change: Change) -> None:
    """Mod: the rounding of integers holds for floats since opset 28."""
    dtype = change.dtype(site.input(0))
    if not site.attribute("fmod", 0) and (dtype is None or dtype.is_floating_point()):
        raise site.refusal("it may take floats without 'fmod', which came with opset 28")
    _fitted(site, step)


def _constant_down(site: Site, _step: Step, _change: Change) -> None:
    """Before opset 12 a constant is a tensor, and nothing simpler."""
    for name in ("value_int", "value_ints", "value_float", "value_floats"):
        dtype = np.int64 if name.startswith("value_int") else np.float32
        value = site.take(name)
        if value is not None:
            site.put("value", ir.tensor(np.array(value, dtype)))
    for name in ("value_string", "value_strings"):
        value = site.take(name)
        if value is not None:
            texts = np.array(value, dtype=object)
            site.put("value", ir.tensor(texts, dtype=ir.DataType.STRING))


def _constant_dense(site: Site, _step: Step, _change: Change) -> None:
    """Before opset 9 a constant holds floats; everything else is an initializer."""
    if "value" not in site.node.attributes:
        raise site.refusal("it holds a sparse tensor")


def _resize_up(site: Site, step: Step, change: Change) -> None:
    """Resize-10 was Upsample: asymmetric, and nearest meant the one before."""
    builder = change.builder(site, step.opset)
    region = builder.constant([], np.float32)
    change.before(site, builder)
    site.set_inputs([site.input(0), region, site.input(1)])
    site.put("coordinate_transformation_mode", "asymmetric")
    if site.attribute("mode", "nearest") == "nearest":
        site.put("nearest_mode", "floor")


def _resize_down(site: Site, _step: Step, change: Change) -> None:
    sizes, scales = change.constant(site.input(3)), site.input(2)
    if scales is None or (site.input(3) is not None and (sizes is None or sizes.size)):
        raise site.refusal("it is given sizes, and takes scales there")
    if site.attribute("mode", "nearest") == "nearest":
        _need(site, "nearest_mode", "floor")
    elif site.attribute("mode") == "cubic":
        raise site.refusal("its mode is cubic, which opset 10 does not have")
    else:
        site.take("nearest_mode")
    _need(site, "coordinate_transformation_mode", "asymmetric")
    for name in ("cubic_coeff_a", "extrapolation_value", "exclude_outside"):
        site.take(name)
    region = site.input(1)
    site.set_inputs([site.input(0), scales])
    change.drop_unused(region)


def _need(site: Site, name: str, value: str) -> None:
    if site.take(name) != value:
        raise site.refusal(f"the older version always does what '{name}' = {value!r} says")


def _resize_empty(site: Site, step: Step, change: Change) -> None:
    """Before opset 13 what is not given is given as an empty tensor."""
    builder = change.builder(site, step.opset)
    inputs = [site.input(index) for index in range(4)]
    for index in (1, 2):
        if inputs[index] is None:
            inputs[index] = builder.constant([], np.float32)
    change.before(site, builder)
    site.set_inputs(inputs)
    _fitted(site, step)


def _resize_modes(site: Site, step: Step, _change: Change) -> None:
    if site.attribute("coordinate_transformation_mode") == "tf_half_pixel_for_nn":
        raise site.refusal("its coordinates are tf_half_pixel_for_nn, which opset 13 removed")
    _fitted(site, step)


def _scales_up(site: Site, step: Step, change: Change) -> None:
    builder = change.builder(site, step.opset)
    scales = builder.constant(site.take("scales"), np.float32)
    change.before(site, builder)
    site.set_inputs([site.input(0), scales])


def _scales_down(site: Site, _step: Step, change: Change) -> None:
    scales = change.needed_constant(site, 1, "scales")
    site.put("scales", [float(item) for item in scales.ravel()])
    change.cut_inputs(site, 1)


def _scales_of_image(site: Site, _step: Step, _change: Change) -> None:
    height, width = site.take("height_scale"), site.take("width_scale")
    site.put("scales", [1.0, 1.0, float(height), float(width)])
    if site.attribute("mode") == "bilinear":
        site.put("mode", "linear")


def _scales_to_image(site: Site, _step: Step, _change: Change) -> None:
    scales = list(site.take("scales"))
    if len(scales) != 4 or scales[:2] != [1.0, 1.0]:
        raise site.refusal(f"its scales are {scales}, and for height and width only there")
    site.put("height_scale", scales[2])
    site.put("width_scale", scales[3])
    if site.attribute("mode") == "linear":
        site.put("mode", "bilinear")


_SCATTERS = ("ScatterElements", "ScatterND")
_POOLS = ("AveragePool", "MaxPool")
_SCAN = "opset 9 changed what it scans: the second axis for each of a batch before, any axis since"
_RECURRENT = ("GRU", "LSTM", "RNN")
_REDUCTIONS_16 = ("none", "add", "mul")
_PADS_18 = ("constant", "reflect", "edge")
_RESIZES_18 = (
    *("half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric", "tf_crop_and_resize"),
)

ADAPTERS: Adapters = {
    ("BatchNormalization", 6, False): _consumed,
    **both("BatchNormalization", 7, _training_flag_up, _training_flag_down),
    **both("BatchNormalization", 14, _normalization, _normalization),
    **both("Dropout", 7, _training_flag_up, _training_flag_down),
    ("GRU", 3, True): _with(direction="forward"),
    **both("Cast", 6, _cast_name_up, _cast_name_down),
    **{(name, 19, False): _cast_plain for name in ("Cast", "CastLike")},
    **{(name, 24, False): _cast_plain for name in ("Cast", "CastLike")},
    ("CastLike", 15, False): _cast_like,
    ("Constant", 12, False): _constant_down,
    ("Constant", 11, False): _constant_dense,
    ("Concat", 4, True): _with(axis=1),
    **both("ConvTranspose", 11, _same_padding, _same_padding),
    **{(name, 13, False): _tensor_scale for name in ("QuantizeLinear", "DequantizeLinear")},
    ("QuantizeLinear", 21, False): _quantized_type,
    ("DequantizeLinear", 23, False): _quantized_type,
    **both(
        "GridSample",
        20,
        _modes({"bilinear": "linear", "bicubic": "cubic"}),
        _modes({"linear": "bilinear", "cubic": "bicubic"}),
    ),
    ("If", 11, False): _branches,
    **{(name, 7, True): _recurrent for name in _RECURRENT},
    **{(name, 7, False): _recurrent for name in _RECURRENT},
    **{(name, 2, True): _number(int) for name in ("LpPool", "GlobalLpPool")},
    **{(name, 2, False): _number(float) for name in ("LpPool", "GlobalLpPool")},
    **{(name, 22, True): _windows for name in _POOLS},
    **{(name, 22, False): _windows for name in _POOLS},
    ("Mod", 28, False): _no_floats,
    ("Pad", 19, False): _only("mode", _PADS_18),
    **{(name, 18, False): _only("reduction", _REDUCTIONS_16) for name in _SCATTERS},
    **both("Resize", 11, _resize_up, _resize_down),
    **both("Resize", 13, _resize_modes, _resize_empty),
    ("Resize", 19, False): _only("coordinate_transformation_mode", _RESIZES_18),
    **both(
        "RoiAlign",
        16,
        _with(coordinate_transformation_mode="output_half_pixel"),
        _without(coordinate_transformation_mode="output_half_pixel"),
    ),
    **both("Scan", 9, _refused(_SCAN), _refused(_SCAN)),
    ("Scatter", 11, True): _renamed("ScatterElements"),
    ("ScatterElements", 11, False): _renamed("Scatter"),
    ("Upsample", 10, True): _renamed("Resize"),
    ("Resize", 10, False): _renamed("Upsample"),
    **both("Upsample", 9, _scales_up, _scales_down),
    **both("Upsample", 7, _scales_of_image, _scales_to_image),
}
