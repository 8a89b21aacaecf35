"""``python -m tensorsplit.pages docs`` writes the pages of the errors and the operators."""

from __future__ import annotations

import sys
from pathlib import Path

from tensorsplit.pages.markdown import errors_page, render_all


def main(folder: str) -> None:
    """Write ``errors.md``, and in ``operators`` a page for each version and their index."""
    target = Path(folder)
    (target / "operators").mkdir(parents=True, exist_ok=True)
    (target / "errors.md").write_text(errors_page(), encoding="utf-8")
    for name, text in render_all().items():
        (target / "operators" / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python -m tensorsplit.pages FOLDER")
    main(sys.argv[1])
