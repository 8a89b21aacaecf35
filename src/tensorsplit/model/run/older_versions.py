"""Operators in their older versions, which onnx's reference takes for the newest.

Their inputs are brought into the newer form, or they are refused (ADR 27).
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from onnx import TensorProto

from tensorsplit.model.graph.tensors import Array
from tensorsplit.model.run import kernels
from tensorsplit.model.run.program import node_failed
from tensorsplit.model.run.reference_calls import Call, RunCall, computed, unsupported


def _with_defaults(**defaults: object) -> RunCall:
    """Run a version that differs in the defaults of its attributes."""

    def run_with(call: Call) -> list[Array]:
        missing = {name: value for name, value in defaults.items() if name not in call.attributes}
        return call.given(**missing).run()

    return run_with


def _as(opset: int, op_type: str | None = None) -> RunCall:
    """Run a version that means what that of a newer opset does, which may have another name."""
    return lambda call: call.run(opset, op_type)


def _flattened(call: Call) -> list[Array]:
    """Run Softmax and its kin before opset 13, which take the axes before theirs as rows."""
    (result,) = call.given(
        *kernels.flatten(call.inputs[0], axis=call.attribute("axis", 1)), axis=1
    ).run()
    return [result.reshape(call.inputs[0].shape)]


def with_aligned(call: Call) -> Call:
    """Return a call of an operator before opset 7 with operands that NumPy broadcasts."""
    left, right = call.inputs
    start = call.attribute("axis", left.ndim - right.ndim)
    if "axis" in call.attributes and start < 0:
        start += left.ndim
    covered = left.shape[start : start + right.ndim] if start >= 0 else None
    broadcast = call.attribute("broadcast")
    single = right.size == 1 and right.ndim <= left.ndim
    if not (left.shape == right.shape or (broadcast and (single or covered == right.shape))):
        problem = f"the operands have shapes {left.shape} and {right.shape}"
        fix = "make them equal, or a part of the first, with broadcast = 1 and its axis"
        raise node_failed(problem, fix)
    if broadcast and not single:
        right = right.reshape(right.shape + (1,) * (left.ndim - start - right.ndim))
    return call._replace(inputs=[left, right], attributes={})


def alike(run: RunCall) -> RunCall:
    """Run an operator on any number of operands, which are not broadcast before opset 8."""

    def run_alike(call: Call) -> list[Array]:
        shapes = [operand.shape for operand in call.inputs]
        if call.step.opset < 8 and len(set(shapes)) > 1:
            problem = f"the operands have the shapes {', '.join(map(str, shapes))}"
            raise node_failed(problem, "make them equal, or convert the model to opset 8 or newer")
        return run(call)

    return run_alike


def _per_channel(call: Call) -> list[Array]:
    """Run PRelu before opset 7, whose slope is one number, or one for each channel (axis 1)."""
    data, slope = call.inputs
    if slope.size != 1 and data.ndim > 1:
        if slope.shape != (data.shape[1],):
            problem = f"the slope has shape {slope.shape} for data of shape {data.shape}"
            raise node_failed(problem, "give one number, or one for each channel")
        slope = slope.reshape(slope.shape + (1,) * (data.ndim - 2))
    return call.given(data, np.asarray(slope)).run()


def _normalized(call: Call) -> list[Array]:
    """Run BatchNormalization of opsets 7 to 13, which with one output uses the given mean."""
    if call.step.opset < 7:
        return call.run()
    if call.names_more or not call.attribute("spatial", 1):
        return unsupported(call)
    kept = {name: call.attributes[name] for name in call.attributes.keys() & {"epsilon"}}
    return call._replace(attributes=kept).run(opset=15)


def _reshaped(call: Call) -> list[Array]:
    """Reshape before opset 5, where the new shape is an attribute; 0 keeps a dimension."""
    if "shape" not in call.attributes:
        return unsupported(call)
    data = call.inputs[0]
    return [data.reshape([dim or data.shape[k] for k, dim in enumerate(call.attribute("shape"))])]


def _cast(call: Call) -> list[Array]:
    """Cast before opset 6, where the element type is written out."""
    name = call.attribute("to", "").upper()
    if name not in TensorProto.DataType.keys():  # noqa: SIM118 - no mapping, though it has keys
        return unsupported(call)
    return call.given(to=TensorProto.DataType.Value(name)).run()


def _not_dropped(call: Call) -> list[Array]:
    """Run Dropout before opset 10: before 7 it drops at random unless `is_test` is set.

    Its mask is of the type of the data; before opset 7 it holds nothing that the standard names.
    """
    data, is_newer = call.inputs[0], call.step.opset >= 7
    is_random = not is_newer and (call.names_more or not call.attribute("is_test"))
    return unsupported(call) if is_random else [data, np.ones_like(data)][: 1 + call.names_more]


def _multiplied(call: Call) -> list[Array]:
    """Run Gemm before opset 7, whose third operand is broadcast only on request.

    Where it need not be, it is requested too: the reference forgets beta otherwise.
    """
    left, right, added = call.inputs
    rows = left.shape[1 if call.attribute("transA") else 0]
    shape = rows, right.shape[0 if call.attribute("transB") else 1]
    if added.shape != shape and not call.attribute("broadcast"):
        problem = f"C has shape {added.shape}, but the product has {shape}"
        raise node_failed(problem, "make them equal, or give broadcast = 1")
    return call.given(broadcast=1).run(opset=6)


def upsampled(call: Call) -> list[Array]:
    """Run Upsample and Resize-10, which count from the first element and take the one before."""
    data, *rest = call.inputs
    if rest:
        scales = rest[0]
    elif "scales" in call.attributes:
        scales = np.array(call.attribute("scales"), np.float32)
    else:
        sides = (call.attribute("height_scale", 1.0), call.attribute("width_scale", 1.0))
        scales = np.array([1.0, 1.0, *sides], np.float32)
    mode = {"bilinear": "linear"}.get(*[call.attribute("mode", "nearest")] * 2)
    if mode == "nearest" and np.any(scales < 1):
        return unsupported(call)  # the text does not say which elements are left out
    options = {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
    plain = call._replace(attributes={}).given(data, None, scales, mode=mode, **options)
    return plain.run(opset=13, op_type="Resize")


_BINARY = (  # but for Div, which is corrected at any opset
    *("Add", "Sub", "Mul", "Pow"),
    *("And", "Or", "Xor", "Greater", "Less", "Equal"),
)

OLDER: Mapping[str, tuple[int, RunCall]] = {
    **dict.fromkeys(_BINARY, (7, lambda call: with_aligned(call).run())),
    **dict.fromkeys(("Softmax", "LogSoftmax", "Hardmax"), (13, _flattened)),
    "BatchNormalization": (14, _normalized),
    "Cast": (6, _cast),
    "DequantizeLinear": (19, _as(19)),
    "Dropout": (10, _not_dropped),
    "Gemm": (7, _multiplied),
    "Max": (8, alike(Call.run)),
    "Min": (8, alike(Call.run)),
    "PRelu": (7, _per_channel),
    "Reshape": (5, _reshaped),
    "RoiAlign": (16, _with_defaults(coordinate_transformation_mode="output_half_pixel")),
    "Scatter": (11, _as(11, "ScatterElements")),
    "Selu": (6, _with_defaults(alpha=1.6732, gamma=1.0507)),
    "Squeeze": (13, computed(kernels.squeeze)),
    "Sum": (8, alike(Call.run)),
    "Tile": (6, computed(kernels.tile)),
    "Unsqueeze": (13, computed(kernels.unsqueeze)),
}
"""By operator: the first opset that means what the newest does, and what runs it before."""
