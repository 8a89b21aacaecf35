"""An engine can do its worst: the caller's process lives on, and the next call works."""

from __future__ import annotations

import errno
import multiprocessing
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tensorsplit import SplitError
from tensorsplit.core.extras import install_command
from tensorsplit.engines import messages
from tensorsplit.engines.process import TIMEOUT_VARIABLE, Death, EngineProcess, _Running, timeout
from tensorsplit.engines.worker import descendants, kill_all
from tests.interpreters import ROOT, printed, python
from tests.marks import thorough

ADAPTER = "tests.engines.fake_engine"
OPEN_FILES = Path("/proc/self/fd")


@pytest.fixture
def engine() -> Iterator[EngineProcess]:
    process = EngineProcess("fake", ADAPTER)
    yield process
    process.close()


def refused(engine: EngineProcess, *request: object) -> SplitError:
    with pytest.raises(SplitError) as caught:
        engine.call(request)
    return caught.value


def is_gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return Path(f"/proc/{pid}/stat").exists() and " Z " in Path(f"/proc/{pid}/stat").read_text()


def test_engine_runs_in_a_process_of_its_own_that_is_used_again(engine: EngineProcess) -> None:
    assert engine.call(("pid",)) not in (os.getpid(), None)
    assert engine.call(("calls",)) == 2


@pytest.mark.parametrize(
    "dtype", ["<f4", "<i8", ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.int4]
)
def test_arrays_cross_the_pipe_with_their_bits(engine: EngineProcess, dtype: object) -> None:
    array = np.arange(1, 7).astype(dtype).reshape(2, 3)  # type: ignore[call-overload]
    back = engine.call(("echo", array))
    assert back.dtype == array.dtype
    assert back.shape == (2, 3)
    assert back.tobytes() == array.tobytes()


def test_array_larger_than_the_pipe_crosses_it(engine: EngineProcess) -> None:
    array = np.random.default_rng(1).integers(1, 255, 5_000_000, dtype=np.uint8)
    assert np.array_equal(engine.call(("echo", array)), array)


def test_what_an_engine_prints_does_not_disturb_the_replies(engine: EngineProcess) -> None:
    assert engine.call(("print", "noise")) == "noise"
    assert engine.call(("echo", 1)) == 1


def test_an_engine_that_reads_finds_nothing(engine: EngineProcess) -> None:
    assert engine.call(("read",)) == ""


def test_an_exception_is_a_refusal_with_the_engines_words(engine: EngineProcess) -> None:
    error = refused(engine, "raise", "no kernel\n  for Split\n" + "x" * 5000)
    assert error.code == "TS603"
    assert "fake says: RuntimeError: no kernel for Split xxx" in str(error)
    assert len(str(error)) < 800


def test_a_refusal_of_our_own_comes_through_as_it_is(engine: EngineProcess) -> None:
    error = refused(engine, "refuse")
    assert (error.code, error.node, error.fix) == ("TS302", "split", "mend them")
    assert error.wants == {"sum": range(0, 1 << 63, 3)}


def test_an_engine_that_cant_be_imported_is_missing(engine: EngineProcess) -> None:
    error = refused(engine, "missing", "No module named 'nothing'")
    assert error.code == "TS602"
    assert "fake can't be imported: No module named 'nothing'; " in str(error)
    assert install_command("fake") in str(error)


def test_an_exception_without_words_is_named(engine: EngineProcess) -> None:
    reply = engine.ask(("missing",), 60)
    assert (reply.missing, reply.words) == ("ImportError", "ImportError")


def test_a_result_that_cant_be_passed_on_is_a_refusal(engine: EngineProcess) -> None:
    assert refused(engine, "lambda").code == "TS603"
    assert engine.call(("calls",)) == 2


def test_what_cant_be_passed_to_the_engine_is_refused(engine: EngineProcess) -> None:
    assert refused(engine, "echo", lambda: None).code == "TS508"


@pytest.mark.parametrize("name", ["SIGFPE", "SIGSEGV", "SIGKILL", "SIGABRT"])
def test_a_signal_is_named_and_the_next_call_works(engine: EngineProcess, name: str) -> None:
    error = refused(engine, "signal", getattr(signal, name))
    assert error.code == "TS604"
    assert name in str(error)
    assert "last words" in str(error)
    assert engine.call(("echo", "again")) == "again"


