"""The measured figures and the machine: as JSON, and as text for the terminal."""

from __future__ import annotations

import json
import os
import platform
import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rich.cells import cell_len
from rich.text import Text

from tensorsplit import native
from tensorsplit.bench.peers import THREADS, installed, is_ours
from tensorsplit.bench.timing import Effort, Measured, Spread, Timed
from tensorsplit.bench.workloads import COPIES
from tensorsplit.core.errors import ENGLISH, Words
from tensorsplit.native.machine import processor_name
from tensorsplit.pictures.layout import shortened

_CACHES = Path("/sys/devices/system/cpu/cpu0/cache")
_INTEGERS = re.compile(r"\[[\d\s,]*\]")
_AFTER_PAUSE = 13  # columns
_LEAST_WIDTH = 12  # of the names
_LONGEST_REASON = 72


@dataclass(frozen=True, slots=True)
class Figures:
    """The measured figures, and what they depend on: see `describe`."""

    about: Mapping[str, Any]
    measured: tuple[Measured, ...]

    @property
    def wrong(self) -> list[str]:
        """Every wrong result."""
        return [
            f"{measured.workload.name}: {entry.peer} ({entry.mode}): {entry.wrong}"
            for measured in self.measured
            for entry in measured.entries
            if entry.wrong is not None
        ]


def describe(effort: Effort) -> dict[str, object]:
    """Return the machine, the versions, what copies, and the method."""
    has_affinity = hasattr(os, "sched_getaffinity")
    return {
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
        "machine": {
            "cpu": processor_name(),
            "cores": len(os.sched_getaffinity(0)) if has_affinity else os.cpu_count(),
            "caches": _caches(),
            "system": f"{platform.system()} {platform.machine()}",
        },
        "versions": {"python": platform.python_version(), **installed()},
        "native": native.in_use,
        "method": {
            "threads": THREADS,
            "rounds": effort.rounds or f"until the medians settle, at most {effort.seconds:g} s",
            "processes": "one for each library, stopped but for its turns",
            "pause": f"{effort.pause:g} s before the second ratio" if effort.pause else "none",
            "ratio": "to the baseline of the same round; median, 10th and 90th percentile",
        },
    }


def _caches() -> dict[str, str]:
    """Return the size of each cache that holds data, where Linux shows it."""
    found = {}
    for folder in sorted(_CACHES.glob("index*")):
        facts = {
            name: (folder / name).read_text(encoding="ascii").strip()
            for name in ("level", "type", "size")
            if (folder / name).exists()
        }
        if facts.get("type") in ("Data", "Unified") and "size" in facts:
            found[f"L{facts.get('level')}"] = facts["size"]
    return found


def as_json(figures: Figures) -> str:
    """Return the figures as JSON; numbers have four digits, times are in seconds."""
    text = json.dumps(_rounded(asdict(figures)), indent=1)
    return _INTEGERS.sub(lambda found: " ".join(found[0].split()), text) + "\n"


def _rounded(value: object) -> object:
    """Return the same with fewer digits in each float, and without what is None."""
    if isinstance(value, float):
        return float(f"{value:.4g}")
    if isinstance(value, dict):
        return {name: _rounded(entry) for name, entry in value.items() if entry is not None}
    return [*map(_rounded, value)] if isinstance(value, (list, tuple)) else value


def as_text(figures: Figures, words: Words = ENGLISH) -> str:
    """Return the figures as text without colours."""
    return "".join(f"{line.plain}\n" for line in lines(figures, words))


def lines(figures: Figures, words: Words = ENGLISH) -> Iterator[Text]:
    """Format the figures for the terminal: the machine, each workload, what was wrong."""
    machine, versions = figures.about["machine"], figures.about["versions"]
    caches = ", ".join(f"{name} {size}" for name, size in machine["caches"].items())
    facts = machine["cpu"], words.amount(machine["cores"], "core"), caches
    copies = words.text("copies by {kernel}", kernel=figures.about["native"])
    yield Text(words.text("; ").join([*filter(None, facts), copies]))
    yield Text(", ".join(f"{name} {version}" for name, version in versions.items()))
    for measured in figures.measured:
        yield Text("")
        yield from _block(measured, words)
    yield Text("")
    if figures.wrong:
        yield from (
            Text(words.text("wrong: {fault}", fault=fault), "bold red") for fault in figures.wrong
        )
    else:
        yield Text(words.text("every result is the same, bit for bit, as that of plain slicing"))


