"""Lowered models run on their target, and give what the original gives, bit for bit."""

from __future__ import annotations

import warnings
from importlib.util import find_spec
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from onnx.parser import parse_model

from tensorsplit import SplitError, SplitWarning
from tensorsplit.engines import run
from tensorsplit.engines.compare import Reference
from tensorsplit.model.check.checker import check
from tensorsplit.model.convert import convert
from tensorsplit.model.features.sequences import SEQUENCE_OPERATORS
from tensorsplit.model.graph.facts import Tensor
from tensorsplit.model.graph.nodes import scopes, walk
from tensorsplit.model.lower import lower, lower_graph
from tensorsplit.model.lower import lowered as lowered_model
from tensorsplit.model.lower.lowered_sequence import resized
from tensorsplit.model.lower.state import Lowering, LoweringReport
from tensorsplit.model.profiles import load
from tensorsplit.model.reading import open_model, read_model
from tests.model.build import FLOAT, graph, model, node, nodes_of, onnx_model, value
from tests.model.lower.corpus import CASES, ELEMENT_TYPES, Case
from tests.model.lower.running import with_own
from tests.refusals import refused

BY_NAME = {case.name: case for case in CASES}
TARGETS = ("onnxruntime", "openvino", "portable")
QUANTISED = "split13_int8_quantised"
"""A case with operators that our own engine lacks at its opset; what comes out is stated here."""

NO_TYPE = "sequence_bfloat16"
"""Onnx's schemas have no sequences of bfloat16, which OpenVINO runs as they are."""

ENDS = {case.name for case in CASES if case.name.startswith("sequence_output")}
ENDS |= {"sequence_input"}
COMPLEX = {case.name for case in CASES if "complex" in case.name}
REFUSED = {
    "onnxruntime": COMPLEX,
    "openvino": COMPLEX | ENDS,
    "portable": ENDS,
}
"""What no rewrite can make the target run."""

OVERRIDABLE = {"split13_overridable_fed": "l", "sequence_overridable_chunk": "c"}
"""OpenVINO makes constants of inputs that have a default: there the default is what must hold."""


def _marks(engine: Any) -> list[Any]:
    return [] if engine == "tensorsplit" else [pytest.mark.engine(engine)]


def _engines(case: Case, target: Any) -> list[str]:
    """What runs a lowered model: our own engine where it can, and the target."""
    own = [] if case.name == QUANTISED else ["tensorsplit"]
    return own + ([target] if target != "portable" else [] if own else ["onnxruntime"])


RUNS = [
    pytest.param(case, target, marks=_marks(_engines(case, target)[-1]), id=f"{case.name}-{target}")
    for target in TARGETS
    for case in CASES
    if case.name not in REFUSED[target]
]


def _expected(case: Case, feeds: dict[str, Any]) -> dict[str, Any]:
    if case.name == QUANTISED:
        held = np.clip(np.rint(feeds["x"] / np.float32(0.5)), -128, 127) * np.float32(0.5)
        return {"a": held[:2].astype(np.float32), "b": held[2:].astype(np.float32)}
    return run(case.model, feeds)


@pytest.mark.parametrize(("case", "target"), RUNS)
def test_a_lowered_model_runs_on_its_target_and_is_equal(case: Case, target: Any) -> None:
    made = lower(case.model, target=target)
    onnx.checker.check_model(made, full_check=case.name != NO_TYPE)
    feeds = dict(case.inputs(seed=1))
    if target == "openvino" and case.name in OVERRIDABLE:
        del feeds[OVERRIDABLE[case.name]]
    expected = _expected(case, feeds)
    reference = Reference("tensorsplit", expected)
    for engine in _engines(case, target):
        assert reference.differences(made, feeds, engine) == []


@pytest.mark.parametrize(
    ("name", "target"), [(name, target) for target in TARGETS for name in sorted(REFUSED[target])]
)
def test_what_no_rewrite_can_make_the_target_run_is_refused(name: str, target: Any) -> None:
    with refused("TS513"):
        lower(BY_NAME[name].model, target=target)


@pytest.mark.parametrize(
    "case", [case for case in CASES if case.name not in REFUSED["portable"]], ids=lambda c: c.name
)
def test_portable_models_have_no_sequences_and_explicit_lengths(case: Case) -> None:
    made = ir.serde.deserialize_model(lower(case.model, target="portable"))
    assert not made.functions
    for place in walk(made):
        assert place.node.op_type not in SEQUENCE_OPERATORS
        if place.node.op_type == "Split":
            assert place.node.attributes.get_int("axis", 0) >= 0
            assert len(place.node.inputs) == 2 or "split" in place.node.attributes


UNCHANGED = {
    "onnxruntime": (
        *("split2", "split11", "split13_equal", "split13_runtime", "if_sequence", "loop_insert"),
        *(
            "sequence_output",
            "sequence_input",
            "chunk_dynamic",
            "function_sequence",
            "sequence_map",
            "split13_string",
        ),
    ),
    "openvino": (
        *("split2", "split11", "split13_equal", "split18_even", "split18_int64"),
        *("ones_keepdims", "concat_whole_static", "keepdims_ignored_scalar_one", "split18_bool"),
    ),
    "portable": ("split2", "split13_constant_node", "split13_complex64"),
}


@pytest.mark.parametrize("target", TARGETS)
def test_what_the_target_runs_comes_back_unchanged(target: Any) -> None:
    for name in UNCHANGED[target]:
        model = BY_NAME[name].model
        made = lower(model, target=target)
        assert made.SerializeToString() == model.SerializeToString(), name


def test_what_came_in_stays_as_it_is_and_the_same_kind_comes_back(tmp_path: Any) -> None:
    model = BY_NAME["split18_uneven_dynamic"].model
    before = model.SerializeToString()
    path = tmp_path / "model.onnx"
    path.write_bytes(before)
    assert isinstance(lower(model, target="portable"), onnx.ModelProto)
    assert isinstance(lower(path, target="portable"), onnx.ModelProto)
    assert isinstance(lower(ir.from_proto(model), target="portable"), ir.Model)
    assert model.SerializeToString() == before
    assert path.read_bytes() == before


def test_everything_else_of_a_model_survives() -> None:
    model = BY_NAME["chunk_dynamic"].model
    model.producer_name, model.doc_string, model.graph.doc_string = "someone", "model", "graph"
    entry = model.metadata_props.add()
    entry.key, entry.value = "author", "somebody"
    model.opset_import.add(domain="custom", version=7)
    made = lower(model, target="openvino")
    assert (made.producer_name, made.doc_string) == ("someone", "model")
    assert made.graph.doc_string == "graph"
    assert made.metadata_props == model.metadata_props
    assert {entry.domain: entry.version for entry in made.opset_import} == {"": 13, "custom": 7}
    assert made.graph.input == model.graph.input
    assert made.graph.output == model.graph.output


@pytest.mark.parametrize(("length", "sizes"), [(5, (2, 2, 1)), (6, (2, 2, 2)), (2, (1, 1, 0))])
def test_a_count_on_a_dynamic_axis_becomes_computed_lengths(
    length: int, sizes: tuple[int, ...]
) -> None:
    made = lower(BY_NAME["split18_uneven_dynamic"].model, target="openvino")
    x = np.arange(3 * length, dtype=np.float32).reshape(length, 3)
    ends = np.cumsum(sizes)
    for name, end, size in zip("abc", ends, sizes, strict=True):
        np.testing.assert_array_equal(run(made, {"x": x})[name], x[end - size : end])


@pytest.mark.parametrize(("dim", "is_noted"), [("N", True), ("6", False)])
def test_a_slice_that_is_written_of_what_may_be_too_long_is_noted(dim: str, is_noted: bool) -> None:
    made = parse_model(
        f"""<ir_version: 8, opset_import: ["": 18]> g (float[{dim}] x, int64 i) => (float[A] y)
        <int64 two = {{2}}> {{ s = SplitToSequence(x, two) y = SequenceAt(s, i) }}"""
    )
    notes = lower_graph(open_model(made), "openvino").notes
    assert any("above 2^24 = 16,777,216, Slice" in each for each in notes) is is_noted


def test_lengths_of_which_not_even_the_rank_is_known_are_a_list() -> None:
    """A Split takes nothing else."""
    made = parse_model(
        """<ir_version: 8, opset_import: ["": 13]> g (float[6] x, int64[] l)
        => (float[A] a, float[B] b) { a, b = Split(x, l) }"""
    )
    lowered = lower(made, target="portable")
    feeds = {"x": np.arange(6, dtype=np.float32), "l": np.array([2, 4])}
    assert [each.tolist() for each in run(lowered, feeds).values()] == [[0, 1], [2, 3, 4, 5]]
    for wrong in ([2, 3], [7, -1], [2, 2, 2]):
        with pytest.raises(SplitError):
            run(lowered, feeds | {"l": np.array(wrong)})


def test_a_count_that_leaves_a_negative_part_is_refused_when_it_runs_too() -> None:
    made = lower(BY_NAME["split18_uneven_dynamic"].model, target="openvino")
    others: list[Any] = [each for each in ("onnxruntime", "openvino") if find_spec(each)]
    for engine in ("tensorsplit", *others):
        with pytest.raises(SplitError):
            run(made, {"x": np.ones((1, 3), np.float32)}, engine=engine)


OUT_OF_RANGE = [
    ("sequence_runtime_index", {"i": np.array(3)}),
    ("sequence_runtime_index", {"i": np.array(-4)}),
    ("sequence_runtime_index_ones", {"i": np.array(7)}),
    ("sequence_of_one_part", {"i": np.array(1)}),
    ("sequence_of_one_part", {"i": np.array(-2)}),
    ("sequence_runtime_lengths", {"i": np.array(3)}),
    ("sequence_runtime_lengths", {"i": np.array(-4)}),
    ("sequence_runtime_lengths", {"l": np.array([1, 2, 5])}),
    ("sequence_runtime_lengths", {"l": np.array([8, -2, 1])}),
    ("sequence_runtime_chunk", {"c": np.array(0)}),
    ("sequence_runtime_chunk", {"c": np.array(-3)}),
    ("chunk_dynamic", {"x": np.ones((3, 4), np.float32)}),
    ("insert_and_erase_at_a_runtime_position", {"i": np.array(5)}),
    ("insert_and_erase_at_a_runtime_position", {"i": np.array(-5)}),
    ("insert_of_another_shape", {"i": np.array(8)}),
    ("insert_where_all_was_erased", {"i": np.array(1)}),
    ("insert_of_another_shape_anywhere", {"i": np.array(5)}),
    ("concat_whole", {"x": np.ones((0, 4), np.float32)}),
    ("join_on_another_axis", {"x": np.ones((0, 4), np.float32), "w": np.ones((0, 3), np.float32)}),
    ("loop_that_collects_open_shapes", {"trip": np.array(0)}),
]


@pytest.mark.parametrize(
    "engine",
    ["tensorsplit", *(pytest.param(engine, marks=_marks(engine)) for engine in TARGETS[:2])],
)
@pytest.mark.parametrize(("name", "feeds"), OUT_OF_RANGE)
def test_what_the_original_refuses_at_run_time_the_lowered_model_refuses_too(
    name: str, feeds: dict[str, Any], engine: Any
) -> None:
    """D19: an index out of range, or lengths that do not fit, never give other data."""
    case = BY_NAME[name]
    given = case.inputs() | feeds
    with pytest.raises(SplitError):
        run(case.model, given)
    with pytest.raises(SplitError):
        run(lower(case.model, target="openvino"), given, engine=engine)


@pytest.mark.parametrize(
    ("name", "sizes"), [("variadic_split", (2, 5)), ("variadic_split_dynamic", (5, 2))]
)
@pytest.mark.parametrize("target", TARGETS)
def test_variadic_split_becomes_split(name: str, sizes: tuple[int, int], target: Any) -> None:
    case = BY_NAME[name]
    made = lower(case.model, target=target)
    feeds = case.inputs()
    outputs = run(made, feeds)
    np.testing.assert_array_equal(outputs["y"], feeds["x"][: sizes[0]])
    np.testing.assert_array_equal(outputs["z"], feeds["x"][sizes[0] :])
    assert [entry.domain for entry in made.opset_import] == [""]


@pytest.mark.parametrize("kind", ["int8", "uint8", "int16", "uint16", "uint32", "uint64"])
def test_a_gap_of_element_types_is_bridged_without_a_cast(kind: str) -> None:
    made = lower(BY_NAME[f"sequence_{kind}"].model, target="onnxruntime")
    assert {node.op_type for node in made.graph.node} <= {"Split", "Constant"}


def test_strings_are_gathered_where_they_cannot_be_split() -> None:
    """D17: OpenVINO corrupts strings that it splits, and gathers them right."""
    made = lower(BY_NAME["split13_string"].model, target="openvino")
    assert "Split" not in {node.op_type for node in made.graph.node}


@pytest.mark.parametrize("kind", ["float", "float16", "double", "int64"])
def test_data_of_which_a_target_changes_some_values_are_split(kind: str) -> None:
    """OpenVINO quiets a float16 NaN that signals (docs/exactness.md), which no node prevents."""
    text = f"g ({kind}[N,8] x) => ({kind}[A,8] a, {kind}[B,8] b) {{ a, b = Split<axis=0>(x) }}"
    made = lower(Case(kind, 17, text).model, target="openvino")
    readers = [node.op_type for node in made.graph.node if "x" in node.input]
    assert readers == ["Shape", "Split"]


def test_the_report_says_what_why_and_what_remains() -> None:
    report = lower_graph(onnx_model(BY_NAME["split13_int64"].model), "openvino")
    assert report.changes == []
    assert any("D16" in warning for warning in report.warnings)
    assert not any("D23" in note for note in report.notes)
    report = lower_graph(onnx_model(BY_NAME["captured_in_if"].model), "openvino")
    assert any("D23" in note for note in report.notes)
    assert [change.node for change in report.changes] == [
        "graph/SplitToSequence[0]",
        "graph/If[1].then_branch/SequenceAt[0]",
        "graph/If[1].else_branch/SequenceAt[0]",
    ]
    assert all(change.reason for change in report.changes)


def test_the_report_says_what_stays_of_a_split_that_can_not_be_checked() -> None:
    made = node("Split", "x", "a b", axis=1)
    whole = model(graph([made], [value("x", FLOAT, (2, "N", 4))], ["a", "b"]), 9)
    report = lower_graph(onnx_model(whole), "openvino")
    assert report.changes == []
    assert len(report.notes) == 1
    assert "uneven parts (D3)" in report.notes[0]


def test_the_report_says_which_split_has_more_axes() -> None:
    made = [node("Split", "x", "a b", axis=1), node("Split", "x", "c d e", axis=1)]
    whole = model(graph(made, [value("x", FLOAT, (2, "N", 4))], list("abcde")), 9)
    changes = lower_graph(onnx_model(whole), "onnxruntime").changes
    assert [change.became for change in changes] == ["Split of the data with more axes"]


@pytest.mark.parametrize(("length", "is_sliced"), [(1 << 20, True), ((1 << 20) + 1, False)])
def test_an_empty_constant_of_a_long_dimension_is_noted(length: int, is_sliced: bool) -> None:
    text = f"""<ir_version: 8, opset_import: ["": 18]> g (float[6,N] x) => (float[B,C] y)
        <float[0,{length}] w = {{}}> {{ y = MatMul(x, w) }}"""
    report = lower_graph(onnx_model(onnx.parser.parse_model(text)), "openvino")
    assert any(change.operator == "MatMul" for change in report.changes) is is_sliced
    assert any("without elements" in note for note in report.notes) is not is_sliced


def test_the_report_names_a_loop_that_carries_tensors_instead() -> None:
    changes = lower_graph(onnx_model(BY_NAME["loop_insert"].model), "openvino").changes
    became = [change.became for change in changes if change.operator == "Loop"]
    assert became == ["tensors in place of sequences"]


def test_a_constant_index_out_of_range_is_refused_with_the_node() -> None:
    text = BY_NAME["ones_keepdims"].text.replace("i2 = {-1}", "i2 = {3}")
    with refused("TS511", "graph/SequenceAt[2]", 3):
        lower(Case("out_of_range", 11, text).model, target="portable")


def test_a_position_in_an_empty_sequence_is_refused() -> None:
    text = "g (float[4] x) => (int64 n) { e = SequenceEmpty()  s = SequenceErase(e)"
    with refused("TS511", "graph/SequenceErase[1]"):
        lower(Case("empty", 13, f"{text}  n = SequenceLength(s) }}").model, target="portable")


