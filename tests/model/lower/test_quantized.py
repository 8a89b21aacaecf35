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
from tests.model.lower.running import with_own

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
    model: onnx.ModelProto, feeds: dict[str, Any], engine: Any, expected: dict[str, Any]
) -> bool:
    """Return whether an engine gives what is expected, but for the last bits."""
    try:
        got = ts.run(model, feeds, engine=engine)
    except SplitError as error:
        if "FQ stripping failed" in str(error) or "FakeQuantize" in str(error):
            return False
        raise
    return all(np.allclose(got[name], expected[name], rtol=1e-5) for name in expected)


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


class Moved(NamedTuple):
    """Nodes that move what is given back, what check says, and the types and constants."""

    nodes: str
    says: str
    opset: int = 21
    type: str = "int8"
    constants: str = ""
    shape: tuple[int, ...] = (2, 3)


BY_ZERO_POINT = "d = DequantizeLinear(x, s, z) "
WITHOUT = "d = DequantizeLinear(x, s) "
IN_BODIES = """y = If(b) <then_branch = t () => (float[A, B] p) { p = Abs(m) },
    else_branch = e () => (float[A, B] q) { q = Neg(m) }>"""
REFUSED, WRONG, CRASH = "on a QuantizeLinear", "values below 0 become 0", "the process ends"
ONCE = "rounded by the second scale alone"
ROUNDED_TWICE = """q = QuantizeLinear(c, r, z) d = DequantizeLinear(q, r, z)
    e = QuantizeLinear(d, s, z) y = DequantizeLinear(e, s, z)"""
QUANTISED = "c = Cast<to = 1>(x) " + ROUNDED_TWICE

