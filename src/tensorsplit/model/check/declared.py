"""What a model declares of the outputs of a split node, against what the node makes."""

from __future__ import annotations

from collections.abc import Iterator

import onnx_ir as ir

from tensorsplit.core.dimensions import Shape, is_known
from tensorsplit.core.plan import SplitPlan, UncountedPlan
from tensorsplit.model.check.cuts import Cut, as_text, shown
from tensorsplit.model.check.finding import Finding, of_check
from tensorsplit.model.check.table import DECLARED_SHAPE, DECLARED_TYPE
from tensorsplit.model.graph.facts import Fact, Sequence, Tensor, of_parts
from tensorsplit.model.infer.analysis import Facts, declared
from tensorsplit.model.infer.operators import split_outputs


def contradictions(cut: Cut, facts: Facts) -> Iterator[Finding]:
    """Where the declared types and shapes of the outputs contradict the split.

    Args:
        cut: The split node.
        facts: What is known of the values of the model.
    """
    node = cut.place.node
    if cut.errors or cut.intent is None:
        return
    for value, fact in zip(node.outputs, _outputs(cut, facts), strict=False):
        said = declared(value)
        if not isinstance(said, Tensor | Sequence):
            if value.type is not None:
                yield _type(cut, value, said, fact)
        elif type(said) is not type(fact) or _differ(said.element_type, _element_type(fact)):
            yield _type(cut, value, said, fact)
        else:
            yield from _shapes(cut, value, said, fact)


def _outputs(cut: Cut, facts: Facts) -> list[Fact]:
    """What the node makes; this is not what is known of its outputs, which heeds declarations."""
    element_type = cut.data.element_type if isinstance(cut.data, Tensor) else None
    node = cut.place.node
    match cut.plan:
        case SplitPlan() if _is_sequence(cut):
            return [of_parts(element_type, cut.plan.output_shapes)]
        case SplitPlan():
            return [Tensor(element_type, shape) for shape in cut.plan.output_shapes]
        case UncountedPlan():
            return [Sequence(element_type, cut.plan.part_shape, cut.plan.count)]
        case None:
            known = [facts.of(value) for value in node.inputs]
            return split_outputs(node, known, cut.place.opset, {}).facts


def _is_sequence(cut: Cut) -> bool:
    return cut.operator is not None and cut.operator.is_sequence


def _differ(one: object, other: object) -> bool:
    return one is not None and other is not None and one != other


def _element_type(fact: Fact) -> ir.DataType | None:
    return fact.element_type if isinstance(fact, Tensor | Sequence) else None


def _type(cut: Cut, value: ir.Value, said: Fact, fact: Fact) -> Finding:
    return of_check(
        DECLARED_TYPE,
        cut.place.path,
        f"'{value.name}' is declared as {shown(said)}, but the node makes {shown(fact)}",
        "correct the declaration, or leave it out",
        operator=_operator(cut),
        parameter=_parameter(cut),
    )


def _shapes(cut: Cut, value: ir.Value, said: Tensor | Sequence, fact: Fact) -> Iterator[Finding]:
    declared_shape = said.shape if isinstance(said, Tensor) else said.part
    if declared_shape is None:
        return
    for place, shape in enumerate(_made(fact)):
        if shape is None or not contradict(declared_shape, shape):
            continue
        what = f"'{value.name}'"
        if isinstance(said, Sequence):
            what = f"every tensor of {what}"
        of = f"tensor {place}" if isinstance(fact, Sequence) and fact.parts else "the part"
        yield of_check(
            DECLARED_SHAPE,
            cut.place.path,
            f"{what} is declared with shape {as_text(declared_shape)}, but {of} has shape"
            f" {as_text(shape)}",
            "correct the declaration, or leave it out",
            operator=_operator(cut),
            parameter=_parameter(cut),
        )
        return


def _made(fact: Fact) -> tuple[Shape | None, ...]:
    """The shapes that the declaration of a value speaks of."""
    if isinstance(fact, Tensor):
        return (fact.shape,)
    if isinstance(fact, Sequence):
        return fact.parts or (fact.part,)
    return ()


def contradict(one: Shape, other: Shape) -> bool:
    """Whether two shapes can't be of one tensor: other ranks, or other numbers."""
    if len(one) != len(other):
        return True
    return any(is_known(a) and is_known(b) and a != b for a, b in zip(one, other, strict=True))


def _operator(cut: Cut) -> str | None:
    return cut.operator.id if cut.operator else None


def _parameter(cut: Cut) -> str | None:
    return cut.operator.outputs[0].name if cut.operator else None
