"""An adapter that runs a model in OpenVINO, with this package's extensions or without."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import openvino

import tensorsplit as ts
from tensorsplit.engines.adapters import from_openvino, to_openvino


class Task(NamedTuple):
    """What to run."""

    model: bytes
    feeds: dict[str, np.ndarray]
    extended: bool


def run(model: bytes, feeds: dict[str, np.ndarray], extended: bool) -> list[list[np.ndarray] | str]:
    """The outputs, or what OpenVINO says; once by path and once from bytes: two importers."""
    task = Task(model, feeds, extended)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.onnx"
        path.write_bytes(task.model)
        return [_run(task, source) for source in ((path,), (task.model, b""))]


def _run(task: Task, source: Any) -> list[np.ndarray] | str:
    core = openvino.Core()
    if task.extended:
        core.add_extension(ts.openvino.extensions())
    try:
        model = core.read_model(*source)
        request = core.compile_model(model, "CPU").create_infer_request()
        places = {name: place for place, port in enumerate(model.inputs) for name in port.names}
        fed = {places[name]: to_openvino(x) for name, x in task.feeds.items() if name in places}
        request.start_async(fed)
        request.wait()
        return [from_openvino(request.get_output_tensor(n)) for n in range(len(model.outputs))]
    except Exception as error:  # noqa: BLE001 - whatever OpenVINO raises is what is asked for
        return str(error)
