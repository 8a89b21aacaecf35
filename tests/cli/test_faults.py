"""Each call of the system that a command reads or writes with fails once, with each error.

After that the outputs are whole or as they were, what the command says is true, its status is 0
only if nothing was lost, and no draft stays.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto
from onnx.parser import parse_model

from tests.cli.build import npy
from tests.cli.conftest import Command
from tests.interpreters import ROOT
from tests.model.build import FLOAT, graph, model, node, value

pytestmark = pytest.mark.thorough

RANDOM = np.random.default_rng(28)
ARRAY = RANDOM.random((12, 6))

Faulty = Callable[..., set[str]]


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The library that makes calls fail."""
    compiler = shutil.which(os.environ.get("CC", "cc"))
    if compiler is None or sys.platform != "linux":
        pytest.skip("no compiler for C here, or no Linux")
    target = tmp_path_factory.mktemp("compiled") / "faults.so"
    source = Path(__file__).with_name("faults.c")
    subprocess.run([compiler, "-shared", "-fPIC", source, "-o", target, "-ldl"], check=True)
    return target


@pytest.fixture
def faulty(library: Path, tmp_path: Path) -> Faulty:
    """Run a command whose outputs are in the folder ``out``, which holds what is in ``before``.

    Calls fail there, or where it reads, too. Returns the names of those that failed.
    """

    def run(errors: str, *words: object, reading: bool = False) -> set[str]:
        folder, before = tmp_path / "out", tmp_path / "before"
        before.mkdir(exist_ok=True)
        watched = tmp_path if reading else folder
        given = map(str, (library, errors, watched, folder, before, *words))
        done = subprocess.run(
            [sys.executable, "-m", "tests.cli.faulty_runs", *given],
            cwd=ROOT,
            env={**os.environ, "LD_PRELOAD": str(library)},
            capture_output=True,
            text=True,
            timeout=280,
            check=False,
        )
        assert done.returncode == 0, done.stderr[-3000:]
        return set(json.loads(done.stdout))

    return run


WRITING = {"mkdir", "open", "write", "fsync", "close", "rename", "rmdir"}


def split(source: Path, target: Path, axis: int) -> tuple[object, ...]:
    return ("split", source, "-o", target, "--axis", axis, "--num-outputs", 2)


def test_a_new_folder_of_arrays(faulty: Faulty, tmp_path: Path) -> None:
    words = split(npy(tmp_path, ARRAY), tmp_path / "out" / "parts", 1)
    assert faulty("all", *words) >= WRITING | {"posix_fallocate"}


def test_a_file_in_place_of_another(faulty: Faulty, tensorsplit: Command, tmp_path: Path) -> None:
    source, name = tmp_path / "x.safetensors", "parts.safetensors"
    pytest.importorskip("safetensors.numpy").save_file({"x": ARRAY}, source)
    (tmp_path / "before").mkdir()
    assert tensorsplit(*split(source, tmp_path / "before" / name, 0)).status == 0
    assert faulty("all", *split(source, tmp_path / "out" / name, 1), "--overwrite") >= WRITING


def test_a_folder_in_place_of_another(faulty: Faulty, tensorsplit: Command, tmp_path: Path) -> None:
    source, name = tmp_path / "x.zarr", "parts.zarr"
    pytest.importorskip("zarr").save_array(source, ARRAY)
    (tmp_path / "before").mkdir()
    assert tensorsplit(*split(source, tmp_path / "before" / name, 0)).status == 0
    wanted = WRITING - {"rename"} | {"renameat2", "unlinkat"}  # of the draft as a whole
    failed: set[str] = set()
    for _ in range(4):  # chunks are written by threads: from run to run calls change places
        failed |= faulty("one", *split(source, tmp_path / "out" / name, 1), "--overwrite")
        if failed >= wanted:
            break
    assert failed >= wanted


@pytest.mark.parametrize("is_there", [False, True])
def test_a_group(faulty: Faulty, tensorsplit: Command, tmp_path: Path, is_there: bool) -> None:
    source, name = tmp_path / "x.zarr", "parts.zarr"
    group = pytest.importorskip("zarr").open_group(source, mode="w")
    group.create_array("a", data=ARRAY)
    group.create_group("inner").create_array("b", data=RANDOM.random((12, 4)))
    if is_there:
        (tmp_path / "before").mkdir()
        assert tensorsplit(*split(source, tmp_path / "before" / name, 0)).status == 0
    words = *split(source, tmp_path / "out" / name, 1), "--overwrite"
    assert faulty("one", *words) >= WRITING - {"rename"}


