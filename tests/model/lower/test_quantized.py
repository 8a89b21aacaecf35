"""What is quantised and given back: nodes that engines leave out, or add, where they can."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np
import onnx
import onnx_ir as ir
import pytest
from onnx.parser import parse_model

import tensorsplit as ts
from tensorsplit import SplitError
from tests.model.lower.running import lowered_for, with_own

SPLIT = "a, b = Split(x, l) "
PAIR = "q = QuantizeLinear(a, s, z) y = DequantizeLinear(q, s, z) w = Neg(b)"
IN_LOOP = """y = Loop(n, , a)
    <body = o (int64 i, bool c, float[1, 3] v) => (bool d, float[1, 3] e) {
    d = Identity(c) q = QuantizeLinear(v, s, z) e = DequantizeLinear(q, s, z) }> w = Neg(b)"""


class Pair(NamedTuple):
    """Nodes with a pair, whether OpenVINO leaves it out, and the zero point's element type."""

    nodes: str
    is_left_out: bool
    constants: str = ""
    type: str = "uint16"
    outputs: str = ""


CASES = {
    "at an output": Pair(PAIR, True),
    "of int16": Pair(PAIR, True, type="int16"),
    "of uint8": Pair(PAIR, False, type="uint8"),
    "before another node": Pair(PAIR.replace("y =", "c =") + " y = Neg(c)", True),
    "by equal constants": Pair(
        "q = QuantizeLinear(a, s, z) y = DequantizeLinear(q, t, z) w = Neg(b)",
        True,
        ", float t = {0.25}",
    ),
    "by other constants": Pair(
        "q = QuantizeLinear(a, s, z) y = DequantizeLinear(q, t, z) w = Neg(b)",
        False,
        ", float t = {0.26}",
    ),
    "of a scale that is calculated": Pair(
        "r = Add(s, s) q = QuantizeLinear(a, r, z) y = DequantizeLinear(q, r, z) w = Neg(b)", True
    ),
    "of a scale that is fed": Pair(
        "r = ReduceMax<keepdims = 0>(x) " + PAIR.replace("s, z", "r, z"),
        False,
    ),
    "without a zero point": Pair(
        "q = QuantizeLinear<output_dtype = 4>(a, s) y = DequantizeLinear(q, s) w = Neg(b)", True
    ),
    "by channels": Pair(
        "q = QuantizeLinear(a, t, u) y = DequantizeLinear(q, t, u) w = Neg(b)",
        True,
        ", float[3] t = {0.25, 0.5, 0.3}, uint16[3] u = {3, 4, 5}",
    ),
    "of which nobody uses another reader": Pair(f"{PAIR} t = Transpose(q) h = Shape(t)", True),
    "of which another reader is used": Pair(
        f"{PAIR} t = Transpose(q) h = Shape(t)", False, outputs=", int64[2] h"
    ),
    "of which one is given out": Pair(PAIR, False, outputs=", uint16[E, F] q"),
    "that is split between": Pair(
        "q = QuantizeLinear(x, s, z) c, d = Split(q, l) y = DequantizeLinear(c, s, z)"
        " w = DequantizeLinear(d, s, z)",
        False,
    ),
    "that a loop calculates": Pair(IN_LOOP, False, ", int64 n = {1}"),
}


@with_own("openvino")
@pytest.mark.parametrize("name", CASES)
def test_what_is_given_back_is_rounded_and_limited(name: str, engine: Any) -> None:
    """Half of the values are beyond what 16 bits hold."""
    nodes, is_left_out, constants, kind, outputs = CASES[name]
    model = parse_model(
        f"""<ir_version: 10, opset_import: ["": 21]>
        g (float[4, 3] x) => (float[A, B] y, float[C, D] w{outputs})
        <int64[2] l = {{1, 3}}, float s = {{0.25}}, {kind} z = {{30}}{constants}>
        {{ {SPLIT} {nodes} }}"""
    )
    assert said_of(model) == ["warning"] * is_left_out
    lowered = ts.lower(model, target="openvino")
    assert said_of(lowered) == []
    feeds = {"x": np.random.default_rng(7).uniform(-30000, 30000, (4, 3)).astype(np.float32)}
    expected = ts.run(model, feeds)
    assert is_right(lowered, feeds, engine, expected)
    assert is_right(model, feeds, engine, expected) is (engine != "openvino" or not is_left_out)


def said_of(model: onnx.ModelProto, words: str = "FQ stripping failed") -> list[str]:
    """Return how grave is what check says of what is left out, or of something else."""
    found = ts.check(model, target="openvino")
    return [each.severity for each in found if words in each.message]


