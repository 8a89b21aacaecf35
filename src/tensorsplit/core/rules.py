"""The length rules. Operators and dialects use these, and no other place decides lengths.

A rule takes the dimension and what was given and returns the lengths of the parts. It is written
once, with the functions of `arithmetic`, for numbers of every kind, and names no operator.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeAlias

from tensorsplit.core.arithmetic import (
    Number,
    Numbers,
    as_dim,
    as_number,
    at_least,
    choose,
    clamped,
    count_in,
    each,
    explain,
    in_order,
    none_below,
    only,
    require,
    rounded_up,
    same,
    size_of,
    total,
)
from tensorsplit.core.dimensions import MAX_DIM, Dim, are_known, is_known
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

SHARE = -233
"""What stands for a share of what is left."""


@dataclass(frozen=True, slots=True)
class Chunks:
    """Parts of one length, but perhaps the last one, which what is left of ``dim`` decides."""

    dim: Number
    count: Number
    size: Number

    def parts(self, count: int) -> tuple[Number, ...]:
        """Return the lengths of so many parts."""
        _few(count)
        if not count:
            return ()
        return (self.size,) * (count - 1) + (self.dim - self.size * (count - 1),)


@dataclass(frozen=True, slots=True)
class Uncounted:
    """Parts of one length, but perhaps the last one: it is not known how many, or they are many."""

    count: Dim
    size: Dim


Sizes: TypeAlias = "Numbers | Chunks"
LengthRule: TypeAlias = Callable[[Number, Numbers], Sizes]


def apply(
    rule: LengthRule, dim: Dim, given: tuple[Dim, ...], most: int = MAX_PARTS
) -> tuple[Dim, ...] | Uncounted:
    """Apply a rule to dimensions of any kind; expressions and None stand for unknown numbers.

    More chunks than ``most`` are not listed.
    """
    if is_known(dim) and are_known(given):
        sizes = rule(dim, given)
    else:
        sizes = rule(as_number(dim), tuple(map(as_number, given)))
    if isinstance(sizes, Chunks):
        if not is_known(sizes.count) or most < sizes.count <= MAX_PARTS:
            return Uncounted(as_dim(sizes.count), as_dim(sizes.size))
        sizes = sizes.parts(sizes.count)
    sizes = in_order(sizes)
    return sizes if are_known(sizes) else tuple(map(as_dim, sizes))


def explicit(dim: Number, lengths: Numbers) -> Numbers:
    """Return the lengths as given; they are >= 0 and sum to the dimension (D6, D7, D14)."""
    _few(size_of(lengths))
    explain(none_below(0, lengths), _negative, lengths)
    whole = total(lengths)
    explain(at_least(whole, MAX_DIM), _wrong_sum, lengths, whole, dim)
    explain(same(whole, dim), _wrong_sum, lengths, whole, dim)
    return lengths


def remainder(dim: Number, lengths: Numbers) -> Numbers:
    """Split as `explicit`, but one length may be -1: what the others leave, which is >= 0 (D7)."""
    explain(none_below(-1, lengths), _below_open, lengths)
    open_ones = total(each(lambda length: choose(same(length, -1), 1, 0), lengths))
    explain(at_least(open_ones, 1), _open_twice, lengths)
    given = total(lengths) + 1
    bounded = min(given, MAX_DIM + 1) if is_known(given) else given  # symbols hold no more
    rest = dim - bounded  # where two are open it makes no sum fit
    explain(at_least(0, open_ones * rest), _no_rest, lengths, given, dim)
    explain(at_least(open_ones * given, MAX_DIM), _no_rest, lengths, given, dim)
    return explicit(dim, each(lambda length: choose(same(length, -1), rest, length), lengths))


def equal(dim: Number, given: Numbers) -> Numbers:
    """Split into ``n`` parts of the same length; the dimension is a multiple of n (D3)."""
    count = count_in(given)
    _check_count(count)
    size = dim // count
    explain(same(size * count, dim), _uneven, dim, count)
    return (size,) * count


def ceil(dim: Number, given: Numbers) -> Numbers:
    """Split into n parts of the length d/n, rounded up; the last takes the rest, >= 0 (D1, D2)."""
    count = count_in(given)
    _check_count(count)
    size, last = _size_and_last(dim, count)
    explain(at_least(0, last), _negative_last, dim, count)
    return (size,) * (count - 1) + (last,)


def chunk(dim: Number, given: Numbers) -> Chunks:
    """Split into chunks of the given length, the last one smaller if need be (D9, D10)."""
    length = only(given)
    size = require(length, at_least(1, length), _no_chunk, length)
    return chunks_of(dim, min(size, MAX_DIM) if is_known(size) else size)


def chunks_of(dim: Number, size: Number) -> Chunks:
    """Split as `chunk`, with a length that is known to be positive."""
    return Chunks(dim, rounded_up(dim, size), size)


def ones(dim: Number, _given: Numbers) -> Chunks:
    """Split into parts of length 1, as many as the dimension."""
    return Chunks(dim, dim, 1)


BY_COUNT = frozenset({equal, ceil})
"""The rules of operators that are given the number of parts."""


# The rules of dialects


def balanced(dim: Number, given: Numbers) -> Numbers:
    """Split into n parts that differ by 1 at most, the longer ones first."""
    count = count_in(given)
    _check_count(count)
    return tuple((dim + more) // count for more in reversed(range(count)))


def at_most(dim: Number, given: Numbers) -> Chunks:
    """Split into chunks of the length d/n, rounded up: n of them, or fewer where none is left."""
    count = count_in(given)
    _check_count(count)
    size = rounded_up(dim, count)
    empty = same(size, 0)
    return Chunks(dim, choose(empty, count, rounded_up(dim, choose(empty, 1, size))), size)


def some_chunks(dim: Number, given: Numbers) -> Chunks:
    """Split as `chunk`, but into one part at least; an empty dimension may have the length 0."""
    length = only(given)
    chunks = chunk(dim, (choose(same(dim, 0), choose(same(length, 0), 1, length), length),))
    return Chunks(dim, clamped(chunks.count, 1, MAX_DIM), chunks.size)


def starts(dim: Number, indices: Numbers) -> Numbers:
    """Split at indices: where the second part and each after it start, in order."""
    return ends(dim, (*in_order(indices), dim))


def ends(dim: Number, indices: Numbers) -> Numbers:
    """Split at indices: where each part ends, in order; the last one is the dimension."""
    return explicit(dim, tuple(end - start for start, end in pairwise((0, *in_order(indices)))))


def slices(dim: Number, indices: Numbers) -> Numbers:
    """Split as `starts`, at indices as slices have them: from the back if negative, and clipped."""
    counted = (choose(at_least(0, index), index, index + dim) for index in in_order(indices))
    return starts(dim, tuple(clamped(index, 0, dim) for index in counted))


def not_empty(dim: Number, lengths: Numbers) -> Numbers:
    """Split as `explicit`, but no length is 0."""
    explain(none_below(1, lengths), _empty, lengths)
    return explicit(dim, lengths)


def shares(dim: Number, lengths: Numbers) -> Numbers:
    """Split as `not_empty`; each -233 is a share of what is left, rounded down, of those parts."""
    left, found, numbers = dim, list[Number](), in_order(lengths)
    for place, length in enumerate(numbers):
        found.append(choose(same(length, SHARE), left // (len(numbers) - place), length))
        left = left - found[-1]
    return not_empty(dim, tuple(found))


def _size_and_last(dim: Number, count: int) -> tuple[Number, Number]:
    """Return the length d/n rounded up, and what n - 1 parts of it leave."""
    size = rounded_up(dim, count)
    return size, dim - size * (count - 1)


def _few(count: Number) -> None:
    explain(at_least(count, MAX_PARTS), _too_many, count)


def _check_count(count: int) -> None:
    explain(at_least(1, count), _no_count, count)
    _few(count)


def _too_many(count: int) -> SplitError:
    problem = f"{show_int(count)} parts are requested"
    wants = {"count": range(1, MAX_PARTS + 1)}
    return SplitError(TOO_MANY_PARTS, problem, f"split into at most {MAX_PARTS} parts", wants=wants)


def _no_count(count: int) -> SplitError:
    problem = f"{show_int(count)} parts are requested"
    wants = {"count": range(1, MAX_PARTS + 1)}
    return SplitError(OPERAND_VALUE, problem, "give a count >= 1", wants=wants)


def _negative(lengths: Numbers) -> SplitError:
    fix = "give lengths >= 0; variadic_split takes one -1, for what the others leave"
    problem = f"{_show(lengths)} has a length below 0"
    return SplitError(NEGATIVE_LENGTH, problem, fix, wants={"length": range(MAX_DIM + 1)})


def _below_open(lengths: Numbers) -> SplitError:
    refused = _negative(lengths)
    refused.fix = "give lengths >= 0, and -1 at most once, for what the others leave"
    return refused


def _empty(lengths: Numbers) -> SplitError:
    problem, wants = f"{_show(lengths)} has a length below 1", {"length": range(1, MAX_DIM + 1)}
    return SplitError(NEGATIVE_LENGTH, problem, "give lengths > 0", wants=wants)


def _wrong_sum(lengths: Numbers, whole: Number, dim: Number) -> SplitError:
    sums = f"{_show(lengths)} sums to {_text(whole)}"
    if is_known(whole) and whole > MAX_DIM and not is_known(dim):
        fix = "give lengths that sum to the dimension"
        return SplitError(LENGTHS_SUM, f"{sums}, more than any dimension has", fix)
    fix = f"give lengths that sum to {_text(dim)}"
    problem = f"{sums}, but the dimension is {_text(dim)}"
    wants = {**_exactly("sum", dim), **_exactly("dimension", whole)}
    return SplitError(LENGTHS_SUM, problem, fix, wants=wants)


def _open_twice(lengths: Numbers) -> SplitError:
    return SplitError(
        REMAINDER, f"{_show(lengths)} has -1 more than once", "leave one length open at most"
    )


def _no_rest(lengths: Numbers, given: Number, dim: Number) -> SplitError:
    return SplitError(
        REMAINDER,
        f"the lengths other than -1 in {_show(lengths)} sum to {_text(given)}, more than the"
        f" dimension {_text(dim)}",
        f"give lengths that sum to at most {_text(dim)}",
        wants=_of_rest(given, dim),
    )


def _of_rest(given: Number, dim: Number) -> dict[str, range]:
    """Return which sums of the lengths other than -1, and which dimensions, leave a rest."""
    sums = {"sum": range(dim + 1)} if is_known(dim) else {}
    if not is_known(given) or not 0 <= given <= MAX_DIM:
        return sums
    return sums | {"dimension": range(given, MAX_DIM + 1)}


def _exactly(name: str, number: Number) -> dict[str, range]:
    """Return that something has to be a number, where it is known and one of a dimension."""
    if not is_known(number) or not 0 <= number <= MAX_DIM:
        return {}
    return {name: range(number, number + 1)}


def _uneven(dim: Number, count: int) -> SplitError:
    would_do = at_least(0, _size_and_last(dim, count)[1])
    uneven = ", or use num_outputs of onnx.Split-18" if would_do else ""
    return SplitError(
        NOT_DIVISIBLE,
        f"the dimension {dim} is not divisible into {count} equal parts",
        f"give explicit lengths{_example(dim, count)}{uneven}",
        wants={"dimension": range(0, MAX_DIM + 1, count)},
    )


def _negative_last(dim: Number, count: int) -> SplitError:
    size, last = _size_and_last(dim, count)
    return SplitError(
        TOO_MANY_OUTPUTS,
        f"{count} parts of ceil({dim}/{count}) = {size} leave {last} for the last part of the"
        f" dimension {dim}",
        f"give explicit lengths{_example(dim, count)}",
        wants={"dimension": range(0, MAX_DIM + 1, count)},
    )


def _no_chunk(length: Number) -> SplitError:
    problem, wants = f"the chunk length is {_text(length)}", {"length": range(1, MAX_DIM + 1)}
    return SplitError(CHUNK_LENGTH, problem, "give a length > 0", wants=wants)


def _example(dim: Number, count: int) -> str:
    """Return lengths that would do."""
    if not is_known(dim):
        return ""
    size, larger = divmod(dim, count)
    if count > 12:
        return f", such as split = [{size + 1}] * {larger} + [{size}] * {count - larger}"
    return f", such as split = {[size + 1] * larger + [size] * (count - larger)}"


def _text(number: Number) -> str:
    return show_int(number) if is_known(number) else str(number)


def _show(lengths: Numbers) -> str:
    """Return a list of lengths, shortened where it is long."""
    numbers = in_order(lengths)
    if len(numbers) <= 12:
        return f"[{', '.join(map(_text, numbers))}]"
    return f"[{', '.join(map(_text, numbers[:8]))}, ... {len(numbers)} lengths]"
