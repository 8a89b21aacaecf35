"""Models as onnx-ir models of our own, and back to the kind that came in."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import onnx
import onnx_ir as ir

from tensorsplit.core.errors import MALFORMED_MODEL, UNREADABLE_MODEL, SplitError, show
from tensorsplit.model.graph.collector import collector_paused
from tensorsplit.model.graph.message import message_of
from tensorsplit.model.graph.progress import begin
from tensorsplit.model.graph.read import OnnxModel, read_model
from tensorsplit.model.graph.walk import bodies as body_protos


@dataclass(frozen=True, slots=True)
class Opened:
    """A model to read deeply or to rewrite.

    Attributes:
        model: The model; nobody else holds it. External data is not read.
        original: The message that it was made of.
        folder: Where external data is looked for; None if the model came without a place.
        was_ir: Whether an onnx-ir model came in.
    """

    model: ir.Model
    original: onnx.ModelProto
    folder: Path | None
    was_ir: bool

    def back(self, changed: bool) -> onnx.ModelProto | ir.Model:
        """The model as the kind that came in: onnx-ir for onnx-ir, else an ONNX message.

        Args:
            changed: As for `proto`.
        """
        return self.model if self.was_ir else self.proto(changed)

    @collector_paused()
    def proto(self, changed: bool) -> onnx.ModelProto:
        """The model as an ONNX message.

        Args:
            changed: Whether the model was changed; if not, the message is the original one, byte
                for byte, and nothing has to be written.

        Raises:
            SplitError: TS502 for a model that holds what no message can, such as wrong UTF-8.
        """
        if not changed:
            return self.original
        begin("writing")
        try:
            made = message_of(self.model)
        except Exception as error:  # onnx-ir raises of many kinds for what it can't write
            raise SplitError(
                MALFORMED_MODEL,
                f"the graph can't be written ({type(error).__name__}: {show(str(error))})",
                "repair the model",
                node="graph",
            ) from error
        described = {value.name for graph in graphs(self.original) for value in graph.value_info}
        for graph in graphs(made):
            _drop_descriptions(graph, described)
        return made


def _drop_descriptions(graph: onnx.GraphProto, keep: set[str]) -> None:
    """Remove what onnx-ir says of each initializer, where the original did not say it."""
    drop = {tensor.name for tensor in graph.initializer} - keep
    kept = [value for value in graph.value_info if value.name not in drop]
    if len(kept) < len(graph.value_info):
        del graph.value_info[:]
        graph.value_info.extend(kept)


def graphs(model: onnx.ModelProto) -> Iterator[onnx.GraphProto]:
    """The main graph and every body, in functions too."""
    pending: list[onnx.GraphProto | onnx.FunctionProto] = [model.graph, *model.functions]
    while pending:
        graph = pending.pop()
        if isinstance(graph, onnx.GraphProto):
            yield graph
        pending += [body for node in graph.node for _, body in body_protos(node.attribute)]


@collector_paused()
def open_model(model: str | os.PathLike[str] | onnx.ModelProto | ir.Model) -> Opened:
    """Read a model for the tools that need its graph.

    Args:
        model: A path, or a model in memory, which is left as it is.

    Raises:
        SplitError: TS501 for what is no ONNX model; TS502 for a graph that can't be understood.
    """
    begin("reading")
    read = read_model(model)
    if not isinstance(read, OnnxModel):
        raise SplitError(
            UNREADABLE_MODEL,
            f"{show(str(model))} is an OpenVINO IR",
            "give an ONNX model",
            parameter="model",
        )
    try:
        opened = ir.serde.deserialize_model(read.proto)
        if read.folder is not None:
            ir.external_data.set_base_dir(opened.graph, read.folder)
    except Exception as error:  # onnx-ir raises of many kinds for graphs that contradict themselves
        raise SplitError(
            MALFORMED_MODEL,
            f"the graph can't be understood ({type(error).__name__}: {show(str(error))})",
            "repair the model",
            node="graph",
        ) from error
    return Opened(opened, read.proto, read.folder, isinstance(model, ir.Model))
