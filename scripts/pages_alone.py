"""Run pages of the documentation as a reader does: `python scripts/pages_alone.py WHEEL`.

A page names its extras: "To run this page: `pip install '.[cli]'`". For each set of extras a fresh
environment gets the wheel with these and nothing else, and each page that names it is run there,
alone, in an empty folder: Python as it stands, console sessions line by line. Pages that need an
engine, PyTorch or other large libraries are left to `pytest docs`. uv is used where it is there.
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
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
SMALL = {"", "models", "cli", "files", "report"}
"""The extras that take seconds to install."""

PLAIN = {"COLUMNS": "100", "NO_COLOR": "1", "TENSORSPLIT_LANG": "en"}

_EXTRAS = re.compile(r"To run this page:\s+`pip\s+install\s+'?\.(?:\[([a-z,]+)\]')?`")
_BLOCK = re.compile(r"^```(python|console)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


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


def run_page(page: Path) -> None:
    """Run the blocks of a page in this process, in their order; ends it where one fails."""
    sys.path.insert(0, "")
    names: dict[str, Any] = {"__name__": "__main__"}
    blocks = list(_BLOCK.finditer(page.read_text(encoding="utf-8")))
    if not blocks:
        sys.exit("it has no blocks")
    for block in blocks:
        if block[1] == "python":
            exec(compile(block[2], page.name, "exec"), names)  # noqa: S102 - that is the purpose
        elif problem := differences(block[2]):
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


def failures(wheel: str) -> Iterator[str]:
    """Yield each page that fails, with what it wrote; print each page that is run."""
    for extras, paths in pages().items():
        with tempfile.TemporaryDirectory(prefix="extras-") as folder:
            whole = f"{wheel}[{extras}]" if extras else wheel
            python = make_environment(Path(folder), whole)
            for page in paths:
                print(f"[{extras}] {page.relative_to(ROOT)}", flush=True)
                with tempfile.TemporaryDirectory(prefix="page-") as empty:
                    done = subprocess.run(
                        [python, "-I", __file__, "--page", page],
                        cwd=empty,
                        env={**os.environ, **PLAIN},
                        stdout=subprocess.PIPE,
                        stderr=subprocess.STDOUT,
                        text=True,
                        check=False,
                    )
                if done.returncode:
                    yield f"{page.relative_to(ROOT)}:\n{done.stdout}"


if __name__ == "__main__":
    if sys.argv[1] == "--page":
        run_page(Path(sys.argv[2]))
    else:
        sys.exit("\n".join(failures(sys.argv[1])) or 0)
