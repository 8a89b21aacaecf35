"""What a target was measured not to run: the profiles decide, here it is only looked up."""

from __future__ import annotations

import onnx
import pytest

from tensorsplit.model.check.checker import check, of_features
from tensorsplit.model.profiles import Limitation, Profile
from tests.model.build import FLOAT, INT64, graph, model, node, sequence, tensor, value

X = value("x", FLOAT, ["N", 6])


def codes(made: onnx.ModelProto, target: str | None) -> list[str]:
    return [finding.code for finding in check(made, target)]


@pytest.mark.parametrize(
    ("verdict", "extent", "code", "severity"),
    [
        ("refused", "all", "TS841", "error"),
        ("refused", "some", "TS841", "error"),
        ("unsupported", "all", "TS841", "error"),
        ("wrong", "some", "TS842", "error"),
        ("crash", "all", "TS842", "error"),
        ("refused", "edge", "TS843", "warning"),
        ("wrong", "values", "TS843", "warning"),
    ],
)
def test_the_severity_follows_from_what_was_measured(
    verdict: str, extent: str, code: str, severity: str
) -> None:
    entry = Limitation("count", verdict, extent, "it was seen")
    profile = Profile("engine", "1.0", {}, (entry, Limitation("other", "wrong", "all", "not here")))
    (finding,) = of_features(profile, {"count": True}, "graph/s")
    assert (finding.code, finding.severity, finding.node) == (code, severity, "graph/s")
    assert "engine 1.0: it was seen" in finding.message


def test_openvino_does_not_take_a_count_on_a_dynamic_axis() -> None:
    made = model(graph([node("Split", "x", "a b", num_outputs=2)], [X], ["a", "b"]))
    assert codes(made, None) == []
    assert codes(made, "openvino") == ["TS841"]


def test_openvino_has_no_sequence_outputs() -> None:
    split = node("SplitToSequence", "x l", "s", axis=1)
    made = model(graph([split], [X], [sequence("s")], [tensor("l", [2, 4])]))
    assert ("graph", "TS841") in {(f.node, f.code) for f in check(made, "openvino")}


def test_openvino_may_change_large_integers() -> None:
    split = node("Split", "x l", "a b", axis=1)
    made = model(graph([split], [value("x", INT64, [4, 6])], ["a", "b"], [tensor("l", [2, 4])]))
    assert codes(made, "openvino") == ["TS843"]
    assert codes(made, "onnxruntime") == []


def test_onnx_runtime_has_not_every_kernel() -> None:
    split = node("SplitToSequence", "x", "s")
    data = value("x", onnx.TensorProto.UINT8, [4])
    made = model(graph([split], [data], [sequence("s", onnx.TensorProto.UINT8)]))
    assert codes(made, "onnxruntime") == ["TS841"]


def test_the_portable_target_has_no_sequences() -> None:
    nodes = [node("SplitToSequence", "x l", "s", axis=1), node("SequenceAt", "s i", "y")]
    made = model(graph(nodes, [X], ["y"], [tensor("l", [2, 4]), tensor("i", 0)]))
    assert codes(made, "portable") == ["TS841", "TS841"]


@pytest.mark.parametrize("target", ["onnxruntime", "openvino", "portable"])
def test_explicit_lengths_run_everywhere(target: str) -> None:
    split = node("Split", "x l", "a b", axis=1)
    made = model(graph([split], [X], ["a", "b"], [tensor("l", [2, 4])]))
    assert codes(made, target) == []


def test_a_wrong_count_on_a_negative_axis_is_a_finding_for_a_target_too() -> None:
    made = graph(
        [node("Split", "x", "a b c d", axis=-1, num_outputs=4)], [value("x", FLOAT, [5])], "abcd"
    )
    found = check(model(made), target="openvino")
    assert found[0].code == "TS304"
