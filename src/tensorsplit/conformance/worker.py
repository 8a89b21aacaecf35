"""What the process of a subject does: one task, as the subject's adapter does it.

It runs in `tensorsplit.engines.worker`, which calls `run`. Nothing is judged here: the process may
be damaged by then.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tensorsplit.conformance.subjects import Unsupported, load, prepare

_LONGEST = 400
_ADDRESS = re.compile(r"(?: at )?\b0x[0-9a-fA-F]{6,}\b")


@dataclass(frozen=True, slots=True)
class Task:
    """What a subject is asked to do.

    Attributes:
        subject: The subject, as `tensorsplit.conformance.subjects.load` takes it.
        model: The bytes of an ONNX model, or the text of an IR; empty to import the subject only.
        weights: The ``.bin`` file of an IR.
        inputs: What is fed, by name.
        outputs: The names of the outputs.
        target_opset: The opset that a tool that converts is to convert to.
    """

    subject: str
    model: bytes = b""
    weights: bytes = b""
    inputs: dict[str, Any] = field(default_factory=dict)
    outputs: tuple[str, ...] = ()
    target_opset: int | None = None


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a subject did.

    Attributes:
        outputs: By name, what an engine gave; None where it refused.
        model: What a tool made of the model; None where it refused.
        refusal: The words of a refusal; None where there was none.
        unsupported: Whether it was a refusal of the element type or the operator altogether.
    """

    outputs: dict[str, Any] | None = None
    model: bytes | None = None
    refusal: str | None = None
    unsupported: bool = False


def run(task: Task) -> Outcome:
    """Do a task.

    Args:
        task: The task.

    Raises:
        SplitError: TS601, TS602 for the subject itself.
        ImportError: If what the subject runs can't be imported.
    """
    if not task.model:
        prepare(task.subject)
        return Outcome()
    subject = load(task.subject)
    try:
        if subject.KIND == "tool":
            return Outcome(model=bytes(subject.rewrite(task.model, task.target_opset)))
        outputs = subject.run(task.model, task.weights, task.inputs, task.outputs)
        return Outcome(outputs={str(name): _plain(value) for name, value in outputs.items()})
    except Unsupported as error:
        return Outcome(refusal=_words(error), unsupported=True)
    except Exception as error:  # noqa: BLE001 - a subject may raise anything
        return Outcome(refusal=f"{type(error).__name__}: {_words(error)}")


def _plain(value: Any) -> Any:
    """A value as NumPy arrays, so that the other process needs nothing of the engine's."""
    if value is None:
        return None
    return list(map(_plain, value)) if isinstance(value, (list, tuple)) else np.asarray(value)


def _words(error: BaseException) -> str:
    """The first lines of an engine's message, without addresses, which differ in every run."""
    text = _ADDRESS.sub("", " ".join(str(error).split()))
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."
