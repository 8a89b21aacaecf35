"""What an attempt says about a subject.

An engine is judged by the bits of its outputs, and by their shapes and element types. A tool is
judged by whether the model that it returns still means the same, which is what our own engine makes
of it; one that infers shapes, by the shapes and types that it states of the outputs.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import onnx
from onnx.helper import np_dtype_to_tensor_dtype

from tensorsplit.conformance.case import Built
from tensorsplit.conformance.document import PASS, UNTESTED, Result
from tensorsplit.conformance.isolation import Attempt
from tensorsplit.core.errors import SplitError
from tensorsplit.engines import run
from tensorsplit.engines.compare import Difference, differences
from tensorsplit.engines.process import ProcessDied

_HEAP = re.compile(
    r"corrupt|double free|free\(\)|malloc\(\)|realloc\(\)|munmap_chunk|unsorted|smash"
)
_MEMORY_SIGNALS = ("SIGSEGV", "SIGBUS")
_MOST_OUTPUTS = 6


def judge(
    case: str,
    subject: str,
    built: Built,
    attempt: Attempt,
    *,
    states_shapes: bool = False,
    about_types: bool = False,
) -> Result:
    """Judge what a subject did with a case.

    Args:
        case: The case's id.
        subject: The subject's name.
        built: The case's files.
        attempt: What came of them.
        states_shapes: Whether it is to be judged by the shapes and types that it states.
        about_types: Whether an element type is what is wrong with the model.
    """
    passed = Result(case, subject, PASS)
    if attempt.death is not None:
        return _of_death(passed, attempt.death, attempt.affected)
    if attempt.result is None and attempt.refusal is None:
        verdict = "accepted-but-illegal" if built.expected is None else "wrong"
        return replace(passed, verdict=verdict, detail="it neither refuses nor returns a result")
    if attempt.result is None:
        return _of_refusal(passed, built, attempt, about_types=about_types)
    if not isinstance(attempt.result, bytes):
        return _of_outputs(passed, built, attempt.result)
    try:
        proto = onnx.load_from_string(attempt.result)
    except Exception as error:  # noqa: BLE001 - a tool may return any bytes
        return replace(passed, verdict="wrong", detail=f"what it returns is no model: {error}")
    return (_of_statements if states_shapes else _of_meaning)(passed, built, proto)


def _of_death(passed: Result, death: ProcessDied, affected: str) -> Result:
    """The verdict on a process that died; `affected` is the later case that died of it, if any."""
    if death.seconds is not None:
        return replace(passed, verdict="hang", detail=f"it {death}")
    detail = f"the process {death}"
    if affected:
        detail += f", while it ran {affected}, which lives where this case did not run before"
    memory = affected or death.signal in _MEMORY_SIGNALS or _HEAP.search(death.stderr_tail)
    return replace(passed, verdict="crash", detail=detail, signal=death.signal, memory=bool(memory))


def _of_refusal(passed: Result, built: Built, attempt: Attempt, *, about_types: bool) -> Result:
    """The verdict on a refusal.

    Where the standard asks for one, any will do, but one that would come for a right model as well.
    """
    detail = attempt.refusal or ""
    if built.expected is not None:
        verdict = "unsupported-type" if attempt.unsupported else "refused-but-legal"
        return replace(passed, verdict=verdict, detail=detail)
    if attempt.unsupported and not about_types:
        return replace(passed, verdict=UNTESTED, detail=detail)
    return passed


def _of_outputs(passed: Result, built: Built, outputs: Mapping[str, Any]) -> Result:
    """The verdict on outputs by name."""
    outside = _is_from_outside(outputs, built)
    if built.expected is None:
        detail = f"it should refuse, but gives {_shapes(outputs)}"
        return replace(passed, verdict="accepted-but-illegal", detail=detail, memory=outside)
    try:
        found = differences(
            outputs, built.expected, engine=passed.subject, reference="the standard"
        )
    except Exception as error:  # noqa: BLE001 - an engine may return objects of any kind
        return replace(passed, verdict="wrong", detail=f"its outputs are no tensors: {error}")
    if not found:
        return passed
    first = found[0]
    return replace(
        passed,
        verdict="wrong",
        detail=_words(first),
        output=first.output,
        index=first.index or (),
        expected=first.expected,
        seen=first.found,
        memory=outside,
    )


def _words(first: Difference) -> str:
    name = f"output {first.output}"
    if first.aspect != "values":
        return f"{name}: {first.aspect} {first.found}, not {first.expected}"
    count = "1 value differs" if first.count == 1 else f"{first.count} values differ"
    return f"{name}: {count}; the first is {first.found}, not {first.expected}"


def _is_from_outside(outputs: Mapping[str, Any], built: Built) -> bool:
    """Whether something was read that is not the data.

    More elements came out than there are, and some of them are in no input. (That some came out
    twice is no error of memory.)
    """
    data = max(map(_elements, built.inputs.values()), default=0)
    if not data or _elements(outputs) <= max(data, _elements(built.expected)):
        return False
    there = {item for array in _arrays(built.inputs) for item in _items(array)}
    return any(not there.issuperset(_items(array)) for array in _arrays(outputs))


def _arrays(value: Any) -> Iterator[np.ndarray[Any, Any]]:
    """The arrays in an array, a list or a dictionary."""
    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, list):
        for item in value:
            yield from _arrays(item)
    elif value is not None:
        yield np.asarray(value)


def _items(array: np.ndarray[Any, Any]) -> Iterator[bytes]:
    """The bits of each element."""
    if array.dtype.kind in "OUST":
        return (str(item).encode(errors="surrogateescape") for item in array.reshape(-1).tolist())
    octets, size = array.tobytes(), array.dtype.itemsize
    return (octets[place : place + size] for place in range(0, len(octets), size))


def _elements(value: Any) -> int:
    """How many elements there are in an array, or in all arrays of a list or a dictionary."""
    return sum(array.size for array in _arrays(value))


def _shapes(outputs: Mapping[str, Any]) -> str:
    """The shapes of outputs, such as ``a float32 [2, 3], b float32 [2, 3]``."""
    texts = [f"{name} {_shape(value)}" for name, value in outputs.items()]
    if len(texts) > _MOST_OUTPUTS:
        texts = [*texts[:_MOST_OUTPUTS], f"and {len(texts) - _MOST_OUTPUTS} more"]
    return ", ".join(texts) or "no outputs"


def _shape(value: Any) -> str:
    if value is None:
        return "nothing"
    if isinstance(value, list):
        shapes = ", ".join(map(_shape, value[:_MOST_OUTPUTS]))
        return f"a sequence of {len(value)} ({shapes})"
    array = np.asarray(value)
    return f"{array.dtype} {list(array.shape)}"


def undeclared(model: bytes) -> bytes:
    """A serialised model without the shapes of its outputs, so that they are inferred."""
    proto = onnx.load_from_string(model)
    del proto.graph.value_info[:]
    for output in proto.graph.output:
        _tensor_type(output.type).ClearField("shape")
    return bytes(proto.SerializeToString())


def _of_meaning(passed: Result, built: Built, proto: onnx.ModelProto) -> Result:
    names = {entry.name for entry in proto.graph.input}
    feeds = {name: value for name, value in built.inputs.items() if name in names}
    try:
        outputs = run(proto, feeds)
    except SplitError as error:
        if built.expected is None:
            return passed
        detail = f"the model that it returns can't be run: {error}"
        return replace(passed, verdict="wrong", detail=detail)
    result = _of_outputs(passed, built, outputs)
    if not result.is_deviation:
        return result
    what = "the model that it returns runs" if built.expected is None else "its model is wrong"
    return replace(result, detail=f"{what}: {result.detail}", memory=False)


def _of_statements(passed: Result, built: Built, proto: onnx.ModelProto) -> Result:
    if built.expected is None:
        stated = {output.name: _dims(output) for output in proto.graph.output}
        known = [
            f"{name} {_text(dims)}"
            for name, dims in stated.items()
            if dims is not None and None not in dims
        ]
        if not known:
            return passed
        detail = f"it should refuse, but states the shape of {', '.join(known)}"
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
    stated = _tensor_type(output.type).elem_type
    dims = _dims(output)
    for array in value if isinstance(value, list) else [value]:
        kind, shape = _element_type(array), list(np.shape(array))
        if stated not in (0, kind):
            yield "element type", _type_name(kind), _type_name(stated)
        if dims is None:
            continue
        if len(dims) != len(shape) or any(
            dim not in (None, size) for dim, size in zip(dims, shape, strict=True)
        ):
            yield "shape", str(shape), _text(dims)


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
    return f"[{', '.join('?' if dim is None else str(dim) for dim in dims or ())}]"
