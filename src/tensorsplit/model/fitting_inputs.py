"""Shapes and small values for the inputs that are not given, such that the model runs on them.

The analysis runs with a name for every open dimension and every element of a small integer input.
What it knows of the inputs of a node then is what the node requires: not to be refused once numbers
stand for the names. A search changes the numbers until no node is refused.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import chain, product
from math import isfinite, prod
from typing import Any

import numpy as np
import onnx_ir as ir

from tensorsplit.core.dimensions import Dim, are_known, is_known
from tensorsplit.core.errors import OUTPUT_COUNT, SplitError
from tensorsplit.model.exactness import MOVES
from tensorsplit.model.feeds import DeclaredInput, check_feeds
from tensorsplit.model.graph.calls import inline
from tensorsplit.model.graph.facts import Fact, Tensor, tensor_of
from tensorsplit.model.graph.facts import Sequence as SequenceFact
from tensorsplit.model.graph.nodes import NodeRef, is_split, walk
from tensorsplit.model.graph.tensors import Array
from tensorsplit.model.infer.analysis import Facts, analyse
from tensorsplit.model.infer.node_outputs import refusal_of
from tensorsplit.model.infer.sequence_operators import check_position
from tensorsplit.model.infer.splits import split_of
from tensorsplit.model.infer.validation import is_checked
from tensorsplit.model.reading import OnnxModel

OPEN_DIMENSION = 7
"""What a dimension is that nothing fixes."""

_NAME = re.compile(r"[^\W\d]\w*")
_LENGTH, _LENGTHS = 3, range(17)
_LARGE, _LARGEST = 1 << 20, 100
_MOST_ELEMENTS = 64
_RANKS = ((2, 1, 3, 4), (0, 1, 2))
"""What is tried for inputs without a rank: of floats and others, and of whole numbers."""

_ANALYSED = 1 << 14
"""So many nodes are analysed at most where numbers are tried one by one."""

_STEPS = 60
_MOST_RANDOM = 24
_ALWAYS = range(1, 65)
"""Numbers that are always tried."""

_FEW = 9
"""Elements that are named are below it at first."""

_SHOWN = 4

Values = Mapping[str, int]
"""A number for each name."""


@dataclass
class FittingInputs:
    """What was found for the inputs that are not given.

    Attributes:
        wanted: These inputs.
        facts: What each is to be; the elements of those that may have any are None.
        ranges: The numbers that such elements may be, where not all are fine.
        problem: Why nothing fits; None if something does.
        refused: How many nodes refuse what was found.
    """

    wanted: Sequence[DeclaredInput]
    facts: dict[str, Fact]
    ranges: dict[str, range]
    problem: SplitError | None
    refused: int

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The shape of each; of a sequence that of its tensors."""
        return {
            name: getattr(fact, "part" if isinstance(fact, SequenceFact) else "shape")
            for name, fact in self.facts.items()
        }

    def values(self, rng: np.random.Generator) -> dict[str, object]:
        """Return a value for each: of any that fit a random one, always a small whole number.

        Every engine holds these exactly in every type. An optional is empty.
        """
        return {entry.name: self._value(rng, entry) for entry in self.wanted}

    def _value(self, rng: np.random.Generator, entry: DeclaredInput) -> object:
        fact: Any = self.facts[entry.name]
        if entry.kind.startswith("optional"):
            return None
        fit = self.ranges.get(entry.name, range(1, _LARGEST))
        if entry.kind == "sequence":
            return [_random(rng, fact.part, fact.element_type, fit) for _ in range(fact.count)]
        if fact.values is not None:
            return np.array(fact.values, fact.element_type.numpy()).reshape(fact.shape)
        return _random(rng, fact.shape, fact.element_type, fit)


def _random(
    rng: np.random.Generator, shape: tuple[int, ...], kind: ir.DataType | None, fit: range
) -> Array:
    try:
        numbers = rng.integers(fit.start, min(fit.stop, _LARGEST), shape)
    except ValueError:  # more bytes than can be counted
        raise MemoryError from None
    if kind == ir.DataType.STRING:
        return np.array([f"s{number}" for number in numbers.flat], object).reshape(shape)
    made = numbers % 2 == 0 if kind == ir.DataType.BOOL else numbers
    return np.asarray(made).astype((kind or ir.DataType.FLOAT).numpy())


