"""What is malformed beside splits: operators, types, bodies, names and declarations.

Each is one finding, where it stands; onnx's checker refuses every one of these models.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest

import tensorsplit as ts
from tensorsplit import SplitError
from tensorsplit.model.validity.message_errors import has_type

HEAD = '<ir_version: 10, opset_import: ["": {}, "c": 1]> g '
IF = "y = If(c)<then_branch=t() => ({}) {{{}}}, else_branch=e() => ({}) {{{}}}>"
LOOP = "{} = Loop(m, c, x)<body=b({}) => ({}) {{{}}}>"
SCAN = "y, z = Scan<{}, body=b(float[2] q, float[2] r) => ({}) {{{}}}>(s, x)"
KEPT = "k2 = Identity(k)"


def parsed(text: str, opset: int = 18) -> onnx.ModelProto:
    """A model of inputs and outputs, nodes, and functions."""
    return onnx.parser.parse_model(HEAD.format(opset) + text)


def branches(a: str, one: str, b: str = "float[4] b", other: str = "b = Neg(x)") -> str:
    return f"(float[4] x, bool c) => (float[4] y) {{t = Abs(x) {IF.format(a, one, b, other)}}}"


def loop(inputs: str, outputs: str, body: str, made: str = "y") -> str:
    return (
        "(float[4] x, int64 m, bool c) => (float[4] y)"
        f" {{{LOOP.format(made, inputs, outputs, f'{KEPT} {body}')}}}"
    )


def scan(attributes: str, outputs: str = "float[2] o, float[2] p", body: str = "p = Neg(r)") -> str:
    if " o " not in f" {body} ".replace("=", " = "):
        body = f"o = Add(q, r) {body}"
    ends = "(float[4,2] x, float[2] s) => (float[2] y, float[4,2] z)"
    return f"{ends} {{{SCAN.format(attributes, outputs, body)}}}"


def errors(made: onnx.ModelProto) -> list[tuple[str, str, str]]:
    return [(f.code, f.node, f.message) for f in ts.check(made) if f.severity == "error"]


TWO, ADDED = "float[2] q, float[2] r", "=> (float[2] o) {o = Add(q, r)}"
TURNS = "int64 i, bool k, float[4] v"
ENDS = "bool k2, float[4] o"
PLAIN = "(float[4] x) => (float[4] y) "
WRONG = {
    "unknown operator": (PLAIN + "{y = Foo(x)}", "TS509", "graph/Foo[0]", "'Foo'"),
    "in a body": (branches("float[4] a", "a = Foo(x)"), "TS509", "then_branch/Foo[0]", "'Foo'"),
    "in a function": (
        PLAIN + '{y = c.F(x)} <domain: "c", opset_import: ["": 18]> F (v) => (w) {w = Foo(v)}',
        *("TS509", "function c::F/Foo[0]", "'Foo'"),
    ),
    "newer operator": (PLAIN + "{y = Gelu(x)}", "TS509", "graph/Gelu[0]", "opset 18"),
    "deprecated operator": (
        "(float[3] x, int64[2] i, float[2] u) => (float[3] y) {y = Scatter(x, i, u)}",
        *("TS509", "graph/Scatter[0]", "deprecated"),
    ),
    "operand of another type": (
        "(float[4] x, int64[4] i) => (float[4] y) {y = Add(x, i)}",
        *("TS502", "graph/Add[0]", "tensor(int64)"),
    ),
    "operand of a type that is not taken": (
        "(bool[4] x) => (bool[4] y) {y = Neg(x)}",
        *("TS502", "graph/Neg[0]", "tensor(bool)"),
    ),
    "sequence for a tensor": (
        "(float[4] x) => (float[4] y) {s = SequenceConstruct(x) y = Neg(s)}",
        *("TS502", "graph/Neg[1]", "seq(tensor(float))"),
    ),
    "operand left out": (PLAIN + '{y = Add(x, "")}', "TS502", "graph/Add[0]", "left out"),
    "one of many operands left out": (
        PLAIN + '{y = Sum(x, "")}',
        "TS502",
        "graph/Sum[0]",
        "left out",
    ),
    "blank operands too many": (
        PLAIN + '{y, z = Split<num_outputs = 2>(x, "", "")}',
        *("TS103", "graph/Split[0]", "3 inputs"),
    ),
    "output left out": (
        '(float[4] x, int64[1] k) => (int64[1] y) {"", y = TopK(x, k)}',
        *("TS502", "graph/TopK[0]", "left out"),
    ),
    "declared of another type": (
        "(float[4] x) => (int64[4] y) {y = Neg(x)}",
        *("TS502", "graph/Neg[0]", "'y'"),
    ),
    "condition": (
        branches("float[4] a", "a = Neg(x)").replace("bool c", "float c"),
        *("TS502", "graph/If[1]", "tensor(float)"),
    ),
    "outputs of a branch": (
        branches("float[4] a, float[4] n", "a = Neg(x) n = Abs(x)"),
        *("TS502", "graph/If[1]", "then_branch has 2 outputs"),
    ),
    "types of branches": (
        branches("float[4] a", "a = Neg(x)", "int64[4] b", "b = Cast<to=7>(x)"),
        *("TS502", "graph/If[1]", "else_branch"),
    ),
    "sequence from a branch": (
        branches("float[4] a", "a = Neg(x)", "seq(float[4]) b", "b = SequenceConstruct(x)"),
        *("TS502", "graph/If[1]", "seq(tensor(float))"),
    ),
    "inputs of a loop": (
        loop("int64 i, bool k", ENDS, "o = Neg(x)"),
        *("TS502", "graph/Loop[0]", "2 inputs"),
    ),
    "outputs of a loop": (
        loop(TURNS, "bool k2", ""),
        "TS502",
        "graph/Loop[0]",
        "1 output, but",
    ),
    "outputs of a loop that are not named": (
        loop(TURNS, f"{ENDS}, float[4] p", "o = Neg(v) p = Abs(v)"),
        *("TS502", "graph/Loop[0]", "3 outputs"),
    ),
    "what a loop is given, in outputs that are not named": (
        loop(TURNS, f"{ENDS}, int64 i, float[4] v", "o = Neg(v)"),
        *("TS502", "graph/Loop[0]", "4 outputs"),
    ),
    "rows of a scan in outputs that are not named": (
        scan("num_scan_inputs=1", "float[2] o, float[2] r, float[2] r", ""),
        *("TS502", "graph/Scan[0]", "3 outputs"),
    ),
    "words for the trip count": (
        loop(TURNS, ENDS, "o = Neg(v)")
        .replace(", int64 m, bool c", "")
        .replace(" {y = Loop(m, c", ' <string m = {"a"}> {y = Loop(m, ""'),
        *("TS502", "graph/Loop[0]", "tensor(string)"),
    ),
    "condition of a loop": (
        loop(TURNS, "int64 n, float[4] o", "n = Cast<to=7>(k) o = Neg(v)"),
        *("TS502", "graph/Loop[0]", "'n'"),
    ),
    "what a loop carries": (
        loop(TURNS, "bool k2, int64[4] o", "o = Cast<to=7>(v)"),
        *("TS502", "graph/Loop[0]", "'o'"),
    ),
    "trip count": (
        loop(TURNS, ENDS, "o = Neg(v)").replace("int64 m", "float m"),
        *("TS502", "graph/Loop[0]", "'M'"),
    ),
    "what a loop collects": (
        loop(TURNS, f"{ENDS}, seq(float[4]) z", "o = Neg(v) z = SequenceConstruct(v)", "y, w"),
        *("TS502", "graph/Loop[0]", "'z'"),
    ),
    "scan inputs": (scan("num_scan_inputs=3"), "TS502", "graph/Scan[0]", "num_scan_inputs is 3"),
    "outputs of a scan": (
        scan("num_scan_inputs=1", "float[2] o", ""),
        *("TS502", "graph/Scan[0]", "1 output, but"),
    ),
    "axes of a scan": (
        scan("num_scan_inputs=1, scan_input_axes=[0, 1]"),
        *("TS502", "graph/Scan[0]", "scan_input_axes has 2"),
    ),
    "axis of a scan": (
        scan("num_scan_inputs=1, scan_output_axes=[-3]"),
        *("TS502", "graph/Scan[0]", "scan_output_axes has -3"),
    ),
    "axis behind those of a scan": (
        scan("num_scan_inputs=1, scan_output_axes=[2]"),
        *("TS502", "graph/Scan[0]", "scan_output_axes has 2, and its output only rank 2"),
    ),
    "direction of a scan": (
        scan("num_scan_inputs=1, scan_input_directions=[-1]"),
        *("TS502", "graph/Scan[0]", "scan_input_directions is [-1]"),
    ),
    "name that is taken two bodies further out": (
        branches(
            "float[4] a",
            "a = If(c)<then_branch=u() => (float[4] t) {t = Neg(x)},"
            " else_branch=v() => (float[4] w) {w = Neg(x)}>",
        ),
        *("TS805", "then_branch/If[0].then_branch/Neg[0]", "'t'"),
    ),
    "domain that a function does not import": (
        PLAIN + '{y = c.F(x)} <domain: "c", opset_import: ["": 18]> F (v) => (u) {u = d.G(v)}',
        *("TS502", "function c::F/G[0]", "there is no opset import for the domain 'd'"),
    ),
    "inputs of a map": (
        f"(seq(float) x) => (seq(float) y) {{y = SequenceMap(x)<body=b({TWO}) {ADDED}>}}",
        *("TS502", "graph/SequenceMap[0]", "2 inputs"),
    ),
    "name that is taken": (
        branches("float[4] t", "t = Neg(x)"),
        *("TS805", "then_branch/Neg[0]", "'t'"),
    ),
    "own output read in a body": (
        branches("float[4] a", "a = Neg(y)"),
        *("TS502", "then_branch/Neg[0]", "what the node around it makes"),
    ),
    "value of another body": (
        branches("float[4] a", "q = Abs(x) a = Neg(q)", other="b = Neg(q)"),
        *("TS502", "else_branch/Neg[0]", "'q'"),
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_malformed_is_one_finding_where_it_stands(name: str) -> None:
    text, code, node, words = WRONG[name]
    (found,) = errors(parsed(text))
    assert found[0] == code
    assert found[1].endswith(node)
    assert words in found[2]


@pytest.mark.parametrize("target", ["onnxruntime", "openvino", "portable"])
@pytest.mark.parametrize("name", WRONG)
def test_what_is_malformed_is_found_for_an_engine_as_well(name: str, target: Any) -> None:
    text, code, node, words = WRONG[name]
    found = ts.check(parsed(text), target=target)
    assert any(
        each.code == code and str(each.node).endswith(node) and words in each.message
        for each in found
    )


@pytest.mark.parametrize(
    "text",
    [
        """(float[2, 4] x, float s) => (float[2, 4] y) <uint8[2, 4] q>
        {q = QuantizeLinear(x) y = DequantizeLinear(q, s)}""",
        """(float[a, b] x) => (float[c, d] y) <int64[1] k = {-2}, string[1] w = {"1"}>
        {u = Unsqueeze(x, w) y = ReduceMax<keepdims = 0>(u, k)}""",
        """(float[a, b] x) => (float[c, d] y) <int64[1] k = {-2}, string[1] w = {"1"}>
        {u = Unsqueeze(x, k) y = ReduceMax<keepdims = 0>(u, w)}""",
    ],
    ids=["no scale", "axes that are added", "axes that are reduced"],
)
def test_nodes_whose_operands_are_wrong_are_found_for_an_engine_as_well(text: str) -> None:
    found = ts.check(parsed(text), target="openvino")
    assert "TS502" in [each.code for each in found if each.severity == "error"]


def test_a_reshape_of_a_slice_that_has_no_output_is_found_for_an_engine_as_well() -> None:
    made = parsed("""(float[n, 4] x, int64[1] a, int64[1] b, int64[1] c, int64[1] k)
        => (float[m, 4] y) {s = Slice(x, a, b, c) r = Reshape(s, k) y = Neg(x)}""")
    del made.graph.node[1].output[:]
    found = [each.node for each in ts.check(made, target="openvino") if each.severity == "error"]
    assert "graph/Reshape[1]" in found


def test_a_join_of_all_parts_that_has_no_output_is_found_for_an_engine_as_well() -> None:
    made = parsed(f"""(float[2, 4] x, int64 m, bool c) => (float[2, 4] y, float[n, 4, 2] z)
        <int64[2] w = {{4, 2}}> {{y, z = Loop(m, c, x) <body = b(int64 i, bool k, float[2, 4] s)
        => (bool k2, float[2, 4] t, float[4, 2] e) {{{KEPT} t = Neg(s) v = Reshape(x, w)
        e = Exp(v) p, q = Split<axis = 0, num_outputs = 2>(e) j = Concat<axis = 0>(p, q)}}>}}""")
    del made.graph.node[0].attribute[0].g.node[-1].output[:]
    found = [each.node for each in ts.check(made, target="openvino") if each.severity == "error"]
    assert "graph/Loop[0].body/Concat[5]" in found


@pytest.mark.parametrize("opset", [17, 20])
def test_a_transform_of_a_scalar_is_left_to_a_run(opset: int) -> None:
    made = parsed("(float x) => (float y) {y = DFT(x)}", opset)
    assert ts.lower(made, target="openvino") == made
    assert all(found.severity == "warning" for found in ts.check(made, target="openvino"))


def test_every_one_of_many_is_found() -> None:
    made = parsed("(float[4] x) => (float[4] y) {a = Foo(x) b = Gelu(a) y = Add(b, w)}")
    assert [node for _, node, _ in errors(made)] == [
        "graph/Foo[0]",
        "graph/Gelu[1]",
        "graph/Add[2]",
    ]


@pytest.mark.parametrize("element", [None, onnx.TensorProto.UNDEFINED, 99])
@pytest.mark.parametrize("end", ["input", "output"])
def test_inputs_and_outputs_have_a_type(element: int | None, end: str) -> None:
    """An output without a type is found, and no error: engines find it themselves."""
    made = parsed(PLAIN + "{y = Neg(x)}")
    held = getattr(made.graph, end)[0]
    if element is None:
        held.ClearField("type")
    else:
        held.type.tensor_type.elem_type = element
    (found,) = ts.check(made)
    assert found.node == "graph"
    assert f"the {end} " in found.message
    is_left_out = (end, element) == ("output", None)
    assert (found.code, found.severity) == (
        ("TS806", "warning") if is_left_out else ("TS804", "error")
    )


@pytest.mark.parametrize(
    ("items", "fits"), [([1.0] * 4, True), ([1.0] * 3, False), ([1.5] * 4, False)]
)
def test_a_default_is_as_its_input_is_declared(items: list[float], fits: bool) -> None:
    made = parsed(PLAIN + "{y = Neg(x)}")
    dtype = np.float32 if 1.5 not in items else np.float64
    made.graph.initializer.append(onnx.numpy_helper.from_array(np.array(items, dtype), "x"))
    assert [code for code, _, _ in errors(made)] == ([] if fits else ["TS804"])


@pytest.mark.parametrize(
    ("ends", "said"),
    [
        ("(float[4] x, float[3] w) => (float[4] y)", "input 'w' has a default"),
        ("(float[4] x) => (float[4] y, float[3] w)", "output 'w' has an initializer"),
    ],
)
def test_what_gives_an_end_another_shape_is_named(ends: str, said: str) -> None:
    made = parsed(f"{ends} <float[4] w = {{1, 2, 3, 4}}> {{ y = Neg(x) }}")
    (found,) = ts.check(made)
    assert f"{said} of another type or shape" in found.message


@pytest.mark.parametrize(("length", "codes"), [(4, []), (5, ["TS804"])])
def test_a_sparse_default_is_as_its_input_is_declared(length: int, codes: list[str]) -> None:
    made = parsed(PLAIN + "{y = Neg(x)}")
    held = made.graph.sparse_initializer.add(dims=[length])
    held.values.CopyFrom(onnx.helper.make_tensor("x", onnx.TensorProto.FLOAT, [1], [1.5]))
    held.indices.CopyFrom(onnx.helper.make_tensor("i", onnx.TensorProto.INT64, [1], [2]))
    assert [code for code, _, _ in errors(made)] == codes


@pytest.mark.parametrize(
    ("held", "codes"),
    [
        ("float[4] w", []),
        ("float[M] w", []),
        ("float[3] w", ["TS804"]),
        ("float[4,1] w", ["TS804"]),
        ("double[4] w", ["TS804"]),
    ],
)
@pytest.mark.parametrize("is_input", [True, False])
def test_an_output_that_no_node_gives_is_as_it_is_declared(
    held: str, codes: list[str], is_input: bool
) -> None:
    given, inside = ("float[4] w", "") if is_input else ("float[1] u", "<float[4] w = {1,2,3,4}>")
    made = parsed(f"(float[4] x, {given}) => (float[4] y, {held}) {inside} {{ y = Neg(x) }}")
    assert [code for code, _, _ in errors(made)] == codes


@pytest.mark.parametrize(
    "text",
    [
        branches("float[4] x2", "x2 = Neg(x)").replace("b = Neg(x)", "b = Identity(t)"),
        loop("int64 i, bool k, float[4] x", ENDS, "o = Neg(x)"),  # an input may have the name
        loop("i, k, v", "k2, o", "o = Neg(v)"),  # in bodies no type need be declared
        loop(  # what it carries may be of several types
            f"{TURNS}, int64 n", f"{ENDS}, int64 o2", "o = Neg(v) o2 = Neg(n)", "y, w"
        ).replace("(m, c, x)", "(m, c, x, m)"),
        scan("num_scan_inputs=1, scan_input_axes=[-2], scan_output_directions=[1]"),
        scan("num_scan_inputs=1, scan_output_axes=[1]"),
        scan("num_scan_inputs=1, scan_output_axes=[-2]"),
        "(optional(float[4]) x, bool c) => (bool y) {y = OptionalHasElement(x)}",
        "(float[4] x) => (float[4] y) {y = c.Anything(x, x)}",
        PLAIN + '{y = c.F(x)} <domain: "c", opset_import: ["": 18]> F (v, w) => (u) {u = Neg(v)}',
    ],
)
def test_what_is_well_formed_is_no_finding(text: str) -> None:
    assert errors(parsed(text)) == []


def test_a_constant_that_old_exporters_wrote_is_a_warning() -> None:
    """Constant-1 gives floats; PyTorch wrote int64 at opsets 7 and 8, and engines run it."""
    shape = "k = Constant<value = int64[2] {2, 2}>()"
    made = parsed(PLAIN.replace("[4] y", "[2, 2] y") + "{" + shape + " y = Reshape(x, k)}")
    made.opset_import[0].version = 8
    (found,) = ts.check(made)
    assert (found.code, found.severity, found.node) == ("TS502", "warning", "graph/Constant[0]")
    assert "OpenVINO run it" in found.message
    made.graph.value_info.append(onnx.helper.make_tensor_value_info("k", 1, [2]))
    made.opset_import[0].version = 9
    ((code, node, message),) = errors(made)  # another type is declared: engines refuse that
    assert (code, node) == ("TS502", "graph/Constant[0]")
    assert "'k' is a tensor(float)" in message


def test_an_import_that_is_missing_is_added_where_the_node_is() -> None:
    functions = ' <domain: "c", opset_import: ["": 18]> F (v) => (u) {u = d.G(v)}'
    for text, owner in (("{y = d.G(x)}", "model"), ("{y = c.F(x)}" + functions, "function")):
        (found,) = (f for f in ts.check(parsed(PLAIN + text)) if f.severity == "error")
        assert found.fix == f"add it to the opset_import of the {owner}"


@pytest.mark.parametrize(("element", "is_there"), [(1, True), (0, False), (99, False)])
def test_a_type_is_there_if_its_elements_have_one(element: int, is_there: bool) -> None:
    tensor = onnx.helper.make_tensor_type_proto(element, [2])
    made = onnx.helper.make_sequence_type_proto, onnx.helper.make_optional_type_proto
    assert [has_type(wrap(tensor)) for wrap in made] == [is_there, is_there]


@pytest.mark.parametrize("name", ["unknown operator", "outputs of a loop", "scan inputs"])
def test_a_run_refuses_it_before_it_begins(name: str) -> None:
    text, code, node, words = WRONG[name]
    given = {"x": np.ones(4, np.float32), "m": np.array(1), "c": np.array(True)}
    if "Scan" in text:
        given = {"x": np.ones((4, 2), np.float32), "s": np.ones(2, np.float32)}
    made = parsed(text)
    with pytest.raises(SplitError, match=words) as refused:
        ts.run(made, {held.name: given[held.name] for held in made.graph.input})
    assert refused.value.code == code
    assert (refused.value.node or "").endswith(node)


SCANNED = """(int64[2] s, float[3,2] x) => (int64[2] k, TYPE[3,2] y) { k, y = Scan
    <num_scan_inputs = 1, body = b (int64[2] h, ROW[2] row) => (int64[2] n, TYPE[2] o)
    { n = Neg(h) o = Cast<to = TO>(row) }>(s, x) }"""
SCANNED_8 = """(int64[1,2] s, float[1,3,2] x) => (int64[1,2] k, TYPE[1,3,2] y) { k, y = Scan
    <num_scan_inputs = 1, body = b (int64[2] h, ROW[2] row) => (int64[2] n, TYPE[2] o)
    { n = Identity(h) o = Cast<to = TO>(row) }>("", s, x) }"""
MAPPED = """(float[2] x) => (TYPE[2] y) <int64 k = {0}> { q = SequenceConstruct(x) r = SequenceMap<
    body = b (ROW[2] row) => (TYPE[2] o) { o = Cast<to = TO>(row) }>(q) y = SequenceAt(r, k) }"""
COUNTED = """(float[2] x, int64 m) => (float[2] k, TYPE[3,2] y) { k, y = Loop<body = b (COUNT i,
    bool c, ROW[2] row) => (bool d, float[2] n, TYPE[2] o)
    { d = Identity(c) n = Cast<to = 1>(row) o = Cast<to = TO>(row) }>(m, "", x) }"""


@pytest.mark.parametrize(
    ("text", "opset"), [(SCANNED, 18), (SCANNED_8, 8), (MAPPED, 18), (COUNTED, 18)]
)
@pytest.mark.parametrize(("made", "to"), [("float", "1"), ("int32", "6"), ("bool", "9")])
@pytest.mark.parametrize(("row", "is_right"), [("float", True), ("int64", False)])
def test_a_body_takes_what_its_node_passes_and_collects_what_it_makes(
    text: str, opset: int, made: str, to: str, row: str, is_right: bool
) -> None:
    """What is collected may be of another type than what the body takes."""
    filled = text.replace("TYPE", made).replace("TO", to).replace("ROW", row)
    found = ts.check(parsed(filled.replace("COUNT", "int64"), opset))
    wrong = [each for each in found if each.code == "TS502"]
    assert bool(wrong) is not is_right
    assert all("'row' of its body is a tensor(int64)" in each.message for each in wrong[:1])


@pytest.mark.parametrize(("count", "is_right"), [("int64", True), ("int32", False)])
def test_the_number_of_a_round_is_an_int64(count: str, is_right: bool) -> None:
    text = COUNTED.replace("TYPE", "float").replace("TO", "1").replace("ROW", "float")
    found = ts.check(parsed(text.replace("COUNT", count)))
    assert [each.code for each in found] == ([] if is_right else ["TS502"])
