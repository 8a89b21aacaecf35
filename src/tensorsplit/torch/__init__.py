"""Layers of PyTorch: a split, and its inverse. Each name is loaded when you first use it."""

from __future__ import annotations

from sys import modules
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tensorsplit.torch.modules import Join, Split

__all__ = ["Join", "Split"]


if not TYPE_CHECKING:  # else a checker would take any name for one of the module

    def __getattr__(name: str) -> object:
        if name not in __all__:
            problem = f"module {__name__!r} has no attribute {name!r}"
            raise AttributeError(problem, name=name, obj=modules[__name__])  # so Python suggests
        from importlib import import_module

        try:
            found = getattr(import_module(f"{__name__}.modules"), name)
        except ImportError as error:
            from tensorsplit.core.extras import import_refusal, stand_in

            refusal = import_refusal(error)
            if refusal is None:
                raise
            return stand_in(name, refusal)  # not kept: torch may be installed meanwhile
        globals()[name] = found
        return found


def __dir__() -> list[str]:
    return [*__all__]
