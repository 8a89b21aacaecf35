"""OpenVINO IR files, written by hand: what they say is what is run, or they are refused."""

from __future__ import annotations

import json
import re
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto

from tensorsplit import SplitError, infer_shapes
from tensorsplit import run as run_model
from tensorsplit.core.extras import install_command
from tensorsplit.model.openvino_ir.port_maps import BodyPort, BodyPorts, fitting_ports, read_ports
from tensorsplit.model.openvino_ir.translation import read_ir
from tensorsplit.model.reading import read_model
from tests.model.build import check
from tests.model.ir_files import IrFile, Out, X, cut_file, refused, run


@pytest.mark.parametrize("version", ["10", "11"])
def test_variadic_split_takes_the_remainder(tmp_path: Path, version: str) -> None:
    outputs = run(cut_file((2, -1), version=version).save(tmp_path), x=X)
    assert list(outputs) == ["part0", "part1"]
    np.testing.assert_array_equal(outputs["part0"], X[:2])
    np.testing.assert_array_equal(outputs["part1"], X[2:])


def test_parts_are_views_of_what_was_fed(tmp_path: Path) -> None:
    outputs = run(cut_file().save(tmp_path), x=X)
    assert all(np.shares_memory(part, X) for part in outputs.values())


def test_split_makes_equal_parts_on_a_negative_axis(tmp_path: Path) -> None:
    ir = IrFile()
    parts = ir.split(ir.parameter("x", "f32", "?,8"), ir.int64(-1, scalar=True), 4)
    for part in parts:
        ir.result(part)
    outputs = run(ir.save(tmp_path), x=X)
    assert list(outputs) == ["cut.0", "cut.1", "cut.2", "cut.3"]
    for place, part in enumerate(outputs.values()):
        np.testing.assert_array_equal(part, X[:, 2 * place : 2 * place + 2])


def test_axis_and_lengths_may_come_at_run_time(tmp_path: Path) -> None:
    ir = IrFile()
    inputs = [
        ir.parameter("x", "f32", "..."),
        ir.parameter("axis", "i8", ""),
        ir.parameter("lengths", "u16", "?"),
    ]
    for part in ir.layer("VariadicSplit", inputs, 2, name="cut"):
        ir.result(part)
    path = ir.save(tmp_path)
    axis = np.array(-1, np.int8)
    outputs = run(path, x=X, axis=axis, lengths=np.array([3, 5], np.uint16))
    np.testing.assert_array_equal(outputs["cut.0"], X[:, :3])
    np.testing.assert_array_equal(outputs["cut.1"], X[:, 3:])
    error = refused(path, x=X, axis=axis, lengths=np.array([3, 4], np.uint16))
    assert (error.code, error.operator) == ("TS302", "openvino.VariadicSplit-1")
    assert error.node == "layer 'cut' (id 3)"
    error = refused(path, x=X, axis=np.array(2, np.int8), lengths=np.array([3, 5], np.uint16))
    assert error.code == "TS203"
    error = refused(path, x=X, axis=axis, lengths=np.array([3, 5, 0], np.uint16))
    assert error.code == "TS305"


@pytest.mark.parametrize(
    ("lengths", "count", "code"),
    [
        ((2, 3), 2, "TS302"),
        ((-1, 7), 2, "TS306"),
        ((-1, -1), 2, "TS306"),
        ((-2, 8), 2, "TS301"),
        ((2**32 + 1, 5), 2, "TS302"),
        ((2, 4), 3, "TS305"),
    ],
)
def test_wrong_constants_are_refused(
    tmp_path: Path, lengths: tuple[int, ...], count: int, code: str
) -> None:
    error = refused(cut_file(lengths, count=count).save(tmp_path), x=X)
    assert error.code == code
    assert error.operator == "openvino.VariadicSplit-1"
    assert error.node == "layer 'cut' (id 3)"


@pytest.mark.parametrize(
    ("num_splits", "code"),
    [(2, "TS305"), (4, "TS303"), (0, "TS107"), (-3, "TS107"), ("x", "TS502"), (10**30, "TS502")],
)
def test_wrong_num_splits_is_refused(tmp_path: Path, num_splits: object, code: str) -> None:
    ir = IrFile()
    x, axis = ir.parameter("x", "f32", "6,8"), ir.int64(0, scalar=True)
    for part in ir.split(x, axis, 3, num_splits):
        ir.result(part)
    error = refused(ir.save(tmp_path), x=X)
    assert error.code == code
    assert error.node == "layer 'cut' (id 2)"


