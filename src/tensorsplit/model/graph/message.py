"""ONNX messages: what to ask of one before onnx-ir reads it, and how to write one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import onnx_ir as ir
from onnx import (
    AttributeProto,
    FunctionProto,
    GraphProto,
    ModelProto,
    NodeProto,
    OperatorSetIdProto,
    TensorProto,
    TypeProto,
    ValueInfoProto,
)

from tensorsplit.core.errors import MALFORMED_MODEL, UNREADABLE_MODEL, SplitError, show
from tensorsplit.model.graph.nodes import bodies as ir_bodies
from tensorsplit.model.graph.nodes import (
    check_depth,
    domain_name,
    function_label,
    node_path,
    restore_outputs,
)

MAX_BODIES = 32
"""Bodies nested deeper than this can't be read from a file, nor copied: protobuf's own limit."""

_FIRST_IR_WITH_OPSETS = 3


@dataclass(frozen=True, slots=True)
class Site:
    """A node where it stands.

    Attributes:
        node: The node.
        path: Such as ``graph/loop_1.body/split_0`` or ``function custom::F/split``.
        opsets: The opset of each domain in force there; ONNX's own domain is ``""``.
        graph: The graph or function that lists the node.
        function: The function it belongs to, through whatever bodies; None in the main graph.
    """

    node: NodeProto
    path: str
    opsets: Mapping[str, int]
    graph: GraphProto | FunctionProto
    function: FunctionProto | None


def walk(model: ModelProto) -> Iterator[Site]:
    """Every node of a model: the main graph's in order, each before its bodies, then functions'.

    Raises:
        SplitError: TS502 for opset imports that contradict each other, or bodies nested too deep.
    """
    yield from _nodes(model.graph, "graph", model_opsets(model), None)
    for function in model.functions:
        label = function_label(function)
        opsets = opset_imports(function.opset_import, label)
        yield from _nodes(function, label, opsets, function)


def _nodes(
    graph: GraphProto | FunctionProto,
    path: str,
    opsets: Mapping[str, int],
    function: FunctionProto | None,
    depth: int = 0,
) -> Iterator[Site]:
    check_depth(depth, path, MAX_BODIES)
    for index, node in enumerate(graph.node):
        here = node_path(path, node, index)
        yield Site(node, here, opsets, graph, function)
        for label, body in bodies(node.attribute):
            yield from _nodes(body, f"{here}.{label}", opsets, function, depth + 1)


def bodies(attributes: Iterable[AttributeProto]) -> Iterator[tuple[str, GraphProto]]:
    """The graphs among a node's attributes, each with what to call it in a path."""
    for attribute in attributes:
        if attribute.type == AttributeProto.GRAPH:
            yield attribute.name, attribute.g
        elif attribute.type == AttributeProto.GRAPHS:
            for index, graph in enumerate(attribute.graphs):
                yield f"{attribute.name}[{index}]", graph


def model_opsets(model: ModelProto) -> dict[str, int]:
    """The opset of each domain that the main graph imports.

    Models older than IR version 3 could not import any; they are at opset 1.

    Raises:
        SplitError: TS502 for imports that contradict each other.
    """
    if not model.opset_import and 0 < model.ir_version < _FIRST_IR_WITH_OPSETS:
        return {"": 1}
    return opset_imports(model.opset_import, "graph")


def opset_imports(imports: Iterable[OperatorSetIdProto], path: str) -> dict[str, int]:
    """The opset of each domain that is imported.

    Raises:
        SplitError: TS502 for imports that contradict each other, or an opset below 1.
    """
    opsets: dict[str, int] = {}
    for entry in imports:
        domain = domain_name(entry.domain)
        shown = show(domain or "ai.onnx")
        if entry.version < 1:
            raise SplitError(
                MALFORMED_MODEL,
                f"opset {entry.version} of the domain {shown} is imported",
                "import an opset from 1 on",
                node=path,
                parameter="opset_import",
            )
        if opsets.setdefault(domain, entry.version) != entry.version:
            raise SplitError(
                MALFORMED_MODEL,
                f"the domain {shown} is imported at the opsets {opsets[domain]} and"
                f" {entry.version}",
                "import each domain once",
                node=path,
                parameter="opset_import",
            )
    return opsets


