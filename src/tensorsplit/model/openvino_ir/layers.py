"""The layers of an OpenVINO IR as plain data, read from its ``.xml`` without trusting it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from xml.etree.ElementTree import ParseError

from defusedxml import DefusedXmlException
from defusedxml.ElementTree import parse as parse_xml

from tensorsplit.core.dimensions import Shape
from tensorsplit.core.errors import MALFORMED_MODEL, UNREADABLE_MODEL, UNSAFE_XML, SplitError

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

VERSIONS = (10, 11)
"""The versions of the format that are read."""

CONSTANTS = ("Const", "Constant")
"""How the type of a constant is spelled."""

_BODIES = ("body", "then_body", "else_body")
_EDGE = ("from-layer", "from-port", "to-layer", "to-port")
_MAX_DEPTH = 32
_LARGEST = 1 << 63


class Port(NamedTuple):
    """One input or output of a layer.

    The shape is what the ``<dim>`` elements say. A scalar and a tensor of unknown rank look alike
    here (both have none) and are both None. The precision is such as ``FP32``; empty if missing.
    """

    id: int
    names: tuple[str, ...]
    shape: Shape | None
    precision: str


class OutputRef(NamedTuple):
    """An output of a layer: the layer's id, and the position among its outputs."""

    layer: int
    output: int


@dataclass(slots=True)
class Layer:
    """One layer.

    Attributes:
        id: The number that edges name; unique within its graph.
        path: What messages call the layer, with the layers whose bodies it lies in.
        attributes: The attributes of its ``<data>`` element, as text.
        output_names: The tensor names that a Result adds.
        bodies: The graphs that it runs by name, for such layers as ``Loop`` and ``If``.
        sources: For each input port, what feeds it.
    """

    id: int
    name: str
    type: str
    version: str
    path: str
    attributes: Mapping[str, str]
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    output_names: tuple[str, ...]
    bodies: Mapping[str, LayerGraph]
    sources: tuple[OutputRef, ...] = ()


class LayerGraph(NamedTuple):
    """A network or the body of a layer: its layers by id, as in the file, and in running order."""

    layers: Mapping[int, Layer]
    order: tuple[Layer, ...]

    def of_type(self, type: str) -> tuple[Layer, ...]:
        """The layers of a type, in the order of the file."""
        return tuple(layer for layer in self.layers.values() if layer.type == type)


def read_layers(path: Path) -> LayerGraph:
    """Read the network of an IR file; raises TS501, TS502, TS503."""
    root = _root(path)
    if root.tag != "net":
        raise _unreadable(path, f"its root element is <{root.tag[:40]}>", "an IR file has <net>")
    version = root.get("version", "")
    if version not in map(str, VERSIONS):
        raise _unreadable(
            path,
            f"it is IR of version {version[:20]!r}",
            f"save it as version {' or '.join(map(str, VERSIONS))}",
        )
    return _graph(root, "", 0)


def whole(text: str | None, what: str, path: str) -> int:
    """A number >= 0 as IR files write it, of ASCII digits and at most 64 bits; else TS502."""
    digits = (text or "").strip()
    if digits.isascii() and digits.isdigit() and len(digits) < 20 and int(digits) < _LARGEST:
        return int(digits)
    seen = "missing" if text is None else repr(text[:40])
    raise malformed(f"{what} is {seen}", "it is a number >= 0", path)


def _root(path: Path) -> Element:
    if not path.is_file():  # also keeps pipes and devices out, which might never end
        raise _unreadable(path, "there is no such file", "give the path of an .xml file")
    try:
        with path.open("rb") as file:
            root: Element = parse_xml(file, forbid_dtd=True).getroot()
    except DefusedXmlException as error:
        raise SplitError(
            UNSAFE_XML,
            f"{path.name} has a document type or entities ({type(error).__name__})",
            "IR files never need them",
        ) from None
    except OSError as error:
        raise _unreadable(path, str(error.strerror), "give a file that can be read") from None
    except (ParseError, ValueError, LookupError) as error:
        raise _unreadable(path, f"it is no XML: {str(error)[:100]}", "save it again") from None
    return root


def _graph(element: Element, prefix: str, depth: int) -> LayerGraph:
    if depth > _MAX_DEPTH:
        raise malformed(
            f"bodies lie {depth} deep in each other", f"use at most {_MAX_DEPTH}", prefix
        )
    listed = element.find("layers")
    if listed is None:
        raise malformed("a graph has no <layers>", "IR files list them", prefix)
    layers: dict[int, Layer] = {}
    for item in listed.findall("layer"):
        number = whole(item.get("id"), "the id of a layer", prefix)
        if number in layers:
            raise malformed(f"two layers have the id {number}", "give each its own", prefix)
        layers[number] = _layer(number, item, prefix, depth)
    edges = _edges(element.find("edges"), layers, prefix)
    for layer in layers.values():
        layer.sources = _sources(layer, edges)
    return LayerGraph(layers, _in_order(layers))


