"""Where engines differ on the same model and inputs, and whether a difference is allowed."""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from tensorsplit.arrays.numpy import element_type
from tensorsplit.core.errors import (
    ENGINE_CRASHED,
    ENGINE_MISSING,
    LIMIT,
    UNKNOWN_ENGINE,
    SplitError,
)
from tensorsplit.engines.limits import Limits
from tensorsplit.engines.sessions import run
from tensorsplit.model.graph.tensors import Array
from tensorsplit.model.reading import ModelLike


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
        count: How many values differ: by more than is allowed, if any does, else in any bit.
        largest: The largest difference of two numbers, as text; None for strings.
        is_allowed: Whether all values lie within the tolerance.
        judged: By what the values were judged, in words.
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
    is_allowed: bool = False
    judged: str = ""

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
            f"{self.judged and '; '}{self.judged}"
        )


RELATIVE: Mapping[str, float] = {
    "double": 1e-9,
    "float": 1e-4,
    "float16": 1e-2,
    "bfloat16": 5e-2,
    "float8e4m3fn": 0.25,
    "float8e4m3fnuz": 0.25,
    "float8e5m2": 0.5,
    "float8e5m2fnuz": 0.5,
    "float4e2m1": 0.5,
    "complex64": 1e-4,
    "complex128": 1e-9,
}
"""The relative tolerance of each element type, unless one is given; of all others it is 0.

Wide enough for what many operations after one another round, and far too narrow for other data.
"""

_LEAST_SIZE = 1e-2


@dataclass(frozen=True, slots=True)
class Tolerance:
    """How far numbers may be from those that are expected: ``atol + rtol * |expected|``.

    NaN is as good as NaN, and 0.0 as -0.0. If both are 0, every bit counts.

    Attributes:
        rtol: The relative tolerance; None for that of the element type in `RELATIVE`.
        atol: The absolute tolerance; None for the relative one times what is usual in the tensor:
            the median of the sizes of all numbers but 0, or 0.01 if that is more. For what sums to
            nearly 0 is as far off as the terms of its sum are.
    """

    rtol: float | None = None
    atol: float | None = None

    @property
    def is_none(self) -> bool:
        """Whether every bit counts."""
        return self.rtol == 0 == self.atol

    def of(self, expected: Array) -> tuple[float, float]:
        """Return the relative and the absolute tolerance for a tensor."""
        rtol = RELATIVE.get(element_type(expected), 0.0) if self.rtol is None else self.rtol
        if self.atol is not None:
            return rtol, self.atol
        with np.errstate(invalid="ignore", over="ignore"):
            kind = np.complex128 if expected.dtype.kind == "c" else np.float64
            sizes = np.abs(expected.astype(kind))
        usual = sizes[np.isfinite(sizes) & (sizes > 0)]
        return rtol, rtol * max(float(np.median(usual)) if usual.size else 0.0, _LEAST_SIZE)

    def words(self, rtol: float, atol: float) -> str:
        """Return both options with their values, and which of them were not given."""
        pairs = (("--rtol", rtol, self.rtol), ("--atol", atol, self.atol))
        texts = (f"{n} {v:.3g}{' (the default)' if given is None else ''}" for n, v, given in pairs)
        return " and ".join(texts)


_TEXT = "OUST"
_Make: TypeAlias = Callable[..., Difference]
_Judge: TypeAlias = Callable[[Array, Array, Array], tuple[Array, str]]
_MOVED = "this output is only moved, never computed, so it must match bit for bit"
_BITS_REQUESTED = "--rtol 0 and --atol 0 ask for the same bits"
_WITHIN, _BEYOND = "within {0}", "beyond {0}"
_OFFER = "beyond {0}; --atol {1} would allow it"
JUDGED = (_MOVED, _BITS_REQUESTED, _WITHIN, _BEYOND, _OFFER)
"""By what values are judged, with tolerances in the braces."""


