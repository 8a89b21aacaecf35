"""Ranks that engines have to know, where a model has them only at run time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice

import onnx_ir as ir

from tensorsplit.core.dimensions import Shape, are_known, is_known
from tensorsplit.model.features.body_features import hides_ranks, is_along_axis
from tensorsplit.model.features.from_constants import MOST_STEPS, is_constant, is_fixed
from tensorsplit.model.features.values import has_known_shape, is_empty
from tensorsplit.model.graph.called_in_onnx import gives_shape, operator_of
from tensorsplit.model.graph.facts import SequenceFact
from tensorsplit.model.graph.loops import carried_by
from tensorsplit.model.graph.nodes import (
    NodeRef,
    attribute_of,
    given_in_branches,
    is_operator,
    is_used,
)
from tensorsplit.model.graph.producers import first_input, origins
from tensorsplit.model.graph.rejoined import first_passed
from tensorsplit.model.graph.split_records import is_onnx_split
from tensorsplit.model.graph.uses import is_needed
from tensorsplit.model.infer.analysis import Facts
from tensorsplit.model.infer.shape_rules import REDUCTIONS

_CONVOLUTIONS = ("Conv", "ConvInteger", "ConvTranspose")

SEEN_OPERANDS: Mapping[str, Mapping[int, int | None]] = {
    **{each: {1: None} for each in (*REDUCTIONS, *_CONVOLUTIONS, "Tile")},
    "Col2Im": {1: None, 2: None},
    "CumSum": {1: 1},
    **{each: {0: None} for each in ("DequantizeLinear", "GlobalLpPool", "QuantizeLinear")},
    "NonMaxSuppression": {0: None, 2: 1, 3: 1, 4: 1},
    "OneHot": {1: 1, 2: 2},
    "QLinearConv": {3: None},
    "QLinearMatMul": {1: 1, 2: 1, 4: 1, 5: 1},
    "RoiAlign": {1: None},
    "RotaryEmbedding": {1: None},
    "STFT": {0: None},
    "TopK": {1: 1},
}
"""Operands whose shape OpenVINO has to know as it loads a model; how many numbers they always are.

Those are weights, axes, counts and single numbers, and data in blocks, of signals or of boxes.
"""

_SEEN_IN_PART = {
    "GlobalLpPool": slice(2),
    "NonMaxSuppression": slice(-1, None),
    "RoiAlign": slice(-1, None),
    "RotaryEmbedding": slice(-1, None),
}
"""Operators of which it has to know some dimensions of these alone: planes, or the last one."""

_SEEN_IN_BLOCKS = frozenset({"DequantizeLinear", "QuantizeLinear"})
"""Operators of which it has to know these only where they have the attribute `block_size`."""

SIZES = {"Resize": 3}
"""The operand that gives the sizes."""

_BROADCASTING = frozenset(
    {"Add", "Div", "Equal", "Greater", "Less", "Max", "Min", "Mul", "Sub", "Where"}
)
"""Operators whose result is as long as one of their inputs gives."""

_LENGTH_FROM = {
    **dict.fromkeys(("Cast", "Ceil", "Floor", "Identity", "Round", "Slice", "Split"), 1),
    **dict.fromkeys(("Concat", *_BROADCASTING)),
}
"""Operators whose results have the lengths of so many of their first inputs, or of all of them."""

_RANKED_BY = {
    "Expand": False,
    "Reshape": False,
    "Squeeze": True,
    "Tile": False,
    "Unsqueeze": True,
}
"""Layers whose second operand gives a rank; whether its elements do so, or their number."""


def of_ranks(ref: NodeRef, seen: Facts) -> Iterator[str]:
    """Yield the features of ranks that an engine has to know at import, and sees only at run time.

    That is how many axes a node takes, or a tensor has, and how long a list is of which a node
    measures an element. Of nodes with tensors of unknown rank in a row, the first one has the
    feature: the one that reads an input of the model, or gives what is not known of what is. What
    nothing needs does not count.
    """
    node = ref.node
    if gives_shape(node) and _is_of_element(node, seen) and is_needed(node.outputs[0]):
        yield "measured_element"
    if any(map(is_needed, _scalars_or_lists(node, seen))):
        yield "scalar_or_list"
    if _hides_sizes(ref, seen):
        yield "uncounted_sizes"
    if unseen_operands(node, seen):
        feature, made = "unseen_operand", list(node.outputs)
    elif node.op_type == "Compress" and _is_whole(node, seen):
        feature, made = "compressed_whole", list(node.outputs)
    else:
        feature, made = "unknown_rank", _open_at_first(ref, seen)
    if any(map(is_needed, made)):
        yield feature


def unseen_operands(node: ir.Node, seen: Facts) -> list[int]:
    """Return which operands of a node have a shape that is not seen where it has to be."""
    places = SEEN_OPERANDS.get(node.op_type, {}) if node.domain == "" else {}
    if node.op_type in _SEEN_IN_BLOCKS and "block_size" not in node.attributes:
        return []
    given = [(place, node.inputs[place]) for place in places if place < len(node.inputs)]
    part = _SEEN_IN_PART.get(node.op_type, slice(None))
    shapes = [(place, seen.tensor(held).shape) for place, held in given if held is not None]
    return [place for place, shape in shapes if shape is None or not are_known(shape[part])]


def uncounted_scales(node: ir.Node, seen: Facts) -> list[int]:
    """Return which operands of a QuantizeLinear are lists whose length is not seen, but has to be.

    That is where the dimension of the data is seen that it has to equal.
    """
    if channels_of(node, seen) is None:
        return []
    shapes = [seen.tensor(held).shape for held in node.inputs[1:3] if held is not None]
    is_open = [shape is not None and len(shape) == 1 and not is_known(shape[0]) for shape in shapes]
    return [place for place, is_unseen in enumerate(is_open, 1) if is_unseen]


def has_open_channels(ref: NodeRef, seen: Facts) -> bool:
    """Return whether a QuantizeLinear has scales along an axis whose dimension is not seen.

    Along the last axis of a known rank it need not be.
    """
    node, shape = ref.node, seen.tensor(ref.input(0)).shape
    if not _is_by_channels(ref, seen):
        return False
    is_last = shape is not None and axis_of_scales(node, shape) == len(shape) - 1
    return channels_of(node, seen) is None and not is_last


def _is_by_channels(ref: NodeRef, seen: Facts) -> bool:
    """Return whether a QuantizeLinear may have a scale for each channel, and not for each block."""
    return "block_size" not in ref.node.attributes and is_along_axis(ref.node, ref.opset, seen)


SECOND, _THIRD = 1, 2
"""Axes; OpenVINO's CPU plugin quantises data of an open shape along any but the third."""


