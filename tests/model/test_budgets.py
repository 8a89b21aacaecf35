"""Small models that stand for huge ones: every tool ends in bounded time and memory.

Each test runs in a child process with a limit on its memory and a deadline, both many times what it
takes.
"""

from __future__ import annotations

import functools
import re
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from functools import partial
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.parser
import onnx_ir as ir
import pytest

import tensorsplit as ts
from tensorsplit import backend
from tensorsplit.cli.app import main
from tensorsplit.model.graph.calls import check_expanded
from tests.model.build import (
    BOOL,
    FLOAT,
    INT64,
    function,
    graph,
    link,
    model,
    node,
    tensor,
    untyped,
    value,
)
from tests.refusals import refused

pytestmark = pytest.mark.thorough

_MEMORY = 4 << 30
_SECONDS = 300


def limited(test: Callable[[], None]) -> Callable[[], None]:
    """Have a test run in a child process with limits."""

    @functools.wraps(test)
    def run() -> None:
        code = f"from {test.__module__} import {test.__name__} as test; test.__wrapped__()"
        made = subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            timeout=_SECONDS,
            preexec_fn=_limit_memory,
            check=False,
        )
        assert made.returncode == 0, made.stderr[-3000:]

    return run


def _limit_memory() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))


def tools(made: onnx.ModelProto) -> Iterator[Callable[[], object]]:
    """Every tool that looks at a model, or rewrites it without inlining its functions."""
    yield lambda: ts.check(made, target="openvino")
    yield lambda: ts.infer_shapes(made)
    yield lambda: ts.convert(made, opset=13)
    yield lambda: ts.check(made)
    yield lambda: ts.convert(made, opset=19)
    yield lambda: ts.lower(made, target="onnxruntime")


def try_all(made: onnx.ModelProto, first: int = 6) -> None:
    """Have every tool look at a model; what one gives stays small, or it refuses."""
    for tool in islice(tools(made), first):
        try:
            result = tool()
        except ts.SplitError:
            continue
        if isinstance(result, onnx.ModelProto):
            assert result.ByteSize() < 20 * made.ByteSize() + 10_000


