"""Run the code blocks of the documentation: Python as it stands, console sessions line by line."""

import difflib
import os
import subprocess
import sys
from pathlib import Path

import pytest
from sybil import Example, Sybil
from sybil.parsers.markdown import CodeBlockParser, PythonCodeBlockParser

ROOT = Path(__file__).parent


def run_console(example: Example) -> str | None:
    """Run the lines that start with ``$`` and compare what they print with the lines between."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    environment = {**os.environ, "PATH": path, "COLUMNS": "100", "NO_COLOR": "1"}
    folder = example.namespace["folder"]
    sessions = ("\n" + example.parsed).split("\n$ ")[1:]
    for session in sessions:
        command, _, expected = session.partition("\n")
        done = subprocess.run(
            ["bash", "-c", command],
            cwd=folder,
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


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A scratch folder in which the examples of the project can be seen."""
    scratch = tmp_path_factory.mktemp("docs")
    (scratch / "examples").symlink_to(ROOT / "examples")
    return scratch


pytest_collect_file = Sybil(
    parsers=[PythonCodeBlockParser(), CodeBlockParser("console", run_console)],
    patterns=["*.md"],
    fixtures=["folder"],
).pytest()