@with_own("onnxruntime", "openvino")
@pytest.mark.parametrize("target", ["openvino", "portable"])
@pytest.mark.parametrize("dims", ["0,2", "0,M", "0,0"])
def test_the_first_tensor_of_an_empty_sequence_may_have_any_shape(
    dims: str, target: Any, engine: Any
) -> None:
    """Of a Split of nothing it is known how long its parts would be."""
    text = f"g (float[{dims}] x, float[A,5] w, int64 p) => (float[B,5] y) {{ s = SplitToSequence(x)"
    made = Case("first", 13, f"{text}  t = SequenceInsert(s, w, p)  y = SequenceAt(t, p) }}").model
    lowered = lower(made, target=target)
    x = np.zeros((0, 0 if dims == "0,0" else 2), np.float32)
    w = np.random.default_rng(6).random((3, 5), np.float32)
    for given in (w, w[:0]):
        found = run(lowered, {"x": x, "w": given, "p": np.array(0)}, engine=engine)
        np.testing.assert_array_equal(found["y"], given, strict=True)
    with pytest.raises(SplitError):
        run(lowered, {"x": x, "w": w, "p": np.array(1)}, engine=engine)


@pytest.mark.parametrize(
    ("tensor", "made"),
    [
        ("float[3]", "s = SplitToSequence(x)  t = SequenceInsert(s, w)"),
        ("float[3]", "s = SplitToSequence(x)  t = SequenceInsert(s, w, p)"),
        ("float[2,3]", "s = SplitToSequence<keepdims=0>(x)  t = SequenceInsert(s, w)"),
    ],
)
def test_a_tensor_of_another_rank_than_an_unknown_number_of_others_is_refused(
    tensor: str, made: str
) -> None:
    text = f"g (float[N,3] x, {tensor} w, int64 p) => (int64 n) {{ {made}  n = SequenceLength(t) }}"
    with refused("TS513", "SequenceInsert", "different ranks"):
        lower(Case("misfit", 13, text).model, target="portable")


@pytest.mark.parametrize("target", ["openvino", "portable"])
@pytest.mark.parametrize(
    ("x", "w"), [("float[]", "float[2,3]"), ("float[]", "float[]"), ("float[N,3]", "float[]")]
)
def test_a_tensor_of_a_rank_that_is_not_known_is_not_put_beside_others(
    x: str, w: str, target: Any
) -> None:
    text = f"g ({x} x, {w} w, int64 p) => (float[A,B] y) {{ s = SplitToSequence(x)"
    text += "  t = SequenceInsert(s, w)  y = SequenceAt(t, p) }"
    with refused("TS513", "graph/SequenceInsert[1]", "not known"):
        lower(Case("unranked", 13, text).model, target=target)


SEQUENCES_IN_BODIES = {
    "Loop": "Loop(trip, yes, s) <body = b (int64 i, bool c, seq(float[A,4]) p) => (bool d,"
    " seq(float[A,4]) q) { d = Identity(c)  a = SequenceAt(p, i)  q = SequenceInsert(p, a) }>",
    "If": "If(yes) <then_branch = t () => (seq(float[A,4]) p) { p = SequenceErase(s) },"
    " else_branch = e () => (seq(float[A,4]) q) { q = SequenceErase(s, trip) }>",
}


@with_own("onnxruntime")
@pytest.mark.parametrize("opset", [11, 12, 13])
@pytest.mark.parametrize("name", SEQUENCES_IN_BODIES)
def test_before_opset_13_no_sequence_goes_into_a_body(name: str, opset: int, engine: Any) -> None:
    text = "g (float[N,4] x) => (float[M,4] y) <int64 trip = {2}, bool yes = {1}>"
    text += f" {{ s = SplitToSequence(x)  t = {SEQUENCES_IN_BODIES[name]}"
    text += "  y = ConcatFromSequence<axis=0>(t) }"
    case = Case(name, opset, text)
    made = lower(case.model, target="onnxruntime")
    onnx.checker.check_model(made, full_check=True)
    x = case.inputs()["x"]
    expected = np.concatenate([x, x[:2]]) if name == "Loop" else x[:-1]
    assert np.array_equal(run(made, {"x": x}, engine=engine)["y"], expected)


def test_a_loop_gives_its_rows_beside_a_sequence_that_it_carries() -> None:
    made = parse_model(
        """<ir_version: 8, opset_import: ["" : 18]>
        g (float[3] x, int64 n) => (float[M] y, float[K,1] u, float[L,1] v) {
            yes = Constant<value = bool {1}>()
            s = SplitToSequence(x)
            t, u, v = Loop(n, yes, s) <body = b (int64 i, bool c, seq(float[1]) p)
                => (bool d, seq(float[1]) q, float[1] taken, float[1] negative) {
                d = Identity(c) q = Identity(p) taken = SequenceAt(p, i) negative = Neg(taken) }>
            y = ConcatFromSequence<axis = 0>(t)
        }"""
    )
    lowered = lower(made, target="portable")
    assert "SplitToSequence" not in {node.op_type for node in lowered.graph.node}
    x = np.random.default_rng(8).uniform(1, 2, 3).astype(np.float32)
    found = run(lowered, {"x": x, "n": np.array(2)})
    assert found["y"].tolist() == x.tolist()
    assert found["u"].tolist() == x[:2, None].tolist()
    assert found["v"].tolist() == (-x[:2, None]).tolist()


OWN_AND_OPENVINO = ["tensorsplit", pytest.param("openvino", marks=_marks("openvino"))]


@pytest.mark.parametrize("engine", OWN_AND_OPENVINO)
@pytest.mark.parametrize("dim", ["7", "N"])
@pytest.mark.parametrize("opset", [2, 5, 6, 8, 9, 10, 11, 12])
def test_strings_at_old_opsets_are_split_right_or_refused(
    opset: int, dim: str, engine: Any
) -> None:
    """OpenVINO's Split of strings ends the process (D17)."""
    text = f"g (string[{dim},4] x) => (string[3,4] a, string[4,4] b)"
    case = Case("strings", opset, f"{text} {{ a, b = Split<axis=0, split=[3,4]>(x) }}")
    if opset < 6 or (dim == "N" and opset < 10):
        with refused("TS513", f"opset {opset}", "convert to opset"):
            lower(case.model, target="openvino")
        return
    made = lower(case.model, target="openvino")
    onnx.checker.check_model(made, full_check=True)
    x = case.inputs()["x"]
    found = run(made, {"x": x}, engine=engine)
    assert np.array_equal(found["a"], x[:3])
    assert np.array_equal(found["b"], x[3:])
    for wrong in (x[:6], np.concatenate([x, x])):
        with pytest.raises(SplitError):
            run(made, {"x": wrong}, engine=engine)


@pytest.mark.parametrize("engine", OWN_AND_OPENVINO)
@pytest.mark.parametrize("opset", [6, 8, 9, 10, 11])
def test_a_part_of_strings_may_be_empty_at_every_opset(opset: int, engine: Any) -> None:
    """OpenVINO reads a constant without elements as one number."""
    text = "g (string[4,2] x) => (string[0,2] a, string[4,2] b, string[0,2] c)"
    case = Case("strings", opset, f"{text} {{ a, b, c = Split<axis=0, split=[0,4,0]>(x) }}")
    made = lower(case.model, target="openvino")
    onnx.checker.check_model(made, full_check=True)
    x = case.inputs()["x"]
    found = run(made, {"x": x}, engine=engine)
    assert found["a"].shape == found["c"].shape == (0, 2)
    assert np.array_equal(found["b"], x)


@pytest.mark.parametrize("engine", OWN_AND_OPENVINO)
@pytest.mark.parametrize("dim", ["5", "N"])
@pytest.mark.parametrize("opset", [8, 9, 10, 11])
def test_strings_at_old_opsets_are_passed_on_or_refused(opset: int, dim: str, engine: Any) -> None:
    """They are gathered, by places that a Range or, before it, what is not 0 of ones gives."""
    model = Case("strings", opset, f"g (string[{dim}] x) => (string[M] y) {{ y = Identity(x) }}")
    if dim == "N" and opset < 9:
        with refused("TS513", f"opset {opset}", "convert to opset"):
            lower(model.model, target="openvino")
        return
    made = lower(model.model, target="openvino")
    onnx.checker.check_model(made, full_check=True)
    x = np.array(["a", "", "bc", "d", "e"], object)
    assert np.array_equal(run(made, {"x": x}, engine=engine)["y"], x)


@pytest.mark.parametrize(
    "text",
    [
        """r = If(b) <then_branch = t () => (p) { p = Identity(s) },
        else_branch = e () => (w) { w = Identity(q) }> y = ConcatFromSequence<axis = 0>(r)""",
        """r = If(b) <then_branch = t () => (p) { p = other.Make(x) },
        else_branch = e () => (w) { w = SplitToSequence(x, k) }> y = other.Use(r)""",
        """r = Loop(k, , s) <body = b (int64 i, bool c, t) => (d, u) { d = Identity(c)
        u = Identity(q) }> y = other.Use(r)""",
    ],
)
def test_a_sequence_that_meets_one_of_an_unknown_operator_is_refused(text: str) -> None:
    model = parse_model(f"""<ir_version: 8, opset_import: ["": 18, "other": 1]>
        g (float[4] x, int64 k, bool b) => (y) {{ s = other.Make(x) q = SplitToSequence(x, k)
        {text} }}""")
    with refused("TS513", "a sequence comes from an operator that can't be lowered"):
        lower(model, target="portable")


def test_a_sequence_that_leaves_the_model_is_refused_with_the_reason() -> None:
    with refused("TS513", "graph", "a sequence is an output"):
        lower(BY_NAME["sequence_output"].model, target="openvino")


@pytest.mark.parametrize("lengths", ["fixed", "fed"])
def test_a_sequence_that_leaves_the_model_is_of_a_type_that_others_make(lengths: str) -> None:
    fed = "" if lengths == "fixed" else ", int64[P] l"
    made = "l = Constant <value_ints = [2, 4]> ()" if lengths == "fixed" else ""
    text = f"g (bfloat16[6, 4] x{fed}) => (seq(bfloat16[M, 4]) s)"
    case = Case(lengths, 24, f"{text} {{ {made} s = SplitToSequence(x, l) }}")
    with refused("TS513", "the output 's' is seq(tensor(bfloat16))", "cast the tensor"):
        lower(case.model, target="onnxruntime")


def test_nodes_of_one_graph_have_names_of_their_own_for_onnxruntime() -> None:
    made = ir.serde.deserialize_model(
        lower(BY_NAME["nodes_of_one_name"].model, target="onnxruntime")
    )
    for scope in scopes(made):
        names = [node.name for node in scope]
        assert len(set(names)) == len(names)
    report = lower_graph(onnx_model(BY_NAME["nodes_of_one_name"].model), "onnxruntime")
    assert [change.node for change in report.changes] == [
        "graph/n[1]",
        "graph/n_1.then_branch/k[1]",
    ]


@pytest.mark.parametrize("target", ["openvino", "portable"])
@pytest.mark.parametrize(
    ("taken", "first"), [(1, "keepdims=0"), (1, "keepdims=1"), (0, "keepdims=1")]
)
def test_a_branch_that_is_never_taken_may_hold_sequences_of_another_kind(
    taken: int, first: str, target: Any
) -> None:
    text = (
        "g (float[3,N,2] x, bool yes, int64 i) => (float[A,B,C] y, int64 n) <bool always = {%d}>"
        " { t = If(always) <then_branch = t () => (seq(float[A,B,C]) a) <int64 c = {3}>"
        " { a = SplitToSequence<axis=2>(x, c) }, else_branch = e () => (seq(float[D,E]) a)"
        " { a = SplitToSequence<axis=0, %s>(x) }>"
        " s = If(yes) <then_branch = u () => (seq(float[A,B,C]) b) { b = Identity(t) },"
        " else_branch = f () => (seq(float[A,B,C]) b) { b = SequenceInsert(t, x) }>"
        " n = SequenceLength(s)  y = SequenceAt(s, i) }"
    )
    model = Case("branch", 17, text % (taken, first)).model
    before = model.SerializeToString()
    lowered = lower(model, target=target)
    assert model.SerializeToString() == before
    onnx.checker.check_model(lowered, full_check=True)
    x = np.arange(30, dtype=np.float32).reshape(3, 5, 2)
    for yes in (True, False):
        fed = {"x": x, "yes": np.array(yes), "i": np.array(0)}
        found, expected = run(lowered, fed), run(model, fed)
        assert found["n"] == expected["n"] == (1 if taken else 3) + (not yes)
        np.testing.assert_array_equal(found["y"], x if taken else x[:1])


@pytest.mark.parametrize("opset", [11, 13, 14])
@pytest.mark.parametrize("shape", [(2, 1, 0, 3), (2, 2, 0, 3), (0, 2, 2, 3), (2, 3, 2, 0)])
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_parts_without_elements_are_joined_along_each_axis(
    axis: int, shape: tuple[int, ...], opset: int
) -> None:
    """Before opset 14 a Reshape takes a 0 for the dimension that the data has in that place."""
    text = (
        "g (float[K,A,B,N] x) => (float[P,Q,R] y) { s = SplitToSequence<axis=1, keepdims=0>(x)"
        " y = ConcatFromSequence<axis=%d>(s) }"
    )
    model = Case("joined", opset, text % axis).model
    x = np.random.default_rng(1).random(shape, np.float32)
    parts = [x[:, place] for place in range(shape[1])]
    for target in ("openvino", "portable"):
        found = run(lower(model, target=target), {"x": x})["y"]
        np.testing.assert_array_equal(found, np.concatenate(parts, axis), strict=True)


@with_own("openvino")
@pytest.mark.parametrize(
    ("nodes", "shape"),
    [
        ("p, q = Split(x, l) y = Transpose<perm = [1, 0]>(p)", (1, 0)),
        ("p, q = Split(x, l) n = Neg(p) y = Transpose<perm = [1, 0]>(n)", (1, 0)),
        ('p, q = Split(x, l) y = Einsum<equation = "ij->ji">(p)', (1, 0)),
        ("y = Transpose<perm = [1, 0]>(e)", (1, 0)),
    ],
    ids=["a part", "what follows from a part", "an Einsum", "a constant"],
)
def test_what_follows_from_empty_constants_is_moved_as_it_is(
    nodes: str, shape: tuple[int, ...], engine: Any
) -> None:
    """OpenVINO calculates it before; by a shape that it can't see it has no memory for it."""
    model = parse_model(
        f"""<ir_version: 8, opset_import: ["": 13]> g () => (float[A, B] y)
        <float[2, 1] x = {{8, 9}}, float[0, 1] e = {{}}, int64[2] l = {{0, 2}}> {{ {nodes} }}"""
    )
    found = run(lower(model, target="openvino"), {}, engine=engine)["y"]
    np.testing.assert_array_equal(found, np.zeros(shape, np.float32), strict=True)


@pytest.mark.parametrize("target", ["openvino", "portable", "onnxruntime"])
@pytest.mark.parametrize(
    "graph",
    [
        "g (float[4] k, bool c) => (float[4] out, float[4] y) { out, y = l.F(k, c) }",
        "g (float[4] x, bool c) => (float[4] k, float[4] y) { k, y = l.F(x, c) }",
    ],
    ids=["what is passed", "an output"],
)
def test_no_initializer_in_a_body_hides_a_value_of_the_call(target: Any, graph: str) -> None:
    """Where the call stands, a value has the name that the function's body gives to its own."""
    text = (
        f'{graph} <domain: "l", opset_import: ["": 17]> F (v, c) => (r, y)'
        " { r = Neg(v) s = SplitToSequence(v) n = ConcatFromSequence<axis=0>(s) y = If(c)"
        " <then_branch = a () => (float[4] z) <float[1] k = {10}>"
        " { t = Sub(v, r) z = Add(t, k) },"
        " else_branch = b () => (float[4] w) { w = Identity(n) }> }"
    )
    model = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["": 17, "l": 1]> {text}')
    before, x = model.SerializeToString(), np.random.default_rng(2).random(4, np.float32)
    lowered = lower(model, target=target)
    assert model.SerializeToString() == before
    for c, expected in ((True, x + x + 10), (False, x)):
        first, second = run(lowered, {graph[12]: x, "c": np.array(c)}).values()
        np.testing.assert_array_equal(first, -x, strict=True)
        np.testing.assert_array_equal(second, expected, strict=True)


