"""TensorFlow and Keras beyond what every library does: tracing, gradients, variables, models."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import pytest

import tensorsplit as ts
from tests.refusals import refused

tf = pytest.importorskip("tensorflow")
keras = pytest.importorskip("keras")


def numbers(*shape: int) -> Any:
    return np.random.default_rng(11).standard_normal(shape).astype(np.float32)


def test_gradients_flow_through_parts_and_through_what_is_joined() -> None:
    x = tf.constant(numbers(3, 5))
    with tf.GradientTape() as tape:
        tape.watch(x)
        one, four = ts.split(x, [1, 4], axis=1)
        whole = ts.join([2 * one, 3 * four], axis=1)
        loss = tf.reduce_sum(whole)
    assert tape.gradient(loss, x).numpy().tolist() == [[2, 3, 3, 3, 3]] * 3


def test_a_variable_is_split_and_gets_gradients() -> None:
    data = numbers(4, 6)
    variable = tf.Variable(data)
    with tf.GradientTape() as tape:
        first, second = ts.split(variable, num_outputs=2, axis=1)
        loss = tf.reduce_sum(second)
    assert first.numpy().tolist() == data[:, :3].tolist()
    assert tape.gradient(loss, variable).numpy().tolist() == [[0, 0, 0, 1, 1, 1]] * 4
    variable.assign(2 * data)
    second = ts.split(variable, num_outputs=2, axis=1)[1]
    assert second.numpy().tolist() == (2 * data[:, 3:]).tolist()


def traced(function: Any, *shape: int | None) -> Any:
    return tf.function(function, input_signature=[tf.TensorSpec(shape, tf.float32)])


def test_a_dimension_that_is_not_known_while_tracing() -> None:
    data = numbers(7, 5)
    split = traced(lambda x: ts.split(x, [2, 3], axis=1), None, 5)
    assert [part.numpy().tolist() for part in split(data)] == [
        data[:, :2].tolist(),
        data[:, 2:].tolist(),
    ]
    assert split.get_concrete_function().structured_outputs[1].shape.as_list() == [None, 3]
    with pytest.raises(Exception, match=r"TS309.*give the dimension in the `input_signature`"):
        traced(lambda x: ts.split(x, num_outputs=2), None, 5)(data)
    rankless = tf.function(
        lambda x: ts.split(x, num_outputs=2),
        input_signature=[tf.TensorSpec(None, tf.float32)],
        autograph=False,
    )
    with refused("TS204", "call its `set_shape`"):
        rankless(data)


def test_autograph_takes_all_that_splits_and_joins() -> None:
    plan = ts.plan("onnx.Split-18", (4, 6), [2, 4], axis=1)
    data = numbers(4, 6)

    def back(x: Any) -> Any:
        first = plan.join(plan(x))
        second = ts.join(ts.variadic_split(first, 1, [-1, 1]), axis=1)
        return ts.join(ts.like("torch.chunk")(second, 2))

    assert tf.function(back)(data).numpy().tolist() == data.tolist()


def test_lengths_with_names_that_a_module_holds() -> None:
    """A module has a proxy in the place of a dict."""
    data, module = numbers(4, 6), tf.Module()
    module.lengths = {"q": 1, "k": 3}
    assert type(module.lengths) is not dict
    plan = ts.plan("onnx.Split-18", data.shape, module.lengths)

    def split(x: Any) -> Any:
        return ts.split(x, module.lengths)

    for parts in (split(tf.constant(data)), tf.function(split)(data), plan(data)):
        found = {name: np.asarray(part).tolist() for name, part in parts.items()}
        assert found == {"q": data[:1].tolist(), "k": data[1:].tolist()}


def wrong_split(x: Any) -> Any:
    return ts.split(x, [2, 5])


def wrong_dialect(x: Any) -> Any:
    return ts.like("tensorflow.split")(x, [2, 5])


def wrong_plan(x: Any) -> Any:
    return ts.plan("onnx.Split-18", (7,), [2, 5])(x)


def wrong_lengths(x: Any) -> Any:
    return ts.plan("onnx.Split-18", (4,), [2, 5])(x)


def wrong_join(x: Any) -> Any:
    return ts.join([x, x[0]])


@pytest.mark.parametrize(
    ("function", "code"),
    [
        (wrong_split, "TS302"),
        (wrong_dialect, "TS302"),
        (wrong_plan, "TS206"),
        (wrong_lengths, "TS302"),
        (wrong_join, "TS312"),
    ],
)
def test_autograph_rewrites_no_function_that_decides(function: Any, code: str) -> None:
    with pytest.raises(Exception, match=code) as caught:
        tf.function(function)(numbers(4, 6))
    rewritten = [line for line in str(caught.value).splitlines() if line.endswith("  *")]
    assert function.__name__ in rewritten[0]
    assert not any("tensorsplit/core" in line.replace(os.sep, "/") for line in rewritten)


def test_lengths_while_tracing_are_constants() -> None:
    data = numbers(4, 6)
    constant = tf.function(lambda x: ts.split(x, tf.constant([1, 3])), autograph=False)
    assert [part.shape[0] for part in constant(data)] == [1, 3]
    given = tf.function(ts.split, autograph=False)
    with refused("TS105", "it is traced", parameter="split"):
        given(tf.constant(data), tf.constant([1, 3]))


def test_strings() -> None:
    data = tf.constant([["a", "é", ""], ["d", "longer", "日本"]])
    first, rest = ts.split(data, [1, 2], axis=1)
    assert first.numpy().tolist() == [[b"a"], [b"d"]]
    assert ts.join([first, rest], axis=1).numpy().tolist() == data.numpy().tolist()


@pytest.mark.parametrize("name", ["int4", "float8_e4m3fnuz", "qint32"])
def test_types_that_tensorflow_can_hold_and_not_split(name: str) -> None:
    dtype = tf.dtypes.as_dtype(name)
    data = tf.constant(np.array([1, 1]).astype(dtype.as_numpy_dtype), dtype)
    with refused("TS204", name, "cast it"):
        ts.variadic_split(data, 0, [1, -1])


def test_a_sparse_tensor_of_keras_is_refused_after_a_dense_one_like_it() -> None:
    for _ in range(2):
        assert len(ts.split(keras.KerasTensor((4, 6)), [2, 4], axis=1)) == 2
    with refused("TS204", "the tensor is sparse", "split a dense one", parameter="input"):
        ts.split(keras.KerasTensor((4, 6), sparse=True), [2, 4], axis=1)


def model_of(split: Any, *shape: int) -> Any:
    given = keras.Input(shape)
    return keras.Model(given, split(given))


def test_a_model_of_keras_splits_and_joins() -> None:
    data = numbers(3, 7, 4)
    plan = ts.plan("onnx.Split-18", (None, 7, 4), num_outputs=3, axis=1)
    model = model_of(lambda x: [*plan(x), plan.join(plan(x))], 7, 4)
    *parts, whole = map(keras.ops.convert_to_numpy, model(data))
    assert [part.shape for part in parts] == [(3, 3, 4), (3, 3, 4), (3, 1, 4)]
    assert np.concatenate(parts, axis=1).tobytes() == data.tobytes() == whole.tobytes()


def test_the_batch_of_a_model_is_not_known() -> None:
    with refused("TS309", "`keras.Input`"):
        model_of(lambda x: ts.split(x, num_outputs=2), 4)


def test_lengths_that_a_model_calculates() -> None:
    with refused("TS105", "it is symbolic", parameter="split"):
        model_of(lambda x: ts.split(x, keras.KerasTensor((2,), "int32"), axis=1), 4)
