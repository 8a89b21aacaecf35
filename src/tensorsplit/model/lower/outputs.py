"""Sequences made again of tensors, for outputs of a model whose target has sequences."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from tensorsplit.model.lower.arithmetic import Arithmetic
from tensorsplit.model.lower.context import Context, Home, refusal
from tensorsplit.model.lower.cuts import Cut
from tensorsplit.model.lower.reps import Rep, value_of


def give_out(context: Context, value: ir.Value, rep: Rep) -> None:
    """Make a sequence of the tensors that stand for it, in the place of an output of the model.

    Args:
        context: The lowering.
        value: The output.
        rep: What stands for it.

    Raises:
        SplitError: TS513 if it is empty, or of a type that is not known.
    """
    node, stem = value.producer(), value.name or "output"
    if node is None or (rep.cut is None and not rep.parts):
        raise refusal(f"the output '{value.name}' is a sequence without tensors", None)
    home = Home(context.model.graph, node, behind=True)
    if rep.parts:
        parts = [value_of(part) for part in rep.parts]
        made = context.build(home, stem, lambda make: make.op("SequenceConstruct", parts))
    else:
        cut = rep.cut
        assert cut is not None  # noqa: S101 - one of the two is there
        made = context.build(home, stem, lambda make: _collected(make, context, cut, stem))
    context.stand_in(value, made)


def _collected(make: Arithmetic, context: Context, cut: Cut, stem: str) -> ir.Value:
    """A loop that puts one piece after the other into a sequence."""
    element_type = context.tensor(cut.data).element_type
    if element_type is None:
        raise refusal(f"the element type of the output '{stem}' is not known", None, "declare it")
    count = make.scalar(cut.count())
    empty = make.op("SequenceEmpty", [], {"dtype": int(element_type)})
    body = _body(context, cut, element_type, stem)
    always = make.constant(True, np.bool_)
    return make.op("Loop", [count, always, empty], {"body": body})


def _body(context: Context, cut: Cut, element_type: ir.DataType, stem: str) -> ir.Graph:
    def value(name: str, kind: ir.TypeProtocol, scalar: bool = False) -> ir.Value:
        made = ir.Value(name=context.names.fresh(f"{stem}_{name}"), type=kind)
        made.shape = ir.Shape([]) if scalar else None
        return made

    sequence = ir.SequenceType(ir.TensorType(element_type))
    number = value("number", ir.TensorType(ir.DataType.INT64), scalar=True)
    going = value("going", ir.TensorType(ir.DataType.BOOL), scalar=True)
    before = value("before", sequence)
    make = Arithmetic(context.names, context.opset, stem)
    piece = cut.at(make, make.number(number, is_int64=True))
    goes_on, after = make.op("Identity", [going]), make.op("SequenceInsert", [before, piece])
    goes_on.type, goes_on.shape, after.type = going.type, going.shape, sequence
    return ir.Graph(
        [number, going, before],
        [goes_on, after],
        nodes=make.nodes,
        name=context.names.fresh(f"{stem}_body"),
    )
