"""A tool that states the shape [1, 3] of every output."""

from __future__ import annotations

import onnx

KIND = "tool"
JUDGED_BY = "shapes"
PACKAGES = ("onnx",)
FORMATS = ("onnx",)


def rewrite(model: bytes, target_opset: int | None) -> bytes:
    proto = onnx.load_from_string(model)
    for output in proto.graph.output:
        assert not output.type.tensor_type.HasField("shape")
        for size in (1, 3):
            output.type.tensor_type.shape.dim.add().dim_value = size
    return bytes(proto.SerializeToString())
