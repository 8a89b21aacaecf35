"""Types and shapes of split outputs, and of what follows from them."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from onnx import ModelProto, NodeProto, TensorProto

import tensorsplit as ts
from tensorsplit.model.check.checker import check
from tensorsplit.model.infer.analysis import analyse
from tensorsplit.model.infer.filling import infer_shapes
from tests.model.build import (
    BOOL,
    FLOAT,
    INT64,
    function,
    graph,
    link,
    linked,
    model,
    node,
    tensor,
    untyped,
    value,
)
from tests.refusals import refused

X = value("x", FLOAT, ("N", 6, 4))


def shapes(made: ModelProto) -> dict[str, tuple[Any, ...] | None]:
    """What the main graph says of its values after inference."""
    found = infer_shapes(made)
    assert isinstance(found, ModelProto)
    return described(found.graph)


def described(made: onnx.GraphProto) -> dict[str, tuple[Any, ...] | None]:
    return {entry.name: shape_of(entry.type) for entry in (*made.value_info, *made.output)}


def shape_of(declared: onnx.TypeProto) -> tuple[Any, ...] | None:
    if declared.HasField("sequence_type"):
        declared = declared.sequence_type.elem_type
    if not declared.tensor_type.HasField("shape"):
        return None
    return tuple(
        dim.dim_value if dim.HasField("dim_value") else dim.dim_param or None
        for dim in declared.tensor_type.shape.dim
    )


def simple(*nodes: NodeProto, outputs: str, opset: int = 18, **initializers: Any) -> ModelProto:
    given = [tensor(name, items) for name, items in initializers.items()]
    return model(graph(nodes, [X], outputs.split(), given), opset)


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        pytest.param(
            simple(node("Split", "x", "a b", axis=1, num_outputs=2), outputs="a b"),
            {"a": ("N", 3, 4), "b": ("N", 3, 4)},
            id="num_outputs",
        ),
        pytest.param(
            simple(node("Split", "x", "a b c d", axis=1, num_outputs=4), outputs="a b c d"),
            {"a": ("N", 2, 4), "b": ("N", 2, 4), "c": ("N", 2, 4), "d": ("N", 0, 4)},
            id="num_outputs-uneven",
        ),
        pytest.param(
            simple(node("Split", "x s", "a b", axis=-1), outputs="a b", s=[1, 3]),
            {"a": ("N", 6, 1), "b": ("N", 6, 3)},
            id="input",
        ),
        pytest.param(
            simple(node("Split", "x", "a b", axis=1, split=[5, 1]), outputs="a b", opset=11),
            {"a": ("N", 5, 4), "b": ("N", 1, 4)},
            id="attribute",
        ),
        pytest.param(
            simple(node("Split", "x", "a b", axis=2), outputs="a b", opset=13),
            {"a": ("N", 6, 2), "b": ("N", 6, 2)},
            id="equal",
        ),
        pytest.param(
            simple(node("Split", "x", "a b"), outputs="a b", opset=13),
            {"a": ("floor(N/2)", 6, 4), "b": ("floor(N/2)", 6, 4)},
            id="equal-symbolic",
        ),
        pytest.param(
            simple(node("Split", "x s", "a b"), outputs="a b", s=[2, 5]),
            {"a": (2, 6, 4), "b": (5, 6, 4)},
            id="input-on-symbolic-axis",
        ),
        pytest.param(
            simple(
                node("Split", "x", "a b", axis=1, num_outputs=2),
                node("Relu", "a", "r"),
                outputs="r b",
            ),
            {"a": ("N", 3, 4), "b": ("N", 3, 4), "r": ("N", 3, 4)},
            id="through-another-operator",
        ),
    ],
)
def test_outputs_of_split(made: ModelProto, expected: dict[str, Any]) -> None:
    assert shapes(made) == expected


def test_a_symbolic_uneven_cut_adds_up() -> None:
    made = simple(node("Split", "x", "a b c", num_outputs=3), outputs="a b c")
    found = shapes(made)
    first, last = (ir.SymbolicDim(str((found[name] or ())[0])) for name in "ac")
    for n, size, rest in ((9, 3, 3), (8, 3, 2), (7, 3, 1), (4, 2, 0)):
        assert (first.evaluate({"N": n}), last.evaluate({"N": n})) == (size, rest)


SEQUENCES: dict[str, tuple[list[NodeProto], dict[str, Any], tuple[Any, ...]]] = {
    "chunks": (
        [node("SplitToSequence", "x s", "q", axis=1), node("SequenceAt", "q i", "y")],
        {"s": 4, "i": 1},
        ("N", 2, 4),
    ),
    "the last chunk, from the back": (
        [node("SplitToSequence", "x s", "q", axis=1), node("SequenceAt", "q i", "y")],
        {"s": 4, "i": -1},
        ("N", 2, 4),
    ),
    "an axis that is dropped": (
        [node("SplitToSequence", "x", "q", axis=0, keepdims=0), node("SequenceAt", "q i", "y")],
        {"i": 1},
        (6, 4),
    ),
    "a cut of unknown count": (
        [node("SplitToSequence", "x s", "q"), node("SequenceAt", "q i", "y")],
        {"s": 2, "i": 0},
        (None, 6, 4),
    ),
    "all parts together": (
        [
            node("SplitToSequence", "x s", "q", axis=1),
            node("ConcatFromSequence", "q", "y", axis=1),
        ],
        {"s": 4},
        ("N", 6, 4),
    ),
    "a part erased": (
        [
            node("SplitToSequence", "x s", "q", axis=1),
            node("SequenceErase", "q i", "r"),
            node("ConcatFromSequence", "r", "y", axis=1),
        ],
        {"s": [1, 2, 3], "i": 1},
        ("N", 4, 4),
    ),
    "a part put in": (
        [
            node("SplitToSequence", "x s", "q", axis=1),
            node("SequenceInsert", "q x i", "r"),
            node("ConcatFromSequence", "r", "y", axis=1),
        ],
        {"s": [1, 5], "i": 0},
        ("N", 12, 4),
    ),
    "parts stacked": (
        [
            node("SplitToSequence", "x s", "q", axis=1),
            node("ConcatFromSequence", "q", "y", axis=0, new_axis=1),
        ],
        {"s": 3},
        (2, "N", 3, 4),
    ),
    "parts stacked, as the last axis": (
        [
            node("SplitToSequence", "x s", "q", axis=1),
            node("ConcatFromSequence", "q", "y", axis=3, new_axis=1),
        ],
        {"s": 3},
        ("N", 3, 4, 2),
    ),
    "parts stacked, counted from the back": (
        [
            node("SplitToSequence", "x s", "q", axis=1),
            node("ConcatFromSequence", "q", "y", axis=-4, new_axis=1),
        ],
        {"s": 3},
        (2, "N", 3, 4),
    ),
    "some part erased": (
        [
            node("SplitToSequence", "x s", "q", axis=1),
            node("SequenceErase", "q any", "r"),
            node("ConcatFromSequence", "r", "y", axis=0, new_axis=1),
        ],
        {"s": 2},
        (2, "N", 2, 4),
    ),
    "a part put in somewhere": (
        [
            node("SplitToSequence", "x s", "q", axis=1),
            node("SequenceAt", "q any", "part"),
            node("SequenceInsert", "q part any", "r"),
            node("ConcatFromSequence", "r", "y", axis=0, new_axis=1),
        ],
        {"s": 2},
        (4, "N", 2, 4),
    ),
    "a sequence made by hand": (
        [
            node("SequenceConstruct", "x x x", "q"),
            node("Identity", "q", "r"),
            node("ConcatFromSequence", "r", "y", axis=2),
        ],
        {},
        ("N", 6, 12),
    ),
    "an empty one that grows": (
        [
            node("SequenceEmpty", "", "e"),
            node("SequenceInsert", "e x", "q"),
            node("SequenceAt", "q i", "y"),
        ],
        {"i": 0},
        ("N", 6, 4),
    ),
}


@pytest.mark.parametrize("name", SEQUENCES)
def test_through_sequences(name: str) -> None:
    nodes, initializers, expected = SEQUENCES[name]
    made = simple(*nodes, outputs="y", **initializers)
    made.graph.input.append(value("any", INT64, ()))
    assert shapes(made)["y"] == expected


def lengths_from_the_shape(index: int, divisor: int) -> ModelProto:
    """As exporters write ``x.split([d // n, d - d // n])``."""
    return simple(
        node("Shape", "x", "sh"),
        node("Gather", "sh index", "d"),
        node("Div", "d divisor", "part"),
        node("Sub", "d part", "rest"),
        node("Concat", "part rest", "lengths", axis=0),
        node("Split", "x lengths", "a b", axis=index),
        outputs="a b",
        index=[index],
        divisor=[divisor],
    )


def test_lengths_that_the_graph_computes_are_seen_through() -> None:
    found = shapes(lengths_from_the_shape(1, 4))
    assert (found["a"], found["b"]) == (("N", 1, 4), ("N", 5, 4))


def test_computed_lengths_may_be_symbolic() -> None:
    found = shapes(lengths_from_the_shape(0, 2))
    assert (found["a"], found["b"]) == (("floor(N/2)", 6, 4), ("N - floor(N/2)", 6, 4))


@pytest.mark.parametrize(
    ("nodes", "expected"),
    [
        ([node("Gather", "sh index", "l")], (6, "N")),
        ([node("Slice", "sh back end axes back", "l")], (4, 6, "N")),
        ([node("Expand", "n three", "l")], ("N", "N", "N")),
        ([node("Tile", "sh two", "l")], ("N", 6, 4, "N", 6, 4)),
        ([node("Where", "flags sh sh", "w"), node("Concat", "w two", "l", axis=0)], ("N", 6, 4, 2)),
    ],
)
def test_parts_of_a_shape_that_are_moved_are_followed(
    nodes: list[NodeProto], expected: tuple[Any, ...]
) -> None:
    """As lengths, of which each is known as far as the shape is."""
    names = [f"p{index}" for index in range(len(expected))]
    made = simple(
        node("Shape", "x", "sh"),
        node("Gather", "sh start", "n"),
        *nodes,
        node("Split", "y l", " ".join(names)),
        outputs=" ".join(names),
        index=[1, 0],
        start=[0],
        back=[-1],
        end=[-9],
        axes=[0],
        two=[2],
        three=[3],
    )
    made.graph.initializer.append(tensor("flags", [True, False, True], np.bool_))
    made.graph.input.append(value("y", FLOAT, [None]))
    found = shapes(made)
    assert tuple((found[name] or ())[0] for name in names) == expected


@pytest.mark.parametrize(("times", "expected"), [(1 << 60, 6 << 60), (1 << 62, None)])
def test_a_length_that_no_dimension_can_have_is_not_known(times: int, expected: Any) -> None:
    nodes = [node("Concat", "n times one", "r", axis=0), node("Tile", "x r", "y")]
    made = simple(*nodes, outputs="y", times=[times], one=[1])
    made.graph.input.append(value("n", INT64, [1]))
    assert shapes(made)["y"] == (None, expected, 4)


def test_run_time_lengths_leave_the_axis_open() -> None:
    made = model(
        graph([node("Split", "x s", "a b", axis=1)], [X, value("s", INT64, (2,))], ["a", "b"])
    )
    assert shapes(made)["a"] == ("N", None, 4)


def test_what_is_computed_of_an_overridable_initializer_is_not_known() -> None:
    """D20: another value may be fed. Its default, which fits no Split, is not refused."""
    nodes = [node("Add", "s zero", "t"), node("Split", "x t", "a b", axis=1)]
    inputs = [X, value("s", INT64, (2,))]
    made = graph(nodes, inputs, ["a", "b"], [tensor("s", [2, 5]), tensor("zero", [0, 0])])
    assert shapes(model(made))["a"] == ("N", None, 4)
    x = np.arange(24, dtype=np.float32).reshape(1, 6, 4)
    got = ts.run(model(made), {"x": x, "s": np.array([1, 5])})
    np.testing.assert_array_equal(got["a"], x[:, :1])


def test_a_loop_keeps_what_every_round_keeps() -> None:
    body = graph(
        [
            node("Split", "x", "p q", axis=1, num_outputs=2),
            node("Add", "sum p", "next"),
            node("Identity", "go", "on"),
        ],
        [value("i", INT64, ()), value("go", BOOL, ()), value("sum", FLOAT)],
        ["on", "next", "q"],
    )
    made = model(
        graph(
            [node("Loop", "trips _ start", "y qs", body=body)],
            [X, value("start", FLOAT, ("N", 3, 4))],
            ["y", "qs"],
            [tensor("trips", 5)],
        )
    )
    assert shapes(made) == {"y": ("N", 3, 4), "qs": (5, "N", 3, 4)}


def test_both_branches_of_an_if_must_agree() -> None:
    def branch(parts: int) -> onnx.GraphProto:
        outputs = " ".join(f"p{parts}_{i}" for i in range(parts))
        made = node("Split", "x", outputs, axis=1, num_outputs=parts)
        return graph([made], [], [outputs.split()[0]])

    made = model(
        graph(
            [node("If", "c", "y", then_branch=branch(2), else_branch=branch(3))],
            [X, value("c", BOOL, ())],
            ["y"],
        )
    )
    assert shapes(made)["y"] == ("N", None, 4)


def test_a_number_counts_more_than_a_name_whether_found_or_declared() -> None:
    cut = node("Split", "n", "a b", axis=2)
    made = graph([node("Neg", "x", "n"), cut], [X], ["a", "b"])
    made.value_info.append(value("n", FLOAT, (3, "K", "M")))
    assert shapes(model(made, 13))["a"] == (3, 6, 2)


def test_the_inputs_of_a_body_and_types_that_are_left_open_are_filled_in() -> None:
    body = graph([node("Neg", "row", "r")], [untyped("row")], ["r"])
    scan = node("Scan", "x", "y", body=body, num_scan_inputs=1, scan_input_axes=[1])
    made = simple(scan, outputs="y")
    made.graph.output[0].CopyFrom(value("y", TensorProto.UNDEFINED, [None, None, None]))
    found = infer_shapes(made)
    assert isinstance(found, ModelProto)
    (row,), (y,) = found.graph.node[0].attribute[0].g.input, found.graph.output
    assert [each.type.tensor_type.elem_type for each in (row, y)] == [FLOAT, FLOAT]
    assert (shape_of(row.type), shape_of(y.type)) == (("N", 4), (6, "N", 4))


@pytest.mark.parametrize("axis", [0, 1, 2, -1, -2, -3])
@pytest.mark.parametrize("place", [0, 1, 2, -1, -2, -3])
def test_a_scan_stacks_along_the_axis_that_is_given(axis: int, place: int) -> None:
    body = graph([node("Neg", "row", "r")], [untyped("row")], ["r"])
    axes = {"scan_input_axes": [axis], "scan_output_axes": [place]}
    found = shapes(
        simple(node("Scan", "x", "y", body=body, num_scan_inputs=1, **axes), outputs="y")
    )
    rest = ["N", 6, 4]
    length = rest.pop(axis)
    rest.insert(place % 3, length)
    assert found["y"] == tuple(rest)


@pytest.mark.parametrize(("place", "expected"), [(1, (6, "N", 4)), (3, None), (-4, None)])
@pytest.mark.parametrize("given", ["scan_input_axes", "scan_output_axes"])
def test_the_axes_of_a_scan_are_the_first_by_default(
    given: str, place: int, expected: tuple[Any, ...] | None
) -> None:
    """One that there is not leaves its outputs open."""
    body = graph([node("Neg", "row", "r")], [untyped("row")], ["r"])
    scan = node("Scan", "x", "y", body=body, num_scan_inputs=1, **{given: [place]})
    assert shapes(simple(scan, outputs="y"))["y"] == expected


@pytest.mark.parametrize("given", ["scan_input_axes", "scan_output_axes"])
def test_a_scan_with_too_many_axes_leaves_its_outputs_open_and_is_refused(given: str) -> None:
    body = graph([node("Neg", "row", "r")], [untyped("row")], ["r"])
    made = simple(
        node("Scan", "x", "y", body=body, num_scan_inputs=1, **{given: [0, 1]}), outputs="y"
    )
    assert shapes(made)["y"] is None
    (found,) = (each for each in check(made) if each.severity == "error")
    assert f"{given} has 2 entries; give 1" in str(found)


def test_a_scan_has_as_many_rounds_as_any_input_of_a_known_shape_has_slices() -> None:
    nodes = [node("Neg", "b", "r"), node("Neg", "a", "s")]
    body = graph(nodes, [untyped("a"), untyped("b")], ["r", "s"])
    axes = {"scan_input_axes": [0, 1]}
    scan = node("Scan", "open x", "y z", body=body, num_scan_inputs=2, **axes)
    made = model(graph([scan], [value("open", FLOAT), X], ["y", "z"]))
    assert shapes(made) == {"y": (6, "N", 4), "z": None}
    found = infer_shapes(made)
    assert isinstance(found, ModelProto)
    assert [entry.type.tensor_type.elem_type for entry in found.graph.output] == [FLOAT, FLOAT]


def test_a_change_reaches_the_last_of_many_states_after_as_many_rounds() -> None:
    """Each takes what the one before it had: after more than a few rounds nothing is certain."""
    count = 9
    before = [f"s{place}" for place in range(count)]
    after = [f"t{place}" for place in range(count)]
    nodes = [
        node("Identity", "go", "on"),
        node("Concat", "s0 s0", "t0", axis=0),
        *(node("Identity", *pair) for pair in zip(before, after[1:], strict=False)),
        node("Neg", before[-1], "row"),
    ]
    head = [value("i", INT64, ()), value("go", BOOL, ())]
    body = graph(nodes, [*head, *map(untyped, before)], ["on", *after, "row"])
    ends = [f"end{place}" for place in range(count)]
    loop = node(
        "Loop", " ".join(["trips _", *["start"] * count]), " ".join([*ends, "y"]), body=body
    )
    inputs = [value("trips", INT64, ()), value("start", FLOAT, (2,))]
    found = shapes(model(graph([loop], inputs, [*ends, "y"])))
    assert (found[ends[-1]], found["y"]) == (None, None)


def test_the_state_of_a_scan_has_its_first_elements_in_the_first_round_only() -> None:
    """The lengths 1 and 3 become 2 and 2 in the second round: the parts have no known length."""
    nodes = [node("Split", "row lengths", "p q", axis=1), node("Add", "lengths change", "next")]
    body = graph(nodes, [value("lengths", INT64, (2,)), untyped("row")], ["next", "p"])
    scan = node("Scan", "start x", "last y", body=body, num_scan_inputs=1)
    split = node("Split", "x last", "a b", axis=2)
    found = shapes(simple(scan, split, outputs="last y a b", start=[1, 3], change=[1, -1]))
    assert found["last"] == (2,)
    assert found["y"] == ("N", 6, None)
    assert found["a"] == ("N", 6, None)


def test_the_shape_of_a_state_stays_as_it_is_in_all_rounds_of_a_scan() -> None:
    """A round that gives M elements runs only where M is N."""
    body = graph([node("Identity", "other", "next")], [untyped("state"), untyped("row")], ["next"])
    scan = node("Scan", "start x", "last", body=body, num_scan_inputs=1)
    inputs = [X, value("start", FLOAT, ("N", None)), value("other", FLOAT, ("M", 3))]
    assert shapes(model(graph([scan], inputs, ["last"])))["last"] == ("N", 3)


def test_a_scan_of_opset_8_has_no_rounds_where_its_first_input_says_so() -> None:
    """Whatever the shape of the data: a Split in it is refused only if a row is longer than 0."""
    nodes = [node("Split", "row", "p q r s"), node("Neg", "state", "next")]
    body = graph(nodes, [untyped("state"), untyped("row")], ["next"])
    scan = node("Scan", "lengths start x", "last", body=body, num_scan_inputs=1)
    shapes_of = {"lengths": (INT64, (2,)), "start": (FLOAT, (2, 1)), "x": (FLOAT, (2, 5, 3))}
    made = model(graph([scan], [value(name, *of) for name, of in shapes_of.items()], ["last"]), 8)
    fed = {"start": np.array([[3], [4]], np.float32), "x": np.ones((2, 5, 3), np.float32)}
    last = ts.run(made, {"lengths": np.array([0, 0]), **fed})["last"]
    assert last.tolist() == [[3], [4]]
    with refused("TS303", "graph/Scan[0].body/Split[0]"):
        ts.run(made, {"lengths": np.array([0, 5]), **fed})


def test_a_scan_of_opset_8_has_a_batch() -> None:
    """Its first axis is the batch, and the second the one along which it goes."""
    nodes = [node("Add", "state row", "next"), node("Neg", "row", "r")]
    body = graph(nodes, [untyped("state"), untyped("row")], ["next", "r"])
    scan = node("Scan", "_ start x", "last y", body=body, num_scan_inputs=1)
    inputs = [value("x", FLOAT, ("B", 5, 4)), value("start", FLOAT, ("B", 4))]
    made = graph([scan], inputs, ["last", "y"])
    assert shapes(model(made, 8)) == {"last": ("B", 4), "y": ("B", 5, 4)}
    made.node[0].input[:] = ["start", "x"]  # since opset 9 there is none: 4 by 5 by 4
    body.node[0].op_type = "Mul"
    assert shapes(model(made, 9))["y"] == ("B", 5, 4)


@pytest.mark.parametrize(("trips", "rounds"), [(2, 2), (1, 1), (0, 0), (-1, 0), (-3, 0)])
def test_a_loop_with_a_trip_count_below_0_has_no_rounds(trips: int, rounds: int) -> None:
    body = graph(
        [node("Identity", "go", "on"), node("Neg", "x", "r")],
        [value("i", INT64, ()), value("go", BOOL, ())],
        ["on", value("r", FLOAT, ("N", 6, 4))],
    )
    made = simple(node("Loop", "trips _", "y", body=body), outputs="y", trips=trips)
    assert shapes(made)["y"] == (rounds, "N" if rounds else None, 6, 4)
    x = np.ones((2, 6, 4), np.float32)
    assert ts.run(made, {"x": x})["y"].shape[0] == rounds


@pytest.mark.parametrize(
    ("inputs", "condition", "rounds", "columns"),
    [
        ("five _", "go", 5, "N"),
        ("five yes", "go", 5, "N"),
        ("five yes", "yes", 5, "N"),
        ("five yes", "fed", None, "N"),  # it may end early
        ("five fed", "go", None, None),  # or not begin: a dimension without a number is 0 then
        ("many yes", "go", None, None),
        ("_ yes", "go", None, "N"),
    ],
)
def test_a_loop_has_as_many_rounds_as_its_trip_count_if_nothing_ends_it(
    inputs: str, condition: str, rounds: int | None, columns: str | None
) -> None:
    nodes = [node("Identity", condition, "on"), node("Neg", "x", "r")]
    head = [value("i", INT64, ()), value("go", BOOL, ())]
    body = graph(nodes, head, [value("on", BOOL, ()), value("r", FLOAT)])
    constants = [tensor("five", 5), tensor("yes", True, np.bool_)]
    given = [X, value("fed", BOOL, ()), value("many", INT64, ())]
    loop = node("Loop", inputs, "y", body=body)
    made = model(graph([loop], given, ["y"], constants))
    assert shapes(made)["y"] == (rounds, columns, 6, 4)


@pytest.mark.parametrize(("rows", "columns"), [("T", None), ("T + 1", "N"), (2, "N")])
def test_a_scan_that_may_have_no_rows_gives_dimensions_without_names(
    rows: int | str, columns: str | None
) -> None:
    body = graph([node("Neg", "row", "r")], [untyped("row")], ["r"])
    scan = node("Scan", "x", "y", body=body, num_scan_inputs=1)
    made = model(graph([scan], [value("x", FLOAT, (rows, "N", 4))], ["y"]))
    assert shapes(made)["y"] == (rows, columns, 4)


def test_names_hold_of_what_a_run_gives_after_no_round() -> None:
    """ONNX Runtime and our own engine give 0 for a dimension that is not known as a number."""
    body = graph(
        [node("Identity", "go", "on"), node("Neg", "x", "r")],
        [value("i", INT64, ()), value("go", BOOL, ())],
        ["on", value("r", FLOAT, ("N", 6, 4))],
    )
    loop = node("Loop", "trips _", "y", body=body)
    made = model(graph([loop], [X, value("trips", INT64, ())], ["y"]))
    got = ts.run(made, {"x": np.ones((2, 6, 4), np.float32), "trips": np.array(0)})["y"]
    assert (got.shape, shapes(made)["y"]) == ((0, 0, 6, 4), (None, None, 6, 4))


def test_the_parts_of_a_wrong_split_that_never_runs_have_its_type() -> None:
    branches = {
        "then_branch": graph([node("Split", "x s", "p q", axis=1)], [], ["p"]),
        "else_branch": graph([node("Neg", "x", "n")], [], ["n"]),
    }
    chosen = node("If", "no", "y", **branches)
    held = [tensor("no", False, np.bool_), tensor("s", [1, 2])]
    found = infer_shapes(model(graph([chosen], [X], ["y"], held)))
    assert isinstance(found, ModelProto)
    then = next(each.g for each in found.graph.node[0].attribute if each.name == "then_branch")
    assert {entry.name: entry.type.tensor_type.elem_type for entry in then.output} == {"p": FLOAT}
    assert described(then)["p"] is None


@pytest.mark.parametrize("trips", [0, 1, -1])
def test_a_wrong_split_is_refused_in_a_loop_that_has_rounds(trips: int) -> None:
    body = graph(
        [node("Identity", "go", "on"), node("Split", "x s", "p q", axis=1)],
        [value("i", INT64, ()), value("go", BOOL, ())],
        ["on", "p"],
    )
    made = simple(node("Loop", "trips _", "y", body=body), outputs="y", trips=trips, s=[1, 2])
    if trips < 1:
        assert shapes(made)["y"] is None
        return
    with refused("TS302", "graph/Loop[0].body/Split[1]"):
        infer_shapes(made)


def test_a_wrong_split_is_refused_with_its_path() -> None:
    made = simple(node("Split", "x", "a b c", axis=1, num_outputs=2), outputs="a b c")
    with refused("TS305", "onnx.Split-18", "graph/Split[0]"):
        infer_shapes(made)


def test_a_split_that_an_opset_does_not_have_is_refused() -> None:
    with refused("TS101", "graph/SplitToSequence[0]"):
        infer_shapes(simple(node("SplitToSequence", "x", "q"), outputs="q", opset=10))


def test_element_types_are_filled_in_for_tensors_and_sequences() -> None:
    made = model(
        graph(
            [node("SplitToSequence", "x s", "q", axis=1), node("SequenceAt", "q i", "y")],
            [value("x", TensorProto.INT8, (2, 6))],
            ["q", "y"],
            [tensor("s", 3), tensor("i", 0)],
        )
    )
    found = infer_shapes(made)
    assert isinstance(found, ModelProto)
    q, y = found.graph.output
    assert q.type.sequence_type.elem_type.tensor_type.elem_type == TensorProto.INT8
    assert y.type.tensor_type.elem_type == TensorProto.INT8
    assert (shape_of(q.type), shape_of(y.type)) == ((2, 3), (2, 3))


def test_the_model_itself_is_left_as_it_is_and_comes_back_as_its_kind() -> None:
    made = simple(node("Split", "x", "a b", axis=1, num_outputs=2), outputs="a b")
    before = made.SerializeToString()
    infer_shapes(made)
    assert made.SerializeToString() == before
    assert isinstance(infer_shapes(ir.from_proto(made)), ir.Model)


def test_a_model_in_which_all_is_known_comes_back_with_the_same_bytes() -> None:
    made = simple(node("Split", "x", "a b", axis=1, num_outputs=2), outputs="a b")
    once = infer_shapes(made)
    twice = infer_shapes(once)
    assert isinstance(once, ModelProto)
    assert isinstance(twice, ModelProto)
    assert once.SerializeToString() == twice.SerializeToString()


def test_nodes_that_are_alike_but_for_one_thing_are_told_apart() -> None:
    made = simple(
        node("Split", "x", "a b", axis=1, num_outputs=2),
        node("Split", "x", "c d", axis=1, num_outputs=2),
        node("Split", "x", "e f", axis=2, num_outputs=2),
        node("Split", "x", "g", axis=1, num_outputs=1),
        node("Transpose", "x", "h", perm=[2, 1, 0]),
        node("Transpose", "x", "i", perm=[1, 0, 2]),
        node("Transpose", "a", "j", perm=[1, 0, 2]),
        node("ReduceSum", "x axes", "k", keepdims=0),
        node("ReduceSum", "x", "l", keepdims=0),
        outputs="a b c d e f g h i j k l",
        axes=[1],
    )
    expected: dict[str, tuple[Any, ...]] = dict.fromkeys("abcd", ("N", 3, 4))
    expected |= dict.fromkeys("ef", ("N", 6, 2))
    expected |= {"g": ("N", 6, 4), "h": (4, 6, "N"), "i": (6, "N", 4), "j": (3, "N", 4)}
    assert shapes(made) == expected | {"k": ("N", 4), "l": ()}


def test_of_splits_that_are_wrong_alike_each_is_told() -> None:
    wrong = [node("Split", "x", outputs, axis=1, num_outputs=7) for outputs in ("a b", "c d")]
    found = check(simple(*wrong, outputs="a b c d"))
    wrong_nodes = {each.node for each in found if each.severity == "error"}
    assert wrong_nodes == {"graph/Split[0]", "graph/Split[1]"}


@pytest.mark.parametrize("lengths", [[2.0, 4.0], [3.0, *[0.0] * 19, 3.0]])
def test_floats_that_are_lengths_of_split_1(lengths: list[float]) -> None:
    names = [f"p{place}" for place in range(len(lengths))]
    parts = " ".join(names)
    made = simple(node("Split", "x s", parts, axis=1), outputs=parts, opset=1)
    made.graph.initializer.append(tensor("s", lengths, np.float32))
    wanted = [("N", length, 4) for length in lengths]
    assert shapes(made) == dict(zip(names, wanted, strict=True))


def test_parts_of_a_shape_are_followed() -> None:
    made = simple(
        node("Shape", "x", "shape"),
        node("Split", "shape s", "outer inner"),
        node("Reshape", "x inner", "y"),
        outputs="y",
        s=[1, 2],
    )
    made.graph.input[0].CopyFrom(value("x", FLOAT, (1, 6, 4)))
    assert shapes(made)["y"] == (6, 4)


def test_attributes_that_a_call_gives_reach_every_operator() -> None:
    nodes = [
        linked("Concat", "d d", "c", link("axis", "where")),
        linked("Constant", "", "s", link("value_ints", "sizes", onnx.AttributeProto.INTS)),
        linked("Split", "c s", "p q", link("axis", "where")),
    ]
    made = simple(
        node("F", "x", "a b", domain="custom", where=1, sizes=[5, 7]), outputs="a b", opset=18
    )
    made.functions.append(function("F", "d", "p q", nodes, ["where", "sizes"]))
    made.opset_import.add(domain="custom", version=1)
    assert shapes(made) == {"a": ("N", 5, 4), "b": ("N", 7, 4)}


def test_a_wrong_split_that_never_runs_stops_nothing() -> None:
    then = graph([node("Split", "x s", "p q")], [], ["p"])
    other = graph([node("Relu", "x", "r")], [], ["r"])
    made = simple(node("If", "c", "y", then_branch=then, else_branch=other), outputs="y", s=[1, 2])
    made.graph.initializer.append(tensor("c", False, np.bool_))
    made.graph.input[0].CopyFrom(value("x", FLOAT, (6, 4)))
    assert shapes(made)["y"] == (6, 4)
    made.graph.initializer[-1].CopyFrom(tensor("c", True, np.bool_))
    with refused("TS302", "graph/If[0].then_branch/Split[0]"):
        infer_shapes(made)


@pytest.mark.parametrize(("condition", "is_called"), [(1, True), (0, False)])
def test_a_function_never_runs_that_only_a_branch_calls_which_is_never_taken(
    condition: int, is_called: bool
) -> None:
    made = _parsed(
        f"""g (float[6] x) => (y) <bool on = {{{condition}}}> {{ y = If(on)
        <then_branch = t () => (a) {{ a, b = l.F(x) }},
        else_branch = e () => (c) {{ c = Neg(x) }}> }}""",
        functions="F (v) => (p, q) { p, q = Split(v) }",
    )
    facts = analyse(ir.from_proto(made))
    assert facts.never_runs("function l::F/Split[0]") is not is_called
    assert facts.uncalled == ()


def test_a_wrong_split_in_a_function_that_nobody_calls_stops_nothing() -> None:
    made = _parsed(
        "g (float[6] x) => (y) { y = Neg(x) }",
        functions="F (v) => (p, q) { s = Constant<value_ints = [-1, 7]>() p, q = Split(v, s) }",
    )
    assert shapes(made)["y"] == (6,)


def test_an_attribute_of_a_function_that_nobody_calls_is_left_open() -> None:
    nodes = [linked("SplitToSequence", "d", "q", link("keepdims", "kept"))]
    made = simple(node("Relu", "x", "y"), outputs="y")
    made.functions.append(function("F", "d", "q", nodes, ["kept"]))
    made.opset_import.add(domain="custom", version=1)
    assert shapes(made)["y"] == ("N", 6, 4)


def test_integers_of_few_bits_are_not_calculated_with() -> None:
    """They wrap: 200 + 100 is 44 in uint8."""
    made = graph(
        [node("Add", "s t", "u"), node("Cast", "u", "l", to=INT64), node("Split", "x l", "a b")],
        [value("x", FLOAT, [300])],
        [value("a", FLOAT), value("b", FLOAT)],
        [tensor("s", [200, 0], np.uint8), tensor("t", [100, 0], np.uint8)],
    )
    assert shapes(model(made))["a"] == (None,)


def test_a_loop_that_begins_with_a_sequence_of_nothing_may_put_in_anything() -> None:
    """Its tensors, of which there are none, have another rank than those that are put in."""
    made = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["": 18]> g (float[3,0,2] x, int64 n) => (seq(float[]) y) {'
        " s = SplitToSequence<axis=1, keepdims=0>(x)"
        ' y = Loop(n, "", s)<body=b (int64 i, bool k, seq(float[]) v) => (bool k2, seq(float[]) w)'
        " {k2 = Identity(k) w = SequenceInsert(v, x)}>}"
    )
    onnx.checker.check_model(made, full_check=True)
    inferred = infer_shapes(made)
    assert isinstance(inferred, onnx.ModelProto)
    onnx.checker.check_model(inferred, full_check=True)


def _parsed(text: str, opset: int = 13, functions: str = "") -> ModelProto:
    imports = f'"": {opset}' + (', "l": 1' if functions else "")
    head = f"<ir_version: 8, opset_import: [{imports}]>"
    more = f'<domain: "l", opset_import: ["": {opset}]> {functions}' if functions else ""
    return onnx.parser.parse_model(f"{head} {text} {more}")


def test_calls_with_other_attributes_have_shapes_of_their_own() -> None:
    made = _parsed(
        "g (float[4,6] x) => (a, b, c, d) { a, b = l.F<k = 0>(x)  c, d = l.F<k = 1>(x) }",
        functions="F <k> (v) => (p, q) { p, q = Split<axis: int = @k>(v) }",
    )
    found = shapes(made)
    assert (found["a"], found["d"]) == ((2, 6), (4, 3))


def test_an_input_of_a_function_that_a_call_leaves_out_is_left_out_of_its_nodes() -> None:
    made = _parsed(
        "g (float[6] x) => (a, b) { a, b = l.F(x) }",
        functions="F (v, k) => (p, q) { p, q = Split(v, k) }",
    )
    found = shapes(made)
    assert (found["a"], found["b"]) == ((3,), (3,))


def test_a_wrong_split_is_refused_in_a_branch_that_may_run() -> None:
    text = "g (float[5] x, bool c) => (y) { y = If(c) <then_branch = t () => (float[N] p)"
    text += " { p, q = Split(x) }, else_branch = e () => (float[M] r) { r = Neg(x) }> }"
    with refused("TS303", "graph/If[0].then_branch/Split[0]"):
        infer_shapes(_parsed(text))


def test_a_wrong_split_is_let_be_in_a_scan_without_rounds() -> None:
    text = "g (float[ROWS,5] x) => (y) { y = Scan<num_scan_inputs = 1, body = b (float[5] r)"
    text += " => (float[M] p) { p, q = Split(r) }>(x) }"
    infer_shapes(_parsed(text.replace("ROWS", "0")))
    with refused("TS303", "graph/Scan[0].body/Split[0]"):
        infer_shapes(_parsed(text.replace("ROWS", "1")))


@pytest.mark.parametrize("count", [0, 1, 2])
def test_a_wrong_split_is_refused_in_a_map_of_any_tensors(count: int) -> None:
    """It is let be where the sequence is empty: the body never runs."""
    given = (
        f"SequenceConstruct({', '.join(['x'] * count)})" if count else "SequenceEmpty<dtype=1>()"
    )
    text = f"g (float[5] x) => (y) {{ s = {given}  y = SequenceMap<body = b (float[5] r)"
    made = _parsed(text + " => (float[M] p) { p, q = Split<axis = 1>(r) }>(s) }", 17)
    feeds = {"x": np.ones(5, np.float32)}
    if not count:
        infer_shapes(made)
        assert ts.run(made, feeds) == {"y": []}
        return
    with pytest.raises(Exception, match="index"):
        onnx.reference.ReferenceEvaluator(made).run(None, feeds)
    with refused("TS203", "graph/SequenceMap[1].body/Split[0]"):
        infer_shapes(made)


@pytest.mark.parametrize(("goes_on", "rounds"), [(1, 3), (0, None)])
def test_a_loop_whose_condition_is_a_constant(goes_on: int, rounds: int | None) -> None:
    """One that ends by its condition has an unknown number of rounds."""
    text = "g () => (y) <int64 n = {3}> { y = Loop(n, ) <body = b (int64 i, bool c)"
    text += " => (bool d, int64 r) { d = Constant<value = bool {ON}>()  r = Neg(i) }> }"
    assert shapes(_parsed(text.replace("ON", str(goes_on))))["y"] == (rounds,)


def test_element_types_of_a_function_are_those_of_all_its_calls() -> None:
    made = _parsed(
        "g (float[6] x, int64[6] n) => (a, b) { a = l.H(x)  b = l.H(n) }",
        functions="F (v) => (p) { p = Neg(v) }"
        ' <domain: "l", opset_import: ["": 13, "l": 1]> H (u) => (o) { o = l.F(u) }',
    )
    read = ir.serde.deserialize_model(made)
    facts = analyse(read)
    both = {ir.DataType.FLOAT, ir.DataType.INT64}
    for each in read.functions.values():
        assert facts.element_types(each.inputs[0]) == both
        assert facts.element_types(next(iter(each)).outputs[0]) == both


def test_functions_that_call_themselves_are_followed_once() -> None:
    """They are refused elsewhere, with the call; the analysis ends."""
    made = _parsed(
        "g (float[6] x) => (a) { a = l.F(x) }",
        functions="F (v) => (p) { q = l.F(v)  p = Neg(q) }",
    )
    made.functions[0].opset_import.add(domain="l", version=1)
    assert analyse(ir.serde.deserialize_model(made)).errors == []


@pytest.mark.parametrize(
    ("declared", "given", "fits"),
    [((0, "N"), (0, 3), True), ((0, "N"), (2, 3), False), ((2, "N"), (2,), False)],
)
def test_the_shape_that_an_input_is_given_agrees_with_its_declaration(
    declared: Any, given: tuple[int, ...], fits: bool
) -> None:
    made = model(graph([node("Neg", "x", "y")], [value("x", FLOAT, declared)], ["y"]))
    if fits:
        assert described(infer_shapes(made, input_shapes={"x": given}).graph)["y"] == given
    else:
        with refused("TS507", "is declared as"):
            infer_shapes(made, input_shapes={"x": given})


@pytest.mark.parametrize("given", [0, 5, "x", [], [("x", (2,))], np.zeros((0, 3))])
def test_shapes_of_inputs_are_a_mapping(given: Any) -> None:
    made = model(graph([node("Neg", "x", "y")], [value("x", FLOAT, ("N",))], ["y"]))
    with refused("TS703", "give a mapping from input names to shapes", parameter="input_shapes"):
        infer_shapes(made, input_shapes=given)


def test_names_that_no_input_has_are_shown_on_one_short_line() -> None:
    made = model(graph([node("Neg", "x", "y")], [value("x", FLOAT, ("N",))], ["y"]))
    names: tuple[Any, ...] = (5, None, ("x",), "a\nb", "x" * 5000, 10**5000)
    for name in names:
        with refused("TS506", "the model has no input", "name one of 'x'"):
            infer_shapes(made, input_shapes={name: (2,)})
        with refused("TS506", "the model has no input", "its inputs are 'x'"):
            ts.run(made, {name: np.ones(2, np.float32)})


def test_a_slice_on_axes_of_no_known_rank_may_be_on_any() -> None:
    """Onnx takes the first axes then (1.23.2)."""
    model = onnx.parser.parse_model(
        '<ir_version: 10, opset_import: ["": 21]> g (float[5,2,6] x, int64[6] v, int64[1] w) =>'
        " (float[?,?,?] y) <int64[1] end = {-1}, int64[1] one = {1}> { s = Shape(x)"
        " first = Gather(s, one) start = Sub(first, one) axes = ReduceSum(v, w)"
        " y = Slice(x, start, end, axes) }"
    )
    made = infer_shapes(model).graph.output[0].type.tensor_type.shape
    assert not any(dim.HasField("dim_value") for dim in made.dim)


@pytest.mark.parametrize(("length", "part"), [(2, 2), (3, None), (1, 1)])
def test_of_very_many_chunks_the_length_is_known_if_none_is_smaller(length: int, part: Any) -> None:
    rows = 1 << 18
    made = model(
        graph(
            [
                node("SplitToSequence", "x length", "s"),
                node("SequenceAt", "s place", "y"),
                node("SequenceLength", "s", "n"),
            ],
            [value("x", FLOAT, [rows, 3])],
            ["y", "n"],
            [
                tensor("length", np.array(length)),
                tensor("place", np.array(7)),
            ],
        ),
    )
    y = next(iter(ts.infer_shapes(made).graph.output)).type.tensor_type.shape.dim
    assert [dim.dim_value or None for dim in y] == [part, 3]
    x = np.random.default_rng(length).random((rows, 3), np.float32)
    lowered = ts.lower(made, target="portable")
    at, count = ts.run(lowered, {"x": x}).values()
    assert (at == x[7 * length : 8 * length]).all()
    assert count == -(-rows // length)
    assert lowered.ByteSize() < 5_000
