"""Nodes of which an engine's import makes something else, or nothing."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import chain
from types import MappingProxyType
from typing import TypeAlias

import onnx_ir as ir

from tensorsplit.core.dimensions import Dim, Shape, are_known, is_known, may_be_same, same_shape
from tensorsplit.core.records.openvino import DOMAIN
from tensorsplit.model.features.attention import OF_ATTENTION, is_rotation, overwrites_queries
from tensorsplit.model.features.from_constants import (
    MOST_STEPS,
    is_calculated,
    is_constant,
    is_fixed,
    is_fixed_number,
)
from tensorsplit.model.features.quantized import BYTES, has_blocks
from tensorsplit.model.features.ranks import (
    has_open_channels,
    is_along_third,
    uncounted_scales,
    unseen_operands,
)
from tensorsplit.model.features.transforms import OF_TRANSFORMS
from tensorsplit.model.features.values import operands_of
from tensorsplit.model.graph.axes import given_axes, moves_only_ones, order_of
from tensorsplit.model.graph.batch_first import has_batch_first
from tensorsplit.model.graph.calculation import FLOATS
from tensorsplit.model.graph.called_in_onnx import operator_of
from tensorsplit.model.graph.equations import moves_nothing
from tensorsplit.model.graph.facts import SequenceFact
from tensorsplit.model.graph.held_tensors import constant, tensor_of
from tensorsplit.model.graph.nodes import NodeRef, attribute_of, is_operator, is_used
from tensorsplit.model.graph.producers import (
    KEEPING_ELEMENTS,
    KEEPING_ORDER,
    first_input,
    origins,
    passed_from,
    producer_of,
)
from tensorsplit.model.graph.rejoined import may_pass
from tensorsplit.model.graph.split_records import is_onnx_split
from tensorsplit.model.graph.uses import are_twins
from tensorsplit.model.infer.analysis import Facts
from tensorsplit.model.infer.shape_rules import REDUCTIONS
from tensorsplit.model.openvino_ir.attributes import marked

_ZERO_POINT = 2
"""The place of the zero point of the first factor, or the data, in a product of integers."""


MOST_REPEATED = 2
"""So many axes OpenVINO repeats rightly by counts that it sees at run time."""


def _has_vector_first(ref: NodeRef, seen: Facts) -> bool:
    """Return whether the first factor is a vector, without a zero point, or with a list of one."""
    zero = ref.input(_ZERO_POINT)
    shape = seen.tensor(ref.input(0)).shape
    has_scalar = zero is not None and seen.tensor(zero).shape in (None, ())
    return shape is not None and len(shape) == 1 and not has_scalar


def _omits_zero_point(ref: NodeRef, _seen: Facts) -> bool:
    """Return whether the second of two zero points is given, and the first is not."""
    return ref.input(_ZERO_POINT) is None and ref.input(_ZERO_POINT + 1) is not None


def _is_partly_indexed(ref: NodeRef, seen: Facts) -> bool:
    """Return whether a StridedSlice adds and drops axes, and may not list later ones."""
    if len(ref.node.inputs) < len(("data", "begin")):
        return False
    added, dropped = (marked(ref.node, f"{name}_axis_mask") for name in ("new", "shrink"))
    if not added or not dropped:
        return False
    data, begin = (seen.tensor(value).shape for value in ref.node.inputs[:2])
    listed = begin[0] if begin else None
    return data is None or not isinstance(listed, int) or listed - added < len(data)


def _repeats_many_axes(ref: NodeRef, seen: Facts) -> bool:
    """Return whether a Tile repeats more than two axes of four or more, as known at run time."""
    if len(ref.node.inputs) != len(("data", "counts")):
        return False
    data, counts = ref.node.inputs
    rank = len(seen.tensor(data).shape or ())
    known = [seen.tensor(each) for each in operands_of(counts, "Concat") or [counts]]
    sizes = [(each.shape or (rank,))[0] for each in known]
    listed = (
        each.values or (None,) * (min(size, rank) if is_known(size) else rank)
        for each, size in zip(known, sizes, strict=True)
    )
    repeated = [each for each in chain(*listed) if each != 1]
    are_many = rank > MOST_REPEATED + 1 and len(repeated) > MOST_REPEATED
    return are_many and not is_constant(counts, seen)


def chosen_conditions(node: ir.Node, seen: Facts) -> list[int]:
    """Return the places of what a choice of booleans gives that is the condition itself.

    Nodes that change nothing may be in between, and two that do the same are one.
    """

    def unchanged(made: ir.Node) -> ir.Value | None:
        held = first_input(made)
        shapes = [seen.tensor(each).shape for each in (held, *made.outputs[:1])]
        is_same = operator_of(made) in ("Cast", "Identity") or same_shape(*shapes)
        ends = held, next(iter(made.outputs), None)
        are_truths = all(seen.element_types(end) == {ir.DataType.BOOL} for end in ends)
        is_passed = may_pass(made, 0) or operator_of(made) == "Cast"
        return held if is_passed and is_same and are_truths else None

    condition, *chosen = ([held, *origins(held, unchanged)][-1] for held in node.inputs)
    return [i for i, held in enumerate(chosen, 1) if _is_made_alike(held, condition)]


def _is_made_alike(held: ir.Value | None, other: ir.Value | None) -> bool:
    """Return whether two values are one, or of two nodes that do the same, at the same place."""
    if held is None or other is None or held is other:
        return held is not None and held is other
    one, two = held.producer(), other.producer()
    if one is None or two is None or not are_twins(one, two):
        return False
    return held.index() == other.index()


def _chooses_condition(ref: NodeRef, seen: Facts) -> bool:
    return bool(ref.node.inputs and chosen_conditions(ref.node, seen))


_FUSED_WITH_GROUPS = frozenset(
    {
        *("Add", "Div", "Divide", "Max", "Maximum", "Mean", "Min", "Minimum", "Mul", "Multiply"),
        *("PRelu", "PReLU", "Pow", "Power", "Select", "Sub", "Subtract", "Sum", "Where"),
    }
)
"""What OpenVINO calculates together with the GroupNormalization before it, of nodes and layers."""


def _joins_groups(ref: NodeRef, seen: Facts) -> bool:
    """Return whether a normalization of a known shape is joined with what others calculate."""
    made = next(iter(ref.node.outputs), None)
    shape = seen.tensor(first_input(ref.node)).shape  # that of the result, too
    if made is None or shape is None or not are_known(shape):
        return False
    waiting = [made]
    for held in waiting:
        for reader in (use.node for use in held.uses()):
            operator = operator_of(reader)
            if operator in _FUSED_WITH_GROUPS:
                others = [each for each in reader.inputs if each not in (None, *waiting)]
                if any(_is_calculated_elsewhere(each, waiting, seen) for each in others):
                    return True
                passed = not all(each in waiting for each in reader.inputs)
            else:
                passed = operator in KEEPING_ORDER  # OpenVINO leaves them to the next node
            if passed and len(waiting) < MOST_STEPS:
                waiting += [each for each in reader.outputs[:1] if each not in waiting]
    return False


def _is_grouped_in_body(ref: NodeRef, seen: Facts) -> bool:
    """Return whether a normalization of a known shape is in a body that stays one."""
    shape = seen.tensor(ref.input(0)).shape
    staying = (
        node.op_type != "If" or seen.tensor(first_input(node)).constant is None
        for node in ref.outer
    )
    return shape is not None and are_known(shape) and any(staying)


def _is_calculated_elsewhere(held: ir.Value | None, made: list[ir.Value], seen: Facts) -> bool:
    """Return whether nodes calculate a value, from others than some."""
    by = producer_of(held)
    if by is None or is_fixed(held, seen):
        return False
    return not all(each is None or each in made or is_fixed(each, seen) for each in by.inputs)


_FIRST_WITHOUT_TEST_MODE = 7
"""Before, an attribute of a Dropout tells whether it only passes on its data."""

_FIRST_WITH_TRAINING_MODE = 12
"""From then on an input of a Dropout does."""


def is_in_training(ref: NodeRef, _: Facts) -> bool:
    """Return whether the mode of a Dropout is anything but the constant false."""
    if ref.opset < _FIRST_WITHOUT_TEST_MODE:
        return not attribute_of(ref.node, "is_test", ir.AttributeType.INT, 0)
    mode = constant(ref.input(2))
    return ref.input(2) is not None and (mode is None or bool(mode.any()))


def _uses_old_mask(ref: NodeRef, _: Facts) -> bool:
    """Return whether something reads the mask of a Dropout that can't be in training mode."""
    in_force = range(_FIRST_WITHOUT_TEST_MODE, _FIRST_WITH_TRAINING_MODE)
    return ref.opset in in_force and any(map(is_used, ref.node.outputs[1:]))


