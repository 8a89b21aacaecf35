"""What operators other than splits give: types and shapes by onnx's own inference, and elements.

onnx is asked for one node at a time, which keeps the cost linear and split nodes away from it. The
elements of small integer tensors are followed too, so that lengths computed by a graph are known.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache, reduce
from typing import Any, NamedTuple

import numpy as np
import onnx
import onnx_ir as ir
from onnx.reference import ReferenceEvaluator

from tensorsplit.arrays.numpy import element_type
from tensorsplit.core.dimensions import Dim, add, combine, is_known, times
from tensorsplit.core.errors import SplitError
from tensorsplit.model.graph.calls import Attributes
from tensorsplit.model.graph.facts import ABSENT, UNKNOWN, Fact, Other, Tensor, fact_of
from tensorsplit.model.graph.nodes import LARGEST_CONSTANT, check_schema, held_by
from tensorsplit.model.graph.tensors import MAX_RANK, read_tensor

_INTEGERS = ("int", "uint", "bool")
"""What the names of those element types start with that operands may have."""

_MAX_VALUES = 1024
"""Computed tensors of more elements are described by their type and shape alone."""


def infer_outputs(
    node: ir.Node,
    inputs: list[Fact],
    opsets: Mapping[str, int],
    attributes: Attributes | None = None,
) -> list[Fact]:
    """A fact for each output of a node that is no split; nothing is known where onnx refuses.

    Args:
        node: The node.
        inputs: What is known of each input.
        opsets: The opset of each domain; ONNX's own is ``""``.
        attributes: Its attributes, as for `binding.bind`.
    """
    held = node.attributes if attributes is None else attributes
    tensor = held_by(held) if (node.domain, node.op_type) == ("", "Constant") else None
    if tensor is not None:
        return [of_constant(tensor, opsets.get("", 0))]
    asked = _asked(node, inputs, held)
    if asked is None:
        return [UNKNOWN] * len(node.outputs)
    return list(_inferred(*asked, tuple(opsets.items())))


def refusal_of(node: ir.Node, inputs: list[Fact], opsets: Mapping[str, int]) -> str:
    """Why onnx's inference refuses a node on what is known of its inputs; empty if it does not."""
    asked = _asked(node, inputs, node.attributes)
    try:
        if asked is not None:
            _ask(onnx.NodeProto.FromString(asked[0]), asked[1], opsets)
    except onnx.shape_inference.InferenceError as error:
        return str(error)
    except Exception:  # noqa: BLE001 - what onnx does not know it refuses in many ways
        return ""
    return ""


def _asked(
    node: ir.Node, inputs: list[Fact], held: Attributes
) -> tuple[bytes, tuple[Fact | None, ...]] | None:
    """A node and what is known of its inputs, as onnx is asked; None where it can't be."""
    given = tuple(
        None if value is None or fact is ABSENT else fact
        for value, fact in zip(node.inputs, inputs, strict=True)
    )
    # onnx would look at the split nodes in a body, and may abort
    if any(attribute.is_ref() or attribute.type in _BODIES for attribute in held.values()):
        return None
    message = onnx.NodeProto(
        op_type=node.op_type,
        domain=node.domain,
        input=["" if fact is None else f"i{index}" for index, fact in enumerate(given)],
        output=[f"o{index}" if value.name else "" for index, value in enumerate(node.outputs)],
        attribute=map(ir.serde.serialize_attribute, held.values()),
    )
    return message.SerializeToString(), given


_BODIES = (ir.AttributeType.GRAPH, ir.AttributeType.GRAPHS)


@lru_cache(maxsize=4096)
def _inferred(
    message: bytes, inputs: tuple[Fact | None, ...], opsets: tuple[tuple[str, int], ...]
) -> tuple[Fact, ...]:
    """What onnx says of the outputs of a node; models repeat theirs."""
    proto, imported = onnx.NodeProto.FromString(message), dict(opsets)
    outputs: list[Fact] = [UNKNOWN] * len(proto.output)
    with suppress(Exception):  # onnx's inference and its reference raise of many kinds
        found = _ask(proto, inputs, imported)
        outputs = [_fact(found.get(name)) for name in proto.output]
        if proto.domain == "" and outputs and isinstance(outputs[0], Tensor):
            outputs[0] = _with_values(_Computed(proto, inputs, imported[""], outputs[0]))
    return tuple(outputs)


def _ask(
    proto: onnx.NodeProto, inputs: tuple[Fact | None, ...], opsets: Mapping[str, int]
) -> dict[str, onnx.TypeProto]:
    opset = opsets[proto.domain]
    schema = onnx.defs.get_schema(proto.op_type, opset, proto.domain)
    attributes = {entry.name: ir.serde.deserialize_attribute(entry) for entry in proto.attribute}
    # onnx itself does not, and then reads memory that is not there
    check_schema(schema, opset, attributes, len(proto.input), len(proto.output))
    for name, least, most in (("axis", -MAX_RANK, MAX_RANK), ("batch_dims", 0, MAX_RANK)):
        if name in attributes and not least <= attributes[name].as_int() <= most:
            return {}
    types: dict[str, onnx.TypeProto] = {}
    data: dict[str, onnx.TensorProto] = {}
    for name, fact in zip(proto.input, inputs, strict=True):
        if fact is None:
            continue
        types[name] = _type_proto(fact)
        array = _array(fact)
        if array is not None:
            data[name] = onnx.numpy_helper.from_array(array, name)
    imports = [onnx.helper.make_opsetid(domain, version) for domain, version in opsets.items()]
    return onnx.shape_inference.infer_node_outputs(
        schema, proto, types, data, opset_imports=imports
    )


def _type_proto(fact: Fact) -> onnx.TypeProto:
    if isinstance(fact, Other) or fact.element_type is None:
        proto = onnx.TypeProto()
        if isinstance(fact, Other) and fact.type is not None:
            ir.serde.serialize_type_into(proto, fact.type)
        return proto
    shape = fact.shape if isinstance(fact, Tensor) else fact.part
    dims = None if shape is None else [d if d is None or is_known(d) else str(d) for d in shape]
    tensor = onnx.helper.make_tensor_type_proto(int(fact.element_type), dims)
    is_tensor = isinstance(fact, Tensor)
    return tensor if is_tensor else onnx.helper.make_sequence_type_proto(tensor)


def _fact(proto: onnx.TypeProto | None) -> Fact:
    if proto is None:
        return UNKNOWN
    kind = ir.serde.deserialize_type_proto_for_type(proto)
    return fact_of(kind, ir.serde.deserialize_type_proto_for_shape(proto))


_NUMPY: Mapping[ir.DataType | None, Any] = {
    ir.DataType.INT32: np.int32,
    ir.DataType.INT64: np.int64,
    ir.DataType.BOOL: np.bool_,
}
"""The element types that are calculated with; in smaller ones lengths wrap."""


def _array(fact: Fact | None) -> np.ndarray[Any, Any] | None:
    """The elements as an array, where every one is a number."""
    if not isinstance(fact, Tensor) or fact.constant is None or fact.shape is None:
        return None
    dtype = _NUMPY.get(fact.element_type)
    return None if dtype is None else np.array(fact.constant, dtype).reshape(fact.shape)


def values_of(array: np.ndarray[Any, Any] | None, opset: int) -> tuple[Dim, ...] | None:
    """The elements of a constant that may be an operand: integers, and floats for Split-1.

    ONNX takes lengths of 32 and 64 bits, OpenVINO of any.
    """
    if array is None or array.ndim > 1 or array.size > LARGEST_CONSTANT:
        return None
    if element_type(array).startswith(_INTEGERS):
        return tuple(map(int, array.ravel().tolist()))
    is_float = opset == 1 and array.dtype in (np.float16, np.float32, np.float64)
    return tuple(array.ravel().tolist()) if is_float else None


def of_constant(tensor: ir.TensorProtocol, opset: int) -> Tensor:
    """What is known of a constant; its elements only if it may be an operand of something."""
    shape = tuple(tensor.shape.numpy())
    is_operand = tensor.dtype.name.lower().startswith(_INTEGERS) or opset == 1
    values = None
    if is_operand and len(shape) <= 1 and tensor.size <= LARGEST_CONSTANT:
        with suppress(SplitError):  # checks refuse one that can't be read
            values = values_of(read_tensor(tensor, tensor.name or ""), opset)
    return Tensor(tensor.dtype, shape, values)


class _Computed(NamedTuple):
    """A node whose first output's elements are looked for; absent inputs are None."""

    proto: onnx.NodeProto
    inputs: tuple[Fact | None, ...]
    opset: int
    output: Tensor


def _with_values(node: _Computed) -> Tensor:
    """The first output, with its elements where they follow."""
    shape, rule = node.output.shape, _VALUES.get(node.proto.op_type)
    if rule is None or shape is None or len(shape) > 1:
        return node.output
    count = shape[0] if shape else 1
    values = rule(node) if is_known(count) and count <= _MAX_VALUES else None
    fits = values is not None and len(values) == count
    return replace(node.output, values=values) if fits else node.output


