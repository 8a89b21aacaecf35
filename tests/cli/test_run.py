"""``tensorsplit run``: inputs and outputs in files, engines side by side."""

from __future__ import annotations

import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import SequenceProto, TensorProto, numpy_helper

from tests.cli.conftest import Command
from tests.models.build import FLOAT, STRING, graph, model, node, sequence, tensor, value
from tests.models.ir_files import X, cut_file

Refused = Callable[..., str]

SPLIT = graph(
    [node("Split", "x s", "a b", axis=1)],
    [value("x", FLOAT, [2, "N"])],
    [value("a", FLOAT), value("b", FLOAT)],
    [tensor("s", [1, 3])],
)


def save(folder: Path, made: onnx.GraphProto, opset: int = 18) -> Path:
    onnx.save(model(made, opset), folder / "model.onnx")
    return folder / "model.onnx"


@pytest.fixture
def split(tmp_path: Path) -> Path:
    """A model that cuts ``x`` of shape (2, 4) into ``a`` of (2, 1) and ``b`` of (2, 3)."""
    return save(tmp_path, SPLIT)


@pytest.fixture
def x(rng: np.random.Generator) -> Any:
    return rng.standard_normal((2, 4)).astype(np.float32)


def npy(folder: Path, array: Any, name: str = "x.npy") -> Path:
    np.save(folder / name, array)
    return folder / name


def identity(folder: Path, element: int, shape: list[int | str | None] | None = None) -> Path:
    """A model that returns what it is fed."""
    made = graph([node("Identity", "x", "y")], [value("x", element, shape)], [value("y", element)])
    return save(folder, made, 23)


def test_outputs_are_shown_with_type_shape_and_values(
    tensorsplit: Command, split: Path, tmp_path: Path
) -> None:
    x = npy(tmp_path, np.float32([[1, 2, 3, 4], [5, 6, 7, 0.1]]))
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
        "[0, 1, 2, 3, 4, 5, ..., 9997, 9998, 9999] (in order)",
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


@pytest.mark.parametrize(
    ("element", "dtype"),
    [
        (TensorProto.BFLOAT16, ml_dtypes.bfloat16),
        (TensorProto.FLOAT8E4M3FN, ml_dtypes.float8_e4m3fn),
        (TensorProto.FLOAT8E5M2, ml_dtypes.float8_e5m2),
        (TensorProto.INT4, ml_dtypes.int4),
        (TensorProto.UINT4, ml_dtypes.uint4),
    ],
)
def test_types_without_a_name_in_npy_come_in_by_the_models_and_go_out_as_pb(
    tensorsplit: Command, tmp_path: Path, element: int, dtype: Any
) -> None:
    path = identity(tmp_path, element, [3])
    x = npy(tmp_path, np.array([1, 2, 3], dtype))
    assert tensorsplit("run", path, "-i", f"x={x}", "-o", tmp_path / "out").status == 0
    found = TensorProto.FromString((tmp_path / "out" / "y.pb").read_bytes())
    assert found.data_type == element
    np.testing.assert_array_equal(numpy_helper.to_array(found), np.array([1, 2, 3], dtype))


def test_nameless_bytes_of_another_size_are_refused(refused: Refused, tmp_path: Path) -> None:
    path = identity(tmp_path, TensorProto.INT4, [3])
    x = npy(tmp_path, np.array([1, 2, 3], ml_dtypes.bfloat16))
    assert "2 nameless bytes" in refused("TS701", "run", path, "-i", f"x={x}")


@pytest.mark.parametrize("style", ["npy", "npz"])
def test_a_format_that_cannot_hold_an_output_writes_nothing(
    refused: Refused, tmp_path: Path, style: str
) -> None:
    path = identity(tmp_path, TensorProto.BFLOAT16, [3])
    x = npy(tmp_path, np.zeros(3, ml_dtypes.bfloat16))
    words = ("run", path, "-i", f"x={x}", "-o", tmp_path / "out", "--format", style)
    assert "--format pb" in refused("TS702", *words)
    assert not (tmp_path / "out").exists()


