"""Element types: whether a version of an operator takes those that a node has."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir

from tensorsplit.model.convert.change import FIRST_WITH_ANY_CONSTANT, Change
from tensorsplit.model.convert.schemas import schema
from tensorsplit.model.convert.site import Site
from tensorsplit.model.graph.facts import Other, Sequence

_FIRST_IR_WITH_CONSTANT_INITIALIZERS = 4
_FLOATS = (ir.DataType.FLOAT, ir.DataType.FLOAT16, ir.DataType.DOUBLE)


def check_types(site: Site, change: Change, original: Any) -> None:
    """Refuse a node whose types the target's version of its operator does not list.

    Args:
        site: The node, in the words of the target.
        change: The model.
        original: The schema of the node as it was; what that did not allow is not held against
            the target.

    Raises:
        SplitError: TS512.
    """
    target = schema(site.op_type, site.opset)
    bound: dict[str, str] = {}
    for entry, value, was in _bindings(site, target, original):
        seen = _type_name(change, value)
        if seen is None:
            continue
        allowed = _allowed(target, entry.type_str)
        if seen not in allowed and (was is None or seen in _allowed(original, was.type_str)):
            raise site.refusal(
                f"'{entry.name}' is a {seen}, which opset {site.opset} does not take"
            )
        if entry.is_homogeneous and bound.setdefault(entry.type_str, seen) != seen:
            raise site.refusal(
                f"'{entry.name}' is a {seen}, and has to be a {bound[entry.type_str]} as its"
                f" other operands at opset {site.opset}"
            )


def _bindings(site: Site, target: Any, original: Any) -> Any:
    for side in ("inputs", "outputs"):
        formal, was = getattr(target, side), getattr(original, side)
        for index, value in enumerate(getattr(site.node, side)):
            if value is None or not formal:
                continue
            entry = formal[min(index, len(formal) - 1)]
            yield entry, value, was[min(index, len(was) - 1)] if was else None


def _allowed(schema: Any, type_str: str) -> frozenset[str]:
    for constraint in schema.type_constraints:
        if constraint.type_param_str == type_str:
            return frozenset(constraint.allowed_type_strs)
    return frozenset({type_str})


def _type_name(change: Change, value: ir.Value) -> str | None:
    """The type as the schemas spell it; None if it is not known."""
    fact = change.facts.of(value)
    if isinstance(fact, Other):
        return _spelled(fact.type)
    if fact.element_type is None:
        return None
    name = f"tensor({fact.element_type.name.lower()})"
    return f"seq({name})" if isinstance(fact, Sequence) else name


def _spelled(kind: Any) -> str | None:
    if isinstance(kind, ir.TensorType):
        return f"tensor({kind.dtype.name.lower()})"
    wrapper = {ir.SequenceType: "seq", ir.OptionalType: "optional"}.get(type(kind))
    inner = _spelled(getattr(kind, "elem_type", None)) if wrapper else None
    return f"{wrapper}({inner})" if inner else None


def plain_constant(site: Site, change: Change) -> None:
    """Before opset 9 constants hold floats; others become initializers, or are cast in functions.

    Raises:
        SplitError: TS512 in a function, for values that a float can't hold.
    """
    value = site.node.outputs[0]
    tensor = site.attribute("value") if change.target < FIRST_WITH_ANY_CONSTANT else None
    if tensor is None or tensor.dtype in _FLOATS:
        return
    if isinstance(site.scope, ir.Graph):
        made = ir.Value(
            name=change.names.fresh(value.name or "constant"),
            shape=ir.Shape(tensor.shape),
            type=ir.TensorType(tensor.dtype),
            const_value=tensor,
        )
        change.replace(site, change.builder(site, change.target), [made])
        tensor.name = made.name
        site.scope.register_initializer(made)
        change.model.ir_version = max(change.model.ir_version, _FIRST_IR_WITH_CONSTANT_INITIALIZERS)
        return
    array = tensor.numpy()
    if (
        array.dtype.kind not in "iub"
        or (array.astype(np.float64).astype(array.dtype) != array).any()
    ):
        raise site.refusal("it holds what a constant of floats can't hold")
    builder = change.builder(site, change.target)
    floats = builder.constant(array.astype(np.float64), np.float64)
    change.before(site, builder)
    to = tensor.dtype.name if change.target < 6 else tensor.dtype.value
    site.take("value")
    site.node.op_type = "Cast"
    site.set_inputs([floats])
    site.put("to", to)
