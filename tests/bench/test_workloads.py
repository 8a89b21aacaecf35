"""The workloads as data, what is fed, and the check that no wrong result passes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from tensorsplit import SplitError
from tensorsplit.bench.workloads import (
    WORKLOADS,
    Array,
    Layout,
    Prepared,
    Task,
    UnableError,
    Workload,
    choose_workloads,
    find_fault,
    make_task,
)
from tests.bench.samples import JOIN, SMALL, STRINGS, VIEWS, writes


@pytest.mark.parametrize("workload", WORKLOADS.values(), ids=list(WORKLOADS))
def test_the_parts_make_up_the_axis(workload: Workload) -> None:
    assert sum(workload.sizes) == workload.shape[workload.axis]
    stops = [index[workload.axis].stop for index in workload.indices]
    assert stops[-1] == workload.shape[workload.axis]
    assert [index[workload.axis].start for index in workload.indices[1:]] == stops[:-1]


def test_patterns_choose_in_the_order_of_the_table() -> None:
    assert [each.name for each in choose_workloads(("tiny", "rgb*"))] == ["rgb", "rgba", "tiny"]
    assert choose_workloads(()) == list(WORKLOADS.values())


def test_a_name_that_does_not_exist_is_refused() -> None:
    with pytest.raises(SplitError, match=r"\[TS703\].*'rbg'.*attention"):
        choose_workloads(("rbg",))


@pytest.mark.parametrize(
    ("workload", "text"),
    [
        (
            replace(SMALL, shape=(5, 6), sizes=(3, 3)),
            "float32 (5, 6), axis 1: 2 parts of 3",
        ),
        (SMALL, "float32 (5, 6), axis 1: 2 parts of 2 to 4"),
        (STRINGS, "strings (4, 3), axis 1: 2 parts of 1 to 2"),
        (JOIN, "float32 (5, 6), axis 1: joined, 2 parts of 2 to 4"),
        (
            replace(SMALL, layout="reversed"),
            "float32 (5, 6) reversed, axis 1: 2 parts of 2 to 4",
        ),
    ],
)
def test_a_workload_is_described_by_its_data_and_the_lengths_of_its_parts(
    workload: Workload, text: str
) -> None:
    assert str(workload) == text


def octets(array: Array) -> Array:
    return np.frombuffer(array.tobytes(), np.uint8)


def test_no_byte_of_the_source_is_zero_and_hardly_any_repeats() -> None:
    source = make_task(SMALL).source
    assert octets(source).all()
    assert len(set(source.view(np.uint32).ravel().tolist())) == source.size


@pytest.mark.parametrize(
    ("layout", "strides"),
    [
        ("contiguous", (24, 4)),
        ("transposed", (4, 20)),
        ("sliced", (48, 8)),
        ("reversed", (-24, 4)),
    ],
)
def test_the_source_lies_in_memory_as_its_workload_says(
    layout: Layout, strides: tuple[int, int]
) -> None:
    source = make_task(replace(SMALL, layout=layout)).source
    assert source.shape == (5, 6)
    assert source.strides == strides


def test_buffers_lie_one_after_the_other_at_whole_cache_lines() -> None:
    held = list[object]()
    for number in range(16):  # blocks that begin elsewhere each time
        held += [task := make_task(SMALL), np.empty(16 * number + 8, np.uint8)]
        first, second = (buffer.ctypes.data for buffer in task.buffers)
        assert first % 64 == 0
        assert second == first + 64
        assert first == task.memory.ctypes.data
        assert [buffer.shape for buffer in task.buffers] == [(5, 2), (5, 4)]


@pytest.mark.parametrize("workload", [SMALL, STRINGS], ids=["numbers", "strings"])
def test_a_right_result_passes(workload: object) -> None:
    task = make_task(SMALL if workload is SMALL else STRINGS)
    assert find_fault(task, writes()(task)) is None


def _forget_one_element(buffers: list[Array]) -> None:
    octets_of_last = buffers[1].view(np.uint8)
    octets_of_last[-1, -1] = ~octets_of_last[-1, -1]


def _swap_two_columns(buffers: list[Array]) -> None:
    buffers[1][:] = buffers[1][:, ::-1].copy()


@pytest.mark.parametrize("change", [_forget_one_element, _swap_two_columns])
def test_a_wrong_value_is_found(change: Callable[[list[Array]], None]) -> None:
    task = make_task(SMALL)
    assert find_fault(task, writes(change)(task)) == "part 1 has other values"


def test_a_peer_that_writes_nothing_is_found_even_if_the_buffers_were_right() -> None:
    task = make_task(SMALL)
    writes()(task).call()
    idle = Prepared(lambda: list(task.buffers), list, task.buffers)
    assert find_fault(task, idle) == "part 0 has other values"


def test_memory_that_is_handed_out_again_unwritten_is_found() -> None:
    task = make_task(SMALL)
    memory = [part.copy() for part in task.expected]
    assert find_fault(task, Prepared(lambda: list(memory))) == "part 0 has other values"


def test_one_part_elsewhere_is_found() -> None:
    task = make_task(SMALL)

    def call() -> list[Array]:
        parts: list[Array] = writes()(task).call()
        return [parts[0], parts[1].copy()]

    elsewhere = Prepared(call, list, task.buffers)
    assert find_fault(task, elsewhere) == "the parts are not in the buffers that were given"


def test_a_reason_is_one_line_that_a_terminal_can_show() -> None:
    assert str(UnableError("it fails", ValueError("a \n b" * 100))).startswith("it fails: a b")
    assert len(str(UnableError("it fails", ValueError("a \n b" * 100)))) == 200


def test_a_changed_source_is_found() -> None:
    task = make_task(SMALL)

    def call() -> list[Array]:
        parts = [part.copy() for part in task.expected]
        task.source[0, 0] = 1
        return parts

    assert find_fault(task, Prepared(call)) == "the source was changed"


@pytest.mark.parametrize(
    ("made", "fault"),
    [
        (lambda task: task.expected[:1], "1 parts, not 2"),
        (
            lambda task: [part.astype(np.float64) for part in task.expected],
            "part 0 is float64 of shape (5, 2), not float32 of shape (5, 2)",
        ),
        (
            lambda task: [task.source[index] for index in task.workload.indices],
            "part 0 is not contiguous",
        ),
    ],
)
def test_parts_of_another_kind_are_found(made: Callable[[Task], list[Array]], fault: str) -> None:
    task = make_task(SMALL)
    assert find_fault(task, Prepared(lambda: made(task))) == fault


def test_views_of_the_source_are_no_copies_and_do_not_spoil_it() -> None:
    task = make_task(replace(SMALL, axis=0, sizes=(2, 3)))
    before = task.source.tobytes()
    views = Prepared(lambda: [task.source[index] for index in task.workload.indices])
    assert find_fault(task, views) == "part 0 is not a copy"
    assert task.source.tobytes() == before


def joins(change: Callable[[Array], None] = lambda _: None) -> Callable[[Task], Prepared]:
    def prepare(task: Task) -> Prepared:
        def call() -> Array:
            (whole,) = task.buffers
            for part, index in zip(task.parts, task.workload.indices, strict=True):
                whole[index] = part
            change(whole)
            return whole

        return Prepared(call, lambda whole: [whole], task.buffers)

    return prepare


def test_a_right_join_passes_and_a_wrong_one_does_not() -> None:
    task = make_task(JOIN)
    assert [part.shape for part in task.given] == [(5, 2), (5, 4)]
    assert find_fault(task, joins()(task)) is None

    def swap(whole: Array) -> None:
        whole[:, [0, 5]] = whole[:, [5, 0]]

    assert find_fault(task, joins(swap)(task)) == "part 0 has other values"
    idle = Prepared(lambda: task.buffers[0], lambda whole: [whole], task.buffers)
    assert find_fault(task, idle) == "part 0 has other values"


def test_a_join_that_changes_a_part_is_found() -> None:
    task = make_task(JOIN)

    def spoil(_: Array) -> None:
        task.parts[1][0, 0] = 1

    assert find_fault(task, joins(spoil)(task)) == "the source was changed"


def test_views_may_be_views() -> None:
    task = make_task(VIEWS)
    views = Prepared(lambda: [task.source[index] for index in task.workload.indices])
    assert find_fault(task, views) is None
