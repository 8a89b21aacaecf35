"""tract, through its Python package.

It asks for the shape of an input that the model leaves open, and gets that of what is fed.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tensorsplit.conformance.subjects import ordered, unsupported

KIND = "engine"
PACKAGES = ("tract",)
MODULES = ("tract",)
FORMATS = ("onnx",)

IMPORTS = """\
import pathlib, tempfile
import tract"""
SCRIPT = """\
with tempfile.TemporaryDirectory() as folder:
    path = pathlib.Path(folder, "model.onnx")
    path.write_bytes(MODEL)
    model = tract.onnx().load(path)
fed = [INPUTS[model.input_name(place)] for place in range(model.input_count())]
for place, array in enumerate(fed):
    if "?" in model.input_fact(place).dump():
        kind = "bool" if array.dtype == bool else f"{array.dtype.kind}{8 * array.itemsize}"
        model.set_input_fact(place, ",".join([*map(str, array.shape), kind]))
found = model.into_model().into_runnable().run(fed)
results = {name: value.to_numpy() for name, value in zip(OUTPUTS, found)}"""

_UNSUPPORTED = (
    r"Unknown DatumType|Unimplemented\("
    r'|can only concatenate str \(not "numpy\.dtypes'  # its message about NumPy's type, gone wrong
)


def run(
    model: bytes, weights: bytes, inputs: dict[str, Any], outputs: Sequence[str]
) -> dict[str, Any]:
    """Run a model; see `tensorsplit.conformance.subjects`."""
    del weights
    with unsupported(model, says=_UNSUPPORTED):
        found = _invoke(model, inputs)
    return {name: value.to_numpy() for name, value in zip(outputs, found, strict=True)}


def _invoke(model: bytes, inputs: dict[str, Any]) -> Any:
    import tract

    with TemporaryDirectory() as folder:
        path = Path(folder, "model.onnx")
        path.write_bytes(model)
        loaded = tract.onnx().load(path)
    names = [loaded.input_name(place) for place in range(loaded.input_count())]
    fed = ordered(model, inputs, names)
    for place, array in enumerate(fed):
        if "?" in loaded.input_fact(place).dump():
            loaded.set_input_fact(place, _fact(array))
    return loaded.into_model().into_runnable().run(fed)


def _fact(array: Any) -> str:
    """What tract calls the shape and element type of an array, such as ``2,7,f32``."""
    kind = "bool" if array.dtype == bool else f"{array.dtype.kind}{8 * array.itemsize}"
    return ",".join([*map(str, array.shape), kind])
