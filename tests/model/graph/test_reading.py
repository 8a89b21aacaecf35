"""Reading models: what is one, what is none, and files with any byte wrong."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx_ir
import pytest
from onnx import ModelProto, TensorProto

from tensorsplit import SplitError
from tensorsplit.model.reading import OnnxModel, read_model
from tests.interpreters import printed
from tests.model.build import (
    BOOL,
    FLOAT,
    INT64,
    function,
    graph,
    model,
    node,
    onnx_model,
    outputs,
    run,
    sequence,
    tensor,
    untyped,
    value,
)
from tests.oracle import assert_same, slices
from tests.refusals import refused


@pytest.fixture
def x(rng: np.random.Generator) -> Any:
    return rng.random((6, 2)).astype(np.float32)


def good() -> ModelProto:
    """A model with a bit of everything."""
    body = graph(
        [node("Split", "v k", "p q", name="cut"), node("Identity", "c", "d")],
        [value("i", INT64, []), value("c", BOOL, []), value("v")],
        ["d", "q", "p"],
        [tensor("k", [1, 2])],
    )
    half = function("Half", "d", "p q", [node("Split", "d", "p q", num_outputs=2)])
    nodes = [
        node("Half", "x", "a b", domain="custom"),
        node("Loop", "one _ b", "r s", body=body),
        node("SplitToSequence", "a k", "t"),
        node("SequenceAt", "t one", "u"),
    ]
    held = [tensor("one", 1), tensor("k", [2, 1])]
    made = graph(nodes, [value("x", FLOAT, [6, "N"])], ["r", "s", "u"], held)
    return model(made, functions=[half], custom=1)


def expected(x: Any) -> list[Any]:
    return [x[4:], x[3:4].reshape(1, 1, 2), x[2:3]]


def test_a_path_a_message_and_an_ir_model_give_the_same(x: Any, tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    onnx.save(good(), path)
    for source in (path, str(path), good(), onnx_ir.load(path), onnx_ir.from_proto(good())):
        assert_same(outputs(source, x=x), expected(x))


def test_what_is_read_is_not_changed(x: Any) -> None:
    made = good()
    before = made.SerializeToString(deterministic=True)
    run(made, x=x)
    assert made.SerializeToString(deterministic=True) == before


def test_names_and_folders(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    onnx.save(good(), path)
    read = onnx_model(path)
    assert (read.path, read.folder) == (path, tmp_path)
    assert onnx_model(good()).folder is None
    assert onnx_model(good()).output_names == ("r", "s", "u")


def test_inputs_as_declared() -> None:
    made = graph(
        [node("Identity", "x", "y")],
        [
            value("x", FLOAT, [2, "N", None, -1, 0]),
            value("r", INT64),
            untyped("u"),
            sequence("q", BOOL),
            value("d", INT64, [2]),
        ],
        "y",
        [tensor("d", [1, 2])],
    )
    declared = {entry.name: entry for entry in onnx_model(model(made)).inputs}
    assert declared["x"][:5] == ("x", "float", (2, "N", None, None, 0), "tensor", False)
    assert declared["r"][:5] == ("r", "int64", None, "tensor", False)
    assert declared["u"][:5] == ("u", None, None, "tensor", False)
    assert declared["q"][:5] == ("q", "bool", None, "sequence", False)
    assert declared["d"][:5] == ("d", "int64", (2,), "tensor", True)


def test_two_inputs_of_one_name_are_refused(x: Any) -> None:
    made = model(graph([node("Neg", "x", "y")], [value("x"), value("x")], "y"))
    with refused("TS502", "there twice"):
        run(made, x=x)


def test_external_data_of_an_ir_model(x: Any, tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        made = model(
            graph([node("Split", "x k", "a b")], [value("x")], "ab", [tensor("k", [1, 5])])
        )
        onnx.save(
            made,
            tmp_path / name / "m.onnx",
            save_as_external_data=True,
            location="w.bin",
            size_threshold=0,
        )
    first = onnx_ir.load(tmp_path / "one" / "m.onnx")
    assert_same(outputs(first, x=x), slices(x, 0, [1, 5]))
    second = onnx_ir.load(tmp_path / "two" / "m.onnx").graph.initializers["k"]
    other = onnx_ir.Value(name="other", const_value=second.const_value)
    first.graph.register_initializer(other)
    with refused("TS501", "more than one folder"):
        read_model(first)


@pytest.mark.parametrize(
    ("content", "word"),
    [
        (b"", "it is empty"),
        (b"\x08\x0a", "no graph"),
        (b"not a model at all, but text", "not an ONNX model: it looks like text"),
        (b"<?xml version='1.0'?><net/>", "it looks like XML; the name of an OpenVINO IR ends in"),
        (b"PK\x03\x04" + bytes(100), "it looks like a ZIP archive"),
        (b"\x89PNG\r\n\x1a\n" + bytes(8), "not an ONNX model: it looks like a PNG"),
        (b"\x20\0\0\0TFL3" + bytes(100), "it looks like a TFLite model"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a", "git lfs pull"),
        (b"\x3a\x00", "no graph"),
        (b"\x3a\x02\x12\x00", "no graph"),
        (bytes(1000), "not an ONNX model (Error parsing message"),
    ],
)
def test_files_that_are_no_model_are_refused(content: bytes, word: str, tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    path.write_bytes(content)
    with refused("TS501", word, "m.onnx", parameter="model"):
        read_model(path)


def test_paths_that_are_no_file_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with refused("TS501", "no such file"):
        read_model(tmp_path / "missing.onnx")
    with refused("TS501", "it is a folder"):
        read_model(tmp_path)
    with refused("TS501", "a device"):
        read_model(os.devnull)
    monkeypatch.setattr("tensorsplit.storage.documents._SECONDS", 0.1)
    os.mkfifo(tmp_path / "pipe")
    with refused("TS501", "nobody writes to this pipe"):
        read_model(tmp_path / "pipe")
    (tmp_path / "loop").symlink_to("loop")
    with refused("TS501"):
        read_model(tmp_path / "loop")
    for name in ("", "a\0b", "x" * 5000):
        with refused("TS501"):
            read_model(name)


def test_a_long_path_is_shown_from_its_end(tmp_path: Path) -> None:
    with refused("TS501", "model': '...", "bbb/missing.onnx': there is no such file"):
        read_model(tmp_path / ("b" * 200) / "missing.onnx")


@pytest.mark.parametrize("source", [None, 3, b"m.onnx", [], {}, TensorProto(), object()])
def test_what_is_no_model_is_refused(source: Any) -> None:
    with refused("TS501", type(source).__name__, parameter="model"):
        read_model(source)


def test_a_file_too_large_for_protobuf_is_refused_unread(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    with path.open("wb") as file:
        file.truncate(1 << 31)
    with refused("TS501", "2 GiB"):
        read_model(path)


def test_random_bytes_are_refused(tmp_path: Path, rng: np.random.Generator) -> None:
    for size in (1, 2, 3, 7, 20, 100, 1000, 10_000):
        for _ in range(20):
            path = tmp_path / "m.onnx"
            path.write_bytes(rng.bytes(size))
            with pytest.raises(SplitError) as caught:
                run(path)
            assert caught.value.code in ("TS501", "TS502")


def runs_or_refuses(path: Path, x: Any) -> bool:
    """Whether the model runs; anything but a result or a refusal fails the test."""
    try:
        results = outputs(path, x=x)
    except SplitError:
        return False
    assert all(result is None or isinstance(result, (np.ndarray, list)) for result in results)
    return True


@pytest.mark.filterwarnings("ignore")
def test_every_truncation_is_refused_or_runs(x: Any, tmp_path: Path) -> None:
    content = good().SerializeToString()
    path = tmp_path / "m.onnx"
    for size in range(0, len(content), 3):
        path.write_bytes(content[:size])
        runs_or_refuses(path, x)
    path.write_bytes(content[:-1])
    assert not runs_or_refuses(path, x)
    path.write_bytes(content)
    assert runs_or_refuses(path, x)


@pytest.mark.filterwarnings("ignore")
def test_flipped_bits_are_refused_or_run(x: Any, tmp_path: Path, rng: np.random.Generator) -> None:
    content = np.frombuffer(good().SerializeToString(), np.uint8)
    path = tmp_path / "m.onnx"
    ran = 0
    for _ in range(600):
        changed = content.copy()
        places = rng.integers(len(content), size=rng.integers(1, 4))
        changed[places] ^= np.uint8(1) << rng.integers(8, size=places.shape, dtype=np.uint8)
        path.write_bytes(changed.tobytes())
        ran += runs_or_refuses(path, x)
    assert 0 < ran < 600


def test_a_model_that_nothing_refers_to_is_read_without_its_neighbours(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    onnx.save(good(), path)
    assert isinstance(read_model(path), OnnxModel)


def test_reading_loads_no_engine(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    onnx.save(good(), path)
    code = (
        "import sys\n"
        "from tensorsplit.model.reading import read_model\n"
        f"read_model({str(path)!r})\n"
        "found = {'onnxruntime', 'openvino', 'torch'} & set(sys.modules)\n"
        "assert not found, found\n"
    )
    printed(code)
