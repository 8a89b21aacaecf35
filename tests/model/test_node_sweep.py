"""The sweep of node tests finds what an engine does in silence, and errors that are false."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import pytest

import tensorsplit as ts
from tensorsplit.model.check.checks import TARGET_REFUSES
from tensorsplit.model.check.findings import of_check
from tests.model import node_sweep
from tests.model.node_sweep import WAYS, Engine, legal_tests, sweep
from tests.model.test_node_tests import check_similar


def give_right(
    model: Any, weights: bytes, fed: Mapping[str, Any], names: list[str]
) -> dict[str, Any]:
    """An engine that gives what is right."""
    import onnx

    del weights
    return dict(zip(names, ts.run(onnx.load_from_string(model), fed).values(), strict=True))


def give_other(
    model: Any, weights: bytes, fed: Mapping[str, Any], names: list[str]
) -> dict[str, Any]:
    """An engine that gives something else."""
    right = give_right(model, weights, fed, names)
    return {name: right[name] + 1 for name in names}


def give_nothing(*request: Any) -> None:
    """An engine that refuses everything."""
    raise RuntimeError("no rule for this")


def end(*request: Any) -> None:
    """An engine that ends its process."""
    os.abort()


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> Any:
    def make(name: str) -> str:
        engine = Engine("openvino", f"{__name__}:{name}")
        monkeypatch.setattr(node_sweep, "ENGINES", {"made": engine})
        return "made"

    return make


def test_nothing_is_printed_of_an_engine_that_is_right(made: Any) -> None:
    assert list(sweep(made("give_right"), WAYS, "^test_(gemm_default_zero_bias|concat_1d)")) == []


@pytest.mark.parametrize(
    ("name", "kind"),
    [("give_other", "wrong"), ("give_nothing", "refused"), ("end", "crashed")],
)
def test_what_check_is_silent_about_is_printed(made: Any, name: str, kind: str) -> None:
    lines = list(sweep(made(name), ["open"], "^test_sub$"))
    assert [line.partition(": made, test_sub, open: ")[0] for line in lines] == [f"{kind}, silent"]


def test_an_error_of_check_is_false_where_the_model_runs(
    made: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = [of_check(TARGET_REFUSES, "graph/sub_0", "it can't")]
    monkeypatch.setattr(ts, "check", lambda model, target: said)
    (line,) = sweep(made("give_right"), ["as-it-is"], "^test_sub$")
    assert line.startswith("false error: made, test_sub, as it is")
    assert list(sweep(made("give_nothing"), ["as-it-is"], "^test_sub$")) == []


def test_each_form_says_the_same() -> None:
    cases = legal_tests("^test_(gemm_transposeB|gather_0)$")
    forms = [(way, form) for case in cases for way in WAYS for form in WAYS[way](case)]
    assert {way for way, _ in forms} == WAYS.keys()
    for _, form in forms:
        got = list(ts.run(form.model, form.fed).values())
        for rows in zip(*got, strict=True) if form.is_in_loop else [got]:
            check_similar(form.case, list(rows), form.expected)


@pytest.mark.engine("onnxruntime", "openvino")
@pytest.mark.parametrize("engine", node_sweep.ENGINES)
def test_engines_run_simple_tests_in_every_form(engine: str) -> None:
    assert list(sweep(engine, WAYS, "^test_(sub|gather_1|gemm_alpha)$")) == []
