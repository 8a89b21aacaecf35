"""`ts.BufferPool`: memory that is used again, and never while someone looks at it."""

from __future__ import annotations

import copy
import gc
import multiprocessing
import os
import pickle
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tensorsplit as ts
from tests.interpreters import python
from tests.oracle import DTYPES, Array, assert_same, random_array, slices
from tests.refusals import refused

KIB, MIB = 1 << 10, 1 << 20
LARGE = 5 * MIB
"""Over the size from which memory is mapped."""


def address(array: Array) -> int:
    return int(array.__array_interface__["data"][0])


def poison(pool: ts.BufferPool) -> None:
    """Overwrite all idle memory: what still shows in an array was handed out too early."""
    pool.blocks.fill(0xA5)


pytestmark = pytest.mark.usefixtures("either_way")


@pytest.fixture(params=[64, 24 * KIB, LARGE], ids=["small", "middle", "mapped"])
def x(request: pytest.FixtureRequest, rng: np.random.Generator) -> Array:
    """Bytes to split, in blocks of three magnitudes."""
    return np.frombuffer(rng.bytes(3 * request.param), np.uint8).reshape(3, -1)


class TestParts:
    @pytest.mark.parametrize("name", DTYPES)
    def test_are_exact_in_every_element_type(self, name: str, rng: np.random.Generator) -> None:
        data = random_array(name, (5, 6, 3), rng)
        pool = ts.BufferPool(MIB)
        for _ in range(3):
            parts = ts.variadic_split(data, 1, [1, 0, 3, 2], out=pool)
            assert_same(parts, slices(data, 1, (1, 0, 3, 2)))
            del parts
            poison(pool)

    def test_are_contiguous_aligned_and_writable(self, x: Array) -> None:
        for part in ts.split(x.T, num_outputs=3, axis=1, out=ts.BufferPool(0)):
            assert type(part) is np.ndarray
            assert part.flags.c_contiguous
            assert part.flags.writeable
            assert part.flags.aligned
            assert address(part) % 64 == 0

    def test_of_one_byte_is_of_the_pool_and_one_of_none_is_not(self) -> None:
        pool = ts.BufferPool(MIB)
        parts = ts.split(np.arange(1, dtype=np.uint8), [0, 1], out=pool)
        assert [part.tolist() for part in parts] == [[], [0]]
        assert pool.in_use_bytes > 0
        del parts[1]
        assert pool.in_use_bytes == 0

    def test_share_no_memory(self, x: Array) -> None:
        parts = ts.split(x, [1, 1, 1], out=ts.BufferPool(MIB))
        for number, part in enumerate(parts):
            part[:] = number
        assert [int(part.max()) for part in parts] == [0, 1, 2]
        assert not any(np.shares_memory(part, x) for part in parts)

    def test_come_from_every_function_and_from_plans(self) -> None:
        data = np.arange(12.0).reshape(6, 2)
        pool = ts.BufferPool(MIB)
        want = slices(data, 0, (3, 3))
        assert_same(ts.split(data, num_outputs=2, out=pool), want)
        assert_same(ts.split_to_sequence(data, 3, out=pool), want)
        assert_same(ts.variadic_split(data, 0, [3, -1], out=pool), want)
        assert_same(ts.openvino.split(data, 0, 2, out=pool), want)
        assert_same(ts.plan("onnx.Split-18", (6, 2), num_outputs=2)(data, out=pool), want)
        symbolic = ts.plan("onnx.Split-18", (6, "N"), num_outputs=2)
        assert_same(symbolic(data, out=pool), want)
        dropped = ts.split_to_sequence(data, axis=1, keepdims=0, out=pool)
        assert_same(dropped, [data[:, 0].copy(), data[:, 1].copy()])
        assert pool.in_use_bytes > 0

    @pytest.mark.parametrize("dtype", [object, np.dtypes.StringDType()])
    def test_that_hold_references_are_ordinary_arrays(self, dtype: Any) -> None:
        pool = ts.BufferPool(MIB)
        parts = ts.split(np.array(["a", "b"], dtype), [1, 1], out=pool)
        assert [part.tolist() for part in parts] == [["a"], ["b"]]
        assert (pool.in_use_bytes, pool.idle_bytes) == (0, 0)

    def test_of_what_has_masks_are_refused(self, x: Array) -> None:
        """The memory of a pool holds elements alone."""
        masked = np.ma.masked_array(x, x % 3 == 0)
        with refused("TS403", parameter="out"):
            ts.split(masked, num_outputs=2, axis=1, out=ts.BufferPool(MIB))


