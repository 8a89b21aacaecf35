"""A tool that makes slices of splits in two, which take what there is."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import helper, numpy_helper

KIND = "tool"
PACKAGES = ("onnx",)
FORMATS = ("onnx",)


def rewrite(model: bytes, target_opset: int | None) -> bytes:
    proto = onnx.load_from_string(model)
    split = proto.graph.node.pop(0)
    data, lengths = split.input
    for name, value in (("zero", [0]), ("one", [1]), ("end", [2**31])):
        tensor = numpy_helper.from_array(np.array(value, np.int64), name)
        proto.graph.initializer.append(tensor)
    for output, bounds in zip(split.output, (("zero", "cut"), ("cut", "end")), strict=True):
        proto.graph.node.append(helper.make_node("Slice", [data, *bounds, "zero"], [output]))
    node = helper.make_node("Slice", [lengths, "zero", "one"], ["cut"])
    proto.graph.node.insert(0, node)
    return bytes(proto.SerializeToString())
