"""Operators outside the family: onnx's reference runs them, and its failures get a place."""

from __future__ import annotations

from itertools import product
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from onnx import NodeProto, TensorProto, defs
from onnx.defs import onnx_opset_version

from tensorsplit import SplitError
from tests.model.build import graph, known, model, node, outputs, run, tensor, untyped, value
from tests.refusals import refused


def result(opset: int, made: NodeProto, **feeds: Any) -> Any:
    """What one node gives as `y`."""
    return outputs(model(graph([made], map(untyped, feeds), "y"), opset), **feeds)[0]


@pytest.fixture
def x(rng: np.random.Generator) -> Any:
    return rng.random((2, 3, 4)).astype(np.float32)


def softmax(values: Any, axis: Any) -> Any:
    powers = np.exp(values - values.max(axis, keepdims=True))
    return powers / powers.sum(axis, keepdims=True)


def test_an_operator_that_fails_is_named_with_its_place(x: Any) -> None:
    made = node("MatMul", "x w", "y", name="project")
    with refused("TS510", "MatMul failed on float32[2, 3, 4], float32[5]", "graph/project"):
        result(18, made, x=x, w=np.ones(5, np.float32))
    with pytest.raises(SplitError) as caught:
        result(18, made, x=x, w=np.ones(5, np.float32))
    assert isinstance(caught.value.__cause__, TypeError)


@pytest.mark.parametrize(
    ("opset", "made", "word"),
    [
        (18, node("NoSuchOperator", "x", "y"), "NoSuchOperator"),
        (13, node("Gelu", "x", "y"), "opset 13"),
        (1, node("Cast", "x", "y", to="NOTHING"), "older version"),
        (6, node("Dropout", "x", "y"), "older version"),
        (10, node("Resize", "x x", "y"), "older version"),
        (7, node("Upsample", "x", "y", scales=[1.0, 0.5, 2.0]), "older version"),
    ],
)
def test_an_operator_without_implementation_is_refused(
    opset: int, made: NodeProto, word: str, x: Any
) -> None:
    with refused("TS509", word, f"graph/{made.op_type}[0]"):
        result(opset, made, x=x)


def test_an_operator_of_another_domain_is_refused(x: Any) -> None:
    made = model(graph([node("F", "x", "y", domain="other")], [untyped("x")], "y"), 18, other=1)
    with refused("TS509", "other::F", "graph/F[0]"):
        run(made, x=x)


def test_operators_of_other_domains_that_onnx_has(x: Any) -> None:
    binarizer = node("Binarizer", "x", "y", domain="ai.onnx.ml", threshold=0.5)
    made = model(graph([binarizer], [untyped("x")], "y"))
    made.opset_import.add(domain="ai.onnx.ml", version=1)
    assert np.array_equal(outputs(made, x=x)[0], (x > 0.5).astype(np.float32))


@pytest.mark.parametrize("opset", known(20, 28))
def test_operators_that_onnx_defines_by_others(opset: int, x: Any) -> None:
    got = result(opset, node("Mish", "x", "y"), x=x)
    assert np.allclose(got, x * np.tanh(np.log1p(np.exp(x))), atol=1e-6)


def test_operators_whose_definition_depends_on_their_inputs(x: Any) -> None:
    made = node("SoftmaxCrossEntropyLoss", "x t", "y")
    scores, target = x[:, :, 0], np.array([1, 2])
    expected = -np.log(softmax(scores, 1)[[0, 1], target]).mean()
    assert np.allclose(result(13, made, x=scores, t=target), expected, atol=1e-6)


def test_omitted_inputs_are_absent_for_other_operators(x: Any) -> None:
    assert result(18, node("Clip", "x _ h", "y"), x=x, h=np.float32(0.5)).max() <= 0.5


def test_more_outputs_than_an_operator_gives_are_refused() -> None:
    """Outside training BatchNormalization gives one of its three outputs."""
    inputs = [untyped("x"), *map(untyped, "sbmv")]
    normalize = node("BatchNormalization", "x s b m v", "y p q", training_mode=0)
    made = model(graph([normalize], inputs, "ypq"), 15)
    ones = dict.fromkeys("sbmv", np.ones(3, np.float32))
    with refused("TS510", "graph/BatchNormalization[0]", "gave 1 of 3 outputs"):
        run(made, x=np.ones((2, 3), np.float32), **ones)


def test_the_optional_outputs_of_other_operators(x: Any) -> None:
    made = model(graph([node("TopK", "x k", "_ i")], [untyped("x")], "i", [tensor("k", [1])]))
    assert np.array_equal(outputs(made, x=x)[0][..., 0], x.argmax(-1))


@pytest.mark.parametrize("opset", [1, 11, 12])
@pytest.mark.parametrize("op_type", ["Softmax", "LogSoftmax"])
@pytest.mark.parametrize("axis", [None, 0, 1, 2])
def test_softmax_before_opset_13_takes_the_data_as_a_matrix(
    opset: int, op_type: str, axis: int | None, x: Any
) -> None:
    made = node(op_type, "x", "y", axis=axis)
    cut = 1 if axis is None else axis
    rows = int(np.prod(x.shape[:cut]))
    expected = softmax(x.reshape(rows, -1), 1).reshape(x.shape)
    got = result(opset, made, x=x)
    assert np.allclose(np.exp(got) if op_type == "LogSoftmax" else got, expected, atol=1e-6)


