"""Whom an unforeseen exception is blamed on: the model only if that is malformed."""

from __future__ import annotations

from typing import Any

import onnx
import pytest

import tensorsplit as ts
from tensorsplit.model import reading
from tensorsplit.model.graph.message import write_message
from tensorsplit.model.lower import steps
from tests.refusals import refused

RIGHT = "(float[4] x) => (float[2] a, float[2] b) {a, b = Split<num_outputs=2>(x)}"
LOOP = (
    '(float[4] x, int64 m) => (float[4] y) {y = Loop(m, "", x)'
    "<body=b(int64 i, bool k, float[4] v) => (bool k2, OUT) {k2 = Identity(k) BODY}>}"
)
WRONG = {
    "value": RIGHT.replace("(x)}", "(q)}"),
    "body": LOOP.replace("OUT", "float[4] o, float[4] p").replace("BODY", "o = Neg(v) p = Abs(v)"),
    "type": LOOP.replace("OUT", "int64[4] o").replace("BODY", "o = Cast<to=7>(v)"),
}


def parsed(text: str, opset: int = 18) -> onnx.ModelProto:
    return onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["": {opset}]> g {text}')


def fail(*_: Any) -> Any:
    raise IndexError("out of range")


def test_what_fails_in_lowering_is_to_be_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(steps, "_lower", fail)
    with refused("TS512", "out of range", "please report"):
        ts.lower(parsed(RIGHT), target="openvino")


@pytest.mark.parametrize("name", WRONG)
def test_what_fails_for_a_malformed_model_is_not(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The message says what is wrong with it, and where."""
    (found,) = [each for each in ts.check(parsed(WRONG[name])) if each.severity == "error"]
    monkeypatch.setattr(steps, "_lower", fail)
    with refused("TS502", found.message, found.node):
        ts.lower(parsed(WRONG[name]), target="openvino")


def test_what_fails_in_reading_and_writing_is_to_be_reported(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(
        reading,
        "write_message",
        lambda made, of: fail() if made.opset_imports[""] == 13 else write_message(made, of),
    )
    with refused("TS512", "can't be written", "please report"):
        ts.convert(parsed(RIGHT), opset=13)
    monkeypatch.setattr(reading, "read_message", fail)
    with refused("TS512", "can't be understood", "please report"):
        ts.convert(parsed(RIGHT), opset=13)


@pytest.mark.parametrize("opset", [9, 11, 13])
def test_a_branch_with_a_split_of_another_count_is_refused_with_words(opset: int) -> None:
    """It may never run, so that the model itself is right (D22)."""
    body = "{p, q = Split<num_outputs=1>(x)}"
    model = parsed(
        "(float[N] x, bool c) => (float[N] y) {y = If(c)"
        f" <then_branch = t () => (float[N] p) {body},"
        " else_branch = e () => (float[N] r) {r = Neg(x)}>}"
    )
    with refused("TS305", "1 part", "2 outputs"):
        ts.convert(model, opset=opset)


@pytest.mark.parametrize(
    ("opset", "node", "code"),
    [
        (18, "Split<num_outputs = 2>(x, l)", "TS104"),
        (18, "Split(x)", "TS104"),
        (13, "Split<num_outputs = 2>(x)", "TS103"),
    ],
)
def test_a_branch_with_a_split_that_asks_for_nothing_is_refused_with_words(
    opset: int, node: str, code: str
) -> None:
    model = parsed(
        f"""(float[6] x, bool c) => (float[N] y) <int64[2] l = {{3, 3}}> {{ y = If(c)
        <then_branch = t () => (float[P] a) {{ a, b = {node} }},
        else_branch = e () => (float[Q] q) {{ q = Neg(x) }}> }}""",
        opset,
    )
    with refused(code, "Split"):
        ts.convert(model, opset=11)


@pytest.mark.parametrize("target", ["openvino", "portable"])
def test_an_optional_node_that_its_operator_does_not_allow_is_malformed(target: Any) -> None:
    model = parsed("(float[4] x) => (bool y, float[4] z) {y, z = OptionalHasElement(x)}")
    with refused("TS502", "OptionalHasElement"):
        ts.lower(model, target=target)


@pytest.mark.parametrize("opset", [None, 0, -1, 99, 1 << 40, "13", 13.5])
def test_an_opset_that_does_not_exist_is_named(opset: Any) -> None:
    problem = "no opset is given" if opset is None else f"there is no opset {opset!r}"
    with refused("TS101", problem, "from 1 to"):
        ts.convert(parsed(RIGHT), opset=opset)
