"""Adapters for operators whose meaning, values or types changed under the same signature."""

from __future__ import annotations

import copy

import numpy as np
import onnx_ir as ir

from tensorsplit.core.dimensions import (
    Shape,
    are_known,
    is_known,
    may_be_same,
    same_shape,
    show_shape,
)
from tensorsplit.model.convert.adapter_kinds import dropped, only, renamed, stated, table, take_only
from tensorsplit.model.convert.broadcasting import (
    covering,
    covering_the_end,
    of_one_shape,
    of_product,
)
from tensorsplit.model.convert.conversion import NodeConversion
from tensorsplit.model.graph.batch_first import has_batch_first, with_steps_first
from tensorsplit.model.graph.calculation import (
    EQUAL_BEFORE_11,
    FIRST_WITH_ANY_CONSTANT,
    FLOATS,
)
from tensorsplit.model.graph.facts import as_tensor, declared
from tensorsplit.model.graph.held_tensors import held_by
from tensorsplit.model.graph.nodes import is_used
from tensorsplit.model.graph.tensors import SparseTensor, element_type_of

_SYMMETRIC = "Add Mul And Or Xor Equal"
_BINARY = f"{_SYMMETRIC} Sub Div Pow Greater Less"
_FIRST_IR_WITH_CONSTANT_INITIALIZERS = 4
_FIRST_WITH_CAST_BY_NUMBER = 6
_MOST_BITS_COMPARED = 32
_FIRST_ROUNDED = 1 << 53
"""Smaller integers are exact as doubles, and so is whether another one is above or below them."""


def _is_part(part: Shape | None, whole: Shape | None) -> bool:
    """Return whether a shape is surely the end of another one, or that of one element."""
    if part is None or whole is None or len(part) > len(whole):
        return False
    if all(dim == 1 for dim in part):
        return len(part) <= 1
    return same_shape(part, whole[len(whole) - len(part) :])


def _binary_up(node: NodeConversion) -> None:
    """Unsqueeze the second operand, which before opset 7 was aligned with the first at an axis.

    Before, it had the shape of the first one; with `broadcast` that of some of its axes, or one
    element.
    """
    broadcast, axis = node.take("broadcast", 0), node.take("axis")
    if not broadcast:
        _variadic_up(node)
        return
    left, right = node.shape(0), node.shape(1)
    if left is None or right is None:
        if axis is not None:
            raise node.refusal(
                f"it broadcasts along the axis {axis}, and the ranks of its operands are not known",
                "declare their shapes",
            )
        node.set_inputs(node.input(0), covering_the_end(node))
        return
    start = len(left) - len(right)
    if axis is not None and start:
        start = axis % max(len(left), 1)
    second = covering(node, start)
    trailing = len(left) - start - len(right)
    if trailing > 0 and right:
        axes = [len(right) + index for index in range(trailing)]
        second = node.make.op("Unsqueeze", [second], {"axes": axes})
    node.set_inputs(node.input(0), second)


def _variadic_up(node: NodeConversion) -> None:
    """Stop the model where operands have different shapes, which are broadcast only since then."""
    count = len(node.node.inputs)
    node.set_inputs(node.input(0), *(of_one_shape(node, index) for index in range(1, count)))


def _product_up(node: NodeConversion) -> None:
    """Stop the model where Gemm's third operand has another shape, and was not to be broadcast."""
    if not node.take("broadcast", 0):
        node.set_inputs(node.input(0), node.input(1), of_product(node))


def _binary_down(node: NodeConversion) -> None:
    left, right = node.shape(0), node.shape(1)
    if same_shape(left, right):
        return
    if not _is_part(right, left):
        if not _is_part(left, right) or node.op_type not in _SYMMETRIC.split():
            raise node.refusal(
                f"its operands have the shapes {show_shape(left)} and {show_shape(right)}; before"
                " opset 7 they have to be the same, or the second one the end of the first",
                "declare the shapes of its operands, if they are so",
            )
        node.set_inputs(node.input(1), node.input(0))
    node.put(broadcast=1)


