"""The nodes of an onnx-ir model, in bodies and functions too, each with its path and opset."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import zip_longest
from typing import Any, TypeAlias

import numpy as np
import onnx_ir as ir
from onnx import FunctionProto, NodeProto, defs

from tensorsplit.core.errors import (
    MALFORMED_MODEL,
    NO_ADAPTER,
    UNKNOWN_OPERATOR,
    SplitError,
    SplitWarning,
    short_name,
    show,
    show_int,
)
from tensorsplit.core.records import NEWEST_OPSET, in_force, operators
from tensorsplit.core.records.openvino import DOMAIN
from tensorsplit.core.schema import Operator
from tensorsplit.model.graph.progress import counted
from tensorsplit.model.graph.tensors import Array, read_tensor
from tensorsplit.model.openvino_ir import LAYER_PATH, LAYER_VERSION

Scope: TypeAlias = "ir.Graph | ir.Function"

FAMILY = frozenset(record.name for record in operators.values() if record.vendor == "onnx")
"""The operator types of ONNX's own domain that this package defines."""

VENDOR_FAMILY = frozenset(
    record.name for record in operators.values() if record.vendor == "openvino"
)
"""The operator types of OpenVINO that this package defines."""

_SPLITS = FAMILY | VENDOR_FAMILY

VENDOR_SPLIT = operators["openvino.VariadicSplit-1"]
"""The operator of OpenVINO that ONNX models may hold, in OpenVINO's domain."""

MAX_DEPTH = 96
"""Bodies and function calls nested deeper than this are refused, before Python's stack ends."""

_FIRST_IR_WITH_OPSETS = 3

_FEW_INPUTS = 64
"""Nodes of up to so many inputs are changed by onnx-ir's own methods."""

GRAPH_TYPES = (ir.AttributeType.GRAPH, ir.AttributeType.GRAPHS)

LARGEST_CONSTANT = 1 << 16
"""Constants of more elements are not operands of anything; their data is not read."""


@dataclass(frozen=True, slots=True)
class NodeRef:
    """A node, and where it is.

    Attributes:
        path: Such as ``graph/loop_1.body/split_0`` or ``function custom::F/split``.
        opsets: The opset of each domain in force there; ONNX's own domain is ``""``.
        function: The function it belongs to, through whatever bodies; None in the main graph.
        around: The types of the nodes whose bodies it is in, the outermost first.
    """

    node: ir.Node
    path: str
    opsets: Mapping[str, int]
    scope: Scope
    function: ir.Function | None
    around: tuple[str, ...] = ()

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
        """What names begin with that are made for it."""
        return self.node.name or self.op_type

    @property
    def schema(self) -> Any:
        """The ``onnx.defs.OpSchema`` in force for it; None where onnx knows none."""
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
    if len(before) <= _FEW_INPUTS or getattr(node, "device_configurations", False):
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
    around: tuple[str, ...] = (),
    what: str = "",
) -> Iterator[NodeRef]:
    check_depth(len(around), path)
    nodes = tuple(scope)
    paths = node_paths(path, nodes)
    for node, here in zip(counted(what, nodes) if what else nodes, paths, strict=True):
        yield NodeRef(node, here, opsets, scope, function, around)
        inside = (*around, node.op_type)
        for label, body in bodies(node):
            yield from _walk(body, f"{here}.{label}", opsets, function, around=inside)


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


def attribute_of(node: ir.Node, name: str, kind: ir.AttributeType, default: object = None) -> Any:
    """Return the value of an attribute; None if it has another type, or only calls give it."""
    held = node.attributes.get(name)
    if held is None:
        return default
    return held.value if held.type == kind and not held.is_ref() else None


def axes_from_front(op_type: str, axes: Sequence[int], rank: int | None) -> list[int] | None:
    """Return axes of a node in order, counted from the front.

    None for axes that count from the back of a tensor whose rank is not known.
    """
    if rank is None and min(axes, default=0) < 0:
        return None
    whole = (rank or 0) + (len(axes) if op_type in ("OneHot", "Unsqueeze") else 0)
    return sorted(axis + whole if axis < 0 else axis for axis in axes)


def malformed(
    problem: str, fix: str, path: str | None = None, *, operator: str | None = None
) -> SplitError:
    """Return the refusal of a graph that contradicts itself or the standard (TS502)."""
    return SplitError(MALFORMED_MODEL, problem, fix, node=path, operator=operator)


