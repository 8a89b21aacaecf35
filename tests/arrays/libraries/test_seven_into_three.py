"""Dialects, against the libraries themselves, and the page that tells what they give."""

from __future__ import annotations

import importlib
import re
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import tensorsplit as ts
from tensorsplit.core.records import dialects
from tensorsplit.core.records.names import DialectName

PAGE = Path(__file__).parents[3] / "docs" / "seven-into-three.md"
ROW = re.compile(r"\| \[(.+?)\]\(https://\S+\) \| (.+?) \| (.+?) \| (.+?) \| `(.+?)` \|")
INSTALLED = ("numpy", "torch", "jax")
FUNCTIONS = [name for name in dialects if name.startswith(INSTALLED)]
LISTS = [
    list(found) for size in (1, 2, 3) for found in product((-8, -2, 0, 2, 5, 7, 9), repeat=size)
]


class Row(NamedTuple):
    """A row of the table of what is given one number."""

    where: str
    call: str
    seven: str
    five: str
    here: str


ROWS = [Row(*found) for found in ROW.findall(PAGE.read_text("utf-8"))]


def library_function(name: str) -> Any:
    """The function that a dialect is named after."""
    root, *names = name.split(".")
    found: Any = pytest.importorskip(root)
    if root == "jax":
        importlib.import_module("jax.numpy")
    for each in names:
        found = getattr(found, each)
    return found


def array_of(name: str, dim: int) -> Any:
    """Numbers that tell where they come from, of the library of a dialect."""
    numbers = np.arange(dim, dtype=np.int32) * 3 + 5
    root = name.partition(".")[0]
    if root == "torch":
        return pytest.importorskip("torch").from_numpy(numbers)
    return pytest.importorskip("jax.numpy").asarray(numbers) if root == "jax" else numbers


def split(function: Any, array: Any, given: Any) -> list[list[int]] | None:
    """The elements of each part; None where the call is refused, or does not partition."""
    try:
        parts = [np.asarray(part).tolist() for part in function(array, given)]
    except (ValueError, RuntimeError, TypeError, ZeroDivisionError):
        return None
    whole = [number for part in parts for number in part]
    return parts if whole == np.asarray(array).tolist() and parts else None


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_count_gives_what_the_library_gives(name: DialectName) -> None:
    function = library_function(name)
    if 0 not in dialects[name].lengths[0].rules:
        assert split(ts.like(name), array_of(name, 7), 7) is None
        return
    for dim, count in product(range(10), range(6)):
        array = array_of(name, dim)
        assert split(ts.like(name), array, count) == split(function, array, count), (dim, count)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_list_gives_what_the_library_gives(name: DialectName) -> None:
    function = library_function(name)
    if 1 not in dialects[name].lengths[0].rules:
        assert split(ts.like(name), array_of(name, 7), [3, 4]) is None
        return
    array = array_of(name, 7)
    given = [[7], [0, 7], [3, 4], [3, 4, 0], *LISTS[:: 1 if name.startswith("numpy") else 7]]
    answers = [split(function, array, each) for each in given]
    assert [split(ts.like(name), array, each) for each in given] == answers
    assert None in answers
    assert any(answers)


def test_the_page_has_every_version_and_dialect_that_takes_a_number() -> None:
    assert len(ROWS) == PAGE.read_text("utf-8").partition("## Given lengths")[0].count("\n| [")
    names = [row.where for row in ROWS]
    assert set(names) >= {name for name in FUNCTIONS if name != "jax.lax.split"}
    assert set(names) >= {"tensorflow.split", "webnn.split", "ncnn.Slice", "onnx.Split-18"}
    for name in dialects:
        assert f"[{name}](https://" in PAGE.read_text("utf-8")


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.where)
def test_what_is_named_here_gives_the_same(row: Row) -> None:
    for dim, number, answer in ((7, 3, row.seven), (5, 4, row.five)):
        x = np.random.default_rng(7).standard_normal(dim)
        call = re.sub(r"\b3\b", str(number), row.here)
        if "-233" in call:
            call = re.sub(r"\[.*\]", str([-233] * number), call)
        try:
            parts = eval(call, {"ts": ts, "x": x})
            found = ", ".join(str(len(part)) for part in parts) or "no parts"
        except ts.SplitError:
            found = "refused"
        assert found == answer


def test_operands_are_given_once_and_arrays_are_those_of_the_library() -> None:
    x = np.random.default_rng(1).standard_normal((2, 7))
    left, right = ts.like("numpy.split")(x, [3], 1)
    assert left.tobytes() == x[:, :3].tobytes()
    assert np.shares_memory(right, x)
    copies = ts.like("torch.chunk")(x, 3, dim=-1, copy=True)
    assert [part.shape for part in copies] == [(2, 3), (2, 3), (2, 1)]
    assert not np.shares_memory(copies[0], x)
    wrong: list[tuple[tuple[int, ...], dict[str, Any]]] = [((3, 1), {"dim": 1}), ((3, 1, 2), {})]
    for given, named in wrong:
        with pytest.raises(ts.SplitError) as caught:
            ts.like("torch.chunk")(x, *given, **named)
        assert caught.value.code == "TS103"
    with pytest.raises(ts.SplitError) as caught:
        ts.like("torch.chunks")  # type: ignore[arg-type]
    assert caught.value.code == "TS101"
    assert "torch.chunk" in str(caught.value)
