"""The outputs of operators other than splits: types and shapes by onnx's inference, and elements.

onnx infers one node at a time, which keeps the cost linear and split nodes away from it. What is
known of the elements of small tensors goes in too, and comes out: so lengths and shapes that a
graph computes are known.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import onnx
import onnx_ir as ir

from tensorsplit.arrays.numpy import element_type
from tensorsplit.arrays.onnx_ir import shape_in_model
from tensorsplit.core.dimensions import MAX_DIM, Dim, Shape, are_known, is_known
from tensorsplit.core.errors import SplitError
from tensorsplit.model.graph.calculation import FLOATS
from tensorsplit.model.graph.calls import Attributes, is_open
from tensorsplit.model.graph.engine_operators import in_onnx
from tensorsplit.model.graph.facts import (
    ABSENT,
    UNKNOWN,
    Fact,
    Other,
    Tensor,
    as_tensor,
    fact_of,
    without_elements,
)
from tensorsplit.model.graph.held_tensors import LARGEST_CONSTANT, held_by
from tensorsplit.model.graph.nodes import GRAPH_TYPES, is_operator
from tensorsplit.model.graph.tensors import MAX_RANK, Array, read_tensor
from tensorsplit.model.infer.elements import Node, computed, constant_array
from tensorsplit.model.infer.foreign_operators import DOMAIN as FOREIGN
from tensorsplit.model.infer.foreign_operators import NOT_INFERRED, alike
from tensorsplit.model.infer.shape_rules import ALONE, COUNTED_WRONG, followed_shape, rule_of
from tensorsplit.model.validity.node_errors import wrong_signature

_WHOLE = frozenset(kind for kind in ir.DataType if kind.name.startswith(("INT", "UINT", "BOOL")))

_MAX_FLOATS = 16
"""More of them are weights, which are not read."""


def infer_outputs(
    node: ir.Node,
    inputs: list[Fact],
    opsets: Mapping[str, int],
    attributes: Attributes | None = None,
) -> list[Fact]:
    """Return a fact for each output of a node that is not a split; unknown where onnx refuses.

    Bodies that the node may have are left out.

    Args:
        node: The node.
        inputs: What is known of each input.
        opsets: The opset of each domain; ONNX's own is ``""``.
        attributes: Its attributes, as for `binding.bind`.
    """
    held = node.attributes if attributes is None else attributes
    tensor = held_by(held) if is_operator(node, "Constant") else None
    if tensor is not None:
        return [of_constant(tensor, opsets.get("", 0))]
    query = query_of(node, inputs, held)
    in_force: Opsets = tuple(opsets.items())
    is_own = node.domain == "" and node.op_type in NOT_INFERRED
    if query is not None and (is_own or node.domain == FOREIGN):
        query, in_force = _stand_in(query), _FOREIGN_OPSETS
    found = () if query is None else _inferred(query, in_force)
    return [*found, *[UNKNOWN] * (len(node.outputs) - len(found))]


def _stand_in(query: Query) -> Query | None:
    """Return the query for the ONNX node that gives a foreign one's first output, if any.

    It knows of no elements.
    """
    made = alike(query.op_type, query.inputs, {name: held for name, _, held in query.attributes})
    if made is None:
        return None
    kept = tuple(each for each in query.attributes if each[0] in made.attributes)
    inputs = tuple([fact and without_elements(fact) for fact in made.inputs])
    return Query("", made.op_type, kept, inputs, query.named[:1])


Opsets: TypeAlias = tuple[tuple[str, int], ...]
"""The opset of each domain in force."""

_FOREIGN_OPSETS: Opsets = (("", 21),)
"""What stands for a foreign node is of this opset, whatever the model's: types follow of scales."""


def refusal_of(node: ir.Node, inputs: list[Fact], opsets: Mapping[str, int]) -> str:
    """Return why onnx's inference refuses a node on what is known of its inputs; else nothing.

    Some plain mistakes that it lets pass are refused as well.
    """
    query = query_of(node, inputs, node.attributes)
    return "" if query is None else _refused(query, tuple(opsets.items()))


@lru_cache(maxsize=4096)
def _refused(query: Query, opsets: Opsets) -> str:
    """Do as `refusal_of`."""
    try:
        _ask(query.message(), query.inputs, dict(opsets), strict=True)
    except onnx.shape_inference.InferenceError as error:
        return str(error)
    except Exception:  # noqa: BLE001 - what onnx does not know it refuses in many ways
        return ""
    find = _MISTAKES.get(query.op_type) if query.domain == "" else None
    return "" if find is None else find(query, opsets)


