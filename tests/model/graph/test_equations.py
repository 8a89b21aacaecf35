"""Equations of Einsum: what NumPy makes of them."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from tensorsplit.model.graph.equations import moves_nothing, moves_one_axis, terms_of

DATA = np.random.default_rng(3).random((2,) * 5)
"""Axes of one length, so that a letter may stand for several of them."""


def terms(letters: str, most: int) -> list[str]:
    """Up to so many letters, in any order, with an ellipsis at any place or none."""
    words = ["".join(each) for n in range(most + 1) for each in product(letters, repeat=n)]
    return [
        *words,
        *(f"{word[:at]}...{word[at:]}" for word in words for at in range(len(word) + 1)),
    ]


@pytest.mark.parametrize("has_result", [False, True])
def test_an_equation_that_moves_nothing(has_result: bool) -> None:
    """It has one operand, whose elements stay where they are; here an ellipsis is of two axes."""
    count = 0
    for left in terms("iJk", 3):
        rights = [each for each in terms("iJk", 3) if "..." in left or "..." not in each]
        for right in (f"->{each}" for each in rights) if has_result else [""]:
            rank = len(left.replace("...", ".."))
            data = DATA[(0,) * (DATA.ndim - rank)]
            try:
                made = np.einsum(left + right, data)
            except ValueError:
                continue
            is_same = made.shape == data.shape and bool((made == data).all())
            assert moves_nothing(left + right) == is_same, left + right
            count += is_same
    assert count > 10
    assert not moves_nothing("ij,jk->ik")
    assert not moves_nothing("ij->i.j")


@pytest.mark.parametrize("order", ["ij", "ijk", "ijkl"])
def test_an_equation_that_moves_one_axis(order: str) -> None:
    """The axes of an operand are in order after one `moveaxis`, and were not before."""
    places = range(len(order))
    for letters in product(order, repeat=len(order)):
        if len(set(letters)) < len(order):
            continue
        word = "".join(letters)
        data = np.empty([order.index(letter) for letter in word])
        moved = (np.moveaxis(data, *move).shape for move in product(places, repeat=2))
        is_moved = word != order and tuple(places) in moved
        assert moves_one_axis(f"{order},{word}->i") is is_moved, word
        # an ellipsis is before all, so that behind all it has to move
        is_in_order = word == order
        assert moves_one_axis(f"{order},{word}...->i") is is_in_order, word
        assert moves_one_axis(f"{order},...{word}->i") is is_moved, word


@pytest.mark.parametrize(
    ("equation", "is_one"),
    [
        *(("i,jk", True), ("...i, j ...->ij", True), ("->", True), ("ij->", True), ("", True)),
        *(("i.j->ij", False), ("i->j->k", False), ("i,1->i", False), ("i....", False)),
        *(("i...j...", False), ("i->j,k", False), ("ij->i;", False)),
    ],
)
def test_what_an_equation_is(equation: str, is_one: bool) -> None:
    assert (terms_of(equation) is not None) is is_one
