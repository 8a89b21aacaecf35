"""The elements that operators make of shapes and constants, for all operands of a set.

What is told of an element has to hold for every dimension, and each test says what has to be told.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import permutations, product
from operator import eq, ge, gt, le, lt
from typing import Any

import numpy as np
import onnx_ir as ir
import pytest

from tensorsplit.model.graph.facts import Fact, Tensor, as_tensor
from tensorsplit.model.infer.node_outputs import infer_outputs
from tests.model.build import node

INT32, INT64, BOOL = ir.DataType.INT32, ir.DataType.INT64, ir.DataType.BOOL
FLOAT = ir.DataType.FLOAT

OPEN = None

ENTRIES: tuple[Any, ...] = (
    *(-7, -2, -1, 0, 1, 2, 3, 7, OPEN),
    *("N", "M", "N + 2", "2*N", "N - 3", "-N - 1", "-N", "N*M", "floor(N/2)"),
)
"""Numbers, one that is not known, and expressions of dimensions."""

NUMBERS = (-100, -9, -1, 0, 1, 2, 8, 100)
"""What stands for one that is not known."""

DIMENSIONS = [{"N": n, "M": m} for n, m in product((0, 1, 2, 3, 6, 7, 50), (0, 1, 5, 90))]


def made_of(
    op_type: str, inputs: Sequence[Fact | None], opset: int = 18, **attributes: Any
) -> Tensor:
    """What is inferred of the output of a node."""
    proto = node(op_type, "", "y", **attributes)
    held = list(map(ir.serde.deserialize_attribute, proto.attribute))
    ends = [None if each is None else ir.Value(name=f"i{at}") for at, each in enumerate(inputs)]
    made = ir.Node("", op_type, ends, held, outputs=[ir.Value(name="y")])
    (found,) = infer_outputs(made, [each or Tensor() for each in inputs], {"": opset})
    return as_tensor(found)


def listed(entries: Sequence[Any], kind: ir.DataType = INT64) -> Tensor:
    dims = tuple(ir.SymbolicDim(each) if isinstance(each, str) else each for each in entries)
    return Tensor(kind, (len(dims),), dims)


def numbers(entry: Any) -> list[Any]:
    """An element for all dimensions; all of some numbers for one that is not known."""
    if entry is OPEN:
        return [NUMBERS] * len(DIMENSIONS)
    if isinstance(entry, (int, float)):
        return [(entry,)] * len(DIMENSIONS)
    calls: dict[str, Any] = {"floor": math.floor, "Max": max, "Min": min}
    of_names = [{name: Fraction(dim) for name, dim in dims.items()} for dims in DIMENSIONS]
    return [(eval(str(entry), {"__builtins__": {}}, calls | names),) for names in of_names]


def outcomes(rule: Callable[..., Any], entries: Sequence[Any]) -> list[set[Any]]:
    """What a rule gives of elements, for all dimensions."""
    given = zip(*map(numbers, entries), strict=True)
    return [{rule(*each) for each in product(*items)} for items in given]


def check(made: Tensor, row: Sequence[Sequence[Any]], rule: Callable[..., Any]) -> list[bool]:
    """Check that what is told holds; return which elements are told."""
    values = (OPEN,) * len(row) if made.values is None else made.values
    for told, entries in zip(values, row, strict=True):
        if told is not OPEN:
            wanted = outcomes(rule, entries)
            assert [set(each) for each in numbers(told)] == wanted, (entries, told)
    return [told is not OPEN for told in values]


def divided(left: Any, right: Any) -> Any:
    """A quotient of integers, which is rounded towards 0; None of a division by 0."""
    return math.trunc(Fraction(left) / Fraction(right)) if right else None


def remainder(left: Any, right: Any) -> Any:
    return left % right if right else None


ARITHMETIC: dict[str, Callable[..., Any]] = {
    "Add": lambda left, right: left + right,
    "Max": max,
    "Min": min,
    "Mul": lambda left, right: left * right,
    "Sub": lambda left, right: left - right,
    "Sum": lambda left, right: left + right,
}
COMPARED: dict[str, Callable[[Any, Any], bool]] = {
    "Equal": eq,
    "Greater": gt,
    "GreaterOrEqual": ge,
    "Less": lt,
    "LessOrEqual": le,
}
EVERY_PAIR = list(product(ENTRIES, repeat=2))


def of_pairs(op_type: str, **attributes: Any) -> Tensor:
    left, right = zip(*EVERY_PAIR, strict=True)
    return made_of(op_type, [listed(left), listed(right)], **attributes)


@pytest.mark.parametrize("op_type", ARITHMETIC)
def test_integers_are_calculated(op_type: str) -> None:
    """All of them are told but those of what is not known, of which 0 times it is 0."""
    told = check(of_pairs(op_type), EVERY_PAIR, ARITHMETIC[op_type])
    has_zero = [op_type == "Mul" and 0 in pair for pair in EVERY_PAIR]
    is_known = [OPEN not in pair for pair in EVERY_PAIR]
    assert told == [a or b for a, b in zip(is_known, has_zero, strict=True)]


@pytest.mark.parametrize("op_type", COMPARED)
def test_integers_are_compared(op_type: str) -> None:
    """It is told where one is always the larger, or both are always the same.

    Of a quotient it is told only if the rest differs by enough.
    """
    told = check(of_pairs(op_type), EVERY_PAIR, COMPARED[op_type])
    for pair, is_told in zip(EVERY_PAIR, told, strict=True):
        signs = outcomes(lambda a, b: (a > b) - (a < b), pair)
        is_one = len(set().union(*signs)) == 1
        assert is_told == is_one or (is_one and "floor(N/2)" in pair), pair


@pytest.mark.parametrize(("op_type", "rule"), [("Div", divided), ("Mod", remainder)])
def test_integers_are_divided(op_type: str, rule: Callable[..., Any]) -> None:
    """By numbers: they are told where nothing is below 0; of numbers any quotient but by 0 is."""
    told = check(of_pairs(op_type), EVERY_PAIR, rule)
    for pair, is_told in zip(EVERY_PAIR, told, strict=True):
        left, right = pair
        is_number, is_divisor = isinstance(left, int), isinstance(right, int) and right != 0
        if op_type == "Mod":
            assert is_told == (is_number and is_divisor and left >= 0 and right > 0), pair
        elif is_number or not is_divisor:
            assert is_told == (is_number and is_divisor), pair
        else:
            lowest = min(min(each) for each in outcomes(lambda a, b: Fraction(a) / b, pair))
            assert is_told == (left is not OPEN and lowest >= 0), pair


def whole(entry: Any) -> Any:
    return math.trunc(entry)


SINGLE = [(each,) for each in ENTRIES]


@pytest.mark.parametrize(
    ("op_type", "rule"), [("Abs", abs), ("Neg", lambda entry: -entry), ("Identity", whole)]
)
def test_integers_alone(op_type: str, rule: Callable[..., Any]) -> None:
    """Each but what is not known, or is of either sign."""
    told = check(made_of(op_type, [listed(ENTRIES)]), SINGLE, rule)
    for entry, is_told in zip(ENTRIES, told, strict=True):
        is_open = entry is OPEN or (op_type == "Abs" and entry in ("N - 3", "-N", "-N - 1"))
        assert is_told is not is_open, entry


FLAGS = (0, 1, OPEN)


def as_flags(rule: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *given: int(rule(*map(bool, given)))


@pytest.mark.parametrize(
    ("op_type", "rule"),
    [("And", lambda a, b: a and b), ("Or", lambda a, b: a or b), ("Not", lambda a: not a)],
)
def test_flags(op_type: str, rule: Callable[..., Any]) -> None:
    """All are told that are the same whatever is not known."""
    rows = list(product(FLAGS, repeat=1 if op_type == "Not" else 2))
    made = made_of(op_type, [listed(side, BOOL) for side in zip(*rows, strict=True)])
    told = check(made, rows, as_flags(rule))
    assert told == [all(len(each) == 1 for each in outcomes(as_flags(rule), row)) for row in rows]


def test_a_choice() -> None:
    """It is told where the condition is, or both are the same."""
    rows = list(product(FLAGS, (3, "N", "2*N", OPEN), (3, "N", "N + N", OPEN)))
    condition, left, right = zip(*rows, strict=True)
    made = made_of("Where", [listed(condition, BOOL), listed(left), listed(right)])
    told = check(made, rows, lambda a, b, c: b if a else c)
    for row, is_told in zip(rows, told, strict=True):
        taken = row[1:] if row[0] is OPEN else row[1:2] if row[0] else row[2:]
        is_same = row[1:] in ((3, 3), ("N", "N"), ("2*N", "N + N"))
        assert is_told == (OPEN not in taken and (len(taken) == 1 or is_same)), row


REALS: tuple[Any, ...] = (
    *(-2.5, -2.0, -0.5, 0.0, 0.25, 0.5, 2.0, 2.5, 7.0, OPEN),
    *("N", "2*N", "N/2", "N/3", "-N/2"),
)


@pytest.mark.parametrize(
    ("op_type", "rule"),
    [
        *(("Floor", math.floor), ("Ceil", math.ceil), ("Cast", whole)),
        *(("Neg", lambda each: -each), ("Abs", abs)),
    ],
)
def test_floats_are_rounded(op_type: str, rule: Callable[..., Any]) -> None:
    """A quotient is only rounded, as it is not exact; below 0 a name's is not cut."""
    attributes = {"to": INT64} if op_type == "Cast" else {}
    told = check(
        made_of(op_type, [listed(REALS, FLOAT)], **attributes), [(r,) for r in REALS], rule
    )
    for entry, is_told in zip(REALS, told, strict=True):
        is_open = entry is OPEN or (op_type in ("Cast", "Abs") and entry == "-N/2")
        assert is_told is not (is_open or (op_type in ("Neg", "Abs") and entry == "N/3")), entry