def _shape(node: _Computed) -> tuple[Dim, ...] | None:
    data = node.inputs[0]
    if not isinstance(data, Tensor) or data.shape is None:
        return None
    bounds = {attribute.name: attribute.i for attribute in node.proto.attribute}
    return data.shape[bounds.get("start") : bounds.get("end")]


def _size(node: _Computed) -> tuple[Dim, ...] | None:
    shape = _shape(node)
    return None if shape is None else (reduce(times, shape, 1),)


def _cast(node: _Computed) -> tuple[Dim, ...] | None:
    data = _objects(node.inputs[0])
    return None if data is None else _wide(node.output, data)


def _divide(left: Dim, right: Dim) -> Dim:
    """Integer division truncates in ONNX; lengths are not negative, so it rounds down as well."""
    if not is_known(right) or right <= 0 or (is_known(left) and left < 0):
        return None
    return combine(lambda a, b: a // b, left, right)


_ARITHMETIC: Mapping[str, Callable[..., Any]] = {
    "Add": np.frompyfunc(add, 2, 1),
    "Sub": np.frompyfunc(lambda left, right: combine(lambda a, b: a - b, left, right), 2, 1),
    "Mul": np.frompyfunc(times, 2, 1),
    "Div": np.frompyfunc(_divide, 2, 1),
}


def _arithmetic(node: _Computed) -> tuple[Dim, ...] | None:
    left, right = map(_objects, node.inputs)
    if left is None or right is None:
        return None
    return _wide(node.output, _ARITHMETIC[node.proto.op_type](left, right))


def _objects(fact: Fact | None) -> np.ndarray[Any, Any] | None:
    """The elements, some of which may be expressions or None; nothing where they are floats."""
    if not isinstance(fact, Tensor) or fact.values is None or fact.shape is None:
        return None
    found = np.empty(len(fact.values), object)
    found[:] = fact.values
    return None if float in map(type, fact.values) else found.reshape(fact.shape)


def _wide(output: Tensor, found: Any) -> tuple[Dim, ...] | None:
    """The elements of an output, where none wraps in its element type, which is a wide one."""
    if output.element_type not in (ir.DataType.INT32, ir.DataType.INT64):
        return None
    limit = np.iinfo(_NUMPY[output.element_type])
    values = np.ravel(np.asarray(found, object)).tolist()
    wraps = any(is_known(dim) and not limit.min <= dim <= limit.max for dim in values)
    return None if wraps else tuple(values)


_FIRST, _ALL = slice(1), slice(None)

MOVED: Mapping[str, slice] = {
    "Concat": _ALL,
    "Where": slice(1, 3),
    **dict.fromkeys(("Expand", "Gather", "Identity", "Reshape", "Slice"), _FIRST),
    **dict.fromkeys(("Squeeze", "Tile", "Transpose", "Unsqueeze"), _FIRST),
}
"""Operators that only move elements, which may then be anything; and from which of their inputs."""

_CALCULATED = (
    *("Abs", "And", "Clip", "ConstantOfShape", "Equal", "Greater", "GreaterOrEqual", "Less"),
    *("LessOrEqual", "Max", "Min", "Mod", "Neg", "Not", "Or", "Range", "ReduceMax", "ReduceMin"),
    *("ReduceProd", "ReduceSum", "Sum"),
)
"""Other operators of shape arithmetic; they need numbers."""


def _evaluated(node: _Computed) -> tuple[Dim, ...] | None:
    """What onnx's reference makes of numbers; elements that are moved are numbered for it."""
    moving = range(len(node.inputs))[MOVED.get(node.proto.op_type, slice(0))]
    if not moving and node.output.element_type not in _NUMPY:
        return None
    moved: list[Dim] = []
    feeds = {}
    for index, (name, fact) in enumerate(zip(node.proto.input, node.inputs, strict=True)):
        if fact is None:
            continue
        array = _array(fact)
        if index in moving and isinstance(fact, Tensor) and fact.values is not None:
            array = np.arange(len(moved), len(moved) + len(fact.values)).reshape(fact.shape or ())
            moved += fact.values
        if array is None:
            return None
        feeds[name] = array
    with np.errstate(all="ignore"):
        (made, *_) = ReferenceEvaluator(node.proto, opsets={"": node.opset}).run(None, feeds)
    found = np.ravel(made).tolist()
    return tuple(moved[place] for place in found) if moving else tuple(map(int, found))


_VALUES: Mapping[str, Callable[[_Computed], tuple[Dim, ...] | None]] = {
    "Shape": _shape,
    "Size": _size,
    "Cast": _cast,
    **dict.fromkeys(_ARITHMETIC, _arithmetic),
    **dict.fromkeys((*MOVED, *_CALCULATED), _evaluated),
}
"""How the elements of an output follow, by operator."""
