"""Scans in the body of a Scan, and without rows, which engines do not take: they become Loops."""

from __future__ import annotations

from typing import Any
from unittest.mock import MagicMock

import numpy as np
import onnx
import pytest
from onnx.parser import parse_model

import tensorsplit as ts
from tensorsplit.model.features import body_features
from tensorsplit.model.lower.state import LoweringReport
from tensorsplit.model.lower.steps import lower_graph
from tensorsplit.model.reading import read_model
from tests.model.build import nodes_of
from tests.model.lower.running import OwnEngine, Runner, lowered_for
from tests.refusals import refused

X = np.random.default_rng(9).uniform(1, 2, (2, 3, 4)).astype(np.float32)
W = np.random.default_rng(10).uniform(1, 2, 4).astype(np.float32)
OUTER = "y = Scan<num_scan_inputs = 1, body = b (float[?,?] table) => (float[?,?] o) {{ {} }}>(x)"
ROWS = "body = b2 (float[?] row) => (float[?] p) { p, q = Split<axis = 0>(row, halves) }>(table)"
SUM = """body = b2 (float[?] sum, float[?] row) => (float[?] sum2, float[?] before)
    { sum2 = Add(sum, row) before = Identity(sum) }>(w, table)"""
DEEP = """body = b2 (float[?] row) => (float[?] p) { p = Scan<num_scan_inputs = 1, body = b3
    (float t) => (float u) { u = Neg(t) }>(row) }>(table)"""

CASES = {
    "rows": f"o = Scan<num_scan_inputs = 1, {ROWS}",
    "rows from the last": f"o = Scan<num_scan_inputs = 1, scan_input_directions = [1], {ROWS}",
    "put together from the last": (
        f"o = Scan<num_scan_inputs = 1, scan_output_directions = [1], {ROWS}"
    ),
    "both": (
        "o = Scan<num_scan_inputs = 1, scan_input_directions = [1], scan_output_directions = [1],"
        f" {ROWS}"
    ),
    "along another axis": f"o = Scan<num_scan_inputs = 1, scan_input_axes = [-1], {ROWS}",
    "put together along another axis": (
        f"o = Scan<num_scan_inputs = 1, scan_output_axes = [1], {ROWS}"
    ),
    "what it carries": f"last, o = Scan<num_scan_inputs = 1, {SUM}",
    "what it carries after the last row": (
        f"last, r = Scan<num_scan_inputs = 1, scan_output_axes = [-1], {SUM}"
        " o = Unsqueeze(last, first)"
    ),
    "two tables": (
        "o = Scan<num_scan_inputs = 2, scan_input_directions = [0, 1], body = b2 (float[?] row,"
        " float[?] other) => (float[?] p) { p = Sub(row, other) }>(table, table)"
    ),
    "what is around it": (
        "o = Scan<num_scan_inputs = 1, body = b2 (float[?] row) => (float[?] p) { n = Add(row, w)"
        " p = Mul(n, w) }>(table)"
    ),
    "the rows as they are": (
        "o = Scan<num_scan_inputs = 1, body = b2 (float[?] row) => (float[?] row) { }>(table)"
    ),
    "a third one": f"o = Scan<num_scan_inputs = 1, {DEEP}",
    "in a branch": (
        f"o = If(yes) <then_branch = t () => (float[?,?] r) {{ r = Scan<num_scan_inputs = 1, {ROWS}"
        " }, else_branch = e () => (float[?,?] u) { u = Neg(table) }>"
    ),
}


def made_of(body: str, opset: int = 18, tables: str = "T") -> onnx.ModelProto:
    """A model whose Scan takes the tables of a tensor."""
    return parse_model(
        f'<ir_version: 8, opset_import: ["": {opset}]> g (float[{tables},R,C] x, float[4] w,'
        " bool yes)"
        " => (float[?,?,?] y) <int64[2] halves = {2, 2}, int64[1] first = {0}>"
        f" {{ {OUTER.format(body)} }}"
    )


@pytest.mark.parametrize("name", CASES)
def test_a_scan_in_the_body_of_a_scan_becomes_a_loop(name: str, process: Runner) -> None:
    model = made_of(CASES[name])
    found = [each for each in ts.check(model, target="openvino") if "body of a Scan" in str(each)]
    assert {each.code for each in found} == {"TS841"}
    if name == "along another axis":
        model.graph.initializer[0].CopyFrom(
            onnx.numpy_helper.from_array(np.array([2, 1]), "halves")
        )
    lowered = lowered_for("openvino", model)
    assert not [each for each in ts.check(lowered, target="openvino") if each.severity == "error"]
    feeds = [{"x": x, "w": W, "yes": np.array(True)} for x in (X, X[:, :1], -X[:1])]
    if name == "along another axis":
        feeds.pop(1)
    runs = process.call(["openvino", lowered.SerializeToString(), feeds, 2])
    for feed, (got,) in zip(feeds, runs, strict=True):
        expected = ts.run(model, feed)["y"]
        assert (got.shape, got.tobytes()) == (expected.shape, expected.tobytes())
        assert ts.run(lowered, feed)["y"].tobytes() == expected.tobytes()


