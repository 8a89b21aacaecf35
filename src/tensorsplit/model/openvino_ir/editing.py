"""An IR with other layers in some places; everything else stays as it is, byte for byte."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from xml.sax.saxutils import quoteattr

import numpy as np

from tensorsplit.core.arithmetic import Number
from tensorsplit.core.maker import Maker
from tensorsplit.model.openvino_ir.layer_types import (
    JOINED,
    LAYER_TYPES,
    DeclaredTensor,
    LayerOperand,
    LayerType,
    one_round,
)
from tensorsplit.model.openvino_ir.layers import Layer, PlacedElements, Port, parse_network

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

_ALIGNMENT = 8
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class End(NamedTuple):
    """An output: the ids of a layer and of one of its ports."""

    layer: int
    port: int


class _NewLayer(NamedTuple):
    """A layer that is added; its inputs' ports come before its outputs', numbered from 0."""

    number: int
    name: str
    kind: LayerType
    inputs: int
    outputs: int
    inside: str

    def as_xml(self, replaced: Mapping[End, Port]) -> str:
        """Return it as in a file, where outputs have the names and dimensions of those replaced."""
        kind, number = self.kind, self.number
        data = "".join(f" {key}={quoteattr(value)}" for key, value in kind.attributes.items())
        ports = "".join(f'<port id="{place}" />' for place in range(self.inputs))
        written = (
            _port_text(place, kind.precision, replaced.get(End(number, place)))
            for place in range(self.inputs, self.inputs + self.outputs)
        )
        return (
            f'<layer id="{number}" name={quoteattr(f"{self.name}/{kind.type}_{number}")}'
            f' type="{kind.type}" version="{kind.version}">'
            + (f"<data{data} />" if data else "")
            + (f"<input>{ports}</input>" if ports else "")
            + f"<output>{''.join(written)}</output>{self.inside}</layer>"
        )


def _port_text(number: int, precision: str, replaced: Port | None) -> str:
    """Return an output port, with the names and dimensions of the one that it replaces."""
    names, shape = ((), None) if replaced is None else (replaced.names, replaced.shape)
    called = ",".join(name.replace(",", "\\,") for name in names)
    dims = "".join(f"<dim>{-1 if dim is None else dim}</dim>" for dim in shape or ())
    stated = f" precision={quoteattr(precision)}" if precision else ""
    listed = f" names={quoteattr(called)}" if called else ""
    return f'<port id="{number}"{stated}{listed}>{dims}</port>'


class EditedIr:
    """The text of an IR, what is changed of it, and the constants that its ``.bin`` gets.

    Args:
        octets: What the ``.xml`` file holds.
        path: Its path, for refusals.
        size: How long the ``.bin`` is.
    """

    def __init__(self, octets: bytes, path: Path, size: int) -> None:
        self._octets, self._elements = octets, PlacedElements()
        self.root = parse_network(BytesIO(octets), path, self._elements)
        self._start = -(-size // _ALIGNMENT) * _ALIGNMENT
        self._padding = self._start - size
        self._constants = bytearray()
        self._offsets: dict[tuple[int, ...], int] = {}
        self._splices: list[tuple[int, int, str]] = []

    @property
    def takes_text(self) -> bool:
        """Whether each character of XML is one byte of the file, as in UTF-8."""
        return self._octets.removeprefix(_BYTE_ORDER_MARK).lstrip()[:1] == b"<"

    @property
    def added(self) -> bytes:
        """The bytes that follow the data in the ``.bin``."""
        return b"\0" * self._padding + bytes(self._constants) if self._constants else b""

    def text(self) -> bytes:
        """Return the ``.xml`` with all changes."""
        pieces, done = [], 0
        for start, end, text in sorted(self._splices, key=lambda each: each[:2]):
            pieces += [self._octets[done:start], text.encode("ascii", "xmlcharrefreplace")]
            done = end
        return b"".join((*pieces, self._octets[done:]))

    def offset(self, values: tuple[int, ...]) -> int:
        """Return where int64 integers are in the ``.bin``; they are added if they are new."""
        if values not in self._offsets:
            self._offsets[values] = self._start + len(self._constants)
            self._constants += np.array(values, "<i8").tobytes()
        return self._offsets[values]

    def insert(self, element: Element, text: str) -> None:
        """Insert text as the last content of an element, which has some."""
        end = self._elements.ends[element]
        self._splices.append((end, end, text))

    def replace(self, element: Element, text: str) -> None:
        """Replace an element."""
        start, end = self._elements.starts[element], self._elements.ends[element]
        if not self._is_one_tag(start):
            end = self._octets.index(b">", end) + 1
        self._splices.append((start, end, text))

    def _is_one_tag(self, start: int) -> bool:
        """Return whether a tag ends with a slash; quoted values may hold ``>``."""
        quote, place = 0, start
        while quote or self._octets[place] != ord(">"):
            here = self._octets[place]
            if here in b"\"'" and quote in (0, here):
                quote = 0 if quote else here
            place += 1
        return self._octets[place - 1] == ord("/")


class EditedGraph:
    """The layers of a network or body, and what is changed of them.

    Args:
        file: The file that it is in.
        element: The network or body.
        layers: Its layers.
    """

    def __init__(self, file: EditedIr, element: Element, layers: Iterable[Layer]) -> None:
        self._file, self._element = file, element
        self.layers = {layer.path: layer for layer in layers}
        self._next = max((layer.id for layer in self.layers.values()), default=0) + 1
        self._sources = {
            (layer.id, port): End(source.layer.id, source.port)
            for layer in self.layers.values()
            for port, source in zip(layer.inputs, layer.sources, strict=True)
        }
        self._before = dict(self._sources)
        self._new: list[_NewLayer] = []
        self._replaced: dict[End, Port] = {}
        self._removed: set[int] = set()

    def source(self, layer: Layer, place: int) -> End:
        """Return the port that feeds an input, by its position."""
        return self._sources[layer.id, list(layer.inputs)[place]]

    def constant(self, values: tuple[int, ...], name: str) -> End:
        """Add int64 integers of rank 1."""
        size, offset = 8 * len(values), self._file.offset(values)
        attributes = {"element_type": "i64", "shape": f"{len(values)}"}
        attributes |= {"offset": f"{offset}", "size": f"{size}"}
        return self.add(LayerType("Const", "opset1", (), attributes), (), name)

    def add(self, kind: LayerType, inputs: Sequence[End], name: str) -> End:
        """Add a layer that the inputs feed."""
        return self.add_with_outputs(kind, inputs, name, 1)[0]

    def add_with_outputs(
        self, kind: LayerType, inputs: Sequence[End], name: str, count: int, inside: str = ""
    ) -> list[End]:
        """Add a layer that the inputs feed, with `count` outputs.

        What is ``inside`` of the layer, such as a body, follows them.
        """
        number = self._next
        self._next += 1
        self._new.append(_NewLayer(number, name, kind, len(inputs), count, inside))
        self._sources |= {(number, place): source for place, source in enumerate(inputs)}
        return [End(number, len(inputs) + place) for place in range(count)]

    def add_empty(self, kind: DeclaredTensor, name: str) -> End:
        """Add a constant without elements; OpenVINO has a byte in the file for it."""
        data = {"element_type": kind.element_type, "shape": kind.shape}
        data |= {"offset": f"{self._file.offset((1,))}", "size": "1"}
        return self.add(LayerType("Const", "opset1", (), data, kind.precision), (), name)

    def add_round(self, source: End, kind: DeclaredTensor, name: str) -> End:
        """Add a Loop of one round that gives what it is given."""
        count, condition = (
            self.add(_true(self._file.offset((1,)), each), (), name) for each in ("i64", "boolean")
        )
        inside = one_round(kind, self._file.offset((1,)))
        loop = LayerType("Loop", "opset5", (), precision=kind.precision)
        return self.add_with_outputs(loop, (count, condition, source), name, 1, inside)[0]

    def feed_readers(self, layer: Layer, port: int, new: End) -> None:
        """Replace an output by another one, which feeds its readers from now on."""
        old = End(layer.id, port)
        self._replaced[new] = layer.outputs[port]
        self._sources = {
            enters: new if source == old and enters[0] != new.layer else source
            for enters, source in self._sources.items()
        }
        ports = layer.element.iterfind("output/port")
        element = next(each for each in ports if each.get("id") == str(port))
        kept = {name: text for name, text in element.attrib.items() if name != "names"}
        listed = "".join(f" {key}={quoteattr(value)}" for key, value in kept.items())
        inside = "".join(f"<dim>{dim.text}</dim>" for dim in element.findall("dim"))
        self._file.replace(element, f"<port{listed}>{inside}</port>")

    def feed(self, layer: Layer, place: int, source: End) -> None:
        """Feed an input by another output."""
        self._sources[layer.id, list(layer.inputs)[place]] = source

    def add_output(self, layer: Layer) -> None:
        """Give a layer one more output, of the type of its last one, which feeds nothing."""
        listed = layer.element.find("output")
        assert listed is not None  # noqa: S101 - it has outputs
        last = list(layer.outputs.values())[-1]
        kind = f" precision={quoteattr(last.precision)}" if last.precision else ""
        self._file.insert(listed, f'<port id="{max(layer.outputs) + 1}"{kind} />')

    def stand_in(self, layer: Layer, ends: Sequence[End]) -> None:
        """Remove a layer; what its outputs fed is fed by others, in their order."""
        instead = {End(layer.id, port): new for port, new in zip(layer.outputs, ends, strict=True)}
        self._replaced |= zip(ends, layer.outputs.values(), strict=True)
        self._sources = {
            enters: instead.get(source, source)
            for enters, source in self._sources.items()
            if enters[0] != layer.id
        }
        self._removed.add(layer.id)
        self._file.replace(layer.element, "")

    def finish(self) -> None:
        """Note all changes in the file."""
        listed, edges = self._element.find("layers"), self._element.find("edges")
        if listed is None or edges is None or self._sources == self._before:
            return
        texts = (each.as_xml(self._replaced) for each in self._new)
        self._file.insert(listed, "".join(f"\t{text}\n\t" for text in texts))
        for edge in edges.findall("edge"):
            enters = int(edge.get("to-layer", "")), int(edge.get("to-port", ""))
            if enters[0] in self._removed:
                self._file.replace(edge, "")
            elif self._sources[enters] != self._before[enters]:
                self._file.replace(edge, self._edge(*enters))
        new = self._sources.keys() - self._before.keys()
        self._file.insert(edges, "".join(f"\t{self._edge(*enters)}\n\t" for enters in sorted(new)))

    def _edge(self, layer: int, port: int) -> str:
        source = self._sources[layer, port]
        return (
            f'<edge from-layer="{source.layer}" from-port="{source.port}"'
            f' to-layer="{layer}" to-port="{port}" />'
        )


def _true(offset: int, element_type: str) -> LayerType:
    """Return a scalar of 1, or True, of which the data begins with a byte of 1."""
    size, precision = (8, "I64") if element_type == "i64" else (1, "BOOL")
    data = {"element_type": element_type, "shape": "", "offset": f"{offset}", "size": f"{size}"}
    return LayerType("Const", "opset1", (), data, precision)


class LayerMaker(Maker[End]):
    """Makes layers of formulas; their names start with one."""

    rounds_integers = True

    def __init__(self, graph: EditedGraph, name: str) -> None:
        super().__init__()
        self._graph, self._name = graph, name

    def constant_list(self, values: Sequence[int]) -> End:
        """Make int64 integers of rank 1."""
        return self._graph.constant(tuple(values), self._name)

    def apply(self, operation: str, operands: list[End]) -> End:
        """Return the layer of an operation; see `Maker.apply`."""
        if operation == "joined":
            return self._graph.add(JOINED, operands, self._name)
        return self.layer(LAYER_TYPES[operation], operands)

    def strings(self, data: End, start: Number, end: Number, axis: Number) -> End:
        """Return the strings from one position to below another along an axis, one by one."""
        scalars = [self.apply("scalar", [self.make(each)]) for each in (start, end)]
        positions = self.apply("range", scalars)
        operands = [data, positions, self.make(axis)]
        return self.layer(LAYER_TYPES["taken"], operands)

    def layer(self, kind: LayerType, operands: Sequence[End]) -> End:
        """Return a layer, and those that feed it."""
        inputs = [self._operand(each, operands) for each in kind.operands]
        return self._graph.add(kind, inputs, self._name)

    def _operand(self, operand: LayerOperand, operands: Sequence[End]) -> End:
        if isinstance(operand, LayerType):
            return self.layer(operand, operands)
        return operands[operand] if isinstance(operand, int) else self.make(operand)
