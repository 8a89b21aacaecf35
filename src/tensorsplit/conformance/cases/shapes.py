"""Shapes around a dimension that is cut, and what a model declares of them."""

from __future__ import annotations

from dataclasses import dataclass

from tensorsplit.conformance.cases.making import draw
from tensorsplit.conformance.models.onnx_model import Shape

_OTHERS = (2, 1, 3, 2, 1, 4)
"""Lengths of the other dimensions, in turn; all different ones would make large data."""


@dataclass(frozen=True, slots=True)
class Shaped:
    """The shape of the data, what is declared of it, and the axis as the node says it."""

    shape: tuple[int, ...]
    declared: Shape
    axis: int

    @property
    def attributes(self) -> dict[str, int]:
        """The attribute ``axis``; an axis of 0 is the default, and left out."""
        return {"axis": self.axis} if self.axis else {}


def shaped(dim: int, rank: int, axis: int, shape_class: str, key: str) -> Shaped:
    """A shape with a dimension on an axis.

    Args:
        dim: The dimension that is cut.
        rank: The rank.
        axis: The axis, maybe negative.
        shape_class: What is to be declared. With ``zero-size``, another dimension is 0, but where
            the dimension that is cut is 0 itself.
        key: What the lengths of the other dimensions are drawn by.
    """
    place = axis % rank
    turn = draw(f"others {key}", range(len(_OTHERS)))
    shape = [_OTHERS[(turn + number) % len(_OTHERS)] for number in range(rank)]
    shape[place] = dim
    declared: list[int | str | None] = list(shape)
    others = [number for number in range(rank) if number != place]
    if shape_class == "zero-size" and dim:
        shape[draw(f"zero {key}", others)] = 0
        declared = list(shape)
    elif shape_class == "dynamic-axis":
        declared[place] = draw(f"name {key}", ("N", None))
    elif shape_class == "dynamic-other":
        for number in others:
            declared[number] = f"M{number}"
    return Shaped(tuple(shape), tuple(declared), axis)


def drawn_rank(shape_class: str, key: str, lowest: int = 1) -> int:
    """A rank from 1 to 6, or from 2 where there has to be another dimension."""
    least = 2 if shape_class in ("dynamic-other", "zero-size") else lowest
    return draw(f"rank {key}", range(least, 7))


def drawn_axis(rank: int, key: str) -> int:
    """Any axis, counted from the front or from the back."""
    return draw(f"axis {key}", range(-rank, rank))