def _drops_given(ref: NodeRef, _: Facts) -> bool:
    """Return whether a Dropout is of an input of the model, or of what a body takes from around.

    Of an input of a body, it is if the body gives out the result.
    """
    data = ref.input(0)
    if data is None or tensor_of(data) is not None:
        return False
    is_main = not ref.around and ref.function is None
    if is_main or data.graph is not ref.node.graph:
        return not is_main or data.is_graph_input()
    return data.is_graph_input() and _is_given_out(ref.node)


def _is_given_out(node: ir.Node) -> bool:
    """Return whether a graph gives out the result of a Dropout, or of Dropouts of that."""
    results = [*node.outputs[:1]]
    for held in results:
        after = (each for each in held.consumers() if each.op_type == "Dropout")
        results += [made for each in after for made in each.outputs[:1] if made not in results]
    return any(held.is_graph_output() for held in results)


def narrow_axes(ref: NodeRef, seen: Facts) -> list[tuple[int, int]]:
    """Return the axes along which there are fewer indices than data, and how many.

    They are those that the indices do not count.
    """
    data, indices = (seen.tensor(held).shape or () for held in (ref.input(0), ref.input(1)))
    axis = attribute_of(ref.node, "axis", ir.AttributeType.INT, 0)
    if axis is None:  # that of a call
        return []
    return [
        (place, count)
        for place, (dim, count) in enumerate(zip(data, indices, strict=False))
        if axis not in (place, place - len(data))
        and is_known(dim)
        and is_known(count)
        and count < dim
    ]


