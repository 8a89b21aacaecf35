"""``tensorsplit check``: what it prints, and how it ends."""

from __future__ import annotations

import io
import json
import shlex
import sys
from functools import partial
from pathlib import Path

import numpy as np
import onnx
import pytest

import tensorsplit as ts
from tests.cli.conftest import Command, process
from tests.model.build import FLOAT, INT64, graph, model, node, tensor, value
from tests.model.ir_files import words


@pytest.fixture
def run(tensorsplit: Command) -> Command:
    """Runs ``tensorsplit check``."""
    return partial(tensorsplit, "check")


def save(folder: Path, split: onnx.NodeProto, *inputs: onnx.ValueInfoProto) -> Path:
    path = folder / "m.onnx"
    onnx.save(model(graph([split], inputs, map(value, split.output))), path)
    return path


X = value("x", FLOAT, [4, 6])


@pytest.fixture
def right(tmp_path: Path) -> Path:
    return save(tmp_path, node("Split", "x", "a b", name="s", num_outputs=2), X)


@pytest.fixture
def wrong(tmp_path: Path) -> Path:
    return save(tmp_path, node("Split", "x", "a b c", name="s\x1b[31m", num_outputs=2), X)


@pytest.fixture
def warned(tmp_path: Path) -> Path:
    return save(tmp_path, node("Split", "x l", "a b", name="s"), X, value("l", INT64, [2]))


def test_a_clean_model(run: Command, right: Path) -> None:
    assert run(right) == (0, "no findings in 1 split node\n", "")


def test_an_error_is_status_1_and_no_name_steers_the_terminal(run: Command, wrong: Path) -> None:
    ended = run(wrong)
    assert ended.status == 1
    assert "error [TS305] num_outputs: " in ended.out
    assert ended.out.endswith("1 error in 1 split node\n")
    assert "\x1b" not in ended.out


def test_a_terminal_gets_the_same_words(
    run: Command, wrong: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "300")
    monkeypatch.setenv("TERM", "dumb")
    ended = run(wrong)
    assert "error [TS305] num_outputs: " in ended.out
    assert ended.out.endswith("1 error in 1 split node\n")
    assert "\x1b[31m" not in ended.out