def test_softmax_from_opset_13_is_along_one_axis(x: Any) -> None:
    assert np.allclose(result(13, node("Softmax", "x", "y"), x=x), softmax(x, -1), atol=1e-6)
    made = node("Softmax", "x", "y", axis=1)
    assert np.allclose(result(13, made, x=x), softmax(x, 1), atol=1e-6)


@pytest.mark.parametrize("opset", [1, 6])
@pytest.mark.parametrize(
    ("shape", "axis", "like"),
    [
        *(((4,), None, (1, 1, 4)), ((3, 4), 1, (1, 3, 4)), ((3,), 1, (1, 3, 1))),
        *(((2,), 0, (2, 1, 1)), ((3,), -2, (1, 3, 1)), ((2,), -3, (2, 1, 1))),
    ],
)
def test_operands_before_opset_7_are_broadcast_from_an_axis_on(
    opset: int, shape: tuple[int, ...], axis: int | None, like: tuple[int, ...], x: Any
) -> None:
    w = np.arange(1, 1 + np.prod(shape), dtype=np.float32).reshape(shape)
    made = node("Mul", "x w", "y", broadcast=1, axis=axis)
    assert np.array_equal(result(opset, made, x=x, w=w), x * w.reshape(like))


@pytest.mark.parametrize(
    ("shape", "attributes"),
    [
        *(((4,), {}), ((1, 1, 1), {}), ((3,), {"broadcast": 1})),
        *(((2,), {"broadcast": 1, "axis": 1}), ((1, 1, 1, 1), {"broadcast": 1})),
    ],
)
def test_operands_before_opset_7_that_do_not_fit_are_refused(
    shape: tuple[int, ...], attributes: Any, x: Any
) -> None:
    with refused("TS510", str(shape), "graph/Add[0]"):
        result(6, node("Add", "x w", "y", **attributes), x=x, w=np.ones(shape, np.float32))


def test_operands_before_opset_7_of_equal_shape_and_single_ones(x: Any) -> None:
    assert np.array_equal(result(6, node("Add", "x w", "y"), x=x, w=x), x + x)
    made = node("Add", "x w", "y", broadcast=1)
    assert np.array_equal(result(1, made, x=x, w=np.ones(1, np.float32)), x + 1)
    assert np.array_equal(result(7, node("Add", "x w", "y"), x=x, w=x[0]), x + x[0])


def test_prelu_before_opset_7_has_a_slope_for_each_channel() -> None:
    x = -np.ones((2, 3, 3), np.float32)
    slope = np.array([1, 2, 3], np.float32)
    got = result(6, node("PRelu", "x s", "y"), x=x, s=slope)
    assert np.array_equal(got, x * slope[:, None])
    with refused("TS510", "slope"):
        result(6, node("PRelu", "x s", "y"), x=x, s=slope[:2])


def test_defaults_that_changed(x: Any) -> None:
    negative = -x
    for opset in (1, 3):
        assert result(opset, node("Concat", "x w", "y"), x=x, w=x).shape == (2, 6, 4)
    for opset in (1, 5):
        old = result(opset, node("Selu", "x", "y"), x=negative)
        assert np.allclose(old, 1.0507 * 1.6732 * np.expm1(negative), rtol=0, atol=1e-6)
    new = result(6, node("Selu", "x", "y"), x=negative)
    scaled = 1.05070102214813232421875 * 1.67326319217681884765625 * np.expm1(negative)
    assert np.allclose(new, scaled, rtol=0, atol=1e-6)
    assert not np.allclose(old, new, rtol=0, atol=1e-6)
    made = node("Relu", "x", "y", consumed_inputs=[0])
    assert np.array_equal(result(1, made, x=negative), np.zeros_like(x))


@pytest.mark.parametrize(
    ("shape", "axis"), [((999, 33, 37), a) for a in (0, 1, -1)] + [((1 << 21,), 0)]
)
def test_large_tensors_are_joined(
    shape: tuple[int, ...], axis: int, rng: np.random.Generator
) -> None:
    whole = rng.random(shape).astype(np.float32)
    first, second, third = np.split(whole, [5, 21], axis)
    got = result(18, node("Concat", "a b c", "y", axis=axis), a=first, b=second, c=third)
    assert got.tobytes() == whole.tobytes()


def test_large_tensors_that_do_not_fit_are_not_joined(rng: np.random.Generator) -> None:
    x = rng.random((1024, 1024)).astype(np.float32)
    for other in (x[:1000], x[:, :1000]):
        axis = int(other.shape[0] == 1024)
        assert (
            result(18, node("Concat", "a b", "y", axis=axis), a=x, b=other).size
            == x.size + other.size
        )
        with refused("TS510", "Concat"):
            result(18, node("Concat", "a b", "y", axis=1 - axis), a=x, b=other)


@pytest.mark.parametrize("dtype", [np.int64, np.int32])
@pytest.mark.parametrize("opset", [6, 7, 13])
def test_integers_are_divided_toward_zero(opset: int, dtype: Any) -> None:
    x = np.array([7, -7, 7, -7, 6, -6, 0, 1, -1, 1], dtype)
    w = np.array([2, 2, -2, -2, -3, 3, -5, 5, 5, -5], dtype)
    got = result(opset, node("Div", "x w", "y"), x=x, w=w)
    np.testing.assert_array_equal(
        got, np.array([3, -3, -3, 3, -2, -2, 0, 0, 0, 0], dtype), strict=True
    )
    number = result(opset, node("Div", "x w", "y"), x=x[1].reshape(()), w=w[1].reshape(()))
    np.testing.assert_array_equal(number, np.array(-3, dtype), strict=True)
    column = result(6, node("Div", "x w", "y", broadcast=1, axis=0), x=x[:2, None], w=w[:2])
    assert column.tolist() == [[3], [-3]]


