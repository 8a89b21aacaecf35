"""Whoever watches is told of each pass over the main graph, and of each of its nodes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import onnx
import pytest

import tensorsplit as ts
from tensorsplit.model.graph.progress import watched_by
from tests.model.build import FLOAT, graph, model, node, value

COUNT = 7


class Notes:
    """A watcher that writes down what it is told."""

    def __init__(self) -> None:
        self.passes: list[list[Any]] = []

    def begin(self, what: str, total: int | None) -> Callable[[], None]:
        self.passes.append([what, total, 0])
        return self.step

    def step(self) -> None:
        self.passes[-1][2] += 1


@pytest.fixture
def made() -> onnx.ModelProto:
    nodes = [node("Split", "x", f"a{i} b{i}", num_outputs=2) for i in range(COUNT)]
    return model(graph(nodes, [value("x", FLOAT, [4])], [f"a{i}" for i in range(COUNT)]))


@pytest.mark.parametrize(
    ("tool", "last"),
    [
        (lambda made: ts.check(made, target="openvino"), "checking"),
        (lambda made: ts.convert(made, opset=13), "converting"),
        (lambda made: ts.lower(made, target="portable"), "lowering"),
    ],
    ids=["check", "convert", "lower"],
)
def test_every_pass_ends_at_the_number_it_began_with(
    made: onnx.ModelProto, tool: Callable[[Any], Any], last: str
) -> None:
    notes = Notes()
    with watched_by(notes.begin):
        tool(made)
    counted = {what: (total, done) for what, total, done in notes.passes if total is not None}
    assert counted["finding shapes"] == (COUNT, COUNT)
    assert counted[last] == (COUNT, COUNT)
    assert all(total == done for total, done in counted.values())


def test_nobody_is_told_after_the_block(made: onnx.ModelProto) -> None:
    notes = Notes()
    with watched_by(notes.begin):
        pass
    ts.check(made)
    assert notes.passes == []
