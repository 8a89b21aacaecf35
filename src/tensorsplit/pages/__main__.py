"""``python -m tensorsplit.pages docs`` writes the pages of the errors and the operators."""

from __future__ import annotations

import sys
from pathlib import Path

from tensorsplit.core.outputs import Outputs
from tensorsplit.pages.codes import codes_page
from tensorsplit.pages.markdown import render_all


def main(folder: str) -> None:
    """Write ``errors.md``, and in ``operators`` a page for each version and their index."""
    target = Path(folder)
    pages = {target / "operators" / name: text for name, text in render_all().items()}
    Outputs(create_dirs=True).write({target / "errors.md": codes_page(), **pages})


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python -m tensorsplit.pages FOLDER")
    main(sys.argv[1])
