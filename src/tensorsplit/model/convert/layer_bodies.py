"""Layers of an OpenVINO IR with bodies: they become If and Loop; what is in the bodies stays.

A body of an IR has a Parameter for each value that it reads, a body of ONNX reads the values around
it. A Loop of ONNX gives a body no slices: the body takes them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import onnx_ir as ir

from tensorsplit.core.dimensions import MAX_DIM, is_known
from tensorsplit.core.errors import SplitError
from tensorsplit.core.records.openvino import DOMAIN
from tensorsplit.model.convert.conversion import ConversionReport, ConvertedNode
from tensorsplit.model.convert.layer_conversion import no_counterpart
from tensorsplit.model.graph.building import Edits, Names, inherit
from tensorsplit.model.graph.calculation import Calculation
from tensorsplit.model.graph.held_tensors import constant
from tensorsplit.model.graph.nodes import NodeRef, bodies, walk
from tensorsplit.model.openvino_ir import LAYER_PORTS, LAYER_VERSION
from tensorsplit.model.openvino_ir.attributes import OPSET
from tensorsplit.model.openvino_ir.port_maps import BodyPort, BodyPorts, read_ports

_LOOP = "Loop"
_FORWARDS, _BACKWARDS = (0, -1, 1, 1), (-1, 0, -1, 1)
"""The start, end, stride and length of parts that are single elements of a whole axis."""


def open_bodies(model: ir.Model, report: ConversionReport) -> None:
    """Write each layer that has bodies as an If or Loop, in place.

    Raises:
        SplitError: TS514 for one that has no counterpart; TS502 for one whose ports do not fit.
    """
    names, edits = Names(model), Edits()
    for ref in list(walk(model)):
        if ref.node.domain == DOMAIN and bodies(ref.node):
            layer = _LayerWithBodies(ref, names, edits)
            layer.open()
            report.changes.append(ConvertedNode(ref.path, ref.op_type, OPSET, layer.became))
    edits.finish()


class _LayerWithBodies:
    """A layer with bodies, and the nodes that take its place."""

    def __init__(self, ref: NodeRef, names: Names, edits: Edits) -> None:
        self.ref, self.node, self.edits, self._names = ref, ref.node, edits, names
        self.make = self.maker()
        self.became: list[str] = []

    def maker(self) -> Calculation:
        """Return the maker of nodes for a scope."""
        return Calculation(self._names, OPSET, self.node.name or self.node.op_type)

    def value(self, kind: ir.DataType | None = None) -> ir.Value:
        """Return a new value; one of an element type is a scalar."""
        return self.make.new("value", kind, None if kind is None else [])

    def refusal(self, reason: str, fix: str = "") -> SplitError:
        """Return the refusal of the layer (TS514)."""
        return no_counterpart(self.ref, reason, fix)

    def open(self) -> None:
        """Replace it by nodes; none for a layer that gives nothing."""
        node = self.node
        if not node.outputs:
            self.edits.retire(node)
            return
        version = node.metadata_props.get(LAYER_VERSION)
        known, write = _WRITERS.get(node.op_type, ("", None))
        if write is None:
            raise self.refusal("none is known here", "run the IR in OpenVINO")
        if version != known:
            raise self.refusal("its version is another one", f"known is {known}")
        made = write(self)
        for key in [key for key in node.metadata_props if key.startswith(LAYER_PORTS)]:
            del node.metadata_props[key]
        node.attributes.clear()  # its bodies are of the new node
        pairs = list(zip(node.outputs, made, strict=True))
        self.edits.stand_in(pairs)
        nodes = self.make.nodes
        inherit(nodes, node, pairs)
        self.ref.scope.insert_before(node, nodes)
        self.edits.retire(node)
        self.became += (each.op_type for each in nodes if each.op_type != "Constant")

    def body(self, label: str) -> tuple[ir.Graph, BodyPorts]:
        """Return one of its bodies, and how it is joined to the layer."""
        if label not in self.node.attributes:
            raise self.refusal(f"it has no {label}")
        text = self.node.metadata_props[LAYER_PORTS + label]
        return self.node.attributes[label].as_graph(), read_ports(text, self.ref.path)

    def fed(self, port: BodyPort) -> ir.Value:
        """Return the value that feeds an input of a body."""
        value = None if port.outer is None else self.node.inputs[port.outer]
        if value is None:
            raise self.refusal("nothing feeds an input of its body")
        return value

    def outputs(
        self, op_type: str, inputs: Sequence[ir.Value | None], bodies: Mapping[str, ir.Graph]
    ) -> list[ir.Value]:
        """Add the node that runs bodies; return its outputs."""
        count = min(len(body.outputs) for body in bodies.values())
        values = [self.value() for _ in range(count - (op_type == _LOOP))]
        self.make.op(op_type, inputs, bodies, values)
        return values

    def give(self, body: ir.Graph, values: Sequence[ir.Value], make: Calculation) -> None:
        """Let a body give values, after what was made; the second time with another name."""
        given: dict[ir.Value, None] = {}
        for value in values:
            given[make.op("Identity", [value]) if value in given else value] = None
        body.extend(make.nodes)
        body.outputs.clear()
        body.outputs.extend(given)


def _choice(layer: _LayerWithBodies) -> list[ir.Value]:
    """Write an If, whose bodies read what is around them."""
    branches: dict[str, ir.Graph] = {}
    for label, name in (("then_body", "then_branch"), ("else_body", "else_branch")):
        body, ports = layer.body(label)
        layer.edits.replace([(body.inputs[port.inner], layer.fed(port)) for port in ports.inputs])
        given = {port.outer: body.outputs[port.inner] for port in ports.outputs}
        if given.keys() != set(range(len(layer.node.outputs))):
            raise layer.refusal("one of its bodies does not give all outputs")
        body.inputs.clear()
        layer.give(body, [given[place] for place in range(len(given))], layer.maker())
        branches[name] = body
    return layer.outputs("If", layer.node.inputs[:1], branches)


def _loop(layer: _LayerWithBodies) -> list[ir.Value]:
    """Write a Loop, which runs a number of times (-1: without end) while a condition holds."""
    given, start = layer.node.inputs[:2]
    body, ports = layer.body("body")
    if any(port.axis is not None for port in ports.inputs):
        raise layer.refusal("it counts its rounds, and takes parts of an input")
    known, make = constant(given), layer.make
    start = None if start is None else make.op("Squeeze", [start])
    if given is None or (known is not None and known.item() < 0):
        return _Rounds(layer, body, ports).written(None, start)
    count = make.op("Cast", [given], {"to": int(ir.DataType.INT64)})
    if known is None:
        is_none = make.op("Less", [count, make.constant(0)])
        count = make.op("Where", [is_none, make.constant(MAX_DIM), count])
    return _Rounds(layer, body, ports).written(count, start)


def _iterator(layer: _LayerWithBodies) -> list[ir.Value]:
    """Write a TensorIterator, which has a round for each element of an axis."""
    body, ports = layer.body("body")
    sliced = [port for port in ports.inputs if port.axis is not None]
    if not sliced:
        raise layer.refusal("it takes no parts of its inputs")
    dims = [_dim(layer.fed(port), port.axis) for port in sliced]
    if len(dims) > 1 and not (is_known(dims[0]) and dims.count(dims[0]) == len(dims)):
        raise layer.refusal("it is not known that its inputs have as many parts")
    make = layer.make
    shape = make.op("Shape", [layer.fed(sliced[0])])
    count = make.op("Gather", [shape, make.constant(sliced[0].axis)])
    return _Rounds(layer, body, ports).written(count, None)


def _dim(value: ir.Value, axis: int | None) -> int | None:
    """Return the declared length of an axis."""
    shape = value.shape
    if shape is None or axis is None or not -len(shape) <= axis < len(shape):
        return None
    dim = shape[axis]
    return dim if isinstance(dim, int) else None


class _Rounds:
    """The body of a Loop in the making: its inputs and outputs, round by round.

    Args:
        layer: The layer.
        body: Its body.
        ports: How that is joined to the layer.
    """

    def __init__(self, layer: _LayerWithBodies, body: ir.Graph, ports: BodyPorts) -> None:
        self._layer, self._body, self._ports = layer, body, ports
        self._number = layer.value(ir.DataType.INT64)
        self._holds = layer.value(ir.DataType.BOOL)
        self._before, self._after = layer.maker(), layer.maker()
        self._states: dict[int, ir.Value] = {}  # what a Parameter starts with, by its position

    def written(self, count: ir.Value | None, start: ir.Value | None) -> list[ir.Value]:
        """Add a Loop that runs so often while the condition holds; return the layer's outputs."""
        body, layer = self._body, self._layer
        wanted = {port.outer for port in self._ports.outputs if port.outer is not None}
        if wanted != set(range(len(layer.node.outputs))):
            raise layer.refusal("its body does not give all outputs")
        given = list(body.inputs)
        for port in self._ports.inputs:
            self._feed(port, given[port.inner])
        if len({port.inner for port in self._ports.inputs}) != len(given):
            raise layer.refusal("nothing feeds an input of its body")
        results = {parameter: result for result, parameter in self._ports.back_edges}
        listed = list(self._states)
        last = {results[place]: number for number, place in enumerate(listed)}
        parts = [port for port in self._ports.outputs if port.axis is not None]
        finals = [p for p in self._ports.outputs if p.axis is None and p.outer is not None]
        if any(port.inner not in last for port in finals):
            raise layer.refusal("an output is of the last round alone")
        ends = [body.outputs[results[place]] for place in listed]
        rows = [self._row(port) for port in parts]
        condition = self._condition()
        body.inputs.clear()
        body.inputs.extend([self._number, self._holds, *(given[place] for place in listed)])
        if self._before.nodes:
            body.insert_before(body[0], self._before.nodes)
        layer.give(body, [condition, *ends, *rows], self._after)
        starts = [self._states[place] for place in listed]
        found = layer.outputs(_LOOP, [count, start, *starts], {"body": body})
        made = dict[int | None, ir.Value]()
        for port, row in zip(parts, found[len(listed) :], strict=True):
            made[port.outer] = self._collected(port, row)
        for port in finals:
            made[port.outer] = found[last[port.inner]]
        return [made[place] for place in sorted(wanted)]

    def _feed(self, port: BodyPort, parameter: ir.Value) -> None:
        """Replace a Parameter by the round's number, a part, a state, or a value from around."""
        fed_back = {place for _, place in self._ports.back_edges}
        if port.purpose == "current_iteration":
            value = self._numbered(parameter)
        elif port.axis is not None:
            value = self._part(port)
        elif port.inner in fed_back:
            self._states[port.inner] = self._layer.fed(port)
            return
        else:
            value = self._layer.fed(port)
        if port.inner in fed_back:
            raise self._layer.refusal("an input of its body is fed twice")
        self._layer.edits.replace([(parameter, value)])

    def _numbered(self, parameter: ir.Value) -> ir.Value:
        """Return the number of the round, as a Parameter is declared."""
        shape, kind, value = parameter.shape, parameter.dtype, self._number
        if shape is not None and len(shape) > 0:
            value = self._before.op("Reshape", [value, self._before.constant([1] * len(shape))])
        if kind is not None and kind != ir.DataType.INT64:
            value = self._before.op("Cast", [value], {"to": int(kind)})
        return value

    def _part(self, port: BodyPort) -> ir.Value:
        """Return the element of an axis that a round takes, with that axis."""
        make, place = self._before, self._number
        if self._goes_back(port):
            place = make.op("Sub", [make.constant(-1), place])
        index = make.op("Reshape", [place, make.make(1)])
        return make.op("Gather", [self._layer.fed(port), index], {"axis": port.axis})

    def _row(self, port: BodyPort) -> ir.Value:
        """Return a round's part of an output that collects, without the axis."""
        assert port.axis is not None  # noqa: S101 - see the caller
        self._goes_back(port)
        return self._after.squeeze(self._body.outputs[port.inner], [port.axis])

    def _collected(self, port: BodyPort, rows: ir.Value) -> ir.Value:
        """Return the collected parts, along their axis and in their order."""
        assert port.axis is not None  # noqa: S101 - see the caller
        make, outer = self._layer.make, port.outer
        if self._goes_back(port):
            ends = [make.make(each) for each in (-1, -MAX_DIM, 0, -1)]
            rows = make.op("Slice", [rows, *ends])
        if port.axis == 0:
            return rows
        shape = None if outer is None else self._layer.node.outputs[outer].shape
        if shape is None:
            raise self._layer.refusal("the rank of an output is not known")
        return make.moved(rows, len(shape), 0, port.axis)

    def _goes_back(self, port: BodyPort) -> bool:
        """Return whether parts are taken from the end on; they are single elements of an axis."""
        taken = (port.start, port.end, port.stride, port.part_size)
        if taken not in (_FORWARDS, _BACKWARDS):
            raise self._layer.refusal("its parts are not all elements of an axis, one by one")
        if port.axis is not None and port.axis < 0:  # OpenVINO gives something else there
            raise self._layer.refusal(
                f"its parts are of the axis {port.axis}, counted from the end"
            )
        return taken == _BACKWARDS

    def _condition(self) -> ir.Value:
        """Return whether there is another round."""
        for port in self._ports.outputs:
            if port.purpose == "execution_condition":
                return self._after.op("Squeeze", [self._body.outputs[port.inner]])
        return self._after.op("Identity", [self._holds])


_WRITERS: Mapping[str, tuple[str, Callable[[_LayerWithBodies], list[ir.Value]]]] = {
    "If": ("opset8", _choice),
    "Loop": ("opset5", _loop),
    "TensorIterator": ("opset1", _iterator),
}
"""By type of layer: its version, and what writes it."""

LAYERS_WITH_BODIES = tuple(_WRITERS)
"""The types of layers with bodies that have a counterpart."""
