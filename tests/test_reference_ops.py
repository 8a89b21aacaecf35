"""The classes for onnx's own reference evaluator."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import AttributeProto, ModelProto, helper
from onnx.reference import ReferenceEvaluator

from tensorsplit.reference_ops import NEW_OPS, Split, SplitToSequence
from tests.model.build import graph, link, linked, model, node, sequence, tensor, untyped, value
from tests.oracle import SIXTEEN, assert_same, random_array, slices
from tests.refusals import refused


def evaluate(made: ModelProto, **feeds: Any) -> list[Any]:
    return list(ReferenceEvaluator(made, new_ops=NEW_OPS).run(None, feeds))


@pytest.fixture
def x(rng: np.random.Generator) -> Any:
    return rng.random((7, 4)).astype(np.float32)


def test_the_classes_are_what_the_evaluator_wants() -> None:
    assert NEW_OPS[:2] == [Split, SplitToSequence]  # some versions of onnx append to the list
    assert [cls.op_domain for cls in NEW_OPS[:2]] == ["", ""]


@pytest.mark.parametrize("opset", range(1, 29))
def test_split_at_every_opset(opset: int, x: Any) -> None:
    if opset < 13:
        made = graph([node("Split", "x", "a b", axis=0, split=[2, 5])], [value("x")], "ab")
    else:
        made = graph([node("Split", "x s", "a b")], [value("x")], "ab", [tensor("s", [2, 5])])
    assert_same(evaluate(model(made, opset), x=x), slices(x, 0, [2, 5]))


@pytest.mark.parametrize("opset", range(2, 18))
def test_no_attribute_of_the_newest_version_slips_in(opset: int, x: Any) -> None:
    made = model(graph([node("Split", "x", "a b", axis=-1)], [value("x")], "ab"), opset)
    assert_same(evaluate(made, x=x), slices(x, 1, [2, 2]))
    with refused("TS303", 7, "onnx.Split-18"):
        evaluate(made, x=x.T)


@pytest.mark.parametrize("opset", range(18, 29))
def test_num_outputs(opset: int, x: Any) -> None:
    made = model(graph([node("Split", "x", "a b c", num_outputs=3)], [value("x")], "abc"), opset)
    assert_same(evaluate(made, x=x), slices(x, 0, [3, 3, 1]))
    with refused("TS304", operator="onnx.Split-18", parameter="num_outputs"):
        evaluate(made, x=x[:1])


@pytest.mark.parametrize("opset", range(11, 29))
@pytest.mark.parametrize(("split", "sizes"), [(2, [2, 2, 2, 1]), ([3, 0, 4], [3, 0, 4])])
def test_split_to_sequence(opset: int, split: Any, sizes: list[int], x: Any) -> None:
    made = graph([node("SplitToSequence", "x s", "q", keepdims=0)], map(untyped, "xs"), "q")
    (parts,) = evaluate(model(made, opset), x=x, s=np.array(split))
    assert_same(parts, slices(x, 0, sizes))


@pytest.mark.parametrize("keepdims", [0, 1])
def test_split_to_sequence_without_lengths(keepdims: int, x: Any) -> None:
    cut = node("SplitToSequence", "x", "q", axis=1, keepdims=keepdims)
    (parts,) = evaluate(model(graph([cut], [value("x")], "q")), x=x)
    assert_same(parts, slices(x, 1, [1] * 4, keepdims=bool(keepdims)))


@pytest.mark.parametrize("name", [*SIXTEEN, "string as U", "string as StringDType"])
def test_element_types(name: str, rng: np.random.Generator) -> None:
    x = random_array(name, (5, 2), rng)
    made = model(graph([node("Split", "x", "a b", num_outputs=2)], [untyped("x")], "ab"), 24)
    assert_same(evaluate(made, x=x), slices(x, 0, [3, 2]))


@pytest.mark.parametrize(
    ("code", "opset", "cut", "lengths"),
    [
        ("TS302", 13, node("Split", "x s", "a b"), [2, 2]),
        ("TS301", 13, node("Split", "x s", "a b"), [-1, 8]),
        ("TS305", 13, node("Split", "x s", "a b"), [2, 2, 3]),
        ("TS104", 18, node("Split", "x s", "a b", num_outputs=2), [3, 4]),
        ("TS104", 18, node("Split", "x", "a b"), None),
        ("TS305", 18, node("Split", "x", "a b c", num_outputs=2), None),
        ("TS103", 13, node("Split", "x", "a b", num_outputs=2), None),
        ("TS103", 18, node("Split", "x", "a b", run=2), None),
        ("TS105", 18, node("Split", "x", "a b", num_outputs=2.0), None),
        ("TS307", 11, node("SplitToSequence", "x s", "a"), 0),
        ("TS101", 10, node("SplitToSequence", "x", "a"), None),
    ],
)
def test_refusals(code: str, opset: int, cut: Any, lengths: Any, x: Any) -> None:
    feeds = {"x": x, **({} if lengths is None else {"s": np.array(lengths)})}
    made = model(graph([cut], map(untyped, feeds), "a"), opset)
    with refused(code):
        evaluate(made, **feeds)


def test_an_attribute_without_a_type_is_refused(x: Any) -> None:
    cut = node("Split", "x", "a b", num_outputs=2)
    cut.attribute[0].type = AttributeProto.UNDEFINED
    with refused("TS105", parameter="num_outputs"):
        evaluate(model(graph([cut], [value("x")], "ab")), x=x)


def test_in_the_bodies_that_the_evaluator_runs(x: Any) -> None:
    branch = graph([node("Split", "x", "a b", num_outputs=2)], [], "ab")
    choice = node("If", "c", "p q", then_branch=branch, else_branch=branch)
    made = model(graph([choice], [value("x"), untyped("c")], "pq"))
    assert_same(evaluate(made, x=x, c=np.array(True)), slices(x, 0, [4, 3]))


@pytest.mark.parametrize("along", [0, 1, -1])
def test_attributes_that_stand_for_those_of_a_function(along: int, x: Any) -> None:
    """The evaluator hands new operators to functions only if it is told so in a subclass."""

    class Evaluator(ReferenceEvaluator):
        def __init__(self, *arguments: Any, **keywords: Any) -> None:
            keywords["new_ops"] = NEW_OPS
            super().__init__(*arguments, **keywords)

    cut = linked("Split", "d", "p q", link("axis", "along"), link("num_outputs", "n"))
    function = helper.make_function(
        "custom", "Cut", ["d"], ["p", "q"], [cut], [helper.make_opsetid("", 18)], ["along", "n"]
    )
    call = node("Cut", "x", "a b", domain="custom", along=along, n=2)
    made = model(graph([call], [value("x")], "ab"), 18, [function], custom=1)
    sizes = [4, 3] if along == 0 else [2, 2]
    got = list(Evaluator(made).run(None, {"x": x}))
    assert_same(got, slices(x, along, sizes))


def test_sequences_go_on_to_the_evaluator_s_own_operators(x: Any) -> None:
    nodes = [
        node("SplitToSequence", "x s", "q"),
        node("SequenceAt", "q i", "y"),
        node("SequenceLength", "q", "n"),
    ]
    made = graph(nodes, [value("x")], ["y", "n", sequence("q")], [tensor("s", 3), tensor("i", -1)])
    last, count, _ = evaluate(model(made), x=x)
    assert_same([last, count], [x[6:], np.array(3)])


def test_omitted_inputs_and_outputs(x: Any) -> None:
    made = model(graph([node("Split", "x _", "a _ c", num_outputs=3)], [value("x")], "ac"))
    first, _, last = slices(x, 0, [3, 3, 1])
    assert_same(evaluate(made, x=x), [first, last])
