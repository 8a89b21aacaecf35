"""Which bytes become which, compared with columns of arrays of NumPy."""

from __future__ import annotations

import os
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import numpy as np
import pytest

from tensorsplit.core.errors import SplitError
from tensorsplit.files import byte_copies, byte_files
from tensorsplit.files.byte_checks import PaddingCheck, SameBytes
from tensorsplit.files.byte_copies import MemberCopies, RangeCopies, RowCopies, copies
from tensorsplit.files.byte_moves import Move, RowPlace, pieces_of

pytest.importorskip("zarr")
from tensorsplit.files.zarr_cuts import Cut

Bytes = np.ndarray[Any, np.dtype[np.uint8]]


def divided(random: np.random.Generator, width: int, count: int) -> list[list[tuple[int, int]]]:
    """The columns of a row, some of them empty, dealt to so many places."""
    cuts = sorted(int(each) for each in random.integers(0, width + 1, random.integers(0, 5)))
    columns = [(a, b - a) for a, b in zip([0, *cuts], [*cuts, width], strict=True)]
    dealt: list[list[tuple[int, int]]] = [[] for _ in range(count)]
    for each in random.permutation(len(columns)):
        dealt[random.integers(count)].append(columns[each])
    return [each or [(0, 0)] for each in dealt]


def moves(seed: int, folder: Path = Path()) -> Iterator[Move]:
    """Moves of which the targets, and often the sources, hold each byte at least once."""
    random = np.random.default_rng(seed)
    for _ in range(25):
        width = int(random.integers(1, 12))
        held = int(random.integers(1, width + 1)) if random.integers(3) == 0 else width
        places = []
        for kind, length in (("s", held), ("t", width)):
            dealt = divided(random, length, int(random.integers(1, 4)))
            if random.integers(3) == 0:  # a copy of some of it
                dealt += divided(random, length, 2)[:1]
            places.append(
                tuple(
                    RowPlace(str(folder / f"{kind}{n}"), int(random.integers(5)), tuple(each))
                    for n, each in enumerate(dealt)
                )
            )
        yield Move(int(random.integers(1, 7)), width, *places)


def taken(whole: Bytes, place: RowPlace) -> Bytes:
    """The columns of a place, side by side."""
    columns = [whole[:, start : start + size] for start, size in place.columns]
    return np.concatenate([whole[:, :0], *columns], axis=1)


def whole_of(move: Move) -> Bytes:
    """Random bytes, none of them 0, but for those that are in no source."""
    whole = np.random.default_rng(7).integers(1, 256, (move.rows, move.width), np.uint8)
    columns = [column for each in move.sources for column in each.columns]
    held = {byte for start, size in columns for byte in range(start, start + size)}
    whole[:, [byte for byte in range(move.width) if byte not in held]] = 0
    return whole


@pytest.mark.parametrize("seed", range(8))
def test_the_pieces_make_up_the_columns_of_each_target(seed: int) -> None:
    for move in moves(seed):
        whole = whole_of(move)
        made = {each.path: np.zeros_like(taken(whole, each)) for each in move.targets}
        times = Counter[tuple[str, int]]()
        for source, place, target, inside, size in pieces_of(move):
            assert size > 0
            assert inside + size <= target.width
            read = taken(whole, source)[:, place : place + size]
            made[target.path][:, inside : inside + size] = read
            times.update((target.path, byte) for byte in range(inside, inside + size))
        assert set(times.values()) <= {1}
        for each in move.targets:
            assert np.array_equal(made[each.path], taken(whole, each))
        assert move.written == sum(array.shape[1] for array in made.values())


@pytest.mark.parametrize("seed", range(4))
def test_a_place_is_whole_if_its_columns_are_the_row_in_its_order(seed: int) -> None:
    for move in moves(seed):
        row = np.arange(move.width, dtype=np.uint8)[None]
        for each in (*move.sources, *move.targets):
            columns = tuple(column for column in each.columns if column[1])
            same = np.array_equal(taken(row, each), row)
            assert replace(each, columns=columns).is_whole(move.width) is same
            assert each.width == taken(row, each).size


