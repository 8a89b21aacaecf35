"""ONNX messages: checked and adapted before onnx-ir reads them, and written.

onnx-ir drops or refuses some of what a message can hold: sparse tensors, types of maps, names that
occur twice. This file checks and adapts what comes in, and restores what would be lost.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache, cached_property, partial
from itertools import chain
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
from tensorsplit.model.graph.carried import (
    TRAINING,
    carry_over,
    holds,
    merge_doubled,
    note_training,
)
from tensorsplit.model.graph.nodes import (
    FIRST_IR_WITH_OPSETS,
    Scope,
    check_depth,
    domain_name,
    function_label,
    malformed,
    node_paths,
    restore_outputs,
    scopes,
    tensors,
)
from tensorsplit.model.graph.tensors import (
    SparseTensor,
    check_tensor,
    element_type_of,
)
from tensorsplit.model.openvino_ir import LAYER_PATH

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


def copied(model: ModelProto) -> ModelProto:
    """Return a message with the same content."""
    copy = ModelProto()
    copy.CopyFrom(model)
    return copy


@dataclass(frozen=True)
class NodeList:
    """A graph, a body or a function in a message, with its path and what is around a body."""

    graph: GraphProto | FunctionProto
    path: str
    opsets: Mapping[str, int]
    outer: NodeList | None = None

    @cached_property
    def paths(self) -> list[str]:
        """The paths of the nodes, which most models are never asked for."""
        return node_paths(self.path, self.graph.node)

    @cached_property
    def tensors(self) -> list[tuple[int | None, TensorProto | SparseTensorProto]]:
        """Its constants, and what its nodes hold; each with the index of the node."""
        found = [
            (index, held)
            for index, node in enumerate(self.graph.node)
            for attribute in node.attribute
            if attribute.type not in _NUMBERS_AND_TEXT
            for held in _held(attribute)
        ]
        if isinstance(self.graph, FunctionProto):
            return [*found]
        constants = *self.graph.initializer, *self.graph.sparse_initializer
        return [*((None, held) for held in constants), *found]


def node_lists(model: ModelProto) -> Iterator[NodeList]:
    """The main graph and functions, each before the bodies in it: the order of `nodes.scopes`.

    Of opset imports that contradict each other the first holds. Bodies nested too deep are refused
    (TS502).
    """
    yield from _inside(NodeList(model.graph, "graph", message_opsets(model)))
    for function in model.functions:
        label = function_label(function)
        yield from _inside(NodeList(function, label, _opsets(function.opset_import)))


def _inside(listed: NodeList, depth: int = 0) -> Iterator[NodeList]:
    check_depth(depth, listed.path, _MAX_BODIES)
    yield listed
    for index, label, body in _bodies(listed.graph):
        path = f"{listed.paths[index]}.{label}"
        yield from _inside(replace(listed, graph=body, path=path, outer=listed), depth + 1)


def _bodies(graph: GraphProto | FunctionProto) -> Iterator[tuple[int, str, GraphProto]]:
    """Yield the bodies of the nodes of a graph, each with the index of its node and its label."""
    found = [
        (index, attribute)
        for index, node in enumerate(graph.node)
        for attribute in node.attribute
        if attribute.type in _BODIES
    ]
    for at, attribute in found:
        if attribute.ref_attr_name:
            continue
        if attribute.type == AttributeProto.GRAPH:
            yield at, attribute.name, attribute.g
        else:
            for index, body in enumerate(attribute.graphs):
                yield at, f"{attribute.name}[{index}]", body


_BODIES = (AttributeProto.GRAPH, AttributeProto.GRAPHS)
_SPARSE = (AttributeProto.SPARSE_TENSOR, AttributeProto.SPARSE_TENSORS)
_NUMBERS_AND_TEXT = frozenset(
    (
        *(AttributeProto.FLOAT, AttributeProto.INT, AttributeProto.STRING),
        *(AttributeProto.FLOATS, AttributeProto.INTS, AttributeProto.STRINGS),
    )
)


def shadowed_names(model: ModelProto) -> Iterator[tuple[str, str]]:
    """Yield the paths of nodes in bodies, with a name of an output that a value around them has."""
    for listed in (model.graph, *model.functions):
        path = "graph" if isinstance(listed, GraphProto) else function_label(listed)
        yield from _shadowed(listed, path, [])


def _shadowed(
    graph: GraphProto | FunctionProto, path: str, around: list[set[str]]
) -> Iterator[tuple[str, str]]:
    bodies = defaultdict[int, list[tuple[str, GraphProto]]](list)
    for index, label, body in _bodies(graph):
        bodies[index].append((label, body))
    if not around and not bodies:
        return
    seen = _given_names(graph)
    paths = node_paths(path, graph.node)
    for index, (node, here) in enumerate(zip(graph.node, paths, strict=True)):
        for label, body in bodies.get(index, ()):
            yield from _shadowed(body, f"{here}.{label}", [*around, seen])
        for name in node.output if around else ():
            if name and any(name in names for names in around):
                yield here, name
        seen.update(filter(None, node.output))


def has_type(declared: TypeProto) -> bool:
    """Return whether ONNX has a type."""
    kind = declared.WhichOneof("value")
    if kind in ("tensor_type", "sparse_tensor_type"):
        return element_type_of(getattr(declared, kind).elem_type) is not None
    if kind in ("sequence_type", "optional_type"):
        return has_type(getattr(declared, kind).elem_type)
    return kind is not None


def graphs(model: ModelProto) -> Iterator[GraphProto]:
    """Yield the main graph and every body, in functions too."""
    for listed in node_lists(model):
        if isinstance(listed.graph, GraphProto):
            yield listed.graph


def tensors_outside(model: ModelProto) -> Iterator[TensorProto]:
    """Every tensor with external data, wherever it stands; it may be replaced in the model."""
    for listed in node_lists(model):
        yield from _outside(listed)


def _outside(listed: NodeList) -> Iterator[TensorProto]:
    for _, held in listed.tensors:
        parts = (held,) if isinstance(held, TensorProto) else (held.values, held.indices)
        for tensor in parts:
            if tensor.data_location == TensorProto.EXTERNAL:
                yield tensor


def _held(attribute: AttributeProto) -> Iterator[TensorProto | SparseTensorProto]:
    """Yield the tensors in an attribute, whatever type it says it has."""
    if attribute.HasField("t"):
        yield attribute.t
    if attribute.HasField("sparse_tensor"):
        yield attribute.sparse_tensor
    yield from attribute.tensors
    yield from attribute.sparse_tensors


def message_opsets(model: ModelProto) -> dict[str, int]:
    """As `nodes.model_opsets`; of imports that contradict each other the first holds."""
    if not model.opset_import and 0 < model.ir_version < FIRST_IR_WITH_OPSETS:
        return {"": 1}
    return _opsets(model.opset_import)


def _opsets(imports: Iterable[OperatorSetIdProto]) -> dict[str, int]:
    return {domain_name(entry.domain): entry.version for entry in reversed(list(imports))}


def check_text(model: ModelProto) -> None:
    """Refuse a model in which a name is not UTF-8, before anything compares or prints it.

    Protobuf hands out bytes for such a name, and not text. What `node_lists` refuses is too.
    """
    texts = _texts(model)
    for text in texts if {*map(type, texts)} != {str} else ():
        if type(text) is not str:
            problem = f"the name {show(text)} is not UTF-8"
            fix = "give a model whose names are"
            raise SplitError(UNREADABLE_MODEL, problem, fix, parameter="model")
    for _ in node_lists(model):
        pass


def _texts(model: ModelProto) -> list[object]:
    """The names in a model; those of a node and of numbers in it are listed here, to be quick."""
    waiting: list[Any] = [model]
    texts: list[object] = []
    while waiting:
        message = waiting.pop()
        if isinstance(message, NodeProto):  # most messages are nodes and their attributes
            texts += message.input
            texts += message.output
            texts += message.op_type, message.domain, message.name, message.overload
            waiting += message.attribute
            continue
        if isinstance(message, AttributeProto) and message.type in _NUMBERS_AND_TEXT:
            texts += message.name, message.ref_attr_name
            continue
        if isinstance(message, TensorProto):  # whose data would be copied
            texts.append(message.name)
            waiting += message.external_data
            continue
        for field, value in message.ListFields():
            kind = _kind_of(field)
            if kind == _TEXT:
                texts.append(value)
            elif kind == _TEXTS:
                texts += value
            elif kind == _MESSAGE:
                waiting.append(value)
            elif kind == _MESSAGES:
                waiting += value
    return texts


_TEXT, _TEXTS, _MESSAGE, _MESSAGES, _OTHER = range(5)


@cache
def _kind_of(field: Any) -> int:
    """Return whether a field holds a name or names, a message or messages, or something else."""
    is_text = field.message_type is None
    if field.name in _FREE_TEXT or (is_text and field.type != field.TYPE_STRING):
        return _OTHER
    one, many = (_TEXT, _TEXTS) if is_text else (_MESSAGE, _MESSAGES)
    return one if field.has_presence else many


def read_message(model: ModelProto, folder: Path | None) -> ir.Model:
    """Turn a message, which is not changed, into an onnx-ir model.

    Sparse constants become dense tensors whose elements are computed on demand, outputs of a body
    that are values of a graph around it go through an Identity node, and types that onnx-ir does
    not know are omitted. External data is looked for in the folder.

    Raises:
        Exception: SplitErrors for names that contradict each other and impossible tensors; those
            of many kinds tell what else onnx-ir refuses.
    """
    lists = list(node_lists(model))
    for contradiction in contradictions(model, lists):
        raise contradiction.error
    if any(True for listed in lists for _ in _adaptations(listed, folder)):
        source = copied(model)
        for listed in node_lists(source):
            for adapt in list(_adaptations(listed, folder)):
                adapt()
        made = ir.serde.deserialize_model(source)
        made.meta[ADAPTED] = True
        for listed, scope in zip(lists, scopes(made), strict=True):
            _fill_sparse(listed.graph, scope, folder)
    else:
        made = ir.serde.deserialize_model(model)
    if any(True for listed in lists for _ in _outside(listed)):
        for tensor in chain(*map(tensors, scopes(made))):
            if isinstance(tensor, ir.ExternalTensor):
                tensor.base_dir = folder or ""
    note_training(model, made)
    return made


ADAPTED = "tensorsplit.adapted"
"""Notes of an onnx-ir model that it is not what was read, node by node and value by value."""


@dataclass(frozen=True, slots=True)
class Contradiction:
    """Something of which onnx-ir would drop a part, or that it would refuse (TS502).

    Attributes:
        mend: Takes it out of the message that was looked at, so that the rest can be checked.
    """

    error: SplitError
    mend: Callable[[], object]


def contradictions(model: ModelProto, lists: Iterable[NodeList]) -> Iterator[Contradiction]:
    """Names, attributes and imports that occur twice, and tensors that there can't be.

    Nothing may be mended before all were found. The lists are the model's `node_lists`.
    """
    yield from _wrong_imports(model.opset_import, "graph")
    functions: set[tuple[str, str, str]] = set()
    for function in model.functions:
        label = function_label(function)
        key = domain_name(function.domain), function.name, function.overload
        if key in functions:
            error = malformed("there are two functions of this name", "rename one", label)
            yield Contradiction(error, partial(model.functions.remove, function))
        functions.add(key)
        yield from _wrong_imports(function.opset_import, label)
    for listed in lists:
        yield from _wrong_names(listed)
        yield from _wrong_tensors(listed)


def _wrong_imports(imports: Any, path: str) -> Iterator[Contradiction]:
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
        error = SplitError(MALFORMED_MODEL, problem, fix, node=path, parameter="opset_import")
        yield Contradiction(error, partial(imports.remove, entry))


def _wrong_names(listed: NodeList) -> Iterator[Contradiction]:
    """Names of values and attributes that occur twice, and outputs of functions without one."""
    graph, names = listed.graph, _given_names(listed.graph)
    for kind, holders in _holders(graph).items():
        seen: set[str] = set()
        for index, (name, rename) in enumerate(holders):
            if not name or name in seen:
                problem = f"the {kind} {show(name)} is there twice"
                if not name:
                    problem = f"the {kind} at position {index} has no name"
                error = malformed(problem, f"give each {kind} a name of its own", listed.path)
                fresh = f"{name or kind} {index}"
                yield Contradiction(error, partial(rename, fresh))
            seen.add(name)
    for index, node in enumerate(graph.node):
        for position, name in enumerate(node.output):
            if name and name in names:
                path = listed.paths[index]
                error = malformed(f"{show(name)} is produced twice", "rename one of them", path)
                fresh = f"{name} of {path}"
                yield Contradiction(error, partial(node.output.__setitem__, position, fresh))
            names.add(name)
        for attribute, error in _wrong_attributes(node) if node.attribute else ():
            at = error.located(node=listed.paths[index])
            yield Contradiction(at, partial(node.attribute.remove, attribute))
    for index, name in enumerate(graph.output) if isinstance(graph, FunctionProto) else ():
        if not name or name not in names:
            fix = "name a value that is there, or add the node that makes it"
            error = malformed(f"nothing produces the output {show(name)}", fix, listed.path)
            yield Contradiction(error, partial(_produce, graph, index))
        names.add(name)


def _wrong_attributes(node: NodeProto) -> Iterator[tuple[AttributeProto, SplitError]]:
    """The attributes that a node has had already, or that are sparse; each with its refusal."""
    seen: set[str] = set()
    for attribute in node.attribute:
        if attribute.name in seen:
            problem = f"it has the attribute {show(attribute.name)} more than once"
            yield attribute, malformed(problem, "give it once")
        elif attribute.type in _SPARSE and not attribute.ref_attr_name and _sparse(node) is None:
            problem = f"its attribute {show(attribute.name)} is a sparse tensor"
            yield attribute, malformed(problem, "give it as an input, from a Constant node")
        seen.add(attribute.name)


def check_attributes(node: NodeProto) -> None:
    """Refuse an attribute that occurs twice, or is sparse (TS502)."""
    for _, error in _wrong_attributes(node):
        raise error


def _wrong_tensors(listed: NodeList) -> Iterator[Contradiction]:
    graph = listed.graph
    for index, held in listed.tensors:
        try:
            check_tensor(held)
        except SplitError as error:
            if index is not None:
                path, node = listed.paths[index], graph.node[index]
                yield Contradiction(error.located(node=path), partial(_forget, node, path))
            elif isinstance(graph, GraphProto):
                yield Contradiction(error.located(node=listed.path), partial(_feed, graph, held))


_STAND_IN = "tensorsplit.unknown"
"""The domain of nodes of which nothing is known, in the place of what can't be read."""