def _has_no_coordinates(ref: NodeRef, seen: Facts) -> bool:
    """Return whether each index has no number, and so stands for all of the data."""
    shape = seen.tensor(ref.input(1)).shape or (None,)
    return shape[-1] == 0 and 0 not in (*shape[:-1], *(seen.tensor(ref.input(0)).shape or ()))


def _gives_places(ref: NodeRef, _: Facts) -> bool:
    """Return whether the places of the elements are used that a TopK gives."""
    return any(map(is_used, ref.node.outputs[1:]))


def _is_of_a_number(ref: NodeRef, seen: Facts) -> bool:
    """Return whether the first input is one number, of rank 0."""
    return seen.tensor(ref.input(0)).shape == ()


_FIRST_BY_LAST_AXIS = 7
"""Before, the slopes of a PRelu are one for each channel."""


def _has_list_of_slopes(ref: NodeRef, seen: Facts) -> bool:
    """Return whether the slopes are a list along the last axis of data of three axes or more.

    Before opset 7 they are one for each channel, and so are those that do not fit that axis.
    """
    data, slopes = seen.tensor(ref.input(0)).shape, seen.tensor(ref.input(1)).shape
    if ref.opset < _FIRST_BY_LAST_AXIS or slopes is None or len(slopes) != 1 or slopes == (1,):
        return False
    return data is None or (len(data) > 2 and may_be_same(data[-1:], slopes))


_Holds: TypeAlias = Callable[[NodeRef, Facts], object]


def _moves_nothing(ref: NodeRef, _: Facts) -> bool:
    """Return whether an Einsum gives what it reads."""
    equation = attribute_of(ref.node, "equation", ir.AttributeType.STRING, "")
    return moves_nothing(equation or "")


def _squeezes_constant(ref: NodeRef, seen: Facts) -> bool:
    """Return whether a Squeeze is of a constant, by axes that are known only at run time."""
    axes = ref.input(1)
    return axes is not None and not is_fixed(axes, seen) and is_fixed(ref.input(0), seen)


def _is_compared(ref: NodeRef, seen: Facts) -> bool:
    """Return whether nodes ask if the largest or lowest of floats is some number, or infinite."""
    made = next(iter(ref.node.outputs), None)
    if made is None or _FLOATS.isdisjoint(seen.element_types(made)):
        return False
    return any(operator_of(reader) in ("Equal", "IsInf") for reader in made.consumers())


_PULLED = frozenset(REDUCTIONS) - {"ReduceLogSumExp", "ReduceSumSquare"}
"""The reductions that OpenVINO puts before an Unsqueeze of their data."""


def _mistakes_pulled_axes(ref: NodeRef, seen: Facts) -> bool:
    """Return whether axes are mistaken once a reduction is put before the Unsqueeze of its data.

    Those from the back are still counted with the axes that are added after them; and of data of a
    known shape axes that are kept are lost before one that is added at the end. With one
    unknown dimension the Unsqueeze is a Reshape, which stays where it is. Bools are right.
    """
    adding = producer_of(passed_from(ref.input(0)))
    if not is_operator(adding, "Unsqueeze"):
        return False
    if ir.DataType.BOOL in seen.element_types(ref.input(0)):
        return False
    shape = seen.tensor(first_input(adding)).shape
    added, given = given_axes(adding), given_axes(ref.node)
    if shape is None or not added or not given or [*map(is_known, shape)].count(False) == 1:
        return False
    rank = len(shape) + len(added)
    if not all(-rank <= axis < rank for axis in (*added, *given)):
        return False
    is_kept = attribute_of(ref.node, "keepdims", ir.AttributeType.INT, 1) != 0
    return _are_mistaken(added, given, rank, is_kept=is_kept, is_open=not are_known(shape))


