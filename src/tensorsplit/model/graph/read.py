"""Reading models: a path, an ONNX message or an onnx-ir model in, a checked model out."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from google.protobuf.message import (  # type: ignore[import-untyped]  # protobuf ships no types
    DecodeError,
    EncodeError,
)
from onnx import ModelProto, TypeProto, ValueInfoProto

from tensorsplit.core.errors import MALFORMED_MODEL, UNREADABLE_MODEL, SplitError, show
from tensorsplit.model.graph.feeds import DeclaredInput
from tensorsplit.model.graph.tensors import element_name
from tensorsplit.model.graph.text import check_text

if TYPE_CHECKING:
    import onnx_ir

    from tensorsplit.model.openvino_ir.ir import OpenVinoModel

_MAX_MESSAGE = (1 << 31) - 1


@dataclass(frozen=True)
class OnnxModel:
    """An ONNX model.

    Attributes:
        proto: The model; its external data is not loaded.
        folder: Where external data is looked for; None if the model came without a place.
        name: What to call it: the path, or the graph's name.
    """

    proto: ModelProto
    folder: Path | None
    name: str

    @cached_property
    def inputs(self) -> tuple[DeclaredInput, ...]:
        """The inputs in the graph's order; those with an initializer have a default.

        Raises:
            SplitError: TS502 for an input that is there twice.
        """
        graph = self.proto.graph
        defaults = {tensor.name for tensor in graph.initializer}
        defaults |= {tensor.values.name for tensor in graph.sparse_initializer}
        declared = tuple(_declared(value, value.name in defaults) for value in graph.input)
        names = {entry.name for entry in declared}
        if len(names) < len(declared):
            raise SplitError(
                MALFORMED_MODEL, "two inputs have one name", "rename one", node="graph"
            )
        return declared

    @property
    def output_names(self) -> tuple[str, ...]:
        """The names of the outputs, in the graph's order."""
        return tuple(value.name for value in self.proto.graph.output)


def read_model(
    model: str | os.PathLike[str] | ModelProto | onnx_ir.Model,
) -> OnnxModel | OpenVinoModel:
    """Read a model without its external data.

    Args:
        model: The path of an ONNX file, or of an OpenVINO IR (``.xml``); or a model in memory.

    Returns:
        The model, well-formed as far as its encoding goes.

    Raises:
        SplitError: TS501 for what is not a model or can't be read, TS502 for a graph that is
            nested too deep; TS503 for unsafe XML.
    """
    if isinstance(model, ModelProto):
        return _checked(model, None, model.graph.name or "model")
    if isinstance(model, (str, os.PathLike)):
        return _read_path(model)
    ir = sys.modules.get("onnx_ir")
    if ir is not None and isinstance(model, ir.Model):
        return _from_ir(model)
    raise SplitError(
        UNREADABLE_MODEL,
        f"it is {show(model)} of type {type(model).__name__}",
        "give a path, an onnx.ModelProto or an onnx_ir.Model",
        parameter="model",
    )


def _read_path(model: str | os.PathLike[str]) -> OnnxModel | OpenVinoModel:
    name = os.fsdecode(model)
    path = Path(name)
    if path.suffix.lower() == ".xml":
        from tensorsplit.model.openvino_ir.ir import read_ir

        return read_ir(path)
    proto = ModelProto()
    try:
        if not path.is_file():
            raise _unreadable(
                name, "it is no file" if path.exists() else "there is no such file", "give a file"
            )
        size = path.stat().st_size
        if size > _MAX_MESSAGE:
            raise _unreadable(
                name,
                f"it has {size} bytes, more than the 2 GiB that an ONNX file can have",
                "keep the weights in external data",
            )
        proto.ParseFromString(path.read_bytes())
    except (OSError, ValueError, DecodeError) as error:
        if isinstance(error, SplitError):
            raise
        raise _unreadable(
            name, f"it is no ONNX model ({_reason(error)})", "give a whole .onnx file, or an .xml"
        ) from error
    return _checked(proto, path.parent, name)


def _checked(proto: ModelProto, folder: Path | None, name: str) -> OnnxModel:
    """Refuse what parses as a message but says nothing, as many random bytes do."""
    graph = proto.graph
    if not proto.HasField("graph") or not (graph.node or graph.output):
        raise _unreadable(name, "it holds no graph", "give a whole .onnx file, or an .xml")
    check_text(proto)
    return OnnxModel(proto, folder, name)


def _from_ir(model: onnx_ir.Model) -> OnnxModel:
    import onnx_ir

    from tensorsplit.model.graph.message import message_of

    name = model.graph.name or "model"
    try:
        proto = message_of(model)
        folders = {
            os.fspath(value.const_value.base_dir)
            for graph in model.graphs()
            for value in graph.initializers.values()
            if isinstance(value.const_value, onnx_ir.ExternalTensor)
        }
    except (onnx_ir.serde.SerdeError, EncodeError, ValueError, TypeError, RecursionError) as error:
        raise _unreadable(
            name, f"it can't be serialised ({_reason(error)})", "make it whole"
        ) from error
    if len(folders) > 1:
        raise _unreadable(
            name, "its external data lies in more than one folder", "save it, and give the path"
        )
    folder = folders.pop() if folders else ""
    return _checked(proto, Path(folder) if folder else None, name)


def _reason(error: Exception) -> str:
    """What an error says, in one line of bounded length; of the system's errors not the path."""
    text = error.strerror if isinstance(error, OSError) else str(error)
    return " ".join(str(text).split())[:200]


def _unreadable(name: str, problem: str, fix: str) -> SplitError:
    return SplitError(UNREADABLE_MODEL, f"{show(name)}: {problem}", fix, parameter="model")


def _declared(value: ValueInfoProto, has_default: bool) -> DeclaredInput:
    kind, tensor = _kind(value.type)
    if tensor is None:
        return DeclaredInput(value.name, None, None, kind, has_default)
    shape = None
    if tensor.HasField("shape"):
        shape = tuple(_dim(dim) for dim in tensor.shape.dim)
    return DeclaredInput(value.name, element_name(tensor.elem_type), shape, kind, has_default)


def _kind(declared: TypeProto) -> tuple[str, TypeProto.Tensor | None]:
    """The kind of value, and the tensor type in it."""
    match declared.WhichOneof("value"):
        case "tensor_type":
            return "tensor", declared.tensor_type
        case None:
            return "tensor", TypeProto.Tensor()
        case "sequence_type":
            kind, tensor = _kind(declared.sequence_type.elem_type)
            return ("sequence" if kind == "tensor" else "other"), tensor
        case "optional_type":
            kind, tensor = _kind(declared.optional_type.elem_type)
            optional = {"tensor": "optional", "sequence": "optional sequence"}
            return optional.get(kind, "other"), tensor
        case _:
            return "other", None


def _dim(dim: Any) -> int | str | None:
    """Exporters write -1, too, for a dimension that is not fixed."""
    if dim.HasField("dim_value"):
        return int(dim.dim_value) if dim.dim_value >= 0 else None
    return dim.dim_param or None
