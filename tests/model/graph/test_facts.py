"""What types and shapes say of values, and what holds of either of two."""

from __future__ import annotations

import onnx_ir as ir
import pytest

from tensorsplit.core.dimensions import Dim
from tensorsplit.model.graph.facts import (
    UNKNOWN,
    Fact,
    Other,
    SequenceFact,
    Tensor,
    fact_of,
    join_shapes,
    merge_declared,
)

N = ir.SymbolicDim("N")
FLOAT = ir.DataType.FLOAT


@pytest.mark.parametrize(
    ("kind", "shape", "expected"),
    [
        (None, None, UNKNOWN),
        (None, [2, -1, "N", None], Tensor(None, (2, None, "N", None))),
        (ir.TensorType(FLOAT), None, Tensor(FLOAT)),
        (ir.TensorType(ir.DataType.UNDEFINED), [3], Tensor(None, (3,))),
        (ir.SequenceType(ir.TensorType(FLOAT)), [3], SequenceFact(FLOAT, (3,))),
        (ir.SequenceType(ir.TensorType(ir.DataType.UNDEFINED)), [3], SequenceFact(None, (3,))),
        (ir.OptionalType(ir.TensorType(FLOAT)), None, Other(ir.OptionalType(ir.TensorType(FLOAT)))),
    ],
)
def test_a_type_and_a_shape_say_something_alone(
    kind: ir.TypeProtocol | None, shape: list[int | str | None] | None, expected: Fact
) -> None:
    assert fact_of(kind, None if shape is None else ir.Shape(shape)) == expected


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [(2, 2, 2), (2, 3, None), ("N", N, "N"), (N, "N", N), ("N", "M", None), (N, 2, None)],
)
def test_what_two_shapes_have_in_common(left: Dim, right: Dim, expected: Dim) -> None:
    assert join_shapes((left, 7), (right, 7)) == (expected, 7)


def test_a_declaration_tells_the_shape_of_an_optional_value() -> None:
    kind = ir.OptionalType(ir.TensorType(FLOAT))
    declared = Other(kind, (3, "N"))
    assert merge_declared(Other(kind, None), declared) == declared
    assert merge_declared(Other(kind, (3, 4)), declared) == Other(kind, (3, 4))
