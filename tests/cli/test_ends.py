"""How commands end: exit status, one line for a refusal, quiet when nobody reads."""

from __future__ import annotations

import errno
import io
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import click
import numpy as np
import onnx
import onnx.parser
import pytest
from google.protobuf.message import DecodeError  # type: ignore[import-untyped]  # ships no types

from tensorsplit import __version__, native
from tensorsplit.cli import app, stopping
from tensorsplit.cli.app import COMMANDS, CommandLine
from tensorsplit.cli.screen import StandardOutputError
from tensorsplit.cli.stopping import Stopped
from tests.cli.conftest import Command, process
from tests.interpreters import printed, python
from tests.model.build import graph, model, node, value

Refused = Callable[..., str]
EXAMPLE = Path(__file__).parents[2] / "examples" / "attention.onnx"
DRAW = ("explain", "onnx.Split-18", "7,4", "num_outputs=3")


def test_a_process_that_succeeds() -> None:
    ended = process(*DRAW)
    assert (ended.status, ended.err) == (0, "")
    assert "part 2  (1, 4)" in ended.out


@pytest.mark.parametrize(
    ("option", "args"),
    [
        ("--for", ["lower", str(EXAMPLE), "--for", "openvino", "--target=portable"]),
        ("--axis", ["split", "x.npy", "-o", "out", "--axis", "0", "--axis", "1"]),
        ("--num-outputs", ["explain", *DRAW[1:3], "--num-outputs", "2", "--num-outputs", "3"]),
        ("--output", ["run", str(EXAMPLE), "-o", "a", "--output", "b"]),
    ],
)
def test_an_option_that_takes_one_value_is_not_given_twice(
    refused: Refused, option: str, args: list[str]
) -> None:
    assert f"{option} is given 2 times" in refused("TS703", *args)


def test_an_option_that_takes_several_values_and_a_flag_are_given_twice(
    refused: Refused, tmp_path: Path
) -> None:
    missing = str(tmp_path / "missing.onnx")
    options = ["--ignore", "TS825", "--ignore", "TS841", "--strict", "--strict"]
    assert "missing.onnx" in refused("TS501", "check", missing, *options)


@pytest.mark.parametrize(
    ("error", "status", "said"),
    [
        (BrokenPipeError(), 141, ""),
        (click.Abort(), 130, ""),
        (OSError(28, "No space left on device"), 2, "standard output: No space left on device"),
        (StandardOutputError(13, "not allowed"), 2, "standard output: not allowed"),
        (OSError(24, "Too many open files"), 2, "the system: Too many open files"),
        (OSError(13, "Permission denied", "a/b"), 2, "a/b: Permission denied"),
        (OSError("of its own"), 2, "the system: of its own"),
        (OSError(2, "No such file or directory"), 2, "the current folder: No such file"),
        (MemoryError(), 2, "out of memory"),
        (RuntimeError("can't start new thread"), 2, "out of memory"),
        (RecursionError(), 2, "nested too deep"),
        (click.UsageError("no such thing."), 2, "[TS703] no such thing; see tensorsplit --help"),
        (ModuleNotFoundError("gone", name="rich"), 2, "[TS711]"),
    ],
)
def test_what_ends_a_command(
    capsys: pytest.CaptureFixture[str], error: Exception, status: int, said: str
) -> None:
    assert app._report(error) == status
    printed_ = capsys.readouterr().err
    assert said in printed_
    assert printed_.count("\n") == bool(said)


