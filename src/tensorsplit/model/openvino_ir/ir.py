"""OpenVINO IR 10 and 11: reading them, checking their split layers, and running them by our rules.

What runs here is what the split layers need: Parameter, Const, VariadicSplit, Split and Result,
without the openvino package. A model with other layers can be read and checked, and runs with the
engine ``openvino``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from os import PathLike, fspath
from pathlib import Path
from typing import Any

from tensorsplit.core.errors import (
    INPUT_SHAPE,
    MALFORMED_MODEL,
    UNKNOWN_INPUT,
    UNSUPPORTED_NODE,
    SplitError,
)
from tensorsplit.core.records.openvino import ELEMENT_TYPES
from tensorsplit.model.graph.reading import DeclaredInput, check_feeds, show_shape
from tensorsplit.model.openvino_ir.declared import (
    CONSTANTS,
    Range,
    check_weights,
    element_type_of,
    input_name,
    name_outputs,
    ranges_of,
)
from tensorsplit.model.openvino_ir.graph import Graph, Layer
from tensorsplit.model.openvino_ir.walk import Value, Walk, record_of
from tensorsplit.model.openvino_ir.xml import read_xml


@dataclass(frozen=True)
class OpenVinoModel:
    """An OpenVINO IR model.

    Attributes:
        path: The ``.xml`` file.
        graph: Its layers, ports and edges.
        inputs: What the Parameters declare, in the order of the file.
        output_names: What the Results are called, in the order of the file.
    """

    path: Path
    graph: Graph
    inputs: tuple[DeclaredInput, ...]
    output_names: tuple[str, ...]

    @property
    def weights(self) -> Path:
        """The ``.bin`` file, which need not exist if no constant has data."""
        return self.path.with_suffix(".bin")

    @property
    def parameters(self) -> tuple[Layer, ...]:
        """The Parameters, in the order of the file."""
        return self.graph.of_type("Parameter")

    @property
    def other_layers(self) -> tuple[Layer, ...]:
        """The layers that only OpenVINO itself can run."""
        return tuple(layer for layer in self.graph.order if not _runs_here(layer))


def read_ir(path: str | PathLike[str]) -> OpenVinoModel:
    """Read an OpenVINO IR model.

    Args:
        path: The ``.xml`` file; its ``.bin`` lies beside it. The constants' data is not read.

    Returns:
        The model.

    Raises:
        SplitError: TS501 for a file that is no IR 10 or 11, TS502 for a graph that is not
            well-formed, TS503 for XML with a document type, TS504 for a ``.bin`` that is missing
            or does not hold what the ``.xml`` says.
    """
    file = Path(fspath(path))
    graph = read_xml(file)
    _check_ends(graph)
    parameters = graph.of_type("Parameter")
    model = OpenVinoModel(
        file, graph, tuple(_declared(layer) for layer in parameters), name_outputs(graph)
    )
    names: set[str] = set()
    for layer, declared in zip(parameters, model.inputs, strict=True):
        if declared.name in names:
            raise SplitError(
                MALFORMED_MODEL,
                f"two inputs are called '{declared.name}'",
                "give each its own name",
                node=layer.path,
            )
        names.add(declared.name)
    check_weights(graph, model.weights)
    return model


def run_ir(model: OpenVinoModel, feeds: Mapping[str, Any]) -> dict[str, Any]:
    """Run a model by our own rules.

    Args:
        model: What `read_ir` returned.
        feeds: An array for each input, by the name of its layer or by one of its tensor names.

    Returns:
        An array for each output, by name, in the order of the file: views of what was fed, where
        it is not a constant.

    Raises:
        SplitError: TS505 to TS508 for the feeds; TS509 for a model with other layers; TS1xx to
            TS3xx for a split layer that is refused; TS504 for a constant that can't be read.
    """
    for layer in model.other_layers:
        raise SplitError(
            UNSUPPORTED_NODE,
            f"the layer is of type {layer.type} ({layer.version or 'of no opset'})",
            'use engine="openvino", or a model of Parameter, Const, VariadicSplit, Split, Result',
            node=layer.path,
        )
    fed = check_ir_feeds(model, feeds)
    walk = Walk(model.weights, load_all=True)
    results = walk.run(model.graph, _fed_values(model, fed))
    return {name: value.array for name, value in zip(model.output_names, results, strict=True)}


def validate_ir(model: OpenVinoModel, feeds: Mapping[str, Any]) -> list[str]:
    """Check the split layers as far as the constants and the feeds tell, without running others.

    Args:
        model: What `read_ir` returned.
        feeds: What `check_ir_feeds` returned.

    Returns:
        The paths of the split layers whose operands or data could not be known completely.

    Raises:
        SplitError: TS1xx to TS3xx for a split layer that is wrong.
    """
    walk = Walk(model.weights, load_all=False)
    walk.run(model.graph, _fed_values(model, feeds))
    return walk.undecided


def check_ir_feeds(model: OpenVinoModel, feeds: Mapping[str, Any]) -> dict[str, Any]:
    """Check the inputs of a run against what the model declares.

    Args:
        model: What `read_ir` returned.
        feeds: An array for each input, by the name of its layer or by one of its tensor names.

    Returns:
        The arrays by the names in `OpenVinoModel.inputs`.

    Raises:
        SplitError: TS505 to TS508.
    """
    fed = check_feeds(model.inputs, _by_layer_name(model, feeds))
    for layer, declared in zip(model.parameters, model.inputs, strict=True):
        ranges = ranges_of(layer)
        shape = fed[declared.name].shape
        if ranges is not None and not all(map(_lies_in, shape, ranges)):
            raise SplitError(
                INPUT_SHAPE,
                f"it has shape {show_shape(shape)}",
                f"the model declares {layer.attributes['shape']}",
                parameter=declared.name,
                node=layer.path,
            )
    return fed


def _lies_in(length: int, bounds: Range) -> bool:
    low, high = bounds
    return low <= length and (high is None or length <= high)


def _by_layer_name(model: OpenVinoModel, feeds: Any) -> Any:
    if not isinstance(feeds, Mapping):
        return feeds  # check_feeds says what is wrong with it
    aliases = {declared.name: declared.name for declared in model.inputs}
    for layer, declared in zip(model.parameters, model.inputs, strict=True):
        for port in layer.outputs:
            for alias in port.names:
                aliases.setdefault(alias, declared.name)
    found: dict[Any, Any] = {}
    for key, value in feeds.items():
        name = aliases.get(key, key) if isinstance(key, str) else key
        if name in found:
            raise SplitError(
                UNKNOWN_INPUT,
                f"'{key}' is another name of the input '{name}', which is given twice",
                "give it once",
                parameter=key,
            )
        found[name] = value
    return found


def _declared(layer: Layer) -> DeclaredInput:
    ranges = ranges_of(layer)
    name = element_type_of(layer)
    return DeclaredInput(
        name=input_name(layer),
        element_type=None if name is None else ELEMENT_TYPES[name],
        shape=None
        if ranges is None
        else tuple(low if low == high else None for low, high in ranges),
    )


def _fed_values(model: OpenVinoModel, fed: Mapping[str, Any]) -> dict[int, Value]:
    return {
        layer.id: Value.of(fed[declared.name])
        for layer, declared in zip(model.parameters, model.inputs, strict=True)
    }


def _runs_here(layer: Layer) -> bool:
    return layer.type in ("Parameter", "Result", *CONSTANTS) or record_of(layer) is not None


def _check_ends(graph: Graph) -> None:
    """Parameters and constants have one output, Results one input; bodies included."""
    for layer in graph.order:
        has = (len(layer.inputs), len(layer.outputs))
        start = layer.type in ("Parameter", *CONSTANTS)
        if (start and has != (0, 1)) or (layer.type == "Result" and has[0] != 1):
            raise SplitError(
                MALFORMED_MODEL,
                f"a {layer.type} has {has[0]} inputs and {has[1]} outputs",
                "Parameter and Const have one output, Result has one input",
                node=layer.path,
            )
        for body in layer.bodies:
            _check_ends(body)
