"""Jobs on stored tensors: planned and refused as a whole before the first byte is written."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from math import ceil, floor
from pathlib import Path, PurePath

from tensorsplit.core.errors import (
    NOT_PARTS,
    UNREADABLE_TENSORS,
    UNWRITABLE,
    USAGE,
    SplitError,
    short_name,
    show,
    show_bytes,
    show_path,
)
from tensorsplit.core.extras import needs
from tensorsplit.files.divisions import change_of
from tensorsplit.files.formats import (
    GGUF,
    SUFFIXES,
    Executor,
    FileLayout,
    Recast,
    TensorSource,
    Writing,
    open_source,
)
from tensorsplit.files.merging import Gathered, divided_otherwise, gather, resharded
from tensorsplit.files.rule_files import RuleSet
from tensorsplit.files.sources import FileState, check_unchanged, local_path, refusing_access
from tensorsplit.files.tensor_names import check_file_names, check_names
from tensorsplit.files.threads import LocalThreads
from tensorsplit.storage.outputs import Outputs, free_bytes
from tensorsplit.storage.paths import check_name, real_path

_MOST_NAMES = 10
_MOST_WORKERS = 8
"""For each processor of this machine; more take memory, and copy nothing sooner."""

_TOKEN = ".tensorsplit-token"  # noqa: S105 - it opens nothing


@dataclass(frozen=True)
class Job:
    """The tensors that are read, the new ones that are made of them, and where these are written.

    Attributes:
        changes: What becomes of the stored tensors, in the order of the source.
        notes: What the caller should know of it, such as patterns that match no tensor.
        writing: How that is written.
        target: The file or folder of the result, or the URL of one.
        reads: The files that are read.
        states: What those that hold tensors were like when they were opened; empty for a store.
    """

    changes: Sequence[Recast]
    notes: Sequence[str]
    writing: Writing
    target: str
    reads: Sequence[Path]
    states: Mapping[Path, FileState]

    @property
    def nbytes(self) -> int:
        """The bytes of elements that are written."""
        return self.writing.nbytes

    def executor(
        self, memory: int, *, workers: int | None = None, scheduler: str | None = None
    ) -> Executor:
        """Return the executor of tasks: threads here, so many processes here, or a cluster.

        Raises:
            SplitError: TS703 for both `workers` and `scheduler`, TS704 without Dask, TS707 if one
                task does not fit the memory. On entering it, TS710 if the cluster does not answer.
        """
        least = self.writing.least_memory
        if workers is None and scheduler is None:
            return LocalThreads(memory, least)
        if workers is not None and (scheduler is not None or workers < 1):
            problem = f"{show(workers)} workers" + (" and a scheduler" if scheduler else "")
            fix = "give at least 1 worker, or the address of a scheduler, not both"
            raise SplitError(USAGE, f"{problem} are requested", fix, parameter="workers")
        most = _MOST_WORKERS * (os.cpu_count() or 1)
        if workers is not None and workers > most:
            problem = f"{show(workers)} workers are requested, more than this machine can run"
            fix = f"give at most {most}, or the address of a scheduler"
            raise SplitError(USAGE, problem, fix, parameter="workers")
        with needs("files"):
            from tensorsplit.files.cluster import DaskCluster

        return DaskCluster(memory, least, workers=workers, address=scheduler)

    def run(
        self,
        executor: Executor,
        outputs: Outputs,
        *,
        verify: bool = False,
        progress: Callable[[int], object] = lambda _: None,
    ) -> int:
        """Write the result whole, or not at all.

        Returns a checksum of what was compared, which is that of the source and of the result: the
        sum of the CRC-32 of all blocks, in 32 bits; 0 without `verify`.

        Args:
            executor: What runs the tasks.
            outputs: What else the caller reads and writes, and whether it overwrites.
            verify: Read everything back, and compare it with the source.
            progress: Is called with the bytes done since the last call.

        Raises:
            SplitError: TS702 if the target can't be written, TS705 if a file of tensors was changed
                or replaced meanwhile, TS708 if what was written is not what was read.
        """
        checksum = 0
        outputs.reads += self.reads
        with self._draft(outputs) as (draft, token, check):
            self.writing.prepare(draft)
            executor.check(token, self.reads)

            def written(count: int) -> None:
                check()
                progress(count)

            executor.run(self.writing.tasks(), written)
            self.writing.finish()
            if verify:
                checksum = executor.run(self.writing.tasks(), progress, verify=True)
            check_unchanged(self.states)
        return checksum % (1 << 32)

    @contextlib.contextmanager
    def _draft(self, outputs: Outputs) -> Iterator[tuple[str, str, Callable[[], None]]]:
        """Yield where the draft is built, the path of a token beside it, and a check for steps."""
        if not self.target:  # which a path takes for the current folder
            fix = "give the name of a file or folder"
            raise SplitError(UNWRITABLE, "the name is empty", fix)
        path = local_path(self.target)
        if path is None:
            from tensorsplit.files.url_targets import written_at

            with written_at(self.target, self.writing.names or (), _TOKEN) as check:
                yield self.target, f"{self.target}/{_TOKEN}", check
            outputs.written.append(self.target)
            return
        with outputs.replaced(path, self.writing.names) as draft:
            free = free_bytes(draft.parent)
            if free is not None and self.writing.space > free:
                raise SplitError(
                    UNWRITABLE,
                    f"the result takes {show_bytes(self.writing.space, ceil)}, and"
                    f" {draft.parent.parent} has {show_bytes(free, floor)} left",
                    "give a path on a larger disk",
                )
            yield str(draft), str(draft.with_name(_TOKEN)), lambda: None


def plan_split(
    source: str,
    target: str,
    rules: RuleSet,
    *,
    arrays: Sequence[str] = (),
    max_shard_size: int | None = None,
) -> Job:
    """Plan the split of a source by rules, or of those of its tensors that `arrays` names.

    Raises:
        SplitError: TS101 to TS309 for invalid splits, TS703 for rules that contradict each
            other, TS702 for a URL that can't be written, TS705 for a source that can't be read,
            TS706 for names that collide.
    """
    rules.check_ranks()
    opened = _opened(source, target)
    for name in arrays:
        if name not in opened.tensors:
            known = ", ".join(map(short_name, islice(opened.tensors, _MOST_NAMES)))
            raise SplitError(
                USAGE,
                f"the source holds no {show(name)}",
                f"it holds {len(opened.tensors)}: {known}",
                parameter="array",
            )
    tensors, carries = opened.tensors, opened.carries(target)
    if arrays and not carries:
        tensors = {name: tensors[name] for name in arrays}
    divisions, unmatched = rules.divide(tensors, arrays)
    changes = [change_of(each) for each in divisions]
    if not carries:
        changes = [each for each in changes if each.is_change]
    layout = FileLayout(rules.ranks, rules.file, rules.common, max_shard_size)
    return _job(opened, changes, _notes(rules, unmatched), target, layout)


def plan_merge(
    source: str, target: str, rules: RuleSet, *, max_shard_size: int | None = None
) -> Job:
    """Plan a merge: from the parts that rules made back to the whole tensors.

    Raises:
        SplitError: TS713 for what are not all parts of a tensor, and as `plan_split`.
    """
    rules, opened = _ranked(source, rules, target)
    gathered, unmatched = _gathered(opened, rules, target)
    changes = [each.merged() for each in gathered]
    return _job(
        opened, changes, _notes(rules, unmatched), target, FileLayout(max_shard_size=max_shard_size)
    )


def plan_reshard(
    source: str,
    target: str,
    rules: RuleSet,
    ranks: tuple[int | None, int | None],
    *,
    to_rules: RuleSet | None = None,
    max_shard_size: int | None = None,
) -> Job:
    """Plan the files of some ranks from those of others, or other parts of the same whole tensors.

    Raises:
        SplitError: As `plan_merge` and `plan_split`.
    """
    before, after = ranks
    if to_rules is None and None in ranks:
        problem, fix = "a number is missing", "say how many there are, and how many there will be"
        raise SplitError(USAGE, problem, fix, parameter="ranks")
    rules = rules if before is None else rules.for_ranks(before)
    rules, opened = _ranked(source, rules, target)
    gathered, unmatched = _gathered(opened, rules, target)
    new = to_rules or rules
    new = new if after is None else new.for_ranks(after)
    notes = _notes(rules, unmatched)
    if to_rules is None:
        changes = resharded(gathered, new)
    else:
        new.check_ranks()
        if rules.ranks is None and new.ranks is None:
            problem, fix = "none of the rules are for ranks", "merge, then split the result"
            raise SplitError(USAGE, problem, fix, parameter="rules")
        changes, unmatched = divided_otherwise(gathered, new)
        notes += _notes(new, unmatched)
    layout = FileLayout(new.ranks, new.file, new.common, max_shard_size)
    return _job(opened, changes, notes, target, layout)


def _gathered(
    opened: TensorSource, rules: RuleSet, target: str
) -> tuple[list[Gathered], list[str]]:
    """Return the whole tensors, and the patterns that match no part (TS713 if none does)."""
    place = PurePath(target)
    name = place.stem if place.suffix in SUFFIXES else place.name
    gathered, unmatched = gather(rules, opened.tensors.values(), name)
    if rules.ranks is None and all(each.rule is None for each in gathered):
        names = ", ".join(map(short_name, islice(opened.tensors, _MOST_NAMES)))
        raise SplitError(
            NOT_PARTS,
            f"none of the names in the source is that of a numbered part: {names}",
            "give the names of the parts in their order, or the rules by which they were split",
            parameter="source",
        )
    return gathered, unmatched


def _opened(source: str, target: str, layout: FileLayout | None = None) -> TensorSource:
    """Open a source, in which the target may not lie (TS702): the next run would read it, too."""
    check_name(target)
    whole = source if "://" in source else str(Path(source).absolute())
    try:
        opened = open_source(whole, layout)
    except SplitError as error:
        error.problem = error.problem.replace(whole, source)  # as it was given
        raise
    place, path = local_path(target), local_path(source)
    if place is None or path is None:
        is_within = target.startswith(f"{source.rstrip('/')}/")
    else:
        folder = real_path(path)
        is_within = bool(target) and folder.is_dir() and folder in real_path(place).parents
    if is_within:
        raise SplitError(
            UNWRITABLE,
            f"{target} is inside {source}, which is read, and would be part of it",
            "give a path outside of it",
        )
    return opened


def _ranked(source: str, rules: RuleSet, target: str) -> tuple[RuleSet, TensorSource]:
    """Open the parts that rules made; if the rules state no number of ranks, count the files."""
    if rules.is_for_ranks and rules.ranks is None:
        folder = Path(source)
        with refusing_access(source):
            names = [each.name for each in folder.iterdir()] if folder.is_dir() else []
        count = FileLayout(file=rules.file).ranks_of(names)
        rules = rules if count is None else rules.for_ranks(count)
    rules.check_ranks()
    layout = FileLayout(rules.ranks, rules.file, rules.common)
    return rules, _opened(source, target, layout)


def _notes(rules: RuleSet, unmatched: Sequence[str]) -> list[str]:
    """Return notes about rules: patterns without tensors, for a model family only if all are."""
    if rules.is_of_family and len(unmatched) < len({each.pattern for each in rules.rules}):
        unmatched = ()
    few, more = unmatched[:_MOST_NAMES], unmatched[_MOST_NAMES:]
    return [
        *rules.notes,
        *(f"{show(pattern)} matches no tensor" for pattern in few),
        *([f"{len(more)} more patterns match no tensor"] if more else ()),
    ]


def _check_suffix(opened: TensorSource, target: str) -> None:
    """Refuse (TS703) the name of a file of another format, as it would be a folder of this one."""
    suffix = PurePath(target).suffix
    if suffix.lower() in (*SUFFIXES, GGUF) and suffix not in opened.suffixes:
        raise SplitError(
            USAGE,
            f"{show_path(target)} ends in {suffix}, and tensors stay in the format of the source",
            f"give a name that ends in {' or '.join(opened.suffixes)}, or that of a folder",
            parameter="output",
        )


def _job(
    opened: TensorSource,
    changes: Sequence[Recast],
    remarks: Sequence[str],
    target: str,
    layout: FileLayout,
) -> Job:
    """Return the job that makes these changes."""
    _check_suffix(opened, target)
    if local_path(target) is None and not opened.writes_urls:
        raise SplitError(UNWRITABLE, f"{target} is a URL", "only zarr stores are written to these")
    size = layout.max_shard_size
    if not opened.joins and (size is not None or layout.ranks is not None):
        raise SplitError(
            USAGE,
            "each part of this source is a file of its own",
            "leave out --max-shard-size and rules for ranks",
            parameter="source",
        )
    if size is not None and size < 1:
        raise SplitError(USAGE, f"it is {size}", "give bytes", parameter="max_shard_size")
    if not changes:
        raise SplitError(UNREADABLE_TENSORS, "the source holds no tensors", parameter="source")
    check_names(changes)
    check_file_names(name for name, _ in layout.files)
    writing = opened.writing(changes, target, layout)
    notes = [*remarks, *opened.notes]
    return Job(changes, notes, writing, target, opened.reads, opened.states)
