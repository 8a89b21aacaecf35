"""Eager calls remember their plans; they must never answer for another call."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tensorsplit as ts
from tensorsplit import native
from tensorsplit.arrays import eager as api
from tensorsplit.arrays import remembered
from tensorsplit.arrays.arguments import bind_values
from tests.oracle import assert_same, slices
from tests.refusals import refused

X = np.arange(24, dtype=np.float32).reshape(6, 4)


MEMOS = (api._split, api._split_to_sequence, api._variadic_split, api._openvino_split)


def forget() -> None:
    for memo in MEMOS:
        memo.plans.clear()


@pytest.fixture(autouse=True, params=["native", "python"])
def _forgetful(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Calls told apart by the kernel, and without it; nothing is remembered at first."""
    if request.param == "python":
        monkeypatch.setattr(native, "kernel", None)
        for memo in MEMOS:
            monkeypatch.setattr(memo, "plans", remembered.Plans())
    elif native.kernel is None:
        pytest.skip("there is no kernel here")
    else:
        forget()
    yield
    forget()


def shapes(parts: list[Any]) -> list[tuple[int, ...]]:
    return [part.shape for part in parts]


def test_a_plan_is_made_once() -> None:
    for _ in range(3):
        for split in ([2, 4], (2, 4), np.array([2, 4])):
            ts.split(X, split)
    plans = list(api._split.plans.values())
    assert len(plans) <= 3
    ts.split(X + 1, [2, 4])
    assert list(map(id, api._split.plans.values())) == list(map(id, plans))


def test_another_shape_is_another_call() -> None:
    assert shapes(ts.split(X, num_outputs=2)) == [(3, 4), (3, 4)]
    assert shapes(ts.split(X.T, num_outputs=2)) == [(2, 6), (2, 6)]
    assert shapes(ts.split(X.ravel(), num_outputs=2)) == [(12,), (12,)]


def test_another_element_type_is_another_call() -> None:
    for _ in range(4):  # then it is the one that is compared first
        ts.split(X, [2, 4], opset=1)
    for _ in range(2):
        with refused("TS201", "int64"):
            ts.split(X.astype(int), [2, 4], opset=1)


def test_another_opset_is_another_call() -> None:
    for _ in range(2):
        assert shapes(ts.split(X, num_outputs=4, opset=18)) == [*[(2, 4)] * 3, (0, 4)]
        with refused("TS303", operator="onnx.Split-13"):
            ts.split(X, num_outputs=4, opset=17)


def test_another_operator_is_another_call() -> None:
    for _ in range(2):
        assert shapes(ts.split_to_sequence(X, [2, 4])) == [(2, 4), (4, 4)]
        assert shapes(ts.split(X, [2, 4])) == [(2, 4), (4, 4)]
        assert shapes(ts.variadic_split(X, 0, [2, -1])) == [(2, 4), (4, 4)]
        assert shapes(ts.openvino.split(X, 0, 2)) == [(3, 4), (3, 4)]
        assert shapes(ts.split_to_sequence(X, 2)) == [(2, 4)] * 3
        with refused("TS106"):
            ts.split(X, 2)  # type: ignore[call-overload]


@pytest.mark.parametrize("one", [True, 1.0, np.True_, np.float64(1)])
def test_one_is_not_any_other_one(one: Any) -> None:
    ts.split(X, axis=1, num_outputs=1)
    ts.split(X, [1, 5])
    for _ in range(2):
        with refused("TS105", parameter="axis"):
            ts.split(X, axis=one, num_outputs=1)
        with refused("TS105", parameter="num_outputs"):
            ts.split(X, axis=1, num_outputs=one)
        with refused("TS105", parameter="split"):
            ts.split(X, [one, 5])


def test_zero_is_not_false_or_minus_zero() -> None:
    ts.split_to_sequence(X, axis=0, keepdims=0)
    for zero in (False, -0.0, np.False_):
        with refused("TS105", parameter="axis"):
            ts.split_to_sequence(X, axis=zero, keepdims=0)  # type: ignore[arg-type]


class Integer(int):
    """Not an integer itself."""


class Tuple(tuple[int, ...]):
    """Not a tuple itself."""


