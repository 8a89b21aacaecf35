"""Nodes of which OpenVINO's import makes something else, or nothing, and lengths of constants."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx.parser import parse_model
from onnx.reference import ReferenceEvaluator

import tensorsplit as ts
from tensorsplit import SplitError
from tensorsplit.model.lower import LoweredIr, lower_graph
from tests.model.build import onnx_model
from tests.model.lower.running import Runner, lowered_for, with_own

RANDOM = np.random.default_rng(29)
X = RANDOM.uniform(1, 2, (1, 2, 3)).astype(np.float32)
A, B = (RANDOM.integers(1, 9, shape).astype(np.uint8) for shape in (3, (2, 3, 4)))
SIGNAL = RANDOM.uniform(1, 2, (4, 5, 3, 1)).astype(np.float32)
SAID = (
    "NullNode",
    "of length 1 more",
    "lacks its last axis",
    "is ignored",
    "calculated from constants as",
    "are real",
    "from the back",
)


def is_said(model: onnx.ModelProto) -> list[str]:
    found = ts.check(model, target="openvino")
    return [each.severity for each in found if any(text in each.message for text in SAID)]


def made_of(opset: int, inputs: str, outputs: str, nodes: str, more: str = "") -> onnx.ModelProto:
    return parse_model(
        f'<ir_version: 8, opset_import: ["": {opset}]> g ({inputs}) => ({outputs})'
        f" <{more}> {{ {nodes} }}"
    )


def assert_right(lowered: onnx.ModelProto, feed: dict[str, Any], process: Runner) -> None:
    """Have the lowered model give in OpenVINO what our own engine gives."""
    wanted = list(ts.run(lowered, feed).values())
    (got,) = process.call(["openvino", lowered.SerializeToString(), [feed], len(wanted)])
    for expected, given in zip(wanted, got, strict=True):
        assert given.shape == expected.shape
        assert np.allclose(given, expected, rtol=1e-4, atol=1e-4)


LENGTHS = {
    "squeezed": "q = Squeeze(l)",
    "without an optional input": "q = Squeeze(l, )",
    "reshaped": "q = Reshape(l, two)",
    "summed": "q = ReduceSum<keepdims = 0>(l, none)",
    "and from a known shape": (
        "s = Shape(x) r = Reshape(s, back) m = ReduceMin<keepdims = 0>(r) n = Sub(m, m)"
        " k = Add(l, n) q = Squeeze(k)"
    ),
}


@pytest.mark.parametrize("length", ["3", "N"])
@pytest.mark.parametrize("name", LENGTHS)
def test_lengths_that_nodes_calculate_from_constants_are_written(
    name: str, length: str, process: Runner
) -> None:
    """OpenVINO has no memory for the parts where it knows the length of the axis."""
    model = made_of(
        17,
        f"float[1,2,{length}] x",
        "float[A,B,C] y, float[D,E,F] z",
        LENGTHS[name] + " y, z = Split<axis = 2>(x, q)",
        "int64[1,2] l = {1, 2}, int64[1] two = {2}, int64[1] none = {0}, int64[2] back = {-1, 1}",
    )
    assert is_said(model) == ["warning"] * (length == "3")
    lowered = lowered_for("openvino", model)
    assert not is_said(lowered)
    if length == "3":
        *_, split = lowered.graph.node
        (lengths,) = [each for each in lowered.graph.node if split.input[1] in each.output]
        assert onnx.numpy_helper.to_array(lengths.attribute[0].t).tolist() == [1, 2]
        assert lower_graph(onnx_model(model), "openvino").notes == []
    assert_right(lowered, {"x": X}, process)


PRODUCTS = {
    "a vector and a matrix": ("MatMulInteger(a, c)", "E", ["error"]),
    "two vectors": ("MatMulInteger(a, a)", "", ["error"]),
    "a vector and matrices": ("MatMulInteger(a, b)", "E,F", ["error"]),
    "by a list of one zero point": ("MatMulInteger(a, c, w)", "E", ["error"]),
    "by a scalar zero point": ("MatMulInteger(a, c, v)", "E", []),
    "matrices and a vector": ("MatMulInteger(t, a)", "E,F", []),
    "of the second zero point": ("MatMulInteger(t, c, , v)", "E,F,G", ["error"]),
    "of both": ("MatMulInteger(t, c, v, v)", "E,F,G", []),
    "a vector, of the second zero point": ("MatMulInteger(a, c, , v)", "E", ["error"] * 2),
    "a convolution, of the second zero point": ("ConvInteger(d, f, , v)", "E,F,G,H", ["error"]),
    "a convolution, of the first": ("ConvInteger(d, f, v)", "E,F,G,H", []),
}


@pytest.mark.parametrize("name", PRODUCTS)
def test_products_of_integers_have_the_shape_that_the_standard_says(
    name: str, process: Runner
) -> None:
    product, shape, said = PRODUCTS[name]
    model = made_of(
        17,
        "uint8[3] a, uint8[2,3,4] b",
        f"int32[{shape}] y" if shape else "int32 y",
        "t = Transpose<perm = [0, 2, 1]>(b) c0 = Slice(b, zero, one, zero) c = Squeeze(c0, zero)"
        f" d = Unsqueeze(b, zero) f = Slice(d, one, three, last) y = {product}",
        "uint8 v = {3}, uint8[1] w = {2}, int64[1] zero = {0}, int64[1] one = {1},"
        " int64[1] three = {3}, int64[1] last = {3}",
    )
    assert is_said(model) == said
    feed = {"a": A, "b": B}
    lowered = lowered_for("openvino", model)
    assert not is_said(lowered)
    assert (lowered == model) == (not said)
    (wanted,), (again,) = (ts.run(each, feed).values() for each in (model, lowered))
    assert (again.shape, again.tolist()) == (wanted.shape, wanted.tolist())
    assert_right(lowered, feed, process)


TRANSFORMS = {
    "half": (17, "DFT<axis = 1, onesided = 1>(x)", 1, 5, ["error"]),
    "half of more": (19, "DFT<axis = 1, onesided = 1>(x, six)", 1, 6, ["error"]),
    "half by an input": (20, "DFT<onesided = 1>(x, , one)", 1, 5, ["error"]),
    "half along the first axis": (20, "DFT<onesided = 1>(x, , none)", 0, 4, ["error", "warning"]),
    "along the first axis": (20, "DFT(x, six, none)", 0, 6, ["warning"]),
    "along the third axis": (20, "DFT(x)", 2, 3, ["warning"]),
    "half along the last axis": (17, "DFT<axis = -2, onesided = 1>(x)", 2, 3, ["error"]),
    "along the last axis": (17, "DFT<axis = -2>(x)", 2, 3, ["error"]),
    "of more, along the first from the back": (19, "DFT<axis = -4>(x, six)", 0, 6, ["error"]),
    "whole": (17, "DFT<axis = 1>(x)", 1, 5, []),
    "along the first, an attribute": (17, "DFT<axis = 0>(x)", 0, 4, []),
}


@pytest.mark.parametrize("shape", ["4,5,3,1", "A,B,C,1"])
@pytest.mark.parametrize("name", TRANSFORMS)
def test_a_transform_is_along_its_axis_and_has_the_shape_that_the_standard_says(
    name: str, shape: str, process: Runner
) -> None:
    opset, node, axis, length, said = TRANSFORMS[name]
    model = made_of(opset, f"float[{shape}] x", "float[E,F,G,H] y", f"y = {node}",
                    "int64 six = {6}, int64 none = {0}, int64 one = {1}")  # fmt: skip
    assert sorted(is_said(model)) == said
    lowered = lowered_for("openvino", model)
    assert not is_said(lowered)
    assert (lowered == model) == (not said)
    wanted = np.fft.fft(SIGNAL[..., 0], length, axis)
    if "half" in name:
        wanted = wanted.take(range(length // 2 + 1), axis)
    (got,) = ts.run(lowered, {"x": SIGNAL}).values()
    assert np.allclose(got, np.stack([wanted.real, wanted.imag], -1), atol=1e-4)
    assert_right(lowered, {"x": SIGNAL}, process)


@pytest.mark.parametrize(("axis", "length"), [(-2, 3), (0, 4), (1, 5)])
def test_a_transform_of_what_a_loop_carries_of_undeclared_shape_is_along_its_axis(
    axis: int, length: int
) -> None:
    """The rank is known from around the Loop, which OpenVINO does not see: lowering has an end."""
    model = made_of(
        20,
        "float[4,5,3,1] x",
        "float[E,F,G,H] y",
        """z, y = Loop(one, , x)
        <body = b (int64 i, bool c, float[] v) => (bool c2, float[] v2, w) { c2 = Identity(c)
        v2 = Identity(v) w = DFT(v, , k) }>""",
        f"int64 one = {{1}}, int64 k = {{{axis}}}",
    )
    model.graph.output[0].type.tensor_type.ClearField("shape")
    body = model.graph.node[0].attribute[0].g
    for each in (body.input[2], body.output[1]):
        each.type.tensor_type.ClearField("shape")
    lowered = ts.lower(model, target="openvino")
    wanted = np.fft.fft(SIGNAL[..., 0], length, axis + 1 if axis < 0 else axis)
    (got,) = ts.run(lowered, {"x": SIGNAL}).values()
    assert np.allclose(got, np.stack([wanted.real, wanted.imag], -1)[None], atol=1e-4)


@pytest.mark.parametrize("shape", ["4,1", ""])
def test_a_transform_without_an_axis_1_to_go_along_stays(shape: str) -> None:
    made = "y = DFT(x, , first)"
    model = made_of(20, f"float[{shape}] x", "float[] y", made, "int64 first = {0}")
    assert "warning" in is_said(model)
    assert ts.lower(model, target="openvino") == model


@pytest.mark.engine("openvino")
@pytest.mark.parametrize(("is_half", "said"), [(1, ["error"]), (0, [])])
def test_an_inverse_transform_of_one_half_lacks_an_axis(is_half: int, said: list[str]) -> None:
    node = f"y = DFT<axis = 1, inverse = 1, onesided = {is_half}>(x)"
    model = made_of(17, "float[2,4,2] x", "float[E,F,G] y", node)
    assert is_said(model) == said
    assert ts.lower(model, target="openvino") == model
    feeds = {"x": np.random.default_rng(4).random((2, 4, 2), np.float32)}
    (wanted,) = ts.run(model, feeds).values()
    (got,) = ts.run(model, feeds, engine="openvino").values()
    assert np.allclose(got.reshape(wanted.shape), wanted, atol=1e-6)
    assert (got.shape == wanted.shape) is (not said)


def test_a_transform_of_what_may_be_real_or_complex_is_warned_of() -> None:
    """A run of real numbers ends in OpenVINO, one of complex ones does not."""
    model = made_of(17, "float[A,B,C] x", "float[E,F,G] y", "y = DFT<axis = 1>(x)")
    assert is_said(model) == ["warning"]
    assert ts.lower(model, target="openvino") == model


TURNED = {
    "a split": ("a, b = Split<axis = 2>(x, l) n = Neg(b)", "[1, 4, 1]", True),
    "slices": ("a = Slice(x, z, h, t) b = Slice(x, h, e, t) n = Neg(b)", "[1, 4, 1]", True),
    "a product by -1": ("a, b = Split<axis = 2>(x, l) n = Mul(b, m)", "[1, 1, 1]", True),
    "what Identity nodes pass on": (
        "i = Identity(x) a, b = Split<axis = 2>(i, l) o = Neg(b) n = Identity(o)",
        "[1, 4, 1]",
        True,
    ),
    "whole factors": ("a, b = Split<axis = 2>(x, l) n = Neg(b)", "[1, 4, 8]", False),
    "factors of so many columns": ("a, b = Split<axis = 2>(x, l) n = Neg(b)", "[1, 4, C]", True),
    "parts of other lengths": ("a, b = Split<axis = 2>(x, k) n = Neg(b)", "[1, 4, 8]", True),
    "slices of other lengths": (
        "a = Slice(x, z, u, t) b = Slice(x, u, e, t) n = Neg(b)",
        "[1, 4, 8]",
        True,
    ),
    "halves in another order": ("b, a = Split<axis = 2>(x, l) n = Neg(b)", "[1, 4, 8]", True),
    "slices in another order": (
        "b = Slice(x, z, h, t) a = Slice(x, h, e, t) n = Neg(b)",
        "[1, 4, 8]",
        True,
    ),
    "one half twice": ("b, c_ = Split<axis = 2>(x, l) a = Identity(b) n = Neg(b)", "[1,4,8]", True),
    "along an axis from the back": (
        "a, b = Split<axis = -1>(x, k) n = Neg(b)",
        "[1, 4, 8]",
        False,
    ),
    "factors with fewer axes": ("a, b = Split<axis = 2>(x, k) n = Neg(b)", "[4, 8]", False),
    "halves that overlap": (
        "a = Slice(x, z, h, t) b = Slice(x, u, v, t) n = Neg(b)",
        "[1, 4, 8]",
        False,
    ),
    "parts in order": ("n, b = Split<axis = 2>(x, l) a = Neg(b)", "[1, 4, 1]", False),
    "parts of something else": ("d = Neg(x) a, b = Split<axis=2>(d, l) n = Neg(b)", "[1]", False),
}


@pytest.mark.parametrize("name", TURNED)
@pytest.mark.parametrize("order", ["p, q", "q, p"])
def test_data_that_is_turned_otherwise_than_a_rotary_embedding_does_is_right(
    name: str, order: str, rng: np.random.Generator, process: Runner
) -> None:
    """OpenVINO makes a rotary embedding of it, of halves, and reads beyond the columns."""
    nodes, shape, is_wrong = TURNED[name]
    made = made_of(
        17,
        f"float[2, 4, 8] x, float{shape} c, float{shape} s",
        "float[2, 4, 8] y",
        f"{nodes} r = Concat<axis = -1>(n, a) p = Mul(x, c) q = Mul(s, r) y = Add({order})",
        "int64[2] l = {4, 4}, int64[2] k = {2, 6}, float m = {-1}, int64[1] z = {0},"
        " int64[1] h = {4}, int64[1] u = {2}, int64[1] v = {6}, int64[1] e = {8},"
        " int64[1] t = {2}",
    )
    found = [each for each in ts.check(made, "openvino") if "of one column" in each.message]
    assert len(found) == is_wrong
    lowered = lowered_for("openvino", made)
    factors = tuple(map(int, shape[1:-1].replace("C", "1").split(",")))
    shapes = {"x": (2, 4, 8), **dict.fromkeys("cs", factors)}
    feeds = {key: rng.uniform(1, 2, held).astype(np.float32) for key, held in shapes.items()}
    ((got,),) = process.call(["openvino", lowered.SerializeToString(), [feeds], 2])
    np.testing.assert_allclose(got, ts.run(made, feeds)["y"], rtol=1e-5, atol=1e-6)


READ_AGAIN = {
    "an input": ("", "", "x", True),
    "what is calculated before": ("e = Exp(x)", "", "e", True),
    "a part of that": ("e = Concat<axis=0>(x, x)", "v, w = Split<axis=0>(e, twos)", "v", True),
    "a view of that": ("e = Unsqueeze(x, zero)", "v = Squeeze(e, zero)", "v", True),
    "what each round calculates": ("", "v = Exp(x)", "v", False),
    "what the round before gave": ("", "v = Neg(s)", "v", False),
}


@pytest.mark.parametrize("name", READ_AGAIN)
def test_later_rounds_read_data_that_a_round_turns(
    name: str, rng: np.random.Generator, process: Runner
) -> None:
    """OpenVINO makes a rotary embedding of it, and writes that over the data."""
    before, inside, data, is_wrong = READ_AGAIN[name]
    made = made_of(
        17,
        "float[2, 4, 8] x, float[1, 4, 8] c, float[1, 4, 8] f",
        "float[2, 4, 8] y, float[3, 2, 4, 8] r",
        f"""{before} y, r = Loop(three, , x) <body = b (int64 i, bool d, float[2, 4, 8] s)
        => (bool g, float[2, 4, 8] t, float[2, 4, 8] row) {{ g = Identity(d) t = Neg(s) {inside}
        a, b = Split<axis = 2>({data}, l) n = Neg(b) q = Concat<axis = -1>(n, a)
        p = Mul({data}, c) o = Mul(q, f) row = Add(p, o) }}>""",
        "int64 three = {3}, int64[2] l = {4, 4}, int64[2] twos = {2, 2}, int64[1] zero = {0}",
    )
    found = [each for each in ts.check(made, "openvino") if "of one column" in each.message]
    assert len(found) == is_wrong
    shapes = {"x": (2, 4, 8), "c": (1, 4, 8), "f": (1, 4, 8)}
    feeds = {key: rng.uniform(1, 2, held).astype(np.float32) for key, held in shapes.items()}
    x, c, f = feeds.values()
    values = {"what the round before gave": [-x, x, -x]}
    turned = values.get(name) or [np.exp(x) if "calculate" in name else x] * 3
    wanted = [v * c + np.concatenate([-v[..., 4:], v[..., :4]], -1) * f for v in turned]
    lowered = lowered_for("openvino", made)
    ((last, rows),) = process.call(["openvino", lowered.SerializeToString(), [feeds], 2])
    np.testing.assert_array_equal(last, -x)
    np.testing.assert_allclose(rows, wanted, rtol=1e-5, atol=1e-6)


CHOSEN = {
    "the first": ("o = Where(c, c, a)", "c or a", True),
    "the second": ("o = Where(c, a, c)", "c and a", True),
    "both": ("o = Where(c, c, c)", "c", True),
    "by an Identity": ("d = Identity(c) o = Where(d, c, a)", "c or a", True),
    "by a Cast": ("d = Cast<to = 9>(c) o = Where(c, d, a)", "c or a", True),
    "what is made twice": ("d = Not(c) e = Not(c) o = Where(d, a, e)", "a and not c", True),
    "its opposite": ("d = Not(c) o = Where(c, d, a)", "a and not c", False),
    "the number that it becomes": (
        "i = Cast<to = 7>(c) d = Cast<to = 7>(a) j = Where(c, i, d) o = Cast<to = 9>(j)",
        "c or a",
        False,
    ),
    "what a number is": (
        "i = Cast<to = 6>(c) d = Cast<to = 9>(i) o = Where(c, a, d)",
        "c and a",
        False,
    ),
}


@pytest.mark.parametrize("shape", ["2,3", "N,M"])
@pytest.mark.parametrize("name", CHOSEN)
def test_a_choice_does_not_give_its_condition(name: str, shape: str, process: Runner) -> None:
    """OpenVINO 2026.4.1 refuses the model, or a run: `unsupported dst_prc: boolean`."""
    nodes, _, is_refused = CHOSEN[name]
    model = made_of(17, f"bool[{shape}] c, bool[{shape}] a", f"bool[{shape}] o", nodes)
    found = [each for each in ts.check(model, "openvino") if "the condition" in each.message]
    assert len(found) == is_refused
    feed = {each: RANDOM.integers(0, 2, (2, 3)).astype(bool) for each in "ca"}
    c, a = feed["c"], feed["a"]
    wanted = {"c or a": c | a, "c and a": c & a, "c": c, "a and not c": a & ~c}[CHOSEN[name][1]]
    lowered = lowered_for("openvino", model)
    assert (lowered != model) == is_refused
    ((got,),) = process.call(["openvino", lowered.SerializeToString(), [feed], 1])
    np.testing.assert_array_equal(got, wanted, strict=True)


@pytest.mark.parametrize(
    ("nodes", "wanted"),
    [
        ("o = Where(e, g, a)", lambda d, e, a: e | a),
        ("o = Where(e, f, a)", lambda d, e, a: np.where(e, d, a)),
        ("o = Where(d, e, a)", np.where),
    ],
)
def test_another_part_than_its_condition_is_chosen(
    nodes: str, wanted: Any, process: Runner
) -> None:
    """Of two nodes that do the same, OpenVINO makes one, but its results are not one."""
    nodes = f"d, e = Split(c) f, g = Split(c) {nodes}"
    model = made_of(17, "bool[2,3] c, bool[1,3] a", "bool[1,3] o", nodes)
    c, a = (RANDOM.integers(0, 2, (rows, 3)).astype(bool) for rows in (2, 1))
    lowered = lowered_for("openvino", model).SerializeToString()
    ((got,),) = process.call(["openvino", lowered, [{"c": c, "a": a}], 1])
    np.testing.assert_array_equal(got, wanted(c[:1], c[1:], a), strict=True)


LOST = {
    "a Squeeze": ("0,1,N", "z = Squeeze(x, one)", (0, 3)),
    "an Unsqueeze": ("N,0", "z = Unsqueeze(x, one)", (3, 1, 0)),
    "a Transpose": ("0,1,N", "z = Transpose<perm = [1, 0, 2]>(x)", (1, 0, 3)),
    "an Einsum": ("0,1,N", 'z = Einsum<equation = "abc->bac">(x)', (1, 0, 3)),
    "part of a split": (
        "N,0",
        "p, q = Split<axis = 0>(x, lengths) z = Unsqueeze(q, one)",
        (2, 1, 0),
    ),
}


@pytest.mark.parametrize("name", LOST)
def test_data_without_elements_keeps_its_dimensions(name: str, process: Runner) -> None:
    """OpenVINO 2026.4.1 calculates an unknown one from the number of elements, and gives 0."""
    shape, nodes, wanted = LOST[name]
    constants = "int64[1] one = {1}, int64[2] lengths = {1, -1}"
    nodes, last = nodes.replace("lengths)", "l)"), ",".join("?" * len(wanted))
    nodes = f"n = Shape<end = 1>(x) m = Sub(n, one) l = Concat<axis = 0>(one, m) {nodes}"
    model = made_of(17, f"float[{shape}] x", f"float[{last}] y", f"{nodes} y = Relu(z)", constants)
    found = ts.check(model, "openvino")
    assert any("from the number of elements" in each.message for each in found)
    lowered = lowered_for("openvino", model)
    x = np.zeros([3 if dim == "N" else int(dim) for dim in shape.split(",")], np.float32)
    ((got,),) = process.call(["openvino", lowered.SerializeToString(), [{"x": x}], 1])
    np.testing.assert_array_equal(got, np.zeros(wanted, np.float32), strict=True)


@pytest.mark.engine("openvino")
@pytest.mark.parametrize("name", ["Squeeze", "Transpose", "Unsqueeze"])
def test_a_layer_of_data_without_elements_keeps_its_dimensions(name: str, tmp_path: Path) -> None:
    openvino = pytest.importorskip("openvino")
    from openvino import opset13

    shapes = {"Squeeze": [0, 1, -1], "Transpose": [0, 1, -1], "Unsqueeze": [-1, 0]}
    operand = np.array([1, 0, 2] if name == "Transpose" else [1])
    data = opset13.parameter(shapes[name], np.float32, name="x")
    changed = getattr(opset13, name.lower())(data, operand)
    model = openvino.Model([opset13.relu(changed)], [data])
    openvino.save_model(model, tmp_path / "model.xml", compress_to_fp16=False)
    x = np.zeros([3 if dim < 0 else dim for dim in shapes[name]], np.float32)
    wanted = {
        "Squeeze": lambda: np.squeeze(x, 1),
        "Transpose": lambda: np.transpose(x, operand),
        "Unsqueeze": lambda: np.expand_dims(x, 1),
    }[name]()
    found = ts.check(tmp_path / "model.xml", target="openvino")
    assert any("from the number of elements" in each.message for each in found)
    lowered = ts.lower(tmp_path / "model.xml", target="openvino")
    assert isinstance(lowered, LoweredIr)
    lowered.save(tmp_path / "lowered.xml")
    assert not ts.check(tmp_path / "lowered.xml", target="openvino")
    (got,) = ts.run(tmp_path / "lowered.xml", {"x": x}, engine="openvino").values()
    np.testing.assert_array_equal(got, wanted, strict=True)
    assert precisions(tmp_path / "lowered.xml") == precisions(written_again(tmp_path))


def written_again(folder: Path) -> Path:
    """Have OpenVINO write the lowered IR, with the element types that it finds."""
    openvino = pytest.importorskip("openvino")
    model = openvino.Core().read_model(folder / "lowered.xml")
    openvino.save_model(model, folder / "again.xml", compress_to_fp16=False)
    return folder / "again.xml"


def precisions(path: Path) -> dict[str, list[str]]:
    """Return which element types the layers of an IR declare for what they give."""
    layers = ElementTree.parse(path).iter("layer")
    return {
        layer.attrib["name"]: [port.attrib["precision"] for port in layer.iterfind("output/port")]
        for layer in layers
    }


NO_SUMS = {
    "MatMul": ("6,N", "0,4", "y = MatMul(x, w)"),
    "of more axes": ("2,6,N", "0,4", "y = MatMul(x, w)"),
    "of two tables": ("2,6,N", "2,0,4", "y = MatMul(x, w)"),
    "of a vector": ("N", "0,4", "y = MatMul(x, w)"),
    "Gemm": ("6,N", "0,4", "y = Gemm<alpha = 0.5>(x, w)"),
    "turned": ("N,6", "4,0", "y = Gemm<transA = 1, transB = 1>(x, w)"),
}


@with_own("openvino")
@pytest.mark.parametrize("kind", ["float", "float16", "double", "int32", "int64"])
@pytest.mark.parametrize("opset", [11, 13, 18])
@pytest.mark.parametrize("name", NO_SUMS)
def test_a_product_by_a_constant_without_rows_is_of_zeros(
    name: str, kind: str, opset: int, engine: Any
) -> None:
    """With a slice of nothing in its place, OpenVINO gives memory that was never written."""
    data, factor, nodes = NO_SUMS[name]
    rank = data.count(",") + 1
    made = f"{kind}[{','.join('ABC'[:rank])}] y"
    model = made_of(opset, f"{kind}[{data}] x", made, nodes, f"{kind}[{factor}] w = {{}}")
    lowered = lowered_for("openvino", model)
    for count in (0, 3):
        shape = tuple(count if each == "N" else int(each) for each in data.split(","))
        feed = {"x": np.ones(shape, "float32" if kind == "float" else kind)}
        if count and engine == "openvino":
            continue  # which takes any number of columns to multiply by a constant
        if count:
            with pytest.raises(SplitError):
                ts.run(lowered, feed, engine=engine)
            continue
        y = ts.run(lowered, feed, engine=engine)["y"]
        assert y.shape == ((2, 6, 4)[-rank:] if rank > 1 else (4,))
        assert not y.any()


@pytest.mark.parametrize("target", ["openvino", "portable"])
def test_data_of_an_unknown_rank_is_multiplied_by_a_constant_without_rows(target: Any) -> None:
    nodes = "r = Reshape<allowzero = 1>(x, s) p = MatMul(r, w) n = Shape(p) y = Reshape(p, flat)"
    constants = "float[0,4] w = {}, int64[1] flat = {-1}"
    model = made_of(17, "float[N] x, int64[R] s", "int64[Q] n, float[A] y", nodes, constants)
    lowered = lowered_for(target, model)
    for shape in ((0,), (2, 0), (3, 2, 0)):
        found = ts.run(lowered, {"x": np.ones(0, np.float32), "s": np.array(shape)})
        assert found["n"].tolist() == [*shape[:-1], 4]
        assert found["y"].tolist() == [0] * int(np.prod(found["n"]))
    with pytest.raises(SplitError):
        ts.run(lowered, {"x": np.ones(6, np.float32), "s": np.array([2, 3])})


@pytest.mark.engine("openvino")
@pytest.mark.parametrize(
    "nodes",
    [
        """y = Scan<num_scan_inputs = 1, body = b (float[4,?] v) => (float[K,L] r)
        { r = Slice(v, end, end) }>(x)""",
        """y = Loop(two, on) <body = b (int64 i, bool c) => (bool d, float[K,L] r)
        { d = Identity(c) e = Gather(x, i) r = Slice(e, end, end) }>""",
        """a = Gather(x, zero) e = Slice(a, end, end) s = SequenceConstruct(e, e)
        y = ConcatFromSequence<axis = 0, new_axis = 1>(s)""",
    ],
)
def test_rows_without_elements_that_lose_a_dimension_are_warned_of(nodes: str) -> None:
    constants = "int64[1] end = {4}, int64 two = {2}, bool on = {1}, int64 zero = {0}"
    model = made_of(17, "float[2,4,?] x", "float[A,B,C] y", nodes, constants)
    feed = {"x": np.ones((2, 4, 3), np.float32)}
    assert ts.run(model, feed)["y"].shape == (2, 0, 3)
    assert ts.run(model, feed, engine="openvino")["y"].shape == (2, 0, 0)
    found = ts.check(model, target="openvino")
    assert any("of rows or parts without elements" in each.message for each in found)


GROUPS = {
    "scaled": "a = Neg(s) y = Mul(g, a)",
    "shifted by a part": "b, c = Split<axis = 1, num_outputs = 2>(r) a = Add(b, k) y = Add(g, a)",
    "scaled by 1 first": "h = Mul(g, one) a = Neg(s) y = Mul(h, a)",
    "added to what it reads": "a = Relu(x) y = Add(a, g)",
    "read twice": "a = Neg(s) z = Abs(g) h = Mul(g, a) y = Add(h, z)",
}


@with_own("openvino")
@pytest.mark.parametrize("name", GROUPS)
def test_a_group_normalization_that_is_joined_with_others_does_not_end_the_process(
    name: str, engine: Any
) -> None:
    model = made_of(
        21,
        "float[2,4,4,4] x, float[2,4,1,1] s, float[2,8,1,1] r",
        "float[A,B,C,D] y",
        f"g = GroupNormalization<num_groups = 2>(x, w, w) {GROUPS[name]}",
        "float[4] w = {1, 2, 3, 4}, float k = {2}, float one = {1}",
    )
    feed = {
        name: RANDOM.uniform(-2, 2, shape).astype(np.float32)
        for name, shape in (("x", (2, 4, 4, 4)), ("s", (2, 4, 1, 1)), ("r", (2, 8, 1, 1)))
    }
    right = ts.run(model, feed)["y"]
    found = [each.message for each in ts.check(model, target="openvino")]
    assert any("where the model is loaded: the nodes become one" in each for each in found)
    if engine == "openvino":
        with pytest.raises(SplitError):
            ts.run(model, feed, engine="openvino")
    lowered = lowered_for("openvino", model)
    assert np.allclose(ts.run(lowered, feed, engine=engine)["y"], right, rtol=1e-4, atol=1e-4)


@pytest.mark.engine("openvino")
def test_a_layer_of_groups_that_is_joined_with_others_is_lowered(tmp_path: Path) -> None:
    model = made_of(
        21,
        "float[2,4,4,4] x, float[2,4,1,1] s",
        "float[2,4,4,4] y",
        "g = GroupNormalization<num_groups = 2>(x, w, w) a = Neg(s) y = Mul(g, a)",
        "float[4] w = {1, 2, 3, 4}",
    )
    path = tmp_path / "model.onnx"
    onnx.save(model, path)
    openvino = pytest.importorskip("openvino")
    openvino.save_model(openvino.convert_model(path), tmp_path / "model.xml", False)
    feed = {
        name: RANDOM.uniform(-2, 2, shape).astype(np.float32)
        for name, shape in (("x", (2, 4, 4, 4)), ("s", (2, 4, 1, 1)))
    }
    lowered = ts.lower(tmp_path / "model.xml", target="openvino")
    assert isinstance(lowered, LoweredIr)
    lowered.save(tmp_path / "lowered.xml")
    assert not ts.check(tmp_path / "lowered.xml", target="openvino")
    got = ts.run(tmp_path / "lowered.xml", feed, engine="openvino")["y"]
    assert np.allclose(got, ts.run(model, feed)["y"], rtol=1e-4, atol=1e-4)


TAKEN = "k = Gather(x, second) v = Gather(x, third) q = Gather(x, first)"
TURNED_QUERIES = TAKEN.replace("q =", "p =") + " q = Transpose<perm = [0, 2, 1, 3]>(p)"
SCALED_QUERIES = TURNED_QUERIES.replace("q =", "r =") + " q = Mul(r, h)"
ATTENTION = "t = Transpose<perm = [0, 1, 3, 2]>(k) a = MatMul(q, t) w = Softmax<axis = 3>(a) "
TURNED_RESULT = "y = Transpose<perm = [0, 2, 1, 3]>(z)"
ATTENTIONS = {
    "of a part": (
        (
            "p, o, c = Split<axis = 0, num_outputs = 3>(x) q = Squeeze(p, one) k = Squeeze(o, one)"
            f" v = Squeeze(c, one) {ATTENTION} z = MatMul(w, v) {TURNED_RESULT}"
        ),
        True,
    ),
    "that is scaled": (
        (
            f"{TAKEN} t = Transpose<perm = [0, 1, 3, 2]>(k) b = MatMul(q, t) a = Mul(b, h)"
            f" w = Softmax<axis = -1>(a) z = MatMul(w, v) {TURNED_RESULT}"
        ),
        True,
    ),
    "of queries that are transposed": (
        f"{TURNED_QUERIES} {ATTENTION} z = MatMul(w, v) y = Reshape(z, s)",
        True,
    ),
    "that is one node": (
        f"{TAKEN} z = Attention(q, k, v) {TURNED_RESULT}",
        True,
    ),
    "of queries that are transposed and scaled": (
        f"{SCALED_QUERIES} {ATTENTION} z = MatMul(w, v) y = Abs(z)",
        True,
    ),
    "that is one node, of queries that are transposed": (
        f"{TURNED_QUERIES} z = Attention(q, k, v) y = Abs(z)",
        True,
    ),
    "of which both are transposed and scaled": (
        f"{SCALED_QUERIES} {ATTENTION} z = MatMul(w, v) {TURNED_RESULT}",
        False,
    ),
    "of which both are transposed": (
        f"{TURNED_QUERIES} {ATTENTION} z = MatMul(w, v) {TURNED_RESULT}",
        False,
    ),
    "that is not transposed": (f"{TAKEN} {ATTENTION} z = MatMul(w, v) y = Neg(z)", False),
}
"""Attention of as many heads as queries, which are no input of the model."""


def attention_of(nodes: str, heads: int) -> onnx.ModelProto:
    return made_of(
        23,
        f"float[3,2,{heads},3,4] x",
        "float[A,B,C,D] y",
        nodes,
        "int64[1] one = {0}, int64 first = {0}, int64 second = {1}, int64 third = {2},"
        f" float h = {{0.5}}, int64[4] s = {{2, {heads}, 3, 4}}",
    )


def attention_by_numpy(name: str, x: Any) -> Any:
    queries, keys, values = x
    if "queries" in name or "both" in name:
        queries = queries.swapaxes(1, 2)
    scale = 0.5 if "scaled" in name or "node" in name else 1  # 1 / sqrt(4)
    powers = np.exp(scale * queries @ keys.swapaxes(2, 3))
    made = powers / powers.sum(-1, keepdims=True) @ values
    if "not transposed" in name:
        return -made
    if "y = Abs" in ATTENTIONS[name][0]:
        made = abs(made)
    return made if "queries" in name else made.swapaxes(1, 2)


@pytest.mark.parametrize("name", ATTENTIONS)
@pytest.mark.parametrize("heads", [3, 2])
def test_attention_of_as_many_heads_as_queries_is_right(
    name: str, heads: int, process: Runner
) -> None:
    """OpenVINO writes the result over the queries, before it has read all of them."""
    nodes, is_wrong = ATTENTIONS[name]
    if heads == 2 and ("queries" in name or "both" in name):
        pytest.skip("there have to be as many")
    model = attention_of(nodes, heads)
    x = RANDOM.uniform(-2, 2, (3, 2, heads, 3, 4)).astype(np.float32)
    found = [each for each in ts.check(model, "openvino") if "over the queries" in each.message]
    assert [each.severity for each in found] == ["warning"] * (is_wrong and heads == 3)
    lowered = lowered_for("openvino", model)
    ((got,),) = process.call(["openvino", lowered.SerializeToString(), [{"x": x}], 2])
    np.testing.assert_allclose(got, attention_by_numpy(name, x), rtol=1e-4, atol=1e-5)


@pytest.mark.engine("openvino")
@pytest.mark.parametrize(
    "name", ["of a part", "that is one node", "of queries that are transposed and scaled"]
)
def test_a_layer_of_attention_of_as_many_heads_as_queries_is_lowered(
    name: str, tmp_path: Path
) -> None:
    openvino = pytest.importorskip("openvino")
    onnx.save(attention_of(ATTENTIONS[name][0], 3), tmp_path / "model.onnx")
    made = openvino.convert_model(tmp_path / "model.onnx")
    openvino.save_model(made, tmp_path / "model.xml", compress_to_fp16=False)
    x = RANDOM.uniform(-2, 2, (3, 2, 3, 3, 4)).astype(np.float32)
    assert "over the queries" in str(ts.check(tmp_path / "model.xml", target="openvino"))
    lowered = ts.lower(tmp_path / "model.xml", target="openvino")
    assert isinstance(lowered, LoweredIr)
    lowered.save(tmp_path / "lowered.xml")
    assert not ts.check(tmp_path / "lowered.xml", target="openvino")
    got = ts.run(tmp_path / "lowered.xml", {"x": x}, engine="openvino")["y"]
    np.testing.assert_allclose(got, attention_by_numpy(name, x), rtol=1e-4, atol=1e-5)


UNMOVED = {
    "a part": ("p, q = Split<axis = 0>(x)", "ab->ab"),
    "a part of its own length": ("q, p = Split<axis = 0>(x, l)", "ba->ba"),
    "a part passed on": ("q, r = Split<axis = 0>(x) p = Reshape(q, two)", "...->..."),
    "an element of a sequence": ("q = SplitToSequence(x, two) p = SequenceAt(q, one)", "ab"),
    "the largest": ("p, q = TopK(x, one)", "a...->a..."),
    "what differs": ("p, q = Unique<axis = 1>(x)", "ab->ab"),
}


@with_own("openvino")
@pytest.mark.parametrize("name", UNMOVED)
def test_an_einsum_that_gives_one_of_several_results_is_an_identity(name: str, engine: Any) -> None:
    nodes, equation = UNMOVED[name]
    model = made_of(
        13,
        "float[4,3] x",
        "float[N,M] y",
        f'{nodes} e = Einsum<equation = "{equation}">(p) y = Neg(e)',
        "int64[2] l = {1, 3}, int64[2] two = {2, 3}, int64[1] one = {1}",
    )
    if "SequenceAt" in nodes:
        model.graph.initializer[1].CopyFrom(onnx.numpy_helper.from_array(np.array([2, 2]), "two"))
        model.graph.initializer[2].CopyFrom(onnx.numpy_helper.from_array(np.array(1), "one"))
    feed = {"x": RANDOM.uniform(1, 2, (4, 3)).astype(np.float32)}
    right = ts.run(model, feed)["y"]
    found = [each for each in ts.check(model, target="openvino") if "Einsum" in each.message]
    assert [each.severity for each in found] == ["warning"]
    if engine == "openvino":
        with pytest.raises(SplitError):
            ts.run(model, feed, engine="openvino")
    lowered = lowered_for("openvino", model)
    assert "Einsum" not in {node.op_type for node in lowered.graph.node}
    np.testing.assert_array_equal(ts.run(lowered, feed, engine=engine)["y"], right)


@pytest.mark.parametrize("equation", ["ab->ba", "ba", "aa->a", "ab->a", "ab,->ab", "a...->...a"])
def test_an_einsum_that_changes_something_stays(equation: str) -> None:
    operands = "p, one" if "," in equation else "p"
    model = made_of(
        13,
        "float[4,3] x",
        "float[] y",
        f'p, q = Split<axis = 0>(x) e = Einsum<equation = "{equation}">({operands}) y = Neg(e)',
        "float one = {1}",
    )
    assert "Einsum" in {node.op_type for node in ts.lower(model, target="openvino").graph.node}


@pytest.mark.engine("openvino")
def test_a_layer_of_an_einsum_that_gives_a_part_is_left_out(tmp_path: Path) -> None:
    openvino = pytest.importorskip("openvino")
    from openvino import opset13

    data = opset13.parameter([4, 3], np.float32, name="x")
    part = opset13.split(data, 0, 2).output(1)
    given = opset13.negative(opset13.einsum([part], "ab->ab"))
    openvino.save_model(openvino.Model([given], [data]), tmp_path / "model.xml", False)
    x = RANDOM.uniform(1, 2, (4, 3)).astype(np.float32)
    found = ts.check(tmp_path / "model.xml", target="openvino")
    assert any("Einsum" in each.message for each in found)
    with pytest.raises(SplitError):
        ts.run(tmp_path / "model.xml", {"x": x}, engine="openvino")
    lowered = ts.lower(tmp_path / "model.xml", target="openvino")
    assert isinstance(lowered, LoweredIr)
    lowered.save(tmp_path / "lowered.xml")
    (got,) = ts.run(tmp_path / "lowered.xml", {"x": x}, engine="openvino").values()
    np.testing.assert_array_equal(got, -x[2:])


SCALES = {  # shapes of the data, the scales and the zero points; whether OpenVINO loads the model
    "open scales": ("4,3", "M", "3", False),
    "open zero points": ("N,3", "3", "M", False),
    "both": ("4,3", "K", "M", False),
    "an open axis": ("4,M", "M", "3", True),
    "all known": ("4,3", "3", "3", True),
}


@with_own("openvino")
@pytest.mark.parametrize("opset", [13, 21])
@pytest.mark.parametrize("name", SCALES)
def test_the_number_of_scales_is_shown_where_that_of_the_channels_is(
    name: str, opset: int, engine: Any
) -> None:
    data, scales, zeros, is_loaded = SCALES[name]
    model = made_of(
        opset,
        f"float[{data}] x, float[{scales}] s, uint8[{zeros}] z",
        "uint8[A,B] y",
        "p = Neg(x) y = QuantizeLinear(p, s, z)",
    )
    x = -RANDOM.uniform(1, 2, (4, 3)).astype(np.float32)
    scale, zero = np.array([0.5, 0.25, 0.125], np.float32), np.array([1, 2, 3], np.uint8)
    found = [each for each in ts.check(model, target="openvino") if "elements ?" in each.message]
    assert [each.severity for each in found] == ["error"] * (not is_loaded)
    if engine == "openvino" and not is_loaded:
        with pytest.raises(SplitError):
            ts.run(model, {"x": x, "s": scale, "z": zero}, engine="openvino")
    lowered = lowered_for("openvino", model)
    assert ("Reshape" in {node.op_type for node in lowered.graph.node}) != is_loaded
    got = ts.run(lowered, {"x": x, "s": scale, "z": zero}, engine=engine)["y"]
    np.testing.assert_array_equal(got, np.rint(-x / scale).astype(np.uint8) + zero)


@with_own("openvino")
@pytest.mark.parametrize("axis", [0, 1])
def test_scales_of_no_channels_are_those_of_the_last_axis(axis: int, engine: Any) -> None:
    """A Reshape can't show that there are none: 0 in its shape says that a dimension stays."""
    made = f"y = QuantizeLinear<axis = {axis}>(x, s, z)"
    none = "float[0] s = {}, int8[0] z = {}"
    text = f"g (float[A,B,C] x) => (int8[D,E,F] y) <{none}> {{ {made} }}"
    model = parse_model(f'<ir_version: 9, opset_import: ["": 20]> {text}')
    lowered = lowered_for("openvino", model)
    x = np.ones((0, 0, 2), np.float32)
    assert ts.run(lowered, {"x": x}, engine=engine)["y"].shape == x.shape