def _variadic_down(node: NodeConversion) -> None:
    shapes = [node.shape(index) for index in range(len(node.node.inputs))]
    if not all(same_shape(shapes[0], shape) for shape in shapes[1:]):
        raise node.refusal(
            f"its operands have the shapes {', '.join(map(show_shape, shapes))}; before opset 8"
            " they have to be the same",
            "declare the shapes of its operands, if they are so",
        )


def _integer_extremes(node: NodeConversion) -> None:
    """Replace Max or Min of integers by Less and Where: they take only floats before opset 12."""
    kind = node.dtype()
    if kind is None or not kind.is_integer():
        return
    make, (first, *others) = node.make, [each for each in node.node.inputs if each is not None]
    found = first if others else make.op("Identity", [first])
    for other in others:
        pair = [found, other] if node.op_type == "Min" else [other, found]
        found = make.op("Where", [make.op("Less", pair), found, other])
    node.replace(found)


def _integers_compared(node: NodeConversion) -> None:
    """Compare integers as doubles where those are exact: Less and Greater take floats before 9.

    A double holds 53 bits. Integers of more are compared right with a constant that is smaller.
    """
    kind = node.dtype()
    if kind is None or not kind.is_integer():
        return
    constants = [each.ravel().tolist() for each in map(node.known, (0, 1)) if each is not None]
    is_small = any(all(abs(item) < _FIRST_ROUNDED for item in held) for held in constants)
    if kind.bitwidth <= _MOST_BITS_COMPARED or is_small:
        to = {"to": ir.DataType.DOUBLE.value}
        node.set_inputs(*(node.make.op("Cast", [each], to) for each in node.node.inputs))


def _others_equal(node: NodeConversion) -> None:
    """Compare as int64, or by Less and Greater: Equal takes two types of integers before opset 11.

    What is not a number is equal to nothing, and neither less nor greater.
    """
    kind, make, pair = node.dtype(), node.make, [node.given(index) for index in (0, 1)]
    if kind is None or kind in EQUAL_BEFORE_11:
        return
    if kind.is_integer() and kind.bitwidth <= _MOST_BITS_COMPARED:
        to = {"to": ir.DataType.INT64.value}
        node.set_inputs(*(make.op("Cast", [each], to) for each in pair))
        return
    differ = make.op("Or", [make.op(op_type, pair) for op_type in ("Less", "Greater")])
    for index, each in enumerate(pair):
        known = node.known(index)
        if kind.is_floating_point() and (known is None or np.isnan(known).any()):
            differ = make.op("Or", [differ, make.op("IsNaN", [each])])
    node.replace(make.op("Not", [differ]))


def _prelu_up(node: NodeConversion) -> None:
    """Add trailing dimensions to a slope per channel, which were implicit before opset 7."""
    slope, rank = node.shape(1), node.rank()
    if slope is not None and all(dim == 1 for dim in slope):
        return
    if slope is None or rank is None or len(slope) != 1:
        raise node.refusal(
            "the shapes of its data and slope are not known", "declare them in the model"
        )
    if rank > 2:
        axes = list(range(1, rank - 1))
        node.set_inputs(node.input(0), node.make.op("Unsqueeze", [node.input(1)], {"axes": axes}))


def _prelu_down(node: NodeConversion) -> None:
    slope, data = node.shape(1), node.shape(0)
    if slope is not None and all(dim == 1 for dim in slope):
        return
    if slope is None or data is None or len(slope) > len(data):
        raise node.refusal("the shapes of its data and slope are not known", "declare them")
    whole = (1,) * (len(data) - len(slope)) + slope
    if not same_shape(whole, (1, *data[1:2], *(1 for _ in data[2:]))):
        raise node.refusal(
            f"its slope has the shape {show_shape(slope)}; before opset 7 it is one number, or one"
            " for each channel"
        )
    if len(slope) > 1:
        position = len(slope) - len(data) + 1
        axes = [index for index in range(len(slope)) if index != position]
        node.set_inputs(node.input(0), node.make.op("Squeeze", [node.input(1)], {"axes": axes}))


