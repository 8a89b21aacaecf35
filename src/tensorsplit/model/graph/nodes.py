"""The nodes of an onnx-ir model, in bodies and functions too, each with its path and opset."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any, TypeAlias, TypeGuard

import onnx_ir as ir
from onnx import NodeProto, defs

from tensorsplit.core.errors import show
from tensorsplit.model.graph.node_paths import check_depth, function_label, node_paths
from tensorsplit.model.graph.opsets import domain_opsets, model_opsets, schema_of
from tensorsplit.model.graph.progress import counted
from tensorsplit.model.refusals import malformed

Scope: TypeAlias = "ir.Graph | ir.Function"

_FEW_INPUTS = 64
"""Nodes of up to so many inputs are changed by onnx-ir's own methods."""

GRAPH_TYPES = (ir.AttributeType.GRAPH, ir.AttributeType.GRAPHS)


@dataclass(frozen=True, slots=True)
class NodeRef:
    """A node, and where it is.

    Attributes:
        path: Such as ``graph/loop_1.body/split_0`` or ``function custom::F/split``.
        opsets: The opset of each domain in force there; ONNX's own domain is ``""``.
        function: The function it belongs to, through whatever bodies; None in the main graph.
        outer: The nodes whose bodies it is in, the outermost first.
    """

    node: ir.Node
    path: str
    opsets: Mapping[str, int]
    scope: Scope
    function: ir.Function | None
    outer: tuple[ir.Node, ...] = ()

    @property
    def around(self) -> tuple[str, ...]:
        """The types of the nodes whose bodies it is in, the outermost first."""
        return tuple(node.op_type for node in self.outer)

    @property
    def owners(self) -> dict[object, ir.Node]:
        """The nodes whose bodies it is in, by these bodies and others of them."""
        return {body: node for node in self.outer for _, body in bodies(node)}

    @property
    def opset(self) -> int:
        """The opset of ONNX's own domain; 0 where it is not imported."""
        return self.opsets.get("", 0)

    @property
    def op_type(self) -> str:
        """The operator."""
        return self.node.op_type

    @property
    def stem(self) -> str:
        """The beginning of the names that are made for it."""
        return self.node.name or self.op_type

    @property
    def schema(self) -> defs.OpSchema | None:
        """The schema in force for it; None where onnx knows none."""
        return schema_of(self.op_type, self.opsets.get(self.node.domain, 0), self.node.domain)

    def input(self, index: int) -> ir.Value | None:
        """Return an input, or None if it is omitted."""
        return self.node.inputs[index] if index < len(self.node.inputs) else None

    def put(self, name: str, value: Any) -> None:
        """Set an attribute to a Python value."""
        self.node.attributes[name] = ir.convenience.convert_attribute(name, value)

    def set_inputs(self, values: Iterable[ir.Value | None]) -> None:
        """Replace all inputs; those omitted at the end are dropped."""
        given = list(values)
        while given and given[-1] is None:
            given.pop()
        pairs = enumerate(zip_longest(given, self.node.inputs[: len(given)]))
        changed = {index: new for index, (new, old) in pairs if new is not old}
        change_inputs(self.node, changed, len(given))


def change_inputs(
    node: ir.Node, changed: Mapping[int, ir.Value | None], count: int | None = None
) -> None:
    """Replace some inputs of a node, and let it have so many of them, in linear time.

    onnx-ir goes through all inputs for each that is replaced.
    """
    before = node.inputs
    count = len(before) if count is None else count
    if len(before) <= _FEW_INPUTS or node.device_configurations:
        node.resize_inputs(count)
        for index, value in changed.items():
            node.replace_input_with(index, value)
        return
    after = [*before[:count], *[None] * (count - len(before))]
    gone = dict.fromkeys(range(count, len(before)))
    for index, value in {**gone, **changed}.items():
        if index < len(before) and (old := before[index]) is not None:
            old._remove_usage(node, index)  # noqa: SLF001 - onnx-ir has no other way
        if value is not None:
            after[index] = value
            value._add_usage(node, index)  # noqa: SLF001 - as above
        elif index < count:
            after[index] = None
    node._inputs = tuple(after)  # noqa: SLF001 - as above


def walk(model: ir.Model, what: str = "looking at the nodes") -> Iterator[NodeRef]:
    """Yield every node: the main graph's in order, each before its bodies, then functions'.

    Nodes may be replaced while this runs, but not those that come later. Progress hooks are called
    with what the pass does.
    """
    yield from _walk(model.graph, "graph", model_opsets(model), what=what)
    for function in tuple(model.functions.values()):
        yield from walk_function(function)


