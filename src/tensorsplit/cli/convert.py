"""``tensorsplit convert``: the whole model at another opset."""

from __future__ import annotations

import click

from tensorsplit.cli.rewrite import (
    PIPE,
    copying_weights,
    need_output,
    read_source,
    summary,
    to_output,
    write_result,
)
from tensorsplit.cli.screen import examples, show, working, write
from tensorsplit.pictures.layout import printable


@click.command(
    epilog=examples(
        "convert model.onnx --opset 18 -o model.onnx",
        "convert model.onnx --opset 11 --dry-run",
        "convert - --opset 13 -o - < model.onnx > converted.onnx",
    )
)
@click.argument("model")
@click.option(
    "--opset", metavar="N", type=int, required=True, help="The opset of ONNX's own operators."
)
@to_output
@click.option("--dry-run", is_flag=True, help="Say what would change, and write nothing.")
@copying_weights
def convert(
    model: str, opset: int, out: str | None, dry_run: bool, copy_external_data: bool
) -> None:
    """Bring an ONNX model to another opset, up or down, with its bodies and functions.

    MODEL is a path, or - for a model on standard input; OUT may be the same path. Exit status: 0
    fine; 2 something has no form at that opset, or the input can't be read.
    """
    target = need_output(out, dry_run)
    from tensorsplit.models.convert.driver import check_opset, convert_model
    from tensorsplit.models.graph.store import open_model

    wanted = check_opset(opset)
    with working("converting"):
        opened = open_model(read_source(model))
        changed = convert_model(opened.model, wanted)
        made = opened.proto(changed)
    if target != PIPE or dry_run:
        if not changed:
            write(f"{printable(model)} is at opset {wanted} already\n")
        show(summary(opened.original, made))
    if not dry_run:
        write_result(made, model, target, copy_external_data)
