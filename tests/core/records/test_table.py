"""`ts.operators` is a mapping of identifiers to records."""

from __future__ import annotations

import copy
import pickle
from dataclasses import FrozenInstanceError
from typing import Any
from unittest.mock import Mock

import pytest

import tensorsplit as ts
from tensorsplit.core.records import UnknownOperatorError
from tests.refusals import refused

IDENTIFIERS = [
    "onnx.Split-1",
    "onnx.Split-2",
    "onnx.Split-11",
    "onnx.Split-13",
    "onnx.Split-18",
    "onnx.SplitToSequence-11",
    "onnx.SplitToSequence-24",
    "openvino.VariadicSplit-1",
    "openvino.Split-1",
]


def test_iterating_gives_the_nine_identifiers_in_order() -> None:
    assert list(ts.operators) == IDENTIFIERS
    assert len(ts.operators) == 9


@pytest.mark.parametrize("identifier", IDENTIFIERS)
def test_an_identifier_is_vendor_name_and_since_version(identifier: str) -> None:
    record = ts.operators[identifier]
    assert f"{record.vendor}.{record.name}-{record.since_version}" == identifier
    assert record.id == str(record) == identifier


@pytest.mark.parametrize("identifier", IDENTIFIERS)
def test_a_record_stands_for_itself(identifier: str) -> None:
    record = ts.operators[identifier]
    assert ts.operators[record] is record


@pytest.mark.parametrize("identifier", IDENTIFIERS)
def test_a_record_is_a_value(identifier: str) -> None:
    record = ts.operators[identifier]
    assert pickle.loads(pickle.dumps(record)) == record
    assert copy.deepcopy(record) == record
    assert {record: 1}[copy.deepcopy(record)] == 1
    with pytest.raises(FrozenInstanceError):
        record.name = "Slice"  # type: ignore[misc]


@pytest.mark.parametrize("identifier", IDENTIFIERS)
def test_a_record_says_what_tells_it_from_other_versions(identifier: str) -> None:
    record = ts.operators[identifier]
    assert record.summary
    assert set(record.notes) == {"lengths", "no lengths", "negative axis"}
    parts: tuple[Any, ...] = (*record.attributes, *record.inputs, *record.outputs)
    assert all(part.description for part in parts)


@pytest.mark.parametrize(
    "identifier", ["", "reshape", 13, None, b"x", pytest.param(Mock(str), id="lie")]
)
def test_an_unknown_identifier_is_refused_with_those_there_are(identifier: Any) -> None:
    with refused("TS101", "onnx.Split-18", "openvino.Split-1", parameter="operator"):
        ts.operators[identifier]
    with refused("TS101", parameter="operator"):
        ts.plan(identifier, (4,), axis=0, num_outputs=2)


@pytest.mark.parametrize(
    ("identifier", "meant"),
    [
        ("Split-13", "onnx.Split-13"),
        ("onnx.Split-3", "onnx.Split-2"),
        ("onnx.split-13", "onnx.Split-13"),
        ("onnx.Split", "onnx.Split-18"),
        ("Split", "onnx.Split-18"),
        ("openvino.Split", "openvino.Split-1"),
        ("SplitToSequence", "onnx.SplitToSequence-24"),
    ],
)
def test_an_identifier_that_is_nearly_right_is_refused_with_the_one_that_is_meant(
    identifier: str, meant: str
) -> None:
    with pytest.raises(UnknownOperatorError) as caught:
        ts.operators[identifier]
    assert caught.value.fix == f"did you mean {meant}?"


@pytest.mark.parametrize(
    ("called", "meant"),
    [("tf.split", "tensorflow.split"), ("np.array_split", "numpy.array_split")],
)
def test_a_library_may_be_called_as_it_is_imported(called: Any, meant: str) -> None:
    with refused("TS101", f"did you mean {meant}?"):
        ts.like(called)


def test_an_unknown_identifier_is_a_key_error_as_in_any_mapping() -> None:
    assert "onnx.Split-3" not in ts.operators
    assert ts.operators.get("onnx.Split-3") is None
    with pytest.raises(KeyError):
        ts.operators["onnx.Split-3"]


def test_the_refusal_survives_pickling() -> None:
    with pytest.raises(UnknownOperatorError) as caught:
        ts.operators["onnx.Split-3"]
    again = pickle.loads(pickle.dumps(caught.value))
    assert isinstance(again, KeyError)
    assert str(again) == str(caught.value)


@pytest.mark.parametrize("name", ["Split", "SplitToSequence"])
def test_for_a_version_that_there_is_not_the_one_in_force_is_named(name: str) -> None:
    """As onnx's own schemas have them; before the first, that one."""
    defs = pytest.importorskip("onnx.defs")
    for number in (*range(40), 999, 9999):
        identifier: Any = f"onnx.{name}-{number}"
        if identifier in ts.operators:
            continue
        first = 11 if name == "SplitToSequence" else 1
        found = defs.get_schema(name, max(number, first), "").since_version
        with pytest.raises(ts.SplitError) as caught:
            ts.plan(identifier, (6,), axis=0)
        assert caught.value.code == "TS101"
        assert f"did you mean onnx.{name}-{found}? " in f"{caught.value.fix} ", identifier
