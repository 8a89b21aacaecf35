"""Validation before a run: what is wrong, what can't be told yet, and the nodes that would tell."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import onnx_ir as ir

from tensorsplit.core.dimensions import is_known
from tensorsplit.core.errors import SplitError
from tensorsplit.model.graph.facts import Fact, Sequence, Tensor, declared
from tensorsplit.model.graph.nodes import bodies, domain_name, is_split
from tensorsplit.model.infer.analysis import Facts, analyse
from tensorsplit.model.infer.sequence_operators import POSITIONS


def validate(model: ir.Model, feeds: Mapping[str, Any] | None = None) -> Facts:
    """Check the split nodes of a model, and the positions in its sequences, without running it.

    What a model declares of the outputs of its nodes is not believed. In a body that may not run,
    a node is refused only for what holds whatever is fed, in whatever shape.

    Args:
        model: The model.
        feeds: What will be fed, and what else is known, as for `analyse`; None if nothing is.

    Returns:
        What is known of the values that the split nodes and the sequences need.

    Raises:
        SplitError: TS101 to TS309, TS511 for a node that is wrong.
    """
    nodes = _concerned(model)
    if not nodes:
        return Facts()
    facts = analyse(model, feeds, declarations=False, nodes=nodes)
    always: dict[str | None, SplitError] | None = None
    for error, runs in facts.refusals:
        if runs:
            raise error
        if always is None:
            lasting = facts if feeds is None else _lasting(model, feeds, nodes)
            always = {
                entry.error.node: entry.error
                for entry in lasting.refusals
                if entry.runs is not False
            }
        if error.node in always:
            raise always[error.node]
    return facts


def _lasting(model: ir.Model, feeds: Mapping[str, Any], nodes: set[ir.Node]) -> Facts:
    """What holds whatever is fed to the inputs that are fed, in whatever shape."""
    types: dict[str, Fact] = {}
    for value in model.graph.inputs:
        if value.name and value.name in feeds:
            fact = declared(value)
            types[value.name] = Tensor(fact.element_type) if isinstance(fact, Tensor) else fact
    return analyse(model, types, declarations=False, nodes=nodes)


def values_needed(facts: Facts, *, whole: bool = False) -> list[ir.Value]:
    """The values of the main graph to compute before the undecided nodes can be checked.

    Args:
        facts: What `validate` returned.
        whole: Whether to run the undecided nodes of the main graph themselves, because their
            operands and the shape of their data did not decide them.

    Returns:
        Operands, data of unknown shape, and all outputs of a node that has an undecided node in a
        body or function; nothing if every node is decided.
    """
    undecided = {node: None for nodes in facts.undecided.values() for node in nodes}
    found: dict[ir.Value, None] = {}
    for node in undecided:
        if not _is_checked(node):
            found.update(dict.fromkeys(() if whole else node.outputs))
        elif whole:
            found.update(dict.fromkeys(node.outputs))
        else:
            for index, value in enumerate(node.inputs):
                if value is not None and not _is_enough(node, index, facts.of(value)):
                    found[value] = None
    return [value for value in found if value.name and value.producer() is not None]


def _concerned(model: ir.Model) -> set[ir.Node]:
    """The nodes of the main graph that have to do with splits or sequences, and what they need."""
    called = {(domain_name(key[0]), key[1]) for key in model.functions}
    pending = [
        node
        for node in model.graph
        if any(
            _is_checked(inner) or (inner.domain, inner.op_type) in called for inner in _all(node)
        )
    ]
    found: set[ir.Node] = set()
    while pending:
        node = pending.pop()
        if node not in found and node.graph is model.graph:
            found.add(node)
            producers = (value.producer() for value in _reads(node) if value is not None)
            pending += [producer for producer in producers if producer is not None]
    return found


def _is_checked(node: ir.Node) -> bool:
    """Whether the node itself is one that is checked."""
    if is_split(node):
        return True
    return node.op_type in POSITIONS and node.domain == ""


def _is_enough(node: ir.Node, index: int, fact: Fact) -> bool:
    """Whether what is known of an input of a checked node is all that the check needs."""
    if node.op_type in POSITIONS:
        if index == 0:
            return isinstance(fact, Sequence) and is_known(fact.count)
        return index != POSITIONS[node.op_type] or _has_elements(fact)
    if index > 0:
        return _has_elements(fact)
    if not isinstance(fact, Tensor) or fact.element_type is None or fact.shape is None:
        return False
    return all(map(is_known, fact.shape))


def _has_elements(fact: Fact) -> bool:
    if not isinstance(fact, Tensor) or fact.values is None:
        return False
    return all(is_known(value) or isinstance(value, float) for value in fact.values)


def _all(node: ir.Node) -> Iterator[ir.Node]:
    """A node, and those in its bodies."""
    yield node
    for _, body in bodies(node):
        yield from body.all_nodes()


def _reads(node: ir.Node) -> Iterator[ir.Value | None]:
    """What a node reads, in its bodies too."""
    for inner in _all(node):
        yield from inner.inputs
        for _, body in bodies(inner):
            yield from body.outputs
