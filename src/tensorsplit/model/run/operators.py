"""Operators other than splits and those with bodies, one node at a time.

Most run in onnx's reference implementation, which has one for several versions of an operator.
Where an older version means something else, its inputs are brought into the newer form here, or it
is refused. Operators on sequences and optionals are our own: the reference inserts at a wrong place
at the end of a sequence, has no error of its own for a position out of range (D19), and takes an
empty optional for one that holds something.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping, Sequence
from threading import Thread
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import onnx_ir as ir
from onnx import GraphProto, NodeProto, TensorProto, ValueInfoProto
from onnx.reference import ReferenceEvaluator
from onnx.reference.op_run import OpRun, RefAttrName

from tensorsplit import native
from tensorsplit.arrays.numpy import element_type
from tensorsplit.core.arithmetic import position
from tensorsplit.core.errors import (
    OPERAND_TYPE,
    UNSUPPORTED_NODE,
    SplitError,
    short_name,
)
from tensorsplit.model.graph.binding import bind, execute
from tensorsplit.model.graph.nodes import bodies, domain_opsets, scopes_in, tensors
from tensorsplit.model.graph.tensors import Array, read_tensor
from tensorsplit.model.run import kernels
from tensorsplit.model.run.program import Kernel, Step, Values, described, node_failed
from tensorsplit.model.validity.message_errors import check_attributes

_LARGE = 1 << 20
_LARGE_FOR_TWO = 1 << 22
"""From so many bytes on fresh pages cost more than copying."""


def run(step: Step, inputs: Sequence[object]) -> Values:
    """Run a node that has been checked against its schema; raises whatever its implementation does.

    Absent inputs are None, and so are outputs that the node does not name.
    """
    if step.kernel is None:
        step.kernel = _prepared(step)
    return step.kernel(inputs)


def _prepared(step: Step) -> Kernel:
    """Return what runs a node, again and again."""
    if step.domain == "" and step.op_type in _SEQUENCES:
        implementation = _SEQUENCES[step.op_type]
        return lambda inputs: [implementation(*inputs)]
    # consumed_inputs told old engines which buffers to reuse; results do not depend on it
    attributes = {k: a for k, a in step.attributes.items() if k != "consumed_inputs"}
    until, version = _OURS.get(step.op_type, (0.0, _Call.run))
    if step.domain != "" or step.opset >= until:
        return _implementation(step, attributes, step.opsets, step.op_type)
    made: list[Kernel] = []

    def run_version(inputs: Sequence[object]) -> Values:
        if not all(isinstance(value, np.ndarray) for value in inputs if value is not None):
            raise node_failed("an input is not a tensor", "give tensors")
        return version(_Call(step, inputs, attributes, made))

    return run_version


class _Call(NamedTuple):
    """A node with the values of its inputs and its attributes."""

    step: Step
    inputs: Sequence[Any]
    attributes: Mapping[str, ir.Attr]
    made: list[Kernel]  # what runs it, once that was made

    def attribute(self, name: str, default: object = None) -> Any:
        return self.attributes[name].value if name in self.attributes else default

    @property
    def names_more(self) -> bool:
        return any(value.name for value in self.step.node.outputs[1:])

    def given(self, *inputs: object, **attributes: Any) -> _Call:
        """Return the call with these inputs, if there are any, and these attributes as well."""
        made = {name: ir.convenience.convert_attribute(name, v) for name, v in attributes.items()}
        return self._replace(inputs=inputs or self.inputs, attributes={**self.attributes, **made})

    def run(self, opset: int | None = None, op_type: str | None = None) -> Values:
        """Have onnx's reference implementation run it, at the node's opset or at that given."""
        step = self.step
        if not self.made:
            opsets = step.opsets if opset is None else {"": opset}
            made = _implementation(step, self.attributes, opsets, op_type or step.op_type)
            self.made.append(made)
        return self.made[0](self.inputs)


_RunCall: TypeAlias = Callable[[_Call], Values]
"""Runs a node of an operator, with all that is known of the call."""


def _implementation(
    step: Step, attributes: Mapping[str, ir.Attr], opsets: Mapping[str, int], op_type: str
) -> Kernel:
    """Return what onnx's evaluator makes of the node alone, with names of our own.

    The evaluator does not run whole graphs (ADR 7): it ignores function overloads and defaults of
    attributes, mixes up omitted outputs and inputs, and hides which node failed.
    """
    node = NodeProto(
        op_type=op_type,
        domain=step.domain,
        input=[f"i{k}" if value is not None else "" for k, value in enumerate(step.inputs)],
        output=[f"o{k}" if value.name else "" for k, value in enumerate(step.node.outputs)],
        attribute=map(ir.serde.serialize_attribute, map(_embedded, attributes.values())),
    )
    for label, body in bodies(step.node):
        held = (tensor for scope in scopes_in(body) for tensor in tensors(scope))
        if any(isinstance(tensor, ir.ExternalTensor) for tensor in held):
            # the evaluator would look for it in the working directory
            problem = f"{label} holds external data"
            raise SplitError(UNSUPPORTED_NODE, problem, "embed it in the model")
    outputs = [ValueInfoProto(name=name) for name in node.output if name]
    graph = GraphProto(node=[node], output=outputs)
    try:
        evaluator = ReferenceEvaluator(graph, opsets=dict(opsets), new_ops=list(NEW_OPS))
    except (NotImplementedError, RuntimeError, ImportError) as error:
        name = f"{short_name(step.domain or 'ai.onnx')}::{short_name(step.op_type)}"
        problem = f"{name} has no implementation at opset {step.opset}"
        raise SplitError(UNSUPPORTED_NODE, problem, "run the model on another engine") from error
    (implementation,) = evaluator.rt_nodes_
    if implementation.need_context():
        names = list(node.input)
        return lambda inputs: list(
            implementation.run(*inputs, context=dict(zip(names, inputs, strict=True)))
        )
    if type(implementation).run is not OpRun.run or implementation.has_linked_attribute:
        return lambda inputs: list(map(_as_array, implementation.run(*inputs)))
    given = {name: getattr(implementation, name) for name in implementation.attributes_names_}

    def run_directly(inputs: Sequence[object]) -> Values:
        """Do as `OpRun.run`, without what that finds out each time."""
        found = implementation._run(*inputs, **given)  # noqa: SLF001 - what classes define
        if type(found) is not tuple or not all(type(value) is np.ndarray for value in found):
            found = implementation._check_and_fix_outputs(found)  # noqa: SLF001 - as `run` does
        return list(found)

    return run_directly


def _as_array(value: object) -> Any:
    """Return a result; NumPy makes numbers of what has rank 0."""
    return np.asarray(value) if isinstance(value, np.generic) else value


def _embedded(attribute: ir.Attr) -> ir.Attr:
    """Return the attribute, with external data read into it."""
    if not isinstance(attribute.value, ir.ExternalTensor):
        return attribute
    return ir.AttrTensor(attribute.name, ir.tensor(read_tensor(attribute.value, attribute.name)))


def _with_defaults(**defaults: object) -> _RunCall:
    """Run a version that differs in the defaults of its attributes."""

    def run_with(call: _Call) -> list[Array]:
        missing = {name: value for name, value in defaults.items() if name not in call.attributes}
        return call.given(**missing).run()

    return run_with


def _as(opset: int, op_type: str | None = None) -> _RunCall:
    """Run a version that means what that of a newer opset does, which may have another name."""
    return lambda call: call.run(opset, op_type)


def _unsupported(_call: _Call) -> list[Array]:
    raise SplitError(
        UNSUPPORTED_NODE,
        "this older version of the operator has no implementation",
        "convert the model to a newer opset, or run it on another engine",
    )


def _flattened(call: _Call) -> list[Array]:
    """Run Softmax and its kin before opset 13, which take the axes before theirs as rows."""
    (result,) = call.given(*_matrix(call), axis=1).run()
    return [result.reshape(call.inputs[0].shape)]


def _aligned(call: _Call) -> list[Array]:
    """Run an operator before opset 7, which broadcasts its second operand only if asked."""
    return _with_aligned(call).run()


def _with_aligned(call: _Call) -> _Call:
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


def _divided(call: _Call) -> list[Array]:
    """Run Div, which rounds integers toward zero; the reference of onnx 1.20 rounds them down."""
    aligned = _with_aligned(call) if call.step.opset < 7 else call
    left, right = aligned.inputs
    (made,) = aligned.run()
    if made.dtype.kind != "i":
        return [made]
    with np.errstate(all="ignore"):  # the lowest integer by -1
        rest = left - made * right
    is_below = (rest != 0) & ((rest < 0) != (left < 0))
    return [np.asarray(made + is_below, made.dtype)]  # of no dimensions, NumPy gives no array


def _alike(run: _RunCall) -> _RunCall:
    """Run an operator on any number of operands, which are not broadcast before opset 8."""

    def run_alike(call: _Call) -> list[Array]:
        shapes = [operand.shape for operand in call.inputs]
        if call.step.opset < 8 and len(set(shapes)) > 1:
            problem = f"the operands have the shapes {', '.join(map(str, shapes))}"
            raise node_failed(problem, "make them equal, or convert the model to opset 8 or newer")
        return run(call)

    return run_alike


def _per_channel(call: _Call) -> list[Array]:
    """Run PRelu before opset 7, whose slope is one number, or one for each channel (axis 1)."""
    data, slope = call.inputs
    if slope.size != 1 and data.ndim > 1:
        if slope.shape != (data.shape[1],):
            problem = f"the slope has shape {slope.shape} for data of shape {data.shape}"
            raise node_failed(problem, "give one number, or one for each channel")
        slope = slope.reshape(slope.shape + (1,) * (data.ndim - 2))
    return call.given(data, np.asarray(slope)).run()


def _normalized(call: _Call) -> list[Array]:
    """Run BatchNormalization of opsets 7 to 13, which with one output uses the given mean."""
    if call.step.opset < 7:
        return call.run()
    if call.names_more or not call.attribute("spatial", 1):
        return _unsupported(call)
    kept = {name: call.attributes[name] for name in call.attributes.keys() & {"epsilon"}}
    return call._replace(attributes=kept).run(opset=15)


def _joined(call: _Call) -> list[Array]:
    """Join large tensors in memory that an earlier run has left; it needs no fresh pages."""
    if call.step.opset < 4 and "axis" not in call.attributes:
        call = call.given(axis=1)
    first, axis = call.inputs[0], call.attribute("axis")
    if first.nbytes * len(call.inputs) < _LARGE or not -first.ndim <= axis < first.ndim:
        return call.run()
    if any(value.dtype != first.dtype or value.ndim != first.ndim for value in call.inputs):
        return call.run()
    shape = list(first.shape)
    shape[axis] = sum(value.shape[axis] for value in call.inputs)
    made = call.step.pool.empty(shape, first.dtype)
    _join([*call.inputs], axis, made)
    return [made]


def _join(parts: Sequence[Any], axis: int, out: Any) -> None:
    """Join arrays, and where that is worth it with a second thread: NumPy lets it run meanwhile."""
    across = 0 if axis % out.ndim else 1
    has_halves = out.ndim > 1 and {part.shape[across] for part in parts} == {out.shape[across]}
    if out.nbytes < _LARGE_FOR_TWO or not has_halves or native.threads < 2 or out.dtype.hasobject:
        np.concatenate(parts, axis, out=out)
        return
    middle = out.shape[across] // 2
    (*first, start), (*second, end) = zip(
        *(np.split(array, [middle], across) for array in (*parts, out)), strict=True
    )
    other = Thread(target=np.concatenate, args=(second, axis, end))
    other.start()
    np.concatenate(first, axis, start)
    other.join()


def _reshaped(call: _Call) -> list[Array]:
    """Reshape before opset 5, where the new shape is an attribute; 0 keeps a dimension."""
    if "shape" not in call.attributes:
        return _unsupported(call)
    data = call.inputs[0]
    return [data.reshape([dim or data.shape[k] for k, dim in enumerate(call.attribute("shape"))])]


def _cast(call: _Call) -> list[Array]:
    """Cast before opset 6, where the element type is written out."""
    name = call.attribute("to", "").upper()
    if name not in TensorProto.DataType.keys():  # noqa: SIM118 - no mapping, though it has keys
        return _unsupported(call)
    return call.given(to=TensorProto.DataType.Value(name)).run()


def _not_dropped(call: _Call) -> list[Array]:
    """Run Dropout before opset 7, which drops at random unless `is_test` is set."""
    is_random = call.names_more or not call.attribute("is_test")
    return _unsupported(call) if is_random else [call.inputs[0]]


def _multiplied(call: _Call) -> list[Array]:
    """Run Gemm before opset 7, whose third operand is broadcast only on request.

    Where it need not be, it is asked for too: the reference forgets beta otherwise.
    """
    left, right, added = call.inputs
    rows = left.shape[1 if call.attribute("transA") else 0]
    shape = rows, right.shape[0 if call.attribute("transB") else 1]
    if added.shape != shape and not call.attribute("broadcast"):
        problem = f"C has shape {added.shape}, but the product has {shape}"
        raise node_failed(problem, "make them equal, or give broadcast = 1")
    return call.given(broadcast=1).run(opset=6)


def _sampled(call: _Call) -> list[Array]:
    """Run GridSample before opset 20, two modes of which have other names, on no points too."""
    data, grid = call.inputs
    shape = *data.shape[:2], *grid.shape[1:-1]
    if 0 in shape:
        return [np.empty(shape, data.dtype)]
    if call.step.opset >= 20:
        return call.run()
    modes = {"bilinear": "linear", "bicubic": "cubic"}
    mode = call.attribute("mode", "bilinear")
    return call.given(mode=modes.get(mode, mode)).run(opset=20)


def _taken(call: _Call) -> list[Array]:
    """Run Gather; of no indices the reference of onnx 1.20 gives a list, whatever the data is."""
    data, indices = call.inputs
    if indices.size:
        return call.run()
    return [np.take(data, indices.astype(np.int64), call.attribute("axis", 0))]


def _gathered(call: _Call) -> list[Array]:
    """Run GatherElements with fewer indices than data, which the reference refuses."""
    data, indices = call.inputs
    axis, shape = call.attribute("axis", 0), list(indices.shape)
    fits = data.ndim == indices.ndim and -data.ndim <= axis < data.ndim
    if fits:
        shape[axis] = data.shape[axis]
    if not fits or any(map(operator.gt, shape, data.shape)):
        problem = f"data {data.shape} and indices {indices.shape} do not fit along axis {axis}"
        fix = "give both one rank, an axis in it, and along the others no more indices than data"
        raise node_failed(problem, fix)
    part = data[tuple(map(slice, shape))]
    return [np.take_along_axis(part, indices.astype(np.int64), axis)]


def _normalized_in_float(call: _Call) -> list[Array]:
    """Normalise narrow floats in float, as the reference lets their squares overflow.

    The standard normalises in float, and scales in the type of the scale.
    """
    data, scale, *bias = call.inputs
    if data.dtype.itemsize >= np.dtype(np.float32).itemsize:
        return call.run()
    plain = [np.float32(0) if value is not None else None for value in bias]
    wide = [data.astype(np.float32), np.ones_like(scale, np.float32), *plain]
    result, *others = call.given(*wide).run()
    if result is not None:
        result = result.astype(scale.dtype) * scale
        for value in bias:
            result = result if value is None else result + value
    return [result, *others]


def _pooled(call: _Call) -> list[Array]:
    """Run GlobalMaxPool along all spatial axes; the reference takes the last two of any data."""
    data = call.inputs[0]
    if data.ndim < 3 or 0 in data.shape[2:]:
        problem = f"the data has shape {data.shape}"
        raise node_failed(problem, "give at least one spatial axis, none of them of size 0")
    return [data.max(axis=tuple(range(2, data.ndim)), keepdims=True)]


def _matrix(call: _Call) -> list[Array]:
    """Run Flatten, of data without elements too, which the reference can't flatten."""
    data, axis = call.inputs[0], call.attribute("axis", 1)
    if not -data.ndim <= axis <= data.ndim:
        problem = f"the axis is {axis}, but the data has rank {data.ndim}"
        raise node_failed(problem, f"give an axis in [{-data.ndim}, {data.ndim}]")
    return [data.reshape(math.prod(data.shape[:axis]), math.prod(data.shape[axis:]))]