ARGUMENTS: list[Any] = [
    *[None, 0, 1, 2, 254, 255, 256, -1, -2, 1 << 31, (1 << 63) - 1, 1 << 63, -(1 << 63), 1 << 64],
    *[sign * (1 << power) + more for sign in (1, -1) for power in (61, 62) for more in (-1, 0, 1)],
    *[True, False, 1.0, 0.0, -0.0, "1", b"\x01", Integer(1), object()],
    *[[], [0], [1], [1, 1], [1, 2], [255], [256], [True], [1.0], [None], [[1]], [1 << 64]],
    *[[np.int64(1)], [np.uint64(1)], [np.int8(1)], [Integer(1)], [b"\x01"], Tuple([1])],
    *[np.int64(1), np.uint64(1), np.int8(1), np.float64(1), np.True_],
    *[np.array(1), np.array([1]), np.array([[1]]), np.array([1, 0]), np.array([1], np.uint64)],
    *[np.array([1, 0], np.int32), np.array([1], np.int32), np.array([1], ">i8"), np.array([1.0])],
    *[np.array([256], ">i8"), np.array([1], ">i4"), np.array([True]), np.array([1], object)],
    *[np.array([1], f">i{size}").view(f"<i{size}") for size in (4, 8)],  # the same bytes
]


def meaning(value: Any) -> Any:
    """What must tell a value from another: all there is to it, but the kind of its container.

    NumPy's scalars are arrays of rank 0, and its integers in a list mean their value.
    """
    if isinstance(value, (np.ndarray, np.generic)):
        return "array", value.dtype.str, value.shape, value.tobytes()
    if type(value) in (list, tuple):
        return "list", *(meaning(int(x) if isinstance(x, np.integer) else x) for x in value)
    return type(value), repr(value)


def test_no_two_calls_are_taken_for_each_other() -> None:
    plans = remembered.make_plans()
    for pair in itertools.product(ARGUMENTS, repeat=2):
        for call in (pair, (*pair, 1), (*pair, None), ([1, 2], *pair)):
            found, means = plans.find(X, call), [*map(meaning, call)]
            assert found is None or found == means
            plans.add(X, call, means)
    assert len(plans) > 1000


items = st.none() | st.integers(-2, 300) | st.integers()
some_calls = st.lists(
    items | st.lists(st.integers(-2, 300) | st.integers(), max_size=4), min_size=1
)


@given(first=some_calls, second=some_calls)
def test_calls_are_the_same_only_if_their_arguments_are(
    first: list[Any], second: list[Any]
) -> None:
    plans = remembered.make_plans()
    plans.add(X, (*first,), 1)
    assert plans.find(X, (*second,)) is None or first == second
    assert plans.find(X, (*first,)) == (1 if len(plans) else None)


def test_arrays_of_other_types_and_shapes_are_not_the_same() -> None:
    fields: Any = [("a", "f4"), ("b", "f4")]
    types = ["?", "i1", "u1", "i2", "f2", "i4", "f4", ">f4", "i8", "f8", ">f8", "c8", "S4", "U1"]
    types += ["V4", "V8", "M8[s]", "M8[ms]", "M8[D]", "m8[s]", "O"]
    kinds = [*map(np.dtype, types), np.dtype(fields), np.dtypes.StringDType()]
    shapes = [(6, 4), (4, 6), (24,), (1, 6, 4), (6, 4, 1), (255,), (256,), (0, 6), ()]
    data = [np.zeros(s, t) for s in shapes for t in kinds]
    plans = remembered.make_plans()
    for number, array in enumerate(data):
        assert plans.find(array, ([1], 0)) is None
        plans.add(array, ([1], 0), number)
    assert [plans.find(array, ([1], 0)) for array in data] == [*range(len(data))]


class Dims:
    """A shape of a class of its own, as libraries have them."""

    def __init__(self, *dims: Any) -> None:
        self.dims = dims

    def __len__(self) -> int:
        return len(self.dims)

    def __getitem__(self, index: int) -> Any:
        return self.dims[index]


class Endless(Dims):
    """A shape that says how many dimensions it has, and has no end."""

    def __len__(self) -> int:
        return sys.maxsize


class Shaped:
    """Whatever has a shape and an element type."""

    def __init__(self, shape: object) -> None:
        self.shape, self.dtype = shape, np.dtype(np.float32)


def test_shapes_of_any_class_are_told_apart() -> None:
    plans = remembered.make_plans()
    shapes = [(6, 4), (6, 5), (5, 4), (24,), (6, 4, 1), ()]
    for number, shape in enumerate(shapes):
        assert plans.find(Shaped(Dims(*shape)), ([1], 0)) is None
        plans.add(Shaped(Dims(*shape)), ([1], 0), number)
    again = [plans.find(Shaped(Dims(*shape)), ([1], 0)) for shape in shapes]
    assert again == ([None] * 6 if native.kernel is None else [*range(6)])
    none: list[object] = [Dims(6, None), Dims(6, "4"), Dims(6, True), Dims(*[1] * 65), Endless(6)]
    for strange in (*none, 6, {}):
        plans.add(Shaped(strange), ([1], 0), "strange")
        assert plans.find(Shaped(strange), ([1], 0)) is None


