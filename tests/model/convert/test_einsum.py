"""Einsum before opset 12: products, sums, diagonals and transpositions give what it gives."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, defs, helper

import tensorsplit as ts
from tensorsplit.model.convert import convert
from tests.model.build import function, graph, model, node, outputs, untyped, value
from tests.model.convert.legal import converted
from tests.refusals import refused

RNG = np.random.default_rng(41)
SIZES = {"a": 2, "b": 3, "h": 2, "q": 4, "k": 5, "d": 3, "i": 3, "j": 4, "X": 2, ".": 2}
EQUATIONS = [
    "bij,bjd->bid",
    "bhqd,bhkd->bhqk",
    "bqhd,bkhd->bhqk",
    "bhqk,bkhd->bqhd",
    "bqd,dh->bqh",
    "bqhd,hdi->bqi",
    "qhd,jhda->jqa",
    "i,j->ij",
    "i,i->",
    "i,i->i",
    "ij,ij->i",
    "ij,j",
    "ij->ji",
    "jiX",
    "ij->",
    "bij->j",
    "ii->i",
    "ii",
    "biiji->jb",
    "...ij->...ji",
    "...ij,...jk->...ik",
    "i...j,jk->k...i",
    "...i,...i->...",
    "... b a",
    ",ij->ij",
    "->",
    "ij,jk,kd->id",
    "ij,ij,ja->a",
    "bi,bj,bk->bijk",
]
ENGINES = [
    ("tensorsplit", np.float32),
    ("tensorsplit", np.int64),
    *(
        pytest.param("onnxruntime", kind, marks=pytest.mark.engine("onnxruntime"))
        for kind in (np.float32, np.int32)
    ),
]


def shapes_of(equation: str, sizes: dict[str, int]) -> list[tuple[int, ...]]:
    """The shapes of the operands; an ellipsis stands for two dimensions."""
    terms = equation.replace(" ", "").partition("->")[0].replace("...", "..").split(",")
    return [tuple(sizes[letter] for letter in term) for term in terms]


def of(
    equation: str, shapes: Sequence[Any], kind: Any = np.float32, rank: int | None = None
) -> Any:
    """A model of one Einsum; its operands are x0, x1 and so on."""
    names, element = (
        [f"x{i}" for i in range(len(shapes))],
        helper.np_dtype_to_tensor_dtype(np.dtype(kind)),
    )
    inputs = [value(*each) for each in zip(names, [element] * len(names), shapes, strict=True)]
    end = untyped("y") if rank is None else value("y", element, [None] * rank)
    return model(
        graph([node("Einsum", " ".join(names), "y", equation=equation)], inputs, [end]), 13
    )


def fed(shapes: Sequence[Any], kind: Any = np.float32) -> dict[str, Any]:
    made = (RNG.integers(-9, 9, shape).astype(kind) for shape in shapes)
    if np.dtype(kind).kind == "f":
        made = (RNG.uniform(-2, 2, shape).astype(kind) for shape in shapes)
    return {f"x{index}": array for index, array in enumerate(made)}


@pytest.mark.parametrize(("engine", "kind"), ENGINES)
@pytest.mark.parametrize("equation", EQUATIONS)
def test_an_einsum_gives_the_same_before_opset_12(equation: str, engine: Any, kind: Any) -> None:
    """Of dimensions that are numbers, and of open ones; of none, too, and of data with zeros."""
    feeds = {}
    for zero in ("", *(letter for letter in "ijkhd" if letter in equation)):
        feeds[zero] = fed(shapes_of(equation, {**SIZES, zero: 0}), kind)
    shapes = shapes_of(equation, SIZES)
    wanted = {
        zero: np.asarray(np.einsum(equation.replace(" ", ""), *each.values()))
        for zero, each in feeds.items()
    }
    rank = wanted[""].ndim
    for target in (8, 11):
        for dims in (shapes, [[None] * len(shape) for shape in shapes]):
            made = of(equation, dims, kind, rank)
            if "ii" in equation and target < 9 and dims is not shapes:
                with refused("TS512", "Einsum", "opset 9"):
                    convert(made, target)
                continue
            there = converted(made, target)
            with ts.session(there, engine=engine) as session:
                for zero in feeds if dims is not shapes else ("",):
                    found = session.run(feeds[zero])["y"]
                    assert (found.shape, found.dtype) == (wanted[zero].shape, kind)
                    np.testing.assert_allclose(found, wanted[zero], 1e-5, 1e-6)


def operators(made: Any) -> list[str]:
    return [each.op_type for each in made.graph.node if each.op_type != "Constant"]


def test_attention_is_a_product_of_matrices() -> None:
    """No element is multiplied that is not added up at once, and nothing is reshaped."""
    for equation in ("bqhd,bkhd->bhqk", "bhqk,bkhd->bqhd"):
        shapes = [[None] * 4] * 2
        found = operators(convert(of(equation, shapes, rank=4), 11))
        assert (found.count("MatMul"), found.count("Transpose")) == (1, len(found) - 1)
    weights = [["N", "L", 2, 3], [2, 3, 4]]
    found = operators(convert(of("bqhd,hdi->bqi", weights, rank=3), 11))
    assert found.count("MatMul") == 1
    assert "ReduceSum" not in found
    assert operators(convert(of("bqd,dh->bqh", [["N", "L", 3], [3, 4]], rank=3), 11)) == ["MatMul"]


def test_integers_are_multiplied_one_by_one_before_opset_9() -> None:
    """There MatMul takes only floats; from 9 on it takes those integers that Mul takes."""
    for kind, target, operator in (
        (np.int64, 8, "Mul"),
        (np.int64, 9, "MatMul"),
        (np.float32, 8, "MatMul"),
    ):
        assert operator in operators(convert(of("ij,jk->ik", [(2, 3), (3, 4)], kind), target))


def test_elements_beside_a_diagonal_are_not_multiplied_by_zero() -> None:
    data = np.full((3, 3), np.inf, np.float32)
    data[np.diag_indices(3)] = [4, 7, -2]
    for dims in ((3, 3), (None, None)):
        there = converted(of("ii->i", [dims], rank=1), 9)
        assert outputs(there, x0=data)[0].tolist() == [4, 7, -2]


def test_dimensions_of_1_are_broadcast_where_that_is_known() -> None:
    x, w = fed([(2, 1), (3, 4)]).values()
    expected = x * w.sum(0)
    for dims in ((2, 1), (None, 1)):
        for pair in ([dims, (3, 4)], [dims, (None, None)]):
            found = outputs(converted(of("ij,jk->ik", pair, rank=2), 11), x0=x, x1=w)[0]
            np.testing.assert_allclose(found, expected, 1e-5)
    open_ones = converted(of("ij,jk->ik", [(None, None)] * 2, rank=2), 11)
    with refused("TS510"):
        ts.run(open_ones, {"x0": x, "x1": w})


def test_lengths_that_differ_are_refused_by_the_running_model() -> None:
    for equation, shapes in (
        ("ij,jk->ik", [(2, 3), (4, 2)]),
        ("bij,bjk->bik", [(2, 3, 4), (3, 4, 2)]),
        ("abc,bcd->ad", [(2, 2, 6), (3, 4, 2)]),
        ("ii->i", [(2, 3)]),
        ("ij,ij->", [(2, 3), (2, 4)]),
    ):
        there = convert(of(equation, [[None] * len(shape) for shape in shapes]), 11)
        with refused("TS510"):
            ts.run(there, fed(shapes))


@pytest.mark.parametrize(
    ("equation", "shapes", "reason"),
    [
        ("ij,jk->ik", [(2, 3)], "operands"),
        ("ij->ik", [(2, 3)], "do not have"),
        ("ij->ii", [(2, 3)], "twice"),
        ("ijk->ij", [(2, 3)], "3 dimensions for an operand of 2"),
        ("...ijk->...ij", [(2, 3)], "3 dimensions for an operand of 2"),
        ("ij,jk->ik", [(2, 3), (4, 2)], "3 and 4"),
        ("bij,bjk->bik", [(2, 3, 3), (3, 3, 2)], "2 and 3"),
        ("...i,...j->...ij", [(2, 3), (3, 4, 2)], "different numbers"),
        ("...ij->ij", [(2, 3, 4)], "leaves out the ellipsis"),
        ("...ij->...ji", [None], "rank"),
    ],
)
def test_an_equation_that_is_wrong_or_open_is_refused(
    equation: str, shapes: Any, reason: str
) -> None:
    with refused("TS512", "Einsum", reason):
        convert(of(equation, shapes), 11)


def test_only_products_and_sums_have_few_element_types() -> None:
    made = of("ij->ji", [(2, 3)], np.int8, rank=2)
    data = RNG.integers(-9, 9, (2, 3)).astype(np.int8)
    np.testing.assert_array_equal(outputs(converted(made, 11), x0=data)[0], data.T, strict=True)
    for equation, shapes in (("ij->i", [(2, 3)]), ("i,j->ij", [(2,), (3,)])):
        with refused("TS512", "Einsum", "int8", "float16"):
            convert(of(equation, shapes, np.int8), 11)


def test_an_einsum_of_a_function_has_the_equation_and_the_rank_of_each_call() -> None:
    inner = node("Einsum", "a b", "c")
    attribute = inner.attribute.add()
    attribute.name, attribute.ref_attr_name, attribute.type = "equation", "equation", 3
    made = function("F", "a b", "c", [inner], ["equation"], opset=13)
    nodes = [
        node("F", "x w", "s", domain="custom", equation="...ij,jk->...ik"),
        node("F", "s v", "y", domain="custom", equation="...ij,kj->...ik"),
    ]
    x, w, v = (
        RNG.uniform(-2, 2, shape).astype(np.float32) for shape in ((5, 2, 3), (3, 4), (6, 4))
    )
    names: dict[str, list[Any]] = {"x": ["N", 2, 3], "w": [3, 4], "v": [6, 4]}
    inputs = [value(name, TensorProto.FLOAT, shape) for name, shape in names.items()]
    ends = [value("y", TensorProto.FLOAT, ["N", 2, 6])]
    there = convert(model(graph(nodes, inputs, ends), 13, [made], custom=1), 11)
    np.testing.assert_allclose(outputs(there, x=x, w=w, v=v)[0], x @ w @ v.T, 1e-4)


def test_newer_types_stop_at_the_opset_that_has_them() -> None:
    newest = defs.onnx_opset_version()
    if newest < 28:
        pytest.skip("needs an Einsum of bfloat16")
    made = of("ij->ji", [(2, 3)])
    for entry in (*made.graph.input, *made.graph.output):
        entry.type.tensor_type.elem_type = TensorProto.BFLOAT16
    made.opset_import[0].version = newest
    with refused("TS512", "Einsum", "bfloat16"):
        convert(made, 11)


@pytest.mark.parametrize(
    ("equation", "shape"), [("ii->i", (1, 3)), ("ii->i", (3, 1)), ("aba->b", (1, 0, 2))]
)
def test_a_diagonal_of_two_lengths_is_refused(equation: str, shape: tuple[int, ...]) -> None:
    """A letter is not broadcast within an operand."""
    with refused("TS512", "Einsum", equation):
        convert(of(equation, [shape]), 11)


@pytest.mark.parametrize(
    "engine",
    ["tensorsplit", pytest.param("onnxruntime", marks=pytest.mark.engine("onnxruntime"))],
)
@pytest.mark.parametrize(
    ("equation", "shape", "is_refused"),
    [
        ("bii->bi", (0, 3, 2), True),
        ("bii->bi", (0, 0, 3), True),
        ("bii->bi", (2, 3, 0), True),
        ("bii->bi", (0, 3, 3), False),
        ("iij->j", (3, 2, 0), True),
        ("iij->j", (0, 0, 2), False),
        ("ii->i", (0, 3), True),
        ("ii->i", (3, 0), True),
        ("ii->i", (0, 0), False),
    ],
)
def test_a_diagonal_of_two_lengths_is_refused_at_run_time_without_elements_too(
    equation: str, shape: tuple[int, ...], is_refused: bool, engine: Any
) -> None:
    rank = len(equation.partition("->")[2])
    there = converted(of(equation, [[None] * len(shape)], rank=rank), 9)
    x = RNG.random(shape, np.float32)
    if is_refused:
        with pytest.raises(ts.SplitError):
            ts.run(there, {"x0": x}, engine=engine)
    else:
        (got,) = ts.run(there, {"x0": x}, engine=engine).values()
        np.testing.assert_allclose(got, np.einsum(equation, x))


def test_an_equation_that_is_no_text_is_refused() -> None:
    made = of("ij->ji", [(2, 3)])
    made.graph.node[0].attribute[0].s = b"\xff->"
    with refused("TS502", "equation"):
        convert(made, 11)
