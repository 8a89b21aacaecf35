"""Operators whose operands moved from attributes to inputs."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from tensorsplit.model.convert.change import Change
from tensorsplit.model.convert.schemas import Step, fit
from tensorsplit.model.convert.site import Site
from tensorsplit.model.convert.table import Adapter, Adapters, both

_SMALLER_LIMITS = (ir.DataType.FLOAT, ir.DataType.FLOAT16)
_FIRST_WITH_BROADCAST_MAX = 8


def _slice_up(site: Site, step: Step, change: Change) -> None:
    builder = change.builder(site, step.opset)
    values = [change.attribute_as_input(site, builder, name) for name in ("starts", "ends", "axes")]
    change.before(site, builder)
    site.set_inputs([site.input(0), *values])


def _slice_down(site: Site, _step: Step, change: Change) -> None:
    if site.input(4) is not None:
        steps = change.needed_constant(site, 4, "steps")
        if (steps != 1).any():
            raise site.refusal(f"its steps are {steps.tolist()}, and always 1 there")
    rank = change.rank(site.input(0))
    for index, name in ((1, "starts"), (2, "ends"), (3, "axes")):
        if site.input(index) is None:
            continue
        values = [int(item) for item in change.needed_constant(site, index, name).ravel()]
        if name == "axes" and rank is not None:
            values = [axis + rank if axis < 0 else axis for axis in values]
        site.put(name, values)
    change.cut_inputs(site, 1)


def _clip_up(site: Site, step: Step, change: Change) -> None:
    """The default limits were those of float; they are those of the data's type now."""
    builder = change.builder(site, step.opset)
    dtype = change.needed_dtype(site)
    limits: list[ir.Value | None] = []
    for name, sign in (("min", -1), ("max", 1)):
        value = site.take(name)
        if value is None and dtype not in _SMALLER_LIMITS:
            value = sign * float(np.finfo(np.float32).max)
        limits.append(None if value is None else builder.constant(value, dtype.numpy()))
    change.before(site, builder)
    site.set_inputs([site.input(0), *limits])


def _clip_down(site: Site, step: Step, change: Change) -> None:
    given = {1: "min", 2: "max"}
    values = {name: change.constant(site.input(index)) for index, name in given.items()}
    if any(values[name] is None and site.input(index) is not None for index, name in given.items()):
        _clip_by_max_and_min(site, step, change)
        return
    dtype = change.needed_dtype(site)
    for name, value in values.items():
        if value is not None and float(np.float32(value.item())) == float(value.item()):
            site.put(name, float(value.item()))
        elif value is not None or dtype not in _SMALLER_LIMITS:
            raise site.refusal(f"its limit '{name}' is no float, as the attribute is there")
    change.cut_inputs(site, 1)


def _clip_by_max_and_min(site: Site, step: Step, change: Change) -> None:
    if change.target < _FIRST_WITH_BROADCAST_MAX:
        raise site.refusal("its limits are known only at run time, and attributes there")
    builder = change.builder(site, step.opset)
    value = site.node.inputs[0]
    for index, op_type in ((1, "Max"), (2, "Min")):
        if site.input(index) is not None:
            value = builder.op(op_type, [value, site.input(index)])
    change.replace(site, builder, [value])


def _pad_up(site: Site, step: Step, change: Change) -> None:
    builder = change.builder(site, step.opset)
    pads = change.attribute_as_input(site, builder, "pads")
    value = site.take("value", 0.0)
    filling = None
    if value != 0:
        filling = builder.constant(value, change.needed_dtype(site).numpy())
    change.before(site, builder)
    site.set_inputs([site.input(0), pads, filling])


def _pad_down(site: Site, _step: Step, change: Change) -> None:
    site.put("pads", [int(item) for item in change.needed_constant(site, 1, "pads").ravel()])
    if site.input(2) is not None:
        value = float(change.needed_constant(site, 2, "constant_value").item())
        if not np.isnan(value) and value != float(np.float32(value)):
            raise site.refusal(f"its filling {value!r} is no float, as the attribute is there")
        site.put("value", value)
    change.cut_inputs(site, 1)


def _pad_all_axes(site: Site, step: Step, change: Change) -> None:
    """Pads of some axes become pads of all of them."""
    if site.input(3) is None:
        return
    rank = change.needed_rank(site)
    axes = change.needed_constant(site, 3, "axes").ravel()
    pads = change.needed_constant(site, 1, "pads").ravel()
    whole = np.zeros(2 * rank, np.int64)
    for index, axis in enumerate(axes):
        whole[axis % rank], whole[axis % rank + rank] = pads[index], pads[index + len(axes)]
    builder = change.builder(site, step.opset)
    made = builder.constant(whole)
    change.before(site, builder)
    old = list(site.node.inputs)
    site.set_inputs([old[0], made, old[2]])
    for value in (old[1], old[3]):
        change.drop_unused(value)


def _pad_renamed(old: str, new: str) -> Adapter:
    def adapt(site: Site, _step: Step, _change: Change) -> None:
        site.put(new, list(site.take(old)))

    return adapt


