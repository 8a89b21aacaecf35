"""Shapes that a graph computes, as exporters write them, through the operators that take them."""

from __future__ import annotations

import tracemalloc
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import pytest

import tensorsplit as ts
from tensorsplit.model.infer.node_outputs import of_constant
from tests.model.build import FLOAT, graph, model, node, tensor, value
from tests.model.infer.test_against_onnx import inferred_by_onnx, lost
from tests.model.infer.test_infer_shapes import shapes

HEAD = '<ir_version: 8, opset_import: ["" : {}]> g (float[batch,seq,60] x, float[B,H,W,C] u, '
HEAD += "float[N,3,h,w] image, float[A,6] a, float[P,6] p, float[B,14,21,5] v) => (y) "
HEAD += "<int64 zero={{0}}, int64 one={{1}}, int64 two={{2}}, int64[1] first={{0}}> {{ {} }}"

ATTENTION = """s = Shape(x) b0 = Gather(s, zero) t0 = Gather(s, one) {}
    six = Constant<value = int64[1] {{6}}>() ten = Constant<value = int64[1] {{10}}>()
    rest = Constant<value = int64[1] {{-1}}>()
    heads = Concat<axis=0>(b, t, six, ten) split = Reshape(x, heads)
    turned = Transpose<perm=[0, 2, 1, 3]>(split) back = Transpose<perm=[0, 2, 1, 3]>(turned)
    flat = Concat<axis=0>(b, t, rest) y = Reshape(back, flat)"""

MASK = """b = Shape<start=0, end=1>(x) t = Shape<start=1, end=2>(x)
    none = Constant<value_ints=[-1]>() one1 = Constant<value_ints=[1]>()
    asked = Concat<axis=0>(b, none, t, t)
    of = Concat<axis=0>(b, one1, one1, t) data = ConstantOfShape(of)
    n = Shape(asked) ones = ConstantOfShape<value = int64[1] {1}>(n) minus = Mul(ones, none)
    is = Equal(asked, minus) want = Where(is, ones, asked) y = Expand(data, want)"""

WINDOWS = """s = Shape(u) b0 = Gather(s, zero) h0 = Gather(s, one) w0 = Gather(s, two)
    b = Unsqueeze(b0, first) h1 = Unsqueeze(h0, first) w1 = Unsqueeze(w0, first)
    c = Shape<start=3>(u) seven = Constant<value_ints=[7]>() rest = Constant<value_ints=[-1]>()
    h7 = Div(h1, seven) w7 = Div(w1, seven) six = Concat<axis=0>(b, h7, seven, w7, seven, c)
    parts = Reshape(u, six) turned = Transpose<perm=[0, 1, 3, 2, 4, 5]>(parts)
    asked = Concat<axis=0>(rest, seven, seven, c) windows = Reshape(turned, asked)
    back = Concat<axis=0>(b, h7, w7, seven, seven, rest) again = Reshape(windows, back)
    y = Identity(again)"""

RESIZED = """s = Shape(image) two0 = Constant<value_ints=[0]>() four = Constant<value_ints=[4]>()
    mid = Constant<value_ints=[2]>() head = Slice(s, two0, mid) tail = Slice(s, mid, four)
    floats = Cast<to=1>(tail) scale = Constant<value_floats=[2.0, 0.5]>()
    scaled = Mul(floats, scale)
    whole = Floor(scaled) sizes = Cast<to=7>(whole) asked = Concat<axis=0>(head, sizes)
    y = Resize<mode="nearest">(image, "", "", asked)"""

SHORTENED = """st = Constant<value_ints=[1]>() en = Constant<value_ints=[9223372036854775807]>()
    ax = Constant<value_ints=[2]>() cut = Slice(image, st, en, ax)
    pads = Constant<value_ints=[1, 2]>()
    axes = Constant<value_ints=[3]>() nothing = Constant<value_float=0.0>()
    y = Pad(cut, pads, nothing, axes)"""

