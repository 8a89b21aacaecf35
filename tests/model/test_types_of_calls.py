"""A function that is called with data of several types: what is known and done is of each call."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, checker, helper, parser

import tensorsplit as ts
from tensorsplit.engines import adapters
from tests.model.build import known
from tests.refusals import refused

X = np.random.default_rng(22).integers(-9, 9, (3, 4)).astype(np.float32)


def called_twice(kind: str, body: str, opset: int = 13, more: str = "") -> onnx.ModelProto:
    """``F`` splits its input in two, and is called with floats and with another type."""
    return parser.parse_model(f"""
        <ir_version: 10, opset_import: ["": {opset}, "l": 1]>
        g (float[N, 4] x, {kind}[N, 4] k, int64[2] n)
        => (float[N, u] a, float[N, v] b, {kind}[N, u] c, {kind}[N, v] d)
        {{ a, b = l.F(x, n) c, d = l.F(k, n) }}
        <domain: "l", opset_import: ["": {opset}, "l": 1]> F (q, n) => (r, s) {{ {body} }} {more}
        """)


def fed(kind: str) -> dict[str, Any]:
    if kind == "string":
        k: Any = X.astype(str).astype(object)
    else:
        k = X.astype(helper.tensor_dtype_to_np_dtype(getattr(TensorProto, kind.upper())))
    return {"x": X, "k": k, "n": np.array([1, 3])}


def check_parts(made: onnx.ModelProto, kind: str, *, by_engine: bool = False) -> None:
    """The model gives the first column and the rest, of both tensors."""
    feeds = fed(kind)
    wanted = {"a": X[:, :1], "b": X[:, 1:], "c": feeds["k"][:, :1], "d": feeds["k"][:, 1:]}
    if by_engine:
        got = adapters.load_onnxruntime(made.SerializeToString(), b"")(feeds, list(wanted))
    else:
        got = ts.run(made, feeds)
    for name, want in wanted.items():
        assert got[name].dtype == want.dtype
        assert got[name].tolist() == want.tolist()


FED = "r, s = Split<axis = 1>(q, n)"
LARGER = f"m = Max(q, q) {FED.replace('q,', 'm,')}"
LIKE = f"w = Identity(q) m = CastLike(w, q) {FED.replace('q,', 'm,')}"
SHAPED = f"z = Shape(q) m = Reshape<allowzero = 1>(q, z) {FED.replace('q,', 'm,')}"
PASSED = "r, s = l.G(q, n)"
CHOSEN = """c = Constant<value = bool {1}>() r, s = If (c) <
    then_branch = g1 () => (t, u) { t, u = Split<axis = 1>(q, n) },
    else_branch = g2 () => (v, w) { v, w = Split<axis = 1>(q, n) }>"""


@pytest.mark.parametrize(
    ("body", "opset", "targets"),
    [
        (FED, 13, (10, 11, 18, 24)),
        (LARGER, 13, (9, 10, 11, 12, 18)),  # Max takes no integers before opset 12
        (LIKE, 18, (10, 13, 21)),  # a Cast needs to know to what
        (SHAPED, 18, (10, 13, 21)),
        (CHOSEN, 13, (11, 12, 16, 18)),
    ],
)
def test_a_function_is_converted_for_each_type(
    body: str, opset: int, targets: tuple[int, ...]
) -> None:
    model = called_twice("int64", body, opset)
    check_parts(model, "int64")
    for target in known(*targets):
        if body == LARGER and target == 9:
            with refused("TS310", "opset 9"):  # lengths are fed
                ts.convert(model, opset=target)
            continue
        made = ts.convert(model, opset=target)
        checker.check_model(made, full_check=True)
        check_parts(made, "int64")


def test_an_operator_whose_definition_depends_on_the_type_is_replaced_for_each() -> None:
    """Before opset 17 there is no LayerNormalization: its definition casts to the type and back."""
    body = f"""w = ReduceMax<axes = [0], keepdims = 0>(q) m = LayerNormalization(q, w)
        {FED.replace("q,", "m,")}"""
    model, feeds = called_twice("double", body, 17), fed("double")
    for target in (13, 16):
        made = ts.convert(model, opset=target)
        checker.check_model(made, full_check=True)
        found = ts.run(made, feeds)
        for names, data in (("ab", X), ("cd", feeds["k"])):
            deviation = data.std(1, keepdims=True)
            wanted = (data - data.mean(1, keepdims=True)) / deviation * data.max(0)
            got = np.concatenate([found[name] for name in names], 1)
            assert got.dtype == data.dtype
            np.testing.assert_allclose(got, wanted, rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("opset", [1, 6])
def test_a_function_is_converted_for_each_rank(opset: int) -> None:
    """Before opset 7 a slope is one for each channel, whatever the rank."""
    model = parser.parse_model(f"""
        <ir_version: 10, opset_import: ["": {opset}, "l": 1]>
        g (float[2, 3] x, float[2, 3, 4] k, float[3] slope) => (float[2, 3] a, float[2, 3, 4] b)
        {{ a = l.F(x, slope) b = l.F(k, slope) }}
        <domain: "l", opset_import: ["": {opset}]> F (q, w) => (r) {{ r = PRelu(q, w) }}
        """)
    random = np.random.default_rng(opset)
    x, k = random.normal(size=(2, 3)), random.normal(size=(2, 3, 4))
    slope = np.array([0.5, 2, -1], np.float32)
    found = ts.run(
        ts.convert(model, opset=13), {"x": x.astype("f4"), "k": k.astype("f4"), "slope": slope}
    )
    np.testing.assert_allclose(found["a"], np.where(x < 0, x * slope, x), rtol=1e-6)
    np.testing.assert_allclose(found["b"], np.where(k < 0, k * slope[:, None], k), rtol=1e-6)


def test_functions_that_it_calls_follow() -> None:
    """Those are called with both types only once there is one caller for each."""
    inner = '<domain: "l", opset_import: ["": 13]> G (q, n) => (r, s) {' + LARGER + "}"
    model = called_twice("int64", PASSED, more=inner)
    made = ts.convert(model, opset=11)
    assert sorted(each.name for each in made.functions) == ["F", "F_1", "G", "G_1"]
    checker.check_model(made, full_check=True)
    check_parts(made, "int64")


@pytest.mark.parametrize(("body", "opset"), [(FED, 18), (LARGER, 21)])
def test_one_function_is_enough_where_types_decide_nothing(body: str, opset: int) -> None:
    assert len(ts.convert(called_twice("int64", body), opset=opset).functions) == 1


@pytest.mark.parametrize(("body", "code"), [(FED, "TS201"), (CHOSEN, "TS512")])
def test_a_type_of_one_call_that_the_opset_does_not_take_is_refused(body: str, code: str) -> None:
    with refused(code, "bfloat16", "function l::F_1"):
        ts.convert(called_twice("bfloat16", body, 18), opset=12)


IN_A_SEQUENCE = """p = SplitToSequence<axis = 1>(q, n)
    i = Constant<value_int = 0>() r = SequenceAt(p, i)
    j = Constant<value_int = 1>() s = SequenceAt(p, j)"""


@pytest.mark.engine("onnxruntime")
@pytest.mark.parametrize("kind", ["int8", "uint16", "string", "int64"])
@pytest.mark.parametrize("body", [FED, IN_A_SEQUENCE, CHOSEN])
def test_a_function_is_lowered_where_the_engine_lacks_the_type_of_one_call(
    body: str, kind: str
) -> None:
    """onnxruntime has SplitToSequence for some types only; the function is of no one type."""
    model = called_twice(kind, body)
    lacks = [each for each in ts.check(model, target="onnxruntime") if each.severity == "error"]
    assert bool(lacks) == (body == IN_A_SEQUENCE and kind in ("int8", "uint16"))
    made = ts.lower(model, target="onnxruntime")
    checker.check_model(made, full_check=True)
    assert not [e for e in ts.check(made, target="onnxruntime") if e.severity == "error"]
    assert ts.lower(made, target="onnxruntime").SerializeToString() == made.SerializeToString()
    check_parts(made, kind)
    check_parts(made, kind, by_engine=True)


@pytest.mark.parametrize("body", [FED, IN_A_SEQUENCE])
def test_a_type_of_one_call_that_the_target_does_not_hold_is_refused(body: str) -> None:
    model = called_twice("complex64", body)
    openvino: Any = "openvino@2026.4.1"
    onnxruntime: Any = "onnxruntime@1.31.1"
    assert any("complex64, float" in each.message for each in ts.check(model, target=openvino))
    with refused("TS513", "function l::F"):
        ts.lower(model, target=onnxruntime)
