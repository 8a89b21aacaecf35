"""Splits that OpenVINO leaves out, and the refusal with them.

Their parts are all joined again, or only shapes are used of them, or a part of length 0.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest

import tensorsplit as ts
from tensorsplit.model.lower import lower_graph
from tests.model.build import onnx_model
from tests.model.lower.running import Runner, lowered_for

X = np.random.default_rng(5).uniform(1, 2, 6).astype(np.float32)
LENGTHS = "<int64[2] l = {1, 3}, int64[2] m = {2, 1}, int64[1] flat = {-1}, int64 i = {0},"
LENGTHS += " int64 j = {1}, int64[1] zero = {0}, int64[1] most = {9223372036854775807}>"

CASES = {
    "lengths of an attribute": (9, "p, q = Split<split = [1, 3]>(y) z = Concat<axis = 0>(p, q)"),
    "constant lengths": (13, "p, q = Split(y, l) z = Concat<axis = -1>(p, q)"),
    "equal parts": (13, "p, q = Split(y) z = Concat<axis = 0>(p, q)"),
    "parts through nodes that change nothing": (
        18,
        (
            "p, q = Split(y, l) r = Identity(p) s = Cast<to = 1>(r) t = Reshape(q, flat)"
            " z = Concat<axis = 0>(s, t)"
        ),
    ),
    "parts through nodes of one input": (
        18,
        (
            "p, q = Split(y, l) r, mask = Dropout(p) s = Sum(r) t = Split<num_outputs = 1>(q)"
            " u = Concat<axis = 0>(t) z = Concat<axis = 0>(s, u)"
        ),
    ),
    "parts through moves that end where they began": (
        18,
        (
            "p, q = Split(y, l) r = Unsqueeze(p, zero) s = Transpose(r) t = Transpose(s)"
            " u = Squeeze(t, zero) v = Slice(q, zero, most) z = Concat<axis = 0>(u, v)"
        ),
    ),
    "parts through sums and products that change nothing": (
        18,
        (
            "one = Constant<value_float = 1.0>() nil = Constant<value_float = 0.0>()"
            " p, q = Split(y, l) r = Mul(one, p) s = Sub(r, nil) t = Neg(q) u = Neg(t)"
            " z = Concat<axis = 0>(s, u)"
        ),
    ),
    "parts chosen by a constant": (
        18,
        (
            "c = Constant<value = bool {1}>() p, q = Split(y, l) r = Where(c, p, p)"
            " z = Concat<axis = 0>(r, q)"
        ),
    ),
    "parts of which shapes are used": (
        18,
        "p, q = Split(y, l) k = Shape(p) r = Reshape(p, k) z = Concat<axis = 0>(r, q)",
    ),
    "parts of a part": (
        18,
        (
            "p, q = Split(y, l) r, s = Split(q, m) t = Concat<axis = 0>(r, s)"
            " z = Concat<axis = 0>(p, t)"
        ),
    ),
    "tensors of a sequence": (
        18,
        (
            "s = SplitToSequence(y, l) p = SequenceAt(s, i) q = SequenceAt(s, j)"
            " z = Concat<axis = 0>(p, q)"
        ),
    ),
    "a function": (13, "z = local.F(y)"),
    "beside what nothing uses": (
        13,
        "p, q = Split(y, l) r = Neg(q) s = Abs(r) z = Concat<axis = 0>(p, q)",
    ),
    "beside a split that nothing uses": (
        13,
        "p, q = Split(y, l) r, s = Split(q, m) z = Concat<axis = 0>(p, q)",
    ),
    "beside an If that nothing uses": (
        18,
        (
            "c = Constant<value = bool {1}>() p, q = Split(y, l) k = If(c) <then_branch = t ()"
            " => (float[a] r) { r = Neg(q) }, else_branch = e () => (float[b] u) { u = Abs(y) }>"
            " z = Concat<axis = 0>(p, q)"
        ),
    ),
    "beside a Scan that nothing uses": (
        18,
        (
            "p, q = Split(y, l) k = Scan(p) <num_scan_inputs = 1, body = b (float v) => (float[3]"
            " r) { u = Neg(q) r = Add(u, v) }> z = Concat<axis = 0>(p, q)"
        ),
    ),
}
FUNCTION = """<opset_import: ["": 13], domain: "local">
    F(y) => (z) { p, q = Split<axis = 0>(y)  z = Concat<axis = 0>(p, q) }"""


def made_of(opset: int, body: str) -> onnx.ModelProto:
    """A model that calculates before and after a split of a dimension known only at run time."""
    return onnx.parser.parse_model(
        f'<ir_version: 8, opset_import: ["": {opset}, "local": 1]>'
        f" g (float[N] x) => (float[M] w) {LENGTHS} {{ y = Abs(x) {body} w = Neg(z) }}"
        f" {FUNCTION if 'local' in body else ''}"
    )


@pytest.mark.parametrize("target", ["openvino", "portable"])
@pytest.mark.parametrize("name", CASES)
def test_what_does_not_fit_is_refused_by_openvino_too(
    name: str, target: Any, process: Runner
) -> None:
    opset, _ = CASES[name]
    lowered = ts.lower(made_of(*CASES[name]), target=target)
    if target == "openvino" or opset >= 10:
        assert not [each for each in ts.check(lowered, target=target) if each.code == "TS841"]
        assert not any("joined again" in each.message for each in ts.check(lowered, target=target))
    assert ts.lower(lowered, target=target) == lowered
    read = [node.input[0] for node in lowered.graph.node if node.op_type == "Split"]
    assert len(set(read)) == len(read), "the Split that was replaced is still there"
    feeds = [{"x": X[:count]} for count in (4, 5, 3)]
    got, *refusals = process.call(["openvino", lowered.SerializeToString(), feeds, 2])
    assert got[0].tolist() == (-X[:4]).tolist()
    assert all(isinstance(each, str) for each in refusals), "illegal, and not refused"


@pytest.mark.parametrize(
    "body",
    [
        "p, q = Split(y, l) z = Concat<axis = 0>(q, p)",  # not in order
        "p, q = Split(y, l) r = Neg(q) z = Concat<axis = 0>(p, r)",  # another calculation
        "p, q = Split(y, l) r = Neg(q) z = Concat<axis = 0>(p, q, r)",  # another reader
        "p, q = Split(y, l) r = Sub(nil, q) z = Concat<axis = 0>(p, r)",  # the other way
        "p, q = Split(y, l) r = Mul(q, nil) z = Concat<axis = 0>(p, r)",  # not neutral
        "p, q = Split(y, l) r = Where(d, nil, q) z = Concat<axis = 0>(p, r)",  # by what is fed
        "p, q = Split(y, l) r = Sum(q, nil) z = Concat<axis = 0>(p, r)",  # of two
        "p, q = Split(y, l) z = Concat<axis = 0>(p, q, p)",  # more parts
        "z = Split<num_outputs = 1>(y)",  # nothing to join
        (
            "p, q = Split(y, l) k = If(c) <then_branch = t () => (float[a] r) { r = Neg(q) },"
            " else_branch = e () => (float[b] u) { u = Abs(q) }> h = Concat<axis = 0>(p, q)"
            " z = Concat<axis = 0>(h, k)"
        ),  # a branch reads a part
        (
            "k = Reshape(y, two) p, q = Split<axis = 1, num_outputs = 2>(k)"
            " r = Concat<axis = 0>(p, q) z = Reshape(r, flat)"
        ),  # another axis
        (
            "k = Reshape(y, two) p, q = Split(k, l) r = Concat<axis = 1>(p, q)"
            " s = Concat<axis = 0>(p, q) t = Reshape(r, flat) u = Reshape(s, flat)"
            " z = Concat<axis = 0>(t, u)"
        ),  # once along another axis
    ],
)
def test_a_split_that_something_needs_gets_no_other_part(body: str) -> None:
    text = body.replace("two", "flat2")
    made = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["": 18]> g (float[N] x) => (float[M] w)'
        f" {LENGTHS[:-1]}, int64[2] flat2 = {{-1, 2}}, float[1] nil = {{0}}, bool c = {{1}}>"
        f" {{ y = Abs(x) d = Cast<to = 9>(nil) {text} w = Neg(z) }}"
    )
    assert not any("joined again" in each.message for each in ts.check(made, target="openvino"))
    count = next(len(node.output) for node in made.graph.node if node.op_type == "Split")
    lowered = ts.lower(made, target="openvino")
    assert [len(node.output) for node in lowered.graph.node if node.op_type == "Split"] == [count]


def test_a_split_that_always_fits_gets_no_other_part() -> None:
    made = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["": 13]> g (float[4] x) => (float[4] w)'
        f" {LENGTHS} {{ y = Abs(x) p, q = Split(y, l) w = Concat<axis = 0>(p, q) }}"
    )
    assert ts.lower(made, target="openvino") == made
    assert ts.check(made, target="openvino") == []


def test_equal_parts_before_opset_10_stay_with_a_note() -> None:
    """There is no operand for another part's length."""
    made = made_of(9, "p, q = Split(y) z = Concat<axis = 0>(p, q)")
    found = [each.message for each in ts.check(made, target="openvino")]
    assert any("are taken for the data" in message for message in found)
    assert ts.lower(made, target="openvino") == made


