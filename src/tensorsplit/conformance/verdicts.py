"""What a trial says about an engine: bits decide, and shapes and element types with them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from tensorsplit.conformance.case import Built
from tensorsplit.conformance.document import PASS, Result
from tensorsplit.conformance.trial import Trial
from tensorsplit.conformance.worker import Outcome
from tensorsplit.engines.compare import Difference, differences
from tensorsplit.engines.death import ProcessDied

_HEAP = re.compile(
    r"corrupt|double free|free\(\)|malloc\(\)|realloc\(\)|munmap_chunk|unsorted|smash"
)
_MEMORY_SIGNALS = ("SIGSEGV", "SIGBUS")
_MOST_OUTPUTS = 6


def judge(case: str, subject: str, built: Built, trial: Trial) -> Result:
    """Judge what an engine did.

    Args:
        case: The case's id.
        subject: The engine's name.
        built: What was run, and what the standard asks for.
        trial: What came of it.
    """
    if trial.death is not None:
        return of_death(case, subject, trial.death, trial.victim)
    outcome = trial.outcome or Outcome(refusal="there is no result")
    if outcome.outputs is None:
        return of_refusal(case, subject, outcome, is_legal=built.expected is not None)
    return of_outputs(case, subject, built, outcome.outputs)


def of_death(case: str, subject: str, death: ProcessDied, victim: str = "") -> Result:
    """The verdict on a process that died.

    Args:
        case: The case's id.
        subject: The subject's name.
        death: How it died.
        victim: The later case that died of it, if it was not this one.
    """
    if death.seconds is not None:
        return Result(case, subject, "hang", f"it {death}")
    detail = f"the process {death}"
    if victim:
        detail += f", while it ran {victim}, which lives where this case did not run before"
    memory = bool(victim) or death.signal in _MEMORY_SIGNALS or bool(_HEAP.search(death.words))
    return Result(case, subject, "crash", detail, signal=death.signal, memory=memory)


def of_refusal(case: str, subject: str, outcome: Outcome, *, is_legal: bool) -> Result:
    """The verdict on a refusal; where the standard asks for one, any will do."""
    if not is_legal:
        return Result(case, subject, PASS)
    verdict = "unsupported-type" if outcome.unsupported else "refused-but-legal"
    return Result(case, subject, verdict, outcome.refusal or "")


def of_outputs(case: str, subject: str, built: Built, outputs: Mapping[str, Any]) -> Result:
    """The verdict on outputs.

    Args:
        case: The case's id.
        subject: The subject's name.
        built: What was run.
        outputs: What came out, by name.
    """
    outside = _is_from_outside(outputs, built)
    if built.expected is None:
        detail = f"it should refuse, but gives {_shapes(outputs)}"
        return Result(case, subject, "accepted-but-illegal", detail, memory=outside)
    try:
        found = differences(outputs, built.expected, engine=subject, reference="the standard")
    except Exception as error:  # noqa: BLE001 - an engine may return objects of any kind
        return Result(case, subject, "wrong", f"its outputs are no tensors: {error}")
    if not found:
        return Result(case, subject, PASS)
    first = found[0]
    return Result(
        case,
        subject,
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


def _is_from_outside(outputs: Mapping[str, Any], built: Built) -> bool:
    """Whether something was read that is not the data.

    More elements came out than there are, and some of them are in no input. (That some came out
    twice is no error of memory.)
    """
    data = max(map(_elements, built.inputs.values()), default=0)
    if _elements(outputs) <= max(data, _elements(built.expected)) or not data:
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