def test_uneven_split_and_missing_num_splits_are_refused(tmp_path: Path) -> None:
    ir = IrFile()
    x, axis = ir.parameter("x", "f32", "6,8"), ir.int64(0, scalar=True)
    for part in ir.split(x, axis, 4):
        ir.result(part)
    path = ir.save(tmp_path)
    assert refused(path, x=X).code == "TS303"
    assert (
        refused(ir.save(tmp_path, ir.text.replace("num_splits", "numsplits")), x=X).code == "TS102"
    )


@pytest.mark.parametrize(
    ("element", "data", "code"),
    [
        ("f32", struct.pack("<f", 0.9), "TS105"),
        ("boolean", b"\1", "TS105"),
        ("string", struct.pack("<iii", 1, 0, 1) + b"0", "TS105"),
        ("i32", struct.pack("<i", 2), "TS203"),
        ("i32", struct.pack("<i", -3), "TS203"),
    ],
)
def test_wrong_axis_is_refused(tmp_path: Path, element: str, data: bytes, code: str) -> None:
    ir = IrFile()
    x = ir.parameter("x", "f32", "6,8")
    for part in ir.split(x, ir.constant(data, element, ""), 2):
        ir.result(part)
    assert refused(ir.save(tmp_path), x=X).code == code


def test_split_axis_is_a_scalar_and_variadic_split_axis_may_have_one_element(
    tmp_path: Path,
) -> None:
    ir = IrFile()
    ir.result(ir.split(ir.parameter("x", "f32", "6,8"), ir.int64(0), 1)[0])
    assert refused(ir.save(tmp_path), x=X).code == "TS106"
    ir = IrFile()
    x = ir.parameter("x", "f32", "6,8")
    ir.result(ir.variadic_split(x, ir.int64(1), ir.int64(3, 5), 2)[1])
    np.testing.assert_array_equal(run(ir.save(tmp_path), x=X)["cut.1"], X[:, 3:])


@pytest.mark.parametrize(
    ("declared", "shape", "fits"),
    [
        ("6,8", (6, 8), True),
        ("6,8", (8, 6), False),
        ("6,8", (6,), False),
        ("?,8", (3, 8), True),
        ("-1,8", (3, 8), True),
        ("-1,8", (3, 9), False),
        ("1..8,?", (8, 2), True),
        ("1..8,?", (9, 2), False),
        ("1..8,?", (0, 2), False),
        ("3..,1", (2, 1), False),
        ("3..,1", (3, 1), True),
        ("..4,1", (4, 1), True),
        ("..4,1", (5, 1), False),
        ("..4,1", (0, 1), True),
        ("3..3,1", (3, 1), True),
        ("3..3,1", (4, 1), False),
        ("...", (2, 3, 4), True),
        ("...", (), True),
        ("", (), True),
        ("", (1,), False),
        (" 6 , 8 ", (6, 8), True),
        ("0,3", (0, 3), True),
    ],
)
def test_declared_shapes_hold(
    tmp_path: Path, declared: str, shape: tuple[int, ...], fits: bool
) -> None:
    ir = IrFile()
    ir.result(ir.parameter("x", "f32", declared))
    path = ir.save(tmp_path)
    x = np.ones(shape, np.float32)
    if fits:
        assert run(path, x=x)["x.0"].shape == shape
    else:
        error = refused(path, x=x)
        assert (error.code, error.parameter) == ("TS507", "x")


@pytest.mark.parametrize(
    ("declared", "shape"),
    [
        ("6,8", (6, 8)),
        ("?,8", (None, 8)),
        ("-1,8", (None, 8)),
        ("1..8,8", (None, 8)),
        ("3..,8", (None, 8)),
        ("..4,8", (None, 8)),
        ("3..3,8", (3, 8)),
        ("0,8", (0, 8)),
        ("...", None),
        ("[]", ()),
        ("[6, 8]", (6, 8)),
    ],
)
def test_only_a_dimension_of_one_length_is_known(
    tmp_path: Path, declared: str, shape: tuple[int | None, ...] | None
) -> None:
    ir = IrFile()
    ir.result(ir.parameter("x", "f32", declared))
    (x,) = read_ir(ir.save(tmp_path)).inputs
    assert x.shape == shape