def test_rows_of_a_known_number_are_put_together_from_the_last(process: Runner) -> None:
    model = made_of(CASES["put together from the last"])
    for dim, length in zip(model.graph.input[0].type.tensor_type.shape.dim, X.shape, strict=True):
        dim.dim_value = length
    lowered = lowered_for("openvino", model)
    feed = {"x": X, "w": W, "yes": np.array(True)}
    ((got,),) = process.call(["openvino", lowered.SerializeToString(), [feed], 2])
    assert got.tobytes() == X[:, ::-1, :2].tobytes()


@pytest.mark.parametrize("opset", [9, 10, 11, 12, 13])
def test_before_opset_13_a_loop_carries_something(opset: int, process: Runner) -> None:
    """`Inputs (3 - ∞)`: the pages of Loop-1 and Loop-11."""
    body = "o = Scan<num_scan_inputs = 1, scan_output_directions = [1], body = b2 (float[?] row)"
    model = made_of(f"{body} => (float[?] p) {{ p = Neg(row) }}>(table)", opset, "2")
    lowered = lowered_for("openvino", model)
    (loop,) = (node for node in nodes_of(lowered.graph) if node.op_type == "Loop")
    assert len(loop.input) == (3 if opset < 13 else 2)
    feed = {"x": X, "w": W, "yes": np.array(True)}
    ((got,),) = process.call(["openvino", lowered.SerializeToString(), [feed], 2])
    assert got.tobytes() == (-X[:, ::-1]).tobytes()


@pytest.mark.parametrize("target", ["onnxruntime", "portable"])
def test_other_targets_take_a_scan_in_a_scan(target: Any) -> None:
    model = made_of(CASES["what it carries"])
    for dim in model.graph.input[0].type.tensor_type.shape.dim:
        dim.dim_value = 4
    lowered = ts.lower(model, target=target)
    assert [each.op_type for each in nodes_of(lowered.graph)].count("Scan") == 2


def test_what_goes_along_an_axis_of_a_rank_that_is_not_known_is_refused() -> None:
    model = made_of(
        "r = Scan<num_scan_inputs = 1, scan_output_axes = [1], body = b2 (float[?] row) => (p)"
        " { p = x.F(row) }>(table) o = Reshape(r, halves)"
    )
    model.opset_import.add(domain="x", version=1)
    with refused("TS513", "the rank of a scan output"):
        ts.lower(model, target="openvino")


def test_before_opset_9_a_scan_in_a_scan_is_refused() -> None:
    """Scan-8 has batches."""
    text = """<ir_version: 8, opset_import: ["": 8]> g (float[1,T,1,R,C] x) => (float[?,?,?,?,?] y)
        { y = Scan<num_scan_inputs = 1, body = b (float[1,R,C] table) => (float[?,?,?] o)
        { o = Scan<num_scan_inputs = 1, body = b2 (float[C] row) => (float[C] p)
        { p = Neg(row) }>("", table) }>("", x) }"""
    with refused("TS513", "in the body of a Scan"):
        ts.lower(parse_model(text), target="openvino")


ENGINES: list[Any] = ["onnxruntime", "openvino"]
OF_TABLES = """(float[{0}] x, float[{1}] w) => (float[3] last, float[?,?] y)
    <float[3] start = {{1, 2, 3}}> {{ last, y = Scan<num_scan_inputs = 2, {2} body = b
    (float[3] sum, float[3] row, float[3] other) => (float[3] sum2, float[3] p)
    {{ sum2 = Add(sum, row) p = Mul(sum2, other) }}>(start, x, w) }}"""
ALONG: dict[str, tuple[str, str, str, tuple[int, int]]] = {
    "the first axis": ("N,3", "M,3", "", (1, 1)),
    "the last axis": ("3,N", "3,M", "scan_input_axes = [1, 1], scan_output_axes = [1],", (1, 1)),
    "from the last row": (
        "N,3",
        "3,M",
        "scan_input_axes = [0, 1], scan_input_directions = [0, 1],",
        (1, -1),
    ),
    "backwards": ("N,3", "M,3", "scan_output_directions = [1],", (-1, 1)),
}


def tables(name: str, opset: int) -> onnx.ModelProto:
    """A model whose Scan may have no rows."""
    text = OF_TABLES.format(*ALONG[name][:3])
    return parse_model(f'<ir_version: 8, opset_import: ["": {opset}]> g {text}')