MALFORMED = {
    "SequenceAt": "s = SplitToSequence(x)  y = SequenceAt(s)",
    "SequenceInsert": "s = SplitToSequence(x)  y = SequenceInsert(s)",
    "SequenceLength": "y = SequenceLength()",
    "ConcatFromSequence": "s = SplitToSequence(x)  y = ConcatFromSequence(s)",
    "ConcatFromSequence[1]": "s = SplitToSequence(x)  y = ConcatFromSequence<axis=3>(s)",
    "SequenceConstruct": "s = SplitToSequence(x)  r = SequenceConstruct(s, s)"
    "  y = SequenceLength(r)",
    "SequenceErase": "s = SequenceErase(x)  y = SequenceLength(s)",
    "Loop": "s = SplitToSequence(x)  k = Constant<value_int = 1>()  y = Loop(k, , s)",
    "If": "s = If(yes) <then_branch = t () => (seq(uint8[A]) a) { a = SplitToSequence(x) },"
    " else_branch = e () => (uint8[A,1] b) { b = Identity(x) }>  y = SequenceLength(s)",
    "If[0]": "s = If(yes) <then_branch = t () => (seq(uint8[A]) a) { a = SplitToSequence(x) },"
    " else_branch = e () => () { b = SplitToSequence(x) }>  y = SequenceLength(s)",
}


@pytest.mark.parametrize("name", MALFORMED)
@pytest.mark.parametrize("target", ["onnxruntime", "portable"])
def test_a_malformed_node_on_sequences_is_refused_with_its_path(name: str, target: Any) -> None:
    text = f"g (uint8[N,1] x, bool yes) => (uint8[A,B] y) {{ {MALFORMED[name]} }}"
    with refused("TS502", f"graph/{name}"):
        lower(Case("malformed", 17, text).model, target=target)


ON_JOINS = "node 'graph/ConcatFromSequence[1]': a loop carries strings"
NO_WAY = {
    "(optional(float[2]) o) => (float[2] y) { y = OptionalGetElement(o) }": "only at run time",
    "(float[2] x) => (optional(float[2]) o) { o = Optional(x) }": "an output",
    "(optional(float[2]) o) => (float[2] y) { p = Identity(o)  y = OptionalGetElement(p) }": (
        "only at run time"
    ),
    "() => (float[2] y) { o = Optional<type = float[2]>()  y = OptionalGetElement(o) }": "has none",
    "(string[2] x, int64 n) => (string[2] y) { y = Loop(n, , x) <body = b (int64 i, bool c,"
    " string[2] p) => (bool d, string[2] q) { d = Identity(c)  q = Identity(p) }> }": "strings",
    "(string[2] x) => (string[2] y) { y = Scan<num_scan_inputs = 1, body = b (string p) => (string"
    " q) { q = Identity(p) }>(x) }": "strings",
    "(float[N,2] x, string[K] s) => (int64[N,1] y) { y = Scan<num_scan_inputs = 1, body = b"
    " (float[2] r) => (int64[1] q) { q = Shape(s) }>(x) }": "a loop carries strings",
    "(string[N,M] x, int64 k) => (string[A,B] y) { s = SplitToSequence<axis = 0>(x, k)"
    "  y = ConcatFromSequence<axis = 1>(s) }": ON_JOINS,
    "(string[N,M] x, int64[L] k) => (string[A,B] y) { s = SplitToSequence<axis = 1>(x, k)"
    "  y = ConcatFromSequence<axis = 0>(s) }": ON_JOINS,
}


@pytest.mark.parametrize("text", NO_WAY)
def test_what_openvino_has_no_way_for_is_refused_with_the_reason(text: str) -> None:
    with refused("TS513", NO_WAY[text]):
        lower(Case("no_way", 18, f"g {text}").model, target="openvino")


@pytest.mark.parametrize("target", ["openvino", "portable"])
def test_an_optional_value_that_is_passed_on_is_left_out(target: Any) -> None:
    """Also one that nothing reads."""
    text = """g (float[2] x, bool yes) => (float[2] y, bool a) { o = Optional(x)  p = Identity(o)
        q = Identity(p)  a = OptionalHasElement(p)  y = If(yes) <then_branch = t () => (float[2] t)
        { r = Identity(q)  t = OptionalGetElement(r)  u = Optional(x)  v = Identity(u) },
        else_branch = e () => (float[2] e) { e = Neg(x) }> }"""
    model = Case("passed", 18, text).model
    lowered = lower(model, target=target)
    onnx.checker.check_model(lowered, full_check=True)
    assert "Optional" not in [each.op_type for each in nodes_of(lowered.graph)]
    feeds = {"x": np.array([1, 2], np.float32), "yes": np.array(True)}
    assert run(lowered, feeds)["y"].tolist() == run(model, feeds)["y"].tolist() == [1, 2]
    assert run(lowered, feeds)["a"]


CARRIED = """
    <ir_version: 8, opset_import: ["": 13]>
    g (float[4] x, int64 n) => (TYPE[?] y) {
        t = Constant<value = bool {1}>()
        q = SplitToSequence(x)
        o, y = Loop(n, t, q) <body = b (int64 i, bool c, seq(float[?]) s)
            => (bool go, seq(float[?]) longer, TYPE r) {
            go = Identity(c)
            longer = SequenceInsert(s, x)
            RESULT
        }>
    }"""
CARRIES: dict[str, tuple[str, str, list[float]]] = {
    "length": ("int64", "r = SequenceLength(s)", [4, 5, 6]),
    "elements": (
        "float",
        "j = ConcatFromSequence<axis = 0>(s)  r = ReduceSum<keepdims = 0>(j)",
        [6.0, 12.0, 18.0],
    ),
}


@with_own("onnxruntime", "openvino")
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", CARRIES)
def test_a_sequence_that_a_loop_carries_and_nothing_uses_keeps_its_parts(
    name: str, target: Any, engine: Any
) -> None:
    """OpenVINO takes the shape of what is carried at the start for that of each round."""
    kind, result, rows = CARRIES[name]
    model = onnx.parser.parse_model(CARRIED.replace("TYPE", kind).replace("RESULT", result))
    made = lower(model, target=target)
    onnx.checker.check_model(made, full_check=True)
    assert lower(made, target=target) == made
    for count in (0, 1, 3):
        feeds = {"x": np.arange(4, dtype=np.float32), "n": np.array(count)}
        if engine in ("tensorsplit", target) or target == "portable":
            assert run(made, feeds, engine=engine)["y"].tolist() == rows[:count]


@with_own("openvino")
def test_a_tensor_that_a_loop_carries_and_nothing_uses_is_checked_and_used(engine: Any) -> None:
    model = onnx.parser.parse_model("""
        <ir_version: 8, opset_import: ["": 13]>
        g (float[2] x) => (int64 a, int64[?] y) {
            n = Constant<value = int64 {3}>()
            k = Constant<value = int64 {7}>()
            z, a, w, y = Loop(n, "", x, k, x) <body = b
                (int64 i, bool c, float[?] s, int64 k1, float[2] u)
                => (bool go, float[?] t, int64 k2, float[2] u2, int64 r) {
                go = Identity(c)
                t = Concat<axis = 0>(s, s)
                k2 = Identity(k1)
                u2 = Identity(u)
                r = Size(s)
            }>
        }""")
    found = [f for f in check(model, target="openvino") if "afterwards" in f.message]
    assert [(f.code, f.node) for f in found] == [("TS843", "graph/Loop[2]")]
    made = lower(model, target="openvino")
    assert [node.op_type for node in made.graph.node][3:].count("Where") == 1  # u stays as it is
    onnx.checker.check_model(made, full_check=True)
    got = run(made, {"x": np.ones(2, np.float32)}, engine=engine)
    assert (got["a"].tolist(), got["y"].tolist()) == (7, [2, 4, 8])
    assert lower(model, target="onnxruntime") == model


@with_own("openvino")
def test_a_loop_at_an_opset_where_no_integers_are_compared_is_converted_first(engine: Any) -> None:
    model = onnx.parser.parse_model("""
        <ir_version: 7, opset_import: ["": 8]>
        g (float[2] x) => (int64[?] y) <int64 n = {3}> {
            z, y = Loop(n, "", x) <body = b (int64 i, bool c, float[?] s)
                => (bool go, float[?] t, int64 r) {
                go = Identity(c)
                t = Concat<axis = 0>(s, s)
                r = Size(s)
            }>
        }""")
    assert "integers can't be compared before opset 9 " in check(model, target="openvino")[-1].fix
    assert lower(model, target="openvino") == model
    made = lower(convert(model, opset=13), target="openvino")
    assert check(made, target="openvino") == []
    got = run(made, {"x": np.ones(2, np.float32)}, engine=engine)
    assert got["y"].tolist() == [2, 4, 8]


@pytest.mark.parametrize("target", ["onnxruntime", "portable"])
def test_axes_of_squeeze_are_put_in_order_before_opset_11(target: Any) -> None:
    """Onnxruntime infers as onnx does, and refuses the Split behind axes in another order."""
    model = onnx.parser.parse_model("""
        <ir_version: 7, opset_import: ["": 10]>
        g (float[1, 4, 1] x) => (float[?] a, float[?] b) {
            y = Squeeze<axes = [2, 0]>(x)
            a, b = Split<split = [1, 3]>(y)
        }""")
    assert any("in order" in finding.message for finding in check(model, target=target))
    made = lower(model, target=target)
    onnx.checker.check_model(made, full_check=True)
    x = np.arange(4, dtype=np.float32)
    assert list(made.graph.node[0].attribute[0].ints) == [0, 2]
    got = run(made, {"x": x.reshape(1, 4, 1)})
    assert (got["a"].tolist(), got["b"].tolist()) == ([0], [1, 2, 3])
    assert check(made, target=target) == []
    assert lower(model, target="openvino") == model


@with_own("onnxruntime")
@pytest.mark.parametrize("target", ["onnxruntime", "portable"])
@pytest.mark.parametrize(
    ("shape", "node", "axes", "axis"),
    [
        ("1, 4, 1", "Squeeze<axes = [-1, 0]>", [0, 2], 0),
        ("4, 1", "Squeeze<axes = [-1]>", [1], -1),
        ("4", "Unsqueeze<axes = [-1]>", [1], 0),
        ("4", "Unsqueeze<axes = [0, -1]>", [0, 2], 1),
    ],
)
def test_axes_are_counted_from_the_front_before_opset_11(
    target: Any, shape: str, node: str, axes: list[int], axis: int, engine: Any
) -> None:
    """Onnxruntime infers as onnx does, and takes axes from the back for others."""
    model = onnx.parser.parse_model(f"""
        <ir_version: 7, opset_import: ["": 9]>
        g (float[{shape}] x) => (float[K] a, float[L] b) {{
            y = {node}(x)
            p, q = Split<axis = {axis}, split = [1, 3]>(y)
            a = Reshape(p, flat)
            b = Reshape(q, flat)
        }}""")
    model.graph.initializer.append(onnx.numpy_helper.from_array(np.array([-1]), "flat"))
    assert any("from the back" in finding.message for finding in check(model, target=target))
    made = lower(model, target=target)
    onnx.checker.check_model(made, full_check=True)
    assert list(made.graph.node[0].attribute[0].ints) == axes
    x = np.arange(1, 5, dtype=np.float32).reshape(*map(int, shape.split(",")))
    got = run(made, {"x": x}, engine=engine)
    assert (got["a"].tolist(), got["b"].tolist()) == ([1], [2, 3, 4])
    assert not any("from the back" in finding.message for finding in check(made, target=target))


@pytest.mark.parametrize(("shape", "axis"), [("", -1), ("4, 1", -3)])
def test_axes_from_the_back_of_an_unknown_rank_stay_and_those_that_there_are_not(
    shape: str, axis: int
) -> None:
    model = onnx.parser.parse_model(f"""
        <ir_version: 7, opset_import: ["": 9]>
        g (float[{shape}] x) => (float[] y) {{ y = Squeeze<axes = [{axis}]>(x) }}""")
    assert check(model, target="onnxruntime") == []
    assert lower(model, target="onnxruntime") == model


def test_what_a_model_is_lowered_to_is_not_looked_for_in_its_file(tmp_path: Path) -> None:
    """Else an engine would run the model of the file to verify it."""
    source = onnx.parser.parse_model("""<ir_version: 8, opset_import: ["": 13]>
        g (float[4] x) => (float[2] a, float[2] b) { a, b = Split<axis = -1>(x) }""")
    onnx.save(source, tmp_path / "m.onnx")
    with lowered_model(read_model(tmp_path / "m.onnx"), "portable").read() as made:
        assert made.path is None
        assert made.original != source


FORMS = {
    "value_ints": ("[1, 5]", "int64[2]", [1, 5]),
    "value_floats": ("[1.5, -2.0]", "float[2]", [1.5, -2.0]),
    "value_int": ("7", "int64", 7),
    "value_float": ("0.5", "float", 0.5),
    "value_strings": ('["a", "bc"]', "string[2]", ["a", "bc"]),
    "value_string": ('"word"', "string", "word"),
}
"""Attributes of Constant: a value of each as it is written, its type, and what comes out."""


@with_own("openvino")
@pytest.mark.parametrize("target", ["openvino", "portable"])
@pytest.mark.parametrize("opset", [12, 13])
@pytest.mark.parametrize("form", FORMS)
def test_a_constant_gives_a_tensor_where_openvino_reads_nothing_else(
    form: str, opset: int, target: Any, engine: Any
) -> None:
    """Before opset 13 it reads no other attribute than `value`, and no strings at any opset."""
    written, declared, wanted = FORMS[form]
    made = parse_model(f"""
        <ir_version: 7, opset_import: ["": {opset}]>
        g (float[3] x) => (float[3] y, {declared} c) {{
            y = Neg(x)
            c = Constant<{form} = {written}>()
        }}""")
    is_unread = opset == 12 or (target == "openvino" and "string" in form)
    codes = {(finding.code, finding.node) for finding in check(made, target=target)}
    assert codes == ({("TS841", "graph/Constant[1]")} if is_unread else set())
    lowered = lower(made, target=target)
    attributes = [held.name for held in lowered.graph.node[1].attribute]
    assert attributes == ["value" if is_unread else form]
    onnx.checker.check_model(lowered, full_check=True)
    assert check(lowered, target=target) == []
    if target == "openvino" or opset == 12:
        got = run(lowered, {"x": np.ones(3, np.float32)}, engine=engine)
        assert got["c"].tolist() == wanted
    if engine == target and is_unread:
        with pytest.raises(SplitError, match="TS603"):
            run(made, {"x": np.ones(3, np.float32)}, engine=engine)


@pytest.mark.parametrize("count", [1, 40])
def test_a_constant_that_only_unused_nodes_read_stays(count: int) -> None:
    """However many there are between: lowering makes more of them."""
    names = ["c", *(f"n{index}" for index in range(count))]
    unused = " ".join(f"{two} = Neg({one})" for one, two in pairwise(names))
    made = parse_model(f"""
        <ir_version: 7, opset_import: ["": 12]>
        g (float[3] x) => (float[3] y) {{ c = Constant<value_ints = [1]>() {unused} y = Neg(x) }}
        """)
    assert check(made, target="openvino") == []
    assert lower(made, target="openvino") == made


def test_a_constant_in_a_form_that_openvino_does_not_read_is_no_matter_if_nothing_uses_it() -> None:
    made = parse_model("""
        <ir_version: 7, opset_import: ["": 12]>
        g (float[3] x) => (float[3] y) {
            c = Constant<value_floats = [1.0, 2.0, 3.0]>()
            d = Neg(c)
            y = Neg(x)
        }""")
    assert check(made, target="openvino") == []
    assert lower(made, target="openvino") == made


def test_a_sparse_constant_becomes_a_dense_one_before_opset_13_for_openvino() -> None:
    held = onnx.helper.make_tensor("v", onnx.TensorProto.FLOAT, [2], [3.5, -1.25])
    where = onnx.helper.make_tensor("i", onnx.TensorProto.INT64, [2], [1, 4])
    sparse = onnx.helper.make_sparse_tensor(held, where, [6])
    nodes = [
        onnx.helper.make_node("Constant", [], ["c"], sparse_value=sparse),
        onnx.helper.make_node("Split", ["c"], ["a", "b"]),
    ]
    ends = [onnx.helper.make_tensor_value_info(name, 1, [3]) for name in "ab"]
    imports = [onnx.helper.make_opsetid("", 11)]
    body = onnx.helper.make_graph(nodes, "g", [], ends)
    made = onnx.helper.make_model(body, opset_imports=imports, ir_version=7)
    assert [finding.code for finding in check(made, target="openvino")] == ["TS841"]
    lowered = lower(made, target="openvino")
    (attribute,) = lowered.graph.node[0].attribute
    assert onnx.numpy_helper.to_array(attribute.t).tolist() == [0, 3.5, 0, 0, -1.25, 0]
    assert check(lowered, target="openvino") == []


