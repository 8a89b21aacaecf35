"""Data without elements, such as a part of length 0, in nodes that engines do wrong with them."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx.parser import parse_model

import tensorsplit as ts
from tensorsplit import SplitError
from tests.model.check.untyped_outputs import check

RECURRENT = "w = Expand(one, ws) r = Expand(one, rs) y, h = {}<hidden_size = 3>(p, w, r)"
BATCH, STEPS = "p, q = Split<axis = 1>(x, l) ", "p, q = Split<axis = 0>(x, l) "
LSTM, GRU, RNN = (
    f"int64[3] ws = {{1, {rows}, 2}}, int64[3] rs = {{1, {rows}, 3}}" for rows in (12, 9, 3)
)
ENGINES = ("onnxruntime", "openvino")
TURNED = "p, q = Split<axis = 1>(x, l) k = Transpose<perm = [0, 2, 1]>(p) "

CASES = {
    "LSTM without a batch": (BATCH + RECURRENT.format("LSTM"), LSTM, ENGINES),
    "GRU without a batch": (BATCH + RECURRENT.format("GRU"), GRU, ENGINES),
    "GRU without steps": (STEPS + RECURRENT.format("GRU"), GRU, ENGINES),
    "RNN without a batch": (BATCH + RECURRENT.format("RNN"), RNN, ENGINES[1:]),
    "Einsum of two": (TURNED + 'y = Einsum<equation = "abc,acb->a">(p, k)', "", ENGINES),
    "Einsum of one": (BATCH + 'y = Einsum<equation = "abc->ca">(p)', "", ()),
    "Expand": ("a = Abs(x) b = Slice(a, i, o) c = Expand(b, i) y = Neg(c)", "", ENGINES),
    "Expand to the shape of a part": (
        "p, q = Split(x, l) s = Shape(p) a = Slice(x, i, o) b = Expand(a, s) y = Neg(b)",
        "",
        ENGINES,
    ),
    "Expand of no elements": ("p, q = Split(x, l) s = Shape(p) y = Expand(p, s)", "", ENGINES[1:]),
    "TopK of 0": ("y, w = TopK(x, i)", "", ENGINES[1:]),
    "TopK of 1": ("y, w = TopK(x, o)", "", ()),
    "Expand to more": ("a = Slice(x, i, o) y = Expand(a, t)", "int64[3] t = {4, 1, 1}", ()),
}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", CASES)
def test_engines_that_do_wrong_without_elements_are_warned_of(name: str, engine: Any) -> None:
    pytest.importorskip(engine)
    nodes, more, wrong_in = CASES[name]
    made = parse_model(
        f"""<ir_version: 8, opset_import: ["": 17]> g (float[4, 4, 2] x) => (float y)
        <int64[2] l = {{0, 4}}, int64[1] i = {{0}}, int64[1] o = {{1}}, float one = {{1.0}}
        {"," if more else ""} {more}> {{ {nodes} }}"""
    )
    made.graph.output[0].type.tensor_type.ClearField("shape")
    said = ("data without elements", "to a dimension of 0", "of 0 elements")
    found = [
        each.severity for each in check(made, engine) if any(map(each.message.__contains__, said))
    ]
    assert found == ["warning"] * (engine in wrong_in)
    feeds = {"x": np.arange(32, dtype=np.float32).reshape(4, 4, 2)}
    assert is_right(made, feeds, engine) == (engine not in wrong_in)


def is_right(made: onnx.ModelProto, feeds: dict[str, Any], engine: Any) -> bool:
    """Return whether the engine gives a result of the right shape; its process may die."""
    try:
        got = ts.run(made, feeds, engine=engine)["y"]
    except SplitError as error:
        return error.code not in ("TS603", "TS604")
    return bool(got.shape == ts.run(made, feeds)["y"].shape)
