"""Operands that older versions do not broadcast: what was refused is refused after converting."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import onnx
import pytest

import tensorsplit as ts
from tensorsplit.model.convert import convert
from tests.model.build import FLOAT, graph, known, model, node, value
from tests.refusals import refused

RNG = np.random.default_rng(23)
SHAPES: list[tuple[int, ...]] = [(), (1,), (3,), (1, 3), (2, 3), (2, 1), (2, 3, 1), (3, 3), (0, 3)]
ENGINES = [
    "tensorsplit",
    pytest.param("onnxruntime", marks=pytest.mark.engine("onnxruntime")),
    pytest.param("openvino", marks=pytest.mark.engine("openvino")),
]


def of(op_type: str, opset: int, *shapes: Any, **attributes: Any) -> Any:
    """A model of one node whose operands have these shapes."""
    names = [chr(ord("a") + index) for index in range(len(shapes))]
    given = [value(name, FLOAT, shape) for name, shape in zip(names, shapes, strict=True)]
    nodes = [node(op_type, " ".join(names), "y", **attributes)]
    return model(graph(nodes, given, [value("y", FLOAT, None)]), opset)


def fed(*shapes: tuple[int, ...]) -> dict[str, Any]:
    arrays = (np.asarray(RNG.uniform(1, 2, shape), np.float32) for shape in shapes)
    return dict(zip("abc", arrays, strict=False))


def is_part(left: tuple[int, ...], right: tuple[int, ...]) -> bool:
    """Whether opset 6 broadcasts the second operand at the end of the first."""
    if len(right) > len(left):
        return False
    return left[len(left) - len(right) :] == right or set(right) <= {1}


def check(session: ts.Session, feeds: dict[str, Any], expected: Any) -> None:
    """It gives these values, or refuses where there are none."""
    if expected is None:
        with pytest.raises(ts.SplitError):
            session.run(feeds)
        return
    found = session.run(feeds)["y"]
    assert found.shape == expected.shape
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("broadcast", [0, 1])
def test_operands_of_open_shapes_are_compared_at_run_time(engine: Any, broadcast: int) -> None:
    attributes = {"broadcast": 1} if broadcast else {}
    for ranks in product(range(4), repeat=2):
        pairs = [p for p in product(SHAPES, SHAPES) if tuple(map(len, p)) == ranks]
        legal = [is_part(*pair) if broadcast else pair[0] == pair[1] for pair in pairs]
        made = of("Sub", 6, *([None] * rank for rank in ranks), **attributes)
        if ranks[0] < ranks[1] or (ranks[0] > ranks[1] and not broadcast):
            assert not any(legal)
            with refused("TS512", "Sub", "before opset 7"):
                convert(made, 13)
            continue
        with ts.session(convert(made, 13), engine=engine) as session:
            for pair, is_legal in zip(pairs, legal, strict=True):
                feeds = fed(*pair)
                check(session, feeds, feeds["a"] - feeds["b"] if is_legal else None)


@pytest.mark.parametrize("engine", ENGINES[:2])
@pytest.mark.parametrize(("broadcast", "opset"), [(0, 7), (0, 13), (1, 10), (1, 13)])
def test_operands_of_unknown_ranks_are_compared_at_run_time(
    engine: Any, broadcast: int, opset: int
) -> None:
    attributes = {"broadcast": 1} if broadcast else {}
    made = convert(of("Sub", 6, None, None, **attributes), opset)
    with ts.session(made, engine=engine) as session:
        for pair in product(SHAPES, SHAPES):
            feeds = fed(*pair)
            is_legal = is_part(*pair) if broadcast else pair[0] == pair[1]
            check(session, feeds, feeds["a"] - feeds["b"] if is_legal else None)


@pytest.mark.parametrize("open_one", [0, 1])
def test_an_operand_of_unknown_rank_is_compared_with_one_of_known_rank(open_one: int) -> None:
    """A row is broadcast from opset 7 on, and before it is refused."""
    shapes: list[Any] = [[None, None], [None, None]]
    shapes[open_one] = None
    made = convert(of("Sub", 6, *shapes), 13)
    with ts.session(made) as session:
        for pair in product([(3, 3), (2, 3), (3,), (1, 3), ()], repeat=2):
            if len(pair[1 - open_one]) == 2:
                feeds = fed(*pair)
                check(session, feeds, feeds["a"] - feeds["b"] if pair[0] == pair[1] else None)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_second_operand_covers_axes_from_one_on(engine: Any) -> None:
    made = of("Mul", 6, [None] * 3, [None] * 2, broadcast=1, axis=0)
    with ts.session(convert(made, 13), engine=engine) as session:
        for right in [(2, 3), (1, 1), (2, 1), (1, 3), (3, 4)]:
            feeds = fed((2, 3, 4), right)
            is_legal = right in [(2, 3), (1, 1)]
            check(session, feeds, feeds["a"] * feeds["b"][..., None] if is_legal else None)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("op_type", ["Sum", "Max"])
def test_every_operand_of_a_sum_has_the_shape_of_the_first(engine: Any, op_type: str) -> None:
    made = of(op_type, 6, *([None, None] for _ in range(3)))
    with ts.session(convert(made, 13), engine=engine) as session:
        for last in [(2, 3), (1, 3), (2, 1), (1, 1)]:
            feeds = fed((2, 3), (2, 3), last)
            one, two, three = feeds.values()
            whole = (
                one + two + three if op_type == "Sum" else np.maximum(np.maximum(one, two), three)
            )
            check(session, feeds, whole if last == (2, 3) else None)


@pytest.mark.parametrize("engine", ENGINES)
def test_what_gemm_adds_has_the_shape_of_the_product(engine: Any) -> None:
    made = of("Gemm", 6, [None, None], [None, None], [None, None], transB=1)
    ones = {"a": np.ones((2, 4), np.float32), "b": np.ones((3, 4), np.float32)}
    with ts.session(convert(made, 13), engine=engine) as session:
        for shape in [(2, 3), (1, 3), (2, 1), (1, 1)]:
            added = np.asarray(RNG.integers(1, 9, shape), np.float32)
            check(session, {**ones, "c": added}, added + 4 if shape == (2, 3) else None)


def test_shapes_that_surely_differ_are_refused() -> None:
    for shapes in [((2, 3), (3,)), ((2, 3), (1, 3)), (("N", 3), ("N", 1)), ((), (1,))]:
        with refused("TS512", "graph/Add[0]", "before opset 7"):
            convert(of("Add", 6, *shapes), 13)
    with refused("TS512", "Gemm", "(2, 3)", "(3,)"):
        convert(of("Gemm", 6, (2, 4), (4, 3), (3,)), 7)
    with refused("TS512", "Max", "before opset 8"):
        convert(of("Max", 6, (2, 3), (3,)), 8)


def test_where_shapes_are_the_same_nothing_is_added() -> None:
    cases: list[tuple[str, list[Any], dict[str, Any]]] = [
        ("Add", [("N", 3), ("N", 3)], {}),
        ("Add", [("N", 3), (3,)], {"broadcast": 1}),
        ("Add", [("N", 3), ("N", 3)], {"broadcast": 1, "axis": 1}),
        ("Add", [(None, None), (1,)], {"broadcast": 1}),
        ("Sum", [("N", 3), ("N", 3), ("N", 3)], {}),
        ("Gemm", [("N", 4), (4, 3), ("N", 3)], {}),
        ("Gemm", [(None, 4), (4, 3), (3,)], {"broadcast": 1}),
    ]
    for op_type, shapes, attributes in cases:
        made = convert(of(op_type, 6, *shapes, **attributes), 13)
        assert [each.op_type for each in made.graph.node] == [op_type]
    twice = of("Sum", 6, None)
    twice.graph.node[0].input.append("a")
    assert len(convert(twice, 13).graph.node) == 1


def test_before_opset_10_unknown_ranks_are_not_broadcast() -> None:
    with refused("TS512", "ranks of its operands are not known", "convert to opset 10"):
        convert(of("Add", 6, None, None, broadcast=1), 9)
    assert convert(of("Add", 6, None, (), broadcast=1), 7).graph.node[-1].op_type == "Add"


@pytest.mark.parametrize(
    ("node", "operands", "expected"),
    [
        ("Add(x, w)", "float[K, 4] w", ["N", 4]),
        ("Add(x, w)", "float[] w", ["N", 4]),
        ("Sub<broadcast = 1, axis = 0>(x, w)", "float[K] w", ["N", 4]),
        ("Max(x, w)", "float[K, 4] w", ["N", 4]),
        ("Gemm(x, v, w)", "float[4, M] v, float[A, B] w", ["N", "M"]),
    ],
)
@pytest.mark.parametrize("target", known(9, 13, 21))
def test_shapes_are_known_behind_a_guard(
    node: str, operands: str, expected: list[object], target: int
) -> None:
    """Newer versions broadcast: that operands have one shape is stated."""
    made = onnx.parser.parse_model(
        f'<ir_version: 3, opset_import: ["": 6]> g (float[N, 4] x, {operands}) => (float[] y)'
        f" {{ s = {node} y = Neg(s) }}"
    )
    (output,) = ts.infer_shapes(convert(made, opset=target)).graph.output
    dims = output.type.tensor_type.shape.dim
    assert [dim.dim_param or dim.dim_value for dim in dims] == expected