def _computed(kernel: Callable[..., Values]) -> _RunCall:
    """Run a kernel of our own."""

    def run_kernel(call: _Call) -> list[Array]:
        attributes = {name: held.value for name, held in call.attributes.items()}
        return kernel(*call.inputs, opset=call.step.opset, **attributes)

    return run_kernel


def _padded(call: _Call) -> list[Array]:
    """Run Pad, with negative padding too, which the reference does not take."""
    data, pads, value, axes = [*call.inputs, None, None, None][:4]
    if call.step.opset < 11:
        pads = call.attribute("pads", call.attribute("paddings"))
        value = call.attribute("value", 0.0)
    places = range(data.ndim) if axes is None else [int(axis) % data.ndim for axis in axes]
    is_inside = axes is None or np.all((-data.ndim <= axes) & (axes < data.ndim))
    if len(pads) != 2 * len(places) or not is_inside:
        fix = f"give {2 * len(places)} numbers, for axes in [{-data.ndim}, {data.ndim - 1}]"
        raise node_failed(f"the padding is {[*map(int, pads)]} for data of rank {data.ndim}", fix)
    widths = [(0, 0)] * data.ndim
    for place, before, after in zip(places, pads, pads[len(places) :], strict=False):
        widths[place] = int(before), int(after)
    value = 0 if value is None else np.ravel(value)[0]
    return [kernels.pad(data, widths, call.attribute("mode", "constant"), value)]


