"""Comparing the outputs of models: the tolerances of ``run --compare``, and ``--verify``."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import wraps
from typing import TYPE_CHECKING

import click

from tensorsplit.cli.parsing import parse_bytes
from tensorsplit.cli.random_inputs import InputChoice, input_options
from tensorsplit.cli.screen import listed
from tensorsplit.cli.sentences import localized, tr, worded
from tensorsplit.cli.words import SECONDS, SIZE
from tensorsplit.engines.engine_names import OURS

if TYPE_CHECKING:
    from tensorsplit.engines.compare import Difference
    from tensorsplit.engines.limits import Limits
    from tensorsplit.engines.verification import Verification
    from tensorsplit.model.reading import OnnxModel


def tolerance_options(command: Callable[..., int]) -> Callable[..., int]:
    """Return the options ``--rtol`` and ``--atol``, passed on as numbers or None."""
    atol = click.option(
        "--atol",
        metavar="A",
        type=SIZE,
        help="The absolute difference allowed in addition; by default R times a typical value of"
        " the output.",
    )
    rtol = click.option(
        "--rtol",
        metavar="R",
        type=SIZE,
        help="The relative difference allowed in outputs that are calculated: by default 1e-9"
        " for double, 1e-4 for float, 1e-2 for float16, 5e-2 for bfloat16, 0 for integers."
        " Outputs that are only split and moved must be the same in every bit.",
    )
    return rtol(atol(command))


def limit_options(command: Callable[..., int]) -> Callable[..., int]:
    """Return the options ``--memory`` and ``--timeout``, passed on as one, `limits`."""

    @click.option(
        "--memory",
        metavar="SIZE",
        callback=lambda _context, _option, word: None if word is None else parse_bytes(word),
        help="Stop a run that needs more memory than this, such as 500M or 2GiB, beyond what the"
        " engine itself takes. By default there is no limit.",
    )
    @click.option(
        "--timeout",
        metavar="SECONDS",
        type=SECONDS,
        help="Stop a run that takes longer. By default there is no limit for our own operators,"
        " and 600 seconds for other engines.",
    )
    @wraps(command)
    def with_limits(*, memory: int | None, timeout: float | None, **options: object) -> int:
        return command(limits={"memory": memory, "timeout": timeout}, **options)

    return with_limits


def verifies(text: str) -> Callable[[Callable[..., int]], Callable[..., int]]:
    """Add the options of a command that can verify its result, passed on as `verification`.

    It is None where nothing is to be verified. `text` describes what ``--verify`` does.
    """

    def add(command: Callable[..., int]) -> Callable[..., int]:
        @click.option("--verify", is_flag=True, help=text)
        @tolerance_options
        @limit_options
        @input_options("An input to verify with, as `run` takes it; other inputs are random.")
        @wraps(command)
        def with_verification(
            *,
            verify: bool,
            rtol: float | None,
            atol: float | None,
            choice: InputChoice,
            limits: Limits,
            **options: object,
        ) -> int:
            if not verify:
                given = {"rtol": rtol, "atol": atol, "save-inputs": choice.save_to, **limits}
                needing = {f"--{name}": value for name, value in given.items()}
                for name, value in needing.items():
                    if value is not None:
                        raise click.UsageError(tr("{name} needs --verify", name=name))
            made = VerificationOptions(choice, rtol, atol, limits) if verify else None
            return command(verification=made, **options)

        return with_verification

    return add


@dataclass(frozen=True, slots=True)
class VerificationOptions:
    """The inputs of a verification, and how the outputs are compared."""

    choice: InputChoice
    rtol: float | None
    atol: float | None
    limits: Limits

    def run(
        self, source: OnnxModel, made: OnnxModel, others: Sequence[str]
    ) -> tuple[list[str], bool]:
        """Run both models with our own operators, and with other engines.

        Returns:
            What was found, as lines, and whether everything is as it has to be.
        """
        from tensorsplit.engines.compare import Tolerance
        from tensorsplit.engines.verification import verify_on

        inputs = self.choice.completed(source)
        with inputs.explained():
            found = verify_on(
                source,
                made,
                inputs.feeds,
                engines=others,
                tolerance=Tolerance(self.rtol, self.atol),
                limits=self.limits,
            )
        lines = list(_lines(found, str(inputs)))
        return lines + ([] if found else inputs.failing()), bool(found)


def _lines(found: Verification, inputs: str) -> Iterator[str]:
    """Yield the lines on what a verification found."""
    yield from (tr("{name} is not installed, and was not run", name=name) for name in found.missing)
    if found.refusal is not None:
        yield tr("{engine} does not run it: {reason}", engine=OURS, reason=worded(found.refusal))
    for result in found.results:
        if result.is_equal:
            same = same_as(result.differences, found.outputs)
            values = {"inputs": inputs, "engine": result.engine, "same": same}
            yield tr("verified: on {inputs}, {engine} gives {same}", **values)
            yield from (f"  {localized(str(each))}" for each in result.differences)
        else:
            wrong = (localized(str(each)) for each in result.differences if not each.is_allowed)
            yield from (tr("NOT verified: {difference}", difference=each) for each in wrong)
        before = (localized(str(each)) for each in result.before if not each.is_allowed)
        yield from (tr("the original model: {difference}", difference=each) for each in before)


def same_as(found: Sequence[Difference], expected: Mapping[str, object]) -> str:
    """Describe which outputs are equal bit for bit, which up to rounding, without a difference."""
    outputs = (difference.output for difference in found)
    rounded = {name if name in expected else name.rpartition("[")[0]: None for name in outputs}
    rest = [name for name in expected if name not in rounded]
    if not rounded:
        return tr("the same bits")
    names = listed(list(rounded))
    if not rest:
        return tr("the same up to rounding of {names}", names=names)
    exact = listed(rest)
    return tr(
        "the same bits of {exact}, and the same up to rounding of {names}", exact=exact, names=names
    )
