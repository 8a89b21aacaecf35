"""Layers that slide a window over their data: convolutions, pools; and those that resize it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import onnx_ir as ir

from tensorsplit.core.dimensions import Dim, is_known
from tensorsplit.model.convert.layer_conversion import LayerConversion

WINDOW = "auto_pad strides dilations pads_begin pads_end"
"""The attributes of every window."""

POOL = f"{WINDOW} kernel rounding_type"
"""The attributes of every pool."""

RESIZING = (
    "mode shape_calculation_mode coordinate_transformation_mode nearest_mode antialias"
    " pads_begin pads_end cube_coeff"
)
"""The attributes of Interpolate."""

_PADDINGS = {"explicit": "", "valid": "", "same_upper": "SAME_UPPER", "same_lower": "SAME_LOWER"}
_ROUNDINGS = ("floor", "ceil", "ceil_torch")
_RESIZING = {"nearest": "nearest", "linear": "linear", "linear_onnx": "linear", "cubic": "cubic"}
_POSITIONS = ("half_pixel", "pytorch_half_pixel", "asymmetric", "align_corners")
_NEAREST = ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil")
_FILLINGS = {"constant": "constant", "edge": "edge", "reflect": "reflect"}


class _Window(NamedTuple):
    """How a window moves along one axis; the length of the axis may not be known."""

    size: int
    stride: int
    dilation: int
    begin: int
    end: int
    length: Dim

    @property
    def extent(self) -> int:
        return self.dilation * (self.size - 1) + 1

    def same(self, *, is_lower: bool) -> _Window:
        """Return the window with a padding for one position of each stride, if that is known."""
        if not is_known(self.length):
            return self._replace(begin=0, end=0)
        last = (self.length - 1) // self.stride * self.stride
        total = max(0, last + self.extent - self.length)
        begin = total - total // 2 if is_lower else total // 2
        return self._replace(begin=begin, end=total - begin)

    @property
    def missing(self) -> int:
        """How much padding one more position takes, if elements are left after the last one."""
        assert is_known(self.length)  # noqa: S101 - see the caller
        return -(self.begin + self.length + self.end - self.extent) % self.stride

    @property
    def may_leave_data(self) -> bool:
        """Whether a size that is rounded up may have a last position in the padding alone."""
        more = self.missing if is_known(self.length) else self.stride
        return self.end + more >= self.extent + (not is_known(self.length))


def _windows(layer: LayerConversion, sizes: Sequence[int]) -> list[_Window]:
    """Return the window of each axis, with the padding that is known."""
    names = {"strides": 1, "dilations": 1, "pads_begin": 0, "pads_end": 0}
    given = [layer.numbers(name) or [usual] * len(sizes) for name, usual in names.items()]
    shape = layer.node.shape()
    lengths = [None] * len(sizes) if shape is None else shape[2:]
    windows = [_Window(*each) for each in zip(sizes, *given, lengths, strict=True)]
    mode = layer.word("auto_pad", "explicit")
    if mode == "valid":
        return [each._replace(begin=0, end=0) for each in windows]
    if mode == "explicit":
        return windows
    return [each.same(is_lower=mode == "same_lower") for each in windows]


def _attributes(layer: LayerConversion, windows: Sequence[_Window]) -> dict[str, object]:
    """Return the strides, dilations and padding of windows as ONNX names them."""
    mode = layer.choice("auto_pad", _PADDINGS, "explicit")
    given: dict[str, object] = {
        "strides": [each.stride for each in windows],
        "dilations": [each.dilation for each in windows],
    }
    if not mode or all(is_known(each.length) for each in windows):
        ends = [*(each.begin for each in windows), *(each.end for each in windows)]
        return {**given, "pads": ends}
    if any(each.dilation != 1 for each in windows):
        raise layer.refusal("engines pad a window with dilations in different ways")
    if any(each.stride > each.size for each in windows):
        raise layer.refusal("engines pad windows with gaps between them in different ways")
    return {**given, "auto_pad": mode}


def _filtered(layer: LayerConversion, first: int) -> dict[str, object]:
    """Return the attributes of a convolution; `first` is where its filters' sizes start."""
    return _attributes(layer, _windows(layer, layer.dims(1)[first:]))