def _reshape_up(site: Site, step: Step, change: Change) -> None:
    site.take("consumed_inputs")
    builder = change.builder(site, step.opset)
    shape = change.attribute_as_input(site, builder, "shape")
    change.before(site, builder)
    site.set_inputs([site.input(0), shape])


def _reshape_down(site: Site, _step: Step, change: Change) -> None:
    change.input_as_attribute(site, 1, "shape")


def _reshape_zero(site: Site, step: Step, change: Change) -> None:
    """A zero in the shape means "as it was" in the older version, and nothing else."""
    shape = change.constant(site.input(1))
    if site.attribute("allowzero", 0) and shape is not None and (shape != 0).all():
        site.take("allowzero")
    _fitted(site, step, change)


def _topk_up(site: Site, step: Step, change: Change) -> None:
    builder = change.builder(site, step.opset)
    count = builder.constant([site.take("k")])
    change.before(site, builder)
    site.set_inputs([site.input(0), count])


def _topk_down(site: Site, _step: Step, change: Change) -> None:
    site.put("k", int(change.needed_constant(site, 1, "K").item()))
    change.cut_inputs(site, 1)


def _topk_ascending(site: Site, step: Step, change: Change) -> None:
    """Any order will do where none is asked for, so also the sorted one."""
    if not site.attribute("sorted", 1):
        site.take("sorted")
    rank = change.rank(site.input(0))
    axis = site.attribute("axis", -1)
    if rank is not None and axis < 0:
        site.put("axis", axis + rank)
    _fitted(site, step, change)


def _dropout_up(site: Site, step: Step, change: Change) -> None:
    builder = change.builder(site, step.opset)
    ratio = site.take("ratio")
    given = None if ratio is None else builder.constant(ratio, np.float32)
    change.before(site, builder)
    site.set_inputs([site.input(0), given])


def _dropout_down(site: Site, _step: Step, change: Change) -> None:
    """Outside training the result is the data, whatever the ratio."""
    if site.input(2) is not None and change.needed_constant(site, 2, "training_mode").any():
        raise site.refusal("it is in training mode, which the older version can't ask for")
    ratio = change.constant(site.input(1))
    site.take("seed")
    if ratio is not None:
        site.put("ratio", float(ratio.item()))
    change.cut_inputs(site, 1)


def _tile_down(site: Site, step: Step, change: Change) -> None:
    """One Tile for each axis that is repeated."""
    repeats = [int(item) for item in change.needed_constant(site, 1, "repeats").ravel()]
    dtype = change.needed_dtype(site).numpy()
    builder = change.builder(site, step.opset)
    value = site.node.inputs[0]
    for axis, count in enumerate(repeats):
        if count != 1 or len(repeats) == 1:
            operands = [builder.constant(count, dtype), builder.constant(axis, dtype)]
            value = builder.op("Tile", [value, *operands])
    if value is site.node.inputs[0]:
        value = builder.op("Identity", [value])
    change.replace(site, builder, [value])


def _tile_up(site: Site, step: Step, change: Change) -> None:
    rank = change.needed_rank(site)
    repeats = [1] * rank
    axis = int(change.needed_constant(site, 2, "axis").item())
    repeats[axis] = int(change.needed_constant(site, 1, "tiles").item())
    builder = change.builder(site, step.opset)
    made = builder.constant(repeats)
    change.before(site, builder)
    old = list(site.node.inputs[1:])
    site.set_inputs([site.input(0), made])
    for value in old:
        change.drop_unused(value)


def _gemm_zero(site: Site, step: Step, change: Change) -> None:
    """Where C may not be left out it is a zero."""
    if site.input(2) is not None:
        _fitted(site, step, change)
        return
    builder = change.builder(site, step.opset)
    zero = builder.constant(0, change.needed_dtype(site).numpy())
    change.before(site, builder)
    site.set_inputs([site.input(0), site.input(1), zero])


def _constant_of_shape_down(site: Site, step: Step, change: Change) -> None:
    """One element, expanded to the shape."""
    value = site.take("value")
    array = np.zeros(1, np.float32) if value is None else value.numpy()
    builder = change.builder(site, step.opset)
    element = builder.constant(array.reshape(()), array.dtype)
    change.replace(site, builder, [builder.op("Expand", [element, site.input(0)])])


def _fitted(site: Site, step: Step, _change: Change) -> None:
    reason = fit(site, step)
    if reason:
        raise site.refusal(reason)


ADAPTERS: Adapters = {
    **both("Slice", 10, _slice_up, _slice_down),
    **both("Clip", 11, _clip_up, _clip_down),
    **both("Pad", 11, _pad_up, _pad_down),
    ("Pad", 18, False): _pad_all_axes,
    **both("Pad", 2, _pad_renamed("paddings", "pads"), _pad_renamed("pads", "paddings")),
    **both("Reshape", 5, _reshape_up, _reshape_down),
    ("Reshape", 14, False): _reshape_zero,
    **both("TopK", 10, _topk_up, _topk_down),
    ("TopK", 11, False): _topk_ascending,
    **both("Dropout", 12, _dropout_up, _dropout_down),
    **both("Tile", 6, _tile_up, _tile_down),
    ("ConstantOfShape", 9, False): _constant_of_shape_down,
    ("Gemm", 11, False): _gemm_zero,
}