@pytest.mark.engine("openvino")
@pytest.mark.parametrize(
    ("rank", "said"), [("1,2,3,3", []), ("1,2,3,3,3", ["error"]), ("1,2,3", ["error"])]
)
def test_openvino_samples_planes_alone(rank: str, said: list[str]) -> None:
    shape = tuple(map(int, rank.split(",")))
    grid = (1, *[2] * (len(shape) - 2), len(shape) - 2)
    model = made_of(
        20,
        f"float[{rank}] x, float[{','.join(map(str, grid))}] g",
        "float[] y",
        "z = GridSample(x, g) y = Neg(z)",
    )
    model.graph.output[0].ClearField("type")
    found = ts.check(model, target="openvino")
    assert [each.severity for each in found if "4-dimensional" in each.message] == said
    feed = {"x": RANDOM.random(shape), "g": RANDOM.uniform(-1, 1, grid)}
    feed = {name: held.astype(np.float32) for name, held in feed.items()}
    if said:
        with pytest.raises(SplitError):
            ts.run(model, feed, engine="openvino")
    else:
        got = ts.run(model, feed, engine="openvino")["y"]
        assert np.allclose(got, ts.run(model, feed)["y"], rtol=1e-4, atol=1e-4)


CHANNELS = {  # shapes of the data and the scales, the axis; whether OpenVINO takes that axis
    "a number of scales": ("A,B,C", "3", 1, False),
    "no number": ("A,B,C", "M", 0, False),
    "the last axis": ("A,B,C", "M", -1, True),
    "a known axis": ("A,3,C", "3", -2, True),
    "another known axis": ("3,B,3", "M", 1, False),
    "one scale": ("A,B,C", "", 1, True),
}


