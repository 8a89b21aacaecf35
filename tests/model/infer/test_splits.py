"""Splits of which something is not known, and what they are for all that it may be."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import product
from typing import Any

import onnx_ir as ir
import pytest

from tensorsplit.model.graph.facts import UNKNOWN, Fact, Other, SequenceFact, Tensor
from tensorsplit.model.infer.splits import KnownSplit, length_of_axis, split_of

OPEN = None
DIMS = (0, 1, 2, 3, 4, 5, 7, OPEN)
ANY_DIM, ANY_LENGTH = range(9), (-2, -1, 0, 1, 2, 3, 4, 5, 6, 7)


def explicit(dim: int, lengths: Sequence[int]) -> list[int] | None:
    """Lengths as they are given, by the text; None of those that are refused."""
    is_legal = min(lengths, default=0) >= 0 and sum(lengths) == dim
    return list(lengths) if is_legal else None


def chunks(dim: int, length: int) -> list[int] | None:
    """Chunks of a length, of which the last may be shorter."""
    if length <= 0:
        return None
    return [min(length, dim - start) for start in range(0, dim, length)]


def equal(dim: int, count: int) -> list[int] | None:
    return [dim // count] * count if dim % count == 0 else None


def rounded_up(dim: int, count: int) -> list[int] | None:
    """Parts of the length rounded up; the last has what is left, which is not below 0."""
    length = -(-dim // count)
    rest = dim - length * (count - 1)
    return [*[length] * (count - 1), rest] if rest >= 0 else None


def known(
    op_type: str, opset: int, inputs: list[Fact], count: int = 1, **attributes: int
) -> KnownSplit:
    held = [ir.AttrInt64(name, number) for name, number in attributes.items()]
    ends = [ir.Value(name=f"i{place}") for place in range(len(inputs))]
    return split_of(ir.Node("", op_type, ends, held, num_outputs=count), opset, inputs)


def data(dim: Any) -> Tensor:
    return Tensor(ir.DataType.FLOAT, (3, dim, 2))


def check(found: KnownSplit, results: Sequence[list[int] | None], *, is_all: bool) -> None:
    """Check what is known of a split on axis 1 against what it gives for all that may be.

    Args:
        found: What is known.
        results: The lengths, for all that is not known; None where they are refused.
        is_all: Whether nothing is left open.
    """
    may_fail = None in results
    if found.errors or (is_all and may_fail):
        assert set(map(bool, found.errors)) == {True}
        assert all(each is None for each in results)
        return
    assert not found.is_decided or not may_fail
    assert found.is_decided or not is_all
    for lengths in (each for each in results if each is not None):
        (first, *_) = found.outputs
        if isinstance(first, SequenceFact):
            shapes = [first.part, *(first.parts or ())]
            pairs = [*product(shapes[:1], lengths), *zip(shapes[1:], lengths, strict=False)]
            assert first.count == len(lengths) if is_all else first.count in (OPEN, len(lengths))
            assert len(first.parts or lengths) == len(lengths)
            assert not is_all or len(set(lengths)) != 1 or shapes[0] == (3, lengths[0], 2)
        else:
            pairs = [
                (fact.shape, length)
                for fact, length in zip(found.outputs, lengths, strict=True)
                if isinstance(fact, Tensor)
            ]
            assert not is_all or [shape for shape, _ in pairs] == [(3, dim, 2) for dim in lengths]
        assert all(shape in ((3, OPEN, 2), (3, length, 2)) for shape, length in pairs)


def all_of(entries: Sequence[Any], unknown: Sequence[int]) -> Iterator[tuple[int, ...]]:
    return product(*(unknown if each is OPEN else (each,) for each in entries))


@pytest.mark.parametrize("dim", DIMS)
@pytest.mark.parametrize("op_type", ["Split", "SplitToSequence"])
def test_lengths_of_which_some_are_known(op_type: str, dim: int | None) -> None:
    for count in (1, 2, 3):
        for lengths in product((-1, 0, 1, 2, 3, OPEN), repeat=count):
            given = Tensor(ir.DataType.INT64, (count,), lengths)
            outputs = count if op_type == "Split" else 1
            found = known(op_type, 13, [data(dim), given], outputs, axis=1)
            choices = product(all_of([dim], ANY_DIM), all_of(lengths, ANY_LENGTH))
            results = [explicit(length, each) for (length,), each in choices]
            check(found, results, is_all=OPEN not in (dim, *lengths))


@pytest.mark.parametrize("dim", DIMS)
def test_splits_by_a_count_or_a_length(dim: int | None) -> None:
    cases: list[tuple[str, int, Callable[[int, int], Any], Any]] = [
        *(("Split", 13, equal, count) for count in (1, 2, 3, 4)),
        *(("Split", 18, rounded_up, count) for count in (1, 2, 3, 4)),
        *(("SplitToSequence", 11, chunks, length) for length in (-1, 0, 1, 2, 3, 9, OPEN)),
        ("SplitToSequence", 11, lambda dim, _: [1] * dim, "none"),
    ]
    for op_type, opset, rule, number in cases:
        inputs, outputs, attributes = [data(dim)], 1, {"axis": -2}
        if op_type == "Split":
            outputs = number
            attributes |= {"num_outputs": number} if opset == 18 else {}
        elif number != "none":
            inputs.append(Tensor(ir.DataType.INT64, (), (number,)))
        found = known(op_type, opset, list(inputs), outputs, **attributes)
        choices = product(all_of([dim], ANY_DIM), all_of([number], ANY_LENGTH))
        results = [rule(*length, *each) for length, each in choices]
        check(found, results, is_all=OPEN not in (dim, number))


@pytest.mark.parametrize("axis", [0, 1, 2, -1, -2, -3])
@pytest.mark.parametrize("op_type", ["Split", "SplitToSequence"])
def test_lengths_of_which_nothing_is_known(op_type: str, axis: int) -> None:
    """All axes but the one that is split are as they were, and as many parts as there are."""
    shape: list[Any] = [3, "N", 2]
    whole = Tensor(ir.DataType.FLOAT, tuple(shape))
    shape[axis] = OPEN
    for count, dims in ((2, (2,)), (OPEN, (OPEN,)), (OPEN, None)):
        given = Tensor(ir.DataType.INT64, dims)
        made = known(op_type, 13, [whole, given], 2 if op_type == "Split" else 1, axis=axis)
        assert not made.is_decided
        assert made.errors == []
        if op_type == "Split":
            assert made.outputs == [Tensor(ir.DataType.FLOAT, tuple(shape))] * 2
        else:
            assert made.outputs == [SequenceFact(ir.DataType.FLOAT, tuple(shape), count)]
        without = known(op_type, 13, [Tensor(ir.DataType.FLOAT), given], 2 - (op_type != "Split"))
        (first, *_) = without.outputs
        assert first in (Tensor(ir.DataType.FLOAT), SequenceFact(ir.DataType.FLOAT, None, count))


def test_chunks_of_nothing_would_be_as_long_as_others() -> None:
    for dim, length, wanted in ((0, 3, 3), (0, None, 1), (5, None, 1)):
        given = [] if length is None else [Tensor(ir.DataType.INT64, (), (length,))]
        (made,) = known("SplitToSequence", 11, [data(dim), *given], axis=1).outputs
        assert isinstance(made, SequenceFact)
        assert made.part == (3, wanted, 2)
        assert made.count == dim


def test_elements_are_split_with_their_list() -> None:
    """Those of a table are not: they are in another order."""
    values = (7, "N", 5, OPEN)
    given = Tensor(ir.DataType.INT64, (2,), (1, 3))
    listed = known("Split", 13, [Tensor(ir.DataType.INT64, (4,), values), given], 2)
    assert [each.values for each in listed.outputs if isinstance(each, Tensor)] == [
        values[:1],
        values[1:],
    ]
    halves = Tensor(ir.DataType.INT64, (2,), (1, 1))
    for axis in (0, 1):
        whole = Tensor(ir.DataType.INT64, (2, 2), values)
        table = known("Split", 13, [whole, halves], 2, axis=axis)
        assert [each.values for each in table.outputs if isinstance(each, Tensor)] == [None] * 2


def test_the_length_of_an_axis() -> None:
    """One that only the running model knows is known of axes that are all of one length."""
    shapes: list[Any] = [(3, 5), (4, 4), (3, "N"), ("N", "N"), (), None]
    for shape, axis in product(shapes, range(-3, 3)):
        intent = known("Split", 13, [data(4)], 2, axis=axis).require_intent()
        dims = dict(
            zip(
                (*range(-len(shape or ()), 0), *range(len(shape or ()))),
                (shape or ()) * 2,
                strict=True,
            )
        )
        assert length_of_axis(intent, Tensor(ir.DataType.FLOAT, shape)) == dims.get(axis)
        fed = replace(intent, axis=None)
        wanted = shape[0] if shape and len({*shape}) == 1 else None
        assert length_of_axis(fed, Tensor(ir.DataType.FLOAT, shape)) == wanted


OPTIONAL = ir.OptionalType(ir.TensorType(ir.DataType.FLOAT))


@pytest.mark.parametrize(
    ("given", "is_wrong"),
    [
        (UNKNOWN, False),
        (Tensor(None), False),
        (Tensor(None, (4, 3)), False),
        (Tensor(ir.DataType.FLOAT), False),
        (Tensor(ir.DataType.FLOAT, (4, "N")), False),
        (SequenceFact(ir.DataType.FLOAT), True),
        (Other(OPTIONAL), True),
    ],
)
def test_data_of_which_little_is_known(given: Fact, is_wrong: bool) -> None:
    """Only a tensor of a known type and length is sure to be split, and nothing else can be.

    Lengths below 0 are wrong for any of it.
    """
    for lengths in ((1, 3), (OPEN, 3), (-1, 5)):
        made = known("Split", 13, [given, Tensor(ir.DataType.INT64, (2,), lengths)], 2)
        assert bool(made.errors) is (is_wrong or -1 in lengths)
        is_sure = given == Tensor(ir.DataType.FLOAT, (4, "N")) and lengths == (1, 3)
        assert made.is_decided is is_sure
        kind = given.element_type if isinstance(given, Tensor) else None
        assert all(isinstance(e, Tensor) and e.element_type == kind for e in made.outputs)
