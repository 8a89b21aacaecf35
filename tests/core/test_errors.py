"""The one error type, and the table of its codes."""

from __future__ import annotations

import copy
import pickle
import re
from math import ceil, floor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tensorsplit import SplitError
from tensorsplit.core import errors
from tensorsplit.core.errors import KINDS, Kind, show_bytes

PAGE = Path(__file__).parents[2] / "docs" / "errors.md"
DECISIONS = {f"D{number}" for number in range(1, 21)}


def test_a_refusal_is_a_value_error() -> None:
    assert issubclass(SplitError, ValueError)


def test_codes_are_ts_and_three_digits_in_order() -> None:
    assert all(re.fullmatch(r"TS[1-9][0-9][0-9]", code) for code in KINDS)
    assert list(KINDS) == sorted(KINDS)


def test_each_code_belongs_to_one_kind() -> None:
    found = [value for value in vars(errors).values() if isinstance(value, Kind)]
    assert len(found) == len(KINDS)
    assert {kind.code: kind for kind in found} == KINDS


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
class TestKind:
    def test_says_what_went_wrong(self, kind: Kind) -> None:
        assert kind.title
        assert kind.meaning.endswith(".")
        assert set(kind.decisions) <= DECISIONS

    def test_is_documented(self, kind: Kind) -> None:
        page = PAGE.read_text(encoding="utf-8")
        assert re.search(rf"\b{kind.code}\b", page)
        assert kind.title in page

    def test_survives_copying_and_pickling(self, kind: Kind) -> None:
        error = SplitError(
            kind, "it is 3", "give 4", parameter="axis", operator="onnx.Split-13", node="body/s"
        )
        for again in (copy.copy(error), copy.deepcopy(error), pickle.loads(pickle.dumps(error))):
            assert type(again) is SplitError
            assert again is not error
            assert again.kind is kind
            assert (again.code, again.problem, again.fix) == (kind.code, "it is 3", "give 4")
            assert (again.parameter, again.operator, again.node) == (
                *("axis", "onnx.Split-13", "body/s"),
            )
            assert str(again) == str(error)


def test_the_message_says_where_what_and_what_would_be_right() -> None:
    error = SplitError(
        errors.AXIS_RANGE,
        "the axis is 3",
        "give 0",
        parameter="axis",
        operator="onnx.Split-13",
        node="body/s",
    )
    assert str(error) == (
        "[TS203] onnx.Split-13, parameter 'axis', node 'body/s': the axis is 3; give 0"
    )


def test_the_message_leaves_out_what_is_not_known() -> None:
    assert str(SplitError(errors.USAGE, "no")) == "[TS703] no"
    assert str(SplitError(errors.USAGE, "no", node="s")) == "[TS703] node 's': no"


@pytest.mark.parametrize(
    ("name", "shown"),
    [("a\nb", "a\\nb"), ("a\x1b[2J", "a\\x1b[2J"), ("a\u2028b", "a\\u2028b"), ("值 é", "值 é")],
)
def test_a_message_is_one_line_whatever_a_file_is_called(name: str, shown: str) -> None:
    error = SplitError(errors.UNWRITABLE, f"there is no folder {name}", f"make {name}")
    assert str(error) == f"[TS702] there is no folder {shown}; make {shown}"


def test_a_place_is_filled_in_once() -> None:
    error = SplitError(errors.USAGE, "no", operator="onnx.Split-13")
    assert error.located(operator="onnx.Split-18", node="s") is error
    assert (error.operator, error.node) == ("onnx.Split-13", "s")


class Silent:
    def __repr__(self) -> str:
        raise RuntimeError("no words")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (6, "6"),
        ("a\nb", "'a\\nb'"),
        ([1, 2], "[1, 2]"),
        ("x" * 100, "'" + "x" * 76 + "..."),
        (Silent(), "a value of type Silent"),
        (10**5000, "2^16609 or more"),
        (-(10**5000), "-2^16609 or more"),
        ([10**5000], "a value of type list"),
        ((1 << 128) - 1, "340282366920938463463374607431768211455"),
        (1 << 128, "2^128 or more"),
        (-(1 << 128), "-2^128 or more"),
        ("y" * 78, f"'{'y' * 78}'"),
        (np.array([1, 2]), "array([1, 2])"),
        (np.eye(2), "array([[1., 0.], [0., 1.]])"),
    ],
    ids=lambda value: value[:20] if isinstance(value, str) else type(value).__name__,
)
def test_any_value_is_shown_on_one_short_line(value: object, text: str) -> None:
    assert errors.show(value) == text


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0, "0 bytes"),
        (1, "1 byte"),
        (1023, "1023 bytes"),
        (1024, "1 KiB"),
        (1536, "1.5 KiB"),
        (36 * 2**20, "36 MiB"),
        (3 * 2**30, "3 GiB"),
        (7 * 2**40, "7 TiB"),
        (5 * 2**60, "5120 PiB"),
    ],
)
def test_amounts_have_units(number: int, text: str) -> None:
    assert show_bytes(number) == text


@pytest.mark.parametrize("difference", [1, 100, 2**16])
def test_what_there_is_looks_smaller_than_what_is_needed(difference: int) -> None:
    needed = 80 * 2**20
    assert show_bytes(needed, ceil) == "80 MiB"
    assert show_bytes(needed - difference, floor) == "79.9 MiB"
    assert show_bytes(needed + difference, ceil) == "80.1 MiB"


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (ValueError("a\n  b"), "a b"),
        (ValueError(), "ValueError"),
        (ValueError("x" * 300), "x" * 200),
        (OSError(2, "No such file", "/secret/path"), "No such file"),
        (OSError("of its own"), "of its own"),
    ],
)
def test_an_exception_in_one_line(error: Exception, words: str) -> None:
    assert errors.words_of(error) == words


@pytest.mark.parametrize(
    ("word", "hint"),
    [
        ("num_output", "did you mean num_outputs? "),
        ("NUM_OUTPUTS", "did you mean num_outputs? "),
        ("axes", "did you mean Axis? "),
        ("zzz", ""),
    ],
)
def test_the_word_that_was_meant(word: str, hint: str) -> None:
    assert errors.did_you_mean(word, ["num_outputs", "Axis"]) == hint


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a" * 120, "a" * 120),
        ("b" * 121, "'" + "b" * 76 + "..."),
        ("a\x1b", r"'a\x1b'"),
        (b"\xff", r"b'\xff'"),
    ],
    ids=["short", "long", "control", "bytes"],
)
def test_a_name_that_can_be_printed(name: Any, text: str) -> None:
    assert errors.short_name(name) == text


def test_of_a_long_path_the_end_is_shown() -> None:
    assert errors.show_path("/a/x.npy") == "'/a/x.npy'"
    assert errors.show_path("/a/" + "b" * 115) == f"'/a/{'b' * 115}'"
    shown = errors.show_path("/a/" + "b" * 200 + "/end.npy")
    assert shown == f"'...{'b' * 107}/end.npy'"


@pytest.mark.parametrize(
    ("number", "text"), [(0, "0 parts"), (1, "1 part"), (2, "2 parts"), (-1, "-1 parts")]
)
def test_things_are_counted(number: int, text: str) -> None:
    assert errors.count_of(number, "part") == text


def test_every_kind_says_where_to_read_about_it() -> None:
    for code, kind in KINDS.items():
        assert code.lower() in kind.reference.lower()
