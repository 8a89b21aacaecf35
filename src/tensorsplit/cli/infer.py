"""``tensorsplit infer``: fill in types and shapes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import click

from tensorsplit.cli.rewrite import (
    PIPE,
    copying_weights,
    need_output,
    read_source,
    to_output,
    write_result,
)
from tensorsplit.cli.screen import examples, working, write
from tensorsplit.pages.layout import printable


@click.command(
    epilog=examples(
        "infer model.onnx -o inferred.onnx",
        "infer model.onnx --input-shape x:1,3,224,224 -o inferred.onnx",
        "infer model.onnx --dry-run",
        "infer - -o - < model.onnx > inferred.onnx",
    )
)
@click.argument("model")
@to_output
@click.option(
    "--input-shape",
    "shapes",
    metavar="NAME:SHAPE",
    multiple=True,
    help="Give an input a shape, such as x:1,3,224,224 or x:1x3x224x224; may be repeated.",
)
@click.option("--dry-run", is_flag=True, help="Say what would be filled in, and write nothing.")
@copying_weights
def infer(
    model: str, out: str | None, shapes: Sequence[str], dry_run: bool, copy_external_data: bool
) -> None:
    """Fill in the type and shape of every value of an ONNX model that can be known.

    MODEL is a path, or - for a model on standard input; OUT may be the same path. Exit status: 0
    fine; 2 a split that is wrong, or input that can't be read.
    """
    target = need_output(out, dry_run)
    from onnx import ModelProto

    from tensorsplit.cli.random_inputs import read_shapes
    from tensorsplit.model.graph.reading import read_model
    from tensorsplit.model.infer.fill import infer_shapes
    from tensorsplit.model.infer.report import filled_in

    source = read_source(model)
    given = read_shapes(shapes, read_model(source).inputs) if shapes else None
    with working("inferring"):
        made = cast(ModelProto, infer_shapes(source, input_shapes=given))
    if dry_run:
        lines = filled_in(source, made)
        write("".join(f"{printable(line)}\n" for line in lines) or "nothing to fill in\n")
        return
    write_result(made, model, target, copy_external_data)
    if target != PIPE:
        count = len(filled_in(source, made))
        write(f"{printable(target)}: {count} values described\n")
