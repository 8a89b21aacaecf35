"""The command line; `main` is the group of its commands."""

from __future__ import annotations

from tensorsplit.cli.app import main

__all__ = ["main"]
