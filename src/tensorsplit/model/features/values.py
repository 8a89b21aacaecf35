"""Features of values: their types, sequences, long data, and data without elements."""

from __future__ import annotations

from collections.abc import Iterator

import onnx_ir as ir

from tensorsplit.core.dimensions import MAX_DIM, are_known, is_at_least, is_known, same_shape
from tensorsplit.core.maker import MOST_EXACT
from tensorsplit.model.features.from_constants import MOST_STEPS
from tensorsplit.model.features.vocabulary import Features
from tensorsplit.model.graph.calculation import TO_THE_END
from tensorsplit.model.graph.called_in_onnx import operator_of
from tensorsplit.model.graph.facts import SequenceFact
from tensorsplit.model.graph.nodes import attribute_of
from tensorsplit.model.graph.producers import KEEPING_AXES, first_input, passed_from, producer_of
from tensorsplit.model.graph.rejoined import first_passed
from tensorsplit.model.graph.split_records import (
    VENDOR_SPLIT,
    is_onnx_split,
    is_split,
    is_vendor_split,
)
from tensorsplit.model.infer.analysis import Facts

_WIDE = frozenset({"int64", "uint64", "double"})


def is_sequence(value: ir.Value | None, facts: Facts) -> bool:
    """Return whether a value is a sequence of tensors."""
    if value is None:
        return False
    # Its classes are protocols, for which `isinstance` takes ten times as long
    return isinstance(facts.of(value), SequenceFact) or type(value.type) is ir.SequenceType


def has_strings(value: ir.Value | None, facts: Facts) -> bool:
    """Return whether a value is of strings, or may be in some calls of a function."""
    return ir.DataType.STRING in facts.element_types(value)


def is_empty(value: ir.Value | None, facts: Facts) -> bool:
    """Return whether a tensor is known to have no elements."""
    return 0 in (facts.tensor(value).shape or ())


def has_known_shape(value: ir.Value | None, facts: Facts) -> bool:
    """Return whether the rank of a tensor and all its dimensions are known."""
    shape = facts.tensor(value).shape
    return shape is not None and are_known(shape)


def of_long_slices(node: ir.Node, facts: Facts) -> Iterator[str]:
    """Yield whether a node slices a tensor that is known to be long."""
    if node.op_type == "Slice" and node.inputs and may_be_long(node.inputs[0], facts, known=True):
        yield "long_slice"


LARGEST = frozenset({TO_THE_END, MAX_DIM})
"""Ends that mean the end of the data for engines, in whatever direction a Slice goes."""


def of_backward_slices(node: ir.Node, facts: Facts) -> Iterator[str]:
    """Yield whether a node slices backwards to a largest integer: it takes nothing."""
    if ends_before_largest(node, facts) is not None:
        yield "back_to_largest"


def ends_before_largest(node: ir.Node, facts: Facts) -> list[int] | None:
    """Return the ends of a Slice, those that are a largest integer less 1; None without any.

    The standard clamps both to the last element, or beyond it where the step is above 0. Ends that
    are not constant are left out, and steps that are above 0.
    """
    if node.op_type != "Slice":
        return None
    _, _, end, _, step = (*node.inputs, *[None] * 5)[:5]
    ends = facts.tensor(end).constant or ()
    steps = (1,) * len(ends) if step is None else facts.tensor(step).integers or (None,) * len(ends)
    pairs = zip(ends, steps, strict=False)
    lower = [last - (last in LARGEST and not is_at_least(by, 1)) for last, by in pairs]
    return lower if lower != list(ends) else None


def may_be_long(held: ir.Value | None, facts: Facts, *, known: bool = False) -> bool:
    """Return whether a tensor may have, or is ``known`` to have, a dimension above 2^24."""
    shape = facts.tensor(held).shape
    if shape is None:
        return not known
    return any(dim > MOST_EXACT if is_known(dim) else not known for dim in shape)


_CASTS = frozenset({"Cast", "CastLike"})