@pytest.mark.parametrize(
    ("status", "name", "text"),
    [
        (3, "", "ended with exit status 3"),
        (0, "", "ended with exit status 0"),
        (-9, "SIGKILL", "was ended by SIGKILL (signal 9)"),
        (-40, "signal 40", "was ended by signal 40"),  # one of those without a name
        (None, "", "gave an invalid answer"),
    ],
)
def test_a_process_that_exits_has_no_signal(status: int | None, name: str, text: str) -> None:
    assert (Death(status).signal, str(Death(status))) == (name, text)
    assert Death(status).has_answered == (status is None)
    assert not Death(status, seconds=1.5).has_answered


def test_an_exit_is_named(engine: EngineProcess) -> None:
    """What an earlier call has printed is not."""
    engine.call(("print", "noise"))
    error = refused(engine, "exit", 3)
    assert error.code == "TS604"
    assert "exit status 3" in str(error)
    assert "noise" not in str(error)


@pytest.mark.parametrize("is_seen", [False, True])
def test_a_process_killed_between_two_calls_is_started_anew(
    engine: EngineProcess, monkeypatch: pytest.MonkeyPatch, is_seen: bool
) -> None:
    first = engine.call(("pid",))
    os.kill(first, signal.SIGKILL)
    if not is_seen:
        assert engine._running is not None
        monkeypatch.setattr(engine._running.process, "poll", lambda: None)
    second = engine.call(("pid",))
    assert second != first