def convolution(layer: LayerConversion) -> ir.Value:
    """Write a convolution."""
    return layer.op("Conv", layer.inputs, _filtered(layer, 2))


def grouped_convolution(layer: LayerConversion) -> ir.Value:
    """Write a convolution whose filters have an axis of groups first."""
    joined, groups = _joined_filters(layer)
    return layer.op("Conv", [layer.inputs[0], joined], {**_filtered(layer, 3), "group": groups})


def transposed_convolution(layer: LayerConversion) -> ir.Value:
    """Write a transposed convolution."""
    return layer.op("ConvTranspose", layer.inputs, _transposed(layer, 2))


def grouped_transposed_convolution(layer: LayerConversion) -> ir.Value:
    """Write a transposed convolution whose filters have an axis of groups first."""
    attributes = _transposed(layer, 3)
    joined, groups = _joined_filters(layer)
    return layer.op("ConvTranspose", [layer.inputs[0], joined], {**attributes, "group": groups})


def _joined_filters(layer: LayerConversion) -> tuple[ir.Value, int]:
    """Return filters with the groups and the axis after them as one, and how many groups."""
    groups, channels, *others = layer.dims(1)
    shape = layer.node.make.make((groups * channels, *others))
    return layer.op("Reshape", [layer.inputs[1], shape]), groups


def _transposed(layer: LayerConversion, first: int) -> dict[str, object]:
    if len(layer.inputs) != 2:
        raise layer.refusal("its output's shape is an input")
    if layer.choice("auto_pad", _PADDINGS, "explicit"):
        raise layer.refusal(f"its auto_pad is {layer.text('auto_pad')}")
    padding = layer.numbers("output_padding")
    return _filtered(layer, first) | ({"output_padding": padding} if padding else {})


def max_pool(layer: LayerConversion) -> list[ir.Value]:
    """Write a pool that takes the largest element, and gives its index from an axis on."""
    windows, rounds_up = _rounded_up(layer)
    attributes = _attributes(layer, windows) | {"ceil_mode": rounds_up}
    attributes["kernel_shape"] = layer.numbers("kernel")
    if not layer.is_read(1):
        return [layer.op("MaxPool", layer.inputs, attributes)]
    make, axis = layer.node.make, layer.integer("axis", 0)
    values, indices = layer.ops("MaxPool", layer.inputs, attributes, 2)
    if axis != 0:
        shape = layer.op("Shape", layer.inputs, {"start": axis})
        size = layer.op("ReduceProd", [shape, make.make(0)], {"keepdims": 0})
        indices = layer.op("Mod", [indices, size])
    return [values, layer.cast(indices, layer.named_type("index_element_type", "i64"))]


def average_pool(layer: LayerConversion) -> ir.Value:
    """Write a pool that takes the mean."""
    given = _windows(layer, layer.numbers("kernel"))
    # OpenVINO counts the whole window, with what a rounded size adds, where there is padding.
    is_padded = any(each.begin or each.end for each in given) or (
        bool(layer.choice("auto_pad", _PADDINGS, "explicit"))
        and not all(is_known(each.length) for each in given)
    )
    counts_padding = not layer.flag("exclude-pad") and is_padded
    windows, rounds_up = _rounded_up(layer)
    attributes = _attributes(layer, windows)
    if any(each.dilation != 1 for each in windows):
        raise layer.refusal(f"ONNX's AveragePool has no dilations at opset {layer.node.opset}")
    del attributes["dilations"]
    if counts_padding and rounds_up:
        raise layer.refusal("its size is rounded up, and it counts its padding")
    attributes |= {"ceil_mode": rounds_up, "count_include_pad": counts_padding}
    return layer.op(
        "AveragePool", layer.inputs, {**attributes, "kernel_shape": layer.numbers("kernel")}
    )


