"""A split that is wrong in code that never runs (D22), which some engines read all the same."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import onnx
import pytest
from onnx.parser import parse_model
from onnx.reference import ReferenceEvaluator

import tensorsplit as ts
from tensorsplit.model.lower import lower_graph
from tensorsplit.model.reading import open_model, read_model
from tests.model.lower.running import Runner, lowered_for

X = np.random.default_rng(2211).random(4, np.float32) - 0.5
LENGTHS = "l = Constant<value = int64[2] {2, 9}>()"
ORT: Any = "onnxruntime"
OV: Any = "openvino"


class Wrong(NamedTuple):
    """A split that is wrong, the engines that were seen to refuse it, the opset, and the axis."""

    text: str
    refused_by: set[str]
    opset: int = 18
    dim: str = "4"


LISTS = "m = Constant<value = int64[1, 2] {2, 2}>() p, q = Split(x, m)"
NEGATIVE = "m = Constant<value = int64[2] {-1, 5}>() p, q = Split(x, m)"
CHUNK = "s = SplitToSequence(x, k) p = SequenceAt(s, k)"

WRONG = {
    "a sum": Wrong("p, q = Split(x, l)", {ORT, OV}),
    "a sum as an attribute": Wrong("p, q = Split<split = [2, 9]>(x)", {ORT, OV}, 11),
    "a calculated sum": Wrong("m = Add(l, l) p, q = Split(x, m)", {ORT, OV}),
    "an axis": Wrong("p, q = Split<axis = 7, num_outputs = 2>(x)", {ORT, OV}),
    "equal parts": Wrong("p, q, r = Split(x)", {ORT, OV}, 13),
    "a count of nothing": Wrong("p, q = Split<num_outputs = 0>(x)", {ORT, OV}),
    "data of no axes": Wrong("s = ReduceSum<keepdims = 0>(x) p, q = Split(s, l)", {ORT, OV}),
    "a sequence's sum": Wrong("s = SplitToSequence(x, l) p = SequenceAt(s, k)", {ORT, OV}),
    "a chunk of 0": Wrong(CHUNK, {ORT, OV}),
    "a newer attribute": Wrong("p, q = Split<num_outputs = 2>(x)", {ORT}, 13),
    "no lengths": Wrong("p, q = Split(x)", {ORT}),
    "both": Wrong("p, q = Split<num_outputs = 2>(x, l)", {ORT}),
    "another number of outputs": Wrong("p, q = Split<num_outputs = 3>(x)", {OV}),
    "a list of lists": Wrong(LISTS, {OV}),
    "a position": Wrong("s = SplitToSequence(x) k4 = Add(four, k) p = SequenceAt(s, k4)", {OV}),
    "a length below 0": Wrong(NEGATIVE, set()),
    "one that nothing reads": Wrong("s, q = Split(x, l) p = Neg(x)", {ORT}),
    "an axis that an open one is not": Wrong("p, q = Split<axis = -2>(x, l)", {ORT, OV}, dim="N"),
    "an open count of nothing": Wrong("p, q = Split<num_outputs = 0>(x)", {OV}, dim="N"),
    "an open chunk of 0": Wrong(CHUNK, {OV}, dim="N"),
    "a newer attribute of open data": Wrong("p, q = Split<num_outputs = 2>(x)", {ORT}, 13, "N"),
    "another number of open outputs": Wrong("p, q = Split<num_outputs = 3>(x)", set(), dim="N"),
    "no lengths of open data": Wrong("p, q = Split(x)", set(), dim="N"),
    "an open list of lists": Wrong(LISTS, {OV}, dim="N"),
}

AROUND = {
    "a branch": """y = If(no) <then_branch = t () => (float[A] t1) { WRONG t1 = Neg(p) },
        else_branch = e () => (float[B] e1) { e1 = Abs(x) }>""",
    "a branch in a branch": """y = If(no) <then_branch = t () => (float[A] t2) { t2 = If(yes)
        <then_branch = u () => (float[C] t1) { WRONG t1 = Neg(p) },
        else_branch = v () => (float[D] v1) { v1 = Neg(x) }> },
        else_branch = e () => (float[B] e1) { e1 = Abs(x) }>""",
    "one never taken in another": """y = If(no) <then_branch = t () => (float[A] t2) {
        t2 = If(no) <then_branch = u () => (float[C] t1) { WRONG t1 = Neg(p) },
        else_branch = v () => (float[D] v1) { v1 = Neg(x) }> },
        else_branch = e () => (float[B] e1) { e1 = Abs(x) }>""",
    "a loop without a round": """z = Abs(x) y = Loop(k, , z) <body = b (int64 i, bool c, float[C] w)
        => (bool d, float[D] v) { d = Identity(c) WRONG u = Neg(p) v = Abs(w) }>""",
}


def model_of(around: str, wrong: Wrong) -> onnx.ModelProto:
    body = AROUND[around].replace("WRONG", f"{LENGTHS} {wrong.text}")
    return parse_model(
        f"""<ir_version: 8, opset_import: ["": {wrong.opset}]>
        g (float[{wrong.dim}] x) => (float[E] y)
        <bool no = {{0}}, bool yes = {{1}}, int64 k = {{0}}, int64 four = {{4}}> {{ {body} }}"""
    )


@pytest.mark.parametrize("wrong", WRONG)
def test_a_run_does_not_refuse_what_never_runs(wrong: str) -> None:
    """Onnx's reference does not, either."""
    for around in AROUND:
        model = model_of(around, WRONG[wrong])
        assert ts.run(model, {"x": X})["y"].tolist() == np.abs(X).tolist()
        (got,) = ReferenceEvaluator(model).run(None, {"x": X})
        assert np.array(got).tolist() == np.abs(X).tolist()


