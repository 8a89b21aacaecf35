"""Models as PyTorch's exporters write them, brought to other opsets and run.

The names of the files tell the module, the exporter (``ts``: TorchScript, ``dy``: dynamo), the
opset, and whether the first dimension is dynamic; the ``.npz`` beside them holds what PyTorch was
fed and what it gave. ``tests/data/torch/README.md`` says how they were made.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import ModelProto

from tests.model.build import known, outputs
from tests.model.convert.legal import converted

FOLDER = Path(__file__).parents[2] / "data" / "torch"
MODELS = sorted(path.stem for path in FOLDER.glob("*.onnx"))
LOWEST = {"gate": 9, "split": 10, "mha": 10}
"""Where the other operators of a model end: Slice, Mod and Expand with values of the run."""


def load(name: str) -> tuple[ModelProto, list[Any], dict[str, Any]]:
    module = name.split("_", maxsplit=1)[0]
    made = onnx.load(FOLDER / f"{name}.onnx")
    with np.load(FOLDER / f"{module}.npz") as arrays:
        expected = [arrays[key] for key in sorted(arrays) if key.startswith("y")]
        return made, expected, {made.graph.input[0].name: arrays["x"]}


def check(made: ModelProto, expected: list[Any], feeds: dict[str, Any]) -> None:
    for found, wanted in zip(outputs(made, **feeds), expected, strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", MODELS)
def test_an_export_goes_up_and_down(name: str) -> None:
    made, expected, feeds = load(name)
    check(made, expected, feeds)
    for target in known(8, 9, 10, 11, 12, 13, 15, 17, 18, 21, 24):
        if target < LOWEST.get(name.split("_", maxsplit=1)[0], 8):
            continue
        there = converted(made, target)
        check(there, expected, feeds)


@pytest.mark.engine
@pytest.mark.parametrize("name", MODELS)
def test_onnxruntime_runs_what_an_export_became(name: str) -> None:
    onnxruntime = pytest.importorskip("onnxruntime")
    made, expected, feeds = load(name)
    for target in known(10, 13, 18):
        there = converted(made, target)
        there.ir_version = min(there.ir_version, 10)
        session = onnxruntime.InferenceSession(there.SerializeToString())
        for found, wanted in zip(session.run(None, feeds), expected, strict=True):
            np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)