def test_special_values_are_results_and_no_warnings() -> None:
    with np.errstate(all="raise"):
        got = result(18, node("Div", "x w", "y"), x=np.ones(1), w=np.zeros(1))
    assert got.tolist() == [np.inf]


def test_failures_of_any_kind_are_one_line(x: Any) -> None:
    for made in (
        node("Reshape", "x w", "y"),
        node("Gather", "x w", "y"),
        node("Cast", "x", "y", to=999),
        node("Concat", "x w", "y", axis=0),
        node("Transpose", "x", "y", perm=[1, 0, 2, 3]),
    ):
        feeds = {"x": x, "w": np.array([100, 7])}
        with refused("TS510", made.op_type):
            result(18, made, **{name: feeds[name] for name in made.input})


def attention(x: Any) -> Any:
    """FlexAttention, the one other operator that has bodies, with a split node in its body."""
    body = graph(
        [
            node("Split", "score", "p q", axis=-1, num_outputs=2),
            node("Constant", "", "two", value=tensor("", 2.0, np.float32)),
            node("Mul", "p two", "r"),
            node("Concat", "r q", "out", axis=-1),
        ],
        [value("score")],
        [value("out")],
    )
    made = node("FlexAttention", "x x x", "y", domain="ai.onnx.preview", score_mod=body)
    whole = model(graph([made], [value("x")], "y"), 23)
    whole.opset_import.add(domain="ai.onnx.preview", version=1)
    return whole


@pytest.mark.skipif(
    not defs.has("FlexAttention", "ai.onnx.preview"), reason="this onnx does not have the operator"
)
def test_bodies_of_other_operators(rng: np.random.Generator) -> None:
    x = rng.random((1, 1, 4, 2)).astype(np.float32)
    scores = (x @ x.swapaxes(-1, -2)) / np.float32(np.sqrt(2))
    scores[..., :2] *= 2
    made = attention(x)
    assert np.allclose(outputs(made, x=x)[0], softmax(scores, -1) @ x, atol=1e-5)
    held = made.graph.node[0].attribute[0].g.node[1].attribute[0].t
    held.ClearField("raw_data")
    held.data_location = TensorProto.EXTERNAL
    held.external_data.add(key="location", value="secret.bin")
    with refused("TS509", "external data", "graph/FlexAttention[0]"):
        run(made, x=x)


def channels(rng: np.random.Generator) -> dict[str, Any]:
    """Scale, bias, mean and variance of three channels."""
    return {name: rng.random(3).astype(np.float32) + 0.5 for name in "sbmv"}


@pytest.mark.parametrize("opset", [6, 7, 9, 13, 15])
def test_batch_normalization_with_one_output_uses_the_statistics_given(
    opset: int, x: Any, rng: np.random.Generator
) -> None:
    given = channels(rng)
    told: dict[str, Any] = {"is_test": 1} if opset < 7 else {}
    made = node("BatchNormalization", "x s b m v", "y", epsilon=0.25, **told)
    s, b, m, v = (item[:, None] for item in given.values())
    expected = s * (x - m) / np.sqrt(v + 0.25) + b
    assert np.allclose(result(opset, made, x=x, **given), expected, atol=1e-6)


def test_batch_normalization_over_all_but_the_batch_is_refused(
    x: Any, rng: np.random.Generator
) -> None:
    made = node("BatchNormalization", "x s b m v", "y", spatial=0)
    with refused("TS509", "older version"):
        result(7, made, x=x, **channels(rng))


@pytest.mark.parametrize("opset", [1, 7, 19])
def test_average_pooling_leaves_the_padding_out(opset: int) -> None:
    made = node("AveragePool", "x", "y", kernel_shape=[2], pads=[1, 0])
    got = result(opset, made, x=np.array([[[4.0, 6.0, 8.0]]], np.float32))
    assert np.allclose(got, [[[4.0, 5.0, 7.0]]])


def test_reshape_before_opset_5_has_its_shape_as_attribute(x: Any) -> None:
    made = node("Reshape", "x", "y", shape=[0, -1])
    assert np.array_equal(result(1, made, x=x), x.reshape(2, 12))


def test_reshape_takes_no_number_below_minus_1(x: Any) -> None:
    made = node("Reshape", "x s", "y")
    assert np.array_equal(result(13, made, x=x, s=np.array([2, -1])), x.reshape(2, 12))
    with refused("TS510", "no number is below -1"):
        result(13, made, x=x, s=np.array([2, -12]))


def test_dropout_before_opset_7_passes_on_in_a_test(x: Any) -> None:
    assert np.array_equal(result(6, node("Dropout", "x", "y", is_test=1), x=x), x)
    with refused("TS509", "older version"):
        result(6, node("Dropout", "x", "y m", is_test=1), x=x)


def test_from_opset_7_on_dropout_need_not_be_told_that_it_is_a_test(x: Any) -> None:
    for opset in (7, 10, 11):
        assert np.array_equal(result(opset, node("Dropout", "x", "y"), x=x), x)
    with refused("TS509", "older version"):
        result(6, node("Dropout", "x", "y"), x=x)


