"""Features of integers that are divided, compared or counted."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import islice, permutations

import numpy as np
import onnx_ir as ir

from tensorsplit.core.dimensions import Dim, are_known, is_at_least, is_known
from tensorsplit.core.records.openvino import DOMAIN
from tensorsplit.model.features.from_constants import (
    MOST_STEPS,
    is_calculated,
    is_constant,
    is_fixed,
    is_of_constants,
)
from tensorsplit.model.graph.called_in_onnx import OF_SHAPES, gives_shape, operator_of
from tensorsplit.model.graph.facts import Tensor
from tensorsplit.model.graph.held_tensors import constant
from tensorsplit.model.graph.nodes import NodeRef, attribute_of
from tensorsplit.model.graph.producers import (
    KEEPING_ELEMENTS,
    first_input,
    origins,
    passed_from,
    producer_of,
)
from tensorsplit.model.graph.rejoined import may_pass
from tensorsplit.model.graph.tensors import Array
from tensorsplit.model.graph.uses import twins_of
from tensorsplit.model.infer.analysis import Facts

SMALL = frozenset({ir.DataType.INT4, ir.DataType.INT8, ir.DataType.UINT4, ir.DataType.UINT8})
"""Integers whose quotient is rounded to the nearest in any place; ONNX has no Div of 4 bits."""

_INTEGERS = frozenset(kind for kind in ir.DataType if kind.is_integer())
"""Integers that engines divide; OpenVINO 2026.4.1 runs no Divide of 2 bits."""

_UNSIGNED = frozenset(kind for kind in _INTEGERS if not kind.is_signed())
_FUSED_WITH_MUL = frozenset({ir.DataType.INT32, ir.DataType.INT64})
"""Integers of which engines multiply a quotient of 1 as they multiply floats."""

_SUMMING = frozenset(
    {"ConvInteger", "Einsum", "Gemm", "MatMul", "MatMulInteger", "Resize", "Size", "Upsample"}
)
_WITH_CONSTANTS = frozenset({"Add", "Mul", "PRelu", "Pow", "Sub"})
_MOVING = frozenset(
    {
        *("Abs", "Cast", "Clip", "Expand", "Flatten", "Gather", "Identity", "Neg", "Relu"),
        *("Reshape", "Slice", "Split", "Squeeze", "Tile", "Transpose", "Unsqueeze"),
    }
)
_OF_MANY = frozenset({"Concat", "Where"})
"""Of one value several times, they are moves."""

_MAY_CHANGE_NOTHING = KEEPING_ELEMENTS | {"Cast", "Expand", "Slice"}
"""Engines leave these nodes out where the result is the same."""

_NATURAL = frozenset({"Abs", "NonZero", "Relu"})
"""What they give is not below 0."""


def of_integers(ref: NodeRef, facts: Facts) -> Iterator[str]:
    """Yield the features of a Div, Abs, Equal or Range, or such a layer; none if malformed."""
    node, count, operator = ref.node, len(ref.node.inputs), operator_of(ref.node)
    if operator == "Div" and count == 2:
        yield from _of_quotient(ref, facts)
    elif operator == "Abs" and count == 1 and _types(node, facts).isdisjoint(_UNSIGNED):
        if is_calculated(node.inputs[0], facts):
            yield "abs_of_shapes"
        elif is_of_joined(node, facts):
            yield "abs_of_joined"
    elif operator == "Equal" and count == 2 and _is_of_lower(node, facts):
        yield "equal_below_0"
    elif operator == "Range" and count == 3 and _may_be_empty(node, facts):
        yield "empty_range"
    elif node.domain == "" and operator in _OVERFLOWING and _is_of_bytes(node, facts):
        yield "small_shift" if _is_to_the_right(node) else "limited_result"
    elif node.domain == "" and operator == "BitShift":
        inexact = _CUT_OFF | _INEXACT if _is_to_the_right(node) else _CUT_OFF
        if _types(node, facts) & inexact:
            yield "inexact_shift"


_OVERFLOWING = frozenset({"Add", "BitShift", "Mul", "Sub"})
"""What they give of integers of 8 bits may need more; OpenVINO takes the nearest that fits."""

_BYTES = frozenset({ir.DataType.INT8, ir.DataType.UINT8})

_CUT_OFF = frozenset({ir.DataType.INT64, ir.DataType.UINT64})
"""Integers of which OpenVINO shifts 32 bits."""

_INEXACT = frozenset(
    {*(ir.DataType.INT8, ir.DataType.INT16, ir.DataType.INT32), ir.DataType.UINT32}
)
"""Integers that OpenVINO, which divides, may shift to the right wrongly."""


def _is_to_the_right(node: ir.Node) -> bool:
    return bool(attribute_of(node, "direction", ir.AttributeType.STRING) == "RIGHT")


def _is_of_bytes(node: ir.Node, facts: Facts) -> bool:
    """Return whether a node calculates integers of 8 bits, or shifts unsigned ones to the right."""
    types = _types(node, facts) & _BYTES
    return bool(types - {ir.DataType.INT8} if _is_to_the_right(node) else types)


def _is_of_lower(node: ir.Node, facts: Facts) -> bool:
    """Return whether what shapes give, and may be below 0, meets a constant that is.

    It may be as low as that.
    """
    for held, other in permutations(node.inputs):
        limit = _elements(other, facts)
        if limit is None or limit.min(initial=0) >= 0 or not is_calculated(held, facts):
            continue
        values = facts.tensor(held).integers if limit.dtype.kind == "i" else None
        next_ = 1 + limit[limit < 0].max()
        if values is not None and all(is_at_least(each, int(next_)) for each in values):
            continue
        if not _is_natural(held, facts, or_known=True):
            return True
    return False


def _of_quotient(ref: NodeRef, facts: Facts) -> Iterator[str]:
    types, is_layer = _types(ref.node, facts), ref.node.domain == DOMAIN
    if types.isdisjoint(_INTEGERS) or _leaves_no_rest(ref.node):
        return
    if not types.isdisjoint(SMALL):
        yield "small_quotient"
    elif fused_operand(ref.node, facts) is not None:
        yield "fused_quotient"
    if is_layer and types.isdisjoint(_UNSIGNED) and _may_be_lower(ref.node, facts):
        yield "floored_quotient"
    if is_layer:
        return  # those of constants are right
    if not types.isdisjoint(_FUSED_WITH_MUL) and _is_one_multiplied(ref.node, facts):
        yield "unit_quotient"
    if folded_quotient(ref.node, facts) is not None or _is_unknown_quotient(ref, facts):
        yield "folded_quotient"


def _leaves_no_rest(node: ir.Node) -> bool:
    """Return whether a quotient is of a number less what dividing it leaves, so that it is exact.

    It is so after lowering.
    """
    dividend, divisor = node.inputs
    less = producer_of(dividend)
    if less is None or operator_of(less) != "Sub" or len(less.inputs) != 2:
        return False
    number, rest = less.inputs
    left = producer_of(rest)
    if left is None or operator_of(left) != "Mod":
        return False
    return tuple(left.inputs) == (number, divisor)


def _is_one_multiplied(node: ir.Node, facts: Facts) -> bool:
    """Return whether a Div divides 1, and only one node reads the quotient and multiplies it.

    Nodes that change nothing may be in between.
    """
    dividend = _elements(node.inputs[0], facts)
    if dividend is None or dividend.size != 1 or dividend.item() != 1:
        return False
    made = node.outputs[0]
    for _ in range(MOST_STEPS):
        uses = made.uses()
        if made.is_graph_output() or len(uses) != 1:
            return False
        (use,) = uses
        if operator_of(use.node) == "Mul":
            return True
        if not may_pass(use.node, use.idx):
            return False
        made = use.node.outputs[0]
    return False


def rounds_down(node: ir.Node) -> bool:
    """Return whether a Divide layer rounds integers down, as Python does, not toward zero."""
    held = node.attributes.get("m_pythondiv")
    return held is None or str(held.value).strip().lower() not in ("false", "0")


def _may_be_lower(node: ir.Node, facts: Facts) -> bool:
    """Return whether a Divide rounds down, and calculates what may be below 0 in the run."""
    is_folded = all(is_constant(held, facts) for held in node.inputs)
    are_natural = all(_is_natural(held, facts) for held in node.inputs)
    return rounds_down(node) and not is_folded and not are_natural


def _is_natural(held: ir.Value | None, facts: Facts, *, or_known: bool = False) -> bool:
    """Return whether integers are known not to be below 0, or `or_known` as numbers."""
    values = facts.tensor(held).values
    if values is None and is_constant(held, facts):
        known = _elements(held, facts)
        return known is not None and bool((known >= 0).all())
    if values is not None and all(
        is_at_least(value, 0) or (or_known and is_known(value)) for value in values
    ):
        return True
    return _is_moved_from(held, OF_SHAPES | _NATURAL)


def fused_operand(node: ir.Node, facts: Facts) -> ir.Value | None:
    """Return the operand of a Div of integers that is a sum, where the other operand is constant.

    A sum is what a reduction, matrix product or the like gives, and passes on through nodes that
    move elements or calculate with constants: engines fuse all these into one.
    """
    operand = _only_fed(node, facts)
    return operand if _is_of_sum(operand, facts) else None


def folded_quotient(node: ir.Node, facts: Facts) -> Array | None:
    """Return the quotient of a Div of constant integers, if rounding it down gives another one.

    It is rounded toward zero. None where an operand is not constant, or is not known here.
    """
    dividend, divisor = (_elements(held, facts) for held in node.inputs)
    if dividend is None or divisor is None or not divisor.all():
        return None
    try:
        with np.errstate(over="ignore"):  # the lowest integer by -1, which is exact
            downward, rest = np.divmod(dividend, divisor)
    except (TypeError, ValueError):  # types or shapes that do not go together
        return None
    is_between = (rest != 0) & (downward < 0)
    return downward + is_between.astype(downward.dtype) if is_between.any() else None


def _is_unknown_quotient(ref: NodeRef, facts: Facts) -> bool:
    """Return whether a Div gives integers that are constant, but that only a run tells."""
    is_known = all(_elements(held, facts) is not None for held in ref.node.inputs)
    return not is_known and is_of_constants(ref)


def _may_be_empty(node: ir.Node, facts: Facts) -> bool:
    """Return whether the limit of a Range may lie on the other side of its start than its step."""
    start, limit, _ = node.inputs
    first, last, step = (_number(facts.tensor(held)) for held in node.inputs)
    if isinstance(step, (int, float)):
        is_folded = isinstance(first, (int, float)) and isinstance(last, (int, float))
        ends = (None if isinstance(each, float) else each for each in (first, last))
        low, high = ends if step > 0 else reversed([*ends])
        is_count = step > 0 and first == 0 and _is_moved_from(limit, OF_SHAPES)
        if is_folded or is_count or is_at_least(high, low):
            return False
    return not _is_kept(start, limit)


def _number(known: Tensor) -> Dim | float:
    """Return the only element; a whole number as an integer, if it is of floats, too."""
    number: Dim | float = None
    if known.values is not None and len(known.values) == 1:
        (number,) = known.values
    return int(number) if isinstance(number, float) and number.is_integer() else number


def _is_moved_from(value: ir.Value | None, operators: frozenset[str]) -> bool:
    """Return whether numbers are those that a node of some operators gives."""
    sources = islice(origins(value, _moved), MOST_STEPS)
    return any(operator_of(each.producer()) in operators for each in sources)


def _moved(node: ir.Node) -> ir.Value | None:
    """Return the numbers that a node gives as they are, or some of them; None for other nodes."""
    return first_input(node) if operator_of(node) in _MAY_CHANGE_NOTHING | {"Gather"} else None


def _is_kept(start: ir.Value | None, limit: ir.Value | None) -> bool:
    """Return whether a limit is the start itself where it lies on the other side, by Where."""
    chosen = producer_of(limit)
    if chosen is None or (operator_of(chosen), len(chosen.inputs)) != ("Where", 3):
        return False
    condition, inside, outside = chosen.inputs
    test = producer_of(condition)
    if test is not None and operator_of(test) == "Where":
        tests = list(map(producer_of, test.inputs[1:]))
    else:
        tests = [test]
    return outside is start and all(
        each is not None and each.op_type == "Less" and set(each.inputs) == {start, inside}
        for each in tests
    )


def is_of_joined(node: ir.Node, facts: Facts) -> bool:
    """Return whether an Abs is of a Concat that an engine may change for other nodes, too.

    It calculates the distances before it joins them. Those of shapes and constants are left out.
    """
    waiting = [(node.inputs[0], False)]
    for _ in range(MOST_STEPS):
        if not waiting:
            break
        value, is_shared = waiting.pop()
        made = producer_of(value)
        if value is None or made is None or made.domain != node.domain or not made.inputs:
            continue
        readers = [use for use in value.uses() if not gives_shape(use.node)]
        is_shared = is_shared or len(readers) > 1 or value.is_graph_output()
        if operator_of(made) in _MAY_CHANGE_NOTHING:
            waiting.append((made.inputs[0], is_shared))
        elif made.op_type == "Concat":
            is_shared = is_shared or any(twins_of(made))
            if is_shared or any(is_calculated(part, facts) for part in made.inputs):
                return True
            waiting += [(part, False) for part in made.inputs]
    return False


def _is_of_sum(value: ir.Value | None, facts: Facts) -> bool:
    sources = islice(origins(value, partial(_passed_on, facts=facts)), MOST_STEPS)
    operators = (operator_of(each.producer()) for each in sources)
    return any(each in _SUMMING or each.startswith("Reduce") for each in operators)


def _passed_on(node: ir.Node, facts: Facts) -> ir.Value | None:
    """Return the operand that a node moves, or calculates with constants; None for other nodes."""
    operator = operator_of(node)
    if operator in _MOVING:
        return first_input(node)
    if operator in _OF_MANY:
        (first, *others) = dict.fromkeys(map(passed_from, _fed(node, facts))) or [None]
        return None if others else first
    return _only_fed(node, facts) if operator in _WITH_CONSTANTS else None


def _only_fed(node: ir.Node, facts: Facts) -> ir.Value | None:
    """Return the only operand that is not constant; None if there are more or fewer."""
    fed = _fed(node, facts)
    return fed[0] if len(fed) == 1 else None


def _fed(node: ir.Node, facts: Facts) -> list[ir.Value | None]:
    return [held for held in node.inputs if not is_fixed(held, facts)]


def _elements(held: ir.Value | None, facts: Facts) -> Array | None:
    """Return the numbers of a small constant, or of what is calculated from such."""
    values, shape = facts.tensor(held).constant, facts.tensor(held).shape
    if values is not None and shape is not None and are_known(shape):
        return np.array(values, np.int64).reshape(shape)
    found = constant(passed_from(held))
    return found if found is not None and found.dtype.kind in "iuf" else None


def _types(node: ir.Node, facts: Facts) -> frozenset[ir.DataType]:
    return frozenset().union(*(facts.element_types(held) for held in node.outputs))
