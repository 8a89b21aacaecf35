"""Data that are quantised and dequantised, which OpenVINO takes for one node, or for none."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from types import MappingProxyType
from typing import TypeAlias

import numpy as np
import onnx_ir as ir

from tensorsplit.model.features.from_constants import (
    MOST_STEPS,
    is_calculated,
    is_constant,
    is_fixed,
)
from tensorsplit.model.graph.held_tensors import constant
from tensorsplit.model.graph.nodes import NodeRef, attribute_of, is_operator
from tensorsplit.model.graph.producers import (
    first_input,
    is_identity,
    origins,
    passed_from,
    passed_on,
    producer_of,
)
from tensorsplit.model.graph.tensors import Array
from tensorsplit.model.graph.uses import is_unused
from tensorsplit.model.infer.analysis import Facts
from tensorsplit.model.reached import each_once

_Limits: TypeAlias = "np.iinfo[np.int16] | np.iinfo[np.uint16]"
_LIMITS: Mapping[ir.DataType | None, _Limits] = MappingProxyType(
    {ir.DataType.INT16: np.iinfo(np.int16), ir.DataType.UINT16: np.iinfo(np.uint16)}
)

_LEAST_DIFFERENCE = 1e-6
"""Ranges whose ends differ by less are the same for OpenVINO."""


BYTES = frozenset({ir.DataType.INT8, ir.DataType.UINT8})
"""The integers of 8 bits."""

JOINED = frozenset({*_LIMITS, *BYTES})
"""The types of which engines make one node of quantising to them and giving back."""

ZERO_POINT = 2
"""The place of the zero point."""

_ZERO_POINTS_OF_RESULTS: Mapping[str, int] = MappingProxyType(
    {"QLinearConv": 7, "QLinearMatMul": 7, "QuantizeLinear": ZERO_POINT}
)
"""The place of the zero point of what a node rounds to, by operator."""

_SUMMING = frozenset({"Einsum", "Pad", "ReduceSum"})
"""The operators before which OpenVINO takes a zero point away, and so from all that read it."""

_LOST_CONSTANTS: Mapping[str, tuple[int, ...]] = MappingProxyType(
    {"Add": (0, 1), "Mul": (0, 1), "Sub": (0,)}
)
"""The inputs by operator that OpenVINO loses if they are constants that were given back."""

_SCALED = frozenset(
    {
        *("Cast", "Clip", "Div", "Dropout", "Expand", "Flatten", "Gather", "Identity", "MaxPool"),
        *("Mul", "Neg", "ReduceMax", "ReduceMean", "ReduceMin", "ReduceSum", "Reshape", "Slice"),
        *("Squeeze", "Transpose", "Unsqueeze"),
    }
)
"""The operators that OpenVINO calculates before it takes a zero point away."""

_EXTREME = frozenset({"ReduceMax", "ReduceMin"})
"""The operators whose results OpenVINO makes integers of before it divides them by a scale."""

_JOINED_WITH_EXTREME = frozenset(
    {
        *("Abs", "Add", "Cast", "Clip", "Concat", "Div", "Dropout", "Elu", "HardSwish", "Identity"),
        *("LeakyRelu", "Mish", "Mul", "Neg", "PRelu", "Relu", "Reshape", "Sigmoid", "Softplus"),
        *("Sqrt", "Squeeze", "Sub", "Tanh", "Transpose", "Unsqueeze"),
    }
)
"""The operators between such a node and a QuantizeLinear with which it makes one node of both."""


def of_quantized(ref: NodeRef, facts: Facts) -> Iterator[str]:
    """Yield whether only the inverse of a QuantizeLinear to 16 bits reads its result, and the like.

    Blocks with a scale each are left out: engines write nothing else for these.
    """
    node = ref.node
    if _may_add_odd_zero_point(node, facts):
        yield "odd_zero_point"
    if shared_zero_points(node, facts):
        yield "shared_zero_point"
    if constants_given_back(node, facts):
        yield "constant_given_back"
    if has_blocks(node) or len(node.outputs) != 1:
        return
    if ref.op_type == "QuantizeLinear" and _rounds_extreme(node, facts):
        yield "rounded_extreme"
    if ref.around or ref.function is not None:
        return  # the engine makes one node of the two in no body
    if ref.op_type == "QuantizeLinear":
        if _is_given_back(node, facts):
            yield "given_back"
        if _only_rounds(node, facts):
            yield "unscaled"
    if ref.op_type == "DequantizeLinear" and _makes_bfloat16(node, facts):
        yield "given_back_in_bfloat16"


def _may_add_odd_zero_point(node: ir.Node, facts: Facts) -> bool:
    """Return whether a node rounds to integers and adds a zero point that is, or may be, odd."""
    if node.op_type == "DynamicQuantizeLinear":  # it calculates the zero point
        return True
    place = _ZERO_POINTS_OF_RESULTS.get(node.op_type, len(node.inputs))
    zero_point = passed_from(node.inputs[place]) if place < len(node.inputs) else None
    if not any(each.is_integer() for each in facts.element_types(zero_point)):
        return False
    value = constant(zero_point)
    return value is None or bool((value % 2 != 0).any())


def shared_zero_points(node: ir.Node, facts: Facts) -> list[ir.Node]:
    """Return the DequantizeLinears of a sum whose zero point other DequantizeLinears share.

    It is of 8 bits, and not 0.
    """
    if not is_operator(node, *_SUMMING):
        return []
    return [each for each in _given_back_for(node) if _shares_zero_point(each, facts)]


def constants_given_back(node: ir.Node, facts: Facts) -> list[int]:
    """Return the inputs of a sum or the like of two tensors given back that are of constants.

    Nothing is lost of a constant and itself, nor of the difference of two constants.
    """
    lost = _LOST_CONSTANTS.get(node.op_type, ()) if node.domain == "" else ()
    sources = [_quantized_before(held, facts) for held in node.inputs] if lost else []
    if len(sources) != 2 or None in sources:
        return []
    held = [is_constant(each, facts) or is_calculated(each, facts) for each in sources]
    if all(held) and (node.op_type == "Sub" or node.inputs[0] is node.inputs[1]):
        return []
    return [place for place in lost if held[place]]


def _quantized_before(value: ir.Value | None, facts: Facts) -> ir.Value | None:
    """Return the value that was quantised to 8 bits and dequantised before, if through others."""
    for held in islice(origins(value, _first_scaled), MOST_STEPS):
        back = producer_of(held)
        if back is None or back.op_type != "DequantizeLinear" or not back.inputs:
            continue
        there = producer_of(passed_from(back.inputs[0]))
        if there is not None and there.op_type == "QuantizeLinear":
            is_small = facts.tensor(there.outputs[0]).element_type in BYTES
            return first_input(there) if is_small else None
    return None


def _first_scaled(node: ir.Node) -> ir.Value | None:
    return first_input(node) if node.op_type in _SCALED else None


def _given_back_for(node: ir.Node) -> Iterator[ir.Node]:
    """Yield the nodes that give back what a node reads, if through others."""
    for held in islice(each_once(_read_by(node), _scaled_from), MOST_STEPS):
        made = producer_of(held)
        if made is not None and made.op_type == "DequantizeLinear":
            yield made


def _scaled_from(held: ir.Value) -> list[ir.Value]:
    made = producer_of(held)
    return [] if made is None or made.op_type not in _SCALED else _read_by(made)


def _read_by(node: ir.Node) -> list[ir.Value]:
    return [held for held in node.inputs if held is not None]


def _shares_zero_point(node: ir.Node, facts: Facts) -> bool:
    zero = node.inputs[ZERO_POINT] if len(node.inputs) > ZERO_POINT else None
    values = constant_or_cast(zero)
    if zero is None or values is None or not values.any():
        return False
    if facts.tensor(zero).element_type not in BYTES:
        return False
    passed = each_once([passed_from(zero) or zero], passed_on)
    uses = (use for held in passed for use in [*held.uses()][::-1])  # lower changes the first ones
    readers = (node for node, place in uses if place == ZERO_POINT)
    by_it = (reader for reader in readers if reader.op_type == "DequantizeLinear")
    return len(list(islice(by_it, 2))) > 1


def _is_given_back(node: ir.Node, facts: Facts) -> bool:
    """Return whether only the inverse of a node reads what it quantises to 16 bits.

    What calculates something that nobody uses is left out before.
    """
    (made,) = node.outputs
    limits = limits_of(node, facts)
    if limits is None or made.is_graph_output():
        return False
    readers = [use for use in made.uses() if not is_unused(use.node)]
    inverse = (use.idx == 0 and _is_inverse(use.node, node, limits, facts) for use in readers)
    return bool(readers) and all(inverse)


def _makes_bfloat16(node: ir.Node, facts: Facts) -> bool:
    """Return whether a node gives back in bfloat16 what an engine joins with its QuantizeLinear.

    OpenVINO separates these two again where they are of 8 bits and constant, and only there. Of
    16 bits it leaves both out, if from bfloat16 and by the same constants.
    """
    source = passed_from(node.inputs[0]) if node.inputs else None
    made = producer_of(source)
    if source is None or made is None or made.graph is not node.graph:
        return False
    if node.domain != made.domain or not is_operator(made, "QuantizeLinear"):
        return False
    kind = facts.tensor(source).element_type
    if facts.tensor(node.outputs[0]).element_type != ir.DataType.BFLOAT16 or kind not in JOINED:
        return False
    by = [held for each in (made, node) for held in each.inputs[1:3] if held is not None]
    is_known = kind not in _LIMITS and all(is_fixed(held, facts) for held in by)
    is_same = facts.tensor(made.inputs[0]).element_type == ir.DataType.BFLOAT16
    is_left_out = is_same and _is_given_back(made, facts)
    return not (is_known or is_left_out or has_blocks(made)) and _is_only_given_back(source)


def _rounds_extreme(node: ir.Node, facts: Facts) -> bool:
    """Return whether a node rounds extremes of its data to 8 bits, but not only to give them back.

    Where one node alone gives them back, and the zero point is 0, OpenVINO is right. So it is where
    the data are integers.
    """
    (made,) = node.outputs
    if facts.tensor(made).element_type not in BYTES or not node.inputs:
        return False
    if not all(held is None or is_fixed(held, facts) for held in node.inputs[1:3]):
        return False
    kind = facts.tensor(node.inputs[0]).element_type
    if kind is not None and kind.is_integer():
        return False
    readers = [use.node for use in made.uses() if not is_unused(use.node)]
    if len(readers) == 1 and _is_only_given_back(made) and _is_by_one_number(node):
        return False
    before = each_once(filter(_is_read_once, _read_by(node)[:1]), _joined_from)
    sources = map(producer_of, islice(before, MOST_STEPS))
    return any(each.domain == "" and each.op_type in _EXTREME for each in sources if each)


def _is_by_one_number(node: ir.Node) -> bool:
    """Return whether a node quantises by one scale, and a zero point of 0 if any."""
    factor, zero = (constant_or_cast(held) for held in (*node.inputs[1:3], None, None)[:2])
    return factor is not None and factor.size == 1 and (zero is None or not zero.any())


def _joined_from(held: ir.Value) -> list[ir.Value]:
    made = producer_of(held)
    is_joined = made is not None and made.domain == "" and made.op_type in _JOINED_WITH_EXTREME
    return [*filter(_is_read_once, _read_by(made))] if made is not None and is_joined else []


def _is_read_once(held: ir.Value) -> bool:
    readers = {use.node for use in held.uses() if not is_unused(use.node)}
    return len(readers) < 2 and not held.is_graph_output()


def _only_rounds(node: ir.Node, facts: Facts) -> bool:
    """Return whether a node only rounds to 16 bits, by a scale of 1, what is not rounded yet."""
    limits = limits_of(node, facts)
    ends = None if limits is None else _range((*node.inputs[1:3], None, None)[:2], limits)
    if limits is None or ends is None or not node.inputs:
        return False
    highest = np.reshape([limits.min, limits.max], (2, *[1] * (ends.ndim - 1)))
    is_plain = (np.abs(ends - highest) < _LEAST_DIFFERENCE).all()
    return bool(is_plain) and not _is_limited(node.inputs[0], limits, facts)


def limits_of(node: ir.Node, facts: Facts) -> _Limits | None:
    """Return the range of the 16-bit integers to which a node quantises; None for others."""
    return _LIMITS.get(facts.tensor(next(iter(node.outputs), None)).element_type)


def _is_limited(held: ir.Value | None, limits: _Limits, facts: Facts) -> bool:
    """Return whether a Clip to what some integers hold gives a value, of whole numbers."""
    clip = producer_of(passed_from(held))
    if not is_operator(clip, "Clip") or len(clip.inputs) != 3:
        return False
    data, *ends = clip.inputs
    low, high = map(constant_or_cast, ends)
    if low is None or high is None or low.min() < limits.min or high.max() > limits.max:
        return False
    made = producer_of(passed_from(data))
    is_rounded = is_operator(made, "Round")
    return is_rounded or all(kind.is_integer() for kind in facts.element_types(data))


def _is_only_given_back(value: ir.Value) -> bool:
    """Return whether each node that reads a value gives it back, if only after an Identity."""
    return not any(
        held.is_graph_output()
        or not all(_is_read_on(*use) or is_unused(use.node) for use in held.uses())
        for held in each_once([value], passed_on)
    )


def _is_read_on(reader: ir.Node, place: int) -> bool:
    return place == 0 and (reader.op_type == "DequantizeLinear" or is_identity(reader))


def has_blocks(node: ir.Node) -> bool:
    """Return whether a node has a scale for each block."""
    return bool(attribute_of(node, "block_size", ir.AttributeType.INT))


def _is_inverse(reader: ir.Node, node: ir.Node, limits: _Limits, facts: Facts) -> bool:
    """Return whether a node gives back what another one quantises, both by the same constants."""
    named = (reader.graph, reader.domain, reader.op_type)
    if named != (node.graph, node.domain, "DequantizeLinear") or has_blocks(reader):
        return False
    by, back_by = ((*each.inputs[1:3], None, None)[:2] for each in (node, reader))
    if not all(held is None or is_fixed(held, facts) for held in (*by, *back_by)):
        return False
    ends, back = _range(by, limits), _range(back_by, limits)
    if ends is None or back is None:
        return by == back_by
    axes = {attribute_of(each, "axis", ir.AttributeType.INT, 1) for each in (node, reader)}
    if ends.shape != back.shape or (ends.shape[1:] not in ((), (1,)) and len(axes) > 1):
        return False
    return bool((np.abs(ends - back) < _LEAST_DIFFERENCE).all())


def _range(by: Sequence[ir.Value | None], limits: _Limits) -> Array | None:
    """Return the least and the most that a scale and a zero point give back; None if not known."""
    factors, lowest = map(constant_or_cast, by)
    if factors is None or (lowest is None and by[1] is not None):
        return None
    lowest = np.zeros(factors.shape) if lowest is None else lowest
    if lowest.shape != factors.shape or {factors.dtype.kind, lowest.dtype.kind} & set("OSU"):
        return None  # a node that is refused elsewhere
    with np.errstate(all="ignore"):
        ends = [end - lowest.astype(np.float64) for end in (limits.min, limits.max)]
        return np.stack([each * factors.astype(np.float64) for each in ends])


def constant_or_cast(held: ir.Value | None) -> Array | None:
    """Return a constant, or what Casts make of one."""
    passed = [held, *origins(held, _passed_or_cast)]
    found = constant(passed[-1])
    for value in passed[-2::-1]:
        made = producer_of(value)
        if found is None or made is None or made.op_type != "Cast":
            continue
        to = attribute_of(made, "to", ir.AttributeType.INT)
        is_float = to in (ir.DataType.FLOAT, ir.DataType.FLOAT16, ir.DataType.BFLOAT16)
        found = found.astype(ir.DataType(to).numpy()) if is_float else None
    return found


def _passed_or_cast(node: ir.Node) -> ir.Value | None:
    is_passed = is_operator(node, "Identity", "Cast")
    return first_input(node) if is_passed else None