@pytest.mark.parametrize(("opset", "dtype"), [(7, np.float32), (9, np.float32), (10, bool)])
def test_dropout_that_is_a_test_gives_a_mask_of_ones(x: Any, opset: int, dtype: Any) -> None:
    mask = result(opset, node("Dropout", "x", "d y"), x=x)
    assert mask.dtype == dtype
    np.testing.assert_array_equal(mask, np.ones(x.shape))


@pytest.mark.parametrize("op_type", ["Max", "Mean", "Min", "Sum"])
@pytest.mark.parametrize("opset", [1, 6, 7])
def test_operands_before_opset_8_have_one_shape(opset: int, op_type: str, x: Any) -> None:
    """As the text says, and onnxruntime refuses others."""
    made = node(op_type, "x w", "y")
    expected = {"Max": np.maximum, "Min": np.minimum, "Sum": np.add}.get(op_type)
    w = x[::-1]
    wanted = (x + w) / 2 if expected is None else expected(x, w)
    np.testing.assert_allclose(result(opset, made, x=x, w=w), wanted, rtol=1e-6)
    with refused("TS510", "(2, 3, 4), (1, 3, 4)"):
        result(opset, made, x=x, w=x[:1])
    np.testing.assert_array_equal(result(8, node("Max", "x w", "y"), x=x, w=x[:1] * 0), x)


@pytest.mark.parametrize("opset", [1, 6])
def test_gemm_before_opset_7_broadcasts_if_asked(opset: int, x: Any) -> None:
    left, right, added = x[0], x[1], np.array([2.0, 3.0, 4.0], np.float32)
    made = node("Gemm", "a b c", "y", transB=1, alpha=0.5, beta=2.0, broadcast=1)
    got = result(opset, made, a=left, b=right, c=added)
    assert np.allclose(got, 0.5 * left @ right.T + 2 * added, atol=1e-6)
    whole = np.outer([1, 2, 3], added).astype(np.float32)
    made = node("Gemm", "a b c", "y", transB=1, alpha=0.5, beta=2.0)
    got = result(opset, made, a=left, b=right, c=whole)
    assert np.allclose(got, 0.5 * left @ right.T + 2 * whole, atol=1e-6)
    unasked = node("Gemm", "a b c", "y", transB=1)
    with refused("TS510", "broadcast"):
        result(opset, unasked, a=left, b=right, c=added)
    since = result(7, unasked, a=left, b=right, c=added)
    assert np.allclose(since, left @ right.T + added, atol=1e-6)


def test_cast_before_opset_6_names_its_element_type(x: Any) -> None:
    got = result(1, node("Cast", "x", "y", to="INT32"), x=x * 9)
    assert got.dtype == np.int32
    assert np.array_equal(got, (x * 9).astype(np.int32))


@pytest.mark.parametrize(("axis", "shape"), [(0, (0, 3)), (1, (2, 0)), (-1, (2, 0))])
def test_gather_of_no_indices_keeps_the_other_axes(axis: int, shape: Any) -> None:
    """Strings too; the reference of onnx 1.20 gives a list."""
    for data in (np.ones((2, 3), np.float32), np.array([["a", "b", "c"]] * 2, object)):
        at = np.zeros(0, np.int64)
        got = result(13, node("Gather", "x at", "y", axis=axis), x=data, at=at)
        assert (got.shape, got.dtype) == (shape, data.dtype)


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_gather_by_indices_that_do_not_lie_together(axis: int) -> None:
    """Strings too; the reference of onnx 1.20 takes no indices that are a view by steps."""
    at = np.array([1, 9, 0, 9, -1, 9])[::2]
    for data in (np.arange(6.0).reshape(2, 3), np.array([[*"abc"], [*"def"]], object)):
        got = result(13, node("Gather", "x at", "y", axis=axis), x=data, at=at)
        assert got.tolist() == np.stack([data.take(i, axis) for i in at], axis).tolist()


@pytest.mark.parametrize("opset", [7, 14])
def test_rnn_takes_steps_first_and_its_biases_are_zero_if_they_are_left_out(
    opset: int, rng: np.random.Generator
) -> None:
    """The reference of onnx 1.20 takes the batch first before opset 14."""
    x, w, r = (rng.standard_normal(s).astype(np.float32) for s in ((4, 2, 5), (1, 3, 5), (1, 3, 3)))
    got = result(opset, node("RNN", "x w r", "y", hidden_size=3), x=x, w=w, r=r)
    state = np.zeros((2, 3))
    for step, row in enumerate(x):
        state = np.tanh(row @ w[0].T + state @ r[0].T)
        assert np.allclose(got[step, 0], state, atol=1e-5)


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_gather_elements_takes_fewer_indices_than_data(axis: int, x: Any) -> None:
    x = x[0]
    at = np.array([[1, -1], [0, 2]])
    got = result(13, node("GatherElements", "x at", "y", axis=axis), x=x, at=at)
    want = [[x[at[i, j], j] if axis == 0 else x[i, at[i, j]] for j in range(2)] for i in range(2)]
    np.testing.assert_array_equal(got, np.array(want))