_FIRST_WITH_ZEROS = 14
"""From here on Reshape can make dimensions of length 0."""


def _softmax_up(node: NodeConversion) -> None:
    """Convert from data as a matrix, flattened at the axis, to a single axis."""
    axis, rank = node.take("axis", 1), node.rank()
    if rank is not None and axis in (rank - 1, -1):
        node.put(axis=-1)
        return
    dims, zeros = node.shape(), {}
    if dims is None or not are_known(dims) or 0 in dims:  # before, 0 is a dimension of the matrix
        node.opset, zeros = _FIRST_WITH_ZEROS, {"allowzero": 1}
    flat = node.make.op("Flatten", [node.input(0)], {"axis": axis})
    shape = node.make.op("Shape", [node.input(0)])
    result = node.make.op(node.op_type, [flat], {"axis": -1})
    node.replace(node.make.op("Reshape", [result, shape], zeros))


def _softmax_down(node: NodeConversion) -> None:
    """Convert from a single axis, which must be the last, to data as a matrix."""
    axis, rank = node.take("axis", -1), node.rank()
    if axis == -1 and rank is None:
        node.put(axis=-1)
        return
    rank = node.needed_rank()
    axis %= max(rank, 1)
    if rank == 0 or axis == rank - 1:
        node.put(axis=axis)
        return
    order = [index for index in range(rank) if index != axis] + [axis]
    moved = node.make.op("Transpose", [node.input(0)], {"perm": order})
    result = node.make.op(node.op_type, [moved], {"axis": rank - 1})
    back = [int(index) for index in np.argsort(order)]
    node.replace(node.make.op("Transpose", [result], {"perm": back}))


def _grid_modes(node: NodeConversion) -> None:
    """Convert GridSample's modes; since opset 20 they have other names, and data any rank."""
    names = {"bilinear": "linear", "bicubic": "cubic"}
    default = "bilinear"
    if not node.step.up:
        names, default = {new: old for old, new in names.items()}, "linear"
        if node.rank() not in (None, 4):
            raise node.refusal(f"the rank of its data is {node.rank()}; opset {node.opset} takes 4")
    mode = node.attribute("mode", default)
    node.put(mode=names.get(mode, mode))


def _same_padding(node: NodeConversion) -> None:
    """Refuse automatic padding of ConvTranspose: opset 11 swapped the sides of an odd padding."""
    if node.attribute("auto_pad", "NOTSET").startswith("SAME") or node.attribute("output_shape"):
        raise node.refusal(
            "its padding follows from its output's shape; opset 11 changed which side gets more",
            "give 'pads'",
        )


def _windows(node: NodeConversion) -> None:
    """Refuse pooling windows that may start in the padding at the end: opset 22 leaves them out."""
    if node.attribute("ceil_mode", 0):
        kernel = list(node.attribute("kernel_shape", ()))
        count = len(kernel)
        strides = node.attribute("strides", [1] * count)
        dilations = node.attribute("dilations", [1] * count)
        pads = list(node.attribute("pads", [0] * (2 * count)))[count:]
        for size, stride, dilation, pad in zip(kernel, strides, dilations, pads, strict=False):
            if pad + stride > (size - 1) * dilation + 1:
                raise node.refusal(
                    "its last window may start in the padding, and is left out from opset 22 on",
                    "choose pads and strides that keep windows within the data",
                )