def test_a_process_that_has_ended_is_asked_nothing(
    engine: EngineProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []
    exchange = _Running.exchange

    def noted(running: _Running, *call: Any) -> object:
        asked.append(running.process.pid)
        return exchange(running, *call)

    os.kill(engine.call(("pid",)), signal.SIGKILL)
    assert engine._running is not None
    engine._running.process.wait()
    monkeypatch.setattr(_Running, "exchange", noted)
    assert asked == [engine.call(("pid",))]


def test_an_engine_that_hangs_is_stopped(
    engine: EngineProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    pid = engine.call(("pid",))
    monkeypatch.setenv(TIMEOUT_VARIABLE, "0.2")
    error = refused(engine, "sleep", 60)
    assert error.code == "TS604"
    assert "no answer within 0.2 s" in str(error)
    assert TIMEOUT_VARIABLE in str(error)
    assert is_gone(pid)
    monkeypatch.delenv(TIMEOUT_VARIABLE)
    assert engine.call(("echo", 5)) == 5


def test_a_process_that_works_is_looked_at_20_times_a_second(
    engine: EngineProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: list[str] = []
    monkeypatch.setattr(_Running, "_drop_prints", lambda running: looks.append(running.mark))
    engine.call(("pid",))
    looks.clear()
    begun = time.monotonic()
    engine.call(("sleep", 0.5))
    assert 1 <= len(looks) <= 20 * (time.monotonic() - begun) + 1


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
@pytest.mark.parametrize("is_working", [False, True])
def test_a_process_ends_with_its_pipe_where_nothing_else_watches_it(*, is_working: bool) -> None:
    def hang(_called: str, _request: list[Any]) -> dict[str, Any]:
        time.sleep(600)
        return {}

    ours, theirs = multiprocessing.Pipe()
    child = os.fork()
    if not child:
        ours.close()
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        messages.serve(theirs, hang)
    theirs.close()
    if is_working:
        messages.send_packed(ours, messages.pack_message([1, "run", []]))
        ours.recv_bytes()  # it has begun
    ours.close()
    timer = threading.Timer(20, os.kill, (child, signal.SIGKILL))
    timer.start()
    assert os.waitpid(child, 0)[1] == 0
    timer.cancel()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
@pytest.mark.parametrize("seconds", [(0, 0.3), (0.3, 0)])
def test_an_engine_that_forks_answers_once(
    engine: EngineProcess, seconds: tuple[float, float]
) -> None:
    assert engine.call(("fork", *seconds)) > 0
    assert [engine.call(("echo", number)) for number in range(20)] == list(range(20))


def test_a_process_that_is_stopped_starts_no_other_one(engine: EngineProcess) -> None:
    first = engine.call(("pid",))
    engine.stop()
    assert is_gone(first)
    assert refused(engine, "pid").code == "TS604"
    assert engine.pid is None


def test_a_process_that_is_stopped_while_it_starts_ends(
    engine: EngineProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    start = EngineProcess._start

    def stop_and_start(process: EngineProcess) -> object:
        process.stop()  # there is none yet that could be ended
        return start(process)

    monkeypatch.setattr(EngineProcess, "_start", stop_and_start)
    assert refused(engine, "pid").code == "TS604"
    assert engine.pid is None


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_what_an_engine_that_hangs_has_started_is_stopped_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TENSORSPLIT_TEST_PID", str(tmp_path / "pid"))
    engine = EngineProcess("fake", ADAPTER)
    engine.call(("pid",))
    monkeypatch.setenv(TIMEOUT_VARIABLE, "0.5")
    assert "no answer within 0.5 s" in str(refused(engine, "fork and hang"))
    assert is_gone(int((tmp_path / "pid").read_text()))


LINUX = pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells who started what")


@LINUX
@pytest.mark.parametrize("end", ["exit", "hang"])
def test_what_has_left_the_group_keeps_nobody_waiting_and_is_ended(
    tmp_path: Path, engine: EngineProcess, end: str
) -> None:
    engine.call(("pid",))
    death = engine.ask(("leave", str(tmp_path / "pid"), end), 0.5 if end == "hang" else 60).death
    assert death is not None
    assert death.seconds == 0.5 if end == "hang" else death.status == 0
    assert are_gone(int((tmp_path / "pid").read_text()))


@LINUX
def test_what_a_process_has_started_is_known() -> None:
    nested = f"import os, subprocess as s; s.run(['{sys.executable}', '-c', 'input()'])"
    with subprocess.Popen([sys.executable, "-c", nested], stdin=subprocess.PIPE) as child:
        for _ in range(600):
            if started := descendants(child.pid):
                break
            time.sleep(0.05)
        assert len(started) == 1
        assert set(descendants(os.getpid())) >= {child.pid, *started}  # beside others of ours
        child.communicate(b"\n")


@LINUX
def test_what_has_left_the_group_ends_with_the_process(
    tmp_path: Path, engine: EngineProcess
) -> None:
    assert engine.call(("leave", str(tmp_path / "pid"), "return")) is None
    engine.close()
    assert are_gone(int((tmp_path / "pid").read_text()))


HUGE = "raw \xff\xff\xff\xff\x7f" + "\xff" * 7


NO_ANSWERS = [
    ([HUGE], "of more than 1 MiB"),
    (["raw \xff\xff\xff\xfe"], "an invalid answer"),
    (["["], "an invalid answer"),
    (["raw \0\0\0\4[1"], "within 0.5 s"),
    (['[99, {"dict": {}}]'], "an invalid answer"),
]
MORE_NO_ANSWERS = [
    (["raw garbage"], "of more than 1 MiB"),
    (["[]"], "an invalid answer"),
    (["null"], "an invalid answer"),
    (["{"], "an invalid answer"),
    (["[" * 10_000], "an invalid answer"),
    (['[3, {"dict": {"result": {"array": ["<f4", [7]]}}}]', "1234"], "an invalid answer"),
    (['[3, {"dict": {"result": {"array": ["O", [1]]}}}]', "12345678"], "an invalid answer"),
    (['[3, {"dict": {"result": {"code": []}}}]'], "an invalid answer"),
    (['[3, {"dict": {"unknown": true}}]'], "an invalid answer"),
    (['[1, {"dict": {"result": 5}}]'], "within 0.5 s"),
]


@pytest.mark.parametrize(("texts", "words"), [*NO_ANSWERS, *map(thorough, MORE_NO_ANSWERS)])
def test_what_is_no_answer_is_none(texts: list[str], words: str) -> None:
    engine = EngineProcess("fake", ADAPTER, most=1 << 20)
    assert [engine.call(("echo", value)) for value in "ab"] == ["a", "b"]
    reply = engine.ask(("write", *texts), 0.5 if "within" in words else 60)
    assert reply.result is None
    assert words in str(reply.death)
    assert engine.call(("echo", "right")) == "right"
    engine.close()


def told_error(**changed: object) -> object:
    """A refusal as a reply has it, with some of its fields changed."""
    fields = {"code": "TS302", "problem": "", "fix": "", "parameter": None}
    return {"error": {"dict": {**fields, "operator": None, "node": None, "wants": {}, **changed}}}


REPLIES = [{"death": {"dict": {"status": 1}}}, told_error(code="TS999"), {"more": 1}]
MORE_REPLIES = [
    {"refusal": 5},
    {"missing": ["a"]},
    {"error": {"dict": {"code": "TS999", "problem": "none"}}},
    {"error": {"dict": {"code": None}}},
    told_error(wants={"dict": {"sum": [0, 5, 0]}}),
    told_error(wants={"dict": {"sum": "5"}}),
]


@pytest.mark.parametrize("told", [*REPLIES, *(thorough((each,)) for each in MORE_REPLIES)])
def test_a_reply_of_the_engines_own_making_is_none(engine: EngineProcess, told: object) -> None:
    assert [engine.call(("echo", value)) for value in "ab"] == ["a", "b"]
    assert "gave an invalid answer" in str(refused(engine, "reply", told))


@pytest.mark.parametrize(
    "request_", [thorough((("zeros", 3 << 30),)), ("zeros", 200 << 20), ("lists", 10**6)]
)
def test_an_answer_that_takes_too_much_memory_is_cut(request_: tuple[object, ...]) -> None:
    engine = EngineProcess("fake", ADAPTER, most=1 << 24)
    assert engine.call(("zeros", 15 << 20)).size == 15 << 20
    assert "gave an answer of more than 16 MiB" in str(refused(engine, *request_))
    engine.close()


def test_an_answer_that_is_nested_too_deeply_can_not_be_passed_on(engine: EngineProcess) -> None:
    reply = engine.ask(("nest", 10**5), 60)
    assert reply.has_returned
    assert "can't be passed on" in str(reply.refusal)


def test_an_exception_whose_words_fail_is_a_refusal(engine: EngineProcess) -> None:
    assert "fake says: _WordlessError: _WordlessError" in str(refused(engine, "wordless"))


def test_what_is_printed_does_not_fill_the_disk(engine: EngineProcess) -> None:
    assert engine.call(("print much", 17)) == 0


def test_an_engine_that_closes_all_files_is_ended(engine: EngineProcess) -> None:
    reply = engine.ask(("close all",), 5)
    assert reply.death is not None
    assert engine.call(("echo", 1)) == 1


@pytest.mark.parametrize("text", ["soon", "", "0", "-1", "nan", "inf", "1e400"])
def test_a_timeout_that_is_no_number_of_seconds_is_refused(
    text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(TIMEOUT_VARIABLE, text)
    with pytest.raises(SplitError, match="TS703"):
        timeout()


def test_threads_take_turns(engine: EngineProcess) -> None:
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda number: engine.call(("echo", number)), range(200)))
    assert answers == list(range(200))


def test_a_crash_in_one_thread_leaves_the_others_theirs(engine: EngineProcess) -> None:
    def call(number: int) -> object:
        return refused(engine, "abort").code if number % 5 == 0 else engine.call(("echo", number))

    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(call, range(20)))
    assert answers == ["TS604" if number % 5 == 0 else number for number in range(20)]


@pytest.fixture
def interruptible() -> Iterator[None]:
    """Python's own handler of SIGINT, which is missing in what a shell runs in the background."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interruptible")
def test_an_interrupted_call_leaves_no_stale_answer(engine: EngineProcess) -> None:
    pid = engine.call(("pid",))
    timer = threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        engine.call(("sleep", 60))
    timer.join()
    assert engine.call(("echo", "fresh")) == "fresh"
    assert engine.pid != pid


def test_the_process_ends_with_the_callers() -> None:
    pid = printed(f"""
        from tensorsplit.engines.process import process_of
        print(process_of("fake", "{ADAPTER}").call(("pid",)))
    """)
    assert is_gone(int(pid))


def are_gone(*pids: int) -> bool:
    """Whether processes are gone after some time."""
    waited = threading.Event()
    return any(all(map(is_gone, pids)) or waited.wait(0.1) for _ in range(100))


def test_the_process_ends_with_a_caller_that_is_killed() -> None:
    done = python(f"""
        import os, signal
        from tensorsplit.engines.process import process_of
        print(process_of("fake", "{ADAPTER}").call(("pid",)), flush=True)
        os.kill(os.getpid(), signal.SIGKILL)
    """)
    assert done.returncode == -signal.SIGKILL
    assert are_gone(int(done.stdout))


@LINUX
def test_what_an_engine_has_started_ends_with_a_caller_that_is_killed(tmp_path: Path) -> None:
    """Though it has left the session, and the engine itself is past noticing anything."""
    done = python(f"""
        import os, signal, threading, time
        from pathlib import Path
        from tensorsplit.engines.process import process_of
        engine, path = process_of("fake", "{ADAPTER}"), Path({str(tmp_path / "pid")!r})
        print(engine.call(("pid",)), flush=True)
        threading.Thread(target=engine.call, args=(("leave", str(path), "hang"),)).start()
        while not path.exists():
            time.sleep(0.01)
        time.sleep(0.1)
        os.kill(os.getpid(), signal.SIGKILL)
    """)
    assert done.returncode == -signal.SIGKILL
    assert are_gone(int(done.stdout), int((tmp_path / "pid").read_text()))


@LINUX
def test_the_files_of_a_process_go_with_a_caller_that_is_killed(tmp_path: Path) -> None:
    """What removes them is not in the group of the process, which is killed as a whole."""
    done = python(f"""
        import os, signal, tempfile
        from tensorsplit.engines.process import process_of
        tempfile.tempdir = {str(tmp_path)!r}
        print(process_of("fake", "{ADAPTER}").call(("pid",)), flush=True)
        assert os.listdir(tempfile.tempdir)
        os.kill(os.getpid(), signal.SIGKILL)
    """)
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert are_gone(int(done.stdout))
    waited = threading.Event()
    assert any(not [*tmp_path.iterdir()] or waited.wait(0.1) for _ in range(100))


@LINUX
def test_a_group_that_is_gone_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    with subprocess.Popen([sys.executable, "-c", ""], start_new_session=True) as ended:
        ended.wait()
    with pytest.raises(ProcessLookupError):
        os.killpg(ended.pid, 0)
    monkeypatch.setattr(time, "sleep", lambda _: pytest.fail("it waits"))
    kill_all(ended.pid, "a mark that no process has", [])


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_fork_has_a_process_of_its_own() -> None:
    printed(f"""
        import os
        from tensorsplit.engines.process import process_of
        engine = process_of("fake", "{ADAPTER}")
        mine = engine.call(("pid",))
        running = engine._running
        child = os.fork()
        if child == 0:
            assert running.pipe.closed and running.errors.closed
            assert engine.call(("pid",)) != mine
            assert engine.call(("calls",)) == 2
            raise SystemExit(0)
        _, status = os.waitpid(child, 0)
        assert status == 0, status
        assert engine.call(("pid",)) == mine
        assert engine.call(("calls",)) == 3
    """)


def test_no_main_guard_is_needed(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "import sys\n"
        f"sys.path.insert(0, {str(ROOT)!r})\n"
        "from tensorsplit.engines.process import process_of\n"
        f"print(process_of('fake', '{ADAPTER}').call(('echo', 'ran')))\n"
    )
    done = subprocess.run(
        [sys.executable, script], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stdout) == (0, "ran\n")


def test_no_place_for_temporary_files(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "missing"))
    with pytest.raises(SplitError, match=r"can't be started: .*; make room") as caught:
        EngineProcess("fake", "tests.engines.fake_engine").call(("pid",))
    assert caught.value.code == "TS604"


@pytest.mark.parametrize("fails", ["tempfile.mkdtemp", "subprocess.Popen"])
def test_a_process_for_which_too_many_files_are_open(
    monkeypatch: pytest.MonkeyPatch, fails: str
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr(fails, refuse)
    with pytest.raises(SplitError, match=r"Too many open files; raise the limit of open files"):
        EngineProcess("fake", "tests.engines.fake_engine").call(("pid",))


@pytest.mark.parametrize(("seconds", "is_late"), [(0.0, True), (60.0, False)])
def test_an_answer_that_is_late_counts_as_none(seconds: float, is_late: bool) -> None:
    """The same limit gives the same result on a busy machine."""
    done, expired, killed = threading.Event(), threading.Event(), threading.Event()
    done.set()
    running: Any = SimpleNamespace(_kill=killed.set)
    _Running._watch(running, time.monotonic() + seconds, done, expired)
    assert expired.is_set() is killed.is_set() is is_late


def test_the_time_for_an_answer_begins_with_the_call(
    engine: EngineProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And not where a busy machine comes to run the thread that looks at the clock."""

    def wait_first(running: _Running, *of: Any) -> None:
        time.sleep(0.5)  # the answer is there
        watch(running, *of)

    engine.call(("pid",))
    watch = _Running._watch
    monkeypatch.setattr(_Running, "_watch", wait_first)
    monkeypatch.setenv(TIMEOUT_VARIABLE, "0.2")
    assert "no answer within 0.2 s" in str(refused(engine, "pid"))


@pytest.mark.skipif(not OPEN_FILES.exists(), reason="Linux lists the files that are open")
def test_a_process_that_can_not_be_started_leaves_no_file_open_and_no_folder(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    before = len(list(OPEN_FILES.iterdir()))
    for executable in (str(tmp_path / "missing"), None):  # where Python is part of a program
        monkeypatch.setattr(sys, "executable", executable)
        error = refused(EngineProcess("fake", ADAPTER), "pid")
        assert error.code == "TS604"
        assert "sys.executable must be a Python interpreter" in str(error)
    assert len(list(OPEN_FILES.iterdir())) == before
    assert not list(tmp_path.iterdir())


def test_a_process_that_is_ended_is_waited_for(engine: EngineProcess) -> None:
    engine.call(("pid",))
    running = engine._running
    assert running is not None
    shutil.rmtree(running.folder)  # as an engine may do
    engine.close()
    assert running.process.returncode == -signal.SIGKILL


@pytest.mark.skipif(not OPEN_FILES.exists(), reason="Linux lists the files that are open")
def test_a_process_that_ended_leaves_no_file_open(engine: EngineProcess) -> None:
    before = len(list(OPEN_FILES.iterdir()))
    assert engine.call(("echo", 1)) == 1
    engine.close()
    assert len(list(OPEN_FILES.iterdir())) == before


@LINUX
def test_a_fork_closes_what_ties_it_to_the_process(engine: EngineProcess) -> None:
    """Else the process would live as long as the fork does."""
    pid, running = engine.call(("pid",)), engine._running
    assert running is not None
    ties = running.pipe.fileno(), running.errors.fileno(), running.lifeline
    child = os.fork()
    if not child:
        os._exit(sum(Path(f"/proc/self/fd/{number}").exists() for number in ties))
    assert os.waitpid(child, 0)[1] == 0
    assert engine.call(("pid",)) == pid


@LINUX
def test_a_process_is_the_first_to_be_killed_for_memory_and_leaves_no_core_dump(
    engine: EngineProcess,
) -> None:
    assert int(engine.call(("text", "/proc/self/oom_score_adj"))) == 1000
    assert re.search(r"core file size +0 ", engine.call(("text", "/proc/self/limits")))


@pytest.mark.parametrize(
    ("sent", "beside"),
    [
        ([b"x" * 300, b"y" * 30], 330),
        ([b"x" * (1 << 18), b"y" * 30], (1 << 18) + 30 + len("file")),
        (["x"] * 100, 0),
    ],
)
def test_a_message_takes_what_its_text_and_its_pieces_take(sent: list[Any], beside: int) -> None:
    """A character of the text counts for 64 bytes."""
    pieces = messages.pack_message(sent)
    takes = 64 * len(pieces[0]) + beside
    for most in (takes, takes - 1):
        ours, theirs = multiprocessing.Pipe()
        with ours, theirs:
            messages.send_packed(ours, pieces)
            if most == takes:
                assert messages.receive(theirs, most) == sent
                continue
            with pytest.raises(messages.TooLarge):
                messages.receive(theirs, most)


@LINUX
def test_a_file_of_memory_that_the_system_writes_in_pieces_is_whole(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Linux writes no more than 2 GiB at once."""
    write = os.write
    monkeypatch.setattr(os, "write", lambda file, octets: write(file, octets[:100_000]))
    piece = np.random.default_rng(5).bytes((1 << 18) + 7)
    ours, theirs = multiprocessing.Pipe()
    with ours, theirs:
        messages.send_packed(ours, messages.pack_message([piece]))
        assert messages.receive(theirs) == [piece]


class Unsupported(Exception):  # noqa: N818 - the name that adapters give it
    """What an adapter raises for what its engine does not have."""


class UnsupportedType(Unsupported):
    """One of them."""


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (ImportError("no engine"), {"missing": "no engine"}),
        (Unsupported("int4"), {"refusal": "int4", "unsupported": True}),
        (UnsupportedType("int4"), {"refusal": "int4", "unsupported": True}),
        (UnsupportedType(), {"refusal": "UnsupportedType", "unsupported": True}),
        (ValueError("it  fails at 0x7f0011223344"), {"refusal": "ValueError: it fails"}),
        (Unsupported("x" * 401), {"refusal": "x" * 400, "unsupported": True}),
    ],
)
def test_what_an_engine_raises_is_told_apart(error: Exception, told: dict[str, Any]) -> None:
    assert messages.refusal(error) == told
