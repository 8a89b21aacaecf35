"""What nothing reads, of types that the target does not have."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest

import tensorsplit as ts
from tests.model.build import known
from tests.refusals import refused

SPLIT = "SplitToSequence(x, two)"
OTHERWISE = f"else_branch = e () => (seq(float[2]) q) {{ q = {SPLIT} }}"
CHOSEN = f"""s = If(c) <then_branch = t () => (seq(float[2]) p) {{ p = {SPLIT} }}, {OTHERWISE}>"""
ROWS = """Loop(two, c, x) <body = b (int64 i, bool g, float[4] u) =>
    (bool h, float[4] v, bfloat16[4] r) { h = Identity(g)  v = Neg(u)  r = Cast<to=16>(u) }>"""
WITH_SPLITS: dict[str, str] = {
    "an If": CHOSEN,
    "an Identity in a branch": f"""s = If(c) <then_branch = t () => (seq(float[2]) p)
        {{ o = {SPLIT}  p = Identity(o) }}, {OTHERWISE}>""",
    "an Identity of what is around": f"""o = {SPLIT}  s = If(c) <
        then_branch = t () => (seq(float[2]) p) {{ p = Identity(o) }},
        else_branch = e () => (seq(float[2]) q) {{ q = Identity(o) }}>""",
    "an Identity after it": f"{CHOSEN}  r = Identity(s)  u = Identity(r)",
    "an If after it": f"""{CHOSEN}  z = If(c) <
        then_branch = w () => (seq(float[2]) a) {{ a = Identity(s) }},
        else_branch = f () => (seq(float[2]) b) {{ b = Identity(s) }}>""",
    "an If in it": f"""z = If(c) <then_branch = w () => (seq(float[2]) a)
        {{ {CHOSEN}  a = Identity(s) }},
        else_branch = f () => (seq(float[2]) b) {{ b = {SPLIT} }}>""",
    "an If in a Loop": f"""z = Loop(two, c, x) <body = b (int64 i, bool g, float[4] u) =>
        (bool h, float[4] v) {{ h = Identity(g)  v = Neg(u)  {CHOSEN} }}>""",
    "no If": f"s = {SPLIT}  r = Identity(s)",
}
"""Splits, which may have to refuse what they are fed, stay: these models go to opset 11."""

WITHOUT: dict[str, str] = {
    "sequences": """o = SequenceEmpty()  s = If(c) <
        then_branch = t () => (seq(float[4]) p) { p = SequenceInsert(o, x) },
        else_branch = e () => (seq(float[4]) q) { q = SequenceConstruct(x, x) }>""",
    "a position that is known": """o = SequenceConstruct(x, x)  at = Constant<value_int = 1>()
        s = SequenceAt(o, at)""",
    "optionals": """s = If(c) <
        then_branch = t () => (optional(float[4]) p) { o = Optional(x)  p = Identity(o) },
        else_branch = e () => (optional(float[4]) q) { q = Optional(x) }>""",
    "an optional": "s = Optional(x)  r = OptionalHasElement(s)",
    "bfloat16": """s = If(c) <then_branch = t () => (bfloat16[4] p) { p = Cast<to=16>(x) },
        else_branch = e () => (bfloat16[4] q) { q = Cast<to=16>(x) }>  r = Cast<to=16>(x)""",
    "rows of a Loop": f"s, z = {ROWS}  w = Identity(z)",
}

CASES = [
    *((name, nodes, target) for name, nodes in WITH_SPLITS.items() for target in (11, 12, 13)),
    *((name, nodes, target) for name, nodes in WITHOUT.items() for target in (9, 11, 12, 13, 15)),
]


def parsed(nodes: str, *, is_function: bool) -> Any:
    """A model of the nodes, or of a function of them, which gives the negative of x."""
    inside = f"two = Constant<value_int = 2>()  y = Neg(x)  {nodes}"
    called, function = (inside, "")
    if is_function:
        called = "y = local.F(x, c)"
        function = f'<domain: "local", opset_import: ["": 16]> F (x, c) => (y) {{ {inside} }}'
    head = '<ir_version: 8, opset_import: ["": 16, "local": 1]>'
    ends = "(float[4] x, bool c) => (float[4] y)"
    return onnx.parser.parse_model(f"{head} g {ends} {{ {called} }} {function}")


@pytest.mark.parametrize("is_function", [False, True])
@pytest.mark.parametrize(("name", "nodes", "target"), CASES)
def test_what_nothing_reads_is_no_hindrance(
    name: str, nodes: str, target: int, is_function: bool, rng: np.random.Generator
) -> None:
    model = parsed(nodes, is_function=is_function)
    made = ts.convert(model, opset=target)
    onnx.checker.check_model(made, full_check=not is_function)
    x = rng.normal(size=4).astype(np.float32)
    for flag in (True, False):
        got = ts.run(made, {"x": x, "c": np.array(flag)})
        np.testing.assert_array_equal(got["y"], -x, err_msg=name)


@pytest.mark.parametrize("target", known(10, 12))
def test_what_a_loop_carries_is_read(target: int) -> None:
    nodes = """o = SequenceEmpty()
        s = Loop(two, c, o) <body = b (int64 i, bool g, seq(float[4]) u) =>
            (bool h, seq(float[4]) v) { h = Identity(g)  v = SequenceInsert(u, x) }>"""
    with refused("TS512"):
        ts.convert(parsed(nodes, is_function=False), opset=target)


def test_a_position_that_may_be_wrong_is_kept() -> None:
    """What takes a tensor out of a sequence refuses an index out of range (D19)."""
    head = '<ir_version: 8, opset_import: ["": 16]> g (float[4] x, int64 i) => (float[4] y)'
    nodes = "{ o = SequenceConstruct(x, x)  s = SequenceAt(o, i)  y = Neg(x) }"
    with refused("TS512", "SequenceConstruct"):
        ts.convert(onnx.parser.parse_model(f"{head} {nodes}"), opset=10)


def test_what_training_reads_is_kept() -> None:
    """The training's nodes read values of the graph by their names."""
    model = parsed(CHOSEN, is_function=False)
    training = model.training_info.add().algorithm
    training.node.append(onnx.helper.make_node("SequenceLength", ["s"], ["count"]))
    training.output.append(onnx.ValueInfoProto(name="count"))
    with refused("TS512", "If", "seq(tensor(float))"):
        ts.convert(model, opset=12)
