"""Split layers of a model that OpenVINO has read, guarded where only the running model decides.

OpenVINO does not check negative lengths before it reads memory (D7). The import extensions put
guards into a model while OpenVINO reads it; this puts them into a model that it has already read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import openvino
from openvino import opset8 as ops

from tensorsplit.core.dimensions import Shape
from tensorsplit.core.errors import SplitError
from tensorsplit.core.operands import Operand
from tensorsplit.core.records import operators
from tensorsplit.core.resolve import Intent, bind, plan
from tensorsplit.openvino.given_nodes import constant_values, operand_of
from tensorsplit.openvino.node_maker import Value, constant
from tensorsplit.openvino.split_conversions import AxisSplit, axis_split, parts

_FAMILY = {record.name: record for record in operators.values() if record.vendor == "openvino"}


def is_split(layer: openvino.Node) -> bool:
    """Return whether a layer is a split."""
    return layer.get_type_name() in _FAMILY


def is_known(layer: openvino.Node) -> bool:
    """Return whether a split layer's operands are constants, and its data has a known shape."""
    data, *operands = layer.input_values()
    return data.get_partial_shape().is_static and None not in map(constant_values, operands)


def check_split(layer: object, sizes: Shape, operands: Sequence[Value], place: str = "") -> None:
    """Refuse (TS1xx to TS3xx) a split layer whose operands do not fit data of a shape.

    Args:
        layer: The layer.
        sizes: The shape of its data.
        operands: Its operands, as constants.
        place: What messages have before the name of the layer.
    """
    with _named(layer, place):
        plan(_intent(layer, operands), sizes)


def bodies(layer: openvino.Node) -> list[openvino.Model]:
    """Return the models that a layer runs: both branches of an If, the body of a loop."""
    if layer.get_type_name() == "If":
        return [layer.get_function(place) for place in (0, 1)]
    return [layer.get_function()] if hasattr(layer, "get_function") else []


def path(layer: openvino.Node) -> str:
    """Return how a layer is named in messages."""
    return f"layer '{layer.get_friendly_name()}'"


def guard_bodies(model: openvino.Model, place: str = "") -> bool:
    """Do as `guard_splits`, in the bodies of a model alone."""
    pairs = [(layer, body) for layer in model.get_ordered_ops() for body in bodies(layer)]
    guarded = [guard_splits(body, f"{place}{path(layer)} / ") for layer, body in pairs]
    model.validate_nodes_and_infer_types()
    return any(guarded)


def guard_splits(model: openvino.Model, place: str = "") -> bool:
    """Make a model stop where the operands of a split layer do not fit, in its bodies too.

    Layers whose operands are constants, and whose data has a known shape, stay as they are.

    Args:
        model: An ``openvino.Model``, which is changed.
        place: What messages have before the name of a layer.

    Returns:
        Whether there is any other layer, which got a guard.

    Raises:
        SplitError: TS1xx to TS3xx for what fits no data.
    """
    is_guarded = guard_bodies(model, place)
    layers = [each for each in model.get_ordered_ops() if is_split(each) and not is_known(each)]
    for layer in layers:
        data, *operands = layer.input_values()
        with _named(layer, place) as called:
            split = _axis_split(_intent(layer, operands), data, *operands)
            guarded = parts(split, f"{{{called}}}")
        for output, part in zip(layer.outputs(), guarded, strict=True):
            names = output.get_names()
            for target in output.get_target_inputs():
                target.replace_source_output(part)
            part.get_tensor().set_names(names)
    model.validate_nodes_and_infer_types()
    return is_guarded or bool(layers)


def stopped_at(message: str) -> str | None:
    """Return where a guarded model stopped, from OpenVINO's message."""
    found = re.search(r"\{(layer '.*')\}", message)
    return None if found is None else found[1]


@contextmanager
def _named(layer: openvino.Node, place: str) -> Iterator[str]:
    """Name a split layer; a refusal of it shows that name."""
    called = f"{place}{path(layer)}"
    try:
        yield called
    except SplitError as error:
        record = _FAMILY[layer.get_type_name()]
        raise error.located(operator=record.id, node=called) from None


def _intent(layer: openvino.Node, values: Sequence[Value]) -> Intent:
    """Bind a split layer, as far as its inputs are constants."""
    record, attributes = _FAMILY[layer.get_type_name()], layer.get_attributes()
    names = [parameter.name for parameter in record.inputs[1:]]
    given = [(name, operand_of(held)) for name, held in zip(names, values, strict=True)]
    given += [
        (entry.name, Operand((attributes[entry.name],), 0, None, "attribute"))
        for entry in record.attributes
    ]
    return bind(record, given, layer.get_output_size())


def _axis_split(
    intent: Intent, data: Value, axis: Value, lengths: Value | None = None
) -> AxisSplit:
    if lengths is not None:
        count = constant([intent.outputs or 0])
        lengths = ops.reshape(lengths, count, False).output(0)
    return axis_split(intent, data, lengths, axis)