def own_fault(problem: str, error: Exception) -> SplitError:
    """Return the refusal of what this package can't do, though the model is right (TS512)."""
    reason = f"{type(error).__name__}: {show(str(error))}"
    return SplitError(NO_ADAPTER, f"{problem} ({reason})", "please report it, with the model")


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


def domain_name(domain: str) -> str:
    """Return the domain; ONNX's own is ``""``, which models may also call ``ai.onnx``.

    onnx-ir does the same for nodes.
    """
    return "" if domain == "ai.onnx" else domain


def domain_opsets(imports: Mapping[str, int]) -> dict[str, int]:
    """Return the opset of each domain; ONNX's own is ``""``, imported as ``ai.onnx`` or not."""
    return {domain_name(domain): version for domain, version in imports.items()}


def is_before_opsets(ir_version: int) -> bool:
    """Return whether models of an IR version have no imports, so opset 1; 0 stands for none."""
    return 0 < ir_version < _FIRST_IR_WITH_OPSETS


def model_opsets(model: ir.Model) -> dict[str, int]:
    """Return the opset of each domain in the main graph; 1 for models before IR version 3."""
    if not model.opset_imports and is_before_opsets(model.ir_version):
        return {"": 1}
    return domain_opsets(model.opset_imports)


def is_split(node: ir.Node) -> bool:
    """Return whether the node is one of the operators of this package: ONNX's or OpenVINO's."""
    return node.op_type in _SPLITS and (is_onnx_split(node) or is_vendor_split(node))


def is_onnx_split(node: ir.Node) -> bool:
    """Return whether the node is a Split or SplitToSequence of ONNX."""
    return node.op_type in FAMILY and node.domain == ""


def is_vendor_split(node: ir.Node) -> bool:
    """Return whether the node is one of OpenVINO's splits."""
    return node.op_type in VENDOR_FAMILY and node.domain == DOMAIN


def record_of(node: ir.Node, opset: int) -> Operator:
    """Return the operator version of a split node at an opset of ONNX's own (TS101 for none).

    SplitWarning for an opset that is newer than the records: the newest one is taken, if the
    installed onnx says that the operator has not changed since.
    """
    if is_vendor_split(node):
        version = node.metadata_props.get(LAYER_VERSION, VENDOR_SPLIT.since_version)
        return operators[f"{VENDOR_SPLIT.vendor}.{node.op_type}-{version}"]
    check_known(opset, f"onnx.{node.op_type}")
    if not is_unchanged(node.op_type, opset):
        return in_force(node.op_type, opset)
    record = in_force(node.op_type, NEWEST_OPSET)
    text = f"{record.id} is taken at opset {opset}, which is newer than those known here"
    warnings.warn(f"{text}: {NEWEST_OPSET} is the newest", SplitWarning, stacklevel=2)
    return record


def check_known(opset: int, operator: str | None = None) -> None:
    """Refuse (TS101) an opset that neither the records nor the installed onnx know."""
    if opset > max(NEWEST_OPSET, defs.onnx_opset_version()):
        raise SplitError(
            UNKNOWN_OPERATOR,
            f"opset {show_int(opset)} is newer than the installed onnx",
            f"install one that knows it, or use an opset up to {NEWEST_OPSET}",
            operator=operator,
            parameter="opset",
        )


def is_unchanged(op_type: str, opset: int) -> bool:
    """Return whether an opset is newer than the records, and the operator is not, as onnx says.

    False for an opset that the installed onnx does not know.
    """
    if not NEWEST_OPSET < opset <= defs.onnx_opset_version():
        return False
    schema = schema_of(op_type, opset)
    return schema is not None and schema.since_version <= NEWEST_OPSET


@lru_cache(maxsize=4096)
def schema_of(op_type: str, opset: int, domain: str = "") -> Any:
    """Return the ``onnx.defs.OpSchema`` in force; None where onnx knows none."""
    if not 0 <= opset < 1 << 31:  # for onnx a number of 32 bits
        return None
    try:
        return defs.get_schema(op_type, opset, domain)
    except defs.SchemaError:
        return None