def _are_mistaken(
    added: list[int], given: list[int], rank: int, *, is_kept: bool, is_open: bool
) -> bool:
    """Return whether OpenVINO mistakes the axes that are reduced, or added, of data of a rank."""
    places, reduced = {axis % rank for axis in added}, {axis % rank for axis in given}
    if not places.isdisjoint(reduced):
        return False
    if any(axis < 0 and max(places) > axis % rank for axis in given):
        return True
    if is_kept:
        return not is_open and max(places) > min(reduced) + 1
    return is_open and any(axis < 0 and max(reduced) > axis % rank for axis in added)


def _ignores_list(ref: NodeRef, seen: Facts) -> bool:
    """Return whether a Gather along the one axis that an Unsqueeze adds is left out with it.

    It should be by a number alone, but is by a constant list as well. Axes that are counted from
    different ends are not taken for the same.
    """
    adding = producer_of(passed_from(ref.input(0)))
    if not is_operator(adding, "Unsqueeze"):
        return False
    shape, indices = seen.tensor(first_input(adding)).shape, constant(ref.input(1))
    if shape is None or indices is None or not indices.ndim:
        return False
    axis = attribute_of(ref.node, "axis", ir.AttributeType.INT, 0)
    return given_axes(adding) == [axis] and [*map(is_known, shape)].count(False) > 1


_RANK_OF_PLANES = 4


def _samples_others(ref: NodeRef, seen: Facts) -> bool:
    """Return whether a GridSample is of data whose rank is known, and not that of planes."""
    shape = seen.tensor(ref.input(0)).shape
    return shape is not None and len(shape) != _RANK_OF_PLANES


def _has_scales(place: int, ref: NodeRef, seen: Facts) -> bool:
    """Return whether an operand is known to be several scales, not one."""
    shape = seen.tensor(ref.input(place)).shape
    return shape is not None and any(is_known(dim) and dim != 1 for dim in shape)


def _is_of_volumes(ref: NodeRef, seen: Facts) -> bool:
    """Return whether a Col2Im is known to make images of another rank than 2."""
    shape = seen.tensor(ref.input(1)).shape
    return shape is not None and len(shape) == 1 and is_known(shape[0]) and shape[0] != _IMAGE_RANK


def _pads_open_data(ref: NodeRef, seen: Facts) -> bool:
    """Return whether a ConvTranspose pads as SAME data of which not each dimension is seen."""
    pads = attribute_of(ref.node, "auto_pad", ir.AttributeType.STRING, "NOTSET") or ""
    shape = seen.tensor(ref.input(0)).shape
    return pads.startswith("SAME") and (shape is None or not are_known(shape))


def _pads_by_fed(ref: NodeRef, seen: Facts) -> bool:
    """Return whether a Pad fills with a value that is known only at run time."""
    mode = attribute_of(ref.node, "mode", ir.AttributeType.STRING, "constant")
    value = ref.input(2)
    return mode == "constant" and value is not None and not is_fixed(value, seen)


def _slices_to_fed(ref: NodeRef, seen: Facts) -> bool:
    """Return whether a Slice has a start or an end that follows from more than shapes."""
    bounds = [held for held in (ref.input(1), ref.input(2)) if held is not None]
    return not all(is_constant(held, seen) or is_calculated(held, seen) for held in bounds)


_OUTPUT_SHAPE = 2
"""The place of the shape that a MaxUnpool gives."""

_FIRST_WITHOUT_LATE_WINDOWS = 22
"""From here on no window of a pool starts beyond the data and the padding before it."""


def _has_late_window(ref: NodeRef, seen: Facts) -> bool:
    """Return whether one more window of a MaxPool would start after the data, rounded up.

    Where the length of an axis is not seen, one may.
    """
    node, shape = ref.node, seen.tensor(ref.input(0)).shape
    kernel = attribute_of(node, "kernel_shape", ir.AttributeType.INTS) or ()
    is_rounded_up = attribute_of(node, "ceil_mode", ir.AttributeType.INT, 0)
    if ref.opset < _FIRST_WITHOUT_LATE_WINDOWS or not is_rounded_up:
        return False
    count = len(kernel)
    strides, dilations, pads = (
        attribute_of(node, name, ir.AttributeType.INTS) or (usual,) * count * sides
        for name, usual, sides in (("strides", 1, 1), ("dilations", 1, 1), ("pads", 0, 2))
    )
    dims = (shape or ())[-count:] if count else ()
    windows = zip(kernel, strides, dilations, pads[:count], pads[count:], strict=False)
    return any(
        _starts_late(dims[axis] if axis < len(dims) else None, window)
        for axis, window in enumerate(windows)
    )


