"""An engine with a mistake, and its adapter for the conformance suite."""

import numpy as np
import onnx
from onnx import numpy_helper

from tensorsplit.conformance.subjects import Unsupported

KIND = "engine"
PACKAGES = ()
FORMATS = ("onnx",)


def run(model, weights, inputs, outputs):
    """Run an ONNX model, as the suite asks for it."""
    del weights  # of other formats
    graph = onnx.load_from_string(model).graph
    values = {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer}
    values |= inputs
    for node in graph.node:
        if node.op_type != "Split":
            raise Unsupported(f"{node.op_type} is not implemented")
        parts = split(node, *(values[name] for name in node.input))
        values |= dict(zip(node.output, parts, strict=True))
    return {name: values[name] for name in outputs}


def split(node, x, lengths=None):
    """Split-18: explicit lengths, or parts of ceil(d/n), of which the last may be smaller."""
    attributes = {entry.name: onnx.helper.get_attribute_value(entry) for entry in node.attribute}
    axis = attributes.get("axis", 0)
    if lengths is None:
        count = attributes["num_outputs"]
        size = -(-x.shape[axis] // count)
        ends = np.arange(1, count) * size
    else:
        ends = np.cumsum(lengths)[:-1]
    parts = np.split(x, ends, axis)
    if len(parts) > 1 and parts[0].shape == parts[1].shape:
        parts[:2] = parts[1::-1]  # the mistake
    return parts
