"""Messages between processes: what is sent arrives, bit for bit, or is refused."""

from __future__ import annotations

import threading
from collections import UserDict
from itertools import count
from multiprocessing import Pipe
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tensorsplit.engines import messages

RANDOM = np.random.default_rng(11)
DTYPES = [
    *"?bBhHiIlLqQefdFD",
    *(">i4", ">f8", "<U3", "S2", "M8[s]", "m8[ms]"),
    *(ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.int4, ml_dtypes.uint2),
    *(ml_dtypes.float4_e2m1fn, ml_dtypes.float8_e8m0fnu),
]
SHAPES = [(), (0,), (3,), (2, 0, 3), (2, 3), (1, 1, 2)]


def sent(value: object) -> Any:
    """What arrives of a value."""
    ours, theirs = Pipe()
    with ours, theirs:
        pieces = messages.pack_message(value)
        sender = threading.Thread(target=messages.send_packed, args=(ours, pieces))
        sender.start()
        try:
            return messages.receive(theirs)
        finally:
            sender.join()


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_arrays_arrive_bit_for_bit(dtype: Any) -> None:
    kind = np.dtype(dtype)
    for shape in SHAPES:
        size = int(np.prod(shape)) * kind.itemsize
        octets = RANDOM.integers(1, 2 if kind.kind == "?" else 4, size, np.uint8)
        if kind.kind == "U":
            octets = np.full(size // 4, 0x41, np.uint32).view(np.uint8)
        whole = np.frombuffer(octets.tobytes(), kind).reshape(shape)
        for array in (
            (whole, whole.T, np.stack([whole, whole])[::-1], whole[..., ::-1])
            if shape
            else (whole,)
        ):
            found = sent([array])[0]
            assert (found.dtype, found.shape) == (array.dtype, array.shape)
            assert found.tobytes() == array.tobytes()
            assert found.flags.writeable


@pytest.mark.parametrize("size", [(1 << 18) - 1, 1 << 18, (1 << 18) + 1])
def test_large_arrays_and_bytes_arrive_too(size: int) -> None:
    array = RANDOM.integers(0, 256, size, np.uint8)
    found = sent({"a": array, "b": array.tobytes(), "c": [array[::-1]]})
    assert np.array_equal(found["a"], array)
    assert found["b"] == array.tobytes()
    assert np.array_equal(found["c"][0], array[::-1])
    found["a"][0] ^= 1
    assert np.array_equal(found["c"][0], array[::-1])


@pytest.mark.parametrize(
    ("value", "arrived"),
    [
        (None, None),
        (True, True),
        (7, 7),
        (2**70, 2**70),
        (-1.5, -1.5),
        (float("inf"), float("inf")),
        ("é日", "é日"),
        (b"", b""),
        (b"\x00\xff", b"\x00\xff"),
        ((1, (2, [3])), [1, [2, [3]]]),
        ({"a": {"b": None}, "dict": {}}, {"a": {"b": None}, "dict": {}}),
        ({1: "x"}, {"1": "x"}),
        (UserDict(a=1), {"a": 1}),
        ({"array": [1], "bytes": b"x"}, {"array": [1], "bytes": b"x"}),
    ],
)
def test_values_arrive(value: object, arrived: object) -> None:
    found = sent(value)
    assert (type(found), found) == (type(arrived), arrived)


@pytest.mark.parametrize("kind", [object, np.dtypes.StringDType()], ids=["object", "StringDType"])
@pytest.mark.parametrize("shape", [(), (0,), (4,), (2, 2)])
def test_strings_arrive_as_objects(kind: Any, shape: tuple[int, ...]) -> None:
    texts = [f"t{number}é" for number in range(int(np.prod(shape)))]
    array = np.empty(shape, kind)
    array[...] = np.array(texts, object).reshape(shape)
    found = sent(array)
    assert (found.dtype, found.shape) == (np.dtype(object), shape)
    assert found.reshape(-1).tolist() == texts


@pytest.mark.parametrize(
    "value", [object(), [{1, 2}], np.zeros(2, [("a", object)]), 1j, {"a": bytearray(b"x")}]
)
def test_what_is_neither_array_nor_number_nor_text_is_not_sent(value: object) -> None:
    with pytest.raises(TypeError):
        messages.pack_message(value)


class Odd(Exception):  # noqa: N818 - as an engine may call it
    """An exception that can't be shown."""

    def __str__(self) -> str:
        raise ValueError


class Unsupported(Exception):  # noqa: N818 - as an adapter of another interpreter has it
    """The same name elsewhere."""


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (ValueError("not  today\n"), {"refusal": "ValueError: not today"}),
        (ValueError(), {"refusal": "ValueError: ValueError"}),
        (Odd(), {"refusal": "Odd: Odd"}),
        (ModuleNotFoundError("No module"), {"missing": "No module"}),
        (ImportError("x"), {"missing": "x"}),
        (messages.Unsupported("no int4"), {"refusal": "no int4", "unsupported": True}),
        (Unsupported("no int4"), {"refusal": "no int4", "unsupported": True}),
        (RuntimeError("node at 0x7f00aabb1122 fails"), {"refusal": "RuntimeError: node fails"}),
        (RuntimeError("is 0x1f"), {"refusal": "RuntimeError: is 0x1f"}),
        (
            RuntimeError("Exception from src/core.cpp:12: Exception from src/a.cpp:3: bad"),
            {"refusal": "RuntimeError: bad"},
        ),
        (RuntimeError("n" * 401), {"refusal": "RuntimeError: " + "n" * 400}),
    ],
)
def test_what_an_engine_raises_is_told_in_one_short_line(
    error: Exception, told: dict[str, object]
) -> None:
    assert messages.refusal(error) == told


def test_outputs_are_arrays_by_name_or_nothing() -> None:
    found = messages.arrays_of({"a": [1, (2.5, None)], 3: np.ones(2), "n": None, "s": "x"})
    assert found is not None
    assert list(found) == ["a", "3", "n", "s"]
    assert found["n"] is None
    assert [type(each) for each in found["a"]] == [np.ndarray, list]
    assert found["a"][1][1] is None
    for junk in (None, [1], 5, UserDict(a=1).items()):
        assert messages.arrays_of(junk) is None


class Endless(dict):
    """A mapping without an end."""

    def items(self) -> Any:
        return ((str(number), 1) for number in count())


@pytest.mark.parametrize(("values", "fits"), [((1 << 16) - 1, True), (1 << 16, False)])
def test_outputs_have_an_end(values: int, fits: bool) -> None:
    assert messages.arrays_of(Endless()) is None
    assert (messages.arrays_of({"a": [None] * values}) is not None) is fits