def _one_hot(call: _Call) -> list[Array]:
    """Run OneHot: an index out of range sets nothing; one below 0 is in range since opset 11.

    The depth may be a list of one. The reference of onnx 1.20 takes every index modulo the depth.
    """
    given, depth, values = call.inputs
    count = int(depth.reshape(()))
    with np.errstate(invalid="ignore"):  # of what is not a number
        indices = given.astype(np.int64)
    if call.step.opset >= 11 and given.dtype.kind != "u":
        indices = np.where(indices < 0, indices + count, indices)
    axis = call.attribute("axis", -1)
    apart = np.expand_dims(indices, axis)
    places = np.moveaxis(np.arange(count).reshape([-1] + [1] * indices.ndim), 0, axis)
    return [values[(apart == places).astype(np.intp)]]


def _suppressed(call: _Call) -> list[Array]:
    """Run NonMaxSuppression; the reference wants lists, and no limit left out."""
    boxes, scores, *limits = call.inputs
    defaults = [np.zeros(1, np.int64), np.zeros(1, np.float32), np.full(1, -np.inf, np.float32)]
    given = [*limits, None, None, None][:3]
    pairs = zip(given, defaults, strict=True)
    known = [default if value is None else value.reshape(1) for value, default in pairs]
    return call.given(boxes, scores, *known).run()


