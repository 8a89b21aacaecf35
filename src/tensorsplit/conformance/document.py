"""The result of a run: one document, in memory and as JSON.

Everything that is shown of a run (the matrix, the page, the profiles) is made from its document
alone, so that it can be made again, elsewhere and later, without running anything.
"""

from __future__ import annotations

import gzip
import json
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, product
from pathlib import Path
from typing import Any

import msgspec

from tensorsplit.conformance.case import CaseInfo
from tensorsplit.core.errors import USAGE, SplitError, show
from tensorsplit.storage.documents import read_json

PASS = "pass"  # noqa: S105 - a verdict
UNTESTED = "untested"
SKIPPED = "skipped"


@dataclass(frozen=True, slots=True)
class Outcome:
    """An outcome of a case: a verdict, or wrong data from foreign memory, which is worse."""

    severity: int  # 0 for the worst; the same for all that is not a deviation
    key: str  # the verdict, or ``memory``; how it is written in a link, and in the class of a style
    style: str  # its style in a terminal
    meaning: str  # what it means, in one sentence

    @property
    def title(self) -> str:
        """The title for readers."""
        return "wrong, memory" if self.key == "memory" else self.key.replace("-", " ")

    @property
    def sign(self) -> str:
        """A character that stands for it where there is little room."""
        return "?" if self.key == UNTESTED else self.key[0].upper()


_FINE = 8
_MEMORY = Outcome(
    *(0, "memory", "bold magenta"), "Ran, and returned what was read or written outside a buffer."
)
_BY_VERDICT = {
    verdict: Outcome(severity, verdict, style, meaning)
    for severity, verdict, style, meaning in (
        (1, "crash", "bold red", "The process died: a signal, an abort, a corrupted heap."),
        (2, "wrong", "red", "Ran without an error and returned something else."),
        (
            *(3, "accepted-but-illegal", "yellow"),
            "Ran a model that the standard, or a decision, refuses.",
        ),
        (
            *(4, "lost-refusal", "yellow"),
            "Rewrote a model so that it runs where the original is to be refused.",
        ),
        (5, "hang", "bold yellow", "Did not return within the time allowed."),
        (6, "refused-but-legal", "cyan", "Refused a model that is right."),
        (7, "unsupported-type", "dim", "Refused because it lacks this element type or operator."),
        (_FINE, PASS, "green", "Did what the standard says."),
        (
            *(_FINE, UNTESTED, "dim"),
            "Refused a wrong model for lack of the type or operator, or the target can't say it.",
        ),
        (_FINE, SKIPPED, "dim", "A file format that the subject does not read; not counted."),
    )
}
OUTCOMES = (_MEMORY, *_BY_VERDICT.values())
"""Every outcome, worst first.

``lost-refusal`` is for tools that rewrite models. ``untested`` stands for a refusal that the
standard asks for, but that the subject gives for another reason, and for that of a tool whose
target can't express the model.
"""

_COMPRESSED = ".gz"
_FIX = "give a file that tensorsplit conformance --format json -o FILE has written"


@dataclass(frozen=True, slots=True)
class SubjectInfo:
    """An engine or a tool that was run."""

    name: str  # its name, such as ``onnxruntime``; with its version where two of them were run
    kind: str  # ``engine`` or ``tool``
    versions: dict[str, str]  # the version of each of its packages
    engine: str = ""  # its name without the version, where two versions were run
    date: str = ""  # when it was run, where two versions were

    @property
    def title(self) -> str:
        """Its name, whichever versions were run."""
        return self.engine or self.name

    @property
    def version(self) -> str:
        """The version of the package that it is named by: the first one."""
        return next(iter(self.versions.values()), "")


@dataclass(frozen=True, slots=True)
class Result:
    """The result of one case with one subject."""

    case: str
    subject: str
    verdict: str  # the key of one of `OUTCOMES`, but the first
    detail: str = ""  # what was seen, in one or two sentences; empty for a pass
    signal: str = ""  # the signal that ended the process, such as ``SIGFPE``
    # the output that is wrong, with its position in a sequence, such as ``parts[2]``
    output: str = ""
    index: tuple[int, ...] = ()  # the first index at which the values differ
    expected: str = ""  # the value there that the standard asks for, as text
    seen: str = ""  # the value that was seen there, as text
    # whether memory outside a buffer was read or written, as far as it can be known
    memory: bool = False
    deviation: str = ""  # the id of the known deviation that the result belongs to

    @property
    def outcome(self) -> Outcome:
        """Its verdict; for data that was read outside of a buffer, and given out, the worst."""
        is_foreign = self.memory and self.verdict in ("wrong", "accepted-but-illegal")
        return _MEMORY if is_foreign else _BY_VERDICT[self.verdict]

    @property
    def is_deviation(self) -> bool:
        """Whether the subject did not do what the standard asks."""
        return self.outcome.severity < _FINE