def test_an_unknown_target_is_refused() -> None:
    with refused("TS601", "nothing", "openvino"):
        lower(BY_NAME["split2"].model, target="nothing")  # type: ignore[call-overload]


def test_equal_parts_along_an_axis_of_the_caller_in_a_function_of_another_opset() -> None:
    """The second call gives no axis, and the function has no default: it is 0."""
    text = """<ir_version: 10, opset_import: ["": 18, "local": 1]>
        g (float[M, N] x) => (float[?, ?] a, float[?, ?] b) {
            a, s = local.F<at=1>(x)
            t, b = local.F(x)
        }
        <opset_import: ["": 13], domain: "local">
        F<at>(x) => (p, q) { p, q = Split<axis: int = @at>(x) }"""
    model = onnx.parser.parse_model(text)
    x = np.arange(24, dtype=np.float32).reshape(4, 6)
    made = lower(model, target="portable")
    assert not made.functions
    outputs = run(made, {"x": x})
    assert outputs["a"].tolist() == x[:, :3].tolist()
    assert outputs["b"].tolist() == x[2:].tolist()
    with refused("TS302", "[2, 2] sums to 4, but the dimension is 5"):
        run(made, {"x": x[:, :5]})


def _with_function(imports: str, opset: int, body: str) -> onnx.ModelProto:
    """A model that calls a function of two outputs."""
    return onnx.parser.parse_model(
        f"""<ir_version: 10, opset_import: [{imports}"c": 1]>
        g (float[M, 4] x) => (float[?, ?] y, float[?, ?] z) {{ y, z = c.F(x) }}
        <domain: "c", opset_import: ["": {opset}]> F (a) => (d, e) {{ {body} }}"""
    )


@pytest.mark.parametrize("target", TARGETS)
def test_a_function_of_another_opset_is_converted(target: Any) -> None:
    model = _with_function(
        '"": 18, ',
        12,
        """b, e = Split(a)
        c = ReduceMax<axes: ints = [1], keepdims: int = 0>(b)
        d = Unsqueeze<axes: ints = [0]>(c)""",
    )
    x = np.random.default_rng(7).random((6, 4), np.float32)
    made = lower(model, target=target)
    onnx.checker.check_model(made, full_check=True)
    outputs = run(made, {"x": x})
    assert outputs["y"].tolist() == [x[:3].max(axis=1).tolist()]
    assert outputs["z"].tolist() == x[3:].tolist()


def test_a_function_stays_where_it_is_enough_to_convert_it() -> None:
    made = lower(
        _with_function('"": 18, ', 13, "d, e = Split<axis: int = 1>(a)"), target="onnxruntime"
    )
    assert [entry.version for entry in made.functions[0].opset_import] == [18]
    assert [node.op_type for node in made.graph.node] == ["F"]


SPLITS_BEFORE_10 = {
    "Split<axis = -1, split = [0, 4]>(x)": (1, [0, 4]),
    "Split<axis = -1, split = [3, 1]>(x)": (1, [3, 1]),
    "Split<axis = -2, split = [2, 0]>(x)": (0, [2, 0]),
    "org.openvinotoolkit.VariadicSplit(x, i, l)": (1, [3, 4]),
}
"""Each with the axis from the front, and the lengths."""


@pytest.mark.parametrize("node", SPLITS_BEFORE_10)
def test_before_opset_10_lengths_are_an_attribute(node: str) -> None:
    """Nothing computes them, or compares them with a dimension that is known at run time only."""
    text = '<ir_version: 8, opset_import: ["" : 8, "org.openvinotoolkit" : 1]>'
    text += " g (float[2, N] x) => (float[2, A] a, float[2, B] b)"
    text += f" <int64 i = {{-1}}, int64[2] l = {{3, 4}}> {{ a, b = {node} }}"
    (made,) = lower(parse_model(text), target="portable").graph.node
    held = {each.name: onnx.helper.get_attribute_value(each) for each in made.attribute}
    axis, lengths = SPLITS_BEFORE_10[node]
    assert (made.op_type, held) == ("Split", {"axis": axis, "split": lengths})


def _before_10(part: str) -> onnx.ModelProto:
    text = '<ir_version: 8, opset_import: ["" : 8, "org.openvinotoolkit" : 1]>'
    text += " g (float[N] x) => (float[A] a) <int64 i = {0}, int64[2] l = {3, -1}>"
    return parse_model(f"{text} {{ {part} }}")


def test_before_opset_10_the_rest_of_a_dimension_can_not_be_calculated() -> None:
    with refused("TS513", "graph/VariadicSplit[0]"):
        lower(_before_10("a, b = org.openvinotoolkit.VariadicSplit(x, i, l)"), target="portable")


@with_own("onnxruntime")
@pytest.mark.parametrize("target", ["onnxruntime", "portable"])
@pytest.mark.parametrize("axis", [0, -2])
@pytest.mark.parametrize("opset", [6, 9])
def test_before_opset_10_halves_and_thirds_of_one_tensor_are_told_apart(
    opset: int, axis: int, target: Any, engine: Any
) -> None:
    """Onnxruntime takes the three nodes for one: it compares inputs and attributes, not outputs."""
    made = onnx.parser.parse_model(f"""
        <ir_version: 8, opset_import: ["": {opset}]> g (float[N, 2] x)
        => (float[N, 2] whole, float[H, 2] half, float[T, 2] third, float[T, 2] other) {{
            a = Split<axis = {axis}>(x) b, c = Split<axis = {axis}>(x)
            d, e, f = Split<axis = {axis}>(x) g, h, i = Split<axis = {axis}>(x)
            whole = Neg(a) half = Neg(c) third = Neg(f) other = Neg(g)
        }}""")
    lowered = lower(made, target=target)
    assert lower(lowered, target=target) == lowered
    left = [each for each in check(lowered, target=target) if each.code == "TS843"]
    assert all("no node can check the lengths" in each.message for each in left)
    x = np.random.default_rng(5).uniform(1, 2, (6, 2)).astype(np.float32)
    given = run(lowered, {"x": x}, engine=engine)
    expected = {"whole": x, "half": x[3:], "third": x[4:], "other": x[:2]}
    assert {name: each.tolist() for name, each in given.items()} == {
        name: (-each).tolist() for name, each in expected.items()
    }


def test_before_opset_10_a_split_with_an_attribute_stays_as_it_is() -> None:
    for attributes in ("axis = 0, split = [3, 4]", "split = [3, 4]"):
        model = _before_10(f"a, b = Split<{attributes}>(x)")
        assert lower(model, target="portable").graph == model.graph
    model = _before_10("a, b = Split<split = [3, 4]>(x)")
    model.graph.node[0].output[1] = ""
    (made,) = lower(model, target="portable").graph.node
    assert all(made.output)


def test_a_negative_axis_is_counted_from_the_front_or_refused() -> None:
    """Where the rank is not known, only for a target that takes none."""
    made = model(graph([node("Split", "x", "a b", axis=-1)], [value("x")], ["a", "b"]), 11)
    with refused("TS513", "the axis is -1, and the rank of the data is not known"):
        lower(made, target="portable")
    assert lower(made, target="onnxruntime") == made


def test_what_is_not_expressible_at_the_opset_of_the_model_is_refused() -> None:
    body = 'd, e = Split(a) o = Einsum<equation: string = "ij->ji">(a)'
    with refused("TS512", "Einsum", "function c::F/Einsum"):
        lower(_with_function('"": 18, ', 10, body), target="openvino")


@pytest.mark.parametrize("target", TARGETS)
def test_a_graph_without_nodes_of_its_own_domain_gets_the_opset_of_its_functions(
    target: Any,
) -> None:
    model = _with_function("", 13, "d, e = Split<axis: int = 1>(a)")
    x = np.random.default_rng(8).random((3, 4), np.float32)
    outputs = run(lower(model, target=target), {"x": x})
    assert outputs["y"].tolist() == x[:, :2].tolist()
    assert outputs["z"].tolist() == x[:, 2:].tolist()


def test_a_graph_gets_the_newest_opset_of_its_functions_and_keeps_its_ir_version() -> None:
    model = _with_function("", 13, "d, e = Split<axis: int = 1>(a)")
    older = model.functions.add()
    older.CopyFrom(model.functions[0])
    older.name, older.opset_import[0].version = "Older", 11
    made = lower(model, target="portable")
    assert {entry.domain: entry.version for entry in made.opset_import} == {"": 13, "c": 1}
    assert made.ir_version == 10


@pytest.mark.parametrize("target", TARGETS)
def test_a_graph_of_nothing_but_variadic_splits_gets_an_opset(target: Any) -> None:
    model = onnx.parser.parse_model(
        """<ir_version: 4, opset_import: ["org.openvinotoolkit": 1]>
        g (float[2, 6] x) => (float[?, ?] y, float[?, ?] z)
        <int64 axis = {1}, int64[2] lengths = {2, -1}> {
            y, z = org.openvinotoolkit.VariadicSplit(x, axis, lengths)
        }"""
    )
    x = np.random.default_rng(9).random((2, 6), np.float32)
    made = lower(model, target=target)
    onnx.checker.check_model(made, full_check=True)
    assert (made.opset_import[0].version, made.ir_version) == (18, 8)
    outputs = run(made, {"x": x})
    assert outputs["y"].tolist() == x[:, :2].tolist()
    assert outputs["z"].tolist() == x[:, 2:].tolist()


@pytest.mark.parametrize("kind", ELEMENT_TYPES)
def test_bits_survive(kind: str) -> None:
    """Every element type goes through as it came, in whatever way its sequence is lowered."""
    case = BY_NAME[f"sequence_{kind}"]
    feeds = case.inputs(seed=3)
    outputs = run(lower(case.model, target="portable"), feeds)
    assert outputs["a"].tolist() == feeds["x"][:3].tolist()
    assert outputs["b"].tolist() == feeds["x"][6:].tolist()


@pytest.mark.parametrize(
    ("case", "told"),
    [
        ("split13_double", "every value that float32 does not hold becomes the nearest one"),
        ("sequence_double", "every value that float32 does not hold becomes the nearest one"),
        ("split13_int64", "every value that int32 does not hold changes"),
    ],
)
def test_values_that_openvino_changes_are_warned_of(case: str, told: str) -> None:
    with pytest.warns(SplitWarning, match=told) as caught:
        lower(BY_NAME[case].model, target="openvino")
    assert [entry.filename for entry in caught] == [__file__]
    with warnings.catch_warnings():
        warnings.simplefilter("error", SplitWarning)
        lower(BY_NAME[case].model, target="onnxruntime")
        lower(BY_NAME[case].model, target="portable")


def test_doubles_are_warned_of_wherever_they_are() -> None:
    text = "g (float[4] x) => (float[4] y) {d = Cast<to=11>(x) e = Exp(d) y = Cast<to=1>(e)}"
    model = onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["": 18]> {text}')
    with pytest.warns(SplitWarning, match="double in float32"):
        lower(model, target="openvino")
    (finding,) = check(model, "openvino")
    assert (finding.code, finding.severity, finding.node) == ("TS843", "warning", "graph")


def _listed(x: Any, axis: int, keepdims: int) -> list[Any]:
    parts = [x.take([place], axis) for place in range(x.shape[axis])]
    return parts if keepdims else [part.squeeze(axis) for part in parts]


@pytest.mark.parametrize("yes", [True, False])
@pytest.mark.parametrize("keepdims", [0, 1])
@pytest.mark.parametrize("axis", [0, 1, 2, -1])
def test_tensors_of_any_shape_get_into_a_sequence_split_along_any_axis(
    axis: int, keepdims: int, yes: bool
) -> None:
    kind = f"float[{','.join('ABC'[: 2 + keepdims])}]"
    text = (
        f"g (float[K,L,M] x, {kind} w, int64 i, bool yes)"
        f" => ({kind} y, {kind} z, {kind} v, int64 n)"
        f" {{ s = SplitToSequence<axis={axis}, keepdims={keepdims}>(x)"
        f" f = If(yes) <then_branch = a () => (seq({kind}) p) {{ p = SequenceErase(s, i) }},"
        f" else_branch = b () => (seq({kind}) q) {{ q = SequenceErase(s) }}>"
        " v = SequenceAt(f, i)  t = SequenceInsert(f, w, i)  y = SequenceAt(t, i)"
        " u = SequenceErase(t)  z = SequenceAt(u, i)  n = SequenceLength(t) }"
    )
    model = Case("any", 13, text).model
    rng = np.random.default_rng(5)
    x = rng.random((4, 5, 6), np.float32)
    w = rng.random((2, 1, 7)[: 2 + keepdims], np.float32)
    parts = _listed(x, axis, keepdims)
    del parts[1 if yes else -1]
    made = lower(model, target="portable")
    onnx.checker.check_model(made, full_check=True)
    found = run(made, {"x": x, "w": w, "i": np.array(1), "yes": np.array(yes)})
    for name, expected in (("v", parts[1]), ("y", w), ("z", w)):
        np.testing.assert_array_equal(found[name], expected, strict=True)
    assert found["n"] == len(parts) + 1


@pytest.mark.parametrize("opset", [13, 17])
@pytest.mark.parametrize("named", [False, True])
@pytest.mark.parametrize("shape", [(3, 2), (3, 4, 2), (2, 3, 4, 2)])
def test_parts_without_their_axis_are_joined_along_every_axis(
    shape: tuple[int, ...], named: bool, opset: int
) -> None:
    x, dims = np.random.default_rng(len(shape)).random(shape, np.float32), "ABCD"[: len(shape)]
    declared = ", ".join(dims if named else map(str, shape))
    for axis, new_axis in product(range(len(shape)), (0, 1)):
        parts = _listed(x, axis, 0)
        rank = len(shape) - 1 + new_axis
        for joint in range(-rank, rank):
            made = parse_model(f"""<ir_version: 8, opset_import: ["" : {opset}]>
                g (float[{declared}] x) => (float[{", ".join("PQRS"[:rank])}] y) {{
                    s = SplitToSequence <axis = {axis}, keepdims = 0> (x)
                    y = ConcatFromSequence <axis = {joint}, new_axis = {new_axis}> (s)
                }}""")
            there = lower(made, target="portable")
            assert not {each.op_type for each in there.graph.node} & SEQUENCE_OPERATORS
            expected = (np.stack if new_axis else np.concatenate)(parts, joint)
            np.testing.assert_array_equal(run(there, {"x": x})["y"], expected)


@pytest.mark.parametrize("yes", [0, 1])
def test_a_branch_that_is_always_taken_may_give_tensors_beside_sequences(yes: int) -> None:
    made = parse_model(f"""<ir_version: 8, opset_import: ["": 13]>
        g (float[4] x, int64 i) => (float y, float[4] z) <bool yes = {{{yes}}}> {{
            s, z = If(yes) <
                then_branch = a () => (seq(float[1]) p, float[4] u)
                {{ p = SplitToSequence(x) u = Neg(x) }},
                else_branch = b () => (seq(float) q, float[4] v)
                {{ q = SplitToSequence <keepdims = 0> (x) v = Abs(x) }}>
            y = SequenceAt(s, i)
        }}""")
    made.graph.output[0].type.tensor_type.ClearField("shape")
    there = lower(made, target="portable")
    assert {each.op_type for each in there.graph.node}.isdisjoint({"If", *SEQUENCE_OPERATORS})
    x = np.random.default_rng(2).standard_normal(4, np.float32)
    found = run(there, {"x": x, "i": np.array(2)})
    np.testing.assert_array_equal(found["y"], x[2:3] if yes else x[2], strict=True)
    np.testing.assert_array_equal(found["z"], -x if yes else np.abs(x))


@pytest.mark.parametrize(
    ("dims", "split", "join", "out", "became", "made"),
    [
        ("N,3,4", "axis=1, keepdims=0", "axis=1, new_axis=1", "A,B,C", "the data itself", ""),
        ("N,3,4", "axis=0, keepdims=0", "axis=1, new_axis=1", "A,B,C", "Transpose", "Transpose"),
        ("6,3,4", "axis=0, keepdims=0", "axis=1", "A,B", "Transpose and Reshape", "Transpose"),
        ("4,3", "axis=0", "axis=1", "A,B", "Concat", "Concat"),
        ("N,3", "axis=0", "axis=1", "A,B", "Loop", "Loop"),
    ],
)
def test_the_report_says_how_parts_are_joined_and_they_are_joined_so(
    dims: str, split: str, join: str, out: str, became: str, made: str
) -> None:
    opened = onnx_model(
        parse_model(f"""<ir_version: 8, opset_import: ["": 17]> g (float[{dims}] x) =>
            (float[{out}] y) {{ s = SplitToSequence<{split}>(x) y = ConcatFromSequence<{join}>(s) }}
        """)
    )
    assert lower_graph(opened, "portable").changes[-1].became == became
    joints = {"Concat", "Loop", "Transpose"} & {each.op_type for each in opened.model.graph}
    assert joints == ({made} if made else set())


@pytest.mark.parametrize(
    ("axis", "became"),
    [("axis = 0", "Slice"), ("axis = 0, keepdims = 0", "Gather"), ("axis = 1", "the part itself")],
)
def test_the_report_says_what_takes_a_part(axis: str, became: str) -> None:
    """At a position that is known only at run time, but for a single part."""
    at = "first" if "axis = 1" in axis else "i"
    opened = onnx_model(
        parse_model(f"""<ir_version: 8, opset_import: ["": 17]> g (float[N,1] x, int64 i)
            => (float[] y) <int64 first = {{0}}>
            {{ s = SplitToSequence<{axis}>(x) y = SequenceAt(s, {at}) }}""")
    )
    assert lower_graph(opened, "portable").changes[-1].became == became


@pytest.mark.parametrize(("dim", "became"), [("4", "Constant"), ("N", "computed length")])
def test_the_report_says_whether_a_number_of_parts_is_known(dim: str, became: str) -> None:
    opened = onnx_model(
        parse_model(f"""<ir_version: 8, opset_import: ["": 17]> g (float[{dim}] x) => (int64 n)
            {{ s = SplitToSequence(x) n = SequenceLength(s) }}""")
    )
    assert lower_graph(opened, "portable").changes[-1].became == became


@with_own("onnxruntime", "openvino")
@pytest.mark.parametrize("other", ["SequenceConstruct(z)", "SplitToSequence(z, all)"])
@pytest.mark.parametrize("along", [0, 1])
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_parts_that_lack_an_axis_lie_beside_others_of_any_shape(
    axis: int, along: int, other: str, engine: Any
) -> None:
    """Of both, two dimensions are known only at run time: one list holds the elements of all."""
    if "Split" in other:
        other = other.replace("(", f"<axis = {along}>(")
    made = parse_model(f"""<ir_version: 8, opset_import: ["": 17]>
        g (float[A,B,C] x, float[D,E] z, bool yes, int64 i) => (float[F,G] y) <int64 all = {{9}}> {{
            s = If(yes) <then_branch = t () => (seq(float[H,I]) a) {{
                a = SplitToSequence<axis = {axis}, keepdims = 0>(x) }},
            else_branch = e () => (seq(float[J,K]) b) {{ b = {other} }}> y = SequenceAt(s, i) }}""")
    lowered = lower(made, target="portable")
    onnx.checker.check_model(lowered, full_check=True)
    x, z = np.arange(24.0, dtype=np.float32).reshape(2, 3, 4), np.ones((5, 6), np.float32)
    for yes, expected in ((True, np.take(x, 1, axis)), (False, z)):
        feeds = {"x": x, "z": z, "yes": np.array(yes), "i": np.array(int(yes))}
        got = run(lowered, feeds, engine=engine)["y"]
        np.testing.assert_array_equal(got, expected, strict=True)


@pytest.mark.parametrize(
    "node", ["y = SequenceAt(t, i)", "r = SequenceErase(t, i) y = SequenceLength(r)"]
)
def test_an_empty_sequence_needs_tensors_of_a_type_that_is_known(node: str) -> None:
    """No sequence of another type stands for it: the reshaped one is of whatever `F` gives."""
    made = parse_model(f"""<ir_version: 8, opset_import: ["": 17, "com.example": 1]>
        g (float x, int64 i) => (y) <int64[2] k = {{2, 3}}, int64 z = {{0}}> {{
            u = com.example.F(x) v = Reshape(u, k) s = SequenceConstruct(v)
            t = SequenceErase(s, z) {node}
        }}""")
    with refused("TS513", f"graph/{node[4:].partition('(')[0]}[4]", "the element type"):
        lower(made, target="portable")


@pytest.mark.parametrize(
    ("dims", "part", "shape"), [("N,M", "1,M", "(1, 'M')"), ("N,4", "1,4", "")]
)
def test_an_empty_sequence_needs_tensors_of_a_shape_that_is_known(
    dims: str, part: str, shape: str
) -> None:
    """Nothing else says what a tensor of none of them looks like."""
    made = parse_model(f"""<ir_version: 8, opset_import: ["": 17]>
        g (float[{dims}] x, bool yes) => (int64 n) {{
            s = If(yes) <
                then_branch = t () => (seq(float[{part}]) p) {{ p = SplitToSequence(x) }},
                else_branch = e () => (seq(float[{part}]) q) {{ q = SequenceEmpty() }}>
            n = SequenceLength(s)
        }}""")
    if shape:
        with refused("TS513", "graph/If[0]", f"the shape {shape} of an empty sequence's tensors"):
            lower(made, target="portable")
        return
    feeds = {"x": np.ones((3, 4), np.float32), "yes": np.array(False)}
    assert run(lower(made, target="portable"), feeds)["n"] == 0


def test_a_tensor_is_erased_from_others_of_any_rank() -> None:
    made = parse_model("""<ir_version: 8, opset_import: ["": 17]>
        g (float[2] a, float[3,4] b, float[5] c) => (float[5] y) <int64 one = {1}> {
            s = SequenceConstruct(a, b, c)  t = SequenceErase(s, one)  y = SequenceAt(t, one)
        }""")
    there = lower(made, target="portable")
    rng = np.random.default_rng(5)
    feeds = {
        name: rng.random(shape, np.float32) for name, shape in (("a", 2), ("b", (3, 4)), ("c", 5))
    }
    np.testing.assert_array_equal(run(there, feeds)["y"], feeds["c"])


def test_a_part_is_known_but_for_its_length() -> None:
    known = Tensor(ir.DataType.FLOAT, (2, "N", 4), (1,))
    assert resized(known, 1, 3) == Tensor(ir.DataType.FLOAT, (2, 3, 4))
    assert resized(known, -1, None) == Tensor(ir.DataType.FLOAT, (2, "N", None))
    assert resized(Tensor(ir.DataType.FLOAT), 1, 3) == Tensor(ir.DataType.FLOAT)


def test_parts_without_an_axis_and_with_it_get_into_one_sequence() -> None:
    """One branch splits steps along axis 1, the other parts along axis 0."""
    text = (
        "g (float[2,N,3] x, float[M,4] w, int64 i, bool yes) => (float[A,B] y, int64 n)"
        " { s = If(yes) <then_branch = a () => (seq(float[A,B]) p)"
        " { p = SplitToSequence<axis=1, keepdims=0>(x) }, else_branch = b () => (seq(float[A,B]) q)"
        " { q = SplitToSequence(w) }> y = SequenceAt(s, i)  n = SequenceLength(s) }"
    )
    made = lower(Case("both", 13, text).model, target="portable")
    rng = np.random.default_rng(6)
    x, w = rng.random((2, 5, 3), np.float32), rng.random((6, 4), np.float32)
    for yes, expected, count in ((True, x[:, 2], 5), (False, w[2:3], 6)):
        found = run(made, {"x": x, "w": w, "i": np.array(2), "yes": np.array(yes)})
        np.testing.assert_array_equal(found["y"], expected, strict=True)
        assert found["n"] == count


@pytest.mark.parametrize(("count", "operator"), [(4096, "Split"), (4097, "Slice")])
@pytest.mark.parametrize("lengths", ["", ", l"])
def test_a_sequence_of_many_parts_is_not_split_by_one_node(
    lengths: str, count: int, operator: str
) -> None:
    ones = f", int64[{count}] l = {{{','.join('1' * count)}}}" if lengths else ""
    text = f"g (float[{count}] x) => (float[1] y) <int64 i = {{3}}{ones}>"
    text += f" {{ s = SplitToSequence(x{lengths})  y = SequenceAt(s, i) }}"
    made = lower(Case("many", 13, text).model, target="portable")
    assert operator in {node.op_type for node in made.graph.node}


UNUSED_STATE = """
    <ir_version: 7, opset_import: ["": OPSET]>
    g (float[2] x) => (float[2] RESULT, int64[?] y) <int64 n = {3}> {
        v = Neg(x)
        z, u, y = Loop(n, "", x, v) <body = b (int64 i, bool c, float[?] s, float[2] k)
            => (bool go, float[?] t, float[2] l, int64 r) {
            go = Identity(c)
            t = Concat<axis = 0>(s, s)
            l = Neg(k)
            r = Size(s)
        }>
        AFTER
    }"""


@pytest.mark.parametrize(("opset", "result"), [(8, "w"), (9, "w"), (9, "u")])
def test_what_a_loop_carries_and_nothing_uses_is_used_where_integers_are_compared(
    opset: int, result: str
) -> None:
    """OpenVINO takes its shape at the start for that of each round; no model is refused for it."""
    text = UNUSED_STATE.replace("OPSET", str(opset)).replace("RESULT", result)
    model = onnx.parser.parse_model(text.replace("AFTER", "w = Neg(u)" if result == "w" else ""))
    opened = onnx_model(model)
    report = lower_graph(opened, "openvino")
    made = opened.proto(bool(report.changes))
    onnx.checker.check_model(made, full_check=True)
    operators = [node.op_type for node in made.graph.node]
    if opset < 9:
        assert (operators, report.changes) == (["Neg", "Loop", "Neg"], [])
        assert any("taken for that of every round" in note for note in report.notes)
    else:
        assert operators.index("Loop") < operators.index("Where")
        assert [change.node for change in report.changes] == ["graph/Loop[1]"]
    x = np.array([1, 2], np.float32)
    found = run(made, {"x": x})
    assert found[result].tolist() == ([-1, -2] if result == "w" else [1, 2])
    assert found["y"].tolist() == [2, 4, 8]


@with_own("onnxruntime")
@pytest.mark.parametrize("kind", ["bool", "int16", "uint16", "uint64", "bfloat16", "string"])
def test_what_is_used_afterwards_may_be_of_any_type(kind: str, engine: Any) -> None:
    """Onnxruntime has Where for some types only, and Gather for all."""
    model = onnx.parser.parse_model(
        f"""<ir_version: 8, opset_import: ["": 18]>
        g ({kind}[2] x, float[2] f) => ({kind}[2] y) <int64 n = {{2}}> {{
            y, unused = Loop(n, , x, f) <body = b (int64 i, bool c, {kind}[2] h, float[p] s)
                => (bool d, {kind}[2] o, float[q] t) {{
                d = Identity(c) o = Identity(h) t = Concat<axis = 0>(s, s)
            }}>
        }}"""
    )
    made = lower(model, target="portable")
    assert {"Where", "Gather"} & {node.op_type for node in made.graph.node}
    x = np.array(["a", "b"] if kind == "string" else [1, 0], object if kind == "string" else None)
    dtype = onnx.helper.tensor_dtype_to_np_dtype(made.graph.input[0].type.tensor_type.elem_type)
    feeds = {"x": x.astype(dtype), "f": np.ones(2, np.float32)}
    assert run(made, feeds, engine=engine)["y"].tolist() == feeds["x"].tolist()


@pytest.mark.parametrize("target", ["openvino", "portable", "onnxruntime"])
def test_axes_that_onnx_infers_wrongly_are_put_in_order_where_shapes_are_declared(
    target: Any,
) -> None:
    """Onnx takes a negative axis of Squeeze before opset 11 for none, and keeps the rank."""
    text = """<ir_version: 8, opset_import: ["": 10]> g (int32[1,6,M] x) => (int32[a,b] z) {
        y = Squeeze<axes = [-3]>(x) w = Split<axis = 1>(y) z = Identity(w) }"""
    model = onnx.parser.parse_model(text)
    made = lower(model, target=target)
    onnx.checker.check_model(made, full_check=True)
    assert lower(made, target=target) == made
    x = np.random.default_rng(1).integers(1, 9, (1, 6, 4)).astype(np.int32)
    np.testing.assert_array_equal(run(made, {"x": x})["z"], x[0], strict=True)


@with_own("openvino")
@pytest.mark.parametrize("target", ["openvino", "portable"])
@pytest.mark.parametrize("kind", ["int32", "uint32", "int64", "float"])
def test_what_is_used_afterwards_keeps_its_values(kind: str, target: Any, engine: Any) -> None:
    """OpenVINO rounds whole numbers above 2^24 in Where, unless there is one condition (D14)."""
    model = onnx.parser.parse_model(
        f"""<ir_version: 8, opset_import: ["": 18]>
        g ({kind}[N] x, float[2] f) => ({kind}[M] y) <int64 n = {{2}}> {{
            y, unused = Loop(n, , x, f) <body = b (int64 i, bool c, {kind}[P] h, float[p] s)
                => (bool d, {kind}[P] o, float[q] t) {{
                d = Identity(c) o = Identity(h) t = Concat<axis = 0>(s, s)
            }}>
        }}"""
    )
    made = lower(model, target=target)
    dtype = onnx.helper.tensor_dtype_to_np_dtype(made.graph.input[0].type.tensor_type.elem_type)
    x = np.random.default_rng(9).integers(1 << 24, 1 << 31, 9).astype(dtype)
    found = run(made, {"x": x, "f": np.ones(2, np.float32)}, engine=engine)["y"]
    np.testing.assert_array_equal(found, x, strict=True)


@with_own("openvino")
@pytest.mark.parametrize(
    "reader",
    [
        "k = Abs(v)  r = Neg(k)",
        """k = If(c) <then_branch = a () => (int64 u) { u = Size(v) },
            else_branch = e () => (int64 u) { u = Size(x) }>""",
    ],
)
def test_what_is_used_for_nothing_afterwards_is_not_used(reader: str, engine: Any) -> None:
    """OpenVINO gives the shape of the other tensor for two that a loop swaps, if one is not used.

    Nodes whose results are not used are left out before.
    """
    model = onnx.parser.parse_model(
        f"""<ir_version: 8, opset_import: ["": 18]> g (int32[3,6] x, bool c) => (int64[1] y)
        <int64 n = {{2}}> {{
            p, q = Split<axis = 1, num_outputs = 2>(x)
            v, w = Loop(n, , p, x) <body = b (int64 i, bool d, int32[A,B] h, int32[C,D] s)
                => (bool f, int32[C,D] o, int32[A,B] t) {{
                f = Identity(d) o = Identity(s) t = Identity(h)
            }}>
            y = Shape<start = 1>(w) {reader}
        }}"""
    )
    made = lower(model, target="openvino")
    assert lower(made, target="openvino") == made
    x = np.random.default_rng(3).integers(1, 9, (3, 6)).astype(np.int32)
    found = run(made, {"x": x, "c": np.array(True)}, engine=engine)
    assert found["y"].tolist() == [6]


@pytest.mark.parametrize("target", ["openvino", "portable"])
def test_parts_of_strings_without_elements_are_taken_once(target: Any) -> None:
    """The Gather that takes them has no elements to take from."""
    text = (
        "g (string[0,3] x) => (string[0,A] y, string[0,B] z) <int64[2] l = {1, 2}>"
        " { y, z = Split<axis = 1>(x, l) }"
    )
    made = lower(Case("strings", 18, text).model, target=target)
    assert lower(made, target=target) == made
    found = run(made, {"x": np.empty((0, 3), object)})
    assert [found[name].shape for name in "yz"] == [(0, 1), (0, 2)]


def test_a_loop_of_constants_that_something_uses_is_calculated_at_once() -> None:
    """What it carries has no known shape any more, after what is not used is added to it."""
    model = onnx.parser.parse_model(
        """<ir_version: 8, opset_import: ["": 18]> g (float[3] x) => (int64[1] y, float[A] p)
        <int64 n = {3}, int64[1] s = {7}, int64[2] t = {3, 4}> {
            p, q = Split<num_outputs = 2>(x)
            y, u = Loop(n, , s, t) <body = b (int64 i, bool c, int64[A] h, int64[B] g)
                => (bool d, int64[A] o, int64[C] r) { d = Identity(c) o = Add(h, h) r = Neg(h) }>
        }"""
    )
    made = lower(model, target="openvino")
    assert lower(made, target="openvino") == made
    found = run(made, {"x": np.random.default_rng(2).random(3, np.float32)})
    assert found["y"].tolist() == [56]


