"""``tensorsplit run``: run a model, compare engines, and print or save the outputs.

NumPy's own formats have no names for bfloat16, float8, 4-bit and 2-bit types, and can't hold every
string without pickling; outputs of those types are written as ONNX tensors (.pb), or refused if
an .npy or .npz was requested.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import partial
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from tensorsplit.arrays.numpy import element_type
from tensorsplit.cli.files import (
    FOLDER,
    MODEL,
    Array,
    WritingCommand,
    read_source,
    storable,
    write_archive,
    write_array,
    write_files,
)
from tensorsplit.cli.random_inputs import InputChoice, input_options
from tensorsplit.cli.screen import FINDINGS, examples, say
from tensorsplit.cli.sentences import localized, tr
from tensorsplit.cli.verifying import limit_options, tolerance_options
from tensorsplit.cli.words import ENGINE, SIZE, Word
from tensorsplit.core.errors import MISSING_INPUT, UNWRITABLE, SplitError, short_name
from tensorsplit.engines.engine_names import check_engine, resolved
from tensorsplit.storage.outputs import Content

if TYPE_CHECKING:
    from tensorsplit.engines.compare import Tolerance
    from tensorsplit.engines.limits import Limits
    from tensorsplit.model.feeds import DeclaredInput
    from tensorsplit.model.reading import OnnxModel

ARCHIVE = "outputs.npz"

_WHOLE = 64
_FIRST = 6
_LAST = 3
_MOST_ELEMENTS = 12
_LONGEST_NAME = 120
_LONGEST_LINE = 400


@click.command(
    cls=WritingCommand,
    epilog=examples(
        "run model.onnx --input x=x.npy",
        "run model.onnx --input inputs.npz -o out",
        "run model.onnx --input x=x.pb --compare onnxruntime --compare openvino",
        "run model.onnx --compare onnxruntime --seed 7 --save-inputs failing.npz",
        "run model.xml --input x=x.npy --engine openvino",
    ),
)
@click.argument("model", type=MODEL)
@input_options(
    "An input, from a .npy, .npz or .pb file; FILE.npz alone feeds every name in it. Repeat the"
    " option for each element of a sequence."
)
@click.option(
    "--engine",
    type=Word("engine", ENGINE.known, "auto"),
    default="auto",
    show_default=True,
    help="The engine that runs it: tensorsplit, onnx-reference, onnxruntime, openvino; or auto,"
    " which is tensorsplit, but openvino for an OpenVINO IR with other layers than splits.",
)
@click.option(
    *("--compare", "others"),
    type=ENGINE,
    multiple=True,
    help="Run this engine too and say where it differs; may be repeated.",
)
@limit_options
@tolerance_options
@click.option(
    "--tolerance",
    metavar="A",
    type=SIZE,
    help="The largest difference allowed in any output, in place of --rtol and --atol; 0 compares"
    " the bits of all.",
)
@click.option(
    *("-o", "--output", "folder"),
    type=FOLDER,
    help="Write every output to a file in this folder.",
)
@click.option(
    "--format",
    "style",
    type=click.Choice(["npy", "npz", "pb"]),
    help="How to write outputs: by default .npy, and .pb for types that .npy can't name.",
)
def run(
    *,
    model: str,
    choice: InputChoice,
    engine: str,
    others: Sequence[str],
    rtol: float | None,
    atol: float | None,
    tolerance: float | None,
    limits: Limits,
    folder: Path | None,
    style: str | None,
) -> int:
    """Run a model, ONNX or OpenVINO IR (.xml), and show or write its outputs.

    With --compare, other engines run it too; the exit status is 1 if one of them differs by more
    than is allowed. With --compare, --seed or --input-shape, inputs that are not given are random.
    """
    from tensorsplit.engines import sessions
    from tensorsplit.engines.compare import Reference

    _check_options(folder, style, others, (rtol, atol), tolerance)
    for name in (engine, *others):
        check_engine(name)
    source = read_source(model)
    engine = resolved(engine, source)
    is_random = bool(others) or choice.asks_for_random
    inputs = choice.completed(source) if is_random else choice.given(source)
    if inputs.feeds.keys() <= {entry.name for entry in source.inputs}:
        _check_given(source.inputs, inputs.feeds)
    with inputs.explained():
        outputs = sessions.run(source, inputs.feeds, engine=engine, **limits)
    allowed = _allowed(source, (rtol, atol), tolerance) if others else (None, ())
    reference = Reference(engine, outputs, *allowed, limits)
    same, verdicts = True, []
    for other in dict.fromkeys(others):
        found = reference.differences(source, inputs.feeds, other)
        if all(difference.is_allowed for difference in found):
            names = {"engine": other, "reference": engine}
            rounded = tr("{engine}: the same as {reference} up to rounding", **names)
            verdicts.append(rounded if found else tr("{engine}: the same as {reference}", **names))
        else:
            same = False
        verdicts += (localized(str(each)) for each in found)
    verdicts += [] if same else inputs.failing()
    say(*(_described(outputs) if folder is None else _save(outputs, folder, style)), *verdicts)
    return 0 if same else FINDINGS


def _check_options(
    folder: Path | None,
    style: str | None,
    others: Sequence[str],
    relative_and_absolute: tuple[float | None, float | None],
    tolerance: float | None,
) -> None:
    """Refuse options of a run that do not go together."""
    if folder is not None and folder.suffix in (".npy", ".npz", ".pb"):
        raise click.UsageError(
            tr("-o is a folder, in which each output gets a file: {path} is not", path=folder)
        )
    if style is not None and folder is None:
        raise click.UsageError(tr("--format needs -o DIR"))
    if relative_and_absolute != (None, None):
        if not others:
            raise click.UsageError(tr("--rtol and --atol need --compare ENGINE"))
        if tolerance is not None:
            raise click.UsageError(tr("give --tolerance, or --rtol and --atol"))


def _allowed(
    source: OnnxModel,
    relative_and_absolute: tuple[float | None, float | None],
    tolerance: float | None,
) -> tuple[Tolerance | None, Collection[str]]:
    """Return how far numbers may differ, and the outputs that have no tolerance."""
    from tensorsplit.engines.compare import Tolerance
    from tensorsplit.model.exactness import moved_outputs

    if tolerance is not None:  # the largest difference in any output; 0 compares the bits of all
        return Tolerance(0, tolerance) if tolerance else None, ()
    return Tolerance(*relative_and_absolute), moved_outputs(source)


def _check_given(declared: Sequence[DeclaredInput], feeds: Mapping[str, object]) -> None:
    """Refuse a run without all inputs (TS505); the message describes those that are missing."""
    missing = [entry for entry in declared if entry.name not in feeds and not entry.has_default]
    if missing:
        wanted = (f"{entry.name}: {localized(str(entry))}" for entry in missing)
        raise SplitError(
            MISSING_INPUT,
            tr("the model has inputs that are not given: {names}", names="; ".join(wanted)),
            tr("give --input NAME=FILE for each, or --seed N for random values"),
            parameter=", ".join(entry.name for entry in missing),
        )


def _described(outputs: Mapping[str, object]) -> Iterator[str]:
    """Yield every output as lines of text: name, element type, shape and values."""
    for whole_name, value in outputs.items():
        name = short_name(whole_name)
        if value is None:
            yield tr("{name}: empty optional", name=name)
        elif isinstance(value, list):
            yield tr("{name}: sequence of {n}", name=name, n=len(value))
            first = value[:_MOST_ELEMENTS]
            yield from _described({f"{name}[{place}]": item for place, item in enumerate(first)})
            if len(value) > _MOST_ELEMENTS:
                yield tr("... and {n} more", n=len(value) - _MOST_ELEMENTS)
        elif isinstance(value, (np.ndarray, np.generic)):
            array = np.asarray(value)
            yield f"{name}: {element_type(array)} {array.shape}"
            yield from (line[:_LONGEST_LINE] for line in _values(array).splitlines())
        else:
            yield f"{name}: {repr(value)[:_LONGEST_LINE]}"


def _values(array: Array) -> str:
    """Return all elements of a small array, else the first and last ones in their order."""
    if array.size <= _WHOLE:
        return np.array2string(array, max_line_width=78, separator=", ", floatmode="unique")
    ends = [*range(_FIRST), *range(array.size - _LAST, array.size)]
    texts = [np.array2string(np.asarray(x), floatmode="unique") for x in array.flat[ends]]
    shown = f"[{', '.join(texts[:_FIRST])}, ..., {', '.join(texts[_FIRST:])}]"
    return f"{shown} {tr('(the first and the last ones)')}"


def _save(outputs: Mapping[str, object], folder: Path, style: str | None) -> Iterator[str]:
    """Write the outputs; which file holds which.

    The files are called as the outputs, with everything replaced that could mean another folder;
    the elements of a sequence are ``name_0``, ``name_1``.
    """
    taken: set[str] = set()
    members: dict[str, Array] = {}
    files: dict[Path, Content] = {}
    if style == "npz":
        files[folder / ARCHIVE] = partial(write_archive, members)
    places: list[tuple[str, Path]] = []
    for label, name, value in _pieces(outputs, whole_sequences=style == "pb"):
        stored = None if style == "pb" else storable(value)
        if stored is None and style in ("npy", "npz"):
            raise SplitError(
                UNWRITABLE,
                tr(
                    "an .{style} file can't hold its element type {type}",
                    style=style,
                    type=element_type(value),
                ),
                tr("use --format pb, or no --format, which writes .pb where it has to"),
                parameter=label,
            )
        file = _file_name(name, taken)
        if stored is None:
            path = folder / f"{file}.pb"
            files[path] = _message(label, value)
        elif style == "npz":
            path = folder / ARCHIVE
            members[file] = stored
        else:
            path = folder / f"{file}.npy"
            files[path] = partial(write_array, stored)
        places.append((label, path))
    write_files(files)
    yield from (f"{label}: {path}" for label, path in places)
    for name, value in outputs.items():
        if value is None or (isinstance(value, list) and not value and style != "pb"):
            yield tr("{name}: empty, no file", name=name)


def _pieces(
    outputs: Mapping[str, object], *, whole_sequences: bool
) -> Iterator[tuple[str, str, Any]]:
    """Yield the outputs, one file each: the label in messages, the file name, and the value."""
    for name, value in outputs.items():
        if isinstance(value, list) and not whole_sequences:
            for place, item in enumerate(value):
                yield f"{name}[{place}]", f"{name}_{place}", np.asarray(item)
        elif isinstance(value, (list, np.ndarray, np.generic)):
            yield name, name, value if isinstance(value, list) else np.asarray(value)
        elif value is not None:
            raise SplitError(
                UNWRITABLE,
                tr("the output is of type {type}", type=type(value).__name__),
                tr("only tensors and sequences can be written"),
                parameter=name,
            )


def _file_name(name: str, taken: set[str]) -> str:
    """Return a name that stays in its folder on every system, and is unique, whatever its case."""
    safe = re.sub(r"[^\w.+-]", "_", name)
    safe = re.sub(r"^[.-]+", "_", safe) or "output"
    safe = safe.encode()[:_LONGEST_NAME].decode(errors="ignore")
    names = (f"{safe}-{number}" if number > 1 else safe for number in count(1))
    found = next(name for name in names if name.casefold() not in taken)
    taken.add(found.casefold())
    return found


def _message(name: str, value: Array | list[Array]) -> bytes:
    """Return an output as an ONNX message."""
    from onnx import SequenceProto, numpy_helper

    try:
        tensors = [
            numpy_helper.from_array(item.astype(object) if item.dtype.kind in "UST" else item, name)
            for item in (map(np.asarray, value) if isinstance(value, list) else [value])
        ]
        if not isinstance(value, list):
            return bytes(tensors[0].SerializeToString())
        kind = SequenceProto.TENSOR
        message = SequenceProto(name=name, elem_type=kind, tensor_values=tensors)
        return bytes(message.SerializeToString())
    except Exception as error:  # noqa: BLE001 - protobuf and onnx raise many kinds, one per type
        raise SplitError(
            UNWRITABLE,
            tr("it is not a tensor that ONNX can hold ({error})", error=error),
            parameter=name,
        ) from None
