"""What a finding says to do about it does away with it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper

import tensorsplit as ts
from tensorsplit.model.check.findings import Finding
from tests.model.lower.corpus import CASES, Case
from tests.model.random_models import random_model

TARGETS = ("onnxruntime", "openvino", "portable")
LOWER, CONVERT = "tensorsplit check MODEL", "tensorsplit convert MODEL --opset 13"
EARLIER = (2, 9)
"""Opsets before 10, where lengths can't be computed."""

MODELS = {case.name: case.model for case in CASES}
MODELS |= {f"random_{seed}": random_model(seed).model for seed in range(20)}


GUARDED = ("known only at run time", "the length is not known")
"""What is found of lengths that are checked by guards which nothing recognises yet."""


def fixable(model: Any, target: Any) -> list[Finding]:
    """The findings of which one of our commands is the fix, with nothing to do by hand before."""
    found = [each for each in ts.check(model, target=target) if "tensorsplit " in each.fix]
    return [each for each in found if each.fix.startswith(("rewrite it with", "convert it"))]


def followed(model: Any, found: list[Finding], target: Any) -> Any:
    """The model after the commands; None where they say that it can't be."""
    try:
        if any(CONVERT in each.fix for each in found):
            model = ts.convert(model, opset=13)
        return ts.lower(model, target=target)
    except ts.SplitError as error:
        if error.code not in ("TS512", "TS513", "TS310", "TS101", "TS304"):
            raise
        return None


@pytest.mark.thorough
@pytest.mark.filterwarnings("ignore::tensorsplit.SplitWarning")
@pytest.mark.parametrize("target", TARGETS)
def test_the_commands_of_a_fix_do_away_with_the_finding(target: Any) -> None:
    followed_once, left = 0, []
    for name, at_hand in MODELS.items():
        models = {"as it is": at_hand}
        for opset in EARLIER:
            try:
                models[f"at {opset}"] = ts.convert(at_hand, opset=opset)
            except ts.SplitError:
                continue
        for where, model in models.items():
            found = fixable(model, target)
            made = followed(model, found, target) if found else None
            if made is not None:
                followed_once += 1
                left += [
                    (name, where, each.message)
                    for each in fixable(made, target)
                    if not any(words in each.message for words in GUARDED)
                ]
    assert left == []
    assert followed_once > 20


@pytest.mark.parametrize("opset", EARLIER)
@pytest.mark.parametrize("target", ["openvino", "portable"])
def test_before_opset_10_a_split_of_an_open_dimension_is_converted_first(
    opset: int, target: Any
) -> None:
    """Lowering only gives it another name there: nothing computes the lengths."""
    text = "g (float[N] x) => (float[A] y, float[B] z) { y, z = Split(x) }"
    model = Case("open", opset, text).model
    fixes = [each.fix for each in ts.check(model, target=target) if "tensorsplit" in each.fix]
    assert fixes
    assert all(CONVERT in fix for fix in fixes)
    made = ts.lower(ts.convert(model, opset=13), target=target)
    left = [each.message for each in fixable(made, target)]
    assert all(any(words in message for words in GUARDED) for message in left)


def test_before_opset_10_one_of_a_known_dimension_is_lowered() -> None:
    text = "g (float[6] x) => (float[3] y, float[3] z) { y, z = Split(x) }"
    (finding,) = fixable(model := Case("known", 9, text).model, "portable")
    assert CONVERT not in finding.fix
    assert fixable(ts.lower(model, target="portable"), "portable") == []


def test_what_lowering_refuses_the_model_for_comes_first() -> None:
    text = "g (float[6] x) => (seq(float[1]) s) { s = SplitToSequence(x) }"
    fixes = {each.fix for each in ts.check(Case("ends", 18, text).model, target="portable")}
    assert any(LOWER in fix for fix in fixes)
    assert all(fix.startswith("have the model give out tensors") for fix in fixes)


EXTERNAL = {
    "Split": ("float[6]", "y, z = Split(x, lengths)"),
    "passed on": ("float[6]", "l = Identity(lengths)  y, z = Split(x, l)"),
    "a sequence": (
        "float[N]",
        "s = SplitToSequence(x, lengths)  y = SequenceAt(s, first)  z = SequenceAt(s, second)",
    ),
}


def external(folder: Path, name: str, *, is_constant: bool = False) -> Path:
    """A model whose lengths, 2 and 4, are in a file beside it."""
    kind, nodes = EXTERNAL[name]
    text = f"g ({kind} x) => (float[A] y, float[B] z) <int64 first = {{0}}, int64 second = {{1}}>"
    model = Case(name, 17, f"{text} {{ {nodes} }}").model
    held = onnx.TensorProto(name="lengths", data_type=onnx.TensorProto.INT64, dims=[2])
    held.data_location = onnx.TensorProto.EXTERNAL
    held.external_data.add(key="location", value="lengths.bin")
    (folder / "lengths.bin").write_bytes(np.array([2, 4], np.int64).tobytes())
    if is_constant:
        nodes_before = [*model.graph.node]
        del model.graph.node[:]
        made = helper.make_node("Constant", [], ["lengths"], value=held)
        model.graph.node.extend([made, *nodes_before])
    else:
        model.graph.initializer.append(held)
    path = folder / "model.onnx"
    path.write_bytes(model.SerializeToString())
    return path


@pytest.mark.engine
@pytest.mark.parametrize("is_constant", [False, True])
@pytest.mark.parametrize("name", EXTERNAL)
def test_lengths_in_external_data_are_written_into_the_model(
    name: str, is_constant: bool, tmp_path: Path
) -> None:
    """onnxruntime can't read them, neither 1.31.1 nor 1.32.0: its shape inference refuses."""
    path = external(tmp_path, name, is_constant=is_constant)
    messages = [each.message for each in fixable(path, "onnxruntime")]
    assert [each for each in messages if "external data" in each]
    runtime = pytest.importorskip("onnxruntime")
    with pytest.raises(Exception, match="external"):
        runtime.InferenceSession(path, providers=["CPUExecutionProvider"])
    made = ts.lower(path, target="onnxruntime")
    assert fixable(made, "onnxruntime") == []
    (tmp_path / "lengths.bin").unlink()
    x = np.arange(1, 7, dtype=np.float32)
    session = runtime.InferenceSession(made.SerializeToString(), providers=["CPUExecutionProvider"])
    y, z = session.run(None, {"x": x})
    np.testing.assert_array_equal(y, x[:2])
    np.testing.assert_array_equal(z, x[2:])


@pytest.mark.parametrize("is_open", [False, True])
def test_lengths_in_external_data_of_an_open_dimension_are_no_matter(
    is_open: bool, tmp_path: Path
) -> None:
    """onnxruntime runs these: it infers nothing of such a Split."""
    path = external(tmp_path, "Split")
    model = onnx.load(path, load_external_data=False)
    if is_open:
        model.graph.input[0].type.tensor_type.shape.dim[0].dim_param = "N"
    path.write_bytes(model.SerializeToString())
    assert [each.code for each in fixable(path, "onnxruntime")] == ["TS843"] * (not is_open)