def constant(value: ir.Value | None, most: int = LARGEST_CONSTANT) -> Array | None:
    """Return the value of a small constant: an initializer, or the output of a Constant node.

    An initializer that is also a graph input is a default and not a constant (D20). See
    `read_tensor` for what is refused; the data of one with more elements is not read.
    """
    tensor = None if value is None else fixed_tensor_of(value)
    if value is None or tensor is None or tensor.size > most:
        return None
    return read_tensor(tensor, value.name or "")


def namesakes(scope: Scope) -> Iterator[ir.Node]:
    """Yield the nodes of a graph or function that have the name of one before.

    Constants are left out: for engines they are initializers.
    """
    seen = set[str]()
    for node in scope:
        if node.name and (node.domain, node.op_type) != ("", "Constant"):
            if node.name in seen:
                yield node
            seen.add(node.name)


def given_in_branches(node: ir.Node, made: ir.Value) -> list[ir.Value]:
    """Return what the branches of an If give for one of its outputs."""
    place = node.outputs.index(made)
    return [body.outputs[place] for _, body in bodies(node) if place < len(body.outputs)]


def order_of(transpose: ir.Node, rank: int) -> tuple[int, ...]:
    """Return the order of axes of a Transpose of data of a rank, in ONNX or an IR.

    It is what the model says, right or wrong; backwards if it says none, or only at run time.
    """
    if transpose.domain == "":
        given = attribute_of(transpose, "perm", ir.AttributeType.INTS)
    else:
        order = constant(transpose.inputs[1]) if len(transpose.inputs) > 1 else None
        given = None if order is None else order.reshape(-1).tolist()
    return tuple(given or range(rank)[::-1])


def in_range(indices: Array, length: int) -> bool:
    """Return whether all positions are those of an axis, from its front or from its back."""
    return bool(((indices >= -length) & (indices < length)).all())


def is_used(value: ir.Value) -> bool:
    """Return whether anything reads a value."""
    return bool(value.uses()) or value.is_graph_output()


def fixed_tensor_of(value: ir.Value) -> ir.TensorProtocol | None:
    """Return what a constant holds, without reading it; None for a default (D20)."""
    return None if value.is_graph_input() else tensor_of(value)


def tensor_of(value: ir.Value) -> ir.TensorProtocol | None:
    """Return what an initializer or the output of a Constant node holds, without reading it."""
    producer = value.producer()
    if value.const_value is not None or producer is None:
        return value.const_value
    is_constant = (producer.domain, producer.op_type) == ("", "Constant")
    return held_by(producer.attributes) if is_constant else None


_HELD = {
    "value": ir.AttributeType.TENSOR,
    "value_int": ir.AttributeType.INT,
    "value_ints": ir.AttributeType.INTS,
    "value_float": ir.AttributeType.FLOAT,
    "value_floats": ir.AttributeType.FLOATS,
    "value_string": ir.AttributeType.STRING,
    "value_strings": ir.AttributeType.STRINGS,
}


def held_by(attributes: Mapping[str, ir.Attr]) -> ir.TensorProtocol | None:
    """Return what a Constant node with these attributes holds; None if that is not one value."""
    if len(attributes) != 1:
        return None
    ((name, attribute),) = attributes.items()
    if attribute.is_ref() or attribute.type != _HELD.get(name):
        return None
    if name == "value":
        tensor: ir.TensorProtocol = attribute.value  # its type was checked
        return tensor
    if name in ("value_string", "value_strings"):
        listed = [attribute.value] if name == "value_string" else attribute.value
        texts = [text if isinstance(text, bytes) else text.encode("utf-8") for text in listed]
        return ir.StringTensor(texts, shape=ir.Shape([len(texts)] if name[-1] == "s" else []))
    return ir.tensor(np.array(attribute.value, np.int64 if "int" in name else np.float32))


def tensors(scope: Scope) -> Iterator[ir.TensorProtocol]:
    """Yield every tensor that a graph or function holds, without those in bodies."""
    if isinstance(scope, ir.Graph):
        for value in scope.initializers.values():
            if value.const_value is not None:
                yield value.const_value
    for attribute in (entry for node in scope for entry in node.attributes.data.values()):
        if attribute.type == ir.AttributeType.TENSOR and not attribute.is_ref():
            yield attribute.value
        elif attribute.type == ir.AttributeType.TENSORS and not attribute.is_ref():
            yield from attribute.value


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
