"""Models that are malformed: all that is wrong is found, each once and where it stands.

Bytes that were cut, flipped and overwritten give findings or a refusal, never anything else.
"""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

import tensorsplit as ts
from tensorsplit import SplitError
from tensorsplit.engines import adapters
from tensorsplit.model.check.findings import as_sarif
from tests.interpreters import printed
from tests.model.build import (
    BOOL,
    FLOAT,
    INT64,
    function,
    graph,
    link,
    linked,
    model,
    node,
    run,
    tensor,
    value,
)
from tests.model.check.untyped_outputs import check, examine


def rich_model() -> onnx.ModelProto:
    """Splits in a graph, a Loop body and functions, and sequences."""
    body = graph(
        [
            node("Identity", "go", "on"),
            node("Split", "v lengths", "p q", name="inner"),
            node("Add", "p q", "sum"),
            node("Concat", "sum sum", "next", axis=0),
        ],
        [value("i", INT64, []), value("go", BOOL, []), value("v")],
        ["on", "next"],
        [tensor("lengths", [2, 2])],
    )
    cut = function(
        "Cut",
        "x",
        "a b",
        [linked("Split", "x", "a b", link("axis", "axis"), num_outputs=2)],
        ["axis"],
    )
    nodes = [
        node("Loop", "m go x", "y", body=body),
        node("Cut", "x", "a b", domain="custom", axis=1),
        node("SplitToSequence", "x chunk", "s"),
        node("SequenceAt", "s m", "t"),
        node("ConcatFromSequence", "s", "z", axis=0),
    ]
    inputs = [value("m", INT64, []), value("go", BOOL, []), value("x", FLOAT, [4, 6])]
    made = graph(nodes, inputs, ["y", "a", "b", "t", "z"], [tensor("chunk", 2)])
    return model(made, functions=[cut], custom=1)


X = value("x", FLOAT, [4])


def errors(made: onnx.ModelProto) -> list[tuple[str, str]]:
    """Where each error is, and what it says; the same each time."""
    found = [(f.node, f.message) for f in check(made) if f.severity == "error"]
    assert found == [(f.node, f.message) for f in check(made) if f.severity == "error"]
    assert len(set(found)) == len(found)
    return found


def test_every_value_that_nothing_produces_is_found() -> None:
    """Beside a split that is wrong, each in its place."""
    nodes = [
        node("Relu", "u", "a"),
        node("Split", "x", "b c", num_outputs=3),
        node("Add", "u v", "d"),
    ]
    assert errors(model(graph(nodes, [X], ["a", "b", "c", "d", "w"]))) == [
        ("graph", "nothing produces the output 'w'"),
        ("graph/Relu[0]", "nothing produces its input 'u'"),
        ("graph/Split[1]", "it makes 3 parts, but there are 2 outputs"),
        ("graph/Add[2]", "nothing produces its input 'u'"),
        ("graph/Add[2]", "nothing produces its input 'v'"),
    ]


def test_bodies_and_functions_are_no_end() -> None:
    """Wrong are both branches, a function, what it calls and a call of that.

    The function contradicts itself, so that nothing else in it or about its calls is said.
    """
    then = graph([node("Relu", "u", "p")], [], ["p"])
    other = graph([node("Relu", "x", "q")], [], ["r"])
    inner = function("G", "k", "l", [node("Concat", "k", "l")])
    outer = function("F", "i", "j o", [node("G", "w", "j", domain="custom")])
    nodes = [
        node("If", "c", "a", then_branch=then, else_branch=other, name="if"),
        node("F", "x", "b d", domain="custom"),
        node("G", "x x", "e", domain="custom"),
        node("G", "x", "f", domain="custom"),
    ]
    made = graph(nodes, [X, value("c", BOOL, [])], ["a", "b"])
    found = errors(model(made, functions=[outer, inner], custom=1))
    assert found == [
        ("graph/G[2]", "the call has 2 inputs"),
        ("graph/if.else_branch", "nothing produces the output 'r'"),
        ("graph/if.then_branch/Relu[0]", "nothing produces its input 'u'"),
        ("function custom::F", "nothing produces the output 'o'"),
        ("function custom::G/Concat[0]", "it has no attribute 'axis'"),
    ]


