"""Sequences that are parts of one tensor, and what is taken out of them.

Where an extension has nothing to add, it asks an import without extensions to convert a model of
that one node, and takes the nodes that came of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from io import BytesIO
from typing import Any

import openvino
from onnx import ModelProto, ValueInfoProto, helper
from openvino import opset8 as ops
from openvino.frontend import FrontEndManager
from openvino.frontend.onnx import ConversionExtension

from tensorsplit.core.arithmetic import (
    Number,
    as_formula,
    dimension,
    fitting_zero,
    listed,
    minimum,
    pick,
    position,
    size_of,
    sums,
    value,
)
from tensorsplit.core.dimensions import is_known
from tensorsplit.core.errors import CANNOT_EXPRESS, SplitError
from tensorsplit.core.resolve import bind
from tensorsplit.core.rules import Chunks
from tensorsplit.model.openvino_ir.translation import data_type
from tensorsplit.openvino.given_nodes import constant_values, element_type, read, shape_of
from tensorsplit.openvino.node_maker import NodeMaker, Value, constant, itself, number
from tensorsplit.openvino.split_conversions import AxisSplit, axis_split, parts

_MARK = "SequenceMark"
"""The type of the nodes by which the import knows a sequence; their inputs are its tensors."""

_SPLIT = "VariadicSplit"
_MOST_MARKED = 4096
"""Of more parts, each is taken where it is used."""

_OPSET = 13
_IR_VERSION = 8
_NAME = "tensorsplit"


def sequence_extensions() -> list[object]:
    """Return an extension for each operator that makes or takes sequences of parts."""
    conversions = {
        "SplitToSequence": _split_to_sequence,
        "SequenceAt": _sequence_at,
        "SequenceLength": _sequence_length,
        "ConcatFromSequence": _concat_from_sequence,
    }
    return [ConversionExtension(name, convert) for name, convert in conversions.items()]


class PackedSequence(openvino.Op):  # type: ignore[misc]  # openvino ships no types
    """Consecutive parts of a tensor, of which it is not known how many there are.

    It stands in the model only while that is imported: what takes a part out of it takes it out
    of the tensor itself. The parts lack the axis if it is ``dropped``; the running model stops
    where ``zero`` is used if the lengths do not fit; ``maker`` makes the nodes that all uses share.
    """

    split: AxisSplit
    dropped: bool
    zero: Number
    maker: NodeMaker

    def __init__(self, inputs: list[Value]) -> None:
        super().__init__(self, inputs)

    @classmethod
    def of(cls, split: AxisSplit, *, dropped: bool) -> PackedSequence:
        """Return the parts of a tensor."""
        made = cls([split.data])
        made.split, made.dropped, made.maker = split, dropped, NodeMaker()
        sizes = split.sizes
        if not isinstance(sizes, Chunks):
            made.zero = fitting_zero(split.dim, sizes)
        else:
            made.zero = 0 if is_known(sizes.size) else minimum(sizes.size, 1) - 1
        return made

    def validate_and_infer_types(self) -> None:
        """Refuse such sequences in a complete model (TS310); OpenVINO calls this."""
        if self.get_output_size() and (users := self.output(0).get_target_inputs()):
            raise SplitError(
                CANNOT_EXPRESS,
                "a sequence of which it is not known how many tensors it has is used by"
                f" {next(iter(users)).get_node().get_type_name()}",
                "lower the model instead: tensorsplit.lower(model, target='openvino')",
                operator="onnx.SplitToSequence",
            )
        self.set_output_type(0, self.get_input_element_type(0), openvino.PartialShape.dynamic())

    def count(self) -> Number:
        """Return how many parts there are."""
        sizes = self.split.sizes
        return sizes.count if isinstance(sizes, Chunks) else size_of(sizes) + self.zero

    def at(self, index: Number) -> Value:
        """Return a part; the running model stops where there is none of that position (D19)."""
        data, axis, dim, sizes, _ = self.split
        count = self.count()
        place = position(index, count, count - 1)
        if self.dropped:
            return ops.gather(data, self.maker.scalar(place), constant(axis)).output(0)
        if isinstance(sizes, Chunks):
            start = place * sizes.size
            end = minimum(start + sizes.size, dim)
        else:
            lengths = as_formula(listed(sizes)) + self.zero
            end = pick(sums(lengths), place)
            start = end - pick(lengths, place)
        return self.maker.slice(data, start, end, axis)

    def whole(self) -> Value:
        """Return the tensor; the running model stops if the lengths do not fit it."""
        data, axis, dim, *_ = self.split
        return data if is_known(self.zero) else self.maker.slice(data, self.zero, dim, axis)


def _split_to_sequence(context: object) -> list[Value]:
    given = read(context, "SplitToSequence", "onnx")
    intent = bind(given.operator, given.operands)
    if intent.axis is None or intent.rule is None:
        raise SplitError(
            CANNOT_EXPRESS,
            "it is not known whether 'split' is a scalar or a list",
            "declare its shape",
            operator=given.operator.id,
            parameter=intent.source,
        )
    split = axis_split(intent, given.data, given.lengths)
    if split.known_count is not None and 0 < split.known_count <= _MOST_MARKED:
        made = parts(split)
        if not intent.keepdims:
            made = [ops.squeeze(part, constant([intent.axis])).output(0) for part in made]
        mark = _stock("SequenceConstruct", None, made)
        if mark.get_node().get_type_name() == _MARK:
            return [mark]
    return [PackedSequence.of(split, dropped=not intent.keepdims).output(0)]


def _sequence_at(context: Any) -> list[Value]:
    """Convert SequenceAt; a position that is known to be out of range is refused (TS511)."""
    sequence, index = context.get_input(0), context.get_input(1)
    values = constant_values(index)
    place: Number = int(values[0]) if values else number(index)
    node = sequence.get_node()
    if isinstance(node, PackedSequence):
        return [node.at(place)]
    tensors = _tensors_of(sequence)
    if tensors is None:
        return [_stock("SequenceAt", sequence, [index])]
    sure = position(place, len(tensors), len(tensors) - 1, operator="onnx.SequenceAt")
    if is_known(sure):
        return [itself(tensors[sure])]
    make = NodeMaker()
    if len(tensors) > 1:
        return [_stock("SequenceAt", sequence, [make.scalar(sure)])]
    # OpenVINO makes no use of a position in a list of one: a slice needs it, and so the guard
    one = make.slice(ops.unsqueeze(tensors[0], constant(0)).output(0), sure, 1, 0)
    return [ops.squeeze(one, constant([0])).output(0)]


def _sequence_length(context: Any) -> list[Value]:
    sequence = context.get_input(0)
    node = sequence.get_node()
    if isinstance(node, PackedSequence):
        return [node.maker.scalar(node.count())]
    tensors = _tensors_of(sequence) or ()
    part = tensors[0].get_node() if tensors else node
    if part.get_type_name() == _SPLIT and part.input(0).get_partial_shape().is_dynamic:
        data, axis, lengths = part.input_values()  # counting its parts does not run it
        zero = fitting_zero(dimension(data, number(axis)), value(lengths))
        return [NodeMaker().scalar(zero + len(tensors))]
    return [_stock("SequenceLength", sequence, [])]


def _concat_from_sequence(context: Any) -> list[Value]:
    """Join an unknown number of tensors along the axis they were split on (else TS310)."""
    sequence = context.get_input(0)
    attributes = {name: context.get_attribute(name, 0) for name in ("axis", "new_axis")}
    node = sequence.get_node()
    if not isinstance(node, PackedSequence):
        return [_stock("ConcatFromSequence", sequence, [], attributes)]
    shape = shape_of(node.split.data)
    axis, along = attributes["axis"], node.split.axis
    if shape is not None:
        axis, along = axis % len(shape), along % len(shape)
    if axis == along and bool(attributes["new_axis"]) == node.dropped:
        return [itself(node.whole())]
    raise SplitError(
        CANNOT_EXPRESS,
        "an unknown number of tensors is joined along another axis than they were split on",
        "lower the model instead: tensorsplit.lower(model, target='openvino')",
        operator="onnx.ConcatFromSequence",
    )


def _tensors_of(sequence: Value) -> list[Value] | None:
    """Return the tensors of a sequence; None if they are not known yet, as after an insertion."""
    node = sequence.get_node()
    if node.get_type_name() != _MARK:
        return None
    tensors = list(node.input_values())
    if any(value.get_node().get_type_name().startswith("Sequence") for value in tensors):
        return None
    return tensors


def _stock(
    op_type: str,
    sequence: Value | None,
    tensors: Sequence[Value],
    attributes: Mapping[str, Any] | None = None,
) -> Value:
    """Convert a node of ONNX's own domain as OpenVINO's own import does.

    Its first input is a sequence unless that is None; the others are tensors.
    """
    known = None if sequence is None else _tensors_of(sequence)
    values = {f"{_NAME}/{place}": held for place, held in enumerate((*(known or ()), *tensors))}
    inputs = [
        helper.make_tensor_value_info(name, data_type(element_type(held)), shape_of(held))
        for name, held in values.items()
    ]
    names, nodes = list(values), []
    if known is not None:
        count = len(known)
        made = helper.make_node(
            "SequenceConstruct" if known else "SequenceEmpty", names[:count], [f"{_NAME}/s"]
        )
        nodes, names = [made], [f"{_NAME}/s", *names[count:]]
    elif sequence is not None:
        values[f"{_NAME}/s"] = sequence
        kind = helper.make_tensor_type_proto(data_type(element_type(sequence)), None)
        inputs.append(helper.make_value_info(f"{_NAME}/s", helper.make_sequence_type_proto(kind)))
        names = [f"{_NAME}/s", *names]
    nodes.append(helper.make_node(op_type, names, [f"{_NAME}/out"], **(attributes or {})))
    outputs = [ValueInfoProto(name=f"{_NAME}/out")]
    graph = helper.make_graph(nodes, _NAME, inputs, outputs)
    opsets = [helper.make_opsetid("", _OPSET)]
    return _transplanted(
        helper.make_model(graph, opset_imports=opsets, ir_version=_IR_VERSION), values
    )


def _transplanted(model: ModelProto, values: Mapping[str, Value]) -> Value:
    """Return the output of a model of one output, with values in the place of its inputs."""
    importer = FrontEndManager().load_by_framework("onnx")
    made = importer.convert_partially(importer.load(BytesIO(model.SerializeToString())))
    for parameter in made.get_parameters():
        held = values[parameter.get_friendly_name()]
        for target in parameter.output(0).get_target_inputs():
            target.replace_source_output(held)
    return made.get_results()[0].input_value(0)
