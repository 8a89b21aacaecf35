"""The vocabulary of an operator record: a standard's page, as data.

The first half of a record repeats the page (attributes, inputs, outputs, type constraints); the
second half gives the operand that holds the axis, where the lengths come from and by which rule.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType

from tensorsplit.core.rules import LengthRule


@dataclass(frozen=True, slots=True)
class Attribute:
    """An attribute of an operator version.

    Attributes:
        name: As in the standard.
        type: ``INT`` or ``INTS``; of a dialect, perhaps either.
        required: Whether a node must have it.
        default: The value in force when it is absent; None where the page gives none.
        description: What it means, paraphrased.
    """

    name: str
    type: str
    required: bool = False
    default: int | None = None
    description: str = ""

    @property
    def rank(self) -> int:
        """0 for a number, 1 for a list."""
        return 1 if self.type == "INTS" else 0

    @property
    def need(self) -> str:
        """``required``, ``optional``, or the default."""
        if self.default is not None:
            return f"default {self.default}"
        return "required" if self.required else "optional"


@dataclass(frozen=True, slots=True)
class Parameter:
    """An input or output of an operator version.

    Attributes:
        name: As in the standard.
        type_str: A type constraint's name, or one type.
        option: ``single``, ``optional`` or ``variadic``.
        description: What it holds, paraphrased.
    """

    name: str
    type_str: str
    option: str = "single"
    description: str = ""


@dataclass(frozen=True, slots=True)
class TypeConstraint:
    """The types that a type parameter may take.

    Attributes:
        name: The type parameter, such as ``T``.
        types: Every type, as the standard orders and writes them.
        element_types: The element types among them, by the package's names (ONNX's
            ``TensorProto`` names in lower case).
        any: Whether the page allows any type the vendor supports; `types` then lists them, and
            nothing is refused for its type.
        description: Its description on the page, paraphrased.
    """

    name: str
    types: tuple[str, ...]
    element_types: frozenset[str]
    any: bool = False
    description: str = ""


@dataclass(frozen=True, slots=True)
class Lengths:
    """An operand that gives the lengths.

    Attributes:
        operand: The attribute's or input's name.
        rules: The length rule for each rank the operand may have.
        kind: ``attribute`` or ``input``.
    """

    operand: str
    rules: Mapping[int, LengthRule]
    kind: str


@dataclass(frozen=True, repr=False)
class Operator:
    """One version of one operator: a declarative record.

    Attributes:
        vendor: ``onnx`` or ``openvino``; of a dialect, its library or standard.
        name: The operator's name.
        since_version: The opset that introduced this version; 0 for a dialect.
        domain: The domain (ONNX) or opset (OpenVINO) it belongs to; ``""`` is ONNX's own.
        source: The page of the standard.
        summary: The text of the version, paraphrased.
        support_level: ``common`` or ``experimental``, as ONNX classes it.
        category: What OpenVINO's page calls its category; empty for ONNX.
        is_function: Whether the standard defines it by other operators.
        has_shape_inference: Whether the vendor's package infers its output shapes.
        attributes: In alphabetic order.
        inputs: In order; the first one is the data.
        outputs: In order.
        type_constraints: In the standard's order.
        axis: The operand that holds the axis.
        axis_default: The axis when none is given; None if one must be.
        axis_ranks: The ranks an axis may have; rank 1 means shape [1].
        negative_axis: Whether, by its page, a negative axis counts from the back.
        lengths: The operands that may give the lengths; at most one is given.
        absent: The rule when none of them is given; None if one must be.
        keepdims: The attribute that decides whether the axis stays when `absent` is used.
        is_sequence: Whether the output is one sequence and not one tensor for each part.
        notes: Behaviour that differs from other versions, as (aspect, what holds).
        axis_from_back: Whether a negative axis counts from the back; if not, it is refused.
        is_dialect: Whether this is what another library means by a split, and not of the family.
    """

    vendor: str
    name: str
    since_version: int
    domain: str
    source: str
    summary: str
    inputs: tuple[Parameter, ...]
    outputs: tuple[Parameter, ...]
    type_constraints: tuple[TypeConstraint, ...]
    lengths: tuple[Lengths, ...]
    attributes: tuple[Attribute, ...] = ()
    absent: LengthRule | None = None
    axis: str = "axis"
    axis_default: int | None = 0
    axis_ranks: tuple[int, ...] = (0,)
    negative_axis: bool = True
    keepdims: str | None = None
    is_sequence: bool = False
    support_level: str = "common"
    category: str = ""
    is_function: bool = False
    has_shape_inference: bool = True
    notes: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    axis_from_back: bool = True
    is_dialect: bool = False

    @cached_property
    def id(self) -> str:
        """The identifier, such as ``onnx.Split-18`` or, of a dialect, ``torch.chunk``."""
        version = "" if self.is_dialect else f"-{self.since_version}"
        return f"{self.vendor}.{self.name}{version}"

    def __str__(self) -> str:
        return self.id

    def __repr__(self) -> str:
        return f"<Operator {self.id}>"

    def __hash__(self) -> int:
        return hash(self.id)

    def attribute(self, name: str) -> Attribute | None:
        """Return the attribute of that name, or None."""
        return next((a for a in self.attributes if a.name == name), None)

    def input(self, name: str) -> Parameter | None:
        """Return the input of that name, or None."""
        return next((i for i in self.inputs if i.name == name), None)

    def types_of(self, parameter: Parameter) -> TypeConstraint:
        """Return the types a parameter may have, whether it names a constraint or one type."""
        for constraint in self.type_constraints:
            if constraint.name == parameter.type_str:
                return constraint
        element = parameter.type_str.removeprefix("tensor(").removesuffix(")")
        return TypeConstraint(parameter.type_str, (parameter.type_str,), frozenset({element}))

    @property
    def operands(self) -> tuple[str, ...]:
        """The names of everything but the data: attributes first, then inputs, each name once."""
        names = [a.name for a in self.attributes] + [i.name for i in self.inputs[1:]]
        return tuple(dict.fromkeys(names))
