"""Finds all that an engine knows about every value of a model when it imports it."""

from __future__ import annotations

from dataclasses import replace

import onnx_ir as ir

from tensorsplit.core.dimensions import Shape, are_known, is_known
from tensorsplit.model.graph.building import full_collections_deferred
from tensorsplit.model.graph.called_in_onnx import gives_shape
from tensorsplit.model.graph.calls import Attributes
from tensorsplit.model.graph.facts import (
    MAX_LISTED_PARTS,
    Fact,
    SequenceFact,
    Tensor,
    as_tensor,
    declared,
    merge_declared,
    without_elements,
)
from tensorsplit.model.graph.held_tensors import constant
from tensorsplit.model.graph.loops import body_of, is_loop, loop_body, states_of
from tensorsplit.model.graph.nodes import bodies
from tensorsplit.model.graph.opsets import model_opsets
from tensorsplit.model.infer.analysis import Analysis, Facts, Surroundings
from tensorsplit.model.infer.node_outputs import of_constant
from tensorsplit.model.infer.sequence_operators import POSITIONS
from tensorsplit.model.view import View

_LOOPS = frozenset({"Loop", "Scan", "SequenceMap"})
"""Operators whose bodies take in what they are given."""


_SHAPED_BY = {"Reshape": False, "Squeeze": False, "Unsqueeze": True}
"""Operators that pass elements on by another operand; whether its elements give the rank."""


@full_collections_deferred()
def seen(model: ir.Model, view: View, *, has_defaults: bool = True) -> Facts:
    """Find all that an engine with a view knows about every value of a model at import.

    Of what lowering calculates, such as a part that is chosen at run time, it knows the rank. It
    takes defaults of inputs for constants, if it has them (D20).
    """
    analysis = _Import(model, view)
    opsets = model_opsets(model)
    for value in model.graph.inputs:
        default = value.const_value if has_defaults else None
        known = declared(value) if default is None else of_constant(default, opsets.get("", 0))
        analysis.facts.set(value, _in_numbers(known))
    analysis.scope(model.graph, Surroundings("graph", opsets))
    analysis.uncalled_functions()
    return analysis.facts


