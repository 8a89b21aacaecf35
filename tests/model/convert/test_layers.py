"""An OpenVINO IR that becomes an ONNX model."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

import tensorsplit as ts
from tensorsplit.model.convert.layer_bodies import LAYERS_WITH_BODIES
from tensorsplit.model.convert.layer_rules import RULES
from tests.model.convert.made_layers import (
    MADE,
    RECURRENT,
    Made,
    sampled,
    save,
    save_written,
    written,
)
from tests.model.ir_files import IrFile, X
from tests.model.openvino_ir.engine import run_all_in_openvino, run_in_openvino
from tests.model.openvino_ir.random_irs import random_ir
from tests.refusals import refused

RANDOM = np.random.default_rng(7)


def test_each_rule_has_a_layer_here() -> None:
    assert {made.type for made in MADE} == set(RULES)


def test_the_page_of_models_lists_the_layers() -> None:
    text = (Path(__file__).parents[3] / "docs" / "models.md").read_text("utf-8")
    table = text[text.index("| layers | types |") : text.index("\nThe tools cover")]
    splits = ("Split", "VariadicSplit")
    assert sorted(re.findall("`([^`]*)`", table)) == sorted({*RULES, *LAYERS_WITH_BODIES, *splits})


@pytest.fixture(scope="module")
def in_openvino(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[Path, Any]]:
    """The files of all layers, and what OpenVINO gives for each."""
    folder = tmp_path_factory.mktemp("layers")
    paths = [folder / f"{place}.xml" for place in range(len(MADE))]
    for made, path in zip(MADE, paths, strict=True):
        save(made, path)
    found = run_all_in_openvino(
        [(path, [made.feeds]) for made, path in zip(MADE, paths, strict=True)]
    )
    return [(path, given) for path, (given,) in zip(paths, found, strict=True)]


WRITTEN = written()


def same(found: Any, expected: Any) -> None:
    """Compare two outputs as `sampled` has them."""
    assert found[:2] == expected[:2]
    if found[0].startswith("float"):
        np.testing.assert_allclose(found[2], expected[2], rtol=1e-5, atol=4e-6)
    else:
        assert found[2] == expected[2]


@pytest.mark.parametrize("place", range(len(MADE)), ids=[made.id for made in MADE])
def test_a_layer_gives_what_openvino_gave(place: int, tmp_path: Path) -> None:
    made, entry = MADE[place], WRITTEN[place]
    assert made.id == entry["id"], "run python -m tests.model.convert.made_layers"
    path = tmp_path / "layer.xml"
    save_written(entry, path)
    model = ts.convert(path, 18)
    onnx.checker.check_model(model, full_check=True)
    # The reference of older onnx runs one direction, and takes no index from the back
    is_wrong = made.type.endswith("Sequence") or made.type.startswith("Scatter")
    if made.is_run and not (is_wrong and onnx.defs.onnx_opset_version() < 26):
        feeds = {f"x{number}": np.asarray(feed) for number, feed in enumerate(made.feeds)}
        found = ts.run(model, feeds).values()
        for value, wanted in zip(found, entry["outputs"], strict=True):
            same(sampled(value), wanted)


@pytest.mark.engine("openvino", "onnxruntime")
@pytest.mark.parametrize("place", range(len(MADE)), ids=[made.id for made in MADE])
def test_a_layer_gives_what_openvino_gives(place: int, in_openvino: list[tuple[Path, Any]]) -> None:
    from onnxruntime import InferenceSession

    made, (path, expected) = MADE[place], in_openvino[place]
    model = ts.convert(path, 18)
    onnx.checker.check_model(model, full_check=True)
    feeds = {f"x{number}": np.asarray(feed) for number, feed in enumerate(made.feeds)}
    found = [InferenceSession(model.SerializeToString()).run(None, feeds)]
    if made.is_run:
        found.append(list(ts.run(model, feeds).values()))
    for values in found:
        for value, wanted in zip(values, expected, strict=True):
            np.testing.assert_allclose(value, wanted, rtol=1e-5, atol=4e-6, strict=True)
    for known, wanted in zip(WRITTEN[place]["outputs"], expected, strict=True):
        same(sampled(wanted), known)


@pytest.mark.engine("openvino", "onnxruntime")
@pytest.mark.parametrize("engine", ["tensorsplit", "onnxruntime"])
@pytest.mark.parametrize("made", [each for each in RECURRENT if each.is_run], ids=lambda m: m.type)
def test_a_shorter_sequence_is_what_it_is_alone(made: Made, engine: Any, tmp_path: Path) -> None:
    """OpenVINO 2026.4 takes every sequence for as long as the data, against its own text."""
    save(made, tmp_path / "model.xml")
    x, *states, _ = made.feeds
    feeds = [x, *states, np.array([5, 3], np.int32)]
    named = {f"x{place}": feed for place, feed in enumerate(feeds)}
    found, *_ = ts.run(ts.convert(tmp_path / "model.xml", 18), named, engine=engine).values()
    alone = made._replace(
        feeds=[x[1:, :3], *(each[1:] for each in states), np.array([3], np.int32)]
    )
    save(alone, tmp_path / "alone.xml")
    ((expected, *_),) = run_in_openvino(tmp_path / "alone.xml", [alone.feeds])
    np.testing.assert_allclose(found[1:, :, :3], expected, rtol=1e-5, atol=4e-6)
    assert not found[1:, :, 3:].any()


@pytest.mark.parametrize("lengths", [(3, 3), (3, 1), (2, 2), (1, 3)])
def test_a_sequence_ends_where_its_constant_length_says(
    lengths: tuple[int, int], tmp_path: Path
) -> None:
    ir = IrFile()
    x, state = ir.parameter("x", "f32", "2,3,1"), ir.parameter("h", "f32", "2,1,1")
    weights = [ir.constant(np.float32(w).tobytes(), "f32", "1,1,1") for w in (0.7, -0.4)]
    biases = ir.constant(np.float32(0.1).tobytes(), "f32", "1,1")
    inputs = (x, state, ir.int64(*lengths), *weights, biases)
    data = '<data hidden_size="1" direction="forward"/>'
    ends = ir.layer("RNNSequence", inputs, 2, data, version="opset5")
    for end, name in zip(ends, "ab", strict=True):
        ir.result(end, name)
    fed = RANDOM.standard_normal((2, 3)).astype(np.float32)
    start = RANDOM.standard_normal(2).astype(np.float32)
    model = ts.convert(ir.save(tmp_path), 18)
    found = ts.run(model, {"x": fed[..., None], "h": start[:, None, None]})
    for row, length in enumerate(lengths):
        held, expected = start[row], np.zeros(3)
        for step in range(length):
            expected[step] = held = np.tanh(0.7 * fed[row, step] - 0.4 * held + 0.1)
        np.testing.assert_allclose(found["a"][row, 0, :, 0], expected, rtol=1e-5)
        np.testing.assert_allclose(found["b"][row, 0, 0], held, rtol=1e-5)


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


@pytest.mark.parametrize("shape", ["6,8", "?,8", "6,?", "?,?"])
@pytest.mark.parametrize("wanted", [(0, -1), (0, 4, -1), (-1, 0), (0, -1, 1)])
def test_a_reshape_beside_a_dimension_that_is_kept(
    wanted: tuple[int, ...], shape: str, tmp_path: Path
) -> None:
    ir = IrFile()
    operands = ir.parameter("x", "f32", shape), ir.int64(*wanted)
    ir.result(ir.layer("Reshape", operands, 1, '<data special_zero="true"/>', names=["y"])[0])
    made = ts.convert(ir.save(tmp_path), 18)
    kept = [X.shape[axis] if size == 0 else size for axis, size in enumerate(wanted)]
    np.testing.assert_array_equal(ts.run(made, {"x": X})["y"], X.reshape(kept))


@pytest.mark.parametrize("count", ["?", "", "1,1"])
def test_a_slice_of_an_unknown_number_of_axes_is_refused(count: str, tmp_path: Path) -> None:
    ir = IrFile()
    x, step = ir.parameter("x", "f32", "6,8"), ir.int64(1)
    bounds = [ir.parameter(name, "i64", count) for name in ("start", "stop")]
    ir.result(ir.layer("Slice", (x, *bounds, step), 1, name="cut", version="opset8")[0])
    with refused("TS514", "layer 'cut'", "not known how many elements its input 1 has"):
        ts.convert(ir.save(tmp_path), 18)


def test_a_layer_without_counterpart_is_refused_by_its_name(tmp_path: Path) -> None:
    ir = IrFile()
    ir.result(ir.layer("NMS", (ir.parameter("x", "f32", "?"),), 1, name="boxes")[0])
    with refused("TS514", "layer 'boxes' (id 1)", "type NMS (opset1)"):
        ts.convert(ir.save(tmp_path), 18)


def test_a_layer_with_an_output_too_many_is_refused(tmp_path: Path) -> None:
    ir = IrFile()
    operands = ir.parameter("x", "f32", "1,2,2,2"), ir.parameter("n", "i64", "4")
    for made in ir.layer("Tile", operands, 2, shape=(-1, -1, -1, -1)):
        ir.result(made)
    with refused("TS514", "type Tile", "more outputs"):
        ts.convert(ir.save(tmp_path), 18)


def test_an_input_of_any_element_type_is_refused_by_its_name(tmp_path: Path) -> None:
    ir = IrFile()
    ir.result(ir.layer("ReLU", (ir.parameter("x", "dynamic", "2,3"),), 1)[0])
    with refused("TS514", "'x'", "element type"):
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


FILTER = {"strides": "2,2", "pads_begin": "0,0", "pads_end": "0,0"}
WINDOW = {**FILTER, "kernel": "3,3"}
TOP = {"axis": "0", "mode": "max", "sort": "value", "index_element_type": "i32"}
RESIZED = {
    "mode": "linear",
    "shape_calculation_mode": "sizes",
    "coordinate_transformation_mode": "half_pixel",
}
ROUNDED = {**WINDOW, "rounding_type": "ceil", "pads_end": "0,2"}
STEPS = {"hidden_size": "3", "direction": "forward"}


@pytest.mark.parametrize(
    ("type", "version", "data", "inputs", "word"),
    [
        ("MaxPool", "opset1", ROUNDED, ["f32 1,2,7,6"], "in the padding"),
        ("MaxPool", "opset1", {**ROUNDED, "pads_end": "2,0"}, ["f32 1,2,?,?"], "in the padding"),
        ("MaxPool", "opset1", {**WINDOW, "rounding_type": "up"}, ["f32 1,2,7,7"], "is up"),
        ("MaxPool", "opset1", {**WINDOW, "auto_pad": "all"}, ["f32 1,2,7,7"], "auto_pad is 'all'"),
        (
            "MaxPool",
            "opset8",
            {**WINDOW, "auto_pad": "same_upper", "dilations": "1,2"},
            ["f32 1,2,7,?"],
            "dilations",
        ),
        *(
            (
                "AvgPool",
                "opset1",
                {
                    **ROUNDED,
                    "kernel": "1,1",
                    "pads_end": "0,0",
                    "auto_pad": "same_upper",
                    "exclude-pad": "true",
                },
                [f"f32 1,2,{shape}"],
                "in the padding",
            )
            for shape in ("4,4", "?,?")
        ),
        (
            "AvgPool",
            "opset16",
            {**WINDOW, "exclude-pad": "true", "dilations": "1,2"},
            ["f32 1,2,7,7"],
            "dilations",
        ),
        (
            "AvgPool",
            "opset14",
            {**WINDOW, "strides": "1,4", "auto_pad": "same_lower", "exclude-pad": "true"},
            ["f32 1,2,8,?"],
            "gaps between them",
        ),
        *(
            ("FakeQuantize", "opset1", {"levels": levels}, [data, *ends], word)
            for levels, data, ends, word in (
                ("1", "f32 2,3", ["f32 1"] * 4, "2 levels or more"),
                ("4", "i32 2,3", ["i32 1"] * 4, "numbers with a fraction"),
                ("4", "f32 1,3", ["f32 1"] * 3 + ["f32 2,1"], "input 4 may have more elements"),
                ("4", "f32 3", ["f32 1", "f32 1,1", "f32 1", "f32 1"], "input 2 may have more"),
                ("4", "f32 2,?", ["f32 3", "f32 1", "f32 1", "f32 1"], "input 1 may have more"),
            )
        ),
        (
            "AvgPool",
            "opset14",
            {**WINDOW, "rounding_type": "ceil", "exclude-pad": "false", "pads_begin": "0,1"},
            ["f32 1,2,?,7"],
            "counts its padding",
        ),
        ("AvgPool", "opset1", WINDOW, ["f32 1,2,7,7"], "exclude-pad is missing"),
        ("Convolution", "opset1", FILTER, ["f32 1,2,7,7", "f32 2,2,?,3"], "shape of its input 1"),
        (
            "ConvolutionBackpropData",
            "opset1",
            FILTER,
            ["f32 1,2,7,7", "f32 2,2,3,3", "i64 2"],
            "output's shape",
        ),
        (
            "ConvolutionBackpropData",
            "opset1",
            {**FILTER, "auto_pad": "same_lower"},
            ["f32 1,2,7,7", "f32 2,2,3,3"],
            "same_lower",
        ),
        ("Interpolate", "opset11", RESIZED, ["i32 1,2,7,7", "i64 4"], "integers"),
        ("Interpolate", "opset11", {**RESIZED, "pads_end": "0,1"}, ["f32 1,7", "i64 2"], "pads"),
        (
            "Interpolate",
            "opset11",
            {**RESIZED, "antialias": "true"},
            ["f32 1,7", "i64 2"],
            "filter",
        ),
        (
            "Interpolate",
            "opset11",
            {**RESIZED, "mode": "bilinear_pillow"},
            ["f32 1,7", "i64 2"],
            "mode",
        ),
        (
            "Interpolate",
            "opset11",
            {**RESIZED, "coordinate_transformation_mode": "tf_half_pixel_for_nn"},
            ["f32 1,7", "i64 2"],
            "tf_half_pixel_for_nn",
        ),
        (
            "Interpolate",
            "opset11",
            {**RESIZED, "mode": "nearest", "nearest_mode": "simple"},
            ["f32 1,7", "i64 2"],
            "simple",
        ),
        *(
            (
                "Interpolate",
                "opset11",
                {
                    **RESIZED,
                    "mode": "nearest",
                    "nearest_mode": nearest,
                    "coordinate_transformation_mode": "align_corners",
                },
                ["f32 1,7", "i64 2"],
                "fall on elements",
            )
            for nearest in ("floor", "ceil")
        ),
        (
            "Interpolate",
            "opset11",
            {
                **RESIZED,
                "shape_calculation_mode": "scales",
                "coordinate_transformation_mode": "align_corners",
            },
            ["f32 1,7", "f32 2"],
            "only at run time",
        ),
        ("Pad", "opset1", {"pad_mode": "symmetric"}, ["f32 3", "i64 1", "i64 1"], "symmetric"),
        ("Pad", "opset12", {"pad_mode": "edge"}, ["f32 3", "i64 1", "i64 1"], "run time"),
        ("TopK", "opset11", {**TOP, "sort": "index"}, ["f32 3", "i64 "], "sort is 'index'"),
        ("TopK", "opset11", {**TOP, "mode": "most"}, ["f32 3", "i64 "], "mode is 'most'"),
        ("Broadcast", "opset3", {"mode": "numpy"}, ["f32 2,3", "i64 2"], "smaller"),
        ("PReLU", "opset1", {}, ["f32 2,3,4", "f32 4"], "slope for each channel"),
        ("PReLU", "opset1", {}, ["f32 2,?,4", "f32 3"], "slope for each channel"),
        ("PReLU", "opset1", {}, ["f32 2,?,4", "f32 ?"], "slope for each channel"),
        ("PReLU", "opset1", {}, ["f32 ...", "f32 3"], "rank"),
        ("Selu", "opset1", {}, ["f32 2,3", "f32 1", "f32 1"], "input 1 is not one constant"),
        ("MVN", "opset6", {"eps": "1", "eps_mode": "inside_sqrt"}, ["f32 2,3", "i64 0"], "no axes"),
        ("MVN", "opset6", {"eps": "1", "eps_mode": "beside"}, ["f32 2,3", "i64 1"], "eps_mode"),
        ("DepthToSpace", "opset1", {"mode": "blocks_first"}, ["f32 1,4,3"], "3 axes"),
        ("DepthToSpace", "opset1", {"mode": "first"}, ["f32 1,4,3,3"], "mode"),
        ("SpaceToDepth", "opset1", {"mode": "depth_first"}, ["f32 1,4,4,4"], "blocks first"),
        ("Range", "opset4", {"output_type": "i64"}, ["f32 "] * 3, "another type than the output"),
        ("Range", "opset4", {"output_type": "i32"}, ["i64 "] * 3, "another type than the output"),
        ("Roll", "opset7", {}, ["f32 2,3", "i64 1", "i64 1"], "run time"),
        (
            "ScatterElementsUpdate",
            "opset12",
            {"reduction": "mean"},
            ["f32 3", "i64 2", "f32 2", "i64 "],
            "reduction is 'mean'",
        ),
        (
            "ScatterElementsUpdate",
            "opset12",
            {"reduction": "sum", "use_init_val": "false"},
            ["f32 3", "i64 2", "f32 2", "i64 "],
            "use_init_val",
        ),
        *(
            ("RNNSequence", "opset5", {**STEPS, **more}, ["f32 2,5,4", "f32 2,1,3"] * 3, word)
            for more, word in (
                ({"clip": "2"}, "limits"),
                ({"activations_alpha": "0.1"}, "parameters"),
                ({"activations_beta": "0.1"}, "parameters"),
                ({"activations": "elu"}, "activations"),
                ({"activations": "tanh, relu"}, "activations"),
                ({"direction": "sideways"}, "direction"),
            )
        ),
    ],
    ids=lambda each: "" if isinstance(each, dict | list) else str(each).replace(" ", "_"),
)
def test_a_layer_that_onnx_may_take_otherwise_is_refused(
    type: str, version: str, data: dict[str, str], inputs: list[str], word: str, tmp_path: Path
) -> None:
    ir = IrFile()
    given = (each.partition(" ") for each in inputs)
    fed = [ir.parameter(f"x{k}", kind, shape) for k, (kind, _, shape) in enumerate(given)]
    text = " ".join(f'{name}="{value}"' for name, value in data.items())
    ir.result(ir.layer(type, fed, 1, f"<data {text}/>", name="odd", version=version)[0])
    with refused("TS514", "layer 'odd'", word):
        ts.convert(ir.save(tmp_path), 18)


def quantised(ir: IrFile, inputs: Sequence[Any], kind: str = "f32") -> Any:
    """What is left of ``x`` in 5 levels."""
    x = ir.parameter("x", kind, "3,4")
    ir.result(ir.layer("FakeQuantize", (x, *inputs), 1, '<data levels="5"/>', name="odd")[0])


def by_hand(x: float, low: float, high: float, first: float, last: float) -> float:
    """What the text says of one number in 5 levels."""
    if x <= min(low, high):
        return first
    if x > max(low, high):
        return last
    return round((x - low) / (high - low) * 4) / 4 * (last - first) + first


@pytest.mark.parametrize(("kind", "dtype"), [("f32", np.float32), ("f16", np.float16)])
def test_a_range_that_is_fed_is_taken_as_the_text_says(
    kind: str, dtype: Any, tmp_path: Path
) -> None:
    ir = IrFile()
    quantised(ir, [ir.parameter(name, kind, "3,1") for name in "abcd"], kind)
    x = RANDOM.uniform(-4, 4, (3, 4)).astype(dtype)
    # The second range falls, and the third one is wider than the numbers of float16.
    ends: list[list[float]] = [[-2, 3, -4e4], [3, -1, 4e4], [0, 4, -2], [8, -4, 2]]
    x[:, 0], x[:2, 1] = [-2, -1, -4e4], [3, 3]
    fed = {name: np.array(end, dtype)[:, None] for name, end in zip("abcd", ends, strict=True)}
    (found,) = ts.run(ts.convert(ir.save(tmp_path), 18), {"x": x, **fed}).values()
    rows = zip(*ends, strict=True)
    expected = [[by_hand(each, *row) for each in x[k].tolist()] for k, row in enumerate(rows)]
    np.testing.assert_allclose(found, np.array(expected, dtype), atol=1e-3, strict=True)


@pytest.mark.parametrize("ends", [(3, 3), (4.5, -3.7)])
def test_a_constant_range_that_does_not_rise_is_refused(
    ends: tuple[float, float], tmp_path: Path
) -> None:
    ir = IrFile()
    numbers = [ir.constant(np.float32(each).tobytes(), "f32", "1") for each in (*ends, 1, -2.5)]
    quantised(ir, numbers)
    with refused("TS514", "layer 'odd'", "does not rise"):
        ts.convert(ir.save(tmp_path), 18)


NUMBERS = np.array([[4, -1, 3], [2, -6, 5]], np.float32)
WIDE = {"x": np.array([[-np.inf, 2, np.inf]], np.float32)}
SIDES = {"q": NUMBERS, "k": NUMBERS, "v": np.eye(2, dtype=np.float32)}


def weights_of(scores: Any) -> Any:
    """The softmax of each row."""
    powers = np.exp(scores - scores.max(1, keepdims=True))
    return powers / powers.sum(1, keepdims=True)


@pytest.mark.parametrize(
    ("type", "version", "data", "fed", "constants", "expected"),
    [
        ("IsInf", "opset10", "", WIDE, [], np.isinf(WIDE["x"])),
        ("IsInf", "opset10", 'detect_positive="false"', WIDE, [], WIDE["x"] == -np.inf),
        (
            "MVN",
            "opset6",
            'eps="0" eps_mode="INSIDE_SQRT"',
            {"x": NUMBERS},
            [[1]],
            (NUMBERS - NUMBERS.mean(1, keepdims=True)) / NUMBERS.std(1, keepdims=True),
        ),
        (
            "ScaledDotProductAttention",
            "opset13",
            "",
            SIDES,
            [],
            weights_of(NUMBERS @ NUMBERS.T / np.sqrt(np.float32(3))),
        ),
        ("ReduceLogicalOr", "opset1", 'keep_dims="true"', {"x": NUMBERS > 3}, [[]], NUMBERS > 3),
        ("ReduceLogicalAnd", "opset1", "", {"x": NUMBERS > 3}, [[1]], [False, False]),
        ("Transpose", "opset1", "", {"x": NUMBERS}, [[]], NUMBERS.T),
        ("SoftMax", "opset8", 'axis="-1"', {"x": NUMBERS}, [], weights_of(NUMBERS)),
        ("Gelu", "opset2", "", {"x": np.array([3], np.float32)}, [], [2.99595031]),
        ("Swish", "opset4", "", {"x": NUMBERS}, [], NUMBERS / (1 + np.exp(-NUMBERS))),
        (
            "Swish",
            "opset4",
            "",
            {"x": NUMBERS, "factor": np.array(0.5, np.float32)},
            [],
            NUMBERS / (1 + np.exp(-NUMBERS / 2)),
        ),
        ("Add", "opset1", 'auto_broadcast="none"', {"x": NUMBERS, "y": NUMBERS}, [], NUMBERS * 2),
    ],
    ids=lambda each: each if isinstance(each, str) else "",
)
def test_what_a_layer_leaves_out_is_as_its_text_says(
    type: str, version: str, data: str, fed: Any, constants: Any, expected: Any, tmp_path: Path
) -> None:
    ir, kinds = IrFile(), {"float32": "f32", "bool": "boolean"}
    inputs = [
        ir.parameter(name, kinds[str(each.dtype)], ",".join(map(str, each.shape)))
        for name, each in fed.items()
    ]
    inputs += [ir.int64(*each) for each in constants]
    ir.result(ir.layer(type, inputs, 1, f"<data {data}/>", version=version)[0])
    model = ts.convert(ir.save(tmp_path), 18)
    onnx.checker.check_model(model, full_check=True)
    (found,) = ts.run(model, fed).values()
    np.testing.assert_allclose(found, np.array(expected, found.dtype), rtol=1e-5, strict=True)


CURVED = {**RESIZED, "mode": "cubic"}


@pytest.mark.parametrize(
    ("type", "version", "data", "inputs", "attribute"),
    [
        ("Interpolate", "opset11", CURVED, ["f32 1,7", "i64 2"], ("cubic_coeff_a", -0.75)),
        (
            *("GRUSequence", "opset5", STEPS),
            ["f32 1,4,2", "f32 1,1,3", "i64 1", "f32 1,9,2", "f32 1,9,3", "f32 1,9"],
            ("linear_before_reset", 0),
        ),
    ],
)
def test_a_default_is_written_into_the_node(
    type: str, version: str, data: Any, inputs: list[str], attribute: Any, tmp_path: Path
) -> None:
    ir = IrFile()
    given = (each.partition(" ") for each in inputs)
    fed = [ir.parameter(f"x{k}", kind, shape) for k, (kind, _, shape) in enumerate(given)]
    text = " ".join(f'{name}="{value}"' for name, value in data.items())
    count = 1 if type == "Interpolate" else 2
    for end in ir.layer(type, fed, count, f"<data {text}/>", version=version):
        ir.result(end)
    nodes = ts.convert(ir.save(tmp_path), 18).graph.node
    assert attribute in [
        (each.name, onnx.helper.get_attribute_value(each))
        for made in nodes
        for each in made.attribute
    ]


@pytest.mark.parametrize(
    ("kind", "dtype"), [("", np.int32), ('index_element_type="i64"', np.int64)]
)
def test_positions_are_of_32_bits_if_nothing_is_said(kind: str, dtype: Any, tmp_path: Path) -> None:
    ir = IrFile()
    x, count = ir.parameter("x", "f32", "2,3"), ir.int64(2, scalar=True)
    data = f'<data axis="1" mode="min" sort="value" {kind}/>'
    for end, name in zip(
        ir.layer("TopK", (x, count), 2, data, version="opset3"), "ab", strict=True
    ):
        ir.result(end, name)
    found = ts.run(ts.convert(ir.save(tmp_path), 18), {"x": NUMBERS})
    np.testing.assert_array_equal(found["a"], np.sort(NUMBERS, 1)[:, :2])
    np.testing.assert_array_equal(found["b"], np.array([[1, 2], [1, 0]], dtype), strict=True)


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        ("", [[4, 3], [2, 5]]),
        ('auto_pad="valid" pads_begin="0,1" pads_end="0,1"', [[4, 3], [2, 5]]),
        ('auto_pad="explicit" pads_begin="0,0" pads_end="0,1"', [[4, 3, 3], [2, 5, 5]]),
        ('auto_pad="same_upper"', [[4, 3, 3], [2, 5, 5]]),
        ('auto_pad="same_lower"', [[4, 4, 3], [2, 2, 5]]),
    ],
)
@pytest.mark.parametrize("shape", ["1,1,2,3", "1,1,?,?"])
def test_where_a_window_goes(data: str, expected: Any, shape: str, tmp_path: Path) -> None:
    ir = IrFile()
    text = f'<data kernel="1,2" strides="1,1" {data}/>'
    ir.result(ir.layer("MaxPool", (ir.parameter("x", "f32", shape),), 1, text)[0])
    model = ts.convert(ir.save(tmp_path), 18)
    (found,) = ts.run(model, {"x": NUMBERS[None, None]}).values()
    assert found.tolist() == [[expected]]


@pytest.mark.parametrize(
    ("axis", "expected"), [(0, [[6, 8], [9, 11]]), (2, [[0, 2], [3, 5]]), (-1, [[0, 2], [0, 2]])]
)
def test_the_index_of_an_element_counts_from_an_axis_on(
    axis: int, expected: Any, tmp_path: Path
) -> None:
    ir = IrFile()
    text = f'<data kernel="1,2" strides="1,1" axis="{axis}"/>'
    x = ir.parameter("x", "f32", "1,2,2,3")
    ir.result(ir.layer("MaxPool", (x,), 2, text, version="opset8")[1])
    model = ts.convert(ir.save(tmp_path), 18)
    (found,) = ts.run(model, {"x": np.stack([NUMBERS, NUMBERS])[None]}).values()
    assert found[0, 1].tolist() == expected


@pytest.mark.parametrize("axis", [-1, -2, -3])
def test_an_axis_of_one_hot_counts_the_new_one(axis: int, tmp_path: Path) -> None:
    ir = IrFile()
    values = [ir.constant(np.float32(n).tobytes(), "f32", "") for n in (1, 0)]
    inputs = (ir.parameter("x", "i64", "2,2"), ir.int64(3, scalar=True), *values)
    ir.result(ir.layer("OneHot", inputs, 1, f'<data axis="{axis}"/>')[0])
    indices = np.array([[0, 2], [1, 5]])
    (found,) = ts.run(ts.convert(ir.save(tmp_path), 18), {"x": indices}).values()
    expected = np.moveaxis(indices[..., None] == np.arange(3), -1, axis)
    np.testing.assert_array_equal(found, expected.astype(np.float32))


@pytest.mark.parametrize("ends", [(-1, 0), (0, -1)])
def test_a_pad_that_repeats_an_edge_and_crops_is_refused(
    ends: tuple[int, int], tmp_path: Path
) -> None:
    ir = IrFile()
    inputs = (ir.parameter("x", "f32", "4"), *(ir.int64(end) for end in ends))
    ir.result(ir.layer("Pad", inputs, 1, '<data pad_mode="edge"/>', version="opset12")[0])
    with refused("TS514", "crops"):
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


@pytest.mark.parametrize(("count", "is_outside"), [(1 << 17, False), ((1 << 17) + 1, True)])
def test_constants_of_more_than_half_a_megabyte_stay_in_the_bin(
    count: int, is_outside: bool, tmp_path: Path
) -> None:
    ir = IrFile()
    held = ir.constant(
        RANDOM.standard_normal(count).astype(np.float32).tobytes(), "f32", f"{count}"
    )
    ir.result(ir.layer("Add", (ir.parameter("x", "f32", "1"), held), 1)[0])
    (found,) = ts.convert(ir.save(tmp_path), 18).graph.initializer
    assert bool(found.external_data) is is_outside


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


def test_floats_are_divided_without_rounding(tmp_path: Path) -> None:
    ir = IrFile()
    x, y = ir.parameter("x", "f32", "?"), ir.parameter("y", "f32", "?")
    ir.result(ir.layer("Divide", (x, y), 1)[0])
    left, right = np.meshgrid(np.arange(-50, 51), [*range(-50, 0), *range(1, 51)])
    feeds = {"x": left.ravel().astype(np.float32), "y": right.ravel().astype(np.float32)}
    (found,) = ts.run(ts.convert(ir.save(tmp_path), 18), feeds).values()
    np.testing.assert_array_equal(found, feeds["x"] / feeds["y"])


@pytest.mark.parametrize(
    ("shape", "given", "made"),
    [("?", (0, -1), "?,1"), ("?,3,2", (0, -1), "?,6"), ("3,?,4", (-1, 0, 2), "6,?,2")],
)
def test_a_dimension_that_is_kept_may_be_0(
    shape: str, given: tuple[int, ...], made: str, tmp_path: Path
) -> None:
    """The others alone say what -1 is, as OpenVINO has it; ONNX refuses it of no elements."""
    ir = IrFile()
    data = (ir.parameter("x", "f32", shape), ir.int64(*given))
    ir.result(ir.layer("Reshape", data, 1, '<data special_zero="true"/>')[0])
    model = ts.convert(ir.save(tmp_path), opset=18)
    for size in "02":
        before, after = (
            [int(dim) for dim in text.replace("?", size).split(",")] for text in (shape, made)
        )
        x = np.random.default_rng(1).standard_normal(before).astype(np.float32)
        (found,) = ts.run(model, {"x": x}).values()
        np.testing.assert_array_equal(found, x.reshape(after))


def test_a_slice_that_takes_a_single_position_takes_all_of_each_other_axis(tmp_path: Path) -> None:
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    for stop, is_whole, single in ((0, True, "1,0"), (3, False, "1,0"), (0, False, "1,1")):
        ir = IrFile()
        data, bounds = ir.parameter("x", "f32", "3,4"), [ir.int64(1, 0), ir.int64(2, stop)]
        masks = f'begin_mask="0,{int(is_whole)}" end_mask="0,{int(is_whole)}"'
        text = f'<data {masks} new_axis_mask="" shrink_axis_mask="{single}" ellipsis_mask=""/>'
        ir.result(ir.layer("StridedSlice", (data, *bounds, ir.int64(1, 1)), 1, text)[0])
        path = ir.save(tmp_path)
        if is_whole:
            (found,) = ts.run(ts.convert(path, 18), {"x": x}).values()
            np.testing.assert_array_equal(found, x[1])
            continue
        with refused("TS514", "it takes single positions, and slices of other axes"):
            ts.convert(path, 18)
