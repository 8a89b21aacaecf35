"""What may be written is decided before a command begins, and what is written is whole."""

from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click
import numpy as np
import onnx
import pytest
from onnx import TensorProto

from tensorsplit.cli import main
from tensorsplit.cli.files import NotedPath, WritingCommand
from tests.cli.build import npy
from tests.cli.conftest import Command
from tests.model.build import FLOAT, graph, model, node, value
from tests.model.ir_files import cut_file

resource: Any = pytest.importorskip("resource")  # which Windows lacks
pytestmark = pytest.mark.skipif(os.name != "posix", reason="pipes and signals are those of POSIX")

Refused = Callable[..., str]

NEEDED = {
    "run": ["missing.onnx"],
    "doctor": ["missing.onnx"],
    "reduce": ["missing.onnx", "--engine", "openvino"],
    "check": ["missing.onnx", "--for", "portable", "--fix"],
    "infer": ["missing.onnx"],
    "convert": ["missing.onnx", "--opset", "13"],
    "lower": ["missing.onnx", "--for", "openvino"],
    "explain": ["missing.onnx"],
    "bench": ["tiny"],
    "conformance": ["--from", "missing.json"],
}

INPUTS_ARE_RANDOM = ("run", "doctor", "reduce")
"""Commands that make up inputs without being asked to verify anything."""


def every_command() -> dict[str, click.Command]:
    context = click.Context(main)
    found = {name: main.get_command(context, name) for name in main.list_commands(context)}
    return {name: command for name, command in found.items() if command is not None}


def writing_options() -> Iterator[Any]:
    for name, command in every_command().items():
        for option in command.params:
            kind = option.type
            if isinstance(option, click.Argument) or not isinstance(kind, NotedPath):
                continue
            if kind.noted_in != "reads":
                words = [name, *NEEDED[name], option.opts[0]]
                yield pytest.param(words, kind, id=f"{name} {option.opts[0]}")


def test_every_option_that_names_an_output_is_checked() -> None:
    checked = {param.id for param in writing_options()}
    words = ("output", "-o", "--save", "--export", "--profiles", "--update", "--svg")
    named = {
        f"{name} {option.opts[0]}"
        for name, command in every_command().items()
        for option in command.params
        if isinstance(option, click.Option) and option.opts[0].startswith(words)
    }
    of_files = {"split -o", "merge -o", "reshard -o"}  # a file or a folder: the source says which
    assert named - checked == of_files
    assert len(checked) == 17
    assert all(
        isinstance(every_command()[name.partition(" ")[0]], WritingCommand) for name in checked
    )


@pytest.mark.parametrize(("words", "kind"), list(writing_options()))
def test_what_is_no_regular_file_is_refused_before_anything_is_read(
    refused: Refused, tmp_path: Path, words: list[str], kind: NotedPath
) -> None:
    pipe = tmp_path / "pipe.npz"
    os.mkfifo(pipe)
    (tmp_path / "link.npz").symlink_to(pipe)
    problem = "not a regular file" if kind.noted_in == "files" else "is not a folder"
    for target in (pipe, tmp_path / "link.npz"):
        if words[-1] == "--save-inputs" and words[0] not in INPUTS_ARE_RANDOM:
            words = [*words[:-1], "--verify", words[-1]]
        assert problem in refused("TS702", *words, target)
    assert pipe.is_fifo()


@pytest.mark.parametrize(("words", "kind"), list(writing_options()))
def test_missing_folders_are_refused_before_anything_is_read(
    refused: Refused, tmp_path: Path, words: list[str], kind: NotedPath
) -> None:
    if words[-1] == "--save-inputs" and words[0] not in INPUTS_ARE_RANDOM:
        words = [*words[:-1], "--verify", words[-1]]
    message = refused("TS702", *words, tmp_path / "new" / "out.npz")
    assert f"there is no folder {tmp_path / 'new'}; " in message
    assert "--create-dirs" in message
    assert not list(tmp_path.iterdir())


def test_a_file_is_not_named_like_a_folder(refused: Refused, tmp_path: Path) -> None:
    assert "names a folder" in refused("TS702", "conformance", "--list", "-o", f"{tmp_path}/new/")


