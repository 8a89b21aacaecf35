"""The table of docs/seven-into-three.md, against the libraries themselves."""

from __future__ import annotations

import importlib
import re
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import tensorsplit as ts

PAGE = Path(__file__).parents[3] / "docs" / "seven-into-three.md"
ROW = re.compile(r"\| \[(.+?)\]\(https://\S+\) \| (.+?) \| (.+?) \| (.+?) \| `(.+?)` \|")


class Row(NamedTuple):
    """A row of the table."""

    where: str
    call: str
    seven: str
    five: str
    here: str


ROWS = [Row(*found) for found in ROW.findall(PAGE.read_text("utf-8"))]
LIBRARIES = [row for row in ROWS if re.match(r"`\w+[.\w]*\(x, 3\)`", row.call) and "." in row.call]


def lengths(call: str, arrays: dict[str, Any]) -> str:
    """What a call gives, in the words of the table."""
    try:
        parts = eval(call, arrays)
    except (ValueError, RuntimeError, TypeError):
        return "refused"
    return ", ".join(str(len(part)) for part in parts)


def test_the_table_is_read_whole() -> None:
    assert len(ROWS) == PAGE.read_text("utf-8").count("\n| [")
    assert len(ROWS) > 10
    assert len(LIBRARIES) > 6


@pytest.mark.parametrize("row", LIBRARIES, ids=lambda row: row.call.strip("`"))
def test_a_library_gives_what_the_table_says(row: Row) -> None:
    call = row.call.strip("`")
    root = call.partition(".")[0]
    library = pytest.importorskip(root)
    if root == "jax":
        importlib.import_module("jax.numpy")
    of = {"numpy": "arange", "torch": "arange", "jax": "numpy.arange", "tensorflow": "range"}[root]
    make = library
    for name in of.split("."):
        make = getattr(make, name)
    assert lengths(call, {root: library, "x": make(7)}) == row.seven
    assert lengths(call.replace(", 3)", ", 4)"), {root: library, "x": make(5)}) == row.five


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.where}, {row.call.strip('`')}")
def test_what_is_named_here_gives_the_same(row: Row) -> None:
    x = np.random.default_rng(7).standard_normal(7)
    assert lengths(row.here, {"ts": ts, "x": x}) == row.seven.partition(" (")[0]
    other = re.sub(r"\b3\b", "4", row.here).replace("7", "5")
    assert lengths(other, {"ts": ts, "x": x[:5]}) == row.five.partition(" (")[0]
