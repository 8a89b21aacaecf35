"""What is special to arrays of JAX."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tensorsplit as ts
from tensorsplit.arrays import numpy as numpy_arrays
from tests.refusals import refused

jax = pytest.importorskip("jax")
export = pytest.importorskip("jax.export")
jnp = jax.numpy
x = jnp.arange(20.0).reshape(4, 5)


def exported(shape: str, function: Any, *constraints: str) -> list[str]:
    """The shapes of the parts in a module exported for symbolic shapes."""
    dims = export.symbolic_shape(shape, constraints=constraints)
    spec = jax.ShapeDtypeStruct(dims, jnp.float32)
    parts = export.export(jax.jit(function))(spec).out_avals
    return [str(part.shape[0]) for part in parts]


def test_a_split_is_one_operation_of_jax() -> None:
    traced = jax.make_jaxpr(lambda x: ts.split(x, [1, 4], axis=1))(x)
    assert [equation.primitive.name for equation in traced.eqns] == ["split"]


def test_lengths_that_are_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(numpy_arrays, "MAX_PARTS", 3)
    assert len(ts.split(x, jnp.array([2, 1, 1]))) == 3
    with refused("TS308", "it has 4 elements", parameter="split"):
        ts.split(x, jnp.ones(4, int))


def test_parts_of_which_only_one_is_traced_are_joined() -> None:
    """Where a traced array is, is not known."""
    rest = x[2:]
    made = jax.jit(lambda part: ts.join([part, rest]))(x[:2])
    np.testing.assert_array_equal(made, x)


def test_gradients() -> None:
    def loss(x: Any) -> Any:
        first, second = ts.split(x, [1, 4], axis=1)
        return 3 * first.sum() + (second**2).sum()

    want = np.concatenate([np.full((4, 1), 3.0), 2 * np.asarray(x)[:, 1:]], axis=1)
    np.testing.assert_array_equal(jax.grad(loss)(x), want)
    np.testing.assert_array_equal(jax.jit(jax.grad(loss))(x), want)


def test_vmap_hides_an_axis() -> None:
    parts = jax.vmap(lambda row: ts.split(row, [1, 4]))(x)
    assert [part.shape for part in parts] == [(4, 1), (4, 4)]
    parts = jax.vmap(lambda row: ts.split_to_sequence(row, keepdims=0), in_axes=1, out_axes=0)(x)
    assert [part.tolist() for part in parts] == np.asarray(x).tolist()
    with refused("TS202"):
        jax.vmap(lambda row: ts.split(row, [1]))(x[0])


def test_errors_are_raised_while_jax_traces() -> None:
    with refused("TS302", "sums to 6", "dimension is 5"):
        jax.jit(lambda x: ts.split(x, [2, 4], axis=1)).lower(x)


def test_keys() -> None:
    keys = jax.random.split(jax.random.key(0), 4)
    first, rest = ts.variadic_split(keys, 0, [1, -1], copy=True)
    assert (first.dtype, rest.shape) == (keys.dtype, (3,))
    want = jax.random.key_data(keys)[1:]
    np.testing.assert_array_equal(jax.random.key_data(rest), want)
    with refused("TS201", "key<"):
        ts.split(keys, num_outputs=2)
    with refused("TS105"):
        ts.split(x, keys, axis=0)


def test_traced_lengths_are_refused_and_static_ones_work() -> None:
    lengths = jnp.array([1, 4])
    with refused("TS105", "traced", "static", parameter="split"):
        jax.jit(lambda x, lengths: ts.split(x, lengths, axis=1))(x, lengths)
    with refused("TS105", "traced", "static", parameter="split"):
        jax.jit(lambda x, length: ts.split(x, [length, 4], axis=1))(x, 1)
    with refused("TS105", parameter="axis"):
        jax.jit(lambda x, axis: ts.split(x, [1, 4], axis=axis))(x, 1)
    with refused("TS105", parameter="num_outputs"):
        jax.jit(lambda x, count: ts.split(x, num_outputs=count))(x, 2)
    split = jax.jit(lambda x, lengths: ts.split(x, lengths, axis=1), static_argnums=1)
    assert [part.shape for part in split(x, (1, 4))] == [(4, 1), (4, 4)]
    assert len(ts.split(x, [jnp.int32(1), np.int8(3)], axis=jnp.int32(0))) == 2


@pytest.mark.parametrize(
    ("shape", "constraints", "function", "sizes"),
    [
        ("3*b, 4", (), lambda x: ts.split(x, num_outputs=3), ["b"] * 3),
        ("3*b, 4", (), lambda x: ts.split(x, num_outputs=3, opset=13), ["b"] * 3),
        ("b, 4", ("b >= 2",), lambda x: ts.variadic_split(x, 0, [2, -1]), ["2", "b - 2"]),
        ("b, 4", (), lambda x: ts.split(x, [1, x.shape[0] - 1]), ["1", "b - 1"]),
        ("b, 4", (), lambda x: ts.split(x, [1, 3], axis=1), ["b", "b"]),
        ("b, 8", ("b <= 8",), lambda x: ts.variadic_split(x, 1, [x.shape[0], -1]), ["b"] * 2),
        ("b, 4", ("mod(b, 2) == 0",), lambda x: ts.openvino.split(x, 0, 2), ["floordiv(b, 2)"] * 2),
        ("b, 4", (), lambda x: ts.split_to_sequence(x, 3, axis=1), ["b", "b"]),
    ],
)  # fmt: skip
def test_symbolic_shapes_whose_lengths_can_be_proved(
    shape: str, constraints: tuple[str, ...], function: Any, sizes: list[str]
) -> None:
    assert exported(shape, function, *constraints) == sizes


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (lambda x: ts.split(x, [1, 3]), "fit the dimension b"),
        (lambda x: ts.split(x, num_outputs=3), "not below 0"),
        (lambda x: ts.split(x, num_outputs=3, opset=13), "fit the dimension b"),
        (lambda x: ts.variadic_split(x, 0, [2, -1]), "b - 2 is not below 0"),
        (lambda x: ts.split(x, [x.shape[0], 4], axis=1), "fit the dimension 4"),
        (lambda x: ts.split_to_sequence(x, 2), "the number of parts"),
        (ts.split_to_sequence, "the number of parts is b"),
        (ts.plan("onnx.Split-18", ("b", 4), [1, 3]), "fit the dimension b"),
    ],
)
def test_symbolic_shapes_are_never_made_numbers(function: Any, words: str) -> None:
    with refused("TS309", words, "constraints"):
        exported("b, 4", function)


def test_symbols_where_numbers_are_needed() -> None:
    with refused("TS309", parameter="num_outputs"):
        exported("b, 4", lambda x: ts.split(x, num_outputs=x.shape[0]))
    with refused("TS309", parameter="axis"):
        exported("b, 4", lambda x: ts.split(x, num_outputs=1, axis=x.shape[0]))
    with refused("TS206"):
        exported("b, 4", ts.plan("onnx.Split-18", (6, 4), num_outputs=3))


def test_infer_and_plan_take_symbolic_shapes() -> None:
    b, c = export.symbolic_shape("b, 2*c")
    assert ts.infer("onnx.Split-18", (b, c), num_outputs=2, axis=1) == [(b, c // 2)] * 2
    shapes = ts.infer("openvino.VariadicSplit-1", (b, 4), axis=0, split_lengths=[1, -1])
    assert shapes == [(1, 4), (b - 1, 4)]
    found = ts.infer("onnx.SplitToSequence-24", (b, 4), 3)
    assert isinstance(found, ts.SequenceShape)
    assert str(found.count) == str(-(-b // 3))
    plan = ts.plan("onnx.Split-18", (b, 4), num_outputs=2)
    assert [part.shape for part in plan(np.zeros((3, 4)))] == [(2, 4), (1, 4)]


def test_what_is_no_array_is_refused() -> None:
    with refused("TS204", "todense"):
        ts.split(pytest.importorskip("jax.experimental.sparse").BCOO.fromdense(x), [1, 3])
    with refused("TS204", "ShapeDtypeStruct"):
        ts.split(jax.ShapeDtypeStruct((4, 5), jnp.float32), [1, 3])
