"""Running a model in another engine, after everything that could harm the engine was refused."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from onnx import ModelProto

from tensorsplit.arrays.numpy import element_type
from tensorsplit.core.errors import ENGINE_REFUSED, EXTERNAL_DATA, SEQUENCE_INDEX, SplitError
from tensorsplit.engines.process import process_of
from tensorsplit.model.graph.message import tensors_outside
from tensorsplit.model.graph.reading import OnnxModel, check_feeds
from tensorsplit.model.graph.tensors import check_external, inlined
from tensorsplit.model.infer.validation import validate, values_needed
from tensorsplit.model.run.evaluator import evaluate
from tensorsplit.model.run.program import compile_model

_ADAPTERS = {
    "onnx-reference": "tensorsplit.engines.adapters:run_onnx_reference",
    "onnxruntime": "tensorsplit.engines.adapters:run_onnxruntime",
    "openvino": "tensorsplit.engines.adapters:run_openvino",
}
_PROBE = "tensorsplit.engines.openvino_probe"
_READS_IR = frozenset({"openvino"})
_FOLDS_DEFAULTS = frozenset({"openvino"})
_DAMAGED_BY_STRINGS = frozenset({"openvino"})
_MAX_MESSAGE = (1 << 31) - 1


@dataclass(frozen=True, slots=True)
class Request:
    """A model and what to feed it; everything in it has been checked.

    Attributes:
        model: The path of the model's file, or its bytes.
        feeds: The inputs by name, in the model's order: arrays, lists of arrays, or None for an
            optional that is empty. Of an IR, all inputs are there.
        outputs: The names of the outputs, in the model's order.
        adapter: Another adapter than the engine's own.
    """

    model: str | bytes
    feeds: dict[str, Any]
    outputs: tuple[str, ...]
    adapter: str = ""


def run_outside(
    engine: str,
    model: OnnxModel,
    inputs: Mapping[str, Any],
) -> dict[str, Any]:
    """Run a model in the process of an engine.

    Args:
        engine: Any engine but ``numpy``.
        model: The model.
        inputs: What is fed, by name.

    Returns:
        The outputs by name, in the graph's order.

    Raises:
        SplitError: TS1xx to TS5xx before the engine sees the model; TS602 to TS604.
    """
    request = (_onnx_request if model.openvino is None else _ir_request)(engine, model, inputs)
    process = process_of(engine, _ADAPTERS[engine])
    outputs: dict[str, Any] = process.call(
        (request.model, b"", request.feeds, request.outputs), adapter=request.adapter
    )
    if engine in _DAMAGED_BY_STRINGS and _has_strings([*request.feeds.values(), *outputs.values()]):
        process.close()  # D17: its heap may be corrupt, which the next model must not suffer from
    return outputs


def _ir_request(engine: str, model: OnnxModel, inputs: Mapping[str, Any]) -> Request:
    if engine not in _READS_IR:
        raise SplitError(
            ENGINE_REFUSED,
            f"{engine} reads no OpenVINO IR",
            f"use engine={' or '.join(map(repr, ('numpy', *_READS_IR)))}",
            parameter="engine",
        )
    feeds = check_feeds(model.inputs, inputs)
    compile_model(model)
    return Request(
        str((model.path or Path()).resolve()),
        {name: _plain(value) for name, value in feeds.items()},
        model.output_names,
        _PROBE if validate(model.model, feeds).undecided else "",
    )


def _onnx_request(engine: str, model: OnnxModel, inputs: Mapping[str, Any]) -> Request:
    feeds = check_feeds(model.inputs, inputs)
    _validate(model, feeds)
    path = None if model.path is None else model.path.resolve()
    if engine in _FOLDS_DEFAULTS and any(entry.has_default for entry in model.inputs):
        path, model = None, _without_defaults(model, feeds)
    outside = list(tensors_outside(model.original))
    by_path = path is not None and path.suffix == ".onnx"
    for tensor in outside if by_path else ():
        check_external(tensor, model.folder)
    return Request(
        str(path) if by_path else _serialised(model, bool(outside)),
        {name: _plain(value) for name, value in feeds.items()},
        model.output_names,
    )


def _without_defaults(model: OnnxModel, feeds: Mapping[str, Any]) -> OnnxModel:
    """The model without the defaults of the inputs that are fed (D20)."""
    proto = ModelProto()
    proto.CopyFrom(model.original)
    kept = [tensor for tensor in proto.graph.initializer if tensor.name not in feeds]
    del proto.graph.initializer[:]
    proto.graph.initializer.extend(kept)
    return OnnxModel(proto, model.folder, model.name)


def _validate(model: OnnxModel, feeds: Mapping[str, Any]) -> None:
    """Refuse what could harm an engine.

    Where lengths, or positions in sequences, can't be known otherwise, the nodes that compute them
    run here, by the engine ``numpy``.

    Raises:
        SplitError: TS502, TS504, TS509 for a model that is not well-formed; TS101 to TS309, TS511
            for a split node or a position that is wrong. What only the evaluator of the other
            operators refuses is left to the engine.
    """
    compile_model(model)
    facts = validate(model.model, feeds)
    known = dict(feeds)
    for whole in (False, True):
        needed = values_needed(facts, whole=whole)
        if not needed:
            return
        try:
            known |= evaluate(model, feeds, needed)
        except SplitError as error:
            if error.code < "TS4" or error.kind is SEQUENCE_INDEX:
                raise
            return
        facts = validate(model.model, known)


def _serialised(model: OnnxModel, has_outside: bool) -> bytes:
    """The model as bytes, with what lies outside of it taken in."""
    proto = model.original
    if has_outside:
        proto = ModelProto()
        proto.CopyFrom(model.original)
        for tensor in tensors_outside(proto):
            tensor.CopyFrom(inlined(tensor, model.folder, tensor.name))
    size = proto.ByteSize()
    if size > _MAX_MESSAGE:
        raise SplitError(
            EXTERNAL_DATA,
            f"the model has {size} bytes together with its external data, more than the 2 GiB"
            " that can be passed on",
            "save it as an .onnx file, and give its path",
        )
    return bytes(proto.SerializeToString())


def _plain(value: Any) -> Any:
    """A value as every engine takes it: strings as ``str`` objects, everything contiguous."""
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if not isinstance(value, np.ndarray):
        return value
    if element_type(value) != "string":
        return np.ascontiguousarray(value).reshape(value.shape)
    texts = [
        item.decode("utf-8", "surrogateescape") if isinstance(item, bytes) else str(item)
        for item in value.reshape(-1).tolist()
    ]
    plain = np.empty(len(texts), object)
    plain[:] = texts
    return plain.reshape(value.shape)


def _has_strings(values: list[Any]) -> bool:
    return any(isinstance(value, np.ndarray) and value.dtype.hasobject for value in values)