def data(folder: Path, name: str) -> TensorProto:
    held = TensorProto(name=name, data_type=FLOAT, dims=[4], data_location=TensorProto.EXTERNAL)
    held.external_data.add(key="location", value=f"{name}.bin")
    (folder / f"{name}.bin").write_bytes(np.arange(4, dtype=np.float32).tobytes())
    return held


@pytest.fixture
def whole(tmp_path: Path) -> Path:
    """A model with data in its graph, in a body and in a function, and an input x."""
    (tmp_path / "in").mkdir()
    constants = {
        name: node("Constant", "", name, value=data(tmp_path / "in", name)) for name in "bf"
    }
    then = graph([constants["b"]], [], [value("b", FLOAT, [4])])
    other = graph([node("Identity", "w", "e")], [], [value("e", FLOAT, [4])])
    function = onnx.helper.make_function(
        "local", "F", [], ["f"], [constants["f"]], [onnx.helper.make_opsetid("", 18)]
    )
    called = node("F", "", "called")
    called.domain = "local"
    nodes = [
        node("If", "yes", "y", then_branch=then, else_branch=other),
        called,
        node("Sum", "x y w called", "s"),
        node("Split", "s", "p q", num_outputs=2),
    ]
    made = model(
        graph(
            nodes,
            [value("x", FLOAT, [4]), value("yes", TensorProto.BOOL, [])],
            [value("p", FLOAT, [2]), value("q", FLOAT, [2])],
            [data(tmp_path / "in", "w")],
        )
    )
    made.opset_import.add(domain="local", version=1)
    made.functions.append(function)
    made.ir_version = 10
    path = tmp_path / "in" / "m.onnx"
    onnx.save(made, path)
    npy(tmp_path / "in", np.zeros(4, np.float32))
    npy(tmp_path / "in", np.array(True), "yes.npy")
    return path


def feeds(path: Path) -> tuple[str, ...]:
    return "-i", f"x={path.parent / 'x.npy'}", "-i", f"yes={path.parent / 'yes.npy'}"


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("read", ["w.bin", "b.bin", "f.bin", "x.npy"])
@pytest.mark.parametrize("link", ["", "hard", "symbolic"])
def test_a_file_that_is_read_is_never_an_output(
    refused: Refused, whole: Path, tmp_path: Path, read: str, link: str
) -> None:
    target = source = whole.parent / read
    if link:
        target = tmp_path / "out.npz"
        target.hardlink_to(source) if link == "hard" else target.symlink_to(source)
    before = contents(tmp_path)
    given = ("--verify", *feeds(whole))
    commands: list[tuple[object, ...]] = [
        ("convert", whole, "--opset", 13, *given, "-o", target),
        ("lower", whole, "--for", "openvino", *given, "-o", target),
    ]
    if read != "x.npy":
        commands += [("infer", whole, "-o", target), ("explain", whole, "--svg", target)]
    if link:
        commands.append(("run", whole, *feeds(whole), "--save-inputs", target))
    for words in commands:
        assert "a file that is read" in refused("TS702", *words, "--overwrite")
        refused("TS702", *words)
    assert contents(tmp_path) == before


def test_an_array_in_the_folder_of_the_outputs_is_not_replaced(
    refused: Refused, whole: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (whole.parent / "x.npy").rename(out / "q.npy")
    words = ("-i", f"x={out / 'q.npy'}", "-i", f"yes={whole.parent / 'yes.npy'}")
    refused("TS702", "run", whole, *words, "-o", out)
    assert [path.name for path in out.iterdir()] == ["q.npy"]
    assert np.load(out / "q.npy").shape == (4,)


def test_weights_beside_standard_input_are_not_replaced(
    refused: Refused, whole: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(whole.parent)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(whole.read_bytes())))
    assert "a file that is read" in refused("TS702", "infer", "-", "-o", "w.bin", "--overwrite")


def test_a_profile_is_not_replaced(refused: Refused, whole: Path, tmp_path: Path) -> None:
    profile = tmp_path / "own.json"
    profile.write_text("{}")
    for words in (("lower", whole), ("check", whole, "--fix")):
        assert "a file that is read" in refused("TS702", *words, "--for", profile, "-o", profile)
    assert profile.read_text() == "{}"