class TestMemory:
    def test_of_a_part_that_is_gone_is_used_again(self, x: Array) -> None:
        pool = ts.BufferPool(64 * MIB)
        first = ts.split(x, [1, 1, 1], out=pool)
        seen, used = set(map(address, first)), pool.in_use_bytes
        assert used >= x.nbytes
        del first
        assert (pool.in_use_bytes, pool.idle_bytes) == (0, used)
        again = ts.split(x, [1, 1, 1], out=pool)
        assert set(map(address, again)) == seen
        assert (pool.in_use_bytes, pool.idle_bytes) == (used, 0)

    @pytest.mark.skipif(sys.platform != "linux", reason="Linux tells what is mapped")
    def test_that_is_large_leaves_nothing_mapped(self) -> None:
        def mapped() -> int:
            return int(Path("/proc/self/statm").read_text("ascii").split()[0])

        def take(times: int) -> None:
            for _ in range(times):
                pool = ts.BufferPool(64 * MIB)
                pool.empty((8 * MIB,), np.uint8)
                pool.clear()

        take(20)
        before = mapped()
        take(200)  # of which each is mapped at the border of 2 MiB
        assert (mapped() - before) * os.sysconf("SC_PAGE_SIZE") < 100 * MIB

    def test_is_given_to_any_shape_and_type(self) -> None:
        pool = ts.BufferPool(MIB)
        fields = [("a", "u1"), ("b", ">f8")]
        types: list[Any] = ["f4", np.int8, fields, ("f4", (2, 3)), "V7", "S5", "M8[s]", "?"]
        shapes: list[Any] = [[2, 3], (np.int64(4), np.uint8(1)), (), (1,) * 60, range(1, 4)]
        for dtype in types:
            for shape in shapes:
                made, want = pool.empty(shape, dtype), np.empty(tuple(shape), dtype)
                assert (made.shape, made.dtype) == (want.shape, want.dtype)
                assert made.flags.num & ~4 == want.flags.num & ~4  # but for who owns the memory
                made[...] = want
        assert pool.in_use_bytes > 0
        assert pool.empty((0, 2), "f4").shape == (0, 2)
        assert pool.empty((2,), object).tolist() == [None, None]
        assert pool.empty((2,), "S0").shape == (2,)

    def test_of_slightly_different_shapes_is_shared(self) -> None:
        pool = ts.BufferPool(64 * MIB)
        before = address(pool.empty((1000, 997), np.float32))
        assert address(pool.empty((1000, 1000), np.float32)) == before

    @pytest.mark.parametrize("size", [513, 1000, 4097, 65537, MIB + 1, 3 * MIB, LARGE + 1])
    def test_is_not_wasted(self, size: int) -> None:
        pool = ts.BufferPool(0)
        part = pool.empty((size,), np.uint8)
        assert size <= pool.in_use_bytes <= size * 1.126
        part[:] = 1  # all of it is there

    def test_pinned_by_a_surviving_part_is_its_own_only(self, x: Array) -> None:
        pool = ts.BufferPool(64 * MIB)
        parts = ts.split(x, [1, 1, 1], out=pool)
        used = pool.in_use_bytes
        middle = parts[1]
        del parts
        assert pool.in_use_bytes == used // 3
        poison(pool)
        others = ts.split(~x, [1, 1, 1], out=pool)
        assert_same([middle], [x[1:2].copy()])
        del others

    @pytest.mark.parametrize(
        "look",
        [
            lambda part: part[:, 3:5],
            lambda part: part.T[::-2][1:],
            lambda part: part.view(np.int8),
            memoryview,
            lambda part: memoryview(part)[0:1],
            lambda part: np.frombuffer(part, np.uint8),
            np.from_dlpack,
            lambda part: part.__dlpack__(),
            lambda part: np.ma.array(part, mask=False, copy=False),
            lambda part: part.flat,
            lambda part: part.base,
        ],
    )
    def test_is_kept_while_anyone_looks_at_it(self, x: Array, look: Any) -> None:
        pool = ts.BufferPool(64 * MIB)
        part = ts.split(x, [1, 2], out=pool)[0]
        used = pool.in_use_bytes
        view = look(part)
        del part
        assert pool.in_use_bytes == used > 0
        del view
        assert pool.in_use_bytes == 0

    def test_is_not_reached_through_what_is_left_of_a_part(self, x: Array) -> None:
        part: Any = ts.split(x, [1, 2], out=ts.BufferPool(64 * MIB))[0]
        while isinstance(part, np.ndarray):
            part = part.base
        assert np.asarray(part).dtype == object  # the base alone makes no array of the memory

    def test_of_a_view_keeps_its_contents(self, x: Array) -> None:
        pool = ts.BufferPool(64 * MIB)
        view = memoryview(ts.split(x, [1, 2], out=pool)[0])  # type: ignore[arg-type]
        for _ in range(3):
            ts.split(~x, [1, 2], out=pool)
            poison(pool)
        assert bytes(view) == x[:1].tobytes()

    def test_of_parts_in_a_cycle_comes_back(self) -> None:
        pool = ts.BufferPool(MIB)
        cycle: list[Any] = ts.split(np.arange(6), [2, 4], out=pool)
        cycle.append(cycle)
        del cycle
        gc.collect()
        assert pool.in_use_bytes == 0 < pool.idle_bytes

    def test_outlives_the_pool_with_its_array_only(self, x: Array) -> None:
        pool = ts.BufferPool(64 * MIB)
        part, *others = ts.split(x, [1, 1, 1], out=pool)
        del others, pool
        assert_same([part], [x[:1].copy()])

    def test_is_not_copied_by_a_pickle(self) -> None:
        pool = ts.BufferPool(MIB)
        parts = ts.split(np.arange(6), [2, 4], out=pool)
        assert_same(pickle.loads(pickle.dumps(parts)), slices(np.arange(6), 0, (2, 4)))
        assert_same(copy.deepcopy(parts), slices(np.arange(6), 0, (2, 4)))


