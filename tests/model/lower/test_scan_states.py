"""Scans and Loops for OpenVINO: they carry more.

Scans carry what their bodies use, and the size of rows that nothing reads; Loops carry what their
bodies would overwrite. A Scan that carries rows, or the same thing twice, has copies of them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import onnx
import pytest
from onnx.parser import parse_model

import tensorsplit as ts
from tensorsplit.model.lower import lower_graph
from tensorsplit.model.reading import open_model
from tests.model.build import nodes_of
from tests.model.lower.running import OwnEngine, Runner, lowered_for
from tests.refusals import refused

RANDOM = np.random.default_rng(8)
X = RANDOM.uniform(1, 2, (3, 6)).astype(np.float32)
W = RANDOM.uniform(1, 2, 6).astype(np.float32)
HALVES = "a, b = Split <axis = 0> (z, l)"
SCAN = "Scan (x) <num_scan_inputs = 1, body = s (float[6] row) => (float[p] a) {{ {} }}>"

CASES = {
    "an input": "y = " + SCAN.format(f"z = Add(row, w) {HALVES}"),
    "what a node gives": "v = Neg(w) u = Neg(v) y = " + SCAN.format(f"z = Add(row, u) {HALVES}"),
    "in a branch": "y = " + SCAN.format(
        "a = If(c) <then_branch = t () => (float[p] r) { z = Add(row, w) r, q = Split<axis = 0>"
        "(z, l) }, else_branch = e () => (float[q] u) { u = Neg(w) }>"
    ),
    "beside what is carried": "last, y = Scan (w, x) <num_scan_inputs = 1, body = s (float[6] v,"
    f" float[6] row) => (float[6] v2, float[p] a) {{ v2 = Identity(w) z = Add(row, v) {HALVES} }}>",
    "the body gives it out": "k, y = Scan (x) <num_scan_inputs = 1, body = s (float[6] row)"
    f" => (float[6] w, float[p] a) {{ z = Add(row, w) {HALVES} }}>",
    "in a loop": "v = Loop(one, , w) <body = b (int64 i, bool g, float[6] t) => (bool h, float[6]"
    " o) { h = Identity(g) o = Identity(t) }> y = " + SCAN.format(f"z = Add(row, v) {HALVES}"),
    "a function": "y = local.F(x, w, l)",
}  # fmt: skip
FUNCTION = '<opset_import: ["": 18], domain: "local"> F(x, w, l) => (y) { y = '
FUNCTION += SCAN.format(f"z = Add(row, w) {HALVES}") + " }"


def with_rows(text: str) -> onnx.ModelProto:
    """A model of this text, with at least one row in T: without any, Scans become Loops."""
    model = parse_model(text)
    for end in (*model.graph.input, *model.graph.output):
        for dim in end.type.tensor_type.shape.dim:
            if dim.dim_param == "T":
                dim.dim_param = "T + 1"
    return model


def made_of(body: str) -> onnx.ModelProto:
    """A model that adds a vector to each row, and gives the first part of what comes out."""
    return with_rows(
        '<ir_version: 8, opset_import: ["": 18, "local": 1]> g (float[T,6] x, float[6] w,'
        f" int64[2] l, bool c) => (float[T,K] y) <int64 one = {{1}}> {{ {body} }}"
        f" {FUNCTION if 'local' in body else ''}"
    )


@pytest.mark.filterwarnings("ignore:.*cut to 32 bits:tensorsplit.SplitWarning")
@pytest.mark.parametrize("name", CASES)
def test_openvino_runs_a_scan_that_uses_values_from_around_it(name: str, process: Runner) -> None:
    model = made_of(CASES[name])
    assert any("the body of a Scan" in str(each) for each in ts.check(model, target="openvino"))
    lowered = lowered_for("openvino", model)
    assert not [each for each in ts.check(lowered, target="openvino") if each.severity == "error"]
    feeds = [
        {"x": X, "w": W, "l": np.array(lengths), "c": np.array(True)}
        for lengths in ([2, 4], [2, 5], [-1, 7])
    ]
    got, *refusals = process.call(["openvino", lowered.SerializeToString(), feeds, 2])
    assert np.array_equal(got[-1], (X + W)[:, :2])
    assert all(isinstance(each, str) for each in refusals), "illegal, and not refused"
    assert np.array_equal(ts.run(lowered, feeds[0])["y"], (X + W)[:, :2])


def test_what_a_scan_carries_is_split_with_a_guard_at_once() -> None:
    """That its lengths fit is no longer known."""
    body = SCAN.format("p = Split <axis = 0> (v, n) z = Add(row, p) a = Neg(z)")
    made = made_of(f"v = Neg(w) n = Shape(v) y = {body}")
    lowered = ts.lower(made, target="openvino")
    assert ts.lower(lowered, target="openvino") == lowered
    feed = {"x": X, "w": W, "l": np.array([6, 0]), "c": np.array(True)}
    assert np.array_equal(ts.run(lowered, feed)["y"], W - X)


OLD = """<ir_version: 4, opset_import: ["": OPSET]> g (float[SHAPE] x, float[6] w) =>
    (float[SHAPE] y) { y = Scan(GIVEN) <num_scan_inputs = 1, body = s (float[6] row) =>
    (float[6] a) { a = Add(row, w) }> }"""


def test_scans_carry_what_they_use_from_opset_9_on() -> None:
    made = with_rows(OLD.replace("OPSET", "9").replace("SHAPE", "T,6").replace("GIVEN", "x"))
    lowered = ts.lower(made, target="openvino")
    assert not any("no batches" in each.fix for each in ts.check(made, target="openvino"))
    (scan,) = [each for each in lowered.graph.node if each.op_type == "Scan"]
    assert list(scan.input) == ["w", "x"]
    assert np.array_equal(ts.run(lowered, {"x": X, "w": W})["y"], X + W)


def test_a_scan_with_batches_stays_and_has_to_be_written_in_another_way_first() -> None:
    made = parse_model(OLD.replace("OPSET", "8").replace("SHAPE", "2,T,6").replace("GIVEN", ", x"))
    (found,) = ts.check(made, target="openvino")
    assert (found.code, found.node) == ("TS841", "graph/Scan[0]")
    assert found.fix.startswith(
        "write it as a Scan of opset 9 or newer, which has no batches, then"
    )
    opened = open_model(made)
    report = lower_graph(opened, "openvino")
    assert (report.changes, len(report.notes)) == ([], 1)
    assert found.message.startswith(report.notes[0])
    assert ts.lower(made, target="openvino") == made


def test_a_scan_that_uses_constants_only_stays_as_it_is() -> None:
    body = SCAN.format("k = Identity(one) t = Cast<to = 1>(k) z = Add(row, t) a = Neg(z)")
    made = made_of(f"y = {body}")
    assert ts.lower(made, target="openvino") == made
    assert ts.check(made, target="openvino") == []


@pytest.mark.parametrize("target", ["openvino", "portable"])
def test_what_a_scan_uses_is_found_and_what_it_carries_is_no_fault(target: Any) -> None:
    body = SCAN.format("a = Add(row, w)")
    (found,) = ts.check(made_of(f"y = {body}"), target=target)
    assert (found.code, found.node) == ("TS841", "graph/Scan[0]")
    carried = made_of(
        "w2, y = Scan (w, x) <num_scan_inputs = 1, body = s (float[6] v, float[6] row)"
        " => (float[6] v2, float[6] a) { v2 = Identity(v) a = Add(row, v) }>"
    )
    assert ts.check(carried, target=target) == []


def test_an_if_in_a_scan_is_no_fault() -> None:
    """OpenVINO runs it, unless it uses what is around the Scan."""
    body = (
        "m = ReduceSum<keepdims = 0>(row) n = Identity(m) k = Less(m, n) a = If(k) <then_branch ="
        " t () => (float[6] r) { r = Neg(row) }, else_branch = e () => (float[6] u) { u = Abs(row)"
        " }>"
    )
    assert ts.check(made_of(f"y = {SCAN.format(body)}"), target="openvino") == []


def test_a_scan_keeps_what_is_noted_of_it() -> None:
    made = made_of("y = " + SCAN.format("a = Add(row, w)"))
    made.graph.node[0].name = "each row"
    made.graph.node[0].doc_string = "adds"
    made.graph.node[0].metadata_props.add(key="layer", value="3")
    lowered = ts.lower(made, target="openvino")
    (scan,) = [each for each in nodes_of(lowered.graph) if each.op_type == "Scan"]
    assert (scan.name, scan.doc_string, scan.metadata_props[0].value) == ("each row", "adds", "3")


ROWS = """<ir_version: 8, opset_import: ["": 18]> g (float[T,6] x, float[6] w, bool c) =>
    (float[T,2] y) <int64[3] l = {2, 3, 1}, float zero = {0}, float[6] v = {1, 2, 3, 4, 5, 6}>
    { BODY }"""
PARTS = "b, a, d = Split<axis = 0>(h, l)"
UNREAD = {
    "a constant": f"y = Scan(x) <num_scan_inputs = 1, body = s (float[6] row) => (float[2] b) {{"
    f" h = Identity(v) {PARTS} }}>",
    "a state that stays": f"k, y = Scan(w, x) <num_scan_inputs = 1, body = s (float[6] h, float[6]"
    f" row) => (float[6] h2, float[2] b) {{ h2 = Identity(h) {PARTS} }}>",
    "a state that changes": f"k, y = Scan(w, x) <num_scan_inputs = 1, body = s (float[6] h,"
    f" float[6] row) => (float[6] h2, float[2] b) {{ h2 = Add(h, v) {PARTS} }}>",
    "rows that only an unused output reads": f"y, k = Scan(x) <num_scan_inputs = 1, body = s"
    f" (float[6] row) => (float[2] b, float[6] n) {{ n = Neg(row) h = Identity(v) {PARTS} }}>",
    "rows that only an If without use reads": f"y = Scan(x) <num_scan_inputs = 1, body = s"
    f" (float[6] row) => (float[2] b) {{ z = ReduceMax<keepdims = 0>(row) g = Less(zero, z)"
    f" u = If(g) <then_branch = t () => (float[6] r) {{ r = Neg(row) }}, else_branch = e () =>"
    f" (float[6] q) {{ q = Abs(v) }}> h = Identity(v) {PARTS} }}>",
    "rows that are carried for nothing": f"k, y = Scan(w, x) <num_scan_inputs = 1, body = s"
    f" (float[6] n, float[6] row) => (float[6] m, float[2] b) {{ m = Neg(row) h = Identity(v)"
    f" {PARTS} }}>",
    "rows that are carried, and read for nothing": f"k, y = Scan(w, x) <num_scan_inputs = 1, body ="
    f" s (float[6] n, float[6] row) => (float[6] m, float[2] b) {{ o = Neg(n) m = Neg(row)"
    f" h = Identity(v) {PARTS} }}> u = Neg(k)",
    "rows of two tensors": f"y = Scan(x, x) <num_scan_inputs = 2, body = s (float[6] row, float[6]"
    f" second) => (float[2] b) {{ h = Identity(v) {PARTS} }}>",
}  # fmt: skip
V = np.arange(1, 7, dtype=np.float32)


@pytest.mark.parametrize("target", ["openvino", "portable"])
@pytest.mark.parametrize("name", UNREAD)
def test_rows_that_the_body_does_not_read_are_counted(
    name: str, target: Any, process: Runner
) -> None:
    model = with_rows(ROWS.replace("BODY", UNREAD[name]))
    (found,) = [each for each in ts.check(model, target=target) if "rows" in each.message]
    assert (found.code, found.node) == ("TS843", "graph/Scan[0]")
    lowered = lowered_for(target, model)
    assert not [each for each in ts.check(lowered, target=target) if "rows" in each.message]
    feeds = [{"x": X[:rows], "w": W, "c": np.array(True)} for rows in (3, 1)]
    for feed, (got,) in zip(
        feeds, process.call(["openvino", lowered.SerializeToString(), feeds, 2]), strict=True
    ):
        start = W if "state" in name else V
        steps = V if name == "a state that changes" else 0 * V
        wanted, now = [], start
        for _ in feed["x"]:
            wanted.append(now[:2])
            now = now + steps
        assert np.array_equal(got, np.array(wanted))
        assert np.array_equal(ts.run(lowered, feed)["y"], np.array(wanted))


@pytest.mark.parametrize("is_constant", [True, False])
def test_scalar_rows_that_the_body_does_not_read_are_counted(
    is_constant: bool, process: Runner
) -> None:
    """OpenVINO finds no size of a scalar that is a row of a constant."""
    given = "float[3] x = {1, 2, 3}" if is_constant else "float zero = {0}"
    model = parse_model(
        f"""<ir_version: 8, opset_import: ["": 18]> g ({"" if is_constant else "float[N] x"}) =>
        (float[T,2] y) <float[6] v = {{1, 2, 3, 4, 5, 6}}, int64[3] l = {{2, 3, 1}}, {given}> {{
        y = Scan(x) <num_scan_inputs = 1, body = s (float row) => (float[2] b) {{
        h = Identity(v) {PARTS} }}> }}"""
    )
    lowered = lowered_for("openvino", model)
    feed = {} if is_constant else {"x": X[:, 0]}
    ((got,),) = process.call(["openvino", lowered.SerializeToString(), [feed], 1])
    assert np.array_equal(got, [V[:2]] * 3)


@pytest.mark.filterwarnings("ignore:.*cut to 32 bits:tensorsplit.SplitWarning")
@pytest.mark.parametrize("name", [*CASES, *UNREAD])
def test_what_a_body_takes_and_gives_has_a_type(name: str) -> None:
    body = UNREAD.get(name)
    made = made_of(CASES[name]) if body is None else with_rows(ROWS.replace("BODY", body))
    lowered = ts.lower(made, target="openvino")
    (scan,) = [each for each in nodes_of(lowered.graph) if each.op_type == "Scan"]
    (inner,) = [each.g for each in scan.attribute if each.name == "body"]
    assert [len(inner.input), len(inner.output)] == [len(scan.input), len(scan.output)]
    for end in (*inner.input, *inner.output):
        assert end.type.tensor_type.elem_type, end.name


@pytest.mark.parametrize(
    ("made", "became"),
    [
        (made_of(f"y = {SCAN.format('a = Add(row, w)')}"), "what its body uses"),
        (with_rows(ROWS.replace("BODY", UNREAD["a constant"])), "the size of its rows"),
    ],
)
def test_the_report_says_what_a_scan_carries(made: onnx.ModelProto, became: str) -> None:
    (change,) = lower_graph(open_model(made), "openvino").changes
    assert (change.node, change.operator) == ("graph/Scan[0]", "Scan")
    assert change.became == f"the same, with {became} carried"
    assert change.reason.startswith("openvino")


READ = {
    "by a state": "h2 = Add(h, row) u = Identity(v)",
    "by a branch": "h2 = Identity(h) m = ReduceMax<keepdims = 0>(h) g = Less(zero, m) u = If(g)"
    " <then_branch = t () => (float[6] r) { r = Neg(row) }, else_branch = e () => (float[6] q)"
    " { q = Abs(v) }>",
}


@pytest.mark.parametrize("name", READ)
def test_rows_that_a_state_or_a_branch_reads_are_no_fault(name: str) -> None:
    body = "k, y = Scan(w, x) <num_scan_inputs = 1, body = s (float[6] h, float[6] row) =>"
    body += f" (float[6] h2, float[2] b) {{ {READ[name]} b, a, d = Split<axis = 0>(u, l) }}>"
    model = with_rows(ROWS.replace("BODY", body))
    assert not [each for each in ts.check(model, target="openvino") if "rows" in each.message]


def softmax(data: Any) -> Any:
    powers = np.exp(data - data.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True)


def normal(data: Any, epsilon: float = 1e-5) -> Any:
    spread = data - data.mean(-1, keepdims=True)
    return spread / np.sqrt((spread**2).mean(-1, keepdims=True) + epsilon)


LOOP = """<ir_version: 8, opset_import: ["": 18]> g (float[D,6] x, float[6] one) => (float[A,B,C] y)
    <int64 n = {4}, int64[2] halves = {2, 1}, int64[1] first = {0}, int64[1] last = {-1},
    float small = {0.00001}, float[2] scale = {2, 2}, float[2] shift = {0.5, 0.5}>
    { p, q = Split<axis = 0>(x, halves)
      k, y = Loop(n, , one) <body = b (int64 i, bool c, float[6] s) => (bool d, float[6] t,
      float[?,?] r) { d = Identity(c) t = Neg(s) BODY }> }"""
OVERWRITTEN: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "softmax": ("r = Softmax<axis = 1>(p)", lambda x: softmax(x[:2])),
    "normalization": (
        "r = LayerNormalization<axis = 1>(p, one)",
        lambda x: normal(x[:2]),
    ),
    "a view": (
        "u = Unsqueeze(p, first) v = Softmax<axis = 2>(u) r = Squeeze(v, first)",
        lambda x: softmax(x[:2]),
    ),
    "a part": (
        "u, v = Split<num_outputs = 2>(p) r = Softmax<axis = 1>(v)",
        lambda x: softmax(x[1:2]),
    ),
    "softmax of several nodes": (
        "m = ReduceMax(p, last) u = Sub(p, m) e = Exp(u) g = ReduceSum(e, last) r = Div(e, g)",
        lambda x: softmax(x[:2]),
    ),
    "softmax of three nodes": (
        "e = Exp(p) h = Identity(e) g = ReduceSum(h, last) r = Div(e, g)",
        lambda x: softmax(x[:2]),
    ),
    "normalization of several nodes": (
        (
            "m = ReduceMean(p, last) u = Sub(p, m) v = Mul(u, u) w = ReduceMean(v, last)"
            " e = Add(w, small) g = Sqrt(e) h = Div(u, g) r = Mul(h, one)"
        ),
        lambda x: normal(x[:2]),
    ),
    "normalization of channels": (
        "u = Unsqueeze(p, first) v = InstanceNormalization(u, scale, shift) r = Squeeze(v, first)",
        lambda x: normal(x[:2]) * 2 + 0.5,
    ),
    "normalization by mean and variance": (
        "v = MeanVarianceNormalization<axes = [1]>(p) r = Exp(v)",
        lambda x: np.exp(normal(x[:2], 1e-9)),
    ),
    "some elements": (
        (
            "u = Gather<axis = 0>(p, first) v = Add(u, u) at = Unsqueeze(first, first)"
            " r = ScatterND(p, at, v)"
        ),
        lambda x: np.stack([x[0] * 2, x[1]]),
    ),
    "elements along an axis": (
        (
            "u = Gather<axis = 0>(p, first) v = Add(u, u) w = Cast<to = 7>(u) at = Sub(w, w)"
            " r = ScatterElements<axis = 0>(p, at, v)"
        ),
        lambda x: np.stack([x[0] * 2, x[1]]),
    ),
    "rotated": (
        (
            "u = Unsqueeze(p, first) v = Unsqueeze(u, first)"
            " w = RotaryEmbedding(v, fixed, fixed) r = Squeeze(w)"
        ),
        lambda x: np.concatenate([x[:2, :3] - x[:2, 3:], x[:2, 3:] + x[:2, :3]], -1) / 2,
    ),
    "what is joined": (
        "u = Abs(s) v = Unsqueeze(u, first) w = Concat<axis = 0>(q, v) r = Exp(w)",
        lambda x: np.exp(np.stack([x[2], np.ones(6)])),
    ),
    "a view of what is joined": (
        "w = Concat<axis = 0>(p, q) u = Transpose(w) v = Relu(u) g = Neg(v) r = Transpose(g)",
        lambda x: -np.maximum(x, 0),
    ),
    "joined by the second of two": (
        "w = Concat<axis = 0>(q, p) r = Mul(one, w)",
        lambda x: x[[2, 0, 1]],
    ),
    "in a loop": (
        (
            "v, r = Loop(n, , s) <body = b2 (int64 e, bool f, float[6] g) => (bool h, float[6] l,"
            " float[?,?] m) { h = Identity(f) m = Softmax<axis = 1>(q) l = Neg(g) }>"
        ),
        lambda x: softmax(x[2:])[[0] * 4],
    ),
}


@pytest.mark.parametrize("name", OVERWRITTEN)
def test_a_loop_overwrites_nothing_that_a_later_round_reads(name: str, process: Runner) -> None:
    body, calculated = OVERWRITTEN[name]
    text = LOOP.replace("BODY", body)
    if name == "in a loop":  # it gives a tensor for each round of each round
        text = text.replace("float[A,B,C]", "float[A,B,C,D]").replace(
            "float[?,?] r)", "float[?,?,?] r)"
        )
    if name == "rotated":
        text = text.replace('"": 18', '"": 23').replace(
            "int64[1] first", "float[1,2,3] fixed = {0.5,0.5,0.5,0.5,0.5,0.5}, int64[1] first"
        )
    model = parse_model(text)
    assert any("is written over" in str(each) for each in ts.check(model, target="openvino"))
    lowered = lowered_for("openvino", model)
    assert not any("is written over" in str(each) for each in ts.check(lowered, target="openvino"))
    feed = {"x": X, "one": np.ones(6, np.float32)}
    (got,) = process.call(["openvino", lowered.SerializeToString(), [feed], 2])
    for each in got[0]:
        wanted = calculated(X)
        np.testing.assert_allclose(each.reshape(wanted.shape), wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    "body",
    [
        "r = Neg(p)",  # it is not done in place
        "u = Neg(p) r = Softmax<axis = 1>(u)",  # not of what is around
        "u = Unsqueeze(s, first) r = Softmax<axis = 1>(u)",  # of what is carried
        "w = Concat<axis = 1>(p, p) r = Neg(w)",  # rows of the parts are apart
        "w = Concat<axis = 0>(p, q) u = Abs(q) v = Neg(w) r = Concat<axis = 0>(u, v)",
        "w = Concat<axis = 0>(p, q) u = Exp(w) v = Neg(w) r = Add(u, v)",  # two read it
        "w = Concat<axis = 0>(p, q) r = Relu(w)",  # a second time gives the same
        "r = Concat<axis = 0>(p, q) w = Exp(r) t = ReduceMax<keepdims = 0>(w, first)",  # given out
        "e = Exp(p) g = ReduceSum(e, last) r = Mul(e, g)",  # no quotient
        "e = Exp(p) g = ReduceSum(e, last) r = Div(g, e)",  # the other way round
        "e = Exp(p) g = ReduceMax(e, last) r = Div(e, g)",  # not by the sum
        "e = Exp(p) u = Abs(p) g = ReduceSum(u, last) r = Div(e, g)",  # by that of something else
        "e = Exp(p) g = ReduceSum(e) r = Div(e, g)",  # by that of all axes
        "m = ReduceMean(p, last) u = Sub(p, m) r = Div(u, small)",  # not by a root
        "m = ReduceMax(p, last) u = Sub(p, m) r = Exp(u)",  # no quotient
        "m = ReduceMean(p, last) u = Sub(p, m) r = Exp(u)",
        "u = Abs(p) m = ReduceMean(u, last) v = Sub(p, m) r = Div(v, m)",  # another mean
        "m = ReduceMean(p, last) u = Add(p, m) r = Div(u, m)",  # a sum
        "m = ReduceMean(p, last) u = Sub(p, m) r = Div(m, u)",  # the other way round
    ],
)
def test_a_loop_that_overwrites_nothing_stays(body: str) -> None:
    text = LOOP.replace("t = Neg(s) BODY" if "t = " in body else "BODY", body)
    model = parse_model(text.replace("float[D", "float[3"))
    assert not any("is written over" in str(each) for each in ts.check(model, target="openvino"))
    assert ts.lower(model, target="openvino") == model


@pytest.mark.parametrize(("opset", "is_carried"), [(13, False), (16, True)])
def test_a_scan_carries_only_types_that_it_takes(opset: int, is_carried: bool) -> None:
    """Its body may use others: bfloat16 before opset 16."""
    model = parse_model(
        f'<ir_version: 8, opset_import: ["": {opset}]> g (float[3, 6] x, bfloat16[6] w) =>'
        " (float[3, 6] y) { y = Scan(x) <num_scan_inputs = 1, body = s (float[6] row) =>"
        " (float[6] a) { v = Cast<to = 1>(w) a = Add(row, v) }> }"
    )
    if not is_carried:
        with refused("TS513", "tensor(bfloat16)", "Scan can't carry at opset 13", "newer opset"):
            ts.lower(model, target="openvino")
        return
    made = ts.lower(model, target="openvino")
    onnx.checker.check_model(made, full_check=True)
    (scan,) = (each for each in made.graph.node if each.op_type == "Scan")
    assert list(scan.input) == ["w", "x"]


DELAYED = """<ir_version: 8, opset_import: ["": OPSET]> g (TYPE[T,4] x, TYPE[4] s, TYPE[4] s2) =>
    (TYPE[4] k, TYPE[4] k2, TYPE[T,2] y, TYPE[T,4] y2, TYPE[T,4] z)
    { k, k2, y, y2, z = Scan(s, s2, x) <num_scan_inputs = 1, body = b (TYPE[4] h, TYPE[4] h2,
      TYPE[4] row) => (TYPE[4] n, TYPE[4] n2, TYPE[2] p, TYPE[4] o, TYPE[4] d)
      { d = Add(row, row) BODY p, q = Split<axis = 0SPLIT>(h) o = Identity(h2) }> }"""
SHARED: dict[str, tuple[str, Callable[[Any, Any, Any], tuple[Any, Any]]]] = {
    "a row": ("n = Identity(row) n2 = Add(h2, row)", lambda h, h2, row: (row, h2 + row)),
    "a view": ("n = Transpose(row) n2 = Add(h2, h)", lambda h, h2, row: (row, h2 + h)),
    "a row twice": ("n = Identity(row) n2 = Identity(row)", lambda h, h2, row: (row, row)),
    "a delay of two": ("n = Identity(row) n2 = Identity(h)", lambda h, h2, row: (row, h)),
    "in turns": ("n = Identity(h2) n2 = Identity(h)", lambda h, h2, row: (h2, h)),
    "one for both": ("n = Neg(row) n2 = Identity(n)", lambda h, h2, row: (-row, -row)),
    "made twice": ("n = Add(row, row) n2 = Add(h, h2)", lambda h, h2, row: (row + row, h + h2)),
    "split and joined": (
        "e, f = Split<axis = 0SPLIT>(row) n = Concat<axis = 0>(e, f) n2 = Add(h2, row)",
        lambda h, h2, row: (row, h2 + row),
    ),
}


def delayed(body: str, opset: int = 18, element_type: str = "float") -> onnx.ModelProto:
    """A model whose states are split, in a Scan with this body."""
    count = ", num_outputs = 2" if opset >= 18 else ""
    text = DELAYED.replace("OPSET", str(opset)).replace("BODY", body).replace("SPLIT", count)
    return with_rows(text.replace("TYPE", element_type))


@pytest.mark.filterwarnings("ignore:.*int64 and uint64 in int32:tensorsplit.SplitWarning")
@pytest.mark.parametrize(
    ("opset", "element_type"), [(9, "float"), (18, "float"), (18, "int32"), (10, "int64")]
)
@pytest.mark.parametrize("name", SHARED)
def test_a_scan_carries_each_thing_in_memory_of_its_own(
    name: str, opset: int, element_type: str, process: Runner
) -> None:
    """OpenVINO gives the body the row of its own round for the one before, without an error."""
    body, step = SHARED[name]
    model = delayed(body, opset, element_type)
    (found,) = [each for each in ts.check(model, target="openvino") if "memory" in each.message]
    assert (found.code, found.node) == ("TS843", "graph/Scan[0]")
    lowered = lowered_for("openvino", model)
    assert not [each for each in ts.check(lowered, target="openvino") if "memory" in each.message]
    dtype = onnx.helper.tensor_dtype_to_np_dtype(model.graph.input[0].type.tensor_type.elem_type)
    x, h, h2 = (each.astype(dtype) for each in (np.arange(12).reshape(3, 4), V[2:], V[:4] * 3))
    feed = {"x": x, "s": h, "s2": h2}
    parts, seen = [], []
    for row in x:
        parts.append(h[:2])
        seen.append(h2)
        h, h2 = step(h, h2, row)
    wanted = [h, h2, np.array(parts), np.array(seen), x + x]
    (got,) = process.call(["openvino", lowered.SerializeToString(), [feed], 2])
    for one, other, again in zip(got, ts.run(lowered, feed).values(), wanted, strict=True):
        assert np.array_equal(one, again)
        assert np.array_equal(other, again)


@pytest.mark.parametrize(
    "body",
    [
        "n = Identity(h) n2 = Add(h2, row)",  # each in its place
        "n = Neg(row) n2 = Add(h, h2)",
        "n = Add(h, row) n2 = Neg(h2)",
    ],
)
def test_a_scan_that_shares_no_memory_stays(body: str) -> None:
    model = delayed(body)
    assert not [each for each in ts.check(model, target="openvino") if "memory" in each.message]
    assert ts.lower(model, target="openvino") == model


IN_LOOP = """k, k2, y = Loop(three, , s, s2)
    <body = b (int64 i, bool c, float[2,4] h, float[2,4] h2)
    => (bool d, float[2,4] n, float[2,4] n2, float[2,4] o) { d = Identity(c) o = Neg(h2) BODY }>"""
IN_SCAN = """k, k2, y = Scan(s, s2, x) <num_scan_inputs = 1, body = b (float[2,4] h, float[2,4] h2,
    float[2,4] row) => (float[2,4] n, float[2,4] n2, float[2,4] o) { o = Neg(h2) BODY }>"""
NORMAL = """m = ReduceMean(h, last) u = Sub(h, m) v = Mul(u, u) w = ReduceMean(v, last)
    e = Add(w, small) g = Sqrt(e) """


def swish(data: Any) -> Any:
    return data / (1 + np.exp(-data))


CALCULATED: dict[str, tuple[str, str, Callable[[Any, Any, Any], tuple[Any, Any]], bool]] = {
    "a state where another was": (
        *(IN_LOOP, "n = Tanh(h2) n2 = Softmax(h)"),
        lambda h, h2, _: (np.tanh(h2), softmax(h)),
        True,
    ),
    "by several nodes": (
        *(IN_LOOP, NORMAL + "f = Div(u, g) n2 = Mul(f, three_) n = Tanh(h2)"),
        lambda h, h2, _: (np.tanh(h2), normal(h) * 3),
        True,
    ),
    "in its own place": (
        *(IN_LOOP, "n = Softmax(h) n2 = Tanh(h2)"),
        lambda h, h2, _: (softmax(h), np.tanh(h2)),
        False,
    ),
    "by elements": (
        *(IN_LOOP, "n = Tanh(h2) n2 = Sub(h, half)"),
        lambda h, h2, _: (np.tanh(h2), h - 0.5),
        False,
    ),
    "what another node reads": (
        *(IN_LOOP, "n2 = Softmax(h) n = Tanh(n2)"),
        lambda h, _, __: (np.tanh(softmax(h)), softmax(h)),
        True,
    ),
    "where nothing reads the state": (
        IN_LOOP.replace("o = Neg(h2) BODY", "BODY o = Neg(n2)"),
        "n2 = Softmax(h) n = Tanh(n2)",
        lambda h, _, __: (np.tanh(softmax(h)), softmax(h)),
        False,
    ),
    "of a state that another node reads": (
        *(IN_LOOP, "n = Sub(h, half) n2 = Softmax(h)"),
        lambda h, _, __: (h - 0.5, softmax(h)),
        False,
    ),
    "from what another node reads": (
        *(IN_LOOP, "m = Softmax(h) n2 = Sub(m, half) n = Tanh(m)"),
        lambda h, _, __: (np.tanh(softmax(h)), softmax(h) - 0.5),
        False,
    ),
    "of a row that another node reads": (
        *(IN_SCAN, "n2 = Softmax(row) n = Sub(h, row)"),
        lambda h, _, row: (h - row, softmax(row)),
        False,
    ),
    "in a Scan": (
        *(IN_SCAN, "n2 = Softmax(h) n = Sub(n2, row)"),
        lambda h, _, row: (softmax(h) - row, softmax(h)),
        True,
    ),
    "where a row was, by several nodes": (
        *(IN_SCAN, "g = Sigmoid(row) n2 = Mul(row, g) n = Tanh(h)"),
        lambda h, _, row: (np.tanh(h), swish(row)),
        True,
    ),
    "a part of what is joined": (
        IN_SCAN,
        """j = Concat<axis = 0>(h, row) m = Softmax(j) n2, e = Split<axis = 0, num_outputs = 2>(m)
        n = Tanh(n2)""",
        lambda h, _, __: (np.tanh(softmax(h)), softmax(h)),
        True,
    ),
}


@pytest.mark.parametrize("name", CALCULATED)
def test_states_are_calculated_in_memory_of_their_own(
    name: str, rng: np.random.Generator, process: Runner
) -> None:
    """OpenVINO writes some results over what they are calculated from."""
    loop, body, step, is_found = CALCULATED[name]
    rows = ", float[3,2,4] x" if loop == IN_SCAN else ""
    model = parse_model(
        f"""<ir_version: 8, opset_import: ["": 18]> g (float[2,4] s, float[2,4] s2{rows}) =>
        (float[2,4] k, float[2,4] k2, float[3,2,4] y) <int64 three = {{3}}, int64[1] last = {{-1}},
        float small = {{0.00001}}, float three_ = {{3}}, float half = {{0.5}}>
        {{ {loop.replace("BODY", body)} }}"""
    )
    found = [each for each in ts.check(model, target="openvino") if "memory" in each.message]
    assert len(found) == is_found
    lowered = lowered_for("openvino", model)
    assert not [each for each in ts.check(lowered, target="openvino") if "memory" in each.message]
    shapes = {"s": (2, 4), "s2": (2, 4)} | ({"x": (3, 2, 4)} if rows else {})
    feed = {key: rng.uniform(-1, 1, shape).astype(np.float32) for key, shape in shapes.items()}
    h, h2, seen = feed["s"], feed["s2"], []
    for row in feed.get("x", range(3)):
        before = h2
        h, h2 = step(h, h2, row)
        seen.append(-h2 if "o = Neg(n2)" in loop else -before)
    (got,) = process.call(["openvino", lowered.SerializeToString(), [feed], 3])
    for one, wanted in zip(got, [h, h2, np.array(seen)], strict=True):
        np.testing.assert_allclose(one, wanted, rtol=1e-4, atol=1e-5)


WINDOW = """<ir_version: 8, opset_import: ["": OPSET]> g (float[T,ROW] x, float[STATE] s) =>
    (float[STATE] k, float[T,OLD] y) <int64[2] lengths = {1, 2},
    int64[2] ones = {1, 1}, int64[1] at = {AXIS}>
    { k, y = Scan(s, x) <num_scan_inputs = 1, body = b (float[STATE] h, float[ROW] row) =>
      (float[STATE] n, float[OLD] old)
      { old, rest = Split<axis = AXIS>(h, lengths) new = Unsqueeze(row, at) BODY }> }"""
Join: TypeAlias = Callable[[Any, Any], tuple[Any, Any]]
JOINED: dict[str, tuple[tuple[int, ...], int, str, Join]] = {
    "rows": ((3, 2), 0, "n = Concat<axis = 0>(rest, new)", lambda rest, new: (rest, new)),
    "from the back": ((3, 2), 0, "n = Concat<axis = -2>(rest, new)", lambda r, new: (r, new)),
    "the new one first": ((3,), 0, "n = Concat<axis = 0>(new, rest)", lambda r, new: (new, r)),
    "beside what is made": (
        (3, 2),
        0,
        "m = Neg(rest) n = Concat<axis = 0>(m, new)",
        lambda rest, new: (-rest, new),
    ),
    "joined and joined": (
        (3, 2),
        0,
        "a, z = Split(rest, ones) m = Concat<axis = 0>(z, new) n = Concat<axis = 0>(a, m)",
        lambda rest, new: (rest, new),
    ),
    "columns of one row": (
        (1, 3),
        1,
        "n = Concat<axis = 1>(rest, new)",
        lambda rest, new: (rest, new),
    ),
}


def window(shape: tuple[int, ...], axis: int, body: str) -> onnx.ModelProto:
    """A model whose Scan splits off the oldest of a window, and joins the new row to the rest."""
    row, old = list(shape), list(shape)
    del row[axis]
    old[axis] = 1
    text = WINDOW.replace("AXIS", str(axis)).replace("BODY", body).replace("OPSET", "18")
    for name, dims in {"STATE": shape, "ROW": row, "OLD": old}.items():
        text = text.replace(name, ",".join(map(str, dims)))
    return with_rows(text.replace(",]", "]"))


@pytest.mark.parametrize("name", JOINED)
def test_a_scan_joins_no_row_into_what_it_carries_before_that_was_read(
    name: str, process: Runner
) -> None:
    """OpenVINO writes the next row into the state at once, before the body reads that."""
    shape, axis, body, join = JOINED[name]
    model = window(shape, axis, body)
    (found,) = [each for each in ts.check(model, target="openvino") if "memory" in each.message]
    assert (found.code, found.node) == ("TS843", "graph/Scan[0]")
    lowered = lowered_for("openvino", model)
    assert not [each for each in ts.check(lowered, target="openvino") if "memory" in each.message]
    state = np.zeros(shape, np.float32)
    count = state.size // 3
    x = np.arange(1, 5 * count + 1, dtype=np.float32).reshape(5, *np.delete(shape, axis))
    feed: dict[str, Any] = {"x": x, "s": state}
    given = []
    for row in x:
        first, rest = np.split(state, [1], axis)
        given.append(first)
        state = np.concatenate(join(rest, np.expand_dims(row, axis)), axis)
    wanted = [state, np.array(given)]
    (got,) = process.call(["openvino", lowered.SerializeToString(), [feed], 2])
    for one, other, again in zip(got, ts.run(lowered, feed).values(), wanted, strict=True):
        assert np.array_equal(one, again)
        assert np.array_equal(other, again)


@pytest.mark.parametrize(
    ("shape", "axis", "body"),
    [
        ((3, 2), 0, "m = Neg(new) n = Concat<axis = 0>(rest, m)"),  # what is made has its own
        ((2, 3), 1, "n = Concat<axis = 1>(rest, new)"),  # rows of the whole are apart
        ((3, 2), 0, "m = Add(rest, new) n = Concat<axis = 0>(m, old)"),
    ],
)
def test_a_scan_that_joins_no_row_as_it_is_stays(
    shape: tuple[int, ...], axis: int, body: str
) -> None:
    model = window(shape, axis, body)
    assert not [each for each in ts.check(model, target="openvino") if "memory" in each.message]
    assert ts.lower(model, target="openvino") == model


ACROSS = """<ir_version: 8, opset_import: ["": OPSET]> g (float[A,B,C] x, float[K,L] s) =>
    (float[K,L] k, float[D,E,F] y, float[G,H,I] z)
    { k, y, z = Scan(s, x) <num_scan_inputs = 1, AXES body = b (float[K,L] h, float[M,N] row) =>
      (float[K,L] n, float[M,O] p, float[M,N] o)
      { n = Neg(h) o = Neg(row) p, q = Split<axis = -1SPLIT>(o) }> }"""
AXES = {
    "in": ("scan_input_axes = [1],", (1, 0, 0)),
    "out": ("scan_output_axes = [0, 1],", (0, 0, 1)),
    "both, from the back": (
        "scan_input_axes = [-2], scan_output_axes = [-1, 2], scan_output_directions = [1, 0],",
        (1, 2, 2),
    ),
}


def across(name: str, opset: int = 18, shape: str = "A,B,C") -> onnx.ModelProto:
    """A model whose Scan goes along these axes."""
    count = ", num_outputs = 2" if opset >= 18 else ""
    text = ACROSS.replace("OPSET", str(opset)).replace("AXES", AXES[name][0])
    return parse_model(text.replace("SPLIT", count).replace("A,B,C", shape))


@pytest.mark.filterwarnings("ignore:.*cut to 32 bits:tensorsplit.SplitWarning")
@pytest.mark.parametrize(
    ("target", "engine"),
    [
        *(("onnxruntime", "onnxruntime"), ("openvino", "openvino")),
        *(("portable", "onnxruntime"), ("portable", "openvino")),
    ],
)
@pytest.mark.parametrize("opset", [9, 18])
@pytest.mark.parametrize("name", AXES)
def test_a_scan_along_other_axes_takes_data_without_elements(
    name: str, opset: int, target: Any, engine: str, process: Runner
) -> None:
    """Both engines die of it."""
    model = across(name, opset)
    (found,) = [each for each in ts.check(model, target=target) if "first ax" in each.message]
    assert (found.code, found.node) == ("TS843", "graph/Scan[0]")
    lowered = lowered_for(target, model)
    assert not [each for each in ts.check(lowered, target=target) if "first ax" in each.message]
    _, (given, first, second) = AXES[name]
    for shape in ((3, 2, 4), (2, 2, 0)):
        x = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
        rows = -np.moveaxis(x, given, 0)
        parts = rows[:, :, : rows.shape[2] // 2]
        parts = parts[::-1] if "back" in name else parts
        wanted = [np.moveaxis(parts, 0, first), np.moveaxis(rows, 0, second)]
        feed = {"x": x, "s": np.ones((1, 2), np.float32)}
        (got,) = process.call([engine, lowered.SerializeToString(), [feed], 2])
        for one, other, again in zip(
            got[1:], list(ts.run(lowered, feed).values())[1:], wanted, strict=True
        ):
            assert np.array_equal(one, again)
            assert np.array_equal(other, again)


@pytest.mark.engine("openvino")
@pytest.mark.filterwarnings("ignore:.*cut to 32 bits:tensorsplit.SplitWarning")
def test_a_scan_carries_a_default_that_it_uses() -> None:
    """It is no constant where another value is fed, and OpenVINO loads the model without it."""
    model = made_of("y = " + SCAN.format(f"z = Add(row, w) {HALVES}"))
    model.graph.initializer.append(onnx.numpy_helper.from_array(np.array([3, 3]), "l"))
    model.graph.initializer.append(onnx.numpy_helper.from_array(W, "w"))
    said = {each.severity for each in ts.check(model, target="openvino") if "Scan" in each.message}
    assert said == {"warning"}, "it runs as long as no other value is fed"
    lowered = ts.lower(model, target="openvino")
    feeds = {"x": X, "w": W + 1, "l": np.array([2, 4]), "c": np.array(True)}
    got = ts.run(lowered, feeds, engine="openvino")["y"]
    assert np.array_equal(got, (X + (W + 1))[:, :2])


@pytest.mark.parametrize("target", ["onnxruntime", "openvino", "portable"])
def test_a_scan_along_other_axes_of_what_has_elements_stays(target: Any) -> None:
    model = across("in", shape="3,2,4")
    assert not [each for each in ts.check(model, target=target) if "first ax" in each.message]
    lowered = ts.lower(model, target=target)
    assert [each.op_type for each in lowered.graph.node] == ["Scan"]
    assert lowered.graph.node[0].attribute[1] == model.graph.node[0].attribute[1]
    assert target == "portable" or lowered == model


def test_a_scan_along_other_axes_of_unknown_rank_stays() -> None:
    """So it does at opset 9, where tables are not checked for as many rows in a Loop."""
    model = parse_model("""<ir_version: 8, opset_import: ["": 9]> g (float[A] x, float[2] w)
        => (float[?,?] y) { y = Scan(x, x) <num_scan_inputs = 2, scan_input_axes = [1, 1],
        body = b (float[2] row, float[2] other) => (float[2] p) { p = Add(row, other) }> }""")
    model.graph.input[0].type.tensor_type.ClearField("shape")
    report = lower_graph(open_model(model), "onnxruntime")
    assert not report.changes
    assert any("SIGFPE" in each for each in report.notes)


@pytest.mark.parametrize("kind", ["bool", "float"])
def test_a_scan_carries_a_row_of_any_type_before_opset_11(kind: str) -> None:
    """Equal takes no floats there, and Less no bools."""
    model = with_rows(f"""
        <ir_version: 8, opset_import: ["": 9]> g ({kind}[T,2] x, {kind}[2] s) => ({kind}[2] k,
        {kind}[T,2] y) {{ k, y = Scan(s, x) <num_scan_inputs = 1, body = b ({kind}[2] h,
        {kind}[2] row) => ({kind}[2] n, {kind}[2] o) {{ n = Identity(row) o = Identity(h) }}> }}""")
    lowered = ts.lower(model, target="openvino")
    onnx.checker.check_model(lowered, full_check=True)
    asked = {node.op_type for node in nodes_of(lowered.graph)} & {"Equal", "Less"}
    assert asked == {"Equal" if kind == "bool" else "Less"}
    x = np.array([[1, 0], [1, 1], [0, 1]], np.bool_ if kind == "bool" else np.float32)
    found = ts.run(lowered, {"x": x, "s": x[1]})
    assert found["k"].tolist() == x[2].tolist()
    assert found["y"].tolist() == [x[1].tolist(), x[0].tolist(), x[1].tolist()]


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("opset", [9, 18])
def test_a_scan_without_rows_gives_what_it_starts_with(
    axis: int, opset: int, process: Runner
) -> None:
    model = parse_model(
        f"""<ir_version: 8, opset_import: ["": {opset}]>
        g (float[{"0,2" if axis == 0 else "2,0"}] x, float[2] w)
        => (float[2] y, float[A,2] z, float[2,B] t)
        {{ y, z, t = Scan <num_scan_inputs = 1, scan_input_axes = [{axis}],
        scan_output_axes = [0, 1], body = b (float[2] s, float[2] row)
        => (float[2] v, float[2] p, float[2] q) {{ v = Add(s, row) p = Neg(v) q = Abs(v) }}>
        (w, x) }}"""
    )
    found = [each for each in ts.check(model, target="openvino") if each.severity == "error"]
    assert any("the model does not load" in each.message for each in found)
    lowered = ts.lower(model, target="openvino")
    assert "Scan" not in [node.op_type for node in nodes_of(lowered.graph)]
    x, w = np.zeros((0, 2), np.float32), np.array([3, 4], np.float32)
    feeds = {"x": x if axis == 0 else x.T, "w": w}
    (got,) = process.call(["openvino", lowered.SerializeToString(), [feeds], 2])
    assert got[0].tolist() == [3, 4]
    assert [each.shape for each in got[1:]] == [(0, 2), (2, 0)]


ONES = np.ones(6, np.float32)
Step: TypeAlias = Callable[[Any, Any], tuple[Any, Any]]

OVER_ROWS: dict[str, tuple[str, Step, bool]] = {
    "a row and a state": ("o = Add(r, s) q = Abs(k)", lambda s, r: (r + s, ONES), True),
    "and of that": ("t = Add(r, s) o = Neg(t) q = Abs(k)", lambda s, r: (-r - s, ONES), True),
    "that two read": (
        "o = Abs(r) u = Neg(o) t = Neg(s) q = Max(u, t)",
        lambda s, r: (r, -np.minimum(r, s)),
        True,
    ),
    "calculated alone": (
        "t = LeakyRelu(r) o = Add(s, t) q = Abs(k)",
        lambda s, r: (r + s, ONES),
        True,
    ),
    "a state and a row": ("o = Add(s, r) q = Abs(k)", lambda s, r: (r + s, ONES), False),
    "a row that two read": ("o = Add(r, s) q = Neg(r)", lambda s, r: (r + s, -r), False),
    "calculated with another": (
        "t = Neg(r) o = Add(t, s) q = Abs(k)",
        lambda s, r: (s - r, ONES),
        False,
    ),
}


@pytest.mark.parametrize(("body", "step", "is_wrong"), OVER_ROWS.values(), ids=OVER_ROWS)
def test_what_is_calculated_where_a_row_was_overwrites_what_a_scan_carries(
    body: str, step: Step, is_wrong: bool, process: Runner
) -> None:
    """OpenVINO adds the last row to itself in the place of all rows."""
    model = parse_model(
        f"""<ir_version: 8, opset_import: ["": 17]> g (float[3,6] x, float[6] w) => (float[6] y,
        float[3,6] z) {{ y, z = Scan (w, x) <num_scan_inputs = 1, body = b (float[6] s, float[6] r)
        => (float[6] o, float[6] q) <float[6] k = {{1, 1, 1, 1, 1, 1}}> {{ {body} }}> }}"""
    )
    said = [
        each.severity for each in ts.check(model, "openvino") if "in one memory" in each.message
    ]
    assert said == ["warning"] * is_wrong
    lowered = lowered_for("openvino", model) if is_wrong else model
    ((got, rows),) = process.call(["openvino", lowered.SerializeToString(), [{"x": X, "w": W}], 2])
    state, wanted = W, []
    for row in X:
        state, made = step(state, row)
        wanted.append(made)
    np.testing.assert_allclose(got, state, rtol=1e-6)
    np.testing.assert_allclose(rows, wanted, rtol=1e-6)


@pytest.mark.parametrize("more", ["", "a = SequenceAt(s, k) t = SequenceInsert(s, a) "])
def test_rows_of_which_only_tensors_are_counted_are_read(more: str, process: Runner) -> None:
    """The number is a constant for OpenVINO, which does not count such rows: it ends (SIGSEGV)."""
    model = parse_model(f"""<ir_version: 8, opset_import: ["": 17]> g (float[2,6] x) => (int64[A] y)
        {{ y = Scan<num_scan_inputs = 1, body = b (float[6] r) => (int64 n) {{
        k = Constant<value_int = 1>() l = Constant<value_ints = [1, 2, 3]>()
        s = SplitToSequence(r, l) {more} n = SequenceLength({"t" if more else "s"}) }}>(x) }}""")
    found = [each.severity for each in ts.check(model, "openvino") if "not counted" in each.message]
    assert found == ["warning"]
    lowered = ts.lower(model, "openvino")
    x = np.random.default_rng(2).random((2, 6), np.float32)
    ((got,),) = process.call(["openvino", lowered.SerializeToString(), [{"x": x}], 1])
    assert got.tolist() == [4 if more else 3] * 2


VIEWED = """<ir_version: 8, opset_import: ["": 18]> g (float[2,3] x, float[2,3] w) =>
    (float[2,3] y, float[A,2,3] z) <int64 n = {3}, int64[1] flat = {6}, int64[2] back = {2, 3},
    float two = {2}, int64[1] zero = {0}> { BODY }"""
LOOPED = """y, z = Loop(n, , x) <body = b (int64 i, bool c, float[2,3] s) =>
    (bool d, float[2,3] t, float[2,3] r) { d = Identity(c) u = Reshape(x, flat) BODY }>"""
IN_VIEWS: dict[str, tuple[str, Step, bool]] = {
    "carried, and a row": (
        "v = Exp(u) r = Reshape(v, back) t = Identity(r)",
        lambda _, x: (np.exp(x), np.exp(x)),
        True,
    ),
    "a row, and read": (
        "v = Neg(u) r = Reshape(v, back) t = Mul(s, r)",
        lambda s, x: (s * -x, -x),
        True,
    ),
    "through two views": (
        "v = Neg(u) q = Unsqueeze(v, zero) p = Squeeze(q) r = Reshape(p, back) t = Mul(s, r)",
        lambda s, x: (s * -x, -x),
        True,
    ),
    "a constant first": (
        "v = Mul(two, u) r = Reshape(v, back) t = Identity(r)",
        lambda _, x: (2 * x, 2 * x),
        True,
    ),
    "two that do the same": (
        "v = Exp(u) r = Reshape(v, back) k = Reshape(x, flat) e = Exp(k) t = Reshape(e, back)",
        lambda _, x: (np.exp(x), np.exp(x)),
        True,
    ),
    "split and joined": (
        (
            "v = Exp(u) o = Reshape(v, back) e, f = Split<axis = 1, num_outputs = 2>(o)"
            " r = Concat<axis = 1>(e, f) t = Tanh(o)"
        ),
        lambda _, x: (np.tanh(np.exp(x)), np.exp(x)),
        True,
    ),
    "again, of what is read beside": (
        (
            "v = Abs(u) r = Reshape(v, back) p, q, o = Split<axis = 1, num_outputs = 3>(x)"
            " k = Concat<axis = 1>(q, o, p) t = Add(k, r)"
        ),
        lambda _, x: (np.roll(x, -1, 1) + abs(x), abs(x)),
        True,
    ),
    "again": (
        "v = Relu(u) r = Reshape(v, back) t = Identity(r)",
        lambda _, x: (np.maximum(x, 0), np.maximum(x, 0)),
        False,
    ),
    "in memory of its own": (
        "v = Mod<fmod = 1>(u, two) r = Reshape(v, back) t = Identity(r)",
        lambda _, x: (x, x),
        False,
    ),
    "of which the shape is read": (
        (
            "v = Neg(u) r = Reshape(v, back) l = Shape(r) k = ReduceMax<keepdims = 0>(l)"
            " q = Cast<to = 1>(k) t = Mul(s, q)"
        ),
        lambda s, x: (s * 3, -x),
        False,
    ),
    "a row alone": (
        "v = Neg(u) r = Reshape(v, back) t = Neg(s)",
        lambda s, x: (-s, -x),
        False,
    ),
    "no row": (
        "v = Neg(u) q = Reshape(v, back) r = Exp(q) t = Mul(s, q)",
        lambda s, x: (s * -x, np.exp(-x)),
        False,
    ),
    "a view that two read": (
        "v = Neg(u) r = Reshape(v, back) q = ReduceMax(u) p = Mul(q, s) t = Add(p, r)",
        lambda s, x: (s * x.max() - x, -x),
        False,
    ),
    "no view before": (
        "v = Neg(x) q = Reshape(v, flat) r = Reshape(q, back) t = Identity(r)",
        lambda _, x: (-x, -x),
        False,
    ),
    "given out itself": (
        "v = Neg(u) r = Reshape(v, back) q = ReduceMax(r) t = Reshape(u, back)",
        lambda _, x: (x, -x),
        False,
    ),
}


@pytest.mark.parametrize(("body", "step", "is_wrong"), IN_VIEWS.values(), ids=IN_VIEWS)
def test_what_is_calculated_in_a_view_is_written_over_the_tensor(
    body: str, step: Step, is_wrong: bool, process: Runner
) -> None:
    """So it is if a view of the result is a row, and is read by something else."""
    body = LOOPED.replace("BODY", body)
    model = parse_model(VIEWED.replace("BODY", body))
    assert any("is written over" in str(each) for each in ts.check(model, "openvino")) is is_wrong
    lowered = lowered_for("openvino", model)
    x, w = (RANDOM.uniform(-1, 1, (2, 3)).astype(np.float32) for _ in range(2))
    state, rows, is_own = x, [], isinstance(process, OwnEngine)
    for _ in range(3):
        state, row = step(state, x)
        rows.append(row)
    for made in (model, lowered):
        ((got, given),) = process.call(
            ["openvino", made.SerializeToString(), [{"x": x, "w": w}], 2]
        )
        is_right = np.allclose(got, state, atol=1e-5) and np.allclose(given, rows, atol=1e-5)
        assert is_right is (made is lowered or is_own or not is_wrong)


COPIED: dict[str, tuple[str, Step]] = {
    "a view of the other": (
        """a, y, z = Loop(n, , x, w) <body = b (int64 i, bool c, float[2,3] s, float[2,3] t) =>
        (bool d, float[2,3] p, float[2,3] q, float[2,3] r) { d = Identity(c) p = Tanh(t)
        u = Reshape(s, flat) v = Neg(u) q = Reshape(v, back) r = Identity(q) }>""",
        lambda s, t: (np.tanh(t), -s),
    ),
    "a part of what the other is joined into": (
        """a, y, z = Loop(n, , x, w) <body = b (int64 i, bool c, float[2,3] s, float[2,3] t) =>
        (bool d, float[2,3] p, float[2,3] q, float[2,3] r) { d = Identity(c) p = Tanh(t)
        u = Concat<axis = 0>(x, s) v = Softmax(u) o, q = Split<num_outputs = 2>(v) r = Exp(q) }>""",
        lambda s, t: (np.tanh(t), softmax(s)),
    ),
    "an idempotent view of the other": (
        """a, y, z = Loop(n, , x, w) <body = b (int64 i, bool c, float[2,3] s, float[2,3] t) =>
        (bool d, float[2,3] p, float[2,3] q, float[2,3] r) { d = Identity(c) p = Tanh(t)
        u = Reshape(s, flat) v = Relu(u) q = Reshape(v, back) r = Identity(q) }>""",
        lambda s, t: (np.tanh(t), np.maximum(s, 0)),
    ),
    "a softmax of what is read for nothing, too": (
        """a, y, z = Loop(n, , x, w) <body = b (int64 i, bool c, float[2,3] s, float[2,3] t) =>
        (bool d, float[2,3] p, float[2,3] q, float[2,3] r) { d = Identity(c) p = Tanh(t)
        v = Neg(s) q = Softmax(s) r = Identity(q) }>""",
        lambda s, t: (np.tanh(t), softmax(s)),
    ),
    "a part of a negative of what the other is joined into": (
        """a, y, z = Loop(n, , x, w) <body = b (int64 i, bool c, float[2,3] s, float[2,3] t) =>
        (bool d, float[2,3] p, float[2,3] q, float[2,3] r) { d = Identity(c) p = Tanh(t)
        u = Concat<axis = 0>(s, x) v = Neg(u) q, o = Split<num_outputs = 2>(v)
        r = Identity(q) }>""",
        lambda s, t: (np.tanh(t), -s),
    ),
    "a part of what the other is joined into, in a Scan": (
        """k = Unsqueeze(x, zero) l = Concat<axis = 0>(k, k, k) a, y, z = Scan(x, w, l)
        <num_scan_inputs = 1, body = b (float[2,3] s, float[2,3] t, float[2,3] r) =>
        (float[2,3] p, float[2,3] q, float[2,3] o) { p = Tanh(t) d = Tanh(r)
        u = Concat<axis = 0>(s, d) v = Softmax(u) q, e = Split<num_outputs = 2>(v)
        o = Identity(q) }>""",
        lambda s, t: (np.tanh(t), softmax(s)),
    ),
    "the same as a row": (
        """k = Unsqueeze(x, zero) l = Concat<axis = 0>(k, k, k) y, z = Scan(w, l)
        <num_scan_inputs = 1, body = b (float[2,3] s, float[2,3] r) => (float[2,3] p, float[2,3] q)
        { d = Reshape(r, flat) e = Exp(d) p = Reshape(e, back)
        f = Identity(r) g = Reshape(f, flat) h = Exp(g) q = Reshape(h, back) o = Identity(s) }>""",
        lambda s, t: (s, np.exp(s)),
    ),
}


@pytest.mark.parametrize(("body", "step"), COPIED.values(), ids=COPIED)
def test_states_get_copies_of_what_is_made_in_views_or_twice(
    body: str, step: Step, process: Runner
) -> None:
    """OpenVINO makes one of two chains of nodes that do the same."""
    model = parse_model(VIEWED.replace("BODY", body))
    assert any("in one memory" in str(each) for each in ts.check(model, "openvino"))
    lowered = lowered_for("openvino", model)
    x, w = (RANDOM.uniform(-1, 1, (2, 3)).astype(np.float32) for _ in range(2))
    first, second = x, w
    rows = list[Any]()
    for _ in range(3):
        first, second = step(first, second)
        rows.append(np.exp(second) if "Exp(q)" in body else second)
    feed = {"x": x, "w": w}
    ((got, given),) = process.call(["openvino", lowered.SerializeToString(), [feed], 2])
    np.testing.assert_allclose(got, second, rtol=1e-4)
    np.testing.assert_allclose(given, rows, rtol=1e-4)


@pytest.mark.engine("openvino")
def test_views_by_shapes_that_are_written_twice_are_one_for_openvino() -> None:
    model = parse_model("""<ir_version: 10, opset_import: ["": 18]> g (float[2, 4] w, float[2] s)
        => (float[2] t, float[n, 4, 2] y, float[n, 4, 2] z) <int64 m = {3}, bool c = {1}> {
        t, y, z = Loop(m, c, s) <body = b(int64 i, bool k, float[2] u) =>
        (bool k2, float[2] u2, float[4, 2] p, float[4, 2] q)
        <int64[2] one = {4, 2}, int64[2] other = {4, 2}> { k2 = Identity(k) u2 = Neg(u)
        v = Reshape(w, one) r = Reshape(w, other) p = Exp(v) q = Exp(r) }> }""")
    w, s = (RANDOM.uniform(1, 2, shape).astype(np.float32) for shape in ((2, 4), 2))
    lowered = ts.lower(model, target="openvino")
    wanted = np.exp(np.stack([w.reshape(4, 2)] * 3))
    got = ts.run(lowered, {"w": w, "s": s}, engine="openvino")
    for name in ("y", "z"):
        np.testing.assert_allclose(got[name], wanted, rtol=1e-5, strict=True)


def test_states_of_a_loop_that_are_exchanged_as_they_are_stay() -> None:
    """OpenVINO moves them, also at an opset that has no Where."""
    model = parse_model("""<ir_version: 8, opset_import: ["": 1]> g (float[2,3] x, float[2,3] w) =>
        (float[2,3] y, float[2,3] z) <int64 n = {3}, bool on = {1}> { y, z = Loop(n, on, x, w)
        <body = b (int64 i, bool c, float[2,3] s, float[2,3] t) => (bool d, float[2,3] p,
        float[2,3] q) { d = Identity(c) p = Identity(t) q = Identity(s) }> }""")
    assert ts.check(model, "openvino") == []
    assert ts.lower(model, "openvino") == model


@pytest.mark.parametrize(("opset", "is_copied"), [(8, False), (9, True)])
def test_states_are_copied_from_the_first_opset_on_that_has_a_where(
    opset: int, is_copied: bool
) -> None:
    model = parse_model(f"""<ir_version: 8, opset_import: ["": {opset}]> g (float[2,3] x,
        float[2,3] w) => (float[2,3] y, float[2,3] z) <int64 n = {{3}}, bool on = {{1}}>
        {{ y, z = Loop(n, on, x, w) <body = b (int64 i, bool c, float[2,3] s, float[2,3] t) =>
        (bool d, float[2,3] p, float[2,3] q) {{ d = Identity(c) p = Tanh(t)
        q = Softmax(s) }}> }}""")
    if not is_copied:
        with refused("TS513", "in one memory", "convert to opset 9 or newer"):
            ts.lower(model, "openvino")
        return
    assert "Where" in [node.op_type for node in nodes_of(lowered_for("openvino", model).graph)]
