"""A name stands for any number from 0 on, and what is inferred holds for all of them."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import onnx
import pytest

import tensorsplit as ts
from tests.model.infer.test_infer_shapes import shapes
from tests.model.shape_arithmetic import ShapeModel, wrongly_inferred

HEAD = '<ir_version: 8, opset_import: ["" : 18]> g (float[N] x, float[M] m, float[N,4] u, '
HEAD += "float[6] six, float[N,M] both, float[N,2] twos, float[2,N] across) => (y) "
HEAD += "<int64[1] zero={{0}}, int64[1] one={{1}}, int64[1] two={{2}}, int64[1] four={{4}}, "
HEAD += "int64[1] five={{5}}, int64[1] rest={{-1}}, int64[1] far={{9223372036854775807}}> {{ {} }}"

SHAPES: dict[str, tuple[str, tuple[Any, ...]]] = {
    "all but the first": ("y = Slice(x, one, far)", ("max(0, N - 1)",)),
    "all but the last": ("y = Slice(x, zero, rest)", ("max(0, N - 1)",)),
    "the first": ("y = Slice(x, zero, one)", ("min(1, N)",)),
    "the last": ("y = Slice(x, rest, far)", ("min(1, N)",)),
    "none, as it ends before it starts": ("y = Slice(x, four, two)", (0,)),
    "one before the last": (
        "less = Sub(rest, one) y = Slice(x, less, rest)",
        ("max(0, min(1, N - 1))",),
    ),
    "none from the back": ("less = Sub(rest, one) y = Slice(x, rest, less)", (0,)),
    "what may be empty twice": (
        "a = Slice(x, one, far) y = Slice(a, one, far)",
        ("max(0, max(0, N - 1) - 1)",),
    ),
    "a range": (
        """n = Shape(x) less = Sub(n, one) axis = Constant<value_ints=[0]>()
        to = Squeeze(less, axis) from = Constant<value_int=0>() by = Constant<value_int=1>()
        y = Range(from, to, by)""",
        ("max(0, N - 1)",),
    ),
    "a length that may be -1": (
        "n = Shape(m) less = Sub(n, five) to = Concat<axis=0>(less, two) y = Reshape(six, to)",
        (3, 2),
    ),
    "a length that may be 0, which means that of the data": (
        "n = Shape(m) to = Concat<axis=0>(n, rest) y = Reshape(both, to)",
        (None, None),
    ),
    "a length that is 0 where that of the data is": (
        "n = Shape(x) to = Concat<axis=0>(n, rest) y = Reshape(twos, to)",
        ("N", 2),
    ),
    "a length that nothing else fits where it is 0": (
        "s = Shape(both) n = ReduceProd(s, zero) y = Reshape(both, n)",
        ("M*N",),
    ),
    "a length that is -1 or any": (
        """n = Shape<end=1>(u) f = Gather(m, zero) o = Cast<to=7>(f)
        to = Concat<axis=0>(n, o) y = Reshape(u, to)""",
        ("N", None),
    ),
    "a length that may be 0, beside one of two that may be": (
        """n = Shape(m) f = Gather(m, zero) o = Cast<to=7>(f) to = Concat<axis=0>(n, one, o)
        y = Reshape(both, to)""",
        (None, 1, None),
    ),
    "a length that fits nothing where it is 0, as the data has a 2 there": (
        "n = Shape(x) to = Concat<axis=0>(n, two) y = Reshape(across, to)",
        ("N", 2),
    ),
    "a length that fits nothing where it is 0, as the data has a 4 there": (
        "n = Shape<end=1>(u) to = Concat<axis=0>(four, n) y = Reshape(u, to)",
        (4, "N"),
    ),
    "lengths in a table": (
        """n = Shape(both) pair = Constant<value_ints=[2, 1]>() t = Reshape(n, pair)
        r = Transpose(t) l = Reshape(r, rest) y = ConstantOfShape(l)""",
        ("N", "M"),
    ),
    "a 0 that counts": (
        "n = Shape(x) to = Concat<axis=0>(n, two) y = Reshape<allowzero=1>(across, to)",
        ("N", 2),
    ),
    "integers that wrap": (
        """n = Shape(x) i = Cast<to=6>(n) big = Constant<value = int32[1] {1073741824}>()
        p = Mul(i, big) l = Cast<to=7>(p) y = ConstantOfShape(l)""",
        (None,),
    ),
    "floats that are rounded": (
        """n = Shape(x) f = Cast<to=1>(n) by = Constant<value_floats=[3.0]>() q = Div(f, by)
        p = Mul(q, by) l = Cast<to=7>(p) y = ConstantOfShape(l)""",
        (None,),
    ),
    "what is above 0 only from 1 on": (
        """n = Shape(x) is = Greater(n, zero) l = Where(is, four, two) y = ConstantOfShape(l)""",
        (None,),
    ),
}


@pytest.mark.parametrize("name", SHAPES)
def test_what_a_name_may_be_is_heeded(name: str) -> None:
    text, expected = SHAPES[name]
    assert shapes(onnx.parser.parse_model(HEAD.format(text)))["y"] == expected


def test_an_expression_that_a_model_declares_is_read_as_it_is_written() -> None:
    """``max(0, N - 1)`` of N from 0 on is not ``N - 1``."""
    made = onnx.parser.parse_model(HEAD.format("y = Slice(x, one, far)"))
    first = ts.infer_shapes(made)
    made.graph.input[0].type.tensor_type.shape.dim[0].dim_param = "max(0, N - 1)"
    assert shapes(made)["y"] == ("max(0, max(0, N - 1) - 1)",)
    assert ts.infer_shapes(first).SerializeToString() == first.SerializeToString()


def computed_lengths() -> onnx.ModelProto:
    """A split of 3 into what ``x[1:]`` leaves of 1, which is 0 where x is empty, and the rest."""
    text = '<ir_version: 8, opset_import: ["" : 18]> g (float[N] x, float[3] z) => (a, b) '
    text += "<int64[1] one={1}, int64[1] far={9223372036854775807}, int64[1] three={3}> {"
    text += "rest = Slice(x, one, far) n = Shape(x) k = Shape(rest) first = Sub(n, k)"
    text += "more = Sub(three, first) lengths = Concat<axis=0>(first, more) "
    text += "a, b = Split(z, lengths) }"
    return onnx.parser.parse_model(text)


@pytest.mark.parametrize("opset", [11, 13, 21])
def test_lengths_that_differ_where_a_dimension_is_0_stay_calculated(opset: int) -> None:
    converted = ts.convert(computed_lengths(), opset=opset)
    z = np.array([2, 3, 5], np.float32)
    for count, lengths in ((0, [0, 3]), (1, [1, 2]), (5, [1, 2])):
        found = ts.run(converted, {"x": np.ones(count, np.float32), "z": z})
        assert [part.tolist() for part in found.values()] == [
            part.tolist() for part in np.split(z, lengths[:1])
        ]


@pytest.mark.thorough
def test_random_models() -> None:
    """Where one fails, its number is the seed; TENSORSPLIT_SEED takes others."""
    first = int(os.environ.get("TENSORSPLIT_SEED", "0"))
    found = {seed: _wrong(seed) for seed in range(first, first + 150)}
    assert {seed: wrong for seed, wrong in found.items() if wrong} == {}


def _wrong(seed: int) -> list[str]:
    try:
        return wrongly_inferred(ShapeModel(seed))
    except ts.SplitError as error:  # of a split that fits no dimension
        return [] if error.code.startswith("TS3") else [str(error)]


def test_names_that_onnx_invented_say_nothing() -> None:
    """onnx gives the tensors of a sequence one name, though the last chunk is shorter."""
    made = onnx.parser.parse_model(
        """<ir_version: 8, opset_import: ["" : 18]> g (float[N,4] x) => (first, last)
        <seq(float[unk__0,4]) s, float[unk__0,4] a, float[unk__0,4] b>
        { size = Constant<value_int=3>() s = SplitToSequence(x, size)
          front = Constant<value_int=0>() a = SequenceAt(s, front) first = Neg(a)
          back = Constant<value_int=-1>() b = SequenceAt(s, back) last = Neg(b) }"""
    )
    lowered = ts.lower(made, target="portable")
    typed = (*lowered.graph.value_info, *lowered.graph.output)
    dims = [dim.dim_param for each in typed for dim in each.type.tensor_type.shape.dim]
    assert not [name for name in dims if name.startswith("unk__")]


def test_a_name_that_onnx_invented_stays_invented_where_an_input_has_it_too() -> None:
    """Models that are cut out of others have inputs of such names, which say nothing of others."""
    inferred = ts.infer_shapes(
        onnx.parser.parse_model(
            """<ir_version: 8, opset_import: ["": 17]>
            g (float[A] a, float[B] b, float[unk__0] x, int64 k) => (float[C] c)
            <float[unk__0] d, int64[1] one = {1}>
            { s = SequenceConstruct(a, b) d = SequenceAt(s, k)
              n = Shape(x) m = Add(n, one) c = Split(d, m) }"""
        )
    )
    assert len(inferred.graph.output[0].type.tensor_type.shape.dim) == 1
