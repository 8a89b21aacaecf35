"""What an ONNX model of a case says, and the model that says it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, MutableMapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from onnx import FunctionProto, NodeProto, TensorProto, ValueInfoProto, helper, numpy_helper
from onnx.helper import make_node, make_tensor_value_info

from tensorsplit.conformance import data
from tensorsplit.conformance.oracle import Array

LOCAL = "conformance.local"
"""The domain of the functions that the models bring along."""

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


@dataclass(frozen=True, slots=True)
class Value:
    """A value inside a model, and what it is expected to be; None where a refusal is expected.

    The shape of a sequence is that declared of its elements.
    """

    name: str
    element_type: str
    shape: Shape
    expected: Any = None
    is_sequence: bool = False

    def info(self, name: str | None = None) -> ValueInfoProto:
        """The declaration, of another name if one is given."""
        make = (
            helper.make_tensor_sequence_value_info if self.is_sequence else make_tensor_value_info
        )
        return make(name or self.name, tensor_type(self.element_type), self.shape)


@dataclass(frozen=True, slots=True)
class Fragment:
    """Nodes, and the values that they are there for."""

    nodes: list[NodeProto]
    outputs: list[Value]


@dataclass(slots=True)
class Scope:
    """The main graph in the making: what nodes inside of anything may refer to.

    Adding a name a second time changes nothing.
    """

    rng: np.random.Generator
    inputs: dict[str, ValueInfoProto] = field(default_factory=dict)
    initializers: dict[str, TensorProto] = field(default_factory=dict)
    functions: list[FunctionProto] = field(default_factory=list)
    feeds: dict[str, Any] = field(default_factory=dict)
    arrays: dict[str, Array] = field(default_factory=dict)

    def input(
        self, name: str, element_type: str, array: Array | None, shape: Shape | None = None
    ) -> str:
        """A graph input, and the array to feed; None: it is left to its default."""
        if name not in self.inputs:
            declared = shape if array is None or shape is not None else array.shape
            self.inputs[name] = make_tensor_value_info(name, tensor_type(element_type), declared)
            if array is not None:
                self.feeds[name] = array
        return name

    def data(self, name: str, model: SplitModel, shape: tuple[int, ...], declared: Shape) -> Value:
        """A graph input with random elements of the element type of the data."""
        if name not in self.arrays:
            array = data.values(model.element_type, shape, self.rng, model.extreme)
            self.arrays[name] = array
            if model.is_constant:
                self.initializer(name, array)
            else:
                self.input(name, model.element_type, array, declared)
        return Value(name, model.element_type, declared, self.arrays[name])

    def initializer(self, name: str, array: Array) -> str:
        """An initializer."""
        if name not in self.initializers:
            self.initializers[name] = numpy_helper.from_array(array, name)
        return name

    def keep(self, names: Collection[str]) -> None:
        """Drop the inputs and initializers that nothing refers to."""
        everything: tuple[MutableMapping[str, Any], ...]
        everything = (self.inputs, self.initializers, self.feeds)
        for held in everything:
            for name in [name for name in held if name not in names]:
                del held[name]


def tensor_type(element_type: str) -> int:
    """ONNX's number of an element type."""
    return int(TensorProto.DataType.Value(element_type.upper()))


def constant(name: str, array: Array) -> NodeProto:
    """A Constant node; strings and all number types are written as a tensor."""
    return make_node("Constant", [], [name], value=numpy_helper.from_array(array, name))


def operand_name(scope: Scope, operand: CaseOperand, prefix: str) -> tuple[list[NodeProto], str]:
    """The second input of a split node: its name, and the nodes that make it."""
    array = operand.array(operand.value)
    if operand.form == "constant":
        return [constant(f"{prefix}split", array)], f"{prefix}split"
    if operand.form != "runtime":
        default = operand.value if operand.default is None else operand.default
        scope.initializer("split", operand.array(default))
    if operand.form != "initializer":
        is_fed = operand.form == "runtime" or operand.default is not None
        shape = array.shape if operand.declared is None else operand.declared
        scope.input("split", operand.element_type, array if is_fed else None, shape)
    return [], "split"