def cli(made: onnx.ModelProto, *arguments: str) -> int:
    """The exit status of a command on a model."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "m.onnx")
        onnx.save(made, path)
        with pytest.raises(SystemExit) as ended:
            main([arguments[0], str(path), *arguments[1:]])
        return int(str(ended.value))


def call(name: str, given: str, made: str, around: str) -> list[onnx.NodeProto]:
    """A call of a function, by itself or in a body."""
    inner = node(name, given, f"{made}_", domain="custom")
    if around == "If":
        branches = [graph([inner], [], [f"{made}_"])] * 2
        yes = node("Constant", "", f"c{made}", value=tensor("", True, np.bool_))
        return [
            yes,
            node("If", f"c{made}", made, then_branch=branches[0], else_branch=branches[1]),
        ]
    if around == "Loop":
        goes_on = node("Identity", "on", "on_")
        inner.input[0] = "s"
        ends = [value("i", INT64, []), value("on", BOOL, []), value("s")]
        body = graph([goes_on, inner], ends, ["on_", f"{made}_"])
        two = node("Constant", "", f"c{made}", value=tensor("", 2))
        return [two, node("Loop", f"c{made} _ {given}", made, body=body)]
    inner.output[0] = made
    return [inner]


def doubling(levels: int, around: str = "", times: int = 2, *, grows: bool = True) -> Any:
    """Functions each of which calls the next one several times, on other shapes if it grows."""
    ends = "a b b" if grows else "a b"
    split = [node("Split", "x", "a b", axis=0, num_outputs=2), node("Concat", ends, "y", axis=0)]
    functions = [function(f"F{levels}", "x", "y", split)]
    for level in range(levels):
        nodes: list[onnx.NodeProto] = []
        for index in range(times):
            given = f"v{index}" if index else "x"
            made = "y" if index == times - 1 else f"v{index + 1}"
            nodes += call(f"F{level + 1}", given, made, around)
        functions.append(function(f"F{level}", "x", "y", nodes))
    main_graph = graph(
        [node("F0", "x", "y", domain="custom")], [value("x", FLOAT, [4])], [value("y")]
    )
    return model(main_graph, 18, functions, custom=1)


@limited
def test_functions_that_call_each_other_twice_in_every_tool() -> None:
    made, data = doubling(40), {"x": np.ones(4, np.float32)}
    try_all(made)
    others: list[Any] = ["onnxruntime"] if find_spec("onnxruntime") else []
    for engine in ("tensorsplit", *others):
        with refused("TS502", "functions"):
            ts.run(made, data, engine=engine)
    with refused("TS502", "16384"):
        ts.lower(made, target="openvino")
    with refused("TS502", "functions"):
        backend.run_model(made, list(data.values()))
    assert cli(made, "explain") == 0
    assert cli(made, "run") == 2
    assert cli(made, "lower", "--for", "onnxruntime", "-o", "unused", "--verify") == 2


@limited
def test_functions_that_call_each_other_in_bodies() -> None:
    for around, times in (("If", 2), ("Loop", 2), ("", 10)):
        made = doubling(30, around, times)
        try_all(made, 2)
        with refused("TS502", "16384"):
            ts.lower(made, target="openvino")
    again = doubling(3)
    again.functions[0].node.append(node("F1", "y", "z", domain="custom"))
    try_all(again)
    with refused("TS502", "calls itself"):
        ts.lower(again, target="openvino")


@limited
def test_attributes_that_each_call_passes_on() -> None:
    """No two of 4096 calls pass the same."""
    made = doubling(12, grows=False)
    for level, each in enumerate(sorted(made.functions, key=lambda each: int(each.name[1:]))):
        own = [f"a{index}" for index in range(level)]
        each.attribute.extend(own)
        for index, inner in enumerate(each.node if level < 12 else ()):
            inner.attribute.extend(link(name, name) for name in own)
            inner.attribute.append(onnx.helper.make_attribute(f"a{level}", index))
        if level == 12:
            each.node[0].attribute.remove(each.node[0].attribute[0])
            each.node[0].attribute.append(link("axis", "a11"))
    try_all(made, 3)


@limited
def test_loops_in_each_other_whose_shapes_change() -> None:
    inner = [node("Concat", "s0 s0", "t0", axis=0), node("Split", "t0", "p q", num_outputs=2)]
    for level in range(24):
        on = f"on{level}"
        ends = [value(f"i{level}", INT64, []), value(on, BOOL, []), value(f"s{level}")]
        body = graph([*inner, node("Identity", on, f"{on}_")], ends, [f"{on}_", f"t{level}"])
        inner = [
            node("Loop", f"m _ s{level + 1}", f"u{level}", body=body),
            node("Concat", f"u{level} u{level}", f"t{level + 1}", axis=0),
        ]
    try_all(model(graph(inner, [value("m", INT64, []), value("s24", FLOAT, [4])], ["t24"])))


def test_inlined_functions_compute_the_same() -> None:
    """Calls in calls and in bodies, outputs that are inputs, absent inputs, names used twice."""
    made = doubling(3, "If", 2)
    given = function("Two", "x w", "x y x", [node("Add", "x x", "y")])
    made.functions.append(given)
    made.graph.node.append(node("Two", "y _", "k l m", domain="custom"))
    made.graph.output.extend(value(name) for name in "klm")
    data = {"x": np.arange(4, dtype=np.float32)}
    lowered = ts.lower(made, target="openvino")
    assert not lowered.functions
    expected = ts.run(made, data, engine="tensorsplit")
    for name, found in ts.run(lowered, data, engine="tensorsplit").items():
        np.testing.assert_array_equal(found, expected[name])


@limited
def test_constants_that_double() -> None:
    ways = {
        "Concat": ["d = Concat<axis = 0>(c, c)"],
        "Tile": ["d = Tile(c, two)"],
        "Expand": ["r = Unsqueeze(c, zero)", "e = Expand(r, column)", "d = Reshape(e, flat)"],
        "ConstantOfShape": [
            *("s = Shape(c)", "t = Mul(s, two)"),
            "d = ConstantOfShape<value = int64[1] {1}>(t)",
        ],
        "Pad": ["s = Shape(c)", "t = Concat<axis = 0>(zero, s)", "d = Pad(c, t)"],
        "Resize": ['d = Resize<mode = "nearest">(c, , scale)'],
        "Range": [
            *("s = Shape(c)", "t = Mul(s, two)", "u = Squeeze(t)"),
            "d = Range(start, u, step)",
        ],
        "OneHot": ["o = OneHot(c, two, pair)", "d = Reshape(o, flat)"],
        "Gather": ["e = Concat<axis = 0>(c, c)", "f = Mul(e, zero)", "d = Gather(c, f)"],
        "GatherND": [
            *("e = Concat<axis = 0>(c, c)", "f = Mul(e, zero)"),
            *("g = Unsqueeze(f, one)", "d = GatherND(c, g)"),
        ],
        "Mul": [
            *("r = Unsqueeze(c, zero)", "s = Unsqueeze(c, one)"),
            *("t = Mul(r, s)", "d = Reshape(t, flat)"),
        ],
        "SequenceInsert": [
            *("s = SequenceConstruct(c)", "t = SequenceInsert(s, c)"),
            "d = ConcatFromSequence<axis = 0>(t)",
        ],
        "SplitToSequence": [
            *("e = Concat<axis = 0>(c, c)", "s = SplitToSequence<axis = 0>(e, step)"),
            "d = ConcatFromSequence<axis = 0>(s)",
        ],
    }
    constants = [
        tensor("c0", [1, 1, 1]),
        *(tensor(n, [k]) for n, k in (("zero", 0), ("one", 1), ("two", 2), ("flat", -1))),
        tensor("column", [2, 1]),
        tensor("pair", [0, 1]),
        tensor("start", 0),
        tensor("step", 1),
        tensor("scale", [2], np.float32),
    ]
    for name, way in ways.items():
        nodes, levels = [], 18 if name == "SplitToSequence" else 34
        for level in range(levels):
            for each in way:  # names of one letter are other values at each level
                text = re.sub(r"\b([a-ce-z])\b", rf"\g<1>{level}", each)
                nodes.append(onnx.parser.parse_node(re.sub(r"\bd\b", f"c{level + 1}", text)))
        nodes.append(node("SplitToSequence", f"x c{levels}", "q", axis=0))
        nodes.append(node("SequenceLength", "q", "y"))
        try_all(model(graph(nodes, [value("x", FLOAT, ["N"])], ["y"], constants)), 3)


@limited
def test_lengths_that_are_taken_from_long_lists() -> None:
    doubled = " ".join(f"e{k + 1} = Concat<axis = 0>(e{k}, e{k})" for k in range(33))
    lists = {
        "Expand": "e = Expand(three, big)",
        "Tile": "e = Tile(three, big)",
        "Concat": f"e0 = Identity(three) {doubled} e = Identity(e33)",
    }
    for dim in ("6", "N"):
        for made in lists.values():
            text = f"""<ir_version: 8, opset_import: ["": 17]> g (float[{dim}] x)
            => (float[A] a, float[B] b) <int64[1] three = {{3}}, int64[1] big = {{{3 * 10**9}}},
            int64[1] zero = {{0}}, int64[1] two = {{2}}>
            {{ {made} l = Slice(e, zero, two) a, b = Split(x, l) }}"""
            try_all(onnx.parser.parse_model(text))


@limited
def test_more_parts_than_memory_holds() -> None:
    one = [value("x", FLOAT, [10**12, 0])]
    parts = [node("Split", "x", "a b", axis=0, num_outputs=2**40)]
    try_all(model(graph(parts, one, ["a", "b"])))
    for length in ("", " l"):
        nodes = [node("SplitToSequence", f"x{length}", "q", axis=0)]
        nodes.append(node("SequenceLength", "q", "y"))
        for count in (10**12, 2**20):
            ends = [value("x", FLOAT, [count, 0])]
            try_all(model(graph(nodes, ends, ["y"], [tensor("l", 1)] if length else [])))
    many = [
        node("ConstantOfShape", "n", "l", value=tensor("", [1])),
        node("SplitToSequence", "x l", "q", axis=0),
        node("SequenceLength", "q", "y"),
    ]
    for count in (10**8, 2**62):
        try_all(model(graph(many, [value("x", FLOAT, ["N"])], ["y"], [tensor("n", [count])])))
        counted = [node("Range", "z n o", "l"), *many[1:]]
        numbers = [tensor("z", 0), tensor("n", count), tensor("o", 1)]
        try_all(model(graph(counted, [value("x", FLOAT, ["N"])], ["y"], numbers)))


def sparse(name: str, dims: list[int]) -> onnx.SparseTensorProto:
    """Two numbers, and zeros."""
    values = tensor(name, [3, 4])
    return onnx.SparseTensorProto(values=values, indices=tensor("", [1, 2]), dims=dims)


@limited
def test_large_sparse_tensors_are_not_made_dense() -> None:
    for count in (2**24, 2**40):
        nodes = [
            node("Constant", "", "k", sparse_value=sparse("", [count])),
            node("Split", "w", "a b", axis=0, num_outputs=2),
            node("Concat", "a k", "c", axis=0),
            node("SplitToSequence", "x w", "q", axis=0),
            node("Shape", "c", "y"),
        ]
        whole = graph(nodes, [value("x", FLOAT, ["N"])], ["y", "q"], (), [sparse("w", [count])])
        made = model(whole)
        for tool in tools(made):
            result: Any = tool()
            if isinstance(result, onnx.ModelProto):
                assert result.graph.sparse_initializer == made.graph.sparse_initializer
                assert not result.graph.initializer
                assert result.ByteSize() < 10_000
                held = [each for each in result.graph.node if each.op_type == "Constant"]
                assert held[0].attribute == made.graph.node[0].attribute
        with refused("TS512", "sparse"):
            ts.convert(model(graph([nodes[0], node("Shape", "k", "y")], [], ["y"])), opset=10)
    with refused("TS502", "1099511627776"):
        ts.run(made, {"x": np.zeros(7, np.float32)})


@limited
def test_a_slice_of_a_shape_with_the_largest_step() -> None:
    """onnx's propagation of elements adds the step until it is at the end, and overflows."""
    made = onnx.parser.parse_model(
        f"""<ir_version: 8, opset_import: ["" : 13]> g (float[6, N] x) => (float[?] p, float[?] q)
        <int64[1] s = {{0}}, int64[1] e = {{{2**63 - 1}}}, int64[1] a = {{0}}, float w = {{1}}> {{
            d = Shape (x)
            y = Slice (d, s, e, a, e)
            z = Expand (w, y)
            p, q = Split <axis: int = 0> (z)
        }}"""
    )
    try_all(made)
    inferred = {entry.name: entry for entry in ts.infer_shapes(made).graph.value_info}
    assert [d.dim_value for d in inferred["y"].type.tensor_type.shape.dim] == [1]
    assert [d.dim_value for d in inferred["z"].type.tensor_type.shape.dim] == [6]


