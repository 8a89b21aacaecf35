"""Checking the split layers of a model whose other layers only OpenVINO can run.

OpenVINO does not check negative lengths before it reads memory, so the operands are looked at
before it splits: first as far as the shapes of the inputs tell, then, for what depends on computed
values, by running what computes them. Layers come in order, so that whatever is run to check one
consists of layers that have been checked.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import openvino
from openvino import opset8

from tensorsplit.arrays.numpy import operand_parts
from tensorsplit.core.errors import SplitError
from tensorsplit.core.operands import Operand
from tensorsplit.core.records import operators
from tensorsplit.core.resolve import bind, plan
from tensorsplit.core.schema import Operator
from tensorsplit.engines.adapters import from_openvino, openvino_tensors, run_openvino

_IF = "If"
_FAMILY = {record.name: record for record in operators.values() if record.vendor == "openvino"}


def run(
    model: str, weights: bytes, inputs: Mapping[str, Any], outputs: Sequence[str]
) -> dict[str, Any]:
    """Check a model, then run it; arguments as of `run_openvino`."""
    core = openvino.Core()
    network = core.read_model(model)
    check_splits(core, network, openvino_tensors(network, model, inputs))
    return run_openvino(model, weights, inputs, outputs)


def check_splits(core: Any, model: Any, tensors: dict[int, Any]) -> None:
    """Refuse a wrong split layer (TS1xx to TS3xx); nothing is changed.

    In bodies, those are checked whose operands are constants and whose data has a known shape.
    """
    copy = model.clone()
    shapes = {copy.inputs[i]: openvino.PartialShape(list(t.shape)) for i, t in tensors.items()}
    copy.reshape(shapes)
    for layer in copy.get_ordered_ops():
        record = _FAMILY.get(layer.get_type_name())
        if record is not None:
            data, *given = layer.input_values()
            known = _known(layer)
            if known is None:
                wanted = [opset8.shape_of(data).output(0), *given]
                sizes, *arrays = _compute(core, copy, wanted, tensors)
                known = tuple(sizes.tolist()), arrays
            _check(layer, record, *known)
        branch = None
        if layer.get_type_name() == _IF:
            (condition,) = _compute(core, copy, [layer.input_value(0)], tensors)
            branch = 0 if condition.all() else 1
        _check_bodies(layer, branch, f"{_path(layer)} / ")


def _check_bodies(layer: Any, branch: int | None, place: str) -> None:
    """Check the bodies of a layer; of an If the branch that is taken, or both."""
    if layer.get_type_name() == _IF:
        bodies = [layer.get_function(i) for i in ((0, 1) if branch is None else (branch,))]
    else:
        bodies = [layer.get_function()] if hasattr(layer, "get_function") else []
    for inner in (inner for body in bodies for inner in body.get_ordered_ops()):
        record = _FAMILY.get(inner.get_type_name())
        known = None if record is None else _known(inner)
        if record is not None and known is not None:
            _check(inner, record, *known, place)
        _check_bodies(inner, None, f"{place}{_path(inner)} / ")


def _path(layer: Any) -> str:
    return f"layer '{layer.get_friendly_name()}'"


def _known(layer: Any) -> tuple[tuple[int, ...], list[Any]] | None:
    """The shape of the data of a split layer, and its operands, if they are known."""
    data, *given = layer.input_values()
    arrays = [_constant(value.get_node()) for value in given]
    shape = data.get_partial_shape()
    if shape.is_dynamic or any(array is None for array in arrays):
        return None
    return tuple(shape.to_shape()), arrays


def _check(
    layer: Any, record: Operator, sizes: tuple[int, ...], arrays: list[Any], place: str = ""
) -> None:
    operands = [
        (parameter.name, Operand(*operand_parts(array, parameter.name), "input"))
        for parameter, array in zip(record.inputs[1:], arrays, strict=True)
    ]
    operands += [
        (attribute.name, Operand((layer.get_attributes()[attribute.name],), 0, None, "attribute"))
        for attribute in record.attributes
    ]
    try:
        plan(bind(record, operands, len(layer.outputs())), sizes)
    except SplitError as error:
        raise error.located(operator=record.id, node=f"{place}{_path(layer)}") from None


def _constant(node: Any) -> Any:
    """The value of a constant; None for what is none, or is packed."""
    if node.get_type_name() != "Constant" or node.get_element_type().bitwidth < 8:
        return None
    return np.asarray(node.data)


def _compute(core: Any, model: Any, values: list[Any], tensors: dict[int, Any]) -> list[Any]:
    """The values that some layers compute."""
    results = [opset8.result(value) for value in values]
    part = openvino.Model(results, model.get_parameters(), "operands")
    inference = core.compile_model(part, "CPU").create_infer_request()
    inference.start_async(tensors)
    inference.wait()
    return [from_openvino(inference.get_output_tensor(place)) for place in range(len(values))]
