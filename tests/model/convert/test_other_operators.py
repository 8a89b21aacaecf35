"""Operators outside of the family: through version changes, or refused by their own name."""

from __future__ import annotations

from itertools import product
from typing import Any, NamedTuple

import numpy as np
import pytest
from onnx import AttributeProto, TensorProto, checker, defs, helper, parser

import tensorsplit as ts
from tensorsplit.engines import adapters
from tensorsplit.model.convert import convert
from tests.model.build import (
    FLOAT,
    INT64,
    function,
    graph,
    known,
    link,
    linked,
    model,
    node,
    outputs,
    tensor,
    untyped,
    value,
)
from tests.model.convert.legal import check_equal, converted
from tests.refusals import refused

RNG = np.random.default_rng(11)
X = RNG.uniform(-2, 2, (2, 3, 4)).astype(np.float32)
ROWS = RNG.uniform(-2, 2, (3, 5)).astype(np.float32)


class Case(NamedTuple):
    """Nodes from x to y at an opset, and what they give for X by NumPy."""

    nodes: list[Any]
    opset: int
    lowest: int
    expected: Any
    initializers: list[Any] = []  # noqa: RUF012 - never written to


def softmax(x: Any, axis: Any) -> Any:
    raised = np.exp(x - x.max(axis, keepdims=True))
    return raised / raised.sum(axis, keepdims=True)


def constant(name: str, items: Any, dtype: Any = np.int64) -> Any:
    return node("Constant", "", name, value=tensor(name, items, dtype))