def assert_gives_the_branch_that_runs(
    openvino: Runner, engine: str, lowered: onnx.ModelProto
) -> None:
    (got,) = openvino.call([engine, lowered.SerializeToString(), [{"x": X}], 1])
    assert got[0].tolist() == np.abs(X).tolist()


BOTH = [pytest.param(engine, marks=pytest.mark.engine(engine)) for engine in (ORT, OV)]


@pytest.mark.parametrize("around", AROUND)
@pytest.mark.parametrize("engine", BOTH)
@pytest.mark.parametrize("wrong", WRONG)
def test_an_engine_refuses_it_where_check_says_so_and_runs_what_lower_leaves(
    wrong: str, engine: Any, around: str, openvino: Runner
) -> None:
    model = model_of(around, WRONG[wrong])
    place = "Loop[1]" if "loop" in around else "If[0]"
    is_refused = engine in WRONG[wrong].refused_by and not (engine == OV and "loop" in around)
    found = [each for each in ts.check(model, target=engine) if each.severity == "error"]
    assert bool(found) == is_refused
    said = [each.node for each in found if "never runs, and is wrong" in each.message]
    assert said == [f"graph/{place}"] * is_refused
    (got,) = openvino.call([engine, model.SerializeToString(), [{"x": X}], 1])
    assert isinstance(got, str) == is_refused
    lowered = ts.lower(model, target=engine)
    assert ts.lower(lowered, target=engine) == lowered
    assert_gives_the_branch_that_runs(openvino, engine, lowered)


@pytest.mark.parametrize("around", AROUND)
@pytest.mark.parametrize("engine", BOTH)
@pytest.mark.parametrize("wrong", WRONG)
def test_a_portable_model_has_nothing_wrong_where_it_never_runs(
    wrong: str, engine: Any, around: str, openvino: Runner
) -> None:
    lowered = lowered_for("portable", model_of(around, WRONG[wrong]))
    assert_gives_the_branch_that_runs(openvino, engine, lowered)


def test_what_may_run_is_wrong_by_itself() -> None:
    """The error is that of the split, and no target is asked."""
    text = AROUND["a branch"].replace("WRONG", f"{LENGTHS} {WRONG['a sum'].text}")
    model = parse_model(
        f"""<ir_version: 8, opset_import: ["": 18]> g (float[4] x, bool no) => (float[E] y)
        {{ {text} }}"""
    )
    for engine in (ORT, OV):
        found = [each for each in ts.check(model, target=engine) if each.severity == "error"]
        assert [(each.code, "then_branch" in each.node) for each in found] == [("TS302", True)]


MAPPED = """s = SequenceConstruct(x, x) m = SequenceMap(s) <body = b (float[4] e) => (float[4] f)
    { f = Abs(e) }> r = SequenceAt(m, k)"""