@pytest.mark.parametrize("target", ["onnxruntime", "openvino", "portable"])
def test_a_call_with_too_many_outputs_beside_an_if_is_an_error_for_each_target(
    target: Any,
) -> None:
    """What ONNX Runtime makes of an If is seen in a copy, in which such calls can't be inlined."""
    one = function("F", "i", "o", [node("Neg", "i", "o")])
    branch = graph([node("Relu", "x", "p")], [], ["p"])
    nodes = [
        node("F", "x", "a b", domain="custom"),
        node("If", "c", "d", then_branch=branch, else_branch=branch),
    ]
    made = graph(nodes, [X], ["b", "d"], [tensor("c", True, np.bool_)])
    checked = check(model(made, functions=[one], custom=1), target=target)
    assert [each.message for each in checked if each.severity == "error" and each.code == "TS502"]


WRONG = node("Split", "x", "b c", num_outputs=3)
OF_WRONG = "it makes 3 parts, but there are 2 outputs"


def test_all_sparse_tensors_that_can_not_be_read_are_found() -> None:
    """They end the look at the graph: what its split would get is not known."""
    held = onnx.SparseTensorProto(values=tensor("s", [5]), indices=tensor("", [1]), dims=[-3])
    nodes = [node("Identity", "s", "a"), node("Neg", "x", "d", held=held), WRONG]
    held.dims[0] = 3
    nodes.append(node("Neg", "x", "e", held=held))
    held.dims[0] = -3
    dims = "its dimensions are [-3]; they are at most 64, none below 0"
    assert errors(model(graph(nodes, [X], ["a", "b"], (), [held]))) == [
        ("graph", dims),
        ("graph/Neg[1]", "its attribute 'held' is a sparse tensor"),
        ("graph/Neg[1]", dims),
        ("graph/Neg[3]", "its attribute 'held' is a sparse tensor"),
    ]


def test_functions_that_contradict_themselves_hide_nothing_but_themselves() -> None:
    """F has an output without a name, G a name twice; G alone calls H, and there are overloads."""
    f = function("F", "i", "j _", [node("Split", "i", "j _", num_outputs=2)])
    g = function("G", "k k", "l", [node("H", "k", "l", domain="custom")])
    h = function("H", "m", "n o", [node("Split", "m", "n o", num_outputs=3)])
    i = function("G", "p", "q", [node("Split", "p", "q _", num_outputs=3)])
    i.overload = "other"
    nodes = [node(name, "x", f"{name}0", domain="custom") for name in "FGGH"]
    nodes[2].overload, nodes[2].output[0] = "other", "G1"
    made = model(graph([*nodes, WRONG], [X], ["F0", "b"]), functions=[f, g, h, i], custom=1)
    assert errors(made) == [
        ("graph/Split[4]", OF_WRONG),
        ("function custom::F", "nothing produces the output ''"),
        ("function custom::G", "the input 'k' is there twice"),
        ("function custom::H/Split[0]", OF_WRONG),
    ]
    assert "TS813" not in [finding.code for finding in check(made)]
    assert examine(made, "portable") == examine(made)


def test_everything_that_is_there_twice_is_found() -> None:
    """Names of inputs, initializers, results, functions and attributes; then there is no graph."""
    twice = node("Split", "x", "a b", num_outputs=2, name="s")
    twice.attribute.append(onnx.helper.make_attribute("num_outputs", 2))
    nodes = [
        twice,
        node("Split", "x", "c a", num_outputs=3, name="s"),
        node("Relu", "u", "d"),
        node("F", "x", "e", domain="custom"),
    ]
    lengths = [tensor("l", [2, 2]), tensor("l", [1, 3])]
    f = function("F", "p p", "q", [node("Relu", "p", "q")])
    made = model(graph(nodes, [X, X], list("abcde"), lengths), functions=[f, f], custom=1)
    assert errors(made) == [
        ("graph", "the input 'x' is there twice"),
        ("graph", "the initializer 'l' is there twice"),
        ("graph/s[0]", "it has the attribute 'num_outputs' more than once"),
        ("graph/s[1]", "'a' is produced twice"),
        ("function custom::F", "there are two functions of this name"),
        ("function custom::F", "the input 'p' is there twice"),
    ]


