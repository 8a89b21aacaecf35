"""What OpenVINO knows of values as it imports a model; the tables were measured."""

from __future__ import annotations

from typing import Any

import onnx
import onnx_ir as ir
import pytest

from tensorsplit.engines.process import EngineProcess
from tensorsplit.model.graph.facts import MAX_LISTED_PARTS, SequenceFact
from tensorsplit.model.infer.seen import seen
from tensorsplit.model.profiles import load

N = None
Known = tuple[int | None, ...] | None

INPUTS = """float[2,N] x, float[2,7] v, float[1,N,1] w, int64[2] f, int64[1] g, int64 p,
    bool[2] b, bool c"""
CONSTANTS = """int64[2] l = {3, 4}, int64[2] ones = {1, 1}, int64[2] rest = {-1, 3},
    int64[2] zeros = {0, 0}, int64[1] z = {0}, int64[1] i = {1}, int64[1] six = {6},
    int64 zero = {0}, int64 one = {1}, int64 two = {2}"""

SHAPED: dict[str, Known] = {
    "y = Reshape(x, l)": (3, 4),
    "y = Reshape(x, f)": (N, N),
    "y = Reshape(x, rest)": (N, 3),
    "s = Shape(x) y = Reshape(x, s)": (2, N),
    "s = Shape(x) y = Reshape<allowzero = 1>(x, s)": (2, N),
    "s = Shape<start = 1>(x) t = Concat<axis = 0>(s, i) y = Reshape(x, t)": (N, 1),
    "s = Shape<end = 1>(x) t = Concat<axis = 0>(s, g) y = Reshape(x, t)": (N, N),
    "t = Concat<axis = 0>(g, i) y = Reshape(x, t)": (N, N),
    "t = Concat<axis = 0>(i, i) y = Reshape(x, t)": (1, 1),
    "s = Shape(x) r = Slice(s, z, i) t = Concat<axis = 0>(r, rest) y = Reshape(x, t)": (2, N, 3),
    "s = Shape(x) y = Reshape(v, s)": (2, N),
    "t = Concat<axis = 0>(i, g) y = Reshape(v, t)": (N, N),
    "s = Shape(x) t = Add(s, f) y = Reshape(v, t)": (N, N),
    "y = Squeeze(w, z)": (N, 1),
    "y = Squeeze(w, g)": (N, N),
    "y = Squeeze(w)": N,
    "y = Unsqueeze(x, z)": (1, 2, N),
    "y = Unsqueeze(x, g)": N,
    "y = Unsqueeze(x, f)": N,
    "y = NonZero(x)": (2, N),
    "y = Tile(x, l)": (6, N),
    "y = Tile(x, f)": (N, N),
    "y = Expand(x, f)": (2, N),
}
"""Nodes, and what is known of the shape of `y` that they make."""

CALCULATED: dict[str, Known] = {
    "s = Shape(x) y = Expand(one, s)": (2, N),
    "s = Shape(v) t = Neg(s) u = Neg(t) y = Expand(one, u)": (2, 7),
    "s = Shape(x) t = Neg(s) u = Neg(t) y = Expand(one, u)": (N, N),
    "s = Shape(v) u = CumSum(s, zero) y = Expand(one, u)": (N, N),
    "u = CumSum(l, zero) y = Expand(one, u)": (N, N),
    "s = Shape(v) u = Identity(s) y = Expand(one, u)": (N, N),
    "u = Identity(l) y = Expand(one, u)": (3, 4),
    "s = Shape(v) u = Where(b, s, l) y = Expand(one, u)": (N, N),
    "s = Shape(x) u = Where(b, s, l) y = Expand(one, u)": (N, N),
    "u = Mul(g, z) y = Expand(one, u)": (N,),
    "u = Mul(six, z) y = Expand(one, u)": (0,),
    "s = Shape(x) u = Mul(s, l) y = Expand(one, u)": (6, N),
    "s = Shape(v) u = Mul(s, l) y = Expand(one, u)": (6, 28),
    "t = Concat<axis = 0>(g, i) u = Mul(t, zeros) y = Expand(one, u)": (N, N),
    "s = Shape(x) u = Min(s, l) y = Expand(one, u)": (2, N),
    "s = Shape(x) t = Slice(s, z, i) u = Concat<axis = 0>(t, g) y = Expand(one, u)": (N, N),
    "s = Shape(x) t = Gather(s, i) u = Concat<axis = 0>(t, i) y = Expand(one, u)": (N, 1),
    "t = Concat<axis = 0>(g, i) u = Gather(t, i) y = Expand(one, u)": (N,),
    **{
        f"{given}u = If({condition}) <then_branch = t () => (int64[2] d) {{ d = Identity(l) }},"
        " else_branch = e () => (int64[2] d) { d = Identity(l) }> y = Expand(one, u)": (N, N)
        for given, condition in (("", "c"), ("k = Constant<value = bool {1}>() ", "k"))
    },
    "a = Expand(one, g) s = Shape(a) u = Concat<axis = 0>(s, i) y = Expand(one, u)": (N, 1),
}
"""The same for shapes that nodes calculate."""