def _block(measured: Measured, words: Words) -> Iterator[Text]:
    workload = measured.workload
    yield Text.assemble((workload.name, "bold"), f"  {words.text(workload.stands_for)}")
    yield Text(f"{workload}", "dim")
    unit = workload.baseline
    if workload.kind in COPIES:
        size = in_bytes(workload.nbytes)
        unit = words.text("{name} of {size}", name=workload.baseline, size=size)
    facts = [f"1 = {unit}: {in_seconds(measured.baseline.median)}"]
    if measured.paused:
        paused = in_seconds(measured.paused.median)
        facts.append(words.text("{time} after a pause", time=paused))
    facts.append(words.amount(measured.rounds, "round"))
    yield Text(words.text("; ").join(facts), "dim")
    has_range = measured.rounds > 1
    width = max(_LEAST_WIDTH, *(len(entry.peer) for entry in measured.entries))
    reach = "10\N{EN DASH}90 %" if has_range else ""
    after = words.text("after a pause") if measured.paused else ""
    heads = (words.text("mode"), words.text("ratio"), reach, words.text("a call"), after)
    yield Text(_row(_wide(words.text("library"), width), *heads), "dim")
    for entry in measured.entries:
        style = "bold red" if entry.wrong else "bold" if is_ours(entry.peer) else ""
        figure = _figure(entry, has_range=has_range)
        yield Text(_row(_wide(entry.peer, width), entry.mode, *figure), style)


def _row(peer: str, mode: str, *figure: str) -> str:
    ratio, reach, seconds, paused = (*figure, "", "", "")[:4]
    columns = f"  {peer} {_wide(mode, 7)} {_right(ratio, 5)}  "
    columns += f"{_wide(reach, 13)} {_right(seconds, 8)}" if reach else _right(seconds, 8)
    return f"{columns}  {_right(paused, _AFTER_PAUSE)}".rstrip()


def _wide(text: str, columns: int) -> str:
    """Return a text with blanks after it, in so many columns at least."""
    return text + " " * (columns - cell_len(text))


def _right(text: str, columns: int) -> str:
    """Return a text with blanks before it, in so many columns at least."""
    return " " * (columns - cell_len(text)) + text


def _figure(entry: Timed, *, has_range: bool) -> tuple[str, ...]:
    """Return the ratio, its spread, the time of a call and the ratio after a pause; or why not."""
    if entry.ratio is None or entry.seconds is None or entry.wrong is not None:
        reason = f"wrong: {entry.wrong}" if entry.wrong else entry.cannot or ""
        return (f"{'':5} {shortened(reason, _LONGEST_REASON)}",)
    reach = in_range(entry.ratio) if has_range else ""
    paused = in_digits(entry.paused.median) if entry.paused else ""
    return in_digits(entry.ratio.median), reach, in_seconds(entry.seconds.median), paused


def in_digits(value: float) -> str:
    """Return a ratio, in three digits."""
    return f"{value:.2f}" if value < 9.995 else f"{value:.1f}" if value < 99.95 else f"{value:.0f}"


def in_range(values: Spread) -> str:
    """Format the range from the 10th to the 90th percentile."""
    return f"{in_digits(values.low)}\N{EN DASH}{in_digits(values.high)}"


def in_seconds(value: float) -> str:
    """Return a time, in three digits."""
    return _in_units(value, (1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"))


def in_bytes(count: float) -> str:
    """Return a number of bytes; kB, MB and GB are of 2^10, 2^20 and 2^30."""
    if count < 1 << 10:
        return f"{count:g} B"
    return _in_units(count, (1 << 30, "GB"), (1 << 20, "MB"), (1 << 10, "kB"))


def _in_units(value: float, *units: tuple[float, str]) -> str:
    """Format a value in the first unit that is not larger, or else in the last."""
    unit, name = next((pair for pair in units if value >= pair[0]), units[-1])
    return f"{value / unit:.3g} {name}"
