"""``python -m tensorsplit.conformance.report RUN.json FOLDER`` writes ``conformance.md``."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from tensorsplit.conformance.document import Document
from tensorsplit.conformance.known import load
from tensorsplit.conformance.report.markdown import markdown


def main(run: str, folder: str) -> None:
    """Write the page of a run.

    Args:
        run: The run, as ``tensorsplit conformance --format json`` wrote it.
        folder: Where ``conformance.md`` is written to.
    """
    document = Document.from_json(json.loads(Path(run).read_text(encoding="utf-8")))
    target = Path(folder) / "conformance.md"
    target.write_text(markdown(document, load()), encoding="utf-8")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("usage: python -m tensorsplit.conformance.report RUN.json FOLDER")
    main(sys.argv[1], sys.argv[2])
