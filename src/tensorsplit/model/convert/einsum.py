"""Einsum before opset 12: diagonals, products and sums of tensors whose axes have labels."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, dropwhile
from math import prod
from typing import TypeAlias

import onnx_ir as ir

from tensorsplit.core.arithmetic import Number, dimension, guarded, same, value
from tensorsplit.core.dimensions import are_known, is_known
from tensorsplit.core.errors import SplitError
from tensorsplit.model.convert.conversion import NodeConversion
from tensorsplit.model.graph.calculation import FLOATS
from tensorsplit.model.graph.equations import EinsumTerm, terms_of

_Label: TypeAlias = "str | int"
"""A letter, or which of the dimensions that an ellipsis stands for."""

_ABSENT: _Label = ""
"""The label of an axis of length 1 that only a matrix has."""

_FIRST_WITH_INTEGER_PRODUCTS = 9
"""From here on MatMul takes integers."""

_CALCULATED = (
    *FLOATS,
    *(ir.DataType.INT32, ir.DataType.INT64, ir.DataType.UINT32, ir.DataType.UINT64),
)
"""The element types that Mul, MatMul and ReduceSum take before opset 12."""


@dataclass(frozen=True, slots=True)
class _Term:
    """A tensor with labels for its axes.

    Attributes:
        lengths: Those of the axes, where they are numbers.
    """

    value: ir.Value
    labels: tuple[_Label, ...]
    lengths: tuple[int | None, ...]

    def known(self, label: _Label) -> int | None:
        """Return the length of an axis, if it is a number."""
        return self.lengths[self.labels.index(label)]

    def length(self, label: _Label, known: int | None) -> Number:
        """Return the length of an axis: a number, else what the running model finds."""
        return dimension(self.value, self.labels.index(label)) if known is None else known

    def kept(self, value: ir.Value, axes: Sequence[int]) -> _Term:
        """Return a tensor that has these axes of this one."""
        labels, lengths = (
            (self.labels[axis] for axis in axes),
            (self.lengths[axis] for axis in axes),
        )
        return _Term(value, tuple(labels), tuple(lengths))


def einsum_down(node: NodeConversion) -> None:
    """Multiply the operands from left to right; what nothing needs any more is summed on the way.

    A label that is summed may have the length 1 in one operand and another in the other: that is
    broadcast where one of them is known to be 1. Where only the running model knows it, it stops.
    """
    terms, wanted = _read(node)
    term, *others = (_diagonal(node, each) for each in terms)
    for place, other in enumerate(others):
        later = chain.from_iterable(each.labels for each in others[place + 1 :])
        term = _product(node, term, other, {*wanted, *later})
    found = _aligned(node, _summed(node, term, wanted), wanted)
    node.replace(node.make.op("Identity", [found]) if found is node.input(0) else found)


def _read(node: NodeConversion) -> tuple[list[_Term], list[_Label]]:
    """Return the operands with their labels, and the labels of the result."""
    found = terms_of(str(node.attribute("equation")))
    assert found is not None  # noqa: S101 - no other equation is well-formed
    parts, result = found
    if len(parts) != len(node.node.inputs):
        raise _wrong(node, f"is not one of {len(node.node.inputs)} operands")
    counts = {_dimensions_in_ellipsis(node, *each) for each in enumerate(parts)} - {None}
    if len(counts) > 1:
        raise _wrong(node, "has ellipses that stand for different numbers of dimensions")
    ellipsis: list[_Label] = list(range(next(filter(None, counts), 0)))
    labels = [_labels(part, ellipsis) for part in parts]
    times = Counter(chain.from_iterable(labels))
    once = sorted(filter(str.isalpha, (str(label) for label, count in times.items() if count == 1)))
    wanted = [*ellipsis, *once] if result is None else _labels(result, ellipsis)
    if len(set(wanted)) < len(wanted) or not times.keys() >= set(wanted):
        raise _wrong(node, "gives dimensions that the operands do not have, or one of them twice")
    if not {*ellipsis} <= {*wanted}:
        raise _wrong(node, "leaves out the ellipsis in its result")
    return [_term(node, *each) for each in enumerate(labels)], wanted


def _labels(term: EinsumTerm, ellipsis: Sequence[_Label]) -> list[_Label]:
    return [*term.head, *(ellipsis if term.ellipsis else ()), *term.tail]


def _wrong(node: NodeConversion, reason: str) -> SplitError:
    equation = node.attribute("equation")
    return node.refusal(f"its equation {equation!r} {reason}", "repair the node")


def _dimensions_in_ellipsis(node: NodeConversion, index: int, term: EinsumTerm) -> int | None:
    """Return how many dimensions of an operand an ellipsis stands for; None without one."""
    if not term.ellipsis:
        return None
    shape = node.shape(index)
    if shape is None:
        reason = "its equation has an ellipsis, and the rank of an operand is not known"
        raise node.refusal(reason, "declare the shapes of its operands")
    return len(shape) - len(term.head + term.tail)


def _term(node: NodeConversion, index: int, labels: Sequence[_Label]) -> _Term:
    shape = node.shape(index)
    if shape is None:
        shape = (None,) * len(labels)
    if len(shape) != len(labels):
        raise _wrong(node, f"has {len(labels)} dimensions for an operand of {len(shape)}")
    lengths = tuple(dim if is_known(dim) else None for dim in shape)
    return _Term(node.given(index), tuple(labels), lengths)


def _diagonal(node: NodeConversion, term: _Term) -> _Term:
    """Take the elements of each two axes of one label at the same place in both.

    They lie on one axis, n + 1 elements apart, if the two axes of length n become one. A zero in
    a Reshape keeps a dimension, and where n is 0, it is the one that is kept. Two lengths that are
    not the same stop the running model, without elements too, which any Reshape fits.
    """
    while (twice := _repeated(term.labels)) is not None:
        make = node.make
        first, second = [axis for axis, label in enumerate(term.labels) if label == twice][:2]
        lengths = [term.lengths[axis] for axis in (first, second)]
        if are_known(lengths) and lengths[0] != lengths[1]:
            raise _unequal(node, *lengths)
        known = next(filter(is_known, lengths), None)
        counts = [_length(term, axis) for axis in (first, second)]
        count = counts[0] if known is None else known
        side = count if are_known(lengths) else guarded(count, same(*counts))
        before = [axis for axis in range(len(term.labels)) if axis not in (first, second)]
        moved = _moved(node, term.value, [*before, first, second])
        flat = _joined(node, moved, len(before), side * side)
        if known is None:
            places = make.make(value(make.range(0, count)) * (count + 1))
        else:
            places = make.range(0, known * known, known + 1)
        taken = make.op("Gather", [flat, places], {"axis": len(before)})
        term = term.kept(taken, [*before, first])
    return term


def _length(term: _Term, axis: int) -> Number:
    """Return the length of an axis: a number, else what the running model finds."""
    known = term.lengths[axis]
    return dimension(term.value, axis) if known is None else known


def _joined(node: NodeConversion, data: ir.Value, kept: int, size: Number) -> ir.Value:
    """Make the axes after those that are kept one axis, of a size.

    The shape is not a Concat: ONNX Runtime 1.32.0 takes the size after zeros for -1, then
    refuses data without elements.
    """
    make = node.make
    if is_known(size):
        shape = make.make((*[0] * kept, size))
    else:
        shape = make.make(value(make.make((*[0] * kept, 1))) * size)
    return make.op("Reshape", [data, shape])


def _repeated(labels: Iterable[_Label]) -> _Label | None:
    return next((label for label, times in Counter(labels).items() if times > 1), None)


def _summed(node: NodeConversion, term: _Term, wanted: Collection[_Label]) -> _Term:
    """Sum up the axes that nothing needs."""
    axes = [axis for axis, label in enumerate(term.labels) if label not in wanted]
    if not axes:
        return term
    _check_type(node)
    total = node.make.op("ReduceSum", [term.value], {"axes": axes, "keepdims": 0})
    kept = [axis for axis in range(len(term.labels)) if axis not in axes]
    return term.kept(total, kept)


def _product(node: NodeConversion, left: _Term, right: _Term, wanted: set[_Label]) -> _Term:
    """Multiply two tensors, and sum up what nothing needs."""
    both = {label for label in left.labels if label in right.labels}
    lengths = {label: _common(node, left.known(label), right.known(label)) for label in both}
    alike = {label for label in both if 1 not in (left.known(label), right.known(label))}
    left, right = (
        _summed(node, one, wanted | (alike & {*other.labels}))
        for one, other in ((left, right), (right, left))
    )
    lengths |= {each: left.known(each) for each in _only(left, right)}
    lengths |= {each: right.known(each) for each in _only(right, left)}
    _check_type(node)
    inner = [label for label in left.labels if label in alike - wanted]
    has_matrices = inner and len(both) < len({*left.labels, *right.labels})
    if has_matrices and _takes_matrices(node):
        made, labels = _matrix_product(node, left, right, inner, lengths)
    else:
        labels = (*left.labels, *_only(right, left))
        pair = [_aligned(node, each, _from_first(each, labels)) for each in (left, right)]
        made = node.make.op("Mul", pair)
    product = _Term(made, labels, tuple(lengths[label] for label in labels))
    return _summed(node, product, wanted)


def _only(one: _Term, other: _Term) -> list[_Label]:
    """Return the labels of a tensor that another one lacks."""
    return [label for label in one.labels if label not in other.labels]


def _common(node: NodeConversion, one: int | None, other: int | None) -> int | None:
    """Return the length of an axis of a product, if it is a number; 1 is broadcast."""
    lengths = {one, other} - {1}
    if len(lengths - {None}) > 1:
        raise _unequal(node, one, other)
    return next(iter(lengths - {None} or lengths), 1)


def _unequal(node: NodeConversion, one: object, other: object) -> SplitError:
    return _wrong(node, f"has one letter for dimensions of {one} and {other}")


def _takes_matrices(node: NodeConversion) -> bool:
    """Return whether the target multiplies matrices of the element type."""
    kind = node.dtype()
    is_recent = node.conversion.target >= _FIRST_WITH_INTEGER_PRODUCTS
    return is_recent or (kind is not None and kind.is_floating_point())


def _check_type(node: NodeConversion) -> None:
    kind = node.dtype()
    if kind is not None and kind not in _CALCULATED:
        raise node.refusal(
            f"its data is {kind.name.lower()}; opset {node.opset} multiplies and sums up"
            f" {', '.join(each.name.lower() for each in _CALCULATED)}",
            "cast the data around the node",
        )


def _matrix_product(
    node: NodeConversion,
    left: _Term,
    right: _Term,
    inner: Sequence[_Label],
    lengths: Mapping[_Label, int | None],
) -> tuple[ir.Value, tuple[_Label, ...]]:
    """Multiply matrices, one for each element of the other axes; return the product's labels.

    The axes that are summed become one, as far as a Reshape to it is legal whatever their lengths
    are: all but one of those that may be 0. The others stay in the product, to be summed there.
    """
    rows, columns = _only(left, right), _only(right, left)
    may_be_empty = [label for label in inner if not lengths[label]]
    joined = [*may_be_empty[:1], *(label for label in inner if lengths[label])]
    batch = [label for label in left.labels if label in right.labels and label not in joined]
    batch += [*rows[:-1], *columns[:-1]]
    row, column = rows[-1:] or [_ABSENT], columns[-1:] or [_ABSENT]
    first = _matrices(node, left, (batch, row, joined), lengths)
    second = _matrices(node, right, (batch, joined, column), lengths)
    labels = [*batch, *row, *column]
    product = node.make.op("MatMul", [first, second])
    if _ABSENT in labels:
        product = node.make.squeeze(product, [labels.index(_ABSENT)])
        labels.remove(_ABSENT)
    return product, tuple(labels)


def _matrices(
    node: NodeConversion,
    term: _Term,
    axes: tuple[Sequence[_Label], Sequence[_Label], Sequence[_Label]],
    lengths: Mapping[_Label, int | None],
) -> ir.Value:
    """Return a tensor as matrices of two axes, of which one may be made of several."""
    front, *ends = _from_first(term, axes[0]), *axes[1:]
    joined = max(ends, key=len)
    if len(joined) == 1:
        return _aligned(node, term, [*front, *ends[0], *ends[1]])
    make, kept = node.make, [*front, *min(ends, key=len)]
    size = prod((term.length(each, lengths[each]) for each in joined), start=1)
    matrices = _joined(node, _aligned(node, term, [*kept, *joined]), len(kept), size)
    is_last = joined is ends[1]
    return matrices if is_last else make.moved(matrices, len(kept) + 1, -1, len(kept) - 1)


def _from_first(term: _Term, labels: Sequence[_Label]) -> list[_Label]:
    """Return labels from the first one on that a tensor has: axes before it are broadcast."""
    return list(dropwhile(lambda label: label not in term.labels, labels))


def _aligned(node: NodeConversion, term: _Term, labels: Sequence[_Label]) -> ir.Value:
    """Return a tensor with its axes in an order of labels, with axes of 1 for those it lacks."""
    order = [term.labels.index(label) for label in labels if label in term.labels]
    moved = _moved(node, term.value, order)
    absent = [axis for axis, label in enumerate(labels) if label not in term.labels]
    return node.make.unsqueeze(moved, absent) if absent else moved


def _moved(node: NodeConversion, data: ir.Value, order: Sequence[int]) -> ir.Value:
    """Return a tensor with its axes in another order."""
    if order == list(range(len(order))):
        return data
    return node.make.op("Transpose", [data], {"perm": list(order)})
