"""Lengths as other libraries mean them: values to give to any function that takes lengths.

The functions take and return integers only, and know no array.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice, pairwise
from typing import SupportsIndex

from tensorsplit.core import rules
from tensorsplit.core.dimensions import MAX_DIM, are_known, as_index
from tensorsplit.core.errors import (
    OPERAND_TYPE,
    OPERAND_VALUE,
    TOO_MANY_PARTS,
    SplitError,
    show,
    wrong_type,
)
from tensorsplit.core.rules import MAX_PARTS

__all__ = ["at", "balanced", "chunked", "ratio"]

_PIECE = 1 << 16


def at(indices: Iterable[SupportsIndex], dim: SupportsIndex) -> tuple[int, ...]:
    """Return the lengths of the parts between indices, as ``numpy.split`` cuts at them.

    Args:
        indices: Where the second part and each after it start: in [0, dim], none below the one
            before it. NumPy takes others too, and then repeats or clips data.
        dim: The dimension.

    Returns:
        One length more than there are indices; they sum to `dim`.

    Raises:
        SplitError: TS105 for a value that is not an integer, TS107 for one out of its range, TS308.

    Example:
        >>> ts.lengths.at([2, 5], 7)
        (2, 3, 2)

    See Also:
        https://numpy.org/doc/stable/reference/generated/numpy.split.html
    """
    name = "lengths.at"
    end = _integer(name, "dim", dim, 0, MAX_DIM)
    starts = [
        _integer(name, "indices", index, 0, end) for index in _listed(name, "indices", indices)
    ]
    lengths = tuple(after - before for before, after in pairwise([0, *starts, end]))
    if min(lengths) < 0:
        raise SplitError(
            OPERAND_VALUE,
            f"it is {show(starts)}, which go down",
            "give them in order",
            operator=name,
            parameter="indices",
        )
    return lengths


def balanced(dim: SupportsIndex, parts: SupportsIndex) -> tuple[int, ...]:
    """Return lengths that differ by at most 1, as ``numpy.array_split`` makes them.

    Args:
        dim: The dimension.
        parts: How many parts; the first ``dim % parts`` of them are longer by 1.

    Returns:
        The lengths, which sum to `dim`.

    Raises:
        SplitError: TS105 for a value that is not an integer, TS107 for one out of its range, TS308.

    Example:
        >>> ts.lengths.balanced(7, 3)
        (3, 2, 2)

    See Also:
        https://numpy.org/doc/stable/reference/generated/numpy.array_split.html
    """
    name = "lengths.balanced"
    whole, count = _integer(name, "dim", dim, 0, MAX_DIM), _count(name, "parts", parts)
    return _by_rule(rules.balanced, whole, count)


def chunked(dim: SupportsIndex, chunks: SupportsIndex) -> tuple[int, ...]:
    """Return the lengths of at most so many chunks, as ``torch.chunk`` makes them.

    Args:
        dim: The dimension.
        chunks: How many chunks at most. They have ``ceil(dim / chunks)`` elements; the last one
            has what is left, and there are fewer of them where nothing is left.

    Returns:
        The lengths, which sum to `dim`; `chunks` zeros where it is 0.

    Raises:
        SplitError: TS105 for a value that is not an integer, TS107 for one out of its range, TS308.

    Example:
        >>> ts.lengths.chunked(7, 3), ts.lengths.chunked(6, 4)
        ((3, 3, 1), (2, 2, 2))

    See Also:
        https://docs.pytorch.org/docs/stable/generated/torch.chunk.html
    """
    name = "lengths.chunked"
    whole, count = _integer(name, "dim", dim, 0, MAX_DIM), _count(name, "chunks", chunks)
    return _by_rule(rules.at_most, whole, count)


def _by_rule(rule: rules.LengthRule, dim: int, count: int) -> tuple[int, ...]:
    sizes = rules.apply(rule, dim, (count,))
    assert isinstance(sizes, tuple) and are_known(sizes)  # noqa: S101, PT018 - as the dimension is
    return sizes


def ratio(weights: Iterable[SupportsIndex], dim: SupportsIndex) -> tuple[int, ...]:
    """Return lengths in a ratio, as ``torch.utils.data.random_split`` makes them of fractions.

    Args:
        weights: The weight of each part: integers from 1 on.
        dim: The dimension.

    Returns:
        ``dim * weight // sum(weights)`` for each weight. What is left goes to the first parts, 1
        to each, so that the lengths sum to `dim`.

    Raises:
        SplitError: TS105 for a value that is not an integer, TS107 for one out of its range, TS308.

    Example:
        >>> ts.lengths.ratio((8, 1, 1), 1003)
        (803, 100, 100)

    See Also:
        https://docs.pytorch.org/docs/stable/data.html#torch.utils.data.random_split
    """
    name = "lengths.ratio"
    whole = _integer(name, "dim", dim, 0, MAX_DIM)
    given = [
        _integer(name, "weights", each, 1, MAX_DIM) for each in _listed(name, "weights", weights)
    ]
    _count(name, "weights", len(given))
    total = sum(given)
    lengths = [whole * weight // total for weight in given]
    left = whole - sum(lengths)
    return tuple(length + (number < left) for number, length in enumerate(lengths))


def _integer(operator: str, name: str, value: object, least: int, most: int) -> int:
    """Return an integer of any kind (TS105) that lies in a range (TS107)."""
    found = as_index(value)
    if found is None:
        raise SplitError(
            OPERAND_TYPE, wrong_type(value), "give integers", operator=operator, parameter=name
        )
    if not least <= found <= most:
        fix = f"give an integer in [{least}, {most}]"
        raise SplitError(
            OPERAND_VALUE, f"it is {show(found)}", fix, operator=operator, parameter=name
        )
    return found


def _count(operator: str, name: str, value: object) -> int:
    """Return a number of parts (TS107), which are not too many (TS308)."""
    count = _integer(operator, name, value, 1, MAX_DIM)
    if count > MAX_PARTS:
        problem, fix = f"it makes {count} parts", f"give {MAX_PARTS} at most"
        raise SplitError(TOO_MANY_PARTS, problem, fix, operator=operator, parameter=name)
    return count


def _listed(operator: str, name: str, values: Iterable[SupportsIndex]) -> list[SupportsIndex]:
    """Return values in a list (TS105), which are not too many (TS308)."""
    listed: list[SupportsIndex] = []
    try:
        iterated = islice(values, MAX_PARTS + 1)
        while piece := list(islice(iterated, _PIECE)):
            listed += piece
            if as_index(piece[-1]) is None:  # an iterator may never end
                break
    except Exception:  # noqa: BLE001 - someone else's iteration may raise anything
        problem = wrong_type(values)
        raise SplitError(
            OPERAND_TYPE, problem, "give a list of integers", operator=operator, parameter=name
        ) from None
    _count(operator, name, len(listed) or 1)
    return listed


def __dir__() -> list[str]:
    return [*__all__]
