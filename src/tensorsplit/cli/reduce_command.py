"""``tensorsplit reduce``: the smallest model that still shows what an engine gets wrong."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import click

from tensorsplit.cli.files import (
    FOLDER,
    MODEL,
    PIPE,
    WritingCommand,
    outputs,
    read_source,
    write_archive,
    write_files,
)
from tensorsplit.cli.random_inputs import InputChoice, input_options, members
from tensorsplit.cli.screen import examples, note, say
from tensorsplit.cli.sentences import amount, localized, tr
from tensorsplit.cli.words import SECONDS, subject_word
from tensorsplit.conformance import SECONDS_OF_A_CASE
from tensorsplit.core.errors import printable


@click.command(
    cls=WritingCommand,
    epilog=examples(
        "reduce model.onnx --engine openvino --input lengths=lengths.npy",
        "reduce model.onnx --engine onnxruntime --seed 1 -o smallest",
    ),
)
@click.argument("model", type=MODEL)
@click.option(
    "--engine",
    required=True,
    type=subject_word("engine"),
    help="The engine that gets it wrong, or the path of an adapter (.py).",
)
@input_options("An input that shows it, as `run` takes it; other inputs are random.")
@click.option(
    *("-o", "--output", "folder"),
    type=FOLDER,
    help="The folder for the model, its inputs and the script; by default MODEL-reduced.",
)
@click.option(
    "--seconds",
    metavar="SECONDS",
    type=SECONDS,
    default=120.0,
    show_default=True,
    help="How long the whole search may take.",
)
@click.option(
    "--timeout",
    metavar="SECONDS",
    type=SECONDS,
    default=SECONDS_OF_A_CASE,
    show_default=True,
    help="How long the engine may take for one model before it is said to hang.",
)
def reduce(
    *,
    model: str,
    engine: str,
    choice: InputChoice,
    folder: Path | None,
    seconds: float,
    timeout: float,
) -> int:
    """Find the smallest model that still shows a difference, a refusal or a crash of an engine.

    Nodes, also those in bodies and functions, and input values are removed as long as the engine
    still makes the same error; it runs in processes of its own. The folder gets model.onnx,
    inputs.npz and reproduce.py, which runs without this package.
    """
    import onnx

    from tensorsplit.conformance.reducing import reduced

    if model == PIPE or Path(model).suffix.lower() == ".xml":
        raise click.UsageError(tr("reduce takes the path of an ONNX model"))
    target = folder or Path(f"{Path(model).stem}-reduced")
    outputs().folders.append(target)
    outputs().check()
    inputs, _ = choice.completed_anyhow(read_source(model))
    found = reduced(
        onnx.load(model), inputs.feeds, engine, seconds=seconds, seconds_each=timeout, note=note
    )
    files = {
        target / "model.onnx": found.after.model.SerializeToString(),
        target / "inputs.npz": partial(write_archive, dict(members(found.after.inputs))),
        target / "reproduce.py": f"{found.script}\n",
    }
    write_files(files)
    sizes = " -> ".join(amount(each.size[0], "node") for each in (found.before, found.after))
    late = "" if found.is_finished else tr("; the time was over before all was tried")
    say(
        printable(f"{engine}: {localized(found.failure.detail)}"),
        printable(f"{sizes}{late}"),
        *(printable(str(path)) for path in files),
    )
    return 0
