"""Static checks: what they refuse, what they leave open, and that running agrees with them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from onnx import NodeProto, TensorProto

import tensorsplit as ts
from tensorsplit.model.feeds import check_feeds
from tensorsplit.model.graph.facts import SequenceFact, Tensor, declared
from tensorsplit.model.infer.analysis import analyse, fact_of_fed
from tensorsplit.model.infer.validation import Validator, validate, values_needed
from tests.model.build import (
    FLOAT,
    INT64,
    check,
    function,
    graph,
    model,
    node,
    onnx_model,
    outputs,
    run,
    sequence,
    tensor,
    untyped,
    value,
)
from tests.model.random_models import random_program
from tests.oracle import assert_same, slices
from tests.refusals import refused

CUT = node("Split", "x s", "a b", name="cut")


def by_lengths(lengths: Any, *declared: Any, **fields: Any) -> Any:
    return model(graph([CUT], declared, "ab", [tensor("s", lengths, **fields)]))


def test_a_node_is_decided_by_constants_and_declared_dimensions() -> None:
    assert check(by_lengths([2, 4], value("x", FLOAT, [6, "N"]))) == []


@pytest.mark.parametrize(
    "declared",
    [
        value("x", FLOAT),
        value("x", FLOAT, ["N", 2]),
        value("x", FLOAT, [None, 2]),
        untyped("x"),
    ],
)
def test_a_node_is_open_where_the_data_is_not_known(declared: Any) -> None:
    made = by_lengths([2, 4], declared)
    assert check(made) == ["graph/cut"]
    assert check(made, {"x": np.ones((6, 2), np.float32)}) == []
    with refused("TS302", "[2, 4]", 7, "graph/cut", operator="onnx.Split-18", parameter="split"):
        check(made, {"x": np.ones((7, 2), np.float32)})
    made.graph.input[0].CopyFrom(value("x", TensorProto.UNDEFINED, [6, 2]))
    assert check(made) == ["graph/cut"]  # its type is open


@pytest.mark.parametrize(
    ("declared", "needed"),
    [
        (value("x", FLOAT, [6, 2]), ["l"]),
        (value("x", FLOAT), ["d", "l"]),
        (value("x", FLOAT, [6, None]), ["d", "l"]),
        (value("x", FLOAT, ["N", 2]), ["d", "l"]),
        (value("x", TensorProto.UNDEFINED, [6, 2]), ["d", "l"]),
        (untyped("x"), ["d", "l"]),
    ],
)
def test_data_is_needed_unless_its_type_and_each_dimension_are_known(
    declared: Any, needed: list[str]
) -> None:
    nodes = [node("Neg", "x", "d"), node("Abs", "s", "l"), node("Split", "d l", "a b")]
    made = model(graph(nodes, [declared, value("s", INT64, [2])], ["a"]))
    assert [each.name for each in values_needed(validate(onnx_model(made).model))] == needed


def test_splits_without_lengths_are_counted_with_those_of_the_same_kind_of_data() -> None:
    """Those that give lengths are not, nor those along another axis or of another shape."""
    nodes = [
        node("Split", "x", "a b", num_outputs=2),
        node("Split", "y", "c d e", num_outputs=3),
        node("Split", "x s", "f g h i j k"),
        node("Split", "y", "l m n o", num_outputs=4, axis=1),
        node("Split", "z", "p q r t u", num_outputs=5),
    ]
    inputs = [value(name, FLOAT, [6, 8]) for name in "xy"] + [value("z", FLOAT, [6, 9])]
    made = onnx_model(model(graph(nodes, inputs, ["a"], [tensor("s", [1] * 6)]))).model
    counts = analyse(made).counts_alike
    found = [counts.get(each) for each in made.graph]
    assert found == [{2, 3}, {2, 3}, None, {4}, {5}]


def test_calls_that_are_nested_deeper_than_python_can_follow_are_refused() -> None:
    def chain(depth: int) -> Any:
        calls = [
            function(f"F{place}", "a", "b", [node(f"F{place + 1}", "a", "b", domain="custom")])
            for place in range(depth - 1)
        ]
        last = function(f"F{depth - 1}", "a", "b", [node("Neg", "a", "b")])
        call = node("F0", "x", "y", domain="custom")
        made = model(graph([call], [value("x", FLOAT, [6])], ["y"]), 18, [*calls, last], custom=1)
        return ir.from_proto(made)

    analyse(chain(96))
    with refused("TS502", "nested more than 96 deep"):
        analyse(chain(97))
    assert [each.code for each in ts.check(chain(96))] == ["TS806"]  # the output has no type
    assert "TS502" in {each.code for each in ts.check(chain(97))}


def test_bodies_and_calls_count_together() -> None:
    """Each of 48 functions calls the next one in a branch."""

    def nested(depth: int) -> Any:
        functions = [function(f"F{depth}", "a", "b", [node("Neg", "a", "b")])]
        for place in range(depth):
            ends = [node(f"F{place + 1}", "a", "p", domain="custom"), node("Neg", "a", "q")]
            branches = [graph([end], [], [untyped(end.output[0])]) for end in ends]
            choice = node("If", "c", "b", then_branch=branches[0], else_branch=branches[1])
            true = node("Constant", "", "c", value=tensor("c", True, np.bool_))
            functions.append(function(f"F{place}", "a", "b", [true, choice]))
        call = node("F0", "x", "y", domain="custom")
        inputs = [value("x", FLOAT, [6])]
        return ir.from_proto(model(graph([call], inputs, ["y"]), 18, functions, custom=1))

    analyse(nested(47))
    with refused("TS502", "nested more than 96 deep"):
        analyse(nested(48))


@pytest.mark.parametrize(
    ("lengths", "code"), [([-1, 7], "TS301"), ([2, 2, 2], "TS305"), ([[2, 4]], "TS106")]
)
def test_lengths_are_refused_without_any_data(lengths: Any, code: str) -> None:
    with refused(code, "graph/cut"):
        check(by_lengths(lengths, untyped("x")))


def test_a_position_needs_the_count_of_the_sequence() -> None:
    """One that is left out, at the end, needs nothing."""
    inputs, place = [sequence("q"), value("x", FLOAT)], [tensor("p", 1)]
    at_the_end = node("SequenceInsert", "q x", "r")
    assert check(model(graph([at_the_end], inputs, [sequence("r")]))) == []
    nodes = [node("Identity", "q", "r"), node("SequenceAt", "r p", "y", name="at")]
    made = model(graph(nodes, inputs[:1], ["y"], place))
    facts = validate(onnx_model(made).model)
    assert list(facts.undecided) == ["graph/at"]
    assert [each.name for each in values_needed(facts)] == ["r"]
    assert check(made, {"q": [np.ones(2, np.float32)] * 2}) == []


def test_calls_that_are_alike_are_all_needed_where_one_is_undecided() -> None:
    nodes = [node("Abs", "k", "l"), node("Neg", "k", "m")]
    nodes += [node("F", f"x {name}", f"{name}1 {name}2", domain="custom") for name in "lm"]
    inputs = [value("x", FLOAT, [6]), value("k", INT64, [2])]
    halves = function("F", "x s", "a b", [CUT])
    made = model(graph(nodes, inputs, ["l1", "m1"]), 18, [halves], custom=1)
    facts = validate(onnx_model(made).model)
    assert list(facts.undecided) == ["function custom::F/cut"]
    assert {each.name for each in values_needed(facts)} == {"l1", "l2", "m1", "m2"}


def test_values_of_a_function_have_the_types_of_all_its_calls() -> None:
    nodes = [node("F", name, f"{name}_made", domain="custom") for name in "xk"]
    inputs = [value("x", FLOAT, [6]), value("k", INT64, [2])]
    negative = function("F", "a", "b", [node("Neg", "a", "b")])
    made = onnx_model(model(graph(nodes, inputs, ["k_made"]), 18, [negative], custom=1)).model
    (end,) = made.functions["custom", "F", ""].outputs
    assert analyse(made).element_types(end) == {ir.DataType.FLOAT, ir.DataType.INT64}


def test_lengths_that_are_fed_are_open() -> None:
    made = model(graph([CUT], [value("x", FLOAT, [6]), value("s", INT64, [2])], "ab"))
    assert check(made) == ["graph/cut"]
    x = np.ones(6, np.float32)
    assert check(made, {"x": x, "s": np.array([2, 4])}) == []
    with refused("TS302", "[2, 3]"):
        check(made, {"x": x, "s": np.array([2, 3])})


def test_lengths_of_which_one_is_fed_are_open() -> None:
    """Though the dimension and the other one are known: -1 is the rest for OpenVINO."""
    joined = node("Concat", "k four", "s", axis=0)
    inputs = [value("x", FLOAT, [6]), value("k", INT64, [1])]
    made = model(graph([joined, CUT], inputs, "ab", [tensor("four", [4])]))
    assert check(made) == ["graph/cut"]
    x = np.ones(6, np.float32)
    assert check(made, {"x": x, "k": np.array([2])}) == []
    with refused("TS301", "[-1, 4]"):
        check(made, {"x": x, "k": np.array([-1])})


@pytest.mark.parametrize("declared", [value("s", TensorProto.INT32, [2]), value("s", FLOAT)])
def test_the_declared_type_of_lengths_is_checked(declared: Any) -> None:
    with refused("TS105", "it is of type ", parameter="split"):
        check(model(graph([CUT], [value("x"), declared], "ab")))


def test_the_declared_rank_of_lengths_is_checked() -> None:
    with refused("TS106", "it is of rank 0;", parameter="split"):
        check(model(graph([CUT], [value("x"), value("s", INT64, [])], "ab")))


def test_the_declared_element_type_of_the_data_is_checked() -> None:
    with refused("TS201", "int4", parameter="input"):
        check(by_lengths([2, 4], value("x", TensorProto.INT4)))


def test_data_that_is_a_sequence_is_refused() -> None:
    words = {"operator": "onnx.Split-18", "parameter": "input"}
    with refused("TS204", "the data is a sequence", **words):
        check(by_lengths([2, 4], sequence("x")))


def test_the_declared_rank_of_the_data_is_checked() -> None:
    with refused("TS202"):
        check(by_lengths([2, 4], value("x", FLOAT, [])))
    cut = node("Split", "x", "a b", axis=1, num_outputs=2)
    with refused("TS203", "axis is 1"):
        check(model(graph([cut], [value("x", FLOAT, ["N"])], "ab")))


def test_shapes_are_followed_through_split_nodes() -> None:
    nodes = [
        node("Split", "x", "a b", num_outputs=2),
        node("Identity", "b", "c"),
        node("Split", "c", "p q r", num_outputs=3, name="second"),
        node("Neg", "r", "n"),
        node("Unique", "n", "w"),
        node("Split", "w", "u v", num_outputs=2, name="third"),
    ]
    made = model(graph(nodes, [value("x", FLOAT, [12])], "v"))
    assert check(made) == ["graph/third"]
    made.graph.input[0].CopyFrom(value("x", FLOAT, [8]))
    assert check(made) == ["graph/third"]
    made.graph.input[0].CopyFrom(value("x", FLOAT, [3]))
    with refused("TS304", "graph/second"):
        check(made)


def test_chunks_are_decided_once_the_dimension_is() -> None:
    cut = node("SplitToSequence", "x s", "q", name="cut")
    made = model(graph([cut], [value("x", FLOAT, ["N"])], [sequence("q")], [tensor("s", 2)]))
    assert check(made) == ["graph/cut"]
    assert check(made, {"x": np.ones(5, np.float32)}) == []
    made.graph.initializer[0].CopyFrom(tensor("s", 0))
    with refused("TS307", operator="onnx.SplitToSequence-11"):
        check(made)


def test_nothing_fed_is_taken_for_granted_in_a_body_that_may_not_run() -> None:
    body = graph(
        [CUT, node("Identity", "c", "d")], map(untyped, ["i", "c"]), ["d", value("a", FLOAT, [1])]
    )
    made = model(
        graph(
            [
                node("ArgMax", "m", "n", keepdims=0),
                node("Loop", "n _", "y", body=body, name="loop"),
            ],
            [value("x"), value("m", FLOAT, [2]), value("s", INT64)],
            "y",
        )
    )
    never, once = np.array([1, 0], np.float32), np.array([0, 1], np.float32)
    feeds = {"x": np.ones(6, np.float32), "m": never, "s": np.array([1, 1])}
    assert check(made, feeds) == ["graph/loop.body/cut"]
    assert_same(outputs(made, **feeds), [np.ones((0, 1), np.float32)])
    with refused("TS302", "graph/loop.body/cut"):
        run(made, **{**feeds, "m": once})


def test_a_body_runs_where_what_is_fed_says_so() -> None:
    body = graph(
        [CUT, node("Identity", "c", "d")], map(untyped, ["i", "c"]), ["d", value("a", FLOAT, [1])]
    )
    made = model(
        graph(
            [node("Loop", "n _", "y", body=body, name="loop")],
            [value("x"), value("n", INT64), value("s", INT64)],
            "y",
        )
    )
    feeds = {"x": np.ones(6, np.float32), "n": np.array(0), "s": np.array([1, 1])}
    assert check(made, feeds) == []
    assert_same(outputs(made, **feeds), [np.ones((0, 1), np.float32)])
    with refused("TS302", "graph/loop.body/cut"):
        check(made, {**feeds, "n": np.array(1)})


def test_a_wrong_split_in_a_branch_that_is_never_taken_does_no_harm() -> None:
    then, other = graph([CUT], [], "a"), graph([node("Identity", "x", "b")], [], "b")
    nodes = [node("If", "c", "y", then_branch=then, else_branch=other, name="if")]
    constants = [tensor("s", [2, 3]), tensor("c", False, np.bool_)]
    made = model(graph(nodes, [value("x", FLOAT, [6])], "y", constants))
    x = np.ones(6, np.float32)
    assert check(made) == []
    assert_same(outputs(made, x=x), [x])
    made.graph.initializer[1].CopyFrom(tensor("c", True, np.bool_))
    with refused("TS302", "graph/if.then_branch/cut"):
        check(made)


def test_what_only_this_run_does_not_take_is_refused_where_it_is_always_wrong() -> None:
    then, other = graph([CUT], [], "a"), graph([node("Identity", "x", "b")], [], "b")
    nodes = [node("If", "c", "y", then_branch=then, else_branch=other, name="if")]
    inputs = [value("x", FLOAT, ["N"]), value("c", TensorProto.BOOL, [])]
    made = model(graph(nodes, inputs, "y", [tensor("s", [2, 3])]))
    x = np.ones(6, np.float32)
    assert check(made, {"x": x, "c": np.array(False)}) == []  # 6 is wrong, but 5 would be right
    with refused("TS302", "graph/if.then_branch/cut"):
        check(made, {"x": x, "c": np.array(True)})
    made.graph.initializer[0].CopyFrom(tensor("s", [-1, 7]))
    with refused("TS301", "graph/if.then_branch/cut"):
        check(made, {"x": x, "c": np.array(False)})


def test_constants_hold_in_bodies() -> None:
    branch = graph([CUT], [], "a")
    made = model(
        graph(
            [node("If", "c", "y", then_branch=branch, else_branch=branch, name="if")],
            [value("x", FLOAT, [6]), value("c", TensorProto.BOOL, [])],
            "y",
            [tensor("s", [2, 3])],
        )
    )
    with refused("TS302", "graph/if.else_branch/cut"):
        check(made)
    made.graph.initializer[0].CopyFrom(tensor("s", [2, 4]))
    assert check(made) == []


def test_a_loop_s_own_values_are_not_known() -> None:
    body = graph(
        [node("Split", "x", "a b", num_outputs=2, name="cut"), node("Identity", "c", "d")],
        map(untyped, ["i", "c", "x"]),
        ["d", "a"],
    )
    made = model(
        graph(
            [node("Loop", "n _ x", "y", body=body, name="loop")],
            [value("x", FLOAT, [4]), value("n", INT64)],
            "y",
        )
    )
    assert check(made) == ["graph/loop.body/cut"]
    made.graph.input[0].CopyFrom(value("x", FLOAT, [1]))  # what the body returns is as long again
    assert check(made) == []


def test_feeds_are_checked_first() -> None:
    with refused("TS505", parameter="x"):
        check(by_lengths([2, 4], value("x")), {})


@pytest.mark.parametrize(
    "bad",
    [
        node("Split", "x", "a b c", num_outputs=2),
        node("Split", "x", "a b"),
        node("Split", "x", "a b", axis=[0]),
        node("Split", "x", "a b", split=[3, 3]),
        node("SplitToSequence", "x", "a", keepdims=5),
    ],
)
def test_running_and_checking_refuse_alike(bad: NodeProto) -> None:
    made = model(graph([bad], [value("x", FLOAT, [6])], "a"))
    codes = []
    for attempt in (lambda: check(made), lambda: run(made, x=np.ones(6, np.float32))):
        try:
            attempt()
        except ValueError as error:
            codes.append((error.code, str(error)))  # type: ignore[attr-defined]
    assert len(codes) == 2
    assert codes[0] == codes[1]


def test_what_checking_accepts_runs(rng: np.random.Generator) -> None:
    """Random cuts: those that pass the check give the slices, all others the same refusal."""
    passed = 0
    for _ in range(300):
        count = int(rng.integers(1, 4))
        lengths = rng.integers(-1, 5, size=int(rng.integers(1, 4))).tolist()
        dim = max(0, sum(lengths) + int(rng.integers(-1, 2)))
        names = " ".join(f"p{k}" for k in range(count))
        x = rng.random((dim, 2)).astype(np.float32)
        cut = node("Split", "x s", names)
        made = model(
            graph([cut], [value("x", FLOAT, [dim, 2])], names.split(), [tensor("s", lengths)])
        )
        fits = min(lengths) >= 0 and sum(lengths) == dim and len(lengths) == count
        try:
            assert check(made) == []
        except ValueError:
            assert not fits
        else:
            assert fits
            assert_same(outputs(made, x=x), slices(x, 0, lengths))
            passed += 1
    assert 20 < passed < 150


def test_what_a_scan_carries_may_change_its_shape() -> None:
    body = graph(
        [
            node("Split", "state", "a b", num_outputs=2, name="cut"),
            node("Concat", "state e1", "next", axis=0),
            node("Identity", "e1", "out"),
        ],
        [untyped("state"), untyped("e1")],
        ["next", "out"],
    )
    scan = node("Scan", "start x", "last y", body=body, num_scan_inputs=1, name="scan")
    inputs = [value("start", FLOAT, [4]), value("x", FLOAT, [3, 1])]
    made = model(graph([scan], inputs, ["last", "y"]))
    assert check(made) == ["graph/scan.body/cut"]


def taken_at(op_type: str, position: int) -> Any:
    """A model that takes a position in a sequence of 3 tensors of 2 elements."""
    inputs = "q x i" if op_type == "SequenceInsert" else "q i"
    nodes = [node("SplitToSequence", "x two", "q"), node(op_type, inputs, "y", name="at")]
    if op_type != "SequenceAt":
        nodes[-1].output[0] = "r"
        nodes.append(node("ConcatFromSequence", "r", "y", axis=0))
    constants = [tensor("two", 2), tensor("i", position)]
    return model(graph(nodes, [value("x", FLOAT, [6])], [value("y", FLOAT, [None])], constants))


@pytest.mark.parametrize("op_type", ["SequenceAt", "SequenceErase", "SequenceInsert"])
@pytest.mark.parametrize("position", [-4, -3, 2, 3, 4])
@pytest.mark.parametrize("tool", ["check", "convert", "lower"])
def test_d19_a_position_is_refused_before_a_run(tool: str, op_type: str, position: int) -> None:
    """It lies in [-3, 2]; what is put in may come after the last, at 3."""
    made, last = taken_at(op_type, position), 3 if op_type == "SequenceInsert" else 2
    tools: dict[str, Callable[[Any], Any]] = {
        "check": check,
        "convert": lambda made: ts.convert(made, opset=13),
        "lower": lambda made: ts.lower(made, target="portable"),
    }
    apply = tools[tool]
    if -3 <= position <= last:
        apply(made)
        return
    with refused("TS511", position, "3 tensors", f"[-3, {last}]", "graph/at"):
        apply(made)


@pytest.mark.parametrize(
    ("changed", "count"),
    [
        ("q", 3),
        ("SequenceErase(q, i)", 2),
        ("SequenceErase(q)", 2),
        ("SequenceInsert(q, x, i)", 4),
        ("SequenceInsert(q, x)", 4),
    ],
)
def test_d19_a_position_is_refused_after_a_change_at_one_that_is_fed(
    changed: str, count: int
) -> None:
    """Whichever tensor is taken out, one fewer is left."""
    change = f"r = {changed}" if "(" in changed else "r = Identity(q)"
    for position in range(-count - 1, count + 1):
        made = onnx.parser.parse_model(
            f"""<ir_version: 8, opset_import: ["": 18]> g (float[N] x, int64 i) => (float[N] y)
            <int64 at = {{{position}}}> {{ q = SequenceConstruct(x, x, x) {change}
            y = SequenceAt(r, at) }}"""
        )
        found = [each.code for each in ts.check(made)]
        assert found == [] if -count <= position < count else found == ["TS511"]


@pytest.mark.parametrize(
    ("sequence", "length"),
    [
        ("q = SequenceConstruct(x, x, x)", 3),
        ("r = SequenceConstruct(x, x, x) q = SequenceErase(r, i)", 2),
        ("q = SequenceEmpty()", 0),
        ("q = SplitToSequence(x)", None),
        ("q = c.Other(x)", None),
        ("r = c.Other(x) q = SequenceMap(r) <body = b (float[N] e) => (f) { f = Neg(e) }>", None),
    ],
)
def test_how_many_tensors_a_sequence_has_is_known_to_what_follows(
    sequence: str, length: int | None
) -> None:
    made = onnx.parser.parse_model(
        f"""<ir_version: 8, opset_import: ["": 18, "c": 1]> g (float[N] x, int64 i) => (float[K] y)
        <int64[1] zero = {{0}}> {{ {sequence} n = SequenceLength(q) l = Unsqueeze(n, zero)
        z = ConstantOfShape(l) y = Neg(z) }}"""
    )
    given = {each.name: each for each in ts.infer_shapes(made).graph.value_info}["z"]
    (dim,) = given.type.tensor_type.shape.dim
    assert (dim.dim_value if dim.HasField("dim_value") else None) == length


def test_d19_a_position_outside_in_a_branch_that_is_never_taken_does_no_harm() -> None:
    whole = taken_at("SequenceAt", 3)
    then = graph([whole.graph.node[1]], [], ["y"])
    other = graph([node("Identity", "x", "w")], [], ["w"])
    made = model(
        graph(
            [
                whole.graph.node[0],
                node("If", "c", "z", then_branch=then, else_branch=other),
            ],
            whole.graph.input,
            "z",
            [*whole.graph.initializer, tensor("c", False, np.bool_)],
        )
    )
    assert check(made) == []
    ts.infer_shapes(made)


def test_what_is_declared_of_the_outputs_of_nodes_is_not_believed() -> None:
    """Only the run itself can tell, or what is fed."""
    nodes = [node("Identity", "x", "m"), node("Split", "m s", "a b", name="cut")]
    made = model(graph(nodes, [value("x", FLOAT, ["N"])], "ab", [tensor("s", [2, 4])]))
    made.graph.value_info.append(value("m", FLOAT, [5]))
    x = np.random.default_rng(1).random(6, np.float32)
    assert check(made, {"x": x}) == []
    assert_same(outputs(made, x=x), slices(x, 0, [2, 4]))


def test_a_value_of_a_function_may_have_the_name_of_an_input() -> None:
    made = onnx.parser.parse_model(
        """<ir_version: 8, opset_import: ["": 13, "l": 1]>
        g (float[N] x) => (a, b) { a, b = l.F(x) }
        <domain: "l", opset_import: ["": 13]> F (v) => (p, q) {
            x = Concat<axis = 0>(v, v)
            s = Constant<value = int64[2] {5, 7}>()
            p, q = Split(x, s)
        }"""
    )
    x = np.random.default_rng(2).random(6, np.float32)
    assert check(made, {"x": x}) == []
    assert_same(outputs(made, x=x), slices(np.concatenate([x, x]), 0, [5, 7]))


def test_a_loop_may_have_no_round_where_its_condition_is_not_known() -> None:
    """A wrong split in its body is no mistake unless it runs."""
    made = onnx.parser.parse_model(
        """<ir_version: 8, opset_import: ["": 13]>
        g (float[5] x, float[1] t, float[1] u) => (y) <int64 n = {3}> {
            w = Exp(t)
            c = Less(w, u)
            y = Loop(n, c, x) <body = b (int64 i, bool d, float[M] v) => (bool e, float[M] p) {
                e = Identity(d)
                p, q = Split(x)
            }>
        }"""
    )
    x, t = np.random.default_rng(3).random(5, np.float32), np.ones(1, np.float32)
    np.testing.assert_array_equal(run(made, x=x, t=t, u=t)["y"], x)
    with refused("TS303", "graph/Loop[2].body/Split[1]"):
        run(made, x=x, t=t, u=t * 9)


FLOATS = ir.TensorType(ir.DataType.FLOAT)


@pytest.mark.parametrize(
    ("kind", "counts", "part"),
    [
        (ir.SequenceType(FLOATS), (2, 2), (2, 3)),
        (ir.SequenceType(FLOATS), (2, 5), (None, 3)),
        (ir.SequenceType(FLOATS), (), None),
        (ir.OptionalType(ir.SequenceType(FLOATS)), (2, 2), None),  # it may be absent
    ],
)
def test_a_list_that_is_fed_says_how_many_tensors_there_are_and_their_shapes(
    kind: Any, counts: tuple[int, ...], part: tuple[int | None, ...] | None
) -> None:
    held = ir.Value(name="s", type=kind)
    fact = fact_of_fed(held, [np.zeros((count, 3), np.float32) for count in counts], 18)
    if isinstance(kind, ir.OptionalType):
        assert fact == declared(held)
        return
    assert isinstance(fact, SequenceFact)
    assert (fact.count, fact.part) == (len(counts), part)
    assert fact.element_type in (ir.DataType.FLOAT, None)


def test_a_tensor_that_is_fed_to_an_optional_value_may_be_absent() -> None:
    x = np.array([4, 5], np.int64)
    for kind, values in ((ir.TensorType(ir.DataType.INT64), (4, 5)), (None, (4, 5))):
        fact = fact_of_fed(ir.Value(name="x", type=kind), x, 18)
        assert isinstance(fact, Tensor)
        assert (fact.element_type, fact.shape, fact.values) == (ir.DataType.INT64, (2,), values)
    held = ir.Value(name="x", type=ir.OptionalType(ir.TensorType(ir.DataType.INT64)))
    assert fact_of_fed(held, x, 18) == declared(held)


def judged(check: Callable[..., Any], *given: Any) -> Any:
    """What a check refuses; else what it leaves open, and what would have to be known."""
    try:
        facts = check(*given)
    except ts.SplitError as error:
        return error.code, error.node
    return sorted(facts.undecided), *(
        [each.name for each in values_needed(facts, whole=whole)] for whole in (False, True)
    )


def test_what_is_remembered_of_other_calls_changes_no_judgement() -> None:
    """Random models are fed this and that, one after another, and each for the first time."""
    found = dict[bool, int]()
    for seed in range(40):
        program = random_program(seed)
        made = onnx_model(program.model())
        validator = Validator(made.model)
        for feeds in (*program.feeds, *reversed(program.feeds)):
            fed = check_feeds(made.inputs, feeds)
            alone = judged(validate, made.model, fed)
            assert judged(validator.check, fed) == alone, seed
            found[bool(alone[0])] = found.get(bool(alone[0]), 0) + 1
    assert min(found.values()) > 20
    assert len(found) == 2
