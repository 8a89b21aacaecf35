"""Splits on a Dask cluster of real processes, some of which are killed in the middle."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest

import tensorsplit as ts
from tensorsplit.files.divisions import SplitOperands
from tensorsplit.files.jobs import plan_split
from tensorsplit.files.rule_files import chosen_rules
from tensorsplit.storage.outputs import Outputs
from tests.refusals import refused

distributed = pytest.importorskip("distributed")
zarr = pytest.importorskip("zarr")
pytest.importorskip("safetensors")
cluster = pytest.importorskip("tensorsplit.files.cluster")

X = np.random.default_rng(3).random((60, 8, 16)).astype("<f4")
LENGTHS = [13, 0, 27, 20]
ENDS = np.cumsum(LENGTHS)
PARTS = [X[start:end] for start, end in zip(ENDS - LENGTHS, ENDS, strict=True)]


class Processes:
    """A scheduler, and the workers that are started."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / "scheduler.json"
        self._scheduler = self._start("scheduler", "--host", "127.0.0.1", "--port", "0")
        self._workers: list[subprocess.Popen[bytes]] = []
        wait_for(lambda: self._file.exists() and self._file.read_text().endswith("}"))
        self.address = json.loads(self._file.read_text())["address"]
        self._client = distributed.Client(self.address, set_as_default=False)

    def worker(self, nanny: str = "--no-nanny", **environment: str) -> subprocess.Popen[bytes]:
        """Start one more worker; with `--nanny`, a process that starts it, again if it dies."""
        slow = ["--preload", "tests.files.slow_tasks"]
        self._workers.append(self._start("worker", "--nthreads", "1", nanny, *slow, **environment))
        return self._workers[-1]

    def kill_worker(self) -> None:
        """Kill the process of the only worker."""
        (number,) = self._client.run(os.getpid).values()
        os.kill(number, signal.SIGKILL)

    def end_workers(self) -> None:
        """End all of them."""
        for worker in self._workers:
            worker.kill()
            worker.wait()
        wait_for(lambda: not self._client.nthreads())

    def close(self) -> None:
        """End all."""
        self._client.close()
        self._scheduler.kill()
        self._scheduler.wait()

    def _start(self, kind: str, *options: str, **environment: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "dask", kind, *options, "--no-dashboard"]
        command += ["--scheduler-file", str(self._file)]
        environment = {**os.environ, **environment}
        return subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL)


def wait_for(condition: Callable[[], bool], seconds: float = 200) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


@pytest.fixture(scope="module")
def scheduler(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Processes]:
    with contextlib.closing(Processes(tmp_path_factory.mktemp("dask"))) as made:
        yield made


@pytest.fixture
def processes(scheduler: Processes) -> Iterator[Processes]:
    yield scheduler
    scheduler.end_workers()


def store(folder: Path) -> Path:
    """An array of twelve chunks."""
    array = zarr.create_array(folder / "x.zarr", shape=X.shape, chunks=(10, 8, 8), dtype="<f4")
    array[...] = X
    return folder / "x.zarr"


def are_written(out: Path) -> None:
    """Compare every byte of the parts, of which no other files are left."""
    assert not list(out.rglob("*.partial"))
    for number, expected in enumerate(PARTS):
        part = zarr.open_array(out / f"x.{number}.zarr", mode="r")
        assert part[...].tobytes() == expected.tobytes()
    assert not list(out.parent.glob(".tensorsplit*"))


def run(source: Path, target: Path, address: str, progress: Any, timeout: float = 60) -> None:
    """A split on a cluster, of which each chunk is a task."""
    rules = chosen_rules(None, SplitOperands(0, LENGTHS), None, source)
    job = plan_split(str(source), str(target), rules)
    memory = ts.files.MEMORY
    least = job.writing.least_memory
    with cluster.DaskCluster(memory, least, address=address, timeout=timeout) as executor:
        job.run(executor, Outputs(), progress=progress, verify=True)


@pytest.fixture(autouse=True)
def _small_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tensorsplit.files.zarr_writing._TASK", 1)


