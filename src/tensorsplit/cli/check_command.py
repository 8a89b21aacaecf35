"""``tensorsplit check``: what is wrong or odd with the splits of models."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tensorsplit import __version__
from tensorsplit.cli.files import (
    MODEL,
    OUT,
    PIPE,
    Output,
    WritingCommand,
    may_replace,
    outputs,
    read_source,
    refuse_terminal,
    source_of,
)
from tensorsplit.cli.model_commands import lowered
from tensorsplit.cli.rule_command import kind_of
from tensorsplit.cli.screen import (
    FINDINGS,
    complain,
    examples,
    format_option,
    is_terminal,
    note,
    progress_of,
    say,
    show,
    wants_colour,
    write,
)
from tensorsplit.cli.sentences import WORDS, amount, joined, known, localized, named, tr, worded
from tensorsplit.cli.words import CODE, TARGET, note_remarks
from tensorsplit.core.errors import (
    DOCUMENTATION,
    UNREADABLE_MODEL,
    SplitError,
    printable,
    show_path,
)

if TYPE_CHECKING:
    from onnx import ModelProto

    from tensorsplit.model.check.findings import CheckReport
    from tensorsplit.model.lower import LoweredIr
    from tensorsplit.model.reading import ModelLike, OnnxModel

UNREADABLE = 2
_SUFFIXES = (".onnx", ".xml")
_STYLES = {
    "error": "bold red",
    "warning": "yellow",
    "note": "cyan",
}
"""How the lines of the findings are shown: the severities."""


def _may_be_replaced(
    _: click.Context, __: click.Parameter, models: tuple[str, ...]
) -> tuple[str, ...]:
    """Let OUT be the model that is rewritten, if there is one."""
    if len(models) == 1 and not _is_folder(models[0]):
        may_replace(models[0])
    return models


@click.command(
    cls=WritingCommand,
    epilog=examples(
        "check model.onnx",
        "check models/ --for openvino --for onnxruntime --ignore TS825",
        "check model.onnx --for openvino --fix",
        "check model.onnx --fix-traced -o any-size.onnx",
        "check model.onnx --format sarif > splits.sarif",
        "check model.xml --strict",
    ),
)
@click.argument("models", metavar="MODEL...", nargs=-1, type=MODEL, callback=_may_be_replaced)
@click.option(
    *("--for", "--target", "targets"),
    type=TARGET,
    multiple=True,
    help="Also report what this engine does not run, or runs wrongly: onnxruntime, openvino,"
    " portable, or another that was measured; may be repeated, or list several: openvino,portable.",
)
@click.option(
    "--ignore",
    type=CODE,
    multiple=True,
    help="Leave out findings of this code, or of these: TS825,TS841; may be repeated.",
)
@click.option("--strict", is_flag=True, help="Let warnings count as errors for the exit status.")
@click.option("-q", "--quiet", is_flag=True, help="Print the findings without the summary.")
@format_option("text", "json", "sarif", "github", text="How to write the findings.")
@click.option(
    "--fix",
    is_flag=True,
    help="Rewrite what ENGINE does not run, as `lower` does, in place or to OUT. No result"
    " changes. The findings that are left are reported.",
)
@click.option(
    "--fix-traced",
    is_flag=True,
    help="Replace constant lengths that a tracer recorded for one size: the split then makes as"
    " many parts of any size. The result is tried with two sizes, and written in place or"
    " to OUT.",
)
@click.option(
    *("-o", "--output", "out"),
    type=OUT,
    help="Where to write the new model; - for a pipe.",
)
def check(
    *,
    models: Sequence[str],
    targets: Sequence[str],
    ignore: Sequence[str],
    strict: bool,
    quiet: bool,
    style: str,
    fix: bool,
    fix_traced: bool,
    out: str | None,
) -> int:
    """Find errors and pitfalls in the splits of models, ONNX or OpenVINO IR (.xml).

    MODEL is a file, a folder in which all models are checked, or - for an ONNX model on standard
    input. [tool.tensorsplit] in the nearest pyproject.toml may set for, ignore and strict.
    `tensorsplit rule CODE` explains a code. The exit status is 1 if there are errors; 2 if a model
    can't be read at all.
    """
    from tensorsplit.cli.settings import read_settings
    from tensorsplit.model.check import findings as reported

    settings = read_settings()
    requested = (each.strip() for word in targets for each in word.split(","))
    wanted = list(dict.fromkeys(requested)) or [each for each in (settings.target,) if each]
    listed = (word for words in ignore for word in words.split(","))
    ignored = {kind_of(word.strip()).code for word in (*settings.ignore, *listed)}
    if not models:
        raise click.UsageError(tr("there is no MODEL; give the path of a model or folder, or -"))
    paths = list(_files(models))
    _check_fix(fix, fix_traced, wanted, out, paths)
    note_remarks(wanted)
    look_at = _fixed if fix else _untraced if fix_traced else _examined
    reports: dict[str, CheckReport] = {}
    status = 0
    for path in paths:
        try:
            report = look_at(path, wanted, out or path)
        except SplitError as error:
            if len(paths) == 1 or error.kind is not UNREADABLE_MODEL:
                raise
            complain(worded(error))
            status = UNREADABLE
            continue
        found = tuple(each for each in report.findings if each.code not in ignored)
        kept = replace(report, findings=found)
        reports["stdin" if path == PIPE else path] = kept if path == PIPE else kept.of_file(path)
    shown = _formatted(reports, wanted, style, quiet=quiet)
    if out == PIPE:
        note(*shown.splitlines())
    elif style == "text":
        _show_findings(shown)
    else:
        write(shown)
    counted = ("error", "warning") if strict or settings.strict else ("error",)
    total = reported.totalled(reports)
    return status or (FINDINGS if any(map(total.count, counted)) else 0)


def _formatted(
    reports: Mapping[str, CheckReport], targets: Sequence[str], style: str, *, quiet: bool
) -> str:
    """Return the reports of models in a format; only text leaves out a summary."""
    from tensorsplit.model.check import findings as reported

    if style == "json":
        return reported.as_json(reports, targets, __version__)
    if style == "sarif":
        return reported.as_sarif(reports, __version__)
    if style == "github":
        return reported.as_github(reports)
    return named(reported.as_text(reports, summary=not quiet, words=WORDS))


def _files(models: Sequence[str]) -> Iterator[str]:
    """Yield the files that are meant, each once; of a folder all models in it, and below."""
    for model in dict.fromkeys(models):
        if model == PIPE or not _is_folder(model):
            yield model
            continue
        inside = _models_in(model)
        if not inside:
            problem = tr(
                "{folder} holds no .onnx, and no .xml with its .bin", folder=show_path(model)
            )
            raise SplitError(UNREADABLE_MODEL, problem, tr("give a model"), parameter="model")
        outputs().reads += inside
        yield from map(str, inside)


def _models_in(folder: str) -> list[Path]:
    """Return the models in a folder, and the folders that can't be read, to be refused."""
    lost: list[Path] = []
    places = os.walk(folder, onerror=lambda error: lost.append(Path(str(error.filename))))
    found = (Path(place, name) for place, _, names in places for name in names)
    inside = sorted(path for path in found if path.suffix.lower() in _SUFFIXES)
    return [*filter(_is_model, inside), *lost]


