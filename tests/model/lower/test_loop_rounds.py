"""Loops that may have no round, after which OpenVINO gives memory that others wrote, or nobody."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx.parser import parse_model

import tensorsplit as ts
from tensorsplit.model.check.findings import Finding
from tensorsplit.model.lower import lower_graph
from tests.model.build import nodes_of, onnx_model
from tests.model.lower.running import Runner, lowered_for
from tests.refusals import refused

RANDOM = np.random.default_rng(12)
X, Z = RANDOM.uniform(1, 2, (2, 2, 3)).astype(np.float32)
FEW = 3
BODY = (
    "(int64 i, bool c, float[2,3] h) => (bool d, float[2,3] o, float[1,3] row)"
    " {{ d = Identity(c) {} row, rest = Split<axis = 0>({}, halves) }}"
)
REPLACED, ADDED = BODY.format("o = Neg(z)", "z"), BODY.format("o = Add(h, z)", "h")
SHAPE_ONLY = BODY.format("k = Shape(h) j = Cast<to = 1>(k) m = ReduceMax<keepdims=0>(j)"
                         " o = Add(z, m)", "z")  # fmt: skip
TWICE = """(int64 i, bool c, float[2,3] h) => (bool d, float[2,3] o, float[1,3] row, float[2,3] u)
    { d = Identity(c) o = Add(h, h) row, rest = Split<axis = 0>(h, halves) u = Neg(h) }"""
LOOP = "y, s = Loop(n, yes, x) <body = b {}>"

CASES = {
    "what it carries is not read": LOOP.format(REPLACED),
    "but for its shape": LOOP.format(SHAPE_ONLY),
    "what it carries is read": LOOP.format(ADDED),
    "but for rows that nothing uses": (
        "y, t, s = Loop(n, yes, x) <body = b (int64 i, bool c, float[2,3] h) => (bool d, float[2,3]"
        " o, float[2,3] u, float[1,3] row) { d = Identity(c) o = Neg(z) row, rest = Split<axis = 0>"
        "(z, halves) u = Neg(h) }>"
    ),
    "a count of one element in a list": "m = Reshape(n, flat) y, s = Loop(m, yes, x) <body = b "
    + REPLACED
    + ">",
    "no condition": f"y, s = Loop(n, , x) <body = b {REPLACED}>",
    "a condition, and no count": (
        "go = Less(zero, n) y, s = Loop(, go, x) <body = b (int64 i, bool c, float[2,3] h) => (bool"
        " d, float[2,3] o, float[1,3] row) { k = Add(i, one) d = Less(k, n) o = Neg(z)"
        " row, rest = Split<axis = 0>(z, halves) }>"
    ),
    "both": f"y, s = Loop(n, yes2, x) <body = b {REPLACED}>",
    "two conditions": (
        f"go = Less(minus, n) and = And(go, yes2) y, s = Loop(n, and, x) <body = b {REPLACED}>"
    ),
    "a condition on a number below": (
        f"k = Add(n, one) go = Less(k, one) not = Not(go) y, s = Loop(n, not, x) <body = b"
        f" {REPLACED}>"
    ),
    "a dimension": f"k = Size(w) y, s = Loop(k, yes, x) <body = b {REPLACED}>",
    "nodes that use the results": (
        f"u, v = Loop(n, yes, x) <body = b {REPLACED}> y = Abs(u) s = Neg(v)"
    ),
    "branches that use the results": (
        f"go = Less(zero, n) u, v = Loop(n, go, x) <body = b {REPLACED}> y, s = If(go) <then_branch"
        " = t () => (float[2,3] p, float[q,1,3] r) { p = Identity(u) r = Identity(v) }, else_branch"
        " = e () => (float[2,3] p, float[q,1,3] r) { p = Identity(u) r = Slice(v, first, ends) }>"
    ),
    "in a branch": (
        "y, s = If(yes2) <then_branch = t () => (float[2,3] u, float[p,1,3] v) {"
        f" u, v = Loop(n, yes, x) <body = b {REPLACED}> }}, else_branch = e () => (float[2,3] u,"
        " float[p,1,3] v) { u = Neg(x) v, v2 = Split<axis = 0>(x3, halves) }>"
    ),
    "in a loop": (
        f"y, t = Loop(one, yes, x) <body = b2 (int64 i2, bool c2, float[2,3] h2) => (bool d2,"
        f" float[2,3] o2, float[p,1,3] v) {{ d2 = Identity(c2) yes3 ="
        f" Constant<value = bool {{1}}>() o2, v = Loop(n, yes3, h2) <body = b {REPLACED}> }}>"
        " s = Squeeze(t, first)"
    ),
    "in a function": "y, s = local.F(n, x, z, halves)",
}
FUNCTION = (
    '<opset_import: ["": 18], domain: "local"> F(n, x, z, halves) => (y, s)'
    f" {{ yes = Constant<value = bool {{1}}>() {LOOP.format(REPLACED)} }}"
)
ENDS = """(int64 i, bool c, float[2,3] h) => (bool {}, float[2,3] o, float[1,3] row)
    {{ {} o = Add(h, z) row, rest = Split<axis = 0>(h, halves) }}"""
FEWER = "d = Less(i, zero)"
"""A condition that does not hold after the first round."""

UNCONDITIONAL = LOOP.replace("yes", "").format(ENDS.format("d", FEWER))
FUNCTION += (
    '<opset_import: ["": 18], domain: "local"> G(n, x, z, halves) => (y, s)'
    f" {{ zero = Constant<value = int64 {{0}}>() {UNCONDITIONAL} }}"
)


def made_of(body: str, opset: int = 18) -> onnx.ModelProto:
    """A model with a loop of `n` rounds that carries a tensor and gives rows."""
    return parse_model(
        f'<ir_version: 8, opset_import: ["": {opset}, "local": 1]>'
        " g (int64 n, float[2,3] x, float[2,3] z, bool yes2, float[k] w) => (float[2,3] y,"
        " float[r,1,3] s)"
        " <bool yes = {1}, bool no = {0}, int64 zero = {0}, int64 one = {1}, int64 minus ="
        " {-1}, int64[1] flat = {-1}, int64[2] halves = {1, 1}, int64[1] first = {0}, int64[1] ends"
        " = {9}, float[2,1,3] x3 = {1, 2, 3, 4, 5, 6}>"
        f" {{ {body} }} {FUNCTION if 'local' in body else ''}"
    )


def expected(name: str, count: int) -> tuple[Any, Any]:
    """What the loop gives after so many rounds, by the standard."""
    count = max(count, 0)
    if name == "what it carries is read":
        states = [X]
        for _ in range(count):
            states.append(states[-1] + Z)
        return states[-1], np.array([each[:1] for each in states[:-1]]).reshape(count, 1, 3)
    if name == "nodes that use the results":
        return Z if count else X, np.array([-Z[:1]] * count).reshape(count, 1, 3)
    after = Z + np.float32(3) if name == "but for its shape" else -Z
    return after if count else X, np.array([Z[:1]] * count).reshape(count, 1, 3)


def found(model: onnx.ModelProto, target: Any) -> list[Finding]:
    """What `check` says of rounds, but for what the standard refuses."""
    return [
        each
        for each in ts.check(model, target=target)
        if " round" in each.message and "standard refuses" not in each.message
    ]


@pytest.mark.filterwarnings("ignore:.*cut to 32 bits:tensorsplit.SplitWarning")
@pytest.mark.parametrize("target", ["openvino", "portable"])
@pytest.mark.parametrize("name", CASES)
def test_after_no_round_openvino_gives_what_the_loop_was_given(
    name: str, target: Any, process: Runner
) -> None:
    model = made_of(CASES[name])
    assert len(found(model, target)) == 1
    lowered = lowered_for(target, model)
    assert not found(lowered, target)
    counts = [FEW, 0, 1, 0, -1]
    yes = np.array(True)
    feeds = [
        {"n": np.array(n), "x": X, "z": Z, "yes2": yes, "w": Z.ravel()[: max(n, 0)]} for n in counts
    ]
    runs = process.call(["openvino", lowered.SerializeToString(), feeds, 2])
    for count, feed, run in zip(counts, feeds, runs, strict=True):
        ours = ts.run(lowered, feed)
        for wanted, got, own in zip(expected(name, count), run, ours.values(), strict=True):
            assert got.shape == own.shape == wanted.shape
            assert got.tobytes() == own.tobytes() == wanted.tobytes()


IGNORED = {
    "in the graph": UNCONDITIONAL,
    "that is a constant": LOOP.replace("yes", "").format(
        ENDS.format("d", "d = Constant<value = bool {0}>()")
    ),
    "that is from around the loop": LOOP.replace("yes", "").format(
        ENDS.format("d", "d = Identity(no)")
    ),
    "that other nodes read": LOOP.replace("yes", "").format(
        ENDS.format("d", f"{FEWER} other = Not(d)")
    ),
    "in a branch": (
        "y, s = If(yes2) <then_branch = t () => (float[2,3] u, float[p,1,3] v) {"
        f" u, v = Loop(n, , x) <body = b {ENDS.format('d', FEWER)}> }}, else_branch = e () =>"
        " (float[2,3] u, float[p,1,3] v) { u = Neg(x) v, v2 = Split<axis = 0>(x3, halves) }>"
    ),
    "in a function": "y, s = local.G(n, x, z, halves)",
}


@pytest.mark.filterwarnings("ignore:.*cut to 32 bits:tensorsplit.SplitWarning")
@pytest.mark.parametrize("target", ["onnxruntime", "openvino", "portable"])
@pytest.mark.parametrize("name", IGNORED)
def test_a_loop_that_is_given_no_condition_has_all_its_rounds(
    name: str, target: Any, process: Runner
) -> None:
    """`for (int i=0; i < trip_count; ++i) { cond = ...; // ignored }`: the page of Loop."""
    model = made_of(IGNORED[name])
    lowered = lowered_for(target, model)
    assert not found(lowered, target)
    feed = {"n": np.array(FEW), "x": X, "z": Z, "yes2": np.array(True), "w": X[0]}
    states = [X, X + Z, X + Z + Z]
    wanted = [states[-1] + Z, np.array([each[:1] for each in states])]
    for engine in ["onnxruntime", "openvino"] if target == "portable" else [target]:
        (run,) = process.call([engine, lowered.SerializeToString(), [feed], 2])
        for expect, got, own in zip(wanted, run, ts.run(model, feed).values(), strict=True):
            assert got.tobytes() == own.tobytes() == expect.tobytes()


@pytest.mark.parametrize("count", ['""', "ages"])
@pytest.mark.parametrize("target", ["onnxruntime", "openvino"])
def test_a_loop_that_would_never_end_obeys_the_condition_of_its_body(
    target: Any, count: str, process: Runner
) -> None:
    loop = UNCONDITIONAL.replace("Loop(n", f"Loop({count}")
    model = made_of(f"ages = Constant<value = int64 {{{(1 << 63) - 1}}}>() {loop}")
    assert not [each for each in found(model, target) if "condition" in each.message]
    feed = {"n": np.array(FEW), "x": X, "z": Z, "yes2": np.array(True), "w": X[0]}
    runs = process.call([target, lowered_for(target, model).SerializeToString(), [feed], 1])
    for got in (runs[0], list(ts.run(model, feed).values())):
        assert [each.tobytes() for each in got] == [(X + Z).tobytes(), X[:1].tobytes()]


READS = "(int64 i, bool c, float[2,3] h) => (bool d, float[2,3] o, {}) {{ {} o = Add(h, z) {} }}"
"""A body that reads its condition: what it gives of it, how the loop ends, and what reads."""

SIGNS = "float[2,3] row", "row = Where(c, z, h)"
ENDINGS = {
    "passed on": "d = Identity(c)",
    "given as it is": "",
    "passed on twice": "e = Identity(c) d = Identity(e)",
    "both": "three = Constant<value = int64 {3}>() e = Less(i, three) d = And(c, e)",
    "a constant": "d = Constant<value = bool {1}>()",
}


@pytest.mark.engine("openvino")
@pytest.mark.parametrize(
    "reader",
    [
        SIGNS[1],
        "m = Not(c) row = Where(m, h, z)",
        (
            "row = If(c) <then_branch = t () => (float[2,3] p) { p = Identity(z) }, else_branch = e"
            " () => (float[2,3] q) { q = Neg(h) }>"
        ),
        "k = Where(d, z, h) row = Where(c, k, h)",
    ],
)
@pytest.mark.parametrize("end", ENDINGS)
@pytest.mark.parametrize("given", ["", "yes2"])
def test_a_body_that_reads_its_condition_runs_in_openvino(
    given: str, end: str, reader: str, openvino: Runner
) -> None:
    """An error of `check` says what OpenVINO refuses, and nothing else."""
    body = READS.format("float[2,3] row", ENDINGS[end], reader)
    if not ENDINGS[end]:
        body = body.replace("(bool d,", "(bool c,").replace("Where(d,", "Where(c,")
    model = made_of(f"y, r = Loop(n, {given}, x) <body = b {body}> s = Slice(r, first, ends)")
    model.graph.output[1].type.tensor_type.shape.dim[1].dim_value = 2
    lowered = lowered_for("openvino", model)
    feed = {"n": np.array(FEW), "x": X, "z": Z, "yes2": np.array(True), "w": X[0]}
    runs = [openvino.call(["openvino", each.SerializeToString(), [feed], 2])[0]
            for each in (model, lowered)]  # fmt: skip
    said, after = (
        [each for each in ts.check(made, target="openvino") if each.severity == "error"]
        for made in (model, lowered)
    )
    assert (isinstance(runs[0], str), after) == (bool(said), [])
    for got in (runs[1][1], ts.run(model, feed)["s"], ts.run(lowered, feed)["s"]):
        assert got.tobytes() == np.array([Z] * FEW).tobytes()


@pytest.mark.parametrize("opset", [7, 8])
def test_a_body_that_reads_its_condition_where_constants_are_floats(
    opset: int, process: Runner
) -> None:
    """`T : tensor(float16), tensor(float), tensor(double)`: the page of Constant-1."""
    body = READS.format(
        "float[2,3] row", ENDINGS["passed on"], "k = Cast<to = 1>(c) row = Mul(z, k)"
    )
    model = made_of(
        f"y, r = Loop(n, , x) <body = b {body}> s = Slice<starts = [0], ends = [9]>(r)", opset
    )
    model.graph.output[1].type.tensor_type.shape.dim[1].dim_value = 2
    lowered = ts.lower(model, target="openvino")
    onnx.checker.check_model(lowered, full_check=True)
    feed = {"n": np.array(FEW), "x": X, "z": Z, "yes2": np.array(True), "w": X[0]}
    ((_, got),) = process.call(["openvino", lowered.SerializeToString(), [feed], 2])
    assert got.tobytes() == np.array([Z] * FEW).tobytes()


@pytest.mark.parametrize("shape", ["", "[1]"])
@pytest.mark.parametrize("target", ["onnxruntime", "openvino", "portable"])
def test_a_body_reads_the_condition_of_the_round_before_though_the_loop_ignores_it(
    target: Any, shape: str, process: Runner
) -> None:
    body = READS.format("float[2,3] row", f"{FEWER} other = Not(d)", SIGNS[1])
    model = made_of(f"y, r = Loop(n, , x) <body = b {body.replace('bool c', f'bool{shape} c')}>"
                    " s = Slice(r, first, ends)")  # fmt: skip
    model.graph.output[1].type.tensor_type.shape.dim[1].dim_value = 2
    lowered = lowered_for(target, model)
    feed = {"n": np.array(FEW), "x": X, "z": Z, "yes2": np.array(True), "w": X[0]}
    expect = np.array([Z, X + Z, X + Z + Z])  # the condition holds in the first round alone
    for engine in ["onnxruntime", "openvino"] if target == "portable" else [target]:
        ((_, got),) = process.call([engine, lowered.SerializeToString(), [feed], 2])
        own = ts.run(model, feed)["s"]
        assert got.tobytes() == own.tobytes() == expect.tobytes()


@pytest.mark.parametrize("target", ["onnxruntime", "openvino", "portable"])
@pytest.mark.parametrize(
    ("given", "end"),
    [("", "d = Identity(c)"), ("", "e = Identity(yes) d = Identity(e)"), ("yes2", FEWER)],
)
def test_a_condition_that_holds_or_is_obeyed_stays(given: str, end: str, target: Any) -> None:
    model = made_of(LOOP.replace("yes", given).format(ENDS.format("d", end)))
    assert not [each for each in found(model, target) if "condition" in each.message]


def test_a_condition_that_does_not_hold_is_kept(process: Runner) -> None:
    lowered = ts.lower(made_of(CASES["two conditions"]), target="openvino")
    feed = {"n": np.array(FEW), "x": X, "z": Z, "w": X[0]}
    feeds = [feed | {"yes2": np.array(yes)} for yes in (True, False)]
    first, second = process.call(["openvino", lowered.SerializeToString(), feeds, 2])
    assert (first[0].tobytes(), len(first[1])) == ((-Z).tobytes(), FEW)
    assert (second[0].tobytes(), len(second[1])) == (X.tobytes(), 0)


@pytest.mark.parametrize("given", ["minus, yes", "zero, yes", "one, no", ", no"])
def test_a_loop_that_never_has_a_round_is_left_out(given: str, process: Runner) -> None:
    """OpenVINO ends the process, or says that an object is not initialized, for some of them."""
    model = made_of(f"v = Abs(x) y, s, t = Loop({given}, v) <body = b {TWICE}>")
    lowered = ts.lower(model, target="openvino")
    assert "Loop" not in [each.op_type for each in nodes_of(lowered.graph)]
    assert not found(lowered, "openvino")
    onnx.checker.check_model(lowered, full_check=True)
    feed = {"n": np.array(1), "x": X, "z": Z, "yes2": np.array(True), "w": X[0]}
    ((state, rows),) = process.call(["openvino", lowered.SerializeToString(), [feed], 2])
    assert (state.tobytes(), rows.shape) == (X.tobytes(), (0, 1, 3))


@pytest.mark.parametrize("opset", [6, 7, 8])
@pytest.mark.parametrize("element", ["float", "int32"])
def test_a_loop_without_a_round_is_left_out_at_old_opsets(
    opset: int, element: str, process: Runner
) -> None:
    """OpenVINO ends the process; there are no constants of integers, and Expand is of opset 8."""
    model = parse_model(
        f'<ir_version: 4, opset_import: ["": {opset}]> g ({element}[2] x) => ({element}[2] y,'
        f" {element}[n,2] s) <int64 n = {{0}}, bool c = {{1}}> {{ v = Identity(x)"
        f" y, s = Loop(n, c, v) <body = b (int64 i, bool k, {element}[2] h) => (bool d,"
        f" {element}[2] o, {element}[2] r) {{ d = Identity(k) o = Add(h, h) r = Identity(o) }}> }}"
    )
    lowered = ts.lower(model, target="openvino")
    assert not found(lowered, "openvino")
    onnx.checker.check_model(lowered, full_check=True)
    x = RANDOM.integers(1, 99, 2).astype("float32" if element == "float" else element)
    ((state, rows),) = process.call(["openvino", lowered.SerializeToString(), [{"x": x}], 2])
    assert (state.tobytes(), rows.shape, rows.dtype) == (x.tobytes(), (0, 2), x.dtype)


@pytest.mark.parametrize("target", ["openvino", "portable"])
def test_what_follows_a_loop_that_never_has_a_round_is_lowered_for_what_it_is(target: Any) -> None:
    """The split is of 6 elements then, and not of 6 or 12."""
    model = parse_model(
        '<ir_version: 8, opset_import: ["": 9]> g (float[6] x) => (float[?] y) <int64 n = {0}>'
        " { v = Loop(n, , x) <body = b (int64 i, bool c, float[?] h) => (bool d, float[?] o)"
        " { d = Identity(c) o = Concat<axis = 0>(h, h) }> y, rest = Split<axis = 0>(v) }"
    )
    lowered = ts.lower(model, target=target)
    assert not [each for each in ts.check(lowered, target=target) if each.severity == "error"]
    assert ts.lower(lowered, target=target) == lowered
    assert ts.run(lowered, {"x": X.ravel()})["y"].tolist() == X.ravel()[:3].tolist()


def test_a_loop_whose_rows_are_of_no_known_type_is_refused() -> None:
    body = TWICE.replace("float[2,3] u)", "u)").replace("u = Neg(h)", "u = other.Op(h)")
    model = made_of(f"y, s, t = Loop(zero, yes, x) <body = b {body}> u = Neg(t)")
    model.opset_import.add(domain="other", version=1)
    with refused("TS513", "the type of a scan output is not known"):
        ts.lower(model, target="openvino")


@pytest.mark.parametrize(
    ("condition", "more"),
    [
        ("go = Less(zero, n)", 0),
        ("go = Less(one, n)", 0),
        ("m = Reshape(n, flat) k = Squeeze(m, first) go = Less(zero, k)", 0),
        ("a = Less(zero, n) go = And(yes2, a)", 0),
        ("k = Neg(n) go = Less(zero, k)", 1),
        ("k = Add(n, one) go = Less(zero, k)", 1),
        ("go = Less(minus, n)", 1),
        ("go = Less(n, one)", 1),
        ("k = Size(w) go = Less(zero, k)", 1),
        ("a = Less(zero, n) go = Or(yes2, a)", 1),
    ],
)
def test_a_condition_that_includes_the_number_of_rounds_gets_nothing_more(
    condition: str, more: int
) -> None:
    model = made_of(f"{condition} y, s = Loop(n, go, x) <body = b {REPLACED}>")
    before = [each.op_type for each in nodes_of(model.graph)]
    after = [each.op_type for each in nodes_of(ts.lower(model, target="openvino").graph)]
    assert [after.count(each) - before.count(each) for each in ("Less", "And")] == [more, more]


def test_rows_of_an_unknown_length_have_length_0_where_a_loop_has_no_round() -> None:
    model = parse_model(
        '<ir_version: 8, opset_import: ["": 13]> g (float[N,3] x) => (float[r,k,3] s)'
        " <int64 n = {0}> { y, s = Loop(n, , x) <body = b (int64 i, bool c, float[a,3] h) =>"
        " (bool d, float[e,3] o, float[f,3] row) { d = Identity(c) o = Concat<axis = 0>(h, h)"
        " row = Neg(h) }> }"
    )
    lowered = ts.lower(model, target="openvino")
    assert ts.run(lowered, {"x": X})["s"].shape == (0, 0, 3)
    assert "Loop" not in [each.op_type for each in nodes_of(lowered.graph)]


@pytest.mark.parametrize("target", ["openvino", "portable"])
def test_loops_that_lowering_writes_start_on_their_number_of_rounds(target: Any) -> None:
    joined = parse_model(
        '<ir_version: 8, opset_import: ["": 18]> g (float[2,k] x, int64[m] l) => (float[p,q] y)'
        " { s = SplitToSequence<axis = 1>(x, l) y = ConcatFromSequence<axis = 0>(s) }"
    )
    lowered = ts.lower(joined, target=target)
    (loop,) = [each for each in nodes_of(lowered.graph) if each.op_type == "Loop"]
    (start,) = [each for each in nodes_of(lowered.graph) if loop.input[1] in each.output]
    assert (start.op_type, start.input[1]) == ("Less", loop.input[0])
    assert not found(lowered, target)
    assert ts.lower(lowered, target=target) == lowered


SUMS = """(int64 i, bool c, float[2,3] h) => (bool d, float[2,3] o, float[2,3] row)
    { d = Identity(c) o = Add(h, z) row = Neg(o) }> s = Unsqueeze(x, flat)"""
"""A body whose rows are not used, and which reads what it carries."""


@pytest.mark.parametrize(
    ("given", "end", "is_found"),
    [
        ("n, go", "Expand(go, first2)", False),
        ("n, go", "Expand(yes2, first2)", True),
        ("n, go", "Cast<to = 9>(first2)", True),
        ("n, go", "Expand(go, first2) w2 = Neg(first2)", True),
        ("k, yes2", "Expand(yes2, first2)", True),
    ],
)
def test_rows_are_safe_where_they_stay_by_the_condition_of_the_loop(
    given: str, end: str, is_found: bool
) -> None:
    """`yes2` says nothing of the number of rounds."""
    model = made_of(
        f"go = Less(zero, n) k = Size(w) y, r = Loop({given}, x) <body = b {ADDED}> sh = Shape(r)"
        f" first2 = Gather(sh, first) e = {end}"
        " s = Compress<axis = 0>(r, e)"
    )
    assert bool(found(model, "openvino")) == is_found


@pytest.mark.parametrize(
    "body",
    [
        LOOP.replace("n,", "one,").format(REPLACED),
        f"k = Size(x) y, t = Loop(k, yes, x) <body = b {SUMS}",
        f"y, t = Loop(, yes, x) <body = b {SUMS}",
        f"go = Less(zero, n) y, t = Loop(n, go, x) <body = b {SUMS}",
    ],
)
def test_a_loop_that_gives_what_was_calculated_stays(body: str) -> None:
    model = made_of(body)
    assert not found(model, "openvino")
    assert ts.lower(model, target="openvino") == model


@pytest.mark.parametrize(
    ("given", "is_found"),
    [
        ("n, yes", True),
        ("minus, yes", True),
        ("zero, yes", True),
        ("n, more", True),
        ("n, either", True),
        ("n, both", False),
        ("n, neither", True),
        ("n, below", True),
    ],
)
def test_a_count_of_0_or_below_is_found_where_the_condition_does_not_exclude_it(
    given: str, is_found: bool
) -> None:
    """OpenVINO takes it for no limit. What the loop carries is read here."""
    conditions = (
        "go = Less(zero, n) more = Less(minus, n) both = And(yes2, go) either = Or(yes2, go)"
        " below = Less(n, one) neither = And(yes2, more)"
    )
    model = made_of(f"{conditions} y, t = Loop({given}, x) <body = b {SUMS}")
    assert bool(found(model, "openvino")) == is_found


def test_the_rows_are_the_loops_own_where_their_shape_is_not_known(process: Runner) -> None:
    """A slice of no rows has the rank and the lengths that the target gives the rows."""
    body = REPLACED.replace("row, rest = Split<axis = 0>(z, halves)", "row = NonZero(z)")
    model = made_of(LOOP.format(body.replace("float[1,3] row", "int64[2,q] row")))
    model.graph.output[1].type.tensor_type.elem_type = onnx.TensorProto.INT64
    del model.graph.output[1].type.tensor_type.shape.dim[1:]
    model.graph.output[1].type.tensor_type.shape.dim.add(dim_value=2)
    model.graph.output[1].type.tensor_type.shape.dim.add(dim_param="q")
    lowered = lowered_for("openvino", model)
    assert "Compress" in [each.op_type for each in nodes_of(lowered.graph)]
    rest = {"x": X, "z": Z, "yes2": np.array(True), "w": X[0]}
    feeds = [{"n": np.array(count), **rest} for count in (FEW, 0)]
    first, second = process.call(["openvino", lowered.SerializeToString(), feeds, 2])
    assert (first[1].shape, len(second[1])) == ((FEW, 2, 6), 0)
    assert ts.run(lowered, feeds[1])["s"].shape == ts.run(model, feeds[1])["s"].shape == (0, 2, 0)


@pytest.mark.parametrize("target", ["openvino", "portable"])
@pytest.mark.parametrize(("count", "goes"), [(2, True), (2, False), (0, True)])
def test_rows_have_the_lengths_that_their_body_declares_where_only_that_knows_them(
    count: int, goes: bool, target: Any, process: Runner
) -> None:
    """OpenVINO gives rows of length 0 after no round, which a split of 3 does not fit."""
    model = parse_model(
        """<ir_version: 8, opset_import: ["": 18]> g (float[N,M] x, float[K,L] z, int64 n, bool c)
        => (float[A,B] y, float[R,P,1] a, float[R,P,2] b) <int64[2] l = {1, 2}, int64[1] i = {0},
        int64[1] e = {9}> { y, r = Loop(n, c, x) <body = b (int64 j, bool d, float[2,3] h)
        => (bool g, float[2,3] o, float[2,3] row) { g = Identity(c) o = Add(h, z)
        row = Mul(h, z) }> s = Slice(r, i, e) a, b = Split<axis = 2>(s, l) }"""
    )
    lowered = lowered_for(target, model)
    feeds = {"x": X, "z": Z, "n": np.array(count), "c": np.array(goes)}
    states = [X, X + Z, X + Z + Z][: 1 + count * goes]
    rows = np.array([each * Z for each in states[:-1]], np.float32).reshape(-1, 2, 3)
    for got in (
        process.call(["openvino", lowered.SerializeToString(), [feeds], 2])[0],
        list(ts.run(lowered, feeds).values()),
    ):
        for part, wanted in zip(got, [states[-1], rows[..., :1], rows[..., 1:]], strict=True):
            assert part.shape == wanted.shape
            np.testing.assert_allclose(part, wanted, rtol=1e-6)


OLD = LOOP.format(
    REPLACED.replace("Split<axis = 0>(z, halves)", "Split<axis = 0, split = [1, 1]>(z)")
)


def test_before_opset_9_the_loop_stays_with_a_note() -> None:
    """Less takes no integers there."""
    model = made_of(OLD, opset=8)
    (warning,) = found(model, "openvino")
    assert warning.code == "TS843"
    assert "opset 13" in warning.fix
    assert ts.lower(model, target="openvino") == model
    report = lower_graph(onnx_model(model), "openvino")
    assert any("round" in said for said in (*report.notes, *report.warnings))


@pytest.mark.filterwarnings("ignore::tensorsplit.SplitWarning")
@pytest.mark.parametrize("target", ["openvino", "portable"])
@pytest.mark.parametrize("opset", [16, 22])
def test_rows_that_compress_does_not_take_end_where_there_is_no_round(
    opset: int, target: Any
) -> None:
    """Compress takes no bfloat16, and Loop gives it out."""
    version = 8 if opset < 21 else 10
    made = parse_model(
        f'<ir_version: {version}, opset_import: ["" : {opset}]>'
        " g (int64 n, bfloat16[N,3] x) => (bfloat16[A,B] y, bfloat16[C,D,E] s) {"
        " y, s = Loop(n, , x) <body = b (int64 i, bool c, bfloat16[F,3] h) => (bool d,"
        " bfloat16[G,3] o, bfloat16[H,3] r) { d = Identity(c) o = Identity(h) r = Identity(h) }> }"
    )
    lowered = lowered_for(target, made)
    assert [each for each in ts.check(lowered, target) if each.severity == "error"] == []
    x = RANDOM.uniform(1, 2, (2, 3)).astype(ml_dtypes.bfloat16)
    for count in (0, 1, 3):
        found = ts.run(lowered, {"n": np.array(count), "x": x})
        assert found["s"].shape[0] == count
        assert all(np.array_equal(row, x) for row in found["s"])
        assert np.array_equal(found["y"], x)


def of_small_elements(element: str, given: str) -> onnx.ModelProto:
    """A model with a loop that gives rows of an element type that few operators take."""
    kind = onnx.TensorProto.DataType.Value(element.upper())
    return parse_model(
        f'<ir_version: 11, opset_import: ["" : 23]> g (float[2] x, {given}) => ({element}[R,2] s)'
        " { y, s = Loop(n, , x) <body = b (int64 i, bool c, float[2] h) => (bool d, float[2] o,"
        f" {element}[2] r) {{ d = Identity(c) o = Identity(h) r = Cast<to = {kind}>(h) }}> }}"
    )


@pytest.mark.parametrize("target", ["openvino", "portable"])
@pytest.mark.parametrize("element", ["bfloat16", "uint4", "int4", "float8e4m3fn", "float4e2m1"])
def test_rows_of_a_loop_without_a_round_may_be_of_a_type_that_expand_does_not_take(
    element: str, target: Any
) -> None:
    made = of_small_elements(element, "int64 m")
    made.graph.initializer.append(onnx.numpy_helper.from_array(np.array(0), "n"))
    lowered = lowered_for(target, made)
    assert "Loop" not in [each.op_type for each in nodes_of(lowered.graph)]
    assert [each for each in ts.check(lowered, target) if each.severity == "error"] == []
    rows = ts.run(lowered, {"x": X[0, :2], "m": np.array(1)})["s"]
    kind = onnx.TensorProto.DataType.Value(element.upper())
    assert (rows.shape, rows.dtype) == ((0, 2), onnx.helper.tensor_dtype_to_np_dtype(kind))


@pytest.mark.filterwarnings("ignore::tensorsplit.SplitWarning")
@pytest.mark.parametrize("element", ["uint4", "float8e4m3fn"])
def test_rows_that_no_operator_cuts_stay_with_a_note(element: str) -> None:
    made = of_small_elements(element, "int64 n")
    assert found(made, "openvino")
    assert lowered_for("openvino", made) == made
    report = lower_graph(onnx_model(made), "openvino")
    assert any("round" in said for said in (*report.notes, *report.warnings))


OTHERS = RANDOM.uniform(1, 2, 4).astype(np.float32)
GROWN = """y = Loop(n, , x) <body = b (int64 i, bool c, float[?] h) => (bool d, float[?] o)
    { d = Identity(c) o = Neg(v) }>"""


def replacing(count: str, data: str, other: str = "float[4] v") -> onnx.ModelProto:
    """A model with a loop that puts a tensor of another length in the place of what it carries."""
    return parse_model(
        f'<ir_version: 8, opset_import: ["": 18]> g (float[{data}] x, {other}, int64 n)'
        f" => (float[?] y) {count} {{ {GROWN} }}"
    )


@pytest.mark.parametrize("data", ["3", "N", "4"])
def test_what_a_loop_carries_keeps_its_shape_where_there_is_no_round(
    data: str, process: Runner
) -> None:
    """OpenVINO gives it the shape that it sees in the body."""
    model = replacing("", data)
    lowered = lowered_for("openvino", model)
    start = RANDOM.uniform(1, 2, 4 if data == "4" else 3).astype(np.float32)
    feeds = [{"x": start, "v": OTHERS, "n": np.array(n)} for n in (2, 0, 1)]
    runs = process.call(["openvino", lowered.SerializeToString(), feeds, 2])
    for feed, (got,) in zip(feeds, runs, strict=True):
        wanted = -OTHERS if feed["n"] else start
        assert got.tobytes() == ts.run(lowered, feed)["y"].tobytes() == wanted.tobytes()


def test_what_a_round_gives_of_unknown_rank_is_compared_with_nothing() -> None:
    model = parse_model(
        """<ir_version: 10, opset_import: ["": 18]>
        g (float[N] v, float[2, 3] x, int64[k] s) => (float[] y) {
            n = Size(v)
            y = Loop(n, , x) <body = b (int64 i, bool c, float[] h) => (bool d, float[] e)
                { d = Identity(c) a = Neg(h) e = Reshape(a, s) }>
        }"""
    )
    (finding,) = ts.check(model, "openvino")
    assert "the rank of every tensor" in finding.message


@pytest.mark.parametrize(
    ("data", "part", "node"),
    [
        ("N", "?", "o, rest = Split<axis = 0>(z, few)"),
        ("N,3", "?,3", "r = Reshape(z, square) o, rest = Split<axis = 0>(r, few)"),
        ("3,N", "3,?", "r = Reshape(z, square) o, rest = Split<axis = 1>(r, few)"),
        ("N", "?", "o = Slice(z, first, first)"),
    ],
)
@pytest.mark.parametrize("target", ["openvino", "portable"])
def test_a_loop_carries_a_part_of_length_0(
    target: Any, data: str, part: str, node: str, process: Runner
) -> None:
    """What lowering writes for it takes nothing, which OpenVINO does not see and does right."""
    model = parse_model(
        f"""<ir_version: 8, opset_import: ["": 18]> g (int64 n, float[{data}] x, float[9] z)
        => (float[{part}] y) <int64[2] few = {{0, {9 if part == "?" else 3}}}, int64[1] first ="""
        f""" {{0}}, int64[2] square = {{3, 3}}> {{ y = Loop(n, , x) <body = b (int64 i, bool c,
        float[{part}] h) => (bool d, float[{part}] o) {{ d = Identity(c) {node} }}> }}"""
    )
    lowered = lowered_for(target, model)
    start = RANDOM.uniform(1, 2, (5,) if data == "N" else (3, 3)).astype(np.float32)
    feeds = [{"n": np.array(n), "x": start, "z": Z.repeat(2)[:9]} for n in (2, 0, 1)]
    runs = process.call(["openvino", lowered.SerializeToString(), feeds, 2])
    for feed, (got,) in zip(feeds, runs, strict=True):
        wanted = ts.run(model, feed)["y"]
        assert wanted.size == (0 if feed["n"] else start.size)
        assert (got.shape, got.tobytes()) == (wanted.shape, wanted.tobytes())


@pytest.mark.parametrize("default", [0, -1, 2])
@pytest.mark.parametrize("data", ["3", "N"])
@pytest.mark.parametrize("rows", ["", ", float[?,?] s"])
def test_openvino_does_not_see_a_default_of_no_round(
    rows: str, data: str, default: int, process: Runner
) -> None:
    """It takes the default for a constant, and dies of SIGFPE or refuses the model."""
    row = ", float[?] r" if rows else ""
    model = parse_model(
        f'<ir_version: 8, opset_import: ["": 18]> g (float[{data}] x, int64 n) =>'
        f" (float[?] y{rows}) <int64 n = {{{default}}}> {{ y{', s' * bool(rows)} = Loop(n, , x)"
        f" <body = b (int64 i, bool c, float[?] h) => (bool d, float[?] o{row})"
        f" {{ d = Identity(c) o = Concat<axis=0>(h, h) {'r = Neg(x)' * bool(rows)} }}> }}"
    )
    lowered = lowered_for("openvino", model)
    assert not [each for each in ts.check(lowered, target="openvino") if " round" in each.message]
    start = RANDOM.uniform(1, 2, 3).astype(np.float32)
    (got,) = process.call(["openvino", lowered.SerializeToString(), [{"x": start}], 2])
    count = max(default, 0)
    assert got[0].tobytes() == np.tile(start, 2**count).tobytes()
    assert all(each.tobytes() == np.array([-start] * count).tobytes() for each in got[1:])


@pytest.mark.parametrize(("default", "is_changed"), [(1, False), (0, True)])
def test_openvino_takes_the_default_of_a_condition_for_a_constant(
    default: int, is_changed: bool, process: Runner
) -> None:
    """Where it holds there is a round: nothing more is needed, which it refused to load."""
    model = parse_model(
        f"""<ir_version: 8, opset_import: ["": 18]> g (float[2,3] x, float[?,?] z, bool go)
        => (float[?,?] y, int64[?,?] s) <bool go = {{{default}}}, int64 n = {{1}}> {{
        six = Shape(x)  all = ReduceProd(six)  ones = ConstantOfShape(all)  k = Cast<to = 7>(ones)
        y, s = Loop(n, go, x) <body = b (int64 i, bool c, float[?,?] h)
        => (bool d, float[?,?] o, int64[?] row) {{ d = Identity(c) o = Identity(z)
        row = Identity(k) }}> }}"""
    )
    lowered = ts.lower(model, target="openvino")
    assert (lowered != model) == is_changed
    found = [
        each for each in ts.check(model, target="openvino") if "after no round" in each.message
    ]
    assert bool(found) == is_changed
    if not is_changed:
        feed = {"x": X, "z": Z}
        (got,) = process.call(["openvino", lowered.SerializeToString(), [feed], 2])
        assert got[0].tobytes() == Z.tobytes()
        assert got[1].tolist() == [[0] * 6]


def test_a_number_of_rounds_whose_rank_is_known_only_at_run_time_is_a_scalar(
    process: Runner,
) -> None:
    model = parse_model(
        '<ir_version: 8, opset_import: ["": 18]> g (float[?] x, int64[1] axis) => (float[?,?] s)'
        " <int64[1] two = {2}> { n = Squeeze(two, axis) y, s = Loop(n, , x) <body = b (int64 i,"
        " bool c, float[?] h) => (bool d, float[?] o, float[?] r) { none = Constant<value ="
        " int64[2] {0, 0}>() p, r = Split<axis=0>(h, none) d = Identity(c)"
        " o = Concat<axis=0>(h, h) }> }"
    )
    lowered = ts.lower(model, target="openvino")
    feed = {"x": X[:0].ravel(), "axis": np.array([-1])}
    ((got,),) = process.call(["openvino", lowered.SerializeToString(), [feed], 2])
    assert got.shape == ts.run(model, feed)["s"].shape == (2, 0)


@pytest.mark.parametrize(("count", "is_kept"), [(1, True), ("A", False)])
def test_a_number_of_rounds_stays_where_its_rank_is_known(count: int | str, is_kept: bool) -> None:
    model = parse_model(
        f'<ir_version: 8, opset_import: ["": 18]> g (float[?] x, int64[{count}] to)'
        " => (float[?,?] s) <int64[1] two = {2}> { n = Reshape(two, to) y, s = Loop(n, , x) <body"
        " = b (int64 i, bool c, float[?] h) => (bool d, float[?] o, float[?] r) { none = Constant"
        "<value = int64[2] {0, 0}>() p, r = Split<axis=0>(h, none) d = Identity(c)"
        " o = Concat<axis=0>(h, h) }> }"
    )
    lowered = ts.lower(model, target="openvino")
    (loop,) = (each for each in lowered.graph.node if each.op_type == "Loop")
    assert (loop.input[0] == "n") is is_kept
    feed = {"x": X[:0].ravel(), "to": np.array([1])}
    assert ts.run(lowered, feed)["s"].shape == ts.run(model, feed)["s"].shape == (2, 0)


@pytest.mark.parametrize(
    "view", ["Identity(i)", "Reshape(i, one)", "Reshape(h, one)", "Split<num_outputs=1>(h)"]
)
def test_what_a_round_reads_is_the_number_of_the_one_before(view: str, process: Runner) -> None:
    """OpenVINO keeps the number that is carried in the memory of the number itself."""
    model = onnx.parser.parse_model(
        f"""<ir_version: 8, opset_import: ["": 18]> g (float[3] x) => (int64[A] y, float[B] p)
        <int64 n = {{3}}, int64[1] one = {{1}}, int64[1] s = {{-3}}, int64[1] t = {{7}}> {{
            p, q = Split<num_outputs = 2>(x)
            y, v = Loop(n, , s, t) <body = b (int64 i, bool c, int64[C] g, int64[D] f) =>
                (bool d, int64[C] k, int64[D] o) {{
                d = Identity(c) h = Reshape(i, one) k = Neg(f) m = {view} o = Reshape(m, one) }}>
        }}"""
    )
    (found,) = [each for each in ts.check(model, target="openvino") if "number of" in each.message]
    assert found.severity == "warning"
    made = ts.lower(model, target="openvino")
    assert ts.lower(made, target="openvino") == made
    x = np.random.default_rng(4).random(3, np.float32)
    (got,) = process.call(["openvino", made.SerializeToString(), [{"x": x}], 1])
    assert got[0].tolist() == ts.run(made, {"x": x})["y"].tolist() == [-1]


HIDDEN = {
    "a sequence": "u = SplitToSequence<axis = 0>(x, two) r = SequenceAt(u, zero)",
    "a node after a sequence": (
        "u = SplitToSequence<axis = 0>(x, two) t = SequenceAt(u, zero) r = Neg(t)"
    ),
    "what a loop carries": (
        "r = Loop(two, , x) <body = e (int64 j, bool k, float[A, B] u) => (bool l, float[C, D] v)"
        " { l = Identity(k) v = Neg(u) }>"
    ),
    "the rows of a loop": (
        'r = Loop(two, "") <body = e (int64 j, bool k) => (bool l, float[C, D] v)'
        " { l = Identity(k) v = Neg(x) }>"
    ),
    "its data": "r = Neg(x)",
}


@pytest.mark.engine("onnxruntime")
@pytest.mark.parametrize("is_named", [False, True])
@pytest.mark.parametrize("name", HIDDEN)
def test_onnxruntime_gives_no_rows_the_shape_that_their_body_declares(
    name: str, is_named: bool
) -> None:
    """After no round it finds the shape of the rows by no sequence and no Loop."""
    made = parse_model(
        f"""<ir_version: 8, opset_import: ["": 17]> g (float[4, 3] x, int64 n) => (float y)
        <int64 two = {{2}}, int64 zero = {{0}}, int64[2] pair = {{2, 2}}> {{ y = Loop(n, "")
        <body = b (int64 i, bool c) => (bool d, float r) {{ d = Identity(c) {HIDDEN[name]} }}> }}"""
    )
    body = made.graph.node[0].attribute[0].g
    for end in (made.graph.output[0], body.output[1]):
        end.type.tensor_type.ClearField("shape")
    for dim in ("A", "B", "C")[: 3 if "rows" in name else 2] if is_named else ():
        body.output[1].type.tensor_type.shape.dim.add(dim_param=dim)
    is_hidden = name != "its data"
    said = [
        each.severity for each in ts.check(made, "onnxruntime") if "after no round" in each.message
    ]
    assert said == ["warning"] * is_hidden
    lowered = ts.lower(made, target="onnxruntime")
    assert not [
        each for each in ts.check(lowered, "onnxruntime") if "after no round" in each.message
    ]
    for count in (0, 2):
        fed = {"x": RANDOM.random((4, 3), np.float32), "n": np.array(count)}
        expected = ts.run(made, fed)["y"]
        assert ts.run(lowered, fed, engine="onnxruntime")["y"].shape == expected.shape
        got = ts.run(made, fed, engine="onnxruntime")["y"]
        assert (got.shape == expected.shape) is (count > 0 or not is_hidden)


@pytest.mark.engine("onnxruntime")
@pytest.mark.parametrize("declared", ["4, 3", ""])
def test_onnxruntime_gives_no_rows_of_what_a_loop_carries_the_shape_that_is_declared(
    declared: str,
) -> None:
    made = parse_model(
        f"""<ir_version: 8, opset_import: ["": 17]> g (float[4, 3] x, int64 n) => (float[A, B, C] y)
        {{ z, y = Loop(n, "", x) <body = b (int64 i, bool c, float[{declared}] u)
        => (bool d, v, r) {{ d = Identity(c) v = Identity(u) r = Neg(u) }}> }}"""
    )
    said = [each for each in ts.check(made, "onnxruntime") if "after no round" in each.message]
    assert len(said) == (not declared)
    fed = {"x": RANDOM.random((4, 3), np.float32), "n": np.array(0)}
    got = ts.run(ts.lower(made, target="onnxruntime"), fed, engine="onnxruntime")["y"]
    assert got.shape == ts.run(made, fed)["y"].shape
