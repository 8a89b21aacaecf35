"""The table of checks, and the page that explains them."""

from __future__ import annotations

import re
from pathlib import Path

from tensorsplit.core.errors import KINDS
from tensorsplit.model.check.checks import CHECKS, REPORTED, SEVERITIES

ROOT = Path(__file__).parents[3]


def test_codes_are_unique_and_in_order() -> None:
    assert list(CHECKS) == sorted(CHECKS)
    assert not set(CHECKS) & set(KINDS)
    for code, check in CHECKS.items():
        assert re.fullmatch(r"TS8\d\d", code)
        assert code == check.code
        assert check.severity in SEVERITIES


def test_refusals_and_checks_are_in_the_order_of_their_codes() -> None:
    assert list(REPORTED) == sorted({*KINDS, *CHECKS})


def test_the_page_lists_every_check_with_its_severity() -> None:
    page = (ROOT / "docs" / "check.md").read_text("utf-8")
    rows = re.findall(r"^\| (TS8\d\d) \| (\w+) \| (.+?) \|", page, re.MULTILINE)
    assert rows == [(check.code, check.severity, check.title) for check in CHECKS.values()]
    for check in CHECKS.values():
        row = next(line for line in page.splitlines() if line.startswith(f"| {check.code} "))
        for decision in check.decisions:
            assert decision in row
