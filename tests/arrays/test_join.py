"""The way back: parts that are joined are the array that was split, bit for bit."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tensorsplit as ts
from tensorsplit import native
from tensorsplit.arrays import numpy as numpy_arrays
from tests.arrays.test_properties import Case, cases, plan_of
from tests.oracle import DTYPES, Array, random_array, same
from tests.refusals import refused

PLAN = ts.plan("onnx.Split-18", (4, 6), [2, 0, 4], axis=1)


def data(*shape: int, dtype: str = "float", seed: int = 3) -> Array:
    return random_array(dtype, shape, np.random.default_rng(seed))


def is_the_array(got: Any, want: Array) -> None:
    assert type(got) is np.ndarray
    assert same(got, want)


@settings(max_examples=40)
@given(cases(), st.randoms())
def test_a_plan_is_its_own_inverse(case: Case, random: Any) -> None:
    plan, x = plan_of(case), case.data
    is_the_array(plan.join(plan(x), like=x), x)
    copied = plan(x, copy=True)
    whole = plan.join(copied, like=x)
    is_the_array(whole, x)
    if len(copied) > 1:
        assert not any(np.may_share_memory(whole, part) for part in copied)
    out = np.full(x.shape, 7).astype(x.dtype)
    assert plan.join(copied, like=x, out=out) is out
    is_the_array(out, x)
    is_the_array(plan.join(copied, like=x, out=ts.BufferPool(1 << 20)), x)
    is_the_array(plan.join(plan(x), like=x, copy=True), x)
    is_the_array(ts.join(copied, axis=case.axis, keepdims=case.keepdims, like=x), x)
    if case.sizes and x.size:
        other = list(copied)
        number = random.randrange(len(other))
        other[number] = other[number][None]
        with refused("TS312", f"part {number} has shape {other[number].shape}"):
            plan.join(other)


@settings(max_examples=40)
@given(cases())
def test_views_of_one_array_are_joined_without_a_copy(case: Case) -> None:
    plan, x = plan_of(case), case.data
    x.flags.writeable = False
    parts = plan(x)
    if parts and x.size:
        whole = plan.join(parts, copy=False)
        is_the_array(whole, x)
        assert whole.ctypes.data == x.ctypes.data
        assert not whole.flags.writeable
        assert not np.may_share_memory(plan.join(parts, copy=True), x)
        assert [n for s, n in zip(x.strides, x.shape, strict=True) if n > 1] == [
            n for s, n in zip(whole.strides, whole.shape, strict=True) if n > 1
        ]


LAYOUTS: dict[str, Callable[[Array], Array]] = {
    "in C order": lambda x: x,
    "transposed": np.transpose,
    "reversed": lambda x: x[::-1, ::-1],
    "sliced": lambda x: np.repeat(np.repeat(x, 2, 0), 3, 1)[::2, 1::3],
    "without elements": lambda x: x[:0],
    "a broadcast row": lambda x: np.broadcast_to(x[:1], x.shape),
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", DTYPES)
def test_every_element_type_and_layout(name: str, layout: str) -> None:
    x = LAYOUTS[layout](data(6, 6, dtype=name))
    for plan in (
        ts.plan("openvino.VariadicSplit-1", x.shape, axis=1, split_lengths=[2, 0, -1]),
        ts.plan("openvino.VariadicSplit-1", x.shape, axis=0, split_lengths=[-1]),
    ):
        for parts in (plan(x), plan(x, copy=True)):
            is_the_array(plan.join(parts), x)
            out = np.zeros(x.shape, x.dtype)
            is_the_array(plan.join(parts, out=out), x)
        if name != "string as StringDType":
            assert np.shares_memory(plan.join(plan(x), copy=False), x) == (x.size > 0)


def test_no_view_is_made_of_what_only_looks_alike() -> None:
    x = data(4, 6)
    a, b, c = PLAN(x)
    halves = ts.plan("onnx.Split-18", (4, 6), [3, 3], axis=1)
    left, right = halves(x)
    row = x[0]
    rows = ts.plan("onnx.SplitToSequence-11", (3, 6), keepdims=0)
    lone = ts.plan("onnx.Split-18", (1, 6), [1])
    apart = [x[:, :2], x[:, 2:2], x.copy()[:, 2:]]
    square, turned = x.ravel()[:4].reshape(2, 2), x.ravel()[4:8].reshape(2, 2).T
    memory = np.arange(6, dtype=np.int64)
    beside = [np.frombuffer(memory.data[at : at + 3], np.int64) for at in (0, 3)]
    elsewhere: list[tuple[ts.PreparedSplit, list[Array], Array]] = [
        (halves, [right, left], np.hstack([right, left])),
        (halves, [left, left], np.hstack([left, left])),
        (rows, [row, row, row], np.stack([row, row, row])),
        (ts.plan("Split", (2, 6), [1, 1]), [row[None], row[None]], np.stack([row, row])),
        (PLAN, apart, x),
        (PLAN, [a.copy(), b, c], x),
        (halves, [x[:, ::2], x[:, 1::2]], np.hstack([x[:, ::2], x[:, 1::2]])),
        (ts.plan("Split", (4, 2), [2, 2]), [square, turned], np.vstack([square, turned])),
        (ts.plan("Split", (6,), [3, 3]), beside, memory),
    ]
    for plan, parts, want in elsewhere:
        whole = plan.join(parts)
        is_the_array(whole, want)
        assert not any(np.may_share_memory(whole, part) for part in parts)
        with refused("TS314", parameter="copy"):
            plan.join(parts, copy=False)
    assert np.shares_memory(lone.join([x[:1]], copy=False), x)
    c.flags.writeable = False
    assert not PLAN.join([a, b, c]).flags.writeable
    whole = halves.join([left, right])
    whole[...] = 1
    assert (x == 1).all(), "it is a view of the same memory"


def test_parts_without_elements_do_not_keep_the_others_from_being_views() -> None:
    x = data(4, 6)
    whole = ts.join([np.empty((4, 0), x.dtype), x[:, :2], x[:, 2:]], axis=1)
    is_the_array(whole, x)
    assert np.shares_memory(whole, x)


@pytest.mark.parametrize("copy", [None, False])
def test_an_array_alone_is_joined_without_a_copy(copy: bool | None) -> None:
    x = data(4, 6).copy()
    whole = ts.join([x], axis=1, copy=copy)
    is_the_array(whole, x)
    assert np.shares_memory(whole, x)


class Own(np.ndarray):
    """A class of arrays that adds nothing."""


@pytest.mark.skipif(native.kernel is None, reason="copies go through NumPy here")
@pytest.mark.parametrize("kind", [np.memmap, Own])
def test_the_kernel_joins_what_is_its_elements(
    monkeypatch: pytest.MonkeyPatch, kind: type[Array], tmp_path: Path
) -> None:
    x = data(6, 8, dtype="float")
    x.tofile(tmp_path / "x")
    given = np.memmap(tmp_path / "x", x.dtype, "r", shape=x.shape) if kind is np.memmap else x
    parts = [given[:, :3].view(kind), given[:, 3:].view(kind)]
    monkeypatch.setattr(numpy_arrays, "_join_by_numpy", None)
    for whole in (
        ts.join(parts, axis=1, copy=True),
        ts.join(parts, axis=1, out=np.empty_like(x)),
    ):
        assert type(whole) in (np.ndarray, Own)
        assert same(np.asarray(whole), x)


def test_the_memory_of_a_view_lives_as_long_as_the_view() -> None:
    x = data(512, 512)
    want = x.copy()
    halves = ts.plan("onnx.Split-18", x.shape, num_outputs=2)
    whole = halves.join(halves(x), copy=False)
    del x
    data(512, 512, seed=9)
    is_the_array(whole, want)
    is_the_array(halves.join(halves(whole), copy=False), want)


WRONG: list[tuple[str, str, Callable[[list[Any]], Any]]] = [
    ("TS311", "2 parts given; give 3 parts", lambda p: p[:2]),
    ("TS311", "4 parts given; give 3 parts", lambda p: [*p, p[0]]),
    ("TS311", "of type ndarray", lambda p: p[0]),
    ("TS311", "of type str", lambda _: "abc"),
    ("TS311", "of type Mock", lambda _: Mock(dict)),  # whose __class__ lies
    ("TS204", "of type list", lambda p: [p[0], [[]], p[2]]),
    ("TS312", "part 2 has shape (4, 3); give one of shape (4, 4)", lambda p: [*p[:2], p[2][:, 1:]]),
    ("TS312", "part 0 has shape (2, 4); give one of shape (4, 2)", lambda p: [p[0].T, *p[1:]]),
    ("TS312", "part 0 has shape (8,)", lambda p: [p[0].ravel(), *p[1:]]),
    ("TS313", "it is float64", lambda p: [p[0], p[1].astype(float), p[2]]),
    ("TS313", "it is >f4", lambda p: [*p[:2], p[2].astype(">f4")]),
]


@pytest.mark.parametrize(("code", "words", "change"), WRONG)
def test_wrong_parts_are_refused_by_name(code: str, words: str, change: Any) -> None:
    parts = PLAN(data(4, 6))
    out = data(4, 6, seed=4)
    before = out.copy()
    options: list[dict[str, Any]] = [{}, {"out": out}]
    for more in options:
        with refused(code, words, operator="onnx.Split-18"):
            PLAN.join(change(parts), **more)
    assert same(out, before)


def test_an_element_type_that_the_version_does_not_take() -> None:
    x = data(4, 6, dtype="bfloat16")
    old = ts.plan("onnx.Split-11", (4, 6), [2, 4], axis=1)
    with refused("TS201", "bfloat16", operator="onnx.Split-11", parameter="parts"):
        old.join([x[:, :2], x[:, 2:]])
    out = data(4, 6, dtype="bfloat16")
    before = out.copy()
    with refused("TS201", "bfloat16", operator="onnx.Split-11", parameter="parts"):
        old.join([x[:, :2].copy(), x[:, 2:].copy()], out=out)
    assert same(out, before)


def test_wrong_buffers_are_refused() -> None:
    x = data(4, 6)
    parts = PLAN(x)
    frozen = np.zeros((4, 6), np.float32)
    frozen.flags.writeable = False
    wrong: list[tuple[str, Any]] = [
        ("TS402", np.zeros((6, 4), np.float32)),
        ("TS403", np.zeros((4, 6))),
        ("TS403", [np.zeros((4, 6), np.float32)]),
        ("TS403", np.ma.zeros((4, 6), np.float32)),
        ("TS403", Mock(spec=np.ndarray)),
        ("TS404", frozen),
        ("TS405", x),
        ("TS405", x[::-1]),
        ("TS405", np.lib.stride_tricks.as_strided(np.zeros(6, np.float32), (4, 6), (0, 4))),
    ]
    for code, out in wrong:
        with refused(code, operator="onnx.Split-18", parameter="out"):
            PLAN.join(parts, out=out)
    apart = np.zeros((4, 12), np.float32)[:, ::2]
    assert PLAN.join(parts, out=apart) is apart
    assert same(apart, x)


def test_join_without_a_plan() -> None:
    x = data(4, 6)
    is_the_array(ts.join([x[:, :1], x[:, 1:1], x[:, 1:]], axis=-1), x)
    is_the_array(ts.join(list(x), keepdims=0), x)
    is_the_array(ts.join(tuple(x.T), axis=1, keepdims=0), x)
    is_the_array(ts.join({"a": x[:2], "b": x[2:]}), x)
    is_the_array(ts.join([], like=x[:0]), x[:0])
    is_the_array(ts.join([x[0, 0], x[0, 1]], keepdims=0), x[0, :2])
    assert np.shares_memory(ts.join([x[:1], x[1:]], copy=False), x)
    wrong: list[tuple[str, str, Callable[[], Any]]] = [
        ("TS311", "parts", lambda: ts.join([])),
        ("TS312", "parts", lambda: ts.join([x[:2], x[2:, 1:]])),
        ("TS312", "parts", lambda: ts.join([x[:2], x[2:, 0]])),
        ("TS312", "parts", lambda: ts.join([x[:2], x[2:3]], like=x)),
        ("TS312", "parts", lambda: ts.join([x[:2, 1:], x[2:, 1:]], like=x)),
        ("TS313", "like", lambda: ts.join([x], like=np.ones((4, 6)))),
        ("TS203", "axis", lambda: ts.join([x], axis=2)),
        ("TS203", "axis", lambda: ts.join(list(x), axis=3, keepdims=0)),
        ("TS202", "parts", lambda: ts.join([x[0, 0]])),
        ("TS105", "axis", lambda: ts.join([x], axis=0.0)),  # type: ignore[call-overload]
        ("TS107", "keepdims", lambda: ts.join([x], keepdims=2)),
        ("TS105", "copy", lambda: ts.join([x], copy=2)),  # type: ignore[call-overload]
        ("TS204", "parts[0]", lambda: ts.join(range(2**70))),  # type: ignore[arg-type]
    ]
    for code, parameter, function in wrong:
        with refused(code, operator="join", parameter=parameter):
            function()


def test_a_plan_for_dimensions_with_names_joins_what_fits() -> None:
    x = data(7, 4)
    plan = ts.plan("onnx.Split-18", ("N", 4), num_outputs=3)
    is_the_array(plan.join(plan(x, copy=True)), x)
    with refused("TS312", "part 1 has shape (2, 4); give one of shape (3, 4)"):
        plan.join([x[:3], x[:2], x[:2]])
    with refused("TS312", "part 0 has shape (3, 3)"):
        plan.join([x[:3, 1:], x[:3], x[:1]])
    side = ts.plan("onnx.Split-18", ("N", 4), [1, 3], axis=1)
    is_the_array(side.join(side(x, copy=True)), x)
    with refused("TS312", "part 1 has shape (6, 3); give one of shape (7, 3)"):
        side.join([x[:, :1], x[1:, 1:]])


@pytest.mark.usefixtures("either_way")
@pytest.mark.parametrize("dtype", ["float", "int8", "string"])
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_parts_of_any_kind_are_written_to_a_buffer_of_any_kind(
    axis: int, dtype: str, tmp_path: Path
) -> None:
    want = data(4, 6, dtype=dtype)
    parts = [part.copy() for part in np.split(want, [1, 1, 3], axis)]
    given: list[Any] = [parts, tuple(parts), dict(zip("abcd", parts, strict=True))]
    given.append([parts[0], *(np.asfortranarray(part) for part in parts[1:])])
    wide = np.empty((4, 12), want.dtype)
    buffers = [np.empty_like(want), np.empty_like(want, order="F"), wide[:, ::2], wide[::-1, 6:]]
    if dtype != "string":
        buffers.append(np.memmap(tmp_path / "out", want.dtype, "w+", shape=want.shape))
    for each, out in itertools.product(given, buffers):
        for options in ({}, {"like": want}, {"copy": True}):
            out[...] = out.dtype.type()
            assert ts.join(each, axis=axis, out=out, **options) is out
            assert same(np.asarray(out), want)


@pytest.mark.parametrize("count", [1, 2])
def test_elements_that_are_there_once_are_joined_without_a_copy(count: int) -> None:
    """A stride of 0 repeats elements, but for an axis of the length 1."""
    x = np.lib.stride_tricks.as_strided(data(4), (count, 4), (0, 4))
    whole = ts.join([x[:1], x[1:]], axis=0)
    assert same(whole, x)
    assert np.may_share_memory(whole, x) == (count == 1)


@pytest.mark.usefixtures("either_way")
def test_parts_without_their_axis_are_written_to_a_buffer() -> None:
    want = data(3, 4)
    for axis in (0, 1):
        parts = [each.copy() for each in np.moveaxis(want, axis, 0)]
        out = np.empty_like(want)
        assert ts.join(parts, axis=axis, keepdims=0, out=out) is out
        assert same(out, want)


@pytest.mark.usefixtures("either_way")
def test_a_buffer_that_does_not_fit_is_not_written_to() -> None:
    whole = data(4, 6)
    parts = [whole[:, :2], whole[:, 2:]]
    frozen, before = np.zeros((4, 6), np.float32), whole.copy()
    frozen.flags.writeable = False
    wrong: list[tuple[str, Any]] = [
        ("TS402", np.zeros((4, 7), np.float32)),
        ("TS402", np.zeros((4, 5), np.float32)),
        ("TS403", np.zeros((4, 6), np.int32)),
        ("TS404", frozen),
        ("TS405", whole),
        ("TS405", whole[:, ::-1]),
    ]
    for code, out in wrong:
        held = out.copy()
        with refused(code, parameter="out"):
            ts.join(parts, axis=1, out=out)
        assert same(out, held)
    halves, out = [whole[:, :3].copy(), whole[:, 3:].copy()], np.zeros((4, 6), np.float32)
    with refused("TS402", "the whole has (4, 2, 3)", parameter="out"):
        ts.join(halves, axis=1, keepdims=0, out=out)
    assert not out.any()
    assert same(whole, before)


def test_masks_stay() -> None:
    x = data(4, 6)
    for mask in (np.ma.nomask, np.zeros((4, 6), bool), x > 0):
        masked = np.ma.array(x, mask=mask, fill_value=7, hard_mask=True)
        for copy in (None, True):
            whole = PLAN.join(PLAN(masked), copy=copy)
            assert isinstance(whole, np.ma.MaskedArray)
            assert same(np.ma.getdata(whole), x)
            assert (whole.mask is np.ma.nomask) == (mask is np.ma.nomask)
            assert np.array_equal(np.ma.getmaskarray(whole), np.ma.getmaskarray(masked))
            assert (whole.fill_value, whole.hardmask) == (7, True)
    parts = PLAN(np.ma.array(x, mask=x > 0))
    for out in (np.zeros((4, 6), np.float32), ts.BufferPool(0)):
        with refused("TS403", "mask", parameter="out"):
            PLAN.join(parts, out=out)


def test_subclasses_and_memory_maps(tmp_path: Any) -> None:
    class Named(np.ndarray):
        pass

    named = data(4, 6).view(Named)
    whole = PLAN.join(PLAN(named))
    assert type(whole) is Named
    assert same(whole.view(np.ndarray), named.view(np.ndarray))
    big = np.arange(24.0).reshape(4, 6).astype(">f8").view(Named)
    assert PLAN.join(PLAN(big)).dtype == np.dtype(">f8")
    np.save(tmp_path / "x.npy", data(4, 6))
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    whole = PLAN.join(PLAN(mapped), copy=False)
    assert type(whole) is np.memmap
    assert np.shares_memory(whole, mapped)
    is_the_array(np.asarray(PLAN.join(PLAN(mapped, copy=True))), data(4, 6))
    np.testing.assert_array_equal(whole, mapped)


def test_the_signs_of_a_changed_list_are_not_followed() -> None:
    x = data(4, 6)

    class Changing(list[Any]):
        """A list that gives other parts each time."""

        def __iter__(self) -> Any:
            taken = iter([x[:, :2], x[:, 2:2], x[:, 2:]])
            self.clear()
            return taken

    is_the_array(PLAN.join(Changing([1, 2, 3])), x)


@pytest.mark.parametrize("start", [-256, -255, -1, 0, 1, 511, 512])
def test_into_memory_that_a_part_meets_by_a_byte(start: int) -> None:
    raw = np.random.default_rng(28).integers(0, 255, 1100, np.uint8)
    out, parts = raw[300:812], [np.arange(256, dtype=np.uint8), raw[300 + start : 556 + start]]
    before, plan = raw.copy(), ts.plan("onnx.Split-18", (512,), [256, 256])
    if start in (-256, 512):
        plan.join(parts, out=out)
        assert np.array_equal(out[:256], parts[0])
        assert np.array_equal(out[256:], before[300 + start : 556 + start])
        return
    with refused("TS405", "part 1", parameter="out"):
        plan.join(parts, out=out)
    assert np.array_equal(raw, before)


def test_joins_of_shapes_that_were_seen_before_are_made_and_refused_alike() -> None:
    rng = np.random.default_rng(5)
    for _ in range(3):
        left, right = rng.random((2, 4, 4))
        is_the_array(ts.join([left, right], axis=0), np.vstack([left, right]))
        is_the_array(ts.join([left, right], axis=1), np.hstack([left, right]))
        is_the_array(ts.join([left, right], axis=-1, keepdims=0), np.dstack([left, right]))
        is_the_array(ts.join([left, right[:, :1]], axis=1), np.c_[left, right[:, :1]])
        with pytest.raises(ts.SplitError, match=r"\[TS312\].*part 1 has shape \(4, 1\)"):
            ts.join([left, right[:, :1]])
        with pytest.raises(ts.SplitError, match=r"\[TS203\].*the axis is 2"):
            ts.join([left, right], axis=2)


def test_long_strips_of_rows_that_lie_apart() -> None:
    x = np.resize(np.arange(251, dtype=np.uint8), (2, 6, 300_000))
    parts = [x[:, :3], x[:, :3, :5].copy()]
    assert np.array_equal(ts.join(parts, axis=2), np.concatenate(parts, axis=2))
