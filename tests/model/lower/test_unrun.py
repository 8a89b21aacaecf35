"""A split that is wrong in code that never runs (D22), which some engines read all the same."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx.parser import parse_model
from onnx.reference import ReferenceEvaluator

import tensorsplit as ts
from tests.model.lower.running import Runner, lowered_for

X = np.random.default_rng(2211).random(4, np.float32) - 0.5
LENGTHS = "l = Constant<value = int64[2] {2, 9}>()"
ORT, OV = "onnxruntime", "openvino"

WRONG: dict[str, tuple[int, str, set[str]]] = {
    "a sum": (18, "p, q = Split(x, l)", {ORT, OV}),
    "a sum as an attribute": (11, "p, q = Split<split = [2, 9]>(x)", {ORT, OV}),
    "an axis": (18, "p, q = Split<axis = 7, num_outputs = 2>(x)", {ORT, OV}),
    "equal parts": (13, "p, q, r = Split(x)", {ORT, OV}),
    "a count of nothing": (18, "p, q = Split<num_outputs = 0>(x)", {ORT, OV}),
    "data of no axes": (18, "s = ReduceSum<keepdims = 0>(x) p, q = Split(s, l)", {ORT, OV}),
    "a sequence's sum": (18, "s = SplitToSequence(x, l) p = SequenceAt(s, k)", {ORT, OV}),
    "a chunk of 0": (18, "s = SplitToSequence(x, k) p = SequenceAt(s, k)", {ORT, OV}),
    "a newer attribute": (13, "p, q = Split<num_outputs = 2>(x)", {ORT}),
    "no lengths": (18, "p, q = Split(x)", {ORT}),
    "both": (18, "p, q = Split<num_outputs = 2>(x, l)", {ORT}),
    "a calculated sum": (18, "m = Add(l, l) p, q = Split(x, m)", {ORT, OV}),
    "another number of outputs": (18, "p, q = Split<num_outputs = 3>(x)", {OV}),
    "a list of lists": (18, "m = Constant<value = int64[1, 2] {2, 2}>() p, q = Split(x, m)", {OV}),
    "a position": (18, "s = SplitToSequence(x) k4 = Add(four, k) p = SequenceAt(s, k4)", {OV}),
    "a length below 0": (18, "m = Constant<value = int64[2] {-1, 5}>() p, q = Split(x, m)", set()),
    "one that nothing reads": (18, "s, q = Split(x, l) p = Neg(x)", {ORT}),
}
"""The opset, what is wrong, and the engines that were seen to refuse it."""

AROUND = {
    "a branch": """y = If(no) <then_branch = t () => (float[A] t1) { WRONG t1 = Neg(p) },
        else_branch = e () => (float[B] e1) { e1 = Abs(x) }>""",
    "a branch in a branch": """y = If(no) <then_branch = t () => (float[A] t2) { t2 = If(yes)
        <then_branch = u () => (float[C] t1) { WRONG t1 = Neg(p) },
        else_branch = v () => (float[D] v1) { v1 = Neg(x) }> },
        else_branch = e () => (float[B] e1) { e1 = Abs(x) }>""",
    "a loop without a round": """z = Abs(x) y = Loop(k, , z) <body = b (int64 i, bool c, float[4] w)
        => (bool d, float[4] v) { d = Identity(c) WRONG u = Neg(p) v = Abs(w) }>""",
}


def model_of(around: str, wrong: str, opset: int) -> onnx.ModelProto:
    body = AROUND[around].replace("WRONG", f"{LENGTHS} {wrong}")
    return parse_model(
        f"""<ir_version: 8, opset_import: ["": {opset}]> g (float[4] x) => (float[E] y)
        <bool no = {{0}}, bool yes = {{1}}, int64 k = {{0}}, int64 four = {{4}}> {{ {body} }}"""
    )


@pytest.mark.parametrize("wrong", WRONG)
def test_a_run_does_not_refuse_what_never_runs(wrong: str) -> None:
    """Onnx's reference does not, either."""
    opset, text, _ = WRONG[wrong]
    for around in AROUND:
        model = model_of(around, text, opset)
        assert ts.run(model, {"x": X})["y"].tolist() == np.abs(X).tolist()
        (got,) = ReferenceEvaluator(model).run(None, {"x": X})
        assert np.array(got).tolist() == np.abs(X).tolist()


BOTH = [pytest.param(engine, marks=pytest.mark.engine(engine)) for engine in (ORT, OV)]


@pytest.mark.parametrize("around", AROUND)
@pytest.mark.parametrize("engine", BOTH)
@pytest.mark.parametrize("wrong", WRONG)
def test_an_engine_refuses_it_where_check_says_so_and_runs_what_lower_leaves(
    wrong: str, engine: Any, around: str, openvino: Runner
) -> None:
    opset, text, refused_by = WRONG[wrong]
    model = model_of(around, text, opset)
    is_refused = engine in refused_by and not (engine == OV and "loop" in around)
    found = [each for each in ts.check(model, target=engine) if each.severity == "error"]
    assert [each.node.split("[")[0] for each in found] == (
        ["graph/Loop" if "loop" in around else "graph/If"] if is_refused else []
    )
    (got,) = openvino.call([engine, model.SerializeToString(), [{"x": X}], 1])
    assert isinstance(got, str) == is_refused
    lowered = ts.lower(model, target=engine)
    assert ts.lower(lowered, target=engine) == lowered
    (got,) = openvino.call([engine, lowered.SerializeToString(), [{"x": X}], 1])
    assert got[0].tolist() == np.abs(X).tolist()


@pytest.mark.parametrize("around", AROUND)
@pytest.mark.parametrize("engine", BOTH)
@pytest.mark.parametrize("wrong", WRONG)
def test_a_portable_model_has_nothing_wrong_where_it_never_runs(
    wrong: str, engine: Any, around: str, openvino: Runner
) -> None:
    opset, text, _ = WRONG[wrong]
    lowered = lowered_for("portable", model_of(around, text, opset))
    (got,) = openvino.call([engine, lowered.SerializeToString(), [{"x": X}], 1])
    assert got[0].tolist() == np.abs(X).tolist()
