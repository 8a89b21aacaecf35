"""Values from callers become Python's own, whatever their classes do or claim."""

from __future__ import annotations

import os
from collections import ChainMap, OrderedDict, UserDict
from collections.abc import Iterator, Mapping
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from types import MappingProxyType
from typing import Any
from unittest.mock import MagicMock

import numpy as np
import pytest

from tensorsplit.core import given


class Text(str):
    """A string that lies about itself."""

    __slots__ = ()

    def __str__(self) -> str:
        return "another"

    def __eq__(self, other: object) -> bool:
        return False

    def __hash__(self) -> int:
        return 7


class Number(int):
    """An integer that lies about itself."""

    def __int__(self) -> int:
        return -1

    def __index__(self) -> int:
        return -1


class Real(float):
    """A float that lies about itself."""

    def __float__(self) -> float:
        return -1.0


class Items(list):
    """A list whose iteration lies."""

    def __iter__(self) -> Iterator[Any]:
        return iter("lies")


class Pair(tuple):
    """A tuple whose iteration lies."""

    __slots__ = ()

    def __iter__(self) -> Iterator[Any]:
        return iter("lies")


class Place(os.PathLike[Any]):
    """A path of any kind."""

    def __init__(self, path: object) -> None:
        self.path = path

    def __fspath__(self) -> Any:
        return self.path


class Table(Mapping[Any, Any]):
    """A mapping that lists what it is told to."""

    def __init__(self, keys: Any, held: dict[Any, Any]) -> None:
        self.names, self.held = keys, held

    def __getitem__(self, key: object) -> object:
        return self.held[key]

    def __iter__(self) -> Iterator[Any]:
        return iter(self.names)

    def __len__(self) -> int:
        return 1


def endless() -> Iterator[int]:
    number = 0
    while True:
        yield number
        number += 1


class Endless:
    """What can be iterated without an end."""

    def __iter__(self) -> Iterator[int]:
        return endless()


class Raising:
    """What can't be iterated."""

    def __iter__(self) -> Iterator[int]:
        raise OSError("not today")


def own(value: object) -> object:
    """A value with the types of all that it holds."""
    if type(value) is dict:
        return {(type(key), key): own(each) for key, each in value.items()}
    return (type(value), [own(each) for each in value] if type(value) is list else value)


def kind(value: object) -> str:
    """The name of a value's class, whatever it claims."""
    return type(value).__name__


MOCK = MagicMock(spec=str)
STRINGS: list[tuple[object, str | None]] = [
    ("a", "a"),
    (Text("a"), "a"),
    (np.str_("a"), "a"),
    (b"a", None),
    (bytearray(b"a"), None),
    (1, None),
    (None, None),
    (["a"], None),
    (MOCK, None),
]


@pytest.mark.parametrize(("value", "found"), STRINGS, ids=kind)
def test_strings(value: object, found: str | None) -> None:
    assert own(given.as_string(value)) == own(found)


@pytest.mark.parametrize(
    ("value", "found"),
    [
        *STRINGS,
        (Path("a/b"), "a/b"),
        (Place("a"), "a"),
        (Place(Text("a")), "a"),
        (Place(b"a\xff"), os.fsdecode(b"a\xff")),
        (Place(1), None),
        (Place(None), None),
    ],
    ids=kind,
)
def test_paths(value: object, found: str | None) -> None:
    assert own(given.as_path(value)) == own(found)


@pytest.mark.parametrize(
    ("value", "found"),
    [
        ([1, 2], [1, 2]),
        ((1, 2), [1, 2]),
        ([], []),
        ((), []),
        (Items([1, 2]), [1, 2]),
        (Pair((1, 2)), [1, 2]),
        ("ab", None),
        ({1, 2}, None),
        ({1: 2}, None),
        (range(2), None),
        (np.ones(2), None),
        (MagicMock(spec=list), None),
        (None, None),
    ],
    ids=kind,
)
def test_lists(value: object, found: list[int] | None) -> None:
    made = given.as_list(value)
    assert own(made) == own(found)
    assert made is not value or made is None


@pytest.mark.parametrize(
    ("value", "found"),
    [
        (1.5, 1.5),
        (2, 2.0),
        (Real(1.5), 1.5),
        (np.float32(1.5), 1.5),
        (np.int8(-3), -3.0),
        (Fraction(1, 4), 0.25),
        (10**400, float("inf")),
        (True, None),
        (False, None),
        (np.bool_(True), None),
        (Decimal(1), None),
        (1j, None),
        ("1", None),
        (None, None),
        (MagicMock(spec=float), None),
    ],
    ids=kind,
)
def test_numbers(value: object, found: float | None) -> None:
    assert own(given.as_real(value)) == own(found)


@pytest.mark.parametrize(
    ("value", "found"),
    [
        ({}, {}),
        ({"a": 1}, {"a": 1}),
        ({1: 2}, {1: 2}),
        ({Text("a"): 1}, {"a": 1}),
        (OrderedDict(a=1), {"a": 1}),
        (UserDict(a=1), {"a": 1}),
        (ChainMap({"a": 1}, {"b": 2}), {"a": 1, "b": 2}),
        (MappingProxyType({"a": 1}), {"a": 1}),
        (Table([Text("a")], {"a": 1, Text("a"): 2}), None),
        (Table(["a"], {"a": 1, "b": 2}), {"a": 1}),
        (Table(["a", "b"], {"a": 1}), None),
        (Table(Endless(), {}), None),
        (Table(Raising(), {}), None),
        ([("a", 1)], None),
        ("a", None),
        (None, None),
        (MagicMock(spec=dict), None),
    ],
    ids=kind,
)
def test_mappings(value: object, found: dict[Any, Any] | None) -> None:
    made = given.as_dict(value)
    assert own(made) == own(found)
    assert made is None or made is not value


@pytest.mark.parametrize("count", [1 << 20, (1 << 20) + 1])
def test_mappings_have_a_million_names_at_most(count: int) -> None:
    held = given.as_dict(Table(range(count), dict.fromkeys(range(count))))
    assert (held is None) is (count > 1 << 20)
    assert held is None or len(held) == count


THING = object()


@pytest.mark.parametrize(
    ("value", "found"),
    [
        (None, None),
        (True, True),
        (1, 1),
        (1.5, 1.5),
        ("a", "a"),
        (Text("a"), "a"),
        (Number(3), 3),
        (Real(1.5), 1.5),
        (Items([Number(1), Pair(("a",))]), [1, ["a"]]),
        (UserDict(a=UserDict(b=(Real(1.0),))), {"a": {"b": [1.0]}}),
        ({Text("a"): Items()}, {"a": []}),
        (THING, THING),
        ([b"a", THING], [b"a", THING]),
    ],
    ids=kind,
)
def test_data(value: object, found: object) -> None:
    assert own(given.as_data(value)) == own(found)


@pytest.mark.parametrize("value", [Table(Endless(), {}), {"a": [Table(["a"], {})]}])
def test_what_can_not_be_listed_is_no_data(value: object) -> None:
    with pytest.raises(ValueError, match="a Table can't be listed"):
        given.as_data(value)


@pytest.mark.parametrize(
    ("value", "kinds", "is_one"),
    [
        (1, int, True),
        (True, int, True),
        (1, (str, int), True),
        (1, str, False),
        (Text("a"), str, True),
        (MOCK, str, False),
    ],
    ids=kind,
)
def test_the_class_is_that_of_the_type(value: object, kinds: Any, is_one: bool) -> None:
    assert given.is_a(value, kinds) is is_one
