"""The command ``tensorsplit``, which is also ``python -m tensorsplit``."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line; where its libraries are not installed, say how to install them."""
    try:
        from tensorsplit.cli import main as command_line
    except ImportError as error:
        from tensorsplit.core.extras import import_refusal

        refusal = import_refusal(error, "cli")
        if refusal is None:
            raise
        sys.exit(_refuse(refusal))
    command_line()


def _refuse(refusal: Exception) -> int:
    """Write why nothing runs, in one line; returns the exit status."""
    sys.stderr.write(f"tensorsplit: error: {refusal}\n")
    return 2


if __name__ == "__main__":
    main()