@pytest.mark.parametrize("target", ENGINES)
@pytest.mark.parametrize("opset", [10, 13, 18])
@pytest.mark.parametrize("name", ALONG)
def test_a_scan_that_may_have_no_rows_becomes_a_loop(
    name: str, opset: int, target: Any, process: Runner
) -> None:
    """Both engines refuse to run it without rows; the standard does not."""
    model = tables(name, opset)
    (found,) = [each for each in ts.check(model, target) if "rows may be 0" in each.message]
    assert (found.code, found.severity) == ("TS843", "warning")
    lowered = lowered_for(target, model)
    assert not [each for each in ts.check(lowered, target) if each.severity == "error"]
    made = np.random.default_rng(11)
    counts = [(4, 4), (0, 0), (1, 1), (3, 2), (2, 3), (0, 1)]
    pairs = [[made.uniform(1, 2, (n, 3)).astype(np.float32) for n in two] for two in counts]
    end, way = ALONG[name][3]
    feeds = [
        {
            key: np.ascontiguousarray(each.T if dims.startswith("3") else each)
            for key, each, dims in zip("xw", pair, ALONG[name][:2], strict=True)
        }
        for pair in pairs
    ]
    runs = process.call([target, lowered.SerializeToString(), feeds, 2])
    for (x, w), got in zip(pairs, runs, strict=True):
        if len(x) != len(w):
            assert isinstance(got, str)
            continue
        sums = np.cumsum([[1, 2, 3], *x.tolist()], axis=0, dtype=np.float32)
        rows = (sums[1:] * w[::way])[::end]
        wanted = [sums[-1], rows.T if name == "the last axis" else rows]
        for one, other in zip(got, wanted, strict=True):
            assert one.shape == other.shape
            np.testing.assert_allclose(one, other, rtol=1e-6)


@pytest.mark.parametrize("target", ENGINES)
@pytest.mark.parametrize("dims", ["2,3", "N + 1,3"])
def test_a_scan_that_has_rows_stays(dims: str, target: Any) -> None:
    model = parse_model("""<ir_version: 8, opset_import: ["": 18]> g (float[A,3] x)
        => (float[?,?] y) { y = Scan<num_scan_inputs = 1, body = b (float[3] row) => (float[3] p)
        { p = Neg(row) }>(x) }""")
    first = model.graph.input[0].type.tensor_type.shape.dim[0]
    if dims[0] == "2":
        first.dim_value = 2
    else:
        first.dim_param = "N + 1"
    assert ts.lower(model, target) == model


@pytest.mark.parametrize("target", ENGINES)
def test_at_opset_9_tables_that_may_differ_stay(target: Any) -> None:
    """Nothing can check there that they have as many rows; the engines' Scan does."""
    (scan,) = [
        node for node in ts.lower(tables("the first axis", 9), target).graph.node if node.attribute
    ]
    assert scan.op_type == "Scan"


@pytest.mark.parametrize("target", ENGINES)
def test_a_scan_without_rows_is_left_out(target: Any, process: Runner) -> None:
    model = tables("the first axis", 18)
    for given in model.graph.input:
        given.type.tensor_type.shape.dim[0].dim_value = 0
    assert "error" in {each.severity for each in ts.check(model, target)}
    lowered = ts.lower(model, target)
    assert "Scan" not in {node.op_type for node in lowered.graph.node}
    feed = dict.fromkeys("xw", np.zeros((0, 3), np.float32))
    ((last, y),) = process.call([target, lowered.SerializeToString(), [feed], 2])
    assert (last.tolist(), y.shape) == ([1, 2, 3], (0, 3))


OPEN = """(float[{0}] x, float[{1}] w) => (float[?,?] y, float[?] last) <float[3] start =
    {{1, 2, 3}}, int64[1] zero = {{0}}> {{ last, r = Scan<num_scan_inputs = 2, body = b
    (float[3] sum, float[?] row, float[?] other) => (float[3] sum2, p)
    {{ sum2 = Identity(sum) p = Sub(row, other) }}>(start, x, w) y = Identity(r) }}"""


@pytest.mark.parametrize("target", ENGINES)
@pytest.mark.parametrize("dims", ["N,K", "0,K"])
def test_rows_of_a_dimension_that_is_not_known_are_not_given_with_another(
    dims: str, target: Any, process: Runner
) -> None:
    """An engine gives a Loop's rows of no round as if such a dimension were 0."""
    text = OPEN.format(dims, dims)
    model = parse_model(f'<ir_version: 8, opset_import: ["": 18]> g {text}')
    found = [each for each in ts.check(model, target) if "rows" in each.message]
    assert [each.severity for each in found] == ["error" if dims[0] == "0" else "warning"]
    if dims[0] == "0":
        assert "declare the shapes of what the body gives, then" in found[0].fix
        with refused("TS513", "the shape of the rows"):
            ts.lower(model, target)
        return
    assert "--fix" not in found[0].fix
    report = report_of(model, target)
    assert [each for each in report.notes if "without rows" in each]
    lowered = ts.lower(model, target)
    assert ts.lower(lowered, target) == lowered
    assert [each for each in ts.check(lowered, target) if "rows" in each.message] == found
    made = np.random.default_rng(13)
    feeds = [{key: made.uniform(1, 2, (n, 2)).astype(np.float32) for key in "xw"} for n in (0, 3)]
    empty, (y, _) = process.call([target, lowered.SerializeToString(), feeds, 2])
    assert isinstance(empty, str) or isinstance(process, OwnEngine)
    np.testing.assert_array_equal(y, feeds[1]["x"] - feeds[1]["w"], strict=True)


