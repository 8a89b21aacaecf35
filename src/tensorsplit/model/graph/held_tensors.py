"""Constants: initializers and Constant nodes, and the tensors that graphs hold."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import onnx_ir as ir

from tensorsplit.model.graph.nodes import Scope, is_operator
from tensorsplit.model.graph.tensors import Array, check_external, folder_of, read_tensor

LARGEST_CONSTANT = 1 << 16
"""Constants of more elements are not operands of anything; their data is not read."""


def constant(value: ir.Value | None, most: int = LARGEST_CONSTANT) -> Array | None:
    """Return the value of a small constant: an initializer, or the output of a Constant node.

    An initializer that is also a graph input is a default and not a constant (D20). See
    `read_tensor` for what is refused; the data of one with more elements is not read.
    """
    tensor = None if value is None else fixed_tensor_of(value)
    if value is None or tensor is None or tensor.size > most:
        return None
    return read_tensor(tensor, value.name or "")


def check_constant(value: ir.Value | None) -> None:
    """Refuse a constant whose data does not fit its description; external data is not read."""
    tensor = None if value is None else fixed_tensor_of(value)
    if isinstance(tensor, ir.ExternalTensor):
        check_external(ir.serde.serialize_tensor(tensor), folder_of(tensor))
    elif tensor is not None and not isinstance(tensor, ir.LazyTensor):
        read_tensor(tensor, tensor.name or "")


def fixed_tensor_of(value: ir.Value) -> ir.TensorProtocol | None:
    """Return the tensor of a constant, without reading it; None for a default (D20)."""
    return None if value.is_graph_input() else tensor_of(value)


def tensor_of(value: ir.Value) -> ir.TensorProtocol | None:
    """Return the tensor of an initializer or a Constant node, without reading it."""
    producer = value.producer()
    if value.const_value is not None or producer is None:
        return value.const_value
    is_constant = is_operator(producer, "Constant")
    return held_by(producer.attributes) if is_constant else None


_HELD = {
    "value": ir.AttributeType.TENSOR,
    "value_int": ir.AttributeType.INT,
    "value_ints": ir.AttributeType.INTS,
    "value_float": ir.AttributeType.FLOAT,
    "value_floats": ir.AttributeType.FLOATS,
    "value_string": ir.AttributeType.STRING,
    "value_strings": ir.AttributeType.STRINGS,
}


def held_by(attributes: Mapping[str, ir.Attr]) -> ir.TensorProtocol | None:
    """Return the tensor of a Constant node with these attributes; None if it is not one value."""
    if len(attributes) != 1:
        return None
    ((name, attribute),) = attributes.items()
    if attribute.is_ref() or attribute.type != _HELD.get(name):
        return None
    if name == "value":
        tensor: ir.TensorProtocol = attribute.value  # its type was checked
        return tensor
    if name in ("value_string", "value_strings"):
        listed = [attribute.value] if name == "value_string" else attribute.value
        texts = [text if isinstance(text, bytes) else text.encode("utf-8") for text in listed]
        return ir.StringTensor(texts, shape=ir.Shape([len(texts)] if name[-1] == "s" else []))
    return ir.tensor(np.array(attribute.value, np.int64 if "int" in name else np.float32))


_READ_AS_BYTES = frozenset(
    {
        *(ir.DataType.BFLOAT16, ir.DataType.UINT32),
        *(ir.DataType.FLOAT8E4M3FN, ir.DataType.FLOAT8E5M2),
    }
)
"""Types of which OpenVINO 2026.4.1 reads the words in which a message holds elements as bytes."""


def is_in_words(tensor: ir.TensorProtocol) -> bool:
    """Return whether a tensor of such a type is a message with a wider word for each element."""
    is_message = isinstance(tensor, ir.TensorProtoTensor) and tensor.dtype in _READ_AS_BYTES
    return is_message and bool(tensor.raw.int32_data or tensor.raw.uint64_data)


RARE_TYPES = frozenset(
    {
        *("COMPLEX64", "COMPLEX128", "FLOAT8E4M3FNUZ", "FLOAT8E5M2FNUZ"),
        *("FLOAT6E2M3", "FLOAT6E3M2", "INT2", "UINT2"),
    }
)
"""Types that few engines have; OpenVINO 2026.4.1 loads no initializer of them, read or not."""


def unread_initializers(graph: ir.Graph, *, are_strings: bool) -> list[str]:
    """Return the names of the initializers that nothing reads and OpenVINO does not load.

    Strings without elements are not loaded from bytes; from a file they are.
    """
    found = _are_empty_strings if are_strings else _is_not_loaded
    held = graph.initializers.items()
    return [name for name, each in held if not _is_needed(each) and found(each)]


def _is_needed(held: ir.Value) -> bool:
    return bool(held.uses()) or held.is_graph_input() or held.is_graph_output()


def _is_not_loaded(held: ir.Value) -> bool:
    return held.const_value is not None and held.const_value.dtype.name in RARE_TYPES


def _are_empty_strings(held: ir.Value) -> bool:
    tensor = held.const_value
    return tensor is not None and tensor.dtype == ir.DataType.STRING and 0 in tensor.shape


def tensors(scope: Scope) -> Iterator[ir.TensorProtocol]:
    """Yield every tensor that a graph or function holds, without those in bodies."""
    if isinstance(scope, ir.Graph):
        for value in scope.initializers.values():
            if value.const_value is not None:
                yield value.const_value
    for attribute in (entry for node in scope for entry in node.attributes.data.values()):
        if attribute.type == ir.AttributeType.TENSOR and not attribute.is_ref():
            yield attribute.value
        elif attribute.type == ir.AttributeType.TENSORS and not attribute.is_ref():
            yield from attribute.value
