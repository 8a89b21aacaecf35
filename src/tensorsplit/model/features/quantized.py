"""What is quantised to 16 bits and given back at once, which engines take for no calculation."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import TypeAlias

import numpy as np
import onnx_ir as ir

from tensorsplit.model.features.from_constants import is_fixed
from tensorsplit.model.graph.held_tensors import constant
from tensorsplit.model.graph.nodes import NodeRef, attribute_of
from tensorsplit.model.graph.producers import passed_from
from tensorsplit.model.graph.tensors import Array
from tensorsplit.model.infer.analysis import Facts

_Limits: TypeAlias = "np.iinfo[np.int16] | np.iinfo[np.uint16]"
_LIMITS: Mapping[ir.DataType | None, _Limits] = MappingProxyType(
    {ir.DataType.INT16: np.iinfo(np.int16), ir.DataType.UINT16: np.iinfo(np.uint16)}
)

_LEAST_DIFFERENCE = 1e-6
"""Ranges whose ends differ by less are the same for OpenVINO."""


def of_quantized(ref: NodeRef, facts: Facts) -> Iterator[str]:
    """Yield whether only the inverse of a QuantizeLinear to 16 bits reads its result.

    Bodies are left out, and blocks with a scale each: engines make one node of the two in neither.
    """
    node = ref.node
    is_inside = bool(ref.around) or ref.function is not None
    if ref.op_type != "QuantizeLinear" or is_inside or _has_blocks(node) or len(node.outputs) != 1:
        return
    (made,) = node.outputs
    limits = _LIMITS.get(facts.tensor(made).element_type)
    readers = () if made.is_graph_output() else made.uses()
    if limits is None or not readers:
        return
    if all(use.idx == 0 and _is_inverse(use.node, node, limits, facts) for use in readers):
        yield "given_back"


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
    factors, lowest = (constant(passed_from(held)) for held in by)
    if factors is None or (lowest is None and by[1] is not None):
        return None
    lowest = np.zeros(factors.shape) if lowest is None else lowest
    if lowest.shape != factors.shape or {factors.dtype.kind, lowest.dtype.kind} & set("OSU"):
        return None  # a node that is refused elsewhere
    with np.errstate(all="ignore"):
        ends = [end - lowest.astype(np.float64) for end in (limits.min, limits.max)]
        return np.stack([each * factors.astype(np.float64) for each in ends])
