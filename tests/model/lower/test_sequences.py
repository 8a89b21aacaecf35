"""Sequences of every kind through every operator on them, compared with lists of NumPy arrays."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeAlias

import numpy as np
import onnx
import pytest

import tensorsplit as ts

Array: TypeAlias = "np.ndarray[Any, np.dtype[Any]]"
Tensors: TypeAlias = "list[Array]"
Change: TypeAlias = Callable[[Tensors, Array], Tensors]

HEAD = """<ir_version: 8, opset_import: ["": 18]> g (float[A,B] x, float[C,B] w, float[B] v,
int64 k, int64[n] l, int64 p) => (OUTPUTS) <int64 first = {0}, int64 last = {-1},
int64 two = {2}, int64[2] pair = {1, 3}> { """

X, W, V = (np.random.default_rng(2).random(shape, np.float32) for shape in ((4, 3), (2, 3), (3,)))
FEEDS: dict[str, Any] = {"x": X, "w": W, "v": V}
FEEDS |= {"k": np.array(3), "l": np.array([2, 0, 2]), "p": np.array(1)}

MADE: dict[str, tuple[str, Tensors]] = {
    "chunks": ("SplitToSequence(x, k)", [X[:3], X[3:]]),
    "chunks of a known length": ("SplitToSequence(x, two)", [X[:2], X[2:]]),
    "columns": ("SplitToSequence<axis = 1>(x, two)", [X[:, :2], X[:, 2:]]),
    "fed lengths": ("SplitToSequence(x, l)", [X[:2], X[2:2], X[2:]]),
    "known lengths": ("SplitToSequence(x, pair)", [X[:1], X[1:]]),
    "rows": ("SplitToSequence<keepdims = 0>(x)", [*X]),
    "columns without their axis": ("SplitToSequence<axis = -1, keepdims = 0>(x)", [*X.T]),
    "rows that stay tables": ("SplitToSequence(x)", [each[None] for each in X]),
    "two": ("SequenceConstruct(x, w)", [X, W]),
    "none": ("SequenceEmpty()", []),
}
"""How a sequence is made, and what is in it."""


def inserted(place: int | None) -> Change:
    """Insert a tensor before a place, or at the end."""

    def insert(items: Tensors, new: Array) -> Tensors:
        made = [*items]
        ends = range(len(items) + (place is None or place >= 0))
        made.insert(ends[-1 if place is None else place], new)
        return made

    return insert


def erased(place: int) -> Change:
    """Take the tensor at a place away."""

    def erase(items: Tensors, _: Array) -> Tensors:
        made = [*items]
        del made[place]
        return made

    return erase


CHANGES: dict[str, tuple[str, Change]] = {
    "as it is": ("Identity({})", lambda items, _: items),
    "one more": ("SequenceInsert({}, {})", inserted(None)),
    "one before all": ("SequenceInsert({}, {}, first)", inserted(0)),
    "one before the last": ("SequenceInsert({}, {}, last)", inserted(-1)),
    "one at a fed place": ("SequenceInsert({}, {}, p)", inserted(1)),
    "without the last": ("SequenceErase({})", erased(-1)),
    "without the first": ("SequenceErase({}, first)", erased(0)),
    "without one": ("SequenceErase({}, p)", erased(1)),
}
"""How a sequence is changed, with another tensor."""

USES: dict[str, Callable[[Tensors], Array]] = {
    "SequenceAt(r, first)": lambda items: items[0],
    "SequenceAt(r, last)": lambda items: items[-1],
    "SequenceAt(r, p)": lambda items: items[1],
    "SequenceLength(r)": lambda items: np.array(len(items)),
    "ConcatFromSequence<axis = 0>(r)": np.concatenate,
    "ConcatFromSequence<axis = -1>(r)": lambda items: np.concatenate(items, -1),
    "ConcatFromSequence<axis = 1, new_axis = 1>(r)": lambda items: np.stack(items, 1),
}


def check(made: str, text: str, result: Tensors) -> None:
    """Compare all uses of a sequence that the text makes with what they give of a list."""
    wanted = list[Array]()
    for use, rule in USES.items():
        with suppress(IndexError, ValueError):  # of what is not there, or does not fit
            wanted.append(rule(result))
            text += f" y{len(wanted) - 1} = {use}"
    outputs = ", ".join(f"y{place}" for place in range(len(wanted)))
    model = onnx.parser.parse_model(f"{HEAD.replace('OUTPUTS', outputs)} s = {made} {text} }}")
    lowered = ts.lower(model, target="portable")
    assert not [node for node in lowered.graph.node if "Sequence" in node.op_type]
    for got, want in zip(ts.run(lowered, FEEDS).values(), wanted, strict=True):
        assert got.shape == want.shape
        assert (got == want).all()


def other_for(items: Tensors) -> tuple[str, Array]:
    """A tensor of the rank of others."""
    return ("v", V) if items and items[0].ndim == V.ndim else ("w", W)


@pytest.mark.parametrize("made", MADE)
def test_a_sequence_is_changed_and_used(made: str) -> None:
    source, items = MADE[made]
    name, other = other_for(items)
    for text, rule in CHANGES.values():
        with suppress(IndexError):  # there is no such place
            check(source, f"r = {text.format('s', name)}", rule(items, other))


@pytest.mark.parametrize("made", ["chunks", "columns without their axis", "two"])
@pytest.mark.parametrize("change", ["one more", "one before all", "without the first"])
@pytest.mark.parametrize("rounds", [0, 2])
def test_a_loop_changes_a_sequence(made: str, change: str, rounds: int) -> None:
    (source, items), (text, rule) = MADE[made], CHANGES[change]
    name, other = other_for(items)
    count = "first" if rounds == 0 else "two"
    body = f"{{ d = Identity(c) u = {text.format('t', name)} }}"
    loop = "b (int64 i, bool c, seq(float[]) t) => (bool d, seq(float[]) u)"
    result = items
    for _ in range(rounds):
        result = rule(result, other)
    if result:
        check(source, f"r = Loop({count}, , s) <body = {loop} {body}>", result)


@pytest.mark.parametrize("made", ["chunks", "rows"])
@pytest.mark.parametrize("change", ["one more", "without the last"])
def test_a_branch_changes_a_sequence(made: str, change: str) -> None:
    (source, items), (text, rule) = MADE[made], CHANGES[change]
    name, other = other_for(items)
    for taken in ("Less", "Greater"):
        branches = f"<then_branch = t () => (q) {{ q = {text.format('s', name)} }}, "
        branches += "else_branch = e () => (h) { h = Identity(s) }>"
        result = rule(items, other) if taken == "Less" else items
        check(source, f"is = {taken}(first, p) r = If(is) {branches}", result)


@pytest.mark.parametrize("made", ["none", "two", "chunks", "columns without their axis"])
@pytest.mark.parametrize("change", ["SequenceInsert(s, {}, p)", "SequenceErase(s, p)"])
def test_a_fed_position_is_that_of_a_tensor_or_stops_the_model(made: str, change: str) -> None:
    """One is inserted before any, or after all; one is taken away that is there."""
    source, items = MADE[made]
    name, other = other_for(items)
    is_erased = "Erase" in change
    if is_erased and not items:
        return
    text = f"{HEAD.replace('OUTPUTS', 'y')} s = {source} r = {change.format(name)} y = "
    counted, joined = (
        ts.lower(onnx.parser.parse_model(f"{text} {use} }}"), target="portable")
        for use in ("SequenceLength(r)", "ConcatFromSequence<axis = 0>(r)")
    )
    ends = range(-len(items), len(items) + (not is_erased))
    for place in range(-len(items) - 2, len(items) + 3):
        feeds = {**FEEDS, "p": np.array(place)}
        if place not in ends:
            with pytest.raises(ts.SplitError):
                ts.run(counted, feeds)
            continue
        wanted = [*items]
        if is_erased:
            del wanted[place]
        else:
            wanted.insert(place, other)
        assert ts.run(counted, feeds)["y"] == len(wanted)
        (got,) = ts.run(joined, feeds).values()
        assert (got == np.concatenate(wanted)).all(), place
