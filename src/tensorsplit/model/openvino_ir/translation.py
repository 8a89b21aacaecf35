"""An OpenVINO IR as an ONNX message: each layer is a node of the domain ``org.openvinotoolkit``.

So one graph, one analysis and one interpreter serve both formats. The data of constants stays in
the ``.bin`` file as external data. Bodies of layers such as ``Loop`` become graph attributes.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Container, Iterable, Iterator, Mapping
from itertools import count, pairwise
from math import prod
from os import PathLike, fspath
from pathlib import Path
from typing import NamedTuple

from onnx import GraphProto, ModelProto, NodeProto, TensorProto, ValueInfoProto, helper

from tensorsplit.core.dimensions import Shape
from tensorsplit.core.errors import (
    EXTERNAL_DATA,
    UNKNOWN_OPERATOR,
    SplitError,
    show_int,
)
from tensorsplit.core.records import operators
from tensorsplit.core.records.openvino import DOMAIN, ELEMENT_TYPES
from tensorsplit.core.schema import Operator
from tensorsplit.model.feeds import DeclaredInput, Range
from tensorsplit.model.openvino_ir.layers import (
    CONSTANTS,
    Layer,
    LayerGraph,
    OutputRef,
    malformed,
    read_layers,
    whole,
)

LAYER_PATH = "org.openvinotoolkit.layer"
"""The key in a node's metadata of what messages call it, such as ``layer 'cut' (id 3)``."""

_OPSET = 18
_LARGEST_OPERAND = 1 << 19
"""Constants of more bytes stay in the ``.bin`` file, whatever they are for."""

_IR_VERSION = 10
_FAMILY = frozenset(record.name for record in operators.values() if record.vendor == "openvino")
_TYPES = frozenset(TensorProto.DataType.keys())
_IN_THREE_BYTES = ("u3", "u6")
_BITS = re.compile("[0-9]+")
_OF_NO_TYPE = ("dynamic", "undefined")
_DIMENSION = re.compile(r"(?P<exact>[0-9]{1,18})|(?P<low>[0-9]{0,18})\.\.(?P<high>[0-9]{0,18})")
_INTEGER = re.compile("-?[0-9]{1,18}")
_SINK = re.compile(r"/sink_port_[0-9]+$")


class IrFile(NamedTuple):
    """An OpenVINO IR that was read: as a message, and its Parameters and Results as in the file.

    The ``.bin`` need not exist if no constant has data; links to it are followed. The message calls
    an output otherwise where an input has that name.
    """

    weights: Path
    message: ModelProto
    inputs: tuple[DeclaredInput, ...]
    outputs: tuple[str, ...]


def read_ir(path: str | PathLike[str]) -> IrFile:
    """Read an OpenVINO IR model.

    Args:
        path: The ``.xml`` file; its ``.bin`` lies beside it. Of that only constants of strings
            are read, and those that tell a split layer its axis and lengths.

    Raises:
        SplitError: TS501 for a file that is no IR 10 or 11, TS502 for a graph that is not
            well-formed, TS503 for XML with a document type, TS504 for a ``.bin`` that is missing
            or does not hold what the ``.xml`` says; TS101 for a split layer of an unknown version.
    """
    file = Path(fspath(path))
    layers = read_layers(file)
    weights = file.with_suffix(".bin")
    inputs = {layer.id: _input(layer) for layer in layers.of_type("Parameter")}
    taken: set[str] = set()
    for number, entry in inputs.items():
        if entry.name in taken:
            problem = f"two inputs are called '{entry.name}'"
            raise malformed(problem, "give each its own name", layers.layers[number].path)
        taken.add(entry.name)
    outputs = _output_names(layers)
    names = {number: entry.name for number, entry in inputs.items()}
    graph = _Writer(weights, {*taken, *outputs}).graph(layers, names, outputs)
    graph.input.extend(
        _described(entry.name, entry.element_type, entry.shape) for entry in inputs.values()
    )
    graph.name = file.stem
    opsets = [helper.make_opsetid("", _OPSET), helper.make_opsetid(DOMAIN, 1)]
    message = helper.make_model(graph, opset_imports=opsets, ir_version=_IR_VERSION)
    return IrFile(weights.resolve(), message, tuple(inputs.values()), outputs)


