"""The errors of a model that is a graph, and those of its message; nothing is run or repaired."""

from __future__ import annotations

from onnx import TensorProto

from tensorsplit.model.validity.message_errors import message_errors
from tensorsplit.model.validity.model_errors import model_errors
from tests.model.build import FLOAT, function, graph, model, node, onnx_model, tensor, value

X = value("x", FLOAT, [4])


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
    assert list(message_errors(read.original)) == []
    assert [(error.code, error.node) for error in model_errors(read.model)] == [
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


def test_the_errors_of_a_message_are_yielded_in_bodies_and_functions() -> None:
    held = tensor("t", [1, 2])
    held.data_location = TensorProto.EXTERNAL
    held.external_data.add(key="offset", value="two")
    body = graph([node("Neg", "x", "p"), node("Relu", "x", "p")], [], ["p"], [held])
    f = function("F", "k k", "l", [node("Neg", "k", "l")])
    nodes = [node("If", "c", "y", then_branch=body, else_branch=graph([], [], ["x"]), name="if")]
    made = model(graph(nodes, [X, X]), functions=[f], custom=-1)
    assert [(error.code, error.node) for error in message_errors(made)] == [
        ("TS502", "graph"),  # the opset
        ("TS502", "graph"),  # the input
        ("TS502", "graph/if.then_branch/Relu[1]"),
        ("TS504", "graph/if.then_branch"),
        ("TS502", "function custom::F"),
    ]