@pytest.mark.parametrize(("count", "is_outside"), [(65_536, False), (65_537, True)])
def test_lengths_of_more_than_half_a_megabyte_stay_in_the_file(
    tmp_path: Path, count: int, is_outside: bool
) -> None:
    ir = IrFile()
    lengths = ir.constant(bytes(8 * count), "i64", str(count))
    ir.result(ir.variadic_split(ir.parameter("x", "f32", "6"), ir.int64(0), lengths, 1)[0])
    held, axis = read_ir(ir.save(tmp_path)).message.graph.initializer
    assert (held.data_location == TensorProto.EXTERNAL) is is_outside
    assert bool(held.raw_data) is not is_outside
    assert axis.raw_data == bytes(8)


def test_constants_that_are_no_operands_of_a_split_stay_in_the_file(tmp_path: Path) -> None:
    ir = IrFile()
    data = ir.int64(1, 2)
    for part in ir.variadic_split(data, ir.int64(0), ir.int64(1, 1), 2):
        ir.result(part)
    found = [held.data_location for held in read_ir(ir.save(tmp_path)).message.graph.initializer]
    assert found == [TensorProto.EXTERNAL, TensorProto.DEFAULT, TensorProto.DEFAULT]


@pytest.mark.parametrize("shape", ["x", "2,,3", "-2", "1..", "8..1", "..", "1.5", "²", "9" * 30])
def test_shapes_that_are_none_are_refused(tmp_path: Path, shape: str) -> None:
    ir = IrFile()
    ir.result(ir.parameter("x", "f32", shape))
    path = ir.save(tmp_path)
    if shape == "1..":
        assert run(path, x=np.ones(1, np.float32))
    else:
        assert refused(path, x=X).code == "TS502"


def test_inputs_are_fed_by_layer_name_or_tensor_name(tmp_path: Path) -> None:
    ir = IrFile()
    ir.result(ir.parameter("in", "f32", "...", names=r"a\,b,c"))
    path = ir.save(tmp_path)
    for name in ("in", "a,b", "c"):
        assert run_model(path, {name: X})["a,b"] is not None
    with pytest.raises(SplitError, match=r"TS506.*another name of the input 'in'"):
        run_model(path, {"in": X, "c": X})
    with pytest.raises(SplitError, match="TS506"):
        run_model(path, {"a": X, "in": X})
    with pytest.raises(SplitError, match="TS505"):
        run_model(path, {})
    with pytest.raises(SplitError, match="TS703"):
        run_model(path, [X])  # type: ignore[arg-type]


def test_a_parameter_without_name_is_called_by_its_tensor_or_its_id(tmp_path: Path) -> None:
    ir = IrFile()
    ir.result(ir.parameter("", "f32", "...", names="t"))
    ir.result(ir.parameter("", "f32", "..."))
    assert [declared.name for declared in read_model(ir.save(tmp_path)).inputs] == ["t", "2"]


def test_two_inputs_of_one_name_are_refused(tmp_path: Path) -> None:
    ir = IrFile()
    ir.result(ir.parameter("x", "f32", "..."))
    ir.result(ir.parameter("x", "f32", "..."))
    error = refused(ir.save(tmp_path))
    assert (error.code, error.node) == ("TS502", "layer 'x' (id 2)")
    assert error.problem == "two inputs are called 'x'"


def test_outputs_are_called_by_tensor_then_result_then_producer(tmp_path: Path) -> None:
    ir = IrFile()
    x = ir.parameter("x", "f32", "4")
    parts = ir.variadic_split(
        x, ir.int64(0, scalar=True), ir.int64(1, 1, 1, 1), 4, ["first,other", "", "", ""]
    )
    ir.result(parts[0])
    ir.result(parts[1], name="second/sink_port_0")
    ir.result(parts[2])
    ir.result(parts[3], name="r", output_names="fourth")
    ir.result(parts[0])
    ir.result(parts[0])
    ir.result(x)
    assert read_model(ir.save(tmp_path)).output_names == (
        "first", "second", "cut.2", "fourth", "other", "cut.0", "x.0",
    )  # fmt: skip


