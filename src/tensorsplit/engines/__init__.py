"""Engines: what runs a model, one adapter for each.

``numpy`` is this package's own and runs here. Every other engine runs in a process of its own,
and sees a model only after its split nodes have been checked.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from tensorsplit.core.errors import ENGINE_MISSING, UNKNOWN_ENGINE, SplitError, show

if TYPE_CHECKING:
    from tensorsplit.model.graph.reading import OnnxModel, Source

ENGINES = ("numpy", "onnx-reference", "onnxruntime", "openvino")
"""The names of the engines; the first two need nothing but this package."""

AUTO = "auto"
"""Stands for the engine that a model needs: see `resolved`."""

_EXTRAS = ENGINES[2:]  # each is the name of its package too


def run(
    model: Source,
    inputs: Mapping[str, Any],
    *,
    engine: str = AUTO,
    memory: int | None = None,
    timeout: float | None = None,
) -> dict[str, Any]:
    """Run a model.

    Args:
        model: The path of an ONNX file or of an OpenVINO IR (``.xml``), or an ONNX model in
            memory.
        inputs: By name, an array for each input; a list of arrays for a sequence, None for an
            optional that is empty. An input with an initializer may be left out.
        engine: One of `ENGINES`. ``numpy`` runs the split operators by this package's rules and
            all others by onnx's reference evaluator, and of an IR the layers of types Parameter,
            Const, VariadicSplit, Split and Result; ``onnx-reference`` is that evaluator alone;
            ``onnxruntime`` and ``openvino`` are extras. ``auto`` is ``numpy``, but ``openvino`` for
            an IR with layers of other types, where it is installed.
        memory: How many bytes the run may take beyond what the engine takes by itself. With this or
            `timeout` the whole run is in a child process, also that of ``numpy``.
        timeout: How many seconds the run may take, in place of the environment variable.

    Returns:
        By name, in the graph's order, an array for each output; a list of arrays for a sequence,
        None for an optional that is empty.

    Raises:
        SplitError: TS601 and TS602 for the engine; TS501 to TS504 for the model; TS505 to TS508
            for the inputs; TS1xx to TS3xx for a split node that is wrong, before the engine sees
            it; TS509 to TS511 from the engine ``numpy``; TS603 if another engine refuses the
            model, TS604 if its process dies or takes longer than the environment variable
            ``TENSORSPLIT_ENGINE_TIMEOUT`` (in seconds, else 600) allows; TS605 if the run takes
            more than `memory` or `timeout` allow; TS703 for a limit that can't be kept.
    """
    check_engine(engine)
    from tensorsplit.model.graph.reading import read_model

    content = read_model(model)
    engine = resolved(engine, content)
    if memory is not None or timeout is not None:
        from tensorsplit.engines.limits import run_limited

        return run_limited(engine, content, inputs, memory, timeout)
    if engine != "numpy":
        from tensorsplit.engines.outside import run_outside

        return run_outside(engine, content, inputs)
    from tensorsplit.model.run.evaluator import run_onnx

    return run_onnx(content, inputs)


def resolved(engine: str, model: OnnxModel) -> str:
    """The engine that is meant by a name for a model; ``auto`` is one that can run it, if any."""
    if engine != AUTO:
        return engine
    is_foreign = model.foreign_layer is not None
    return "openvino" if is_foreign and find_spec("openvino") is not None else "numpy"


def check_engine(engine: str) -> None:
    """Check that an engine exists (TS601) and is installed (TS602), without importing it."""
    if engine == AUTO:
        return
    if engine not in ENGINES:
        raise SplitError(
            UNKNOWN_ENGINE,
            f"there is no engine {show(engine)}",
            f"the engines are {', '.join(ENGINES)}; or {AUTO}",
            parameter="engine",
        )
    if engine in _EXTRAS and find_spec(engine) is None:
        raise SplitError(
            ENGINE_MISSING,
            f"{engine} is not installed",
            f"pip install 'tensorsplit[{engine}]'",
            parameter="engine",
        )