def test_no_memory_to_say_what_failed(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(_: Exception) -> None:
        raise MemoryError

    monkeypatch.setattr("tensorsplit.cli.bugs.library_at_fault", failing)
    assert app._report(ValueError("a library can't be loaded")) == 2
    assert capsys.readouterr().err == "tensorsplit: error: out of memory\n"


@pytest.mark.parametrize(
    ("error", "status"), [(KeyboardInterrupt(), 130), (BrokenPipeError(), 141)]
)
def test_click_does_not_end_the_process(error: BaseException, status: int) -> None:
    with pytest.raises(Stopped) as caught, app._spared_from_click():
        raise error
    assert caught.value.status == status


@pytest.mark.parametrize(
    ("number", "written"), [(signal.SIGINT, [b"tensorsplit: interrupted\n"]), (signal.SIGTERM, [])]
)
def test_a_signal_outside_of_a_command_ends_the_process(
    monkeypatch: pytest.MonkeyPatch, number: signal.Signals, written: list[bytes]
) -> None:
    said, ended = list[bytes](), list[int]()
    monkeypatch.setattr(os, "write", lambda _, text: said.append(text))
    monkeypatch.setattr(os, "_exit", ended.append)
    leave: Callable[[int, None], object] = stopping._leave
    leave(number, None)
    assert (ended, said) == ([128 + number], written)


def test_what_can_not_be_raised_while_a_command_runs_is_shown(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Failing:
        def __del__(self) -> None:
            raise ValueError

    def show(told: sys.UnraisableHookArgs) -> None:
        shown.append(told.exc_type)

    shown: list[object] = []
    monkeypatch.setattr(sys, "unraisablehook", show)
    with stopping.Stopping():
        Failing()
    assert shown == [ValueError]
    assert sys.unraisablehook is show


@pytest.mark.parametrize(
    ("code", "words", "said"),
    [
        ("TS703", ["chek"], "did you mean check?"),
        ("TS703", ["bench", "--peers", "numpy"], "did you mean --library?"),
        ("TS703", ["check", str(EXAMPLE), "--targets", "openvino"], "did you mean --for?"),
        ("TS703", ["check", str(EXAMPLE), "--json"], "did you mean --format json?"),
        ("TS703", ["check", "-for", "openvino", str(EXAMPLE)], "did you mean --for?"),
        ("TS703", ["lower", str(EXAMPLE)], "--for ENGINE is not given;"),
        ("TS703", ["split"], "SOURCE is not given;"),
        ("TS601", ["check", str(EXAMPLE), "--for", "openvino,openvno"], "did you mean openvino?"),
        ("TS601", ["lower", str(EXAMPLE), "--for", "openvino,portable", "-o", "o"], "one target"),
        ("TS101", ["ops", "Split-13"], "did you mean onnx.Split-13?"),
        ("TS101", ["ops", "onnx.Split-17"], "did you mean onnx.Split-13?"),
        ("TS101", ["ops", "onnx.SplitToSequence-9"], "did you mean onnx.SplitToSequence-11?"),
        ("TS101", ["ops", "Splitt"], "did you mean Split?"),
        ("TS101", ["diff", "torch.chnk", "Split"], "did you mean torch.chunk?\n"),
        ("TS101", ["explain", "tf.splt", "7"], "did you mean tensorflow.split?\n"),
        ("TS703", ["rule", "TS8411"], "did you mean TS841?"),
        ("TS703", ["check", str(EXAMPLE), "--ignore", "TS841,TS8255"], "did you mean TS825?"),
        ("TS601", ["check", str(EXAMPLE), "--for", "opevino"], "did you mean openvino?\n"),
        ("TS601", ["run", str(EXAMPLE), "--engine", "onxruntime"], "did you mean onnxruntime?"),
        ("TS703", ["check", str(EXAMPLE), "--ignore", "TS8"], "such as TS801 or TS843"),
        ("TS703", ["version"], "did you mean --version?"),
        ("TS703", ["verify"], "'verify'; --verify is an option of convert"),
        ("TS703", ["overwritten"], "there is no command 'overwritten'; see tensorsplit --help"),
        ("TS101", ["explain", "Split-13", "7,4"], "did you mean onnx.Split-13?"),
        ("TS101", ["explain", "split", "7,4"], "did you mean Split?"),
        ("TS601", ["check", str(EXAMPLE), "--for", "OpenVINO"], "did you mean openvino?"),
        ("TS601", ["conformance", "--engine", "onxruntime"], "did you mean onnxruntime?"),
        (
            "TS601",
            ["conformance", "--engine", "x"],
            "--list-engines lists the built-in ones; oth",
        ),
        ("TS601", ["profile", "opnvino"], "did you mean openvino? tensorsplit conformance --list"),
        ("TS703", ["check", str(EXAMPLE), "--for"], "requires an argument; see tensorsplit check"),
        ("TS703", ["split", "x.npy", "--split", "3", "4"], "4 is too much: write a list with comm"),
        ("TS703", ["split", "x.npy", "--split", "3", "4", "y"], "extra arguments (4 y)"),
        ("TS703", ["rule", "TS9"], "'TS9' is not a code; tensorsplit rule lists them"),
        ("TS703", ["rule", "304"], "did you mean TS304?"),
        ("TS703", ["bench", "rgbb"], "did you mean rgb?"),
        ("TS703", ["bench", "rgb", "--libary", "x"], "did you mean --library?"),
        ("TS703", ["run", str(EXAMPLE), "--input", "x"], "no file is given for it; write x=FILE"),
        ("TS703", ["run", str(EXAMPLE), "--input-shape", "x=1,2"], "write NAME:1,3,224 or"),
        ("TS702", ["run", str(EXAMPLE), "-o", str(EXAMPLE)], "attention.onnx is not a folder"),
        ("TS705", ["split", "sub/no.npy", "-o", "out", "--chunk", "3"], "'source': 'sub/no.npy'"),
        ("TS703", ["rules", "llama"], "rules show llama"),
        ("TS703", ["rules", "show"], "rules show NAME"),
        ("TS703", ["lower", "m", "--to", "x"], "no option '--to'; did you mean --for?; see"),
        ("TS703", ["check", "m", "--engine", "x"], "did you mean --for?"),
        ("TS703", ["run", "m", "--target", "x"], "did you mean --engine?"),
        ("TS703", ["check", "m", "--fro", "x"], "there is no option '--fro'; did you mean --for?"),
        (
            "TS703",
            ["reshard", "m", "--form", "2"],
            "did you mean --from?",
        ),
        ("TS703", ["ops", "--zzzz"], "there is no option '--zzzz'; see tensorsplit ops --help"),
        ("TS703", ["conformance", "--seed", "x"], "'x' is not a valid integer; see"),
        ("TS703", ["explain", "torch.chunk", "7", "3"], "operands are written as axis=0"),
        ("TS703", ["split", "x.npy", "-o", "out", "--rules", "lama"], "did you mean llama?"),
        (
            "TS703",
            ["split", "x.npy", "-o", "out", "--rules", "r.toml"],
            "'r.toml': there is no such",
        ),
        (
            "TS703",
            ["split", "x.npy", "-o", "out", "--split", "2,y"],
            "parameter '--split': '2,y' is",
        ),
        ("TS601", ["check", str(EXAMPLE), "--for", "opnvino"], "parameter '--for': there is no"),
        ("TS101", ["convert", str(EXAMPLE), "--opset", "0", "-o", "o.onnx"], "'--opset': there"),
        ("TS702", ["split", "x.npy", "-o", "", "--chunk", "3"], "the name is empty"),
        ("TS702", ["split", "x.npy", "-o", "-", "--chunk", "3"], "- is standard output"),
        ("TS702", ["merge", "parts", "-o", "-"], "- is standard output"),
        (
            "TS702",
            ["reshard", "x", *["-o", "-", "--rules", "llama", "--from", "2", "--to", "1"]],
            "- is standard output",
        ),
        ("TS702", ["run", str(EXAMPLE), "-o", "-"], "- is standard output"),
        ("TS702", ["bench", "--list", "-o", "-"], "- is standard output"),
        ("TS702", ["bench", "--list", "-o", "."], ". is a folder"),
        ("TS702", ["conformance", "--list", "-o", "-"], "- is standard output"),
        ("TS702", ["examples", "-"], "- is standard output"),
        ("TS705", ["split", "no.npy", "-o", "out", "--chunk", "3"], "there is no such file; give"),
        ("TS705", ["merge", "no", "-o", "out"], "there is no such file or folder; give"),
        (
            "TS705",
            ["split", "no", "-o", "out", "--rules", "llama", "--ranks", "2"],
            "'no': there is no",
        ),
        ("TS703", ["split", "x.npy", "-o", "out"], "give --split, --num-outputs or --chunk"),
        (
            "TS703",
            ["split", "x.npy", "-o", "out", "--num-outputs", "2", "--chunk", "3"],
            "--num-outputs and --chunk are given; give one of them",
        ),
    ],
)
def test_a_wrong_word_is_answered_with_the_right_one(
    refused: Refused, code: str, words: list[str], said: str
) -> None:
    assert said in refused(code, *words)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--num-outputs", "5"], ["'--num-outputs'", "such as --split 2,2,1,1,1"]),
        (["--split", "3,3"], ["'--split'"]),
        (["--chunk", "0"], ["'--chunk'"]),
        (["--axis", "2", "--chunk", "1"], ["'--axis'"]),
        (["--num-outputs", "2", "--memory", "1M"], ["needs 16 MiB", "limit is 976.5 KiB"]),
    ],
)
def test_a_refused_split_is_in_the_words_of_the_command(
    tensorsplit: Command, tmp_path: Path, options: list[str], said: list[str]
) -> None:
    np.save(tmp_path / "x.npy", np.arange(28, dtype=np.float32).reshape(7, 4))
    ended = tensorsplit("split", tmp_path / "x.npy", "-o", tmp_path / "out", *options)
    assert (ended.status, ended.out) == (2, "")
    assert all(words in ended.err for words in said), ended.err


