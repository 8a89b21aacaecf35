"""Where onnx's own inference is wrong (`docs/errata.md`), ours is right or leaves it open."""

from __future__ import annotations

from itertools import chain, product
from math import floor
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from onnx.parser import parse_model

import tensorsplit as ts
from tensorsplit.core.dimensions import show_shape
from tensorsplit.core.plan import SplitPlan
from tensorsplit.model.graph.facts import UNKNOWN, Fact, SequenceFact, Tensor, as_tensor
from tensorsplit.model.infer.node_outputs import infer_outputs, refusal_of
from tensorsplit.model.infer.splits import fact_text, split_of
from tests.model.build import FLOAT, INT64, graph, model, node, tensor, untyped, value
from tests.model.infer.test_infer_shapes import shapes


def shape_after(opset: int, op: onnx.NodeProto, *dims: Any, **initializers: Any) -> Any:
    """What is inferred of ``y``, which a node makes of ``x`` and of some constants."""
    constants = [tensor(name, items) for name, items in initializers.items()]
    return shapes(model(graph([op], [value("x", FLOAT, dims)], ["y"], constants), opset))["y"]


@pytest.mark.parametrize("opset", [1, 9, 11, 12])
@pytest.mark.parametrize("axes", [[2, 0], [0, 2], [-1, 0], [-1, -3], [0, -1]])
def test_squeeze_takes_axes_in_any_order_and_from_the_back(opset: int, axes: list[int]) -> None:
    assert shape_after(opset, node("Squeeze", "x", "y", axes=axes), 1, "N", 1) == ("N",)


@pytest.mark.parametrize("opset", [1, 9, 11, 12])
@pytest.mark.parametrize("axes", [[1, 0], [0, 1], [-2, 0], [-3, -2], [1, -3]])
def test_unsqueeze_takes_axes_in_any_order_and_from_the_back(opset: int, axes: list[int]) -> None:
    assert shape_after(opset, node("Unsqueeze", "x", "y", axes=axes), "N") == (1, 1, "N")


AXES_AT_RUN_TIME = [
    (node("Squeeze", "x a", "y"), 1, (None, None)),
    (node("Squeeze", "x a", "y"), 2, None),
    (node("ReduceSum", "x a", "y", keepdims=0), 1, (None, None)),
    (node("ReduceSum", "x a", "y", keepdims=0), None, None),
    (node("ReduceMax", "x a", "y"), 1, (None, 1, None)),
    (node("ReduceL2", "x a", "y", keepdims=1), None, (None, 1, None)),
]


@pytest.mark.parametrize(("op", "count", "expected"), AXES_AT_RUN_TIME)
def test_the_rank_after_axes_that_are_fed_follows_from_their_number(
    op: onnx.NodeProto, count: int | None, expected: Any
) -> None:
    inputs = [value("x", FLOAT, ("N", 1, 3)), value("a", INT64, [count])]
    assert shapes(model(graph([op], inputs, ["y"]), 18))["y"] == expected


@pytest.mark.parametrize("opset", [1, 10])
def test_a_slice_of_a_dimension_with_a_name_may_be_shorter_than_its_bounds(opset: int) -> None:
    """`x[-1:]` and `x[0:4]` are empty where there is nothing."""
    bounds = {"starts": [0], "ends": [4]}
    op = node("Slice", "x", "y", **bounds) if opset == 1 else node("Slice", "x starts ends", "y")
    found = shape_after(opset, op, "M", **({} if opset == 1 else bounds))
    assert found == ("min(4, M)",)


@pytest.mark.parametrize("opset", [9, 10, 11])
@pytest.mark.parametrize("element_type", [FLOAT, onnx.TensorProto.STRING])
def test_compress_gives_the_type_and_the_other_axes_of_its_data(
    opset: int, element_type: int
) -> None:
    """onnx infers nothing of it before opset 11, and never how many are taken."""
    data, taken = value("x", element_type, [4, "M"]), tensor("taken", [1, 0, 1], np.bool_)
    for attributes, expected in (({"axis": 0 if opset < 11 else -2}, (2, "M")), ({}, (2,))):
        op = node("Compress", "x taken", "y", **attributes)
        made = model(graph([op], [data], ["y"], [taken]), opset)
        (found,) = ts.infer_shapes(made).graph.output
        assert found.type.tensor_type.elem_type == element_type
        assert shapes(made)["y"] == expected
    fed = model(graph([op], [data, value("taken", onnx.TensorProto.BOOL, [3])], ["y"]), opset)
    assert shapes(fed)["y"] == (None,)


@pytest.mark.parametrize(
    ("dims", "expected"), [((1, "N", 0), (3, 0)), ((0,), (1, 0)), (("N", 3), (2, None))]
)
def test_data_without_elements_has_none_that_are_not_0(dims: Any, expected: Any) -> None:
    assert shape_after(13, node("NonZero", "x", "y"), *dims) == expected


@pytest.mark.parametrize(
    ("boxes", "scores", "limit", "expected"),
    [
        ((1, 5, 4), (1, 2, 5), "", (0, 3)),  # without a limit, none is selected
        ((1, 5, 4), (1, 2, 5), "k", (0, 3)),
        ((1, 5, 4), (1, 2, 5), "n", (None, 3)),
        ((1, 0, 4), (1, 2, 0), "n", (0, 3)),
        (("B", "S", 4), ("B", 0, "S"), "n", (0, 3)),
        (("B", 0, 4), ("B", "C", "S"), "n", (0, 3)),
        (("B", "S", 4), ("B", "C", "S"), "n", (None, 3)),
    ],
)
def test_no_boxes_are_selected_of_none_or_up_to_0(
    boxes: Any, scores: Any, limit: str, expected: Any
) -> None:
    op = node("NonMaxSuppression", f"x scores {limit}".strip(), "y")
    inputs = [value("x", FLOAT, boxes), value("scores", FLOAT, scores), value("n", INT64, [1])]
    made = model(graph([op], inputs, ["y"], [tensor("k", [0])]), 11)
    assert shapes(made)["y"] == expected
    if all(isinstance(dim, int) for dim in (*boxes, *scores)) and expected == (0, 3):
        data = {"x": np.ones(boxes, "f4"), "scores": np.ones(scores, "f4"), "n": np.array([2])}
        assert ts.run(made, data)["y"].shape == expected