CASES = {
    "Abs": Case([node("Abs", "x", "y")], 13, 1, np.abs(X)),
    "Relu, with a hint of old": Case(
        [node("Relu", "x", "y", consumed_inputs=[0])], 1, 1, np.maximum(X, 0)
    ),
    "Add, same shapes": Case([node("Add", "x x", "y")], 14, 1, X + X),
    "Add, a row": Case(
        [node("Add", "x w", "y")], 13, 1, X + X[0, 0], [tensor("w", X[0, 0], np.float32)]
    ),
    "Add, along an axis of old": Case(
        [node("Add", "x w", "y", broadcast=1, axis=1)],
        6,
        1,
        X + X[0, :, :1],
        [tensor("w", X[0, :, 0], np.float32)],
    ),
    "Sum": Case([node("Sum", "x x x", "y")], 13, 1, X + X + X),
    "Softmax, last axis": Case([node("Softmax", "x", "y")], 13, 1, softmax(X, 2)),
    "Softmax, another axis": Case([node("Softmax", "x", "y", axis=1)], 13, 1, softmax(X, 1)),
    "Softmax, as a matrix": Case(
        [node("Softmax", "x", "y")], 11, 1, softmax(X.reshape(2, 12), 1).reshape(2, 3, 4)
    ),
    "Squeeze and Unsqueeze": Case(
        [
            constant("k", [-1, 0]),
            node("Unsqueeze", "x k", "z"),
            constant("m", [0]),
            node("Squeeze", "z m", "y"),
        ],
        13,
        1,
        X[..., None],
    ),
    "ReduceSum": Case(
        [constant("k", [-1]), node("ReduceSum", "x k", "y", keepdims=0)], 13, 1, X.sum(2)
    ),
    "ReduceSum, all axes": Case(
        [node("ReduceSum", "x", "y", keepdims=1)], 11, 1, X.sum(keepdims=True)
    ),
    "ReduceMean": Case(
        [constant("k", [1]), node("ReduceMean", "x k", "y")], 18, 1, X.mean(1, keepdims=True)
    ),
    "Reshape": Case([constant("k", [4, -1]), node("Reshape", "x k", "y")], 14, 1, X.reshape(4, 6)),
    "Gemm without C": Case(
        [constant("k", [6, 4]), node("Reshape", "x k", "z"), node("Gemm", "z w", "y")],
        13,
        1,
        X.reshape(6, 4) @ X[0].T,
        [tensor("w", X[0].T, np.float32)],
    ),
    "Reshape by attribute": Case([node("Reshape", "x", "y", shape=[4, 6])], 1, 1, X.reshape(4, 6)),
    "Transpose": Case([node("Transpose", "x", "y", perm=[2, 0, 1])], 13, 1, X.transpose(2, 0, 1)),
    "Concat, axis of old": Case([node("Concat", "x x", "y")], 1, 1, np.concatenate([X, X], 1)),
    "Concat, negative axis": Case(
        [node("Concat", "x x", "y", axis=-1)], 13, 4, np.concatenate([X, X], 2)
    ),
    "Gather": Case(
        [constant("k", [2, 0]), node("Gather", "x k", "y", axis=1)], 13, 1, X[:, [2, 0]]
    ),
    "Slice": Case(
        [
            constant("s", [1, -2]),
            constant("e", [2**62, 4]),
            constant("a", [1, 2]),
            node("Slice", "x s e a", "y"),
        ],
        13,
        1,
        X[:, 1:, -2:],
    ),
    "Slice by attributes": Case(
        [node("Slice", "x", "y", starts=[1], ends=[3], axes=[2])], 9, 1, X[:, :, 1:3]
    ),
    "Clip": Case(
        [constant("l", -1, np.float32), constant("h", 0.5, np.float32), node("Clip", "x l h", "y")],
        13,
        6,
        np.clip(X, np.float32(-1), np.float32(0.5)),
    ),
    "Clip by attributes": Case(
        [node("Clip", "x", "y", min=-1.0)], 6, 6, np.maximum(X, np.float32(-1))
    ),
    "Pad": Case(
        [constant("k", [0, 0, 1, 0, 0, 2]), node("Pad", "x k", "y")],
        13,
        2,
        np.pad(X, [(0, 0), (0, 0), (1, 2)]),
    ),
    "Dropout": Case([node("Dropout", "x", "y")], 12, 7, X),
    "TopK": Case(
        [constant("k", [2]), node("TopK", "x k", "y i")], 11, 1, np.sort(X, 2)[:, :, ::-1][:, :, :2]
    ),
    "Tile": Case(
        [constant("k", [1, 2, 3]), node("Tile", "x k", "y")], 13, 6, np.tile(X, (1, 2, 3))
    ),
    "part of a Shape": Case(
        [node("Shape", "x", "s", start=1), node("Cast", "s", "y", to=FLOAT)],
        15,
        10,
        np.array([3, 4], np.float32),
    ),
    "GreaterOrEqual": Case(
        [node("GreaterOrEqual", "x x", "b"), node("Cast", "b", "y", to=FLOAT)],
        16,
        11,
        np.ones_like(X),
    ),
    "HardSwish": Case(
        [node("HardSwish", "x", "y")],
        14,
        7,
        X * np.clip(X / np.float32(6) + np.float32(0.5), 0, 1),
    ),
}
"""Each operator, where it starts, and how far down it can go."""


