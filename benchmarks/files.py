"""Splits of large files beside `cp` and the usual scripts: time and peak memory, results checked.

Every run is a process of its own, after `sync`; runs of all kinds take turns. What was written is
compared with slices of the source. A time is that of the whole process, and `cp` leaves writing to
the disk to later, so it is shown with the `sync` that follows as well.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

COMMAND = "import sys; from tensorsplit.cli import main; main.main(sys.argv[1:])"
MAKE_NPY = """
import numpy as np, sys
rows = int(float(sys.argv[1]) / 32000)
block = np.random.default_rng(0).random((1000, 8000), np.float32)
array = np.lib.format.open_memmap("x.npy", "w+", np.float32, (rows, 8000))
for start in range(0, rows, 1000):
    array[start : start + 1000] = (block + start)[: rows - start]
"""
MAKE_SAFETENSORS = """
import json, numpy as np, struct, sys
layers = max(int(float(sys.argv[1]) / (12288 * 4096 * 2 + 4096 * 4096 * 2)), 1)
header, place = {}, 0
for layer in range(layers):
    for name, shape in (("qkv", [12288, 4096]), ("down", [4096, 4096])):
        end = place + shape[0] * shape[1] * 2
        offsets = [place, end]
        header[f"{layer}.{name}"] = {"dtype": "BF16", "shape": shape, "data_offsets": offsets}
        place = end
text = json.dumps(header).encode()
text += b" " * (-len(text) % 8)
block = np.random.default_rng(0).bytes(12288 * 4096 * 2)
with open("m.safetensors", "wb") as file:
    file.write(struct.pack("<Q", len(text)) + text)
    for layer in range(layers):
        for size in (12288 * 8192, 4096 * 8192):
            file.write(block[layer:size] + block[:layer])
"""
FUSED = """
[[split]]
tensors = "*.qkv"
axis = 0
split = [4096, 4096, 4096]
names = ["*.q", "*.k", "*.v"]
"""
RANKS = """
[[shard]]
tensors = "*"
axis = 1
ranks = 4
"""
CHECK_NPY = """
import numpy as np, sys
axis, *sizes = map(int, sys.argv[1:])
x, start = np.load("x.npy", mmap_mode="r"), 0
for number, size in enumerate(sizes):
    part = np.load(f"out/x.{number}.npy", mmap_mode="r")
    whole = x[start : start + size] if axis == 0 else x[:, start : start + size]
    assert part.shape == whole.shape
    for row in range(0, len(part), 999):
        assert np.array_equal(part[row], whole[row])
    start += size
"""
CHECK_SAFETENSORS = """
import sys, torch
from safetensors import safe_open
source = safe_open("m.safetensors", "pt")
for name in list(source.keys())[:4]:
    whole = source.get_tensor(name).view(torch.int16)  # bits: some are no numbers
    if sys.argv[1] == "fused":
        found = safe_open("out.safetensors", "pt")
        names = [name[:-3] + part for part in "qkv"] if name.endswith("qkv") else [name]
        for part, expected in zip(names, whole.split(4096)):
            assert found.get_tensor(part).view(torch.int16).equal(expected)
    else:
        for rank, expected in enumerate(whole.chunk(4, 1)):
            found = safe_open(f"out/rank-{rank}-of-4.safetensors", "pt")
            assert found.get_tensor(name).view(torch.int16).equal(expected)
"""
PEER_NPY = """
import numpy as np, os, sys
os.mkdir("out")
axis, *bounds = map(int, sys.argv[1:])
for number, part in enumerate(np.split(np.load("x.npy", mmap_mode="r"), bounds, axis)):
    np.save(f"out/x.{number}.npy", part)
"""
PEER_SAFETENSORS = """
import os, sys
from safetensors import safe_open
from safetensors.torch import save_file
source = safe_open("m.safetensors", "pt")
if sys.argv[1] == "fused":
    made = {}
    for name in source.keys():
        whole = source.get_tensor(name)
        if name.endswith("qkv"):
            made |= {name[:-3] + part: w for part, w in zip("qkv", whole.split(4096))}
        else:
            made[name] = whole
    save_file(made, "out.safetensors")
else:
    os.mkdir("out")
    for rank in range(4):
        made = {n: source.get_tensor(n).chunk(4, 1)[rank].contiguous() for n in source.keys()}
        save_file(made, f"out/rank-{rank}-of-4.safetensors")
