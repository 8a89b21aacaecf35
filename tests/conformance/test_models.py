"""The models of the cases say what the cases say of them; seen in the models themselves."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from xml.etree import ElementTree

import onnx
import pytest

from tensorsplit.conformance.case import Case
from tensorsplit.conformance.cases import all_cases, find

ONNX = [case for case in all_cases() if case.model_format == "onnx"]
IR = [case for case in all_cases() if case.model_format == "ir"]
SPLITS = {"Split": (1, 2, 11, 13, 18), "SplitToSequence": (11, 24)}
BODIES = {"If": "if", "Loop": "loop", "Scan": "scan"}


def model_of(case: Case) -> onnx.ModelProto:
    return onnx.load_from_string(case.build().model)


def split_nodes(
    model: onnx.ModelProto, nodes: Any, path: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], onnx.NodeProto]]:
    """Every split node below some nodes, with the places it is in; functions are gone into."""
    functions = {function.name: function for function in model.functions}
    for node in nodes:
        if node.op_type in SPLITS:
            yield path, node
        if node.domain:
            inside = functions[node.op_type].node
            yield from split_nodes(model, inside, (*path, "function"))
        for attribute in node.attribute:
            if attribute.HasField("g") and node.op_type in BODIES:
                inside = attribute.g.node
                yield from split_nodes(model, inside, (*path, BODIES[node.op_type]))


@pytest.mark.parametrize("step", range(3))
def test_the_split_node_is_of_the_version_and_in_the_place_that_the_id_says(step: int) -> None:
    for case in ONNX[step :: 3 * 11]:
        model = model_of(case)
        name, version = case.operator.removeprefix("onnx.").split("-")
        (opset,) = [entry.version for entry in model.opset_import if not entry.domain]
        assert opset == case.opset
        assert max(since for since in SPLITS[name] if since <= opset) == int(version)
        place = case.id.split("/")[4]
        path = () if place == "graph" else tuple(place.split("."))
        found = list(split_nodes(model, model.graph.node))
        assert {where for where, _ in found} == {path}, case.id
        assert {node.op_type for _, node in found} == {name}
        assert len(found) == 2 ** path.count("if") + ("also-halves" in case.id)


def form_of(model: onnx.ModelProto, node: onnx.NodeProto, all_nodes: list[Any]) -> str:
    if len(node.input) < 2 or not node.input[1]:
        named = {attribute.name for attribute in node.attribute}
        return "attribute" if named & {"split", "num_outputs"} else "absent"
    made = [other.op_type for other in all_nodes if node.input[1] in other.output]
    if made:
        return {"Constant": "constant"}[made[0]]
    is_input = any(entry.name == node.input[1] for entry in model.graph.input)
    has_value = any(entry.name == node.input[1] for entry in model.graph.initializer)
    assert is_input or has_value
    return {(True, True): "overridable", (True, False): "runtime"}.get(
        (is_input, has_value), "initializer"
    )


def nodes_below(graph: Any) -> Iterator[Any]:
    for node in graph:
        yield node
        for attribute in node.attribute:
            if attribute.HasField("g"):
                yield from nodes_below(attribute.g.node)


def test_the_lengths_are_said_as_the_case_says() -> None:
    for case in ONNX[::13]:
        if "both" in case.id or "attribute-and-input" in case.id:
            continue
        model = model_of(case)
        inside = [node for function in model.functions for node in function.node]
        everything = list(nodes_below([*model.graph.node, *inside]))
        for _, node in split_nodes(model, model.graph.node):
            assert form_of(model, node, everything) == case.spelling, case.id


def test_what_is_declared_of_the_data_is_the_class_of_the_shape() -> None:
    for case in ONNX[::13]:
        if case.cut is None or case.place == "scan" or "constant-" in case.id:
            continue
        entry = model_of(case).graph.input[0]
        assert entry.name == "x"
        dims = entry.type.tensor_type.shape.dim
        known = [dim.HasField("dim_value") for dim in dims]
        axis = case.cut.axis % case.rank
        others = [known[place] for place in range(case.rank) if place != axis]
        assert known[axis] == (case.shape_class != "dynamic-axis"), case.id
        assert all(others) == (case.shape_class != "dynamic-other"), case.id
        assert (0 in case.cut.shape) == (case.shape_class == "zero-size"), case.id
        assert len(dims) == len(case.cut.shape) == case.rank


def test_every_input_is_used_and_every_input_without_a_default_is_fed() -> None:
    for case in ONNX[::9]:
        built = case.build()
        model = onnx.load_from_string(built.model)
        used = {name for node in nodes_below(model.graph.node) for name in node.input}
        inputs = [entry.name for entry in model.graph.input]
        defaults = {entry.name for entry in model.graph.initializer}
        assert set(inputs) <= used, case.id
        assert set(inputs) - defaults <= set(built.inputs) <= set(inputs), case.id
        assert inputs[: len(built.inputs)] == list(built.inputs), case.id
        assert [entry.name for entry in model.graph.output] == list(built.outputs), case.id


def test_the_attributes_of_a_function_may_be_those_of_the_split() -> None:
    cases = find(["*-reference-*"])
    assert {case.operator for case in cases} >= {"onnx.Split-18", "onnx.SplitToSequence-11"}
    for case in cases[::5]:
        model = model_of(case)
        references = [
            attribute.ref_attr_name
            for function in model.functions
            for node in function.node
            for attribute in node.attribute
            if attribute.ref_attr_name
        ]
        assert references
        assert all(list(function.attribute) for function in model.functions)


@pytest.mark.parametrize("use", ["SequenceAt", "SequenceInsert", "SequenceErase"])
def test_positions_are_constants_or_come_at_run_time(use: str) -> None:
    positions = {"at0" in case.build().inputs for case in find([f"*/{use}/use-*-at*"])}
    assert positions == {False, True}


def test_an_ir_says_what_its_case_says() -> None:
    for case in IR[::5]:
        built = case.build()
        root = ElementTree.fromstring(built.model)
        layers = {layer.get("name"): layer for layer in root.iter("layer")}
        cut = layers["cut"]
        assert f"openvino.{cut.get('type')}-1" == case.operator
        assert cut.get("version") == f"opset{case.opset}"
        if case.spelling == "attribute":
            assert cut.find("data") is not None
        else:
            kind = {"constant": "Const", "runtime": "Parameter"}[case.spelling]
            assert layers["split_lengths"].get("type") == kind
        parameters = [name for name, layer in layers.items() if layer.get("type") == "Parameter"]
        assert parameters == list(built.inputs)
        outputs = [port.get("names") for port in cut.iterfind("output/port")]
        assert outputs == list(built.outputs)
        shape = layers["x"].find("data")
        assert shape is not None
        declared = [dim for dim in (shape.get("shape") or "").split(",") if dim]
        assert len(declared) == case.rank
        if case.cut is not None:
            is_unknown = declared[case.cut.axis] == "?"
            assert is_unknown == (case.shape_class == "dynamic-axis")
            assert ("?" in declared) == (case.shape_class.startswith("dynamic"))
        assert len(built.weights) == sum(
            int(data.get("size", "0")) for data in root.iter("data") if data.get("offset")
        )


def test_elements_smaller_than_a_byte_are_packed_from_the_low_bits() -> None:
    import ml_dtypes
    import numpy as np

    from tensorsplit.conformance.models.ir_model import pack

    assert pack(np.array([1, 2, 15], ml_dtypes.uint4), "uint4") == bytes([0x21, 0x0F])
    assert pack(np.array([-1, -8], ml_dtypes.int4), "int4") == bytes([0x8F])
    assert pack(np.array([1, 2, 3, 0, 1], ml_dtypes.uint2), "uint2") == bytes([0b00111001, 1])
    assert pack(np.array([1, -2], np.int16), "int16") == b"\x01\x00\xfe\xff"
    words = pack(np.array(["é", "", "ab"], object), "string")
    assert words[:4] == b"\x03\0\0\0"
    assert words[4:20] == b"\0\0\0\0\x02\0\0\0\x02\0\0\0\x04\0\0\0"
    assert words[20:] == "éab".encode()
