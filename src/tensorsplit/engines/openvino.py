"""OpenVINO, on the CPU: ONNX models through its own import, and IR files."""

from __future__ import annotations

from typing import Any

import openvino

from tensorsplit.engines.openvino_probe import check_splits
from tensorsplit.engines.openvino_tensors import to_array, to_tensor
from tensorsplit.engines.wire import EngineRefusal, Request

_DEVICE = "CPU"
_EXACT = {"EXECUTION_MODE_HINT": "ACCURACY"}


def run(request: Request) -> list[Any]:
    """Run a model.

    Args:
        request: An ONNX model or an IR file, and what to feed it.

    Returns:
        The outputs, in the order of the request.

    Raises:
        EngineRefusal: For values that OpenVINO has no tensors for.
        SplitError: For a split layer of an IR whose operands are wrong, which only OpenVINO
            could compute.
    """
    core = openvino.Core()
    source = (request.path,) if request.path else (request.data, b"")
    model = core.read_model(*source)
    tensors = _tensors(model, request)
    if request.probe:
        check_splits(core, model, tensors)
    compiled = core.compile_model(model, _DEVICE, _EXACT)
    inference = compiled.create_infer_request()
    inference.start_async(tensors)
    inference.wait()
    count = len(compiled.outputs)
    if count != len(request.outputs):
        raise EngineRefusal(f"it has {count} outputs, but the model has {len(request.outputs)}")
    return [to_array(inference.get_output_tensor(place)) for place in range(count)]


def _tensors(model: Any, request: Request) -> dict[int, Any]:
    """What is fed, by the position of the input; inputs that nothing uses are dropped on import."""
    if request.kind == "ir":
        return {place: to_tensor(value) for place, value in enumerate(request.feeds.values())}
    places = {name: place for place, port in enumerate(model.inputs) for name in port.names}
    return {
        places[name]: to_tensor(value) for name, value in request.feeds.items() if name in places
    }