@with_own("openvino")
@pytest.mark.parametrize("opset", [13, 23])
@pytest.mark.parametrize("name", CHANNELS)
def test_scales_are_along_an_axis_whose_dimension_is_not_known(
    name: str, opset: int, engine: Any
) -> None:
    """OpenVINO 2026.4.1 takes them for those of the last axis."""
    data, count, axis, is_right = CHANNELS[name]
    scales = f"float[{count}] s, uint8[{count}] z" if count else "float s, uint8 z"
    model = made_of(
        opset,
        f"float[{data}] x, {scales}",
        "uint8[P,Q,R] y",
        f"n = Neg(x) y = QuantizeLinear<axis = {axis}>(n, s, z)",
    )
    x = RANDOM.uniform(1, 9, (3, 3, 3)).astype(np.float32)
    scale, zero = np.array([0.5, 0.25, 0.125], np.float32), np.array([1, 2, 3], np.uint8)
    scale, zero = (scale, zero) if count else (scale[0], zero[0])
    along = [-1 if place == axis % 3 else 1 for place in range(3)] if count else ()
    right = np.rint(x / scale.reshape(along)).astype(np.uint8) + zero.reshape(along)
    feed = {"x": -x, "s": np.asarray(scale), "z": np.asarray(zero)}
    found = [each for each in ts.check(model, target="openvino") if "last axis" in each.message]
    assert [each.severity for each in found] == ["warning"] * (not is_right)
    if engine == "openvino":
        got = ts.run(model, feed, engine="openvino")["y"]
        assert np.array_equal(got, right) == is_right
    lowered = lowered_for("openvino", model)
    np.testing.assert_array_equal(ts.run(lowered, feed, engine=engine)["y"], right)
    assert not [each for each in ts.check(lowered, "openvino") if "last axis" in each.message]


