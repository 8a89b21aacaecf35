"""Products by constants that are given back, which ONNX Runtime calculates in integers."""

from __future__ import annotations

from collections.abc import Iterator

import onnx_ir as ir

from tensorsplit.core.dimensions import Shape, is_known
from tensorsplit.model.features.from_constants import is_fixed
from tensorsplit.model.features.quantized import BYTES, ZERO_POINT
from tensorsplit.model.graph.axes import order_of
from tensorsplit.model.graph.nodes import NodeRef, attribute_of, is_operator
from tensorsplit.model.graph.producers import first_input, passed_from, producer_of
from tensorsplit.model.graph.uses import is_needed
from tensorsplit.model.infer.analysis import Facts

_SMALL_TYPES = BYTES | {ir.DataType.INT4, ir.DataType.UINT4}
_MATRIX_RANK = 2
_LEAST_BLOCK = 16


def of_products(ref: NodeRef, facts: Facts) -> Iterator[str]:
    """Yield whether ONNX Runtime rounds the data of a product to 8 bits, or loads no such node.

    It does so where the other factor is given back from constants, for this node alone, by one
    scale, by those of its columns or in blocks of these. In a body it does not find constants of
    what is around it.
    """
    given = _given_back(ref, facts)
    if given is None or _gives_back(passed_from(ref.input(0))):
        return
    yield "data_in_bytes"
    held = passed_from(first_input(given))
    made = producer_of(held)
    graph = held.graph if held is not None and made is None else getattr(made, "graph", None)
    if ref.outer and graph is not ref.node.graph:
        yield "factor_around_body"


def _given_back(ref: NodeRef, facts: Facts) -> ir.Node | None:
    """Return the DequantizeLinear that gives the second factor of a product, if it is as above."""
    if ref.op_type not in ("Gemm", "MatMul") or len(ref.node.inputs) != 2:
        return None
    if ref.op_type == "Gemm" and any(
        attribute_of(ref.node, name, kind, usual) != usual
        for name, kind, usual in (
            ("alpha", ir.AttributeType.FLOAT, 1.0),
            ("transA", ir.AttributeType.INT, 0),
            ("transB", ir.AttributeType.INT, 0),
        )
    ):
        return None
    factor, columns = passed_from(ref.input(1)), 1
    made = producer_of(factor)
    if made is not None and made.op_type == "Transpose" and ref.op_type == "MatMul":
        if order_of(made, _MATRIX_RANK) != (1, 0):
            return None
        factor, columns = passed_from(first_input(made)), 0
    if not _gives_back(factor) or factor is None or not _is_read_once(factor):
        return None
    made = producer_of(factor)
    if made is None or made.graph is not ref.node.graph:
        return None
    return made if _is_of_columns(made, columns, facts) else None


def _gives_back(held: ir.Value | None) -> bool:
    made = producer_of(held)
    return is_operator(made, "DequantizeLinear")


def _is_read_once(held: ir.Value) -> bool:
    readers = [use for use in held.uses() if any(map(is_needed, use.node.outputs))]
    return len(readers) == 1 and not held.is_graph_output()


def _is_of_columns(node: ir.Node, columns: int, facts: Facts) -> bool:
    """Return whether a node gives back a constant matrix by one scale, or along its columns."""
    operands = [held for held in node.inputs if held is not None]
    kinds, whole = facts.element_types(first_input(node)), facts.tensor(first_input(node)).shape
    if not kinds <= _SMALL_TYPES or whole is None or len(whole) != _MATRIX_RANK:
        return False
    if len(operands) > ZERO_POINT + 1 or not all(is_fixed(held, facts) for held in operands):
        return False
    scales = facts.tensor(operands[1]).shape
    axis = attribute_of(node, "axis", ir.AttributeType.INT, 1)
    block = attribute_of(node, "block_size", ir.AttributeType.INT, 0)
    if block:
        return bool(axis == 1 - columns and block >= _LEAST_BLOCK and block & (block - 1) == 0)
    return scales == () or (axis == columns and _is_one_each(scales, whole[columns]))


def _is_one_each(scales: Shape | None, count: object) -> bool:
    return scales is not None and len(scales) == 1 and is_known(scales[0]) and scales[0] == count