@pytest.mark.parametrize("target", ENGINES)
def test_a_scan_of_no_rows_and_of_any_number_is_not_left_out(target: Any) -> None:
    """The standard refuses other numbers than 0 for the second one, as engines do."""
    text = OPEN.format("0,3", "N,3")
    model = parse_model(f'<ir_version: 8, opset_import: ["": 18]> g {text}')
    assert "Scan" in {each.op_type for each in ts.lower(model, target).graph.node}
    assert [each for each in report_of(model, target).notes if "without rows" in each]


def report_of(model: onnx.ModelProto, target: Any) -> LoweringReport:
    return lower_graph(read_model(model), target)


@pytest.mark.parametrize("target", ENGINES)
def test_it_is_not_noted_of_a_scan_that_became_a_loop(target: Any) -> None:
    model = tables("the first axis", 18)
    (found,) = [each for each in ts.check(model, target) if "rows may be 0" in each.message]
    assert found.fix.startswith("lower the model")
    assert not [each for each in report_of(model, target).notes if "without rows" in each]


@pytest.mark.parametrize(("tables", "is_refused"), [("N", True), ("1000", False)])
def test_at_opset_9_inner_tables_that_may_differ_are_refused(tables: str, is_refused: bool) -> None:
    model = parse_model(f"""<ir_version: 4, opset_import: ["": 9]> g (float[2,{tables},3] x,
        float[2,{tables.replace("N", "M")},3] w) => (float[?,?,?] y) {{ y =
        Scan<num_scan_inputs = 2, body = b (float[?,3] r, float[?,3] q) => (float[?,3] o)
        {{ o = Scan<num_scan_inputs = 2, body = b2 (float[3] c, float[3] d) => (float[3] p)
        {{ p = Sub(c, d) }}>(r, q) }}>(x, w) }}""")
    (found,) = [each for each in ts.check(model, "openvino") if "body of a Scan" in each.message]
    assert ("convert it to opset 13" in found.fix) == is_refused
    if is_refused:
        with refused("TS513", "equal numbers of rows"):
            ts.lower(model, "openvino")
    else:
        assert "Loop" in {each.op_type for each in nodes_of(ts.lower(model, "openvino").graph)}


RANKS = {
    "SequenceAt": "s = SplitToSequence<keepdims = 0>(row) o = SequenceAt(s, one)",
    "ConcatFromSequence": "s = SplitToSequence(row, one) o = ConcatFromSequence<axis = 0>(s)",
    "what follows": "s = SequenceConstruct(row, row) p = SequenceAt(s, one) o = Neg(p)",
    "Loop": "o = Loop(one, , row) <body = b2 (int64 i, bool c, float[3] v) =>"
    " (bool c2, float[3] v2) { c2 = Identity(c) v2 = Neg(v) }>",
    "what a Loop carries": "w, o = Loop(one, , row) <body = b2 (int64 i, bool c, float[] v) =>"
    " (bool c2, v2, q) { c2 = Identity(c) v2 = Identity(v) q = Neg(v) }>",
    "If": "o = If(yes) <then_branch = t () => (p) { s = SequenceConstruct(row, row)"
    " p = SequenceAt(s, one) }, else_branch = e () => (q) { q = Neg(row) }>",
}


@pytest.mark.parametrize("name", RANKS)
def test_ranks_that_onnxruntime_does_not_look_for_are_declared(name: str, process: Runner) -> None:
    """`Subgraph must have the shape set for all outputs but o did not`: 1.32.0, in each run."""
    model = parse_model(f"""<ir_version: 8, opset_import: ["": 18]> g (float[2,3] x, bool yes)
        => (y) <int64 one = {{1}}> {{ y = Scan<num_scan_inputs = 1, body = b (float[3] row) => (o)
        {{ {RANKS[name]} }}>(x) }}""")
    model.graph.output[0].type.tensor_type.elem_type = onnx.TensorProto.FLOAT
    found = [each.severity for each in ts.check(model, "onnxruntime") if "shape" in each.message]
    assert found == ["warning"]
    lowered = ts.lower(model, "onnxruntime")
    assert not [each for each in ts.check(lowered, "onnxruntime") if "shape" in each.message]
    assert ts.lower(lowered, "onnxruntime") == lowered
    feed = {"x": X[0, :2, :3].copy(), "yes": np.array(True)}
    expected = ts.run(model, feed)["y"]
    ((got,),) = process.call(["onnxruntime", lowered.SerializeToString(), [feed], 1])
    np.testing.assert_array_equal(got, expected, strict=True)


