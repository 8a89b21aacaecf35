"""Lengths that layers of an IR calculate from shapes and constants."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tensorsplit import SplitWarning, check, infer_shapes, lower
from tensorsplit.model.lower import LoweredIr
from tests.model.ir_files import IrFile, Out

AXIS = 90
"""The axis that is split is so long."""

Calculation = Callable[[IrFile, Out, Out, Out], Out]


def of_two(type: str, *, data: str = '<data auto_broadcast="numpy"/>') -> Calculation:
    def add(ir: IrFile, x: Out, a: Out, b: Out) -> Out:
        return ir.layer(type, (a, b), 1, data)[0]

    return add


def compared(type: str) -> Calculation:
    """One more than a comparison gives."""

    def add(ir: IrFile, x: Out, a: Out, b: Out) -> Out:
        found = ir.layer("Convert", ir.layer(type, (a, b), 1), 1, '<data destination_type="i64"/>')
        return ir.layer("Add", (*found, ir.int64(1)), 1)[0]

    return add


def chosen(ir: IrFile, x: Out, a: Out, b: Out) -> Out:
    less, greater = (ir.layer(kind, (a, b), 1)[0] for kind in ("Less", "Greater"))
    either = ir.layer("LogicalOr", (less, greater), 1)[0]
    both = ir.layer("LogicalAnd", (either, greater), 1)
    return ir.layer("Select", (*ir.layer("LogicalNot", both, 1), b, a), 1)[0]


def reduced(type: str) -> Calculation:
    def add(ir: IrFile, x: Out, a: Out, b: Out) -> Out:
        both = listed(ir, a, b)
        return ir.layer(type, (both, ir.int64(0)), 1, '<data keep_dims="true"/>')[0]

    return add


def listed(ir: IrFile, *numbers: Out) -> Out:
    return ir.layer("Concat", numbers, 1, '<data axis="0"/>')[0]


def negated(ir: IrFile, x: Out, a: Out, b: Out) -> Out:
    return ir.layer("Add", (*ir.layer("Negative", (b,), 1), a), 1)[0]


def sliced(ir: IrFile, x: Out, a: Out, b: Out) -> Out:
    bounds = (ir.int64(1), ir.int64(5), ir.int64(1), ir.int64(0))
    return ir.layer("Slice", (listed(ir, a, b), *bounds), 1, version="opset8")[0]


def gathered(version: str, data: str, index: int) -> Calculation:
    def add(ir: IrFile, x: Out, a: Out, b: Out) -> Out:
        places = (ir.int64(index), ir.int64(0, scalar=True))
        return ir.layer("Gather", (listed(ir, a, b), *places), 1, data, version=version)[0]

    return add


def strided(begin: int, end: int, step: int, **masks: int) -> Calculation:
    """Elements of a list of the two and 40."""
    data = "".join(f' {name}="{bit}"' for name, bit in masks.items())

    def add(ir: IrFile, x: Out, a: Out, b: Out) -> Out:
        numbers, bounds = listed(ir, a, b, ir.int64(40)), map(ir.int64, (begin, end, step))
        (part,) = ir.layer("StridedSlice", (numbers, *bounds), 1, f"<data{data}/>")
        (found,) = ir.layer("Reshape", (part, ir.int64(-1)), 1, '<data special_zero="false"/>')
        return ir.layer("ReduceSum", (found, ir.int64(0)), 1, '<data keep_dims="true"/>')[0]

    return add


def bounded(starts: Sequence[int], ends: Sequence[int]) -> Calculation:
    """A part of a list, by bounds of which there may be none, or more of one kind."""

    def add(ir: IrFile, x: Out, a: Out, b: Out) -> Out:
        bounds = ir.int64(*starts), ir.int64(*ends)
        return ir.layer("StridedSlice", (listed(ir, a), *bounds), 1)[0]

    return add


def moved(ir: IrFile, x: Out, a: Out, b: Out) -> Out:
    (scalar,) = ir.layer("Squeeze", (b,), 1)
    (one,) = ir.layer("Unsqueeze", (scalar, ir.int64(0, scalar=True)), 1)
    (two,) = ir.layer("Tile", (one, ir.int64(2)), 1)
    (three,) = ir.layer("Broadcast", (one, ir.int64(3)), 1, version="opset3")
    five = listed(ir, two, three)
    (same,) = ir.layer("Reshape", (five, ir.int64(-1)), 1, '<data special_zero="false"/>')
    return ir.layer("ReduceMax", (same, ir.int64(0)), 1, '<data keep_dims="1"/>')[0]


def of_shape(version: str, data: str) -> Calculation:
    """A part of the axis that is split."""

    def add(ir: IrFile, x: Out, a: Out, b: Out) -> Out:
        shape = ir.layer("ShapeOf", (x,), 1, data, version=version)
        places = (ir.int64(1), ir.int64(0, scalar=True))
        dim = ir.layer("Gather", (*shape, *places), 1, version="opset8")
        wide = ir.layer("Convert", dim, 1, '<data destination_type="i64"/>')
        return ir.layer("Divide", (*wide, b), 1, '<data m_pythondiv="true"/>')[0]

    return add


def split_by(
    calculation: Calculation, a: int, b: int, folder: Path, *, shape: str = "?,90"
) -> Path:
    ir = IrFile()
    x, first, second = ir.parameter("x", "f32", shape), ir.int64(a), ir.int64(b)
    lengths = listed(ir, calculation(ir, x, first, second), ir.int64(-1))
    for part in ir.variadic_split(x, ir.int64(1, scalar=True), lengths, 2, ("a", "b")):
        ir.result(part)
    return ir.save(folder, ir.text.replace(' precision="FP32"', ""))


def first_part(path: Path) -> Any:
    dims = infer_shapes(path).graph.output[0].type.tensor_type.shape.dim
    return dims[1].dim_value if dims[1].HasField("dim_value") else None


@pytest.mark.parametrize(
    ("calculation", "expected"),
    [
        (of_two("Add"), operator.add),
        (of_two("Subtract"), operator.sub),
        (of_two("Multiply"), operator.mul),
        (of_two("Divide"), operator.floordiv),
        (of_two("Add", data='<data auto_broadcast="none"/>'), operator.add),
        (of_two("Subtract", data='<data auto_broadcast="NumPy"/>'), operator.sub),
        (of_two("Mod"), operator.mod),
        (of_two("FloorMod"), operator.mod),
        (of_two("Maximum"), lambda a, b: a),
        (of_two("Minimum"), lambda a, b: b),
        (compared("Greater"), lambda a, b: 2),
        (compared("GreaterEqual"), lambda a, b: 2),
        (compared("Less"), lambda a, b: 1),
        (compared("LessEqual"), lambda a, b: 1),
        (compared("Equal"), lambda a, b: 1),
        (chosen, lambda a, b: a),
        (negated, operator.sub),
        (reduced("ReduceSum"), operator.add),
        (reduced("ReduceProd"), operator.mul),
        (reduced("ReduceMax"), lambda a, b: a),
        (reduced("ReduceMin"), lambda a, b: b),
        (sliced, lambda a, b: b),
        (gathered("opset8", '<data batch_dims="0"/>', -1), lambda a, b: b),
        (gathered("opset7", '<data batch_dims="0"/>', 1), lambda a, b: b),
        (gathered("opset1", "", 0), lambda a, b: a),
        (strided(0, 2, 1, begin_mask=0, end_mask=0), operator.add),
        (strided(2, 1, 1, begin_mask=1, end_mask=0), lambda a, b: a),
        (strided(1, 0, 2, begin_mask=0, end_mask=1), lambda a, b: b),
        (strided(0, 0, -1, begin_mask=1, end_mask=0), lambda a, b: b + 40),
        (strided(-2, 0, -1, begin_mask=0, end_mask=1), operator.add),
        (strided(-1, 0, 1, shrink_axis_mask=1), lambda a, b: 40),
        (strided(1, 0, -1, begin_mask=1, end_mask=1, shrink_axis_mask=1), lambda a, b: b),
        (moved, lambda a, b: b),
        (of_shape("opset1", ""), lambda a, b: AXIS // b),
        (of_shape("opset3", '<data output_type="i32"/>'), lambda a, b: AXIS // b),
    ],
)
def test_a_length_that_layers_calculate_is_known(
    calculation: Calculation,
    expected: Callable[[int, int], int],
    rng: np.random.Generator,
    tmp_path: Path,
) -> None:
    b = int(rng.integers(2, 7))
    a = b + int(rng.integers(1, b))
    path = split_by(calculation, a, b, tmp_path)
    assert check(path) == []
    assert first_part(path) == expected(a, b)


@pytest.mark.parametrize(
    "calculation",
    [
        of_two("Add", data='<data auto_broadcast="pdpd"/>'),
        lambda ir, x, a, b: of_two("Add", data='<data auto_broadcast="none"/>')(
            ir, x, a, ir.int64(2, scalar=True)
        ),
        of_two("Power"),
        lambda ir, x, a, b: ir.layer("Add", (a, b), 1, version="opset99")[0],
        lambda ir, x, a, b: of_two("Divide")(ir, x, negated(ir, x, b, a), b),
        lambda ir, x, a, b: ir.layer("Convert", (a,), 1, '<data destination_type="nf4"/>')[0],
        lambda ir, x, a, b: ir.layer(
            "Broadcast", (a, ir.int64(1)), 1, '<data mode="pdpd"/>', version="opset3"
        )[0],
        lambda ir, x, a, b: ir.layer(
            "Gather", (a, b, ir.int64(0)), 1, '<data batch_dims="1"/>', version="opset8"
        )[0],
        gathered("opset7", '<data batch_dims="0"/>', -1),
        strided(0, 1, 1, new_axis_mask=1),
        strided(0, 1, 1, ellipsis_mask=1),
        bounded((0,), (1, 2)),
        bounded((), ()),
        lambda ir, x, a, b: ir.layer("Concat", (a,), 1)[0],
        lambda ir, x, a, b: ir.layer("Reshape", (a, b), 1, '<data special_zero="-"/>')[0],
        lambda ir, x, a, b: ir.layer("ReduceSum", (a,), 1)[0],
    ],
)
def test_what_is_not_sure_of_a_layer_stays_open(calculation: Calculation, tmp_path: Path) -> None:
    path = split_by(calculation, 5, 3, tmp_path)
    assert [finding.code for finding in check(path)] == ["TS824"]
    assert first_part(path) is None


def test_what_a_port_says_of_a_type_contradicts_nothing(tmp_path: Path) -> None:
    """OpenVINO reads it from no port."""
    path = split_by(of_two("Multiply"), 13, 5, tmp_path)
    path.write_text(path.read_text().replace('<port id="2"/>', '<port id="2" precision="FP32"/>'))
    assert check(path) == []


def test_a_wrong_length_that_layers_calculate_is_refused(tmp_path: Path) -> None:
    (finding,) = check(split_by(of_two("Multiply"), 13, 7, tmp_path))
    assert (finding.code, finding.severity) == ("TS306", "error")


def test_known_lengths_of_a_calculation_need_no_guard(tmp_path: Path) -> None:
    """As PyTorch's chunk is in an IR, of a model whose other dimensions are open."""
    path = split_by(of_shape("opset3", '<data output_type="i32"/>'), 5, 3, tmp_path)
    made = lower(path, target="openvino")
    assert isinstance(made, LoweredIr)
    assert made.text == path.read_bytes()
    open_path = split_by(of_shape("opset3", ""), 5, 3, tmp_path, shape="6,?")
    with pytest.warns(SplitWarning, match="cut to 32 bits"):
        assert lower(open_path, target="openvino").text != open_path.read_bytes()