@pytest.mark.parametrize("name", CASES)
def test_an_operator_goes_to_every_opset_that_has_words_for_it(name: str) -> None:
    case = CASES[name]
    rank = case.expected.ndim
    whole = graph(
        case.nodes,
        [value("x", FLOAT, [2, 3, 4])],
        [value("y", FLOAT, [None] * rank)],
        case.initializers,
    )
    made = model(whole, case.opset)
    for target in known(1, 2, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 17, 18, 21, 24, 28):
        if target < case.lowest and target < case.opset:
            continue
        there = converted(made, target)
        if target >= 7 or (case.opset < 7 and target > 4):  # few older ones can be run
            (found,) = outputs(there, x=X)
            np.testing.assert_allclose(found, case.expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("nodes", "opset", "target", "words"),
    [
        ([node("Add", "x w", "y", name="n")], 13, 6, ["Add", "(2, 3, 4)", "(3, 1)"]),
        ([node("Where", "b x x", "y", name="n")], 16, 8, ["Where", "no Where"]),
        ([node("PRelu", "r r", "y", name="n")], 9, 6, ["PRelu", "(3,)", "each channel"]),
        ([node("Reshape", "x k", "y", name="n")], 13, 4, ["Reshape", "run time"]),
        (
            [node("CenterCropPad", "x k", "y", name="n", axes=[2, 0, 1])],
            18,
            17,
            ["CenterCropPad", "replaced by Pad"],
        ),
        ([node("Pad", "x k", "y", name="n", mode="wrap")], 19, 18, ["Pad", "wrap"]),
        (
            [node("ScatterElements", "x i x", "y", name="n", reduction="max")],
            18,
            17,
            ["ScatterElements", "reduction", "max"],
        ),
        (
            [node("BatchNormalization", "x r r r r", "y m v", name="n", training_mode=1)],
            14,
            13,
            ["BatchNormalization", "training"],
        ),
        ([node("Nowhere", "x", "y", name="n")], 13, 12, ["Nowhere", "opset 13"]),
    ],
)
def test_an_operator_without_a_form_is_refused_by_its_own_name(
    nodes: list[Any], opset: int, target: int, words: list[str]
) -> None:
    inputs = [
        value("x", FLOAT, [2, 3, 4]),
        value("w", FLOAT, [3, 1]),
        value("k", INT64, [3]),
        value("i", INT64, [2, 3, 4]),
        value("b", TensorProto.BOOL, [2, 3, 4]),
        value("r", FLOAT, [3]),
    ]
    split = node(
        "Split", "x", "p q", axis=0, name="split", **({} if opset < 18 else {"num_outputs": 2})
    )
    used = [entry for entry in inputs if any(entry.name in n.input for n in [*nodes, split])]
    whole = graph([*nodes, split], used, [value("y"), value("p")])
    with refused("TS512", "graph/n", f"opset {opset}", target, *words):
        convert(model(whole, opset), target)


def test_an_unchanged_operator_needs_no_adapter() -> None:
    """An Add at 13 and at 11 that means the same does not stand in the way."""
    inner = function("F", "x", "y", [node("Add", "x x", "y")], opset=14)
    nodes = [node("F", "x", "z", domain="custom"), node("Split", "z", "y p", axis=1)]
    whole = graph(nodes, [value("x", FLOAT, [3, 4])], [value("y", FLOAT, [None, None])])
    made = converted(model(whole, 14, [inner], custom=1), 11)
    x = X[0]
    check_equal(made, [(x + x)[:, :2]], x=x)


def test_bounds_that_a_function_is_given_become_attributes_again() -> None:
    """From an input that a Constant links to the function's attribute, to the attribute itself."""
    given = {"starts": [1], "ends": [3], "axes": [0]}
    constants = [
        linked("Constant", "", name, link("value_ints", name, AttributeProto.INTS))
        for name in given
    ]
    bounds = node("Slice", "x starts ends axes", "y")
    inner = function("F", "x", "y", [*constants, bounds], list(given), opset=13)
    call = node("F", "x", "y", domain="custom", **given)
    whole = graph([call], [value("x", FLOAT, [4, 2])], [value("y", FLOAT, [None, None])])
    x = X[0, :, :2].repeat(2, 0)[:4]
    for target in known(9, 12, 18):
        check_equal(converted(model(whole, 13, [inner], custom=1), target), [x[1:3]], x=x)