def written(move: Move, whole: Bytes) -> None:
    """Write the sources, with other bytes around them, and targets that hold zeros."""
    for each in move.sources:
        data = b"\x5a" * each.offset + taken(whole, each).tobytes()
        if each.member:
            with ZipFile(each.path, "w") as archive:
                archive.writestr(each.member, data)
        else:
            Path(each.path).write_bytes(data + b"\x5a" * 3)
    for each in move.targets:
        Path(each.path).write_bytes(bytes(each.offset + move.rows * each.width + 3))


@pytest.mark.parametrize("kind", [RowCopies, RangeCopies, MemberCopies])
@pytest.mark.parametrize("seed", range(3))
def test_what_is_copied_are_the_columns_and_a_byte_that_differs_is_found(
    seed: int, kind: type[Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(byte_copies, "_LONG", 0 if kind is RangeCopies else 1 << 20)
    monkeypatch.setattr(byte_copies, "_TASK", 9)
    monkeypatch.setattr(byte_copies, "_WRITE", 5)
    for module in (byte_copies, byte_files):
        monkeypatch.setattr(module, "BLOCK", 5)
    random = np.random.default_rng(seed)
    for made in moves(seed + 20, tmp_path):
        if kind is MemberCopies and made.written > made.width:
            continue  # members are read once, from their beginning on
        move = in_archives(made) if kind is MemberCopies else made
        whole = whole_of(move)
        written(move, whole)
        tasks = list(copies([move]))
        used = kind if move.rows > 1 or kind is MemberCopies else RangeCopies
        assert {type(each) for each in tasks} <= {used}
        assert sum(each.write(1 << 20) for each in tasks) == sum(each.nbytes for each in tasks)
        for each in move.targets:
            data = taken(whole, each).tobytes()
            assert Path(each.path).read_bytes() == bytes(each.offset) + data + bytes(3)
        for task in tasks:
            task.verify(1 << 20)
        _check_that_a_changed_byte_is_found(move, tasks, random)


def in_archives(move: Move) -> Move:
    """The same, with each source the member of an archive, in order and without copies."""
    sources, end = [], 0
    for each in move.sources:
        width = min(each.width, move.width - end)
        sources.append(replace(each, columns=((end, width),), member="m"))
        end += width
    return replace(move, sources=tuple(sources))


def _check_that_a_changed_byte_is_found(
    move: Move, tasks: Sequence[Any], random: np.random.Generator
) -> None:
    whole = whole_of(move)
    for each in move.targets:
        rows = taken(whole, each).ravel()
        (places,) = np.nonzero(rows)
        if not places.size:
            continue
        path, place = Path(each.path), each.offset + int(random.choice(places))
        before = bytearray(path.read_bytes())
        path.write_bytes(before[:place] + bytes([before[place] ^ 1]) + before[place + 1 :])
        with pytest.raises(SplitError, match="TS708"):
            sum(task.verify(1 << 20) for task in tasks)
        path.write_bytes(before)


@pytest.mark.parametrize("kind", [RowCopies, RangeCopies, MemberCopies])
def test_the_checksum_of_what_was_verified_is_that_of_its_bytes(
    kind: type[Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(byte_copies, "_LONG", 0 if kind is RangeCopies else 1 << 20)
    data = np.arange(1, 13, dtype=np.uint8).reshape(3, 4)
    source, target = (str(tmp_path / name) for name in "st")
    ends = (RowPlace(source, 2, ((0, 4),)), RowPlace(target, 1, ((0, 4),)))
    move = Move(3, 4, ends[:1], ends[1:])
    move = in_archives(move) if kind is MemberCopies else move
    written(move, data)
    tasks = list(copies([move]))
    assert sum(each.write(1 << 20) for each in tasks) == data.size
    pieces = data if kind is RangeCopies else [data]
    assert [each.verify(1 << 20) for each in tasks] == [
        sum(zlib.crc32(each.tobytes()) for each in pieces)
    ]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (((0, 4),), ((0, 4),)),
        (((0, 2), (2, 2)), ((2, 2), (0, 2))),
        (((0, 1), (1, 2)), ((1, 2), (3, 1))),
        (((3, 1), (0, 2)), ((0, 2),)),
    ],
)
def test_bytes_that_two_files_hold_are_the_same_and_others_may_differ(
    tmp_path: Path, one: tuple[tuple[int, int], ...], other: tuple[tuple[int, int], ...]
) -> None:
    whole = np.arange(1, 13, dtype=np.uint8).reshape(3, 4)
    places = RowPlace(str(tmp_path / "a"), 2, one), RowPlace(str(tmp_path / "b"), 1, other)
    for each in places:
        data = b"\x5a" * each.offset + taken(whole, each).tobytes() + b"\x5a"
        Path(each.path).write_bytes(data)
    task = SameBytes("t", 3, *places)
    assert task.write(1 << 20) == task.verify(1 << 20) == task.nbytes == 0
    shared = {b for s, n in set(one) & set(other) for b in range(s, s + n)}
    for each in places:
        path, before = Path(each.path), Path(each.path).read_bytes()
        held = taken(np.tile(np.arange(4, dtype=np.uint8), (3, 1)), each).ravel()
        counts = {each.offset + n: byte in shared for n, byte in enumerate(held.tolist())}
        for place in range(len(before)):
            changed = bytearray(before)
            changed[place] ^= 1
            path.write_bytes(changed)
            assert _refuses(task) is counts.get(place, False)
        path.write_bytes(before)


@pytest.mark.parametrize("columns", [((0, 6),), ((4, 2), (0, 2)), ((0, 3), (3, 3)), ((0, 2),)])
@pytest.mark.parametrize("width", [3, 4, 6])
def test_padding_is_what_is_beyond_the_width_and_zeros(
    tmp_path: Path, columns: tuple[tuple[int, int], ...], width: int
) -> None:
    place = RowPlace(str(tmp_path / "a"), 2, columns)
    numbers = taken(np.tile(np.arange(6, dtype=np.uint8), (3, 1)), place).ravel()
    is_padding = [False, False, *(numbers >= width).tolist(), False]
    before = bytes(0 if each else 7 for each in is_padding)
    task = PaddingCheck("t", 3, width, place)
    for changed, is_wrong in [(None, False), *enumerate(is_padding)]:
        data = bytearray(before)
        if changed is not None:
            data[changed] ^= 1
        Path(place.path).write_bytes(data)
        assert _refuses(task) is is_wrong


def _refuses(task: SameBytes | PaddingCheck) -> bool:
    try:
        task.write(1 << 20)
    except SplitError:
        return True
    return False


def cuts(seed: int) -> Iterator[tuple[Cut, list[Bytes]]]:
    """Arrays that are made of pieces of others on an axis, and these others."""
    random = np.random.default_rng(seed)
    for _ in range(40):
        axis, chunks = int(random.integers(2)), tuple(int(n) for n in random.integers(1, 4, 2))
        other, pieces = int(random.integers(1, 5)), []
        lengths = tuple(int(each) for each in random.integers(1, 8, random.integers(1, 4)))
        for source in random.integers(0, len(lengths), random.integers(1, 4)).tolist():
            start = int(random.integers(0, lengths[source]))
            if random.integers(2):
                start -= start % chunks[axis]
            end = (
                lengths[source]
                if random.integers(2)
                else random.integers(start + 1, lengths[source] + 1)
            )
            pieces.append((source, start, int(end) - start))
        length = sum(size for *_, size in pieces)
        shape = (length, other) if axis == 0 else (other, length)
        held, first = [], 0
        for each in lengths:
            size = each * other
            array = np.arange(first, first + size, dtype=np.uint8).reshape(each, other)
            held.append(array if axis == 0 else array.T)
            first += size
        yield Cut((), lengths, axis, tuple(pieces), shape, chunks), held


def in_chunk(array: Bytes, index: tuple[int, ...], chunks: tuple[int, ...]) -> Bytes:
    """The elements of an array in a chunk."""
    return array[tuple(slice(i * n, i * n + n) for i, n in zip(index, chunks, strict=True))]


@pytest.mark.parametrize("seed", range(6))
def test_chunks_are_made_of_what_lies_in_the_chunks_of_sources(seed: int) -> None:
    for cut, held in cuts(seed):
        axis, size = cut.axis, cut.chunks[cut.axis]
        parts = [held[s].take(range(a, a + n), axis) for s, a, n in cut.pieces]
        whole = np.concatenate(parts, axis)
        grid = [-(-dim // each) for dim, each in zip(cut.shape, cut.chunks, strict=True)]
        indices = list(np.ndindex(*grid))
        assert sorted(map(cut.chunk, range(len(indices)))) == indices
        for number in range(1, grid[axis] if indices else 0):  # side by side on the axis
            before, after = cut.chunk(number - 1), cut.chunk(number)
            assert after == tuple(n + (place == axis) for place, n in enumerate(before))
        for index in indices:
            chunk = in_chunk(whole, index, cut.chunks)
            assert cut.elements(index) == chunk.size
            other = index[1 - axis] * cut.chunks[1 - axis]
            lines = slice(other, other + cut.chunks[1 - axis])
            place, found = 0, []
            for source, read, inside, count in cut.spans(index):
                assert (inside, count > 0) == (place, True)
                assert read // size == (read + count - 1) // size
                piece = held[source].take(range(read, read + count), axis)
                found.append(piece[:, lines] if axis == 0 else piece[lines])
                place += count
                origin = cut.origin(index, read)
                assert np.isin(found[-1], in_chunk(held[source], origin, cut.chunks)).all()
            assert np.array_equal(np.concatenate(found, axis), chunk)
            same = [
                (number, at)
                for number, array in enumerate(held)
                for at in np.ndindex(
                    *(-(-d // n) for d, n in zip(array.shape, cut.chunks, strict=True))
                )
                if np.array_equal(in_chunk(array, at, cut.chunks), chunk)
            ]
            assert cut.copied_from(index) == (same[0] if same else None)
        copied = [cut.copied_from(index) is not None for index in indices]
        assert cut.is_aligned is all(copied), cut


@pytest.mark.skipif(not hasattr(os, "pread"), reason="reads at a place are not of this system")
@pytest.mark.parametrize("most", [0, 1, 3])
def test_ranges_that_the_system_copies_in_part_are_whole(
    most: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rest is read and written, in blocks."""

    def copied(source: int, target: int, size: int, start: int, offset: int) -> int:
        if calls.pop():
            raise OSError
        os.pwrite(target, os.pread(source, min(size, most), start), offset)
        return min(size, most)

    monkeypatch.setattr(byte_files, "BLOCK", 4)
    monkeypatch.setattr(byte_copies, "_LONG", 0)
    monkeypatch.setattr(os, "copy_file_range", copied, raising=False)
    data = np.arange(1, 31, dtype=np.uint8).reshape(1, 30)
    ends = (
        RowPlace(str(tmp_path / "s"), 2, ((0, 30),)),
        RowPlace(str(tmp_path / "t"), 1, ((0, 30),)),
    )
    for fails in ([True], [True, False], [True, False, False]):
        calls = fails.copy()
        move = Move(1, 30, ends[:1], ends[1:])
        written(move, data)
        (task,) = copies([move])
        task.write(1 << 20)
        assert Path(ends[1].path).read_bytes() == b"\0" + data.tobytes() + bytes(3)


def test_an_array_that_is_not_cut_has_the_chunks_that_it_had() -> None:
    whole = Cut((), (), 0, (), (5, 4), (2, 3))
    assert whole.is_aligned
    assert whole.grid == (3, 2)
    for index in np.ndindex(*whole.grid):
        assert whole.copied_from(index) == (0, index)
