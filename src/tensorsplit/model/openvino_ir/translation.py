"""An OpenVINO IR as an ONNX message: each layer is a node of the domain ``org.openvinotoolkit``.

So one graph, one analysis and one interpreter serve both formats. The data of constants stays in
the ``.bin`` file as external data. Bodies of layers such as ``Loop`` become graph attributes.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from itertools import count, pairwise
from math import prod
from pathlib import Path
from typing import NamedTuple

from onnx import GraphProto, ModelProto, NodeProto, TensorProto, ValueInfoProto, helper

from tensorsplit.core.dimensions import show_shape
from tensorsplit.core.errors import EXTERNAL_DATA, SplitError, show_int
from tensorsplit.core.records import operators
from tensorsplit.core.records.openvino import DOMAIN, ELEMENT_TYPES
from tensorsplit.core.schema import Operator
from tensorsplit.model.data_files import find_data, read_data
from tensorsplit.model.feeds import DeclaredInput, Range
from tensorsplit.model.openvino_ir import LAYER_LIMITS, LAYER_PATH, LAYER_PORTS, LAYER_VERSION
from tensorsplit.model.openvino_ir.layer_types import PRECISIONS
from tensorsplit.model.openvino_ir.layers import (
    CONSTANTS,
    Layer,
    OutputPort,
    in_running_order,
    layers_of,
    listed_names,
    malformed,
    read_network,
    whole,
)
from tensorsplit.model.openvino_ir.port_maps import BodyPorts, ports_text, read_ports
from tensorsplit.model.reached import each_once

_OPSET = 18
_LARGEST_OPERAND = 1 << 19
"""Constants of more bytes stay in the ``.bin`` file, whatever they are for."""

_BYTES_OF_EMPTY = 1
"""The bytes that OpenVINO writes of a constant without elements."""

_IR_VERSION = 10
_RECORDS = {
    (record.name, str(record.since_version)): record
    for record in operators.values()
    if record.vendor == "openvino"
}
_FAMILY = frozenset(name for name, _ in _RECORDS)
_TYPES: dict[str, int] = dict(TensorProto.DataType.items())
_BODIES = ("body", "then_body", "else_body")
_PACKED_IN_THREE_BYTES = ("u3", "u6")
_BITS = re.compile("[0-9]+")
_UNKNOWN_TYPES = ("dynamic", "undefined")
_TYPE_BY_PRECISION = {precision: ELEMENT_TYPES[name] for name, precision in PRECISIONS.items()}
_DIMENSION = re.compile(r"(?P<exact>[0-9]{1,18})|(?P<low>[0-9]{0,18})\.\.(?P<high>[0-9]{0,18})")
_INTEGER = re.compile("-?[0-9]{1,18}")
_SINK = re.compile(r"/sink_port_[0-9]+$")


class IrFile(NamedTuple):
    """An OpenVINO IR that was read: as a message, and its Parameters and Results as in the file.

    The ``.bin`` need not exist if no constant has data. The message calls an output otherwise where
    an input has that name.
    """

    weights: Path
    message: ModelProto
    inputs: tuple[DeclaredInput, ...]
    outputs: tuple[str, ...]


def read_ir(file: Path) -> IrFile:
    """Read an OpenVINO IR model.

    Args:
        file: The ``.xml`` file; its ``.bin`` lies beside it. Of that only constants of strings
            are read, and those that give a split layer its axis and lengths, or from which these
            are calculated.

    Raises:
        SplitError: TS501 for a file that is not IR 10 or 11, TS502 for a graph that is not
            well-formed, TS503 for XML with a document type, TS504 for a ``.bin`` that is missing,
            is a link that leads out of the folder, or does not hold what the ``.xml`` says.
    """
    layers = layers_of(read_network(file))
    weights = file.with_suffix(".bin")
    inputs = {layer: _input(layer) for layer in _of_type("Parameter", layers)}
    taken: set[str] = set()
    for layer, entry in inputs.items():
        if entry.name in taken:
            problem = f"two inputs are called '{entry.name}'"
            raise malformed(problem, "give each its own name", layer.path)
        taken.add(entry.name)
    described = {
        layer: _described(entry.name, entry.element_type, entry.shape)
        for layer, entry in inputs.items()
    }
    for layer, entry in inputs.items():
        pairs = enumerate(entry.ranges or ())
        limited = [str(axis) for axis, (low, high) in pairs if high is not None and low < high]
        if limited:
            described[layer].metadata_props.add(key=LAYER_LIMITS, value=",".join(limited))
    outputs = _output_names(layers)
    graph = _Writer(weights, {*taken, *outputs}).graph(file.stem, layers, described, outputs)
    opsets = [helper.make_opsetid("", _OPSET), helper.make_opsetid(DOMAIN, 1)]
    message = helper.make_model(graph, opset_imports=opsets, ir_version=_IR_VERSION)
    return IrFile(weights, message, tuple(inputs.values()), outputs)


def _input(layer: Layer) -> DeclaredInput:
    """Return a Parameter, called by its layer name, else its tensor name, else its id."""
    names = tuple(name for port in layer.outputs.values() for name in port.names)
    element_type, ranges = _element_type(layer), _ranges(layer)
    return DeclaredInput(
        name=layer.name or next(iter(names), str(layer.id)),
        element_type=None if element_type is None else ELEMENT_TYPES[element_type],
        shape=None if ranges is None else tuple(a if a == b else None for a, b in ranges),
        aliases=names,
        ranges=ranges,
    )


def _element_type(layer: Layer) -> str | None:
    """Return OpenVINO's name of the type that a Parameter or Const declares; None if any may be."""
    name = layer.attributes.get("element_type")
    if name in _UNKNOWN_TYPES:
        return None
    if name not in ELEMENT_TYPES:
        seen = "missing" if name is None else repr(name[:40])
        fix = f"it is one of {', '.join(ELEMENT_TYPES)}"
        raise malformed(f"its element type is {seen}", fix, layer.path)
    return name