BRANCHES = (
    "<then_branch = t () => (float[A] e) { e = Neg(q) }, else_branch = f () => (float[A] h)"
    " { h = Neg(y) }>"
)
"""Of an If that nothing needs; the one reads a part."""


@pytest.mark.parametrize("target", ["openvino", "portable"])
@pytest.mark.parametrize("split", ["Split<split = [0, 4]>(y)", "Split(y, l)"])
@pytest.mark.parametrize(
    ("use", "expected"),
    [
        ("v = Neg(p) w = Cast<to = 7>(v)", []),
        ("w = Shape(q)", [4]),
        ("v = Neg(q) w = Shape(v)", [4]),
        (f"w = Shape(q) d = If(c) {BRANCHES}", [4]),
    ],
)
def test_a_split_whose_parts_are_not_read_keeps_the_check(
    use: str, expected: list[int], split: str, target: Any, process: Runner
) -> None:
    """OpenVINO knows shapes, and a part of length 0, before it runs, and leaves the Split out."""
    made = onnx.parser.parse_model(
        f'<ir_version: 8, opset_import: ["": {11 if "<" in split else 13}]> g (float[N] x,'
        f" bool c) => (int64[M] w) <int64[2] l = {{0, 4}}> {{ y = Abs(x) p, q = {split} {use} }}"
    )
    found = [each.message for each in ts.check(made, target="openvino")]
    assert any("known before the model runs" in message for message in found)
    lowered = ts.lower(made, target=target)
    found = [each.message for each in ts.check(lowered, target="openvino")]
    assert not any("known before the model runs" in message for message in found)
    assert ts.lower(lowered, target=target) == lowered
    feeds = [{"x": X[:count], "c": np.array(count == 4)} for count in (4, 5, 3)]
    got, *refusals = process.call(["openvino", lowered.SerializeToString(), feeds, 2])
    assert got[0].tolist() == expected
    assert all(isinstance(each, str) for each in refusals), "illegal, and not refused"


