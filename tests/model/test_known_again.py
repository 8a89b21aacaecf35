"""What lowering wrote is known again: nothing is left to lower, and nothing is known less."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from random import Random
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper
from onnx.parser import parse_model

import tensorsplit as ts
from tensorsplit import SplitError
from tests.model.build import INT64, value
from tests.model.lower.corpus import CASES, Case
from tests.model.random_models import random_model
from tests.refusals import refused

RANDOM = np.random.default_rng(2)
TARGETS = ("onnxruntime", "openvino", "portable")
CHECKED = ("openvino", "portable")
"""The targets whose models check lengths themselves."""


def lowered(model: onnx.ModelProto, target: Any) -> onnx.ModelProto | None:
    """The model for a target; None where there is no such model."""
    try:
        with warnings.catch_warnings(action="ignore"):
            return ts.lower(model, target=target)
    except SplitError as error:
        if error.code != "TS513":
            raise
        return None


def dim_of(dim: Any) -> int | str | None:
    return dim.dim_value if dim.HasField("dim_value") else dim.dim_param or None


def shapes(model: onnx.ModelProto) -> dict[str, list[int | str | None] | None]:
    """The inferred shape of each tensor of the main graph."""
    graph = ts.infer_shapes(model).graph
    found: dict[str, list[int | str | None] | None] = {}
    for entry in (*graph.value_info, *graph.output):
        if entry.type.HasField("tensor_type"):
            held = entry.type.tensor_type
            found[entry.name] = (
                list(map(dim_of, held.shape.dim)) if held.HasField("shape") else None
            )
    return found


def errors(model: onnx.ModelProto, target: Any) -> set[tuple[str, str | None]]:
    return {(f.code, f.operator) for f in ts.check(model, target=target) if f.severity == "error"}


def check_known_again(original: onnx.ModelProto, target: Any) -> None:
    """Nothing is left to lower, and as much is known of each value that has kept its name.

    Where the model has to be changed first, the fix says so: before opset 10 no node can check
    lengths, and some nodes are left if a rank is not known.
    """
    made = lowered(original, target)
    if made is None:
        return
    everywhere = {finding.message for finding in ts.check(original)}
    for finding in ts.check(made, target=target):
        is_first = any(words in finding.fix for words in ("tensorsplit convert", "a known rank"))
        if finding.message not in everywhere and not is_first:
            assert finding.severity != "error", finding
            assert "tensorsplit check MODEL" not in finding.fix, finding
    again = ts.lower(made, target=target)
    assert again.SerializeToString(deterministic=True) == made.SerializeToString(deterministic=True)
    before, after = shapes(original), shapes(made)
    for name in before.keys() & after.keys():
        known, now = before[name], after[name]
        if known is not None:
            assert now is not None, name
            assert len(now) == len(known), name
            pairs = list(zip(known, now, strict=True))
            assert all(b is not None for a, b in pairs if a is not None), (name, known, now)
            assert all(a == b for a, b in pairs if isinstance(a, int)), (name, known, now)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A test for each seed."""
    if "seed" in metafunc.fixturenames:
        first = metafunc.config.getoption("seed")
        metafunc.parametrize("seed", range(first, first + 40))


@pytest.mark.thorough
@pytest.mark.filterwarnings("ignore::tensorsplit.SplitWarning")
def test_of_random_models(seed: int) -> None:
    random = random_model(seed)
    for target in TARGETS:
        check_known_again(random.model, target)


NO_TYPE = "sequence_bfloat16"
"""Onnx's schemas have no sequences of bfloat16, in the original neither."""


@pytest.mark.thorough
@pytest.mark.filterwarnings("ignore::tensorsplit.SplitWarning")
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_of_the_corpus(case: Case) -> None:
    for target in TARGETS:
        check_known_again(case.model, target)


def model_of(opset: int, text: str) -> onnx.ModelProto:
    version = 8 if opset < 21 else 10
    return parse_model(f'<ir_version: {version}, opset_import: ["" : {opset}]> {text}')


PARTS = {2: "a, b", 3: "a, b, c", 5: "a, b, c, d, e"}