NORMALIZED = "t = Unsqueeze(x, nought) o = GroupNormalization<num_groups = 1>(t, s, s)"
OF_OPSETS = {  # a node, opsets at which onnxruntime 1.32.0 finds no rank, and at which it does
    "Reshape": ("n = Cast<to = 7>(s) o = Reshape(row, n)", [9, 13], [14]),
    "Slice": ("o = Slice<axes = [1, 0], starts = [0, 0], ends = [2, 3]>(x)", [9], []),
    "Compress": ("c = Cast<to = 9>(s) o = Compress<axis = 0>(row, c)", [9, 10], [11]),
    "GreaterOrEqual": ("g = GreaterOrEqual(x, row) o = Cast<to = 1>(g)", [12, 15], [16]),
    "LessOrEqual": ("g = LessOrEqual(x, row) o = Cast<to = 1>(g)", [12, 15], [16]),
    "GroupNormalization": (NORMALIZED, [21, 23], []),
    "MeanVarianceNormalization": ("o = MeanVarianceNormalization<axes = [0]>(x)", [9, 13, 18], []),
}


def scanned_at(opset: int, name: str) -> onnx.ModelProto:
    return parse_model(f"""<ir_version: 8, opset_import: ["": {opset}]>
        g (float[2,3] x, float[2] s) => (float[] y) <int64[1] nought = {{0}}>
        {{ y = Scan<num_scan_inputs = 1, body = b (float[3] row) => (float[] o)
        {{ {OF_OPSETS[name][0]} }}>(x) }}""")


def of_opsets(index: int) -> list[tuple[str, int]]:
    return [(name, opset) for name, (_, *opsets) in OF_OPSETS.items() for opset in opsets[index]]


@pytest.mark.parametrize(("name", "opset"), of_opsets(0))
def test_ranks_that_onnxruntime_does_not_find_at_opsets_are_declared(
    name: str, opset: int, process: Runner
) -> None:
    """`Subgraph must have the shape set for all outputs but o did not`: 1.32.0, in each run."""
    model = scanned_at(opset, name)
    found = [each.severity for each in ts.check(model, "onnxruntime") if "shape" in each.message]
    assert found == ["warning"]
    lowered = ts.lower(model, "onnxruntime")
    assert not [each for each in ts.check(lowered, "onnxruntime") if "shape" in each.message]
    feed = {"x": X[0, :2, :3].copy(), "s": np.array([3, 1], np.float32)}
    expected = ts.run(model, feed)["y"]
    ((got,),) = process.call(["onnxruntime", lowered.SerializeToString(), [feed], 1])
    np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-6)


def test_a_part_by_a_length_that_onnx_does_not_infer_has_no_rank_there(process: Runner) -> None:
    """The pool has one element along an axis, however many there were, of which onnx is unaware."""
    model = parse_model("""<ir_version: 8, opset_import: ["": 15]> g (float[2,A,B,C,D] x) =>
        (float[E,F,G,H,I] y) { y = Scan<num_scan_inputs = 1, body = b (float[A,B,C,D] row) =>
        (float[] o) { p = GlobalAveragePool(row) n = Shape<start = 3>(p)
        o = Split<axis = 3>(p, n) }>(x) }""")
    model.graph.node[0].attribute[1].g.output[0].type.tensor_type.ClearField("shape")
    found = [
        each.severity for each in ts.check(model, "onnxruntime") if "shape set" in each.message
    ]
    assert found == ["warning"]
    lowered = ts.lower(model, "onnxruntime")
    assert not [each for each in ts.check(lowered, "onnxruntime") if "shape set" in each.message]
    x = np.random.default_rng(5).uniform(1, 2, (2, 3, 2, 4, 3)).astype(np.float32)
    ((got,),) = process.call(["onnxruntime", lowered.SerializeToString(), [{"x": x}], 1])
    np.testing.assert_allclose(got, x.mean((3, 4), keepdims=True), rtol=1e-5)


