"""jaxonnxruntime, with 64-bit types, which JAX has only if it is asked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tensorsplit.conformance.subjects import unsupported

KIND = "engine"
PACKAGES = ("jaxonnxruntime", "jax")
MODULES = ("onnx", "jax", "jaxonnxruntime.call_onnx")
FORMATS = ("onnx",)

IMPORTS = """\
import jax, onnx
from jaxonnxruntime import call_onnx"""
SCRIPT = """\
jax.config.update("jax_enable_x64", True)
function, parameters = call_onnx.call_onnx_model(onnx.load_from_string(MODEL), INPUTS)
results = dict(zip(OUTPUTS, function(parameters, INPUTS)))"""


def run(
    model: bytes, weights: bytes, inputs: dict[str, Any], outputs: Sequence[str]
) -> dict[str, Any]:
    """Run a model; see `tensorsplit.conformance.subjects`."""
    import jax
    import onnx
    from jaxonnxruntime import call_onnx

    del weights
    jax.config.update("jax_enable_x64", True)
    with unsupported(model, NotImplementedError, says="is not a valid JAX array type"):
        function, parameters = call_onnx.call_onnx_model(onnx.load_from_string(model), inputs)
    found = function(parameters, inputs)
    return {name: np.asarray(value) for name, value in zip(outputs, found, strict=True)}
