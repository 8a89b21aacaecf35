"""Layers that go through a sequence step by step: LSTM, GRU and RNN."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import onnx_ir as ir

from tensorsplit.core.errors import show
from tensorsplit.model.convert.layer_conversion import LayerConversion

ATTRIBUTES = "hidden_size activations activations_alpha activations_beta clip direction"
"""The attributes of every recurrent layer."""

_FUNCTIONS = {"sigmoid": "Sigmoid", "tanh": "Tanh", "relu": "Relu"}
_DIRECTIONS = {"forward": 1, "reverse": 1, "bidirectional": 2}


def lstm(layer: LayerConversion) -> list[ir.Value]:
    """Write an LSTMSequence; its gates are f, i, c, o, and ONNX's are i, o, f, c."""
    *weights, biases = (_gates(layer, each, (1, 3, 0, 2)) for each in layer.inputs[4:])
    functions = ("sigmoid", "tanh", "tanh")
    weights.append(_with_zeros(layer, biases, 4))
    return _sequence(layer, "LSTM", 2, weights, functions=functions, attributes={})


def gru(layer: LayerConversion) -> list[ir.Value]:
    """Write a GRUSequence; with ``linear_before_reset`` its last bias is of the recurrence."""
    resets = layer.flag("linear_before_reset", False)
    *weights, biases = layer.inputs[3:]
    if resets:
        *first, last = _parts(layer, biases, 4)
        both = [*first, *[_zeros(layer, 1)] * 2, last]
        biases = layer.op("Concat", both, {"axis": 1})
    else:
        biases = _with_zeros(layer, biases, 3)
    attributes = {"linear_before_reset": resets}
    functions = ("sigmoid", "tanh")
    weights.append(biases)
    return _sequence(layer, "GRU", 1, weights, functions=functions, attributes=attributes)


def rnn(layer: LayerConversion) -> list[ir.Value]:
    """Write an RNNSequence."""
    *weights, biases = layer.inputs[3:]
    weights.append(_with_zeros(layer, biases, 1))
    return _sequence(layer, "RNN", 1, weights, functions=("tanh",), attributes={})


def _parts(layer: LayerConversion, weights: ir.Value, count: int) -> list[ir.Value]:
    """Return the part of each gate of weights or biases."""
    size, make = layer.integer("hidden_size"), layer.node.make
    return [make.slice(weights, size * place, size * (place + 1), 1) for place in range(count)]


def _gates(layer: LayerConversion, weights: ir.Value, order: tuple[int, ...]) -> ir.Value:
    """Return weights or biases with their gates in another order."""
    parts = _parts(layer, weights, len(order))
    return layer.op("Concat", [parts[place] for place in order], {"axis": 1})


def _with_zeros(layer: LayerConversion, biases: ir.Value, gates: int) -> ir.Value:
    """Return biases, and those of the recurrence, which are all 0."""
    return layer.op("Concat", [biases, _zeros(layer, gates)], {"axis": 1})


def _zeros(layer: LayerConversion, gates: int) -> ir.Value:
    shape = [_directions(layer), gates * layer.integer("hidden_size")]
    return layer.node.make.filled(shape, layer.element_type())


def _directions(layer: LayerConversion) -> int:
    return layer.choice("direction", _DIRECTIONS)


def _sequence(
    layer: LayerConversion,
    op_type: str,
    count: int,
    weights: Sequence[ir.Value],
    *,
    functions: Sequence[str],
    attributes: Mapping[str, object],
) -> list[ir.Value]:
    """Write a layer with a count of states; in ONNX the steps are on the first axis of all."""
    data, *states = layer.inputs[: 1 + count]
    swap = {"perm": [1, 0, 2]}
    data, *starts = (layer.op("Transpose", [each], swap) for each in (data, *states))
    inputs = [data, *weights, _lengths(layer, 1 + count), *starts]
    given = {
        **attributes,
        "hidden_size": layer.integer("hidden_size"),
        "direction": layer.word("direction"),
        "activations": _activations(layer, functions) * _directions(layer),
    }
    every, *last = layer.ops(op_type, inputs, given, 1 + count)
    ended = [layer.op("Transpose", [state], swap) for state in last]
    return [layer.op("Transpose", [every], {"perm": [2, 1, 0, 3]}), *ended]


def _activations(layer: LayerConversion, functions: Sequence[str]) -> list[str]:
    if layer.number("clip", 0) != 0:
        raise layer.refusal("it limits what its activations get")
    if layer.text("activations_alpha", "") or layer.text("activations_beta", ""):
        raise layer.refusal("its activations have parameters")
    listed = layer.text("activations", ",".join(functions))
    named = [each.strip().lower() for each in listed.split(",")]
    if len(named) != len(functions) or not set(named) <= _FUNCTIONS.keys():
        raise layer.refusal(f"its activations are {show(listed)}")
    return [_FUNCTIONS[each] for each in named]


def _lengths(layer: LayerConversion, place: int) -> ir.Value | None:
    """Return how long each sequence is; None if all are known to be as long as the data."""
    known, shape = layer.node.known(place), layer.node.shape()
    if known is not None and shape is not None and (known == shape[1]).all():
        return None
    return layer.cast(layer.inputs[place], ir.DataType.INT32)