def test_a_part_of_length_0_that_nothing_uses_stays() -> None:
    made = made_of(13, "p, q, r = Split(y, k) z = Concat<axis = 0>(q, p)")
    made.graph.initializer.append(onnx.numpy_helper.from_array(np.array([1, 3, 0]), "k"))
    assert ts.lower(made, target="openvino") == made


@pytest.mark.parametrize("target", ["openvino", "portable"])
def test_a_split_of_which_lowering_leaves_only_shapes_keeps_the_check(
    target: Any, process: Runner
) -> None:
    """Of the parts of a sequence that is only counted, nothing is read but lengths."""
    made = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["": 18]> g (float[N, M] x, int64[2] r) => (int64 n)'
        " <int64[2] l = {1, 3}> { p, q = Split(x, l) s = SplitToSequence<axis = 1>(q, r)"
        " n = SequenceLength(s) }"
    )
    lowered = ts.lower(made, target=target)
    assert ts.lower(lowered, target=target) == lowered
    x, r = np.outer(X, X[:3]), np.array([1, 2])
    feeds = [{"x": x[:count], "r": r} for count in (4, 5, 3)]
    got, *refusals = process.call(["openvino", lowered.SerializeToString(), feeds, 2])
    assert got[0] == 2
    assert all(isinstance(each, str) for each in refusals), "illegal, and not refused"


@pytest.mark.parametrize("target", ["onnxruntime", "portable"])
@pytest.mark.parametrize("name", ["n = Shape(q)", "w = Neg(q) n = Shape(w)"])
@pytest.mark.parametrize("declared", ["", ", float[3] q, float[3] w"])
def test_a_split_whose_parts_are_declared_and_only_measured_keeps_the_check(
    declared: str, name: str, target: Any, process: Runner
) -> None:
    """ONNX Runtime believes declared shapes, and leaves out what nothing else is used of."""
    made = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["": 18]> g (float[N] x) => (int64[1] n)'
        f" <int64[2] l = {{1, 3}}{declared}> {{ p, q = Split(x, l) {name} }}"
    )
    found = [each.code for each in ts.check(made, "onnxruntime") if "are declared" in each.message]
    assert found == ["TS843"] * bool(declared)
    lowered = lowered_for(target, made)
    assert not [each for each in ts.check(lowered, "onnxruntime") if "are declared" in each.message]
    feeds = [{"x": X[:4]}, {"x": X[:5]}]
    got, refusal = process.call(["onnxruntime", lowered.SerializeToString(), feeds, 2])
    assert got[0].tolist() == [3]
    assert isinstance(refusal, str), "illegal, and not refused"


def test_a_split_that_lowering_leaves_without_a_reader_is_noted() -> None:
    """That the part is three long is known, and nothing else of it is wanted."""
    made = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["": 18]> g (float[N] x, int64[2] r) => (int64 n)'
        " <int64[2] l = {1, 3}> { p, q = Split(x, l) s = SplitToSequence(q, r)"
        " n = SequenceLength(s) }"
    )
    assert any("nothing uses" in note for note in lower_graph(onnx_model(made), "openvino").notes)
