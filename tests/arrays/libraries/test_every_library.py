"""The same cases over all libraries: what NumPy's arrays do, those of the others do."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

import tensorsplit as ts
from tensorsplit import native
from tensorsplit.arrays import eager as api
from tests.arrays.libraries.every import LIBRARIES, Library
from tests.arrays.test_properties import Case, cases
from tests.oracle import ALLOWED, DTYPES, random_array, same, slices
from tests.refusals import refused


@pytest.fixture(params=LIBRARIES)
def library(request: pytest.FixtureRequest) -> Library:
    """Each library that is installed."""
    return LIBRARIES[request.param]()


def numbers(*shape: int, dtype: Any = np.float32) -> Any:
    return np.arange(np.prod(shape, dtype=int)).reshape(shape).astype(dtype)


def check(library: Library, function: Any, array: Any, want: list[Any]) -> None:
    """The parts of the library's array are those wanted."""
    parts = library.split(function, library.make(array))
    assert isinstance(parts, list)
    assert len(parts) == len(want)
    for part, expected in zip(parts, want, strict=True):
        got = library.read(part)
        assert same(got, expected), (got, expected)


CALLS: list[tuple[Any, dict[str, Any], tuple[int, ...], int, bool]] = [
    *((ts.split, {"split": [1, 4], "axis": 1, "opset": n}, (1, 4), 1, True) for n in (1, 2, 11)),
    *((ts.split, {"split": (0, 5), "axis": -1, "opset": n}, (0, 5), 1, True) for n in (13, 18, 24)),
    *((ts.split, {"num_outputs": 2, "opset": n}, (2, 2), 0, True) for n in (1, 2, 11, 13, 18)),
    (ts.split, {"num_outputs": 3, "axis": 1}, (2, 2, 1), 1, True),
    (ts.split, {"num_outputs": 1, "axis": 1}, (5,), 1, True),
    *((ts.split_to_sequence, {"split": 2, "axis": 1, "opset": n}, (2, 2, 1), 1, True)
      for n in (11, 24)),
    (ts.split_to_sequence, {"split": [3, 1]}, (3, 1), 0, True),
    (ts.split_to_sequence, {"axis": 1}, (1,) * 5, 1, True),
    (ts.split_to_sequence, {"axis": 1, "keepdims": 0}, (1,) * 5, 1, False),
    (ts.variadic_split, {"axis": 1, "split_lengths": [2, -1]}, (2, 3), 1, True),
    (ts.openvino.split, {"axis": -2, "num_splits": 4}, (1,) * 4, 0, True),
]  # fmt: skip


@pytest.mark.parametrize(("function", "operands", "sizes", "axis", "keepdims"), CALLS)
@pytest.mark.parametrize("copy", [False, True])
def test_every_operator_version(
    library: Library,
    function: Any,
    operands: dict[str, Any],
    sizes: tuple[int, ...],
    axis: int,
    keepdims: bool,
    copy: bool,
) -> None:
    data = numbers(4, 5)
    want = slices(data, axis, sizes, keepdims)
    check(library, lambda x: function(x, **operands, copy=copy), data, want)


def test_a_call_is_decided_once(library: Library, decided: list[Any]) -> None:
    if native.kernel is None:
        pytest.skip("without the kernel, only arrays of NumPy are found again")
    data = numbers(4, 5)
    api._split.plans.clear()
    for _ in range(3):
        check(library, lambda x: ts.split(x, [1, 4], axis=1), data, slices(data, 1, (1, 4)))
    assert len(decided) == (1 if library.is_found_again else 3)


@pytest.mark.parametrize("name", DTYPES)
def test_every_element_type_that_the_library_has(library: Library, name: str) -> None:
    if name not in library.element_types:
        return
    data = random_array(name, (3, 4), np.random.default_rng(7))
    if DTYPES[name].name.startswith(("int2", "int4", "uint2", "uint4", "float4")):
        data = data.astype(np.float32).astype(data.dtype)  # the bits that count, and no others
    want = slices(data, 1, (1, 3))
    check(library, lambda x: ts.variadic_split(x, 1, [1, -1]), data, want)
    check(library, lambda x: ts.variadic_split(x, 1, [1, 3], copy=True), data, want)
    if name in ALLOWED["onnx.Split-18"]:
        check(library, lambda x: ts.split(x, [1, 3], axis=1), data, want)
    elif " " not in name:
        with refused("TS201", name, operator="onnx.Split-18", parameter="input"):
            ts.split(library.make(data), [1, 3], axis=1)


@pytest.mark.parametrize(
    ("code", "function", "operands"),
    [
        ("TS101", ts.split, {"num_outputs": 2, "opset": 0}),
        ("TS104", ts.split, {}),
        ("TS102", ts.split, {"opset": 13}),
        ("TS104", ts.split, {"split": [2, 2], "num_outputs": 2}),
        ("TS105", ts.split, {"split": [2.0, 2.0]}),
        ("TS105", ts.split, {"num_outputs": 2, "copy": 3}),
        ("TS106", ts.split, {"split": 2}),
        ("TS107", ts.split_to_sequence, {"keepdims": 2}),
        ("TS203", ts.split, {"num_outputs": 2, "axis": 2}),
        ("TS301", ts.split, {"split": [-1, 5]}),
        ("TS302", ts.split, {"split": [2, 3]}),
        ("TS303", ts.split, {"num_outputs": 3, "opset": 13}),
        ("TS304", ts.split, {"num_outputs": 4, "axis": 1}),
        ("TS305", ts.split, {"num_outputs": 3, "split": [2, 2], "opset": 13}),
        ("TS306", ts.variadic_split, {"axis": 0, "split_lengths": [-1, -1]}),
        ("TS307", ts.split_to_sequence, {"split": 0}),
        ("TS308", ts.split, {"num_outputs": 1 << 40}),
    ],
)
def test_errors_are_those_of_numpy(
    library: Library, code: str, function: Any, operands: dict[str, Any]
) -> None:
    with refused(code), np.errstate(all="ignore"):
        function(np.zeros((4, 5), np.float32), **operands)
    with refused(code):
        library.split(lambda x: function(x, **operands), library.make(numbers(4, 5)))


