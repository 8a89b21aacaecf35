"""The adapter of LiteRT (TensorFlow Lite): onnx2tf converts a model, LiteRT runs it on the CPU.

onnx2tf needs older versions of NumPy and onnx than tensorsplit, so that the interpreter which
`sh scripts/engines.sh litert` makes runs this file: nothing here is of tensorsplit.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

KIND = "engine"
PACKAGES = ("ai-edge-litert", "onnx2tf", "tensorflow")
FORMATS = ("onnx",)
MODULES = ("ai_edge_litert.interpreter", "onnx2tf")
PYTHON = "../build/engines/litert/bin/python"


class Unsupported(Exception):  # noqa: N818 - it has to have this name
    """LiteRT has no such values."""


def run(
    model: bytes, weights: bytes, inputs: Mapping[str, Any], outputs: Sequence[str]
) -> dict[str, Any]:
    """Convert without the simplifier, keeping shapes; run with the shapes that are fed."""
    from ai_edge_litert.interpreter import Interpreter

    del weights
    with TemporaryDirectory() as folder:
        interpreter = Interpreter(str(_converted(model, inputs, Path(folder))), num_threads=1)
    taken = {_name(entry): entry for entry in interpreter.get_input_details()}
    lost = inputs.keys() - taken.keys()
    if lost:
        raise LookupError(f"the model in LiteRT has no inputs {', '.join(sorted(lost))}")
    for name, entry in taken.items():
        interpreter.resize_tensor_input(entry["index"], list(inputs[name].shape))
    interpreter.allocate_tensors()
    for name, entry in taken.items():  # onnx2tf makes float of float16
        interpreter.set_tensor(entry["index"], inputs[name].astype(entry["dtype"]))
    interpreter.invoke()
    entries = sorted(interpreter.get_output_details(), key=_number)
    found = [np.array(interpreter.get_tensor(entry["index"])) for entry in entries]
    return dict(zip(sorted(outputs), found, strict=True))  # the order that TensorFlow gives them


def _converted(model: bytes, inputs: Mapping[str, Any], folder: Path) -> Path:
    """Convert a model; return the path of LiteRT's. onnx2tf says why not by what it prints."""
    import onnx2tf

    for value in inputs.values():
        if not isinstance(value, np.ndarray) or value.dtype.kind not in "biuf":
            raise Unsupported("onnx2tf takes numbers as inputs")
    path = folder / "model.onnx"
    path.write_bytes(model)
    printed = StringIO()
    try:
        with redirect_stdout(printed):
            onnx2tf.convert(
                input_onnx_file_path=str(path),
                output_folder_path=str(folder),
                keep_shape_absolutely_input_names=list(inputs),
                not_use_onnxsim=True,
                verbosity="error",
            )
    except SystemExit:
        lines = re.sub(r"\x1b\[\d+m", "", printed.getvalue()).strip().splitlines()
        raise RuntimeError(" ".join(lines[-4:]) or "onnx2tf ended") from None
    return folder / "model_float32.tflite"


def _name(entry: Mapping[str, Any]) -> str:
    """Return the name of an input in the ONNX model."""
    return str(entry["name"]).removeprefix("serving_default_").partition(":")[0]


def _number(entry: Mapping[str, Any]) -> int:
    """Return the place of an output in the ONNX model."""
    return int(str(entry["name"]).rpartition(":")[2])
