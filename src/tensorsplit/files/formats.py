"""The interface of a format of files that hold tensors, and the list of the formats.

A new format is one module with `recognizes` and `open_source`, named in `FORMATS`. It says which
tensors a source holds, and how new ones are written: preparations, tasks that may run anywhere and
in any order, and what comes last. It never decides lengths, names, or where the result is placed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Protocol, cast

from tensorsplit.core.errors import UNREADABLE_TENSORS, SplitError, show_path
from tensorsplit.core.plan import SplitPlan
from tensorsplit.files.sources import FileState, local_path, refusing_access

FORMATS = ("npy_files", "safetensors_files", "zarr_files")
"""The modules of this folder that are formats; the first that recognizes a source opens it."""

SUFFIXES = (".npy", ".npz", ".safetensors", ".zarr")
"""What the names of files and stores end in, of all formats."""

GGUF = ".gguf"
"""What is neither read nor written: its library reads headers without bounds (ADR 21)."""


@dataclass(frozen=True, slots=True)
class StoredTensor:
    """A tensor in a source.

    Attributes:
        name: Its name there.
        shape: Its shape.
        element_type: The name of its element type, as in the schemas of ONNX; the format's own
            where no standard names it.
        nbytes: How many bytes its elements take, decoded.
        rank: The rank whose file it is in; None where there are no ranks, or it is for all.
        unpadded: How long the whole that it is a part of was, on the split axis, before it was
            padded; None where it was not.
        layout: Which elements of the whole it has, as in a rank's file; empty where that does not
            have it.
    """

    name: str
    shape: tuple[int, ...]
    element_type: str
    nbytes: int
    rank: int | None = None
    unpadded: int | None = None
    layout: str = ""


@dataclass(frozen=True, slots=True)
class NewTensor:
    """A tensor that is to be written.

    Attributes:
        name: Its name.
        shape: Its shape.
        parts: The parts of the plan that it is made of, side by side on the axis; empty for a
            tensor that is carried over as it is.
        rank: The rank of tensor parallelism that it is for; None where it is for all.
        unpadded: As of a stored tensor.
        layout: As of a stored tensor.
    """

    name: str
    shape: tuple[int, ...]
    parts: tuple[int, ...] = ()
    rank: int | None = None
    unpadded: int | None = None
    layout: str = ""


@dataclass(frozen=True, slots=True)
class Division:
    """A whole tensor, and its parts.

    Attributes:
        tensor: The whole.
        plan: How it is split, all padding after the whole; None where there is one part, which is
            the whole.
        outputs: The parts. Each part of the plan is in one of them, or in several, which then hold
            copies of it.
    """

    tensor: StoredTensor
    plan: SplitPlan | None
    outputs: tuple[NewTensor, ...]

    @property
    def is_padded(self) -> bool:
        """Whether the parts hold padding besides the whole."""
        return self.outputs[0].unpadded != self.tensor.unpadded


@dataclass(frozen=True, slots=True)
class Recast:
    """Stored tensors, and the new ones that become of them, by the whole that both are.

    Attributes:
        before: The whole as it is stored; not split where a whole is split.
        stored: The stored tensors, one for each output of `before`.
        after: The whole as it is written; not split where parts are merged.
    """

    before: Division
    stored: tuple[StoredTensor, ...]
    after: Division

    @property
    def is_change(self) -> bool:
        """Whether it is more than carrying a tensor over as it is."""
        return (
            self.before.plan is not None
            or self.after.plan is not None
            or self.after.outputs[0].name != self.stored[0].name
        )


RANK_FILE = "rank-{rank}-of-{ranks}.safetensors"
"""The name of a rank's file by default."""


@dataclass(frozen=True, slots=True)
class FileLayout:
    """Into which files new tensors go, for formats of which a file holds many.

    Attributes:
        ranks: The number of ranks; None without tensor parallelism.
        file: The name of the file of a rank, with ``{rank}`` and ``{ranks}``.
        common: The file for what is for all ranks; None to put it into each rank's file.
        max_shard_size: The most bytes of tensors in a file; None for no bound.
    """

    ranks: int | None = None
    file: str = RANK_FILE
    common: str | None = None
    max_shard_size: int | None = None

    @property
    def files(self) -> list[tuple[str, int | None]]:
        """The file of each rank, and that of what is for all, which has None for its rank."""
        ranks = (*range(self.ranks or 0), *([] if self.common is None else [None]))
        return [(name, rank) for rank in ranks for name in self.files_of(rank)]

    def files_of(self, rank: int | None) -> list[str]:
        """Return the files of what is for a rank, or for all; none without tensor parallelism."""
        if self.ranks is None:
            return []
        if rank is None and self.common is not None:
            return [self.common]
        chosen = range(self.ranks) if rank is None else [rank]
        name = self.file.replace("{ranks}", str(self.ranks))
        return [name.replace("{rank}", str(each)) for each in chosen]

    def ranks_of(self, names: Iterable[str]) -> int | None:
        """Return how many ranks files of these names are for; None if that is not clear."""
        pattern = re.escape(self.file).replace(r"\{ranks\}", "([0-9]+)", 1)
        pattern = pattern.replace(r"\{ranks\}", r"[0-9]+").replace(r"\{rank\}", "[0-9]+")
        found = [
            match
            for name in names
            if (match := re.fullmatch(pattern, name.removesuffix(".index.json"))) is not None
        ]
        counts = {int(each[1]) if each.groups() else len(found) for each in found}
        return counts.pop() if len(counts) == 1 else None


