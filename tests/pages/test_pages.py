"""The operator pages say what the records say, and are up to date on disk."""

from __future__ import annotations

import ast
import os
import re
import runpy
import subprocess
import sys
from math import ceil
from pathlib import Path

import numpy as np
import onnx
import pytest

import tensorsplit as ts
from tensorsplit.cli.app import COMMANDS
from tensorsplit.core.extras import install_command
from tensorsplit.core.rules import LengthRule, chunk, equal, explicit, ones, remainder
from tensorsplit.core.rules import ceil as ceil_parts
from tensorsplit.model.check.checks import REPORTED
from tensorsplit.pages.codes import CodeExample, code_examples
from tensorsplit.pages.content import FORMULAS

DOCS = Path(__file__).parents[2] / "docs"
SCRIPT = runpy.run_path(str(DOCS.with_name("scripts") / "pages.py"))


def test_the_files_on_disk_are_what_is_generated() -> None:
    folder = DOCS / "operators"
    on_disk = {path.name: path.read_text(encoding="utf-8") for path in folder.iterdir()}
    assert on_disk == SCRIPT["operator_pages"](), "run python scripts/pages.py docs"


def test_the_page_of_dialects_on_disk_is_what_is_generated() -> None:
    assert (DOCS / SCRIPT["DIALECTS"]).read_text("utf-8") == SCRIPT["dialects_page"](), (
        "run python scripts/pages.py docs"
    )


def test_the_pictures_on_disk_are_what_is_drawn() -> None:
    on_disk = {path.name: path.read_text("utf-8") for path in (DOCS / "pictures").iterdir()}
    assert on_disk == SCRIPT["pictures"](), "run python scripts/pages.py docs"


def test_the_command_writes_them(tmp_path: Path) -> None:
    command = [sys.executable, "scripts/pages.py", str(tmp_path / "new")]
    subprocess.run(command, check=True, cwd=Path(__file__).parents[2])
    assert {path.name for path in (tmp_path / "new" / "operators").iterdir()} == set(
        SCRIPT["operator_pages"]()
    )


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_has_a_page_and_a_line_in_the_list_of_commands(command: str) -> None:
    module, does = COMMANDS[command]
    page = (DOCS / "command-line" / f"{command}.md").read_text(encoding="utf-8")
    assert page.startswith(f"# tensorsplit {command}\n")
    assert f".. click:: tensorsplit.cli.{module}:{command}\n" in page
    contents = (DOCS / "command-line" / "README.md").read_text(encoding="utf-8")
    assert f"\n| [`{command}`]({command}.md) | {does} |\n" in contents
    reference = (DOCS / "reference.md").read_text(encoding="utf-8")
    assert f"\ncommand-line/{command}\n" in reference


def triggered(example: CodeExample) -> dict[str, str]:
    """Return the codes that an example triggers, with their messages; its last line is a call."""
    if example.language == "sh":
        path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
        command = ["bash", "-c", example.call]
        done = subprocess.run(
            command, env={**os.environ, "PATH": path}, capture_output=True, text=True, check=False
        )
        message = re.sub(r"^.*?(?=\[TS)", "", done.stderr.splitlines()[-1])
        return {message[1:6]: message}
    lines = ast.parse(example.call)
    call = lines.body.pop()
    assert isinstance(call, ast.Expr)
    names = {"np": np, "ts": ts, "onnx": onnx}
    exec(compile(lines, "example", "exec"), names)
    try:
        findings = eval(compile(ast.Expression(call.value), "example", "eval"), names)
    except ts.SplitError as error:
        return {error.code: str(error)}
    return {finding.code: str(finding) for finding in findings}


@pytest.mark.filterwarnings("ignore::tensorsplit.SplitWarning")
@pytest.mark.parametrize("code", code_examples())
def test_the_example_of_a_code_triggers_it(
    code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    example = code_examples()[code]
    for library, sign in (("safetensors", "safetensors"), ("zarr", "zarr"), ("dask", "workers=")):
        if sign in example.call:
            pytest.importorskip(library)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TENSORSPLIT_ENGINE_TIMEOUT", "600")  # put back, where an example sets it
    message = triggered(example)[code].replace(f"{tmp_path}/", "")
    draft = f".tensorsplit-{'0123456789abcdef' * 2}.part"
    message = re.sub(r"(?<=')[^']*\.tensorsplit-\w+\.part", draft, message)
    home = "pip install '/home/me/tensorsplit[report]'"
    assert message.replace(install_command("report"), home) == example.message


def test_every_code_has_an_example() -> None:
    assert list(code_examples()) == list(REPORTED)


@pytest.mark.parametrize(
    ("rule", "d", "given", "sizes"),
    [
        (ceil_parts, 7, None, (3, 3, 1)),
        (explicit, 7, [2, 0, 5], (2, 0, 5)),
        (equal, 6, None, (2, 2, 2)),
        (chunk, 7, 3, (3, 3, 1)),
        (ones, 3, None, (1, 1, 1)),
        (remainder, 7, [2, -1, 1], (2, 4, 1)),
    ],
)
def test_formulas_say_the_lengths_of_the_parts(
    rule: LengthRule, d: int, given: object, sizes: tuple[int, ...]
) -> None:
    known = {"d": d, "n": len(sizes), "s": given, "ceil": ceil, "min": min, "sum": sum}
    code = compile(FORMULAS[rule], "formula", "eval")
    assert tuple(eval(code, {**known, "i": i}) for i in range(len(sizes))) == sizes
