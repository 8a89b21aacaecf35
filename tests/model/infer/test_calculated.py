"""Lengths and bounds that a model calculates, recognized by what they are for many dimensions."""

from __future__ import annotations

from typing import Any

import onnx
import onnx_ir as ir
import pytest

from tensorsplit.core.rules import equal, explicit
from tensorsplit.model.infer.analysis import analyse
from tensorsplit.model.infer.calculated import always_fit, are_in_order, rule_of, rule_of_lengths
from tensorsplit.model.infer.length_program import program_of

HEAD = """<ir_version: 8, opset_import: ["": 18, "c": 1]> g (DATA x) => (y) <int64[1] zero = {0},
int64[1] one = {1}, int64[1] two = {2}, int64[1] four = {4}, int64[2] pair = {2, 2},
int64[2] from_0 = {0, 0}> { n = Shape(x) """


def values(text: str, *names: str, data: str = "float[N]") -> tuple[Any, ...]:
    """What is known of a model that calculates with N, its data, and some values."""
    head = HEAD.replace("DATA", data)
    made = ir.from_proto(onnx.parser.parse_model(f"{head} {text} y = Neg(x) }}"))
    made_here = (value for node in made.graph for value in node.outputs)
    found = {value.name: value for value in (*made_here, *made.graph.initializers.values())}
    return analyse(made), made.graph.inputs[0], tuple(found[name] for name in names)


STOPPING = """half = Div(n, two) halves = Concat<axis = 0>(half, half) ones = Cast<to = 7>(even)
size = Mul(ones, two) all = Slice(halves, zero, size) l = Reshape(all, two)"""
"""Halves, but for data that is not "even": there the model stops, as nothing has two elements."""

FOUR = "l = Concat<axis = 0>(rest, four)"


@pytest.mark.parametrize("data", ["float[N]", "float[?]", "int64[N]"])
@pytest.mark.parametrize(
    ("text", "count", "fits"),
    [
        ("half = Div(n, two) rest = Sub(n, half) l = Concat<axis = 0>(half, rest)", 2, True),
        ("half = Div(n, two) rest = Sub(n, half) l = Concat<axis = 0>(half, rest)", 3, False),
        (f"rest = Sub(n, four) {FOUR}", 2, False),  # below 0 for short data
        (f"half = Div(n, zero) rest = Sub(half, half) {FOUR}", 2, False),  # is not known
        ("l = NonZero(x)", 2, False),  # nor are these
        (f"d = Sub(n, four) rest = Max(d, zero) {FOUR}", 2, False),
        ("s = Min(n, four) rest = Sub(n, s) l = Concat<axis = 0>(s, rest)", 2, True),
    ],
)
def test_lengths_that_always_fit(text: str, count: int, fits: bool, data: str) -> None:
    facts, whole, (lengths,) = values(text, "l", data=data)
    assert always_fit(lengths, whole, 0, count, facts) is fits


@pytest.mark.parametrize(
    ("text", "count", "rule"),
    [
        ("half = Div(n, two) l = Concat<axis = 0>(half, half)", 2, (equal, (2,))),
        ("l = Identity(pair)", 2, (explicit, (2, 2))),
        # Engines that go on where there is no such element give two lengths of 0 to no data
        (
            "at = Sub(n, four) both = Expand(at, two) l = Gather(pair, both)",
            2,
            (explicit, (2, 2)),
        ),
        ("rest = Sub(n, two) l = Concat<axis = 0>(two, rest)", 2, None),
        ("half = c.Div(n, two) l = Concat<axis = 0>(half, half)", 2, None),  # not ONNX's own
        (
            f"h = Div(n, two) twice = Mul(h, two) even = Equal(twice, n) {STOPPING}",
            2,
            (equal, (2,)),
        ),
        (f"even = Less(n, four) {STOPPING}", 2, None),  # it stops at longer data, even or not
    ],
)
def test_the_rule_by_which_lengths_are_calculated(text: str, count: int, rule: Any) -> None:
    facts, data, (lengths,) = values(text, "l")
    assert rule_of_lengths(lengths, data, 0, count, facts) == rule


TABLE = """<ir_version: 8, opset_import: ["": 18]> g (float[M,N] x, float[N,K] w, float[M] u) => (y)
<int64[1] two = {2}, int64[1] zero = {0}> { s = Shape(x) far = Shape<start = 1>(x)
near = Shape<end = 1>(x) like = Shape<end = 1>(w) other = Shape<start = 1>(w) same = Shape(u)
halves = Div(COUNTED, two) rest = Sub(COUNTED, halves) l = Concat<axis = 0>(halves, rest)
y = Neg(x) }"""


@pytest.mark.parametrize(
    ("counted", "axis"), [("far", 1), ("near", 0), ("like", 1), ("other", None), ("same", 0)]
)
def test_lengths_of_one_axis_fit_that_axis(counted: str, axis: int | None) -> None:
    """Which is measured by its name, too, of whatever tensor that is the dimension."""
    made = ir.from_proto(onnx.parser.parse_model(TABLE.replace("COUNTED", counted)))
    facts, data = analyse(made), made.graph.inputs[0]
    (lengths,) = (each for node in made.graph for each in node.outputs if each.name == "l")
    for split in (0, 1, -1, -2):
        assert always_fit(lengths, data, split, 2, facts) is (split % 2 == axis), split


@pytest.mark.parametrize(
    ("bounds", "rule"),
    [
        ("zero n", (equal, (1,))),
        ("zero half half n", None),  # the parts of an odd dimension differ
        ("zero four", None),  # which stops nowhere, where the dimension is not 4
        ("zero two two four", None),
        ("one n", None),
        ("zero zero zero n", None),
        ("zero half zero half", None),  # each half twice
    ],
)
def test_the_rule_by_which_bounds_are_calculated(bounds: str, rule: Any) -> None:
    check_rule(bounds, rule, "float[N]")


