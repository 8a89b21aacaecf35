"""Reading the ``.xml`` of an OpenVINO IR into plain data, without trusting a word of it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias
from xml.etree.ElementTree import ParseError

from defusedxml import DefusedXmlException
from defusedxml.ElementTree import parse as parse_xml

from tensorsplit.core.dimensions import Shape
from tensorsplit.core.errors import MALFORMED_MODEL, UNREADABLE_MODEL, UNSAFE_XML, SplitError
from tensorsplit.model.openvino_ir.graph import Graph, Layer, Port, Source, in_order

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

VERSIONS = (10, 11)
"""The versions of the format that are read."""

_BODIES = ("body", "then_body", "else_body")
_EDGE = ("from-layer", "from-port", "to-layer", "to-port")
_MAX_DEPTH = 32
_LARGEST = 1 << 63


def read_xml(path: Path) -> Graph:
    """Read the network of an IR file.

    Args:
        path: The ``.xml`` file.

    Returns:
        The network.

    Raises:
        SplitError: TS501 for a file that is no IR 10 or 11, TS502 for a graph that is not
            well-formed, TS503 for XML with a document type.
    """
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


def whole(text: str | None, what: str, path: str | None = None) -> int:
    """A number >= 0 as IR files write it: ASCII digits, and not more than 64 bits.

    Raises:
        SplitError: TS502.
    """
    digits = (text or "").strip()
    if digits.isascii() and digits.isdigit() and len(digits) < 20 and int(digits) < _LARGEST:
        return int(digits)
    raise SplitError(
        MALFORMED_MODEL,
        f"{what} is {'missing' if text is None else repr(text[:40])}",
        "it is a number >= 0",
        node=path,
    )


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


def _graph(element: Element, prefix: str, depth: int) -> Graph:
    if depth > _MAX_DEPTH:
        raise _malformed(
            f"bodies lie {depth} deep in each other", f"use at most {_MAX_DEPTH}", prefix
        )
    listed = element.find("layers")
    if listed is None:
        raise _malformed("a graph has no <layers>", "IR files list them", prefix)
    items: dict[int, Element] = {}
    for item in listed.findall("layer"):
        number = whole(item.get("id"), "the id of a layer", prefix or None)
        if number in items:
            raise _malformed(f"two layers have the id {number}", "give each its own", prefix)
        items[number] = item
    drafts = {number: _layer(number, item, prefix) for number, item in items.items()}
    edges = _edges(element.find("edges"), drafts, prefix)
    layers = {
        number: replace(
            draft,
            sources=_sources(draft, edges),
            bodies=_bodies(items[number], draft.path, depth),
        )
        for number, draft in drafts.items()
    }
    return Graph(layers, in_order(layers.values()))


def _bodies(item: Element, path: str, depth: int) -> tuple[Graph, ...]:
    found = (item.find(tag) for tag in _BODIES)
    return tuple(_graph(body, f"{path} / ", depth + 1) for body in found if body is not None)


def _layer(number: int, item: Element, prefix: str) -> Layer:
    name = item.get("name", "")
    path = f"{prefix}layer '{name}' (id {number})"
    data = item.find("data")
    inputs, outputs = (_ports(item.find(tag), path) for tag in ("input", "output"))
    return Layer(
        id=number,
        name=name,
        type=item.get("type", ""),
        version=item.get("version", ""),
        path=path,
        attributes={} if data is None else dict(data.attrib),
        inputs=inputs,
        outputs=outputs,
        output_names=split_names(item.get("output_names", "")),
    )


def _ports(item: Element | None, path: str) -> tuple[Port, ...]:
    if item is None:
        return ()
    ports = tuple(
        Port(
            whole(port.get("id"), "the id of a port", path),
            split_names(port.get("names", "")),
            _port_shape(port, path),
        )
        for port in item.findall("port")
    )
    if len({port.id for port in ports}) != len(ports):
        raise _malformed(f"two {item.tag} ports have the same id", "give each its own", path)
    return ports


def _port_shape(port: Element, path: str) -> Shape | None:
    texts = [(dim.text or "").strip() for dim in port.findall("dim")]
    if not texts:
        return None
    return tuple(None if text == "-1" else whole(text, "a <dim>", path) for text in texts)


def split_names(text: str) -> tuple[str, ...]:
    """The names in a list separated by commas, in which a comma of a name has a backslash."""
    names = (name.replace("\\,", ",") for name in re.split(r"(?<!\\),", text))
    return tuple(name for name in names if name)


_Edges: TypeAlias = "dict[tuple[int, int], Source]"


def _edges(element: Element | None, layers: Mapping[int, Layer], prefix: str) -> _Edges:
    """What feeds each input port, by layer and port id."""
    found: _Edges = {}
    positions = {
        layer.id: {port.id: place for place, port in enumerate(layer.outputs)}
        for layer in layers.values()
    }
    entries = {layer.id: {port.id for port in layer.inputs} for layer in layers.values()}
    for edge in element.findall("edge") if element is not None else ():
        start, leaves, end, enters = (
            whole(edge.get(name), f"the {name} of an edge", prefix or None) for name in _EDGE
        )
        shown = f"the edge from layer {start}, port {leaves} to layer {end}, port {enters}"
        if leaves not in positions.get(start, {}):
            raise _malformed(f"{shown} starts at no output", "name one that exists", prefix)
        if enters not in entries.get(end, set()):
            raise _malformed(f"{shown} ends at no input", "name one that exists", prefix)
        if (end, enters) in found:
            raise _malformed(f"{shown} is not the only one to end there", "keep one", prefix)
        found[end, enters] = Source(start, positions[start][leaves])
    return found


def _sources(layer: Layer, edges: _Edges) -> tuple[Source, ...]:
    for port in layer.inputs:
        if (layer.id, port.id) not in edges:
            raise _malformed(f"nothing feeds its input port {port.id}", "add an edge", layer.path)
    return tuple(edges[layer.id, port.id] for port in layer.inputs)


def _malformed(problem: str, fix: str, path: str) -> SplitError:
    return SplitError(MALFORMED_MODEL, problem, fix, node=path.removesuffix(" / ") or None)


def _unreadable(path: Path, problem: str, fix: str) -> SplitError:
    return SplitError(UNREADABLE_MODEL, f"{path.name}: {problem}", fix)
