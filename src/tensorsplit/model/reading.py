"""Read models, of which nothing is trusted.

A file is parsed once. External data is read when a tensor is used.
"""

from __future__ import annotations

import os
import traceback
from collections.abc import Collection
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, TypeAlias

import onnx_ir as ir
from google.protobuf.message import (  # type: ignore[import-untyped]  # protobuf ships no types
    DecodeError,
    EncodeError,
)
from onnx import ModelProto, NodeProto, TensorProto, ValueInfoProto

from tensorsplit.core.errors import (
    UNREADABLE_MODEL,
    UNSUPPORTED_NODE,
    SplitError,
    short_name,
    show,
    show_path,
    words_of,
    wrong_type,
)
from tensorsplit.core.extras import install_command
from tensorsplit.core.given import as_path, is_a
from tensorsplit.core.records.openvino import DOMAIN
from tensorsplit.model.feeds import FED_AS, DeclaredInput
from tensorsplit.model.graph.building import full_collections_deferred
from tensorsplit.model.graph.held_tensors import tensors
from tensorsplit.model.graph.message import (
    ADAPTED,
    NodeList,
    copied,
    node_lists,
    read_message,
    tensors_outside,
    with_types,
    write_message,
)
from tensorsplit.model.graph.node_paths import node_path
from tensorsplit.model.graph.nodes import scopes
from tensorsplit.model.graph.ordering import is_in_order, put_in_order
from tensorsplit.model.graph.progress import begin
from tensorsplit.model.graph.split_records import VENDOR_FAMILY
from tensorsplit.model.graph.tensors import element_name, folder_of
from tensorsplit.model.graph.weights import MAX_MESSAGE, FileWeights, parse_without_weights
from tensorsplit.model.refusals import malformed, own_fault
from tensorsplit.model.validity.message_errors import check_text, message_errors
from tensorsplit.storage.documents import likeness, read_file
from tensorsplit.storage.paths import fix_unread, why_unread

if TYPE_CHECKING:
    from tensorsplit.model.openvino_ir.translation import IrFile

ModelLike: TypeAlias = "str | os.PathLike[str] | ModelProto | ir.Model | OnnxModel"
"""What can be read as a model: a path, a model in memory, or what was read before."""

_WHOLE = "give a whole .onnx file, or an .xml"


