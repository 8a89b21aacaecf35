"""The commands that read a model as a whole: ``check``, ``convert``, ``infer`` and ``lower``."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import wraps
from typing import TYPE_CHECKING, Any, cast

import click

from tensorsplit import __version__
from tensorsplit.cli.files import PIPE, Output, source_of
from tensorsplit.cli.input_files import (
    INPUT_SHAPE_OPTION,
    input_option,
    random_feeds,
    read_feeds,
    read_input_shapes,
)
from tensorsplit.cli.screen import FINDINGS, examples, format_option, progress_of, say, show, write
from tensorsplit.core.errors import SplitError, printable

if TYPE_CHECKING:
    from onnx import ModelProto, ValueInfoProto
    from rich.table import Table

    from tensorsplit.model.graph.reading import OnnxModel
    from tensorsplit.model.lower import LoweringReport

_MOST_CHANGES = 40
_MOST_NAMES = 6
_STYLES = {
    r"^\S.*": "bold",
    "^  error": "bold red",
    "^  warning": "yellow",
    "^  note": "cyan",
    "^    .*": "dim",
}
"""How the lines of the findings are shown: nodes and the summary, severities, and fixes."""


def _writes_model(command: Callable[..., int | None]) -> Callable[..., int | None]:
    """MODEL, and the options of a command that writes one, which it gets as one, `output`."""

    @click.argument("model")
    @click.option(
        "-o", "--output", "out", metavar="OUT", help="Where the model goes; - for a pipe."
    )
    @click.option("--dry-run", is_flag=True, help="Say what would change, and write nothing.")
    @click.option(
        "--copy-external-data",
        is_flag=True,
        help="Copy the weights beside the model if OUT is in another folder; else they are linked.",
    )
    @wraps(command)
    def with_output(
        *, model: str, out: str | None, dry_run: bool, copy_external_data: bool, **options: Any
    ) -> int | None:
        if out is None and not dry_run:
            raise click.UsageError("there is no -o OUT; say where the result goes, or --dry-run")
        output = Output(model, None if dry_run else out, copy_external_data)
        return command(model=model, output=output, **options)

    return with_output


@click.command(
    epilog=examples(
        "check model.onnx",
        "check model.onnx --for openvino",
        "check model.onnx --format sarif > splits.sarif",
        "check model.xml --strict",
    )
)
@click.argument("model")
@click.option(
    "--for",
    "target",
    metavar="ENGINE",
    help="Report as well what this engine does not run, or runs wrongly: onnxruntime, openvino, or"
    " portable.",
)
@format_option("text", "json", "sarif", text="How to write the findings.")
@click.option("--strict", is_flag=True, help="Let warnings count as errors for the exit status.")
def check(model: str, target: str | None, style: str, strict: bool) -> int:
    """Find what is wrong or odd with the splits of a model, ONNX or OpenVINO IR (.xml).

    MODEL is a path, or - for an ONNX model on standard input. The exit status is 1 if there are
    errors; 2 if the model can't be read at all.
    """
    from tensorsplit.model.check import findings as reports
    from tensorsplit.model.check.checker import examine

    with progress_of("checking"):
        report = examine(source_of(model), target)
    name = "stdin" if model == PIPE else model
    if style == "json":
        write(reports.as_json(report, name, target, __version__))
    elif style == "sarif":
        write(reports.as_sarif(report, name, __version__))
    else:
        _show_findings(reports.as_text(report))
    counted = ("error", "warning") if strict else ("error",)
    return FINDINGS if any(map(report.count, counted)) else 0


def _show_findings(report: str) -> None:
    lines = list(map(printable, report.splitlines()))
    if sys.stdout is None or not sys.stdout.isatty():
        say(*lines)  # ten times as fast as rich
        return
    from rich.text import Text

    text = Text("\n".join(lines))
    for pattern, style in _STYLES.items():
        text.highlight_regex(f"(?m){pattern}", style)
    show(text, folds=False)


@click.command(
    epilog=examples(
        "infer model.onnx -o inferred.onnx",
        "infer model.onnx --input-shape x:1,3,224,224 -o inferred.onnx",
        "infer model.onnx --dry-run",
        "infer - -o - < model.onnx > inferred.onnx",
    )
)
@INPUT_SHAPE_OPTION
@_writes_model
def infer(*, model: str, shapes: Sequence[str], output: Output) -> None:
    """Fill in the type and shape of every value of an ONNX model that can be known.

    MODEL is a path, or - for a model on standard input; OUT may be the same path. Exit status: 0
    fine; 2 a split is wrong, or the input can't be read.
    """
    from onnx import ModelProto

    from tensorsplit.model.graph.reading import read_model
    from tensorsplit.model.infer.filling import filled_in, infer_shapes

    source = read_model(source_of(model))
    given = read_input_shapes(shapes, source.inputs) if shapes else None
    with progress_of("inferring"):
        made = cast(ModelProto, infer_shapes(source, input_shapes=given))
    output.write(made)
    if output.has_report:
        filled = filled_in(source, made)
        described = [f"{output.target}: {len(filled)} values described"]
        say(*(described if output.target else filled or ["nothing to fill in"]))


@click.command(
    epilog=examples(
        "convert model.onnx --opset 18 -o model.onnx",
        "convert model.onnx --opset 11 --dry-run",
        "convert model.onnx --to-variadic -o variadic.onnx",
        "convert - --opset 13 -o - < model.onnx > converted.onnx",
    )
)
@click.option(
    "--opset", metavar="N", type=int, help="The opset to convert ONNX's own operators to."
)
@click.option(
    "--to-variadic",
    is_flag=True,
    help="Convert every Split to OpenVINO's VariadicSplit, in the domain org.openvinotoolkit;"
    " `lower` goes the way back.",
)
@_writes_model
def convert(*, model: str, opset: int | None, to_variadic: bool, output: Output) -> None:
    """Convert an ONNX model to another opset, up or down.

    With --to-variadic, convert its splits to OpenVINO's operator; both may be asked for at once.
    Bodies and functions are converted too.
    MODEL is a path, or - for a model on standard input; OUT may be the same path. Exit status: 0
    fine; 2 something is not expressible at that opset, or the input can't be read.
    """
    if opset is None and not to_variadic:
        raise click.UsageError("there is no --opset N; give it, or --to-variadic, or both")
    from tensorsplit.model.convert.driver import open_converted

    with progress_of("converting"):
        opened, changed = open_converted(source_of(model), opset, variadic=to_variadic)
        made = opened.proto(changed)
    if output.has_report:
        if not changed:
            already = "has no Split" if opset is None else f"is at opset {opset} already"
            say(f"{model} {already}")
        show(_summary(opened.original, made))
    output.write(made)


@click.command(
    epilog=examples(
        "lower model.onnx --for openvino -o lowered.onnx --verify",
        "lower model.onnx --for onnxruntime --dry-run",
        "lower model.onnx --for portable -o - > portable.onnx",
        "lower model.onnx --for openvino -o out.onnx --verify --input-shape x:1,3,224,224",
    )
)
@click.option(
    "--for",
    "target",
    metavar="ENGINE",
    required=True,
    help="What is to run it: onnxruntime, openvino, or portable (no sequence operators, explicit"
    " lengths, axes from the front).",
)
@click.option(
    "--verify",
    is_flag=True,
    help="Run the model with our own operators and the lowered one with the engine, and compare"
    " the bits; nothing is written if they differ.",
)
@input_option("What to verify with, as `run` takes it; inputs that are not given are random.")
@INPUT_SHAPE_OPTION
@_writes_model
def lower(
    *,
    model: str,
    target: str,
    verify: bool,
    written: Sequence[str],
    shapes: Sequence[str],
    output: Output,
) -> int:
    """Rewrite the splits and sequences of an ONNX model for an engine.

    MODEL is a path, or - for a model on standard input; OUT may be the same path. The result runs
    exactly: only what the engine was measured not to run, or to run wrongly, is changed. Exit
    status: 0 fine; 1 the results differ (--verify); 2 it can't be lowered, or can't be read.
    """
    from tensorsplit.model.graph.reading import open_model
    from tensorsplit.model.lower import lower_graph

    with progress_of("lowering"):
        opened = open_model(source_of(model))
        report = lower_graph(opened.model, target)
        made = opened.proto(bool(report.changes))
    verdict: list[str] = []
    same = True
    if verify:
        lowered = replace(opened, original=made, path=None)
        verdict, same = _verify(replace(opened), lowered, target, written, shapes)
    if output.has_report:
        _tell(report, opened.original, made)
        say(*verdict)
    if not same:
        return FINDINGS
    output.write(made)
    return 0


def _tell(report: LoweringReport, before: ModelProto, after: ModelProto) -> None:
    """The changes, a table of before and after, and notes."""
    if report.changes:
        shown = report.changes[:_MOST_CHANGES]
        for reason in dict.fromkeys(change.reason for change in shown):
            say(f"because {report.target}: {reason}")
            because = (change for change in shown if change.reason == reason)
            say(*(f"  {each.node}: {each.operator} -> {each.became}" for each in because))
        if len(report.changes) > len(shown):
            say(f"and {len(report.changes) - len(shown)} more changes")
        show(_summary(before, after))
    else:
        say(f"{report.target} runs it as it is; nothing was changed")
    say(*(f"note: {note}" for note in report.notes))


def _verify(
    source: OnnxModel, made: OnnxModel, target: str, written: Sequence[str], shapes: Sequence[str]
) -> tuple[list[str], bool]:
    """Run both models; what was found, and whether they agree."""
    from tensorsplit import engines
    from tensorsplit.engines.compare import compare
    from tensorsplit.model.profiles import load

    named = load(target).engine
    engine = named if named in engines.ENGINES else "numpy"
    engines.check_engine(engine)
    declared = source.inputs
    given = read_feeds(written, declared)
    feeds = random_feeds(declared, given, read_input_shapes(shapes, declared))
    try:
        expected = engines.run(source, feeds)
    except SplitError as error:
        if not written or len(given) < len(declared):
            fix = "give inputs that fit the model with --input NAME=FILE"
            error.fix = "; ".join(filter(None, (error.fix, fix)))
        raise
    found = compare(made, feeds, [engine], reference=expected)
    if found:
        return [f"NOT verified: {difference}" for difference in found], False
    inputs = "the inputs given" if len(given) == len(feeds) else "random inputs"
    return [f"verified: on {inputs}, {engine} gives the same bits"], True


def _summary(before: ModelProto, after: ModelProto) -> Table:
    """A table of what a command changed: opsets, operators of the family, inputs, outputs."""
    from rich.table import Table

    table = Table("", "before", "after", box=None, pad_edge=False, header_style="bold")
    left, right = _facts(before), _facts(after)
    for name in dict.fromkeys((*left, *right)):
        table.add_row(*map(printable, (name, left.get(name, "-"), right.get(name, "-"))))
    return table


def _facts(model: ModelProto) -> Mapping[str, str]:
    from tensorsplit.core.records import operators
    from tensorsplit.model.graph.message import node_lists

    opsets = {f"opset {each.domain or 'ai.onnx'}": f"{each.version}" for each in model.opset_import}
    kinds = [node.op_type for listed in node_lists(model) for node in listed.graph.node]
    family = {record.name for record in operators.values()}
    counts = Counter(kind for kind in sorted(kinds) if kind in family or "Sequence" in kind)
    return {
        **opsets,
        "nodes": f"{len(kinds)}",
        **{kind: f"{count}" for kind, count in counts.items()},
        "inputs": _names(model.graph.input),
        "outputs": _names(model.graph.output),
    }


def _names(values: Iterable[ValueInfoProto]) -> str:
    names = [value.name for value in values]
    more = f", ... ({len(names)})" if len(names) > _MOST_NAMES else ""
    return ", ".join(names[:_MOST_NAMES]) + more