PATTERNS: dict[str, tuple[str, int, dict[str, tuple[Any, ...]]]] = {
    "attention": (
        ATTENTION.format("b = Unsqueeze(b0, first) t = Unsqueeze(t0, first)"),
        17,
        {"split": ("batch", "seq", 6, 10), "y": ("batch", "seq", 60)},
    ),
    "attention before opset 13": (
        ATTENTION.format("b = Unsqueeze<axes=[0]>(b0) t = Unsqueeze<axes=[0]>(t0)"),
        11,
        {"split": ("batch", "seq", 6, 10), "y": ("batch", "seq", 60)},
    ),
    "mask": (MASK, 17, {"y": ("batch", 1, "seq", "seq")}),
    "windows": (
        WINDOWS,
        17,
        # Where B is 0, a floor(H/7) of 0 is the H, and so on
        {"parts": ("B", None, 7, None, 7, "C"), "windows": (None, 7, 7, None)},
    ),
    "windows of sides that are numbers": (
        WINDOWS.replace("(u", "(v"),
        17,
        {
            "parts": ("B", 2, 7, 3, 7, 5),
            "windows": ("6*B", 7, 7, 5),
            "y": ("B", 2, 3, 7, 7, 5),
        },
    ),
    "resize": (RESIZED, 18, {"y": ("N", 3, "2*h", "floor(w/2)")}),
    "slice and pad": (
        SHORTENED,
        18,
        {"cut": ("N", 3, "max(0, h - 1)", "w"), "y": ("N", 3, "max(0, h - 1)", "w + 3")},
    ),
    "concat and flatten": (
        "c = Concat<axis=0>(a, p) y = Flatten<axis=2>(image)",
        17,
        {"c": ("A + P", 6), "y": ("3*N", "h*w")},
    ),
    "range": (
        """n = Shape<start=1>(x) s = Shape<start=1, end=2>(x) m = Shape<start=0, end=1>(p)
        q = Squeeze(s) r = Squeeze(m) both = Add(q, r) y = Range(r, both, one)""",
        17,
        {"y": ("seq",)},
    ),
    "rank": (
        "s = Shape(x) n = Size(s) d = Sub(n, one) e = Unsqueeze(d, first) y = ConstantOfShape(e)",
        17,
        {"y": (2,)},
    ),
    "convolution": (
        """of = Constant<value_ints=[8, 3, 2, 2]>() k = ConstantOfShape(of)
        y = Conv<strides=[2, 2]>(image, k)""",
        17,
        {"y": ("N", 8, "floor(h/2)", "floor(w/2)")},
    ),
    "a kernel whose sides have names": (
        "y = Conv<pads=[1, 0, 1, 0]>(image, image)",
        17,
        {"y": ("N", "N", 3, 1)},
    ),
    "the largest of floats": (
        """low = Constant<value_floats=[0.5]>() high = Constant<value_floats=[2.5]>()
        most = Max(low, high) n = Cast<to=7>(most) y = ConstantOfShape(n)""",
        17,
        {"y": (2,)},
    ),
    "a number less a half": (
        """three = Constant<value_floats=[3.0]>() half = Constant<value_floats=[0.5]>()
        rest = Sub(three, half) n = Cast<to=7>(rest) y = ConstantOfShape(n)""",
        17,
        {"y": (2,)},
    ),
    "a name less a half": (
        """s = Shape<end=1>(p) f = Cast<to=1>(s) half = Constant<value_floats=[0.5]>()
        rest = Sub(f, half) n = Cast<to=7>(rest) y = ConstantOfShape(n)""",
        17,
        {"y": (None,)},
    ),
    "booleans as numbers": (
        """n = Constant<value_ints=[2]>() yeses = ConstantOfShape<value = bool[1] {1}>(n)
        lengths = Cast<to=7>(yeses) y = ConstantOfShape(lengths)""",
        17,
        {"y": (1, 1)},
    ),
}


@pytest.mark.parametrize("name", PATTERNS)
def test_patterns(name: str) -> None:
    text, opset, expected = PATTERNS[name]
    made = onnx.parser.parse_model(HEAD.format(opset, text))
    found = shapes(made)
    assert {key: found[key] for key in expected} == expected
    assert lost(made, inferred_by_onnx(made)) == []


