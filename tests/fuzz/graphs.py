"""``python -m tests.fuzz.graphs``: random models through every tool and engine, in some processes.

With ``--irs layers`` these are OpenVINO IRs of random layers, with ``--irs converted`` what
OpenVINO makes of the random ONNX models; they go through what takes IRs, and through OpenVINO.

A model that fails is shrunk and stays in a folder, with what is fed; a command that is printed
checks it again. A process that ends or hangs is one more failure, of the model that it was at.
"""

from __future__ import annotations

import argparse
import faulthandler
import multiprocessing
import pickle
import secrets
import sys
import time
import traceback
import warnings
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

import onnx

from tests.model.openvino_ir import ir_checks
from tests.model.openvino_ir.ir_checks import IrCase
from tests.model.openvino_ir.ir_checks import case_of as ir_case
from tests.model.openvino_ir.random_layers import random_layers
from tests.model.programs import Program
from tests.model.random_checks import (
    ENGINES,
    TARGETS,
    Case,
    case_of,
    checks,
    failure,
    kind_of,
    plain_cases,
)
from tests.model.random_models import random_program
from tests.model.shrinking import shrunk

MOST_SECONDS = 300
"""Of one model, shrinking it included; a process that takes longer is ended, and counts."""

SHUFFLED = 5
"""Of every so many models one has its nodes in a wrong order."""

_SHRUNK: set[tuple[str, str]] = set()
"""The failures, as check and kind, that this process has a small model of."""


@dataclass
class Outcome:
    """What came of the model of a seed."""

    seed: int
    counts: Counter[str] = field(default_factory=Counter)
    failures: list[tuple[str, str, str]] = field(default_factory=list)  # check, kind, message


def check_seed(
    seed: int,
    engines: Sequence[str],
    folder: Path | None,
    is_careful: bool = False,
    is_brief: bool = False,
    is_shuffled: bool = False,
    irs: str = "",
) -> Outcome:
    """Put the model of a seed through all checks; with a folder, shrink it where one fails.

    A brief one lowers it for one target only, and runs that target if it is an engine. Of every few
    models the nodes are shuffled, or of each one. Instead of a model it may be an IR.
    """
    outcome = Outcome(seed)
    program = random_layers(seed) if irs == "layers" else random_program(seed)
    targets = [TARGETS[seed % len(TARGETS)]] if is_brief else TARGETS
    made: Callable[..., Any]
    those: Mapping[str, Callable[[Any], None]]
    if irs:
        made, those = partial(ir_case, is_converted=irs == "converted"), ir_checks.CHECKS
    else:
        made, those = case_of, checks(engines, targets)
        if is_shuffled or seed % SHUFFLED == 0:
            program = replace(program, shuffle=seed)
    case: Any = made(program, seed, is_careful=is_careful)
    if case is None:
        outcome.counts["not read"] = 1
        return outcome
    for name, check in those.items():
        error = failure(check, case)
        if error is None:
            continue
        kind = kind_of(error)
        outcome.failures.append((name, kind, describe(error)))
        if folder is not None and (name, kind) not in _SHRUNK:
            _SHRUNK.add((name, kind))
            again: Callable[..., Any] = partial(made, seed=seed, is_careful=is_careful)
            smallest = shrunk(program, fails_alike(again, check, kind))
            last = failure(check, again(smallest)) or error
            save(
                again(smallest, is_careful=False),
                name,
                describe(last),
                folder / f"{seed}-{name.replace(' ', '-')}",
            )
    outcome.counts.update({"data": len(case.legal), "illegal data": len(case.illegal)})
    outcome.counts.update(case.taken)
    return outcome


def fails_alike(
    made: Callable[[Program], Any], check: Callable[[Any], None], kind: str
) -> Callable[[Program], bool]:
    """Make what tells whether a smaller program fails in the same way."""

    def fails(program: Program) -> bool:
        try:
            case = made(program)
        except Exception:  # noqa: BLE001 - what is left may be no model
            return False
        if case is None:
            return False
        error = failure(check, case)
        return error is not None and kind_of(error) == kind

    return fails


def describe(error: Exception) -> str:
    """The message, and for what is not a refusal where it comes from."""
    place = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__}: {error} ({Path(place.filename).name}:{place.lineno})"


def save(case: Case | IrCase, check: str, message: str, folder: Path) -> None:
    """Write a model that fails, with its data, and how to check it again."""
    folder.mkdir(parents=True, exist_ok=True)
    text = f"{check}: {message}\n\npython -m tests.fuzz.graphs --again {folder}\n\n"
    if isinstance(case, IrCase):
        (folder / "model.xml").write_bytes(case.xml)
        (folder / "model.bin").write_bytes(case.weights)
    else:
        assert case.program is not None
        case.plain = case.plain or plain_cases(case.program)
        for each in (case, *case.plain):
            each.program = None  # it holds functions, which can't be pickled
        onnx.save(case.model, folder / "model.onnx")
        text += onnx.printer.to_text(case.model)
    (folder / "case.pickle").write_bytes(pickle.dumps((check, case)))
    (folder / "README.txt").write_text(text, encoding="utf-8")


