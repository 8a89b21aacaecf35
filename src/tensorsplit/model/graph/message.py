"""ONNX messages: checked and adapted before onnx-ir reads them, and written.

onnx-ir drops or refuses some of what a message can hold: sparse tensors, types of maps, names that
occur twice. This file checks and adapts what comes in, and restores what would be lost.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache, partial
from logging import NullHandler, getLogger
from pathlib import Path
from typing import Any

import onnx_ir as ir
from onnx import (
    AttributeProto,
    FunctionProto,
    GraphProto,
    ModelProto,
    NodeProto,
    OperatorSetIdProto,
    SparseTensorProto,
    TensorProto,
    TypeProto,
    ValueInfoProto,
)

from tensorsplit.core.errors import MALFORMED_MODEL, UNREADABLE_MODEL, SplitError, show
from tensorsplit.model.graph.nodes import (
    FIRST_IR_WITH_OPSETS,
    NodeRef,
    check_depth,
    domain_name,
    function_label,
    malformed,
    node_path,
    restore_outputs,
    scopes,
)
from tensorsplit.model.graph.tensors import ELEMENT_TYPES, check_tensor, sparse_tensor

getLogger("onnx_ir").addHandler(NullHandler())  # what it warns of is refused or told here

_MAX_BODIES = 32
"""Bodies nested deeper than this can't be read from a file, nor copied: protobuf's own limit."""

_FREE_TEXT = frozenset(
    (
        *("configuration", "denotation", "device_configurations", "doc_string", "map_type"),
        *("metadata_props", "opaque_type", "producer_name", "producer_version"),
        *("quantization_annotation", "sparse_tensor_type", "tp", "training_info", "type_protos"),
        "value_info",
    )
)
"""Fields with text that nothing here compares or prints."""


@dataclass(frozen=True, slots=True)
class NodeList:
    """A graph, a body or a function in a message, with its path and what is around a body."""

    graph: GraphProto | FunctionProto
    path: str
    opsets: Mapping[str, int]
    outer: NodeList | None = None

    def path_of(self, index: int) -> str:
        """The path of a node."""
        return node_path(self.path, self.graph.node[index], index)


def node_lists(model: ModelProto) -> Iterator[NodeList]:
    """The main graph and functions, each before the bodies in it: the order of `nodes.scopes`.

    Opset imports that contradict each other and bodies nested too deep are refused (TS502).
    """
    yield from _inside(NodeList(model.graph, "graph", message_opsets(model)))
    for function in model.functions:
        label = function_label(function)
        yield from _inside(NodeList(function, label, _opsets(function.opset_import, label)))


def _inside(listed: NodeList, depth: int = 0) -> Iterator[NodeList]:
    check_depth(depth, listed.path, _MAX_BODIES)
    yield listed
    for index, node in enumerate(listed.graph.node):
        for label, body in _bodies(node.attribute):
            path = f"{listed.path_of(index)}.{label}"
            yield from _inside(replace(listed, graph=body, path=path, outer=listed), depth + 1)


def _bodies(attributes: Iterable[AttributeProto]) -> Iterator[tuple[str, GraphProto]]:
    for attribute in attributes:
        if attribute.ref_attr_name:
            continue
        if attribute.type == AttributeProto.GRAPH:
            yield attribute.name, attribute.g
        elif attribute.type == AttributeProto.GRAPHS:
            for index, graph in enumerate(attribute.graphs):
                yield f"{attribute.name}[{index}]", graph


def graphs(model: ModelProto) -> Iterator[GraphProto]:
    """The main graph and every body, in functions too."""
    for listed in node_lists(model):
        if isinstance(listed.graph, GraphProto):
            yield listed.graph


def tensors_outside(model: ModelProto) -> Iterator[TensorProto]:
    """Every tensor with external data, wherever it stands; it may be replaced in the model."""
    for listed in node_lists(model):
        for tensor in _tensors(listed.graph):
            if tensor.data_location == TensorProto.EXTERNAL:
                yield tensor


def _tensors(graph: GraphProto | FunctionProto) -> Iterator[TensorProto]:
    sparse: list[SparseTensorProto] = []
    if isinstance(graph, GraphProto):
        yield from graph.initializer
        sparse += graph.sparse_initializer
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.HasField("t"):
                yield attribute.t
            yield from attribute.tensors
            sparse += attribute.sparse_tensors
            if attribute.HasField("sparse_tensor"):
                sparse.append(attribute.sparse_tensor)
    for tensor in sparse:
        yield from (tensor.values, tensor.indices)


def message_opsets(model: ModelProto) -> dict[str, int]:
    """As `nodes.model_opsets`; imports that contradict each other are refused (TS502)."""
    if not model.opset_import and 0 < model.ir_version < FIRST_IR_WITH_OPSETS:
        return {"": 1}
    return _opsets(model.opset_import, "graph")


def _opsets(imports: Iterable[OperatorSetIdProto], path: str) -> dict[str, int]:
    opsets: dict[str, int] = {}
    for entry in imports:
        domain = domain_name(entry.domain)
        shown = show(domain or "ai.onnx")
        if entry.version < 1:
            problem = f"opset {entry.version} of the domain {shown} is imported"
            fix = "import an opset from 1 on"
        elif opsets.setdefault(domain, entry.version) != entry.version:
            versions = f"{opsets[domain]} and {entry.version}"
            problem = f"the domain {shown} is imported at the opsets {versions}"
            fix = "import each domain once"
        else:
            continue
        raise SplitError(MALFORMED_MODEL, problem, fix, node=path, parameter="opset_import")
    return opsets


def check_text(model: ModelProto) -> None:
    """Refuse a model in which a name is not UTF-8, before anything compares or prints it.

    Protobuf hands out bytes for such a name, and not text. What `node_lists` refuses is too.
    """
    waiting: list[Any] = [model]
    while waiting:
        message = waiting.pop()
        for name, is_list, is_text in _text_fields(message.DESCRIPTOR):
            if not is_list and not message.HasField(name):
                continue
            values = getattr(message, name) if is_list else [getattr(message, name)]
            if not is_text:
                waiting += values
                continue
            for text in values:
                if not isinstance(text, str):
                    problem = f"the name {show(text)} is not UTF-8"
                    fix = "give a model whose names are"
                    raise SplitError(UNREADABLE_MODEL, problem, fix, parameter="model")
    for _ in node_lists(model):
        pass


@cache
def _text_fields(descriptor: Any) -> list[tuple[str, bool, bool]]:
    """The fields of a message that hold names or further messages.

    Each with whether it is a list, and whether it holds text.
    """
    return [
        (field.name, not field.has_presence, field.message_type is None)
        for field in descriptor.fields
        if field.name not in _FREE_TEXT
        and (field.message_type is not None or field.type == field.TYPE_STRING)
    ]


def read_message(model: ModelProto, folder: Path | None) -> ir.Model:
    """Turn a message, which is not changed, into an onnx-ir model.

    Sparse constants become dense tensors whose elements are computed on demand, outputs of a body
    that are values of a graph around it go through an Identity node, and types that onnx-ir does
    not know are omitted. External data is looked for in the folder.

    Raises:
        Exception: SplitErrors for names that contradict each other and impossible tensors; those
            of many kinds tell what else onnx-ir refuses.
    """
    _check_structure(model)
    if not any(True for listed in node_lists(model) for _ in _adaptations(listed, folder)):
        return ir.serde.deserialize_model(model)
    source = ModelProto()
    source.CopyFrom(model)
    for listed in node_lists(source):
        for adapt in list(_adaptations(listed, folder)):
            adapt()
    made = ir.serde.deserialize_model(source)
    for listed, scope in zip(node_lists(model), scopes(made), strict=True):
        _fill_sparse(listed.graph, scope, folder)
    return made


def _check_structure(model: ModelProto) -> None:
    """Refuse names and attributes that occur twice, of which onnx-ir would drop one."""
    functions: set[tuple[str, str, str]] = set()
    for function in model.functions:
        key = domain_name(function.domain), function.name, function.overload
        if key in functions:
            problem = "there are two functions of this name"
            raise malformed(problem, "rename one", function_label(function))
        functions.add(key)
    for listed in node_lists(model):
        names = _check_names(listed)
        for name in listed.graph.output if isinstance(listed.graph, FunctionProto) else ():
            if name not in names:
                raise malformed(f"nothing produces the output {show(name)}", "", listed.path)
        for tensor in _tensors(listed.graph):
            try:
                check_tensor(tensor)
            except SplitError as error:
                raise error.located(node=listed.path) from None


def _check_names(listed: NodeList) -> set[str]:
    names: set[str] = set()
    for kind, given in zip(("input", "initializer"), _given(listed.graph), strict=True):
        seen: set[str] = set()
        for name in given:
            if not name or name in seen:
                problem = f"the {kind} {show(name)} is there twice or has no name"
                raise malformed(problem, "name each once", listed.path)
            seen.add(name)
        names |= seen
    for index, node in enumerate(listed.graph.node):
        for name in node.output:
            if name and name in names:
                problem = f"{show(name)} is produced twice"
                raise malformed(problem, "rename one of them", listed.path_of(index))
            names.add(name)
        try:
            check_attributes(node)
        except SplitError as error:
            raise error.located(node=listed.path_of(index)) from None
    return names


def check_attributes(node: NodeProto) -> None:
    """Refuse an attribute that occurs twice (TS502)."""
    names = [attribute.name for attribute in node.attribute]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise malformed(f"it has the attribute {show(twice)} more than once", "give it once")


def _given(graph: GraphProto | FunctionProto) -> tuple[list[str], list[str]]:
    """The names of the inputs, and of the initializers."""
    if isinstance(graph, FunctionProto):
        return list(graph.input), []
    dense = [tensor.name for tensor in graph.initializer]
    sparse = [tensor.values.name for tensor in graph.sparse_initializer]
    return [value.name for value in graph.input], dense + sparse


def _names(graph: GraphProto | FunctionProto) -> set[str]:
    inputs, constants = _given(graph)
    return {*inputs, *constants, *(name for node in graph.node for name in node.output)}


def _adaptations(listed: NodeList, folder: Path | None) -> Iterator[Callable[[], object]]:
    """What to change in a graph of a copy, of which onnx-ir would drop or refuse something.

    Sparse constants become placeholders.
    """
    graph = listed.graph
    for tensor in _tensors(graph) if folder is None else ():
        if tensor.data_location == TensorProto.EXTERNAL and tensor.HasField("raw_data"):
            yield partial(_embed, tensor)  # the data was read, as older versions of onnx do
    for node in graph.node:
        sparse = _sparse(node)
        if sparse is not None:
            dense = AttributeProto(name="value", type=AttributeProto.TENSOR, t=_placeholder(sparse))
            yield partial(node.attribute[0].CopyFrom, dense)
    if isinstance(graph, FunctionProto):
        return
    for sparse in graph.sparse_initializer:
        yield partial(graph.initializer.append, _placeholder(sparse))
    for value in (*graph.input, *graph.output, *graph.value_info):
        if not _is_known(value.type):
            yield partial(value.ClearField, "type")
    for value in _given_from_around(listed):
        yield partial(_pass_on, value, listed)


def _embed(tensor: TensorProto) -> None:
    tensor.data_location = TensorProto.DEFAULT
    del tensor.external_data[:]


def _pass_on(value: ValueInfoProto, listed: NodeList) -> None:
    """Have a body give out a value from around it through an Identity node."""
    taken, inner = _names(listed.graph), value.name
    while inner in taken or inner == value.name:
        inner += "_given"
    listed.graph.node.add(op_type="Identity", input=[value.name], output=[inner])
    value.name = inner


def _fill_sparse(
    graph: GraphProto | FunctionProto, scope: ir.Graph | ir.Function, folder: Path | None
) -> None:
    if isinstance(graph, GraphProto) and isinstance(scope, ir.Graph):
        for tensor in graph.sparse_initializer:
            scope.initializers[tensor.values.name].const_value = sparse_tensor(tensor, folder)
    for proto, node in zip(graph.node, scope, strict=False):  # Identity nodes may follow
        held = _sparse(proto)
        if held is not None:
            node.attributes["value"] = ir.AttrTensor("value", sparse_tensor(held, folder))


def _sparse(node: NodeProto) -> SparseTensorProto | None:
    """What a Constant node holds, if it is sparse."""
    if node.op_type != "Constant" or len(node.attribute) != 1:
        return None
    attribute = node.attribute[0]
    is_sparse = attribute.type == AttributeProto.SPARSE_TENSOR and not attribute.ref_attr_name
    return attribute.sparse_tensor if is_sparse else None


def _placeholder(sparse: SparseTensorProto) -> TensorProto:
    values = sparse.values
    return TensorProto(name=values.name, dims=sparse.dims, data_type=values.data_type)


def _is_known(declared: TypeProto, *, inside: bool = False) -> bool:
    """Whether onnx-ir has a type."""
    kind = declared.WhichOneof("value")
    if kind in ("tensor_type", "sparse_tensor_type"):
        tensor = getattr(declared, kind)
        return tensor.elem_type in ELEMENT_TYPES and (not inside or tensor.HasField("elem_type"))
    if kind in ("sequence_type", "optional_type"):
        return _is_known(getattr(declared, kind).elem_type, inside=True)
    return kind is None and not inside


def _given_from_around(listed: NodeList) -> list[ValueInfoProto]:
    """The outputs of a body that are values of the graphs around it, which onnx-ir can't hold."""
    if listed.outer is None or isinstance(listed.graph, FunctionProto):
        return []
    own = _names(listed.graph)
    missing = [value for value in listed.graph.output if value.name not in own]
    around: set[str] = set()
    while missing and (outer := listed.outer) is not None:
        around, listed = around | _names(outer.graph), outer
    return [value for value in missing if value.name in around]


