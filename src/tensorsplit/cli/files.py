"""Files of the commands: what may be written is decided before a command begins.

The types of arguments and options say what is read and what is written; see `Outputs`.
"""

from __future__ import annotations

import os
import sys
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import IO, TYPE_CHECKING, Any, TypeAlias

import click
import numpy as np
from click.types import StringParamType

from tensorsplit.cli.screen import is_terminal, writing_out
from tensorsplit.cli.sentences import tr
from tensorsplit.core.errors import UNWRITABLE, SplitError
from tensorsplit.storage.outputs import Brought, Content, Outputs
from tensorsplit.storage.paths import real_path

if TYPE_CHECKING:
    from onnx import ModelProto, TensorProto

    from tensorsplit.model.lower import LoweredIr
    from tensorsplit.model.reading import OnnxModel

Array: TypeAlias = "np.ndarray"
PIPE = "-"
_OTHER_SUFFIXES = (".xml", ".npy", ".safetensors", ".svg")
"""The suffixes of files of other kinds, into which no ONNX model is written."""


_OVERWRITE = (
    "Replace what is there. Without it, a file is replaced only if it was written by the same"
    " command and not changed since."
)


class WritingCommand(click.Command):
    """A command that writes files: its outputs are checked before it begins."""

    def __init__(self, *args: Any, **settings: Any) -> None:
        super().__init__(*args, **settings)
        self.params += [
            _flag("create_dirs", "Make the folders that are missing on the way to an output."),
            _flag("overwrite", _OVERWRITE),
        ]

    def invoke(self, ctx: click.Context) -> object:
        """Run the command, unless an output may not be written (TS702)."""
        outputs().writer = ctx.info_name or ""
        outputs().check()
        return super().invoke(ctx)


def _flag(name: str, text: str) -> click.Option:
    """Return an option that sets a field of the outputs."""
    return click.Option(
        [f"--{name.replace('_', '-')}"],
        is_flag=True,
        expose_value=False,
        callback=lambda _, __, value: setattr(outputs(), name, value),
        help=text,
    )


class NotedPath(click.Path):
    """The type of a path that is noted in the outputs of the command.

    Attributes:
        name: What the help calls it, in capitals.
        noted_in: Where: ``reads``, ``files`` or ``folders``; see `Outputs`.
    """

    def __init__(self, name: str, noted_in: str, **kinds: Any) -> None:
        super().__init__(readable=False, **kinds)  # its reader reports better what is wrong
        self.name = name
        self.noted_in = noted_in

    def convert(self, *given: Any) -> Any:
        """Return the path; where dashes are allowed, - is none. TS702 if it can't be written."""
        refuse_empty(given[0])
        if self.noted_in != "reads" and not self.allow_dash:
            refuse_pipe(given[0])
        if self.noted_in == "files" and os.fsdecode(given[0]).endswith(os.sep):
            raise SplitError(
                UNWRITABLE,
                tr("{path} names a folder", path=given[0]),
                tr("give the name of a file"),
            )
        path = super().convert(*given)
        if not (self.allow_dash and path == PIPE):
            getattr(outputs(), self.noted_in).append(Path(os.fsdecode(path)))
        return path


def refuse_empty(name: object, parameter: str | None = None) -> None:
    """Refuse (TS702) the empty name of a file or folder."""
    if not name:
        raise SplitError(
            UNWRITABLE,
            tr("the name is empty"),
            tr("give the name of a file or folder"),
            parameter=parameter,
        )


def refuse_pipe(name: object, parameter: str | None = None) -> None:
    """Refuse (TS702) standard output where only files and folders are written."""
    if name == PIPE:
        raise SplitError(
            UNWRITABLE,
            tr("- is standard output, and this does not write there"),
            tr("give the name of a file or folder; ./- if that is its name"),
            parameter=parameter,
        )


MODEL = NotedPath("model", "reads", allow_dash=True)
OUT = NotedPath("out", "files", allow_dash=True)
FILE_TO_READ = NotedPath("file", "reads", path_type=Path)
FILE_TO_WRITE = NotedPath("file", "files", path_type=Path)
FOLDER = NotedPath("dir", "folders", path_type=Path)


class NamedFile(StringParamType):
    """The type of a file to read, perhaps after a name, which may hold ``=`` as the path may."""

    name = "name=file"

    def convert(self, value: str, *_: object) -> str:
        """Return the word as it is."""
        parts = value.split("=")
        outputs().reads += [Path("=".join(parts[start:])) for start in range(len(parts))]
        return value


def may_replace(model: str) -> None:
    """Let OUT be MODEL too, if that is an ONNX model as what is written."""
    if model != PIPE and Path(model).suffix.lower() != ".xml":
        outputs().replaceable = next(path for path in outputs().reads if path == Path(model))


def refuse_terminal(out: str | None) -> None:
    """Refuse (TS703) to write a model onto a terminal."""
    if out == PIPE and is_terminal(sys.stdout):
        raise click.UsageError(
            tr("-o - would write binary data to the terminal; pipe it, or -o OUT")
        )


