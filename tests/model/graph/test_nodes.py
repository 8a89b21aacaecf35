"""Nodes and their paths, through bodies and functions."""

from __future__ import annotations

import onnx_ir as ir
import pytest
from onnx import ModelProto, TensorProto, defs, helper

from tensorsplit.core.records.openvino import DOMAIN
from tensorsplit.model.graph import opsets
from tensorsplit.model.graph.axes import order_of
from tensorsplit.model.graph.message import message_opsets
from tensorsplit.model.graph.node_paths import node_paths
from tensorsplit.model.graph.nodes import change_inputs, namesakes, walk
from tensorsplit.model.graph.opsets import domain_name, is_unchanged
from tensorsplit.model.reading import OnnxModel, read_model
from tests.model.build import function, graph, model, node, onnx_model, untyped, value
from tests.refusals import refused


def test_every_node_has_a_path_and_the_opset_in_force() -> None:
    inner = graph([node("Split", "v", "a b", name="split_0", num_outputs=2)], [], "a")
    body = graph(
        [node("If", "c", "a", name="choice", then_branch=inner, else_branch=inner)],
        map(untyped, ["i", "c", "v"]),
        ["c", "a"],
    )
    nodes = [node("Neg", "x", "y"), node("Loop", "n _ x", "z", name="loop_1", body=body)]
    half = function("F", "d", "p", [node("Split", "d", "p q", name="split")], opset=13)
    other = function("F", "d", "p", [node("Neg", "d", "p")], overload="w")
    made = onnx_model(model(graph(nodes, map(untyped, "xn"), "z"), 18, [half, other])).model
    assert {site.path: site.opsets[""] for site in walk(made)} == {
        "graph/Neg[0]": 18,
        "graph/loop_1": 18,
        "graph/loop_1.body/choice": 18,
        "graph/loop_1.body/choice.else_branch/split_0": 18,
        "graph/loop_1.body/choice.then_branch/split_0": 18,
        "function custom::F/split": 13,
        "function custom::F:w/Neg[0]": 18,
    }
    sites = {site.path: site for site in walk(made)}
    assert sites["graph/loop_1"].function is None
    assert sites["function custom::F/split"].function is made.functions["custom", "F", ""]


@pytest.mark.parametrize("many", [3, 200])
def test_inputs_are_replaced_omitted_added_and_dropped(many: int) -> None:
    """Of few inputs by onnx-ir, of many in one go; values know their readers in both ways."""
    old = [ir.Value(name=f"old{index}") for index in range(many)]
    new = [ir.Value(name=f"new{index}") for index in range(2)]
    made = ir.Node("", "Sum", [*old, old[0]])
    change_inputs(made, {0: new[0], 1: None})
    assert list(made.inputs) == [new[0], None, *old[2:], old[0]]
    change_inputs(made, {0: None, 2: new[1]}, many)
    assert list(made.inputs) == [None, None, new[1], *old[3:]]
    change_inputs(made, {many + 1: new[0]}, many + 2)
    assert list(made.inputs) == [None, None, new[1], *old[3:], None, new[0]]
    readers = {held.name: [place for _, place in held.uses()] for held in (*old, *new)}
    assert {name: places for name, places in readers.items() if places} == {
        held.name: [place] for place, held in enumerate(made.inputs) if held is not None
    }


def test_namesakes_have_the_name_of_a_node_before_that_is_no_constant() -> None:
    nodes = [node("Constant", "", held, name="N", value_int=1) for held in "kl"]
    nodes += [node(name, "x", name, name=name[:1]) for name in ("Neg", "Not", "Nop", "Abs")]
    nodes += [node("Exp", "x", held) for held in "yz"]
    made = onnx_model(model(graph(nodes, [untyped("x")], "z"))).model
    assert [each.op_type for each in namesakes(made.graph)] == ["Not", "Nop"]


@pytest.mark.parametrize(
    ("domain", "inputs", "attributes", "order"),
    [
        ("", 1, [ir.AttrInt64s("perm", [1, 2, 0])], (1, 2, 0)),
        ("", 1, [], (2, 1, 0)),
        (DOMAIN, 2, [], (1, 2, 0)),
        (DOMAIN, 1, [], (2, 1, 0)),
    ],
)
def test_the_order_of_a_transpose_is_an_attribute_or_an_input(
    domain: str, inputs: int, attributes: list[ir.Attr], order: tuple[int, ...]
) -> None:
    held = [ir.Value(name="x"), ir.Value(name="order", const_value=ir.tensor([1, 2, 0]))]
    made = ir.Node(domain, "Transpose", held[:inputs], attributes)
    assert order_of(made, 3) == order


def test_nodes_of_one_name_are_called_by_their_places() -> None:
    names = ["a", "b", "a", "", "a", "Neg[3]"]
    assert node_paths("graph", [node("Neg", "x", "y", name=name) for name in names]) == [
        *("graph/a[0]", "graph/b", "graph/a[2]"),
        *("graph/Neg[3][3]", "graph/a[4]", "graph/Neg[3][5]"),
    ]
    assert node_paths("graph", []) == []


def test_onnx_is_asked_whether_an_operator_is_as_the_records_have_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(opsets, "NEWEST_OPSET", 20)  # before SplitToSequence-24
    later = [("Split", 21), ("Split", 24), ("SplitToSequence", 23), ("SplitToSequence", 24)]
    assert [is_unchanged(*each) for each in later] == [True, True, True, False]
    others = [("Split", 20), ("Split", 13), ("Splat", 21)]
    others.append(("Split", defs.onnx_opset_version() + 1))
    assert not any(is_unchanged(*each) for each in others)
    monkeypatch.setattr(opsets, "NEWEST_OPSET", 24)
    assert is_unchanged("SplitToSequence", 25)


def test_ai_onnx_is_spelled_as_nothing() -> None:
    assert domain_name("ai.onnx") == domain_name("") == ""
    assert domain_name("ai.onnx.ml") == "ai.onnx.ml"


def test_opsets_of_a_model() -> None:
    made = model(graph([], [], []), 18, custom=3)
    assert message_opsets(made) == {"": 18, "custom": 3}
    made.opset_import.append(helper.make_opsetid("custom", 4))
    assert message_opsets(made)["custom"] == 3
    with refused("TS502", "'custom'", 3, 4):
        OnnxModel(made, None).model  # noqa: B018 - made on demand
    del made.opset_import[:]
    assert message_opsets(made) == {}
    for ir_version, found in ((0, {}), (1, {"": 1}), (2, {"": 1}), (3, {})):  # 0: not given
        made.ir_version = ir_version
        assert message_opsets(made) == found


def test_bodies_that_are_nested_too_deep_are_refused_as_the_model_is_read() -> None:
    def nested(depth: int) -> ModelProto:
        inner = graph([], [], ["c"])
        for _ in range(depth):
            choice = node("If", "c", "y", then_branch=inner, else_branch=graph([], [], ["c"]))
            inner = graph([choice], [value("c", TensorProto.BOOL, [])])
        return model(inner)

    assert len(read_model(nested(32)).lists) == 65
    with refused("TS502", "nested more than 32 deep"):
        read_model(nested(33))
