"""ONNX messages: walked through, adapted before onnx-ir reads them, and written.

onnx-ir drops or refuses some of what a message can hold, such as sparse tensors and types of maps.
This file adapts what comes in, and restores what would be lost.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import chain, islice
from logging import NullHandler, getLogger
from pathlib import Path

import onnx_ir as ir
from onnx import (
    AttributeProto,
    FunctionProto,
    GraphProto,
    ModelProto,
    NodeProto,
    OperatorSetIdProto,
    SparseTensorProto,
    TensorProto,
    TypeProto,
    ValueInfoProto,
)

from tensorsplit.model.graph.carried import (
    BODIES,
    TRAINING,
    carry_over,
    holds,
    merge_doubled,
    names_of,
    note_training,
)
from tensorsplit.model.graph.held_tensors import tensors
from tensorsplit.model.graph.node_paths import check_depth, function_label, node_paths
from tensorsplit.model.graph.nodes import Scope, restore_outputs, scopes
from tensorsplit.model.graph.opsets import domain_name, is_before_opsets
from tensorsplit.model.graph.tensors import SparseTensor, inlined, raw_size

getLogger("onnx_ir").addHandler(NullHandler())  # what it warns of is refused or reported here

_MAX_BODIES = 32
"""Bodies nested deeper than this can't be read from a file, nor copied: protobuf's own limit."""


def copied(model: ModelProto) -> ModelProto:
    """Return a message with the same content."""
    copy = ModelProto()
    copy.CopyFrom(model)
    return copy


@dataclass(frozen=True)
class NodeList:
    """A graph, a body or a function in a message, with its path and what is around a body."""

    graph: GraphProto | FunctionProto
    path: str
    opsets: Mapping[str, int]
    outer: NodeList | None = None

    @cached_property
    def paths(self) -> list[str]:
        """The paths of the nodes, which are seldom needed."""
        return node_paths(self.path, self.graph.node)

    @cached_property
    def attributes(self) -> list[tuple[int, AttributeProto]]:
        """The attributes of its nodes but numbers and text, each with the index of the node.

        They are few, and all who look into a message need them: so its nodes are gone through once.
        """
        return [
            (index, attribute)
            for index, node in enumerate(self.graph.node)
            for attribute in node.attribute
            if attribute.type not in NUMBERS_AND_TEXT
        ]

    @cached_property
    def inside(self) -> list[tuple[int, NodeList]]:
        """The bodies of its nodes, each with the index of its node."""
        found = []
        for at, attribute in self.attributes:
            if attribute.type not in BODIES or attribute.ref_attr_name:
                continue
            labelled = [(attribute.name, attribute.g)]
            if attribute.type == AttributeProto.GRAPHS:
                graphs = enumerate(attribute.graphs)
                labelled = [(f"{attribute.name}[{index}]", graph) for index, graph in graphs]
            for label, graph in labelled:
                path = f"{self.paths[at]}.{label}"
                found.append((at, replace(self, graph=graph, path=path, outer=self)))
        return found

    @cached_property
    def names(self) -> set[str]:
        """The names of its values; of a body without those around it."""
        return names_of(self.graph)

    @property
    def sparse_values(self) -> Iterator[tuple[int, SparseTensorProto]]:
        """The sparse values of its Constant nodes, each with the index of the node."""
        for index in dict.fromkeys(index for index, _ in self.attributes):
            held = sparse_value(self.graph.node[index])
            if held is not None:
                yield index, held

    @cached_property
    def tensors(self) -> list[tuple[int | None, TensorProto | SparseTensorProto]]:
        """Its constants, and what its nodes hold; each with the index of the node."""
        found = [(index, held) for index, attribute in self.attributes for held in _held(attribute)]
        if isinstance(self.graph, FunctionProto):
            return [*found]
        constants = *self.graph.initializer, *self.graph.sparse_initializer
        return [*((None, held) for held in constants), *found]


def node_lists(model: ModelProto) -> list[NodeList]:
    """Return the main graph and functions, each before the bodies in it, as `nodes.scopes` does.

    Of opset imports that contradict each other the first holds. Bodies nested too deep are refused
    (TS502).
    """
    outer = [NodeList(model.graph, "graph", message_opsets(model))]
    for function in model.functions:
        label = function_label(function)
        outer.append(NodeList(function, label, _opsets(function.opset_import)))
    return [listed for each in outer for listed in _inside(each)]


def _inside(listed: NodeList, depth: int = 0) -> Iterator[NodeList]:
    check_depth(depth, listed.path, _MAX_BODIES)
    yield listed
    for _, body in listed.inside:
        yield from _inside(body, depth + 1)


NUMBERS_AND_TEXT = frozenset(
    (
        *(AttributeProto.FLOAT, AttributeProto.INT, AttributeProto.STRING),
        *(AttributeProto.FLOATS, AttributeProto.INTS, AttributeProto.STRINGS),
    )
)


def graphs(model: ModelProto) -> Iterator[GraphProto]:
    """Yield the main graph and every body, in functions too."""
    for listed in node_lists(model):
        if isinstance(listed.graph, GraphProto):
            yield listed.graph


def tensors_outside(model: ModelProto) -> Iterator[TensorProto]:
    """Yield every tensor with external data, wherever it stands; it may be replaced."""
    for listed in node_lists(model):
        yield from _outside(listed)


def with_data_inside(model: ModelProto, folder: Path | None, most: int = sys.maxsize) -> ModelProto:
    """Return a copy of a model that holds its external data, but for tensors of more bytes."""
    copy = copied(model)
    for tensor in tensors_outside(copy):
        if (raw_size(tensor) or 0) <= most:
            tensor.CopyFrom(inlined(tensor, folder))
    return copy


def _outside(listed: NodeList) -> Iterator[TensorProto]:
    for _, held in listed.tensors:
        parts = (held,) if isinstance(held, TensorProto) else (held.values, held.indices)
        for tensor in parts:
            if tensor.data_location == TensorProto.EXTERNAL:
                yield tensor


def _held(attribute: AttributeProto) -> Iterator[TensorProto | SparseTensorProto]:
    """Yield the tensors in an attribute, whatever its declared type."""
    if attribute.HasField("t"):
        yield attribute.t
    if attribute.HasField("sparse_tensor"):
        yield attribute.sparse_tensor
    yield from attribute.tensors
    yield from attribute.sparse_tensors


def message_opsets(model: ModelProto) -> dict[str, int]:
    """Do as `opsets.model_opsets`; of imports that contradict each other the first holds."""
    if not model.opset_import and is_before_opsets(model.ir_version):
        return {"": 1}
    return _opsets(model.opset_import)


def _opsets(imports: Iterable[OperatorSetIdProto]) -> dict[str, int]:
    return {domain_name(entry.domain): entry.version for entry in reversed(list(imports))}


def read_message(model: ModelProto, lists: list[NodeList], folder: Path | None) -> ir.Model:
    """Turn a message without errors, which is not changed, into an onnx-ir model.

    Its node lists are given, which others have looked at.

    Sparse constants become dense tensors whose elements are computed on demand, outputs of a body
    that are values of a graph around it go through an Identity node, and types that onnx-ir does
    not know are omitted. External data is looked for in the folder.

    Raises:
        Exception: Of many kinds, for what onnx-ir refuses.
    """
    if any(True for listed in lists for _ in _adaptations(listed, folder)):
        source = copied(model)
        for listed in node_lists(source):
            for adapt in list(_adaptations(listed, folder)):
                adapt()
        made = ir.serde.deserialize_model(source)
        made.meta[ADAPTED] = True
        for listed, scope in zip(lists, scopes(made), strict=True):
            _fill_sparse(listed, scope, folder)
            _mark_passed_on(scope, len(_given_from_around(listed)))
    else:
        made = ir.serde.deserialize_model(model)
    _mark_named(made, lists)
    if any(True for listed in lists for _ in _outside(listed)):
        for tensor in chain(*map(tensors, scopes(made))):
            if isinstance(tensor, ir.ExternalTensor):
                tensor.base_dir = folder or ""
    note_training(model, made)
    return made


ADAPTED = "tensorsplit.adapted"
"""Notes of an onnx-ir model that it is not what was read, node by node and value by value."""


NAMED_DOMAIN = "ai.onnx"
"""How nodes may call ONNX's own domain, which onnx-ir forgets; a note of them, and of the model."""

ADDED = "tensorsplit.added"
"""Notes of a node that it only passes on what a body gave out as it is: a value from around it."""


def _adaptations(listed: NodeList, folder: Path | None) -> Iterator[Callable[[], object]]:
    """Yield the changes to a copy of a graph, of which onnx-ir would drop or refuse a part.

    Sparse constants become placeholders.
    """
    graph = listed.graph
    for tensor in _outside(listed) if folder is None else ():
        if tensor.HasField("raw_data"):
            yield partial(_embed, tensor)  # the data was read, as older versions of onnx do
    for index, sparse in listed.sparse_values:
        dense = AttributeProto(name="value", type=AttributeProto.TENSOR, t=_placeholder(sparse))
        yield partial(graph.node[index].attribute[0].CopyFrom, dense)
    if isinstance(graph, FunctionProto):
        return
    for sparse in graph.sparse_initializer:
        yield partial(graph.initializer.append, _placeholder(sparse))
    for value in (*graph.input, *graph.output, *graph.value_info):
        if not holds(value.type):
            yield partial(value.ClearField, "type")
    for value in _given_from_around(listed):
        yield partial(_pass_on, value, listed)


def _embed(tensor: TensorProto) -> None:
    tensor.data_location = TensorProto.DEFAULT
    del tensor.external_data[:]


def _pass_on(value: ValueInfoProto, listed: NodeList) -> None:
    """Pass on a value from around a body through an Identity node in it."""
    inner = f"{value.name}_given"
    while inner in listed.names:
        inner += "_given"
    listed.names.add(inner)
    listed.graph.node.add(op_type="Identity", input=[value.name], output=[inner])
    value.name = inner


def _mark_named(made: ir.Model, lists: list[NodeList]) -> None:
    """Note which nodes call ONNX's own domain by its name."""
    for listed, scope in zip(lists, scopes(made), strict=True):
        if any(node.domain == NAMED_DOMAIN for node in listed.graph.node):
            made.meta[NAMED_DOMAIN] = True
            for proto, node in zip(listed.graph.node, scope, strict=False):  # some are added
                if proto.domain == NAMED_DOMAIN:
                    node.meta[NAMED_DOMAIN] = True


def _mark_passed_on(scope: Scope, count: int) -> None:
    """Note of the last nodes of a body that they are not in what was read; see `_pass_on`."""
    for node in islice(reversed(scope), count):
        node.meta[ADDED] = True


def _fill_sparse(listed: NodeList, scope: Scope, folder: Path | None) -> None:
    graph, sparse = listed.graph, dict(listed.sparse_values)
    if isinstance(graph, GraphProto) and isinstance(scope, ir.Graph):
        for tensor in graph.sparse_initializer:
            scope.initializers[tensor.values.name].const_value = SparseTensor(tensor, folder)
    for index, node in enumerate(scope) if sparse else ():
        if index in sparse:
            node.attributes["value"] = ir.AttrTensor("value", SparseTensor(sparse[index], folder))


def sparse_value(node: NodeProto) -> SparseTensorProto | None:
    """Return the value of a Constant node, if it is sparse."""
    if node.op_type != "Constant" or len(node.attribute) != 1:
        return None
    attribute = node.attribute[0]
    is_sparse = attribute.type == AttributeProto.SPARSE_TENSOR and not attribute.ref_attr_name
    return attribute.sparse_tensor if is_sparse else None


def _placeholder(sparse: SparseTensorProto) -> TensorProto:
    values = sparse.values
    return TensorProto(name=values.name, dims=sparse.dims, data_type=values.data_type)


def _given_from_around(listed: NodeList) -> list[ValueInfoProto]:
    """Return the outputs of a body that are values of graphs around it; onnx-ir can't hold them."""
    if listed.outer is None or isinstance(listed.graph, FunctionProto):
        return []
    missing = [value for value in listed.graph.output if value.name not in listed.names]
    around: list[set[str]] = []
    while missing and (outer := listed.outer) is not None:
        around, listed = [*around, outer.names], outer
    return [value for value in missing if any(value.name in names for names in around)]


