"""What is given back and moved, or quantised again, which ONNX Runtime quantises otherwise."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from onnx import TensorProto, helper
from onnx.parser import parse_function, parse_model

import tensorsplit as ts
from tensorsplit import SplitError
from tests.model.lower.running import with_own


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
TAKEN = IN_BODIES.replace("If(b)", "If(t)")
ON_SHAPE = "h = Shape(x) i = Gather(h, l) n = Equal(i, k) "
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
    "turned in float16, in which the scale is another": Moved(
        "r = Cast<to = 10>(w) d = DequantizeLinear(x, r, z) v = Transpose(d) y = Cast<to = 1>(v)",
        REFUSED,
        constants=", float w = {0.1}",
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
    "quantised again, and read beside": Moved(
        BY_ZERO_POINT + "m = Transpose(d) v = Reshape(m, k) q = QuantizeLinear(v, s, z)"
        " c = Cast<to = 1>(q) n = Neg(v) y = Add(c, n)",
        REFUSED,
        constants=", int64[2] k = {2, 3}",
    ),
    "quantised again, and moved beside": Moved(
        BY_ZERO_POINT + "m = Transpose(d) v = Reshape(m, k) q = QuantizeLinear(m, s, z)"
        " c = Cast<to = 1>(q) n = Reshape(v, l) y = Add(c, n)",
        "",
        constants=", int64[2] k = {2, 3}, int64[2] l = {3, 2}",
    ),
    "quantised again after an Identity, by what is calculated": Moved(
        BY_ZERO_POINT + "m = Transpose(d) v = Identity(m) r = ReduceMax<keepdims = 0>(d)"
        " a = Abs(r) n = Add(a, s) q = QuantizeLinear(v, n, z) y = Cast<to = 1>(q)",
        "",
    ),
    "quantised again in bodies": Moved(
        BY_ZERO_POINT
        + "m = Transpose(d) "
        + IN_BODIES.replace("p = Abs(m)", "q = QuantizeLinear(m, s, z) p = Cast<to = 1>(q)"),
        CRASH,
        type="uint8",
    ),
    "turned and read twice": Moved(
        BY_ZERO_POINT + "m = Transpose(d) v = Identity(m) n = Neg(v) a = Abs(m) y = Add(n, a)", ""
    ),
    "turned twice, each read once": Moved(
        BY_ZERO_POINT + "m = Transpose(d) v = Transpose(d) n = Neg(v) a = Abs(m) y = Add(n, a)",
        REFUSED,
    ),
    "turned twice after an Identity, each read once": Moved(
        BY_ZERO_POINT + "i = Identity(d) m = Reshape(i, k) v = Reshape(i, k) n = Neg(v) a = Abs(m)"
        " y = Add(n, a)",
        "",
        constants=", int64[2] k = {2, 3}",
    ),
    "turned to and fro, and read twice": Moved(
        BY_ZERO_POINT + "m = Transpose(d) v = Transpose(m) n = Neg(v) a = Abs(v) y = Add(n, a)",
        REFUSED,
    ),
    "turned and read beside, after an Identity": Moved(
        BY_ZERO_POINT + "i = Identity(d) m = Transpose(i) v = Transpose(m) n = Neg(v) a = Abs(i)"
        " y = Add(n, a)",
        "",
    ),
    "shaped and read beside, after an Identity": Moved(
        BY_ZERO_POINT + "i = Identity(d) m = Reshape(i, k) n = Neg(m) a = Abs(i) y = Add(n, a)",
        REFUSED,
        constants=", int64[2] k = {2, 3}",
    ),
    "turned beside a mask": Moved(
        BY_ZERO_POINT + "i, o = Dropout(d) m = Transpose(i) c = Cast<to = 1>(o) v = Transpose(c)"
        " y = Add(m, v)",
        "",
    ),
    "sliced to the end": Moved(
        BY_ZERO_POINT + "m = Slice(d, k, l) y = Neg(m)",
        "",
        constants=", int64[1] k = {0}, int64[1] l = {9223372036854775807}",
    ),
    "sliced by steps of 2": Moved(
        BY_ZERO_POINT + "m = Slice(d, k, l, k, e) y = Neg(m)",
        REFUSED,
        constants=", int64[1] k = {0}, int64[1] l = {9223372036854775807}, int64[1] e = {2}",
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
    "given back in a function": Moved("d = own.given(x, s, z) y = Transpose(d)", REFUSED),
    "turned in a function": Moved(BY_ZERO_POINT + "y = own.turns(d)", REFUSED),
    "turned in a function, read in bodies": Moved(
        BY_ZERO_POINT + "m = own.turns(d) " + IN_BODIES, CRASH, type="uint8"
    ),
    "turned in a function, and not read": Moved("y, u = own.aside(x, s, z)", ""),
    "turned in a function, and read once": Moved(
        "v, u = own.aside(x, s, z) w = Transpose(u) y = Add(v, w)", REFUSED
    ),
    "read in a branch that is taken": Moved(
        BY_ZERO_POINT + "m = Transpose(d) " + TAKEN, "", type="uint8", constants=", bool t = {1}"
    ),
    "read once in a branch that is taken": Moved(
        BY_ZERO_POINT + "m = Transpose(d) " + TAKEN, REFUSED, constants=", bool[1] t = {0}"
    ),
    "read in a branch on a known shape": Moved(
        ON_SHAPE + BY_ZERO_POINT + "m = Transpose(d) " + IN_BODIES.replace("If(b)", "If(n)"),
        "",
        type="uint8",
        constants=", int64 k = {3}, int64 l = {1}",
    ),
    "read in a branch on the shape of a part": Moved(  # of an open axis it is not known
        "v = Cast<to = 7>(x) w = Add(v, nine) u = NonZero(w) o, j = Split<axis = 1>(u, parts) "
        + ON_SHAPE.replace("Shape(x)", "Shape(o)")
        + BY_ZERO_POINT
        + "m = Transpose(d) "
        + IN_BODIES.replace("If(b)", "If(n)"),
        CRASH,
        type="uint8",
        constants=", int64[2] parts = {2, 4}, int64 k = {3}, int64 l = {1}, int64 nine = {9}",
    ),
    "turned in a branch that is taken": Moved(
        """y = If(t) <then_branch = t () => (float[A, B] p) <float h = {0.25}, int8 n = {3}>
        { d = DequantizeLinear(x, h, n) p = Transpose(d) },
        else_branch = e () => (float[C, D] q) { q = Cast<to = 1>(x) }>""",
        REFUSED,
        constants=", bool t = {1}",
    ),
    "turned in a branch that is not taken": Moved(
        """y = If(t) <then_branch = t () => (float[A, B] p) <float h = {0.25}, int8 n = {3}>
        { d = DequantizeLinear(x, h, n) p = Transpose(d) },
        else_branch = e () => (float[C, D] q) { q = Cast<to = 1>(x) }>""",
        "",
        constants=", bool t = {0}",
    ),
    "turned in a branch of a branch, both taken": Moved(
        BY_ZERO_POINT
        + """y = If(t) <then_branch = t () => (float[A, B] p) { p = If(t)
        <then_branch = t1 () => (float[C, D] p1) { p1 = Transpose(d) },
        else_branch = e1 () => (float[G, H] q1) { q1 = Cast<to = 1>(x) }> },
        else_branch = e () => (float[I, J] q) { q = Cast<to = 1>(x) }>""",
        REFUSED,
        constants=", bool t = {1}",
    ),
    "turned in a branch that is taken, in a body": Moved(
        """y = If(b) <then_branch = t () => (float[A, B] p) <float h = {0.25}, int8 n = {3}>
        { d = DequantizeLinear(x, h, n) p = If(t)
        <then_branch = t1 () => (float[C, D] p1) { p1 = Transpose(d) },
        else_branch = e1 () => (float[G, H] q1) { q1 = Cast<to = 1>(x) }> },
        else_branch = e () => (float[I, J] q) { q = Cast<to = 1>(x) }>""",
        REFUSED,
        constants=", bool t = {1}",
    ),
    "turned after a branch that is taken": Moved(
        """d = If(t) <then_branch = t () => (float[A, B] p) { p = DequantizeLinear(x, s, z) },
        else_branch = e () => (float[C, D] q) { q = Cast<to = 1>(x) }> y = Transpose(d)""",
        REFUSED,
        constants=", bool t = {1}",
    ),
    "of int32, turned for nobody": Moved(
        BY_ZERO_POINT + "m = Transpose(d) y = Neg(d)", REFUSED, 19, "int32"
    ),
    "of int32, shaped for nobody": Moved(
        BY_ZERO_POINT + "m = Reshape(d, k) y = Neg(d)",
        "",
        type="int32",
        constants=", int64[2] k = {3, 2}",
    ),
    "of int8, turned for nobody": Moved(BY_ZERO_POINT + "m = Transpose(d) y = Neg(d)", ""),
    "of int32, all of it sliced": Moved(
        WITHOUT + "y = Slice(d, k, l)",
        "",
        type="int32",
        constants=", int64[1] k = {0}, int64[1] l = {9223372036854775807}",
    ),
    "of int32, all of it sliced and turned": Moved(
        WITHOUT + "m = Slice(d, k, l) y = Transpose(m)",
        REFUSED,
        type="int32",
        constants=", int64[1] k = {0}, int64[1] l = {9223372036854775807}",
    ),
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
    "quantised twice and given back twice": Moved(
        QUANTISED.replace("y =", "f =") + " g = DequantizeLinear(e, s, z) n = Neg(g) o = Abs(f)"
        " y = Add(n, o)",
        ONCE,
        constants=", float r = {2}",
    ),
    "quantised and given back by other constants": Moved(
        QUANTISED.replace("(c, r, z)", "(c, t, z)"), "", constants=", float r = {2}, float t = {4}"
    ),
    "quantised twice, at last given back by other constants": Moved(
        QUANTISED.replace("(e, s, z)", "(e, t, z)"), "", constants=", float r = {2}, float t = {4}"
    ),
    "quantised twice of float16": Moved(
        "g = Cast<to = 10>(x) u = Cast<to = 10>(s) r = Cast<to = 10>(t) "
        + ROUNDED_TWICE.replace("(c,", "(g,").replace("s, z)", "u, z)").replace("y =", "h =")
        + " y = Cast<to = 1>(h)",
        "",
        constants=", float t = {2}",
    ),
    "quantised twice to 4 bits": Moved(
        QUANTISED.replace(", z)", ", o)"), "", constants=", float r = {2}, int4 o = {3}"
    ),
    "quantised twice, a mask beside": Moved(
        QUANTISED.replace(
            "e = QuantizeLinear(d,", "i, b1 = Dropout(d) e = QuantizeLinear(i,"
        ).replace("y =", "f =")
        + " g = Cast<to = 1>(b1) y = Add(f, g)",
        "",
        constants=", float r = {2}",
    ),
    "quantised twice in a function": Moved(
        "c = Cast<to = 1>(x) y = own.twice(c, r, s, z)", ONCE, constants=", float r = {2}"
    ),
    "quantised twice, once in a function": Moved(
        QUANTISED.replace("d = DequantizeLinear(", "d = own.given("),
        ONCE,
        constants=", float r = {2}",
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
        "moved (x, s, z) => (y)": "d = DequantizeLinear(x, s, z) y = Transpose(d)",
        "given (x, s, z) => (y)": "y = DequantizeLinear(x, s, z)",
        "turns (d) => (y)": "y = Transpose<perm = [1, 0]>(d)",
        "aside (x, s, z) => (y, u)": "d = DequantizeLinear(x, s, z) u = Transpose(d) y = Neg(d)",
        "twice (c, r, s, z) => (y)": ROUNDED_TWICE,
    }
    called = "".join(
        f"""<domain: "own", opset_import: ["": {case.opset}]> {name} {{ {nodes} }}"""
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


MOVES = (
    "Transpose({})",
    "Slice({}, zero, most)",
    "Slice({}, zero, one)",
    "Abs({})",
    "Reshape({}, column)",
    "Reshape<allowzero = 0>({}, row)",
    "Reshape<allowzero = 1>({}, row)",
)
"""Nodes that move elements, one of everything, and one that does not."""

HARD = (
    ["Transpose(d)", "Transpose(d)", "Abs(v0)", "Abs(v1)"],
    ["Slice(d, zero, most)", "Slice(d, zero, most)", "Abs(v0)", "Transpose(v1)"],
    ["Reshape(d, row)", "Reshape(v0, column)", "Abs(v1)", "Neg(v1)"],
    ["Reshape(d, row)", "Identity(v0)", "Reshape(v1, column)", "Abs(v2)", "Neg(v2)"],
    ["Reshape(d, row)", "Reshape(v0, column)", "Reshape(v0, column)", "Abs(v1)", "Neg(v2)"],
    ["Reshape(d, row)", "Reshape<allowzero = 0>(v0, column)", "Abs(v1)", "Neg(v1)"],
    ["Reshape(d, row)", "Reshape<allowzero = 1>(v0, column)", "Abs(v1)", "Neg(v1)"],
    ["Reshape<allowzero = 1>(d, row)", "Reshape(v0, column)", "Abs(v1)", "Neg(v1)"],
    ["Reshape(d, row)", "Reshape(v0, column)", "Abs(v1)", "Neg(v0)"],
    ["Transpose(d)", "Abs(v0)", "Reshape(v0, row)", "Reshape(v2, column)", "Abs(v3)", "Neg(v3)"],
)


def trees(count: int, seed: int) -> Iterator[list[str]]:
    """Yield nodes of which each reads what is given back, or what one before it gives."""
    rng = random.Random(seed)
    for _ in range(count):
        names = ["d", *(f"v{place}" for place in range(rng.randint(1, 4)))]
        nodes = [
            rng.choice(MOVES).format(rng.choice(names[: place + 1]))
            for place in range(len(names) - 1)
        ]
        if "most" not in str(nodes) or "Transpose" not in str(nodes):  # not all of these are known
            yield nodes


@pytest.mark.engine
def test_exactly_what_onnxruntime_does_not_load_is_said() -> None:
    """Nodes that do the same are one, and two that reshape; each that is read once moves on."""
    runtime = pytest.importorskip("onnxruntime")
    errors = pytest.importorskip("onnxruntime.capi.onnxruntime_pybind11_state")
    wrong = []
    for nodes in (*HARD, *trees(250, 23)):
        names = ["d", *(f"v{place}" for place in range(len(nodes)))]
        given = [name for name in names if not any(f"({name}" in node for node in nodes)]
        model = parse_model(
            f"""<ir_version: 10, opset_import: ["": 21]>
            g (int8[2, 3] x) => ({", ".join(f"float[A{name}, B{name}] {name}" for name in given)})
            <float s = {{0.25}}, int8 z = {{3}}, int64[1] zero = {{0}}, int64[1] one = {{1}},
            int64[1] most = {{9223372036854775807}}, int64[2] row = {{1, -1}},
            int64[2] column = {{-1, 1}}> {{ {BY_ZERO_POINT}
            {" ".join(f"v{place} = {node}" for place, node in enumerate(nodes))} }}"""
        )
        said = REFUSED in said_by_runtime(model)
        try:
            runtime.InferenceSession(model.SerializeToString())
            is_loaded = True
        except (errors.Fail, errors.NotImplemented, errors.InvalidGraph):
            is_loaded = False
        if said is is_loaded:
            wrong.append((nodes, said))
    assert wrong == []


def said_by_runtime(model: onnx.ModelProto) -> list[str]:
    """Return which of the faults check names."""
    found = ts.check(model, target="onnxruntime")
    return [
        next(
            (words for words in (REFUSED, WRONG, CRASH, ONCE) if words in each.message),
            each.message,
        )
        for each in found
        if each.severity != "note"
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


class Product(NamedTuple):
    """A product by a constant, which check says something of or not."""

    nodes: str
    is_rounded: bool = True
    type: str = "int8"
    scales: tuple[int, ...] = (8,)
    is_turned: bool = False


BY_COLUMNS = "d = DequantizeLinear(w, s) "
IN_A_BRANCH = """n = ReduceSum<keepdims = 0>(x) c = Less(n, k) y = If(c) <
    then_branch = t () => (float[A, B] p) { d = DequantizeLinear(w, s) p = MatMul(x, d) },
    else_branch = e () => (float[A, B] q) { q = Neg(x) }>"""
PRODUCTS = {
    "by columns": Product(BY_COLUMNS + "y = MatMul(x, d)"),
    "by one scale": Product(BY_COLUMNS + "y = MatMul(x, d)", scales=()),
    "of uint8": Product(BY_COLUMNS + "y = MatMul(x, d)", type="uint8"),
    "of 4 bits": Product(BY_COLUMNS + "y = MatMul(x, d)", type="int4"),
    "as a Gemm": Product(BY_COLUMNS + "y = Gemm(x, d)"),
    "passed on": Product(BY_COLUMNS + "i = Identity(d) y = MatMul(x, i)"),
    "turned": Product(
        "d = DequantizeLinear<axis = 0>(w, s) t = Transpose<perm = [1, 0]>(d) y = MatMul(x, t)",
        is_turned=True,
    ),
    "in blocks": Product(
        "d = DequantizeLinear<axis = 0, block_size = 16>(w, s) y = MatMul(x, d)", scales=(2, 8)
    ),
    "in a branch": Product(IN_A_BRANCH),
    "in small blocks": Product(
        "d = DequantizeLinear<axis = 0, block_size = 8>(w, s) y = MatMul(x, d)",
        is_rounded=False,
        scales=(4, 8),
    ),
    "by rows": Product(
        "d = DequantizeLinear<axis = 0>(w, s) y = MatMul(x, d)", is_rounded=False, scales=(32,)
    ),
    "by columns from the back": Product(
        "d = DequantizeLinear<axis = -1>(w, s) y = MatMul(x, d)", is_rounded=False
    ),
    "read twice": Product(
        BY_COLUMNS + "m = MatMul(x, d) o = Neg(x) u = MatMul(o, d) v = Sub(m, u) y = Mul(v, h)",
        is_rounded=False,
    ),
    "of the larger": Product(BY_COLUMNS + "m = Max(d, d) y = MatMul(x, m)", is_rounded=False),
    "of 16 bits": Product(BY_COLUMNS + "y = MatMul(x, d)", is_rounded=False, type="int16"),
}


@with_own("onnxruntime")
@pytest.mark.parametrize("name", PRODUCTS)
def test_the_data_of_a_product_are_not_rounded_to_8_bits(name: str, engine: Any) -> None:
    """ONNX Runtime makes a MatMulNBits of it, or does not load the model."""
    made, rng = PRODUCTS[name], np.random.default_rng(7)
    kind = helper.tensor_dtype_to_np_dtype(getattr(TensorProto, made.type.upper()))
    low = {"uint8": 1, "int4": -7}.get(made.type, -90)
    factor = rng.integers(low, 8 if made.type == "int4" else 91, (32, 8)).astype(kind)
    scales = rng.uniform(0.01, 0.02, made.scales).astype(np.float32)
    proto = parse_model(
        f"""<ir_version: 10, opset_import: ["": 21]> g (float[4, 32] x) => (float[A, B] y)
        <float k = {{1e9}}, float h = {{0.5}}> {{ {made.nodes} }}"""
    )
    given = np.ascontiguousarray(factor.T) if made.is_turned else factor
    for each, called in ((given, "w"), (scales, "s")):
        proto.graph.initializer.append(onnx.numpy_helper.from_array(each, called))
    found = [each for each in ts.check(proto, "onnxruntime") if "to 8 bits" in each.message]
    assert [each.severity for each in found] == ["warning"] * made.is_rounded
    x = rng.uniform(-1, 1, (4, 32)).astype(np.float32)
    along = np.repeat(scales, 32 // len(scales), 0) if scales.ndim and len(scales) != 8 else scales
    along = along[:, None] if along.shape == (32,) else along
    wanted = x @ (factor.astype(np.float32) * along)
    lowered = ts.lower(proto, target="onnxruntime")
    got = ts.run(lowered, {"x": x}, engine=engine)["y"]
    np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-5)
    if engine == "onnxruntime" and name == "in a branch":
        with pytest.raises(SplitError, match="MatMulNBits"):
            ts.run(proto, {"x": x}, engine=engine)
    elif engine == "onnxruntime":
        as_it_is = ts.run(proto, {"x": x}, engine=engine)["y"]
        assert np.allclose(as_it_is, wanted, rtol=1e-4, atol=1e-5) is not made.is_rounded


def test_by_a_default_nothing_is_quantised_again() -> None:
    """Another scale may be fed (D20)."""
    model = of_moved(MOVED["turned"])
    model.graph.input.append(helper.make_tensor_value_info("s", TensorProto.FLOAT, []))
    assert said_by_runtime(model) == []


def test_more_nodes_than_calls_may_lie_between_two_that_quantise() -> None:
    chain = " ".join(f"i{at + 1} = Identity(i{at})" for at in range(2000))
    nodes = QUANTISED.replace("d = ", "i0 = ").replace("e = QuantizeLinear(d,", chain + " e =")
    nodes = nodes.replace(" e = s", " e = QuantizeLinear(i2000, s")
    assert said_by_runtime(of_moved(Moved(nodes, ONCE, constants=", float r = {2}"))) == [ONCE]


@pytest.mark.parametrize("operator", ["Transpose", "Identity", "Dropout", "QuantizeLinear"])
@pytest.mark.parametrize("target", ["onnxruntime", "openvino"])
def test_a_node_that_gives_nothing_is_no_error_of_ours(operator: str, target: Any) -> None:
    model = of_moved(Moved(QUANTISED, ONCE, constants=", float r = {2}"))
    model.graph.node[3].CopyFrom(helper.make_node(operator, ["d", "s", "z"], []))
    assert {each.severity for each in ts.check(model, target=target)} >= {"error"}


@pytest.mark.parametrize(
    ("opset", "node"), [(20, "u = Neg(c)"), (21, "u = own.f(c)"), (21, "u = Neg(x)")]
)
def test_a_function_that_can_not_be_inlined_hides_nothing(opset: int, node: str) -> None:
    """It is of another opset, calls itself, or reads what it is not given."""
    model = of_moved(MOVED["turned"])
    model.opset_import.add(domain="own", version=1)
    head = f'<domain: "own", opset_import: ["": {opset}, "own": 1]>'
    model.functions.append(parse_function(f"{head} f (c) => (u) {{ {node} }}"))
    model.graph.node.insert(0, helper.make_node("f", ["s"], ["u"], domain="own"))
    assert REFUSED in said_by_runtime(model)


def test_a_fault_of_ours_is_not_hidden_by_what_can_not_be_inlined(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("tensorsplit.model.features.inlined.walk", {}.__getitem__)
    with pytest.raises(KeyError):
        ts.check(of_moved(MOVED["in a function"]), target="onnxruntime")
