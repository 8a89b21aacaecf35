"""Running a model in another engine, after everything that could harm the engine was refused."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from onnx import ModelProto

from tensorsplit.arrays.numpy import element_type
from tensorsplit.core.errors import ENGINE_REFUSED, EXTERNAL_DATA, SEQUENCE_INDEX, SplitError
from tensorsplit.engines.process import EngineProcess, process_of
from tensorsplit.model.feeds import check_feeds
from tensorsplit.model.graph.calls import check_expanded
from tensorsplit.model.graph.message import tensors_outside
from tensorsplit.model.graph.reading import OnnxModel
from tensorsplit.model.graph.tensors import check_external, inlined
from tensorsplit.model.infer.validation import validate, values_needed
from tensorsplit.model.run.evaluator import evaluate
from tensorsplit.model.run.program import compile_model

_OPENVINO = "openvino"
_PROBE = "tensorsplit.engines.openvino_probe"
_MAX_MESSAGE = (1 << 31) - 1


def run_outside(
    engine: str,
    model: OnnxModel,
    inputs: Mapping[str, Any],
    find: Callable[[str, str], EngineProcess] = process_of,
) -> dict[str, Any]:
    """Run a model in the process of any engine but ``numpy``; refusals as of `engines.run`.

    The process is found by its name and its adapter.
    """
    adapter = ""  # the engine's own
    if model.openvino is None:
        feeds = check_feeds(model.inputs, inputs)
        if not _validate(model, feeds) and engine == _OPENVINO:
            adapter = f"{_PROBE}:run_guarded"
        content = _content(engine, model, feeds)
    elif engine == _OPENVINO:
        feeds = check_feeds(model.inputs, inputs)
        compile_model(model)
        content = str((model.path or Path()).absolute())
        adapter = _PROBE if validate(model.model, feeds).undecided else ""
    else:
        raise SplitError(
            ENGINE_REFUSED,
            f"{engine} reads no OpenVINO IR",
            "use engine='numpy' or 'openvino'",
            parameter="engine",
        )
    fed = {name: _plain(value) for name, value in feeds.items()}
    process = find(engine, f"tensorsplit.engines.adapters:run_{engine.replace('-', '_')}")
    outputs: dict[str, Any] = process.call((content, b"", fed, model.output_names), adapter=adapter)
    if engine == _OPENVINO and _has_strings([*fed.values(), *outputs.values()]):
        process.close()  # D17: its heap may be corrupt, which the next model must not suffer from
    return outputs


def _content(engine: str, model: OnnxModel, feeds: Mapping[str, Any]) -> str | bytes:
    """What the engine is given: the path of the model's file, or its bytes with all data."""
    # A link stays one: the data that was checked lies beside it.
    proto, path = model.original, None if model.path is None else model.path.absolute()
    if engine == _OPENVINO and any(entry.has_default for entry in model.inputs):
        proto, path = _copied(proto), None  # without the defaults of inputs that are fed (D20)
        kept = [tensor for tensor in proto.graph.initializer if tensor.name not in feeds]
        del proto.graph.initializer[:]
        proto.graph.initializer.extend(kept)
    outside = list(tensors_outside(proto))
    if path is not None and path.suffix == ".onnx":
        for tensor in outside:
            check_external(tensor, model.folder)
        return str(path)
    if outside:
        proto = _copied(proto)
        for tensor in tensors_outside(proto):
            tensor.CopyFrom(inlined(tensor, model.folder))
    size = proto.ByteSize()
    if size > _MAX_MESSAGE:
        raise SplitError(
            EXTERNAL_DATA,
            f"the model has {size} bytes together with its external data, more than the 2 GiB"
            " that can be passed on",
            "save it as an .onnx file, and give its path",
        )
    return bytes(proto.SerializeToString())


def _copied(proto: ModelProto) -> ModelProto:
    copy = ModelProto()
    copy.CopyFrom(proto)
    return copy


def _validate(model: OnnxModel, feeds: Mapping[str, Any]) -> bool:
    """Refuse what could harm an engine: malformed models, wrong split nodes and positions.

    Returns whether the feeds alone decided all that is checked.

    Where lengths, or positions in sequences, can't be known otherwise, the nodes that compute them
    run here, by the engine ``numpy``. What only the evaluator of the other operators refuses is
    left to the engine.
    """
    block = compile_model(model)
    check_expanded(model.model, "use engine='numpy', which runs each function as it is")
    facts = validate(model.model, feeds)
    known = dict(feeds)
    is_decided = True
    for whole in (False, True):
        needed = values_needed(facts, whole=whole)
        if not needed:
            break
        is_decided = False
        try:
            known |= evaluate(block, feeds, needed)
        except SplitError as error:
            if error.code < "TS4" or error.kind is SEQUENCE_INDEX:
                raise
            break
        facts = validate(model.model, known)
    return is_decided


def _plain(value: Any) -> Any:
    """A value as every engine takes it: strings as ``str`` objects."""
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if not isinstance(value, np.ndarray) or element_type(value) != "string":
        return value
    plain = np.empty(value.size, object)
    plain[:] = [
        item.decode("utf-8", "surrogateescape") if isinstance(item, bytes) else str(item)
        for item in value.reshape(-1).tolist()
    ]
    return plain.reshape(value.shape)


def _has_strings(values: list[Any]) -> bool:
    return any(isinstance(value, np.ndarray) and value.dtype.hasobject for value in values)
