"""What is not an array is refused with what to call, and its data is not printed."""

from __future__ import annotations

from array import array
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tensorsplit as ts
from tests.refusals import refused


def holding(**members: Any) -> Any:
    """An object of a class with these methods, which must not be called."""

    def never(*_args: object, **_kwargs: object) -> Any:
        raise AssertionError("called")

    methods = dict.fromkeys(members, never) | {"__repr__": lambda _self: "86421"}
    return type("Frame", (), methods)()


@pytest.mark.parametrize(
    ("value", "fix"),
    [
        ([86421.0, 1.0], "numpy.asarray"),
        ((86421, 1), "numpy.asarray"),
        (range(86421), "numpy.asarray"),
        (memoryview(b"86421"), "numpy.asarray"),
        (b"86421", "numpy.frombuffer"),
        (array("d", [86421.0]), "numpy.asarray"),
        (holding(to_numpy=1, __array__=1), "`to_numpy()`"),
        (holding(toarray=1, todense=1), "`toarray()`"),
        (holding(todense=1), "`todense()`"),
        (holding(numpy=1, __array__=1), "`numpy()`"),
        (holding(compute=1), "`compute()`"),
        (holding(collect=1), "`collect()`"),
        (holding(__array__=1), "numpy.asarray"),
        (holding(__dlpack__=1), "numpy.from_dlpack"),
        (holding(), "NumPy"),
        (86421, "NumPy"),
        ("86421", "NumPy"),
        (None, "NumPy"),
        (np, "NumPy"),
        (np.ndarray, "NumPy"),
    ],
)
def test_the_refusal_says_what_to_call(value: Any, fix: str) -> None:
    functions: list[Callable[[], Any]] = [
        lambda: ts.split(value, num_outputs=2),
        lambda: ts.split_to_sequence(value, 1),
        lambda: ts.variadic_split(value, 0, [1, -1]),
        lambda: ts.openvino.split(value, 0, 2),
        lambda: ts.plan("onnx.Split-18", (2,), num_outputs=2)(value),
    ]
    for function in functions:
        with pytest.raises(ts.SplitError) as caught:
            function()
        assert caught.value.code == "TS204"
        assert "86421" not in str(caught.value)
        assert fix in str(caught.value)


@pytest.mark.parametrize(
    ("library", "make", "fix"),
    [
        ("pandas", lambda pandas: pandas.Index([86421, 2]), "to_numpy()"),
        ("polars", lambda polars: polars.LazyFrame({"a": [86421, 2]}), "collect()"),
        ("scipy.sparse", lambda sparse: sparse.coo_array([[86421, 2]]), "toarray()"),
    ],
)
def test_objects_of_other_libraries(library: str, make: Any, fix: str) -> None:
    value = make(pytest.importorskip(library))
    with refused("TS204", fix):
        ts.split(value, num_outputs=2)
    with pytest.raises(ts.SplitError) as caught:
        ts.split(value, num_outputs=2)
    assert "86421" not in str(caught.value)


@pytest.mark.parametrize(
    ("module", "name", "fix"),
    [
        ("pint.registry", "Quantity", "split its `magnitude`"),
        ("xarray.core.dataset", "Dataset", "each of its variables"),
        ("awkward.highlevel", "Array", "where its lists differ in length"),
        ("keras.src.backend.common.variables", "Variable", "pass its `value`"),
        ("tensorflow.python.ops.ragged.ragged_tensor", "RaggedTensor", "pass its `to_tensor()`"),
        ("tensorflow.python.framework.sparse_tensor", "SparseTensor", "tensorflow.sparse.to_dense"),
    ],
)
def test_advice_that_works_and_not_what_the_methods_suggest(
    module: str, name: str, fix: str
) -> None:
    methods = {"__module__": module, "compute": 1, "to_numpy": 1, "__array__": 1}
    value: Any = type(name, (), methods)()
    with refused("TS204", fix):
        ts.split(value, [1, 1])


def test_what_a_refusal_says_of_quantities_works() -> None:
    pint = pytest.importorskip("pint")
    value = pint.UnitRegistry().Quantity(np.arange(3.0), "m")
    with refused("TS204", "split its `magnitude`, and multiply the parts by its `units`"):
        ts.split(value, [1, 2])
    parts = [part * value.units for part in ts.split(value.magnitude, [1, 2])]
    assert (parts[1] == value[1:]).all()


def test_what_a_refusal_says_of_data_sets_works() -> None:
    xarray = pytest.importorskip("xarray")
    value = xarray.Dataset({"a": ("i", np.arange(3))})
    with refused("TS204", "the `to_numpy()` of each of its variables"):
        ts.split(value, [1, 2])
    assert ts.split(value["a"].to_numpy(), [1, 2])[1].tolist() == [1, 2]


def test_what_a_refusal_says_works() -> None:
    value: Any = b"ab"
    with refused("TS204", "pass `numpy.frombuffer` of it"):
        ts.split(value, [1, 1])
    parts = ts.split(np.frombuffer(value, np.uint8), [1, 1])
    assert [part.tolist() for part in parts] == [[97], [98]]


def test_what_a_refusal_says_of_a_message_of_onnx_works() -> None:
    onnx = pytest.importorskip("onnx")
    message = onnx.numpy_helper.from_array(np.arange(3, 5))
    with refused("TS204", "pass `onnx.numpy_helper.to_array` of it"):
        ts.split(message, [1, 1])
    parts = ts.split(onnx.numpy_helper.to_array(message), [1, 1])
    assert [part.tolist() for part in parts] == [[3], [4]]


@pytest.mark.engine("openvino")
def test_what_a_refusal_says_of_objects_of_openvino_works() -> None:
    openvino = pytest.importorskip("openvino")
    tensor = openvino.Tensor(np.arange(3, 5))
    with refused("TS204", "pass its `data`"):
        ts.split(tensor, [1, 1])
    assert [part.tolist() for part in ts.split(tensor.data, [1, 1])] == [[3], [4]]
    node = openvino.opset13.parameter([2], np.float32)
    for value in (node, node.output(0)):
        with refused("TS204", "`variadic_split` of openvino's opset"):
            ts.split(value, [1, 1])
        assert len(openvino.opset13.variadic_split(value, 0, [1, 1]).outputs()) == 2


def test_lengths_that_are_no_array_are_not_printed() -> None:
    for lengths, fix in (
        (holding(to_numpy=1, __array__=1), "`to_numpy()`"),
        (holding(__dlpack__=1), "numpy.from_dlpack"),
    ):
        with pytest.raises(ts.SplitError) as caught:
            ts.split(np.arange(4), lengths)
        assert caught.value.code == "TS105"
        assert fix in str(caught.value)
        assert "86421" not in str(caught.value)


def test_subclasses_of_numpy_stay_what_they_are() -> None:
    class Named(np.ndarray):
        def __array_namespace__(self, **_kwargs: object) -> Any:
            raise AssertionError("NumPy comes first")

    data = np.arange(6.0).view(Named)
    assert {type(part) for part in ts.split(data, [2, 4])} == {Named}
    masked = np.ma.masked_greater(np.arange(6), 3)
    for copy in (False, True):
        second = ts.split(masked, [3, 3], copy=copy)[1]
        assert second.tolist() == [3, None, None]
