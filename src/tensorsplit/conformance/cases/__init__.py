"""All cases, a file for each group of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from functools import cache
from types import MappingProxyType

from tensorsplit.conformance.case import Case
from tensorsplit.conformance.cases import ir, onnx_fed, onnx_parts, onnx_refusals


@cache
def all_cases() -> tuple[Case, ...]:
    """Return every case, sorted by id; their models are built only on request."""
    found: dict[str, Case] = {}
    for group in (onnx_parts, onnx_refusals, onnx_fed, ir):
        for case in group.cases():
            if case.id in found:
                raise ValueError(f"two cases are called {case.id}")
            found[case.id] = case
    return tuple(found[name] for name in sorted(found))


@cache
def cases_by_id() -> Mapping[str, Case]:
    """Return every case by its id."""
    return MappingProxyType({case.id: case for case in all_cases()})


def find(patterns: Iterable[str]) -> tuple[Case, ...]:
    """Return the cases, sorted by id, whose id matches a pattern; without patterns, every case.

    They are shell patterns, in which ``*`` stands for slashes too.
    """
    wanted = tuple(patterns)
    return tuple(
        case
        for case in all_cases()
        if not wanted or any(fnmatchcase(case.id, pattern) for pattern in wanted)
    )