def _starts_late(dim: Dim, window: tuple[int, int, int, int, int]) -> bool:
    """Return whether a last window along an axis may start where there are no more data."""
    size, stride, by, before, after = window
    if stride < 1:  # which is refused elsewhere
        return False
    reach = (size - 1) * by + 1
    missing = -(dim + before + after - reach) % stride if is_known(dim) else stride - 1
    return bool(missing) and missing + after >= reach


_FLOATS = frozenset({*FLOATS, ir.DataType.BFLOAT16})


def _floors_floats(ref: NodeRef, seen: Facts) -> bool:
    """Return whether a Mod is of floats, and its result has the sign of the divisor."""
    is_floored = not attribute_of(ref.node, "fmod", ir.AttributeType.INT, 0)
    return is_floored and not _FLOATS.isdisjoint(seen.element_types(ref.input(0)))


def _has_symmetric_blocks(ref: NodeRef, _: Facts) -> bool:
    """Return whether a QuantizeLinear is in blocks, without a zero point."""
    return has_blocks(ref.node) and ref.input(_ZERO_POINT) is None


_EXACT_IN_BFLOAT16 = frozenset(
    {*(ir.DataType.BFLOAT16, ir.DataType.BOOL, ir.DataType.STRING), *BYTES}
)
"""Types of which bfloat16 has all values, or is not cast to."""


_CUT_IN_FLOAT8 = (ir.DataType.FLOAT8E4M3FN, ir.DataType.FLOAT8E5M2)


def _casts_to(ref: NodeRef, seen: Facts, *kinds: ir.DataType) -> bool:
    """Return whether a node casts to one of some types from another one."""
    before = seen.element_types(ref.input(0))
    after = seen.element_types(next(iter(ref.node.outputs), None))
    return after != before and any(after == {kind} for kind in kinds)


def _cuts_off(ref: NodeRef, seen: Facts) -> bool:
    """Return whether a node casts to bfloat16 what has more bits, and a shape that is not seen."""
    types, shape = seen.element_types(ref.input(0)), seen.tensor(ref.input(0)).shape
    is_open = shape is None or not are_known(shape)
    is_cast = _casts_to(ref, seen, ir.DataType.BFLOAT16)
    return is_cast and is_open and not types <= _EXACT_IN_BFLOAT16


def _saturates(ref: NodeRef, seen: Facts) -> bool:
    """Return whether a node has to cast what float8 does not hold to its largest number."""
    has_largest = attribute_of(ref.node, "saturate", ir.AttributeType.INT, 1)
    return bool(has_largest) and _casts_to(ref, seen, *_CUT_IN_FLOAT8)


_EXACT_IN_FLOAT16 = frozenset({*(ir.DataType.FLOAT16, ir.DataType.BOOL), *BYTES})
"""Types of which float16 has all values."""


def _rounds_twice(ref: NodeRef, seen: Facts) -> bool:
    """Return whether a node rounds numbers, which float16 does not hold, to float8."""
    quotients = operator_of(ref.node) == "QuantizeLinear"
    is_exact = seen.element_types(ref.input(0)) <= _EXACT_IN_FLOAT16 and not quotients
    return not is_exact and _casts_to(ref, seen, *_CUT_IN_FLOAT8)


def _rounds_powers(ref: NodeRef, seen: Facts) -> bool:
    """Return whether a node casts to powers of two that are not the nearest ones."""
    mode = attribute_of(ref.node, "round_mode", ir.AttributeType.STRING, "up")
    return mode != "nearest" and _casts_to(ref, seen, ir.DataType.FLOAT8E8M0)


_CAST_TESTS: tuple[tuple[str, _Holds], ...] = (
    ("cut_to_bfloat16", _cuts_off),
    ("beyond_float8", _saturates),
    ("rounded_to_float16", _rounds_twice),
    ("rounded_powers", _rounds_powers),
)

_JOINED_TO_PRODUCTS = frozenset({"Add", "Div", "Mul", "PRelu", "Sub"})
"""What OpenVINO calculates together with the product before it."""


