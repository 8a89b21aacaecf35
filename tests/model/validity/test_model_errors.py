"""The errors of a model that is a graph, and those of its message; nothing is run or repaired."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir
import pytest
from onnx import AttributeProto, TensorProto, defs

import tensorsplit as ts
from tensorsplit.model.graph.facts import Other
from tensorsplit.model.graph.message import node_lists
from tensorsplit.model.validity.message_errors import message_errors
from tensorsplit.model.validity.model_errors import check_well_formed, model_errors
from tensorsplit.model.validity.node_errors import type_name
from tests.model.build import (
    FLOAT,
    function,
    graph,
    link,
    linked,
    model,
    node,
    onnx_model,
    tensor,
    value,
)
from tests.refusals import refused

X = value("x", FLOAT, [4])


@pytest.mark.parametrize(
    ("attributes", "fix"),
    [((), "leave it out; the function has none"), (("b", "a"), "give one of 'a', 'b'")],
)
def test_an_attribute_that_a_function_does_not_have_is_refused(
    attributes: tuple[str, ...], fix: str
) -> None:
    f = function("F", "p", "q", [node("Neg", "p", "q")], attributes)
    call = node("F", "x", "y", domain="custom", axis=0)
    read = onnx_model(model(graph([call], [X], ["y"]), functions=[f], custom=1))
    (error,) = model_errors(read.model)
    assert (error.node, error.fix) == ("graph/F[0]", fix)
    assert "has no attribute 'axis'" in error.problem


def test_every_condition_of_a_model_has_its_code_and_place() -> None:
    """A function that calls itself, a wrong split, an old operator, and three wrong nodes."""
    f = function("F", "p", "q", [node("F", "p", "q", domain="custom")])
    nodes = [
        node("Split", "x", "a b"),
        node("Upsample", "x", "c", scales=[1.0]),
        node("Concat", "a late", "d"),
        node("Neg", "x", "late"),
        node("Mine", "x", "e", domain="mine"),
        node("Mine", "x", "f", domain="mine"),
        node("F", "x x", "g", domain="custom"),
    ]
    read = onnx_model(model(graph(nodes, [X], ["d", "w"]), functions=[f], custom=1))
    before = read.original.SerializeToString()
    assert list(message_errors(read.original, read.lists)) == []
    assert [(error.code, error.node) for error in model_errors(read.as_read)] == [
        ("TS502", "function custom::F"),
        ("TS104", "graph/Split[0]"),
        ("TS509", "graph/Upsample[1]"),
        ("TS502", "graph/Concat[2]"),  # it reads what is not there yet
        ("TS502", "graph/Concat[2]"),  # it has no axis
        ("TS502", "graph/Mine[4]"),
        ("TS502", "graph/F[6]"),
        ("TS502", "graph"),
    ]
    assert read.original.SerializeToString() == before


def test_a_function_is_searched_once_for_each_kind_of_call() -> None:
    """The second call is like the first; the third leaves out an input."""
    f = function("F", "p r", "q", [node("Neg", "p", "q"), node("Relu", "u", "s")])
    nodes = [
        node("F", "x x", "a", domain="custom"),
        node("F", "x x", "b", domain="custom"),
        node("F", "x", "c", domain="custom"),
    ]
    read = onnx_model(model(graph(nodes, [X], ["a", "b", "c"]), functions=[f], custom=1))
    found = [(error.node, error.problem) for error in model_errors(read.model)]
    assert found == 2 * [("function custom::F/Relu[1]", "nothing produces its input 'u'")]


def test_a_run_needs_no_names_of_outputs() -> None:
    made = graph([node("Neg", "x", "_"), node("Relu", "x", "y")], [X], ["y"])
    read = onnx_model(model(made))
    assert [error.node for error in model_errors(read.model)] == ["graph/Neg[0]"]
    assert model_errors(read.model, needs_names=False) == []
    with refused("TS502", "graph/Neg[0]"):
        check_well_formed(read.model)


def test_a_cycle_is_told_from_a_wrong_order() -> None:
    """The first node reads from the cycle, and is not in it."""
    branch = graph([node("Neg", "y", "p")], [], ["p"])
    nodes = [
        node("Neg", "d", "a"),
        node("Add", "x d", "b"),
        node("Neg", "b", "d"),
        node("Neg", "late", "e"),
        node("Relu", "x", "late"),
        node("If", "c", "y", then_branch=branch, else_branch=graph([], [], ["x"])),
    ]
    c = value("c", TensorProto.BOOL, [])
    read = onnx_model(model(graph(nodes, [X, c], ["a", "y"])))
    assert [(error.node, error.problem) for error in model_errors(read.model)] == [
        ("graph/Neg[0]", "its input 'd' is read before it is produced"),
        ("graph/Add[1]", "its input 'd' is made of what the node itself makes"),
        ("graph/Neg[3]", "its input 'late' is read before it is produced"),
        ("graph/If[5].then_branch/Neg[0]", "its input 'y' is what the node around it makes"),
    ]


def test_the_errors_of_a_message_are_yielded_in_bodies_and_functions() -> None:
    held = tensor("t", [1, 2])
    held.data_location = TensorProto.EXTERNAL
    held.external_data.add(key="offset", value="two")
    body = graph([node("Neg", "x", "p"), node("Relu", "x", "p")], [], ["p"], [held])
    f = function("F", "k k", "l", [node("Neg", "k", "l")])
    nodes = [node("If", "c", "y", then_branch=body, else_branch=graph([], [], ["x"]), name="if")]
    made = model(graph(nodes, [X, X]), functions=[f], custom=-1)
    assert [(error.code, error.node) for error in message_errors(made, node_lists(made))] == [
        ("TS502", "graph"),  # the opset
        ("TS502", "graph"),  # the input
        ("TS502", "graph/if.then_branch/Relu[1]"),
        ("TS504", "graph/if.then_branch"),
        ("TS502", "function custom::F"),
    ]


REWRITING = (
    lambda made: ts.convert(made, opset=18),
    lambda made: ts.convert(made, variadic=True),
    lambda made: ts.lower(made, target="portable"),
)
SPLIT = node("Split", "x", "a b", axis=0)


@pytest.mark.parametrize("rewrite", REWRITING)
def test_a_model_that_is_not_well_formed_is_not_rewritten(rewrite: Any) -> None:
    """Not even where the wrong node would stay as it is, or in a function that nothing calls."""
    ring = [node("Neg", "late", "a"), node("Relu", "a", "late"), node("Split", "x", "p q")]
    with refused("TS502", "graph/Neg[0]", "'late'", "made of what the node itself makes"):
        rewrite(model(graph(ring, [X], ["a"]), 13))
    with refused("TS502", "graph/Cosh[1]", "'there'"):
        rewrite(model(graph([SPLIT, node("Cosh", "x", "c", there=1)], [X], ["a"]), 13))
    for inner, words in (
        ([node("Neg", "u", "q")], ("Neg[0]", "nothing produces", "'u'")),
        ([node("G", "p", "q", domain="custom", there=1)], ("G[0]", "no attribute 'there'")),
        ([node("G", "p p", "q", domain="custom")], ("G[0]", "the call has 2 inputs")),
        ([node("F", "p", "q", domain="custom")], ("function custom::F", "calls itself")),
    ):
        functions = [
            function("F", "p", "q", inner, opset=13),
            function("G", "p", "q", [node("Neg", "p", "q")], opset=13),
        ]
        with refused("TS502", *words):
            rewrite(model(graph([SPLIT], [X], ["a"]), 13, functions, custom=1))


@pytest.mark.parametrize("case", ["attributes", "split", "calls"])
def test_what_only_a_call_or_a_run_tells_is_not_held_against_a_model(case: str) -> None:
    """Attributes that no call gives, a wrong split (D22), and more nodes than a run takes."""
    held = linked("Constant", "", "k", link("value_int", "n"))
    taken = linked("Gather", "p k", "q", link("axis", "n", AttributeProto.UNDEFINED))
    functions, calls = [function("F", "p", "q", [held, taken], ["n"], opset=13)], [SPLIT]
    if case == "split":
        functions = [function("F", "p", "q", [node("Split", "p", "q", num_outputs=1)], opset=13)]
    elif case == "calls":
        functions = [function("F0", "p", "q", [node("Neg", "p", "q")], opset=13)]
        calls = [SPLIT, node("F30", "x", "c", domain="custom")]
        for level in range(30):
            twice = [node(f"F{level}", *ends, domain="custom") for ends in ("pr", "rq")]
            functions.append(function(f"F{level + 1}", "p", "q", twice, opset=13))
    read = onnx_model(model(graph(calls, [X], ["a"]), 13, functions, custom=1))
    check_well_formed(read.model)


def loop(op_type: str, fed: str, given: str, taken: int, made: int, opset: int, **more: int) -> Any:
    """The errors of a loop whose body takes and makes so many values."""
    names = [f"a{number}" for number in range(taken)]
    ends = [value(f"b{number}", FLOAT, [4]) for number in range(made)]
    body = graph(
        [node("Identity", names[-1], end.name) for end in ends],
        [value(name, FLOAT, [4]) for name in names],
        ends,
    )
    inputs = [value(name, FLOAT, [4]) for name in sorted({*fed.split()} - {"_"})]
    outputs = [value(name, FLOAT, [4]) for name in given.split()]
    nodes = [node(op_type, fed, given, body=body, **more)]
    read = onnx_model(model(graph(nodes, inputs, outputs), opset))
    return list(map(str, model_errors(read.model)))


def test_a_loop_gives_what_it_carries_and_its_body_a_condition_too() -> None:
    assert loop("Loop", "_ _ x y", "u v", 4, 3, 13) == []
    assert loop("Loop", "_ _ x y", "u v w", 4, 4, 13) == []
    (said,) = loop("Loop", "_ _ x y", "u", 4, 2, 13)
    assert "it carries 3 values, but has 2 outputs for them" in said
    (said,) = loop("Loop", "_ _ x y", "u v", 3, 3, 13)
    assert "its body has 3 inputs, but is passed 4 values" in said
    for made in (2, 4):
        (said,) = loop("Loop", "_ _ x y", "u v", 4, made, 13)
        assert f"its body has {made} outputs, but it needs 3" in said


@pytest.mark.parametrize(("opset", "lengths"), [(8, "_ "), (9, ""), (11, "")])
def test_a_scan_takes_one_input_to_scan_or_more(opset: int, lengths: str) -> None:
    assert loop("Scan", f"{lengths}x y", "u v", 2, 2, opset, num_scan_inputs=1) == []
    assert loop("Scan", f"{lengths}x y", "u v", 2, 2, opset, num_scan_inputs=2) == []
    for count in (0, 3):
        (said,) = loop("Scan", f"{lengths}x y", "u v", 2, 2, opset, num_scan_inputs=count)
        assert f"num_scan_inputs is {count}, of 2 inputs" in said
    (said,) = loop("Scan", f"{lengths}x y", "u v", 3, 2, opset, num_scan_inputs=1)
    assert "its body has 3 inputs, but is passed 2 values" in said


@pytest.mark.parametrize(("count", "is_refused"), [(3, False), (4, True)])
def test_a_run_takes_so_many_nodes_at_most_and_constants_are_none(
    count: int, is_refused: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A call is a node, beside those that the function runs."""
    monkeypatch.setattr("tensorsplit.model.validity.model_errors.MAX_STEPS", 5)
    f = function("F", "p", "q", [node("Neg", "p", "q")])
    nodes = [node("Constant", "", f"k{number}", value_int=number) for number in range(9)]
    nodes += [node("F", "x", "a", domain="custom"), node("Neg", "a", "a0")]
    nodes += [node("Neg", f"a{number}", f"a{number + 1}") for number in range(count - 1)]
    read = onnx_model(model(graph(nodes, [X], ["a"]), functions=[f], custom=1))
    found = [error.problem for error in model_errors(read.model)]
    assert found == ["functions expand to more than 5 nodes"] * is_refused
    check_well_formed(read.model)