@dataclass(frozen=True)
class OnnxModel:
    """An ONNX model, or an OpenVINO IR as one.

    Attributes:
        original: The message that was read; nobody changes it.
        folder: Where external data is looked for; None if the model came without a place.
        was_ir: Whether an onnx-ir model came in.
        openvino: The OpenVINO IR that it was read from; its layers are nodes of the domain
            ``org.openvinotoolkit``.
        weights: The weights that are in the file; None if all of them are in the message, or in
            external data.
    """

    original: ModelProto
    folder: Path | None
    was_ir: bool = False
    path: Path | None = None
    openvino: IrFile | None = None
    weights: FileWeights | None = None

    @cached_property
    def lists(self) -> list[NodeList]:
        """The graph of the message and the functions, each before the bodies in it.

        Raises:
            SplitError: TS502 for bodies that are nested too deep.
        """
        return node_lists(self.original)

    @cached_property
    def model(self) -> ir.Model:
        """The onnx-ir model, its nodes in order if there is one; see `as_read`.

        Nobody else holds it where the nodes had to be sorted.
        """
        if not is_in_order(self.as_read):
            again = replace(self).as_read
            if put_in_order(again):
                again.meta[ADAPTED] = True
                return again
        return self.as_read

    @property
    def was_sorted(self) -> bool:
        """Whether the nodes had to be put in order, because some read what later ones give."""
        return self.model is not self.as_read

    @cached_property
    @full_collections_deferred()
    def as_read(self) -> ir.Model:
        """The onnx-ir model as it is written, made on demand; its external data is not loaded.

        Raises:
            SplitError: TS502 for a graph that contradicts itself.
        """
        for error in message_errors(self.original, self.lists):
            raise error
        try:
            return read_message(self.original, self.lists, self.folder)
        except SplitError:
            raise
        except Exception as error:  # onnx-ir raises of many kinds for such graphs
            problem = "the graph can't be understood"
            if _is_own(error):
                raise own_fault(problem, error).located(node="graph") from error
            raise _contradiction(problem, error) from error

    @cached_property
    def inputs(self) -> tuple[DeclaredInput, ...]:
        """The inputs in the graph's order; those with an initializer have a default.

        Raises:
            SplitError: TS502 for an input that is there twice.
        """
        if self.openvino is not None:
            return self.openvino.inputs
        graph = self.original.graph
        defaults = {tensor.name for tensor in graph.initializer}
        defaults |= {tensor.values.name for tensor in graph.sparse_initializer}
        declared = tuple(declared_input(value, value.name in defaults) for value in graph.input)
        names = {entry.name for entry in declared}
        if len(names) < len(declared):
            raise malformed("two inputs have the same name", "rename one", "graph")
        return declared

    @cached_property
    def outputs(self) -> tuple[DeclaredInput, ...]:
        """The outputs in the graph's order, described as inputs are."""
        pairs = zip(self.output_names, self.original.graph.output, strict=True)
        return tuple(declared_input(value, False)._replace(name=name) for name, value in pairs)

    @property
    def foreign_layer(self) -> NodeProto | None:
        """The first layer of an OpenVINO IR that only OpenVINO can run; None if there is none."""
        nodes = self.original.graph.node if self.openvino is not None else ()
        others = (node for node in nodes if node.domain == DOMAIN)
        return next((node for node in others if node.op_type not in VENDOR_FAMILY), None)

    def check_runs_here(self) -> None:
        """Refuse an OpenVINO IR with a layer that only OpenVINO can run (TS509)."""
        layer = self.foreign_layer
        if layer is not None:
            known = "Parameter, Const, VariadicSplit, Split and Result"
            raise SplitError(
                UNSUPPORTED_NODE,
                f"the layer is of type {short_name(layer.op_type)}, which only OpenVINO runs",
                f'use engine="openvino" ({install_command("openvino")}), or layers of the'
                f" types {known}",
                node=node_path("graph", layer, 0),
            )

    @property
    def output_names(self) -> tuple[str, ...]:
        """The names of the outputs, in the graph's order."""
        if self.openvino is not None:
            return self.openvino.outputs
        return tuple(value.name for value in self.original.graph.output)

    def back(
        self, changed: bool, typed: Collection[ir.Value] | None = None
    ) -> ModelProto | ir.Model:
        """Return the model as the kind that came in: onnx-ir, else as `proto`, or a copy.

        A message is whole.
        """
        if self.was_ir:
            return self.model
        made = self.proto(changed, typed)
        if made is self.original and (self.path is None or self.weights is not None):
            made = copied(self.original)
        if self.weights is not None:
            self.weights.embed(made)
        return made

    @full_collections_deferred()
    def proto(self, changed: bool, typed: Collection[ir.Value] | None = None) -> ModelProto:
        """Return the model as an ONNX message: the original, unless the model was changed.

        Args:
            changed: Whether it was.
            typed: The values that were changed, if only their types and shapes were.

        Raises:
            SplitError: TS502 for a model that holds what no message can, such as wrong UTF-8;
                TS512 where the changes can't be written.
        """
        if not changed and not self.was_sorted:
            return self.original
        begin("writing")
        try:
            if typed is not None and not self.model.meta.get(ADAPTED):
                return with_types(self.model, self.original, typed)
            return write_message(self.model, self.original)
        except SplitError:
            raise
        except Exception as error:  # see `_can_be_written`
            problem = "the graph can't be written"
            if self._can_be_written():
                raise own_fault(problem, error).located(node="graph") from error
            raise _contradiction(problem, error) from error

    def write(self, made: ModelProto, file: IO[bytes]) -> None:
        """Write the message of `proto`, whole.

        Raises:
            SplitError: TS504 if the file that holds its weights has changed, TS702 if the model is
                too large for a file.
        """
        if self.weights is None:
            file.write(made.SerializeToString())
        else:
            self.weights.write(made, file)

    def external_tensors(self, message: ModelProto) -> list[TensorProto]:
        """Return the tensors of this message, or one made of it, whose data is in other files."""
        held = self.weights
        return [each for each in tensors_outside(message) if held is None or each not in held]

    def _can_be_written(self) -> bool:
        """Return whether the model that was read can be written; onnx-ir raises many kinds."""
        try:
            write_message(replace(self).model, self.original)
        except Exception:  # noqa: BLE001 - then it is the model's
            return False
        return True


def _contradiction(problem: str, error: Exception) -> SplitError:
    """Return the refusal of a model that contradicts itself, according to onnx-ir."""
    reason = f"{type(error).__name__}: {show(str(error))}"
    return malformed(f"{problem} ({reason})", "repair the model", "graph")


def _is_own(error: Exception) -> bool:
    """Return whether an error comes from code of this package, not from onnx-ir, which it calls."""
    names = [
        frame.f_globals.get("__name__", "") for frame, _ in traceback.walk_tb(error.__traceback__)
    ]
    packages = [name.partition(".")[0] for name in names]
    return [name for name in packages if name in ("tensorsplit", "onnx_ir")][-1:] != ["onnx_ir"]


def read_model(source: ModelLike, *, without_weights: bool = False) -> OnnxModel:
    """Read a model, well-formed as far as its encoding goes, without its external data.

    What was read before comes back as it is.

    Args:
        source: The model.
        without_weights: Whether large weights stay in its file, which must not change meanwhile.

    Raises:
        SplitError: TS501 if it is not a model or can't be read, TS502 for a graph that is
            nested too deep; TS503 for unsafe XML.
    """
    if is_a(source, OnnxModel):
        return source
    if is_a(source, ModelProto):
        return _checked(OnnxModel(source, None), source.graph.name or "model")
    if is_a(source, ir.Model):
        return _from_ir(source)
    path = as_path(source)
    if path is not None:
        return _read_path(path, without_weights=without_weights)
    problem = wrong_type(source)
    fix = "give a path, an onnx.ModelProto or an onnx_ir.Model"
    raise SplitError(UNREADABLE_MODEL, problem, fix, parameter="model")