def test_nodes_of_one_name_are_told_apart() -> None:
    nodes = [node("Split", "x", f"a{k} b{k}", num_outputs=3, name="s") for k in range(2)]
    made = model(graph(nodes, [X], ["a0", "b0", "a1", "b1"]))
    assert [place for place, _ in errors(made)] == ["graph/s[0]", "graph/s[1]"]


def test_cycles_are_told_from_nodes_in_a_wrong_order() -> None:
    itself = "is made of what the node itself makes"
    nodes = [
        node("Relu", "b", "a"),
        node("Relu", "a", "b"),
        node("Relu", "late", "c"),
        node("Relu", "x", "late"),
        node("Add", "d x", "d"),
        node("Add", "e x", "g"),
        node("Add", "e x", "e"),
    ]
    assert errors(model(graph(nodes, [X], ["b", "c", "d", "g"]))) == [
        ("graph/Relu[0]", f"its input 'b' {itself}"),
        ("graph/Relu[2]", "its input 'late' is read before it is produced"),
        ("graph/Add[4]", f"its input 'd' {itself}"),
        ("graph/Add[5]", "its input 'e' is read before it is produced"),  # in no cycle itself
        ("graph/Add[6]", f"its input 'e' {itself}"),
    ]


def test_the_tools_that_are_named_sort_the_nodes() -> None:
    """onnxruntime's converter to float16 writes models so, where a body reads a value around it."""
    branch = graph([node("Split", "late", "a b", axis=0)], [], ["a"])
    c = value("c", BOOL, [])
    either = node("If", "c", "y", then_branch=branch, else_branch=graph([], [], ["x"]))
    made = model(graph([either, node("Relu", "x", "late")], [X, c], ["y"]), 13)
    (found,) = (each for each in check(made) if each.severity == "error")
    assert found.fix == "sort the nodes of the main graph, as lower and convert do"
    assert errors(ts.lower(made, "portable")) == errors(ts.convert(made, 13)) == []


@pytest.mark.parametrize("target", ["onnxruntime", "openvino", "portable"])
def test_the_order_of_nodes_is_an_error_where_the_target_needs_one(target: Any) -> None:
    """onnxruntime and OpenVINO sort those of the main graph, and not those of bodies."""
    late = [node("Split", "late", "a b", axis=0), node("Relu", "x", "late")]
    made = model(graph(late, [X], ["a"]), 13)
    severities = [each.severity for each in check(made, target) if each.code == "TS502"]
    assert severities == ["error" if target == "portable" else "warning"]
    c = value("c", BOOL, [])
    branches = {"then_branch": graph(late, [], ["a"]), "else_branch": graph([], [], ["x"])}
    made = model(graph([node("If", "c", "y", **branches)], [X, c], ["y"]), 13)
    (found,) = (each for each in check(made, target) if each.code == "TS502")
    assert (found.severity, found.node) == ("error", "graph/If[0].then_branch/Split[0]")


@pytest.mark.engine
@pytest.mark.parametrize("engine", ["onnxruntime", "openvino"])
def test_engines_sort_the_nodes_of_a_main_graph(engine: str) -> None:
    pytest.importorskip(engine)
    late = [node("Split", "late", "a b", axis=0), node("Relu", "x", "late")]
    made = model(graph(late, [value("x", shape=[4])], [value("b", shape=[2])]), 13)
    made.ir_version = 8
    load = adapters.load_onnxruntime if engine == "onnxruntime" else adapters.load_openvino
    x = np.array([-1, 1, -2, 2], np.float32)
    got = load(made.SerializeToString(), b"")({"x": x}, ["b"])["b"]
    assert got.tolist() == [0, 2]


