"""What inference added to a model, as lines of text."""

from __future__ import annotations

from collections.abc import Iterator

import onnx

from tensorsplit.model.graph.message import graphs
from tensorsplit.model.graph.reading import Source, read_model


def filled_in(source: Source, made: onnx.ModelProto) -> list[str]:
    """The values whose type or shape the result tells and the source did not.

    Args:
        source: The model that came in.
        made: The same model after inference.

    Returns:
        A line for each value, such as ``q: tensor(float) (N, 6, 4)``, in the order of the graphs.
    """
    before = dict(_described(read_model(source).original))
    return [line for name, line in _described(made) if before.get(name) != line]


def _described(model: onnx.ModelProto) -> Iterator[tuple[tuple[int, str], str]]:
    for number, graph in enumerate(graphs(model)):
        for value in (*graph.value_info, *graph.output):
            yield (number, value.name), f"{value.name}: {_text(value.type)}"


def _text(declared: onnx.TypeProto) -> str:
    if declared.HasField("sequence_type"):
        return f"sequence of {_text(declared.sequence_type.elem_type)}"
    tensor = declared.tensor_type
    name = onnx.TensorProto.DataType.Name(tensor.elem_type).lower()
    if not tensor.HasField("shape"):
        return f"tensor({name})"
    dims = [
        str(dim.dim_value) if dim.HasField("dim_value") else dim.dim_param or "?"
        for dim in tensor.shape.dim
    ]
    return f"tensor({name}) ({', '.join(dims)}{',' if len(dims) == 1 else ''})"
