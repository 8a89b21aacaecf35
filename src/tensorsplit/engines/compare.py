"""Where engines differ on the same model and inputs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from tensorsplit.arrays.numpy import element_type
from tensorsplit.core.errors import ENGINE_CRASHED, ENGINE_MISSING, UNKNOWN_ENGINE, SplitError
from tensorsplit.engines import run

Array: TypeAlias = "np.ndarray[Any, np.dtype[Any]]"


@dataclass(frozen=True, slots=True)
class Difference:
    """One thing in which an engine differs from the reference.

    Attributes:
        engine: The engine.
        reference: What it is compared with.
        output: The output, with the position in a sequence, such as ``parts[2]``; empty where
            the engine gave no outputs at all.
        aspect: ``refused``, ``crashed``, ``missing`` (no such output), ``kind`` (a sequence on
            one side only), ``length`` (of a sequence), ``shape``, ``element type`` or ``values``.
        expected: What the reference has, as text.
        found: What the engine has, as text; for a refusal or a crash its message.
        index: The first index at which the values differ.
        count: How many values differ.
        largest: The largest difference of two numbers, as text; None for strings.
    """

    engine: str
    reference: str
    output: str
    aspect: str
    expected: str = ""
    found: str = ""
    index: tuple[int, ...] | None = None
    count: int = 0
    largest: str | None = None

    def __str__(self) -> str:
        if not self.output:
            return f"{self.engine}: {self.aspect}: {self.found}"
        where = f"{self.engine}: output '{self.output}'"
        if self.aspect != "values":
            return f"{where}: {self.aspect} {self.found}, but {self.reference} has {self.expected}"
        index = ", ".join(map(str, self.index or ()))
        largest = f", largest difference {self.largest}" if self.largest is not None else ""
        return (
            f"{where}: {self.count} value{'s differ' if self.count != 1 else ' differs'}{largest};"
            f" the first at [{index}] is {self.found}, but {self.reference} has {self.expected}"
        )


_TEXT = "OUST"
_Make: TypeAlias = Callable[..., Difference]


def compare(
    model: Any,
    inputs: Mapping[str, Any],
    engines: Sequence[str],
    *,
    reference: str | Mapping[str, Any] = "numpy",
) -> list[Difference]:
    """Run a model with several engines and say where they differ.

    Args:
        model: As `run` takes it.
        inputs: As `run` takes them.
        engines: The engines to compare with the reference.
        reference: An engine, or outputs that `run` returned.

    Returns:
        The differences, in the order of the engines and outputs; of each pair of arrays the
        first that is found of shape, element type and values. Bits decide for floating-point
        numbers, so that NaN payloads and the sign of zero count; values for all others.

    Raises:
        SplitError: TS601 and TS602 for an engine that there is not; whatever the reference
            refuses. What another engine refuses is a difference.
    """
    if isinstance(reference, str):
        name, expected = reference, run(model, inputs, engine=reference)
    else:
        name, expected = "the reference", dict(reference)
    found: list[Difference] = []
    for engine in engines:
        try:
            outputs = run(model, inputs, engine=engine)
        except SplitError as error:
            if error.kind in (UNKNOWN_ENGINE, ENGINE_MISSING):
                raise
            aspect = "crashed" if error.kind is ENGINE_CRASHED else "refused"
            found.append(Difference(engine, name, "", aspect, found=str(error)))
        else:
            found.extend(differences(outputs, expected, engine=engine, reference=name))
    return found


def differences(
    outputs: Mapping[str, Any], expected: Mapping[str, Any], *, engine: str, reference: str
) -> list[Difference]:
    """Compare the outputs of an engine with those of the reference."""
    make = partial(Difference, engine, reference)
    found: list[Difference] = []
    for name in dict.fromkeys((*expected, *outputs)):
        if name in outputs and name in expected:
            found.extend(_values(make, name, expected[name], outputs[name]))
        else:
            there, here = (
                "such an output" if name in side else "none" for side in (expected, outputs)
            )
            found.append(make(name, "missing", there, here))
    return found


def _values(make: _Make, name: str, expected: Any, found: Any) -> Iterator[Difference]:
    kinds = [_kind(side) for side in (expected, found)]
    if kinds[0] != kinds[1]:
        yield make(name, "kind", *kinds)
    elif isinstance(expected, (list, tuple)):
        if len(expected) != len(found):
            yield make(name, "length", str(len(expected)), str(len(found)))
        for place, pair in enumerate(zip(expected, found, strict=False)):
            yield from _values(make, f"{name}[{place}]", *pair)
    elif expected is not None:
        yield from _arrays(make, name, np.asarray(expected), np.asarray(found))


def _kind(value: Any) -> str:
    if value is None:
        return "an empty optional"
    return "a sequence" if isinstance(value, (list, tuple)) else "a tensor"


def _arrays(make: _Make, name: str, expected: Array, found: Array) -> Iterator[Difference]:
    if expected.shape != found.shape:
        yield make(name, "shape", str(expected.shape), str(found.shape))
        return
    types = element_type(expected), element_type(found)
    if types[0] != types[1]:
        yield make(name, "element type", *types)
        return
    places = np.flatnonzero(_differ(expected.reshape(-1), found.reshape(-1)))
    if places.size:
        first = np.unravel_index(places[0], expected.shape)
        texts = [str(side[first]) for side in (expected, found)]
        if expected.dtype.kind in _TEXT:
            texts = list(map(repr, texts))
        if texts[0] == texts[1]:
            texts = [f"{side[first]} (bits {_bits(side[first])})" for side in (expected, found)]
        yield make(
            name,
            "values",
            *texts,
            index=tuple(map(int, first)),
            count=int(places.size),
            largest=_largest(expected.reshape(-1)[places], found.reshape(-1)[places]),
        )


def _differ(expected: Array, found: Array) -> Array:
    """For each element of two flat arrays of one type, whether it differs."""
    if _is_float(expected.dtype):
        sides = (np.ascontiguousarray(side).view(np.uint8) for side in (expected, found))
        left, right = (side.reshape(expected.size, expected.dtype.itemsize) for side in sides)
        return np.asarray((left != right).any(axis=1))
    if expected.dtype.kind in _TEXT:
        pairs = zip(expected.tolist(), found.tolist(), strict=True)
        return np.array([left != right for left, right in pairs], np.bool_)
    return np.asarray(expected != found)


def _is_float(dtype: np.dtype[Any]) -> bool:
    """Types of other packages, such as bfloat16 and int4, are of kind V or f, whatever they are."""
    return dtype.kind in "fcV" and "int" not in dtype.name


def _bits(value: Any) -> str:
    return f"0x{np.asarray(value).tobytes()[::-1].hex()}"


def _largest(expected: Array, found: Array) -> str | None:
    """The largest difference, exact for integers of every size."""
    if expected.dtype.kind in _TEXT:
        return None
    if _is_float(expected.dtype):
        wide = np.complex128 if expected.dtype.kind == "c" else np.longdouble
        # A signalling NaN is invalid to convert, infinities are invalid to subtract from each
        # other, and either gives the NaN that is wanted; huge numbers far apart give inf.
        with np.errstate(invalid="ignore", over="ignore"):
            left: Any = expected.astype(wide)
            right: Any = found.astype(wide)
            gaps = np.abs(left - right)
        equal = np.isnan(gaps) & (np.isnan(left) == np.isnan(right))
        return f"{np.max(np.where(equal, 0, gaps)):g}"
    pairs = zip(expected.astype(object), found.astype(object), strict=True)
    return str(max(abs(int(left) - int(right)) for left, right in pairs))
