"""Facts that are written into a model: nothing is lost of what it says, and all is there."""

from __future__ import annotations

from itertools import product
from typing import Any

import onnx_ir as ir

from tensorsplit.model.graph.facts import UNKNOWN, Fact, Other, SequenceFact, Tensor, declared
from tensorsplit.model.infer.analysis import Facts
from tensorsplit.model.infer.filling import fill_value
from tests.model.graph.test_facts import FACTS, FLOAT

UNTYPED = ir.DataType.UNDEFINED
TYPES: tuple[Any, ...] = (
    *(None, ir.TensorType(FLOAT), ir.TensorType(UNTYPED)),
    *(ir.SequenceType(ir.TensorType(FLOAT)), ir.OptionalType(ir.TensorType(FLOAT))),
)
SHAPES = (None, (2,), ("N",), (None,), (2, "N"))


def test_what_is_known_is_written_and_what_was_declared_stays() -> None:
    written = 0
    for fact, kind, shape in product(FACTS, TYPES, SHAPES):
        value = ir.Value(name="v", type=kind, shape=None if shape is None else ir.Shape(shape))
        before = (str(value.type), str(value.shape))
        facts = Facts()
        facts.set(value, fact)
        has_changed = fill_value(value, facts)
        assert has_changed is (before != (str(value.type), str(value.shape)))
        written += has_changed
        is_other_kind = isinstance(fact, Tensor) and not isinstance(kind, ir.TensorType)
        if kind is not None and kind != ir.TensorType(UNTYPED) and not is_other_kind:
            assert value.type is kind  # it is what the model says
        if kind is None and shape is None and not isinstance(fact, Other):
            typed: Fact = (
                Tensor(fact.element_type, fact.shape)
                if isinstance(fact, Tensor)
                else (SequenceFact(fact.element_type, fact.part))
            )
            is_typed = fact.element_type is not None
            assert declared(value) == (typed if is_typed else UNKNOWN)
        shapes = [None if each is None else tuple(map(str, each)) for each in (shape, value.shape)]
        told = fact.part if isinstance(fact, SequenceFact) else fact.shape
        assert shapes[1] == (
            shapes[0] if told is None or value.type is None else tuple(map(str, told))
        )
    assert written > 100


def test_a_shape_that_is_there_is_left() -> None:
    """A graph of which all is known is written as it came."""
    shape = ir.Shape([2, ir.SymbolicDim("N")])
    value = ir.Value(name="v", type=ir.TensorType(FLOAT), shape=shape)
    facts = Facts()
    facts.set(value, declared(value))
    assert not fill_value(value, facts)
    assert value.shape is shape
