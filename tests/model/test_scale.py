"""Work grows with the number of nodes and no faster: counted in calls, not timed."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import onnx
import pytest

import tensorsplit as ts
from tensorsplit.model.check.checker import examine
from tests.model.build import FLOAT, function, graph, model, node, value

TOOLS: dict[str, Callable[[onnx.ModelProto], Any]] = {
    "check": lambda made: ts.check(made, target="openvino"),
    "infer": ts.infer_shapes,
    "convert": lambda made: ts.convert(made, opset=13),
    "convert to slices": lambda made: ts.convert(made, opset=10),
    "lower": lambda made: ts.lower(made, target="openvino"),
}


def chain(count: int, dim: int | str) -> onnx.ModelProto:
    """Splits one after the other, each on what the last one left, put together again."""
    nodes = []
    for index in range(count):
        nodes.append(node("Split", f"x{index}", f"a{index} b{index}", axis=1, num_outputs=2))
        nodes.append(node("Concat", f"b{index} a{index}", f"x{index + 1}", axis=1))
    return model(graph(nodes, [value("x0", FLOAT, [2, dim])], [f"x{count}"]))


def side_by_side(count: int, dim: int | str) -> onnx.ModelProto:
    """Splits of one tensor, each of which gives the model two outputs."""
    nodes = [
        node("Split", "x", f"a{index} b{index}", axis=1, num_outputs=2) for index in range(count)
    ]
    outputs = [f"{name}{index}" for index in range(count) for name in "ab"]
    return model(graph(nodes, [value("x", FLOAT, [2, dim])], outputs))


def calls(tool: Callable[[onnx.ModelProto], Any], made: onnx.ModelProto) -> int:
    """How many Python functions are called, of the package and of what it uses."""
    count = 0

    def notice(_: FrameType, event: str, __: Any) -> None:
        nonlocal count
        count += event == "call"

    sys.setprofile(notice)
    try:
        tool(made)
    finally:
        sys.setprofile(None)
    return count


def meeting(count: int) -> onnx.ModelProto:
    """One split of many outputs, which one node reads."""
    names = [f"a{index}" for index in range(count)]
    nodes = [
        node("Split", "x", " ".join(names), axis=1, num_outputs=count),
        node("Concat", " ".join(reversed(names)), "y", axis=1),
    ]
    return model(graph(nodes, [value("x", FLOAT, [2, 2 * count])], ["y"]))


def called(count: int) -> onnx.ModelProto:
    """One function that is called again and again."""
    body = [node("Split", "x", "a b", axis=1, num_outputs=2), node("Concat", "b a", "y", axis=1)]
    nodes = [node("F", f"x{i}", f"x{i + 1}", domain="custom") for i in range(count)]
    whole = graph(nodes, [value("x0", FLOAT, [2, 6])], [f"x{count}"])
    return model(whole, 18, [function("F", "x", "y", body)], custom=1)


def backwards(count: int) -> onnx.ModelProto:
    """A chain of nodes, of which each reads what the next one gives."""
    nodes = [node("Neg", f"x{index}", f"x{index + 1}") for index in reversed(range(count))]
    return model(graph(nodes, [value("x0", FLOAT, [2])], [f"x{count}"]))


@pytest.mark.thorough
@pytest.mark.parametrize("made", [chain, side_by_side])
@pytest.mark.parametrize("dim", [6, "N"])
@pytest.mark.parametrize("name", TOOLS)
def test_a_hundred_nodes_more_are_always_the_same_work(
    name: str, dim: int | str, made: Callable[[int, int | str], onnx.ModelProto]
) -> None:
    """What is done once per model, or remembered from the last one, falls out of a difference."""
    tool = TOOLS[name]
    calls(tool, made(10, dim))
    few, some, many = (calls(tool, made(count, dim)) for count in (20, 120, 220))
    assert many - some < 1.02 * (some - few)


@pytest.mark.parametrize(("made", "count"), [(meeting, 400), (called, 50), (backwards, 400)])
@pytest.mark.parametrize("name", [*TOOLS, "lower, portable"])
def test_twice_as_many_readers_or_calls_are_twice_the_work(
    name: str, made: Callable[[int], onnx.ModelProto], count: int
) -> None:
    tool = TOOLS.get(name, lambda made: ts.lower(made, target="portable"))
    calls(tool, made(10))
    assert calls(tool, made(2 * count)) < 2.2 * calls(tool, made(count))


def test_ten_thousand_nodes() -> None:
    nodes = [node("Split", "x", f"a{i} b{i}", num_outputs=2) for i in range(10_000)]
    outputs = [value(f"a{i}", FLOAT, [2]) for i in range(10_000)]
    report = examine(model(graph(nodes, [value("x", FLOAT, [4])], outputs)))
    assert report.summary == "10000 notes in 10000 split nodes"
