"""Layers of each type that becomes ONNX, made by OpenVINO's Python, and what they are fed.

``python -m tests.model.convert.made_layers`` writes down their files and what OpenVINO gives, so
that tests know them where OpenVINO is not installed.
"""

from __future__ import annotations

import gzip
import json
import tempfile
from base64 import b64decode, b64encode
from collections.abc import Callable, Sequence
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

RANDOM = np.random.default_rng(7)


def _normal(*shape: int) -> Any:
    return RANDOM.standard_normal(shape).astype(np.float32)


def _floats(values: Any) -> Any:
    return np.array(values, np.float32)


SMALL = RANDOM.uniform(0.1, 0.9, (4, 6)).astype(np.float32)
LARGE = RANDOM.uniform(1.1, 9, (4, 6)).astype(np.float32)
SIGNED = RANDOM.uniform(-9, 9, (4, 6)).astype(np.float32)
IMAGE = _normal(2, 3, 9, 8)
FILTERS = _normal(4, 3, 3, 3)
DEEP = _normal(2, 8, 6, 4)
SQUARE = _normal(2, 3, 3)
ODD = _floats([[1, np.nan, np.inf], [-np.inf, 0, -3]])
TIED = _floats([[2, 5, 2, 5, 1], [3, 3, 3, 2, 4], [2, 5, 7, 5, 1], [0, 1, 7, 5, 1]])
STEPS = _floats([-9, -0.5, 0, 0.25, 0.5, 0.75, 1, 1.5, 2.5, 3.5, 4, 4.5])
QUERY = _normal(2, 4, 6)
KEY = _normal(2, 5, 6)


class Made(NamedTuple):
    """A layer: how OpenVINO's Python makes it, and what its inputs are fed."""

    type: str
    make: Callable[..., Any]
    feeds: Sequence[Any]
    open: tuple[int, ...] = (0,)  # the axes of the inputs whose length is not declared
    outputs: int = 1  # how many of its outputs are read
    is_run: bool = True  # whether our engine runs it

    @property
    def id(self) -> str:
        return f"{self.type}-{'-'.join(str(np.asarray(feed).dtype) for feed in self.feeds)}"


def _const(values: Any, kind: Any = np.int64) -> Any:
    from openvino import opset8

    return opset8.constant(np.array(values, kind))


def _const_of(value: Any, kind: Any = np.int64) -> Any:
    """Return what makes a constant; OpenVINO is not imported before."""
    return lambda: _const(value, kind)


def _called(name: str, *given: Any, opset: str = "opset13", **named: Any) -> Callable[..., Any]:
    """Return what makes a layer of tensors, and of what follows them; tuples are constants."""

    def make(*tensors: Any, **more: Any) -> Any:
        others = [_given(each) for each in given]
        called = getattr(import_module(f"openvino.{opset}"), name)
        return called(
            *tensors, *others, **{key: _given(each) for key, each in named.items()}, **more
        )

    return make


def _given(each: Any) -> Any:
    if isinstance(each, np.ndarray):
        return _const(each, each.dtype)
    if callable(each):
        return each()
    return _const(each) if isinstance(each, tuple) else each


def _ends(shape: tuple[int, ...], *numbers: Any) -> list[Any]:
    """The ranges of a FakeQuantize: where its input and its output begin and end."""
    return [np.broadcast_to(np.float32(each), shape).copy() for each in numbers]


def _unary(type: str, name: str = "", feed: Any = SMALL) -> Made:
    return Made(type, _called(name or type.lower()), [feed])


def _binary(type: str, name: str, *, floats: bool = True, booleans: bool = False) -> list[Made]:
    pairs: list[Any] = [(LARGE, LARGE[:1] * 0.7)] if floats else []
    pairs += [(SIGNED > 0, SIGNED[:1] > 1)] if booleans else []
    if not booleans:
        pairs.append((LARGE.astype(np.int32), LARGE[0].astype(np.int32)))
    return [Made(type, _called(name), pair, open=()) for pair in pairs]


def _recurrent_feeds(kind: str, direction: str) -> list[Any]:
    """Return the data, states and lengths of a layer."""
    directions = 2 if direction == "bidirectional" else 1
    states = [_normal(2, directions, 3) for _ in range(1 + (kind == "LSTM"))]
    return [_normal(2, 5, 4), *states, np.array([5, 5], np.int32)]


