"""scripts/setup.sh builds and installs only where a source, a package or the extras changed.

Stand-ins for uv and pip note what they are asked for; nothing is built, and no network is used.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCES = ("CMakeLists.txt", "pyproject.toml", "README.md", "LICENSE", "src/a.py", "examples/b.py")
ASKED = "pip install .[dev]\n"

Checkout = Callable[..., subprocess.CompletedProcess[str]]


def stand_in(path: Path, status: int = 0) -> None:
    """Write a program that notes its last argument for `pip install`, and ends with a status."""
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = (
        "#!/bin/sh",
        'for last in "$@"; do :; done',
        'case "$*" in *install*) echo "pip install $last" >>asked ;; esac',
        f"exit {status}",
    )
    path.write_text("\n".join(lines) + "\n")
    path.chmod(0o755)


@pytest.fixture(params=["uv", "pip"])
def setup(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Checkout:
    """Return a function that sources the script in a checkout, where uv works or not."""
    for source in SOURCES:
        (tmp_path / source).parent.mkdir(exist_ok=True)
        (tmp_path / source).write_text("content\n")
    (tmp_path / "scripts").mkdir()
    shutil.copy(ROOT / "scripts" / "setup.sh", tmp_path / "scripts")
    (tmp_path / ".venv/lib/python3/site-packages/numpy-2.0.dist-info").mkdir(parents=True)
    stand_in(tmp_path / ".venv/bin/pip")
    stand_in(tmp_path / ".venv/bin/python")
    stand_in(tmp_path / "bin/uv", status=0 if request.param == "uv" else 1)
    monkeypatch.chdir(tmp_path)

    def run(extras: str = "[dev]") -> subprocess.CompletedProcess[str]:
        Path("asked").unlink(missing_ok=True)
        path = os.pathsep.join([str(tmp_path / "bin"), os.environ["PATH"]])
        return subprocess.run(
            ["sh", "-euc", f"EXTRAS='{extras}'; . scripts/setup.sh"],
            env={**os.environ, "PATH": path},
            capture_output=True,
            text=True,
            check=False,
        )

    return run


def asked() -> str:
    """Return what was asked for, each once: pip is asked where uv fails."""
    lines = Path("asked").read_text().splitlines(True) if Path("asked").exists() else []
    return "".join(dict.fromkeys(lines))


def test_nothing_is_built_when_nothing_changed(setup: Checkout) -> None:
    first = setup()
    assert (first.returncode, asked()) == (0, ASKED)
    assert "tensorsplit[dev] built and installed" in first.stderr
    second = setup()
    assert (second.returncode, asked()) == (0, "")
    assert second.stderr == "tensorsplit[dev] is installed already\n"


@pytest.mark.parametrize("source", SOURCES)
def test_a_source_that_changes_is_built(source: str, setup: Checkout) -> None:
    setup()
    Path(source).write_text("changed\n")
    setup()
    assert asked() == ASKED
    setup()
    assert asked() == ""


def change_time() -> None:
    os.utime("src/a.py", (0, 0))


def compile_source() -> None:
    Path("src/a.pyc").write_text("compiled")
    Path("src/kernel.so").write_text("compiled")


@pytest.mark.parametrize("change", [change_time, compile_source])
def test_what_is_no_change_of_a_source_builds_nothing(
    change: Callable[[], None], setup: Checkout
) -> None:
    setup()
    change()
    setup()
    assert asked() == ""


def add_source() -> None:
    Path("src/c.py").write_text("new\n")


def remove_source() -> None:
    Path("src/a.py").unlink()


def update_package() -> None:
    folder = Path(".venv/lib/python3/site-packages")
    (folder / "numpy-2.0.dist-info").rename(folder / "numpy-2.1.dist-info")


def remove_package() -> None:
    Path(".venv/lib/python3/site-packages/numpy-2.0.dist-info").rmdir()


@pytest.mark.parametrize("change", [add_source, remove_source, update_package, remove_package])
def test_a_source_or_package_that_comes_or_goes_is_a_change(
    change: Callable[[], None], setup: Checkout
) -> None:
    setup()
    change()
    setup()
    assert asked() == ASKED


def test_each_set_of_extras_is_installed_once(setup: Checkout) -> None:
    setup()
    setup("[docs]")
    assert asked() == "pip install .[docs]\n"
    for extras in ("[dev]", "[docs]"):
        setup(extras)
        assert asked() == ""
    Path("src/a.py").write_text("changed\n")
    setup("[docs]")
    setup("[dev]")
    assert asked() == ASKED, "what was installed of the old source does not count"


def test_an_installation_that_fails_is_made_again(setup: Checkout) -> None:
    setup()
    Path("src/a.py").write_text("changed\n")
    for name in ("bin/uv", ".venv/bin/pip"):
        stand_in(Path(name), status=1)
    assert setup().returncode != 0
    stand_in(Path(".venv/bin/pip"))
    assert (setup().returncode, asked()) == (0, ASKED)


def test_an_installation_that_failed_is_not_trusted_for_the_source_before(setup: Checkout) -> None:
    setup()
    Path("src/a.py").write_text("changed\n")
    for name in ("bin/uv", ".venv/bin/pip"):
        stand_in(Path(name), status=1)
    setup()
    Path("src/a.py").write_text("content\n")
    stand_in(Path(".venv/bin/pip"))
    assert (setup().returncode, asked()) == (0, ASKED)
