"""onnxruntime gets and gives every element type that it knows, bit for bit."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from onnx import TensorProto, helper

import tensorsplit as ts
from tests.engines.models import FLOAT, model, node, optional, sequence, split_model, tensor

pytestmark = pytest.mark.engine
pytest.importorskip("onnxruntime")

NUMBERS: dict[str, Any] = {
    "FLOAT": np.float32,
    "DOUBLE": np.float64,
    "FLOAT16": np.float16,
    "BFLOAT16": ml_dtypes.bfloat16,
    "BOOL": np.bool_,
    "INT8": np.int8,
    "INT16": np.int16,
    "INT32": np.int32,
    "INT64": np.int64,
    "UINT8": np.uint8,
    "UINT16": np.uint16,
    "UINT32": np.uint32,
    "UINT64": np.uint64,
}
SMALL: dict[str, Any] = {
    "FLOAT8E4M3FN": ml_dtypes.float8_e4m3fn,
    "FLOAT8E4M3FNUZ": ml_dtypes.float8_e4m3fnuz,
    "FLOAT8E5M2": ml_dtypes.float8_e5m2,
    "FLOAT8E5M2FNUZ": ml_dtypes.float8_e5m2fnuz,
}
PACKED: dict[str, Any] = {"INT4": ml_dtypes.int4, "UINT4": ml_dtypes.uint4}


def run(source: Any, **inputs: Any) -> dict[str, Any]:
    return ts.run(source, inputs, engine="onnxruntime")


def random_bits(dtype: Any, count: int) -> Any:
    """Elements of random bits, among them NaNs of every payload."""
    octets = np.random.default_rng(7).integers(0, 256, count * np.dtype(dtype).itemsize, np.uint8)
    return (octets & 1).view(np.bool_) if dtype is np.bool_ else octets.view(dtype)


@pytest.mark.parametrize("name", NUMBERS)
def test_split_keeps_bits(name: str) -> None:
    x = random_bits(NUMBERS[name], 6)
    outputs = run(split_model(element=getattr(TensorProto, name)), x=x)
    assert outputs["a"].dtype == outputs["b"].dtype == x.dtype
    assert outputs["a"].tobytes() == x[:2].tobytes()
    assert outputs["b"].tobytes() == x[2:].tobytes()


@pytest.mark.parametrize("name", [*SMALL, "BFLOAT16"])
@pytest.mark.parametrize("shape", [(6,), (2, 3), (), (0, 3)])
def test_types_that_onnxruntime_has_no_arrays_of_pass(name: str, shape: tuple[int, ...]) -> None:
    element = getattr(TensorProto, name)
    x = random_bits({**SMALL, **NUMBERS}[name], int(np.prod(shape))).reshape(shape)
    source = model(
        [node("Identity", "x", "y")],
        [tensor("x", element, shape)],
        [tensor("y", element)],
        opset=19,
    )
    y = run(source, x=x)["y"]
    assert (y.dtype, y.shape, y.tobytes()) == (x.dtype, shape, x.tobytes())


@pytest.mark.parametrize("name", PACKED)
def test_packed_types_pass(name: str) -> None:
    element = getattr(TensorProto, name)
    values = [1, 2, 3, 7, 5] if name == "UINT4" else [1, -8, 3, -1, 7]
    numbers = np.array(values, np.float32)
    one = np.array(1, np.float32)
    source = model(
        [node("QuantizeLinear", "x one zero", "q"), node("DequantizeLinear", "p one", "y")],
        [tensor("x", shape=[5]), tensor("p", element, [5])],
        [tensor("q", element), tensor("y")],
        opset=21,
        one=one,
    )
    source.graph.initializer.append(helper.make_tensor("zero", element, [], [0]))
    source.ir_version = 10
    outputs = run(source, x=numbers, p=numbers.astype(PACKED[name]))
    assert outputs["q"].dtype == PACKED[name]
    assert outputs["q"].tolist() == values
    assert outputs["y"].tolist() == values


def test_strings_pass_in_every_spelling() -> None:
    texts = ["a", "", "héé", "d\0e", "long" * 50, "z"]
    source = split_model(element=TensorProto.STRING)
    for x in (
        np.array(texts, object),
        np.array(texts),
        np.array([text.encode() for text in texts], object),
        np.array(texts, np.dtypes.StringDType()),
    ):
        outputs = run(source, x=x)
        assert outputs["a"].tolist() == texts[:2]
        assert outputs["b"].tolist() == texts[2:]


def test_layout_and_byte_order_do_not_matter() -> None:
    source = model(
        [node("Split", "x", "a b", axis=1, num_outputs=2)],
        [tensor("x", shape=[3, 4])],
        [tensor("a"), tensor("b")],
    )
    x = np.arange(1, 13, dtype=np.float32).reshape(3, 4)
    for same in (np.asfortranarray(x), x[::-1][::-1], x.astype(">f4"), np.repeat(x, 2, 1)[:, ::2]):
        outputs = run(source, x=same)
        np.testing.assert_array_equal(outputs["a"], x[:, :2])
        np.testing.assert_array_equal(outputs["b"], x[:, 2:])


def test_optionals_pass_full_and_empty() -> None:
    source = model([node("Identity", "x", "y")], [optional("x")], [optional("y")])
    assert run(source, x=None)["y"] is None
    assert run(source, x=np.array([1.5], np.float32))["y"].tolist() == [1.5]


def test_an_empty_optional_beside_a_foreign_type_is_no_crash() -> None:
    kind = helper.make_tensor_type_proto(FLOAT, None)
    source = model(
        [helper.make_node("Optional", [], ["y"], type=kind), node("Identity", "x", "z")],
        [tensor("x", TensorProto.BFLOAT16, [2])],
        [optional("y"), tensor("z", TensorProto.BFLOAT16)],
    )
    with pytest.raises(ts.SplitError, match=r"TS60[34]"):
        run(source, x=np.ones(2, ml_dtypes.bfloat16))


def test_sequences_beside_a_foreign_type_are_refused_in_words() -> None:
    source = model(
        [node("SequenceLength", "s", "n"), node("Identity", "x", "z")],
        [sequence("s"), tensor("x", TensorProto.BFLOAT16, [2])],
        [tensor("n", TensorProto.INT64), tensor("z", TensorProto.BFLOAT16)],
    )
    with pytest.raises(ts.SplitError, match=r"TS603.*sequences"):
        run(source, s=[np.ones(2, np.float32)], x=np.ones(2, ml_dtypes.bfloat16))


@pytest.mark.parametrize("name", ["FLOAT8E4M3FN", "INT4"])
def test_types_that_onnxruntime_does_not_split_are_refused_by_it_or_by_us(name: str) -> None:
    dtype = {**SMALL, **PACKED}[name]
    with pytest.raises(ts.SplitError) as caught:
        run(split_model(element=getattr(TensorProto, name)), x=np.ones(6, np.int8).astype(dtype))
    assert caught.value.code == "TS201"
