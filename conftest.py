"""Run the code blocks of the documentation as a reader does: pasted, a page in an empty folder.

Python runs as it stands, console sessions line by line. A page gets nothing but its own blocks.
"""

import contextlib
import difflib
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from sybil import Example, Sybil
from sybil.parsers.markdown import CodeBlockParser, PythonCodeBlockParser

_CLEANING = "__cleaning__"  # in the namespace of a page, beside what its blocks define


def run_console(example: Example) -> str | None:
    """Run the lines that start with ``$`` and compare what they print with the lines between."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    plain = {"COLUMNS": "100", "NO_COLOR": "1", "TENSORSPLIT_LANG": "en"}
    environment = {**os.environ, "PATH": path, **plain}
    sessions = ("\n" + example.parsed).split("\n$ ")[1:]
    for session in sessions:
        command, _, expected = session.partition("\n")
        done = subprocess.run(
            ["bash", "-c", command],
            env=environment,
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


def enter_an_empty_folder(namespace: dict[str, Any]) -> None:
    """Begin a page in a folder of its own, which is the current one until the page ends."""
    cleaning = namespace[_CLEANING] = contextlib.ExitStack()
    folder = cleaning.enter_context(tempfile.TemporaryDirectory(prefix="page-"))
    cleaning.enter_context(contextlib.chdir(folder))


def leave_the_folder(namespace: dict[str, Any]) -> None:
    """End a page: its folder goes."""
    namespace[_CLEANING].close()


pytest_collect_file = Sybil(
    parsers=[PythonCodeBlockParser(), CodeBlockParser("console", run_console)],
    patterns=["*.md"],
    setup=enter_an_empty_folder,
    teardown=leave_the_folder,
).pytest()
