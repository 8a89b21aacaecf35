"""Checking the split layers of a model whose other layers only OpenVINO can run.

OpenVINO does not check negative lengths before it reads memory (D7), so the operands are looked at
before it splits: first as far as the shapes of the inputs tell, then, for what depends on computed
values, by running what computes them. Layers come in order, so that whatever is run to check one
consists of layers that have been checked. What only a body computes is checked while it runs, by
guards; they also stand where the main graph might compute something else the second time.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import openvino
from openvino import opset8

from tensorsplit.arrays.numpy import operand_parts
from tensorsplit.core.errors import ENGINE_REFUSED, SplitError
from tensorsplit.core.operands import Operand
from tensorsplit.core.resolve import bind, plan
from tensorsplit.core.schema import Operator
from tensorsplit.engines.adapters import (
    Run,
    compile_openvino,
    from_openvino,
    infer_openvino,
    openvino_tensors,
)
from tensorsplit.openvino.split_guards import (
    attribute_operands,
    bodies,
    guard_bodies,
    guard_splits,
    path,
    record_of,
    stopped_at,
)


def load(model: str | bytes, weights: bytes) -> Run:
    """Load an IR, as `run_openvino` takes it; each run checks its splits and guards them."""
    core, network = _read(model, weights)
    made: dict[Any, Any] = {}  # for the shapes that were fed last: what is checked, what runs

    def run(inputs: Mapping[str, Any], outputs: Sequence[str]) -> dict[str, Any]:
        tensors = openvino_tensors(network, model, inputs)
        shapes = tuple(tuple(tensor.shape) for tensor in tensors.values())
        with _stops():
            checked, compiled = made.get(shapes) or (network.clone(), None)
            if compiled is None:
                pairs = zip(tensors, shapes, strict=True)
                given = {checked.inputs[i]: openvino.PartialShape(list(s)) for i, s in pairs}
                checked.reshape(given)
                guard_bodies(checked)
            _check_splits(core, checked, tensors)
            if compiled is None:  # only now: compiling folds constants, lengths among them
                guarded = checked.clone()
                guard_splits(guarded)
                compiled = compile_openvino(core, guarded)
                made.clear()
                made[shapes] = checked, compiled
            return infer_openvino(compiled, tensors, outputs)

    return run


def load_guarded(model: str | bytes, weights: bytes) -> Run:
    """Load an ONNX model that OpenVINO reads, with guards of its splits."""
    core, network = _read(model, weights)
    guard_splits(network)
    with _stops():
        compiled = compile_openvino(core, network)

    def run(inputs: Mapping[str, Any], outputs: Sequence[str]) -> dict[str, Any]:
        with _stops():
            return infer_openvino(compiled, openvino_tensors(network, model, inputs), outputs)

    return run


def _read(model: str | bytes, weights: bytes) -> tuple[Any, Any]:
    core = openvino.Core()
    return core, core.read_model(model) if isinstance(model, str) else core.read_model(
        model, weights
    )


@contextmanager
def _stops() -> Iterator[None]:
    """Say where a guarded model stops (TS603)."""
    try:
        yield
    except RuntimeError as error:
        where = stopped_at(str(error))
        if where is None:
            raise
        raise SplitError(
            ENGINE_REFUSED,
            f"openvino stops at {where}: its axis or lengths do not fit the data",
            parameter="engine",
        ) from None


def _check_splits(core: Any, model: Any, tensors: dict[int, Any]) -> None:
    """Refuse a wrong split layer (TS1xx to TS3xx).

    In bodies, those are checked whose operands are constants and whose data has a known shape.
    """
    for layer in model.get_ordered_ops():
        record = record_of(layer)
        if record is not None:
            data, *given = layer.input_values()
            known = _known(layer)
            if known is None:
                wanted = [opset8.shape_of(data).output(0), *given]
                sizes, *arrays = _compute(core, model, wanted, tensors)
                known = tuple(sizes.tolist()), arrays
            _check(layer, record, *known)
        branch = None
        if layer.get_type_name() == "If":
            (condition,) = _compute(core, model, [layer.input_value(0)], tensors)
            branch = 0 if condition.all() else 1
        _check_bodies(layer, branch, f"{path(layer)} / ")


def _check_bodies(layer: Any, branch: int | None, place: str) -> None:
    """Check the bodies of a layer; of an If the branch that is taken, or both."""
    models = bodies(layer)
    for body in models if branch is None else [models[branch]]:
        for inner in body.get_ordered_ops():
            record = record_of(inner)
            known = None if record is None else _known(inner)
            if record is not None and known is not None:
                _check(inner, record, *known, place)
            _check_bodies(inner, None, f"{place}{path(inner)} / ")


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
    try:
        plan(
            bind(record, [*operands, *attribute_operands(layer, record)], len(layer.outputs())),
            sizes,
        )
    except SplitError as error:
        raise error.located(operator=record.id, node=f"{place}{path(layer)}") from None


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