def split(parts: int, node: str, inputs: str = "float[N] x") -> str:
    outputs = ", ".join(f"float[{name.upper()}] {name}" for name in PARTS[parts].split(", "))
    return f"g ({inputs}) => ({outputs}) {{ {PARTS[parts]} = {node} }}"


NAMES = ", ".join(["a", *(f"p{index}" for index in range(99))])
MANY = f"g (float[N] x) => (float[A] a) {{ {NAMES} = Split<num_outputs=100>(x) }}"
OF_A_PART = "g (float[N] x) => (float[A] c, float[B] d)"
OF_A_PART += " { a, b = Split(x)  y = Relu(a)  c, d = Split(y) }"
IN_A_BODY = (
    "g (bool go, float[N] x) => (float[A] a) { a = If(go) <then_branch = t () => (float[P] p)"
    " { p, q = Split<num_outputs=2>(x) }, else_branch = e () => (float[R] r)"
    " { l = Constant<value = int64[2] {2,4}>()  r, s = Split(x, l) }> }"
)
OF_A_SHAPE = (  # of a rank that only a declaration says, which engines do not read
    "g (float[1, N] x, int64[1] axis) => (float[?] u, float[A] a) <int64[1] flat = {-1}>"
    " { u = Squeeze(x, axis)  l = Shape(u)  y = Reshape(x, flat)  a = Split(y, l) }"
)
DECLARED = (  # how many lengths there are is only declared
    "g (float[N] x, int64[1] count) => (float[A] a, float[B] b)"
    " <int64[1] two = {2}, int64[2] l> { n = Shape(x)  half = Div(n, two)"
    "  l = Expand(half, count)  a, b = Split(x, l) }"
)
SPLITS = {
    **{f"equal {n} at {o}": (o, split(n, "Split(x)")) for n in PARTS for o in (11, 13, 17)},
    **{f"ceil {n}": (18, split(n, f"Split<num_outputs={n}>(x)")) for n in PARTS},
    "one part": (18, "g (float[N] x) => (float[A] a) { a = Split<num_outputs=1>(x) }"),
    "one equal part": (13, "g (float[N] x) => (float[A] a) { a = Split(x) }"),
    "fed": (18, split(3, "Split(x, l)", "float[N] x, int64[3] l")),
    "fed of known length": (13, split(2, "Split(x, l)", "float[6] x, int64[2] l")),
    "fed of any count": (18, split(3, "Split(x, l)", "float[N] x, int64[K] l")),
    "one of any count": (18, "g (float[N] x, int64[K] l) => (float[A] a) { a = Split(x, l) }"),
    "many parts": (18, MANY),
    "on the last axis": (18, split(2, "Split<axis=-1, num_outputs=2>(x)", "float[2,N] x")),
    "of a part": (13, OF_A_PART),
    "constant": (
        18,
        "g (float[N] x) => (float[A] a, float[B] b) <int64[2] l = {2,4}> { a, b = Split(x, l) }",
    ),
    "in a body": (18, IN_A_BODY),
    "of a shape": (13, OF_A_SHAPE),
    "declared": (13, DECLARED),
    "of a multiple": (
        18,
        """g (float[N] x) => (float[B] b) { y = Concat<axis = 0>(x, x, x)
        a, b, c = Split<num_outputs = 3>(y) }""",
    ),
}


@pytest.mark.filterwarnings("ignore::tensorsplit.SplitWarning")
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", SPLITS)
def test_of_one_split(name: str, target: Any) -> None:
    check_known_again(model_of(*SPLITS[name]), target)


@pytest.mark.filterwarnings("ignore::tensorsplit.SplitWarning")
def test_a_guard_is_written_once() -> None:
    for name in ("fed of known length", "declared"):
        made = ts.lower(model_of(*SPLITS[name]), target="portable")
        assert [each.op_type for each in made.graph.node].count("Slice") == 1


@pytest.mark.filterwarnings("ignore::tensorsplit.SplitWarning")
def test_what_is_written_is_lowered_too() -> None:
    """OpenVINO takes no Abs of what is calculated from shapes, as lengths of sequences are then."""
    text = """g (float[N,K] x) => (int64 y) {
        s = SplitToSequence<axis=0>(x)  n = SequenceLength(s)  y = Abs(n) }"""
    made = ts.lower(model_of(18, text), target="openvino")
    assert "Abs" not in {each.op_type for each in made.graph.node}
    check_known_again(model_of(18, text), "openvino")


OPSETS = (8, 9, 10, 11, 12, 13, 18)


def converted(model: onnx.ModelProto, opset: int) -> onnx.ModelProto | None:
    """The model at an opset; None where it is not expressible there."""
    try:
        return ts.convert(model, opset=opset)
    except SplitError as error:
        if error.code not in ("TS101", "TS201", "TS310", "TS512"):
            raise
        return None


NOT_EXPRESSIBLE = (
    "is a seq(",  # a Loop that carries a sequence, before opset 13
)
"""What lowering writes and older opsets lack, as the refusal says."""


def check_converts(original: onnx.ModelProto, target: Any, feeds: dict[str, Any]) -> None:
    """The model for the target goes to each opset that the original goes to, and gives the same."""
    made = lowered(original, target)
    if made is None:
        return
    try:
        expected = ts.run(original, feeds)
    except SplitError as error:
        if error.code != "TS509":  # an operator that our own engine lacks
            raise
        return
    for opset in OPSETS:
        if converted(original, opset) is None:
            continue
        try:
            there = ts.convert(made, opset=opset)
        except SplitError as error:
            if not any(words in str(error) for words in NOT_EXPRESSIBLE):
                raise
            continue
        onnx.checker.check_model(there)
        got = ts.run(there, feeds)
        assert got.keys() == expected.keys()
        for name, wanted in expected.items():
            assert_same(got[name], wanted)


def assert_same(got: Any, wanted: Any) -> None:
    if isinstance(wanted, list):
        assert len(got) == len(wanted)
        for one, other in zip(got, wanted, strict=True):
            assert_same(one, other)
    else:
        assert (got.shape, got.tolist()) == (wanted.shape, wanted.tolist())


@pytest.mark.thorough
@pytest.mark.filterwarnings("ignore::tensorsplit.SplitWarning")
def test_random_models_convert_once_lowered(seed: int) -> None:
    random = random_model(seed)
    for target in TARGETS:
        check_converts(random.model, target, random.feeds)


NOT_YET = {
    "variadic_split_dynamic": "the operator of OpenVINO that it was is not written again",
    NO_TYPE: "no schema takes it",
}
"""What goes to fewer opsets once it is lowered, with the reason."""


@pytest.mark.thorough
@pytest.mark.filterwarnings("ignore::tensorsplit.SplitWarning")
@pytest.mark.parametrize(
    "case", [case for case in CASES if case.name not in NOT_YET], ids=lambda case: case.name
)
def test_the_corpus_converts_once_lowered(case: Case) -> None:
    for target in TARGETS:
        check_converts(case.model, target, case.inputs())


TWO = "g (float[N] x) => (float[A] a, float[B] b, float[C] c, float[D] d, float[E] e)"
NESTED = "g (float[N] x) => (float[A] b, float[B] d) { a, b = Split(x)  c, d = Split(a) }"
BESIDE = "g (float[N,M] x) => (float[A,M] a, float[B,M] b) <int64[2] l = {3,8}>"
EXPRESSIBLE = {
    **{f"equal {n} at {o}": (o, split(n, "Split(x)")) for n in PARTS for o in (11, 13, 17)},
    "constant": SPLITS["constant"],
    "constant at 11": (11, split(3, "Split<split=[1,0,5]>(x)")),
    "of a part": (11, NESTED),
    "constant beside a named one": (13, f"{BESIDE} {{ a, b = Split(x, l) }}"),
    "strings": (13, split(2, "Split(x)", "string[N] x").replace("float", "string")),
    "two of one tensor": (13, f"{TWO} {{ a, b = Split(x)  c, d, e = Split(x) }}"),
}
"""Splits that attributes can hold, too."""


