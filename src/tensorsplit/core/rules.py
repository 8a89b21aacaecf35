"""The length rules. Every operator of the family uses these and no other place decides lengths.

A rule takes the dimension and what was given (a tuple of integers) and returns the sizes of the
parts. It uses only ``+ - * //`` on the dimension, so that it serves numbers and symbols alike,
and refuses what can be refused for the numbers it knows. It names no operator.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from tensorsplit.core.dimensions import MAX_DIM, Dim, compute, is_known
from tensorsplit.core.errors import (
    CHUNK_LENGTH,
    LENGTHS_SUM,
    NEGATIVE_LENGTH,
    NOT_DIVISIBLE,
    OPERAND_VALUE,
    REMAINDER,
    TOO_MANY_OUTPUTS,
    TOO_MANY_PARTS,
    SplitError,
    show_int,
)

MAX_PARTS = 1 << 24
"""More parts than this are refused: their list alone would take gigabytes (ADR 0004)."""


@dataclass(frozen=True, slots=True)
class Chunks:
    """Parts of one length whose number follows from a dimension that is not known."""

    count: Dim
    size: Dim


Sizes: TypeAlias = "tuple[Dim, ...] | Chunks"
Rule: TypeAlias = Callable[[Dim, "tuple[int, ...]"], Sizes]


def explicit(dim: Dim, lengths: tuple[Dim, ...]) -> Sizes:
    """The lengths as given; they are >= 0 and sum to the dimension (D6, D7, D14).

    Lengths that a graph computes may be symbolic; what is not a number is not checked.
    """
    _few(len(lengths))
    _not_negative(lengths, lengths)
    if not all(map(is_known, lengths)):
        return lengths
    total = sum(lengths)
    if is_known(dim) and total != dim:
        raise SplitError(
            LENGTHS_SUM,
            f"{_show(lengths)} sums to {show_int(total)}, but the dimension is {dim}",
            f"give lengths that sum to {dim}",
        )
    if total > MAX_DIM:
        raise SplitError(
            LENGTHS_SUM,
            f"{_show(lengths)} sums to {show_int(total)}, more than any dimension has",
            "give lengths that sum to the dimension",
        )
    return lengths


def remainder(dim: Dim, lengths: tuple[Dim, ...]) -> Sizes:
    """As `explicit`, but one length may be -1: what the others leave, which is >= 0 (D7)."""
    if -1 not in lengths:
        return explicit(dim, lengths)
    if lengths.count(-1) > 1:
        raise SplitError(
            REMAINDER, f"{_show(lengths)} has -1 more than once", "leave one length open at most"
        )
    _few(len(lengths))
    given = tuple(length for length in lengths if length != -1)
    _not_negative(given, lengths)
    if not all(map(is_known, given)):
        return tuple(None if length == -1 else length for length in lengths)
    total = sum(given)
    rest = compute(lambda d: d - total, dim) if total <= MAX_DIM else -total
    if is_known(rest) and rest < 0:
        raise SplitError(
            REMAINDER,
            f"{_show(lengths)} takes {show_int(total)} besides the -1 of the dimension {dim}",
            f"give lengths that sum to at most {dim}",
        )
    return tuple(rest if length == -1 else length for length in lengths)


def equal(dim: Dim, given: tuple[int, ...]) -> Sizes:
    """``n`` parts of the same length; the dimension is a multiple of n (D3)."""
    count = _count(given)
    if is_known(dim) and dim % count:
        uneven = ", or use num_outputs of onnx.Split-18" if _last(dim, count) >= 0 else ""
        raise SplitError(
            NOT_DIVISIBLE,
            f"the dimension {dim} is not divisible into {count} equal parts",
            f"give explicit lengths{_example(dim, count)}{uneven}",
        )
    return (compute(lambda d: d // count, dim),) * count


def ceil(dim: Dim, given: tuple[int, ...]) -> Sizes:
    """Of the length d/n rounded up, n parts; the last one smaller, but not below 0 (D1, D2)."""
    count = _count(given)
    size = compute(lambda d: -(-d // count), dim)
    last = compute(lambda d: _last(d, count), dim)
    if is_known(last) and last < 0:
        raise SplitError(
            TOO_MANY_OUTPUTS,
            f"{count} parts of ceil({dim}/{count}) = {size} leave {last} for the last part"
            f" of the dimension {dim}",
            f"give explicit lengths{_example(dim, count)}",
        )
    return (size,) * (count - 1) + (last,)


def _last(dim: Dim, count: int) -> Dim:
    """What `count` - 1 parts of the length d/n rounded up leave of a dimension."""
    return dim - (-(-dim // count)) * (count - 1)


def chunk(dim: Dim, given: tuple[int, ...]) -> Sizes:
    """Chunks of the given length, the last one smaller if need be (D9, D10)."""
    length: Dim = given[0]
    if not is_known(length):
        return Chunks(None, None)
    if length <= 0:
        raise SplitError(
            CHUNK_LENGTH, f"the chunk length is {show_int(length)}", "give a length > 0"
        )
    length = min(length, MAX_DIM)
    if not is_known(dim):
        size = 1 if length == 1 else None
        return Chunks(compute(lambda d: -(-d // length), dim), size)
    whole: int
    rest: int
    whole, rest = divmod(dim, length)
    _few(whole)
    return (length,) * whole + ((rest,) if rest else ())


def ones(dim: Dim, _given: tuple[int, ...]) -> Sizes:
    """Parts of length 1, as many as the dimension says."""
    return chunk(dim, (1,))


def _not_negative(lengths: tuple[Dim, ...], given: tuple[Dim, ...]) -> None:
    if any(is_known(length) and length < 0 for length in lengths):
        raise SplitError(
            NEGATIVE_LENGTH, f"{_show(given)} has a length below 0", "give lengths >= 0"
        )


def _count(given: tuple[int, ...]) -> int:
    (count,) = given
    if count < 1:
        raise SplitError(
            OPERAND_VALUE, f"{show_int(count)} parts are asked for", "give a count >= 1"
        )
    _few(count)
    return count


def _few(count: int) -> None:
    if count > MAX_PARTS:
        raise SplitError(
            TOO_MANY_PARTS,
            f"{show_int(count)} parts are asked for",
            f"cut into at most {MAX_PARTS} parts",
        )


def _example(dim: int, count: int) -> str:
    """Lengths that would do."""
    size, larger = divmod(dim, count)
    if count > 12:
        return f", such as split = [{size + 1}] * {larger} + [{size}] * {count - larger}"
    return f", such as split = {[size + 1] * larger + [size] * (count - larger)}"


def _show(lengths: tuple[int, ...]) -> str:
    """A list of lengths, cut short where it is long."""
    if len(lengths) <= 12:
        return f"[{', '.join(map(show_int, lengths))}]"
    return f"[{', '.join(map(show_int, lengths[:8]))}, ... {len(lengths)} lengths]"
