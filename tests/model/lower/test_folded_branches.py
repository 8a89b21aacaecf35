"""An If on a constant in a body, whose branch ONNX Runtime takes as it loads the model."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import onnx
import pytest
from onnx.parser import parse_model

import tensorsplit as ts
from tensorsplit import SplitError
from tests.model.lower.running import lowered_for, with_own

CONSTANT = "k = Constant<value = bool {1}>()"
COMPARED = "l = Constant<value = int64 {3}>() w = Constant<value = int64 {2}>() k = Less(w, l)"
OF_A_SEQUENCE = """p = SequenceConstruct(s, s) l = SequenceLength(p)
    w = Constant<value = int64 {1}>() k = Less(w, l)"""
BRANCHES = """<then_branch = t () => (float[A, B] a) { f, a = Split<axis = 1, num_outputs = 2>(s) },
    else_branch = e () => (float[C, D] d) { ELSE }>"""
IN_LOOP = """y = Loop(n, , x)
    <body = o (int64 i, bool c, float[2, 4] s) => (bool g, float[2, 4] r) {
    g = Identity(c) NODES v = Concat<axis = 1>(u, u) r = Add(v, s) }>"""
IN_IF = """y = If(z) <then_branch = o () => (float[2, 4] r) {
    s = Neg(x) NODES v = Concat<axis = 1>(u, u) r = Add(v, s) },
    else_branch = w () => (float[2, 4] e) { e = Identity(x) }>"""
BESIDE = "m = Shape(q) u = Neg(q)"


class Folded(NamedTuple):
    """What follows an If, its condition, what is around it; whether it is lost; its function."""

    after: str
    is_lost: bool
    condition: str = COMPARED
    around: str = IN_LOOP
    otherwise: str = "d, j = Split<axis = 1, num_outputs = 2>(s)"
    by: str = ""


CASES = {
    "a Shape first": Folded(BESIDE, True),
    "a Shape last": Folded("u = Neg(q) m = Shape(q)", False),
    "a Shape before others": Folded("m = Shape(q) j = Neg(q) v2 = Abs(q) u = Add(j, v2)", True),
    "a Shape between others": Folded("j = Neg(q) m = Shape(q) v2 = Abs(q) u = Add(j, v2)", False),
    "a known shape": Folded(
        BESIDE, True, "t = Shape<start = 1>(s) w = Constant<value = int64 {4}>() k = Equal(t, w)"
    ),
    "a number of elements": Folded(
        BESIDE, False, "t = Size(s) w = Constant<value = int64 {8}>() k = Equal(t, w)"
    ),
    "an unknown shape": Folded(
        BESIDE, False, "t = Shape(long) w = Constant<value = int64 {4}>() k = Equal(t, w)"
    ),
    "a constant itself": Folded(BESIDE, True, CONSTANT),
    "in an If": Folded(BESIDE, True, around=IN_IF),
    "a Shape that is used": Folded("m = Shape(q) u = Reshape(q, m)", True),
    "a Shape of what is made for it": Folded("b = Neg(q) m = Shape(b) u = Abs(q)", True),
    "a Shape of the same": Folded("b = Identity(q) m = Shape(b) u = Neg(b)", True),
    "a Shape of what is used": Folded("b = Neg(q) m = Shape(b) u = Abs(b)", False),
    "branches of two shapes": Folded(BESIDE, False, otherwise="d = Neg(s)"),
    "no Shape": Folded("m = Size(q) u = Neg(q)", False),
    "a Shape alone": Folded("m = Shape(q) j = ConstantOfShape(m) u = Neg(j)", False),
    "the length of a sequence": Folded(BESIDE, False, OF_A_SEQUENCE),
    "in a function that a body calls": Folded(BESIDE, True, around=IN_LOOP, by="half"),
    "in a function of a function": Folded(BESIDE, True, around=IN_LOOP, by="passed"),
    "a condition that a function is given": Folded(BESIDE, True, CONSTANT, by="given"),
    "in a branch that is taken": Folded(BESIDE, True, around=IN_IF.replace("If(z)", "If(yes)")),
    "in a function, in no body": Folded(
        BESIDE, False, around="s = Neg(x) NODES y = Concat<axis = 1>(u, u)", by="half"
    ),
    "in no body": Folded(BESIDE, False, around="s = Neg(x) NODES y = Concat<axis = 1>(u, u)"),
}


def model_of(case: Folded) -> onnx.ModelProto:
    """Build the model; its loop has a number of rounds that is fed, its If a condition."""
    branches = BRANCHES.replace("ELSE", case.otherwise)
    nodes = f"{case.condition} q = If(k) {branches} {case.after}"
    called = f"u = own.{case.by}(s)" if case.by else nodes
    if case.by == "given":
        nodes, called = nodes.replace(case.condition, ""), f"{case.condition} u = own.given(s, k)"
    functions = f"""<domain: "own", opset_import: ["": 18]>
        {"given (s, k)" if case.by == "given" else "half (s)"} => (u) {{ {nodes} }}
        <domain: "own", opset_import: ["": 18, "own": 1]> passed (s) => (u) {{ u = own.half(s) }}"""
    return parse_model(
        f"""<ir_version: 8, opset_import: ["": 18, "own": 1]>
        g (float[2, 4] x, int64 n, bool z, float[M] long) => (float[E, F] y) <bool yes = {{1}}>
        {{ {case.around.replace("NODES", called)} }} {functions if case.by else ""}"""
    )


@with_own("onnxruntime")
@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("target", ["onnxruntime", "portable"])
def test_the_branch_takes_the_place_of_its_if(target: Any, name: str, engine: Any) -> None:
    case = CASES[name]
    model = model_of(case)
    said = [each.message for each in ts.check(model, target=target)]
    assert sum("is an If in a body" in each for each in said) == case.is_lost
    lowered = lowered_for(target, model)
    x = np.random.default_rng(5).standard_normal((2, 4)).astype(np.float32)
    feeds = {"x": x, "n": np.array(2), "z": np.array(True), "long": x[0]}
    wanted = ts.run(model, feeds)["y"]
    np.testing.assert_array_equal(ts.run(lowered, feeds, engine=engine)["y"], wanted)
    if engine == "onnxruntime" and case.is_lost:
        with pytest.raises(SplitError, match=r"Missing Input|input: q is not If"):
            ts.run(model, feeds, engine=engine)


ELSE = "w = Neg(x)"
OPERANDS = {
    "a Shape": ("v = Add(x, c) s = Shape(v)", ELSE, True),
    "two Shapes": ("v = Add(x, c) t = Shape(v) s = Shape(v)", ELSE, True),
    "of what is made of it": ("v = Add(x, c) n = Neg(v) s = Shape(n)", ELSE, True),
    "of what is made of it, and copied": (
        "v = Add(x, c) n = Neg(v) s = Shape(n) m = Identity(n)",
        ELSE,
        True,
    ),
    "a copy that nobody uses": ("v = Add(x, c) s = Shape(v) m = Identity(v)", ELSE, True),
    "a copy that is used": (
        "v = Add(x, c) s = Shape(v) m = Identity(v) r = Abs(m)",
        "w = Neg(r)",
        False,
    ),
    "another reader": ("v = Add(x, c) s = Shape(v) r = Abs(v)", "w = Neg(r)", False),
    "no Shape": ("v = Add(x, c) s = Shape(x)", ELSE, False),
    "a Size": ("v = Add(x, c) m = Size(v) s = Reshape(m, one)", ELSE, False),
    "an unknown shape": ("v = Neg(x) s = Shape(v)", ELSE, False),
}
"""What is before an If, the other branch, and whether ONNX Runtime loses an operand."""


@with_own("onnxruntime")
@pytest.mark.parametrize(
    "use",
    [
        "y_ = Neg(v)",
        "y_ = Identity(v)",
        "h, y_ = Split<axis = 0>(v, k)",
        """y_ = If(yes) <then_branch = t2 () => (float[I, J] a) { a = Neg(v) },
        else_branch = e2 () => (float[M, N] b) { b = Neg(x) }>""",
    ],
)
@pytest.mark.parametrize("name", OPERANDS)
def test_what_a_branch_reads_is_not_left_out_with_a_shape(name: str, use: str, engine: Any) -> None:
    before, other, is_lost = OPERANDS[name]
    model = parse_model(
        f"""<ir_version: 8, opset_import: ["": 13]> g (float[A, B] x) => (float[C, D] y, int64[E] s)
        <bool yes = {{1}}, float[2, 2] c = {{1, 2, 3, 4}}, int64[2] k = {{0, 2}},
        int64[1] one = {{1}}> {{ {before} y = If(yes)
        <then_branch = t () => (float[F, G] y_) {{ {use} }},
        else_branch = e () => (float[H, K] w) {{ {other} }}> }}"""
    )
    said = [
        each.severity for each in ts.check(model, "onnxruntime") if "only the shape" in str(each)
    ]
    assert said == ["error"] * is_lost
    x = np.random.default_rng(5).standard_normal((2, 2)).astype(np.float32)
    lowered = lowered_for("onnxruntime", model)
    for given, wanted in ts.run(model, {"x": x}).items():
        np.testing.assert_array_equal(ts.run(lowered, {"x": x}, engine=engine)[given], wanted)
    if engine == "onnxruntime" and is_lost:
        with pytest.raises(SplitError, match="is not a graph input"):
            ts.run(model, {"x": x}, engine=engine)


@with_own("onnxruntime")
@pytest.mark.parametrize("where", ["after", "in a loop", "an output"])
def test_what_others_read_too_is_not_left_out(where: str, engine: Any) -> None:
    after = {
        "after": "s = Shape(v)",
        "in a loop": """t = Loop(n, , x) <body = b (int64 i, bool o, float[M, N] q) =>
            (bool o2, float[P, Q] r) { o2 = Identity(o) r = Add(q, v) }>""",
        "an output": "",
    }[where]
    early = "" if where == "after" else "s = Shape(v)"
    model = parse_model(
        f"""<ir_version: 8, opset_import: ["": 13]> g (float[A, B] x, int64 n)
        => (float[C, D] y, int64[E] s{", float[R, S] t" if where == "in a loop" else ""}
        {", float[R, S] v" if where == "an output" else ""})
        <bool yes = {{1}}, float[2, 2] c = {{1, 2, 3, 4}}> {{ v = Add(x, c) {early}
        y = If(yes) <then_branch = t () => (float[F, G] y_) {{ y_ = Neg(v) }},
        else_branch = e () => (float[H, K] w) {{ w = Neg(x) }}> {after} }}"""
    )
    assert not [each for each in ts.check(model, "onnxruntime") if "only the shape" in str(each)]
    x = np.random.default_rng(5).standard_normal((2, 2)).astype(np.float32)
    made = ts.run(model, {"x": x, "n": np.array(2)}, engine=engine)
    np.testing.assert_array_equal(made["y"], -(x + np.array([[1, 2], [3, 4]], np.float32)))


@with_own("onnxruntime")
@pytest.mark.parametrize(
    ("use", "is_lost"),
    [
        ("k = Shape(v) y_ = Expand(x, k)", False),
        ("n = Neg(v) k = Shape(n) y_ = Expand(x, k)", False),
        ("k = Shape(v) n = Neg(v) y_ = Expand(n, k)", True),
    ],
)
def test_only_the_shape_of_what_a_branch_reads_may_be_left_out(
    use: str, is_lost: bool, engine: Any
) -> None:
    model = parse_model(
        f"""<ir_version: 8, opset_import: ["": 13]> g (float[A, B] x) => (float[C, D] y, int64[E] s)
        <bool yes = {{1}}, float[2, 2] c = {{1, 2, 3, 4}}> {{ v = Add(x, c) s = Shape(v) y = If(yes)
        <then_branch = t () => (float[F, G] y_) {{ {use} }},
        else_branch = e () => (float[H, K] w) {{ {ELSE} }}> }}"""
    )
    said = [
        each.severity for each in ts.check(model, "onnxruntime") if "only the shape" in str(each)
    ]
    assert said == ["error"] * is_lost
    x = np.random.default_rng(5).standard_normal((2, 2)).astype(np.float32)
    expected = -(x + np.array([[1, 2], [3, 4]], np.float32)) if is_lost else x
    for each in (lowered_for("onnxruntime", model), *([] if is_lost else [model])):
        np.testing.assert_array_equal(ts.run(each, {"x": x}, engine=engine)["y"], expected)


FOLLOWS = {
    "the Shape": ("s = Shape(v)", "s", False),
    "the Shape of what is made of it": ("n = Neg(v) u = Shape(n) s = Shape(x)", "u", False),
    "one Shape, and another is read": ("u = Shape(v) t = Shape(v) s = Neg(t)", "u", False),
    "one Shape, and another is given out": ("u = Shape(v) s = Shape(v)", "u", True),
    "the Shape of another": ("n = Neg(x) u = Add(n, c) s = Shape(v) t = Shape(u)", "t", True),
    "the Shape, and that of what is made of it is given out": (
        "u = Shape(v) n = Neg(v) s = Shape(n)",
        "u",
        True,
    ),
    "the Shape of what is made of it, and its own is given out": (
        "s = Shape(v) n = Neg(v) u = Shape(n)",
        "u",
        True,
    ),
}
"""What the condition of an If follows from, and whether ONNX Runtime loses what a branch reads."""


@with_own("onnxruntime")
@pytest.mark.parametrize("name", FOLLOWS)
def test_a_shape_that_decides_an_if_is_not_left_out_before(name: str, engine: Any) -> None:
    before, shape, is_lost = FOLLOWS[name]
    model = parse_model(
        f"""<ir_version: 8, opset_import: ["": 13]> g (float[A, B] x) => (float[C, D] y, int64[E] s)
        <float[2, 2] c = {{1, 2, 3, 4}}, int64 one = {{1}}> {{ v = Add(x, c) {before}
        d = ReduceMax<keepdims = 0>({shape}) yes = Greater(d, one) y = If(yes)
        <then_branch = t () => (float[F, G] y_) {{ y_ = Neg(v) }},
        else_branch = e () => (float[H, K] w) {{ w = Neg(x) }}> }}"""
    )
    said = [
        each.severity for each in ts.check(model, "onnxruntime") if "only the shape" in str(each)
    ]
    assert said == ["error"] * is_lost
    x = np.random.default_rng(5).standard_normal((2, 2)).astype(np.float32)
    for each in (lowered_for("onnxruntime", model), *([] if is_lost else [model])):
        made = ts.run(each, {"x": x}, engine=engine)
        np.testing.assert_array_equal(made["y"], -(x + np.array([[1, 2], [3, 4]], np.float32)))
    if engine == "onnxruntime" and is_lost:
        with pytest.raises(SplitError, match="is not a graph input"):
            ts.run(model, {"x": x}, engine=engine)


SHORT = """v = Loop(n) <body = b (int64 i, bool c) => (bool g, float[4] r) { g = Identity(c)
    r = Gather(x, i) }>"""
CARRIES = SHORT.replace("Loop(n)", "Loop(n, , n)").replace("bool c)", "bool c, int64 s)")
CARRIES = CARRIES.replace("v =", "o, v =").replace("bool g,", "bool g, int64 s2,")
CARRIES = CARRIES.replace("r = Gather", "s2 = Identity(s) r = Gather")


@with_own("onnxruntime")
@pytest.mark.parametrize(
    ("condition", "loop", "is_short"),
    [
        (CONSTANT, SHORT, True),
        ("k = Identity(yes)", SHORT, True),
        (COMPARED, SHORT, True),
        (COMPARED, SHORT.replace("Loop(n)", "Loop(n, yes)"), False),
        (COMPARED, CARRIES, False),
        ("k = Identity(z)", SHORT, False),
        ("k = Constant<value = bool {0}>()", SHORT, False),
    ],
)
def test_a_loop_without_a_condition_is_not_left_in_a_branch_that_is_taken(
    condition: str, loop: str, engine: Any, *, is_short: bool
) -> None:
    """ONNX Runtime 1.32.0 loses the empty name of its condition: `vector::reserve`."""
    model = parse_model(f"""<ir_version: 8, opset_import: ["": 18]> g (float[3, 4] x, int64 n,
        bool z) => (float[A, 4] y) <bool yes = {{1}}> {{ {condition} y = If(k)
        <then_branch = t () => (float[A, 4] v) {{ {loop} }}, else_branch = e ()
        => (float[A, 4] u) {{ u = Neg(x) }}> }}""")
    for node in model.graph.node[-1].attribute[0].g.node:
        if len(node.input) == 1:
            node.input.append("")  # the parser leaves it out
    said = [each for each in ts.check(model, "onnxruntime") if "around a Loop" in each.message]
    assert len(said) == is_short
    lowered = ts.lower(model, "onnxruntime")
    x = np.random.default_rng(6).standard_normal((3, 4)).astype(np.float32)
    feeds = {"x": x, "n": np.array(2), "z": np.array(True)}
    wanted = -x if "{0}" in condition else x[:2]
    np.testing.assert_array_equal(ts.run(lowered, feeds, engine=engine)["y"], wanted)
    if engine == "onnxruntime" and is_short:
        with pytest.raises(SplitError, match="vector::reserve"):
            ts.run(model, feeds, engine=engine)
    else:
        np.testing.assert_array_equal(ts.run(model, feeds, engine=engine)["y"], wanted)


OF_TWO = """<then_branch = t () => (float[A] p, float[B] q) { p = Neg(x) q = Abs(x) },
    else_branch = e () => (float[C] r, float[D] s) { r = Abs(x) s = Neg(x) }>"""
UNNAMED = {  # the nodes, and which outputs of the one with a body have no name
    "the first of an If": (f"w, y = If(c) {OF_TWO}", [0]),
    "the first of an If on a constant": (f"w, y = If(yes) {OF_TWO}", [0]),
    "the last of an If": (f"y, w = If(c) {OF_TWO}", [1]),
    "what a Loop carries": (
        """v, w, y = Loop(n, yes, x, x) <body = b (int64 i, bool g, float[3] a, float[3] d) =>
        (bool k, float[3] e, float[3] f, float[3] o)
        { k = Identity(g) e = Neg(a) f = Abs(d) o = Add(a, d) }>""",
        [0, 1],
    ),
    "the rows of a Loop": (
        """y, w = Loop(n, yes, x) <body = b (int64 i, bool g, float[3] a) =>
        (bool k, float[3] e, float[3] o) { k = Identity(g) e = Neg(a) o = Abs(a) }>""",
        [1],
    ),
    "what a Scan carries": (
        """w, y = Scan(one, x) <num_scan_inputs = 1, body = b (float a, float r) =>
        (float e, float o) { e = Neg(a) o = Add(a, r) }>""",
        [0],
    ),
    "of a SequenceMap": (
        """k = Neg(x) q = SequenceConstruct(x, k) w, s = SequenceMap(q) <body = b (float[3] a) =>
        (float[3] e, float[3] o) { e = Neg(a) o = Abs(a) }> y = ConcatFromSequence<axis = 0>(s)""",
        [0],
    ),
}


@with_own("onnxruntime")
@pytest.mark.parametrize("name", UNNAMED)
def test_outputs_of_a_node_with_a_body_get_names(name: str, engine: Any) -> None:
    """ONNX Runtime 1.32.0 ends with SIGSEGV, or does not load the model."""
    nodes, places = UNNAMED[name]
    model = parse_model(
        f"""<ir_version: 8, opset_import: ["": 17]> g (float[3] x, bool c) => (float y)
        <int64 n = {{2}}, bool yes = {{1}}, float one = {{1}}> {{ {nodes} }}"""
    )
    model.graph.output[0].ClearField("type")
    holder = next(node for node in model.graph.node if "w" in node.output)
    x = np.random.default_rng(6).uniform(1, 2, 3).astype(np.float32)
    feeds = {"x": x, "c": np.array(True)}
    (wanted,) = ts.run(model, feeds).values()  # with names
    for place in places:
        holder.output[place] = ""
    (got,) = ts.run(model, feeds).values()
    np.testing.assert_array_equal(got, wanted)
    said = [each.severity for each in ts.check(model, "onnxruntime") if "no name" in str(each)]
    assert said == ["error"]
    for target in ("onnxruntime", "portable"):
        lowered = ts.lower(model, target=target)
        assert all(map(all, (node.output for node in lowered.graph.node)))
        (got,) = ts.run(lowered, feeds, engine=engine).values()
        np.testing.assert_array_equal(got, wanted)
    if engine == "onnxruntime":
        with pytest.raises(SplitError):
            ts.run(model, feeds, engine=engine)


IF = """i = If(yes) <then_branch = t () => (float[F, G] y_) { y_ = Neg(v) },
    else_branch = e () => (float[H, K] w) { w = Neg(x) }>"""
ORDERS: dict[str, tuple[str, Any, bool]] = {
    "the If is given out": (f"{IF} s = Shape(v) y = Neg(i)", lambda _, v: v, True),
    "the If comes first": (f"{IF} y = Neg(i) s = Shape(v)", lambda _, v: v, False),
    "what reads the If is given out last": (
        f"{IF} o = Neg(i) s = Shape(v) y = Neg(o)",
        lambda _, v: -v,
        True,
    ),
    "what reads the Shape is given out last": (
        f"{IF} d = Shape(v) y = Neg(i) s = Neg(d)",
        lambda _, v: v,
        False,
    ),
    "the Shape is passed on": (
        f"d = Shape(v) {IF} s = Identity(d) y = Neg(i)",
        lambda _, v: v,
        True,
    ),
    "the Shape is read later": (f"d = Shape(v) {IF} y = Neg(i) s = Neg(d)", lambda _, v: v, False),
    "nothing reads the If": (f"{IF} s = Shape(v) u = Neg(i) y = Neg(x)", lambda x, _: -x, True),
    "both are read, the If first": (
        f"{IF} s = Shape(x) d = Shape(v) f = Cast<to = 1>(d) y = Add(f, i)",
        lambda _, v: 2 - v,
        False,
    ),
    "both are read, the Shape first": (
        f"d = Shape(v) f = Cast<to = 1>(d) {IF} s = Shape(x) y = Add(f, i)",
        lambda _, v: 2 - v,
        True,
    ),
}
"""Nodes around an If, what they make of x and v, and if ONNX Runtime loses an operand."""


@with_own("onnxruntime")
@pytest.mark.parametrize("name", ORDERS)
def test_what_a_branch_reads_is_lost_in_the_order_of_the_engine(name: str, engine: Any) -> None:
    nodes, made_of, is_lost = ORDERS[name]
    model = parse_model(
        f"""<ir_version: 8, opset_import: ["": 13]> g (float[A, B] x) => (float[C, D] y, int64[E] s)
        <bool yes = {{1}}, float[2, 2] c = {{1, 2, 3, 4}}> {{ v = Add(x, c) {nodes} }}"""
    )
    said = [
        each.severity for each in ts.check(model, "onnxruntime") if "only the shape" in str(each)
    ]
    assert said == ["error"] * is_lost
    x = np.random.default_rng(7).standard_normal((2, 2)).astype(np.float32)
    lowered = lowered_for("onnxruntime", model)
    wanted = made_of(x, x + np.array([[1, 2], [3, 4]], np.float32))
    for each in (lowered, *([] if is_lost else [model])):
        made = ts.run(each, {"x": x}, engine=engine)
        np.testing.assert_allclose(made["y"], wanted, rtol=1e-6)
    if engine == "onnxruntime" and is_lost:
        with pytest.raises(SplitError, match="is not a graph input"):
            ts.run(model, {"x": x}, engine=engine)
