"""onnx-ir models as ONNX messages, with every output of every node."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import onnx_ir as ir
from onnx import FunctionProto, GraphProto, ModelProto, NodeProto

from tensorsplit.model.graph.nodes import bodies, restore_outputs
from tensorsplit.model.graph.walk import bodies as body_protos


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
        graphs = tuple(bodies(node))
        has_all = not node.outputs or node.outputs[-1].name
        if has_all and not graphs:  # most of them, and looking at a message is what costs
            continue
        proto = protos[index]
        restore_outputs(node, proto)
        pairs = zip(graphs, body_protos(proto.attribute), strict=True)
        for (_, graph), (_, graph_proto) in pairs:
            _complete(graph, graph_proto.node)


def graphs(model: ModelProto) -> Iterator[GraphProto]:
    """The main graph and every body, in functions too."""
    pending: list[GraphProto | FunctionProto] = [model.graph, *model.functions]
    while pending:
        graph = pending.pop()
        if isinstance(graph, GraphProto):
            yield graph
        pending += [body for node in graph.node for _, body in body_protos(node.attribute)]