@pytest.mark.parametrize("target", known(21, 24))
def test_group_normalization_gets_a_scale_for_each_channel(target: int) -> None:
    """Before opset 21 it had one for each group."""
    scale, bias = tensor("s", [2, 3], np.float32), tensor("b", [0, 1], np.float32)
    made = node("GroupNormalization", "x s b", "y", num_groups=2)
    y = [value("y", FLOAT, [None, None, None])]
    whole = graph([made], [value("x", FLOAT, [2, 4, 3])], y, [scale, bias])
    newer = converted(model(whole, 18), target)
    normalization = next(n for n in newer.graph.node if n.op_type == "GroupNormalization")
    assert normalization.attribute[0].i == 2
    newer.graph.output.extend(value(name, FLOAT, [4]) for name in normalization.input[1:])
    del newer.graph.output[0]  # not every evaluator has the operator
    newer.graph.node.remove(normalization)
    found = outputs(newer, x=RNG.uniform(-2, 2, (2, 4, 3)).astype(np.float32))
    assert [part.tolist() for part in found] == [[2, 2, 3, 3], [0, 0, 1, 1]]
    for unknown in (value("x", FLOAT, ["N", "C", 3]), value("x", FLOAT, None)):
        with refused("TS512", "GroupNormalization", "number of channels"):
            convert(model(graph([made], [unknown], y, [scale, bias]), 18), target)


SAMPLED = np.array([[[[0, 1], [2, 3]]]], np.float32)
POINTS = np.array([[[[0, 0], [-0.5, -0.5], [0.5, 0]]]], np.float32)


@pytest.mark.parametrize("mode", [None, "linear", "nearest", "cubic"])
@pytest.mark.parametrize(("opset", "target"), [(16, 20), (20, 16), (18, 22), (22, 18)])
def test_modes_of_grid_sample_keep_their_meaning(mode: Any, opset: int, target: int) -> None:
    """A mode that is not written is linear, whose name was bilinear before opset 20."""
    older = {"linear": "bilinear", "cubic": "bicubic"}

    def name(opset: int) -> str:
        plain = mode or "linear"
        return plain if opset >= 20 else older.get(plain, plain)

    attributes = {} if mode is None else {"mode": name(opset)}
    inputs = [value("x", FLOAT, SAMPLED.shape), value("g", FLOAT, POINTS.shape)]
    made = model(graph([node("GridSample", "x g", "y", **attributes)], inputs, "y"), opset)
    rewritten = convert(made, opset=target)
    (attribute,) = rewritten.graph.node[0].attribute
    assert (attribute.name, attribute.s.decode()) == ("mode", name(target))
    fed = {"x": SAMPLED, "g": POINTS}
    np.testing.assert_array_equal(outputs(rewritten, **fed)[0], outputs(made, **fed)[0])


INT32, HALF = TensorProto.INT32, TensorProto.FLOAT16


@pytest.mark.parametrize(
    ("kind", "scale", "opset", "targets"),
    [
        (INT32, FLOAT, 17, (10, 19, 21, 22, 23, 25)),
        (INT32, INT32, 19, (10, 13, 18, 21, 23)),
        (INT32, INT32, 25, (10, 18, 22)),
        (INT32, FLOAT, 23, (10, 18, 21, 22, 25)),
        (INT32, HALF, 23, (18, 22)),
        (HALF, FLOAT, 23, (13, 18, 22)),
        (FLOAT, INT32, 23, (13, 18, 22)),
    ],
)
def test_what_is_quantized_and_its_scale_become_floats_where_their_types_do_not_fit(
    kind: int, scale: int, opset: int, targets: tuple[int, ...]
) -> None:
    """Before opset 19 a scale is a float, up to 22 it has the type of the data."""
    dtypes = [helper.tensor_dtype_to_np_dtype(each) for each in (kind, scale)]
    x = np.array([1, 3, 5, -7, 1000], dtypes[0])
    constants = [tensor("s", 2, dtypes[1]), tensor("z", 1, np.int8)]
    inputs, out = [value("x", kind, (5,))], [value("y", TensorProto.INT8, (5,))]
    made = model(graph([node("QuantizeLinear", "x s z", "y")], inputs, out, constants), opset)
    for target in known(*targets):
        there = convert(made, opset=target)
        checker.check_model(there, full_check=True)
        assert outputs(there, x=x)[0].tolist() == [1, 3, 3, -3, 127]


