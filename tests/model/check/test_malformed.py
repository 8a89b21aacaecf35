"""Bytes that were cut, flipped and overwritten: findings or a refusal, never anything else."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path

import onnx
import pytest

from tensorsplit import SplitError
from tensorsplit.model.check.checker import check, examine
from tensorsplit.model.check.findings import as_sarif
from tests.model.build import (
    BOOL,
    FLOAT,
    INT64,
    function,
    graph,
    link,
    linked,
    model,
    node,
    tensor,
    value,
)


def rich_model() -> onnx.ModelProto:
    """Splits in a graph, a Loop body and functions, and sequences."""
    body = graph(
        [
            node("Identity", "go", "on"),
            node("Split", "v lengths", "p q", name="inner"),
            node("Add", "p q", "sum"),
            node("Concat", "sum sum", "next", axis=0),
        ],
        [value("i", INT64, []), value("go", BOOL, []), value("v")],
        ["on", "next"],
        [tensor("lengths", [2, 2])],
    )
    cut = function(
        "Cut",
        "x",
        "a b",
        [linked("Split", "x", "a b", link("axis", "axis"), num_outputs=2)],
        ["axis"],
    )
    nodes = [
        node("Loop", "m go x", "y", body=body),
        node("Cut", "x", "a b", domain="custom", axis=1),
        node("SplitToSequence", "x chunk", "s"),
        node("SequenceAt", "s m", "t"),
        node("ConcatFromSequence", "s", "z", axis=0),
    ]
    inputs = [value("m", INT64, []), value("go", BOOL, []), value("x", FLOAT, [4, 6])]
    made = graph(nodes, inputs, ["y", "a", "b", "t", "z"], [tensor("chunk", 2)])
    return model(made, functions=[cut], custom=1)


def damaged(data: bytes, chance: random.Random) -> bytes:
    """The bytes with one to five of them changed, or cut off."""
    found = bytearray(data)
    for _ in range(chance.choice([1, 1, 2, 5])):
        place = chance.randrange(len(found))
        match chance.randrange(4):
            case 0:
                found[place] ^= 1 << chance.randrange(8)
            case 1:
                found[place] = chance.randrange(256)
            case 2:
                del found[place + 1 : place + chance.randrange(2, 5)]
            case _:
                found = found[: place + 1]
    return bytes(found)


def test_the_model_is_right_before_it_is_damaged() -> None:
    assert [f.code for f in check(rich_model()) if f.severity == "error"] == []


@pytest.mark.parametrize("seed", range(4))
def test_damaged_models_give_findings_or_a_refusal(tmp_path: Path, seed: int) -> None:
    data, chance, path = rich_model().SerializeToString(), random.Random(seed), tmp_path / "m.onnx"
    for _ in range(120):
        path.write_bytes(damaged(data, chance))
        target = chance.choice([None, "openvino", "onnxruntime", "portable"])
        refusal = None
        try:
            as_sarif(examine(path, target), "m.onnx", "0")
        except SplitError as error:
            refusal = error.code
        assert refusal in (None, "TS501")


def test_wrong_splits_in_bodies_that_onnx_would_expand_do_not_end_the_process() -> None:
    """onnx's inference aborts where num_outputs is 2 and the node has 3 outputs (D5)."""
    program = """
from onnx import TensorProto, helper
from tensorsplit.model.check.checker import check
v = helper.make_tensor_value_info("v", 1, [4])
split = helper.make_node("Split", ["v"], ["p", "q", "r"], num_outputs=2)
body = helper.make_graph([split], "b", [v], [helper.make_tensor_value_info("p", 1, None)])
sequence = helper.make_tensor_sequence_value_info("s", 1, [4])
for op_type, inputs in (("SequenceMap", ["s"]), ("Scan", ["v"]), ("Loop", ["v"]), ("If", ["v"])):
    name = "then_branch" if op_type == "If" else "body"
    node = helper.make_node(op_type, inputs, ["y"], **{name: body})
    outputs = [helper.make_empty_tensor_value_info("y")]
    graph = helper.make_graph([node], "g", [sequence, v], outputs)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)])
    print(any(f.code == "TS305" for f in check(model)))
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=True
    )
    assert done.stdout.split() == ["True"] * 4
