"""OpenVINO's VariadicSplit as a node of an ONNX model, in the domain org.openvinotoolkit."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx.parser import parse_model

import tensorsplit as ts
from tensorsplit import SplitError
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


@pytest.mark.parametrize("opset", [10, 11])
@pytest.mark.parametrize(
    ("lengths", "wanted"),
    [
        ([3, 4, 0], [3, 4, 0]),
        ([-1, 2, 4], [1, 2, 4]),
        ([0, 7, -1], [0, 7, 0]),
        ([3, 4, 1], None),
        ([8, -1, 0], None),
        ([-1, -1, 2], None),
        ([9, -2, 0], None),
        ([3, 4], None),
    ],
)
def test_lengths_of_run_time_are_added_up_at_every_opset(
    data: Any, opset: int, lengths: list[int], wanted: list[int] | None
) -> None:
    """CumSum, by which they are added up for engines that round, is there from opset 11 on."""
    made = parse_model(
        f'<ir_version: 5, opset_import: ["" : {opset}, "org.openvinotoolkit" : 1]>'
        " g (float[B, N] x, int64[L] l) => (float[B, P] u, float[B, Q] v, float[B, R] w)"
        " <int64 a = {1}> { u, v, w = org.openvinotoolkit.VariadicSplit(x, a, l) }"
    )
    lowered = ts.lower(made, "portable")
    onnx.checker.check_model(lowered, full_check=True)
    assert [each for each in ts.check(lowered, "portable") if each.severity == "error"] == []
    feeds = {"x": data, "l": np.array(lengths)}
    if wanted is None:
        with pytest.raises(SplitError):
            ts.run(lowered, feeds)
        return
    parts = np.split(data, np.cumsum(wanted)[:-1], axis=1)
    for found, part in zip(ts.run(lowered, feeds).values(), parts, strict=True):
        np.testing.assert_array_equal(found, part)


def test_more_lengths_of_run_time_than_are_added_up_one_by_one_need_opset_11(data: Any) -> None:
    names = [f"p{place}" for place in range(9)]
    outputs = ", ".join(f"float[B, D{name}] {name}" for name in names)
    made = parse_model(
        '<ir_version: 5, opset_import: ["" : 10, "org.openvinotoolkit" : 1]>'
        f" g (float[B, N] x, int64[9] l) => ({outputs}) <int64 a = {{1}}>"
        f" {{ {', '.join(names)} = org.openvinotoolkit.VariadicSplit(x, a, l) }}"
    )
    with refused("TS513", "opset 10", "CumSum"):
        ts.lower(made, "portable")
    lowered = ts.lower(ts.convert(made, 11), "portable")
    lengths = [1, 0, 2, 0, 1, -1, 1, 0, 1]
    found = ts.run(lowered, {"x": data, "l": np.array(lengths)})
    np.testing.assert_array_equal(found["p5"], data[:, 4:5])