"""


@dataclass(frozen=True)
class Work:
    """A split of a file, how it is checked, and the script that people write for it."""

    name: str
    source: str
    words: tuple[str, ...]
    check: tuple[str, ...]
    peer: tuple[str, ...]


def works(size: float) -> list[Work]:
    """The workloads for files of a size."""
    rows = int(size / 32000)
    quarter = -(-rows // 4)
    parts = [quarter, quarter, quarter, rows - 3 * quarter]
    inner = (4096, 1024, 2880)
    fused, ranks = ("m.safetensors", "-o", "out.safetensors"), ("m.safetensors", "-o", "out")
    return [
        Work(
            "npy, axis 0, 4 parts",
            "x.npy",
            ("x.npy", "-o", "out", "--num-outputs", "4"),
            (CHECK_NPY, "0", *map(str, parts)),
            (PEER_NPY, "0", *(str(quarter * n) for n in (1, 2, 3))),
        ),
        Work(
            "npy, inner axis, 3 parts",
            "x.npy",
            ("x.npy", "-o", "out", "--axis", "1", "--split", ",".join(map(str, inner))),
            (CHECK_NPY, "1", *map(str, inner)),
            (PEER_NPY, "1", "4096", "5120"),
        ),
        Work(
            "safetensors, fused weights",
            "m.safetensors",
            (*fused, "--rules", "fused.toml"),
            (CHECK_SAFETENSORS, "fused"),
            (PEER_SAFETENSORS, "fused"),
        ),
        Work(
            "safetensors, 4 ranks, axis 1",
            "m.safetensors",
            (*ranks, "--rules", "ranks.toml"),
            (CHECK_SAFETENSORS, "ranks"),
            (PEER_SAFETENSORS, "ranks"),
        ),
    ]


def timed(*command: str) -> tuple[float, float]:
    """Seconds and peak megabytes of a process that must succeed."""
    start = time.perf_counter()
    process = subprocess.Popen(command)  # noqa: S603 - commands of this file
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"failed: {command[:3]}")
    return time.perf_counter() - start, usage.ru_maxrss / 1000


def clean(source: str, *, cold: bool) -> None:
    """Remove results, and write everything down; a cold source is not in the cache."""
    for name in ("copied", "out.safetensors"):
        Path(name).unlink(missing_ok=True)
    shutil.rmtree("out", ignore_errors=True)
    os.sync()
    if cold:
        with Path(source).open("rb") as file:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    else:
        with Path(source).open("rb") as file:
            while file.read(1 << 24):
                pass


def measure(work: Work, rounds: int, *, cold: bool, peers: bool) -> None:
    """Print a line of medians."""
    times: dict[str, list[float]] = {"cp": [], "cp, sync": [], "tensorsplit": []}
    memory: dict[str, float] = {}
    for _ in range(rounds):
        clean(work.source, cold=cold)
        taken, _ = timed("cp", work.source, "copied")
        times["cp"].append(taken)
        start = time.perf_counter()
        os.sync()
        times["cp, sync"].append(taken + time.perf_counter() - start)
        clean(work.source, cold=cold)
        taken, memory["tensorsplit"] = timed(sys.executable, "-c", COMMAND, "split", *work.words)
        times["tensorsplit"].append(taken)
        timed(sys.executable, "-c", *work.check)
    if peers:
        clean(work.source, cold=cold)
        taken, memory["script"] = timed(sys.executable, "-c", *work.peer)
        times["script"] = [taken]
        timed(sys.executable, "-c", *work.check)
    cells = [
        f"{name} {statistics.median(each):.1f} s"
        + (f" {memory[name]:.0f} MB" if name in memory else "")
        for name, each in times.items()
    ]
    sys.stdout.write(f"{work.name}, {'cold' if cold else 'warm'}: {'; '.join(cells)}\n")
    sys.stdout.flush()


def main() -> None:
    """Make the files, and measure each workload with a warm and a cold cache."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="where the files go, three times as large")
    parser.add_argument("--gigabytes", type=float, default=3.2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--warm", action="store_true", help="with a warm cache only")
    parser.add_argument("--no-peers", action="store_true")
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    os.chdir(given.folder)
    size = given.gigabytes * 1e9
    Path("fused.toml").write_text(FUSED, encoding="utf-8")
    Path("ranks.toml").write_text(RANKS, encoding="utf-8")
    for make, name in ((MAKE_NPY, "x.npy"), (MAKE_SAFETENSORS, "m.safetensors")):
        timed(sys.executable, "-c", make, str(size))
        for work in works(size):
            if work.source == name:
                for cold in (False,) if given.warm else (False, True):
                    measure(work, given.rounds, cold=cold, peers=not given.no_peers)
        clean(name, cold=True)
        Path(name).unlink()


if __name__ == "__main__":
    main()
