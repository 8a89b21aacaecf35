"""Fourier transforms (DFT, STFT) of which an engine makes something else."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

import onnx_ir as ir

from tensorsplit.core.dimensions import is_known
from tensorsplit.model.graph.held_tensors import constant
from tensorsplit.model.graph.nodes import NodeRef, attribute_of
from tensorsplit.model.graph.producers import passed_from
from tensorsplit.model.infer.analysis import Facts

FIRST_WITH_AXIS_OF_DFT = 20
"""From here on the axis of a DFT is an input, and another one by default."""


def axis_of_transform(ref: NodeRef, facts: Facts) -> int | None:
    """Return the axis of a DFT from the front; None where it is not known, and of a scalar.

    The last axis holds the parts of the numbers.
    """
    shape, axis = facts.tensor(ref.input(0)).shape, ref.input(2)
    if ref.opset < FIRST_WITH_AXIS_OF_DFT:
        along = attribute_of(ref.node, "axis", ir.AttributeType.INT, 1)
    else:
        along = -2 if axis is None else next(iter(facts.tensor(axis).constant or ()), None)
    return None if not shape or along is None else int(along) % len(shape)


def _is_one_sided(ref: NodeRef, _seen: Facts, *, is_inverse: bool = False) -> bool:
    """Return whether a transform gives the first half alone, of real numbers; or is the inverse."""
    onesided, inverse = (
        attribute_of(ref.node, name, ir.AttributeType.INT, 0) for name in ("onesided", "inverse")
    )
    return onesided == 1 and bool(inverse) is is_inverse


def _counts_from_back(ref: NodeRef, seen: Facts) -> bool:
    """Return whether a whole transform has an attribute for its axis, which is negative."""
    axis = attribute_of(ref.node, "axis", ir.AttributeType.INT, 1)
    has_attribute = ref.opset < FIRST_WITH_AXIS_OF_DFT and axis is not None
    return has_attribute and axis < 0 and not _is_one_sided(ref, seen)


def _may_be_real(ref: NodeRef, seen: Facts) -> bool:
    """Return whether it is seen only at run time if data are real or complex numbers."""
    shape = seen.tensor(ref.input(0)).shape
    return not shape or not is_known(shape[-1])


def _has_other_axis(ref: NodeRef, seen: Facts) -> bool:
    """Return whether a transform is along another axis than 1, where that is an input.

    An axis that is 1 is so for data of any rank, which an engine may not see.
    """
    if ref.opset < FIRST_WITH_AXIS_OF_DFT:
        return False
    is_first = seen.tensor(ref.input(2)).constant in (1, (1,))
    return not is_first and axis_of_transform(ref, seen) != 1


_STEP_AND_LENGTH = (1, 3)
"""The places of the step and the length of the frames of an STFT."""


def _has_fed_frames(ref: NodeRef, _: Facts) -> bool:
    """Return whether the step or the length of frames is not a constant, or not given."""
    return any(constant(passed_from(ref.input(place))) is None for place in _STEP_AND_LENGTH)


OF_TRANSFORMS: Mapping[str, tuple[tuple[str, Callable[[NodeRef, Facts], object]], ...]] = {
    "DFT": (
        ("axis_from_back", _counts_from_back),
        ("one_sided", _is_one_sided),
        ("from_one_side", partial(_is_one_sided, is_inverse=True)),
        ("real_or_complex", _may_be_real),
        ("transformed_axis", _has_other_axis),
    ),
    "STFT": (("fed_frames", _has_fed_frames),),
}
"""What may hold of a transform, by operator."""