def test_floats_are_calculated_exactly() -> None:
    """As fractions: all are told but those of what is not known, or of a third of a name."""
    simple = [each for each in REALS if each != "N/3"]
    rows = list(product(simple, repeat=2))
    left, right = zip(*rows, strict=True)
    for op_type, rule in ARITHMETIC.items():
        made = made_of(op_type, [listed(left, FLOAT), listed(right, FLOAT)])
        told = check(made, rows, rule)
        for pair, is_told in zip(rows, told, strict=True):
            are_numbers = all(isinstance(each, float) for each in pair)
            if are_numbers or OPEN in pair:
                has_zero = op_type == "Mul" and 0.0 in pair
                assert is_told == (are_numbers or has_zero), (op_type, pair)


def test_elements_of_a_list_are_taken_together() -> None:
    rules: dict[str, Callable[..., Any]] = {
        "ReduceMax": lambda *each: max(each),
        "ReduceMin": lambda *each: min(each),
        "ReduceProd": lambda *each: math.prod(each),
        "ReduceSum": lambda *each: sum(each),
    }
    for (op_type, rule), row in product(rules.items(), [(5,), (2, 3), (7, "N", 2), ("N", "M", 3)]):
        assert check(made_of(op_type, [listed(row)]), [row], rule) == [True]
        assert check(made_of(op_type, [listed((*row, OPEN))]), [(*row, OPEN)], rule) == [False]
    assert made_of("ReduceSum", [listed(())]).values == (0,)
    assert made_of("ReduceProd", [listed(())]).values == (1,)


