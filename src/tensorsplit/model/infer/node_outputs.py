"""What the nodes of a graph give: splits by our rules, all other operators by onnx's own inference.

onnx is asked for one node at a time, which keeps the cost linear and split nodes away from it. The
elements of small integer tensors are followed too, so that lengths computed by a graph are known.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import reduce
from itertools import accumulate, chain
from typing import Any, NamedTuple

import numpy as np
import onnx
import onnx_ir as ir
from onnx.reference import ReferenceEvaluator

from tensorsplit.arrays.numpy import element_type
from tensorsplit.core.dimensions import Dim, Shape, add, combine, is_known, times
from tensorsplit.core.errors import UNKNOWN_COUNT, SplitError
from tensorsplit.core.operands import Operand
from tensorsplit.core.plan import SplitPlan, UncountedPlan
from tensorsplit.core.resolve import Intent, check_element_type, part_sizes, plan
from tensorsplit.core.rules import explicit
from tensorsplit.core.schema import Operator
from tensorsplit.model.graph.binding import bind
from tensorsplit.model.graph.facts import ABSENT, UNKNOWN, Fact, Other, Sequence, Tensor, of_parts
from tensorsplit.model.graph.nodes import LARGEST_CONSTANT, bodies, domain_name, readable_constant

INTEGERS = ("int", "uint", "bool")
"""What the names of those element types start with that operands may have."""

_WIDE = (ir.DataType.INT64, ir.DataType.INT32)

_MAX_VALUES = 1024
"""Computed tensors of more elements are described by their type and shape alone."""


@dataclass(frozen=True)
class Surroundings:
    """What surrounds the nodes of a graph or function under analysis.

    Attributes:
        path: The path of the graph or function, or of the node in it.
        attributes: The attributes of the function around it, in the call under analysis; None if
            the calls are not known.
        depth: How many bodies and calls lie around it.
        calls: The functions whose calls lie around it.
        runs: Whether it is known to run, or known never to run; None if neither is.
    """

    path: str
    opsets: Mapping[str, int]
    attributes: Mapping[str, Any] | None = field(default_factory=dict)
    depth: int = 0
    calls: frozenset[Any] = frozenset()
    runs: bool | None = True

    @property
    def opset(self) -> int:
        """The opset of ONNX's own domain; 0 where it is not imported."""
        return self.opsets.get("", 0)

    def inside(self, label: str, runs: bool | None) -> Surroundings:
        """The same for the nodes of a body, which runs, or may run, if its node does."""
        both = (self.runs, runs)
        known = False if False in both else None if None in both else True
        return replace(self, path=f"{self.path}.{label}", depth=self.depth + 1, runs=known)


class SplitOutputs(NamedTuple):
    """What is known of each output of a split node, and whether it is sure not to fail."""

    facts: list[Fact]
    is_decided: bool


def split_outputs(
    node: ir.Node, inputs: list[Fact], opset: int, attributes: Mapping[str, Any] | None
) -> SplitOutputs:
    """What is known of the outputs of a split node, with attributes as for `binding.bind`.

    Raises:
        SplitError: TS101 to TS308, TS502 for what the node may not ask for.
    """
    intent = bind(node, opset, inputs, attributes)
    data = inputs[0]
    if not isinstance(data, Tensor):
        data = Tensor()
    if data.element_type is not None:
        name = data.element_type.name.lower()
        parameter = intent.operator.inputs[0].name
        check_element_type(intent.operator.id, name, intent.element_types, parameter)
    if data.shape is None:
        _check_lengths(intent)
        return SplitOutputs(_unranked(intent, data), False)
    if _keepdims_is_open(node, intent, attributes):
        return SplitOutputs([Sequence(data.element_type)], False)
    try:
        made = plan(intent, data.shape)
    except SplitError as error:
        if error.kind is not UNKNOWN_COUNT:
            raise
        return SplitOutputs(_open_lengths(intent, data.element_type, data.shape, inputs), False)
    is_typed = data.element_type is not None and isinstance(made, SplitPlan)
    is_decided = is_typed and is_known(made.input_shape[made.axis])
    return SplitOutputs(planned_outputs(made, data, intent.operator), is_decided)


