"""What the commands share that read a model and write another: pipes, files, weights, the table."""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tensorsplit.cli.files import write_files
from tensorsplit.core.errors import UNREADABLE_MODEL, UNWRITABLE, USAGE, SplitError

if TYPE_CHECKING:
    from onnx import GraphProto, ModelProto

PIPE = "-"

to_output = click.option(
    "-o", "--output", "out", metavar="OUT", help="Where the model goes; - for a pipe."
)
"""The option of every command that writes a model; see `need_output`."""

copying_weights = click.option(
    "--copy-external-data",
    is_flag=True,
    help="Copy the weights beside the model if OUT is in another folder; else they are linked.",
)
"""The option of every command that calls `write_result`."""


def read_source(model: str) -> str | ModelProto:
    """What the tools take for MODEL: the path, or for ``-`` the model on standard input.

    Raises:
        SplitError: TS501 for a pipe that holds no model.
    """
    if model != PIPE:
        return model
    from google.protobuf.message import (  # type: ignore[import-untyped]  # ships no types
        DecodeError,
    )
    from onnx import ModelProto

    made = ModelProto()
    try:
        made.ParseFromString(sys.stdin.buffer.read())
    except DecodeError as error:
        raise SplitError(
            UNREADABLE_MODEL,
            f"standard input is no ONNX model ({error})",
            "pipe a whole .onnx file into it",
            parameter="model",
        ) from error
    return made


def write_result(made: ModelProto, model: str, out: str, copy_external_data: bool) -> None:
    """Write a model whole or not at all, with the weights that lie beside it within reach.

    Args:
        made: The model.
        model: The path that it was read from, or ``-``.
        out: Where it goes: a path, which may be the same, or ``-`` for standard output.
        copy_external_data: Whether weights may be copied to another folder. Without it they are
            linked there, which costs no space.

    Raises:
        SplitError: TS702 if it can't be written, or the weights can't be brought along; TS504 for
            weights that have to be brought and lie outside the model's folder.
    """
    data = made.SerializeToString()
    if out == PIPE:
        sys.stdout.buffer.write(data)
        return
    target = Path(out)
    with _weights(made, model, target, copy_external_data):
        write_files({target: lambda file: file.write(data)})


@contextlib.contextmanager
def _weights(made: ModelProto, model: str, target: Path, may_copy: bool) -> Iterator[None]:
    """Bring the files of external data to the folder of the result, and away again on failure."""
    folder = Path(model).parent if model != PIPE else Path()
    brought: list[Path] = []
    try:
        if folder.resolve() != target.parent.resolve():
            for location in _locations(made, folder):
                _bring(folder / location, target.parent / location, may_copy, brought)
        yield
    except BaseException:
        for path in brought:
            path.unlink(missing_ok=True)
        raise


def _bring(source: Path, target: Path, may_copy: bool, brought: list[Path]) -> None:
    try:
        if target.exists():
            if target.samefile(source):
                return
            raise SplitError(
                UNWRITABLE,
                f"{target} is there already and holds other data than {source}",
                "write the model into another folder",
            )
        target.parent.mkdir(parents=True, exist_ok=True)
        if may_copy:
            _copy(source, target)
        else:
            os.link(source.resolve(), target)
        brought.append(target)
    except OSError as error:
        raise SplitError(
            UNWRITABLE,
            f"the weights {source} can't be brought to {target} ({error.strerror or error})",
            "write the model beside its weights, or copy them with --copy-external-data",
        ) from error


def _copy(source: Path, target: Path) -> None:
    handle, name = tempfile.mkstemp(prefix=".tensorsplit-", suffix=".part", dir=target.parent)
    os.close(handle)
    try:
        shutil.copyfile(source, name)
        Path(name).replace(target)
    finally:
        Path(name).unlink(missing_ok=True)


def _locations(made: ModelProto, folder: Path) -> list[str]:
    """Where tensors lie outside the model file; refused (TS504) if that is outside its folder."""
    from tensorsplit.engines.external import tensors_outside
    from tensorsplit.model.graph.tensors import check_external

    outside = list(tensors_outside(made))
    for tensor in outside:
        check_external(tensor, folder)
    return sorted({e.value for t in outside for e in t.external_data if e.key == "location"})


def summary(before: ModelProto, after: ModelProto) -> Any:
    """A table of what a command changed: opsets, operators of the family, inputs, outputs.

    Args:
        before: The model that came in.
        after: The model that goes out.

    Returns:
        Something that `screen.show` prints.
    """
    from rich.table import Table

    table = Table("", "before", "after", box=None, pad_edge=False, header_style="bold")
    left, right = _facts(before), _facts(after)
    for name in dict.fromkeys((*left, *right)):
        table.add_row(name, left.get(name, "-"), right.get(name, "-"))
    return table


def _facts(model: ModelProto) -> Mapping[str, str]:
    from tensorsplit.core.records import operators
    from tensorsplit.model.graph.message import graphs

    facts = {
        f"opset {entry.domain or 'ai.onnx'}": str(entry.version) for entry in model.opset_import
    }
    nodes = [node for graph in graphs(model) for node in graph.node]
    nodes += [node for function in model.functions for node in function.node]
    facts["nodes"] = str(len(nodes))
    family = {record.name for record in operators.values()}
    kinds = Counter(
        node.op_type for node in nodes if node.op_type in family or "Sequence" in node.op_type
    )
    facts.update({kind: str(count) for kind, count in sorted(kinds.items())})
    facts["inputs"] = _names(model.graph, "input")
    facts["outputs"] = _names(model.graph, "output")
    return facts


def _names(graph: GraphProto, field: str) -> str:
    names = [value.name for value in getattr(graph, field)]
    return ", ".join(names[:6]) + (f", ... ({len(names)})" if len(names) > 6 else "")


def need_output(out: str | None, dry_run: bool) -> str:
    """Where the result goes; refused (TS703) if nobody said so and it is to be written."""
    if out is None and not dry_run:
        raise SplitError(
            USAGE, "there is no -o OUT", "say where the result goes, or give --dry-run"
        )
    return out or PIPE