def test_equal_types_are_the_same() -> None:
    for make in (lambda: np.dtype("f4").newbyteorder(">"), lambda: np.dtype([("a", "i4")])):
        first, second = (np.zeros(6, make()) for _ in range(2))
        plans = remembered.make_plans()
        plans.add(first, ([1],), 1)
        assert plans.find(second, ([1],)) == 1


def test_a_remembered_plan_splits_no_array_of_another_shape() -> None:
    assert shapes(ts.split(X, [2, 4])) == [(2, 4), (4, 4)]
    (plan,) = api._split.plans.values()
    for other in (X.T, X[:5], X[None], X[:, :3]):
        assert plan.views(other) is None


def test_a_list_that_has_changed_is_another_list() -> None:
    lengths = [2, 4]
    assert shapes(ts.split(X, lengths)) == [(2, 4), (4, 4)]
    lengths[:] = [1, 2, 3]
    assert shapes(ts.split(X, lengths)) == [(1, 4), (2, 4), (3, 4)]
    lengths.pop()
    with refused("TS302"):
        ts.split(X, lengths)


def test_an_array_that_has_changed_is_another_array() -> None:
    lengths = np.array([2, 4])
    assert shapes(ts.split(X, lengths)) == [(2, 4), (4, 4)]
    lengths[:] = [5, 1]
    assert shapes(ts.split(X, lengths)) == [(5, 4), (1, 4)]
    assert shapes(ts.split(X, lengths[::-1])) == [(1, 4), (5, 4)]


def test_the_same_bytes_are_not_the_same_array() -> None:
    x = np.zeros(512)
    assert shapes(ts.split(x, np.array([2, 510], ">i2"))) == [(2,), (510,)]
    with refused("TS302", "[512, 65025]"):
        ts.split(x, np.array([2, 510], ">i2").view("<u2"))
    assert shapes(ts.split_to_sequence(x, np.array(512))) == [(512,)]
    assert shapes(ts.split_to_sequence(x, np.array([512]))) == [(512,)]
    assert shapes(ts.split_to_sequence(x[:5], np.array(2))) == [(2,), (2,), (1,)]
    with refused("TS302"):
        ts.split_to_sequence(x[:5], np.array([2]))
    with refused("TS106"):
        ts.split_to_sequence(x[:5], np.array([[2]]))


def test_a_mask_is_not_overlooked() -> None:
    ts.split(X, np.array([2, 4]))
    masked: Any = np.ma.array([2, 9], mask=[False, True], fill_value=4)
    with refused("TS107", "masked"):
        ts.split(X, masked)


class Changing:
    """An integer that is another one each time; its hash and equality don't say so."""

    def __init__(self) -> None:
        self.value = 0

    def __index__(self) -> int:
        self.value += 1
        return self.value


def test_an_object_that_changes_is_asked_each_time() -> None:
    count = Changing()
    for number in (1, 2, 3):
        parts = ts.split(X, num_outputs=count)
        assert len(parts) == number
    part, rest = Changing(), Changing()
    part.value, rest.value = 1, 3
    assert shapes(ts.split(X, [part, rest])) == [(2, 4), (4, 4)]
    rest.value = 2
    assert shapes(ts.split(X, [part, rest])) == [(3, 4), (3, 4)]


def test_the_rank_of_the_data_is_not_taken_for_an_argument() -> None:
    """A list of one element and a dimension may be told by the same numbers."""
    plans = remembered.make_plans()
    calls = [((6, 6), (5,)), ((6,), ([21],)), ((6, 0), ()), ((6,), (None,)), ((6, 6, 21), ())]
    for number, (shape, arguments) in enumerate(calls):
        assert plans.find(np.zeros(shape), arguments) is None
        plans.add(np.zeros(shape), arguments, number)
        plans.add(np.zeros(shape), arguments, "another")
        assert plans.find(np.zeros(shape), arguments) in (number, "another")
    assert len(plans) == len(calls)


