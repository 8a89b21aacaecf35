"""The errors of an ONNX message before it is read as a graph.

onnx-ir would drop a part of such a message, or refuse it with an error of its own.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any

from onnx import (
    AttributeProto,
    FunctionProto,
    ModelProto,
    NodeProto,
    OperatorSetIdProto,
    TensorProto,
    TypeProto,
)

from tensorsplit.core.errors import MALFORMED_MODEL, UNREADABLE_MODEL, SplitError, show
from tensorsplit.model.graph.carried import names_given
from tensorsplit.model.graph.message import NUMBERS_AND_TEXT, NodeList, sparse_value
from tensorsplit.model.graph.node_paths import function_label
from tensorsplit.model.graph.opsets import domain_name
from tensorsplit.model.graph.tensors import check_tensor, element_type_of
from tensorsplit.model.refusals import malformed

_FREE_TEXT = frozenset(
    (
        *("configuration", "denotation", "device_configurations", "doc_string", "map_type"),
        *("metadata_props", "opaque_type", "producer_name", "producer_version"),
        *("quantization_annotation", "sparse_tensor_type", "tp", "training_info", "type_protos"),
        "value_info",
    )
)
"""Fields with text that nothing here compares or prints."""


def check_text(model: ModelProto) -> None:
    """Refuse a model in which a name is not UTF-8, before anything compares or prints it.

    Protobuf hands out bytes for such a name, and not text.
    """
    texts = _texts(model)
    for text in texts if {*map(type, texts)} != {str} else ():
        if type(text) is not str:
            problem = f"the name {show(text)} is not UTF-8"
            fix = "give a model whose names are"
            raise SplitError(UNREADABLE_MODEL, problem, fix, parameter="model")


def _texts(model: ModelProto) -> list[object]:
    """Return the names in a model; those of a node and of numbers are listed here, to be quick."""
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
        if isinstance(message, AttributeProto) and message.type in NUMBERS_AND_TEXT:
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


def message_errors(model: ModelProto, lists: Iterable[NodeList]) -> Iterator[SplitError]:
    """Yield the contradictions in a message, each error with the path of its place.

    These are imports, functions, names and attributes that occur twice, opsets below 1, outputs of
    functions that nothing produces, sparse attributes, and tensors that there can't be (TS502), and
    external data whose position is not a number (TS504). The message is given with its node lists.
    """
    yield from _import_errors(model.opset_import, "graph")
    functions: set[tuple[str, str, str]] = set()
    for function in model.functions:
        label = function_label(function)
        key = domain_name(function.domain), function.name, function.overload
        if key in functions:
            yield malformed("there are two functions of this name", "rename one", label)
        functions.add(key)
        yield from _import_errors(function.opset_import, label)
    for listed in lists:
        yield from _name_errors(listed)
        yield from _tensor_errors(listed)


def _import_errors(imports: Iterable[OperatorSetIdProto], path: str) -> Iterator[SplitError]:
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
        yield SplitError(MALFORMED_MODEL, problem, fix, node=path, parameter="opset_import")


def _name_errors(listed: NodeList) -> Iterator[SplitError]:
    """Yield names of values and attributes that occur twice, and outputs of functions without."""
    graph, given = listed.graph, names_given(listed.graph)
    for kind, each in given.items():
        seen: set[str] = set()
        for index, name in enumerate(each):
            problem = f"the {kind} {show(name)} is there twice"
            if not name:
                problem = f"the {kind} at position {index} has no name"
            if not name or name in seen:
                yield malformed(problem, f"give each {kind} a name of its own", listed.path)
            seen.add(name)
    names = set[str]().union(*given.values())
    sparse = {index for index, attribute in listed.attributes if attribute.type in _SPARSE}
    for index, node in enumerate(graph.node):
        for name in node.output:
            if name and name in names:
                problem = f"{show(name)} is produced twice"
                yield malformed(problem, "rename one of them", listed.paths[index])
            names.add(name)
        given_names = [attribute.name for attribute in node.attribute]
        if index in sparse or len(set(given_names)) < len(given_names):
            for error in _attribute_errors(node):
                yield error.located(node=listed.paths[index])
    for name in graph.output if isinstance(graph, FunctionProto) else ():
        if not name or name not in names:
            fix = "name an existing value, or add the node that produces it"
            yield malformed(f"nothing produces the output {show(name)}", fix, listed.path)


_SPARSE = (AttributeProto.SPARSE_TENSOR, AttributeProto.SPARSE_TENSORS)


def _attribute_errors(node: NodeProto) -> Iterator[SplitError]:
    """Yield the attributes that a node has had already, or that are sparse."""
    seen: set[str] = set()
    for attribute in node.attribute:
        if attribute.name in seen:
            problem = f"it has the attribute {show(attribute.name)} more than once"
            yield malformed(problem, "give it once")
        elif (
            attribute.type in _SPARSE and not attribute.ref_attr_name and sparse_value(node) is None
        ):
            problem = f"its attribute {show(attribute.name)} is a sparse tensor"
            yield malformed(problem, "give it as an input, from a Constant node")
        seen.add(attribute.name)


def check_attributes(node: NodeProto) -> None:
    """Refuse an attribute that occurs twice, or is sparse (TS502)."""
    for error in _attribute_errors(node):
        raise error


def _tensor_errors(listed: NodeList) -> Iterator[SplitError]:
    for index, held in listed.tensors:
        try:
            check_tensor(held)
        except SplitError as error:
            yield error.located(node=listed.path if index is None else listed.paths[index])


def has_type(declared: TypeProto) -> bool:
    """Return whether ONNX has a type."""
    kind = declared.WhichOneof("value")
    if kind in ("tensor_type", "sparse_tensor_type"):
        return element_type_of(getattr(declared, kind).elem_type) is not None
    if kind in ("sequence_type", "optional_type"):
        return has_type(getattr(declared, kind).elem_type)
    return kind is not None


def shadowed_names(lists: Iterable[NodeList]) -> Iterator[tuple[str, str]]:
    """Yield the paths of nodes in bodies, with a name of an output that a value around them has."""
    for listed in lists:
        if listed.outer is None:
            yield from _shadowed(listed, [])


def _shadowed(listed: NodeList, around: list[set[str]]) -> Iterator[tuple[str, str]]:
    if not around and not listed.inside:
        return
    bodies = defaultdict[int, list[NodeList]](list)
    for index, body in listed.inside:
        bodies[index].append(body)
    seen = set[str]().union(*names_given(listed.graph).values())
    for index, node in enumerate(listed.graph.node):
        for body in bodies.get(index, ()):
            yield from _shadowed(body, [*around, seen])
        for name in node.output:
            if name and any(name in names for names in around):
                yield listed.paths[index], name
        seen.update(filter(None, node.output))
