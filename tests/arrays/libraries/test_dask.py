"""What is special to arrays of Dask."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tensorsplit as ts
from tests.refusals import refused

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")


def never(block: Any) -> Any:
    """What must not be computed."""
    if block.size:
        raise AssertionError("computed")
    return block


def tasks(array: Any) -> int:
    """How many tasks an array is computed with."""
    return len(dict(dask.optimize(array)[0].__dask_graph__()))


@pytest.fixture
def lazy() -> Any:
    return da.zeros((6, 8), chunks=(3, 4)).map_blocks(never, dtype=float)


@pytest.mark.parametrize("copy", [False, True])
def test_nothing_is_computed(lazy: Any, copy: bool) -> None:
    parts = ts.split(lazy, axis=1, num_outputs=4, copy=copy)
    assert [part.chunks for part in parts] == [((3, 3), (2,))] * 4
    with refused("TS302"):
        ts.split(lazy, [1, 2], copy=copy)
    with pytest.raises(AssertionError, match="computed"):
        parts[0].compute(scheduler="sync")


def test_whole_chunks_stay_as_they_are() -> None:
    data = np.arange(48).reshape(6, 8)
    array = da.from_delayed(dask.delayed(lambda: data)(), data.shape, data.dtype)
    array = da.concatenate([array, array])
    first, rest = ts.split(array, [6, 6])
    assert first.chunks == ((6,), (8,))
    same = first.map_blocks(lambda block: np.array([[np.shares_memory(block, data)]]), dtype=bool)
    assert same.compute(scheduler="sync").all()
    copied = ts.split(array, [6, 6], copy=True)[1].compute(scheduler="sync")
    assert not np.may_share_memory(copied, data)
    np.testing.assert_array_equal(copied, rest.compute())


def test_a_few_tasks_for_each_chunk() -> None:
    array = da.ones((32, 32), chunks=(4, 4))
    whole = tasks(array)
    assert tasks(ts.split(array, [16, 16], axis=1)[0]) <= whole
    parts = ts.split(array, axis=1, num_outputs=32, copy=True)
    assert max(map(tasks, parts)) <= 4 * 8


def test_unknown_chunks() -> None:
    array = da.from_array(np.arange(24).reshape(6, 4), chunks=2)
    some = array[array[:, 0] > 8]
    parts = ts.split(some, [1, 3], axis=1)
    assert np.isnan(parts[0].shape[0])
    np.testing.assert_array_equal(parts[1].compute(), np.arange(24).reshape(6, 4)[3:, 1:])
    functions: list[Callable[[], Any]] = [
        lambda: ts.split(some, [1, 2]),
        lambda: ts.split(some, num_outputs=1, copy=True),
        lambda: ts.split_to_sequence(some, 2),
        lambda: ts.variadic_split(some, 0, [1, -1]),
        lambda: ts.plan("onnx.Split-18", ("N", 4), [1, 2])(some),
    ]
    for function in functions:
        with refused("TS309", "compute_chunk_sizes()"):
            function()
    some.compute_chunk_sizes()
    assert [part.shape for part in ts.split(some, [1, 2])] == [(1, 4), (2, 4)]


def test_parts_that_are_not_proved_to_fit_are_not_joined() -> None:
    """Two dimensions that are not known may be the same; a known one and another may not be."""
    array = da.from_array(np.arange(24).reshape(6, 4), chunks=2)
    some = array[array[:, 0] > 8]
    whole = ts.join([some[:, :1], some[:, 1:]], axis=1)
    np.testing.assert_array_equal(whole.compute(), np.arange(24).reshape(6, 4)[3:])
    assert ts.join([some, array], axis=0).compute().shape == (9, 4)
    for parts in ((some[:, :1], array[:3, 1:]), (array[:3, :1], some[:, 1:])):
        with refused("TS312", "part 1 has shape", "?", parameter="parts"):
            ts.join(parts, axis=1)


def test_masks_stay() -> None:
    array = da.ma.masked_greater(da.arange(6, chunks=4), 3)
    for copy in (False, True):
        second = ts.split(array, [3, 3], copy=copy)[1].compute()
        assert second.tolist() == [3, None, None]


def test_what_is_no_array_is_refused() -> None:
    with refused("TS204", "compute()"):
        ts.split(dask.delayed(np.zeros)(4), num_outputs=2)
    with refused("TS105", "lazy", "compute()", parameter="axis"):
        ts.variadic_split(da.ones((2, 2)), da.asarray(1), [1, 1])


def test_lazy_lengths_in_a_list_are_not_computed(lazy: Any) -> None:
    length = da.ones((), dtype=int).map_blocks(never, dtype=int)
    with refused("TS105", "lazy", "compute()", parameter="split"):
        ts.split(lazy, [length, 5])