def _of_reshape(query: Query, opsets: Opsets) -> str:
    shapes = as_tensor(query.inputs[0]).shape, as_tensor(_inferred(query, opsets)[0]).shape
    counts = {math.prod(shape) for shape in shapes if shape is not None and are_known(shape)}
    return "the number of elements changes" if len(counts) > 1 else ""


def _of_gemm(query: Query, _: Opsets) -> str:
    flags = {name: value for name, _, value in query.attributes}
    ends = [k != (not flags.get(name)) for k, name in enumerate(("transA", "transB"))]
    matrices = zip((as_tensor(fact).shape for fact in query.inputs), ends, strict=False)
    sides = [shape[end] for shape, end in matrices if shape is not None and len(shape) == 2]
    return "the matrices do not fit" if len({*filter(is_known, sides)}) > 1 else ""


def _of_window(query: Query, opsets: Opsets) -> str:
    """Return whether no window fits into the data, as far as shapes are known."""
    shapes = [as_tensor(fact).shape for fact in query.inputs]
    if any(shape is None or not are_known(shape) for shape in shapes):
        return ""
    made = as_tensor(_inferred(query, opsets)[0]).shape
    has_none = made is not None and (not are_known(made) or 0 in made[2:])
    return "a window is larger than its data" if has_none else ""


def _of_pad(query: Query, _: Opsets) -> str:
    """Return whether more is reflected than there is."""
    flags: dict[str, Any] = {name: value for name, _, value in query.attributes}
    data, *others = query.inputs
    shape = as_tensor(data).shape or ()
    pads = as_tensor(others[0]).constant if others else flags.get("pads")
    axes = others[2] if len(others) > 2 else None
    places = range(len(shape)) if axes is None else as_tensor(axes).constant
    if flags.get("mode") != "reflect" or places is None or len(pads or ()) != 2 * len(places):
        return ""
    dims = [shape[place] for place in places if -len(shape) <= place < len(shape)]
    pairs = zip(dims * 2, pads or (), strict=False)
    is_more = any(is_known(dim) and pad >= max(dim, 1) for dim, pad in pairs)
    return "more is reflected than there is" if is_more else ""


def _of_recurrence(query: Query, _: Opsets) -> str:
    """Return whether the data and the first state, the sixth input, are of different batches."""
    shapes = [as_tensor(fact).shape or () for fact in query.inputs[::5][:2]]
    has_steps_first = all(name != "layout" or not value for name, _, value in query.attributes)
    batches = {shape[1] for shape in shapes if len(shape) == _RANK_OF_STEPS and is_known(shape[1])}
    return "the batches differ" if has_steps_first and len(batches) > 1 else ""


_RANK_OF_STEPS = 3

_MISTAKES: Mapping[str, Callable[[Query, Opsets], str]] = {
    **dict.fromkeys(("AveragePool", "Conv", "LpPool", "MaxPool"), _of_window),
    **dict.fromkeys(("GRU", "LSTM", "RNN"), _of_recurrence),
    "Gemm": _of_gemm,
    "Pad": _of_pad,
    "Reshape": _of_reshape,
}
"""What finds the mistakes of operators."""


class Query(NamedTuple):
    """A query to onnx: a node without its bodies, and what is known of its inputs.

    Those of nodes that are alike are equal.

    Attributes:
        attributes: Each one's name, type and value; the value of all but numbers and text is the
            message. Whether a zero has a sign makes no difference to any type or shape.
        named: Which outputs have a name.
    """

    domain: str
    op_type: str
    attributes: tuple[tuple[str, ir.AttributeType, object], ...]
    inputs: tuple[Fact | None, ...]
    named: tuple[bool, ...]

    def message(self) -> onnx.NodeProto:
        """Return the node as a message, with names for its inputs and outputs."""
        return onnx.NodeProto(
            op_type=self.op_type,
            domain=self.domain,
            input=["" if fact is None else f"i{k}" for k, fact in enumerate(self.inputs)],
            output=[f"o{k}" if has_name else "" for k, has_name in enumerate(self.named)],
            attribute=[
                ir.serde.serialize_attribute(ir.Attr(name, kind, value))
                if kind in _PLAIN_TYPES
                else onnx.AttributeProto.FromString(value)
                for name, kind, value in self.attributes
            ],
        )


