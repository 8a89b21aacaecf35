"""Names in a model: protobuf hands out bytes, and not text, where they are not UTF-8."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from onnx import (
    AttributeProto,
    GraphProto,
    ModelProto,
    NodeProto,
    TensorProto,
    TypeProto,
    ValueInfoProto,
)

from tensorsplit.core.errors import UNREADABLE_MODEL, SplitError, show
from tensorsplit.model.graph.walk import bodies, walk


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