def test_sizes_are_products() -> None:
    for shape in ((5,), (2, 3), ("N", 2), ("N", "M", 3), (0, "N")):
        dims = listed(shape).values
        made = made_of("Size", [Tensor(FLOAT, dims)])
        assert check(made, [shape], lambda *each: math.prod(each)) == [True]
    assert made_of("Size", [Tensor(FLOAT, (2, OPEN))]).values is None


@pytest.mark.parametrize("start", [None, -5, -2, -1, 0, 1, 3])
def test_shapes_are_cut(start: int | None) -> None:
    dims = (2, "N", 5, "M")
    for end in (None, -5, -1, 0, 2, 3, 9):
        wanted = dims[start:end]
        cut = {name: at for name, at in (("start", start), ("end", end)) if at is not None}
        made = made_of("Shape", [Tensor(FLOAT, listed(dims).values)], **cut)
        assert made.shape == (len(wanted),)
        assert list(map(str, made.values or ())) == list(map(str, wanted))


NO_LIMIT = "none"


def test_limits() -> None:
    """An element between two limits, either of which may be left out; the upper one goes first."""
    for low, high in product((-1, 2, 5, "M", NO_LIMIT), repeat=2):
        limits = [
            None if each is NO_LIMIT else replace(listed([each]), shape=()) for each in (low, high)
        ]
        given = [each for each in (low, high) if each is not NO_LIMIT]

        def clipped(entry: Any, *ends: Any, low: Any = low, high: Any = high) -> Any:
            raised = entry if low is NO_LIMIT else max(entry, ends[0])
            return raised if high is NO_LIMIT else min(raised, ends[-1])

        rows = [(entry, *given) for entry in ENTRIES]
        told = check(made_of("Clip", [listed(ENTRIES), *limits]), rows, clipped)
        assert told == [entry is not OPEN for entry in ENTRIES]
    assert made_of("Clip", [listed((5,)), listed((7, 8)), None]).values is None  # which is no limit