def test_outputs_as_one_archive(tensorsplit: Command, split: Path, tmp_path: Path, x: Any) -> None:
    feed = f"x={npy(tmp_path, x)}"
    tensorsplit("run", split, "-i", feed, "-o", tmp_path, "--format", "npz")
    with np.load(tmp_path / "outputs.npz", allow_pickle=False) as outputs:
        assert outputs.files == ["a", "b"]
        np.testing.assert_array_equal(outputs["b"], x[:, 1:])


def test_strings_are_written_without_pickling(tensorsplit: Command, tmp_path: Path) -> None:
    path = identity(tmp_path, STRING)
    feed = f"x={npy(tmp_path, np.array(['a', 'split', '']))}"
    assert "['a', 'split', '']" in tensorsplit("run", path, "-i", feed).out
    tensorsplit("run", path, "-i", feed, "-o", tmp_path)
    assert np.load(tmp_path / "y.npy", allow_pickle=False).tolist() == ["a", "split", ""]


def test_strings_that_npy_would_change_are_written_as_pb(
    tensorsplit: Command, tmp_path: Path
) -> None:
    path = identity(tmp_path, STRING)
    words = np.array(["ends with nul\0"], object)
    (tmp_path / "x.pb").write_bytes(numpy_helper.from_array(words).SerializeToString())
    tensorsplit("run", path, "-i", tmp_path / "x.pb", "-o", tmp_path)
    assert not (tmp_path / "y.npy").exists()
    found = TensorProto.FromString((tmp_path / "y.pb").read_bytes())
    assert list(found.string_data) == [b"ends with nul\0"]


@pytest.fixture
def chunks(tmp_path: Path) -> Path:
    """A model that makes a sequence of chunks of two rows, called ``parts/../x``."""
    name = "parts/../x"
    cut = node("SplitToSequence", "x two", name)
    inputs = [value("x", FLOAT)]
    return save(tmp_path, graph([cut], inputs, [sequence(name)], [tensor("two", 2)]))


def test_a_sequence_becomes_numbered_files_with_safe_names(
    tensorsplit: Command, chunks: Path, tmp_path: Path, rng: np.random.Generator
) -> None:
    x = rng.standard_normal((5, 3)).astype(np.float32)
    out = tmp_path / "in" / "out"
    ended = tensorsplit("run", chunks, "-i", f"x={npy(tmp_path, x)}", "-o", out)
    assert ended.out.splitlines()[0] == f"parts/../x[0]: {out / 'parts_.._x_0.npy'}"
    names = [f"parts_.._x_{place}.npy" for place in range(3)]
    assert sorted(path.name for path in out.iterdir()) == names
    for place, name in enumerate(names):
        np.testing.assert_array_equal(np.load(out / name), x[2 * place : 2 * place + 2])


def test_a_sequence_as_pb_is_read_back_as_one(
    tensorsplit: Command, chunks: Path, tmp_path: Path, rng: np.random.Generator
) -> None:
    x = rng.standard_normal((3, 2)).astype(np.float32)
    tensorsplit("run", chunks, "-i", f"x={npy(tmp_path, x)}", "-o", tmp_path, "--format", "pb")
    file = tmp_path / "parts_.._x.pb"
    assert len(SequenceProto.FromString(file.read_bytes()).tensor_values) == 2
    made = graph([node("SequenceAt", "s one", "y")], [sequence("s")], ["y"], [tensor("one", 1)])
    path = save(tmp_path, made)
    np.savez(tmp_path / "s.npz", first=x[:2], second=x[2:])
    for feeds in (
        [f"s={file}"],
        [f"s={tmp_path / 's.npz'}"],
        [f"s={npy(tmp_path, x[:2], 'a.npy')}", f"s={npy(tmp_path, x[2:], 'b.npy')}"],
    ):
        words = [word for feed in feeds for word in ("-i", feed)]
        assert tensorsplit("run", path, *words, "-o", tmp_path).status == 0
        np.testing.assert_array_equal(np.load(tmp_path / "y.npy"), x[2:])


