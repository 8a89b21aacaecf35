"""The tables of ``docs/performance.md``, made from the figures that lie beside it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from tensorsplit.bench import words
from tensorsplit.bench.figures import Figures, Measured, Timed
from tensorsplit.bench.growth import STUDIES, Study, of_study, value_of
from tensorsplit.bench.workloads import Kind

_BLOCK = re.compile(r"(<!-- begin ([\w-]+)[^>]*-->\n).*?(<!-- end \2 -->)", re.DOTALL)
_KINDS: tuple[Kind, ...] = ("copy", "views", "plan")


def tables(bench: Figures, growth: Figures) -> dict[str, str]:
    """Every generated block of the page, by its name.

    Args:
        bench: The figures of the workloads.
        growth: The figures of the studies.
    """
    return {
        "machine": "\n".join(_machine(bench)),
        **{kind: "\n".join(_workloads(bench, kind)) for kind in _KINDS},
        "cannot": "\n".join(_cannot(bench)),
        **{study.name: "\n".join(_study(growth, study)) for study in STUDIES},
    }


def fill(page: str, blocks: Mapping[str, str]) -> str:
    """The page with what stands between each ``<!-- begin NAME -->`` and its end made anew.

    Raises:
        KeyError: For a name that is not among the blocks.
    """
    return _BLOCK.sub(lambda found: f"{found[1]}{blocks[found[2]]}\n{found[3]}", page)


def _machine(figures: Figures) -> Iterator[str]:
    about = figures.about
    machine = about["machine"]
    caches = ", ".join(f"{name} {size}" for name, size in machine["caches"].items())
    versions = ", ".join(f"{name} {version}" for name, version in about["versions"].items())
    rows = (
        ("date", about["date"]),
        ("processor", f"{machine['cpu']}, {machine['cores']} cores; {caches}"),
        ("system", machine["system"]),
        ("versions", versions),
        ("our copies by", about["native"]),
    )
    yield from _table(("", ""), rows)


def _workloads(figures: Figures, kind: Kind) -> Iterator[str]:
    chosen = [measured for measured in figures.measured if measured.workload.kind == kind]
    ways = dict.fromkeys((entry.peer, entry.mode) for each in chosen for entry in each.entries)
    header = ("workload", "1 =", *(f"{peer} {mode}" for peer, mode in ways))
    yield from _table(header, (_row(measured, list(ways)) for measured in chosen))


def _row(measured: Measured, ways: Sequence[tuple[str, str]]) -> Iterator[str]:
    entries = {(entry.peer, entry.mode): entry for entry in measured.entries}
    workload = measured.workload
    yield f"**{workload.name}**: {words.cut(workload)}"
    yield words.seconds(measured.baseline.median)
    yield from (_cell(entries.get(way)) for way in ways)


def _cell(entry: Timed | None) -> str:
    if entry is None or (entry.ratio is None and entry.wrong is None):
        return "\N{EN DASH}"
    if entry.ratio is None or entry.wrong is not None:
        return "wrong"
    return f"{words.ratio(entry.ratio.median)} ({words.span(entry.ratio)})"


def _cannot(figures: Figures) -> Iterator[str]:
    """Why there is a dash, once for each peer and reason."""
    reasons: dict[tuple[str, str], list[str]] = {}
    for measured in figures.measured:
        for entry in measured.entries:
            if entry.cannot is not None:
                names = reasons.setdefault((entry.peer, entry.cannot), [])
                if measured.workload.name not in names:
                    names.append(measured.workload.name)
    for (peer, reason), names in sorted(reasons.items()):
        yield f"- {peer}, {', '.join(names)}: {words.short(reason, 100)}"


def _study(figures: Figures, study: Study) -> Iterator[str]:
    measured = of_study(figures, study)
    ways = dict.fromkeys((entry.peer, entry.mode) for each in measured for entry in each.entries)
    baseline = study.workloads[0].baseline
    header = (study.unit, baseline, *(f"{peer} {mode}" for peer, mode in ways))
    yield from _table(header, (_point(entry, study, list(ways)) for entry in measured))


def _point(measured: Measured, study: Study, ways: Sequence[tuple[str, str]]) -> Iterator[str]:
    value = value_of(measured.workload)
    yield words.octets(value) if study.unit == "bytes" else f"{value}"
    yield words.seconds(measured.baseline.median)
    entries = {(entry.peer, entry.mode): entry for entry in measured.entries}
    yield from (_cell(entries.get(way)) for way in ways)


def _table(header: Sequence[str], rows: Iterable[Iterable[str]]) -> Iterator[str]:
    """A table of Markdown."""
    yield f"| {' | '.join(header)} |"
    yield f"| {' | '.join(['---'] * len(header))} |"
    for row in rows:
        escaped = (cell.replace("|", "\\|") for cell in row)
        yield f"| {' | '.join(escaped)} |"
