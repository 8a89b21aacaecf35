"""Attention, and what turns data for it, of which an engine makes something else."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import chain, permutations, product

import onnx_ir as ir

from tensorsplit.core.dimensions import are_known, is_known, may_be_same, same_shape
from tensorsplit.model.features.values import operands_of
from tensorsplit.model.graph.nodes import NodeRef, attribute_of
from tensorsplit.model.graph.producers import first_input, passed_from, producer_of
from tensorsplit.model.infer.analysis import Facts


def is_rotation(ref: NodeRef, seen: Facts) -> bool:
    """Return whether an Add turns data by factors of one column, as rotary embeddings do.

    It adds the data times one factor and, times another, its second part, negated, beside its
    first.
    """
    products = [operands_of(held, "Mul") for held in ref.node.inputs]
    for (one, other), turned in product(permutations(products, 2), (0, 1)):
        data = _turned_from(one[turned], seen) if len(one) == len(other) == 2 else None
        if data is None or data not in other:
            continue
        factors = one[1 - turned], other[1 - other.index(data)]
        return any(_may_have_one_column(factor, data, seen) for factor in factors)
    return False


def _may_have_one_column(factor: ir.Value | None, data: ir.Value, seen: Facts) -> bool:
    """Return whether the last axis of a factor may have length 1, which that of data has not."""
    shape, whole = seen.tensor(factor).shape, seen.tensor(data).shape
    if not shape:
        return True
    return may_be_same(shape[-1:], (1,)) and not same_shape(shape[-1:], (whole or ())[-1:])


def _turned_from(held: ir.Value | None, seen: Facts) -> ir.Value | None:
    """Return of what a value is the second part, negated, and the first, joined; None of others."""
    first, *others = operands_of(held, "Concat") or [None]
    axis, rank = _axis_and_rank(held, seen)
    parts = [*operands_of(first, "Mul", "Neg", "Sub"), *others[:1]]
    made = [each for each in map(producer_of, parts) if each is not None and each.inputs]
    sources = {passed_from(first_input(each)) for each in made} if axis in (-1, rank - 1) else set()
    return sources.pop() if len(made) > 1 and len(sources) == 1 else None


def _axis_and_rank(joined: ir.Value | None, seen: Facts) -> tuple[int, int]:
    made = producer_of(passed_from(joined))
    axis = 0 if made is None else attribute_of(made, "axis", ir.AttributeType.INT, 0)
    return axis, len(seen.tensor(joined).shape or ())


def _has_window(ref: NodeRef, _: Facts) -> bool:
    """Return whether an Attention limits how far before and after a query its keys may be."""
    names = "left_window_size", "right_window_size"
    sizes = (attribute_of(ref.node, name, ir.AttributeType.INT, -1) for name in names)
    return any(size not in (-1, None) for size in sizes)


_PAST_KEY = 4
"""The place of the keys that an Attention is given from before."""


MASK = 3
"""The place of the mask of an Attention."""


_FIRST_WITH_SHORT_MASKS = 24
"""From here on a mask of an Attention may be for the first keys alone."""


_RANK_OF_HEADS = 4
"""Data of an Attention with so many axes has its heads on an axis of their own."""


def _has_other_keys(ref: NodeRef, seen: Facts) -> bool:
    """Return whether a causal Attention with a past may not have as many queries as new keys."""
    is_causal = attribute_of(ref.node, "is_causal", ir.AttributeType.INT, 0)
    if not is_causal or ref.input(_PAST_KEY) is None:
        return False
    queries, keys = (seen.tensor(ref.input(place)).shape or () for place in (0, 1))
    return not same_shape(queries[-2:-1], keys[-2:-1]) or not queries


def _has_row_mask(ref: NodeRef, seen: Facts) -> bool:
    """Return whether the mask of an Attention has one row, and there may be several queries."""
    mask, queries = (seen.tensor(ref.input(place)).shape or () for place in (MASK, 0))
    return mask[-2:-1] == (1,) and queries[-2:-1] != (1,)


def _has_short_mask(ref: NodeRef, seen: Facts) -> bool:
    """Return whether the mask of an Attention is known not to be for all of the keys."""
    given = [ref.input(place) for place in (MASK, 1, _PAST_KEY)]
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


OF_ATTENTION: Mapping[str, tuple[tuple[str, Callable[[NodeRef, Facts], object]], ...]] = {
    "Attention": (
        ("window", _has_window),
        ("aligned_to_end", _has_other_keys),
        ("row_mask", _has_row_mask),
        ("short_mask", _has_short_mask),
        ("open_groups", _has_open_groups),
    ),
}
"""What may hold of an Attention."""
