"""How often bodies run, and what their outputs are together, by the text of the standard.

Each body has a split that fits no data: what is known of how it is refused is whether it runs.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

import onnx
import onnx_ir as ir
import pytest

from tensorsplit.model.graph.facts import UNKNOWN, SequenceFact
from tensorsplit.model.infer.analysis import analyse

HEAD = """<ir_version: 8, opset_import: ["": 18]> g (float[N,5] x, int64 fed, bool maybe,
float[1] w, seq(float[5]) fed_list) => (y) <int64 few = {-1}, int64 zero = {0}, int64 one = {1},
int64 three = {3}, bool yes = {1}, bool no = {0}, int64[1] none = {0}, int64[1] two = {2},
int64[1] next = {1}> { s = Shape<end = 1>(x) n = Squeeze(s) longer = Add(s, next) """
WRONG = " a, b = Split(w, two) "


def analysed(text: str) -> tuple[bool | None, Any]:
    """Whether the wrong split of a model runs, and what is known of ``y``."""
    made = ir.from_proto(onnx.parser.parse_model(f"{HEAD} {text} }}"))
    facts = analyse(made)
    (refusal,) = facts.refusals
    return refusal.runs, facts.of(made.graph.outputs[0])


def runs_of(rounds: set[int]) -> bool | None:
    """Whether there is a round, from all numbers that there may be; None where it depends."""
    return True if min(rounds) > 0 else None if max(rounds) > 0 else False


MANY = 40
TRIPS: dict[str, set[int]] = {
    "few": {-1},
    "zero": {0},
    "one": {1},
    "three": {3},
    "n": {0, 1, 7},
    "fed": {-1, 0, 4},
    "": {MANY},
}
"""A trip count, and what it may be."""

STARTS: dict[str, set[bool]] = {"": {True}, "yes": {True}, "no": {False}, "maybe": {True, False}}

GOES_ON: dict[str, set[bool]] = {
    "Identity(c)": {True},
    "Constant<value = bool {1}>()": {True},
    "Constant<value = bool[1] {1}>()": {True},
    "Constant<value = bool {0}>()": {False},
    "Identity(maybe)": {True, False},
}
"""What a body calculates as its condition, and what that may be in a round."""


def rounds_of(trips: int, starts: bool, goes_on: set[bool]) -> Iterator[int]:
    """Numbers of rounds of a Loop, as the text has it: ``for (i = 0; i < trips && cond; ++i)``."""
    count, may_go = 0, starts
    while count < trips and may_go:
        count += 1
        if False in goes_on:
            yield count
        may_go = True in goes_on
    yield count


@pytest.mark.parametrize("trips", TRIPS)
def test_rounds_of_a_loop(trips: str) -> None:
    for starts, condition in product(STARTS, GOES_ON):
        text = f"y = Loop({trips}, {starts}) <body = b (int64 i, bool c) => (bool d, float[N,2] r)"
        text += (
            f"{{ d = {condition} {WRONG} both = Concat<axis = 0>(s, two) r = Expand(w, both) }}>"
        )
        runs, made = analysed(text)
        rounds = {
            count
            for limit, start in product(TRIPS[trips], STARTS[starts])
            for count in rounds_of(limit, start, GOES_ON[condition])
        }
        assert runs is runs_of(rounds), (starts, condition)
        count, *rest = made.shape
        is_told = (
            trips not in ("", "fed") and starts in ("", "yes") and GOES_ON[condition] == {True}
        )
        named = {"n": "N"}.get(trips, max(0, min(TRIPS[trips])))
        assert str(count) == str(named if is_told else None), (starts, condition)
        assert list(map(str, rest)) == ["N" if min(rounds) > 0 else "None", "2"], (
            starts,
            condition,
        )


ROWS: dict[str, tuple[str, Any, set[int]]] = {
    "nothing": ("none", 0, {0}),
    "one row": ("next", 1, {1}),
    "three rows": ("three1", 3, {3}),
    "named": ("s", "N", {0, 1, 5}),
    "one more": ("longer", "N + 1", {1, 2, 6}),
    "open": ("fed1", None, {0, 1, 4}),
}
"""The value that says how many rows there are, what is known of it, and what it may be."""


@pytest.mark.parametrize("rows", ROWS)
@pytest.mark.parametrize("axis", [0, 1])
def test_rounds_of_a_scan(rows: str, axis: int) -> None:
    """One for each row, which is refused early if a number says that there is one."""
    length, count, rounds = ROWS[rows]
    sides = f"{length}, five" if axis == 0 else f"five, {length}"
    text = f"""five = Constant<value_ints = [5]>() three1 = Constant<value_ints = [3]>()
        fed1 = Unsqueeze(fed, none) wide = Concat<axis = 0>({sides}) data = Expand(w, wide)
        last, y = Scan<num_scan_inputs = 1, scan_input_axes = [{axis}],
        body = b (float[A,B] u, float[5] r) => (float[A,B] v, t) {{ {WRONG} v = Neg(u)
        both = Concat<axis = 0>(s, two) t = Expand(w, both) }}> (x, data)"""
    runs, made = analysed(text)
    assert runs is (None if rows == "one more" else runs_of(rounds))
    named = "N" if min(rounds) > 0 else "None"
    assert list(map(str, made.shape)) == [str(count), named, "2"]


@pytest.mark.parametrize(
    ("condition", "taken"), [("yes", {1}), ("no", {0}), ("maybe", {0, 1}), ("known", {1})]
)
def test_the_branch_that_is_taken(condition: str, taken: set[int]) -> None:
    """Of two that may be taken, what is alike is known."""
    for wrong in (0, 1):
        branches = [
            f"{name} = t{k} () => (z{k}) {{ {WRONG if wrong == k else ''} z{k} = Expand(w, {to}) }}"
            for k, (name, to) in enumerate((("else_branch", "left"), ("then_branch", "right")))
        ]
        text = "left = Concat<axis = 0>(s, two) right = Concat<axis = 0>(s, next)"
        text += f" known = Less(zero, one) y = If({condition}) <{', '.join(branches)}>"
        runs, made = analysed(text)
        assert runs is runs_of({int(wrong == branch) for branch in taken})
        ends = {("2", "1")[branch] for branch in taken}
        assert list(map(str, made.shape)) == ["N", ends.pop() if len(ends) == 1 else "None"]


@pytest.mark.parametrize(
    ("sequence", "count", "counts"),
    [
        ("SequenceEmpty<dtype = 1>()", 0, {0}),
        ("SequenceConstruct(x)", 1, {1}),
        ("SequenceConstruct(x, w)", 2, {2}),
        ("SplitToSequence(x, one)", "N", {0, 1, 7}),
        ("Identity(fed_list)", None, {0, 1, 7}),
    ],
)
def test_the_body_of_a_map_runs_for_each_tensor(
    sequence: str, count: Any, counts: set[int]
) -> None:
    text = f"q = {sequence} y = SequenceMap<body = b (float[] u) => (float[N,2] v) {{ {WRONG}"
    text += " both = Concat<axis = 0>(s, two) v = Expand(w, both) }>(q)"
    runs, made = analysed(text)
    assert runs is runs_of(counts)
    assert isinstance(made, SequenceFact)
    assert (str(made.count), list(map(str, made.part or ()))) == (str(count), ["N", "2"])


@pytest.mark.parametrize(
    ("loop", "shape"),
    [
        ("Loop(three, ) <body = b (int64 i, bool c) => (bool d, r) {{ d = Identity(c) {} }}>", 3),
        ("Scan<num_scan_inputs = 1, body = b (float q) => (r) {{ {} }}> (row)", "N"),
    ],
)
def test_numbers_are_put_together_as_a_list(loop: str, shape: Any) -> None:
    text = f"zero1 = Constant<value_ints = [0]>() row = ReduceSum<keepdims = 0>(x, next) y = {loop}"
    _, made = analysed(text.format(f"{WRONG} r = Squeeze(w, zero1)"))
    assert (made.element_type, list(map(str, made.shape))) == (ir.DataType.FLOAT, [str(shape)])


@pytest.mark.parametrize(
    "body",
    [
        "Loop(three, ) <body = b () => (bool d, r) { d = Identity(yes) r = Identity(w) }>",
        "Loop(three, ) <body = b (int64 i) => (bool d, r) { d = Identity(yes) r = Identity(w) }>",
        "Loop(three, ) <body = b (int64 i, bool c) => () { d = Identity(c) }>",
        "Loop(three, )",
        "If(yes) <then_branch = t () => (r) { r = Identity(w) }>",
        "Scan<num_scan_inputs = 3, body = b (float[5] q) => (r) { r = Identity(q) }> (x)",
        "Scan<num_scan_inputs = 0, body = b (float[5] q) => (r) { r = Identity(q) }> (x)",
        "Scan<body = b (float[5] q) => (r) { r = Identity(q) }> (x)",
        "SequenceMap(w) <body = b (float[1] q) => (r) { r = Identity(q) }>",
    ],
)
def test_of_a_malformed_body_nothing_is_known(body: str) -> None:
    """Checks refuse it; other nodes are looked at all the same."""
    _, made = analysed(f"{WRONG} y = {body}")
    assert made == UNKNOWN