@dataclass(frozen=True, slots=True)
class Reference:
    """The reference for engines: the expected outputs, and the engine that gave them.

    Attributes:
        engine: The engine that gave the outputs.
        outputs: By name, what `run` returned.
        tolerance: How far numbers may differ; None if every bit counts.
        moved: The outputs that have no tolerance, such as `model.exactness.moved_outputs`.
        limits: Those of each run, as `run` takes them.
    """

    engine: str
    outputs: Mapping[str, object]
    tolerance: Tolerance | None = None
    moved: Container[str] = ()
    limits: Limits = field(default_factory=Limits)

    def differences(
        self, model: ModelLike, inputs: Mapping[str, object], engine: str
    ) -> list[Difference]:
        """Run a model with an engine, and say where its outputs differ.

        Returns:
            The differences, in the order of the outputs, those that are allowed too; of each pair
            of arrays the first that is found of shape, element type and values. Without a
            tolerance bits decide for floating-point numbers, so that NaN payloads and the sign of
            zero count; values for all others. What the engine refuses is a difference.

        Raises:
            SplitError: TS601 and TS602 for an engine that there is not, TS605 for a limit.
        """
        try:
            outputs = run(model, inputs, engine=engine, **self.limits)
        except SplitError as error:
            if error.kind in (UNKNOWN_ENGINE, ENGINE_MISSING, LIMIT):
                raise
            aspect = "crashed" if error.kind is ENGINE_CRASHED else "refused"
            return [Difference(engine, self.engine, "", aspect, found=str(error))]
        return differences(
            outputs,
            self.outputs,
            engine=engine,
            reference=self.engine,
            tolerance=self.tolerance,
            moved=self.moved,
        )


def differences(
    outputs: Mapping[str, object],
    expected: Mapping[str, object],
    *,
    engine: str,
    reference: str,
    tolerance: Tolerance | None = None,
    moved: Container[str] = (),
) -> list[Difference]:
    """Compare the outputs of an engine with those of a reference; see `Reference`."""
    make = partial(Difference, engine, reference)
    found: list[Difference] = []
    for name in dict.fromkeys((*expected, *outputs)):
        if name in outputs and name in expected:
            judge = partial(_judge, tolerance, name in moved)
            found.extend(_values(make, judge, name, expected[name], outputs[name]))
        else:
            there, here = (
                "such an output" if name in side else "none" for side in (expected, outputs)
            )
            found.append(make(name, "missing", there, here))
    return found


def _judge(
    tolerance: Tolerance | None, is_moved: bool, whole: Array, expected: Array, found: Array
) -> tuple[Array, str]:
    """Judge each pair of elements that differ: whether it is allowed, and by what, in words.

    They are flat; the whole of what is expected gives the usual size.
    """
    none = np.zeros(expected.size, np.bool_)
    if tolerance is None or expected.dtype.kind in _TEXT:
        return none, ""
    if is_moved or tolerance.is_none:
        return none, _MOVED if is_moved else _BITS_REQUESTED
    rtol, atol = tolerance.of(whole)
    gaps = _gaps(expected, found)
    with np.errstate(invalid="ignore", over="ignore"):
        excess = gaps - rtol * np.abs(_wide(expected))  # inf - inf: compared in the next line
    allowed = (excess <= atol) & np.isfinite(gaps) | (gaps == 0)
    words = tolerance.words(rtol, atol)
    if allowed.all():
        return allowed, _WITHIN.format(words)
    needed = float(np.max(np.where(allowed, 0, excess)))
    text = _OFFER if math.isfinite(needed) else _BEYOND
    return allowed, text.format(words, _rounded_up(needed) if text is _OFFER else "")


def _rounded_up(number: float) -> str:
    """Return a number with two digits that is not smaller."""
    step = 10.0 ** (math.floor(math.log10(number)) - 1)
    text = f"{math.ceil(number / step) * step:.2g}"
    return text if float(text) >= number else f"{(math.ceil(number / step) + 1) * step:.2g}"