def test_the_weights_of_an_openvino_ir_are_not_replaced(refused: Refused, tmp_path: Path) -> None:
    path = cut_file().save(tmp_path)
    before = contents(tmp_path)
    for target in (path, path.with_suffix(".bin")):
        for words in (("infer", path, "-o", target), ("explain", path, "--svg", target)):
            refused("TS702", *words)
            assert "a file that is read" in refused("TS702", *words, "--overwrite")
    assert contents(tmp_path) == before


def test_what_a_conformance_run_reads_is_not_replaced(refused: Refused, tmp_path: Path) -> None:
    for name in ("run.json", "known.json", "engine.py"):
        (tmp_path / name).write_text("[]")
    run, known, engine = (tmp_path / name for name in ("run.json", "known.json", "engine.py"))
    refused("TS702", "conformance", "--from", run, "-o", run)
    refused("TS702", "conformance", "--from", run, "--known", known, "--update-known", known)
    refused("TS702", "conformance", "--engine", engine, "-o", engine)


def test_a_model_is_replaced_where_it_is_named(
    tensorsplit: Command, refused: Refused, whole: Path, tmp_path: Path
) -> None:
    (whole.parent / "link.onnx").symlink_to("m.onnx")
    (whole.parent / "hard.onnx").hardlink_to(whole)
    words = ("convert", whole, "--opset", 13, "-o")
    refused("TS702", *words, whole.parent / "link.onnx")
    refused("TS702", *words, whole.parent / "hard.onnx")
    refused("TS702", "explain", whole, "--svg", whole)
    before = contents(tmp_path)
    assert tensorsplit(*words, whole.parent / ".." / "in" / "m.onnx").status == 0
    after = contents(tmp_path)
    link = str(whole.parent / "link.onnx")
    assert {name for name in before if before[name] != after[name]} == {str(whole), link}
    assert (whole.parent / "link.onnx").is_symlink()


def test_a_link_to_another_folder_is_written_through(
    tensorsplit: Command, whole: Path, tmp_path: Path
) -> None:
    (tmp_path / "links").mkdir()
    (tmp_path / "models").mkdir()
    link, real = tmp_path / "links" / "m.onnx", tmp_path / "models" / "v2.onnx"
    link.symlink_to("../models/v2.onnx")
    words = ("convert", whole, "--opset", 13, "-o", link)
    assert tensorsplit(*words).status == 0
    assert link.is_symlink()
    results = [tensorsplit("run", path, *feeds(whole)) for path in (whole, link, real)]
    assert results[0] == results[1] == results[2]


@pytest.mark.parametrize("option", [(), ("--link-external-data",)])
def test_weights_go_where_nothing_else_is(
    tensorsplit: Command, refused: Refused, whole: Path, tmp_path: Path, option: tuple[str, ...]
) -> None:
    (tmp_path / "out").mkdir()
    words = ("infer", whole, *option, "-o")
    refused("TS702", *words, tmp_path / "out" / "w.bin")
    (tmp_path / "elsewhere").write_bytes((whole.parent / "w.bin").read_bytes())
    (tmp_path / "out" / "w.bin").symlink_to("../elsewhere")
    assert "leads out" in refused("TS702", *words, tmp_path / "out" / "m.onnx")
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["w.bin"]
    (tmp_path / "out" / "w.bin").unlink()
    (tmp_path / "out" / "w.bin").write_bytes(b"other")
    assert "other data" in refused("TS702", *words, tmp_path / "out" / "m.onnx")
    (tmp_path / "out" / "w.bin").unlink()
    assert [tensorsplit(*words, tmp_path / "out" / "m.onnx").status for _ in "12"] == [0, 0]


def test_folders_are_made_for_what_is_a_folder(tensorsplit: Command, tmp_path: Path) -> None:
    words = ("conformance", "--case", "onnx.Split-13/float/static-r1/*", "--export")
    assert tensorsplit(*words, tmp_path / "new" / "cases", "--create-dirs").status == 0
    assert (tmp_path / "new" / "cases" / "manifest.json").exists()
    assert tensorsplit(*words, tmp_path / "new" / "others").status == 0