@pytest.mark.parametrize(("shape", "axis"), [((2, 3), 2), ((5, 4), 1), ((2, 3, 1), 1)])
def test_indices_that_do_not_fit_are_refused(shape: Any, axis: int, x: Any) -> None:
    at = np.zeros(shape, np.int64)
    with refused("TS510", "GatherElements", str(shape), f"along axis {axis}"):
        result(13, node("GatherElements", "x at", "y", axis=axis), x=x[0], at=at)


@pytest.mark.parametrize("rank", [3, 4, 5])
def test_global_max_pool_takes_all_spatial_axes(rank: int, rng: np.random.Generator) -> None:
    x = rng.standard_normal((2, 3, 4, 5, 6)[:rank]).astype(np.float32)
    got = result(13, node("GlobalMaxPool", "x", "y"), x=x)
    assert got.shape == (2, 3, *[1] * (rank - 2))
    np.testing.assert_array_equal(got.ravel(), [channel.max() for item in x for channel in item])


def test_global_max_pool_of_nothing_is_refused() -> None:
    with refused("TS510", "(2, 3, 0)"):
        result(13, node("GlobalMaxPool", "x", "y"), x=np.ones((2, 3, 0), np.float32))


@pytest.mark.parametrize(
    ("shape", "axis", "flat"),
    [((0, 3), 1, (0, 3)), ((0, 3), 2, (0, 1)), ((2, 0, 3), 0, (1, 0)), ((2, 3, 4), -1, (6, 4))],
)
def test_flatten_of_data_without_elements(shape: Any, axis: int, flat: Any) -> None:
    data = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    got = result(13, node("Flatten", "x", "y", axis=axis), x=data)
    assert got.shape == flat
    np.testing.assert_array_equal(got.ravel(), data.ravel())


def test_flatten_refuses_an_axis_outside(x: Any) -> None:
    with refused("TS510", "the axis is 4", "[-3, 3]"):
        result(13, node("Flatten", "x", "y", axis=4), x=x)


def test_roi_align_before_opset_16_takes_no_half_of_a_pixel_off() -> None:
    """What opset 16 calls output_half_pixel: regions start at whole pixels."""
    x = np.arange(16, dtype=np.float32).reshape(1, 1, 4, 4)
    made = node("RoiAlign", "x r b", "y", output_height=1, output_width=1, sampling_ratio=1)
    fed = {"x": x, "r": np.array([[0, 0, 2, 2]], np.float32), "b": np.array([0])}
    for opset in (10, 15):
        assert result(opset, made, **fed).item() == 5  # the pixel at (1, 1), in the middle
    assert result(16, made, **fed).item() == 2.5  # the middle of the first four


@pytest.mark.parametrize("opset", [9, 10])
def test_scatter_is_scatter_elements(opset: int, x: Any) -> None:
    at, new = np.array([[1, 0]]), np.array([[7, 8]], np.float32)
    want = x[0].copy()
    want[0, 1], want[0, 0] = 7, 8
    got = result(opset, node("Scatter", "x at new", "y", axis=1), x=x[0], at=at, new=new)
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("opset", [10, 13, 19])
def test_every_version_of_dequantize_linear_runs(opset: int) -> None:
    x, scale, zero = np.array([[1, 2], [3, 250]], np.uint8), np.float32(0.5), np.uint8(3)
    got = result(opset, node("DequantizeLinear", "x scale zero", "y"), x=x, scale=scale, zero=zero)
    np.testing.assert_array_equal(got, np.array([[-1, -0.5], [0, 123.5]], np.float32))


def test_dequantize_linear_along_an_axis() -> None:
    x = np.array([[1, 2], [3, 250]], np.uint8)
    fed = {"scale": np.array([0.5, 2], np.float32), "zero": np.array([1, 2], np.uint8)}
    got = result(13, node("DequantizeLinear", "x scale zero", "y", axis=1), x=x, **fed)
    np.testing.assert_array_equal(got, np.array([[0, 0], [1, 496]], np.float32))


def test_the_modes_of_grid_sample_have_other_names_before_opset_20() -> None:
    x = np.arange(4, dtype=np.float32).reshape(1, 1, 2, 2)
    grid = np.array([[[[0, 0], [-0.5, -0.5]]]], np.float32)  # the middle, and that of the first
    made = node("GridSample", "x grid", "y", mode="bilinear")
    np.testing.assert_array_equal(result(16, made, x=x, grid=grid).ravel(), [1.5, 0])


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_narrow_floats_are_normalised_in_float(dtype: Any) -> None:
    """Their squares overflow, or lose most digits, in their own type."""
    x = np.arange(-300, 300, 2).reshape(2, 150).astype(dtype)
    scale, bias = np.full(150, 2, dtype), np.full(150, 0.5, dtype)
    wide = x.astype(np.float64)
    for op_type, opset, centred in (
        ("LayerNormalization", 17, wide - wide.mean(axis=1, keepdims=True)),
        ("RMSNormalization", 23, wide),
    ):
        expected = centred / np.sqrt((centred**2).mean(axis=1, keepdims=True) + 1e-5)
        got = result(opset, node(op_type, "x s", "y"), x=x, s=scale)
        assert got.dtype == dtype
        np.testing.assert_allclose(got.astype(float), 2 * expected, rtol=2e-2)
    made = result(17, node("LayerNormalization", "x s b", "y"), x=x, s=scale, b=bias)
    expected = wide - wide.mean(axis=1, keepdims=True)
    expected /= np.sqrt((expected**2).mean(axis=1, keepdims=True) + 1e-5)
    np.testing.assert_allclose(made.astype(float), 2 * expected + 0.5, rtol=3e-2, atol=2e-2)


