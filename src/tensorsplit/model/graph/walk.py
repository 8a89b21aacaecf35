"""The nodes of a model, in bodies and functions too, each with its path and opset."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol

from onnx import (
    AttributeProto,
    FunctionProto,
    GraphProto,
    ModelProto,
    NodeProto,
    OperatorSetIdProto,
)

from tensorsplit.core.errors import MALFORMED_MODEL, SplitError, show
from tensorsplit.model.graph.naming import short_name

MAX_DEPTH = 96
"""Bodies and function calls nested deeper than this are refused, before Python's stack ends."""

MAX_BODIES = 32
"""Bodies nested deeper than this can't be read from a file, nor copied: protobuf's own limit."""

_FIRST_IR_WITH_OPSETS = 3


@dataclass(frozen=True, slots=True)
class Site:
    """A node where it stands.

    Attributes:
        node: The node.
        path: Such as ``graph/loop_1.body/split_0`` or ``function custom::F/split``.
        opsets: The opset of each domain in force there; ONNX's own domain is ``""``.
        graph: The graph or function that lists the node.
        function: The function it belongs to, through whatever bodies; None in the main graph.
    """

    node: NodeProto
    path: str
    opsets: Mapping[str, int]
    graph: GraphProto | FunctionProto
    function: FunctionProto | None


def walk(model: ModelProto) -> Iterator[Site]:
    """Every node of a model: the main graph's in order, each before its bodies, then functions'.

    Raises:
        SplitError: TS502 for opset imports that contradict each other, or bodies nested too deep.
    """
    yield from _nodes(model.graph, "graph", model_opsets(model), None)
    for function in model.functions:
        label = function_label(function)
        opsets = opset_imports(function.opset_import, label)
        yield from _nodes(function, label, opsets, function)


def _nodes(
    graph: GraphProto | FunctionProto,
    path: str,
    opsets: Mapping[str, int],
    function: FunctionProto | None,
    depth: int = 0,
) -> Iterator[Site]:
    check_depth(depth, path, MAX_BODIES)
    for index, node in enumerate(graph.node):
        here = f"{path}/{node_label(node, index)}"
        yield Site(node, here, opsets, graph, function)
        for label, body in bodies(node.attribute):
            yield from _nodes(body, f"{here}.{label}", opsets, function, depth + 1)


def bodies(attributes: Iterable[AttributeProto]) -> Iterator[tuple[str, GraphProto]]:
    """The graphs among a node's attributes, each with what to call it in a path."""
    for attribute in attributes:
        if attribute.type == AttributeProto.GRAPH:
            yield attribute.name, attribute.g
        elif attribute.type == AttributeProto.GRAPHS:
            for index, graph in enumerate(attribute.graphs):
                yield f"{attribute.name}[{index}]", graph


def check_depth(depth: int, path: str, limit: int = MAX_DEPTH) -> None:
    """Refuse nesting beyond a limit (TS502)."""
    if depth > limit:
        raise SplitError(
            MALFORMED_MODEL,
            f"bodies and function calls are nested more than {limit} deep",
            "nest them less",
            node=path if len(path) < 200 else f"{path[:100]}...{path[-80:]}",
        )


class Named(Protocol):
    """A node, as a message or in onnx-ir."""

    @property
    def name(self) -> str | None:
        """Its name, if it has one."""

    @property
    def op_type(self) -> str:
        """Its operator."""


class NamedFunction(Protocol):
    """A function, as a message or in onnx-ir."""

    @property
    def domain(self) -> str:
        """Its domain."""

    @property
    def name(self) -> str:
        """Its name."""

    @property
    def overload(self) -> str:
        """Which of several of one name it is."""


def node_label(node: Named, index: int) -> str:
    """A node's name, or its operator and its place among its siblings if it has none."""
    return short_name(node.name or "") or f"{short_name(node.op_type)}[{index}]"


def function_label(function: NamedFunction) -> str:
    """Such as ``function custom::F``, or ``function custom::F:overload``."""
    overload = f":{short_name(function.overload)}" if function.overload else ""
    return f"function {short_name(function.domain)}::{short_name(function.name)}{overload}"


def domain_name(domain: str) -> str:
    """The domain; ``ai.onnx`` is another spelling of ONNX's own, which is ``""``."""
    return "" if domain == "ai.onnx" else domain


def model_opsets(model: ModelProto) -> dict[str, int]:
    """The opset of each domain that the main graph imports.

    Models older than IR version 3 could not import any; they are at opset 1.

    Raises:
        SplitError: TS502 for imports that contradict each other.
    """
    if not model.opset_import and 0 < model.ir_version < _FIRST_IR_WITH_OPSETS:
        return {"": 1}
    return opset_imports(model.opset_import, "graph")


def opset_imports(imports: Iterable[OperatorSetIdProto], path: str) -> dict[str, int]:
    """The opset of each domain that is imported.

    Raises:
        SplitError: TS502 for imports that contradict each other, or an opset below 1.
    """
    opsets: dict[str, int] = {}
    for entry in imports:
        domain = domain_name(entry.domain)
        shown = show(domain or "ai.onnx")
        if entry.version < 1:
            raise SplitError(
                MALFORMED_MODEL,
                f"opset {entry.version} of the domain {shown} is imported",
                "import an opset from 1 on",
                node=path,
                parameter="opset_import",
            )
        if opsets.setdefault(domain, entry.version) != entry.version:
            raise SplitError(
                MALFORMED_MODEL,
                f"the domain {shown} is imported at the opsets {opsets[domain]} and"
                f" {entry.version}",
                "import each domain once",
                node=path,
                parameter="opset_import",
            )
    return opsets
