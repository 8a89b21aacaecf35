"""What a trial says about a tool: whether the model that it returns still means the same.

What the model means is what our own engine makes of it. A tool that infers shapes changes no
meaning; it is judged by the shapes and types that it states of the outputs.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import onnx
from onnx.helper import np_dtype_to_tensor_dtype

from tensorsplit.conformance.case import Built
from tensorsplit.conformance.document import PASS, Result
from tensorsplit.conformance.trial import Trial
from tensorsplit.conformance.verdicts import of_death, of_outputs, of_refusal
from tensorsplit.conformance.worker import Outcome
from tensorsplit.core.errors import SplitError
from tensorsplit.engines.numpy import run as run_here
from tensorsplit.model.graph.reading import read_model

_UPWARDS = 18
_NEWEST = 24
_DOWNWARDS = 13


def target_opset(opset: int, *, downwards: bool = True) -> int:
    """The opset that a converter is asked for: another wording of the split where there is one.

    Args:
        opset: The opset of the model.
        downwards: Whether the converter goes to older opsets too.
    """
    if opset < _UPWARDS:
        return _UPWARDS
    return _DOWNWARDS if downwards else max(opset, _NEWEST)


def undeclared(model: bytes) -> bytes:
    """A model that says of its outputs only what they are, so that their shapes are inferred.

    Args:
        model: The serialised model.
    """
    proto = onnx.load_from_string(model)
    del proto.graph.value_info[:]
    for output in proto.graph.output:
        _tensor_type(output.type).ClearField("shape")
    return bytes(proto.SerializeToString())


def judge(
    case: str, subject: str, built: Built, trial: Trial, *, states_shapes: bool = False
) -> Result:
    """Judge what a tool did.

    Args:
        case: The case's id.
        subject: The tool's name.
        built: The model that it was given, with inputs and what the standard asks for.
        trial: What came of it.
        states_shapes: Whether it is to be judged by the shapes and types that it states.
    """
    if trial.death is not None:
        return of_death(case, subject, trial.death, trial.victim)
    outcome = trial.outcome or Outcome(refusal="there is no result")
    if outcome.model is None:
        return of_refusal(case, subject, outcome, is_legal=built.expected is not None)
    try:
        proto = onnx.load_from_string(outcome.model)
    except Exception as error:  # noqa: BLE001 - a tool may return any bytes
        return Result(case, subject, "wrong", f"what it returns is no model: {error}")
    if states_shapes:
        return _of_statements(Result(case, subject, PASS), built, proto)
    return _of_meaning(Result(case, subject, PASS), built, proto)


def _of_meaning(passed: Result, built: Built, proto: onnx.ModelProto) -> Result:
    names = {entry.name for entry in proto.graph.input}
    feeds = {name: value for name, value in built.inputs.items() if name in names}
    try:
        outputs = run_here(read_model(proto), feeds)
    except SplitError as error:
        if built.expected is None:
            return passed
        detail = f"the model that it returns can't be run: {error}"
        return replace(passed, verdict="wrong", detail=detail)
    result = of_outputs(passed.case, passed.subject, built, outputs)
    if not result.is_deviation:
        return result
    what = "the model that it returns runs" if built.expected is None else "its model is wrong"
    return replace(result, detail=f"{what}: {result.detail}", memory=False)


def _of_statements(passed: Result, built: Built, proto: onnx.ModelProto) -> Result:
    if built.expected is None:
        stated = [output for output in proto.graph.output if _is_known(output)]
        if not stated:
            return passed
        texts = ", ".join(f"{output.name} {_text(_dims(output))}" for output in stated)
        detail = f"it should refuse, but states the shape of {texts}"
        return replace(passed, verdict="accepted-but-illegal", detail=detail)
    for output in proto.graph.output:
        for detail, expected, seen in _differences(output, built.expected.get(output.name)):
            return replace(
                passed,
                verdict="wrong",
                detail=f"output {output.name}: it states {detail} {seen}, not {expected}",
                output=output.name,
                expected=expected,
                seen=seen,
            )
    return passed


def _differences(output: onnx.ValueInfoProto, value: Any) -> Iterator[tuple[str, str, str]]:
    """Where what is stated does not hold: of what, what it is, and what is stated."""
    stated = _tensor_type(output.type)
    dims = _dims(output)
    for array in value if isinstance(value, list) else [value]:
        kind = _element_type(array)
        if stated.elem_type not in (0, kind):
            yield "element type", _type_name(kind), _type_name(stated.elem_type)
        if dims is not None and not _fits(dims, np.shape(array)):
            yield "shape", str(list(np.shape(array))), _text(dims)


def _fits(dims: list[int | None], shape: tuple[int, ...]) -> bool:
    return len(dims) == len(shape) and all(
        dim is None or dim == size for dim, size in zip(dims, shape, strict=True)
    )


def _is_known(output: onnx.ValueInfoProto) -> bool:
    dims = _dims(output)
    return dims is not None and None not in dims


def _dims(output: onnx.ValueInfoProto) -> list[int | None] | None:
    """The dimensions that are stated, None for one that is no number; None if there are none."""
    stated = _tensor_type(output.type)
    if not stated.HasField("shape"):
        return None
    return [dim.dim_value if dim.HasField("dim_value") else None for dim in stated.shape.dim]


def _tensor_type(kind: onnx.TypeProto) -> onnx.TypeProto.Tensor:
    """The tensor type, or that of the tensors in a sequence or an optional."""
    match kind.WhichOneof("value"):
        case "sequence_type":
            return _tensor_type(kind.sequence_type.elem_type)
        case "optional_type":
            return _tensor_type(kind.optional_type.elem_type)
    return kind.tensor_type


def _element_type(array: Any) -> int:
    kind = np.asarray(array).dtype
    return onnx.TensorProto.STRING if kind.kind in "OUST" else int(np_dtype_to_tensor_dtype(kind))


def _type_name(number: int) -> str:
    return str(onnx.TensorProto.DataType.Name(number)).lower()


def _text(dims: list[int | None] | None) -> str:
    return "[" + ", ".join("?" if dim is None else str(dim) for dim in dims or ()) + "]"
