"""tinygrad's ONNX runner, on the device that tinygrad chooses.

Its CPU device needs clang. Where there is none, and no device is asked for in ``DEV``, its
interpreter in Python does the work.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np

from tensorsplit.conformance.subjects import unsupported

KIND = "engine"
PACKAGES = ("tinygrad",)
FORMATS = ("onnx",)

IMPORTS = """\
import os, shutil
if shutil.which("clang") is None:
    os.environ.setdefault("DEV", "PYTHON")
from tinygrad import Tensor, dtypes
from tinygrad.nn.onnx import OnnxRunner"""
SCRIPT = """\
found = OnnxRunner(Tensor(MODEL))(INPUTS)
results = {name: found[name].numpy() for name in OUTPUTS}"""
FOREIGN_SCRIPT = """\
found = OnnxRunner(Tensor(MODEL))(INPUTS)
results = {
    name: found[name].bitcast(dtypes.uint16).numpy().view(ml_dtypes.bfloat16)
    if found[name].dtype == dtypes.bfloat16
    else found[name].numpy()
    for name in OUTPUTS
}"""


def run(
    model: bytes, weights: bytes, inputs: dict[str, Any], outputs: Sequence[str]
) -> dict[str, Any]:
    """Run a model; see `tensorsplit.conformance.subjects`."""
    if shutil.which("clang") is None:
        os.environ.setdefault("DEV", "PYTHON")  # read when tinygrad is imported
    from tinygrad import Tensor
    from tinygrad.nn.onnx import OnnxRunner

    del weights
    with unsupported(model, NotImplementedError, says="is not a valid OnnxDataType"):
        found = OnnxRunner(Tensor(model))(inputs)
    return {name: _array(found[name]) for name in outputs}


def _array(value: Any) -> Any:
    """A tensor as an array, without its own way of making bfloat16 a float."""
    from tinygrad import dtypes

    if value.dtype == dtypes.bfloat16:
        return np.asarray(value.bitcast(dtypes.uint16).numpy()).view(ml_dtypes.bfloat16)
    return np.asarray(value.numpy())
