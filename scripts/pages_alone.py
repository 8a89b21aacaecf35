"""Run pages of the built site as a reader does: `python scripts/pages_alone.py WHEEL SITE`.

A page names its extras: "To run this page: `pip install '.[cli]'`". For each set of extras a fresh
environment gets the wheel with these and nothing else, and each page that names it is run there,
alone, in an empty folder, at 80 columns. What runs is the text of its code blocks in the HTML, as
its copy button takes it: Python as it stands, of console sessions each line after a prompt. Pages
that need an engine, PyTorch or other large libraries are left to `pytest docs`. uv is used where it
is there. SITE is what `sh scripts/docs.sh` builds, `build/site`.
"""

from __future__ import annotations

import difflib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
SMALL = {"", "models", "cli", "files", "report"}
"""The extras that take seconds to install."""

PLAIN = {"COLUMNS": "80", "NO_COLOR": "1", "TENSORSPLIT_LANG": "en"}

_EXTRAS = re.compile(r"To run this page:\s+`pip\s+install\s+'?\.(?:\[([a-z,]+)\]')?`")
_BLOCK = re.compile(r"^```(python|console)$", re.MULTILINE)
_RUN = ("python", "console")
_HIGHLIGHT = "highlight-"


class _CodeBlocks(HTMLParser):
    """Reads the code blocks of a page: of each the language and the text, without any markup."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, str]] = []
        self._language = ""
        self._text: list[str] | None = None

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note the language, which the element around a block has as a class."""
        classes = (dict(attrs).get("class") or "").split()
        if tag == "div":
            named = (name for name in classes if name.startswith(_HIGHLIGHT))
            self._language = next(named, self._language).removeprefix(_HIGHLIGHT)
        elif tag == "pre":
            self._text = []

    def handle_data(self, data: str) -> None:
        """Add to the text of the block."""
        if self._text is not None:
            self._text.append(data)

    def handle_endtag(self, tag: str) -> None:
        """End a block."""
        if tag == "pre" and self._text is not None:
            self.found.append((self._language, "".join(self._text)))
            self._text = None


def blocks_of(page: Path) -> list[tuple[str, str]]:
    """Return the blocks of a page of the site that are run: of each the language and the text."""
    reader = _CodeBlocks()
    reader.feed(page.read_text(encoding="utf-8"))
    reader.close()
    return [(language, text) for language, text in reader.found if language in _RUN]


def pages() -> dict[str, list[Path]]:
    """Return the pages that are run, by the extras that they name."""
    found: dict[str, list[Path]] = {}
    for path in sorted((ROOT / "docs").rglob("*.md")):
        named = _EXTRAS.search(path.read_text(encoding="utf-8"))
        if named and SMALL.issuperset((named[1] or "").split(",")):
            found.setdefault(named[1] or "", []).append(path)
    return found


def differences(console: str) -> str | None:
    """Run the lines that start with ``$``; return how what they print differs from the lines after.

    None if nothing does.
    """
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    for session in ("\n" + console).split("\n$ ")[1:]:
        command, _, expected = session.partition("\n")
        done = subprocess.run(
            ["bash", "-c", command],
            env={**os.environ, "PATH": path, **PLAIN},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=300,
            check=False,
        )
        seen = [line.rstrip() for line in done.stdout.rstrip().splitlines()]
        wanted = [line.rstrip() for line in expected.rstrip().splitlines()]
        if seen != wanted:
            return f"$ {command}\n" + "\n".join(difflib.unified_diff(wanted, seen, lineterm=""))
    return None


def run_page(source: Path, page: Path) -> None:
    """Run the blocks of a page in this process, in their order; ends it where one fails.

    The site must have as many as the source of the page.
    """
    blocks = blocks_of(page)
    written = _BLOCK.findall(source.read_text(encoding="utf-8"))
    if not written or [language for language, _ in blocks] != written:
        sys.exit(f"it has the blocks {written}, and on the site {[each for each, _ in blocks]}")
    sys.path.insert(0, "")
    names: dict[str, Any] = {"__name__": "__main__"}
    for language, text in blocks:
        if language == "python":
            exec(compile(text, page.name, "exec"), names)  # noqa: S102 - that is the purpose
        elif problem := differences(text):
            sys.exit(problem)


def make_environment(folder: Path, wheel: str) -> Path:
    """Make an environment with a wheel and the extras in its brackets; return its Python."""
    python = folder / "bin" / "python"
    if uv := shutil.which("uv"):
        commands = [
            [uv, "venv", "--quiet", "--python", sys.executable, str(folder)],
            [uv, "pip", "install", "--quiet", "--python", str(python), wheel],
        ]
    else:
        pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        commands = [[sys.executable, "-m", "venv", str(folder)], [str(python), *pip, wheel]]
    for command in commands:
        subprocess.run(command, check=True)
    return python


def failures(wheel: str, site: Path) -> Iterator[str]:
    """Yield each page that fails, with what it wrote; print each page that is run."""
    for extras, paths in pages().items():
        with tempfile.TemporaryDirectory(prefix="extras-") as folder:
            whole = f"{wheel}[{extras}]" if extras else wheel
            python = make_environment(Path(folder), whole)
            for source in paths:
                page = site / source.relative_to(ROOT / "docs").with_suffix(".html")
                print(f"[{extras}] {page}", flush=True)
                with tempfile.TemporaryDirectory(prefix="page-") as empty:
                    done = subprocess.run(
                        [python, "-I", __file__, "--page", source, page],
                        cwd=empty,
                        env={**os.environ, **PLAIN},
                        stdout=subprocess.PIPE,
                        stderr=subprocess.STDOUT,
                        text=True,
                        check=False,
                    )
                if done.returncode:
                    yield f"{page}:\n{done.stdout}"


if __name__ == "__main__":
    if sys.argv[1] == "--page":
        run_page(Path(sys.argv[2]), Path(sys.argv[3]))
    else:
        sys.exit("\n".join(failures(sys.argv[1], Path(sys.argv[2]).absolute())) or 0)