def mended(model: ModelProto) -> tuple[list[SplitError], ModelProto]:
    """What contradicts itself in a message, and a copy of the message without that."""
    copy = copied(model)
    found = list(contradictions(copy, node_lists(copy)))
    for contradiction in found:
        contradiction.mend()
    for owner in (copy, *copy.functions):
        owner.opset_import.add(domain=_STAND_IN, version=1)
    return [contradiction.error for contradiction in found], copy


def _produce(graph: FunctionProto, index: int) -> None:
    """Have a node of which nothing is known produce an output."""
    graph.output[index] = graph.output[index] or f"output {index}"
    graph.node.add(op_type="Unknown", domain=_STAND_IN, output=[graph.output[index]])


def _forget(node: NodeProto, path: str) -> None:
    """Leave nothing known of a node but its place, its inputs and its outputs."""
    del node.attribute[:]
    node.domain = _STAND_IN
    node.metadata_props.add(key=LAYER_PATH, value=path)


def _feed(graph: GraphProto, held: TensorProto | SparseTensorProto) -> None:
    """Have an initializer be an input of which nothing is known."""
    name = held.name if isinstance(held, TensorProto) else held.values.name
    constants: Any = graph.initializer
    if isinstance(held, SparseTensorProto):
        constants = graph.sparse_initializer
    constants.remove(held)
    if name not in [value.name for value in graph.input]:
        graph.input.add(name=name)


