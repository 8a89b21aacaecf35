"""The group of commands, and how each of them ends.

Exit status: 0 fine; 1 findings of error level, a mismatch, or an engine that does not behave as
recorded; 2 wrong usage, or input that can't be read or is refused. Ctrl-C ends with 130, SIGTERM
with 143, SIGHUP with 129 and a closed pipe with 141, all without a message, as programs in C do.
"""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import sys
from collections.abc import Iterator, Sequence
from types import FrameType
from typing import Any, NoReturn

import click

from tensorsplit import __version__, native
from tensorsplit.cli.bench_command import bench
from tensorsplit.cli.conformance_command import conformance
from tensorsplit.cli.explaining import explain
from tensorsplit.cli.model_commands import check, convert, infer, lower
from tensorsplit.cli.operator_commands import diff, ops
from tensorsplit.cli.running import run
from tensorsplit.cli.screen import complain, examples, silence, write
from tensorsplit.core.errors import UNWRITABLE, USAGE, SplitError

REFUSED = 2
INTERRUPTED = 130
PIPE_CLOSED = 141


class CommandLine(click.Group):
    """A group whose every failure is one line on standard error and an exit status."""

    def main(self, args: Sequence[str] | None = None, *_: Any, **extra: Any) -> Any:
        """Run the command line, with the arguments of the process if none are given, and exit."""
        extra.update(prog_name="tensorsplit", standalone_mode=False)
        logging.getLogger("onnx_ir").setLevel(logging.CRITICAL)  # a failure is one line, and ours
        with _interrupted_by_signals() as received:
            try:
                status = super().main(args, **extra)
                if sys.stdout is not None:
                    sys.stdout.flush()
            except Exception as error:  # noqa: BLE001 - no bad input may end in a traceback
                status = _report(error)
        if received:
            status = 128 + received[0]
        sys.exit(status if isinstance(status, int) else 0)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command that was chosen; Ctrl-C ends it without a message."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            ctx.exit(INTERRUPTED)


@contextlib.contextmanager
def _interrupted_by_signals() -> Iterator[list[int]]:
    """End the block as Ctrl-C does when SIGTERM or SIGHUP comes; yields those that came."""
    received: list[int] = []

    def interrupt(number: int, _: FrameType | None) -> NoReturn:
        for each in before:
            signal.signal(each, signal.SIG_IGN)  # what is cleaned up now is cleaned up whole
        received.append(number)
        raise KeyboardInterrupt

    named = (getattr(signal, name, None) for name in ("SIGTERM", "SIGHUP"))
    before = {number: signal.getsignal(number) for number in named if number is not None}
    before = {number: found for number, found in before.items() if found is signal.SIG_DFL}
    try:
        for number in before:
            with contextlib.suppress(ValueError):  # raised in a thread, which gets no signals
                signal.signal(number, interrupt)
        yield received
    finally:
        for number, found in before.items():
            with contextlib.suppress(ValueError):
                signal.signal(number, found)


def _report(error: Exception) -> int:
    """Say what went wrong, in one line; the exit status."""
    if os.environ.get("TENSORSPLIT_TRACEBACK"):
        raise error
    match error:
        case SplitError():
            complain(str(error))
        case click.ClickException():
            context = getattr(error, "ctx", None)
            command = "tensorsplit" if context is None else context.command_path
            message = error.format_message().rstrip(".")
            complain(f"[{USAGE.code}] {message}; see {command} --help")
        case click.Abort():
            return INTERRUPTED
        case BrokenPipeError():
            silence()
            return PIPE_CLOSED
        case OSError():
            silence()
            complain(f"[{UNWRITABLE.code}] standard output: {error.strerror or error}")
        case MemoryError():
            complain("out of memory")
        case _:
            complain(
                f"a bug in tensorsplit: {type(error).__name__}: {error}; please report it, with"
                " what is printed when TENSORSPLIT_TRACEBACK=1 is set"
            )
    return REFUSED


def _print_version(ctx: click.Context, _parameter: click.Parameter, value: bool) -> None:
    if value and not ctx.resilient_parsing:
        refused = native.refused
        none = f"none, {refused.variable}: {refused.problem}" if refused else ""
        write(f"tensorsplit {__version__} (copies: {none or native.in_use})\n")
        ctx.exit()


@click.group(
    cls=CommandLine,
    invoke_without_command=True,
    epilog=examples(
        "check model.onnx --for openvino",
        "lower model.onnx --for openvino -o lowered.onnx --verify",
        "run model.onnx --input x=x.npy -o out",
        "explain onnx.Split-18 7,4 axis=0 num_outputs=3",
        "conformance --engine onnxruntime",
        "bench",
    ),
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_print_version,
    help="Show the version and what makes copies, and exit.",
)
@click.pass_context
def main(ctx: click.Context) -> None:
    """Split tensors as every version of ONNX Split, SplitToSequence and OpenVINO's splits says.

    Exit status: 0 fine; 1 an error found in a model, a mismatch or a failed case; 2 wrong usage, or
    input that is refused.
    """
    if ctx.invoked_subcommand is None:
        write(f"{ctx.get_help()}\n")


for _command in (run, check, infer, convert, lower, explain, ops, diff, bench, conformance):
    main.add_command(_command)
