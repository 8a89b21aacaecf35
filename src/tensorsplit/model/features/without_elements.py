"""Features of nodes that take or give tensors without elements."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import chain, zip_longest
from types import MappingProxyType
from typing import NamedTuple, TypeAlias

import numpy as np
import onnx_ir as ir
from onnx import defs

from tensorsplit.core.dimensions import Dim, Shape, are_known, is_at_least, is_known
from tensorsplit.core.records.openvino import DOMAIN
from tensorsplit.model.features.forms import sparse_initializers
from tensorsplit.model.features.from_constants import is_calculated, is_fixed
from tensorsplit.model.features.values import is_empty
from tensorsplit.model.graph.axes import moves_only_ones, order_of
from tensorsplit.model.graph.calculation import FLOATS
from tensorsplit.model.graph.called_in_onnx import operator_of
from tensorsplit.model.graph.equations import moves_one_axis
from tensorsplit.model.graph.facts import SequenceFact
from tensorsplit.model.graph.held_tensors import constant, fixed_tensor_of, tensor_of
from tensorsplit.model.graph.loops import body_of, states_of
from tensorsplit.model.graph.nodes import NodeRef, attribute_of, bodies
from tensorsplit.model.graph.producers import (
    KEEPING_AXES,
    first_input,
    origins,
    passed_from,
    producer_of,
)
from tensorsplit.model.graph.split_records import is_vendor_split
from tensorsplit.model.infer.analysis import Facts
from tensorsplit.model.openvino_ir.attributes import is_set
from tensorsplit.model.validity.node_errors import types_of

_FIRST_STATE = 5
"""The place of `initial_h` among the inputs of a recurrent layer."""

_INDICES = {"tensor(int32)", "tensor(int64)"}

_FIRST_RIGHT = MappingProxyType({"LogSoftmax": 13, "Softmax": 11})
"""From here on OpenVINO gives rows without elements the right shape."""


class _Known(NamedTuple):
    """The facts about a model, and those that an engine knows as it loads the model."""

    facts: Facts
    seen: Facts
    opset: int


def empty_operands(ref: NodeRef, facts: Facts) -> list[int]:
    """Return the places of a node's data that are constants without elements.

    Operands that are left out so, as those of `Resize` are (up to opset 12 they can't be absent),
    and those that are integers only, such as shapes and axes, are none.
    """
    empty = [i for i, held in enumerate(ref.node.inputs) if held is not None and _holds_none(held)]
    if not empty or is_vendor_split(ref.node) or ref.op_type == "Resize":
        return [place for place in empty if place == 0]
    schema = ref.schema
    if schema is None or not schema.inputs:
        return []
    if operator_of(ref.node) in _INDEXED or _is_read_as_number(ref.node, facts):
        return empty
    last = len(schema.inputs) - 1
    return [place for place in empty if _is_data(schema, schema.inputs[min(place, last)])]


_INDEXED = frozenset({"GatherElements", "GatherND", "ScatterElements", "ScatterND", "Tile"})
"""Operators that OpenVINO refuses where their indices or counts are a number."""


_REPEATED = frozenset({"Expand", "Tile"})


def is_repeated_by_none(ref: NodeRef, facts: Facts) -> bool:
    """Return whether a node gives its data as they are, by a list of no lengths or counts."""
    return operator_of(ref.node) in _REPEATED and 1 in empty_operands(ref, facts)


def _is_read_as_number(node: ir.Node, facts: Facts) -> bool:
    """Return whether OpenVINO gives another shape for a list of none that is a constant.

    It does for an Expand of what may have no axes, and for a Gather of strings, of which it takes
    the first; of others `takes_nothing` holds.
    """
    data, operator = facts.tensor(first_input(node)), operator_of(node)
    if operator == "Gather":
        return data.element_type == ir.DataType.STRING
    return operator == "Expand" and not data.shape


_PRODUCTS = frozenset({"Gemm", "MatMul"})


def summed_axis(product: ir.Node) -> int | None:
    """Return the one axis of length 0 of a constant factor, if a product sums along that.

    It is that of the first factor, from the back.
    """
    factor = product.inputs[1] if operator_of(product) in _PRODUCTS else None
    tensor = None if factor is None else fixed_tensor_of(factor)
    if tensor is None or len(tensor.shape) < 2:
        return None
    is_turned = bool(attribute_of(product, "transB", ir.AttributeType.INT))
    empty = [axis - len(tensor.shape) for axis, dim in enumerate(tensor.shape) if dim == 0]
    if empty != [-1 if is_turned else -2]:
        return None
    return -2 if attribute_of(product, "transA", ir.AttributeType.INT) else -1


def _holds_none(held: ir.Value) -> bool:
    """Return whether a value is a constant without elements."""
    tensor = fixed_tensor_of(held)
    return tensor is not None and 0 in tensor.shape


def _is_data(schema: defs.OpSchema, formal: defs.OpSchema.FormalParameter) -> bool:
    is_optional = formal.option == defs.OpSchema.FormalParameterOption.Optional
    return not is_optional and not types_of(schema, formal) <= _INDICES


def gives_empty_constant(node: ir.Node) -> bool:
    """Return whether a graph gives out a constant without elements as it is."""
    return any(value.is_graph_output() and _holds_none(value) for value in node.outputs)


def of_constant_operands(ref: NodeRef, facts: Facts) -> Iterator[tuple[str, object]]:
    """Yield the features of the constants that a node takes or gives out."""
    if sparse_initializers(ref.node):
        yield "sparse_initializer", True
    if gives_empty_constant(ref.node) or empty_operands(ref, facts):
        yield "empty_constant", True


def flattened_at(node: ir.Node, facts: Facts) -> int | None:
    """Return the axis of a Flatten from the front, where it is known."""
    axis: int | None = attribute_of(node, "axis", ir.AttributeType.INT, 1)
    if axis is None or axis >= 0:
        return axis
    shape = facts.tensor(node.inputs[0]).shape if node.inputs else None
    return None if shape is None else axis + len(shape)


def _shape_of(node: ir.Node, facts: Facts) -> Shape:
    """Return the shape of a node's first input, as that of a number where it is not known."""
    return facts.tensor(first_input(node)).shape or ()


def _may_be_0_later(number: Dim) -> bool:
    """Return whether a number that is not known, or has names, may be 0."""
    return number is None or not (is_known(number) or is_at_least(number, 1))


def _is_flattened(node: ir.Node, known: _Known) -> bool:
    """Return whether more than one axis comes before a Flatten's of data maybe without elements."""
    if node.domain != "" or not node.inputs or (flattened_at(node, known.facts) or 0) < 2:
        return False
    shape = known.facts.tensor(node.inputs[0]).shape
    return shape is None or 0 in shape or not are_known(shape)


def _loses_dimension(node: ir.Node, known: _Known) -> bool:
    """Return whether a node gives an empty tensor another shape, of which one number is not seen.

    That one follows from the number of elements, which is 0 whatever it is. A Squeeze without axes
    needs to know it.
    """
    is_by_shape = (
        node.op_type == "Squeeze" and len(node.inputs) == 1 and "axes" not in node.attributes
    )
    return _has_one_open(_shape_of(node, known.seen)) and not is_by_shape


def _has_one_open(shape: Shape) -> bool:
    """Return whether a shape without elements has one dimension that is not seen."""
    return 0 in shape and sum(not is_known(dim) for dim in shape) == 1


def _loses_dimension_of_rows(node: ir.Node, known: _Known) -> bool:
    """Return whether a loop, or a stack of a sequence, puts such tensors together on a new axis.

    Of what a loop carries an engine may know more than its body declares.
    """
    if node.op_type == "ConcatFromSequence":
        held = known.seen.of(node.inputs[0])
        is_stack = attribute_of(node, "new_axis", ir.AttributeType.INT)
        parts = [held.part] if is_stack and isinstance(held, SequenceFact) else []
    elif "body" not in dict(bodies(node)):  # a layer, whose body has an Unsqueeze for its rows
        return False
    else:
        rows = body_of(node).outputs[len(states_of(node)) + (node.op_type == "Loop") :]
        views = (known.seen, known.facts)
        parts = [facts.tensor(row).shape for row in rows for facts in views]
    return any(_has_one_open(part or ()) for part in parts)


def _is_misshapen(node: ir.Node, known: _Known) -> bool:
    """Return whether a Reshape of nothing gives a 0 where its data has another length.

    A shape that an engine calculates as it loads the model is then read as if it had that 0.
    """
    shape, made = _shape_of(node, known.seen), known.facts.tensor(node.outputs[0]).shape or ()
    is_other = any(new == 0 != old for new, old in zip_longest(made, shape))
    if node.domain != "" or not (0 in shape and are_known(shape) and is_other):
        return False
    return any(  # the first versions are given none
        constant(passed_from(by)) is None and known.facts.tensor(by).constant is not None
        for by in node.inputs[1:2]
    )


def _copies_zero(node: ir.Node, known: _Known) -> bool:
    """Return whether a Reshape copies a dimension of 0, beside one length that is calculated.

    ONNX Runtime makes -1 of that length where it is joined to others that are constant.
    """
    joined = producer_of(node.inputs[1]) if len(node.inputs) > 1 else None
    if joined is None or operator_of(joined) != "Concat":
        return False
    lengths: list[Dim] = []
    for held in joined.inputs:
        fact = known.facts.tensor(held)
        lengths += [*fact.constant] if fact.constant is not None else [None] * len(fact.shape or ())
    copied = zip(lengths, _shape_of(node, known.facts), strict=False)
    return lengths.count(None) == 1 and any(length == dim == 0 for length, dim in copied)


def _loses_moved(node: ir.Node, known: _Known) -> bool:
    """Return whether a Transpose moves only axes of length 1 of an empty tensor, as a Reshape does.

    Then it loses a dimension that is not seen, or takes a 0 for what the data has there. Of what
    follows from constants alone, engines calculate it before.
    """
    if is_fixed(first_input(node), known.seen):
        return False
    shape = _shape_of(node, known.seen)
    order = [axis for axis in order_of(node, len(shape)) if axis in range(len(shape))]
    if not moves_only_ones(order, shape) or len(order) != len(shape):
        return False
    if not are_known(shape):
        return _loses_dimension(node, known)
    return any(shape[axis] == 0 != shape[i] for i, axis in enumerate(order))


def _calculates_from_nothing(node: ir.Node, known: _Known) -> bool:
    """Return whether what a node calculates from has no elements."""
    return is_empty(first_input(node), known.facts)


def _multiplies_nothing(node: ir.Node, known: _Known) -> bool:
    """Return whether a node multiplies by a variable, with a factor empty and one transposed.

    OpenVINO leaves a Transpose of the last two axes to the product. One of integers needs none, nor
    one of no sums that other nodes read, which may be calculated with it, or that adds to them; nor
    has a layer to multiply by a variable, of which no import makes a scalar. Sums are wrong of what
    is calculated from constants and empty, which is folded into a constant: nothing is written.
    """
    factors, facts = node.inputs[:2], known.facts
    if len(factors) == 1 or not any(is_empty(held, facts) for held in factors):
        return False
    (made, *_) = node.outputs
    shape = facts.tensor(made).shape
    are_sums = shape is not None and 0 not in shape
    if _is_fixed_factor(factors[1], facts):
        return are_sums and node.domain == DOMAIN
    return (
        (are_sums and is_calculated(factors[1], facts, of_nothing=False))
        or not facts.element_types(factors[0]) <= set(FLOATS)
        or (are_sums and (bool(made.uses()) or any(node.inputs[2:])))
        or any(_is_turned(node, i, facts) for i in range(2))
    )


def _is_fixed_factor(held: ir.Value | None, facts: Facts) -> bool:
    """Return whether a value is fixed for an engine, which is not so just because it is empty."""
    source = passed_from(held)
    is_known_to_be = not is_empty(held, facts) and is_fixed(held, facts)
    return is_known_to_be or (source is not None and tensor_of(source) is not None)


def _is_turned(product: ir.Node, place: int, facts: Facts) -> bool:
    """Return whether the last two axes of a factor, and no others, change places."""
    letter, passed = "AB"[place], list(origins(product.inputs[place], _before_product))
    shapes = (facts.tensor(each).shape for each in passed)  # layers may not declare theirs
    order = [*range(len(next(filter(None, shapes), ())))]
    if len(order) < 2:  # a vector
        return False
    turned = [*order[:-2], *order[:-3:-1]]
    for each in passed:
        made = each.producer()
        if made is not None and operator_of(made) == "Transpose":
            before = order_of(made, len(order))
            if sorted(before) != sorted(order):  # which is refused elsewhere
                return False
            order = [before[axis] for axis in order]
    if product.domain == DOMAIN:
        turns = is_set(product, f"transpose_{letter.lower()}")
    else:
        turns = bool(attribute_of(product, f"trans{letter}", ir.AttributeType.INT))
    return order == (sorted(order) if turns else turned)


def _before_product(node: ir.Node) -> ir.Value | None:
    return first_input(node) if operator_of(node) in KEEPING_AXES else None


def _joins_nothing(node: ir.Node, known: _Known) -> bool:
    """Return whether an Einsum is of several tensors, one of them empty."""
    return len(node.inputs) > 1 and any(is_empty(held, known.facts) for held in node.inputs)


def _may_move_nothing(node: ir.Node, known: _Known) -> bool:
    """Return whether an Einsum moves one axis of an operand, and a dimension may be 0."""
    equation = attribute_of(node, "equation", ir.AttributeType.STRING, "")
    dims = [known.facts.tensor(held).shape or (None,) for held in node.inputs]
    is_open = not all(is_at_least(dim, 1) for dim in chain.from_iterable(dims))
    return is_open and moves_one_axis(equation or "")


_RIGHT_OF_NOTHING = frozenset(
    {ir.DataType.FLOAT16, ir.DataType.INT8, ir.DataType.INT32, ir.DataType.UINT8}
)
"""The types of which OpenVINO gives the ends that the standard asks for."""


def _loses_moved_by_einsum(node: ir.Node, known: _Known) -> bool:
    """Return whether an Einsum of one empty tensor may move axes of length 1, as a Reshape does."""
    if len(node.inputs) != 1 or is_fixed(first_input(node), known.seen):
        return False
    return {0, 1} <= {*_shape_of(node, known.facts)}


def _compares_nothing(node: ir.Node, known: _Known) -> bool:
    """Return whether an old Softmax is of nothing as one row, or of no last of three axes."""
    shape = _shape_of(node, known.facts)
    is_one = attribute_of(node, "axis", ir.AttributeType.INT, 1) in (0, -len(shape))
    is_old = node.domain == "" and known.opset < _FIRST_RIGHT[node.op_type]
    return is_old and 0 in (*shape[2:][-1:], *(shape[:1] if is_one else ()))


def _sums_nothing(node: ir.Node, known: _Known) -> bool:
    """Return whether a product of integers has elements, each the sum of none."""
    made = known.facts.tensor(node.outputs[0]).shape
    place = 1 if len(node.inputs) <= _MOST_OF_INTEGERS else 3
    other = next(iter(node.inputs[place:]), None)  # a malformed node lacks it
    rows = (known.facts.tensor(other).shape or ())[-2:][:1]
    is_of_none = (0,) in (rows, _shape_of(node, known.facts)[-1:])
    return is_of_none and made is not None and 0 not in made


_MOST_OF_INTEGERS = 4
"""So many inputs a MatMulInteger has; a QLinearMatMul has scales between its factors."""


def _compares_slices_of_nothing(node: ir.Node, known: _Known) -> bool:
    """Return whether a Unique is of slices along an axis, of which each has no elements."""
    shape = _shape_of(node, known.facts)
    axis = attribute_of(node, "axis", ir.AttributeType.INT)
    return axis in range(-len(shape), len(shape)) and 0 in shape and shape[axis] != 0


def _has_empty_planes(node: ir.Node, known: _Known) -> bool:
    """Return whether data has no channels, or no elements along a spatial axis."""
    return 0 in _shape_of(node, known.facts)[1:] and node.domain == ""


def _convolves_nothing(node: ir.Node, known: _Known) -> bool:
    """Return whether data has empty planes, or a window of a convolution has no elements."""
    shapes = (known.facts.tensor(each).shape for each in node.inputs[1:] if each is not None)
    is_empty_window = any(0 in (shape or ())[2:] for shape in shapes)
    return _has_empty_planes(node, known) or (is_empty_window and node.domain == "")


def _weighs_nothing(node: ir.Node, known: _Known) -> bool:
    """Return whether a loss of no labels has weights."""
    return len(node.inputs) > len(("data", "labels")) and is_empty(node.inputs[1], known.facts)


def _makes_from_nothing(node: ir.Node, known: _Known) -> bool:
    """Return whether a node makes elements of data that has none."""
    made = known.facts.tensor(node.outputs[0]).shape
    return is_empty(first_input(node), known.facts) and 0 not in (made or ())


def _takes_along_axis(node: ir.Node, known: _Known) -> bool:
    """Return whether a Compress takes along an axis of data that has no elements."""
    return "axis" in node.attributes and is_empty(first_input(node), known.facts)


def _takes_nothing_twice(node: ir.Node, known: _Known) -> bool:
    """Return whether indices have no elements for two of their dimensions, or more."""
    shape = known.facts.tensor(node.inputs[1]).shape if len(node.inputs) > 1 else None
    return node.domain == "" and (shape or ()).count(0) > 1


def _may_have_no_batch(node: ir.Node, known: _Known) -> bool:
    """Return whether the batch of a recurrent layer may be 0, as may be seen only at run time."""
    return _may_be_0_later(_steps_and_batch(node, known)[1])


def _may_have_no_steps(node: ir.Node, known: _Known) -> bool:
    """Return whether a recurrent layer may have no steps, as may be seen only at run time."""
    return _may_be_0_later(_steps_and_batch(node, known)[0])


def _may_end_as_it_began(node: ir.Node, known: _Known) -> bool:
    """Return whether a recurrent layer is given its first state, and may have no steps."""
    steps, _ = _steps_and_batch(node, known)
    is_given = len(node.inputs) > _FIRST_STATE and node.inputs[_FIRST_STATE] is not None
    return is_given and (steps == 0 or _may_be_0_later(steps))


def _steps_and_batch(node: ir.Node, known: _Known) -> tuple[Dim, Dim]:
    """Return the numbers of steps and batches of a recurrent layer; 1 for another layout."""
    shape = known.facts.tensor(first_input(node)).shape
    layout: int | None = attribute_of(node, "layout", ir.AttributeType.INT, 0)
    if node.domain != "" or layout not in (0, 1):
        return 1, 1
    steps, batch = (None, None) if shape is None else (*shape, 1, 1)[:2]
    return (batch, steps) if layout else (steps, batch)


def _reduces_nothing(node: ir.Node, known: _Known) -> bool:
    """Return whether the largest or least element is taken where there is none."""
    made = known.facts.tensor(node.outputs[0]).shape
    if made is None or 0 in made or not is_empty(first_input(node), known.facts):
        return False
    types = known.facts.element_types(first_input(node))
    return not types or not types <= _RIGHT_OF_NOTHING


def _pools_nothing(node: ir.Node, known: _Known) -> bool:
    """Return whether a pool is of no batches or channels."""
    return 0 in _shape_of(node, known.seen)[:2] and node.domain == ""


def _takes_top_of_none(node: ir.Node, known: _Known) -> bool:
    return _number_of_top(node, known.facts) == 0


def _may_take_top_of_none(node: ir.Node, known: _Known) -> bool:
    """Return whether a TopK may take no elements, as may be seen only at run time."""
    return len(node.inputs) > 1 and _may_be_0_later(known.facts.tensor(node.inputs[1]).integer)


def _number_of_top(node: ir.Node, facts: Facts) -> int | None:
    """Return how many elements a TopK takes, which is an attribute before opset 10."""
    if len(node.inputs) < 2:
        number: int | None = attribute_of(node, "k", ir.AttributeType.INT)
        return number
    return next(iter(facts.tensor(node.inputs[1]).constant or ()), None)


def _expands_to_nothing(node: ir.Node, known: _Known) -> bool:
    """Return whether an Expand makes a dimension 0 that may be 1, or a layer that does as it."""
    mode = node.attributes.get("mode")
    is_other = node.domain == DOMAIN and (mode is None or mode.value != "bidirectional")
    if len(node.inputs) != 2 or is_other:
        return False
    shape = known.facts.tensor(node.inputs[0]).shape or ()
    lengths = known.facts.tensor(node.inputs[1]).values or ()
    pairs = zip(shape[::-1], lengths[::-1], strict=False)
    return any(length == 0 and dim != 0 for dim, length in pairs)


def _expands_nothing(node: ir.Node, known: _Known) -> bool:
    return is_empty(first_input(node), known.seen) and not _expands_to_nothing(node, known)


def _takes_nothing(node: ir.Node, known: _Known) -> bool:
    """Return whether a node is seen to take no elements along an axis, whatever its data holds.

    Strings are left out: those are taken one by one.
    """
    if len(node.inputs) < 2:
        return False
    if node.domain == DOMAIN:
        indices = known.facts.tensor(node.inputs[1]).shape
        return indices == (0,) and _gives_nothing(node, known.facts)
    if ir.DataType.STRING in known.facts.element_types(node.inputs[0]):
        return False
    shape = known.seen.tensor(node.inputs[1]).shape
    if shape is not None and are_known(shape) and shape.count(0) == 1:
        return True
    taken = known.facts.tensor(node.inputs[1])
    fixed = taken.constant if taken.constant is not None else constant(passed_from(node.inputs[1]))
    return node.op_type == "Compress" and fixed is not None and not np.any(fixed)


def _takes_from_nothing(node: ir.Node, known: _Known) -> bool:
    """Return whether a Gather's data and result are seen to have no elements, at one axis."""
    if _takes_nothing(node, known):
        return False
    if node.domain == DOMAIN:
        return _gives_nothing(node, known.facts)
    if (len(node.inputs), len(node.outputs)) != (2, 1):
        return False
    shapes = known.seen.tensor(node.inputs[0]).shape, known.facts.tensor(node.outputs[0]).shape
    return all(shape is not None and are_known(shape) and shape.count(0) == 1 for shape in shapes)


_INPUTS_OF_GATHER = 3


def _gives_nothing(node: ir.Node, facts: Facts) -> bool:
    """Return whether a Gather layer of a known shape gives no elements; not so of strings."""
    if len(node.inputs) != _INPUTS_OF_GATHER:
        return False
    given, made = facts.tensor(node.inputs[0]), facts.tensor(node.outputs[0])
    are_seen = all(each.shape is not None and are_known(each.shape) for each in (given, made))
    return are_seen and 0 in (made.shape or ()) and made.element_type != ir.DataType.STRING


_Holds: TypeAlias = Callable[[ir.Node, _Known], bool]

_FEATURES: Mapping[str, tuple[tuple[str, _Holds], ...]] = MappingProxyType(
    {
        "Flatten": (("flattened", _is_flattened),),
        "Reshape": (("misshapen", _is_misshapen), ("copied_zero", _copies_zero)),
        **dict.fromkeys(("Squeeze", "Unsqueeze"), (("lost_dimension", _loses_dimension),)),
        "Transpose": (("lost_dimension", _loses_moved),),
        **dict.fromkeys(
            ("ConcatFromSequence", "Loop", "Scan"), (("lost_in_rows", _loses_dimension_of_rows),)
        ),
        "Einsum": (
            ("calculated_from_nothing", _joins_nothing),
            ("lost_dimension", _loses_moved_by_einsum),
            ("moved_axis", _may_move_nothing),
        ),
        **dict.fromkeys(("Gemm", "MatMul"), (("calculated_from_nothing", _multiplies_nothing),)),
        "MatMulInteger": (
            ("calculated_from_nothing", _multiplies_nothing),
            ("sum_of_nothing", _sums_nothing),
        ),
        "QLinearMatMul": (("sum_of_nothing", _sums_nothing),),
        **dict.fromkeys(
            ("GRU", "LSTM", "RNN"),
            (
                ("calculated_from_nothing", _calculates_from_nothing),
                ("batch_may_be_0", _may_have_no_batch),
                ("steps_may_be_0", _may_have_no_steps),
                ("state_may_stay", _may_end_as_it_began),
            ),
        ),
        "Unique": (
            ("calculated_from_nothing", _calculates_from_nothing),
            ("slices_of_nothing", _compares_slices_of_nothing),
        ),
        **dict.fromkeys(
            ("ReduceMax", "ReduceMin"), (("calculated_from_nothing", _reduces_nothing),)
        ),
        "Hardmax": (("calculated_from_nothing", _calculates_from_nothing),),
        **dict.fromkeys(
            ("LogSoftmax", "Softmax"), (("calculated_from_nothing", _compares_nothing),)
        ),
        **dict.fromkeys(
            ("NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss"),
            (("calculated_from_nothing", _weighs_nothing),),
        ),
        **dict.fromkeys(("DFT", "RoiAlign"), (("calculated_from_nothing", _makes_from_nothing),)),
        **dict.fromkeys(
            ("AveragePool", "MaxPool"),
            (("calculated_from_nothing", _pools_nothing), ("empty_planes", _has_empty_planes)),
        ),
        **dict.fromkeys(
            (
                *("GlobalAveragePool", "GlobalLpPool", "GlobalMaxPool", "GridSample"),
                "LpPool",
            ),
            (("empty_planes", _has_empty_planes),),
        ),
        **dict.fromkeys(
            ("Conv", "ConvInteger", "QLinearConv"), (("empty_planes", _convolves_nothing),)
        ),
        "TopK": (("top_of_none", _takes_top_of_none), ("top_may_be_none", _may_take_top_of_none)),
        "Expand": (
            ("expanded_to_nothing", _expands_to_nothing),
            ("expanded_from_nothing", _expands_nothing),
        ),
        "Compress": (
            ("takes_nothing", _takes_nothing),
            ("calculated_from_nothing", _takes_along_axis),
        ),
        "Gather": (
            ("takes_nothing", _takes_nothing),
            ("taken_from_nothing", _takes_from_nothing),
            ("calculated_from_nothing", _takes_nothing_twice),
        ),
    }
)
"""What may hold of nodes and layers, by what ONNX calls them."""


def of_no_elements(ref: NodeRef, facts: Facts, seen: Facts) -> Iterator[str]:
    """Yield the features of a node, or a layer of an IR, that takes or gives no elements."""
    node, known = ref.node, _Known(facts, seen, ref.opset)
    if node.inputs and node.outputs:  # others are refused elsewhere
        features = _FEATURES.get(operator_of(node), ())
        yield from (name for name, holds in features if holds(node, known))