def _layer(number: int, item: Element, prefix: str, depth: int) -> Layer:
    name = item.get("name", "")
    path = f"{prefix}layer '{name}' (id {number})"
    data = item.find("data")
    return Layer(
        id=number,
        name=name,
        type=item.get("type", ""),
        version=item.get("version", ""),
        path=path,
        attributes={} if data is None else dict(data.attrib),
        inputs=_ports(item.find("input"), path),
        outputs=_ports(item.find("output"), path),
        output_names=_split_names(item.get("output_names", "")),
        bodies={
            tag: _graph(body, f"{path} / ", depth + 1)
            for tag in _BODIES
            if (body := item.find(tag)) is not None
        },
    )


def _ports(item: Element | None, path: str) -> tuple[Port, ...]:
    if item is None:
        return ()
    ports = tuple(
        Port(
            whole(port.get("id"), "the id of a port", path),
            _split_names(port.get("names", "")),
            _port_shape(port, path),
            port.get("precision", ""),
        )
        for port in item.findall("port")
    )
    if len({port.id for port in ports}) != len(ports):
        raise malformed(f"two {item.tag} ports have the same id", "give each its own", path)
    return ports


def _port_shape(port: Element, path: str) -> Shape | None:
    texts = [(dim.text or "").strip() for dim in port.findall("dim")]
    if not texts:
        return None
    return tuple(None if text == "-1" else whole(text, "a <dim>", path) for text in texts)


def _split_names(text: str) -> tuple[str, ...]:
    """The names in a list separated by commas, in which a comma of a name has a backslash."""
    names = (name.replace("\\,", ",") for name in re.split(r"(?<!\\),", text))
    return tuple(name for name in names if name)


def _edges(
    element: Element | None, layers: Mapping[int, Layer], prefix: str
) -> dict[tuple[int, int], OutputRef]:
    """What feeds each input port, by layer and port id."""
    found: dict[tuple[int, int], OutputRef] = {}
    positions = {
        layer.id: {port.id: place for place, port in enumerate(layer.outputs)}
        for layer in layers.values()
    }
    entries = {layer.id: {port.id for port in layer.inputs} for layer in layers.values()}
    for edge in element.findall("edge") if element is not None else ():
        start, leaves, end, enters = (
            whole(edge.get(name), f"the {name} of an edge", prefix) for name in _EDGE
        )
        shown = f"the edge from layer {start}, port {leaves} to layer {end}, port {enters}"
        if leaves not in positions.get(start, {}):
            raise malformed(f"{shown} starts at no output", "name one that exists", prefix)
        if enters not in entries.get(end, set()):
            raise malformed(f"{shown} ends at no input", "name one that exists", prefix)
        if (end, enters) in found:
            raise malformed(f"{shown} is not the only one to end there", "keep one", prefix)
        found[end, enters] = OutputRef(start, positions[start][leaves])
    return found


def _sources(layer: Layer, edges: Mapping[tuple[int, int], OutputRef]) -> tuple[OutputRef, ...]:
    for port in layer.inputs:
        if (layer.id, port.id) not in edges:
            raise malformed(f"nothing feeds its input port {port.id}", "add an edge", layer.path)
    has = (len(layer.inputs), len(layer.outputs))
    is_start = layer.type in ("Parameter", *CONSTANTS)
    if (is_start and has != (0, 1)) or (layer.type == "Result" and has[0] != 1):
        raise malformed(
            f"a {layer.type} has {has[0]} inputs and {has[1]} outputs",
            "Parameter and Const have one output, Result has one input",
            layer.path,
        )
    return tuple(edges[layer.id, port.id] for port in layer.inputs)


def _in_order(layers: Mapping[int, Layer]) -> tuple[Layer, ...]:
    """The layers so that each comes after those that feed it."""
    feeding = {
        number: [source.layer for source in layer.sources] for number, layer in layers.items()
    }
    try:
        return tuple(layers[number] for number in TopologicalSorter(feeding).static_order())
    except CycleError as error:
        circle = error.args[1]
        raise malformed(
            f"{len(circle) - 1} layers wait for each other's outputs, this one among them",
            "the edges of a graph form no circle",
            layers[circle[0]].path,
        ) from None


def malformed(problem: str, fix: str, path: str | None) -> SplitError:
    """A refusal of a layer (TS502); of the network itself where the path is empty."""
    node = (path or "").removesuffix(" / ") or None
    return SplitError(MALFORMED_MODEL, problem, fix, node=node)


def _unreadable(path: Path, problem: str, fix: str) -> SplitError:
    return SplitError(UNREADABLE_MODEL, f"{path.name}: {problem}", fix)