def _recurrent(kind: str, direction: str, named: dict[str, Any], *given: Any) -> Any:
    gates = {"LSTM": 4, "GRU": 3, "RNN": 1}[kind]
    directions = 2 if direction == "bidirectional" else 1
    random = np.random.default_rng(3)
    biases = gates + bool(named.get("linear_before_reset"))
    shapes = ((directions, 3 * gates, 4), (directions, 3 * gates, 3), (directions, 3 * biases))
    weights = [_const(random.uniform(-1, 1, shape), np.float32) for shape in shapes]
    return _called(f"{kind.lower()}_sequence")(*given, *weights, 3, direction, **named)


NORMAL = [
    *(
        Made("PReLU", _called("prelu"), [IMAGE, slope], open=(0, 2, 3) * (slope.ndim == 3))
        for slope in (
            _floats([0.1, -2, 3]),
            _floats([0.5]),
            _normal(3, 1, 1),
        )
    ),
    Made("PReLU", _called("prelu"), [SIGNED, SIGNED[0] / 9], open=()),
    Made("PReLU", _called("prelu"), [SQUARE, _floats([0.1, -2, 3])], open=()),
    Made(
        "Selu",
        lambda x: _called("selu")(x, _const(1.7, np.float32), _const(1.1, np.float32)),
        [SIGNED],
    ),
    Made(
        "HardSigmoid",
        lambda x: _called("hard_sigmoid")(x, _const(0.3, np.float32), _const(0.4, np.float32)),
        [SIGNED],
    ),
    _unary("HSigmoid", feed=SIGNED),
    _unary("Mish", feed=SIGNED),
    _unary("SoftSign", feed=SIGNED),
    *(Made("Gelu", _called("gelu", kind), [SIGNED]) for kind in ("erf", "tanh")),
    Made("Gelu", _called("gelu", opset="opset2"), [SIGNED]),
    Made("Floor", _called("floor"), [SIGNED.astype(np.int64)]),
    Made("Ceiling", _called("ceiling"), [SIGNED.astype(np.int32)]),
    Made("IsNaN", _called("is_nan"), [ODD]),
    Made("IsFinite", _called("is_finite"), [ODD]),
    *(
        Made("IsInf", _called("is_inf", attributes), [ODD])
        for attributes in ({}, {"detect_negative": False}, {"detect_positive": False})
    ),
    *(
        Made(
            "MVN",
            _called("mvn", axes, variance, 0.03, mode),
            [
                IMAGE,
            ],
            open=(0, 2),
        )
        for axes in ((1, -1), (2, 3))
        for variance, mode in (
            (True, "inside_sqrt"),
            (True, "outside_sqrt"),
            (False, "inside_sqrt"),
        )
    ),
    Made(
        "GroupNormalization",
        lambda x, s, b: _called("group_normalization")(x, s, b, 2, 0.02),
        [_normal(2, 4, 3, 5), LARGE[:, 0], SIGNED[:, 0]],
    ),
    *(
        Made(
            f"ReduceLogical{kind}",
            _called(f"reduce_logical_{kind.lower()}", axes, keep_dims=keeps),
            [feed],
            open=free,
        )
        for kind in ("And", "Or")
        for axes, keeps in (((1,), True), ((-1, 0), False))
        for feed, free in ((SIGNED > -4, (0,)), (SIGNED > 4, (0,)), (SIGNED[:, :0] > 0, (1,)))
    ),
    *(
        Made("CumSum", _called("cum_sum", _const_of(axis), exclusive, reverse), [SIGNED])
        for axis, exclusive, reverse in ((0, True, False), (-1, False, True), (1, True, True))
    ),
    *(
        Made("DepthToSpace", _called("depth_to_space", mode, 2), [DEEP])
        for mode in ("blocks_first", "depth_first")
    ),
    Made("SpaceToDepth", _called("space_to_depth", "blocks_first", 2), [DEEP]),
    *(
        Made("Roll", _called("roll", shift, axes), [SIGNED])
        for shift, axes in (
            ((1,), (0,)),
            ((-7, 3), (0, -1)),
            ((4, 2), (1, 1)),
        )
    ),
    *(
        Made("NonZero", _called("non_zero", output_type=kind), [SIGNED * (SIGNED > 0)])
        for kind in ("i32", "i64")
    ),
    *(
        Made(
            "FakeQuantize",
            _called("fake_quantize", *ends, levels),
            [feed],
            open=free,
        )
        for levels, ends, feed, free in (
            (256, _ends((), -1.3, 2.1, -0.7, 1.9), SIGNED, (0, 1)),
            (2, _ends((1,), -3.1, 4.2, 1, -2.5), SIGNED, (0, 1)),
            (17, _ends((), -3.7, 4.5, 1, -2.5), SIGNED, (0, 1)),
            (16, _ends((3, 1, 1), -0.9, 1.1, [[[-2.2]], [[-1]], [[0.3]]], 2), IMAGE, (0, 2, 3)),
            (5, _ends((), 0, 4, 0, 4), STEPS, (0,)),  # half a step goes to the even one
        )
    ),
    Made("Einsum", lambda x, y: _called("einsum")([x, y], "ij,kj->ik"), [SIGNED, LARGE]),
    Made(
        "GatherElements",
        _called("gather_elements", 1),
        [SIGNED, np.array([[0, 2], [1, 1], [5, 3], [4, 0]])],
    ),
    Made(
        "GatherND",
        _called("gather_nd", 1),
        [IMAGE, np.array([[[1, 2], [0, 3]], [[2, 0], [1, 1]]])],
        open=(),
    ),
    *(
        Made(
            "ScatterElementsUpdate",
            _called("scatter_elements_update", _const_of(axis), reduction),
            [SIGNED, np.array([[0, 2], [1, 3], [2, 1]]), SMALL[:3, :2]],
        )
        for axis in (0, -1)
        for reduction in ("none", "sum", "prod", "min", "max")
    ),
    *(
        Made(
            "ScatterNDUpdate",
            _called("scatter_nd_update", opset=opset, **named),
            [SIGNED, np.array([[0, 2], [1, 3], [3, 1]]), SMALL[:3, 0]],
        )
        for opset, named in (
            ("opset4", {}),
            ("opset15", {"reduction": "sum"}),
            ("opset15", {"reduction": "max"}),
        )
    ),
    *(
        Made(
            "OneHot",
            _called("one_hot", _const_of(4), *(_const_of(n, np.float32) for n in (2.5, -1)), axis),
            [np.array([[0, 3, 4], [-1, 2, 1]])],
        )
        for axis in (0, 1, -1)
    ),
    *(
        Made(
            "TopK",
            _called("topk", _const_of(3), axis, mode, sort, kind, opset=opset),
            [SIGNED],
            outputs=2,
        )
        for axis, mode, sort, kind, opset in (
            (-1, "max", "value", "i64", "opset3"),
            (1, "min", "value", "i32", "opset3"),
            (0, "max", "value", "i64", "opset3"),
        )
    ),
    *(
        Made(
            "TopK",
            _called("topk", _const_of(3), axis, mode, "value", "i64", stable=True),
            [TIED],
            outputs=2,
        )
        for axis in (0, 1)
        for mode in ("max", "min")
    ),
    *(
        Made(
            "ScaledDotProductAttention",
            _called("scaled_dot_product_attention", causal=causal),
            feeds,
            open=(0,),
        )
        for causal, feeds in (
            (False, [QUERY, KEY, KEY[..., :3]]),
            (True, [QUERY, KEY, KEY[..., :3]]),
            (False, [QUERY, KEY, KEY, _normal(4, 5)]),
            (False, [QUERY, KEY, KEY, RANDOM.standard_normal((2, 4, 5)) > -1]),
            (False, [QUERY, KEY, KEY, np.float32(0), np.float32(0.7)]),
            (True, [QUERY, KEY, KEY, np.float32(3), np.float32(0.7)]),
        )
    ),
]
"""Activations, normalisation, and layers that move or choose elements."""