def gpt2() -> onnx.ModelProto:
    """The split of queries, keys and values into thirds of a dimension."""
    nodes = [
        node("MatMul", "x w", "c"),
        node("Shape", "c", "s"),
        node("Gather", "s two", "d"),
        node("Div", "d three", "third"),
        node("Unsqueeze", "third first", "t"),
        node("Concat", "t t t", "lengths", axis=0),
        node("Split", "c lengths", "q k v", axis=2),
    ]
    inputs = [value("x", FLOAT, ["batch", "seq", 8]), value("w", FLOAT, [8, 24])]
    constants = [tensor("two", 2), tensor("three", 3), tensor("first", [0])]
    return model(graph(nodes, inputs, ["q", "k", "v"], constants), 13)


def test_a_split_whose_lengths_follow_stays_one_node() -> None:
    made = gpt2()
    assert shapes(made)["k"] == ("batch", "seq", 8)
    for opset in (8, 11):
        converted = ts.convert(made, opset=opset)
        assert isinstance(converted, onnx.ModelProto)
        (split,) = [entry for entry in converted.graph.node if entry.op_type == "Split"]
        written = {entry.name: list(entry.ints) for entry in split.attribute}
        assert written.get("split", [8, 8, 8]) == [8, 8, 8]  # thirds are equal parts
        assert not [entry for entry in converted.graph.node if entry.op_type in ("Where", "Slice")]
    x, w = np.ones((2, 3, 8), np.float32), np.arange(192, dtype=np.float32).reshape(8, 24)
    got, want = ts.run(converted, {"x": x, "w": w}), ts.run(made, {"x": x, "w": w})
    assert all(np.array_equal(got[name], want[name]) for name in "qkv")


def test_lengths_of_lengths_stay_short() -> None:
    """Past 200 characters an expression is a name, the same for the same expression."""
    nodes = [
        node("Split", f"x{index}", f"a{index} x{index + 1}", axis=0, num_outputs=2)
        for index in range(24)
    ]
    nodes.append(node("Add", "x24 x24", "y"))
    made = model(graph(nodes, [value("x0", FLOAT, ["N", 4])], ["x24", "y"]))
    found = shapes(made)
    assert all(len(str(shape)) < 300 for shape in found.values())
    assert found["y"] == found["x24"]
    assert str((found["x24"] or ("",))[0]).startswith("dim_")


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("way", ["Constant", "Identity", "Concat", "Cast"])
def test_floats_as_lengths_of_split_1(dtype: Any, way: str) -> None:
    halves = [tensor("s0", [2.0], dtype), tensor("s1", [4.0], dtype)]
    whole, nodes = tensor("s", [2.0, 4.0], dtype), []
    if way == "Constant":
        nodes = [node("Constant", "", "l", value=whole)]
    elif way == "Identity":
        halves, nodes = [whole], [node("Identity", "s", "l")]
    elif way == "Concat":
        nodes = [node("Concat", "s0 s1", "l", axis=0)]
    else:
        halves = [tensor("s", [2, 4])]
        nodes = [
            node("Cast", "s", "l", to={2: "FLOAT16", 4: "FLOAT", 8: "DOUBLE"}[dtype().itemsize])
        ]
    nodes.append(node("Split", "x l", "a b", axis=1))
    used = halves if way != "Constant" else []
    kind = onnx.helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    made = model(graph(nodes, [value("x", kind, ("N", 6, 4))], ["a", "b"], used), 1)
    found = shapes(made)
    assert (found["a"], found["b"]) == (("N", 2, 4), ("N", 4, 4))


def test_what_an_optional_holds() -> None:
    text = """<ir_version: 8, opset_import: ["" : 18]>
    g (optional(float[N, 6]) o) => (y) { t = OptionalGetElement(o) y = Relu(t) }"""
    made = onnx.parser.parse_model(text)
    assert shapes(made)["y"] == ("N", 6)


def test_expressions_hold() -> None:
    """Every dimension that is told is the one of the running model."""
    rng = np.random.default_rng(0)
    for text, opset, _ in PATTERNS.values():
        made = onnx.parser.parse_model(HEAD.format(opset, text))
        inferred = ts.infer_shapes(made)
        assert isinstance(inferred, onnx.ModelProto)
        told = {entry.name: entry for entry in (*inferred.graph.value_info, *inferred.graph.output)}
        for _ in range(4):
            names = {name: int(rng.integers(2, 7)) for name in ("batch", "seq", *"BCNhwAP")}
            names |= {name: int(rng.integers(1, 4)) * 7 for name in "HW"}
            feeds = {
                entry.name: rng.random([_number(dim, names) for dim in _dims(entry)], np.float32)
                for entry in made.graph.input
            }
            copy = onnx.ModelProto.FromString(made.SerializeToString())
            del copy.graph.output[:]
            copy.graph.output.extend(told.values())
            for name, got in ts.run(copy, feeds).items():
                wanted = [_number(dim, names) or None for dim in _dims(told[name])]
                pairs = zip(wanted, got.shape, strict=True)
                assert all(dim in (None, size) for dim, size in pairs), name


