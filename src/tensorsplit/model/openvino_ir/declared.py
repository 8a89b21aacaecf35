"""What the layers of an IR file declare: inputs, constants, and how the outputs are called."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from tensorsplit.core.errors import EXTERNAL_DATA, MALFORMED_MODEL, SplitError, show_int
from tensorsplit.core.records.openvino import ELEMENT_TYPES
from tensorsplit.model.openvino_ir.graph import Graph, Layer
from tensorsplit.model.openvino_ir.types import Array, byte_count, decode
from tensorsplit.model.openvino_ir.xml import whole

Range: TypeAlias = "tuple[int, int | None]"
"""The least and the largest length of a dimension; None where there is no largest."""

CONSTANTS = ("Const", "Constant")
"""How the type of a constant is spelled."""

_OF_NO_TYPE = ("dynamic", "undefined")
_DIMENSION = re.compile(r"(?P<exact>[0-9]{1,18})|(?P<low>[0-9]{0,18})\.\.(?P<high>[0-9]{0,18})")
_SINK = re.compile(r"/sink_port_[0-9]+$")


@dataclass(frozen=True, slots=True)
class Constant:
    """Where the data of a constant lies.

    Attributes:
        element_type: OpenVINO's name of the type.
        shape: The shape.
        offset: Where in the ``.bin`` file the data starts; of any alignment.
        size: How many bytes it has.
    """

    element_type: str
    shape: tuple[int, ...]
    offset: int
    size: int


def element_type_of(layer: Layer) -> str | None:
    """OpenVINO's name of the type that a Parameter or Const declares; None if it may be any.

    Raises:
        SplitError: TS502.
    """
    name = layer.attributes.get("element_type")
    if name in _OF_NO_TYPE:
        return None
    if name not in ELEMENT_TYPES:
        raise SplitError(
            MALFORMED_MODEL,
            f"its element type is {'missing' if name is None else repr(name[:40])}",
            f"it is one of {', '.join(ELEMENT_TYPES)}",
            node=layer.path,
        )
    return name


def ranges_of(layer: Layer) -> tuple[Range, ...] | None:
    """The shape that a Parameter declares; None for any rank.

    Raises:
        SplitError: TS502.
    """
    text = layer.attributes.get("shape")
    if text is None:
        raise SplitError(
            MALFORMED_MODEL, "its shape is missing", "a scalar has shape=''", node=layer.path
        )
    inner = text.strip().removeprefix("[").removesuffix("]").strip()
    if inner == "...":
        return None
    return tuple(_range(item.strip(), layer) for item in inner.split(",")) if inner else ()


def _range(text: str, layer: Layer) -> Range:
    """One of ``?``, ``-1``, ``3``, ``1..8``, ``1..`` and ``..8``."""
    if text in {"?", "-1"}:
        return 0, None
    match = _DIMENSION.fullmatch(text)
    if match is not None and match["exact"]:
        return int(text), int(text)
    if match is not None and text != "..":
        low, high = int(match["low"] or 0), int(match["high"]) if match["high"] else None
        if high is None or low <= high:
            return low, high
    raise SplitError(
        MALFORMED_MODEL,
        f"its shape has the dimension {text[:40]!r}",
        "a dimension is a number >= 0, a range such as 1..8, or ?",
        node=layer.path,
    )


def constant_of(layer: Layer) -> Constant:
    """What a Const declares.

    Raises:
        SplitError: TS502, and TS504 if its size is not that of its shape and type.
    """
    element_type = element_type_of(layer)
    ranges = ranges_of(layer)
    if element_type is None or ranges is None or any(low != high for low, high in ranges):
        raise SplitError(
            MALFORMED_MODEL,
            "a constant has no fixed shape or element type",
            "constants have both",
            node=layer.path,
        )
    offset, size = (
        whole(layer.attributes.get(name), f"its {name}", layer.path) for name in ("offset", "size")
    )
    shape = tuple(low for low, _ in ranges)
    needed = byte_count(element_type, shape)
    if needed not in (None, size):
        raise SplitError(
            EXTERNAL_DATA,
            f"{element_type} of shape {list(shape)} takes {show_int(needed or 0)} bytes, but its"
            f" size is {size}",
            "the .xml is damaged: save it again",
            node=layer.path,
        )
    return Constant(element_type, shape, offset, size)


def all_constants(graph: Graph) -> Iterator[Layer]:
    """The Const layers of a graph and of every body in it."""
    yield from graph.of_type(*CONSTANTS)
    for layer in graph.order:
        for body in layer.bodies:
            yield from all_constants(body)


def check_weights(graph: Graph, weights: Path) -> None:
    """Check that the data of every constant lies in the ``.bin`` file.

    Raises:
        SplitError: TS502 and TS504.
    """
    held = weights.stat().st_size if weights.is_file() else None
    for layer in all_constants(graph):
        constant = constant_of(layer)
        end = constant.offset + constant.size
        if constant.size and (held is None or end > held):
            raise SplitError(
                EXTERNAL_DATA,
                f"its data ends at byte {end}, but {weights.name} "
                + ("is missing" if held is None else f"has {held} bytes"),
                "keep the .bin that was written with the .xml beside it",
                node=layer.path,
            )


def read_constant(layer: Layer, weights: Path) -> Array:
    """The data of a constant, as a new array.

    Raises:
        SplitError: TS504 for data that is missing or malformed, TS509 for a type that NumPy has
            no arrays of.
    """
    constant = constant_of(layer)
    data = b""
    try:
        if constant.size:
            with weights.open("rb") as file:
                file.seek(constant.offset)
                data = file.read(constant.size)
        if len(data) == constant.size:
            return decode(data, constant.element_type, constant.shape)
        problem = f"{weights.name} has {len(data)} of {constant.size} bytes"
    except OSError as error:
        problem = f"{weights.name} can't be read: {error.strerror}"
    except SplitError as error:
        raise error.located(node=layer.path) from None
    raise SplitError(
        EXTERNAL_DATA, problem, "keep the .bin that was written with the .xml", node=layer.path
    )


def input_name(layer: Layer) -> str:
    """What a Parameter is called: by its layer name, else its tensor name, else its id."""
    return layer.name or next(
        (name for port in layer.outputs for name in port.names), str(layer.id)
    )


def name_outputs(graph: Graph) -> tuple[str, ...]:
    """What each Result is called, in the order of the file; every name once.

    A Result is called by its own tensor name, else by one of the port that feeds it, else as its
    layer, else as the producing layer and the position of the output.
    """
    taken: dict[str, None] = {}
    for layer in graph.of_type("Result"):
        name = next(name for name in _output_names(graph, layer) if name not in taken)
        taken[name] = None
    return tuple(taken)


def _output_names(graph: Graph, result: Layer) -> Iterator[str]:
    (source,) = result.sources
    producer = graph.layers[source.layer]
    yield from result.output_names
    yield from producer.outputs[source.output].names
    if result.name:
        yield _SINK.sub("", result.name) or result.name
        yield result.name
    place = f"{producer.name or producer.id}.{source.output}"
    yield place
    yield f"{place}.{result.id}"
    number = 0
    while True:
        number += 1
        yield f"{place}.{result.id}.{number}"
