"""Dimensions of every kind: numbers, names, expressions, unknown ones."""

from __future__ import annotations

import enum
import itertools
import math
import operator
import re
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import ml_dtypes
import numpy as np
import onnx_ir
import pytest
import sympy

from tensorsplit.core.dimensions import (
    MAX_DIM,
    Shape,
    as_index,
    as_shape,
    combine,
    decide,
    divisor_of,
    is_at_least,
    is_known,
    larger,
    magnitude,
    may_be_same,
    names_in,
    product_of,
    quotient,
    same_shape,
    show_dim,
    show_shape,
    smaller,
    sum_of,
    text_of,
)
from tests.refusals import refused


class Size(enum.IntEnum):
    SIX = 6


@pytest.mark.parametrize(
    "six",
    [
        6,
        np.int64(6),
        np.uint8(6),
        np.array(6),
        Size.SIX,
        "6",
        onnx_ir.SymbolicDim("6"),
        sympy.Integer(6),
        onnx_ir.SymbolicDim(sympy.Integer(6)),
    ],
)
def test_a_number_of_any_kind_becomes_an_int(six: object) -> None:
    (dim,) = as_shape([six])
    assert type(dim) is int
    assert dim == 6


def test_what_is_not_known_becomes_none() -> None:
    assert as_shape((None, onnx_ir.SymbolicDim(None))) == (None, None)


def test_names_and_expressions_stay_what_they_are() -> None:
    n = sympy.Symbol("n")
    dims = ("N", onnx_ir.SymbolicDim("M"), n + 1)
    assert as_shape(dims) == dims


@pytest.mark.parametrize(
    "shape",
    [[2, 3], (2, 3), iter([2, 3]), np.array([2, 3]), range(2, 4), onnx_ir.Shape([2, 3])],
)
def test_a_shape_is_any_sequence(shape: Any) -> None:
    assert as_shape(shape) == (2, 3)


def test_an_empty_shape_is_that_of_a_scalar() -> None:
    assert as_shape(()) == ()


class NoIteration:
    def __iter__(self) -> Iterator[int]:
        raise RuntimeError("not today")


class NoRepr:
    def __repr__(self) -> str:
        raise RuntimeError("not today")


class NoIndex:
    def __index__(self) -> int:
        raise RuntimeError("not today")


NOT_SHAPES = [
    *(None, 6, 6.0, "6", "NCHW", b"ab", bytearray(b"ab"), np.array(6), object(), NoIteration()),
    *({6, 2}, {6: 2}, np.zeros((2, 2), int), itertools.count(), [1] * 10_000, NoRepr()),
]
NOT_DIMENSIONS = [
    *(-1, 1 << 63, 10**5000, -(10**5000), 1.0, np.float32(2), True, np.bool_(True), "", b"N"),
    *(np.array([1, 2]), [2], (), {}, object(), NoRepr(), NoIndex(), 2j, int, ..., slice(2)),
    *(
        "-3",
        onnx_ir.SymbolicDim("-3"),
        np.datetime64(1, "s"),
        np.timedelta64(1, "s"),
        np.void(b"a"),
    ),
    *(sympy.Integer(-1), sympy.Rational(1, 2), sympy.Float(2.0), sympy.oo, sympy.zoo, sympy.nan),
    *(sympy.I, sympy.sqrt(2), sympy.true, sympy.Matrix([1]), ml_dtypes.bfloat16(2)),
]


@pytest.mark.parametrize("shape", NOT_SHAPES, ids=lambda value: type(value).__name__)
def test_what_is_no_shape_is_refused(shape: Any) -> None:
    with refused("TS205", parameter="shape"):
        as_shape(shape)


@pytest.mark.parametrize("dim", NOT_DIMENSIONS, ids=lambda value: type(value).__name__)
def test_what_is_no_dimension_is_refused(dim: object) -> None:
    with refused("TS205", parameter="shape"):
        as_shape((2, dim))


@pytest.mark.parametrize("value", [True, False, np.bool_(True), 1.0, "1", None, NoIndex(), [1]])
def test_no_integer_is_read_from_anything_else(value: object) -> None:
    assert as_index(value) is None


