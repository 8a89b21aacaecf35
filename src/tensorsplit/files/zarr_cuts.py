"""Which elements of zarr arrays another one is made of, chunk by chunk."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod

from tensorsplit.core.errors import CANNOT_EXPRESS, SplitError
from tensorsplit.core.plan import offsets_of, sizes_of
from tensorsplit.files.byte_moves import Move, RowPlace, pieces_of
from tensorsplit.files.formats import Division, Recast
from tensorsplit.files.zarr_arrays import ArrayPlace
from tensorsplit.files.zarr_nodes import ZarrNode


@dataclass(frozen=True, slots=True)
class Cut:
    """Which elements of arrays another one is made of.

    Attributes:
        sources: Where the arrays are.
        lengths: Their lengths on the axis.
        axis: The axis on which pieces of them lie side by side.
        pieces: Source, start and size of each piece; none for one array as it is.
        shape: The shape of the new array.
        chunks: The shape of a chunk, here and there.
    """

    sources: tuple[ArrayPlace, ...]
    lengths: tuple[int, ...]
    axis: int
    pieces: tuple[tuple[int, int, int], ...]
    shape: tuple[int, ...]
    chunks: tuple[int, ...]

    @property
    def is_aligned(self) -> bool:
        """Whether each chunk is a copy of one of a source."""
        if not self.pieces:
            return True
        size, end = self.chunks[self.axis], 0
        for source, start, length in self.pieces:
            # only the last piece can be a rest: the one after it would not be aligned
            is_rest = start + length == self.lengths[source]
            if start % size or end % size or (length % size and not is_rest):
                return False
            end += length
        return True

    @property
    def grid(self) -> tuple[int, ...]:
        """The number of chunks on each axis."""
        return tuple(-(-dim // size) for dim, size in zip(self.shape, self.chunks, strict=True))

    def chunk(self, number: int) -> tuple[int, ...]:
        """Return the index of a chunk; consecutive numbers lie side by side on the axis."""
        index, grid = [0] * len(self.shape), self.grid
        for axis in sorted(range(len(grid)), key=lambda each: each != self.axis):
            number, index[axis] = divmod(number, grid[axis])
        return tuple(index)

    def elements(self, chunk: tuple[int, ...]) -> int:
        """Return how many elements of the array are in a chunk."""
        return prod(
            min(size, dim - index * size)
            for index, size, dim in zip(chunk, self.chunks, self.shape, strict=True)
        )

    def spans(self, chunk: tuple[int, ...]) -> Iterator[tuple[int, int, int, int]]:
        """Yield the elements on the axis that a chunk is made of.

        Gives the source, where they begin in there, where in the chunk, and how many there are;
        these are all in one chunk of the source.
        """
        size = self.chunks[self.axis]
        low = chunk[self.axis] * size
        high = min(low + size, self.shape[self.axis])
        end = 0
        for source, start, length in self.pieces:
            begin, end = end, end + length
            place = max(low, begin)
            while place < min(high, end):
                read = start + place - begin
                count = min(min(high, end) - place, size - read % size)
                yield source, read, place - low, count
                place += count

    def origin(self, chunk: tuple[int, ...], read: int) -> tuple[int, ...]:
        """Return the chunk of the source that holds an index of the axis."""
        return (*chunk[: self.axis], read // self.chunks[self.axis], *chunk[self.axis + 1 :])

    def copied_from(self, chunk: tuple[int, ...]) -> tuple[int, tuple[int, ...]] | None:
        """Return source and chunk that hold the same elements, and no others."""
        if not self.pieces:
            return 0, chunk
        (source, read, _, count), *others = self.spans(chunk)
        size = self.chunks[self.axis]
        is_same = (
            not others and read % size == 0 and count == min(size, self.lengths[source] - read)
        )
        return (source, self.origin(chunk, read)) if is_same else None


def cuts_of(change: Recast, array: ZarrNode, places: tuple[ArrayPlace, ...]) -> list[Cut]:
    """Return the cuts that each new array of a change is made of (TS310 if the axis is dropped)."""
    plan, chunks = change.before.plan or change.after.plan, array.stored
    if plan is None:
        return [Cut(places, (), 0, (), each.shape, chunks) for each in change.after.outputs]
    if not plan.keepdims:
        raise SplitError(
            CANNOT_EXPRESS,
            "the chunks of a zarr array keep all of its axes",
            "split it with keepdims=1",
            parameter="keepdims",
        )
    axis, length = plan.axis, sum(sizes_of(plan))
    pieces: list[list[tuple[int, int, int]]] = [[] for _ in change.after.outputs]
    move = Move(1, length, _rows(change.before, length), _rows(change.after, length))
    for source, start, target, _, size in pieces_of(move):
        pieces[int(target.path)].append((int(source.path), start, size))
    lengths = tuple(each.shape[axis] for each in change.stored)
    return [
        Cut(places, lengths, axis, tuple(own), each.shape, chunks)
        for own, each in zip(pieces, change.after.outputs, strict=True)
    ]


def _rows(division: Division, length: int) -> tuple[RowPlace, ...]:
    """Return the parts of a whole, by their numbers, as columns of elements on the axis."""
    plan = division.plan
    return tuple(
        RowPlace(
            str(number),
            0,
            ((0, length),)
            if plan is None
            else tuple((offsets_of(plan)[part], sizes_of(plan)[part]) for part in each.parts),
        )
        for number, each in enumerate(division.outputs)
    )