def _ranges(layer: Layer) -> tuple[Range, ...] | None:
    """Return the shape that a Parameter or Const declares; None for any rank."""
    text = layer.attributes.get("shape")
    if text is None:
        raise malformed("its shape is missing", "a scalar has shape=''", layer.path)
    inner = text.strip().removeprefix("[").removesuffix("]").strip()
    if inner == "...":
        return None
    return tuple(_range(item.strip(), layer) for item in inner.split(",")) if inner else ()


def _range(text: str, layer: Layer) -> Range:
    """Read one of ``?``, ``-1``, ``3``, ``1..8``, ``1..`` and ``..8``."""
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


def _output_names(layers: Sequence[Layer]) -> tuple[str, ...]:
    """Return the name of each Result, in the order of the file; every name once.

    A Result is called by its own tensor name, else by one of the port that feeds it, else as its
    layer, else as the producing layer and the position of the output.
    """
    taken: dict[str, None] = {}
    for result in _of_type("Result", layers):
        taken[next(name for name in _possible_names(result) if name not in taken)] = None
    return tuple(taken)


def _possible_names(result: Layer) -> Iterator[str]:
    ((producer, port),) = result.sources
    yield from listed_names(result.element.get("output_names", ""))
    yield from producer.outputs[port].names
    if result.name:
        yield _SINK.sub("", result.name) or result.name
        yield result.name
    place = f"{producer.name or producer.id}.{producer.outputs[port].place}"
    yield place
    yield f"{place}.{result.id}"
    yield from (f"{place}.{result.id}.{number}" for number in count(1))