def query_of(node: ir.Node, inputs: list[Fact], held: Attributes) -> Query | None:
    """Return the query for a node's outputs; None where onnx can't infer them."""
    attributes: list[tuple[str, ir.AttributeType, object]] = []
    for entry in held.values():
        if is_open(entry):
            return None
        kind = entry.type
        if kind in _PLAIN_TYPES:
            attributes.append((entry.name, kind, entry.value))
        elif kind not in GRAPH_TYPES:  # onnx looks at the split nodes in a body, and may abort
            try:
                octets = ir.serde.serialize_attribute(entry).SerializeToString()
            except (ValueError, ir.serde.SerdeError):  # a tensor's data and its shape differ
                return None
            attributes.append((entry.name, kind, octets))
    given = [
        None if value is None or fact is ABSENT else fact
        for value, fact in zip(node.inputs, inputs, strict=True)
    ]
    named = [bool(value.name) for value in node.outputs]
    return Query(node.domain, node.op_type, tuple(attributes), tuple(given), tuple(named))


_PLAIN_TYPES = frozenset(
    (
        *(ir.AttributeType.INT, ir.AttributeType.FLOAT, ir.AttributeType.STRING),
        *(ir.AttributeType.INTS, ir.AttributeType.FLOATS, ir.AttributeType.STRINGS),
    )
)


@lru_cache(maxsize=4096)
def _inferred(query: Query, opsets: Opsets) -> tuple[Fact, ...]:
    """Return the facts that follow about a node's outputs; models repeat theirs."""
    proto, imported = query.message(), dict(opsets)
    inputs = tuple(_listed(query))
    outputs: list[Fact] = [UNKNOWN] * len(proto.output)
    with suppress(Exception):  # onnx's inference and its reference raise of many kinds
        found, names = _ask(proto, inputs, imported), _names(inputs)
        is_refused = not found
        if is_refused:  # by what constants it has, maybe
            without = tuple(fact and without_elements(fact) for fact in inputs)
            found = _ask(proto, without, imported)
        outputs = [_fact(found.get(name), names) for name in proto.output]
        is_followed = proto.domain == "" and not is_refused
        if is_followed and outputs:
            node = Node(proto, inputs, imported[""])
            outputs = [_followed(node, *each) for each in enumerate(outputs)]
            if isinstance(outputs[0], Tensor):
                outputs[0] = replace(outputs[0], values=computed(node, outputs[0]))
    return tuple(outputs)


def _listed(query: Query) -> Iterator[Fact | None]:
    """Yield the facts about the inputs; operands that are lists are known to be."""
    for place, fact in enumerate(query.inputs):
        is_list = place > 0 and query.op_type in _TAKES_LISTS and query.domain == ""
        if is_list and isinstance(fact, Tensor) and fact.shape is None:
            yield replace(fact, shape=(None,))
        else:
            yield fact


_TAKES_LISTS = ("Slice",)
"""Operators of whose axes, if their rank is not known, onnx takes the first ones."""


def _ask(
    proto: onnx.NodeProto,
    inputs: tuple[Fact | None, ...],
    opsets: Mapping[str, int],
    *,
    strict: bool = False,
) -> dict[str, onnx.TypeProto]:
    """Return the types of a node's outputs by onnx, which gets a model of that one node.

    Constants are initializers of it. It hears nothing of elements that are known in part: it takes
    each of them for a dimension, which is not below 0.
    """
    if proto.domain == "" and (meant := in_onnx(proto.op_type, opsets[""])) is not None:
        proto.op_type, opsets = meant.op_type, {**opsets, "": meant.opset}
        del proto.output[meant.outputs :]
    opset = opsets[proto.domain]
    schema = onnx.defs.get_schema(proto.op_type, opset, proto.domain)
    attributes = {entry.name: ir.serde.deserialize_attribute(entry) for entry in proto.attribute}
    # onnx itself does not, and then reads memory that is not there
    # outputs may be blank: of the others something is known
    for error in wrong_signature(schema, opset, attributes, proto.input, ["o"] * len(proto.output)):
        raise error
    if any(not name and not _may_be_absent(schema, k) for k, name in enumerate(proto.input)):
        return {}
    for name, least, most in (("axis", -MAX_RANK, MAX_RANK), ("batch_dims", 0, MAX_RANK)):
        if name in attributes and not least <= attributes[name].as_int() <= most:
            return {}
    if proto.op_type in _TAKES_RANKS and any(map(_is_no_rank, inputs[1:])):
        return {}
    names, imported = list(proto.input), {"": onnx.defs.onnx_opset_version()} | dict(opsets)
    model = onnx.ModelProto(ir_version=onnx.IR_VERSION)
    if proto.domain == "":
        proto, imported[""], constants = _with_inference(proto, imported[""])
        model.graph.initializer.extend(constants)
    for domain, version in imported.items():
        model.opset_import.add(domain=domain, version=version)
    for name, fact in zip(names, inputs, strict=True):
        if fact is None:
            continue
        array = constant_array(fact)
        if array is not None:
            model.graph.initializer.append(onnx.numpy_helper.from_array(array, name))
        else:
            model.graph.input.add(name=name, type=_type_proto(fact))
    model.graph.node.append(proto)
    few = all(_is_short(as_tensor(fact).shape) for fact in inputs)
    follows = few and proto.op_type != "Slice"  # in which it overflows, and never ends or crashes
    made = onnx.shape_inference.infer_shapes(model, strict_mode=strict, data_prop=follows)
    return {entry.name: entry.type for entry in made.graph.value_info}


