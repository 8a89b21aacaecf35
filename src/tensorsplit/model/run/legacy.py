"""Older versions of common operators, which onnx's reference would run as the newest version.

The reference has one implementation for several versions of an operator. Where an older version
means something else, its inputs are brought into the newer form here, or it is refused.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from onnx import AttributeProto, TensorProto, helper

from tensorsplit.core.errors import NODE_FAILED, UNSUPPORTED_NODE, SplitError
from tensorsplit.model.run.blocks import Step

Attributes: TypeAlias = dict[str, AttributeProto]
Run: TypeAlias = Callable[[Sequence[Any], Attributes], list[Any]]
Version: TypeAlias = Callable[[Step, Sequence[Any], Attributes, Run], list[Any]]


def run_version(step: Step, inputs: Sequence[Any], run: Run) -> list[Any]:
    """Run a node in the version in force, by an implementation of the newest one.

    Args:
        step: The node.
        inputs: The value of each input.
        run: Runs the newest version on inputs and attributes.

    Returns:
        The value of each output.

    Raises:
        SplitError: TS509 for a version that has no implementation, TS510 for inputs that it does
            not take.
    """
    # consumed_inputs told old engines which buffers to reuse; results do not depend on it
    attributes = {a.name: a for a in step.node.attribute if a.name != "consumed_inputs"}
    until, version = _OLDER.get(step.node.op_type, (0, None))
    if version is not None and step.domain == "" and step.opset < until:
        return version(step, inputs, attributes, run)
    return run(inputs, attributes)


def _with_defaults(**defaults: Any) -> Version:
    """The version differs in what its attributes are when they are absent."""

    def version(_step: Step, inputs: Sequence[Any], attributes: Attributes, run: Run) -> list[Any]:
        given = {name: helper.make_attribute(name, value) for name, value in defaults.items()}
        return run(inputs, {**given, **attributes})

    return version


def _unsupported(
    _step: Step, _inputs: Sequence[Any], _attributes: Attributes, _run: Run
) -> list[Any]:
    raise SplitError(
        UNSUPPORTED_NODE,
        "this older version of the operator has no implementation",
        "convert the model to a newer opset, or run it on another engine",
    )


def _flattened(_step: Step, inputs: Sequence[Any], attributes: Attributes, run: Run) -> list[Any]:
    """Before opset 13 Softmax and its kin take the data as a matrix, cut in two at the axis."""
    data = inputs[0]
    axis = attributes["axis"].i if "axis" in attributes else 1
    if not -data.ndim <= axis <= data.ndim:
        raise SplitError(
            NODE_FAILED,
            f"the axis is {axis}, but the data has rank {data.ndim}",
            f"give an axis in [{-data.ndim}, {data.ndim}]",
        )
    axis += data.ndim if axis < 0 else 0
    rows = math.prod(data.shape[:axis])
    matrix = data.reshape(rows, math.prod(data.shape[axis:]))
    (result,) = run([matrix], {"axis": helper.make_attribute("axis", 1)})
    return [result.reshape(data.shape)]


def _aligned(_step: Step, inputs: Sequence[Any], attributes: Attributes, run: Run) -> list[Any]:
    """Before opset 7 the second operand is broadcast only if asked for, from an axis on."""
    left, right = inputs
    start = left.ndim - right.ndim
    if "axis" in attributes:
        start = attributes["axis"].i
        start += left.ndim if start < 0 else 0
    covered = left.shape[start : start + right.ndim] if start >= 0 else None
    broadcast = "broadcast" in attributes and attributes["broadcast"].i
    single = right.size == 1 and right.ndim <= left.ndim
    if not (left.shape == right.shape or (broadcast and (single or covered == right.shape))):
        raise SplitError(
            NODE_FAILED,
            f"the operands have shapes {left.shape} and {right.shape}",
            "make them equal, or a part of the first, with broadcast = 1 and its axis",
        )
    if broadcast and not single:
        right = right.reshape(right.shape + (1,) * (left.ndim - start - right.ndim))
    return run([left, right], {})


def _per_channel(_step: Step, inputs: Sequence[Any], attributes: Attributes, run: Run) -> list[Any]:
    """Before opset 7 the slope of PRelu is one number, or one for each channel (axis 1)."""
    data, slope = inputs
    if slope.size != 1 and data.ndim > 1:
        if slope.shape != (data.shape[1],):
            raise SplitError(
                NODE_FAILED,
                f"the slope has shape {slope.shape} for data of shape {data.shape}",
                "give one number, or one for each channel",
            )
        slope = slope.reshape(slope.shape + (1,) * (data.ndim - 2))
    return run([data, np.asarray(slope)], attributes)


def _normalized(step: Step, inputs: Sequence[Any], attributes: Attributes, run: Run) -> list[Any]:
    """From opset 7 to 13 BatchNormalization with one output uses the mean and variance given."""
    if step.opset < 7:
        return run(inputs, attributes)
    if any(step.node.output[1:]) or ("spatial" in attributes and not attributes["spatial"].i):
        return _unsupported(step, inputs, attributes, run)
    data, scale, bias, mean, variance = inputs
    epsilon = attributes["epsilon"].f if "epsilon" in attributes else 1e-5
    channels = (-1, *(1,) * (data.ndim - 2))
    factor = scale / np.sqrt(variance + data.dtype.type(epsilon))
    normalized = (data - mean.reshape(channels)) * factor.reshape(channels)
    return [(normalized + bias.reshape(channels)).astype(data.dtype)]


def _reshaped(step: Step, inputs: Sequence[Any], attributes: Attributes, run: Run) -> list[Any]:
    """Before opset 5 the new shape is an attribute; 0 keeps a dimension."""
    if "shape" not in attributes:
        return _unsupported(step, inputs, attributes, run)
    data, shape = inputs[0], list(attributes["shape"].ints)
    kept = [data.shape[k] if dim == 0 else dim for k, dim in enumerate(shape)]
    return [data.reshape(kept)]


def _cast(step: Step, inputs: Sequence[Any], attributes: Attributes, run: Run) -> list[Any]:
    """Before opset 6 the element type is written out."""
    name = attributes["to"].s.decode("utf-8", "replace").upper() if "to" in attributes else ""
    if name not in TensorProto.DataType.keys():  # noqa: SIM118 - no mapping, though it has keys
        return _unsupported(step, inputs, attributes, run)
    return run(inputs, {"to": helper.make_attribute("to", TensorProto.DataType.Value(name))})


def _not_dropped(step: Step, inputs: Sequence[Any], attributes: Attributes, run: Run) -> list[Any]:
    """Before opset 7 Dropout drops at random unless it is told that this is a test."""
    tested = "is_test" in attributes and attributes["is_test"].i
    if not tested or any(step.node.output[1:]):
        return _unsupported(step, inputs, attributes, run)
    return [inputs[0]]


def _multiplied(_step: Step, inputs: Sequence[Any], attributes: Attributes, _run: Run) -> list[Any]:
    """Before opset 7 the third operand of Gemm is broadcast only if asked for."""
    left, right, added = inputs
    left = left.T if "transA" in attributes and attributes["transA"].i else left
    right = right.T if "transB" in attributes and attributes["transB"].i else right
    product = left @ right
    if added.shape != product.shape and not (
        "broadcast" in attributes and attributes["broadcast"].i
    ):
        raise SplitError(
            NODE_FAILED,
            f"C has shape {added.shape}, but the product has {product.shape}",
            "make them equal, or give broadcast = 1",
        )
    alpha = attributes["alpha"].f if "alpha" in attributes else 1.0
    beta = attributes["beta"].f if "beta" in attributes else 1.0
    number = product.dtype.type
    return [number(alpha) * product + number(beta) * np.broadcast_to(added, product.shape)]


_BINARY = (
    *("Add", "Sub", "Mul", "Div", "Pow"),
    *("And", "Or", "Xor", "Greater", "Less", "Equal"),
)
_OLDER: Mapping[str, tuple[int, Version]] = {
    **dict.fromkeys(_BINARY, (7, _aligned)),
    **dict.fromkeys(("Softmax", "LogSoftmax", "Hardmax"), (13, _flattened)),
    "AveragePool": (7, _with_defaults(count_include_pad=0)),
    "BatchNormalization": (14, _normalized),
    "Cast": (6, _cast),
    "Concat": (4, _with_defaults(axis=1)),
    "Dropout": (7, _not_dropped),
    "Gemm": (7, _multiplied),
    "PRelu": (7, _per_channel),
    "Reshape": (5, _reshaped),
    "Resize": (11, _unsupported),
    "RoiAlign": (16, _with_defaults(coordinate_transformation_mode="output_half_pixel")),
    "Selu": (6, _with_defaults(alpha=1.6732, gamma=1.0507)),
    "Upsample": (9, _unsupported),
}
"""By operator: the first opset whose version the reference implements, and what to do before."""
