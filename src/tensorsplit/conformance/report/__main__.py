"""``python -m tensorsplit.conformance.report RUN FOLDER`` writes ``conformance.md``."""

from __future__ import annotations

import sys
from pathlib import Path

from tensorsplit.conformance.document import read
from tensorsplit.conformance.known import compare, load
from tensorsplit.conformance.report.rendering import markdown
from tensorsplit.core.outputs import Outputs


def main(run: str, folder: str) -> None:
    """Write the page of a run, which ``tensorsplit conformance --format json`` wrote."""
    known = load()
    outputs = Outputs([Path(folder) / "conformance.md"], reads=[Path(run)])
    outputs.check()
    document = compare(read(Path(run)), known).document
    outputs.write({outputs.files[0]: markdown(document, known)})


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("usage: python -m tensorsplit.conformance.report RUN FOLDER")
    main(sys.argv[1], sys.argv[2])