class _Writer:
    """Writes layers as messages, with names that are unique in the whole model."""

    def __init__(self, weights: Path, taken: set[str]) -> None:
        self._weights = weights
        self._found = find_data(weights.name, weights.parent) if weights.exists() else None
        self._taken = taken
        self._doubted: dict[OutputPort, bool] = {}  # whether no number in a shape is believed

    def graph(
        self,
        name: str,
        layers: Sequence[Layer],
        inputs: Mapping[Layer, ValueInfoProto],
        outputs: Iterable[str],
        depth: int = 0,
    ) -> GraphProto:
        """Return a graph with its Parameters as inputs and the names of its Results in order."""
        graph = GraphProto(name=name, input=inputs.values())
        names = {OutputPort(layer, *layer.outputs): entry.name for layer, entry in inputs.items()}
        owners = {entry.name: layer for layer, entry in inputs.items()}
        results = []
        for result, wanted in zip(_of_type("Result", layers), outputs, strict=True):
            (source,) = result.sources
            is_another = owners.get(wanted, source.layer) is not source.layer
            called = self._new_name(result, 0) if is_another else wanted
            results.append((result, source, called))
            if source.layer.type not in ("Parameter", *CONSTANTS):
                names.setdefault(source, called)  # of several Results, the first names the value
        operands = _leading_to(
            source for layer in layers if layer.type in _FAMILY for source in layer.sources[1:]
        )
        for layer in in_running_order(layers):
            for number, port in layer.outputs.items():
                if (layer, number) not in names:
                    names[OutputPort(layer, number)] = self._new_name(layer, port.place)
            if layer.type in CONSTANTS:
                called = names[OutputPort(layer, *layer.outputs)]
                self._add_constant(graph, layer, called, is_operand=layer in operands)
            elif layer.type not in ("Parameter", "Result"):
                self._add_layer(graph, layer, names, depth)
            self._doubt(layer)
        for result, source, called in results:
            if names[source] != called:
                node = graph.node.add(op_type="Identity", input=[names[source]], output=[called])
                node.metadata_props.add(key=LAYER_PATH, value=result.path)
            graph.output.append(self._of_port(called, source))
        inner = {name for node in graph.node for name in node.output}
        inner -= {called for _, _, called in results}
        known = (self._of_port(name, source) for source, name in names.items() if name in inner)
        graph.value_info.extend(value for value in known if value.HasField("type"))
        return graph

    def _doubt(self, layer: Layer) -> None:
        """Note the ports of a layer whose shapes may follow from a wrong length of a slice."""
        is_after = not self._doubted.keys().isdisjoint(layer.sources)
        ports = [OutputPort(layer, number) for number in layer.outputs]
        if layer.type in ("Slice", "StridedSlice"):
            declared = {each: layer.outputs[each.port].shape for each in ports}
            wrong = (each for each in ports if _of_known_lengths(each) != declared[each])
            self._doubted.update(dict.fromkeys(wrong, False))
        if is_after and not any(layer.element.find(tag) is not None for tag in _BODIES):
            self._doubted.update(dict.fromkeys(ports, True))

    @contextmanager
    def _doubting(self, layer: Layer, text: str, inside: Sequence[Layer]) -> Iterator[None]:
        """Mark the inputs of a body as doubtful, as far as they are, and outputs that follow."""
        maps = BodyPorts((), (), ())
        with suppress(SplitError):  # it is refused elsewhere
            maps = read_ports(text, "")
        given, made = _of_type("Parameter", inside), _of_type("Result", inside)
        for port in maps.inputs:
            if port.outer is not None and layer.sources[port.outer] in self._doubted:
                self._doubted[OutputPort(given[port.inner], *given[port.inner].outputs)] = True
        yield
        numbers = list(layer.outputs)
        for port in maps.outputs:
            if port.outer is not None and made[port.inner].sources[0] in self._doubted:
                self._doubted[OutputPort(layer, numbers[port.outer])] = True

    def _of_port(self, name: str, source: OutputPort) -> ValueInfoProto:
        """Return a value as its port describes it, without the numbers that are doubted."""
        entry = _of_port(name, source)
        if self._doubted.get(source):
            for dim in entry.type.tensor_type.shape.dim:
                dim.Clear()
        return entry

    def _body(self, layers: Sequence[Layer], depth: int) -> GraphProto:
        """Return the body that layers are."""
        parameters = _of_type("Parameter", layers)
        inputs = {
            layer: self._of_port(self._new_name(layer, 0), OutputPort(layer, *layer.outputs))
            for layer in parameters
        }
        outputs = [self._new_name(layer, 0) for layer in _of_type("Result", layers)]
        return self.graph("body", layers, inputs, outputs, depth)

    def _new_name(self, layer: Layer, place: int) -> str:
        name = base = f"{layer.name or layer.type}/{layer.id}.{place}"
        number = 1
        while name in self._taken:
            number += 1
            name = f"{base}-{number}"
        self._taken.add(name)
        return name

    def _add_layer(
        self, graph: GraphProto, layer: Layer, names: Mapping[OutputPort, str], depth: int
    ) -> None:
        inputs = [names[source] for source in layer.sources]
        outputs = [names[OutputPort(layer, port)] for port in layer.outputs]
        version = layer.element.get("version", "")
        record = _RECORDS.get((layer.type, version.removeprefix("opset")))
        values = _passed_on(layer) if record is None else _operands(layer, record)
        ports = dict[str, str]()
        for tag in _BODIES:
            if (body := layer.element.find(tag)) is not None:
                inside = layers_of(body, f"{layer.path} / ", depth + 1)
                ports[LAYER_PORTS + tag] = text = ports_text(layer, tag, inside)
                with self._doubting(layer, text, inside):
                    values[tag] = self._body(inside, depth + 1)
        node = _add_node(graph, layer, inputs, outputs, values)
        for key, text in ports.items():
            node.metadata_props.add(key=key, value=text)
        if record is None:
            node.metadata_props.add(key=LAYER_VERSION, value=version[:40])

    def _add_constant(
        self, graph: GraphProto, layer: Layer, name: str, *, is_operand: bool
    ) -> None:
        """Add a Const as an initializer, or as a node for OpenVINO alone if ONNX can't hold it."""
        element_type, shape, offset, size = _declared_constant(layer)
        self._check_weights(layer, offset, size)
        number = data_type(ELEMENT_TYPES[element_type])
        tensor = TensorProto(name=name, data_type=number, dims=shape)
        if element_type == "string":
            tensor.string_data.extend(_strings(self._read(layer, offset, size), shape, layer))
        elif is_operand and size <= _LARGEST_OPERAND:
            tensor.raw_data = self._read(layer, offset, size)
        else:
            tensor.data_location = TensorProto.EXTERNAL
            entries = {"location": self._weights.name, "offset": offset, "length": size}
            for key, value in entries.items():
                tensor.external_data.add(key=key, value=str(value))
        if number and _are_utf8(tensor.string_data):
            graph.initializer.append(tensor)
        else:
            _add_node(graph, layer, [], [name], _passed_on(layer))

    def _check_weights(self, layer: Layer, offset: int, size: int) -> None:
        """Check that data lies in the ``.bin`` file."""
        end = offset + size
        held = None if self._found is None else self._found[1]
        if size and (held is None or end > held):
            raise SplitError(
                EXTERNAL_DATA,
                f"its data ends at byte {end}, but {self._weights.name} "
                + ("is missing" if held is None else f"has {held} bytes"),
                "keep the .bin that was written with the .xml beside it",
                node=layer.path,
            )

    def _read(self, layer: Layer, offset: int, size: int) -> bytes:
        """Return the data of a constant; it was checked to lie in the file."""
        try:
            return read_data(self._found[0], offset, size) if self._found and size else b""
        except SplitError as error:
            raise error.located(node=layer.path) from None


