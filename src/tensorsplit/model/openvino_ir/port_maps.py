"""Which ports of a layer feed the bodies in it, and what comes out of them.

The text of the file is kept beside the node and read when it is needed, so that OpenVINO runs what
it understands.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from contextlib import suppress
from itertools import islice
from typing import NamedTuple

from tensorsplit.core.errors import SplitError
from tensorsplit.model.openvino_ir import LAYER_PORTS
from tensorsplit.model.openvino_ir.layers import Layer, malformed

_MAPS = {"body": "port_map", "then_body": "then_port_map", "else_body": "else_port_map"}
_MOST_NAMED = 16
_NUMBERS = {"start": 0, "end": -1, "stride": 1, "part_size": 1}


class BodyPort(NamedTuple):
    """How a Parameter or Result of a body is joined to a port of the layer.

    Attributes:
        outer: The position of the port among the layer's inputs or outputs; None if there is none.
        inner: The position of the Parameter or Result in the body.
        axis: The axis of which each round takes or gives a part; None if it is the whole tensor.
        purpose: What else it is for, such as ``current_iteration``.
        start: Where the first part is on the axis.
        end: Where the last one is; -1 is the end of the axis.
        stride: The distance from each part to the next.
        part_size: How long each is.
    """

    outer: int | None
    inner: int
    axis: int | None
    purpose: str
    start: int
    end: int
    stride: int
    part_size: int


class BodyPorts(NamedTuple):
    """How a body is joined to its layer.

    Attributes:
        inputs: What feeds its Parameters.
        outputs: What its Results feed.
        back_edges: Each Result that feeds a Parameter of the next round, by their positions.
    """

    inputs: tuple[BodyPort, ...]
    outputs: tuple[BodyPort, ...]
    back_edges: tuple[tuple[int, int], ...]


def ports_text(layer: Layer, label: str, layers: Iterable[Layer]) -> str:
    """Return the file's text about the ports of a layer and those of a body in it."""
    inside = list(layers)
    ids = {
        "input": list(layer.inputs),
        "output": list(layer.outputs),
        "Parameter": [each.id for each in inside if each.type == "Parameter"],
        "Result": [each.id for each in inside if each.type == "Result"],
    }
    maps, edges = layer.element.find(_MAPS[label]), layer.element.find("back_edges")
    entries = [] if maps is None else [(each.tag, each.attrib) for each in maps]
    back = [] if edges is None else [each.attrib for each in edges]
    return json.dumps([ids, entries, back])


def read_ports(text: str, path: str) -> BodyPorts:
    """Read the text of `ports_text` (TS502 where the file lacks something that it has to hold)."""
    ids, entries, back = json.loads(text)
    places = {what: {number: i for i, number in enumerate(each)} for what, each in ids.items()}
    found = {
        tag: tuple(
            _port(attributes, places[tag], places[inner], path)
            for name, attributes in entries
            if name == tag
        )
        for tag, inner in (("input", "Parameter"), ("output", "Result"))
    }
    edges = tuple(
        (
            _position(edge, "from-layer", places["Result"], path),
            _position(edge, "to-layer", places["Parameter"], path),
        )
        for edge in back
    )
    return BodyPorts(found["input"], found["output"], edges)


def fitting_ports(kept: Mapping[str, str], label: str) -> BodyPorts | None:
    """Return the ports of a body by what is kept beside a node.

    None if they do not fit, or there are none, as in an ONNX model with nodes of OpenVINO's domain.
    """
    with suppress(SplitError):
        text = kept.get(LAYER_PORTS + label)
        return None if text is None else read_ports(text, "")
    return None


def _port(
    attributes: Mapping[str, str], outer: Mapping[int, int], inner: Mapping[int, int], path: str
) -> BodyPort:
    has_outer = _number(attributes, "external_port_id", path, -1) != -1
    return BodyPort(
        _position(attributes, "external_port_id", outer, path) if has_outer else None,
        _position(attributes, "internal_layer_id", inner, path),
        _number(attributes, "axis", path) if "axis" in attributes else None,
        attributes.get("purpose", ""),
        *(_number(attributes, name, path, usual) for name, usual in _NUMBERS.items()),
    )


def _position(
    attributes: Mapping[str, str], name: str, places: Mapping[int, int], path: str
) -> int:
    number = _number(attributes, name, path)
    if number not in places:
        problem = f"its ports name the {name} {number}, which is not there"
        known = [*map(str, islice(places, _MOST_NAMED)), *["..."] * (len(places) > _MOST_NAMED)]
        raise malformed(problem, f"name one of {', '.join(known)}", path)
    return places[number]


def _number(attributes: Mapping[str, str], name: str, path: str, usual: int | None = None) -> int:
    text = attributes.get(name, "" if usual is None else str(usual))
    try:
        return int(text)
    except ValueError:
        problem = f"its ports have the {name} {text[:40]!r}"
        raise malformed(problem, "it is an integer", path) from None