def test_the_last_window_of_ceil_mode_counts_if_it_starts_in_the_data() -> None:
    op = node("MaxPool", "x", "y", kernel_shape=[2], strides=[2], ceil_mode=1)
    assert shape_after(13, op, 1, 1, 5) == (1, 1, 3)
    assert shape_after(13, op, 1, 1, "N") == (1, 1, None)
    op.attribute.append(onnx.helper.make_attribute("auto_pad", "VALID"))
    assert shape_after(13, op, 1, 1, 5) == (1, 1, None)  # engines differ


@pytest.mark.parametrize("padding", ["SAME_UPPER", "SAME_LOWER"])
@pytest.mark.parametrize(("side", "length"), [(3, 6), (1, None)])
def test_a_transposed_convolution_with_padding_that_follows(
    padding: str, side: int, length: int | None
) -> None:
    """Its output is the data times the strides; a kernel that is too short leaves that open."""
    op = node("ConvTranspose", "x w", "y", auto_pad=padding, strides=[3], output_padding=[1])
    inputs = [value("x", FLOAT, (4, 1, 2)), value("w", FLOAT, (1, 3, side))]
    assert shapes(model(graph([op], inputs, ["y"])))["y"] == (4, 3, length)


@pytest.mark.skipif(onnx.defs.onnx_opset_version() < 23, reason="onnx has no Attention yet")
@pytest.mark.parametrize(
    ("heads", "dims", "expected", "scores"),
    [
        # queries, keys, values, and the keys of before; those of 4 dimensions have heads
        ({}, [(2, 8, 5, 3), ("B", 4, "S", 3), (2, 4, "S", "D")], (2, 8, 5, "D"), (2, 8, 5, "S")),
        (
            {"q_num_heads": 8, "kv_num_heads": 4},
            [(2, 5, 24), (2, "S", 12), (2, "S", "D"), (2, 4, "P", 3)],
            (2, 5, "2*D"),
            (2, 8, 5, "P + S"),
        ),
        ({"q_num_heads": 1, "kv_num_heads": 1}, [("B", 1, 3), None, None], ("B", 1, None), None),
    ],
)
def test_attention_of_lengths_that_are_not_known(
    heads: Any, dims: Any, expected: Any, scores: Any
) -> None:
    inputs = [value(*each) for each in zip("qkvp", [FLOAT] * 4, dims, strict=False)]
    op = node("Attention", "q k v", "y", **heads)
    op.input.extend(["", "p", "p"] if len(dims) == 4 else [])
    op.output.extend(["", "", "s"])
    found = shapes(model(graph([op], inputs, ["y", "s"]), 23))
    assert (found["y"], found["s"]) == (expected, scores)


@pytest.mark.skipif(onnx.defs.onnx_opset_version() < 23, reason="onnx has no Attention yet")
def test_what_attention_keeps_for_the_next_call_has_the_keys_of_before() -> None:
    dims = [(1, 2, 3, 4), (1, 2, 5, 4), (1, 2, 5, 6), (1, 2, 7, 4), (1, 2, 7, 6)]
    inputs = [value(*each) for each in zip("qkvpr", [FLOAT] * 5, dims, strict=True)]
    op = node("Attention", "q k v _ p r", "y a b")
    found = shapes(model(graph([op], inputs, ["y", "a", "b"]), 23))
    assert (found["y"], found["a"], found["b"]) == ((1, 2, 3, 6), (1, 2, 12, 4), (1, 2, 12, 6))


def test_a_length_of_dft_that_is_fed_is_not_that_of_the_data() -> None:
    inputs = [value("x", FLOAT, ("N", 8, 1)), value("n", INT64, ())]
    made = model(graph([node("DFT", "x n axis", "y")], inputs, ["y"], [tensor("axis", 1)]), 20)
    assert shapes(made)["y"] == ("N", None, 2)
    one_sided = node("DFT", "x _ axis", "y", onesided=1)
    assert shape_after(20, one_sided, "N", 8, 1, axis=1) == ("N", 5, 2)


@pytest.mark.parametrize(("is_0", "length"), [(0, "N"), (1, 0)])
def test_with_allowzero_a_reshape_takes_0_for_0(is_0: int, length: str | int) -> None:
    nodes = [
        node("Shape", "x", "last", start=2),
        node("Concat", "zero last", "to", axis=0),
        node("Reshape", "x to", "y", allowzero=is_0),
    ]
    inputs = [value("x", FLOAT, ("N", 0, "M"))]
    made = model(graph(nodes, inputs, ["y"], [tensor("zero", [0])]), 15)
    assert shapes(made)["y"] == (length, "M")


@pytest.mark.parametrize(
    ("data", "is_0", "length"),
    [(None, 0, None), (None, 1, "N"), (("M", 3), 0, "M"), (("M", 3), 1, "N")],
)
def test_a_length_that_may_be_0_is_one_of_the_data_but_with_allowzero(
    data: Any, is_0: int, length: str | None
) -> None:
    nodes = [
        node("Shape", "z", "first"),
        node("Concat", "first three", "to", axis=0),
        node("Reshape", "x to", "y", allowzero=is_0),
    ]
    inputs = [value("x", FLOAT, data), value("z", FLOAT, ("N",))]
    made = model(graph(nodes, inputs, ["y"], [tensor("three", [3])]), 15)
    assert shapes(made)["y"] == (length, 3)


def test_half_the_frequencies_along_an_axis_that_is_fed_are_complex_numbers() -> None:
    """Along which axis there are fewer is not known; the last one has two parts, as always."""
    one_sided = node("DFT", "x _ axis", "y", onesided=1)
    inputs = [value("x", FLOAT, ("N", 8, 1)), value("axis", INT64, ())]
    assert shapes(model(graph([one_sided], inputs, ["y"]), 20))["y"] == (None, None, 2)


@pytest.mark.parametrize(("step", "frames"), [(2, 3), (0, None)])
def test_the_window_of_stft_gives_the_length_of_frames(step: int, frames: int | None) -> None:
    inputs = [value("x", FLOAT, ("N", 8, 1)), value("w", FLOAT, (4,))]
    made = model(graph([node("STFT", "x step w", "y")], inputs, ["y"], [tensor("step", step)]), 17)
    assert shapes(made)["y"] == ("N", frames, 3, 2)


