"""Scans in the body of a Scan, which OpenVINO does not take: they become Loops."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx.parser import parse_model

import tensorsplit as ts
from tests.model.build import nodes_of
from tests.model.lower.running import Runner, lowered_for
from tests.refusals import refused

X = np.random.default_rng(9).uniform(1, 2, (2, 3, 4)).astype(np.float32)
W = np.random.default_rng(10).uniform(1, 2, 4).astype(np.float32)
OUTER = "y = Scan<num_scan_inputs = 1, body = b (float[?,?] table) => (float[?,?] o) {{ {} }}>(x)"
ROWS = "body = b2 (float[?] row) => (float[?] p) { p, q = Split<axis = 0>(row, halves) }>(table)"
SUM = """body = b2 (float[?] sum, float[?] row) => (float[?] sum2, float[?] before)
    { sum2 = Add(sum, row) before = Identity(sum) }>(w, table)"""
DEEP = """body = b2 (float[?] row) => (float[?] p) { p = Scan<num_scan_inputs = 1, body = b3
    (float t) => (float u) { u = Neg(t) }>(row) }>(table)"""

CASES = {
    "rows": f"o = Scan<num_scan_inputs = 1, {ROWS}",
    "rows from the last": f"o = Scan<num_scan_inputs = 1, scan_input_directions = [1], {ROWS}",
    "put together from the last": (
        f"o = Scan<num_scan_inputs = 1, scan_output_directions = [1], {ROWS}"
    ),
    "both": (
        "o = Scan<num_scan_inputs = 1, scan_input_directions = [1], scan_output_directions = [1],"
        f" {ROWS}"
    ),
    "along another axis": f"o = Scan<num_scan_inputs = 1, scan_input_axes = [-1], {ROWS}",
    "put together along another axis": (
        f"o = Scan<num_scan_inputs = 1, scan_output_axes = [1], {ROWS}"
    ),
    "what it carries": f"last, o = Scan<num_scan_inputs = 1, {SUM}",
    "what it carries after the last row": (
        f"last, r = Scan<num_scan_inputs = 1, scan_output_axes = [-1], {SUM}"
        " o = Unsqueeze(last, first)"
    ),
    "two tables": (
        "o = Scan<num_scan_inputs = 2, scan_input_directions = [0, 1], body = b2 (float[?] row,"
        " float[?] other) => (float[?] p) { p = Sub(row, other) }>(table, table)"
    ),
    "what is around it": (
        "o = Scan<num_scan_inputs = 1, body = b2 (float[?] row) => (float[?] p) { n = Add(row, w)"
        " p = Mul(n, w) }>(table)"
    ),
    "the rows as they are": (
        "o = Scan<num_scan_inputs = 1, body = b2 (float[?] row) => (float[?] row) { }>(table)"
    ),
    "a third one": f"o = Scan<num_scan_inputs = 1, {DEEP}",
    "in a branch": (
        f"o = If(yes) <then_branch = t () => (float[?,?] r) {{ r = Scan<num_scan_inputs = 1, {ROWS}"
        " }, else_branch = e () => (float[?,?] u) { u = Neg(table) }>"
    ),
}


def made_of(body: str, opset: int = 18) -> onnx.ModelProto:
    """A model whose Scan takes the tables of a tensor."""
    return parse_model(
        f'<ir_version: 8, opset_import: ["": {opset}]> g (float[T,R,C] x, float[4] w, bool yes)'
        " => (float[?,?,?] y) <int64[2] halves = {2, 2}, int64[1] first = {0}>"
        f" {{ {OUTER.format(body)} }}"
    )


@pytest.mark.parametrize("name", CASES)
def test_a_scan_in_the_body_of_a_scan_becomes_a_loop(name: str, process: Runner) -> None:
    model = made_of(CASES[name])
    found = [each for each in ts.check(model, target="openvino") if "body of a Scan" in str(each)]
    assert {each.code for each in found} == {"TS841"}
    if name == "along another axis":
        model.graph.initializer[0].CopyFrom(
            onnx.numpy_helper.from_array(np.array([2, 1]), "halves")
        )
    lowered = lowered_for("openvino", model)
    assert not [each for each in ts.check(lowered, target="openvino") if each.severity == "error"]
    feeds = [{"x": x, "w": W, "yes": np.array(True)} for x in (X, X[:, :1], -X[:1])]
    if name == "along another axis":
        feeds.pop(1)
    runs = process.call(["openvino", lowered.SerializeToString(), feeds, 2])
    for feed, (got,) in zip(feeds, runs, strict=True):
        expected = ts.run(model, feed)["y"]
        assert (got.shape, got.tobytes()) == (expected.shape, expected.tobytes())
        assert ts.run(lowered, feed)["y"].tobytes() == expected.tobytes()


@pytest.mark.parametrize("opset", [9, 10, 11, 12, 13])
def test_before_opset_13_a_loop_carries_something(opset: int, process: Runner) -> None:
    """`Inputs (3 - ∞)`: the pages of Loop-1 and Loop-11."""
    body = "o = Scan<num_scan_inputs = 1, scan_output_directions = [1], body = b2 (float[?] row)"
    model = made_of(f"{body} => (float[?] p) {{ p = Neg(row) }}>(table)", opset)
    lowered = lowered_for("openvino", model)
    (loop,) = (node for node in nodes_of(lowered.graph) if node.op_type == "Loop")
    assert len(loop.input) == (3 if opset < 13 else 2)
    feed = {"x": X, "w": W, "yes": np.array(True)}
    ((got,),) = process.call(["openvino", lowered.SerializeToString(), [feed], 2])
    assert got.tobytes() == (-X[:, ::-1]).tobytes()


@pytest.mark.parametrize("target", ["onnxruntime", "portable"])
def test_other_targets_take_a_scan_in_a_scan(target: Any) -> None:
    lowered = ts.lower(made_of(CASES["what it carries"]), target=target)
    assert [each.op_type for each in nodes_of(lowered.graph)].count("Scan") == 2


def test_what_goes_along_an_axis_of_a_rank_that_is_not_known_is_refused() -> None:
    model = made_of(
        "r = Scan<num_scan_inputs = 1, scan_output_axes = [1], body = b2 (float[?] row) => (p)"
        " { p = x.F(row) }>(table) o = Reshape(r, halves)"
    )
    model.opset_import.add(domain="x", version=1)
    with refused("TS513", "the rank of a scan output"):
        ts.lower(model, target="openvino")


def test_before_opset_9_a_scan_in_a_scan_is_refused() -> None:
    """Scan-8 has batches."""
    text = """<ir_version: 8, opset_import: ["": 8]> g (float[1,T,1,R,C] x) => (float[?,?,?,?,?] y)
        { y = Scan<num_scan_inputs = 1, body = b (float[1,R,C] table) => (float[?,?,?] o)
        { o = Scan<num_scan_inputs = 1, body = b2 (float[C] row) => (float[C] p)
        { p = Neg(row) }>("", table) }>("", x) }"""
    with refused("TS513", "in the body of a Scan"):
        ts.lower(parse_model(text), target="openvino")
