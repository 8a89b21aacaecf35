"""The profiles of engines: readable, honest about their origin, and of one vocabulary."""

from __future__ import annotations

import pytest

from tensorsplit.model import profiles
from tensorsplit.model.features import MODEL_FEATURES, NODE_FEATURES
from tests.refusals import refused


@pytest.mark.parametrize("target", profiles.targets())
def test_every_entry_is_of_the_vocabulary(target: str) -> None:
    profile = profiles.load(target)
    assert profile.entries
    for entry in profile.entries:
        assert entry.feature in {**NODE_FEATURES, **MODEL_FEATURES}
        assert {*entry.also, *entry.unless} <= {*NODE_FEATURES}
        assert entry.verdict in profiles.VERDICTS
        assert entry.extent in profiles.EXTENTS
        assert entry.note


@pytest.mark.parametrize("target", profiles.targets())
def test_every_profile_says_who_measured_when_and_how(target: str) -> None:
    measured = profiles.load(target).measured
    assert measured["by"]
    assert measured["how"]
    assert len(measured["date"].split("-")) == 3


def test_there_is_a_profile_of_each_target() -> None:
    assert profiles.targets() == ("onnxruntime", "openvino", "portable")
    assert profiles.load("portable").name == "portable"


@pytest.mark.parametrize(
    ("asked", "taken"),
    [
        ("1.9.0", "1.31.1"),
        ("1.31.1", "1.31.1"),
        ("1.31.2", "1.31.1"),
        ("1.32.0rc1", "1.31.1"),
        ("1.32.0", "1.32.0"),
        ("2.0", "1.32.0"),
    ],
)
def test_the_newest_profile_that_is_not_newer_is_taken(asked: str, taken: str) -> None:
    assert profiles.load("onnxruntime", asked).version == taken
    assert profiles.load(f"onnxruntime@{asked}").version == taken


def test_what_a_release_fixed_is_no_limitation_of_it() -> None:
    """D2: ONNX Runtime takes an empty last part, and a dimension of 0, from 1.32 on."""
    features = {"operator": "Split", "count": True, "count_with_empty_part": True}
    assert list(profiles.load("onnxruntime", "1.31.1").about(features))
    assert not list(profiles.load("onnxruntime", "1.32.0").about(features))


def test_an_engine_that_was_not_measured_is_refused() -> None:
    with refused("TS601", "tensorrt", "onnxruntime, openvino, portable", parameter="target"):
        profiles.load("tensorrt")


@pytest.mark.parametrize("target", ["onnxruntime@", "onnxruntime@new", "portable@1", "x@1.0"])
def test_a_version_that_is_none_is_refused(target: str) -> None:
    with refused("TS601", target, "@ and a version may follow an engine", parameter="target"):
        profiles.load(target)


def test_an_entry_holds_for_its_operators_and_values_only() -> None:
    entry = profiles.Limitation("element_type", "refused", "all", "-", ("Split",), ("int8",))
    assert entry.holds({"operator": "Split", "element_type": "int8"})
    assert not entry.holds({"operator": "Split", "element_type": "int16"})
    assert not entry.holds({"operator": "SequenceAt", "element_type": "int8"})
    assert not entry.holds({"operator": "Split"})


def test_an_entry_holds_with_what_it_also_names_and_without_what_excludes_it() -> None:
    entry = profiles.Limitation(
        "chunks", "wrong", "all", "-", also=("joined", "keepdims_0"), unless=("no_parts", "count")
    )
    found = {"chunks": True, "joined": True, "keepdims_0": True}
    assert entry.holds(found)
    assert not entry.holds({"chunks": True, "joined": True})
    assert not entry.holds({**found, "count": True})


def test_what_openvino_narrows_is_said() -> None:
    """D16: int64, uint64 and double are computed in 32 bits."""
    found = profiles.load("openvino").about({"operator": "Split", "wide_values": "int64"})
    assert [(entry.verdict, entry.extent) for entry in found] == [("wrong", "values")]