def test_a_map_takes_each_sequence_at_its_place_and_gives_out_what_it_took_in() -> None:
    text = (
        "g (float[N,2] x, float[N,2] v, float[2] w) => (float[N,2] y, float[N,2] z)"
        " { s = SplitToSequence(x)  r = SplitToSequence(v)"
        " t, u = SequenceMap(s, r, w) <body = b (float[1,2] p, float[1,2] q, float[2] k) =>"
        " (float[1,2] o, float[1,2] q) { m = Sub(p, q)  o = Mul(m, k) }>"
        " y = ConcatFromSequence<axis=0>(t)  z = ConcatFromSequence<axis=0>(u) }"
    )
    made = lower(Case("map", 17, text).model, target="portable")
    onnx.checker.check_model(made, full_check=True)
    x, v, w = (np.random.default_rng(k).random((5, 2), np.float32) for k in range(3))
    found = run(made, {"x": x, "v": v, "w": w[0]})
    np.testing.assert_array_equal(found["y"], (x - v) * w[0], strict=True)
    np.testing.assert_array_equal(found["z"], v, strict=True)


@pytest.mark.parametrize("target", ["openvino", "portable"])
def test_a_map_that_gives_tensors_without_elements_is_lowered_once(target: Any) -> None:
    text = (
        "g (float[N] x) => (float[2,0] y) <int64[2] l = {3, 1}> { s = SplitToSequence(x, l)"
        " t = SequenceMap(s) <body = b (float[P] v) => (float[0] w) <int64[1] z = {0}>"
        " { w = Slice(v, z, z) }>  y = ConcatFromSequence<axis = 0, new_axis = 1>(t) }"
    )
    made = lower(Case("map", 17, text).model, target=target)
    assert lower(made, target=target) == made
    x = np.random.default_rng(5).random(4, np.float32)
    assert run(made, {"x": x})["y"].shape == (2, 0)


def test_a_map_in_the_body_of_another_one() -> None:
    text = (
        "g (float[N] x, float[M] v) => (float[K] y) { s = SplitToSequence(x)"
        " r = SplitToSequence(v)  t = SequenceMap(s) <body = b (float[1] p) => (float[M] o) {"
        " h = SequenceMap(r) <body = c (float[1] q) => (float[1] d) { d = Sub(q, p) }>"
        " o = ConcatFromSequence<axis=0>(h) }>  y = ConcatFromSequence<axis=0>(t) }"
    )
    made = lower(Case("maps", 17, text).model, target="portable")
    x, v = np.array([1, 2, 3], np.float32), np.array([10, 20], np.float32)
    assert run(made, {"x": x, "v": v})["y"].tolist() == [9, 19, 8, 18, 7, 17]


@pytest.mark.parametrize("opset", [11, 12, 13, 14])
def test_a_sequence_of_a_number_known_at_run_time_is_given_out_from_opset_13_on(
    opset: int,
) -> None:
    """Before, no Loop carries a sequence; onnxruntime splits no int8 into one."""
    text = "g (int8[N,2] x) => (seq(int8[A,2]) s) <int64 c = {3}> { s = SplitToSequence(x, c) }"
    model = Case("out", opset, text).model
    if opset < 13:
        with refused("TS513", f"it can't at opset {opset}", "convert the model to opset 13"):
            lower(model, target="onnxruntime")
        return
    x = np.arange(14, dtype=np.int8).reshape(7, 2)
    found = run(lower(model, target="onnxruntime"), {"x": x})["s"]
    assert [part.tolist() for part in found] == [x[:3].tolist(), x[3:6].tolist(), x[6:].tolist()]


def test_branches_that_are_always_taken_may_use_one_name() -> None:
    branches = (
        " <then_branch = t () => (seq(float[A]) p) { a = Neg(x)  p = SplitToSequence(a) },"
        " else_branch = e () => (seq(float[A]) q) { a = Abs(x)  q = SplitToSequence(a) }>"
    )
    text = (
        "g (float[N] x, int64 i) => (float[1] y, float[1] z) <bool yes = {1}, bool no = {0}>"
        f" {{ s = If(yes){branches}  r = If(no){branches}"
        " y = SequenceAt(s, i)  z = SequenceAt(r, i) }"
    )
    made = lower(Case("names", 13, text).model, target="portable")
    onnx.checker.check_model(made, full_check=True)
    found = run(made, {"x": np.array([1, -2, 3], np.float32), "i": np.array(1)})
    assert (found["y"].tolist(), found["z"].tolist()) == ([2], [2])


NOT_FITTING = {
    "the number of parts": "(int64 n) { s = SplitToSequence(x, l)  n = SequenceLength(s) }",
    "all parts": "(float[M] y) { s = SplitToSequence(x, l)  y = ConcatFromSequence<axis=0>(s) }",
    "one more part": "(int64 n) { s = SplitToSequence(x, l)  t = SequenceInsert(s, x)"
    "  n = SequenceLength(t) }",
    "one part less": "(int64 n) { s = SplitToSequence(x, l)  t = SequenceErase(s)"
    "  n = SequenceLength(t) }",
    "a branch": "(int64 n) { t = If(yes) <then_branch = a () => (seq(float[A]) p)"
    " { p = SplitToSequence(x, l) }, else_branch = b () => (seq(float[A]) q)"
    " { q = SplitToSequence(x) }>  n = SequenceLength(t) }",
}
"""What is asked of a sequence whose lengths do not fit the data."""


@pytest.mark.parametrize("asked", NOT_FITTING)
@pytest.mark.parametrize("lengths", ["fed", "constant", "a chunk"])
def test_lengths_that_do_not_fit_stop_the_lowered_model_whatever_is_asked_of_the_parts(
    lengths: str, asked: str
) -> None:
    """D21: whether anything reads the data of the parts, or not."""
    kind, sizes = {
        "fed": ("", [3, 4]),
        "constant": (" <int64[2] l = {3, 4}>", [3, 4]),
        "a chunk": ("", 3),
    }[lengths]
    fed = {"fed": ", int64[K] l", "constant": "", "a chunk": ", int64 l"}[lengths]
    result, _, body = NOT_FITTING[asked].partition(") ")
    text = f"g (float[N] x, bool yes{fed}) => {result}){kind} {body}"
    made = lower(Case("asked", 13, text).model, target="portable")
    for count, other in ((7, sizes), (8 if lengths == "constant" else 7, [3, 5] if fed else 0)):
        x = np.random.default_rng(count).random(count, np.float32)
        feeds = {"x": x, "yes": np.array(True)} | ({"l": np.array(other)} if fed else {})
        if lengths == "a chunk" and other != sizes:
            feeds["l"] = np.array(0)
        if other == sizes:
            run(made, feeds)
        else:
            with pytest.raises(SplitError):
                run(made, feeds)


def test_a_function_of_a_newer_opset_is_converted_to_that_of_the_graph() -> None:
    model = _with_function('"": 13, ', 18, "d, e = Split<axis: int = 1, num_outputs: int = 2>(a)")
    made = lower(model, target="onnxruntime")
    assert [entry.version for entry in made.functions[0].opset_import] == [13]
    x = np.random.default_rng(4).random((3, 4), np.float32)
    assert run(made, {"x": x})["z"].tolist() == x[:, 2:].tolist()


def test_the_report_names_the_functions_that_were_converted_and_what_was_rounded() -> None:
    """Those of the opset of the graph are inlined once the others are at it."""
    model = onnx.parser.parse_model(
        """<ir_version: 10, opset_import: ["": 13, "c": 1]>
        g (float[M, 4] x) => (float[?, ?] y, float[?, ?] z) { u = c.F(x)  y, z = c.H(u) }
        <domain: "c", opset_import: ["": 17]> F (a) => (d) {
            s = Constant<value_floats: floats = [1.0, 1.0, 1.0, 1.0]>()
            d = LayerNormalization(a, s)
        }
        <domain: "c", opset_import: ["": 13]> H (a) => (d, e) { d, e = Split<axis: int = 1>(a) }"""
    )
    report = lower_graph(onnx_model(model), "portable")
    assert [(change.node, change.became) for change in report.changes[:3]] == [
        ("function c::F", "converted to opset 13"),
        ("function c::F", "inlined"),
        ("function c::H", "inlined"),
    ]
    (note,) = [note for note in report.notes if "rounding" in note]
    assert note.startswith("function c::F/LayerNormalization")


def test_a_function_with_an_overload_is_inlined() -> None:
    model = _with_function('"": 18, ', 18, "d, e = Split<axis: int = 1, num_outputs: int = 2>(a)")
    model.functions[0].overload = model.graph.node[0].overload = "v"
    made = lower(model, target="portable")
    assert not made.functions
    x = np.random.default_rng(4).random((3, 4), np.float32)
    assert run(made, {"x": x})["z"].tolist() == x[:, 2:].tolist()


def test_strings_that_openvino_can_not_pass_on_are_gathered() -> None:
    case = BY_NAME["strings_as_they_are"]
    made = lower(case.model, target="openvino")
    assert {node.op_type for node in made.graph.node}.isdisjoint({"Identity", "Split"})
    feeds = case.inputs()
    found = run(made, feeds)
    assert [found[name].tolist() for name in "ytz"] == [feeds[name].tolist() for name in "xsx"]


@pytest.mark.parametrize(
    ("count", "axes", "words"), [("k", "", "how many axes"), ("1", ", a", "which axes")]
)
def test_slices_of_strings_on_axes_that_are_not_known_are_refused(
    count: str, axes: str, words: str
) -> None:
    made = parse_model(f"""<ir_version: 8, opset_import: ["": 13]>
        g (string[3, 4] x, int64[{count}] s, int64[{count}] e, int64[1] a) => (string[A, B] y)
        {{ y = Slice(x, s, e{axes}) }}""")
    with refused("TS513", f"{words} of strings are sliced is known only at run time"):
        lower(made, target="openvino")


WORDS = np.array([["a", "", "é", "dd", "e", "ff"], [*"uvwxyz"]], object)
SLICES = {
    "bounds as attributes": (9, "y = Slice <starts = [0, 1], ends = [1, -1]> (x)", WORDS[:1, 1:-1]),
    "fed bounds": (13, "y = Slice(x, one, two, axes, two)", WORDS[1:2:2]),
    "from the back": (18, "y = Slice(x, back, far, axes2, back)", WORDS[:, ::-1]),
    "some axes": (18, "y = Slice(x, pair, twos)", WORDS[1:2, 1:2]),
    "a converted split": (10, "y, z = Split <axis = 1, split = [2, 4]> (x)", WORDS[:, :2]),
}


@with_own("openvino")
@pytest.mark.parametrize("shape", ["2,6", "N,M"])
@pytest.mark.parametrize("name", SLICES)
def test_slices_of_strings_end_openvino_and_are_gathered(
    name: str, shape: str, engine: Any
) -> None:
    """D17; converting writes such slices."""
    opset, body, expected = SLICES[name]
    made = parse_model(
        f'<ir_version: 8, opset_import: ["": {opset}]> g (string[{shape}] x, int32[1] one,'
        " int32[1] two) => (string[p,q] y) <int32[1] axes = {0}, int64[1] axes2 = {-1},"
        " int64[1] back = {-1}, int64[1] far = {-9223372036854775807}, int64[2] pair = {1, 1},"
        f" int64[2] twos = {{2, 2}}> {{ {body} }}"
    )
    lowered = lower(made, target="openvino")
    onnx.checker.check_model(lowered, full_check=True)
    assert not [each for each in check(lowered, target="openvino") if each.severity == "error"]
    assert lower(lowered, target="openvino") == lowered
    feeds = {"x": WORDS, "one": np.array([1], np.int32), "two": np.array([2], np.int32)}
    assert run(lowered, feeds, engine=engine)["y"].tolist() == expected.tolist()


@pytest.mark.parametrize("target", ["onnxruntime", "openvino"])
def test_complex_data_is_refused_whatever_node_has_it(target: Any) -> None:
    """Converting a Split with fed lengths to opset 11 writes Slices."""
    made = parse_model(
        '<ir_version: 8, opset_import: ["": 13]> g (complex128[N,6] x, int64[2] l)'
        " => (complex128[N,p] y, complex128[N,q] z) { y, z = Split <axis = 1> (x, l) }"
    )
    converted = convert(made, opset=11)
    assert "Split" not in {node.op_type for node in converted.graph.node}
    for each in (made, converted):
        assert "TS841" in {found.code for found in check(each, target=target)}
        with refused("TS513", "complex128"):
            lower(each, target=target)


def test_no_lengths_at_all_are_refused_by_onnxruntime_and_written_out() -> None:
    made = parse_model(
        '<ir_version: 8, opset_import: ["": 13]> g (float[N,6] x) => (int64 n)'
        " <int64[0] l = {}> { s = SplitToSequence(x, l) n = SequenceLength(s) }"
    )
    assert "TS841" in {found.code for found in check(made, target="onnxruntime")}
    lowered = lower(made, target="onnxruntime")
    onnx.checker.check_model(lowered, full_check=True)
    assert check(lowered, target="onnxruntime") == []
    assert run(lowered, {"x": np.zeros((0, 6), np.float32)})["n"] == 0
    with refused("TS510"):
        run(lowered, {"x": np.ones((2, 6), np.float32)})


LEFT_TOGETHER = {
    "one more": "t = SequenceInsert(s, x)",
    "a branch": "t = If(yes) <then_branch = a () => (seq(int8[A]) p) { p = Identity(s) },"
    " else_branch = b () => (seq(int8[A]) q) { q = SequenceConstruct(x, x) }>",
    "the start of a loop": "t = Loop(n, yes, s) <body = b (int64 k, bool c, seq(int8[A]) p) =>"
    " (bool d, seq(int8[A]) q) { d = Identity(c)  q = SequenceConstruct(x, x) }>",
    "the end of a loop": "o = SequenceConstruct(x, x)  t = Loop(n, yes, o) <body = b (int64 k,"
    " bool c, seq(int8[A]) p) => (bool d, seq(int8[A]) q) { d = Identity(c)"
    "  q = SplitToSequence(x, l) }>",
}
"""Sequences of which onnxruntime makes one, and does not make the other."""


@pytest.mark.parametrize("name", LEFT_TOGETHER)
def test_sequences_that_meet_are_replaced_together(name: str) -> None:
    text = "g (int8[N] x, bool yes, int64 n, int64[K] l) => (int8[A] y)"
    text += f" <int64 i = {{1}}> {{ s = SplitToSequence(x, l)  {LEFT_TOGETHER[name]}"
    text += "  y = SequenceAt(t, i) }"
    made = lower(Case("together", 16, text).model, target="onnxruntime")
    for place in walk(ir.serde.deserialize_model(made)):
        assert place.node.op_type not in SEQUENCE_OPERATORS
    x = np.array([5, 6, 7], np.int8)
    feeds = {"x": x, "yes": np.array(True), "n": np.array(2), "l": np.array([1, 2])}
    expected = x.tolist() if name == "the start of a loop" else [6, 7]
    assert run(made, feeds)["y"].tolist() == expected


def test_sequences_that_come_out_of_a_branch_twice() -> None:
    text = (
        "g (float[N] x, bool yes, int64 i) => (float[A] y, float[B] z, int64 n)"
        " { s = SplitToSequence(x)  t, u = If(yes) <then_branch = a ()"
        " => (seq(float[A]) p, seq(float[A]) q) { p = Identity(s)  q = Identity(s) },"
        " else_branch = b () => (seq(float[A]) v, seq(float[A]) w)"
        " { v = SequenceErase(s)  w = Identity(v) }>"
        " y = SequenceAt(t, i)  z = SequenceAt(u, i)  n = SequenceLength(u) }"
    )
    made = lower(Case("twice", 16, text).model, target="portable")
    onnx.checker.check_model(made, full_check=True)
    for place in walk(ir.serde.deserialize_model(made)):
        if place.node.op_type == "If":
            for body in (held.as_graph() for held in place.node.attributes.values()):
                assert len(set(body.outputs)) == len(body.outputs)
                assert all(value.producer() is not None for value in body.outputs)
    x = np.array([5, 6, 7], np.float32)
    for yes, count in ((True, 3), (False, 2)):
        found = run(made, {"x": x, "yes": np.array(yes), "i": np.array(1)})
        assert (found["y"].tolist(), found["z"].tolist(), found["n"]) == ([6], [6], count)


CARRIED_AS_IT_IS = (
    "t BODY = Loop(n, yes, s START) <body = b (int64 k, bool c, seq(float[A]) p IN) =>"
    " (bool d, seq(float[A]) p OUT) { d = Identity(c) MORE }>"
)