def is_right(
    model: onnx.ModelProto,
    feeds: dict[str, Any],
    engine: Any,
    expected: dict[str, Any],
    *,
    refusals: str = "FQ stripping failed|FakeQuantize",
    atol: float = 1e-8,
) -> bool:
    """Return whether an engine loads a model and gives what is expected, but for the last bits."""
    try:
        got = ts.run(model, feeds, engine=engine)
    except SplitError as error:
        if re.search(refusals, str(error)):
            return False
        raise
    return all(np.allclose(got[name], expected[name], rtol=1e-5, atol=atol) for name in expected)


class Bfloat(NamedTuple):
    """Nodes with a pair of bfloat16; whether OpenVINO loads it, and then is right."""

    nodes: str
    is_loaded: bool
    type: str = "uint16"
    is_right: bool = True


IN_BFLOAT16 = {
    "by other constants": Bfloat(
        "q = QuantizeLinear(a, s, z) y = DequantizeLinear(q, t, z) w = Neg(b)", False
    ),
    "by the same constants": Bfloat(PAIR, True, is_right=False),
    "of 8 bits": Bfloat(PAIR, True, "uint8"),
    "of 8 bits, by what is fed": Bfloat(
        "c = Abs(b) r = ReduceMin<keepdims = 0>(c) " + PAIR.replace("s, z", "r, z"), False, "int8"
    ),
    "after an Identity": Bfloat(
        "q = QuantizeLinear(a, s, z) i = Identity(q) y = DequantizeLinear(i, s, z) w = Neg(b)",
        False,
        "int16",
    ),
    "that a node reads which nobody uses": Bfloat(
        "q = QuantizeLinear(a, s, z) y = DequantizeLinear(q, t, z) w = Neg(b) c = Transpose(q)",
        False,
    ),
    "that something else reads": Bfloat(
        "q = QuantizeLinear(a, s, z) y = DequantizeLinear(q, t, z) w = Cast<to = 16>(q)", True
    ),
    "from float": Bfloat(
        "c = Cast<to = 1>(a) q = QuantizeLinear(c, f, z) y = DequantizeLinear(q, s, z) w = Neg(b)",
        False,
    ),
    "to float": Bfloat(
        "q = QuantizeLinear(a, s, z) c = DequantizeLinear(q, g, z) y = Cast<to = 16>(c) w = Neg(b)",
        True,
    ),
}


@with_own("openvino")
@pytest.mark.parametrize("name", IN_BFLOAT16)
def test_what_is_given_back_in_bfloat16_is_loaded(name: str, engine: Any) -> None:
    nodes, is_loaded, kind, is_as_said = IN_BFLOAT16[name]
    model = parse_model(
        f"""<ir_version: 10, opset_import: ["": 21]>
        g (bfloat16[4, 3] x) => (bfloat16[A, B] y, bfloat16[C, D] w)
        <int64[2] l = {{1, 3}}, float f = {{0.25}}, float g = {{0.5}}, {kind} z = {{30}}>
        {{ s = Cast<to = 16>(f) t = Cast<to = 16>(g) {SPLIT} {nodes} }}"""
    )
    assert said_of(model, "FakeQuantize") == ["error"] * (not is_loaded)
    lowered = ts.lower(model, target="openvino")
    assert said_of(lowered, "FakeQuantize") == []
    x = np.random.default_rng(7).uniform(-30000, 30000, (4, 3)).astype(ml_dtypes.bfloat16)
    expected = ts.run(model, {"x": x})
    assert is_right(lowered, {"x": x}, engine, expected)
    is_sound = engine != "openvino" or (is_loaded and is_as_said)
    assert is_right(model, {"x": x}, engine, expected) is is_sound


def test_a_long_chain_before_what_is_given_back_is_gone_along() -> None:
    """A chain of more nodes than Python calls functions in each other."""
    chain = " ".join(f"q{i + 1} = Identity(q{i})" for i in range(2000))
    model = parse_model(
        f"""<ir_version: 10, opset_import: ["": 21]> g (bfloat16[4] x) => (bfloat16[4] y)
        <float f = {{0.25}}, uint16 z = {{30}}> {{ s = Cast<to = 16>(f)
        q0 = QuantizeLinear(x, s, z) {chain} y = DequantizeLinear(q2000, s, z) }}"""
    )
    assert said_of(model, "FakeQuantize") == ["error"]