@pytest.mark.parametrize("make", [list, np.array])
def test_lengths_that_change_in_the_middle_of_a_call_are_read_once(
    make: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    lengths = make([2, 4])

    def bind_later(*arguments: Any) -> Any:
        lengths[:] = [3, 3]  # as another thread might
        return bind_values(*arguments)

    monkeypatch.setattr("tensorsplit.arrays.eager.bind_values", bind_later)
    assert shapes(ts.split(X, lengths)) == [(2, 4), (4, 4)]
    monkeypatch.undo()
    assert shapes(ts.split(X, lengths)) == [(3, 4), (3, 4)]
    assert shapes(ts.split(X, make([2, 4]))) == [(2, 4), (4, 4)]


@pytest.mark.parametrize(
    "other", [b"\x02\x00\x00\x00", "2", 2.0, True, np.float32(2), bytearray(8), memoryview(b"2")]
)
def test_what_has_the_bytes_of_lengths_is_not_taken_for_them(other: Any) -> None:
    ts.split_to_sequence(X, 2)
    ts.split_to_sequence(X, np.array(2))
    ts.split(X, [2, 4])
    ts.split(X, np.array([2, 4]))
    for _ in range(2):
        with pytest.raises(ts.SplitError):
            ts.split_to_sequence(X, other)
        with pytest.raises(ts.SplitError):
            ts.split(X, other)
        with pytest.raises(ts.SplitError):
            ts.split(X, [other, 4])


def test_integers_of_numpy_with_the_same_bytes_are_not_the_same() -> None:
    x = np.zeros(256)
    for _ in range(2):
        assert shapes(ts.split(x, [np.uint8(200), 56])) == [(200,), (56,)]
        with refused("TS301", "-56"):
            ts.split(x, [np.int8(-56), 56])
        with refused("TS105", parameter="split"):
            ts.split(x, [b"\xc8", 56])  # type: ignore[list-item]


@pytest.mark.parametrize("lengths", [np.array([2, 4], object), np.array([2.0, 4.0])])
def test_an_array_of_a_wrong_type_is_refused_each_time(lengths: Any) -> None:
    ts.split(X, np.array([2, 4]))
    for _ in range(2):
        with refused("TS105", parameter="split"):
            ts.split(X, lengths)


def test_a_list_of_a_kind_of_its_own_is_asked_each_time() -> None:
    class Lengths(list[int]):
        pass

    lengths = Lengths([2, 4])
    assert shapes(ts.split(X, lengths)) == [(2, 4), (4, 4)]
    assert not api._split.plans
    lengths[:] = [5, 1]
    assert shapes(ts.split(X, lengths)) == [(5, 4), (1, 4)]


@pytest.mark.parametrize("axis", [np.int64(1), np.array(1), np.int8(-1)])
def test_integers_of_numpy_are_remembered_too(axis: Any) -> None:
    for _ in range(2):
        assert shapes(ts.split(X, [np.int64(1), np.int32(3)], axis=axis)) == [(6, 1), (6, 3)]
    assert len(api._split.plans) == 1


def test_copies_and_buffers_of_a_remembered_call_are_checked() -> None:
    assert_same(ts.split(X, [2, 4]), slices(X, 0, (2, 4)))
    copies = ts.split(X, [2, 4], copy=True)
    assert not any(np.shares_memory(part, X) for part in copies)
    with refused("TS401", parameter="out"):
        ts.split(X, [2, 4], out=[])
    with refused("TS105", parameter="copy"):
        ts.split(X, [2, 4], copy="no")  # type: ignore[call-overload]


def test_refusals_are_not_remembered() -> None:
    for _ in range(2):
        with refused("TS302"):
            ts.split(X, [2, 3])
    assert not api._split.plans


def parts_remembered() -> int:
    return sum(len(plan.sizes) for plan in api._split.plans.values())


def test_the_memory_is_bounded() -> None:
    x = np.zeros((1, 5000))
    for size in range(3000):
        ts.split(x, [size, 5000 - size], axis=1)
        assert len(api._split.plans) <= api._MOST_PLANS
    for size in range(1, 40):
        ts.split(x, [size] + [1] * (5000 - size), axis=1)
        assert 0 < parts_remembered() <= api._MOST_PARTS


def test_a_split_into_more_parts_than_are_kept_is_not_remembered() -> None:
    x = np.zeros((api._MOST_PARTS, 1))
    for _ in range(2):
        assert len(ts.split(x, num_outputs=api._MOST_PARTS)) == api._MOST_PARTS
    assert not api._split.plans


def test_threads_get_their_own_answers() -> None:
    def work(seed: int) -> None:
        rng = np.random.default_rng(seed)
        for _ in range(300):
            dim = int(rng.integers(1, 40))
            x = rng.standard_normal((dim, 3))
            first = int(rng.integers(0, dim + 1))
            sizes = (first, dim - first)
            assert_same(ts.split(x, list(sizes)), slices(x, 0, sizes))
            assert_same(ts.split(x, np.array(sizes), copy=True), slices(x, 0, sizes))
            assert_same(ts.variadic_split(x, 0, [first, -1]), slices(x, 0, sizes))

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(work, range(8)))
    finally:
        sys.setswitchinterval(interval)