def reads_late(depth: int) -> onnx.ModelProto:
    """Return a model in which a body at some depth reads a value that comes later."""
    body = graph([node("Neg", "late", "a")], [], ["a"])
    other = graph([node("Abs", "x", "b")], [], ["b"])
    for _ in range(depth):
        body = graph([node("If", "c", "a", then_branch=body, else_branch=other)], [], ["a"])
    inputs, made = [value("x", shape=[2]), value("c", BOOL, [])], [value("a", shape=[2])]
    late = model(graph([*body.node, node("Relu", "x", "late")], inputs, made), 13)
    late.ir_version = 8
    return late


@pytest.mark.parametrize(
    ("target", "severity"),
    [("onnxruntime", "warning"), ("openvino", "warning"), ("portable", "error"), (None, "error")],
)
@pytest.mark.parametrize("depth", [1, 2])
def test_engines_are_known_to_sort_for_what_bodies_read(
    depth: int, target: Any, severity: str
) -> None:
    """Its quantiser writes models in which a body reads a value that comes later."""
    (found,) = (each for each in check(reads_late(depth), target) if each.code == "TS502")
    assert (found.severity, "of the main graph" in found.fix) == (severity, True)


@pytest.mark.engine("onnxruntime", "openvino")
@pytest.mark.parametrize("engine", ["onnxruntime", "openvino"])
@pytest.mark.parametrize("depth", [1, 2])
def test_engines_sort_for_what_bodies_read(depth: int, engine: str) -> None:
    load = adapters.load_onnxruntime if engine == "onnxruntime" else adapters.load_openvino
    feeds = {"x": np.array([-1, 1], np.float32), "c": np.array(True)}
    run = load(reads_late(depth).SerializeToString(), b"")
    assert run(feeds, ["a"])["a"].tolist() == [0, -1]


@pytest.mark.parametrize("target", [None, "onnxruntime"])
def test_a_body_that_reads_what_is_made_of_its_own_node_is_a_cycle(target: Any) -> None:
    body, other = graph([node("Neg", "late", "a")], [], ["a"]), graph([], [], ["x"])
    either = node("If", "c", "y", then_branch=body, else_branch=other)
    made = model(graph([either, node("Relu", "y", "late")], [X, value("c", BOOL, [])], ["y"]), 13)
    (found,) = (each for each in check(made, target) if each.code == "TS502")
    assert found.severity == "error"
    assert "is made of what the node itself makes" in found.message


@pytest.mark.parametrize("target", ["onnxruntime", "openvino", "portable"])
@pytest.mark.parametrize("op_type", ["Reshape", "Range", "Expand", "If"])
def test_nodes_without_what_they_need_are_reported_for_each_target(
    op_type: str, target: Any
) -> None:
    given = value("u", FLOAT, ["k", 3] if op_type != "If" else None)
    nodes = [node(op_type, "x", "u"), node("Slice", "u s e", "y")]
    made = model(graph(nodes, [X, value("s", INT64, [2]), value("e", INT64, [2])], ["y"]), 13)
    made.graph.value_info.append(given)
    assert {each.node for each in check(made, target) if each.severity == "error"} == {
        f"graph/{op_type}[0]"
    }


def test_every_function_that_calls_itself_is_found() -> None:
    """One by itself, two through each other; what is wrong elsewhere is found too."""
    calls = {"F": "F", "G": "H", "H": "G"}
    functions = [
        function(name, "p", "q", [node(called, "p", "q", domain="custom")])
        for name, called in calls.items()
    ]
    nodes = [node(name, "x", name.lower(), domain="custom") for name in calls]
    made = graph([*nodes, node("Relu", "u", "y")], [X], ["f", "g", "h", "y"])
    assert errors(model(made, functions=functions, custom=1)) == [
        ("graph/Relu[3]", "nothing produces its input 'u'"),
        ("function custom::F", "the function calls itself"),
        ("function custom::G", "the function calls itself, through the function custom::H"),
    ]


