"""Values of models that are being built: each split is one node."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx_ir as ir
import pytest

import tensorsplit as ts
from tests.refusals import refused


def value(*shape: Any, opset: int | None = 18, dtype: ir.DataType = ir.DataType.FLOAT) -> ir.Value:
    """An input of a new graph."""
    made = ir.Value(name="x", shape=ir.Shape(shape), type=ir.TensorType(dtype))
    ir.Graph([made], [], nodes=[], opset_imports={} if opset is None else {"": opset}, name="g")
    return made


def nodes(made: ir.Value) -> list[str]:
    assert made.graph is not None
    return [node.op_type for node in made.graph]


@pytest.mark.parametrize("opset", [2, 11, 13, 18, 24])
def test_one_node_in_the_words_of_the_graphs_opset(opset: int) -> None:
    x = value("N", 5, opset=opset)
    parts = ts.split(x, [1, 4], axis=1)
    assert nodes(x).count("Split") == 1
    assert [list(map(str, part.shape or ())) for part in parts] == [["N", "1"], ["N", "4"]]
    assert [part.dtype for part in parts] == [ir.DataType.FLOAT] * 2
    assert x.graph is not None
    x.graph.outputs.extend(parts)
    data = np.arange(10, dtype=np.float32).reshape(2, 5)
    model = ir.to_proto(ir.Model(x.graph, ir_version=8))
    found = list(ts.run(model, {"x": data}).values())
    np.testing.assert_array_equal(found[1], data[:, 1:])


@pytest.mark.parametrize("opset", [11, 13, 18])
def test_an_axis_that_is_dropped(opset: int) -> None:
    x = value("N", 2, opset=opset)
    parts = ts.split_to_sequence(x, axis=1, keepdims=0)
    assert nodes(x).count("Split") == 1
    assert [[str(dim) for dim in part.shape or ()] for part in parts] == [["N"], ["N"]]
    assert x.graph is not None
    x.graph.outputs.extend(parts)
    data = np.arange(6, dtype=np.float32).reshape(3, 2)
    model = ir.to_proto(ir.Model(x.graph, ir_version=8))
    for engine in ("tensorsplit", "onnx-reference"):
        found = list(ts.run(model, {"x": data}, engine=engine).values())
        np.testing.assert_array_equal(found, data.T)


def test_a_dimension_that_is_not_known() -> None:
    x = value("N", 5)
    first, _ = ts.split(x, num_outputs=2)
    node = first.producer()
    assert node is not None
    assert node.attributes["num_outputs"].value == 2
    assert nodes(x) == ["Split"]
    inexpressible: list[tuple[ir.Value, Callable[[ir.Value], Any]]] = [
        (x, lambda x: ts.variadic_split(x, 0, [1, -1])),
        (x, lambda x: ts.split(x, num_outputs=2, opset=13)),
        (value("N", 5, opset=13), lambda x: ts.split(x, num_outputs=2)),
    ]
    for refused_value, function in inexpressible:
        before = nodes(refused_value)
        with refused("TS310", "N"):
            function(refused_value)
        assert nodes(refused_value) == before
    with refused("TS309"):
        ts.split_to_sequence(x, 2)


def test_what_a_node_needs_to_be_known() -> None:
    loose = ir.Value(name="x", shape=ir.Shape([4]), type=ir.TensorType(ir.DataType.FLOAT))
    unshaped, untyped = value(4), value(4)
    unshaped.shape = untyped.type = None
    ts.split(value(4), [1, 3])  # which is remembered, and says nothing of what follows
    for x in (loose, unshaped, untyped, value(4, opset=None)):
        with refused("TS204", "`Split` of your builder"):
            ts.split(x, [1, 3])
    with refused("TS201", "int4"):
        ts.split(value(4, dtype=ir.DataType.INT4), [1, 3])
    with refused("TS105", "builder"):
        ts.split(value(4), value(2, dtype=ir.DataType.INT64))


def test_lengths_that_are_constant() -> None:
    x = value(5)
    lengths = ir.Value(name="l", const_value=ir.tensor(np.array([1, 4])))
    assert [part.shape[0] for part in ts.split(x, lengths)] == [1, 4]  # type: ignore[call-overload, arg-type, index, unused-ignore]


def test_ndonnx_builds_one_node() -> None:
    ndonnx = pytest.importorskip("ndonnx")
    x = ndonnx.argument(shape=("N", 5), dtype=ndonnx.float32)
    first, second = ts.split(x, [1, 4], axis=1)
    model = ndonnx.build({"x": x}, {"a": first, "b": second})
    kinds = [node.op_type for node in model.graph.node]
    assert (kinds.count("Split"), kinds.count("Slice")) == (1, 0)
    data = np.arange(10, dtype=np.float32).reshape(2, 5)
    for engine in ("tensorsplit", "onnx-reference"):
        found = ts.run(model, {"x": data}, engine=engine)
        np.testing.assert_array_equal(found["b"], data[:, 1:])
    each = ts.split_to_sequence(ndonnx.asarray(data), axis=0, keepdims=0)
    assert [part.unwrap_numpy().tolist() for part in each] == data.tolist()
    with refused("TS310", "N"):
        ts.variadic_split(x, 0, [1, -1])
    with refused("TS204", "disassemble()"):
        ts.split(ndonnx.argument(shape=(4,), dtype=ndonnx.nint64), [1, 3])
    assert ts.split(x, ndonnx.asarray([1, 4]), axis=1)[1].shape == (None, 4)


def test_variables_of_spox() -> None:
    spox = pytest.importorskip("spox")
    x = spox.argument(spox.Tensor(np.float32, ("N", 6)))
    parts = ts.openvino.split(x, 1, 3)
    assert [part.type.shape for part in parts] == [("N", 2)] * 3
    with refused("TS204", "rank"):
        ts.split(spox.argument(spox.Tensor(np.float32, None)), [1, 3])
    with refused("TS105", "Spox"):
        ts.split(x, spox.argument(spox.Tensor(np.int64, (2,))), axis=1)


@pytest.mark.parametrize(
    ("opset", "dtype"),
    [
        (18, ir.DataType.FLOAT8E5M2),
        (21, ir.DataType.INT4),
        (1, ir.DataType.INT64),
        (11, ir.DataType.BFLOAT16),
    ],
)
def test_a_type_that_the_opset_does_not_take(opset: int, dtype: ir.DataType) -> None:
    x = value(4, 6, opset=opset, dtype=dtype)
    functions: list[Callable[[], Any]] = [
        lambda: ts.variadic_split(x, 1, [2, 4]),
        lambda: ts.join([x, x], axis=1),
    ]
    for function in functions:
        with refused("TS310", dtype.name.lower()):
            function()
    assert nodes(x) == []


@pytest.mark.parametrize("opset", [4, 11, 13, 18, 24])
def test_parts_are_joined_by_one_node(opset: int) -> None:
    x = value(3, 2, opset=opset)
    assert x.graph is not None
    a, b = ts.split(x, [1, 1], axis=1)
    whole = ts.join([b, a], axis=1)
    assert nodes(x).count("Concat") == 1
    assert list(map(str, whole.shape or ())) == ["3", "2"]
    x.graph.outputs.append(whole)
    data = np.arange(6, dtype=np.float32).reshape(3, 2)
    (found,) = ts.run(ir.to_proto(ir.Model(x.graph, ir_version=8)), {"x": data}).values()
    np.testing.assert_array_equal(found, data[:, ::-1])
    with refused("TS313", "another graph"):
        ts.join([x, value(3, 2)])