@pytest.mark.parametrize("kind", [INT64, TensorProto.BOOL, FLOAT, TensorProto.STRING])
@pytest.mark.parametrize("target", [4, 5])
def test_data_that_tile_1_does_not_take_are_joined(kind: int, target: int) -> None:
    x = np.arange(6).reshape(2, 3).astype(helper.tensor_dtype_to_np_dtype(kind))
    x = x.astype(str).astype(object) if kind == TensorProto.STRING else x
    out = value("y", kind, (4, 9))
    nodes = [node("Tile", "x n", "y")]
    made = model(graph(nodes, [value("x", kind, (2, 3))], [out], [tensor("n", [2, 3])]), 13)
    rewritten = convert(made, opset=target)
    checker.check_model(rewritten, full_check=True)
    assert outputs(rewritten, x=x)[0].tolist() == np.tile(x, (2, 3)).tolist()


def test_data_that_tile_1_does_not_take_are_not_joined_without_end() -> None:
    inputs, constants = [value("x", INT64, (2,))], [tensor("n", [65])]
    made = model(graph([node("Tile", "x n", "y")], inputs, "y", constants), 13)
    with refused("TS512", "Tile", "INT64 65 times"):
        convert(made, opset=5)


SIGNAL = RNG.uniform(-2, 2, (2, 8, 6, 1)).astype(np.float32)


@pytest.mark.parametrize("axis", [None, 1, 2])
@pytest.mark.parametrize(("opset", "target"), [(17, 20), (19, 22), (20, 17), (20, 19)])
def test_the_axis_of_dft_is_kept(opset: int, target: int, axis: int | None) -> None:
    """It is an attribute before opset 20, by default 1, and then an input, by default -2."""
    constants = [] if opset < 20 or axis is None else [tensor("a", axis)]
    written = {} if opset >= 20 or axis is None else {"axis": axis}
    dft = node("DFT", "x _ a" if constants else "x", "y", **written)
    inputs, y = [value("x", FLOAT, SIGNAL.shape)], [value("y", FLOAT, [None] * 4)]
    there = converted(model(graph([dft], inputs, y, constants), opset), target)
    default = 1 if opset < 20 else 2
    wanted = np.fft.fft(SIGNAL[..., 0], axis=default if axis is None else axis)
    (found,) = outputs(there, x=SIGNAL)
    np.testing.assert_allclose(found[..., 0] + 1j * found[..., 1], wanted, rtol=1e-4, atol=1e-4)


REGIONS = {
    "x": np.arange(16, dtype=np.float32).reshape(1, 1, 4, 4),
    "r": np.array([[0, 0, 2, 2]], np.float32),
    "b": np.array([0]),
}


@pytest.mark.parametrize(
    ("opset", "target", "mode", "found"),
    [
        (10, 16, None, 5),  # the pixel at (1, 1), the middle of the region
        (10, 22, None, 5),
        (16, 10, "output_half_pixel", 5),
        (16, 22, "half_pixel", 2.5),  # the middle of the first four
        (16, 22, None, 2.5),
        (16, 10, "half_pixel", None),
        (16, 10, None, None),
    ],
)
def test_roi_align_keeps_where_its_regions_start(
    opset: int, target: int, mode: str | None, found: float | None
) -> None:
    """Before opset 16 no half of a pixel is taken off; since then it is, if nothing is written."""
    written = {} if mode is None else {"coordinate_transformation_mode": mode}
    sizes = {"output_height": 1, "output_width": 1, "sampling_ratio": 1}
    align = node("RoiAlign", "x r b", "y", **sizes, **written)
    kinds = (FLOAT, FLOAT, INT64)
    inputs = [
        value(name, kind, data.shape)
        for (name, data), kind in zip(REGIONS.items(), kinds, strict=True)
    ]
    made = model(graph([align], inputs, [value("y", FLOAT, [None] * 4)]), opset)
    if found is None:
        with refused("TS512", "RoiAlign", "output_half_pixel"):
            convert(made, target)
        return
    assert outputs(converted(made, target), **REGIONS)[0].item() == found


