"""OpenVINO: the operators whose names would clash with ONNX's, and extensions of its import."""

from __future__ import annotations

from importlib.util import find_spec

from tensorsplit.arrays.eager import openvino_split as split
from tensorsplit.arrays.eager import variadic_split
from tensorsplit.core.errors import ENGINE_MISSING, SplitError
from tensorsplit.core.extras import install_command, needs

__all__ = ["extensions", "split", "variadic_split"]


def extensions() -> list[object]:
    """Return extensions with which OpenVINO's own ONNX import reads the splits that it refuses.

    Among them uneven ``num_outputs`` on a dynamic axis, ``SplitToSequence`` on a dynamic axis with
    ``SequenceAt`` and ``SequenceLength``, and ``VariadicSplit`` of the domain
    ``org.openvinotoolkit``. A split that is wrong is refused with the text of a `SplitError`; see
    ``docs/openvino-extensions.md`` for what was measured, and the limits.

    Returns:
        What ``openvino.Core.add_extension`` and the ``extension`` of ``openvino.convert_model``
        take.

    Raises:
        SplitError: TS602 if OpenVINO is not installed, TS711 if the extra ``models`` is not.
    """
    if find_spec("openvino") is None:
        raise SplitError(
            ENGINE_MISSING,
            "openvino is not installed",
            install_command("openvino"),
            parameter="engine",
        )
    with needs("models"):
        from tensorsplit.openvino.sequence_conversions import sequence_extensions
        from tensorsplit.openvino.split_conversions import split_extensions

    return [*sequence_extensions(), *split_extensions()]


def __dir__() -> list[str]:
    return [*__all__]
