"""Splits as OpenVINO's VariadicSplit, and back: both ways together change nothing."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from onnx import numpy_helper
from onnx.parser import parse_model

import tensorsplit as ts
from tensorsplit.engines.compare import Reference
from tensorsplit.model.graph.nodes import walk
from tensorsplit.model.graph.split_records import is_onnx_split, is_vendor_split
from tests.model.lower.corpus import CASES, Case
from tests.refusals import refused

NO_KERNEL = {"split13_int8_quantised"}


def _has_splits(case: Case) -> bool:
    found = [place.node for place in walk(ir.from_proto(case.model))]
    sequences = any(node.op_type == "SplitToSequence" for node in found)
    return any(map(is_onnx_split, found)) and not sequences and case.name not in NO_KERNEL


SPLITS = [case for case in CASES if _has_splits(case)]


def variadic(model: onnx.ModelProto, opset: int | None = None) -> onnx.ModelProto:
    made = ts.convert(model, opset, variadic=True)
    assert isinstance(made, onnx.ModelProto)
    onnx.checker.check_model(made)
    return made


@pytest.mark.parametrize("flag", ["no", 2, [], None, np.array([2, 4])])
def test_whether_splits_become_variadic_is_true_or_false(flag: Any) -> None:
    with refused("TS703", "give True or False", parameter="variadic"):
        ts.convert(CASES[0].model, 13, variadic=flag)


def lengths_of(model: onnx.ModelProto) -> list[int]:
    (split,) = (node for node in model.graph.node if node.op_type == "VariadicSplit")
    (constant,) = (node for node in model.graph.node if split.input[2] in node.output)
    lengths: list[int] = numpy_helper.to_array(constant.attribute[0].t).tolist()
    return lengths


def parsed(text: str, opset: int = 18) -> onnx.ModelProto:
    return parse_model(f'<ir_version: 8, opset_import: ["" : {opset}]> {text}')


@pytest.mark.parametrize("case", SPLITS, ids=lambda case: case.name)
def test_there_and_back_gives_the_same_bits(case: Case) -> None:
    made = variadic(case.model, 13 if case.opset < 9 else None)
    nodes = [place.node for place in walk(ir.from_proto(made))]
    assert any(map(is_vendor_split, nodes))
    assert not any(map(is_onnx_split, nodes))
    back = ts.lower(made, target="portable")
    assert not any(is_vendor_split(place.node) for place in walk(ir.from_proto(back)))
    feeds = case.inputs(seed=5)
    reference = Reference("tensorsplit", ts.run(case.model, feeds))
    assert reference.differences(back, feeds, "tensorsplit") == []


@pytest.mark.parametrize(
    ("text", "lengths"),
    [
        ("g (float[N] x) => (float[A] a) { a = Split<num_outputs=1>(x) }", [-1]),
        ("g (float[7] x) => (float[A] a, float[B] b) { a, b = Split<num_outputs=2>(x) }", [4, 3]),
    ],
)
def test_lengths_that_are_known_are_constants(text: str, lengths: list[int]) -> None:
    assert lengths_of(variadic(parsed(text))) == lengths


def test_from_opset_9_on_there_are_constants_of_integers() -> None:
    """They hold the axis and the lengths; opset 8 is refused below."""
    text = "g (float[2, 6] x) => (float[2, 3] a, float[2, 3] b) { a, b = Split<axis = 1>(x) }"
    made = variadic(parsed(text, 9))
    x = np.random.default_rng(9).random((2, 6), np.float32)
    assert [part.tolist() for part in ts.run(made, {"x": x}).values()] == [
        x[:, :3].tolist(),
        x[:, 3:].tolist(),
    ]


def test_lengths_that_are_a_constant_stay_it() -> None:
    text = "g (float[N] x) => (float[A] a, float[B] b) <int64[2] l = {2,3}> { a, b = Split(x, l) }"
    split = variadic(parsed(text)).graph.node[-1]
    assert (split.domain, split.op_type) == ("org.openvinotoolkit", "VariadicSplit")
    assert (split.input[0], split.input[2]) == ("x", "l")


def test_lengths_that_are_fed_are_no_remainder() -> None:
    """What was a negative length must not become -1, the remainder (D21)."""
    text = "g (float[N] x, int64[2] l) => (float[A] a, float[B] b) { a, b = Split(x, l) }"
    made = variadic(parsed(text))
    split = made.graph.node[-1]
    assert (split.domain, split.op_type, split.input[0]) == (
        "org.openvinotoolkit",
        "VariadicSplit",
        "x",
    )
    feeds = {"x": np.arange(5, dtype=np.float32), "l": np.array([2, 3])}
    assert [part.tolist() for part in ts.run(made, feeds).values()] == [[0, 1], [2, 3, 4]]
    with refused("TS302"):
        ts.run(made, {**feeds, "l": np.array([-1, 3])})


@pytest.mark.parametrize(
    ("text", "opset", "code", "word"),
    [
        (
            "g (float[N] x) => (seq(float[A]) s) <int64 c = {3}> { s = SplitToSequence(x, c) }",
            13,
            "TS310",
            "sequence",
        ),
        ("g (float[6] x) => (float[3] a, float[3] b) { a, b = Split(x) }", 8, "TS310", "opset 9"),
        (
            "g (float[7] x) => (float[3] a, float[4] b) { a, b = Split(x) }",
            13,
            "TS303",
            "divisible",
        ),
        (
            "g (float[N] x, int64[2] l) => (float[A] a, float[B] b) { a, b = Split<axis=1>(x, l) }",
            13,
            "TS203",
            "axis",
        ),
    ],
)
def test_what_has_no_form_is_refused_with_its_node(
    text: str, opset: int, code: str, word: str
) -> None:
    with refused(code, word, "graph/"):
        variadic(parsed(text, opset))


def test_a_split_that_is_wrong_but_never_runs_does_not_stop_the_rest() -> None:
    """Each branch is for data of another length (D22)."""
    branches = ", ".join(
        f"{name} = {name} () => (float[A] {name}_a) {{ {name}_a, {name}_b = Split(x, {lengths}) }}"
        for name, lengths in (("then_branch", "k"), ("else_branch", "m"))
    )
    made = variadic(
        parsed(
            "g (float[5] x, bool c) => (float[A] y) <int64[2] k = {2,3}, int64[2] m = {2,2}>"
            f" {{ y = If (c) <{branches}> }}"
        )
    )
    feeds = {"x": np.arange(5, dtype=np.float32), "c": np.array(True)}
    assert [part.tolist() for part in ts.run(made, feeds).values()] == [[0, 1]]
    with refused("TS302"):
        ts.run(made, {**feeds, "c": np.array(False)})


def test_a_model_without_splits_comes_back_as_it_is() -> None:
    model = parsed("g (float[N] x) => (float[N] y) { y = Neg(x) }")
    assert variadic(model) == model


def test_what_the_parts_of_variadic_split_look_like_is_inferred() -> None:
    text = (
        "g (float[N,4] x) => (float[A,4] a, float[B,4] b) <int64[2] l = {3,4}>"
        " { y, z = Split(x, l)  a = Neg(y)  b = Neg(z) }"
    )
    model = variadic(parsed(text))
    inferred = ts.infer_shapes(model)
    assert isinstance(inferred, onnx.ModelProto)
    known = {entry.name: entry for entry in inferred.graph.value_info}
    sizes = [known[name].type.tensor_type.shape.dim[0].dim_value for name in "yz"]
    assert sizes == [3, 4]
