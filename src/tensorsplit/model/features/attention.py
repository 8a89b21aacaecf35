"""Features of attention, and of the data that is transposed or rotated for it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import chain, permutations, product
from typing import NamedTuple

import onnx_ir as ir

from tensorsplit.core.dimensions import are_known, is_known, may_be_same, same_shape
from tensorsplit.model.features.from_constants import (
    MOST_STEPS,
    is_fixed,
    is_fixed_number,
)
from tensorsplit.model.features.shared_memory import given_again, is_in_memory_of
from tensorsplit.model.features.values import operands_of
from tensorsplit.model.graph.axes import order_of
from tensorsplit.model.graph.called_in_onnx import operator_of
from tensorsplit.model.graph.nodes import NodeRef, attribute_of
from tensorsplit.model.graph.opsets import ATTENTION_MASK, ATTENTION_PAST_KEY
from tensorsplit.model.graph.producers import first_input, origins, passed_from, producer_of
from tensorsplit.model.graph.split_records import is_split
from tensorsplit.model.graph.uses import is_unused
from tensorsplit.model.infer.analysis import Facts


class _Rotation(NamedTuple):
    """Data times one factor, and its second part, negated, beside its first, times another."""

    data: ir.Value
    parts: tuple[ir.Value, ir.Value]
    factors: tuple[ir.Value | None, ...]


def is_rotation(ref: NodeRef, seen: Facts) -> bool:
    """Return whether an Add is wrong once OpenVINO has made a rotary embedding of it.

    A rotary embedding takes factors of several columns and the halves of its data, and writes its
    result over the data, which a loop may read again.
    """
    found = _rotation_of(ref)
    if found is None:
        return False
    if any(_may_have_one_column(factor, found.data, seen) for factor in found.factors):
        return True
    return _may_be_one_node(found, seen) and (
        not _are_halves(found, seen) or is_in_memory_of(found.data, given_again(ref))
    )


def _rotation_of(ref: NodeRef) -> _Rotation | None:
    products = [operands_of(held, "Mul") for held in ref.node.inputs]
    for (one, other), turned in product(permutations(products, 2), (0, 1)):
        parts = _swapped_parts(one[turned]) if len(one) == len(other) == 2 else None
        data = None if parts is None else _data_of_part(parts[0])
        if parts is not None and data is not None and data in other:
            return _Rotation(data, parts, (one[1 - turned], other[1 - other.index(data)]))
    return None


def _may_have_one_column(factor: ir.Value | None, data: ir.Value, seen: Facts) -> bool:
    """Return whether the last axis of a factor may have length 1, which that of data has not."""
    shape, whole = seen.tensor(factor).shape, seen.tensor(data).shape
    if not shape:
        return True
    return may_be_same(shape[-1:], (1,)) and not same_shape(shape[-1:], (whole or ())[-1:])


def _may_be_one_node(found: _Rotation, seen: Facts) -> bool:
    """Return whether all have as many axes, and Slices take parts, or a Split of lengths does.

    Along an axis that counts from the back that stays a Split.
    """
    shapes = [seen.tensor(each).shape for each in (found.data, *found.factors)]
    ranks = {len(shape) for shape in shapes if shape is not None}
    makers = list(filter(None, map(producer_of, found.parts)))
    return (
        len(ranks) < 2
        and ranks <= _RANKS_OF_ROTATIONS
        and all(operator_of(each) == "Slice" or _has_lengths(each) for each in makers)
    )


_RANKS_OF_ROTATIONS = frozenset({3, 4})


def _has_lengths(split: ir.Node) -> bool:
    axis = attribute_of(split, "axis", ir.AttributeType.INT, 0)
    has_lengths = len(split.inputs) > 1 or "split" in split.attributes
    return is_split(split) and has_lengths and (axis is None or axis >= 0)


def _are_halves(found: _Rotation, seen: Facts) -> bool:
    """Return whether the parts are the second half of the data and its first."""
    lengths = [(seen.tensor(each).shape or (None,))[-1:] for each in found.parts]
    made = found.parts[1].producer()
    if made is None or not same_shape(*lengths):
        return False
    if is_split(made):
        return found.parts == tuple(reversed(made.outputs))
    starts = attribute_of(made, "starts", ir.AttributeType.INTS)
    for held in made.inputs[1:2]:
        starts = seen.tensor(held).constant
    return starts is not None and not any(starts)


def _swapped_parts(held: ir.Value | None) -> tuple[ir.Value, ir.Value] | None:
    """Return the parts of data that a value has beside each other, the first of them negated.

    OpenVINO makes a rotary embedding only where they are joined along the axis -1.
    """
    joined = producer_of(passed_from(held))
    first, *others = operands_of(held, "Concat") or [None]
    parts = [*operands_of(first, "Mul", "Neg", "Sub"), *others]
    made = [each for each in parts if each is not None and _data_of_part(each) is not None]
    axis = joined and attribute_of(joined, "axis", ir.AttributeType.INT)
    is_of_one = len(set(map(_data_of_part, made))) == 1
    return (made[0], made[1]) if axis == -1 and is_of_one and len(made) == 2 else None


def _data_of_part(part: ir.Value | None) -> ir.Value | None:
    """Return the data that a node makes a value of."""
    made = producer_of(part)
    return None if made is None else passed_from(first_input(made))


def _has_window(ref: NodeRef, _: Facts) -> bool:
    """Return whether an Attention limits how far before and after a query its keys may be."""
    names = "left_window_size", "right_window_size"
    sizes = (attribute_of(ref.node, name, ir.AttributeType.INT, -1) for name in names)
    return any(size not in (-1, None) for size in sizes)


_FIRST_WITH_SHORT_MASKS = 24
"""From here on a mask of an Attention may be for the first keys alone."""


_RANK_OF_HEADS = 4
"""Data of an Attention with so many axes has its heads on an axis of their own."""


def _has_other_keys(ref: NodeRef, seen: Facts) -> bool:
    """Return whether a causal Attention with a past may not have as many queries as new keys."""
    is_causal = attribute_of(ref.node, "is_causal", ir.AttributeType.INT, 0)
    if not is_causal or ref.input(ATTENTION_PAST_KEY) is None:
        return False
    queries, keys = (seen.tensor(ref.input(place)).shape or () for place in (0, 1))
    return not same_shape(queries[-2:-1], keys[-2:-1]) or not queries


def _has_row_mask(ref: NodeRef, seen: Facts) -> bool:
    """Return whether the mask of an Attention has one row, and there may be several queries."""
    mask, queries = (seen.tensor(ref.input(place)).shape or () for place in (ATTENTION_MASK, 0))
    return mask[-2:-1] == (1,) and queries[-2:-1] != (1,)


def _has_short_mask(ref: NodeRef, seen: Facts) -> bool:
    """Return whether the mask of an Attention is known not to be for all of the keys."""
    given = [ref.input(place) for place in (ATTENTION_MASK, 1, ATTENTION_PAST_KEY)]
    shapes = [seen.tensor(held).shape or () for held in given if held is not None]
    if ref.opset < _FIRST_WITH_SHORT_MASKS or given[0] is None or not all(shapes):
        return False
    length, *counts = shapes[0][-1], *chain(*(shape[-2:-1] for shape in shapes[1:]))
    return isinstance(length, int) and sum(filter(is_known, counts)) > length


def _has_open_groups(ref: NodeRef, seen: Facts) -> bool:
    """Return whether it is not seen how many heads of queries an Attention has for one of keys."""
    shapes = [seen.tensor(ref.input(place)).shape for place in (0, 1)]
    if any(shape is None or len(shape) != _RANK_OF_HEADS for shape in shapes):
        return False
    heads = [shape[1:2] for shape in shapes if shape is not None]
    return not all(map(are_known, heads)) and not same_shape(*heads)


_HEADS_SWAPPED = (0, 2, 1, 3)
"""The order in which a Transpose changes the places of heads and tokens."""

_WEIGHED = frozenset(
    {
        *("Abs", "Add", "Cast", "Clip", "Div", "Exp", "Identity", "Max", "Min", "Mul", "Neg"),
        *("Pow", "Relu", "Reshape", "Sigmoid", "Sqrt", "Sub", "Tanh", "Where"),
    }
)
"""What OpenVINO calculates together with the products of an attention, in between."""

_BEFORE_TRANSPOSE = frozenset(
    {"Abs", "Cast", "Clip", "Exp", "Neg", "Relu", "Sigmoid", "Sqrt", "Tanh"}
)
_BY_A_NUMBER = frozenset({"Add", "Div", "Max", "Min", "Mul", "Pow", "Sub"})
"""What OpenVINO calculates before the Transpose of its data; these by one constant number."""

_AFTER_TRANSPOSE = frozenset({"Div", "Mul", "Neg"})
"""What it makes part of the attention, or calculates after a Transpose of the result."""

_ATTENTION_OPERATORS = frozenset({"Attention", "ScaledDotProductAttention"})
"""What is an attention by itself, of which the first operand are the queries."""


def overwrites_queries(ref: NodeRef, seen: Facts) -> bool:
    """Return whether an attention is calculated in the memory of its queries, in another order.

    Either the queries are transposed or the result is, and both are of one known shape: there are
    as many heads as queries. Only what some node gives to the attention alone is overwritten, and
    no part of a Split; and not where another node calculates with the result at once.
    """
    made, queries = next(iter(ref.node.outputs), None), _queries_of(ref)
    if made is None or queries is None:
        return False
    read, given = _heads_first(queries, seen), _heads_last(made, seen)
    if (read is queries) == (given is made) or not _is_free(read, seen):
        return False
    if any(operator_of(use.node) == "Max" for use in given.uses()):
        return False
    shape, result = (seen.tensor(held).shape for held in (read, given))
    if shape is None or result is None or not are_known(shape) or shape != result:
        return False
    return len(shape) == _RANK_OF_HEADS and shape[1] == shape[2] and shape[1] not in (0, 1)


def _queries_of(ref: NodeRef) -> ir.Value | None:
    """Return the queries, if a node is an attention or the last product of one."""
    if operator_of(ref.node) in _ATTENTION_OPERATORS:
        return passed_from(ref.input(0))
    weights = _weighed_from(ref.input(0), "Softmax")
    weighed = None if weights is None else _weighed_from(first_input(weights), "MatMul")
    return None if weighed is None else passed_from(first_input(weighed))


def _weighed_from(held: ir.Value | None, operator: str) -> ir.Node | None:
    """Return the node of an operator that a value comes from, through some nodes in between."""

    def before(node: ir.Node) -> ir.Value | None:
        makers = [each for each in node.inputs if producer_of(each) is not None]
        return makers[0] if operator_of(node) in _WEIGHED and makers else None

    for each in () if held is None else origins(held, before):
        if operator_of(made := producer_of(each)) == operator:
            return made
    return None


def _heads_first(queries: ir.Value, seen: Facts) -> ir.Value:
    """Return what queries were before a Transpose that nothing else reads.

    What calculates with each element after it, as a number that scales them, OpenVINO puts before.
    """
    held = queries
    for _ in range(MOST_STEPS):
        made = producer_of(held)
        before = None if made is None else passed_from(first_input(made))
        if made is None or before is None or len(_readers(held)) > 1:
            break
        if _swaps_heads(made):
            return before
        if not _may_come_first(made, seen):
            break
        held = before
    return queries


def _may_come_first(made: ir.Node, seen: Facts) -> bool:
    """Return whether OpenVINO calculates a node before the Transpose of its data."""
    if operator_of(made) in _BEFORE_TRANSPOSE:
        return True
    is_of_two = operator_of(made) in _BY_A_NUMBER and len(made.inputs) > 1
    return is_of_two and is_fixed_number(made.inputs[-1], seen)


def _heads_last(made: ir.Value, seen: Facts) -> ir.Value:
    """Return what a Transpose makes of a result, scaled or not, if nothing else reads that."""
    held = made
    for _ in range(MOST_STEPS):
        readers = _readers(held)
        if len(readers) != 1 or held.is_graph_output():
            break
        if _swaps_heads(readers[0]):
            return readers[0].outputs[0]
        others = [each for each in readers[0].inputs if each is not held]
        is_scaled = operator_of(readers[0]) in _AFTER_TRANSPOSE
        if not is_scaled or not all(is_fixed(each, seen) for each in others):
            break
        held = readers[0].outputs[0]
    return made


def _swaps_heads(node: ir.Node) -> bool:
    return operator_of(node) == "Transpose" and order_of(node, _RANK_OF_HEADS) == _HEADS_SWAPPED


def _readers(held: ir.Value) -> list[ir.Node]:
    return [use.node for use in held.uses() if not is_unused(use.node)]


def _is_free(held: ir.Value, seen: Facts) -> bool:
    """Return whether a node of the same graph gives a value memory of its own, for one reader."""
    made = producer_of(held)
    if made is None or is_split(made) or is_fixed(held, seen):
        return False
    return made.graph is not None and len(_readers(held)) == 1 and not held.is_graph_output()


OF_ATTENTION: Mapping[str, tuple[tuple[str, Callable[[NodeRef, Facts], object]], ...]] = {
    "Attention": (
        ("window", _has_window),
        ("aligned_to_end", _has_other_keys),
        ("row_mask", _has_row_mask),
        ("short_mask", _has_short_mask),
        ("open_groups", _has_open_groups),
        ("overwritten_queries", overwrites_queries),
    ),
}
"""What may hold of an Attention."""
