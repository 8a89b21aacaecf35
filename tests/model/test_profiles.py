"""The profiles of engines: readable, honest about their origin, and of one vocabulary."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tensorsplit.model import profiles
from tensorsplit.model.features.vocabulary import MODEL_FEATURES, NODE_FEATURES
from tests.refusals import refused


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user's cache of profiles, empty."""
    folder = tmp_path / "cache"
    folder.mkdir()
    monkeypatch.setattr(profiles, "cache_folder", lambda: folder)
    return folder


@pytest.fixture
def plant(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], None]:
    """Lets a version of a package look installed."""

    def planted(package: str, version: str) -> None:
        folder = tmp_path / "site" / f"{package.replace('-', '_')}-{version}.dist-info"
        folder.mkdir(parents=True)
        about = f"Metadata-Version: 2.1\nName: {package}\nVersion: {version}\n"
        (folder / "METADATA").write_text(about)
        monkeypatch.syspath_prepend(folder.parent)

    return planted


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


MEASURED = (
    "iree", "jaxonnxruntime", "mnn", "onnx-reference", "onnx2torch", "onnxruntime",
    "onnxruntime-web", "opencv", "openvino", "portable", "tinygrad", "tract", "tvm",
)  # fmt: skip


def test_there_is_a_profile_of_each_target(cache: Path) -> None:
    assert profiles.targets() == MEASURED
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
    advice = "portable is for engines that have no profile"
    with refused("TS601", "tensorrt", "openvino, portable, tinygrad", advice, parameter="target"):
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


@pytest.mark.parametrize(
    ("installed", "taken"), [("1.33.0", "1.32.0"), ("1.31.5", "1.31.1"), ("1.20.0", "1.31.1")]
)
def test_another_version_that_is_installed_is_named_with_the_one_that_was_measured(
    cache: Path, plant: Callable[[str, str], None], installed: str, taken: str
) -> None:
    plant("onnxruntime", installed)
    profile = profiles.load("onnxruntime")
    (remark,) = profile.remarks
    assert profile.version == taken
    assert f"was measured on {taken}, and not on {installed};" in remark
    assert "tensorsplit profile onnxruntime" in remark


@pytest.mark.parametrize("installed", ["1.31.1", "1.32.0", "1.32.0+cu13"])
def test_a_version_that_was_measured_needs_no_remark(
    cache: Path, plant: Callable[[str, str], None], installed: str
) -> None:
    plant("onnxruntime", installed)
    profile = profiles.load("onnxruntime")
    assert (profile.version, profile.remarks) == (installed.partition("+")[0], ())


def test_an_engine_is_known_by_the_package_that_holds_it(
    cache: Path, plant: Callable[[str, str], None]
) -> None:
    plant("apache-tvm", "99.1")
    assert "and not on 99.1;" in profiles.load("tvm").remarks[0]
    assert profiles.load("portable").remarks == ()


def test_a_version_that_was_asked_for_and_not_measured_is_named(cache: Path) -> None:
    assert "and not on 1.31.9;" in profiles.load("onnxruntime@1.31.9").remarks[0]
    assert profiles.load("onnxruntime@1.31.1").remarks == ()


ENTRY = {"feature": "count", "verdict": "wrong", "extent": "all", "note": "seen here"}


def content(**changes: Any) -> str:
    measured = {"by": "a test", "date": "2026-11-24", "how": "here", "system": "none"}
    return json.dumps({"measured": measured, "entries": [{**ENTRY, **changes}]})


def test_what_was_measured_here_comes_before_what_the_package_has(
    cache: Path, plant: Callable[[str, str], None]
) -> None:
    (cache / "onnxruntime-1.32.0.json").write_text(content())
    (cache / "onnxruntime-1.33.0.json").write_text(content(note="newer"))
    for installed, note in (("1.32.0", "seen here"), ("1.33.0", "newer")):
        plant("onnxruntime", installed)
        profile = profiles.load("onnxruntime")
        assert [entry.note for entry in profile.entries] == [note]
        assert (profile.version, profile.remarks) == (installed, ())
    assert profiles.load("onnxruntime@1.31.1").entries[0].note != "seen here"


def test_an_engine_that_only_this_machine_knows_is_a_target(cache: Path) -> None:
    (cache / "my_engine-2.1.json").write_text(content())
    assert "my_engine" in profiles.targets()
    assert profiles.load("my_engine").name == "my_engine 2.1"


def nested() -> str:
    return "[" * 100_000


@pytest.mark.parametrize(
    "text",
    [
        *("", "[]", "null", '{"entries": []}', '{"entries": [1], "measured": {}}', nested()),
        *(content(verdict="fine"), content(extent="most"), content(operators="Split")),
        *(content(note=1), content(feature=None), content()[:-1], content() * 2, " " * (5 << 20)),
        *(content(values=[[1]]), content(values=[{}]), content(verdict="x" * 5000)),
    ],
    ids=range(17),
)
def test_a_broken_file_of_the_cache_is_ignored_with_a_remark(cache: Path, text: str) -> None:
    path = cache / "onnxruntime-1.32.0.json"
    path.write_text(text)
    profile = profiles.load("onnxruntime", "1.32.0")
    assert len(profile.entries) > 3
    (remark,) = profile.remarks
    assert str(path) in remark
    assert "ignored" in remark
    assert len(remark) < 1000
    with refused("TS703", parameter="target"):
        profiles.load(str(path))


def test_a_file_of_the_cache_does_not_decide_what_it_is_of(cache: Path) -> None:
    lies = {**json.loads(content()), "engine": "openvino", "version": "7", "remarks": ["a lie"]}
    (cache / "onnxruntime-1.32.0.json").write_text(json.dumps(lies))
    profile = profiles.load("onnxruntime", "1.32.0")
    assert (profile.name, profile.remarks) == ("onnxruntime 1.32.0", ())


@pytest.mark.parametrize("name", ["portable.json", "openvino.json", "x-1.json.part", "-1.json"])
def test_other_files_in_the_cache_are_left_alone(cache: Path, name: str) -> None:
    (cache / name).write_text(content())
    (cache / "onnxruntime-1.32.0.json").mkdir()
    assert profiles.targets() == MEASURED
    assert profiles.load("portable").entries[0].note != "seen here"