@pytest.mark.parametrize(
    "nodes",
    [
        "q, r = QuantizeLinear(x, s, z) y = DequantizeLinear(q, s, z)",
        "q = QuantizeLinear(x, s, two) y = DequantizeLinear(q, s, two)",
        "q = QuantizeLinear(x, text, z) y = DequantizeLinear(q, text, z)",
    ],
)
def test_a_quantisation_that_is_wrong_is_no_error_of_ours(nodes: str) -> None:
    model = onnx.parser.parse_model(
        f"""<ir_version: 10, opset_import: ["": 21]> g (float[2, 3] x) => (float[2, 3] y)
        <float[3] s = {{1, 2, 3}}, uint16[3] z = {{1, 2, 3}}, uint16[2] two = {{1, 2}},
        string[3] text = {{"a", "b", "c"}}> {{ {nodes} }}"""
    )
    said_of(model)
    with suppress(SplitError):
        ts.lower(model, target="openvino")


def walks(pairs: int, monkeypatch: pytest.MonkeyPatch) -> int:
    """Return how often the nodes of a graph are gone through to lower some pairs."""
    nodes = " ".join(
        f"q{i} = QuantizeLinear(x, s, z) y{i} = DequantizeLinear(q{i}, s, z)" for i in range(pairs)
    )
    outputs = ", ".join(f"float[4] y{i}" for i in range(pairs))
    model = parse_model(
        f"""<ir_version: 10, opset_import: ["": 21]> g (float[4] x) => ({outputs})
        <float s = {{0.25}}, uint16 z = {{30}}> {{ {nodes} }}"""
    )
    count, walk = 0, ir.Graph.__iter__

    def counted(graph: ir.Graph) -> Iterator[ir.Node]:
        nonlocal count
        count += 1
        return walk(graph)

    with monkeypatch.context() as patched:
        patched.setattr(ir.Graph, "__iter__", counted)
        lowered = ts.lower(model, target="openvino")
    assert [node.op_type for node in lowered.graph.node].count("Identity") == pairs
    return count


def test_a_graph_is_not_gone_through_for_each_pair(monkeypatch: pytest.MonkeyPatch) -> None:
    assert walks(9, monkeypatch) == walks(3, monkeypatch)


@pytest.mark.engine("openvino")
@pytest.mark.parametrize("zero", [-3, 0, 1, 4])
@pytest.mark.parametrize("scale", [1, 2, 3])
def test_halves_that_are_quantised_by_an_odd_zero_point_are_warned_of(
    zero: int, scale: int
) -> None:
    """OpenVINO rounds them to the even number after it has added the zero point."""
    model = parse_model(
        f"""<ir_version: 10, opset_import: ["": 21]> g (float[N] x) => (int8[N] y)
        <float s = {{{scale}}}, int8 z = {{{zero}}}> {{ y = QuantizeLinear(x, s, z) }}"""
    )
    halves = np.random.default_rng(7).permutation(np.arange(-20, 20)) + 0.5
    feed = {"x": np.float32(halves * scale)}
    right = np.rint(halves) + zero
    assert (ts.run(model, feed)["y"] == right).all()
    found = [each for each in ts.check(model, target="openvino") if "a half" in each.message]
    is_wrong = (ts.run(model, feed, engine="openvino")["y"] != right).any()
    assert bool(found) == is_wrong == bool(zero % 2)


class Shared(NamedTuple):
    """Nodes that give data back by one zero point, and whether OpenVINO takes it away."""

    nodes: str
    is_taken: bool
    zero: str = "uint8 z = {120}"
    constants: str = ""


TWICE = "q = QuantizeLinear(x, s, z) d = DequantizeLinear(q, s, z) "
AGAIN = TWICE + "r = QuantizeLinear(d, s, z) b = DequantizeLinear(r, s, z) "
PARTS = """c, e = Split<axis = 1>(d, k) f = QuantizeLinear(c, s, z) h = DequantizeLinear(f, s, z)
    i = QuantizeLinear(e, s, z) j = DequantizeLinear(i, s, z) """

