"""Known deviations: what each engine and tool was seen to do otherwise, and since which version.

A run is compared with this file. A deviation that is not in it is new, and fails the run. One that
is in it, for the version that ran, and does not occur is fixed if it was seen in an older version
only; else it is stale: the entry covers too much.
"""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from importlib.resources import files
from itertools import count, product
from pathlib import Path

import msgspec
from packaging.specifiers import SpecifierSet
from packaging.version import InvalidVersion, Version

from tensorsplit.conformance.document import SKIPPED, Document, Result
from tensorsplit.conformance.patterns import covering, matching
from tensorsplit.core.errors import USAGE, SplitError
from tensorsplit.storage.documents import read_json

FILE = "known.json"
"""The file of this package."""

_NONE = "holds no known deviations"
_FIX = "write one with: tensorsplit conformance --update-known FILE"


@dataclass(frozen=True, slots=True)
class Deviation:
    """A known deviation."""

    id: str  # a name that stays
    subject: str  # who deviates
    versions: str  # the versions that do, as pip writes them: ``>=1.31.1,<1.33``
    verdicts: tuple[str, ...]  # the verdicts it shows as; several where memory decides
    # patterns of the cases that show it (see `patterns.matches`); each of them does
    cases: tuple[str, ...]
    seen: str  # what was seen
    link: str = ""  # an issue of the project it belongs to, where there is one

    def __post_init__(self) -> None:
        SpecifierSet(self.versions)  # which raises a ValueError for anything else

    def covers(self, version: str) -> bool:
        """Return whether it holds for a version."""
        try:
            return SpecifierSet(self.versions).contains(version, prereleases=True)
        except InvalidVersion:
            return False

    def first_before(self, version: str) -> str:
        """Return the first version that it was seen in, if that is older than another one."""
        first = (each.version for each in SpecifierSet(self.versions) if each.operator == ">=")
        return next((each for each in first if Version(each) < Version(version)), "")


@dataclass(frozen=True, slots=True)
class Stale:
    """A known deviation that does not occur as stated."""

    deviation: Deviation  # the entry of the file
    # the cases that should show it and don't; empty if it matches none of the suite
    cases: tuple[str, ...]
    # the version that shows it, where a newer one ran, in which it is fixed
    seen_in: str = ""

    def __str__(self) -> str:
        name = self.deviation.id
        if not self.cases:
            return f"stale: {name}: its patterns match no case"
        more = f" and {len(self.cases) - 1} more" if len(self.cases) > 1 else ""
        kind = f"fixed since {self.seen_in}" if self.seen_in else "stale"
        return f"{kind}: {name}: no longer seen with {self.cases[0]}{more}"


@dataclass(frozen=True, slots=True)
class Comparison:
    """A run beside the known deviations."""

    document: Document  # the run, each deviation with the id of the entry that it belongs to
    new: tuple[Result, ...]  # the deviations that belong to none, worst first
    stale: tuple[Stale, ...]  # the entries that say too much
    fixed: tuple[Stale, ...] = ()  # those that say what is so of an older version

    @property
    def is_fine(self) -> bool:
        """Whether the run shows what is known, or less in a newer version, and nothing else."""
        return not self.new and not self.stale


def load(path: Path | None = None) -> tuple[Deviation, ...]:
    """Read the known deviations of a file, or of this package; SplitError TS703 if it has none."""
    if path is None:
        content = json.loads(files(__package__).joinpath(FILE).read_text("utf-8"))
    else:
        content = read_json(path, what=_NONE, fix=_FIX, parameter="known")
    try:
        return msgspec.convert(content["deviations"], tuple[Deviation, ...])
    except (ValueError, LookupError, TypeError, msgspec.MsgspecError) as error:
        problem = f"{path} {_NONE}: {type(error).__name__}: {error}"
        raise SplitError(USAGE, problem, _FIX, parameter="known") from None


def dumps(deviations: Iterable[Deviation]) -> str:
    """Write known deviations as the text of a file."""
    content = {"deviations": [asdict(entry) for entry in deviations]}
    return json.dumps(content, indent=1, ensure_ascii=False) + "\n"


