"""The group of commands, and how each of them ends.

Exit status: 0 fine; 1 findings of error level, a mismatch, or an engine that does not behave as
recorded; 2 wrong usage, or input that can't be read or is refused. Ctrl-C ends with 130; SIGTERM
with 143, SIGHUP with 129 and a closed pipe with 141, without a message, as programs in C do.
"""

from __future__ import annotations

import atexit
import contextlib
import errno
import logging
import os
import signal
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

import click

from tensorsplit import __version__
from tensorsplit.cli.language import HelpContext
from tensorsplit.cli.screen import (
    StandardOutputError,
    complain,
    examples,
    flush,
    flush_or_silence,
    listed,
    note,
    note_warnings,
    write,
)
from tensorsplit.cli.sentences import tr, translate_click, worded
from tensorsplit.cli.stopping import INTERRUPTED, Stopped, Stopping, leave_at_once
from tensorsplit.core.errors import (
    CLUSTER,
    LIBRARY,
    MALFORMED_MODEL,
    PART_NAMES,
    TOO_LARGE,
    UNKNOWN_ENGINE,
    UNKNOWN_OPERATOR,
    UNWRITABLE,
    USAGE,
    SplitError,
    count_of,
    did_you_mean,
    show,
    show_bytes,
)
from tensorsplit.core.extras import import_refusal
from tensorsplit.storage.outputs import Outputs

if TYPE_CHECKING:
    from tensorsplit import native

COMMANDS = {
    "bench": ("bench_command", "Time splits beside the libraries that are installed."),
    "check": ("check_command", "Find errors and pitfalls in the splits of models."),
    "conformance": ("conformance_command", "Measure what engines and tools do with splits."),
    "convert": (
        "model_commands",
        "Convert a model to another opset, up or down, or an IR to ONNX.",
    ),
    "diff": ("operator_commands", "Show what changed between two operator versions."),
    "doctor": ("doctor_command", "Try a model in every installed engine, and say how to fix it."),
    "examples": ("examples_command", "Write the models that the documentation uses."),
    "explain": ("explaining", "Draw the split of one operator, or every split of a model."),
    "infer": ("model_commands", "Fill in the types and shapes of an ONNX model."),
    "lower": ("model_commands", "Rewrite splits and sequences of a model for an engine."),
    "merge": ("file_merging", "Join the parts of tensors that split wrote."),
    "ops": ("operator_commands", "List the operator versions, or print the page of one."),
    "profile": ("profile_command", "Measure what the installed version of an engine runs."),
    "reduce": ("reduce_command", "Find the smallest model that an engine still gets wrong."),
    "reshard": ("file_merging", "Turn the files of some ranks into those of others."),
    "rule": ("rule_command", "List the codes of errors and findings, or explain one."),
    "rules": ("rules_command", "List the rules of model families, or print those of one."),
    "run": ("running", "Run a model, compare engines, and show or write its outputs."),
    "split": ("file_splitting", "Split tensors in files that are larger than memory."),
}
"""The module of each command, which is loaded for the command alone, and what it does."""

REFUSED = 2
PIPE_CLOSED = 141

_LONGEST_ERROR = 1000
_WORDS_OF_OTHERS = {
    "--to": "--for",
    "--engine": "--for",
    "--for": "--engine",
    "--target": "--engine",
}
"""Options of other commands, for those that take another name for the same thing."""
_OPTION_REFUSALS = (USAGE, UNKNOWN_ENGINE, UNKNOWN_OPERATOR, PART_NAMES, TOO_LARGE, CLUSTER)
"""Refusals of what an option says, whose parameter has the option's name."""

_GIVEN = "tensorsplit.given"
"""Where the context of the group has the parameters that a command is given."""

_WRITE_ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EBADF)
"""Errors that help has, which click writes, where standard output can't be written to."""