SPLIT: dict[str, Known] = {
    "y, r = Split<axis = 1>(x, l)": (2, 3),
    "y, r = Split<axis = 1>(x, f)": (2, N),
    "y, r = Split<axis = -1>(x, f)": (2, N),
    "y, r = Split<axis = 0>(x, f)": (N, N),
    "y, r = Split<axis = -2>(x, f)": (N, N),
    "t = Concat<axis = 0>(g, six) r, y = Split<axis = 1>(v, t)": (2, N),
    "y, r = Split<axis = 0>(x, ones)": (1, N),
    "y, r = Split<axis = 1, num_outputs = 2>(x)": (2, N),
    "y, r = Split<axis = 0, num_outputs = 2>(x)": (1, N),
    **{
        f"s = SplitToSequence<{how}>({what}) y = SequenceAt(s, {place})": known
        for how, what, place, known in (
            ("axis = 1", "x, f", "zero", (2, N)),
            ("axis = -1", "x, f", "zero", (2, N)),
            ("axis = -2", "x, f", "zero", (N, N)),
            ("axis = 0", "x, ones", "zero", (1, N)),
            ("axis = -2", "x, ones", "zero", (1, N)),
            ("axis = 0", "x, one", "zero", (1, N)),
            ("axis = 0", "x, two", "zero", (2, N)),
            ("axis = 0", "x", "zero", (1, N)),
            ("axis = 0, keepdims = 0", "x", "zero", (N,)),
            ("axis = 0, keepdims = 0", "x", "p", (N,)),
            ("axis = 1", "v, two", "zero", (2, 2)),
            ("axis = 1", "v, two", "one", (2, 2)),
        )
    },
}
"""The same for parts."""

GATHERED: dict[str, Known] = {
    "s = SequenceConstruct(x, v) y = SequenceAt(s, one)": (2, 7),
    "s = SequenceEmpty() t = SequenceInsert(s, x) y = SequenceAt(t, zero)": (2, N),
    "s = SplitToSequence<axis = 1>(x, l) t = SequenceInsert(s, x) y = SequenceAt(t, two)": (2, N),
    **{
        f"s = SplitToSequence<axis = 1>(v, two) t = SequenceInsert(s, x{place})"
        f" y = SequenceAt(t, {at})": known
        for place, at, known in (
            ("", "zero", (2, 2)),
            (", zero", "zero", (2, N)),
            (", zero", "one", (2, 2)),
        )
    },
    "s = SequenceConstruct(x, v) t = SequenceErase(s, zero) y = SequenceAt(t, zero)": (2, 7),
    "s = SplitToSequence<axis = 1>(v, two) n = SequenceLength(s) m = Reshape(n, i)"
    " y = Expand(one, m)": (4,),
    "s = SequenceConstruct(v, v) y = ConcatFromSequence<axis = 1>(s)": (2, 14),
    "s = SplitToSequence<axis = 1>(v, f) y = ConcatFromSequence<axis = 1>(s)": (2, N),
    **{
        f"y = Loop(two, , {carried}) <body = g (int64 k, bool on, float[{dims}] a)"
        f" => (bool off, float[{dims}] o) {{ {made} off = Identity(on) }}>": known
        for carried, dims, made, known in (
            ("x", "A, B", "o = Neg(a)", (2, N)),
            ("v", "A, B", "o = Neg(a)", (2, 7)),
            ("v", "2, 7", "o = Neg(a)", (2, 7)),
            ("v", "2, 7", "o, q = Split<axis = 1>(a, f)", (2, N)),
        )
    },
    "y = Scan<num_scan_inputs = 1, body = g (float[7] a) => (float[7] o) { o = Neg(a) }>(v)": (
        2,
        7,
    ),
    "y = Scan<num_scan_inputs = 1, body = g (float[A] a) => (float[B] o) { o = Neg(a) }>(x)": (
        2,
        N,
    ),
}
"""The same for members of sequences, and what loops give."""