WINDOWS = [
    *(
        Made(
            "MaxPool",
            lambda x, given=given, k=kernel, name=opset: _called("max_pool", opset=name)(
                x, *given[:4], [2, k], *given[4:]
            ),
            [feed],
            open=(),
        )
        for feed in (IMAGE,)
        for kernel, given, opset in (
            (3, ([2, 1], [1, 1], [1, 1], [0, 1], "floor"), "opset8"),
            (3, ([2, 2], [1, 2], [0, 0], [1, 0], "floor", "same_upper"), "opset8"),
            (3, ([2, 2], [1, 2], [0, 0], [1, 0], "ceil", "same_lower"), "opset8"),
            (3, ([3, 2], [1, 1], [0, 0], [1, 0], "floor", "valid"), "opset8"),
            (3, ([2, 2], [1, 1], [1, 1], [1, 1], "ceil_torch"), "opset14"),
            (2, ([1, 2], [1, 1], [0, 0], [0, 0], "ceil"), "opset8"),
        )
    ),
    *(
        Made(
            "AvgPool",
            _called("avg_pool", [3, 4], [0, 0], [0, 0], [2, 3], *given, opset="opset14"),
            [IMAGE],
            open=(),
        )
        for given in ((True, "floor", "same_upper"), (True, "ceil_torch", "same_lower"))
    ),
    *(
        Made(
            "AvgPool",
            _called("avg_pool", *given, False, rounding, opset="opset14"),
            [IMAGE],
            open=(),
        )
        for rounding in ("ceil", "ceil_torch")
        for given in (
            ([3, 2], [1, 1], [0, 1], [2, 3]),  # the last window lies beyond the padding, too
            ([2, 3], [0, 1], [0, 0], [2, 3]),
            ([2, 3], [0, 0], [0, 0], [2, 3]),
        )
    ),
    Made(
        "AvgPool",
        _called("avg_pool", [3, 3], [0, 0], [0, 0], [3, 3], False, "ceil_torch", opset="opset14"),
        [IMAGE],
        open=(0, 2, 3),
    ),
    Made(  # a last window in the padding alone, which is left out
        "AvgPool",
        _called("avg_pool", [3, 3], [1, 1], [1, 1], [2, 2], False, "ceil_torch", opset="opset14"),
        [_normal(1, 2, 7, 8)],
        open=(),
    ),
    *(
        Made(
            "MaxPool",
            _called(
                "max_pool",
                *([2, 2], [1, 2], [1, 0], [0, 1], [3, 2], "floor", "explicit", kind, axis),
                opset="opset14",
            ),
            [IMAGE],
            outputs=2,
        )
        for axis, kind in ((0, "i64"), (1, "i32"), (2, "i64"), (-1, "i32"))
    ),
    Made(
        "MaxPool",
        lambda x: _called("max_pool", opset="opset1")(x, [2, 1], [1, 0], [0, 1], [2, 3]),
        [IMAGE],
        open=(0, 2, 3),
    ),
    *(
        Made(
            "AvgPool",
            lambda x, given=given, name=opset: _called("avg_pool", opset=name)(x, *given),
            [IMAGE],
            open=(0, 2, 3),
        )
        for opset in ("opset1", "opset14")
        for given in (
            ([2, 1], [1, 1], [0, 1], [2, 3], True),
            ([2, 1], [1, 1], [0, 1], [2, 3], False),
            ([2, 2], [0, 1], [0, 1], [2, 3], True, "floor", "same_upper"),
            ([2, 2], [0, 1], [0, 1], [2, 3], True, "floor", "same_lower"),
            ([2, 2], [0, 1], [0, 1], [2, 3], True, "floor", "valid"),
            ([1, 2], [0, 0], [0, 0], [2, 2], True, "ceil"),
        )
    ),
    Made(
        "Convolution",
        lambda x, w: _called("convolution")(x, w, [2, 1], [0, 0], [0, 0], [1, 2], "same_lower"),
        [IMAGE, FILTERS],
        open=(),
    ),
    Made(
        "GroupConvolution",
        lambda x, w: _called("group_convolution")(x, w, [2, 1], [1, 0], [1, 2], [1, 1]),
        [DEEP, _normal(2, 3, 4, 3, 2)],
        open=(),
    ),
    Made(
        "ConvolutionBackpropData",
        lambda x, w: _called("convolution_backprop_data")(
            x,
            w,
            [2, 1],
            pads_begin=[1, 0],
            pads_end=[1, 2],
            dilations=[1, 2],
            output_padding=[1, 0],
        ),
        [IMAGE, _normal(3, 4, 3, 3)],
        open=(),
    ),
    Made(
        "GroupConvolutionBackpropData",
        lambda x, w: _called("group_convolution_backprop_data")(
            x, w, [2, 1], pads_begin=[1, 0], pads_end=[1, 1], dilations=[1, 1]
        ),
        [DEEP, _normal(2, 4, 3, 3, 2)],
        open=(),
    ),
    *(
        Made(
            "Interpolate",
            _called(
                "interpolate",
                given,
                mode,
                by,
                axes=axes,
                coordinate_transformation_mode=position,
                **named,
            ),
            [IMAGE],
            open=(),
        )
        for given, by, axes in (
            ((7, 5), "sizes", _const_of((2, 3))),
            ((13, 17), "sizes", _const_of((2, 3))),
            (_floats([1.83, 0.65]), "scales", _const_of((2, 3))),
            (_floats([1, 1, 2, 3]), "scales", None),
        )
        for mode, named in (
            ("linear_onnx", dict[str, Any]()),
            ("linear", {}),
            ("cubic", {"cube_coeff": -0.6}),
            *(
                ("nearest", {"nearest_mode": each})
                for each in ("floor", "ceil", "round_prefer_floor", "round_prefer_ceil")
            ),
        )
        for position in ("half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel")
        if position != "align_corners" or named.get("nearest_mode") not in ("floor", "ceil")
    ),
    *(
        Made(
            "Interpolate",
            lambda x, by=by: _called("interpolate", opset="opset10")(
                x,
                _const([7, 5]),
                _const([1.83, 0.65], np.float32),
                mode="nearest",
                shape_calculation_mode=by,
                axes=_const([2, 3]),
            ),
            [IMAGE],
            open=(),
        )
        for by in ("sizes", "scales")
    ),
    *(
        Made("Pad", _called("pad", (1, 0), (2, 3), mode), [SIGNED])
        for mode in ("constant", "edge", "reflect")
    ),
    Made(
        "Pad",
        lambda x: _called("pad", opset="opset12")(
            x, _const([1, -2]), _const([-1, 3]), "constant", _const(7, np.float32)
        ),
        [SIGNED],
    ),
    Made(
        "Pad",
        lambda x, a, b, v: _called("pad", opset="opset1")(x, a, b, "constant", v),
        [SIGNED.astype(np.int32), np.array([1, 0]), np.array([0, 2], np.int32), np.int32(3)],
        open=(),
    ),
]
"""Layers that slide a window, resize or pad."""