_LEAVES_OUT = frozenset(REDUCTIONS) - {"ReduceLogSum", "ReduceLogSumExp"}
"""The reductions after which OpenVINO leaves out what only gives their results another shape."""


def _is_left_out(ref: NodeRef, seen: Facts) -> bool:
    """Return whether a node gives results of a reduction, without its axes, another shape.

    One is left out that gives a length of 1 at the place that a reduced axis had: a Reshape of two
    axes, or a Transpose that moves only such of length 1, and exchanges them. Reshapes to more axes
    stay, those that were tried, and those that have a -1 there; bools are right.
    """
    held, made = ref.input(0), producer_of(passed_from(ref.input(0)))
    if made is None or operator_of(made) not in _LEAVES_OUT or not ref.node.outputs:
        return False
    if attribute_of(made, "keepdims", ir.AttributeType.INT, 1) != 0:
        return False
    shapes = (seen.tensor(each).shape for each in (first_input(made), held, ref.node.outputs[0]))
    data, before, after = ((None,) if shape is None else shape for shape in shapes)
    if ir.DataType.BOOL in seen.element_types(held) or len(before) != len(after):
        return False
    places = {axis % max(len(data), 1) for axis in given_axes(made) or ()}
    pairs = enumerate(zip(before, after, strict=True))
    written = seen.tensor(ref.input(1)).constant or ()
    is_lost = any(
        place in places and new == 1 != old and -1 not in written[place : place + 1]
        for place, (old, new) in pairs
    )
    return is_lost and _gives_same_order(ref.node, before)


def _gives_same_order(node: ir.Node, shape: Shape) -> bool:
    """Return whether a node is a Reshape of two axes, or exchanges axes of length 1 with others."""
    if operator_of(node) == "Reshape":
        return len(shape) == _IMAGE_RANK
    order = order_of(node, len(shape))
    if sorted(order) != [*range(len(shape))] or any(
        order[axis] != i for i, axis in enumerate(order)
    ):
        return False
    return moves_only_ones(order, shape)


_SCALING = frozenset({"Add", "Div", "Mul", "Sub"})
"""What OpenVINO calculates together with a reduction, by one constant number."""

_SEQUENCE_RANK = 3


def _is_scaled_with_integers(ref: NodeRef, seen: Facts) -> bool:
    """Return whether what is alone calculated with the integers of a reduction is so in one row.

    They are of three axes, reduced along the second, or the last two. In between may be an Abs, or
    what only gives the result another shape.
    """
    shape, axes = seen.tensor(ref.input(0)).shape, given_axes(ref.node)
    if shape is None or len(shape) != _SEQUENCE_RANK or shape[0] in (0, 1) or not axes:
        return False
    if {axis % _SEQUENCE_RANK for axis in axes} not in ({1}, {1, 2}):
        return False
    kinds = seen.element_types(ref.input(0))
    if not kinds or not all(kind.is_integer() for kind in kinds):
        return False
    held = next(iter(ref.node.outputs), None)
    for _ in range(MOST_STEPS):
        readers = [] if held is None else [use.node for use in held.uses()]
        if held is None or len(readers) != 1 or held.is_graph_output():
            break
        if operator_of(readers[0]) == "Neg" or _is_by_number(readers[0], held, seen):
            return True
        is_passed = operator_of(readers[0]) in KEEPING_ELEMENTS | {"Abs"}
        held = next(iter(readers[0].outputs), None) if is_passed else None
    return False


def _is_by_number(node: ir.Node, held: ir.Value, seen: Facts) -> bool:
    """Return whether a node adds, multiplies or divides a value and one constant number."""
    others = [each for each in node.inputs if each is not held]
    is_of_two = operator_of(node) in _SCALING and len(others) == 1
    return is_of_two and is_fixed_number(others[0], seen)


_SCALE_OR_AXES = 1
"""The input of a DequantizeLinear that holds its scale, and that of a reduction with its axes."""


def _is_scaled_by_part(ref: NodeRef, seen: Facts) -> bool:
    """Return whether the one scale is one of several parts, or one of a sequence of several."""
    scale = ref.input(_SCALE_OR_AXES)
    return seen.tensor(scale).shape == (1,) and _is_one_of_parts(scale, seen)


def _has_axes_in_part(ref: NodeRef, seen: Facts) -> bool:
    """Return whether axes, of a known number, are one of several parts; none may be."""
    axes = ref.input(_SCALE_OR_AXES)
    shape = seen.tensor(axes).shape
    return (
        shape is not None and are_known(shape) and 0 not in shape and _is_one_of_parts(axes, seen)
    )


