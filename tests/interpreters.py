"""Programs in interpreters of their own."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

ROOT = Path(__file__).parents[1]


def python(
    program: str, *arguments: object, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run a program, which can import the tests; the environment is added to that of this one."""
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program), *map(str, arguments)],
        cwd=ROOT,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def printed(program: str, *arguments: object, **environment: str) -> str:
    """What a program prints that has to end well."""
    done = python(program, *arguments, **environment)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout
