"""Each operator on sequences, with tensors."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import onnx_ir as ir

from tensorsplit.core.dimensions import is_known
from tensorsplit.core.rules import chunk, explicit, ones
from tensorsplit.model.features import known_lengths
from tensorsplit.model.graph.binding import bind
from tensorsplit.model.graph.facts import Tensor
from tensorsplit.model.lower.arithmetic import Arithmetic, Number
from tensorsplit.model.lower.context import refusal
from tensorsplit.model.lower.cuts import Cut, Form
from tensorsplit.model.lower.edits import erase, insert
from tensorsplit.model.lower.joins import concat_cut
from tensorsplit.model.lower.reps import Rep, as_cut, form_of, of_cut, value_of
from tensorsplit.model.lower.step import Result, Step


def _split(step: Step) -> Result:
    """SplitToSequence."""
    context, node = step.context, step.node
    inputs = [context.facts.of(value) for value in node.inputs]
    intent = bind(node, context.opset, inputs, {})
    data, split = step.input(0), step.input(1)
    assert data is not None  # noqa: S101 - bind looked
    known = context.tensor(data)
    axis = intent.axis
    if axis is None or intent.rule is None:
        raise refusal(
            "it is not known whether 'split' is a scalar or a list",
            step.place,
            "declare its shape",
        )
    dim = None
    if known.shape is not None:
        axis %= len(known.shape)
        dim = known.shape[axis] if is_known(known.shape[axis]) else None
    form = Form(axis, dropped=not intent.keepdims)
    cut = Cut(context, step.home, data, form, None, None, dim, step.stem)
    if intent.rule is ones:
        cut.chunk = 1
    elif (given := known_lengths(intent)) is not None:
        cut.chunk = given[0] if intent.rule is chunk else None
        cut.lengths = given if intent.rule is explicit else None
    elif intent.rule is chunk and split is not None:
        cut.chunk = step.build(lambda make: _positive(make, step.number(make, split)))
    elif split is not None:
        wide = context.tensor(split).element_type == ir.DataType.INT64
        lengths = step.build(lambda make: _checked(make, cut, split, wide))
        cut.lengths = context.know(lengths, Tensor(ir.DataType.INT64, context.tensor(split).shape))
    return of_cut(cut, step.fact)


def _positive(make: Arithmetic, number: Number) -> ir.Value:
    return make.guarded(number, make.less(0, number))


def _checked(make: Arithmetic, cut: Cut, split: ir.Value, is_int64: bool) -> ir.Value:
    lengths = split if is_int64 else make.op("Cast", [split], {"to": int(ir.DataType.INT64)})
    return make.sure_lengths(lengths, make.tensor(cut.length()))


def _at(step: Step) -> Result:
    rep = step.rep()
    if rep.parts is not None:
        index = step.constant_position(1, len(rep.parts), 0)
        if index is not None:
            step.alias(value_of(rep.parts[index]))
            return "the part itself"
    index_value = step.position(1)
    assert index_value is not None  # noqa: S101 - the input is required
    cut = as_cut(rep, form_of(rep, step.place), step.context, step.home, step.place)
    step.result(lambda make: cut.at(make, step.number(make, index_value)))
    return "Gather" if cut.form.dropped else "Slice"


def _length(step: Step) -> Result:
    rep = step.rep()
    count: Number = len(rep.parts or ())
    if rep.parts is None and rep.cut is not None:
        count = rep.cut.count()
    step.result(lambda make: make.scalar(count))
    return "Constant" if isinstance(count, int) else "computed length"


def _construct(step: Step) -> Result:
    parts = tuple(value for value in step.node.inputs if value is not None)
    return Rep(parts, None, step.fact)


def _empty(step: Step) -> Result:
    return Rep((), None, step.fact)


def _identity(step: Step) -> Result:
    return step.rep()


def _concat(step: Step) -> Result:
    rep, node = step.rep(), step.node
    axis = node.attributes.get_int("axis", 0)
    new_axis = bool(node.attributes.get_int("new_axis", 0))
    if rep.cut is not None:
        became = concat_cut(step.context, rep.cut, axis, new_axis)
        if became is not None:
            made, text = became
            if made is None:
                step.alias(rep.cut.data)
            else:
                step.result(made)
            return text
    if rep.parts is None:
        raise refusal(
            "an unknown number of tensors is joined along another axis than they were cut on",
            step.place,
        )
    if not rep.parts:
        raise refusal("it joins no tensors", step.place, "give it at least one")
    parts = [value_of(part) for part in rep.parts]
    if new_axis:
        step.result(
            lambda make: make.concat([make.unsqueeze(part, [axis]) for part in parts], axis)
        )
    elif len(parts) == 1:
        step.alias(parts[0])
    else:
        step.result(lambda make: make.concat(parts, axis))
    return "Concat"


HANDLERS: Mapping[str, Callable[[Step], Result]] = {
    "SplitToSequence": _split,
    "SequenceAt": _at,
    "SequenceLength": _length,
    "SequenceConstruct": _construct,
    "SequenceEmpty": _empty,
    "SequenceInsert": insert,
    "SequenceErase": erase,
    "ConcatFromSequence": _concat,
    "Identity": _identity,
}
"""What to do with each operator."""
