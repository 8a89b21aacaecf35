"""What is fed to a model is checked against what it declares, before anything runs."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tensorsplit.model.feeds import DeclaredInput, check_feeds
from tests.model.build import FLOAT, STRING, graph, model, node, outputs, run, value
from tests.oracle import assert_same, slices
from tests.refusals import refused

X = DeclaredInput("x", "float", (2, "N"))
WORDS = DeclaredInput("w", "string", None)


def ones(*shape: int, dtype: Any = np.float32) -> Any:
    return np.ones(shape, dtype)


def test_what_fits_is_passed_on() -> None:
    fed = ones(2, 5)
    assert check_feeds([X], {"x": fed})["x"] is fed


def test_a_missing_input_is_refused() -> None:
    with refused("TS505", "tensor of float and shape (2, N)", parameter="x"):
        check_feeds([X], {})


def test_an_input_with_a_default_may_be_left_out() -> None:
    assert check_feeds([X._replace(has_default=True)], {}) == {}


@pytest.mark.parametrize("name", ["y", "X", "x ", "", 3, None])
def test_an_unknown_input_is_refused(name: Any) -> None:
    with refused("TS506", "'x'"):
        check_feeds([X], {"x": ones(2, 1), name: ones(1)})


@pytest.mark.parametrize("shape", [(), (2,), (3, 5), (2, 5, 1), (0, 5), (1, 2)])
def test_a_shape_that_is_not_declared_is_refused(shape: tuple[int, ...]) -> None:
    with refused("TS507", "(2, N)", parameter="x"):
        check_feeds([X], {"x": ones(*shape)})


@pytest.mark.parametrize("shape", [(), (1,), (0, 3)])
def test_any_shape_fits_where_none_is_declared(shape: tuple[int, ...]) -> None:
    check_feeds([X._replace(shape=None)], {"x": ones(*shape)})


@pytest.mark.parametrize(
    "dtype",
    [np.float64, np.float16, np.int32, bool, np.complex64, ml_dtypes.bfloat16, "U3", "M8[s]"],
)
def test_another_element_type_is_refused(dtype: Any) -> None:
    with refused("TS508", "float", parameter="x"):
        check_feeds([X], {"x": np.zeros((2, 1), dtype)})


@pytest.mark.parametrize("fed", [[[1.0], [2.0]], (1.0,), 1.0, "text", None, {"a": 1}, b"12"])
def test_what_is_no_array_is_refused(fed: Any) -> None:
    with refused("TS508", type(fed).__name__, parameter="x"):
        check_feeds([X], {"x": fed})


def test_feeds_are_a_mapping() -> None:
    for feeds in ([ones(2, 1)], ones(2, 1), None, "x"):
        with refused("TS703", "mapping", parameter="inputs"):
            check_feeds([X], feeds)  # type: ignore[arg-type]


def test_a_scalar_of_numpy_s_stands_for_an_array_of_rank_0() -> None:
    fed = check_feeds([X._replace(shape=())], {"x": np.float32(3)})["x"]
    assert_same([fed], [np.array(3, np.float32)])


def test_a_masked_array_is_refused_for_its_mask_would_be_lost() -> None:
    with refused("TS508", "mask", parameter="x"):
        check_feeds([X], {"x": np.ma.masked_array(ones(2, 1), mask=[[True], [False]])})


@pytest.mark.filterwarnings("ignore:the matrix subclass")
def test_subclasses_are_taken_as_plain_arrays() -> None:
    fed = check_feeds([X], {"x": np.asmatrix(ones(2, 1))})["x"]
    assert type(fed) is np.ndarray


@pytest.mark.parametrize("dtype", [">f4", ">f2", ">f8", ">i2", ">u8", ">c8", ">U3"])
def test_big_endian_arrays_are_taken_by_value(dtype: str, rng: np.random.Generator) -> None:
    values = rng.integers(100, size=(3, 2))
    fed = check_feeds([DeclaredInput("x", None, None)], {"x": values.astype(dtype)})["x"]
    assert fed.dtype.isnative
    assert np.array_equal(fed, values.astype(np.dtype(dtype).newbyteorder("=")))


def test_a_big_endian_nan_keeps_its_payload() -> None:
    fed = np.array([0x7FA00001], np.uint32).byteswap().view(">f4")
    got = check_feeds([X._replace(shape=(1,))], {"x": fed})["x"]
    assert got.view(np.uint32).tolist() == [0x7FA00001]


@pytest.mark.parametrize(
    "words",
    [
        np.array(["a", "bcd"]),
        np.array(["a", "bcd"], object),
        np.array(["a", "bcd"], np.dtypes.StringDType()),
        np.array([b"a", b"bcd"], object),
    ],
)
def test_strings_come_in_several_ways(words: Any) -> None:
    assert check_feeds([WORDS], {"w": words})["w"].tolist() == words.tolist()
    made = model(graph([node("Split", "w", "a b", num_outputs=2)], [value("w", STRING)], "ab"))
    first, second = outputs(made, w=words)
    assert [*first, *second] == [*words]


@pytest.mark.parametrize("items", [[1, 2], [None, "a"], [["a"], ["b"]], [1.5]])
def test_objects_that_are_no_strings_are_refused(items: Any) -> None:
    fed = np.empty(len(items), object)
    fed[:] = items
    with refused("TS508", "not strings", parameter="w"):
        check_feeds([WORDS], {"w": fed})


def test_sequences_and_optionals() -> None:
    rows = X._replace(kind="sequence")
    assert_same(check_feeds([rows], {"x": (ones(2, 1), ones(2, 3))})["x"], [ones(2, 1), ones(2, 3)])
    assert check_feeds([rows], {"x": []})["x"] == []
    with refused("TS507", "element 1", parameter="x"):
        check_feeds([rows], {"x": [ones(2, 1), ones(3, 1)]})
    with refused("TS508", "NoneType", parameter="x"):
        check_feeds([rows], {"x": None})
    maybe = X._replace(kind="optional")
    assert check_feeds([maybe], {"x": None}) == {"x": None}
    with refused("TS508", "list", "or None"):
        check_feeds([maybe], {"x": [ones(2, 1)]})
    assert check_feeds([X._replace(kind="optional sequence")], {"x": None}) == {"x": None}
    assert check_feeds([X._replace(kind="other")], {"x": {"a": 1}}) == {"x": {"a": 1}}


def test_nothing_runs_before_all_inputs_are_checked(rng: np.random.Generator) -> None:
    x = rng.random((4, 2)).astype(np.float32)
    made = model(
        graph([node("Split", "x", "a b", num_outputs=2)], [value("x", FLOAT, [4, 2])], "ab")
    )
    assert_same(outputs(made, x=x), slices(x, 0, [2, 2]))
    with refused("TS507", "(4, 2)", parameter="x"):
        run(made, x=x[:3])
    with refused("TS508", parameter="x"):
        run(made, x=x.astype(np.float64))
    with refused("TS505", parameter="x"):
        run(made)
    with refused("TS506", "'y'"):
        run(made, x=x, y=x)