def test_a_run_without_all_inputs_says_how_to_give_them(
    tensorsplit: Command, tmp_path: Path
) -> None:
    made = model(graph([node("Add", "x y", "z")], [value("x"), value("y")], ["z"]))
    onnx.save(made, tmp_path / "m.onnx")
    np.save(tmp_path / "x.npy", np.arange(4, dtype=np.float32))
    ended = tensorsplit("run", tmp_path / "m.onnx", "-i", f"x={tmp_path / 'x.npy'}")
    assert ended.status == 2
    assert "parameter 'y'" in ended.err
    assert "give --input NAME=FILE for each, or --seed N" in ended.err


def test_errors_are_coloured_where_it_is_asked_for(
    tensorsplit: Command, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm-256color")
    wrong = node("Split", "x", "a b c", num_outputs=2)
    onnx.save(model(graph([wrong], [value("x")], ["a"])), tmp_path / "m.onnx")
    assert "\x1b[31m\x1b[1merror:\x1b[0m [TS703]" in tensorsplit("chek").err
    assert "\x1b[1;31m  error" in tensorsplit("check", tmp_path / "m.onnx").out
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b" not in tensorsplit("chek").err + tensorsplit("check", tmp_path / "m.onnx").out


def test_help_is_a_word_too(tensorsplit: Command) -> None:
    assert tensorsplit("help") == tensorsplit("--help")
    assert tensorsplit("help", "check") == tensorsplit("check", "--help")
    assert tensorsplit("help", "check", "--nothing", "3") == tensorsplit("check", "--help")
    assert tensorsplit("-V") == tensorsplit("--version")


def test_codes_may_be_listed(tensorsplit: Command) -> None:
    said = tensorsplit("check", EXAMPLE, "--for", "portable", "--ignore", "TS841, TS825")
    assert said.status == 0


def test_a_process_that_refuses() -> None:
    ended = process("explain", "onnx.Split-18", "7,4", "split=2,6")
    assert (ended.status, ended.out) == (2, "")
    assert ended.err.startswith("tensorsplit: error: [TS302] onnx.Split-18, parameter 'split': ")
    assert ended.err.count("\n") == 1


def test_a_process_writes_its_outputs(tmp_path: Path) -> None:
    made = model(graph([node("Split", "x", "a b", num_outputs=2)], [value("x")], ["a", "b"]))
    onnx.save(made, tmp_path / "m.onnx")
    np.save(tmp_path / "x.npy", np.arange(4, dtype=np.float32))
    ended = process("run", tmp_path / "m.onnx", "-i", tmp_path / "x.npy", "-o", tmp_path / "out")
    assert (ended.status, ended.err) == (0, "")
    np.testing.assert_array_equal(np.load(tmp_path / "out" / "b.npy"), [2, 3])


def test_a_closed_pipe_is_quiet() -> None:
    ended = process("ops", "--format", "json", shell="| head -c 10")
    assert ended.err == ""
    assert ended.out == "[\n  {\n    "
    assert ended.status in (0, 141)  # as the pipe took all of it or not


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_a_full_disk_is_one_line() -> None:
    ended = process("ops", shell="> /dev/full")
    assert ended.status == 2
    assert ended.err == "tensorsplit: error: [TS702] standard output: No space left on device\n"


class _Failing(io.RawIOBase):
    """What can't be written to."""

    def writable(self) -> bool:
        return True

    def write(self, _: object) -> int:
        raise PermissionError(errno.EACCES, "not allowed")


@pytest.mark.parametrize(
    ("words", "written"),
    [
        (["split", "x.npy", "--axis", "1", "--num-outputs", "2"], "out"),
        (["lower", EXAMPLE, "--for", "openvino"], "out"),
        (["infer", EXAMPLE], "out"),
        (["run", EXAMPLE, "--seed", "1"], "out/y.npy"),
        (
            [
                "conformance",
                "--list",
                "--case",
                "onnx.Split-1/double/dynamic-axis-r1/absent/graph/edge-also-halves-o1",
                "--export",
            ],
            "out",
        ),
        (["convert", EXAMPLE, "--opset", "11"], ""),
        (["convert", EXAMPLE, "--opset", "18", "-o", "-"], ""),
    ],
    ids=lambda words: words[0] if isinstance(words, list) else None,
)
def test_standard_output_that_fails_and_what_is_whole(
    words: list[str],
    written: str,
    tensorsplit: Command,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.chdir(tmp_path)
    np.save("x.npy", np.arange(4, dtype=np.float32).reshape(1, 4))
    failing = io.BufferedWriter(_Failing())
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(failing))
    target = [] if words[-1] == "-" else ["out"] if words[-1] == "--export" else ["-o", "out"]
    ended = tensorsplit(*words, *target)
    said = "tensorsplit: error: [TS702] standard output: not allowed"
    assert ended.err == said + (f"; written before, and whole: {written}\n" if written else "\n")
    assert (ended.status, Path(written or "out").exists()) == (2, bool(written))


def test_closed_streams_are_no_error() -> None:
    assert process(*DRAW, shell=">&-").err == ""
    assert process("explain", "Split", shell="2>&-").status == 2
    assert "[TS501]" in process("check", "-", shell="<&-").err
    assert process("convert", EXAMPLE, "--opset", 18, "-o", "-", shell=">&-") == (0, "", "")


def test_an_encoding_without_line_drawing() -> None:
    ended = process(*DRAW, env={"PYTHONIOENCODING": "ascii"})
    assert (ended.status, ended.err) == (0, "")
    assert "+------------------------+ 3" in ended.out
    assert ended.out.isascii()


@pytest.mark.parametrize(
    ("env", "coloured"),
    [({"FORCE_COLOR": "1"}, True), ({"FORCE_COLOR": "1", "NO_COLOR": "1"}, False)],
)
def test_no_color_is_respected(
    tensorsplit: Command, monkeypatch: pytest.MonkeyPatch, env: dict[str, str], coloured: bool
) -> None:
    for name, setting in {"TERM": "xterm-256color", **env}.items():
        monkeypatch.setenv(name, setting)
    out = tensorsplit(*DRAW).out
    # rich keeps how it first wrote a style, perhaps for a terminal of more colours
    assert ("\x1b[38;" in out or "\x1b[30" in out) is coloured


def test_help_imports_nothing_heavy() -> None:
    code = (
        "import sys, tensorsplit.cli\n"
        "try: tensorsplit.cli.main.main(['--help'])\n"
        "except SystemExit: print(*sys.modules)"
    )
    loaded = set(printed(code).splitlines()[-1].split())  # the line after the help
    assert "click" in loaded
    assert not loaded & {
        "numpy",
        "rich",
        "onnx",
        "onnx_ir",
        "onnxruntime",
        "openvino",
        "sympy",
        "google.protobuf",
    }


@pytest.mark.parametrize("command", [[], *([name] for name in sorted(COMMANDS))])
def test_help_has_examples(tensorsplit: Command, command: list[str]) -> None:
    ended = tensorsplit(*command, "--help")
    assert (ended.status, ended.err) == (0, "")
    assert f"  tensorsplit {' '.join(command)}" in ended.out.partition("Examples:")[2]


@pytest.mark.parametrize(
    ("command", "default"),
    [
        *((name, "256MiB") for name in ("merge", "reshard", "split")),
        *((name, "10.0") for name in ("conformance", "profile", "reduce")),
        *((name, "text") for name in ("bench", "check", "diff", "doctor", "ops", "rule")),
        ("run", "auto"),
    ],
)
def test_help_says_what_is_taken_if_nothing_is_given(
    tensorsplit: Command, command: str, default: str
) -> None:
    said = " ".join(tensorsplit(command, "--help").out.split())
    assert f"[default: {default}" in said


@pytest.mark.parametrize("command", [[], ["explain"]])
def test_the_short_option_for_help(tensorsplit: Command, command: list[str]) -> None:
    assert tensorsplit(*command, "-h") == tensorsplit(*command, "--help")


def test_no_command_is_the_help(tensorsplit: Command) -> None:
    assert tensorsplit() == tensorsplit("--help")


@pytest.mark.parametrize("copier", ["avx2", "neon", "baseline", "numpy"])
def test_the_version_and_what_copies(
    tensorsplit: Command, monkeypatch: pytest.MonkeyPatch, copier: str
) -> None:
    monkeypatch.setattr(native, "in_use", copier)
    monkeypatch.setattr(native, "refused", None)
    assert tensorsplit("--version") == (0, f"tensorsplit {__version__} (copies: {copier})\n", "")


@pytest.mark.parametrize(
    ("variable", "value", "copies"),
    [
        ("TENSORSPLIT_NATIVE", "0", "numpy"),
        ("TENSORSPLIT_NATIVE", "sse9", "none, TENSORSPLIT_NATIVE: it is 'sse9'"),
        ("TENSORSPLIT_THREADS", "0", "none, TENSORSPLIT_THREADS: it is '0'"),
        ("TENSORSPLIT_NON_TEMPORAL", "-1", "none, TENSORSPLIT_NON_TEMPORAL: it is '-1'"),
        ("TENSORSPLIT_NON_TEMPORAL", "4M", "none, TENSORSPLIT_NON_TEMPORAL: it is '4M'"),
    ],
)
def test_the_version_says_what_the_environment_asks_for(
    variable: str, value: str, copies: str
) -> None:
    names = ("TENSORSPLIT_NATIVE", "TENSORSPLIT_THREADS", "TENSORSPLIT_NON_TEMPORAL")
    ended = process("--version", env={**dict.fromkeys(names, ""), variable: value})
    assert ended == (0, f"tensorsplit {__version__} (copies: {copies})\n", "")


@pytest.mark.skipif(native.kernel is None, reason="copies go through NumPy here")
@pytest.mark.parametrize(
    ("value", "stores"),
    [
        ("", ["measured for each kind of split", "plain"]),
        ("never", ["never, says TENSORSPLIT_NON_TEMPORAL", "plain"]),
        ("0", ["from 0 bytes on, says TENSORSPLIT_NON_TEMPORAL", "non-temporal"]),
        ("4194304", ["from 4 MiB on, says TENSORSPLIT_NON_TEMPORAL", "plain", "non-temporal"]),
    ],
)
def test_the_version_says_how_copies_are_made_and_why(value: str, stores: list[str]) -> None:
    environment = {"TENSORSPLIT_THREADS": "2", "TENSORSPLIT_NON_TEMPORAL": value}
    ended = process("--version", "--verbose", env=environment)
    assert (ended.status, ended.err) == (0, "")
    assert all(word in ended.out for word in stores)
    if value in ("never", "0"):
        assert ("non-temporal" in ended.out.partition("measured now")[2]) is (value == "0")
    assert (
        len(
            re.findall(
                r"(?m)^  4 or more columns of about \d+ bytes.* [KM]iB: .* thread", ended.out
            )
        )
        == 12
    )


def test_verbose_alone_is_refused(refused: Refused) -> None:
    refused("TS703", "--verbose")


@pytest.mark.parametrize(
    "words",
    [
        ["--nothing"],
        ["nothing"],
        ["run"],
        ["run", "--nothing"],
        ["explain"],
        ["ops", "--opset", "x"],
    ],
)
def test_wrong_usage_points_to_the_help(refused: Refused, words: list[str]) -> None:
    assert "--help" in refused("TS703", *words)


def group_of(callback: Callable[[], object]) -> CommandLine:
    group = CommandLine("tensorsplit")
    group.add_command(click.Command("go", callback=callback))
    return group


def test_ctrl_c_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    def interrupted() -> None:
        raise KeyboardInterrupt

    with pytest.raises(SystemExit) as ended:
        group_of(interrupted).main(["go"])
    assert ended.value.code == 130
    assert capsys.readouterr() == ("", "tensorsplit: interrupted\n")


needs_signals = pytest.mark.skipif(os.name == "nt", reason="there are no such signals here")


def ended_by(callback: Callable[[], object]) -> int:
    with pytest.raises(SystemExit) as ended:
        group_of(callback).main(["go"])
    assert isinstance(ended.value.code, int)
    return ended.value.code


@needs_signals
@pytest.mark.parametrize(("name", "status"), [("SIGINT", 130), ("SIGTERM", 143), ("SIGHUP", 129)])
def test_signals_end_a_command_that_cleans_up(name: str, status: int) -> None:
    number = signal.Signals[name]
    cleaned: list[str] = []

    def go() -> None:
        try:
            signal.raise_signal(number)
        finally:
            signal.raise_signal(number)  # it waits until all is clean
            cleaned.append(name)

    before = signal.getsignal(number)
    assert ended_by(go) == status
    assert cleaned == [name]
    assert signal.getsignal(number) is before


@needs_signals
def test_a_signal_that_is_ignored_stays_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        assert ended_by(lambda: signal.raise_signal(signal.SIGINT)) == 0
    finally:
        signal.signal(signal.SIGINT, before)


class _Odd:
    def __del__(self) -> None:
        signal.raise_signal(signal.SIGINT)


@needs_signals
def test_ctrl_c_where_python_passes_no_exception_on(capsys: pytest.CaptureFixture[str]) -> None:
    def go() -> None:
        _Odd()
        while True:
            pass

    assert ended_by(go) == 130
    assert capsys.readouterr() == ("", "tensorsplit: interrupted\n")


@needs_signals
def test_ctrl_c_that_becomes_another_error(capsys: pytest.CaptureFixture[str]) -> None:
    def go() -> None:
        try:
            signal.raise_signal(signal.SIGINT)
        except BaseException:  # noqa: BLE001 - as modules in C do
            raise ImportError("a module in C was interrupted") from None

    assert ended_by(go) == 130
    assert capsys.readouterr() == ("", "tensorsplit: interrupted\n")


WHILE_LOADING = """
import atexit, os, signal, sys
class Finder:
    def find_spec(self, name, *_):
        if name == module:
            os.kill(os.getpid(), signal.SIGINT)
atexit.register(lambda: print("numpy._core._multiarray_umath" in sys.modules))
signal.signal(signal.SIGINT, signal.default_int_handler)
sys.meta_path.insert(0, Finder())
module = sys.argv.pop()
from tensorsplit.cli import main
main()
"""


@needs_signals
@pytest.mark.parametrize("module", ["numpy", "click", "tensorsplit.cli.check_command", "onnx"])
def test_ctrl_c_while_modules_are_loaded(module: str) -> None:
    done = python(WHILE_LOADING, "check", EXAMPLE, module)
    assert (done.returncode, done.stderr) == (130, "tensorsplit: interrupted\n")


@needs_signals
@pytest.mark.skipif(
    find_spec("numpy._core.printoptions") is None, reason="NumPy's module in C loads no other here"
)
def test_a_module_in_c_is_loaded_before_ctrl_c_ends_the_command() -> None:
    """That of NumPy prints what is raised meanwhile."""
    done = python(WHILE_LOADING, "check", EXAMPLE, "numpy._core.printoptions")
    wanted = (130, "True\n", "tensorsplit: interrupted\n")
    assert (done.returncode, done.stdout, done.stderr) == wanted


def test_a_closed_pipe_in_the_middle() -> None:
    for words in (["conformance", "--list"], ["--help"]):
        ended = process(*words, shell="| (exec <&-; sleep 2)")
        assert (ended.status, ended.err) == (141, "")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_errors_that_nobody_can_be_told() -> None:
    assert process("explain", "Split", shell="2> /dev/full").status == 2
    assert process("ops", shell="> /dev/full 2>&1").status == 2
    assert process("--help", shell="> /dev/full").status == 2


WARNS = """
import sys, warnings
from tensorsplit import SplitWarning
from tensorsplit.cli import main, operator_commands

def warn(style):
    warnings.warn("of ours", SplitWarning)
    warnings.warn("of others")

operator_commands._list = warn
sys.argv = ["tensorsplit", "ops"]
main()
"""


def test_our_warnings_are_one_line_and_those_of_others_are_for_developers() -> None:
    assert python(WARNS, PYTHONWARNINGS="").stderr == "tensorsplit: of ours\n"
    asked = python(WARNS, PYTHONWARNINGS="always").stderr
    assert "SplitWarning: of ours" in asked
    assert "UserWarning: of others" in asked


def _broken() -> None:
    raise ZeroDivisionError("one\ntwo\x1b[31m")


def test_a_bug_is_one_line_and_a_report(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr("sys.argv", ["tensorsplit", "check", "my model.onnx"])
    monkeypatch.setenv("SECRET", "a secret")
    assert [ended_by(_broken), ended_by(_broken)] == [2, 2]
    message = capsys.readouterr().err.splitlines()[0]
    start = "tensorsplit: error: a bug in tensorsplit: ZeroDivisionError: one two"
    assert message.startswith(start)
    assert "\x1b" not in message
    files = list(tmp_path.iterdir())
    assert len(files) == 2
    assert any(f"a report of it is in {file}; look at it" in message for file in files)
    text = files[0].read_text("utf-8")
    assert "\ncommand: tensorsplit check 'my model.onnx'\n" in text
    assert f"tensorsplit {__version__}" in text
    assert f"\nnumpy: {np.__version__}\n" in text
    assert "in _broken" in text
    assert "secret" not in text
    assert "\x1b" not in text
    monkeypatch.setenv("TENSORSPLIT_TRACEBACK", "1")
    with pytest.raises(ZeroDivisionError):
        group_of(_broken).main(["go"])


def test_a_report_that_can_not_be_written(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "missing"))
    assert ended_by(_broken) == 2
    err = capsys.readouterr().err
    assert "in _broken" in err
    assert all(line.startswith("tensorsplit: ") for line in err.splitlines())


def _raises(error: Exception) -> Callable[[], None]:
    def go() -> None:
        raise error

    return go


def _deep() -> None:
    _deep()


@pytest.mark.parametrize(
    ("callback", "words"),
    [
        (_deep, "[TS502] what was read is nested too deep"),
        (_raises(MemoryError()), "out of memory"),
        (_raises(ImportError("no", name="onnx.x")), "[TS704] onnx can't be imported: no"),
        (lambda: onnx.parser.parse_model("<"), "[TS704] onnx failed on this input: ParseError"),
        (_raises(DecodeError("cut")), "[TS704] google failed on this input: DecodeError: cut"),
        (_raises(OSError(28, "no space", "a/b")), "[TS702] a/b: no space"),
    ],
)
def test_what_is_no_bug(
    capsys: pytest.CaptureFixture[str], callback: Callable[[], None], words: str
) -> None:
    assert ended_by(callback) == 2
    err = capsys.readouterr().err
    assert err.startswith(f"tensorsplit: error: {words}")
    assert err.count("\n") == 1


def test_the_script_is_installed() -> None:
    script = Path(sys.executable).with_name("tensorsplit" + (".exe" if os.name == "nt" else ""))
    if not script.exists():
        pytest.skip("not installed with its scripts")
    done = subprocess.run([script, "--version"], capture_output=True, text=True, check=True)
    assert done.stdout == f"tensorsplit {__version__} (copies: {native.in_use})\n"
