"""Run the code blocks of the documentation as a reader does: pasted, a page in an empty folder.

Python runs as it stands, console sessions line by line. A page gets nothing but its own blocks.
"""

import contextlib
import runpy
import tempfile
from pathlib import Path
from typing import Any

from sybil import Example, Sybil
from sybil.parsers.markdown import CodeBlockParser, PythonCodeBlockParser

differences = runpy.run_path(str(Path(__file__).with_name("scripts") / "pages_alone.py"))[
    "differences"
]
_CLEANING = "__cleaning__"  # in the namespace of a page, beside what its blocks define


def run_console(example: Example) -> str | None:
    """Run the lines that start with ``$`` and compare what they print with the lines between."""
    return differences(example.parsed)


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
