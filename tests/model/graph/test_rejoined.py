"""Nodes that may give what they are given: of these a run gives the data."""

from __future__ import annotations

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from onnx.parser import parse_model

import tensorsplit as ts
from tensorsplit.model.graph.rejoined import may_pass

X = np.array([[1.5, -2, 3]], np.float32)
PASSED: dict[str, set[int]] = {
    "y = Identity(x)": {0},
    "y = Dropout(x)": {0},
    "y = Reshape(x, row)": {0},
    "y = Transpose<perm = [0, 1]>(x)": {0},
    "y = ReduceSum(x, first)": {0},
    "y = ReduceMean(x, first)": {0},
    "y = Concat<axis = 0>(x)": {0},
    "y = Concat<axis = 0>(x, x)": set(),
    "y = Max(x)": {0},
    "y = Sum(x)": {0},
    "y = Mean(x)": {0},
    "y = Min(x, none)": set(),
    "y = Sum(x, x)": set(),
    "y = Add(x, none)": {0},
    "y = Add(none, x)": {1},
    "y = Add(x, one)": set(),
    "y = Add(one, x)": set(),
    "y = Sub(x, none)": {0},
    "y = Sub(none, x)": set(),
    "y = Mul(x, one)": {0},
    "y = Mul(one, x)": {1},
    "y = Mul(x, none)": set(),
    "y = Div(x, one)": {0},
    "y = Div(one, x)": set(),
    "y = Split<num_outputs = 1>(x)": {0},
    "y, z = Split<axis = 1, num_outputs = 2>(x)": set(),
    "n = Neg(x) y = Neg(n)": {0},
    "y = Neg(x)": set(),
    "y = Where(yes, x, one)": {1, 2},
    "b = Less(x, none) y = Where(b, one, x)": set(),
}
"""Nodes, of which the last one gives `y`, and the places of what it may give."""


@pytest.mark.parametrize("nodes", PASSED)
def test_what_a_node_may_give_as_it_is(nodes: str) -> None:
    made = parse_model(
        f"""<ir_version: 8, opset_import: ["": 18]> g (float[1,3] x) => (float[?,?] y)
        <float[1] none = {{0}}, float[1,1] one = {{1}}, int64[2] row = {{1, 3}},
        int64[1] first = {{0}}, bool[1,3] yes = {{1, 1, 1}}> {{ {nodes} }}"""
    )
    last = [*ir.from_proto(made).graph][-1]
    passed = {place for place in range(len(last.inputs)) if may_pass(last, place)}
    assert passed == PASSED[nodes]
    del made.graph.output[:]
    made.graph.output.append(onnx.helper.make_empty_tensor_value_info("y"))
    is_same = np.array_equal(ts.run(made, {"x": X})["y"], X)
    assert is_same is bool(PASSED[nodes])