@pytest.mark.parametrize("beside", [False, True])
def test_a_sequence_that_a_loop_leaves_as_it_is_goes_past_the_loop(beside: bool) -> None:
    loop = CARRIED_AS_IT_IS
    words = ("BODY", "START", "IN", "OUT", "MORE")
    more = (", u", ", x", ", float[N] f", ", float[N] g", "a = SequenceAt(p, i)  g = Sub(f, a)")
    for word, held in zip(words, more, strict=True):
        loop = loop.replace(f" {word}", f" {held}" if beside else "")
    last = "v = Identity(u)" if beside else "v = Identity(x)"
    text = "g (float[N] x, bool yes, int64 n, int64 i) => (float[A] y, float[N] v)"
    text += f" {{ s = SplitToSequence(x)  {loop}  y = SequenceAt(t, i)  {last} }}"
    made = lower(Case("past", 16, text).model, target="portable")
    loops = [node for node in made.graph.node if node.op_type == "Loop"]
    assert [len(node.input) for node in loops] == ([3] if beside else [])
    x = np.array([5, 6, 7], np.float32)
    found = run(made, {"x": x, "yes": np.array(True), "n": np.array(2), "i": np.array(1)})
    assert found["y"].tolist() == [6]
    assert found["v"].tolist() == ([-7, -6, -5] if beside else [5, 6, 7])


def test_what_is_noted_of_a_node_is_noted_of_what_takes_its_place() -> None:
    text = (
        "g (float[N] x, bool yes) => (int64 n) { s = SplitToSequence(x)  t = If(yes)"
        " <then_branch = a () => (seq(float[A]) p) { p = SequenceErase(s) },"
        " else_branch = b () => (seq(float[A]) q) { q = SequenceErase(s) }>"
        " n = SequenceLength(t) }"
    )
    model = Case("noted", 13, text).model
    for each in model.graph.node:
        entry = each.metadata_props.add()
        entry.key, entry.value = "from", each.op_type
    made = lower(model, target="portable")
    held = {each.op_type: [e.value for e in each.metadata_props] for each in made.graph.node}
    assert held["If"] == ["If"]
    assert {value for values in held.values() for value in values} >= {"If", "SequenceLength"}


@pytest.mark.parametrize(
    ("reads", "becomes"),
    [
        ("y = ConcatFromSequence<axis=0, new_axis=1>(s)", "Identity"),
        ("y = ConcatFromSequence<axis=1, new_axis=1>(s)", "Transpose"),
        ("y = SequenceAt(s, i)", "Gather"),
        ("y = SequenceLength(s)", "Constant"),
    ],
)
def test_what_is_noted_of_a_split_is_noted_of_the_node_that_does_what_it_did(
    reads: str, becomes: str
) -> None:
    kind = "int64" if becomes == "Constant" else "float[A,B]"
    text = (
        f"g (float[3,4] x, int64 i) => ({kind} y) {{ s = SplitToSequence<keepdims=0>(x) {reads} }}"
    )
    model = Case("noted", 13, text).model
    split, reader = model.graph.node
    split.doc_string = "from layer 3"
    split.metadata_props.add(key="layer", value="3")
    split.metadata_props.add(key="operator", value="split")
    reader.metadata_props.add(key="operator", value="reader")
    made = lower(model, target="portable")
    node = next(each for each in made.graph.node if each.output[0] == "y")
    assert (node.op_type, node.doc_string) == (becomes, "from layer 3")
    assert {each.key: each.value for each in node.metadata_props} == {
        "layer": "3",
        "operator": "reader",
    }


def test_parts_get_names_and_shapes_of_their_own_where_the_target_needs_names() -> None:
    text = "g (float[6] x) => (float[A] y) { a, b = Split<num_outputs=2>(x)  y = Neg(a) }"
    model = Case("names", 18, text).model
    model.graph.node[0].output[1] = ""
    targets: list[Any] = ["onnxruntime", "portable"]
    for target in targets:
        made = lower(model, target=target)
        (split,) = (node for node in made.graph.node if node.op_type == "Split")
        assert len(set(split.output)) == 2
        assert all(split.output)
        shapes = {
            entry.name: [dim.dim_value for dim in entry.type.tensor_type.shape.dim]
            for entry in made.graph.value_info
        }
        assert shapes["a"] == [3]


def test_the_sum_of_fed_lengths_is_checked_only_for_targets_that_do_not() -> None:
    """Onnxruntime refuses lengths that do not fit itself."""
    text = "g (float[6] x, int64[2] l) => (float[A] y) { a, b = Split(x, l)  y = Neg(a) }"
    model = Case("sum", 13, text).model
    model.graph.node[0].output[1] = ""
    without, checked = lower(model, target="onnxruntime"), lower(model, target="portable")
    assert len(without.graph.node) < len(checked.graph.node)


def test_lengths_that_do_not_fit_are_refused_for_a_target_that_would_take_the_node() -> None:
    text = "g (float[6] x) => (float[A] y, float[B] z) <int64[2] l = {3, 4}> { y, z = Split(x, l) }"
    with refused("TS302", "graph/Split[0]"):
        lower(Case("sum", 13, text).model, target="onnxruntime")


def test_an_axis_from_the_back_of_an_unknown_rank_stays_for_a_target_that_takes_it() -> None:
    made = model(graph([node("Split", "x", "a b", axis=-1)], [value("x")], ["a"]), 13)
    made.graph.node[0].output[1] = ""
    x = np.arange(12, dtype=np.float32).reshape(2, 6)
    lowered = lower(made, target="onnxruntime")
    assert all(lowered.graph.node[0].output)
    assert run(lowered, {"x": x})["a"].tolist() == x[:, :3].tolist()


def test_data_of_an_unknown_type_is_split() -> None:
    text = "g (float[6] x) => (float[A] a, float[B] b) { u = own.Some(x)  a, b = Split(u, k) }"
    text = text.replace(" {", " <int64[2] k = {1, 2}> {")
    made = lower(Case("custom", 13, text, functions="own").model, target="portable")
    assert "Split" in {node.op_type for node in made.graph.node}


def test_the_domain_of_openvino_stays_imported_where_a_node_of_it_stays() -> None:
    text = '<ir_version: 8, opset_import: ["" : 18, "org.openvinotoolkit" : 1]>'
    text += " g (float[N] x) => (float[A] a, float[B] b) <int64 i = {0}, int64[2] l = {3, -1}> {"
    split = text + " a, c = org.openvinotoolkit.VariadicSplit(x, i, l)"
    plain = text + " a, c = Split<num_outputs=2>(x)"
    stays = {
        split + "  b = Neg(c) }": {""},
        split + "  b = org.openvinotoolkit.Swish(c) }": {"", "org.openvinotoolkit"},
        plain + "  b = Neg(c) }": {"", "org.openvinotoolkit"},
    }
    for held, domains in stays.items():
        made = lower(parse_model(held), target="portable")
        assert {entry.domain for entry in made.opset_import} == domains


@pytest.mark.parametrize("name", ["chunk_dynamic", "split13_runtime", "split18_uneven_dynamic"])
def test_what_was_rewritten_is_not_noted_as_what_may_go_wrong(name: str) -> None:
    report = lower_graph(onnx_model(BY_NAME[name].model), "portable")
    assert (report.notes, report.warnings) == ([], [])
    for change in report.changes:
        reasons = change.reason.split("; ")
        assert len(set(reasons)) == len(reasons)


def test_a_model_with_functions_has_no_notes_once_they_are_inlined() -> None:
    model = _with_function('"": 13, ', 13, "d, e = Split<axis: int = 1>(a)")
    assert lower_graph(onnx_model(model), "portable").notes == []


@pytest.mark.parametrize("target", ["onnxruntime", "openvino", "portable"])
@pytest.mark.parametrize("opset", [13, 18])
def test_lengths_that_are_halves_are_guarded_as_equal_parts(target: Any, opset: int) -> None:
    """And can be converted to where the original can be: to opsets without calculated lengths."""
    model = onnx.parser.parse_model(f"""
        <ir_version: 8, opset_import: ["": {opset}]>
        g (float[N] x) => (float[A] a, float[B] b) <int64[1] two = {{2}}> {{
            n = Shape(x)
            half = Div(n, two)
            l = Concat<axis = 0>(half, half)
            a, b = Split(x, l)
        }}""")
    for made in (model, lower(model, target=target)):
        older = convert(made, opset=7)
        x = np.arange(6, dtype=np.float32)
        assert run(older, {"x": x})["b"].tolist() == [3, 4, 5]
        with refused("TS303", "5"):
            run(older, {"x": x[:5]})


def test_equal_parts_in_a_function_of_an_older_opset_can_be_converted_when_lowered() -> None:
    model = _with_function('"": 18, ', 13, "d, e = Split(a)")
    older = convert(lower(model, target="portable"), opset=7)
    x = np.arange(24, dtype=np.float32).reshape(6, 4)
    assert run(older, {"x": x})["z"].tolist() == x[3:].tolist()
    with refused("TS303", "5"):
        run(older, {"x": x[:5]})


@pytest.mark.parametrize("target", ["onnxruntime", "portable"])
def test_splits_that_lowering_makes_alike_get_more_axes_at_once(target: Any) -> None:
    """One of the two Splits of x gets an axis before the others, as z has one already."""
    model = onnx.parser.parse_model(
        '<ir_version: 4, opset_import: ["": 7]> g (float[M,K] x, float[M,K] z) => (float[?,?] a,'
        " float[?,?] b, float[?,?,?] c) { a, a2 = Split<axis=0>(x) b, b2, b3 = Split<axis=0>(x)"
        " u = Unsqueeze<axes=[0]>(z) c, c2 = Split<axis=1>(u) }"
    )
    lowered = lower(model, target=target)
    assert lower(lowered, target=target) == lowered
    data = np.random.default_rng(3).uniform(1, 2, (6, 2)).astype(np.float32)
    made = run(lowered, {"x": data, "z": -data})
    for got, want in zip(made.values(), (data[:3], data[:2], -data[None, :3]), strict=True):
        assert np.array_equal(got, want)


@with_own("openvino")
@pytest.mark.parametrize("in_branch", [False, True])
@pytest.mark.parametrize(
    ("kind", "length", "is_loaded"),
    [
        *(("STRING", length, length > 0) for length in (0, 2)),
        *((kind, 2, False) for kind in ("COMPLEX64", "COMPLEX128", "FLOAT8E4M3FNUZ", "UINT2")),
        *((kind, 0, False) for kind in ("FLOAT8E5M2FNUZ", "INT2", "FLOAT6E2M3", "FLOAT6E3M2")),
        *((kind, 2, True) for kind in ("FLOAT8E4M3FN", "INT4", "BFLOAT16", "FLOAT4E2M1")),
        *((kind, 0, True) for kind in ("FLOAT", "BOOL")),
    ],
)
def test_initializers_that_nothing_reads_are_left_out_where_they_are_not_loaded(
    kind: str, length: int, is_loaded: bool, in_branch: bool, engine: Any
) -> None:
    if not hasattr(onnx.TensorProto, kind):
        pytest.skip("the installed onnx does not know this type")
    model = parse_model("""<ir_version: 12, opset_import: ["": 19]>
        g (float[2] x, bool c) => (float[2] y) {
            y = If(c) <then_branch = t () => (float[2] a) { a = Neg(x) },
            else_branch = e () => (float[2] b) { b = Abs(x) }>
        }""")
    held: Any = [b"a" if kind == "STRING" else 1] * length
    tensor = onnx.helper.make_tensor("unread", getattr(onnx.TensorProto, kind), [length], held)
    branch = next(each.g for each in model.graph.node[0].attribute if each.name == "else_branch")
    (branch if in_branch else model.graph).initializer.append(tensor)
    said = [each for each in check(model, target="openvino") if "that no node reads" in str(each)]
    assert [each.severity for each in said] == (
        [] if is_loaded else ["warning" if kind == "STRING" else "error"]
    )
    lowered = lower(model, target="openvino")
    assert is_loaded or lowered != model
    feeds = {"x": np.array([1, 2], np.float32), "c": np.array(True)}
    assert run(lowered, feeds, engine=engine)["y"].tolist() == [-1, -2]
    if engine == "openvino" and not is_loaded and kind != "STRING":
        with pytest.raises(SplitError):
            run(model, feeds, engine=engine)


@with_own("onnxruntime")
@pytest.mark.parametrize("opset", [10, 13, 17])
def test_strings_of_a_scan_that_becomes_a_loop_are_all_there(opset: int, engine: Any) -> None:
    """onnxruntime gathers only the first string of each row, but on the last axis."""
    model = parse_model(
        f"""<ir_version: 8, opset_import: ["": {opset}]> g (string[N,2,2] x) => (string[A,2,2] y)
        {{ y = Scan<num_scan_inputs = 1,
        body = b (string[2,2] row) => (string[2,2] r) {{ r = Identity(row) }}>(x) }}"""
    )
    lowered = lower(model, target="portable")
    assert lower(lowered, target="portable") == lowered
    assert "Loop" in {node.op_type for node in lowered.graph.node}
    data = np.array([f"s{number}" for number in range(12)], object).reshape(3, 2, 2)
    assert run(lowered, {"x": data}, engine=engine)["y"].tolist() == data.tolist()


@with_own("onnxruntime")
@pytest.mark.parametrize("opset", [7, 9, 12, 13, 17])
def test_splits_whose_axes_become_the_same_stay_two(opset: int, engine: Any) -> None:
    """onnxruntime takes them for one where both count the axis from the front."""
    model = onnx.parser.parse_model(
        f'<ir_version: 4, opset_import: ["": {opset}]> g (float[2,M] x) => (float[2,A] a,'
        " float[2,B] b) { p, q, r = Split<axis = -1>(x) a = Neg(q)"
        " v, w = Split<axis = 1>(x) b = Neg(w) }"
    )
    lowered = lower(model, target="portable")
    assert lower(lowered, target="portable") == lowered
    data = np.random.default_rng(4).uniform(1, 2, (2, 6)).astype(np.float32)
    made = run(lowered, {"x": data}, engine=engine)
    assert np.array_equal(made["a"], -data[:, 2:4])
    assert np.array_equal(made["b"], -data[:, 3:])


@with_own("onnxruntime")
@pytest.mark.parametrize("kind", [np.int32, np.int64])
@pytest.mark.parametrize(
    ("end", "step", "is_wrong"),
    [
        ((1 << 31) - 1, -1, True),
        ((1 << 31) - 1, -2, True),
        ((1 << 63) - 1, -1, True),
        ((1 << 31) - 2, -1, False),
        ((1 << 31) - 1, 1, False),
        (-(1 << 31), -1, False),
    ],
)
def test_a_slice_backwards_to_the_largest_integer_takes_nothing(
    end: int, step: int, is_wrong: bool, kind: Any, engine: Any
) -> None:
    """onnxruntime takes all back to the first element."""
    if not np.iinfo(kind).min <= end <= np.iinfo(kind).max:
        pytest.skip("no end of this type")
    made = parse_model("""
        <ir_version: 8, opset_import: ["": 18]>
        g (float[N,4] x) => (float[M,2] y, float[M,2] z) {
            s = Slice(x, start, end, axes, step)
            y, z = Split<axis = 1, num_outputs = 2>(s)
        }""")
    operands = {"start": [2, 0], "end": [end, 4], "axes": [0, 1], "step": [step, 1]}
    for name, numbers in operands.items():
        made.graph.initializer.append(onnx.numpy_helper.from_array(np.array(numbers, kind), name))
    findings = check(made, target="onnxruntime")
    assert [(each.code, each.node) for each in findings if "back to" in each.message] == (
        [("TS843", "graph/Slice[0]")] if is_wrong else []
    )
    lowered = lower(made, target="onnxruntime")
    assert (lowered != made) is is_wrong
    onnx.checker.check_model(lowered, full_check=True)
    assert lower(lowered, target="onnxruntime") == lowered
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    stop = -1 if end < 0 else min(end, 3 if step > 0 else 2)
    taken = x[list(range(2, stop, step))]
    got = run(lowered, {"x": x}, engine=engine)
    assert np.array_equal(got["y"], taken[:, :2])
    assert np.array_equal(got["z"], taken[:, 2:])


