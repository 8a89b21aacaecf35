"""Node tests of onnx at other opsets: what is converted is legal, and gives the same.

Tests of every kind at each opset, and each test at one of them.
What is refused stands in a table that must match exactly.
"""

from __future__ import annotations

from typing import Any

import onnx
import pytest

import tensorsplit as ts
from tests.model.build import node_tests_at, nodes_of
from tests.model.test_node_tests import check_model, check_outputs, check_refused, outcome

OPSETS = (7, 11, 13, 17, 18, 21, 24, onnx.defs.onnx_opset_version())


def as_it_runs(model: onnx.ModelProto) -> tuple[bytes, tuple[int, ...]]:
    """A model without its opset, and the version of each operator that is in force there."""
    bare = onnx.ModelProto()
    bare.CopyFrom(model)
    opset = next((entry.version for entry in model.opset_import if not entry.domain), 1)
    bare.ClearField("ir_version")
    bare.ClearField("opset_import")
    names = sorted({node.op_type for node in nodes_of(model.graph) if not node.domain})
    versions = (onnx.defs.get_schema(name, opset).since_version for name in names)
    return bare.SerializeToString(deterministic=True), tuple(versions)


@pytest.fixture(scope="module")
def ran() -> dict[Any, str]:
    """What came of running the models so far: many are the same at several opsets."""
    return {}


@pytest.mark.thorough
@pytest.mark.parametrize("opset", OPSETS)
def test_converted_models_are_legal_and_give_the_same(opset: int, ran: dict[Any, str]) -> None:
    refused, not_run = [], []
    tried = node_tests_at(OPSETS.index(opset))
    for case in tried:
        before = case.model.SerializeToString(deterministic=True)
        code, made = outcome(ts.convert, case.model, opset=opset)
        assert case.model.SerializeToString(deterministic=True) == before, case.name
        if code:
            refused.append((code, case.name))
            continue
        check_model(made)
        key = case.name, as_it_runs(made)
        if key not in ran:
            ran[key] = check_outputs(case, made)
        code = ran[key]
        if code:
            not_run.append((code, case.name))
    check_refused("convert", refused, opset, tried)
    check_refused("run converted", not_run, opset, tried)
