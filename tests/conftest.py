"""What every test may use: seeded randomness, and stable hypothesis examples."""

from __future__ import annotations

import os
import re
import shutil
import signal
from collections import Counter
from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

from tensorsplit import native

NOT_INSTALLED = re.compile(r"could not import '([\w.]+)'|([\w.-]+) is not installed")
"""How pytest and our own tests say that a library is missing."""

os.environ["TENSORSPLIT_LANG"] = "en"  # whatever the system speaks

settings.register_profile(
    "stable",
    derandomize=True,
    deadline=None,
    max_examples=100,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("stable")

# A shell starts what it runs in the background with Ctrl-C ignored, and nohup with SIGHUP ignored,
# which the tests of these can't be.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
if hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Let a developer try other random models than CI does."""
    parser.addoption("--seed", type=int, default=0, help="the first seed of the random models")


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip a test whose mark names an engine that is not installed."""
    for mark in item.iter_markers("engine"):
        for engine in mark.args:
            if find_spec(engine) is None:
                pytest.skip(f"{engine} is not installed")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Sum up why tests were skipped: what is not installed, the most usual reason, the rest."""
    missing, others = Counter[str](), Counter[str]()
    for report in terminalreporter.stats.get("skipped", ()):
        reason = str(report.longrepr[-1] if isinstance(report.longrepr, tuple) else report.longrepr)
        found = NOT_INSTALLED.search(reason)
        if found:
            missing[found[1] or found[2]] += 1
        else:
            others[reason.removeprefix("Skipped: ")] += 1
    for reason, count in others.most_common(1):
        terminalreporter.write_line(f"skipped: {count}, {reason}")
        others.subtract({reason: count})
    if missing:
        lacks = ", ".join(f"{name} ({count})" for name, count in missing.most_common())
        terminalreporter.write_line(f"skipped: {missing.total()}, not installed: {lacks}")
    if others.total():
        reasons = len(+others)
        terminalreporter.write_line(f"skipped: {others.total()}, {reasons} other reasons; see -rs")


@pytest.fixture
def rng() -> np.random.Generator:
    """A generator whose numbers are the same in every run."""
    return np.random.default_rng(20240613)


@pytest.fixture(params=[True, False], ids=["native", "numpy"])
def either_way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Copies by the kernel, and by NumPy alone."""
    if not request.param:
        monkeypatch.setattr(native, "kernel", None)
    elif native.kernel is None:
        pytest.skip("copies go through NumPy here")


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """A Chromium without a window, if there is one on the PATH."""
    playwright = pytest.importorskip("playwright.sync_api")
    chromium = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "chrome"))), "")
    if not chromium:
        pytest.skip("there is no Chromium")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        yield browser
        browser.close()