def test_codes_are_links_on_a_terminal(
    run: Command, wrong: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert "\x1b]8;" not in run(wrong).out  # nowhere to lead to
    monkeypatch.setattr("tensorsplit.core.errors.DOCUMENTATION", "https://docs.test")
    monkeypatch.setattr("tensorsplit.cli.check_command.DOCUMENTATION", "https://docs.test")
    out = run(wrong).out
    assert ";https://docs.test/errors.html#ts305\x1b\\TS305\x1b]8;;\x1b\\" in out


def test_warnings_count_if_strict(run: Command, warned: Path) -> None:
    assert run(warned).status == 0
    assert run(warned, "--strict").status == 1


def test_a_target(run: Command, tmp_path: Path) -> None:
    """What fails for every input is an error; what fails for odd lengths only is a warning."""
    uneven = node("Split", "x", "a b", name="s", axis=-1, num_outputs=2)
    path = save(tmp_path, uneven, value("x", FLOAT, ["N", 7]))
    assert run(path).status == 0
    ended = run(path, "--for", "openvino")
    assert ended.status == 1
    assert "error [TS841] openvino" in ended.out
    assert f"tensorsplit check {path} --for openvino --fix" in ended.out

    open_length = node("Split", "x", "a b", name="s", num_outputs=2)
    path = save(tmp_path, open_length, value("x", FLOAT, ["N", 6]))
    ended = run(path, "--for", "openvino")
    assert ended.status == 0
    assert "warning [TS843] openvino" in ended.out
    assert f"tensorsplit check {path} --for openvino --fix" in ended.out


def test_the_command_that_fixes_findings_is_there_once_and_can_be_copied(
    run: Command, tmp_path: Path
) -> None:
    split = [node("Split", "x", f"a{i} b{i}", axis=-1, num_outputs=2) for i in range(3)]
    folder = tmp_path / "my models"
    folder.mkdir()
    onnx.save(model(graph(split, [value("x", FLOAT, ["N", 7])], ["a0"])), folder / "m.onnx")
    document = json.loads(run(folder / "m.onnx", "--for", "openvino", "--format", "json").out)
    fixes = {found["fix"] for found in document["findings"] if found["code"] == "TS841"}
    whole = f"tensorsplit check '{folder / 'm.onnx'}' --for openvino --fix"
    assert fixes == {f"rewrite it with: {whole}"}
    ended = run(folder / "m.onnx", "--for", "openvino")
    assert ended.out.count("[TS841]") == 2  # the first node has another finding as well
    [command] = [line for line in ended.out.splitlines() if line.startswith("tensorsplit ")]
    assert command == f"{whole}    # fixes 3 findings"
    assert run(*shlex.split(command, comments=True)[2:]).status == 0
    assert run(folder / "m.onnx", "--for", "openvino").status == 0


def test_the_version_of_a_target(run: Command, tmp_path: Path) -> None:
    """D2: ONNX Runtime takes an empty last part from 1.32 on."""
    path = save(tmp_path, node("Split", "x", "a b c d", num_outputs=4), value("x", FLOAT, [3]))
    assert "onnxruntime 1.31.1: " in run(path, "--for", "onnxruntime@1.31.1").out
    assert "onnxruntime" not in run(path, "--for", "onnxruntime@1.32.0").out
    ended = run(path, "--for", "onnxruntime@newest")
    assert ended.status == 2
    assert "[TS601]" in ended.err


def test_several_targets(run: Command, tmp_path: Path) -> None:
    split = node("Split", "x", "a b c", name="s", num_outputs=3)
    path = save(tmp_path, split, value("x", FLOAT, ["N", 6]))
    alone = {name: run(path, "--for", name) for name in ("openvino", "portable", "onnxruntime")}
    assert [ended.status for ended in alone.values()] == [0, 1, 0]
    for order in (("onnxruntime", "openvino", "portable"), ("portable", "openvino", "onnxruntime")):
        ended = run(path, *(word for name in order for word in ("--target", name)))
        assert ended.status == 1
        for name in order:
            assert f"--for {name}" in ended.out or alone[name].status == 0
            *findings, _, _ = alone[name].out.splitlines()
            assert set(findings) <= set(ended.out.splitlines())
        assert ended.out.count("note [TS825]") == 1  # holds for each of them
    found = run(path, "--for", "openvino", "--for", "portable", "--format", "json").out
    assert json.loads(found)["targets"] == ["openvino", "portable"]
    assert json.loads(found)["target"] is None


def test_json_and_sarif(run: Command, wrong: Path) -> None:
    ended = run(wrong, "--format", "json")
    assert ended.status == 1
    assert json.loads(ended.out)["model"] == str(wrong)
    ended = run(wrong, "--format", "sarif")
    assert ended.status == 1
    assert json.loads(ended.out)["runs"][0]["results"][0]["ruleId"] == "TS305"


def test_a_pipe(run: Command, wrong: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stdin = io.TextIOWrapper(io.BytesIO(wrong.read_bytes()))
    monkeypatch.setattr(sys, "stdin", stdin)
    ended = run("-", "--format", "json")
    assert ended.status == 1
    assert json.loads(ended.out)["model"] == "stdin"


@pytest.mark.parametrize("data", [b"", b"no model"])
def test_a_pipe_that_holds_no_model(
    run: Command, data: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
    ended = run("-")
    assert (ended.status, ended.out) == (2, "")
    assert "[TS501]" in ended.err


def test_what_cannot_be_read_is_status_2(run: Command, right: Path, tmp_path: Path) -> None:
    for args, code in (
        ([tmp_path / "missing.onnx"], "TS501"),
        ([right, "--for", "tensorrt"], "TS601"),
        ([right, "--format", "xml"], "TS703"),
    ):
        ended = run(*args)
        assert (ended.status, ended.out) == (2, "")
        assert ended.err.startswith("tensorsplit: error: ")
        assert f"[{code}]" in ended.err
        assert ended.err.count("\n") == 1


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two models that portable does not take, one of them deeper, and what is not a model."""
    split = node("Split", "x", "a b", name="s", num_outputs=2)
    for place in (tmp_path / "models", tmp_path / "models" / "deep"):
        place.mkdir()
        save(place, split, X)
    (tmp_path / "models" / "settings.xml").write_text("<settings/>")
    return tmp_path / "models"


def test_several_models_and_folders(run: Command, folder: Path, right: Path) -> None:
    ended = run(folder, right)
    assert ended == (0, "no findings in 3 split nodes of 3 models\n", "")
    ended = run(right, right, folder, "--for", "portable")
    assert ended.status == 1
    assert f"{folder / 'deep' / 'm.onnx'}: graph/s (onnx.Split-18)\n  error [TS841]" in ended.out
    assert ended.out.endswith("3 errors in 3 split nodes of 3 models\n")


def test_a_model_of_several_that_cannot_be_read_hides_no_other(
    run: Command, wrong: Path, tmp_path: Path
) -> None:
    (tmp_path / "empty.onnx").touch()
    ended = run(tmp_path / "empty.onnx", wrong)
    assert ended.status == 2
    assert "error [TS305] num_outputs: " in ended.out
    assert ended.err.startswith("tensorsplit: error: [TS501] ")


def test_a_folder_without_models(run: Command, tmp_path: Path) -> None:
    ended = run(tmp_path)
    assert (ended.status, ended.out) == (2, "")
    assert f"{tmp_path.name}' holds no .onnx" in ended.err


def test_quiet_prints_nothing_of_a_clean_model(run: Command, right: Path) -> None:
    assert run(right, "-q") == (0, "", "")


def test_quiet_prints_findings_alone(run: Command, wrong: Path) -> None:
    assert run(wrong).out == run(wrong, "--quiet").out + "\n1 error in 1 split node\n"


def test_codes_that_are_ignored(run: Command, wrong: Path) -> None:
    ended = run(wrong, "--ignore", "ts305", "--ignore", "TS812")
    assert ended == (0, "no findings in 1 split node\n", "")
    ended = run(wrong, "--ignore", "TS999")
    assert (ended.status, ended.out) == (2, "")
    assert "'TS999' is not a code; tensorsplit rule lists them" in ended.err


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ("", "no findings"),
        ('for = "portable"', "error [TS841]"),
        ('for = "portable"\nignore = ["TS841"]', "no findings"),
        ("strict = 1", "strict"),
        ("ingore = []", "unknown field `ingore`"),
        ("strict = ", "pyproject.toml"),
    ],
)
def test_settings_of_the_project(
    run: Command,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    table: str,
    said: str,
) -> None:
    (folder.parent / "pyproject.toml").write_text(f"[tool.tensorsplit]\n{table}\n")
    (folder / "pyproject.toml").write_text("[tool.other]\n")
    monkeypatch.chdir(folder / "deep")
    ended = run("m.onnx")
    assert said in ended.out + ended.err
    assert ended.status == {"no findings": 0, "error [TS841]": 1}.get(said, 2)
    assert ("[TS703]" in ended.err) is (ended.status == 2)


def test_a_profile_beside_the_settings(
    run: Command, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder.parent / "pyproject.toml").write_text('[tool.tensorsplit]\nfor = "own.json"\n')
    entry = {"feature": "count", "verdict": "refused", "extent": "all", "note": "not counted"}
    profile = {"engine": "own", "version": "1", "measured": {}, "entries": [entry]}
    (folder.parent / "own.json").write_text(json.dumps(profile))
    monkeypatch.chdir(folder / "deep")
    assert "own: not counted" in run("m.onnx").out


def test_warnings_count_where_the_project_says_so(
    run: Command, warned: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (warned.parent / "pyproject.toml").write_text("[tool.tensorsplit]\nstrict = true\n")
    monkeypatch.chdir(warned.parent)
    assert run(warned.name).status == 1


def test_github(run: Command, wrong: Path) -> None:
    first, *_ = run(wrong, "--format", "github").out.splitlines()
    assert first.startswith(f"::error file={wrong},line=1,title=TS305 ")


class TestFix:
    def test_in_place_by_its_name(self, run: Command, folder: Path) -> None:
        """As with convert and lower, OUT may be MODEL itself, but not a link to it."""
        path, link = folder / "m.onnx", folder / "link.onnx"
        link.symlink_to(path)
        before = path.read_bytes()
        ended = run(path, "--for", "portable", "--fix", "-o", link)
        assert ended.status == 2
        assert "is a file that is read" in ended.err
        assert path.read_bytes() == before
        ended = run(path, "--for", "portable", "--fix", "-o", path)
        assert (ended.status, ended.out) == (0, "no findings in 1 split node\n")
        assert run(path, "--for", "portable").status == 0

    def test_in_place(self, run: Command, folder: Path) -> None:
        ended = run(folder, "--for", "portable", "--fix")
        assert (ended.status, ended.out) == (0, "no findings in 2 split nodes of 2 models\n")
        assert ended.err.count("1 node rewritten") == 2
        for path in folder.rglob("*.onnx"):
            (split,) = (n for n in onnx.load(path).graph.node if n.op_type == "Split")
            assert len(split.input) == 2

    def test_elsewhere(self, run: Command, folder: Path, tmp_path: Path) -> None:
        path, out = folder / "m.onnx", tmp_path / "out.onnx"
        before = path.read_bytes()
        assert run(path, "--for", "portable", "--fix", "-o", out).status == 0
        assert path.read_bytes() == before
        assert run(out, "--for", "portable").status == 0

    def test_through_pipes(self, tensorsplit: Command, folder: Path, tmp_path: Path) -> None:
        pipe = f'--for portable --fix -o - < "{folder / "m.onnx"}" > "{tmp_path / "out.onnx"}"'
        ended = process("check", "-", shell=pipe)
        assert ended.status == 0
        assert "no findings in 1 split node" in ended.err
        assert tensorsplit("check", tmp_path / "out.onnx", "--for", "portable").status == 0

    def test_an_ir_is_written_elsewhere(self, run: Command, tmp_path: Path) -> None:
        path, out = words(tmp_path), tmp_path / "out.xml"
        before = path.read_bytes()
        ended = run(path, "--for", "openvino", "--fix")
        assert ended.status == 0
        assert "give -o OUT.xml, beside which goes its .bin" in ended.err
        ended = run(path, "--for", "openvino", "--fix", "-o", out)
        assert (ended.status, "error" in ended.out) == (0, False)
        assert "1 node rewritten" in ended.err
        assert path.read_bytes() == before
        assert run(out, "--for", "openvino").status == 0
        ended = run(out, "--for", "openvino", "--fix")
        assert (ended.status, "not rewritten" in ended.err) == (0, False)
        assert run(path, "--for", "openvino", "--fix", "-o", tmp_path / "out.onnx").status == 2
        ended = run(path, "--for", "portable", "--fix", "-o", out)
        assert "is not rewritten: [TS513]" in ended.err

    def test_what_cannot_be_fixed_stays(self, run: Command, wrong: Path) -> None:
        before = wrong.read_bytes()
        ended = run(wrong, "--for", "portable", "--fix")
        assert ended.status == 1
        assert "error [TS305]" in ended.out
        assert "is not rewritten: [TS305]" in ended.err
        assert wrong.read_bytes() == before

    def test_what_does_not_go_together(self, run: Command, folder: Path) -> None:
        for arguments, said in (
            ((folder, "--fix"), "needs --for"),
            ((folder, "-o", "out"), "needs --fix or --fix-traced"),
            ((folder, "--fix", "--fix-traced"), "one after the other"),
            (("-", "--fix-traced"), "--fix-traced of standard input needs -o OUT"),
            ((folder, "--for", "portable", "--fix", "-o", "out"), "one MODEL"),
            (("-", "--for", "portable", "--fix"), "needs -o OUT"),
            ((folder, "--for", "portable", "--for", "openvino", "--fix"), "one --for ENGINE"),
        ):
            ended = run(*arguments)
            assert (ended.status, ended.out) == (2, "")
            assert said in ended.err


class TestFixTraced:
    """Constant lengths of an open dimension, as a tracer writes them down at one size."""

    @pytest.fixture
    def shaped(self, tmp_path: Path) -> Path:
        """The size is in a Reshape behind the split, too."""
        nodes = [
            node("Split", "x l", "a b", axis=1),
            node("Reshape", "a s", "c"),
        ]
        data, ends = value("x", FLOAT, [4, "N"]), [value("b"), value("c")]
        held = [tensor("l", [3, 3]), tensor("s", [4, 3])]
        onnx.save(model(graph(nodes, [data], ends, held), 13), tmp_path / "m.onnx")
        return tmp_path / "m.onnx"

    def test_in_place(self, run: Command, shaped: Path) -> None:
        made = onnx.load(shaped)
        del made.graph.node[1]
        made.graph.output[1].name = "a"
        onnx.save(made, shaped)
        assert "check with --fix-traced" in run(shaped).out
        ended = run(shaped, "--fix-traced")
        assert (ended.status, ended.out) == (0, "no findings in 1 split node\n")
        assert "1 node rewritten" in ended.err
        (split,) = (each for each in onnx.load(shaped).graph.node if each.op_type == "Split")
        assert split.input[1] != "l"

    def test_elsewhere(self, run: Command, shaped: Path, tmp_path: Path) -> None:
        made = onnx.load(shaped)
        made.graph.initializer[1].CopyFrom(tensor("s", [4, -1]))
        onnx.save(made, shaped)
        before = shaped.read_bytes()
        assert run(shaped, "--fix-traced", "-o", tmp_path / "out.onnx").status == 0
        assert shaped.read_bytes() == before
        fed = ts.run(tmp_path / "out.onnx", {"x": np.ones((4, 10), np.float32)})
        assert [part.shape for part in fed.values()] == [(4, 5), (4, 5)]

    def test_what_runs_at_one_size_only_stays(self, run: Command, shaped: Path) -> None:
        before = shaped.read_bytes()
        ended = run(shaped, "--fix-traced")
        assert ended.status == 0
        assert "is not rewritten: [TS510]" in ended.err
        assert "note [TS825]" in ended.out
        assert shaped.read_bytes() == before

    def test_what_no_tracer_wrote_stays(self, run: Command, right: Path) -> None:
        before = right.read_bytes()
        assert run(right, "--fix-traced") == (0, "no findings in 1 split node\n", "")
        assert right.read_bytes() == before
