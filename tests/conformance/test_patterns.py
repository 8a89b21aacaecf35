"""Patterns of case ids: what they match, and how few are found for what deviates."""

from __future__ import annotations

from itertools import product

import pytest

from tensorsplit.conformance.patterns import _merged, covering, matches, matching

NAMES = [
    f"{operator}/{kind}/{shape}-r{rank}/{wording}-o{opset}"
    for operator, kind, shape, rank, wording, opset in product(
        ("onnx.Split-13", "onnx.Split-18", "onnx.SplitToSequence-11"),
        ("float", "int8", "string"),
        ("static", "dynamic-axis"),
        (1, 2),
        ("chunks-2of5", "chunks-fed-2of5", "count-blank-3of7"),
        (13, 18),
    )
]


@pytest.mark.parametrize(
    ("pattern", "name"),
    [
        ("a/b", "a/b"),
        ("*/b", "a/b"),
        ("a/*-c-*", "a/b-c-d"),
        ("{a,x}/b", "x/b"),
        ("{a*,x}/b", "abc/b"),
        ("a.b/c", "a.b/c"),
    ],
)
def test_a_pattern_matches(pattern: str, name: str) -> None:
    assert matches(name, pattern)


@pytest.mark.parametrize(
    ("pattern", "name"),
    [("a", "a/b"), ("*", "a/b"), ("a/b", "a/bc"), ("a.b", "axb"), ("{a,x}/b", "y/b")],
)
def test_a_pattern_does_not_match(pattern: str, name: str) -> None:
    assert not matches(name, pattern)


@pytest.mark.parametrize(
    "pattern",
    [
        "*/string/*/*",
        "onnx.Split-18/*/*/count-blank-*",
        "*/{int8,string}/dynamic-*/*",
        "*/*/*-r2/*-fed-*",
        "onnx.SplitToSequence-11/float/static-r1/chunks-2of5-o13",
        "*/*/*/*",
    ],
)
def test_what_one_pattern_says_is_found_in_few(pattern: str) -> None:
    wanted = set(matching(NAMES, [pattern]))
    assert wanted
    found = covering(wanted, set(NAMES) - wanted)
    assert set(matching(NAMES, found)) == wanted
    assert len(found) <= 2


@pytest.mark.parametrize(
    ("wanted", "others", "patterns"),
    [
        ({"a/1", "b/1"}, {"c/1"}, ("{a,b}/*",)),
        ({"a-x/1", "a-y/1"}, {"b-x/1"}, ("a-*/*",)),
        ({"a", "a/b"}, {"b", "b/b"}, ("a", "a/*")),
        ({"a/b/c", "a/b/d"}, {"a/x/c"}, ("*/b/*",)),
        ({"a-x", "a-y", "b-x"}, {"b-y"}, ("{*-x,a-*}",)),
        ({"a", "b/c"}, set(), ("*", "*/*")),
    ],
)
def test_a_pattern_is_as_general_as_can_be(
    wanted: set[str], others: set[str], patterns: tuple[str, ...]
) -> None:
    assert covering(wanted, others) == patterns


def test_nothing_needs_no_pattern() -> None:
    assert covering(set(), set(NAMES)) == ()


def test_ids_without_anything_in_common_are_listed() -> None:
    wanted = {NAMES[3], NAMES[50], NAMES[71]}
    found = covering(wanted, set(NAMES) - wanted)
    assert set(matching(NAMES, found)) == wanted


def test_merged_patterns_are_in_order_whatever_the_order_of_what_is_merged() -> None:
    given = ["c/y", "b/x", "a/y", "b/z"]
    assert list(_merged(given)) == list(_merged(given[::-1])) == ["{a,c}/y", "b/{x,z}"]