def _is_one_of_parts(held: ir.Value | None, seen: Facts) -> bool:
    made = None if held is None else held.producer()
    if made is None:
        return False
    if is_onnx_split(made):
        return len(made.outputs) > 1
    taken = first_input(made) if operator_of(made) == "SequenceAt" else None
    source, fact = None if taken is None else taken.producer(), seen.of(taken)
    if source is None or not is_onnx_split(source):
        return False
    return isinstance(fact, SequenceFact) and is_known(fact.count) and fact.count > 1


def _measures_shape(ref: NodeRef, seen: Facts) -> bool:
    """Return whether a Size counts known dimensions of a Shape, whose product is another number.

    ONNX Runtime multiplies them as it loads a model, also after nodes that pass them on.
    """
    passed = origins(ref.input(0), lambda node: first_input(node) if _passes_on(node) else None)
    dims = seen.tensor(ref.input(0)).constant
    is_of_shape = any(is_operator(producer_of(each), "Shape") for each in passed)
    return is_of_shape and dims is not None and math.prod(dims) != len(dims)


def _passes_on(node: ir.Node) -> bool:
    return is_operator(node, "Cast", "Identity")


def _has_open_columns(ref: NodeRef, seen: Facts) -> bool:
    """Return whether a product of open width meets a list of numbers, one for each column.

    That is one of a factor that is turned, or of integers; the list is the last operand of a Gemm,
    or one of a node that reads the product.
    """
    node, made = ref.node, next(iter(ref.node.outputs), None)
    shape = seen.tensor(made).shape
    if made is None or not shape or is_known(shape[-1]) or not _is_turned(node, seen):
        return False
    readers = [each for each in made.consumers() if operator_of(each) in _JOINED_TO_PRODUCTS]
    others = [held for each in readers for held in each.inputs if held is not made]
    return any(_is_list(held, seen) for held in (*others, *node.inputs[2:]))


def _is_turned(node: ir.Node, seen: Facts) -> bool:
    """Return whether a product transposes a factor, is of one that is, or is of integers."""
    names = ("transA", "transB")
    if any(attribute_of(node, name, ir.AttributeType.INT, 0) for name in names):
        return True
    made_by = [made for each in node.inputs[:2] if (made := producer_of(each)) is not None]
    has_turned = any(operator_of(made) == "Transpose" for made in made_by)
    types = seen.element_types(next(iter(node.outputs), None))
    return has_turned or (bool(types) and types.isdisjoint(_FLOATS))


def _is_list(held: ir.Value | None, seen: Facts) -> bool:
    """Return whether a value is a constant of several numbers along the last axis alone."""
    shape = seen.tensor(held).shape
    if not shape or shape[-1] == 1 or not {*shape[:-1]} <= {1}:
        return False
    return is_fixed(held, seen)


_IMAGE_RANK = 2

_TESTS_OF_BOTH: Mapping[str, tuple[tuple[str, _Holds], ...]] = {
    "Add": (("rotation", is_rotation),),
    "Einsum": (("unmoved", _moves_nothing),),
    "GroupNormalization": (
        ("joined_groups", _joins_groups),
        ("grouped_in_body", _is_grouped_in_body),
    ),
    "Tile": (("many_repeated", _repeats_many_axes),),
}
"""What may hold of nodes and layers of one name."""

_PEEPHOLES = 7
"""The input of an LSTM by which its gates look at the cell."""

_RECURRENCE_TESTS: tuple[tuple[str, _Holds], ...] = (
    ("batch_first", lambda ref, _: has_batch_first(ref.node)),
)

_PRODUCT_TESTS: tuple[tuple[str, _Holds], ...] = (("open_columns", _has_open_columns),)

_WEIGHT_TESTS: tuple[tuple[str, _Holds], ...] = (("overwritten_queries", overwrites_queries),)

_CHOICE_TESTS: tuple[tuple[str, _Holds], ...] = (("chosen_condition", _chooses_condition),)

_PULLED_TEST: tuple[tuple[str, _Holds], ...] = (("pulled_axes", _mistakes_pulled_axes),)

_LEFT_OUT_TEST: tuple[tuple[str, _Holds], ...] = (("left_out", _is_left_out),)

_AXES_TEST: tuple[tuple[str, _Holds], ...] = (
    ("one_of_parts", _has_axes_in_part),
    ("scaled_integers", _is_scaled_with_integers),
)