SHARED = {
    "summed": Shared(AGAIN + "y = ReduceSum(b, one)", True),
    "summed through others": Shared(
        AGAIN + "c = Transpose(b) e = Neg(c) y = ReduceSum(e, zero)", True
    ),
    "summed by an Einsum": Shared(AGAIN + 'y = Einsum<equation = "ij->i">(b)', True),
    "padded": Shared(AGAIN + "y = Pad(b, pads)", True, constants=", int64[4] pads = {0, 1, 0, 1}"),
    "of int8": Shared(AGAIN + "y = ReduceSum(b, one)", True, "int8 z = {9}"),
    "of parts": Shared(
        TWICE + PARTS + "l = ReduceSum(h, one) m = ReduceSum(j, one) y = Add(l, m)",
        True,
        constants=", int64[2] k = {3, 3}",
    ),
    "behind an Identity": Shared(
        "o = Identity(z) "
        + AGAIN.replace("b = DequantizeLinear(r, s, z)", "")
        + "b = DequantizeLinear(r, s, o) y = ReduceSum(b, one)",
        True,
    ),
    "in a branch": Shared(
        AGAIN
        + """y = If(t) <then_branch = g () => (float[A, B] p) { p = ReduceSum(b, one) },
        else_branch = n () => (float[C, D] v) { v = ReduceSum(b, zero) }>""",
        True,
        constants=", bool t = {1}",
    ),
    "of 16 bits": Shared(AGAIN + "y = ReduceSum(b, one)", False, "int16 z = {9}"),
    "of 0": Shared(AGAIN + "y = ReduceSum(b, one)", False, "int8 z = {0}"),
    "of its own": Shared(
        AGAIN.replace("(r, s, z)", "(r, s, o)").replace("(d, s, z)", "(d, s, o)")
        + "y = ReduceSum(b, one)",
        False,
        constants=", uint8 o = {120}",
    ),
    "a mean": Shared(AGAIN + "y = ReduceMean(b, one)", False),
    "calculated with": Shared(AGAIN + "c = Add(b, x) y = ReduceSum(c, one)", False),
}


@with_own("openvino")
@pytest.mark.parametrize("name", SHARED)
def test_a_zero_point_that_is_shared_stays_what_it_is(name: str, engine: Any) -> None:
    nodes, is_taken, zero, constants = SHARED[name]
    model = parse_model(
        f"""<ir_version: 10, opset_import: ["": 21]> g (float[2, 6] x) => (float[E, F] y)
        <float s = {{0.5}}, int64[1] zero = {{0}}, int64[1] one = {{1}}, {zero}{constants}>
        {{ {nodes} }}"""
    )
    if "Einsum" in nodes:
        model.graph.output[0].type.tensor_type.shape.dim.pop()
    x = np.random.default_rng(3).uniform(-20, 20, (2, 6))
    check_fault(model, x, engine, words="the zero point is multiplied", is_faulty=is_taken)


CONSTANT = """k = QuantizeLinear(zeros, s, z) c = DequantizeLinear(k, s, z)
    q = QuantizeLinear(x, s, z) d = DequantizeLinear(q, s, z) """

TWO = "f = QuantizeLinear(others, s, z) g = DequantizeLinear(f, s, z) "

OF_CONSTANTS = {
    "in a sum": (CONSTANT + "y = Add(c, d)", True),
    "in a product": (CONSTANT + "y = Mul(d, c)", True),
    "turned twice": (CONSTANT + "e = Transpose(c) f = Transpose(e) y = Add(d, f)", True),
    "made of a shape": (
        "h = Shape(x) zeroes = ConstantOfShape(h) "
        + CONSTANT.replace("(zeros,", "(zeroes,")
        + "y = Add(c, d)",
        True,
    ),
    "taken away from": (CONSTANT + "y = Sub(c, d)", True),
    "added to another": (CONSTANT + TWO + "e = Add(c, g) y = Add(e, x)", True),
    "taken away from another": (CONSTANT + TWO + "e = Sub(g, c) y = Add(e, x)", False),
    "added to itself": (CONSTANT + "e = Add(c, c) y = Add(e, x)", False),
    "taken away": (CONSTANT + "y = Sub(d, c)", False),
    "beside what was not quantised": (CONSTANT + "y = Add(c, x)", False),
    "not quantised": (CONSTANT + "y = Add(zeros, d)", False),
    "stored in 8 bits": (CONSTANT.replace("(k,", "(bytes,") + "y = Add(c, d)", False),
    "calculated with": (CONSTANT + "e = Abs(c) y = Add(e, d)", False),
}


@with_own("openvino")
@pytest.mark.parametrize("name", OF_CONSTANTS)
def test_a_constant_that_is_given_back_is_not_lost(name: str, engine: Any) -> None:
    """Tools for quantisation write such pairs for the first state of a recurrent layer."""
    nodes, is_lost = OF_CONSTANTS[name]
    model = parse_model(
        f"""<ir_version: 10, opset_import: ["": 21]> g (float[2, 2] x) => (float[2, 2] y)
        <float s = {{0.5}}, uint8 z = {{0}}, float[2, 2] zeros = {{0, 0, 1.5, 0}},
        float[2, 2] others = {{1, 3, 1.5, 0}},
        uint8[2, 2] bytes = {{1, 2, 3, 4}}> {{ {nodes} }}"""
    )
    x = np.random.default_rng(3).uniform(0, 100, (2, 2))
    check_fault(model, x, engine, words="the constant is lost", is_faulty=is_lost)


