"""OpenVINO on the CPU: a VariadicSplit-1 whose inputs and outputs are set to our memory."""

from __future__ import annotations

from functools import partial
from typing import Any

from tensorsplit.bench.floor import THREADS
from tensorsplit.bench.task import Prepared, Task, UnableError

_CONFIG = {
    "INFERENCE_NUM_THREADS": THREADS,
    "NUM_STREAMS": 1,
    "EXECUTION_MODE_HINT": "ACCURACY",
    "ENABLE_CPU_PINNING": False,
}
_INEXACT = {
    "float16": "float32, which quiets signalling NaNs",
    "float64": "float32",
    "int64": "int32",
    "uint64": "int32",
}
"""Element types that do not keep their bits, measured on 2026.4.1."""


def into_buffers(task: Task) -> Prepared:
    """An inference with every output tensor set to a buffer."""
    source = task.source
    if source.dtype.hasobject:
        raise UnableError("its CPU plugin corrupts strings")
    if source.dtype.name in _INEXACT:
        raise UnableError(
            f"its CPU plugin computes {source.dtype} in {_INEXACT[source.dtype.name]}"
        )
    if not source.flags.c_contiguous:
        raise UnableError("it takes contiguous sources only")
    import openvino

    buffers = list(task.buffers)
    request = _request(task)
    request.set_input_tensor(openvino.Tensor(source, shared_memory=True))
    for number, buffer in enumerate(buffers):
        request.set_output_tensor(number, openvino.Tensor(buffer, shared_memory=True))
    return Prepared(partial(request.infer, share_outputs=True), lambda _: buffers, buffers)


def _request(task: Task) -> Any:
    import openvino
    from openvino import opset13

    try:
        parameter = opset13.parameter(task.source.shape, task.source.dtype)
        cut = opset13.variadic_split(parameter, task.workload.axis, list(task.workload.sizes))
        model = openvino.Model(cut.outputs(), [parameter])
        return openvino.Core().compile_model(model, "CPU", _CONFIG).create_infer_request()
    except Exception as error:  # noqa: BLE001 - its exceptions share no base class
        raise UnableError(f"it refuses {task.source.dtype}", error) from None