MOVED = {
    "turned": Moved(BY_ZERO_POINT + "y = Transpose(d)", REFUSED),
    "turned by a list of one number": Moved(
        "d = DequantizeLinear(x, r, o) y = Transpose(d)",
        REFUSED,
        constants=", float[1] r = {0.5}, int8[1] o = {3}",
    ),
    "turned of uint8": Moved(BY_ZERO_POINT + "y = Transpose(d)", "", type="uint8"),
    "turned at opset 20": Moved(BY_ZERO_POINT + "y = Transpose(d)", "", 20),
    "turned by channels": Moved(
        "d = DequantizeLinear<axis = 1>(x, r, o) y = Transpose(d)",
        "",
        constants=", float[3] r = {0.5, 2, 3}, int8[3] o = {3, 4, 5}",
    ),
    "turned of a constant": Moved(
        "d = DequantizeLinear(f, s, z) t = Transpose(d) c = Cast<to = 1>(x) v = Transpose(c)"
        " y = Add(t, v)",
        "",
        constants=", int8[2, 3] f = {1, -2, 3, -4, 5, -6}",
    ),
    "turned, without a zero point": Moved(WITHOUT + "y = Transpose(d)", ""),
    "turned, without a zero point at opset 20": Moved(WITHOUT + "y = Transpose(d)", WRONG, 20),
    "sliced through others, at opset 13": Moved(
        WITHOUT + "i = Identity(d) c = Cast<to = 1>(i) y = Slice(c, k, l)",
        WRONG,
        13,
        constants=", int64[1] k = {0}, int64[1] l = {1}",
    ),
    "split at opset 13": Moved(WITHOUT + "t, u = Split<axis = 0>(d) y = Add(t, u)", "", 13),
    "of int32": Moved(WITHOUT + "y = Transpose(d)", REFUSED, type="int32"),
    "of int32 at opset 20": Moved(WITHOUT + "y = Transpose(d)", WRONG, 20, "int32"),
    "of 4 bits, pooled": Moved(
        "e = Cast<to = 22>(x) d = DequantizeLinear(e, s, o) p = MaxPool<kernel_shape = [1, 2]>(d)"
        " y = Squeeze(p, k)",
        REFUSED,
        constants=", int64[2] k = {0, 1}, int4 o = {3}",
        shape=(1, 1, 2, 3),
    ),
    "of a constant, read in bodies": Moved(
        "d = DequantizeLinear(f, s, z) m = Transpose(d) " + IN_BODIES,
        "",
        constants=", int8[2, 3] f = {1, -2, 3, -4, 5, -6}",
    ),
    "quantised again": Moved(
        BY_ZERO_POINT + "m = Transpose(d) v = Identity(m) q = QuantizeLinear(v, s, z)"
        " y = Cast<to = 1>(q)",
        "",
    ),
    "quantised again after another move": Moved(
        BY_ZERO_POINT + "m = Transpose(d) v = Reshape(m, k) q = QuantizeLinear(v, s, z)"
        " y = Cast<to = 1>(q)",
        "",
        constants=", int64[2] k = {2, 3}",
    ),
    "quantised again by what is calculated": Moved(
        BY_ZERO_POINT + "m = Transpose(d) v = Reshape(m, k) r = ReduceMax<keepdims = 0>(d)"
        " a = Abs(r) n = Add(a, s) q = QuantizeLinear(v, n, z) y = Cast<to = 1>(q)",
        REFUSED,
        constants=", int64[2] k = {2, 3}",
    ),
    "read in bodies": Moved(BY_ZERO_POINT + "m = Transpose(d) " + IN_BODIES, CRASH, 13, "uint8"),
    "read in bodies through an Identity": Moved(
        BY_ZERO_POINT + "v = Transpose(d) m = Identity(v) " + IN_BODIES, CRASH, type="int16"
    ),
    "not moved, read in bodies": Moved(
        BY_ZERO_POINT + "m = Identity(d) " + IN_BODIES, "", type="uint8"
    ),
    "calculated with, then read in bodies": Moved(
        BY_ZERO_POINT + "v = Transpose(d) m = Neg(v) " + IN_BODIES, "", type="uint8"
    ),
    "in a branch": Moved(
        """y = If(b) <then_branch = t () => (float[A, B] p) <float h = {0.25}, int8 n = {3}>
        { d = DequantizeLinear(x, h, n) p = Transpose(d) },
        else_branch = e () => (float[C, D] q) { q = Cast<to = 1>(x) }>""",
        REFUSED,
    ),
    "in a branch, by what is around it": Moved(
        """y = If(b) <then_branch = t () => (float[A, B] p)
        { d = DequantizeLinear(x, s, z) p = Transpose(d) },
        else_branch = e () => (float[C, D] q) { q = Cast<to = 1>(x) }>""",
        "",
    ),
    "in a function": Moved("y = own.moved(x, s, z)", REFUSED),
    "of ONNX Runtime's own": Moved(
        "d = com.microsoft.DequantizeLinear(x, s) y = Transpose(d)", WRONG
    ),
    "of int32, pooled at opset 12": Moved(
        BY_ZERO_POINT + "p = MaxPool<kernel_shape = [1, 2]>(d) y = Squeeze<axes = [0, 1]>(p)",
        REFUSED,
        12,
        "int32",
        shape=(1, 1, 2, 3),
    ),
    "of int32, pooled at opset 10": Moved(
        BY_ZERO_POINT + "y = MaxPool<kernel_shape = [1, 2]>(d)", "", 10, "int32", shape=(1, 1, 2, 3)
    ),
    "pooled at opset 11, read in bodies": Moved(
        BY_ZERO_POINT + "m = MaxPool<kernel_shape = [1, 2]>(d) " + IN_BODIES,
        "",
        11,
        "uint8",
        shape=(1, 1, 2, 3),
    ),
    "quantised twice": Moved(QUANTISED, ONCE, constants=", float r = {2}"),
    "quantised twice to uint8 at opset 10": Moved(QUANTISED, ONCE, 10, "uint8", ", float r = {2}"),
    "quantised twice, with an Identity between": Moved(
        QUANTISED.replace("e = QuantizeLinear(d,", "i = Identity(d) e = QuantizeLinear(i,"),
        ONCE,
        constants=", float r = {2}",
    ),
    "quantised twice, with a Cast between that changes nothing": Moved(
        QUANTISED.replace("e = QuantizeLinear(d,", "i = Cast<to = 1>(d) e = QuantizeLinear(i,"),
        ONCE,
        constants=", float r = {2}",
    ),
    "quantised twice in a function": Moved(
        "c = Cast<to = 1>(x) y = own.twice(c, r, s, z)", ONCE, constants=", float r = {2}"
    ),
    "quantised twice by equal constants": Moved(QUANTISED, "", constants=", float r = {0.25}"),
    "quantised twice to two types": Moved(
        QUANTISED.replace("s, z)", "s, o)"), "", constants=", float r = {2}, uint8 o = {40}"
    ),
    "quantised twice by channels": Moved(
        QUANTISED.replace("r, z)", "r, o)"),
        "",
        constants=", float[3] r = {2, 1, 2}, int8[3] o = {3, 4, 5}",
    ),
    "quantised twice and read between": Moved(
        QUANTISED.replace("y =", "f =") + " y = Sub(f, d)", "", constants=", float r = {2}"
    ),
    "quantised twice in a branch": Moved(
        """c = Cast<to = 1>(x) y = If(b) <then_branch = t () => (float[A, B] y) { TWICE },
        else_branch = w () => (float[C, D] p) { p = Neg(c) }>""".replace("TWICE", ROUNDED_TWICE),
        "",
        constants=", float r = {2}",
    ),
    "along the rows of a Scan": Moved(
        BY_ZERO_POINT
        + """y = Scan<num_scan_inputs = 1, scan_input_axes = [1], body = o
        (float[2] r) => (float[2] t) { t = Neg(r) }>(d)""",
        "",
    ),
}