@limited
def test_bounds_of_a_slice_that_are_given_and_said_to_be_very_many() -> None:
    for count in (-1, 1 << 30, 1 << 40):
        data, bounds = value("x", FLOAT, ["N", "M"]), [value(n, INT64, [count]) for n in "se"]
        made = model(graph([node("Slice", "x s e", "y")], [data, *bounds], [value("y")]))
        try_all(made)
        ts.check(made, target="openvino")


@limited
def test_many_splits_into_very_many_parts() -> None:
    """Neither a list of lengths for each, nor one that is remembered."""
    most = 1 << 24
    counts = [most - i for i in range(100)]
    splits = [node("Split", "x", f"a{i} b{i}", num_outputs=n) for i, n in enumerate(counts)]
    sequences = [node("SplitToSequence", "x", f"a{i}") for i in range(100)]
    for dim in ("N", most):
        x = value("x", FLOAT, [dim])
        try_all(model(graph(splits, [x], [value("a0")])))
        try_all(model(graph([*sequences, node("SequenceLength", "a0", "y")], [x], ["y"])))


@limited
def test_lengths_calculated_through_many_long_lists() -> None:
    many = 200
    nodes = [node("Shape", "x", "n"), node("Expand", "n long", "e0")]
    nodes += [node("Neg", f"e{i}", f"e{i + 1}") for i in range(many)]
    nodes += [
        node("ReduceSum", f"e{many}", "first", keepdims=1),
        node("Sub", "n first", "second"),
        node("Concat", "first second", "s", axis=0),
        node("Split", "x s", "a b"),
    ]
    made = model(graph(nodes, [value("x", FLOAT, ["N"])], ["a"], [tensor("long", [1 << 22])]))
    try_all(made)
    ts.check(made, target="portable")


