"""What an OpenVINO IR file says, as plain data: layers, their ports and the edges between them."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from tensorsplit.core.dimensions import Shape
from tensorsplit.core.errors import MALFORMED_MODEL, SplitError


@dataclass(frozen=True, slots=True)
class Port:
    """One input or output of a layer.

    Attributes:
        id: The number that edges name; unique within the layer.
        names: The tensor names of an output, in the order of the file; mostly one or none.
        shape: What the file's ``<dim>`` elements say, with None for unknown dimensions. A scalar
            and a tensor of unknown rank look alike here (both have none) and are both None.
    """

    id: int
    names: tuple[str, ...] = ()
    shape: Shape | None = None


@dataclass(frozen=True, slots=True)
class Source:
    """Where an input comes from.

    Attributes:
        layer: The id of the layer that produces the value.
        output: The position of the output among that layer's outputs.
    """

    layer: int
    output: int


@dataclass(frozen=True, slots=True)
class Layer:
    """One layer.

    Attributes:
        id: The number that edges name; unique within its graph.
        name: The layer's name; empty where the file has none.
        type: Such as ``VariadicSplit``.
        version: The opset that the type belongs to, such as ``opset1``.
        path: How messages call the layer, with the layers whose bodies it lies in.
        attributes: The attributes of its ``<data>`` element, as text.
        inputs: The input ports in order.
        outputs: The output ports in order.
        output_names: The tensor names that a Result adds.
        sources: For each input port, what feeds it.
        bodies: The graphs that it runs, for such layers as ``Loop`` and ``If``.
    """

    id: int
    name: str
    type: str
    version: str
    path: str
    attributes: Mapping[str, str] = field(default_factory=dict)
    inputs: tuple[Port, ...] = ()
    outputs: tuple[Port, ...] = ()
    output_names: tuple[str, ...] = ()
    sources: tuple[Source, ...] = ()
    bodies: tuple[Graph, ...] = ()


@dataclass(frozen=True, slots=True)
class Graph:
    """A network, or the body of a layer.

    Attributes:
        layers: Every layer by its id, in the order of the file.
        order: The layers so that each comes after those that feed it.
    """

    layers: Mapping[int, Layer]
    order: tuple[Layer, ...]

    def of_type(self, *types: str) -> tuple[Layer, ...]:
        """The layers of the given types, in the order of the file."""
        return tuple(layer for layer in self.layers.values() if layer.type in types)


def in_order(layers: Iterable[Layer]) -> tuple[Layer, ...]:
    """The layers so that each comes after those that feed it.

    Raises:
        SplitError: TS502 if layers feed each other in a circle.
    """
    by_id = {layer.id: layer for layer in layers}
    waiting = {layer.id: len(layer.sources) for layer in by_id.values()}
    followers: dict[int, list[int]] = {number: [] for number in by_id}
    for layer in by_id.values():
        for source in layer.sources:
            followers[source.layer].append(layer.id)
    ready = deque(number for number, count in waiting.items() if count == 0)
    ordered = []
    while ready:
        number = ready.popleft()
        ordered.append(by_id.pop(number))
        for follower in followers[number]:
            waiting[follower] -= 1
            if waiting[follower] == 0:
                ready.append(follower)
    if by_id:
        stuck = next(iter(by_id.values()))
        raise SplitError(
            MALFORMED_MODEL,
            f"{len(by_id)} layers wait for each other's outputs, this one among them",
            "the edges of a graph form no circle",
            node=stuck.path,
        )
    return tuple(ordered)