def of_moved(case: Moved) -> onnx.ModelProto:
    """Return a model with nodes that move what is given back."""
    functions = {
        "moved (x, s, z)": "d = DequantizeLinear(x, s, z) y = Transpose(d)",
        "twice (c, r, s, z)": ROUNDED_TWICE,
    }
    called = "".join(
        f"""<domain: "own", opset_import: ["": {case.opset}]> {name} => (y) {{ {nodes} }}"""
        for name, nodes in functions.items()
        if f"own.{name[:5]}" in case.nodes
    )
    imports = f'"": {case.opset}, "own": 1, "com.microsoft": 1'
    return parse_model(
        f"""<ir_version: 10, opset_import: [{imports}]>
        g ({case.type}[{", ".join(map(str, case.shape))}] x, bool b) => (float[E, F] y)
        <float s = {{0.25}}, {case.type} z = {{{0 if case.type == "int32" else 3}}}
        {case.constants}> {{ {case.nodes} }} {called}"""
    )


@with_own("onnxruntime")
@pytest.mark.parametrize("name", MOVED)
def test_what_is_given_back_and_moved_is_as_it_was(name: str, engine: Any) -> None:
    """ONNX Runtime quantises it again; half of the values are below the zero point."""
    case = MOVED[name]
    model = of_moved(case)
    assert said_by_runtime(model) == [case.says] * bool(case.says)
    lowered = ts.lower(model, target="onnxruntime")
    assert said_by_runtime(lowered) == []
    assert ts.lower(lowered, target="onnxruntime") == lowered
    if "com.microsoft" in case.nodes and engine == "tensorsplit":
        return  # not an operator of ours
    x = np.array([[-8, 7, -3], [2, -5, 6]]) + (8 if "u" in case.type else 0)
    kind = next(each for each in ir.DataType if each.name.lower() == case.type)
    feeds = {"x": x.astype(kind.numpy()).reshape(case.shape), "b": np.array(True)}
    expected = without_optimiser(model, feeds)
    for each, is_sound in ((lowered, True), (model, not case.says or engine == "tensorsplit")):
        assert gives(each, feeds, engine, expected) is is_sound


def said_by_runtime(model: onnx.ModelProto) -> list[str]:
    """Return which of the faults check names."""
    found = ts.check(model, target="onnxruntime")
    return [
        next(
            (words for words in (REFUSED, WRONG, CRASH, ONCE) if words in each.message),
            each.message,
        )
        for each in found
    ]


def without_optimiser(model: onnx.ModelProto, feeds: dict[str, Any]) -> Any:
    """Return what ONNX Runtime gives of a model as it is."""
    runtime = pytest.importorskip("onnxruntime")
    options = runtime.SessionOptions()
    options.graph_optimization_level = runtime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = runtime.InferenceSession(model.SerializeToString(), options)
    (made,) = session.run(None, {each.name: feeds[each.name] for each in session.get_inputs()})
    return made


def gives(model: onnx.ModelProto, feeds: dict[str, Any], engine: Any, expected: Any) -> bool:
    """Return whether an engine runs a model and gives the bits that are expected."""
    given = {each.name: feeds[each.name] for each in model.graph.input}
    try:
        (made,) = ts.run(model, given, engine=engine).values()
    except SplitError:
        return False
    return made.dtype == expected.dtype and np.array_equal(made, expected)


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
    words = "the zero point is multiplied"
    assert set(said_of(model, words)) == ({"warning"} if is_taken else set())
    lowered = ts.lower(model, target="openvino")
    assert said_of(lowered, words) == []
    assert ts.lower(lowered, target="openvino") == lowered
    feeds = {"x": np.random.default_rng(3).uniform(-20, 20, (2, 6)).astype(np.float32)}
    expected = ts.run(model, feeds)
    assert is_near(lowered, feeds, engine, expected)
    assert is_near(model, feeds, engine, expected) is (engine != "openvino" or not is_taken)


CONSTANT = """k = QuantizeLinear(zeros, s, z) c = DequantizeLinear(k, s, z)
    q = QuantizeLinear(x, s, z) d = DequantizeLinear(q, s, z) """

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
    "in a difference": (CONSTANT + "y = Sub(d, c)", False),
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
        uint8[2, 2] bytes = {{1, 2, 3, 4}}> {{ {nodes} }}"""
    )
    words = "the constant is lost"
    assert set(said_of(model, words)) == ({"warning"} if is_lost else set())
    lowered = ts.lower(model, target="openvino")
    assert said_of(lowered, words) == []
    assert ts.lower(lowered, target="openvino") == lowered
    feeds = {"x": np.random.default_rng(3).uniform(0, 100, (2, 2)).astype(np.float32)}
    expected = ts.run(model, feeds)
    assert is_near(lowered, feeds, engine, expected)
    assert is_near(model, feeds, engine, expected) is (engine != "openvino" or not is_lost)


def is_near(
    model: onnx.ModelProto, feeds: dict[str, Any], engine: Any, expected: dict[str, Any]
) -> bool:
    """Return whether an engine loads a model and gives what is expected, but for a rounding."""
    try:
        got = ts.run(model, feeds, engine=engine)
    except SplitError as error:
        if re.search("Argument shapes are inconsistent|index < m_inputs", str(error)):
            return False
        raise
    return all(np.allclose(got[name], expected[name], atol=1) for name in expected)
