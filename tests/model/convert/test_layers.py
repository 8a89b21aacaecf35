"""An OpenVINO IR that becomes an ONNX model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import onnx
import pytest

import tensorsplit as ts
from tensorsplit.model.convert.layer_rules import RULES
from tests.model.ir_files import IrFile, X
from tests.model.openvino_ir.engine import run_in_openvino
from tests.model.openvino_ir.random_irs import random_ir
from tests.refusals import refused

RANDOM = np.random.default_rng(7)
SMALL = RANDOM.uniform(0.1, 0.9, (4, 6)).astype(np.float32)
LARGE = RANDOM.uniform(1.1, 9, (4, 6)).astype(np.float32)
SIGNED = RANDOM.uniform(-9, 9, (4, 6)).astype(np.float32)
IMAGE = RANDOM.standard_normal((2, 3, 9, 8)).astype(np.float32)


class Made(NamedTuple):
    """A layer: how OpenVINO's Python makes it, and what its inputs are fed."""

    type: str
    make: Callable[..., Any]
    feeds: Sequence[Any]
    open: tuple[int, ...] = (0,)  # the axes of the inputs whose length is not declared

    @property
    def id(self) -> str:
        return f"{self.type}-{'-'.join(str(np.asarray(feed).dtype) for feed in self.feeds)}"


def _const(values: Any, kind: Any = np.int64) -> Any:
    from openvino import opset8

    return opset8.constant(np.array(values, kind))


def _called(name: str, *given: Any, opset: str = "opset13", **named: Any) -> Callable[..., Any]:
    """Return what makes a layer of tensors, and of what follows them; tuples are constants."""

    def make(*tensors: Any) -> Any:
        others = [_const(each) if isinstance(each, tuple) else each for each in given]
        return getattr(import_module(f"openvino.{opset}"), name)(*tensors, *others, **named)

    return make


def _unary(type: str, name: str = "", feed: Any = SMALL) -> Made:
    return Made(type, _called(name or type.lower()), [feed])


def _binary(type: str, name: str, *, floats: bool = True, booleans: bool = False) -> list[Made]:
    pairs: list[Any] = [(LARGE, LARGE[:1] * 0.7)] if floats else []
    pairs += [(SIGNED > 0, SIGNED[:1] > 1)] if booleans else []
    if not booleans:
        pairs.append((LARGE.astype(np.int32), LARGE[0].astype(np.int32)))
    return [Made(type, _called(name), pair, open=()) for pair in pairs]


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
    *_binary("FloorMod", "floor_mod", floats=False),
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
        [IMAGE, RANDOM.standard_normal((4, 3, 3, 3)).astype(np.float32)],
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
        _called("range", output_type="i64"),
        [np.array(3), np.array(-8), np.array(-2)],
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
    Made("ShapeOf", _called("shape_of", output_type="i32"), [SIGNED]),
    Made("Slice", _called("slice", (1, 5), (100, 0), (1, -2), (0, 1)), [SIGNED]),
    Made("Slice", _called("slice", (1,), (-1,), (1,)), [SIGNED]),
    Made("SoftMax", _called("softmax", 1), [SIGNED]),
    Made("Squeeze", _called("squeeze", (1,)), [SIGNED[:, None]]),
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
]


def test_each_rule_has_a_layer_here() -> None:
    assert {made.type for made in MADE} == set(RULES)


def _save(made: Made, path: Path) -> None:
    import openvino as ov
    from openvino import opset8 as ops

    inputs = []
    for number, feed in enumerate(made.feeds):
        array = np.asarray(feed)
        dims = [-1 if axis in made.open else size for axis, size in enumerate(array.shape)]
        inputs.append(ops.parameter(ov.PartialShape(dims), array.dtype.type, name=f"x{number}"))
    model = ov.Model([ops.result(made.make(*inputs).output(0))], inputs, "layer")
    ov.save_model(model, path, compress_to_fp16=False)


