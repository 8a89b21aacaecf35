"""The verdict on a subject after an attempt.

An engine is judged by the bits of its outputs, and by their shapes and element types. A tool is
judged by whether the model that it returns still means the same, which is what our own engine makes
of it: the same outputs of legal data, and a refusal of illegal data. One that infers shapes is
judged by the shapes and types that it states of the outputs.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, TypeAlias

import numpy as np
import onnx

from tensorsplit.arrays.numpy import element_type
from tensorsplit.conformance.case import Built, Case
from tensorsplit.conformance.document import PASS, UNTESTED, Result
from tensorsplit.conformance.subjects import Traits
from tensorsplit.engines.compare import Difference, differences
from tensorsplit.engines.process import Death, Reply
from tensorsplit.model.graph.tensors import Array, element_name

_HEAP = re.compile(
    r"corrupt|double free|free\(\)|malloc\(\)|realloc\(\)|munmap_chunk|unsorted|smash"
)
_MEMORY_SIGNALS = ("SIGSEGV", "SIGBUS")
_MOST_OUTPUTS = 6
_LONGEST = 2_000

_Make: TypeAlias = Callable[..., Result]

Execute: TypeAlias = Callable[[bytes, Mapping[str, Any]], Reply]
"""Runs a model with our own engine."""


def judge(
    case: Case,
    title: str,
    traits: Traits,
    built: Built,
    reply: Reply,
    *,
    execute: Execute,
    affected: str = "",
) -> Result:
    """Judge a subject's reply on the files of a case.

    A tool is given no data: a model that only its data makes illegal is a legal one for it.

    Args:
        case: The case.
        title: What the subject is called in the document.
        traits: What is known of the subject.
        built: The files.
        reply: What came of them.
        execute: Runs the models that a tool makes.
        affected: The later case that died of what this one did; empty where it died itself.
    """
    make = partial(_result, case.id, title)
    is_tool = traits.kind == "tool"
    accepted = "accepted-but-illegal" if built.expected is None else "wrong"
    if reply.death is not None:
        return _of_death(make, reply.death, affected, accepted)
    if reply.words is not None and not reply.has_returned:
        if built.expected is not None or (is_tool and built.legal is not None):
            unsupported = UNTESTED if is_tool else "unsupported-type"
            return make(unsupported if reply.unsupported else "refused-but-legal", reply.words)
        # Any refusal will do, but one that would come for a right model as well.
        lacks = reply.unsupported and not case.is_about_types
        return make(UNTESTED, reply.words) if lacks else make(PASS)
    if isinstance(reply.result, bytes):
        return _of_model(make, built, reply.result, None if traits.states_shapes else execute)
    if isinstance(reply.result, Mapping):
        return _of_outputs(make, built, reply.result)
    return make(accepted, reply.words or "it neither refuses nor returns a result")


def _result(case: str, subject: str, verdict: str, detail: str = "", **rest: Any) -> Result:
    """Return a result with texts that can be read, whatever the names and values are."""
    texts = {"detail": detail, **rest}
    for name, text in texts.items():
        if isinstance(text, str) and len(text) > _LONGEST:
            texts[name] = f"{text[:_LONGEST]}..."
    return Result(case, subject, verdict, **texts)


def _of_death(make: _Make, death: Death, affected: str, accepted: str) -> Result:
    if death.seconds is not None or death.has_answered:
        return make(accepted if death.has_answered else "hang", f"it {death}")
    detail = f"the process {death}"
    if affected:
        detail += f", while it ran {affected}, which lives where this case did not run before"
    memory = affected or death.signal in _MEMORY_SIGNALS or _HEAP.search(death.stderr_tail)
    return make("crash", detail, signal=death.signal, memory=bool(memory))


def _of_outputs(make: _Make, built: Built, outputs: Mapping[str, object]) -> Result:
    """Return the verdict on outputs by name."""
    outside = _is_from_outside(outputs, built)
    if built.expected is None:
        detail = f"it should refuse, but gives {_shapes(outputs)}"
        return make("accepted-but-illegal", detail, memory=outside)
    try:
        found = differences(outputs, built.expected, engine="it", reference="the standard")
    except Exception as error:  # noqa: BLE001 - an engine may return objects of any kind
        return make("wrong", f"its outputs are not tensors: {error}")
    if not found:
        return make(PASS)
    first = found[0]
    return make(
        "wrong",
        _words(first),
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


def _is_from_outside(outputs: Mapping[str, object], built: Built) -> bool:
    """Return whether something was read that is not the data.

    More elements came out than there are, and some of them are in no input. (That some came out
    twice is not an error of memory.)
    """
    data = max(map(_elements, built.inputs.values()), default=0)
    if not data or _elements(outputs) <= max(data, _elements(built.expected)):
        return False
    there = {item for array in _arrays(built.inputs) for item in _items(array)}
    return any(not there.issuperset(_items(array)) for array in _arrays(outputs))


def _arrays(value: object) -> Iterator[Array]:
    """Yield the arrays in an array, a list or a dictionary."""
    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, list):
        for item in value:
            yield from _arrays(item)
    elif value is not None:
        yield np.asarray(value)


def _items(array: Array) -> Iterator[bytes]:
    """Return the bits of each element."""
    if array.dtype.kind in "OUST":
        return (str(item).encode(errors="surrogateescape") for item in array.reshape(-1).tolist())
    octets, size = array.tobytes(), array.dtype.itemsize
    return (octets[place : place + size] for place in range(0, len(octets), size))


def _elements(value: object) -> int:
    """Count the elements of an array, or of all arrays of a list or a dictionary."""
    return sum(array.size for array in _arrays(value))


def _shapes(outputs: Mapping[str, object]) -> str:
    """Return the shapes of outputs, such as ``a float32 [2, 3], b float32 [2, 3]``."""
    texts = [f"{name} {_shape(value)}" for name, value in outputs.items()]
    if len(texts) > _MOST_OUTPUTS:
        texts = [*texts[:_MOST_OUTPUTS], f"and {len(texts) - _MOST_OUTPUTS} more"]
    return ", ".join(texts) or "no outputs"


def _shape(value: object) -> str:
    if value is None:
        return "nothing"
    if isinstance(value, list):
        shapes = ", ".join(map(_shape, value[:_MOST_OUTPUTS]))
        return f"a sequence of {len(value)} ({shapes})"
    array = np.asarray(value)
    return f"{array.dtype} {list(array.shape)}"


def undeclared(model: bytes) -> bytes:
    """Return a serialised model without the shapes of its outputs, so that they are inferred."""
    proto = onnx.load_from_string(model)
    del proto.graph.value_info[:]
    for output in proto.graph.output:
        _tensor_type(output.type).ClearField("shape")
    return bytes(proto.SerializeToString())


def _of_model(make: _Make, built: Built, octets: bytes, execute: Execute | None) -> Result:
    """Return the verdict on a model; one that only states shapes is not executed."""
    try:
        proto = onnx.load_from_string(octets)
    except Exception as error:  # noqa: BLE001 - a tool may return any bytes
        return make("wrong", f"what it returns is not a model: {error}")
    if execute is None:
        return _of_statements(make, built, proto)
    return _of_meaning(make, built, octets, [entry.name for entry in proto.graph.input], execute)


def _of_meaning(
    make: _Make, built: Built, octets: bytes, names: Sequence[str], execute: Execute
) -> Result:
    if built.legal is not None:
        inputs, expected = built.legal
        legal = replace(built, inputs=inputs, expected=expected, legal=None)
        result = _of_meaning(make, legal, octets, names, execute)
        if result.is_deviation:
            return result
    reply = execute(octets, {name: built.inputs[name] for name in names if name in built.inputs})
    if reply.error is not None and built.expected is None:
        return make(PASS)
    if reply.death is not None or reply.words is not None:
        why = reply.error or f"our own engine {reply.death or f'says {reply.words}'}"
        return make("wrong", f"the model that it returns can't be run: {why}")
    result = _of_outputs(make, built, reply.result)
    if not result.is_deviation:
        return result
    if built.expected is None:
        detail = "the original is to be refused, but the model that it returns gives"
        return make("lost-refusal", f"{detail} {_shapes(reply.result)}")
    return replace(result, detail=f"its model is wrong: {result.detail}", memory=False)


def _of_statements(make: _Make, built: Built, proto: onnx.ModelProto) -> Result:
    if built.legal is not None:  # what is stated of the shapes holds for legal data
        built = replace(built, expected=built.legal[1], legal=None)
    stated = {output.name: _stated(output.type) for output in proto.graph.output}
    if built.expected is None:
        known = [
            f"{name} {text}"
            for name, (_, dims, text) in stated.items()
            if dims is not None and None not in dims
        ]
        if not known:
            return make(PASS)
        detail = f"it should refuse, but states the shape of {', '.join(known)}"
        return make("accepted-but-illegal", detail)
    for name, (kind, dims, text) in stated.items():
        value = built.expected.get(name)
        for array in map(np.asarray, value if isinstance(value, list) else [value]):
            pairs = [("element type", element_type(array), kind)] if kind else []
            if dims is not None and not _fits(dims, array.shape):
                pairs.append(("shape", str(list(array.shape)), text))
            for what, expected, seen in pairs:
                if expected != seen:
                    detail = f"output {name}: it states {what} {seen}, not {expected}"
                    return make("wrong", detail, output=name, expected=expected, seen=seen)
    return make(PASS)


_Dims: TypeAlias = "list[int | None] | None"


def _stated(kind: onnx.TypeProto) -> tuple[str, _Dims, str]:
    """Return the element type, empty if there is none, and the dimensions or None, as text."""
    stated = _tensor_type(kind)
    number = stated.elem_type
    name = element_name(number) or f"number {number}" if number else ""
    if not stated.HasField("shape"):
        return name, None, ""
    dims = [dim.dim_value if dim.HasField("dim_value") else None for dim in stated.shape.dim]
    return name, dims, f"[{', '.join('?' if dim is None else str(dim) for dim in dims)}]"


def _fits(dims: list[int | None], shape: tuple[int, ...]) -> bool:
    return len(dims) == len(shape) and all(
        dim in (None, size) for dim, size in zip(dims, shape, strict=True)
    )


def _tensor_type(kind: onnx.TypeProto) -> onnx.TypeProto.Tensor:
    """Return the tensor type, or that of the tensors in a sequence or an optional."""
    match kind.WhichOneof("value"):
        case "sequence_type":
            return _tensor_type(kind.sequence_type.elem_type)
        case "optional_type":
            return _tensor_type(kind.optional_type.elem_type)
    return kind.tensor_type