@dataclass
class CompletedInputs:
    """What a model is fed where random values stand for the inputs that are not given.

    Attributes:
        feeds: By name, the given inputs and the random ones.
        random: The shapes of the random ones; if nothing fits, shapes that would.
        problem: Why nothing fits; None if something does.
    """

    feeds: dict[str, object]
    random: Mapping[str, Sequence[int]] = field(default_factory=dict)
    problem: SplitError | None = None


def complete_inputs(
    source: OnnxModel,
    given: Mapping[str, object],
    shapes: Mapping[str, tuple[int, ...]],
    seed: int,
) -> CompletedInputs:
    """Add random values that fit the model, for the inputs that have neither value nor default.

    Args:
        source: The model, which is left as it is.
        given: What is fed already, by name.
        shapes: The shapes that some of the other inputs are to have, by name.
        seed: Decides which values are taken.
    """
    others = [entry for entry in source.inputs if entry.name not in given]
    wanted = [entry for entry in others if not entry.has_default or entry.name in shapes]
    if not wanted:
        return CompletedInputs(dict(given))
    fit = fit_inputs(source, wanted, given, shapes, seed)
    if fit.problem is not None:  # perhaps because of a default
        both = [entry for entry in others if entry in wanted or is_whole(entry)]
        other = fit_inputs(source, both, given, shapes, seed)
        fit, wanted = (fit, wanted) if other.problem else (other, both)
    made = CompletedInputs({**given, **fit.values(np.random.default_rng(seed))})
    try:
        check_feeds(source.inputs, made.feeds)
    except SplitError as error:  # a shape that is given contradicts the declared one
        fit.problem = error
    made.random, made.problem = fit.shapes, fit.problem
    if made.problem is not None:
        other = fit_inputs(source, wanted, given, {}, seed)
        made.random = made.random if other.problem else other.shapes
    return made