def test_a_value_of_several_results_is_called_by_its_producer_then_by_their_ids(
    tmp_path: Path,
) -> None:
    ir = IrFile()
    first, second = ir.split(ir.parameter("x", "f32", "4"), ir.int64(0, scalar=True), 2)
    for source in (second, second, second, first, first):
        ir.result(source)
    ir.result(first, name="cut.1.4")
    path = ir.save(tmp_path)
    names = ("cut.1", "cut.1.4", "cut.1.5", "cut.0", "cut.0.7", "cut.0.8")
    assert read_model(path).output_names == names
    graph = read_ir(path).message.graph  # the first of them names what the layer gives
    assert [list(node.output) for node in graph.node if node.op_type == "Split"] == [
        ["cut.0", "cut.1"]
    ]


def test_only_what_is_no_output_is_described_between_the_layers(tmp_path: Path) -> None:
    ir = IrFile()
    (one,) = ir.layer("ReLU", [ir.parameter("x", "f32", "2")], 1, name="one")
    ir.result(ir.layer("ReLU", [one], 1, name="two")[0])
    graph = read_ir(ir.save(tmp_path)).message.graph
    assert [entry.name for entry in graph.value_info] == ["one/1.0"]
    assert [entry.name for entry in graph.output] == ["two.0"]


def test_one_constant_may_feed_several_layers(tmp_path: Path) -> None:
    ir = IrFile()
    x, zero = ir.parameter("x", "f32", "6,8"), ir.int64(0, scalar=True)
    top, bottom = ir.split(x, zero, 2)
    for part in (*ir.split(top, zero, 3), *ir.split(bottom, zero, 3)):
        ir.result(part)
    ir.result(zero, name="axis")
    outputs = run(ir.save(tmp_path), x=X)
    for row, part in enumerate(list(outputs.values())[:6]):
        np.testing.assert_array_equal(part, X[row : row + 1])
    assert outputs["axis"].shape == ()


def test_layers_may_be_listed_in_any_order(tmp_path: Path) -> None:
    ir = cut_file()
    ir.layers.reverse()
    outputs = run(ir.save(tmp_path), x=X)
    np.testing.assert_array_equal(outputs["part0"], X[:2])
    assert list(outputs) == ["part1", "part0"]


def test_a_long_chain_runs(tmp_path: Path) -> None:
    ir = IrFile()
    value, zero = ir.parameter("x", "f32", "2"), ir.int64(0, scalar=True)
    for _ in range(3000):
        (value,) = ir.split(value, zero, 1)
    ir.result(value)
    (output,) = run(ir.save(tmp_path), x=np.ones(2, np.float32)).values()
    assert output.tolist() == [1.0, 1.0]


def test_other_layers_are_named_with_their_type_and_the_engine(tmp_path: Path) -> None:
    ir = IrFile()
    (y,) = ir.layer("ReLU", [ir.parameter("x", "f32", "...")], 1, name="act", version="opset1")
    ir.result(y)
    error = refused(ir.save(tmp_path), x=X)
    assert error.code == "TS509"
    assert error.node == "layer 'act' (id 1)"
    assert "ReLU" in str(error)
    assert 'engine="openvino"' in str(error)


def test_what_runs_other_layers_is_named_where_it_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ir = IrFile()
    ir.result(ir.layer("ReLU", [ir.parameter("x", "f32", "...")], 1, name="act")[0])
    path = ir.save(tmp_path)
    monkeypatch.setattr("tensorsplit.engines.engine_names.find_spec", lambda _: None)
    with pytest.raises(SplitError, match=rf"TS509.*{re.escape(install_command('openvino'))}"):
        run_model(path, {"x": X})
    with pytest.raises(SplitError, match=rf"TS602.*{re.escape(install_command('openvino'))}"):
        run_model(path, {"x": X}, engine="openvino")
    np.testing.assert_array_equal(run_model(cut_file().save(tmp_path), {"x": X})["part1"], X[2:])


@pytest.mark.parametrize("version", ["opset8", "extension", ""])
def test_split_layers_of_other_versions_are_refused(tmp_path: Path, version: str) -> None:
    ir = cut_file()
    text = ir.text.replace('Split" version="opset1"', f'Split" version="{version}"')
    error = refused(ir.save(tmp_path, text), x=X)
    assert error.code == "TS101"
    assert error.node == "layer 'cut' (id 3)"


def validated(path: Path, **feeds: Any) -> list[str]:
    return check(path, feeds)


