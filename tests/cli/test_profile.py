"""``tensorsplit profile``: what is measured is kept, and used from then on."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tensorsplit.conformance import cases, profile
from tensorsplit.model import profiles
from tests.cli.build import SPLIT, save
from tests.cli.conftest import Command
from tests.conformance.fakes import planted


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache, and few cases."""
    every = cases.all_cases()
    chosen = [case for case in every if case.id.startswith("onnx.Split-13/float/static-r1/")]
    for module in (cases, profile):
        monkeypatch.setattr(module, "all_cases", lambda: chosen)
    folder = tmp_path / "not" / "there"
    monkeypatch.setattr(profiles, "cache_folder", lambda: folder)
    return folder


def test_a_measured_profile_is_used_from_then_on(
    tensorsplit: Command, cache: Path, tmp_path: Path
) -> None:
    model = save(tmp_path, SPLIT)
    assert tensorsplit("check", model, "--for", "refuses").status == 2
    ended = tensorsplit("profile", planted("refuses"))
    assert ended.status == 0, ended
    (made,) = cache.iterdir()
    assert made.name.startswith("refuses-")
    assert ended.out.startswith(f"{made}: ")
    assert json.loads(made.read_text())["entries"]
    checked = tensorsplit("check", model, "--for", "refuses")
    assert checked.status == 1
    assert "TS841" in checked.out


def test_measuring_again_replaces_the_profile(tensorsplit: Command, cache: Path) -> None:
    for _ in range(2):
        assert tensorsplit("profile", planted("refuses")).status == 0
        (made,) = cache.iterdir()
        made.write_text("broken")
    assert tensorsplit("profile", planted("refuses")).status == 0
    assert json.loads(made.read_text())["entries"]


def test_nothing_is_measured_that_cannot_be_kept(
    tensorsplit: Command, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache.parent.write_bytes(b"not a folder")
    monkeypatch.setattr("tensorsplit.conformance.runner.run", pytest.fail)
    ended = tensorsplit("profile", planted("refuses"))
    assert (ended.status, ended.out) == (2, "")
    assert "[TS702]" in ended.err


@pytest.mark.parametrize(
    ("engine", "code"), [("onnxsim", "TS703"), ("no_such_engine", "TS601"), ("tvm", "TS602")]
)
def test_what_is_no_installed_engine_is_refused(
    tensorsplit: Command, cache: Path, engine: str, code: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tensorsplit.conformance.subjects.Traits.is_installed", engine != "tvm")
    ended = tensorsplit("profile", engine)
    assert (ended.status, ended.out) == (2, "")
    assert f"[{code}]" in ended.err
    assert not cache.exists()


def test_the_version_that_was_measured_is_noted_once(
    tensorsplit: Command, cache: Path, tmp_path: Path
) -> None:
    models = []
    for name in "ab":
        (tmp_path / name).mkdir()
        models.append(save(tmp_path / name, SPLIT))
    ended = tensorsplit("check", *models, "--for", "onnxruntime@1.31.7")
    assert ended.err.count("was measured on 1.31.1, and not on 1.31.7;") == 1
    lowered = tensorsplit("lower", models[0], "--for", "onnxruntime@1.31.7", "--dry-run")
    assert lowered.err.count("was measured on 1.31.1") == 1