@pytest.mark.parametrize(("axis", "place"), [(None, 2), (-1, 2), (-2, 1), (-3, 0), (0, 0), (1, 1)])
@pytest.mark.parametrize("target", [1, 9, 10])
def test_top_k_counts_its_axis_from_the_front_before_opset_11(
    target: int, axis: int | None, place: int
) -> None:
    top = node("TopK", "x k", "y i", axis=axis)
    y = [value("y", FLOAT, [None] * 3), value("i", INT64, [None] * 3)]
    made = model(graph([top], [value("x", FLOAT, X.shape)], y, [tensor("k", [2])]), 11)
    there = converted(made, target)
    written = {entry.name: entry.i for entry in there.graph.node[-1].attribute}
    assert written.get("axis", 2) == place
    wanted = -np.sort(-X, place).take(range(2), place)
    np.testing.assert_array_equal(outputs(converted(there, 13), x=X)[0], wanted)


@pytest.mark.parametrize("op_type", ["MaxPool", "AveragePool"])
@pytest.mark.parametrize(("opset", "target"), [(19, 22), (22, 19)])
@pytest.mark.parametrize(
    ("size", "stride", "gap", "pad", "is_kept"),
    [
        *((2, 2, 1, 0, True), (2, 3, 1, 0, False), (2, 1, 1, 1, True), (2, 2, 1, 1, False)),
        *((2, 3, 2, 0, True), (2, 4, 2, 0, False), (3, 2, 1, 1, True), (3, 3, 1, 1, False)),
    ],
)
def test_the_last_window_of_a_pool_starts_in_the_data(
    op_type: str, opset: int, target: int, size: int, stride: int, gap: int, pad: int, is_kept: bool
) -> None:
    """One that might start in the padding at the end is left out since opset 22 only."""
    shape = {"kernel_shape": [size], "strides": [stride], "dilations": [gap], "pads": [0, pad]}
    pool = node(op_type, "x", "y", **shape, ceil_mode=1)
    y = [value("y", FLOAT, [None] * 3)]
    made = model(graph([pool], [value("x", FLOAT, (1, 1, "N"))], y), opset)
    if not is_kept:
        with refused("TS512", op_type, "last window"):
            convert(made, target)
        return
    there = converted(made, target)
    for length in range(4, 10):
        x = RNG.uniform(-2, 2, (1, 1, length)).astype(np.float32)
        np.testing.assert_array_equal(outputs(there, x=x)[0], outputs(made, x=x)[0])


@pytest.mark.parametrize(
    ("attributes", "is_kept"),
    [({"pads": [0, 1]}, True), ({"strides": [2]}, True), ({"strides": [3]}, False)],
)
def test_the_strides_pads_and_dilations_of_a_pool_are_1_0_and_1_by_default(
    attributes: dict[str, list[int]], is_kept: bool
) -> None:
    """A last window of two elements may start in the padding where pad and stride exceed 2."""
    pool = node("AveragePool", "x", "y", kernel_shape=[2], ceil_mode=1, **attributes)
    y = [value("y", FLOAT, [None] * 3)]
    made = model(graph([pool], [value("x", FLOAT, (1, 1, "N"))], y), 22)
    if is_kept:
        assert converted(made, 19).graph.node[0].op_type == "AveragePool"
        return
    with refused("TS512", "AveragePool", "last window"):
        convert(made, 19)


