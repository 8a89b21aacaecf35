"""Shapes and small values for the inputs that are not given, such that the model runs on them."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import product
from time import monotonic
from typing import Any

import numpy as np
import onnx_ir as ir
from onnx_ir.passes.common import InlinePass

from tensorsplit.core.dimensions import Dim
from tensorsplit.core.errors import SplitError
from tensorsplit.model.feeds import DeclaredInput
from tensorsplit.model.graph.facts import Fact, Tensor, of_parts
from tensorsplit.model.graph.facts import Sequence as SequenceFact
from tensorsplit.model.graph.nodes import is_split, model_opsets, record_of
from tensorsplit.model.infer.analysis import analyse
from tensorsplit.model.infer.requirements import (
    Requirement,
    conflict,
    fitted,
    input_ranks,
    limits,
    names_in,
    number_of,
    operand_names,
    requirements,
)
from tensorsplit.model.infer.sequence_operators import POSITIONS

OPEN_DIMENSION = 7
"""What a dimension is that nothing fixes."""

_NAME = re.compile(r"[^\W\d]\w*")
_LENGTH = 3
_DIMENSIONS = range(1 << 20)
_COUNTS = range(17)
_ELEMENTS = range(-1, 1 << 20)
_MOST_ELEMENTS = 64
_FEW = 5
_RANKS = (2, 1, 3, 4)
_DRAWS = 6
_SECONDS = 3.0


@dataclass
class FittingInputs:
    """What was found for the inputs that are not given.

    Attributes:
        shapes: A shape for each; of a sequence that of its tensors.
        counts: How many tensors each sequence has.
        elements: The elements of those that are sizes, positions or conditions.
        ranges: The numbers that the elements of others may be.
        problem: Why no shapes fit; None if some were found.
    """

    shapes: dict[str, tuple[int, ...]] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)
    elements: dict[str, tuple[int, ...]] = field(default_factory=dict)
    ranges: dict[str, range] = field(default_factory=dict)
    problem: SplitError | None = None


def fit_inputs(
    model: ir.Model,
    wanted: Sequence[DeclaredInput],
    given: Mapping[str, Any],
    sizes: Mapping[str, int],
    rng: np.random.Generator,
) -> FittingInputs:
    """Find shapes and small values for inputs, such that no split of the model refuses them.

    Args:
        model: The model, which is left as it is.
        wanted: The inputs, with the shapes that they may have.
        given: What is fed to the others, as for `analyse`.
        sizes: The dimensions that are fixed, by name.
        rng: Decides where several numbers would do.
    """
    found: FittingInputs | None = None
    model = _inlined(model)
    ranks = _RANKS if any(entry.shape is None for entry in wanted) else _RANKS[:1]
    draws = _DRAWS if any(entry.element_type == "bool" for entry in wanted) else 1
    for rank, _ in product(ranks, range(draws)):
        made = _Fitting(model, wanted, given, sizes=sizes, rng=rng, rank=rank).found()
        found = found or made
        if made.problem is None:
            return made
    return found or FittingInputs()


class _Fitting:
    """One attempt, in which inputs of unknown rank have one rank."""

    def __init__(
        self,
        model: ir.Model,
        wanted: Sequence[DeclaredInput],
        given: Mapping[str, Any],
        *,
        sizes: Mapping[str, int],
        rng: np.random.Generator,
        rank: int,
    ) -> None:
        self._model, self._wanted, self._given, self._rng = model, wanted, given, rng
        self._opset = model.opset_imports.get("", 0)
        self._labels: dict[str, str] = {}
        self._values: dict[str, int] = {}
        self._allowed: dict[str, range] = {}
        self._names: dict[str, str] = {}
        self._elements: dict[str, tuple[Dim, ...]] = {}
        self._operands: set[str] = set()
        for name, size in sizes.items():
            self._named(name, f"the dimension {name}", size, range(size, size + 1))
        self._shapes = {entry.name: self._shape(entry, rank) for entry in wanted}
        self._counts = {
            entry.name: self._fresh(f"the length of '{entry.name}'", _LENGTH, _COUNTS)
            for entry in wanted
            if entry.kind == "sequence"
        }

    def found(self) -> FittingInputs:
        """The best that is found."""
        while True:
            self._name_elements()
            facts = analyse(self._model, self._feeds(_symbol), declarations=False)
            self._operands |= operand_names(self._model, facts)
            free = self._free()
            allowed = {name: fit for name, fit in self._allowed.items() if name not in free}
            needs = requirements(self._model, facts, allowed)
            self._values = fitted(needs, self._values, allowed, self._rng)
            if not self._fix_small_shapes():
                break
        problem = conflict(needs, self._values, allowed, self._labels)
        if problem is None:
            problem = self._try_all(needs)
        facts = analyse(self._model, self._feeds(self._number), declarations=False)
        return FittingInputs(
            {name: self._numbers(shape) for name, shape in self._shapes.items()},
            {name: self._values[count] for name, count in self._counts.items()},
            {
                name: self._numbers(elements)
                for name, elements in self._elements.items()
                if not free.issuperset(elements)
            },
            limits(self._model, facts),
            problem,
        )

    def _fresh(self, label: str, start: int, allowed: range) -> str:
        """A new name, of which nobody else knows."""
        name = f"open_{len(self._values)}"
        while name in self._values or name in self._names:
            name += "_"
        self._labels[name], self._values[name], self._allowed[name] = label, start, allowed
        return name

    def _named(self, text: str, label: str, start: int, allowed: range) -> str:
        """The name that stands for a dimension's, which may be any text."""
        if text not in self._names:
            self._names[text] = self._fresh(label, start, allowed)
        return self._names[text]

    def _shape(self, entry: DeclaredInput, rank: int) -> tuple[Dim, ...]:
        shape = entry.shape
        if shape is None:
            shape = (None,) * _operand_rank(self._model, entry.name, rank)
        ranges = entry.ranges or ((0, None),) * len(shape)
        made: list[Dim] = []
        for axis, (dim, (low, high)) in enumerate(zip(shape, ranges, strict=True)):
            stop = _DIMENSIONS.stop if high is None else high + 1
            start = min(max(OPEN_DIMENSION, low), stop - 1)
            fresh = (start, range(low, stop))
            if isinstance(dim, int):
                made.append(dim)
            elif dim is None:
                made.append(self._fresh(f"dimension {axis} of '{entry.name}'", *fresh))
            else:
                made.append(
                    self._expression(dim) or self._named(dim, f"the dimension {dim}", *fresh)
                )
        return tuple(made)

    def _expression(self, text: str) -> Dim:
        """A declared dimension such as ``N + 1``, of names that stand elsewhere alone."""
        names = names_in(text)
        plain = {dim for entry in self._wanted for dim in entry.shape or () if isinstance(dim, str)}
        if not names or text in names or not names <= plain | self._names.keys():
            return None
        for name in names:
            self._named(name, f"the dimension {name}", OPEN_DIMENSION, _DIMENSIONS)
        return ir.SymbolicDim(_NAME.sub(lambda found: self._names.get(found[0], found[0]), text))

    def _name_elements(self) -> None:
        """Name the elements of small inputs of whole numbers; conditions are decided at once."""
        for entry in self._wanted:
            shape = self._shapes[entry.name]
            if entry.name in self._elements or entry.kind != "tensor" or len(shape) > 1:
                continue
            (count,) = shape or (1,)
            kind = entry.element_type or ""
            if not isinstance(count, int) or count > _MOST_ELEMENTS:
                continue
            if kind == "bool":
                self._elements[entry.name] = tuple(map(int, self._rng.integers(0, 2, count)))
            elif kind.startswith(("int", "uint")) or (self._opset == 1 and "float" in kind):
                self._elements[entry.name] = tuple(
                    self._fresh(
                        f"element {index} of '{entry.name}'" if shape else f"'{entry.name}'",
                        int(self._rng.integers(1, _FEW)),
                        _ELEMENTS if kind.startswith("int") else _ELEMENTS[1:],
                    )
                    for index in range(count)
                )

    def _free(self) -> set[str]:
        """The names of elements that are data, which may be anything."""
        named = {name for held in self._elements.values() for name in held if isinstance(name, str)}
        return named - self._operands

    def _fix_small_shapes(self) -> bool:
        """Fix the shapes of inputs whose elements could be named then; whether there are such."""
        changed = False
        for entry in self._wanted:
            shape = self._shapes[entry.name]
            is_number = (entry.element_type or "").startswith(("int", "uint", "bool"))
            is_small = entry.kind == "tensor" and len(shape) == 1
            if is_small and is_number and not isinstance(shape[0], int):
                (length,) = self._numbers(shape)
                self._shapes[entry.name] = (length,)
                if isinstance(shape[0], str):
                    self._allowed[shape[0]] = range(length, length + 1)
                changed = True
        return changed

    def _try_all(self, needs: Sequence[Requirement]) -> SplitError | None:
        """Try every number for each name where splits refuse what the names could not tell.

        Returns what the splits that run refuse in the end.
        """
        deadline = monotonic() + _SECONDS
        dims = {name for shape in self._shapes.values() for name in shape}
        burden, problem = self._burden(needs)
        if problem is None:
            return None
        # A length or a position may change without any other; hence these come first
        names = [name for name in self._allowed if name in self._operands - dims]
        names += [name for name in self._allowed if name in dims]
        # Twice, as what comes later may let more be told of what came before
        for is_last, name in product((False, True), names):
            before = self._values
            numbers = [*range(1, _MOST_ELEMENTS + 1), *([0] if is_last or name not in dims else [])]
            for number in (each for each in numbers if each in self._allowed[name]):
                if not any(burden) or monotonic() > deadline:
                    return problem
                kept, self._values = self._values, {**before, name: number}
                now, found = self._burden(needs)
                if now < burden:
                    burden, problem = now, found
                else:
                    self._values = kept
        return problem

    def _burden(self, needs: Sequence[Requirement]) -> tuple[tuple[int, ...], SplitError | None]:
        """How grave it is what the numbers leave broken, and what is refused that runs."""
        facts = analyse(self._model, self._feeds(self._number), declarations=False)
        running = [refusal.error for refusal in facts.refusals if refusal.runs]
        others = sum(each.refusal(self._values) is not None for each in needs)
        return (len(running), others), running[0] if running else None

    def _number(self, dim: Dim) -> int | None:
        return number_of(dim, self._values)

    def _numbers(self, dims: Sequence[Dim]) -> tuple[int, ...]:
        return tuple(max(self._number(dim) or 0, -1) for dim in dims)

    def _feeds(self, of: Callable[[Dim], Dim]) -> dict[str, Any]:
        """What is given, and what is known of the rest, with its dimensions as ``of`` has them."""
        feeds: dict[str, Any] = dict(self._given)
        for entry in self._wanted:
            feeds[entry.name] = self._fact(entry, of)
        return feeds

    def _fact(self, entry: DeclaredInput, of: Callable[[Dim], Dim]) -> Fact | None:
        kind = None if entry.element_type is None else ir.DataType[entry.element_type.upper()]
        shape = tuple(map(of, self._shapes[entry.name]))
        if entry.kind == "sequence":
            count = of(self._counts[entry.name])
            is_counted = isinstance(count, int)
            return (
                of_parts(kind, [shape] * count) if is_counted else SequenceFact(kind, shape, count)
            )
        if entry.kind != "tensor":
            return None
        elements = self._elements.get(entry.name)
        return Tensor(kind, shape, None if elements is None else tuple(map(of, elements)))


def _symbol(dim: Dim) -> Dim:
    return ir.SymbolicDim(dim) if isinstance(dim, str) else dim


def _operand_rank(model: ir.Model, name: str, otherwise: int) -> int:
    """The rank of an input without one: what lengths, an axis or a position have."""
    value = next((each for each in model.graph.inputs if each.name == name), None)
    for node, place in value.uses() if value is not None else ():
        if is_split(node) and place > 0:
            with suppress(SplitError, IndexError):  # which the check of the node tells
                return input_ranks(record_of(node, model_opsets(model).get("", 0)))[place]
        if node.domain == "" and POSITIONS.get(node.op_type) == place:
            return 0
    return otherwise


def _inlined(model: ir.Model) -> ir.Model:
    """The model with its calls inlined, so that each is known apart; itself where that fails."""
    if not model.functions:
        return model
    with suppress(Exception):  # onnx-ir raises of many kinds for calls that are not well-formed
        return InlinePass()(model.clone()).model
    return model
