"""Splits of large files beside `cp` and the usual scripts: time and peak memory, results checked.

Usage: ``python benchmarks/files.py DIR [-o FOLDER] [--gigabytes 1.2] [--rounds 3] [--quick]``

DIR needs space for three times as much. Every run is a process of its own, with Dask's workers
where it has some; runs of all kinds take turns. A time goes until all is on the disk (``sync``),
but for that of ``cp`` alone. Scripts run once. The cache is warm for them, and where processors
decide and not the disk. FOLDER gets ``files.json`` and a table of it, ``files.md``.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import struct
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeAlias

import click
import numpy as np

from tensorsplit.bench.figures import describe
from tensorsplit.bench.timing import Effort

Array: TypeAlias = "np.ndarray[Any, np.dtype[Any]]"

OUT = Path("out")
SYNCED = "cp, sync"
OURS = "tensorsplit"
RULES = {
    "fused": '[[split]]\ntensors = "*.qkv"\naxis = 0\nnum_outputs = 3\n'
    'names = ["*.q", "*.k", "*.v"]\n',
    "ranks": '[[shard]]\ntensors = "*"\naxis = 1\nranks = 4\n',
}

TIMED = """
import json, resource, subprocess, sys, time
start = time.perf_counter()
subprocess.run(sys.argv[1:], stdout=sys.stderr, check=True)
seconds = time.perf_counter() - start
print(json.dumps((seconds, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1000)))
"""
"""In a process of its own, as Linux counts the memory of what starts a process as that of it."""


def make_npy(size: float) -> None:
    """Rows of 8,000 floats; each thousand differs from the one before."""
    rows = int(size / 32000)
    block = np.random.default_rng(0).random((1000, 8000), np.float32)
    array = np.lib.format.open_memmap("x.npy", "w+", np.float32, (rows, 8000))
    for start in range(0, rows, 1000):
        array[start : start + 1000] = (block + start)[: rows - start]


def make_safetensors(size: float) -> None:
    """Two weights for each layer, one of them fused."""
    shapes = {"qkv": (12288, 4096), "down": (4096, 4096)} if size > 1e9 else {"qkv": (96, 64)}
    header: dict[str, Any] = {}
    place = 0
    block = np.random.default_rng(0).bytes(12288 * 4096 * 2)
    for layer in range(max(int(size / (16384 * 4096 * 2)), 1)):
        for name, shape in shapes.items():
            end = place + shape[0] * shape[1] * 2
            entry = {"dtype": "U16", "shape": shape, "data_offsets": [place, end]}
            header[f"{layer}.{name}"] = entry
            place = end
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with Path("x.safetensors").open("wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for number, (begin, end) in enumerate(each["data_offsets"] for each in header.values()):
            file.write(block[number : end - begin] + block[:number])


def make_zarr(size: float) -> None:
    """A cube of whole numbers as floats, in chunks of 25 along the first axis."""
    import zarr

    side = 1000 if size > 1e9 else 200
    rows = max(int(size / side**2 / 100), 3) * 25
    shape, chunks = (rows, side, side), (25, side // 4, side // 4)
    made = zarr.create_array("x.zarr", shape=shape, chunks=chunks, dtype="float32")
    random = np.random.default_rng(0)
    for start in range(0, rows, 25):
        made[start : start + 25] = random.integers(0, 1000, (25, side, side))


def npy_parts() -> Iterator[tuple[Array, Array]]:
    """The rows of each part, and those of the source, by some hundred at a time."""
    whole = np.load("x.npy", mmap_mode="r")
    parts = [np.load(path, mmap_mode="r") for path in sorted(OUT.iterdir())]
    row = column = 0
    for part in parts:
        if part.shape[1] == whole.shape[1]:
            expected, row = whole[row : row + len(part)], row + len(part)
        else:
            width = part.shape[1]
            expected, column = whole[:, column : column + width], column + width
        for start in range(0, max(len(part), len(expected)), 500):
            yield part[start : start + 500], expected[start : start + 500]


def stored(path: str | Path) -> dict[str, Array]:
    """The tensors of a .safetensors, which is trusted."""
    data = np.memmap(path, np.uint8, "r")
    start = 8 + struct.unpack("<Q", data[:8].tobytes())[0]
    held = json.loads(data[8:start].tobytes())
    held.pop("__metadata__", None)
    return {
        name: data[start:][slice(*each["data_offsets"])].view(np.uint16).reshape(each["shape"])
        for name, each in held.items()
    }


def fused_parts() -> Iterator[tuple[Array, Array]]:
    """What became of each weight."""
    found = stored(OUT / "x.safetensors")
    for name, whole in stored("x.safetensors").items():
        if name.endswith("qkv"):
            for part, expected in zip("qkv", np.split(whole, 3), strict=True):
                yield found[f"{name[:-3]}{part}"], expected
        else:
            yield found[name], whole


def rank_parts() -> Iterator[tuple[Array, Array]]:
    """What each rank has of each weight."""
    ranks = [stored(OUT / f"rank-{rank}-of-4.safetensors") for rank in range(4)]
    for name, whole in stored("x.safetensors").items():
        for rank, expected in zip(ranks, np.split(whole, 4, axis=1), strict=True):
            yield rank[name], expected


def cube_parts() -> Iterator[tuple[Array, Array]]:
    """Each part and its slice of the cube, by 25 at a time."""
    import zarr

    whole: Any = zarr.open_array("x.zarr", mode="r")
    begin = 0
    for path in sorted(OUT.iterdir()):
        part: Any = zarr.open_array(path, mode="r")
        for start in range(0, part.shape[0], 25):
            rows = part[start : start + 25]
            yield rows, whole[begin + start : begin + start + len(rows)]
        begin += part.shape[0]


def split_npy(*options: str) -> None:
    """The usual script: `numpy.split` of a memory map, and `numpy.save`."""
    axis, *bounds = map(int, options)
    OUT.mkdir()
    for number, part in enumerate(np.split(np.load("x.npy", mmap_mode="r"), bounds, axis)):
        np.save(OUT / f"x.{number}.npy", part)


def split_fused() -> None:
    """The usual script: `safe_open`, slices, and `save_file`."""
    from safetensors import safe_open
    from safetensors.numpy import save_file

    made: dict[str, Array] = {}
    with safe_open("x.safetensors", "numpy") as source:
        for name in source.keys():  # noqa: SIM118 - it is no mapping
            whole = source.get_tensor(name)
            if name.endswith("qkv"):
                made |= {
                    name[:-3] + part: w for part, w in zip("qkv", np.split(whole, 3), strict=True)
                }
            else:
                made[name] = whole
    OUT.mkdir()
    save_file(made, OUT / "x.safetensors")


def split_ranks() -> None:
    """The usual script, with a file for each rank."""
    from safetensors import safe_open
    from safetensors.numpy import save_file

    OUT.mkdir()
    with safe_open("x.safetensors", "numpy") as source:
        for rank in range(4):
            made = {}
            for name in source.keys():  # noqa: SIM118 - it is no mapping
                part = np.split(source.get_tensor(name), 4, axis=1)[rank]
                made[name] = np.ascontiguousarray(part)
            save_file(made, OUT / f"rank-{rank}-of-4.safetensors")


def split_cube(*lengths: str) -> None:
    """The usual script: `dask.array` rechunks each slice to the chunks of the source."""
    import dask.array
    import zarr

    ends = np.cumsum([0, *map(int, lengths)]).tolist()
    chunks = zarr.open_array("x.zarr", mode="r").chunks
    whole = dask.array.from_zarr("x.zarr")
    for number, (begin, end) in enumerate(pairwise(ends)):
        whole[begin:end].rechunk(chunks).to_zarr(str(OUT / f"x.{number}.zarr"))


SCRIPTS = {each.__name__: each for each in (split_npy, split_fused, split_ranks, split_cube)}


@dataclass(frozen=True)
class Work:
    """A split of a file.

    Attributes:
        name: What it is called.
        source: The file.
        goal: What the time should be, in words.
        options: How ours is called.
        parts: What was written beside what is expected, piece by piece.
        script: What people write for it: the name of a function, and its arguments.
        runs: The runs of ours, with further options of each.
        baseline: The run to which ratios are.
    """

    name: str
    source: str
    goal: str
    options: tuple[str, ...]
    parts: Callable[[], Iterator[tuple[Array, Array]]]
    script: tuple[str, ...]
    runs: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: {OURS: ()})
    baseline: str = SYNCED

    def commands(self) -> Iterator[tuple[str, tuple[str, ...]]]:
        """Each run of ours, and its command."""
        for run, further in self.runs.items():
            whole = ("split", self.source, "-o", "out", *self.options, *further)
            yield run, (sys.executable, "-m", "tensorsplit", *whole)


def npy_works() -> list[Work]:
    """Along either axis."""
    rows = len(np.load("x.npy", mmap_mode="r"))
    bounds = [-(-rows // 4) * number for number in (1, 2, 3)]
    first = ("split_npy", "0", *map(str, bounds))
    inner = ("--axis", "1", "--split", "4096,1024,2880")
    last = ("split_npy", "1", "4096", "5120")
    return [
        Work("npy, axis 0", "x.npy", "<= 1", ("--num-outputs", "4"), npy_parts, first),
        Work("npy, inner axis", "x.npy", "<= 1", inner, npy_parts, last),
    ]


def safetensors_works() -> list[Work]:
    """By rules."""
    name, fused, ranks = "x.safetensors", ("--rules", "fused.toml"), ("--rules", "ranks.toml")
    return [
        Work("safetensors, fused", name, "<= 1.2", fused, fused_parts, ("split_fused",)),
        Work("safetensors, 4 ranks", name, "4 s for 4 GB", ranks, rank_parts, ("split_ranks",)),
    ]


def zarr_works() -> list[Work]:
    """At chunks, and within them by one process and by two."""
    import zarr

    rows = zarr.open_array("x.zarr", mode="r").shape[0]
    half = rows // 50 * 25
    works = []
    for name, first in (("zarr, aligned", half), ("zarr, unaligned", half - 10)):
        lengths = (str(first), str(rows - first))
        split, script = ("--split", ",".join(lengths)), ("split_cube", *lengths)
        if first == half:
            works.append(Work(name, "x.zarr", "<= 2", split, cube_parts, script))
        else:
            runs = {"1 process": ("--workers", "1"), "2 processes": ("--workers", "2")}
            rest = (script, {OURS: (), **runs}, "1 process")
            works.append(Work(name, "x.zarr", "<= 0.59", split, cube_parts, *rest))
    return works


KINDS = ((make_npy, npy_works), (make_safetensors, safetensors_works), (make_zarr, zarr_works))


def timed(command: tuple[str, ...]) -> tuple[float, float]:
    """Seconds of a process that must succeed, and its peak memory in megabytes."""
    done = subprocess.run(  # noqa: S603 - commands of this file
        (sys.executable, "-c", TIMED, *command), stdout=subprocess.PIPE, check=True
    )
    seconds, peak = json.loads(done.stdout)
    return seconds, peak


def removed(*paths: str) -> None:
    """Remove files and folders."""
    for path in map(Path, paths):
        shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)


def prepare(source: str, *, cold: bool) -> None:
    """Remove results, and write everything down; a cold source is not in the cache."""
    removed("copied", "out")
    os.sync()
    paths = [each for each in (Path(source), *Path(source).rglob("*")) if each.is_file()]
    for path in paths:
        with path.open("rb") as file:
            if cold:
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
            else:
                while file.read(1 << 24):
                    pass


def measure(work: Work, rounds: int, *, cold: bool) -> Iterator[dict[str, Any]]:
    """What each run took."""
    seconds, peaks = defaultdict[str, list[float]](list), defaultdict[str, float](float)

    def take(run: str, command: tuple[str, ...]) -> None:
        prepare(work.source, cold=cold)
        taken, peak = timed(command)
        start = time.perf_counter()
        os.sync()
        if run == SYNCED:
            seconds["cp"].append(taken)
        seconds[run].append(taken + time.perf_counter() - start)
        peaks[run] = max(peaks[run], peak)
        if run != SYNCED:
            for part, expected in work.parts():
                if not np.array_equal(part, expected):
                    raise SystemExit(f"{work.name}: {run} is wrong")

    for number in range(rounds):
        take(SYNCED, ("cp", "-r", work.source, "copied"))
        for run, command in work.commands():
            take(run, command)
        if number == 0 and not cold:
            take("script", (sys.executable, __file__, "--script", *work.script))
    base = statistics.median(seconds[work.baseline])
    for run, taken in seconds.items():
        yield {
            "work": work.name,
            "cache": "cold" if cold else "warm",
            "run": run,
            "seconds": [round(each, 2) for each in taken],
            "ratio": round(statistics.median(taken) / base, 2),
            "peak_mb": round(peaks[run]) if run in peaks and run != SYNCED else None,
            "goal": work.goal if run == [*work.runs][-1] else "",
        }


def row(found: Mapping[str, Any]) -> str:
    """A line of the table."""
    seconds, peak = found["seconds"], found["peak_mb"]
    cells = [found["work"], found["cache"], found["run"], f"{statistics.median(seconds):.1f} s"]
    cells += [str(len(seconds)), f"{found['ratio']:.2f}", found["goal"], f"{peak or ''}"]
    return f"| {' | '.join(cells)} |"


HEAD = """\
| work | cache | run | median | rounds | ratio | goal | peak MB |
| --- | --- | --- | --- | --- | --- | --- | --- |"""


def measure_all(size: float, rounds: int, caches: tuple[bool, ...]) -> Iterator[Mapping[str, Any]]:
    """Make the files in this folder, and measure each workload; shows the table as it grows."""
    for name, text in RULES.items():
        Path(f"{name}.toml").write_text(text, encoding="utf-8")
    click.echo(HEAD)
    for make, works in KINDS:
        make(size)
        for work in works():
            is_bound_by_disk = work.baseline == SYNCED
            for cold in caches if is_bound_by_disk else caches[:1]:
                for found in measure(work, rounds, cold=cold):
                    click.echo(row(found))
                    yield found
        removed("copied", "out", work.source)


def main() -> None:
    """Make the files, and measure each workload with a warm and a cold cache."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, nargs="?", help="for the files")
    parser.add_argument("-o", "--output", type=Path, help="the folder of the figures")
    parser.add_argument("--gigabytes", type=float, default=1.2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--quick", action="store_true", help="whether the results are right")
    parser.add_argument("--script", nargs="+", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.script:
        name, *rest = given.script
        SCRIPTS[name](*rest)
        return
    size, rounds = (1e7, 1) if given.quick else (given.gigabytes * 1e9, given.rounds)
    given.folder.mkdir(parents=True, exist_ok=True)
    output = (given.output or given.folder).resolve()
    with tempfile.TemporaryDirectory(dir=given.folder) as folder:
        os.chdir(folder)
        rows = list(measure_all(size, rounds, (False,) if given.quick else (False, True)))
        os.chdir(output)
    machine = describe(Effort())
    figures = {each: machine[each] for each in ("date", "machine", "versions")}
    text = json.dumps({**figures, "bytes": size, "runs": rows}, indent=1)
    Path("files.json").write_text(f"{text}\n", encoding="utf-8")
    Path("files.md").write_text("\n".join([HEAD, *map(row, rows), ""]), encoding="utf-8")


if __name__ == "__main__":
    main()
