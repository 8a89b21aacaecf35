"""Operators that onnx's reference computes wrong, as their texts say, worked out by hand."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest

from tests.model.build import graph, model, node, outputs, run, untyped
from tests.model.run.test_operators import floats, result
from tests.refusals import refused


@pytest.mark.parametrize("opset", [1, 11, 12])
@pytest.mark.parametrize("axes", [[2, 0], [-1, 0], [0, -1], [-1, -3], [0, 2]])
def test_squeeze_takes_axes_in_any_order(opset: int, axes: list[int]) -> None:
    x = floats(1, 4, 1)
    got = result(opset, node("Squeeze", "x", "y", axes=axes), x=x)
    np.testing.assert_array_equal(got, x[0, :, 0])


@pytest.mark.parametrize(
    ("start", "end", "step", "expected"),
    [
        (-9, -9, -1, [0]),
        (9, -9, -2, [3, 1]),
        (1, -9, -1, [1, 0]),
        (9, 9, -1, []),
        (-9, 2, 1, [0, 1]),
        (-1, 9, 1, [3]),
        (-1, 0, -1, [3, 2, 1]),
    ],
)
def test_bounds_of_slices_are_clamped(start: int, end: int, step: int, expected: Any) -> None:
    """Backwards a start is clamped to [0, 3] and an end to [-1, 3], as opset 11 says."""
    names = {"s": np.array([start]), "e": np.array([end]), "n": np.array([step])}
    got = result(13, node("Slice", "x s e _ n", "y"), x=np.arange(4), **names)
    assert got.tolist() == expected


@pytest.mark.parametrize("opset", [1, 13])
def test_a_slice_has_as_many_ends_as_starts(opset: int) -> None:
    starts, ends = [0, 1], [2]
    x = floats(3, 4)
    with refused("TS510", "Slice"):
        if opset < 10:
            result(opset, node("Slice", "x", "y", starts=starts, ends=ends), x=x)
        else:
            given = {"s": np.array(starts), "e": np.array(ends)}
            result(opset, node("Slice", "x s e", "y"), x=x, **given)


def test_squeeze_without_axes_removes_all_of_length_1() -> None:
    assert result(11, node("Squeeze", "x", "y"), x=floats(1, 4, 1)).shape == (4,)


def test_squeeze_refuses_an_axis_that_is_longer() -> None:
    with refused("TS510", "Squeeze"):
        result(11, node("Squeeze", "x", "y", axes=[1]), x=floats(1, 4, 1))


@pytest.mark.parametrize("opset", [1, 11, 12])
@pytest.mark.parametrize("axes", [[1, 0], [0, 1], [-2, 0], [0, -2], [-3, -2], [1, -3]])
def test_unsqueeze_takes_axes_of_the_result_in_any_order(opset: int, axes: list[int]) -> None:
    x = floats(2)
    got = result(opset, node("Unsqueeze", "x", "y", axes=axes), x=x)
    np.testing.assert_array_equal(got, x[None, None])


def pooled(opset: int, op_type: str, x: Any, names: str = "y", **attributes: Any) -> list[Any]:
    made = graph([node(op_type, "x", names, **attributes)], [untyped("x")], names.split())
    return outputs(model(made, opset), x=x)


def test_max_pool_counts_places_through_the_whole_data() -> None:
    """Not anew in each plane; padding has no place."""
    x = np.array([[[1, 3, 2]], [[-5, -6, -4]]], np.float32)
    got, at = pooled(12, "MaxPool", x, "y i", kernel_shape=[2], pads=[1, 0])
    assert got.tolist() == [[[1, 3, 3]], [[-5, -5, -4]]]
    assert at.tolist() == [[[0, 1, 1]], [[3, 3, 5]]]


def test_max_pool_counts_places_column_by_column_if_asked() -> None:
    x = np.array([[[[1, 2, 9], [4, 8, 6]]]], np.float32)
    got, at = pooled(12, "MaxPool", x, "y i", kernel_shape=[2, 2], storage_order=1)
    assert got.tolist() == [[[[8, 9]]]]
    assert at.tolist() == [[[[3, 4]]]]


def test_max_pool_of_padding_alone_is_lowest_at_the_first_place() -> None:
    """As of padding beside data: `kernel_shape` 1 and `pads` 1 on planes without elements."""
    for side in (0, 1):
        window = {"kernel_shape": [1], "pads": [1, 1]}
        got, at = pooled(12, "MaxPool", floats(1, 2, side), "y i", **window)
        assert got[..., 0].tolist() == got[..., -1].tolist() == [[-np.inf] * 2]
        assert at[..., 0].tolist() == at[..., -1].tolist() == [[0, side]]


def test_max_pool_of_integers_and_of_nothing() -> None:
    x = np.array([[[-128, -128, 5]]], np.int8)
    assert pooled(12, "MaxPool", x, kernel_shape=[2])[0].tolist() == [[[-128, 5]]]
    assert pooled(12, "MaxPool", floats(0, 2, 5), kernel_shape=[2])[0].shape == (0, 2, 4)


@pytest.mark.parametrize(
    ("attributes", "expected"),
    [
        ({}, [3, 5]),
        ({"pads": [1, 1]}, [2, 3, 5, 6]),
        ({"pads": [1, 1], "count_include_pad": 1}, [1, 3, 5, 3]),
        ({"strides": [2]}, [3]),
        ({"strides": [2], "ceil_mode": 1}, [3, 6]),
        ({"strides": [2], "ceil_mode": 1, "count_include_pad": 1}, [3, 6]),
        ({"auto_pad": "SAME_UPPER"}, [3, 5, 6]),
        ({"auto_pad": "SAME_LOWER"}, [2, 3, 5]),
        ({"auto_pad": "SAME_UPPER", "strides": [2], "ceil_mode": 1}, [3, 6]),
        ({"auto_pad": "SAME_UPPER", "strides": [3]}, [3]),  # nothing is left out at the start
        ({"auto_pad": "VALID", "strides": [2], "ceil_mode": 1}, [3]),
        ({"dilations": [2]}, [4]),
    ],
)
def test_average_pool(attributes: Any, expected: list[float]) -> None:
    x = np.array([[[2, 4, 6]]], np.float32)
    got = pooled(19, "AveragePool", x, kernel_shape=[2], **attributes)[0]
    assert got.ravel().tolist() == expected


@pytest.mark.parametrize(("opset", "count"), [(19, 3), (22, 2)])
def test_a_window_that_starts_beyond_the_data_is_left_out_since_22(opset: int, count: int) -> None:
    x = floats(1, 1, 5)
    got = pooled(opset, "MaxPool", x, kernel_shape=[1], strides=[3], ceil_mode=1)[0].ravel()
    assert len(got) == count
    assert got[:2].tolist() == [x[0, 0, 0], x[0, 0, 3]]


@pytest.mark.parametrize(("opset", "count"), [(19, 3), (21, 3), (22, 2)])
def test_so_is_one_that_starts_right_after_the_data(opset: int, count: int) -> None:
    window: dict[str, Any] = {"kernel_shape": [2], "strides": [2], "pads": [0, 1], "ceil_mode": 1}
    assert pooled(opset, "MaxPool", floats(1, 1, 4), **window)[0].shape == (1, 1, count)


@pytest.mark.parametrize("op_type", ["AveragePool", "LpPool", "MaxPool"])
@pytest.mark.parametrize("window", [{"kernel_shape": [6]}, {"kernel_shape": [2], "dilations": [5]}])
def test_a_window_that_does_not_fit_is_refused_but_for_one_element(
    op_type: str, window: dict[str, Any]
) -> None:
    """As onnxruntime does; OpenVINO refuses both."""
    assert pooled(22, op_type, floats(1, 2, 5), **window)[0].shape == (1, 2, 0)
    with refused("TS510", "a window of 6 elements does not fit into 4"):
        pooled(22, op_type, floats(1, 2, 4), **window)


def test_norms_of_windows_and_planes() -> None:
    x = np.array([[[3, -4, 12]]], np.float32)
    assert pooled(18, "LpPool", x, kernel_shape=[2])[0].ravel().tolist() == pytest.approx(
        [5, 160**0.5]
    )
    assert pooled(2, "GlobalLpPool", x)[0].tolist() == [[[13]]]
    assert pooled(2, "GlobalLpPool", x, p=1)[0].tolist() == [[[19]]]


@pytest.mark.parametrize(
    ("kind", "stage"), [("f2", "f4"), ("f4", "f4"), ("f8", "f4"), ("f8", "f8")]
)
def test_group_normalization_is_by_groups_of_channels(kind: str, stage: str) -> None:
    """A group is normalised in the type of the stage; each channel has a scale and a bias."""
    random = np.random.default_rng(12)
    x, scale, bias = (random.normal(1, 3, shape).astype(kind) for shape in ((2, 4, 3, 5), 4, 4))
    stash = {"f4": onnx.TensorProto.FLOAT, "f8": onnx.TensorProto.DOUBLE}[stage]
    given = node("GroupNormalization", "x s b", "y", num_groups=2, epsilon=0.5, stash_type=stash)
    got = result(21, given, x=x, s=scale, b=bias)
    for row, group, channel in np.ndindex(2, 2, 2):
        held = x[row, 2 * group : 2 * group + 2].astype(stage)
        normal = (held[channel] - held.mean()) / np.sqrt(held.var() + np.dtype(stage).type(0.5))
        place = 2 * group + channel
        wanted = scale[place] * normal.astype(kind) + bias[place]
        tolerance = {"f2": 1e-2, "f4": 1e-5, "f8": 1e-5 if stage == "f4" else 1e-12}[kind]
        np.testing.assert_allclose(got[row, place], wanted, atol=tolerance)
    assert got.dtype == x.dtype


def test_lp_normalization_takes_absolute_values() -> None:
    x = np.array([[3, -1], [0, 0]], np.float32)
    got = result(13, node("LpNormalization", "x", "y", p=1), x=x)
    assert got.tolist() == [[0.75, -0.25], [0, 0]]


def test_lrn_goes_through_channels_however_many_samples_there_are() -> None:
    x = floats(3, 2, 1, 1)
    got = result(13, node("LRN", "x", "y", size=3, alpha=3.0, beta=1.0, bias=1.0), x=x)
    np.testing.assert_allclose(got, x / (1 + (x**2).sum(1, keepdims=True)), rtol=1e-6)


def test_mean_broadcasts() -> None:
    one, row = floats(1), floats(4)
    got = result(13, node("Mean", "a b", "y"), a=one, b=row)
    np.testing.assert_allclose(got, (one + row) / 2)


@pytest.mark.parametrize(("axis", "expected"), [(0, [[2, 1], [0, 5]]), (1, [[2, 1], [0, 5]])])
def test_unique_in_the_order_of_the_data(axis: int, expected: Any) -> None:
    x = np.array([[2, 1], [0, 5], [2, 1]] if axis == 0 else [[2, 1, 2], [0, 5, 0]])
    made = node("Unique", "x", "y i b c", axis=axis, sorted=0)
    found = run(model(graph([made], [untyped("x")], "yibc")), x=x)
    assert found["y"].tolist() == expected
    assert [found[name].tolist() for name in "ibc"] == [[0, 1], [0, 1, 0], [2, 1]]


def test_unique_unsorted_with_one_output() -> None:
    x = np.array([2, 1, 1, 3, 4, 3])
    assert result(11, node("Unique", "x", "y", sorted=0), x=x).tolist() == [2, 1, 3, 4]


def test_each_element_has_its_place_among_the_unsorted_unique_ones() -> None:
    x = np.array([3, 1, 2, 2, 3])
    made = model(graph([node("Unique", "x", "y _ b", sorted=0)], [untyped("x")], ["y", "b"]))
    found = run(made, x=x)
    assert (found["y"].tolist(), found["b"].tolist()) == ([3, 1, 2], [0, 1, 2, 2, 0])


@pytest.mark.parametrize(
    ("bounds", "expected"),
    [
        ({}, [2, 3, 4]),
        ({"start": 1}, [3, 4]),
        ({"start": -2, "end": -4}, []),
        ({"end": -5}, []),
        ({"start": -9, "end": -1}, [2, 3]),
        ({"start": 2, "end": 9}, [4]),
    ],
)
def test_bounds_of_a_shape_are_clamped(bounds: dict[str, int], expected: list[int]) -> None:
    x = np.zeros((2, 3, 4), np.float32)
    assert result(15, node("Shape", "x", "y", **bounds), x=x).tolist() == expected


def test_padding_may_take_away() -> None:
    x = np.arange(6, dtype=np.float32)
    pads = np.array([-1, 2])
    for opset, made, fed in (
        (10, node("Pad", "x", "y", pads=[-1, 2], value=7.0), {}),
        (11, node("Pad", "x k v", "y"), {"k": pads, "v": np.float32(7)}),
        (19, node("Pad", "x k v a", "y"), {"k": pads, "v": np.float32(7), "a": np.array([-1])}),
    ):
        assert result(opset, made, x=x, **fed).tolist() == [1, 2, 3, 4, 5, 7, 7]
    assert result(13, node("Pad", "x k", "y", mode="edge"), x=x, k=pads).tolist()[-3:] == [5] * 3
    at_the_end = result(13, node("Pad", "x k", "y"), x=x, k=np.array([1, -2]))
    assert at_the_end.tolist() == [0, 0, 1, 2, 3]


def test_padding_of_another_rank_is_refused() -> None:
    with refused("TS510", "the padding is [1, 2, 3]"):
        result(13, node("Pad", "x k", "y"), x=floats(4), k=np.array([1, 2, 3]))


def test_halves_are_rounded_before_the_zero_point_is_added() -> None:
    """0.5 and 1.5 become 0 and 2, plus 5; not 5.5 and 6.5 rounded."""
    half, zero, five = np.float32(0.5), np.uint8(0), np.uint8(5)
    fed = {"s": np.float32(1), "h": half, "z": zero, "f": five}
    x, w = np.array([[1], [3]], np.uint8), np.array([[1]], np.uint8)
    got = result(10, node("QLinearMatMul", "x s z w h z s f", "y"), x=x, w=w, **fed)
    assert got.tolist() == [[5], [7]]
    x, w = x.reshape(1, 1, 2), w.reshape(1, 1, 1)
    got = result(10, node("QLinearConv", "x s z w h z s f", "y"), x=x, w=w, **fed)
    assert got.tolist() == [[[5, 7]]]


@pytest.mark.parametrize("rows", [2, 3])
@pytest.mark.parametrize("shape", [(), (4,)])
def test_rows_of_a_quantized_product_have_scales_of_their_own(rows: int, shape: Any) -> None:
    """As the text of QLinearMatMul has it: an element for each row of `a`, each column of `b`."""
    rng = np.random.default_rng(7)
    x = rng.integers(0, 99, (*shape, rows, 3)).astype(np.uint8)
    w = rng.integers(0, 99, (3, 2)).astype(np.uint8)
    scales, zeros = np.array([0.5, 0.25, 2], np.float32), np.array([1, 2, 3], np.uint8)
    fed: dict[str, Any] = {"s": scales[:rows], "z": zeros[:rows], "t": scales[1:], "u": zeros[1:]}
    fed |= {"o": np.float32(16), "p": np.uint8(3)}
    got = result(13, node("QLinearMatMul", "x s z w t u o p", "y"), x=x, w=w, **fed)
    left = (x.astype(int) - fed["z"][:, None]) * fed["s"][:, None]
    right = (w.astype(int) - fed["u"]) * fed["t"]
    wanted = np.clip(np.rint(left @ right / 16) + 3, 0, 255)
    assert np.abs(got.astype(int) - wanted).max() <= 1  # of products in float32
    assert np.mean(got == wanted) > 0.9


def test_each_group_of_a_transposed_convolution_has_its_weights() -> None:
    x, w = floats(1, 4, 3), floats(4, 2, 1)
    got = result(11, node("ConvTranspose", "x w", "y", group=2), x=x, w=w)
    halves = [np.einsum("nci,cm->nmi", x[:, s], w[s, :, 0]) for s in (slice(2), slice(2, 4))]
    np.testing.assert_allclose(got, np.concatenate(halves, 1), rtol=1e-5)


@pytest.mark.parametrize("layout", [0, 1])
@pytest.mark.parametrize(
    "direction",
    [
        *("forward", "reverse"),
        pytest.param(
            "bidirectional",
            marks=pytest.mark.skipif(
                onnx.defs.onnx_opset_version() < 26, reason="older onnx has one direction only"
            ),
        ),
    ],
)
@pytest.mark.parametrize(("kind", "gates"), [("RNN", 1), ("GRU", 3), ("LSTM", 4)])
def test_each_row_of_a_recurrence_has_its_length(
    kind: str, gates: int, direction: str, layout: int
) -> None:
    """A row of 2 steps among rows of 4 gives what it gives alone, and zeros after that."""
    directions, states = 2 if direction == "bidirectional" else 1, "h c" if gates == 4 else "h"
    x, lengths = floats(4, 3, 2), np.array([4, 2, 3], np.int32)
    starts = {name: place + floats(directions, 3, 5) for place, name in enumerate(states.split())}
    weights = {"w": floats(directions, 5 * gates, 2), "r": floats(directions, 5 * gates, 5)}
    weights["b"] = floats(directions, 10 * gates)
    given = {"direction": direction, "hidden_size": 5, "layout": layout}

    def turned(**values: Any) -> dict[str, Any]:
        return {name: value.swapaxes(0, 1) if layout else value for name, value in values.items()}

    made = node(kind, f"x w r b n {states}", "y", **given)
    got = result(14, made, **turned(x=x, **starts), **weights, n=lengths)
    for row, length in enumerate(lengths):
        mine = turned(x=x[:length, [row]], **{k: v[:, [row]] for k, v in starts.items()})
        wanted = result(14, node(kind, f"x w r b _ {states}", "y", **given), **mine, **weights)
        here, there = (got[row], wanted[0]) if layout else (got[:, :, row], wanted[:, :, 0])
        np.testing.assert_allclose(here[:length], there, rtol=1e-5)
        assert not here[length:].any()


@pytest.mark.parametrize("length", [-1, 0, 5])
def test_a_row_of_a_recurrence_has_1_step_or_more_and_no_more_than_there_are(length: int) -> None:
    weights = {"w": floats(1, 5, 2), "r": floats(1, 5, 5)}
    made = node("RNN", "x w r _ n", "y", hidden_size=5)
    lengths = np.array([4, length], np.int32)
    with refused("TS510", f"a row of 4 steps has the length {length}"):
        result(14, made, x=floats(4, 2, 2), **weights, n=lengths)


@pytest.mark.parametrize("layout", [0, 1])
@pytest.mark.parametrize(("kind", "gates"), [("RNN", 1), ("GRU", 3), ("LSTM", 4)])
def test_a_recurrence_without_steps_ends_as_it_begins(kind: str, gates: int, layout: int) -> None:
    states = "h c" if gates == 4 else "h"
    given = {"hidden_size": 5, "layout": layout}
    x = floats(3, 0, 2) if layout else floats(0, 3, 2)
    weights = {"w": floats(1, 5 * gates, 2), "r": floats(1, 5 * gates, 5)}
    shape = (3, 1, 5) if layout else (1, 3, 5)
    starts = {name: 2 + place + floats(*shape) for place, name in enumerate(states.split())}
    every = result(14, node(kind, f"x w r _ _ {states}", "y", **given), x=x, **weights, **starts)
    assert every.shape == ((3, 0, 1, 5) if layout else (0, 1, 3, 5))
    for place, name in enumerate(states.split(), 1):
        made = node(kind, f"x w r _ _ {states}", " ".join("_" * place + "y"), **given)
        assert np.array_equal(result(14, made, x=x, **weights, **starts), starts[name])
        made = node(kind, "x w r", " ".join("_" * place + "y"), **given)
        assert np.array_equal(result(14, made, x=x, **weights), np.zeros(shape, np.float32))


@pytest.mark.parametrize("steps", [0, 3])
@pytest.mark.parametrize(("kind", "gates"), [("RNN", 1), ("GRU", 3), ("LSTM", 4)])
def test_a_recurrence_before_opset_7_is_asked_for_its_sequence(
    kind: str, gates: int, steps: int
) -> None:
    given = {"x": floats(steps, 2, 2), "w": floats(1, 5 * gates, 2), "r": floats(1, 5 * gates, 5)}
    asked = node(kind, "x w r", "y h", hidden_size=5, output_sequence=1)
    wanted = result(7, node(kind, "x w r", "y h", hidden_size=5), **given)
    np.testing.assert_array_equal(result(1, asked, **given), wanted)


@pytest.mark.parametrize(
    "given", [{"activations": ["Relu", "Tanh"]}, {"clip": 1.0}, {"activations": ["Tanh"] * 2}]
)
def test_a_recurrence_that_the_reference_changes_is_refused(given: dict[str, Any]) -> None:
    made = node("GRU", "x w r", "y", hidden_size=1, **given)
    with refused("TS509", "activations"):
        result(14, made, x=floats(2, 1, 1), w=floats(1, 3, 1), r=floats(1, 3, 1))


@pytest.mark.parametrize(("padding", "part"), [("SAME_UPPER", 1), ("SAME_LOWER", 2)])
def test_the_padding_of_a_transposed_convolution_follows_from_its_output(
    padding: str, part: int
) -> None:
    """5 elements are there; of the 3 that go, SAME_UPPER takes 1 away before, the other 2."""
    x, w = np.array([[[1, 2, 3, 4, 5]]], np.float32), np.ones((1, 1, 1), np.float32)
    made = node("ConvTranspose", "x w", "y", auto_pad=padding, output_shape=[2], pads=[0, 0])
    assert result(11, made, x=x, w=w).ravel().tolist() == [part + 1, part + 2]


@pytest.mark.parametrize("length", [3, 6, 8])
@pytest.mark.parametrize(
    ("stride", "gap", "more"), [(1, 1, 0), (2, 1, 0), (3, 1, 0), (2, 2, 0), (2, 1, 1), (3, 2, 2)]
)
def test_a_transposed_convolution_is_cut_to_its_output(
    stride: int, gap: int, more: int, length: int
) -> None:
    """Each element adds the kernel at its place; what is too much goes, half of it before."""
    x, kernel = np.arange(1, 6, dtype=np.float32), np.array([1, 10], np.float32)
    whole = np.zeros((len(x) - 1) * stride + gap + 1 + more, np.float32)
    for at, item in enumerate(x):
        whole[[at * stride, at * stride + gap]] += item * kernel
    before = (len(whole) - length) // 2
    if before < 0:
        return
    shape = {"strides": [stride], "dilations": [gap], "output_padding": [more]}
    made = node("ConvTranspose", "x w", "y", auto_pad="SAME_UPPER", output_shape=[length], **shape)
    got = result(11, made, x=x[None, None], w=kernel[None, None]).ravel()
    np.testing.assert_array_equal(got, whole[before : before + length])


def test_the_depth_of_one_hot_may_be_a_list() -> None:
    fed = {"i": np.array([0, 2]), "d": np.array([3]), "v": np.array([0, 1], np.float32)}
    got = result(11, node("OneHot", "i d v", "y"), **fed)
    assert got.tolist() == [[1, 0, 0], [0, 0, 1]]


@pytest.mark.parametrize(("opset", "first"), [(9, [0, 0, 0]), (10, [0, 0, 0]), (11, [0, 0, 1])])
def test_an_index_of_one_hot_counts_from_the_back_since_opset_11(
    opset: int, first: list[int]
) -> None:
    for depth in (3, np.array([3])):
        fed = {"i": np.array([-1, 1, -4]), "d": np.array(depth), "v": np.array([0, 1], np.float32)}
        got = result(opset, node("OneHot", "i d v", "y"), **fed)
        assert got.tolist() == [first, [0, 1, 0], [0, 0, 0]]


def test_limits_of_non_max_suppression_may_be_left_out() -> None:
    boxes = np.array([[[0, 0, 1, 1], [5, 5, 6, 6]]], np.float32)
    scores = np.array([[[0.5, 0.9]]], np.float32)
    made = node("NonMaxSuppression", "b s n", "y")
    got = result(11, made, b=boxes, s=scores, n=np.array(1))
    assert got.tolist() == [[0, 0, 1]]


@pytest.mark.parametrize("op_type", ["Softsign", "ReduceLogSumExp", "Max", "Mean"])
def test_what_has_rank_0_stays_an_array(op_type: str) -> None:
    made = node(op_type, "x x x" if op_type == "Max" else "x", "y")
    got = result(13, made, x=np.array(3, np.float32))
    assert isinstance(got, np.ndarray)
    assert got.tolist() == (0.75 if op_type == "Softsign" else 3)


REDUCED = {"Max": 4, "Min": 1, "Sum": 7, "Mean": 2, "Prod": 8, "L1": 7, "L2": 4, "SumSquare": 21}
"""What reductions make of 1, 2 and 4; quotients and roots are rounded toward zero."""


@pytest.mark.parametrize("opset", [8, 11, 18])
@pytest.mark.parametrize("element_type", [np.int32, np.uint32, np.int64, np.uint64])
@pytest.mark.parametrize("name", REDUCED)
def test_reduced_integers_keep_their_type(name: str, element_type: Any, opset: int) -> None:
    x = np.array([2, 4, 1], element_type)
    got = result(opset, node(f"Reduce{name}", "x", "y"), x=x)
    np.testing.assert_array_equal(got, np.array([REDUCED[name]], element_type), strict=True)


@pytest.mark.parametrize("opset", [13, 18])
@pytest.mark.parametrize("shape", [(), (2, 3)])
@pytest.mark.parametrize("op_type", ["ReduceLogSum", "ReduceLogSumExp"])
def test_logarithms_of_integers_are_refused(op_type: str, shape: Any, opset: int) -> None:
    """Opset 28 takes no integers any more; onnxruntime 1.32.0 rounds toward zero before."""
    with refused("TS509", "logarithms of integers", f"graph/{op_type}[0]"):
        result(opset, node(op_type, "x", "y"), x=np.full(shape, 3, np.int32))


@pytest.mark.parametrize(("text", "parts"), [("one  two", ["one", "two"]), ("", [])])
def test_one_string_is_split(text: str, parts: list[str]) -> None:
    made = graph([node("StringSplit", "x", "y n")], [untyped("x")], ["y", "n"])
    got, count = outputs(model(made, 20), x=np.array(text, object))
    assert got.shape == (len(parts),)
    assert (got.tolist(), count.shape, count.item()) == (parts, (), len(parts))


@pytest.mark.parametrize("op_type", ["RandomNormalLike", "RandomUniformLike"])
def test_one_number_is_drawn(op_type: str) -> None:
    got = result(13, node(op_type, "x", "y", seed=1.0), x=np.array(3, np.float32))
    assert (got.shape, got.dtype) == ((), np.float32)


def test_no_points_are_sampled() -> None:
    got = result(16, node("GridSample", "x g", "y"), x=floats(1, 2, 3, 3), g=floats(1, 0, 4, 2))
    assert got.shape == (1, 2, 0, 4)


@pytest.mark.parametrize("axes", [[0, 1], [1, 0], [-1, 0], [1]])
def test_axes_of_resize_in_any_order(axes: list[int]) -> None:
    x = np.array([[1, 2], [3, 4]], np.float32)
    sizes = np.array([4 if axis % 2 else 2 for axis in axes])
    made = node("Resize", "x _ _ n", "y", mode="nearest", axes=axes)
    assert result(18, made, x=x, n=sizes).tolist() == [[1, 1, 2, 2], [3, 3, 4, 4]]


def test_upsample_repeats_elements() -> None:
    x = np.array([[[[1, 2], [3, 4]]]], np.float32)
    want = [[1, 1, 2, 2], [1, 1, 2, 2], [3, 3, 4, 4], [3, 3, 4, 4]]
    scales = np.array([1, 1, 2, 2], np.float32)
    for opset, made, fed in (
        (1, node("Upsample", "x", "y", height_scale=2.0, width_scale=2.0), {}),
        (7, node("Upsample", "x", "y", scales=scales.tolist()), {}),
        (9, node("Upsample", "x s", "y"), {"s": scales}),
        (10, node("Resize", "x s", "y"), {"s": scales}),
    ):
        assert result(opset, made, x=x, **fed)[0, 0].tolist() == want


def test_lines_between_elements_may_be_sampled_more_rarely() -> None:
    """What Upsample leaves out of single elements, the standard does not say."""
    given = {"x": floats(1, 1, 4, 4), "s": np.array([1, 1, 0.5, 0.5], np.float32)}
    got = result(10, node("Resize", "x s", "y", mode="linear"), **given)
    np.testing.assert_array_equal(got, given["x"][:, :, ::2, ::2])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_tile_1_repeats_along_an_axis(dtype: Any) -> None:
    x = np.arange(6).reshape(2, 3).astype(dtype)
    got = result(1, node("Tile", "x n a", "y"), x=x, n=np.array(2, dtype), a=np.array(1, dtype))
    np.testing.assert_array_equal(got, np.hstack([x, x]))


def test_a_global_average_is_taken_of_each_channel_of_no_rows_too() -> None:
    x = floats(2, 3, 4, 5)
    got = result(13, node("GlobalAveragePool", "x", "y"), x=x)
    np.testing.assert_allclose(got[..., 0, 0], x.reshape(2, 3, 20).mean(axis=2), rtol=1e-6)
    assert result(13, node("GlobalAveragePool", "x", "y"), x=x[:0]).shape == (0, 3, 1, 1)
    with refused("TS510", "(2, 3, 0)"):
        result(13, node("GlobalAveragePool", "x", "y"), x=floats(2, 3, 0))


@pytest.mark.parametrize("group", [1, 2])
def test_a_transposed_convolution_takes_a_batch_without_rows(group: int) -> None:
    weights = floats(2, 3, 3, 3)
    made = node("ConvTranspose", "x w", "y", strides=[2, 2], group=group)
    assert result(13, made, x=floats(0, 2, 4, 4), w=weights).shape == (0, 3 * group, 9, 9)


def test_col2im_takes_a_batch_without_rows() -> None:
    shapes = {"i": np.array([5, 5]), "b": np.array([1, 5])}
    got = result(18, node("Col2Im", "x i b", "y"), x=floats(0, 5, 5), **shapes)
    assert got.shape == (0, 1, 5, 5)


def test_no_elements_are_quantized_by_the_range_of_zero() -> None:
    """The range that DynamicQuantizeLinear quantises to includes 0, whatever the data."""
    made = model(
        graph([node("DynamicQuantizeLinear", "x", "y s z")], [untyped("x")], ["y", "s", "z"]), 13
    )
    nothing, *of_nothing = outputs(made, x=np.zeros((2, 0), np.float32))
    _, *of_zero = outputs(made, x=np.zeros(1, np.float32))
    assert (nothing.shape, nothing.dtype, of_nothing) == ((2, 0), np.uint8, of_zero)


@pytest.mark.parametrize("batch", [0, 1, 2])
def test_gathered_elements_are_those_that_the_indices_name(batch: int) -> None:
    data, indices = floats(2, 2, 4, 5), np.array([[[1, -1], [0, 1]], [[1, 0], [-2, 1]]])
    got = result(13, node("GatherND", "x i", "y", batch_dims=batch), x=data, i=indices)
    for row, column in np.ndindex(2, 2):
        at = (row, column)[:batch] + tuple(indices[row, column])
        np.testing.assert_array_equal(got[row, column], data[at])


def test_one_element_that_is_gathered_is_an_array_of_rank_0() -> None:
    got = result(13, node("GatherND", "x i", "y"), x=floats(2, 3), i=np.array([1, 2]))
    np.testing.assert_array_equal(got, np.asarray(floats(2, 3)[1, 2]), strict=True)


@pytest.mark.parametrize("batch", [0, 1])
def test_lists_of_no_indices_name_all_that_is_in_their_batch(batch: int) -> None:
    data, indices = floats(2, 3, 4), np.zeros((2, 5, 0), np.int64)
    got = result(13, node("GatherND", "x i", "y", batch_dims=batch), x=data, i=indices)
    each = data[:, None] if batch else data
    np.testing.assert_array_equal(got, np.broadcast_to(each, (2, 5, *data.shape[batch:])))


@pytest.mark.parametrize(
    ("data", "indices", "batch"),
    [((2, 3), (1, 2, 1), 1), ((2, 3), (3, 1), 1), ((2, 3), (2, 3), 2), ((2, 3), (2, 1), -1)],
)
def test_data_and_indices_have_the_batch_dimensions_in_common(
    data: Any, indices: Any, batch: int
) -> None:
    """There are fewer of them than either has dimensions."""
    made, places = node("GatherND", "x i", "y", batch_dims=batch), np.zeros(indices, np.int64)
    with refused("TS510", "GatherND", "batch dimensions"):
        result(13, made, x=floats(*data), i=places)


def test_indices_out_of_range_are_refused_where_nothing_is_gathered() -> None:
    with refused("TS510", "GatherND"):
        result(13, node("GatherND", "x i", "y"), x=floats(2, 0), i=np.array([[2]]))
    with refused("TS510", "GatherND"):
        result(13, node("GatherND", "x i", "y"), x=floats(2, 3), i=np.array([[-3]]))


@pytest.mark.parametrize(
    ("shape", "axis", "indices"),
    [((0, 3), 1, [3]), ((0, 3), 1, [0, -4]), ((0, 0, 3), 1, [-2]), ((2, 0), 0, [2])],
)
def test_slices_without_elements_are_gathered_by_indices_in_range(
    shape: tuple[int, ...], axis: int, indices: list[int]
) -> None:
    made = node("Gather", "x i", "y", axis=axis)
    with refused("TS510", "Gather"):
        result(13, made, x=floats(*shape), i=np.array(indices))
    made = node("Gather", "x i", "y", axis=1)
    assert result(13, made, x=floats(0, 3), i=np.array([2, -3])).shape == (0, 2)


def test_no_elements_are_gathered_of_data_without_any() -> None:
    made = node("GatherND", "x i", "y")
    assert result(13, made, x=floats(2, 0), i=np.zeros((3, 0, 2), np.int64)).shape == (3, 0)
    with refused("TS510", "GatherND"):
        result(13, made, x=floats(2, 3), i=np.array([[0, 3]]))


ENDS = {
    np.dtype(np.uint8): (0, 255),
    np.dtype(np.int8): (-128, 127),
    np.dtype(np.uint16): (0, 65535),
    np.dtype(np.int16): (-32768, 32767),
    np.dtype(ml_dtypes.uint4): (0, 15),
    np.dtype(ml_dtypes.int4): (-8, 7),
}
FLOATS = (np.float32, np.float16, ml_dtypes.bfloat16)


@pytest.mark.parametrize("to", ENDS, ids=str)
@pytest.mark.parametrize("kind", FLOATS)
def test_what_is_beyond_the_type_is_quantized_to_its_ends(kind: Any, to: Any) -> None:
    """Quotients beyond 32 bits, and beyond float16, are limited as those just beyond are."""
    lowest, highest = ENDS[to]
    x = np.array([60000, -60000, np.inf, -np.inf, 1.25, -1.25, np.nan], kind)
    scale, zero = np.array(0.0625, kind), np.array(3).astype(to)
    got = result(21, node("QuantizeLinear", "x scale zero", "y"), x=x, scale=scale, zero=zero)
    assert got.dtype == to
    near = [min(23, highest), max(-17, lowest), lowest]
    assert got.astype(int).tolist() == [highest, lowest, highest, lowest, *near]


def test_numbers_beyond_32_bits_are_quantized_to_the_ends_at_every_opset() -> None:
    x, scale = np.array([3e38, -3e38, 1e10, 2.5], np.float32), np.array(0.25, np.float32)
    for opset in (10, 13, 19, 21, 23, 25):
        got = result(opset, node("QuantizeLinear", "x scale", "y"), x=x, scale=scale)
        assert got.tolist() == [255, 0, 255, 10]


def test_each_element_of_an_axis_or_block_is_quantized_by_its_own_scale() -> None:
    x = np.array([[1e10, 2, 3, -1e10, 5], [6, 7, 8, 9, 10]], np.float32)
    rows = {"scale": np.array([0.5, 2], np.float32), "zero": np.array([-3, 4], np.int8)}
    got = result(13, node("QuantizeLinear", "x scale zero", "y", axis=-2), x=x, **rows)
    assert got.tolist() == [[127, 1, 3, -128, 7], [7, 8, 8, 8, 9]]
    blocks = {
        "scale": np.array([[0.5, 2, 1], [1, 4, 0.25]], np.float32),
        "zero": np.array([[1, 2, 3], [4, 5, 6]], np.uint8),
    }
    made = node("QuantizeLinear", "x scale zero", "y", axis=1, block_size=2)
    got = result(21, made, x=x, **blocks)
    assert got.tolist() == [[255, 5, 4, 0, 8], [10, 11, 7, 7, 46]]


def test_a_quotient_has_the_type_of_the_scale_or_the_one_asked_for() -> None:
    """In float16, 50.503 / 1 is 50.5, which is rounded to 50."""
    x, scale = np.array([50.503], np.float32), np.array(1, np.float16)
    got = result(23, node("QuantizeLinear", "x scale", "y"), x=x, scale=scale)
    assert got.tolist() == [50]
    wide = node("QuantizeLinear", "x scale", "y", precision=onnx.TensorProto.FLOAT)
    assert result(23, wide, x=x, scale=scale).tolist() == [51]


@pytest.mark.parametrize(
    ("shape", "scales", "given"),
    [
        ((2, 1), (3,), {}),
        ((2, 1), (1, 2), {}),
        ((3,), (3,), {}),
        ((2, 2), (2,), {"axis": -3}),
        ((2, 4), (1, 2), {"block_size": 2}),
        ((2, 4), (2, 3), {"block_size": 2}),
    ],
)
def test_scales_that_do_not_fit_the_data_are_refused(shape: Any, scales: Any, given: Any) -> None:
    made = node("QuantizeLinear", "x scale", "y", **given)
    with refused("TS510", f"a scale of shape {scales} does not fit data of shape {shape}, axis"):
        result(21, made, x=floats(*shape), scale=floats(*scales))


def test_scales_that_hold_no_quotients_divide_in_the_type_of_the_data() -> None:
    """A float8e8m0 holds powers of two alone, above 0: no quotient, nor what is divided."""
    x, scale = np.array([1.25, -1.75, 5], np.float32), np.array(2, ml_dtypes.float8_e8m0fnu)
    zero = np.array(1, np.int8)
    got = result(25, node("QuantizeLinear", "x scale zero", "y"), x=x, scale=scale, zero=zero)
    assert got.tolist() == [2, 0, 3]


def test_a_type_that_is_not_that_of_the_zero_point_is_refused() -> None:
    made = node("QuantizeLinear", "x scale zero", "y", output_dtype=onnx.TensorProto.INT8)
    scale, zero = np.array(1, np.float32), np.array(0, np.uint8)
    with refused("TS510", "QuantizeLinear failed"):
        result(21, made, x=floats(2), scale=scale, zero=zero)


@pytest.mark.parametrize(
    ("opset", "made", "shape", "expected"),
    [
        (14, node("CumSum", "x ones", "y"), (2, 0), (2, 0)),
        (12, node("MaxPool", "x", "y", kernel_shape=[1], pads=[1, 0]), (0, 2, 0), (0, 2, 1)),
        (12, node("MaxPool", "x", "y", kernel_shape=[1], pads=[1, 0]), (2, 2, 0), (2, 2, 1)),
        (18, node("LpPool", "x", "y", kernel_shape=[1], pads=[1, 0]), (2, 0, 0), (2, 0, 1)),
        (21, node("GroupNormalization", "x four four", "y", num_groups=2), (0, 4, 3), (0, 4, 3)),
        (21, node("GroupNormalization", "x four four", "y", num_groups=2), (2, 4, 0), (2, 4, 0)),
        (13, node("Resize", "x _ _ to", "y"), (0, 3), (0, 2)),
        (18, node("Resize", "x _ _ none", "y", axes=[-2]), (2, 3), (0, 3)),
        (18, node("Resize", "x _ half", "y", axes=[1]), (0, 1), (0, 0)),
    ],
)
def test_nodes_that_give_no_elements_are_run(
    opset: int, made: Any, shape: Any, expected: Any
) -> None:
    fed = {
        "x": np.random.default_rng(1).random(shape, np.float32),
        "ones": np.array([1]),
        "four": floats(4),
        "to": np.array([0, 2]),
        "none": np.array([0]),
        "half": np.array([0.5], np.float32),
    }
    got = result(opset, made, **{name: fed[name] for name in made.input if name})
    assert (got.shape, got.dtype) == (expected, np.float32)


def test_running_sums_go_along_an_axis_in_a_list() -> None:
    x = np.array([[1, 2, 3], [4, 5, 6]], np.float32)
    got = result(14, node("CumSum", "x axis", "y"), x=x, axis=np.array([1]))
    np.testing.assert_array_equal(got, [[1, 3, 6], [4, 9, 15]])
    with refused("TS510", "CumSum failed"):
        result(14, node("CumSum", "x axis", "y"), x=x, axis=np.array([0, 1]))


@pytest.mark.parametrize("op_type", ["NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss"])
def test_the_loss_of_no_labels_is_that_of_nothing(op_type: str) -> None:
    fed = {"x": np.empty((0, 3, 2), np.float32), "labels": np.empty((0, 2), np.int64)}
    for reduction, expected in (("mean", np.nan), ("sum", 0), ("none", np.empty((0, 2)))):
        got = result(13, node(op_type, "x labels", "y", reduction=reduction), **fed)
        assert got.dtype == np.float32
        np.testing.assert_array_equal(got, expected)


def test_padding_is_removed_from_what_is_padded_with() -> None:
    x, pads = floats(0, 2), np.array([2, 0, -1, 0])
    got = result(13, node("Pad", "x pads value", "y"), x=x, pads=pads, value=np.float32(1.5))
    np.testing.assert_array_equal(got, np.full((1, 2), 1.5, np.float32))
    for mode in ("constant", "edge"):
        with refused("TS510", "3 of 2 elements are removed on axis 1"):
            result(13, node("Pad", "x pads", "y", mode=mode), x=x, pads=np.array([0, 0, 0, -3]))
    kept = result(13, node("Pad", "x pads", "y"), x=floats(3), pads=np.array([-2, 1]))
    np.testing.assert_array_equal(kept, [floats(3)[2], 0])
