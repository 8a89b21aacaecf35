"""Integers that follow from constants and known shapes, before OpenVINO folds what leads to them.

OpenVINO's CPU plugin does not load a guard of such lengths, where nothing depends on what is fed.
"""

from __future__ import annotations

from math import prod

import numpy as np
import openvino

from tensorsplit.openvino.node_maker import Value

_FEW_ELEMENTS = 1024
"""A tensor of more elements holds no lengths, nor what they are calculated from."""

_MOST_NODES = 256

_CALCULATES = frozenset(
    {
        *("Abs", "Add", "Broadcast", "Ceiling", "Clamp", "Concat", "Convert", "Divide", "Equal"),
        *("Floor", "FloorMod", "Gather", "Greater", "GreaterEqual", "Less", "LessEqual"),
        *("LogicalAnd", "LogicalNot", "LogicalOr", "Maximum", "Minimum", "Mod", "Multiply"),
        *("Negative", "NotEqual", "Pad", "Power", "Range", "ReduceMax", "ReduceMin", "ReduceProd"),
        *("ReduceSum", "Reshape", "Round", "Select", "Sign", "Slice", "Sqrt", "Squeeze"),
        *("StridedSlice", "Subtract", "Unsqueeze"),
    }
)
"""The layers that OpenVINO calculates from their operands without reading beyond them."""

_DIVIDES = frozenset({"Divide", "FloorMod", "Mod"})


def followed_values(value: Value) -> tuple[int, ...] | None:
    """Return the integers that a tensor holds whatever is fed; None where it is not known."""
    if not value.get_element_type().is_integral():
        return None
    found = _calculated(value, {})
    return None if found is None else tuple(found.reshape(-1).tolist())


def _calculated(value: Value, known: dict[str, np.ndarray | None]) -> np.ndarray | None:
    """Return the elements of a tensor; ``known`` holds those of nodes that were looked at."""
    node = value.get_node()
    name = node.get_name()
    if name not in known:
        known[name] = None  # until it is known, and if there are too many nodes
        if node.get_output_size() == 1 and len(known) <= _MOST_NODES:
            known[name] = _elements(node, known)
    return known[name]


def _elements(node: openvino.Node, known: dict[str, np.ndarray | None]) -> np.ndarray | None:
    shape = node.get_output_partial_shape(0)
    if shape.is_dynamic or prod(shape.to_shape()) > _FEW_ELEMENTS:
        return None
    match node.get_type_name():
        case "Constant":
            return np.asarray(node.data)
        case "ShapeOf":
            sizes = node.input_value(0).get_partial_shape()
            kind = node.get_output_element_type(0).to_dtype()
            return np.array(list(sizes.to_shape()), kind) if sizes.is_static else None
        case "ConvertLike":
            like = _calculated(node.input_value(0), known)
            kind = node.get_output_element_type(0).to_dtype()
            return None if like is None else like.astype(kind)
        case operation if operation in _CALCULATES:
            return _result(node, known)
    return None


def _result(node: openvino.Node, known: dict[str, np.ndarray | None]) -> np.ndarray | None:
    operands = [_calculated(held, known) for held in node.input_values()]
    given = [held for held in operands if held is not None]
    if len(given) < len(operands):
        return None
    if node.get_type_name() in _DIVIDES and not _can_divide(*given):
        return None
    made = openvino.Tensor(node.get_output_element_type(0), node.get_output_shape(0))
    tensors = [openvino.Tensor(np.array(each, order="C")) for each in given]
    return made.data.copy() if node.evaluate([made], tensors) else None


def _can_divide(number: np.ndarray, by: np.ndarray) -> bool:
    """Return whether a division ends, as one of integers by 0 does not, nor the least by -1."""
    if by.dtype.kind != "i":
        return by.dtype.kind == "f" or bool(by.all())
    least = np.iinfo(number.dtype).min
    return bool(by.all()) and not (np.any(by == -1) and np.any(number == least))
