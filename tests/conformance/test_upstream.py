"""The reports in docs/upstream: each reproduction is run, and shows what the report says."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "docs" / "upstream"
REPORTS = sorted(path for path in FOLDER.glob("*.md") if path.name != "README.md")
PACKAGES = {"onnx": "onnx", "onnxruntime": "onnxruntime", "OpenVINO": "openvino", "mnn": "mnn"}


def block(text: str, kind: str) -> str:
    """The one code block of a kind."""
    (found,) = re.findall(rf"```{kind}\n(.*?)```", text, re.DOTALL)
    return str(found)


def test_there_is_a_list_of_all_reports() -> None:
    listed = re.findall(r"\]\(([a-z0-9-]+\.md)\)", (FOLDER / "README.md").read_text("utf-8"))
    assert sorted(listed) == [path.name for path in REPORTS]
    assert len(REPORTS) > 4


@pytest.mark.engine
@pytest.mark.parametrize("path", REPORTS, ids=lambda path: path.stem)
def test_a_report_shows_what_it_says(path: Path, tmp_path: Path) -> None:
    text = path.read_text("utf-8")
    engine, version = re.findall(r"Measured on (\w+) ([\d.]+),", text)[0]
    try:
        installed = metadata.version(PACKAGES[engine])
    except metadata.PackageNotFoundError:
        pytest.skip(f"{engine} is not installed")
    if installed.split("-")[0] != version:
        pytest.skip(f"it is about {engine} {version}")
    for other in re.findall(r"with (\w+) [\d.]+,", text):
        pytest.importorskip(other)
    done = subprocess.run(
        [sys.executable, "-c", block(text, "py")],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        timeout=120,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, block(text, "text"))
    assert block(text, "py").count("\n") <= 24
    assert re.search(r"^> .+\.", text, re.MULTILINE)