def is_along_third(ref: NodeRef, seen: Facts) -> bool:
    """Return whether a QuantizeLinear has constant scales along axis 2 of data of an open shape."""
    node, shape = ref.node, seen.tensor(ref.input(0)).shape
    if not _is_by_channels(ref, seen) or shape is None or are_known(shape):
        return False
    if axis_of_scales(node, shape) != _THIRD:
        return False
    by = [held for held in node.inputs[1:3] if held is not None]
    return all(is_fixed(held, seen) and not is_empty(held, seen) for held in by)


def axis_of_scales(node: ir.Node, shape: Shape) -> int | None:
    """Return the axis, from the front, along which QuantizeLinear has scales; None for none."""
    axis = attribute_of(node, "axis", ir.AttributeType.INT, 1)
    return None if axis is None or not -len(shape) <= axis < len(shape) else axis % len(shape)


def channels_of(node: ir.Node, facts: Facts) -> int | None:
    """Return how long the data of a QuantizeLinear is along its axis; None if it is not known."""
    shape = facts.tensor(first_input(node)).shape or ()
    axis = axis_of_scales(node, shape)
    count = None if axis is None else shape[axis]
    return count if is_known(count) else None


def _hides_sizes(ref: NodeRef, seen: Facts) -> bool:
    """Return whether it is not seen how many sizes a Resize is given, but how many there must be.

    That is one for each axis that it names, or that the data has.
    """
    held = ref.input(SIZES[ref.op_type]) if ref.op_type in SIZES else None
    data = ref.input(0)
    if held is None or data is None:
        return False
    if "axes" not in ref.node.attributes:
        is_open = seen.tensor(data).shape is None or hides_ranks(ref, [data], seen)
        if is_open:
            return False
    return _is_of_parts(held, seen, {}) or hides_ranks(ref, [held], seen)


def _is_of_parts(held: ir.Value, seen: Facts, known: dict[ir.Value, bool]) -> bool:
    """Return whether a length is open, or that of parts of an open axis, which engines do not add.

    ONNX Runtime knows the lengths of a Split only where it knows the length of the axis. So many
    values are looked at at most.
    """
    if held in known or len(known) >= MOST_STEPS:
        return known.get(held, False)
    made, shape = held.producer(), seen.tensor(held).shape
    known[held] = is_open = shape is None or not are_known(shape)
    if is_open or made is None:
        return is_open
    operator = operator_of(made)
    if operator == "If":
        sources = given_in_branches(made, held)
    else:
        sources = [*filter(None, made.inputs[: _LENGTH_FROM.get(operator, 0)])]
    if operator in _BROADCASTING:
        sources = [each for each in sources if seen.tensor(each).shape in (shape, None)]
    of_parts = [_is_of_parts(each, seen, known) for each in sources]
    known[held] = bool(of_parts) and (all if operator in _BROADCASTING else any)(of_parts)
    return known[held]