def fit_inputs(
    source: OnnxModel,
    wanted: Sequence[DeclaredInput],
    given: Mapping[str, object],
    shapes: Mapping[str, tuple[int, ...]],
    seed: int,
) -> FittingInputs:
    """Find shapes and small values for inputs, such that no split of the model refuses them.

    Args:
        source: The model, which is left as it is.
        wanted: The inputs.
        given: What is fed to the others.
        shapes: The shapes that some of the inputs are to have.
        seed: Decides where several numbers would do.
    """
    fed = check_feeds([entry for entry in source.inputs if entry.name in given], given)
    sizes: dict[str, int] = {}
    for entry in source.inputs:
        fixed = shapes.get(entry.name, getattr(fed.get(entry.name), "shape", ()))
        pairs = zip(entry.shape or (), fixed, strict=False)
        sizes.update((dim, size) for dim, size in pairs if isinstance(dim, str))
    wanted = [
        entry._replace(shape=shapes[entry.name], ranges=None) if entry.name in shapes else entry
        for entry in wanted
    ]
    model, rng = source.model, np.random.default_rng(seed)
    if model.functions:  # inlined calls are known apart
        with suppress(Exception):  # onnx-ir raises of many kinds for calls that are not well-formed
            inline(inlined := model.clone())
            model = inlined
    found = list[FittingInputs]()
    tries = iter(range(_ANALYSED // max(1, sum(1 for _ in walk(model)))))
    open_ranks = {is_whole(entry) for entry in wanted if entry.shape is None}
    ranks = (every[: None if k in open_ranks else 1] for k, every in enumerate(_RANKS))
    for pair in product(*ranks):
        entries = [
            entry._replace(shape=(None,) * pair[is_whole(entry)]) if entry.shape is None else entry
            for entry in wanted
        ]
        found.append(_Attempt(model, entries, fed, sizes, rng).found(tries))
        if not found[-1].problem and not found[-1].refused:
            break
    return min(found, key=lambda each: (bool(each.problem), each.refused))


def is_whole(entry: DeclaredInput) -> bool:
    """Return whether an input has whole numbers, or conditions."""
    return (entry.element_type or "").startswith(("int", "uint", "bool"))


@dataclass
class _Attempt:
    """One attempt, in which every input has a rank.

    Attributes:
        dims: The names that stand for what is open.
        labels: What these are, for a message.
    """

    model: ir.Model
    wanted: Sequence[DeclaredInput]
    given: Mapping[str, object]
    sizes: Mapping[str, int]
    rng: np.random.Generator
    dims: dict[str, Dim] = field(default_factory=dict)
    labels: dict[str, str] = field(default_factory=dict)
    values: dict[str, int] = field(default_factory=dict)
    allowed: dict[str, range] = field(default_factory=dict)

    def found(self, tries: Iterator[int]) -> FittingInputs:
        """Return the best that is found; so many numbers are tried one by one."""
        self.facts = {entry.name: self._fact(entry) for entry in self.wanted}
        for is_fixing in (False, True):
            if not self._name_elements(is_fixing=is_fixing) and is_fixing:
                break
            facts = analyse(self.model, self._feeds(None), declarations=False)
            needs = _requirements(self.model, facts, self.values)
            self.values = _search(needs, self.values, self.allowed, self.rng)
        problem = self._conflict(needs) or self._try_all(needs, tries)
        refused = sum(need.refusal(self.values) is not None for need in needs)
        facts = analyse(self.model, self._feeds(self.values), declarations=False)
        made = {name: _substituted(fact, self.values) for name, fact in self.facts.items()}
        return FittingInputs(self.wanted, made, _ranges(self.model, facts), problem, refused)

    def _open(self, label: str, start: int, allowed: range) -> Dim:
        """Return the name of what is open, with a number to start with and those that it may be."""
        if label not in self.dims:
            name = f"open_{len(self.dims)}"
            self.labels[name], self.values[name], self.allowed[name] = label, start, allowed
            self.dims[label] = ir.SymbolicDim(name)
        return self.dims[label]

    def _fact(self, entry: DeclaredInput) -> Fact:
        """Return what is known of an input, with names for its open dimensions."""
        shape, dims = entry.shape or (), list[Dim]()
        bounds = entry.ranges or ((0, None),) * len(shape)
        for axis, (dim, (low, high)) in enumerate(zip(shape, bounds, strict=True)):
            fit = range(low, _LARGE if high is None else high + 1)
            start = min(max(OPEN_DIMENSION, low), fit.stop - 1)
            made: Dim = dim
            if dim is None:
                made = self._open(f"dimension {axis} of '{entry.name}'", start, fit)
            elif isinstance(dim, str):
                made = self._dimension(dim, start, fit)
            dims.append(made)
        kind = None if entry.element_type is None else ir.DataType[entry.element_type.upper()]
        if entry.kind != "sequence":
            return Tensor(kind, tuple(dims))
        count = self._open(f"the length of '{entry.name}'", _LENGTH, _LENGTHS)
        return SequenceFact(kind, tuple(dims), count)

    def _dimension(self, text: str, start: int, allowed: range) -> Dim:
        """Return what stands for a name, or an expression of names that stand elsewhere alone."""

        def renamed(found: re.Match[str]) -> str:
            return str(self._dimension(found[0], OPEN_DIMENSION, range(_LARGE)))

        if text in self.sizes:
            return self.sizes[text]
        with suppress(Exception):  # any text may be a name, and a parser may raise anything
            names = ir.SymbolicDim(text).free_symbols()
            plain = {*self.sizes, *chain(*(entry.shape or () for entry in self.wanted))}
            if names and text not in names and names <= plain:
                made = ir.SymbolicDim(_NAME.sub(renamed, text))
                return made if _names_in(made) else _number(made, {})
        return self._open(f"the dimension {text}", start, allowed)

    def _name_elements(self, *, is_fixing: bool) -> bool:
        """Name the elements of small inputs of whole numbers, and of conditions.

        Where one dimension is open nothing is done, unless it is to be fixed as it is now.
        """
        named = False
        for entry in self.wanted:
            fact, kind = self.facts[entry.name], entry.element_type or ""
            is_lengths = self.model.opset_imports.get("") == 1 and "float" in kind
            if not isinstance(fact, Tensor) or not (is_whole(entry) or is_lengths):
                continue
            shape = fact.shape or ()
            numbers = tuple(_number(dim, self.values) or 0 for dim in shape)
            is_small = len(shape) <= 2 and prod(numbers) <= _MOST_ELEMENTS
            are_open = sum(not is_known(dim) for dim in shape)
            if fact.values is not None or not is_small or are_open > is_fixing:
                continue
            for dim, number in zip(map(str, shape), numbers, strict=True):
                self.allowed[dim] = range(number, number + 1)
            is_flag = kind == "bool"
            fit = range(-1 if kind.startswith("int") else 0, 2 if is_flag else _LARGE)
            first, stop = (0, 2) if is_flag else (1, _FEW)
            starts = map(int, self.rng.integers(first, stop, prod(numbers)))
            values = tuple(
                self._open(f"element {index} of '{entry.name}'", start, fit)
                for index, start in enumerate(starts)
            )
            self.facts[entry.name] = replace(fact, shape=numbers, values=values)
            named = True
        return named

    def _conflict(self, needs: Sequence[_Requirement]) -> SplitError | None:
        """Return why no numbers were found for a split or position of the main graph."""
        grave = [need for need in needs if need.weight == _MAIN]
        broken = [need for need in grave if need.refusal(self.values)]
        refusal = broken[0].refusal(self.values) if broken else None
        for name in broken[0].names if refusal else ():
            fit: dict[str, list[int]] = {
                need.ref.path: [
                    number
                    for number in need.candidates(name, self.values)
                    if number > 0 and number in self.allowed[name]
                    if not need.refusal({**self.values, name: number})
                ]
                for need in grave
                if name in need.names
            }
            if refusal and all(fit.values()) and not set.intersection(*map(set, fit.values())):
                numbers = {path: " or ".join(map(str, each[:_SHOWN])) for path, each in fit.items()}
                said = " and ".join(f"{each} for '{path}'" for path, each in numbers.items())
                problem = f"{self.labels[name]} must be {said}, which no number satisfies"
                made = SplitError(refusal.kind, problem, operator=refusal.operator)
                return made.located(node=refusal.node)
        return refusal

    def _try_all(self, needs: Sequence[_Requirement], tries: Iterator[int]) -> SplitError | None:
        """Try every number for each name where splits refuse what the names could not tell.

        Returns what the splits that run refuse in the end.
        """

        def burden(values: Values) -> tuple[tuple[int, int], SplitError | None]:
            facts = analyse(self.model, self._feeds(values), declarations=False)
            running = [refusal.error for refusal in facts.refusals if refusal.runs]
            return (len(running), _burden(needs, values)), running[0] if running else None

        least, problem = burden(self.values)
        # A length or a position, named last, may change without any other; hence these come first.
        # Twice, as later results may decide more about earlier ones
        for name, number in product([*reversed(self.allowed)] * 2, (*_ALWAYS, 0)):
            values = {**self.values, name: number}
            if number not in self.allowed[name]:
                continue
            if problem is None or next(tries, None) is None:
                break
            if (tried := burden(values))[0] < least:
                self.values, (least, problem) = values, tried
        return problem

    def _feeds(self, values: Values | None) -> dict[str, object]:
        """Return what is given, and what is known of the rest: with names, or numbers for them."""
        feeds: dict[str, object] = dict(self.given)
        for entry in self.wanted:
            fact = self.facts[entry.name]
            if entry.kind in ("tensor", "sequence"):
                feeds[entry.name] = fact if values is None else _substituted(fact, values)
        return feeds


_MAIN = 10_000
"""The weight of a refused split in the main graph; it is less in a body, which may not run."""


@dataclass(eq=False)
class _Requirement:
    """What one node requires: not to be refused.

    Attributes:
        inputs: What is known of each input, with names in it.
        names: The names on which it depends, in order.
        weight: Its share in the cost of numbers that do not meet it.
    """

    ref: NodeRef
    inputs: list[Fact]
    names: tuple[str, ...]
    weight: int
    _seen: dict[tuple[int, ...], SplitError | None] = field(default_factory=dict)

    def refusal(self, values: Values) -> SplitError | None:
        """Return why the node refuses numbers; None if it does not."""
        key = tuple(values[name] for name in self.names)
        if key not in self._seen:
            error = _refusal(self.ref, [_substituted(fact, values) for fact in self.inputs])
            self._seen[key] = error and error.located(node=self.ref.path)
        return self._seen[key]

    def numbers(self, values: Values) -> set[int]:
        """Return small numbers, those known of the inputs, and sums and products of lists."""
        count = len(self.ref.node.outputs)
        found = {*_ALWAYS, count, 2 * count}
        for dims in _lists(self.inputs):
            numbers = [n for dim in dims if (n := _number(dim, values)) is not None]
            found |= {*numbers, sum(numbers), prod(n for n in numbers if n > 0)}
        return found

    def candidates(self, name: str, values: Values) -> list[int]:
        """Return numbers for a name, those too that make something equal to another number."""
        numbers, now = self.numbers(values), values[name]
        found = {-1, 0, *numbers}
        for dim in chain(*_lists(self.inputs)):
            if name in _names_in(dim) and str(dim) != name:
                here, there = (_number(dim, {**values, name: each}) for each in (now, now + 1))
                if here is not None and there is not None and here != there:
                    found |= {now + (number - here) // (there - here) for number in numbers}
        return sorted(found)

    def shares(
        self, names: Sequence[str], values: Values, rng: np.random.Generator
    ) -> Iterator[dict[str, int]]:
        """Yield elements of one list that sum to a number, or are below one."""
        for elements in (tensor_of(fact).values or () for fact in self.inputs):
            free = sorted(frozenset(names).intersection(chain(*map(_names_in, elements))))
            rest = sum(_number(dim, {**values, **dict.fromkeys(free, 0)}) or 0 for dim in elements)
            for number in sorted(self.numbers(values)) if free else ():
                below = rng.integers(0, max(1, min(number, _LARGE)), len(free))
                parts = rng.multinomial(max(0, number - rest), [1 / len(free)] * len(free))
                yield from (dict(zip(free, map(int, made), strict=True)) for made in (below, parts))


def _requirements(model: ir.Model, facts: Facts, names: Iterable[str]) -> list[_Requirement]:
    """Return what the nodes of a model require of the names in the facts, each once."""
    open_names, found = set(names), dict[object, _Requirement]()
    for ref in walk(model):
        inputs = [facts.of(value) for value in ref.node.inputs]
        used = open_names.intersection(chain(*map(_names_in, chain(*_lists(inputs)))))
        if not used or facts.never_runs(ref.path):
            continue
        is_hopeless = _refusal(ref, inputs) is not None  # whatever the numbers
        weight = _MAIN if ref.scope is model.graph else _MAIN // 100
        key: tuple[object, ...] = (ref.path,)
        if is_other := not is_checked(ref.node):
            weight, key = 1, (ref.op_type, *map(str, ref.node.attributes.values()), *inputs)
        if not (is_other and (is_hopeless or ref.node.domain)):
            used = set() if is_hopeless else used
            found.setdefault(key, _Requirement(ref, inputs, tuple(sorted(used)), weight))
    return list(found.values())


def _refusal(ref: NodeRef, inputs: list[Fact]) -> SplitError | None:
    """Return why a node is refused on what is known of its inputs, by our rules or onnx's."""
    try:
        if is_split(ref.node):
            return next(iter(split_of(ref.node, ref.opset, inputs).errors), None)
        if is_checked(ref.node):
            check_position(ref.node, inputs)
            return None
    except SplitError as error:
        return error
    refusal = refusal_of(ref.node, inputs, ref.opsets)
    place, fit = _range_of(ref, inputs)
    values = tensor_of(inputs[place] if 0 < place < len(inputs) else None).values or ()
    if fit and any(is_known(value) and not -fit.stop <= value < fit.stop for value in values):
        refusal = refusal or f"an index is not in {fit}"
    return SplitError(OUTPUT_COUNT, refusal) if refusal else None


def _burden(needs: Iterable[_Requirement], values: Values) -> int:
    """Return the weighted count of the requirements that the numbers do not meet."""
    return sum(need.weight for need in needs if need.refusal(values) is not None)


def _search(
    needs: Sequence[_Requirement],
    start: Values,
    allowed: Mapping[str, range],
    rng: np.random.Generator,
) -> dict[str, int]:
    """Return numbers that meet requirements, as near to those of the start as is found.

    One broken requirement after the other is met, by the change that breaks the fewest others; a
    name that was changed before is changed last.
    """
    values, best, changed = dict(start), dict(start), Counter[str]()
    concerned = {name: [need for need in needs if name in need.names] for name in allowed}

    def cost(change: Values) -> tuple[float, ...]:
        touched = dict.fromkeys(chain(*(concerned[name] for name in change)))
        return (
            _burden(touched, {**values, **change}) - _burden(touched, values),
            sum(number < 1 for number in change.values()),
            sum(changed[name] for name in change),
            sum(abs(number - start[name]) for name, number in change.items()),
            rng.random(),
        )

    for step in range(_STEPS):
        broken = [need for need in needs if need.refusal(values) and set(need.names) & set(allowed)]
        most = max((need.weight for need in broken), default=0)
        gravest = [need for need in broken if need.weight == most]
        if not gravest:
            break
        need = gravest[step % len(gravest)]
        names = [name for name in need.names if name in allowed]
        singles = ({name: n} for name in names for n in need.candidates(name, values))
        for changes in (singles, need.shares(names, values, rng)):
            fit = [
                change
                for change in changes
                if all(number in allowed[name] for name, number in change.items())
                and need.refusal({**values, **change}) is None
            ]
            if fit:
                change = min(fit, key=cost)
                break
        else:
            name = str(rng.choice(names))
            change = {name: int(rng.choice(allowed[name][:_MOST_RANDOM]))}
        values.update(change)
        changed.update(change.keys())
        if _burden(needs, values) < _burden(needs, best):
            best = dict(values)
    return best


def _lists(facts: Iterable[Fact]) -> Iterator[Sequence[Dim]]:
    """Yield the shapes and the elements in facts."""
    for fact in facts:
        if isinstance(fact, Tensor):
            yield from (fact.shape or (), fact.values or ())
        elif isinstance(fact, SequenceFact):
            yield from ((fact.count,), fact.part or (), *(part or () for part in fact.parts or ()))


def _names_in(dim: Dim) -> frozenset[str]:
    """Return the names in a dimension."""
    return dim.free_symbols() if isinstance(dim, ir.SymbolicDim) else frozenset()


def _number(dim: Dim, values: Values) -> int | None:
    """Return a dimension with numbers for the names in it; None where one is missing."""
    if not isinstance(dim, ir.SymbolicDim):
        return int(dim) if isinstance(dim, (int, float)) and isfinite(dim) else None
    if (text := str(dim)) in values:
        return values[text]
    names = _names_in(dim)
    if not names <= values.keys():
        return None
    number: object = dim.evaluate({name: values[name] for name in names})
    return number if is_known(number) else None


def _substituted(fact: Fact, values: Values) -> Fact:
    """Return a fact with numbers for the names in it."""

    def numbers(dims: Sequence[Dim] | None) -> tuple[Dim, ...] | None:
        return None if dims is None else tuple(_number(dim, values) for dim in dims)

    if isinstance(fact, Tensor):
        return replace(fact, shape=numbers(fact.shape), values=numbers(fact.values))
    if isinstance(fact, SequenceFact):
        parts = None if fact.parts is None else tuple(map(numbers, fact.parts))
        count = _number(fact.count, values)
        return replace(fact, part=numbers(fact.part), count=count, parts=parts)
    return fact


def _range_of(ref: NodeRef, inputs: Sequence[Fact]) -> tuple[int, range]:
    """Return the input of a node whose elements must lie in a range, and the range, if known."""
    shape, name = tensor_of(inputs[0] if inputs else None).shape or (), ref.op_type
    axis = ref.node.attributes.get("axis")
    if name in ("Resize", "Upsample"):  # by which dimensions are multiplied
        return (2 if name == "Resize" else 1), range(1, 3)
    if name in ("CumSum", "CumProd"):
        return 1, range(len(shape))
    if not name.startswith(("Gather", "Scatter", "RoiAlign")) and not name.endswith("Loss"):
        return 0, range(0)
    first = int(name.endswith("Loss")) if axis is None or axis.is_ref() else axis.as_int()
    dims = shape if name.endswith("ND") else shape[first : first + 1 or None]
    least = min(dims) if dims and are_known(dims) else 0
    return (2 if name == "RoiAlign" else 1), range(least)


def _ranges(model: ir.Model, facts: Facts) -> dict[str, range]:
    """Return, by input of the graph, numbers that fit where its elements are indices or factors.

    What is calculated from 0 and 1 is small as well.

    Args:
        model: The model.
        facts: What is known where the shapes of the inputs are.
    """
    found: dict[str, range] = {}
    for ref in walk(model):
        place, fit = _range_of(ref, [facts.of(value) for value in ref.node.inputs])
        for name, is_moved in _origins(ref.input(place)) if place and not ref.node.domain else ():
            numbers = (fit if is_moved else fit[:2]) or range(1)
            held = found.get(name, numbers)
            both = range(max(held.start, numbers.start), min(held.stop, numbers.stop))
            found[name] = both or held
    return found


def _origins(value: ir.Value | None) -> set[tuple[str, bool]]:
    """Return the inputs of the graph from which elements come, and whether they are moved only."""
    found, pending = set[tuple[str, bool]](), [(value, True)]
    seen = set(pending)
    for held, is_moved in pending:
        node = None if held is None else held.producer()
        if held is not None and held.is_graph_input():
            found.add((held.name or "", is_moved))
        if node is not None and node.op_type not in ("Shape", "Size"):
            moves = is_moved and (node.op_type in MOVES or node.op_type == "Cast" or is_split(node))
            more = {(each, moves) for each in node.inputs} - seen
            pending += more
            seen |= more
    return found
