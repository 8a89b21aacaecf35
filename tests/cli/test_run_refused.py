"""``tensorsplit run`` refuses what it can't read, and writes nothing then."""

from __future__ import annotations

import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import SequenceProto, TensorProto
from onnx.numpy_helper import from_array

from tests.cli.build import identity, npy, save
from tests.cli.conftest import Command
from tests.model.build import STRING, graph, node, sequence, tensor, value

Refused = Callable[..., str]


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


def test_pickled_objects_are_named_as_such(refused: Refused, split: Path, tmp_path: Path) -> None:
    pickled = npy(tmp_path, np.array([{}]), "pickled.npy")
    np.savez(tmp_path / "pickled.npz", x=np.array([{}]))
    for given in (f"x={pickled}", tmp_path / "pickled.npz"):
        message = refused("TS701", "run", split, "-i", given)
        assert "pickled objects, which are never read; save it as numbers" in message


def test_an_archive_of_something_else(refused: Refused, split: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
        archive.writestr("x.npy", "not an array")
    refused("TS701", "run", split, "-i", f"x={tmp_path / 'a.npz'}")


def test_nameless_bytes_are_no_strings(refused: Refused, tmp_path: Path) -> None:
    path, raw = identity(tmp_path, STRING), npy(tmp_path, np.zeros(2, "V8"))
    assert "8 nameless bytes" in refused("TS701", "run", path, "-i", raw)


def test_a_wrong_split_node_is_refused_and_nothing_is_written(
    refused: Refused, tmp_path: Path, x: Any
) -> None:
    path = save(
        tmp_path, graph([node("Split", "x s", "a b")], [value("x")], ["a"], [tensor("s", [1, 3])])
    )
    out = tmp_path / "out"
    refused("TS302", "run", path, "-i", f"x={npy(tmp_path, x)}", "-o", out)
    assert not out.exists()


def test_a_file_alone_is_the_only_input_that_is_needed(
    refused: Refused, tensorsplit: Command, tmp_path: Path, x: Any
) -> None:
    sum_of_two = graph([node("Add", "x w", "y")], [value("x"), value("w")], [value("y")])
    message = refused("TS703", "run", save(tmp_path, sum_of_two), "-i", npy(tmp_path, x))
    assert "is not an input of the model; write NAME=" in message
    assert "where NAME is one of x, w" in message
    weights = from_array(x, "w")
    default = graph([node("Add", "x w", "y")], [value("w"), value("x")], [value("y")], [weights])
    ended = tensorsplit("run", save(tmp_path, default), "-i", npy(tmp_path, x), "-o", tmp_path)
    assert ended.status == 0
    np.testing.assert_array_equal(np.load(tmp_path / "y.npy"), x + x)


def test_a_file_whose_name_holds_an_equals_sign_is_a_file(
    tensorsplit: Command, split: Path, tmp_path: Path, x: Any
) -> None:
    file = npy(tmp_path, x, "of=x.npy")
    assert tensorsplit("run", split, "-i", file, "-o", tmp_path).status == 0
    np.testing.assert_array_equal(np.load(tmp_path / "a.npy"), x[:, :1])


def test_a_sequence_of_sequences_is_no_sequence_of_tensors(
    refused: Refused, tmp_path: Path, x: Any
) -> None:
    inner = SequenceProto(elem_type=SequenceProto.TENSOR, tensor_values=[from_array(x)])
    outer = SequenceProto(elem_type=SequenceProto.SEQUENCE, sequence_values=[inner])
    (tmp_path / "s.pb").write_bytes(outer.SerializeToString())
    length = graph([node("SequenceLength", "s", "n")], [sequence("s")], ["n"])
    path = save(tmp_path, length)
    message = refused("TS701", "run", path, "-i", f"s={tmp_path / 's.pb'}")
    assert "its elements are not tensors" in message
