"""Adapters of runtimes, besides those that `tensorsplit.engines.adapters` has.

Each function does what the runtime's own documentation shows, and nothing else.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import ml_dtypes
import numpy as np
import onnx

import tensorsplit
from tensorsplit.engines.adapters import Outputs, is_ir, ordered
from tensorsplit.engines.messages import Unsupported


def run_numpy(
    model: bytes, weights: bytes, inputs: Mapping[str, object], outputs: Sequence[str]
) -> Outputs:
    """Run in our own engine."""
    del outputs
    if not is_ir(model):
        return tensorsplit.run(onnx.load_from_string(model), inputs)
    with TemporaryDirectory() as folder:
        path = Path(folder, "model.xml")
        path.write_bytes(model)
        path.with_suffix(".bin").write_bytes(weights)
        return tensorsplit.run(path, inputs)


def run_tvm(
    model: bytes, weights: bytes, inputs: Mapping[str, object], outputs: Sequence[str]
) -> Outputs:
    """Run a model by Apache TVM: its ONNX frontend for Relax, compiled by LLVM for the CPU."""
    import tvm
    from tvm import relax
    from tvm.relax.frontend.onnx import from_onnx

    del weights
    module = from_onnx(onnx.load_from_string(model))
    machine = relax.VirtualMachine(tvm.compile(module, target="llvm"), tvm.cpu())
    names = [parameter.name for parameter in module["main"].params]
    machine.set_input("main", *map(tvm.runtime.tensor, ordered(model, inputs, names)))
    machine.invoke_stateful("main")
    found = machine.get_outputs("main")
    values = [found] if len(outputs) == 1 else list(found)
    return {name: _from_tvm(value) for name, value in zip(outputs, values, strict=True)}


def _from_tvm(value: Any) -> Any:
    """Return a tensor as an array; a sequence is a tuple of tensors."""
    return value.numpy() if hasattr(value, "numpy") else [_from_tvm(part) for part in value]


def run_iree(
    model: bytes, weights: bytes, inputs: Mapping[str, object], outputs: Sequence[str]
) -> Outputs:
    """Run in IREE: ONNX through torch-mlir, compiled by LLVM for the CPU.

    This is what the command iree-import-onnx does, then compile and call. The compiler runs in a
    process of its own. What kills that process kills this one too, so that a crash is seen as one.
    """
    import iree.compiler
    import iree.compiler.ir
    import iree.runtime
    from iree.compiler.extras import onnx_importer

    del weights
    proto = onnx.load_from_string(model)
    onnx.checker.check_model(proto)
    info = onnx_importer.ModelInfo(onnx.shape_inference.infer_shapes(proto, data_prop=True))
    module = info.create_module(context=iree.compiler.ir.Context()).operation
    onnx_importer.NodeImporter.define_function(info.main_graph, module).import_all()
    flags = ["--iree-llvmcpu-target-cpu=generic", "--iree-input-demote-f64-to-f32=false"]
    try:
        code = iree.compiler.compile_str(
            str(module), target_backends=["llvm-cpu"], extra_args=flags
        )
    except iree.compiler.CompilerToolError as error:
        killed = re.search(r"Error code: -(\d+)", str(error))
        if killed:
            os.kill(os.getpid(), int(killed[1]))
        raise
    function = iree.runtime.load_vm_flatbuffer(code, driver="local-sync")[proto.graph.name]
    found = function(*ordered(model, inputs, list(info.main_graph.input_map)))
    values = found if isinstance(found, tuple) else (found,)
    results = {}
    for name, entry, value in zip(outputs, proto.graph.output, values, strict=True):
        array = value.to_host()  # whose integers have no sign; the model tells whether they should
        dtype = onnx.helper.tensor_dtype_to_np_dtype(entry.type.tensor_type.elem_type)
        is_unsigned = array.dtype.kind == "i" and dtype.kind == "u"
        results[name] = array.view(dtype) if is_unsigned else array
    return results


def run_opencv(
    model: bytes, weights: bytes, inputs: Mapping[str, object], outputs: Sequence[str]
) -> Outputs:
    """Run in OpenCV's dnn module; an output without elements may come out as None."""
    import cv2

    del weights
    net = cv2.dnn.readNetFromONNX(np.frombuffer(model, np.uint8))
    for name, value in inputs.items():
        net.setInput(np.asarray(value), name)
    return dict(zip(outputs, net.forward(list(outputs)), strict=True))


def run_tract(
    model: bytes, weights: bytes, inputs: Mapping[str, object], outputs: Sequence[str]
) -> Outputs:
    """Run in tract; an input whose shape the model leaves open gets that of what is fed."""
    import tract

    del weights
    with TemporaryDirectory() as folder:
        path = Path(folder, "model.onnx")
        path.write_bytes(model)
        loaded = tract.onnx().load(path)
    names = [loaded.input_name(place) for place in range(loaded.input_count())]
    fed = ordered(model, inputs, names)
    for place, array in enumerate(fed):
        if "?" in loaded.input_fact(place).dump():
            kind = "bool" if array.dtype == bool else f"{array.dtype.kind}{8 * array.itemsize}"
            loaded.set_input_fact(place, ",".join([*map(str, array.shape), kind]))
    found = loaded.into_model().into_runnable().run(fed)
    return {name: value.to_numpy() for name, value in zip(outputs, found, strict=True)}


