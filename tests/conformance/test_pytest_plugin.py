"""The suite as tests of pytest, in the CI of who writes an engine."""

from __future__ import annotations

from collections.abc import Callable
from importlib import metadata
from typing import TypeAlias

import pytest

from tensorsplit.conformance import cases, pytest_plugin, runner

LOADED = (cases, runner)  # onnx is imported once: pytester forgets what is imported later

pytest_plugins = ["pytester"]

Run: TypeAlias = Callable[..., pytest.RunResult]

CASES = "onnx.Split-18/float/static-r1/*/graph/stated-*"
FINE, ABORTS, HANGS, WRONG = (
    "onnx.Split-18/float/static-r1/attribute/graph/stated-count-1of5-axism1-o19",
    "onnx.Split-18/float/static-r1/attribute/graph/stated-count-4of4-axism1-o19",
    "onnx.Split-18/float/static-r1/initializer/graph/stated-lengths-1.1.1.1of4-axis0-o21",
    "onnx.Split-18/float/static-r1/initializer/graph/stated-lengths-3.3of6-axis0-o18",
)
ADAPTER = """
import os, time

KIND, PACKAGES, FORMATS = "engine", ("numpy",), ("onnx",)

def run(model, weights, inputs, outputs):
    x = inputs["x"]
    if x.size == 4 and b"num_outputs" in model:
        os.abort()
    if x.size == 4:
        time.sleep(60)
    return {name: x[:3] for name in outputs} if x.size == 6 else dict.fromkeys(outputs, x)
"""


@pytest.fixture
def run(pytester: pytest.Pytester) -> Run:
    pytester.makepyfile(my_adapter=ADAPTER)

    def run(*options: str) -> pytest.RunResult:
        return pytester.runpytest_inprocess(
            *("-p", pytest_plugin.__name__, "-p", "no:cacheprovider", "-v", "-rx"),
            *("--pyargs", "tensorsplit.conformance", *options),
        )

    return run


def entry(pytester: pytest.Pytester, *lines: str) -> str:
    return str(pytester.makefile(".txt", expected="\n".join(["# of our engine", "", *lines])))


def words(result: pytest.RunResult) -> str:
    return result.stderr.str()


def test_each_case_is_a_test_and_a_crash_or_a_hang_fails_that_one(run: Run) -> None:
    result = run("--engine", "my_adapter.py", "--case", CASES, "--case-timeout", "0.5")
    result.assert_outcomes(passed=1, failed=3)
    result.stdout.fnmatch_lines([f"engine: my_adapter (numpy {metadata.version('numpy')})"])
    lines = [f"*::{FINE} PASSED*", f"*::{ABORTS} FAILED*", f"*::{HANGS} FAILED*"]
    result.stdout.fnmatch_lines([*lines, f"*::{WRONG} FAILED*"])
    result.stdout.fnmatch_lines(
        [
            "crash: the process was ended by SIGABRT*",
            "hang: it gave no answer within 0.5 s*",
            "wrong: output y1: *",
            "The standard: ONNX Split-18: *",
            f"Reproduce: tensorsplit conformance --engine my_adapter.py --repro {WRONG}",
        ]
    )


def test_an_expected_failure_that_passes_fails(run: Run, pytester: pytest.Pytester) -> None:
    expected = entry(pytester, f"{WRONG}  # twice the first", "onnx.Split-18/*/stated-count-1of5-*")
    result = run(
        "--engine",
        "my_adapter.py",
        "--expected-failures",
        expected,
        "--case",
        CASES,
        "-k",
        "1of5 or 3.3of6",
    )
    result.assert_outcomes(xfailed=1, failed=1)
    result.stdout.fnmatch_lines([f"*::{FINE} FAILED*", f"*::{WRONG} XFAIL*"])
    result.stdout.fnmatch_lines(["[[]XPASS(strict)[]]*", f"XFAIL *::{WRONG} - twice the first"])


def test_an_expected_failure_that_matches_no_case_fails(
    run: Run, pytester: pytest.Pytester
) -> None:
    expected = entry(pytester, "onnx.Split-18/float/no-such-*  # why", "openvino.*", WRONG)
    result = run("--engine", "my_adapter.py", "--expected-failures", expected, "--case", CASES)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert f"{expected}:3: onnx.Split-18/float/no-such-* matches no case" in words(result)
    assert f"{expected}:4: openvino.* matches no case" in words(result)  # it reads no IR
    assert f"{expected}:5" not in words(result)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([], "takes --engine"),
        (["--engine", "no-such-engine"], "TS601"),
        (["--engine", "my_adapter.py", "--expected-failures", "missing.txt"], "cannot read"),
        (["--engine", "my_adapter.py", "--case", "no-such-*"], "matches no case"),
        (["--engine", "my_adapter.py", "--case-timeout", "0"], "more than 0"),
    ],
)
def test_wrong_usage_is_said(run: Run, options: list[str], message: str) -> None:
    result = run(*options)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert message in words(result)


def test_the_options_are_in_nobodys_way(pytester: pytest.Pytester) -> None:
    """Another project's tests have an option of the same name."""
    pytester.makeconftest("def pytest_addoption(parser): parser.addoption('--engine')")
    pytester.makepyfile("def test(pytestconfig): assert pytestconfig.getoption('--engine') == 'V8'")
    result = pytester.runpytest_inprocess("-p", pytest_plugin.__name__, "--engine", "V8")
    result.assert_outcomes(passed=1)
