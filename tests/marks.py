"""Marks of tests and of single cases."""

from __future__ import annotations

from collections.abc import Sequence

import pytest


def thorough(values: Sequence[object]) -> object:
    """Mark a case of a test as one of many, which the usual test command leaves to CI."""
    return pytest.param(*values, marks=pytest.mark.thorough)


def also_run_by(*engines: str) -> pytest.MarkDecorator:
    """Repeat a test of what is said of a model where engines are installed: with `runs` True."""
    runs = pytest.param(True, marks=pytest.mark.engine(*engines))
    return pytest.mark.parametrize("runs", [False, runs])