@pytest.mark.parametrize("size", [1, 4, 5])
def test_lengths_computed_from_a_slice_stay_computed(size: int) -> None:
    """`y = x[:4]; z = x[:len(x) - len(y)]`: converted from opset 10 to 9 it gives the same."""
    nodes = [
        node("Slice", "x zero four", "y"),
        node("Shape", "x", "m"),
        node("Shape", "y", "n"),
        node("Sub", "m n", "rest"),
        node("Slice", "x zero rest", "z"),
    ]
    constants = [tensor("zero", [0]), tensor("four", [4])]
    made = model(graph(nodes, [value("x", FLOAT, ("M",))], ["z"], constants), 10)
    x = np.arange(1, size + 1, dtype=np.float32)
    for each in (made, ts.convert(made, opset=11), ts.convert(made, opset=13)):
        assert ts.run(each, {"x": x})["z"].tolist() == x[: max(0, size - 4)].tolist()
    try:
        older = ts.convert(made, opset=9)
    except ts.SplitError:
        return  # Slice-1 has no bounds that are computed
    assert ts.run(older, {"x": x})["z"].tolist() == x[: max(0, size - 4)].tolist()


def test_splits_behind_a_squeeze_with_axes_from_the_back_are_right() -> None:
    """As torch exports `unbind(-1)` at opset 9."""
    nodes = [
        node("Split", "x", "a b", axis=2, split=[1, 1]),
        node("Squeeze", "a", "c", axes=[-1]),
        node("Split", "c", "d e", axis=1, split=[2, 1]),
    ]
    made = model(graph(nodes, [value("x", FLOAT, ("N", 3, 2))], ["d", "e", "b"]), 9)
    assert [finding.code for finding in ts.check(made) if finding.severity == "error"] == []
    assert shapes(made)["d"] == ("N", 2)
    x = np.random.default_rng(0).random((4, 3, 2), np.float32)
    for each in (made, ts.convert(made, opset=13)):
        got = ts.run(each, {"x": x})
        np.testing.assert_array_equal(got["e"], x[:, 2:, 0])


@pytest.mark.parametrize(
    ("start", "end", "step", "expected"),
    [(-9, -9, -1, ("N",)), (9, -9, -1, (3, "M", "N")), (0, 9, 2, ("N", 3)), (-1, 0, -1, (3, "M"))],
)
def test_elements_of_a_slice_are_those_that_run_takes(
    start: int, end: int, step: int, expected: tuple[Any, ...]
) -> None:
    """Backwards a start before the first element is that element."""
    nodes = [
        node("Shape", "x", "s"),
        node("Slice", "s start end _ step", "part"),
        node("ConstantOfShape", "part", "y"),
    ]
    bounds = {"start": [start], "end": [end], "step": [step]}
    constants = [tensor(name, items) for name, items in bounds.items()]
    made = model(graph(nodes, [value("x", FLOAT, ("N", "M", 3))], ["y"], constants), 13)
    assert shapes(made)["y"] == expected
    got = ts.run(made, {"x": np.zeros((5, 4, 3), np.float32)})["y"]
    assert got.shape == tuple({"N": 5, "M": 4}.get(dim, dim) for dim in expected)


LEAST = -(1 << 63)
"""As an end, it is before the first element."""


@pytest.mark.parametrize(
    ("op", "expected"),
    [
        (node("Slice", "x a b", "y"), (None, None)),
        (node("Slice", "x a l", "y"), (None, None)),
        (node("Slice", "x l a", "y"), (None, None)),
        (node("Slice", "a l l", "y"), None),
        (node("Add", "x a", "y"), None),
        (node("Expand", "x a", "y"), None),
    ],
)
def test_of_operands_whose_rank_is_not_known_those_of_a_slice_are_lists(
    op: onnx.NodeProto, expected: Any
) -> None:
    dims = {"x": (2, "N"), "l": (1,), "a": None, "b": None}
    inputs = [value(name, INT64, shape) for name, shape in dims.items()]
    assert shapes(model(graph([op], inputs, ["y"]), 13))["y"] == expected


NAMED = value("x", FLOAT, ("N", "M"))


@pytest.mark.parametrize(
    ("opset", "op", "others", "constants", "expected"),
    [
        (1, node("Concat", "x w", "y"), {"w": ("N", "K")}, {}, ("N", "K + M")),
        (13, node("Flatten", "w", "y"), {"w": ("N", "M", 3)}, {}, ("N", "3*M")),
        (13, node("Add", "w x", "y"), {"w": ("K", 1, 1)}, {}, ("K", "N", "M")),
        (13, node("Add", "w x", "y"), {"w": (0, "M")}, {}, (0, "M")),
        # of one whose shape is not known nothing follows but that the others are alike
        (13, node("Concat", "x w r", "y", axis=0), {"w": (5, 4), "r": None}, {}, (None, 4)),
        (13, node("Concat", "w x r", "y", axis=0), {"w": (5, 4), "r": None}, {}, (None, 4)),
        (13, node("Reshape", "w s", "y"), {"w": None}, {"s": [0, 3]}, (None, 3)),
        (13, node("Reshape", "w s", "y"), {"w": None}, {"s": [1, -1]}, (1, None)),
        (14, node("Reshape", "w s", "y", allowzero=1), {"w": None}, {"s": [0, 3]}, (0, 3)),
        (13, node("Slice", "x s e _ t", "y"), {}, {"s": [0], "e": [2], "t": [0]}, (None, "M")),
        (13, node("Pad", "x p", "y"), {}, {"p": [1, -2, 3, 0]}, ("N + 4", "max(0, M - 2)")),
        (18, node("Pad", "x p _ a", "y"), {}, {"p": [1, 2], "a": [1]}, ("N", "M + 3")),
        (13, node("Slice", "x s e", "y"), {}, {"s": [0], "e": [LEAST]}, (0, "M")),
        (13, node("Slice", "x s e _ t", "y"), {}, {"s": [-1], "e": [LEAST], "t": [-1]}, ("N", "M")),
        (13, node("Slice", "x s e _ t", "y"), {}, {"s": [-1], "e": [-1], "t": [-1]}, (None, "M")),
        (
            13,
            node("Slice", "x s e _ t", "y"),
            {},
            {"s": [-2], "e": [LEAST], "t": [-1]},
            (None, "M"),
        ),
        (13, node("Slice", "w s e", "y"), {"w": (0, "M"), "s": (1,)}, {"e": [5]}, (0, "M")),
        (13, node("Unsqueeze", "w a", "y"), {"w": (), "a": (2,)}, {}, (1, 1)),
        (13, node("Unsqueeze", "w a", "y"), {"w": ("N",), "a": (1,)}, {}, (None, None)),
        (13, node("Unsqueeze", "w a", "y"), {"w": ("N",), "a": ("K",)}, {}, None),
        (10, node("Resize", "x f", "y"), {}, {"f": [2.0, 1.0]}, ("2*N", "M")),
        (13, node("Resize", "x _ f", "y"), {}, {"f": [1.5, 1.0]}, ("floor(3*N/2)", "M")),
        (18, node("Resize", "x _ f", "y", axes=[1]), {}, {"f": [2.0]}, ("N", "2*M")),
        (18, node("Resize", "x _ _ z", "y", axes=[0]), {}, {"z": [7]}, (7, "M")),
        (13, node("OneHot", "x f f2", "y"), {}, {"f": 3.0, "f2": [0, 1]}, ("N", "M", 3)),
        (
            *(13, node("SpaceToDepth", "w", "y", blocksize=2), {"w": (1, "C", "H", 4)}),
            *({}, (1, "4*C", "floor(H/2)", 2)),
        ),
        (
            *(13, node("DepthToSpace", "w", "y", blocksize=2), {"w": (1, "C", "H", 4)}),
            *({}, (1, "floor(C/4)", "2*H", 8)),
        ),
    ],
)
def test_the_shape_of_named_dimensions_after_one_node(
    opset: int, op: onnx.NodeProto, others: Any, constants: Any, expected: Any
) -> None:
    given = [
        NAMED,
        *(value(name, FLOAT if name in "wr" else INT64, dims) for name, dims in others.items()),
    ]
    held = [
        tensor(name, items, np.float32 if name[0] == "f" else np.int64)
        for name, items in constants.items()
    ]
    assert shapes(model(graph([op], given, ["y"], held), opset))["y"] == expected