@pytest.mark.skipif(defs.onnx_opset_version() < 28, reason="no opset 28")
@pytest.mark.parametrize(
    ("inputs", "fmod", "is_kept"),
    [
        ([value("x", INT64, [3])], 0, True),
        ([value("x", FLOAT, [3])], 0, False),
        ([value("x", FLOAT, [3])], 1, True),
        ([untyped("x")], 0, False),
        ([untyped("x")], 1, True),
    ],
)
def test_mod_of_what_may_be_floats_needs_fmod_before_opset_28(
    inputs: list[Any], fmod: int, is_kept: bool
) -> None:
    made = model(graph([node("Mod", "x x", "y", fmod=fmod)], inputs, ["y"]), 28)
    if is_kept:
        (there,) = convert(made, 27).graph.node
        assert there.op_type == "Mod"
        return
    with refused("TS512", "Mod", "fmod"):
        convert(made, 27)


def test_an_overridable_initializer_is_no_attribute() -> None:
    """D20: what may be fed can't become an attribute, whatever its default is."""
    k = tensor("k", [2])
    top = node("TopK", "x k", "y i")
    whole = graph([top], [value("x", FLOAT, X.shape), value("k", INT64, [1])], ["y", "i"], [k])
    with refused("TS512", "TopK", "graph/TopK[0]"):
        convert(model(whole, 11), 9)


def test_a_default_that_no_node_reads_any_more_is_one_nevertheless() -> None:
    """D20: without its default, the input would have to be fed."""
    ratio = tensor("r", 0.25, np.float32)
    inputs = [value("x", FLOAT, X.shape), value("r", FLOAT, [])]
    made = model(graph([node("Dropout", "x r", "y")], inputs, ["y"], [ratio]), 13)
    there = convert(made, 11)
    assert [held.name for held in there.graph.initializer] == ["r"]
    assert [held.name for held in there.graph.input] == ["x", "r"]


def keeping_zeros(rank: int, shape: int, kind: int = FLOAT) -> Any:
    """A Reshape at opset 18 that takes a 0 for a 0."""
    return model(
        graph(
            [node("Reshape", "x s", "y", allowzero=1)],
            [value("x", kind, [None] * rank), value("s", INT64, [shape])],
            [value("y", kind, [None] * shape)],
        )
    )


@pytest.mark.parametrize(
    "engine", ["tensorsplit", pytest.param("onnxruntime", marks=pytest.mark.engine("onnxruntime"))]
)
@pytest.mark.parametrize("shape", [(0,), (0, 3), (2, 0, 1), (0, 0)])
def test_parts_of_a_constant_shape_with_a_0_are_known_before_opset_14(
    shape: tuple[int, ...], engine: Any
) -> None:
    """As onnxruntime infers the shape, which the lengths of a Split have to fit."""
    axis = shape.index(0)
    nodes = [node("Reshape", "x s", "v", allowzero=1)]
    nodes.append(node("Split", "v", "y z", axis=axis, num_outputs=2))
    ends = [value(name, FLOAT, [None] * len(shape)) for name in "yz"]
    made = model(graph(nodes, [value("x", FLOAT, [None])], ends, [tensor("s", shape)]))
    older = converted(made, 13)
    found = ts.run(older, {"x": np.ones(0, np.float32)}, engine=engine)
    assert [part.shape for part in found.values()] == [shape, shape]
    with pytest.raises(ts.SplitError):
        ts.run(older, {"x": np.ones(6, np.float32)}, engine=engine)


@pytest.mark.parametrize("op_type", ["Softmax", "LogSoftmax", "Hardmax"])
@pytest.mark.parametrize("dims", [(None, None), (0, 0), None])
@pytest.mark.parametrize("target", [13, 14, 21])
def test_rows_without_elements_stay_as_they_are(op_type: str, dims: Any, target: int) -> None:
    """As a matrix they are one row of none, and a 0 in a shape may mean to keep a length."""
    ends = [value("x", FLOAT, dims)], [value("y", FLOAT)]
    there = convert(model(graph([node(op_type, "x", "y", axis=0)], *ends), 11), target)
    for shape in ((0, 0), (2, 0)) if dims != (0, 0) else ((0, 0),):
        (found,) = outputs(there, x=np.zeros(shape, np.float32))
        assert found.shape == shape


