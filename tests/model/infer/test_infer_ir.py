"""Types and shapes of an OpenVINO IR, which comes back as an ONNX message."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from onnx import ModelProto, TensorProto, numpy_helper

from tensorsplit import infer_shapes, lower, run
from tests.model.infer.test_infer_shapes import described, shape_of
from tests.model.ir_files import IrFile
from tests.refusals import refused


def saved(folder: Path, *lengths: int, shape: str = "?,8") -> Path:
    file = IrFile()
    data = file.parameter("x", "f32", shape)
    parts = file.variadic_split(data, file.int64(1, scalar=True), file.int64(*lengths), 2)
    for name, part in zip("ab", parts, strict=True):
        file.result(part, output_names=name)
    return file.save(folder)


def inferred(path: Path) -> ModelProto:
    made = infer_shapes(path)
    assert isinstance(made, ModelProto)
    return made


def test_the_remainder_is_a_number_where_the_dimension_is(tmp_path: Path) -> None:
    made = inferred(saved(tmp_path, -1, 3))
    found: dict[str, Any] = described(made.graph)
    assert (found["a"], found["b"]) == ((None, 5), (None, 3))
    assert made.graph.output[0].type.tensor_type.elem_type == TensorProto.FLOAT
    assert shape_of(made.graph.input[0].type) == (None, 8)


def test_layers_are_nodes_of_openvinos_own_domain(tmp_path: Path) -> None:
    made = inferred(saved(tmp_path, -1, 3))
    node = made.graph.node[0]
    assert (node.domain, node.op_type) == ("org.openvinotoolkit", "VariadicSplit")
    held = {tensor.name: numpy_helper.to_array(tensor) for tensor in made.graph.initializer}
    assert held[node.input[2]].tolist() == [-1, 3]


def test_what_comes_back_can_be_lowered_to_onnx_and_run(
    tmp_path: Path, rng: np.random.Generator
) -> None:
    x = rng.random((4, 8), np.float32)
    plain = lower(inferred(saved(tmp_path, -1, 3)), target="portable")
    found = run(plain, {"x": x})
    assert found["a"].tobytes() == x[:, :5].tobytes()
    assert found["b"].tobytes() == x[:, 5:].tobytes()


def test_a_wrong_layer_is_refused_with_its_name(tmp_path: Path) -> None:
    with refused("TS306", "openvino.VariadicSplit-1", "cut"):
        infer_shapes(saved(tmp_path, -1, 9))


def test_the_dimensions_of_ports_are_heeded(tmp_path: Path) -> None:
    file = IrFile()
    (data,) = file.layer("ReLU", [file.parameter("x", "f32", "...")], 1, name="act")
    for part in file.split(data, file.int64(1, scalar=True), 2):
        file.result(part)
    port = f'<port id="{data.port}" precision="FP32"'
    text = file.text.replace(f"{port}/>", f"{port}><dim>-1</dim><dim>8</dim></port>", 1)
    found: dict[str, Any] = described(inferred(file.save(tmp_path, text)).graph)
    assert found["cut.0"] == (None, 4)


PORT = '<port id="2" precision="FP32"'


def added(shape: str, port: str, last: str = "Result") -> IrFile:
    """The sum of two inputs, whose output port is written as it is given."""
    file = IrFile()
    inputs = [file.parameter(name, "f32", shape) for name in "xy"]
    (total,) = file.layer("Add", inputs, 1, name="sum", version="opset1")
    file.layers[-1] = file.layers[-1].replace(f"{PORT}/>", port)
    if last == "Result":
        file.result(total, output_names="total")
    else:
        for part in file.split(total, file.int64(1, scalar=True), 2):
            file.result(part)
    return file


def test_an_output_has_the_type_and_shape_of_its_port(tmp_path: Path) -> None:
    file = added("2,4", f"{PORT}><dim>2</dim><dim>4</dim></port>")
    made = inferred(file.save(tmp_path))
    (output,) = made.graph.output
    assert output.type.tensor_type.elem_type == TensorProto.FLOAT
    assert shape_of(output.type) == (2, 4)
    assert not made.graph.value_info


def test_run_time_lengths_keep_the_rank_and_the_other_dimensions(tmp_path: Path) -> None:
    file = IrFile()
    x, lengths = file.parameter("x", "f32", "?,8,3"), file.parameter("lengths", "i64", "2")
    parts = file.variadic_split(x, file.int64(1, scalar=True), lengths, 2)
    port = '<port id="1" precision="FP32"><dim>-1</dim><dim>-1</dim><dim>3</dim></port>'
    (halved,) = file.layer("ReLU", [parts[0]], 1, name="act")
    file.layers[-1] = file.layers[-1].replace('<port id="1" precision="FP32"/>', port)
    file.result(halved, output_names="a")
    file.result(parts[1], output_names="b")
    found: dict[str, Any] = described(inferred(file.save(tmp_path)).graph)
    assert (found["a"], found["b"]) == ((None, None, 3), (None, None, 3))


def test_a_port_without_a_precision_has_its_shape_all_the_same(tmp_path: Path) -> None:
    file = added("2,4", '<port id="2"><dim>2</dim><dim>4</dim></port>', "Split")
    found: dict[str, Any] = described(inferred(file.save(tmp_path)).graph)
    assert found["sum/2.0"] == (2, 4)


def test_a_body_has_the_parameters_that_it_declares(tmp_path: Path) -> None:
    body = added("2,4", f"{PORT}><dim>2</dim><dim>4</dim></port>", "Split")
    text = f"<body><layers>{''.join(body.layers)}</layers>"
    text += f"<edges>{''.join(body.edges)}</edges></body>"
    file = IrFile()
    file.result(file.layer("Loop", [file.parameter("x", "f32", "...")], 1, text, name="loop")[0])
    file.weights = body.weights
    graph = inferred(file.save(tmp_path)).graph.node[0].attribute[0].g
    assert [shape_of(value.type) for value in graph.input] == [(2, 4), (2, 4)]
    assert [shape_of(value.type) for value in graph.output] == [(2, 2), (2, 2)]
    assert {value.type.tensor_type.elem_type for value in graph.output} == {TensorProto.FLOAT}


def test_bodies_come_along(tmp_path: Path) -> None:
    body = IrFile()
    data = body.parameter("x", "f32", "6,8")
    for part in body.split(data, body.int64(0, scalar=True), 2):
        body.result(part)
    layers, edges = "".join(body.layers), "".join(body.edges)
    text = f"<body><layers>{layers}</layers><edges>{edges}</edges></body>"
    file = IrFile()
    (made,) = file.layer("Loop", [file.parameter("x", "f32", "...")], 1, text, name="loop")
    file.result(made)
    file.weights = body.weights
    (loop,) = inferred(file.save(tmp_path)).graph.node
    (attribute,) = loop.attribute
    assert [node.op_type for node in attribute.g.node] == ["Split"]