def check_text(model: ModelProto) -> None:
    """Refuse a model in which a name is not UTF-8, before anything compares or prints it.

    Raises:
        SplitError: TS501 for such a name, TS502 for bodies nested too deep.
    """
    for text in _of_model(model):
        if not isinstance(text, str):
            raise SplitError(
                UNREADABLE_MODEL,
                f"the name {show(text)} is not UTF-8",
                "give a model whose names are",
                parameter="model",
            )


def _of_model(model: ModelProto) -> Iterator[object]:
    for entry in model.opset_import:
        yield entry.domain
    for function in model.functions:
        yield from (function.name, function.domain, function.overload)
        yield from (*function.input, *function.output, *function.attribute)
        yield from (entry.domain for entry in function.opset_import)
        yield from _of_attributes(function.attribute_proto)
    yield from _of_graph(model.graph)
    for site in walk(model):
        yield from _of_node(site.node)
        for _, body in bodies(site.node.attribute):
            yield from _of_graph(body)


def _of_graph(graph: GraphProto) -> Iterator[object]:
    yield graph.name
    for value in (*graph.input, *graph.output):
        yield from _of_value(value)
    for tensor in graph.initializer:
        yield from _of_tensor(tensor)
    for sparse in graph.sparse_initializer:
        yield from _of_tensor(sparse.values)
        yield from _of_tensor(sparse.indices)


def _of_node(node: NodeProto) -> Iterator[object]:
    yield from (node.name, node.op_type, node.domain, node.overload, *node.input, *node.output)
    yield from _of_attributes(node.attribute)


def _of_attributes(attributes: Iterable[AttributeProto]) -> Iterator[object]:
    for attribute in attributes:
        yield from (attribute.name, attribute.ref_attr_name)
        if attribute.HasField("t"):
            yield from _of_tensor(attribute.t)


def _of_tensor(tensor: TensorProto) -> Iterator[object]:
    yield tensor.name
    for entry in tensor.external_data:
        yield from (entry.key, entry.value)


def _of_value(value: ValueInfoProto) -> Iterator[object]:
    yield value.name
    declared: TypeProto = value.type
    while kind := declared.WhichOneof("value"):
        if kind == "tensor_type":
            yield from (dim.dim_param for dim in declared.tensor_type.shape.dim)
        if kind not in ("sequence_type", "optional_type"):
            return
        declared = getattr(declared, kind).elem_type


def message_of(model: ir.Model) -> ModelProto:
    """A model as an ONNX message, with the outputs that onnx-ir leaves out.

    Args:
        model: The model.

    Raises:
        Exception: Of many kinds, for what onnx-ir can't write.
    """
    made: ModelProto = ir.serde.serialize_model(model)
    _complete(model.graph, made.graph.node)
    for function, proto in zip(model.functions.values(), made.functions, strict=True):
        _complete(function, proto.node)
    return made


def _complete(nodes: Iterable[ir.Node], protos: Sequence[NodeProto]) -> None:
    for index, node in enumerate(nodes):
        graphs = tuple(ir_bodies(node))
        has_all = not node.outputs or node.outputs[-1].name
        if has_all and not graphs:  # most of them, and looking at a message is what costs
            continue
        proto = protos[index]
        restore_outputs(node, proto)
        pairs = zip(graphs, bodies(proto.attribute), strict=True)
        for (_, graph), (_, graph_proto) in pairs:
            _complete(graph, graph_proto.node)


def graphs(model: ModelProto) -> Iterator[GraphProto]:
    """The main graph and every body, in functions too."""
    pending: list[GraphProto | FunctionProto] = [model.graph, *model.functions]
    while pending:
        graph = pending.pop()
        if isinstance(graph, GraphProto):
            yield graph
        pending += [body for node in graph.node for _, body in bodies(node.attribute)]
