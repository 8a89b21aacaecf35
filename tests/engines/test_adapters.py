"""Elements smaller than a byte are packed from the low bits on, and come back as they were."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tensorsplit.engines.adapters import pack, packed_size, unpack


@pytest.mark.parametrize(
    ("dtype", "values", "data"),
    [
        (ml_dtypes.int4, [1, -1, 7, -8, 3], b"\xf1\x87\x03"),
        (ml_dtypes.uint4, [1, 15, 7, 8, 3], b"\xf1\x87\x03"),
        (ml_dtypes.int2, [1, -1, 0, -2, 1], b"\x8d\x01"),
        (ml_dtypes.uint2, [1, 3, 0, 2, 1], b"\x8d\x01"),
        (ml_dtypes.float4_e2m1fn, [0.5, -6.0, 6.0], b"\xf1\x07"),
        (np.int16, [1, -2], b"\x01\x00\xfe\xff"),
        (np.float32, [], b""),
        (ml_dtypes.int4, [], b""),
    ],
)
def test_elements_are_packed_and_unpacked(dtype: Any, values: list[Any], data: bytes) -> None:
    array = np.array(values, np.float32).astype(dtype)
    assert packed_size(array.dtype, array.size) == len(data)
    assert pack(array).tobytes() == data
    back = unpack(data, array.dtype, array.size)
    assert (back.dtype, back.tolist()) == (array.dtype, values)
    assert back.flags.writeable


def test_shape_and_layout_do_not_matter() -> None:
    array = np.arange(1, 7, dtype=np.uint16).reshape(2, 3)
    assert pack(np.asfortranarray(array)).tobytes() == bytes([1, 0, 2, 0, 3, 0, 4, 0, 5, 0, 6, 0])


def test_nan_payloads_are_kept() -> None:
    data = b"\x01\xfc\xff\x7d"
    assert pack(unpack(data, np.dtype(np.float16), 2)).tobytes() == data
