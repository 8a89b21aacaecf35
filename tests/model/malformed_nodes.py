"""Nodes that break the schema of their operator, for every operator of onnx."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeAlias

import numpy as np
from onnx import AttributeProto, GraphProto, ModelProto, NodeProto, TensorProto, defs, helper

from tests.model.build import sequence, untyped, value

Kind = AttributeProto.AttributeType

Attributes: TypeAlias = dict[str, tuple[Any, Any]]
"""The type and the value of attributes, by name."""

_OPTIONAL = helper.make_optional_type_proto(helper.make_tensor_type_proto(TensorProto.FLOAT, None))

INPUTS = (
    value("x", TensorProto.FLOAT, [2, 3]),
    value("i", TensorProto.INT64, [2]),
    value("b", TensorProto.BOOL, []),
    value("t", TensorProto.STRING, [2, "N"]),
    value("u"),
    sequence("s"),
    helper.make_value_info("o", _OPTIONAL),
)
"""What the nodes read: tensors of several types, one of unknown rank, a sequence, an optional."""

FEEDS = {
    "x": np.ones((2, 3), np.float32),
    "i": np.array([0, 1]),
    "b": np.array(True),
    "t": np.array([["a", "b"], ["c", "d"]], object),
    "u": np.ones(2, np.float32),
    "s": [np.ones(2, np.float32)],
    "o": None,
}
"""Something for each of them."""

SAMPLES: dict[Any, tuple[Any, ...]] = {
    Kind.INT: (0, -7, 1 << 40),
    Kind.FLOAT: (0.0, float("nan")),
    Kind.STRING: ("", "no such value"),
    Kind.INTS: ([], [3, -9], [1 << 62]),
    Kind.FLOATS: ([], [0.5, float("inf")]),
    Kind.STRINGS: ([], ["a", "b"]),
    Kind.TENSOR: (
        helper.make_tensor("", TensorProto.FLOAT, [0], []),
        helper.make_tensor("", TensorProto.INT64, [2], [5, -5]),
    ),
    Kind.GRAPH: (
        GraphProto(name="empty"),
        helper.make_graph(
            [helper.make_node("Identity", ["x"], ["given"])], "one", [], [value("given")]
        ),
    ),
}
"""Values of each type of attribute, few of which any operator allows."""


def schemas() -> list[defs.OpSchema]:
    """The newest version of every operator, also of those that are gone."""
    newest: dict[tuple[str, str], defs.OpSchema] = {}
    for schema in defs.get_all_schemas_with_history():
        key = schema.domain, schema.name
        if key not in newest or newest[key].since_version < schema.since_version:
            newest[key] = schema
    return [newest[key] for key in sorted(newest)]


def nodes(schema: defs.OpSchema) -> Iterator[NodeProto]:
    """Nodes of an operator: each has one thing wrong, or is as good as a guess gets."""
    least, most = schema.min_input, min(schema.max_input, schema.min_input + 3)
    right: Attributes = {
        name: (entry.type, SAMPLES[entry.type][-1])
        for name, entry in schema.attributes.items()
        if entry.required and entry.type in SAMPLES
    }
    outputs = max(schema.min_output, 1)
    for name in [entry.name for entry in INPUTS]:
        yield _node(schema, [name] * least, outputs, right)
    yield _node(schema, ["x", *["i"] * (least - 1)], outputs, right)
    for count in {0, 1, least - 1, most, most + 1, most + 5} - {-1, least}:
        yield _node(schema, ["x", *["i"] * most, *"xxxxx"][:count], outputs, right)
    yield _node(schema, [""] * least, outputs, right)
    yield _node(schema, ["", *["x"] * (least - 1)], outputs, right)
    yield _node(schema, ["x"] * least, 0, right)
    yield _node(schema, ["x"] * least, min(schema.max_output, 8) + 2, right)
    yield _node(schema, ["x"] * least, outputs, {**right, "no_such": (Kind.INT, 1)})
    for name in right:
        kept = {key: held for key, held in right.items() if key != name}
        yield _node(schema, ["x"] * least, outputs, kept)
    for name, entry in schema.attributes.items():
        for kind, samples in SAMPLES.items():
            for sample in samples if kind == entry.type else samples[-1:]:
                given = {**right, name: (kind, sample)}
                yield _node(schema, ["x", *["i"] * (least - 1)], outputs, given)
        linked = _node(schema, ["x"] * least, outputs, right)
        linked.attribute.add(name=name, ref_attr_name="nowhere", type=Kind.INT)
        yield linked


def _node(
    schema: defs.OpSchema, inputs: list[str], outputs: int, attributes: Attributes
) -> NodeProto:
    names = [f"y{index}" for index in range(outputs)]
    made = helper.make_node(schema.name, inputs, names, domain=schema.domain)
    for name, (kind, held) in attributes.items():
        made.attribute.append(helper.make_attribute(name, held, attr_type=kind))
    return made


def model_of(node: NodeProto, schema: defs.OpSchema) -> ModelProto:
    """A model of the node and another one."""
    last = helper.make_node("Identity", ["x"], ["z"])
    outputs = [untyped(name) for name in [*node.output, "z"]]
    graph = helper.make_graph([node, last], "g", INPUTS, outputs)
    newest = defs.onnx_opset_version()
    imports = {"": newest if schema.domain else schema.since_version}
    if schema.domain:
        imports[schema.domain] = schema.since_version
    opsets = [helper.make_opsetid(domain, version) for domain, version in imports.items()]
    return helper.make_model(graph, opset_imports=opsets)