def run_slowly(words: tuple[object, ...], stop: signal.Signals) -> int:
    """Stop a command with a signal while what it writes is half there; how it ended."""
    script = (
        "import sys, time\n"
        "from tensorsplit.storage import outputs\n"
        "def half(file, *_):\n"
        "    file.write(b'half')\n"
        "    print('half', flush=True)\n"
        "    time.sleep(60)\n"
        "outputs._fill = half\n"
        "from tensorsplit.cli import main\n"
        "main.main(sys.argv[1:])\n"
    )
    command = [sys.executable, "-c", script, *map(str, words)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"half\n"
        process.send_signal(stop)
        said = b"tensorsplit: interrupted\n" if stop == signal.SIGINT else b""
        assert process.communicate() == (b"", said)
    return process.returncode


@pytest.mark.parametrize("stop", ["SIGINT", "SIGTERM", "SIGHUP"])
def test_a_signal_leaves_nothing(whole: Path, tmp_path: Path, stop: str) -> None:
    before = sorted(tmp_path.rglob("*"))
    words = ("infer", whole, "-o", tmp_path / "new" / "m.onnx", "--create-dirs")
    number = signal.Signals[stop]
    assert run_slowly(words, number) == 128 + number
    assert sorted(tmp_path.rglob("*")) == before


def test_what_a_kill_leaves_is_swept_by_the_next_run(
    tensorsplit: Command, whole: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    out.mkdir()
    assert run_slowly(("infer", whole, "-o", out / "m.onnx"), signal.SIGKILL) == -signal.SIGKILL
    assert [path for path in out.iterdir() if path.match(".tensorsplit-*.part")]
    assert tensorsplit("infer", whole, "-o", out / "m.onnx").status == 0
    assert {path.name for path in out.iterdir()} == {"m.onnx", "w.bin", "b.bin", "f.bin"}


def test_hang_ups_are_ignored_where_nohup_says_so(whole: Path, tmp_path: Path) -> None:
    script = (
        "import os, signal, sys\n"
        "signal.signal(signal.SIGHUP, signal.SIG_IGN)\n"
        "from tensorsplit.storage import outputs\n"
        "fill = outputs._fill\n"
        "def hung_up(*given):\n"
        "    os.kill(os.getpid(), signal.SIGHUP)\n"
        "    fill(*given)\n"
        "outputs._fill = hung_up\n"
        "from tensorsplit.cli import main\n"
        "main.main(sys.argv[1:])\n"
    )
    command = [sys.executable, "-c", script, "infer", str(whole), "-o", str(whole)]
    assert subprocess.run(command, check=False, capture_output=True).returncode == 0


@pytest.mark.parametrize(
    "words",
    [
        ("infer", "{model}", "-o", "{out}/m.onnx"),
        ("infer", "{model}", "-o", "{out}/m.onnx", "--link-external-data"),
        ("run", "{model}", "{feeds}", "-o", "{out}"),
        ("run", "{model}", "{feeds}", "-o", "{out}", "--format", "npz"),
        ("run", "{model}", "{feeds}", "-o", "{out}", "--format", "pb"),
        ("explain", "onnx.Split-18", "7", "num_outputs=2", "--svg", "{out}/a.svg"),
        ("conformance", "--list", "-o", "{out}/list"),
        ("conformance", "-c", "onnx.Split-18/float/*", "--export", "{out}/cases"),
    ],
)
def test_a_full_disk_leaves_what_was_there(
    tensorsplit: Command, whole: Path, tmp_path: Path, words: tuple[str, ...]
) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (out / "m.onnx").write_text("before")
    filled = [word.format(model=whole, out=out) for word in words if word != "{feeds}"]
    filled += feeds(whole) if "{feeds}" in words else ()
    filled += ["--overwrite"]
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4, before[1]))
    try:
        ended = tensorsplit(*filled)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert (ended.status, ended.out) == (2, "")
    assert ended.err.startswith("tensorsplit: error: [TS702] ")
    assert ": File too large; nothing was written" in ended.err
    assert contents(out) == {str(out / "m.onnx"): b"before"}
    assert list(out.iterdir()) == [out / "m.onnx"]