@pytest.mark.filterwarnings("ignore::tensorsplit.SplitWarning")
@pytest.mark.parametrize("target", CHECKED)
@pytest.mark.parametrize("name", EXPRESSIBLE)
def test_a_guarded_split_is_one_node_again_before_opset_10(name: str, target: Any) -> None:
    original = model_of(*EXPRESSIBLE[name])
    data: Any = np.arange(10 if "equal 5" in name else 6, dtype=np.float32)
    data = data.astype(str).astype(object) if name == "strings" else data
    data = np.ones((11, 2), np.float32) if "beside" in name else data
    data = np.arange(8, dtype=np.float32) if name == "of a part" else data
    check_converts(original, target, {"x": data})
    made = lowered(original, target)
    assert made is not None
    for opset in (7, 9):
        there = ts.convert(made, opset=opset)
        assert {node.op_type for node in there.graph.node} == {"Split"}
        with pytest.raises(SplitError, match="Split"):
            ts.run(there, {"x": data[1:]})


@pytest.mark.parametrize("target", CHECKED)
def test_a_guard_that_was_edited_is_not_one_node_again(target: Any) -> None:
    """A part of a Slice begins one further: the three no longer follow each other."""
    made = lowered(model_of(*SPLITS["equal 3 at 11"]), target)
    assert made is not None
    ts.convert(made, opset=9)
    second = [node for node in made.graph.node if node.op_type == "Slice"][-1]
    second.input[1] = second.input[2]
    there = ts.convert(made, opset=9)
    assert "Split" not in {node.op_type for node in there.graph.node}
    parts = ts.run(there, {"x": np.arange(6, dtype=np.float32)})
    assert [part.tolist() for part in parts.values()] == [[0, 1], [2, 3], []]
    with refused("TS512"):
        ts.convert(made, opset=8)


def test_lengths_that_are_checked_are_checked_once() -> None:
    """Where Split becomes Slice nodes, the guard of its lengths is theirs."""
    made = ts.convert(guarded("fed"), opset=11)
    assert sum(node.op_type == "Reshape" for node in made.graph.node) == 1


GUARDED = [name for name in SPLITS if " at 11" not in name and name != "one part"]


def guarded(name: str) -> onnx.ModelProto:
    made = lowered(model_of(*SPLITS[name]), "portable")
    assert made is not None
    assert is_known(made)
    return made


def is_known(model: onnx.ModelProto) -> bool:
    """Whether nothing is wrong with a model, and it checks its lengths."""
    return not errors(model, "portable")


def runs_wrong(model: onnx.ModelProto, feeds: dict[str, Any]) -> bool:
    """Whether the lengths of some split do not fit, and nothing before it stops the model."""
    watched = onnx.ModelProto.FromString(model.SerializeToString())
    (node,) = [node for node in watched.graph.node if node.op_type == "Split"]
    del watched.graph.output[:]
    watched.graph.output.append(value(node.input[1], INT64))
    watched.graph.node.remove(node)
    try:
        (lengths,) = ts.run(watched, feeds).values()
    except SplitError:
        return False
    fits = len(lengths) == len(node.output) and min(lengths) >= 0
    return not fits or int(sum(map(int, lengths))) != feeds["x"].shape[0]


def feeds_of(name: str) -> Iterator[dict[str, Any]]:
    """What to feed a split on the first axis, right and wrong."""
    for dim in (6,) if name == "fed of known length" else range(13):
        x = np.arange(dim, dtype=np.float32)
        if not name.startswith("fed"):
            yield {"x": x}
            continue
        count = 2 if name == "fed of known length" else 3
        lists = [[dim] + [0] * (count - 1), [1] * count, [-1, dim + 1] + [0] * (count - 2)]
        lists += [[dim + 1, -1] + [0] * (count - 2), [0] * count, [2] * count]
        if "any count" in name:
            lists += [[dim], [0, dim], [0, 0, 0, dim]]
        yield from ({"x": x, "l": np.array(each, np.int64)} for each in lists)


def edited(model: onnx.ModelProto) -> Iterator[tuple[str, onnx.ModelProto]]:
    """The model with one constant changed, or one input of a node replaced by another value."""
    names = [out for node in model.graph.node for out in node.output if node.op_type != "Split"]
    for at, node in enumerate(model.graph.node):
        if node.op_type == "Constant":
            for more in (1, -1, 5):
                made = onnx.ModelProto.FromString(model.SerializeToString())
                held = made.graph.node[at].attribute[0].t
                held.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(held) + more))
                yield f"{node.output[0]} {more:+}", made
        for place, was in enumerate(node.input):
            for other in names[: names.index(node.output[0])] if node.output[0] in names else names:
                if other not in (was, node.output[0]) and was in names:
                    made = onnx.ModelProto.FromString(model.SerializeToString())
                    made.graph.node[at].input[place] = other
                    yield f"{node.op_type} {node.output[0]}[{place}] = {other}", made