def _upsampled(call: _Call) -> list[Array]:
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
        return _unsupported(call)  # the text does not say which elements are left out
    options = {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
    plain = call._replace(attributes={}).given(data, None, scales, mode=mode, **options)
    return plain.run(opset=13, op_type="Resize")


def _resized(call: _Call) -> list[Array]:
    """Run Resize; the reference wants axes that are sorted, and counted from the front.

    What has no elements is left out: older references take that for what it is.
    """
    if call.step.opset < 11:
        return _upsampled(call)
    first, *others = call.inputs
    call = call.given(first, *(None if v is None or not v.size else v for v in others))
    axes = call.attribute("axes")
    if axes is None:
        return call.run()
    data, roi, scales, sizes = [*call.inputs, None, None, None][:4]
    places = [axis % data.ndim for axis in axes]
    order = np.argsort(places)
    if roi is not None:
        roi = np.concatenate([half[order] for half in np.split(roi, 2)])
    lists = [None if value is None else value[order] for value in (scales, sizes)]
    return call.given(data, roi, *lists, axes=sorted(places)).run()


def _transposed(call: _Call) -> list[Array]:
    """Run ConvTranspose, each group by itself, as the reference mixes up their weights.

    Where the shape of the output is given, the padding is what is left over.
    """
    data, weights, *rest = call.inputs
    if "output_shape" in call.attributes:
        held = {name: attribute.value for name, attribute in call.attributes.items()}
        pads = kernels.transposed_pads(data.shape[2:], weights.shape[2:], **held)
        call = call.given(pads=pads, auto_pad="NOTSET")
    bias: Any = rest[0] if rest else None
    groups = call.attribute("group", 1)
    if groups == 1:
        return call.run()
    shares: list[Any] = [np.split(data, groups, 1), np.split(weights, groups)]
    shares.append([None] * groups if bias is None else np.split(bias, groups))
    parts = [call.given(*share, group=1).run()[0] for share in zip(*shares, strict=True)]
    return [np.concatenate(parts, 1)]


def _recurrent(*usual: str) -> _RunCall:
    """Return what runs LSTM, GRU or RNN, each row of the batch by its length.

    The reference takes all rows for as long as the data, knows the usual activations only, and
    limits nothing.
    """

    def run(call: _Call) -> Values:
        asked = list(call.attribute("activations", usual))
        changes = usual and asked not in (list(usual), [*usual, *usual])
        if changes or any(call.attribute(name) for name in ("clip", "input_forget")):
            problem = "its activations, clip or input_forget are not the usual ones"
            raise SplitError(UNSUPPORTED_NODE, problem, "run the model on another engine")
        data, *others = call.inputs
        lengths = others[3] if len(others) > 3 else None
        by_batch = call.attribute("layout", 0)
        if not data.shape[by_batch]:
            return _without_steps(call, by_batch)
        if lengths is None or (lengths == data.shape[by_batch]).all():
            return call.run()
        rows = [_row(call, row, int(length), by_batch) for row, length in enumerate(lengths)]
        axes = [0] * 3 if by_batch else [2, 1, 1]
        return [np.concatenate(parts, axis) for axis, *parts in zip(axes, *rows, strict=False)]

    return run


def _without_steps(call: _Call, by_batch: int) -> list[Array]:
    """Give the states as they begin, after no step; the reference can't."""
    data, weights, recurrent, *others = call.inputs
    count = 2 if call.step.op_type == "LSTM" else 1
    states: list[Array | None] = [*others[2:4], None, None][:count]
    widths = [(0, int(axis == by_batch)) for axis in range(3)]
    every = call.given(np.pad(data, widths), weights, recurrent).run()[0]
    nothing = np.zeros_like(every.take(0, by_batch))
    kept = [nothing if start is None else start for start in states]
    return [every.take(range(0), by_batch), *kept]


def _row(call: _Call, row: int, length: int, by_batch: int) -> list[Array]:
    """Run one row of a batch; what follows its last step is zero."""
    data, weights, recurrent, biases, _, *states = call.inputs
    longest = data.shape[by_batch]
    if not 0 < length <= longest:
        raise node_failed(f"a row of {longest} steps has the length {length}", "give 1 or more")
    batch, steps = 1 - by_batch, by_batch
    mine = data.take([row], batch).take(range(length), steps)
    starts = [
        each if place > 1 or each is None else each.take([row], batch)
        for place, each in enumerate(states)
    ]
    lengths = np.array([length], np.int32)
    every, *last = call.given(mine, weights, recurrent, biases, lengths, *starts).run()
    missing = [(0, longest - length if axis == steps else 0) for axis in range(4)]
    return [np.pad(every, missing), *last]


def _quantized_product(call: _Call) -> list[Array]:
    """Run QLinearMatMul; the reference rounds after it added the zero point: halves get odd."""
    left, left_scale, left_zero, right, right_scale, right_zero, scale, zero = call.inputs
    if zero.dtype.kind not in "iu":
        return call.run()
    wide = [left.astype(np.int32) - left_zero, right.astype(np.int32) - right_zero]
    product = np.matmul(*wide).astype(np.float32)
    return [kernels.requantized(product, left_scale * right_scale / scale, zero)]


def _quantized_convolution(call: _Call) -> list[Array]:
    """Run a quantised convolution as a product."""
    data, scale, zero, weights, weight_scale, weight_zero, out_scale, out_zero, *bias = call.inputs
    (found,) = call.given(data, weights, zero, weight_zero).run(op_type="ConvInteger")
    along = (-1, *[1] * (data.ndim - 2))
    if bias and bias[0] is not None:
        found = found + bias[0].reshape(along)
    factors = (scale * weight_scale / out_scale).reshape(along)
    return [kernels.requantized(found.astype(np.float32), factors, out_zero)]


def _log_sum_exp(call: _Call) -> list[Array]:
    """Run ReduceLogSumExp; the reference can't reduce what has rank 0."""
    data = call.inputs[0]
    return call.run() if data.ndim else [data]


def _of_own_type(call: _Call) -> list[Array]:
    """Run ReduceSumSquare; the reference adds integers of 32 bits up as those of 64."""
    return [result.astype(call.inputs[0].dtype, copy=False) for result in call.run()]


_BINARY = (
    *("Add", "Sub", "Mul", "Div", "Pow"),
    *("And", "Or", "Xor", "Greater", "Less", "Equal"),
)
_OURS: Mapping[str, tuple[float, _RunCall]] = {
    **dict.fromkeys(_BINARY, (7, _aligned)),
    "Div": (math.inf, _divided),
    **dict.fromkeys(("Softmax", "LogSoftmax", "Hardmax"), (13, _flattened)),
    "AveragePool": (math.inf, _computed(kernels.average_pool)),
    "BatchNormalization": (14, _normalized),
    "Cast": (6, _cast),
    "Concat": (math.inf, _joined),
    "ConvTranspose": (math.inf, _transposed),
    "DequantizeLinear": (19, _as(19)),
    "Dropout": (7, _not_dropped),
    "Flatten": (math.inf, _matrix),
    "Gather": (math.inf, _taken),
    "GatherElements": (math.inf, _gathered),
    "GRU": (math.inf, _recurrent("Sigmoid", "Tanh")),
    "Gemm": (7, _multiplied),
    "GlobalLpPool": (math.inf, _computed(kernels.global_lp_pool)),
    "GlobalMaxPool": (math.inf, _pooled),
    "GridSample": (math.inf, _sampled),
    "LSTM": (math.inf, _recurrent("Sigmoid", "Tanh", "Tanh")),
    "LRN": (math.inf, _computed(kernels.local_response_normalization)),
    "LayerNormalization": (math.inf, _normalized_in_float),
    "LpNormalization": (math.inf, _computed(kernels.lp_normalization)),
    "LpPool": (math.inf, _computed(kernels.lp_pool)),
    "MaxPool": (math.inf, _computed(kernels.max_pool)),
    "Max": (8, _alike(_Call.run)),
    "Mean": (math.inf, _alike(_computed(kernels.mean))),
    "Min": (8, _alike(_Call.run)),
    "NonMaxSuppression": (math.inf, _suppressed),
    "OneHot": (math.inf, _one_hot),
    "PRelu": (7, _per_channel),
    "Pad": (math.inf, _padded),
    "QLinearConv": (math.inf, _quantized_convolution),
    "QLinearMatMul": (math.inf, _quantized_product),
    "RMSNormalization": (math.inf, _normalized_in_float),
    "RNN": (math.inf, _recurrent()),
    "ReduceLogSumExp": (math.inf, _log_sum_exp),
    "ReduceSumSquare": (math.inf, _of_own_type),
    "Reshape": (5, _reshaped),
    "Resize": (math.inf, _resized),
    "RoiAlign": (16, _with_defaults(coordinate_transformation_mode="output_half_pixel")),
    "Scatter": (11, _as(11, "ScatterElements")),
    "Selu": (6, _with_defaults(alpha=1.6732, gamma=1.0507)),
    "Shape": (math.inf, _computed(kernels.shape)),
    "Slice": (math.inf, _computed(kernels.slice_)),
    "Softsign": (math.inf, _computed(kernels.softsign)),
    "Squeeze": (13, _computed(kernels.squeeze)),
    "Sum": (8, _alike(_Call.run)),
    "Tile": (6, _computed(kernels.tile)),
    "Unique": (math.inf, _computed(kernels.unique)),
    "Unsqueeze": (13, _computed(kernels.unsqueeze)),
    "Upsample": (math.inf, _upsampled),
}
"""By operator: the first opset from which on the reference runs it right, and what to do before."""


def _sequence_at(sequence: Any, index: object) -> Any:
    """Return the tensor at a position (SequenceAt); negative positions count from the back."""
    return _tensors(sequence)[_place(index, len(sequence), len(sequence) - 1)]


def _sequence_erase(sequence: Any, index: object = None) -> Any:
    """Return a sequence without the tensor at a position (SequenceErase), by default the last."""
    last = len(_tensors(sequence)) - 1
    place = _place(np.array(last) if index is None else index, len(sequence), last)
    return sequence[:place] + sequence[place + 1 :]


def _sequence_insert(sequence: Any, tensor: object, index: object = None) -> Any:
    """Return a sequence with a tensor before a position (SequenceInsert), by default at the end."""
    if not isinstance(tensor, np.ndarray):
        raise node_failed("what is to be inserted is not a tensor", "give a tensor")
    if _tensors(sequence) and element_type(sequence[0]) != element_type(tensor):
        raise node_failed(
            f"a tensor of {element_type(tensor)} can't join one of {element_type(sequence[0])}",
            "give a tensor of the sequence's own type",
        )
    count = len(sequence)
    place = _place(np.array(count) if index is None else index, count, count)
    return [*sequence[:place], tensor, *sequence[place:]]


def _optional_get_element(value: object) -> Any:
    """Return what the optional holds (OptionalGetElement)."""
    if value is None:
        raise node_failed("the optional is empty", "ask OptionalHasElement first")
    return value


def _tensors(value: object) -> Values:
    if not isinstance(value, list):
        raise node_failed("the input is not a sequence", "give a sequence of tensors")
    return value


def _place(value: Any, count: int, last: int) -> int:
    """Return a position in [-count, last], counted from the front."""
    is_index = isinstance(value, np.ndarray) and value.dtype in (np.int32, np.int64)
    if not is_index or value.size != 1:
        problem, fix = f"it is {described(value)}", "give a scalar of int32 or int64"
        raise SplitError(OPERAND_TYPE, problem, fix, parameter="position")
    found: Any = position(value.item(), count, last)
    return int(found)


_SEQUENCES: Mapping[str, Callable[..., object]] = {
    "SequenceAt": _sequence_at,
    "SequenceErase": _sequence_erase,
    "SequenceInsert": _sequence_insert,
    "Optional": lambda value=None: value,
    "OptionalHasElement": lambda value=None: np.array(value is not None),
    "OptionalGetElement": _optional_get_element,
}


class _SplitRun(OpRun):
    """One of the family's operators, at whatever opset the evaluator's model imports."""

    op_domain = ""

    def __init__(self, onnx_node: NodeProto, run_params: dict[str, Any]) -> None:
        super().__init__(onnx_node, run_params)
        check_attributes(onnx_node)
        self._node = ir.serde.deserialize_node(onnx_node)
        self._opset = domain_opsets(run_params["opsets"])[""]

    def _load_attributes(self) -> None:
        """Leave attributes to `bind`: the base class would add defaults of the newest version.

        Those that refer to an attribute of a function are noted, for `run` to pass their values.
        """
        links = [a for a in self.onnx_node.attribute if a.ref_attr_name]
        for link in links:
            if not hasattr(self, link.name):
                setattr(self, link.name, RefAttrName(link.ref_attr_name))
        self.has_linked_attribute = bool(links)
        self.attributes_names_ = {link.name for link in links}

    def _run(self, *inputs: Any, **attributes: Any) -> tuple[Any, ...]:
        given = [*inputs, *[None] * (len(self._node.inputs) - len(inputs))]
        linked = {name: ir.convenience.convert_attribute(name, v) for name, v in attributes.items()}
        known = {**self._node.attributes, **linked}
        return tuple(execute(bind(self._node, self._opset, given, known), given[0]))


class Split(_SplitRun):
    """ONNX Split in every version, for ``ReferenceEvaluator(model, new_ops=[Split])``."""


class SplitToSequence(_SplitRun):
    """ONNX SplitToSequence in every version, for ``new_ops`` of the reference evaluator."""


NEW_OPS: list[type[OpRun]] = [Split, SplitToSequence]
"""Both classes, to be given as ``new_ops``."""