def _exponent(node: NodeConversion) -> None:
    """Convert the attribute `p`, which was a float before opset 2."""
    value = node.attribute("p", 2)
    if value % 1 != 0:  # of no number, too
        raise node.refusal(f"its attribute 'p' is {value}; since opset 2 it is a whole number")
    node.put(p=int(value) if node.step.up else float(value))


def _branches(node: NodeConversion) -> None:
    """Refuse an If whose branches give different shapes, which is legal only since opset 11.

    A declaration that is surely wrong is removed: engines merge those of both branches there.
    """
    facts = node.conversion.facts
    branches = [node.attribute(name).outputs for name in ("then_branch", "else_branch")]
    for pair in zip(*branches, strict=False):
        if not may_be_same(*(facts.tensor(value).shape for value in pair)):
            raise node.refusal(
                "its branches give different shapes; before opset 11 they have to be the same",
                f"convert to opset {node.step.boundary} or newer",
            )
        for value in pair:
            if not may_be_same(facts.tensor(value).shape, as_tensor(declared(value)).shape):
                value.shape = None


def _carrying(node: NodeConversion) -> None:
    """Carry a number in a Loop that carries nothing, which is legal only since opset 11."""
    body, given = node.attribute("body"), [*node.node.inputs]
    if body is None or len(given) > 2:
        return
    make, inner = node.make, node.make.inner()
    state = make.new("state", ir.DataType.INT64, [])
    kept = inner.op("Identity", [state])
    kept.type, kept.shape = state.type, state.shape
    node.take("body")
    body.extend(inner.nodes)
    body.inputs.append(state)
    body.outputs.insert(1, kept)
    carried = [*given, make.constant(0)]
    ends = ("kept", *(f"rows_{place}" for place in range(len(node.node.outputs))))
    node.replace(*make.ops("Loop", carried, {"body": body}, ends)[1:], is_exact=True)


def _not_training(node: NodeConversion) -> None:
    """Refuse a BatchNormalization that is in training mode."""
    if node.op_type == "BatchNormalization":
        if any(map(is_used, node.node.outputs[1:])):
            raise node.refusal(
                f"it is in training mode, which is not converted to opset {node.opset}"
            )
        node.node.resize_outputs(1)


def _training_flag_up(node: NodeConversion) -> None:
    if not node.take("is_test", 0):
        raise node.refusal("it is in training mode (is_test is 0), which opset 7 does not have")
    _not_training(node)


def _training_flag_down(node: NodeConversion) -> None:
    _not_training(node)
    node.put(is_test=1)


