"""Tensors of every element type that OpenVINO IR files hold, from their bytes."""

from __future__ import annotations

import re
import struct
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from onnx import TensorProto

from tensorsplit import infer_shapes
from tensorsplit.model.openvino_ir.layer_types import PRECISIONS
from tensorsplit.model.openvino_ir.translation import read_ir
from tests.model.ir_files import IrFile, refused, run


def packed(nibbles: list[int], bits: int) -> bytes:
    """Elements smaller than a byte, the first one in the low bits."""
    number = sum(nibble << (bits * place) for place, nibble in enumerate(nibbles))
    return number.to_bytes(-(-len(nibbles) * bits // 8), "little")


TYPES: dict[str, tuple[Any, list[Any], bytes]] = {
    "boolean": (np.bool_, [True, False, True, True, False], b"\1\0\1\1\0"),
    "f16": (np.float16, [1.5, -0.0, 2.0, 3.0, 4.0], struct.pack("<5e", 1.5, -0.0, 2, 3, 4)),
    "f32": (np.float32, [1.5, -0.0, 2.0, 3.0, 4.0], struct.pack("<5f", 1.5, -0.0, 2, 3, 4)),
    "f64": (np.float64, [1e300, -0.0, 2.0, 3.0, 4.0], struct.pack("<5d", 1e300, -0.0, 2, 3, 4)),
    "bf16": (
        ml_dtypes.bfloat16,
        [1.0, 2.0, -4.0, 0.5, 8.0],
        struct.pack("<5H", 0x3F80, 0x4000, 0xC080, 0x3F00, 0x4100),
    ),
    "f8e4m3": (
        ml_dtypes.float8_e4m3fn,
        [1.0, 2.0, -4.0, 0.5, 8.0],
        bytes([0x38, 0x40, 0xC8, 0x30, 0x50]),
    ),
    "f8e5m2": (
        ml_dtypes.float8_e5m2,
        [1.0, 2.0, -4.0, 0.5, 8.0],
        bytes([0x3C, 0x40, 0xC4, 0x38, 0x48]),
    ),
    "f8e8m0": (
        ml_dtypes.float8_e8m0fnu,
        [1.0, 2.0, 4.0, 0.5, 8.0],
        bytes([127, 128, 129, 126, 130]),
    ),
    "f4e2m1": (
        ml_dtypes.float4_e2m1fn,
        [1.0, 2.0, -4.0, 0.5, 6.0],
        packed([2, 4, 14, 1, 7], 4),
    ),
    "i4": (ml_dtypes.int4, [-8, 7, -1, 1, 2], packed([8, 7, 15, 1, 2], 4)),
    "u4": (ml_dtypes.uint4, [15, 7, 9, 1, 2], packed([15, 7, 9, 1, 2], 4)),
    "u2": (ml_dtypes.uint2, [3, 1, 0, 2, 3], packed([3, 1, 0, 2, 3], 2)),
    "i8": (np.int8, [-128, 127, -1, 1, 2], struct.pack("<5b", -128, 127, -1, 1, 2)),
    "i16": (np.int16, [-(2**15), 1, -1, 3, 2], struct.pack("<5h", -(2**15), 1, -1, 3, 2)),
    "i32": (np.int32, [-(2**31), 1, -1, 3, 2], struct.pack("<5i", -(2**31), 1, -1, 3, 2)),
    "i64": (np.int64, [-(2**63), 1, -1, 3, 2**62], struct.pack("<5q", -(2**63), 1, -1, 3, 2**62)),
    "u8": (np.uint8, [255, 1, 2, 3, 4], bytes([255, 1, 2, 3, 4])),
    "u16": (np.uint16, [2**16 - 1, 1, 2, 3, 4], struct.pack("<5H", 2**16 - 1, 1, 2, 3, 4)),
    "u32": (np.uint32, [2**32 - 1, 1, 2, 3, 4], struct.pack("<5I", 2**32 - 1, 1, 2, 3, 4)),
    "u64": (np.uint64, [2**64 - 1, 1, 2, 3, 4], struct.pack("<5Q", 2**64 - 1, 1, 2, 3, 4)),
    "string": (
        object,
        ["a", "", "héé", "d\0e", "f"],
        struct.pack("<7i", 5, 0, 1, 1, 6, 9, 10) + "ahééd\0ef".encode(),
    ),
}


@pytest.mark.parametrize("element", TYPES)
@pytest.mark.parametrize("padding", [0, 1, 3])
def test_constants_of_every_type_are_read_from_any_offset(
    tmp_path: Path, element: str, padding: int
) -> None:
    dtype, values, data = TYPES[element]
    expected = np.array(values, object).astype(dtype)
    ir = IrFile()
    constant = ir.constant(data, element, "5", padding)
    for part in ir.variadic_split(constant, ir.int64(0, scalar=True), ir.int64(2, 3), 2):
        ir.result(part)
    outputs = run(ir.save(tmp_path))
    for part, wanted in zip(outputs.values(), (expected[:2], expected[2:]), strict=True):
        assert part.dtype == expected.dtype
        assert part.tolist() == wanted.tolist()
        if dtype is not object:
            assert part.tobytes() == wanted.tobytes()


@pytest.mark.parametrize("element", TYPES)
def test_inputs_of_every_type_are_cut(tmp_path: Path, element: str) -> None:
    dtype, values, _ = TYPES[element]
    data = np.array(values, object).astype(dtype)
    ir = IrFile()
    x = ir.parameter("x", element, "5")
    for part in ir.variadic_split(x, ir.int64(0, scalar=True), ir.int64(2, 3), 2):
        ir.result(part)
    path = ir.save(tmp_path)
    outputs = run(path, x=data)
    assert outputs["cut.0"].tolist() == data[:2].tolist()
    assert outputs["cut.1"].tolist() == data[2:].tolist()
    other = np.zeros(5, np.complex64)
    assert refused(path, x=other).code == "TS508"


@pytest.mark.parametrize(("element", "size"), [("u1", 1), ("u3", 3), ("u6", 6), ("nf4", 3)])
def test_types_that_numpy_does_not_have_are_refused(
    tmp_path: Path, element: str, size: int
) -> None:
    ir = IrFile()
    constant = ir.constant(bytes(size), element, "5")
    ir.result(ir.variadic_split(constant, ir.int64(0, scalar=True), ir.int64(5), 1)[0])
    error = refused(ir.save(tmp_path))
    assert error.code == "TS509"
    assert error.node == "layer '' (id 0)"
    ir = IrFile()
    ir.result(ir.parameter("x", element, "5"))
    assert refused(ir.save(tmp_path), x=np.zeros(5, np.uint8)).code == "TS508"


def test_values_of_an_unaligned_element_keep_their_nan_payload(tmp_path: Path) -> None:
    ir = IrFile()
    ir.result(ir.constant(b"\x01\x00\xa0\x7f\x00\x00\x00\x80", "f32", "2", padding=1))
    (array,) = run(ir.save(tmp_path)).values()
    assert array.tobytes() == b"\x01\x00\xa0\x7f\x00\x00\x00\x80"


@pytest.mark.engine("openvino")
@pytest.mark.parametrize("element", PRECISIONS)
def test_ports_name_types_as_openvino_does(tmp_path: Path, element: str) -> None:
    openvino = pytest.importorskip("openvino")
    ops = pytest.importorskip("openvino.opset13")
    path = tmp_path / "made.xml"
    given = ops.parameter([2], getattr(openvino.Type, element))
    made = ops.unsqueeze(given, ops.constant(np.array(0)))
    openvino.save_model(openvino.Model([made], [given]), path, compress_to_fp16=False)
    written = re.findall(r'<port id="\d+" precision="(\w+)"', path.read_text())
    assert set(written) == {PRECISIONS[element], "I64"}
    message = read_ir(path).message
    (unsqueezed,) = (each for each in message.graph.node if each.op_type == "Unsqueeze")
    declared = (*message.graph.input, *message.graph.output)
    types = {each.name: each.type.tensor_type.elem_type for each in declared}
    assert types[unsqueezed.output[0]] == types[unsqueezed.input[0]]


def test_a_convert_gives_what_it_converts_to_whatever_its_port_says(tmp_path: Path) -> None:
    ir = IrFile()  # as `openvino.save_model` writes constants in float16
    held = ir.constant(struct.pack("<3e", 1.5, -0.0, 2), "f16", "3")
    ir.result(ir.layer("Convert", (held,), 1, '<data destination_type="f32"/>')[0], "y")
    text = ir.text.replace('precision="FP32"', 'precision="FP16"')
    made = infer_shapes(ir.save(tmp_path, text))
    assert made.graph.output[0].type.tensor_type.elem_type == TensorProto.FLOAT
