"""Parts of every library are joined by its own concatenation, bit for bit."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

import tensorsplit as ts
from tests.arrays.libraries.every import LIBRARIES, Library
from tests.arrays.libraries.test_every_library import CALLS, check, numbers
from tests.arrays.test_properties import Case, cases
from tests.oracle import DTYPES, random_array, same
from tests.refusals import refused


@pytest.fixture(params=LIBRARIES)
def library(request: pytest.FixtureRequest) -> Library:
    """Each library that is installed."""
    return LIBRARIES[request.param]()


@pytest.mark.parametrize("name", LIBRARIES)
def test_random_splits_are_joined(name: str) -> None:
    library = LIBRARIES[name]()

    @settings(max_examples=max(library.examples // 2, 5), suppress_health_check=list(HealthCheck))
    @given(cases())
    def run(case: Case) -> None:
        data = numbers(*case.data.shape)
        plan = ts.plan(case.operator, data.shape, **case.operands)
        check(library, lambda x: [plan.join(plan(x), like=x)], data, [data])
        check(library, lambda x: [plan.join(plan(x, copy=True), like=x, copy=True)], data, [data])

    run()


@pytest.mark.parametrize(("function", "operands", "sizes", "axis", "keepdims"), CALLS)
def test_every_operator_version(
    library: Library,
    function: Any,
    operands: dict[str, Any],
    sizes: tuple[int, ...],
    axis: int,
    keepdims: bool,
) -> None:
    def back(x: Any) -> list[Any]:
        return [ts.join(function(x, **operands), axis=axis, keepdims=keepdims, like=x)]

    data = numbers(4, 5)
    assert len(sizes) > 0
    check(library, back, data, [data])


@pytest.mark.parametrize("name", DTYPES)
def test_every_element_type_that_the_library_has(library: Library, name: str) -> None:
    if name not in library.element_types or name in ("int2", "uint2"):
        return  # joined in a process of its own, below
    data = random_array(name, (3, 256), np.random.default_rng(7))
    if DTYPES[name].name.startswith(("int4", "uint4", "float4")):
        data = data.astype(np.float32).astype(data.dtype)  # the bits that count, and no others
    plan = ts.plan("openvino.VariadicSplit-1", data.shape, axis=1, split_lengths=[128, 0, -1])
    if not library.splits_anew:
        check(library, lambda x: [plan.join(plan(x), copy=True)], data, [data])
        return
    parts = [library.make(part) for part in (data[:, :128], data[:, 128:128], data[:, 128:])]
    (whole,) = library.split(lambda parts: [plan.join(parts)], parts)
    assert same(library.read(whole), data)


CHILD = """
import jax, ml_dtypes, numpy as np, tensorsplit as ts
for dtype in (ml_dtypes.int2, ml_dtypes.uint2):
    data = np.random.default_rng(7).integers(0, 2, (3, 256)).astype(dtype)
    plan = ts.plan("openvino.VariadicSplit-1", data.shape, axis=1, split_lengths=[100, -1])
    parts = [jax.numpy.asarray(part) for part in np.split(data, [100], axis=1)]
    for join in (plan.join, jax.jit(plan.join)):
        whole = join(parts)
        assert whole.dtype == dtype
        assert (np.asarray(whole).astype(int) == data.astype(int)).all()
"""


def test_two_bits_do_not_end_the_process() -> None:
    pytest.importorskip("jax")
    done = subprocess.run(
        [sys.executable, "-c", CHILD], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_wrong_parts(library: Library) -> None:
    plan = ts.plan("onnx.Split-18", (4, 5), [1, 4], axis=1)
    data = library.make(numbers(4, 5))
    one, four = ts.split(data, [1, 4], axis=1)
    three, _ = ts.split(four, [3, 1], axis=1)
    short, _ = ts.split(four, [3, 1])
    wrong: list[tuple[str, str, Any]] = [
        ("TS311", "1 part given; give 2 parts", [one]),
        ("TS204", "type int", [one, 3]),
        ("TS312", "part 1 has shape", [one, three]),
        ("TS312", "part 1 has shape", [one, short]),
        ("TS312", "part 0 has shape", [four, one]),
    ]
    for code, words, parts in wrong:
        with refused(code, words, operator="onnx.Split-18"):
            plan.join(parts)
    with refused("TS312", "part 1 has shape"):
        ts.join([one, short], axis=1)
    if library.splits_anew:
        other = library.make(numbers(4, 4, dtype=np.int32))
        with refused("TS313", "int32", parameter="parts[1]"):
            plan.join([one, other])
    if type(one) is not np.ndarray and not isinstance(one, np.ndarray):
        with refused("TS313", "ndarray", parameter="parts[1]"):
            plan.join([one, numbers(4, 4)])
        with refused("TS313", type(four).__name__, parameter="parts[1]"):
            plan.join([numbers(4, 1), four])


def test_out(library: Library) -> None:
    data = numbers(4, 5)
    plan = ts.plan("onnx.Split-18", (4, 5), [1, 4], axis=1)
    array = library.make(data)
    parts = plan(array)
    out = library.make(np.full((4, 5), 7, np.float32))
    if not library.takes_out:
        with refused("TS403" if isinstance(array, np.ndarray) else "TS404", parameter="out"):
            plan.join(parts, out=out)
        return
    assert plan.join(parts, out=out) is out
    assert library.read(out).tobytes() == data.tobytes()
    wrong: list[tuple[str, Any]] = [
        ("TS402", library.make(np.zeros((5, 4), np.float32))),
        ("TS403", library.make(np.zeros((4, 5), np.int32))),
        ("TS403", [out]),
        ("TS405", array),
    ]
    for code, buffer in wrong:
        with refused(code, parameter="out"):
            plan.join(parts, out=buffer)
    rows = ts.plan("onnx.SplitToSequence-24", (4, 5), keepdims=0, axis=1)
    again = library.make(np.full((4, 5), 7, np.float32))
    assert library.read(rows.join(rows(array), out=again)).tobytes() == data.tobytes()


@pytest.mark.parametrize("copy", [None, True])
def test_gradients_flow_through_the_parts_of_tensors(copy: bool | None) -> None:
    torch = pytest.importorskip("torch")
    x = torch.arange(20.0).reshape(4, 5).requires_grad_()
    plan = ts.plan("onnx.Split-18", (4, 5), [1, 4], axis=1)
    one, four = plan(x)
    whole = plan.join([one, four], copy=copy)
    (seen,) = torch.autograd.grad((whole * whole).sum(), four)
    assert torch.equal(seen, 2 * four)
    with refused("TS314"):
        plan.join([one, four], copy=False)
    with torch.no_grad():
        assert plan.join([one, four], copy=False).data_ptr() == x.data_ptr()


@pytest.mark.parametrize("is_compiled", [False, True])
def test_gradients_flow_through_jax(is_compiled: bool) -> None:
    jax = pytest.importorskip("jax")
    x = jax.numpy.arange(20.0, dtype="bfloat16").reshape(4, 5)  # joined as integers
    plan = ts.plan("onnx.Split-18", (4, 5), [1, 4], axis=1)
    back = jax.grad(lambda y: (plan.join(plan(y)) ** 2).sum())
    seen = (jax.jit(back) if is_compiled else back)(x)
    np.testing.assert_array_equal(seen.astype("float32"), 2 * x.astype("float32"))
