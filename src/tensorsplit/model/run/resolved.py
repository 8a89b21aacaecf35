"""A node as it stands in one call of the function that it belongs to, with all data at hand."""

from __future__ import annotations

from collections.abc import Mapping, Set
from pathlib import Path

from onnx import AttributeProto, NodeProto, TensorProto

from tensorsplit.core.errors import MALFORMED_MODEL, UNSUPPORTED_NODE, SplitError, show
from tensorsplit.model.graph.nodes import domain_name
from tensorsplit.model.graph.tensors import inlined


def resolved(
    node: NodeProto,
    passed: Mapping[str, AttributeProto] | None,
    absent: Set[str],
    folder: Path | None,
) -> NodeProto:
    """A node without links to attributes of its function, and without what the call leaves out.

    Args:
        node: The node; it is not changed, and returned itself where nothing is to be replaced.
        passed: What the function's attributes stand for in this call; None outside of functions.
        absent: The function's inputs that this call leaves out.
        folder: Where external data of tensors among the attributes is looked for.

    Returns:
        The node with the values of its links (a link without value is left out, as an attribute
        that is not given), and with the external data of its attributes; Constant nodes excepted,
        whose data is read when it is used.

    Raises:
        SplitError: TS502 for an attribute that is there twice, or a link outside of a function;
            TS504 for external data; TS509 for a body that is passed to a function.
    """
    names = [attribute.name for attribute in node.attribute]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise _malformed(f"it has the attribute {show(twice)} more than once", "give it once")
    reads = node.op_type != "Constant" or domain_name(node.domain) != ""
    if absent.isdisjoint(node.input) and not any(
        attribute.ref_attr_name or (reads and _is_external(attribute))
        for attribute in node.attribute
    ):
        return node
    made = NodeProto(
        name=node.name,
        op_type=node.op_type,
        domain=node.domain,
        overload=node.overload,
        input=["" if name in absent else name for name in node.input],
        output=node.output,
    )
    for attribute in node.attribute:
        value = _linked(attribute, passed) if attribute.ref_attr_name else attribute
        if value is not None:
            copy = made.attribute.add()
            copy.CopyFrom(value)
            copy.name = attribute.name
            if reads and _is_external(copy):
                copy.t.CopyFrom(inlined(copy.t, folder, attribute.name))
    return made


def _linked(
    attribute: AttributeProto, passed: Mapping[str, AttributeProto] | None
) -> AttributeProto | None:
    if passed is None:
        raise _malformed(
            f"the attribute {show(attribute.name)} stands for {show(attribute.ref_attr_name)} of a"
            " function, but the node is in none",
            "give its value",
        )
    value = passed.get(attribute.ref_attr_name)
    if value is not None and value.type in (AttributeProto.GRAPH, AttributeProto.GRAPHS):
        raise SplitError(
            UNSUPPORTED_NODE, "a body is passed to a function", "write the body in the function"
        )
    return value


def _is_external(attribute: AttributeProto) -> bool:
    return (
        attribute.type == AttributeProto.TENSOR
        and attribute.t.data_location == TensorProto.EXTERNAL
    )


def _malformed(problem: str, fix: str) -> SplitError:
    return SplitError(MALFORMED_MODEL, problem, fix)
