"""OpenVINO's VariadicSplit as a node of an ONNX model, in the domain org.openvinotoolkit."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx.parser import parse_model

import tensorsplit as ts
from tests.refusals import refused

RANDOM = np.random.default_rng(12)


def variadic(lengths: str, axis: str = "int64 a = {1}") -> onnx.ModelProto:
    return parse_model(
        f'<ir_version: 8, opset_import: ["" : 17, "org.openvinotoolkit" : 1]>'
        f" g (float[B, N] x) => (float[B, P] y, float[B, Q] z) <{axis}, {lengths}>"
        " { y, z = org.openvinotoolkit.VariadicSplit(x, a, l) }"
    )


@pytest.fixture
def data() -> Any:
    return RANDOM.standard_normal((2, 7)).astype(np.float32)


def test_one_length_may_be_the_remainder(data: Any) -> None:
    found = ts.run(variadic("int64[2] l = {-1, 2}"), {"x": data})
    np.testing.assert_array_equal(found["y"], data[:, :5])
    np.testing.assert_array_equal(found["z"], data[:, 5:])


def test_lengths_of_run_time_are_validated_as_constants_are(data: Any) -> None:
    made = parse_model(
        '<ir_version: 8, opset_import: ["" : 17, "org.openvinotoolkit" : 1]>'
        " g (float[B, N] x, int64[2] l) => (float[B, P] y, float[B, Q] z) <int64 a = {1}>"
        " { y, z = org.openvinotoolkit.VariadicSplit(x, a, l) }"
    )
    found = ts.run(made, {"x": data, "l": np.array([3, 4])})
    np.testing.assert_array_equal(found["z"], data[:, 3:])
    with refused("TS302", "openvino.VariadicSplit-1", "graph/VariadicSplit[0]"):
        ts.run(made, {"x": data, "l": np.array([3, 5])})


def test_what_is_wrong_is_refused_before_anything_runs(data: Any) -> None:
    with refused("TS306", "openvino.VariadicSplit-1"):
        ts.run(variadic("int64[2] l = {-1, 9}"), {"x": data})
    with refused("TS106", "openvino.VariadicSplit-1"):
        ts.run(variadic("int64[2] l = {-1, 2}", axis="int64[2] a = {1, 0}"), {"x": data})


def test_check_names_the_node() -> None:
    findings = ts.check(variadic("int64[2] l = {-1, -1}"))
    assert [finding.severity for finding in findings if finding.code == "TS306"] == ["error"]


def test_a_split_converted_to_it_runs_as_before(data: Any) -> None:
    made = parse_model(
        '<ir_version: 8, opset_import: ["" : 18]>'
        " g (float[B, N] x) => (float[B, P] y, float[B, Q] z)"
        " { y, z = Split<axis=1, num_outputs=2>(x) }"
    )
    turned = ts.convert(made, variadic=True)
    assert isinstance(turned, onnx.ModelProto)
    assert [node.op_type for node in turned.graph.node][-1] == "VariadicSplit"
    before, after = ts.run(made, {"x": data}), ts.run(turned, {"x": data})
    for name in ("y", "z"):
        np.testing.assert_array_equal(before[name], after[name])
