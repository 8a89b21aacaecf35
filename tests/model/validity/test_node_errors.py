"""What schemas allow, for every version of every operator that onnx has: as onnx checks it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import onnx
import onnx_ir as ir
import pytest
from onnx import AttributeProto, NodeProto, TypeProto, checker, defs, helper

from tensorsplit.model.graph.nodes import walk
from tensorsplit.model.infer.analysis import Facts, analyse
from tensorsplit.model.validity.node_errors import (
    contradicting_types,
    not_taken,
    wrong_signature,
)

KINDS: dict[str, Any] = {
    "INT": 1,
    "INTS": [1, 2],
    "FLOAT": 0.5,
    "FLOATS": [0.5, 1.5],
    "STRING": "ij->ji",
    "STRINGS": ["a"],
    "TENSOR": helper.make_tensor("t", 1, [1], [2.0]),
    "GRAPH": helper.make_graph([], "g", [], []),
}
"""An attribute of each type."""


def schemas() -> Iterator[defs.OpSchema]:
    return (each for each in defs.get_all_schemas_with_history() if not each.deprecated)


def required(schema: defs.OpSchema) -> list[AttributeProto]:
    kinds: dict[str, Any] = {n: each.type for n, each in schema.attributes.items() if each.required}
    return [helper.make_attribute(name, KINDS[kind.name]) for name, kind in kinds.items()]


def node_of(
    schema: defs.OpSchema, inputs: int, outputs: int, held: Sequence[AttributeProto]
) -> NodeProto:
    read, given = ([f"{end}{at}" for at in range(n)] for end, n in (("i", inputs), ("o", outputs)))
    made = helper.make_node(schema.name, read, given, domain=schema.domain)
    made.attribute.extend(held)
    return made


def variants(schema: defs.OpSchema) -> Iterator[NodeProto]:
    """Nodes with few and many inputs and outputs, and with attributes that fit and that do not."""
    held, least, fewest = required(schema), schema.min_input, max(schema.min_output, 1)
    most, most_given = (min(each, 9) for each in (schema.max_input, schema.max_output))
    for count in {max(least - 1, 0), least, least + 1, most, most + 1}:
        yield node_of(schema, count, fewest, held)
    for count in {max(fewest - 1, 1), *range(fewest, most_given + 2)}:
        yield node_of(schema, least, count, held)
    yield node_of(schema, least, fewest, [*held, helper.make_attribute("no_such_name", 1)])
    for name, entry in schema.attributes.items():
        others = [each for each in held if each.name != name]
        if entry.required:
            yield node_of(schema, least, fewest, others)
        for number in KINDS.values():
            given = [*others, helper.make_attribute(name, number)]
            yield node_of(schema, least, fewest, given)


def test_inputs_outputs_and_attributes() -> None:
    """One's outputs are counted, one takes any attribute, and an order is left to inference."""
    refused, taken = set[str](), set[str]()
    differ = dict[str, set[bool]]()
    for schema in schemas():
        context = checker.C.CheckerContext()
        context.ir_version = onnx.IR_VERSION
        context.opset_imports = {schema.domain: schema.since_version}
        for made in variants(schema):
            held = {each.name: ir.serde.deserialize_attribute(each) for each in made.attribute}
            wrong = wrong_signature(
                schema, schema.since_version, held, list(made.input), list(made.output)
            )
            is_refused = any(wrong)
            try:
                checker.check_node(made, context)
            except checker.ValidationError:
                is_refused_by_onnx = True
            else:
                is_refused_by_onnx = False
            (refused if is_refused else taken).add(schema.name)
            if is_refused != is_refused_by_onnx:
                differ.setdefault(schema.name, set()).add(is_refused)
    more = {"LayerNormalization": {True}, "Transpose": {True}}
    assert differ.items() <= {"BatchNormalization": {False}, **more}.items()
    assert min(len(refused), len(taken)) > 150


TYPES = {"float": 1, "uint8": 2, "int64": 7, "string": 8, "bool": 9, "double": 11}
NAMES = [*(f"tensor({kind})" for kind in TYPES), "seq(tensor(float))", "seq(tensor(int64))"]


def type_of(name: str) -> TypeProto:
    """The type that a schema writes so."""
    if name.startswith("seq("):
        return helper.make_sequence_type_proto(type_of(name[4:-1]))
    return helper.make_tensor_type_proto(TYPES[name.removeprefix("tensor(").rstrip(")")], None)


def fitting(schema: defs.OpSchema) -> list[str]:
    """A type for each input, the same for those that are of one; none if none is listed here."""
    allowed = {each.type_param_str: each.allowed_type_strs for each in schema.type_constraints}
    names = [
        next((name for name in NAMES if name in allowed.get(each.type_str, [each.type_str])), "")
        for each in schema.inputs
    ]
    return names if all(names) else []


BY_OUTPUTS = ("RandomNormalLike", "RandomUniformLike", "RMSNormalization")
"""Operators of which onnx refuses some types as those of outputs."""


