"""From an intent to the operands of another operator version, or a reasoned refusal.

Nothing here knows a model: where a length is known only at run time, the emission says whether an
operand holds it or the rule must compute it, and the owner of the graph wires it.
"""

from __future__ import annotations

from dataclasses import replace
from enum import Enum, auto
from typing import NamedTuple, TypeAlias

from tensorsplit.core.dimensions import Dim, are_known, is_known
from tensorsplit.core.errors import CANNOT_EXPRESS, SplitError
from tensorsplit.core.plan import SplitPlan, UncountedPlan
from tensorsplit.core.records import in_force
from tensorsplit.core.resolve import Intent, part_sizes
from tensorsplit.core.rules import LengthRule, ceil, equal, explicit, remainder
from tensorsplit.core.schema import Lengths, Operator


class AtRunTime(Enum):
    """Lengths that only the running model knows.

    Attributes:
        GIVEN: They are what the operand of the original node holds.
        COMPUTED: They are calculated from the dimension, by the intent's rule.
    """

    GIVEN = auto()
    COMPUTED = auto()


EmittedOperand: TypeAlias = "tuple[int, ...] | AtRunTime"


class Emission(NamedTuple):
    """The operands of a node of another version that means the same, but for the axis.

    Attributes:
        attributes: Integers or tuples of integers, by name.
        inputs: The inputs beside the data, by name.
    """

    attributes: dict[str, int | tuple[int, ...]]
    inputs: dict[str, EmittedOperand]


_COUNTED = (equal, ceil)
"""The rules that are given how many parts there are."""

_LISTED = (*_COUNTED, explicit, remainder)
"""The rules whose lengths the running model can list."""


def emit(intent: Intent, target: Operator, dim: Dim = None) -> Emission:
    """Express an intent in another version (TS310 if it can't, with the reason).

    The new node has as many outputs as the old one, and refuses what the old one refuses; lengths
    that are computed need the guard of `arithmetic.fitting`. Where ``dim`` is known, lengths become
    numbers if there is no more direct way (TS301 to TS308 if they don't fit it).
    """
    if intent.rule in _COUNTED and intent.given is None and intent.outputs is not None:
        intent = replace(intent, given=(intent.outputs,))  # no other count is right (D5)
    for lengths in target.lengths:
        for rank, rule in lengths.rules.items():
            source = _as_given(intent, target, lengths)
            if source is not None and _does_the_same(intent, rule, dim):
                return _emission(lengths, rank, source)
    absent = target.absent
    may_be_absent = intent.source is None or absent in _COUNTED
    if absent is not None and may_be_absent and _does_the_same(intent, absent, dim):
        return Emission({target.keepdims: int(intent.keepdims)} if target.keepdims else {}, {})
    return _explicitly(intent, target, dim)


def written_out(intent: Intent, made: SplitPlan | UncountedPlan | None) -> Intent:
    """Return an intent that gives the lengths of its plan, if all of them are known.

    Without lengths, engines may take Splits of one tensor into 2 and 3 equal parts for one node.
    """
    if not isinstance(made, SplitPlan) or not are_known(made.sizes):
        return intent
    return replace(intent, source=None, rule=explicit, given=made.sizes)


def counted(intent: Intent) -> Intent | None:
    """Return an intent of as many parts of any dimension, if the given lengths are those of one.

    A tracer writes down lengths of the dimension that it saw: [4, 3] of 7 for two parts. None if
    that is not what `num_outputs` gives.
    """
    given = intent.given
    if intent.rule is not explicit or not given or not all(map(is_known, given)):
        return None
    candidate = replace(intent, rule=ceil, given=(len(given),), source=None)
    try:
        return candidate if part_sizes(candidate, sum(given)) == given else None
    except SplitError:
        return None


