"""Changing graphs: new names, values replaced and nodes removed in linear time."""

from __future__ import annotations

import contextlib
import dataclasses
import gc
import threading
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence

import onnx_ir as ir

from tensorsplit.model.graph.carried import RESERVED
from tensorsplit.model.graph.nodes import change_inputs, nodes_within, scopes


class Names:
    """Names that no value or node of a model has, in whatever scope."""

    def __init__(self, model: ir.Model) -> None:
        self._taken: set[str] = set(model.meta.get(RESERVED, ()))
        self._next: dict[str, int] = {}
        for scope in scopes(model):
            names: list[str | None] = [value.name for value in scope.inputs]
            if isinstance(scope, ir.Graph):
                names += scope.initializers
            for node in scope:
                names += [node.name, *(value.name for value in node.outputs)]
            self._taken.update(name for name in names if name)

    def fresh(self, stem: str) -> str:
        """Return a new name that starts with the stem, and is taken from now on."""
        number = self._next.get(stem, 0)
        while (name := f"{stem}_{number}" if number else stem) in self._taken:
            number += 1
        self._next[stem] = number + 1
        self._taken.add(name)
        return name


def inherit(
    nodes: Iterable[ir.Node], origin: ir.Node, replaced: Iterable[tuple[ir.Value, ir.Value]] = ()
) -> None:
    """Copy the notes on a node to the nodes that were made for it.

    Args:
        nodes: The nodes; what they note already stays.
        origin: The other node.
        replaced: Its outputs, each with what takes its place.
    """
    stand_ins: dict[ir.Value | None, ir.Value] = dict(replaced)
    for node in nodes:
        node.doc_string = node.doc_string or origin.doc_string
        for key, value in origin.metadata_props.items():
            node.metadata_props.setdefault(key, value)
        ends = {*node.inputs, *node.outputs}
        kept = []
        for placed in origin.device_configurations:
            specs = (
                dataclasses.replace(spec, value=stand_ins.get(spec.value, spec.value))
                for spec in placed.sharding_specs
            )
            here = tuple(spec for spec in specs if spec.value in ends)
            kept.append(dataclasses.replace(placed, sharding_specs=here))
        if kept and not node.device_configurations:
            node.device_configurations = tuple(kept)


def take_out(
    node: ir.Node, body: ir.Graph, constant: Callable[[ir.Value], ir.Value]
) -> list[ir.Value]:
    """Move the nodes of a body before its node; return what the body gave out.

    Args:
        node: The node.
        body: One of its bodies, without inputs.
        constant: Makes a constant of an initializer, which can't stay under its name.
    """
    scope, ends = node.graph, list(body.outputs)  # an If around it may be gone
    assert scope is not None  # noqa: S101 - it is in the model
    body.outputs.clear()
    inside = list(body)
    for held in body.initializers.values():
        made = constant(held)
        ir.convenience.replace_all_uses_with(held, made)
        ends = [made if end is held else end for end in ends]
    body.remove(inside)
    scope.insert_before(node, inside)
    return ends


class Edits:
    """Changes to the graphs of a model.

    onnx-ir goes through all outputs of a graph whenever it replaces one of them or removes a node,
    so that a graph with n outputs would take n * n steps. Here positions are remembered, and nodes
    leave together.
    """

    def __init__(self) -> None:
        self._positions: dict[ir.Graph, dict[ir.Value, list[int]]] = {}
        self._retired: dict[ir.Node, None] = {}

    def replace(self, pairs: Iterable[tuple[ir.Value, ir.Value]]) -> None:
        """Replace a value in every node that reads it, and in the outputs of its graph.

        Those that one node reads are best replaced together.
        """
        changed = defaultdict[ir.Node, dict[int, ir.Value | None]](dict)
        for old, new in pairs:
            graph = old.graph
            while old.is_graph_output() and graph is not None:
                found = self._listed(graph, old)
                for index in found:
                    graph.outputs[index] = new
                self._positions[graph].setdefault(new, []).extend(found)
            for node, index in old.uses():
                changed[node][index] = new
        for node, inputs in changed.items():
            change_inputs(node, inputs)

    def stand_in(self, pairs: Sequence[tuple[ir.Value, ir.Value]]) -> None:
        """Do as `replace`, and have the new values take over the names and what is declared."""
        for old, new in pairs:
            new.name, old.name = old.name or new.name, None
            new.type, new.doc_string = old.type or new.type, old.doc_string or new.doc_string
            new.shape = new.shape if old.shape is None else old.shape  # that of a scalar is false
            if old.metadata_props:  # most have none, and onnx-ir makes them on demand
                new.metadata_props.update(old.metadata_props)
            if old.meta:  # its quantization annotation
                new.meta.update(old.meta)
        self.replace(pairs)

    def _listed(self, graph: ir.Graph, value: ir.Value) -> list[int]:
        """Return where a graph lists a value as output; look it up again if the list changed."""
        outputs = graph.outputs
        found = self._positions.get(graph, {}).pop(value, [])
        if not found or any(i >= len(outputs) or outputs[i] is not value for i in found):
            positions: dict[ir.Value, list[int]] = {}
            for index, output in enumerate(outputs):
                positions.setdefault(output, []).append(index)
            self._positions[graph] = positions
            found = positions.pop(value)
        return found

    def retire(self, node: ir.Node) -> None:
        """Let `finish` remove a node, with the bodies in it; until then it marks its place."""
        self._retired[node] = None

    def is_retired(self, node: ir.Node) -> bool:
        """Return whether a node is to be removed."""
        return node in self._retired

    def finish(self) -> None:
        """Remove the nodes that were retired.

        Raises:
            ValueError: If another node still reads what one of them gives.
        """
        of_graphs: dict[ir.Graph, list[ir.Node]] = {}
        for node in self._retired:
            # so that none of them, and nothing in their bodies, counts as a reader of another
            for reader in nodes_within(node):
                change_inputs(reader, {}, 0)
            if node.graph is not None:
                of_graphs.setdefault(node.graph, []).append(node)
        for graph, nodes in of_graphs.items():
            graph.remove(nodes, safe=True)
        self._retired.clear()


_NEVER = 1 << 30
_lock = threading.Lock()
_holders = 0
_threshold = 0


@contextlib.contextmanager
def full_collections_deferred() -> Iterator[None]:
    """Let the collector go through young objects only; also a decorator.

    A graph of n nodes is some hundred n objects that all stay. Going through all of them again and
    again as they are made is a quarter of the time for 10,000 nodes. The collector stays switched
    on, so that what other threads drop is freed; only what has become old waits until the end.
    """
    global _holders, _threshold  # noqa: PLW0603 - the collector is one for the whole process
    with _lock:
        if _holders == 0:
            first, second, _threshold = gc.get_threshold()
            gc.set_threshold(first, second, _NEVER)
        _holders += 1
    try:
        yield
    finally:
        with _lock:
            _holders -= 1
            first, second, now = gc.get_threshold()
            if _holders == 0 and now == _NEVER:  # else somebody has set another one meanwhile
                gc.set_threshold(first, second, _threshold)