_TAKES_RANKS = ("Expand",)
"""Operators of whose result onnx lists each axis, as many as an operand has elements."""


def _is_no_rank(fact: Fact | None) -> bool:
    """Return whether a list has more elements than a tensor has axes."""
    return any(is_known(dim) and dim > MAX_RANK for dim in as_tensor(fact).shape or ())


def _is_short(shape: Shape | None) -> bool:
    """Return whether onnx may follow the elements of a tensor, all of which it lists."""
    longest = max(filter(is_known, shape or ()), default=0)
    return shape is None or len(shape) > 1 or longest <= LARGEST_CONSTANT


def _may_be_absent(schema: onnx.defs.OpSchema, place: int) -> bool:
    """Return whether an input may be blank; the last of a schema may stand for many."""
    formal = schema.inputs[min(place, len(schema.inputs) - 1)]
    return bool(formal.option == onnx.defs.OpSchema.FormalParameterOption.Optional)


def _with_inference(
    proto: onnx.NodeProto, opset: int
) -> tuple[onnx.NodeProto, int, list[onnx.TensorProto]]:
    """Write a node as the first version that is inferred, and inferred right.

    Returns the node, its opset, and the attributes that are inputs there.
    """
    newer, operands = _RIGHT_SINCE.get(proto.op_type, (0, ()))
    if opset >= newer:
        newer, operands = _first_inferred(proto.op_type, opset), ()
    if newer == opset:
        return proto, opset, []
    made = onnx.NodeProto.FromString(proto.SerializeToString())
    attributes = {entry.name: entry for entry in made.attribute}
    if proto.op_type == "Cast":
        kind = onnx.TensorProto.DataType.Value(attributes["to"].s.decode().upper())
        attributes["to"].CopyFrom(onnx.helper.make_attribute("to", kind))
    elif proto.op_type == "Concat" and "axis" not in attributes:
        made.attribute.append(onnx.helper.make_attribute("axis", 1))
    constants = []
    for name in operands if len(proto.input) == 1 else ():
        if name in attributes:
            made.attribute.remove(attributes[name])
            items = np.array(attributes[name].ints, np.int64)
            constants.append(onnx.numpy_helper.from_array(items, name))
        made.input.append(name if name in attributes else "")
    return made, newer, constants


_RIGHT_SINCE: Mapping[str, tuple[int, tuple[str, ...]]] = {
    # of a dimension with a name it takes the bounds for the length
    "Slice": (11, ("starts", "ends", "axes")),
    # axes have to be sorted, and counted from the front
    "Squeeze": (13, ("axes",)),
    "Unsqueeze": (13, ("axes",)),
}
"""Operators of which onnx infers wrong shapes in old versions, as `docs/errata.md` lists them.

The first version that is inferred right and means the same, and the attributes that are its inputs.
"""


@lru_cache
def _first_inferred(op_type: str, opset: int) -> int:
    for version in range(opset, _ALL_INFERRED):
        with suppress(onnx.defs.SchemaError):
            schema = onnx.defs.get_schema(op_type, version, "")
            if schema.has_type_and_shape_inference_function:
                return version
    return opset


_ALL_INFERRED = 12
"""From here on operators without inference have none in newer versions."""


