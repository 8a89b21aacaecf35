"""The operator versions, the opsets that have them, and the types most engines have."""

from __future__ import annotations

from types import MappingProxyType

OPSETS = MappingProxyType(
    {
        "onnx.Split-1": (1,),
        "onnx.Split-2": (2, 9, 10),
        "onnx.Split-11": (11, 12),
        "onnx.Split-13": (13, 15, 17),
        "onnx.Split-18": (18, 19, 21, 24),
        "onnx.SplitToSequence-11": (11, 13, 17, 18, 21, 23),
        "onnx.SplitToSequence-24": (24, 25),
    }
)
"""Opsets in which each operator version is in force, of those that engines of 2026 read."""

SPLITS = tuple(operator for operator in OPSETS if operator.startswith("onnx.Split-"))
SEQUENCES = tuple(operator for operator in OPSETS if operator not in SPLITS)

COMMON = ("float", "int64", "int32", "double", "float16", "bool", "uint8", "int8")
COMMON_IN_SEQUENCES = ("float", "int64", "int32", "double")
"""Types that engines have; all others are in the cases that are about types."""
