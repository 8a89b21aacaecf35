"""How the cost grows with bytes, parts and rank: ``growth.json`` and a chart of each study.

And how that of the model tools grows with nodes: ``tools.json``.

Usage: ``python benchmarks/growth.py -o FOLDER [--quick]``
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import charts
import click
import onnx
from onnx import TensorProto, helper
from studies import STUDIES

import tensorsplit as ts
from tensorsplit.bench.figures import Figures, as_json, describe
from tensorsplit.bench.peers import choose_entries
from tensorsplit.bench.timing import Effort
from tensorsplit.bench.workers import measure, separate_workers

SECONDS = 1.0
"""For each point; there are about forty."""

NODES = (100, 1000, 10_000)

TOOLS: dict[str, Callable[[onnx.ModelProto], Any]] = {
    "infer": ts.infer_shapes,
    "check": ts.check,
    "convert": lambda model: ts.convert(model, opset=13),
    "lower": lambda model: ts.lower(model, target="portable"),
    "onnx: infer": onnx.shape_inference.infer_shapes,
    "onnx: check": lambda model: onnx.checker.check_model(model, full_check=True),
}


def take(*, quick: bool = False) -> Figures:
    """Measure every point of every study, beside NumPy."""
    effort = Effort(rounds=1) if quick else Effort(seconds=SECONDS)
    measured = []
    with separate_workers(choose_entries(("numpy",))) as workers:
        for study in STUDIES:
            click.echo(study.title)
            measured += [measure(workload, workers, effort) for workload in study.workloads]
    return Figures(describe(effort), tuple(measured))


def chain(nodes: int) -> onnx.ModelProto:
    """Splits, each of what the one before left, put together again in another order."""
    made = []
    for k in range(nodes // 2):
        parts = f"a{k}", f"b{k}"
        made.append(helper.make_node("Split", [f"x{k}"], parts, axis=1, num_outputs=2))
        made.append(helper.make_node("Concat", parts[::-1], [f"x{k + 1}"], axis=1))
    start = helper.make_tensor_value_info("x0", TensorProto.FLOAT, [2, 6])
    end = helper.make_tensor_value_info(f"x{nodes // 2}", TensorProto.FLOAT, [2, None])
    graph = helper.make_graph(made, "chain", [start], [end])
    imports = [helper.make_opsetid("", 18)]
    return helper.make_model(graph, opset_imports=imports, ir_version=9)


def is_right(tool: str, made: Any, nodes: int) -> bool:
    """Whether a tool makes of a chain what it has to."""
    if tool.endswith("check"):
        return not made
    splits = [node for node in made.graph.node if node.op_type == "Split"]
    if tool == "convert":
        return made.opset_import[0].version == 13 and len(splits) == nodes // 2
    if tool == "lower":
        return len(splits) == nodes // 2 and all(len(node.input) == 2 for node in splits)
    dims = made.graph.output[0].type.tensor_type.shape.dim
    return [dim.dim_value for dim in dims] == [2, 6] and len(made.graph.value_info) == 3 * (
        nodes // 2
    ) - 1


def take_tools(*, quick: bool = False) -> list[dict[str, Any]]:
    """The seconds of each tool for each number of nodes: processor time, the least of some."""
    rows = []
    for nodes in NODES[: 1 if quick else None]:
        model = chain(nodes)
        for name, tool in TOOLS.items():
            seconds = []
            for _ in range(1 if quick else 5):
                begun = time.process_time()
                made = tool(model)
                seconds.append(time.process_time() - begun)
            wrong = None if is_right(name, made, nodes) else "wrong result"
            rows.append({"tool": name, "nodes": nodes, "seconds": min(seconds), "wrong": wrong})
            click.echo(f"{name:12}{nodes:8,} nodes{1000 * min(seconds):10.1f} ms")
    return rows


def main() -> None:
    """Measure, and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-o", "--output", type=Path, required=True, help="the folder")
    parser.add_argument("--quick", action="store_true", help="one round")
    arguments = parser.parse_args()
    figures = take(quick=arguments.quick)
    arguments.output.mkdir(parents=True, exist_ok=True)
    (arguments.output / "growth.json").write_text(as_json(figures), encoding="utf-8")
    charts.draw_studies(figures, arguments.output)
    tools = take_tools(quick=arguments.quick)
    (arguments.output / "tools.json").write_text(json.dumps(tools, indent=1), encoding="utf-8")
    wrong = [
        f"{row['tool']}, {row['nodes']} nodes: {row['wrong']}" for row in tools if row["wrong"]
    ]
    raise SystemExit("\n".join([*figures.wrong, *wrong]) or 0)


if __name__ == "__main__":
    main()