@limited
def test_a_split_on_a_far_axis_of_data_of_any_rank() -> None:
    cut = node("Split", "x l", "a b", axis=1 << 31)
    lengths = tensor("l", [2, 4])
    made = model(graph([cut], [untyped("x")], [untyped("a")], [lengths]), 18)
    for target in ("onnxruntime", "openvino", "portable"):
        ts.check(made, target=target)
        ts.lower(made, target=target)


@limited
def test_counts_of_a_declared_length_beyond_memory() -> None:
    ends = [value("x", FLOAT, [2, 3, 4, 5]), value("n", INT64, [1 << 45])]
    ts.check(model(graph([node("Tile", "x n", "y")], ends, [untyped("y")])), target="openvino")


@limited
def test_very_many_ways_from_a_split_to_a_node_that_nothing_uses() -> None:
    sums = [node("Sum", " ".join([f"p{i}"] * 4), f"p{i + 1}") for i in range(15)]
    nodes = [node("Split", "x s", "p0 q"), *sums, node("Neg", "x", "y")]
    made = model(graph(nodes, [value("x", FLOAT, ["N"]), value("s", INT64, [2])], ["y"]))
    assert any("nothing uses" in each.message for each in ts.check(made, target="openvino"))


@limited
def test_a_loop_of_very_many_nodes_that_calculate_the_same() -> None:
    made, many = (
        onnx.parser.parse_model("""<ir_version: 10, opset_import: ["": 18]> g (int64 m,
        bool c, float[2, 4] x) => (float[n, p, 4] y) {y = Loop(m, c) <body = b(int64 i, bool k) =>
        (bool k2, float[p, 4] z) {k2 = Identity(k)}>}"""),
        range(1500),
    )
    body = made.graph.node[0].attribute[0].g
    for i in many:
        body.node.append(node("Relu", "x", f"t{i}"))
        body.node.append(node("Concat", f"t{i} x", f"j{i}", axis=0))
    body.node.append(node("Concat", " ".join(f"j{i}" for i in many), "z", axis=0))
    assert [each.node for each in ts.check(made, target="openvino")] == ["graph/Loop[0]"]


