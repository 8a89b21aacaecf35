"""``tensorsplit doctor``: what every installed engine does with a model, and what to run next."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tensorsplit.cli.files import MODEL, PIPE, WritingCommand, read_source
from tensorsplit.cli.random_inputs import InputChoice, input_options
from tensorsplit.cli.screen import (
    FINDINGS,
    Table,
    examples,
    format_option,
    progress_of,
    say,
    show,
    write_json,
)
from tensorsplit.cli.sentences import amount, joined, known, localized, tr
from tensorsplit.cli.verifying import limit_options
from tensorsplit.core.errors import printable
from tensorsplit.core.extras import install_command
from tensorsplit.engines.engine_names import ENGINES

if TYPE_CHECKING:
    from tensorsplit.engines.diagnosis import Diagnosis
    from tensorsplit.engines.limits import Limits

JSON_VERSION = 1


@click.command(
    cls=WritingCommand,
    epilog=examples(
        "doctor model.onnx",
        "doctor model.onnx --format json",
        "doctor model.onnx --input x=x.npy --timeout 60",
    ),
)
@click.argument("model", type=MODEL)
@input_options("An input, as `run` takes it; other inputs are random.")
@limit_options
@format_option("text", "json")
def doctor(*, model: str, choice: InputChoice, limits: Limits, style: str) -> int:
    """Try a model in every installed engine, and say how to fix what is wrong.

    No options are needed. The model is checked for each engine, run on random inputs and compared
    with the results of tensorsplit; where an engine fails, the model is lowered and run again. No
    file is written, except with --save-inputs.

    MODEL is a path, or - for a model on standard input. Exit status: 0 every engine runs it as it
    is; 1 one of them does not; 2 the model can't be read, or no engine runs it.
    """
    from tensorsplit.engines.diagnosis import diagnose, diagnosis_of_wrong_model

    source = read_source(model)
    found = diagnosis_of_wrong_model(source)
    if not found:
        inputs = choice.completed(source)
        with progress_of("trying"), inputs.explained():
            found = list(diagnose(source, inputs.feeds, limits))
    (_write_json if style == "json" else _show)(model, found)
    return 0 if all(each.is_well for each in found) else FINDINGS


def _write_json(model: str, found: Sequence[Diagnosis]) -> None:
    engines = [
        {**asdict(each), "command": _command(model, each) or None, "is_well": each.is_well}
        for each in found
    ]
    missing = [{"engine": name, "command": install_command(name)} for name in _missing(found)]
    content = {"format": JSON_VERSION, "model": model, "engines": engines, "missing": missing}
    write_json(content)


def _show(model: str, found: Sequence[Diagnosis]) -> None:
    """Print the table, and below it the commands, each whole on a line of its own."""
    rows = [
        (
            f"{each.engine} {each.version}",
            known(each.verdict),
            printable(tr("; ").join(localized(known(why)) for why in each.why)),
        )
        for each in found
    ]
    show(Table(rows, (tr("engine"), tr("verdict"), tr("why"))))
    commands = {command: each for each in found if (command := _command(model, each))}
    if commands:
        say("", *(f"{command}    # {_purpose(each)}" for command, each in commands.items()))
    missing = _missing(found)
    if missing:
        purpose = tr("to try {names} too", names=joined(missing))
        say("", f"{install_command(','.join(missing))}    # {purpose}")


def _missing(found: Sequence[Diagnosis]) -> list[str]:
    return [name for name in ENGINES if name not in [each.engine for each in found]]


def _command(model: str, diagnosis: Diagnosis) -> str:
    """Return the command to run next, as a shell takes it; empty if there is nothing to do."""
    from tensorsplit.engines.diagnosis import FIXABLE, NOT_RUN, WRONG_MODEL

    path = "MODEL.onnx" if model == PIPE else model
    if diagnosis.verdict == WRONG_MODEL:
        return f"tensorsplit check {shlex.quote(path)}"
    if diagnosis.verdict == NOT_RUN or (diagnosis.is_well and not diagnosis.warnings):
        return ""
    engine = diagnosis.engine
    if diagnosis.verdict == FIXABLE:
        kind = ".xml" if Path(path).suffix.lower() == ".xml" else ".onnx"
        lowered = str(Path(path).with_suffix(f".{engine}{kind}"))
        out = shlex.quote(lowered)
        return f"tensorsplit lower {shlex.quote(path)} --for {engine} -o {out} --verify"
    return f"tensorsplit check {shlex.quote(path)} --for {engine}"


def _purpose(diagnosis: Diagnosis) -> str:
    """Return the purpose of a command, in a few words."""
    from tensorsplit.engines.diagnosis import FIXABLE, WRONG_MODEL

    if diagnosis.verdict == FIXABLE:
        return tr("writes a model that {engine} runs", engine=diagnosis.engine)
    if diagnosis.verdict == WRONG_MODEL:
        return tr("lists what is wrong")
    if diagnosis.warnings:
        return amount(diagnosis.warnings, "warning")
    return tr("lists what {engine} does not run", engine=diagnosis.engine)