@pytest.mark.parametrize(
    ("bounds", "rule"),
    [
        ("zero two two four", (equal, (2,))),
        ("zero one one four", (explicit, (1, 3))),
        ("zero one one two two four", (explicit, (1, 1, 2))),
        ("zero two one four", None),  # the second element twice
        ("zero one two four", None),  # and not at all
        ("one two two four", None),
        ("zero one one two", None),
    ],
)
def test_the_rule_of_bounds_in_four_elements(bounds: str, rule: Any) -> None:
    check_rule(bounds, rule, "float[4]")


def check_rule(bounds: str, rule: Any, data_type: str) -> None:
    facts, data, ends = values("half = Div(n, two)", *bounds.split(), data=data_type)
    program = program_of(ends, data, 0, facts)
    assert program is not None
    assert rule_of(program, len(ends) // 2) == rule


@pytest.mark.parametrize(
    ("start", "end", "is_in_order"),
    [
        ("zero", "four", False),  # beyond short data
        ("zero", "least", True),
        ("least", "n", True),
        ("n", "least", False),
        ("below", "n", False),
        ("from_0", "n", False),  # two numbers
    ],
)
def test_bounds_that_are_in_order_within_the_data(start: str, end: str, is_in_order: bool) -> None:
    text = "least = Min(n, four) below = Sub(least, four)"
    facts, data, bounds = values(text, start, end)
    program = program_of(bounds, data, 0, facts)
    assert program is not None
    assert are_in_order(program) is is_in_order


GUARDED = """<ir_version: 8, opset_import: ["": 18]> g (float[DIM] x, int64[COUNT] l) => (y)
<int64[1] zero = {0}, int64[1] one = {1}, int64[1] count = {COUNT}, int64[1] wide = {4294967296},
int64[1] huge = {4611686018427387904}>
{ n = Shape(x) s = ReduceSum(l, zero) fits = Equal(s, n) less = Less(l, zero)
negative = Cast<to = 7>(less) below = ReduceSum(negative, zero) natural = Equal(below, zero)
more = Greater(l, n) larger = Cast<to = 7>(more) above = ReduceSum(larger, zero)
within = Equal(above, zero) much = Greater(l, huge) very = Cast<to = 7>(much)
far = ReduceSum(very, zero) moderate = Equal(far, zero)
inside = And(natural, within) right = And(inside, fits)
CONDITION ones = Cast<to = 7>(ok) size = Mul(ones, count) all = Slice(l, zero, size)
some = Reshape(all, count) sure = Where(ok, some, l) y = Neg(x) }"""
"""A guard that stops the model unless `ok` is true, which `right` is where the lengths fit."""

TAKEN_WRONGLY = [
    ("t = And(inside, inside) u = Equal(n, s) ok = And(u, t)", 1 << 60),  # nothing at all
    ("ok = Or(fits, natural)", 1),
    ("ok = And(within, fits)", 3),  # -1 beside lengths that are not too large
    ("ok = Identity(inside)", 1),
    ("t = LessOrEqual(s, n) ok = And(inside, t)", 1),
    ("t = GreaterOrEqual(s, n) ok = And(inside, t)", 2),
    ("a = Add(s, one) t = Equal(a, n) u = Or(t, fits) ok = And(inside, u)", 1),
    ("a = Sub(s, one) t = Equal(a, n) u = Or(t, fits) ok = And(natural, u)", 1),
    ("a = Add(s, one) t = Equal(a, zero) ok = Or(right, t)", 1),  # a sum of -1
    ("t = Equal(s, zero) ok = Or(right, t)", 1),  # nothing of what there is
    ("q = Div(s, wide) p = Mul(q, wide) r = Sub(s, p) t = Equal(r, n) ok = And(natural, t)", 1),
    ("ok = And(natural, fits)", 3),  # twice 2^63 - 1, and the rest
    ("least = And(natural, fits) ok = And(moderate, least)", 5),  # four times 2^62, and the rest
]
"""Conditions, each with the fewest parts at which some lengths that do not fit meet it."""


def is_guarded(condition: str, dim: object, count: int, given: object = None) -> bool:
    """Whether lengths that are given only under a condition are found always to fit."""
    text = GUARDED.replace("CONDITION", condition).replace("DIM", str(dim))
    text = text.replace("int64[COUNT]", f"int64[{given or count}]").replace("COUNT", str(count))
    made = ir.from_proto(onnx.parser.parse_model(text))
    (sure,) = (node.outputs[0] for node in made.graph if node.outputs[0].name == "sure")
    return always_fit(sure, made.graph.inputs[0], 0, count, analyse(made))


@pytest.mark.parametrize("dim", ["N", 12, 5])
@pytest.mark.parametrize("count", [1, 2, 3, 4, 5, 7])
@pytest.mark.parametrize(("condition", "fewest"), TAKEN_WRONGLY)
def test_guards_that_take_some_lengths_that_do_not_fit(
    condition: str, fewest: int, count: int, dim: object
) -> None:
    assert is_guarded(condition, dim, count) is (count < fewest)


@pytest.mark.parametrize("dim", ["N", 12])
def test_a_guard_of_how_many_lengths_there_are(dim: object) -> None:
    """A Slice of more elements than there are takes those that there are."""
    counted = "k = Shape(l) all_there = Equal(k, count)"
    assert is_guarded(f"{counted} ok = And(right, all_there)", dim, 3, "K")
    assert not is_guarded(f"{counted} ok = Identity(right)", dim, 3, "K")