def _input(layer: Layer) -> DeclaredInput:
    """A Parameter, called by its layer name, else its tensor name, else its id."""
    names = tuple(name for port in layer.outputs for name in port.names)
    element_type, ranges = _element_type(layer), _ranges(layer)
    return DeclaredInput(
        name=layer.name or next(iter(names), str(layer.id)),
        element_type=None if element_type is None else ELEMENT_TYPES[element_type],
        shape=None if ranges is None else tuple(a if a == b else None for a, b in ranges),
        aliases=names,
        ranges=ranges,
    )


def _element_type(layer: Layer) -> str | None:
    """OpenVINO's name of the type that a Parameter or Const declares; None if it may be any."""
    name = layer.attributes.get("element_type")
    if name in _OF_NO_TYPE:
        return None
    if name not in ELEMENT_TYPES:
        seen = "missing" if name is None else repr(name[:40])
        fix = f"it is one of {', '.join(ELEMENT_TYPES)}"
        raise malformed(f"its element type is {seen}", fix, layer.path)
    return name


def _ranges(layer: Layer) -> tuple[Range, ...] | None:
    """The shape that a Parameter or Const declares; None for any rank."""
    text = layer.attributes.get("shape")
    if text is None:
        raise malformed("its shape is missing", "a scalar has shape=''", layer.path)
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
    raise malformed(
        f"its shape has the dimension {text[:40]!r}",
        "a dimension is a number >= 0, a range such as 1..8, or ?",
        layer.path,
    )


def _output_names(graph: LayerGraph) -> tuple[str, ...]:
    """What each Result is called, in the order of the file; every name once.

    A Result is called by its own tensor name, else by one of the port that feeds it, else as its
    layer, else as the producing layer and the position of the output.
    """
    taken: dict[str, None] = {}
    for layer in graph.of_type("Result"):
        name = next(name for name in _possible_names(graph, layer) if name not in taken)
        taken[name] = None
    return tuple(taken)


def _possible_names(graph: LayerGraph, result: Layer) -> Iterator[str]:
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
    yield from (f"{place}.{result.id}.{number}" for number in count(1))


class _Writer:
    """Writes layers as messages, with names that are unique in the whole model."""

    def __init__(self, weights: Path, taken: set[str]) -> None:
        self._weights = weights
        self._location = weights.resolve().name
        self._held = weights.stat().st_size if weights.is_file() else None
        self._taken = taken

    def graph(
        self, layers: LayerGraph, inputs: Mapping[int, str], outputs: Iterable[str]
    ) -> GraphProto:
        """A graph without its inputs; Parameters are named by id, Results in their order."""
        graph = GraphProto()
        names = {OutputRef(number, 0): name for number, name in inputs.items()}
        owners = {name: number for number, name in inputs.items()}
        results = []
        for result, wanted in zip(layers.of_type("Result"), outputs, strict=True):
            (source,) = result.sources
            is_another = owners.get(wanted, source.layer) != source.layer
            name = self._new_name(result, 0) if is_another else wanted
            results.append((result, name))
            if layers.layers[source.layer].type not in ("Parameter", *CONSTANTS):
                names.setdefault(source, name)  # of several Results, the first one names the value
        operands = {
            source.layer
            for layer in layers.order
            if layer.type in _FAMILY
            for source in layer.sources[1:]
        }
        for layer in layers.order:
            for place in range(len(layer.outputs)):
                source = OutputRef(layer.id, place)
                names[source] = names.get(source) or self._new_name(layer, place)
            if layer.type in CONSTANTS:
                name = names[OutputRef(layer.id, 0)]
                self._add_constant(graph, layer, name, is_operand=layer.id in operands)
            elif layer.type not in ("Parameter", "Result"):
                self._add_node(graph, layer, names)
        for result, name in results:
            (source,) = result.sources
            if names[source] != name:
                node = graph.node.add(op_type="Identity", input=[names[source]], output=[name])
                node.metadata_props.add(key=LAYER_PATH, value=result.path)
            shape = layers.layers[source.layer].outputs[source.output].shape
            graph.output.append(_described(name, None, shape))
        return graph

    def _body(self, layers: LayerGraph) -> GraphProto:
        """A body; what its Parameters are is known only to the layer around it."""
        inputs = {layer.id: self._new_name(layer, 0) for layer in layers.of_type("Parameter")}
        outputs = [self._new_name(layer, 0) for layer in layers.of_type("Result")]
        graph = self.graph(layers, inputs, outputs)
        graph.name = "body"
        graph.input.extend(ValueInfoProto(name=name) for name in inputs.values())
        return graph

    def _new_name(self, layer: Layer, place: int) -> str:
        name = base = f"{layer.name or layer.type}/{layer.id}.{place}"
        number = 1
        while name in self._taken:
            number += 1
            name = f"{base}-{number}"
        self._taken.add(name)
        return name

    def _add_node(self, graph: GraphProto, layer: Layer, names: Mapping[OutputRef, str]) -> None:
        node = graph.node.add(op_type=layer.type, domain=DOMAIN, name=layer.name)
        node.metadata_props.add(key=LAYER_PATH, value=layer.path)
        node.input.extend(names[source] for source in layer.sources)
        node.output.extend(names[OutputRef(layer.id, place)] for place in range(len(layer.outputs)))
        record = _record_of(layer)
        if record is None:
            _add_attributes(node, layer.attributes, skip=layer.bodies)
        else:
            texts = {entry.name: layer.attributes.get(entry.name) for entry in record.attributes}
            for name, text in texts.items():
                if text is not None:
                    node.attribute.append(helper.make_attribute(name, _integer(name, text, layer)))
        for name, body in layer.bodies.items():
            node.attribute.append(helper.make_attribute(name, self._body(body)))
        for name, port in zip(node.output, layer.outputs, strict=True):
            element_type = _of_precision(port.precision) if record is None else None
            if port.shape is not None or element_type is not None:
                graph.value_info.append(_described(name, element_type, port.shape))

    def _add_constant(
        self, graph: GraphProto, layer: Layer, name: str, *, is_operand: bool
    ) -> None:
        """A Const as an initializer, or as a node for OpenVINO alone if ONNX can't hold it."""
        element_type, shape, offset, size = _declared_constant(layer)
        self._check_weights(layer, offset, size)
        tensor = TensorProto(
            name=name, data_type=_data_type(ELEMENT_TYPES[element_type]), dims=shape
        )
        strings = self._strings(layer, shape, offset, size) if element_type == "string" else None
        if not tensor.data_type or (strings is None and element_type == "string"):
            node = graph.node.add(op_type=layer.type, domain=DOMAIN, name=layer.name, output=[name])
            node.metadata_props.add(key=LAYER_PATH, value=layer.path)
            _add_attributes(node, layer.attributes)
            graph.value_info.append(_described(name, None, shape))
            return
        if strings is not None:
            tensor.string_data.extend(strings)
        elif is_operand and size <= _LARGEST_OPERAND:
            tensor.raw_data = self._read(layer, offset, size)
        else:
            tensor.data_location = TensorProto.EXTERNAL
            entries = {"location": self._location, "offset": offset, "length": size}
            for key, value in entries.items():
                tensor.external_data.add(key=key, value=str(value))
        graph.initializer.append(tensor)

    def _check_weights(self, layer: Layer, offset: int, size: int) -> None:
        """Check that data lies in the ``.bin`` file."""
        end = offset + size
        if size and (self._held is None or end > self._held):
            raise SplitError(
                EXTERNAL_DATA,
                f"its data ends at byte {end}, but {self._weights.name} "
                + ("is missing" if self._held is None else f"has {self._held} bytes"),
                "keep the .bin that was written with the .xml beside it",
                node=layer.path,
            )

    def _read(self, layer: Layer, offset: int, size: int) -> bytes:
        """The data of a constant; it was checked to lie in the file."""
        if not size:
            return b""
        try:
            with self._weights.open("rb") as file:
                file.seek(offset)
                return file.read(size)
        except OSError as error:
            raise SplitError(
                EXTERNAL_DATA,
                f"{self._weights.name} can't be read: {error.strerror}",
                "keep the .bin that was written with the .xml",
                node=layer.path,
            ) from None

    def _strings(
        self, layer: Layer, shape: tuple[int, ...], offset: int, size: int
    ) -> list[bytes] | None:
        """The strings of a constant; None if not all of them are UTF-8, as ONNX wants them."""
        try:
            strings = _decode_strings(self._read(layer, offset, size), prod(shape))
            "".join(text.decode() for text in strings)
        except UnicodeDecodeError:
            return None
        except SplitError as error:
            raise error.located(node=layer.path) from None
        return strings