def with_relu(lengths: Out | None, ir: IrFile) -> IrFile:
    (y,) = ir.layer("ReLU", [ir.parameter("x", "f32", "?")], 1, name="act")
    axis = ir.int64(0, scalar=True)
    for part in ir.variadic_split(y, axis, lengths or ir.int64(-1, 2), 2):
        ir.result(part)
    return ir


def test_validation_goes_as_far_as_constants_and_feeds_tell(tmp_path: Path) -> None:
    x = np.ones(6, np.float32)
    ir = IrFile()
    assert validated(with_relu(None, ir).save(tmp_path), x=x) == ["layer 'cut' (id 4)"]
    ir = IrFile()
    with pytest.raises(SplitError, match=r"TS301.*layer 'cut'"):
        validated(with_relu(ir.int64(-3, 9), ir).save(tmp_path), x=x)
    ir = IrFile()
    lengths = ir.parameter("lengths", "i64", "2")
    path = with_relu(lengths, ir).save(tmp_path)
    assert validated(path, x=x, lengths=np.array([-1, 2])) == ["layer 'cut' (id 4)"]
    with pytest.raises(SplitError, match="TS306"):
        validated(path, x=x, lengths=np.array([-1, -1]))
    assert validated(cut_file().save(tmp_path), x=X) == []


def test_split_layers_in_bodies_are_validated(tmp_path: Path) -> None:
    body = cut_file((-5, 11))
    text = (
        f"<body><layers>{''.join(body.layers)}</layers><edges>{''.join(body.edges)}</edges></body>"
    )
    ir = IrFile()
    (y,) = ir.layer("Loop", [ir.parameter("x", "f32", "...")], 1, text, name="loop")
    ir.result(y)
    ir.weights = body.weights
    path = ir.save(tmp_path)
    assert refused(path, x=X).code == "TS509"
    with pytest.raises(SplitError, match=r"TS301.*layer 'loop' \(id 1\) / layer 'cut' \(id 3\)"):
        validated(path, x=X)


@pytest.mark.parametrize("tag", ["body", "then_body", "else_body"])
def test_every_body_of_a_layer_is_read(tmp_path: Path, tag: str) -> None:
    body = cut_file((-5, 11))
    held = f"<layers>{''.join(body.layers)}</layers><edges>{''.join(body.edges)}</edges>"
    ir = IrFile()
    x = ir.parameter("x", "f32", "...")
    ir.result(ir.layer("Around", [x], 1, f"<{tag}>{held}</{tag}>", name="around")[0])
    ir.weights = body.weights
    (around, *_) = read_ir(ir.save(tmp_path)).message.graph.node
    assert [attribute.name for attribute in around.attribute] == [tag]
    assert "VariadicSplit" in [node.op_type for node in around.attribute[0].g.node]


@pytest.mark.parametrize("element", ["dynamic", "undefined"])
def test_a_parameter_may_have_any_element_type(tmp_path: Path, element: str) -> None:
    ir = IrFile()
    ir.result(ir.parameter("x", element, "6,8"))
    (x,) = read_ir(ir.save(tmp_path)).inputs
    assert (x.element_type, x.shape) == (None, (6, 8))


@pytest.mark.parametrize("spelling", ["Const", "Constant"])
def test_constants_are_spelled_in_two_ways(tmp_path: Path, spelling: str) -> None:
    ir = cut_file((2, 4))
    outputs = run(ir.save(tmp_path, ir.text.replace('type="Const"', f'type="{spelling}"')), x=X)
    np.testing.assert_array_equal(outputs["part1"], X[2:])


def test_weights_may_be_a_link_inside_the_folder(tmp_path: Path) -> None:
    path = cut_file((2, -1)).save(tmp_path)
    (tmp_path / "blobs").mkdir()
    held = path.with_suffix(".bin").rename(tmp_path / "blobs" / "0123")
    path.with_suffix(".bin").symlink_to(held)
    np.testing.assert_array_equal(run(path, x=X)["part1"], X[2:])


@pytest.mark.parametrize("place", ["{held}", "../secret.bin", "/dev/zero"])
def test_weights_outside_the_folder_are_refused(tmp_path: Path, place: str) -> None:
    (tmp_path / "model").mkdir()
    path = cut_file((2, -1)).save(tmp_path / "model")
    held = path.with_suffix(".bin").rename(tmp_path / "secret.bin")
    path.with_suffix(".bin").symlink_to(place.format(held=held))
    for tool in (read_model, infer_shapes, lambda path: run(path, x=X)):
        with pytest.raises(SplitError, match=r"TS504.*leads out of the model's folder"):
            tool(path)


