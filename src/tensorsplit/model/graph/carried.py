"""The parts of a message that onnx-ir drops, put back into the message that it writes.

onnx-ir has no place for training, for fields of a newer ONNX, for the device configurations of
older IR versions, for types of maps, or for annotations and descriptions of what is not a value of
the graph. They belong to a model, a graph, a node or a value; where that stays, so do they.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any, TypeAlias

import onnx_ir as ir
from google.protobuf.unknown_fields import (  # type: ignore[import-untyped]  # it has none
    UnknownFieldSet,
)
from onnx import (
    AttributeProto,
    FunctionProto,
    GraphProto,
    ModelProto,
    NodeProto,
    StringStringEntryProto,
    TensorAnnotation,
    TensorProto,
    TrainingInfoProto,
    TypeProto,
    ValueInfoProto,
)

from tensorsplit.core.errors import NO_ADAPTER, SplitError, show
from tensorsplit.model.graph.tensors import ELEMENT_TYPES

Nodes: TypeAlias = "GraphProto | FunctionProto"

BODIES = (AttributeProto.GRAPH, AttributeProto.GRAPHS)
"""The types of attributes that hold bodies."""

TRAINING = "tensorsplit.training"
"""Notes of an onnx-ir model its `TrainingInfoProto` messages, which are not part of its graph."""

RESERVED = "tensorsplit.reserved"
"""Notes of an onnx-ir model the names that its training uses, or what else no new value may have.

A training step runs the nodes of the model's graph and of the training's as one graph.
"""


def note_training(original: ModelProto, model: ir.Model) -> None:
    """Note in an onnx-ir model what its message holds about training."""
    if original.training_info:
        model.meta[TRAINING] = tuple(original.training_info)
        model.meta[RESERVED] = frozenset(chain(*map(_used_names, original.training_info)))


def carry_over(original: ModelProto, made: ModelProto) -> None:
    """Copy into a message of onnx-ir what it dropped of the one that it was read from.

    Raises:
        SplitError: TS512 where training needs a value or a function that is no more.
    """
    _check_training(original, made)
    _carry_unknown(original, made)
    if not made.configuration:
        made.configuration.extend(original.configuration)
    _carry_nodes(original.graph, made.graph)
    functions = {_key(function): function for function in original.functions}
    for function in made.functions:
        before = functions.get(_key(function))
        if before is not None:
            _claim_descriptions(made.graph, function, before)
            _carry_nodes(before, function)


def _check_training(original: ModelProto, made: ModelProto) -> None:
    """Refuse to write a model without what its training uses (TS512)."""
    gone = names_of(original.graph) - names_of(made.graph) if made.training_info else set()
    functions = {_key(function): function.attribute for function in made.functions}
    changed = {
        _key(each)[:2] for each in original.functions if functions.get(_key(each)) != each.attribute
    }
    for training in made.training_info:
        bound = {entry.key for entry in _bindings(training)}
        for name in sorted({*_used_names(training), *bound} & gone, key=str):
            problem = f"training_info uses the value {show(name)}, which would be gone"
            raise _training_refusal(problem)
        for node in _all_nodes(training.initialization, training.algorithm):
            if (node.domain, node.op_type) in changed:
                name = f"{node.domain}::{node.op_type}"
                problem = f"training_info calls the function {show(name)}, which would change"
                raise _training_refusal(problem)


def _training_refusal(problem: str) -> SplitError:
    fix = "remove training_info if the model is for inference only"
    return SplitError(NO_ADAPTER, problem, fix, node="graph", parameter="training_info")


def _bindings(training: TrainingInfoProto) -> Iterable[StringStringEntryProto]:
    return chain(training.initialization_binding, training.update_binding)


def _all_nodes(*graphs: GraphProto) -> Iterator[NodeProto]:
    """Yield the nodes of graphs, and of the bodies in them."""
    waiting = [*graphs]
    while waiting:
        for node in waiting.pop().node:
            yield node
            for attribute in node.attribute:
                if attribute.type in BODIES:
                    waiting += [attribute.g, *attribute.graphs]


def _used_names(training: TrainingInfoProto) -> Iterator[str]:
    """Yield the names that training uses, but for those that its bindings give new values."""
    bound = {entry.key for entry in _bindings(training)}
    graphs = (training.initialization, training.algorithm)
    values = (entry.value for entry in _bindings(training))
    names = chain(values, *map(names_of, graphs), *map(names_read, graphs))
    return (name for name in names if name not in bound)


def merge_doubled(tensor: TensorProto) -> None:
    """Leave one of each of a tensor's properties, which onnx-ir writes twice."""
    properties = {entry.key: entry.value for entry in tensor.metadata_props}
    if len(properties) < len(tensor.metadata_props):
        del tensor.metadata_props[:]
        for key, value in properties.items():
            tensor.metadata_props.add(key=key, value=value)


def _key(function: FunctionProto) -> tuple[str, str, str]:
    return function.domain, function.name, function.overload


def _carry_nodes(old: Nodes, new: Nodes) -> None:
    """Put back what a graph or function lost, its nodes that are still there, and their bodies."""
    _carry_unknown(old, new)
    _carry_values(old, new)
    for before, after in _same_nodes(old, new):
        _carry_unknown(before, after)
        if before.device_configurations and not after.device_configurations:
            after.device_configurations.extend(before.device_configurations)
        now = {attribute.name: attribute for attribute in after.attribute}
        for attribute in before.attribute:
            other = now.get(attribute.name)
            if attribute.type in BODIES and other is not None and other.type == attribute.type:
                pairs = [*zip(attribute.graphs, other.graphs, strict=False)]
                for inner, body in [*pairs, (attribute.g, other.g)]:
                    _carry_nodes(inner, body)


