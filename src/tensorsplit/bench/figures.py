"""What was measured, as data: written to JSON and read back from it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from tensorsplit.bench.timing import Spread
from tensorsplit.bench.workloads import Workload

_NUMBERS = re.compile(r"\[[\d\s,]*\]")
"""A list of integers, which is easier to read on one line."""


@dataclass(frozen=True, slots=True)
class Timed:
    """How one peer did one workload in one way.

    Attributes:
        peer: The peer.
        mode: The way: ``out``, ``pooled``, ``fresh`` or ``view``.
        ratio: Its time as a multiple of that of the baseline in the same round.
        seconds: The time of one call.
        cannot: Why it can't do the workload.
        wrong: What is wrong with its result.
    """

    peer: str
    mode: str
    ratio: Spread | None = None
    seconds: Spread | None = None
    cannot: str | None = None
    wrong: str | None = None


@dataclass(frozen=True, slots=True)
class Measured:
    """The figures of one workload.

    Attributes:
        workload: The workload.
        rounds: How many rounds were timed.
        baseline: The seconds of what the others are compared with.
        entries: Every peer in every way.
    """

    workload: Workload
    rounds: int
    baseline: Spread
    entries: tuple[Timed, ...]


@dataclass(frozen=True, slots=True)
class Figures:
    """The figures of a run.

    Attributes:
        about: The machine, the versions, what copies, and the method.
        measured: Each workload.
    """

    about: Mapping[str, Any]
    measured: tuple[Measured, ...]

    @property
    def wrong(self) -> list[str]:
        """Every wrong result, in words."""
        return [
            f"{measured.workload.name}: {entry.peer} ({entry.mode}): {entry.wrong}"
            for measured in self.measured
            for entry in measured.entries
            if entry.wrong is not None
        ]


def as_json(figures: Figures) -> str:
    """The figures as JSON; numbers have four digits, times are in seconds."""
    text = json.dumps(_rounded(asdict(figures)), indent=1)
    return _NUMBERS.sub(lambda found: " ".join(found[0].split()), text) + "\n"


def from_json(text: str) -> Figures:
    """The figures that `as_json` wrote."""
    read = json.loads(text)
    return Figures(read["about"], tuple(map(_measured, read["measured"])))


def _rounded(value: Any) -> Any:
    """The same with fewer digits in each float, and without what is None."""
    if isinstance(value, float):
        return float(f"{value:.4g}")
    if isinstance(value, dict):
        return {name: _rounded(entry) for name, entry in value.items() if entry is not None}
    return [*map(_rounded, value)] if isinstance(value, (list, tuple)) else value


def _measured(read: Mapping[str, Any]) -> Measured:
    written = read["workload"]
    workload = Workload(
        **{**written, "shape": tuple(written["shape"]), "sizes": tuple(written["sizes"])}
    )
    entries = tuple(map(_timed, read["entries"]))
    return Measured(workload, read["rounds"], Spread(**read["baseline"]), entries)


def _timed(read: Mapping[str, Any]) -> Timed:
    spreads = {name: Spread(**read[name]) for name in ("ratio", "seconds") if name in read}
    return Timed(**{**read, **spreads})
