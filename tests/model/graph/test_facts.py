"""What types and shapes say of values, and what holds of either of two."""

from __future__ import annotations

from itertools import product

import onnx_ir as ir
import pytest

from tensorsplit.core.dimensions import Dim, Shape
from tensorsplit.model.graph.facts import (
    UNKNOWN,
    Fact,
    Other,
    SequenceFact,
    Tensor,
    fact_of,
    join,
    join_shapes,
    merge_declared,
)

N = ir.SymbolicDim("N")
FLOAT, INT64 = ir.DataType.FLOAT, ir.DataType.INT64


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


SHAPES: tuple[Shape | None, ...] = (None, (), (2,), (3,), ("N",), (None,), (2, "N"), (2, None))
FACTS: tuple[Fact, ...] = (
    *(Tensor(kind, shape) for kind in (FLOAT, INT64, None) for shape in SHAPES),
    *(Tensor(INT64, (2,), values) for values in ((4, 5), (4, None), (None, 5))),
    *(
        SequenceFact(kind, part, count)
        for kind, part, count in product((FLOAT, None), (None, (2,), ("N",)), (None, 0, 2))
    ),
    *(SequenceFact(FLOAT, (None,), 2, parts) for parts in (((2,), (3,)), ((2,), (None,)))),
    UNKNOWN,
)

VALUES: tuple[tuple[object, ...], ...] = (
    *(("tensor", kind, shape) for kind in (FLOAT, INT64) for shape in ((), (2,), (3,), (2, 3))),
    *(("list", kind, items) for kind in (FLOAT, INT64) for items in ((4, 5), (4, 7), (6, 5))),
    *(
        ("sequence", kind, parts)
        for kind in (FLOAT, INT64)
        for parts in ((), ((2,), (2,)), ((2,), (3,)), ((3,),), ((2, 3), (2,)))
    ),
)
"""Tensors of a shape, lists of elements, and sequences of tensors of some shapes, where N is 3."""


def is_of(shape: Shape | None, actual: tuple[int, ...]) -> bool:
    """Whether a tensor of a shape is one that a fact speaks of."""
    if shape is None:
        return True
    pairs = zip(shape, actual, strict=False)
    fits = all(dim is None or dim == size or (dim == "N" and size == 3) for dim, size in pairs)
    return len(shape) == len(actual) and fits


def holds(fact: Fact, value: tuple[object, ...]) -> bool:
    """Whether a fact holds for a value."""
    what, kind, held = value
    assert isinstance(held, tuple)
    if isinstance(fact, Other):
        return True
    if fact.element_type not in (None, kind) or (what == "sequence") != isinstance(
        fact, SequenceFact
    ):
        return False
    if isinstance(fact, SequenceFact):
        is_listed = fact.parts is None or all(map(is_of, fact.parts, held))
        return (
            fact.count in (None, len(held))
            and is_listed
            and all(is_of(fact.part, each) for each in held)
        )
    if not is_of(fact.shape, held if what == "tensor" else (len(held),)):
        return False
    if what == "tensor" or fact.values is None:
        return not fact.values
    return all(known in (None, item) for known, item in zip(fact.values, held, strict=True))


def test_what_holds_of_either_of_two() -> None:
    """It holds of all that either holds of; of one and itself it is the same."""
    for one, other in product(FACTS, repeat=2):
        both = join(one, other)
        for value in VALUES:
            assert holds(both, value) or not (holds(one, value) or holds(other, value)), (
                one,
                other,
            )
        assert join(one, one) == one
        if not isinstance(one, Other) and not isinstance(other, Other):
            kind = one.element_type if one.element_type == other.element_type else None
            assert both == UNKNOWN or (not isinstance(both, Other) and both.element_type == kind)


def test_what_a_declaration_adds() -> None:
    """It holds where both hold, and says no less than what was found."""
    for found, declared in product(FACTS, repeat=2):
        merged = merge_declared(found, declared)
        is_alike = UNKNOWN in (found, declared) or type(found) is type(declared)
        for value in VALUES:
            if holds(found, value) and holds(declared, value):
                assert holds(merged, value), (found, declared)
            if holds(merged, value) and "N" not in str(found):  # a number goes before a name
                assert holds(found, value), (found, declared)
        if is_alike and found != UNKNOWN != declared:
            assert not isinstance(merged, Other)
            kinds = [each.element_type for each in (found, declared) if not isinstance(each, Other)]
            assert merged.element_type == (kinds[0] or kinds[1])