def _type_proto(fact: Fact) -> onnx.TypeProto:
    proto = onnx.TypeProto()
    if isinstance(fact, Other):
        if fact.type is not None:
            ir.serde.serialize_type_into(proto, fact.type)
            if fact.shape is not None:
                ir.serde.serialize_shape_into(proto, shape_in_model(fact.shape))
    elif fact.element_type is not None:
        if isinstance(fact, Tensor):
            return _tensor_proto(fact.element_type, fact.shape)
        return onnx.helper.make_sequence_type_proto(_tensor_proto(fact.element_type, fact.part))
    return proto


def _tensor_proto(kind: ir.DataType, shape: Shape | None) -> onnx.TypeProto:
    dims = None if shape is None else [d if d is None or is_known(d) else str(d) for d in shape]
    return onnx.helper.make_tensor_type_proto(int(kind), dims)


def _names(inputs: tuple[Fact | None, ...]) -> dict[str, Dim]:
    """Return the dimensions and elements that are not numbers, by the names that onnx gets."""
    found: dict[str, Dim] = {}
    for fact in inputs:
        dims: Shape | None = None
        if isinstance(fact, Tensor):
            dims = (*(fact.shape or ()), *(fact.values or ()))
        elif fact is not None:
            dims = fact.shape if isinstance(fact, Other) else fact.part
        found |= {str(dim): dim for dim in dims or () if type(dim) not in (int, float)}
    return found


def _fact(proto: onnx.TypeProto | None, names: Mapping[str, Dim]) -> Fact:
    """Convert onnx's inferred type to a fact; symbolic names that onnx invented are dropped."""
    if proto is None:
        return UNKNOWN
    kind = ir.serde.deserialize_type_proto_for_type(proto)
    fact = fact_of(kind, ir.serde.deserialize_type_proto_for_shape(proto))
    if isinstance(fact, (Tensor, Other)):
        return replace(fact, shape=_renamed(fact.shape, names))
    return replace(fact, part=_renamed(fact.part, names))


def _renamed(shape: Shape | None, names: Mapping[str, Dim]) -> Shape | None:
    if shape is None:
        return None
    return tuple(names.get(dim) if isinstance(dim, str) else dim for dim in shape)


def _followed(node: Node, place: int, output: Fact) -> Fact:
    """Return an output with dimensions that onnx leaves open, or infers wrong, if they follow."""
    if not isinstance(output, Tensor) or rule_of(node.proto.op_type, place) is None:
        return output
    if node.proto.op_type in ALONE:
        output = replace(output, shape=None)
    if node.proto.op_type in COUNTED_WRONG and output.shape == (0,):
        output = replace(output, shape=(None,))
    if output.shape is not None and None not in output.shape:
        return output
    found = followed_shape(node, place)
    if found is None or (output.shape is not None and len(found) != len(output.shape)):
        return output
    pairs = zip(map(_if_length, found), output.shape or found, strict=True)
    both = (a if b is None or output.shape is None or is_known(a) else b for a, b in pairs)
    return replace(output, shape=tuple(both))


def _if_length(dim: Dim) -> Dim:
    """Return a dimension that follows, if it can be one; else None."""
    is_wrong = type(dim) is float or (is_known(dim) and not 0 <= dim <= MAX_DIM)
    return None if is_wrong else dim


def values_of(array: Array | None, opset: int) -> tuple[Dim, ...] | None:
    """Return the elements of a constant that may be an operand: integers, and floats.

    Few floats are scales or bounds, as of Resize and Range; lists of them are lengths in Split-1.
    """
    if array is None:
        return None
    kind = ir.DataType[element_type(array).upper()]
    return _elements(array, kind) if _may_be_operand(kind, array.shape, opset) else None


def _elements(array: Array, kind: ir.DataType) -> tuple[Dim, ...]:
    return tuple(map(float if kind in FLOATS else int, array.ravel().tolist()))


def _may_be_operand(kind: ir.DataType, shape: tuple[int, ...], opset: int) -> bool:
    if len(shape) > 1 or (kind not in _WHOLE and kind not in FLOATS):
        return False
    return math.prod(shape) <= (LARGEST_CONSTANT if kind in _WHOLE or opset == 1 else _MAX_FLOATS)


def of_constant(tensor: ir.TensorProtocol, opset: int) -> Tensor:
    """Return the fact about a constant, with its elements only if it may be an operand."""
    kind, shape, values = tensor.dtype, tuple(tensor.shape.numpy()), None
    if _may_be_operand(kind, shape, opset):
        with suppress(SplitError):  # checks refuse one that can't be read
            values = _elements(read_tensor(tensor), kind)
    return Tensor(kind, shape, values)
