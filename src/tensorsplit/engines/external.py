"""The tensors of a model whose data lies outside of its file."""

from __future__ import annotations

from collections.abc import Iterator

from onnx import AttributeProto, GraphProto, ModelProto, TensorProto

from tensorsplit.model.graph.message import bodies, walk


def tensors_outside(model: ModelProto) -> Iterator[TensorProto]:
    """Every tensor with external data, wherever it stands.

    Args:
        model: The model, in which the tensors may be replaced.
    """
    for tensor in _tensors(model):
        if tensor.data_location == TensorProto.EXTERNAL:
            yield tensor


def _tensors(model: ModelProto) -> Iterator[TensorProto]:
    yield from _initializers(model.graph)
    for site in walk(model):
        for attribute in site.node.attribute:
            yield from _held(attribute)
        for _, body in bodies(site.node.attribute):
            yield from _initializers(body)


def _initializers(graph: GraphProto) -> Iterator[TensorProto]:
    yield from graph.initializer
    for sparse in graph.sparse_initializer:
        yield from (sparse.values, sparse.indices)


def _held(attribute: AttributeProto) -> Iterator[TensorProto]:
    if attribute.type == AttributeProto.TENSOR:
        yield attribute.t
    elif attribute.type == AttributeProto.TENSORS:
        yield from attribute.tensors
    elif attribute.type == AttributeProto.SPARSE_TENSOR:
        yield from (attribute.sparse_tensor.values, attribute.sparse_tensor.indices)
    elif attribute.type == AttributeProto.SPARSE_TENSORS:
        for sparse in attribute.sparse_tensors:
            yield from (sparse.values, sparse.indices)
