"""The smallest model that still shows what an engine gets wrong, with wrong engines."""

from __future__ import annotations

import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx.parser import parse_model

import tensorsplit as ts
from tensorsplit.conformance.reducing import Reduced, reduced
from tests.marks import thorough
from tests.refusals import refused

HEAD = '<ir_version: 9, opset_import: ["":18]> '
CHAIN = parse_model(
    HEAD
    + """g (float[N,6] x, float[N,6] y) => (float[N,6] z, float[N,6] s, float[N,3] b) {
    r = Relu(x) t = Add(r, y) a, b = Split<axis=1, num_outputs=2>(t) n = Neg(a)
    z = Concat<axis=1>(n, b) s = Sigmoid(x)
}"""
)
SHORT = parse_model(
    HEAD
    + """g (float[N] x, int64[2] lengths) => (float[M] z, float[K] b) {
    n = Neg(x) a, b = Split(n, lengths) z = Abs(a)
}"""
)
search = partial(reduced, seconds=120, seconds_each=10)
ADAPTER = """
KIND, PACKAGES, FORMATS = "engine", ("onnx",), ("onnx",)


def run(model, weights, inputs, outputs):
    import os

    import onnx

    import tensorsplit

    proto = onnx.load_from_string(model)
    kinds = [node.op_type for node in proto.graph.node]
    {bug}
    return tensorsplit.run(proto, inputs)
"""
BUGS = {
    "crash": 'if "Split" in kinds and "Neg" in kinds: os.abort()',
    "refused": 'if "Sigmoid" in kinds: raise ValueError("node 7 is not known")',
    "wrong": """if "Add" in kinds:
        found = tensorsplit.run(proto, inputs)
        return {name: -value for name, value in found.items()}""",
}
LEFT = {"crash": ["Split", "Neg"], "refused": ["Sigmoid"], "wrong": ["Add"]}


def numbers(*shape: int) -> np.ndarray[Any, Any]:
    return np.random.default_rng(3).uniform(1, 2, shape).astype(np.float32)


def engine(folder: Path, bug: str) -> str:
    path = folder / "wrong_engine.py"
    path.write_text(ADAPTER.replace("{bug}", bug), encoding="utf-8")
    return str(path)


def kinds(found: Reduced) -> list[str]:
    return [node.op_type for node in found.after.model.graph.node]


@pytest.mark.thorough
@pytest.mark.parametrize("kind", BUGS)
def test_only_the_nodes_to_blame_are_left(tmp_path: Path, kind: str) -> None:
    inputs = {"x": numbers(4, 6), "y": numbers(4, 6)}
    found = search(CHAIN, inputs, engine(tmp_path, BUGS[kind]))
    assert found.failure.kind.partition(":")[0] == kind
    assert kinds(found) == LEFT[kind]
    assert found.is_finished
    onnx.checker.check_model(found.after.model)
    assert sum(value.size for value in found.after.inputs.values()) <= 4
    ours = ts.run(found.after.model, found.after.inputs)
    assert {name: value.tolist() for name, value in ours.items()} == {
        name: value.tolist() for name, value in (found.after.expected or {}).items()
    }
    assert inputs["x"].shape == (4, 6)
    assert len(CHAIN.graph.node) == 6


LOOP = parse_model(
    HEAD
    + """g (float[2,6] x, int64 n, bool c) => (float[2,6] z) {
    z = Loop<body = b (int64 i, bool go, float[2,6] s) => (bool again, float[2,6] t) {
        again = Identity(go) r = Relu(s) a, b = Split<axis=1, num_outputs=2>(r)
        m = Neg(b) j = Concat<axis=1>(m, a) t = Abs(j)
    }>(n, c, x)
}"""
)
CHOICE = parse_model(
    HEAD
    + """g (float[2,6] x, bool c) => (float[2,6] z) {
    z = If(c) <then_branch = t () => (float[2,6] p) { q = Relu(x) k = Exp(q) p = Sigmoid(k) },
        else_branch = e () => (float[2,6] o) { u = Neg(x) v = Abs(u) o = Tanh(v) }>
}"""
)
CALL = parse_model(
    """<ir_version: 9, opset_import: ["":18, "own":1]>
g (float[2,6] x) => (float[2,6] z) { z = own.f(x) }
<domain: "own", opset_import: ["":18]>
f (x) => (z) { r = Relu(x) s = Sigmoid(r) t = Exp(s) k = Constant<value_float=2.0>() z = Mul(t, k) }
"""
)
INSIDE = "kinds = [n.op_type for n in everything(proto)]"
ADAPTER_INSIDE = (
    ADAPTER.replace("kinds = [node.op_type for node in proto.graph.node]", INSIDE)
    + """

def everything(proto):
    graphs = [proto.graph, *proto.functions]
    for graph in graphs:
        for node in graph.node:
            yield node
            graphs += [a.g for a in node.attribute if a.HasField("g")]
"""
)