def check_fault(
    model: onnx.ModelProto, x: np.ndarray, engine: Any, *, words: str, is_faulty: bool
) -> None:
    """Check that a fault of OpenVINO is warned of, and gone after lowering, but for a rounding."""
    assert set(said_of(model, words)) == ({"warning"} if is_faulty else set())
    lowered = ts.lower(model, target="openvino")
    assert said_of(lowered, words) == []
    assert ts.lower(lowered, target="openvino") == lowered
    feeds = {"x": x.astype(np.float32)}
    expected = ts.run(model, feeds)
    for each, is_sound in ((lowered, True), (model, engine != "openvino" or not is_faulty)):
        refusals = "Argument shapes are inconsistent|index < m_inputs"
        right = is_right(each, feeds, engine, expected, refusals=refusals, atol=1)
        assert right is is_sound


ONES = "float[3] t = {1, 1, 1}, uint16[3] u = {0, 0, 0}"
UNSCALED = {  # the nodes, the type, and whether OpenVINO neither rounds nor limits
    "to uint16": ("q = QuantizeLinear(x, s, z) y = Cast<to = 1>(q)", "uint16", True),
    "to int16": ("q = QuantizeLinear(x, s, z) y = Cast<to = 1>(q)", "int16", True),
    "to uint8": ("q = QuantizeLinear(x, s, z) y = Cast<to = 1>(q)", "uint8", False),
    "by rows": ("q = QuantizeLinear(x, t, u) y = Cast<to = 1>(q)", "uint16", True),
    "of a calculated number": (
        "a = Neg(x) b = Neg(a) q = QuantizeLinear(b, s, z) y = Cast<to = 1>(q)",
        "uint16",
        True,
    ),
    "of a rounded number that is limited": (
        "a = Round(x) b = Clip(a, low, high) q = QuantizeLinear(b, s, z) y = Cast<to = 1>(q)",
        "uint16",
        False,
    ),
    "of a rounded number": (
        "a = Round(x) q = QuantizeLinear(a, s, z) y = Cast<to = 1>(q)",
        "uint16",
        True,
    ),
    "of a limited number": (
        "b = Clip(x, low, high) q = QuantizeLinear(b, s, z) y = Cast<to = 1>(q)",
        "uint16",
        True,
    ),
    "in a loop": (
        """y = Loop(n, yes, x) <body = b (int64 i, bool c, float[4,3] h) =>
        (bool d, float[4,3] o) { d = Identity(c) q = QuantizeLinear(h, s, z) o = Cast<to = 1>(q) }>
        """,
        "int16",
        False,
    ),
}


@with_own("openvino")
@pytest.mark.parametrize("shape", ["4,3", "N,3"])
@pytest.mark.parametrize("name", UNSCALED)
def test_what_is_quantised_by_one_is_rounded_and_limited(
    name: str, shape: str, engine: Any
) -> None:
    """A half of what is fed is beyond what 16 bits hold, and no number is whole."""
    nodes, kind, is_wrong = UNSCALED[name]
    model = parse_model(
        f"""<ir_version: 10, opset_import: ["": 21]> g (float[{shape}] x) => (float[A, B] y)
        <float s = {{1}}, {kind} z = {{0}}, {ONES}, float low = {{0}}, float high = {{65535}},
        int64 n = {{1}}, bool yes = {{1}}> {{ {nodes} }}"""
    )
    assert said_of(model, "cut off, not rounded") == ["warning"] * is_wrong
    rng = np.random.default_rng(8)
    x = np.where(rng.random((4, 3)) < 0.5, rng.uniform(-9, 9, (4, 3)), 90000.7).astype(np.float32)
    x[0] = 1.5, -2.5, 2.75
    limits = np.iinfo(kind)
    wanted = {"y": np.clip(np.rint(x), limits.min, limits.max)}
    lowered = lowered_for("openvino", model)
    assert is_right(lowered, {"x": x}, engine, wanted)
    assert is_right(model, {"x": x}, engine, wanted) is (engine != "openvino" or not is_wrong)


