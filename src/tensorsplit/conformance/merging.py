"""One document from several: engines that can't be installed together are run one by one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tensorsplit.conformance.document import Document
from tensorsplit.core.errors import USAGE, SplitError


def merged(documents: Sequence[Document]) -> Document:
    """The document of several runs with different subjects.

    Args:
        documents: The runs, at least one. The first has all cases; the others may have some of
            them. What is said of when and where is that of the first.

    Raises:
        SplitError: TS703 if a run has another seed or version of the suite than the first, or a
            case that the first has not; if a subject is in two.
    """
    first, *rest = documents
    cases = {case.id: case for case in first.cases}
    for other in rest:
        if any(other.suite.get(name) != first.suite.get(name) for name in ("seed", "version")):
            raise _unlike("they are not of the same seed and version of the suite")
        if any(cases.get(case.id) != case for case in other.cases):
            raise _unlike("one has cases that the first has not")
    subjects = [subject for document in documents for subject in document.subjects]
    names = [subject.name for subject in subjects]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise _unlike(f"{twice} is in two of them")
    places = {name: place for place, name in enumerate(cases)}
    results = sorted(
        (result for document in documents for result in document.results),
        key=lambda result: (places[result.case], names.index(result.subject)),
    )
    return replace(first, subjects=tuple(subjects), results=tuple(results))


def _unlike(why: str) -> SplitError:
    return SplitError(
        USAGE,
        f"the runs can't be put together: {why}",
        "run all with the same version of tensorsplit and --seed, and give the run of most cases"
        " first",
        parameter="from",
    )
