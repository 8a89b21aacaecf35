"""What tests of arrays share."""

from __future__ import annotations

from typing import Any

import pytest

from tensorsplit.arrays import eager as api


@pytest.fixture
def decided(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The plans that were made."""
    made: list[Any] = []
    plan_of = api._Memo.plan_of

    def count(memo: Any, *arguments: Any) -> Any:
        made.append(plan_of(memo, *arguments))
        return made[-1]

    monkeypatch.setattr(api._Memo, "plan_of", count)
    return made
