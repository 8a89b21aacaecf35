"""Engines: what runs a model, one adapter for each.

``tensorsplit`` is this package's own and runs here. Every other engine runs in a process of its
own, and sees a model only after its split nodes have been checked.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from tensorsplit.core.extras import needs
from tensorsplit.core.given import is_a
from tensorsplit.engines.engine_names import AUTO, ENGINES, Engine, EngineName

if TYPE_CHECKING:
    from tensorsplit.engines.adapters import Outputs
    from tensorsplit.engines.sessions import Session
    from tensorsplit.model.profiles import Target
    from tensorsplit.model.reading import ModelLike

__all__ = ["ENGINES", "Engine", "EngineName", "run", "session"]


def run(
    model: ModelLike,
    inputs: Mapping[str, object],
    *,
    engine: Engine = AUTO,
    memory: int | None = None,
    timeout: float | None = None,
) -> Outputs:
    """Run a model.

    Args:
        model: The path of an ONNX file or of an OpenVINO IR (``.xml``), or an ONNX model in
            memory.
        inputs: By name, an array for each input; a list of arrays for a sequence, None for an
            optional that is empty. An input with an initializer may be left out.
        engine: One of `ENGINES`. ``tensorsplit`` runs the split operators by this package's rules
            and all others by onnx's reference evaluator, and of an IR the layers of types
            Parameter, Const, VariadicSplit, Split and Result; ``onnx-reference`` is that evaluator
            alone; ``onnxruntime`` and ``openvino`` are extras. ``auto`` is ``tensorsplit``, but
            ``openvino`` for an IR with layers of other types, where it is installed.
            ``numpy`` is another name of ``tensorsplit``.
        memory: How many bytes the run may take beyond what the engine takes by itself. With this or
            `timeout` the whole run is in a child process, also that of
            ``tensorsplit``.
        timeout: How many seconds the run may take, in place of the environment variable.

    Returns:
        By name, in the graph's order, an array for each output; a list of arrays for a sequence,
        None for an optional that is empty.

    Raises:
        SplitError: TS601 and TS602 for the engine; TS501 to TS504 for the model; TS505 to TS508
            for the inputs; TS1xx to TS3xx for a split node that is wrong, before the engine sees
            it; TS509 to TS511 from the engine ``tensorsplit``; TS603 if another engine refuses the
            model, TS604 if its process dies or takes longer than the environment variable
            ``TENSORSPLIT_ENGINE_TIMEOUT`` (in seconds, else 600) allows; TS605 if the run takes
            more than `memory` or `timeout` allow; TS703 for a limit that can't be kept.

    Example:
        >>> parts = ts.run("uneven.onnx", {"x": np.load("uneven_x.npy")})
        >>> {name: part.shape for name, part in parts.items()}
        {'a': (3, 4), 'b': (3, 4), 'c': (1, 4)}
    """
    with needs("models"):
        from tensorsplit.engines import sessions

    return sessions.run(model, inputs, engine=engine, memory=memory, timeout=timeout)


def session(
    model: ModelLike,
    *,
    engine: Engine = AUTO,
    lower: bool | Target = False,
    isolate: bool | None = None,
    memory: int | None = None,
    timeout: float | None = None,
) -> Session:
    """Make a model ready for many runs: it is read, checked and compiled once.

    A run checks again only what can differ: the shapes, once for each combination of them, and each
    time the lengths that are fed or computed. An engine loads the model with the first run, keeps
    its process, and loads it again after a crash.

    Args:
        model: As `run` takes it. Later changes of a ``ModelProto`` do not count; a file must stay
            as it is.
        engine: As `run` takes it.
        lower: Whether the engine gets the model as `tensorsplit.lower` makes it for the engine
            (``onnx-reference``: ``portable``), or for the target that is named; errors name
            the model itself. An IR that has to be changed is passed on in memory, with its
            weights. ``tensorsplit`` needs none of it.
        isolate: Whether the engine has a process of its own. By default all but ``tensorsplit``
            have. With False a crash of the engine ends this process: only for trusted models.
        memory: As for `run`: how many bytes the session may take, which then has its own process.
        timeout: As for `run`: how many seconds each run may take.

    Returns:
        The session, a context manager: ``session.run(inputs)``, ``session.inputs``,
        ``session.outputs``, ``session.close()``.

    Raises:
        SplitError: TS601 and TS602 for the engine, TS601 for the target; TS501 to TS504, TS509 for
            the model; TS1xx to TS3xx for a split node that is wrong for any input; TS513 if it
            can't be lowered; TS703 for arguments that don't go together.

    Example:
        >>> with ts.session("uneven.onnx") as session:
        ...     parts = session.run({"x": np.load("uneven_x.npy")})
        >>> parts["c"].shape
        (1, 4)
    """
    with needs("models"):
        from onnx import ModelProto

        from tensorsplit.engines.sessions import Session
        from tensorsplit.model.graph.message import copied

    content = copied(model) if is_a(model, ModelProto) else model
    made = Session(content, engine, lower=lower, isolate=isolate, memory=memory, timeout=timeout)
    made.check()
    return made