def floats(*shape: int) -> Any:
    return np.random.default_rng(len(shape)).normal(size=shape).astype(np.float32)


_X = floats(4, 6)
_SQUARE = floats(1, 1, 4, 4)
_REGIONS = {"output_height": 2, "output_width": 2}
_LATE = {"batch_axis": 0, "time_axis": 2}
_GATES = {
    count: [floats(3, 2, 4), floats(1, 2 * count, 4), floats(1, 2 * count, 2)] for count in (3, 4)
}
_LAYER = [floats(3, 2, 4), floats(1, 2, 4), floats(1, 2, 2)]


@pytest.mark.parametrize(
    ("op_type", "opset", "attributes", "right", "wrong", "fix"),
    [
        ("BatchNormalization", 9, {}, [_X, *[floats(6)] * 4], [_X, *[floats(1)] * 4], "shape (6,)"),
        ("BatchNormalization", 15, {}, [floats(4), *[floats(1)] * 4], [floats(4)] * 5, "(1,)"),
        ("CenterCropPad", 18, {}, [_X, [3, 2]], [_X, [3]], "shape (2,)"),
        ("CenterCropPad", 18, {"axes": [0, 1]}, [_X, [3, 2]], [_X, [3]], "shape (2,)"),
        ("Clip", 13, {}, [_X, floats(1), None], [_X, floats(1, 1), None], "one number"),
        ("Clip", 13, {}, [floats(), floats(), None], [floats(), floats(1), None], "one number"),
        ("CumProd", 26, {}, [_X, 0], [floats(), 0], "rank 1 or more"),
        ("Clip", 13, {}, [_X, floats(), None], [_X, None, floats(4, 6)], "one number"),
        ("CumSum", 14, {}, [_X, 0], [floats(), 0], "rank 1 or more"),
        *(
            ("Compress", opset, axis, [data, kept], [data, [*kept, True]], f"first {len(kept)} is")
            for opset in (9, 11)
            for axis, data, kept in [
                ({"axis": 1}, floats(0, 3), [True, False, True]),
                ({"axis": 0}, floats(0, 3), []),
                ({"axis": 1}, floats(4, 2), [False, True]),
                ({}, floats(0, 3), []),
            ]
        ),
        ("EyeLike", 9, {}, [_X], [floats(4)], "rank 2"),
        ("EyeLike", 9, {}, [_X], [floats(4, 2, 2)], "rank 2"),
        ("Gather", 13, {}, [_X, 0], [floats(), 0], "rank 1 or more"),
        (
            "GridSample",
            16,
            {},
            [_SQUARE, floats(1, 3, 3, 2)],
            [_SQUARE, floats(2, 3, 3, 2)],
            "batch",
        ),
        (
            "InstanceNormalization",
            6,
            {},
            [_X[None], *[floats(4)] * 2],
            [_X[None], *[floats(1)] * 2],
            "(4,)",
        ),
        ("LayerNormalization", 17, {}, [_X, floats(6)], [floats(4, 1), floats(6)], "(4, 1)"),
        (
            "LayerNormalization",
            17,
            {},
            [_X, floats(1), floats(6)],
            [_X[:, :1], floats(1), floats(6)],
            "(4, 1)",
        ),
        ("LayerNormalization", 17, {}, [_X, floats(4, 1)], [_X, floats(1, 4, 1)], "(4, 6)"),
        ("Mod", 13, {}, [[7], [3]], [_X, _X], "fmod"),
        (
            "NonMaxSuppression",
            11,
            {},
            [floats(1, 4, 4), floats(1, 1, 4)],
            [floats(1, 4, 4), floats(2, 1, 4)],
            "batch",
        ),
        ("OneHot", 11, {}, [[1, 2], [3], [0, 5]], [[1, 2], [3], [0, 5, 6]], "two values"),
        ("OneHot", 11, {}, [[1, 2], [3], [0, 5]], [[1, 2], [-3], [0, 5]], "0 or more"),
        ("Pad", 13, {}, [_X, [1, 1, 1, 1], floats()], [_X, [1, 1, 1, 1], floats(2)], "one value"),
        (
            "Pad",
            18,
            {},
            [_X, [1, 1], None, [-1]],
            [_X, [1, 1, 1, 1], None, [1, -1]],
            "each axis once",
        ),
        ("RMSNormalization", 23, {}, [_X, floats(6)], [_X[:, :1], floats(6)], "(4, 1)"),
        ("RNN", 14, {"hidden_size": 2}, _LAYER, [*_LAYER[:2], floats(1, 2, 3)], "hidden_size to 3"),
        ("ReverseSequence", 10, {}, [_X, [4] * 6], [_X, [5] * 6], "from 0 to 4"),
        ("ReverseSequence", 10, {}, [_X, [1] * 6], [_X, [-1] * 6], "from 0 to 4"),
        ("ReverseSequence", 10, {}, [_X, [1] * 6], [_X, [1] * 4], "shape (6,)"),
        ("ReverseSequence", 10, {}, [_X, [1] * 6], [floats(4), [1]], "rank 2"),
        (
            "RoiAlign",
            10,
            _REGIONS,
            [_SQUARE, floats(2, 4), [0, 0]],
            [_SQUARE, floats(2, 4), [0]],
            "(2,)",
        ),
        (
            "RoiAlign",
            10,
            _REGIONS,
            [_SQUARE, floats(1, 4), [0]],
            [_SQUARE, floats(1, 4), [-1]],
            "0 to 0",
        ),
        (
            "RoiAlign",
            10,
            _REGIONS,
            [_SQUARE, floats(1, 4), [0]],
            [_SQUARE, floats(1, 4), [1]],
            "0 to 0",
        ),
        ("Scatter", 9, {}, [_X, [[0, 1]], floats(1, 2)], [_X, [[0, 1]], floats(1, 3)], "(1, 2)"),
        (
            "ScatterElements",
            16,
            {},
            [_X, [[0, 1]], floats(1, 2)],
            [_X, [[0, 1]], floats(2, 2)],
            "(1, 2)",
        ),
        (
            "ScatterND",
            16,
            {},
            [_X, [[0], [1]], floats(2, 6)],
            [_X, [[0], [1]], floats(6)],
            "(2, 6)",
        ),
        ("Slice", 13, {}, [_X, [0, 0], [1, 1], [0, -1]], [_X, [0, 0], [1, 1], [1, -1]], "[1, -1]"),
        ("Tile", 13, {}, [_X, [2, 1]], [_X, [2]], "shape (2,)"),
        ("TopK", 11, {}, [_X, [0]], [_X, [-1]], "one k"),
        ("TopK", 11, {}, [_X, [1]], [_X, [1, 1]], "one k"),
        ("CenterCropPad", 18, {"axes": [0, -2]}, [_X[None], [3, 3]], [_X, [3, 3]], "axis once"),
        ("GRU", 14, {"hidden_size": 2}, _GATES[3], [*_GATES[3][:2], floats(1, 6, 3)], "to 3"),
        ("LSTM", 14, {"hidden_size": 2}, _GATES[4], [*_GATES[4][:2], floats(1, 8, 3)], "to 3"),
        ("OneHot", 11, {}, [[1, 2], [3], [0, 5]], [[1, 2], [3, 3], [0, 5]], "one depth"),
        ("OneHot", 11, {}, [[1, 2], 3, [0, 5]], [[1, 2], [[3]], [0, 5]], "one depth"),
        ("ReverseSequence", 10, _LATE, None, [_X[None], [1]], "0 and 1"),
        ("SimplifiedLayerNormalization", 1, {}, [_X, floats(6)], [_X[:, :1], floats(6)], "(4, 1)"),
        ("TopK", 11, {}, [_X, [1]], [_X, 1], "in a list"),
        ("Trilu", 14, {}, [_X], [floats(4)], "rank 2 or more"),
    ],
)
def test_operands_are_as_the_standard_wants_them(
    op_type: str, opset: int, attributes: Any, right: list[Any] | None, wrong: list[Any], fix: str
) -> None:
    """What an operator makes of others is not said: they are refused, and give nothing."""
    if opset > onnx_opset_version():
        pytest.skip("the installed onnx does not know this opset")
    for operands, is_right in ((right, True), (wrong, False)):
        if operands is None:
            continue
        held = {f"i{k}": np.asarray(v) for k, v in enumerate(operands) if v is not None}
        names = [f"i{k}" if v is not None else "_" for k, v in enumerate(operands)]
        outs = "y z" if op_type == "TopK" else "y"
        made = node(op_type, " ".join(names), outs, **attributes)
        if is_right:
            result(opset, made, **held)
        else:
            with refused("TS510", f"{op_type} failed on", fix):
                result(opset, made, **held)


