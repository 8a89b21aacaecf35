"""What changed between two operator versions, as the standards' pages tell it."""

from __future__ import annotations

import pytest

import tensorsplit as ts
from tensorsplit.core.differences import ASPECTS
from tensorsplit.core.records.names import OperatorName
from tests.oracle import ALLOWED
from tests.refusals import refused


def changes(
    before: OperatorName, after: OperatorName, aspect: str
) -> dict[str, tuple[str | None, str | None]]:
    """Before and after by name, of one aspect."""
    return {
        change.name: (change.before, change.after)
        for change in ts.diff(before, after).changes
        if change.aspect == aspect
    }


def test_split_18_gained_num_outputs() -> None:
    assert changes("onnx.Split-13", "onnx.Split-18", "attribute") == {
        "num_outputs": (None, "INT, optional")
    }
    assert changes("onnx.Split-13", "onnx.Split-18", "type") == {}
    assert set(changes("onnx.Split-13", "onnx.Split-18", "behaviour")) == {
        *("7 into 3", "lengths", "no lengths")
    }


def test_split_13_turned_the_attribute_into_an_input() -> None:
    assert changes("onnx.Split-11", "onnx.Split-13", "attribute") == {
        "split": ("INTS, optional", None)
    }
    assert changes("onnx.Split-11", "onnx.Split-13", "input") == {
        "split": (None, "tensor(int64), optional")
    }


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("onnx.Split-1", "onnx.Split-2"),
        ("onnx.Split-2", "onnx.Split-11"),
        ("onnx.Split-11", "onnx.Split-13"),
        ("onnx.SplitToSequence-11", "onnx.SplitToSequence-24"),
    ],
)
def test_the_element_types_of_the_data(before: OperatorName, after: OperatorName) -> None:
    added = set(ALLOWED[after]) - set(ALLOWED[before])
    found = changes(before, after, "type")
    data = {name: pair for name, pair in found.items() if name.startswith("data: ")}
    assert data == {f"data: {element}": (None, "allowed") for element in added}


def test_split_11_counts_a_negative_axis_from_the_back() -> None:
    before, after = changes("onnx.Split-2", "onnx.Split-11", "behaviour")["negative axis"]
    assert before is not None
    assert "not in the text" in before
    assert after == "counts from the back"


def test_two_vendors_are_compared_by_what_operands_hold() -> None:
    found = changes("onnx.Split-18", "openvino.VariadicSplit-1", "type")
    assert found["data: float"] == ("allowed", None)
    assert found["data: any type the engine supports"] == (None, "allowed")
    assert changes("onnx.Split-18", "openvino.VariadicSplit-1", "attribute")["axis"] == (
        "INT, default 0",
        None,
    )


def test_what_is_the_same_is_not_told() -> None:
    for identifier in ts.operators:
        assert ts.diff(identifier, identifier).changes == ()


def test_turned_round_the_changes_are_turned_round() -> None:
    there = ts.diff("onnx.Split-1", "openvino.Split-1").changes
    back = ts.diff("openvino.Split-1", "onnx.Split-1").changes
    assert {(c.aspect, c.name, c.before, c.after) for c in there} == {
        (c.aspect, c.name, c.after, c.before) for c in back
    }


def test_changes_come_by_aspect_and_subject() -> None:
    found = ts.diff("onnx.Split-18", "openvino.VariadicSplit-1").changes
    seen = [(change.aspect, change.subject) for change in found]
    assert [ASPECTS.index(aspect) for aspect, _ in seen] == sorted(
        ASPECTS.index(aspect) for aspect, _ in seen
    )
    runs = [subject for place, subject in enumerate(seen) if seen[place - 1 : place] != [subject]]
    assert len(runs) == len(set(runs))


def test_as_text_each_change_is_a_line() -> None:
    assert str(ts.diff("onnx.Split-13", "onnx.Split-18")).splitlines()[:2] == [
        "onnx.Split-13 -> onnx.Split-18",
        "attribute num_outputs: - -> INT, optional",
    ]


def test_an_unknown_operator() -> None:
    with refused("TS101", "'onnx.Split-12'"):
        ts.diff("onnx.Split-13", "onnx.Split-12")  # type: ignore[arg-type]


def test_the_element_types_of_an_operand_share_a_row() -> None:
    rows = ts.diff("onnx.Split-11", "onnx.Split-13").rows
    assert [(row.name, row.before, row.after) for row in rows if row.aspect == "type"] == [
        ("data", None, "only here: bfloat16"),
        ("split", None, "only here: int64"),
    ]
