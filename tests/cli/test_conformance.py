"""``tensorsplit conformance``: what it runs, writes and says, and how it ends."""

from __future__ import annotations

import gzip
import json
import os
import signal
import subprocess
import sys
import time
from functools import partial
from importlib import metadata
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tensorsplit.cli import conformance_command
from tensorsplit.conformance.cases import all_cases
from tensorsplit.conformance.known import Deviation, dumps
from tensorsplit.conformance.subjects import SUBJECTS
from tests.cli.conftest import Command
from tests.conformance.fakes import planted
from tests.conformance.test_report import data_of

CASE = next(
    case.id
    for case in all_cases()
    if case.operator == "onnx.Split-13" and case.cut is not None and len(case.cut.sizes) > 1
    if case.element_type == "float" and case.place == "graph" and case.shape_class == "static"
)


@pytest.fixture
def run(tensorsplit: Command) -> Command:
    """Runs ``tensorsplit conformance``."""
    return partial(tensorsplit, "conformance")


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of our own engine and one that loses the last part, as JSON."""
    path = tmp_path_factory.mktemp("saved") / "run.json"
    words = ("-e", "tensorsplit", "-e", planted("drops"), "--case", CASE, "--format", "json")
    done = subprocess.run(
        [sys.executable, "-m", "tensorsplit", "conformance", *words, "-o", path],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (done.returncode, done.stdout) == (1, ""), done.stderr
    assert f"new: drops: wrong: {CASE}" in done.stderr
    return path


def known(folder: Path, *cases: str, versions: str = "") -> Path:
    """A file that knows of the engine that loses the last part."""
    path = folder / "known.json"
    entry = Deviation("lost", "drops", versions, ("wrong",), cases, "a part is lost")
    path.write_text(dumps([entry]))
    return path


def test_our_own_engine_is_fine(run: Command) -> None:
    ended = run("--engine", "tensorsplit", "--case", CASE)
    assert (ended.status, ended.err) == (0, "")
    assert "tensorsplit" in ended.out


def test_a_new_deviation_ends_with_1_and_is_named(run: Command, saved: Path) -> None:
    ended = run("--from", saved)
    assert ended.status == 1
    assert f"new: drops: wrong: {CASE}" in ended.err
    assert "drops" in ended.out


def test_a_known_deviation_is_fine(run: Command, saved: Path, tmp_path: Path) -> None:
    ended = run("--from", saved, "--known", known(tmp_path, CASE))
    assert (ended.status, ended.err) == (0, "")


@pytest.fixture
def mended(saved: Path, tmp_path: Path) -> Path:
    """The same run, in which the engine loses nothing."""
    content = json.loads(saved.read_text())
    for result in content["results"]:
        result.update(verdict="pass")
    path = tmp_path / "mended.json"
    path.write_text(json.dumps(content))
    return path


@pytest.mark.parametrize("versions", ["", ">=1.9.2", "==1.9.2"])
def test_a_deviation_that_does_not_occur_in_its_version_ends_with_1(
    run: Command, mended: Path, tmp_path: Path, versions: str
) -> None:
    content = json.loads(mended.read_text())
    content["subjects"][1]["versions"] = {"drops": "1.9.2"}
    mended.write_text(json.dumps(content))
    ended = run("--from", mended, "--known", known(tmp_path, CASE, versions=versions))
    assert ended.status == 1
    assert f"error: stale: lost: no longer seen with {CASE}" in ended.err


def test_what_a_newer_version_fixed_is_reported_and_fine_unless_strict(
    run: Command, mended: Path, tmp_path: Path
) -> None:
    content = json.loads(mended.read_text())
    content["subjects"][1]["versions"] = {"drops": "1.10.0"}
    mended.write_text(json.dumps(content))
    listed = known(tmp_path, CASE, versions=">=1.9.2")
    ended = run("--from", mended, "--known", listed)
    line = f"tensorsplit: fixed since 1.9.2: lost: no longer seen with {CASE}\n"
    assert (ended.status, ended.err) == (0, line)
    strict = run("--from", mended, "--known", listed, "--strict")
    assert (strict.status, strict.err) == (1, line)


def test_what_a_newer_version_breaks_is_new_whatever_it_fixed(
    run: Command, saved: Path, tmp_path: Path
) -> None:
    content = json.loads(saved.read_text())
    content["subjects"][1]["versions"] = {"drops": "2.0"}
    for result in content["results"]:
        if result["verdict"] == "wrong":
            result.update(verdict="crash")
    path = tmp_path / "worse.json"
    path.write_text(json.dumps(content))
    ended = run("--from", path, "--known", known(tmp_path, CASE, versions=">=1.0"))
    assert ended.status == 1
    assert f"new: drops: crash: {CASE}" in ended.err


def test_an_update_makes_the_run_fine(run: Command, saved: Path, tmp_path: Path) -> None:
    path = tmp_path / "updated.json"
    assert run("--from", saved, "--update-known", path).status == 1
    assert run("--from", saved, "--known", path).status == 0


def test_json_is_the_run_again(run: Command, saved: Path) -> None:
    ended = run("--from", saved, "--format", "json")
    assert json.loads(ended.out) == json.loads(saved.read_text())


def test_a_run_can_be_kept_compressed(run: Command, saved: Path, tmp_path: Path) -> None:
    paths = [tmp_path / "a.json.gz", tmp_path / "b.json.gz"]
    for path in paths:
        assert run("--from", saved, "--format", "json", "-o", path).status == 1
    octets = paths[0].read_bytes()
    assert json.loads(gzip.decompress(octets)) == json.loads(saved.read_text())
    assert octets == paths[1].read_bytes(), "neither name nor time is in the file"
    ended = run("--from", paths[0], "--format", "json")
    assert json.loads(ended.out) == json.loads(saved.read_text())


def test_a_damaged_compressed_run_is_refused(refused: Any, tmp_path: Path) -> None:
    whole = gzip.compress(b"{}" * 1000)
    flipped = whole[:12] + bytes(octet ^ 0xFF for octet in whole[12:])
    for octets in (whole[:-9], whole[:3], flipped, gzip.compress(b"{"), gzip.compress(b"\xff")):
        path = tmp_path / "run.json.gz"
        path.write_bytes(octets)
        assert "can't be read" in refused("TS703", "conformance", "--from", path)


def test_html_is_one_page_with_the_reproduction(run: Command, saved: Path, tmp_path: Path) -> None:
    page = tmp_path / "report" / "page.html"
    ended = run("--from", saved, "--format", "html", "-o", page, "--create-dirs")
    assert (ended.status, ended.out) == (1, "")
    assert page.read_text().startswith("<!")
    assert CASE.split("/")[0] in page.read_text()


def test_html_tells_what_is_known(run: Command, saved: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    file = known(tmp_path, CASE)
    assert run("--from", saved, "--known", file, "--format", "html", "-o", page).status == 0
    assert "a part is lost" in json.dumps(data_of(page.read_text()))


def test_text_goes_to_a_file_too(run: Command, saved: Path, tmp_path: Path) -> None:
    path = tmp_path / "matrix.txt"
    assert run("--from", saved, "-o", path).out == ""
    assert "drops" in path.read_text()
    assert "\x1b" not in path.read_text()


def test_one_engine_twice_is_refused(refused: Any, saved: Path) -> None:
    assert "is in two of them" in refused("TS703", "conformance", "--from", saved, "--from", saved)


@pytest.fixture
def two_versions(saved: Path, tmp_path: Path) -> tuple[Path, Path]:
    """Runs of drops 1 in May, which loses a part, and of drops 2 in June, which passes."""
    paths = tmp_path / "old.json", tmp_path / "new.json"
    whole = json.loads(saved.read_text())
    for path, version, date in zip(paths, "12", ("2026-05-01", "2026-06-01"), strict=True):
        content = json.loads(saved.read_text())
        content["subjects"] = [
            {**entry, "versions": {"drops": version}}
            for entry in whole["subjects"]
            if entry["name"] == "drops"
        ]
        content["results"] = [entry for entry in whole["results"] if entry["subject"] == "drops"]
        content["measured"]["date"] = date
        path.write_text(json.dumps(content))
    content["results"] = [{"case": CASE, "subject": "drops", "verdict": "pass"}]
    paths[1].write_text(json.dumps(content))
    return paths


@pytest.mark.parametrize("turned", [False, True])
def test_two_versions_of_an_engine_stand_side_by_side(
    run: Command, two_versions: tuple[Path, Path], turned: bool
) -> None:
    first, second = reversed(two_versions) if turned else two_versions
    ended = run("--from", first, "--from", second)
    assert "drops 1 (2026-05-01) -> 2 (2026-06-01)  1 of 1 cases changed" in ended.out
    assert f"better: wrong -> pass  1\n    {CASE}\n" in ended.out
    content = json.loads(run("--from", first, "--from", second, "--format", "json").out)
    assert [(entry["name"], entry["date"]) for entry in content["subjects"]] == [
        ("drops 1", "2026-05-01"),
        ("drops 2", "2026-06-01"),
    ]
    changed = {"case": CASE, "before": "wrong", "after": "pass"}
    assert content["changes"] == [{"before": "drops 1", "after": "drops 2", "cases": [changed]}]


def test_the_page_says_what_changed_between_versions(
    run: Command, two_versions: tuple[Path, Path], tmp_path: Path
) -> None:
    page = tmp_path / "page.html"
    run("--from", two_versions[0], "--from", two_versions[1], "--format", "html", "-o", page)
    assert "drops: what changed from 1 to 2" in page.read_text()


def test_what_is_known_of_one_version_is_not_asked_of_the_other(
    run: Command, two_versions: tuple[Path, Path], tmp_path: Path
) -> None:
    file = known(tmp_path, CASE, versions="==1")
    sources = ("--from", two_versions[0], "--from", two_versions[1])
    assert run(*sources, "--known", file).status == 0
    assert run(*sources, "--known", known(tmp_path, CASE)).status == 1  # of both, and 2 passes


def test_known_deviations_are_updated_from_one_version(
    refused: Any, two_versions: tuple[Path, Path], tmp_path: Path
) -> None:
    sources = ("--from", two_versions[0], "--from", two_versions[1])
    words = refused("TS703", "conformance", *sources, "--update-known", tmp_path / "known.json")
    assert "of one version" in words


def test_runs_that_dont_fit_are_refused(refused: Any, saved: Path, tmp_path: Path) -> None:
    content = json.loads(saved.read_text())
    for change in (
        {"suite": {**content["suite"], "seed": 1}},
        {"cases": [{**content["cases"][0], "rank": 9}]},
    ):
        other = tmp_path / "other.json"
        other.write_text(json.dumps({**content, **change}))
        words = refused("TS703", "conformance", "--from", saved, "--from", other)
        assert "can't be put together" in words


def test_cases_are_listed(run: Command) -> None:
    ended = run("--list", "--case", "onnx.Split-13/*")
    assert ended.status == 0
    lines = ended.out.splitlines()
    assert CASE in lines
    assert all(line.startswith("onnx.Split-13/") for line in lines)


def test_cases_are_listed_with_what_they_test(run: Command) -> None:
    (entry,) = json.loads(run("--list", "--case", CASE, "--format", "json").out)
    assert entry["id"] == CASE
    assert entry["rule"]


def test_a_reproduction_is_printed(run: Command) -> None:
    ended = run("--repro", CASE, "--engine", "onnx-reference")
    assert ended.status == 0
    assert ended.out.startswith(f"# {CASE}\n")
    compile(ended.out, "repro.py", "exec")


def test_cases_are_exported(run: Command, tmp_path: Path) -> None:
    folder = tmp_path / "cases"
    assert run("--export", folder, "--case", CASE).status == 0
    assert len(list(folder.rglob("model.onnx"))) == 1


def test_profiles_are_written(run: Command, saved: Path, tmp_path: Path) -> None:
    run("--from", saved, "--profiles", tmp_path / "profiles")
    names = sorted(path.name.partition("-")[0] for path in (tmp_path / "profiles").iterdir())
    assert names == ["drops", "tensorsplit"]


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("TS601", ("--engine", "tensorrt")),
        ("TS601", ("--engine", "no/such/file.py")),
        ("TS703", ("--case", "no-such-case")),
        ("TS703", ("--list", "--case", "no-such-case")),
        ("TS703", ("--repro", CASE)),
        ("TS703", ("--repro", CASE, "-e", "tensorsplit", "-e", "onnx-reference")),
        ("TS703", ("--repro", "onnx.*", "-e", "tensorsplit")),
        ("TS703", ("--from", "no-such-file.json")),
        ("TS703", ("--from", __file__)),
        ("TS703", ("--known", "no-such-file.json", "-e", "tensorsplit", "--case", CASE)),
        ("TS703", ("--format", "pdf")),
        ("TS703", ("--seed", "-1")),
        ("TS703", ("--jobs", "0")),
        ("TS703", ("--timeout", "0")),
        ("TS703", ("--timeout", "nan")),
        ("TS703", ("--timeout", "inf")),
        ("TS703", ("extra",)),
    ],
)
def test_wrong_usage_is_refused(refused: Any, code: str, words: tuple[str, ...]) -> None:
    refused(code, "conformance", *words)


def test_a_file_that_cant_be_written_leaves_what_was_there(
    refused: Any, saved: Path, tmp_path: Path
) -> None:
    before = tmp_path / "known.json"
    before.write_text("before")
    (tmp_path / "folder").mkdir()
    words = ("--from", saved, "--update-known", before, "-o", tmp_path / "folder")
    refused("TS702", "conformance", *words)
    assert before.read_text() == "before"


@pytest.mark.skipif(sys.platform == "win32", reason="there are no such signals here")
@pytest.mark.parametrize("stop", ["SIGINT", "SIGTERM", "SIGHUP"])
def test_signals_end_it_and_nothing_is_written(tmp_path: Path, stop: str) -> None:
    words = ("-e", planted("hangs"), "--case", "onnx.Split-13/*", "-o", str(tmp_path / "out"))
    script = (
        "import signal; signal.signal(signal.SIGINT, signal.default_int_handler);"
        "from tensorsplit.cli import main; main.main()"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", script, "conformance", *words],
        env={**os.environ, "TENSORSPLIT_TEST_PID": str(tmp_path / "pid")},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    while not (tmp_path / "pid").exists():  # the engine has begun
        assert process.poll() is None
        time.sleep(0.05)
    process.send_signal(signal.Signals[stop])
    out, err = process.communicate(timeout=30)
    said = b"tensorsplit: interrupted\n" if stop == "SIGINT" else b""
    assert (process.returncode, out, err) == (128 + signal.Signals[stop], b"", said)
    assert not (tmp_path / "out").exists()
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("import os; os._exit(0)", "its process ended with exit status 0"),
        ("import time; time.sleep(600)", "its process gave no answer within 2 s"),
        ("raise SystemExit(0)", "SystemExit: 0"),
        ("1 / 0", "ZeroDivisionError: division by zero; correct its code"),
        ("a = [", "SyntaxError: '[' was never closed (harmful.py, line 10); correct its code"),
        ("import nothing_at_all", "No module named 'nothing_at_all'; install what it needs"),
    ],
)
@pytest.mark.parametrize("asks", [("--case", CASE), ("--repro", CASE)], ids=lambda asks: asks[0])
def test_an_adapter_that_does_harm_when_it_is_imported_is_refused(
    refused: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    line: str,
    words: str,
    asks: tuple[str, str],
) -> None:
    """It is imported in another process only, and no result is never a pass."""
    if "sleep" in line:
        monkeypatch.setattr("tensorsplit.conformance.runner._SECONDS_TO_IMPORT", 2.0)
    adapter = tmp_path / "harmful.py"
    adapter.write_text(Path(planted("drops")).read_text().replace("\nKIND", f"\n{line}\nKIND"))
    text = refused("TS602", "conformance", "--engine", adapter, *asks)
    assert "harmful.py' can't be imported: " in text
    assert words in text


def test_a_run_without_a_result_is_not_fine(run: Command) -> None:
    ended = run("--engine", "onnx-reference", "--case", "openvino.Split-1/float/static-r1/*")
    assert ended.status == 1
    assert "there is no result: no engine or tool reads the format of a case" in ended.err


def test_a_run_tells_that_cases_hang(run: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tensorsplit.conformance.runner._STAGES", {1: 4})
    words = ("--engine", planted("hangs"), "--case", CASE, "--timeout", "0.4", "--format", "json")
    ended = run(*words)
    assert ended.status == 1
    assert "tensorsplit: hangs: 1 cases hang; the others may take no more than 0.1 s" in ended.err
    document = json.loads(ended.out)
    assert document["suite"]["seconds"] == 0.4
    (found,) = document["results"]
    assert found["detail"] == "it gave no answer within 0.4 s and was stopped"


@pytest.mark.parametrize(("count", "more"), [(0, None), (20, None), (21, 1), (25, 5)])
@pytest.mark.parametrize("kind", ["stale", "fixed"])
def test_twenty_of_a_kind_are_listed(
    capsys: pytest.CaptureFixture[str], kind: str, count: int, more: int | None
) -> None:
    entries = [f"entry {number}" for number in range(count)]
    sides: dict[str, Any] = {"new": (), "stale": (), "fixed": (), kind: entries}
    conformance_command._list_unexpected(SimpleNamespace(**sides))  # type: ignore[arg-type]
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == min(count, 20) + (more is not None)
    assert all(entry in line for entry, line in zip(entries, lines[:20], strict=False))
    assert more is None or f"and {more} more that are {kind}" in lines[-1]


def test_an_engine_that_is_named_twice_is_measured_once() -> None:
    assert len(conformance_command._chosen(["tensorsplit", "onnx-reference", "tensorsplit"])) == 2


def test_the_built_in_engines_are_listed_with_their_versions(tensorsplit: Command) -> None:
    ended = tensorsplit("conformance", "--list-engines")
    lines = dict(line.split(maxsplit=1) for line in ended.out.splitlines() if line[0] != " ")
    assert list(lines) == list(SUBJECTS)
    assert lines["tensorsplit"] == f"tensorsplit {metadata.version('tensorsplit')}"
    assert lines["onnx-reference"] == f"onnx {metadata.version('onnx')}"