@pytest.mark.parametrize("dims", ["2,3", "A,B"])
def test_lengths_from_a_shape_that_onnx_infers_hide_no_rank(dims: str, process: Runner) -> None:
    """The shape of the sum is not declared: it follows where that of the row is known."""
    model = parse_model(f"""<ir_version: 8, opset_import: ["": 13]> g (float[2,{dims}] x) =>
        (float[E,F,G] y) {{ y = Scan<num_scan_inputs = 1, body = b (float[{dims}] row) =>
        (float[] o) {{ r = Relu(row) s = Add(r, row) n = Shape(s) o = Reshape(row, n) }}>(x) }}""")
    model.graph.node[0].attribute[1].g.output[0].type.tensor_type.ClearField("shape")
    found = [
        each.severity for each in ts.check(model, "onnxruntime") if "shape set" in each.message
    ]
    assert found == ["warning"] * (dims == "A,B")
    feed = {"x": np.random.default_rng(7).random((2, 2, 3), np.float32)}
    made = ts.lower(model, "onnxruntime")
    assert (made != model) is (dims == "A,B")
    ((got,),) = process.call(["onnxruntime", made.SerializeToString(), [feed], 1])
    np.testing.assert_array_equal(got, feed["x"], strict=True)


@pytest.mark.parametrize(("name", "opset"), of_opsets(1))
def test_ranks_that_onnxruntime_finds_from_an_opset_on_are_left_alone(
    name: str, opset: int, process: Runner
) -> None:
    model = scanned_at(opset, name)
    assert not [each for each in ts.check(model, "onnxruntime") if "shape" in each.message]
    feed = {"x": X[0, :2, :3].copy(), "s": np.array([3, 1], np.float32)}
    ((got,),) = process.call(["onnxruntime", model.SerializeToString(), [feed], 1])
    np.testing.assert_array_equal(got, ts.run(model, feed)["y"], strict=True)


SUMMED = "<num_scan_inputs = 1, body = b (float[{0}] sum, float[] row) => (float[{0}] sum2)"
SUMMED += " {{ sum2 = Add(sum, row) }}>"
IN_A_LOOP = (
    "y = Loop(two, , zeros) <body = b2 (int64 i, bool c, float[{0}] v) => (bool c2, float[] v2)"
)
IN_A_LOOP += " {{ c2 = Identity(c) {1} }}>"
FED_SCANS = {
    "what a Loop carries": IN_A_LOOP.format("", f"v2 = Scan{SUMMED.format('')}(v, x)"),
    "what follows from it": IN_A_LOOP.format(
        "", f"w = Neg(v) n = Neg(w) v2 = Scan{SUMMED.format('')}(n, x)"
    ),
    "in a branch": IN_A_LOOP.format(
        "",
        "k = Less(i, two) v2 = If(k) <then_branch = t () => (float[] p)"
        f" {{ p = Scan{SUMMED.format('')}(v, x) }}, else_branch = e () => (float[] q)"
        " { q = Identity(v) }>",
    ),
    "what it reads of that": IN_A_LOOP.format(
        "",
        "r = Scan <num_scan_inputs = 1, body = b (float[3] row) => (float[] o)"
        " { o = Add(v, row) }>(x) v2 = ReduceSum <keepdims = 0> (r, nought)",
    ),
    "what a Loop gives": IN_A_LOOP.format("", "v2 = Identity(v)").replace("y = Loop", "s = Loop")
    + f" u = Scan{SUMMED.format('')}(s, x) y = Add(u, u)",
    "what is in a sequence": f"p = SequenceConstruct(zeros, zeros) s = SequenceAt(p, one)"
    f" u = Scan{SUMMED.format('')}(s, x) y = Add(u, u)",
}


def summed(text: str) -> onnx.ModelProto:
    return parse_model(f"""<ir_version: 8, opset_import: ["": 18]> g (float[2,3] x)
        => (float[3] y) <int64 two = {{2}}, int64 one = {{1}}, int64[1] nought = {{0}},
        float[3] zeros = {{0, 0, 0}}>
        {{ {text} }}""")


@pytest.mark.parametrize("name", FED_SCANS)
def test_scans_get_ranks_that_onnxruntime_does_not_look_for(name: str, process: Runner) -> None:
    """`Subgraph must have the shape set for all outputs but sum2 did not`: 1.32.0, in each run."""
    model = summed(FED_SCANS[name])
    (found,) = [each for each in ts.check(model, "onnxruntime") if "shape" in each.message]
    assert "/Scan" in str(found.node)
    lowered = ts.lower(model, "onnxruntime")
    assert not [each for each in ts.check(lowered, "onnxruntime") if "shape" in each.message]
    x = X[0, :2, :3].copy()
    ((got,),) = process.call(["onnxruntime", lowered.SerializeToString(), [{"x": x}], 1])
    times = 3 if name == "what it reads of that" else 2
    np.testing.assert_allclose(got, times * (x[0] + x[1]), rtol=1e-6)


@pytest.mark.parametrize(("state", "carried"), [("3", ""), ("", "3")])
def test_ranks_that_are_declared_once_are_enough(state: str, carried: str, process: Runner) -> None:
    model = summed(IN_A_LOOP.format(carried, f"v2 = Scan{SUMMED.format(state)}(v, x)"))
    assert not [each for each in ts.check(model, "onnxruntime") if "shape" in each.message]
    x = X[0, :2, :3].copy()
    ((got,),) = process.call(["onnxruntime", model.SerializeToString(), [{"x": x}], 1])
    np.testing.assert_allclose(got, 2 * (x[0] + x[1]), rtol=1e-6)


