"""The kernel among threads, forks and interpreters that end, and what the environment asks for."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tensorsplit as ts
from tensorsplit import native
from tests.oracle import assert_same, slices

LARGE = (3000, 1001)
"""So many float32 that threads share the copy."""


@pytest.fixture
def python() -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run a program in an interpreter of its own."""

    def run(program: str, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        start = "import numpy as np, tensorsplit as ts\n"
        return subprocess.run(
            [sys.executable, "-c", start + program, *arguments],
            env={**os.environ, "TENSORSPLIT_THREADS": "4", **environment},
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )

    return run


def data(seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).random(LARGE, np.float32)


def test_many_threads_at_once(kernel: Any, restore_threads: None) -> None:
    kernel.use_threads(4)
    wrong: list[int] = []

    def work(seed: int) -> None:
        array = data(seed)
        for _ in range(8):
            parts = kernel.copies(array, 1, (500, 1, 500), True)
            want = slices(array, 1, (500, 1, 500))
            if not all(map(np.array_equal, parts, want)):
                wrong.append(seed)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_a_list_that_another_thread_empties(kernel: Any) -> None:
    array = data()
    stop = threading.Event()
    shared: list[np.ndarray] = []

    def empty() -> None:
        while not stop.is_set():
            shared.clear()

    thread = threading.Thread(target=empty)
    thread.start()
    for _ in range(30):
        shared[:] = [np.zeros((3000, 500), np.float32), np.zeros((3000, 501), np.float32)]
        kernel.copy_into(array, 1, (500, 501), True, shared)
    stop.set()
    thread.join()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_child_of_fork_copies_with_threads_of_its_own(python: Any) -> None:
    done = python(
        """
import os
x = np.arange(3_000_000, dtype=np.float32).reshape(3000, 1000)
def check():
    parts = ts.split(x, [400, 600], axis=1, copy=True)
    assert (parts[0] == x[:, :400]).all() and (parts[1] == x[:, 400:]).all()
check()
for _ in range(20):
    child = os.fork()
    if child == 0:
        check()
        os._exit(0)
    check()
    assert os.waitpid(child, 0)[1] == 0
print("fine")
"""
    )
    assert (done.returncode, done.stdout) == (0, "fine\n"), done.stderr


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_fork_while_threads_copy(python: Any) -> None:
    done = python(
        """
import os, threading
ts.split  # imported here: in the child of a fork during an import, that import never ends
x = np.arange(3_000_000, dtype=np.float32).reshape(3000, 1000)
stop = threading.Event()
def work():
    while not stop.is_set():
        ts.split(x, [400, 600], axis=1, copy=True)
threads = [threading.Thread(target=work) for _ in range(3)]
for thread in threads: thread.start()
for _ in range(10):
    child = os.fork()
    if child == 0:
        parts = ts.split(x, [400, 600], axis=1, copy=True)
        os._exit(0 if (parts[1] == x[:, 400:]).all() else 1)
    assert os.waitpid(child, 0)[1] == 0
stop.set()
for thread in threads: thread.join()
print("fine")
"""
    )
    assert (done.returncode, done.stdout) == (0, "fine\n"), done.stderr


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_fork_while_a_thread_makes_the_first_copy_of_its_process(python: Any) -> None:
    done = python(
        """
import faulthandler, os, pathlib, signal, sys, threading, time
faulthandler.register(signal.SIGALRM, all_threads=True, chain=True)  # says who waits, and ends it
split = ts.split
x = np.arange(60_000, dtype=np.float32).reshape(60, 1000)
def copy():
    return split(x, [400, 600], axis=1, copy=True)
def threads_of(process):
    for thread in pathlib.Path(f"/proc/{process}/task").glob("*"):
        yield (thread / "stat").read_text() + (thread / "wchan").read_text()
def status_of(process, turns):
    for _ in range(turns):  # not seconds: a machine that stands still for a minute is one turn
        found, status = os.waitpid(process, os.WNOHANG)
        if found:
            return status
        time.sleep(0.001)
    print(process, "does not end:", *threads_of(process), file=sys.stderr, flush=True)
    os.kill(process, signal.SIGALRM)
    return os.waitpid(process, 0)[1]
def fork_meanwhile():
    began = threading.Event()
    thread = threading.Thread(target=lambda: (began.set(), copy()))
    thread.start()
    began.wait()
    child = os.fork()
    if child == 0:
        os._exit(0 if (copy()[1] == x[:, 400:]).all() else 1)
    assert status_of(child, 60_000) == 0
    thread.join()
for _ in range(150):
    child = os.fork()
    if child == 0:
        fork_meanwhile()
        os._exit(0)
    assert status_of(child, 100_000) == 0
print("fine")
"""
    )
    assert (done.returncode, done.stdout) == (0, "fine\n"), done.stderr


def test_an_interpreter_that_ends_in_the_middle_of_a_copy(python: Any) -> None:
    done = python(
        """
import threading, time
x = np.zeros((3000, 1000), np.float32)
def work():
    while True:
        ts.split(x, [400, 600], axis=1, copy=True)
for _ in range(3):
    threading.Thread(target=work, daemon=True).start()
time.sleep(0.2)
print("fine")
"""
    )
    assert (done.returncode, done.stdout) == (0, "fine\n"), done.stderr


@pytest.mark.parametrize("call", ["split(x, lengths)", "split.__call__(x, split=lengths)"])
def test_an_interpreter_that_ends_while_a_call_runs_python(python: Any, call: str) -> None:
    done = python(
        f"""
import sys, threading, time
class Slow:
    "A number that takes its time, during which the main thread ends."
    def __index__(self):
        started.set()
        time.sleep(0.2)
        return 1
class Last:
    "What keeps the end waiting, so that threads wake before it is over."
    def __del__(self, sleep=time.sleep):
        sleep(1)
started = threading.Event()
def work():
    x, lengths = np.zeros(3), [Slow(), 2]
    ts.{call}
sys.last_of_all = Last()
threading.Thread(target=work, daemon=True).start()
started.wait()
print("fine")
"""
    )
    assert (done.returncode, done.stdout) == (0, "fine\n"), done.stderr


@pytest.mark.skipif(sys.platform != "linux", reason="threads are counted in /proc")
def test_interrupted_calls_leave_no_thread_behind(python: Any) -> None:
    done = python(
        """
import os, signal
x = np.zeros((3000, 1000), np.float32)
ts.split(x, [400, 600], axis=1, copy=True)
before = len(os.listdir("/proc/self/task"))
signal.signal(signal.SIGALRM, signal.default_int_handler)
for _ in range(20):
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.002)
        while True:
            ts.split(x, [400, 600], axis=1, copy=True)
    except KeyboardInterrupt:
        pass
assert len(os.listdir("/proc/self/task")) == before
print("fine")
"""
    )
    assert (done.returncode, done.stdout) == (0, "fine\n"), done.stderr


def test_a_second_interpreter_does_not_get_the_kernel(python: Any) -> None:
    if native.kernel is None:
        pytest.skip("copies go through NumPy here")
    load = f"""
from importlib import machinery, util
name, path = "tensorsplit.native._kernel", {native.kernel.__file__!r}
loader = machinery.ExtensionFileLoader(name, path)
try:
    module = util.module_from_spec(util.spec_from_file_location(name, path, loader=loader))
    loader.exec_module(module)
except ImportError as error:
    print(error, flush=True)
"""
    done = python(
        """
import sys
try:
    import _interpreters as interpreters
except ImportError:
    import _xxsubinterpreters as interpreters
x = np.zeros((3000, 1000), np.float32)
pool = ts.BufferPool(1 << 24)
parts = ts.split(x, [400, 600], axis=1, out=pool)
other = interpreters.create()
interpreters.run_string(other, sys.argv[1])  # it loads no NumPy, which may refuse by itself
interpreters.destroy(other)
assert pool.in_use_bytes > 0
kept, parts = pool.in_use_bytes, None
parts = ts.split(x, [400, 600], axis=1, out=pool)
assert pool.in_use_bytes == kept
print("fine")
""",
        load,
    )
    refusal = "only the main interpreter can have the kernel\n"
    assert (done.returncode, done.stdout) == (0, refusal + "fine\n"), done.stderr


COPY = """
print(ts.native.in_use)
print(ts.split(np.arange(8), [3, 5], copy=True)[0].tolist())
"""


@pytest.mark.parametrize("value", ["0", "", "1", "baseline"])
def test_the_environment_chooses(python: Any, value: str) -> None:
    if native.kernel is None and value != "0":
        pytest.skip("copies go through NumPy here")
    done = python(COPY, TENSORSPLIT_NATIVE=value)
    name, parts = done.stdout.splitlines()
    assert parts == "[0, 1, 2]"
    assert name == {"0": "numpy", "baseline": "baseline"}.get(value, native.in_use)


@pytest.mark.parametrize(
    "variable", ["TENSORSPLIT_NATIVE", "TENSORSPLIT_THREADS", "TENSORSPLIT_NON_TEMPORAL"]
)
@pytest.mark.parametrize("value", ["yes", "-1", "1.5", " 2", "0x", "9" * 30])
def test_a_value_that_means_nothing_is_refused_by_the_first_copy(
    python: Any, variable: str, value: str
) -> None:
    if native.kernel is None:
        pytest.skip("copies go through NumPy here")
    done = python("print(ts.native.in_use, ts.split(np.zeros(2), [1, 1])[0].size)" + COPY,
                  **{variable: value})  # fmt: skip
    assert done.stdout.startswith("numpy 1\n")
    assert done.stderr.splitlines()[-1].startswith("tensorsplit.core.errors.SplitError: [TS107]")
    assert variable in done.stderr
    assert value in done.stderr


@pytest.mark.usefixtures("either_way")
def test_results_are_the_same_both_ways() -> None:
    array = data()
    assert_same(ts.split(array, [500, 501], axis=1, copy=True), slices(array, 1, (500, 501)))
    out = [np.zeros((3000, 500), np.float32), np.zeros((501, 3000), np.float32).T]
    assert_same(ts.split(array, [500, 501], axis=1, out=out), slices(array, 1, (500, 501)))
