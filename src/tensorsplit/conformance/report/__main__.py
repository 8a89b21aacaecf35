"""``python -m tensorsplit.conformance.report RUN FOLDER`` writes ``conformance.md``."""

from __future__ import annotations

import sys
from pathlib import Path

from tensorsplit.conformance.document import read
from tensorsplit.conformance.known import compare, load
from tensorsplit.conformance.report.rendering import markdown


def main(run: str, folder: str) -> None:
    """Write the page of a run, which ``tensorsplit conformance --format json`` wrote."""
    known = load()
    document = compare(read(Path(run)), known).document
    target = Path(folder) / "conformance.md"
    target.write_text(markdown(document, known), encoding="utf-8")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("usage: python -m tensorsplit.conformance.report RUN FOLDER")
    main(sys.argv[1], sys.argv[2])
