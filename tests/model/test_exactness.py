"""Which outputs have bits that follow from what is fed, because they are only split and moved."""

from __future__ import annotations

from pathlib import Path

import pytest
from onnx.parser import parse_model

from tensorsplit.model.convert.driver import open_converted
from tensorsplit.model.exactness import moved_outputs
from tensorsplit.model.reading import read_model
from tests.model.ir_files import cut_file

MODELS = {
    "what is calculated is not moved": (
        (
            "(float[N,6] x) => (float[N,3] a, float[N,3] b, float[N,3] c)"
            " {a, b = Split<axis=1, num_outputs=2>(x) c = Add(a, b)}"
        ),
        "a b",
    ),
    "nor are parts of what is calculated": (
        (
            "(float[4,6] x, float[6,6] w) => (float[2,6] a, float[2,6] b)"
            " {y = MatMul(x, w) a, b = Split<axis=0, num_outputs=2>(y)}"
        ),
        "",
    ),
    "lengths may be calculated from shapes": (
        (
            "(float[N,6] x, float[6,6] w) => (float[?,?] a, float[?,?] b, float[?] c)"
            " {two = Constant<value_ints=[2, 1]>() y = MatMul(x, w) s = Shape(y) t = Mul(s, two)"
            " u = Div(t, two) a = Reshape(x, u) b = Reshape(y, u) c = ConstantOfShape(s)}"
        ),
        "a c",
    ),
    "positions may be found by comparing": (
        (
            "(float[N] x) => (float[?] y, float[?] z)"
            " {i = ArgMax<axis=0>(x) y = Gather(x, i) e = Exp(x) j = ArgMax<axis=0>(e)"
            " z = Gather(x, j)}"
        ),
        "y",
    ),
    "a Scatter may add": (
        (
            "(float[4] x, int64[4] i) => (float[4] y, float[4] z) {y = ScatterElements(x, i, x)"
            ' z = ScatterElements<reduction="add">(x, i, x)}'
        ),
        "y",
    ),
    "sequences hold parts": (
        (
            "(float[4] x) => (seq(float[2]) s, float[?] y)"
            " {two = Constant<value_int=2>() s = SplitToSequence(x, two)"
            " y = ConcatFromSequence<axis=0>(s)}"
        ),
        "s y",
    ),
    "both branches count": (
        (
            "(float[4] x, bool c) => (float[?] y, float[?] z) {y, z = If(c) <"
            "then_branch = t () => (float[?] a, float[?] b)"
            " {a, b = Split<axis=0, num_outputs=2>(x)},"
            "else_branch = e () => (float[?] u, float[?] v) {u = Identity(x) v = Exp(x)}>}"
        ),
        "y",
    ),
    "any round of a loop counts": (
        (
            "(float[4] x, int64 n, bool c) => (float[4] y, float[4] z, float[?,?] w)"
            " {y, z, w = Loop(n, c, x, x) <body = b"
            " (int64 i, bool k, float[4] p, float[4] q)"
            " => (bool k2, float[4] p2, float[4] q2, float[4] s)"
            " {k2 = Identity(k) p2 = Identity(p) q2 = Add(p, q) s = Identity(q)}>}"
        ),
        "y",
    ),
    "a loop that ends at a value that is rounded": (
        (
            "(float[4] x, int64 n, bool c, float t) => (float[4] y) {y = Loop(n, c, x) <body = b"
            " (int64 i, bool k, float[4] p) => (bool k2, float[4] p2)"
            " {e = Exp(t) k2 = Less(e, t) p2 = Identity(p)}>}"
        ),
        "",
    ),
    "what a scan moves": (
        (
            "(float[4] x, float[3,4] d) => (float[4] y, float[3,4] z) {y, z = Scan"
            " <num_scan_inputs = 1, body = b (float[4] p, float[4] q) => (float[4] p2, float[4] s)"
            " {p2 = Add(p, q) s = Identity(q)}>(x, d)}"
        ),
        "z",
    ),
    "integers are moved, or calculated exactly": (
        (
            "(int64[4] x) => (int64[2] a, int64[2] b, int64[2] c)"
            " {a, b = Split<axis=0, num_outputs=2>(x) c = Add(a, b)}"
        ),
        "a b",
    ),
    "what is calculated exactly is not moved, wherever it is moved": (
        (
            "(int64[4] x) => (int64[4] y, int64[4] z)"
            " {two = Constant<value_ints=[2]>() m = Mul(x, two) y = Identity(m) z = Identity(x)}"
        ),
        "z",
    ),
    "nor in an optional": (
        (
            "(int64[4] x) => (optional(int64[4]) o, int64[4] y, int64[4] z)"
            " {two = Constant<value_ints=[2]>() m = Mul(x, two) o = Optional(m)"
            " y = OptionalGetElement(o) p = Optional(x) z = OptionalGetElement(p)}"
        ),
        "z",
    ),
    "floats that are calculated count as rounded, and decide nothing": (
        (
            "(float[4] x, float[4] t) => (float[4] y, float[4] z)"
            " {a = Abs(x) k = Less(a, t) y = Where(k, x, t) l = Less(x, t) z = Where(l, x, t)}"
        ),
        "z",
    ),
    "a branch that is chosen by a value that is rounded": (
        (
            "(float[4] x, float[4] w, float t) => (float[4] y)"
            " {e = Exp(t) c = Less(e, t) y = If(c) <"
            "then_branch = t () => (float[4] a) {a = Identity(x)},"
            "else_branch = e () => (float[4] b) {b = Identity(w)}>}"
        ),
        "",
    ),
    "a branch that is chosen by a value that is fed": (
        (
            "(float[4] x, bool c) => (float[4] y) {y = If(c) <"
            "then_branch = t () => (float[4] a) {a = Identity(x)},"
            "else_branch = e () => (float[4] b) {b = Identity(x)}>}"
        ),
        "y",
    ),
    "rounds whose number is rounded": (
        (
            "(float[4] x, float t, bool c, int64 m) => (float[4] y, float[4] z)"
            " {e = Exp(t) n = Cast<to=7>(e) y = Loop(n, c, x) <body = b"
            " (int64 i, bool k, float[4] p) => (bool k2, float[4] p2)"
            " {k2 = Identity(k) p2 = Identity(p)}>"
            " z = Loop(m, c, x) <body = b2 (int64 j, bool l, float[4] q) => (bool l2, float[4] q2)"
            " {l2 = Identity(l) q2 = Identity(q)}>}"
        ),
        "z",
    ),
    "a loop that begins where a value that is rounded lets it": (
        (
            "(float[4] x, int64 n, float t) => (float[4] y) {e = Exp(t) c = Less(e, t)"
            " y = Loop(n, c, x) <body = b (int64 i, bool k, float[4] p) => (bool k2, float[4] p2)"
            " {k2 = Identity(k) p2 = Identity(p)}>}"
        ),
        "",
    ),
    "what is rounded in a later round": (
        (
            "(float[4] x, int64 n, bool c) => (float[4] y, float[4] z) {y, z = Loop(n, c, x, x)"
            " <body = b (int64 i, bool k, float[4] p, float[4] q)"
            " => (bool k2, float[4] p2, float[4] q2)"
            " {k2 = Identity(k) p2 = Identity(q) q2 = Exp(q)}>}"
        ),
        "",
    ),
    "each element of a sequence": (
        (
            "(seq(float[4]) s, seq(float[4]) t) => (seq(float[2]) a, seq(float[4]) b)"
            " {a, b = SequenceMap(s, t) <body = b (float[4] p, float[4] q)"
            " => (float[2] left, float[4] sum)"
            " {left, right = Split<axis=0, num_outputs=2>(p) sum = Add(p, q)}>}"
        ),
        "a",
    ),
    "positions of operators of others may be any": (
        (
            "(float[4] x, int64[2] i) => (float[2] y, float[2] z) <int64[2] j>"
            " {j = other.Shift(i) y = Gather(x, j) z = Gather(x, i)}"
        ),
        "z",
    ),
    "operators of others may do anything": (
        "(float[4] x) => (float[4] y) {y = other.Identity(x)}",
        "",
    ),
}


