"""The forms in which constants, axes and initializers are written."""

from __future__ import annotations

from collections.abc import Iterator

import onnx_ir as ir

from tensorsplit.model.graph.axes import axes_from_front
from tensorsplit.model.graph.held_tensors import tensor_of
from tensorsplit.model.graph.nodes import NodeRef, attribute_of, is_operator
from tensorsplit.model.graph.producers import first_input
from tensorsplit.model.graph.tensors import SparseTensor
from tensorsplit.model.graph.uses import is_needed
from tensorsplit.model.infer.analysis import Facts

_FIRST_WITH_NUMBERS_IN_CONSTANTS = 13
"""From here on engines read Constants that give numbers; the standard has them from 12 on."""

_FIRST_WITH_AXES_IN_ANY_ORDER = 11
"""Before, engines may infer the shape that onnx does, from axes in order and from the front."""


REDUCTIONS_OF_ALL_AXES = frozenset({"ReduceL1", "ReduceLogSum", "ReduceLogSumExp"})
"""Reductions of which OpenVINO's import looks for the axes among the inputs from opset 13 on."""

_AXES_ATTRIBUTE_OPSETS = range(13, 18)


_ROW_SOFTMAX_OPSETS = range(11, 13)
"""Opsets at which OpenVINO takes Softmax for that of opset 13, which is along one axis."""


_FIRST_UNINFERRED = {"MeanVarianceNormalization": 13}
"""Operators of which onnx infers no types in a function of a model, from an opset on."""


_CHOICES = {
    "Pad": ("mode",),
    "Resize": (
        "antialias",
        "coordinate_transformation_mode",
        "exclude_outside",
        "keep_aspect_ratio_policy",
    ),
    "RoiAlign": ("mode",),
    "SpaceToDepth": ("mode",),
}
"""Attributes for how an operator calculates, of which engines know some values."""


def of_choices(node: ir.Node) -> Iterator[tuple[str, object]]:
    """Yield the values of attributes that matter to engines, such as ``antialias = 1``."""
    chosen = [
        f"{name} = {held.value}"
        for name in _CHOICES.get(node.op_type, ())
        if (held := node.attributes.get(name)) is not None and _is_choice(held)
    ]
    if chosen:
        yield "operator", node.op_type
        yield "choice", tuple(chosen)


def _is_choice(held: ir.Attr) -> bool:
    """Return whether an attribute holds a number or a name; no other type is right."""
    return not held.is_ref() and isinstance(held.value, int | float | str)


def of_form(ref: NodeRef) -> Iterator[tuple[str, object]]:
    """Yield the form in which a Constant that is used gives its value, if not as a tensor.

    Of other nodes, yield whether they are written in a function, which onnx has to infer. What a
    body in it gives out has a type.
    """
    first = _FIRST_UNINFERRED.get(ref.op_type)
    is_typed = all(made.type is not None for made in ref.node.outputs)
    if ref.function is not None and first is not None and ref.opset >= first and not is_typed:
        yield "uninferred_in_function", True
    if ref.op_type != "Constant":
        return
    form = next(iter(ref.node.attributes), "value")
    if any(isinstance(tensor_of(value), SparseTensor) for value in ref.node.outputs):
        form = "sparse_value"  # read as `value`
    if form == "value" or not any(map(is_needed, ref.node.outputs)):
        return
    yield "constant_form", form
    if ref.opset < _FIRST_WITH_NUMBERS_IN_CONSTANTS:
        yield "constant_form_before_13", form


def of_axes(ref: NodeRef, facts: Facts) -> Iterator[str]:
    """Yield whether axes, or operands, are written in a form that an engine may misread."""
    if ref.node.inputs and ref.node.inputs[-1] is None:
        yield "empty_end"
    if ref.op_type in REDUCTIONS_OF_ALL_AXES and ref.opset in _AXES_ATTRIBUTE_OPSETS:
        axes = attribute_of(ref.node, "axes", ir.AttributeType.INTS) or ()
        shape = facts.tensor(ref.input(0)).shape
        if axes and (shape is None or len(set(axes)) < len(shape)):
            yield "ignored_axes"
    if ref.op_type == "Softmax" and ref.opset in _ROW_SOFTMAX_OPSETS and _has_rows(ref, facts):
        yield "softmax_of_rows"
    if needs_axes_in_order(ref.node, ref.opset) and axes_in_order(ref.node, facts) is not None:
        yield "unsorted_axes"


def axes_of_rows(node: ir.Node, facts: Facts) -> list[int] | None:
    """Return the axes of which a Softmax before opset 13 makes rows; None where not known."""
    shape = facts.tensor(first_input(node)).shape
    axis = attribute_of(node, "axis", ir.AttributeType.INT, 1)
    if shape is None or axis is None or not -len(shape) <= axis < len(shape):
        return None
    return list(range(axis % len(shape), len(shape)))


def _has_rows(ref: NodeRef, facts: Facts) -> bool:
    """Return whether such rows may have elements, and several axes that are longer than 1."""
    axes, shape = axes_of_rows(ref.node, facts), facts.tensor(ref.input(0)).shape
    if shape is None or (axes is None and shape):  # of a rank, or by an axis, that is not known
        return bool(attribute_of(ref.node, "axis", ir.AttributeType.INT, 1) != -1)
    return 0 not in shape and any(shape[axis] != 1 for axis in (axes or ())[1:])


def needs_axes_in_order(node: ir.Node, opset: int) -> bool:
    """Return whether onnx infers a wrong shape for a node if its axes are not in order."""
    is_old = opset < _FIRST_WITH_AXES_IN_ANY_ORDER
    return is_old and is_operator(node, "Squeeze", "Unsqueeze")


def axes_in_order(node: ir.Node, facts: Facts) -> list[int] | None:
    """Return the axes of a Squeeze or Unsqueeze in order, counted from the front.

    None where they are so already, for what counts from the back of a tensor of unknown rank, and
    for axes out of range. Unsqueeze has an order of its own only for axes that count from the back.
    """
    if not node.inputs:
        return None
    given = list(attribute_of(node, "axes", ir.AttributeType.INTS) or ())
    if node.op_type == "Unsqueeze" and min(given, default=0) >= 0:
        return None
    shape = facts.tensor(node.inputs[0]).shape
    axes = axes_from_front(node.op_type, given, None if shape is None else len(shape))
    return None if axes == given else axes


def sparse_initializers(node: ir.Node) -> dict[ir.Value, SparseTensor]:
    """Return the initializers that a node takes and that are sparse tensors, without defaults."""
    given = (value for value in node.inputs if value is not None and not value.is_graph_input())
    held = {value: value.const_value for value in given}
    return {value: each for value, each in held.items() if isinstance(each, SparseTensor)}
