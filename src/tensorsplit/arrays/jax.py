"""Splitting arrays of JAX, traced ones too."""

from __future__ import annotations

from functools import lru_cache, partial

import jax
from jax import lax

from tensorsplit.arrays.numpy import check_few, standard_name
from tensorsplit.arrays.typed import Array
from tensorsplit.core.dimensions import Shape
from tensorsplit.core.errors import OPERAND_TYPE, SplitError
from tensorsplit.core.plan import SplitPlan

unknown = "export with constraints that settle it, such as 'b >= 2' or 'mod(b, 3) == 0'"


def is_array(value: object) -> bool:
    """Return whether the value is an array, or a tracer that stands for one."""
    return isinstance(value, jax.Array)


def check(array: Array) -> None:
    """Accept every array of JAX."""


def element_type(array: Array) -> str:
    """Return the name of the element type, as in the schemas of ONNX; JAX's for keys."""
    return standard_name(array.dtype.name)


def shape(array: Array) -> Shape:
    """Return the shape; under `jax.export`, dimensions may be symbolic."""
    return tuple(array.shape)


def operand_parts(value: Array, name: str) -> tuple[tuple[float, ...], int, str]:
    """Return the elements in order as Python numbers, the rank, and the element type."""
    check_few(value.size, name)
    element = element_type(value)
    if isinstance(value, jax.core.Tracer) or jax.dtypes.issubdtype(
        value.dtype, jax.dtypes.extended
    ):
        kind = "traced" if isinstance(value, jax.core.Tracer) else f"of type {element}"
        raise SplitError(
            OPERAND_TYPE,
            f"it is {kind}, and no numbers are known of it",
            "give integers, or a static argument (`static_argnums`)",
            parameter=name,
        )
    return tuple(value.ravel().tolist()), value.ndim, element


def views(array: Array, plan: SplitPlan) -> list[Array]:
    """Return the parts as arrays of their own, as JAX has no views."""
    if not plan.sizes:
        return []
    parts = lax.split(array, plan.sizes, plan.axis)
    return list(parts) if plan.keepdims else [lax.squeeze(part, (plan.axis,)) for part in parts]


copies = views


def kind(array: Array) -> tuple[object, ...]:
    """Return the element type, and the devices, or None for them if the array is traced."""
    is_traced = isinstance(array, jax.core.Tracer)
    return array.dtype, None if is_traced else _names(frozenset(array.devices()))


@lru_cache(256)
def _names(devices: frozenset[object]) -> str:
    return ", ".join(sorted(map(str, devices)))


def joined(parts: list[Array], plan: SplitPlan) -> Array:
    """Return the parts as one array."""
    if not plan.keepdims:
        parts = [lax.expand_dims(part, (plan.axis,)) for part in parts]
    return _concatenated(tuple(parts), plan.axis)


def _concatenated(parts: tuple[Array, ...], axis: int) -> Array:
    """Concatenate as another type the elements that XLA changes, or crashes on.

    Measured with jaxlib 0.10.2 on the CPU: it ends the process for int2 and uint2, and replaces
    some NaNs of bfloat16, float8_e5m2, float8_e4m3 and float8_e3m4.
    """
    dtype = parts[0].dtype
    if dtype.name in ("int2", "uint2"):
        wider = [lax.convert_element_type(part, "int8") for part in parts]
        return lax.convert_element_type(lax.concatenate(wider, axis), dtype)
    if dtype.name.startswith(("bfloat16", "float8")):
        return _concatenated_bits(parts, axis)
    return lax.concatenate(parts, axis)


@partial(jax.custom_jvp, nondiff_argnums=(1,))
def _concatenated_bits(parts: tuple[Array, ...], axis: int) -> Array:
    """Concatenate floats as integers; bits have no derivative, which is that of concatenating."""
    dtype = parts[0].dtype
    bits = [lax.bitcast_convert_type(part, f"uint{8 * dtype.itemsize}") for part in parts]
    return lax.bitcast_convert_type(lax.concatenate(bits, axis), dtype)


def _derivative(
    axis: int, parts: tuple[tuple[Array, ...]], tangents: tuple[tuple[Array, ...]]
) -> tuple[Array, Array]:
    return _concatenated_bits(parts[0], axis), lax.concatenate(tangents[0], axis)


_concatenated_bits.defjvp(_derivative)
