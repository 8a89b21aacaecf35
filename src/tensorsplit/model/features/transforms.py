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


_STEP, WINDOW, FRAME_LENGTH = 1, 2, 3
"""The places of the step, the window and the length of the frames of an STFT."""


def _has_fed_frames(ref: NodeRef, _: Facts) -> bool:
    """Return whether the step or the length of frames is not a constant, or not given."""
    given = [ref.input(place) for place in (_STEP, FRAME_LENGTH)]
    if given[1] is None and ref.input(WINDOW) is not None:
        given.pop()
    return any(constant(passed_from(held)) is None for held in given)


def _has_guessed_frames(ref: NodeRef, seen: Facts) -> bool:
    """Return whether frames are as long as a window, and not as the signal divided by the step."""
    signal, window = (seen.tensor(ref.input(place)).shape for place in (0, WINDOW))
    step = constant(passed_from(ref.input(_STEP)))
    if ref.input(FRAME_LENGTH) is not None or step is None or not window or not signal:
        return False
    whole, length = next(iter(signal[1:2]), None), window[0]
    if not is_known(whole) or not is_known(length) or step.size != 1 or step.item() < 1:
        return False
    return length != whole // int(step.item())


def _has_real_frames(ref: NodeRef, seen: Facts) -> bool:
    """Return whether an STFT by a window gives both halves of real numbers."""
    signal, whole = seen.tensor(ref.input(0)).shape, (ref.node, "onesided", ir.AttributeType.INT, 1)
    is_real = signal is not None and signal[-1:] == (1,)
    return is_real and attribute_of(*whole) == 0 and ref.input(WINDOW) is not None


OF_TRANSFORMS: Mapping[str, tuple[tuple[str, Callable[[NodeRef, Facts], object]], ...]] = {
    "DFT": (
        ("axis_from_back", _counts_from_back),
        ("one_sided", _is_one_sided),
        ("from_one_side", partial(_is_one_sided, is_inverse=True)),
        ("real_or_complex", _may_be_real),
        ("transformed_axis", _has_other_axis),
    ),
    "STFT": (
        ("fed_frames", _has_fed_frames),
        ("guessed_frames", _has_guessed_frames),
        ("real_frames", _has_real_frames),
    ),
}
"""What may hold of a transform, by operator."""
