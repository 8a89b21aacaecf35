"""``python -m tensorsplit.pages docs/operators`` writes the pages of every operator version."""

from __future__ import annotations

import sys
from pathlib import Path

from tensorsplit.pages import render_all


def main(folder: str) -> None:
    """Write one Markdown file for each operator version, and the index, into a folder."""
    target = Path(folder)
    target.mkdir(parents=True, exist_ok=True)
    for name, text in render_all().items():
        (target / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python -m tensorsplit.pages FOLDER")
    main(sys.argv[1])
