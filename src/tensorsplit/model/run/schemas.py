"""Nodes of other operators against ONNX's own schemas: counts and attributes, before they run."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from onnx import AttributeProto, NodeProto, defs

from tensorsplit.core.errors import MALFORMED_MODEL, UNSUPPORTED_NODE, SplitError, show


class Schema(NamedTuple):
    """What a schema says that a node can be checked against."""

    inputs: tuple[int, int]
    outputs: tuple[int, int]
    attributes: Mapping[str, str]
    required: frozenset[str]


def check_node(node: NodeProto, domain: str, opset: int) -> None:
    """Check a node of another operator against the schema in force.

    Args:
        node: The node; its attributes are no links any more.
        domain: Its domain; ONNX's own is ``""``.
        opset: The domain's opset where the node stands.

    Raises:
        SplitError: TS502 for a wrong number of inputs or outputs, or attributes that the operator
            does not have; TS509 for an operator that does not exist at the opset, or an opset
            that the installed onnx does not know. A domain that onnx does not know passes.
    """
    newest = defs.onnx_opset_version()
    if domain == "" and opset > newest:
        raise SplitError(
            UNSUPPORTED_NODE,
            f"the operator {show(node.op_type)} is asked for at opset {opset}",
            f"the installed onnx knows opsets up to {newest}",
        )
    schema = _schema(node.op_type, opset, domain)
    if schema is None:
        if domain == "":
            raise SplitError(
                UNSUPPORTED_NODE,
                f"there is no operator {show(node.op_type)} at opset {opset}",
                "use an operator of that opset, or import the opset that has it",
            )
        return
    _check_count(node, "inputs", len(node.input), schema.inputs)
    _check_count(node, "outputs", len(node.output), schema.outputs)
    for attribute in node.attribute:
        _check_attribute(node, attribute, schema)
    missing = schema.required - {attribute.name for attribute in node.attribute}
    if missing:
        raise SplitError(
            MALFORMED_MODEL,
            f"{node.op_type} has no attribute {', '.join(map(repr, sorted(missing)))}",
            "give it",
        )


@lru_cache(maxsize=1024)
def _schema(op_type: str, opset: int, domain: str) -> Schema | None:
    try:
        schema = defs.get_schema(op_type, opset, domain)
    except defs.SchemaError:
        return None
    attributes = schema.attributes
    return Schema(
        (schema.min_input, schema.max_input),
        (schema.min_output, schema.max_output),
        {name: _type_name(attribute.type) for name, attribute in attributes.items()},
        frozenset(name for name, attribute in attributes.items() if attribute.required),
    )


def _type_name(kind: Any) -> str:
    """Such as ``INTS``; the stubs do not say that the type is an enumeration."""
    return str(kind.name)


def _check_count(node: NodeProto, what: str, count: int, limits: tuple[int, int]) -> None:
    least, most = limits
    if not least <= count <= most:
        wanted = f"{least}" if least == most else f"{least} to {most}"
        raise SplitError(
            MALFORMED_MODEL, f"{node.op_type} has {count} {what}", f"this version takes {wanted}"
        )


def _check_attribute(node: NodeProto, attribute: AttributeProto, schema: Schema) -> None:
    wanted = schema.attributes.get(attribute.name)
    seen = AttributeProto.AttributeType.Name(attribute.type)
    if wanted is None:
        raise SplitError(
            MALFORMED_MODEL,
            f"{node.op_type} has the attribute {show(attribute.name)}",
            f"this version's attributes are {', '.join(sorted(schema.attributes)) or 'none'}",
        )
    if wanted != seen:
        raise SplitError(
            MALFORMED_MODEL,
            f"the attribute {attribute.name!r} of {node.op_type} is of type {seen}",
            f"give it as {wanted}",
        )