@limited
def test_a_billion_lengths_of_which_nothing_is_on_the_disk() -> None:
    count = 1 << 30
    held = onnx.TensorProto(name="l", dims=[count], data_type=INT64)
    held.data_location = onnx.TensorProto.EXTERNAL
    held.external_data.add(key="location", value="l.bin")
    made = model(graph([node("Split", "x l", "a b")], [value("x", FLOAT, [6])], ["a", "b"], [held]))
    with tempfile.TemporaryDirectory() as folder:
        path, weights = Path(folder, "m.onnx"), Path(folder, "l.bin")
        onnx.save(made, path)
        with weights.open("wb") as file:
            file.truncate(8 * count)
        assert "TS305" in [each.code for each in ts.check(path, target="openvino")]
        for tool in (
            ts.infer_shapes,
            partial(ts.lower, target="portable"),
            partial(ts.convert, opset=13),
        ):
            with refused("TS305", f"it makes {count} parts"):
                tool(path)
        with refused("TS305", f"it makes {count} parts"):
            ts.run(path, {"x": np.ones(6, np.float32)})


def calls(*sizes: int) -> ir.Model:
    """Calls of functions of so many nodes."""
    functions = [
        function(
            f"F{size}", "x", "v0" if size else "x", [node("Neg", "x", f"v{i}") for i in range(size)]
        )
        for size in set(sizes)
    ]
    nodes = [node(f"F{size}", "x", f"y{i}", domain="custom") for i, size in enumerate(sizes)]
    return ir.from_proto(model(graph(nodes, [value("x")], ["y0"]), 18, functions, custom=1))


@pytest.mark.parametrize(
    ("sizes", "is_taken"),
    [
        ([128] * 128, True),  # as many nodes as there may be
        ([128] * 128 + [1], False),
        ([128] * 127 + [127, 1], True),
        ([128] * 128 + [0], False),  # a call of nothing is a node
        ([128] * 127 + [127, 0], True),
    ],
)
def test_functions_stand_for_so_many_nodes_and_no_more(sizes: list[int], is_taken: bool) -> None:
    with nullcontext() if is_taken else refused("TS502", "16384"):
        check_expanded(calls(*sizes), "fewer")


def test_functions_that_stand_for_more_nodes_run_here_and_reach_no_other_engine(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """An engine may put all of them into the place of their calls, and take hours."""
    monkeypatch.setattr(
        "tensorsplit.engines.outside.process_of", lambda _: pytest.fail("an engine saw it")
    )
    source, x = ir.to_proto(calls(*[127] * 129, 2)), np.array([2, -3], np.float32)
    np.testing.assert_array_equal(ts.run(source, {"x": x})["y0"], -x)
    with refused("TS502", "16384", "engine='tensorsplit'"):
        ts.run(source, {"x": x}, engine="onnx-reference")


def test_nodes_are_counted_by_all_that_calls_them() -> None:
    inner = function("Inner", "x", "y", [node("Neg", "x", "a"), node("Neg", "a", "y")])
    twice = [node("Inner", "x", "a", domain="custom"), node("Inner", "a", "y", domain="custom")]
    for count, is_taken in ((4096, True), (4097, False)):
        nodes = [node("Outer", "x", f"y{i}", domain="custom") for i in range(count)]
        outer = function("Outer", "x", "y", twice)
        whole = model(graph(nodes, [value("x")], ["y0"]), 18, [outer, inner], custom=1)
        with nullcontext() if is_taken else refused("TS502", "16384"):
            check_expanded(ir.from_proto(whole), "fewer")