@pytest.mark.engine("openvino", "onnxruntime")
@pytest.mark.parametrize("made", MADE, ids=lambda made: made.id)
def test_a_layer_gives_what_openvino_gives(made: Made, tmp_path: Path) -> None:
    from onnxruntime import InferenceSession

    _save(made, tmp_path / "model.xml")
    model = ts.convert(tmp_path / "model.xml", 18)
    onnx.checker.check_model(model, full_check=True)
    ((expected,),) = run_in_openvino(tmp_path / "model.xml", [made.feeds])
    feeds = {f"x{number}": np.asarray(feed) for number, feed in enumerate(made.feeds)}
    (ours,) = ts.run(model, feeds).values()
    (theirs,) = InferenceSession(model.SerializeToString()).run(None, feeds)
    for found in (ours, theirs):
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6, strict=True)


@pytest.mark.engine("openvino", "onnxruntime")
@pytest.mark.parametrize("seed", range(700, 720))
def test_splits_keep_their_meaning(seed: int, tmp_path: Path) -> None:
    made = random_ir(seed)
    made.axis_is_fed = False  # which ONNX's Split does not take
    for case in made.cases:
        del case.feeds[1 : len(case.feeds) - (made.form == "fed")]
    made.save(tmp_path / "model.xml")
    try:
        model = ts.convert(tmp_path / "model.xml", 18)
    except ts.SplitError:
        assert all(case.parts is None for case in made.cases)
        return
    onnx.checker.check_model(model, full_check=True)
    for case in made.cases:
        feeds = dict(zip(("x", "lengths"), case.feeds, strict=False))
        for engine in ("tensorsplit", "onnxruntime"):
            if case.parts is None:
                with pytest.raises(ts.SplitError):
                    ts.run(model, feeds, engine=engine)
                continue
            found = ts.run(model, feeds, engine=engine).values()
            for part, given in zip(case.parts, found, strict=True):
                np.testing.assert_array_equal(given, part, strict=True)


def cut(lengths: tuple[int, ...] = (), *, element: str = "i64", shape: str = "?,8") -> IrFile:
    """``x`` cut into two parts by lengths, or by those that are fed."""
    ir = IrFile()
    x = ir.parameter("x", "f32", shape)
    given = ir.int64(*lengths) if lengths else ir.parameter("lengths", element, "2")
    for part in ir.variadic_split(x, ir.int64(-2, scalar=True), given, 2, ("a", "b")):
        ir.result(part)
    return ir


@pytest.mark.parametrize("opset", [9, 13, 18, 21])
def test_a_remainder_is_what_the_others_leave(opset: int, tmp_path: Path) -> None:
    shape = "6,8" if opset < 10 else "?,8"
    model = ts.convert(cut((-1, 2), shape=shape).save(tmp_path), opset)
    assert {each.domain: each.version for each in model.opset_import} == {"": opset}
    found = ts.run(model, {"x": X})
    np.testing.assert_array_equal(found["a"], X[:4])
    np.testing.assert_array_equal(found["b"], X[4:])
    if opset >= 10:
        with pytest.raises(ts.SplitError):
            ts.run(model, {"x": X[:1]})


@pytest.mark.parametrize("element", ["i64", "i32", "u8"])
def test_lengths_that_are_fed_are_checked(element: str, tmp_path: Path) -> None:
    model = ts.convert(cut(element=element).save(tmp_path), 18)
    kind = {"i64": np.int64, "i32": np.int32, "u8": np.uint8}[element]
    found = ts.run(model, {"x": X, "lengths": np.array([2, 4], kind)})
    np.testing.assert_array_equal(found["b"], X[2:])
    with pytest.raises(ts.SplitError):
        ts.run(model, {"x": X, "lengths": np.array([2, 5], kind)})
    if element != "u8":
        found = ts.run(model, {"x": X, "lengths": np.array([-1, 1], kind)})
        np.testing.assert_array_equal(found["a"], X[:5])


def test_a_layer_without_counterpart_is_refused_by_its_name(tmp_path: Path) -> None:
    ir = IrFile()
    ir.result(ir.layer("NMS", (ir.parameter("x", "f32", "?"),), 1, name="boxes")[0])
    with refused("TS514", "layer 'boxes' (id 1)", "type NMS (opset1)"):
        ts.convert(ir.save(tmp_path), 18)


