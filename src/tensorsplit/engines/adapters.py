"""The adapters: how a model is run in each engine, as in the engine's own documentation.

They import their engine when they are called, which is in a process that may die. The conformance
suite runs the same functions, and prints them as scripts, so they use little of this package.
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from io import BytesIO
from math import prod
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, TypeAlias

import ml_dtypes
import numpy as np

from tensorsplit.arrays.numpy import element_type, numpy_name
from tensorsplit.core.records.openvino import ELEMENT_TYPES
from tensorsplit.engines.messages import Unsupported

if TYPE_CHECKING:
    import onnxruntime
    import openvino

Array: TypeAlias = "np.ndarray"

Outputs: TypeAlias = dict[str, Any]
"""The outputs of a model, by name."""

Run: TypeAlias = Callable[[Mapping[str, object], Sequence[str]], Outputs]
"""Runs a model that is loaded, on inputs by name; returns the outputs that are named."""


def run_onnx_reference(
    model: str | bytes, weights: bytes, inputs: Mapping[str, object], outputs: Sequence[str]
) -> Outputs:
    """Run an ONNX model, by its path or bytes, in onnx's reference evaluator; no weights."""
    return load_onnx_reference(model, weights)(inputs, outputs)


def load_onnx_reference(model: str | bytes, weights: bytes) -> Run:
    """Load a model, as `run_onnx_reference` takes it, for many runs."""
    import onnx
    from onnx.reference import ReferenceEvaluator

    del weights
    proto = onnx.load(model) if isinstance(model, str) else onnx.load_from_string(model)
    evaluator = ReferenceEvaluator(proto)
    for constant in evaluator.rt_inits_.values():
        if isinstance(constant, np.ndarray):
            constant.flags.writeable = False  # an output may be a view of it

    def run(inputs: Mapping[str, object], outputs: Sequence[str]) -> Outputs:
        found = evaluator.run(list(outputs), dict(inputs))
        return dict(zip(outputs, found, strict=True))

    return run


def run_onnxruntime(
    model: str | bytes, weights: bytes, inputs: Mapping[str, object], outputs: Sequence[str]
) -> Outputs:
    """Run a model in onnxruntime, on the CPU; arguments as of `run_onnx_reference`."""
    return load_onnxruntime(model, weights)(inputs, outputs)


def load_onnxruntime(model: str | bytes, weights: bytes) -> Run:
    """Load a model, as `run_onnxruntime` takes it, for many runs."""
    import onnxruntime

    del weights
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4  # what goes wrong is in the exception as well
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    is_plain = not any(_FOREIGN.fullmatch(output.type) for output in session.get_outputs())

    def run(inputs: Mapping[str, object], outputs: Sequence[str]) -> Outputs:
        names, values = list(outputs), dict(inputs)
        if is_plain:
            feeds = {name: _ort_value(x) if _is_foreign(x) else x for name, x in values.items()}
            return dict(zip(names, session.run(names, feeds), strict=True))
        feeds = {name: _ort_value(x) for name, x in values.items()}
        found = session.run_with_ort_values(names, feeds)
        return {name: _from_ort(value) for name, value in zip(names, found, strict=True)}

    return run


_FOREIGN = re.compile(r"tensor\((bfloat16|float[468]e\w+|u?int[24])\)")


def _is_foreign(value: object) -> bool:
    """Return whether it is an array of a type that onnxruntime does not take from NumPy."""
    return isinstance(value, np.ndarray) and value.dtype.isbuiltin == 2


def _ort_value(value: object) -> object:
    """Return an array as a tensor in onnxruntime's own memory."""
    import onnxruntime
    from onnx.helper import np_dtype_to_tensor_dtype

    if not isinstance(value, np.ndarray) or value.dtype.kind in "OUST":
        raise Unsupported(
            "strings, sequences and optionals can't be fed where an output is of a type that"
            " NumPy does not have"
        )
    array = np.ascontiguousarray(value).reshape(value.shape)
    if not _is_foreign(array):
        return onnxruntime.OrtValue.ortvalue_from_numpy(array)
    tensor = onnxruntime.OrtValue.ortvalue_from_shape_and_type(
        list(array.shape), np_dtype_to_tensor_dtype(array.dtype)
    )
    octets = pack(array)
    if octets.size:
        ctypes.memmove(tensor.data_ptr(), octets.ctypes.data, octets.size)
    return tensor


def _from_ort(value: onnxruntime.OrtValue) -> object:
    """Return an output of onnxruntime as an array."""
    from onnx import TensorProto
    from onnx.helper import tensor_dtype_to_np_dtype

    foreign = _FOREIGN.fullmatch(value.data_type())
    if foreign is None:
        return value.numpy()
    shape = value.shape()
    dtype = tensor_dtype_to_np_dtype(getattr(TensorProto, foreign[1].upper()))
    size = packed_size(dtype, prod(shape))
    data = ctypes.string_at(value.data_ptr(), size) if size else b""
    return unpack(data, dtype, prod(shape)).reshape(shape)


