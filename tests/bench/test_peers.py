"""The libraries that are compared, and what all are compared with: each does what its name says."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import tensorsplit as ts
from tensorsplit.bench import peers
from tensorsplit.bench.peers import ENTRIES, OURS, THREADS, Entry, baseline, choose_entries, is_ours
from tensorsplit.bench.workloads import UnableError, Workload, find_fault, make_task
from tests.bench.samples import JOIN, PLAN, SMALL, VIEWS

BY_KIND = {each.kind: each for each in (SMALL, JOIN, VIEWS, PLAN)}
OF_NUMPY_AND_TORCH = [
    each for each in ENTRIES if each.peer in (OURS, f"{OURS}-torch", "torch", "numpy")
]


@pytest.mark.parametrize("way", ["one thread", "two threads"])
@pytest.mark.parametrize("workload", [SMALL, JOIN, replace(SMALL, shape=(5, 7), sizes=(3, 4))])
def test_the_baseline_copies_every_byte_in_the_faster_way(
    workload: Workload, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    times: Iterator[list[float]] = iter([[1.0], [2.0]] if way == "one thread" else [[2.0], [1.0]])
    monkeypatch.setattr(peers, "repeat", lambda *_, **__: next(times))
    task = make_task(workload)
    copy = baseline(task)
    task.memory[:] = 0
    copy()
    copied = task.memory[: task.source.nbytes]
    assert copied.tobytes() == task.source.tobytes()
    assert (getattr(copy, "func", None) is np.copyto) == (way == "one thread")


def test_the_baselines_of_views_are_views() -> None:
    for workload in (VIEWS, PLAN):
        task = make_task(workload)
        parts: Any = baseline(task)()
        assert [part.tolist() for part in parts] == [part.tolist() for part in task.parts]
        assert all(np.shares_memory(part, task.source) for part in parts)


@pytest.mark.parametrize("entry", OF_NUMPY_AND_TORCH, ids=lambda e: f"{e.peer}-{e.mode}-{e.kind}")
def test_an_entry_calls_the_library_that_it_names(
    entry: Entry, monkeypatch: pytest.MonkeyPatch
) -> None:
    if "torch" in entry.peer:
        pytest.importorskip("torch")
    called = list[str]()

    def noting(name: str) -> Callable[..., object]:
        function: Callable[..., Any] = getattr(ts, name)

        def call(*given: object, **named: object) -> object:
            called.append(name)
            return function(*given, **named)

        return call

    wanted = {"copy": "split", "join": "join", "views": "split", "plan": "plan"}[entry.kind]
    for name in ("split", "join", "plan"):
        monkeypatch.setattr(ts, name, noting(name))
    task = make_task(BY_KIND[entry.kind])
    prepared = entry.prepare(task)
    prepared.call()
    assert called == ([wanted] if is_ours(entry.peer) else [])
    assert find_fault(task, prepared) is None


def test_beside_a_library_ours_takes_its_arrays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peers, "installed", lambda: dict.fromkeys((OURS, "numpy", "torch"), "1"))
    names = dict.fromkeys(each.peer for each in choose_entries(()))
    assert list(names) == [OURS, "numpy", f"{OURS}-torch", "torch"]
    assert {each.peer for each in choose_entries(("numpy",))} == {OURS, "numpy"}


def test_a_pool_holds_all_parts() -> None:
    (entry,) = [each for each in ENTRIES if each.mode == "pooled"]
    call: Any = entry.prepare(make_task(SMALL)).call
    parts = call()
    del parts
    assert call.keywords["out"].idle_bytes >= SMALL.nbytes


@pytest.mark.parametrize("dtype", ["float16", "float64", "int64", "uint64"])
def test_types_that_openvino_computes_in_others_are_not_timed(dtype: str) -> None:
    (entry,) = [each for each in ENTRIES if each.peer == "openvino"]
    with pytest.raises(UnableError, match=f"its CPU plugin computes {dtype} in "):
        entry.prepare(make_task(replace(SMALL, dtype=dtype)))


@pytest.mark.engine("onnxruntime")
def test_onnxruntime_has_as_many_threads_as_the_others() -> None:
    options = peers._session(make_task(SMALL)).get_session_options()
    assert options.intra_op_num_threads == THREADS