def _holders(
    graph: GraphProto | FunctionProto,
) -> dict[str, list[tuple[str, Callable[[str], object]]]]:
    """The names of the inputs and of the initializers, each with what gives it another name."""
    if isinstance(graph, FunctionProto):
        names = enumerate(graph.input)
        return {"input": [(name, partial(graph.input.__setitem__, at)) for at, name in names]}
    named: dict[str, list[Any]] = {
        "input": list(graph.input),
        "initializer": [*graph.initializer, *(each.values for each in graph.sparse_initializer)],
    }
    return {
        kind: [(holder.name, partial(setattr, holder, "name")) for holder in holders]
        for kind, holders in named.items()
    }


def _given_names(graph: GraphProto | FunctionProto) -> set[str]:
    """Return the names of the inputs and of the initializers."""
    return {name for holders in _holders(graph).values() for name, _ in holders}


def _names(graph: GraphProto | FunctionProto) -> set[str]:
    return _given_names(graph).union(*(node.output for node in graph.node))


def _adaptations(listed: NodeList, folder: Path | None) -> Iterator[Callable[[], object]]:
    """What to change in a graph of a copy, of which onnx-ir would drop or refuse something.

    Sparse constants become placeholders.
    """
    graph = listed.graph
    for tensor in _outside(listed) if folder is None else ():
        if tensor.HasField("raw_data"):
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
        if not holds(value.type):
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
            scope.initializers[tensor.values.name].const_value = SparseTensor(tensor, folder)
    for proto, node in zip(graph.node, scope, strict=False):  # Identity nodes may follow
        held = _sparse(proto)
        if held is not None:
            node.attributes["value"] = ir.AttrTensor("value", SparseTensor(held, folder))


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


