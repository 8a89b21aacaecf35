"""``tensorsplit reduce``: the smallest model that an engine still gets wrong."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx

from tests.cli.conftest import Command
from tests.conformance.test_reducing import CHAIN, SHORT


def test_the_command_writes_model_inputs_and_script(tensorsplit: Command, tmp_path: Path) -> None:
    onnx.save(SHORT, tmp_path / "model.onnx")
    np.save(tmp_path / "lengths.npy", np.array([2, 3]))
    words = ["reduce", str(tmp_path / "model.onnx"), "--engine", "onnx-reference"]
    words += ["--input", f"lengths={tmp_path / 'lengths.npy'}", "--input-shape", "x:7"]
    ended = tensorsplit(*words, "-o", str(tmp_path / "out"))
    assert ended.status == 0, ended.err
    assert "3 nodes -> 1 node" in ended.out
    assert {path.name for path in (tmp_path / "out").iterdir()} == {
        *("model.onnx", "inputs.npz", "reproduce.py")
    }
    model = onnx.load(tmp_path / "out" / "model.onnx")
    with np.load(tmp_path / "out" / "inputs.npz") as held:
        assert set(held) == {entry.name for entry in model.graph.input}
    onnx.save(CHAIN, tmp_path / "right.onnx")
    ended = tensorsplit("reduce", str(tmp_path / "right.onnx"), "--engine", "onnx-reference")
    assert ended.status == 2
    assert "nothing to reduce" in ended.err
    assert not Path("right-reduced").exists()


def test_a_model_with_a_sequence_between_its_nodes_is_reduced(
    tensorsplit: Command, tmp_path: Path
) -> None:
    model = onnx.parser.parse_model(
        """<ir_version: 8, opset_import: ["" : 18]>
        g (float[7] x, float[1] new) => (float[8] y)
        {
            three = Constant <value = int64 {3}> ()
            s = SplitToSequence <axis = 0> (x, three)
            longer = SequenceInsert (s, new, three)
            y = ConcatFromSequence <axis = 0> (longer)
        }"""
    )
    onnx.save(model, tmp_path / "model.onnx")
    words = ["reduce", str(tmp_path / "model.onnx"), "--engine", "onnx-reference", "--seed", "1"]
    ended = tensorsplit(*words, "-o", str(tmp_path / "out"))
    assert ended.status == 0, ended.err
    reduced = onnx.load(tmp_path / "out" / "model.onnx")
    assert [node.op_type for node in reduced.graph.node] == ["SequenceInsert"]
    assert ended.out.startswith("onnx-reference: output 'y': ")
    assert "would allow it" not in ended.out


def test_an_ir_is_refused(tensorsplit: Command) -> None:
    ended = tensorsplit("reduce", "model.xml", "--engine", "openvino")
    assert ended.status == 2
    assert "ONNX model" in ended.err