def _dims(entry: onnx.ValueInfoProto) -> list[Any]:
    return [dim.dim_param or dim.dim_value for dim in entry.type.tensor_type.shape.dim]


def _number(dim: Any, names: dict[str, int]) -> Any:
    return ir.SymbolicDim(dim).evaluate(names) if isinstance(dim, str) else dim


LAST32, LAST64 = 2**31 - 1, 2**63 - 1


@pytest.mark.parametrize(
    ("op", "dtype", "operands", "then", "length"),
    [
        ("Add", np.int32, [LAST32 - 1, 1], ("Sub", LAST32 - 5), 5),
        ("Add", np.int32, [LAST32, 1], ("Sub", LAST32 - 5), None),  # it wraps to -2^31
        ("Sub", np.int32, [-LAST32, 1], ("Add", LAST32 + 6), 5),
        ("Sub", np.int32, [-LAST32 - 1, 1], ("Add", LAST32 + 6), None),
        ("Mul", np.int32, [2**16, 2**15], ("Sub", 2**31 - 5), None),
        ("Neg", np.int32, [-LAST32 - 1], ("Sub", 2**31 - 5), None),
        ("Mul", np.int64, [2**62, 2], ("Div", 2**61), None),
        ("Mul", np.int64, [-(2**62), 2], ("Div", -(2**61)), 4),
        ("Add", np.int64, [LAST64, 0], ("Sub", LAST64 - 5), 5),
        ("Mod", np.int64, [0, 3], ("Add", 0), 0),
        ("Mod", np.int64, [7, 3], ("Add", 0), 1),
        ("Mod", np.int64, [7, 1], ("Add", 0), 0),
        ("Mod", np.int64, [7, -3], ("Add", 5), None),  # whose sign depends on fmod
    ],
)
def test_what_is_computed_of_integers(
    op: str, dtype: Any, operands: list[int], then: tuple[str, int], length: int | None
) -> None:
    """Engines wrap at the end of a type: what goes beyond it is not known."""
    names = "ab"[: len(operands)]
    held = [tensor(name, [item], dtype) for name, item in zip(names, operands, strict=True)]
    nodes = [
        node(op, " ".join(names), "c"),
        node("Cast", "c", "d", to=onnx.TensorProto.INT64),
        node(then[0], "d other", "n"),
        node("ConstantOfShape", "n", "y"),
    ]
    made = model(graph(nodes, [], ["y"], [*held, tensor("other", [then[1]])]))
    assert shapes(made)["y"] == (length,)


@pytest.mark.parametrize(
    ("entry", "length"), [(LAST32, 10), (LAST32 + 1, None), (-LAST32 - 1, 10), (-LAST32 - 2, None)]
)
def test_a_cast_to_int32_keeps_what_int32_holds(entry: int, length: int | None) -> None:
    nodes = [
        node("Cast", "a", "b", to=onnx.TensorProto.INT32),
        node("Cast", "b", "c", to=onnx.TensorProto.INT64),
        node("Sub", "c other", "n"),
        node("ConstantOfShape", "n", "y"),
    ]
    made = model(graph(nodes, [], ["y"], [tensor("a", [entry]), tensor("other", [entry - 10])]))
    assert shapes(made)["y"] == (length,)


@pytest.mark.parametrize(("count", "length"), [(2048, 2048), (2049, None)])
def test_a_cast_to_float16_keeps_what_is_exact_in_11_bits(count: int, length: int | None) -> None:
    nodes = [
        node("Cast", "a", "b", to=onnx.TensorProto.FLOAT16),
        node("Cast", "b", "c", to=onnx.TensorProto.INT64),
        node("ConstantOfShape", "c", "y"),
    ]
    made = model(graph(nodes, [], ["y"], [tensor("a", [count])]))
    assert np.int64(np.float16(count)) == 2048
    assert shapes(made)["y"] == (length,)