RECURRENT = [
    Made(
        f"{kind}Sequence",
        partial(_recurrent, kind, direction, named),
        _recurrent_feeds(kind, direction),
        outputs=3 if kind == "LSTM" else 2,
        is_run="activations" not in named,
    )
    for kind, named in (
        ("LSTM", {}),
        ("LSTM", {"activations": ["tanh", "relu", "sigmoid"]}),
        ("GRU", {}),
        ("GRU", {"linear_before_reset": True}),
        ("RNN", {}),
        ("RNN", {"activations": ["relu"]}),
    )
    for direction in ("forward", "reverse", "bidirectional")
]
"""Layers that go through a sequence."""

MADE = [
    *(
        _unary(name)
        for name in (
            *("Abs", "Acos", "Asin", "Atan", "Cos", "Cosh", "Erf", "Exp", "Floor", "Log"),
            *("ReLU", "Sigmoid", "Sign", "Sin", "Sinh", "Sqrt", "Tan", "Tanh", "Asinh", "Atanh"),
            *("Ceiling", "Negative", "SoftPlus", "HSwish", "Swish"),
        )
    ),
    _unary("Acosh", feed=LARGE),
    _unary("LogicalNot", "logical_not", SIGNED > 0),
    Made("Identity", _called("identity", opset="opset16"), [SIGNED]),
    *_binary("Add", "add"),
    *_binary("Subtract", "subtract"),
    *_binary("Multiply", "multiply"),
    *_binary("Divide", "divide"),
    *_binary("Maximum", "maximum"),
    *_binary("Minimum", "minimum"),
    *_binary("Power", "power"),
    *_binary("Mod", "mod"),
    *_binary("FloorMod", "floor_mod"),
    Made("FloorMod", _called("floor_mod"), [SIGNED, SIGNED[::-1] / 3], open=()),
    *_binary("SquaredDifference", "squared_difference"),
    *_binary("Equal", "equal"),
    *_binary("NotEqual", "not_equal"),
    *_binary("Less", "less"),
    *_binary("LessEqual", "less_equal"),
    *_binary("Greater", "greater"),
    *_binary("GreaterEqual", "greater_equal"),
    *_binary("LogicalAnd", "logical_and", floats=False, booleans=True),
    *_binary("LogicalOr", "logical_or", floats=False, booleans=True),
    *_binary("LogicalXor", "logical_xor", floats=False, booleans=True),
    Made("Broadcast", _called("broadcast", (2, 1, 1), broadcast_spec="BIDIRECTIONAL"), [SIGNED]),
    Made("Broadcast", _called("broadcast", (3, 4, 6)), [SIGNED], open=()),
    Made("Clamp", _called("clamp", -0.5, float("inf")), [SIGNED]),
    Made("Clamp", _called("clamp", -1, 3), [SIGNED.astype(np.int32)]),
    Made("Concat", lambda x, y: _called("concat")([x, y], -1), [SIGNED, SMALL]),
    *(
        Made("Convert", _called("convert", kind), [LARGE])
        for kind in ("i32", "f16", "boolean", "u8", "i64")
    ),
    Made(
        "Convolution",
        lambda x, w: _called("convolution")(x, w, [2, 1], [1, 0], [1, 2], [1, 1]),
        [IMAGE, _normal(4, 3, 3, 3)],
        open=(),
    ),
    Made("Elu", _called("elu", 0.5), [SIGNED]),
    Made("Gather", lambda x, at: _called("gather")(x, at, _const(-1)), [SIGNED, np.array([0, -1])]),
    Made("LogSoftmax", _called("log_softmax", -1), [SIGNED]),
    *(
        Made("MatMul", _called("matmul", transpose_a=a, transpose_b=b), [left, right], open=())
        for a, left in ((False, SIGNED), (True, SIGNED.T))
        for b, right in ((False, LARGE.T), (True, LARGE))
    ),
    Made("MatMul", _called("matmul", transpose_a=True, transpose_b=False), [SIGNED[:, 0], LARGE]),
    Made(
        "Range",
        lambda x: _called("range", output_type="i32")(
            _const(1, np.int32),
            _called("squeeze")(
                _called("gather")(
                    _called("shape_of", output_type="i32")(x), _const([0]), _const(0)
                ),
                _const([0]),
            ),
            _const(1, np.int32),
        ),
        [SIGNED],
        open=(),
    ),
    Made(
        "Range",
        _called("range", output_type="i64"),
        [np.array(3), np.array(-8), np.array(-2)],
    ),
    Made(
        "Range",
        _called("range", output_type="i64"),
        [np.array(3, np.int32), np.array(-8), np.array(-2, np.int32)],
    ),
    *(
        Made(f"Reduce{kind}", _called(f"reduce_{kind.lower()}", axes, keep_dims=keeps), [SMALL])
        for kind in ("L1", "L2", "Max", "Mean", "Min", "Prod", "Sum")
        for axes, keeps in (((1,), True), ((-1, 0), False))
    ),
    Made("Reshape", _called("reshape", (0, 3, 2), special_zero=True), [SIGNED]),
    Made(
        "Reshape",
        _called("reshape", special_zero=False),
        [SIGNED, np.array([3, -1], np.int32)],
        open=(),
    ),
    Made("Round", _called("round"), [np.round(SIGNED * 2) / 2]),
    Made("Select", _called("select"), [SIGNED > 0, SIGNED, SMALL]),
    Made("Select", _called("select"), [SIGNED > 0, SMALL[:1] > 0.5, LARGE[:, :1] > 5]),
    Made("ShapeOf", _called("shape_of", output_type="i32"), [SIGNED]),
    Made("Slice", _called("slice", (1, 5), (100, 0), (1, -2), (0, 1)), [SIGNED]),
    Made("Slice", _called("slice", (1,), (-1,), (1,)), [SIGNED]),
    Made("SoftMax", _called("softmax", 1), [SIGNED]),
    Made("Squeeze", _called("squeeze", (1,)), [SIGNED[:, None]]),
    Made("Squeeze", _called("squeeze", (1, 0, -1)), [SIGNED[None, :, None]], open=()),
    Made("Squeeze", _called("squeeze", (0,)), [SIGNED], open=()),
    *(
        Made(
            "StridedSlice",
            _called("strided_slice", *bounds, *masks, [0] * len(last), last),
            [SIGNED],
        )
        for bounds, masks, last in (
            (((1, 1), (3, 4), (1, 1)), ([0, 0], [0, 0]), [0, 0]),
            (((1, 1), (3, 4), (1, 1)), ([1, 0], [0, 1]), [0, 0]),
            (((1,), (3,), (1,)), ([0], [0]), [0]),
            (((-1, 5), (-5, 0), (-1, -2)), ([1, 1], [1, 0]), [0, 0]),
            (((0, -1), (0, 0), (1, 1)), ([1, 0], [1, 0]), [0, 1]),
        )
    ),
    Made("Tile", _called("tile", (2, 3)), [SIGNED]),
    Made("Transpose", _called("transpose", (1, 0)), [SIGNED]),
    Made("Unsqueeze", _called("unsqueeze", (0, -1)), [SIGNED]),
    *NORMAL,
    *WINDOWS,
    *RECURRENT,
]