def test_pads_are_all_the_starts_and_then_all_the_ends(x: Any) -> None:
    pads = tensor("p", [1, 0, 2, 3])
    for given, widths in (([0, 1], [(1, 2), (0, 3), (0, 0)]), ([-1, 0], [(0, 3), (0, 0), (1, 2)])):
        made = graph([node("Pad", "x p _ a", "y")], [untyped("x")], "y", [pads, tensor("a", given)])
        np.testing.assert_array_equal(outputs(model(made, 18), x=x)[0], np.pad(x, widths))


@pytest.mark.parametrize("axis", [3, -4])
def test_an_axis_that_is_not_there_is_not_padded(axis: int, x: Any) -> None:
    """Whether the model says it or the run."""
    for held, inputs in (([tensor("a", [axis])], "x"), ([], "xa")):
        held.append(tensor("p", [1, 1]))
        made = model(graph([node("Pad", "x p _ a", "y")], map(untyped, inputs), "y", held), 18)
        fed = {"x": x, "a": np.array([axis])}
        with refused("TS510", "Pad"):
            run(made, **{name: fed[name] for name in inputs})


@pytest.mark.parametrize("axes", [None, [3, 2]])
@pytest.mark.parametrize("scale", [0.25, 0.3, None])
@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
def test_one_element_of_pytorch_half_pixel_is_the_first(
    mode: str, scale: float | None, axes: list[int] | None
) -> None:
    """The text: x_original is 0 where length_resized is 1; along other axes it does not matter."""
    x = np.array([[1, 2, 5, 3], [4, 7, 6, 9]], np.float32)[None, None]
    lists = [1, 1, 2, 1], [1, 1, 4, 1] if scale is None else [1, 1, 2, scale]
    chosen = lists[1] if axes is None else [lists[1][axis] for axis in axes]
    held = np.array(chosen, np.int64 if scale is None else np.float32)
    given = {"mode": mode, "coordinate_transformation_mode": "pytorch_half_pixel"}
    made = node(
        "Resize",
        "x _ _ s" if scale is None else "x _ s",
        "y",
        **given,
        **({"axes": axes} if axes else {}),
    )
    got = result(18, made, x=x, s=held)
    two = {"s": np.array([1, 1, 2, 1], np.float32)}
    wanted = result(18, node("Resize", "x _ s", "y", mode=mode), x=x[..., :1], **two)
    np.testing.assert_allclose(got, wanted, rtol=1e-5)