def test_every_byte_of_each_format(processes: Processes, tmp_path: Path) -> None:
    processes.worker()
    processes.worker()
    ts.files.split(
        store(tmp_path), tmp_path / "out", LENGTHS, scheduler=processes.address, verify=True
    )
    are_written(tmp_path / "out")
    np.save(tmp_path / "x.npy", X)
    ts.files.split(tmp_path / "x.npy", tmp_path / "more", LENGTHS, scheduler=processes.address)
    for number, expected in enumerate(PARTS):
        assert np.load(tmp_path / "more" / f"x.{number}.npy").tobytes() == expected.tobytes()
    for parts, target in (("out", "back.zarr"), ("more", "back.npy")):
        address = processes.address
        ts.files.merge(tmp_path / parts, tmp_path / target, scheduler=address, verify=True)
    merged = zarr.open_array(tmp_path / "back.zarr", mode="r")
    assert merged[...].tobytes() == X.tobytes()
    assert np.load(tmp_path / "back.npy").tobytes() == X.tobytes()


def test_workers_that_die_in_the_middle(processes: Processes, tmp_path: Path) -> None:
    doomed = processes.worker(TEST_TASK_SECONDS="0.1")
    source = store(tmp_path)
    done: list[int] = []

    def progress(count: int) -> None:
        done.append(count)
        if len(done) == 3:  # the only one, with tasks that have begun; another one takes over
            processes.worker()
            doomed.kill()

    run(source, tmp_path / "out", processes.address, progress)
    assert sum(done) == 2 * X.nbytes
    are_written(tmp_path / "out")


def test_a_worker_that_its_nanny_starts_again(processes: Processes, tmp_path: Path) -> None:
    processes.worker("--nanny", TEST_TASK_SECONDS="0.1")
    done: list[int] = []

    def progress(count: int) -> None:
        done.append(count)
        if len(done) == 3:
            processes.kill_worker()

    run(store(tmp_path), tmp_path / "out", processes.address, progress)
    are_written(tmp_path / "out")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out", "x.zarr"]


def test_no_workers_any_more(processes: Processes, tmp_path: Path) -> None:
    doomed = processes.worker(TEST_TASK_SECONDS="0.1")
    source = store(tmp_path)
    with refused("TS710", "no worker was available for 1 seconds"):
        run(source, tmp_path / "out", processes.address, lambda _: doomed.kill(), timeout=1)
    assert [path.name for path in tmp_path.iterdir()] == ["x.zarr"]
    processes.worker()
    run(source, tmp_path / "out", processes.address, lambda _: None)
    are_written(tmp_path / "out")