OF_SEEN_RANK = {
    "none": "o = Neg(row)",
    "its own shape": "n = Shape(row) o = Reshape(row, n)",
    "a constant shape": "s = SequenceConstruct(row, row) p = SequenceAt(s, one)"
    " n = Constant<value_ints = [3, 1]>() o = Reshape(p, n)",
    "a counted shape": "s = SequenceConstruct(row, row) p = SequenceAt(s, one)"
    " o = Reshape(p, shape)",
    "a length": "s = SequenceConstruct(row, row) q = Loop(one, , s) <body = b2 (int64 i, bool c,"
    " seq(float) v) => (bool c2, seq(float) v2) { c2 = Identity(c) v2 = SequenceInsert(v, row) }>"
    " n = SequenceLength(q) o = Cast<to = 1>(n)",
    "rows of a Loop": "k = Constant<value_int = 1>() yes = Cast<to = 9>(k)"
    " o = Loop(one, yes) <body = b2 (int64 i, bool c) => (bool c2, v2)"
    " { c2 = Identity(c) v2 = Neg(row) }>",
}


@pytest.mark.parametrize("name", OF_SEEN_RANK)
def test_ranks_that_onnxruntime_looks_for_stay_undeclared(name: str, process: Runner) -> None:
    model = parse_model(f"""<ir_version: 8, opset_import: ["": 18]> g (float[2,3] x,
        int64[2] shape) => (y) <int64 one = {{1}}> {{ y = Scan<num_scan_inputs = 1, body = b
        (float[3] row) => (o) {{ {OF_SEEN_RANK[name]} }}>(x) }}""")
    model.graph.output[0].type.tensor_type.elem_type = onnx.TensorProto.FLOAT
    assert not [each for each in ts.check(model, "onnxruntime") if "the shape" in each.message]
    feed = {"x": X[0, :2, :3].copy(), "shape": np.array([1, 3])}
    ((got,),) = process.call(["onnxruntime", model.SerializeToString(), [feed], 1])
    np.testing.assert_array_equal(got, ts.run(model, feed)["y"], strict=True)


def test_the_ranks_of_many_scans_are_looked_for_in_few_steps(monkeypatch: Any) -> None:
    """Each would go back through all nodes of the model that are before it."""
    chain = " ".join(f"c{i + 1} = Neg(c{i})" for i in range(500))
    model = parse_model(f"""<ir_version: 8, opset_import: ["": 18]> g (float[3] c0, float[2,3] x)
        => (float[?,?] y) {{ {chain} y = Scan<num_scan_inputs = 1, body = b (float[3] row) => (o)
        {{ o = Add(row, c500) }}>(x) }}""")
    looked = MagicMock(wraps=body_features._sources_of_rank)
    monkeypatch.setattr(body_features, "_sources_of_rank", looked)
    ts.check(model, "onnxruntime")
    assert 0 < looked.call_count < 150


@pytest.mark.filterwarnings("ignore:.*cut to 32 bits:tensorsplit.SplitWarning")
def test_a_state_has_the_length_that_is_fed_and_not_that_of_a_default() -> None:
    """OpenVINO sees the lengths that are a default, but another run may have others (D20)."""
    model = parse_model("""<ir_version: 8, opset_import: ["": 18]> g (float[T,5] x, int64[2] l)
        => (float[?] y) <int64[2] l = {1, 4}, float[1] s = {0}> { p, q = Split<axis = 1>(x, l)
        y, o = Scan<num_scan_inputs = 1, body = b (float[?] v, float[?] row) => (float[?] n,
        float[?] o) { n = Add(v, row) o = Neg(row) }>(s, q) }""")
    lowered = ts.lower(model, "openvino")
    x = np.random.default_rng(12).uniform(1, 2, (3, 5)).astype(np.float32)
    feed = {"x": x, "l": np.array([4, 1])}
    np.testing.assert_allclose(ts.run(lowered, feed)["y"], x[:, 4:].sum(0), rtol=1e-6)


@pytest.mark.parametrize("target", ["onnxruntime", "openvino"])
def test_a_scan_of_rows_without_elements_stays(target: Any) -> None:
    """OpenVINO dies of the Gather that would take a row in a Loop."""
    model = parse_model(
        '<ir_version: 8, opset_import: ["": 17]> g (float[N,0] x, float[2] s) => (float[2] t)'
        " { t, r = Scan<num_scan_inputs = 1, body = b (float[2] a, float[?] row) =>"
        " (float[2] c, float[?] d) { c = Neg(a) d = Identity(row) }>(s, x) }"
    )
    assert "Scan" in {made.op_type for made in ts.lower(model, target=target).graph.node}