def planned_outputs(
    made: SplitPlan | UncountedPlan, data: Tensor, operator: Operator
) -> list[Fact]:
    """What is known of the outputs of a split node whose plan is known."""
    if isinstance(made, UncountedPlan):
        return [Sequence(data.element_type, made.part_shape, made.count)]
    if operator.is_sequence:
        return [of_parts(data.element_type, made.output_shapes)]
    return _parts(data, made)


def _check_lengths(intent: Intent) -> None:
    """Refuse lengths that fit no dimension."""
    try:
        part_sizes(intent, None)
    except SplitError as error:
        if error.kind is not UNKNOWN_COUNT:
            raise error.located(operator=intent.operator.id) from None


def _parts(data: Tensor, made: SplitPlan) -> list[Fact]:
    values: list[tuple[Dim, ...] | None] = [None] * len(made.sizes)
    if data.values is not None and len(made.input_shape) == 1 and all(map(is_known, made.sizes)):
        pairs = zip(made.sizes, accumulate(made.sizes), strict=True)
        values = [data.values[end - size : end] for size, end in pairs]
    return [
        Tensor(data.element_type, shape, part)
        for shape, part in zip(made.output_shapes, values, strict=True)
    ]


def _keepdims_is_open(node: ir.Node, intent: Intent, attributes: Mapping[str, Any] | None) -> bool:
    """Whether only the calls of a function tell if the parts keep the axis."""
    attribute = node.attributes.get(intent.operator.keepdims or "")
    if attribute is None or not attribute.is_ref() or intent.source is not None:
        return False
    return attributes is None or isinstance(attributes.get(attribute.ref_attr_name or ""), Operand)


def _unranked(intent: Intent, data: Tensor) -> list[Fact]:
    if intent.operator.is_sequence:
        listed = intent.rule is explicit and intent.given is not None
        count = len(intent.given or ()) if listed else None
        return [Sequence(data.element_type, None, count)]
    return [Tensor(data.element_type)] * (intent.outputs or 0)


def _open_lengths(
    intent: Intent, element_type: ir.DataType | None, shape: Shape, inputs: list[Fact]
) -> list[Fact]:
    """All but the length on the axis is known, and not even that where the axis is not."""
    rank = len(shape)
    part: list[Any] = [None] * rank
    if intent.axis is not None:
        part = list(shape)
        part[intent.axis % rank] = None
    if not intent.operator.is_sequence:
        return [Tensor(element_type, tuple(part))] * (intent.outputs or 0)
    lengths = inputs[1] if len(inputs) > 1 else None
    listed = isinstance(lengths, Tensor) and lengths.shape is not None and len(lengths.shape) == 1
    count = lengths.shape[0] if isinstance(lengths, Tensor) and listed and lengths.shape else None
    return [Sequence(element_type, tuple(part), count)]


def infer_outputs(node: ir.Node, inputs: list[Fact], around: Surroundings) -> list[Fact]:
    """A fact for each output of a node that is no split; nothing is known where onnx refuses."""
    domain = domain_name(node.domain)
    outputs: list[Fact] = [UNKNOWN] * len(node.outputs)
    try:
        schema = onnx.defs.get_schema(node.op_type, around.opsets[domain], domain)
        if any(bodies(node)):  # onnx would look at the split nodes in a body, and may abort
            return outputs
        proto = _message(node, inputs, around.attributes)
        if proto is None:
            return outputs
        found = _ask(schema, proto, inputs, around.opsets)
        outputs = [_fact(found.get(value.name or "")) for value in node.outputs]
        if domain == "" and outputs:
            outputs[0] = _with_values(outputs[0], node, proto, inputs, around.opset)
    except Exception:  # noqa: BLE001, S110 - onnx's inference and reference raise of many kinds
        pass
    return outputs