@pytest.mark.thorough
@pytest.mark.parametrize(
    "name", ["equal 3 at 13", "ceil 3", "fed", "fed of known length", "constant"]
)
def test_an_edited_guard_is_believed_only_where_it_still_guards(name: str) -> None:
    """A constant or an input of the guard is another one."""
    tried = believed = 0
    edits = list(edited(guarded(name)))
    for what, model in Random(1).sample(edits, min(40, len(edits))):
        try:
            is_believed = is_known(model)
        except SplitError:
            continue
        tried, believed = tried + 1, believed + is_believed
        if is_believed:
            assert not any(runs_wrong(model, feeds) for feeds in feeds_of(name)), what
    assert 0 < believed + 1 < tried


def test_a_guard_of_another_axis_or_tensor_is_not_believed() -> None:
    text = "g (float[N,M] x, float[K,M] y) => (float[A,B] a, float[C,D] b) {"
    text += " a, b = Split<axis=0, num_outputs=2>(x) }"
    for change in ("axis", "data"):
        made = lowered(model_of(18, text), "portable")
        assert made is not None
        assert is_known(made)
        (node,) = [node for node in made.graph.node if node.op_type == "Split"]
        if change == "axis":
            node.attribute[0].i = 1
        else:
            node.input[0] = "y"
        assert not is_known(made), change


def with_lengths(
    made: onnx.ModelProto, text: list[tuple[str, str, str]], **numbers: list[int]
) -> None:
    """Put nodes before a Split that make its lengths, `chosen`, of those that it has, `lengths`.

    A node is told as an operator, its inputs, and its output.
    """
    (node,) = [node for node in made.graph.node if node.op_type == "Split"]
    made.graph.initializer.extend(
        numpy_helper.from_array(np.array(held, np.int64), name) for name, held in numbers.items()
    )
    at, lengths = list(made.graph.node).index(node), node.input[1]
    for number, (operator, inputs, output) in enumerate(text):
        names = [lengths if name == "lengths" else name for name in inputs.split()]
        made.graph.node.insert(at + number, helper.make_node(operator, names, [output]))
    node.input[1] = "chosen"


AT_FIVE = [("Shape", "x", "dim"), ("Equal", "dim five", "is")]


def test_a_guard_with_an_exception_is_not_believed() -> None:
    """The lengths are wrong for one dimension only, that of a constant of the guard."""
    made = guarded("equal 3 at 13")
    nodes = [*AT_FIVE, ("Where", "is wrong lengths", "chosen")]
    with_lengths(made, nodes, five=[54321], wrong=[2, 2, 2])
    assert not is_known(made)


@pytest.mark.parametrize(("place", "is_one_node"), [(0, True), (1, False)])
def test_lengths_that_stop_the_model_for_a_legal_dimension_are_no_rule(
    place: int, is_one_node: bool
) -> None:
    """A list of one number has no element 1, so that the dimension 54321 is refused."""
    made = guarded("equal 3 at 13")
    nodes = [*AT_FIVE, ("Where", "is place nil", "at"), ("Gather", "nil at", "none")]
    nodes.append(("Add", "lengths none", "chosen"))
    with_lengths(made, nodes, five=[54321], nil=[0], place=[place])
    if is_one_node:
        assert [each.op_type for each in ts.convert(made, opset=9).graph.node] == ["Split"]
    else:
        with refused("TS310"):
            ts.convert(made, opset=9)


BEHIND = {
    "more than is calculated": "(float[N] x, int64 n, int64[1] l) => (float[A] a) <int64 one = {1}>"
    " { r = Range(n, one, one)  s = Shape(r)  c = Concat<axis = 0>(s, l)  a, b = Split(x, c) }",
    "of an unknown rank": "(float[N] x, int64[2] k, int64 n, int64[1] l, int64[1] z)"
    " => (float[A] a) <int64[1] z = {0}, int64 one = {1}> { q = Squeeze(k, z)  p = Add(q, l)"
    " v = ReduceSum<keepdims = 0>(p)  r = Range(n, v, one)  s = Shape(r)"
    " c = Concat<axis = 0>(s, l)  a, b = Split(x, c) }",
}
"""Lengths that go back to a value that is not calculated for the numbers that are tried."""


