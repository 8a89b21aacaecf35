"""``tensorsplit run -o DIR``: every output in a file that can be read back."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import SequenceProto, TensorProto, numpy_helper

from tests.cli.build import identity, npy, save
from tests.cli.conftest import Command
from tests.model.build import FLOAT, STRING, graph, node, sequence, tensor, value

Refused = Callable[..., str]


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
    ended = tensorsplit("run", chunks, "-i", f"x={npy(tmp_path, x)}", "-o", out, "--create-dirs")
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