@pytest.mark.parametrize(
    ("left", "right", "plain", "by_fmod"),
    [
        *((7, 3, 1, 1), (-7, 3, 2, -1), (7, -3, -2, 1), (-7, -3, -1, -1)),
        *((-6, 3, 0, 0), (6, -3, 0, 0), (-1, 3, 2, -1), (1, -3, -2, 1)),
    ],
)
def test_a_remainder_has_the_sign_of_the_divisor_or_with_fmod_of_the_dividend(
    left: int, right: int, plain: int, by_fmod: int
) -> None:
    for fmod, wanted in ((0, plain), (1, by_fmod)):
        nodes = [
            node("Mod", "a b", "c", fmod=fmod),
            node("Add", "c ten", "n"),
            node("ConstantOfShape", "n", "y"),
        ]
        constants = [tensor("a", [left]), tensor("b", [right]), tensor("ten", [10])]
        made = model(graph(nodes, [], ["y"], constants))
        assert shapes(made)["y"] in ((wanted + 10,), (None,))
        assert ts.run(made, {})["y"].shape == (wanted + 10,)


def test_a_remainder_of_nothing_is_not_known() -> None:
    nodes = [node("Mod", "a b", "n"), node("ConstantOfShape", "n", "y")]
    made = model(graph(nodes, [], ["y"], [tensor("a", [7]), tensor("b", [0])]))
    assert shapes(made)["y"] == (None,)


@pytest.mark.parametrize(
    ("kind", "factors", "length"),
    [
        (onnx.TensorProto.INT32, 1, ("N",)),
        (onnx.TensorProto.INT32, 2, (None,)),  # 46341 * 46341 is too large
        (onnx.TensorProto.INT64, 4, ("N**4",)),
        (onnx.TensorProto.INT64, 5, (None,)),
    ],
)
def test_products_of_names_are_known_where_they_can_not_overflow(
    kind: int, factors: int, length: Any
) -> None:
    nodes = [node("Shape", "x", "s"), node("Cast", "s", "f0", to=kind)]
    nodes += [node("Mul", f"f{k} f0", f"f{k + 1}") for k in range(factors - 1)]
    nodes += [node("Cast", f"f{factors - 1}", "n", to=onnx.TensorProto.INT64)]
    nodes += [node("ConstantOfShape", "n", "y")]
    assert shapes(model(graph(nodes, [value("x", FLOAT, ("N",))], ["y"])))["y"] == length


@pytest.mark.parametrize(("factor", "length"), [(127, "127*N"), (128, None)])
def test_a_name_stands_for_2_to_the_24_at_most_in_what_is_computed_in_32_bits(
    factor: int, length: str | None
) -> None:
    nodes = [
        node("Shape", "x", "s"),
        node("Cast", "s", "d", to=onnx.TensorProto.INT32),
        node("Mul", "d factor", "m"),
        node("Cast", "m", "n", to=onnx.TensorProto.INT64),
        node("ConstantOfShape", "n", "y"),
    ]
    held = tensor("factor", [factor], np.int32)
    made = model(graph(nodes, [value("x", FLOAT, ("N",))], ["y"], [held]))
    assert shapes(made)["y"] == (length,)