def run_mnn(
    model: bytes, weights: bytes, inputs: Mapping[str, object], outputs: Sequence[str]
) -> Outputs:
    """Run in MNN: converted by the module that its command ``mnnconvert`` calls, on the CPU.

    That command itself runs pip and calls a log service, both when it is imported. The converter
    makes 32 bits of types of 64, and a float of a float16; what is fed has to follow.
    """
    import _tools
    import MNN

    del weights
    fed = {name: _mnn_array(value) for name, value in inputs.items()}
    with TemporaryDirectory() as folder:
        source, made = Path(folder, "model.onnx"), Path(folder, "model.mnn")
        source.write_bytes(model)
        files = ["--modelFile", str(source), "--MNNModel", str(made)]
        with _printed(Path(folder, "printed.txt")) as printed:
            _tools.mnnconvert(["mnnconvert", "-f", "ONNX", *files])
        if not made.is_file():  # the converter returns True even so, and prints why
            lacking = re.search("These Op Not Support.*", printed.read_text("utf-8", "replace"))
            raise Unsupported(lacking[0]) if lacking else RuntimeError("Converted Failed!")
        module = MNN.nn.load_module_from_file(str(made), list(fed), list(outputs), thread_num=1)
    found = module.onForward([_mnn_value(array) for array in fed.values()])
    if len(found) != len(outputs):
        raise RuntimeError(f"{len(found)} of {len(outputs)} outputs")
    try:
        return {name: np.array(value.read()) for name, value in zip(outputs, found, strict=True)}
    except SystemError as error:  # whose text is empty
        raise error.__cause__ or error from None


@contextmanager
def _printed(path: Path) -> Iterator[Path]:
    """Redirect all prints, in whatever language, to a file meanwhile."""
    stream = os.dup(1)
    with path.open("wb") as file:
        os.dup2(file.fileno(), 1)
    try:
        yield path
    finally:
        os.dup2(stream, 1)
        os.close(stream)


def _mnn_array(value: object) -> Any:
    """Return an array of the type that MNN's converter gives the input that it is for."""
    if not isinstance(value, np.ndarray) or value.dtype.kind in "OUSTc":
        raise Unsupported("MNN has no strings, complex numbers, sequences and optionals")
    if value.dtype not in (np.int8, np.uint8):
        value = value.astype(np.int32 if value.dtype.kind in "biu" else np.float32)
    return np.ascontiguousarray(value).reshape(value.shape)


def _mnn_value(array: Any) -> Any:
    from MNN import expr

    kinds = {"float32": expr.float, "int32": expr.int, "int8": expr.int8, "uint8": expr.uint8}
    data = array.reshape(-1).tolist() if array.dtype == np.int8 else array  # it takes no array
    return expr.const(data, list(array.shape), expr.NCHW, kinds[str(array.dtype)])


def run_tinygrad(
    model: bytes, weights: bytes, inputs: Mapping[str, object], outputs: Sequence[str]
) -> Outputs:
    """Run in tinygrad's ONNX runner, on the device that tinygrad chooses.

    Its CPU device needs clang. Where there is none, and no device is requested in ``DEV``, its
    interpreter in Python does the work.
    """
    if shutil.which("clang") is None:
        os.environ.setdefault("DEV", "PYTHON")  # read when tinygrad is imported
    from tinygrad import Tensor, dtypes
    from tinygrad.nn.onnx import OnnxRunner

    del weights
    found = OnnxRunner(Tensor(model))(dict(inputs))
    results = {}
    for name in outputs:
        value = found[name]
        if value.dtype == dtypes.bfloat16:  # which tinygrad would make a float
            results[name] = value.bitcast(dtypes.uint16).numpy().view(ml_dtypes.bfloat16)
        else:
            results[name] = value.numpy()
    return results


def run_onnx2torch(
    model: bytes, weights: bytes, inputs: Mapping[str, object], outputs: Sequence[str]
) -> Outputs:
    """Run in onnx2torch: ONNX as a PyTorch module."""
    import onnx2torch
    import torch

    del weights
    proto = onnx.load_from_string(model)
    given = {entry.name for entry in proto.graph.initializer}
    names = [entry.name for entry in proto.graph.input if entry.name not in given]
    fed = map(_to_torch, ordered(model, inputs, names))
    found = onnx2torch.convert(proto)(*fed)
    values = [found] if isinstance(found, torch.Tensor) else found
    return {name: _from_torch(value) for name, value in zip(outputs, values, strict=True)}


def _to_torch(array: Any) -> Any:
    """Make a tensor of an array; one of bfloat16 by its bits, as PyTorch takes none of NumPy's."""
    import torch

    is_bfloat16 = array.dtype == ml_dtypes.bfloat16
    tensor = torch.from_numpy(np.ascontiguousarray(array.view(np.int16) if is_bfloat16 else array))
    return tensor.view(torch.bfloat16) if is_bfloat16 else tensor


def _from_torch(tensor: Any) -> Any:
    import torch

    if tensor.dtype == torch.bfloat16:
        return tensor.view(torch.int16).numpy().view(ml_dtypes.bfloat16)
    return tensor.numpy()


def run_jaxonnxruntime(
    model: bytes, weights: bytes, inputs: Mapping[str, object], outputs: Sequence[str]
) -> Outputs:
    """Run in jaxonnxruntime, with 64-bit types, which JAX has only on request."""
    import jax
    from jaxonnxruntime import call_onnx

    del weights
    config: Any = jax.config
    config.update("jax_enable_x64", True)
    proto, fed = onnx.load_from_string(model), dict(inputs)
    function, parameters = call_onnx.call_onnx_model(proto, fed)
    found = function(parameters, fed)
    return {name: np.asarray(value) for name, value in zip(outputs, found, strict=True)}