def _carry_unknown(old: Any, new: Any) -> None:
    """Copy the fields that this version of onnx does not know."""
    if len(UnknownFieldSet(old)):
        rest = type(old)()
        rest.CopyFrom(old)
        for field, _ in old.ListFields():
            rest.ClearField(field.name)
        new.MergeFromString(rest.SerializeToString())


def _same_nodes(old: Nodes, new: Nodes) -> Iterator[tuple[NodeProto, NodeProto]]:
    """Yield the nodes of which something may be lost, each with what it is now."""
    wanted = {_mark(node): node for node in old.node if _may_lose(node)}
    for node in new.node if wanted else ():
        before = wanted.get(_mark(node))
        if before is not None:
            yield before, node


def _may_lose(node: NodeProto) -> bool:
    has_bodies = any(attribute.type in BODIES for attribute in node.attribute)
    return has_bodies or len(node.device_configurations) > 0 or len(UnknownFieldSet(node)) > 0


def _mark(node: NodeProto) -> tuple[str, ...]:
    """Return a key that a node keeps unless it is replaced; outputs of a graph's nodes differ."""
    return node.op_type, node.name, *filter(None, node.output)


def _carry_values(old: Nodes, new: Nodes) -> None:
    """Put back annotations and descriptions, but for those of values that are no more."""
    made = names_of(old)
    gone = made - names_of(new)
    read = made.difference(old.input) if isinstance(old, FunctionProto) else made
    described = {entry.name: entry for entry in new.value_info}
    entries: Iterable[ValueInfoProto] = old.value_info
    if isinstance(old, GraphProto) and isinstance(new, GraphProto):
        described |= {entry.name: entry for entry in chain(new.input, new.output)}
        entries = chain(old.value_info, old.input, old.output)
        _carry_annotations(old, new, gone)
        _carry_tensors(old, new)
    for entry in entries:
        if entry.name in described:
            _carry_unknown(entry, described[entry.name])
            if not holds(entry.type) and not described[entry.name].HasField("type"):
                described[entry.name].type.CopyFrom(entry.type)
        elif entry.name not in gone and (entry.name not in read or not holds(entry.type)):
            new.value_info.add().CopyFrom(entry)


def names_read(graph: GraphProto) -> Iterator[str]:
    """Yield the names that the nodes of a graph read, and those of the bodies in it."""
    return (name for node in _all_nodes(graph) for name in node.input if name)


def names_given(graph: Nodes) -> dict[str, list[str]]:
    """Return the names of the inputs and of the initializers, by what they are the names of."""
    if isinstance(graph, FunctionProto):
        return {"input": [*graph.input]}
    sparse = (held.values.name for held in graph.sparse_initializer)
    return {
        "input": [value.name for value in graph.input],
        "initializer": [*(held.name for held in graph.initializer), *sparse],
    }


def names_of(nodes: Nodes) -> set[str]:
    """Collect the names of the values of a graph or function, without those in bodies."""
    made = (node.output for node in nodes.node)
    return set[str]().union(*names_given(nodes).values(), *made)


def _carry_annotations(old: GraphProto, new: GraphProto, gone: set[str]) -> None:
    """Put back annotations of what is not a value of the graph; one is left of each value."""
    annotations = {entry.tensor_name: entry for entry in old.quantization_annotation}
    annotations = {name: entry for name, entry in annotations.items() if name not in gone}
    annotations |= {entry.tensor_name: entry for entry in new.quantization_annotation}
    if len(annotations) != len(new.quantization_annotation):
        kept = [
            TensorAnnotation.FromString(each.SerializeToString()) for each in annotations.values()
        ]
        del new.quantization_annotation[:]
        new.quantization_annotation.extend(kept)


def _carry_tensors(old: GraphProto, new: GraphProto) -> None:
    """Put back what is noted of external data beside its place, such as a checksum."""
    noted = {held.name: held.external_data for held in old.initializer if held.external_data}
    for tensor in new.initializer if noted else ():
        keys = {entry.key for entry in tensor.external_data}
        others = (entry for entry in noted.get(tensor.name, ()) if entry.key not in keys)
        if tensor.data_location == TensorProto.EXTERNAL:
            tensor.external_data.extend(others)


def _claim_descriptions(graph: GraphProto, function: FunctionProto, old: FunctionProto) -> None:
    """Take a function's descriptions from the graph, where onnx-ir puts them before IR version 10.

    Those that were there before stay.
    """
    prefix = f"{function.domain}::{function.name}/"
    names = {prefix + entry.name for entry in old.value_info}
    claimed = [entry for entry in graph.value_info if entry.name in names]
    for entry in claimed:
        function.value_info.add().CopyFrom(entry)
        function.value_info[-1].name = entry.name.removeprefix(prefix)
        graph.value_info.remove(entry)


def holds(declared: TypeProto, *, inside: bool = False) -> bool:
    """Return whether onnx-ir has a type; one ``inside`` another has to say all of itself."""
    kind = declared.WhichOneof("value")
    if kind in ("tensor_type", "sparse_tensor_type"):
        tensor = getattr(declared, kind)
        return tensor.elem_type in ELEMENT_TYPES and (not inside or tensor.HasField("elem_type"))
    if kind in ("sequence_type", "optional_type"):
        return holds(getattr(declared, kind).elem_type, inside=True)
    return kind is None and not inside