OF_FACTORS = {  # shapes of the scales of rows and columns; what each engine says
    "of rows": ("[2]", "", "error", "error"),
    "of columns": ("", "[3]", "", "error"),
    "of rows and columns": ("[2]", "[3]", "error", "error"),
    "of each row, in a column": ("[2,1]", "", "error", "error"),
    "one of each, in a list": ("[1]", "[1]", "", ""),
    "one of each": ("", "", "", ""),
    "of a number that is not known": ("[N]", "[M]", "", "warning"),
}


@pytest.mark.parametrize(
    "target",
    [pytest.param(each, marks=pytest.mark.engine(each)) for each in ("onnxruntime", "openvino")],
)
@pytest.mark.parametrize("name", OF_FACTORS)
def test_the_scales_of_a_quantized_product_that_an_engine_takes(name: str, target: Any) -> None:
    rows, columns, *said = OF_FACTORS[name]
    model = made_of(
        13,
        f"uint8[2,4] a, float{rows} s, uint8{rows} z, uint8[4,3] b, float{columns} t,"
        f" uint8{columns} w",
        "uint8[P,Q] y",
        "y = QLinearMatMul(a, s, z, b, t, w, o, p)",
        "float o = {20}, uint8 p = {3}",
    )
    feed = {"a": RANDOM.integers(1, 99, (2, 4)), "b": RANDOM.integers(1, 99, (4, 3))}
    for names, shape in (("sz", rows), ("tw", columns)):
        dims = [int(dim) if dim.isdigit() else 1 for dim in shape[1:-1].split(",") if dim]
        feed |= {
            names[0]: RANDOM.choice([0.5, 0.25, 2], dims),
            names[1]: RANDOM.integers(0, 9, dims),
        }
    feed = {
        each: np.asarray(held, np.float32 if each in "st" else np.uint8)
        for each, held in feed.items()
    }
    found = [each for each in ts.check(model, target=target) if "QLinearMatMul" in each.node]
    told = sorted({each.severity for each in found if "half" not in each.message})
    assert told == [each for each in [said[target == "openvino"]] if each]
    if told:
        with pytest.raises(SplitError):
            ts.run(model, feed, engine=target)
    if told != ["error"]:
        lowered = lowered_for(target, model)
        right = ts.run(model, feed)["y"].astype(int)
        got = ts.run(lowered, feed, engine=target)["y"].astype(int)
        assert np.abs(got - right).max() <= 1


def assert_openvino(
    model: onnx.ModelProto, feed: dict[str, Any], *, is_loaded: bool, is_right: bool
) -> None:
    """Have OpenVINO refuse a model, or give y as our own engine does or does not."""
    if not is_loaded:
        with pytest.raises(SplitError, match="TS603"):
            ts.run(model, feed, engine="openvino")
        return
    (got,), (right,) = (ts.run(model, feed, engine=e).values() for e in ("openvino", "tensorsplit"))
    most = 1e-4 if is_right else 1e-3
    is_alike = got.shape == right.shape and np.allclose(got, right, rtol=most, atol=most)
    assert is_alike == is_right


def _pool(size: int, stride: int, *pads: int) -> str:
    padded = f", pads = {[*pads]}" if pads else ""
    return f"MaxPool<kernel_shape = [{size}], strides = [{stride}], ceil_mode = 1{padded}>(v)"


def _loss(more: str) -> str:
    return f"NegativeLogLikelihoodLoss<{more}>(p, c)"


def _blocks(more: str, zero_point: str) -> str:
    return f"QuantizeLinear<block_size = 2, {more}>(q, s{zero_point})"


def _depth(mode: str) -> str:
    return f'SpaceToDepth<blocksize = 2, mode = "{mode}">(d)'