def test_an_empty_sequence(tensorsplit: Command, chunks: Path, tmp_path: Path) -> None:
    x = npy(tmp_path, np.zeros((0, 2), np.float32))
    assert tensorsplit("run", chunks, "-i", f"x={x}").out == "parts/../x: sequence of 0\n"
    out = tensorsplit("run", chunks, "-i", f"x={x}", "-o", tmp_path / "out").out
    assert out == "parts/../x: empty, no file\n"


def test_outputs_whose_safe_names_meet_get_a_file_each(
    tensorsplit: Command, tmp_path: Path
) -> None:
    names = ["a/b", "a_b", "A_B", "..", ".hidden", "CON " + "long" * 100]
    cut = onnx.helper.make_node("Split", ["x"], names, num_outputs=len(names))
    path = save(tmp_path, graph([cut], [value("x", FLOAT)], names))
    x = npy(tmp_path, np.arange(6, dtype=np.float32))
    assert tensorsplit("run", path, "-i", f"x={x}", "-o", tmp_path / "out").status == 0
    files = sorted((tmp_path / "out").iterdir())
    assert sorted(np.load(file).item() for file in files) == [0, 1, 2, 3, 4, 5]
    assert len({file.name.casefold() for file in files}) == 6
    assert all(not file.name.startswith(".") and len(file.name) < 200 for file in files)


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
    x = npy(tmp_path, np.float32([1, 2, 3]))
    assert "a: float (1,)" in tensorsplit("run", path, "-i", x).out
    s = npy(tmp_path, np.array([2, 1]), "s.npy")
    assert "a: float (2,)" in tensorsplit("run", path, "-i", f"x={x}", "-i", f"s={s}").out


def test_an_openvino_model_runs_without_openvino(tensorsplit: Command, tmp_path: Path) -> None:
    path = cut_file((2, -1)).save(tmp_path)
    assert tensorsplit("run", path, "-i", f"x={npy(tmp_path, X)}", "-o", tmp_path).status == 0
    np.testing.assert_array_equal(np.load(tmp_path / "part1.npy"), X[2:])


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("TS506", ["-i", "y={x}"]),
        ("TS507", ["-i", "x={wrong shape}"]),
        ("TS508", ["-i", "x={wrong type}"]),
        ("TS701", ["-i", "x={missing}"]),
        ("TS701", ["-i", "x={folder}"]),
        ("TS701", ["-i", "x=/dev/zero"]),
        ("TS701", ["-i", "x={model}"]),
        ("TS701", ["-i", "x={empty}"]),
        ("TS701", ["-i", "x={cut short}"]),
        ("TS701", ["-i", "x={header cut short}"]),
        ("TS701", ["-i", "x={far too large}"]),
        ("TS701", ["-i", "x={pickled}"]),
        ("TS701", ["-i", "x={structured}"]),
        ("TS701", ["-i", "x={random npz}"]),
        ("TS701", ["-i", "{random npz}"]),
        ("TS701", ["-i", "x={two arrays}"]),
        ("TS701", ["-i", "x={random pb}"]),
        ("TS701", ["-i", "x={untyped pb}"]),
        ("TS701", ["-i", "x={short pb}"]),
        ("TS701", ["-i", "x={external pb}"]),
        ("TS703", ["-i", "x={x}", "-i", "x={x}"]),
        ("TS703", ["-i", "x={x}", "--format", "npy"]),
        ("TS703", ["-i", "x={x}", "-o", "{folder}", "--format", "csv"]),
        ("TS703", ["-i", "x={x}", "--tolerance", "-1"]),
        ("TS601", ["-i", "x={x}", "--engine", "tensorflow"]),
        ("TS601", ["-i", "x={x}", "--compare", "tensorflow"]),
        ("TS702", ["-i", "x={x}", "-o", "{x}"]),
        ("TS702", ["-i", "x={x}", "-o", "{x}/below"]),
        ("TS702", ["-i", "x={x}", "-o", "/proc/none"]),
    ],
)
def test_refusals(
    refused: Refused,
    split: Path,
    tmp_path: Path,
    x: Any,
    rng: np.random.Generator,
    code: str,
    words: list[str],
) -> None:
    files = {"x": npy(tmp_path, x), "folder": tmp_path, "model": split}
    files |= {name: tmp_path / f"{name}.npy" for name in ("missing", "empty", "cut short")}
    files |= bad_files(tmp_path, x, rng)
    refused(code, "run", split, *(word.format(**files) for word in words))
    assert not list(tmp_path.glob("*a.npy"))