def with_types(model: ir.Model, original: ModelProto, values: Iterable[ir.Value]) -> ModelProto:
    """A copy of a message with the types that some values of the model read from it have now."""
    made = copied(original)
    described: dict[Scope | None, tuple[GraphProto, Mapping[str, list[ValueInfoProto]]]] = {}
    for listed, scope in zip(node_lists(made), scopes(model), strict=True):
        if isinstance(graph := listed.graph, GraphProto):
            entries = defaultdict[str, list[ValueInfoProto]](list)
            for entry in (*graph.input, *graph.output, *graph.value_info):
                entries[entry.name].append(entry)
            described[scope] = graph, entries
    written: dict[Any, TypeProto] = {}  # many have the same
    for value in values:
        graph, found = described[value.graph]
        key = _type_key(value)
        made_type = written.get(key) or _type_of(value)
        if key is not None:
            written[key] = made_type
        for entry in found.get(value.name or "") or [graph.value_info.add(name=value.name)]:
            entry.type.CopyFrom(made_type)
    return made


def _type_key(value: ir.Value) -> tuple[int, tuple[int | ir.SymbolicDim, ...]] | None:
    """What values of the same type have in common; None for one that is out of the ordinary."""
    kind, shape = value.type, value.shape
    if type(kind) is not ir.TensorType or kind.denotation or shape is None:
        return None
    dims = shape.dims
    for index in range(len(dims)):
        if shape.get_denotation(index):
            return None
    return int(kind.dtype), dims


