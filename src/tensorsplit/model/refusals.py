"""Refusals that reading, inferring and rewriting models share."""

from __future__ import annotations

from tensorsplit.core.errors import MALFORMED_MODEL, NO_ADAPTER, SplitError, show


def malformed(
    problem: str, fix: str, path: str | None = None, *, operator: str | None = None
) -> SplitError:
    """Return the refusal of a graph that contradicts itself or the standard (TS502)."""
    return SplitError(MALFORMED_MODEL, problem, fix, node=path, operator=operator)


def own_fault(problem: str, error: Exception) -> SplitError:
    """Return the refusal of what this package can't do, though the model is right (TS512)."""
    reason = f"{type(error).__name__}: {show(str(error))}"
    return SplitError(NO_ADAPTER, f"{problem} ({reason})", "please report it, with the model")
