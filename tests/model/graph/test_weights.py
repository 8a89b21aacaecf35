"""Weights that stay in the file of their model while a tool works on it."""

from __future__ import annotations

import io
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import ModelProto, TensorProto, helper, numpy_helper
from onnx.external_data_helper import set_external_data

import tensorsplit as ts
from tensorsplit.model.reading import read_model
from tests.model.build import FLOAT, graph, model, node, tensor, value
from tests.refusals import refused

ROWS = 1 << 16
"""Of 16 bytes each: as large as the weights that stay in the file begin."""


def weights(name: str, seed: int) -> TensorProto:
    values = np.random.default_rng(seed).random((ROWS, 4)).astype(np.float32)
    made: TensorProto = numpy_helper.from_array(values, name)
    made.doc_string = f"weights {seed}"
    return made


def whole() -> ModelProto:
    """A model with large weights before, between and behind small ones."""
    held = [weights("w", 1), tensor("k", [1, 3]), weights("v", 2)]
    nodes = [
        node("Split", "w k", "a b", axis=1),
        node("Split", "v k", "c d", axis=1),
        node("Add", "a c", "y"),
        node("Add", "b d", "z"),
    ]
    made = model(graph(nodes, [], [value("y", FLOAT, [ROWS, 1]), "z"], held), 13)
    made.metadata_props.add(key="author", value="somebody")
    return made


@pytest.fixture
def path(tmp_path: Path) -> Path:
    onnx.save(whole(), tmp_path / "m.onnx")
    return tmp_path / "m.onnx"


def test_they_are_not_parsed(path: Path) -> None:
    read = read_model(path, without_weights=True)
    assert read.original.ByteSize() < 1000
    assert not read.external_tensors(read.original)
    values = np.random.default_rng(2).random((ROWS, 4)).astype(np.float32)
    held = read.model.graph.initializers["v"].const_value
    assert held is not None
    np.testing.assert_array_equal(held.numpy(), values)
    assert read.original.graph.initializer[0].doc_string == "weights 1"


@pytest.mark.parametrize(
    "tool",
    [
        ts.infer_shapes,
        lambda source: ts.convert(source, opset=18),
        lambda source: ts.convert(source, opset=13),
        lambda source: ts.lower(source, target="portable"),
    ],
)
def test_what_a_tool_gives_holds_them(tool: Callable[[Any], ModelProto], path: Path) -> None:
    assert tool(path) == tool(whole())


def test_what_has_become_a_node_is_written(path: Path) -> None:
    read = read_model(path, without_weights=True)
    made = ModelProto()
    made.CopyFrom(read.original)
    moved = made.graph.initializer.pop(0)
    made.graph.node.insert(0, helper.make_node("Constant", [], ["w"], value=moved))
    file = io.BytesIO()
    read.write(made, file)
    found = ModelProto.FromString(file.getvalue())
    (constant,) = found.graph.node[0].attribute
    assert (constant.t, found.graph.initializer[1]) == (weights("w", 1), weights("v", 2))


def strange() -> dict[str, TensorProto]:
    """Tensors of which the plain way of parsing says what they are."""
    short, floats, outside = (weights("w", 1) for _ in range(3))
    short.dims[0] -= 1
    floats.float_data.extend(numpy_helper.to_array(floats).ravel())
    floats.ClearField("raw_data")
    outside.data_location = TensorProto.EXTERNAL
    return {"short": short, "floats": floats, "outside": outside}


@pytest.mark.parametrize("kind", strange())
def test_strange_tensors_are_parsed(kind: str, tmp_path: Path) -> None:
    made = whole()
    made.graph.initializer[0].CopyFrom(strange()[kind])
    (tmp_path / "m.onnx").write_bytes(made.SerializeToString())
    read = read_model(tmp_path / "m.onnx", without_weights=True)
    assert read.original.graph.initializer[0] == strange()[kind]


def test_a_link_to_another_folder_is_parsed(path: Path, tmp_path: Path) -> None:
    (tmp_path / "links").mkdir()
    link = tmp_path / "links" / "m.onnx"
    link.symlink_to(path)
    assert read_model(link, without_weights=True).original == whole()