def test_weights_that_no_constant_needs_are_not_followed_either(tmp_path: Path) -> None:
    ir = IrFile()
    ir.result(ir.parameter("x", "f32", "2"))
    path = ir.save(tmp_path)
    path.with_suffix(".bin").unlink()
    path.with_suffix(".bin").symlink_to("/dev/zero")
    assert refused(path, x=X[0, :2]).code == "TS504"


def test_an_output_may_have_the_name_of_another_input(tmp_path: Path) -> None:
    ir = IrFile()
    x, y = ir.parameter("x", "f32", "2"), ir.parameter("y", "f32", "2")
    ir.result(x, output_names="y")
    ir.result(y, output_names="x")
    ir.result(x, name="z")
    values = {"x": np.zeros(2, np.float32), "y": np.ones(2, np.float32)}
    outputs = run(ir.save(tmp_path), **values)
    assert {name: value.tolist() for name, value in outputs.items()} == {
        "y": [0, 0],
        "x": [1, 1],
        "z": [0, 0],
    }


def test_strings_that_are_not_utf8_are_left_to_openvino(tmp_path: Path) -> None:
    ir = IrFile()
    ir.result(ir.constant(struct.pack("<iii", 1, 0, 1) + b"\xff", "string", "1"))
    error = refused(ir.save(tmp_path))
    assert (error.code, error.node) == ("TS509", "layer '' (id 0)")


def test_a_model_that_gives_nothing_is_refused(tmp_path: Path) -> None:
    ir = IrFile()
    ir.parameter("x", "f32", "2")
    assert refused(ir.save(tmp_path), x=np.zeros(2, np.float32)).code == "TS502"


IDS = {"input": [0, 1], "output": [2], "Parameter": [5, 7], "Result": [9]}


def test_how_a_body_is_joined_to_its_layer() -> None:
    """Parts are single elements of a whole axis where the file says nothing else."""
    entries = [
        ["input", {"external_port_id": "1", "internal_layer_id": "7", "axis": "0"}],
        ["output", {"external_port_id": "2", "internal_layer_id": "9"}],
        ["input", {"external_port_id": "-1", "internal_layer_id": "5", "purpose": "current"}],
    ]
    text = json.dumps([IDS, entries, [{"from-layer": "9", "to-layer": "7"}]])
    assert read_ports(text, "layer") == BodyPorts(
        (BodyPort(1, 1, 0, "", 0, -1, 1, 1), BodyPort(None, 0, None, "current", 0, -1, 1, 1)),
        (BodyPort(0, 0, None, "", 0, -1, 1, 1),),
        ((0, 1),),
    )


def test_a_body_has_no_ports_where_none_are_kept_or_they_do_not_fit() -> None:
    """An ONNX model may have such a node, too."""
    wrong = ["input", {"external_port_id": "3", "internal_layer_id": "5"}]
    key = "org.openvinotoolkit.ports.body"
    assert fitting_ports({}, "body") is None
    assert fitting_ports({key: json.dumps([IDS, [wrong], []])}, "body") is None
    none = BodyPorts((), (), ())
    assert fitting_ports({key: json.dumps([IDS, [], []])}, "body") == none


@pytest.mark.parametrize(
    ("attributes", "said"),
    [
        ({"external_port_id": "3"}, "external_port_id 3, which is not there; name one of 0, 1"),
        ({"internal_layer_id": "6"}, "internal_layer_id 6, which is not there; name one of 5, 7"),
        ({"internal_layer_id": "-1"}, "internal_layer_id -1, which is not there"),
        ({"stride": "two"}, "have the stride 'two'; it is an integer"),
        ({"axis": ""}, "have the axis ''; it is an integer"),
    ],
)
def test_a_body_that_is_joined_to_nothing_is_refused(attributes: dict[str, str], said: str) -> None:
    entry = {"external_port_id": "0", "internal_layer_id": "5", **attributes}
    with pytest.raises(SplitError, match=f"TS502.*{re.escape(said)}"):
        read_ports(json.dumps([IDS, [["input", entry]], []]), "layer")
