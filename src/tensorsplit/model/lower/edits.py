"""SequenceInsert and SequenceErase, with tensors."""

from __future__ import annotations

import onnx_ir as ir

from tensorsplit.model.graph.facts import Tensor
from tensorsplit.model.lower.arithmetic import Arithmetic, Number
from tensorsplit.model.lower.cuts import Cut
from tensorsplit.model.lower.reps import Part, Rep, as_cut, form_of, of_cut
from tensorsplit.model.lower.step import Result, Step


def insert(step: Step) -> Result:
    """SequenceInsert."""
    rep, tensor = step.rep(), step.input(1)
    assert tensor is not None  # noqa: S101 - the input is required
    if rep.parts is not None:
        index = step.constant_position(2, len(rep.parts), 1)
        if index is not None:
            parts: tuple[Part, ...] = (*rep.parts[:index], tensor, *rep.parts[index:])
            return Rep(parts, None, step.fact)
    form = form_of(rep, step.place, step.fact)
    cut = as_cut(rep, form, step.context, step.home, step.place)
    position = step.position(2)
    data, lengths = step.context.build(
        step.home, step.stem, lambda make: _inserted(make, step, cut, tensor, position)
    )
    return _recut(step, cut, data, lengths)


def _inserted(
    make: Arithmetic, step: Step, cut: Cut, tensor: ir.Value, position: int | ir.Value | None
) -> tuple[ir.Value, ir.Value | None]:
    axis, dropped = cut.form.axis, cut.form.dropped
    new = make.unsqueeze(tensor, [axis]) if dropped else tensor
    lengths = None if dropped else [cut.lengths_value(), make.dimension(tensor, axis)]
    if position is None:
        joined = None if lengths is None else make.concat(lengths, 0)
        return make.concat([cut.data, new], axis), joined
    count = cut.count()
    place = make.position(step.number(make, position), count, count)
    before, after = _around(make, step, cut, place, place)
    joined = None
    if lengths is not None:
        rest = (lengths[0], place), (lengths[0], place)
        joined = make.concat([_head(make, *rest[0]), lengths[1], _tail(make, *rest[1])], 0)
    return make.concat([before, new, after], axis), joined


def erase(step: Step) -> Result:
    """SequenceErase."""
    rep = step.rep()
    if rep.parts is not None:
        index = step.constant_position(1, len(rep.parts), 0)
        if index is not None:
            return Rep((*rep.parts[:index], *rep.parts[index + 1 :]), None, step.fact)
    cut = as_cut(rep, form_of(rep, step.place), step.context, step.home, step.place)
    position = step.position(1)
    data, lengths = step.context.build(
        step.home,
        step.stem,
        lambda make: _erased(make, step, cut, -1 if position is None else position),
    )
    return _recut(step, cut, data, lengths)


def _erased(
    make: Arithmetic, step: Step, cut: Cut, position: int | ir.Value
) -> tuple[ir.Value, ir.Value | None]:
    count = cut.count()
    place = make.position(step.number(make, position), count, make.subtract(count, 1))
    following = make.add(place, 1)
    before, after = _around(make, step, cut, place, following)
    data = make.concat([before, after], cut.form.axis)
    if cut.form.dropped:
        return data, None
    lengths = cut.lengths_value()
    return data, make.concat([_head(make, lengths, place), _tail(make, lengths, following)], 0)


def _around(
    make: Arithmetic, step: Step, cut: Cut, place: Number, following: Number
) -> tuple[ir.Value, ir.Value]:
    """The data before a position, and that from another position on."""
    by_index = step.context.takes_by_index(cut.data)
    axis = cut.form.axis
    before = make.slice(cut.data, 0, cut.starts(make, place), axis, by_index)
    after = make.slice(cut.data, cut.starts(make, following), cut.length(), axis, by_index)
    return before, after


def _head(make: Arithmetic, numbers: ir.Value, end: Number) -> ir.Value:
    return make.slice(numbers, 0, end, 0)


def _tail(make: Arithmetic, numbers: ir.Value, start: Number) -> ir.Value:
    return make.slice(numbers, start, _TO_THE_END, 0)


_TO_THE_END = (1 << 31) - 1


def _recut(step: Step, cut: Cut, data: ir.Value, lengths: ir.Value | None) -> Rep:
    """The sequence with other data and lengths of the same form."""
    known = step.context.tensor(cut.data)
    shape = None if known.shape is None else list(known.shape)
    if shape is not None:
        shape[cut.form.axis] = None
    fact = Tensor(known.element_type, None if shape is None else tuple(shape))
    step.context.know(data, fact)
    length = 1 if lengths is None else None
    made = Cut(step.context, step.home, data, cut.form, length, lengths, None, step.stem)
    return of_cut(made, step.fact)
