"""Tables and columns are split along their rows, and sparse arrays along both axes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tensorsplit as ts
from tests.refusals import refused

VALUES = np.random.default_rng(5).random(7)
WORDS = ["a", "", "dtype", "é", "e", "f", "g"]


def pandas_frame(pandas: Any) -> Any:
    index = pandas.date_range("2026-01-01", periods=7, freq="D", name="day")
    columns = {"x": VALUES, "dtype": WORDS, "kind": pandas.Categorical(list("abacaba"))}
    return pandas.DataFrame(columns, index=index)


def arrow_table(pyarrow: Any) -> Any:
    return pyarrow.table({"x": VALUES, "word": WORDS, "none": [None, *range(6)]})


MAKERS: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "pandas.DataFrame": ("pandas", pandas_frame),
    "pandas.DataFrame of numbers": ("pandas", lambda pandas: pandas.DataFrame({"x": VALUES})),
    "pandas.Series": ("pandas", lambda pandas: pandas.Series(VALUES, list("stuvwxy"), name="v")),
    "pandas.Series of words": ("pandas", lambda pandas: pandas.Series(WORDS)),
    "polars.DataFrame": ("polars", lambda polars: polars.DataFrame({"x": VALUES, "w": WORDS})),
    "polars.Series": ("polars", lambda polars: polars.Series("v", VALUES)),
    "pyarrow.Table": ("pyarrow", arrow_table),
    "pyarrow.RecordBatch": ("pyarrow", lambda pa: arrow_table(pa).to_batches()[0]),
    "pyarrow.Array": ("pyarrow", lambda pa: pa.array(VALUES)),
    "pyarrow.Array of words": ("pyarrow", lambda pa: pa.array([*WORDS[1:], None])),
    "pyarrow.ChunkedArray": ("pyarrow", lambda pa: pa.chunked_array([VALUES[:3], VALUES[3:]])),
}


@pytest.fixture(params=MAKERS)
def table(request: pytest.FixtureRequest) -> Any:
    """Each kind of table of each library that is installed, of seven rows."""
    library, make = MAKERS[request.param]
    return make(pytest.importorskip(library))


def same(one: Any, other: Any) -> bool:
    assert type(one) is type(other)
    if hasattr(one, "iloc"):  # pandas: the labels, the names and the types too
        alike = one.index.equals(other.index) and one.index.dtype == other.index.dtype
        assert getattr(one, "name", None) == getattr(other, "name", None)
        return bool(alike and one.equals(other))
    return bool(one.equals(other))


def rows(table: Any, start: int, stop: int) -> Any:
    return table.iloc[start:stop] if hasattr(table, "iloc") else table[start:stop]


SPLITS: list[tuple[Callable[[Any], Any], list[int]]] = [
    (lambda table: ts.split(table, [2, 0, 5]), [2, 0, 5]),
    (lambda table: ts.split(table, np.array([2, 5])), [2, 5]),
    (lambda table: ts.split(table, [7]), [7]),
    (lambda table: ts.split(table, num_outputs=3, copy=True), [3, 3, 1]),
    (lambda table: ts.split(table, [3, 4], opset=11), [3, 4]),
    (lambda table: ts.split_to_sequence(table, 4), [4, 3]),
    (ts.split_to_sequence, [1] * 7),
    (lambda table: ts.variadic_split(table, 0, [-1, 2]), [5, 2]),
    (lambda table: ts.openvino.split(table, 0, 7, copy=True), [1] * 7),
    (lambda table: ts.like("numpy.array_split")(table, 3), [3, 2, 2]),
]


@pytest.mark.parametrize(("function", "sizes"), SPLITS)
def test_rows_and_the_way_back(
    table: Any, function: Callable[[Any], Any], sizes: list[int]
) -> None:
    for _ in range(2):  # the second call is found again
        parts = function(table)
        assert len(parts) == len(sizes)
        stops = np.cumsum(sizes)
        for part, stop, size in zip(parts, stops, sizes, strict=True):
            assert same(part, rows(table, stop - size, stop))
        assert same(ts.join(parts), table)
        assert same(ts.join(parts, axis=0, copy=True), table)


def test_a_plan_serves_tables_and_arrays(table: Any) -> None:
    shape = ("N", *getattr(table, "shape", (7,))[1:])
    plan = ts.plan("VariadicSplit", shape, axis=0, split_lengths={"head": 3, "rest": -1})
    parts = plan(table)
    assert list(parts) == ["head", "rest"]
    assert same(parts["rest"], rows(table, 3, 7))
    assert same(plan.join({"rest": parts["rest"], "head": parts["head"]}), table)
    assert [len(part) for part in plan(np.ones((7, *shape[1:]))).values()] == [3, 4]


def test_memory_is_shared_unless_a_copy_is_made() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"x": VALUES})
    memory = frame["x"].to_numpy()
    assert np.shares_memory(ts.split(frame, [2, 5])[1]["x"].to_numpy(), memory)
    assert not np.shares_memory(ts.split(frame, [2, 5], copy=True)[1]["x"].to_numpy(), memory)


def test_memory_of_arrow_is_shared() -> None:
    pyarrow = pytest.importorskip("pyarrow")
    array = pyarrow.array(VALUES)
    part = ts.split(array, [2, 5])[1]
    assert part.buffers()[1].address == array.buffers()[1].address
    assert ts.join(ts.split(pyarrow.table({"x": array}), [2, 5]))["x"].num_chunks == 2


def test_what_is_refused(table: Any) -> None:
    two_axes = len(getattr(table, "shape", (7,))) == 2
    columns = "rows, and the axis is 1" if two_axes else "rank 1"
    lengths = [1, table.shape[1] - 1] if two_axes else [1, 6]
    with refused("TS203", columns, parameter="axis"):
        ts.split(table, lengths, axis=1)
    with refused("TS107", "a row alone", parameter="keepdims"):
        ts.split_to_sequence(table, keepdims=0)
    with refused("TS302", "sums to 8"):
        ts.split(table, [2, 6])
    with refused("TS404", parameter="out"):
        ts.split(table, [2, 5], out=[table, table])
    with refused("TS404", parameter="out"):
        ts.join([table, table], out=table)
    with refused("TS314"):
        ts.join(ts.split(table, [2, 5]), copy=False)
    with refused("TS105", "another library", parameter="split"):
        ts.split(np.arange(7), table)
    with refused("TS105", "to_numpy()", parameter="split"):
        ts.split(table, table)
    other = np.ones(getattr(table, "shape", (7,)))
    with refused("TS313", "ndarray", parameter="parts[1]"):
        ts.join([table, other])


def test_other_columns_are_refused() -> None:
    pandas = pytest.importorskip("pandas")
    one = pandas.DataFrame({"x": VALUES})
    for other in ({"y": VALUES}, {"x": VALUES.astype(np.float32)}, {"x": WORDS}):
        with refused("TS313", parameter="parts[1]"):
            ts.join([one, pandas.DataFrame(other)])
    with refused("TS313", "Series", parameter="parts[1]"):
        ts.join([one, one["x"]])
    pyarrow = pytest.importorskip("pyarrow")
    with refused("TS313", "x: float", parameter="parts[1]"):
        ts.join([pyarrow.table({"x": VALUES}), pyarrow.table({"x": VALUES.astype(np.float32)})])


def test_no_row_is_lost_where_there_are_no_columns() -> None:
    pyarrow = pytest.importorskip("pyarrow")
    table = pyarrow.table({"x": VALUES}).select([])
    parts = ts.split(table, [2, 5])
    assert [part.shape for part in parts] == [(2, 0), (5, 0)]
    with refused("TS313", "(7, 0)", parameter="parts"):
        ts.join(parts)


def test_columns_that_are_only_written_alike_are_refused() -> None:
    pandas = pytest.importorskip("pandas")

    class Label:
        def __repr__(self) -> str:
            return "label"

    parts = [pandas.DataFrame({Label(): VALUES}) for _ in range(2)]
    with refused("TS313", "(14, 2)", parameter="parts"):
        ts.join(parts)
    assert ts.join(ts.split(parts[0], [2, 5])).equals(parts[0])


def test_columns_without_a_name_or_twice() -> None:
    pandas = pytest.importorskip("pandas")
    for columns in (
        [np.nan, None, 3],
        ["a", "a", "b"],
        pandas.MultiIndex.from_tuples([(1, 2)] * 3),
    ):
        table = pandas.DataFrame(np.column_stack([VALUES] * 3), columns=columns)
        assert same(ts.join(ts.split(table, [2, 5])), table)
    bare = pandas.DataFrame(index=range(7))
    assert same(ts.join(ts.split(bare, [2, 5])), bare)


def test_the_first_split_is_of_floats() -> None:
    pandas = pytest.importorskip("pandas")
    column = pandas.Series(VALUES)
    assert len(ts.split(column, num_outputs=7, opset=1)) == 7
    with refused("TS201", "string"):
        ts.split(column.to_frame(), num_outputs=7, opset=1)


@pytest.mark.parametrize("make", ["csr_array", "csc_array", "csr_matrix", "csc_matrix"])
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("copy", [False, True])
def test_sparse_arrays(make: str, axis: int, copy: bool) -> None:
    sparse = pytest.importorskip("scipy.sparse")
    dense = np.random.default_rng(3).random((5, 5)).astype(np.float32).round(1)
    dense[dense < 0.6] = 0
    array = getattr(sparse, make)(dense)
    array.data[0] = -0.0  # stored, and so kept
    dense = array.toarray()
    parts = ts.variadic_split(array, axis, [2, 0, -1], copy=copy)
    slices = [dense[:2], dense[2:2], dense[2:]] if axis == 0 else [
        dense[:, :2], dense[:, 2:2], dense[:, 2:]
    ]  # fmt: skip
    whole = ts.join(parts, axis=axis)
    for part, want in zip([*parts, whole], [*slices, dense], strict=True):
        assert type(part) is type(array)
        assert part.shape == want.shape
        assert part.dtype == np.float32
    for part, want in zip(parts, slices, strict=True):
        assert np.array_equal(part.toarray(), want)
    assert whole.data.tobytes() == array.data.tobytes()
    assert np.array_equal(whole.indices, array.indices)
    assert np.array_equal(whole.indptr, array.indptr)


def test_what_is_refused_of_sparse_arrays() -> None:
    sparse = pytest.importorskip("scipy.sparse")
    array = sparse.csr_array(np.eye(4))
    with refused("TS204", "`tocsr()`"):
        ts.split(array.tocoo(), [2, 2])
    with refused("TS204", "csr and rank 1", "`toarray()`"):
        ts.split(sparse.coo_array(np.eye(4)[0]).tocsr(), [2, 2])
    with refused("TS204", "LinearOperator"):
        ts.split(pytest.importorskip("scipy.sparse.linalg").aslinearoperator(array), [2, 2])
    with refused("TS107", "keepdims"):
        ts.split_to_sequence(array, keepdims=0)
    with refused("TS302"):
        ts.split(array, [2, 3])
    with refused("TS404", parameter="out"):
        ts.split(array, [2, 2], out=[array, array])
    with refused("TS313", "csc", parameter="parts[1]"):
        ts.join([array, array.tocsc()])
    with refused("TS105", "toarray()", parameter="split"):
        ts.split(array, array)
    with refused("TS201", "bool"):
        ts.split(array.astype(bool), [2, 2], opset=1)


def test_what_a_refusal_says_of_arrays_in_files_works(tmp_path: Any) -> None:
    zarr = pytest.importorskip("zarr")
    data = np.arange(6.0).reshape(3, 2)
    array = zarr.create_array(tmp_path / "x.zarr", data=data, chunks=(1, 2))
    with refused("TS204", "`tensorsplit.files.split` with its path"):
        ts.split(array, [1, 2])
    assert np.array_equal(ts.split(array[...], [1, 2])[1], data[1:])
    ts.files.split(tmp_path / "x.zarr", tmp_path / "parts.zarr", [1, 2], axis=0)
    with refused("TS204", "`tensorsplit.files.split` with its path and rules"):
        ts.split(zarr.open_group(tmp_path / "parts.zarr"), [1, 2])


def test_what_a_refusal_says_of_data_sets_of_hdf5_works(tmp_path: Any) -> None:
    h5py = pytest.importorskip("h5py")
    data = np.arange(6.0).reshape(3, 2)
    with h5py.File(tmp_path / "x.h5", "w") as file:
        array = file.create_dataset("x", data=data, chunks=(1, 2))
        with refused("TS204", "its `[...]`, or `dask.array.from_array` of it"):
            ts.split(array, [1, 2])
        assert np.array_equal(ts.split(array[...], [1, 2])[1], data[1:])