LABELS = ("A", "B", "C", "D", "E", "F")


def moved(made: Tensor) -> Any:
    """The labels of a list or table."""
    assert made.values is not None
    return np.array([str(each) for each in made.values], object).reshape(made.shape)


def table(*shape: int) -> tuple[Tensor, Any]:
    """A table of labels as a fact, and as an array."""
    labels = LABELS[: math.prod(shape)]
    fact = Tensor(INT64, shape, listed(labels).values)
    return fact, np.array(labels, object).reshape(shape)


@pytest.mark.parametrize("shape", [(6,), (2, 3), (3, 2), (1, 4)])
def test_labels_are_moved(shape: tuple[int, ...]) -> None:
    fact, array = table(*shape)
    for axis, start, end, step in product(
        range(-len(shape), len(shape)), (-9, -2, 0, 1, 3), (-9, -1, 0, 2, 9), (-2, -1, 1, 2)
    ):
        bounds = [listed([each]) for each in (start, end, axis, step)]
        # before the start a Slice that goes backwards ends before the first element
        dim = shape[axis]
        places = slice(start, end, step).indices(dim)
        if step < 0 and start < -dim:
            places = (0, places[1], step)
        wanted = np.take(array, list(range(*places)), axis)
        made = made_of("Slice", [fact, *bounds])
        assert made.shape == wanted.shape
        assert wanted.size == 0 or (moved(made) == wanted).all(), (axis, start, end, step)
    for target in ((6,), (2, 3), (3, 2), (-1,), (1, -1), (-1, 1), (4,)):
        if -1 in target or math.prod(target) == array.size:
            made = made_of("Reshape", [fact, listed(target)])
            assert (moved(made) == array.reshape(target)).all()
    for perm in permutations(range(len(shape))):
        made = made_of("Transpose", [fact], perm=perm)
        assert (moved(made) == array.transpose(perm)).all()
    assert (moved(made_of("Transpose", [fact])) == array.transpose()).all()


def test_lists_are_moved() -> None:
    fact, array = table(4)
    for places in ([0], [3, -1], [-4, 1, 1], [OPEN, 2], [-5, 0], [4, 0]):
        known = [p if p is not None and -4 <= p < 4 else None for p in places]
        taken = ["None" if p is None else array[p] for p in known]
        made = made_of("Gather", [fact, listed(places)])
        assert list(moved(made)) == taken
    for before, after in product((-3, -1, 0, 2), (-2, 0, 1)):
        pads = listed([before, after])
        kept = array[max(-before, 0) : 4 - max(-after, 0)]
        for value, label in ((None, "0"), (Tensor(INT64, (), (7,)), "7")):
            padded: Any = np.pad(kept, [(max(before, 0), max(after, 0))], constant_values=label)
            made = made_of("Pad", [fact, pads] if value is None else [fact, pads, value])
            assert made.shape == padded.shape
            assert list(moved(made)) == list(padded) if padded.size else made.values in ((), None)
    for count in (1, 2, 3):
        made = made_of("Tile", [fact, listed([count])])
        assert list(moved(made)) == list(np.tile(array, count))
        one = made_of("Expand", [table(1)[0], listed([count])])
        assert list(moved(one)) == ["A"] * count
        alone = made_of("Expand", [Tensor(INT64, (), listed("A").values), listed([count])])
        assert list(moved(alone)) == ["A"] * count
    for lists in (["AB", "C"], ["A", "BC", "DEF"], ["ABC"]):
        made = made_of("Concat", [listed(each) for each in lists], axis=0)
        assert "".join(moved(made)) == "".join(lists)