def _is_folder(model: str) -> bool:
    """Return whether it is a folder; what the system does not show is refused when it is read."""
    with contextlib.suppress(OSError):
        return Path(model).is_dir()
    return False


def _is_model(path: Path) -> bool:
    """Return whether a file of a folder is meant: any .onnx, and an .xml beside its weights."""
    return path.is_file() and (path.suffix.lower() == ".onnx" or path.with_suffix(".bin").exists())


def _check_fix(
    fix: bool, fix_traced: bool, targets: Sequence[str], out: str | None, paths: Sequence[str]
) -> None:
    """Refuse options that don't go together."""
    if not (fix or fix_traced):
        if out is not None:
            raise click.UsageError(tr("-o OUT needs --fix or --fix-traced"))
        return
    if fix and fix_traced:
        raise click.UsageError(tr("--fix and --fix-traced go one after the other"))
    if fix and len(targets) > 1:
        names = joined(targets)
        raise click.UsageError(tr("--fix takes one --for ENGINE, not {names}", names=names))
    if fix and not targets:
        raise click.UsageError(tr("--fix needs --for ENGINE: it rewrites what that does not run"))
    if out is None and PIPE in paths:
        name = "--fix" if fix else "--fix-traced"
        raise click.UsageError(
            tr("{name} of standard input needs -o OUT, or -o - for a pipe", name=name)
        )
    if out is not None and len(paths) != 1:
        raise click.UsageError(tr("-o OUT takes one MODEL; without it each is rewritten in place"))
    refuse_terminal(out)


