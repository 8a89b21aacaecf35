"""Which new tensors become of a stored one: operands into a plan, and the names of the parts."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tensorsplit.arrays.arguments import bind_values
from tensorsplit.arrays.prepared import counted
from tensorsplit.core.errors import PART_NAMES, SplitError, show
from tensorsplit.core.plan import SplitPlan
from tensorsplit.core.records import NEWEST_OPSET, in_force, operators
from tensorsplit.core.resolve import check_element_type
from tensorsplit.core.resolve import plan as plan_intent
from tensorsplit.core.schema import Operator
from tensorsplit.files.formats import Division, NewTensor, StoredTensor

_LONGEST_NAME = 240


@dataclass(frozen=True, slots=True)
class SplitOperands:
    """A split, as a caller or a rule writes it.

    Attributes:
        axis: The axis; None for the default of the operator version.
        split: The length of each part.
        num_outputs: How many parts.
        chunk: The length of each part but perhaps the last.
        operator: The identifier of an operator version; None for Split, or SplitToSequence where
            chunks are asked for.
        opset: The opset that selects the version where no operator is named.
    """

    axis: int | None = None
    split: Sequence[int] | None = None
    num_outputs: int | None = None
    chunk: int | None = None
    operator: str | None = None
    opset: int | None = None

    def plan(self, tensor: StoredTensor) -> SplitPlan:
        """The plan for a tensor (TS101 to TS309).

        Bits are bits: a version that was not asked for by name or opset takes any element type.
        """
        record = self._record()
        lists = [each.operand for each in record.lengths if 1 in each.rules]
        counts = [each.operand for each in record.lengths if 1 not in each.rules]
        values: dict[str, Any] = {record.axis: self.axis}
        for names, otherwise, value in (
            (lists, "split", self.split),
            (counts, "num_outputs", self.num_outputs),
            (lists, "split", self.chunk),
        ):
            if value is not None:
                values[names[0] if names else otherwise] = value
        made = counted(plan_intent(bind_values(record, values), tensor.shape))
        if self.operator is not None or self.opset is not None:
            data = record.inputs[0].name
            check_element_type(record.id, tensor.element_type, made.element_types, data)
        return made

    def _record(self) -> Operator:
        if self.operator is not None:
            return operators[self.operator]
        name = "Split" if self.chunk is None else "SplitToSequence"
        return in_force(name, NEWEST_OPSET if self.opset is None else self.opset)


def divide(tensor: StoredTensor, operands: SplitOperands, names: Sequence[str] | None) -> Division:
    """A tensor split into parts, with names in which ``*`` stands for that of the tensor (TS706).

    Without names they are numbered from 0, in one width.
    """
    plan = operands.plan(tensor)
    count = len(plan.sizes)
    if names is None:
        width = len(str(max(count - 1, 0)))
        names = [f"*.{number:0{width}}" for number in range(count)]
    if len(names) != count:
        raise SplitError(
            PART_NAMES,
            f"there are {len(names)} names for {count} parts",
            "give one for each part",
            parameter="names",
        )
    outputs = tuple(
        NewTensor(name.replace("*", tensor.name), shape, (number,))
        for number, (name, shape) in enumerate(zip(names, plan.output_shapes, strict=True))
    )
    return Division(tensor, plan, outputs)


def check_file_names(names: Sequence[str]) -> None:
    """Refuse (TS706) names that are not those of different files in one folder."""
    for name, count in Counter(names).items():
        is_component = not any(char in name for char in "/\\\0")
        if name in ("", ".", "..") or not is_component or len(os.fsencode(name)) > _LONGEST_NAME:
            problem = f"{show(name)} can't be the name of a file"
            fix = f"give names without slashes, of at most {_LONGEST_NAME} bytes"
        elif count > 1:
            problem = f"{count} parts would be called {show(name)}"
            fix = "give each a name of its own; * stands for the name of the tensor"
        else:
            continue
        raise SplitError(PART_NAMES, problem, fix, parameter="names")
