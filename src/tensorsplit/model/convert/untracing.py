"""Lengths that a tracer wrote down at one size, taken from the shape of the data again."""

from __future__ import annotations

import onnx_ir as ir

from tensorsplit.model.convert.conversion import Conversion, ConversionReport
from tensorsplit.model.convert.family import express
from tensorsplit.model.features.split_features import as_counted
from tensorsplit.model.graph.building import full_collections_deferred
from tensorsplit.model.graph.facts import as_tensor
from tensorsplit.model.graph.nodes import bodies, walk
from tensorsplit.model.graph.split_records import is_onnx_split
from tensorsplit.model.infer.analysis import analyse
from tensorsplit.model.reading import ModelLike, OnnxModel, open_model
from tensorsplit.model.validity.model_errors import check_well_formed


@full_collections_deferred()
def open_untraced(model: ModelLike) -> tuple[OnnxModel, ConversionReport]:
    """Return a model whose splits take as many parts of any dimension, and what was rewritten.

    It is another model: it runs where the original refuses. Shapes that were declared for the
    parts, and for what is made of them, are left open.

    Raises:
        SplitError: TS310 if a split can't calculate its lengths at the opset of the model.
    """
    opened, report = open_model(model), ConversionReport()
    check_well_formed(opened.model)
    conversion = Conversion(opened.model, 0, report)
    parts: set[str | None] = set()
    for ref in [each for each in walk(opened.model) if is_onnx_split(each.node)]:
        split = conversion.facts.split(ref)
        intent = as_counted(ref, split.intent, split.plan) if split.intent else None
        if intent is None:
            continue
        with conversion.rewriting(ref) as node:
            parts.update(value.name for value in ref.node.outputs if value.name)
            express(node, intent, intent.operator)
    conversion.finish()
    report.is_changed = bool(parts)
    if parts:
        _open_shapes(opened.model, parts)
    return opened, report


def _open_shapes(model: ir.Model, parts: set[str | None]) -> None:
    """Leave the dimensions open that are declared of values made of parts, unless they follow."""
    made = _made_of(model, parts)
    facts = analyse(model, declarations=False)
    for value in made:
        if value.shape is not None and value.producer() is not None:
            found = as_tensor(facts.of(value)).shape or (None,) * len(value.shape)
            dims = zip(value.shape, found, strict=False)
            value.shape = ir.Shape(
                [
                    None if isinstance(declared, int) and declared != dim else declared
                    for declared, dim in dims
                ]
            )


def _made_of(model: ir.Model, parts: set[str | None]) -> set[ir.Value]:
    """Return the values of these names, and all that depend on them."""
    refs, count = list(walk(model)), -1
    made = {value for ref in refs for value in ref.node.outputs if value.name in parts}
    while count != len(made):
        count = len(made)
        for ref in refs:
            inner = [body for _, body in bodies(ref.node)]
            ends = {value for body in inner for value in body.outputs}
            if not made.isdisjoint((*ref.node.inputs, *ends)):
                made.update(ref.node.outputs, *(body.inputs for body in inner))
    return made