def _leading_to(operands: Iterable[OutputPort]) -> set[Layer]:
    """Return the layers that give operands of splits, and those that calculate them.

    What goes back to a tensor of more axes is not a calculation of lengths, and its constants may
    be weights; of a shape no elements are needed.
    """

    def before(layer: Layer) -> Iterator[Layer]:
        for source in layer.sources if layer.type != "ShapeOf" else ():
            if len(source.layer.outputs[source.port].shape or ()) < 2:
                yield source.layer

    return set(each_once((source.layer for source in operands), before))


def _of_type(type: str, layers: Iterable[Layer]) -> list[Layer]:
    return [layer for layer in layers if layer.type == type]


def _declared_constant(layer: Layer) -> tuple[str, tuple[int, ...], int, int]:
    """Return OpenVINO's name of a constant's type, its shape, its data's place and length."""
    element_type, ranges = _element_type(layer), _ranges(layer)
    if element_type is None or ranges is None or any(low != high for low, high in ranges):
        problem = "a constant has no fixed shape or element type"
        raise malformed(problem, "constants have both", layer.path)
    offset, size = (
        whole(layer.attributes.get(name), f"its {name}", layer.path) for name in ("offset", "size")
    )
    shape = tuple(low for low, _ in ranges)
    needed = size if element_type == "string" else _byte_count(element_type, shape)
    if needed == 0 < size <= _BYTES_OF_EMPTY:
        size = needed
    if needed != size:
        raise SplitError(
            EXTERNAL_DATA,
            f"{element_type} of shape {show_shape(shape)} takes {show_int(needed)} bytes, but its"
            f" size is {size}",
            "the .xml is damaged: save it again",
            node=layer.path,
        )
    return element_type, shape, offset, size