def test_arithmetic_on_numbers_gives_numbers() -> None:
    assert combine(lambda dim, count: -(-dim // count), 7, 3) == 3


def test_arithmetic_on_the_unknown_gives_the_unknown() -> None:
    assert combine(operator.sub, None, 2) is None


def test_arithmetic_on_a_name_gives_an_expression() -> None:
    dim = combine(operator.sub, "N", 2)
    assert isinstance(dim, onnx_ir.SymbolicDim)
    assert dim.value == "N - 2"


def test_arithmetic_keeps_the_kind_of_an_expression() -> None:
    n = sympy.Symbol("n")
    assert combine(operator.sub, n, 2) == n - 2
    assert combine(operator.sub, onnx_ir.SymbolicDim("N"), 2) == onnx_ir.SymbolicDim("N - 2")


def test_an_expression_that_turns_out_a_number_is_one() -> None:
    assert combine(lambda dim, rest: dim * 0 + rest, "N", 4) == 4
    assert is_known(combine(lambda dim, rest: dim * 0 + rest, sympy.Symbol("n"), 4))


WEIRD_NAMES = [
    *("/x/y_dim_0", "a b", "batch.size", "unk__1", "?", "é", "批", "\x00", "{0}", "%s", "--6", "²"),
    *("lambda", "None", "True", "E", "I", "S", "pi", "zoo", "nan", "oo", "exec", "N;M", " "),
    *(
        "1/2",
        "1/0",
        "0/0",
        "sqrt(-1)",
        "floor()",
        "max()",
        "mod(1,0)",
        "Max(",
        "(" * 1000,
        "a" * 9999,
    ),
    *("9**9**9**9", "N**99999999999", "__import__('os').getpid()", "[].__class__", "'" * 3),
]


@pytest.mark.parametrize("kind", [str, onnx_ir.SymbolicDim], ids=["name", "SymbolicDim"])
@pytest.mark.parametrize("name", WEIRD_NAMES, ids=lambda name: ascii(name)[:20])
def test_any_text_is_a_name_that_can_be_calculated_with(name: str, kind: type) -> None:
    (dim,) = as_shape([kind(name)])
    rest = combine(operator.sub, dim, 2)
    assert isinstance(rest, onnx_ir.SymbolicDim)
    assert rest.value == f"{name} - 2"
    assert combine(lambda dim, rest: dim - dim + rest, dim, 2) == 2


@pytest.mark.parametrize("assumptions", [{}, {"integer": True}, {"positive": True}])
def test_a_name_is_the_same_whatever_a_library_assumes_of_it(assumptions: dict[str, bool]) -> None:
    """Of the symbol of a library, the name counts: it is a dimension, of which nothing is known."""
    symbol = sympy.Symbol("N", **assumptions)
    for other in (onnx_ir.SymbolicDim(symbol), onnx_ir.SymbolicDim(symbol + 2)):
        rest = combine(operator.sub, other, "N")
        assert rest in (0, 2)


def test_a_name_that_is_an_expression_is_calculated_with_as_one() -> None:
    assert str(combine(operator.sub, "N - 1", 2)) == "N - 3"
    assert str(combine(operator.floordiv, "4*N", 2)) == "2*N"


def test_a_shape_for_a_reader() -> None:
    half = combine(lambda d, n: -(-d // n), "B", 2)
    assert show_shape((half, "S", 768, None)) == "(ceil(B/2), S, 768, ?)"
    assert show_shape((7,)) == "(7,)"
    assert show_shape(range(20)) == "(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, ...)"
    assert show_shape(range(12)) == "(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11)"
    assert show_dim("a\x1bb") == "a\N{REPLACEMENT CHARACTER}b"
    assert show_dim(combine(operator.sub, 1, half)) == "-ceil(B/2) + 1"
    assert show_dim(combine(lambda d, n: -(-d // n), "B + S", 2)) == "ceil(B/2 + S/2)"
    less, down = (
        combine(operator.floordiv, dim, 2) for dim in (combine(operator.sub, "S", "B"), "B")
    )
    assert show_dim(less) == "floor(-B/2 + S/2)"
    assert show_dim(combine(operator.sub, 1, less)) == "1 + ceil(B/2 - S/2)"
    assert show_dim(combine(operator.sub, 1, down)) == "1 - floor(B/2)"


@pytest.mark.parametrize("seed", range(40))
def test_what_a_reader_sees_has_the_value_of_the_dimension(seed: int) -> None:
    """Lengths of lengths are written with ``ceil``, however deep they are nested."""
    rng = np.random.default_rng(seed)
    dim: Any = "k"
    for _ in range(rng.integers(1, 5)):
        number, step = int(rng.integers(2, 7)), int(rng.integers(-3, 4))
        dim = combine(lambda d, n: -(-d // n), dim, number)
        dim = combine(operator.add, combine(operator.mul, dim, int(rng.integers(1, 4))), step)
    shown = show_dim(dim)
    assert "ceil(" in shown
    assert "-floor(" not in shown
    for n in range(20, 30):
        exact = {"k": Fraction(n), "ceil": math.ceil, "floor": math.floor}
        fractions = re.sub(r"(\d+)", r"Fraction(\1)", shown)
        value = eval(fractions, {"Fraction": Fraction}, exact)
        assert value == sympy.sympify(text_of(dim)).subs("k", n), shown


def test_the_longest_dimension_and_the_highest_rank() -> None:
    assert as_shape([MAX_DIM, 0]) == (MAX_DIM, 0)
    assert len(as_shape([1] * 4096)) == 4096
    for refusable in ([MAX_DIM + 1], [-1], [1] * 4097, {"a": 1}, {1, 2}, [sympy.oo], [""]):
        with refused("TS205"):
            as_shape(refusable)


N, M = sympy.Symbol("n"), sympy.Symbol("m")


@pytest.mark.parametrize(
    ("dividends", "divisors", "want"),
    [
        ([12, 2], [5], "4"),
        (["N", 6], [3], "2*N"),
        (["N", "M"], ["M"], "N"),
        (["N*N + N"], ["N + 1"], "N"),
        (["N"], [2], "floor(N/2)"),
        (["N"], ["M"], "None"),
        (["N"], [0], "None"),
        ([7], [0], "None"),
        ([None], [2], "None"),
        ([2], [None], "None"),
        ([], [], "1"),
    ],
)
def test_a_product_is_divided_by_another(dividends: Any, divisors: Any, want: str) -> None:
    assert str(quotient(dividends, divisors)) == want


@pytest.mark.parametrize(
    ("left", "right", "high", "low"),
    [
        (3, 5, "5", "3"),
        (5, 3, "5", "3"),
        ("N", "N + 1", "N + 1", "N"),
        ("N + 1", "N", "N + 1", "N"),
        ("N", 0, "N", "0"),
        (0, "N", "N", "0"),
        ("N", "M", "max(M, N)", "min(M, N)"),
        ("N", 2, "max(2, N)", "min(2, N)"),
        ("N", "floor(N/4)", "N", "floor(N/4)"),
        ("max(2, N)", 3, "max(3, N)", "min(3, max(2, N))"),
        ("min(3, N) - 1", 0, "max(0, min(3, N) - 1)", "min(0, min(3, N) - 1)"),
        ("N", None, "None", "None"),
        (None, 1, "None", "None"),
    ],
)
def test_the_larger_and_the_smaller_of_two(left: Any, right: Any, high: str, low: str) -> None:
    assert text_of(larger(left, right)) == high
    assert text_of(smaller(left, right)) == low


@pytest.mark.parametrize(
    ("left", "right", "is_sure"),
    [
        (3, 3, True),
        (2, 3, False),
        ("N", 0, True),
        ("N", 1, False),
        ("N", "N", True),
        ("N + 1", 1, True),
        ("N - 1", 0, False),
        ("2*N", "N", True),
        ("N", "2*N", False),
        ("N", "M", False),
        ("2*N", "M", False),
        ("N", "min(3, N)", False),
        ("N", "floor(N/2)", False),
        ("dim_0123456789ab", 0, False),  # it stands for an expression, which may be below 0
        ("dim_0123456789ab", "dim_0123456789ab", True),
        (None, 0, False),
        (0, None, False),
    ],
)
def test_what_is_never_below_another_one(left: Any, right: Any, is_sure: bool) -> None:
    assert is_at_least(left, right) is is_sure


@pytest.mark.parametrize(
    ("dim", "most"),
    [
        (7, 7),
        (-7, 7),
        (None, 0),
        ("N", 10),
        ("2*N - 3", 23),
        ("N*M", 100),
        ("floor(N/2)", 10),
        (N**2, 100),
        (1 / N, 10),
        (sympy.Rational(7, 2), 4),
        (N + M + 1, 21),
    ],
)
def test_what_a_dimension_does_not_exceed_where_its_names_are_10(dim: Any, most: int) -> None:
    assert magnitude(dim, 10) == most


@pytest.mark.parametrize(
    ("dim", "divisor"), [(6, 1), (None, 1), ("N", 1), (N / 3, 3), (N / 3 + M / 2, 6), (N / M, 1)]
)
def test_the_number_that_divides_an_expression(dim: Any, divisor: int) -> None:
    assert divisor_of(dim) == divisor


@pytest.mark.parametrize(
    ("dim", "names"),
    [
        (6, set()),
        (None, set()),
        ("N", {"N"}),
        ("max(0, N - 2)*M", {"M", "N"}),
        ("a/b:0", {"a/b:0"}),
        (N + M, {"n", "m"}),
    ],
)
def test_the_names_that_a_dimension_is_made_of(dim: Any, names: set[str]) -> None:
    assert names_in(dim) == names


def test_a_long_expression_gets_a_name_and_a_long_name_stays() -> None:
    terms = " + ".join(f"n{number}*m{number}" for number in range(9))
    made = combine(operator.add, terms, "N" * 150)
    assert len(str(made)) == len("dim_0123456789ab")
    assert str(combine(operator.add, terms, "N" * 150)) == str(made)
    assert str(combine(operator.add, terms, "M" * 150)) != str(made)
    assert str(combine(operator.mul, "N" * 300, 2)) == "2*" + "N" * 300
    exact = combine(operator.add, terms, "N" * (200 - len(terms) - 3))
    assert len(str(exact)) == 200
    assert type(combine(operator.add, sympy.sympify(terms), sympy.Symbol("N" * 150))) is type(N)


def test_a_name_may_be_0() -> None:
    """onnx-ir would take it for 1 or more, and simplify by that."""
    assert str(combine(operator.sub, "max(N, 1)", "N")) == "-N + Max(1, N)"
    assert str(combine(operator.sub, "max(N, 0)", "N")) == "0"


@pytest.mark.parametrize(("answer", "decided"), [(True, True), (0, False), (ValueError, None)])
def test_what_a_library_leaves_open_is_not_decided(answer: Any, decided: bool | None) -> None:
    class Condition:
        def __bool__(self) -> bool:
            if answer is ValueError:
                raise ValueError("it depends")
            return bool(answer)

    assert decide(Condition()) is decided


@pytest.mark.parametrize(
    ("one", "other", "may_be", "are"),
    [
        (None, (2, 3), True, False),
        ((2, 3), None, True, False),
        ((), (), True, True),
        ((2, "N"), (2, "N"), True, True),
        ((2, "N"), (2, 3), True, False),
        ((None, 3), ("N", 3), True, False),
        ((None, 3), (None, 3), True, False),
        ((2, 3), (2, 4), False, False),
        (("N", 3), (2, 4), False, False),
        ((2,), (2, 3), False, False),
        ((), (1,), False, False),
    ],
)
def test_shapes_that_may_be_the_same_or_are(
    one: Shape | None, other: Shape | None, may_be: bool, are: bool
) -> None:
    assert may_be_same(one, other) is may_be
    assert same_shape(one, other) is are


@pytest.mark.parametrize(
    ("dims", "total", "product"),
    [((), 0, 1), ((2, 3), 5, 6), ((2, 0), 2, 0), ((2, None), None, None)],
)
def test_sums_and_products_of_any_number_of_dimensions(
    dims: Shape, total: int | None, product: int | None
) -> None:
    assert (sum_of(dims), product_of(dims)) == (total, product)
