"""Checks that a converted model is what its opset allows, and that it computes the same."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
from onnx import ModelProto, defs

from tensorsplit.model.convert import convert
from tensorsplit.model.graph.nodes import walk
from tests.model.build import check, onnx_model, outputs


def converted(model: ModelProto, opset: int) -> ModelProto:
    """The model at an opset, after every node was found legal there."""
    made = convert(model, opset)
    assert isinstance(made, ModelProto)
    check_legal(made, opset)
    return made


def check_legal(model: ModelProto, opset: int) -> None:
    """Every import says the opset, and every node fits the schema in force there."""
    for holder in (model, *model.functions):
        imported = [entry for entry in holder.opset_import if entry.domain in ("", "ai.onnx")]
        assert all(entry.version == opset for entry in imported)
    for site in walk(onnx_model(model).model):
        if site.node.domain not in ("", "ai.onnx"):
            continue
        schema = defs.get_schema(site.node.op_type, opset, "")
        assert not schema.deprecated, site.path
        assert set(site.node.attributes) <= set(schema.attributes), site.path
        assert schema.min_input <= len(site.node.inputs) <= schema.max_input, site.path
        assert schema.min_output <= len(site.node.outputs) <= schema.max_output, site.path
    check(model)  # onnx's own inference may abort the process on a wrong split
    onnx.checker.check_model(model, full_check=not model.functions)


def check_equal(model: ModelProto, expected: Sequence[Any], **feeds: Any) -> None:
    """The outputs are these, bit for bit."""
    found = outputs(model, **feeds)
    assert len(found) == len(expected)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one, other, strict=True)