_NODE_TESTS: Mapping[str, tuple[tuple[str, _Holds], ...]] = MappingProxyType(
    {
        **_TESTS_OF_BOTH,
        "Where": _CHOICE_TESTS,
        **dict.fromkeys(("GRU", "RNN"), _RECURRENCE_TESTS),
        "LSTM": (*_RECURRENCE_TESTS, ("peepholes", lambda ref, _: ref.input(_PEEPHOLES))),
        **OF_ATTENTION,
        **dict.fromkeys(("Cast", "CastLike"), _CAST_TESTS),
        "Col2Im": (("columns_of_volumes", _is_of_volumes),),
        "ConvInteger": (
            ("omitted_zero_point", _omits_zero_point),
            ("zero_points_of_weights", partial(_has_scales, _ZERO_POINT + 1)),
        ),
        "ConvTranspose": (("open_same", _pads_open_data),),
        **OF_TRANSFORMS,
        "DequantizeLinear": (("one_of_parts", _is_scaled_by_part),),
        "Dropout": (
            ("training_mode", is_in_training),
            ("drops_given", _drops_given),
            ("unfilled_mask", _uses_old_mask),
        ),
        "GatherElements": (("narrow_indices", narrow_axes),),
        "GatherND": (("no_coordinates", _has_no_coordinates),),
        "Gemm": _PRODUCT_TESTS,
        "MatMul": (*_PRODUCT_TESTS, *_WEIGHT_TESTS),
        "MatMulInteger": (
            *_PRODUCT_TESTS,
            ("omitted_zero_point", _omits_zero_point),
            ("vector_first", _has_vector_first),
        ),
        "GlobalLpPool": (("open_planes", lambda ref, seen: unseen_operands(ref.node, seen)),),
        "GridSample": (("sampled_volume", _samples_others),),
        "MaxPool": (("late_window", _has_late_window),),
        "MaxUnpool": (("unpooled_shape", lambda ref, _: ref.input(_OUTPUT_SHAPE)),),
        "Mod": (("floored_floats", _floors_floats),),
        "NegativeLogLikelihoodLoss": (
            ("ignored_class", lambda ref, _: "ignore_index" in ref.node.attributes),
        ),
        "NonZero": (("places_in_a_number", _is_of_a_number),),
        "OneHot": (("one_index", _is_of_a_number),),
        "PRelu": (("list_of_slopes", _has_list_of_slopes),),
        "Pad": (("fed_padding", _pads_by_fed),),
        "QLinearMatMul": (
            ("scales_of_rows", partial(_has_scales, 1)),
            ("scales_of_columns", partial(_has_scales, 4)),
        ),
        "QuantizeLinear": (
            ("uncounted_scales", lambda ref, seen: uncounted_scales(ref.node, seen)),
            ("open_channels", has_open_channels),
            ("along_third", is_along_third),
            ("symmetric_blocks", _has_symmetric_blocks),
            ("rounded_to_float16", _rounds_twice),
        ),
        "ScatterND": (("no_coordinates", _has_no_coordinates),),
        "Gather": (("ignored_list", _ignores_list),),
        **dict.fromkeys(REDUCTIONS, _AXES_TEST),
        **dict.fromkeys(_PULLED, (*_AXES_TEST, *_PULLED_TEST)),
        **dict.fromkeys(
            ("ReduceMax", "ReduceMin"),
            (*_AXES_TEST, *_PULLED_TEST, ("compared_extreme", _is_compared)),
        ),
        "RoiAlign": (
            ("omitted_sampling", lambda ref, _: "sampling_ratio" not in ref.node.attributes),
        ),
        **dict.fromkeys(("Reshape", "Transpose"), _LEFT_OUT_TEST),
        "Squeeze": (("squeezed_constant", _squeezes_constant),),
        "Size": (("measured_shape", _measures_shape),),
        "Slice": (("fed_bounds", _slices_to_fed),),
        "TopK": (("ties", _gives_places),),
    }
)

_LAYER_TESTS: Mapping[str, tuple[tuple[str, _Holds], ...]] = MappingProxyType(
    {
        **_TESTS_OF_BOTH,
        **dict.fromkeys(("MatMul", "ScaledDotProductAttention"), _WEIGHT_TESTS),
        "Select": _CHOICE_TESTS,
        "StridedSlice": (("partly_indexed", _is_partly_indexed),),
    }
)


def of_misread(ref: NodeRef, seen: Facts) -> Iterator[str]:
    """Yield the features of a node or a layer of which an engine makes something else."""
    is_layer = ref.node.domain == DOMAIN
    if is_layer and len(ref.node.outputs) != 1:
        return  # it is malformed
    table = _LAYER_TESTS if is_layer else _NODE_TESTS
    yield from (name for name, holds in table.get(ref.op_type, ()) if holds(ref, seen))