def refuse_other_kind(model: str, out: str | None) -> None:
    """Refuse (TS703) to write an ONNX model into a file with the suffix of another kind."""
    suffix = Path(out or "").suffix.lower()
    if suffix in _OTHER_SUFFIXES and not suffix == Path(model).suffix.lower() == ".xml":
        raise click.UsageError(tr("{path} would hold an ONNX model; give -o OUT.onnx", path=out))


def outputs() -> Outputs:
    """Return the outputs of the command that runs."""
    context = click.get_current_context(silent=True)
    return Outputs() if context is None else context.ensure_object(Outputs)


def write_files(files: Mapping[Path, Content]) -> None:
    """Write files whole or not at all; see `Outputs`."""
    outputs().write(files)


def read_source(model: str) -> OnnxModel:
    """Read the source that MODEL names, see `source_of`; no output may be one of its files."""
    from tensorsplit.model.reading import read_model

    read, known = read_model(source_of(model), without_weights=True), outputs()
    if known.files or known.folders:
        locations = _locations(read.external_tensors(read.original))
        known.reads += [(read.folder or Path()) / location for location in locations]
        if read.openvino is not None:
            known.reads.append(read.openvino.weights)
        known.check()
    return read


def source_of(model: str) -> str | ModelProto:
    """Resolve MODEL: the path, or for ``-`` the model on standard input (else TS501)."""
    if model != PIPE:
        return model
    from tensorsplit.model.reading import parse_model

    return parse_model(b"" if sys.stdin is None else sys.stdin.buffer.read(), "standard input")


@dataclass(frozen=True, slots=True)
class Output:
    """Where a command writes its model."""

    target: str | None  # the path that it is written to, or -; None for a dry run
    copy_weights: bool

    @property
    def has_report(self) -> bool:
        """Whether standard output is free for a report, as it holds no model."""
        return self.target != PIPE

    def write(self, read: OnnxModel, made: ModelProto | LoweredIr) -> None:
        """Write the model whole or not at all, and its weights into the folder of the result.

        Files of external data are copied or hard-linked; TS702 if that fails, and TS504 if one lies
        outside the model's folder. Of an OpenVINO IR its two files are written.

        Args:
            read: The model that was read.
            made: What it has become.
        """
        if self.target is None:
            return
        from onnx import ModelProto

        target, files = Path(self.target), dict[Path, Content]()
        if not isinstance(made, ModelProto):
            write_files(made.files(target))
            return
        if self.target == PIPE:
            if sys.stdout is not None:  # its reader is gone already
                with writing_out():
                    read.write(made, sys.stdout.buffer)
            return
        folder = read.folder or Path()  # of a pipe, the current one
        others = {real_path(target.parent), real_path(target).parent} - {real_path(folder)}
        if read.path is not None and target.exists() and target.samefile(read.path):
            others.clear()
        for beside in others:
            for location in _checked_locations(read.external_tensors(made), folder):
                weights = beside / location
                if not real_path(weights).is_relative_to(beside):
                    problem = tr(
                        "{path} leads out of the folder that the model is written into",
                        path=weights,
                    )
                    raise SplitError(UNWRITABLE, problem, tr("write it elsewhere"))
                if real_path(weights) == real_path(target):
                    problem = tr("{path} is where weights of the model go", path=target)
                    raise SplitError(UNWRITABLE, problem, tr("give it another name"))
                files[weights] = Brought(folder / location, self.copy_weights)
                outputs().folders += [each for each in weights.parents if beside in each.parents]
        write_files({**files, target: partial(read.write, made)})

    def check_takes_ir(self) -> None:
        """Refuse an output that is not two files, as an OpenVINO IR is."""
        if self.target is not None and Path(self.target).suffix.lower() != ".xml":
            raise click.UsageError(
                tr("an OpenVINO IR is lowered to one: give -o OUT.xml, beside which goes its .bin")
            )


def _checked_locations(tensors: Sequence[TensorProto], folder: Path) -> list[str]:
    """Return the files of external data; refused (TS504) if one lies outside the model's folder."""
    from tensorsplit.model.graph.tensors import check_external

    for tensor in tensors:
        check_external(tensor, folder)
    return sorted(set(map(os.path.normpath, _locations(tensors))))


def _locations(tensors: Sequence[TensorProto]) -> set[str]:
    entries = (entry for tensor in tensors for entry in tensor.external_data)
    return {entry.value for entry in entries if entry.key == "location"}


def storable(array: Array) -> Array | None:
    """Return the array as NumPy's own formats can hold it without pickling; None if they can't."""
    if array.dtype.kind in "OT":
        items = array.ravel().tolist()
        for text, kind in ((str, "U"), (bytes, "S")):
            if all(type(item) is text and item[-1:] not in ("\0", b"\0") for item in items):
                return array.astype(object).astype(kind)
        return None
    return array if array.dtype.type.__module__ == "numpy" else None


def write_array(array: Array, file: IO[bytes]) -> None:
    """Write an ``.npy``; not with `tofile`, whose errors don't say what was wrong."""
    stream: Any = SimpleNamespace(write=file.write)
    np.lib.format.write_array(stream, array, allow_pickle=False)


def write_archive(members: Mapping[str, Array], file: IO[bytes]) -> None:
    """Write an ``.npz``; `numpy.savez` can't have a member called ``file``."""
    with zipfile.ZipFile(file, "w") as archive:
        for name, array in members.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                write_array(array, member)