def _shift(direction: str, names: str = "ih") -> str:
    return f'BitShift<direction = "{direction}">({", ".join(names)})'


def _extreme(held: str, asked: str = "IsInf(m)") -> str:
    return f"m = ReduceMax({held}) n = Neg(m) a = {asked} z = Cast<to = 1>(a)"


def _gemm(more: str, factor: str = "u") -> str:
    return f"Gemm<{more}>(q, {factor}, t)"


def _turned(operator: str) -> str:
    return f"a = Transpose(u) b = MatMul(q, a) z = {operator}(b, t)"


_FLOATS: dict[str, tuple[int, ...]] = {
    "v": (1, 1, 5),
    "f": (3,),
    "p": (2, 3),
    "q": (2, 4),
    "s": (2, 2),
    "d": (1, 2, 2, 2),
    "u": (3, 4),
    "w": (4, 3),
}
FED: dict[str, Any] = {
    **{name: RANDOM.uniform(1, 2, shape).astype(np.float32) for name, shape in _FLOATS.items()},
    "a": np.array([-1, 2, 3], np.float16),
    "b": np.asarray(1, ml_dtypes.bfloat16),
    "c": np.array([1, 2]),
    "e": np.array([18.996, -9.498, 3], np.float32),  # as float16, and twice that, 19 and -9.5
    "short": np.array([500, 3, -6.5e4], np.float16),
    "g": np.array([-3, 1.5, -2], np.float32),
    "h": np.array([1, 2, 3], np.int32),
    "i": np.array([-7, 5, 9], np.int32),
    "j": np.array([3, -2, 4], np.int32),
    "k": np.array([-7, 5, 9], np.int8),
    "l": np.array([1, 2, 3], np.int8),
    "m": np.array([-7, 5, 2**40]),
    "n": np.array([1, 2, 3]),
    "x": np.full(3, -np.inf, np.float32),
    "y": np.array([0]),
}
CHOICES = {  # the inputs, the node, what check says, and whether the engine loads the model
    "antialias": ('Resize<mode = "linear", antialias = 1>(x, , half)', "warning", True),
    "no antialias": ('Resize<mode = "linear", antialias = 0>(x, , half)', "", True),
    "elements outside": ('Resize<mode = "cubic", exclude_outside = 1>(x, , half)', "warning", True),
    "not larger": (
        'Resize<keep_aspect_ratio_policy = "not_larger">(x, , , sizes)',
        "warning",
        True,
    ),
    "stretched": ('Resize<keep_aspect_ratio_policy = "stretch">(x, , , sizes)', "", True),
    "symmetric": (
        'Resize<coordinate_transformation_mode = "half_pixel_symmetric">(x, , half)',
        "error",
        False,
    ),
    "wrapped": ('Pad<mode = "wrap">(x, pads)', "error", False),
    "reflected": ('Pad<mode = "reflect">(x, pads)', "", True),
    "volumes": ("Col2Im(c, three, three)", "error", False),
    "a window": ("Attention<left_window_size = 1>(x, x, x)", "warning", True),
    "no window": ("Attention<left_window_size = -1>(x, x, x)", "", True),
    "a fed step": ("STFT(t, k, , eight)", "error", False),
    "a constant step": ("STFT(t, four, , eight)", "", True),
    "a fed length": ("STFT(t, four, , k)", "error", False),
    "no length": ("STFT(t, four, ones)", "error", False),
    "a length that is guessed": ("STFT(t, two, ones)", "", True),
    "a length that nothing says": ("STFT(t, k, ones)", "error", False),
    "both halves of real numbers": ("STFT<onesided = 0>(t, four, ones, eight)", "error", False),
    "both halves without a window": ("STFT<onesided = 0>(t, four, , eight)", "", True),
    "a length that is passed on": ("STFT(t, four, , same)", "", True),
    "a length beside a window": ("STFT(t, four, ones, eight)", "", True),
}


@pytest.mark.engine("openvino")
@pytest.mark.parametrize("name", CHOICES)
def test_attributes_and_operands_that_openvino_ignores_or_refuses(name: str) -> None:
    call, said, is_loaded = CHOICES[name]
    if "Attention" in call and onnx.defs.onnx_opset_version() < 25:
        pytest.skip("the installed onnx does not know this opset")
    model = made_of(
        25 if "Attention" in call else 19,
        "float[1,2,4,4] x, float[1,8,1] c, float[1,16,1] t, int64 k",
        "float[] y",
        f"same = Identity(eight) z = {call} y = Neg(z)",
        "float[4] half = {1, 1, 0.5, 0.5}, int64[4] sizes = {1, 2, 3, 2}, int64 eight = {8},"
        " int64[3] three = {1, 1, 1}, int64[8] pads = {0, 0, 1, 0, 0, 0, 0, 1}, int64 four = {4},"
        " int64 two = {2}, float[8] ones = {1, 1, 1, 1, 1, 1, 1, 1}",
    )
    model.graph.output[0].ClearField("type")
    found = ts.check(model, target="openvino")
    at = [each.severity for each in found if each.code in ("TS841", "TS842", "TS843")]
    assert at == [each for each in [said] if each]
    shapes = {"x": (1, 2, 4, 4), "c": (1, 8, 1), "t": (1, 16, 1)}
    feed = {each: RANDOM.uniform(1, 2, shape) for each, shape in shapes.items()}
    feed = {each: held.astype(np.float32) for each, held in feed.items()} | {"k": np.array(4)}
    assert_openvino(model, feed, is_loaded=is_loaded, is_right=not said)


@pytest.mark.parametrize("step", [4, 2])
def test_frames_of_a_transform_are_as_long_as_its_window(step: int, process: Runner) -> None:
    """OpenVINO takes the length of the signal, divided by the step, where it is left out."""
    model = made_of(
        17,
        "float[1,16,1] x, float[8] w",
        "float[A,B,C,D] y",
        "y = STFT(x, s, w)",
        f"int64 s = {{{step}}}",
    )
    feed = {
        name: RANDOM.uniform(-1, 1, shape).astype(np.float32)
        for name, shape in (("x", (1, 16, 1)), ("w", (8,)))
    }
    signal = feed["x"].reshape(-1)
    frames = [np.fft.rfft(signal[at : at + 8] * feed["w"]) for at in range(0, 16 - 7, step)]
    lowered = lowered_for("openvino", model)
    ((got,),) = process.call(["openvino", lowered.SerializeToString(), [feed], 2])
    wanted = np.stack([np.real(frames), np.imag(frames)], -1)
    np.testing.assert_allclose(got[0], wanted, rtol=1e-4, atol=1e-5)


E4M3, E8M0, BFLOAT16 = 17, 24, 16
SILENT = {  # the opset, the inputs, the node, the severity, and whether the engine loads the model
    "a window beyond": (22, "float[1,1,5] v", _pool(1, 3), "warning", True),
    "a window beyond open data": (22, "float[A,1,N] v", _pool(1, 3), "warning", True),
    "a window beyond padded data": (22, "float[1,1,5] v", _pool(3, 3, 1, 1), "warning", True),
    "no window beyond": (22, "float[1,1,5] v", _pool(2, 3), "", True),
    "no window beyond open data": (22, "float[A,1,N] v", _pool(2, 2), "", True),
    "floored floats": (28, "float[3] f, float[3] g", "Mod(f, g)", "error", False),
    "floats": (28, "float[3] f, float[3] g", "Mod<fmod = 1>(f, g)", "", True),
    "floored integers": (28, "int32[3] i, int32[3] j", "Mod(i, j)", "", True),
    "an ignored class": (
        13,
        "float[2,3] p, int64[2] c",
        _loss("ignore_index = -1"),
        "warning",
        False,
    ),
    "no ignored class": (13, "float[2,3] p, int64[2] c", _loss('reduction = "sum"'), "", True),
    "blocks": (23, "float[2,4] q, float[2,2] s", _blocks("output_dtype = 3", ""), "error", False),
    "blocks by zeros": (23, "float[2,4] q, float[2,2] s", _blocks("axis = 1", ", o"), "", True),
    "depth first": (28, "float[1,2,2,2] d", _depth("CRD"), "warning", True),
    "blocks first": (28, "float[1,2,2,2] d", _depth("DCR"), "", True),
    "to bfloat16": (13, "float[N,4] q", f"Cast<to = {BFLOAT16}>(q)", "warning", True),
    "known to bfloat16": (13, "float[2,4] q", f"Cast<to = {BFLOAT16}>(q)", "", True),
    "like bfloat16": (15, "float[N,4] q, bfloat16 b", "CastLike(q, b)", "warning", True),
    "beyond float8": (19, "float16[3] short", f"Cast<to = {E4M3}>(short)", "warning", True),
    "beyond other float8": (19, "float16[3] short", "Cast<to = 19>(short)", "warning", True),
    "to infinity": (19, "float16[3] short", "Cast<to = 19, saturate = 0>(short)", "", True),
    "rounded to float16 first": (
        *(19, "float[3] e", f"Cast<to = {E4M3}, saturate = 0>(e)", "warning", True),
    ),
    "quantised by way of float16": (
        *(19, "float[3] e", "z = QuantizeLinear(e, r, zero)", "warning", True),
    ),
    "up to powers": (24, "float[3] f", f"Cast<to = {E8M0}>(f)", "warning", True),
    "to powers": (24, "float[3] f", f'Cast<to = {E8M0}, round_mode = "nearest">(f)', "", True),
    "negative to the right": (28, "int32[3] i, int32[3] h", _shift("RIGHT"), "warning", True),
    "bytes to the right": (28, "int8[3] k, int8[3] l", _shift("RIGHT", "kl"), "warning", True),
    "long to the left": (28, "int64[3] m, int64[3] n", _shift("LEFT", "mn"), "warning", True),
    "to the left": (28, "int32[3] i, int32[3] h", _shift("LEFT"), "", True),
    "an infinite extreme": (18, "float[3] x", _extreme("x"), "warning", True),
    "an extreme that is given out": (18, "float[3] f", "ReduceMax(f)", "", True),
    "an extreme of integers": (18, "int32[3] i", _extreme("i", "Equal(m, n)"), "", True),
    "fed axes": (13, "int64[1] y", "Squeeze(kept, y)", "warning", False),
    "fed axes of what is fed": (13, "float[1,1,5] v, int64[1] y", "Squeeze(v, y)", "", True),
    "a transposed factor": (
        17,
        "float[A,B] q, float[C,D] u",
        _gemm("transB = 1"),
        "warning",
        False,
    ),
    "a Transpose": (17, "float[A,B] q, float[C,D] u", _turned("Sub"), "warning", False),
    "a Transpose, a Max": (17, "float[A,B] q, float[C,D] u", _turned("Max"), "", True),
    "a factor": (17, "float[A,B] q, float[C,D] w", _gemm("transB = 0", "w"), "", True),
    "known columns": (17, "float[A,B] q, float[3,D] u", _gemm("transB = 1"), "", True),
    "floats of 16 bits": (12, "float16[3] a", "Celu(a)", "warning", False),
    "floats of 4 bits": (
        23,
        "float[2,4] q",
        "QuantizeLinear<output_dtype = 23>(q, r)",
        "warning",
        False,
    ),
    "integers of 2 bits": (25, "float[2,4] q", "Cast<to = 26>(q)", "error", False),
    "other floats that nothing needs": (
        19,
        "float[2,4] q",
        "a = Cast<to = 18>(q) z = Neg(q)",
        "",
        True,
    ),
    "other floats of 8 bits": (19, "float[2,4] q", "Cast<to = 18>(q)", "error", False),
}


@pytest.mark.engine("openvino")
@pytest.mark.parametrize("name", SILENT)
def test_what_openvino_calculates_otherwise_is_said(name: str) -> None:
    opset, inputs, call, said, is_loaded = SILENT[name]
    if onnx.defs.onnx_opset_version() < opset:
        pytest.skip("the installed onnx does not know this opset")
    nodes = call if "=" in call.partition("(")[0].partition("<")[0] else f"z = {call}"
    more = "float[3] t = {1, 2, 3}, int8[2,2] o = {0, 0, 0, 0}, float r = {0.5}"
    more += ", float[1,2,1] kept = {1, 2}"
    model = made_of(opset, inputs, "float[] result", f"{nodes} result = Identity(z)", more)
    model.graph.output[0].ClearField("type")
    zero = np.zeros((), ml_dtypes.float8_e4m3fn)
    model.graph.initializer.append(onnx.numpy_helper.from_array(zero, "zero"))
    found = ts.check(model, target="openvino")
    at = [each.severity for each in found if each.code in ("TS841", "TS842", "TS843")]
    assert at == [each for each in [said] if each]
    feed = {each.name: FED[each.name] for each in model.graph.input}
    assert_openvino(model, feed, is_loaded=is_loaded, is_right=not said)


