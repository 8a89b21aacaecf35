"""What the standards say of the lengths of each version, stated by hand for z3."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias

import z3

from tests.core.proofs.numbers import Term

MOST_PARTS = 1 << 24
"""ADR 4."""


class Lengths(NamedTuple):
    """Whether a split is one at all, and whether lengths are those of its parts."""

    exist: Term
    are: Callable[[Sequence[Term]], Term]


Statement: TypeAlias = Callable[[Term, Sequence[Term]], Lengths]
"""Of a dimension, and of what is given."""


def as_given(dim: Term, given: Sequence[Term]) -> Lengths:
    """ "Values should be >= 0", and "the sum of the values must be equal to the dim" (D6, D7)."""
    fit = z3.And(z3.Sum(given) == dim, *(length >= 0 for length in given))
    return Lengths(fit, lambda parts: _are(parts, given))


def one_the_rest(dim: Term, given: Sequence[Term]) -> Lengths:
    """ "One of the values can be -1": the rest, which is not below 0 (D7)."""
    is_open = [length == -1 for length in given]
    rest = dim - z3.Sum([z3.If(length == -1, 0, length) for length in given])
    fit = z3.And(
        z3.AtMost(*is_open, 1),
        z3.If(z3.Or(is_open), rest >= 0, rest == 0),
        *(length >= -1 for length in given),
    )
    return Lengths(fit, lambda parts: _are(parts, [z3.If(x == -1, rest, x) for x in given]))


def equal(dim: Term, given: Sequence[Term]) -> Lengths:
    """ "Equal sized parts": all alike, and together the dimension (D3)."""
    count = _number(given)
    return Lengths(
        dim % count == 0,
        lambda parts: z3.And(count * parts[0] == dim, _are(parts, [parts[0]] * count)),
    )


def last_smaller(dim: Term, given: Sequence[Term]) -> Lengths:
    """ "The last chunk will be smaller": parts of d/n rounded up, and what they leave (D1, D2)."""
    count = _number(given)
    size = z3.If(dim % count == 0, dim / count, dim / count + 1)
    rest = dim - size * (count - 1)
    return Lengths(rest >= 0, lambda parts: _are(parts, [size] * (count - 1) + [rest]))


def chunks(dim: Term, given: Sequence[Term]) -> Lengths:
    """ "All chunks of the same size", "the last chunk may be smaller", and not empty (D9, D10)."""
    (size,) = given
    return Lengths(
        z3.And(size >= 1, dim <= size * MOST_PARTS),
        lambda parts: z3.And(
            z3.Sum([z3.IntVal(0), *parts]) == dim,
            *(part == size for part in parts[:-1]),
            *(z3.And(part >= 1, part <= size) for part in parts[-1:]),
        ),
    )


def ones(dim: Term, given: Sequence[Term]) -> Lengths:
    """ "Split into chunks of size 1"."""
    return chunks(dim, [z3.IntVal(1)])


def _number(given: Sequence[Term]) -> int:
    (count,) = given
    return int(count.as_long())


def _are(parts: Sequence[Term], lengths: Sequence[Term]) -> Term:
    alike = (part == length for part, length in zip(parts, lengths, strict=False))
    return z3.And(len(parts) == len(lengths), *alike)


STANDARD: dict[str, dict[str, Statement]] = {
    "onnx.Split-1": {"attribute split": as_given, "input split": as_given, "nothing": equal},
    "onnx.Split-2": {"attribute split": as_given, "nothing": equal},
    "onnx.Split-11": {"attribute split": as_given, "nothing": equal},
    "onnx.Split-13": {"input split": as_given, "nothing": equal},
    "onnx.Split-18": {"input split": as_given, "attribute num_outputs": last_smaller},
    "onnx.SplitToSequence-11": {
        "input split": as_given,
        "scalar input split": chunks,
        "nothing": ones,
    },
    "onnx.SplitToSequence-24": {
        "input split": as_given,
        "scalar input split": chunks,
        "nothing": ones,
    },
    "openvino.VariadicSplit-1": {"input split_lengths": one_the_rest},
    "openvino.Split-1": {"attribute num_splits": equal},
}
"""By operator version, and by what gives the lengths."""
