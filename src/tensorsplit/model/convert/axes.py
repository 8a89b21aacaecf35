"""Operators whose axes moved from an attribute to an input, or changed what they mean."""

from __future__ import annotations

import numpy as np

from tensorsplit.model.convert.change import Change, link_of
from tensorsplit.model.convert.schemas import Step, fit
from tensorsplit.model.convert.site import Site
from tensorsplit.model.convert.table import Adapters, both

_NEGATIVE_AXES = 11

_REDUCERS = (
    *("ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMax", "ReduceMean"),
    *("ReduceMin", "ReduceProd", "ReduceSumSquare"),
)
_SOFTMAXES = ("Softmax", "LogSoftmax", "Hardmax")


def _to_input(site: Site, _step: Step, change: Change) -> None:
    """The attribute `axes` becomes an input; an empty one has always meant all of them."""
    attribute = site.node.attributes.get("axes")
    if attribute is not None and not attribute.is_ref() and not attribute.value:
        site.take("axes")
    builder = change.builder(site, _step.opset)
    axes = change.attribute_as_input(site, builder, "axes")
    change.before(site, builder)
    site.set_inputs([site.input(0), axes])


def _to_attribute(site: Site, _step: Step, change: Change) -> None:
    change.input_as_attribute(site, 1, "axes")


def _reducer_to_attribute(site: Site, _step: Step, change: Change) -> None:
    """No axes, or none in the list, mean all of them, or no reduction where the node says so."""
    noop = site.take("noop_with_empty_axes", 0)
    axes = site.input(1)
    known = change.constant(axes)
    if noop and (axes is None or known is None or not known.size) and link_of(axes) is None:
        raise site.refusal(
            "it reduces nothing where no axes are given, which the older version can't say"
        )
    if known is not None and not known.size:
        change.cut_inputs(site, 1)
    else:
        change.input_as_attribute(site, 1, "axes")


def _softmax_up(site: Site, step: Step, change: Change) -> None:
    """From the data as a matrix, cut in two at the axis, to one axis alone."""
    axis = site.take("axis", 1)
    rank = change.rank(site.input(0))
    if rank is not None and axis in (rank - 1, -1):
        site.put("axis", -1)
        return
    data = site.node.inputs[0]
    before = change.builder(site, step.opset)
    flat = before.op("Flatten", [data], {"axis": axis})
    shape = before.op("Shape", [data])
    result = before.op(site.op_type, [flat], {"axis": -1})
    change.replace(site, before, [before.op("Reshape", [result, shape])])


def _softmax_down(site: Site, step: Step, change: Change) -> None:
    """From one axis alone to the data as a matrix: the axis has to be the last one."""
    axis = site.take("axis", -1)
    rank = change.rank(site.input(0))
    if axis == -1 and rank is None:
        site.put("axis", -1)
        return
    rank = change.needed_rank(site)
    axis %= max(rank, 1)
    if rank == 0 or axis == rank - 1:
        site.put("axis", axis)
        return
    order = [index for index in range(rank) if index != axis] + [axis]
    builder = change.builder(site, step.opset)
    moved = builder.op("Transpose", [site.node.inputs[0]], {"perm": order})
    result = builder.op(site.op_type, [moved], {"axis": rank - 1})
    back = [int(index) for index in np.argsort(order)]
    change.replace(site, builder, [builder.op("Transpose", [result], {"perm": back})])


def _count_from_front(site: Site, step: Step, change: Change) -> None:
    """Before opset 11 the text knows no negative axes; they become others where the rank is known.

    Where it is not, they stay: every engine counts them from the back in older versions, too.
    """
    rank = change.rank(site.input(0))
    for name in ("axis", "axes"):
        attribute = site.node.attributes.get(name)
        if attribute is None or attribute.is_ref() or rank is None:
            continue
        given = attribute.value if name == "axes" else [attribute.value]
        whole = rank + len(given) if site.op_type == "Unsqueeze" else rank
        if min(given, default=0) < 0:
            axes = sorted(axis + whole if axis < 0 else axis for axis in given)
            site.put(name, axes if name == "axes" else axes[0])
    reason = fit(site, step)
    if reason:
        raise site.refusal(reason)


def _negative_indices(site: Site, step: Step, change: Change) -> None:
    """OneHot: an index below 0 meant off before opset 11, and counts from the back since."""
    indices = change.constant(site.input(0))
    dtype = change.dtype(site.input(0))
    unsigned = dtype is not None and dtype.name.startswith("UINT")
    if not unsigned and (indices is None or (indices < 0).any()):
        raise site.refusal(
            "its indices may be negative, which means off before opset 11 and counts from the"
            " back since",
            "give the indices as a constant, or of an unsigned type",
        )
    _count_from_front(site, step, change)


def _dft_up(site: Site, step: Step, change: Change) -> None:
    builder = change.builder(site, step.opset)
    axis = builder.constant(site.take("axis", 1))
    change.before(site, builder)
    site.set_inputs([site.input(0), site.input(1), axis])


def _dft_down(site: Site, _step: Step, change: Change) -> None:
    axis = -2
    if site.input(2) is not None:
        axis = int(change.needed_constant(site, 2, "axis").item())
        change.cut_inputs(site, 2)
    site.put("axis", axis)


def _shape_down(site: Site, step: Step, change: Change) -> None:
    """A part of a shape becomes a Slice of all of it."""
    start, end = site.take("start", 0), site.take("end")
    if not start and end is None:
        return
    builder = change.builder(site, step.opset)
    shape = builder.op("Shape", [site.node.inputs[0]])
    last = np.iinfo(np.int64).max if end is None else end
    bounds = [builder.constant([start]), builder.constant([last])]
    change.replace(site, builder, [builder.op("Slice", [shape, *bounds])])


_AXIS_OPERATORS = (
    *("ArgMax", "ArgMin", "Compress", "Concat", "Flatten", "Gather", *_SOFTMAXES, *_REDUCERS),
    *("ReduceSum", "Squeeze", "Unsqueeze"),
)

ADAPTERS: Adapters = {
    **{(name, 18, True): _to_input for name in _REDUCERS},
    **{(name, 18, False): _reducer_to_attribute for name in _REDUCERS},
    **both("ReduceSum", 13, _to_input, _reducer_to_attribute),
    **both("Squeeze", 13, _to_input, _to_attribute),
    **both("Unsqueeze", 13, _to_input, _to_attribute),
    **{(name, 13, True): _softmax_up for name in _SOFTMAXES},
    **{(name, 13, False): _softmax_down for name in _SOFTMAXES},
    **{(name, _NEGATIVE_AXES, False): _count_from_front for name in _AXIS_OPERATORS},
    **both("OneHot", _NEGATIVE_AXES, _negative_indices, _negative_indices),
    **both("DFT", 20, _dft_up, _dft_down),
    ("Shape", 15, False): _shape_down,
}
