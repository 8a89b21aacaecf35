"""Marks of single cases of a test."""

from __future__ import annotations

from collections.abc import Sequence

import pytest


def thorough(values: Sequence[object]) -> object:
    """Mark a case of a test as one of many, which the usual test command leaves to CI."""
    return pytest.param(*values, marks=pytest.mark.thorough)
