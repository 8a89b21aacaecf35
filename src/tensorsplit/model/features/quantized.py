"""What is quantised and given back, which engines take for one node, for none, or for more."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
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
from tensorsplit.model.graph.nodes import NodeRef, attribute_of, is_used
from tensorsplit.model.graph.producers import (
    first_input,
    origins,
    passed_from,
    producer_of,
)
from tensorsplit.model.graph.tensors import Array
from tensorsplit.model.infer.analysis import Facts
from tensorsplit.model.reached import each_once

_Limits: TypeAlias = "np.iinfo[np.int16] | np.iinfo[np.uint16]"
_LIMITS: Mapping[ir.DataType | None, _Limits] = MappingProxyType(
    {ir.DataType.INT16: np.iinfo(np.int16), ir.DataType.UINT16: np.iinfo(np.uint16)}
)

_LEAST_DIFFERENCE = 1e-6
"""Ranges whose ends differ by less are the same for OpenVINO."""


_BYTES = frozenset({ir.DataType.INT8, ir.DataType.UINT8})

_TWO = 2

_JOINED = frozenset({*_LIMITS, *_BYTES})
"""The types of which OpenVINO makes one node of quantising to them and giving back."""


_MOVING = frozenset({"MaxPool", "Reshape", "Slice", "Squeeze", "Transpose", "Unsqueeze"})
"""The operators after which ONNX Runtime quantises again what is given back, and gives it back."""

_SIGNED = frozenset({ir.DataType.INT8, ir.DataType.INT32})
"""The types that it quantises to uint8 without a zero point."""

_NOT_POOLED = frozenset({ir.DataType.INT4, ir.DataType.UINT4})
"""The types of which it has no MaxPool, though it puts that before the node that gives back."""

_FIRST_POOLED = 12
"""From here on a MaxPool takes what is quantised."""

_FIRST_WITH_TYPE = 21
"""From here on a QuantizeLinear has an attribute for the type that it quantises to."""

_ZERO_POINT = 2
"""The place of the zero point."""


_SUMMING = frozenset({"Einsum", "Pad", "ReduceSum"})
"""The operators before which OpenVINO takes a zero point away, and so from all that read it."""

_SCALED = frozenset(
    {
        *("Cast", "Clip", "Div", "Dropout", "Expand", "Flatten", "Gather", "Identity", "MaxPool"),
        *("Mul", "Neg", "ReduceMax", "ReduceMean", "ReduceMin", "ReduceSum", "Reshape", "Slice"),
        *("Squeeze", "Transpose", "Unsqueeze"),
    }
)
"""The operators that OpenVINO calculates before it takes a zero point away."""


def of_quantized(ref: NodeRef, facts: Facts) -> Iterator[str]:
    """Yield whether only the inverse of a QuantizeLinear to 16 bits reads its result, and the like.

    Blocks with a scale each are left out: engines write nothing else for these.
    """
    node = ref.node
    if shared_zero_points(node, facts):
        yield "shared_zero_point"
    if constants_given_back(node, facts):
        yield "constant_given_back"
    if _has_blocks(node) or len(node.outputs) != 1:
        return
    if ref.op_type == "DequantizeLinear" and _is_by_one_constant(node, facts):
        yield from _of_moved(ref, facts)
        if not ref.around and _is_between_two(node, facts):
            yield "rounded_once"
    if ref.around or ref.function is not None:
        return  # engines make one node of the two in no body
    if ref.op_type == "QuantizeLinear" and _is_given_back(node, facts):
        yield "given_back"
    if ref.op_type == "DequantizeLinear" and _makes_bfloat16(node, facts):
        yield "given_back_in_bfloat16"


def shared_zero_points(node: ir.Node, facts: Facts) -> list[ir.Node]:
    """Return what gives back the data of a sum by a zero point that other nodes give back by, too.

    It is of 8 bits, and not 0.
    """
    if (node.domain, node.op_type in _SUMMING) != ("", True):
        return []
    return [each for each in _given_back_for(node) if _shares_zero_point(each, facts)]


def constants_given_back(node: ir.Node, facts: Facts) -> list[int]:
    """Return the inputs of a sum or product of two tensors given back that are of constants."""
    if (node.domain, node.op_type in ("Add", "Mul")) != ("", True) or len(node.inputs) != _TWO:
        return []
    sources = [_quantized_before(held, facts) for held in node.inputs]
    if None in sources:
        return []
    return [
        place
        for place, held in enumerate(sources)
        if is_constant(held, facts) or is_calculated(held, facts)
    ]


def _quantized_before(value: ir.Value | None, facts: Facts) -> ir.Value | None:
    """Return what was quantised to 8 bits and given back before a value, if through others."""
    for held in islice(origins(value, _first_scaled), MOST_STEPS):
        back = producer_of(held)
        if back is None or back.op_type != "DequantizeLinear" or not back.inputs:
            continue
        there = producer_of(passed_from(back.inputs[0]))
        if there is not None and there.op_type == "QuantizeLinear":
            is_small = facts.tensor(there.outputs[0]).element_type in _BYTES
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
    zero = node.inputs[_ZERO_POINT] if len(node.inputs) > _ZERO_POINT else None
    values = _constant(zero)
    if zero is None or values is None or not values.any():
        return False
    if facts.tensor(zero).element_type not in _BYTES:
        return False
    passed = each_once([passed_from(zero) or zero], _given_out_again)
    readers = (use.node for held in passed for use in held.uses() if use.idx == _ZERO_POINT)
    return sum(reader.op_type == "DequantizeLinear" for reader in readers) > 1


def _given_out_again(held: ir.Value) -> list[ir.Value]:
    return [use.node.outputs[0] for use in held.uses() if use.node.op_type == "Identity"]


def _is_by_one_constant(node: ir.Node, facts: Facts) -> bool:
    """Return whether a scale and a zero point are constants of one element."""
    by = [held for held in node.inputs[1:3] if held is not None]
    return bool(by) and all(
        facts.tensor(held).shape in ((), (1,)) and _is_fixed(held, facts) for held in by
    )


def _is_fixed(held: ir.Value, facts: Facts) -> bool:
    """Return whether a number is a constant, also if that is what all calls of a function give."""
    values = facts.tensor(held).values or (None,)
    return is_fixed(held, facts) or all(isinstance(each, int | float) for each in values)


def _of_moved(ref: NodeRef, facts: Facts) -> Iterator[str]:
    """Yield what ONNX Runtime makes of nodes that move what is given back by one scale."""
    node, kind = ref.node, facts.tensor(ref.input(0)).element_type
    zero = ref.input(_ZERO_POINT)
    has_type = node.domain == "" and ref.opset >= _FIRST_WITH_TYPE
    is_number = kind == ir.DataType.INT32
    is_pooled = ref.opset >= _FIRST_POOLED
    moved = list(_moved(node.outputs[0], _MOVING if is_pooled else _MOVING - {"MaxPool"}, facts))
    moving = {made.op_type for made in map(producer_of, moved) if made is not None}
    if is_fixed(ref.input(0), facts):  # what is given back is calculated when the model is loaded
        moving &= {"Transpose"} if is_number and zero else set()
    elif any(use.node.graph is not node.graph for held in moved for use in held.uses()):
        yield "moved_into_body"
    if not moving:
        return
    if kind in _SIGNED and not (zero or has_type):
        yield "moved_without_zero_point"
    is_signed = kind == ir.DataType.INT8 and has_type and _is_near(node, zero)
    is_refused = is_signed or (is_number and (zero or has_type))
    if is_refused or (kind in _NOT_POOLED and "MaxPool" in moving):
        yield "moved_signed"


def _is_near(node: ir.Node, zero: ir.Value | None) -> bool:
    """Return whether a zero point is of the graph of a node, or an input of its function."""
    source = passed_from(zero)
    return source is not None and source.graph is node.graph


def _moved(made: ir.Value, moving: frozenset[str], facts: Facts) -> Iterator[ir.Value]:
    """Yield what nodes in the same graph make of a value by moving it, and don't quantise again.

    Where a node quantises what was moved, by a scale of one number, all moves before it come after.
    """
    given_on = partial(_given_on, moving=moving, facts=facts)
    reached = list(each_once([made], given_on))
    again = set[ir.Value]()
    for held in reversed(reached):  # what follows from a value comes after it
        is_first = any(_is_by_one_constant(node, facts) for node in _quantizing(held))
        if is_first or not again.isdisjoint(given_on(held)):
            again.add(held)
    moved = set[ir.Value]()
    for held in reached[1:]:
        node = producer_of(held)
        assert node is not None  # noqa: S101 - `_given_on` goes along nodes
        if node.op_type not in moving and node.inputs[0] not in moved:
            continue
        moved.add(held)
        if is_used(held) and held not in again and not _quantizing(held):
            yield held


def _given_on(held: ir.Value, moving: frozenset[str], facts: Facts) -> list[ir.Value]:
    """Return what nodes in the same graph make of a value that move it or give it out as it is."""
    made = producer_of(held)
    near = (use.node for use in held.uses() if not use.idx)
    return [
        node.outputs[0]
        for node in near
        if made is not None and node.graph is made.graph and node.domain == "" and node.outputs
        if node.op_type in moving or _gives_same(node, facts)
    ]


def _gives_same(node: ir.Node, facts: Facts) -> bool:
    if node.op_type == "Cast":
        return facts.element_types(node.inputs[0]) == facts.element_types(node.outputs[0])
    return node.op_type in ("Dropout", "Identity")


def _quantizing(held: ir.Value) -> list[ir.Node]:
    """Return the nodes that quantise a value."""
    readers = (use.node for use in held.uses() if not use.idx)
    return [node for node in readers if node.op_type == "QuantizeLinear"]


def _is_between_two(node: ir.Node, facts: Facts) -> bool:
    """Return whether a node gives back what is then quantised to the same type by other constants.

    Nothing else may read any of it, up to the node that gives it back at last.
    """
    before = producer_of(passed_from(node.inputs[0]))
    after = _only_reader(node.outputs[0], facts)
    last = None if after is None else _only_reader(after.outputs[0], facts)
    if before is None or after is None or last is None:
        return False
    if _only_reader(before.outputs[0], facts) is not node:
        return False
    four = (before, node, after, last)
    named = [each.op_type for each in four]
    if named != ["QuantizeLinear", "DequantizeLinear"] * 2 or any(each.domain for each in four):
        return False
    if any(len(each.inputs) <= _ZERO_POINT or _has_blocks(each) for each in four):
        return False
    kinds = {facts.tensor(each.outputs[0]).element_type for each in (before, after)}
    pairs = zip(node.inputs[1:], after.inputs[1:], strict=True)
    return (
        len(kinds) == 1
        and all(_is_by_one_constant(each, facts) for each in four)
        and not all(_is_same_constant(*pair) for pair in pairs)
    )


def _only_reader(held: ir.Value, facts: Facts) -> ir.Node | None:
    """Return the only node that reads a value, in its graph; after nodes that change nothing."""
    uses = list(held.uses())
    if len(uses) != 1 or uses[0].idx or held.is_graph_output():
        return None
    reader = uses[0].node
    if reader.domain == "" and _gives_same(reader, facts):
        return _only_reader(reader.outputs[0], facts)
    return reader if reader.graph is held.graph else None


def _is_same_constant(one: ir.Value | None, other: ir.Value | None) -> bool:
    held = [_constant(each) for each in (one, other)]
    return held[0] is not None and np.array_equal(held[0], held[1])  # type: ignore[arg-type]


def _is_given_back(node: ir.Node, facts: Facts) -> bool:
    """Return whether only the inverse of a node reads what it quantises to 16 bits."""
    (made,) = node.outputs
    limits = _LIMITS.get(facts.tensor(made).element_type)
    readers = () if made.is_graph_output() else made.uses()
    if limits is None or not readers:
        return False
    return all(use.idx == 0 and _is_inverse(use.node, node, limits, facts) for use in readers)


def _makes_bfloat16(node: ir.Node, facts: Facts) -> bool:
    """Return whether a node gives back in bfloat16 what an engine joins with its QuantizeLinear.

    OpenVINO takes these two apart again where they are of 8 bits and constant, and only there. Of
    16 bits it leaves both out, if from bfloat16 and by the same constants.
    """
    source = passed_from(node.inputs[0]) if node.inputs else None
    made = producer_of(source)
    if source is None or made is None or made.graph is not node.graph:
        return False
    if node.domain != made.domain or (made.domain, made.op_type) != ("", "QuantizeLinear"):
        return False
    kind = facts.tensor(source).element_type
    if facts.tensor(node.outputs[0]).element_type != ir.DataType.BFLOAT16 or kind not in _JOINED:
        return False
    by = [held for each in (made, node) for held in each.inputs[1:3] if held is not None]
    is_known = kind not in _LIMITS and all(is_fixed(held, facts) for held in by)
    is_same = facts.tensor(made.inputs[0]).element_type == ir.DataType.BFLOAT16
    is_left_out = is_same and _is_given_back(made, facts)
    return not (is_known or is_left_out or _has_blocks(made)) and _is_only_given_back(source)


def _is_only_given_back(value: ir.Value) -> bool:
    """Return whether each node that reads a value gives it back, if only after an Identity."""

    def passed_on(held: ir.Value) -> Iterator[ir.Value]:
        readers = (use.node for use in held.uses())
        return (made for each in readers if each.op_type == "Identity" for made in each.outputs)

    return not any(
        held.is_graph_output() or not all(_is_read_on(*use) for use in held.uses())
        for held in each_once([value], passed_on)
    )


def _is_read_on(reader: ir.Node, place: int) -> bool:
    return place == 0 and reader.op_type in ("DequantizeLinear", "Identity")


def _has_blocks(node: ir.Node) -> bool:
    return bool(attribute_of(node, "block_size", ir.AttributeType.INT))


def _is_inverse(reader: ir.Node, node: ir.Node, limits: _Limits, facts: Facts) -> bool:
    """Return whether a node gives back what another one quantises, both by the same constants."""
    named = (reader.graph, reader.domain, reader.op_type)
    if named != (node.graph, node.domain, "DequantizeLinear") or _has_blocks(reader):
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
    factors, lowest = map(_constant, by)
    if factors is None or (lowest is None and by[1] is not None):
        return None
    lowest = np.zeros(factors.shape) if lowest is None else lowest
    if lowest.shape != factors.shape or {factors.dtype.kind, lowest.dtype.kind} & set("OSU"):
        return None  # a node that is refused elsewhere
    with np.errstate(all="ignore"):
        ends = [end - lowest.astype(np.float64) for end in (limits.min, limits.max)]
        return np.stack([each * factors.astype(np.float64) for each in ends])


def _constant(held: ir.Value | None) -> Array | None:
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
    is_passed = node.domain == "" and node.op_type in ("Identity", "Cast")
    return first_input(node) if is_passed else None
