"""Every example on the standards' pages, with the parts that the pages state."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from onnx import helper

import tensorsplit as ts
from tensorsplit.pages.standard_examples import EXAMPLES
from tests.oracle import same

SPLIT = [
    *("equal_parts_1d_opset13", "variable_parts_1d_opset13"),
    *("equal_parts_2d_opset13", "variable_parts_2d_opset13"),
    *("equal_parts_default_axis_opset13", "variable_parts_default_axis_opset13"),
    "zero_size_splits_opset13",
    *("equal_parts_1d_opset18", "variable_parts_1d_opset18"),
    *("equal_parts_2d", "variable_parts_2d_opset18"),
    *("equal_parts_default_axis_opset18", "variable_parts_default_axis_opset18"),
    "zero_size_splits_opset18",
    *("1d_uneven_split_opset18", "2d_uneven_split_opset18"),
]
SPLIT_TO_SEQUENCE = ["1", "2", "nokeepdims"]


@pytest.fixture(scope="module")
def examples() -> dict[str, Any]:
    """The examples of ONNX's pages by name; the onnx package carries them as test cases."""
    from onnx.backend.test.case.node import collect_testcases

    with warnings.catch_warnings(action="ignore", category=RuntimeWarning):
        return {case.name: case for case in collect_testcases(None)}


def test_no_example_of_the_family_is_left_out(examples: dict[str, Any]) -> None:
    family = {
        name
        for name, case in examples.items()
        if {node.op_type for node in case.model.graph.node} & {"Split", "SplitToSequence"}
        and not name.endswith("_expanded")
    }
    stated = {f"test_split_{name}" for name in SPLIT}
    assert family == stated | {f"test_split_to_sequence_{name}" for name in SPLIT_TO_SEQUENCE}


@pytest.mark.parametrize(
    ("operator", "prefix", "names"),
    [
        ("onnx.Split-18", "split", [name for name in SPLIT if not name.endswith("opset13")]),
        ("onnx.SplitToSequence-24", "split_to_sequence", SPLIT_TO_SEQUENCE),
    ],
)
def test_pages_of_operators_show_these_examples(
    operator: str, prefix: str, names: list[str], examples: dict[str, Any]
) -> None:
    shown = [(np.array(data).tolist(), operands) for _, data, operands in EXAMPLES[operator]]
    for name in names:
        case = examples[f"test_{prefix}_{name}"]
        (node,), ((x, *split), _) = case.model.graph.node, case.data_sets[0]
        given: dict[str, Any] = {entry.name: entry.i for entry in node.attribute}
        if split:
            given["split"] = split[0].tolist()
        assert (x.tolist(), given) in shown, name
    assert len(shown) == len(names)


@pytest.mark.parametrize("name", SPLIT)
def test_split(name: str, examples: dict[str, Any]) -> None:
    case = examples[f"test_split_{name}"]
    (node,), (opset,) = case.model.graph.node, case.model.opset_import
    attributes = {a.name: helper.get_attribute_value(a) for a in node.attribute}
    for (x, *split), outputs in case.data_sets:
        if not split:
            attributes["num_outputs"] = len(node.output)
        parts = ts.split(x, *split, opset=opset.version, **attributes)
        assert len(parts) == len(outputs) == len(node.output)
        assert all(map(same, parts, outputs))


@pytest.mark.parametrize("name", SPLIT_TO_SEQUENCE)
@pytest.mark.parametrize("opset", [11, 24])
def test_split_to_sequence(name: str, opset: int, examples: dict[str, Any]) -> None:
    case = examples[f"test_split_to_sequence_{name}"]
    (node,) = case.model.graph.node
    attributes = {a.name: helper.get_attribute_value(a) for a in node.attribute}
    for (x, *split), outputs in case.data_sets:
        (expected,) = outputs
        parts = ts.split_to_sequence(x, *split, opset=opset, **attributes)
        assert len(parts) == len(expected)
        assert all(map(same, parts, expected))


X = np.random.default_rng(6).standard_normal((6, 12, 10, 24)).astype(np.float32)


@pytest.mark.parametrize(
    ("lengths", "stops"), [([1, 2, 3], [(0, 1), (1, 3), (3, 6)]), ([-1, 2], [(0, 4), (4, 6)])]
)
def test_variadic_split(lengths: list[int], stops: list[tuple[int, int]]) -> None:
    parts = ts.variadic_split(X, 0, lengths)
    assert [part.shape for part in parts] == [(stop - start, 12, 10, 24) for start, stop in stops]
    assert all(same(part, X[start:stop]) for part, (start, stop) in zip(parts, stops, strict=True))


def test_openvino_split() -> None:
    parts = ts.openvino.split(X, 1, 3)
    assert [part.shape for part in parts] == [(6, 4, 10, 24)] * 3
    assert same(parts[0], X[:, :4])
    assert same(parts[1], X[:, 4:8])
    assert same(parts[2], X[:, 8:])
