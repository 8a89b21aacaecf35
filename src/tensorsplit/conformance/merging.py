"""One document from several: engines that can't be installed together are run one by one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tensorsplit.conformance.document import Document
from tensorsplit.errors import SplitError
from tensorsplit.kinds import USAGE


def merged(documents: Sequence[Document]) -> Document:
    """The document of several runs of the same cases with different subjects.

    Args:
        documents: The runs, at least one; what is said of when and where is that of the first.

    Raises:
        SplitError: TS703 if they are not of the same cases and seed, or a subject is in two.
    """
    first, *rest = documents
    for other in rest:
        if (other.cases, other.suite) != (first.cases, first.suite):
            raise _unlike("they are not of the same cases, seed and version of the suite")
    subjects = [subject for document in documents for subject in document.subjects]
    names = [subject.name for subject in subjects]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise _unlike(f"{twice} is in two of them")
    places = {case.id: place for place, case in enumerate(first.cases)}
    results = sorted(
        (result for document in documents for result in document.results),
        key=lambda result: (places[result.case], names.index(result.subject)),
    )
    return replace(first, subjects=tuple(subjects), results=tuple(results))


def _unlike(why: str) -> SplitError:
    return SplitError(
        USAGE,
        f"the runs can't be put together: {why}",
        "run all with the same version of tensorsplit, the same --case and --seed",
        parameter="from",
    )