def test_imports_that_are_missing_are_told_once_for_each_domain() -> None:
    nodes = [
        node("Split", "x", "a b", num_outputs=2),
        node("Relu", "a", "c"),
        node("Mine", "b", "d", domain="custom"),
        node("Mine", "d", "e", domain="custom"),
    ]
    made = model(graph(nodes, [X], ["c", "e"]))
    del made.opset_import[:]
    assert errors(made) == [
        ("graph/Split[0]", "there is no opset import for the domain 'ai.onnx'"),
        ("graph/Mine[2]", "there is no opset import for the domain 'custom'"),
    ]


def test_all_imports_that_contradict_each_other_are_found() -> None:
    f = function("F", "p", "q r", [node("Split", "p", "q r", num_outputs=3)])
    f.opset_import.append(onnx.helper.make_opsetid("ai.onnx", 13))
    nodes = [node("F", "x", "a b", domain="custom"), node("Relu", "u", "c")]
    made = model(graph(nodes, [X], ["a", "b", "c"]), functions=[f], custom=1)
    made.opset_import.append(onnx.helper.make_opsetid("custom", 0))
    assert errors(made) == [
        ("graph", "opset 0 of the domain 'custom' is imported"),
        ("function custom::F", "the domain 'ai.onnx' is imported at the opsets 18 and 13"),
    ]


def test_tensors_that_there_cannot_be_are_all_found() -> None:
    """In an initializer and in a Constant; nothing else is said of what they would hold."""
    wrong = [tensor("l", [2, 2]), tensor("m", [2, 2])]
    for held in wrong:
        held.dims[0] = -2
    nodes = [
        node("Constant", "", "k", value=wrong[1]),
        node("Split", "x l", "a b"),
        node("Split", "x k", "c d"),
    ]
    found = errors(model(graph(nodes, [X], list("abcd"), wrong[:1])))
    assert [place for place, _ in found] == ["graph", "graph/Constant[0]"]
    assert all("its dimensions are [-2]" in message for _, message in found)


def test_all_that_contradicts_the_schema_of_a_node_is_found() -> None:
    nodes = [
        node("Shape", "", "a", end=1.0, sideways=1),
        node("If", "c", "b"),
        node("Constant", "", "d", value_int=1, value_float=1.0),
    ]
    assert errors(model(graph(nodes, [value("c", BOOL, [])], ["a", "b", "d"]))) == [
        ("graph/Shape[0]", "it has 0 inputs"),
        ("graph/Shape[0]", "its attribute 'end' is of type FLOAT"),
        ("graph/Shape[0]", "it has the attribute 'sideways'"),
        ("graph/If[1]", "it has no attribute 'else_branch'"),
        ("graph/If[1]", "it has no attribute 'then_branch'"),
        ("graph/Constant[2]", "Constant has 2 values"),
    ]


def test_attributes_without_a_type_are_found() -> None:
    """Of an operator, of a split, of one that onnx does not have, and of a call."""
    f = function("F", "p", "q", [node("Relu", "p", "q")], ["n"])
    nodes = [
        node("Softmax", "x", "a"),
        node("Split", "x", "b", num_outputs=1),
        node("Mine", "x", "c", domain="mine"),
        node("F", "x", "d", domain="custom"),
    ]
    for made, name in zip(nodes, ["axis", "axis", "any", "n"], strict=True):
        made.attribute.add(name=name)
    found = errors(model(graph(nodes, [X], list("abcd")), functions=[f], custom=1, mine=1))
    assert found == [
        ("graph/Softmax[0]", "its attribute 'axis' is of type UNDEFINED"),
        ("graph/Split[1]", "the attribute is UNDEFINED"),
    ]