def _message(
    node: ir.Node, inputs: list[Fact], attributes: Mapping[str, Any] | None
) -> onnx.NodeProto | None:
    """The node with the attributes and inputs that a call gives; None where they are not known."""
    proto = ir.serde.serialize_node(node)
    for index, fact in enumerate(inputs):
        if fact is ABSENT:
            proto.input[index] = ""
    if not any(attribute.ref_attr_name for attribute in proto.attribute):
        return proto
    given = [attribute for attribute in proto.attribute if not attribute.ref_attr_name]
    for name, attribute in node.attributes.items():
        if not attribute.is_ref():
            continue
        if attributes is None:
            return None
        value = attributes.get(attribute.ref_attr_name or "")
        if isinstance(value, Operand):
            return None
        if value is not None:
            given.append(ir.serde.serialize_attribute(ir.Attr(name, attribute.type, value)))
    del proto.attribute[:]
    proto.attribute.extend(given)
    return proto


def _ask(
    schema: onnx.defs.OpSchema,
    proto: onnx.NodeProto,
    inputs: list[Fact],
    opsets: Mapping[str, int],
) -> dict[str, onnx.TypeProto]:
    types: dict[str, onnx.TypeProto] = {}
    data: dict[str, onnx.TensorProto] = {}
    for name, fact in zip(proto.input, inputs, strict=True):
        if not name:
            continue
        types[name] = _type_proto(fact)
        array = _array(fact)
        if array is not None:
            data[name] = onnx.numpy_helper.from_array(array, name)
    imports = [onnx.helper.make_opsetid(domain, version) for domain, version in opsets.items()]
    return onnx.shape_inference.infer_node_outputs(
        schema, proto, types, data, opset_imports=imports
    )


_NUMPY: Mapping[ir.DataType | None, Any] = {
    ir.DataType.INT32: np.int32,
    ir.DataType.INT64: np.int64,
    ir.DataType.BOOL: np.bool_,
}
"""The element types whose elements are followed."""


def _array(fact: Fact) -> np.ndarray[Any, Any] | None:
    """The elements as an array, where every one is a number."""
    if not isinstance(fact, Tensor) or fact.constant is None or fact.shape is None:
        return None
    dtype = _NUMPY.get(fact.element_type)
    return None if dtype is None else np.array(fact.constant, dtype).reshape(fact.shape)


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


def fact_of(kind: ir.TypeProtocol | None, shape: ir.Shape | None) -> Fact:
    """What a type and a shape say; exporters write -1, too, for a dimension that is not fixed."""
    dims = None
    if shape is not None:
        dims = tuple(
            (dim if dim >= 0 else None) if isinstance(dim, int) else (dim.value or None)
            for dim in shape
        )
    if isinstance(kind, ir.TensorType) or (kind is None and shape is not None):
        return Tensor((kind and kind.dtype) or None, dims)
    if isinstance(kind, ir.SequenceType) and isinstance(kind.elem_type, ir.TensorType):
        return Sequence(kind.dtype or None, dims)
    return UNKNOWN if kind is None else Other(kind)


def _fact(proto: onnx.TypeProto | None) -> Fact:
    if proto is None:
        return UNKNOWN
    kind = ir.serde.deserialize_type_proto_for_type(proto)
    return fact_of(kind, ir.serde.deserialize_type_proto_for_shape(proto))


