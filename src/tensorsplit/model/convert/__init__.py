"""Models converted to another opset: split nodes by meaning, all others by ONNX's schemas."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, SupportsIndex, overload

from tensorsplit.model.convert.driver import open_converted

if TYPE_CHECKING:
    import onnx
    import onnx_ir

__all__ = ["convert"]


@overload  # first: to a checker without stubs of protobuf a message is of any class
def convert(
    model: str | os.PathLike[str] | onnx.ModelProto,
    opset: SupportsIndex | None = ...,
    *,
    variadic: bool = ...,
) -> onnx.ModelProto: ...
@overload
def convert(
    model: onnx_ir.Model, opset: SupportsIndex | None = ..., *, variadic: bool = ...
) -> onnx_ir.Model: ...
def convert(
    model: str | os.PathLike[str] | onnx.ModelProto | onnx_ir.Model,
    opset: SupportsIndex | None = None,
    *,
    variadic: bool = False,
) -> onnx.ModelProto | onnx_ir.Model:
    """Return the whole model at another opset of ONNX's own domain, up or down.

    Graphs, bodies and model-local functions are converted, with the opset imports of each; other
    domains stay as they are. Lengths known only at run time and dynamic axes survive; where they
    are not expressible at the target, nodes that calculate them take their place. If a node of a
    function has to know the attributes, element types or ranks of a call, the function is made once
    for each combination of them that calls pass. It is left out if nothing calls it.

    An OpenVINO IR becomes an ONNX model. Its split layers keep their meaning: the converted model
    refuses what they refuse. A layer is refused if no operator of ONNX is sure to mean the same.

    Splits, moves and casts stay exact. An operator that becomes several others that calculate, such
    as LayerNormalization before opset 17, is equal up to rounding; the command line lists them.

    Args:
        model: A path, or a model in memory, which is left as it is; an OpenVINO IR is a path
            (``.xml``). External data is not read. Larger constants of an IR stay in its ``.bin``,
            as external data.
        opset: The opset, from 1 on; with `variadic` it may be None, which leaves it as it is.
        variadic: Whether every split node that gives one tensor for each part becomes OpenVINO's
            ``VariadicSplit``, in the domain ``org.openvinotoolkit``. `tensorsplit.lower` converts
            it back.

    Returns:
        The model, of the same kind (a ``ModelProto`` for a path); unchanged if there is nothing
        to convert.

    Raises:
        SplitError: TS101 for an opset that does not exist, TS1xx to TS3xx for split nodes that
            are wrong, TS310 and TS201 for those not expressible at the opset, TS512 for other
            operators that are not, TS501, TS502 for a model that is not well-formed; TS514 for a
            layer of an IR that has no counterpart, with its name and version.

    Example:
        >>> ts.convert("uneven.onnx", opset=13).opset_import[0].version
        13
    """
    opened, report = open_converted(model, opset, variadic=variadic)
    return opened.back(report.is_changed)