FIRST = [node("Shape", "x", "s", end=1), node("Squeeze", "s", "n")]
"""N as a scalar."""


@pytest.mark.parametrize(
    ("nodes", "expected"),
    [
        ([*FIRST, node("Range", "n zero back", "y")], ("N",)),  # N, N-1, ..., 1
        ([*FIRST, node("OneHot", "i s pair", "y")], ("K", 5, "N")),
        (
            [
                node("SequenceEmpty", "", "q"),
                node("SequenceInsert", "q x p", "r"),
                node("SequenceAt", "r p", "y"),
            ],
            ("N", "M"),  # of none that were there before
        ),
        (
            [
                node("SequenceConstruct", "x w", "q"),
                node("SequenceErase", "q two_back", "r"),
                node("SequenceAt", "r zero", "y"),
            ],
            (2,),
        ),
        (
            [
                node("SequenceConstruct", "x", "q"),
                node("SequenceInsert", "q w", "r"),  # at the end
                node("SequenceAt", "r back", "y"),
            ],
            (2,),
        ),
        (
            [node("SplitToSequence", "x", "q"), node("ConcatFromSequence", "q", "y", axis=1)],
            (1, "M*N"),
        ),
        (
            [
                node("SplitToSequence", "x", "q", keepdims=0),
                node("ConcatFromSequence", "q", "y", axis=-2, new_axis=1),
            ],
            ("N", "M"),
        ),
        (
            [
                node("SequenceConstruct", "x x", "q"),
                node("ConcatFromSequence", "q", "y", axis=2),  # it is refused where it runs
            ],
            None,
        ),
        (
            [node("SequenceConstruct", "x", "q"), node("SequenceAt", "q two_back", "y")],
            None,  # refused, too
        ),
        (
            [*FIRST, node("Concat", "none0 s", "e", axis=0), node("Expand", "x2 e", "y")],
            (0, "N"),
        ),
        ([node("SplitToSequence", "none three", "y")], (3, 2)),  # of a part, if there were one
        (
            [node("SequenceConstruct", "x", "q"), node("SequenceErase", "q back", "y")],
            ("N", "M"),  # of the one that is gone
        ),
    ],
)
def test_the_shape_of_named_dimensions_after_several(nodes: Any, expected: Any) -> None:
    inputs = [
        NAMED,
        value("w", FLOAT, (2,)),
        value("i", INT64, ("K", 5)),
        value("p", INT64, []),
        value("none", FLOAT, (0, 2)),
        value("x2", FLOAT, ("K", "N")),
    ]
    numbers = [
        tensor("zero", 0),
        tensor("back", -1),
        tensor("two_back", -2),
        tensor("three", 3),
        tensor("none0", [0]),
        tensor("pair", [0, 1]),
    ]
    found = shapes(model(graph(nodes, inputs, ["y"], numbers), 18)).get("y")
    assert found == expected


@pytest.mark.parametrize("opset", [10, 11, 24])
@pytest.mark.parametrize(("axis", "place"), [(None, 2), (0, 0), (1, 1), (-1, 2), (-2, 1), (-3, 0)])
def test_the_largest_of_a_number_with_a_name(opset: int, axis: int | None, place: int) -> None:
    nodes = [node("Shape", "p", "k"), node("TopK", "x k", "y i", axis=axis)]
    inputs = [value("x", FLOAT, ("N", 5, "M")), value("p", FLOAT, ("K",))]
    expected = ["N", 5, "M"]
    expected[place] = "K"
    if axis is not None and axis < 0 and opset < 11:
        return  # before opset 11 axes are counted from the front
    found = shapes(model(graph(nodes, inputs, ["y", "i"]), opset))
    assert found["y"] == found["i"] == tuple(expected)


def starts(side: int, reach: int, stride: int, pads: Any, ceil: int, opset: int) -> list[int]:
    """Return where the windows of a pool start: each ends in the data or their padding.

    With `ceil_mode` there is one more if something is left, since opset 22 if it starts before
    the padding at the end.
    """
    before, after = pads
    found = list(range(-before, side + after - reach + 1, stride))
    more = len(found) * stride - before
    is_left = not found or found[-1] + reach < side + after
    return [*found, more] if ceil and is_left and (opset < 22 or more < side) else found


