"""Malformed nodes of every operator through every tool: a refusal with a code, or success."""

from __future__ import annotations

import traceback
import warnings
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import defs

import tensorsplit as ts
from tensorsplit import SplitError
from tests.model.build import (
    BOOL,
    FLOAT,
    INT64,
    function,
    graph,
    link,
    linked,
    model,
    node,
    untyped,
    value,
)
from tests.model.malformed_nodes import FEEDS, INPUTS, model_of, nodes, schemas
from tests.refusals import refused

INT, INTS = onnx.AttributeProto.INT, onnx.AttributeProto.INTS
CALLS: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("x", "a b", {"where": 1}),
    ("x", "a b", {}),
    ("x", "a b", {"where": "text"}),
    ("x", "a b", {"where": 9, "there": 1}),
    ("x x x", "a b", {"where": 1}),
    ("", "a b", {"where": 1}),
    ("x", "a b c d", {"where": 1}),
    ("x", "", {"where": 1}),
)
"""The inputs, outputs and attributes of calls."""

Tool = Callable[[onnx.ModelProto], object]

OPSETS = (1, 6, 8, 10, 12, 13, 18, 21, defs.onnx_opset_version())
REWRITERS: tuple[Tool, ...] = (
    *(lambda made, opset=opset: ts.convert(made, opset=opset) for opset in OPSETS),
    *(
        lambda made, target=target: ts.lower(made, target=target)
        for target in ("onnxruntime", "openvino", "portable")
    ),
    lambda made: ts.convert(made, variadic=True),
)
TOOLS: dict[str, tuple[Tool, ...]] = {
    "check": (ts.check, lambda made: ts.check(made, target="openvino")),
    "infer": (ts.infer_shapes,),
    "run": (lambda made: ts.run(made, FEEDS),),
    "rewrite": REWRITERS,
}
"""Where there is more than one, they take turns."""


def check_refusal(tool: Tool, made: onnx.ModelProto) -> None:
    """A tool gives something, or refuses with a code; the model is as it was.

    What is called malformed is so by a rule, and not because of an exception of ours.
    """
    before, refusal = made.SerializeToString(deterministic=True), None
    try:
        with warnings.catch_warnings(action="ignore"), np.errstate(all="ignore"):
            tool(made)
    except SplitError as error:
        refusal = error
    assert made.SerializeToString(deterministic=True) == before
    if refusal is not None:
        assert refusal.code.startswith("TS")
        assert "\n" not in str(refusal)
    if refusal is not None and refusal.code == "TS502" and refusal.__cause__ is not None:
        raised_in = traceback.extract_tb(refusal.__cause__.__traceback__)[-1].filename
        assert "tensorsplit" not in Path(raised_in).parts, refusal