def test_a_domain_that_is_not_imported_is_told_once_of_the_graph_and_of_each_function() -> None:
    inner = [node("Mine", "p", "q", domain="mine"), node("Mine", "p", "r", domain="mine")]
    functions = [function(name, "p", "q", inner) for name in ("F", "G")]
    nodes = [
        node("Mine", "x", "a", domain="mine"),
        node("F", "x", "b", domain="custom"),
        node("G", "x", "c", domain="custom"),
        node("Mine", "x", "d", domain="mine"),
        node("Other", "x", "e", domain="other"),
    ]
    read = onnx_model(model(graph(nodes, [X], ["a"]), functions=functions, custom=1))
    assert [(error.node, error.fix) for error in model_errors(read.model)] == [
        ("graph/Mine[0]", "add it to the opset_import of the model"),
        ("function custom::F/Mine[0]", "add it to the opset_import of the function"),
        ("function custom::G/Mine[0]", "add it to the opset_import of the function"),
        ("graph/Other[4]", "add it to the opset_import of the model"),
    ]


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (node("F", "x", "a b", domain="custom"), ()),
        (node("F", "x", "a", domain="custom"), ()),
        (node("F", "x x", "a b", domain="custom"), ("the call has 2 inputs", "at most 1")),
        (node("F", "x", "a b c", domain="custom"), ("the call has 3 outputs", "at most 2")),
        (
            node("F", "x", "a b", domain="custom", overload="two"),
            ("the function 'F' has no overload 'two'", "name one that the model defines"),
        ),
    ],
)
def test_a_call_names_a_function_and_gives_and_takes_no_more_than_that(
    call: Any, said: tuple[str, ...]
) -> None:
    f = function("F", "p", "q r", [node("Neg", "p", "q"), node("Abs", "p", "r")])
    read = onnx_model(model(graph([call], [X], ["a"]), functions=[f], custom=1))
    found = list(map(str, model_errors(read.model)))
    assert len(found) == bool(said)
    assert all(words in found[0] for words in said)