@with_own("openvino")
@pytest.mark.parametrize("kind", ["float16", "bfloat16", "int32"])
def test_what_does_not_hold_the_limits_of_16_bits_is_limited(kind: str, engine: Any) -> None:
    made = {"int32": "Identity(s)", "float16": "Cast<to = 10>(s)", "bfloat16": "Cast<to = 16>(s)"}
    model = parse_model(
        f"""<ir_version: 10, opset_import: ["": 23]> g ({kind}[4] x) => (float[A] y)
        <float s = {{1}}, int16 z = {{0}}>
        {{ t = {made[kind]} q = QuantizeLinear(x, t, z) y = Cast<to = 1>(q) }}"""
    )
    x = np.array([1.5, -2.5, 2.75, 50000]).astype(ml_dtypes.bfloat16 if kind[0] == "b" else kind)
    wanted = np.clip(np.rint(x.astype(np.float64)), -(1 << 15), (1 << 15) - 1)
    lowered = lowered_for("openvino", model)
    np.testing.assert_array_equal(ts.run(lowered, {"x": x}, engine=engine)["y"], wanted)


THIRD = {  # the shape of the data, its axis, the constants, and whether OpenVINO loads it
    "the last of three": ("N,M,2", 2, "float[2] s = {0.5, 2}, uint8[2] z = {4, 6}", False),
    "from the back": ("N,M,2", -1, "float[2] s = {0.5, 2}, uint8[2] z = {4, 6}", False),
    "of open length": ("N,M,K", 2, "float[2] s = {0.5, 2}, uint8[2] z = {4, 6}", False),
    "of four": ("N,4,2,3", 2, "float[2] s = {0.5, 2}, uint8[2] z = {4, 6}", False),
    "the last of four": ("N,4,3,2", 3, "float[2] s = {0.5, 2}, uint8[2] z = {4, 6}", True),
    "of a known shape": ("3,4,2", 2, "float[2] s = {0.5, 2}, uint8[2] z = {4, 6}", True),
    "one scale": ("N,M,2", 2, "float[1] s = {0.5}, uint8[1] z = {4}", True),
}


@with_own("openvino")
@pytest.mark.parametrize("name", THIRD)
def test_data_of_an_open_shape_is_quantised_along_its_third_axis(name: str, engine: Any) -> None:
    shape, axis, constants, is_loaded = THIRD[name]
    rank = shape.count(",") + 1
    model = parse_model(
        f"""<ir_version: 9, opset_import: ["": 20]> g (float[{shape}] x) =>
        (uint8[{",".join("ABCD"[:rank])}] y) <{constants}>
        {{ y = QuantizeLinear<axis = {axis}>(x, s, z) }}"""
    )
    assert said_of(model, "for axis: 2") == ["warning"] * (not is_loaded)
    lengths = tuple(
        int(dim) if dim.isdigit() else {"N": 3, "M": 4, "K": 2}[dim] for dim in shape.split(",")
    )
    x = np.random.default_rng(9).integers(1, 200, lengths).astype(np.float32) / 4
    by = [1] * rank
    by[axis] = 1 if "[1]" in constants else 2
    scale, zero = ([0.5], [4]) if "[1]" in constants else ([0.5, 2], [4, 6])
    wanted = np.rint(x / np.reshape(scale, by)) + np.reshape(zero, by)
    lowered = lowered_for("openvino", model)
    got = ts.run(lowered, {"x": x}, engine=engine)["y"]
    np.testing.assert_array_equal(got, np.minimum(wanted, 255).astype(np.uint8))
    if engine == "openvino" and not is_loaded:
        with pytest.raises(SplitError, match="per-tensor quantization"):
            ts.run(model, {"x": x}, engine=engine)


