"""Names of engines: which there are, which are installed, and the one that a model needs."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING, Literal, TypeAlias

from tensorsplit.core.errors import ENGINE_MISSING, UNKNOWN_ENGINE, SplitError, did_you_mean, show
from tensorsplit.core.extras import install_command
from tensorsplit.core.given import as_string

if TYPE_CHECKING:
    from tensorsplit.model.reading import OnnxModel

OURS = "tensorsplit"

ENGINES = (OURS, "onnx-reference", "onnxruntime", "openvino")
"""The names of the engines; the first two need nothing but this package."""

ALIASES = {"numpy": OURS}
"""Former names of engines, which are still understood."""

READS_IR = "openvino"
"""The engine beside our own that reads an OpenVINO IR."""

EngineName: TypeAlias = Literal["tensorsplit", "numpy", "onnx-reference", "onnxruntime", "openvino"]
"""What an engine is called."""

Engine: TypeAlias = EngineName | Literal["auto"]
"""An engine, or the one that a model needs."""

AUTO: Literal["auto"] = "auto"
"""Stands for the engine that a model needs: see `resolved`."""

_EXTRAS = ENGINES[2:]  # each is the name of its package too


def resolved(engine: str, model: OnnxModel) -> str:
    """Resolve an engine's name for a model; ``auto`` is one that can run it, if any."""
    if engine != AUTO:
        return engine
    is_foreign = model.foreign_layer is not None
    return READS_IR if is_foreign and find_spec(READS_IR) is not None else OURS


def check_engine(engine: object) -> str:
    """Return the name of an engine that exists (TS601) and is installed (TS602), or ``auto``.

    Nothing of the engine is imported.
    """
    name = as_string(engine) or ""
    if name == AUTO:
        return name
    name = ALIASES.get(name, name)
    if name not in ENGINES:
        raise SplitError(
            UNKNOWN_ENGINE,
            f"there is no engine {show(engine)}",
            f"{did_you_mean(name, ENGINES)}the engines are {', '.join(ENGINES)}; or {AUTO}",
            parameter="engine",
        )
    if name in _EXTRAS and find_spec(name) is None:
        raise SplitError(
            ENGINE_MISSING,
            f"{name} is not installed",
            install_command(name),
            parameter="engine",
        )
    return name