def test_a_scalar_has_no_axis(library: Library) -> None:
    with refused("TS202"):
        ts.split(library.make(np.array(1, np.float32)), num_outputs=1)


def test_a_message_does_not_print_the_data(library: Library) -> None:
    with pytest.raises(ts.SplitError) as caught:
        ts.split(library.make(np.full((2, 2), 86421, np.float32)), [3, 3])
    assert "86421" not in str(caught.value)


@pytest.mark.parametrize("copy", [False, True])
def test_a_plan_serves_every_library(library: Library, copy: bool) -> None:
    plan = ts.plan("onnx.Split-18", (4, 5), [1, 4], axis=1)
    data = numbers(4, 5)
    for _ in range(2):
        check(library, lambda x: plan(x, copy=copy), data, slices(data, 1, (1, 4)))
    with refused("TS206"):
        plan(library.make(numbers(5, 5)))
    named = ts.plan("onnx.Split-18", ("N", 5), num_outputs=2)
    check(library, named, data, slices(data, 0, (2, 2)))


@pytest.mark.parametrize("name", LIBRARIES)
def test_random_splits(name: str) -> None:
    library = LIBRARIES[name]()

    @settings(max_examples=library.examples, suppress_health_check=list(HealthCheck))
    @given(cases())
    def run(case: Case) -> None:
        data = numbers(*case.data.shape)
        plan = ts.plan(case.operator, data.shape, **case.operands)
        want = slices(data, case.axis, case.sizes, case.keepdims)
        check(library, plan, data, want)
        check(library, lambda x: plan(x, copy=True), data, want)

    run()


def test_lengths_in_an_array_of_the_library(library: Library) -> None:
    data = library.make(numbers(4, 5))
    lengths = library.make(np.array([1, 4]))
    if not library.has_lengths:
        with refused("TS107" if isinstance(lengths, np.ndarray) else "TS105", parameter="split"):
            ts.split(data, lengths, axis=1)
        return
    parts = ts.split(data, lengths, axis=1)
    assert [part.shape[1] for part in parts] == [1, 4]
    with refused("TS301"):
        ts.split(data, library.make(np.array([-1, 6])), axis=1)
    with refused("TS105", "double"):
        ts.split(data, library.make(np.array([1.0, 4.0])), axis=1)
    with refused("TS106", "rank 2"):
        ts.split(data, library.make(np.array([[1, 4]])), axis=1)
    parts = ts.variadic_split(data, library.make(np.array(1)), library.make(np.array([2, -1])))
    assert [part.shape[1] for part in parts] == [2, 3]


def test_out(library: Library) -> None:
    data = numbers(4, 5)
    array = library.make(data)
    want = slices(data, 1, (1, 4))
    out = [library.make(np.zeros_like(part)) for part in want]
    if not library.takes_out:
        with refused("TS403" if isinstance(array, np.ndarray) else "TS404", parameter="out"):
            ts.split(array, [1, 4], axis=1, out=out)
        return
    parts = ts.split(array, [1, 4], axis=1, out=out)
    assert all(part is buffer for part, buffer in zip(parts, out, strict=True))
    for part, expected in zip(parts, want, strict=True):
        assert same(library.read(part), expected)
    small = library.make(np.zeros((4, 1), np.float32))
    wrong: list[tuple[str, Any]] = [
        ("TS401", out[:1]),
        ("TS401", 3),
        ("TS402", [out[0], small]),
        ("TS403", [out[0], library.make(np.zeros((4, 4), np.int32))]),
        ("TS403", [out[0], [0]]),
        ("TS405", [out[0], array[:, 1:]]),
        ("TS405", [out[1][:, :1], out[1]]),
    ]
    for code, buffers in wrong:
        with refused(code, parameter="out"):
            ts.split(array, [1, 4], axis=1, out=buffers)
    for part, expected in zip(out, want, strict=True):
        assert same(library.read(part), expected), "a refused call writes nothing"


def test_arrays_of_two_libraries_are_refused(library: Library) -> None:
    if type(library) is Library:
        return
    other = np.zeros((4, 1), np.float32), np.zeros((4, 4), np.float32)
    array = library.make(numbers(4, 5))
    if not isinstance(array, np.ndarray):
        with refused("TS105", "another library", parameter="split"):
            ts.split(numbers(4, 5), library.make(np.array([1, 4])), axis=1)
        with pytest.raises(ts.SplitError) as caught:
            ts.split(array, [1, 4], axis=1, out=list(other))
        assert caught.value.code in ("TS403", "TS404", "TS405")