def reads_unknown_rank(ref: NodeRef, facts: Facts) -> bool:
    """Return whether a layer reads an input of an IR whose rank is not known."""
    is_outer = not ref.around and ref.function is None
    given = (held for held in ref.node.inputs if held is not None and held.is_graph_input())
    return is_outer and any(_is_unknown(held, facts) for held in given)


def has_unranked_input(inputs: Iterable[ir.Value], facts: Facts) -> bool:
    """Return whether a model has an input of unknown rank of which no node that reads it tells so.

    Splits do not, nor nodes in bodies, nor those that nothing needs.
    """
    unknown = (held for held in inputs if _is_unknown(held, facts))
    return any(not any(_tells(use.node, held) for use in held.uses()) for held in unknown)


def _tells(node: ir.Node, held: ir.Value) -> bool:
    """Return whether what is found of a node that reads an input tells that its rank is unknown."""
    is_beside = node.graph is held.graph and not is_onnx_split(node)
    return is_beside and any(map(is_needed, node.outputs))


def gives_unknown_rank(ref: NodeRef, facts: Facts) -> bool:
    """Return whether a value known only at run time gives the rank of a layer's result.

    That is a list of axes that are taken away or added, or the length of a list of dimensions; the
    shape of the data, of which a Squeeze without axes takes all that are 1 away.
    """
    operator, inputs = operator_of(ref.node), ref.node.inputs
    if operator not in _RANKED_BY or not inputs or not any(map(is_needed, ref.node.outputs)):
        return False
    if len(inputs) == 1:
        return not has_known_shape(inputs[0], facts)
    given = inputs[1]
    if _RANKED_BY[operator]:
        return not is_constant(given, facts)
    return not has_known_shape(given, facts)


def _scalars_or_lists(node: ir.Node, seen: Facts) -> list[ir.Value]:
    """Return the results of an If that are scalars in one branch and lists in the other."""
    if not is_operator(node, "If") or is_constant(first_input(node), seen):
        return []
    return [made for made in node.outputs if _ranks_in_branches(node, made, seen) == {0, 1}]


def _ranks_in_branches(node: ir.Node, made: ir.Value, seen: Facts) -> set[int | None]:
    shapes = [seen.tensor(each).shape for each in given_in_branches(node, made)]
    return {None if shape is None else len(shape) for shape in shapes}


def _is_of_element(node: ir.Node, seen: Facts) -> bool:
    """Return whether a node reads one element that a Gather takes out of a list of open length."""
    held = first_input(node)
    if seen.tensor(held).shape != ():
        return False
    for source in islice(origins(held, first_passed), MOST_STEPS):
        made = source.producer()
        if made is not None and made.op_type == "Gather" and len(made.inputs) == 2:
            data, index = (seen.tensor(each).shape for each in made.inputs)
            return index == () and data is not None and len(data) == 1 and not are_known(data)
    return False


def _is_whole(node: ir.Node, seen: Facts) -> bool:
    """Return whether a Compress has no axis, and something that it takes no known shape."""
    has_axis = "axis" in node.attributes
    return not has_axis and not all(
        has_known_shape(held, seen) for held in filter(None, node.inputs)
    )


def _open_at_first(ref: NodeRef, seen: Facts) -> list[ir.Value]:
    """Return the tensors of open rank that are seen so at a node first, among what it gives.

    What an If gives that a branch had so before is not, and neither is what comes of a tensor that
    nothing is known of, as of another domain's operators, which the engine may know.
    """
    node = ref.node
    is_outer = not ref.around and ref.function is None
    taken = [held for held in node.inputs if held is not None and _is_unknown(held, seen)]
    if is_outer and any(held.is_graph_input() and _is_open(held, seen) for held in taken):
        return list(node.outputs)
    return [] if taken else [each for each in node.outputs if _is_open_here(node, each, seen)]


def _is_open_here(node: ir.Node, made: ir.Value, seen: Facts) -> bool:
    """Return whether what a node gives has no known rank, for which no branch is the reason.

    Engines know that of a scalar or a list, which an If gives, and that of a state which a Loop
    sets in each round and does not read.
    """
    if not _is_open(made, seen):
        return False
    if node.op_type == "If":
        ranks = _ranks_in_branches(node, made, seen)
        return None not in ranks and not ranks <= {0, 1}
    return all(
        is_used(state.inside) or _is_unknown(state.end, seen)
        for state in carried_by(node)
        if state.result is made
    )


def _is_unknown(held: ir.Value, seen: Facts) -> bool:
    """Return whether no rank is known of a value, and that it is a sequence is not known either."""
    return not isinstance(seen.of(held), SequenceFact) and seen.tensor(held).shape is None


def _is_open(held: ir.Value, seen: Facts) -> bool:
    """Return whether a tensor of a known element type has no known rank."""
    return _is_unknown(held, seen) and seen.tensor(held).element_type is not None