def _values(
    make: _Make, judge: _Judge, name: str, expected: object, found: Any
) -> Iterator[Difference]:
    kinds = [_kind(side) for side in (expected, found)]
    if kinds[0] != kinds[1]:
        yield make(name, "kind", *kinds)
    elif isinstance(expected, (list, tuple)):
        if len(expected) != len(found):
            yield make(name, "length", str(len(expected)), str(len(found)))
        for place, pair in enumerate(zip(expected, found, strict=False)):
            yield from _values(make, judge, f"{name}[{place}]", *pair)
    elif expected is not None:
        yield from _arrays(make, judge, name, np.asarray(expected), np.asarray(found))


def _kind(value: object) -> str:
    if value is None:
        return "an empty optional"
    return "a sequence" if isinstance(value, (list, tuple)) else "a tensor"


def _arrays(
    make: _Make, judge: _Judge, name: str, expected: Array, found: Array
) -> Iterator[Difference]:
    if expected.shape != found.shape:
        yield make(name, "shape", str(expected.shape), str(found.shape))
        return
    types = element_type(expected), element_type(found)
    if types[0] != types[1]:
        yield make(name, "element type", *types)
        return
    left, right = expected.reshape(-1), found.reshape(-1)
    places = np.flatnonzero(_differ(left, right))
    if not places.size:
        return
    allowed, words = judge(left, left[places], right[places])
    beyond = places[~allowed]
    is_allowed = not beyond.size
    places = places if is_allowed else beyond
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
        largest=_largest(left[places], right[places]),
        is_allowed=is_allowed,
        judged=words,
    )


def _differ(expected: Array, found: Array) -> Array:
    """Return for each element of two flat arrays of one type whether it differs."""
    if _is_float(expected.dtype):
        sides = (np.ascontiguousarray(side).view(np.uint8) for side in (expected, found))
        left, right = (side.reshape(expected.size, expected.dtype.itemsize) for side in sides)
        return np.asarray((left != right).any(axis=1))
    if expected.dtype.kind in _TEXT:
        pairs = zip(expected.tolist(), found.tolist(), strict=True)
        return np.array([left != right for left, right in pairs], np.bool_)
    return np.asarray(expected != found)


def _is_float(dtype: np.dtype) -> bool:
    """Return whether a type is of floats; those of other packages may be of kind V or f."""
    return dtype.kind in "fcV" and "int" not in dtype.name


def _bits(value: object) -> str:
    return f"0x{np.asarray(value).tobytes()[::-1].hex()}"


def _largest(expected: Array, found: Array) -> str | None:
    """Return the largest difference, exact for integers of every size."""
    if expected.dtype.kind in _TEXT:
        return None
    if _is_float(expected.dtype):
        return f"{np.max(_gaps(expected, found)):g}"
    pairs = zip(expected.astype(object), found.astype(object), strict=True)
    return str(max(abs(int(left) - int(right)) for left, right in pairs))


def _gaps(expected: Array, found: Array) -> Array:
    """Return how far numbers differ; 0 for two NaNs, NaN for a single one."""
    # A signalling NaN is invalid to convert, infinities are invalid to subtract from each other,
    # and either gives the NaN that is wanted; huge numbers far apart give inf.
    with np.errstate(invalid="ignore", over="ignore"):
        left, right = _wide(expected), _wide(found)
        gaps = np.abs(left - right)
    equal = (left == right) | (np.isnan(left) & np.isnan(right))
    return np.asarray(np.where(equal, 0, gaps))


def _wide(array: Array) -> Array:
    """Return numbers in a type that holds them and their differences, as far as there is one."""
    is_narrow = array.dtype.itemsize < np.dtype(np.float64).itemsize
    kind = np.float64 if is_narrow else np.longdouble
    with np.errstate(invalid="ignore"):
        return array.astype(np.complex128 if array.dtype.kind == "c" else kind)