def test_types() -> None:
    """Each input of each version is given each type, the others one that fits."""
    refused = taken = 0
    for schema in schemas():
        held, names = required(schema), fitting(schema)
        has_body = any(each.type == AttributeProto.GRAPH for each in held)
        if has_body or schema.domain or schema.name in BY_OUTPUTS:
            continue
        made = node_of(schema, len(names), max(schema.min_output, 1), held)
        for place, other in ((place, name) for place in range(len(names)) for name in NAMES):
            given = [*names[:place], other, *names[place + 1 :]]
            inputs = [
                helper.make_value_info(f"i{at}", type_of(name)) for at, name in enumerate(given)
            ]
            graph = helper.make_graph([made], "g", inputs, [])
            imports = [helper.make_opsetid(schema.domain, schema.since_version)]
            whole = helper.make_model(graph, opset_imports=imports, ir_version=onnx.IR_VERSION)
            (node,) = ir.from_proto(whole).graph
            is_refused = any(not_taken(node, schema, "", Facts().of))
            why = ""
            try:
                onnx.shape_inference.infer_shapes(whole, check_type=True, strict_mode=True)
            except onnx.shape_inference.InferenceError as error:
                why = str(error)
            is_of_shapes = "Inference error(s)" in why  # or of a type that shapes go with
            assert is_refused == bool(why) or (is_of_shapes and not is_refused), (whole, why)
            refused, taken = refused + is_refused, taken + (not is_refused)
    assert min(refused, taken) > 1000


def wrong_in(text: str, opset: int = 18) -> list[str]:
    """The types in a model that contradict each other, by what its nodes and bodies declare."""
    made = onnx.parser.parse_model(f"""<ir_version: 8, opset_import: ["": {opset}]>
        g (float[2,3] x, int64 n, bool on, int64[2] k, seq(float[3]) q) => (y) {{ {text} }}""")
    model = ir.from_proto(made)
    facts = analyse(model)
    return [str(error) for ref in walk(model) for error in contradicting_types(ref, facts.of)]


BODIES: list[tuple[int, str, bool]] = [
    *(
        (
            18,
            f"""y = If(on) <then_branch = t () => ({one} a) {{ a = Identity(x) }},
            else_branch = e () => ({other} b) {{ b = Cast<to = 1>(x) }}>""",
            is_right,
        )
        for one, other, is_right in (
            ("float[2,3]", "float[2,3]", True),
            ("float[2,3]", "float[3]", True),  # shapes may differ
        )
    ),
    *(
        (
            18,
            f"""y = If(on) <then_branch = t () => (a) {{ a = Identity(x) }},
            else_branch = e () => (b) {{ b = Identity({other}) }}>""",
            other == "x",
        )
        for other in "xkq"
    ),
    *(
        (
            18,
            f"""y, z = Loop(n, on, {start}) <body = b ({count} i, {goes} c, {taken} v)
            => (bool d, u, w) {{ d = Identity(on) u = {given} w = {row} }}>""",
            is_right,
        )
        for start, count, goes, taken, given, row, is_right in (
            ("x", "int64", "bool", "float[2,3]", "Neg(v)", "Identity(n)", True),
            ("x", "int64", "bool", "int64[2]", "Neg(x)", "Identity(n)", False),
            ("x", "int32", "bool", "float[2,3]", "Neg(v)", "Identity(n)", False),
            ("x", "int64", "int64", "float[2,3]", "Neg(v)", "Identity(n)", False),
            ("x", "int64", "bool", "float[2,3]", "Cast<to = 7>(v)", "Identity(n)", False),
            ("x", "int64", "bool", "float[2,3]", "Neg(v)", "Identity(q)", False),  # collected
            ("q", "int64", "bool", "seq(float[3])", "Identity(v)", "Identity(n)", True),
            ("q", "int64", "bool", "float[3]", "Identity(q)", "Identity(n)", False),
        )
    ),
    *(
        (
            opset,
            f"""y, z = Scan<num_scan_inputs = 1, body = b ({state} s, {row} r) => (t, w)
            {{ t = {given} w = Identity(r) }}> ({lengths}x, x)""",
            is_right,
        )
        for opset, lengths in ((8, ", "), (9, ""), (18, ""))
        for state, row, given, is_right in (
            ("float[2,3]", "float[3]", "Neg(s)", True),
            ("int64[2,3]", "float[3]", "Neg(x)", False),
            ("float[2,3]", "int64[3]", "Neg(s)", False),
            ("float[2,3]", "float[3]", "Cast<to = 7>(s)", False),
        )
    ),
    *(
        (
            18,
            f"""y, z = Scan<num_scan_inputs = 1, scan_input_axes = [{axis}],
            scan_output_axes = [{place}], body = b (float[2,3] s, float[A] r) => (t, w)
            {{ t = Neg(s) w = Identity(r) }}> (x, x)""",
            -2 <= axis < 2 and -2 <= place < 2,  # an output has an axis more than a row
        )
        for axis, place in ((0, 0), (1, 1), (-2, -2), (2, 0), (-3, 0), (0, 2), (0, -3), (1, -1))
    ),
    *(
        (17, f"y = SequenceMap({given}) <body = b ({kinds}) => (t) {{ t = Neg(r) }}>", is_right)
        for given, kinds, is_right in (
            ("q", "float[3] r", True),
            ("q", "int64[3] r", False),
            ("q, x", "float[3] r, float[2,3] s", True),
            ("q, x", "float[3] r, int64[2,3] s", False),
        )
    ),
]
"""An opset, a node with bodies, and whether its types agree by the text of the standard."""


@pytest.mark.parametrize(("opset", "text", "is_right"), BODIES)
def test_types_that_are_passed_to_bodies_and_back(opset: int, text: str, is_right: bool) -> None:
    assert (wrong_in(text, opset) == []) is is_right