def _type_of(value: ir.Value) -> TypeProto:
    made = TypeProto()
    if value.type is not None:
        ir.serde.serialize_type_into(made, value.type)
        if value.shape is not None:
            ir.serde.serialize_shape_into(made, value.shape)
    return made


def write_message(model: ir.Model, original: ModelProto | None = None) -> ModelProto:
    """Return a model, read from an original if one is given, as an ONNX message.

    Here are the last outputs without a name, which onnx-ir leaves out, and what it has no place for
    (see `carry_over`), but not the descriptions that it adds to initializers. Exceptions of many
    kinds tell what onnx-ir can't write.
    """
    made: ModelProto = ir.serde.serialize_model(model)
    described: set[str] = set()
    if original is not None:
        described = {value.name for graph in graphs(original) for value in graph.value_info}
    for listed, scope in zip(node_lists(made), scopes(model), strict=True):
        for index, node in enumerate(scope):
            if node.outputs and not node.outputs[-1].name:
                restore_outputs(node, listed.graph.node[index])
        graph = listed.graph
        _keep_sparse(scope, graph)
        if original is not None and isinstance(graph, GraphProto):
            drop = {tensor.name for tensor in graph.initializer} - described
            kept = [value for value in graph.value_info if value.name not in drop]
            del graph.value_info[:]
            graph.value_info.extend(kept)
        for _, held in listed.tensors:
            if isinstance(held, TensorProto):
                merge_doubled(held)
    if original is not None:
        made.training_info.extend(model.meta.get(TRAINING, ()))
        carry_over(original, made)
    return made


def _keep_sparse(scope: ir.Graph | ir.Function, graph: GraphProto | FunctionProto) -> None:
    """Write large sparse tensors as they were read, in the place of dense ones without elements."""
    if isinstance(scope, ir.Graph) and isinstance(graph, GraphProto):
        for name, value in scope.initializers.items():
            held = value.const_value
            if isinstance(held, SparseTensor) and held.kept is not None:
                dense = next(tensor for tensor in graph.initializer if tensor.name == name)
                graph.initializer.remove(dense)
                graph.sparse_initializer.append(held.kept)
                graph.sparse_initializer[-1].values.name = name
    for node, proto in zip(scope, graph.node, strict=True):
        attribute = node.attributes.get("value") if node.op_type == "Constant" else None
        held = None if attribute is None or attribute.is_ref() else attribute.value
        if isinstance(held, SparseTensor) and held.kept is not None:
            kind = AttributeProto.SPARSE_TENSOR
            kept = AttributeProto(name="sparse_value", type=kind, sparse_tensor=held.kept)
            proto.attribute[0].CopyFrom(kept)