def _with_values(
    fact: Fact, node: ir.Node, proto: onnx.NodeProto, inputs: list[Fact], opset: int
) -> Fact:
    """What is known of an output, with its elements where they follow."""
    if not isinstance(fact, Tensor):
        return fact
    rule = _VALUES.get(node.op_type)
    if any(attribute.is_ref() for attribute in node.attributes.values()):
        node = ir.serde.deserialize_node(proto)  # with the attributes that the call gives
    values = rule(node, inputs, opset) if rule else None
    if values is None:
        return replace(fact, values=_evaluated(fact, proto, inputs, opset))
    fits = fact.shape == (len(values),) or (fact.shape == () and len(values) == 1)
    return replace(fact, values=values) if fits and len(values) <= _MAX_VALUES else fact


_EVALUATED = frozenset(
    {
        *("Abs", "And", "Clip", "ConstantOfShape", "Equal", "Expand", "Greater", "GreaterOrEqual"),
        *("Less", "LessOrEqual", "Max", "Min", "Mod", "Neg", "Not", "Or", "Range", "ReduceMax"),
        *("ReduceMin", "ReduceProd", "ReduceSum", "Sum", "Tile", "Where"),
    }
)
"""Operators of shape arithmetic that onnx's reference is asked for, if their inputs are numbers."""


def _evaluated(
    fact: Tensor, proto: onnx.NodeProto, inputs: list[Fact], opset: int
) -> tuple[Dim, ...] | None:
    size = fact.shape[0] if fact.shape else 1
    if (
        proto.op_type not in _EVALUATED
        or fact.element_type not in _NUMPY
        or fact.shape is None
        or len(fact.shape) > 1
        or not is_known(size)
        or size > _MAX_VALUES
    ):
        return None
    feeds = {}
    for name, given in zip(proto.input, inputs, strict=True):
        array = _array(given)
        if name and array is None:
            return None
        if name:
            feeds[name] = array
    with np.errstate(all="ignore"):
        (made, *_) = ReferenceEvaluator(proto, opsets={"": opset}).run(None, feeds)
    found = np.asarray(made)
    return tuple(map(int, found.ravel().tolist())) if found.shape == fact.shape else None


def _constant(node: ir.Node, _: list[Fact], opset: int) -> tuple[Dim, ...] | None:
    return values_of(readable_constant(node.outputs[0]), opset) if node.outputs else None


def values_of(array: np.ndarray[Any, Any] | None, opset: int) -> tuple[Dim, ...] | None:
    """The elements of a constant that may be an operand: integers, and floats for Split-1.

    ONNX takes lengths of 32 and 64 bits, OpenVINO of any.
    """
    if array is None or array.ndim > 1 or array.size > LARGEST_CONSTANT:
        return None
    if element_type(array).startswith(INTEGERS):
        return tuple(map(int, array.ravel().tolist()))
    is_float = opset == 1 and array.dtype in (np.float16, np.float32, np.float64)
    return tuple(array.ravel().tolist()) if is_float else None


def _shape(node: ir.Node, inputs: list[Fact], opset: int) -> tuple[Dim, ...] | None:
    fact = inputs[0]
    if not isinstance(fact, Tensor) or fact.shape is None:
        return None
    bounds = [node.attributes.get(name) if opset >= 15 else None for name in ("start", "end")]
    if any(bound is not None and bound.is_ref() for bound in bounds):
        return None
    return fact.shape[slice(*(None if bound is None else bound.as_int() for bound in bounds))]


def _size(_: ir.Node, inputs: list[Fact], __: int) -> tuple[Dim, ...] | None:
    fact = inputs[0]
    if not isinstance(fact, Tensor) or fact.shape is None:
        return None
    return (reduce(times, fact.shape, 1),)


def _same(_: ir.Node, inputs: list[Fact], __: int) -> tuple[Dim, ...] | None:
    return inputs[0].values if isinstance(inputs[0], Tensor) else None


def _cast(node: ir.Node, inputs: list[Fact], _: int) -> tuple[Dim, ...] | None:
    to = node.attributes.get("to")
    if to is None or to.is_ref() or to.type != ir.AttributeType.INT or to.as_int() not in _WIDE:
        return None
    values, limit = _integers(inputs, 0), 1 << (ir.DataType(to.as_int()).bitwidth - 1)
    wraps = values and any(is_known(dim) and not -limit <= dim < limit for dim in values)
    return None if wraps else values