def test_a_region_follows_the_order_of_the_axes_that_are_resized() -> None:
    data = np.arange(16, dtype=np.float32).reshape(4, 4)
    rows, columns = (0.0, 1 / 3), (2 / 3, 1.0)  # the first and second of four; the last two
    for axes in ([0, 1], [1, 0]):
        ends = [(rows, columns)[axis] for axis in axes]
        roi = np.array([start for start, _ in ends] + [end for _, end in ends], np.float32)
        held = [tensor("r", roi, np.float32), tensor("z", [2, 2])]
        mode = {"coordinate_transformation_mode": "tf_crop_and_resize", "axes": axes}
        made = graph(
            [node("Resize", "x r _ z", "y", mode="linear", **mode)], [untyped("x")], "y", held
        )
        np.testing.assert_allclose(outputs(model(made, 18), x=data)[0], [[2, 3], [6, 7]], rtol=1e-5)


def test_a_quantised_convolution_adds_its_bias_before_it_rounds() -> None:
    x, w = np.array([[[1, 2, 3]]], np.uint8), np.array([[[1]]], np.uint8)
    one, zero = np.array(1, np.float32), np.array(0, np.uint8)
    fed = {"x": x, "s": one, "z": zero, "w": w, "b": np.array([10], np.int32)}
    made = node("QLinearConv", "x s z w s z s z b", "y")
    assert result(10, made, **fed).tolist() == [[[11, 12, 13]]]


@pytest.mark.parametrize(
    ("like", "mode", "expected"),
    [
        *(  # older onnx rounds 2.5 to 2
            [(ml_dtypes.float8_e8m0fnu, "up", [2, 4, 4])] if onnx_opset_version() >= 27 else []
        ),
        (ml_dtypes.float8_e8m0fnu, "down", [1, 2, 2]),
        (ml_dtypes.float8_e8m0fnu, "nearest", [1, 2, 4]),
        (ml_dtypes.float8_e4m3fn, "down", [1.25, 2.5, 3.75]),
        (np.float16, "down", [1.3, 2.5, 3.7]),
    ],
)
def test_cast_like_takes_a_mode_of_rounding(like: Any, mode: str, expected: list[float]) -> None:
    """`It only applies to casting to float8e8m0`: the page of CastLike-24."""
    feeds = {"x": np.array([1.3, 2.5, 3.7], np.float32), "l": np.ones(2, like)}
    got = result(24, node("CastLike", "x l", "y", round_mode=mode), **feeds)
    assert got.dtype == like
    assert got.tolist() == np.array(expected, like).tolist()


def test_regions_of_planes_without_elements_are_0() -> None:
    """`0` stands for points outside; engines read other memory there."""
    feeds = {"x": np.zeros((1, 2, 3, 0), np.float32), "b": np.array([0, 0])}
    feeds["r"] = np.array([[0, 0, 1, 1], [1, 0, 2, 3]], np.float32)
    for mode in ("avg", "max"):
        made = node("RoiAlign", "x r b", "y", output_height=3, mode=mode)
        assert result(16, made, **feeds).tolist() == [[[[0]] * 3] * 2] * 2


ROWS = [(2, 1, 1), (1,), (3, 1), (2, 3, 5), (5,)]
"""The shapes of masks, without the axis of the keys."""


@pytest.mark.parametrize(
    ("opset", "rows"), [*product(known(23, 24, 25), ROWS), *((opset, ()) for opset in known(28))]
)
@pytest.mark.parametrize("past", [0, 4])
@pytest.mark.parametrize("is_bool", [False, True])
def test_a_mask_with_one_row_is_for_each_query(
    rows: tuple[int, ...], past: int, opset: int, *, is_bool: bool, rng: np.random.Generator
) -> None:
    """A causal Attention of onnx's reference takes the first query for all of them."""
    queries, keys = (rng.normal(size=(2, 3, 5, 4)).astype(np.float32) for _ in range(2))
    before = rng.normal(size=(2, 3, past, 4)).astype(np.float32)
    mask = rng.normal(size=(*rows, past + 5)).astype(np.float32)
    made = node("Attention", "q k k m" + (" p p" if past else ""), "y", is_causal=1)
    feeds = {"q": queries, "k": keys, "m": mask > -1 if is_bool else mask, "p": before}
    if is_bool:
        feeds["m"][..., 0] = True
    if not past:
        del feeds["p"]
    every = np.concatenate([before, keys], 2)
    added = np.where(feeds["m"], 0, -np.inf) if is_bool else mask
    is_later = np.arange(past + 5) > np.arange(5)[:, None] + past
    scores = queries @ every.swapaxes(2, 3) / 2 + added + np.where(is_later, -np.inf, 0)
    right = softmax(scores, -1) @ every
    np.testing.assert_allclose(result(opset, made, **feeds), right, rtol=1e-4, atol=1e-5)