RAISED = "r = ReduceMax(x, k) "
EXTREMES = {  # the nodes, and whether OpenVINO rounds before it divides by the scale
    "the largest": (RAISED + "q = QuantizeLinear(r, s, z) y = Cast<to = 1>(q)", True),
    "the least": ("r = ReduceMin(x, k) q = QuantizeLinear(r, s, z) y = Cast<to = 1>(q)", True),
    "without a zero point": (RAISED + "q = QuantizeLinear(r, s) y = Cast<to = 1>(q)", True),
    "in parts": (
        RAISED + "q = QuantizeLinear(r, s, z) a, b = Split<axis = 2>(q, l)"
        " d = DequantizeLinear(a, s, z) e = DequantizeLinear(b, s, z) y = Concat<axis = 2>(d, e)",
        True,
    ),
    "before others": (
        RAISED + "a = Relu(r) b = Neg(a) q = QuantizeLinear(b, s, z) y = Cast<to = 1>(q)",
        True,
    ),
    "joined": (
        RAISED + "a = Concat<axis = 1>(x, r) q = QuantizeLinear(a, s, z) y = Cast<to = 1>(q)",
        True,
    ),
    "given back by two": (
        RAISED + "q = QuantizeLinear(r, s, z) a = DequantizeLinear(q, s, z)"
        " b = DequantizeLinear(q, t, z) y = Add(a, b)",
        True,
    ),
    "in a branch": (
        """y = If(c) <then_branch = o () => (float[A, B, C] e) { r = ReduceMax(x, k)
        q = QuantizeLinear(r, s, z) e = Cast<to = 1>(q) },
        else_branch = p () => (float[A, B, C] f) { f = Neg(x) }>""",
        True,
    ),
    "given back": (RAISED + "q = QuantizeLinear(r, s, z) y = DequantizeLinear(q, s, z)", False),
    "given back by a zero point": (
        RAISED + "q = QuantizeLinear(r, s, w) y = DequantizeLinear(q, s, w)",
        True,
    ),
    "given back by channels": (
        RAISED + "q = QuantizeLinear<axis = 2>(r, u, v) y = DequantizeLinear<axis = 2>(q, u, v)",
        True,
    ),
    "given back after an Identity": (
        RAISED + "q = QuantizeLinear(r, s, z) a = Identity(q) y = DequantizeLinear(a, s, z)",
        False,
    ),
    "used by another node": (
        RAISED + "q = QuantizeLinear(r, s, z) a = Cast<to = 1>(q) b = Neg(r) y = Add(a, b)",
        False,
    ),
    "of another function": (
        RAISED + "a = Exp(r) q = QuantizeLinear(a, s, z) y = Cast<to = 1>(q)",
        False,
    ),
    "of means": (
        "r = ReduceMean(x, k) q = QuantizeLinear(r, s, z) y = Cast<to = 1>(q)",
        False,
    ),
    "by a scale that is calculated": (
        RAISED + "a = ReduceMean<keepdims = 0>(x) q = QuantizeLinear(r, a, z) y = Cast<to = 1>(q)",
        False,
    ),
}


@with_own("openvino")
@pytest.mark.parametrize("name", EXTREMES)
def test_extremes_are_rounded_after_they_are_divided_by_the_scale(name: str, engine: Any) -> None:
    nodes, is_early = EXTREMES[name]
    model = parse_model(
        f"""<ir_version: 10, opset_import: ["": 18]> g (float[N, M, K] x, bool c) =>
        (float[A, B, C] y) <float s = {{0.0625}}, float t = {{0.5}}, int8 z = {{0}},
        uint8 w = {{128}}, float[4] u = {{0.0625, 0.25, 0.125, 0.5}}, int8[4] v = {{0, 0, 0, 0}},
        int64[1] k = {{1}}, int64[2] l = {{1, 3}}> {{ {nodes} }}"""
    )
    words = "are rounded to integers before"
    assert said_of(model, words) == ["warning"] * is_early
    x = np.random.default_rng(5).uniform(0.5, 2, (2, 3, 4)).astype(np.float32)
    feeds = {"x": x, "c": np.array(True)}
    expected = ts.run(model, feeds)
    lowered = ts.lower(model, target="openvino")
    assert (lowered != model) is is_early
    assert ts.lower(lowered, target="openvino") == lowered
    assert said_of(lowered, words) == []
    assert is_right(lowered, feeds, engine, expected, atol=1e-3)
    assert is_right(model, feeds, engine, expected, atol=1e-3) is (
        engine != "openvino" or not is_early
    )


@with_own("openvino")
@pytest.mark.parametrize("opset", [10, 13])
@pytest.mark.parametrize("operator", ["ReduceMax", "ReduceMin"])
def test_extremes_of_integers_are_left_as_they_are(operator: str, opset: int, engine: Any) -> None:
    """OpenVINO divides these first; Max takes none before opset 12."""
    model = parse_model(
        f"""<ir_version: 8, opset_import: ["": {opset}]> g (int32[N, M] x) => (uint8[A, B] y)
        <float s = {{50}}, uint8 z = {{7}}>
        {{ r = {operator}<axes = [1]>(x) y = QuantizeLinear(r, s, z) }}"""
    )
    assert said_of(model, "are rounded to integers before") == []
    assert ts.lower(model, target="openvino") == model
    x = np.random.default_rng(5).integers(1000, 9000, (4, 3)).astype(np.int32)
    extreme = (x.max if operator == "ReduceMax" else x.min)(axis=1, keepdims=True)
    got = ts.run(model, {"x": x}, engine=engine)["y"]
    np.testing.assert_array_equal(got, (np.rint(extreme / 50) + 7).astype(np.uint8), strict=True)


