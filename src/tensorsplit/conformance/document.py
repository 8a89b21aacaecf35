"""The result of a run: one document, in memory and as JSON.

Everything that is shown of a run (the matrix, the page, the profiles) is made from its document
alone, so that it can be made again, elsewhere and later, without running anything.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import MISSING, asdict, dataclass, field, fields
from typing import TYPE_CHECKING, Any, TypeVar

from tensorsplit.conformance.case import Case, Cut
from tensorsplit.core.errors import USAGE, SplitError, show

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

PASS = "pass"  # noqa: S105 - a verdict
SKIPPED = "skipped"
VERDICTS = (
    "crash",
    "wrong",
    "accepted-but-illegal",
    "hang",
    "refused-but-legal",
    "unsupported-type",
    PASS,
    SKIPPED,
)
"""What may come of a case, worst first; a result with a memory error comes before all of them.

``skipped`` stands for a file format that the subject does not read, and counts nowhere.
"""

_T = TypeVar("_T", bound="DataclassInstance")


@dataclass(frozen=True, slots=True)
class SubjectInfo:
    """An engine or a tool that was run.

    Attributes:
        name: Its name, such as ``onnxruntime``.
        kind: ``engine`` or ``tool``.
        versions: The version of each of its packages.
    """

    name: str
    kind: str
    versions: dict[str, str]

    @property
    def version(self) -> str:
        """The version of the package that it is named by: the first one."""
        return next(iter(self.versions.values()), "")


@dataclass(frozen=True, slots=True)
class CaseInfo:
    """What is said of a case in a document; see `tensorsplit.conformance.case.Case`."""

    id: str
    operator: str
    element_type: str
    shape_class: str
    rank: int
    spelling: str
    place: str
    use: str
    rule: str
    decision: str
    expects: str
    opset: int
    model_format: str
    cut: Cut | None = None

    @classmethod
    def of(cls, case: Case) -> CaseInfo:
        """What there is to say of a case."""
        return cls(**{entry.name: getattr(case, entry.name) for entry in fields(cls)})


@dataclass(frozen=True, slots=True)
class Result:
    """What came of one case with one subject.

    Attributes:
        case: The case's id.
        subject: The subject's name.
        verdict: One of `VERDICTS`.
        detail: What was seen, in one or two sentences; empty for a pass.
        signal: The signal that ended the process, such as ``SIGFPE``.
        output: The output that is wrong, with its position in a sequence, such as ``parts[2]``.
        index: The first index at which the values differ.
        expected: The value there that the standard asks for, as text.
        seen: The value that was seen there, as text.
        memory: Whether memory outside a buffer was read or written, as far as it can be known.
        deviation: The id of the known deviation that the result belongs to.
    """

    case: str
    subject: str
    verdict: str
    detail: str = ""
    signal: str = ""
    output: str = ""
    index: tuple[int, ...] = ()
    expected: str = ""
    seen: str = ""
    memory: bool = False
    deviation: str = ""

    @property
    def is_deviation(self) -> bool:
        """Whether the subject did not do what the standard asks."""
        return self.verdict not in (PASS, SKIPPED)

    @property
    def severity(self) -> int:
        """0 for the worst: data that was read outside of a buffer, given out as a result."""
        if self.memory and self.verdict in ("wrong", "accepted-but-illegal"):
            return 0
        return VERDICTS.index(self.verdict) + 1


@dataclass(frozen=True, slots=True)
class Document:
    """A run.

    Attributes:
        suite: ``version`` of this package, ``cases`` (how many) and ``seed``.
        measured: ``by`` whom, ``date``, ``system``, ``python`` and ``cpu``.
        subjects: What was run.
        cases: What was asked of it.
        results: What came of each case with each subject, by case and then subject.
    """

    suite: dict[str, Any]
    measured: dict[str, str]
    subjects: tuple[SubjectInfo, ...]
    cases: tuple[CaseInfo, ...]
    results: tuple[Result, ...] = field(default=())

    def deviations(self) -> Iterator[Result]:
        """The results that are no pass, worst first."""
        order = sorted(self.results, key=lambda result: result.severity)
        return (result for result in order if result.is_deviation)

    def to_json(self) -> dict[str, Any]:
        """The document as what `json.dumps` takes; keys that say nothing are left out."""
        return {
            "suite": dict(self.suite),
            "measured": dict(self.measured),
            "subjects": [asdict(subject) for subject in self.subjects],
            "cases": [_plain(asdict(case)) for case in self.cases],
            "results": [_said(result) for result in self.results],
        }

    @classmethod
    def from_json(cls, content: Any) -> Document:
        """The document of what `json.loads` gave.

        Args:
            content: What was read; anything, it is checked.

        Raises:
            SplitError: TS703 if it is no such document.
        """
        try:
            cases = tuple(_case(entry) for entry in content["cases"])
            subjects = tuple(_subject(entry) for entry in content["subjects"])
            results = tuple(_made(Result, entry) for entry in content["results"])
            suite, measured = dict(content["suite"]), _texts(content["measured"])
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise _unreadable(f"{type(error).__name__}: {error}") from None
        _check_references(results, subjects, cases)
        return cls(suite, measured, subjects, cases, results)


def _said(result: Result) -> dict[str, Any]:
    """The fields of a result that are not empty."""
    return {name: value for name, value in _plain(asdict(result)).items() if value}


def _plain(entry: dict[str, Any]) -> dict[str, Any]:
    """JSON has no tuples: what is written should be what is read back."""
    return {
        name: list(value)
        if isinstance(value, tuple)
        else _plain(value)
        if isinstance(value, dict)
        else value
        for name, value in entry.items()
    }


def _subject(entry: Mapping[str, Any]) -> SubjectInfo:
    return _made(SubjectInfo, {**entry, "versions": _texts(entry["versions"])})


def _texts(entry: Mapping[str, Any]) -> dict[str, str]:
    return {str(name): str(value) for name, value in entry.items()}


def _case(entry: Mapping[str, Any]) -> CaseInfo:
    cut = entry.get("cut")
    return _made(CaseInfo, {**entry, "cut": None if cut is None else _made(Cut, cut)})


_TYPES: Mapping[str, type | tuple[type, ...]] = {
    "str": str,
    "int": int,
    "bool": bool,
    "tuple[int, ...]": list,
    "dict[str, str]": dict,
    "Cut | None": (Cut, type(None)),
}


def _made(cls: type[_T], entry: Mapping[str, Any]) -> _T:
    """An object of a class of this document, from an entry whose fields are checked."""
    known = {field.name: field for field in fields(cls)}
    values: dict[str, Any] = {}
    for name, value in entry.items():
        if name not in known:
            continue  # of a newer version of this package
        if not isinstance(value, _TYPES[str(known[name].type)]):
            raise TypeError(f"{name} is {show(value)}")
        values[name] = tuple(value) if isinstance(value, list) else value
    missing = [
        name
        for name, item in known.items()
        if name not in values and item.default is MISSING and item.default_factory is MISSING
    ]
    if missing:
        raise TypeError(f"{', '.join(missing)} is missing")
    return cls(**values)


def _check_references(
    results: Iterable[Result], subjects: Iterable[SubjectInfo], cases: Iterable[CaseInfo]
) -> None:
    names = {subject.name for subject in subjects}
    ids = {case.id for case in cases}
    for result in results:
        if result.verdict not in VERDICTS:
            raise _unreadable(f"there is no verdict {show(result.verdict)}")
        if result.subject not in names or result.case not in ids:
            raise _unreadable(f"a result is about {show(result.case)} with {show(result.subject)}")


def _unreadable(why: str) -> SplitError:
    return SplitError(
        USAGE,
        f"this is no document of a conformance run: {why}",
        "give a file that tensorsplit conformance --format json -o FILE has written",
        parameter="from",
    )
