"""New nodes calculate what NumPy does, at each opset that has them, in our engine and in others."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import onnx
import onnx_ir as ir
import pytest

import tensorsplit as ts
from tensorsplit.core.arithmetic import maximum, minimum, rounded_up, value
from tensorsplit.model.graph.building import Names
from tensorsplit.model.graph.calculation import Calculation
from tests.model.build import known
from tests.refusals import refused

OPSETS = known(*range(7, 15), 17, 18, 23)
NUMBERS = ((2, 9), (9, 2), (-5, 3), (4, 4), (0, 1))
DATA = np.arange(1, 25, dtype=np.float32).reshape(2, 3, 4)

engines = pytest.mark.parametrize(
    "engine",
    ["tensorsplit", pytest.param("onnxruntime", marks=pytest.mark.engine("onnxruntime"))],
)


class Bench:
    """Collects what is calculated of some inputs, and runs it."""

    def __init__(self, opset: int, **inputs: Any) -> None:
        self.feeds = {name: np.asarray(each) for name, each in inputs.items()}
        self.given = {
            name: ir.val(name, ir.DataType.from_numpy(each.dtype), ir.Shape([None] * each.ndim))
            for name, each in self.feeds.items()
        }
        graph = ir.Graph([*self.given.values()], [], nodes=[], opset_imports={"": opset}, name="g")
        self.model = ir.Model(graph, ir_version=8)
        self.make = Calculation(Names(self.model), opset, "made")
        self.wanted: dict[str, Any] = {}

    def expect(self, held: ir.Value, wanted: Any) -> None:
        self.wanted[str(held.name)] = wanted
        made = np.asarray(wanted)
        held.type = held.type or ir.TensorType(ir.DataType.from_numpy(made.dtype))
        held.shape = ir.Shape([None] * made.ndim)
        self.model.graph.outputs.append(held)

    def check(self, engine: Any) -> None:
        self.model.graph.extend(self.make.nodes)
        found: Any = ts.run(ir.to_proto(self.model), self.feeds, engine=engine)
        assert found.keys() == self.wanted.keys()
        for name, wanted in self.wanted.items():
            np.testing.assert_array_equal(found[name], wanted, err_msg=name, strict=True)


def list_of(*numbers: Any) -> np.ndarray[Any, Any]:
    return np.array(numbers, np.int64)


def counted(first: int, last: int, step: int) -> np.ndarray[Any, Any]:
    return np.array(range(first, last, step), np.int64)


@engines
@pytest.mark.parametrize("opset", OPSETS[2:])
@pytest.mark.parametrize(("left", "right"), NUMBERS)
def test_numbers(engine: Any, opset: int, left: int, right: int) -> None:
    bench = Bench(opset, a=list_of(left), b=list_of(right))
    a, b = (value(each) for each in bench.given.values())
    make = bench.make
    bench.expect(make.make(minimum(a, b)), list_of(min(left, right)))
    bench.expect(make.make(maximum(a, b)), list_of(max(left, right)))
    bench.expect(make.make(rounded_up(maximum(a, 0), 4)), list_of(-(-max(left, 0) // 4)))
    bench.expect(make.scalar(a - b), np.array(left - right))
    for step in (1, -1, 2, -2, 3, -3):
        bench.expect(make.range(a, b, step), counted(left, right, step))
        bench.expect(make.range(1, b, step), counted(1, right, step))
    bench.check(engine)


@engines
@pytest.mark.parametrize("opset", OPSETS[4:])
def test_steps_that_are_calculated(engine: Any, opset: int) -> None:
    bench = Bench(opset, a=list_of(-7), b=list_of(3))
    a, b = (value(each) for each in bench.given.values())
    bench.expect(bench.make.range(a, b, b), counted(-7, 3, 3))
    bench.expect(bench.make.range(b, a, a), counted(3, -7, -7))
    bench.check(engine)


@engines
@pytest.mark.parametrize("kind", [np.int32, np.int64, np.uint8])
@pytest.mark.parametrize("opset", OPSETS)
def test_integers_of_any_type_are_numbers(engine: Any, opset: int, kind: Any) -> None:
    bench = Bench(opset, a=np.array(7, kind), numbers=np.array([3, 5], kind))
    held, numbers, make = *bench.given.values(), bench.make
    bench.expect(make.make(make.number(held, held.dtype) + 0), list_of(7))
    bench.expect(make.op("Neg", [make.int64(numbers, numbers.dtype)]), list_of(-3, -5))
    bench.check(engine)


def test_numbers_in_a_row_before_there_is_a_node_for_them() -> None:
    for opset in (7, 8, 9, 10):
        bench = Bench(opset, a=list_of(3))
        a, make = value(bench.given["a"]), bench.make
        with refused("TS310", "numbered from 9 on"):
            make.range(0, 9, a)
        if opset < 9:
            with refused("TS310", f"opset {opset}", "numbered from 9 on"):
                make.range(0, a)
        else:
            make.range(0, a)
        make.range(3, 11, 2)


@pytest.mark.parametrize("opset", [5, 6, 7, 8, 9])
def test_constants_are_of_types_that_an_opset_has(opset: int) -> None:
    bench = Bench(opset, x=DATA)
    for number in (1, True, 1.5):
        bench.expect(bench.make.constant([number], np.array(number).dtype), np.array([number]))
    bench.model.graph.extend(bench.make.nodes)
    onnx.checker.check_model(ir.to_proto(bench.model), full_check=True)


@pytest.mark.parametrize("opset", known(8, 10, 18))
def test_a_constant_lists_so_many_numbers_and_no_more(opset: int) -> None:
    bench = Bench(opset, a=list_of(1))
    make, most = bench.make, 1 << 16
    for limits in ((0, most, 1), (5, 5 + 3 * most, 3), (0, -most, -1)):
        before = {node.op_type for node in make.nodes}
        make.range(*limits)
        assert {node.op_type for node in make.nodes} - before <= {"Constant", "Cast"}
    if opset < 9:
        with refused("TS310", "too many for a constant"):
            make.range(0, most + 1)
    else:
        make.range(0, most + 1)
        assert {"Range", "NonZero"} & {node.op_type for node in make.nodes}


@engines
@pytest.mark.parametrize("opset", OPSETS)
def test_what_is_taken_of_a_tensor(engine: Any, opset: int) -> None:
    bench = Bench(opset, x=DATA, a=list_of(1))
    x, a, make = bench.given["x"], value(bench.given["a"]), bench.make
    bench.expect(make.take(x, 2, 1), DATA[:, 2])
    bench.expect(make.take(x, -1, 2), DATA[..., -1])
    bench.expect(make.slice(x, 1, 3, 1), DATA[:, 1:3])
    bench.expect(make.slice(x, 1, 3, 2, by_index=True), DATA[..., 1:3])
    bench.expect(make.slice(x, 3, 0, 2, -2, by_index=True), DATA[..., 3:0:-2])
    if opset >= 10:
        bench.expect(make.slice(x, a, 3, 1), DATA[:, 1:3])
        bench.expect(make.slice(x, 0, 4, 2, 2), DATA[..., ::2])
        bench.expect(make.slice(x, 3, a, 2, -1), DATA[..., 3:1:-1])
        bench.expect(make.slice(x, 0, 4, 2, a + 1), DATA[..., ::2])
        for numbers in ((), (4, 0, 7)):
            bench.expect(make.constant_list(numbers), list_of(*numbers))
    bench.expect(make.take(x, a - 1, 0), DATA[0])
    bench.expect(make.concat([x], 1), DATA)
    bench.expect(make.concat([x, x], 1), np.concatenate([DATA, DATA], 1))
    bench.expect(make.elements(x), DATA.ravel())
    bench.expect(make.unsqueeze(x, [0, 2]), DATA[None, :, None])
    bench.expect(make.squeeze(make.slice(x, 0, 1, 0), [0]), DATA[0])
    for start, end in ((0, 2), (2, 0), (-1, 1), (1, 1), (-3, 2), (0, 1)):
        bench.expect(make.moved(x, 3, start, end), np.moveaxis(DATA, start, end))
    bench.check(engine)


@engines
@pytest.mark.parametrize("opset", OPSETS)
def test_lists_of_numbers(engine: Any, opset: int) -> None:
    table = np.array([[2, 3, 4], [5, 1, 7]])
    bench = Bench(opset, table=table, numbers=list_of(4, -1, 6))
    held, numbers, make = bench.given["table"], bench.given["numbers"], bench.make
    bench.expect(make.make(make.products(held)), table.prod(1))
    for axis in (0, 1):
        bench.expect(make.total(held, axis), table.sum(axis, keepdims=True))
    bench.expect(make.apply("total", [numbers]), list_of(9))
    if opset >= 11:
        bench.expect(make.apply("sums", [numbers]), list_of(4, 3, 9))
    else:
        with refused("TS310", f"opset {opset}", "CumSum is there from 11 on"):
            make.apply("sums", [numbers])
    if opset >= 10:
        two = make.make(2)
        bench.expect(make.apply("head", [numbers, two]), list_of(4, -1))
        bench.expect(make.apply("tail", [numbers, two]), list_of(6))
    bench.check(engine)


@engines
@pytest.mark.parametrize("opset", OPSETS[3:])
@pytest.mark.parametrize("shape", [(2, 3), (0, 3), (2, 0), (0, 0), (6, 1)])
def test_elements_in_a_shape(engine: Any, opset: int, shape: tuple[int, ...]) -> None:
    data = np.arange(1, np.prod(shape) + 1, dtype=np.float32)
    bench = Bench(opset, x=data, shape=list_of(*shape))
    x, held, make = *bench.given.values(), bench.make
    wanted = data.reshape(shape)
    bench.expect(make.in_shape(x, held, 2, ir.DataType.FLOAT), wanted)
    bench.expect(make.in_shape(x, held, 2, ir.DataType.FLOAT, by_index=True), wanted)
    bench.check(engine)
    if opset < 14:
        with refused("TS310", f"opset {opset}", "unknown element type"):
            make.in_shape(x, held, 2, None)
    else:
        make.in_shape(x, held, 2, None)


ZEROS: tuple[tuple[Any, int], ...] = (
    *((kind, 7) for kind in (np.float16, np.float32, np.float64, np.int32, np.int64, np.bool_)),
    *((kind, 7) for kind in (np.uint8, np.int8)),
    (ml_dtypes.bfloat16, 16),
    (np.str_, 9),
)


@engines
@pytest.mark.parametrize("opset", OPSETS)
def test_constants_without_elements_and_of_zeros(engine: Any, opset: int) -> None:
    bench = Bench(opset, x=DATA)
    make = bench.make
    for kind, first in ZEROS:
        element_type = ir.DataType.from_numpy(np.dtype(object if kind is np.str_ else kind))
        if opset < first:
            if kind is np.str_:
                with refused("TS310", f"opset {opset}", "a constant of strings"):
                    make.filled([2], element_type)
            continue
        dtype = object if kind is np.str_ else kind
        zeros = np.full((2, 3), "", object) if kind is np.str_ else np.zeros((2, 3), dtype)
        bench.expect(make.filled([2, 3], element_type), zeros)
        for shape in ((0,), (2, 0), (0, 3, 0)):
            bench.expect(make.empty(shape, element_type), np.zeros(shape, dtype))
    if opset < 9:
        bench.expect(make.constant([True, False], np.bool_), np.array([True, False]))
        bench.expect(make.constant([[3, -4]], np.int32), np.array([[3, -4]], np.int32))
    bench.check(engine)


@engines
@pytest.mark.parametrize("opset", OPSETS[3:])
@pytest.mark.parametrize("checks_sum", [True, False])
@pytest.mark.parametrize("by_index", [True, False])
def test_parts(engine: Any, opset: int, checks_sum: bool, by_index: bool) -> None:
    bench = Bench(opset, x=DATA, l=list_of(3, 0, 1), a=list_of(2))
    make, (x, lengths, a) = bench.make, bench.given.values()
    ways = {"checks_sum": checks_sum, "by_index": by_index}
    wanted = DATA[..., :3], DATA[..., 3:3], DATA[..., 3:]
    for parts in (
        make.parts(x, 2, 4, (3, 0, 1), 3, **ways),
        make.parts(x, 2, 4, value(lengths), 3, **ways),
        make.parts(x, 2, value(make.make(4)), (3, 0, 1), 3, **ways),
    ):
        for part, each in zip(parts, wanted, strict=True):
            bench.expect(part, each)
    if not by_index:
        parts = make.parts(x, value(a), 4, (3, 0, 1), 3, **ways)
        for part, each in zip(parts, wanted, strict=True):
            bench.expect(part, each)
    bench.check(engine)


def test_parts_before_bounds_are_inputs() -> None:
    for opset in (7, 9):
        bench = Bench(opset, x=DATA, l=list_of(3, 1))
        make, (x, lengths) = bench.make, bench.given.values()
        with refused("TS310", "lengths are known only at run time", f"opset {opset}"):
            make.parts(x, 2, 4, value(lengths), 2, checks_sum=True)
        dim = value(make.make(value(lengths)))
        with refused("TS310", "declare that dimension as a number"):
            make.slices(x, 2, dim, (dim, 1), 2)
        bench.expect(make.parts(x, 2, 4, (3, 1), 2, checks_sum=False)[1], DATA[..., 3:])
        bench.check("tensorsplit")