@with_own("onnxruntime")
@pytest.mark.parametrize("step", [1, -1])
def test_a_slice_to_the_largest_integer_is_right_whatever_its_step_is(
    step: int, engine: Any
) -> None:
    made = parse_model("""
        <ir_version: 8, opset_import: ["": 18]>
        g (float[N,4] x, int64[1] step) => (float[M,4] y)
        <int64[1] zero = {0}, int64[1] two = {2}, int64[1] end = {9223372036854775807}> {
            y = Slice(x, two, end, zero, step)
        }""")
    lowered = lower(made, target="onnxruntime")
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    got = run(lowered, {"x": x, "step": np.array([step])}, engine=engine)["y"]
    assert np.array_equal(got, x[2:] if step > 0 else x[:0])


MAP = "SequenceMap<body = c (float[A,B] q) => (float[A,B] w) { w = Neg(q) }>(s)"
IN_A_LOOP = """n = Constant<value_int = 1>()
    o = Loop<body = d (int64 i, bool g, float[C,D] a) => (bool h, float[E,F] e) {
        h = Identity(g) z = MAP e = ConcatFromSequence<axis = 0>(z)
    }>(n, , r)"""
IN_MAPS = {
    "in its body": (f"z = {MAP} o = ConcatFromSequence<axis = 0>(z)", True),
    "in a loop": (IN_A_LOOP.replace("MAP", MAP), False),
}


@with_own("onnxruntime")
@pytest.mark.parametrize("name", IN_MAPS)
def test_onnxruntime_loads_no_map_in_the_body_of_a_map(name: str, engine: Any) -> None:
    body, is_refused = IN_MAPS[name]
    made = parse_model(f"""
        <ir_version: 8, opset_import: ["": 18]>
        g (float[N,2] x) => (float[M,2] y) {{
            s = SplitToSequence<axis = 0>(x)
            m = SequenceMap<body = b (float[G,H] r) => (float[I,J] o) {{ {body} }}>(s)
            y = ConcatFromSequence<axis = 0>(m)
        }}""")
    errors = [each for each in check(made, target="onnxruntime") if each.severity == "error"]
    assert [(each.code, each.node) for each in errors] == (
        [("TS841", "graph/SequenceMap[1].body/SequenceMap[0]")] if is_refused else []
    )
    x = np.arange(6, dtype=np.float32).reshape(3, 2)
    if is_refused and engine == "onnxruntime":
        with pytest.raises(SplitError, match="INVALID_GRAPH"):
            run(made, {"x": x}, engine=engine)
    lowered = lower(made, target="onnxruntime")
    assert (lowered != made) is is_refused
    assert not [each for each in check(lowered, target="onnxruntime") if each.severity == "error"]
    assert lower(lowered, target="onnxruntime") == lowered
    assert np.array_equal(run(lowered, {"x": x}, engine=engine)["y"], np.tile(-x, (3, 1)))


def test_the_report_says_which_functions_were_inlined() -> None:
    """A portable model has none; those of another opset are converted first."""
    for opset, became in ((18, "inlined"), (17, "converted to opset 18")):
        model = parse_model(f"""
            <ir_version: 8, opset_import: ["": 18, "f": 1]>
            g (float[4] x) => (float[2] y) {{ y = f.half(x) }}
            <opset_import: ["": {opset}], domain: "f"> half (x) => (y) {{
                l = Constant<value_ints = [2, 2]>() y, z = Split<axis = 0>(x, l) }}""")
        report = lower_graph(onnx_model(model), "portable")
        first = report.changes[0]
        assert (first.node, first.operator, first.became) == ("function f::half", "half", became)
        assert "function" in first.reason


@pytest.mark.parametrize(
    ("shape", "split", "part", "joined", "held"),
    [
        ("2,N", "axis = 1", "2,3", "axis = 1", [2, 0]),
        ("2,4,N", "axis = 2, keepdims = 0", "2,4", "axis = 2, new_axis = 1", [2, 4, 0]),
        ("2,N,4", "axis = -2, keepdims = 0", "2,4", "axis = 1, new_axis = 1", [2, 0, 4]),
    ],
)
def test_what_a_loop_carries_of_parts_along_another_axis_is_declared_so(
    shape: str, split: str, part: str, joined: str, held: list[int]
) -> None:
    """Only the axis along which the parts lie is of an unknown length."""
    lengths = "" if "keepdims" in split else ", three"
    made = lower(
        parse_model(f"""
        <ir_version: 8, opset_import: ["": 18]>
        g (float[{shape}] x, int64 n) => (float[{shape.replace("N", "M")}] y)
        <int64 three = {{3}}> {{
            s = SplitToSequence<{split}>(x{lengths})
            t = Loop(n, , s) <body = b (int64 i, bool c, seq(float[{part}]) p)
                => (bool d, seq(float[{part}]) q) {{
                d = Identity(c) e = SequenceAt(p, i) q = SequenceInsert(p, e) }}>
            y = ConcatFromSequence<{joined}>(t)
        }}"""),
        target="portable",
    )
    onnx.checker.check_model(made, full_check=True)
    (loop,) = (node for node in made.graph.node if node.op_type == "Loop")
    carried = loop.attribute[0].g.input[2].type.tensor_type
    assert [dim.dim_value for dim in carried.shape.dim] == held
    dims = [6 if dim == "N" else int(dim) for dim in shape.split(",")]
    x = np.arange(np.prod(dims), dtype=np.float32).reshape(dims)
    rounds, again = (2, 6) if lengths else (4, 4)
    axis = shape.split(",").index("N")
    wanted = np.concatenate([x, np.take(x, range(again), axis)], axis)
    assert np.array_equal(run(made, {"x": x, "n": np.array(rounds)})["y"], wanted)


@with_own("onnxruntime", "openvino")
@pytest.mark.parametrize(
    ("first", "part", "given"),
    [
        ("SplitToSequence<keepdims = 0>(x)", "3", "float[A]"),
        ("SplitToSequence(x)", "1,3", "float[A, B]"),
        ("SequenceEmpty()", "1,3", "float[A, B]"),
        ("SequenceEmpty()", "3", "float[A]"),
    ],
)
def test_a_body_may_declare_more_of_a_sequence_than_it_gives(
    first: str, part: str, given: str, engine: Any
) -> None:
    """What the first round starts with would lie in one tensor, with what later ones take."""
    kind = given.removeprefix("float")
    text = f"""<ir_version: 8, opset_import: ["": 18]>
        g (float[N, 3] x, float{kind} v, int64 n) => (float{kind} y, int64 z)
        <int64 zero = {{0}}> {{
            s = {first}
            t = Loop(n, , s) <body = b (int64 i, bool c, seq(float[{part}]) p)
                => (bool d, seq(float{kind}) q) {{
                d = Identity(c) j = Cast<to = 1>(i) e = Add(v, j)
                q = SequenceInsert(p, e, zero) }}>
            y = SequenceAt(t, zero) z = SequenceLength(t)
        }}"""
    model = parse_model(text)
    lowered = lower(model, target="portable")
    assert "SequenceInsert" not in {node.op_type for node in lowered.graph.node}
    v = np.array([5, 6, 7], np.float32).reshape([int(size) for size in part.split(",")])
    feeds = {"x": np.ones((2, 3), np.float32), "v": v, "n": np.array(2)}
    found = run(lowered, feeds, engine=engine)
    assert found["y"].tolist() == (v + 1).tolist()
    assert found["z"] == (2 if first == "SequenceEmpty()" else 4)


@with_own("onnxruntime", "openvino")
@pytest.mark.parametrize("axis", [0, 1])
def test_parts_that_lie_side_by_side_meet_parts_that_lack_the_axis(axis: int, engine: Any) -> None:
    """The inner If gives one part or two of a known shape, the outer one those or what came in."""
    part = "float[2,3]"
    model = parse_model(
        f"""<ir_version: 8, opset_import: ["": 18]>
        g (float[4, 6] x, int64 n) => (float[A, B] y, int64 z)
        <int64 zero = {{0}}, int64 one = {{1}}, int64 size = {{{3 if axis else 2}}}> {{
            a, b = Split<axis = {1 - axis}, num_outputs = 2>(x)
            s = SplitToSequence<axis = {axis}>(a, size)
            t = Loop(n, , s) <body = o (int64 i, bool c, seq({part}) p) => (bool d, seq({part}) q)
            {{ d = Identity(c) e = SequenceAt(p, zero) f = Neg(e) k = Equal(i, zero)
                q = If(k) <then_branch = t1 () => (seq({part}) u) {{ u = SequenceInsert(p, f) }},
                else_branch = e1 () => (seq({part}) v) {{
                    j = Equal(i, one)
                    v = If(j) <then_branch = t2 () => (seq({part}) w)
                    {{ w = SequenceConstruct(f, e) }}, else_branch = e2 () => (seq({part}) r)
                    {{ r = SequenceConstruct(f) }}> }}>
            }}>
            y = ConcatFromSequence<axis = {axis}>(t) z = SequenceLength(t)
        }}"""
    )
    lowered = lower(model, target="portable")
    assert "SequenceInsert" not in {node.op_type for node in nodes_of(lowered.graph)}
    x = np.random.default_rng(3).integers(1, 9, (4, 6)).astype(np.float32)
    first, second = np.split(np.split(x, 2, 1 - axis)[0], 2, axis)
    for rounds, parts in enumerate(
        [[first, second], [first, second, -first], [-first, first], [first]]
    ):
        found = run(lowered, {"x": x, "n": np.array(rounds)}, engine=engine)
        assert found["y"].tolist() == np.concatenate(parts, axis).tolist()
        assert found["z"] == len(parts)


def test_parts_of_a_rank_that_is_not_known_stay_in_the_tensor_that_they_lie_in() -> None:
    made = lower(
        parse_model("""
        <ir_version: 8, opset_import: ["": 18]>
        g (float[] x, bool c) => (float[] y) <int64 k = {0}> {
            s = SplitToSequence(x)
            t = If(c) <then_branch = a () => (seq(float[]) p) { p = Identity(s) },
                else_branch = b () => (seq(float[]) q) { q = SequenceErase(s, k) }>
            y = ConcatFromSequence<axis = 0>(t)
        }"""),
        target="portable",
    )
    assert not {node.op_type for node in nodes_of(made.graph)} & SEQUENCE_OPERATORS
    x = np.arange(6, dtype=np.float32).reshape(3, 2)
    for condition, wanted in ((True, x), (False, x[1:])):
        assert np.array_equal(run(made, {"x": x, "c": np.array(condition)})["y"], wanted)


@pytest.mark.parametrize(
    ("text", "became"),
    [
        (
            "(float[N] x, int64[2] l) => (bool[A] y) { p, q = Split(x, l) y = Cast<to = 9>(p) }",
            ["Split with explicit lengths", "Cast of the negative"],
        ),
        (
            (
                "(float[N] x) => (float[A] y, float[B] z)"
                " { j = Concat<axis = 0>(x, x) y = Abs(j) z = Neg(j) }"
            ),
            ["Abs of the negative"],
        ),
        (
            "(int64 n, int64 m) => (int64[K] y) <int64 one = {1}> { y = Range(n, m, one) }",
            ["the same, with its start as its limit if it is empty"],
        ),
        ("(float[N,3,2] x) => (float[A,B] y) { y = Flatten<axis = 1>(x) }", []),
        (
            "(float[N,3,2] x) => (float[A,B] y) { y = Flatten<axis = 2>(x) }",
            ["Flatten by another axis, between Transposes"],
        ),
        (
            "(float[N] x) => (int64[1] y) { s = Shape(x) y = Abs(s) }",
            ["Where"],
        ),
        (
            "(int8[N] x, int8[N] k) => (int8[A] y) { y = Div(x, k) }",
            ["Div of int32"],
        ),
        (
            "(float[N] x, bool[3] c) => (float[A] y) { y = Compress(x, c) }",
            ["Compress of a row"],
        ),
    ],
)
def test_the_report_says_what_became_of_other_nodes(text: str, became: list[str]) -> None:
    made = onnx_model(parse_model(f'<ir_version: 8, opset_import: ["": 18]> g {text}'))
    report = lower_graph(made, "openvino")
    assert [change.became for change in report.changes] == became


def test_a_function_is_inlined_where_a_sequence_goes_through_it_that_can_not_stay() -> None:
    """Onnxruntime takes no sequence into a body before opset 13."""
    text = f"""g (float[N,4] x) => (float[M,4] y) <int64 trip = {{2}}, bool yes = {{1}}> {{
        r = SplitToSequence(x)  s = f.same(r)  t = {SEQUENCES_IN_BODIES["Loop"]}
        y = ConcatFromSequence<axis = 0>(t) }}
        <opset_import: ["": 12, "f": 1], domain: "f"> same (s) => (t) {{ t = f.keep(s) }}
        <opset_import: ["": 12], domain: "f"> keep (s) => (t) {{
            k = SequenceLength(s) z = Sub(k, k) a = SequenceAt(s, z)
            u = SequenceErase(s, z) t = SequenceInsert(u, a, z) }}"""
    model = parse_model(f'<ir_version: 8, opset_import: ["": 12, "f": 1]> {text}')
    opened = onnx_model(model)
    report = lower_graph(opened, "onnxruntime")
    inlined = [each.node for each in report.changes if each.became == "inlined"]
    assert inlined == ["function f::same", "function f::keep"]
    assert {each.reason for each in report.changes if each.became == "inlined"} == {
        "it passes a sequence on"
    }
    x = np.random.default_rng(6).uniform(1, 2, (5, 4)).astype(np.float32)
    made = ir.serde.serialize_model(opened.model)
    assert np.array_equal(run(made, {"x": x})["y"], np.concatenate([x, x[:2]]))


def test_a_branch_gives_out_each_value_once() -> None:
    """Sequences that are the same have tensors of their own; onnxruntime refuses others."""
    given = "seq(float[N]) {0}p, seq(float[N]) {0}q, seq(float[N]) {0}r"
    body = (
        "{0}n = {1}(x) {0}p = SequenceConstruct({0}n) {0}q = Identity({0}p) {0}r = Identity({0}p)"
    )
    branches = ", ".join(
        f"{label} = {label[0]} () => ({given.format(label[0])}) {{ {body.format(label[0], made)} }}"
        for label, made in (("then_branch", "Neg"), ("else_branch", "Abs"))
    )
    made = lower(
        parse_model(f"""
        <ir_version: 8, opset_import: ["": 18]>
        g (float[N] x, bool c) => (float[M] y, float[K] z, float[L] w) <int64 k = {{0}}> {{
            t, u, v = If(c) <{branches}>
            y = SequenceAt(t, k) z = SequenceAt(u, k) w = SequenceAt(v, k) }}"""),
        target="portable",
    )
    (choice,) = (node for node in made.graph.node if node.op_type == "If")
    for attribute in choice.attribute:
        assert len({output.name for output in attribute.g.output}) == len(choice.output) == 3
    x = np.array([1, -2], np.float32)
    for condition, wanted in ((True, [-1, 2]), (False, [1, 2])):
        found = run(made, {"x": x, "c": np.array(condition)})
        assert [found[name].tolist() for name in "yzw"] == [wanted] * 3


@pytest.mark.engine("openvino")
@pytest.mark.parametrize("target", ["openvino", "portable"])
@pytest.mark.parametrize(
    ("dim", "lengths", "severity"),
    [(4, [1, 3], "error"), ("N", [1, 3], "error"), ("N", [2, 2], "warning")],
)
def test_lengths_in_an_input_of_floats_become_the_attribute(
    target: Any, dim: int | str, lengths: list[int], severity: str
) -> None:
    """OpenVINO ignores that input of Split-1, and gives equal parts."""
    text = ", ".join(map(str, lengths))
    made = parse_model(
        f"""<ir_version: 4, opset_import: ["": 1]> g (float[3,{dim}] x) => (float[3,A] b)
        <float[2] k = {{{text}}}> {{ a, b = Split<axis = 1>(x, k) }}"""
    )
    found = [
        each.severity
        for each in check(made, target)
        if "floats" in each.message and each.code != "TS829"
    ]
    assert found == ["error" if target == "portable" else severity]
    lowered = lower(made, target=target)
    assert not [each for each in check(lowered, target) if "floats" in each.message]
    x = np.random.default_rng(3).random((3, 4), np.float32)
    (part,) = run(lowered, {"x": x}, engine="openvino").values()
    assert np.array_equal(part, x[:, lengths[0] :])


def test_lowering_gives_up_after_a_thousand_rounds() -> None:
    model = onnx_model(BY_NAME["split13_int64"].model).model
    lowering = Lowering(model, load("portable"), LoweringReport("portable"))
    lowering._looks = 999
    lowering.look()
    with pytest.raises(RuntimeError, match="again and again"):
        lowering.look()