MASKS = {  # the queries, the mask, and what check says
    "one row": ("1,2,3,4", "1,1,1,5", "warning"),
    "one row of open data": ("A,2,S,4", "A,1,1,T", "warning"),
    "one row of two axes": ("1,2,3,4", "1,5", "warning"),
    "all rows": ("1,2,3,4", "1,1,3,5", ""),
    "one query": ("1,2,1,4", "1,1,1,5", ""),
}


@with_own("onnxruntime")
@pytest.mark.parametrize("is_causal", [0, 1])
@pytest.mark.parametrize("name", MASKS)
def test_a_mask_has_a_row_for_each_query_for_onnx_runtime(
    name: str, is_causal: int, engine: Any
) -> None:
    queries, rows, said = MASKS[name]
    if onnx.defs.onnx_opset_version() < 23:
        pytest.skip("the installed onnx does not know this opset")
    model = made_of(
        23, f"float[{queries}] q, float[1,2,5,4] k, float[{rows}] m", "float[A,B,C,D] y",
        f"y = Attention<is_causal = {is_causal}>(q, k, k, m)",
    )  # fmt: skip
    found = ts.check(model, target="onnxruntime")
    assert [each.severity for each in found if each.code in ("TS841", "TS842", "TS843")] == [
        each for each in [said] if each
    ]
    shapes = {
        name: [int({"A": "1", "S": "3", "T": "5"}.get(dim, dim)) for dim in text.split(",")]
        for name, text in {"q": queries, "k": "1,2,5,4", "m": rows}.items()
    }
    feed = {each: RANDOM.normal(size=shape).astype(np.float32) for each, shape in shapes.items()}
    if engine == "onnxruntime" and said:
        with pytest.raises(SplitError, match="TS603"):
            ts.run(model, feed, engine="onnxruntime")
    is_later = np.arange(5) > np.arange(shapes["q"][-2])[:, None]
    scores = feed["q"] @ feed["k"].swapaxes(2, 3) / 2 + feed["m"]
    scores = np.where(is_later & bool(is_causal), -np.inf, scores)
    powers = np.exp(scores)
    right = powers / powers.sum(-1, keepdims=True) @ feed["k"]
    lowered = lowered_for("onnxruntime", model)
    assert (lowered == model) == (not said)
    got = ts.run(lowered, feed, engine=engine)["y"]
    assert np.allclose(got, right, rtol=1e-3, atol=1e-4)


_LOOP = """Loop(n, , x) <body = b (int64 i, bool c, float[3] s) => (bool d, float[3] t, KIND[3] r)
    { d = Identity(c) t = Neg(s) r = Cast<to = TO>(x) }>"""
_SCAN = """Scan(x, z) <num_scan_inputs = 1, body = b (float[3] s, float[3] q) => (float[3] t,
    int4[3] r) { t = Neg(s) r = Cast<to = 22>(q) }>"""
ROWS = {  # the type of rows, what gives them, and what check says
    "of 4 bits": ("int4", _LOOP.replace("KIND", "int4").replace("TO", "22"), "warning"),
    "of 8 bits": ("int8", _LOOP.replace("KIND", "int8").replace("TO", "3"), ""),
    "scanned": ("int4", _SCAN, "warning"),
}


@pytest.mark.engine("onnxruntime")
@pytest.mark.parametrize("name", ROWS)
def test_onnx_runtime_has_no_rows_of_elements_smaller_than_a_byte(name: str) -> None:
    kind, call, said = ROWS[name]
    model = made_of(
        21, "float[3] x, float[2,3] z, int64 n", f"float[3] k, {kind}[A,3] y", f"k, y = {call}"
    )
    found = ts.check(model, target="onnxruntime")
    at = [each.severity for each in found if "smaller than a byte" in each.message]
    assert at == [each for each in [said] if each]
    feed = {"x": np.array([1, 2, 3], np.float32), "n": np.array(2)}
    feed["z"] = np.stack([feed["x"]] * 2)
    assert ts.run(model, feed)["y"].tolist() == [[1, 2, 3]] * 2
    if said:
        with pytest.raises(SplitError, match=r"TS60[34]"):
            ts.run(model, feed, engine="onnxruntime")
    else:
        assert ts.run(model, feed, engine="onnxruntime")["y"].tolist() == [[1, 2, 3]] * 2


@pytest.mark.engine("onnxruntime")
@pytest.mark.parametrize("zero_points", [(), (1,), (2,)])
def test_onnx_runtime_takes_one_zero_point_of_weights(zero_points: tuple[int, ...]) -> None:
    shape = str(list(zero_points)) if zero_points else ""
    model = made_of(
        10, f"uint8[1,1,3,3] x, uint8[2,1,2,2] w, uint8{shape} z", "int32[A,B,C,D] y",
        "y = ConvInteger(x, w, zero, z)", "uint8 zero = {1}",
    )  # fmt: skip
    found = ts.check(model, target="onnxruntime")
    is_refused = any(each.severity == "error" for each in found)
    assert is_refused == (zero_points == (2,))
    feed = {"x": RANDOM.integers(1, 9, (1, 1, 3, 3)), "w": RANDOM.integers(1, 9, (2, 1, 2, 2))}
    feed = {each: held.astype(np.uint8) for each, held in feed.items()}
    feed["z"] = np.full(zero_points, 3, np.uint8)
    if is_refused:
        with pytest.raises(SplitError, match="TS603"):
            ts.run(model, feed, engine="onnxruntime")
    else:
        got = ts.run(model, feed, engine="onnxruntime")["y"]
        assert got.tolist() == ts.run(model, feed)["y"].tolist()


@pytest.mark.engine("onnxruntime")
def test_onnx_runtime_puts_elements_elsewhere_in_a_shape_that_is_given() -> None:
    model = made_of(
        22, "float[1,1,1,2] x, int64[1,1,1,2] i", "float[A,B,C,D] y",
        "y = MaxUnpool<kernel_shape = [2, 2], strides = [2, 2]>(x, i, shape)",
        "int64[4] shape = {1, 1, 3, 5}",
    )  # fmt: skip
    found = ts.check(model, target="onnxruntime")
    assert any(each.severity == "warning" and "indices" in each.message for each in found)
    feed = {"x": np.array([[[[5, 6]]]], np.float32), "i": np.array([[[[1, 6]]]])}
    right = np.zeros((1, 1, 3, 5), np.float32)
    right[0, 0, 0, 1], right[0, 0, 1, 2] = 5, 6  # places in two rows of four, as without a shape
    assert np.array_equal(ts.run(model, feed)["y"], right)
    assert not np.array_equal(ts.run(model, feed, engine="onnxruntime")["y"], right)


@pytest.mark.engine("onnxruntime")
@pytest.mark.parametrize(
    ("opset", "kind", "keys"), [(23, "bfloat16", 5), (24, "bfloat16", 5), (24, "float", 4)]
)
def test_an_attention_that_onnx_runtime_does_not_run(opset: int, kind: str, keys: int) -> None:
    if onnx.defs.onnx_opset_version() < opset:
        pytest.skip("the installed onnx does not know this opset")
    model = made_of(
        opset, f"{kind}[1,2,3,4] q, {kind}[1,2,5,4] k, {kind}[3,{keys}] m", f"{kind}[A,B,C,D] y",
        "y = Attention(q, k, k, m)",
    )  # fmt: skip
    assert [each for each in ts.check(model, target="onnxruntime") if each.severity != "note"]
    dtype = ml_dtypes.bfloat16 if kind == "bfloat16" else np.float32
    shapes = {"q": (1, 2, 3, 4), "k": (1, 2, 5, 4), "m": (3, keys)}
    feed = {each: RANDOM.normal(size=shape).astype(dtype) for each, shape in shapes.items()}
    assert ts.run(model, feed)["y"].shape == (1, 2, 3, 4)
    with pytest.raises(SplitError, match="TS603"):
        ts.run(model, feed, engine="onnxruntime")


PADDING = {  # what pads, and whether OpenVINO pads by it
    "fed": ("p = Neg(v) y = Pad(x, pads, p)", False),
    "fed along one axis": ("p = Neg(v) y = Pad(x, pair, p, one)", False),
    "calculated from constants": ("p = Neg(c) y = Pad(x, pads, p)", True),
    "a constant": ("y = Pad(x, pads, c)", True),
    "left out": ("y = Pad(x, pads)", True),
}


@with_own("openvino")
@pytest.mark.parametrize("dims", ["2,3", "N,M"])
@pytest.mark.parametrize("kind", ["float", "double", "int64", "int32", "uint8"])
@pytest.mark.parametrize("name", PADDING)
def test_padding_by_a_value_that_is_fed_is_not_of_zeros(
    name: str, kind: str, dims: str, engine: Any
) -> None:
    nodes, is_right = PADDING[name]
    if kind == "uint8":
        nodes = nodes.replace("Neg", "Identity")
    model = made_of(
        18,
        f"{kind}[{dims}] x, {kind} v",
        f"{kind}[P,Q] y",
        nodes,
        f"int64[4] pads = {{1, 0, -1, 2}}, int64[2] pair = {{2, 1}}, int64[1] one = {{1}},"
        f" {kind} c = {{3}}",
    )
    dtype = {"float": np.float32}.get(kind) or np.dtype(kind)
    feed = {"x": RANDOM.integers(1, 9, (2, 3)).astype(dtype), "v": np.asarray(5, dtype)}
    value = {"fed": 5, "calculated from constants": 3}.get(name.removesuffix(" along one axis"), 0)
    value = 3 if name == "a constant" else value * (1 if kind == "uint8" else -1)
    widths = ((0, 0), (2, 1)) if "along" in name else ((1, 0), (0, 2))
    data = feed["x"] if "along" in name else feed["x"][:1]
    right = np.pad(data, widths, constant_values=np.asarray(value, dtype))
    found = [each for each in ts.check(model, target="openvino") if "of zeros" in each.message]
    assert [each.severity for each in found] == ["warning"] * (not is_right)
    lowered = lowered_for("openvino", model)
    assert ("Where" in {node.op_type for node in lowered.graph.node}) != is_right
    np.testing.assert_array_equal(ts.run(lowered, feed, engine=engine)["y"], right)


@pytest.mark.engine("openvino")
@pytest.mark.parametrize(
    ("end", "said"), [("e", True), ("f", True), ("three", False), ("s", False)]
)
def test_bounds_that_are_fed_are_warned_of(end: str, said: bool) -> None:
    """OpenVINO 2026.4.1 cuts them to 32 bits."""
    model = made_of(
        13,
        "float[N] x, int64[1] e",
        "float[M] y",
        f"f = Identity(e) s = Shape(x) y = Slice(x, one, {end})",
        "int64[1] one = {1}, int64[1] three = {3}",
    )
    found = [each for each in ts.check(model, target="openvino") if "32 bits" in each.message]
    assert [each.severity for each in found] == ["warning"] * said
    feed = {"x": X.ravel(), "e": np.array([2**63 - 1])}
    got, right = (ts.run(model, feed, engine=each)["y"] for each in ("openvino", "tensorsplit"))
    assert np.array_equal(got, right) != said


OPEN = {  # the inputs, the node, and whether OpenVINO loads the model
    "corners": (
        "float[1,2,4,4] x, float[R,4] q, int64[S] b",
        "RoiAlign<sampling_ratio = 0>(x, q, b)",
        True,
    ),
    "open corners": (
        "float[1,2,4,4] x, float[3,Q] q, int64[3] b",
        "RoiAlign<sampling_ratio = 0>(x, q, b)",
        False,
    ),
    "open boxes": (
        "float[1,3,C] h, float[1,1,3] w",
        "NonMaxSuppression(h, w, i, j)",
        False,
    ),
    "boxes": ("float[A,B,4] h, float[A,1,B] w", "NonMaxSuppression(h, w, i, j)", True),
    "an open signal": ("float[N,16,1] t", "STFT(t, four, , eight)", False),
    "a signal": ("float[1,16,1] t", "STFT(t, four, , eight)", True),
    "blocks": ("uint8[2,4] d, float[A,2] s", "DequantizeLinear<block_size = 2>(d, s)", True),
    "open blocks": ("uint8[2,B] d, float[2,2] s", "DequantizeLinear<block_size = 2>(d, s)", False),
    "open rows": ("uint8[A,4] d, float[2,2] s", "DequantizeLinear<block_size = 2>(d, s)", False),
    "open blocks to give": (
        "float[2,B] e, float[2,2] s",
        "QuantizeLinear<block_size = 2>(e, s)",
        False,
    ),
}