def _gather(node: ir.Node, inputs: list[Fact], _: int) -> tuple[Dim, ...] | None:
    values = _integers(inputs, 0)
    indices = inputs[1].constant if len(inputs) > 1 and isinstance(inputs[1], Tensor) else None
    axis = node.attributes.get("axis")
    if values is None or indices is None or (axis is not None and (axis.is_ref() or axis.as_int())):
        return None
    if any(not -len(values) <= index < len(values) for index in indices):
        return None
    return tuple(values[index] for index in indices)


def _concat(_: ir.Node, inputs: list[Fact], __: int) -> tuple[Dim, ...] | None:
    listed = [_integers(inputs, index) for index in range(len(inputs))]
    found = [values for values in listed if values is not None]
    return tuple(chain.from_iterable(found)) if len(found) == len(listed) else None


def _slice(_: ir.Node, inputs: list[Fact], opset: int) -> tuple[Dim, ...] | None:
    values = _integers(inputs, 0)
    bounds = [fact.constant if isinstance(fact, Tensor) else None for fact in inputs[1:]]
    if opset < 10 or values is None or len(bounds) < 2:
        return None
    if any(bound is None or len(bound) != 1 for bound in bounds):
        return None
    start, end = bounds[0], bounds[1]
    step = bounds[3] if len(bounds) > 3 else (1,)
    if not start or not end or not step or step[0] <= 0:
        return None
    return values[start[0] : end[0] : step[0]]


def _arithmetic(rule: Callable[[Dim, Dim], Dim]) -> Callable[..., tuple[Dim, ...] | None]:
    def apply(_: ir.Node, inputs: list[Fact], __: int) -> tuple[Dim, ...] | None:
        left, right = _integers(inputs, 0), _integers(inputs, 1)
        if left is None or right is None or not _is_wide(inputs[0]):
            return None
        if len(left) != len(right):
            if len(left) == 1:
                left *= len(right)
            elif len(right) == 1:
                right *= len(left)
            else:
                return None
        return tuple(rule(a, b) for a, b in zip(left, right, strict=True))

    return apply


def _is_wide(fact: Fact) -> bool:
    """Whether numbers do not wrap in its element type, as far as lengths go."""
    return isinstance(fact, Tensor) and fact.element_type in (None, *_WIDE)


def _divide(left: Dim, right: Dim) -> Dim:
    """Integer division truncates in ONNX; lengths are not negative, so it rounds down as well."""
    if not is_known(right) or right <= 0 or (is_known(left) and left < 0):
        return None
    return combine(lambda a, b: a // b, left, right)


def _integers(inputs: list[Fact], index: int) -> tuple[Dim, ...] | None:
    """The elements of an input, unless they are floats."""
    fact = inputs[index] if index < len(inputs) else UNKNOWN
    if not isinstance(fact, Tensor) or fact.values is None:
        return None
    return None if any(isinstance(value, float) for value in fact.values) else fact.values


_VALUES: Mapping[str, Callable[[ir.Node, list[Fact], int], tuple[Dim, ...] | None]] = {
    "Constant": _constant,
    "Shape": _shape,
    "Size": _size,
    "Identity": _same,
    "Squeeze": _same,
    "Unsqueeze": _same,
    "Reshape": _same,
    "Cast": _cast,
    "Gather": _gather,
    "Concat": _concat,
    "Slice": _slice,
    "Add": _arithmetic(add),
    "Sub": _arithmetic(lambda a, b: combine(lambda x, y: x - y, a, b)),
    "Mul": _arithmetic(times),
    "Div": _arithmetic(_divide),
}
"""How the elements follow where some are expressions, by operator."""