@pytest.mark.parametrize(
    ("right", "wrong", "problem"),
    [
        (node("Add", "x x", "c"), node("Add", "_ x", "d"), "its input 'A' is left out"),
        (node("Neg", "x", "c"), node("Neg", "x", "_"), "its output 'Y' is left out"),
        (
            node("Concat", "x x", "c", axis=0),
            node("Concat", "x x", "d", axis=0.5),
            "its attribute 'axis' is of type FLOAT",
        ),
        (
            node("Concat", "x x", "c", axis=0),
            node("Concat", "x x", "d", axes=0),
            "it has the attribute 'axes'",
        ),
        (
            node("Squeeze", "x x", "c"),
            node("F", "x", "d", domain="custom"),
            "it has 2 inputs",
        ),
    ],
)
def test_a_wrong_node_is_found_after_one_that_is_right_and_differs_little(
    right: Any, wrong: Any, problem: str
) -> None:
    """What is right of one node is remembered for those that are alike; F is at opset 11."""
    f = function("F", "p", "q", [node("Squeeze", "p p", "q")], opset=11)
    nodes = [right, node("Relu", "x", "a"), wrong]
    read = onnx_model(model(graph(nodes, [X], ["a"]), functions=[f], custom=1))
    assert [error.problem for error in model_errors(read.model)][:1] == [problem]