@pytest.mark.engine("openvino")
@pytest.mark.parametrize("name", OPEN)
def test_dimensions_that_openvino_has_to_know(name: str) -> None:
    inputs, call, is_loaded = OPEN[name]
    model = made_of(
        21,
        inputs,
        "float[] y",
        f"z = {call} y = Identity(z)",
        "int64[1] i = {3}, float[1] j = {0.5}, int64 four = {4}, int64 eight = {8}",
    )
    model.graph.output[0].ClearField("type")
    found = [each for each in ts.check(model, target="openvino") if "has to know" in each.message]
    assert [each.severity for each in found] == ["warning"] * (not is_loaded)
    feed: dict[str, Any] = {
        "x": RANDOM.uniform(1, 2, (1, 2, 4, 4)),
        "q": np.array([[0, 0, 2, 2], [1, 1, 3, 3], [0, 1, 3, 3]]),
        "e": RANDOM.uniform(1, 9, (2, 4)),
        "h": np.array([[[0, 0, 1, 1], [0, 0, 1, 1.1], [0, 2, 1, 3]]]),
        "w": np.array([[[0.9, 0.75, 0.6]]]),
        "t": RANDOM.uniform(1, 2, (1, 16, 1)),
        "s": np.array([[0.5, 0.25], [1, 2]]),
    }
    feed = {each: held.astype(np.float32) for each, held in feed.items()}
    feed |= {"b": np.zeros(3, np.int64), "d": RANDOM.integers(1, 9, (2, 4)).astype(np.uint8)}
    feed = {each.name: feed[each.name] for each in model.graph.input}
    assert_openvino(model, feed, is_loaded=is_loaded, is_right=True)


@with_own("openvino")
@pytest.mark.parametrize("opset", [10, 16, 22])
@pytest.mark.parametrize("more", ["output_height = 1", "output_height = 2, spatial_scale = 0.75"])
def test_as_many_samples_are_taken_as_the_standard_says(opset: int, more: str, engine: Any) -> None:
    """OpenVINO 2026.4.1 takes one where their number is left out, which means all."""
    model = made_of(
        opset,
        "float[1,2,8,8] x, float[R,4] q",
        "float[R,2,P,Q] y",
        f"y = RoiAlign<{more}>(x, q, b)",
        "int64[3] b = {0, 0, 0}",
    )
    feed = {"x": RANDOM.uniform(1, 2, (1, 2, 8, 8)), "q": RANDOM.uniform(0, 3, (3, 4))}
    feed["q"][:, 2:] += 5  # so that bins are longer than an element
    feed = {each: held.astype(np.float32) for each, held in feed.items()}
    right = ts.run(model, feed)["y"]
    found = [each for each in ts.check(model, target="openvino") if "one sample" in each.message]
    assert [each.severity for each in found] == ["warning"]
    if engine == "openvino":
        got = ts.run(model, feed, engine=engine)["y"]
        assert not np.allclose(got, right, rtol=1e-3, atol=1e-3)
    lowered = lowered_for("openvino", model)
    got = ts.run(lowered, feed, engine=engine)["y"]
    assert np.allclose(got, right, rtol=1e-4, atol=1e-4)


@with_own("openvino")
@pytest.mark.parametrize("opset", [11, 22])
@pytest.mark.parametrize("pad", ["SAME_UPPER", "SAME_LOWER"])
@pytest.mark.parametrize(
    ("data", "more", "is_right"),
    [
        ("N,1,4,3", "strides = [1, 1]", False),
        ("1,1,A,3", "strides = [2, 1]", False),
        ("N,1,4,3", "strides = [2, 1], kernel_shape = [4, 3], dilations = [2, 1]", False),
        ("N,1,4,3", "strides = [2, 1], output_padding = [1, 0]", False),
        ("N,1,4,3", "strides = [3, 2], output_padding = [1, 1]", False),
        ("N,1,4,3", "strides = [4, 3]", True),  # there is no padding
        ("1,1,4,3", "strides = [2, 2]", True),
    ],
)
def test_a_transposed_convolution_of_open_data_is_padded(
    data: str, more: str, is_right: bool, pad: str, opset: int, engine: Any
) -> None:
    """OpenVINO 2026.4.1 does not pad it, where the batch alone is open, too."""
    model = made_of(
        opset,
        f"float[{data}] x, float[1,2,4,3] w",
        "float[P,Q,R,S] y",
        f'y = ConvTranspose<auto_pad = "{pad}", {more}>(x, w)',
    )
    feed = {"x": RANDOM.uniform(1, 2, (1, 1, 4, 3)), "w": RANDOM.uniform(1, 2, (1, 2, 4, 3))}
    feed = {each: held.astype(np.float32) for each, held in feed.items()}
    right = ts.run(model, feed)["y"]
    found = [each for each in ts.check(model, target="openvino") if "no padding" in each.message]
    assert [each.severity for each in found] == ["warning"] * (data != "1,1,4,3")
    if engine == "openvino":
        assert (ts.run(model, feed, engine=engine)["y"].shape == right.shape) == is_right
    got = ts.run(lowered_for("openvino", model), feed, engine=engine)["y"]
    assert got.shape == right.shape
    assert np.allclose(got, right, rtol=1e-4, atol=1e-4)


GROUPED = "GroupNormalization<num_groups = 2, epsilon = 0.5>"
IN_BODIES = {  # the nodes, and whether a body is left that OpenVINO has to know of as it loads
    "a branch": (
        f"""y = If(c) <then_branch = t () => (float[E,F,G,H] p) {{ p = {GROUPED}(x, w, v) }},
        else_branch = e () => (float[E,F,G,H] q) {{ q = Abs(x) }}>""",
        True,
    ),
    "a branch that is taken": (
        f"""y = If(yes) <then_branch = t () => (float[E,F,G,H] p) {{ p = {GROUPED}(x, w, v) }},
        else_branch = e () => (float[E,F,G,H] q) {{ q = Abs(x) }}>""",
        False,
    ),
    "a loop": (
        f"""y = Loop(n, c, x) <body = b (int64 i, bool go, float[2,4,3,S] s) =>
        (bool on, float[2,4,3,S] p) {{ on = Identity(go) a = {GROUPED}(s, w, v) p = Neg(a) }}>""",
        True,
    ),
    "the graph": (f"y = {GROUPED}(x, w, v)", False),
}


@with_own("openvino")
@pytest.mark.parametrize("last", ["5", "L"])
@pytest.mark.parametrize("name", IN_BODIES)
def test_groups_of_a_known_shape_are_normalized_in_bodies(
    name: str, last: str, engine: Any
) -> None:
    """OpenVINO 2026.4.1: `evaluate() is not implemented for op: opset12::GroupNormalization`."""
    nodes, is_body = IN_BODIES[name]
    is_refused = is_body and last == "5"
    model = made_of(
        21,
        f"float[2,4,3,{last}] x, bool c",
        "float[A,B,C,D] y",
        nodes.replace("3,S", f"3,{last}"),
        "float[4] w = {1, 2, 3, 4}, float[4] v = {4, 3, 2, 1}, bool yes = {1}, int64 n = {1}",
    )
    found = [each for each in ts.check(model, target="openvino") if "evaluate()" in each.message]
    assert [each.severity for each in found] == ["error"] * is_refused
    x = RANDOM.uniform(1, 2, (2, 4, 3, 5)).astype(np.float32)
    rows = x.astype(np.float64).reshape(2, 2, -1)
    middle, spread = (of(rows, axis=-1, keepdims=True) for of in (np.mean, np.var))
    normal = ((rows - middle) / np.sqrt(spread + 0.5)).reshape(x.shape)
    wanted = normal * np.arange(1, 5)[:, None, None] + np.arange(4, 0, -1)[:, None, None]
    feeds = {"x": x, "c": np.array(True)}
    lowered = lowered_for("openvino", model)
    got = ts.run(lowered, feeds, engine=engine)["y"]
    np.testing.assert_allclose(got, -wanted if name == "a loop" else wanted, rtol=1e-4, atol=1e-4)
    if engine == "openvino" and is_refused:
        with pytest.raises(SplitError, match="GroupNormalization"):
            ts.run(model, feeds, engine=engine)


PULLED = {  # opset, shape, axes that are added and reduced, whether kept, and whether it is wrong
    "from the back": (11, "N,M", "2", "-2", False, True),
    "from the back, kept": (18, "N,M", "-1", "-2", True, True),
    "beyond the rank before": (18, "3,2", "2", "-3", False, True),
    "kept, of a known shape": (11, "3,2", "2", "0", True, True),
    "kept, among others": (18, "3,2", "0,3", "1", True, True),
    "added from the back": (18, "N,M,K", "-2", "3", False, True),
    "from the front": (18, "N,M", "2", "1", False, False),
    "kept, of an open shape": (18, "N,M", "2", "0", True, False),
    "with one open dimension": (18, "N,2", "2", "-2", False, False),
    "added first": (18, "N,M", "0", "-2", False, False),
    "the added one, too": (18, "N,M", "2", "-1,-2", False, False),
}


@with_own("openvino")
@pytest.mark.parametrize("operator", ["ReduceSum", "ReduceMax", "ReduceLogSumExp"])
@pytest.mark.parametrize("name", PULLED)
def test_data_is_reduced_along_its_own_axes_after_others_are_added(
    name: str, operator: str, engine: Any
) -> None:
    """OpenVINO reduces first; the last operator it makes several nodes of."""
    opset, shape, added, reduced, is_kept, is_wrong = PULLED[name]
    is_wrong = is_wrong and operator != "ReduceLogSumExp"
    attributes = f"<axes = [{reduced}], keepdims = {int(is_kept)}>(u)"
    by_attribute = f"u = Unsqueeze<axes = [{added}]>(x) i = Identity(u) y = {operator}{attributes}"
    by_input = f"u = Unsqueeze(x, p) y = {operator}<keepdims = {int(is_kept)}>(u, q)"
    places, axes = ([int(each) for each in text.split(",")] for text in (added, reduced))
    model = made_of(
        opset,
        f"float[{shape}] x",
        "float[] y",
        by_attribute if opset < 13 else by_input,
        f"int64[{len(places)}] p = {{{added}}}, int64[{len(axes)}] q = {{{reduced}}}",
    )
    model.graph.output[0].type.tensor_type.ClearField("shape")
    found = [each for each in ts.check(model, "openvino") if "before the Unsqueeze" in each.message]
    assert [each.severity for each in found] == ["warning"] * is_wrong
    x = RANDOM.uniform(0.5, 2, (3, 2, 4)[: shape.count(",") + 1]).astype(np.float32)
    data = np.expand_dims(x, tuple(places))
    if operator == "ReduceMax":
        wanted = data.max(axis=tuple(axes), keepdims=is_kept)
    else:
        is_sum = operator == "ReduceSum"
        wanted = (data if is_sum else np.exp(data)).sum(axis=tuple(axes), keepdims=is_kept)
        wanted = wanted if is_sum else np.log(wanted)
    lowered = ts.lower(model, target="openvino")
    assert (lowered != model) is is_wrong
    assert ts.lower(lowered, target="openvino") == lowered
    got = ts.run(lowered, {"x": x}, engine=engine)["y"]
    np.testing.assert_allclose(got, wanted, rtol=1e-4, strict=True)
    if engine == "openvino":
        assert gives(model, x, wanted) is not is_wrong


def gives(model: onnx.ModelProto, x: np.ndarray, wanted: np.ndarray) -> bool:
    """Return whether OpenVINO loads a model and gives what is wanted."""
    try:
        got = ts.run(model, {"x": x}, engine="openvino")["y"]
    except SplitError:
        return False
    return got.shape == wanted.shape and np.allclose(got, wanted, rtol=1e-4)


@with_own("openvino")
@pytest.mark.parametrize("operator", ["ReduceMax", "ReduceMin"])
def test_bools_are_reduced_along_their_own_axes_as_they_are(operator: str, engine: Any) -> None:
    """OpenVINO leaves the Unsqueeze of these where it is, and Max takes none."""
    model = made_of(
        20,
        "bool[N,M] x",
        "bool[A,B] y",
        f"u = Unsqueeze(x, p) y = {operator}<keepdims = 0>(u, q)",
        "int64[1] p = {2}, int64[1] q = {-2}",
    )
    assert ts.lower(model, target="openvino") == model
    assert not [each for each in ts.check(model, "openvino") if "Unsqueeze" in each.message]
    x = RANDOM.uniform(0, 1, (3, 4)) < 0.5
    wanted = (x.any if operator == "ReduceMax" else x.all)(axis=1, keepdims=True)
    got = ts.run(model, {"x": x}, engine=engine)["y"]
    np.testing.assert_array_equal(got, wanted, strict=True)


