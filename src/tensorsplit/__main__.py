"""``python -m tensorsplit``: the command line."""

from __future__ import annotations

from tensorsplit.cli import main

main()