@pytest.mark.engine
@pytest.mark.parametrize("shape", [0, 1, 2, 3])
@pytest.mark.parametrize("rank", [0, 1, 2, 3])
def test_a_reshape_to_0_is_one_before_opset_14(rank: int, shape: int) -> None:
    """Each small shape is made, or refused, as onnxruntime does at opset 18.

    That takes a 0 beside a -1, which the standard does not allow.
    """
    pytest.importorskip("onnxruntime")
    original = keeping_zeros(rank, shape)
    made = converted(original, 10)
    checker.check_model(made, full_check=True)
    run, expected = (
        adapters.load_onnxruntime(m.SerializeToString(), b"") for m in (made, original)
    )
    outcomes = set()
    for sizes in product((0, 1, 2, 4) if rank < 3 else (0, 1, 2), repeat=rank):
        data = RNG.uniform(-2, 2, sizes).astype(np.float32)
        for wanted in product((-2, -1, 0, 1, 2, 4) if shape < 3 else (-1, 0, 2, 4), repeat=shape):
            feeds = {"x": data, "s": np.array(wanted, np.int64)}
            whole = None if {0, -1} <= set(wanted) else given(expected, feeds)
            part = given(run, feeds)
            assert (part is None) == (whole is None), (sizes, wanted)
            if part is not None and whole is not None:
                np.testing.assert_array_equal(part, whole, strict=True)
            outcomes.add(whole is None)
    assert True in outcomes or shape == 0


def given(run: Any, feeds: dict[str, Any]) -> Any:
    """What a model gives for y; None if it is refused."""
    try:
        return run(feeds, ["y"])["y"]
    except Exception:  # noqa: BLE001 - onnxruntime has several
        return None


@pytest.mark.parametrize("kind", [TensorProto.STRING, TensorProto.FLOAT16, TensorProto.BOOL])
def test_a_reshape_to_0_has_elements_of_any_type(kind: int) -> None:
    made = converted(keeping_zeros(2, 2, kind), 13)
    checker.check_model(made, full_check=True)
    items: Any = ["a", "split"] if kind == TensorProto.STRING else [0, 1]
    data = np.array(items, helper.tensor_dtype_to_np_dtype(kind))[RNG.integers(0, 2, (3, 2))]
    for wanted, x in (((2, 3), data), ((5, 0), data[:0]), ((0, 1 << 40), data[:, :0])):
        y = ts.run(made, {"x": x, "s": np.array(wanted)})["y"]
        np.testing.assert_array_equal(y, x.reshape(wanted), strict=True)
    for wrong in ((0, 3), (0, -1), (5, 1)):
        with refused("TS510"):
            ts.run(made, {"x": data, "s": np.array(wrong)})


@pytest.mark.parametrize("target", [13, 21, defs.onnx_opset_version()])
def test_a_loop_without_a_condition_that_carries_nothing_goes_to_other_opsets(target: int) -> None:
    """Its condition is left out by an empty name at the end, for which each opset wants a place."""
    made = parser.parse_model(
        """<ir_version: 8, opset_import: ["": 24]> g (float[3] x, int64 k) => (float[A, B] y)
        { y = Loop(k, "") <body = b (int64 i, bool c) => (bool d, float[3] r)
          { d = Identity(c) r = Neg(x) }> }"""
    )
    after = convert(made, target)
    checker.check_model(after, full_check=True)
    feeds = {"x": ROWS[0, :3], "k": np.array(2)}
    assert np.array_equal(ts.run(after, feeds)["y"], [-ROWS[0, :3]] * 2)
