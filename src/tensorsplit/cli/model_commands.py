"""The commands that write a model: ``convert``, ``infer`` and ``lower``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import wraps
from typing import TYPE_CHECKING, TypeVar

import click

from tensorsplit.cli.files import (
    MODEL,
    OUT,
    Output,
    WritingCommand,
    may_replace,
    read_source,
    refuse_other_kind,
    refuse_terminal,
)
from tensorsplit.cli.input_files import INPUT_SHAPE_OPTION, read_input_shapes
from tensorsplit.cli.screen import FINDINGS, Table, examples, listed, note, progress_of, say, show
from tensorsplit.cli.sentences import amount, localized, tr
from tensorsplit.cli.verifying import VerificationOptions, verifies
from tensorsplit.cli.words import ENGINE, TARGET, note_remarks
from tensorsplit.core.errors import printable, short_name
from tensorsplit.core.records import operators
from tensorsplit.engines.engine_names import ENGINES, check_engine

if TYPE_CHECKING:
    from onnx import ModelProto

    from tensorsplit.model.convert.conversion import ConversionReport
    from tensorsplit.model.lower import LoweredModel, LoweringReport
    from tensorsplit.model.reading import OnnxModel

_Status = TypeVar("_Status", bound="int | None")

_MOST_CHANGES = 40


def _may_be_replaced(_: click.Context, __: click.Parameter, model: str) -> str:
    may_replace(model)
    return model


def _writes_model(command: Callable[..., _Status]) -> Callable[..., _Status]:
    """Add MODEL and the options of a command that writes one, passed on as `output`."""

    @click.argument("model", type=MODEL, callback=_may_be_replaced)
    @click.option(
        *("-o", "--output", "out"),
        type=OUT,
        help="Where to write the model; - for a pipe.",
    )
    @click.option("--dry-run", is_flag=True, help="Say what would change, and write nothing.")
    @click.option(
        "--copy-external-data/--link-external-data",
        default=True,
        help="Copy the weights beside the model if OUT is in another folder, or hard-link them."
        " Links take no space, but onnx 1.23 loads neither model then.",
    )
    @wraps(command)
    def with_output(
        *, model: str, out: str | None, dry_run: bool, copy_external_data: bool, **options: object
    ) -> _Status:
        if out is None and not dry_run:
            raise click.UsageError(
                tr("there is no -o OUT; say where the result goes, or --dry-run")
            )
        refuse_terminal(out)
        refuse_other_kind(model, out)
        output = Output(None if dry_run else out, copy_external_data)
        return command(model=model, output=output, **options)

    return with_output


@click.command(
    cls=WritingCommand,
    epilog=examples(
        "infer model.onnx -o inferred.onnx",
        "infer model.onnx --input-shape x:1,3,224,224 -o inferred.onnx",
        "infer model.onnx --dry-run",
        "infer - -o - < model.onnx > inferred.onnx",
    ),
)
@INPUT_SHAPE_OPTION
@_writes_model
def infer(*, model: str, shapes: Sequence[str], output: Output) -> None:
    """Fill in the type and shape of every value of an ONNX model that can be known.

    MODEL is a path, or - for a model on standard input; OUT may be the same path. Exit status: 0
    fine; 2 a split is wrong, or the input can't be read.
    """
    from tensorsplit.model.infer.filling import described, open_filled

    source = read_source(model)
    given = read_input_shapes(shapes, source.inputs) if shapes else {}
    with progress_of("inferring"):
        opened, changed = open_filled(source, given)
        made = opened.proto(bool(changed), changed)
    output.write(opened, made)
    if output.has_report:
        filled = described(changed)
        values = amount(len(filled), "value")
        whole = [tr("{path}: {values} described", path=output.target, values=values)]
        say(*(whole if output.target else filled or [tr("nothing to fill in")]))
        _note_order(opened)


@click.command(
    cls=WritingCommand,
    epilog=examples(
        "convert model.onnx --opset 18 -o model.onnx",
        "convert model.onnx --opset 11 --dry-run",
        "convert model.onnx --opset 13 -o model.onnx --verify --engine onnxruntime",
        "convert model.onnx --to-variadic -o variadic.onnx",
        "convert model.xml --opset 18 -o model.onnx",
        "convert - --opset 13 -o - < model.onnx > converted.onnx",
    ),
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
@verifies(
    "Run both models and compare their outputs; nothing is written if they differ by more than is"
    " allowed."
)
@click.option(
    "--engine",
    "engines",
    type=ENGINE,
    multiple=True,
    help="With --verify, run both models with this engine too, beside our own operators; may be"
    " repeated.",
)
@_writes_model
def convert(
    *,
    model: str,
    opset: int | None,
    to_variadic: bool,
    engines: Sequence[str],
    verification: VerificationOptions | None,
    output: Output,
) -> int:
    """Convert an ONNX model to another opset, up or down, or an OpenVINO IR to ONNX.

    With --to-variadic, convert its splits to OpenVINO's operator; both may be given at once. Bodies
    and functions are converted too. The rewritten operators are listed: most are exact; one that
    becomes several operators that calculate is equal up to rounding. Of an IR (.xml), a layer
    without an exact counterpart is refused, by its name. MODEL is a path, or - for a model on
    standard input; OUT may be the same path. Exit status: 0 fine; 1 the results differ (--verify);
    2 something is not expressible at that opset, or the input can't be read.
    """
    if opset is None and not to_variadic:
        raise click.UsageError(tr("there is no --opset N; give it, or --to-variadic, or both"))
    if engines and verification is None:
        raise click.UsageError(tr("{name} needs --verify", name="--engine"))
    from tensorsplit.model.convert.driver import open_converted

    for engine in engines:
        check_engine(engine)
    source = read_source(model)
    with progress_of("converting"):
        opened, report = open_converted(source, opset, variadic=to_variadic)
        made = opened.proto(report.is_changed)
    is_ir = source.openvino is not None
    others = ["openvino", *engines] if is_ir else engines
    verdict, same = list[str](), True
    if verification is not None:
        rewritten = replace(opened, original=made, path=None)
        verdict, same = verification.run(replace(source if is_ir else opened), rewritten, others)
    if output.has_report:
        if not report.is_changed:
            already = tr("{model} is at opset {opset} already", model=model, opset=opset)
            say(tr("{model} has no Split", model=model) if opset is None else already)
        _note_order(opened)
        _list_rewritten(report)
        show(_summary(opened.original, made))
    _say_verdict(output, verdict)
    if same:
        output.write(opened, made)
    return 0 if same else FINDINGS


def _note_order(opened: OnnxModel) -> None:
    """Say whether the nodes had to be put in order."""
    if opened.was_sorted:
        say(tr("note: some nodes read what only later ones give; they were put in order"))


def _list_rewritten(report: ConversionReport) -> None:
    """List every rewritten operator, whether that is exact, and what was left out."""
    for label in report.dropped:
        say(
            tr(
                "left out: the {label}, which nobody calls;"
                " no call gives the attributes that it needs",
                label=label,
            )
        )
    groups: dict[tuple[bool, str], list[str]] = {}
    for each in report.changes:
        became = f" -> {', '.join(dict.fromkeys(each.became))}" if each.became else ""
        groups.setdefault((each.is_exact, f"{each.operator}{became}"), []).append(each.node)
    titles = ((True, tr("rewritten, exact:")), (False, tr("rewritten, up to rounding:")))
    for is_exact, title in titles:
        found = [(what, nodes) for (exact, what), nodes in groups.items() if exact == is_exact]
        if found:
            say(title)
            say(*(f"  {what} ({_counted(nodes)})" for what, nodes in found[:_MOST_CHANGES]))
        if len(found) > _MOST_CHANGES:
            more = amount(len(found) - _MOST_CHANGES, "more operator")
            say(tr("  and {more}", more=more))


def _counted(nodes: Sequence[str]) -> str:
    if len(nodes) == 1:
        return nodes[0]
    return tr("{n} nodes, the first is {name}", n=len(nodes), name=nodes[0])


@click.command(
    cls=WritingCommand,
    epilog=examples(
        "lower model.onnx --for openvino -o lowered.onnx --verify",
        "lower model.onnx --for onnxruntime --dry-run",
        "lower model.onnx --for portable -o - > portable.onnx",
        "lower model.onnx --for openvino -o out.onnx --verify --input-shape x:1,3,224,224",
        "lower model.xml --for openvino -o safe.xml",
    ),
)
@click.option(
    *("--for", "--target", "target"),
    type=TARGET,
    required=True,
    help="The engine that is to run it: onnxruntime, openvino, or portable (no sequence"
    " operators, explicit lengths, axes from the front).",
)
@verifies(
    "Run both models with our own operators, and with the engine where it is installed, and compare"
    " their outputs; nothing is written if they differ by more than is allowed."
)
@_writes_model
def lower(
    *,
    model: str,
    target: str,
    verification: VerificationOptions | None,
    output: Output,
) -> int:
    """Rewrite the splits and sequences of an ONNX model, or the splits of an IR, for an engine.

    MODEL is a path, or - for a model on standard input; OUT may be the same path. Only what the
    engine was measured not to run, or to run wrongly, is changed, and that changes no result. An
    OpenVINO IR (.xml) stays one: OUT is another .xml, and its .bin is written beside it. Exit
    status: 0 fine; 1 the results differ (--verify); 2 it can't be lowered, or can't be read.
    """
    from tensorsplit.model.lower import LoweredIr

    note_remarks([target])
    source = read_source(model)
    if source.openvino is not None:
        output.check_takes_ir()
    found = lowered(source, target)
    report, made = found.report, found.made
    verdict, same = list[str](), True
    if verification is not None:
        with found.read() as rewritten:
            others = _engine_of(target)
            verdict, same = verification.run(replace(found.source), rewritten, others)
    if output.has_report:
        _list_changes(report)
        if report.changes and not isinstance(made, LoweredIr):
            show(_summary(found.source.original, made))
        say(*(tr("note: {note}", note=localized(note)) for note in report.notes))
    note(*(tr("warning: {warning}", warning=localized(warning)) for warning in report.warnings))
    _say_verdict(output, verdict)
    if same:
        output.write(found.source, made)
        if output.target not in (None, model) and not report.changes and output.has_report:
            say(tr("{path} is a copy of it", path=output.target))
    return 0 if same else FINDINGS


def lowered(source: OnnxModel, target: str) -> LoweredModel:
    """Lower a model, and show the progress."""
    from tensorsplit.model.lower import lowered

    with progress_of("lowering"):
        return lowered(source, target)


def _list_changes(report: LoweringReport) -> None:
    """Print the changes."""
    if report.changes:
        shown = report.changes[:_MOST_CHANGES]
        for reason in dict.fromkeys(change.reason for change in shown):
            say(tr("because {reason}", reason=localized(reason)))
            because = (change for change in shown if change.reason == reason)
            say(*(f"  {each.node}: {each.operator} -> {each.became}" for each in because))
        if len(report.changes) > len(shown):
            more = amount(len(report.changes) - len(shown), "more change")
            say(tr("and {more}", more=more))
    else:
        say(tr("{engine} runs it as it is; nothing was changed", engine=report.target))


def _engine_of(target: str) -> list[str]:
    """Return the engine that a target is about, if it is one."""
    from tensorsplit.model.profiles import load

    return [name for name in (load(target).engine,) if name in ENGINES]


def _say_verdict(output: Output, verdict: Sequence[str]) -> None:
    """Print the verdict of --verify; on standard error where standard output holds the model."""
    (say if output.has_report else note)(*verdict)


def _summary(before: ModelProto, after: ModelProto) -> Table:
    """Print a table of what a command changed: opsets, operators, inputs, outputs."""
    left, right = _facts(before), _facts(after)
    names = dict.fromkeys((*left, *right))
    rows = [(name, left.get(name, "-"), right.get(name, "-")) for name in names]
    return Table([tuple(map(printable, row)) for row in rows], ("", tr("before"), tr("after")))


def _facts(model: ModelProto) -> Mapping[str, str]:
    from tensorsplit.model.graph.message import node_lists

    opsets = {f"opset {each.domain or 'ai.onnx'}": f"{each.version}" for each in model.opset_import}
    kinds = [node.op_type for listed in node_lists(model) for node in listed.graph.node]
    family = {record.name for record in operators.values()}
    counts = Counter(kind for kind in sorted(kinds) if kind in family or "Sequence" in kind)
    return {
        **opsets,
        tr("nodes"): f"{len(kinds)}",
        **{kind: f"{count}" for kind, count in counts.items()},
        tr("inputs"): listed([short_name(value.name) for value in model.graph.input]),
        tr("outputs"): listed([short_name(value.name) for value in model.graph.output]),
    }
