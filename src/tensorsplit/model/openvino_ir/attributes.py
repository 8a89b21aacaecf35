"""The attributes of a layer, in a graph that was made of an IR."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import ClassVar, TypeVar

import onnx_ir as ir

from tensorsplit.core.dimensions import Shape, are_known
from tensorsplit.core.errors import show
from tensorsplit.core.records.openvino import ELEMENT_TYPES

OPSET = 18
"""The opset of the nodes of ONNX that give what layers give."""

BROADCAST = (
    *("Add", "Equal", "Greater", "GreaterEqual", "Less", "LessEqual", "LogicalAnd", "LogicalOr"),
    *("Maximum", "Minimum", "Multiply", "Subtract"),
)
"""Layers of opset1 whose operands are broadcast, and that are one node of ONNX."""

_FLAGS = {"true": True, "false": False, "1": True, "0": False}

T = TypeVar("T")


def _integers(listed: str) -> list[int]:
    return [int(each) for each in listed.split(",")] if listed else []


def is_set(layer: ir.Node, name: str) -> bool:
    """Return whether an attribute of a layer is true; not if it is missing or neither."""
    held = layer.attributes.get(name)
    return held is not None and _FLAGS.get(str(held.value).strip().lower(), False)


def marked(layer: ir.Node, name: str) -> int:
    """Return how many bits of a mask of a layer are 1; none if it is missing."""
    held = layer.attributes.get(name)
    return 0 if held is None else [bit.strip() for bit in str(held.value).split(",")].count("1")


class LayerAttributes(ABC):
    """Reads the attributes of a layer; a subclass decides what follows if it can't."""

    element_types: ClassVar[Mapping[str, ir.DataType]] = {
        name: ir.DataType[known.upper()]
        for name, known in ELEMENT_TYPES.items()
        if known.upper() in ir.DataType.__members__
    }
    """The element types that attributes may name: all that ONNX has."""

    def __init__(self, node: ir.Node) -> None:
        self._attributes = node.attributes

    @abstractmethod
    def refusal(self, reason: str) -> Exception:
        """Return the exception for an attribute that can't be read."""

    @abstractmethod
    def shapes(self) -> list[Shape | None]:
        """Return the shape of each input, or None where it is not known."""

    def text(self, name: str, default: str | None = None) -> str:
        """Return an attribute as text."""
        held = self._attributes.get(name)
        if held is None and default is None:
            raise self.refusal(f"its {name} is missing")
        return str(default if held is None else held.value).strip()

    def word(self, name: str, default: str | None = None) -> str:
        """Return an attribute that is one of several words, in lower case."""
        return self.text(name, default).lower()

    def choice(self, name: str, known: Mapping[str, T], default: str | None = None) -> T:
        """Return the meaning of an attribute that is one of several words."""
        word = self.word(name, default)
        if word not in known:
            raise self._refused_value(name)
        return known[word]

    def flag(self, name: str, default: bool | None = None) -> bool:
        """Return an attribute that is yes or no."""
        return self.choice(name, _FLAGS, None if default is None else str(default))

    def integer(self, name: str, default: int | None = None) -> int:
        """Return an attribute that is an integer."""
        return self._parsed(name, int, default)

    def numbers(self, name: str) -> list[int]:
        """Return an attribute that is a list of integers; empty if it is missing."""
        return self._parsed(name, _integers, "")

    def masked(self, name: str, count: int) -> list[int]:
        """Return the bits of a mask, which may have fewer."""
        return [*self.numbers(name), *[0] * count][:count]

    def number(self, name: str, default: float | None = None) -> float:
        """Return an attribute that is a number."""
        return self._parsed(name, float, default)

    def named_type(self, name: str, default: str | None = None) -> ir.DataType:
        """Return an element type that an attribute names."""
        return self.choice(name, self.element_types, default)

    def check_broadcast(self) -> None:
        """Refuse a layer whose operands are not broadcast as NumPy does."""
        mode = self.word("auto_broadcast", "numpy")
        if mode == "numpy":
            return
        first, *others = self.shapes()
        is_alike = first is not None and are_known(first) and all(each == first for each in others)
        if mode != "none" or not is_alike:
            raise self._refused_value("auto_broadcast")

    def _parsed(self, name: str, parse: Callable[[str], T], default: object = None) -> T:
        text = self.text(name, None if default is None else str(default))
        try:
            return parse(text)
        except ValueError:
            raise self._refused_value(name) from None

    def _refused_value(self, name: str) -> Exception:
        """Return the exception for an attribute with a value that is not known."""
        return self.refusal(f"its {name} is {show(self.text(name))}")