def bad_files(folder: Path, x: Any, rng: np.random.Generator) -> dict[str, Path]:
    """Files that hold no input of the model, by what is wrong with them."""
    whole = npy(folder, x, "whole.npy").read_bytes()
    contents = {
        "empty.npy": b"",
        "cut short.npy": whole[:-4],
        "header cut short.npy": whole[:50],
        "far too large.npy": whole.replace(b"(2, 4), }", b"(2, 999999999999), }"),
        "random npz.npz": rng.bytes(1000),
        "random pb.pb": b"\xff" + rng.bytes(1000),
        "untyped pb.pb": TensorProto(dims=[1]).SerializeToString(),
        "short pb.pb": TensorProto(dims=[2, 4], data_type=1, raw_data=b"1").SerializeToString(),
    }
    outside = TensorProto(dims=[2, 4], data_type=1, data_location=TensorProto.EXTERNAL)
    outside.external_data.add(key="location", value="../whole.npy")
    contents["external pb.pb"] = outside.SerializeToString()
    for name, content in contents.items():
        (folder / name).write_bytes(content)
    np.savez(folder / "two arrays.npz", x=x, y=x)
    npy(folder, np.array([{}]), "pickled.npy")
    npy(folder, np.zeros(2, "i4,f4"), "structured.npy")
    npy(folder, x.T, "wrong shape.npy")
    npy(folder, x.astype(np.float64), "wrong type.npy")
    return {path.stem: path for path in folder.iterdir() if path.suffix in {".npy", ".npz", ".pb"}}


def test_a_zip_bombs_neighbour(refused: Refused, split: Path, tmp_path: Path) -> None:
    """An archive whose member is no array."""
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
        archive.writestr("x.npy", "not an array")
    refused("TS701", "run", split, "-i", f"x={tmp_path / 'a.npz'}")


def test_a_wrong_split_node_is_refused_and_nothing_is_written(
    refused: Refused, tmp_path: Path, x: Any
) -> None:
    path = save(
        tmp_path, graph([node("Split", "x s", "a b")], [value("x")], ["a"], [tensor("s", [1, 3])])
    )
    out = tmp_path / "out"
    refused("TS302", "run", path, "-i", f"x={npy(tmp_path, x)}", "-o", out)
    assert not out.exists()


def test_engines_that_agree(tensorsplit: Command, split: Path, tmp_path: Path, x: Any) -> None:
    feed = f"x={npy(tmp_path, x)}"
    words = ("-i", feed, "-o", tmp_path, "--compare", "onnx-reference", "--compare", "numpy")
    ended = tensorsplit("run", split, *words)
    assert ended.status == 0
    assert ended.out.splitlines()[2:] == [
        "onnx-reference: the same as numpy",
        "numpy: the same as numpy",
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
    assert "onnxruntime: output 's[0]': shape (4,), but numpy has (1, 4)" in ended.out
    assert len(list((tmp_path / "out").iterdir())) == 2


def test_a_tolerance_is_for_numbers(
    tensorsplit: Command, split: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, x: Any
) -> None:
    from tensorsplit.engines import compare

    real = compare.run

    def rounded(*args: Any, **kwargs: Any) -> dict[str, Any]:
        return {name: found + np.float32(0.5) for name, found in real(*args, **kwargs).items()}

    monkeypatch.setattr(compare, "run", rounded)
    words = ("run", split, "-i", f"x={npy(tmp_path, x)}", "--compare", "onnx-reference")
    ended = tensorsplit(*words)
    assert ended.status == 1
    assert "output 'b': 6 values differ, largest difference 0.5" in ended.out
    near = tensorsplit(*words, "--tolerance", "0.6")
    assert near.status == 0
    assert near.out.count("(within the tolerance)") == 2
    assert tensorsplit(*words, "--tolerance", "0.4").status == 1
