"""The search for the smallest model, step by step, with an engine that is a rule of the test."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import onnx
import pytest
from onnx.parser import parse_model
from onnx.reference import ReferenceEvaluator

from tensorsplit.conformance import reducing
from tensorsplit.conformance.reducing import Candidate, Failure, Reduced
from tensorsplit.engines.process import Reply

HEAD = '<ir_version: 9, opset_import: ["": 18]> '
Rule = Callable[[Candidate], bool]
reduced = partial(reducing.reduced, seconds=120, seconds_each=10)


def kinds(candidate: Candidate) -> list[str]:
    return [node.op_type for node in candidate.model.graph.node]


def dims(entry: onnx.ValueInfoProto) -> list[int | str]:
    held = entry.type.tensor_type.shape.dim
    return [dim.dim_value if dim.HasField("dim_value") else dim.dim_param for dim in held]


def numbers(*shape: int) -> np.ndarray[Any, Any]:
    return np.random.default_rng(4).uniform(1, 2, shape).astype(np.float32)


class Rules:
    """What stands for the process of an engine: a rule says which candidates fail, and how."""

    def __init__(self, rule: Callable[[Candidate], str]) -> None:
        self.rule, self.afresh = rule, 0

    def __call__(self, subject: Any, _seconds: float) -> Rules:
        self.subject = subject
        return self

    def failure(self, candidate: Candidate, *, afresh: bool = False) -> Failure | None:
        self.afresh += afresh
        kind = self.rule(candidate)
        return Failure(kind, "") if kind else None

    def close(self) -> None:
        pass


def search(
    monkeypatch: pytest.MonkeyPatch,
    text: str,
    inputs: dict[str, Any],
    rule: Callable[[Candidate], str],
) -> Reduced:
    monkeypatch.setattr(reducing, "_Trial", Rules(rule))
    return reduced(parse_model(HEAD + text), inputs, "onnx-reference")


def fails(rule: Rule) -> Callable[[Candidate], str]:
    """The rule of an engine that gives something wrong of what is legal."""
    return lambda each: "wrong" if each.expected is not None and rule(each) else ""


def has(kind: str) -> Rule:
    """The rule that a candidate with a node of this type fails."""
    return lambda each: kind in kinds(each)


def makes(candidate: Candidate, name: str) -> bool:
    """Return whether a node of a candidate gives this value."""
    return any(name in node.output for node in candidate.model.graph.node)


@pytest.mark.parametrize(
    ("rule", "length"),
    [
        (lambda n: n >= 1, 1),
        (lambda n: n >= 3, 3),
        (lambda n: n >= 7, 7),
        (lambda n: n in (9, 1), 1),
        (lambda n: n in (9, 2), 2),
        (lambda n: n in (9, 4), 4),
        (lambda n: n == 9, 9),
    ],
)
@pytest.mark.parametrize("axis", [0, 1])
def test_an_axis_becomes_as_short_as_still_fails(
    monkeypatch: pytest.MonkeyPatch, rule: Callable[[int], bool], length: int, axis: int
) -> None:
    shape = (9, 1) if axis == 0 else (1, 9)
    text = f"g (float[{shape[0]},{shape[1]}] x) => (float[?,?] y) {{ y = Neg(x) }}"
    found = search(
        monkeypatch, text, {"x": numbers(*shape)}, fails(lambda each: rule(each.inputs["x"].size))
    )
    expected = [length, 1] if axis == 0 else [1, length]
    assert list(found.after.inputs["x"].shape) == expected
    assert dims(found.after.model.graph.input[0]) == expected
    assert found.before.inputs["x"].shape == shape


def test_a_dimension_with_a_name_keeps_it(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "g (float[N] x) => (float[N] y) { y = Neg(x) }"
    found = search(monkeypatch, text, {"x": numbers(5)}, fails(lambda _: True))
    assert found.after.inputs["x"].shape == (1,)
    assert dims(found.after.model.graph.input[0]) == ["N"]


def test_axes_of_one_length_become_shorter_together(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "g (float[6,2] x, float[6,3] y) => (float[6,5] z) { z = Concat<axis=1>(x, y) }"
    inputs = {"x": numbers(6, 2), "y": numbers(6, 3)}
    found = search(monkeypatch, text, inputs, fails(lambda _: True))
    assert [each.shape for each in found.after.inputs.values()] == [(1, 1), (1, 1)]


def test_each_axis_becomes_shorter_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "g (float[6] x, float[6] y) => (float[6] a, float[6] b) { a = Neg(x) b = Abs(y) }"
    rule = fails(lambda each: kinds(each) == ["Neg", "Abs"] and each.inputs["x"].size == 6)
    found = search(monkeypatch, text, {"x": numbers(6), "y": numbers(6)}, rule)
    assert [each.size for each in found.after.inputs.values()] == [6, 1]


def test_what_is_read_beside_the_result_of_a_node_is_fed(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "g (float[2] x, float[2] y) => (float[2] z) { a = Neg(x) b = Add(a, y) z = Abs(b) }"
    rule = fails(lambda each: kinds(each)[:2] == ["Neg", "Add"])
    found = search(monkeypatch, text, {"x": numbers(2), "y": numbers(2)}, rule)
    assert kinds(found.after) == ["Neg", "Add"]
    assert list(found.after.inputs) == ["x", "y"]


CHAIN = "g (float[N] x) => (float[M] z) { a = Neg(x) b, c = Split<num_outputs=2>(a) z = Abs(b) }"


@pytest.mark.parametrize("static", [True, False])
def test_what_nodes_before_calculated_is_declared_with_sizes_or_without(
    monkeypatch: pytest.MonkeyPatch, static: bool
) -> None:
    def rule(each: Candidate) -> bool:
        first = each.model.graph.input[0]
        return "Split" in kinds(each) and (first.name == "x" or bool(dims(first)[0]) is static)

    found = search(monkeypatch, CHAIN, {"x": numbers(8)}, fails(rule))
    assert kinds(found.after) == ["Split"]
    assert dims(found.after.model.graph.input[0]) == [
        found.after.inputs["a"].size if static else ""
    ]
    assert [(each.name, dims(each)) for each in found.after.model.graph.output] == [
        ("b", [""]),
        ("c", [""]),
    ]


def test_another_failure_is_not_the_one_that_is_looked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def rule(each: Candidate) -> str:
        return "crash" if {"Split", "Abs"} <= set(kinds(each)) else "wrong"

    found = search(monkeypatch, CHAIN, {"x": numbers(8)}, rule)
    assert (found.failure.kind, kinds(found.after)) == ("crash", ["Split", "Abs"])


def test_what_does_not_fail_in_a_new_process_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    trial = Rules(lambda each: "" if trial.afresh > 1 else "wrong")
    monkeypatch.setattr(reducing, "_Trial", trial)
    found = reduced(parse_model(HEAD + CHAIN), {"x": numbers(8)}, "onnx-reference")
    assert trial.afresh == 2
    assert found.after is found.before


def test_what_a_branch_reads_is_fed(monkeypatch: pytest.MonkeyPatch) -> None:
    text = """g (bool c, float[2] x) => (float[2] y) { h = Neg(x) k = Abs(h) r = If(c)
        <then_branch = t () => (float[2] p) { p = Abs(h) },
         else_branch = e () => (float[2] q) { q = Sqrt(k) }> y = Neg(r) }"""
    inputs = {"c": np.array(True), "x": numbers(2)}
    found = search(monkeypatch, text, inputs, fails(has("If")))
    assert kinds(found.after) == ["If"]
    assert set(found.after.inputs) == {"c", "h", "k"}
    found = search(monkeypatch, text, inputs, fails(lambda each: makes(each, "y")))
    assert (kinds(found.after), set(found.after.inputs)) == (["Neg"], {"r"})


def test_a_part_without_a_name_is_no_output(monkeypatch: pytest.MonkeyPatch) -> None:
    text = """g (float[6] x) => (float[2] a, float[2] c)
        { h = Neg(x) a, b, c = Split<num_outputs=3>(h) }"""
    monkeypatch.setattr(reducing, "_Trial", Rules(fails(has("Split"))))
    model = parse_model(HEAD + text)
    model.graph.node[1].output[1] = ""
    found = reduced(model, {"x": numbers(6)}, "onnx-reference").after
    assert kinds(found) == ["Split"]
    assert [output.name for output in found.model.graph.output] == ["a", "c"]
    assert found.inputs["h"].shape == (2,)


def test_a_sparse_default_stays_where_it_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "g (float[3] x) => (float[3] z) { b = Neg(x) z = Mul(b, v) }"
    model = parse_model(HEAD + text)
    held = model.graph.sparse_initializer.add(dims=[3])
    held.values.CopyFrom(onnx.helper.make_tensor("v", onnx.TensorProto.FLOAT, [1], [2.5]))
    held.indices.CopyFrom(onnx.helper.make_tensor("i", onnx.TensorProto.INT64, [1], [2]))
    for kind, left in (("Mul", ["v"]), ("Neg", [])):
        monkeypatch.setattr(reducing, "_Trial", Rules(fails(has(kind))))
        found = reduced(model, {"x": numbers(3)}, "onnx-reference").after
        assert kinds(found) == [kind]
        assert [each.values.name for each in found.model.graph.sparse_initializer] == left
        assert len(found.inputs) == 1


def test_a_default_that_was_fed_is_fed_still(monkeypatch: pytest.MonkeyPatch) -> None:
    text = """g (float[2] x, float[2] w) => (float[2] z)
        <float[2] w = {5, 6}, float[2] v = {7, 8}> { a = Neg(x) b = Add(a, w) z = Mul(b, v) }"""
    inputs = {"x": numbers(2), "w": np.array([3, 4], np.float32)}
    found = search(monkeypatch, text, inputs, fails(lambda each: "w" in each.inputs))
    assert kinds(found.after) == ["Add"]
    assert found.after.inputs["w"].tolist() == [3]
    found = search(monkeypatch, text, inputs, fails(has("Mul")))
    assert set(found.after.inputs) == {"b"}
    assert [held.name for held in found.after.model.graph.initializer] == ["v"]


def test_a_sequence_between_two_nodes_is_fed_with_its_type(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    text = """g (int64[6] x, int64 i) => (int64[M] z)
        { s = SplitToSequence<keepdims=1>(x) z = SequenceAt(s, i) }"""
    inputs = {"x": np.arange(1, 7), "i": np.array(4)}
    found = search(monkeypatch, text, inputs, fails(has("SequenceAt")))
    assert kinds(found.after) == ["SequenceAt"]
    (s, _) = found.after.model.graph.input
    assert s.type.sequence_type.elem_type.tensor_type.elem_type == onnx.TensorProto.INT64
    assert found.after.expected is not None
    assert found.after.expected["z"].tolist() == [5]


def test_functions_stay_where_they_are_called_and_only_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    text = """g (float[2] x) => (float[2] z) { a = own.Twice(x) z = Neg(a) }
        <domain: "own", opset_import: ["": 18]> Twice (v) => (w) { w = Add(v, v) }"""
    head = HEAD.replace('"": 18', '"": 18, "own": 1')
    model = parse_model(head + text)
    for kind, left in (("Twice", ["Twice"]), ("Neg", [])):
        monkeypatch.setattr(reducing, "_Trial", Rules(fails(has(kind))))
        found = reduced(model, {"x": numbers(2)}, "onnx-reference").after
        assert kinds(found) == [kind]
        assert [function.name for function in found.model.functions] == left


def outcome(model: onnx.ModelProto, feeds: dict[str, Any]) -> list[Any]:
    return list(ReferenceEvaluator(model).run(None, feeds))


BODY = """g (float[2] x, bool c) => (float[?] p, float[?] q) {
    p, q = If(c) <then_branch = t () => (float[?] p1, float[?] q1) { THEN },
        else_branch = e () => (float[2] p2, float[2] q2) { p2 = Neg(x) q2 = Neg(x) }> }"""


@pytest.mark.parametrize(
    ("nodes", "gone", "left"),
    [
        ("a = Neg(x) p1 = Abs(a) q1 = Exp(a)", [1, 2], "p1 = Neg(x) q1 = Identity(p1)"),
        ("a = Neg(x) p1 = Abs(a) q1 = Exp(a)", [1], "p1 = Neg(x) q1 = Exp(p1)"),
        ("a = Neg(x) p1 = Abs(a) q1 = Exp(a)", [0], "p1 = Abs(x) q1 = Exp(x)"),
        ("a = Neg(x) p1 = Abs(a) q1 = Exp(p1)", [0, 1], "q1 = Exp(x) p1 = Identity(x)"),
        ("a = Neg(x) p1 = Abs(a) q1 = Exp(p1)", [1, 2], "p1 = Neg(x) q1 = Identity(p1)"),
        ("a = Neg(x) p1 = Abs(a) q1 = Exp(p1)", [2], "a = Neg(x) p1 = Abs(a) q1 = Identity(p1)"),
        ("p1, q1 = Split<num_outputs=2>(x)", [0], "p1 = Identity(x) q1 = Identity(x)"),
        ("a = Constant<value_floats=[2.0]>() p1 = Neg(a) q1 = Exp(x)", [0], ""),
        ("p1 = Constant<value_floats=[2.0]>() q1 = Exp(x)", [0], ""),
        ("p1 = Constant<value_floats=[2.0]>() q1 = Exp(x)", [1], None),
    ],
)
def test_what_a_node_read_first_takes_its_place(
    nodes: str, gone: list[int], left: str | None
) -> None:
    """Whatever is named otherwise: the outputs are those of the nodes that are left."""
    made = parse_model(HEAD + BODY.replace("THEN", nodes))
    (node,) = made.graph.node
    scope = next(each.g for each in node.attribute if each.name == "then_branch")
    fits = reducing._leave_out(scope, gone)
    if left == "":
        assert not fits
        return
    assert fits
    if left is None:
        left = "p1 = Constant<value_floats=[2.0]>() q1 = Identity(x)"
    onnx.checker.check_model(made)
    wanted = parse_model(HEAD + BODY.replace("THEN", left))
    body = next(each.g for each in wanted.graph.node[0].attribute if each.name == "then_branch")
    assert sorted(each.op_type for each in scope.node) == sorted(each.op_type for each in body.node)
    feeds = {"x": numbers(2), "c": np.array(True)}
    for one, other in zip(outcome(made, feeds), outcome(wanted, feeds), strict=True):
        assert np.array_equal(one, other)


@pytest.mark.parametrize(
    ("name", "needed"), [("a", [0]), ("b", [0, 1]), ("d", [0, 2]), ("z", [0, 1, 2, 3]), ("x", [])]
)
def test_the_nodes_that_a_value_needs(name: str, needed: list[int]) -> None:
    made = parse_model(
        HEAD
        + """g (float[2] x, bool c) => (float[2] z)
        { a = Neg(x) b = Exp(a) d = If(c) <then_branch = t () => (float[2] p) { p = Abs(a) },
        else_branch = e () => (float[2] q) { q = Neg(x) }> z = Add(b, d) w = Neg(z) }"""
    )
    nodes = list(made.graph.node)
    assert reducing._ancestors(nodes, name) == [nodes[number] for number in needed]


class Process:
    """What stands for the process of an engine; it runs from the first request to its end."""

    def __init__(self) -> None:
        self.pid: int | None = None
        self.asked: list[str] = []

    def ask(self, request: tuple[Any, ...], _seconds: float) -> Reply:
        assert self.pid == 7, "the engine was not imported"
        self.asked.append(request[0])
        return Reply({"y": numbers(2)})

    def close(self) -> None:
        self.pid = None


def test_an_engine_is_imported_once_in_each_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """What that takes is no part of the time that a model has."""
    made: list[Process] = []
    imported: list[Process] = []

    class Chosen:
        source = "engine.py"

        def process(self, _most: int) -> Process:
            made.append(Process())
            return made[-1]

    def prepare(process: Process, source: str) -> None:
        assert source == "engine.py"
        process.pid = 7
        imported.append(process)

    monkeypatch.setattr(reducing, "prepare", prepare)
    subject: Any = Chosen()
    trial = reducing._Trial(subject, 1.0)
    model = parse_model(HEAD + "g (float[2] x) => (float[2] y) { y = Neg(x) }")
    same = Candidate(model, {"x": numbers(2)}, {"y": numbers(2)})
    for afresh in (False, False, True, False):
        assert trial.failure(same, afresh=afresh) is None
    assert imported == made
    assert [each.asked for each in made] == [["engine.py"] * 2, ["engine.py"] * 2]
    assert made[0].pid is None
    trial.close()
    assert made[1].pid is None