def _declared_constant(layer: Layer) -> tuple[str, tuple[int, ...], int, int]:
    """OpenVINO's name of a constant's type, its shape, and where its data is and how long."""
    element_type, ranges = _element_type(layer), _ranges(layer)
    if element_type is None or ranges is None or any(low != high for low, high in ranges):
        problem = "a constant has no fixed shape or element type"
        raise malformed(problem, "constants have both", layer.path)
    offset, size = (
        whole(layer.attributes.get(name), f"its {name}", layer.path) for name in ("offset", "size")
    )
    shape = tuple(low for low, _ in ranges)
    needed = _byte_count(element_type, shape)
    if needed not in (None, size):
        raise SplitError(
            EXTERNAL_DATA,
            f"{element_type} of shape {list(shape)} takes {show_int(needed or 0)} bytes, but its"
            f" size is {size}",
            "the .xml is damaged: save it again",
            node=layer.path,
        )
    return element_type, shape, offset, size


def _byte_count(element_type: str, shape: tuple[int, ...]) -> int | None:
    """How many bytes a tensor takes; None for strings, whose length is in the data."""
    if element_type == "string":
        return None
    digits = _BITS.search(element_type)  # as of f4e2m1, bf16 and u1; a boolean takes a byte
    size = -(-prod(shape) * (int(digits[0]) if digits else 8) // 8)
    return -(-size // 3) * 3 if element_type in _IN_THREE_BYTES else size


def _decode_strings(data: bytes, number: int) -> list[bytes]:
    """A count, the offset of each string and of the end (32-bit each), then the characters."""
    head = 4 * (number + 2)
    if len(data) < head or struct.unpack_from("<i", data)[0] != number:
        raise _bad_strings(f"{len(data)} bytes do not hold the offsets of {number} strings")
    offsets = struct.unpack_from(f"<{number + 1}i", data, 4)
    text = data[head:]
    ordered = all(start <= end for start, end in pairwise(offsets))
    if offsets[0] != 0 or not ordered or offsets[-1] > len(text):
        raise _bad_strings("the offsets of the strings do not lie in the data in order")
    return [text[start:end] for start, end in pairwise(offsets)]


def _bad_strings(problem: str) -> SplitError:
    return SplitError(EXTERNAL_DATA, problem, "the .bin file must be the one written with the .xml")


def _record_of(layer: Layer) -> Operator | None:
    """The record of a split layer; None for a layer of another type."""
    if layer.type not in _FAMILY:
        return None
    try:
        return operators[f"openvino.{layer.type}-{layer.version.removeprefix('opset')}"]
    except SplitError:
        raise SplitError(
            UNKNOWN_OPERATOR,
            f"the layer is {layer.type} of version {layer.version[:40]!r}",
            f"the versions are {', '.join(op for op in operators if op.startswith('openvino.'))}",
            node=layer.path,
        ) from None


def _integer(name: str, text: str, layer: Layer) -> int:
    digits = text.strip().removeprefix("-")
    number = whole(digits, f"its {name}", layer.path)
    return number if digits == text.strip() else -number


def _of_precision(text: str) -> str | None:
    """The element type that a port names in its own way; None if it is not known."""
    name = text.lower().replace("fp", "f")
    return ELEMENT_TYPES.get("boolean" if name == "bool" else name)


def _add_attributes(node: NodeProto, texts: Mapping[str, str], skip: Container[str] = ()) -> None:
    """The attributes of a layer that is passed on: integers where they look so, else text."""
    for name, text in texts.items():
        if name not in skip:
            value = int(text) if _INTEGER.fullmatch(text.strip()) else text
            node.attribute.append(helper.make_attribute(name, value))


def _described(name: str, element_type: str | None, shape: Shape | None) -> ValueInfoProto:
    """What is declared of a value; nothing is said of an unknown type of unknown rank."""
    if element_type is None and shape is None:
        return ValueInfoProto(name=name)
    return helper.make_tensor_value_info(name, _data_type(element_type), shape)


def _data_type(element_type: str | None) -> int:
    """ONNX's number of an element type; undefined for those that ONNX lacks."""
    name = (element_type or "undefined").upper()
    return int(TensorProto.DataType.Value(name)) if name in _TYPES else TensorProto.UNDEFINED
