"""The layers of an OpenVINO IR, read from its ``.xml`` without trusting it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NamedTuple
from xml.etree.ElementTree import ParseError, TreeBuilder

from defusedxml import DefusedXmlException
from defusedxml.ElementTree import DefusedXMLParser
from defusedxml.ElementTree import parse as parse_xml

from tensorsplit.core.errors import (
    MALFORMED_MODEL,
    UNREADABLE_MODEL,
    UNSAFE_XML,
    SplitError,
    count_of,
    short_name,
    show,
)
from tensorsplit.model.openvino_ir.layer_types import PRECISIONS
from tensorsplit.storage.paths import fix_unread, why_unread

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

VERSIONS = ("10", "11")
"""The versions of the format that are read."""

CONSTANTS = ("Const", "Constant")
"""How the type of a constant is spelled."""

_EDGE = {
    name: f"the {name} of an edge" for name in ("from-layer", "from-port", "to-layer", "to-port")
}
_COMMA = re.compile(r"(?<!\\),")
_MAX_DEPTH = 32
_LARGEST = 1 << 63
_PIECE = 1 << 22


class Port(NamedTuple):
    """One input or output of a layer, and its place among them.

    The shape is that of the ``<dim>`` elements. A scalar and a tensor of unknown rank look alike
    here (both have none) and are both None. The precision is such as ``FP32``; empty if missing.
    """

    place: int
    names: tuple[str, ...]
    shape: tuple[int | None, ...] | None
    precision: str


class OutputPort(NamedTuple):
    """The output port that feeds an input: a layer, and the id of one of its ports."""

    layer: Layer
    port: int


@dataclass(slots=True, eq=False)
class Layer:
    """One layer; its ports go by their ids, in the order of the file.

    Attributes:
        id: The number that edges name; unique within its graph.
        path: What messages call the layer, with the layers whose bodies it lies in.
        element: The layer in the file, which may hold bodies.
        attributes: The attributes of its ``<data>`` element, as text.
        sources: What feeds each input.
    """

    id: int
    name: str
    type: str
    path: str
    element: Element
    attributes: Mapping[str, str]
    inputs: Mapping[int, Port]
    outputs: Mapping[int, Port]
    sources: tuple[OutputPort, ...] = ()


class PlacedElements(TreeBuilder):
    """Makes elements, and notes where the tags of each begin, in bytes from the start.

    An element that is one tag, such as ``<edge/>``, is noted to end after it.
    """

    parser: Any
    """The expat parser that reads the file."""

    def __init__(self) -> None:
        super().__init__()
        self.starts: dict[Element, int] = {}
        self.ends: dict[Element, int] = {}

    def start(self, tag: str, attributes: dict[str, str], /) -> Element:
        """Begin an element; the parser calls this."""
        element: Element = super().start(tag, attributes)
        self.starts[element] = self.parser.CurrentByteIndex
        return element

    def end(self, tag: str, /) -> Element:
        """End an element; the parser calls this."""
        element: Element = super().end(tag)
        self.ends[element] = self.parser.CurrentByteIndex
        return element


class _Pieces:
    """Gives a file in larger pieces than the parser asks for.

    With each piece, it begins an attribute or a text that has not ended yet once more.
    """

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file

    def read(self, _: int) -> bytes:
        """Return the next piece."""
        return self._file.read(_PIECE)


def read_network(path: Path) -> Element:
    """Return the network of an IR file; raises TS501, TS503."""
    with _opened(path) as file:
        return parse_network(file, path)


def read_octets(path: Path) -> bytes:
    """Return the content of an IR file; raises TS501."""
    with _opened(path) as file:
        return file.read()


@contextmanager
def _opened(path: Path) -> Iterator[IO[bytes]]:
    try:
        if not path.is_file():  # also keeps pipes and devices out, which might never end
            problem = "it is not a file" if path.exists() else "there is no such file"
            raise _unreadable(path, problem, "give the path of an .xml file")
        with path.open("rb") as file:
            yield file
    except OSError as error:
        fix = fix_unread(error, "give a file that can be read")
        raise _unreadable(path, why_unread(error, str(path)), fix) from None


def parse_network(file: IO[bytes], path: Path, target: PlacedElements | None = None) -> Element:
    """Return the network in the XML of a file; a target notes where its elements are.

    Raises:
        SplitError: TS501, TS503.
    """
    parser = DefusedXMLParser(target=target, forbid_dtd=True)
    if target is not None:
        target.parser = parser.parser
    try:
        root: Element = parse_xml(_Pieces(file), parser).getroot()
    except DefusedXmlException as error:
        raise SplitError(
            UNSAFE_XML,
            f"{path.name} has a document type or entities ({type(error).__name__})",
            "IR files never need them",
        ) from None
    except (ParseError, ValueError, LookupError) as error:
        raise _unreadable(path, f"it is not XML: {str(error)[:100]}", "save it again") from None
    version = root.get("version", "")
    if root.tag != "net":
        raise _unreadable(path, f"its root element is <{root.tag[:40]}>", "an IR file has <net>")
    if version not in VERSIONS:
        fix = f"save it as version {' or '.join(VERSIONS)}"
        raise _unreadable(path, f"it is IR of version {version[:20]!r}", fix)
    return root


def layers_of(graph: Element, prefix: str = "", depth: int = 0) -> list[Layer]:
    """Return the layers of a network or body, in the order of the file; raises TS502.

    The prefix is the path of the layers around a body.
    """
    if depth > _MAX_DEPTH:
        raise malformed(
            f"bodies lie {depth} deep in each other", f"use at most {_MAX_DEPTH}", prefix
        )
    listed = graph.find("layers")
    if listed is None:
        raise malformed("a graph has no <layers>", "IR files list them", prefix)
    layers: dict[int, Layer] = {}
    for item in listed.findall("layer"):
        layer = _layer(item, prefix)
        if layers.setdefault(layer.id, layer) is not layer:
            raise malformed(f"two layers have the id {layer.id}", "give each its own", prefix)
    edges = _edges(graph, layers, prefix)
    for layer in layers.values():
        layer.sources = _sources(layer, edges)
    return list(layers.values())


def in_running_order(layers: Iterable[Layer]) -> list[Layer]:
    """Return the layers so that each comes after those that feed it."""
    feeding = {layer: [source.layer for source in layer.sources] for layer in layers}
    try:
        return list(TopologicalSorter(feeding).static_order())
    except CycleError as error:
        circle = error.args[1]
        raise malformed(
            f"{len(circle) - 1} layers wait for each other's outputs, this one among them",
            "the edges of a graph form no circle",
            circle[0].path,
        ) from None


def whole(text: str | None, what: str, path: str) -> int:
    """Return a number >= 0 as IR files write it: ASCII digits, at most 64 bits; else TS502."""
    digits = text.strip() if text else ""
    is_number = len(digits) < 20 and digits.isascii() and digits.isdigit()
    if is_number and (number := int(digits)) < _LARGEST:
        return number
    seen = "missing" if text is None else repr(text[:40])
    raise malformed(f"{what} is {seen}", "it is a number >= 0", path)


def listed_names(text: str) -> tuple[str, ...]:
    """Return the names in a list separated by commas; a comma of a name has a backslash."""
    names = (name.replace("\\,", ",") for name in _COMMA.split(text)) if text else ()
    return tuple(name for name in names if name)


def malformed(problem: str, fix: str, path: str) -> SplitError:
    """Return a refusal of a layer (TS502); of the network itself where the path is empty."""
    return SplitError(MALFORMED_MODEL, problem, fix, node=path.removesuffix(" / ") or None)


def _layer(item: Element, prefix: str) -> Layer:
    number, name = whole(item.get("id"), "the id of a layer", prefix), item.get("name", "")
    shown = f"'{name}'" if short_name(name) == name else show(name)
    path, data = f"{prefix}layer {shown} (id {number})", item.find("data")
    attributes = {} if data is None else data.attrib
    kind = item.get("type", "")
    stated = attributes.get("destination_type", "") if kind == "Convert" else ""
    return Layer(
        id=number,
        name=name,
        type=kind,
        path=path,
        element=item,
        attributes=attributes,
        inputs=_ports(item.find("input"), path),
        outputs=_ports(item.find("output"), path, PRECISIONS.get(stated.lower(), "")),
    )


def _ports(item: Element | None, path: str, precision: str = "") -> dict[int, Port]:
    """Read the ports of a layer, of an element type that is stated elsewhere or that they name.

    `openvino.save_model` names FP16 for what a layer converts from float16 (2026.4.1).
    """
    ports: dict[int, Port] = {}
    for port in item.findall("port") if item is not None else ():
        number = whole(port.get("id"), "the id of a port", path)
        if number in ports:
            raise malformed(f"two ports have the id {number}", "give each its own", path)
        dims = [(dim.text or "").strip() for dim in port.findall("dim")]
        shape = tuple(None if dim == "-1" else whole(dim, "a <dim>", path) for dim in dims) or None
        names = listed_names(port.get("names", ""))
        ports[number] = Port(len(ports), names, shape, precision or port.get("precision", ""))
    return ports


def _edges(
    graph: Element, layers: Mapping[int, Layer], prefix: str
) -> dict[tuple[int, int], OutputPort]:
    """Return the output port that feeds each input port, by layer and port id."""
    found: dict[tuple[int, int], OutputPort] = {}
    edges = graph.find("edges")
    for edge in edges.findall("edge") if edges is not None else ():
        start, leaves, end, enters = (
            whole(edge.get(name), what, prefix) for name, what in _EDGE.items()
        )
        if start not in layers or leaves not in layers[start].outputs:
            problem, fix = "starts at no output", "name one that exists"
        elif end not in layers or enters not in layers[end].inputs:
            problem, fix = "ends at no input", "name one that exists"
        elif (end, enters) in found:
            problem, fix = "is not the only one to end there", "keep one"
        else:
            found[end, enters] = OutputPort(layers[start], leaves)
            continue
        shown = f"the edge from layer {start}, port {leaves} to layer {end}, port {enters}"
        raise malformed(f"{shown} {problem}", fix, prefix)
    return found


def _sources(layer: Layer, edges: Mapping[tuple[int, int], OutputPort]) -> tuple[OutputPort, ...]:
    for port in layer.inputs:
        if (layer.id, port) not in edges:
            raise malformed(f"nothing feeds its input port {port}", "add an edge", layer.path)
    has = len(layer.inputs), len(layer.outputs)
    is_start = layer.type in ("Parameter", *CONSTANTS)
    if (is_start and has != (0, 1)) or (layer.type == "Result" and has[0] != 1):
        raise malformed(
            f"a {layer.type} has {count_of(has[0], 'input')} and {count_of(has[1], 'output')}",
            "Parameter and Const have one output, Result has one input",
            layer.path,
        )
    return tuple(edges[layer.id, port] for port in layer.inputs)


def _unreadable(path: Path, problem: str, fix: str) -> SplitError:
    return SplitError(UNREADABLE_MODEL, f"{path.name}: {problem}", fix)