def inside(model: onnx.ModelProto) -> list[list[str]]:
    """What is in each body and function."""
    bodies = [a.g for node in model.graph.node for a in node.attribute if a.HasField("g")]
    return [[node.op_type for node in scope.node] for scope in (*model.functions, *bodies)]


@pytest.mark.parametrize(
    ("model", "fed", "culprits", "left"),
    [
        (LOOP, {"n": np.array(2), "c": np.array(True)}, ["Split"], [["Identity", "Split"]]),
        (CHOICE, {"c": np.array(True)}, ["Exp", "Tanh"], [["Exp"], ["Tanh"]]),
        (CALL, {}, ["Mul"], [["Constant", "Mul"]]),
        *map(
            thorough,
            [
                (LOOP, {"n": np.array(2), "c": np.array(True)}, ["Neg"], [["Identity", "Neg"]]),
                (CHOICE, {"c": np.array(True)}, ["Sigmoid"], [["Sigmoid"], ["Identity"]]),
                (CALL, {}, ["Sigmoid"], [["Sigmoid"]]),
            ],
        ),
    ],
)
def test_nodes_in_bodies_and_functions_are_left_out(
    model: onnx.ModelProto, fed: Any, culprits: list[str], left: list[list[str]], tmp_path: Path
) -> None:
    path = tmp_path / "wrong_engine.py"
    bug = f'if {{*{culprits}}} <= {{*kinds}}: raise ValueError("not known")'
    path.write_text(ADAPTER_INSIDE.replace("{bug}", bug), encoding="utf-8")
    found = search(model, {"x": numbers(2, 6), **fed}, str(path))
    assert found.failure.kind.startswith("refused")
    assert [sorted(each) for each in inside(found.after.model)] == [sorted(each) for each in left]
    assert found.is_finished
    assert found.after.expected is not None
    onnx.checker.check_model(found.after.model)


def test_a_hang_ends_and_is_told(tmp_path: Path) -> None:
    model = parse_model(HEAD + "g (float[1] x) => (float[1] z) { z = Neg(x) }")
    hangs = engine(tmp_path, "while True: pass")
    found = search(model, {"x": numbers(1)}, hangs, seconds_each=0.5)
    assert (found.failure.kind, kinds(found)) == ("hang", ["Neg"])


def test_what_is_to_be_refused_and_is_not() -> None:
    """The reference drops what lengths leave over (D6)."""
    inputs = {"x": numbers(7), "lengths": np.array([2, 3])}
    found = search(SHORT, inputs, "onnx-reference")
    assert found.failure.kind == "accepted"
    assert kinds(found) == ["Split"]
    assert found.after.expected is None
    assert "tensorsplit." not in found.script
    ran = subprocess.run(
        [sys.executable, "-"], input=found.script, capture_output=True, text=True, check=True
    )
    assert "WRONG: it should refuse" in ran.stdout


def test_an_engine_that_is_right_is_refused(tmp_path: Path) -> None:
    inputs = {"x": numbers(2, 6), "y": numbers(2, 6)}
    with refused("TS703", "nothing to reduce"):
        search(CHAIN, inputs, engine(tmp_path, ""))
    with refused("TS601", "nonsense"):
        search(CHAIN, inputs, "nonsense")
    with refused("TS703", "rewrites models"):
        search(CHAIN, inputs, "onnx-shape-inference")


def test_the_time_is_bounded(tmp_path: Path) -> None:
    inputs = {"x": numbers(2, 6), "y": numbers(2, 6)}
    found = search(CHAIN, inputs, engine(tmp_path, BUGS["wrong"]), seconds=1e-6)
    assert not found.is_finished
    assert found.after.size == found.before.size
