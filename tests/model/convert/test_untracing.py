"""Lengths that were traced at one size, and are taken from the shape of the data again."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx.parser import parse_model

import tensorsplit as ts
from tensorsplit.model.convert.untracing import open_untraced
from tests.refusals import refused

RANDOM = np.random.default_rng(25)


def traced(lengths: list[int], opset: int, dim: str = "N", outputs: str = "") -> onnx.ModelProto:
    """A Split of a dimension into constant lengths, which its outputs declare, too."""
    names = [f"y{index}" for index in range(len(lengths))]
    declared = outputs or ", ".join(
        f"float[2, {length}] {name}" for name, length in zip(names, lengths, strict=True)
    )
    listed = ", ".join(map(str, lengths))
    as_input = f"<int64[{len(lengths)}] l = {{{listed}}}>" if opset >= 13 else ""
    operands = "(x, l)" if opset >= 13 else "(x)"
    attribute = "" if opset >= 13 else f", split = [{listed}]"
    return parse_model(
        f'<ir_version: 8, opset_import: ["" : {opset}]> g (float[2, {dim}] x) => ({declared})'
        f" {as_input} {{ {', '.join(names)} = Split <axis = 1{attribute}> {operands} }}"
    )


def untraced(model: onnx.ModelProto) -> onnx.ModelProto:
    opened, report = open_untraced(model)
    return opened.proto(report.is_changed)


@pytest.mark.parametrize("opset", [10, 11, 13, 18])
@pytest.mark.parametrize(
    ("lengths", "size", "expected"),
    [
        ([6], 9, [9]),
        ([3, 3], 10, [5, 5]),
        ([4, 3], 9, [5, 4]),
        ([2, 2, 2], 12, [4, 4, 4]),
        ([2, 2, 2], 8, [3, 3, 2]),
        ([3, 3, 1], 5, [2, 2, 1]),
        ([3, 3, 1], 7, [3, 3, 1]),
    ],
)
def test_as_many_parts_of_another_size(
    lengths: list[int], size: int, expected: list[int], opset: int
) -> None:
    made = untraced(traced(lengths, opset))
    onnx.checker.check_model(made, full_check=True)
    x = RANDOM.random((2, size), np.float32)
    parts = list(ts.run(made, {"x": x}).values())
    assert [part.shape for part in parts] == [(2, length) for length in expected]
    np.testing.assert_array_equal(np.concatenate(parts, 1), x)


@pytest.mark.parametrize(("opset", "code"), [(13, "TS302"), (18, "TS304")])
def test_a_size_of_which_no_last_part_is_left(opset: int, code: str) -> None:
    with refused(code, "1"):
        ts.run(untraced(traced([2, 2, 2], opset)), {"x": RANDOM.random((2, 1), np.float32)})


STAYING: dict[str, Any] = {
    "other lengths than num_outputs gives": traced([3, 2, 2], 18),
    "a part without elements": traced([6, 0], 18),
    "a dimension that is known": traced([3, 3], 18, dim="6"),
    "equal parts": parse_model(
        '<ir_version: 8, opset_import: ["" : 13]> g (float[2, N] x)'
        " => (float[2, A] a, float[2, A] b) { a, b = Split <axis = 1> (x) }"
    ),
    "a count": parse_model(
        '<ir_version: 8, opset_import: ["" : 18]> g (float[2, N] x)'
        " => (float[2, A] a, float[2, B] b) { a, b = Split <axis = 1, num_outputs = 2> (x) }"
    ),
    "a count of one": parse_model(
        '<ir_version: 8, opset_import: ["" : 18]> g (float[2, N] x)'
        " => (float[2, A] a) { a = Split <axis = 1, num_outputs = 1> (x) }"
    ),
    "a function": parse_model(
        '<ir_version: 8, opset_import: ["" : 13, "f" : 1]>'
        " g (float[2, N] x) => (float[2, A] a, float[2, B] b) { a, b = f.halves(x) }"
        ' <domain: "f", opset_import: ["" : 13]> halves (d) => (c, e)'
        " { l = Constant <value_ints = [3, 3]> ()  c, e = Split <axis = 1> (d, l) }"
    ),
    "lengths that are fed": parse_model(
        '<ir_version: 8, opset_import: ["" : 13]> g (float[2, N] x, int64[2] l)'
        " => (float[2, A] a, float[2, B] b) { a, b = Split <axis = 1> (x, l) }"
    ),
    "a default": parse_model(
        '<ir_version: 8, opset_import: ["" : 13]> g (float[2, N] x, int64[2] l = {3, 3})'
        " => (float[2, A] a, float[2, B] b) { a, b = Split <axis = 1> (x, l) }"
    ),
    "a sequence": parse_model(
        '<ir_version: 8, opset_import: ["" : 13]> g (float[2, N] x) => (seq(float[2, A]) s)'
        " <int64[2] l = {3, 3}> { s = SplitToSequence <axis = 1> (x, l) }"
    ),
}


@pytest.mark.parametrize("name", STAYING)
def test_what_stays(name: str) -> None:
    before = STAYING[name].SerializeToString(deterministic=True)
    opened, report = open_untraced(STAYING[name])
    assert not report.is_changed
    assert opened.proto(changed=False).SerializeToString(deterministic=True) == before


def test_shapes_that_were_declared_of_the_parts_are_open() -> None:
    """Of what is made of them too, in bodies as well; all others are as they were."""
    text = """<ir_version: 8, opset_import: ["" : 13]>
    g (float[2, N] x, bool c, float[2, 3] z) => (float[2, 3] y, float[2, 3] u, float[2, 3] w)
    <int64[2] l = {3, 3}, float[2, 3] p, float[2, 3] q, float[2, 3] v> {
        p, q = Split <axis = 1> (x, l)
        y = If (c) <then_branch = t () => (float[2, 3] a) { a = Abs(p) },
                    else_branch = e () => (float[2, 3] b) { b = Neg(q) }>
        v = Relu(z)
        u = Abs(v)
        w = Relu(q)
    }"""
    made = untraced(parse_model(text))
    graph = made.graph
    shapes = {
        each.name: [dim.dim_value for dim in each.type.tensor_type.shape.dim]
        for each in (*graph.value_info, *graph.output)
    }
    expected = {"p": [2, 0], "q": [2, 0], "v": [2, 3], "y": [2, 0], "u": [2, 3], "w": [2, 0]}
    assert {name: shapes[name] for name in expected} == expected
    x, z = RANDOM.random((2, 10), np.float32) - 0.5, RANDOM.random((2, 3), np.float32)
    found = ts.run(made, {"x": x, "z": z, "c": np.array(False)})
    np.testing.assert_array_equal(found["y"], -x[:, 5:])


def test_names_that_were_declared_stay() -> None:
    text = """<ir_version: 8, opset_import: ["" : 18, "own" : 1]>
    g (float[2, N] x) => (float[K, 3] y, float[2, 3] q) <int64[2] l = {3, 3}> {
        p, q = Split <axis = 1> (x, l)
        y = own.Op(p)
    }"""
    y, _ = untraced(parse_model(text)).graph.output
    assert [dim.dim_param or dim.dim_value for dim in y.type.tensor_type.shape.dim] == ["K", 0]


def test_shapes_of_what_a_loop_carries_are_open() -> None:
    text = """<ir_version: 8, opset_import: ["" : 18]>
    g (float[2, N] x) => (float[2, 3] y, float[2, 3] q) <int64[2] l = {3, 3}, int64 n = {2}> {
        p, q = Split <axis = 1> (x, l)
        y = Loop (n, , p) <body = b (int64 i, bool c, float[2, 3] u) => (bool d, float[2, 3] w)
            <float[2, 3] v> { d = Identity(c)  v = Abs(u)  w = Neg(v) }>
    }"""
    made = untraced(parse_model(text))
    (body,) = (each.g for node in made.graph.node for each in node.attribute if each.HasField("g"))
    inner = [*body.value_info, body.output[1]]
    assert [each.type.tensor_type.shape.dim[1].dim_value for each in inner] == [0, 0]
    x = RANDOM.random((2, 10), np.float32)
    np.testing.assert_array_equal(ts.run(made, {"x": x})["y"], -x[:, :5])


def test_before_opset_10_nothing_computes_lengths() -> None:
    with refused("TS310", "graph/Split[0]", "convert to opset 10"):
        untraced(traced([3, 3], 9))


@pytest.mark.parametrize(("lengths", "is_told"), [([3, 3], True), ([3, 2, 2], False)])
def test_check_names_the_option(lengths: list[int], is_told: bool) -> None:
    (finding,) = (each for each in ts.check(traced(lengths, 13)) if each.code == "TS825")
    assert ("--fix-traced" in finding.fix) is is_told
