"""Writes the generated pages of the documentation; `python scripts/pages.py --help`."""

from __future__ import annotations

import argparse
from pathlib import Path

from tensorsplit.conformance.document import read
from tensorsplit.conformance.known import compare, load
from tensorsplit.conformance.report.rendering import markdown
from tensorsplit.pages.codes import codes_page
from tensorsplit.pages.dialects_page import DIALECTS, dialects_page
from tensorsplit.pages.markdown import render_all
from tensorsplit.pages.page_pictures import pictures
from tensorsplit.storage.outputs import Outputs


def write_pages(folder: Path) -> None:
    """Write the pages of codes and dialects, the folders ``operators`` and ``pictures``."""
    pages = {folder / "operators" / name: text for name, text in render_all().items()}
    pages |= {folder / "pictures" / name: text for name, text in pictures().items()}
    Outputs(create_dirs=True, overwrite=True).write(
        {folder / "errors.md": codes_page(), folder / DIALECTS: dialects_page(), **pages}
    )


def write_results(run: Path, folder: Path) -> None:
    """Write ``conformance.md``, the page of a run that ``conformance --format json`` wrote."""
    known = load()
    outputs = Outputs([folder / "conformance.md"], reads=[run], overwrite=True)
    outputs.check()
    document = compare(read(run), known).document
    outputs.write({outputs.files[0]: markdown(document, known)})


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Write the generated pages.")
    parser.add_argument("folder", type=Path, help="where the pages go, such as docs")
    parser.add_argument("--run", type=Path, help="write the page of this conformance run instead")
    given = parser.parse_args()
    if given.run is None:
        write_pages(given.folder)
    else:
        write_results(given.run, given.folder)
