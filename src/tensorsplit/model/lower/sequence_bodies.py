"""If, Loop and SequenceMap with tensors in the place of sequences, and sequences made again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import onnx_ir as ir

from tensorsplit.core.arithmetic import value
from tensorsplit.core.rules import Chunks
from tensorsplit.model.features import is_sequence
from tensorsplit.model.graph.building import Builder, Edits, Names
from tensorsplit.model.graph.calculation import Calculation
from tensorsplit.model.graph.facts import Sequence, Tensor
from tensorsplit.model.graph.nodes import NodeRef, bodies
from tensorsplit.model.infer.analysis import Facts
from tensorsplit.model.lower.context import Context, InsertionPoint, graph_of, refusal
from tensorsplit.model.lower.packed_parts import (
    Layout,
    LoweredSequence,
    PackedParts,
    tensor_fact,
)
from tensorsplit.model.lower.sequence_nodes import LoweredSequences, SequenceNode

LowerBody: TypeAlias = Callable[[ir.Graph, str], None]
"""Lowers a body, whose path is given."""


class ControlFlow(SequenceNode):
    """A node with bodies.

    Attributes:
        goes: Whether a value is a sequence that must go.
        lower_body: What lowers a body.
    """

    def __init__(
        self,
        context: Context,
        ref: NodeRef,
        sequences: LoweredSequences,
        goes: Callable[[ir.Value | None], bool],
        lower_body: LowerBody,
    ) -> None:
        super().__init__(context, ref, sequences)
        self.goes, self.lower_body = goes, lower_body

    def given_out(
        self, sequence: LoweredSequence, layout: Layout | None, body: ir.Graph
    ) -> list[ir.Value]:
        """What a body gives out for a sequence, made in it; one tensor each without a layout."""
        point = InsertionPoint(self.context, self.stem, body, None)
        if layout is None:
            values = sequence.tensors()
        else:
            values = sequence.in_layout(layout, point, self.ref).tensors()
        return [
            made
            if made.producer() is not None and made.graph is body and not made.is_graph_output()
            else point.op("Identity", [made])
            for made in values
        ]

    def taken_back(
        self, values: list[ir.Value], layout: Layout | None, fact: Sequence, point: InsertionPoint
    ) -> LoweredSequence:
        """What stands for a sequence whose tensors came through the node.

        Args:
            values: The tensors on this side.
            layout: How they hold the sequence; None if each is one of its tensors.
            fact: What is known of the sequence.
            point: Where nodes can be inserted that use them.
        """
        if layout is None:
            return LoweredSequence(tuple(values), None, fact)
        packed = PackedParts(point, values[0], layout, ())
        packed.sizes = Chunks(packed.dim, packed.dim, 1) if layout.dropped else value(values[1])
        return LoweredSequence.of(packed, Sequence(fact.element_type, fact.part))

    def new_values(
        self, old: ir.Value, fact: Sequence, layout: Layout | None, count: int
    ) -> list[ir.Value]:
        """Values for the tensors that stand for a sequence on one side of the node."""
        if layout is None:
            known = [Tensor(fact.element_type)] * count
        else:
            known = [tensor_fact(fact, layout), Tensor(ir.DataType.INT64, (None,))][:count]
        made = []
        for tensor in known:
            name = self.context.names.fresh(f"{old.name or 'sequence'}_tensor")
            new = ir.Value(name=name)
            if tensor.element_type is not None:
                new.type = ir.TensorType(tensor.element_type)
            if tensor.shape is not None:
                new.shape = ir.Shape(tensor.shape)
            self.context.facts.set(new, tensor)
            made.append(new)
        return made

    def kept(self, old: ir.Value) -> SequenceOutput:
        """An output that stays what it was."""
        name = self.context.names.fresh(f"{old.name or 'output'}_new")
        return SequenceOutput(
            old, [ir.Value(name=name, type=old.type, shape=old.shape)], None, None
        )

    def replace(self, inputs: list[ir.Value | None], outputs: list[SequenceOutput]) -> None:
        """Put a node with other inputs and outputs behind the old one."""
        old, graph, context = self.node, graph_of(self.node), self.context
        context.edits.retire(old)
        if not outputs:
            return
        new = ir.Node(
            old.domain,
            old.op_type,
            inputs,
            list(old.attributes.values()),
            outputs=[made for output in outputs for made in output.new],
            name=old.name,
            doc_string=old.doc_string,
            metadata_props=dict(old.metadata_props),
        )
        graph.insert_after(old, new)
        behind = InsertionPoint(context, self.stem, graph, new, behind=True)
        for output in outputs:
            if output.fact is None:
                context.stand_in(output.old, output.new[0])
            else:
                sequence = self.taken_back(output.new, output.layout, output.fact, behind)
                self.sequences[output.old] = sequence


@dataclass(frozen=True)
class SequenceOutput:
    """An output of a node with bodies, and what takes its place.

    Attributes:
        old: The output.
        new: One value for it, or the tensors that stand for the sequence.
        fact: What is known of the sequence; None if it is none, or one that stays.
        layout: How the tensors hold the sequence; None if each is one of its tensors.
    """

    old: ir.Value
    new: list[ir.Value]
    fact: Sequence | None
    layout: Layout | None


def lower_if(control: ControlFlow) -> bool:
    """Lower an If and its branches; whether it was replaced.

    Raises:
        SplitError: TS513 if the branches lay their sequences out in ways that don't agree.
    """
    node = control.node
    branches = [body for _, body in bodies(node)]
    for label, body in bodies(node):
        control.lower_body(body, f"{control.ref.path}.{label}")
    if not any(map(control.goes, node.outputs)):
        return False
    given: list[list[ir.Value]] = [[] for _ in branches]
    made: list[SequenceOutput] = []
    for index, old in enumerate(node.outputs):
        ends = [body.outputs[index] for body in branches]
        columns = [[end] for end in ends]
        output = control.kept(old)
        if control.goes(old):
            sequences, fact = list(map(control.sequence, ends)), control.context.sequence(old)
            layout = _common_layout(control, sequences, fact)
            columns = [
                control.given_out(sequence, layout, body)
                for sequence, body in zip(sequences, branches, strict=True)
            ]
            new = control.new_values(old, fact, layout, len(columns[0]))
            output = SequenceOutput(old, new, fact, layout)
        for outputs, column in zip(given, columns, strict=True):
            outputs.extend(column)
        made.append(output)
    for outputs, body in zip(given, branches, strict=True):
        body.outputs[:] = outputs
    control.replace(list(node.inputs), made)
    return True


def _common_layout(
    control: ControlFlow, sequences: list[LoweredSequence], fact: Sequence
) -> Layout | None:
    """The layout that both branches can have; None to pass each tensor by itself."""
    counts = {None if each.parts is None else len(each.parts) for each in sequences}
    if len(counts) == 1 and None not in counts and counts != {0}:
        return None
    layouts = {each.packed.layout for each in sequences if each.packed is not None}
    if len(layouts) == 1:
        return layouts.pop()
    if any(each.parts is None for each in sequences):
        raise refusal("the branches split their sequences along different axes", control.ref)
    return LoweredSequence((), None, fact).layout(control.ref)


@dataclass(frozen=True)
class _Carried:
    """A value that a loop carries.

    Attributes:
        start: What it starts as: itself, the tensors of a sequence, or nothing for a sequence that
            the loop only hands on.
        inside: What a round starts with.
        fact: What is known of a sequence that must go before, in and behind every round.
        layout: How tensors hold it.
    """

    start: list[ir.Value | None]
    inside: list[ir.Value]
    fact: Sequence | None = None
    layout: Layout | None = None


def lower_loop(control: ControlFlow) -> bool:
    """Lower a Loop and its body; whether it was replaced.

    Raises:
        SplitError: TS513 for a body that does not fit, or a sequence that no tensor can hold.
    """
    node = control.node
    label, body = next(iter(bodies(node)))
    count = len(node.inputs) - 2
    if count < 0 or len(body.inputs) != count + 2 or len(body.outputs) < count + 1:
        raise refusal("the body does not fit the loop", control.ref, "repair the model")
    carried = [_carry(control, body, index) for index in range(count)]
    control.lower_body(body, f"{control.ref.path}.{label}")
    if not any(map(control.goes, node.inputs[2:])):
        return False
    inputs, inside, outside = list(node.inputs[:2]), list(body.inputs[:2]), [body.outputs[0]]
    made: list[SequenceOutput] = []
    for index, carry in enumerate(carried):
        old, end = node.outputs[index], body.outputs[index + 1]
        inputs += carry.start
        inside += carry.inside
        if carry.fact is not None:
            outside += control.given_out(control.sequence(end), carry.layout, body)
            new = control.new_values(old, carry.fact, carry.layout, len(carry.start))
            made.append(SequenceOutput(old, new, carry.fact, carry.layout))
        elif carry.start:
            outside.append(end)
            made.append(control.kept(old))
    body.inputs[:] = inside
    body.outputs[:] = [*outside, *body.outputs[count + 1 :]]
    control.replace(inputs, [*made, *map(control.kept, node.outputs[count:])])
    return True


def _carry(control: ControlFlow, body: ir.Graph, index: int) -> _Carried:
    """Set up a value that a loop carries, before its body is lowered."""
    context, ref = control.context, control.ref
    start, old = ref.input(index + 2), ref.node.outputs[index]
    inside, end = body.inputs[index + 2], body.outputs[index + 1]
    if not control.goes(start):
        return _Carried([start], [inside])
    sequence = control.sequence(start)
    if _passes(end, inside):
        control.sequences[inside] = control.sequences[old] = sequence
        return _Carried([], [])
    fact = _carried_fact(context, sequence, (end, old, inside))
    layout = sequence.layout(ref, fact)
    known = LoweredSequence(sequence.parts, sequence.packed, fact)
    starts = known.in_layout(layout, control.point, ref).tensors()
    values = control.new_values(inside, fact, layout, len(starts))
    first = InsertionPoint(context, control.stem, body, next(iter(body)))
    control.sequences[inside] = control.taken_back(values, layout, fact, first)
    return _Carried([*starts], values, fact, layout)


def _carried_fact(
    context: Context, sequence: LoweredSequence, values: tuple[ir.Value, ...]
) -> Sequence:
    """What is known of the tensors before, in and behind every round."""
    facts = [sequence.fact] if sequence.parts is None or sequence.parts else []
    facts += map(context.sequence, values)
    types = (fact.element_type for fact in facts if fact.element_type is not None)
    parts = (fact.part for fact in facts if fact.part is not None)
    return Sequence(next(types, sequence.fact.element_type), next(parts, None))


def _passes(end: ir.Value, start: ir.Value) -> bool:
    """Whether a body gives out a sequence as it took it in."""
    while end is not start:
        producer = end.producer()
        if producer is None or producer.op_type != "Identity" or producer.inputs[0] is None:
            return False
        end = producer.inputs[0]
    return True


def expand_map(ref: NodeRef, facts: Facts, names: Names, edits: Edits) -> None:
    """Replace a SequenceMap by the loop that the standard defines it by.

    Raises:
        SplitError: TS513 if the type of what the body makes is not declared.
    """
    node = ref.node
    body = next((graph for _, graph in bodies(node)), None)
    graph = node.graph
    if body is None or not isinstance(graph, ir.Graph) or len(body.inputs) != len(node.inputs):
        raise refusal("its body does not fit it", ref, "repair the model")
    make = Builder(names, ref.opset, node.name or "SequenceMap")
    length = make.op("SequenceLength", [node.inputs[0]])
    starts = [_start(make, held, ref) for held in body.outputs]
    always = make.constant(True, np.bool_)
    _fill(body, node, facts, names, ref.opset)
    loop = ir.Node(
        "",
        "Loop",
        [length, always, *starts],
        [ir.AttrGraph("body", body)],
        outputs=[ir.Value(name=None, type=old.type, shape=old.shape) for old in node.outputs],
        name=node.name,
    )
    graph.insert_before(node, [*make.nodes, loop])
    for old, new in zip(node.outputs, loop.outputs, strict=True):
        new.name, old.name = old.name, names.fresh(f"{old.name}_before")
        edits.replace(old, new)
    edits.retire(node)


def _start(make: Builder, held: ir.Value, ref: NodeRef) -> ir.Value:
    if held.dtype is None:
        raise refusal(f"the type of '{held.name}' is not declared", ref, "declare it")
    return make.op("SequenceEmpty", [], {"dtype": int(held.dtype)})


def _fill(body: ir.Graph, node: ir.Node, facts: Facts, names: Names, opset: int) -> None:
    """Turn the body of the map into that of a loop."""
    stem = node.name or "SequenceMap"
    number, going = _round(names, stem)
    first = Builder(names, opset, stem)
    for outer, inner in zip(node.inputs, body.inputs, strict=True):
        given = outer
        if outer is not None and is_sequence(outer, facts):
            given = first.op("SequenceAt", [outer, number])
        if given is not None:
            ir.convenience.replace_all_uses_with(inner, given, replace_graph_outputs=True)
    last = Builder(names, opset, stem)
    outputs = [_goes_on(last, going)]
    before = []
    for made in body.outputs:
        carried = ir.Value(name=names.fresh(f"{made.name}_before"))
        if made.type is not None:
            carried.type = ir.SequenceType(made.type)
        carried.shape = made.shape
        before.append(carried)
        outputs.append(last.op("SequenceInsert", [carried, made]))
        outputs[-1].type, outputs[-1].shape = carried.type, carried.shape
    if len(body):
        body.insert_before(body[0], first.nodes)
    else:
        body.extend(first.nodes)
    body.extend(last.nodes)
    body.inputs[:] = [number, going, *before]
    body.outputs[:] = outputs


def _round(names: Names, stem: str) -> list[ir.Value]:
    """What a loop gives its body: the number of the round, and whether it goes on."""
    return [
        ir.Value(name=names.fresh(f"{stem}_{what}"), type=ir.TensorType(dtype), shape=ir.Shape([]))
        for what, dtype in (("number", ir.DataType.INT64), ("going", ir.DataType.BOOL))
    ]


def _goes_on(make: Builder, going: ir.Value) -> ir.Value:
    made = make.op("Identity", [going])
    made.type, made.shape = going.type, going.shape
    return made


def give_out(context: Context, old: ir.Value, sequence: LoweredSequence) -> None:
    """Make a sequence of the tensors that stand for it, in the place of an output of the model.

    Raises:
        SplitError: TS513 if it is empty, or of a type that is not known.
    """
    node, stem, packed = old.producer(), old.name or "output", sequence.packed
    if node is None or (packed is None and not sequence.parts):
        raise refusal(f"the output '{old.name}' is a sequence without tensors", None)
    point = InsertionPoint(context, stem, context.model.graph, node, behind=True)
    if sequence.parts:
        made = point.op("SequenceConstruct", sequence.tensors())
    else:
        assert packed is not None  # noqa: S101 - one of the two is there
        made = _collected(point, packed)
    context.stand_in(old, made)


def _collected(make: InsertionPoint, packed: PackedParts) -> ir.Value:
    """A loop that puts one part after the other into a sequence."""
    element_type, stem = make.context.tensor(packed.data).element_type, make.stem
    if element_type is None:
        raise refusal(f"the element type of the output '{stem}' is not known", None, "declare it")
    count, always = make.scalar(packed.count), make.constant(True, np.bool_)
    empty = make.op("SequenceEmpty", [], {"dtype": int(element_type)})
    names, sequence = make.names, ir.SequenceType(ir.TensorType(element_type))
    number, going = _round(names, stem)
    before = ir.Value(name=names.fresh(f"{stem}_before"), type=sequence)
    inner = Calculation(names, make.opset, stem)
    part = packed.at(inner, inner.number(number, ir.DataType.INT64))
    outputs = [_goes_on(inner, going), inner.op("SequenceInsert", [before, part])]
    outputs[1].type = sequence
    inputs, name = [number, going, before], names.fresh(f"{stem}_body")
    body = ir.Graph(inputs, outputs, nodes=inner.nodes, name=name)
    return make.op("Loop", [count, always, empty], {"body": body})
