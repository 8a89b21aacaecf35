"""The names of a model's nodes and functions in messages, and how deep they may be nested."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import Any

import onnx_ir as ir
from onnx import FunctionProto, NodeProto

from tensorsplit.core.errors import short_name
from tensorsplit.model.openvino_ir import LAYER_PATH
from tensorsplit.model.refusals import malformed

MAX_DEPTH = 96
"""Bodies and function calls nested deeper than this are refused, before Python's stack ends."""


def check_depth(depth: int, path: str, limit: int = MAX_DEPTH) -> None:
    """Refuse nesting beyond a limit (TS502)."""
    if depth > limit:
        shown = path if len(path) < 200 else f"{path[:100]}...{path[-80:]}"
        problem = f"bodies and function calls are nested more than {limit} deep"
        raise malformed(problem, "nest them less", shown)


def node_paths(parent: str, nodes: Iterable[ir.Node | NodeProto]) -> list[str]:
    """Return the path of each node of a graph or function; equal names get an index."""
    nodes = list(nodes)
    places = _places(nodes)
    paths = [node_path(parent, *each) for each in zip(nodes, places, strict=True)]
    times, numbered = Counter(paths), zip(paths, places, strict=True)
    return [f"{path}[{place}]" if times[path] > 1 else path for path, place in numbered]


_PLACES = "tensorsplit.places"
"""Notes of a graph whose nodes were moved which place each of them had."""


def note_places(scope: ir.Graph | ir.Function) -> None:
    """Note the present places of the nodes of a graph or function, for their names."""
    places = {node: place for place, node in enumerate(scope)}
    for node in islice(scope, 1):
        if node.graph is not None:
            node.graph.meta[_PLACES] = places


def _places(nodes: Sequence[ir.Node | NodeProto]) -> Sequence[int]:
    """Return the places of all nodes of a graph or function by which they are called."""
    home = getattr(nodes[0], "graph", None) if nodes else None
    noted: Mapping[object, int] = {} if home is None else home.meta.get(_PLACES, {})
    if not noted:
        return range(len(nodes))
    return [noted.get(node, place) for place, node in enumerate(nodes)]


def node_path(parent: str, node: ir.Node | NodeProto, index: int) -> str:
    """Return the path of a node for messages: its parent's, with its name or operator and index.

    The layer of an OpenVINO IR has a path of its own.
    """
    noted: Any = node.metadata_props
    if noted and isinstance(node, NodeProto):
        noted = {entry.key: entry.value for entry in noted}
    if noted and LAYER_PATH in noted:
        return str(noted[LAYER_PATH])
    name = node.name
    return f"{parent}/{short_name(name) if name else f'{short_name(node.op_type)}[{index}]'}"


def function_label(function: ir.Function | FunctionProto) -> str:
    """Return a label such as ``function custom::F``, or ``function custom::F:overload``."""
    overload = f":{short_name(function.overload)}" if function.overload else ""
    return f"function {short_name(function.domain)}::{short_name(function.name)}{overload}"