def write_message(model: ir.Model, original: ModelProto | None = None) -> ModelProto:
    """A model, read from an original if one is given, as an ONNX message.

    Here are the last outputs without a name, which onnx-ir leaves out, and the types that
    `read_message` left out of inputs and outputs, but not the descriptions that onnx-ir adds to
    initializers. Exceptions of many kinds tell what onnx-ir can't write.
    """
    made: ModelProto = ir.serde.serialize_model(model)
    described: set[str] = set()
    types: dict[str, TypeProto] = {}
    if original is not None:
        described = {value.name for graph in graphs(original) for value in graph.value_info}
        ends = (*original.graph.input, *original.graph.output)
        types = {value.name: value.type for value in ends if value.type.WhichOneof("value")}
    for listed, scope in zip(node_lists(made), scopes(model), strict=True):
        for index, node in enumerate(scope):
            if node.outputs and not node.outputs[-1].name:
                restore_outputs(node, listed.graph.node[index])
        graph = listed.graph
        if original is not None and isinstance(graph, GraphProto):
            drop = {tensor.name for tensor in graph.initializer} - described
            kept = [value for value in graph.value_info if value.name not in drop]
            del graph.value_info[:]
            graph.value_info.extend(kept)
    for value in (*made.graph.input, *made.graph.output):
        if value.name in types and not value.HasField("type"):
            value.type.CopyFrom(types[value.name])
    return made


def lone_nodes(model: ModelProto) -> Iterator[NodeRef]:
    """Each node of a model by itself, for a model that contradicts itself.

    The nodes have no bodies, and nothing is known of the values that they read. Nodes that onnx-ir
    does not understand are omitted.
    """
    nowhere = ir.Graph((), (), nodes=())
    for listed in node_lists(model):
        for index, node in enumerate(listed.graph.node):
            alone = NodeProto(
                op_type=node.op_type,
                domain=node.domain,
                name=node.name,
                overload=node.overload,
                input=node.input,
                output=[f"{position}" for position, _ in enumerate(node.output)],
                attribute=[entry for entry in node.attribute if not any(_bodies([entry]))],
            )
            try:
                made = ir.serde.deserialize_node(alone)
            except Exception:  # noqa: BLE001, S112 - onnx-ir raises of many kinds
                continue
            yield NodeRef(made, listed.path_of(index), listed.opsets, nowhere, None)
