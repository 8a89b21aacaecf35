"""Lengths as the libraries that they are named after make them."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from itertools import combinations_with_replacement, product
from typing import Any

import numpy as np
import pytest

import tensorsplit as ts
from tests.refusals import refused


def test_at_is_split_of_numpy() -> None:
    for dim in range(6):
        for count in range(4):
            for indices in combinations_with_replacement(range(dim + 1), count):
                want = tuple(map(len, np.split(np.arange(dim), list(indices))))
                assert ts.lengths.at(indices, dim) == want, (indices, dim)


def test_balanced_is_array_split_of_numpy() -> None:
    for dim, parts in product(range(20), range(1, 9)):
        want = tuple(map(len, np.array_split(np.arange(dim), parts)))
        assert ts.lengths.balanced(dim, parts) == want, (dim, parts)


def test_chunked_is_chunk_of_torch() -> None:
    torch = pytest.importorskip("torch")
    for dim, chunks in product(range(20), range(1, 9)):
        want = tuple(map(len, torch.arange(dim).chunk(chunks)))
        assert ts.lengths.chunked(dim, chunks) == want, (dim, chunks)


@pytest.mark.filterwarnings("ignore:Length of split")
def test_ratio_is_random_split_of_torch() -> None:
    torch = pytest.importorskip("torch")
    for count in range(1, 4):
        for weights in product((1, 2, 8), repeat=count):
            fractions = [Fraction(weight, sum(weights)) for weight in weights]
            for dim in range(1, 15):
                parts = torch.utils.data.random_split(range(dim), fractions)
                want = tuple(map(len, parts))
                assert ts.lengths.ratio(weights, dim) == want, (weights, dim)


def test_lengths_split_arrays() -> None:
    x = np.arange(7.0)
    parts = ts.split(x, ts.lengths.at(np.array([2, 5]), np.int64(7)))
    assert [part.tolist() for part in parts] == [[0, 1], [2, 3, 4], [5, 6]]
    assert ts.lengths.ratio((1, 1), 0) == (0, 0)
    assert ts.lengths.ratio((1, 1), (1 << 63) - 1) == (1 << 62, (1 << 62) - 1)


WRONG: list[tuple[str, str, str, Callable[[], Any]]] = [
    ("TS107", "at", "indices", lambda: ts.lengths.at([5, 2], 7)),
    ("TS107", "at", "indices", lambda: ts.lengths.at([2, 8], 7)),
    ("TS107", "at", "indices", lambda: ts.lengths.at([-1], 7)),
    ("TS105", "at", "indices", lambda: ts.lengths.at([2.0], 7)),  # type: ignore[list-item]
    ("TS105", "at", "indices", lambda: ts.lengths.at(2, 7)),  # type: ignore[arg-type]
    ("TS107", "at", "dim", lambda: ts.lengths.at([], -1)),
    ("TS105", "balanced", "dim", lambda: ts.lengths.balanced(True, 1)),
    ("TS107", "balanced", "parts", lambda: ts.lengths.balanced(7, 0)),
    ("TS308", "balanced", "parts", lambda: ts.lengths.balanced(7, 1 << 40)),
    ("TS107", "balanced", "dim", lambda: ts.lengths.balanced(1 << 63, 2)),
    ("TS107", "chunked", "chunks", lambda: ts.lengths.chunked(7, -1)),
    ("TS308", "chunked", "chunks", lambda: ts.lengths.chunked(0, 1 << 40)),
    ("TS105", "chunked", "dim", lambda: ts.lengths.chunked("7", 1)),  # type: ignore[arg-type]
    ("TS107", "ratio", "weights", lambda: ts.lengths.ratio((8, 0), 7)),
    ("TS107", "ratio", "weights", lambda: ts.lengths.ratio((), 7)),
    ("TS105", "ratio", "weights", lambda: ts.lengths.ratio((0.8, 0.2), 7)),  # type: ignore[arg-type]
    ("TS107", "ratio", "dim", lambda: ts.lengths.ratio((1,), -7)),
]


@pytest.mark.parametrize(("code", "name", "parameter", "call"), WRONG)
def test_refused(code: str, name: str, parameter: str, call: Callable[[], Any]) -> None:
    with refused(code, operator=f"lengths.{name}", parameter=parameter):
        call()


@pytest.mark.parametrize("sizes", [[2, 0, 4], [0, 0, 6, 0], [1, 1, 1, 1, 1, 1], [6]])
def test_find_and_indices_say_where_elements_are(sizes: list[int]) -> None:
    x = np.arange(6) * 3 + 1
    plan = ts.plan("onnx.Split-18", (6,), sizes)
    parts = plan(x)
    for index in range(-6, 6):
        number, inside = plan.find(np.int8(index))
        assert parts[number][inside] == x[index]
    assert [x[each].tolist() for each in plan.indices] == [part.tolist() for part in parts]
    for outside in (6, -7, 1 << 70):
        with refused("TS107", "[-6, 5]", operator="onnx.Split-18", parameter="index"):
            plan.find(outside)
    with refused("TS105", parameter="index"):
        plan.find(1.0)  # type: ignore[arg-type]


def test_find_where_there_is_little() -> None:
    rows = ts.plan("onnx.SplitToSequence-24", (3, 2), keepdims=0)
    assert [rows.find(index) for index in range(3)] == [(0, 0), (1, 0), (2, 0)]
    for empty in (ts.plan("Split", (0,), [0, 0]), ts.plan("SplitToSequence", (0,))):
        with refused("TS107", "the dimension is 0", parameter="index"):
            empty.find(0)
    with refused("TS309", parameter="shape"):
        ts.plan("VariadicSplit", ("N",), axis=0, split_lengths=[2, -1]).find(0)