class CommandLine(click.Group):
    """A group whose every failure is one line on standard error and an exit status."""

    context_class = HelpContext

    def main(self, args: Sequence[str] | None = None, *_: object, **extra: Any) -> Any:
        """Run the command line, with the arguments of the process if none are given, and exit."""
        extra.update(prog_name="tensorsplit", standalone_mode=False)
        if args is None:
            leave_at_once()  # once this has returned
            atexit.register(signal.signal, signal.SIGINT, signal.SIG_IGN)  # when all is done
            note_warnings()
        status: object = None
        outputs = Outputs()
        translate_click()
        with Stopping() as stopping:
            try:
                try:
                    logging.getLogger("onnx_ir").setLevel(logging.CRITICAL)  # a failure is one line
                    status = super().main(args, obj=outputs, **extra)
                    flush()
                except Exception as error:  # noqa: BLE001 - no bad input may end in a traceback
                    status = stopping.status or _report(error, outputs.written)
                stopping.end()
            except Stopped as stopped:
                status = stopped.status
                if args is None:
                    logging.disable()  # what Dask closes only when Python ends says so at length
            status = stopping.status or status
            if status == INTERRUPTED:
                note(tr("interrupted"))
            flush_or_silence()
        sys.exit(status if isinstance(status, int) else 0)

    def list_commands(self, _: click.Context) -> list[str]:
        """Return the names of the commands."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a command; its module is loaded."""
        if cmd_name not in COMMANDS:
            return super().get_command(ctx, cmd_name)
        module, _ = COMMANDS[cmd_name]
        found: click.Command = getattr(import_module(f"tensorsplit.cli.{module}"), cmd_name)
        found.context_class = HelpContext
        return found

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command of the arguments, none of whose options may be given twice."""
        if args[0] == "help":
            args = [*args[1:2], "--help"]
        if args[0] == "--help":
            write(f"{ctx.get_help()}\n")
            ctx.exit()
        if self.get_command(ctx, args[0]) is None and not ctx.resilient_parsing:
            problem, word = tr("there is no command {name}", name=show(args[0])), f"--{args[0]}"
            near = did_you_mean(args[0], COMMANDS)
            if not near and (names := ", ".join(self._commands_with(ctx, word))):
                near = tr("{name} is an option of {commands}", name=word, commands=names)
            options = (name for option in self.get_params(ctx) for name in option.opts)
            near = near or did_you_mean(word, options)
            raise click.UsageError(tr("; ").join(filter(None, (problem, near.rstrip()))), ctx)
        name, command, rest = super().resolve_command(ctx, args)
        if command is not None and not ctx.resilient_parsing:
            ctx.meta[_GIVEN] = _check_words(command, click.Context(command, ctx, name), rest)
        return name, command, rest

    def _commands_with(self, ctx: click.Context, option: str) -> Iterator[str]:
        """Yield the names of the commands that have an option; all of them are loaded."""
        for name in COMMANDS:
            command = self.get_command(ctx, name)
            if command is not None and any(option in each.opts for each in command.params):
                yield name

    def format_commands(self, _: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands of the help, none of which is loaded."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, does) for name, (_, does) in COMMANDS.items()])

    def make_context(self, *args: Any, **extra: Any) -> click.Context:
        """Read the options of the group."""
        with _spared_from_click():
            return super().make_context(*args, **extra)

    def invoke(self, ctx: click.Context) -> object:
        """Run the command that was chosen."""
        with _spared_from_click():
            try:
                return super().invoke(ctx)
            except SplitError as error:
                error.parameter = _as_option(error, ctx.meta.get(_GIVEN, ()))
                raise


def _check_words(
    command: click.Command, context: click.Context, args: Sequence[str]
) -> list[click.Parameter]:
    """Refuse an option that is given twice, of which click takes the last, and lists with blanks.

    What click refuses gets the context of the command, whose help then helps. Returns what is
    given.
    """
    try:
        _, extra, order = command.make_parser(context).parse_args(list(args))
    except click.UsageError as error:
        error.ctx = context
        if isinstance(error, click.NoSuchOption):  # of -for, click names -f
            whole = (word for word in args if word.startswith(error.option_name))
            raise click.NoSuchOption(next(whole, error.option_name), ctx=context) from None
        raise
    if extra and all(each.isdecimal() for each in extra):
        words = " ".join(extra)
        problem = tr("{words} is too much: write a list with commas, such as 3,4", words=words)
        raise click.UsageError(problem, context)
    for option, count in Counter(order).items():
        takes_one = isinstance(option, click.Option) and not (option.multiple or option.is_flag)
        if count > 1 and takes_one:
            name = max(option.opts, key=lambda name: name.startswith("--"))
            problem = tr("{name} is given {count} times", name=name, count=count)
            raise click.UsageError(problem, context)
    return order


def _as_option(error: SplitError, given: Iterable[click.Parameter]) -> str | None:
    """Return how a command calls the parameter of a refusal: its option, if that gave the value."""
    if error.kind not in _OPTION_REFUSALS or error.node is not None:
        return error.parameter
    for option in given:
        named = [name for name in option.opts if name.startswith("--")]
        if named and error.parameter in (option.name, *(name[2:] for name in named)):
            return named[0]
    return error.parameter


@contextlib.contextmanager
def _spared_from_click() -> Iterator[None]:
    """Keep errors from click that it would end the process for."""
    try:
        yield
    except KeyboardInterrupt:
        raise Stopped(INTERRUPTED) from None
    except BrokenPipeError:
        raise Stopped(PIPE_CLOSED) from None


def _report(error: Exception, written: Sequence[str] = ()) -> int:
    """Write an error in one line, and return the exit status.

    After an error of standard output, files that were written before and are whole are named.
    """
    if os.environ.get("TENSORSPLIT_TRACEBACK"):
        raise error
    match error:
        case SplitError():
            complain(worded(error))
        case click.ClickException():
            context = getattr(error, "ctx", None)
            command = "tensorsplit" if context is None else context.command_path
            message = _unknown_option(error) or _missing(error)
            message = message or error.format_message().rstrip(".。")
            complain(f"[{USAGE.code}] {message}{tr('; see {command} --help', command=command)}")
        case click.Abort():
            return INTERRUPTED
        case BrokenPipeError():
            return PIPE_CLOSED
        case OSError():
            is_output = isinstance(error, StandardOutputError) or error.errno in _WRITE_ERRORS
            output = tr("standard output") if is_output else tr("the system")
            if isinstance(error, FileNotFoundError):  # all others have the name of a file
                output = tr("the current folder")
            reason = f"{error.filename or output}: {error.strerror or error}"
            names = listed(written)
            whole = tr("written before, and whole: {names}", names=names) if written else ""
            complain(f"[{UNWRITABLE.code}] {tr('; ').join(filter(None, (reason, whole)))}")
        case MemoryError() | RuntimeError(args=("can't start new thread",)):
            complain(tr("out of memory"))
        case RecursionError():
            complain(f"[{MALFORMED_MODEL.code}] {tr('what was read is nested too deep')}")
        case _:
            try:
                _report_failure(error)
            except MemoryError:  # of which the error may come, as where a library can't be loaded
                complain(tr("out of memory"))
    return REFUSED


def _unknown_option(error: click.ClickException) -> str:
    """Return the message for an option that the command does not have; empty for other errors."""
    if not isinstance(error, click.NoSuchOption):
        return ""
    options = [] if error.ctx is None else error.ctx.command.get_params(error.ctx)
    lists = [names for each in options for names in (each.opts, each.secondary_opts)]
    first_long = {
        name: next((each for each in names if each.startswith("--")), name)
        for names in lists
        for name in names
    }
    meant = _WORDS_OF_OTHERS.get(error.option_name)
    word = meant if meant in first_long else error.option_name
    near = did_you_mean(word, first_long, first_long)
    problem = tr("there is no option {name}", name=show(error.option_name))
    choice = error.option_name.lstrip("-")
    for each in options:
        if isinstance(each.type, click.Choice) and choice in each.type.choices:
            near = tr("did you mean {option}?", option=f"{each.opts[0]} {choice}")
    return tr("; ").join(filter(None, (problem, near.rstrip())))


def _missing(error: click.ClickException) -> str:
    """Return the message for an argument or option that is not given; empty for other errors."""
    parameter = getattr(error, "param", None)
    if not isinstance(error, click.MissingParameter) or parameter is None or error.ctx is None:
        return ""
    name = parameter.human_readable_name
    if isinstance(parameter, click.Option):
        option = max(parameter.opts, key=lambda each: each.startswith("--"))
        name = f"{option} {parameter.metavar or parameter.type.name.upper()}"
    return tr("{name} is not given", name=name)


def _report_failure(error: Exception) -> None:
    """Say whose fault an error is that nobody expected; of a bug, write a report."""
    from tensorsplit.cli.bugs import library_at_fault, report_of, save_report

    refusal = import_refusal(error) if isinstance(error, ImportError) else None
    if refusal is not None:
        complain(worded(refusal))
        return
    cause = f"{type(error).__name__}: {error}"
    library = library_at_fault(error)
    if library:
        failed = tr("{library} failed on this input: {error}", library=library, error=cause)
        complain(f"[{LIBRARY.code}] {failed}")
        return
    text = report_of(error)
    path = save_report(text)
    complain(
        tr(
            "a bug in tensorsplit: {error}; a report of it is in {path}; look at it and pass it on",
            error=cause[:_LONGEST_ERROR],
            path=path,
        )
        if path
        else tr("a bug in tensorsplit: {error}; report it", error=cause[:_LONGEST_ERROR])
    )
    if path is None:
        note(*text.splitlines())


def _print_version(verbose: bool) -> None:
    from tensorsplit import native

    refused = native.refused
    none = f"none, {refused.variable}: {refused.problem}" if refused else ""
    write(f"tensorsplit {__version__} (copies: {none or native.in_use})\n")
    if verbose and native.kernel is not None:
        write("\n".join(_describe_copies()) + "\n")


def _describe_copies() -> Iterator[str]:
    """Yield how copies are made here, and why; some are made to find out."""
    from tensorsplit import native

    size, origin, guess = native.kernel.cache()
    yield f"threads: up to {native.threads} share a copy"
    yield f"cache: {show_bytes(size)} ({origin})"
    fixed = native.non_temporal_from
    if fixed is None:
        where = f"measured for each kind of split; first guess: from {show_bytes(guess)} on"
    else:
        sizes = "never" if fixed == sys.maxsize else f"from {show_bytes(fixed)} on"
        where = f"{sizes}, says TENSORSPLIT_NON_TEMPORAL"
    yield f"stores past the cache: {where}"
    yield "measured now, in nanoseconds for a kilobyte:"
    native.measure()
    for choice in native.choices():
        way, other = choice.way, choice.other
        compared = f", against {_way(other)}" if other.time else ""
        yield f"  {choice.kind}, {show_bytes(choice.bytes)}: {_way(way)}{compared}"


def _way(way: native.Way) -> str:
    time = f" {way.time * 1000:.1f}" if way.time else ""
    return f"{way.stores}, {count_of(way.threads, 'thread')}{time}"


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
    "-V", "--version", is_flag=True, help="Show the version and what makes the copies, and exit."
)
@click.option(
    "--verbose",
    is_flag=True,
    help="With --version: make some copies, and show which way of copying is fastest on this"
    " machine.",
)
@click.pass_context
def main(ctx: click.Context, version: bool, verbose: bool) -> None:
    """Split tensors exactly as each version of the operators of ONNX and OpenVINO defines it.

    Exit status: 0 fine; 1 an error found in a model, a mismatch or a failed case; 2 wrong usage, or
    input that is refused.
    """
    if verbose and not version:
        raise click.UsageError(tr("--verbose goes with --version"))
    if version:
        _print_version(verbose)
        ctx.exit()
    if ctx.invoked_subcommand is None:
        write(f"{ctx.get_help()}\n")
