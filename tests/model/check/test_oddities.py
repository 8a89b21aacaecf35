"""What no rule refuses: no-ops, dead outputs, portability, declarations, sequences."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest

import tensorsplit as ts
from tests.model.build import FLOAT, INT64, graph, model, node, sequence, tensor, value
from tests.model.check.untyped_outputs import check

X = value("x", FLOAT, [4, 6])
OPEN = value("x", FLOAT, ["N", 6])


def found(made: onnx.ModelProto) -> list[tuple[str, str]]:
    return [(finding.code, finding.severity) for finding in check(made)]


def one(
    split: onnx.NodeProto, opset: int = 18, data: onnx.ValueInfoProto = X, **constants: Any
) -> onnx.ModelProto:
    initializers = [tensor(name, items) for name, items in constants.items()]
    return model(graph([split], [data], list(split.output), initializers), opset)


@pytest.mark.parametrize(
    "made",
    [
        one(node("Split", "x", "a", num_outputs=1)),
        one(node("Split", "x l", "a", axis=1), l=[6]),
        one(node("SplitToSequence", "x l", "a"), l=4),
    ],
    ids=["count", "lengths", "sequence"],
)
def test_one_part_of_everything_does_nothing(made: onnx.ModelProto) -> None:
    assert found(made) == [("TS811", "note")]


def test_a_sequence_without_the_axis_does_something() -> None:
    split = node("SplitToSequence", "x", "a", keepdims=0)
    assert found(one(split, data=value("x", FLOAT, [1, 6]))) == []


def test_a_part_that_nobody_uses() -> None:
    made = model(graph([node("Split", "x", "a b", num_outputs=2)], [X], ["a"]))
    (finding,) = check(made)
    assert (finding.code, finding.severity) == ("TS812", "note")
    assert "'b'" in finding.message


@pytest.mark.parametrize(
    ("outputs", "used", "message"),
    [
        ("a b c", "a b c", ""),
        ("a b c", "a c", "nobody uses 1 of the 3 parts: 'b'"),
        ("a b c", "b", "nobody uses 2 of the 3 parts: 'a', 'c'"),
        ("a _ c", "a c", ""),  # a part without a name is left out
        ("a _ c", "a", "nobody uses 1 of the 2 parts: 'c'"),
        ("a b", "x", "nobody uses what the node makes"),
        (
            "a b c d e f g h i",
            "i",
            "nobody uses 8 of the 9 parts: 'a', 'b', 'c', 'd', 'e', 'f', 'g', 'h'",
        ),
        (
            "a b c d e f g h i j",
            "j",
            "nobody uses 9 of the 10 parts: 'a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', ...",
        ),
    ],
)
def test_the_parts_that_nobody_uses_are_named(outputs: str, used: str, message: str) -> None:
    count = len(outputs.split())
    nodes = [node("Split", "x l", outputs)]
    nodes += [node("Neg", name, f"out_{name}") for name in used.split()]
    results = [output for each in nodes[1:] for output in each.output]
    data = value("x", FLOAT, [count, 6])
    made = model(graph(nodes, [data], results, [tensor("l", [1] * count)]))
    assert [each.message for each in check(made)] == [message] * bool(message)


def test_a_part_that_a_body_uses_is_used() -> None:
    branch = graph([node("Identity", "a", "c")], [], ["c"])
    nodes = [
        node("Split", "x", "a b", num_outputs=2),
        node("If", "k", "y", then_branch=branch, else_branch=branch),
    ]
    condition = value("k", onnx.TensorProto.BOOL, [])
    assert found(model(graph(nodes, [X, condition], ["y", "b"]))) == []


def test_a_node_that_nobody_uses() -> None:
    nodes = [node("Split", "x", "a b", num_outputs=2), node("Relu", "x", "y")]
    (finding,) = check(model(graph(nodes, [X], ["y"])))
    assert (finding.code, finding.fix) == ("TS812", "remove the node")


@pytest.mark.parametrize(("opset", "expected"), [(2, [("TS821", "warning")]), (11, [])])
def test_a_negative_axis_before_the_text_has_one(opset: int, expected: list[Any]) -> None:
    assert found(one(node("Split", "x", "a b", axis=-1), opset)) == expected


def test_keepdims_beside_split() -> None:
    split = node("SplitToSequence", "x l", "a", keepdims=0)
    assert found(one(split, l=[1, 3])) == [("TS822", "warning")]


@pytest.mark.parametrize(
    ("length", "is_unbind"), [("{1}", True), ("{2}", False), ("{1, 1}", False)]
)
def test_keepdims_beside_split_as_pytorch_exports_unbind(length: str, is_unbind: bool) -> None:
    """PyTorch means that the axis is dropped, as it is without `split`."""
    rank = "[2]" if "," in length else ""
    text = (
        '<ir_version: 8, opset_import: ["": 13]> g (float[2,3] x) => (seq(float) s)'
        f" <int64{rank} l = {length}> {{ s = SplitToSequence<keepdims = 0>(x, l) }}"
    )
    made = onnx.parser.parse_model(text)
    (fix,) = (each.fix for each in check(made) if each.code == "TS822")
    assert ("or 'split', if the axis should be dropped" in fix) is is_unbind
    if is_unbind:
        del made.graph.node[0].input[1]
        assert "TS822" not in {each.code for each in check(made)}
        assert [part.shape for part in ts.run(made, {"x": np.ones((2, 3), "f4")})["s"]] == [
            (3,)
        ] * 2


def test_lengths_that_can_be_fed() -> None:
    inputs = [X, value("l", INT64, [2])]
    split = node("Split", "x l", "a b")
    made = model(graph([split], inputs, ["a", "b"], [tensor("l", [1, 3])]))
    assert found(made) == [("TS823", "warning")]


def test_lengths_known_only_at_run_time() -> None:
    split = node("Split", "x l", "a b")
    made = model(graph([split], [X, value("l", INT64, [2])], ["a", "b"]))
    assert found(made) == [("TS824", "warning")]


@pytest.mark.parametrize(
    ("split", "opset", "expected"),
    [
        (node("Split", "x", "a b c", num_outputs=3), 18, [("TS825", "note")]),
        (node("Split", "x", "a b", num_outputs=2), 18, []),
        (node("Split", "x", "a b"), 13, [("TS825", "note")]),
        (node("Split", "x", "a b", split=[1, 2]), 11, [("TS825", "note")]),
        (node("SplitToSequence", "x", "a"), 18, []),
        (node("Split", "x", "a"), 13, [("TS811", "note")]),
    ],
)
def test_cuts_that_only_some_dimensions_allow(
    split: onnx.NodeProto, opset: int, expected: list[Any]
) -> None:
    assert found(one(split, opset, OPEN)) == expected


def test_a_dimension_of_0_into_parts() -> None:
    made = one(node("Split", "x", "a b", num_outputs=2), data=value("x", FLOAT, [0, 6]))
    assert found(made) == [("TS826", "warning")]


@pytest.mark.parametrize(
    "made",
    [
        one(node("Split", "x l", "a b"), l=[4, 0]),
        one(node("Split", "x", "a b c", num_outputs=3)),  # 2, 2 and 0
    ],
)
def test_a_part_without_elements(made: onnx.ModelProto) -> None:
    assert found(made) == [("TS827", "note")]


def test_lengths_of_0_of_a_dimension_of_0_are_meant() -> None:
    assert found(one(node("Split", "x l", "a b"), data=value("x", FLOAT, [0, 6]), l=[0, 0])) == []


def test_a_list_of_one_length_may_have_been_meant_as_a_chunk() -> None:
    made = one(node("SplitToSequence", "x l", "a"), data=OPEN, l=[2])
    assert ("TS828", "warning") in found(made)
    made = one(node("SplitToSequence", "x l", "a"), l=[4])  # all of the data, as is known
    assert found(made) == [("TS811", "note")]


def test_lengths_held_by_floats() -> None:
    lengths = onnx.helper.make_tensor("l", FLOAT, [2], [1.0, 3.0])
    split = node("Split", "x l", "a b", axis=0)
    made = model(graph([split], [X], ["a", "b"], [lengths]), 1)
    assert ("TS829", "warning") in found(made)


@pytest.mark.parametrize(
    ("declared", "expected"),
    [
        (value("a", FLOAT, [2, 6]), []),
        (value("a", FLOAT, ["M", 6]), []),
        (value("a", FLOAT), []),
        (value("a", FLOAT, [3, 6]), ["TS801"]),
        (value("a", FLOAT, [2, 6, 1]), ["TS801"]),
        (value("a", INT64, [2, 6]), ["TS802"]),
        (sequence("a"), ["TS802"]),
    ],
)
@pytest.mark.parametrize("is_output", [True, False])
def test_declarations_agree_with_the_split(
    declared: onnx.ValueInfoProto, expected: list[str], is_output: bool
) -> None:
    split = node("Split", "x", "a b", num_outputs=2)
    made = graph([split], [X], [declared if is_output else "a", "b"])
    if not is_output:
        made.node.append(node("Relu", "a", "c"))
        made.value_info.append(declared)
        made.output[0].name = "c"
    codes = [code for code, _ in found(model(made))]
    assert codes == expected


def test_the_declared_tensors_of_a_sequence_agree_with_the_split() -> None:
    wrong = onnx.helper.make_tensor_sequence_value_info("a", FLOAT, [3, 6])
    made = model(graph([node("SplitToSequence", "x l", "a")], [X], [wrong], [tensor("l", 2)]))
    assert found(made) == [("TS801", "error")]


def test_each_declared_tensor_of_a_sequence_agrees_with_its_part() -> None:
    wrong = onnx.helper.make_tensor_sequence_value_info("a", FLOAT, [3, 6])
    made = graph([node("SplitToSequence", "x l", "a")], [X], [wrong], [tensor("l", [3, 1])])
    (finding,) = check(model(made))
    assert finding.code == "TS801"
    assert finding.message == (
        "every tensor of 'a' is declared with shape (3, 6), but tensor 1 has shape (1, 6)"
    )


def test_a_declared_type_does_not_contradict_one_that_is_not_known() -> None:
    nodes = [
        node("Made", "x", "h", domain="own"),
        node("Split", "h", "a b", num_outputs=2),
    ]
    made = model(graph(nodes, [X], [value("a", FLOAT, [2, 6]), "b"]))
    made.opset_import.add(domain="own", version=1)
    assert found(made) == []


@pytest.mark.parametrize(
    ("dim", "words"),
    [
        (None, "the dimension on axis 0 is known only at run time, and it must be 3, which the"),
        ("N", "the dimension N on axis 0 is known only at run time, and it must be 3, which the"),
    ],
)
def test_lengths_fit_one_dimension_alone(dim: str | None, words: str) -> None:
    made = one(node("Split", "x l", "a b"), data=value("x", FLOAT, [dim, 6]), l=[1, 2])
    (finding,) = check(made)
    assert (finding.code, finding.severity) == ("TS825", "note")
    assert finding.message == f"{words} lengths sum to"


def test_a_tensor_of_any_type_may_come_into_an_empty_sequence() -> None:
    nodes = [
        node("SequenceEmpty", "", "s"),
        node("Cast", "x", "z", to=INT64),
        node("SequenceInsert", "s z", "y"),
    ]
    assert found(model(graph(nodes, [X], ["y"]))) == []


def around(*nodes: onnx.NodeProto, opset: int = 18, **constants: Any) -> onnx.ModelProto:
    """A sequence ``s`` of tensors with 2 and 2 rows, and nodes that use it and give ``y``."""
    items = {"l": [2, 2]} | constants
    initializers = [tensor(name, item) for name, item in items.items()]
    split = node("SplitToSequence", "x l", "s")
    return model(graph([split, *nodes], [X], ["y"], initializers), opset)


@pytest.mark.parametrize(
    ("index", "expected"), [(1, []), (-2, []), (2, ["TS511"]), (-3, ["TS511"])]
)
@pytest.mark.parametrize("op_type", ["SequenceAt", "SequenceErase"])
def test_positions_lie_in_the_sequence(op_type: str, index: int, expected: list[str]) -> None:
    made = around(node(op_type, "s i", "y"), i=index)
    assert [code for code, _ in found(made)] == expected


@pytest.mark.parametrize(("index", "expected"), [(2, []), (3, ["TS511"])])
def test_an_insertion_may_be_at_the_end(index: int, expected: list[str]) -> None:
    made = around(node("SequenceInsert", "s x i", "y"), i=index)
    assert [code for code, _ in found(made)] == expected


@pytest.mark.parametrize(
    ("lengths", "attributes", "expected"),
    [
        ([1, 3], {"axis": 0}, []),
        ([2, 2], {"axis": 0, "new_axis": 1}, []),
        ([1, 3], {"axis": 0, "new_axis": 1}, ["TS803"]),
        ([1, 3], {"axis": 1}, ["TS803"]),
        ([2, 2], {"axis": 2}, ["TS803"]),
        ([1, 3], {"axis": -2}, []),
        ([1, 3], {"axis": -1}, ["TS803"]),
        ([2, 2], {"axis": -3}, ["TS803"]),
        ([2, 2], {"axis": 2, "new_axis": 1}, []),
        ([2, 2], {"axis": -3, "new_axis": 1}, []),
        ([2, 2], {"axis": 3, "new_axis": 1}, ["TS803"]),
    ],
)
def test_tensors_that_are_joined_fit_together(
    lengths: list[int], attributes: dict[str, int], expected: list[str]
) -> None:
    made = around(node("ConcatFromSequence", "s", "y", **attributes), l=lengths)
    assert [code for code, _ in found(made)] == expected


@pytest.mark.parametrize("name", ["axis", "new_axis"])
def test_how_tensors_are_joined_may_be_known_to_the_calls_only(name: str) -> None:
    """Nothing is said of the join in a function whose attribute is given by each call."""
    given = {"axis": 1, "new_axis": 1}
    rest = ", ".join(f"{each} = 1" for each in given if each != name)
    made = onnx.parser.parse_model(f"""<ir_version: 10, opset_import: ["": 18, "my": 1]>
        g (float[4] x) => (float[A,B] y) {{ y = my.F<a = {given[name]}>(x) }}
        <domain: "my", opset_import: ["": 18]>
        F <a>(x) => (y) {{
            l = Constant<value_ints = [2, 2]>()
            s = SplitToSequence(x, l)
            y = ConcatFromSequence<{name}: int = @a, {rest}>(s)
        }}""")
    onnx.checker.check_model(made, full_check=True)
    assert found(made) == []


def test_a_scalar_and_a_list_do_not_fit_together() -> None:
    nodes = [
        node("SequenceConstruct", "c l", "s"),
        node("ConcatFromSequence", "s", "y", axis=0),
    ]
    made = model(graph(nodes, [], ["y"], [tensor("c", 1), tensor("l", [1, 2])]))
    assert [code for code, _ in found(made)] == ["TS803"]


@pytest.mark.parametrize(
    "text",
    [
        "s = c.F(x) y = ConcatFromSequence<axis = 0>(s)",
        "s = SequenceConstruct(x) y = c.SequenceInsert(s, k)",
        "s = SplitToSequence(x, k) y = c.ConcatFromSequence<axis = 0>(s)",
    ],
)
def test_nothing_is_said_of_what_may_be_no_sequence_or_of_operators_that_are_not_onnxs(
    text: str,
) -> None:
    head = '<ir_version: 8, opset_import: ["": 18, "c": 1]> g (float[3,4] x) => (y)'
    made = onnx.parser.parse_model(f"{head} <int64[2] k = {{1, 2}}> {{ {text} }}")
    assert [code for code, _ in found(made)] == []


def test_lengths_that_can_not_be_read_are_an_error_of_their_split() -> None:
    made = one(node("Split", "x l", "a b"), l=[2, 2])
    made.graph.initializer[0].raw_data = b""
    (first, *_) = check(made)
    assert (first.severity, first.code, first.node) == ("error", "TS502", "graph/Split[0]")


def test_a_tensor_put_into_a_sequence_has_its_element_type() -> None:
    nodes = (node("Cast", "x", "z", to=INT64), node("SequenceInsert", "s z", "y"))
    assert [code for code, _ in found(around(*nodes))] == ["TS803"]


def test_lengths_that_follow_from_an_unnamed_dimension() -> None:
    """Issue 11: their sum is not known, or is the dimension whatever it is."""

    def found(dim: Any) -> list[str]:
        nodes = [
            node("Shape", "x", "d"),
            node("Sub", "d one", "rest"),
            node("Concat", "one rest", "s", axis=0),
            node("Split", "x s", "a b"),
        ]
        made = graph(nodes, [value("x", FLOAT, [dim])], ["a", "b"], [tensor("one", [1])])
        return [finding.code for finding in check(model(made))]

    assert found(None) == []
    assert found("N") == []
    assert found(6) == []


@pytest.mark.parametrize("name", ["N", None])
def test_a_computed_length_of_one_part_is_no_mistaken_scalar(name: str | None) -> None:
    """The length is the dimension itself, whatever it is."""
    nodes = [node("Shape", "x", "l"), node("SplitToSequence", "x l", "s")]
    made = model(graph(nodes, [value("x", FLOAT, [name])], [sequence("s")]))
    assert "TS828" not in [finding.code for finding in check(made)]


@pytest.mark.parametrize("names", [("N", "M"), ("N", None), (None, None)])
def test_lengths_that_may_always_sum_to_the_dimension_are_not_doubted(
    names: tuple[str | None, str | None],
) -> None:
    """Two tensors are joined, and split into the two lengths again."""
    nodes = [
        node("Concat", "x y", "z", axis=0),
        node("Shape", "x", "n"),
        node("Shape", "y", "m"),
        node("Concat", "n m", "l", axis=0),
        node("Split", "z l", "a b"),
    ]
    inputs = [value("x", FLOAT, names[:1]), value("y", FLOAT, names[1:])]
    found = check(model(graph(nodes, inputs, ["a", "b"])))
    assert "TS825" not in [finding.code for finding in found]


READ_BY_NOTHING = {
    "what a recurrent layer reads": """g (float[5, 2, 3] x, float[1, 16, 3] w, float[1, 16, 4] r)
        => (float[A, B, C, D] y)
        { t = Transpose<perm = [1, 0, 2]>(x) y = LSTM<hidden_size = 4>(t, w, r) }""",
    "parts": "g (float[6] x) => (float[A] y) { p, q = Split(x) y = Concat<axis = 0>(p, q) }",
    "a reciprocal": "g (int64[6] x) => (int64[A] y) <int64 one = {1}> { y = Div(one, x) }",
}


@pytest.mark.parametrize("target", ["onnxruntime", "openvino"])
@pytest.mark.parametrize("name", READ_BY_NOTHING)
def test_a_node_without_outputs_is_named_whatever_it_reads(name: str, target: Any) -> None:
    """Engines refuse it; rules that follow what a node gives pass it by."""
    made = onnx.parser.parse_model(
        f'<ir_version: 8, opset_import: ["": 14]> {READ_BY_NOTHING[name]}'
    )
    for held in ["x", *(output for each in made.graph.node for output in each.output)]:
        other = onnx.ModelProto.FromString(made.SerializeToString())
        other.graph.node.append(node("Identity", held, ""))
        if held == "y":
            other.graph.output[0].name = "x"
        assert ("TS502", "error") in [(each.code, each.severity) for each in check(other)]
        assert "TS502" in [each.code for each in ts.check(other, target=target)]
