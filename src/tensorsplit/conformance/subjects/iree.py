"""IREE: ONNX through torch-mlir, compiled by LLVM for the CPU.

The compiler runs in a process of its own. What kills that process kills this one too, so that a
crash is seen as one.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from typing import Any

from tensorsplit.conformance.subjects import ordered, unsupported

KIND = "engine"
PACKAGES = ("iree-base-compiler", "iree-base-runtime")
MODULES = ("onnx", "iree.compiler.extras.onnx_importer", "iree.runtime")
FORMATS = ("onnx",)

IMPORTS = """\
import onnx
import iree.compiler, iree.compiler.ir, iree.runtime
from iree.compiler.extras import onnx_importer"""
SCRIPT = """\
model = onnx.shape_inference.infer_shapes(onnx.load_from_string(MODEL), data_prop=True)
onnx.checker.check_model(model)
info = onnx_importer.ModelInfo(model)
module = info.create_module(context=iree.compiler.ir.Context()).operation
onnx_importer.NodeImporter.define_function(info.main_graph, module).import_all()
flags = ["--iree-llvmcpu-target-cpu=generic", "--iree-input-demote-f64-to-f32=false"]
code = iree.compiler.compile_str(str(module), target_backends=["llvm-cpu"], extra_args=flags)
function = iree.runtime.load_vm_flatbuffer(code, driver="local-sync")[model.graph.name]
found = function(*[INPUTS[name] for name in info.main_graph.input_map])
found = found if isinstance(found, tuple) else (found,)
results = {}
for entry, value in zip(model.graph.output, found):
    kind = onnx.helper.tensor_dtype_to_np_dtype(entry.type.tensor_type.elem_type)
    array = value.to_host()  # whose integers have no sign
    results[entry.name] = array.view(kind) if kind.kind == "u" else array"""

_FLAGS = ("--iree-llvmcpu-target-cpu=generic", "--iree-input-demote-f64-to-f32=false")
_KILLED = re.compile(r"Error code: -(\d+)")
_UNSUPPORTED = r"conversion of dtype '!torch\.\w+' to builtin tensor element type"


def run(
    model: bytes, weights: bytes, inputs: dict[str, Any], outputs: Sequence[str]
) -> dict[str, Any]:
    """Run a model; see `tensorsplit.conformance.subjects`."""
    import onnx
    from iree.compiler import CompilerToolError

    del weights
    proto = onnx.load_from_string(model)
    try:
        with unsupported(model, says=_UNSUPPORTED):
            found = _invoke(model, proto, inputs)
    except CompilerToolError as error:
        killed = _KILLED.search(str(error))
        if killed:
            os.kill(os.getpid(), int(killed[1]))
        raise
    values = found if isinstance(found, tuple) else (found,)
    pairs = zip(proto.graph.output, values, strict=True)
    arrays = [_array(value, entry.type.tensor_type.elem_type) for entry, value in pairs]
    return dict(zip(outputs, arrays, strict=True))


def _invoke(model: bytes, proto: Any, inputs: dict[str, Any]) -> Any:
    """What the command iree-import-onnx does, then compile and call."""
    import iree.compiler
    import iree.compiler.ir
    import iree.runtime
    import onnx
    from iree.compiler.extras import onnx_importer

    onnx.checker.check_model(proto)
    info = onnx_importer.ModelInfo(onnx.shape_inference.infer_shapes(proto, data_prop=True))
    module = info.create_module(context=iree.compiler.ir.Context()).operation
    onnx_importer.NodeImporter.define_function(info.main_graph, module).import_all()
    code = iree.compiler.compile_str(
        str(module), target_backends=["llvm-cpu"], extra_args=list(_FLAGS)
    )
    loaded = iree.runtime.load_vm_flatbuffer(code, driver="local-sync")
    return loaded[proto.graph.name](*ordered(model, inputs, list(info.main_graph.input_map)))


def _array(value: Any, element_type: int) -> Any:
    """An output; its integers have no sign, the model says whether they should."""
    from onnx.helper import tensor_dtype_to_np_dtype

    array = value.to_host()
    dtype = tensor_dtype_to_np_dtype(element_type)
    return array.view(dtype) if array.dtype.kind == "i" and dtype.kind == "u" else array