def with_types(model: ir.Model, original: ModelProto, values: Iterable[ir.Value]) -> ModelProto:
    """Return a copy of a message with the types that values of the model read from it have now."""
    made = copied(original)
    described: dict[Scope | None, tuple[GraphProto, Mapping[str, list[ValueInfoProto]]]] = {}
    for listed, scope in zip(node_lists(made), scopes(model), strict=True):
        if isinstance(graph := listed.graph, GraphProto):
            entries = defaultdict[str, list[ValueInfoProto]](list)
            for entry in (*graph.input, *graph.output, *graph.value_info):
                entries[entry.name].append(entry)
            described[scope] = graph, entries
    written: dict[object, TypeProto] = {}  # many have the same
    for value in values:
        graph, found = described[value.graph]
        key = _type_key(value)
        made_type = written.get(key) or _type_of(value)
        if key is not None:
            written[key] = made_type
        for entry in found.get(value.name or "") or [graph.value_info.add(name=value.name)]:
            entry.type.CopyFrom(made_type)
    return made


def _type_key(value: ir.Value) -> tuple[int, tuple[int | ir.SymbolicDim, ...]] | None:
    """Return a key that is equal for values of one type; None for an unusual type."""
    kind, shape = value.type, value.shape
    if type(kind) is not ir.TensorType or kind.denotation or shape is None:
        return None
    dims = shape.dims
    for index in range(len(dims)):
        if shape.get_denotation(index):
            return None
    return int(kind.dtype), dims


def _type_of(value: ir.Value) -> TypeProto:
    made = TypeProto()
    if value.type is not None:
        ir.serde.serialize_type_into(made, value.type)
        if value.shape is not None:
            ir.serde.serialize_shape_into(made, value.shape)
    return made


def write_message(model: ir.Model, original: ModelProto | None = None) -> ModelProto:
    """Return a model, read from an original if one is given, as an ONNX message.

    Here are the last outputs without a name, which onnx-ir leaves out, and what it has no place for
    (see `carry_over`), but not the descriptions that it adds to initializers. Exceptions of many
    kinds tell what onnx-ir can't write.
    """
    made: ModelProto = ir.serde.serialize_model(model)
    described: set[str] = set()
    if original is not None:
        described = {value.name for graph in graphs(original) for value in graph.value_info}
    for listed, scope in zip(node_lists(made), scopes(model), strict=True):
        graph = listed.graph
        for index, node in enumerate(scope):
            if node.outputs and not node.outputs[-1].name:
                restore_outputs(node, graph.node[index])
        _keep_sparse(scope, graph)
        if original is not None and isinstance(graph, GraphProto):
            drop = {tensor.name for tensor in graph.initializer} - described
            kept = [value for value in graph.value_info if value.name not in drop]
            del graph.value_info[:]
            graph.value_info.extend(kept)
        for _, held in listed.tensors:
            if isinstance(held, TensorProto):
                merge_doubled(held)
    if original is not None:
        made.training_info.extend(model.meta.get(TRAINING, ()))
        carry_over(original, made)
    return made


def _keep_sparse(scope: ir.Graph | ir.Function, graph: GraphProto | FunctionProto) -> None:
    """Write large sparse tensors as they were read, not as dense ones without elements.

    Their types are compared, for the base classes are protocols, and `isinstance` takes long.
    """
    if isinstance(scope, ir.Graph) and isinstance(graph, GraphProto):
        for name, value in scope.initializers.items():
            held = value.const_value
            if type(held) is SparseTensor and held.kept is not None:
                dense = next(tensor for tensor in graph.initializer if tensor.name == name)
                graph.initializer.remove(dense)
                graph.sparse_initializer.append(held.kept)
                graph.sparse_initializer[-1].values.name = name
    for index, node in enumerate(scope):
        attribute = node.attributes.data.get("value") if node.op_type == "Constant" else None
        held = None if attribute is None or attribute.is_ref() else attribute.value
        if type(held) is SparseTensor and held.kept is not None:
            kind = AttributeProto.SPARSE_TENSOR
            kept = AttributeProto(name="sparse_value", type=kind, sparse_tensor=held.kept)
            graph.node[index].attribute[0].CopyFrom(kept)