@pytest.mark.parametrize("is_there", [False, True])
def test_files_for_ranks(
    faulty: Faulty, tensorsplit: Command, tmp_path: Path, is_there: bool
) -> None:
    source = tmp_path / "x.safetensors"
    tensors = {"x": ARRAY, "whole": RANDOM.random(3)}
    pytest.importorskip("safetensors.numpy").save_file(tensors, source)

    def words(folder: str, axis: int) -> tuple[object, ...]:
        rules = tmp_path / f"{axis}.toml"
        rules.write_text(f'shard = [{{ tensors = "x", axis = {axis}, pad_to = 8 }}]')
        target = tmp_path / folder / "ranks"
        return ("split", source, "-o", target, "--rules", rules, "--ranks", 4, "--overwrite")

    if is_there:
        (tmp_path / "before").mkdir()
        assert tensorsplit(*words("before", 1)).status == 0
    assert faulty("one", *words("out", 0)) >= WRITING - {"rename"}


@pytest.mark.parametrize("command", ["merge", "reshard"])
def test_the_files_of_ranks(
    faulty: Faulty, tensorsplit: Command, tmp_path: Path, command: str
) -> None:
    source, rules = tmp_path / "x.safetensors", tmp_path / "rules.toml"
    tensors = {"x": ARRAY, "whole": RANDOM.random(3)}
    pytest.importorskip("safetensors.numpy").save_file(tensors, source)
    rules.write_text('shard = [{ tensors = "x", axis = 0, pad_to = 8 }]')
    ranks = tmp_path / "ranks"
    assert tensorsplit("split", source, "-o", ranks, "--rules", rules, "--ranks", 4).status == 0
    target = tmp_path / "out" / {"merge": "whole.safetensors", "reshard": "2"}[command]
    counts = ("--from", 4, "--to", 2) if command == "reshard" else ()
    words = (command, ranks, "--rules", rules, "-o", target, *counts)
    assert faulty("all", *words) >= WRITING | {"copy_file_range"}


@pytest.fixture
def weighty(tmp_path: Path) -> Path:
    """A model with weights in a file beside it, and an input ``x``."""
    held = TensorProto(name="w", data_type=FLOAT, dims=[4], data_location=TensorProto.EXTERNAL)
    held.external_data.add(key="location", value="w.bin")
    (tmp_path / "w.bin").write_bytes(RANDOM.random(4, np.float32).tobytes())
    nodes = [node("Sum", "x w", "s"), node("Split", "s", "p q", num_outputs=2)]
    outputs = [value("p", FLOAT, [2]), value("q", FLOAT, [2])]
    made = model(graph(nodes, [value("x", FLOAT, [4])], outputs, [held]))
    made.ir_version = 10
    onnx.save(made, tmp_path / "m.onnx")
    return tmp_path / "m.onnx"


def test_a_model_and_its_weights(faulty: Faulty, weighty: Path, tmp_path: Path) -> None:
    (tmp_path / "before").mkdir()
    (tmp_path / "before" / "m.onnx").write_bytes(b"before")
    words = ("lower", weighty, "--for", "openvino", "-o", tmp_path / "out" / "m.onnx")
    assert faulty("all", *words, "--overwrite") >= WRITING | {"sendfile64"}  # of the weights


@pytest.mark.parametrize(
    "command",
    [
        *("convert --opset 20", "convert --opset 20 --verify", "infer"),
        *("lower --for portable", "check --fix --for openvino"),
    ],
)
def test_a_model_of_another_command(
    faulty: Faulty, weighty: Path, tmp_path: Path, command: str
) -> None:
    name, *options = command.split()
    assert faulty("one", name, weighty, *options, "-o", tmp_path / "out" / "m.onnx") >= WRITING


def test_a_model_in_its_own_place(faulty: Faulty, weighty: Path, tmp_path: Path) -> None:
    shutil.copytree(weighty.parent, tmp_path / "before", ignore=shutil.ignore_patterns("before"))
    words = ("check", tmp_path / "out" / weighty.name, "--fix", "--for", "portable")
    assert faulty("one", *words) >= WRITING


@pytest.mark.engine("onnxruntime")
def test_the_smallest_model(faulty: Faulty, tmp_path: Path) -> None:
    """ONNX Runtime gives 2, and 0 is right."""
    text = "g (int32[1] x) => (int32[1] y) <int32 o = {1}> { q = Div(o, x) y = Mul(q, x) }"
    made = parse_model(f'<ir_version: 10, opset_import: ["": 18]> {text}')
    onnx.save(made, tmp_path / "m.onnx")
    np.save(tmp_path / "x.npy", np.array([2], np.int32))
    words = ("reduce", tmp_path / "m.onnx", "--engine", "onnxruntime", "-i", f"x={tmp_path}/x.npy")
    assert faulty("one", *words, "-o", tmp_path / "out" / "smallest") >= WRITING


