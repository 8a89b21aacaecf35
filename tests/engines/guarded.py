"""An adapter that compiles one model and runs it with several feeds, whatever comes of each."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

import numpy as np

from tensorsplit.engines.adapters import from_openvino, run_onnxruntime, to_openvino


def run_all(
    engine: str, model: Any, feeds: list[dict[str, Any]], threads: int
) -> list[list[Any] | str]:
    """For each feed the outputs in order, or what the engine says."""
    try:
        once = {
            "onnxruntime": _onnxruntime,
            "openvino": _openvino,
            "openvino-extended": _extended,
            "onnx-reference": _reference,
        }
        run = once[engine](model, threads)
    except Exception as error:  # noqa: BLE001 - whatever the engine raises is what is asked for
        return [f"while loading: {error}"] * len(feeds)
    results: list[list[Any] | str] = []
    for fed in feeds:
        try:
            results.append([_sendable(value) for value in run(fed)])
        except Exception as error:  # noqa: BLE001 - as above
            results.append(str(error)[:300])
    return results


def shapes_in_openvino(model: bytes) -> dict[str, list[int | None]]:
    """What OpenVINO knows at import of every value that an output needs; None for what is open."""
    import openvino

    found: dict[str, list[int | None]] = {}
    for node in openvino.Core().read_model(model, b"").get_ordered_ops():
        for output in node.outputs():
            if output.partial_shape.rank.is_static:
                dims = [d.get_length() if d.is_static else None for d in output.partial_shape]
                found |= dict.fromkeys(output.names, dims)
    return found


def _sendable(value: Any) -> Any:
    return [np.asarray(part) for part in value] if isinstance(value, list) else np.asarray(value)


def _onnxruntime(model: bytes, threads: int) -> Any:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(model, options, ["CPUExecutionProvider"])
    return lambda fed: session.run(None, fed)


def _extended(model: bytes, threads: int) -> Any:
    import tensorsplit as ts

    return _openvino(model, threads, ts.openvino.extensions())


def _openvino(model: bytes | str, threads: int, extensions: Any = ()) -> Any:
    import openvino

    core = openvino.Core()
    for extension in extensions:
        core.add_extension(extension)
    read = core.read_model(model) if isinstance(model, str) else core.read_model(model, b"")
    config = {"EXECUTION_MODE_HINT": "ACCURACY", "INFERENCE_NUM_THREADS": threads}
    compiled = core.compile_model(read, "CPU", config)
    places = {name: place for place, port in enumerate(read.inputs) for name in port.names}

    def run(fed: dict[str, Any]) -> list[Any]:
        request = compiled.create_infer_request()
        request.start_async({places[n]: to_openvino(x) for n, x in fed.items() if n in places})
        request.wait()
        count = len(compiled.outputs)
        return [from_openvino(request.get_output_tensor(place)) for place in range(count)]

    return run


def _reference(model: bytes, threads: int) -> Any:
    import onnx
    from onnx.reference import ReferenceEvaluator

    del threads
    evaluator = ReferenceEvaluator(onnx.load_from_string(model))
    return lambda fed: evaluator.run(None, fed)


def run_unoptimized(
    model: bytes, weights: bytes, inputs: dict[str, Any], outputs: list[str]
) -> dict[str, Any]:
    """Run a model in onnxruntime as it is, without any optimisation; arguments as of an adapter."""
    import onnxruntime

    made = onnxruntime.SessionOptions

    def plain() -> Any:
        options = made()
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        return options

    with patch.object(onnxruntime, "SessionOptions", plain):
        return run_onnxruntime(model, weights, inputs, outputs)
