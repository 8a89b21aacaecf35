"""The family for onnx's own reference evaluator.

``onnx.reference.ReferenceEvaluator(model, new_ops=tensorsplit.reference_ops.NEW_OPS)`` runs a
model with the operators of this package, at whatever opset the model imports. The evaluator does
not pass the classes on to model-local functions; `tensorsplit.run` handles those.
"""

from __future__ import annotations

from tensorsplit.core.extras import needs

with needs("models"):
    from tensorsplit.model.run.reference_splits import NEW_OPS, Split, SplitToSequence

__all__ = ["NEW_OPS", "Split", "SplitToSequence"]


def __dir__() -> list[str]:
    return [*__all__]
