"""A case: one model, its inputs, and the outputs that the standard requires.

Cases are data. Nothing here, nor in `oracle`, `data`, `models` and `cases`, imports the rest of the
package but for its error type: what decides lengths there can't be wrong here in the same way.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np

SHAPE_CLASSES = ("static", "dynamic-axis", "dynamic-other", "zero-size")
FORMS = ("attribute", "initializer", "constant", "runtime", "overridable", "absent")
PLACES = ("graph", "if", "loop", "scan", "function")
USES = (
    *("", "output", "SequenceAt", "SequenceLength", "SequenceInsert", "SequenceErase"),
    *("ConcatFromSequence", "Loop", "SequenceMap"),
)
PARTS, REFUSAL = "parts", "refusal"


@dataclass(frozen=True, slots=True)
class CaseSplit:
    """The split of a case, for a picture of it and for filters; the axis as the model has it."""

    shape: tuple[int, ...]
    axis: int
    sizes: tuple[int, ...]
    keepdims: bool


@dataclass(frozen=True, slots=True)
class Built:
    """The files of a case.

    `model` is a serialised ONNX ``ModelProto``, or the ``.xml`` of an OpenVINO IR, whose ``.bin``
    `weights` holds; `outputs` are the names of its outputs, in its order. What is `expected` is an
    array, or for a sequence a list of them, for each output; None where the standard asks for a
    refusal. If that is for what is fed alone, `legal` holds what else can be fed to the model, and
    what comes out then.
    """

    model: bytes
    weights: bytes
    inputs: dict[str, Any]
    outputs: tuple[str, ...]
    expected: dict[str, Any] | None
    legal: tuple[dict[str, Any], dict[str, Any]] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseInfo:
    """A case as it is shown: its name and what it is about."""

    id: str  # stable and unique: segments of ``[A-Za-z0-9._-]+`` between slashes
    operator: str  # the operator version, such as ``onnx.Split-18``
    element_type: str  # of the data, in ONNX's words
    shape_class: str  # one of `SHAPE_CLASSES`: what the model declares of the data's shape
    rank: int  # of the data
    spelling: str  # one of `FORMS`: how the model gives the lengths, or the number of parts
    place: str  # one of `PLACES`: where the split node is; inside two, the outer one
    use: str  # one of `USES`: what is done with a sequence; empty for operators without one
    rule: str  # what the standard says, in our words, and where it says so
    decision: str  # where the standard leaves it open, that of docs/errata.md: ``D1`` to ``D20``
    expects: str  # `PARTS` or `REFUSAL`
    opset: int  # that the model imports; for an IR, that of its split layer
    model_format: str  # ``onnx`` or ``ir``
    cut: CaseSplit | None = None  # what is split; None for refusals


@dataclass(frozen=True, slots=True, kw_only=True)
class Case(CaseInfo):
    """One requirement of the standard, and what makes a model to test it with."""

    recipe: Callable[[np.random.Generator], Built] = field(repr=False, compare=False)

    @property
    def is_about_types(self) -> bool:
        """Whether the standard refuses the model for the element type of its data."""
        return "/refuse-type-" in self.id

    @property
    def info(self) -> CaseInfo:
        """The case as it is shown."""
        return CaseInfo(**{entry.name: getattr(self, entry.name) for entry in fields(CaseInfo)})

    def build(self, seed: int = 0) -> Built:
        """Return the model, random inputs and what comes out; the same bytes for the same seed."""
        digest = hashlib.sha256(self.id.encode()).digest()
        return self.recipe(np.random.default_rng([seed, *digest[:16]]))
