"""Operators that are about element types: casts, constants and quantization."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from tensorsplit.model.convert.change import Change
from tensorsplit.model.convert.schemas import Step
from tensorsplit.model.convert.site import Site
from tensorsplit.model.convert.table import (
    Adapters,
    both,
    fitted,
)


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
    fitted(site, step)


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
    fitted(site, step)


def _quantized_type(site: Site, step: Step, change: Change) -> None:
    """The type that is named is often the one that follows from the inputs anyway."""
    zero = change.dtype(site.input(2)) if site.op_type == "QuantizeLinear" else None
    like = change.dtype(site.input(1)) if site.op_type == "DequantizeLinear" else zero
    if like is not None and site.attribute("output_dtype", 0) == like.value:
        site.take("output_dtype")
    fitted(site, step)


def _no_floats(site: Site, step: Step, change: Change) -> None:
    """Mod: the rounding of integers holds for floats since opset 28."""
    dtype = change.dtype(site.input(0))
    if not site.attribute("fmod", 0) and (dtype is None or dtype.is_floating_point()):
        raise site.refusal("it may take floats without 'fmod', which came with opset 28")
    fitted(site, step)


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


ADAPTERS: Adapters = {
    **both("Cast", 6, _cast_name_up, _cast_name_down),
    **{(name, 19, False): _cast_plain for name in ("Cast", "CastLike")},
    **{(name, 24, False): _cast_plain for name in ("Cast", "CastLike")},
    ("CastLike", 15, False): _cast_like,
    ("Constant", 12, False): _constant_down,
    ("Constant", 11, False): _constant_dense,
    **{(name, 13, False): _tensor_scale for name in ("QuantizeLinear", "DequantizeLinear")},
    ("QuantizeLinear", 21, False): _quantized_type,
    ("DequantizeLinear", 23, False): _quantized_type,
    ("Mod", 28, False): _no_floats,
}
