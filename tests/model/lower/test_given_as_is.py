"""Bodies and functions that give out what no node of theirs makes, which engines do wrong."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx.parser import parse_model

import tensorsplit as ts
from tests.model.lower.running import Runner, lowered_for

RANDOM = np.random.default_rng(22)
X, V = (RANDOM.uniform(1, 2, shape).astype(np.float32) for shape in ((2, 3), 3))
FEED = {"x": X, "v": V, "c": np.array(True)}
ROUNDS = 3

IF = (
    "y, w = If(c) <then_branch = t () => (float[2,3] {}, float[2,3] {}) {{ {} }},"
    " else_branch = e () => (float[2,3] o, float[2,3] p) {{ o = Abs(x) p = Neg(x) }}>"
)
LOOP = (
    "k = Neg(x) y, w = Loop(n, c, x{}) <body = b (int64 i, bool go, float[2,3] s{}) =>"
    " (bool go, {}) {{ {} }}>"
)
KEPT = LOOP.replace("bool go, {}) {{", "bool on, {}) {{ on = Identity(go)")
MOVED = ", k", ", float[2,3] t"
SCAN = (
    "u = Neg(v) y, w = Scan({}, x) <num_scan_inputs = 1, body = b ({}, float[3] r) =>"
    " (float[3] {}, float[3] {}) {{ {} }}>"
)
UNREAD = SCAN.replace("y, w", "q, w") + " y = Abs(w)"
ONE, TWO = ("v", "float[3] s"), ("v, u", "float[3] s, float[3] t")
SEQUENCE = (
    "k = Neg(x) q = SequenceConstruct(x, k) a, b = SequenceMap(q) <body = b (float[2,3] e) =>"
    " (float[2,3] {}, float[2,3] {}) {{ f = Neg(e) }}> y = ConcatFromSequence<axis = 0>(a)"
    " w = ConcatFromSequence<axis = 0>(b)"
)
TWICE = IF.format("a", "a", "a = Neg(x)")
BOTH, ORT = ("onnxruntime", "openvino"), ("onnxruntime",)
STAYS = ()

CASES: dict[str, tuple[str, tuple[str, ...]]] = {
    "If, an input": (IF.format("x", "a", "a = Neg(x)"), ORT),
    "If, what a node gives": ("k = Neg(x) " + IF.format("a", "k", "a = Neg(k)"), ORT),
    "If, an initializer": (IF.format("m", "a", "a = Neg(x)"), ORT),
    "If, twice": (TWICE, ORT),
    "If, twice, the first is read": (TWICE.replace("y, w", "y, u") + " w = Neg(x)", ORT),
    "If, twice, the last is read": (TWICE.replace("y, w", "u, w") + " y = Neg(x)", STAYS),
    "Loop, around": (LOOP.format("", "", "float[2,3] k, float[2,3] a", "a = Neg(s)"), BOTH),
    "Loop, around, as rows": (
        LOOP.format("", "", "float[2,3] a, float[2,3] k", "a = Neg(s)"),
        BOTH,
    ),
    "Loop, its number": (LOOP.format("", "", "float[2,3] a, int64 i", "a = Neg(s)"), BOTH),
    "Loop, exchanged": (LOOP.format(*MOVED, "float[2,3] t, float[2,3] s", ""), BOTH[1:]),
    "Loop, for both": (LOOP.format(*MOVED, "float[2,3] t, float[2,3] t", ""), BOTH[1:]),
    "Loop, its condition": (LOOP.format("", "", "float[2,3] a, bool go", "a = Neg(s)"), BOTH[1:]),
    "Loop, in its place": (
        LOOP.format("", "", "float[2,3] s, float[2,3] a", "a = Neg(s)"),
        BOTH[1:],
    ),
    "Loop, rows of it": (LOOP.format("", "", "float[2,3] a, float[2,3] s", "a = Neg(s)"), BOTH[1:]),
    "Loop, as a condition": (
        LOOP.format("", "", "float[2,3] a, float[2,3] b", "a = Neg(s) b = Abs(s)"),
        BOTH[1:],
    ),
    "Loop, twice": (KEPT.format("", "", "float[2,3] a, float[2,3] a", "a = Neg(s)"), STAYS),
    "Scan, a row": (SCAN.format(*ONE, "a", "r", "a = Add(s, r)"), BOTH),
    "Scan, in its place": (SCAN.format(*ONE, "s", "a", "a = Neg(r)"), BOTH),
    "Scan, as rows": (SCAN.format(*ONE, "a", "s", "a = Add(s, r)"), BOTH),
    "Scan, twice": (SCAN.format(*ONE, "a", "a", "a = Add(s, r)"), ORT),
    "Scan, around": (SCAN.format(*ONE, "u", "a", "a = Add(s, r)"), ORT),
    "Scan, unread": (UNREAD.format(*ONE, "s", "a", "a = Neg(r)"), BOTH[1:]),
    "SequenceMap, around": (SEQUENCE.format("k", "f"), ORT),
    "SequenceMap, twice": (SEQUENCE.format("f", "f"), ORT),
    "SequenceMap, in its place": (SEQUENCE.format("e", "f"), STAYS),
    "in a function": ("y, w = local.F(x, c)", ORT),
    "a function, an input": ("y, w = local.G(x)", ORT),
    "a function, twice": ("y, w = local.H(x)", ORT),
    "a function, called in part": ("y = local.I(x) w = Neg(y)", ORT),
}
FUNCTIONS = {
    "F": '<opset_import: ["": 17], domain: "local"> F(x, c) => (y, w) {'
    + IF.format("x", "a", "a = Neg(x)")
    + " }",
    "G": '<opset_import: ["": 17], domain: "local"> G(x) => (x, w) { w = Neg(x) }',
    "I": '<opset_import: ["": 17], domain: "local"> I(x) => (y, w) { y = Abs(x) w = Neg(x) }',
    "H": '<opset_import: ["": 17], domain: "local"> H(x) => (w, w) { w = Neg(x) }',
}
KINDS = {"Loop, its number": "int64", "Loop, its condition": "bool"}


def made_of(name: str) -> onnx.ModelProto:
    nodes, _ = CASES[name]
    functions = "".join(text for called, text in FUNCTIONS.items() if f"local.{called}" in nodes)
    made = parse_model(
        f"""<ir_version: 8, opset_import: ["": 17, "local": 1]>
        g (float[2,3] x, float[3] v, bool c) => (float y, {KINDS.get(name, "float")} w)
        <int64 n = {{{ROUNDS}}}, float[2,3] m = {{1, 2, 3, 4, 5, 6}}> {{ {nodes} }} {functions}"""
    )
    for output, given in zip(made.graph.output, ts.run(made, FEED).values(), strict=True):
        for axis in range(given.ndim):
            output.type.tensor_type.shape.dim.add(dim_param=f"{output.name}{axis}")
    return made


def said_of(made: onnx.ModelProto, target: Any) -> list[str]:
    """Return the severities of what is said of such bodies and functions."""
    found = ts.check(made, target=target)
    said = (
        "body that gives out",
        "body gives out an input",
        "has a function that gives out",
        "has a call",
    )
    return [each.severity for each in found if any(text in each.message for text in said)]


@pytest.mark.parametrize("target", [*BOTH, "portable"])
@pytest.mark.parametrize("name", CASES)
def test_bodies_give_out_what_their_own_nodes_make(name: str, target: Any, process: Runner) -> None:
    """onnxruntime refuses values from around, and gives memory that was never written for others.

    OpenVINO refuses inputs of a body that are outputs, too.
    """
    made, (_, wrong_in) = made_of(name), CASES[name]
    is_whole = name.startswith(("SequenceMap", "in a func", "a func")) and target != BOTH[0]
    is_wrong = target in wrong_in if target in BOTH else bool(wrong_in)
    assert bool(said_of(made, target)) == is_wrong or is_whole  # no such node is left then
    lowered = lowered_for(target, made) if is_wrong else ts.lower(made, target=target)
    assert not said_of(lowered, target)
    wanted = ts.run(made, FEED)
    for engine in BOTH if target == "portable" else [target]:
        (got,) = process.call([engine, lowered.SerializeToString(), [FEED], 2])
        for expected, given in zip(wanted.values(), got, strict=True):
            assert given.dtype == expected.dtype
            assert given.shape == expected.shape
            assert given.tobytes() == expected.tobytes()


@pytest.mark.parametrize("target", BOTH)
@pytest.mark.parametrize("name", [name for name, (_, wrong_in) in CASES.items() if not wrong_in])
def test_loops_may_carry_and_give_on_what_they_are_given(
    name: str, target: Any, process: Runner
) -> None:
    if name.startswith("SequenceMap") and target == BOTH[1]:
        pytest.skip("OpenVINO has no SequenceMap")
    made = made_of(name)
    (got,) = process.call([target, made.SerializeToString(), [FEED], 2])
    for expected, given in zip(ts.run(made, FEED).values(), got, strict=True):
        assert given.tobytes() == expected.tobytes()


def test_what_is_seen_of_a_body_is_not_written_where_the_target_takes_it() -> None:
    made = made_of("If, an input")
    assert ts.lower(made, target="openvino") == made
    lowered = ts.lower(made, target="onnxruntime")
    branch = lowered.graph.node[0].attribute[0].g
    assert [each.op_type for each in branch.node] == ["Neg", "Identity"]
    assert branch.output[0].name == branch.node[1].output[0]


LESS = {
    "If": "y = If(c) <then_branch = t () => (float e, float a, float a) { a = Neg(x) e = Abs(x) },"
    " else_branch = e () => (float f, float b, float b) { b = Abs(x) f = Neg(x) }>",
    "Loop": "y = Loop(n, c, x, x) <body = b (int64 i, bool go, float s, float t) =>"
    " (bool go, float t, float s) { }>",
    "Scan": "y = Scan(x, x) <num_scan_inputs = 1, body = b (float s, float r) =>"
    " (float s, float r) { }>",
}


@pytest.mark.parametrize("target", [*BOTH, "portable"])
@pytest.mark.parametrize("name", LESS)
def test_a_node_that_gives_less_than_its_body_is_refused(name: str, target: Any) -> None:
    made = parse_model(
        """<ir_version: 8, opset_import: ["": 17]> g (float[2,3] x, int64 n, bool c) => (float y)"""
        f" {{ {LESS[name]} }}"
    )
    assert "TS502" in [each.code for each in ts.check(made, target=target)]


def test_a_short_call_by_a_function_that_nothing_calls_is_left(process: Runner) -> None:
    made = parse_model(
        """<ir_version: 8, opset_import: ["": 17, "local": 1]>
        g (float[2,3] x) => (float[2,3] y) { y, w = local.I(x) }
        <opset_import: ["": 17, "local": 1], domain: "local"> Q(x) => (y) { y = local.I(x) }"""
        + FUNCTIONS["I"]
    )
    assert not said_of(made, "onnxruntime")
    lowered = ts.lower(made, target="onnxruntime")
    assert [node.op_type for node in lowered.graph.node] == ["I"]
    (got,) = process.call(["onnxruntime", made.SerializeToString(), [{"x": X}], 2])
    assert got[0].tobytes() == np.abs(X).tobytes()