def test_two_runs_at_once_write_one_whole_result(whole: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    base = [sys.executable, "-m", "tensorsplit", "convert", str(whole), "--opset"]
    running = [
        subprocess.Popen([*base, opset, "-o", out / "m.onnx"], stdout=subprocess.PIPE)
        for opset in ("11", "13")
    ]
    for process in running:
        process.communicate()
        assert process.returncode == 0
    assert {path.name for path in out.iterdir()} == {"m.onnx", "w.bin", "b.bin", "f.bin"}
    made = onnx.load(out / "m.onnx", load_external_data=False)
    assert made.opset_import[0].version in (11, 13)


def split_of(folder: Path, *names: str) -> list[Path]:
    """Save models that split x, and return their paths."""
    paths = [folder / name for name in names]
    for path in paths:
        made = graph([node("Split", "x", "a b", num_outputs=2)], [value("x", FLOAT, [4])], "ab")
        onnx.save(model(made), path)
    return paths


OVER = [
    ("infer", "{model}", "-o", "{out}"),
    ("convert", "{model}", "--opset", "13", "-o", "{out}"),
    ("lower", "{model}", "--for", "portable", "-o", "{out}"),
    ("check", "{model}", "--for", "portable", "--fix", "-o", "{out}"),
    ("explain", "{model}", "--svg", "{out}"),
    ("conformance", "--list", "--case", "onnx.Split-18/float/*", "-o", "{out}"),
    ("bench", "tiny", "--quick", "--peer", "numpy", "-o", "{out}"),
    ("merge", "{x}", "-o", "{out}.npy"),
    ("run", "{model}", "-i", "x={x}", "-o", "{folder}"),
    ("examples", "{folder}"),
]


@pytest.mark.parametrize("words", OVER, ids=lambda words: words[0])
def test_a_file_is_only_replaced_where_that_is_said(
    tensorsplit: Command, refused: Refused, tmp_path: Path, words: tuple[str, ...]
) -> None:
    (path,) = split_of(tmp_path, "m.onnx")
    out = {"run": "a.npy", "examples": "append.onnx", "merge": "out.npy"}.get(words[0], "out")
    (tmp_path / "folder").mkdir()
    target = tmp_path / "folder" / out
    x = npy(tmp_path, np.arange(4, dtype=np.float32))
    if words[0] == "merge":
        tensorsplit("split", x, "-o", x := tmp_path / "parts", "--num-outputs", 2)
    out = str(target).removesuffix(".npy") if words[0] == "merge" else str(target)
    filled = [word.format(model=path, out=out, folder=target.parent, x=x) for word in words]
    target.write_bytes(b"precious")
    assert f"{target} exists; give --overwrite" in refused("TS702", *filled)
    assert contents(target.parent) == {str(target): b"precious"}
    ended = tensorsplit(*filled, "--overwrite")
    assert ended.status == 0, ended
    assert target.read_bytes() != b"precious"


@pytest.mark.skipif(sys.platform != "linux", reason="needs attributes of files")
def test_what_the_command_itself_wrote_is_replaced_until_it_is_changed(
    tensorsplit: Command, refused: Refused, tmp_path: Path
) -> None:
    first, second = split_of(tmp_path, "first.onnx", "second.onnx")
    try:
        os.setxattr(first, "user.note", b"")
    except OSError:
        pytest.skip("this file system has no attributes")
    out, wrote = tmp_path / "out.onnx", ("convert", first, "--opset", 13, "-o")
    assert tensorsplit(*wrote, out).status == 0
    before = out.read_bytes()
    assert tensorsplit("convert", second, "--opset", 11, "-o", out).status == 0
    assert out.read_bytes() != before
    refused("TS702", "lower", first, "--for", "portable", "-o", out)
    refused("TS702", "infer", first, "-o", out)
    refused("TS702", *wrote, second)
    copy = tmp_path / "copy.onnx"
    copy.write_bytes(out.read_bytes())
    refused("TS702", *wrote, copy)
    out.write_bytes(before)
    refused("TS702", *wrote, out)
    assert out.read_bytes() == before


@pytest.mark.skipif(sys.platform != "linux", reason="needs attributes of files")
def test_parts_that_the_command_wrote_are_replaced_until_one_is_changed(
    tensorsplit: Command, refused: Refused, tmp_path: Path
) -> None:
    x = npy(tmp_path, np.arange(6, dtype=np.float32))
    try:
        os.setxattr(x, "user.note", b"")
    except OSError:
        pytest.skip("this file system has no attributes")
    parts, whole = tmp_path / "parts", tmp_path / "whole.npy"
    for lengths in ("2,2,2", "1,2,3", "0,1,5"):
        assert tensorsplit("split", x, "-o", parts, "--split", lengths).status == 0
        assert tensorsplit("merge", parts, "-o", whole).status == 0
    assert np.array_equal(np.load(whole), np.load(x))
    assert "holds" in refused("TS702", "split", x, "-o", parts, "--split", "3,3")
    before = (parts / "x.1.npy").read_bytes()
    (parts / "x.1.npy").write_bytes(before)
    assert "give --overwrite" in refused("TS702", "split", x, "-o", parts, "--split", "2,2,2")
    assert (parts / "x.1.npy").read_bytes() == before


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        (("lower", "{model}", "--for", "portable", "-o", "out.xml"), "OUT.onnx"),
        (("convert", "{model}", "--opset", "13", "-o", "out.npy"), "OUT.onnx"),
        (("explain", "{model}", "--svg", "out.png"), "FILE.svg"),
        (("run", "{model}", "--seed", "1", "-o", "a.npy"), "a folder"),
    ],
)
def test_nothing_is_written_into_a_file_with_the_name_of_another_kind(
    refused: Refused, tmp_path: Path, words: tuple[str, ...], wanted: str
) -> None:
    (path,) = split_of(tmp_path, "m.onnx")
    filled = [word.format(model=path) for word in words]
    filled[-1] = str(tmp_path / filled[-1])
    assert wanted in refused("TS703", *filled)
    assert not Path(filled[-1]).exists()


