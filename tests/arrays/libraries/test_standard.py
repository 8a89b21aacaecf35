"""Arrays of the array API standard: devices, buffers, and what only claims to be one."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import tensorsplit as ts
from tests.refusals import refused


class OnDevice:
    """An array as a library for GPUs has them: the host sees its memory by address only."""

    def __init__(self, held: Any, device: str = "gpu:0") -> None:
        self._held, self.device = held, device
        self.dtype, self.shape, self.ndim = held.dtype, held.shape, held.ndim
        self.size = held.size

    def __array_namespace__(self) -> Any:
        return NAMESPACE

    def __getitem__(self, index: Any) -> OnDevice:
        return OnDevice(self._held[index], self.device)

    def __setitem__(self, index: Any, value: OnDevice) -> None:
        self._held[index] = value._held

    def __array__(self, *_args: object, **_kwargs: object) -> Any:
        raise AssertionError("copied to the host")

    __dlpack__ = tolist = __float__ = __int__ = __array__


class Cuda(OnDevice):
    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return {**self._held.__array_interface__}

    def __getitem__(self, index: Any) -> Cuda:
        return Cuda(self._held[index], self.device)


class Sycl(OnDevice):
    offset = 2

    @property
    def __sycl_usm_array_interface__(self) -> dict[str, Any]:
        held, size, offset = self._held, self._held.itemsize, self.offset
        strides = tuple(stride // size for stride in held.strides)
        pointer = held.ctypes.data - offset * size
        return {"data": (pointer, False), "offset": offset, "strides": strides}

    def __getitem__(self, index: Any) -> Sycl:
        return Sycl(self._held[index], self.device)


NAMESPACE = SimpleNamespace(
    asarray=lambda array, copy: type(array)(array._held.copy(), array.device)
)


@pytest.mark.parametrize("kind", [Cuda, Sycl])
def test_arrays_on_a_device_stay_there(kind: Any) -> None:
    data = np.arange(12.0).reshape(3, 4)
    for copy in (False, True):
        parts = ts.split(kind(data, "gpu:1"), [1, 3], axis=1, copy=copy)
        assert {type(part) for part in parts} == {kind}
        assert {part.device for part in parts} == {"gpu:1"}
        assert np.shares_memory(parts[0]._held, data) is not copy
        np.testing.assert_array_equal(parts[1]._held, data[:, 1:])


@pytest.mark.parametrize("kind", [Cuda, Sycl])
def test_buffers_on_a_device(kind: Any) -> None:
    data, held = kind(np.arange(12.0).reshape(3, 4)), np.zeros((3, 8))
    buffers = [kind(held[:, :1]), kind(held[:, 1:4])]
    assert ts.split(data, [1, 3], axis=1, out=buffers)[1] is buffers[1]
    np.testing.assert_array_equal(held[:, :4], data._held)
    held[:] = 0
    read_only = np.zeros((3, 3))
    read_only.flags.writeable = False
    for code, second in [
        ("TS402", kind(held[:, 1:3])),
        ("TS403", kind(held[:, 1:4].astype(np.float32))),
        ("TS403", kind(held[:, 1:4], "gpu:1")),
        ("TS403", held[:, 1:4]),
        ("TS404", kind(read_only)),
        ("TS405", kind(held[:, :3])),
        ("TS405", data[:, 1:]),
    ]:
        with refused(code, "buffer", parameter="out"):
            ts.split(data, [1, 3], axis=1, out=[buffers[0], second])
    assert not held.any()


@pytest.mark.parametrize("kind", [Cuda, Sycl])
def test_rows_of_one_buffer(kind: Any) -> None:
    """They are seen at a glance to lie apart, or to meet."""
    data, held = np.arange(16.0).reshape(4, 4), np.zeros((6, 4))
    lengths, whole = [1, 3], kind(data)
    apart = [kind(held[3:4]), kind(held[:3])]
    ts.split(whole, lengths, out=apart)
    np.testing.assert_array_equal(held[[3, 0, 1, 2]], data)
    meeting = kind(held[1:5])  # among them, and behind
    with refused("TS405", parameter="out"):
        ts.join(apart, out=meeting)
    ts.join([whole[:1], whole[1:]], out=kind(held[2:]))
    np.testing.assert_array_equal(held[2:], data)
    held[:] = 0
    for buffers in ([held[3:4], held[1:4]], [data[3:], held[:3]], [held[:1], data[1:]]):
        with refused("TS405", "buffer", parameter="out"):
            ts.split(whole, lengths, out=list(map(kind, buffers)))
    assert not held.any()


def test_where_an_array_begins_in_its_memory() -> None:
    class Behind(Sycl):
        offset = 50

    held = np.zeros(6)
    with refused("TS405", "buffers 0 and 1", parameter="out"):
        ts.split(Sycl(np.ones(4)), [2, 2], out=[Sycl(held[:2]), Behind(held[1:3])])
    ts.split(Sycl(np.ones(4)), [2, 2], out=[Sycl(held[:2]), Behind(held[2:4])])
    assert held.tolist() == [1, 1, 1, 1, 0, 0]


def test_buffers_whose_memory_cannot_be_seen() -> None:
    data = OnDevice(np.zeros(4))
    with refused("TS405", "gpu:0", "copy=True"):
        ts.split(data, [1, 3], out=[OnDevice(np.zeros(1)), OnDevice(np.zeros(3))])


def test_what_only_claims_to_be_an_array() -> None:
    class Claims:
        def __array_namespace__(self) -> object:
            return np

    with refused("TS204", "Claims"):
        ts.split(Claims(), num_outputs=2)  # type: ignore[call-overload]
    with refused("TS204"):
        ts.split(type("Lies", (Claims,), {"shape": 3, "ndim": 1})(), num_outputs=2)
    names = {"shape": (2,), "ndim": 1, "dtype": np.dtype(np.float32)}
    names["__array_namespace__"] = lambda _: SimpleNamespace(asarray=None)
    with refused("TS204", "Half"):
        ts.split(type("Half", (), names)(), num_outputs=2)


def test_nothing_is_written_where_one_buffer_is_read_only() -> None:
    class ReadOnly(Cuda):
        def __getitem__(self, index: Any) -> Cuda:
            return ReadOnly(self._held[index])

        def __setitem__(self, index: Any, value: OnDevice) -> None:
            raise ValueError("read-only")

    held = np.zeros(4)
    with refused("TS404", "the buffer"):
        ts.join([Cuda(np.ones(2)), Cuda(np.ones(2))], axis=0, out=ReadOnly(held))
    with refused("TS404", "buffer 1"):
        ts.split(Cuda(np.arange(1.0, 5.0)), [2, 2], out=[Cuda(held[:2]), ReadOnly(held[2:])])
    assert not held.any()


@pytest.mark.parametrize("has_list", [True, False])
def test_lengths_that_are_on_a_device(has_list: bool) -> None:
    class Fetched(OnDevice):
        def __array_namespace__(self) -> Any:
            make = NAMESPACE.asarray
            return SimpleNamespace(asarray=make, reshape=lambda x, s: Fetched(x._held.reshape(s)))

        def __getitem__(self, index: Any) -> Any:
            return self._held[index] if isinstance(index, int) else Fetched(self._held[index])

        def __getattribute__(self, name: str) -> Any:
            if name != "tolist":
                return super().__getattribute__(name)
            if not has_list:
                raise AttributeError
            return self._held.tolist

    data = np.arange(6.0)
    ways: list[Any] = [Fetched(np.array([2, 4])), [Fetched(np.array(2)), 4]]
    for lengths in ways:
        parts = ts.split(Fetched(data), lengths)
        assert [part._held.tolist() for part in parts] == [[0, 1], [2, 3, 4, 5]]


def test_arrays_of_cupy_before_it_had_a_namespace(monkeypatch: pytest.MonkeyPatch) -> None:
    def asarray(array: Any, copy: bool) -> Any:
        return type(array)(array._held.copy())

    class ndarray(OnDevice):  # noqa: N801 - the library's own name
        __array_namespace__ = None  # type: ignore[assignment]
        __module__ = "cupy"

        def __getitem__(self, index: Any) -> Any:
            return ndarray(self._held[index])

    del ndarray.__array_namespace__
    monkeypatch.setitem(
        __import__("sys").modules, "cupy", SimpleNamespace(ndarray=ndarray, asarray=asarray)
    )
    monkeypatch.setattr(OnDevice, "__array_namespace__", None)
    parts = ts.split(ndarray(np.arange(4.0)), [1, 3], copy=True)
    assert [part.shape for part in parts] == [(1,), (3,)]


def test_lengths_that_are_floats_are_not_rounded() -> None:
    """D12: at opset 1 they are floats, and whole."""
    xp = pytest.importorskip("array_api_strict")
    x = xp.asarray(np.arange(12, dtype=np.float32).reshape(6, 2))
    parts = ts.split(x, xp.asarray([2.0, 4.0], dtype=xp.float32), opset=1)
    assert [part.shape for part in parts] == [(2, 2), (4, 2)]
    with refused("TS107", "2.5", operator="onnx.Split-1", parameter="split"):
        ts.split(x, xp.asarray([2.5, 4.5], dtype=xp.float32), opset=1)


def test_more_lengths_than_can_be_listed_are_not_fetched() -> None:
    xp = pytest.importorskip("array_api_strict")
    lengths = xp.broadcast_to(xp.asarray([0]), ((1 << 24) + 1,))
    with refused("TS308", parameter="split"):
        ts.split(xp.zeros((6, 2)), lengths)
