"""``tensorsplit run``: run a model, and compare engines."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tensorsplit.cli.files import write_files
from tensorsplit.cli.inputs import read_feeds, wanted
from tensorsplit.cli.outputs import FORMATS, describe, plan_files
from tensorsplit.cli.screen import examples, write
from tensorsplit.core.errors import MISSING_INPUT, USAGE, SplitError
from tensorsplit.pages.layout import printable

if TYPE_CHECKING:
    from tensorsplit.engines.compare import Difference

MISMATCH = 1


@click.command(
    epilog=examples(
        "run model.onnx --input x=x.npy",
        "run model.onnx --input inputs.npz -o out",
        "run model.onnx --input x=x.pb --compare onnxruntime --compare openvino",
        "run model.xml --input x=x.npy --engine openvino",
    )
)
@click.argument("model")
@click.option(
    "--input",
    "-i",
    "written",
    metavar="NAME=FILE",
    multiple=True,
    help="An input, from a .npy, .npz or .pb file; FILE.npz alone feeds every name in it. Name a"
    " sequence once for each element.",
)
@click.option(
    "--engine",
    metavar="ENGINE",
    default="numpy",
    show_default=True,
    help="What runs it: numpy, onnx-reference, onnxruntime or openvino.",
)
@click.option(
    "--compare",
    metavar="ENGINE",
    multiple=True,
    help="Run this engine too and say where it differs; may be repeated.",
)
@click.option(
    "--tolerance",
    type=click.FloatRange(min=0),
    default=0.0,
    show_default=True,
    help="How far values of other engines may lie from it; 0 compares bits.",
)
@click.option(
    "-o",
    "--output",
    "folder",
    metavar="DIR",
    type=click.Path(path_type=Path),
    help="Write every output to a file in this folder.",
)
@click.option(
    "--format",
    "style",
    type=click.Choice(FORMATS),
    help="How to write outputs: by default .npy, and .pb for types that .npy can't name.",
)
@click.pass_context
def run(
    ctx: click.Context,
    *,
    model: str,
    written: Sequence[str],
    engine: str,
    compare: Sequence[str],
    tolerance: float,
    folder: Path | None,
    style: str | None,
) -> None:
    """Run a model, ONNX or OpenVINO IR (.xml), and show or write its outputs.

    With --compare, other engines run it too; the exit status is 1 if one of them differs.
    """
    from tensorsplit import engines
    from tensorsplit.engines.compare import compare as compare_engines
    from tensorsplit.model.graph.reading import read_model

    if style is not None and folder is None:
        raise SplitError(USAGE, "--format needs -o DIR", "give both", parameter="format")
    for name in (engine, *compare):
        engines.check_engine(name)
    declared = read_model(model).inputs
    feeds = read_feeds(written, declared)
    missing = [entry for entry in declared if entry.name not in feeds and not entry.has_default]
    if missing and not written:
        raise SplitError(
            MISSING_INPUT,
            "the model has inputs that are not given",
            f"give --input NAME=FILE for {wanted(declared)}",
            parameter=", ".join(entry.name for entry in missing),
        )
    outputs = engines.run(model, feeds, engine=engine)
    told: list[str] = []
    same = True
    for other in dict.fromkeys(compare):
        found = compare_engines(model, feeds, [other], reference=outputs)
        told += _verdict(found, engine, other, tolerance)
        same = same and all(_is_near(difference, tolerance) for difference in found)
    lines = list(describe(outputs)) if folder is None else _save(outputs, folder, style)
    write("".join(f"{line}\n" for line in (*lines, *told)))
    if not same:
        ctx.exit(MISMATCH)


def _verdict(
    found: Sequence[Difference], engine: str, other: str, tolerance: float
) -> Iterator[str]:
    """What another engine makes of it, in words."""
    if not found:
        yield f"{other}: the same as {engine}"
    for difference in found:
        near = " (within the tolerance)" if _is_near(difference, tolerance) else ""
        yield f"{printable(str(replace(difference, reference=engine)))}{near}"


def _is_near(difference: Difference, tolerance: float) -> bool:
    """Whether a difference is one of numbers, and small enough."""
    return difference.largest is not None and float(difference.largest) <= tolerance > 0


def _save(outputs: Mapping[str, Any], folder: Path, style: str | None) -> list[str]:
    """Write the outputs; which file holds which."""
    files, places = plan_files(outputs, folder, style)
    write_files(files)
    lines = [f"{printable(label)}: {printable(str(path))}" for label, path in places]
    empty = [name for name, value in outputs.items() if _is_empty(value, style)]
    return [*lines, *(f"{printable(name)}: empty, no file" for name in empty)]


def _is_empty(value: Any, style: str | None) -> bool:
    """Whether there is nothing to write: no optional, or no element of a sequence."""
    return value is None or (isinstance(value, list) and not value and style != "pb")