@pytest.mark.parametrize("name", MODELS)
def test_what_is_moved(name: str) -> None:
    text, moved = MODELS[name]
    model = parse_model(f'<ir_version: 10, opset_import: ["": 18, "other": 1]> g {text}')
    assert moved_outputs(read_model(model)) == set(moved.split())


def test_a_scan_of_opset_8_is_given_lengths_first() -> None:
    model = parse_model(
        '<ir_version: 10, opset_import: ["": 8]> g (float[1,4] x, float[1,3,4] d)'
        " => (float[1,4] y, float[1,3,4] z) {e = Exp(d) y, z = Scan <num_scan_inputs = 1,"
        " body = b (float[4] p, float[4] q) => (float[4] p2, float[4] s)"
        " {p2 = Identity(p) s = Identity(q)}>(x, e)}"
    )
    model.graph.node[1].input.insert(0, "")
    assert moved_outputs(read_model(model)) == {"y"}


def test_a_function_moves_what_it_is_given() -> None:
    model = parse_model(
        '<ir_version: 10, opset_import: ["": 18, "own": 1]>'
        " g (float[4] x) => (float[2] y, float[2] z)"
        " {e = Exp(x) y, r = own.Halves(x) z, s = own.Halves(e)}"
        ' <domain: "own", opset_import: ["": 18]> Halves (x) => (a, b)'
        " {a, b = Split<axis=0, num_outputs=2>(x)}"
    )
    assert moved_outputs(read_model(model)) == {"y"}


