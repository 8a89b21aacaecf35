"""What stands for a sequence in a model without sequences."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import onnx_ir as ir

from tensorsplit.core.dimensions import is_known
from tensorsplit.model.graph.facts import Sequence, Tensor
from tensorsplit.model.graph.nodes import NodeRef
from tensorsplit.model.lower.arithmetic import Arithmetic, Number
from tensorsplit.model.lower.context import Context, Home, refusal
from tensorsplit.model.lower.cuts import Cut, Form


@dataclass(frozen=True, slots=True)
class Piece:
    """A part that is made only if something uses it.

    Attributes:
        cut: The cut that it is a piece of.
        index: Which one.
    """

    cut: Cut
    index: int


Part: TypeAlias = "ir.Value | Piece"


@dataclass(frozen=True, slots=True)
class Rep:
    """What stands for a sequence; one of the first two is there, and both where both hold.

    Attributes:
        parts: Every tensor, if it is known how many there are.
        cut: The tensor that the sequence consists of consecutive pieces of.
        fact: What is known of the sequence.
    """

    parts: tuple[Part, ...] | None
    cut: Cut | None
    fact: Sequence


def of_cut(cut: Cut, fact: Sequence) -> Rep:
    """The sequence of the pieces of a cut."""
    sizes = cut.sizes
    parts = None if sizes is None else tuple(Piece(cut, index) for index in range(len(sizes)))
    return Rep(parts, cut, fact)


def value_of(part: Part) -> ir.Value:
    """The tensor of a part."""
    return part.cut.piece(part.index) if isinstance(part, Piece) else part


def form_of(rep: Rep, place: NodeRef, fact: Sequence | None = None) -> Form:
    """How to lay out a sequence in one tensor.

    Args:
        rep: The sequence.
        place: The node that needs it.
        fact: What is known of every sequence that is to have the form; the sequence's own if None.

    Raises:
        SplitError: TS513 if the tensors may differ in more than one dimension.
    """
    if rep.cut is not None:
        return rep.cut.form
    part = (fact or rep.fact).part
    if part is None:
        raise refusal("nothing is known of the rank of the sequence's tensors", place, _DECLARE)
    vary = [axis for axis, dim in enumerate(part) if not is_known(dim)]
    if len(vary) > 1:
        raise refusal(
            f"the sequence's tensors may differ in the dimensions {vary}, so that no one tensor"
            " can hold them all",
            place,
            _DECLARE,
        )
    return Form(vary[0], dropped=False) if vary else Form(0, dropped=True)


_DECLARE = "declare the shapes that are known, for example with infer_shapes"


def as_cut(rep: Rep, form: Form, context: Context, home: Home, place: NodeRef) -> Cut:
    """The sequence laid out in one tensor.

    Args:
        rep: The sequence.
        form: How.
        context: The lowering.
        home: Where to put the nodes that do it.
        place: The node that needs it.

    Raises:
        SplitError: TS513 if it is laid out in another way, or has no tensors and no known shape.
    """
    if rep.cut is not None and rep.cut.form == form:
        return rep.cut
    if rep.parts is None:
        raise refusal("the sequence's tensors follow each other along another axis", place)
    stem = place.node.name or place.node.op_type
    parts = [value_of(part) for part in rep.parts]
    data, lengths = context.build(
        home,
        stem,
        lambda make: (
            _joined(make, context, parts, form) if parts else _empty(make, rep.fact, form, place)
        ),
    )
    count = len(parts)
    if form.dropped:
        return Cut(context, home, data, form, 1, None, count, stem)
    return Cut(context, home, data, form, None, lengths, None, stem)


def _joined(
    make: Arithmetic, context: Context, parts: list[ir.Value], form: Form
) -> tuple[ir.Value, ir.Value | tuple[int, ...] | None]:
    if form.dropped:
        return make.concat([make.unsqueeze(part, [form.axis]) for part in parts], form.axis), None
    dims: list[Number] = []
    for part in parts:
        shape = context.tensor(part).shape
        known_dim = shape is not None and is_known(shape[form.axis])
        dims.append(shape[form.axis] if shape and known_dim else make.dimension(part, form.axis))
    known = [dim for dim in dims if isinstance(dim, int)]
    lengths = tuple(known) if len(known) == len(dims) else make.listed(dims)
    return make.concat(parts, form.axis), lengths


def _empty(
    make: Arithmetic, fact: Sequence, form: Form, place: NodeRef
) -> tuple[ir.Value, ir.Value | tuple[int, ...] | None]:
    """No tensors at all: an empty tensor of the right shape."""
    part, element_type = fact.part, fact.element_type
    if part is None or element_type is None:
        raise refusal("an empty sequence has neither shape nor type", place, _DECLARE)
    shape = list(part)
    if form.dropped:
        shape.insert(form.axis, 0)
    else:
        shape[form.axis] = 0
    if not all(map(is_known, shape)):
        raise refusal(f"the shape {part} of an empty sequence's tensors is open", place, _DECLARE)
    data = make.empty(shape, form.axis, element_type)
    return data, None if form.dropped else ()


def tensor_fact(fact: Sequence, form: Form) -> Tensor:
    """What is known of the tensor that holds a sequence."""
    if fact.part is None:
        return Tensor(fact.element_type)
    shape = [dim if is_known(dim) else None for dim in fact.part]
    if form.dropped:
        shape.insert(form.axis, None)
    else:
        shape[form.axis] = None
    return Tensor(fact.element_type, tuple(shape))