@pytest.mark.thorough
@pytest.mark.parametrize("tools", TOOLS.values(), ids=TOOLS)
def test_a_malformed_node_is_refused_with_a_code(
    tools: tuple[Tool, ...], request: pytest.FixtureRequest
) -> None:
    """A third of the nodes, and each with one of the tools; ``--seed`` tells which."""
    number = request.config.getoption("seed")
    for schema in schemas():
        for made in nodes(schema):
            number += 1
            if number % 3 == 0:
                check_refusal(tools[number // 3 % len(tools)], model_of(made, schema))


@pytest.mark.parametrize("tool", [tool for tools in TOOLS.values() for tool in tools])
@pytest.mark.parametrize("op_type", ["Shape", "Identity", "Split", "SplitToSequence", "SequenceAt"])
def test_a_node_without_inputs_is_refused_with_a_code(tool: Tool, op_type: str) -> None:
    for outputs in ("", "y", "y z"):
        alone = node(op_type, "", outputs)
        last = node("Neg", "x", "w")
        ends = [untyped(name) for name in (*outputs.split(), "w")]
        check_refusal(tool, model(graph([alone, last], [value("x", FLOAT, [2])], ends)))


@pytest.mark.parametrize("target", ["onnxruntime", "openvino", "portable"])
@pytest.mark.parametrize("inputs", ["s", "s r", "s r s"])
def test_nodes_without_outputs_in_a_body_are_found(inputs: str, target: Any) -> None:
    ops = sorted({schema.name for schema in defs.get_all_schemas() if schema.domain == ""})
    held = [node(op_type, inputs, "") for op_type in ops]
    passed = [node("Identity", "k", "k_"), node("Identity", "s", "t"), node("Neg", "x", "u")]
    state = [value("i", INT64, []), value("k", BOOL, []), value("s", FLOAT, [2])]
    body = graph([*held, *passed], state, [value("k_", BOOL, []), value("t", FLOAT, [2])])
    loop = node("Loop", "n  x", "a", body=body)
    data = [value("x", FLOAT, [2]), value("r", FLOAT, [2]), value("n", INT64, [])]
    found = ts.check(model(graph([loop], data, [untyped("a")]), 17), target=target)
    known = {entry.node for entry in found if entry.severity == "error"}
    assert any(each.endswith(f"Concat[{ops.index('Concat')}]") for each in known)


@pytest.mark.parametrize("tool", [tool for tools in TOOLS.values() for tool in tools])
def test_a_malformed_call_of_a_function_is_refused_with_a_code(tool: Tool) -> None:
    """Attributes, inputs and outputs that do not fit; a function that reads what nothing gives."""
    cuts = [
        linked("Split", data, "a b", link("axis", "where", kind), num_outputs=2)
        for data, kind in (("x", INT), ("x", INTS), ("nowhere", INT))
    ]
    for cut in cuts:
        called = function("F", "x", "a b", [cut], ["where"])
        for inputs, outputs, given in CALLS:
            call = node("F", inputs, outputs, domain="custom", **given)
            ends = [untyped(name) for name in (*outputs.split(), "w")]
            whole = graph([call, node("Neg", "x", "w")], [value("x", FLOAT, [2, 2])], ends)
            check_refusal(tool, model(whole, 18, [called], custom=1))


@pytest.mark.parametrize("op_type", ["Loop", "Scan", "If"])
def test_a_body_with_too_few_or_many_ends_is_refused_with_a_code(op_type: str) -> None:
    ends = [value(name, onnx.TensorProto.BOOL, []) for name in "icedfk"]
    for inputs, outputs, given, made in product(range(3), range(3), range(0, 5, 2), range(2)):
        body = graph([node("Identity", "c", "d")], ends[:inputs], ends[3 : 3 + outputs])
        held: dict[str, dict[str, Any]] = {
            "Loop": {"body": body},
            "Scan": {"body": body, "num_scan_inputs": 1},
            "If": {"then_branch": body, "else_branch": body},
        }
        wrong = node(op_type, " ".join("nnnn"[:given]), "y" * made, **held[op_type])
        number = value("n", onnx.TensorProto.INT64, [])
        whole = model(graph([wrong, node("Identity", "n", "z")], [number], [untyped("z")]), 18)
        check_refusal(lambda made: ts.check(made, "openvino"), whole)
        check_refusal(lambda made: ts.lower(made, "openvino"), whole)


def test_what_crashes_the_inference_of_onnx_is_kept_from_it() -> None:
    """It reads beyond the end of a shape."""
    gather = node("GatherND", "x i", "y", batch_dims=-7)
    norm = node("LayerNormalization", "x x", "y", axis=(1 << 63) - 1)
    inputs = [value("x", FLOAT, [2, 3]), value("i", onnx.TensorProto.INT64, [2])]
    for made in (gather, norm):
        ts.infer_shapes(model(graph([made], inputs, ["y"])))


@pytest.mark.parametrize("order", [[0, -1, 1], [0, -2, 1], [0, 2, 2], [1, 2, 3], [-3, -2, -1]])
def test_an_order_that_has_not_each_axis_once_is_refused(order: list[int]) -> None:
    """No engine loads it; NumPy takes axes that count from the back."""
    inputs = [value("x", FLOAT, [2, 3, 4])]
    made = model(graph([node("Transpose", "x", "y", perm=order)], inputs, [untyped("y")]))
    for target in (None, "onnxruntime", "openvino"):
        found = ts.check(made, target=target)
        assert [each.code for each in found if each.severity == "error"] == ["TS502"]
    with refused("TS502", "perm", *map(str, order)):
        ts.run(made, {"x": np.ones((2, 3, 4), np.float32)})
    with refused("TS502", "perm", *map(str, order)):
        ts.convert(made, opset=11)


@pytest.mark.parametrize(
    "equation", ["ij.->ij", "....->ij", "...ij...", "i..j->ij", "i1->i", "ij->->i"]
)
def test_an_equation_that_can_not_be_read_is_kept_from_onnx(equation: str) -> None:
    """Its inference never ends where a point is not of an ellipsis."""
    made = model(graph([node("Einsum", "x", "y", equation=equation)], [INPUTS[0]], [untyped("y")]))
    assert [each.code for each in ts.check(made) if each.severity == "error"] == ["TS502"]
    ts.infer_shapes(made)
    with refused("TS502", "equation", equation):
        ts.run(made, {"x": FEEDS["x"]})
    with refused("TS502", "equation", equation):
        ts.convert(made, opset=11)


def test_a_gather_of_nothing_that_gives_nothing_is_refused() -> None:
    inputs = [value("x", FLOAT, [0]), value("i", onnx.TensorProto.INT64, [])]
    made = model(graph([node("Gather", "x i", "")], inputs, []), 18)
    for target in (None, "openvino", "onnxruntime"):
        codes = [finding.code for finding in ts.check(made, target=target)]
        assert "TS502" in codes


@pytest.mark.parametrize("first", ["Neg(x)", "Mul(x)", "Mul(j)"])
@pytest.mark.parametrize("second", ["Mul(x)", "Mul(j, x)", "Mul(x, j)"])
def test_products_that_lack_an_input_are_refused_with_a_code(first: str, second: str) -> None:
    """What looks for rotary embeddings reads both inputs of two products."""
    made = onnx.parser.parse_model(
        f"""<ir_version: 8, opset_import: ["": 17]> g (float[3, 4] x) => (float[3, 4] y)
        {{ p, q = Split<axis = 1>(x) n = Neg(q) j = Concat<axis = -1>(n, p)
        a = {first} b = {second} y = Add(a, b) }}"""
    )
    check_refusal(lambda made: ts.check(made, "openvino"), made)


@pytest.mark.parametrize(
    "nodes",
    [
        "p = SequenceErase(p) y = SequenceAt(p, k)",
        "p = SequenceInsert(q, x) q = SequenceInsert(p, x) y = SequenceAt(q, k)",
        "v = Cast<to = 1>() t = Transpose<perm = [0]>(v) y = Identity(t)",
        "v, w = Cast<to = 1>() t = Transpose<perm = [0]>(v) y = Identity(t)",
        "e = Exp(e) s = ReduceSum(e, k) y = Div(e, s)",
        "m = ReduceMean(u, k) u = Sub(u, m) y = Div(u, m)",
    ],
)
@pytest.mark.parametrize("place", ["the model", "a body"])
def test_rings_and_nodes_without_inputs_are_refused_with_a_code(nodes: str, place: str) -> None:
    """What looks for the sources of a value follows each node once, and reads inputs if any."""
    if place == "a body":
        nodes = f"""y = Loop(k, , x) <body = b (int64 i, bool c, float[3] h)
            => (bool d, float[3] y) {{ d = Identity(c) {nodes} }}>"""
    text = '<ir_version: 8, opset_import: ["": 18]> g (float[3] x) => (float[3] y)'
    made = onnx.parser.parse_model(f"{text} <int64 k = {{1}}> {{ {nodes} }}")
    for target in ("openvino", "onnxruntime"):
        assert any(each.severity == "error" for each in ts.check(made, target))
