"""A measured workload: what is timed, what is said of a peer that is wrong or unable."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tensorsplit.bench import figures as figures_of
from tensorsplit.bench import peers
from tensorsplit.bench.figures import (
    Figures,
    as_json,
    as_text,
    describe,
    in_bytes,
    in_digits,
    in_range,
    in_seconds,
)
from tensorsplit.bench.peers import OURS, Entry, choose_entries, installed
from tensorsplit.bench.timing import Effort, Measured, Spread, Timed
from tensorsplit.bench.workers import LocalWorker, separate_workers
from tensorsplit.bench.workers import measure as measure_at
from tensorsplit.bench.workloads import Array, Prepared, Task, UnableError, Workload
from tensorsplit.core.errors import SplitError
from tests.bench.samples import JOIN, PLAN, SMALL, STRINGS, VIEWS, entry, writes

ONCE = Effort(rounds=1)


def measure(workload: Workload, entries: Iterable[Entry], effort: Effort = ONCE) -> Measured:
    return measure_at(workload, [LocalWorker(entries)], effort)


def unable(task: Task) -> Prepared:
    raise UnableError("it knows no\nfloats", TypeError("bad <type>"))


def spoil(buffers: list[Array]) -> None:
    buffers[0][0, 0] = 0


def figures(*workloads: Workload) -> Figures:
    entries = [
        *choose_entries(("numpy",)),
        entry(writes(spoil), "wrong"),
        entry(unable, "unable"),
    ]
    return Figures(describe(ONCE), tuple(measure(each, entries) for each in workloads))


@pytest.mark.parametrize("library", ["torch", "jax"])
def test_arrays_of_other_libraries_are_split_by_both(library: str) -> None:
    if library not in installed():
        pytest.skip(f"{library} is not installed")
    chosen = choose_entries((library,))
    assert {each.peer for each in chosen} == {OURS, f"{OURS}-{library}", library}
    with separate_workers(chosen) as workers:  # JAX and forks don't go together
        for workload in (SMALL, JOIN, VIEWS, STRINGS):
            timed = measure_at(workload, workers, ONCE).entries
            assert not [each.wrong for each in timed if each.wrong]
            states = [each.cannot for each in timed if each.peer != OURS]
            assert all((state is not None) == (workload is STRINGS) for state in states)


@pytest.mark.parametrize("workload", [JOIN, VIEWS, PLAN, STRINGS], ids=lambda each: each.name)
def test_joins_views_plans_and_strings_are_right(workload: Workload) -> None:
    timed = measure(workload, choose_entries(("numpy",)))
    assert not [each.wrong for each in timed.entries if each.wrong]
    assert any(each.ratio is not None for each in timed.entries)


def test_a_join_is_into_a_buffer_and_into_new_memory() -> None:
    timed = measure(JOIN, choose_entries(("numpy",)))
    modes = [(each.peer, each.mode) for each in timed.entries]
    assert modes == [(peer, mode) for peer in (OURS, "numpy") for mode in ("out", "fresh")]
    assert all(each.ratio is not None and each.wrong is None for each in timed.entries)


def test_a_wrong_peer_is_named_and_not_timed() -> None:
    taken = figures(SMALL)
    assert taken.wrong == ["small-split: wrong (out): part 0 has other values"]
    wrong = next(each for each in taken.measured[0].entries if each.peer == "wrong")
    assert wrong.ratio is None


def test_a_peer_that_goes_wrong_while_it_is_timed_is_named() -> None:
    calls = []

    def later(buffers: list[Array]) -> None:
        calls.append(1)
        if len(calls) > 2:
            spoil(buffers)

    timed = measure(SMALL, [entry(writes(later))])
    assert timed.entries[0].wrong == "part 0 has other values"


def test_a_peer_that_is_unable_says_why_in_one_line() -> None:
    timed = measure(SMALL, [entry(unable)])
    assert timed.entries[0].cannot == "it knows no floats: bad <type>"
    assert timed.entries[0].ratio is None


@pytest.mark.engine
@pytest.mark.parametrize("peer", ["jax", "onnxruntime", "openvino", "torch"])
@pytest.mark.parametrize("dtype", ["float32", "uint8", "int16", "float64", "complex64", "object"])
def test_no_installed_library_is_timed_on_wrong_results(peer: str, dtype: str) -> None:
    pytest.importorskip(peer)
    workload = Workload("split", "a test", (4, 6), dtype, 1, (1, 5))
    timed = measure(workload, [each for each in choose_entries((peer,)) if each.peer == peer])
    for each in timed.entries:
        assert each.wrong is None
        assert (each.ratio is None) != (each.cannot is None)
    if dtype == "float32":
        assert all(each.ratio is not None for each in timed.entries)


def test_a_peer_that_fails_does_not_end_the_run_and_we_do() -> None:
    def fail(task: Task) -> Prepared:
        raise OSError("no such library")

    assert measure(SMALL, [entry(fail)]).entries[0].cannot == "it fails: no such library"
    with pytest.raises(OSError, match="no such library"):
        measure(SMALL, [entry(fail, OURS)])


def test_a_library_that_is_not_installed_or_not_known_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(peers, "installed", lambda: {OURS: "1", "numpy": "2"})
    for peer, state in {"torch": "not installed", "matlab": "not known"}.items():
        with pytest.raises(SplitError, match=rf"\[TS703\].*'{peer}' is {state}; .*numpy"):
            choose_entries((peer,))


def test_json_has_every_figure() -> None:
    first_axis = replace(SMALL, axis=0, sizes=(2, 3))
    taken = figures(first_axis, VIEWS)
    read = json.loads(as_json(taken))
    assert read["about"] == json.loads(json.dumps(taken.about))
    for seen, measured in zip(read["measured"], taken.measured, strict=True):
        assert seen["workload"] == json.loads(json.dumps(asdict(measured.workload)))
        assert seen["rounds"] == measured.rounds
        for one, timed in zip(seen["entries"], measured.entries, strict=True):
            assert (one["peer"], one["mode"]) == (timed.peer, timed.mode)
            assert (one.get("cannot"), one.get("wrong")) == (timed.cannot, timed.wrong)
            assert ("ratio" in one) == (timed.ratio is not None)
            if timed.ratio is not None:
                assert np.isclose(one["ratio"]["median"], timed.ratio.median, rtol=1e-3)
            if timed.seconds is not None:
                assert np.isclose(one["seconds"]["low"], timed.seconds.low, rtol=1e-3)


def test_the_table_says_what_is_compared_and_what_is_wrong() -> None:
    lines = as_text(figures(SMALL, VIEWS)).splitlines()
    assert "float32 (5, 6), axis 1: 2 parts of 2 to 4" in lines
    assert any(line.startswith("1 = memcpy of 120 B: ") for line in lines)
    assert any(line.startswith("1 = numpy.split: ") for line in lines)
    assert any(line.split()[:2] == ["unable", "out"] and "bad <type>" in line for line in lines)
    assert lines[-1] == "wrong: small-split: wrong (out): part 0 has other values"
    assert any(
        line.startswith("1 = memcpy of 120 B: ") for line in as_text(figures(JOIN)).splitlines()
    )


def test_the_table_shows_no_figures_of_what_went_wrong_while_it_was_timed() -> None:
    spread = Spread(2.0, 1.0, 3.0)
    timed = Timed("other", "out", spread, spread, wrong="part 0 has other values", paused=spread)
    measured = Measured(SMALL, 3, Spread(0.5, 0.4, 0.6), (timed,), Spread(0.25, 0.2, 0.3))
    text = as_text(Figures(describe(ONCE), (measured,)))
    assert "1 = memcpy of 120 B: 500 ms; 250 ms after a pause; 3 rounds\n" in text
    (row,) = [line for line in text.splitlines() if line.split()[:1] == ["other"]]
    assert row.split(maxsplit=2)[1:] == ["out", "wrong: part 0 has other values"]


@pytest.mark.parametrize(
    ("shown", "expected"),
    [
        ((in_digits, 9.994), "9.99"),
        ((in_digits, 9.996), "10.0"),
        ((in_digits, 99.94), "99.9"),
        ((in_digits, 99.96), "100"),
        ((in_range, Spread(2.0, 1.5, 3.25)), "1.50\N{EN DASH}3.25"),
        ((in_seconds, 1.0), "1 s"),
        ((in_seconds, 0.999), "999 ms"),
        ((in_seconds, 2.5e-6), "2.5 \N{MICRO SIGN}s"),
        ((in_seconds, 5e-10), "0.5 ns"),
        ((in_bytes, 1023), "1023 B"),
        ((in_bytes, 1 << 10), "1 kB"),
        ((in_bytes, 1 << 20), "1 MB"),
        ((in_bytes, 3 << 29), "1.5 GB"),
    ],
)
def test_how_figures_are_written(shown: tuple[Callable[[Any], str], Any], expected: str) -> None:
    write, value = shown
    assert write(value) == expected


def test_the_caches_that_hold_data_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(figures_of, "_CACHES", tmp_path)
    for number, facts in enumerate(
        [("1", "Data", "48K"), ("1", "Instruction", "32K"), ("2", "Unified", "2048K")]
    ):
        folder = tmp_path / f"index{number}"
        folder.mkdir()
        for name, fact in zip(("level", "type", "size"), facts, strict=True):
            (folder / name).write_text(f"{fact}\n")
    assert describe(ONCE)["machine"]["caches"] == {"L1": "48K", "L2": "2048K"}  # type: ignore[index]


def test_the_table_has_heads_and_no_percentiles_of_a_single_sample() -> None:
    entries = choose_entries(("numpy",))
    once, twice = (
        as_text(Figures(describe(effort), (measure(SMALL, entries, effort),)))
        for effort in (ONCE, Effort(rounds=2))
    )
    assert ["library", "mode", "ratio", "a", "call"] in [*map(str.split, once.splitlines())]
    assert "1 round\n" in once
    assert "\N{EN DASH}" not in once
    heads = ["library", "mode", "ratio", "10\N{EN DASH}90", "%", "a", "call"]
    assert heads in [*map(str.split, twice.splitlines())]
    assert twice.count("\N{EN DASH}") == 1 + 5


def test_the_table_has_a_column_after_a_pause() -> None:
    entries = choose_entries(("numpy",))
    effort = Effort(rounds=2, pause=0.001)
    figures = Figures(describe(effort), (measure(SMALL, entries, effort),))
    lines = as_text(figures).splitlines()
    (head,) = [line for line in lines if line.split()[:2] == ["library", "mode"]]
    assert head.endswith("a call  after a pause")
    rows = [line for line in lines if line.split()[:1] == ["numpy"]]
    assert [len(row) for row in rows] == [len(head)] * 2
    for row, timed in zip(rows, figures.measured[0].entries[-2:], strict=True):
        assert timed.paused is not None
        assert row.split()[-1] == in_digits(timed.paused.median)


def test_a_clean_table_says_so() -> None:
    clean = Figures(describe(ONCE), (measure(SMALL, choose_entries(("numpy",))),))
    assert "bit for bit" in as_text(clean).splitlines()[-1]
