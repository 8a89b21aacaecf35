"""What type checkers know of models and operators: the kind that came in comes back.

Checking this file is the test; it is never run.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, assert_type, get_args

import onnx
import onnx_ir as ir
import pytest

import tensorsplit as ts
from tensorsplit.arrays.prepared import SequenceShape
from tensorsplit.core.dimensions import Shape
from tensorsplit.core.records import dialects, versions_of
from tensorsplit.core.records.names import Counted, DialectName, Uncounted


def models(message: onnx.ModelProto, graph: ir.Model, path: Path, name: str) -> None:
    """Checked, and never run."""
    assert_type(ts.lower(message, target="openvino"), onnx.ModelProto)
    assert_type(ts.lower(graph, target="portable"), ir.Model)
    assert_type(ts.lower(name, target=path), onnx.ModelProto | Any)
    ts.lower(path, target="openvino").save("lowered.xml")
    ts.check(ts.lower(name, target="portable"))
    assert_type(ts.convert(message, 18), onnx.ModelProto)
    assert_type(ts.convert(graph, variadic=True), ir.Model)
    assert_type(ts.convert("model.onnx", opset=13), onnx.ModelProto)
    assert_type(ts.infer_shapes(message), onnx.ModelProto)
    assert_type(ts.infer_shapes(graph, input_shapes={"x": (2, 3)}), ir.Model)
    assert_type(ts.infer_shapes(path), onnx.ModelProto)


def operators(name: str) -> None:
    """Checked, and never run."""
    assert_type(ts.infer("Split", (4, 3), num_outputs=2), list[Shape])
    assert_type(ts.infer("openvino.VariadicSplit-1", (4,), split_lengths=[1, 3]), list[Shape])
    assert_type(ts.infer("SplitToSequence", ("N", 3)), list[Shape] | SequenceShape)
    assert_type(ts.infer(ts.operators[name], (4, 3)), list[Shape] | SequenceShape)
    assert_type(ts.plan("Split", (4, 3), opset=13, num_outputs=2), ts.PreparedSplit)


@pytest.mark.parametrize(
    ("known", "is_sequence", "bare"),
    [(Counted, False, {"Split", "VariadicSplit"}), (Uncounted, True, {"SplitToSequence"})],
)
def test_checkers_know_every_name_of_an_operator(
    known: object, is_sequence: bool, bare: set[str]
) -> None:
    records = [each for each in ts.operators.values() if each.is_sequence == is_sequence]
    names = {record.id for record in records} | {f"{r.vendor}.{r.name}" for r in records}
    assert {versions_of(name)[0].name for name in bare} == bare
    assert set(get_args(known)) == names | bare


def test_checkers_know_every_dialect() -> None:
    assert set(get_args(DialectName)) == set(dialects)
