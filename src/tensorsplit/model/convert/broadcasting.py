"""Operands that an older version does not broadcast, or only on request."""

from __future__ import annotations

from collections.abc import Callable

import onnx_ir as ir

from tensorsplit.core.dimensions import Shape, is_known, may_be_same, same_shape, show_shape
from tensorsplit.core.errors import SplitError
from tensorsplit.model.convert.conversion import NodeConversion
from tensorsplit.model.graph.calculation import FIRST_WITH_BOUNDS_AS_INPUTS, TO_THE_END, Calculation


def of_one_shape(node: NodeConversion, index: int) -> ir.Value | None:
    """Return an operand that has the shape of the first one, or stops the running model.

    Raises:
        SplitError: TS512 where the shapes surely differ.
    """
    first = node.input(0)
    if first is node.input(index):
        return first
    return _of_shape(node, index, node.shape(0), lambda: node.make.op("Shape", [first]))


def of_product(node: NodeConversion) -> ir.Value | None:
    """Return Gemm's third operand; it has the shape of the product, or stops the running model.

    Raises:
        SplitError: TS512 where the shapes surely differ.
    """
    axes = node.attribute("transA", 0) != 0, node.attribute("transB", 0) == 0
    shapes = [node.shape(index) or (None, None) for index in (0, 1)]
    dims = tuple(shape[axis] for shape, axis in zip(shapes, axes, strict=True))

    def shape() -> ir.Value:
        whole = [node.make.op("Shape", [node.input(index)]) for index in (0, 1)]
        picked = [_part(node.make, each, axis, 1) for each, axis in zip(whole, axes, strict=True)]
        return node.make.concat(picked, 0)

    return _of_shape(node, 2, dims, shape)


def _of_shape(
    node: NodeConversion, index: int, one: Shape | None, shape: Callable[[], ir.Value]
) -> ir.Value | None:
    operand, other = node.input(index), node.shape(index)
    if operand is None or same_shape(one, other):
        return operand
    if not may_be_same(one, other):
        raise _never_ran(node, index, one, "they have to be the same")
    make = node.make
    shapes = [shape(), make.op("Shape", [operand])]
    wrong = _differences(make, *shapes)
    if one is None or other is None:
        ranks = [make.op("Shape", [each]) for each in shapes]
        wrong = make.op("Add", [wrong, _differences(make, *ranks)])
    return _unless(node, operand, wrong)


def covering(node: NodeConversion, start: int) -> ir.Value | None:
    """Return a second operand that covers axes of the first one, or stops the running model.

    It has the shape of the axes from `start` on, or one element. The ranks have to be known.

    Raises:
        SplitError: TS512 where it surely has another shape.
    """
    left, right = node.shape(0) or (), node.shape(1) or ()
    part = left[start : start + len(right)]
    may_be_one = len(right) <= len(left) and all(dim == 1 or not is_known(dim) for dim in right)
    may_cover = may_be_same(part, right)
    if not (may_cover or may_be_one):
        raise _never_ran(
            node, 1, left, "the second one has to be a part of the first, or one element"
        )
    operand = node.input(1)
    is_one = may_be_one and all(dim == 1 for dim in right)
    if operand is None or is_one or same_shape(part, right):
        return operand
    make = node.make
    shape = make.op("Shape", [operand])
    wrong = []
    if may_cover:
        covered = _part(make, make.op("Shape", [node.input(0)]), start, len(right))
        wrong.append(_differences(make, covered, shape))
    if may_be_one:
        wrong.append(_is_not_one(make, shape))
    both = wrong[0] if len(wrong) == 1 else make.op("Mul", wrong)
    return _unless(node, operand, both)


def covering_the_end(node: NodeConversion) -> ir.Value | None:
    """Do as `covering` for the last axes of the first operand, where the ranks are not known.

    Raises:
        SplitError: TS512 for a target before opset 10, where Slice has its bounds as attributes.
    """
    operand = node.input(1)
    if operand is None or node.shape(1) == ():
        return operand
    if node.conversion.target < FIRST_WITH_BOUNDS_AS_INPUTS:
        raise node.refusal(
            "it broadcasts, and the ranks of its operands are not known",
            f"declare their shapes, or convert to opset {FIRST_WITH_BOUNDS_AS_INPUTS} or newer",
        )
    node.opset = FIRST_WITH_BOUNDS_AS_INPUTS
    make = node.make
    whole, shape = (make.op("Shape", [node.input(index)]) for index in (0, 1))
    ranks = [make.op("Shape", [each]) for each in (whole, shape)]
    bounds = make.op("Sub", ranks), make.constant([TO_THE_END])
    differ = _differences(make, make.op("Slice", [whole, *bounds]), shape)
    both = make.op("Mul", [differ, _is_not_one(make, shape)])
    longer = make.op("Cast", [make.op("Less", ranks)], {"to": int(ir.DataType.INT64)})
    return _unless(node, operand, make.op("Add", [both, longer]))


def _part(make: Calculation, shape: ir.Value, start: int, count: int) -> ir.Value:
    return make.op("Slice", [shape], {"axes": [0], "starts": [start], "ends": [start + count]})


def _never_ran(node: NodeConversion, index: int, one: Shape | None, needed: str) -> SplitError:
    shapes = f"{show_shape(one)} and {show_shape(node.shape(index))}"
    return node.refusal(
        f"its operands have the shapes {shapes}; before opset {node.opset} {needed}",
        "repair the model, which is not legal as it is",
    )


def _differences(make: Calculation, one: ir.Value, other: ir.Value) -> ir.Value:
    """Return how many numbers of two lists differ."""
    differ = make.op("Not", [make.op("Equal", [one, other])])
    return make.apply("total", [make.op("Cast", [differ], {"to": int(ir.DataType.INT64)})])


def _is_not_one(make: Calculation, shape: ir.Value) -> ir.Value:
    """Return 0 where a shape is that of one element, else 1."""
    size = make.op("ReduceProd", [shape], {"axes": [0], "keepdims": 1})
    return _differences(make, size, make.constant([1]))


def _unless(node: NodeConversion, data: ir.Value, wrong: ir.Value) -> ir.Value:
    """Return data as they are; the running model stops unless a number is 0.

    Otherwise all dimensions are greater, and the elements are too few. One more axis is there
    because OpenVINO leaves out a Reshape of a list. What the node gives is declared: it does not
    follow from operands that may be broadcast.
    """
    make = node.make
    node.declare(*node.node.outputs)
    within = make.unsqueeze(data, [0])
    shape = make.op("Add", [make.op("Shape", [within]), wrong])
    return make.take(make.op("Reshape", [within, shape]), 0, 0)
