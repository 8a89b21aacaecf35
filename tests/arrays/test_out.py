"""`out=`: everything is checked before a byte is written."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import ml_dtypes
import numpy as np
import pytest

import tensorsplit as ts
from tensorsplit import native
from tensorsplit.arrays import buffers
from tensorsplit.arrays import numpy as numpy_arrays
from tests.oracle import DTYPES, Array, assert_same, random_array, slices
from tests.refusals import refused

DATA = np.arange(1, 25, dtype=np.int32).reshape(6, 4)
POISON = -77


@contextmanager
def refused_untouched(code: str, out: Any, *words: object) -> Iterator[None]:
    """Expect a refusal of `out` that leaves every buffer, and the data, as it was."""
    arrays = [a for a in [DATA, *(out if isinstance(out, list) else [])] if hasattr(a, "tobytes")]
    before = [array.tobytes() for array in arrays]
    with refused(code, *words, operator="onnx.Split-18", parameter="out"):
        yield
    assert [array.tobytes() for array in arrays] == before


class Own(np.ndarray):
    """A class of arrays that adds nothing."""


@pytest.mark.skipif(native.kernel is None, reason="copies go through NumPy here")
@pytest.mark.parametrize("kind", [np.memmap, Own])
def test_the_kernel_writes_to_what_is_its_elements(
    monkeypatch: pytest.MonkeyPatch, kind: type[Array], tmp_path: Path
) -> None:
    file: Any = np.memmap(tmp_path / "x", np.int32, "w+", shape=(6, 4))
    whole = file if kind is np.memmap else np.empty((6, 4), np.int32).view(Own)
    out = [whole[:2], whole[2:]]
    monkeypatch.setattr(numpy_arrays, "check_buffers", None)
    for data in (DATA, DATA.view(Own)):
        whole[...] = POISON
        assert all(a is b for a, b in zip(ts.split(data, [2, 4], out=out), out, strict=True))
        assert (whole == DATA).all()


def refuse(code: str, out: Any, *words: object) -> None:
    """Split `DATA` into (2, 4) and (4, 4), which must be refused."""
    with refused_untouched(code, out, *words):
        ts.split(DATA, [2, 4], out=out)
    with refused_untouched(code, out, *words):
        ts.plan("onnx.Split-18", (6, 4), [2, 4])(DATA, out=out)


def buffer(*shape: int, dtype: Any = np.int32) -> Array:
    return np.full(shape, POISON, dtype)


class TestCount:
    @pytest.mark.parametrize("count", [0, 1, 3])
    def test_one_buffer_for_each_part(self, count: int) -> None:
        refuse("TS401", [buffer(2, 4) for _ in range(count)], count, 2)

    @pytest.mark.parametrize(
        "out", [np.zeros((2, 4)), 2, "ab", {0: 1}, {1}, iter(()), object(), True, False]
    )
    def test_buffers_come_in_a_list(self, out: Any) -> None:
        refuse("TS401", out, type(out).__name__)

    def test_one_buffer(self) -> None:
        refuse("TS401", [buffer(2, 4)], "it is 1 buffer; give a list of 2 arrays")

    def test_a_tuple_will_do(self) -> None:
        out = (buffer(2, 4), buffer(4, 4))
        assert_same(ts.split(DATA, [2, 4], out=out), slices(DATA, 0, (2, 4)))


class TestShape:
    @pytest.mark.parametrize("shape", [(4, 2), (8,), (2, 4, 1), (2, 5), (1, 4), (), (0,)])
    def test_each_buffer_has_the_shape_of_its_part(self, shape: tuple[int, ...]) -> None:
        refuse("TS402", [buffer(*shape), buffer(4, 4)], "buffer 0", shape, (2, 4))

    def test_the_last_buffer_is_checked_before_the_first_is_written(self) -> None:
        refuse("TS402", [buffer(2, 4), buffer(4, 3)], "buffer 1")

    def test_a_part_without_the_axis(self) -> None:
        out = [buffer(1, 4) for _ in range(6)]
        with refused("TS402", (4,), operator="onnx.SplitToSequence-24", parameter="out"):
            ts.split_to_sequence(DATA, keepdims=0, out=out)
        assert all((b == POISON).all() for b in out)


class TestType:
    @pytest.mark.parametrize(
        "dtype", ["int64", "uint32", "float32", "bool", ">i4", object, "V4", ml_dtypes.int4]
    )
    def test_each_buffer_has_the_type_of_the_data(self, dtype: Any) -> None:
        refuse("TS403", [buffer(2, 4), np.zeros((4, 4), dtype)], "buffer 1", "int32")

    @pytest.mark.parametrize(
        "junk",
        [None, [[0] * 4] * 4, 3, "x", memoryview(b"a"), np.int32(3), Mock(spec=np.ndarray)],
    )
    def test_each_buffer_is_an_array(self, junk: Any) -> None:
        refuse("TS403", [buffer(2, 4), junk], "buffer 1", type(junk).__name__)

    def test_the_length_of_strings_belongs_to_the_type(self) -> None:
        words = np.array(["ab", "cd"], "U2")
        with refused("TS403", parameter="out"):
            ts.split(words, [1, 1], out=[np.zeros(1, "U2"), np.zeros(1, "U3")])

    def test_masks_can_not_be_written(self) -> None:
        masked: Any = np.ma.array(buffer(2, 4), mask=True, hard_mask=True)
        refuse("TS403", [masked, buffer(4, 4)], "MaskedArray")
        with refused("TS403", "MaskedArray", parameter="out"):
            ts.split(np.ma.array(DATA), [2, 4], out=[buffer(2, 4), buffer(4, 4)])


class TestWritable:
    def test_a_read_only_buffer(self) -> None:
        fixed = buffer(4, 4)
        fixed.flags.writeable = False
        refuse("TS404", [buffer(2, 4), fixed], "buffer 1")

    def test_a_broadcast_buffer(self) -> None:
        refuse("TS404", [buffer(2, 4), np.broadcast_to(buffer(4), (4, 4))], "buffer 1")

    def test_a_read_only_file(self, tmp_path: Path) -> None:
        buffer(4, 4).tofile(tmp_path / "x")
        file: Any = np.memmap(tmp_path / "x", np.int32, "r", shape=(4, 4))
        refuse("TS404", [buffer(2, 4), file], "buffer 1")


class TestOverlap:
    def test_with_the_data(self) -> None:
        data = DATA.copy()
        before = data.tobytes()
        for out in (
            [data[:2], buffer(4, 4)],
            [buffer(2, 4), data[2:]],
            [data[::-3], buffer(4, 4)],
            [buffer(2, 4), data[2:][::-1, ::-1]],
            ts.split(data, [2, 4]),
        ):
            with refused("TS405", "the data", parameter="out"):
                ts.split(data, [2, 4], out=out)
        assert data.tobytes() == before

    def test_with_each_other(self) -> None:
        whole = buffer(8, 4)
        refuse("TS405", [whole[:2], whole[1:5]], "buffers 0 and 1")
        refuse("TS405", [whole[:2], whole[4::-1][1:]], "share")
        refuse("TS405", [whole[0:6:4], whole[4:8]], "share")

    def test_the_same_buffer_twice(self) -> None:
        same = buffer(3, 4)
        with refused_untouched("TS405", [same], "buffers 0 and 1"):
            ts.split(DATA, [3, 3], out=[same, same])

    def test_with_one_that_began_long_before(self) -> None:
        data, whole = np.arange(10, dtype=np.int32), buffer(20)
        wide, between, inside = whole[:16:2], whole[1:2], whole[14:15]
        with refused("TS405", "buffers 0 and 2", parameter="out"):
            ts.split(data, [8, 1, 1], out=[wide, between, inside])
        assert (whole == POISON).all()

    def test_with_itself(self) -> None:
        row = np.lib.stride_tricks.as_strided(buffer(4), (4, 4), (0, 4))
        window = np.lib.stride_tricks.as_strided(buffer(7), (4, 4), (4, 4))
        for strange in (row, window):
            refuse("TS405", [buffer(2, 4), strange], "itself")

    @pytest.mark.parametrize(
        ("shape", "strides"),
        [
            *(((2,), (0,)), ((2,), (3,)), ((2,), (-3,)), ((3,), (3,)), ((2, 3), (8, 4))),
            *(((2, 3), (11, 4)), ((3, 2), (4, 7)), ((2, 2, 2), (7, 4, 32))),
        ],
    )
    def test_with_itself_by_a_byte(self, shape: Any, strides: Any) -> None:
        """Elements of 4 bytes lie on each other where one begins in another."""
        held = np.zeros(100, np.uint8)[40:]
        strange = np.ndarray(shape, np.int32, held[:60], 20 if strides[0] < 0 else 0, strides)
        with refused("TS405", "itself", parameter="out"):
            ts.split(np.ones(shape, np.int32), [shape[0]], out=[strange])
        assert not held.any()

    @pytest.mark.parametrize(
        ("shape", "strides"), [((2,), (4,)), ((2,), (5,)), ((2, 3), (12, 4)), ((3, 2), (4, 12))]
    )
    def test_not_with_itself(self, shape: Any, strides: Any) -> None:
        free = np.ndarray(shape, np.int32, np.zeros(60, np.uint8), 0, strides)
        ts.split(np.ones(shape, np.int32), [shape[0]], out=[free])
        assert (free == 1).all()

    @pytest.mark.parametrize("start", [1, 7, 8, 9])
    @pytest.mark.parametrize("is_turned", [False, True])
    def test_with_each_other_by_a_byte(self, start: int, is_turned: bool) -> None:
        raw = np.zeros(40, np.uint8)
        out = [raw[:8], raw[start : start + 8]][:: -1 if is_turned else 1]
        data = np.arange(1, 17, dtype=np.uint8)
        if start >= 8:
            ts.split(data, [8, 8], out=out)
            assert np.array_equal(np.concatenate(out), data)
            return
        with refused("TS405", "share memory", parameter="out"):
            ts.split(data, [8, 8], out=out)
        assert not raw.any()

    @pytest.mark.parametrize("start", [-8, -7, -1, 0, 7, 15, 16])
    def test_with_the_data_by_a_byte(self, start: int) -> None:
        raw = np.zeros(60, np.uint8)
        data, out = raw[20:36], [np.zeros(8, np.uint8), raw[20 + start : 28 + start]]
        data[:] = np.arange(1, 17)
        before = raw.copy()
        if start in (-8, 16):
            ts.split(data, [8, 8], out=out)
            assert np.array_equal(out[1], before[28:36])
            return
        with refused("TS405", "the data", parameter="out"):
            ts.split(data, [8, 8], out=out)
        assert np.array_equal(raw, before)

    @pytest.mark.parametrize("by", [1, 3, -1, -3])
    def test_by_a_byte_among_many(self, by: int) -> None:
        """Columns of 4 bytes, of which one begins in another's last byte or ends in its first."""
        raw = np.zeros(2 * 200 * 4, np.uint8)
        columns = raw.view(np.int32).reshape(2, 200)[:, ::2]
        out = [columns[:, i : i + 1] for i in range(100)]
        out[70] = np.ndarray((2, 1), np.int32, raw, 30 * 8 + by, (800, 4))
        with refused("TS405", parameter="out"):
            ts.split(np.ones((2, 100), np.int32), num_outputs=100, axis=1, out=out)
        assert not raw.any()
        out[70] = np.ndarray((2, 1), np.int32, raw, 30 * 8 + 4, (800, 4))
        ts.split(np.ones((2, 100), np.int32), num_outputs=100, axis=1, out=out)
        assert raw.view(np.int32).sum() == 200

    def test_that_is_too_hard_to_find_out(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Whether strided arrays meet may take for ever: they count as meeting then."""
        monkeypatch.setattr(buffers, "_MAX_WORK", 0)
        raw = np.zeros(64, np.int32)
        odd, even = raw[1::2], raw[::2]
        with refused("TS405", "share memory", parameter="out"):
            ts.split(np.ones(64, np.int32), [32, 32], out=[odd, even])
        assert not raw.any()

    def test_among_very_many(self) -> None:
        whole = buffer(2, 1000)
        data = np.arange(2000, dtype=np.int32).reshape(2, 1000)
        out = [whole[:, i : i + 1] for i in range(1000)]
        out[700] = out[300]
        with refused("TS405", parameter="out"):
            ts.split(data, num_outputs=1000, axis=1, out=out)
        assert (whole == POISON).all()

    def test_partly_among_very_many(self) -> None:
        raw = np.full(2 * 1000 * 4 + 2, 7, np.uint8)
        whole = raw[:-2].view(np.int32).reshape(2, 1000)
        shifted = raw[2:].view(np.int32).reshape(2, 1000)
        out = [whole[:, i : i + 1] for i in range(1000)]
        out[999] = shifted[:, 500:501]
        with refused("TS405", parameter="out"):
            ts.split(np.zeros((2, 1000), np.int32), num_outputs=1000, axis=1, out=out)
        assert (raw == 7).all()


class TestNoOverlap:
    def test_empty_buffers_share_nothing(self) -> None:
        empty = buffer(0, 4)
        got = ts.split(DATA, [0, 6, 0], out=[empty, buffer(6, 4), empty])
        assert_same(got, slices(DATA, 0, (0, 6, 0)))

    def test_pieces_of_one_array(self) -> None:
        whole = buffer(6, 4)
        ts.split(DATA, [2, 4], out=[whole[:2], whole[2:]])
        assert (whole == DATA).all()

    @pytest.mark.parametrize("flip", [1, -1])
    def test_columns_that_interleave(self, flip: int) -> None:
        whole = buffer(6, 4)
        columns = [whole[::flip, i : i + 1] for i in range(4)]
        ts.split(DATA, num_outputs=4, axis=1, out=columns)
        assert (whole[::flip] == DATA).all()

    def test_rows_that_interleave(self) -> None:
        whole = buffer(6, 4)
        ts.split(DATA, [3, 3], out=[whole[::2], whole[1::2]])
        assert (whole[::2] == DATA[:3]).all()
        assert (whole[1::2] == DATA[3:]).all()

    def test_buffers_between_the_rows_of_the_data(self) -> None:
        whole = np.zeros((12, 4), np.int32)
        whole[::2] = DATA
        data, rest = whole[::2], whole[1::2]
        ts.split(data, [2, 4], out=[rest[:2], rest[2:]])
        assert (data == DATA).all()
        assert (rest == DATA).all()

    @pytest.mark.parametrize("flip", [1, -1])
    def test_very_many_columns_that_interleave(self, flip: int) -> None:
        data = np.arange(20_000).reshape(2, 10_000)
        whole = np.zeros_like(data)
        columns = [whole[::flip, i] for i in range(10_000)]
        ts.split_to_sequence(data, axis=1, keepdims=0, out=columns)
        assert (whole[::flip] == data).all()

    def test_layout_of_a_buffer_does_not_matter(self) -> None:
        out = [buffer(4, 2).T, buffer(8, 8)[::-2, ::2]]
        assert_same(ts.split(DATA, [2, 4], out=out), slices(DATA, 0, (2, 4)))

    def test_a_file_can_be_a_buffer(self, tmp_path: Path) -> None:
        file: Any = np.memmap(tmp_path / "x", np.int32, "w+", shape=(6, 4))
        ts.split(DATA, [2, 4], out=[file[:2], file[2:]])
        file.flush()
        assert (np.fromfile(tmp_path / "x", np.int32) == DATA.ravel()).all()


class Answering(Sequence[Any]):
    """A sequence whose buffers are made anew each time they are asked for."""

    def __init__(self, array: Array) -> None:
        self.array, self.asked = array, list[Any]()

    def __len__(self) -> int:
        return 2

    def __getitem__(self, index: Any) -> Any:
        self.array.shape = (2, 12)  # code of the caller may do this, or anything
        if index > 1:
            self.array.shape = (6, 4)
            raise IndexError
        self.asked.append(buffer((2, 4)[index], 4))
        return self.asked[-1]


class Fickle(list[Any]):
    """A list that gives other buffers to each who iterates over it."""

    def __iter__(self) -> Any:
        return iter([buffer(2, 4), buffer(4, 4)])


class Hooked(np.ndarray):
    """A buffer that changes the list it is in when it is written to, or asked something."""

    home: list[Any]

    def _meddle(self) -> None:
        for other in range(len(self.home)):
            self.home[other] = None

    def __setitem__(self, index: Any, value: Any) -> None:
        self._meddle()
        super().__setitem__(index, value)

    @property
    def flags(self) -> Any:
        self._meddle()
        return super().flags


class Death:
    """Changes a list when the last reference to it goes."""

    def __init__(self, home: list[Any]) -> None:
        self.home = home

    def __del__(self) -> None:
        self.home.clear()


@pytest.mark.usefixtures("either_way")
class TestSnapshot:
    """The buffers are looked at once: those are checked, written and returned."""

    @pytest.mark.parametrize("through", ["split", "plan"])
    def test_of_a_sequence_that_runs_code(self, through: str) -> None:
        data = DATA.copy()
        plan = ts.plan("onnx.Split-18", (6, 4), [2, 4])
        for _ in range(2):
            out = Answering(data)
            got = plan(data, out=out) if through == "plan" else ts.split(data, [2, 4], out=out)
            assert_same(got, slices(DATA, 0, (2, 4)))
            assert len(out.asked) == 2
            assert all(left is right for left, right in zip(got, out.asked, strict=True))

    def test_of_a_list_that_runs_code(self) -> None:
        for out in (Fickle(), Fickle([None, None])):
            assert_same(ts.split(DATA, [2, 4], out=out), slices(DATA, 0, (2, 4)))

    def test_whose_buffers_run_code(self) -> None:
        out: list[Any] = [buffer(2, 4).view(Hooked), buffer(4, 4).view(Hooked)]
        first, last = out
        first.home = last.home = out
        got = ts.split(DATA, [2, 4], out=out)
        assert got[0] is first
        assert got[1] is last
        assert first.tobytes() + last.tobytes() == DATA.tobytes()

    def test_whose_old_elements_run_code(self) -> None:
        out: list[Any] = []
        first, last = np.empty((2, 4), object), np.empty((4, 4), object)
        first[:], last[:] = Death(out), None
        out += [first, last]
        data = DATA.astype(object)
        got = ts.split(data, [2, 4], out=out)
        assert out == []
        assert got[0] is first
        assert got[1] is last
        assert_same(got, slices(data, 0, (2, 4)))

    @pytest.mark.parametrize("width", [4, 40_000])
    def test_among_threads(self, width: int) -> None:
        data = np.arange(6 * width, dtype=np.int32).reshape(6, width)
        pairs = [[buffer(2, width), buffer(4, width)] for _ in range(2)]
        shared = list(pairs[0])
        done = threading.Event()

        def swap() -> None:
            while not done.is_set():
                for pair in pairs:
                    shared[:] = pair

        thread = threading.Thread(target=swap)
        thread.start()
        try:
            for _ in range(60):
                for pair in pairs:
                    for each in pair:
                        each[:] = POISON
                for part, want in zip(
                    ts.split(data, [2, 4], out=shared), slices(data, 0, (2, 4)), strict=True
                ):
                    assert (part == want).all()
        finally:
            done.set()
            thread.join()

    def test_that_can_not_be_taken(self) -> None:
        class Broken(Answering):
            def __getitem__(self, index: Any) -> Any:
                raise RuntimeError("no")

        refuse("TS401", Broken(DATA), "Broken")

    def test_ends_where_there_are_more_buffers_than_parts_can_be(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        class Endless(Answering):
            def __getitem__(self, index: Any) -> Any:
                self.asked.append(index)
                return DATA

        monkeypatch.setattr(buffers, "MAX_PARTS", 5)
        out = Endless(DATA)
        refuse("TS401", out, "6 buffers")
        assert out.asked == 2 * [0, 1, 2, 3, 4, 5]


@pytest.mark.parametrize("name", DTYPES)
def test_buffers_keep_the_bits_of_every_type(name: str, rng: np.random.Generator) -> None:
    data = random_array(name, (6, 4), rng)
    for axis, sizes in ((0, (2, 0, 4)), (1, (1, 3)), (1, (4,))):
        want = slices(data, axis, sizes)
        out = [np.empty(part.shape, data.dtype) for part in want]
        assert_same(ts.variadic_split(data, axis, sizes, out=out), want)


def test_lengths_are_refused_before_buffers_are_looked_at() -> None:
    with refused("TS302", operator="onnx.Split-18", parameter="split"):
        ts.split(DATA, [2, 3], out=[buffer(2, 4), buffer(3, 4)])


class Metres(np.ndarray):
    """Arrays with functions of their own, as those of libraries of units have."""

    def __array_function__(self, *given: Any, **named: Any) -> Any:
        return super().__array_function__(*given, **named)


def test_units_are_not_lost_in_buffers_and_pools() -> None:
    plain = np.arange(24.0).reshape(4, 6)
    data = plain.view(Metres)
    parts = ts.split(data, [2, 2], copy=True)
    assert [type(part) for part in parts] == [Metres, Metres]
    plan = ts.plan("onnx.Split-18", (4, 6), [2, 2])
    pool = ts.BufferPool(1 << 20)
    buffers = [np.full((2, 6), 7.0), np.full((2, 6), 7.0)]
    calls: list[Callable[[], Any]] = [
        lambda: ts.split(data, [2, 2], out=pool),
        lambda: ts.split(data, [2, 2], out=buffers),
        lambda: plan(data, out=pool),
        lambda: plan(data, out=buffers),
        lambda: plan(plain, out=[buffers[0], buffers[1].view(Metres)]),
        lambda: plan.join(parts, out=pool),
        lambda: plan.join(parts, out=np.empty((4, 6))),
        lambda: plan.join([plain[:2], plain[2:]], out=np.empty((4, 6)).view(Metres)),
        lambda: ts.join([plain[:2], parts[1]], out=np.empty((4, 6))),
    ]
    for _ in range(2):  # the second time, arrays like these have been split
        for call in calls:
            with refused("TS403", "Metres", "use `copy=True`", parameter="out"):
                call()
        assert all((buffer == 7).all() for buffer in buffers)
        ts.split(plain, [2, 2], out=[np.empty((2, 6)), np.empty((2, 6))])


def test_units_of_a_library_are_kept_or_refused() -> None:
    unyt = pytest.importorskip("unyt")
    data = unyt.unyt_array(np.arange(4.0), "m")
    assert [str(part.units) for part in ts.split(data, [1, 3], copy=True)] == ["m", "m"]
    with refused("TS403", "unyt_array", parameter="out"):
        ts.split(data, [2, 2], out=[unyt.unyt_array(np.empty(2), "km") for _ in range(2)])
    with refused("TS403", "unyt_array", parameter="out"):
        ts.split(data, [2, 2], out=ts.BufferPool(1 << 20))