@pytest.mark.filterwarnings("ignore::tensorsplit.SplitWarning")
@pytest.mark.parametrize("target", CHECKED)
@pytest.mark.parametrize("name", BEHIND)
def test_a_guard_is_known_behind_what_may_be_anything(name: str, target: Any) -> None:
    check_known_again(model_of(21, f"g {BEHIND[name]}"), target)


@pytest.mark.engine
@pytest.mark.parametrize("target", CHECKED)
@pytest.mark.parametrize("name", GUARDED)
def test_a_guard_is_known_after_an_optimiser(name: str, target: Any, tmp_path: Any) -> None:
    """onnxruntime folds constants and merges nodes that are alike, and drops what a model notes."""
    onnxruntime = pytest.importorskip("onnxruntime")
    with warnings.catch_warnings(action="ignore"):
        made = lowered(model_of(*SPLITS[name]), target)
    assert made is not None
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC
    options.optimized_model_filepath = str(tmp_path / "optimised.onnx")
    options.log_severity_level = 3
    onnxruntime.InferenceSession(made.SerializeToString(), options, ["CPUExecutionProvider"])
    optimised = onnx.load(tmp_path / "optimised.onnx")
    assert not errors(optimised, target)
    with warnings.catch_warnings(action="ignore"):
        assert ts.lower(optimised, target=target) == optimised


LENGTHS: dict[str, Callable[[int, int], int]] = {
    "l = Add(k, c)": lambda rows, number: rows + number,
    "l = Sub(k, c)": lambda rows, number: rows - number,
    "l = Add(n, c)": lambda rows, number: rows + number,
    "l = Max(k, c)": max,
    "h = Div(k, two) l = Add(h, c)": lambda rows, number: rows // 2 + number,
}


@pytest.mark.parametrize("number", range(-12, 13))
@pytest.mark.parametrize("lengths", LENGTHS)
def test_a_length_that_goes_with_another_dimension_is_not_constant(
    lengths: str, number: int
) -> None:
    """Of all dimensions that are tried, few fit such a length, and each fits one value."""
    model = parse_model(
        '<ir_version: 8, opset_import: ["": 16]> g (float[K,M] x, int64[1] n) => (float[?,?] y)'
        f" <int64 zero = {{0}}, int64[1] two = {{2}}, int64[1] c = {{{number}}}>"
        f" {{ s = Shape(x) k = Gather(s, zero) {lengths} y = Split<axis = 1>(x, l) }}"
    )
    made = lowered(model, "portable")
    assert made is not None
    for rows in (0, 1, 3, 9):
        columns = LENGTHS[lengths](rows, number)
        if columns >= 0:
            x = RANDOM.uniform(size=(rows, columns)).astype(np.float32)
            assert np.array_equal(ts.run(made, {"x": x, "n": np.array([rows])})["y"], x)


COUNTS: dict[str, Callable[[int], int]] = {
    "g = Greater(s, t) c = Cast<to = 7>(g) k = ReduceSum(c, zero)": lambda count: count,
    "g = Less(t, s) c = Where(g, one, zero) k = ReduceSum(c, zero)": lambda count: count,
    "g = Less(t, s) c = Cast<to = 7>(g) b = ReduceSum(c, zero) k = Div(b, few)": lambda count: (
        count // 50
    ),
}