CALCULATED: dict[str, Any] = {
    # integers are divided towards 0
    "a = Div(minus7, two)  e = Add(a, five)": 2,
    "a = Div(seven, two)  e = Identity(a)": 3,
    "a = Mod(seven, five)  e = Identity(a)": 2,
    "a = Mod(minus7, five)  e = Add(a, five)": None,
    "a = Mul(n, zero)  e = Identity(a)": 0,
    "a = Neg(minus7)  e = Identity(a)": 7,
    "a = Abs(minus7)  e = Identity(a)": 7,
    "a = Abs(n)  e = Identity(a)": "N",
    "a = Max(two, five, n)  e = Min(a, two)": 2,
    "a = Min(n, five, seven)  e = Identity(a)": "min(5, N)",
    "a = Max(n, minus7)  e = Identity(a)": "N",
    "a = Sum(two, n, five)  e = Identity(a)": "N + 7",
    # a name stands for any number from 0 on
    "m = Add(n, two)  c = Greater(m, n)  e = Where(c, five, seven)": 5,
    "m = Add(n, two)  c = Less(m, n)  e = Where(c, five, seven)": 7,
    "m = Add(n, two)  c = Equal(m, n)  e = Where(c, five, seven)": 7,
    "m = Sub(minus1, n)  c = Less(m, zero)  e = Where(c, five, seven)": 5,
    "m = Sub(zero, n)  c = Less(m, zero)  e = Where(c, five, seven)": None,
    "m = Sub(n, minus1)  c = Greater(m, zero)  e = Where(c, five, seven)": 5,
    "c = Greater(n, zero)  e = Where(c, five, seven)": None,
    "c = Greater(n, zero)  e = Where(c, five, five)": 5,
    "m = Add(n, two)  c = GreaterOrEqual(m, n)  e = Where(c, five, seven)": 5,
    "c = LessOrEqual(n, minus7)  e = Where(c, five, seven)": 7,
    "c = Greater(n, zero)  d = And(c, never)  e = Where(d, five, seven)": 7,
    "c = Greater(n, zero)  d = Or(c, never)  e = Where(d, five, seven)": None,
    "c = Greater(n, zero)  a = Not(never)  d = Or(c, a)  e = Where(d, five, seven)": 5,
    "c = Cast<to = 9>(five)  e = Where(c, two, seven)": 2,
    "c = Cast<to = 9>(zero)  e = Where(c, two, seven)": 7,
    "a = Cast<to = 7>(halves)  e = Identity(a)": 2,
    "b = Floor(halves)  a = Cast<to = 7>(b)  e = Identity(a)": 2,
    "b = Ceil(halves)  a = Cast<to = 7>(b)  e = Identity(a)": 3,
    "b = Neg(halves)  a = Cast<to = 7>(b)  e = Add(a, five)": 3,
    "b = Div(halves, halves)  a = Cast<to = 7>(b)  e = Identity(a)": 1,
    # 7 in float32, and less than 7 by the fraction that the float is
    "f = Cast<to = 1>(ten)  b = Mul(f, tenths)  a = Cast<to = 7>(b)  e = Identity(a)": None,
    # what an int32 does not hold is not calculated
    "b = Cast<to = 6>(large)  c = Mul(b, b)  a = Cast<to = 7>(c)  e = Min(a, five)": None,
    "a = Mul(large, large)  e = Min(a, five)": 5,
    # all elements of a list
    "e = ReduceProd<keepdims = 1>(pair)": 6,
    "e = ReduceSum<keepdims = 1>(pair)": 5,
    "e = ReduceMax<keepdims = 1>(pair)": 3,
    "e = ReduceMin<keepdims = 1>(pair)": 2,
    "e = ReduceSum<keepdims = 1, noop_with_empty_axes = 1>(five)": 5,
    "c = Clip(n, low, low)  e = Identity(c)": 4,
    "c = Clip(n, , low)  e = Identity(c)": "min(4, N)",
    "b = Size(pair)  a = Reshape(b, one1)  e = Identity(a)": 2,
    "b = Size(low)  a = Reshape(b, one1)  e = Identity(a)": 1,
    "a = Gather(pair, last)  e = Identity(a)": 3,
    "a = Gather(pair, first)  e = Identity(a)": 2,
    "e = Slice(pair, one1, two)": 3,
    "e = Slice(pair, last, zero, zero, minus1)": 3,
    "e = Pad(pair, cut)": 3,
    "e = Pad(pair, shifted)": 0,
    "e = Pad(pair, shifted, seven0)": 7,
    "a = Concat<axis = 0>(n, two)  e = Pad(a, ends)": "N",
    'e = Pad<mode = "edge">(pair, shifted)': None,
    "e = Shape<start = 1>(x)": "M",
    "e = Shape<start = -2, end = -1>(x)": "N",
    "a = Range(low, seven0, low)  e = Identity(a)": 4,
}
"""What a model calculates of a dimension N, and what is known of it."""


