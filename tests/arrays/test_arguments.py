"""What may give an axis, lengths and flags, and what is refused."""

from __future__ import annotations

from array import array
from collections import UserList, deque
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tensorsplit as ts
from tests.arrays.libraries.every import LIBRARIES
from tests.oracle import random_array, same
from tests.refusals import refused

X = random_array("int32", (4, 6), np.random.default_rng(5))

CONTAINERS: list[Callable[[list[int]], Any]] = [
    UserList,
    deque,
    lambda items: array("b", items),
    lambda items: array("Q", items),
    lambda items: UserList(map(np.uint8, items)),
    lambda items: list(map(np.array, items)),
]


@pytest.mark.parametrize("container", CONTAINERS)
def test_integers_in_any_sequence(container: Callable[[list[int]], Any]) -> None:
    lengths = container([1, 5])
    calls: list[Callable[[], list[Any]]] = [
        lambda: ts.split(X, lengths, axis=1),
        lambda: ts.split(X, lengths, axis=1, opset=2),
        lambda: ts.split_to_sequence(X, lengths, axis=1),
        lambda: ts.variadic_split(X, axis=container([1]), split_lengths=lengths),
        lambda: ts.plan("onnx.Split-13", X.shape, lengths, axis=1)(X),
    ]
    for call in calls:
        left, right = call()
        assert same(left, X[:, :1])
        assert same(right, X[:, 1:])


def test_a_sequence_that_changes_is_read_anew() -> None:
    lengths = UserList([1, 5])
    assert ts.split(X, lengths, axis=1)[0].shape == (4, 1)
    lengths[:] = [2, 4]
    assert ts.split(X, lengths, axis=1)[0].shape == (4, 2)


@pytest.mark.parametrize(
    ("lengths", "words"),
    [
        (array("d", [1, 5]), "give int64"),
        (deque(["1", "5"]), "'1'"),
        (UserList([True, 5]), "bool"),
        ([np.array(True), 5], "it is array(True) of type ndarray; give integers"),
        ([np.array(1.0), 5], "it is array(1.) of type ndarray; give integers"),
        ([np.array([1]), 5], "it is array([1]) of type ndarray; give integers"),
        (b"\1\5", "bytes"),
        ("15", "str; give a list of integers"),
    ],
)
def test_what_holds_no_integers(lengths: Any, words: str) -> None:
    with refused("TS105", words, parameter="split"):
        ts.split(X, lengths, axis=1)


@pytest.mark.parametrize("name", LIBRARIES)
def test_numpy_gives_lengths_to_every_library(name: str) -> None:
    library = LIBRARIES[name]()
    data = library.make(X)
    for dtype in (np.int64, np.uint8):
        lengths = np.array([1, 5], dtype)

        def split(x: Any, lengths: Any = lengths) -> list[Any]:
            return list(ts.split(x, lengths, axis=1, opset=18))

        left, right = library.split(split, data)
        assert same(library.read(left), X[:, :1])
        assert same(library.read(right), X[:, 1:])
    with refused("TS105", "[1.0, 5.0]", parameter="split"):
        library.split(lambda x: ts.split(x, np.array([1.0, 5.0]), axis=1), data)


@pytest.mark.parametrize("axis", [None, 1.0, "1", True])
def test_an_axis_is_an_integer(axis: Any) -> None:
    calls: list[Callable[[], Any]] = [
        lambda: ts.split(X, num_outputs=2, axis=axis),
        lambda: ts.split(X, num_outputs=2, axis=axis, opset=2),
        lambda: ts.split_to_sequence(X, 2, axis=axis),
        lambda: ts.plan("Split", X.shape, [2, 2], axis=axis),
        lambda: ts.infer("Split", X.shape, [2, 2], axis=axis),
        lambda: ts.join([X], axis=axis),
    ]
    for call in calls:
        with refused("TS105", repr(axis), parameter="axis"):
            call()


@pytest.mark.parametrize("flag", [False, 0, np.False_, np.int8(0)])
def test_flags_of_numpy(flag: Any) -> None:
    rows = ts.split_to_sequence(X, keepdims=flag)
    assert [row.shape for row in rows] == [(6,)] * 4
    assert same(ts.join(rows, keepdims=flag), X)


@pytest.mark.parametrize("flag", [True, 1, np.True_, np.int8(1)])
def test_flags_of_numpy_that_are_set(flag: Any) -> None:
    rows = ts.split_to_sequence(X, keepdims=flag)
    assert [row.shape for row in rows] == [(1, 6)] * 4
    assert same(ts.join(rows, keepdims=flag), X)


@pytest.mark.parametrize("is_parameter_first", [False, True])
@pytest.mark.parametrize("way", ["views", "copy", "out", "pool"])
def test_a_parameter_and_a_tensor_alike(way: str, is_parameter_first: bool) -> None:
    torch = pytest.importorskip("torch")
    data = np.random.default_rng(2).random((len(way), 6 + is_parameter_first), np.float32)
    tensor = torch.from_numpy(data)
    given = [tensor, torch.nn.Parameter(tensor, requires_grad=way in ("views", "copy"))]
    for each in given[::-1] if is_parameter_first else given:
        out = [torch.full((len(way), size), 7.0) for size in (2, data.shape[1] - 2)]
        options: dict[str, dict[str, Any]] = {
            "views": {},
            "copy": {"copy": True},
            "out": {"out": out},
            "pool": {"out": ts.BufferPool(1 << 20)},
        }
        left, right = ts.split(each, [2, data.shape[1] - 2], axis=1, **options[way])
        assert left.detach().numpy().tobytes() == data[:, :2].tobytes()
        assert right.detach().numpy().tobytes() == data[:, 2:].tobytes()


@pytest.mark.parametrize(
    ("call", "for_one", "for_several"),
    [
        (lambda value: ts.split(X, axis=value, num_outputs=2), "an integer", "an integer"),
        (lambda value: ts.split(X, num_outputs=value), "an integer", "an integer"),
        (lambda value: ts.openvino.split(X, 0, value), "an integer", "an integer"),
        (lambda value: ts.split(X, value), "a list of integers", "a list of integers"),
        (lambda value: ts.variadic_split(X, 0, value), "a list of integers", "a list of integers"),
        (lambda value: ts.split_to_sequence(X, value), "an integer", "a list of integers"),
    ],
)
def test_what_would_do_is_what_the_operand_may_be(
    call: Callable[[Any], object], for_one: str, for_several: str
) -> None:
    """A list only where the operand may be one, whatever was given."""
    for value, wanted in (("2", for_one), (b"2", for_one), ({2, 4}, for_several)):
        with refused("TS105", f"; give {wanted}"):
            call(value)


def test_the_rank_of_a_list_of_lists_is_said() -> None:
    with refused("TS106", "of rank 2", parameter="split"):
        ts.split(X, [[1, 3]])  # type: ignore[list-item]  # the mistake
