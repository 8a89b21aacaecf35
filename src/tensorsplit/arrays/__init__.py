"""One thin file for each array library, and the choice between them.

The type of the given array shows its library: nothing is imported here but NumPy, and a
caller who passes another library's array has imported that library already.
"""

from __future__ import annotations

import sys
from array import array
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, Protocol, TypeAlias, TypeVar

import numpy as np

from tensorsplit.arrays import numpy as numpy_arrays
from tensorsplit.arrays.buffers import no_view, refuse_out, refuse_to_write
from tensorsplit.arrays.pool import BufferPool
from tensorsplit.arrays.typed import NamedOut
from tensorsplit.core.dimensions import Shape
from tensorsplit.core.errors import NOT_AN_ARRAY, OPERAND_TYPE, USAGE, Kind, SplitError, wrong_type
from tensorsplit.core.given import is_a
from tensorsplit.core.plan import SplitPlan, prove

_ArrayT = TypeVar("_ArrayT")


class LibraryOf(Protocol[_ArrayT]):
    """The functions that the file of a library defines, for arrays of a type.

    `_LEFT_OUT` stands for what it leaves out, as its library has no views or writes to no buffers.
    """

    unknown: str | None
    """Called where it is not known whether parts fit; None where the library finds that out."""

    def is_array(self, value: object) -> bool:
        """Return whether the value is an array of this library; one answer for each type."""

    def check(self, array: _ArrayT) -> bool | None:
        """Refuse an array of a kind that can't be split (TS204), with what to call instead.

        Returns whether others of its class, shape and element type may be refused; None for no.
        """

    def element_type(self, array: _ArrayT) -> str:
        """Return the name of the element type, as in the schemas of ONNX."""

    def shape(self, array: _ArrayT) -> Shape:
        """Return the shape; what only the library's tracing knows is a dimension of `core`."""

    def operand_parts(self, value: _ArrayT, name: str) -> tuple[tuple[float, ...], int, str]:
        """Return the elements in order, the rank and the element type of an operand.

        One whose values are not known yet is refused (TS105).
        """

    def views(self, array: _ArrayT, plan: SplitPlan) -> list[_ArrayT]:
        """Return the parts, as views where the library has them."""

    def copies(self, array: _ArrayT, plan: SplitPlan) -> list[_ArrayT]:
        """Return the parts as new contiguous arrays."""

    def pooled(self, array: _ArrayT, plan: SplitPlan, pool: BufferPool) -> list[_ArrayT]:
        """Return the parts as contiguous arrays in the memory of a pool."""

    def copies_into(self, array: _ArrayT, plan: SplitPlan, out: object) -> list[_ArrayT]:
        """Copy the parts into buffers, which may be anything that a caller gave (TS401...)."""

    def kind(self, array: _ArrayT) -> tuple[object, ...]:
        """Return a key that the parts of an array share: the element type, and the device.

        None stands for what is not known while the library traces.
        """

    def joined_view(self, parts: list[_ArrayT], plan: SplitPlan) -> _ArrayT | None:
        """Return the array whose views the parts are, in order, without a copy; else None."""

    def joined(self, parts: list[_ArrayT], plan: SplitPlan) -> _ArrayT:
        """Return one or more parts, which fit the plan, as one new array."""

    def joined_in_pool(self, parts: list[_ArrayT], plan: SplitPlan, pool: BufferPool) -> _ArrayT:
        """Return the parts as one array in the memory of a pool."""

    def joined_into(self, parts: list[_ArrayT], plan: SplitPlan, out: object) -> object:
        """Copy the parts into a buffer, which may be anything that a caller gave (TS402...)."""


ArrayLibrary: TypeAlias = LibraryOf[Any]
"""The file of any library; the type of the given array decides which one."""

_FILES = {
    "numpy": "numpy",
    "torch": "torch",
    "jax": "jax",
    "jaxlib": "jax",
    "dask": "dask",
    "onnx_ir": "onnx_ir",
    "ndonnx": "ndonnx",
    "spox": "ndonnx",
    "pandas": "tables",
    "polars": "tables",
    "pyarrow": "tables",
    "scipy": "sparse",
    "tensorflow": "tensorflow",
    "keras": "keras",
    "tinygrad": "tinygrad",
}
"""The file of each library, by the name of the module that its types are of."""

_LEFT_OUT: Mapping[str, Callable[..., object]] = {
    "joined_view": no_view,
    "pooled": refuse_out,
    "copies_into": refuse_out,
    "joined_in_pool": refuse_to_write,
    "joined_into": refuse_to_write,
}
"""What stands for the functions that the file of a library leaves out."""

by_type: dict[type, ArrayLibrary] = {np.ndarray: numpy_arrays}
"""The library of each type of arrays that was seen."""


def find_library(value: object) -> ArrayLibrary | None:
    """Return the library that the value is an array of, or None."""
    kind = type(value)
    library = by_type.get(kind)
    if library is None:
        library = next((each for each in _candidates(kind) if each.is_array(value)), None)
        if library is not None and len(by_type) < 1024:
            by_type[kind] = library
    return library