def _byte_count(element_type: str, shape: tuple[int, ...]) -> int:
    """Return how many bytes a tensor takes."""
    digits = _BITS.search(element_type)  # as of f4e2m1, bf16 and u1; a boolean takes a byte
    size = -(-prod(shape) * (int(digits[0]) if digits else 8) // 8)
    return -(-size // 3) * 3 if element_type in _PACKED_IN_THREE_BYTES else size


def _strings(data: bytes, shape: tuple[int, ...], layer: Layer) -> list[bytes]:
    """Read a count, the offset of each string and of the end (32-bit each), then the characters."""
    number = prod(shape)
    head = 4 * (number + 2)
    held = struct.unpack_from(f"<{number + 2}i", data) if len(data) >= head else ()
    offsets, text = held[1:], data[head:]
    if held[:1] != (number,) or offsets[0] != 0 or offsets != tuple(sorted(offsets)):
        problem = f"its {len(data)} bytes do not start with the offsets of {number} strings"
    elif offsets[-1] > len(text):
        problem = f"its strings end at byte {offsets[-1]} of {len(text)}"
    else:
        return [text[start:end] for start, end in pairwise(offsets)]
    fix = "the .bin file must be the one written with the .xml"
    raise SplitError(EXTERNAL_DATA, problem, fix, node=layer.path)


def _are_utf8(strings: Iterable[bytes]) -> bool:
    """Return whether all are UTF-8, as ONNX wants its strings."""
    try:
        b"\0".join(strings).decode()
    except UnicodeDecodeError:
        return False
    return True


def _add_node(
    graph: GraphProto,
    layer: Layer,
    inputs: Iterable[str],
    outputs: Iterable[str],
    attributes: Mapping[str, object],
) -> NodeProto:
    node: NodeProto = graph.node.add(
        op_type=layer.type, domain=DOMAIN, name=layer.name, input=inputs, output=outputs
    )
    node.metadata_props.add(key=LAYER_PATH, value=layer.path)
    node.attribute.extend(helper.make_attribute(*pair) for pair in attributes.items())
    return node


def _operands(layer: Layer, record: Operator) -> dict[str, object]:
    """Return the attributes of a split layer that its version knows; they are integers."""
    values: dict[str, object] = {}
    for name in (entry.name for entry in record.attributes if entry.name in layer.attributes):
        text = layer.attributes[name].strip()
        number = whole(text.removeprefix("-"), f"its {name}", layer.path)
        values[name] = -number if text.startswith("-") else number
    return values


def _passed_on(layer: Layer) -> dict[str, object]:
    """Return a layer's attributes for OpenVINO alone: integers where they look so, else text."""
    return {
        name: int(text) if _INTEGER.fullmatch(text.strip()) else text
        for name, text in layer.attributes.items()
    }


def _of_port(name: str, source: OutputPort) -> ValueInfoProto:
    """Return a value as the file describes its port; a split gives the type of its data."""
    layer, port = source.layer, source.layer.outputs[source.port]
    if layer.type == "Parameter":
        entry = _input(layer)
        return _described(name, entry.element_type, entry.shape)
    if layer.type in CONSTANTS:
        element_type, dims, *_ = _declared_constant(layer)
        return _described(name, ELEMENT_TYPES[element_type], dims)
    is_split = layer.type in _FAMILY
    trusted = _TRUSTED_SHAPES.get(layer.type)
    shape = port.shape if trusted is None else trusted(source)
    return _described(name, None if is_split else _of_precision(port.precision), shape)


def _of_any_round(source: OutputPort) -> tuple[int | None, ...] | None:
    """Return the shape that a port of a Loop declares, if the states start with it as well.

    OpenVINO takes a Loop of no round for one of one round.
    """
    layer, shape = source.layer, source.layer.outputs[source.port].shape

    def joined(path: str, key: str, value: str) -> dict[str | None, str | None]:
        return {each.get(key): each.get(value) for each in layer.element.iterfind(path)}

    end = joined("port_map/output", "external_port_id", "internal_layer_id").get(str(source.port))
    inside = joined("back_edges/edge", "from-layer", "to-layer").get(end)
    outside = joined("port_map/input", "internal_layer_id", "external_port_id").get(inside)
    starts = {str(port): each for port, each in zip(layer.inputs, layer.sources, strict=True)}
    if outside not in starts:
        return shape
    start, number = starts[outside]
    before = start.outputs[number].shape
    if shape is None or before is None or len(shape) != len(before):
        return None
    return tuple(a if a == b else None for a, b in zip(shape, before, strict=True))


def _of_known_lengths(source: OutputPort) -> tuple[int | None, ...] | None:
    """Return the shape that a port of a slice declares, if the data's length is known as well.

    OpenVINO calculates a wrong one from bounds of a length: of ..8, from -3 to 3, it infers 0.
    """
    layer, shape = source.layer, source.layer.outputs[source.port].shape
    if not layer.sources:
        return shape
    data, number = layer.sources[0]
    before = _input(data).shape if data.type == "Parameter" else data.outputs[number].shape
    shrunk = layer.attributes.get("shrink_axis_mask", "").replace(" ", "").split(",")
    kept = [dim for axis, dim in enumerate(before or ()) if shrunk[axis : axis + 1] != ["1"]]
    if shape is None or before is None or len(shape) != len(kept):
        return shape
    return tuple(a if b is not None else None for a, b in zip(shape, kept, strict=True))


_TRUSTED_SHAPES = {
    "Loop": _of_any_round,
    "Slice": _of_known_lengths,
    "StridedSlice": _of_known_lengths,
}
"""What to trust of the shapes that ports declare, of the layers that declare wrong ones."""


def _of_precision(text: str) -> str | None:
    """Return the element type that a port names; None if it is not known."""
    return _TYPE_BY_PRECISION.get(text.upper(), ELEMENT_TYPES.get(text.lower()))


def _described(
    name: str, element_type: str | None, shape: Sequence[int | str | None] | None
) -> ValueInfoProto:
    """Return the declaration of a value; nothing for an unknown type of unknown rank."""
    if element_type is None and shape is None:
        return ValueInfoProto(name=name)
    return helper.make_tensor_value_info(name, data_type(element_type), shape)


def data_type(element_type: str | None) -> int:
    """Return ONNX's number of an element type; undefined for those that ONNX lacks."""
    return _TYPES.get((element_type or "undefined").upper(), TensorProto.UNDEFINED)
