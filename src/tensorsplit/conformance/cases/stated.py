"""Cuts, each stated in full: the dimension, what the model says of it, and the lengths."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Stated:
    """A cut of a dimension.

    Attributes:
        dim: The dimension.
        said: What the model says: lengths, a count, the length of a chunk, or None.
        sizes: The lengths of the parts.
    """

    dim: int
    said: Any
    sizes: tuple[int, ...]


def _lengths(*sizes: int) -> Stated:
    return Stated(sum(sizes), sizes, sizes)


LENGTHS = (
    _lengths(2, 4),
    _lengths(3, 3),
    _lengths(5),
    _lengths(4, 1),
    _lengths(1, 2, 3),
    _lengths(0, 5),
    _lengths(5, 0),
    _lengths(3, 0, 2),
    _lengths(1, 1, 1, 1),
    _lengths(1, 2, 1, 3, 1, 2, 1, 1),
    _lengths(*[1, 2] * 10),
)
"""Lengths one by one: even, uneven, a single part, empty parts at every end, many parts."""

NO_LENGTHS = (Stated(0, (0,), (0,)), Stated(0, (0, 0), (0, 0)), Stated(0, (0, 0, 0), (0, 0, 0)))
"""Lengths of a dimension of 0."""

EQUAL = (
    Stated(6, 2, (3, 3)),
    Stated(6, 3, (2, 2, 2)),
    Stated(5, 1, (5,)),
    Stated(4, 4, (1, 1, 1, 1)),
    Stated(1, 1, (1,)),
    Stated(34, 17, (2,) * 17),
)
"""A count that divides the dimension."""

LAST_SMALLER = (
    Stated(7, 3, (3, 3, 1)),
    Stated(5, 2, (3, 2)),
    Stated(7, 4, (2, 2, 2, 1)),
    Stated(8, 3, (3, 3, 2)),
    Stated(33, 17, (2,) * 16 + (1,)),
)
"""A count that does not divide the dimension, and leaves less for the last part."""

LAST_EMPTY = (Stated(6, 4, (2, 2, 2, 0)), Stated(1, 2, (1, 0)), Stated(9, 4, (3, 3, 3, 0)))
"""A count that leaves nothing for the last part."""

COUNT_OF_NOTHING = (Stated(0, 1, (0,)), Stated(0, 2, (0, 0)), Stated(0, 5, (0, 0, 0, 0, 0)))
"""A count of parts of a dimension of 0."""

CHUNKS = (
    Stated(6, 2, (2, 2, 2)),
    Stated(5, 2, (2, 2, 1)),
    Stated(7, 4, (4, 3)),
    Stated(3, 7, (3,)),
    Stated(5, 5, (5,)),
    Stated(4, 1, (1, 1, 1, 1)),
    Stated(35, 2, (2,) * 17 + (1,)),
)
"""The length of every chunk but the last one."""

NO_CHUNKS = (Stated(0, 1, ()), Stated(0, 3, ()))
"""A dimension of 0 has no chunk."""

ONES = (
    Stated(3, None, (1, 1, 1)),
    Stated(5, None, (1, 1, 1, 1, 1)),
    Stated(1, None, (1,)),
    Stated(20, None, (1,) * 20),
)
"""Nothing said: parts of length 1."""

NO_ONES = (Stated(0, None, ()),)
"""Nothing said of a dimension of 0."""

REMAINDERS = (
    Stated(6, (-1, 2), (4, 2)),
    Stated(6, (2, -1), (2, 4)),
    Stated(7, (2, -1, 3), (2, 2, 3)),
    Stated(6, (6, -1), (6, 0)),
    Stated(6, (-1, 6), (0, 6)),
    Stated(5, (-1,), (5,)),
    Stated(9, (1, -1, 1, 1, 1), (1, 5, 1, 1, 1)),
)
"""OpenVINO's lengths with a -1 that stands for what is left."""