def emit_split(
    intent: Intent, opset: int, dim: Dim, element_type: str
) -> tuple[dict[str, int | tuple[int, ...]], tuple[int, ...] | None]:
    """Return attributes and lengths of one equal node Split (TS310 if there is none).

    The node keeps the axis, whether the intent does or not.
    """
    target = in_force("Split", opset)
    _check_taken(target, target.id, element_type, intent.operator.id)
    emission = emit(replace(intent, keepdims=True), target, dim)
    lengths = emission.inputs.get("split")
    if isinstance(lengths, AtRunTime):
        raise SplitError(
            CANNOT_EXPRESS,
            f"one node {target.id} can't calculate the lengths from the dimension {dim}",
            "give the lengths, calculate them in the graph, or make the dimension a number",
            operator=intent.operator.id,
            parameter=intent.source,
        )
    return emission.attributes, lengths


def check_split(opset: int, element_type: str, operator: str) -> None:
    """Refuse an element type that Split does not take at an opset (TS310)."""
    target = in_force("Split", opset)
    _check_taken(target, target.id, element_type, operator)


def check_concat(opset: int, element_type: str, operator: str) -> None:
    """Refuse an element type that Concat does not take at an opset (TS310).

    It takes what Split does, but at opsets 2 and 3 what Split takes at opset 1.
    """
    alike = in_force("Split", 1 if opset < _NEW_CONCAT else opset)
    _check_taken(alike, f"Concat at opset {opset}", element_type, operator)


_NEW_CONCAT = 4
"""The opset with the second version of Concat."""


def _check_taken(split: Operator, name: str, element_type: str, operator: str) -> None:
    types = split.types_of(split.inputs[0]).element_types
    if element_type not in types:
        raise SplitError(
            CANNOT_EXPRESS,
            f"{name} does not take elements of type {element_type}",
            f"it takes {', '.join(sorted(types))}",
            operator=operator,
        )


def _as_given(intent: Intent, target: Operator, lengths: Lengths) -> EmittedOperand | None:
    """Return the rule's operand as one of the target; None if that can't hold it."""
    if intent.given is not None:
        return intent.given
    if lengths.kind == "input" and intent.source is not None:
        integers = takes_integers(intent.operator, intent.source)
        if integers and takes_integers(target, lengths.operand):
            return AtRunTime.GIVEN
    return None


def _does_the_same(intent: Intent, rule: LengthRule, dim: Dim) -> bool:
    """Return whether a rule does what the intent's does, what it refuses included.

    The rules of a count agree where each part has the same length, which takes a known dimension;
    not 0, which onnxruntime splits into equal parts but not by `num_outputs` (D2).
    """
    if rule is intent.rule:
        return True
    if intent.given is None:
        return False
    if (intent.rule, rule) == (explicit, remainder):
        return min(intent.given, default=0) >= 0
    are_counted = intent.rule in _COUNTED and rule in _COUNTED
    return are_counted and is_known(dim) and dim > 0 == dim % intent.given[0]


def takes_integers(operator: Operator, operand: str) -> bool:
    """Return whether an operand holds integers; as input of Split-1 it holds floats.

    Floats known only at run time stand for no integers: they may turn out not to be whole, which
    Split-1 refuses, and a version that takes integers could not.
    """
    parameter = operator.input(operand)
    if parameter is None:
        return operator.attribute(operand) is not None
    return "int64" in operator.types_of(parameter).element_types


def _emission(lengths: Lengths, rank: int, source: EmittedOperand) -> Emission:
    if lengths.kind == "input" or isinstance(source, AtRunTime):
        return Emission({}, {lengths.operand: source})
    return Emission({lengths.operand: source if rank else source[0]}, {})


def _explicitly(intent: Intent, target: Operator, dim: Dim) -> Emission:
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
        if isinstance(sizes, tuple) and are_known(sizes) and ways:
            return _emission(ways[0], 1, sizes)
    floats = intent.source is not None and not takes_integers(intent.operator, intent.source)
    if intent.rule in _LISTED and (intent.given is not None or not floats):
        for lengths in ways:
            if lengths.kind == "input" and takes_integers(target, lengths.operand):
                return _emission(lengths, 1, AtRunTime.COMPUTED)
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
