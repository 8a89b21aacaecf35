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
from functools import cache, partial
from typing import Any

import openvino
from openvino import opset8
from openvino.passes import ConstantFolding, Manager

from tensorsplit.core.errors import ENGINE_REFUSED, SplitError
from tensorsplit.engines.adapters import (
    Outputs,
    Run,
    compile_openvino,
    from_openvino,
    openvino_tensors,
    read_openvino,
)
from tensorsplit.openvino.split_guards import (
    bodies,
    check_split,
    guard_bodies,
    guard_splits,
    is_known,
    is_split,
    path,
    stopped_at,
)


def load(model: str | bytes, weights: bytes) -> Run:
    """Load an IR, as `run_openvino` takes it; each run checks its splits and guards them."""
    core = openvino.Core()
    network = read_openvino(core, model, weights)
    made: dict[Any, Any] = {}  # for the shapes that were fed last: what is checked, what runs
    unguarded = cache(partial(compile_openvino, core, network))

    def run(inputs: Mapping[str, object], outputs: Sequence[str]) -> Outputs:
        tensors = openvino_tensors(network, model, inputs)
        shapes = tuple(tuple(tensor.shape) for tensor in tensors.values())
        with _stops():
            checked, infer = made.get(shapes) or (network.clone(), None)
            if infer is None:
                pairs = zip(tensors, shapes, strict=True)
                given = {checked.inputs[i]: openvino.PartialShape(list(s)) for i, s in pairs}
                checked.reshape(given)
                in_bodies = guard_bodies(checked)
            _check_splits(core, checked, tensors)
            if infer is None:  # only now: lengths are among the constants that are folded
                guarded = _folded(checked)
                is_guarded = guard_splits(guarded) or in_bodies
                infer = compile_openvino(core, guarded) if is_guarded else unguarded()
                made.clear()
                made[shapes] = checked, infer
            return infer(tensors, outputs)

    return run


def _folded(model: openvino.Model) -> openvino.Model:
    """Return a copy of a model, of which all that follows from constants and shapes is a constant.

    OpenVINO does not load some guards of lengths that follow from shapes.
    """
    made, passes = model.clone(), Manager()
    passes.register_pass(ConstantFolding())
    passes.run_passes(made)
    return made


def load_guarded(model: str | bytes, weights: bytes) -> Run:
    """Load an ONNX model that OpenVINO reads, with guards of its splits."""
    core = openvino.Core()
    network = read_openvino(core, model, weights)
    guard_splits(network)
    with _stops():
        infer = compile_openvino(core, network)

    def run(inputs: Mapping[str, object], outputs: Sequence[str]) -> Outputs:
        with _stops():
            return infer(openvino_tensors(network, model, inputs), outputs)

    return run


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


def _check_splits(
    core: openvino.Core, model: openvino.Model, tensors: dict[int, openvino.Tensor]
) -> None:
    """Refuse a wrong split layer (TS1xx to TS3xx).

    In bodies, those are checked whose operands are constants and whose data has a known shape.
    """
    for layer in model.get_ordered_ops():
        if is_split(layer) and not is_known(layer):
            data, *given = layer.input_values()
            wanted = [opset8.shape_of(data).output(0), *given]
            sizes, *arrays = _compute(core, model, wanted, tensors)
            operands = [opset8.constant(array).output(0) for array in arrays]
            check_split(layer, tuple(sizes.tolist()), operands)
        branch = None
        if layer.get_type_name() == "If":
            (condition,) = _compute(core, model, [layer.input_value(0)], tensors)
            branch = 0 if condition.all() else 1
        _check_known(layer, branch)


def _check_known(layer: openvino.Node, branch: int | None, place: str = "") -> None:
    """Check a layer and its bodies as far as they are known; of an If one branch, or both."""
    if is_split(layer) and is_known(layer):
        data, *operands = layer.input_values()
        check_split(layer, tuple(data.get_shape()), operands, place)
    models = bodies(layer)
    for body in models if branch is None else [models[branch]]:
        for inner in body.get_ordered_ops():
            _check_known(inner, None, f"{place}{path(layer)} / ")


def _compute(
    core: openvino.Core,
    model: openvino.Model,
    values: list[openvino.Output],
    tensors: dict[int, openvino.Tensor],
) -> list[Any]:
    """Return the values that some layers compute."""
    results = [opset8.result(value) for value in values]
    part = openvino.Model(results, model.get_parameters(), "operands")
    inference = core.compile_model(part, "CPU").create_infer_request()
    inference.start_async(tensors)
    inference.wait()
    return [from_openvino(inference.get_output_tensor(place)) for place in range(len(values))]