def test_the_examples(faulty: Faulty, tmp_path: Path) -> None:
    assert faulty("one", "examples", tmp_path / "out" / "examples") >= WRITING - {"rename"}


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of the conformance suite, as JSON."""
    target = tmp_path_factory.mktemp("measured") / "run.json"
    words = (
        "conformance",
        "-e",
        "tensorsplit",
        "-c",
        "onnx.Split-18/*/static-r1/*",
        "--format",
        "json",
    )
    done = subprocess.run(
        [sys.executable, "-m", "tensorsplit", *words, "-o", target],
        capture_output=True,
        text=True,
        check=False,
    )
    assert target.exists(), done.stderr
    return target


@pytest.mark.parametrize(
    "options",
    [
        *("--format json -o {}/run.json.gz", "--format html -o {}/page.html"),
        *("--profiles {}/profiles", "--update-known {}/known.json"),
    ],
)
def test_what_was_measured(faulty: Faulty, measured: Path, tmp_path: Path, options: str) -> None:
    words = ("conformance", "--from", measured, *options.format(tmp_path / "out").split())
    assert faulty("one", *words) >= {"open", "write", "fsync", "close"}


def test_the_outputs_of_a_run(faulty: Faulty, weighty: Path, tmp_path: Path) -> None:
    (tmp_path / "before").mkdir()
    for name in ("p.npy", "q.npy"):
        (tmp_path / "before" / name).write_bytes(b"before")
    fed = npy(tmp_path, RANDOM.random(4, np.float32))
    words = ("run", weighty, "-i", f"x={fed}", "-o", tmp_path / "out")
    assert faulty("all", *words, "--overwrite") >= WRITING


def test_the_outputs_of_a_run_in_new_folders(faulty: Faulty, weighty: Path, tmp_path: Path) -> None:
    fed = npy(tmp_path, RANDOM.random(4, np.float32))
    words = ("run", weighty, "-i", f"x={fed}", "-o", tmp_path / "out" / "a" / "b")
    assert faulty("one", *words, "--create-dirs", "--format", "npz") >= WRITING


READING = {"open", "read", "close", "stat64", "fstat64", "lstat64"}


@pytest.fixture
def sources(tmp_path: Path) -> Path:
    """A folder of sources of each kind."""
    folder = tmp_path / "sources"
    (folder / "checkpoint" / "inner").mkdir(parents=True)
    (folder / "checkpoint" / "inner" / "notes.txt").write_text("carried over")
    np.save(folder / "x.npy", ARRAY)
    np.savez(folder / "x.npz", x=ARRAY)
    tensors = pytest.importorskip("safetensors.numpy")
    for rank, part in enumerate(np.split(ARRAY, 2)):
        tensors.save_file({"x": part}, folder / f"rank-{rank}-of-2.safetensors")
    tensors.save_file({"x": ARRAY}, folder / "checkpoint" / "x.safetensors")
    pytest.importorskip("zarr").save_array(folder / "x.zarr", ARRAY)
    return folder


@pytest.mark.parametrize(
    ("name", "target"),
    [
        *(("x.npy", "parts"), ("x.npz", "parts.npz"), ("checkpoint", "parts")),
        *(("checkpoint/x.safetensors", "parts.safetensors"), ("x.zarr", "parts")),
    ],
)
def test_what_a_split_reads(
    faulty: Faulty, sources: Path, tmp_path: Path, name: str, target: str
) -> None:
    """What can't be listed or read is not taken for what is not there."""
    words = split(sources / name, tmp_path / "out" / target, 1)
    assert faulty("one", *words, reading=True) >= READING


@pytest.mark.parametrize("command", ["merge", "reshard"])
def test_what_ranks_are_read_from(
    faulty: Faulty, sources: Path, tmp_path: Path, command: str
) -> None:
    rules = tmp_path / "rules.toml"
    rules.write_text('shard = [{ tensors = "x", axis = 0 }]')
    counts = ("--from", 2, "--to", 3) if command == "reshard" else ("--ranks", 2)
    words = (command, sources, "-o", tmp_path / "out" / "made", "--rules", rules, *counts)
    assert faulty("one", *words, reading=True) >= READING


@pytest.mark.parametrize("command", ["convert --opset 20", "lower --for openvino", "infer"])
def test_what_models_are_read_from(
    faulty: Faulty, weighty: Path, tmp_path: Path, command: str
) -> None:
    name, *options = command.split()
    words = (name, weighty, *options, "-o", tmp_path / "out" / "m.onnx")
    assert faulty("one", *words, reading=True) >= READING


def test_what_a_run_reads(faulty: Faulty, weighty: Path, tmp_path: Path) -> None:
    fed = npy(tmp_path, RANDOM.random(4, np.float32))
    words = ("run", weighty, "-i", f"x={fed}", "-o", tmp_path / "out")
    assert faulty("one", *words, reading=True) >= READING
