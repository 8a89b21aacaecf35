"""OpenVINO, on the CPU: ONNX models through its own import, and IR."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tensorsplit.conformance.subjects import ordered, unsupported
from tensorsplit.engines.wire import EngineRefusal

KIND = "engine"
PACKAGES = ("openvino",)
MODULES = ("openvino",)
FORMATS = ("onnx", "ir")

IMPORTS = "import openvino"
SCRIPT = """\
core = openvino.Core()
model = core.read_model(MODEL, WEIGHTS)
compiled = core.compile_model(model, "CPU", {"EXECUTION_MODE_HINT": "ACCURACY"})
request = compiled.create_infer_request()
names = [port.get_node().get_friendly_name() for port in model.inputs]
request.infer({place: INPUTS[name] for place, name in enumerate(names)})
tensors = [request.get_output_tensor(place) for place in range(len(OUTPUTS))]
results = {
    name: tensor.str_data if tensor.element_type == openvino.Type.string else tensor.data
    for name, tensor in zip(OUTPUTS, tensors)
}"""

FOREIGN_SCRIPT = """\
FOREIGN = {
    "bf16": ml_dtypes.bfloat16, "f8e4m3": ml_dtypes.float8_e4m3fn, "f8e5m2": ml_dtypes.float8_e5m2,
    "f8e8m0": ml_dtypes.float8_e8m0fnu, "f4e2m1": ml_dtypes.float4_e2m1fn, "i4": ml_dtypes.int4,
    "u4": ml_dtypes.uint4, "u2": ml_dtypes.uint2,
}  # fmt: skip


def to_tensor(array, kind):
    if kind.get_type_name() not in FOREIGN:
        return openvino.Tensor(array)
    tensor, data = openvino.Tensor(kind, openvino.Shape(array.shape)), array.reshape(-1)
    data, bits = data.view(np.uint8), kind.bitwidth
    if bits < 8:  # packed, low bits first
        data = np.pad(data & (1 << bits) - 1, (0, -data.size * bits % 8 // bits))
        shifts = np.arange(0, 8, bits, dtype=np.uint8)
        data = np.bitwise_or.reduce(data.reshape(-1, 8 // bits) << shifts, axis=1)
    tensor.data.reshape(-1).view(np.uint8)[:] = data
    return tensor


def to_array(tensor):
    kind, shape = tensor.element_type, tuple(tensor.shape)
    if kind.get_type_name() not in FOREIGN:
        return tensor.data
    data, bits = np.ascontiguousarray(tensor.data).reshape(-1).view(np.uint8), kind.bitwidth
    if bits < 8:
        shifts = np.arange(0, 8, bits, dtype=np.uint8)
        data = (data[:, None] >> shifts & (1 << bits) - 1).reshape(-1)[: int(np.prod(shape))]
        if kind == openvino.Type.i4:
            data = (data ^ 8) - np.uint8(8)
    return data.view(FOREIGN[kind.get_type_name()]).reshape(shape)


core = openvino.Core()
model = core.read_model(MODEL, WEIGHTS)
compiled = core.compile_model(model, "CPU", {"EXECUTION_MODE_HINT": "ACCURACY"})
request = compiled.create_infer_request()
fed = [(INPUTS[port.get_node().get_friendly_name()], port.element_type) for port in model.inputs]
request.infer({place: to_tensor(*pair) for place, pair in enumerate(fed)})
tensors = [request.get_output_tensor(place) for place in range(len(OUTPUTS))]
results = {name: to_array(tensor) for name, tensor in zip(OUTPUTS, tensors)}"""

_UNSUPPORTED = (
    r"No conversion rule found for operations: [A-Za-z]+-\d+"  # an operator of the model
    r"|Unsupported data type|does not support string|can ?not be created for string data"
)


def run(
    model: bytes, weights: bytes, inputs: dict[str, Any], outputs: Sequence[str]
) -> dict[str, Any]:
    """Run a model; see `tensorsplit.conformance.subjects`."""
    with unsupported(model, EngineRefusal, says=_UNSUPPORTED):
        return _infer(model, weights, inputs, outputs)


def _infer(
    model: bytes, weights: bytes, inputs: dict[str, Any], outputs: Sequence[str]
) -> dict[str, Any]:
    import openvino

    from tensorsplit.engines.openvino_tensors import to_array, to_tensor

    core = openvino.Core()
    network = core.read_model(model, weights)
    compiled = core.compile_model(network, "CPU", {"EXECUTION_MODE_HINT": "ACCURACY"})
    inference = compiled.create_infer_request()
    names = [_name(port, inputs) for port in network.inputs]
    inference.infer(dict(enumerate(map(to_tensor, ordered(model, inputs, names)))))
    tensors = [inference.get_output_tensor(place) for place in range(len(compiled.outputs))]
    return {name: to_array(tensor) for name, tensor in zip(outputs, tensors, strict=True)}


def _name(port: Any, inputs: dict[str, Any]) -> str:
    """What an input is called by those who feed it: its layer, or one of its tensor's names."""
    layer: str = port.get_node().get_friendly_name()
    return next((name for name in port.names if name in inputs), layer)
