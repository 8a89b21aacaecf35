"""Split nodes checked before anything runs, as far as constants and what is fed tell.

Values are not computed here; facts (shape, element type, elements of constants) are passed along.
"""

from __future__ import annotations

import math
from collections import ChainMap
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from tensorsplit.arrays.numpy import element_type
from tensorsplit.core.dimensions import Shape
from tensorsplit.core.errors import UNKNOWN_COUNT, SplitError
from tensorsplit.core.operands import Operand
from tensorsplit.core.plan import SplitPlan, UncountedPlan
from tensorsplit.core.resolve import Intent, check_element_type, part_sizes, plan
from tensorsplit.core.rules import MAX_PARTS
from tensorsplit.model.graph.binding import UNKNOWN, Known, bind_node, is_split
from tensorsplit.model.graph.reading import OnnxModel, check_feeds
from tensorsplit.model.graph.tensors import Constant
from tensorsplit.model.run.blocks import Block, Step
from tensorsplit.model.run.program import compile_model


class Fact(NamedTuple):
    """What is known of a tensor before anything runs.

    Attributes:
        shape: Its dimensions, None for those that are not known; None if not even the rank is.
        element_type: Its element type, or None.
        load: Gives its elements; None if they are not known.
        is_fed: Whether this holds only for what is fed this time.
    """

    shape: Shape | None = None
    element_type: str | None = None
    load: Callable[[], np.ndarray[Any, Any]] | None = None
    is_fed: bool = False


def validate(model: OnnxModel, feeds: Mapping[str, Any] | None = None) -> list[str]:
    """Check the split nodes of a model without running it.

    Args:
        model: The model.
        feeds: What will be fed; None if that is not known yet. Then initializers that are graph
            inputs, too, are not taken for constants (D20).

    Returns:
        The paths of the split nodes that are right as far as can be told, but whose operands or
        data are not fully known before the model runs.

    Raises:
        SplitError: TS101 to TS309 for a split node that is wrong; TS502, TS504, TS509 for a model
            that is not well-formed; TS505 to TS508 for feeds that do not fit.
    """
    fed = None if feeds is None else check_feeds(model.inputs, feeds)
    return check_block(compile_model(model), fed_facts(model, fed))


def fed_facts(model: OnnxModel, fed: Mapping[str, Any] | None) -> dict[str, Fact]:
    """What is known of the inputs of a model.

    Args:
        model: The model.
        fed: What `check_feeds` returned; None if nothing is fed yet.
    """
    facts = {}
    for entry in model.inputs:
        value = None if fed is None else fed.get(entry.name)
        if isinstance(value, np.ndarray):
            facts[entry.name] = Fact(value.shape, element_type(value), _giving(value), is_fed=True)
        elif fed is not None and entry.name not in fed:
            continue  # its initializer holds
        elif entry.kind == "tensor" and fed is None:
            shape = entry.shape and tuple(d if isinstance(d, int) else None for d in entry.shape)
            facts[entry.name] = Fact(shape, entry.element_type)
        else:
            facts[entry.name] = Fact()
    return facts


def check_block(block: Block, facts: Mapping[str, Fact]) -> list[str]:
    """Check the split nodes of a compiled model.

    Args:
        block: The main graph.
        facts: What is known of its inputs.

    Returns:
        As `validate`.

    Raises:
        SplitError: TS101 to TS309.
    """
    undecided: dict[str, None] = {}
    _check(block, ChainMap(dict(facts)), undecided)
    return list(undecided)


def _check(block: Block, facts: ChainMap[str, Fact], undecided: dict[str, None]) -> list[Fact]:
    """Check a block; the first map of `facts` is its own. Returns what is known of its outputs."""
    local = facts.maps[0]
    for name, constant in block.constants.items():
        if name not in local:
            local[name] = _of_constant(constant)
    for step in block.steps:
        given = [facts[name] if name else None for name in step.node.input]
        for name, fact in zip(
            step.node.output, _outputs(step, given, facts, undecided), strict=False
        ):
            if name:
                local[name] = fact
    return [facts[name] for name in block.outputs]


def _outputs(
    step: Step,
    given: list[Fact | None],
    facts: ChainMap[str, Fact],
    undecided: dict[str, None],
) -> list[Fact]:
    """What is known of a node's outputs."""
    unknown = [Fact()] * len(step.node.output)
    if step.callee is not None:
        missing = [None] * (len(step.callee.inputs) - len(given))
        passed = zip(step.callee.inputs, (*given, *missing), strict=True)
        return _check(
            step.callee, ChainMap({name: fact or Fact() for name, fact in passed}), undecided
        )
    if is_split(step.node):
        return _split(step, given, undecided) or unknown
    if step.domain == "" and step.node.op_type == "Identity":
        return [given[0] or Fact()]
    for body in step.blocks.values():
        # a body may never run with what is fed now, so only what always holds is used in it
        outer = {name: _lasting(facts[name]) for name in body.captures}
        _check(body, ChainMap({name: Fact() for name in body.inputs}, outer), undecided)
    return unknown


def _split(step: Step, given: list[Fact | None], undecided: dict[str, None]) -> list[Fact]:
    data = given[0] or Fact()
    try:
        known: list[Known] = [fact and UNKNOWN for fact in given[:1]]
        known += [None if fact is None else _operand(fact) for fact in given[1:]]
        intent = bind_node(step.node, step.opset, known)
        if data.element_type is not None:
            check_element_type(
                intent.operator.id,
                data.element_type,
                intent.element_types,
                intent.operator.inputs[0].name,
            )
        made = _plan(intent, data.shape)
    except SplitError as error:
        raise error.located(node=step.path) from None
    if not isinstance(made, SplitPlan) or data.element_type is None:
        undecided[step.path] = None
        return []
    if made.input_shape[made.axis] is None:
        undecided[step.path] = None
    if intent.operator.is_sequence:
        return []
    is_fed = any(fact is not None and fact.is_fed for fact in given)
    return [Fact(shape, data.element_type, None, is_fed) for shape in made.output_shapes]


def _plan(intent: Intent, shape: Shape | None) -> SplitPlan | UncountedPlan | None:
    """The plan, or None where too little is known; what can be refused is refused."""
    try:
        if shape is not None:
            return plan(intent, shape)
        part_sizes(intent, None)
    except SplitError as error:
        if error.kind is not UNKNOWN_COUNT:
            raise error.located(operator=intent.operator.id) from None
    return None


def _operand(fact: Fact) -> Known:
    if fact.load is not None and math.prod(fact.shape or ()) <= MAX_PARTS:
        return fact.load()
    rank = None if fact.shape is None else len(fact.shape)
    return Operand(None, rank, fact.element_type, "input")


def _of_constant(constant: Constant) -> Fact:
    return Fact(constant.shape, constant.element_type, lambda: constant.value)


def _giving(value: np.ndarray[Any, Any]) -> Callable[[], np.ndarray[Any, Any]]:
    return lambda: value


def _lasting(fact: Fact) -> Fact:
    return Fact(None, fact.element_type) if fact.is_fed else fact
