"""What a model holds as constants: initializers, and what Constant nodes give."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from onnx import AttributeProto, GraphProto, NodeProto

from tensorsplit.core.errors import MALFORMED_MODEL, SplitError, show
from tensorsplit.model.graph.tensors import (
    Constant,
    array_constant,
    dense_constant,
    sparse_constant,
)


def initializers(graph: GraphProto, folder: Path | None, path: str) -> dict[str, Constant]:
    """The initializers of a graph by name, dense and sparse.

    Raises:
        SplitError: TS502 for one that is there twice, has no name, or is not well-formed.
    """
    found: dict[str, Constant] = {}
    try:
        dense = [dense_constant(tensor, folder) for tensor in graph.initializer]
        sparse = [sparse_constant(tensor, folder) for tensor in graph.sparse_initializer]
    except SplitError as error:
        raise error.located(node=path) from None
    for constant in (*dense, *sparse):
        if not constant.name or constant.name in found:
            raise SplitError(
                MALFORMED_MODEL,
                f"the initializer {show(constant.name)} is there twice or has no name",
                "name each once",
                node=path,
            )
        found[constant.name] = constant
    return found


def constant_of(node: NodeProto, folder: Path | None) -> dict[str, Constant]:
    """What a Constant node gives, by the name of its output.

    Raises:
        SplitError: TS502 for a node without exactly one value, or a value that is not well-formed.
    """
    if len(node.attribute) != 1:
        raise SplitError(
            MALFORMED_MODEL, f"Constant has {len(node.attribute)} values", "give it exactly one"
        )
    name = node.output[0]
    return {name: _value(name, node.attribute[0], folder)} if name else {}


def _value(name: str, attribute: AttributeProto, folder: Path | None) -> Constant:
    if attribute.type == AttributeProto.TENSOR:
        return dense_constant(attribute.t, folder, name)
    if attribute.type == AttributeProto.SPARSE_TENSOR:
        return sparse_constant(attribute.sparse_tensor, folder, name)
    if attribute.type in (AttributeProto.INT, AttributeProto.INTS):
        integers = attribute.i if attribute.type == AttributeProto.INT else attribute.ints
        return array_constant(name, np.array(integers, np.int64), "int64")
    if attribute.type in (AttributeProto.FLOAT, AttributeProto.FLOATS):
        floats = attribute.f if attribute.type == AttributeProto.FLOAT else attribute.floats
        return array_constant(name, np.array(floats, np.float32), "float")
    return array_constant(name, _texts(attribute), "string")


def _texts(attribute: AttributeProto) -> np.ndarray[Any, Any]:
    single = attribute.type == AttributeProto.STRING
    texts = [attribute.s] if single else list(attribute.strings)
    array = np.empty(len(texts), dtype=object)
    try:
        array[:] = [text.decode("utf-8") for text in texts]
    except UnicodeDecodeError as error:
        raise SplitError(
            MALFORMED_MODEL, f"a string is not UTF-8 ({error.reason})", "encode it so"
        ) from None
    return array.reshape(()) if single else array
