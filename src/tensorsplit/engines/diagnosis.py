"""Diagnosing a model: what each installed engine does with it, and whether lowering helps."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import metadata

from tensorsplit.core.errors import SplitError
from tensorsplit.engines.compare import Difference, Reference, Tolerance
from tensorsplit.engines.engine_names import ENGINES, OURS
from tensorsplit.engines.limits import Limits
from tensorsplit.engines.verification import is_installed, reference_run
from tensorsplit.model.check.checker import examine
from tensorsplit.model.check.checks import ERROR, TARGET_DEPENDS, TARGET_REFUSES, TARGET_WRONG
from tensorsplit.model.check.findings import REWRITE, CheckReport, Finding
from tensorsplit.model.graph.opsets import check_known
from tensorsplit.model.lower import lowered
from tensorsplit.model.profiles import load
from tensorsplit.model.reading import OnnxModel

FINE = "fine"
FIXABLE = "fixable"
WRONG = "wrong"
NOT_RUN = "not run"
WRONG_MODEL = "wrong model"

THE_REFERENCE = "the other engines are compared with it"
SAME_OUTPUTS = "gives the same outputs"
MODEL_IS_WRONG = "the model itself is wrong"
NOTHING_TO_LOWER = "lowering changes nothing"

FIXED_WORDS = (
    *(FINE, FIXABLE, WRONG, NOT_RUN, WRONG_MODEL, "refused", "crashed"),
    *(THE_REFERENCE, SAME_OUTPUTS, MODEL_IS_WRONG, NOTHING_TO_LOWER),
)
"""The verdicts, and the reasons that name no value; the commands translate them."""

_MOST_REASONS = 2


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """The diagnosis of one engine for a model.

    Attributes:
        engine: The engine.
        version: The version that is installed.
        verdict: ``fine``; ``fixable``, where the lowered model was verified; ``wrong``,
            ``refused`` or ``crashed``, where lowering does not help; ``wrong model``, or ``not
            run``.
        why: The reasons, the most important one first.
        warnings: How many warnings `check` has for the engine where it is fine.
    """

    engine: str
    version: str
    verdict: str
    why: tuple[str, ...]
    warnings: int = 0

    @property
    def is_well(self) -> bool:
        """Whether nothing has to be done: it is fine, or our own engine can't be the reference."""
        return self.verdict == FINE or (self.engine == OURS and self.verdict == NOT_RUN)


def installed_engines() -> list[str]:
    """Return the engines that can run here."""
    return [engine for engine in ENGINES if is_installed(engine)]


def version_of(engine: str) -> str:
    """Return the version of an engine that is installed."""
    package = OURS if engine == OURS else load(engine).package or engine
    return metadata.version(package)


def diagnosis_of_wrong_model(source: OnnxModel) -> list[Diagnosis]:
    """Return a diagnosis for each engine if the model itself is wrong; empty if it is not.

    SplitError TS101 for one whose opset is not known here, which can't be judged.
    """
    check_known(source.model.opset_imports.get("", 0))
    errors = [each for each in examine(source).findings if each.severity == ERROR]
    if not errors:
        return []
    why = (MODEL_IS_WRONG,)
    others = [Diagnosis(name, version_of(name), NOT_RUN, why) for name in installed_engines()[1:]]
    return [
        Diagnosis(OURS, version_of(OURS), WRONG_MODEL, _shortened(map(_with_node, errors))),
        *others,
    ]


def diagnose(source: OnnxModel, feeds: Mapping[str, object], limits: Limits) -> Iterator[Diagnosis]:
    """Yield the diagnosis of each installed engine for a model that is not wrong itself.

    Args:
        source: The model.
        feeds: By name, what it is fed.
        limits: Those of each run.

    Raises:
        SplitError: As of `reference_run`, for what no engine runs.
    """
    first, *rest = installed_engines()
    reference, refusal = reference_run(source, feeds, rest, Tolerance(), limits)
    for engine in (first, *rest):
        if engine == reference.engine:
            why = (THE_REFERENCE,)
            yield Diagnosis(engine, version_of(engine), FINE, why)
        elif engine == OURS:
            yield Diagnosis(engine, version_of(engine), NOT_RUN, (str(refusal),))
        else:
            found = reference.differences(source, feeds, engine)
            lower = partial(_why_lowering_fails, source, engine, reference, feeds)
            yield _diagnosis(engine, examine(source, engine), found, lower)


def _diagnosis(
    engine: str,
    report: CheckReport,
    found: Sequence[Difference],
    why_lowering_fails: Callable[[], str | None],
) -> Diagnosis:
    """Return the diagnosis of an engine; the model is lowered where something is wrong."""
    lacks = [
        each for each in report.findings if each.severity == ERROR or each.fix.startswith(REWRITE)
    ]
    differences = [each for each in found if not each.is_allowed]
    made = partial(Diagnosis, engine, version_of(engine))
    if not differences and not lacks:
        return made(FINE, (SAME_OUTPUTS,), _about_the_engine(report))
    reasons = [str(each).removeprefix(f"{engine}: ") for each in differences if each.output]
    reasons += [each.found for each in differences if not each.output]
    reasons += map(_with_node, lacks)
    useless = why_lowering_fails()
    if useless is None:
        return made(FIXABLE, _shortened(reasons))
    aspects = {each.aspect for each in differences} & {"refused", "crashed"}
    return made(min(aspects, default=WRONG), (*_shortened(reasons), useless))


def _why_lowering_fails(
    source: OnnxModel, engine: str, reference: Reference, feeds: Mapping[str, object]
) -> str | None:
    """Return why the lowered model does not help; None if it gives the outputs of the model.

    It is judged in the engine, and in the one that gave these outputs; of an IR in OpenVINO alone,
    as our own runs few layers.
    """
    try:
        found = lowered(source, engine)
    except SplitError as error:
        return f"it can't be lowered: {error.problem}"
    if not found.report.changes:
        return NOTHING_TO_LOWER
    with found.read() as made:
        for name in (engine,) if source.openvino is not None else (reference.engine, engine):
            for each in reference.differences(made, feeds, name):
                if not each.is_allowed:
                    return f"and so is the lowered model: {each}"
    return None


def _about_the_engine(report: CheckReport) -> int:
    """Count the findings that are about the engine."""
    codes = {kind.code for kind in (TARGET_REFUSES, TARGET_WRONG, TARGET_DEPENDS)}
    return sum(each.code in codes for each in report.findings)


def _with_node(finding: Finding) -> str:
    """Return the message of a finding, with its node."""
    return f"{finding.node}: {finding.message}"


def _shortened(reasons: Iterable[str]) -> tuple[str, ...]:
    """Return the first reasons, each once, and how many more there are."""
    first = list(dict.fromkeys(reasons))
    more = [f"and {len(first) - _MOST_REASONS} more"] if len(first) > _MOST_REASONS else []
    return (*first[:_MOST_REASONS], *more)
