"""``tensorsplit run``: what is shown, what is fed, and engines side by side."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from onnx import TensorProto, numpy_helper

from tensorsplit import engines
from tests.cli.build import identity, npy, save
from tests.cli.conftest import Command
from tests.model.build import FLOAT, graph, node, sequence, tensor, value
from tests.model.ir_files import X, cut_file

Refused = Callable[..., str]


def test_outputs_are_shown_with_type_shape_and_values(
    tensorsplit: Command, split: Path, tmp_path: Path
) -> None:
    x = npy(tmp_path, np.array([[1, 2, 3, 4], [5, 6, 7, 0.1]], np.float32))
    ended = tensorsplit("run", split, "--input", f"x={x}")
    assert (ended.status, ended.err) == (0, "")
    assert ended.out.splitlines() == [
        "a: float (2, 1)",
        "[[1.],",
        " [5.]]",
        "b: float (2, 3)",
        "[[2. , 3. , 4. ],",
        " [6. , 7. , 0.1]]",
    ]


def test_long_outputs_are_summarised(tensorsplit: Command, tmp_path: Path) -> None:
    path = identity(tmp_path, TensorProto.INT64)
    x = npy(tmp_path, np.arange(10000).reshape(2, 5, 10, 10, 10))
    lines = tensorsplit("run", path, "-i", f"x={x}").out.splitlines()
    assert lines == [
        "y: int64 (2, 5, 10, 10, 10)",
        "[0, 1, 2, 3, 4, 5, ..., 9997, 9998, 9999] (the first and the last ones)",
    ]


@pytest.mark.parametrize("written", ["x={}", "{}"])
def test_one_input_needs_no_name(
    tensorsplit: Command, split: Path, tmp_path: Path, x: Any, written: str
) -> None:
    ended = tensorsplit("run", split, "-i", written.format(npy(tmp_path, x)), "-o", tmp_path)
    assert ended.status == 0
    np.testing.assert_array_equal(np.load(tmp_path / "a.npy"), x[:, :1])
    np.testing.assert_array_equal(np.load(tmp_path / "b.npy"), x[:, 1:])


@pytest.mark.parametrize("written", ["{}", "x={}"])
def test_an_archive_feeds_its_names_or_its_one_array(
    tensorsplit: Command, split: Path, tmp_path: Path, x: Any, written: str
) -> None:
    np.savez(tmp_path / "all.npz", x=x)
    ended = tensorsplit("run", split, "-i", written.format(tmp_path / "all.npz"), "-o", tmp_path)
    assert ended.status == 0
    np.testing.assert_array_equal(np.load(tmp_path / "b.npy"), x[:, 1:])


def test_an_onnx_tensor_as_input(tensorsplit: Command, split: Path, tmp_path: Path, x: Any) -> None:
    (tmp_path / "x.pb").write_bytes(numpy_helper.from_array(x).SerializeToString())
    assert tensorsplit("run", split, "-i", f"x={tmp_path / 'x.pb'}", "-o", tmp_path).status == 0
    np.testing.assert_array_equal(np.load(tmp_path / "a.npy"), x[:, :1])


def test_nameless_bytes_of_another_size_are_refused(refused: Refused, tmp_path: Path) -> None:
    path = identity(tmp_path, TensorProto.INT4, [3])
    x = npy(tmp_path, np.array([1, 2, 3], ml_dtypes.bfloat16))
    assert "2 nameless bytes" in refused("TS701", "run", path, "-i", f"x={x}")


def test_missing_inputs_are_listed(refused: Refused, tmp_path: Path) -> None:
    inputs = [value("x", FLOAT, [2, "N"]), value("y", FLOAT)]
    path = save(tmp_path, graph([node("Add", "x y", "z")], inputs, ["z"]))
    message = refused("TS505", "run", path)
    assert "x: tensor of float and shape (2, N); y: tensor of float" in message
    assert "'y'" in refused("TS505", "run", path, "-i", f"x={npy(tmp_path, np.zeros((2, 2), 'f'))}")


def test_an_input_with_a_default_may_be_left_out_or_overridden(
    tensorsplit: Command, tmp_path: Path
) -> None:
    inputs = [value("x", FLOAT), value("s", TensorProto.INT64)]
    path = save(
        tmp_path, graph([node("Split", "x s", "a b")], inputs, ["a", "b"], [tensor("s", [1, 2])])
    )
    x = npy(tmp_path, np.array([1, 2, 3], np.float32))
    assert "a: float (1,)" in tensorsplit("run", path, "-i", x).out
    s = npy(tmp_path, np.array([2, 1]), "s.npy")
    assert "a: float (2,)" in tensorsplit("run", path, "-i", f"x={x}", "-i", f"s={s}").out


def test_an_openvino_model_runs_without_openvino(tensorsplit: Command, tmp_path: Path) -> None:
    path = cut_file((2, -1)).save(tmp_path)
    assert tensorsplit("run", path, "-i", f"x={npy(tmp_path, X)}", "-o", tmp_path).status == 0
    np.testing.assert_array_equal(np.load(tmp_path / "part1.npy"), X[2:])


def test_engines_that_agree(tensorsplit: Command, split: Path, tmp_path: Path, x: Any) -> None:
    feed = f"x={npy(tmp_path, x)}"
    words = ("-i", feed, "-o", tmp_path, "--compare", "onnx-reference", "--compare", "tensorsplit")
    ended = tensorsplit("run", split, *words)
    assert ended.status == 0
    assert ended.out.splitlines()[2:] == [
        "onnx-reference: the same as tensorsplit",
        "tensorsplit: the same as tensorsplit",
    ]


@pytest.mark.engine
def test_engines_that_differ_are_status_1(tensorsplit: Command, tmp_path: Path, x: Any) -> None:
    """D8: onnxruntime drops the axis although `split` is given."""
    pytest.importorskip("onnxruntime")
    cut = node("SplitToSequence", "x one", "s", keepdims=0)
    path = save(tmp_path, graph([cut], [value("x", FLOAT)], [sequence("s")], [tensor("one", 1)]))
    feed = f"x={npy(tmp_path, x)}"
    words = ("-i", feed, "-o", tmp_path / "out", "--compare", "onnxruntime")
    ended = tensorsplit("run", path, *words, "--tolerance", "1e9")
    assert (ended.status, ended.err) == (1, "")
    assert "onnxruntime: output 's[0]': shape (4,), but tensorsplit has (1, 4)" in ended.out
    assert len(list((tmp_path / "out").iterdir())) == 2


def test_a_tolerance_is_for_numbers(
    tensorsplit: Command, split: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, x: Any
) -> None:
    limits = list[object]()

    def rounded(*args: Any, timeout: object = None, **kwargs: Any) -> dict[str, Any]:
        limits.append(timeout)
        return {name: part + np.float32(0.5) for name, part in engines.run(*args, **kwargs).items()}

    monkeypatch.setattr("tensorsplit.engines.compare.run", rounded)
    words = ("run", split, "-i", f"x={npy(tmp_path, x)}", "--compare", "onnx-reference")
    ended = tensorsplit(*words)
    assert ended.status == 1
    assert "output 'b': 6 values differ, largest difference 0.5" in ended.out
    near = tensorsplit(*words, "--tolerance", "0.6", "--timeout", 60)
    assert limits == [None, 60]
    assert near.status == 0
    assert near.out.count("; within --rtol 0 and --atol 0.6") == 2
    assert tensorsplit(*words, "--tolerance", "0.4").status == 1


def test_tolerances_are_for_comparing(
    refused: Callable[..., str], split: Path, tmp_path: Path, x: Any
) -> None:
    words = ("run", split, "-i", f"x={npy(tmp_path, x)}")
    refused("TS703", *words, "--rtol", 1)
    refused("TS703", *words, "--compare", "tensorsplit", "--rtol", 1, "--tolerance", 1)
    refused("TS703", *words, "--compare", "tensorsplit", "--atol", "nan")


def test_what_is_split_is_compared_by_its_bits(
    tensorsplit: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, x: Any
) -> None:
    def rounded(*args: Any, **kwargs: Any) -> dict[str, Any]:
        outputs = engines.run(*args, **kwargs)
        return {name: part * np.float32(1 + 1e-6) for name, part in outputs.items()}

    monkeypatch.setattr("tensorsplit.engines.compare.run", rounded)
    nodes = [node("Split", "x", "a b", axis=1, num_outputs=2), node("Tanh", "x", "y")]
    outputs = [value(name, FLOAT) for name in ("a", "b", "y")]
    path = save(tmp_path, graph(nodes, [value("x", FLOAT)], outputs))
    words = ("run", path, "-i", f"x={npy(tmp_path, x)}", "--compare", "onnx-reference")
    ended = tensorsplit(*words, "--atol", 1)
    assert ended.status == 1
    assert ended.out.count("never computed, so it must match bit for bit") == 2
    assert "output 'y': " in ended.out
    assert "within --rtol 0.0001 (the default) and --atol 1" in ended.out
    all_near = tensorsplit(*words, "--tolerance", 1)
    assert all_near.status == 0
    assert "onnx-reference: the same as tensorsplit up to rounding" in all_near.out


def test_limits_are_for_every_engine_that_runs(
    tensorsplit: Command, refused: Refused, split: Path, tmp_path: Path, x: Any
) -> None:
    words = ("run", split, "-i", npy(tmp_path, x), "--compare", "onnx-reference")
    usual = tensorsplit(*words)
    assert usual.status == 0
    assert tensorsplit(*words, "--timeout", 100) == usual
    message = refused("TS605", *words, "--timeout", 0.001)
    assert "tensorsplit gave no answer within 0.001 s and was stopped: --timeout" in message
    for word in ("0", "nan", "-1"):
        assert "timeout" in refused("TS703", *words, "--timeout", word)
    for word in ("0", "5Q", "-1M", "5i", "1e9", ""):
        assert "write it as 500M, 2GiB" in refused("TS703", *words, "--memory", word)