def compare(
    document: Document, known: Iterable[Deviation], suite: Collection[str] = ()
) -> Comparison:
    """Compare a run, which may have only some of the cases of the suite, with what is known."""
    results = {(result.case, result.subject): result for result in document.results}
    names = [case.id for case in document.cases]
    owners: dict[tuple[str, str], str] = {}
    stale = []
    for entry, subject in product(known, document.subjects):
        if entry.subject != subject.title or not entry.covers(subject.version):
            continue
        cases = matching(names, entry.cases)
        fixed = [name for name in cases if not _shows(results.get((name, subject.name)), entry)]
        if fixed or not (cases or matching(suite, entry.cases)):
            wrong = any(results[name, subject.name].is_deviation for name in fixed)
            seen_in = "" if wrong or not fixed else entry.first_before(subject.version)
            stale.append(Stale(entry, tuple(fixed), seen_in))
        for name in set(cases) - set(fixed):
            owners.setdefault((name, subject.name), entry.id)
    marked = tuple(
        replace(result, deviation=owners.get((result.case, result.subject), ""))
        for result in document.results
    )
    document = replace(document, results=marked)
    new = tuple(result for result in document.deviations() if not result.deviation)
    outdated = tuple(entry for entry in stale if entry.seen_in)
    return Comparison(document, new, tuple(e for e in stale if not e.seen_in), outdated)


def _shows(result: Result | None, entry: Deviation) -> bool:
    """Return whether a result is as in the entry, or was not measured at all."""
    return result is None or result.verdict in (*entry.verdicts, SKIPPED)


def updated(document: Document, known: Iterable[Deviation]) -> tuple[Deviation, ...]:
    """Return known deviations that fit a run, for a person to review.

    What the run does not show otherwise stays; an entry that a new version no longer shows at all
    ends before that version. New entries are named by their subject and a number.
    """
    comparison = compare(document, known)
    names = {case.id for case in document.cases}
    versions = {subject.name: subject.version for subject in document.subjects}
    gone = (*comparison.stale, *comparison.fixed)
    stale = {entry.deviation.id: set(entry.cases) for entry in gone}
    kept = []
    for entry in known:
        if entry.id not in stale:
            kept.append(entry)
        elif left := set(matching(names, entry.cases)) - stale[entry.id]:
            kept.append(replace(entry, cases=covering(left, names - left)))
        else:
            ended = (entry.versions, f"<{versions[entry.subject]}")
            kept.append(replace(entry, versions=",".join(filter(None, ended))))
    taken = {entry.id for entry in kept}
    for first, patterns in _groups(comparison.new, names):
        who, seen = first.subject, first.detail
        name = next(name for n in count(1) if (name := f"{who}-{n}") not in taken)
        taken.add(name)
        since, verdicts = f">={versions[who]}", (first.verdict,)
        kept.append(Deviation(name, who, since, verdicts, tuple(patterns), seen))
    return tuple(sorted(kept, key=lambda entry: (entry.subject, entry.id)))


def _groups(results: Sequence[Result], names: set[str]) -> Iterator[tuple[Result, list[str]]]:
    """Group new results by cause: the first one of each, and the patterns of all.

    Patterns are found for a subject and a verdict; those whose cases say the same are one cause.
    """
    by_verdict: dict[tuple[str, str], dict[str, Result]] = defaultdict(dict)
    for result in results:
        by_verdict[result.subject, result.verdict][result.case] = result
    for found in by_verdict.values():
        causes: dict[str, tuple[Result, list[str]]] = {}
        for pattern in covering(found, names - set(found)):
            shown = [found[name] for name in matching(found, [pattern])]
            cause, _ = Counter(map(reason, shown)).most_common(1)[0]
            first = next(result for result in shown if reason(result) == cause)
            causes.setdefault(cause, (first, []))[1].append(pattern)
        yield from causes.values()


def reason(result: Result) -> str:
    """Return the part that results of one cause share: the detail without names and numbers."""
    if result.verdict not in ("refused-but-legal", "unsupported-type"):
        return result.signal
    text = re.sub(r"'[^']*'|\"[^\"]*\"|\([^)]*\)|0x[0-9a-f]+|[-+]?\d+", "", result.detail)
    return " ".join(text.split()[:12])
