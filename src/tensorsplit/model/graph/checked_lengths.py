"""Lengths of a VariadicSplit layer with a check, and how they are known again.

OpenVINO does not check lengths below 0 before it reads memory (D7). So lowering feeds a layer what
the formula here calculates, from lengths that may be anything. A layer has a check already if what
feeds it calculates that formula: one place decides what lowering writes and recognizes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import chain

import onnx_ir as ir

from tensorsplit.core.arithmetic import (
    Formula,
    Number,
    Operand,
    as_formula,
    dimension,
    fed,
    fitting,
    joined,
    position,
    size_of,
    value,
)
from tensorsplit.core.dimensions import Dim, is_known
from tensorsplit.core.maker import written
from tensorsplit.core.records import operators
from tensorsplit.core.records.openvino import DOMAIN
from tensorsplit.core.resolve import Intent
from tensorsplit.core.rules import Chunks, Sizes
from tensorsplit.model.graph.held_tensors import constant
from tensorsplit.model.graph.nodes import NodeRef
from tensorsplit.model.graph.rejoined import is_rejoined
from tensorsplit.model.openvino_ir.layer_types import JOINED, LAYER_TYPES, LayerOperand, LayerType

INPUTS_WITH_LENGTHS = 3
"""A split layer with lengths has data, axis and lengths."""

_ANYTHING = object()
"""What stands for the lengths before the check."""


def axis_of(intent: Intent, data: object, axis: Formula) -> Number:
    """Return the axis of a split layer; one that only the running model knows from the front."""
    if intent.axis is not None:
        return intent.axis
    rank = size_of(Formula("shape", value(data)))
    return position(Formula("shaped", axis, 1), rank, rank - 1)


def checked_lengths(
    intent: Intent, dim: Number, lengths: object, *, has_more: bool = False
) -> Formula:
    """Return the lengths of a layer, with a check that they fit a dimension.

    A layer whose parts are only joined again ``has_more``, a part of length 0: without it OpenVINO
    takes the two out, and the check with them.
    """
    count = intent.outputs or 0
    (rule,) = intent.operator.lengths[0].rules.values()
    return _checked(dim, rule(dim, fed(lengths, dim, count)), count, has_more=has_more)


def equal_lengths(dim: Number, count: int) -> Formula:
    """Return as many equal lengths, with a check that they fit a dimension, and one of 0."""
    (rule,) = operators["openvino.Split-1"].lengths[0].rules.values()
    return _checked(dim, rule(dim, (count,)), count, has_more=True)


def _checked(dim: Number, sizes: Sizes, count: int, *, has_more: bool) -> Formula:
    assert not isinstance(sizes, Chunks)  # noqa: S101 - no layer gives a sequence
    fit = as_formula(fitting(dim, sizes, count, checks_sum=False))
    return joined(fit, (0,)) if has_more else fit


def are_checked(
    intent: Intent, ref: NodeRef, axis_type: ir.DataType | None, known: Dim = None
) -> bool:
    """Return whether layers before a VariadicSplit make sure that its lengths fit.

    They may measure the axis even where its length is ``known``. Where the parts are only joined
    again, OpenVINO takes a check out with them, unless they have one more.
    """
    found = _checks(intent, ref.node, axis_type, known)
    is_taken_out = is_rejoined(ref.node, ref.owners)
    return any(each.has_more or not is_taken_out for each in found)


def lengths_before_check(
    intent: Intent, node: ir.Node, axis_type: ir.DataType | None, known: Dim = None
) -> ir.Value | None:
    """Return the lengths that the check before a VariadicSplit gets.

    They are so whether OpenVINO keeps the check or not. None if there is none, or if it makes equal
    lengths of a dimension; other arguments as `are_checked`.
    """
    return next((found.given for found in _checks(intent, node, axis_type, known)), None)


def _checks(
    intent: Intent, node: ir.Node, axis_type: ir.DataType | None, known: Dim
) -> Iterator[_Matching]:
    """Yield a comparison for each check that is before a layer."""
    data, axis, lengths = node.inputs
    given = value(axis)
    if axis_type != ir.DataType.INT64:
        given = Formula("int64", given)
    dims: list[Number] = [dimension(data, axis_of(intent, data, given))]
    if is_known(known):
        dims.append(known)
    for has_more, way in chain.from_iterable(_ways(intent, dim, len(node.outputs)) for dim in dims):
        found = _Matching(has_more)
        if found.holds(way, lengths):
            yield found


def _ways(intent: Intent, dim: Number, count: int) -> Iterator[tuple[bool, Formula]]:
    """Yield the formulas that lowering may have written, and whether they give one part more."""
    yield False, checked_lengths(intent, dim, _ANYTHING)
    if count > 1:
        fewer = replace(intent, outputs=count - 1)
        yield True, checked_lengths(fewer, dim, _ANYTHING, has_more=True)
        if isinstance(dim, Formula):
            yield True, equal_lengths(dim, count - 1)


class _Matching:
    """Compares formulas with the layers that a value comes from.

    Attributes:
        has_more: Whether the formulas ask for one part of length 0 more.
        given: What is found in the place of the lengths before the check.
    """

    def __init__(self, has_more: bool) -> None:
        self.has_more = has_more
        self.given: ir.Value | None = None
        self._found: dict[tuple[Formula, ir.Value], bool] = {}

    def holds(self, number: Operand, held: ir.Value | None) -> bool:
        """Return whether a value is what a number or list of numbers stands for."""
        if held is None:
            return False
        if not isinstance(number, Formula):
            return _is_constant(number if isinstance(number, tuple) else (number,), held)
        if (number, held) not in self._found:
            self._found[number, held] = self._is_calculated(number, held)
        return self._found[number, held]

    def _is_calculated(self, formula: Formula, held: ir.Value) -> bool:
        formula = written(formula, rounds_integers=True)
        if formula.operation == "value":
            return self._is_given(formula.held, held)
        if formula.operation == "numbers":
            return self.holds(formula.operands[0], held)
        operands = formula.operands
        if formula.operation == "dimension":
            operands = (value(formula.held), *operands)
        kind = LAYER_TYPES.get(formula.operation, JOINED)
        inner = kind.operands or tuple(range(len(operands)))
        return self._is_layer(kind._replace(operands=inner), operands, held)

    def _is_given(self, given: object, held: ir.Value) -> bool:
        if given is not _ANYTHING:
            return given is held
        self.given = self.given or held
        return self.given is held

    def _is_layer(self, kind: LayerType, operands: tuple[Operand, ...], held: ir.Value) -> bool:
        node = held.producer()
        if node is None or (node.domain, node.op_type) != (DOMAIN, kind.type):
            return False
        attributes = {name: str(each.value) for name, each in node.attributes.items()}
        is_alike = len(node.inputs) == len(kind.operands) and attributes == dict(kind.attributes)
        return is_alike and all(
            self._is_operand(each, operands, source)
            for each, source in zip(kind.operands, node.inputs, strict=True)
        )

    def _is_operand(
        self, operand: LayerOperand, operands: tuple[Operand, ...], held: ir.Value | None
    ) -> bool:
        if isinstance(operand, LayerType):
            return held is not None and self._is_layer(operand, operands, held)
        return self.holds(operands[operand] if isinstance(operand, int) else operand, held)


def _is_constant(numbers: tuple[object, ...], held: ir.Value) -> bool:
    known = constant(held)
    return known is not None and known.shape == (len(numbers),) and known.tolist() == list(numbers)