@pytest.mark.parametrize("opset", [12, 22])
@pytest.mark.parametrize("op_type", ["MaxPool", "AveragePool", "LpPool"])
def test_the_windows_of_pools(op_type: str, opset: int) -> None:
    """As many are inferred as there are, and as many there are as `run` gives."""
    side, nodes, lengths = 6, list[onnx.NodeProto](), list[list[int]]()
    for size, stride, gap, pads, ceil in product(
        *((1, 2, 3), (1, 2, 3), (1, 2), ((0, 0), (0, 1), (1, 0), (1, 1), (0, 2)), (0, 1))
    ):
        reach = (size - 1) * gap + 1
        has_gaps = op_type == "MaxPool" or opset >= 19
        has_ceil = op_type != "LpPool" or opset >= 18
        if max(pads) >= size or (gap > 1 and not has_gaps) or (ceil and not has_ceil):
            continue
        written: dict[str, Any] = {"kernel_shape": [size], "strides": [stride], "pads": pads}
        written |= {"dilations": [gap]} if has_gaps else {}
        written |= {"ceil_mode": ceil} if has_ceil else {}
        nodes.append(node(op_type, "x", f"y{len(nodes)}", **written))
        lengths.append(starts(side, reach, stride, pads, ceil, opset))
    names = [each.output[0] for each in nodes]
    made = model(graph(nodes, [value("x", FLOAT, (1, 1, side))], map(untyped, names)), opset)
    inferred, x = shapes(made), np.random.default_rng(1).random((1, 1, side), np.float32)
    ran = ts.run(made, {"x": x})
    for each, places in zip(nodes, lengths, strict=True):
        is_beyond = opset < 22 and bool(places) and places[-1] >= side  # engines differ
        assert inferred[each.output[0]] == (1, 1, None if is_beyond else len(places)), each
        assert ran[each.output[0]].shape == (1, 1, len(places)), each


@pytest.mark.parametrize("op_type", ["MaxPool", "AveragePool"])
@pytest.mark.parametrize(
    ("padding", "stride", "length"),
    [
        *(("VALID", 1, 5), ("VALID", 2, 3), ("VALID", 3, 2), ("VALID", 4, 2)),
        *(("SAME_UPPER", 1, 7), ("SAME_LOWER", 2, 4), ("SAME_UPPER", 3, 3), ("SAME_LOWER", 4, 2)),
    ],
)
def test_the_windows_of_padding_that_follows(
    op_type: str, padding: str, stride: int, length: int
) -> None:
    op = node(op_type, "x", "y", auto_pad=padding, kernel_shape=[3], strides=[stride])
    assert shape_after(19, op, 1, 1, 7) == (1, 1, length)
    made = model(graph([op], [value("x", FLOAT)], ["y"]), 19)
    assert ts.run(made, {"x": np.ones((1, 1, 7), np.float32)})["y"].shape == (1, 1, length)


@pytest.mark.parametrize("padding", ["SAME_UPPER", "SAME_LOWER"])
@pytest.mark.parametrize(("gap", "length"), [(1, 4), (2, None)])
def test_windows_with_gaps_and_padding_that_follows_are_left_open(
    padding: str, gap: int, length: int | None
) -> None:
    """By the text there are 4; onnxruntime forgets the padding then."""
    shape = {"kernel_shape": [3], "strides": [2], "dilations": [gap]}
    op = node("MaxPool", "x", "y", auto_pad=padding, **shape)
    assert shape_after(12, op, 1, 1, 7) == (1, 1, length)