@dataclass(frozen=True, slots=True)
class Document:
    """A run."""

    # ``version`` of this package, ``cases`` (how many), ``seed``, and the ``seconds`` for each case
    suite: dict[str, Any]
    measured: dict[str, str]  # ``by`` whom, ``date``, ``system``, ``python`` and ``cpu``
    subjects: tuple[SubjectInfo, ...]  # what was run
    cases: tuple[CaseInfo, ...]  # that the subjects ran
    # what came of each case with each subject, by case and then subject
    results: tuple[Result, ...] = field(default=())

    @property
    def seed(self) -> int:
        """The seed of the random data."""
        seed: int = self.suite.get("seed", 0)
        return seed

    def successions(self) -> Iterator[tuple[SubjectInfo, SubjectInfo]]:
        """Yield each two versions of a subject that follow each other, the older one first."""
        latest: dict[str, SubjectInfo] = {}
        for subject in self.subjects:
            if subject.title in latest:
                yield latest[subject.title], subject
            latest[subject.title] = subject

    def deviations(self) -> Iterator[Result]:
        """Return the results that did not pass, worst first."""
        order = sorted(self.results, key=lambda result: result.outcome.severity)
        return (result for result in order if result.is_deviation)

    def to_json(self) -> dict[str, Any]:
        """Return the document as what `json.dumps` takes, without the empty fields of its parts."""
        content: dict[str, Any] = json.loads(json.dumps(msgspec.to_builtins(self)))
        for name, empty in (("subjects", ("",)), ("results", ("", False, []))):
            content[name] = [
                {field: value for field, value in entry.items() if value not in empty}
                for entry in content[name]
            ]
        return content

    @classmethod
    def from_json(cls, content: object) -> Document:
        """Return the document of what `json.loads` gave; SplitError TS703 if it is not one.

        Fields that it does not know are of a newer version of this package.
        """
        try:
            document = msgspec.convert(content, cls)
        except (msgspec.ValidationError, RecursionError) as error:
            raise _no_document(f"{type(error).__name__}: {error}") from None
        if type(document.seed) is not int or document.seed < 0:
            raise _no_document(f"the seed is {show(document.seed)}")
        if any(not isinstance(value, (str, int, float)) for value in document.suite.values()):
            raise _no_document(f"the suite is {show(document.suite)}")
        names = {subject.name for subject in document.subjects}
        ids = {case.id for case in document.cases}
        for result in document.results:
            if result.verdict not in _BY_VERDICT:
                raise _no_document(f"there is no verdict {show(result.verdict)}")
            if result.subject not in names or result.case not in ids:
                raise _no_document(f"a result is about {show(result.case)} with {result.subject}")
        return document


def read(path: Path) -> Document:
    """Read a run, compressed or not; SplitError TS703 if it can't be read or is none."""
    content = read_json(path, what="can't be read", fix=_FIX, parameter="from")
    try:
        return Document.from_json(content)
    except SplitError as error:
        error.problem = f"{path}: {error.problem}"
        raise


def octets_of(text: str, path: Path) -> bytes:
    """Encode a text for a file: compressed if the file's name ends in ``.gz``.

    The same text gives the same file: neither its name nor the time gets into it.
    """
    octets = text.encode()
    return gzip.compress(octets, mtime=0) if path.suffix == _COMPRESSED else octets


def merged(documents: Sequence[Document]) -> Document:
    """Merge documents: engines that can't be installed together are run one by one.

    A slow one may be run in pieces, each of other cases. A subject that was run in two versions
    becomes two, by date, each with its version in its name. The document of most cases says when
    and where. Versions of the suite fit together where they have the same cases. SplitError TS703
    if they differ in the seed, or in what a case is, or one version of a subject is in two with the
    same case.
    """
    whole = max(documents, key=lambda document: len(document.cases))
    cases: dict[str, CaseInfo] = {}
    for document in documents:
        if document.suite.get("seed") != whole.suite.get("seed"):
            raise _unlike("they are not of the same seed")
        for case in document.cases:
            if cases.setdefault(case.id, case) != case:
                raise _unlike(f"{case.id} is not the same case in all of them")
    subjects: dict[str, SubjectInfo] = {}
    found: dict[tuple[str, str], Result] = {}
    for document in _distinguished(documents):
        for subject in document.subjects:
            if subjects.setdefault(subject.name, subject).versions != subject.versions:
                raise _unlike(f"{subject.name} is in two of them, beside other packages")
        for result in document.results:
            if found.setdefault((result.case, result.subject), result) is not result:
                raise _unlike(f"{result.subject} is in two of them, with {result.case}")
    return replace(
        whole,
        suite={**whole.suite, "version": _versions(documents), "cases": len(cases)},
        subjects=tuple(subjects.values()),
        cases=tuple(cases[name] for name in sorted(cases)),
        results=tuple(found[key] for key in product(sorted(cases), subjects) if key in found),
    )


def _versions(documents: Sequence[Document]) -> str:
    """Return the versions of the suite of all runs, such as ``0.1.0, 0.2.0``."""
    found = [str(document.suite.get("version", "")).split(", ") for document in documents]
    return ", ".join(sorted(set(chain.from_iterable(found))))


def _distinguished(documents: Sequence[Document]) -> Sequence[Document]:
    """Return the documents, with the version in the names of subjects that have several."""
    versions: dict[str, set[str]] = defaultdict(set)
    for document in documents:
        for subject in document.subjects:
            versions[subject.title].add(json.dumps(subject.versions))
    several = {name for name, found in versions.items() if len(found) > 1}
    if not several:
        return documents

    def with_version(document: Document) -> Document:
        date = document.measured.get("date", "")
        subjects = {
            subject.name: replace(
                subject,
                name=f"{subject.title} {subject.version}",
                engine=subject.title,
                date=subject.date or date,
            )
            if subject.title in several
            else subject
            for subject in document.subjects
        }
        results = [
            replace(result, subject=subjects[result.subject].name) for result in document.results
        ]
        return replace(document, subjects=tuple(subjects.values()), results=tuple(results))

    return sorted(map(with_version, documents), key=lambda each: each.measured.get("date", ""))


def _no_document(why: str) -> SplitError:
    problem = f"this is not a document of a conformance run: {why}"
    return SplitError(USAGE, problem, _FIX, parameter="from")


def _unlike(why: str) -> SplitError:
    return SplitError(
        USAGE,
        f"the runs can't be put together: {why}",
        "run all with the same --seed, by a version of tensorsplit that has the same cases",
        parameter="from",
    )