def test_a_function_that_calls_itself_is_told_with_those_in_between() -> None:
    """A call in a body counts; a function that only calls such a one is not to blame."""
    inside = graph([node("G", "p", "r", domain="custom")], [], ["r"])
    bodies = {"then_branch": inside, "else_branch": graph([node("Abs", "p", "r")], [], ["r"])}
    functions = [
        function("E", "p", "q", [node("F", "p", "q", domain="custom")]),
        function("F", "p c", "q", [node("If", "c", "q", **bodies)]),
        function("G", "p", "q", [node("H", "p", "q", domain="custom")]),
        function("H", "p", "q", [node("F", "p", "q", domain="custom")]),
        function("I", "p", "q", [node("I", "p", "q", domain="custom")]),
    ]
    read = onnx_model(
        model(graph([node("Neg", "x", "a")], [X], ["a"]), functions=functions, custom=1)
    )
    assert [(error.node, error.problem) for error in model_errors(read.model)] == [
        (
            "function custom::F",
            "the function calls itself, through the function custom::G, function custom::H",
        ),
        ("function custom::I", "the function calls itself"),
    ]


@pytest.mark.parametrize(("domain", "is_refused"), [("custom", False), ("", True)])
def test_a_function_has_the_name_of_a_split_in_a_domain_of_its_own(
    domain: str, is_refused: bool
) -> None:
    f = function("Split", "p", "q", [node("Neg", "p", "q")])
    f.domain = domain
    read = onnx_model(model(graph([node("Neg", "x", "a")], [X], ["a"]), functions=[f], custom=1))
    found = [error.problem for error in model_errors(read.model)]
    assert found == ["the function redefines the operator Split"] * is_refused


def test_an_operator_of_an_opset_that_onnx_does_not_know_yet_is_not_known() -> None:
    newest = defs.onnx_opset_version()
    for opset, codes in ((newest, []), (newest + 1, ["TS509"])):
        read = onnx_model(model(graph([node("Neg", "x", "a")], [X], ["a"]), opset))
        assert [error.code for error in model_errors(read.model)] == codes