def _examined(model: str, targets: Sequence[str], _: str) -> CheckReport:
    """Check a model, for each of the targets."""
    with progress_of("checking"):
        return _reported(source_of(model), targets)


def _reported(source: ModelLike, targets: Sequence[str]) -> CheckReport:
    """Return the findings for each of the targets; those that hold for all are there once."""
    from tensorsplit.model.check.checker import examine
    from tensorsplit.model.check.findings import combined

    return combined([examine(source, target) for target in targets or (None,)])


def _fixed(model: str, targets: Sequence[str], out: str) -> CheckReport:
    """Rewrite a model as `lower` does, where that is possible; what is left to be found."""
    source = read_source(model)
    is_ir = source.openvino is not None
    if is_ir:
        Output(out, copy_weights=True).check_takes_ir()
    try:
        found = lowered(source, targets[0])
    except SplitError as error:
        return _kept(model, source, targets, error)
    report = found.report
    if is_ir and out == model:  # two files, which are never written over
        if not report.changes:
            return _reported(source, targets)
        return _kept(model, source, targets, tr("give -o OUT.xml, beside which goes its .bin"))
    with found.read() as rewritten:
        left = _reported(rewritten, targets)
    _write(model, out, found.source, found.made, len(report.changes))
    note(*(f"{model}: {localized(each)}" for each in (*report.warnings, *report.notes)))
    return left


def _untraced(model: str, targets: Sequence[str], out: str) -> CheckReport:
    """Rewrite splits that were traced at one size; return what is left to be found."""
    from tensorsplit.engines.verification import verify_sizes
    from tensorsplit.model.convert.untracing import open_untraced

    source = read_source(model)
    try:
        with progress_of("rewriting"):
            opened, report = open_untraced(source)
            made = opened.proto(report.is_changed)
            rewritten = replace(opened, original=made, path=None)
            trial = verify_sizes(source, rewritten) if report.is_changed else None
    except SplitError as error:
        return _kept(model, source, targets, error)
    if trial is not None and not trial:
        return _kept(model, source, targets, tr("the results differ: {trial}", trial=trial))
    _write(model, out, opened, made, len(report.changes))
    return _reported(rewritten, targets)


def _kept(model: str, source: ModelLike, targets: Sequence[str], why: object) -> CheckReport:
    """Say why a model is not rewritten; return what is found of it."""
    reason = worded(why) if isinstance(why, SplitError) else why
    note(tr("{model} is not rewritten: {reason}", model=model, reason=reason))
    return _reported(source, targets)


def _write(
    model: str, out: str, opened: OnnxModel, made: ModelProto | LoweredIr, changes: int
) -> None:
    """Write a rewritten model; it replaces the one that was read if that is OUT."""
    may_replace(model)
    if changes or out != model or model == PIPE:
        Output(out, copy_weights=True).write(opened, made)
    if changes:
        note(tr("{model}: {nodes} rewritten", model=model, nodes=amount(changes, "node")))


def _show_findings(report: str) -> None:
    lines = list(map(printable, report.splitlines()))
    if not (is_terminal(sys.stdout) or wants_colour(sys.stdout)):
        say(*lines)  # ten times as fast as rich
        return
    from rich.text import Text

    text = Text("\n".join(lines))
    text.highlight_regex(r"(?m)^\S.*", "bold")  # nodes and the summary
    for severity, style in _STYLES.items():
        text.highlight_regex(f"(?m)^  {known(severity)}(?= )", style)
    text.highlight_regex("(?m)^    .*", "dim")  # fixes
    if DOCUMENTATION:
        text.highlight_regex(r"(?<=\[)TS\d{3}(?=[\] ])", _link)
    show(text, folds=False)


def _link(code: str) -> Any:
    """Return the style of a code on a terminal: a link to its section of the documentation."""
    from rich.style import Style

    return Style(link=kind_of(code).url)
