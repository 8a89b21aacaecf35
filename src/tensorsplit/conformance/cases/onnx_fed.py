"""Models that are right, and what must be refused when it is fed to them.

Only the data decides, so that a tool that rewrites such a model has to keep the refusal. Each row
states data that the model splits, the parts of it, and data that it has to refuse.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import product
from typing import Any

from tensorsplit.conformance.case import Case
from tensorsplit.conformance.cases.making import (
    bodies_of,
    case_of,
    sampled_opset,
    sampled_simple_use,
)
from tensorsplit.conformance.cases.split_encodings import (
    ATTRIBUTE_SPLITS,
    INPUT_SPLITS,
    OPSETS,
    SEQUENCES,
    SPLITS,
    lengths_text,
)
from tensorsplit.conformance.models.onnx_model import CaseOperand, Fields


@dataclass(frozen=True, slots=True)
class FedRow:
    """Data for one model: a dimension and lengths that make a split, and such as make none.

    Lengths that are not a tensor of the model are None; those that are fed lie in `form`.
    """

    name: str
    key: str
    decision: str
    sizes: tuple[int, ...]  # of the parts of what is legal
    dim: int  # that is fed where it is to be refused
    right: Any = None  # lengths, or that of a chunk, where they are legal
    wrong: object = None  # and where they are not; None: the same
    form: str = ""  # of the second input
    attributes: Mapping[str, object] = field(default_factory=dict)
    element_type: str = "int64"  # of the lengths
    positions: tuple[int, int] | None = None  # in a sequence: one that it has, and one it has not

    def operand(self, value: object, declared: tuple[Any, ...] | None) -> CaseOperand | None:
        """Return the second input with one of the values."""
        if self.right is None:
            return None
        default = self.right if self.form == "overridable" else None
        return CaseOperand(value, self.form, self.element_type, default, declared)


def cases() -> Iterator[Case]:
    """Yield the cases of this group: each row in the main graph, and in every other place."""
    for operator in OPSETS:
        for row in _rows(operator):
            for places in bodies_of(operator):
                yield _case(operator, row, places)


def _case(operator: str, row: FedRow, places: tuple[str, ...]) -> Case:
    key = f"fed {operator} {row.name} {row.form} {places}"
    opset = sampled_opset(operator, places, key)
    use, option = sampled_simple_use(operator, places, opset, key)
    if row.positions is not None:
        use, option = "SequenceAt", ((row.positions[0],), True)
    counts = {len(lengths) for lengths in (row.right, row.wrong) if isinstance(lengths, tuple)}
    declared = ("L",) if len(counts) > 1 else None
    return case_of(
        operator,
        f"refuse-fed-{row.name}",
        row.key,
        form=row.form or ("attribute" if row.attributes else "absent"),
        decision=row.decision,
        opset=opset,
        shape=(2, row.dim),
        declared=(2, "N"),
        attributes={"axis": 1, **row.attributes},
        operand=row.operand(row.right if row.wrong is None else row.wrong, declared),
        outputs=len(row.sizes),
        axis=1,
        places=places,
        use=use,
        option=option if row.positions is None else ((row.positions[1],), True),
        legal={
            "shape": (2, sum(row.sizes)),
            "operand": row.operand(row.right, declared),
            "sizes": row.sizes,
            "option": option,
        },
    )


def _rows(operator: str) -> Iterator[FedRow]:
    """Yield the inputs of the models of an operator version."""
    if operator in INPUT_SPLITS or operator in SEQUENCES:
        yield from _of_inputs()
    if operator in INPUT_SPLITS:
        for wrong in ((2, 2, 2), (6,)):
            name = f"{len(wrong)}lengths"
            yield FedRow(name, "outputs", "D5", (2, 4), 6, (2, 4), wrong, "runtime")
    if operator in SEQUENCES:
        yield from _of_sequences()
    if operator in ATTRIBUTE_SPLITS:
        for dim in (7, 5):
            lengths = {"split": (2, 4)}
            yield FedRow(f"{dim}to2.4", "lengths-attribute", "D6", (2, 4), dim, attributes=lengths)
    if operator in SPLITS[:-1]:
        for dim in (7, 1):
            yield FedRow(f"{dim}into3", "equal", "D3", (2, 2, 2), dim)
    if operator == SPLITS[0]:
        floats: Fields = {"form": "runtime", "element_type": "float"}
        yield FedRow("2.3", "floats", "D12", (2, 4), 6, (2.0, 4.0), (2.0, 3.0), **floats)
    if operator == SPLITS[-1]:
        for dim in (5, 2):
            count = {"num_outputs": 4}
            yield FedRow(f"{dim}into4", "count", "D1", (2, 2, 2, 1), dim, attributes=count)


_WRONG = (
    ((2, 3), "sum", "D6"),
    ((5, 4), "sum", "D6"),
    ((-1, 7), "not-negative", "D7"),
    ((2**32 + 2, 4), "sum", "D14"),
)
"""Lengths that make no split of 6."""


def _of_inputs() -> Iterator[FedRow]:
    """Yield another dimension for lengths that stay, and other lengths for a dimension."""
    for form in ("initializer", "constant"):
        yield FedRow("7to2.4", "sum", "D6", (2, 4), 7, (2, 4), form=form)
    for (wrong, key, decision), form in product(_WRONG, ("runtime", "overridable")):
        yield FedRow(lengths_text(wrong), key, decision, (2, 4), 6, (2, 4), wrong, form)


def _of_sequences() -> Iterator[FedRow]:
    """Yield the lengths of chunks, and positions in a sequence of two."""
    for chunk in (0, -2):
        name = f"chunk{lengths_text((chunk,))}"
        yield FedRow(name, "chunk-positive", "D10", (2, 2, 2), 6, 2, chunk, "runtime")
    for position in (2, -3):
        name, at = f"at{lengths_text((position,))}", (1, position)
        yield FedRow(name, "position", "D19", (2, 4), 6, (2, 4), form="constant", positions=at)