class _Import(Analysis):
    """The walk through a model as an engine imports it."""

    def __init__(self, model: ir.Model, view: View) -> None:
        super().__init__(model, {}, strict=False, declarations=False)
        self._view, self._is_in_loop = view, False
        self._fed = set(model.graph.inputs)  # and what is calculated from their elements

    def node(self, node: ir.Node, path: str, around: Surroundings) -> list[Fact]:
        """Analyse a node; returns what the engine knows of its outputs.

        What a loop gives out follows from all that goes in. Its body is imported before: with what
        the body itself declares.
        """
        if not gives_shape(node) and not self._fed.isdisjoint(node.inputs):
            self._fed.update(node.outputs)
        if node.domain != "" or node.op_type not in _LOOPS:
            return [self._seen(node, fact) for fact in super().node(node, path, around)]
        outer, self._is_in_loop = self._is_in_loop, True
        found = super().node(node, path, around)
        self._is_in_loop = outer
        for label, body in bodies(node) if not outer else ():
            for value in body.inputs:
                self.facts.set(value, _in_numbers(declared(value)))
            self.scope(body, around.inside(f"{path}.{label}", None))
            if loop_body(node) is not None:
                found = self._given_by(node, found)
        return found

    def _given_by(self, node: ir.Node, found: list[Fact]) -> list[Fact]:
        """Return the outputs of a loop with the lengths that its body gives whatever it carries.

        An engine has them even where what goes in is of other lengths.
        """
        made = body_of(node).outputs[int(is_loop(node)) :][: len(states_of(node))]
        ends = [Tensor(shape=self.facts.tensor(each).shape) for each in made]
        given = [
            merge_declared(fact, end) if as_tensor(fact).shape else fact
            for fact, end in zip(found, ends, strict=False)
        ]
        return [*given, *found[len(given) :]]

    def split(
        self,
        node: ir.Node,
        path: str,
        around: Surroundings,
        inputs: list[Fact],
        attributes: Attributes,
    ) -> list[Fact]:
        """Analyse a split node; lengths that are not all known tell nothing of any part."""
        found = super().split(node, path, around, inputs, attributes)
        split = self.known_split(node, around.opset, inputs, attributes)
        if split.intent is None:
            return found
        given, axis, made = split.intent.given, split.intent.axis, split.plan
        is_known_length = given is not None and are_known(given)
        if is_known_length and split.intent.operator.is_sequence and split.intent.keepdims:
            is_known_length = made is not None and is_known(made.input_shape[made.axis])
        if is_known_length or axis is None:
            return found
        return [_open_on(fact, axis) for fact in found]

    def _seen(self, node: ir.Node, fact: Fact) -> Fact:
        """Return the fact that the engine knows about an output, from the one that is known here.

        It does not know that 0 times a number that it does not see is 0, nor how many axes
        there are with new ones that it does not see, nor what is in what it has no shape for, nor
        that a Reshape by a number that it does not see keeps the number of elements, nor any number
        of a list of which one is fed.
        """
        if node.domain != "":
            return fact
        inputs = [self.facts.of(value) for value in node.inputs]
        held = [as_tensor(known).constant for known in inputs]
        is_by_zero = node.op_type == "Mul" and any(0 in (as_tensor(k).values or ()) for k in inputs)
        is_loose = None in held and (is_by_zero or node.op_type in self._view.whole)
        if node.op_type == "Concat":
            joined = zip(node.inputs, held, strict=True)
            is_loose |= any(known is None and value in self._fed for value, known in joined)
        if node.op_type in self._view.opaque:
            is_folded = all(constant(value) is not None for value in node.inputs)
            is_loose = not is_folded or any(bodies(node))
        if is_loose:
            return without_elements(fact)
        shaped_by = node.inputs[1:] if node.op_type in _SHAPED_BY else ()
        are_seen = (
            self.facts.tensor(each).constant is not None for each in shaped_by if each is not None
        )
        if isinstance(fact, Tensor) and not all(are_seen):
            shape = None if _SHAPED_BY[node.op_type] else fact.shape
            if node.op_type == "Reshape" and shape is not None:
                requested = self.facts.tensor(node.inputs[1]).integers or (None,) * len(shape)
                pairs = zip(requested, shape, strict=False)
                shape = tuple(dim if is_known(length) else None for length, dim in pairs)
            return replace(fact, shape=shape, values=None)
        given = inputs[0] if inputs else None
        if isinstance(given, SequenceFact) and isinstance(fact, Tensor) and fact.shape:
            at = POSITIONS.get(node.op_type, len(held))
            if given.parts is None or None in held[at : at + 1]:
                return replace(fact, shape=(None,) * len(fact.shape))
        return fact


def _in_numbers(fact: Fact) -> Fact:
    """Return a declared fact without the names of dimensions."""
    if isinstance(fact, SequenceFact):
        return replace(fact, part=_numbers(fact.part))
    return replace(fact, shape=_numbers(fact.shape))


def _numbers(shape: Shape | None) -> Shape | None:
    return None if shape is None else tuple(dim if is_known(dim) else None for dim in shape)


def _open_on(fact: Fact, axis: int) -> Fact:
    """Return the fact about a tensor, or each of a sequence, without the length on an axis."""

    def opened(shape: Shape | None) -> Shape | None:
        if not shape or not -len(shape) <= axis < len(shape):
            return shape
        place = axis % len(shape)
        return (*shape[:place], None, *shape[place + 1 :])

    if isinstance(fact, Tensor):
        return replace(fact, shape=opened(fact.shape), values=None)
    if isinstance(fact, SequenceFact):
        parts, count = fact.parts, fact.count
        if parts is None and is_known(count) and count <= MAX_LISTED_PARTS:
            parts = (fact.part,) * count
        return replace(fact, part=opened(fact.part), parts=parts and tuple(map(opened, parts)))
    return fact