def _rounded_up(layer: LayerConversion) -> tuple[list[_Window], bool]:
    """Return the windows of a pool, and whether ONNX has to round its size up.

    Where lengths are known, padding at the end makes room for the last position. With ``ceil`` that
    may lie in the padding alone, with ``ceil_torch`` and in ONNX it does not.
    """
    windows, rounding = (
        _windows(layer, layer.numbers("kernel")),
        layer.word("rounding_type", "floor"),
    )
    if rounding not in _ROUNDINGS:
        raise layer.refusal(f"its rounding_type is {rounding}")
    if rounding == "floor":
        return windows, False
    are_lengths_known = all(is_known(each.length) for each in windows)
    if any(each.may_leave_data for each in windows) and not (
        are_lengths_known and rounding == "ceil_torch"
    ):
        raise layer.refusal("its last window may lie in the padding")
    if not are_lengths_known:
        return windows, not layer.choice("auto_pad", _PADDINGS, "explicit")
    return [
        each if each.may_leave_data else each._replace(end=each.end + each.missing)
        for each in windows
    ], False


def interpolate(layer: LayerConversion) -> ir.Value:
    """Write an Interpolate as Resize; sizes and scales are of some axes, or of all."""
    if not layer.element_type().is_floating_point():
        raise layer.refusal("how integers are rounded differs")
    if any(map(any, map(layer.numbers, ("pads_begin", "pads_end")))):
        raise layer.refusal("it pads its data")
    if layer.flag("antialias", False):
        raise layer.refusal("it filters its data")
    attributes = _placement(layer)
    by_size = layer.choice("shape_calculation_mode", {"sizes": True, "scales": False})
    count, place = len(layer.inputs), 1 if by_size or layer.version != "opset4" else 2
    axes = list(range(layer.rank()))
    if count > 2 + (layer.version == "opset4"):
        axes = attributes["axes"] = layer.integers(count - 1)
    if by_size:
        return _resized(layer, attributes, sizes=layer.listed(1))
    if attributes["coordinate_transformation_mode"] != "align_corners":
        scales = layer.cast(layer.inputs[place], ir.DataType.FLOAT)
        return _resized(layer, attributes, scales=scales)
    known, dims = layer.node.known(place), layer.dims(0)
    if known is None:
        raise layer.refusal("its scales are known only at run time")
    sizes = np.floor(np.array([dims[axis] for axis in axes], np.float32) * known)
    return _resized(layer, attributes, sizes=layer.node.make.make(tuple(map(int, sizes))))


def _placement(layer: LayerConversion) -> dict[str, object]:
    """Return how a Resize finds the elements of a position, as an Interpolate does."""
    mode = layer.choice("mode", _RESIZING)
    position = layer.word("coordinate_transformation_mode", "half_pixel")
    nearest = layer.word("nearest_mode", "round_prefer_floor")
    if position not in _POSITIONS:
        raise layer.refusal(f"its coordinate_transformation_mode is {position}")
    attributes: dict[str, object] = {"mode": mode, "coordinate_transformation_mode": position}
    if mode == "cubic":
        return attributes | {"cubic_coeff_a": layer.number("cube_coeff", -0.75)}
    if mode != "nearest":
        return attributes
    if nearest not in _NEAREST:
        raise layer.refusal(f"its nearest_mode is {nearest}")
    if position == "align_corners" and nearest in ("floor", "ceil"):
        raise layer.refusal("the positions that fall on elements are rounded another way")
    return attributes | {"nearest_mode": nearest}


def _resized(
    layer: LayerConversion,
    attributes: dict[str, object],
    *,
    scales: ir.Value | None = None,
    sizes: ir.Value | None = None,
) -> ir.Value:
    inputs = [layer.inputs[0], None, scales, sizes]
    return layer.ops("Resize", inputs[: 3 + (sizes is not None)], attributes, 1)[0]


def pad(layer: LayerConversion) -> ir.Value:
    """Write a Pad; one that crops only where it fills with a number."""
    mode = layer.choice("pad_mode", _FILLINGS)
    data, _, _, *filling = layer.inputs
    if mode != "constant":
        filling = []
        if any(number < 0 for place in (1, 2) for number in layer.integers(place)):
            raise layer.refusal("it crops its data")
    ends = layer.op("Concat", [layer.listed(1), layer.listed(2)], {"axis": 0})
    return layer.op("Pad", [data, ends, *filling], {"mode": mode})