def test_a_scheduler_that_does_not_answer(
    processes: Processes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    processes.worker()
    with monkeypatch.context() as patch, refused("TS710", "the scheduler does not answer", "gone"):
        patch.setattr(distributed.Client, "nthreads", Mock(side_effect=OSError("gone")))
        run(store(tmp_path), tmp_path / "out", processes.address, lambda _: None)


def test_clients_that_are_killed(processes: Processes, tmp_path: Path) -> None:
    processes.worker(TEST_TASK_SECONDS="0.1")
    source, out = store(tmp_path), tmp_path / "out"
    code = "from tensorsplit.files import zarr_writing; zarr_writing._TASK = 1; "
    code += "from tensorsplit.cli import main; main()"
    options = ["--split", "13,0,27,20", "--scheduler", processes.address]
    command = [sys.executable, "-c", code, "split", str(source), "-o", str(out), *options]
    for number, status in ((signal.SIGINT, 130), (signal.SIGKILL, -9)):
        client = subprocess.Popen(command, stderr=subprocess.PIPE)
        wait_for(lambda: len(list(tmp_path.glob(".tensorsplit*/out/x.0.zarr/c/*"))) > 0)
        client.send_signal(number)
        _, said = client.communicate(timeout=200)
        assert client.returncode == status, said
        assert not out.exists()
        left = list(tmp_path.glob(".tensorsplit*"))
        assert len(left) == (number == signal.SIGKILL), said
    subprocess.run(command, check=True)
    are_written(out)


@pytest.mark.parametrize(
    ("environment", "words"),
    [
        ({"TEST_VERSION": "0.0.1"}, ["the worker at tcp", "tensorsplit 0.0.1, not"]),
        ({"TEST_OTHER_STORAGE": "1"}, ["the worker at tcp", "does not see what was written to"]),
    ],
)
def test_workers_that_differ(
    processes: Processes, tmp_path: Path, environment: dict[str, str], words: list[str]
) -> None:
    processes.worker(**environment)
    source = store(tmp_path)
    with refused("TS710", *words):
        run(source, tmp_path / "out", processes.address, lambda _: None)
    assert [path.name for path in tmp_path.iterdir()] == ["x.zarr"]


def test_processes_of_this_machine(tmp_path: Path) -> None:
    out = tmp_path / "out"
    command = [sys.executable, "-m", "tensorsplit", "split", str(store(tmp_path)), "-o", str(out)]
    options = ["--split", "13,0,27,20", "--workers", "2", "--verify"]
    done = subprocess.run([*command, *options], stderr=subprocess.PIPE, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
    are_written(out)


def test_a_task_takes_all_memory_of_a_process_of_this_machine_which_runs_one_at_a_time() -> None:
    with cluster.DaskCluster(cluster.BASE + 4096, 1, workers=2) as made:
        assert made.memory == 4096


def test_a_script_whose_processes_would_start_it_again(tmp_path: Path) -> None:
    call = (
        f"ts.files.split({str(store(tmp_path))!r}, {str(tmp_path / 'out')!r}, [20, 40], workers=1)"
    )
    script = tmp_path / "script.py"
    script.write_text(f"import tensorsplit as ts\n{call}\n")
    done = subprocess.run([sys.executable, script], stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 1
    assert "[TS710] parameter 'workers'" in done.stderr.splitlines()[-1]
    assert done.stderr.endswith("call it below: if __name__ == '__main__':\n")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("moment", ["starting", "running"])
def test_processes_that_are_interrupted(tmp_path: Path, moment: str) -> None:
    """Ctrl-C in a terminal, which sends the signal to all processes."""
    command = [sys.executable, "-m", "tensorsplit", "split", str(store(tmp_path))]
    options = ["-o", str(tmp_path / "out"), "--num-outputs", "2", "--workers", "2"]
    slow = {"DASK_DISTRIBUTED__WORKER__PRELOAD": "tests.files.slow_tasks", "TEST_ENDLESS": "1"}
    client = subprocess.Popen(
        [*command, *options],
        env={**os.environ, **slow},
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    if moment == "running":
        wait_for(lambda: any(tmp_path.glob(".tensorsplit*/late/file")))
    else:
        children = Path(f"/proc/{client.pid}/task")
        if not children.exists():
            pytest.skip("this system does not list the children of a process")
        wait_for(lambda: len("".join(map(_text, children.glob("*/children"))).split()) > 1)
    os.killpg(client.pid, signal.SIGINT)
    _, said = client.communicate(timeout=200)
    assert (client.returncode, said) == (130, b"tensorsplit: interrupted\n")
    assert [path.name for path in tmp_path.iterdir()] == ["x.zarr"]


def _text(file: Path) -> str:
    with contextlib.suppress(OSError):  # of a thread that has ended
        return file.read_text()
    return ""


def test_schedulers_that_are_not_there(tmp_path: Path) -> None:
    source = store(tmp_path)
    for address in ("tcp://127.0.0.1:9", "nonsense://x", "x"):
        with refused("TS710"):
            run(source, tmp_path / "out", address, lambda _: None, timeout=0.5)
    with refused("TS703"):
        ts.files.split(source, tmp_path / "out", LENGTHS, workers=2, scheduler="tcp://127.0.0.1:9")
    with refused("TS703"):
        ts.files.split(source, tmp_path / "out", LENGTHS, workers=0)


def test_more_workers_than_a_machine_can_run_are_refused_before_one_starts(tmp_path: Path) -> None:
    most = 8 * (os.cpu_count() or 1)
    said = f"{most + 1} workers are requested, more than this machine can run; give at most {most},"
    with refused("TS703", said):
        ts.files.split(store(tmp_path), tmp_path / "out", LENGTHS, workers=most + 1)


def test_an_address_without_a_port_is_refused_in_one_line(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.arange(6))
    words = ["split", "x.npy", "-o", "out", "--num-outputs", "2", "--scheduler", "nonsense"]
    command = [sys.executable, "-m", "tensorsplit", *words]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert "[TS710]" in line
    assert "missing port" in line


@pytest.mark.skipif(sys.platform == "win32", reason="no such limit here")
@pytest.mark.parametrize("limit", [14, 24])
def test_where_too_few_files_can_be_open_no_process_is_waited_for(
    tmp_path: Path, limit: int
) -> None:
    np.save(tmp_path / "x.npy", np.arange(6))
    words = "-m tensorsplit split x.npy -o out --num-outputs 2 --workers 2"
    command = ["sh", "-c", f'ulimit -n {limit} && exec "$0" {words}', sys.executable]
    done = subprocess.run(
        command, cwd=tmp_path, capture_output=True, text=True, timeout=100, check=False
    )
    (line,) = done.stderr.splitlines()
    assert "[TS710]" in line
    assert "no process starts: Too many open files; raise the limit" in line
    assert [path.name for path in tmp_path.iterdir()] == ["x.npy"]
