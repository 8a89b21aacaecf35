"""The adapter of onnxruntime-web passes values and refusals on, here those of a stand-in."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest

from tensorsplit.conformance.runner import Subject
from tensorsplit.engines.process import Reply
from tests.refusals import refused

pytestmark = pytest.mark.skipif(shutil.which("node") is None, reason="there is no Node.js")

STAND_IN = """
class Tensor {
  constructor(type, data, dims) { Object.assign(this, {type, data, dims}); }
}
const InferenceSession = {async create(model) {
  const said = model.toString();
  if (said.includes('refuse')) throw new Error('ERROR_CODE: 1, no such thing');
  if (said.includes('lack')) throw new Error('Could not find an implementation for Split');
  if (said.includes('trap')) throw new WebAssembly.RuntimeError('remainder by zero');
  return {
    async run(feeds, names) {
      return Object.fromEntries(names.map((name) => [name, feeds[name]]));
    },
    async release() {},
  };
}};
module.exports = {Tensor, InferenceSession, env: {wasm: {}}};
"""


@pytest.fixture
def modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of modules to which NODE_PATH leads, with the stand-in, which returns its inputs."""
    folder = tmp_path / "onnxruntime-web"
    folder.mkdir()
    (folder / "index.js").write_text(STAND_IN)
    (folder / "package.json").write_text(json.dumps({"version": "7.8.9", "main": "index.js"}))
    monkeypatch.setenv("NODE_PATH", str(tmp_path))
    return tmp_path


def model(name: str) -> bytes:
    """A model that says something to the stand-in."""
    return bytes(onnx.ModelProto(producer_name=name).SerializeToString())


def replies(*calls: tuple[bytes, dict[str, Any]]) -> list[Reply]:
    """What the adapter makes of models and inputs, one after the other in one process."""
    subject = Subject.of("onnxruntime-web")
    process = subject.process(1 << 26)
    found = [process.ask((subject.source, name, b"", x, list(x), 0), 30) for name, x in calls]
    process.close()
    return found


@pytest.mark.usefixtures("modules")
def test_values_come_back_bit_by_bit() -> None:
    kinds = ("bool", "f2", "f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8")
    x: dict[str, Any] = {
        f"x{place}": np.array([[0, 1, 3], [5, 7, 120]]).astype(kind)
        for place, kind in enumerate(kinds)
    }
    x |= {
        "n": np.array([np.nan, -0.0, np.inf], "f4"),
        "i": np.array(-(2**63)),
        "e": np.ones((0, 2)),
    }
    x["s"] = np.array([["a", "ü\\0"]], dtype=object)
    (reply,) = replies((b"", x))
    assert list(reply.result) == list(x)
    for name, value in x.items():
        found = reply.result[name]
        assert (found.dtype, found.shape) == (value.dtype, value.shape)
        assert found.tobytes() == value.tobytes() or found.tolist() == value.tolist()


@pytest.mark.usefixtures("modules")
def test_refusals_are_told_from_what_is_lacking() -> None:
    x = {"x": np.ones(3, "f4")}
    y = {"x": np.ones(3, ml_dtypes.bfloat16)}
    refusal, lack, kind, sequence, right = replies(
        (model("refuse"), x), (model("lack"), x), (b"", y), (b"", {"x": [x["x"]]}), (b"", x)
    )
    assert refusal.refusal == "RuntimeError: ERROR_CODE: 1, no such thing"
    assert [reply.unsupported for reply in (refusal, lack, kind, sequence)] == [False, *[True] * 3]
    assert kind.refusal == "unsupported data type: bfloat16"
    assert right.result["x"].tolist() == [1, 1, 1]


@pytest.mark.usefixtures("modules")
def test_a_trap_is_a_crash() -> None:
    crash, right = replies((model("trap"), {}), (b"", {"x": np.ones(1, "f4")}))
    assert "ended with exit status 1, having said: RuntimeError: remainder by zero" in str(
        crash.death
    )
    assert right.result["x"].tolist() == [1]


def test_the_version_is_that_of_the_package_of_npm(modules: Path) -> None:
    assert Subject.of("onnxruntime-web").traits.versions() == {"onnxruntime-web": "7.8.9"}
    (modules / "onnxruntime-web" / "package.json").unlink()
    with refused("TS602", "onnxruntime-web is not installed", "npm install onnxruntime-web"):
        Subject.installed("onnxruntime-web")
