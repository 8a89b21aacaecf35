"""What messages call the nodes and functions of a model, and how deep they may be nested."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
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
    paths = [node_path(parent, node, index) for index, node in enumerate(nodes)]
    if len(set(paths)) == len(paths):
        return paths
    times = Counter(paths)
    return [f"{path}[{at}]" if times[path] > 1 else path for at, path in enumerate(paths)]


def node_path(parent: str, node: ir.Node | NodeProto, index: int) -> str:
    """Return what messages call a node: its parent's path with its name, or operator and index.

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
