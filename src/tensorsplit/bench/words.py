"""Figures in words, the same in the terminal, in documents and in pictures."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from tensorsplit.bench.timing import Spread
from tensorsplit.bench.workloads import Workload

_UNITS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"))
_SIZES = ((1 << 30, "GB"), (1 << 20, "MB"), (1 << 10, "kB"))


def ratio(value: float) -> str:
    """A multiple, in three digits."""
    return f"{value:.2f}" if value < 9.995 else f"{value:.1f}" if value < 99.95 else f"{value:.0f}"


def span(values: Spread) -> str:
    """From the 10th to the 90th percentile."""
    return f"{ratio(values.low)}\N{EN DASH}{ratio(values.high)}"


def seconds(value: float) -> str:
    """A time, in three digits."""
    for unit, name in _UNITS:
        if value >= unit:
            return f"{value / unit:.3g} {name}"
    return f"{value * 1e9:.3g} ns"


def octets(count: float) -> str:
    """A number of bytes; kB, MB and GB are of 2^10, 2^20 and 2^30."""
    for unit, name in _SIZES:
        if count >= unit:
            return f"{count / unit:.3g} {name}"
    return f"{count:g} B"


def cut(workload: Workload) -> str:
    """What is cut into what."""
    least, most, count = min(workload.sizes), max(workload.sizes), len(workload.sizes)
    lengths = f"{least}" if least == most else f"{least} to {most}"
    element = "strings" if workload.dtype == "object" else workload.dtype
    layout = "" if workload.layout == "contiguous" else f" {workload.layout}"
    return f"{element} {workload.shape}{layout}, axis {workload.axis}: {count} parts of {lengths}"


def against(workload: Workload) -> str:
    """What the times of a workload are compared with."""
    if workload.kind == "copy":
        return f"{workload.baseline} of {octets(workload.nbytes)}"
    return workload.baseline


def about(facts: Mapping[str, Any]) -> Iterator[str]:
    """The machine and the versions, in two lines."""
    machine = facts["machine"]
    caches = ", ".join(f"{name} {size}" for name, size in machine["caches"].items())
    copies = f"copies by {facts['native']}"
    yield "; ".join(
        entry for entry in (machine["cpu"], f"{machine['cores']} cores", caches, copies) if entry
    )
    yield ", ".join(f"{name} {version}" for name, version in facts["versions"].items())


def short(text: str, most: int) -> str:
    """The text in at most that many characters."""
    return text if len(text) <= most else f"{text[: most - 1]}\N{HORIZONTAL ELLIPSIS}"