def check_again(folder: Path) -> int:
    """Check a model that `save` wrote."""
    name, case = pickle.loads((folder / "case.pickle").read_bytes())
    if isinstance(case, IrCase):
        case.xml = (folder / "model.xml").read_bytes()
        error = failure(ir_checks.CHECKS[name], case)
    else:
        case.model = onnx.load(folder / "model.onnx")
        error = failure(checks()[name], case)
    print(f"{name}: {'it holds' if error is None else describe(error)}")
    return error is not None


def work(pipe: Connection, options: argparse.Namespace) -> None:
    """Check the seeds that come, in a process of their own."""
    warnings.simplefilter("ignore")
    while (task := pipe.recv()) is not None:
        faulthandler.dump_traceback_later(MOST_SECONDS, exit=True)
        seed, is_careful = task
        ways = is_careful, options.brief, options.shuffled, options.irs
        pipe.send(check_seed(seed, options.engines, options.keep, *ways))
        faulthandler.cancel_dump_traceback_later()


def outcomes(seeds: Iterator[int], options: argparse.Namespace) -> Iterator[Outcome]:
    """Check seeds in processes; where one ends, the seed again with engines in children."""
    context = multiprocessing.get_context("spawn")
    at: dict[Connection, tuple[Any, tuple[int, bool] | None]] = {}

    def start(task: tuple[int, bool] | None) -> None:
        if task is None:
            return
        ours, theirs = context.Pipe()
        process = context.Process(target=work, args=(theirs, options), daemon=True)
        process.start()
        theirs.close()
        ours.send(task)
        at[ours] = process, task

    def following() -> tuple[int, bool] | None:
        seed = next(seeds, None)
        return None if seed is None else (seed, False)

    for _ in range(options.processes):
        start(following())
    while at:
        for pipe in wait(list(at)):
            assert isinstance(pipe, Connection)
            process, task = at.pop(pipe)
            assert task is not None
            seed, is_careful = task
            try:
                outcome = pipe.recv()
            except EOFError:
                process.join()
                if not is_careful:
                    start((seed, True))
                    continue
                status = f"the process ended with status {process.exitcode}"
                outcome = Outcome(seed, failures=[("process", status, status)])
            yield outcome
            task = following()
            if process.is_alive():
                pipe.send(task)
                if task is not None:
                    at[pipe] = process, task
            else:
                start(task)


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.graphs", description=__doc__)
    parser.add_argument("--models", type=int, default=1000, help="how many")
    parser.add_argument("--seed", type=int, help="the first seed; by default a new one")
    parser.add_argument("--seconds", type=float, default=1e9, help="stop after so long")
    chosen = "by default both; with no name after it none runs them"
    parser.add_argument("--engines", nargs="*", default=ENGINES, choices=ENGINES, help=chosen)
    parser.add_argument("--brief", action="store_true", help="one target of each model")
    each = f"the nodes of each are in a wrong order; else those of one of {SHUFFLED}"
    parser.add_argument("--shuffled", action="store_true", help=each)
    parser.add_argument("--irs", choices=("layers", "converted"), default="", help="IRs instead")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--keep", type=Path, default=Path("build/graphs"))
    parser.add_argument("--again", type=Path, metavar="FOLDER", help="check a model that failed")
    parser.add_argument("--whole", action="store_true", help="do not shrink what fails")
    options = parser.parse_args(arguments)
    if options.again is not None:
        return check_again(options.again)
    first = secrets.randbelow(1 << 32) if options.seed is None else options.seed
    print(f"random models from --seed {first}", flush=True)
    if options.whole:
        options.keep = None
    started = time.monotonic()

    def seeds() -> Iterator[int]:
        for seed in range(first, first + options.models):
            if time.monotonic() - started < options.seconds:
                yield seed

    counts: Counter[str] = Counter()
    failed: defaultdict[tuple[str, str], list[tuple[int, str]]] = defaultdict(list)
    for outcome in outcomes(seeds(), options):
        counts.update(outcome.counts, models=1)
        for check, kind, message in outcome.failures:
            if (check, kind) not in failed:
                print(f"{check} fails, seed {outcome.seed}: {message[:600]}", flush=True)
            failed[check, kind].append((outcome.seed, message))
    for (check, kind), found in sorted(failed.items(), key=lambda each: -len(each[1])):
        print(f"{len(found)} of {check}: {kind}; seeds {[seed for seed, _ in found[:6]]}")
    broken = {seed for found in failed.values() for seed, _ in found}
    print(f"{counts['models']} models in {time.monotonic() - started:.0f} s, {len(broken)} failed")
    print(", ".join(f"{name}: {count}" for name, count in sorted(counts.items())))
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
