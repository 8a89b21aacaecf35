"""Models at another opset: split nodes by their meaning, all others by ONNX's own schemas."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from tensorsplit.models.convert.driver import check_opset, convert_model
from tensorsplit.models.graph.store import open_model

if TYPE_CHECKING:
    import onnx
    import onnx_ir

__all__ = ["convert"]


def convert(
    model: str | os.PathLike[str] | onnx.ModelProto | onnx_ir.Model, opset: int
) -> onnx.ModelProto | onnx_ir.Model:
    """The whole model at another opset of ONNX's own domain, up or down.

    Graphs, bodies and model-local functions are converted, with the opset imports of each; other
    domains stay as they are. Lengths known only at run time and dynamic axes survive; where the
    target has no words for them, nodes that calculate them take their place.

    Args:
        model: A path, or a model in memory, which is left as it is. External data is not read.
        opset: The opset, from 1 on.

    Returns:
        The model, of the same kind (a ``ModelProto`` for a path). A model that is at this opset
        already comes back unchanged.

    Raises:
        SplitError: TS101 for an opset that does not exist, TS1xx to TS3xx for split nodes that
            are wrong, TS310 and TS201 for those that the opset can't say, TS512 for other
            operators that have no form there, TS501, TS502 for what is no well-formed model.
    """
    target = check_opset(opset)
    opened = open_model(model)
    return opened.back(convert_model(opened.model, target))
