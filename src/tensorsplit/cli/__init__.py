"""The command line; `main` is the group of its commands."""

from __future__ import annotations

from tensorsplit.cli.stopping import leave_at_once, restore

_before = leave_at_once()  # Ctrl-C while the rest is loaded is not a traceback
try:
    from tensorsplit.cli.app import main
finally:
    restore(_before)

__all__ = ["main"]