def _read_path(name: str, *, without_weights: bool) -> OnnxModel:
    path = Path(name)
    if path.suffix.lower() == ".xml":
        from tensorsplit.model.openvino_ir.translation import read_ir

        file = read_ir(path)
        return OnnxModel(file.message, file.weights.parent, path=path, openvino=file)
    try:
        if path.is_file() and path.stat().st_size > MAX_MESSAGE:
            problem = f"it has {path.stat().st_size} bytes, and an ONNX file has 2 GiB at most"
            raise _unreadable(name, problem, "keep the weights in external data")
        parsed = parse_without_weights(path) if without_weights else None
        octets = b"" if parsed else read_file(path, MAX_MESSAGE)
    except FileNotFoundError:
        raise _unreadable(name, "there is no such file", "give the path of a model") from None
    except IsADirectoryError:
        raise _unreadable(name, "it is a folder", "give the path of a model") from None
    except SplitError:
        raise
    except (OSError, ValueError) as error:
        fix = fix_unread(error, "give the path of a model that can be read")
        raise _unreadable(name, why_unread(error, name), fix) from None
    proto, weights = parsed or (parse_model(octets, name), None)
    folder, place = (path.parent, path) if path.is_file() else (None, None)
    return _checked(OnnxModel(proto, folder, path=place, weights=weights), name)


def parse_model(octets: bytes, name: str) -> ModelProto:
    """Return the message in the bytes of a file; TS501 says what they look like, if known."""
    if not octets:
        raise _unreadable(name, "it is empty", _WHOLE)
    found = likeness(octets)
    try:
        made: ModelProto = ModelProto.FromString(octets)
        if made.HasField("graph") or not found:
            return made
        reason = ""
    except DecodeError as error:
        reason = f" ({words_of(error)})"
    reason = f": it looks like {found}" if found else reason
    raise _unreadable(name, f"it is not an ONNX model{reason}", _WHOLE)


def _checked(read: OnnxModel, name: str) -> OnnxModel:
    """Refuse messages without content, as which many random bytes parse."""
    proto = read.original
    if not proto.HasField("graph") or not (proto.graph.node or proto.graph.output):
        raise _unreadable(name, "it holds no graph", _WHOLE)
    check_text(proto)
    read.lists  # noqa: B018 - refuses bodies that are nested too deep
    return read


def _from_ir(model: ir.Model) -> OnnxModel:
    name = model.graph.name or "model"
    try:
        proto = write_message(model)
        folders = {
            folder_of(tensor)
            for scope in scopes(model)
            for tensor in tensors(scope)
            if isinstance(tensor, ir.ExternalTensor)
        }
    except (ir.serde.SerdeError, EncodeError, ValueError, TypeError, RecursionError) as error:
        problem = f"it can't be serialised ({words_of(error)})"
        raise _unreadable(name, problem, "make it whole") from error
    if len(folders) > 1:
        problem = "its external data lies in more than one folder"
        raise _unreadable(name, problem, "save it, and give the path")
    return _checked(OnnxModel(proto, folders.pop() if folders else None, was_ir=True), name)


def _unreadable(name: str, problem: str, fix: str) -> SplitError:
    return SplitError(UNREADABLE_MODEL, f"{show_path(name)}: {problem}", fix, parameter="model")


def open_model(source: ModelLike) -> OnnxModel:
    """Read an ONNX model to look at or to rewrite: nobody else holds its onnx-ir model.

    What was read before is not parsed again. Large weights stay in the file of a model.

    Raises:
        SplitError: TS501 if it is not an ONNX model; TS502 for a graph that contradicts itself.
    """
    begin("reading")
    read = read_model(source, without_weights=True)
    if read.openvino is not None:
        raise _unreadable(str(read.path), "it is an OpenVINO IR", "give an ONNX model")
    opened = replace(read) if read is source else read
    opened.model  # noqa: B018 - refuses what contradicts itself
    return opened


def declared_input(value: ValueInfoProto, has_default: bool) -> DeclaredInput:
    """Return an input or output of a graph as it is declared."""
    declared, around = value.type, []
    while (kind := declared.WhichOneof("value")) in ("sequence_type", "optional_type"):
        around.append(kind.removesuffix("_type"))
        declared = getattr(declared, kind).elem_type
    name = " ".join(around) or "tensor"
    if name not in FED_AS or kind not in ("tensor_type", None):
        return DeclaredInput(value.name, None, None, "other", has_default)
    tensor = declared.tensor_type
    shape = tuple(_dim(dim) for dim in tensor.shape.dim) if tensor.HasField("shape") else None
    return DeclaredInput(value.name, element_name(tensor.elem_type), shape, name, has_default)


def _dim(dim: Any) -> int | str | None:
    """Return a declared dimension; exporters write -1, too, for one that is not fixed."""
    if dim.HasField("dim_value"):
        return int(dim.dim_value) if dim.dim_value >= 0 else None
    return dim.dim_param or None