def test_a_mode_that_is_a_tensor_without_a_type_is_found_for_an_engine() -> None:
    """Whether the engine has such a mode is not asked."""
    made = node("Pad", "x i", "y")
    made.attribute.add(name="mode", type=onnx.AttributeProto.TENSOR)
    pads = value("i", INT64, [4])
    found = ts.check(model(graph([made], [X, pads], ["y"])), target="openvino")
    assert any("its attribute 'mode' is of type TENSOR" in each.message for each in found)


def test_the_refusal_of_a_run_is_one_of_the_errors() -> None:
    nodes = [node("Relu", "u", "a"), node("Relu", "v", "b"), node("Relu", "a", "b")]
    made = model(graph(nodes, [X], ["b"]))
    with pytest.raises(SplitError) as caught:
        run(made, x=np.zeros(4, np.float32))
    assert (caught.value.node, caught.value.problem) in errors(made)


def damaged(data: bytes, chance: random.Random) -> bytes:
    """The bytes with one to five of them changed, or cut off."""
    found = bytearray(data)
    for _ in range(chance.choice([1, 1, 2, 5])):
        place = chance.randrange(len(found))
        match chance.randrange(4):
            case 0:
                found[place] ^= 1 << chance.randrange(8)
            case 1:
                found[place] = chance.randrange(256)
            case 2:
                del found[place + 1 : place + chance.randrange(2, 5)]
            case _:
                found = found[: place + 1]
    return bytes(found)


def test_the_model_is_right_before_it_is_damaged() -> None:
    assert [f.code for f in check(rich_model()) if f.severity == "error"] == []


@pytest.mark.parametrize("seed", range(4))
def test_damaged_models_give_findings_or_a_refusal(tmp_path: Path, seed: int) -> None:
    data, chance, path = rich_model().SerializeToString(), random.Random(seed), tmp_path / "m.onnx"
    for _ in range(120):
        path.write_bytes(damaged(data, chance))
        target = chance.choice([None, "openvino", "onnxruntime", "portable"])
        refusal = None
        try:
            as_sarif({"m.onnx": examine(path, target)}, "0")
        except SplitError as error:
            refusal = error.code
        assert refusal in (None, "TS501")


@pytest.mark.parametrize("names", [["then_branch"], ["body"], ["body", "other"], ["a", "b", "c"]])
@pytest.mark.parametrize("target", [None, "onnxruntime", "openvino", "portable"])
def test_an_old_if_without_both_branches_gives_findings(target: Any, names: list[str]) -> None:
    """Before opset 11 what both give is compared."""
    dims = [[2], [3], [4]]
    made = [graph([node("Relu", "x", "q")], [], [value("q", FLOAT, each)]) for each in dims]
    held = dict(zip(names, made, strict=False))
    whole = graph([node("If", "c", "y", **held)], [X, value("c", BOOL, [])], ["y"])
    found = ts.check(model(whole, opset=10), target)
    assert "error" in {each.severity for each in found}
    assert not any("different shapes" in each.message for each in found)


def test_wrong_splits_in_bodies_that_onnx_would_expand_do_not_end_the_process() -> None:
    """onnx's inference aborts where num_outputs is 2 and the node has 3 outputs (D5)."""
    program = """
from onnx import TensorProto, helper
from tensorsplit.model.check.checker import check
v = helper.make_tensor_value_info("v", 1, [4])
split = helper.make_node("Split", ["v"], ["p", "q", "r"], num_outputs=2)
body = helper.make_graph([split], "b", [v], [helper.make_tensor_value_info("p", 1, None)])
sequence = helper.make_tensor_sequence_value_info("s", 1, [4])
for op_type, inputs in (("SequenceMap", ["s"]), ("Scan", ["v"]), ("Loop", ["v"]), ("If", ["v"])):
    name = "then_branch" if op_type == "If" else "body"
    node = helper.make_node(op_type, inputs, ["y"], **{name: body})
    outputs = [helper.make_empty_tensor_value_info("y")]
    graph = helper.make_graph([node], "g", [sequence, v], outputs)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)])
    print(any(f.code == "TS305" for f in check(model)))
"""
    assert printed(program).split() == ["True"] * 4
