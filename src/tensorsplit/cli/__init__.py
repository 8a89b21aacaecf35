"""The command line: ``tensorsplit run``, ``explain``, ``ops`` and ``diff``."""

from __future__ import annotations

from tensorsplit.cli.app import main

__all__ = ["main"]
