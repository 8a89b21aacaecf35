"""Initializers of every type and encoding, and external data that stays in its folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from onnx import ModelProto, SparseTensorProto, TensorProto, helper, numpy_helper

from tensorsplit.model.data_files import read_data
from tensorsplit.model.graph.held_tensors import held_by, unread_initializers
from tensorsplit.model.graph.tensors import array_of, read_tensor
from tests.model.build import graph, model, node, outputs, run, tensor, value
from tests.oracle import DTYPES, assert_same, random_array, slices
from tests.refusals import refused

TYPES = {name.lower() for name, _ in TensorProto.DataType.items()} - {"undefined"}
STORED = [name for name in DTYPES if name in TYPES]
BITS = {"int2": 2, "uint2": 2, "int4": 4, "uint4": 4, "float4e2m1": 4, "float6e2m3": 6}
BITS["float6e3m2"] = 6


def stored(name: str, shape: tuple[int, ...], rng: np.random.Generator) -> Any:
    """Random elements; those smaller than a byte without bits that a file does not hold."""
    array = random_array(name, shape, rng)
    if name in BITS:
        return (array.view(np.uint8) & (2 ** BITS[name] - 1)).view(array.dtype)
    return array


def returning(*initializers: TensorProto, sparse: Any = ()) -> ModelProto:
    """A model that returns its initializers."""
    names = [entry.name for entry in initializers] + [entry.values.name for entry in sparse]
    return model(graph([], [], names, initializers, sparse), 28)


@pytest.mark.parametrize("name", STORED)
@pytest.mark.parametrize("shape", [(), (5,), (2, 3), (0, 2)])
def test_every_element_type_comes_out_with_its_bits(
    name: str, shape: tuple[int, ...], rng: np.random.Generator
) -> None:
    array = stored(name, shape, rng)
    made = returning(numpy_helper.from_array(array, "w"))
    for again in (made, ModelProto.FromString(made.SerializeToString())):
        (got,) = outputs(again)
        if name == "string":
            assert (got.dtype, got.tolist()) == (np.dtype(object), array.tolist())
        else:
            assert_same([got], [array])


@pytest.mark.parametrize(
    "name", [n for n in STORED if n not in ("string", "float6e2m3", "float6e3m2")]
)
def test_typed_fields(name: str, rng: np.random.Generator) -> None:
    """The fields of their own that older exporters use, written here by hand."""
    array = stored(name, (5,), rng)
    if name == "float":
        array[0] = 0.1  # a NaN's payload does not survive Python's own float
    kind = getattr(TensorProto, name.upper())
    made = TensorProto(name="w", dims=[5], data_type=kind)
    if name in BITS:
        bits = BITS[name]
        codes, group = array.view(np.uint8), 8 // bits
        codes = np.pad(codes, (0, -len(codes) % group)).reshape(-1, group).astype(np.int32)
        made.int32_data.extend((codes << (bits * np.arange(group))).sum(1).tolist())
    elif name.startswith("complex"):
        parts = array.view(array.real.dtype).tolist()
        (made.float_data if name == "complex64" else made.double_data).extend(parts)
    elif name in ("float", "double", "int64"):
        getattr(made, f"{name}_data").extend(array.tolist())
    elif name in ("uint32", "uint64"):
        made.uint64_data.extend(array.tolist())
    elif name in ("int8", "int16", "int32", "uint8", "uint16", "bool"):
        made.int32_data.extend(array.astype(np.int64).tolist())
    else:
        made.int32_data.extend(array.view(f"u{array.itemsize}").tolist())
    assert_same(outputs(returning(made)), [array])


def test_strings_keep_what_is_at_their_ends() -> None:
    texts = ["", "a\x00", "\x00", " b ", "日本"]
    made = TensorProto(name="w", dims=[5], data_type=TensorProto.STRING)
    made.string_data.extend(text.encode() for text in texts)
    assert outputs(returning(made))[0].tolist() == texts


def int64s(**fields: Any) -> TensorProto:
    """A tensor `w` of three int64, with fields changed."""
    held = {"name": "w", "dims": [3], "data_type": TensorProto.INT64}
    return TensorProto(**{**held, **fields})


RAW = np.array([1, 2, 3], "<i8").tobytes()
BROKEN = {
    "short raw": int64s(raw_data=RAW[:-1]),
    "long raw": int64s(raw_data=RAW + b"\0"),
    "negative dims": int64s(raw_data=RAW, dims=[3, -1]),
    "huge dims": int64s(raw_data=RAW, dims=[2**62]),
    "no type": int64s(raw_data=RAW, data_type=0),
    "unknown type": int64s(raw_data=RAW, data_type=99),
    "few entries": int64s(int64_data=[1, 2]),
    "entries of another type": int64s(float_data=[1, 2, 3]),
    "segment": int64s(raw_data=RAW, segment=TensorProto.Segment(begin=0, end=1)),
    "product beyond int64": int64s(raw_data=RAW, dims=[2**62, 2**62]),
    "huge and empty": int64s(raw_data=b"", dims=[0, 2**62, 2**62]),
    "rank 65": int64s(raw_data=RAW[:8], dims=[1] * 65),
    "raw strings": int64s(raw_data=RAW, data_type=TensorProto.STRING),
    "no utf-8": int64s(string_data=[b"\xff"] * 3, data_type=TensorProto.STRING),
    "few nibbles": int64s(int32_data=[1], data_type=TensorProto.INT4),
}


@pytest.mark.parametrize("name", BROKEN)
def test_tensors_that_are_not_well_formed_are_refused(name: str) -> None:
    constant = node("Constant", "", "w", value=BROKEN[name])
    for made in (returning(BROKEN[name]), model(graph([constant], [], ["w"]))):
        with refused("TS502", parameter="w"):
            run(made)


@pytest.mark.parametrize("rank", [64, 65])
def test_tensors_have_as_many_axes_as_numpy_has_and_no_more(rank: int) -> None:
    held = int64s(raw_data=RAW, dims=[1] * (rank - 1) + [3])
    if rank == 64:
        assert_same(outputs(returning(held)), [np.array([1, 2, 3]).reshape(held.dims)])
        return
    with pytest.raises(ValueError, match="64"):
        np.empty(held.dims)
    with refused("TS502", "at most 64", parameter="w"):
        run(returning(held))


@pytest.mark.parametrize("name", list(BROKEN)[:9])
def test_lengths_that_are_not_well_formed_are_refused(name: str) -> None:
    made = model(graph([node("Split", "x w", "a b c")], [value("x")], "abc", [BROKEN[name]]))
    with refused("TS502", parameter="w"):
        run(made, x=np.ones(6, np.float32))


def test_a_tensor_that_nothing_else_names_is_refused_by_its_own_name() -> None:
    with refused("TS502", parameter="w"):
        array_of(BROKEN["few entries"], None)
    with refused("TS502", parameter="lengths"):
        array_of(BROKEN["few entries"], None, "lengths")


def test_an_initializer_twice_or_without_name_is_refused() -> None:
    with refused("TS502", "'w'"):
        run(returning(tensor("w", 1), tensor("w", 2)))
    made = returning(tensor("w", 1))
    made.graph.initializer.append(tensor("", 2))
    with refused("TS502", "no name"):
        run(made)


def sparse(dims: list[int], values: Any, indices: Any, dtype: Any = np.float32) -> Any:
    return helper.make_sparse_tensor(tensor("w", values, dtype), tensor("", indices), dims)


@pytest.mark.parametrize("indices", [[1, 5], [[0, 1], [1, 2]]])
def test_sparse_initializers_stand_for_dense_tensors(indices: Any) -> None:
    expected = np.zeros((2, 3), np.float32)
    expected[0, 1], expected[1, 2] = 7, 8
    assert_same(outputs(returning(sparse=[sparse([2, 3], [7, 8], indices)])), [expected])
    constant = node("Constant", "", "w", sparse_value=sparse([2, 3], [7, 8], indices))
    assert_same(outputs(model(graph([constant], [], ["w"]))), [expected])


def test_a_tensor_that_is_made_on_demand_is_read_as_the_one_that_is_made() -> None:
    def later(made: TensorProto) -> Any:
        shape = ir.Shape(made.dims)
        return ir.LazyTensor(
            lambda: ir.TensorProtoTensor(made), ir.DataType(made.data_type), shape=shape, name="w"
        )

    words = read_tensor(later(tensor("w", ["a", "\u00e9"], object)))
    assert (words.dtype, words.tolist()) == (np.dtype(object), ["a", "\u00e9"])
    with refused("TS502", "w", 8, 12):
        read_tensor(later(TensorProto(name="w", data_type=1, dims=[3], raw_data=bytes(8))))


def test_sparse_lengths(rng: np.random.Generator) -> None:
    x = rng.random(4)
    held = sparse([3], [4], [1], np.int64)
    made = model(
        graph([node("Split", "x w", "a b c")], [value("x", TensorProto.DOUBLE)], "abc", (), [held])
    )
    assert_same(outputs(made, x=x), slices(x, 0, [0, 4, 0]))


@pytest.mark.parametrize(
    ("dims", "values", "indices"),
    [
        ([2, 3], [7, 8], [1, 6]),
        ([2, 3], [7, 8], [1, -1]),
        ([2, 3], [7, 8], [[0, 3], [0, 0]]),
        ([2, 3], [7, 8], [1]),
        ([2, -3], [7], [1]),
        ([2**31, 2**31], [7], [1]),
        ([2, 3], [[7]], [[1]]),
    ],
)
def test_sparse_initializers_that_do_not_fit_are_refused(
    dims: list[int], values: Any, indices: Any
) -> None:
    held = SparseTensorProto(
        values=tensor("w", values, np.float32), indices=tensor("", indices), dims=dims
    )
    with refused("TS502", parameter="w"):
        run(returning(sparse=[held]))


@pytest.mark.parametrize(
    ("attribute", "expected"),
    [
        ({"value_int": -3}, np.array(-3)),
        ({"value_ints": [1, 2]}, np.array([1, 2])),
        ({"value_ints": np.array([], np.int64)}, np.array([], np.int64)),
        ({"value_float": 0.1}, np.array(0.1, np.float32)),
        ({"value_floats": [0.1, -0.0]}, np.array([0.1, -0.0], np.float32)),
    ],
)
def test_constant_nodes(attribute: Any, expected: Any) -> None:
    made = node("Constant", "", "w")
    for name, item in attribute.items():
        kind = onnx.AttributeProto.INTS if isinstance(item, np.ndarray) else None
        made.attribute.append(helper.make_attribute(name, item, attr_type=kind))
    assert_same(outputs(model(graph([made], [], ["w"]))), [expected])


@pytest.mark.parametrize(
    ("attribute", "expected"),
    [({"value_string": "é"}, np.array("é")), ({"value_strings": ["a\0", ""]}, ["a\0", ""])],
)
def test_constant_nodes_of_strings(attribute: Any, expected: Any) -> None:
    (got,) = outputs(model(graph([node("Constant", "", "w", **attribute)], [], ["w"])))
    assert got.dtype == object
    assert got.tolist() == (expected if isinstance(expected, list) else expected.item())


def test_a_constant_node_s_strings_are_utf_8() -> None:
    made = node("Constant", "", "w", value_string=b"\xff")
    with refused("TS502", "UTF-8", "graph/Constant[0]"):
        run(model(graph([made], [], ["w"])))


@pytest.mark.parametrize(
    "attributes", [{}, {"value_int": 1, "value_float": 1.0}, {"value_int": 1.0}, {"val": 1}]
)
def test_a_constant_has_exactly_one_value(attributes: Any) -> None:
    with refused("TS502", "graph/Constant[0]"):
        run(model(graph([node("Constant", "", "w", **attributes)], [], ["w"])))


def outside(location: str, dims: list[int], **entries: object) -> TensorProto:
    made = TensorProto(name="w", dims=dims, data_type=TensorProto.INT64)
    made.data_location = TensorProto.EXTERNAL
    for key, item in {"location": location, **entries}.items():
        made.external_data.add(key=key, value=str(item))
    return made


def saved(folder: Path, *held: TensorProto) -> Path:
    """A model that cuts `x` by the external tensor `w`, in a folder with data beside it."""
    (folder / "model").mkdir()
    (folder / "model" / "w.bin").write_bytes(np.array([9, 2, 4], "<i8").tobytes())
    (folder / "secret.bin").write_bytes(np.array([2, 4], "<i8").tobytes())
    path = folder / "model" / "m.onnx"
    made = model(graph([node("Split", "x w", "a b")], [value("x")], "ab", held))
    path.write_bytes(made.SerializeToString())
    return path


@pytest.mark.parametrize("location", ["w.bin", "./w.bin", "sub/../w.bin"])
@pytest.mark.parametrize("length", [{}, {"length": 16}])
def test_external_data_is_read_from_the_model_s_folder(
    location: str, length: Any, tmp_path: Path, rng: np.random.Generator
) -> None:
    x = rng.random(6).astype(np.float32)
    path = saved(tmp_path, outside(location, [2], offset=8, **length))
    (path.parent / "sub").mkdir()
    assert_same(outputs(path, x=x), slices(x, 0, [2, 4]))
    assert_same(outputs(str(path), x=x), slices(x, 0, [2, 4]))


def test_a_link_inside_the_folder_is_fine(tmp_path: Path, rng: np.random.Generator) -> None:
    x = rng.random(6).astype(np.float32)
    path = saved(tmp_path, outside("link.bin", [2], offset=8))
    (path.parent / "link.bin").symlink_to("w.bin")
    assert_same(outputs(path, x=x), slices(x, 0, [2, 4]))


def test_the_folder_of_the_model_may_be_reached_by_a_link(
    tmp_path: Path, rng: np.random.Generator
) -> None:
    x = rng.random(6).astype(np.float32)
    path = saved(tmp_path, outside("w.bin", [2], offset=8))
    (tmp_path / "link").symlink_to(path.parent, target_is_directory=True)
    assert_same(outputs(tmp_path / "link" / path.name, x=x), slices(x, 0, [2, 4]))


@pytest.mark.parametrize(
    ("location", "word"),
    [
        ("../secret.bin", "leads out"),
        ("../model of others/secret.bin", "leads out"),
        ("sub/../../secret.bin", "leads out"),
        ("link.bin", "leads out"),
        ("dir/secret.bin", "leads out"),
        ("{folder}/secret.bin", "not a path relative"),
        ("{folder}/model/w.bin", "not a path relative"),
        ("C:\\secret.bin", "not a path relative"),
        ("\\\\host\\secret.bin", "not a path relative"),
        ("C:secret.bin", "not a path relative"),
        ("\\secret.bin", "not a path relative"),
        ("", "not a path relative"),
        ("missing.bin", "no file"),
        (".", "no file"),
        ("loop", "'loop'"),  # what the path of a circle of links is depends on Python's version
        ("a\0b", "can't be looked up (embedded null byte)"),
        ("x" * 5000, "can't be looked up (File name too long)"),
    ],
)
def test_external_data_outside_the_folder_is_refused(
    location: str, word: str, tmp_path: Path
) -> None:
    location = location.format(folder=tmp_path)
    path = saved(tmp_path, outside(location, [2]))
    (path.parent / "link.bin").symlink_to("../secret.bin")
    (path.parent / "dir").symlink_to("..")
    (path.parent / "loop").symlink_to("loop")
    with refused("TS504", word, parameter="w"):
        run(path, x=np.ones(6, np.float32))


def test_what_the_system_says_without_a_number_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(*_: object, **__: object) -> None:
        raise OSError("its position is lost")

    monkeypatch.setattr(Path, "open", failing)
    with refused("TS504", "'w.bin' can't be read (its position is lost)"):
        read_data(tmp_path / "w.bin", 0, 8)


@pytest.mark.parametrize(
    ("entries", "word"),
    [
        ({"offset": 16}, "24 bytes"),
        ({"offset": 9}, "has 24 bytes, but bytes 9 to 25 are named"),
        ({"offset": 2**62}, "24 bytes"),
        ({"length": 8}, "its length is 8"),
        ({"length": 24}, "its length is 24"),
        ({"offset": -8}, "'-8'"),
        ({"offset": "eight"}, "'eight'"),
        ({"length": "١٦"}, "not a number"),
        ({"length": "9" * 5000}, "not a number"),
    ],
)
def test_external_data_of_another_size_is_refused(entries: Any, word: str, tmp_path: Path) -> None:
    path = saved(tmp_path, outside("w.bin", [2], **entries))
    with refused("TS504", word, parameter="w"):
        run(path, x=np.ones(11, np.float32))


def test_a_pipe_is_no_external_data(tmp_path: Path) -> None:
    import os

    path = saved(tmp_path, outside("pipe", [2]))
    os.mkfifo(path.parent / "pipe")
    with refused("TS504", "no file"):
        run(path, x=np.ones(6, np.float32))


def test_external_data_needs_a_folder(tmp_path: Path) -> None:
    path = saved(tmp_path, outside("w.bin", [2], offset=8))
    made = onnx.load(path, load_external_data=False)
    with refused("TS504", "no folder", parameter="w"):
        run(made, x=np.ones(6, np.float32))
    x = np.arange(6, dtype=np.float32)
    made.graph.initializer[0].raw_data = np.array([2, 4], "<i8").tobytes()
    assert_same(outputs(made, x=x), slices(x, 0, [2, 4]))
    assert_same(outputs(onnx.load(path), x=x), slices(x, 0, [2, 4]))


def test_only_what_is_used_is_read(tmp_path: Path) -> None:
    missing = outside("missing.bin", [2])
    missing.name = "unused"
    path = saved(tmp_path, outside("w.bin", [2], offset=8), missing)
    x = np.arange(6, dtype=np.float32)
    assert_same(outputs(path, x=x), slices(x, 0, [2, 4]))


def test_external_data_of_attributes_is_held_to_the_same_rules(tmp_path: Path) -> None:
    shape = outside("w.bin", [1], offset=8)
    nodes = [
        node("Constant", "", "w", value=outside("w.bin", [3])),
        node("ConstantOfShape", "w", "y", value=shape),
    ]
    (tmp_path / "w.bin").write_bytes(np.array([1, 2, 3], "<i8").tobytes())
    path = tmp_path / "m.onnx"
    path.write_bytes(model(graph(nodes, [], "y")).SerializeToString())
    assert_same(outputs(path), [np.full((1, 2, 3), 2, np.int64)])
    nodes[1].attribute[0].t.external_data[0].value = "../w.bin"
    path.write_bytes(model(graph(nodes, [], "y")).SerializeToString())
    with refused("TS504", "leads out", "graph/ConstantOfShape[1]"):
        run(path)


@pytest.mark.parametrize("name", [n for n in STORED if n != "string"])
def test_external_data_of_every_element_type(
    name: str, tmp_path: Path, rng: np.random.Generator
) -> None:
    array = stored(name, (5, 3), rng)
    held = numpy_helper.from_array(array, "w")
    (tmp_path / "w.bin").write_bytes(held.raw_data)
    kind = held.data_type
    held = outside("w.bin", [5, 3])
    held.data_type = kind
    path = tmp_path / "m.onnx"
    path.write_bytes(returning(held).SerializeToString())
    assert_same(outputs(path), [array])
    (tmp_path / "w.bin").write_bytes(b"")
    with refused("TS504", "0 bytes"):
        run(path)


def test_external_strings_are_refused(tmp_path: Path) -> None:
    held = outside("w.bin", [2])
    held.data_type = TensorProto.STRING
    path = tmp_path / "m.onnx"
    path.write_bytes(returning(held).SerializeToString())
    with refused("TS502", "strings", parameter="w"):
        run(path)


def test_all_stored_types_are_covered() -> None:
    assert set(STORED) == TYPES


def test_data_that_is_cut_short_meanwhile_is_refused(tmp_path: Path) -> None:
    (tmp_path / "w.bin").write_bytes(bytes(range(10)))
    assert read_data(tmp_path / "w.bin", 4, 6) == bytes(range(4, 10))
    with refused("TS504", "'w.bin' was cut short while it was read", parameter="w"):
        read_data(tmp_path / "w.bin", 4, 7, "w")


@pytest.mark.parametrize(
    "attribute",
    [ir.AttrInt64("value", 3), ir.AttrFloat32("value_int", 1.5), ir.AttrInt64("amount", 3)],
    ids=lambda each: each.name,
)
def test_an_attribute_that_a_constant_does_not_have_holds_nothing(attribute: ir.Attr) -> None:
    assert held_by({attribute.name: attribute}) is None


@pytest.mark.parametrize(
    ("kind", "dims", "found"),
    [
        *((ir.DataType.STRING, dims, ["a"]) for dims in ([0], [2, 0], [0, 1])),
        *((ir.DataType.STRING, dims, []) for dims in ([], [1], [1, 2])),
        (ir.DataType.FLOAT, [0], []),
    ],
)
def test_strings_without_elements_that_nothing_reads(
    kind: ir.DataType, dims: list[int], found: list[str]
) -> None:
    """OpenVINO does not load them from a message."""
    array = np.full(dims, "s", object) if kind == ir.DataType.STRING else np.ones(dims, np.float32)
    held = numpy_helper.from_array(array, "a")
    made = ir.from_proto(model(graph([node("Neg", "x", "y")], [], ["y"], [held]), 18))
    assert unread_initializers(made.graph, are_strings=True) == found