def test_parts_of_an_openvino_model_are_moved(tmp_path: Path) -> None:
    model = read_model(cut_file((2, -1)).save(tmp_path))
    assert moved_outputs(model) == set(model.output_names)


CONVERTED = {
    "(float[2,3,4] x) => (float[2,3,4] y) {y = Softmax<axis = -1>(x)}": (11, "Softmax", True),
    "(float[2,3,4] x) => (float[2,3,4] y) {y = Softmax<axis = 1>(x)}": (11, "Softmax", False),
    "(float[6,4] x) => (float[?,?] y) {n = Constant<value_ints = [3, 5]>() y = CenterCropPad(x, n)"
    "}": (13, "CenterCropPad", True),
    "(float[4] x) => (bool[4] y) {y = GreaterOrEqual(x, x)}": (11, "GreaterOrEqual", True),
    "(float[4] x, float l) => (float[4] y) {y = Clip(x, l)}": (10, "Clip", True),
    "(float[4] x) => (float[4] y) {y = HardSwish(x)}": (13, "HardSwish", False),
    "(float[2,4] x, float[4] w) => (float[2,4] y) {y = LayerNormalization(x, w)}": (
        13,
        "LayerNormalization",
        False,
    ),
    "(float[7] x) => (float[4] a, float[3] b) {a, b = Split<axis = -1, num_outputs = 2>(x)}": (
        10,
        "Split",
        True,
    ),
    "(float[N] x) => (float[?] a, float[?] b) {a, b = Split<axis = 0, num_outputs = 2>(x)}": (
        11,
        "Split",
        True,
    ),
    "(float[4] x, bool c) => (float[4] y) {y = If(c) <"
    "then_branch = t () => (float[4] a) {a = HardSwish(x)},"
    "else_branch = e () => (float[4] b) {b = Identity(x)}>}": (13, "HardSwish", False),
}
"""A model, the opset that it is converted to, and what is rewritten: which operator, how."""


@pytest.mark.parametrize("text", CONVERTED)
def test_convert_reports_what_is_exact(text: str) -> None:
    opset, operator, is_exact = CONVERTED[text]
    model = parse_model(f'<ir_version: 10, opset_import: ["": 18]> g {text}')
    _, report = open_converted(model, opset)
    (changed,) = report.changes
    assert report.is_changed
    assert (changed.operator, changed.opset, changed.is_exact) == (operator, 18, is_exact)


def test_nothing_is_reported_where_nothing_is_rewritten() -> None:
    model = parse_model(
        '<ir_version: 10, opset_import: ["": 18]> g (float[4] x) => (float[4] y) {y = Exp(x)}'
    )
    for opset, is_changed in ((18, False), (13, True)):
        _, report = open_converted(model, opset)
        assert (report.is_changed, report.changes) == (is_changed, [])
