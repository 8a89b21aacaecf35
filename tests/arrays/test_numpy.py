"""Parts of NumPy arrays: views by default, real copies if asked for, whatever the layout."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tensorsplit as ts
from tests.oracle import DTYPES, SIXTEEN, Array, assert_same, element_type, random_array, slices
from tests.refusals import refused


def read_only(x: Array) -> Array:
    x.flags.writeable = False
    return x


LAYOUTS: dict[str, Callable[[Array], Array]] = {
    "C-ordered": lambda x: x,
    "read-only": read_only,
    "Fortran-ordered": np.asfortranarray,
    "transposed": lambda x: np.ascontiguousarray(x.T).T,
    "reversed": lambda x: x[::-1, ::-1],
    "strided": lambda x: np.repeat(np.repeat(x, 2, 0), 3, 1)[::2, ::3],
    "reversed and strided": lambda x: np.repeat(x[::-1], 2, 0)[::-2],
    "other byte order": lambda x: x.astype(x.dtype.newbyteorder()),
    "broadcast": lambda x: np.broadcast_to(x[:, :1], x.shape),
    "unaligned": lambda x: np.frombuffer(b"\x00" + x.tobytes(), np.uint8)[1:].view(x.dtype)
    .reshape(x.shape),
    "zero-size": lambda x: x[:, :0],
    "zero-size on the axis": lambda x: x[:0],
}  # fmt: skip

CALLS: dict[str, Callable[..., list[Array]]] = {
    "split": lambda x, **how: ts.split(x, [len(x), 0], **how),
    "split in two": lambda x, **how: ts.split(x, [len(x) // 2, len(x) - len(x) // 2], **how),
    "one part": lambda x, **how: ts.split(x, num_outputs=1, **how),
    "sequence": lambda x, **how: ts.split_to_sequence(x, 4, **how),
    "without the axis": lambda x, **how: ts.split_to_sequence(x, keepdims=0, **how),
    "variadic": lambda x, **how: ts.variadic_split(x, 0, [-1], **how),
    "OpenVINO split": lambda x, **how: ts.openvino.split(x, -2, 1, **how),
    "plan": lambda x, **how: ts.plan("onnx.Split-13", x.shape, [len(x)])(x, **how),
}


@pytest.fixture(params=["int16", "float", "double", "complex64"])
def x(request: pytest.FixtureRequest, rng: np.random.Generator) -> Array:
    return random_array(request.param, (7, 5), rng)


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
class TestLayouts:
    def test_parts_are_views(self, x: Array, layout: Any, call: Any) -> None:
        data = layout(x)
        for part in call(data):
            assert part.size == 0 or np.shares_memory(part, data)
            assert part.flags.writeable == data.flags.writeable
            assert part.dtype == data.dtype
            assert not part.flags.owndata

    def test_copies_own_their_memory_in_c_order(self, x: Array, layout: Any, call: Any) -> None:
        data = layout(x)
        parts = call(data, copy=True)
        for part in parts:
            assert part.flags.c_contiguous
            assert part.flags.owndata
            assert part.flags.writeable
            assert part.base is None
            assert not np.may_share_memory(part, data)
        assert_same(parts, [part.copy() for part in call(data)])

    def test_buffers_hold_the_parts(self, x: Array, layout: Any, call: Any) -> None:
        data = layout(x)
        want = call(data)
        out = [np.empty(part.shape, part.dtype) for part in want]
        got = call(data, out=out)
        assert got is not out
        assert all(left is right for left, right in zip(got, out, strict=True))
        assert_same(got, want)

    def test_the_data_is_left_alone(self, x: Array, layout: Any, call: Any) -> None:
        data = layout(x)
        before = data.tobytes()
        for part in call(data, copy=True):
            part[...] = 1
        assert data.tobytes() == before


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
def test_bits_stay_on_every_axis(layout: Any, axis: int, rng: np.random.Generator) -> None:
    plane = layout(random_array("double", (6, 6), rng))
    x = np.broadcast_to(plane, (6, *plane.shape)) if axis == 0 else plane[:, None, :]
    sizes = (0, x.shape[axis])
    for copy in (False, True):
        assert_same(ts.split(x, sizes, axis=axis, copy=copy), slices(x, axis, sizes))


def test_writing_to_a_view_writes_to_the_data() -> None:
    x = np.zeros((4, 2))
    ts.split(x, [1, 3])[1][0, 1] = 5
    assert x[1, 1] == 5


SEQUENCE_TYPES = [name for name in DTYPES if element_type(name) in SIXTEEN]


@pytest.mark.parametrize("name", SEQUENCE_TYPES)
@pytest.mark.parametrize("copy", [False, True])
def test_without_its_only_axis_a_part_is_still_an_array(
    name: str, copy: bool, rng: np.random.Generator
) -> None:
    data = random_array(name, (5,), rng)
    parts = ts.split_to_sequence(data, keepdims=0, copy=copy)
    assert [type(part) for part in parts] == [np.ndarray] * 5
    assert_same(parts, slices(data, 0, (1,) * 5, keepdims=False))
    assert all(np.shares_memory(part, data) is not copy for part in parts)


def test_a_part_of_strings_is_an_array_of_objects() -> None:
    words = np.array(["a", "b"], object)
    parts = ts.split_to_sequence(words, keepdims=0)
    assert [part.shape for part in parts] == [(), ()]
    assert [part.dtype for part in parts] == [object, object]
    assert [part[()] for part in parts] == ["a", "b"]


def test_ten_thousand_parts() -> None:
    x = np.arange(20_000).reshape(10_000, 2)
    parts = ts.split(x, num_outputs=10_000)
    assert len(parts) == 10_000
    assert (np.concatenate(parts) == x).all()
    assert all(part.shape == (1, 2) for part in parts)
    out = [np.empty(2, x.dtype) for _ in range(10_000)]
    ts.split_to_sequence(x, keepdims=0, out=out)
    assert (np.stack(out) == x).all()


@pytest.mark.parametrize("copy", [0, 1, np.bool_(False), np.bool_(True)])
def test_copy_is_true_or_false(copy: Any) -> None:
    x = np.zeros(4)
    assert np.shares_memory(ts.split(x, [4], copy=copy)[0], x) is not bool(copy)


class _Liar(np.ndarray):
    """An array that says it is an integer."""

    __class__ = int  # type: ignore[assignment]  # that is the lie


@pytest.mark.parametrize(
    "copy",
    [np.zeros(2).view(_Liar), None, 2, "yes", "", [], np.array([True, False]), 1.0, object()],
)
def test_copy_is_nothing_else(copy: Any) -> None:
    with refused("TS105", operator="onnx.Split-18", parameter="copy"):
        ts.split(np.zeros(4), [4], copy=copy)
    with refused("TS105", operator="onnx.Split-18", parameter="copy"):
        ts.plan("onnx.Split-18", (4,), [4])(np.zeros(4), copy=copy)


def lying(**said: object) -> type[Array]:
    """A class whose arrays say these things of themselves."""

    def saying(value: object) -> property:
        return property(lambda _: value)

    return type("Lying", (np.ndarray,), {name: saying(value) for name, value in said.items()})


PLAN = ts.plan("onnx.Split-18", (6, 4), axis=0, num_outputs=2)
ON_LIARS: dict[str, Callable[[Array], list[Array]]] = {
    "views": lambda x: ts.split(x, num_outputs=2),
    "copies": lambda x: ts.split(x, num_outputs=2, copy=True),
    "buffers": lambda x: ts.split(x, num_outputs=2, out=[np.empty((3, 4)), np.empty((3, 4))]),
    "a pool": lambda x: ts.split(x, num_outputs=2, out=ts.BufferPool(1 << 20)),
    "a plan": PLAN,
    "a plan, copied": lambda x: PLAN(x, copy=True),
    "a join": lambda x: [ts.join([x[:3], x[3:]])[:3], x[3:]],
    "a join in a buffer": lambda x: [x[:3], ts.join([x[:3], x[3:]], out=np.empty((6, 4)))[3:]],
    "a join in a pool": lambda x: [x[:3], ts.join([x[:3], x[3:]], out=ts.BufferPool(1 << 20))[3:]],
    "a join by a plan": lambda x: [x[:3], PLAN.join([x[:3], x[3:]])[3:]],
}


@pytest.mark.parametrize("call", ON_LIARS.values(), ids=ON_LIARS)
@pytest.mark.parametrize(
    "said",
    [
        *({"shape": said} for said in ((6,), (6, 5), (6.0, 4.0), (-6, 4), "64", [6, 4], 3, None)),
        {"shape": np.array([6, 4])},
        *({"dtype": said} for said in ("f4", None, 3, np.float32, np.dtype(object))),
        *({"size": said} for said in (3, None)),
    ],
    ids=str,
)
def test_what_counts_is_the_memory_and_not_what_a_class_says(
    said: dict[str, object], call: Callable[[Array], list[Array]], rng: np.random.Generator
) -> None:
    x = rng.random((6, 4))
    assert_same([np.asarray(part) for part in call(x.view(lying(**said)))], [x[:3], x[3:]])


def test_arrays_that_say_the_same_of_themselves_are_not_alike(rng: np.random.Generator) -> None:
    """What was decided for one does not fit the other."""
    kind = lying(shape=(6, 4))
    for rows in (6, 8, 6):
        x = rng.random((rows, 4))
        for copy in (False, True):
            parts = ts.split(x.view(kind), num_outputs=2, copy=copy)
            assert_same([np.asarray(part) for part in parts], [x[: rows // 2], x[rows // 2 :]])


def test_operands_that_lie(rng: np.random.Generator) -> None:
    x = rng.random((6, 4))
    for size in (None, 10**9):
        lengths = np.array([2, 4]).view(lying(size=size))
        assert_same(ts.split(x, lengths), [x[:2], x[2:]])


class TestSubclasses:
    def test_a_memory_map_gives_views_of_the_file(self, tmp_path: Path) -> None:
        x: Any = np.memmap(tmp_path / "x", np.float32, "w+", shape=(6, 4))
        x[...] = np.arange(24).reshape(6, 4)
        parts = ts.split(x, [2, 4])
        assert all(np.shares_memory(part, x) for part in parts)
        assert_same(parts, slices(x, 0, (2, 4)))
        parts = ts.split(x, [2, 4], copy=True)
        assert not any(np.may_share_memory(part, x) for part in parts)
        assert_same(parts, slices(x, 0, (2, 4)))

    def test_a_read_only_memory_map_gives_read_only_views(self, tmp_path: Path) -> None:
        np.arange(24, dtype=np.float32).tofile(tmp_path / "x")
        x: Any = np.memmap(tmp_path / "x", np.float32, "r", shape=(6, 4))
        assert not any(part.flags.writeable for part in ts.split(x, [2, 4]))
        assert all(part.flags.writeable for part in ts.split(x, [2, 4], copy=True))

    def test_a_masked_array_keeps_its_mask(self) -> None:
        x: Any = np.ma.masked_inside(np.arange(6), 2, 3)
        for copy in (False, True):
            first, second = ts.split(x, [2, 4], copy=copy)
            assert first.tolist() == [0, 1]
            assert second.tolist() == [None, None, 4, 5]
            assert second.data.tolist() == [2, 3, 4, 5]
        assert [part.shape for part in ts.split_to_sequence(x, keepdims=0)] == [()] * 6

    def test_a_matrix_loses_the_axis_as_any_array_does(self) -> None:
        x: Any = np.arange(6).reshape(2, 3).view(np.matrix)
        for copy in (False, True):
            parts = ts.split_to_sequence(x, axis=0, keepdims=0, copy=copy)
            assert [part.tolist() for part in parts] == [[0, 1, 2], [3, 4, 5]]

    def test_a_scalar_of_numpy_is_a_scalar(self) -> None:
        for scalar in (np.float32(1), np.str_("a"), np.bool_(True), np.ma.masked):
            with refused("TS202", operator="onnx.Split-18", parameter="input"):
                ts.split(scalar, [1])


@pytest.mark.parametrize(
    ("data", "name"),
    [
        (np.zeros(4, "M8[s]"), "datetime64"),
        (np.zeros(4, "m8[s]"), "timedelta64"),
        (np.zeros(4, [("a", "i4")]), "void"),
        (np.zeros(4, "V3"), "void"),
        (np.zeros(4, np.longdouble), np.dtype(np.longdouble).name),
    ],
)
def test_types_that_no_standard_has(data: Array, name: str) -> None:
    with refused("TS201", name, operator="onnx.Split-18", parameter="input"):
        ts.split(data, [1, 3])
    for copy in (False, True):
        assert_same(ts.variadic_split(data, 0, [1, -1], copy=copy), slices(data, 0, (1, 3)))


def test_a_string_type_whose_missing_value_can_not_be_hashed() -> None:
    x = np.array(["a", "b"], np.dtypes.StringDType(na_object=[]))
    for _ in range(2):
        assert [part.tolist() for part in ts.split(x, [1, 1])] == [["a"], ["b"]]
