"""What an adapter is: it brings one operator over one boundary between two of its versions."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from tensorsplit.models.convert.change import Change, Site
from tensorsplit.models.convert.schemas import Step

Adapter: TypeAlias = Callable[[Site, Step, Change], None]
"""Rewrites a node in the words of the opset that a step reaches, or refuses (TS512)."""

Adapters: TypeAlias = dict[tuple[str, int, bool], Adapter]
"""Adapters by operator, the opset that has the newer version, and whether they go up."""


def both(op_type: str, boundary: int, up: Adapter, down: Adapter) -> Adapters:
    """The entries of an operator that has an adapter in both directions."""
    return {(op_type, boundary, True): up, (op_type, boundary, False): down}