@pytest.mark.parametrize("text", CALCULATED)
def test_what_is_calculated_of_a_dimension(text: str) -> None:
    lists = {"zero": 0, "two": 2, "five": 5, "seven": 7, "minus7": -7, "large": 1 << 17, "ten": 10}
    lists |= {"first": -2, "last": -1, "minus1": -1, "one1": 1}
    held = [f"int64[1] {name} = {{{number}}}" for name, number in lists.items()]
    held += ["int64[2] cut = {-1, 0}", "int64[2] shifted = {1, -2}", "int64[2] ends = {0, -1}"]
    held += ["int64[2] pair = {2, 3}", "int64 low = {4}", "int64 seven0 = {7}"]
    held += ["float[1] halves = {2.5}", "float[1] tenths = {0.7}", "bool[1] never = {0}"]
    model_text = f"g (float[N,M] x) => (y) <{', '.join(held)}>"
    model_text += f" {{ n = Shape<end = 1>(x)  {text}  y = ConstantOfShape(e) }}"
    made = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["": 17]> {model_text}')
    assert shapes(made)["y"] == (CALCULATED[text],)


@pytest.mark.parametrize(
    ("dtype", "opset", "most"),
    [(np.int64, 18, 1 << 16), (np.float32, 18, 16), (np.float32, 1, 1 << 16)],
)
def test_constants_of_so_many_elements_are_calculated_with(
    dtype: Any, opset: int, most: int
) -> None:
    """Lengths may be floats at opset 1 alone."""
    for size, is_known in ((most, True), (most + 1, False)):
        held = of_constant(ir.tensor(np.ones(size, dtype)), opset)
        assert (held.values is not None) is is_known
        assert held.shape == (size,)


@pytest.mark.parametrize("opset", [9, 10])
def test_limits_that_are_attributes_are_not_calculated_with(opset: int) -> None:
    nodes = [
        node("Cast", "n", "f", to=FLOAT),
        node("Clip", "f", "c", max=3.0),
        node("Cast", "c", "l", to=onnx.TensorProto.INT64),
        node("ConstantOfShape", "l", "y"),
    ]
    made = model(graph(nodes, [], ["y"], [tensor("n", [5])]), opset)
    assert shapes(made)["y"] == (None,)


@pytest.mark.parametrize("opset", [11, 13])
def test_limits_that_are_inputs_are_calculated_with(opset: int) -> None:
    nodes = [
        node("Cast", "n", "f", to=FLOAT),
        node("Clip", "f low high", "c"),
        node("Cast", "c", "l", to=onnx.TensorProto.INT64),
        node("ConstantOfShape", "l", "y"),
    ]
    limits = [tensor("low", 2.0, np.float32), tensor("high", 4.0, np.float32)]
    made = model(graph(nodes, [], ["y"], [tensor("n", [5, 1, 3]), *limits]), opset)
    assert shapes(made)["y"] == (4, 2, 3)


def test_a_list_that_is_padded_far_and_cut_again_takes_no_memory() -> None:
    def padded(far: int) -> onnx.ModelProto:
        return onnx.parser.parse_model(
            f"""<ir_version: 8, opset_import: ["" : 17]> g (float[N,M] x) => (y)
            <int64[2] far = {{{far}, {-far - 1}}}>
            {{ s = Shape(x) e = Pad(s, far) y = ConstantOfShape(e) }}"""
        )

    shapes(padded(2))
    tracemalloc.start()
    try:
        assert shapes(padded(10_000_000))["y"] == (None,)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < 10 << 20


def test_a_table_of_lengths_is_turned_around() -> None:
    """Its elements are in its shape; of what calculates with a table nothing is known."""
    text = """<ir_version: 8, opset_import: ["" : 17]> g (float[A,B] x) => (turned, column, sums)
        <int64[2] pair = {-1, 2}, int64[2] both = {0, 1}, int64[2] ends = {2, 2},
        int64[1] all = {-1}> { s = Shape(x) twice = Concat<axis=0>(s, s) rows = Reshape(twice, pair)
        t = Transpose<perm=[1, 0]>(rows) listed = Reshape(t, all) turned = ConstantOfShape(listed)
        part = Slice(rows, both, ends, both) short = Reshape(part, all)
        column = ConstantOfShape(short) added = Add(rows, s) long = Reshape(added, all)
        sums = ConstantOfShape(long) }"""
    found = shapes(onnx.parser.parse_model(text))
    assert found["turned"] == ("A", "A", "B", "B")
    assert found["column"] == ("B", "B")
    assert found["sums"] == (None, None, None, None)