class Own(np.ndarray[Any, Any]):
    """A class of arrays."""


class Other(np.ndarray[Any, Any]):
    """Another one."""


def mapped(folder: Path) -> np.ndarray:
    array = np.memmap(folder / "x", np.float32, "w+", shape=X.shape)
    array[...] = X
    return array


KINDS: dict[str, Callable[[Path], Any]] = {
    "ndarray": lambda _: X,
    "subclass": lambda _: X.view(Own),
    "memmap": mapped,
    "masked": lambda _: np.ma.masked_array(X, X % 3 == 0),
    "matrix": lambda _: np.asmatrix(X),
    "records": lambda _: np.rec.array(X.view([("a", "f4"), ("b", "f4")])),
}


@pytest.mark.parametrize("make", KINDS.values(), ids=KINDS)
def test_arrays_of_every_class_of_numpy_are_found_again(
    make: Callable[[Path], Any], decided: list[Any], tmp_path: Path
) -> None:
    array = make(tmp_path)
    want = [array[:2], array[2:]]
    for split in ([2, 4], [2, 4], [2, 4]):
        for parts in (
            ts.variadic_split(array, 0, split),
            ts.variadic_split(array[:], 0, split, copy=True),
        ):
            assert [type(part) for part in parts] == [type(part) for part in want]
            assert_same(list(map(np.asarray, parts)), list(map(np.asarray, want)))
    assert len(decided) == 1


def test_arrays_of_two_classes_are_not_the_same(decided: list[Any]) -> None:
    for _ in range(3):
        for array in (X, X.view(Own), X.view(Other)):
            parts = ts.split(array, [2, 4])
            assert [type(part) for part in parts] == [type(array)] * 2
            assert_same(list(map(np.asarray, parts)), slices(X, 0, (2, 4)))
    assert len(decided) == 3


class Kind:
    """An element type of a library, which says that it is any other one."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __str__(self) -> str:
        return self.name

    def __eq__(self, other: object) -> bool:
        return True

    def __hash__(self) -> int:
        return 1


class Standard:
    """An array of a library that follows the standard, as far as it goes here."""

    asarray = np.asarray
    ndim = 1

    def __init__(self, dtype: Any, shape: Any = (6,)) -> None:
        self.dtype, self._shape = dtype, shape

    @property
    def shape(self) -> Any:
        if isinstance(self._shape, BaseException):
            raise self._shape
        return self._shape

    def __array_namespace__(self) -> Any:
        return self

    def __getitem__(self, index: tuple[slice, ...]) -> Any:
        return index[0]


def test_element_types_that_say_that_they_are_equal_are_not_taken_for_each_other() -> None:
    split: Any = ts.split
    plain, other = Kind("float32"), Kind("int64")
    for _ in range(3):
        assert split(Standard(plain), [2, 4], opset=1) == [slice(0, 2), slice(2, 6)]
        with refused("TS201", "int64"):
            ts.split(Standard(other), [2, 4], opset=1)


def test_arrays_of_another_shape_or_of_none_are_not_taken_for_each_other() -> None:
    split: Any = ts.split
    kind = Kind("float32")
    for _ in range(3):
        assert split(Standard(kind), num_outputs=2) == [slice(0, 3), slice(3, 6)]
        assert split(Standard(kind, (8,)), num_outputs=2) == [slice(0, 4), slice(4, 8)]
        for shape in ((6.0,), (True,), ValueError(), "6"):
            with pytest.raises(ts.SplitError):
                ts.split(Standard(kind, shape), num_outputs=3)


def test_what_interrupts_an_array_that_is_asked_is_not_overlooked() -> None:
    array = Standard(Kind("float32"))
    ts.split(array, [2, 4])
    array._shape = KeyboardInterrupt()
    with pytest.raises(KeyboardInterrupt):
        ts.split(array, [2, 4])
