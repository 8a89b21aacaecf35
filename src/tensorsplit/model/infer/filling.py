"""`infer_shapes`: writes the inferred facts into the model, and reports the new ones."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import SupportsIndex, TypeAlias, overload

import onnx
import onnx_ir as ir

from tensorsplit.arrays.onnx_ir import shape_in_model
from tensorsplit.core.dimensions import Dim, as_shape, show_shape, text_of
from tensorsplit.core.errors import (
    INPUT_SHAPE,
    UNKNOWN_INPUT,
    USAGE,
    SplitError,
    short_name,
    show,
    wrong_type,
)
from tensorsplit.core.given import as_dict
from tensorsplit.model.graph.building import full_collections_deferred
from tensorsplit.model.graph.facts import SequenceFact, Tensor, declared
from tensorsplit.model.graph.nodes import Scope, bodies
from tensorsplit.model.infer.analysis import Facts, analyse
from tensorsplit.model.reading import ModelLike, OnnxModel, open_model, read_model

Dims: TypeAlias = Sequence[SupportsIndex]


@overload  # first: to a checker without stubs of protobuf a message is of any class
def infer_shapes(
    model: str | os.PathLike[str] | onnx.ModelProto,
    *,
    input_shapes: Mapping[str, Dims] | None = ...,
) -> onnx.ModelProto: ...
@overload
def infer_shapes(model: ir.Model, *, input_shapes: Mapping[str, Dims] | None = ...) -> ir.Model: ...
@full_collections_deferred()
def infer_shapes(
    model: str | os.PathLike[str] | onnx.ModelProto | ir.Model,
    *,
    input_shapes: Mapping[str, Dims] | None = None,
) -> onnx.ModelProto | ir.Model:
    """Fill in the type and shape of every value of a model that can be known.

    Outputs of split nodes and of the operators on sequences follow from this package's rules; all
    other operators go through onnx's own inference, with what is known of shapes that the graph
    computes. A dimension is a number where it can be, an expression such as ``N - 2`` where it
    follows from one with a name (a name such as ``dim_1f0c6ab4d2e9`` for one of more than 200
    characters), and else left open. A name stands for any number from 0 on.

    Args:
        model: A path, an ``onnx.ModelProto`` or an ``onnx_ir.Model``; it is left as it is. The
            path may be that of an OpenVINO IR (``.xml``).
        input_shapes: Shapes to give to inputs, by name; they must agree with what is declared.

    Returns:
        The model with the types filled in, of the kind that came in; a ModelProto for a path.
        Weights are not read; nothing else is changed. An IR comes back as an ONNX message whose
        nodes are its layers, in the domain ``org.openvinotoolkit``.

    Raises:
        SplitError: TS501 to TS504 for the model; TS1xx to TS3xx for a wrong split node; TS205 if
            one given is not a shape, TS506 and TS507 for one that fits no input, TS703 if
            `input_shapes` is not a mapping.

    Example:
        >>> described = ts.infer_shapes("uneven.onnx")
        >>> [dim.dim_value for dim in described.graph.output[0].type.tensor_type.shape.dim]
        [3, 4]
    """
    shapes = as_dict({} if input_shapes is None else input_shapes)
    if shapes is None:
        problem, fix = wrong_type(input_shapes), "give a mapping from input names to shapes"
        raise SplitError(USAGE, problem, fix, parameter="input_shapes")
    opened, changed = open_filled(model, shapes)
    return opened.back(bool(changed), typed=changed)


@full_collections_deferred()
def open_filled(
    model: ModelLike, input_shapes: Mapping[str, Dims]
) -> tuple[OnnxModel, list[ir.Value]]:
    """Return the model as `infer_shapes` fills it in, and the values that got a type or shape."""
    read = read_model(model, without_weights=True)
    opened = open_model(read) if read.openvino is None else replace(read)
    changed = [_give_shape(opened.model, name, shape) for name, shape in input_shapes.items()]
    return opened, changed + fill(opened.model, analyse(opened.model, strict=True))


def _give_shape(model: ir.Model, name: str, given: Dims) -> ir.Value:
    shape = as_shape(given)
    value = next((value for value in model.graph.inputs if value.name == name), None)
    if value is None:
        raise SplitError(
            UNKNOWN_INPUT,
            f"the model has no input {show(name)}",
            f"name one of {', '.join(show(value.name) for value in model.graph.inputs[:12])}",
            parameter=short_name(name),
        )
    before = None if value.shape is None else tuple(value.shape)
    if before is not None and (
        len(before) != len(shape)
        or any(isinstance(a, int) and 0 <= a != b for a, b in zip(before, shape, strict=True))
    ):
        raise SplitError(
            INPUT_SHAPE,
            f"it is to have shape {show_shape(shape)}, but is declared as {show_shape(before)}",
            "give a shape that agrees with the declared one",
            parameter=name,
        )
    value.shape = shape_in_model(shape)
    return value


def fill(model: ir.Model, facts: Facts) -> list[ir.Value]:
    """Write the facts into the values of the main graph and its bodies; those that got any."""
    return [value for value in _values(model.graph) if fill_value(value, facts)]


def _values(scope: Scope) -> Iterator[ir.Value]:
    for node in scope:
        for value in node.outputs:
            if value.name:
                yield value
        for _, body in bodies(node):
            yield from body.inputs
            yield from _values(body)


def fill_value(value: ir.Value, facts: Facts) -> bool:
    """Write the fact about a value into it; return whether it got a type or shape."""
    fact, kind, before = facts.of(value), value.type, value.shape
    if isinstance(fact, Tensor):
        found, shape = fact.element_type, fact.shape
        if found is not None and not _is_tensor_type(kind):
            value.type = ir.TensorType(found)
    elif isinstance(fact, SequenceFact):
        found, shape = fact.element_type, fact.part
        if found is not None and kind is None:
            value.type = ir.SequenceType(ir.TensorType(found))
    else:
        shape = fact.shape
        if kind is None:
            value.type = fact.type
    if shape is not None and value.type is not None and not _says(before, shape):
        value.shape = ir.Shape([_dim(dim) for dim in shape])
    return kind is not value.type or before is not value.shape


def _is_tensor_type(kind: ir.TypeProtocol | None) -> bool:
    """Return whether it is the type of a tensor, of an element type that is known."""
    if kind is None or not isinstance(kind, ir.TensorType):  # for None the check would take long
        return False
    return kind.dtype is not ir.DataType.UNDEFINED


def _says(before: ir.Shape | None, shape: tuple[Dim, ...]) -> bool:
    return before is not None and [str(_dim(dim)) for dim in shape] == list(map(str, before))


def _dim(dim: Dim) -> int | str | None:
    return dim if dim is None or isinstance(dim, (int, str)) else text_of(dim)


def described(values: Iterable[ir.Value]) -> list[str]:
    """Return a line for each value of a node, such as ``q: tensor(float) (N, 6, 4)``."""
    return [_line(value) for value in values if not value.is_graph_input()]


def _line(value: ir.Value) -> str:
    fact = declared(value)
    kind = "sequence of " if isinstance(fact, SequenceFact) else ""
    text = f"{value.name}: {kind}tensor({(value.dtype or ir.DataType.UNDEFINED).name.lower()})"
    shape = fact.part if isinstance(fact, SequenceFact) else fact.shape
    return text if shape is None else f"{text} {show_shape(shape)}"
