"""The order of nodes: models that are in a wrong one, for the tools and for engines."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import pytest

import tensorsplit as ts
from tensorsplit.model.graph.ordering import is_in_order, put_in_order
from tensorsplit.model.reading import read_model
from tests.model.programs import shuffled
from tests.oracle import same
from tests.refusals import refused

BRANCH = "else_branch = e () => (float[A] f) { f = Neg(x) }"
LATE: dict[str, str] = {
    "graph": "b, c = Split<num_outputs=2>(a)  y = Neg(b)  a = Abs(x)",
    "branch": f"""y = If(i) <then_branch = t () => (float[A] o)
        {{ o = Neg(b)  b, c = Split<num_outputs=2>(a)  a = Abs(x) }}, {BRANCH}>""",
    "branch that reads": f"""y = If(i) <then_branch = t () => (float[A] o)
        {{ o = Neg(b) }}, {BRANCH}>  b, c = Split<num_outputs=2>(a)  a = Abs(x)""",
    "branch that gives": f"""y = Neg(z)
        z = If(i) <then_branch = t () => (float[A] b) {{}}, {BRANCH}>
        b, c = Split<num_outputs=2>(a)  a = Abs(x)""",
    "branch in a branch": f"""y = If(i) <then_branch = t () => (float[A] o) {{
            o = If(i) <then_branch = u () => (float[A] p) {{ p = Neg(b) }},
                else_branch = v () => (float[A] q) {{ q = Neg(x) }}>
            b, c = Split<num_outputs=2>(a)  a = Abs(x) }}, {BRANCH}>""",
    "loop": """y = Loop(n, i, x) <body = l (int64 k, bool g, float[C] s) => (bool h, float[D] r)
        { r = Neg(b)  b, c = Split<num_outputs=2>(a)  a = Abs(s)  h = Identity(g) }>
        n = Constant<value_int = 1>()""",
    "scan": """y = Scan<num_scan_inputs = 1, body = l (float s) => (float r)
        { r = Neg(b)  b = Abs(s) }>(d)  d, c = Split<num_outputs=2>(x)""",
    "function": "y = local.F(x)",
}
"""Nodes in a wrong order; x is split, and what is left of it becomes y."""
FUNCTION = """<domain: "local", opset_import: ["" : 18]> F (p) => (q)
    { q = Neg(b)  b, c = Split<num_outputs=2>(a)  a = Abs(p) }"""


def parsed(nodes: str) -> Any:
    """A model of these nodes."""
    head = '<ir_version: 9, opset_import: ["" : 18, "local" : 1]>'
    ends = "(float[N] x, bool i) => (float[M] y)"
    return onnx.parser.parse_model(f"{head} g {ends} {{ {nodes} }} {FUNCTION}")


TOOLS: dict[str, Any] = {
    "run": lambda model: model,
    "infer_shapes": ts.infer_shapes,
    "convert": lambda model: ts.convert(model, opset=13),
    "convert to the same": lambda model: ts.convert(model, opset=18),
    "lower": lambda model: ts.lower(model, target="portable"),
    "lower for onnxruntime": lambda model: ts.lower(model, target="onnxruntime"),
}


@pytest.fixture
def feeds(rng: np.random.Generator) -> dict[str, Any]:
    return {"x": rng.normal(size=6).astype(np.float32), "i": np.array(True)}


def assert_right(got: Any, feeds: dict[str, Any]) -> None:
    """The output is what the models of `LATE` give."""
    assert same(got, -abs(feeds["x"][:3]))


@pytest.mark.parametrize("tool", TOOLS)
@pytest.mark.parametrize("place", LATE)
def test_a_tool_puts_nodes_in_order(place: str, tool: str, feeds: dict[str, Any]) -> None:
    model = parsed(LATE[place])
    before = model.SerializeToString()
    made = TOOLS[tool](model)
    assert model.SerializeToString() == before
    assert_right(ts.run(made, feeds)["y"], feeds)
    if tool != "run":
        assert is_in_order(read_model(made).as_read)
        assert [each for each in ts.check(made) if each.severity == "error"] == []


@pytest.mark.parametrize("place", LATE)
def test_what_comes_in_as_onnx_ir_comes_back_so(place: str) -> None:
    model = ir.from_proto(parsed(LATE[place]))
    made = ts.lower(model, target="onnxruntime")
    assert (is_in_order(made), is_in_order(model)) == (True, False)


@pytest.mark.engine
@pytest.mark.parametrize("engine", ["onnxruntime", "openvino"])
@pytest.mark.parametrize("place", LATE)
def test_engines_run_what_was_lowered(place: str, engine: Any, feeds: dict[str, Any]) -> None:
    pytest.importorskip(engine)
    with ts.session(parsed(LATE[place]), engine=engine, lower=True) as session:
        assert_right(session.run(feeds)["y"], feeds)


@pytest.mark.engine
@pytest.mark.parametrize("engine", ["onnxruntime", "openvino"])
def test_engines_sort_the_main_graph(engine: Any, feeds: dict[str, Any]) -> None:
    """onnxruntime 1.32 and OpenVINO 2026.4 do, for what bodies read, too."""
    pytest.importorskip(engine)
    for place in ("graph", "branch that reads"):
        assert_right(ts.run(parsed(LATE[place]), feeds, engine=engine)["y"], feeds)


@pytest.mark.engine
@pytest.mark.parametrize("engine", ["onnxruntime", "openvino"])
@pytest.mark.parametrize("place", ["branch", "branch in a branch", "loop", "scan", "function"])
def test_engines_sort_neither_bodies_nor_functions(
    place: str, engine: Any, feeds: dict[str, Any]
) -> None:
    pytest.importorskip(engine)
    with refused("TS603"):
        ts.run(parsed(LATE[place]), feeds, engine=engine)


def test_nodes_keep_their_order_where_they_can() -> None:
    """What is produced late comes before its first reader, and nothing else moves."""
    model = parsed("a = Abs(x)  y = Add(d, b)  e = Neg(a)  b = Neg(x)  d = Abs(a)  f = Neg(e)")
    read = read_model(model)
    assert [node.outputs[0].name for node in read.model.graph] == ["a", "b", "d", "y", "e", "f"]


@pytest.mark.parametrize("place", LATE)
def test_a_model_in_order_stays_as_it_is(place: str) -> None:
    ordered = ts.lower(parsed(LATE[place]), target="onnxruntime")
    assert ts.lower(ordered, target="onnxruntime") == ordered
    read = read_model(ordered)
    assert not read.was_sorted
    before = onnx.printer.to_text(ir.to_proto(read.as_read))
    assert put_in_order(read.as_read)
    assert onnx.printer.to_text(ir.to_proto(read.as_read)) == before


@pytest.mark.parametrize("seed", range(6))
def test_any_order_will_do(seed: int, feeds: dict[str, Any]) -> None:
    for nodes in LATE.values():
        model = shuffled(parsed(nodes), seed)
        assert_right(ts.run(model, feeds)["y"], feeds)


def test_nodes_are_called_by_their_places() -> None:
    wrong = "d, e = Split<num_outputs=2, axis=3>(b)"
    model = parsed(f"b, c = Split<num_outputs=2>(a)  y = Neg(d)  {wrong}  a = Abs(x)")
    assert ("graph/Split[2]", "error") in [
        (found.node, found.severity) for found in ts.check(model) if found.code != "TS502"
    ]
    with refused("TS203", "graph/Split[2]"):
        ts.run(model, {"x": np.ones(4, np.float32), "i": np.array(True)})


WITHOUT_ORDER = {
    "cycle": (
        "c = Neg(b)  b = Abs(x)  y = Add(x, d)  d = Neg(y)",
        "its input 'd' is made of what the node itself makes",
    ),
    "cycle through a body": (
        f"y = If(i) <then_branch = t () => (float[A] o) {{ o = Neg(b) }}, {BRANCH}>  b = Abs(y)",
        "its input 'b' is made of what the node itself makes",
    ),
    "name of a body and of what is around it": (
        f"""a = Neg(x)  y = If(i) <then_branch = t () => (float[A] o)
            {{ o = Neg(a)  a = Abs(x) }}, {BRANCH}>""",
        "its input 'a' is read early, and a graph around has a value of the name",
    ),
    "name of an input": (
        """y = Loop(n, i, x) <body = l (int64 k, bool g, float[C] a) => (bool h, float[D] r)
            { z = If(g) <then_branch = t () => (float[E] o) { o = Neg(a)  a = Abs(x) },
                else_branch = e () => (float[F] f) { f = Neg(x) }>
            r = Neg(z)  h = Identity(g) }>  n = Constant<value_int = 1>()""",
        "its input 'a' is read early, and a graph around has a value of the name",
    ),
    "nothing": ("y = Neg(b)  b = Neg(late)", "nothing produces its input 'late'"),
}


@pytest.mark.parametrize("tool", TOOLS)
@pytest.mark.parametrize("case", WITHOUT_ORDER)
def test_what_has_no_order_is_refused(case: str, tool: str, feeds: dict[str, Any]) -> None:
    nodes, problem = WITHOUT_ORDER[case]
    with refused("TS502", problem):
        ts.run(TOOLS[tool](parsed(nodes)), feeds)