FOLLOWED: list[tuple[int, onnx.NodeProto, tuple[Any, ...], dict[str, Any], tuple[Any, ...]]] = [
    (1, node("Concat", "x x", "y"), (2, "N"), {}, (2, "2*N")),
    (13, node("Concat", "x x", "y", axis=0), (2, "N"), {}, (4, "N")),
    (13, node("Flatten", "x", "y"), ("N", 2, 3), {}, ("N", 6)),
    (13, node("Flatten", "x", "y", axis=2), ("N", 2, 3), {}, ("2*N", 3)),
    (13, node("Flatten", "x", "y", axis=-1), (4, "N", 3), {}, ("4*N", 3)),
    (13, node("Tile", "x r", "y"), ("N", 2), {"r": [3, 2]}, ("3*N", 4)),
    (13, node("Reshape", "x r", "y"), (None, "N", 4), {"r": [0, -1]}, (None, "4*N")),
    (13, node("Pad", "x p", "y"), ("N", 2), {"p": [1, 0, 2, 4]}, ("N + 3", 6)),
    (13, node("Pad", "x p", "y"), ("N",), {"p": [-1, -2]}, ("max(0, N - 3)",)),
    (2, node("Pad", "x", "y", pads=[1, 0, 2, 4]), ("N", 2), {}, ("N + 3", 6)),
    (10, node("Pad", "x", "y", pads=[1, 0, 2, 4]), ("N", 2), {}, ("N + 3", 6)),
    (11, node("Pad", "x p", "y"), ("N", 2), {"p": [1, 0, 2, 4]}, ("N + 3", 6)),
    (18, node("Pad", "x p _ a", "y"), ("N", 2), {"p": [1, 2], "a": [1]}, ("N", 5)),
    (13, node("TopK", "x k", "y z"), (3, "N"), {"k": [2]}, (3, 2)),
    (10, node("TopK", "x k", "y z"), (3, "N"), {"k": [2]}, (3, 2)),
    (9, node("TopK", "x", "y z", k=2), (3, "N"), {}, (3, 2)),
    (13, node("TopK", "x k", "y z", axis=0), (3, "N"), {"k": [2]}, (2, "N")),
    (13, node("DepthToSpace", "x", "y", blocksize=2), ("N", 8, "H", 3), {}, ("N", 2, "2*H", 6)),
    (13, node("SpaceToDepth", "x", "y", blocksize=2), ("N", 3, 4, 6), {}, ("N", 12, 2, 3)),
    (17, node("DFT", "x", "y"), ("N", 8, 1), {}, ("N", 8, 2)),
    (17, node("DFT", "x", "y", onesided=1), ("N", 8, 1), {}, ("N", 5, 2)),
    (17, node("DFT", "x", "y", axis=2, onesided=1), ("N", 3, 6, 1), {}, ("N", 3, 4, 2)),
    (20, node("DFT", "x", "y", onesided=1), ("N", 3, 6, 1), {}, ("N", 3, 4, 2)),
    (17, node("DFT", "x n", "y"), ("N", 8, 1), {"n": 6}, ("N", 6, 2)),
    (19, node("DFT", "x", "y", onesided=1), (2, 8, 6, 1), {}, (2, 5, 6, 2)),
    (20, node("DFT", "x _ a", "y", onesided=1), (2, 8, 6, 1), {"a": -3}, (2, 5, 6, 2)),
    (20, node("DFT", "x n", "y"), (2, 8, 6, 1), {"n": 5}, (2, 8, 5, 2)),
    *(  # older onnx refuses both together
        [(20, node("DFT", "x", "y", onesided=1, inverse=1), (2, 8, 4, 2), {}, (2, 8, 6, 1))]
        if onnx.defs.onnx_opset_version() >= 27
        else []
    ),
    (9, node("TopK", "x", "y i", k=3, axis=-2), ("N", 5, 7), {}, ("N", 3, 7)),
    (5, node("Reshape", "x s", "y"), ("N", 2, "M"), {"s": [0, -1]}, ("N", "2*M")),
    *(
        (11, node("OneHot", "x d v", "y", **axis), ("N", 2), {"d": 5, "v": [0, 1]}, expected)
        for axis, expected in (
            ({}, ("N", 2, 5)),
            ({"axis": 0}, (5, "N", 2)),
            ({"axis": -2}, ("N", 5, 2)),
        )
    ),
    (17, node("STFT", "x s _ l", "y"), ("N", 9, 1), {"s": 2, "l": 4}, ("N", 3, 3, 2)),
    (17, node("STFT", "x s _ l", "y", onesided=0), ("N", 9, 1), {"s": 2, "l": 4}, ("N", 3, 4, 2)),
    (13, node("MaxPool", "x", "y z", kernel_shape=[3]), ("N", 2, 7), {}, ("N", 2, 5)),
    (13, node("MaxPool", "x", "y", kernel_shape=[3], pads=[1, 1]), (1, 2, "L"), {}, (1, 2, "L")),
    (
        *(13, node("MaxPool", "x", "y", kernel_shape=[2], strides=[2], pads=[0, 1])),
        *((1, 2, 7), {}, (1, 2, 4)),
    ),
    (
        *(13, node("AveragePool", "x", "y", kernel_shape=[2], auto_pad="VALID", pads=[1, 1])),
        *((1, 2, 7), {}, (1, 2, 6)),
    ),
    (
        *(13, node("LpPool", "x", "y", kernel_shape=[3], auto_pad="SAME_UPPER", strides=[2])),
        *((1, 2, 7), {}, (1, 2, 4)),
    ),
]
"""An opset, a node, the shape of its data, constants, and the shape of what it makes."""


@pytest.mark.parametrize(("opset", "op", "dims", "constants", "expected"), FOLLOWED)
def test_the_shape_of_an_output_follows(
    opset: int,
    op: onnx.NodeProto,
    dims: tuple[Any, ...],
    constants: dict[str, Any],
    expected: tuple[Any, ...],
) -> None:
    assert shape_after(opset, op, *dims, **constants) == expected


WEIGHED: list[tuple[onnx.NodeProto, tuple[Any, ...], tuple[Any, ...], tuple[Any, ...]]] = [
    (node("Conv", "x w", "y", dilations=[2]), ("N", 2, 9), (4, 2, 3), ("N", 4, 5)),
    (node("Conv", "x w", "y", pads=[1, 2]), (1, 2, "L"), (4, 2, 3), (1, 4, "L + 1")),
    (node("Conv", "x w", "y", strides=[2]), (1, 2, 8), (4, 2, 3), (1, 4, 3)),
    (node("Conv", "x w", "y", strides=[3]), (1, 2, 2), (4, 2, 3), (1, 4, 0)),  # none fits
    (node("Conv", "x w", "y", kernel_shape=[3]), (1, 2, 8), (4, 2, None), (1, 4, 6)),
    (node("Conv", "x w", "y", auto_pad="SAME_LOWER"), (1, 2, "L"), (4, 2, 3), (1, 4, "L")),
    (
        node("Conv", "x w", "y", auto_pad="SAME_UPPER", dilations=[2]),
        *((1, 2, "L"), (4, 2, 3), (1, 4, "L")),
    ),
    (node("ConvTranspose", "x w", "y", group=2), ("N", 4, 5), (4, 3, 2), ("N", 6, 6)),
    (
        node("ConvTranspose", "x w", "y", strides=[2], dilations=[2]),
        *((7, 4, 5), (4, 3, 3), (7, 3, 13)),  # 4 steps of 2 and a kernel of 3 with gaps of 1
    ),
    (node("ConvTranspose", "x w", "y", pads=[1, 2]), (1, 4, 5), (4, 3, 4), (1, 3, 5)),
    (
        node("ConvTranspose", "x w", "y", strides=[2], output_padding=[1]),
        *((1, 4, "L"), (4, 3, 2), (1, 3, "2*L + 1")),
    ),
    (
        node("ConvTranspose", "x w", "y", strides=[2], output_shape=[11]),
        *((1, 4, 5), (4, 3, 2), (1, 3, 11)),
    ),
]
"""A node, the shape of its data, that of its weights, and that of what it makes."""


@pytest.mark.parametrize(("op", "dims", "weights", "expected"), WEIGHED)
def test_the_shape_after_a_convolution_follows(
    op: onnx.NodeProto, dims: Any, weights: Any, expected: Any
) -> None:
    inputs = [value("x", FLOAT, dims), value("w", FLOAT, weights)]
    assert shapes(model(graph([op], inputs, ["y"]), 13))["y"] == expected


def test_both_outputs_of_a_pooling_and_of_the_largest_elements_have_one_shape() -> None:
    nodes = [
        node("MaxPool", "x", "a b", kernel_shape=[3]),
        node("TopK", "x k", "c d", axis=1),
    ]
    made = graph(nodes, [value("x", FLOAT, ("N", 4, 7))], list("abcd"), [tensor("k", [2])])
    found = shapes(model(made, 13))
    assert found["a"] == found["b"] == ("N", 4, 5)
    assert found["c"] == found["d"] == ("N", 2, 7)


