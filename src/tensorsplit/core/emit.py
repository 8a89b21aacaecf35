"""From an intent to the operands of another operator version, or a reasoned refusal.

Nothing here knows a model: where a length is known only at run time, the emission says which
operand holds it, or by which rule it must be computed, and the owner of the graph wires it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from tensorsplit.core.dimensions import Dim, is_known
from tensorsplit.core.errors import CANNOT_EXPRESS, SplitError
from tensorsplit.core.resolve import Intent, part_sizes
from tensorsplit.core.rules import Chunks, Rule, ceil, chunk, equal, explicit, ones, remainder
from tensorsplit.core.schema import Lengths, Operator


@dataclass(frozen=True, slots=True)
class Runtime:
    """A value that only the running model knows, held by an operand of the original node."""

    operand: str


@dataclass(frozen=True, slots=True)
class Computed:
    """A list of lengths that the running model has to calculate from the dimension by a rule."""

    rule: Rule
    given: tuple[int, ...] | Runtime


Source: TypeAlias = "tuple[int, ...] | Runtime | Computed"


@dataclass(frozen=True, slots=True)
class Emission:
    """The operands of a node of another version that means the same.

    Attributes:
        operator: The version.
        axis: The axis, an integer or known at run time.
        attributes: Integers or tuples of integers, by name, without the axis.
        inputs: The inputs beside the data, by name, without the axis.
    """

    operator: Operator
    axis: int | Runtime
    attributes: Mapping[str, int | tuple[int, ...]] = field(default_factory=dict)
    inputs: Mapping[str, Source] = field(default_factory=dict)


def emit(intent: Intent, target: Operator, dim: Dim = None) -> Emission:
    """Express an intent in another version (TS310 if it can't, with the reason).

    The new node has as many outputs as the old one, and refuses what the old one refuses; lengths
    that are `Computed` need the guard of `arithmetic.fitting`. Where ``dim`` is known, lengths
    become numbers if there is no more direct way (TS301 to TS308 if they don't fit it).
    """
    axis = _axis(intent, target)
    if intent.rule in _COUNTED and intent.given is None and intent.outputs is not None:
        intent = replace(intent, given=(intent.outputs,))  # no other count is right (D5)
    for lengths in target.lengths:
        for rank, rule in lengths.rules.items():
            if _does_the_same(intent, rule, dim):
                source = _operand_for(intent, target, lengths, rank)
                if source is not None:
                    return _emission(target, axis, lengths, rank, source)
    if target.absent is not None and _without_lengths(intent, target.absent, dim):
        return Emission(target, axis, _keepdims(intent, target))
    return _explicitly(intent, target, axis, dim)


def _axis(intent: Intent, target: Operator) -> int | Runtime:
    if intent.axis is not None:
        return intent.axis
    if target.attribute(target.axis) is None:
        return Runtime(intent.operator.axis)
    raise _refusal(intent, target, "the axis is known only at run time, and here an attribute")


def _operand_for(intent: Intent, target: Operator, lengths: Lengths, rank: int) -> Source | None:
    """What to give an operand whose rule does what the intent's does; None if it can't be given."""
    if intent.rule is ones:
        return (1,) if rank == 0 and intent.keepdims else None
    if intent.given is not None:
        return intent.given
    if lengths.kind == "input" and intent.source is not None:
        integers = _takes_integers(intent.operator, intent.source)
        if integers and _takes_integers(target, lengths.operand):
            return Runtime(intent.source)
    return None


def _without_lengths(intent: Intent, rule: Rule, dim: Dim) -> bool:
    """Whether a node without lengths does what the intent asks for."""
    if intent.source is None:
        return intent.rule is rule
    return rule in _COUNTED and _does_the_same(intent, rule, dim)


def _does_the_same(intent: Intent, rule: Rule, dim: Dim) -> bool:
    """Whether a rule does what the intent's does, what it refuses included.

    The rules of a count agree where each part has the same length, which takes a known dimension.
    """
    if intent.rule is None:
        return False
    if rule in _SAME[intent.rule]:
        return True
    if (intent.rule, rule) == (explicit, remainder):
        return intent.given is not None and min(intent.given, default=0) >= 0
    if intent.rule not in _COUNTED or rule not in _COUNTED or intent.given is None:
        return False
    return is_known(dim) and dim % intent.given[0] == 0


def _takes_integers(operator: Operator, operand: str) -> bool:
    """Whether an operand holds integers; as input of Split-1 it holds floats.

    Floats known only at run time stand for no integers: they may turn out not to be whole, which
    Split-1 refuses, and a version that takes integers could not.
    """
    parameter = operator.input(operand)
    if parameter is None:
        return operator.attribute(operand) is not None
    return "int64" in operator.types_of(parameter).element_types


_SAME: Mapping[Rule, tuple[Rule, ...]] = {
    explicit: (explicit,),
    remainder: (remainder,),
    equal: (equal,),
    ceil: (ceil,),
    chunk: (chunk,),
    ones: (chunk,),
}
"""For each rule, the rules that do the same to every input, and refuse the same."""

_COUNTED = (equal, ceil)
"""The rules that are given how many parts there are."""

_LISTED = (*_COUNTED, explicit, remainder)
"""The rules whose lengths the running model can list."""


def _emission(
    target: Operator, axis: int | Runtime, lengths: Lengths, rank: int, source: Source
) -> Emission:
    if lengths.kind == "input" or not isinstance(source, tuple):
        return Emission(target, axis, {}, {lengths.operand: source})
    return Emission(target, axis, {lengths.operand: source if rank else source[0]})


def _keepdims(intent: Intent, target: Operator) -> dict[str, int | tuple[int, ...]]:
    return {target.keepdims: int(intent.keepdims)} if target.keepdims else {}


def _explicitly(intent: Intent, target: Operator, axis: int | Runtime, dim: Dim) -> Emission:
    """Fall back to explicit lengths: numbers if the dimension is known, else computed ones."""
    if not intent.keepdims:
        raise _refusal(intent, target, "the parts drop the axis, which this version can't express")
    ways = [
        lengths
        for lengths in target.lengths
        if not {explicit, remainder}.isdisjoint(lengths.rules.values())
    ]
    if intent.rule is not None and intent.given is not None and is_known(dim):
        sizes = part_sizes(intent, dim)
        if not isinstance(sizes, Chunks) and ways:
            return _emission(target, axis, ways[0], 1, sizes)
    floats = intent.source is not None and not _takes_integers(intent.operator, intent.source)
    if intent.rule in _LISTED and (intent.given is not None or not floats):
        given = intent.given if intent.given is not None else Runtime(intent.source or "")
        for lengths in ways:
            if lengths.kind == "input" and _takes_integers(target, lengths.operand):
                return _emission(target, axis, lengths, 1, Computed(intent.rule, given))
    kind = ", as floats, which may turn out not to be whole" if floats else ""
    raise _refusal(intent, target, f"the lengths are known only at run time{kind}")


def _refusal(intent: Intent, target: Operator, reason: str) -> SplitError:
    ways = " or ".join(f"{entry.kind} '{entry.operand}'" for entry in target.lengths)
    return SplitError(
        CANNOT_EXPRESS,
        f"this is not expressible in {target.id}: {reason}",
        f"it takes {ways}",
        operator=intent.operator.id,
        parameter=intent.source,
    )
