"""What holds for every split, whatever is split."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import onnx_ir
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

import tensorsplit as ts
from tensorsplit.core.plan import part_shapes
from tensorsplit.core.records.names import OperatorName
from tests.oracle import Array, assert_same, slices

dtypes = st.one_of(
    npst.integer_dtypes(endianness="?"),
    npst.unsigned_integer_dtypes(endianness="?"),
    npst.floating_dtypes(endianness="?", sizes=(16, 32, 64)),
    npst.complex_number_dtypes(endianness="?", sizes=(64, 128)),
    npst.boolean_dtypes(),
    npst.unicode_string_dtypes(endianness="?"),
)


Asked: TypeAlias = tuple[OperatorName, dict[str, Any], tuple[int, ...], bool]
"""An operator, its operands but for the axis, the lengths they mean, and whether the axis stays."""


class Case(NamedTuple):
    """A split whose lengths are known beforehand."""

    operator: OperatorName
    data: Array
    operands: dict[str, Any]
    sizes: tuple[int, ...]
    keepdims: bool = True

    @property
    def axis(self) -> int:
        return int(self.operands["axis"])


@st.composite
def arrays(draw: st.DrawFn, dim: int) -> tuple[Array, int]:
    """An array of random bits with an axis of that length, and the axis."""
    rank = draw(st.integers(1, 4))
    axis = draw(st.integers(0, rank - 1))
    shape = [draw(st.integers(0, 3)) for _ in range(rank)]
    shape[axis] = dim
    dtype = draw(dtypes)
    rng = np.random.default_rng(draw(st.integers(0, 99)))
    if dtype.kind in "bU":
        data = rng.integers(2, size=shape).astype(dtype)
    else:
        raw = bytearray(rng.bytes(int(np.prod(shape)) * dtype.itemsize))
        data = np.frombuffer(raw, dtype).reshape(shape)
    if draw(st.booleans()):
        data = np.asfortranarray(data)
    return data, axis - draw(st.sampled_from([0, rank]))


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """Each way to ask for a split; the lengths are drawn first, and what gives them follows."""
    kind = draw(st.sampled_from(sorted(KINDS)))
    operator, operands, sizes, keepdims = KINDS[kind](draw)
    data, axis = draw(arrays(sum(sizes)))
    return Case(operator, data, {"axis": axis, **operands}, sizes, keepdims)


def _explicit(draw: st.DrawFn) -> Asked:
    sizes = tuple(draw(st.lists(st.integers(0, 4), min_size=1, max_size=6)))
    splits: list[OperatorName] = ["onnx.Split-2", "onnx.Split-11", "onnx.Split-13", "onnx.Split-18"]
    sequences: list[OperatorName] = ["onnx.SplitToSequence-11", "onnx.SplitToSequence-24"]
    operator = draw(st.sampled_from(splits) | st.sampled_from(sequences))
    spelled: Any = draw(st.sampled_from([list, tuple, np.array]))
    return operator, {"split": spelled(sizes)}, sizes, True


def _remainder(draw: st.DrawFn) -> Asked:
    sizes = tuple(draw(st.lists(st.integers(0, 4), min_size=1, max_size=6)))
    lengths = list(sizes)
    lengths[draw(st.integers(0, len(sizes) - 1))] = -1
    return "openvino.VariadicSplit-1", {"split_lengths": lengths}, sizes, True


def _equal(draw: st.DrawFn) -> Asked:
    sizes = (draw(st.integers(0, 4)),) * draw(st.integers(1, 5))
    counts: dict[OperatorName, str] = {
        "openvino.Split-1": "num_splits",
        "onnx.Split-11": "num_outputs",
    }
    operator, name = draw(st.sampled_from(list(counts.items())))
    return operator, {name: len(sizes)}, sizes, True


def _ceil(draw: st.DrawFn) -> Asked:
    size, count = draw(st.integers(1, 4)), draw(st.integers(1, 5))
    last = draw(st.integers(max(0, size - count + 1), size))  # or a shorter size would do
    return "onnx.Split-18", {"num_outputs": count}, (size,) * (count - 1) + (last,), True


def _chunk(draw: st.DrawFn) -> Asked:
    size, count = draw(st.integers(1, 4)), draw(st.integers(0, 4))
    last = draw(st.integers(1, size))
    sizes = (size,) * count + (last,)
    return "onnx.SplitToSequence-24", {"split": size, "keepdims": 0}, sizes, True


def _ones(draw: st.DrawFn) -> Asked:
    sizes, keepdims = (1,) * draw(st.integers(0, 5)), draw(st.booleans())
    return "onnx.SplitToSequence-11", {"keepdims": int(keepdims)}, sizes, keepdims


KINDS: dict[str, Callable[[st.DrawFn], Asked]] = {
    "explicit": _explicit,
    "remainder": _remainder,
    "equal": _equal,
    "ceil": _ceil,
    "chunk": _chunk,
    "ones": _ones,
}


def plan_of(case: Case) -> ts.PreparedSplit:
    made: ts.PreparedSplit = ts.plan(case.operator, case.data.shape, **case.operands)
    return made


@given(cases())
def test_the_parts_are_the_slices(case: Case) -> None:
    want = slices(case.data, case.axis, case.sizes, case.keepdims)
    assert_same(plan_of(case)(case.data), want)


@given(cases())
def test_copies_and_buffers_hold_what_the_views_hold(case: Case) -> None:
    plan = plan_of(case)
    views = plan(case.data)
    assert_same(plan(case.data, copy=True), views)
    out = [np.empty(shape, case.data.dtype) for shape in part_shapes(plan)]
    assert_same(plan(case.data, out=out), views)


@given(cases())
def test_the_parts_concatenate_to_the_data(case: Case) -> None:
    plan = plan_of(case)
    parts = plan(case.data)
    assume(parts)
    joined = (np.concatenate if case.keepdims else np.stack)(parts, axis=case.axis)
    assert joined.shape == case.data.shape
    assert joined.astype(case.data.dtype).tobytes() == case.data.tobytes()


@given(cases())
def test_the_shapes_are_those_that_were_promised(case: Case) -> None:
    plan = plan_of(case)
    shapes = [part.shape for part in plan(case.data)]
    assert list(plan.output_shapes) == shapes
    assert ts.infer(case.operator, case.data.shape, **case.operands) == shapes
    assert plan.sizes == case.sizes
    assert len(plan.offsets) == len(case.sizes)


@given(cases())
def test_views_share_memory_and_copies_do_not(case: Case) -> None:
    plan = plan_of(case)
    for view in plan(case.data):
        assert view.size == 0 or np.shares_memory(view, case.data)
    copies = plan(case.data, copy=True)
    for number, copy in enumerate(copies):
        assert copy.flags.c_contiguous
        assert copy.flags.owndata
        assert not np.may_share_memory(copy, case.data)
        assert not any(np.may_share_memory(copy, other) for other in copies[:number])


@given(cases())
def test_symbols_evaluate_to_the_numbers(case: Case) -> None:
    axis = case.axis % case.data.ndim
    shape: list[Any] = [f"d{number}" for number in range(case.data.ndim)]
    values = {f"d{number}": dim for number, dim in enumerate(case.data.shape)}
    made = ts.infer(case.operator, shape, **case.operands)
    shapes = [part.shape for part in plan_of(case)(case.data)]
    if isinstance(made, ts.SequenceShape):
        assert evaluated(made.count, values) == len(shapes)
        shapes = shapes[:1]
        made = [made.part] if shapes else []
    assert len(made) == len(shapes)
    for symbolic, numbers in zip(made, shapes, strict=True):
        assert len(symbolic) == len(numbers)
        for place, (dim, number) in enumerate(zip(symbolic, numbers, strict=True)):
            if dim is None:
                assert (case.keepdims, place) == (True, axis)
            else:
                assert evaluated(dim, values) == number


def evaluated(dim: Any, values: dict[str, int]) -> object:
    if isinstance(dim, str):
        return values[dim]
    return dim.evaluate(values) if isinstance(dim, onnx_ir.SymbolicDim) else dim


@given(cases())
def test_the_axis_may_be_counted_from_either_end(case: Case) -> None:
    rank = case.data.ndim
    other = case.axis - rank if case.axis >= 0 else case.axis + rank
    plan = ts.plan(case.operator, case.data.shape, **{**case.operands, "axis": other})
    assert (plan.axis, plan.sizes) == (plan_of(case).axis, case.sizes)