BOUNDS: list[tuple[tuple[int, int, int], Any]] = [
    ((0, 1 << 62, 2), "floor(N/2 + 1/2)"),
    ((1, 1 << 62, 1), "max(0, N - 1)"),
    ((0, -1, 1), "max(0, N - 1)"),
    ((-2, 1 << 62, 1), "min(2, N)"),
    ((-1, -(1 << 62), -1), "N"),
    ((1 << 62, -(1 << 62), -2), "floor(N/2 + 1/2)"),
    ((-(1 << 62), 3, 1), "min(3, N)"),
    ((3, 3, 1), 0),
    ((0, -(1 << 62), 1), 0),
]
"""Where a slice of a dimension N starts and ends, its step, and how many elements it has."""


@pytest.mark.parametrize(("bounds", "expected"), BOUNDS)
def test_how_many_elements_a_slice_of_a_named_dimension_has(
    bounds: tuple[int, int, int], expected: Any
) -> None:
    start, end, step = bounds
    op = node("Slice", "x start end axes step", "y")
    held = {"start": [start], "end": [end], "axes": [0], "step": [step]}
    assert shape_after(13, op, "N", **held) == (expected,)


@pytest.mark.parametrize("step", [1, 2, -1, -2])
def test_what_is_told_of_a_slice_holds_for_every_dimension(step: int) -> None:
    """As Python slices; from the front to a number from the front, it is told of each."""
    bounds = list(product((-(1 << 62), -2, -1, 0, 1, 3, 1 << 62), repeat=2))
    held = {f"b{end}": [end] for end in {*chain(*bounds)}} | {"axes": [0], "step": [step]}
    ends = [f"y{start}_{end}" for start, end in bounds]
    pairs = zip(bounds, ends, strict=True)
    nodes = [node("Slice", f"x b{start} b{end} axes step", name) for (start, end), name in pairs]
    constants = [tensor(name, items) for name, items in held.items()]
    found = shapes(model(graph(nodes, [value("x", FLOAT, ("N",))], ends, constants), 13))
    for (start, end), name in zip(bounds, ends, strict=True):
        (told,) = found[name] or (None,)
        assert told is not None or step < 0 or start < 0 or end < 0
        for dim in range(6) if told is not None else ():
            got = eval(str(told), {"floor": floor, "N": dim})
            assert got == len(range(dim)[start:end:step]), (start, end)


@pytest.mark.parametrize(
    ("opset", "operands", "scales", "expected"),
    [
        (10, "x s", [1, 2], ("N", "2*M")),
        (11, "x none s", [1, 2], ("N", "2*M")),
        (13, "x _ s", [1, 2], ("N", "2*M")),
        (13, "x _ s", [1, 0.5], ("N", "floor(M/2)")),
        (13, "x _ s", [1, 0.1], ("N", None)),
    ],
)
def test_a_resized_dimension_with_a_name(
    opset: int, operands: str, scales: list[float], expected: tuple[Any, ...]
) -> None:
    op = node("Resize", operands, "y", mode="nearest")
    constants = [tensor("s", scales, np.float32), tensor("none", [], np.float32)]
    made = graph([op], [value("x", FLOAT, ("N", "M"))], ["y"], constants)
    assert shapes(model(made, opset))["y"] == expected


def test_a_resize_that_keeps_the_aspect_ratio_leaves_its_dimensions_open() -> None:
    """How far each axis is scaled depends on the others."""
    op = node("Resize", "x _ _ s", "y", keep_aspect_ratio_policy="not_larger", axes=[0, 1])
    made = graph([op], [value("x", FLOAT, ("N", "M"))], ["y"], [tensor("s", [4, 4])])
    assert shapes(model(made, 18))["y"] == (None, None)


@pytest.mark.parametrize(
    ("bounds", "expected"),
    [
        *[((0, 7, 2), 4), ((7, 0, -2), 4), ((7, 0, 2), 0), ((3, 3, 1), 0)],
        *[((0, 2**63 - 1, 1), 2**63 - 1), ((-(2**63), 2**63 - 1, 1), None)],
        *[((0.0, 3.5, 1.0), 4), ((0.0, 1e30, 1.0), None), ((0.0, 2.0, -1.0), 0)],
    ],
)
def test_how_many_numbers_a_range_has(bounds: tuple[Any, ...], expected: int | None) -> None:
    """They are known where the bounds follow from shapes, too; onnx says 0 of too many."""
    kind = np.array(bounds).dtype
    constants = [tensor(name, held, kind) for name, held in zip("abc", bounds, strict=True)]
    nodes = [node("Range", "a b c", "y")]
    assert shapes(model(graph(nodes, [], ["y"], constants), 13))["y"] == (expected,)


@pytest.mark.parametrize(
    ("kind", "step"),
    [*((ir.DataType.INT64, step) for step in (None, "S", 0)), (ir.DataType.FLOAT, 1)],
)
def test_a_range_of_floats_or_of_a_step_that_is_not_known_has_any_number_of_elements(
    kind: ir.DataType, step: Any
) -> None:
    ends = [ir.Value(name=name) for name in "abcy"]
    made = ir.Node("", "Range", ends[:3], outputs=ends[3:])
    inputs: list[Fact] = [Tensor(kind, (), (each,)) for each in (0, "N", step)]
    assert infer_outputs(made, inputs, {"": 18}) == [Tensor(kind, (None,))]
    inputs = [Tensor(ir.DataType.INT64, (), (each,)) for each in (0, "N", 1)]
    (found,) = infer_outputs(made, inputs, {"": 18})
    assert show_shape(as_tensor(found).shape or ()) == "(N,)"


@pytest.mark.parametrize(
    ("sequence", "join", "expected"),
    [
        ("SequenceConstruct(x)", "axis = 0", ("N", 3)),
        ("SequenceConstruct(x, x)", "axis = 1", ("N", 6)),
        ("SequenceConstruct(x, x)", "axis = -1, new_axis = 1", ("N", 3, 2)),
        ("SequenceConstruct(x, x)", "axis = -3, new_axis = 1", (2, "N", 3)),
        ("SequenceConstruct(x, x)", "axis = 2", None),
        ("SequenceConstruct(x, x)", "axis = -3", None),
        ("SequenceEmpty()", "axis = 0", None),
        ("SequenceConstruct(x)", "new_axis = 1", None),
    ],
)
def test_the_shape_of_joined_parts(sequence: str, join: str, expected: Any) -> None:
    made = parse_model(f"""<ir_version: 8, opset_import: ["" : 13]>
        g (float[N, 3] x) => (float y) {{
            s = {sequence} y = ConcatFromSequence <{join}> (s) }}""")
    made.graph.output[0].type.tensor_type.ClearField("shape")
    assert shapes(made)["y"] == expected


