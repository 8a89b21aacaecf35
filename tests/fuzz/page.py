"""The part of docs/reliability.md that is made from runs."""

from __future__ import annotations

import json
import os
import platform
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

from tensorsplit import native

TARGETS = ("arrays", "onnx", "mutations", "ir")
PAGE = Path(__file__).parents[2] / "docs" / "reliability.md"
RUNS = PAGE.with_suffix(".json")
BEGIN, END = "<!-- made by python -m tests.fuzz --record -->\n", "<!-- end -->\n"


@dataclass(frozen=True)
class Entry:
    """One run of one target."""

    date: str
    target: str
    machine: str
    python: str
    kernel: str
    threads: int
    cases: int
    refused: int
    seconds: int
    failures: int

    @classmethod
    def now(
        cls, target: str, sanitizer: str, threads: int, seen: Counter[str], secs: int, failures: int
    ) -> Entry:
        """A run that has just ended, on this machine."""
        return cls(
            date=datetime.now(UTC).date().isoformat(),
            target=target,
            machine=f"{platform.system()} {platform.machine()}, {os.cpu_count()} processors",
            python=platform.python_version() + _build(),
            kernel=f"{native.in_use}{f' under {sanitizer}' if sanitizer else ''}",
            threads=threads,
            cases=seen.total(),
            refused=sum(count for what, count in seen.items() if what.startswith("TS")),
            seconds=secs,
            failures=failures,
        )


def _build() -> str:
    import sysconfig

    return "t" if sysconfig.get_config_var("Py_GIL_DISABLED") else ""


def read() -> list[Entry]:
    """All runs on record."""
    return [Entry(**each) for each in json.loads(RUNS.read_text(encoding="utf-8"))]


def add(entries: Iterable[Entry]) -> None:
    """Put runs on record, in the file and on the page."""
    runs = [*read(), *entries]
    lines = ",\n".join(json.dumps(asdict(run)) for run in runs)
    RUNS.write_text(f"[\n{lines}\n]\n", encoding="utf-8")
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    after = rest.partition(END)[2]
    PAGE.write_text(before + BEGIN + table(runs) + END + after, encoding="utf-8")


def table(runs: Iterable[Entry]) -> str:
    """The runs as a table of the page: those that differ only in when they ran are one line."""
    groups: dict[tuple[object, ...], list[Entry]] = {}
    for run in runs:
        groups.setdefault((run.target, run.kernel, run.python, run.threads), []).append(run)
    lines = [
        "| target | kernel | Python | threads | cases | refused | time | failed | last run |",
        "| --- | --- | --- | ---: | ---: | ---: | ---: | ---: | --- |",
    ]
    for (target, kernel, python, threads), same in groups.items():
        cases, refused, seconds, failures = (
            sum(getattr(run, name) for run in same)
            for name in ("cases", "refused", "seconds", "failures")
        )
        lines.append(
            f"| {target} | {kernel} | {python} | {threads} | {cases:,} | {refused:,} |"
            f" {seconds // 60} min | {failures} | {max(run.date for run in same)} |"
        )
    return "\n".join(lines) + "\n"
