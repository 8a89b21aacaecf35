"""What a run of a model costs: sessions and single runs beside onnx's evaluator and onnxruntime.

Usage: ``python benchmarks/sessions.py [--quick]``. Outputs are compared before anything is timed.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import click
import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

import tensorsplit as ts

_FLOAT = TensorProto.FLOAT
_WIDTH, _HEADS, _LAYERS = 128, 4, 2
_PAUSE = 0.1
"""Until the threads of another library no longer spin for more work."""


def transformer() -> tuple[onnx.ModelProto, dict[str, Any]]:
    """Two layers of attention and a perceptron, with 1.2 MB of weights, and what is fed."""
    random = np.random.default_rng(0)
    weights: list[TensorProto] = []
    nodes: list[onnx.NodeProto] = []

    def weight(name: str, *shape: int) -> str:
        values = random.normal(0, 0.05, shape).astype(np.float32)
        weights.append(numpy_helper.from_array(values, name))
        return name

    def constant(name: str, values: Any) -> str:
        weights.append(numpy_helper.from_array(np.asarray(values), name))
        return name

    def add(op_type: str, inputs: list[str], outputs: list[str], **attributes: Any) -> str:
        nodes.append(helper.make_node(op_type, inputs, outputs, **attributes))
        return outputs[0]

    head = _WIDTH // _HEADS
    heads = constant("heads", np.array([0, 0, _HEADS, head]))
    joined = constant("joined", np.array([0, 0, _WIDTH]))
    scale = constant("scale", np.float32(head**-0.5))
    thirds = constant("thirds", np.array([_WIDTH] * 3))
    value = "x"
    for layer in range(_LAYERS):
        p = f"l{layer}_"
        gains = [weight(f"{p}gain{k}", _WIDTH) for k in range(2)]
        normed = add("LayerNormalization", [value, gains[0]], [f"{p}n0"])
        qkv = add("MatMul", [normed, weight(f"{p}wqkv", _WIDTH, 3 * _WIDTH)], [f"{p}qkv"])
        parts = [f"{p}{name}" for name in "qkv"]
        add("Split", [qkv, thirds], parts, axis=2)
        orders = ([0, 2, 1, 3], [0, 2, 3, 1], [0, 2, 1, 3])
        q, k, v = (
            add("Transpose", [add("Reshape", [part, heads], [f"{part}r"])], [f"{part}t"], perm=perm)
            for part, perm in zip(parts, orders, strict=True)
        )
        scores = add("Mul", [add("MatMul", [q, k], [f"{p}qk"]), scale], [f"{p}s"])
        seen = add("MatMul", [add("Softmax", [scores], [f"{p}a"], axis=-1), v], [f"{p}o"])
        flat = add("Transpose", [seen], [f"{p}ot"], perm=[0, 2, 1, 3])
        flat = add("Reshape", [flat, joined], [f"{p}of"])
        made = add("MatMul", [flat, weight(f"{p}wo", _WIDTH, _WIDTH)], [f"{p}p"])
        value = add("Add", [value, made], [f"{p}x1"])
        normed = add("LayerNormalization", [value, gains[1]], [f"{p}n1"])
        inner = add("MatMul", [normed, weight(f"{p}w1", _WIDTH, 5 * _WIDTH // 2)], [f"{p}h"])
        inner = add("Relu", [inner], [f"{p}hr"])
        made = add("MatMul", [inner, weight(f"{p}w2", 5 * _WIDTH // 2, _WIDTH)], [f"{p}m"])
        value = add("Add", [value, made], [f"{p}x2"])
    shape: list[str | int] = ["batch", "tokens", _WIDTH]
    graph = helper.make_graph(
        nodes,
        "transformer",
        [helper.make_tensor_value_info("x", _FLOAT, shape)],
        [helper.make_tensor_value_info(value, _FLOAT, shape)],
        weights,
    )
    return _model(graph), {"x": random.normal(size=(1, 32, _WIDTH)).astype(np.float32)}


def splits_and_joins() -> tuple[onnx.ModelProto, dict[str, Any]]:
    """A tensor of 16 MB, split in three along its rows and joined in another order, twice."""
    rows, columns = 1024, 4096
    sizes = numpy_helper.from_array(np.array([1024, 2048, 1024]), "sizes")
    shape: list[str | int] = ["rows", columns]
    graph = helper.make_graph(
        [
            helper.make_node("Split", ["x", "sizes"], ["a", "b", "c"], axis=1),
            helper.make_node("Concat", ["c", "a", "b"], ["y"], axis=1),
            helper.make_node("Split", ["y", "sizes"], ["d", "e", "f"], axis=1),
            helper.make_node("Concat", ["f", "e", "d"], ["z"], axis=1),
        ],
        "splits_and_joins",
        [helper.make_tensor_value_info("x", _FLOAT, shape)],
        [helper.make_tensor_value_info("z", _FLOAT, shape)],
        [sizes],
    )
    values = np.random.default_rng(0).normal(size=(rows, columns)).astype(np.float32)
    return _model(graph), {"x": values}


def _model(graph: onnx.GraphProto) -> onnx.ModelProto:
    imports = [helper.make_opsetid("", 18)]
    return helper.make_model(graph, opset_imports=imports, ir_version=9)


def measure(made: tuple[onnx.ModelProto, dict[str, Any]], rounds: int) -> dict[str, list[float]]:
    """How many milliseconds each way of running a model takes, interleaved over the rounds."""
    model, inputs = made
    evaluator = ReferenceEvaluator(model)
    options = onnxruntime.SessionOptions()
    other = onnxruntime.InferenceSession(model.SerializeToString(), options)
    with ExitStack() as stack:

        def session(**choices: Any) -> Callable[[], Any]:
            opened = stack.enter_context(ts.session(model, **choices))
            return lambda: list(opened.run(inputs).values())

        ways: dict[str, Callable[[], Any]] = {
            "onnx's evaluator": lambda: evaluator.run(None, inputs),
            "onnxruntime": lambda: other.run(None, inputs),
            "session, numpy": session(engine="numpy"),
            "run, numpy": lambda: list(ts.run(model, inputs, engine="numpy").values()),
            "session, onnxruntime here": session(engine="onnxruntime", isolate=False),
            "session, onnxruntime": session(engine="onnxruntime"),
            "run, onnxruntime": lambda: list(ts.run(model, inputs, engine="onnxruntime").values()),
        }
        expected = evaluator.run(None, inputs)
        for name, way in ways.items():
            for found, wanted in zip(way(), expected, strict=True):
                np.testing.assert_allclose(found, wanted, rtol=1e-3, atol=1e-4, err_msg=name)
        times: dict[str, list[float]] = {name: [] for name in ways}
        for _ in range(rounds):
            for name, way in ways.items():
                time.sleep(_PAUSE)
                way()  # the caches are another's still
                begun = time.perf_counter()
                way()
                times[name].append(1000 * (time.perf_counter() - begun))
    return times


def main() -> None:
    """Measure both models, and print minimum and median."""
    rounds = 1 if "--quick" in sys.argv else 40
    for make in (transformer, splits_and_joins):
        click.echo(f"{make.__name__} (ms, minimum and median of {rounds})")
        for name, times in measure(make(), rounds).items():
            click.echo(f"  {name:27}{min(times):9.2f}{statistics.median(times):9.2f}")


if __name__ == "__main__":
    main()