@pytest.mark.parametrize("dim", [3, 600, "N"])
@pytest.mark.parametrize("count", COUNTS)
def test_a_list_in_which_is_counted_may_be_longer_than_the_axis(count: str, dim: object) -> None:
    """A part is as long as what is counted, and the other is the rest, which may be below 0."""
    model = parse_model(
        f'<ir_version: 8, opset_import: ["": 17]> g (float[{dim}] x, int64[T] s)'
        " => (float[?] y, float[?] z) <int64[1] zero = {0}, int64[1] one = {1},"
        f" int64[1] few = {{50}}, int64 t = {{0}}> {{ {count} n = Shape(x) r = Sub(n, k)"
        " l = Concat<axis = 0>(k, r) y, z = Split<axis = 0>(x, l) }"
    )
    size = 3 if dim == "N" else int(str(dim))
    x = RANDOM.uniform(size=size).astype(np.float32)
    many = RANDOM.integers(1, 9, 50 * size + 50)
    few = many[:size]
    for made in (ts.convert(model, opset=12), lowered(ts.convert(model, opset=11), "portable")):
        assert made is not None
        number = COUNTS[count](size)
        parts = ts.run(made, {"x": x, "s": few})
        assert np.array_equal(parts["y"], x[:number])
        assert np.array_equal(parts["z"], x[number:])
        with refused("TS510"):
            ts.run(made, {"x": x, "s": many})


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("lengths", [[6], [2, 4], [1, 0, 5]])
def test_lengths_of_unknown_rank_are_a_list_or_refused(lengths: list[int], target: Any) -> None:
    """A list of one length, which each shape broadcasts with, is known again as others are."""
    count = len(lengths)
    parts = ["p", "q", "r"][:count]
    model = parse_model(
        '<ir_version: 8, opset_import: ["": 17]> g (float[N] x, int64[K] e, int64[S] s) =>'
        f" ({', '.join(f'float[?] {part}' for part in parts)})"
        f" {{ l = Reshape(e, s) {', '.join(parts)} = Split(x, l) }}"
    )
    made = lowered(model, target)
    assert made is not None
    assert not errors(made, target)
    assert lowered(made, target) == made
    x, places = RANDOM.uniform(size=6).astype(np.float32), np.cumsum([0, *lengths])
    given = {"x": x, "e": np.array(lengths)}
    got = ts.run(made, {**given, "s": np.array([count])})
    for part, start, end in zip(parts, places[:-1], places[1:], strict=True):
        assert np.array_equal(got[part], x[start:end])
    for shape in ([1, count], [count, 1], [] if count == 1 else [count, 1, 1]):
        with refused("TS510"):
            ts.run(made, {**given, "s": np.array(shape, np.int64)})


EMPTY = {
    "of a number that is not known": "(float[0,M] x, int64[1] k) => (float[A,B] y) <int64[1] one ="
    " {1}, int64[1] zero = {0}> { s = Shape(x)  d = Slice(s, k, one, zero)  y = Split<axis=0>(x, d)"
    " }",
    "that are 0 whatever is fed": "(float[0,M] x, int64[A] k) => (float[B,C] y, float[D,E] z)"
    " <int64[1] zero = {0}> { f = Min(k, zero)  g = Max(f, zero)  l = Concat<axis=0>(g, zero)"
    " y, z = Split<axis=0>(x, l) }",
}
"""Lengths of an axis without elements that fit whenever they are as many as the parts."""


@pytest.mark.filterwarnings("ignore::tensorsplit.SplitWarning")
@pytest.mark.parametrize("target", CHECKED)
@pytest.mark.parametrize("name", EMPTY)
def test_lengths_that_fit_an_empty_axis_whatever_is_fed_are_checked_once(
    name: str, target: Any
) -> None:
    model = model_of(15, f"g {EMPTY[name]}")
    made = lowered(model, target)
    assert made is not None
    assert not errors(made, target)
    assert lowered(made, target) == made
    x = RANDOM.uniform(size=(0, 3)).astype(np.float32)
    assert ts.run(made, {"x": x, "k": np.array([0])})["y"].shape == (0, 3)
    with refused("TS510"):
        ts.run(made, {"x": x, "k": np.array([1] if "number" in name else [1, 1])})


@pytest.mark.parametrize("target", CHECKED)
@pytest.mark.parametrize("count", [1, 2, 4])
def test_lengths_that_are_joined_of_lists_of_any_length_are_checked_once(
    count: int, target: Any
) -> None:
    """The lists are longer than the axis for many of the dimensions that are tried."""
    lists = [f"l{place}" for place in range(count)]
    made = parse_model(f"""<ir_version: 10, opset_import: ["": 18]>
        g (int64[N] x, {", ".join(f"int64[?] {name}" for name in lists)}) => (int64[A] a)
        {{ s = Concat<axis = 0>({", ".join(lists)}) a, b, c, d = Split(x, s) }}""")
    once = lowered(made, target)
    assert once is not None
    assert lowered(once, target) == once
