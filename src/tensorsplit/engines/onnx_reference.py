"""onnx's own reference evaluator, with its own split operators and without any help of ours."""

from __future__ import annotations

from typing import Any

import onnx
from onnx.reference import ReferenceEvaluator

from tensorsplit.engines.wire import Request


def run(request: Request) -> list[Any]:
    """Run a model.

    Args:
        request: An ONNX model and what to feed it.

    Returns:
        The outputs, in the order of the request.
    """
    model = onnx.load(request.path) if request.path else onnx.load_from_string(request.data or b"")
    return list(ReferenceEvaluator(model).run(list(request.outputs), request.feeds))
