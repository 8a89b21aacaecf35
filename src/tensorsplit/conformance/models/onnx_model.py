"""What the model of a case says, in the terms of the standard."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tensorsplit.conformance import data
from tensorsplit.conformance.oracle import Array

Shape = tuple[int | str | None, ...]


@dataclass(frozen=True, slots=True, repr=False)
class CaseOperand:
    """The second input of a split node; of an IR also its axis.

    Attributes:
        value: The lengths that count: a tuple, or a number for a scalar.
        form: How they get there: ``initializer``, ``constant``, ``runtime`` or ``overridable``.
        element_type: Their element type.
        default: What an overridable initializer holds that another value is fed for; None: nothing
            is fed, and it holds `value`.
        declared: The shape that a graph input of it declares; None: that of the value.
    """

    value: Any
    form: str = "constant"
    element_type: str = "int64"
    default: Any = None
    declared: Shape | None = None

    def __repr__(self) -> str:
        """What draws go by: it stays as it is, so that cases keep their ids."""
        said = f"value={self.value!r}, spelling={self.form!r}, element_type={self.element_type!r}"
        return f"Operand({said}, default={self.default!r}, declared={self.declared!r})"

    def array(self, value: Any) -> Array:
        """A value as a tensor of the operand's element type."""
        return np.asarray(value, data.dtype_of(self.element_type))


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitModel:
    """A model with a split node or layer, in the terms of the standard.

    Attributes:
        opset: The opset that is imported; for an IR, that of its split layer.
        declared: The shape that the model declares for the data; None: that of what is fed.
        axis_operand: The input that says the axis, in an IR.
        blank: Whether the node has a second input with an empty name.
        outputs: How many outputs the node has; for a sequence, 1.
        unnamed: The places of outputs that have an empty name.
        axis: The axis that `sizes` lie on.
        sizes: The lengths of the parts; None if the model is to be refused.
        places: Where the node is, from the outside to the inside; ``()`` is the graph.
        use: What is done with the sequence, and in `option` what that needs to know.
        extreme: Whether the data holds NaNs, infinities and the like.
        by_reference: In a function, whether the attributes are those of the function.
        is_constant: Whether the data is an initializer, so that tools may compute the parts.
    """

    operator: str
    opset: int = 1
    element_type: str = "float"
    shape: tuple[int, ...]
    declared: Shape | None = None
    attributes: Mapping[str, Any] = field(default_factory=dict)
    operand: CaseOperand | None = None
    axis_operand: CaseOperand | None = None
    blank: bool = False
    outputs: int = 1
    unnamed: tuple[int, ...] = ()
    axis: int = 0
    sizes: tuple[int, ...] | None = None
    keepdims: bool = True
    places: tuple[str, ...] = ()
    use: str = ""
    option: Any = None
    extreme: bool = False
    is_constant: bool = False
    by_reference: bool = False

    @property
    def op_type(self) -> str:
        """The name of the operator: ``onnx.Split-18`` is a ``Split``."""
        return self.operator.partition(".")[2].rpartition("-")[0]

    @property
    def declared_shape(self) -> Shape:
        """What the model declares of the shape of the data."""
        return self.shape if self.declared is None else self.declared