def run_openvino(
    model: str | bytes, weights: bytes, inputs: Mapping[str, object], outputs: Sequence[str]
) -> Outputs:
    """Run an ONNX model or an IR in OpenVINO, on the CPU.

    The weights are what the ``.bin`` file of an IR holds, where the model is the text of the IR.
    """
    return load_openvino(model, weights)(inputs, outputs)


def load_openvino(model: str | bytes, weights: bytes) -> Run:
    """Load a model, as `run_openvino` takes it, for many runs."""
    import openvino

    core = openvino.Core()
    network = read_openvino(core, model, weights)
    infer = compile_openvino(core, network)

    def run(inputs: Mapping[str, object], outputs: Sequence[str]) -> Outputs:
        return infer(openvino_tensors(network, model, inputs), outputs)

    return run


def read_openvino(core: openvino.Core, model: str | bytes, weights: bytes) -> openvino.Model:
    """Read a model, as `run_openvino` takes it: an ONNX model from a file, as users give it.

    From bytes OpenVINO makes other nodes of some models, and runs what it refuses from a file. An
    IR of version 10 is read as one of version 11: of version 10, it makes inputs and outputs f32 or
    i32 where the file has another type, and refuses an input that is an output (all measured on
    2026.4.1).
    """
    text = _of_version_11(model)
    if isinstance(model, bytes):
        if is_ir(model):
            return core.read_model(text or model, weights)
        return _read_copy(core, "model.onnx", model)
    if text is None:
        return core.read_model(model)
    data = Path(model).with_suffix(".bin")
    return _read_copy(core, "model.xml", text, str(data) if data.exists() else "")


def _read_copy(core: openvino.Core, name: str, content: bytes, weights: str = "") -> openvino.Model:
    """Read a model from a temporary file of this name."""
    with TemporaryDirectory(prefix="tensorsplit-") as folder:
        copy = Path(folder, name)
        copy.write_bytes(content)
        return core.read_model(str(copy), weights)


def _of_version_11(model: str | bytes) -> bytes | None:
    """Return an IR of version 10, a path or its text, as version 11; None for any other model."""
    from defusedxml.ElementTree import fromstring, iterparse, tostring

    if not (model.lower().endswith(".xml") if isinstance(model, str) else is_ir(model)):
        return None
    with Path(model).open("rb") if isinstance(model, str) else BytesIO(model) as file:
        _, root = next(iter(iterparse(file, ["start"], forbid_dtd=True)))
        if root.get("version") != "10":
            return None
        file.seek(0)
        root = fromstring(file.read(), forbid_dtd=True)
    root.set("version", "11")
    return bytes(tostring(root))


def compile_openvino(
    core: openvino.Core, network: openvino.Model
) -> Callable[[Mapping[int, openvino.Tensor], Sequence[str]], Outputs]:
    """Compile a model that OpenVINO has read; it runs on tensors as of `openvino_tensors`.

    After a run that failed it is compiled again: nodes keep the shapes of that run, so that data
    that is right is refused, or comes out in another shape (measured on 2026.4).
    """
    made = partial(core.compile_model, network, "CPU", {"EXECUTION_MODE_HINT": "ACCURACY"})
    compiled: openvino.CompiledModel | None = made()

    def infer(fed: Mapping[int, openvino.Tensor], outputs: Sequence[str]) -> Outputs:
        nonlocal compiled
        taken = compiled = compiled or made()
        request = taken.create_infer_request()  # without the state of an earlier run
        request.start_async(fed)  # infer() loses errors where there is one thread
        try:
            request.wait()
        except RuntimeError:
            compiled = None
            raise
        tensors = [request.get_output_tensor(place) for place in range(len(taken.outputs))]
        return {name: from_openvino(tensor) for name, tensor in zip(outputs, tensors, strict=True)}

    return infer


def openvino_tensors(
    network: openvino.Model, model: str | bytes, inputs: Mapping[str, object]
) -> dict[int, openvino.Tensor]:
    """Return the inputs of OpenVINO, by the position of the input.

    Inputs have the name of their layer, or one of the names of its tensor.
    """
    names = [
        next((name for name in port.names if name in inputs), port.get_node().get_friendly_name())
        for port in network.inputs
    ]
    fed = ordered(model, inputs, _of_model(model, inputs, names))
    return dict(enumerate(map(to_openvino, fed)))


