"""Verifying that two models give the same outputs, in our own engine and in others."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tensorsplit.arrays.naming import strings_of
from tensorsplit.core.dimensions import as_index, is_known
from tensorsplit.core.errors import (
    ENGINE_MISSING,
    UNSUPPORTED_NODE,
    USAGE,
    SplitError,
    called,
    wrong_type,
)
from tensorsplit.core.given import as_real
from tensorsplit.engines.compare import Difference, Reference, Tolerance
from tensorsplit.engines.engine_names import OURS, READS_IR, EngineName, check_engine
from tensorsplit.engines.limits import Limits
from tensorsplit.engines.sessions import run
from tensorsplit.model.exactness import moved_outputs
from tensorsplit.model.feeds import as_mapping
from tensorsplit.model.fitting_inputs import complete_inputs
from tensorsplit.model.reading import ModelLike, OnnxModel, read_model


@dataclass(frozen=True, slots=True)
class EngineResult:
    """How an engine's outputs differ from those of the reference.

    Attributes:
        engine: The engine.
        differences: Those of the other model; empty if every bit is the same.
        before: Those of the first model in the same engine, where that is not the reference.
    """

    engine: str
    differences: tuple[Difference, ...]
    before: tuple[Difference, ...] = ()

    @property
    def is_equal(self) -> bool:
        """Whether the other model gives the same outputs, up to the rounding that is allowed."""
        return all(each.is_allowed for each in self.differences)


@dataclass(frozen=True, slots=True)
class Verification:
    """What running two models on the same inputs has shown; true if they are equal.

    Attributes:
        reference: The engine that ran the first model: our own, or another where that can't.
        inputs: By name, what both models were fed.
        outputs: By name, what the reference gave.
        results: How the outputs of each engine differ from these.
        missing: The engines that are not installed.
        refusal: Why our own engine does not run one of the two models; None if it does.
    """

    reference: str
    inputs: Mapping[str, Any]
    outputs: Mapping[str, Any]
    results: tuple[EngineResult, ...]
    missing: tuple[str, ...] = ()
    refusal: SplitError | None = None

    def __bool__(self) -> bool:
        return all(each.is_equal for each in self.results)

    def __repr__(self) -> str:
        seen = "; ".join(str(self).splitlines())
        return f"<Verification {'equal' if self else 'different'}: {seen}>"

    def __str__(self) -> str:
        lines = [f"{name} is not installed, and was not run" for name in self.missing]
        if self.refusal is not None:
            lines.append(f"{OURS} does not run it: {self.refusal}")
        for result in self.results:
            lines += [f"{result.engine}: the same"] if result.is_equal else []
            lines += map(str, result.differences)
        return "\n".join(lines)


def verify(
    model: ModelLike,
    other: ModelLike,
    *,
    inputs: Mapping[str, object] | None = None,
    seed: int = 0,
    engines: Sequence[EngineName] = (),
    rtol: float | None = None,
    atol: float | None = None,
    memory: int | None = None,
    timeout: float | None = None,
) -> Verification:
    """Verify that another model, such as a rewriting, gives the same outputs as a model.

    Our own engine runs both, and each of `engines` runs the other one; all are compared with what
    our own engine gives for the first. An output that is only moved, never computed, must match bit
    for bit.

    Args:
        model: As `run` takes it.
        other: A model with the same inputs and outputs, as `run` takes it.
        inputs: By name, what to feed; the other inputs are random, of shapes and small values that
            fit the model.
        seed: Decides which random inputs are taken.
        engines: Other engines to run both models in.
        rtol: The relative difference allowed in outputs that are calculated; by default 1e-9 for
            double, 1e-4 for float, 1e-2 for float16, 5e-2 for bfloat16 and 0 for integers.
        atol: The absolute difference allowed beside it; by default `rtol` times a usual value of
            the output.
        memory: As for `run`.
        timeout: As for `run`.

    Returns:
        The verification: true if the models are equal in every engine; ``.results`` has the
        differences, ``.inputs`` what was fed. An engine that refuses the other model, or whose
        process ends, is a difference; one that is not installed is in ``.missing``.

    Raises:
        SplitError: TS501 to TS504 for the models; TS505 to TS508 for `inputs`; TS1xx to TS3xx and
            TS511 if no random inputs fit; TS601 for an engine that does not exist; TS703 if
            `engines` is not a list of names, `seed` not an integer from 0 on, or `rtol` or `atol`
            not a number from 0 on; TS510 if no engine runs the first model.

    Example:
        >>> lowered = ts.lower("uneven.onnx", target="portable")
        >>> bool(ts.verify("uneven.onnx", lowered))
        True
    """
    fix = "give a list of engines, such as ['onnxruntime']"
    others = strings_of(engines, USAGE, fix, parameter="engines")
    tolerance = Tolerance(_tolerance("rtol", rtol), _tolerance("atol", atol))
    number = as_index(seed)
    if number is None or number < 0:  # NumPy's generators take more, and some of it ends Python
        raise SplitError(USAGE, wrong_type(seed), "give an integer from 0 on", parameter="seed")
    source, given = read_model(model), {} if inputs is None else as_mapping(inputs)
    completed = complete_inputs(source, given, {}, number)
    if completed.problem is not None:
        raise completed.problem
    with called(model="other"):
        rewriting = read_model(other)
    return verify_on(
        source,
        rewriting,
        completed.feeds,
        engines=others,
        tolerance=tolerance,
        limits={"memory": memory, "timeout": timeout},
    )


def _tolerance(name: str, given: object) -> float | None:
    """Return a tolerance as a float (TS703)."""
    if given is None:
        return None
    found = as_real(given)
    if found is not None and 0 <= found < math.inf:
        return found
    raise SplitError(USAGE, wrong_type(given), "give a number from 0 on", parameter=name)


def verify_on(
    source: OnnxModel,
    made: OnnxModel,
    feeds: Mapping[str, object],
    *,
    engines: Sequence[str],
    tolerance: Tolerance,
    limits: Limits,
) -> Verification:
    """Do as `verify`, on given inputs alone."""
    absent = tuple(name for name in engines if not is_installed(name))
    others = [name for name in engines if name not in (OURS, *absent)]
    reference, refusal = reference_run(source, feeds, others, tolerance, limits)
    first = reference.engine
    is_ir = source.openvino is not None
    also = [OURS] if is_ir and made.openvino is None else []
    rest = dict.fromkeys(name for name in (*also, *others) if name != first)
    judge = reference.differences
    foreign = _not_run_here(made) if first == OURS and rest else None
    tried = [first] if foreign is None else []
    results = [EngineResult(name, tuple(judge(made, feeds, name))) for name in tried]
    for engine in rest:
        found = judge(made, feeds, engine)
        reads = not is_ir or engine == READS_IR
        before = judge(source, feeds, engine) if reads else ()
        results.append(EngineResult(engine, tuple(found), tuple(before)))
    why = refusal or foreign
    return Verification(first, dict(feeds), reference.outputs, tuple(results), absent, why)


def _not_run_here(made: OnnxModel) -> SplitError | None:
    """Return why our own engine does not run a rewriting at all, such as layers that check."""
    try:
        made.check_runs_here()
    except SplitError as error:
        return error
    return None


def verify_sizes(source: OnnxModel, made: OnnxModel) -> Verification:
    """Verify a rewriting of a model on inputs that fit the model, and run it on larger ones.

    Of these, each dimension that is open in the model is twice as long; only the rewriting runs.

    Raises:
        SplitError: TS1xx to TS3xx and TS511 if no inputs fit, and what `run` raises.
    """
    fitting = complete_inputs(source, {}, {}, 0)
    if fitting.problem is not None:
        raise fitting.problem
    shapes: dict[str, tuple[int, ...]] = {}
    for entry in source.inputs:
        if entry.name in fitting.random:
            seen = fitting.random[entry.name]
            declared = entry.shape or (None,) * len(seen)
            shapes[entry.name] = tuple(
                size if is_known(dim) else 2 * size
                for size, dim in zip(seen, declared, strict=True)
            )
    run(made, complete_inputs(made, {}, shapes, 0).feeds)
    return verify_on(source, made, fitting.feeds, engines=(), tolerance=Tolerance(), limits={})


def reference_run(
    source: OnnxModel,
    feeds: Mapping[str, object],
    others: Sequence[str],
    tolerance: Tolerance,
    limits: Limits,
) -> tuple[Reference, SplitError | None]:
    """Run a model in our own engine, or in the first of the others where that lacks an operator.

    Returns what the engine gives, and why it is not our own; None if it is.
    """
    readers = [each for each in others if source.openvino is None or each == READS_IR]
    engine, refusal = OURS, None
    try:
        outputs = run(source, feeds, **limits)
    except SplitError as error:
        if error.kind is not UNSUPPORTED_NODE or not readers:
            raise
        engine, refusal = readers[0], error
        outputs = run(source, feeds, engine=engine, **limits)
    return Reference(engine, outputs, tolerance, moved_outputs(source), limits), refusal


def is_installed(engine: str) -> bool:
    """Return whether an engine can run here; TS601 if there is no such engine."""
    try:
        check_engine(engine)
    except SplitError as error:
        if error.kind is not ENGINE_MISSING:
            raise
        return False
    return True