@pytest.mark.parametrize("target", ENGINES)
@pytest.mark.parametrize("dims", ["N,0", "3,0"])
def test_rows_without_elements_whose_number_may_be_0_are_warned_of(
    dims: str, target: Any, process: Runner
) -> None:
    """Such a Scan stays, as OpenVINO dies of a Gather that takes them."""
    model = parse_model(
        f"""<ir_version: 8, opset_import: ["": 18]> g (float[{dims}] x) => (float[?,?] y)
        {{ y = Scan<num_scan_inputs = 1, body = b (float[0] row) => (float[0] p)
        {{ p = Neg(row) }}>(x) }}"""
    )
    found = [each for each in ts.check(model, target) if "rows without elements" in each.message]
    assert [each.severity for each in found] == ["warning"] * (dims[0] == "N")
    lowered = lowered_for(target, model)
    assert "Scan" in {node.op_type for node in lowered.graph.node}
    feeds = [{"x": np.zeros((rows, 0), np.float32)} for rows in (3, 0)[: 1 + (dims[0] == "N")]]
    ((full,), *empty) = process.call([target, lowered.SerializeToString(), feeds, 1])
    assert full.shape == (3, 0)
    assert all(isinstance(each, str) for each in empty) or isinstance(process, OwnEngine)


BACKWARD = (
    "y = Scan(x) <num_scan_inputs = 1, scan_input_directions = [1], scan_output_directions = [{}],"
    " body = b (float[2] r) => (float[2] a) {{ a = Neg(r) }}>"
)


@pytest.mark.parametrize("engine", ["onnxruntime", "openvino"])
@pytest.mark.parametrize("direction", [0, 1])
def test_a_scan_backwards_for_any_engine_may_have_no_rows(
    direction: int, engine: str, process: Runner
) -> None:
    """Neither engine runs a Scan without rows."""
    model = parse_model(
        f"""<ir_version: 8, opset_import: ["": 17]> g (float[N,2] x) => (float[N,2] y)
        {{ {BACKWARD.format(direction)} }}"""
    )
    assert [each.code for each in ts.check(model, target="portable")] == ["TS843"]
    lowered = lowered_for("portable", model)
    for count in (0, 3):
        x = np.random.default_rng(count).uniform(1, 2, (count, 2)).astype(np.float32)
        ((got,),) = process.call([engine, lowered.SerializeToString(), [{"x": x}], 1])
        assert got.tolist() == (-x if direction else -x[::-1]).tolist()


@pytest.mark.parametrize("target", ["openvino", "portable"])
def test_a_scan_carries_no_tensor_of_unknown_rank(target: Any) -> None:
    """`Subgraph must have the shape set for all outputs`: onnxruntime refuses to run it."""
    model = parse_model(
        """<ir_version: 8, opset_import: ["": 17]> g (float[3,2] x, int64[M] s, float[2] w)
        => (float[3,2] y) {
            v = Reshape(w, s)
            y = Scan(x) <num_scan_inputs = 1, body = b (float[2] r) => (float[2] a) {
                n = Size(v) f = Cast<to = 1>(n) q = Mul(r, f) a = Add(q, w)
            }>
        }"""
    )
    lowered = ts.lower(model, target=target)
    (scan,) = [each for each in lowered.graph.node if each.op_type == "Scan"]
    assert list(scan.input) == ["w", "x"]
    x, w = (np.arange(1, count + 1, dtype=np.float32) for count in (6, 2))
    feed = {"x": x.reshape(3, 2), "s": np.array([1, 2]), "w": w}
    assert np.array_equal(ts.run(lowered, feed)["y"], feed["x"] * 2 + w)


@pytest.mark.parametrize("target", ["openvino", "portable"])
def test_a_scan_whose_rows_only_a_branch_reads_that_is_not_taken_becomes_a_loop(
    target: Any,
) -> None:
    """Once the branch is gone, a step that seldom matters is to be done: nothing else is."""
    model = parse_model("""<ir_version: 8, opset_import: ["": 18]> g (float[N,K] x) => (float[?] y)
        <float zero = {0}, int64[1] first = {0}, bool yes = {1}, float[2] w = {1, 2}> {
            sum, r = Scan<num_scan_inputs = 1, body = b (float s, float[?] row) => (float s2,
                float[?] p) { s2 = ReduceMax<keepdims = 0>(row) p = Neg(row) }>(zero, x)
            parts = SplitToSequence(r)
            y, left = If(yes) <then_branch = t () => (float[?] a, seq(float[?,?]) b)
                { a = Unsqueeze(sum, first) b = Identity(parts) },
              else_branch = e () => (float[?] c, seq(float[?,?]) d)
                { c = Identity(w) d = Identity(parts) }> }""")
    lowered = ts.lower(model, target)
    assert "Scan" not in {node.op_type for node in nodes_of(lowered.graph)}
    assert ts.lower(lowered, target) == lowered
