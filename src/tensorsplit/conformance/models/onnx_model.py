"""The model of a case, in the terms of the standard."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

from tensorsplit.conformance import data
from tensorsplit.conformance.oracle import Array

Shape = tuple[int | str | None, ...]

Fields: TypeAlias = dict[str, Any]
"""Fields of a `SplitModel`, or of a row that becomes one, by name."""


@dataclass(frozen=True, slots=True, repr=False)
class CaseOperand:
    """The second input of a split node; of an IR also its axis."""

    value: Any  # the lengths that count: a tuple, or a number for a scalar
    form: str = "constant"  # or ``initializer``, ``runtime`` or ``overridable``
    element_type: str = "int64"
    # what an overridable initializer holds that another value is fed for; None: `value`, unfed
    default: Any = None
    declared: Shape | None = None  # the shape that a graph input declares; None: of the value

    def __repr__(self) -> str:
        """Return the key that sampling uses: it stays as it is, so that cases keep their ids."""
        shown = f"value={self.value!r}, spelling={self.form!r}, element_type={self.element_type!r}"
        return f"Operand({shown}, default={self.default!r}, declared={self.declared!r})"

    def array(self, value: object) -> Array:
        """Return a value as a tensor of the operand's element type."""
        return np.asarray(value, data.dtype_of(self.element_type))


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitModel:
    """A model with a split node or layer, in the terms of the standard."""

    operator: str
    opset: int = 1  # that is imported; for an IR, that of its split layer
    element_type: str = "float"
    shape: tuple[int, ...]
    declared: Shape  # the shape that the model declares
    attributes: Mapping[str, Any] = field(default_factory=dict)
    operand: CaseOperand | None = None
    axis_operand: CaseOperand | None = None  # in an IR
    blank: bool = False  # whether the node has a second input with an empty name
    outputs: int = 1  # how many the node has
    unnamed: tuple[int, ...] = ()  # the places of outputs that have an empty name
    axis: int = 0  # that `sizes` lie on
    sizes: tuple[int, ...] | None = None  # the lengths; None if the model is to be refused
    keepdims: bool = True
    places: tuple[str, ...] = ()  # from the outside to the inside; none is the graph
    use: str = ""  # what is done with the sequence
    option: Any = None  # what that needs to know
    extreme: bool = False  # whether the data holds NaNs, infinities and the like
    is_constant: bool = False  # whether it is an initializer, so that tools may compute the parts
    also_halves: bool = False  # whether another node splits the data into halves, without lengths
    by_reference: bool = False  # whether the attributes are those of the function it is in

    @property
    def op_type(self) -> str:
        """The name of the operator: ``onnx.Split-18`` is a ``Split``."""
        return self.operator.partition(".")[2].rpartition("-")[0]