TABLE = SHAPED | CALCULATED | SPLIT | GATHERED

LESS: dict[str, tuple[Known, Known]] = {
    "t = Neg(g) u = Concat<axis = 0>(i, t) y = Expand(one, u)": ((N, N), (1, N)),
    "s = SplitToSequence<axis = 1>(x, l) y = SequenceAt(s, zero)": ((2, N), (2, 3)),
    "s = SplitToSequence<axis = 1>(x, l) y = SequenceAt(s, p)": ((N, N), (2, N)),
    "s = SplitToSequence<axis = 0>(x, ones) y = SequenceAt(s, p)": ((N, N), (1, N)),
    "s = SplitToSequence<axis = 1>(v, two) y = SequenceAt(s, p)": ((N, N), (2, N)),
    "s = SequenceConstruct(x, v) y = SequenceAt(s, p)": ((N, N), (2, N)),
    "s = SequenceConstruct(v, v) y = SequenceAt(s, p)": ((N, N), (2, 7)),
    "s = Shape(x) u = Mul(s, zeros) y = Expand(one, u)": ((N, N), (0, N)),
}
"""Nodes of whose `y` it knows more than we rely on: what we take it to know, and what it knows."""


def model_of(nodes: str) -> onnx.ModelProto:
    """Build the model of some nodes, of which nothing is declared of what it gives."""
    made = onnx.parser.parse_model(
        f"""<ir_version: 8, opset_import: ["": 18]>
        h ({INPUTS}) => (float y) <{CONSTANTS}> {{ {nodes} }}"""
    )
    made.graph.output[0].ClearField("type")
    return made


def facts_of(made: onnx.ModelProto) -> tuple[ir.Model, Any]:
    """Return a model and what we take OpenVINO to know of its values."""
    view, read = load("openvino").view, ir.from_proto(made)
    assert view is not None
    return read, seen(read, view)


@pytest.mark.parametrize("nodes", [*TABLE, *LESS])
def test_what_openvino_is_taken_to_know(nodes: str) -> None:
    read, found = facts_of(model_of(nodes))
    wanted = TABLE[nodes] if nodes in TABLE else LESS[nodes][0]
    assert found.tensor(read.graph.outputs[0]).shape == wanted


@pytest.mark.engine("openvino")
def test_what_openvino_knows() -> None:
    process = EngineProcess("openvino", "tests.engines.guarded:shapes_in_openvino")
    wanted = TABLE | {nodes: known for nodes, (_, known) in LESS.items()}
    try:
        for nodes, known in wanted.items():
            got = process.call([model_of(nodes).SerializeToString()]).get("y")
            assert (got if got is None else tuple(got)) == known, nodes
    finally:
        process.close()


def test_the_names_of_dimensions_are_not_known() -> None:
    made = model_of("y = Neg(x)")
    given = onnx.parser.parse_graph("g (seq(float[M, 2]) m, float[M, 2] n) => () { }")
    made.graph.input.extend(given.input)
    read, found = facts_of(made)
    *_, m, n = read.graph.inputs
    assert found.of(m) == SequenceFact(ir.DataType.FLOAT, (None, 2))
    assert found.tensor(n).shape == (None, 2)


@pytest.mark.parametrize(
    ("split", "part", "parts"),
    [
        ("axis = 1, keepdims = 0", "x", (2,)),
        ("axis = -1", "x", (2, N)),
        ("axis = 1", "x, p", (2, N)),
        ("axis = 1", "x, l", (2, N)),
        ("axis = 0", "x, ones", (1, N)),
        ("axis = 1, keepdims = 0", "x, l", (2, N)),
        ("axis = 1", "v, p", (2, N)),
    ],
)
def test_the_other_axes_of_each_of_a_sequence_are_known(
    split: str, part: str, parts: Known
) -> None:
    """The length only where the dimension that is split is known as well."""
    read, found = facts_of(model_of(f"y = SplitToSequence<{split}>({part})"))
    held = found.of(read.graph[0].outputs[0])
    assert isinstance(held, SequenceFact)
    assert held.part == parts