@pytest.mark.engine("openvino")
@pytest.mark.parametrize("is_taken", [True, False])
def test_a_branch_is_left_out_for_what_the_other_one_lacks_alone(
    is_taken: bool, openvino: Runner
) -> None:
    """A SequenceMap is lowered where it runs, and goes where it does not."""
    model = parse_model(
        f"""<ir_version: 8, opset_import: ["": 18]> g (float[4] x) => (float[4] y)
        <bool c = {{{int(is_taken)}}}, int64 k = {{0}}> {{ y = If(c)
        <then_branch = t () => (float[4] r) {{ {MAPPED} }},
        else_branch = e () => (float[4] a) {{ a = Abs(x) }}> }}"""
    )
    found = [each for each in ts.check(model, target=OV) if each.severity == "error"]
    assert {each.node for each in found} == {"graph/If[0].then_branch/SequenceMap[1]"}
    lowered = lowered_for(OV, model)
    assert ("If" in [node.op_type for node in lowered.graph.node]) == is_taken
    for each, is_refused in ((model, True), (lowered, False)):
        (got,) = openvino.call([OV, each.SerializeToString(), [{"x": X}], 1])
        assert isinstance(got, str) == is_refused
    assert got[0].tolist() == np.abs(X).tolist()


@pytest.mark.engine("openvino")
def test_what_an_engine_does_wrongly_where_it_never_runs_is_no_error(openvino: Runner) -> None:
    """The NonZero of a number has one row, in place of none."""
    model = parse_model(
        """<ir_version: 8, opset_import: ["": 18]> g (float[4] x) => (int64[A, B] y)
        <bool no = {0}, float one = {1}> { y = If(no)
        <then_branch = t () => (int64[C, D] r) { r = NonZero(one) },
        else_branch = e () => (int64[E, F] a) { a = NonZero(x) }> }"""
    )
    assert not [each for each in ts.check(model, target=OV) if each.severity == "error"]
    (got,) = openvino.call([OV, model.SerializeToString(), [{"x": X}], 1])
    assert got[0].tolist() == [[0, 1, 2, 3]]


@pytest.mark.engine("openvino")
def test_what_nothing_reads_where_it_never_runs_is_no_error(openvino: Runner) -> None:
    """OpenVINO leaves it out itself."""
    model = parse_model(
        f"""<ir_version: 8, opset_import: ["": 18]> g (float[4] x) => (float[E] y)
        <bool no = {{0}}, int64 k = {{0}}> {{ y = If(no)
        <then_branch = t () => (float[4] n) {{ {MAPPED} n = Neg(x) }},
        else_branch = e () => (float[4] a) {{ a = Abs(x) }}> }}"""
    )
    assert not [each for each in ts.check(model, target=OV) if each.severity == "error"]
    assert_gives_the_branch_that_runs(openvino, OV, model)


@pytest.mark.engine("onnxruntime")
def test_onnxruntime_infers_shapes_of_what_never_runs(openvino: Runner) -> None:
    """Before opset 11 the branches of an If have to give one shape, there, too."""
    model = parse_model(
        """<ir_version: 8, opset_import: ["": 9]> g (float[4] x, bool c) => (float[E] y)
        <bool no = {0}> { y = If(no) <then_branch = t () => (float[A] r) { r = If(c)
        <then_branch = u () => (float[4] q) { q = Neg(x) },
        else_branch = v () => (float[8] p) { p = Concat<axis = 0>(x, x) }> },
        else_branch = e () => (float[4] a) { a = Abs(x) }> }"""
    )
    found = [each for each in ts.check(model, target=ORT) if each.severity == "error"]
    assert [each.node for each in found] == ["graph/If[0].then_branch/If[0]"]
    feeds = [{"x": X, "c": np.array(True)}]
    for each, is_refused in ((model, True), (lowered_for(ORT, model), False)):
        (got,) = openvino.call([ORT, each.SerializeToString(), feeds, 1])
        assert isinstance(got, str) == is_refused
    assert got[0].tolist() == np.abs(X).tolist()


def test_a_branch_that_is_left_out_is_told_once() -> None:
    model = model_of("one never taken in another", WRONG["a sum"])
    report = lower_graph(open_model(read_model(model)), OV)
    assert [(each.node, each.became) for each in report.changes] == [
        ("graph/If[0]", "its else_branch, which is always taken")
    ]
