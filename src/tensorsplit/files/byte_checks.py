"""Tasks that check what is read before it becomes part of a result, and write nothing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

import numpy as np

from tensorsplit.core.errors import NOT_PARTS, NOT_SHARED, SplitError, short_name, show_path
from tensorsplit.files.byte_files import in_blocks, read_at, reading
from tensorsplit.files.byte_moves import RowPlace, columns_of


class _Check:
    """A task that writes nothing, so that there is nothing to compare afterwards."""

    __slots__ = ()
    nbytes = 0

    def verify(self, _memory: int) -> int:
        """Do nothing."""
        return 0


@dataclass(frozen=True, slots=True)
class SameBytes(_Check):
    """A task that compares what two files should hold alike.

    Attributes:
        name: The tensor that it is, or that it is a part of.
        rows: The rows of the tensor.
        one: Where it is in one file.
        other: Where it is in the other one; the columns that both hold are compared.
    """

    name: str
    rows: int
    one: RowPlace
    other: RowPlace

    def write(self, _memory: int) -> int:
        """Refuse (TS712) files that differ."""
        with reading(self.one.path) as one, reading(self.other.path) as other:
            for start, offset, whole in self._ranges():
                for done, size in in_blocks(0, whole):
                    expected = read_at(one, start + done, size)
                    if not np.array_equal(expected, read_at(other, offset + done, size)):
                        raise SplitError(
                            NOT_SHARED,
                            f"the tensor {short_name(self.name)} is not the same in"
                            f" {show_path(self.one.path)} and in {show_path(self.other.path)}",
                            "name it in a rule if it is split among ranks, or write the files"
                            " again",
                            parameter="source",
                        )
        return 0

    def _ranges(self) -> Iterator[tuple[int, int, int]]:
        """Yield the place in one file, that in the other, and the size of what both hold."""
        one, other = self.one, self.other
        if one.columns == other.columns:
            yield one.offset, other.offset, self.rows * one.width
            return
        inside = {(start, size): place for start, size, _, place in columns_of([one])}
        for row in range(self.rows):
            for start, size, _, place in columns_of([other]):
                if (start, size) in inside:
                    begin = one.offset + row * one.width + inside[start, size]
                    yield begin, other.offset + row * other.width + place, size


@dataclass(frozen=True, slots=True)
class PaddingCheck(_Check):
    """A task that checks that what a tensor was padded with is zeros.

    Attributes:
        name: The tensor.
        rows: Its rows.
        width: The bytes of a row without padding.
        place: Where it, or a part of it, is.
    """

    name: str
    rows: int
    width: int
    place: RowPlace

    def write(self, _memory: int) -> int:
        """Refuse (TS713) padding that is not zeros: it would be lost."""
        place = self.place
        padding = [
            (inside + max(self.width - start, 0), inside + size)
            for start, size, _, inside in columns_of([place])
            if start + size > self.width
        ]
        with reading(place.path) as file:
            for row, (begin, end) in product(range(self.rows), padding):
                before = place.offset + row * place.width
                for start, size in in_blocks(before + begin, end - begin):
                    if read_at(file, start, size).any():
                        raise SplitError(
                            NOT_PARTS,
                            f"the padding of {short_name(self.name)} in {show_path(place.path)} is"
                            " not all zeros",
                            "merge what was padded by the same rules",
                            parameter="source",
                        )
        return 0