def test_the_model_itself_is_replaced_where_it_is_the_output(
    tensorsplit: Command, tmp_path: Path
) -> None:
    (path,) = split_of(tmp_path, "m.onnx")
    assert tensorsplit("check", path, "--for", "portable", "--fix").status == 0
    assert tensorsplit("convert", path, "--opset", 13, "-o", path).status == 0
    assert onnx.load(path).opset_import[0].version == 13


def test_inputs_are_not_saved_over_other_data(
    tensorsplit: Command, refused: Refused, tmp_path: Path
) -> None:
    (path,) = split_of(tmp_path, "m.onnx")
    (tmp_path / "saved.npz").write_bytes(b"precious")
    words = ("run", path, "--seed", 1, "--save-inputs", tmp_path / "saved.npz")
    refused("TS702", *words)
    assert tensorsplit(*words, "--overwrite").status == 0


def test_a_split_says_what_it_wrote(tensorsplit: Command, tmp_path: Path) -> None:
    x = npy(tmp_path, np.arange(3000, dtype=np.float32))
    words = ("--num-outputs", 3, "--names", "q,k,v")
    ended = tensorsplit("split", x, "-o", tmp_path / "out", *words)
    assert ended.out == f"{tmp_path / 'out'}: 3 tensors, 11.7 KiB: q, k, v\n"
    ended = tensorsplit("merge", tmp_path / "out", "-o", tmp_path / "y.npy", "--names", "q,k,v")
    assert ended.out.startswith(f"{tmp_path / 'y.npy'}: 1 tensor, 11.7 KiB: ")


def test_links_that_lead_in_a_circle(refused: Refused, whole: Path, tmp_path: Path) -> None:
    """Python up to 3.12 raises RuntimeError for them."""
    source, circle = whole.parent / "x.npy", tmp_path / "circle"
    circle.symlink_to(circle)
    (tmp_path / "parts").mkdir()
    npy(tmp_path / "parts", np.load(source), "x.0.npy")
    reading = ("split", source, "--chunk", 2), ("merge", tmp_path / "parts")
    before = contents(tmp_path)
    for words in (*reading, ("infer", whole), ("run", whole, *feeds(whole))):
        assert "symbolic links" in refused("TS702", *words, "-o", circle)
    refused("TS705", "split", circle, "-o", tmp_path / "out", "--chunk", 2)
    (tmp_path / "new").mkdir()
    (tmp_path / "new" / "w.bin").symlink_to("w.bin")
    assert "w.bin" in refused("TS702", "infer", whole, "-o", tmp_path / "new" / "m.onnx")
    assert contents(tmp_path) == before
