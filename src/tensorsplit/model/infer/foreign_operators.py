"""Operators of ONNX Runtime whose outputs have the type and shape of an operator of ONNX.

Its optimiser and its tools for quantisation write them. They do not declare what these give. So it
is with those operators of ONNX of which onnx infers nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import NamedTuple, TypeAlias

from tensorsplit.model.graph.facts import Fact, Tensor

DOMAIN = "com.microsoft"

Inputs: TypeAlias = "tuple[Fact | None, ...]"
Numbers: TypeAlias = Mapping[str, object]


class Alike(NamedTuple):
    """A node of ONNX whose output has the type and shape of a foreign one's first, other elements.

    Attributes:
        op_type: The operator.
        inputs: What is known of its inputs.
        attributes: The names of the attributes that it shares with the foreign node.
    """

    op_type: str
    inputs: Inputs
    attributes: tuple[str, ...] = ()


def alike(op_type: str, inputs: Inputs, attributes: Numbers) -> Alike | None:
    """Return the node of ONNX that stands for one of `DOMAIN`; None where none is known."""
    make = _ALIKE.get(op_type)
    return None if make is None else make(inputs, attributes)


def _like(
    op_type: str, places: tuple[int, ...], inputs: Inputs, _: Numbers, kept: tuple[str, ...] = ()
) -> Alike | None:
    """Take some of the inputs, and attributes of the same meaning."""
    if max(places) >= len(inputs):
        return None
    return Alike(op_type, tuple([inputs[place] for place in places]), kept)


def _joined(inputs: Inputs, _: Numbers) -> Alike:
    """Take the tensors of a QLinearConcat, each followed by its scale and zero point."""
    return Alike("Concat", inputs[2::3], ("axis",))


def _product(inputs: Inputs, attributes: Numbers) -> Alike | None:
    """Take the matrices of a FusedMatMul, turned as it turns them; not those of batches."""
    if len(inputs) != 2 or attributes.get("transBatchA") or attributes.get("transBatchB"):
        return None
    flags = (attributes.get("transA"), attributes.get("transB"))
    turned = [_turned(f) if flag else f for f, flag in zip(inputs, flags, strict=True)]
    return Alike("MatMul", tuple(turned))


def _product_of_packed(inputs: Inputs, attributes: Numbers) -> Alike | None:
    """Take the matrix of a MatMulNBits as it is unpacked, of K rows and N columns."""
    sides = (attributes.get("K"), attributes.get("N"))
    if not inputs or not isinstance(inputs[0], Tensor):
        return None
    unpacked = Tensor(inputs[0].element_type, tuple([s if type(s) is int else None for s in sides]))
    return Alike("MatMul", (inputs[0], unpacked))


def _turned(fact: Fact | None) -> Fact | None:
    """Return the fact about matrices after their last two axes were swapped."""
    if not isinstance(fact, Tensor) or fact.shape is None or len(fact.shape) < 2:
        return fact  # a vector has but one axis
    *batch, rows, columns = fact.shape
    return replace(fact, shape=(*batch, columns, rows), values=None)


def _quantised_product(inputs: Inputs, _: Numbers) -> Alike | None:
    """Take the matrices of a QGemm, if it gives integers: with the zero point of its output."""
    if len(inputs) < 9 or inputs[8] is None:
        return None
    return Alike("Gemm", (inputs[0], inputs[3]), ("transA", "transB"))


def _pooled(op_type: str, inputs: Inputs, attributes: Numbers) -> Alike | None:
    """Take the data of a quantised pool, whose channels lie where those of ONNX do."""
    names = ("auto_pad", "ceil_mode", "count_include_pad", "kernel_shape", "pads", "strides")
    is_other = bool(attributes.get("channels_last"))
    kept = tuple(name for name in names if name in attributes)
    return None if is_other or not inputs else Alike(op_type, inputs[:1], kept)


_WINDOWS = ("auto_pad", "dilations", "group", "kernel_shape", "pads", "strides")

NOT_INFERRED = ("GroupNormalization", "MeanVarianceNormalization")
"""Operators of ONNX itself of which onnx infers nothing, not even the type (measured on 1.23.2)."""

_SAME = (
    *NOT_INFERRED,
    *("BiasGelu", "FastGelu", "Gelu", "QLinearLeakyRelu", "QLinearSigmoid", "QLinearSoftmax"),
    *("QuickGelu", "RotaryEmbedding", "SkipLayerNormalization"),
    *("SkipSimplifiedLayerNormalization", "Trilu"),
)
"""Operators whose first output has the type and shape of their first input."""

_ALIKE: Mapping[str, Callable[[Inputs, Numbers], Alike | None]] = {
    **{name: partial(_like, "Identity", (0,)) for name in _SAME},
    "DequantizeLinear": partial(_like, "DequantizeLinear", (0, 1), kept=("axis",)),
    "DynamicQuantizeMatMul": partial(_like, "MatMul", (0, 1)),
    "FusedConv": partial(_like, "Conv", (0, 1), kept=_WINDOWS),
    "FusedGemm": partial(_like, "Gemm", (0, 1), kept=("transA", "transB")),
    "FusedMatMul": _product,
    "MatMulNBits": _product_of_packed,
    "QGemm": _quantised_product,
    "QLinearAdd": partial(_like, "Add", (0, 3)),
    "QLinearAveragePool": partial(_pooled, "AveragePool"),
    "QLinearConcat": _joined,
    "QLinearGlobalAveragePool": partial(_pooled, "GlobalAveragePool"),
    "QLinearMul": partial(_like, "Mul", (0, 3)),
    "QuantizeLinear": partial(_like, "QuantizeLinear", (0, 1, 2), kept=("axis",)),
}
