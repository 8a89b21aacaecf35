"""The names of operators and dialects, as type checkers know them."""

from __future__ import annotations

from typing import Literal, TypeAlias

Counted: TypeAlias = Literal[
    "Split",
    "onnx.Split",
    "onnx.Split-1",
    "onnx.Split-2",
    "onnx.Split-11",
    "onnx.Split-13",
    "onnx.Split-18",
    "openvino.Split",
    "openvino.Split-1",
    "VariadicSplit",
    "openvino.VariadicSplit",
    "openvino.VariadicSplit-1",
]
"""The operators whose parts can always be counted."""

Uncounted: TypeAlias = Literal[
    "SplitToSequence",
    "onnx.SplitToSequence",
    "onnx.SplitToSequence-11",
    "onnx.SplitToSequence-24",
]
"""The operators whose number of parts may depend on a dimension that is not known."""

OperatorName: TypeAlias = Counted | Uncounted
"""An operator version, or an operator, with or without its vendor."""

DialectName: TypeAlias = Literal[
    "numpy.split",
    "numpy.array_split",
    "torch.chunk",
    "torch.split",
    "torch.tensor_split",
    "jax.numpy.split",
    "jax.numpy.array_split",
    "jax.lax.split",
    "tensorflow.split",
    "litert.split",
    "litert.split_v",
    "webnn.split",
    "coreml.split",
    "mpsgraph.split",
    "nnapi.SPLIT",
    "directml.SPLIT",
    "qnn.Split",
    "ncnn.Slice",
    "mnn.Slice",
    "tosa.SLICE",
    "stablehlo.slice",
    "onednn.submemory_desc",
]
"""What other libraries and standards call a split."""
