"""Errors in code that never runs (D22), which some engines read all the same."""

from __future__ import annotations

from collections.abc import Iterator

import onnx_ir as ir

from tensorsplit.core.dimensions import Shape, is_known
from tensorsplit.model.graph.node_paths import node_paths
from tensorsplit.model.graph.nodes import NodeRef, attribute_of, bodies
from tensorsplit.model.graph.producers import first_input
from tensorsplit.model.graph.split_records import is_split
from tensorsplit.model.graph.uses import is_unused
from tensorsplit.model.infer.analysis import Facts, Refusal

WRONG_UNRUN = ("wrong_unrun", "used_wrong_unrun")
"""The features: what is wrong in code that never runs, and what of it is used there."""


def of_unrun(ref: NodeRef, facts: Facts, seen: Facts) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield the errors that are seen in bodies of a node that never run, and what is used of them.

    What is wrong in a node that never runs itself is reported of the one around it.
    """
    if not seen.refusals or facts.never_runs(ref.path):
        return
    places = ((f"{ref.path}.{label}", body) for label, body in bodies(ref.node) if len(body))
    starts = tuple(
        f"{place}/" for place, body in places if facts.never_runs(node_paths(place, body)[0])
    )
    wrong = [each for each in seen.refusals if (each.error.node or "").startswith(starts)]
    used = [each for each in wrong if not is_unused(each.node)]
    for name, found in zip(WRONG_UNRUN, (wrong, used), strict=True):
        if found:
            yield name, tuple(sorted({_label_of(each, seen) for each in found}))


def _label_of(refusal: Refusal, seen: Facts) -> str:
    """Return an error's code and parameter, and whether the axis is of unknown length."""
    error, node = refusal.error, refusal.node
    shape = seen.tensor(first_input(node)).shape
    axis = attribute_of(node, "axis", ir.AttributeType.INT, 0)
    label = f"{error.code} of {error.parameter}"
    if not is_split(node) or (shape is not None and not _has_axis(shape, axis)):
        return label
    return label if shape is not None and is_known(shape[axis]) else f"{label} on an open axis"


def _has_axis(shape: Shape, axis: int | None) -> bool:
    return axis is not None and -len(shape) <= axis < len(shape)