class TestBound:
    def test_is_that_of_idle_memory(self) -> None:
        pool = ts.BufferPool(10 * KIB)
        parts = ts.split(np.zeros((4, 4 * KIB), np.uint8), num_outputs=4, out=pool)
        assert pool.in_use_bytes == 16 * KIB
        del parts
        assert (pool.in_use_bytes, pool.idle_bytes) == (0, 8 * KIB)

    def test_keeps_as_much_as_it_says(self) -> None:
        pool = ts.BufferPool(8 * KIB)
        parts = ts.split(np.zeros((2, 4 * KIB), np.uint8), num_outputs=2, out=pool)
        del parts
        assert (pool.in_use_bytes, pool.idle_bytes) == (0, 8 * KIB)

    def test_of_0_keeps_nothing(self, x: Array) -> None:
        pool = ts.BufferPool(0)
        assert_same(ts.split(x, [1, 2], out=pool), [x[:1].copy(), x[1:].copy()])
        assert pool.idle_bytes == 0

    def test_gives_way_to_what_was_used_last(self) -> None:
        pool = ts.BufferPool(8 * KIB)
        old, new = pool.empty((4 * KIB,), np.uint8), pool.empty((6 * KIB,), np.uint8)
        place = address(new)
        del old
        del new
        assert pool.idle_bytes == 6 * KIB
        assert address(pool.empty((6 * KIB,), np.uint8)) == place

    def test_clear_gives_all_idle_memory_back(self, x: Array) -> None:
        pool = ts.BufferPool(64 * MIB)
        kept = ts.split(x, [1, 2], out=pool)[0]
        assert pool.idle_bytes > 0
        pool.clear()
        assert pool.idle_bytes == 0 < pool.in_use_bytes
        assert_same([kept], [x[:1].copy()])

    @pytest.mark.parametrize("junk", [1.5, "1", None, True, [1], float("inf")])
    def test_is_an_integer(self, junk: Any) -> None:
        with refused("TS105", parameter="max_bytes"):
            ts.BufferPool(junk)

    def test_is_not_negative(self) -> None:
        with refused("TS107", "-1", parameter="max_bytes"):
            ts.BufferPool(-1)

    def test_is_shown(self) -> None:
        pool = ts.BufferPool(3 * MIB // 2)
        part = pool.empty((2 * KIB,), np.uint8)
        assert repr(pool) == "<BufferPool: 2 KiB in use, 0 B idle of at most 1.5 MiB>"
        assert pool.max_bytes == 3 * MIB // 2
        assert repr(ts.BufferPool(KIB - 1)).endswith("at most 1023 B>")
        assert repr(ts.BufferPool(KIB)).endswith("at most 1 KiB>")
        del part


@pytest.mark.parametrize("way", [copy.copy, copy.deepcopy, pickle.dumps])
def test_a_pool_is_not_copied(way: Any) -> None:
    with pytest.raises(TypeError, match="BufferPool"):
        way(ts.BufferPool(1))


def test_memory_that_can_not_be_had_is_refused() -> None:
    with pytest.raises(MemoryError):
        ts.BufferPool(MIB).empty((1 << 55,), np.uint8)


def test_threads_never_see_each_other_s_parts() -> None:
    pool = ts.BufferPool(48 * KIB)
    kept: list[tuple[Array, Array]] = []
    lock = threading.Lock()

    def work(seed: int) -> None:
        rng = np.random.default_rng(seed)
        for _ in range(150):
            rows, columns = int(rng.integers(1, 9)), int(rng.integers(1, 700))
            data = rng.integers(0, 1 << 60, (rows, columns))
            first = int(rng.integers(0, columns + 1))
            parts = ts.split(data, [first, columns - first], axis=1, out=pool)
            assert_same(parts, slices(data, 1, (first, columns - first)))
            with lock:  # parts change hands, and die in other threads
                kept.append((parts[1], data[:, first:].copy()))
                part, want = kept.pop(int(rng.integers(len(kept)))) if len(kept) > 20 else kept[0]
            assert_same([part], [want])
            part, want = parts[0], data  # drop what is not kept

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(6) as executor:
            list(executor.map(work, range(6)))
    finally:
        sys.setswitchinterval(interval)
    for part, want in kept:
        assert_same([part], [want])
    del part, want
    kept.clear()
    assert pool.in_use_bytes == 0
    assert pool.idle_bytes <= pool.max_bytes


def test_parts_may_die_in_the_garbage_collector_at_any_moment() -> None:
    pool = ts.BufferPool(8 * KIB)
    data = np.arange(600)
    before = gc.get_threshold()
    gc.set_threshold(1)
    try:
        for _ in range(300):
            cycle: list[Any] = ts.split(data, [100, 500], out=pool)
            cycle.append(cycle)
            assert_same(cycle[:2], slices(data, 0, (100, 500)))
            repr(pool)
    finally:
        gc.set_threshold(*before)
    del cycle
    gc.collect()
    assert pool.in_use_bytes == 0


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_has_a_pool_of_its_own(x: Array) -> None:
    pool = ts.BufferPool(64 * MIB)
    part, *idle = ts.split(x, [1, 1, 1], out=pool)
    del idle

    def child() -> None:
        for _ in range(3):
            ts.split(~x, [1, 1, 1], out=pool)
        part[:] = 7
        poison(pool)

    process = multiprocessing.get_context("fork").Process(target=child)
    process.start()
    again = ts.split(x, [1, 1, 1], out=pool)
    process.join(60)
    assert process.exitcode == 0
    assert_same([part, *again], [x[:1].copy(), *slices(x, 0, (1, 1, 1))])


def test_the_end_of_the_interpreter_is_quiet() -> None:
    code = (
        "import sys, numpy as np, tensorsplit as ts\n"
        "pool = ts.BufferPool(1 << 20)\n"
        "sys.parts = ts.split(np.zeros((4, 2 << 20)), num_outputs=4, out=pool)\n"
        "cycle = ts.split(np.zeros(8), num_outputs=2, out=pool); cycle.append(cycle)\n"
        "np.kept = ts.split(np.zeros(8), num_outputs=2, out=pool)\n"
    )
    done = python(code)
    assert (done.returncode, done.stderr) == (0, "")
