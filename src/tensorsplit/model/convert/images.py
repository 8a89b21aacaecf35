"""Operators on images: what they do at borders, and how they are told to resize."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tensorsplit.model.convert.change import Change
from tensorsplit.model.convert.schemas import Step
from tensorsplit.model.convert.site import Site
from tensorsplit.model.convert.table import (
    Adapter,
    Adapters,
    both,
    fitted,
    implied,
    only,
    renamed,
    stated,
)


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
    fitted(site, step)


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
    fitted(site, step)


def _number(kind: Callable[[float], object]) -> Adapter:
    """The attribute `p` was a float once."""

    def adapt(site: Site, step: Step, _change: Change) -> None:
        value = site.attribute("p", 2)
        if value != int(value):
            raise site.refusal(f"its attribute 'p' is {value}, and a whole number there")
        site.put("p", kind(value))
        fitted(site, step)

    return adapt


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
    fitted(site, step)


def _resize_modes(site: Site, step: Step, _change: Change) -> None:
    if site.attribute("coordinate_transformation_mode") == "tf_half_pixel_for_nn":
        raise site.refusal("its coordinates are tf_half_pixel_for_nn, which opset 13 removed")
    fitted(site, step)


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


_POOLS = ("AveragePool", "MaxPool")
_RESIZES_18 = (
    *("half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric", "tf_crop_and_resize"),
)

ADAPTERS: Adapters = {
    **both("ConvTranspose", 11, _same_padding, _same_padding),
    **both(
        "GridSample",
        20,
        _modes({"bilinear": "linear", "bicubic": "cubic"}),
        _modes({"linear": "bilinear", "cubic": "bicubic"}),
    ),
    **{(name, 2, True): _number(int) for name in ("LpPool", "GlobalLpPool")},
    **{(name, 2, False): _number(float) for name in ("LpPool", "GlobalLpPool")},
    **{(name, 22, True): _windows for name in _POOLS},
    **{(name, 22, False): _windows for name in _POOLS},
    **both("Resize", 11, _resize_up, _resize_down),
    **both("Resize", 13, _resize_modes, _resize_empty),
    ("Resize", 19, False): only("coordinate_transformation_mode", _RESIZES_18),
    **both(
        "RoiAlign",
        16,
        stated(coordinate_transformation_mode="output_half_pixel"),
        implied(coordinate_transformation_mode="output_half_pixel"),
    ),
    ("Upsample", 10, True): renamed("Resize"),
    ("Resize", 10, False): renamed("Upsample"),
    **both("Upsample", 9, _scales_up, _scales_down),
    **both("Upsample", 7, _scales_of_image, _scales_to_image),
}