def save(made: Made, path: Path) -> None:
    import openvino as ov
    from openvino import opset8 as ops

    inputs = []
    for number, feed in enumerate(made.feeds):
        array = np.asarray(feed)
        dims = [-1 if axis in made.open else size for axis, size in enumerate(array.shape)]
        inputs.append(ops.parameter(ov.PartialShape(dims), array.dtype.type, name=f"x{number}"))
    layer = made.make(*inputs)
    results = [ops.result(layer.output(place)) for place in range(made.outputs)]
    model = ov.Model(results, inputs, "layer")
    ov.save_model(model, path, compress_to_fp16=False)


WRITTEN = Path(__file__).parents[2] / "data" / "layers.json.gz"
_MOST_WRITTEN = 64


def sampled(output: Any) -> list[Any]:
    """Return the type of an output, its shape, and 64 elements at most, at equal distances."""
    array = np.asarray(output)
    flat = array.reshape(-1)[:: -(-array.size // _MOST_WRITTEN) | 1]
    is_short = flat.dtype == np.float32  # a double has more digits
    elements = [float(str(each)) for each in flat] if is_short else flat.tolist()
    return [str(array.dtype), list(array.shape), elements]


def write() -> None:
    """Write the files of all layers, and what OpenVINO gives for each."""
    from tests.model.openvino_ir.engine import run_all_in_openvino

    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder, f"{place}.xml") for place in range(len(MADE))]
        for made, path in zip(MADE, paths, strict=True):
            save(made, path)
        pairs = zip(MADE, paths, strict=True)
        found = run_all_in_openvino([(path, [made.feeds]) for made, path in pairs])
        entries = [
            {
                "id": made.id,
                "xml": path.read_text("utf-8"),
                "bin": b64encode(path.with_suffix(".bin").read_bytes()).decode(),
                "outputs": [sampled(each) for each in outputs],
            }
            for made, path, (outputs,) in zip(MADE, paths, found, strict=True)
        ]
    WRITTEN.write_bytes(gzip.compress(json.dumps(entries).encode(), mtime=0))


def written() -> list[dict[str, Any]]:
    """Read what `write` wrote."""
    entries: list[dict[str, Any]] = json.loads(gzip.decompress(WRITTEN.read_bytes()))
    return entries


def save_written(entry: dict[str, Any], path: Path) -> None:
    """Save the files of a layer that was written."""
    path.write_text(entry["xml"], "utf-8")
    path.with_suffix(".bin").write_bytes(b64decode(entry["bin"]))


if __name__ == "__main__":
    write()