class WriteTask(Protocol):
    """Writes some bytes of the result. Can be pickled, and run again after it was interrupted."""

    @property
    def nbytes(self) -> int:
        """How many bytes of elements it writes."""

    def write(self, memory: int) -> int:
        """Write them, with buffers of about so many bytes; returns `nbytes`."""

    def verify(self, memory: int) -> int:
        """Read source and result again and compare them (TS708); returns a checksum of both."""


class Writing(Protocol):
    """How the new tensors of a job are written into a draft: a file, a folder or a store."""

    @property
    def names(self) -> Collection[str] | None:
        """The names that the result has at its top, where it is a folder; None for a file."""

    @property
    def nbytes(self) -> int:
        """The bytes that the tasks write."""

    @property
    def space(self) -> int:
        """The bytes that the result takes on the disk; 0 if that is not known."""

    @property
    def least_memory(self) -> int:
        """The memory that one task needs at least, such as a decoded chunk."""

    def prepare(self, draft: str) -> None:
        """Make the draft, which is not there yet: allocate files and write headers."""

    def tasks(self) -> Iterator[WriteTask]:
        """Return the tasks, in the order in which the source is read."""

    def finish(self) -> None:
        """Write the last parts, such as an index, and all of the draft down to the disk."""


class TensorSource(Protocol):
    """A source that was opened: all of its headers are read and validated, and none of its data."""

    @property
    def tensors(self) -> Mapping[str, StoredTensor]:
        """Its tensors, by a name of their own, in order; of files of ranks that is `file/name`."""

    @property
    def notes(self) -> Sequence[str]:
        """Notes for the caller on what was not kept."""

    @property
    def writes_urls(self) -> bool:
        """Whether the result may be at a URL, on storage that can't rename."""

    @property
    def suffixes(self) -> Sequence[str]:
        """Those of `SUFFIXES` that the name of a result may end in."""

    @property
    def joins(self) -> bool:
        """Whether a file of the result can hold many tensors."""

    @property
    def reads(self) -> Sequence[Path]:
        """The local files that are read, which no output may be."""

    @property
    def states(self) -> Mapping[Path, FileState]:
        """The states of the files when they were opened; empty for a store."""

    def carries(self, target: str) -> bool:
        """Return whether tensors that are not split are carried over into a result of that name."""

    def writing(self, changes: Sequence[Recast], target: str, layout: FileLayout) -> Writing:
        """Return how these tensors are written to a target, whose name may say in which form."""


class Format(Protocol):
    """A module that reads and writes a format."""

    def recognizes(self, source: str) -> bool:
        """Return whether a path or URL is of this format, by its name or what lies there."""

    def open_source(self, source: str, layout: FileLayout) -> TensorSource:
        """Read the content of the source; one that lies, or could do harm, is refused (TS705).

        Of a layout with ranks, the source is the files of these.
        """


class Executor(AbstractContextManager["Executor"], Protocol):
    """Runs tasks: on threads of this machine, or on a cluster.

    Attributes:
        memory: The memory that each task may take.
    """

    memory: int

    def check(self, token: str, reads: Sequence[Path]) -> None:
        """Refuse (TS710) to run where not all who run tasks see what is read, and the draft.

        `token` is the path or URL of a file that may be written beside the draft.
        """

    def run(
        self,
        tasks: Iterator[WriteTask],
        progress: Callable[[int], object],
        *,
        verify: bool = False,
    ) -> int:
        """Run tasks, or verify what they wrote; none still runs when this ends, or fails.

        As each one ends, `progress` gets its bytes. Returns the sum of the checksums, if any.
        """


def open_source(source: str, layout: FileLayout | None = None) -> TensorSource:
    """Open a path or URL in its format (TS705 if it has none, or is malformed)."""
    for name in FORMATS:
        module = cast("Format", import_module(f"tensorsplit.files.{name}"))
        with refusing_access(source):
            if module.recognizes(source):
                return module.open_source(source, layout or FileLayout())
    path = local_path(source)
    problem = f"{show_path(source)} has no known format"
    fix = (
        "give an .npy, .npz or .safetensors file, a folder of these with an index, or a zarr store"
    )
    if path is not None and not path.exists():
        problem = f"{show_path(source)}: there is no such file or folder"
    elif source.lower().endswith(GGUF):
        problem = f"{show_path(source)} is a GGUF file, which is not read"
        fix = (
            "split or merge the .safetensors that it was made from; llama-gguf-split of llama.cpp"
            " divides GGUF files between whole tensors"
        )
    raise SplitError(UNREADABLE_TENSORS, problem, fix, parameter="source")
