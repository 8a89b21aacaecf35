"""Adapters of tools: shape inference, converters and optimizers; our own among them.

Each takes a serialised model and the opset that a converter is to convert to, and returns the
serialised model that the tool makes of it.
"""

from __future__ import annotations

from contextlib import chdir
from pathlib import Path
from tempfile import TemporaryDirectory

import onnx
from onnx import version_converter

import tensorsplit
from tensorsplit.engines.messages import Unsupported


def convert(model: bytes, target_opset: int) -> bytes:
    """Convert with our own converter."""
    found = tensorsplit.convert(onnx.load_from_string(model), opset=target_opset)
    return bytes(onnx.ModelProto.SerializeToString(found))


def lower_to_portable(model: bytes, target_opset: int) -> bytes:
    """Lower to the subset of ONNX that most engines run."""
    del target_opset
    found = tensorsplit.lower(onnx.load_from_string(model), target="portable")
    return bytes(onnx.ModelProto.SerializeToString(found))


def lower_to_onnxruntime(model: bytes, target_opset: int) -> bytes:
    """Lower to what onnxruntime runs."""
    del target_opset
    found = tensorsplit.lower(onnx.load_from_string(model), target="onnxruntime")
    return bytes(onnx.ModelProto.SerializeToString(found))


def lower_to_openvino(model: bytes, target_opset: int) -> bytes:
    """Lower to what OpenVINO runs."""
    del target_opset
    found = tensorsplit.lower(onnx.load_from_string(model), target="openvino")
    return bytes(onnx.ModelProto.SerializeToString(found))


def infer_shapes(model: bytes, target_opset: int) -> bytes:
    """Infer shapes with onnx, strict and with data propagation."""
    del target_opset
    found = onnx.shape_inference.infer_shapes(
        onnx.load_from_string(model), check_type=True, strict_mode=True, data_prop=True
    )
    return bytes(found.SerializeToString())


def infer_symbolic_shapes(model: bytes, target_opset: int) -> bytes:
    """Infer shapes by onnxruntime's script for symbolic shapes, which quantizing runs first."""
    from onnxruntime.tools.symbolic_shape_infer import SymbolicShapeInference

    del target_opset
    with TemporaryDirectory() as folder, chdir(folder):  # where it leaves a model that it refuses
        found = SymbolicShapeInference.infer_shapes(onnx.load_from_string(model))
    if found is None:  # and a warning in the log
        raise Unsupported("only models of opset 7 and above are supported")
    return bytes(found.SerializeToString())


def infer_by_onnx_tool(model: bytes, target_opset: int) -> bytes:
    """Infer shapes with onnx-tool, and save the model with them."""
    import onnx_tool

    del target_opset
    found = onnx_tool.Model(onnx.load_from_string(model))
    found.graph.graph_reorder_nodes()
    found.graph.shape_infer(None)
    with TemporaryDirectory() as folder:
        path = Path(folder, "model.onnx")
        found.save_model(str(path))
        return path.read_bytes()


def optimize_by_onnxruntime(model: bytes, target_opset: int) -> bytes:
    """Optimize with onnxruntime and save the model, by all that depends on no machine."""
    import onnxruntime

    del target_opset
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
    with TemporaryDirectory() as folder:
        path = Path(folder, "model.onnx")
        options.optimized_model_filepath = str(path)
        onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
        return path.read_bytes()


def convert_by_onnx(model: bytes, target_opset: int) -> bytes:
    """Convert with onnx's version converter."""
    found = version_converter.convert_version(onnx.load_from_string(model), target_opset)
    return bytes(found.SerializeToString())


def convert_by_onnxscript(model: bytes, target_opset: int) -> bytes:
    """Convert with onnxscript's version converter, on a model in its own representation.

    Given a ``ModelProto``, it does the same to the nodes and leaves the opset imports as they were
    (measured on 0.7.2), which would hide what it does to each node.
    """
    from onnxscript import ir, version_converter

    converted = ir.from_proto(onnx.load_from_string(model))
    version_converter.convert_version(converted, target_opset)
    return bytes(ir.to_proto(converted).SerializeToString())


def optimize_by_onnxscript(model: bytes, target_opset: int) -> bytes:
    """Optimize with onnxscript."""
    from onnx_ir.passes import PassError
    from onnxscript import optimizer

    del target_opset
    try:
        return bytes(optimizer.optimize(onnx.load_from_string(model)).SerializeToString())
    except PassError as error:  # whose text is only the address of the pass
        raise error.__cause__ or error from None


def slim(model: bytes, target_opset: int) -> bytes:
    """Optimize with onnxslim."""
    import onnxslim

    del target_opset
    return bytes(onnxslim.slim(onnx.load_from_string(model)).SerializeToString())


def simplify(model: bytes, target_opset: int) -> bytes:
    """Simplify by onnxsim (onnx-simplifier)."""
    import onnxsim

    del target_opset
    found, _ = onnxsim.simplify(onnx.load_from_string(model))
    return bytes(found.SerializeToString())


def optimize_by_onnxoptimizer(model: bytes, target_opset: int) -> bytes:
    """Optimize with onnxoptimizer and its default passes."""
    import onnxoptimizer

    del target_opset
    return bytes(onnxoptimizer.optimize(onnx.load_from_string(model)).SerializeToString())