def _of_model(
    model: str | bytes, inputs: Mapping[str, object], names: Sequence[str]
) -> Sequence[str]:
    """Return OpenVINO's names of inputs, but those of the model where it gave them others.

    An input of a Dropout, and one that is taken out of a sequence, have the name of what comes out
    (measured on 2026.4.1); their order stays.
    """
    if inputs.keys() >= set(names) or (isinstance(model, bytes) and is_ir(model)):
        return names
    import onnx

    whole = model if isinstance(model, bytes) else Path(model).read_bytes()
    graph = onnx.load_from_string(whole).graph
    left = [each.name for each in graph.input if each.name in inputs and each.name not in names]
    if len(left) != sum(name not in inputs for name in names):
        return names
    of_model = iter(left)
    return [name if name in inputs else next(of_model) for name in names]


_OPENVINO_NAMES = {name: other for other, name in ELEMENT_TYPES.items()}
_OPENVINO_ONLY = ("nf4", "u1", "u3", "u6")


def to_openvino(value: object) -> openvino.Tensor:
    """Return an array as OpenVINO's tensor, bit for bit."""
    import openvino

    if not isinstance(value, np.ndarray):
        raise Unsupported("sequences and optionals can't be fed")
    if value.dtype.kind in "OUST":
        if any(str(text).endswith("\0") for text in value.flat):
            raise Unsupported("strings that end in a NUL character can't be fed")
        return openvino.Tensor(value.astype("U"))
    name = _OPENVINO_NAMES.get(element_type(value))
    kind = getattr(openvino.Type, name) if name else openvino.Type(value.dtype)
    tensor = openvino.Tensor(kind, openvino.Shape(list(value.shape)))
    if value.size:
        tensor.data.reshape(-1).view(np.uint8)[:] = pack(value)
    return tensor


def from_openvino(tensor: openvino.Tensor) -> Array:
    """Return a tensor of OpenVINO as a new array."""
    name, shape = tensor.element_type.get_type_name(), tuple(tensor.shape)
    if name == "string":
        return np.array(tensor.str_data.tolist(), dtype=object).reshape(shape)
    if name in _OPENVINO_ONLY:
        raise Unsupported(f"NumPy has no arrays of {name}")
    dtype = np.dtype(numpy_name(ELEMENT_TYPES[name]))  # of NumPy, or of `ml_dtypes`
    data = np.ascontiguousarray(tensor.data).tobytes()
    return unpack(data, dtype, prod(shape)).reshape(shape)


def ordered(model: str | bytes, inputs: Mapping[str, object], names: Sequence[str]) -> list[Any]:
    """Return the inputs in the engine's own order, without those it dropped as unused.

    Raises:
        LookupError: If the engine has made a constant of an input that is fed another value, which
            would be lost silently; if an input of the engine is not fed.
    """
    lost = inputs.keys() - set(names)
    if lost and isinstance(model, bytes) and not is_ir(model):
        import onnx

        defaults = [entry.name for entry in onnx.load_from_string(model).graph.initializer]
        folded = ", ".join(name for name in defaults if name in lost)
        if folded:
            raise LookupError(f"the engine takes the default of {folded} for a constant")
    missing = [name for name in names if name not in inputs]
    if missing:
        raise LookupError(f"the engine wants to be fed {', '.join(missing)}, which has a value")
    return [inputs[name] for name in names]


def is_ir(model: bytes) -> bool:
    """Return whether a model is the text of an IR, and not a serialised ONNX model."""
    return model.lstrip().startswith(b"<")


_BITS = {
    np.dtype(kind): bits
    for bits, kinds in (
        (4, (ml_dtypes.int4, ml_dtypes.uint4, ml_dtypes.float4_e2m1fn)),
        (2, (ml_dtypes.int2, ml_dtypes.uint2)),
    )
    for kind in kinds
}
"""The types whose elements are smaller than a byte; NumPy holds each in a byte of its own.

OpenVINO and onnxruntime pack them as ONNX does, low bits first (measured on 2026.4 and 1.31).
"""


def packed_size(dtype: np.dtype, count: int) -> int:
    """Return how many bytes so many elements take where they are packed."""
    return -(-count * _BITS.get(dtype, 8 * dtype.itemsize) // 8)


def pack(array: Array) -> Array:
    """Return the elements of an array of numbers as packed, little-endian bytes, 1-D."""
    if array.dtype in _BITS:
        from onnx.numpy_helper import from_array

        return np.frombuffer(from_array(array).raw_data, np.uint8)
    flat = np.ascontiguousarray(array).reshape(-1)
    return np.asarray(flat.astype(flat.dtype.newbyteorder("<"), copy=False).view(np.uint8))


def unpack(data: bytes, dtype: np.dtype, count: int) -> Array:
    """Return the inverse of `pack`: a new, writable 1-D array; the bytes need not be aligned."""
    if dtype not in _BITS:
        return np.frombuffer(bytearray(data), dtype.newbyteorder("<"))
    from onnx import TensorProto
    from onnx.helper import np_dtype_to_tensor_dtype
    from onnx.numpy_helper import to_array

    kind = np_dtype_to_tensor_dtype(dtype)
    return to_array(TensorProto(dims=[count], data_type=kind, raw_data=data))
