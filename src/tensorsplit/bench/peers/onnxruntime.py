"""ONNX Runtime on the CPU: a Split-18 whose inputs and outputs are bound to our memory."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from tensorsplit.bench.floor import THREADS
from tensorsplit.bench.task import Prepared, Task, UnableError

_OPSET = 18
_IR_VERSION = 8
_FATAL = 4


def into_buffers(task: Task) -> Prepared:
    """A run with every output bound to a buffer."""
    source = task.source
    if source.dtype.hasobject:
        raise UnableError("it binds no memory to strings")
    if not source.flags.c_contiguous:
        raise UnableError("it takes contiguous sources only")
    session = _session(task)
    buffers = list(task.buffers)
    binding = session.io_binding()
    binding.bind_input("x", "cpu", 0, source.dtype, source.shape, source.ctypes.data)
    for number, buffer in enumerate(buffers):
        binding.bind_output(f"y{number}", "cpu", 0, buffer.dtype, buffer.shape, buffer.ctypes.data)
    return Prepared(partial(session.run_with_iobinding, binding), lambda _: buffers, buffers)


def _session(task: Task) -> Any:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = _FATAL
    options.intra_op_num_threads = THREADS
    # The threads may spin within a run as they always do, but not into the time of the next peer.
    options.add_session_config_entry("session.force_spinning_stop", "1")
    try:
        return onnxruntime.InferenceSession(
            _model(task).SerializeToString(), options, providers=["CPUExecutionProvider"]
        )
    except Exception as error:  # noqa: BLE001 - its exceptions share no base class
        raise UnableError(f"it refuses {task.source.dtype}", error) from None


def _model(task: Task) -> Any:
    from onnx import helper, numpy_helper

    element = helper.np_dtype_to_tensor_dtype(task.source.dtype)
    names = [f"y{number}" for number in range(len(task.expected))]
    node = helper.make_node("Split", ["x", "split"], names, axis=task.workload.axis)
    graph = helper.make_graph(
        [node],
        "cut",
        [helper.make_tensor_value_info("x", element, task.source.shape)],
        [helper.make_tensor_value_info(name, element, None) for name in names],
        [numpy_helper.from_array(np.array(task.workload.sizes, np.int64), "split")],
    )
    opset = helper.make_opsetid("", _OPSET)
    return helper.make_model(graph, opset_imports=[opset], ir_version=_IR_VERSION)
