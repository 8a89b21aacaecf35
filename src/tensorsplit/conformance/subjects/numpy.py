"""Our own engine."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import onnx

from tensorsplit.conformance.subjects import Unsupported, is_ir
from tensorsplit.core.errors import UNSUPPORTED_NODE, SplitError
from tensorsplit.engines.numpy import run as run_numpy
from tensorsplit.model.graph.reading import read_model

KIND = "engine"
PACKAGES = ("tensorsplit",)
MODULES = ("onnx",)
FORMATS = ("onnx", "ir")

IMPORTS = """\
import pathlib, tempfile
import tensorsplit"""
SCRIPT = """\
with tempfile.TemporaryDirectory() as folder:
    path = pathlib.Path(folder, "model.xml" if MODEL.lstrip().startswith(b"<") else "model.onnx")
    path.write_bytes(MODEL)
    path.with_suffix(".bin").write_bytes(WEIGHTS)
    results = tensorsplit.run(path, INPUTS)"""


def run(
    model: bytes, weights: bytes, inputs: dict[str, Any], outputs: Sequence[str]
) -> dict[str, Any]:
    """Run a model.

    Args:
        model: The bytes of an ONNX model, or the text of an IR.
        weights: What the ``.bin`` file of an IR holds.
        inputs: Arrays by name, lists of them for sequences.
        outputs: The names of the outputs.

    Returns:
        The outputs by name.

    Raises:
        Unsupported: For an operator that onnx's evaluator has no implementation of.
        SplitError: For all that is refused.
    """
    try:
        if not is_ir(model):
            found = run_numpy(read_model(onnx.load_from_string(model)), inputs)
            return {name: found[name] for name in outputs}
        with TemporaryDirectory() as folder:
            path = Path(folder, "model.xml")
            path.write_bytes(model)
            path.with_suffix(".bin").write_bytes(weights)
            return run_numpy(read_model(path), inputs)
    except SplitError as error:
        if error.kind is UNSUPPORTED_NODE:
            raise Unsupported(str(error)) from error
        raise