@pytest.mark.parametrize("count", [MAX_LISTED_PARTS, MAX_LISTED_PARTS + 1])
def test_each_of_few_parts_is_known(count: int) -> None:
    made = model_of("y = SplitToSequence<axis = 0>(x, m)")
    made.graph.input.append(
        onnx.helper.make_tensor_value_info("m", onnx.TensorProto.INT64, [count])
    )
    read, found = facts_of(made)
    held = found.of(read.graph[0].outputs[0])
    assert isinstance(held, SequenceFact)
    assert (held.count, held.part) == (count, (N, N))
    assert held.parts in (None, ((N, N),) * count)
    made.graph.node.append(onnx.helper.make_node("SequenceAt", ["y", "zero"], ["a"]))
    read, found = facts_of(made)
    assert found.tensor(read.graph[1].outputs[0]).shape == (N, N)


LOOP = """Loop(two, , {given}) <body = g (int64 k, bool on, float[{dims}] {a}) =>
    (bool {off}, float[{dims}] {o}) {{ {made} {off} = Identity(on) }}>"""


@pytest.mark.parametrize(("dims", "known"), [("2, 7", (2, 7)), ("A, 7", (N, 7))])
@pytest.mark.parametrize("is_inner", [False, True])
def test_of_what_a_loop_carries_its_body_knows_what_it_declares(
    dims: str, known: Known, is_inner: bool
) -> None:
    """Measured by what OpenVINO can split there: the tests of `lower` run it."""
    inside = LOOP.format(given="v", dims=dims, a="b", off="of", o="p", made="p = Neg(b)")
    inner = f"o = {inside}" if is_inner else "o = Neg(a)"
    outer = LOOP.format(given="v", dims=dims, a="a", off="off", o="o", made=inner)
    read, found = facts_of(model_of(f"y = {outer}"))
    bodies = [each.graph for each in read.graph.all_nodes() if each.graph is not None]
    values = {value.name: value for body in bodies for value in body.inputs}
    assert found.tensor(read.graph.outputs[0]).shape == (2, 7)
    for name in ("a", "b") if is_inner else ("a",):
        assert found.tensor(values[name]).shape == known


@pytest.mark.parametrize("has_defaults", [False, True])
def test_a_default_is_known_until_it_is_taken_away(has_defaults: bool) -> None:
    made = model_of("y = Reshape(x, l)")
    made.graph.input.append(onnx.helper.make_tensor_value_info("l", onnx.TensorProto.INT64, [2]))
    view, read = load("openvino").view, ir.from_proto(made)
    assert view is not None
    found = seen(read, view, has_defaults=has_defaults).tensor(read.graph.outputs[0]).shape
    assert found == ((3, 4) if has_defaults else (N, N))


def test_what_is_declared_of_what_nodes_give_is_not_known() -> None:
    made = model_of("a = Reshape(x, f) y = Neg(a)")
    for name in "ay":
        held = onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [3, 4])
        made.graph.value_info.append(held)
    read, found = facts_of(made)
    assert [found.tensor(node.outputs[0]).shape for node in read.graph] == [(N, N), (N, N)]


@pytest.mark.parametrize(
    "nodes",
    [
        "y, r = Split<axis = 4>(x, l)",
        "y, r = Split<axis = 1>(v, ones)",
        "y, r = Split<axis = 1>(s)",
    ],
)
def test_nothing_stops_at_a_split_that_is_refused(nodes: str) -> None:
    read, found = facts_of(model_of(nodes))
    assert 7 not in (found.tensor(read.graph.outputs[0]).shape or ())


def test_a_node_of_another_domain_gives_what_we_infer() -> None:
    made = model_of("t = Concat<axis = 0>(l, g) y = com.microsoft.Gelu(v)")
    made.opset_import.add(domain="com.microsoft", version=1)
    read, found = facts_of(made)
    assert found.tensor(read.graph.outputs[0]).shape == (2, 7)