def test_integers_are_not_reduced_otherwise_where_max_takes_none() -> None:
    """Max of integers is there from opset 12 on."""
    for opset in (11, 12):
        model = made_of(
            opset,
            "int32[N,M] x",
            "int32[A,B] y",
            "u = Unsqueeze<axes = [2]>(x) y = ReduceSum<axes = [-2], keepdims = 0>(u)",
        )
        lowered = ts.lower(model, target="openvino")
        assert (lowered != model) is (opset == 12)
        onnx.checker.check_model(lowered, full_check=True)


IGNORED = {  # opset, shape, the axis that is added, that of the Gather, indices, if it is wrong
    "the first axis": (18, "N,M,K", 0, 0, "[1] i = {0}", True),
    "the last axis": (18, "N,M,K", -1, -1, "[1] i = {0}", True),
    "from the back": (11, "N,M", 1, 1, "[1] i = {-1}", True),
    "twice": (18, "N,M,2", 2, 2, "[2] i = {0, 0}", True),
    "a table": (13, "N,M", -2, -2, "[1,1] i = {0}", True),
    "a number": (18, "N,M,K", 0, 0, " i = {0}", False),
    "from another end": (18, "N,M,K", -1, 3, "[1] i = {0}", False),
    "along another axis": (18, "N,M,K", 0, 1, "[1] i = {0}", False),
    "with one open dimension": (18, "N,1", 0, 0, "[1] i = {0}", False),
}


@with_own("openvino")
@pytest.mark.parametrize("kind", ["float", "int64", "bool"])
@pytest.mark.parametrize("name", IGNORED)
def test_a_list_of_indices_along_an_added_axis_is_gathered(
    name: str, kind: str, engine: Any
) -> None:
    """OpenVINO leaves out both nodes, as it may where the index is a number."""
    opset, shape, added, axis, indices, is_wrong = IGNORED[name]
    by_attribute = f"u = Unsqueeze<axes = [{added}]>(x)"
    gather = f" v = Identity(u) y = Gather<axis = {axis}>(v, i)"
    model = made_of(
        opset,
        f"{kind}[{shape}] x",
        f"{kind}[] y",
        (by_attribute if opset < 13 else "u = Unsqueeze(x, p)") + gather,
        f"int64[1] p = {{{added}}}, int64{indices}",
    )
    model.graph.output[0].type.tensor_type.ClearField("shape")
    found = [each for each in ts.check(model, "openvino") if "are left out" in each.message]
    assert [each.severity for each in found] == ["warning"] * is_wrong
    numbers = RANDOM.integers(1, 9, (3, 1, 2)[: shape.count(",") + 1])
    x = numbers > 4 if kind == "bool" else numbers.astype(np.dtype(kind.replace("float", "f4")))
    count = {"[2": 2, "[1": 1}.get(indices[:2])
    places: Any = 0 if count is None else [0] * count
    wanted = np.take(np.expand_dims(x, added), [places] if "," in indices[:4] else places, axis)
    lowered = ts.lower(model, target="openvino")
    assert (lowered != model) is is_wrong
    assert ts.lower(lowered, target="openvino") == lowered
    got = ts.run(lowered, {"x": x}, engine=engine)["y"]
    np.testing.assert_array_equal(got, wanted, strict=True)
    if engine == "openvino":
        assert gives(model, x, wanted) is not is_wrong


REPEATED = {
    "Expand": "c = Constant<value = int64[0] {}>() y = Expand(x, c)",
    "Tile": "c = Constant<value = int64[0] {}>() y = Tile(x, c)",
    "an initializer": "y = Tile(x, none)",
    "among others": "n = Neg(x) e = Expand(n, none) t = Tile(e, none) y = Neg(t)",
}


@pytest.mark.parametrize("name", REPEATED)
def test_a_scalar_is_repeated_by_lists_of_none(name: str, process: Runner) -> None:
    """OpenVINO ends the process, or gives memory never written, for a list that is calculated."""
    model = made_of(18, "float x", "float y", REPEATED[name], "int64[0] none = {}")
    found = [each for each in ts.check(model, "openvino") if "without elements" in each.message]
    assert found
    lowered = lowered_for("openvino", model)
    assert not {"Expand", "Tile"} & {each.op_type for each in lowered.graph.node}
    x = np.array(RANDOM.uniform(1, 2), np.float32)
    ((got,),) = process.call(["openvino", lowered.SerializeToString(), [{"x": x}], 1])
    np.testing.assert_array_equal(got, x)
    assert got.shape == ()


@pytest.mark.engine("openvino")
@pytest.mark.filterwarnings("ignore:.*int64 and uint64 in int32:tensorsplit.SplitWarning")
@pytest.mark.parametrize("opset", [13, 18])
def test_lengths_that_are_counted_by_a_default_alone_are_counted(opset: int) -> None:
    """Another value may be fed (D20): of none, the number of lengths is not known."""
    model = made_of(
        opset,
        "int64[1] c, int64[N] x, int64 v",
        "int64[A] a, int64[B] b",
        "u = Unsqueeze(v, c) h = Div(u, two) r = Sub(u, h) l = Concat<axis = 0>(h, r)"
        " a, b = Split<axis = 0>(x, l)",
        "int64[1] c = {0}, int64[1] two = {2}",
    )
    lowered = lowered_for("openvino", model)
    x = RANDOM.integers(1, 9, 5)
    got = ts.run(lowered, {"x": x, "v": np.array(5)}, engine="openvino")
    assert [got[each].tolist() for each in "ab"] == [x[:2].tolist(), x[2:].tolist()]


LEFT_OUT: dict[str, tuple[str, str, str, tuple[int, ...], bool]] = {
    "turned": ("1,2,3", "1", "y = Transpose<perm = [1, 0]>(r)", (3, 1), True),
    "turned, of an open length": ("1,N,M", "1", "y = Transpose<perm = [1, 0]>(r)", (3, 1), True),
    "turned, of an open batch": ("N,2,3", "1", "y = Transpose<perm = [1, 0]>(r)", (3, 1), False),
    "turned, where no axis was": ("2,1,3", "0", "y = Transpose<perm = [1, 0]>(r)", (3, 1), False),
    "turned, of two axes": ("2,3,1,2", "0, 3", "y = Transpose<perm = [1, 0]>(r)", (1, 3), True),
    "exchanged": ("1,2,2,3", "-3", "y = Transpose<perm = [1, 0, 2]>(r)", (2, 1, 3), True),
    "moved in a circle": ("1,2,1,3", "1", "y = Transpose<perm = [2, 0, 1]>(r)", (3, 1, 1), False),
    "after an Identity": ("1,2,3", "1", "i = Identity(r) y = Transpose(i)", (3, 1), True),
    "after another node": ("1,2,3", "1", "n = Abs(r) y = Transpose(n)", (3, 1), False),
    "in columns": ("2,2,3", "1", "y = Reshape(r, c)", (6, 1), True),
    "in columns, of an open batch": ("N,2,3", "1", "y = Reshape(r, c)", (6, 1), True),
    "in rows": ("2,2,3", "1", "y = Reshape(r, l)", (1, 6), False),
    "in one row": ("3,3,1", "0", "y = Reshape(r, l)", (1, 3), True),
    "in rows of three": ("3,3,1", "0", "y = Reshape(r, t)", (1, 3), False),
    "in three axes": ("2,2,3", "1", "y = Reshape(r, k)", (2, 1, 3), False),
}


@with_own("openvino")
@pytest.mark.parametrize("operator", ["ReduceMax", "ReduceMean"])
@pytest.mark.parametrize("name", LEFT_OUT)
def test_another_shape_of_what_is_reduced_is_not_lost(
    name: str, operator: str, engine: Any
) -> None:
    """OpenVINO leaves the node out where a length of 1 is at the place of a reduced axis."""
    dims, axes, nodes, shape, is_lost = LEFT_OUT[name]
    model = parse_model(
        f"""<ir_version: 8, opset_import: ["": 18]> g (float[{dims}] x) => (float[] y)
        <int64[{len(axes.split(","))}] a = {{{axes}}}, int64[2] c = {{-1, 1}},
        int64[2] l = {{1, -1}}, int64[2] t = {{-1, 3}}, int64[3] k = {{2, 1, 3}}>
        {{ r = {operator}<keepdims = 0>(x, a) {nodes} }}"""
    )
    model.graph.output[0].ClearField("type")
    model.graph.output[0].type.tensor_type.elem_type = onnx.TensorProto.FLOAT
    found = ts.check(model, target="openvino")
    assert [each.severity for each in found if "left out, so" in each.message] == [
        "warning"
    ] * is_lost
    sizes = {"N,2,3": (2, 2, 3) if "columns" in name else (1, 2, 3), "1,N,M": (1, 2, 3)}
    size = sizes.get(dims) or tuple(map(int, dims.split(",")))
    x = np.random.default_rng(5).uniform(0.5, 2, size).astype(np.float32)
    reduce = x.max if operator == "ReduceMax" else x.mean
    wanted = reduce(axis=tuple(map(int, axes.split(",")))).reshape(shape)
    lowered = ts.lower(model, target="openvino")
    assert (lowered != model) is is_lost
    assert ts.lower(lowered, target="openvino") == lowered
    got = ts.run(lowered, {"x": x}, engine=engine)["y"]
    np.testing.assert_allclose(got, wanted, rtol=1e-5, strict=True)
    if engine == "openvino":
        assert (ts.run(model, {"x": x}, engine=engine)["y"].shape != shape) is is_lost


SCALED: dict[str, tuple[str, str, str, bool]] = {
    "negated": ("3,3,2", "1", "y = Neg(r)", True),
    "by a number": ("3,3,2", "1", "y = Mul(c, r)", True),
    "added to, of a list": ("3,3,2", "-2", "y = Add(r, w)", True),
    "of two axes": ("3,3,2", "1, 2", "y = Sub(r, c)", True),
    "of open lengths": ("N,M,K", "1", "y = Mul(r, c)", True),
    "in another shape": ("3,3,2", "1", "i = Identity(r) t = Transpose(i) y = Neg(t)", True),
    "after an Abs": ("3,3,2", "1", "n = Abs(r) y = Mul(n, c)", True),
    "of one row": ("1,3,2", "1", "y = Neg(r)", False),
    "along the first": ("3,3,2", "0", "y = Neg(r)", False),
    "along the last": ("3,3,2", "2", "y = Neg(r)", False),
    "along the first two": ("3,3,2", "0, 1", "y = Neg(r)", False),
    "of four axes": ("2,2,3,2", "1", "y = Neg(r)", False),
    "by several numbers": ("3,3,2", "1", "y = Mul(r, v)", False),
    "the larger": ("3,3,2", "1", "y = Max(r, c)", False),
    "by what is fed": ("3,3,2", "1", "y = Mul(r, z)", False),
    "read twice": ("3,3,2", "1", "n = Neg(r) m = Abs(r) y = Add(n, m)", False),
    "by itself": ("3,3,2", "1", "y = Mul(r, r)", False),
}


@with_own("openvino")
@pytest.mark.parametrize("kind", ["int32", "int64", "float"])
@pytest.mark.parametrize("operator", ["ReduceMax", "ReduceSum"])
@pytest.mark.parametrize("name", SCALED)
def test_all_rows_of_reduced_integers_are_calculated_with(
    name: str, operator: str, kind: str, engine: Any
) -> None:
    """OpenVINO calculates with a reduction of integers at once, and with its first row alone."""
    dims, axes, nodes, is_lost = SCALED[name]
    is_lost &= kind != "float"
    model = parse_model(
        f"""<ir_version: 8, opset_import: ["": 18]>
        g ({kind}[{dims}] x, {kind}[1, 2] z) => ({kind} y)
        <int64[{len(axes.split(","))}] a = {{{axes}}}, {kind} c = {{3}}, {kind}[1] w = {{3}},
        {kind}[2] v = {{3, 5}}> {{ r = {operator}<keepdims = 0>(x, a) {nodes} }}"""
    )
    model.graph.output[0].type.tensor_type.ClearField("shape")
    found = ts.check(model, target="openvino")
    assert [each.severity for each in found if "for one row only" in each.message] == [
        "warning"
    ] * is_lost
    size = (3, 3, 2) if "N" in dims else tuple(map(int, dims.split(",")))
    rng, element = np.random.default_rng(5), np.float32 if kind == "float" else kind
    feeds = {
        each: rng.integers(1, 99, shape).astype(element)
        for each, shape in (("x", size), ("z", (1, 2)))
    }
    results: Any = ReferenceEvaluator(model).run(None, feeds)
    wanted = results[0]
    lowered = ts.lower(model, target="openvino")
    assert (lowered != model) is is_lost
    assert ts.lower(lowered, target="openvino") == lowered
    got = ts.run(lowered, feeds, engine=engine)["y"]
    np.testing.assert_array_equal(got, wanted, strict=True)
    if engine == "openvino":
        before = ts.run(model, feeds, engine=engine)["y"]
        assert (not np.array_equal(before, wanted)) is is_lost