def test_data_at_the_same_place_of_another_file_stay_there(tmp_path: Path) -> None:
    inside, outside, path = weights("w", 1), weights("v", 2), tmp_path / "m.onnx"
    (tmp_path / "v.bin").write_bytes(bytes(1000) + outside.raw_data)
    made, place = whole(), 100
    for _ in range(2):
        held = made.graph.initializer[2]
        held.CopyFrom(outside)
        set_external_data(held, "v.bin", offset=place, length=len(outside.raw_data))
        held.ClearField("raw_data")
        path.write_bytes(made.SerializeToString())
        place = path.read_bytes().index(inside.raw_data)
    assert {"offset": str(place)}.items() <= {e.key: e.value for e in held.external_data}.items()
    converted = {each.name: each for each in ts.convert(path, opset=18).graph.initializer}
    assert converted["w"].raw_data == inside.raw_data
    assert converted["v"].external_data == held.external_data


def test_large_ones_are_copied_piece_by_piece(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each to its end, and no byte of what follows it."""
    monkeypatch.setattr("tensorsplit.model.graph.weights._CHUNK", 1000)
    assert ts.convert(path, opset=18) == ts.convert(whole(), opset=18)


def test_a_message_has_a_largest_size(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    size = path.stat().st_size
    read = read_model(path, without_weights=True)
    monkeypatch.setattr("tensorsplit.model.graph.weights.MAX_MESSAGE", size)
    file = io.BytesIO()
    read.write(read.original, file)
    assert len(file.getvalue()) == size
    monkeypatch.setattr("tensorsplit.model.graph.weights.MAX_MESSAGE", size - 1)
    with refused("TS702", "2 GiB"):
        read.write(read.original, io.BytesIO())


def test_the_last_of_two_values_counts(tmp_path: Path) -> None:
    """A field that is given twice is what it was given last, as protobuf says."""
    one, other = weights("w", 1), weights("w", 2)
    data = TensorProto(raw_data=other.raw_data).SerializeToString()
    held = one.SerializeToString() + data
    made = ModelProto()
    made.CopyFrom(whole())
    made.graph.ClearField("initializer")
    graph = made.graph.SerializeToString() + _field(5, held)
    made.ClearField("graph")
    (tmp_path / "m.onnx").write_bytes(made.SerializeToString() + _field(7, graph))
    read = read_model(tmp_path / "m.onnx", without_weights=True)
    assert read.original.graph.initializer[0].raw_data == other.raw_data


def _field(number: int, content: bytes) -> bytes:
    """A field of bytes, as protobuf writes it."""
    length, left = b"", len(content)
    while left > 0x7F:
        length, left = length + bytes([left & 0x7F | 0x80]), left >> 7
    return bytes([number << 3 | 2]) + length + bytes([left]) + content


def test_a_file_may_not_end_one_byte_before_them(tmp_path: Path) -> None:
    tensor_last = TensorProto(raw_data=weights("w", 1).raw_data, dims=[ROWS, 4], data_type=FLOAT)
    content = _field(7, _field(5, tensor_last.SerializeToString()))
    (tmp_path / "m.onnx").write_bytes(content[:-1])
    with refused("TS501", "not an ONNX model"):
        read_model(tmp_path / "m.onnx", without_weights=True)


def test_a_file_that_ends_within_them_is_no_model(path: Path) -> None:
    with path.open("r+b") as file:
        file.truncate(ROWS * 20)
    with refused("TS501", "not an ONNX model"):
        ts.check(path)


def test_a_file_that_changes_is_refused(path: Path) -> None:
    read = read_model(path, without_weights=True)
    path.write_bytes(path.read_bytes() + b"\0")
    with refused("TS504", "changed"):
        read.back(changed=False)
    with refused("TS504", "changed"):
        read.write(read.original, io.BytesIO())


def of_equal_size(path: Path) -> None:
    times = path.stat()
    content = bytearray(path.read_bytes())
    content[-1000] ^= 1
    path.write_bytes(content)
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns + 1))


def another_file(path: Path) -> None:
    times = path.stat()
    other = path.with_name("other")
    other.write_bytes(path.read_bytes())
    os.utime(other, ns=(times.st_atime_ns, times.st_mtime_ns))
    other.replace(path)


@pytest.mark.parametrize("change", [of_equal_size, another_file])
def test_a_file_that_changes_while_it_is_copied_is_refused(
    path: Path, change: Callable[[Path], None]
) -> None:
    read = read_model(path, without_weights=True)

    class Changing(io.BytesIO):
        def write(self, data: Any) -> int:
            if not self.tell():
                change(path)
            return super().write(data)

    with refused("TS504", "was changed while it was read"):
        read.write(read.proto(changed=False), Changing())
