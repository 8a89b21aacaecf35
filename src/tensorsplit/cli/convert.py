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
from tensorsplit.core.errors import USAGE, SplitError
from tensorsplit.pages.layout import printable


@click.command(
    epilog=examples(
        "convert model.onnx --opset 18 -o model.onnx",
        "convert model.onnx --opset 11 --dry-run",
        "convert model.onnx --to-variadic -o variadic.onnx",
        "convert - --opset 13 -o - < model.onnx > converted.onnx",
    )
)
@click.argument("model")
@click.option("--opset", metavar="N", type=int, help="The opset of ONNX's own operators.")
@click.option(
    "--to-variadic",
    is_flag=True,
    help="Make OpenVINO's VariadicSplit, in the domain org.openvinotoolkit, of every Split; `lower`"
    " goes the way back.",
)
@to_output
@click.option("--dry-run", is_flag=True, help="Say what would change, and write nothing.")
@copying_weights
def convert(  # noqa: PLR0917 - one for each option, which click gives by name
    model: str,
    opset: int | None,
    to_variadic: bool,
    out: str | None,
    dry_run: bool,
    copy_external_data: bool,
) -> None:
    """Bring an ONNX model to another opset, up or down, with its bodies and functions.

    Or say its splits as OpenVINO does, with --to-variadic; both may be asked for at once.
    MODEL is a path, or - for a model on standard input; OUT may be the same path. Exit status: 0
    fine; 2 something has no form at that opset, or the input can't be read.
    """
    target = need_output(out, dry_run)
    if opset is None and not to_variadic:
        raise SplitError(USAGE, "there is no --opset N", "give it, or --to-variadic, or both")
    from tensorsplit.model.convert.driver import check_opset, convert_model
    from tensorsplit.model.convert.variadic import to_variadic as convert_splits
    from tensorsplit.model.graph.reading import open_model

    wanted = None if opset is None else check_opset(opset)
    with working("converting"):
        opened = open_model(read_source(model))
        changed = wanted is not None and convert_model(opened.model, wanted)
        if to_variadic:
            changed |= convert_splits(opened.model)
        made = opened.proto(changed)
    if target != PIPE or dry_run:
        if not changed:
            already = "has no Split" if wanted is None else f"is at opset {wanted} already"
            write(f"{printable(model)} {already}\n")
        show(summary(opened.original, made))
    if not dry_run:
        write_result(made, model, target, copy_external_data)
