"""Work grows with the number of nodes and no faster: counted in calls, not timed."""

from __future__ import annotations

import sys
from types import FrameType
from typing import Any

import onnx

from tensorsplit.models.check.checker import examine
from tests.models.build import FLOAT, graph, model, node, value


def chain(count: int) -> onnx.ModelProto:
    """Splits one after the other, each on what the last one left; the second part is dead."""
    nodes = [
        node("Split", f"x{index}", f"x{index + 1} dead{index}", axis=1, num_outputs=1 + 1)
        if index % 2
        else node("Concat", f"x{index} x{index}", f"x{index + 1}", axis=1)
        for index in range(2 * count)
    ]
    return model(graph(nodes, [value("x0", FLOAT, [2, 6])], [f"x{2 * count}"]))


def calls(made: onnx.ModelProto) -> int:
    """How many Python functions of the package are called."""
    count = 0

    def notice(frame: FrameType, event: str, _: Any) -> None:
        nonlocal count
        count += event == "call" and "tensorsplit" in frame.f_code.co_filename

    sys.setprofile(notice)
    try:
        examine(made, "openvino")
    finally:
        sys.setprofile(None)
    return count


def test_ten_times_the_nodes_are_ten_times_the_work() -> None:
    calls(chain(10))  # what is done once
    assert calls(chain(400)) < 11 * calls(chain(40))


def test_ten_thousand_nodes() -> None:
    nodes = [node("Split", "x", f"a{i} b{i}", num_outputs=2) for i in range(10_000)]
    outputs = [f"a{i}" for i in range(10_000)]
    report = examine(model(graph(nodes, [value("x", FLOAT, [4])], outputs)))
    assert report.summary == "10000 notes in 10000 split nodes"
