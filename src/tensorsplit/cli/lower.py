"""``tensorsplit lower``: an equal model that an engine runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from tensorsplit.cli.inputs import read_feeds
from tensorsplit.cli.random_inputs import random_feeds, read_shapes
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
from tensorsplit.core.errors import SplitError
from tensorsplit.pages.layout import printable

if TYPE_CHECKING:
    from onnx import ModelProto

    from tensorsplit.model.lower.report import Report

MISMATCH = 1
_MOST_CHANGES = 40


@click.command(
    epilog=examples(
        "lower model.onnx --for openvino -o lowered.onnx --verify",
        "lower model.onnx --for onnxruntime --dry-run",
        "lower model.onnx --for portable -o - > portable.onnx",
        "lower model.onnx --for openvino -o out.onnx --verify --input-shape x:1,3,224,224",
    )
)
@click.argument("model")
@click.option(
    "--for",
    "target",
    metavar="ENGINE",
    required=True,
    help="What is to run it: onnxruntime, openvino, or portable (no sequence operators, explicit"
    " lengths, axes from the front).",
)
@to_output
@click.option("--dry-run", is_flag=True, help="Say what would change, and write nothing.")
@click.option(
    "--verify",
    is_flag=True,
    help="Run the model with our own operators and what it becomes with the engine, and compare"
    " the bits; nothing is written if they differ.",
)
@click.option(
    "--input",
    "-i",
    "written",
    metavar="NAME=FILE",
    multiple=True,
    help="What to verify with, as `run` takes it; inputs that are not given are random.",
)
@click.option(
    "--input-shape",
    "shapes",
    metavar="NAME:SHAPE",
    multiple=True,
    help="The shape of a random input, such as x:1,3,224,224 or x:1x3x224x224.",
)
@copying_weights
@click.pass_context
def lower(  # noqa: PLR0917 - one for each option, which click gives by name
    ctx: click.Context,
    model: str,
    target: str,
    out: str | None,
    dry_run: bool,
    verify: bool,
    written: Sequence[str],
    shapes: Sequence[str],
    copy_external_data: bool,
) -> None:
    """Rewrite the splits and sequences of an ONNX model so that an engine runs it exactly.

    MODEL is a path, or - for a model on standard input; OUT may be the same path. Only what the
    engine was measured not to run, or to run wrongly, is changed. Exit status: 0 fine; 1 the
    results differ (--verify); 2 it can't be lowered, or can't be read.
    """
    place = need_output(out, dry_run)
    from tensorsplit.model.graph.reading import open_model
    from tensorsplit.model.lower import lower_graph

    source = read_source(model)
    with working("lowering"):
        opened = open_model(source)
        report = lower_graph(opened.model, target)
        made = opened.proto(bool(report.changes))
    lines: list[str] = []
    same = True
    if verify:
        lines, same = _verify(source, opened.model, target, written, shapes)
    if place != PIPE or dry_run:
        _tell(report, opened.original, made)
        write("".join(f"{printable(line)}\n" for line in lines))
    if not same:
        ctx.exit(MISMATCH)
    if not dry_run:
        write_result(made, model, place, copy_external_data)


def _tell(report: Report, before: ModelProto, after: ModelProto) -> None:
    """The changes, a table of before and after, and what remains to be known."""
    if report.changes:
        shown = report.changes[:_MOST_CHANGES]
        for reason in dict.fromkeys(change.reason for change in shown):
            write(f"because {printable(report.target)}: {printable(reason)}\n")
            for change in shown:
                if change.reason == reason:
                    line = f"{change.node}: {change.operator} -> {change.became}"
                    write(f"  {printable(line)}\n")
        if len(report.changes) > len(shown):
            write(f"and {len(report.changes) - len(shown)} more changes\n")
        show(summary(before, after))
    else:
        write(f"{printable(report.target)} runs it as it is; nothing was changed\n")
    write("".join(f"note: {printable(note)}\n" for note in report.notes))


def _verify(
    source: str | ModelProto, made: Any, target: str, written: Sequence[str], shapes: Sequence[str]
) -> tuple[list[str], bool]:
    """Run both models; what came of it in words, and whether they agree."""
    from tensorsplit import engines
    from tensorsplit.engines.compare import compare
    from tensorsplit.model.graph.reading import read_model
    from tensorsplit.model.profiles import load

    named = load(target).engine
    engine = named if named in engines.ENGINES else "numpy"
    engines.check_engine(engine)
    declared = read_model(source).inputs
    given = read_feeds(written, declared)
    feeds = random_feeds(declared, given, read_shapes(shapes, declared))
    try:
        expected = engines.run(source, feeds)
    except SplitError as error:
        if not written or len(given) < len(declared):
            error.fix = (
                f"{error.fix}; give inputs that fit the model with --input NAME=FILE".lstrip("; ")
            )
        raise
    found = compare(made, feeds, [engine], reference=expected)
    if found:
        return [f"NOT verified: {difference}" for difference in found], False
    inputs = "the inputs given" if len(given) == len(feeds) else "random inputs"
    return [f"verified: on {inputs}, {engine} gives the same bits"], True