SCALED: dict[str, tuple[str, bool]] = {
    "by the first part": ("s, r = Split(k, l)", True),
    "by the last part": ("r, s = Split(k, m)", True),
    "by the first of a sequence": ("p = SplitToSequence(k, l) s = SequenceAt(p, i)", True),
    "by a part without its axis": ("p, r = Split(k, l) s = Squeeze(p)", False),
    "by what follows from a part": ("p, r = Split(k, l) s = Abs(p)", False),
    "by all parts": ("s = Split<num_outputs = 1>(h)", False),
    "by a list of parts": ("p, r = Split(k, l) s = Concat<axis = 0>(p, r)", False),
}


@with_own("openvino")
@pytest.mark.parametrize("opset", [18, 21])
@pytest.mark.parametrize("name", SCALED)
def test_a_scale_that_is_one_of_several_parts_is_taken(name: str, opset: int, engine: Any) -> None:
    """OpenVINO asks the node that makes the scale for the type of its one output."""
    nodes, is_refused = SCALED[name]
    model = parse_model(
        f"""<ir_version: 10, opset_import: ["": {opset}]> g (uint8[N, 4] q, float[4] k, float[1] h)
        => (float[A, B] y) <int64[2] l = {{1, 3}}, int64[2] m = {{3, 1}}, int64 i = {{0}}>
        {{ {nodes} y = DequantizeLinear(q, s) }}"""
    )
    found = [
        each.severity
        for each in ts.check(model, target="openvino")
        if "exactly one output" in each.message
    ]
    assert found == ["error"] * is_refused
    q = np.random.default_rng(5).integers(1, 99, (3, 4)).astype(np.uint8)
    k = np.array([0.5, 0.25, 0.125, 0.0625], np.float32)
    scale = {"by the last part": k[3:], "by a list of parts": k}.get(name, k[:1])
    feeds = {"q": q, "k": k, "h": k[:1]}
    lowered = lowered_for("openvino", model)
    got = ts.run(lowered, feeds, engine=engine)["y"]
    np.testing.assert_array_equal(got, q * scale, strict=True)
    if engine == "openvino" and is_refused:
        with pytest.raises(SplitError, match="DequantizeLinear"):
            ts.run(model, feeds, engine=engine)


IN_PARTS: dict[str, tuple[str, str]] = {
    "in the first part": ("k, r = Split(a, l)", "error"),
    "in the last part": ("r, k = Split(a, m)", "error"),
    "two in a part": ("k, r = Split(a, m)", "error"),
    "in the first of a sequence": ("p = SplitToSequence(a, l) k = SequenceAt(p, i)", "error"),
    "in all parts": ("k = Split<num_outputs = 1>(a)", ""),
    "after an Identity": ("p, r = Split(a, l) k = Identity(p)", ""),
    "none in a part": ("k, r = Split(a, n)", ""),
}


@with_own("openvino")
@pytest.mark.parametrize("operator", ["ReduceSum", "ReduceMean", "ReduceMax"])
@pytest.mark.parametrize("name", IN_PARTS)
def test_axes_that_are_one_of_several_parts_are_taken(
    name: str, operator: str, engine: Any
) -> None:
    """OpenVINO asks the node that makes the axes for its one output."""
    nodes, said = IN_PARTS[name]
    model = parse_model(
        f"""<ir_version: 10, opset_import: ["": 18]> g (float[A, B, C, D] x, int64[3] a)
        => (float[E, F, G, H] y) <int64[2] l = {{1, 2}}, int64[2] m = {{2, 1}},
        int64[2] n = {{0, 3}}, int64 i = {{0}}> {{ {nodes}
        y = {operator}<noop_with_empty_axes = {int(name == "none in a part")}>(x, k) }}"""
    )
    if name == "none in a part" and operator == "ReduceLogSumExp":
        return  # what that is differs between versions of the text
    found = [
        each for each in ts.check(model, target="openvino") if "Default output" in each.message
    ]
    assert [each.severity for each in found] == [said] * bool(said)
    x = np.random.default_rng(5).uniform(0.5, 2, (2, 3, 4, 5)).astype(np.float32)
    feeds = {"x": x, "a": np.array([1, 0, 3])}
    axes = {"in the last part": (3,), "two in a part": (0, 1), "in all parts": (0, 1, 3)}
    along = () if name == "none in a part" else axes.get(name, (1,))
    wanted = {
        "ReduceSum": x.sum(axis=along, keepdims=True),
        "ReduceMax": x.max(axis=along, keepdims=True),
        "ReduceMean": x.mean(axis=along, keepdims=True),
    }[operator]
    got = ts.run(lowered_for("openvino", model), feeds, engine=engine)["y"]
    np.testing.assert_allclose(got, wanted, rtol=1e-5, strict=True)
    if engine == "openvino" and said:
        with pytest.raises(SplitError, match=operator):
            ts.run(model, feeds, engine=engine)