@pytest.mark.parametrize(
    ("type", "data", "version", "word"),
    [
        ("Relu", "", "opset1", "none is known"),
        ("ReLU", "", "opset9", "version"),
        ("ReLU", '<data slope="1"/>', "opset1", "slope"),
        ("SoftMax", "", "opset8", "axis is missing"),
        ("SoftMax", '<data axis="first"/>', "opset8", "axis is 'first'"),
        ("Clamp", '<data min="low" max="1"/>', "opset1", "min is 'low'"),
        ("Convert", '<data destination_type="nf4"/>', "opset1", "destination_type is 'nf4'"),
        ("Round", '<data mode="half_away_from_zero"/>', "opset5", "halves"),
        ("LogicalNot", "", "opset1", "Not"),
        ("ShapeOf", '<data output_type="f32x"/>', "opset3", "output_type"),
    ],
)
def test_what_is_not_sure_to_be_the_same_is_refused(
    type: str, data: str, version: str, word: str, tmp_path: Path
) -> None:
    ir = IrFile()
    x = ir.parameter("x", "f32", "2,3")
    ir.result(ir.layer(type, (x,), 1, data, name="odd", version=version)[0])
    with refused("TS514", "layer 'odd' (id 1)", word):
        ts.convert(ir.save(tmp_path), 18)


def test_an_axis_known_only_at_run_time_is_refused(tmp_path: Path) -> None:
    ir = IrFile()
    x, axis = ir.parameter("x", "f32", "4,4"), ir.parameter("axis", "i64", "")
    for part in ir.split(x, axis, 2):
        ir.result(part)
    with refused("TS514", "layer 'cut' (id 2)", "axis"):
        ts.convert(ir.save(tmp_path), 18)


@pytest.mark.parametrize(
    ("before", "after", "code"),
    [
        ('from-layer="0"', 'from-layer="77"', "TS502"),
        ('to-port="2"', 'to-port="9"', "TS502"),
        ('offset="16"', 'offset="800"', "TS504"),
        ("</net>", "", "TS501"),
        ('<edge from-layer="0" from-port="0"', '<edge from-layer="3" from-port="3"', "TS502"),
    ],
)
def test_a_broken_file_is_refused(before: str, after: str, code: str, tmp_path: Path) -> None:
    ir = cut((2, 4))
    with refused(code):
        ts.convert(ir.save(tmp_path, ir.text.replace(before, after)), 18)


def test_large_constants_stay_in_the_bin(tmp_path: Path) -> None:
    ir = IrFile()
    values = RANDOM.standard_normal((8, 20_000)).astype(np.float32)
    x, weights = ir.parameter("x", "f32", "?,8"), ir.constant(values.tobytes(), "f32", "8,20000")
    small = ir.constant(np.ones(1, np.float32).tobytes(), "f32", "1")
    (product,) = ir.layer("MatMul", (x, weights), 1, name="product")
    ir.result(ir.layer("Add", (product, small), 1, names=["y"])[0])
    model = ts.convert(ir.save(tmp_path), 18)
    outside = [each for each in model.graph.initializer if each.external_data]
    assert [each.dims for each in outside] == [[8, 20000]]
    onnx.save(model, tmp_path / "model.onnx")
    (found,) = ts.run(tmp_path / "model.onnx", {"x": X}).values()
    np.testing.assert_allclose(found, X @ values + 1, rtol=1e-4, atol=1e-3)


def test_integers_are_divided_as_python_does(tmp_path: Path) -> None:
    ir = IrFile()
    x, y = ir.parameter("x", "i32", "?"), ir.parameter("y", "i32", "?")
    ir.result(ir.layer("Divide", (x, y), 1)[0])
    model = ts.convert(ir.save(tmp_path), 18)
    left, right = np.array([7, -7, 7, -7, 6, -6]), np.array([2, 2, -2, -2, -3, 3])
    feeds = {"x": left.astype(np.int32), "y": right.astype(np.int32)}
    (found,) = ts.run(model, feeds).values()
    np.testing.assert_array_equal(found, left // right)