def walk_function(function: ir.Function) -> Iterator[NodeRef]:
    """Do as `walk`, for the nodes of one function."""
    opsets = domain_opsets(function.opset_imports)
    yield from _walk(function, function_label(function), opsets, function)


def _walk(
    scope: Scope,
    path: str,
    opsets: Mapping[str, int],
    function: ir.Function | None = None,
    *,
    outer: tuple[ir.Node, ...] = (),
    what: str = "",
) -> Iterator[NodeRef]:
    check_depth(len(outer), path)
    nodes = tuple(scope)
    paths = node_paths(path, nodes)
    for node, here in zip(counted(what, nodes) if what else nodes, paths, strict=True):
        yield NodeRef(node, here, opsets, scope, function, outer)
        for label, body in bodies(node):
            yield from _walk(body, f"{here}.{label}", opsets, function, outer=(*outer, node))


def scopes(model: ir.Model) -> Iterator[Scope]:
    """Yield the main graph and functions, each before the bodies in it."""
    yield from scopes_in(model.graph)
    for function in model.functions.values():
        yield from scopes_in(function)


def scopes_in(scope: Scope) -> Iterator[Scope]:
    """Yield a graph or function, and then the bodies in it."""
    yield scope
    for node in scope:
        yield from scopes_inside(node)


def scopes_inside(node: ir.Node) -> Iterator[Scope]:
    """Yield the bodies of a node, and those in them."""
    for _, body in bodies(node):
        yield from scopes_in(body)


def nodes_in(scope: Scope) -> Iterator[ir.Node]:
    """Yield the nodes of a graph or function, and of the bodies in it."""
    for each in scopes_in(scope):
        yield from each


def nodes_within(node: ir.Node) -> Iterator[ir.Node]:
    """Yield a node, and those in its bodies."""
    yield node
    for _, body in bodies(node):
        yield from nodes_in(body)


def bodies(node: ir.Node) -> list[tuple[str, ir.Graph]]:
    """Return the graphs among a node's attributes, each with its label in a path."""
    found: list[tuple[str, ir.Graph]] = []
    for attribute in node.attributes.data.values():
        kind = attribute.type
        if kind not in GRAPH_TYPES or attribute.is_ref():
            continue
        if kind == ir.AttributeType.GRAPH:
            found.append((attribute.name, attribute.as_graph()))
        else:
            graphs = enumerate(attribute.as_graphs())
            found += ((f"{attribute.name}[{index}]", graph) for index, graph in graphs)
    return found


def branch_label(condition: object) -> str:
    """Return the label of the branch of an If that a condition takes."""
    return "then_branch" if condition else "else_branch"


def attribute_of(node: ir.Node, name: str, kind: ir.AttributeType, default: object = None) -> Any:
    """Return the value of an attribute; None if it has another type, or only calls give it."""
    held = node.attributes.get(name)
    if held is None:
        return default
    return held.value if held.type == kind and not held.is_ref() else None


def namesakes(scope: Scope) -> Iterator[ir.Node]:
    """Yield the nodes of a graph or function that have the name of one before.

    Constants are left out: for engines they are initializers.
    """
    seen = set[str]()
    for node in scope:
        if node.name and not is_operator(node, "Constant"):
            if node.name in seen:
                yield node
            seen.add(node.name)


def given_in_branches(node: ir.Node, made: ir.Value) -> list[ir.Value]:
    """Return the values that the branches of an If give for one of its outputs."""
    place = node.outputs.index(made)
    return [body.outputs[place] for _, body in bodies(node) if place < len(body.outputs)]


def is_operator(node: ir.Node | None, *names: str) -> TypeGuard[ir.Node]:
    """Return whether there is a node, and it is of one of these operators of ONNX's own domain."""
    return node is not None and node.domain == "" and node.op_type in names


def is_used(value: ir.Value) -> bool:
    """Return whether anything reads a value."""
    return bool(value.uses()) or value.is_graph_output()


def as_proto(node: ir.Node) -> NodeProto:
    """Return a node as an ONNX message."""
    try:
        proto = ir.serde.serialize_node(node)
    except ir.serde.SerdeError as error:
        problem = f"the node can't be understood ({show(str(error))})"
        raise malformed(problem, "repair it") from error
    restore_outputs(node, proto)
    return proto


def restore_outputs(node: ir.Node, proto: NodeProto) -> None:
    """Put back the last outputs that have no name into the message that onnx-ir made of a node.

    onnx-ir leaves them out, but each output of a split is one of its parts.
    """
    proto.output.extend([""] * (len(node.outputs) - len(proto.output)))
