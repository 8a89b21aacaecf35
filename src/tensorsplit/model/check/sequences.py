"""The operators on sequences of tensors around the splits: positions and tensors that don't fit."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import onnx_ir as ir

from tensorsplit.core.dimensions import Shape, is_known
from tensorsplit.core.errors import SEQUENCE_INDEX, SplitError
from tensorsplit.model.check.cuts import as_text
from tensorsplit.model.check.finding import Finding, of_check, of_error
from tensorsplit.model.check.table import SEQUENCE_PARTS
from tensorsplit.model.graph.facts import Fact, Sequence, Tensor
from tensorsplit.model.graph.nodes import NodeRef, domain_name
from tensorsplit.model.infer.analysis import Facts


def misfits(place: NodeRef, facts: Facts) -> Iterator[Finding]:
    """What is wrong with a node that works on a sequence; nothing for other nodes.

    Args:
        place: The node.
        facts: What is known of the values of the model.
    """
    if domain_name(place.node.domain) == "" and place.node.op_type in _RULES:
        inputs = [facts.of(value) for value in place.node.inputs]
        if inputs and isinstance(inputs[0], Sequence):
            yield from _RULES[place.node.op_type](place, inputs[0], inputs[1:])


def _at(place: NodeRef, sequence: Sequence, others: list[Fact]) -> Iterator[Finding]:
    yield from _position(place, sequence, others[0] if others else None, extra=0)


def _erase(place: NodeRef, sequence: Sequence, others: list[Fact]) -> Iterator[Finding]:
    if others and place.node.inputs[1] is not None:
        yield from _position(place, sequence, others[0], extra=0)
    elif sequence.count == 0:
        yield _out_of_range(place, -1, 0, 0)


def _insert(place: NodeRef, sequence: Sequence, others: list[Fact]) -> Iterator[Finding]:
    if len(others) > 1:
        yield from _position(place, sequence, others[1], extra=1)
    tensor = others[0] if others else None
    if isinstance(tensor, Tensor) and sequence.count != 0:
        yield from _types(place, sequence.element_type, tensor.element_type)


def _position(
    place: NodeRef, sequence: Sequence, position: Fact | None, extra: int
) -> Iterator[Finding]:
    """Refuse a position that is known to lie outside of a sequence of known length (D19)."""
    if not isinstance(position, Tensor) or not is_known(sequence.count):
        return
    values = position.constant
    if values is not None and len(values) == 1:
        count: int = sequence.count
        if not -count <= values[0] < count + extra:
            yield _out_of_range(place, values[0], count, extra)


def _out_of_range(place: NodeRef, index: int, count: int, extra: int) -> Finding:
    error = SplitError(
        SEQUENCE_INDEX,
        f"the position is {index}, but the sequence has {count} tensors",
        f"give a position in [{-count}, {count + extra - 1}]" if count + extra else "",
        operator=f"onnx.{place.node.op_type}",
        parameter="position",
        node=place.path,
    )
    return of_error(error)


def _types(place: NodeRef, one: ir.DataType | None, other: ir.DataType | None) -> Iterator[Finding]:
    if one is not None and other is not None and one != other:
        yield _misfit(
            place,
            f"the sequence holds tensors of {one.name.lower()}, but the tensor is of"
            f" {other.name.lower()}",
            "a sequence has one element type",
        )


def _concat(place: NodeRef, sequence: Sequence, _others: list[Fact]) -> Iterator[Finding]:
    """The tensors have one shape, but for the axis they are joined on unless it is a new one."""
    axis, new_axis = (_integer(place.node, name) for name in ("axis", "new_axis"))
    parts = [shape for shape in sequence.parts or () if shape is not None]
    if axis is None or not parts:
        return
    rank = len(parts[0])
    extent = rank + bool(new_axis)
    if all(len(shape) == rank for shape in parts) and not -extent <= axis < extent:
        yield _misfit(
            place,
            f"the axis is {axis}, but the tensors have rank {rank}",
            f"give an axis in [{-extent}, {extent - 1}]" if extent else "set new_axis to 1",
        )
        return
    joined = None if new_axis else axis % extent
    first = parts[0]
    for index, shape in enumerate(sequence.parts or ()):
        if shape is not None and not _join(first, shape, joined):
            yield _misfit(
                place,
                f"tensor {index} has shape {as_text(shape)}, another one {as_text(first)}",
                "join them on the axis they were cut on, with new_axis = 0"
                if new_axis
                else f"they may differ on axis {joined} alone",
            )
            return


def _join(one: Shape, other: Shape, axis: int | None) -> bool:
    return len(one) == len(other) and all(
        place == axis or not (is_known(a) and is_known(b)) or a == b
        for place, (a, b) in enumerate(zip(one, other, strict=True))
    )


def _integer(node: ir.Node, name: str) -> int | None:
    """An integer attribute: 0 where it is absent, None where only calls of a function tell."""
    attribute = node.attributes.get(name)
    if attribute is None:
        return 0
    value = None if attribute.is_ref() else attribute.value
    return value if isinstance(value, int) else None


def _misfit(place: NodeRef, message: str, fix: str) -> Finding:
    return of_check(SEQUENCE_PARTS, place.path, message, fix, operator=f"onnx.{place.node.op_type}")


_RULES: Mapping[str, Callable[[NodeRef, Sequence, list[Fact]], Iterator[Finding]]] = {
    "SequenceAt": _at,
    "SequenceErase": _erase,
    "SequenceInsert": _insert,
    "ConcatFromSequence": _concat,
}
