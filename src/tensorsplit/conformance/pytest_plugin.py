"""The suite as tests of pytest, one for each case: for the CI of who writes an engine.

``pytest --pyargs tensorsplit.conformance --engine my_adapter.py``. The options exist only where
the suite is among what pytest is to run, so that they are in nobody's way.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from threading import TIMEOUT_MAX
from typing import TYPE_CHECKING, Any

import pytest

from tensorsplit.conformance import SECONDS_OF_A_CASE

if TYPE_CHECKING:
    from _pytest._code.code import TerminalRepr

    from tensorsplit.conformance.case import Case
    from tensorsplit.conformance.runner import OneByOne, Subject

_PACKAGE = "tensorsplit.conformance"
_HERE = Path(__file__)


@dataclass(frozen=True)
class _Suite:
    """The subject and the cases to run."""

    subject: Subject
    cases: list[Case]
    tests: OneByOne
    expected: dict[str, str]  # failures: why, by case


_SUITE = pytest.StashKey[_Suite]()


def pytest_load_initial_conftests(early_config: pytest.Config, parser: pytest.Parser) -> None:
    """Add the options where the suite is requested."""
    if not any(map(_is_suite, early_config.known_args_namespace.file_or_dir)):
        return
    group = parser.getgroup(_PACKAGE)
    group.addoption("--engine", metavar="NAME", help="built in, or an adapter: its path or module")
    group.addoption(
        "--case",
        metavar="PATTERN",
        action="append",
        default=[],
        help="only the cases whose id matches, such as 'onnx.Split-18/*'",
    )
    group.addoption(
        "--case-timeout",
        metavar="SECONDS",
        type=float,
        default=SECONDS_OF_A_CASE,
        help=f"how long the engine may take for a case; default: {SECONDS_OF_A_CASE:g}",
    )
    group.addoption(
        "--expected-failures",
        metavar="FILE",
        type=Path,
        help="patterns of the cases that fail, one in each line; a # starts a comment",
    )


def _is_suite(argument: str) -> bool:
    path = argument.partition("::")[0]
    return f"{path}.".startswith(f"{_PACKAGE}.") or (
        Path(path).absolute() in (_HERE, *_HERE.parents[:1])
    )


def pytest_configure(config: pytest.Config) -> None:
    """Look at the engine and the expected failures before anything is run."""
    if not any(map(_is_suite, config.args)):
        return
    from tensorsplit.conformance.runner import OneByOne, Subject
    from tensorsplit.core.errors import SplitError

    name, seconds = config.getoption("--engine"), config.getoption("--case-timeout")
    if not name:
        raise pytest.UsageError(f"{_PACKAGE} takes --engine: built in, or the path of an adapter")
    if not 0 < seconds <= TIMEOUT_MAX:
        raise pytest.UsageError(f"--case-timeout is {seconds}: give seconds, more than 0")
    try:
        subject = Subject.of(name)
    except SplitError as error:
        raise pytest.UsageError(str(error)) from None
    if not subject.traits.is_installed:
        raise pytest.UsageError(f"{name} needs {' '.join(subject.traits.packages)}")
    cases = _cases(subject, config.getoption("--case"))
    if not cases:
        raise pytest.UsageError("--case matches no case that the engine reads")
    expected = _expected_failures(config.getoption("--expected-failures"), subject)
    config.stash[_SUITE] = _Suite(subject, cases, OneByOne(subject, seconds), expected)


def _cases(subject: Subject, patterns: Iterable[str]) -> list[Case]:
    """Return the cases that an engine reads and whose id matches."""
    from tensorsplit.conformance.cases import find

    return [case for case in find(patterns) if case.model_format in subject.traits.formats]


def _expected_failures(path: Path | None, subject: Subject) -> dict[str, str]:
    """Return why each case is expected to fail; UsageError for an entry that matches none."""
    if path is None:
        return {}
    try:
        lines = path.read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise pytest.UsageError(f"cannot read the expected failures: {error}") from None
    expected: dict[str, str] = {}
    unmatched = []
    for number, line in enumerate(lines, 1):
        pattern, _, comment = line.partition("#")
        if not pattern.strip():
            continue
        found = _cases(subject, [pattern.strip()])
        expected |= dict.fromkeys((case.id for case in found), comment.strip())
        if not found:
            unmatched.append(f"{path}:{number}: {pattern.strip()} matches no case of the engine")
    if unmatched:
        raise pytest.UsageError("\n".join(unmatched))
    return expected


def pytest_report_header(config: pytest.Config) -> str | None:
    """Name the engine, with the versions of its packages."""
    suite = config.stash.get(_SUITE, None)
    if suite is None:
        return None
    info = suite.subject.info
    versions = ", ".join(" ".join(entry) for entry in info.versions.items())
    return f"{info.kind}: {info.name} ({versions})" if versions else f"{info.kind}: {info.name}"


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """Find the cases where this file lies."""
    if file_path == _HERE and _SUITE in parent.config.stash:
        return _CaseFile.from_parent(parent, path=file_path)
    return None


def pytest_unconfigure(config: pytest.Config) -> None:
    """End the engine."""
    if _SUITE in config.stash:
        config.stash[_SUITE].tests.close()


class _CaseFile(pytest.File):
    """All requested cases."""

    def collect(self) -> Iterator[pytest.Item]:
        suite = self.config.stash[_SUITE]
        for case in suite.cases:
            item = _CaseItem.from_parent(self, name=case.id, case=case)
            if case.id in suite.expected:
                item.add_marker(pytest.mark.xfail(reason=suite.expected[case.id], strict=True))
            yield item


class _Deviates(Exception):  # noqa: N818 - the engine's fault
    """The engine does not do what the standard asks for."""


class _CaseItem(pytest.Item):
    """One case."""

    def __init__(self, *, case: Case, **rest: Any) -> None:
        super().__init__(**rest)
        self._case = case

    def runtest(self) -> None:
        from tensorsplit.conformance.document import UNTESTED

        suite = self.config.stash[_SUITE]
        results = suite.tests.results(self._case)
        for result in results:
            if result.is_deviation:
                about = "" if result.case == self._case.id else f" (of {result.case})"
                raise _Deviates(f"{result.verdict}{about}: {result.detail}")
        if results[-1].verdict == UNTESTED:
            pytest.skip(results[-1].detail)

    def repr_failure(
        self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None
    ) -> str | TerminalRepr:
        from tensorsplit.core.errors import SplitError

        if isinstance(excinfo.value, SplitError):
            return str(excinfo.value)
        if not isinstance(excinfo.value, _Deviates):
            return super().repr_failure(excinfo, style)
        return (
            f"{excinfo.value}\nThe standard: {self._case.rule}\n"
            f"Reproduce: tensorsplit conformance --engine {self.config.getoption('--engine')}"
            f" --repro {self._case.id}"
        )

    def reportinfo(self) -> tuple[Path, None, str]:
        return self.path, None, f"case {self.name}"  # pytest would make :: of the dots of a name
