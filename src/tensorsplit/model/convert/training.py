"""The graphs of training, which are at the opset of the model and are converted with it."""

from __future__ import annotations

from collections.abc import Callable

import onnx_ir as ir
from onnx import GraphProto, ModelProto, TrainingInfoProto, helper

from tensorsplit.core.dimensions import is_known
from tensorsplit.core.errors import SplitError
from tensorsplit.model.graph.carried import RESERVED, TRAINING, names_of, names_read
from tensorsplit.model.graph.held_tensors import LARGEST_CONSTANT
from tensorsplit.model.graph.message import copied
from tensorsplit.model.graph.nodes import scopes
from tensorsplit.model.infer.analysis import analyse
from tensorsplit.model.reading import OnnxModel

Convert = Callable[[ir.Model], None]
"""Converts a model in place."""


def convert_training(model: ir.Model, around: ModelProto, convert: Convert) -> None:
    """Convert the graphs of a model's training, if it has any.

    Args:
        model: The model, which is converted already.
        around: What the values are that a training step can read: `values_around` it before.
        convert: Converts a model.

    Raises:
        SplitError: What it raises.
    """
    if TRAINING not in model.meta:
        return
    made: list[TrainingInfoProto] = []
    outputs = (value.name for scope in scopes(model) for node in scope for value in node.outputs)
    taken = frozenset(filter(None, [*model.meta[RESERVED], *model.graph.initializers, *outputs]))
    for index, training in enumerate(model.meta[TRAINING]):
        copy = TrainingInfoProto()
        copy.CopyFrom(training)
        for name in ("initialization", "algorithm"):
            graph: GraphProto = getattr(copy, name)
            try:
                graph.CopyFrom(_converted(graph, around, taken, convert))
            except SplitError as error:
                path = f"training_info[{index}].{name}"
                error.node = (error.node or "graph").replace("graph", path, 1)
                raise
        made.append(copy)
    model.meta[TRAINING] = tuple(made)


def values_around(model: ir.Model) -> ModelProto:
    """Describe the values of a model's graph that a training step can read.

    What training gives new values is not constant. Without training the graph is empty.
    """
    made = ModelProto(ir_version=model.ir_version)
    for domain, version in model.opset_imports.items():
        made.opset_import.add(domain=domain, version=version)
    if TRAINING not in model.meta:
        return made
    facts, reserved = analyse(model), model.meta[RESERVED]
    outputs = (value for node in model.graph for value in node.outputs if value.name)
    for value in (*model.graph.inputs, *model.graph.initializers.values(), *outputs):
        held = value.const_value
        if held is not None and held.size <= LARGEST_CONSTANT and value.name in reserved:
            ir.serde.serialize_tensor_into(made.graph.initializer.add(), held)
            continue
        fact, entry = facts.tensor(value), made.graph.input.add(name=value.name or "")
        if fact.element_type is not None:
            shape = fact.shape
            dims = None if shape is None else [dim if is_known(dim) else None for dim in shape]
            entry.type.CopyFrom(helper.make_tensor_type_proto(fact.element_type, dims))
    return made


def _converted(
    graph: GraphProto, around: ModelProto, taken: frozenset[str], convert: Convert
) -> GraphProto:
    """Convert one graph, beside what it reads of the model's graph."""
    if not graph.node:
        return graph
    whole = copied(around)
    whole.graph.CopyFrom(graph)
    own, read = names_of(graph), set(names_read(graph))
    entries = [entry for entry in around.graph.input if entry.name in read - own]
    tensors = [held for held in around.graph.initializer if held.name in read - own]
    whole.graph.input.extend(entries)
    whole.graph.initializer.extend(tensors)
    opened = OnnxModel(whole, None)
    opened.model.meta[RESERVED] = taken
    convert(opened.model)
    made = opened.proto(True).graph
    for fields, added in ((made.input, entries), (made.initializer, tensors)):
        for entry in [each for each in fields if each.name in {other.name for other in added}]:
            fields.remove(entry)
    return made
