"""One adapter for each library: how to make its arrays, and how to read them back."""

from __future__ import annotations

import functools
import os
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tensorsplit as ts
from tests.oracle import CLASSIC, DTYPES, Array

STANDARD = (
    *(f"{kind}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)),
    "bool",
    "float",
    "double",
)
"""The element types of the first array API standard; complex ones came with the second."""


class Library:
    """NumPy, and the defaults of the others."""

    element_types: tuple[str, ...] = tuple(DTYPES)
    takes_out = True
    """Whether parts can be written to arrays."""
    has_lengths = True
    """Whether an array may give the lengths."""
    examples = 25
    """How many random cases are quick enough."""
    splits_anew = True
    """Whether two arrays can be made that know nothing of each other."""
    is_found_again = True
    """Whether a call is remembered; not for what is refused for more than class, shape and type."""

    def make(self, array: Array) -> Any:
        """An array of the library that holds the same."""
        return array

    def read(self, part: Any) -> Array:
        """What a part holds."""
        assert isinstance(part, np.ndarray)
        return part

    def split(self, function: Callable[[Any], list[Any]], data: Any) -> list[Any]:
        """The parts that a function makes of an array."""
        return function(data)


class Masked(Library):
    """NumPy's masked arrays."""

    element_types = CLASSIC
    takes_out = has_lengths = False

    def make(self, array: Array) -> Any:
        return np.ma.masked_array(array, np.arange(array.size).reshape(array.shape) % 3 == 0)

    def read(self, part: Any) -> Array:
        assert isinstance(part, np.ma.MaskedArray)
        assert part.mask.shape == part.shape
        return np.asarray(part.data)


class Torch(Library):
    """CPU tensors."""

    element_types = (
        *STANDARD,
        *("float16", "bfloat16", "complex64", "complex128", "float8e4m3fn", "float8e5m2"),
        *("float8e4m3fnuz", "float8e5m2fnuz"),
    )

    def __init__(self) -> None:
        self.torch = pytest.importorskip("torch")

    def make(self, array: Array) -> Any:
        if array.dtype.kind in "biufc" and array.dtype.name in dir(np):
            return self.torch.from_numpy(array)
        shell = self.torch.from_numpy(array.view(f"u{array.itemsize}"))
        return shell.view(getattr(self.torch, array.dtype.name))

    def read(self, part: Any) -> Array:
        assert type(part) is self.torch.Tensor
        name = str(part.dtype).removeprefix("torch.")
        dtype = next(each for each in DTYPES.values() if getattr(each, "name", "") == name)
        shell = getattr(self.torch, f"uint{8 * dtype.itemsize}", None)
        found: Array = (part.numpy() if name in dir(np) else part.view(shell).numpy()).view(dtype)
        return found


class TorchOnDevice(Torch):
    """Tensors on a GPU, where there is one."""

    def __init__(self) -> None:
        super().__init__()
        if not self.torch.cuda.is_available():
            pytest.skip("no device for torch")

    def make(self, array: Array) -> Any:
        return super().make(array.copy()).cuda()

    def read(self, part: Any) -> Array:
        assert part.is_cuda
        return super().read(part.cpu())


class Jax(Library):
    """Arrays of JAX, with its 64-bit types."""

    element_types = tuple(
        name for name in DTYPES if not name.startswith(("string", "float6", "float8_e4m3b11"))
    )
    takes_out = False
    examples = 12

    def __init__(self) -> None:
        self.jax = pytest.importorskip("jax")
        self.jax.config.update("jax_enable_x64", True)

    def make(self, array: Array) -> Any:
        return self.jax.numpy.asarray(array)

    def read(self, part: Any) -> Array:
        assert isinstance(part, self.jax.Array)
        return np.asarray(part)


class JaxCompiled(Jax):
    """Arrays that are traced."""

    examples = 8
    element_types = ("float", "bfloat16", "int4", "float8e5m2", "bool")

    def split(self, function: Callable[[Any], list[Any]], data: Any) -> list[Any]:
        found: list[Any] = self.jax.jit(function)(data)
        return found


class Dask(Library):
    """Arrays of Dask, in chunks of two, or of a quarter of a long axis."""

    takes_out = has_lengths = False
    examples = 15

    def __init__(self) -> None:
        self.array = pytest.importorskip("dask.array")

    def make(self, array: Array) -> Any:
        chunks = tuple(max(2, -(-dim // 4)) for dim in array.shape)
        return self.array.from_array(array, chunks=chunks)

    def read(self, part: Any) -> Array:
        assert isinstance(part, self.array.Array)
        found: Array = np.asarray(part.compute(scheduler="sync"))
        assert found.dtype == part.dtype
        return found


class ArrayApi(Library):
    """Arrays of a version of the array API standard, and of nothing outside of it."""

    def __init__(self, version: str, device: str = "CPU_DEVICE") -> None:
        self.xp = pytest.importorskip("array_api_strict")
        self.version, self.device = version, self.xp.Device(device)
        self.element_types = STANDARD
        if version > "2021.12":
            self.element_types += ("complex64", "complex128")

    def make(self, array: Array) -> Any:
        return self.xp.asarray(array.copy(), device=self.device)

    def read(self, part: Any) -> Array:
        assert isinstance(part, type(self.xp.asarray(0)))
        assert part.device == self.device
        return np.from_dlpack(self.xp.asarray(part, device=self.xp.Device("CPU_DEVICE")))

    def split(self, function: Callable[[Any], list[Any]], data: Any) -> list[Any]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # 2021.12 is 2022.12 in all but name
            with self.xp.ArrayAPIStrictFlags(api_version=self.version):
                return function(data)


class OnDevice(Library):
    """CuPy's or dpnp's arrays, where there is a device for them."""

    element_types = (*STANDARD, "complex64", "complex128")

    def __init__(self, name: str) -> None:
        self.xp = pytest.importorskip(name)
        try:
            self.xp.zeros(1)
        except Exception as error:  # noqa: BLE001 - each library has its own
            pytest.skip(f"no device: {error}")

    def make(self, array: Array) -> Any:
        return self.xp.asarray(array)

    def read(self, part: Any) -> Array:
        assert isinstance(part, self.xp.ndarray)
        found: Array = self.xp.asnumpy(part)
        return found


class TensorFlow(Library):
    """Eager tensors."""

    element_types = (
        *STANDARD,
        *("float16", "bfloat16", "complex64", "complex128", "float8e4m3fn", "float8e5m2"),
    )
    takes_out = False

    def __init__(self) -> None:
        self.tf = pytest.importorskip("tensorflow")

    def make(self, array: Array) -> Any:
        return self.tf.constant(array)

    def read(self, part: Any) -> Array:
        assert isinstance(part, self.tf.Tensor)
        found: Array = part.numpy()
        return found


class TensorFlowTraced(TensorFlow):
    """Tensors that `tf.function` traces."""

    examples = 8

    def split(self, function: Callable[[Any], list[Any]], data: Any) -> list[Any]:
        found: list[Any] = self.tf.function(function, autograph=False)(data)
        return found


class Keras(Library):
    """Symbolic tensors, of which a model is made that runs."""

    element_types = (*STANDARD, "float16")
    takes_out = has_lengths = splits_anew = is_found_again = False
    examples = 6

    def __init__(self) -> None:
        self.keras = pytest.importorskip("keras")

    def make(self, array: Array) -> Any:
        self.data = array
        self.value = self.keras.KerasTensor(array.shape, array.dtype.name)
        return self.value

    def read(self, part: Any) -> Array:
        if part is self.value:
            return self.data
        found = self.keras.Function(self.value, part)(self.keras.ops.convert_to_tensor(self.data))
        read: Array = self.keras.ops.convert_to_numpy(found)
        return read


class Tinygrad(Library):
    """Lazy tensors, of the types whose bits its device in Python keeps when it calculates."""

    element_types = (*(name for name in STANDARD if name != "float"),)
    takes_out = False
    examples = 6

    def __init__(self) -> None:
        os.environ.setdefault("DEV", "PYTHON")  # its CPU device needs clang
        self.tinygrad = pytest.importorskip("tinygrad")

    def make(self, array: Array) -> Any:
        flat = self.tinygrad.Tensor(array.reshape(-1))  # one of rank 0 would be a constant
        return flat.reshape(array.shape)

    def read(self, part: Any) -> Array:
        assert isinstance(part, self.tinygrad.Tensor)
        found: Array = part.numpy()
        return found


class Ndonnx(Library):
    """Arrays of ndonnx whose values are known."""

    element_types = (*STANDARD, "float16")
    takes_out = False
    examples = 8

    def __init__(self) -> None:
        self.xp = pytest.importorskip("ndonnx")

    def make(self, array: Array) -> Any:
        return self.xp.asarray(array)

    def read(self, part: Any) -> Array:
        assert isinstance(part, self.xp.Array)
        try:
            found: Array = part.unwrap_numpy()
        except ValueError:  # it knows no values of empty arrays that a node makes
            model = self.xp.build({}, {"y": part})
            found = ts.run(model, {})["y"]
        return found


class NdonnxTraced(Ndonnx):
    """Arrays of ndonnx that stand for the input of a model, which is then run."""

    has_lengths = splits_anew = False

    def make(self, array: Array) -> Any:
        self.data = array
        dtype = getattr(self.xp, array.dtype.name)
        self.value = self.xp.argument(shape=array.shape, dtype=dtype)
        return self.value

    def read(self, part: Any) -> Array:
        model = self.xp.build({"x": self.value}, {"y": part})
        found: Array = ts.run(model, {"x": self.data})["y"]
        return found


class OnnxIr(Library):
    """Values of a graph, which is then run as a model."""

    element_types = (*CLASSIC, "bfloat16")
    takes_out = has_lengths = splits_anew = is_found_again = False
    examples = 8

    def make(self, array: Array) -> Any:
        import onnx_ir as ir

        self.data = array
        dtype = (
            ir.DataType.STRING if array.dtype.kind == "O" else ir.DataType.from_numpy(array.dtype)
        )
        self.value = ir.Value(name="x", shape=ir.Shape(array.shape), type=ir.TensorType(dtype))
        self.graph = ir.Graph([self.value], [], nodes=[], opset_imports={"": 18}, name="g")
        return self.value

    def read(self, part: Any) -> Array:
        import onnx_ir as ir

        self.graph.outputs[:] = [part]
        model = ir.to_proto(ir.Model(self.graph, ir_version=8))
        found: Array = ts.run(model, {"x": self.data})[part.name]
        return found


LIBRARIES: dict[str, Callable[[], Library]] = {
    "numpy": Library,
    "numpy.ma": Masked,
    "torch": Torch,
    "torch on a device": TorchOnDevice,
    "jax": Jax,
    "jax.jit": JaxCompiled,
    "dask": Dask,
    **{
        f"array_api_strict-{version}": functools.partial(ArrayApi, version)
        for version in ("2021.12", "2022.12", "2023.12", "2024.12", "2025.12")
    },
    "array_api_strict on a device": functools.partial(ArrayApi, "2024.12", "device1"),
    "dpnp": functools.partial(OnDevice, "dpnp"),
    "cupy": functools.partial(OnDevice, "cupy"),
    "ndonnx": Ndonnx,
    "ndonnx traced": NdonnxTraced,
    "onnx_ir": OnnxIr,
    "tensorflow": TensorFlow,
    "tensorflow.function": TensorFlowTraced,
    "keras": Keras,
    "tinygrad": Tinygrad,
}
