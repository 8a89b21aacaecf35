"""Whatever is given, what comes back is parts or a `SplitError`: never another exception."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from decimal import Decimal
from fractions import Fraction
from typing import Any

import ml_dtypes
import numpy as np
import onnx_ir
import pytest
import sympy
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

import tensorsplit as ts
from tensorsplit.core.schema import Operator


class Bomb:
    """Every method that might be called on it raises."""

    def _explode(self, *_: object) -> Any:
        raise RuntimeError("bomb")

    __repr__ = __str__ = __eq__ = __hash__ = __index__ = __int__ = __float__ = _explode
    __len__ = __iter__ = __bool__ = __getitem__ = __array__ = _explode


class Text(str):
    __slots__ = ()

    def __repr__(self) -> str:
        raise RuntimeError("bomb")

    __str__ = __repr__


class Sized:
    def __len__(self) -> int:
        return 10**15

    def __getitem__(self, index: int) -> int:
        return 1


class Shaped:
    """Looks like an array, but is none."""

    shape, dtype, ndim = (6, 2), np.dtype("f4"), 2


class LongName:
    def __repr__(self) -> str:
        return "line\n" * 10_000


def recursive() -> list[Any]:
    items: list[Any] = []
    items.append(items)
    return items


def nested(depth: int) -> list[Any]:
    items: list[Any] = [2, 4]
    for _ in range(depth):
        items = [items]
    return items


def boxed(value: object) -> Any:
    array = np.empty(1, object)
    array[0] = value
    return array


BOMB = Bomb()
JUNK: list[Any] = [
    *(None, True, False, 0, 2, -1, 7, 10**400, -(10**400), 1 << 63, -(1 << 63), 10**5000),
    *(2.0, 1.5, float("nan"), float("inf"), -0.0, 2 + 0j, Fraction(2), Decimal(2)),
    *("", "a", "2", "\x00", Text("2"), b"", b"24", bytearray(b"\x02\x04"), memoryview(b"\x02\x04")),
    *([], (), [2, 4], (2, 4), [2, 4.0], [2.0, 4.0], [2, True], ["2", "4"], [None, 6], [2, [4]]),
    *([10**400, 1.0], [10**5000, 1], [1, -1, 6], [-1, -1], [BOMB], [2, BOMB], [Text("2")]),
    *([np.int64(2), 4], [np.float32(2), 4], [np.array(2), np.array(4)], [np.array([2]), 4]),
    *(recursive(), nested(3), nested(5000), [float("nan"), 6], [1] * 100_000),
    *({}, {2: 4}, {2, 4}, frozenset({2}), iter([2, 4]), (i for i in (2, 4)), itertools.count()),
    *(range(0), range(2, 5), range(10**9), range(2**70), range(2**70, 0, -1), Sized()),
    *(object(), BOMB, Shaped(), LongName(), int, Bomb, ..., NotImplemented, slice(2), len),
    *(np.int8(2), np.uint64(2**63), np.float16(2), np.float64("nan"), np.longdouble(2)),
    *(np.bool_(True), np.str_("2"), np.bytes_(b"2"), np.void(b"abc"), np.complex64(2)),
    *(np.datetime64("2020"), np.datetime64("NaT"), np.timedelta64(2, "s")),
    *(np.array(2), np.array(-1), np.array(2.0), np.array(True), np.array("2"), np.array(None)),
    *(np.array([2, 4]), np.array([2, 4], "u8"), np.array([2**64 - 1, 7], "u8"), np.array([-1, 7])),
    *(np.array([2, 4], ">i8"), np.array([2, 4], "i1"), np.array([4, 2])[::-1], np.zeros(0, int)),
    *(np.array([2.0, 4]), np.array([np.nan, 6]), np.array([np.inf]), np.array([2, 4], "f2")),
    *(np.array([True, False]), np.array([2 + 0j]), np.array([2, 4], "g"), np.array(["2", "4"])),
    *(np.array([2, 4], object), np.array([2, None], object), boxed(BOMB)),
    *(np.array(["2"], np.dtypes.StringDType()), np.array([b"2"]), np.array(["2020"], "M8[D]")),
    *(np.array([2, 4], "m8[s]"), np.array([(2, 4)], [("a", "i4"), ("b", "i4")]), np.zeros(2, "V3")),
    *(np.array([2, 4], ml_dtypes.int4), np.array([2, 4], ml_dtypes.bfloat16), ml_dtypes.int4(2)),
    *(np.array([2, 4], ml_dtypes.float8_e5m2), np.array([1, 1], ml_dtypes.uint2)),
    *(np.array([[2, 4]]), np.zeros((2, 2), int), np.zeros((0, 3), int), np.zeros((1,) * 64, int)),
    *(np.ma.array([2, 4]), np.ma.array([2, 4], mask=[False, True]), np.ma.masked),
    *(np.array([[2, 4]]).view(np.matrix), np.array([2, 4]).view(np.recarray)),
    *(np.broadcast_to(np.int64(1), 2**40), np.broadcast_to(np.int64(0), (2**20, 2**20))),
    *(np.broadcast_to(np.float32(1), (2**40, 0)), np.zeros((0, 2**40), "i1")),
    *(sympy.Symbol("N"), sympy.Integer(2), sympy.oo, sympy.Matrix([2]), sympy.true),
    *(onnx_ir.SymbolicDim("N"), onnx_ir.SymbolicDim(None), onnx_ir.Shape([2, "N"])),
    *(ts.operators["onnx.Split-13"], ts.plan("onnx.Split-13", (6, 2), [2, 4]), ts),
]  # fmt: skip

X = np.arange(12, dtype=np.float32).reshape(6, 2)
PLANNED: Any = ts.plan
"""The function, of whose operands type checkers know nothing."""
PLAN = ts.plan("onnx.Split-13", (6, 2), [2, 4])
CALLS: dict[str, Callable[[Any], Any]] = {
    **{
        f"{name} at {opset}": call
        for opset in (1, 2, 11, 13, 18)
        for name, call in {
            "split": lambda j, o=opset: ts.split(X, j, opset=o),
            "split and num_outputs": lambda j, o=opset: ts.split(X, j, num_outputs=j, opset=o),
            "axis": lambda j, o=opset: ts.split(X, [2, 4], axis=j, opset=o),
            "num_outputs": lambda j, o=opset: ts.split(X, num_outputs=j, opset=o),
        }.items()
    },
    "data": lambda j: ts.split(j, [2, 4]),
    "opset": lambda j: ts.split(X, [2, 4], opset=j),
    "copy": lambda j: ts.split(X, [2, 4], copy=j),
    "out": lambda j: ts.split(X, [2, 4], out=j),
    "buffers": lambda j: ts.split(X, [2, 4], out=[j, j]),
    "everything": lambda j: ts.split(j, j, axis=j, num_outputs=j, opset=j, copy=j, out=j),
    "sequence data": lambda j: ts.split_to_sequence(j, 1 << 50),
    "sequence split": lambda j: ts.split_to_sequence(X, j),
    "sequence axis": lambda j: ts.split_to_sequence(X, axis=j),
    "sequence keepdims": lambda j: ts.split_to_sequence(X, keepdims=j),
    "variadic data": lambda j: ts.variadic_split(j, 0, [-1]),
    "variadic axis": lambda j: ts.variadic_split(X, j, [2, 4]),
    "variadic lengths": lambda j: ts.variadic_split(X, 0, j),
    "OpenVINO data": lambda j: ts.openvino.split(j, 0, 1),
    "OpenVINO axis": lambda j: ts.openvino.split(X, j, 2),
    "OpenVINO splits": lambda j: ts.openvino.split(X, 0, j),
    "planned operator": lambda j: ts.plan(j, (6, 2), [2, 4]),
    "planned shape": lambda j: ts.plan("onnx.Split-13", j, [2, 4]),
    "planned dimension": lambda j: ts.plan("onnx.Split-13", (6, j), [2, 4]),
    "planned axis": lambda j: ts.plan("onnx.Split-13", (j, 2), [2, 4]),
    "planned split": lambda j: ts.plan("onnx.SplitToSequence-24", ("N", 2), j),
    "planned data": PLAN,
    "planned out": lambda j: PLAN(X, out=j),
    "planned copy": lambda j: PLAN(X, copy=j),
    "unknown operand": lambda j: PLANNED("onnx.Split-13", (6, 2), [2, 4], colour=j),
    "inferred shape": lambda j: ts.infer("onnx.Split-18", j, num_outputs=2),
    "inferred axis": lambda j: ts.infer("onnx.Split-18", (j,), num_outputs=2),
    "inferred chunks": lambda j: ts.infer("onnx.SplitToSequence-24", (j, 2), 3),
    "inferred split": lambda j: ts.infer("onnx.SplitToSequence-24", ("N", 2), j),
    "record": lambda j: ts.operators[j],
    "difference": lambda j: ts.diff(j, "onnx.Split-13"),
}  # fmt: skip


def refusal(call: Callable[[Any], Any], junk: Any) -> ts.SplitError | None:
    """The refusal of a call, or None if it came back."""
    try:
        call(junk)
    except ts.SplitError as error:
        return error
    return None


def parts_or_refusal(call: Callable[[Any], Any], junk: Any) -> None:
    error = refusal(call, junk)
    if error is not None:
        message = str(error)
        assert message.startswith(f"[{error.code}] ")
        assert error.problem
        assert error.fix
        assert "\n" not in message
        assert len(message) < 1000, message


@pytest.mark.thorough
@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_junk_is_refused_in_words(call: Callable[[Any], Any]) -> None:
    for junk in JUNK:
        for _ in range(2):  # a second time, in case the first one was remembered
            parts_or_refusal(call, junk)


@pytest.mark.thorough
def test_every_refusal_of_an_eager_call_names_operator_and_parameter() -> None:
    for name, junk in itertools.product(CALLS, JUNK):
        if name in ("opset", "everything", "planned operator", "record", "difference"):
            continue  # there is no operator version to name
        error = refusal(CALLS[name], junk)
        if error is not None:
            assert error.operator in ts.operators, (name, str(error))
            assert error.parameter, (name, str(error))


numbers = st.one_of(
    st.integers(),
    st.integers(-8, 8),
    st.floats(),
    st.booleans(),
    st.none(),
    st.text(max_size=3),
    st.complex_numbers(),
    npst.scalar_dtypes().flatmap(npst.from_dtype),
)
values = st.one_of(
    numbers,
    st.lists(st.integers(-2, 7), max_size=5),
    st.recursive(numbers, lambda inner: st.lists(inner, max_size=4), max_leaves=8),
    st.tuples(numbers, numbers),
    npst.arrays(npst.scalar_dtypes(), npst.array_shapes(min_dims=0, max_dims=3, max_side=4)),
    npst.arrays(npst.integer_dtypes(), st.integers(0, 4), elements=st.integers(-2, 7)),
)


@settings(max_examples=300)
@given(st.sampled_from(sorted(CALLS)), values)
def test_random_values_are_refused_in_words(name: str, junk: Any) -> None:
    parts_or_refusal(CALLS[name], junk)


@settings(max_examples=300)
@given(st.sampled_from(list(ts.operators.values())), values, st.dictionaries(
    st.sampled_from(["axis", "split", "num_outputs", "keepdims", "split_lengths", "num_splits"]),
    values,
))  # fmt: skip
def test_random_operands_are_refused_in_words(
    operator: Operator, shape: Any, operands: dict[str, Any]
) -> None:
    parts_or_refusal(lambda junk: ts.plan(operator, (6, 2), **junk), operands)
    parts_or_refusal(lambda junk: ts.infer(operator, ("N", 2), **junk), operands)
    parts_or_refusal(lambda junk: ts.infer(operator, junk, **operands), shape)


def test_an_iterator_is_not_used_up() -> None:
    lengths: Iterator[int] = iter([2, 4])
    parts_or_refusal(lambda junk: ts.split(X, junk), lengths)
    assert list(lengths) == [2, 4]
