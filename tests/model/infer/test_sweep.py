"""Each operator at the opsets at which it changed: inferred as it runs, and run as its text says.

The sweep runs in an interpreter of its own, for onnxruntime may crash on a node.
"""

from __future__ import annotations

from random import SystemRandom

import pytest

from tests.interpreters import printed

pytest.importorskip("onnxruntime")

PROGRAM = """
import sys
from tests.model.operator_cases import CASES
from tests.model.sweep import sweep

first, cases, chains, part = map(int, sys.argv[1:])
print(*sweep(sorted(CASES)[part::2], first, cases, chains), sep="\\n", end="")
"""


@pytest.mark.parametrize("part", [0, 1])
def test_fixed_cases(part: int) -> None:
    assert printed(PROGRAM, 0, 3, 60, part) == ""


def test_fresh_cases() -> None:
    first = SystemRandom().randrange(1 << 30)
    print("the first seed is", first)
    found = printed(PROGRAM, first, 1, 60, SystemRandom().randrange(2))
    assert [line for line in found.splitlines() if "never ran" not in line] == []