def test_functions_are_searched_for_so_many_kinds_of_calls_and_rewritten_for_any(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One more than there are functions and 2: each with another attribute."""
    for module in ("graph.calls", "validity.model_errors"):
        monkeypatch.setattr(f"tensorsplit.model.{module}.MAX_SPECIALISED", 2)
    inner = [linked("Concat", "p p", "q", link("axis", "n"))]
    f = function("F", "p", "q", inner, ["n"])
    for count, codes in ((3, []), (4, ["TS502"])):
        calls = [node("F", "x", f"a{n}", domain="custom", n=n) for n in range(count)]
        read = onnx_model(model(graph(calls, [X], ["a0"]), functions=[f], custom=1))
        assert [error.code for error in model_errors(read.model)] == codes
        check_well_formed(read.model)


@pytest.mark.parametrize(
    ("wrong", "fix"),
    [
        (node("Add", "x", "a"), "give it 2, as Add at opset 17 has"),
        (node("Clip", "x x x x", "a"), "give it 1 to 3, as Clip at opset 17 has"),
        (node("Concat", "", "a", axis=0), "give it 1 or more, as Concat at opset 17 has"),
        (node("Neg", "x", "a b"), "give it 1, as Neg at opset 17 has"),
    ],
)
def test_the_fix_says_how_many_operands_a_node_may_have(wrong: Any, fix: str) -> None:
    read = onnx_model(model(graph([wrong], [X], ["a"]), 17))
    assert [error.fix for error in model_errors(read.model)] == [fix]


@pytest.mark.parametrize(
    ("opset", "lists", "said"),
    [
        (8, {"directions": [1]}, ""),
        (8, {"directions": [0, 1]}, "directions has 2 entries"),
        (8, {"directions": [2]}, "directions is [2]"),
        (9, {"scan_input_directions": [1]}, ""),
        (9, {"scan_input_directions": [2]}, "scan_input_directions is [2]"),
        (9, {"scan_output_directions": [-1]}, "scan_output_directions is [-1]"),
        (9, {"scan_output_directions": [0, 0]}, "scan_output_directions has 2 entries"),
        (9, {"scan_input_axes": [5]}, ""),
        (9, {"scan_input_axes": []}, "scan_input_axes has 0 entries"),
        (9, {"scan_output_axes": [0, 1]}, "scan_output_axes has 2 entries"),
    ],
)
def test_the_lists_of_a_scan_have_an_entry_for_each_row(
    opset: int, lists: dict[str, Any], said: str
) -> None:
    """It carries one value, scans one input and puts together one output."""
    lengths = "_ " if opset == 8 else ""
    body = graph(
        [node("Identity", "p", "q"), node("Identity", "r", "t")],
        [value("p", FLOAT, [4]), value("r", FLOAT, [4])],
        [value("q", FLOAT, [4]), value("t", FLOAT, [4])],
    )
    given = {name: entries for name, entries in lists.items() if entries}
    scan = node("Scan", f"{lengths}x z", "u v", body=body, num_scan_inputs=1, **given)
    for name in lists.keys() - given.keys():
        scan.attribute.append(AttributeProto(name=name, type=AttributeProto.INTS))
    z = value("z", FLOAT, [3, 4])
    read = onnx_model(model(graph([scan], [X, z], ["u", "v"]), opset))
    found = [error.problem for error in model_errors(read.model)]
    assert found == ([said] if said else [])


def test_a_body_is_not_passed_what_it_has_a_default_for() -> None:
    """Its inputs are the number of the round and the condition, and an initializer."""
    body = graph(
        [node("Identity", "c", "d"), node("Neg", "k", "r")],
        [value("i", TensorProto.INT64, []), value("c", TensorProto.BOOL, []), value("k", FLOAT)],
        [value("d", TensorProto.BOOL, []), value("r", FLOAT, [2])],
        [tensor("k", [1.0, 2.0], np.float32)],
    )
    loop_ = node("Loop", "n _", "y", body=body)
    read = onnx_model(model(graph([loop_], [value("n", TensorProto.INT64, [])], ["y"])))
    assert model_errors(read.model) == []


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        (ir.OptionalType(ir.TensorType(ir.DataType.FLOAT)), "optional(tensor(float))"),
        (
            ir.OptionalType(ir.SequenceType(ir.TensorType(ir.DataType.INT8))),
            "optional(seq(tensor(int8)))",
        ),
        (
            ir.SequenceType(ir.SequenceType(ir.TensorType(ir.DataType.BOOL))),
            "seq(seq(tensor(bool)))",
        ),
    ],
)
def test_types_are_written_as_schemas_do(kind: Any, name: str) -> None:
    assert type_name(Other(kind)) == name
