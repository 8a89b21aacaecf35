"""The name of the processor; a limit by control groups counts for the number of threads."""

from __future__ import annotations

import os
import platform
from pathlib import Path

import pytest

from tensorsplit import native
from tensorsplit.native import machine

V2 = "sys/fs/cgroup"
V1 = "sys/fs/cgroup/cpu,cpuacct"


def write(root: Path, groups: str, files: dict[str, str]) -> Path:
    """Write what Linux would show of these groups."""
    for name, text in {"proc/self/cgroup": groups, **files}.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text + "\n", "ascii")
    return root


@pytest.mark.parametrize(
    ("text", "processors"),
    [
        ("max 100000", None),
        ("100000 100000", 1),
        ("150000 100000", 2),
        ("20000 100000", 1),
        ("1600000 100000", 16),
        ("12800000 100000", 128),
        ("0 100000", None),
        ("junk", None),
        ("100000 0", None),
        ("", None),
    ],
)
def test_version_2(tmp_path: Path, text: str, processors: int | None) -> None:
    root = write(tmp_path, "0::/", {f"{V2}/cpu.max": text})
    assert machine.processors_allowed(root) == processors


def test_the_smallest_limit_of_all_groups_above_counts(tmp_path: Path) -> None:
    files = {
        f"{V2}/user/cpu.max": "300000 100000",
        f"{V2}/user/app/cpu.max": "max 100000",
        f"{V2}/user/app/worker/cpu.max": "500000 100000",
        f"{V2}/other/cpu.max": "100000 100000",
    }
    assert machine.processors_allowed(write(tmp_path, "0::/user/app/worker", files)) == 3


@pytest.mark.parametrize(
    ("microseconds", "processors"), [("-1", None), ("50000", 1), ("250000", 3), ("400000", 4)]
)
def test_version_1(tmp_path: Path, microseconds: str, processors: int | None) -> None:
    groups = "5:memory:/docker/1\n4:cpu,cpuacct:/docker/1\n1:name=systemd:/\n0::/docker/1"
    files = {
        f"{V1}/docker/1/cpu.cfs_quota_us": microseconds,
        f"{V1}/docker/1/cpu.cfs_period_us": "100000",
        "sys/fs/cgroup/memory/docker/1/cpu.cfs_quota_us": "1000",
        "sys/fs/cgroup/memory/docker/1/cpu.cfs_period_us": "1000",
    }
    assert machine.processors_allowed(write(tmp_path, groups, files)) == processors


def test_a_container_that_sees_its_group_as_the_root(tmp_path: Path) -> None:
    """The path is that of the host, and is not there."""
    files = {f"{V1}/cpu.cfs_quota_us": "200000", f"{V1}/cpu.cfs_period_us": "100000"}
    root = write(tmp_path, "4:cpu,cpuacct:/docker/0123", files)
    assert machine.processors_allowed(root) == 2


def test_no_control_groups(tmp_path: Path) -> None:
    assert machine.processors_allowed(tmp_path) is None


def test_the_number_of_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: range(64), raising=False)
    for allowed, threads in ((None, 16), (1, 1), (5, 5), (40, 16)):
        monkeypatch.setattr(native, "processors_allowed", lambda allowed=allowed: allowed)
        assert native._read_threads("") == threads
        assert native._read_threads("3") == min(threads, 3)
        assert native._read_threads("9" * 9) == threads
        assert isinstance(native._read_threads("9" * 10), native.Refused)


def test_a_group_of_another_controller_limits_no_processors(tmp_path: Path) -> None:
    """``cpuset`` and ``cpuacct`` begin alike."""
    limit = {"cpu.cfs_quota_us": "100000", "cpu.cfs_period_us": "100000"}
    files = {
        f"sys/fs/cgroup/{each}/{name}": limit[name]
        for each in ("cpuset", "cpuacct")
        for name in limit
    }
    root = write(tmp_path, "4:cpuset:/\n3:cpuacct:/", files)
    assert machine.processors_allowed(root) is None


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("Some Processor", "Some Processor (family 6, model 143)"),
        ("Some Processor 8 Cores", "Some Processor 8 Cores"),
    ],
)
def test_a_processor_without_a_number_is_named_with_its_model(
    tmp_path: Path, name: str, shown: str
) -> None:
    facts = f"cpu family\t: 6\nmodel\t\t: 143\nmodel name\t: {name}\n"
    root = write(tmp_path, "", {"proc/cpuinfo": f"{facts}\nmodel name\t: of the second core\n"})
    assert machine.processor_name(root) == shown


@pytest.mark.parametrize("facts", [None, "processor\t: 0\nCPU implementer\t: 0x41\n"])
def test_a_processor_without_a_name_on_linux_is_named_as_python_does(
    facts: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Linux names no model on Arm; other systems have no such file."""
    root = write(tmp_path, "", {} if facts is None else {"proc/cpuinfo": facts})
    for processor, shown in (("arm", "arm"), ("", "aarch64")):
        monkeypatch.setattr(platform, "processor", lambda processor=processor: processor)
        monkeypatch.setattr(platform, "machine", lambda: "aarch64")
        assert machine.processor_name(root) == shown