@pytest.mark.parametrize(("counts", "expected"), [((2,), (180,)), ((2, 1), None), ((), None)])
def test_a_tile_with_more_counts_than_axes_is_not_one_of_onnx(
    counts: tuple[int, ...], expected: tuple[int, ...] | None, tmp_path: Path
) -> None:
    """OpenVINO adds axes to the front then."""
    ir = IrFile()
    x = ir.parameter("x", "f32", "90")
    ir.result(ir.layer("Tile", (x, ir.int64(*counts)), 1)[0])
    kind = infer_shapes(ir.save(tmp_path)).graph.output[0].type.tensor_type
    known = tuple(dim.dim_value for dim in kind.shape.dim) if kind.HasField("shape") else None
    assert known == expected


@pytest.mark.parametrize(
    ("begins", "ends", "shrunk", "expected"),
    [
        ((2, 10), (9, 50), "", (7, 40)),
        ((2, 10), (3, 50), "1,0", (40,)),
        ((2, -1), (9, 0), "0,1", (7,)),
        ((-1, 10), (0, 11), "1,1", ()),
    ],
)
def test_a_strided_slice_loses_the_axes_that_it_shrinks(
    begins: tuple[int, ...],
    ends: tuple[int, ...],
    shrunk: str,
    expected: tuple[int, ...],
    tmp_path: Path,
) -> None:
    ir = IrFile()
    bounds = (ir.int64(*begins), ir.int64(*ends), ir.int64(1, 1))
    data = f'<data begin_mask="" end_mask="" shrink_axis_mask="{shrunk}"/>'
    x = ir.parameter("x", "f32", "12,90")
    ir.result(ir.layer("StridedSlice", (x, *bounds), 1, data)[0])
    kind = infer_shapes(ir.save(tmp_path)).graph.output[0].type.tensor_type
    assert kind.HasField("shape")
    assert tuple(dim.dim_value for dim in kind.shape.dim) == expected
