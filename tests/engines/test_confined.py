"""An engine finds nothing of the caller's: no Python, no packages, no files, no network."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tensorsplit import SplitError
from tensorsplit.engines.process import EngineProcess
from tests.interpreters import python

ADAPTER = "tests.engines.curious_engine"


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> Iterator[EngineProcess]:
    settings = {
        "PYTHONPATH": "/of/the/caller",
        "PYTHONHASHSEED": "7",
        "PIP_INDEX_URL": "https://index.invalid",
        "VIRTUAL_ENV": sys.prefix,
        "XDG_CACHE_HOME": "/of/the/caller",
        "OMP_NUM_THREADS": "3",
    }
    for name, text in settings.items():
        monkeypatch.setenv(name, text)
    process = EngineProcess("curious", ADAPTER)
    yield process
    process.close()


def test_nothing_in_the_environment_leads_to_the_callers_python(engine: EngineProcess) -> None:
    found = engine.call(("environment",))
    ours = ("PYTHON", "PIP_", "VIRTUAL_ENV", "XDG_")
    left = {name: text for name, text in found.items() if name.startswith(ours)}
    assert left == {"PIP_NO_INDEX": "1", "PIP_REQUIRE_VIRTUALENV": "1"}
    assert found["OMP_NUM_THREADS"] == "3"
    assert "/of/the/caller" not in found.values()
    assert not any(str(Path(entry)) in engine.call(("arguments",)) for entry in sys.path if entry)


def test_a_setting_that_python_needs_at_its_start_is_not_passed_on() -> None:
    process = EngineProcess("curious", ADAPTER, {"PYTHONHASHSEED": "0"})
    try:
        code = "import sys; print(sys.flags.hash_randomization)"
        assert process.call(("python", code, False))[:2] == [0, "1\n"]
    finally:
        process.close()


@pytest.mark.skipif(sys.prefix == sys.base_prefix, reason="this is no virtual environment")
def test_another_interpreter_finds_none_of_our_packages(engine: EngineProcess) -> None:
    status, _, errors = engine.call(("python", "import tensorsplit", True))
    assert status == 1
    assert "ModuleNotFoundError" in errors


def test_pip_of_another_interpreter_refuses(engine: EngineProcess) -> None:
    words = ["uninstall", "-y", "no-such-package"]
    code = f"import runpy, sys; sys.argv[1:] = {words}; runpy.run_module('pip', None, '__main__')"
    status, _, errors = engine.call(("python", code, True))
    assert status != 0
    assert "virtualenv" in errors or "No module named pip" in errors


@pytest.mark.parametrize("end", ["closed", "dies"])
def test_its_files_are_its_own_and_go_with_it(engine: EngineProcess, end: str) -> None:
    settings, draft = (Path(path) for path in engine.call(("files",)))
    assert settings.read_text() == draft.read_text() == "mine"
    assert settings.parent != Path.home()
    assert settings.parent in draft.parents
    if end == "closed":
        engine.close()
    else:
        with pytest.raises(SplitError):
            engine.call(("die",))
    assert not settings.parent.exists()


@pytest.mark.skipif(sys.platform == "win32", reason="nobody looks after it there")
def test_its_files_go_when_the_caller_is_killed(tmp_path: Path) -> None:
    code = f"""
import os, signal
from tensorsplit.engines.process import EngineProcess
process = EngineProcess("curious", {ADAPTER!r})
print(process.call(("files",))[0], flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""
    settings = Path(python(code).stdout.strip())
    assert settings.name == ".settings"
    for _ in range(200):
        if not settings.parent.exists():
            break
        time.sleep(0.05)
    assert not settings.parent.exists()


@pytest.fixture
def port() -> Iterator[int]:
    """The port of a server on this machine that greets."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def greet() -> None:
            with server.accept()[0] as end:
                end.sendall(b"hello")

        threading.Thread(target=greet, daemon=True).start()
        yield server.getsockname()[1]


def may_leave_network() -> bool:
    """Return whether the system's own command can leave the network; False where it has none."""
    command = shutil.which("unshare")
    if command is None:
        return False
    done = subprocess.run([command, "--user", "--net", "true"], check=False, capture_output=True)
    return done.returncode == 0


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux can take a network away")
def test_it_has_no_network_but_its_own(engine: EngineProcess, port: int) -> None:
    if engine.call(("network",)) == os.readlink("/proc/self/ns/net"):  # noqa: PTH115
        assert not may_leave_network()
        pytest.skip("this kernel forbids it")
    assert engine.call(("connect", port)) == "ConnectionRefusedError"
    assert engine.call(("own server",)) == "127.0.0.1"
    assert engine.call(("user",)) == [os.getuid(), os.getgid()]