def _candidates(kind: type) -> list[ArrayLibrary]:
    """Return the libraries that the classes of a type are of, NumPy first, the standard's last."""
    roots = {_root(each) for each in kind.__mro__}
    files = [file for root, file in _FILES.items() if root in roots and root in sys.modules]
    if hasattr(kind, "__array_namespace__") or "cupy" in roots:
        files.append("array_api")
    return list(map(_load, files))


def _load(file: str) -> ArrayLibrary:
    """Import the file of a library, and put in what it leaves out."""
    library = import_module(f"tensorsplit.arrays.{file}")
    for name, usual in _LEFT_OUT.items():
        vars(library).setdefault(name, usual)
    return library


def _root(kind: type) -> str:
    return str(kind.__module__).partition(".")[0]


def library_of(value: object, operator: str, parameter: str) -> ArrayLibrary:
    """Return the library that the data of an operator version is an array of (TS204 if of none)."""
    library = find_library(value)
    try:
        if library is None:
            raise SplitError(NOT_AN_ARRAY, f"it is of type {type(value).__name__}", _fix(value))
        library.check(value)
    except SplitError as error:
        error.parameter = parameter
        raise error.located(operator=operator) from None
    return library


_CONTAINERS = (list, tuple, range, memoryview, bytearray, array)
_FIXES = {
    "builtins.bytes": "pass `numpy.frombuffer` of it, with the element type",
    "onnx.TensorProto": "pass `onnx.numpy_helper.to_array` of it",
    "openvino.Tensor": "pass its `data`",
    "openvino.Output": "make a node of it with `variadic_split` of openvino's opset",
    "openvino.Node": "make a node of it with `variadic_split` of openvino's opset",
    "awkward.Array": "pass its `to_numpy()`; slice it instead where its lists differ in length",
    "pint.Quantity": "split its `magnitude`, and multiply the parts by its `units`",
    "xarray.Dataset": "pass the `to_numpy()` of each of its variables, or call its `isel`",
    "keras.Variable": "pass its `value`",
    "tensorflow.RaggedTensor": "pass its `to_tensor()`",
    "tensorflow.SparseTensor": "pass `tensorflow.sparse.to_dense` of it",
    "h5py.Dataset": "pass its `[...]`, or `dask.array.from_array` of it, which reads nothing",
    "zarr.Array": "call `tensorsplit.files.split` with its path, or pass its `[...]`",
    "zarr.Group": "call `tensorsplit.files.split` with its path and rules, or pass an array of it",
    "torch.Proxy": "split it with a layer, `tensorsplit.torch.Split`, or in a function that"
    " `torch.fx.wrap` has been called with",
}
"""What to do with objects of a class, by the library and the name of the class."""

_CONVERSIONS = ("to_numpy", "to_dask_array", "toarray", "todense", "numpy", "compute", "collect")


def conversion(value: object) -> str | None:
    """Return the call that makes an array of an object, for a message; None if none is known."""
    kind = type(value)
    method = next((each for each in _CONVERSIONS if callable(getattr(kind, each, None))), None)
    if method is not None:
        return f"pass its `{method}()`"
    if hasattr(kind, "__array__"):
        return "pass `numpy.asarray` of it"
    return "pass `numpy.from_dlpack` of it" if hasattr(kind, "__dlpack__") else None


def _fix(value: object) -> str:
    if is_a(value, _CONTAINERS):
        return "pass `numpy.asarray` of it"
    names = [f"{_root(each)}.{each.__name__}" for each in type(value).__mro__]
    known = next((_FIXES[name] for name in names if name in _FIXES), None)
    anything = "give an array of NumPy, PyTorch, JAX, Dask, or the array API standard"
    return known or conversion(value) or anything


def execute(
    plan: SplitPlan,
    array: object,
    library: ArrayLibrary,
    copy: object = False,
    out: NamedOut = None,
) -> list[object]:
    """Split an array of a library by a plan made for its shape: views, copies, or the buffers.

    TS105 is for a `copy` that is neither true nor false, TS309 for parts of which it is not known
    whether they fit, TS401 to TS405 for `out`.
    """
    if copy is not True and copy is not False:
        copy = as_flag(copy, plan.operator)
    if library.unknown is not None:
        prove(plan, library.unknown)
    if out is None:
        return library.copies(array, plan) if copy else library.views(array, plan)
    try:
        if is_a(out, BufferPool):
            return library.pooled(array, plan, out)
        return library.copies_into(array, plan, out)
    except SplitError as error:
        if error.parameter is None:  # else it is of an environment variable
            error.parameter = "out"
            error.located(operator=plan.operator)
        raise


def as_flag(copy: object, operator: str) -> bool:
    """Return the argument `copy` of an operator's function (TS105 if it is not a flag)."""
    return _flag(copy, OPERAND_TYPE, "copy", operator)


def as_switch(value: object, parameter: str) -> bool:
    """Return an argument that is True or False and no operator's (TS703 if it is not a flag)."""
    return _flag(value, USAGE, parameter)


def _flag(value: object, kind: Kind, parameter: str, operator: str | None = None) -> bool:
    found = int.__int__(value) if is_a(value, int) else value
    if is_a(found, (int, np.bool_)) and found in (0, 1):
        return bool(found)
    problem, fix = wrong_type(value), "give True or False"
    raise SplitError(kind, problem, fix, operator=operator, parameter=parameter)
