"""The split node itself, and the model around it."""

from __future__ import annotations

from functools import partial

import numpy as np
from onnx import NodeProto, helper

from tensorsplit.conformance import oracle
from tensorsplit.conformance.case import Built
from tensorsplit.conformance.models.onnx_model import (
    Fragment,
    Scope,
    Shape,
    SplitModel,
    Value,
    operand_name,
    to_model,
)
from tensorsplit.conformance.models.places import PLACES, free_names
from tensorsplit.conformance.models.uses import USES, Site


def build(model: SplitModel, rng: np.random.Generator) -> Built:
    """The files of a case.

    Args:
        model: What the model says.
        rng: Where the elements come from.
    """
    scope = Scope(rng)
    make = partial(_split, model, scope)
    for place in reversed(model.places):
        make = partial(PLACES[place], model, scope, make)
    x = scope.data("x", model, model.shape, model.declared)
    fragment = make(x, "")
    scope.keep(free_names(fragment.nodes))
    proto = to_model(scope, fragment.nodes, fragment.outputs, model.opset)
    expected = None
    if model.sizes is not None:
        expected = {value.name: value.expected for value in fragment.outputs}
    return Built(proto.SerializeToString(deterministic=True), b"", scope.feeds, expected)


def _split(model: SplitModel, scope: Scope, x: Value, prefix: str) -> Fragment:
    """The split node, and what is done with its sequence."""
    nodes: list[NodeProto] = []
    inputs = [x.name]
    if model.operand is not None:
        nodes, split = operand_name(scope, model.operand, prefix)
        inputs.append(split)
    elif model.blank:
        inputs.append("")
    parts = _parts(model, x)
    if model.use:
        sequence = Value(f"{prefix}parts", x.element_type, _any_part(model, x), parts, True)
        nodes.append(helper.make_node(model.op_type, inputs, [sequence.name], **model.attributes))
        used = USES[model.use](Site(model, scope, sequence, prefix))
        return Fragment([*nodes, *used.nodes], used.outputs)
    names = [
        "" if place in model.unnamed else f"{prefix}y{place}" for place in range(model.outputs)
    ]
    nodes.append(helper.make_node(model.op_type, inputs, names, **model.attributes))
    outputs = [
        Value(name, x.element_type, _shape(model, x, place), part)
        for place, (name, part) in enumerate(zip(names, parts, strict=True))
        if name
    ]
    return Fragment(nodes, outputs)


def _parts(model: SplitModel, x: Value) -> list[oracle.Array | None]:
    if model.sizes is None:
        return [None] * model.outputs
    return list(oracle.parts(x.expected, model.axis, model.sizes, model.keepdims))


def _shape(model: SplitModel, x: Value, place: int) -> Shape:
    """What is declared of a part: its length only where the model knows that of the data."""
    axis = model.axis if -len(x.shape) <= model.axis < len(x.shape) else 0
    if not x.shape:
        return ()
    is_overridden = model.operand is not None and model.operand.default is not None
    if model.sizes is None or is_overridden or not isinstance(x.shape[axis], int):
        return oracle.resized(x.shape, axis, None)
    return oracle.resized(x.shape, axis, model.sizes[place])


def _any_part(model: SplitModel, x: Value) -> Shape:
    """What is declared of every part of a sequence."""
    if not x.shape or not -len(x.shape) <= model.axis < len(x.shape):
        return x.shape
    if not model.keepdims:
        return oracle.without(x.shape, model.axis)
    return oracle.resized(x.shape, model.axis, None)
