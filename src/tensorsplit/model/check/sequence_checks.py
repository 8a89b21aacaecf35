"""Tensors of a sequence that don't fit together; inference checks positions in sequences."""

from __future__ import annotations

from collections.abc import Iterator

from tensorsplit.core.dimensions import Shape, is_known
from tensorsplit.model.check.checks import SEQUENCE_PARTS
from tensorsplit.model.check.findings import Finding, of_check
from tensorsplit.model.check.split_checks import shape_text
from tensorsplit.model.graph.facts import Sequence, Tensor
from tensorsplit.model.graph.nodes import NodeRef, domain_name
from tensorsplit.model.infer.analysis import Facts
from tensorsplit.model.infer.sequence_operators import integer


def sequence_findings(ref: NodeRef, facts: Facts) -> Iterator[Finding]:
    """What is wrong with the tensors of the sequence that a node works on, if it does."""
    inputs = [facts.of(value) for value in ref.node.inputs]
    if domain_name(ref.node.domain) != "" or not inputs or not isinstance(inputs[0], Sequence):
        return
    if ref.node.op_type == "ConcatFromSequence":
        yield from _of_concat(ref, inputs[0])
    elif ref.node.op_type == "SequenceInsert" and len(inputs) > 1 and inputs[0].count != 0:
        held, given = inputs[0].element_type, inputs[1]
        other = given.element_type if isinstance(given, Tensor) else None
        if held is not None and other is not None and held != other:
            yield _found(
                ref,
                f"the sequence holds tensors of {held.name.lower()}, but the tensor is of"
                f" {other.name.lower()}",
                "a sequence has one element type",
            )


def _of_concat(ref: NodeRef, sequence: Sequence) -> Iterator[Finding]:
    """The tensors have one shape, but for the axis they are joined on unless it is a new one."""
    axis, new_axis = (integer(ref.node, name, 0) for name in ("axis", "new_axis"))
    parts = [shape for shape in sequence.parts or () if shape is not None]
    if axis is None or not parts:
        return
    rank = len(parts[0])
    extent = rank + bool(new_axis)
    if all(len(shape) == rank for shape in parts) and not -extent <= axis < extent:
        yield _found(
            ref,
            f"the axis is {axis}, but the tensors have rank {rank}",
            f"give an axis in [{-extent}, {extent - 1}]" if extent else "set new_axis to 1",
        )
        return
    joined = None if new_axis else axis % extent
    first = parts[0]
    for index, shape in enumerate(sequence.parts or ()):
        if shape is not None and not _join(first, shape, joined):
            yield _found(
                ref,
                f"tensor {index} has shape {shape_text(shape)}, another one {shape_text(first)}",
                "join them on the axis they were split on, with new_axis = 0"
                if new_axis
                else f"they may differ on axis {joined} alone",
            )
            return


def _join(one: Shape, other: Shape, axis: int | None) -> bool:
    return len(one) == len(other) and all(
        place == axis or not (is_known(a) and is_known(b)) or a == b
        for place, (a, b) in enumerate(zip(one, other, strict=True))
    )


def _found(ref: NodeRef, message: str, fix: str) -> Finding:
    return of_check(SEQUENCE_PARTS, ref.path, message, fix, operator=f"onnx.{ref.node.op_type}")
