"""What is said of an engine that differs, or lacks something, and whether lowering helps."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from onnx.parser import parse_model

from tensorsplit.engines.compare import Difference
from tensorsplit.engines.diagnosis import (
    FINE,
    FIXABLE,
    NOT_RUN,
    NOTHING_TO_LOWER,
    SAME_OUTPUTS,
    WRONG,
    Diagnosis,
    _diagnosis,
    _shortened,
    _why_lowering_fails,
)
from tensorsplit.model.check.checks import ERROR, NOTE, TARGET_DEPENDS, WARNING
from tensorsplit.model.check.findings import REWRITE, CheckReport, Finding
from tensorsplit.model.reading import read_model

ODD = Finding("TS801", NOTE, "graph/a", "is odd")
DEPENDS = Finding(TARGET_DEPENDS.code, WARNING, "graph/b", "may fail")
FAILS = Finding("TS821", ERROR, "graph/c", "fails")
REWRITTEN = Finding("TS822", WARNING, "graph/d", "is rewritten", f"{REWRITE} it")
REFUSED = Difference("tensorsplit", "onnx-reference", "", "refused", "", "it refuses")
SHAPE = Difference("tensorsplit", "onnx-reference", "y", "shape", "(2,)", "(3,)")


def diagnosis(
    findings: list[Finding], differences: list[Difference], useless: str | None
) -> Diagnosis:
    return _diagnosis("tensorsplit", CheckReport(tuple(findings), 1), differences, lambda: useless)


@pytest.mark.parametrize(
    ("findings", "differences", "useless", "verdict", "why"),
    [
        ([], [], "no", FINE, (SAME_OUTPUTS,)),
        ([ODD, DEPENDS], [], "no", FINE, (SAME_OUTPUTS,)),
        ([FAILS], [], None, FIXABLE, ("graph/c: fails",)),
        ([REWRITTEN, ODD], [], None, FIXABLE, ("graph/d: is rewritten",)),
        ([FAILS], [], "no", WRONG, ("graph/c: fails", "no")),
        ([], [REFUSED], None, FIXABLE, ("it refuses",)),
        ([FAILS], [REFUSED], "no", "refused", ("it refuses", "graph/c: fails", "no")),
        ([], [replace(SHAPE, aspect="values", is_allowed=True)], "no", FINE, (SAME_OUTPUTS,)),
        ([], [SHAPE], "no", WRONG, (str(SHAPE).removeprefix("tensorsplit: "), "no")),
    ],
)
def test_a_verdict_and_its_reasons(
    findings: list[Finding],
    differences: list[Difference],
    useless: str | None,
    verdict: str,
    why: tuple[str, ...],
) -> None:
    found = diagnosis(findings, differences, useless)
    assert (found.verdict, found.why) == (verdict, why)
    assert found.warnings == (DEPENDS in findings)


@pytest.mark.parametrize(
    ("engine", "verdict", "is_well"),
    [
        ("tensorsplit", FINE, True),
        ("onnxruntime", FINE, True),
        ("tensorsplit", NOT_RUN, True),  # nothing is wrong where another engine is the reference
        ("onnxruntime", NOT_RUN, False),
        ("tensorsplit", WRONG, False),
        ("onnxruntime", FIXABLE, False),
    ],
)
def test_it_is_well_if_nothing_has_to_be_done(engine: str, verdict: str, is_well: bool) -> None:
    assert Diagnosis(engine, "1.0", verdict, ()).is_well is is_well


@pytest.mark.parametrize(
    ("reasons", "said"),
    [
        ("", ()),
        ("aa", ("a",)),
        ("ab", ("a", "b")),
        ("abab", ("a", "b")),
        ("abc", ("a", "b", "and 1 more")),
        ("abcdd", ("a", "b", "and 2 more")),
    ],
)
def test_two_reasons_are_said_and_how_many_more_there_are(
    reasons: str, said: tuple[str, ...]
) -> None:
    assert _shortened(reasons) == said


@pytest.mark.parametrize(
    ("nodes", "differences", "why"),
    [
        ("a, y = Split<num_outputs = 2>(x)", [], None),
        ("a, y = Split<num_outputs = 2>(x)", [SHAPE], f"and so is the lowered model: {SHAPE}"),
        ("y = Neg(x)", [], NOTHING_TO_LOWER),
        ("s = SplitToSequence(x) y = Identity(s)", [], "it can't be lowered: "),
    ],
)
def test_why_lowering_does_not_help(
    nodes: str, differences: list[Difference], why: str | None
) -> None:
    kind = "seq(float)" if "Sequence" in nodes else "float[M]"
    model = parse_model(
        f'<ir_version: 8, opset_import: ["": 18]> g (float[N] x) => ({kind} y) {{ {nodes} }}'
    )
    reference: Any = SimpleNamespace(engine="it", differences=lambda *_: differences)
    said = _why_lowering_fails(read_model(model), "portable", reference, {})
    assert said == why if why is None else said is not None and said.startswith(why)