def _scales_of_groups(node: NodeConversion) -> None:
    """Convert GroupNormalization's scale and bias from one per group to one per channel."""
    shape, groups = node.shape(), node.attribute("num_groups")
    channels = shape[1] if shape is not None and len(shape) > 1 else None
    if groups < 1:
        raise node.refusal(f"it has {groups} groups")
    if not is_known(channels):
        raise node.refusal(
            "it has a scale for each group and needs one for each channel, and the number of"
            " channels is not known",
            "declare the data's shape",
        )
    one_each = node.make.constant([groups, 1])
    repeated, flat = node.make.constant([groups, channels // groups]), node.make.constant([-1])
    inputs = [node.input(0)]
    for index in (1, 2):
        column = node.make.op("Reshape", [node.input(index), one_each])
        inputs.append(node.make.op("Reshape", [node.make.op("Expand", [column, repeated]), flat]))
    node.set_inputs(*inputs)


def _request_sequence(node: NodeConversion) -> None:
    """Set `output_sequence`, needed before opset 7, if the output of the whole sequence is used."""
    if any(whole.name and is_used(whole) for whole in node.node.outputs[:1]):
        node.put(output_sequence=1)


def _cast_name_up(node: NodeConversion) -> None:
    name = str(node.take("to")).upper()
    if name not in ir.DataType.__members__:
        raise node.refusal(f"it casts to {name!r}, which is not an element type")
    node.put(to=ir.DataType[name].value)


def _cast_name_down(node: NodeConversion) -> None:
    node.put(to=_cast_to(node).name)
    node.declare(*node.node.outputs)  # onnx does not read such a name, and Split needs a type


def _cast_to(node: NodeConversion) -> ir.DataType:
    number = node.attribute("to")
    found = element_type_of(number)
    if found is None:
        raise node.refusal(f"it casts to {number!r}, which is not an element type")
    return found


def _cast_plain(node: NodeConversion) -> None:
    """Remove attributes for the narrowest floats only: saturation, and of powers of 2 rounding."""
    to = _cast_to(node) if node.op_type == "Cast" else node.dtype(1)
    for name, concerned in {"saturate": "FLOAT8", "round_mode": "FLOAT8E8M0"}.items():
        if to is not None and not to.name.startswith(concerned):
            node.take(name)


def _cast_like(node: NodeConversion) -> None:
    node.put(to=node.needed_dtype(1).value)
    node.node.op_type = "Cast"
    node.keep_inputs(1)


def _quantized_type(node: NodeConversion) -> None:
    """Remove an output type that follows from the inputs."""
    like = node.dtype(2 if node.op_type == "QuantizeLinear" else 1)
    if like is not None and node.attribute("output_dtype", 0) == like.value:
        node.take("output_dtype")


def _quantized_as_floats(node: NodeConversion) -> None:
    """Cast data and scale to float where either is of another type than the version takes.

    Before opset 19 the scale is a float, up to 22 it has the type of the data.
    """
    data, scale = node.dtype(), node.dtype(1)
    is_old = node.opset < _FIRST_WITH_ONE_QUANTIZED_TYPE
    if data is None or (scale != ir.DataType.INT32 if is_old else data == scale):
        return
    floats = [
        node.input(index)
        if dtype == ir.DataType.FLOAT
        else node.make.op("Cast", [node.input(index)], {"to": ir.DataType.FLOAT.value})
        for index, dtype in enumerate((data, scale))
    ]
    node.set_inputs(*floats, *node.node.inputs[2:])


_FIRST_WITH_ONE_QUANTIZED_TYPE = 19


def _no_floats(node: NodeConversion) -> None:
    """Refuse a Mod without `fmod` that may take floats, which is legal only since opset 28."""
    dtype = node.dtype()
    if not node.attribute("fmod", 0) and (dtype is None or dtype.is_floating_point()):
        raise node.refusal("it may take floats without 'fmod', which is legal from opset 28 on")


def _constant_down(node: NodeConversion) -> None:
    """Write a constant's numbers or strings as a tensor, as needed before opset 12.

    OpenVINO reads nothing else before opset 13.
    """
    attributes = node.node.attributes
    held = None if "value" in attributes else held_by(attributes)
    if held is not None:
        attributes.clear()
        node.put(value=held)


def _constant_dense(node: NodeConversion) -> None:
    """Refuse a sparse constant, which does not exist before opset 11."""
    held = node.attribute("value")
    if isinstance(held, SparseTensor) and held.kept is not None:
        raise node.refusal("it holds a sparse tensor")


def plain_constant(node: NodeConversion) -> None:
    """Replace a constant other than float by an initializer, or in functions by a Cast (opset < 9).

    In a function, values that a float can't hold are refused (TS512).
    """
    conversion, scope = node.conversion, node.ref.scope
    tensor = node.attribute("value") if node.opset < FIRST_WITH_ANY_CONSTANT else None
    if tensor is None or tensor.dtype in FLOATS:
        return
    if isinstance(scope, ir.Graph):
        made = ir.Value(
            name=conversion.names.fresh(node.node.outputs[0].name or "constant"),
            shape=ir.Shape(tensor.shape),
            type=ir.TensorType(tensor.dtype),
            const_value=copy.deepcopy(tensor),  # it gets the name, and is the caller's own message
        )
        node.replace(made)
        scope.register_initializer(made)
        oldest = max(conversion.model.ir_version, _FIRST_IR_WITH_CONSTANT_INITIALIZERS)
        conversion.model.ir_version = oldest
        return
    array = tensor.numpy()
    if array.dtype.kind not in "iub" or (array.astype(float).astype(array.dtype) != array).any():
        raise node.refusal("it holds values that a constant of floats can't hold")
    node.take("value")
    by_number = node.opset >= _FIRST_WITH_CAST_BY_NUMBER
    floats = node.make.constant(array, np.float64)
    node.node.op_type = "Cast"
    node.set_inputs(floats)
    node.put(to=tensor.dtype.value if by_number else tensor.dtype.name)


def _steps_first(node: NodeConversion) -> None:
    if has_batch_first(node.node):
        node.replace(*with_steps_first(node.make, node.node))


def _scan(node: NodeConversion) -> None:
    raise node.refusal(
        "opset 9 changed what it scans: the second axis of each item of a batch before, any axis"
        " since"
    )


_SHIFTED = ("coordinate_transformation_mode", "output_half_pixel")

ADAPTERS = table(
    (_BINARY, 7, _binary_up, _binary_down),
    ("Sum Max Min Mean", 8, _variadic_up, _variadic_down),
    ("Max Min", 12, None, _integer_extremes),
    ("Greater Less", 9, None, _integers_compared),
    ("Equal", 11, None, _others_equal),
    ("PRelu", 7, _prelu_up, _prelu_down),
    ("Gemm", 7, _product_up, stated("broadcast", 1)),
    ("Softmax LogSoftmax Hardmax", 13, _softmax_up, _softmax_down),
    ("ConvTranspose", 11, _same_padding, _same_padding),
    ("GridSample", 20, _grid_modes, _grid_modes),
    ("LpPool GlobalLpPool", 2, _exponent, _exponent),
    ("AveragePool MaxPool", 22, _windows, _windows),
    ("RoiAlign", 16, stated(*_SHIFTED), lambda node: take_only(node, *_SHIFTED)),
    ("BatchNormalization", 6, None, stated("consumed_inputs", [0, 0, 0, 1, 1])),
    ("BatchNormalization Dropout", 7, _training_flag_up, _training_flag_down),
    ("BatchNormalization", 14, _not_training, _not_training),
    ("GroupNormalization", 21, _scales_of_groups, None),
    ("GRU", 3, stated("direction", "forward"), None),
    ("GRU LSTM RNN", 14, None, _steps_first),
    ("GRU LSTM RNN", 7, dropped("output_sequence"), _request_sequence),
    ("Concat", 4, stated("axis", 1), None),
    ("MeanVarianceNormalization", 13, stated("axes", [0, 2, 3]), None),  # onnx needs its default
    ("If", 11, None, _branches),
    ("Loop", 11, None, _carrying),
    ("Scan", 9, _scan, _scan),
    ("Pad", 19, None, only("mode", "constant", "reflect", "edge")),
    ("ScatterElements ScatterND", 18, None, only("reduction", "none", "add", "mul")),
    ("Scatter", 11, renamed("ScatterElements"), None),
    ("ScatterElements", 11, None, renamed("Scatter")),
    ("Cast", 6, _cast_name_up, _cast_name_down),
    ("Cast CastLike", 19, None, _cast_plain),
    ("Cast CastLike", 24, None, _cast_plain),
    ("CastLike", 15, None, _cast_like),
    ("QuantizeLinear", 19, _quantized_as_floats, _quantized_as_floats),
    ("QuantizeLinear", 21, None, _quantized_type),
    ("QuantizeLinear", 23, None, _quantized_as_floats),
    ("DequantizeLinear", 23, None, _quantized_type),
    ("Mod", 28, None, _no_floats),
    ("Constant", 13, None, _constant_down),
    ("Constant", 11, None, _constant_dense),
)
