"""Splitting tensors and variables of TensorFlow, and the tensors that ``tf.function`` traces."""

from __future__ import annotations

import tensorflow as tf

from tensorsplit.arrays.numpy import check_few, standard_name
from tensorsplit.arrays.typed import Array
from tensorsplit.core.dimensions import Shape
from tensorsplit.core.errors import NOT_AN_ARRAY, OPERAND_TYPE, SplitError
from tensorsplit.core.plan import SplitPlan, sizes_of

unknown = "give the dimension in the `input_signature`, or split where it is known"

_UNSPLIT = frozenset(
    {
        *("resource", "variant", "qint8", "qint16", "qint32", "quint16", "int2", "uint2"),
        *("int4", "uint4", "float4_e2m1fn"),
        *("float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e4m3b11fnuz"),
    }
)
"""Types of tensors that TensorFlow (2.21) can't split, or can't join again, on the CPU."""


def is_array(value: object) -> bool:
    """Return whether the value is a tensor, eager or traced, or a variable."""
    return isinstance(value, (tf.Tensor, tf.Variable))


def check(array: Array) -> None:
    """Refuse tensors of an unknown rank, and of types that TensorFlow can't split (TS204)."""
    if array.shape.rank is None:
        problem, fix = "the rank of the tensor is not known", "call its `set_shape`"
    elif array.dtype.base_dtype.name in _UNSPLIT:
        problem = f"TensorFlow does not split tensors of {array.dtype.name}"
        fix = "cast it, or pass its `numpy()`"
    else:
        return
    raise SplitError(NOT_AN_ARRAY, problem, fix)


def element_type(array: Array) -> str:
    """Return the name of the element type, as in the schemas of ONNX."""
    return standard_name(array.dtype.base_dtype.name)


def shape(array: Array) -> Shape:
    """Return the shape, with None for what is not known while TensorFlow traces."""
    return tuple(array.shape)


def operand_parts(value: Array, name: str) -> tuple[tuple[float, ...], int, str]:
    """Return the elements in order as Python numbers, the rank, and the element type.

    Those of a traced tensor are known if it is a constant; others are refused (TS105).
    """
    known = None if isinstance(value, tf.Variable) else tf.get_static_value(value)
    if known is None and tf.executing_eagerly():
        known = value.numpy()
    if known is None:
        raise SplitError(
            OPERAND_TYPE,
            "it is traced, and no numbers are known of it",
            "give integers, or a tensor that is constant",
            parameter=name,
        )
    check_few(known.size, name)
    return tuple(known.ravel().tolist()), known.ndim, element_type(value)


def views(array: Array, plan: SplitPlan) -> list[Array]:
    """Return the parts as tensors of their own, as TensorFlow's can't be written to."""
    if not plan.sizes:
        return []
    sizes = sizes_of(plan)
    # a number is passed on as it is, and a list becomes a tensor
    lengths = len(sizes) if len({*sizes}) == 1 else list(sizes)
    parts: list[Array] = tf.split(array, lengths, plan.axis)
    return parts if plan.keepdims else [tf.squeeze(part, [plan.axis]) for part in parts]


copies = views


def kind(array: Array) -> tuple[object, ...]:
    """Return the element type, and the device of what is not traced."""
    return array.dtype.base_dtype, array.device or None


def joined(parts: list[Array], plan: SplitPlan) -> Array:
    """Return the parts as one tensor."""
    join = tf.concat if plan.keepdims else tf.stack
    return join(parts, axis=plan.axis)