def test_what_onnx_infers_nothing_of_is_not_known() -> None:
    made = ir.Node("", "Add", [ir.Value(name="a"), ir.Value(name="b")], num_outputs=1)
    assert infer_outputs(made, [UNKNOWN, UNKNOWN], {"": 18}) == [UNKNOWN]


MISTAKES: list[tuple[onnx.NodeProto, list[Any], bool]] = [
    *(
        (node("Reshape", "a b", "y"), [shape, list(target)], is_wrong)
        for shape, target, is_wrong in (
            (("N", 2), (2, -1), False),
            ((4, 2), (2, -1), False),
            ((4, 2), (2, 4), False),
            ((4, 2), (2, 3), True),
            (("N", 2), (2, 3), False),
        )
    ),
    *(
        (node("Gemm", "a b", "y", transA=left, transB=right), [(2, 3), (3, 2)], left != right)
        for left, right in product((0, 1), repeat=2)
    ),
    (node("Gemm", "a b", "y", transB=1), [(2, 3), (4, "N")], False),
    (node("MaxPool", "a", "y", kernel_shape=[3]), [(1, 1, 2)], True),
    (node("MaxPool", "a", "y", kernel_shape=[3]), [(0, 1, 3)], False),  # there is just no data
    (node("Conv", "a b", "y"), [(1, 0, 3), (0, 0, 3)], False),
    *(
        (node("Conv", "a b", "y", strides=[3]), [(1, 1, length), (1, 1, side)], is_wrong)
        for length, side, is_wrong in (
            *((2, 3, True), (3, 3, False), (1, 3, True)),
            *(("N", 3, False), (2, "K", False), ("N", "K", False)),
        )
    ),
    (node("Conv", "a b", "y"), [("N", 1, 3), (2, 1, 3)], False),
    (node("Conv", "a b", "y"), [(1, 1, 3), ("K", 1, 3)], False),
    (node("MaxPool", "a", "y", kernel_shape=[3]), [(1, 1, "N")], False),
    (node("Conv", "a b", "y", kernel_shape=[3]), [None, (1, 1, 3)], False),
    (node("Conv", "a b", "y"), [(1, 1, 2), None], False),
    (node("Pad", "a b", "y", mode="reflect"), [(3, 4), [0, 3, 0, 3]], False),
    (node("Pad", "a b", "y", mode="reflect"), [(3, 4), [0, 0, 0, 4]], True),
    (node("Pad", "a b", "y", mode="edge"), [(3, 4), [0, 0, 0, 4]], False),
    (node("Pad", "a b _ d", "y", mode="reflect"), [(3, 4), [0, 3], None, [-1]], False),
    (node("Pad", "a b _ d", "y", mode="reflect"), [(3, 4), [0, 3], None, [-2]], True),
    *(
        (
            node("GRU", "a b c _ _ d", "y", hidden_size=3, layout=layout),
            [(5, 2, 4), (1, 9, 4), (1, 9, 3), None, None, (1, batch, 3)],
            is_wrong,
        )
        for layout, batch, is_wrong in ((0, 2, False), (0, 4, True), (0, "N", False), (1, 4, False))
    ),
]
"""A node, the shapes of its tensors or the elements of its lists, and whether it is a mistake."""


@pytest.mark.parametrize(("op", "given", "is_wrong"), MISTAKES)
def test_a_plain_mistake_is_refused(op: onnx.NodeProto, given: list[Any], is_wrong: bool) -> None:
    inputs: list[Fact] = [
        Tensor(ir.DataType.INT64, (len(each),), tuple(each))
        if isinstance(each, list)
        else Tensor(ir.DataType.FLOAT, each)
        for each in given
    ]
    names = [f"x{place}" if name else "" for place, name in enumerate(op.input)]
    ends = [ir.Value(name=name) if name else None for name in names]
    held = list(map(ir.serde.deserialize_attribute, op.attribute))
    made = ir.Node("", op.op_type, ends, held, outputs=[ir.Value(name="y")])
    opsets = (12, 18) if op.op_type == "Gemm" else (18,)  # at 12 onnx does not compare the sides
    for opset in opsets:
        assert bool(refusal_of(made, inputs, {"": opset})) == is_wrong


@pytest.mark.parametrize(
    ("fact", "text"),
    [
        (Tensor(ir.DataType.FLOAT, (2, "N")), "a tensor of float of shape (2, N)"),
        (Tensor(None, (2,)), "a tensor of shape (2,)"),
        (Tensor(ir.DataType.INT64), "a tensor of int64"),
        (
            SequenceFact(ir.DataType.FLOAT, (None, 3)),
            "a sequence of tensors of float of shape (?, 3)",
        ),
    ],
)
def test_what_is_known_of_a_value_is_told(fact: Fact, text: str) -> None:
    assert fact_text(fact) == text


@pytest.mark.parametrize("has_lengths", [False, True])
def test_keepdims_that_each_call_gives_matters_without_lengths_alone(has_lengths: bool) -> None:
    """The standard: it is ignored if lengths are given."""
    operands = [ir.val("x"), *([ir.val("l")] if has_lengths else [])]
    kept = ir.RefAttr("keepdims", "k", ir.AttributeType.INT)
    made = ir.Node("", "SplitToSequence", operands, [kept], num_outputs=1)
    facts: list[Fact] = [Tensor(ir.DataType.FLOAT, (4, 3)), Tensor(ir.DataType.INT64, (2,), (1, 3))]
    found = split_of(made, 18, facts[: len(operands)])
    assert found.errors == []
    if has_lengths:
        assert isinstance(found.plan, SplitPlan)
        assert list(found.plan.output_shapes) == [(1, 3), (3, 3)]
    else:
        assert found.missing == "each call of the function gives keepdims"
