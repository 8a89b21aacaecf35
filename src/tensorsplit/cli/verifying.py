"""Comparing what models give: the tolerances of ``run --compare``, and ``--verify``."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import wraps
from typing import TYPE_CHECKING, Any

import click

from tensorsplit.cli.parsing import parse_bytes
from tensorsplit.cli.random_inputs import InputChoice, input_options
from tensorsplit.cli.screen import listed
from tensorsplit.core.errors import ENGINE_MISSING, UNSUPPORTED_NODE, SplitError

if TYPE_CHECKING:
    from tensorsplit.engines.compare import Difference
    from tensorsplit.model.graph.reading import OnnxModel

OURS = "numpy"


class _Size(click.FloatRange):
    """A number that is not below 0."""

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Return the number; not a number is none."""
        number = float(super().convert(value, param, ctx))
        if math.isnan(number):
            self.fail("nan is no size", param, ctx)
        return number


SIZE = _Size(min=0)


def tolerance_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Return the options ``--rtol`` and ``--atol``, passed on as numbers or None."""
    atol = click.option(
        "--atol",
        metavar="A",
        type=SIZE,
        help="The absolute difference allowed beside it; by default R times a usual value of the"
        " output.",
    )
    rtol = click.option(
        "--rtol",
        metavar="R",
        type=SIZE,
        help="The relative difference allowed in outputs that are calculated: by default 1e-9 for"
        " double, 1e-4 for float, 1e-2 for float16, 5e-2 for bfloat16, 0 for integers. What is only"
        " split and moved has to be the same in every bit.",
    )
    return rtol(atol(command))


def limit_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Return the options ``--memory`` and ``--timeout``, passed on as one, `limits`."""

    @click.option(
        "--memory",
        metavar="SIZE",
        callback=lambda _context, _option, word: None if word is None else parse_bytes(word),
        help="End a run that takes more memory, such as 500M or 2GiB, beyond that of the engine"
        " itself. By default there is no limit.",
    )
    @click.option(
        "--timeout",
        metavar="SECONDS",
        type=float,
        help="End a run that takes longer. By default our own operators may take any time, and"
        " other engines 600 seconds.",
    )
    @wraps(command)
    def with_limits(*, memory: int | None, timeout: float | None, **options: Any) -> Any:
        return command(limits={"memory": memory, "timeout": timeout}, **options)

    return with_limits


def verifies(text: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Add the options of a command that can verify its result, passed on as `verification`.

    It is None where nothing is to be verified. `text` says what ``--verify`` does.
    """

    def add(command: Callable[..., Any]) -> Callable[..., Any]:
        @click.option("--verify", is_flag=True, help=text)
        @tolerance_options
        @limit_options
        @input_options("What to verify with, as `run` takes it; other inputs are random.")
        @wraps(command)
        def with_verification(
            *,
            verify: bool,
            rtol: float | None,
            atol: float | None,
            choice: InputChoice,
            limits: dict[str, Any],
            **options: Any,
        ) -> Any:
            if not verify:
                given = {"rtol": rtol, "atol": atol, "save-inputs": choice.save_to, **limits}
                needing = {f"--{name}": value for name, value in given.items()}
                for name, value in needing.items():
                    if value is not None:
                        raise click.UsageError(f"{name} needs --verify")
            made = Verification(choice, rtol, atol, limits) if verify else None
            return command(verification=made, **options)

        return with_verification

    return add


@dataclass(frozen=True, slots=True)
class Verification:
    """What a model and its rewriting are run with, and how their outputs are compared."""

    choice: InputChoice
    rtol: float | None
    atol: float | None
    limits: dict[str, Any]

    def run(
        self, source: OnnxModel, made: OnnxModel, others: Sequence[str]
    ) -> tuple[list[str], bool]:
        """Run both models with our own operators, and with other engines.

        What each engine makes of the rewritten model is compared with what our own operators make
        of the original.

        Returns:
            What was found, as lines, and whether everything is as it has to be.
        """
        from tensorsplit import engines
        from tensorsplit.engines.compare import compare

        inputs = self.choice.completed(source)
        lines = [f"{name} is not installed, and was not run" for name in missing(others)]
        first, *rest = dict.fromkeys([OURS, *(name for name in others if not missing([name]))])
        with inputs.explained():
            try:
                expected = engines.run(source, inputs.feeds, **self.limits)
            except SplitError as error:
                if error.kind is not UNSUPPORTED_NODE or not rest:
                    raise
                lines.append(f"numpy does not run it: {error}")
                first, *rest = rest
                expected = engines.run(source, inputs.feeds, engine=first, **self.limits)
        judging = judged_by(source, self.rtol, self.atol) | self.limits
        judging |= {"reference": expected, "reference_name": first}
        is_verified = True
        for engine in (first, *rest):
            found = compare(made, inputs.feeds, [engine], **judging)
            wrong = [f"NOT verified: {each}" for each in found if not each.is_allowed]
            same = f"verified: on {inputs}, {engine} gives {same_as(found, expected)}"
            lines += wrong or [same, *(f"  {each}" for each in found)]
            is_verified &= not wrong
            if engine != first:
                before = compare(source, inputs.feeds, [engine], **judging)
                lines += [f"the original model: {each}" for each in before if not each.is_allowed]
        return lines + ([] if is_verified else inputs.failing()), is_verified


def judged_by(
    source: OnnxModel, rtol: float | None, atol: float | None, size: float | None = None
) -> dict[str, Any]:
    """Return how outputs are compared, as arguments of `compare`: what is only moved, bit for bit.

    Where a size is given, it is the largest difference in any output; 0 compares the bits of all.
    """
    from tensorsplit.engines.compare import Tolerance
    from tensorsplit.model.exactness import moved_outputs

    if size is not None:
        return {"tolerance": Tolerance(0, size) if size else None}
    return {"tolerance": Tolerance(rtol, atol), "moved": moved_outputs(source)}


def same_as(found: Sequence[Difference], expected: dict[str, Any]) -> str:
    """Describe what is equal bit for bit, and what up to rounding, if no difference counts."""
    names = (difference.output for difference in found)
    rounded = {name if name in expected else name.rpartition("[")[0]: None for name in names}
    rest = [name for name in expected if name not in rounded]
    if not rounded:
        return "the same bits"
    bits = f"the same bits of {listed(rest)}, and " if rest else ""
    return f"{bits}the same up to rounding of {listed(list(rounded))}"


def missing(engines: Iterable[str]) -> list[str]:
    """Return the engines that are not installed."""
    from tensorsplit.engines import check_engine

    found = []
    for engine in engines:
        try:
            check_engine(engine)
        except SplitError as error:
            if error.kind is not ENGINE_MISSING:
                raise
            found.append(engine)
    return found
