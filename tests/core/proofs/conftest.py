"""Rules that take `Whole` for the numbers that they know."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pytest

from tensorsplit.core import arithmetic, emit, plan, resolve, rules
from tensorsplit.core.errors import SplitError
from tests.core.proofs.numbers import Path, Whole

_KNOWN = frozenset({int, Whole})


@pytest.fixture
def whole_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the rules treat `Whole` as they treat ``int``; a message shows an example of each."""

    def is_known(dim: Any) -> bool:
        return type(dim) in _KNOWN

    def are_known(dims: Iterable[Any]) -> bool:
        return _KNOWN.issuperset(map(type, dims))

    def explain(condition: Any, refusal: Callable[..., SplitError], *seen: Any) -> None:
        explained(condition, lambda: refusal(*map(Path.current.example, seen)))

    explained = arithmetic.explain
    replaced = {"is_known": is_known, "are_known": are_known, "explain": explain}
    for module in (arithmetic, emit, plan, resolve, rules):
        for name, function in replaced.items():
            if hasattr(module, name):
                monkeypatch.setattr(module, name, function)