_WITHOUT_DEFAULT = frozenset({"LSTM", "TopK"})
"""Operators other than splits of which OpenVINO takes no result for the only one."""

_FIRST_RESULT_ONLY = frozenset({"GRU", "MaxPool", "RNN", "Unique"})
"""Operators other than splits of which OpenVINO takes the first result for the only one."""


def of_casts(node: ir.Node, facts: Facts) -> Iterator[str]:
    """Yield whether a node or layer casts to bool what is one of several outputs, a part above all.

    Nodes between the two that change nothing are followed, and Transposes.
    """
    if operator_of(node) not in _CASTS or not (node.inputs and node.outputs):
        return
    if facts.tensor(node.outputs[0]).element_type != ir.DataType.BOOL:
        return
    held = node.inputs[0]
    for _ in range(MOST_STEPS):
        made = producer_of(held)
        if made is None:
            return
        if _has_unequal_outputs(made, facts):
            yield "part_to_bool"
            return
        is_one_of_several = is_split(made) or operator_of(made) in _FIRST_RESULT_ONLY
        if is_one_of_several and held is not made.outputs[0]:
            yield "later_part_to_bool"
            return
        before = first_passed(made)
        is_kept = operator_of(made) in KEEPING_AXES or _is_same(before, held, facts)
        held = before if is_kept else None


def _is_same(one: ir.Value | None, other: ir.Value | None, facts: Facts) -> bool:
    """Return whether two tensors are known to be of one type and shape."""
    before, after = facts.tensor(one), facts.tensor(other)
    is_one_type = before.element_type is not None and before.element_type == after.element_type
    return is_one_type and same_shape(before.shape, after.shape)


def _has_unequal_outputs(node: ir.Node, facts: Facts) -> bool:
    """Return whether a node gives one of several parts that need not be equal, or is a TopK."""
    if operator_of(node) in _WITHOUT_DEFAULT:
        return True
    if is_vendor_split(node):
        return node.op_type == VENDOR_SPLIT.name
    if operator_of(node) == "SequenceAt" and (sequence := first_input(node)) is not None:
        splits = sequence.producer()
        return splits is not None and is_onnx_split(splits)
    if not is_onnx_split(node):
        return False
    shapes = {facts.tensor(part).shape for part in node.outputs}
    return (
        any(node.inputs[1:])
        or "split" in node.attributes
        or ("num_outputs" in node.attributes and (len(shapes) > 1 or None in shapes))
    )


def of_gathered_strings(node: ir.Node, facts: Facts) -> Iterator[str]:
    """Yield whether a node gathers strings on an axis that may not be the last."""
    if node.op_type != "Gather" or len(node.inputs) != 2:
        return
    if not has_strings(node.inputs[0], facts):
        return
    shape = facts.tensor(node.inputs[0]).shape
    axis = attribute_of(node, "axis", ir.AttributeType.INT, 0)
    if axis in (-1, None):
        return
    if shape is None or any(dim != 1 for dim in shape[axis + 1 :]):
        yield "strings_gathered"


def of_data(node: ir.Node, facts: Facts) -> Features:
    """Return the features of the element type of a node's data."""
    return of_type(node.inputs[0], facts) if node.inputs else {}


def of_type(value: ir.Value | None, facts: Facts) -> Features:
    """Return the features of a value's element types."""
    names = tuple(sorted(each.name.lower() for each in facts.element_types(value)))
    found = {"element_type": names, "wide_values": tuple(filter(_WIDE.__contains__, names))}
    return {key: each for key, each in found.items() if each}


def operands_of(held: ir.Value | None, *operators: str) -> list[ir.Value | None]:
    """Return the operands of the node that makes a value, if it is one of some operators.

    Identity nodes are left out before.
    """
    made = producer_of(passed_from(held))
    return (
        []
        if made is None or operator_of(made) not in operators
        else [*map(passed_from, made.inputs)]
    )
