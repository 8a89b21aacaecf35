"""Random inputs that fit a model: shapes and small values with which it runs.

A proposal gives a number to each open dimension and each element of an input of whole numbers, and
the analysis tells which nodes refuse them. Each number is changed once to see what of the gravest
refusal depends on it. It is then set to what the refusal wants, `SplitError.wants`; operators other
than splits do not report what they want, and get numbers that one of their others is. Of the
changes that would do, the one is taken that breaks least else.

Numbers, not names: an analysis of a whole model with numbers takes no longer than a few
evaluations of expressions of names.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from itertools import chain, islice, product
from math import prod
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import onnx_ir as ir

from tensorsplit.core.dimensions import Dim, are_known, is_known
from tensorsplit.core.errors import OUTPUT_COUNT, SEQUENCE_INDEX, SplitError
from tensorsplit.model.feeds import DeclaredInput, check_feeds
from tensorsplit.model.graph.calls import inline
from tensorsplit.model.graph.facts import Fact, SequenceFact, Tensor, as_tensor
from tensorsplit.model.graph.nodes import NodeRef, attribute_of, walk
from tensorsplit.model.graph.producers import producer_of
from tensorsplit.model.graph.split_records import is_split
from tensorsplit.model.graph.tensors import element_type_of
from tensorsplit.model.infer.analysis import Facts, analyse
from tensorsplit.model.infer.node_outputs import refusal_of
from tensorsplit.model.infer.validation import is_checked
from tensorsplit.model.reading import OnnxModel

_STARTS = ((7, range(1, 9)), (12, range(1, 4)), (4, range(1, 2)), (6, range(1)))
"""What dimensions and elements are at first, one proposal after the other."""

_RANKS = ((2, 1, 3, 4), (0, 1, 2))
"""What is tried for inputs without a rank: of floats and others, and of whole numbers."""

_LIMIT, _RANDOM_LIMIT, _MOST_ELEMENTS = 1 << 20, 100, 1 << 16
"""What is above all numbers, what is above the random ones, and how many elements are proposed."""

_STEPS, _LEAST_JUDGED, _ANALYSED = 40, 32, 1 << 14
"""How often a proposal is changed, how often it is judged, and how many nodes that may take."""

_PROBES = (12, 384)
"""By how much a number is changed to see what depends on it: most strides and counts divide them.

What has strides in a row depends on the larger one alone.
"""

_FEW, _SHOWN = 8, 4
"""How many numbers are changed one by one, and how many are named in a message."""

_RUNS = 10_000
"""The weight of a refused split that runs; that of another operator is 1."""

Numbers: TypeAlias = "dict[str, tuple[int, ...]]"
"""Numbers, by what they are of: ``the dimension N``, or ``the elements of 's'``."""

Key: TypeAlias = "tuple[int, str, int]"
Quantities: TypeAlias = "dict[Key, int]"
"""What is known of the inputs of a node, by input, kind, and place from the end."""


@dataclass
class CompletedInputs:
    """The inputs of a model, with random values for those that are not given.

    Attributes:
        feeds: By name, the given inputs and the random ones.
        random: The shapes of the random ones; if nothing fits, shapes that would.
        problem: Why nothing fits; None if something does.
    """

    feeds: dict[str, object]
    random: dict[str, Sequence[int]] = field(default_factory=dict)
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
    made = _fitting(source, wanted, given, shapes, seed)
    if made.problem is not None:  # perhaps because of a default
        both = [entry for entry in others if entry in wanted or _is_whole(entry)]
        other = _fitting(source, both, given, shapes, seed)
        made = made if other.problem else other
    try:
        check_feeds(source.inputs, made.feeds)
    except SplitError as error:  # a shape that is given contradicts the declared one
        made.problem = error
    if made.problem is not None and shapes:
        other = _fitting(source, wanted, given, {}, seed)
        made.random = made.random if other.problem else other.random
    return made


def _fitting(
    source: OnnxModel,
    wanted: Sequence[DeclaredInput],
    given: Mapping[str, object],
    shapes: Mapping[str, tuple[int, ...]],
    seed: int,
) -> CompletedInputs:
    """Return the first proposal for wanted inputs that nothing refuses, or the best."""
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
    model = source.model
    if model.functions:  # of inlined calls each one is known
        with suppress(Exception):  # onnx-ir raises of many kinds for calls that are not well-formed
            inline(inlined := model.clone())
            model = inlined
    refs, rng = list(walk(model)), np.random.default_rng(seed)
    open_ranks = {_is_whole(entry) for entry in wanted if entry.shape is None}
    floats, wholes = (_RANKS[k][: None if k in open_ranks else 1] for k in (False, True))
    tried, judged = list[_Proposal](), 0
    for start, *ranks in product(_STARTS, floats, wholes):
        entries = [
            entry._replace(shape=(None,) * ranks[_is_whole(entry)])
            if entry.shape is None
            else entry
            for entry in wanted
        ]
        tried.append(_Proposal(model, refs, entries, fed, sizes, rng, *start))
        tried[-1].repair()
        judged += len(tried[-1].judged)
        if not tried[-1].judge({}).refusals or judged * len(refs) > _ANALYSED:
            break
    return min(tried, key=lambda each: each.judge({}).burden).completed(given)


def _is_whole(entry: DeclaredInput) -> bool:
    """Return whether an input has whole numbers, or conditions."""
    return (entry.element_type or "").startswith(("int", "uint", "bool"))


def _gives_integers(node: ir.Node) -> bool:
    """Return whether a node casts to integers."""
    to = element_type_of(attribute_of(node, "to", ir.AttributeType.INT))
    return node.op_type == "Cast" and to is not None and to.is_integer()


class _Refusal(NamedTuple):
    """A node that refuses a proposal, the reason, and its weight."""

    ref: NodeRef
    error: SplitError
    weight: int


class _Verdict(NamedTuple):
    """The facts about a model for a proposal, and the refusals, by path."""

    facts: Facts
    refusals: dict[str, _Refusal]

    @property
    def burden(self) -> int:
        """The weight of all refusals."""
        return sum(refusal.weight for refusal in self.refusals.values())


class _Effect(NamedTuple):
    """The quantities that change with some numbers of a label.

    Attributes:
        held: All numbers of the label.
        place: Which of them change.
        slopes: How fast quantities of a node grow with these, and what they are now.
    """

    label: str
    held: tuple[int, ...]
    place: slice
    slopes: dict[Key, tuple[Fraction, int]]

    @property
    def old(self) -> tuple[int, ...]:
        """The numbers that change."""
        return self.held[self.place]

    def change(self, new: Iterable[int]) -> Numbers:
        """Return the change to other numbers."""
        return {self.label: (*self.held[: self.place.start], *new, *self.held[self.place.stop :])}

    def solved(self, key: Key, want: int) -> int:
        """Return the sum of the numbers with which a quantity is what is wanted."""
        slope, number = self.slopes[key]
        return sum(self.old) + round((want - number) / slope)


@dataclass
class _Proposal:
    """Numbers for all that is open in the inputs of a model.

    Attributes:
        refs: The nodes of the model.
        sizes: Dimensions with a name that are given.
        dimension: What dimensions are at first.
        elements: What elements are at first.
        allowed: What each of the numbers may be.
        judged: What came of all numbers that were tried.
    """

    model: ir.Model
    refs: Sequence[NodeRef]
    wanted: Sequence[DeclaredInput]
    given: Mapping[str, object]
    sizes: Mapping[str, int]
    rng: np.random.Generator
    dimension: int
    elements: range
    numbers: Numbers = field(default_factory=dict)
    allowed: dict[str, range] = field(default_factory=dict)
    judged: dict[frozenset[tuple[str, tuple[int, ...]]], _Verdict] = field(default_factory=dict)

    @cached_property
    def _floats(self) -> set[str | None]:
        """The inputs of floats whose elements may decide more than values.

        They are lengths of Split-1, factors, or cast to integers, such as the indices of words.
        """
        nodes = [ref.node for ref in self.refs]
        some = [node for node in nodes if is_split(node) or node.op_type in ("Resize", "Upsample")]
        read = [value for node in some for value in node.inputs[1:]]
        read += [value for node in nodes if _gives_integers(node) for value in node.inputs]
        return {value.name for value in read if value is not None}

    def _number(
        self, change: Numbers, label: str, starts: Sequence[int], fit: range
    ) -> tuple[int, ...]:
        """Return the numbers after a change, to which those that follow from it are added.

        Where there are to be more or fewer, they keep their sum.
        """
        if label not in self.numbers:
            self.numbers[label] = tuple(min(max(n, fit[0]), fit[-1]) for n in starts)
            self.allowed[label] = fit
        held = change.get(label, self.numbers[label])
        if len(held) != len(starts):
            held = change[label] = _shared(self.rng, sum(held), len(starts))
        return held

    def _dimension(self, change: Numbers, dim: int | str | None, label: str, fit: range) -> int:
        """Return a dimension; an expression of names that stand elsewhere alone is calculated."""
        if isinstance(dim, int):
            return dim
        if dim is not None:
            if dim in self.sizes:
                return self.sizes[dim]
            label = f"the dimension {dim}"
            with suppress(Exception):  # any text may be a name, and a parser may raise anything
                made: Any = ir.SymbolicDim(dim)
                names, shapes = made.free_symbols(), [entry.shape or () for entry in self.wanted]
                if names and dim not in names and names <= {*self.sizes, *chain(*shapes)}:
                    every = range(_LIMIT)
                    known = {name: self._dimension(change, name, "", every) for name in names}
                    return int(made.evaluate(known))
        return self._number(change, label, [self.dimension], fit)[0]

    def _fact(self, change: Numbers, entry: DeclaredInput) -> Tensor | SequenceFact:
        """Return the fact about an input after a change."""
        name, kind, dims = entry.name, entry.element_type or "", entry.shape or ()
        bounds = entry.ranges or ((0, None),) * len(dims)
        fits = [range(low, _LIMIT if high is None else high + 1) for low, high in bounds]
        shape = tuple(
            self._dimension(change, dim, f"dimension {axis} of '{name}'", fit)
            for axis, (dim, fit) in enumerate(zip(dims, fits, strict=True))
        )
        element_type = ir.DataType[kind.upper()] if kind else None
        if entry.kind == "sequence":
            (count,) = self._number(change, f"the length of '{name}'", [3], range(17))
            return SequenceFact(element_type, shape, count)
        decides = _is_whole(entry) or name in self._floats
        if entry.kind != "tensor" or not decides or prod(shape) > _MOST_ELEMENTS:
            return Tensor(element_type, shape)
        fit = range(-1 if kind.startswith("int") else 0, 2 if kind == "bool" else _LIMIT)
        starts = (self.rng.choice(self.elements, prod(shape)) % len(fit)).tolist()
        values = self._number(change, f"the elements of '{name}'", starts, fit)
        return Tensor(element_type, shape, values)

    def judge(self, change: Numbers) -> _Verdict:
        """Return the verdict on the numbers after a change; those that follow are added to it."""
        fed = {entry.name: self._fact(change, entry) for entry in self.wanted}
        key = frozenset({**self.numbers, **change}.items())
        if key not in self.judged:
            facts = analyse(self.model, {**self.given, **fed})
            ours = {each.error.node: each for each in reversed(facts.refusals)}
            found: dict[str, _Refusal] = {}
            for ref in self.refs:
                if ref.path in ours and ours[ref.path].runs is not False:
                    error, runs, _ = ours[ref.path]
                    found[ref.path] = _Refusal(ref, error, _RUNS if runs else 1)
                elif not is_checked(ref.node) and not facts.never_runs(ref.path):
                    other = _refusal(ref, facts)
                    found |= {ref.path: _Refusal(ref, other, 1)} if other else {}
            self.judged[key] = _Verdict(facts, found)
        return self.judged[key]

    def repair(self) -> None:
        """Change numbers until nothing is refused, or nothing is found that would do."""
        verdict, hopeless = self.judge({}), set[str]()
        best, seen = dict(self.numbers), list[Numbers]()
        most = max(_LEAST_JUDGED, _ANALYSED // max(1, len(self.refs)))
        for _ in range(_STEPS):
            broken = [each for path, each in verdict.refusals.items() if path not in hopeless]
            if not broken or len(self.judged) > most:
                break
            worst = max(broken, key=lambda each: each.weight)
            change = self._best_change(worst, verdict)
            seen.append(dict(self.numbers))
            if change is None or {**self.numbers, **change} in seen:
                hopeless.add(worst.ref.path)
                continue
            self.numbers.update(change)
            verdict = self.judge({})
            if verdict.burden < self.judge(dict(best)).burden:
                best = dict(self.numbers)
        self.numbers.update(best)

    def _best_change(self, worst: _Refusal, verdict: _Verdict) -> Numbers | None:
        """Return a change by which a refusal goes, or becomes another, and that breaks least else.

        Of these, one is taken that changes little.
        """

        def size(change: Numbers) -> tuple[float, ...]:
            new = [number for label in change for number in change[label]]
            old = [number for label in change for number in self.numbers[label]]
            far = sum(abs(a - b) for a, b in zip(new, old, strict=True))
            return min(new) < (len(new) == 1), far / len(new)

        fit = list[tuple[tuple[int, ...], Numbers]]()
        for change in sorted(self._changes(worst, verdict.facts), key=size):
            tried = self.judge(change)
            left = tried.refusals.get(worst.ref.path)
            if left is None and tried.refusals.keys() < verdict.refusals.keys():
                return change
            if left is None or left.error.kind is not worst.error.kind:
                fit.append(((left is not None, tried.burden), change))
        return min(fit, key=lambda each: each[0])[1] if fit else None

    def _changes(self, refusal: _Refusal, facts: Facts) -> list[Numbers]:
        """Return changes of the inputs that a node depends on which may give it what it wants."""
        now, effects = _quantities(refusal.ref, facts), list[_Effect]()
        for label, numbers in list(self.numbers.items()):
            few = range(len(numbers)) if 1 < len(numbers) <= _FEW else ()
            for place in (slice(0, len(numbers)), *(slice(k, k + 1) for k in few)):
                effect = self._effect(refusal.ref, now, _Effect(label, numbers, place, {}))
                effects += [] if effect is None else [effect]
        found = [
            effect.change(new)
            for effect in effects
            for new in sorted(_moves(effect, refusal, now, self.rng))
        ]
        places = range(len(refusal.ref.node.inputs))
        for one, other, kind in product(places, places, ("shape", "values")):
            alike: Numbers = {}  # one input gets the shape that another has, or says
            for effect in effects:
                for key in effect.slopes:
                    want = now.get((other, kind, key[2]))
                    if key[:2] == (one, "shape") and want is not None and len(effect.held) == 1:
                        alike |= effect.change([effect.solved(key, want)])
            found.append(alike)
        return [
            change
            for change in found
            if change and all(n in self.allowed[name] for name in change for n in change[name])
        ]

    def _effect(self, ref: NodeRef, now: Quantities, effect: _Effect) -> _Effect | None:
        """Find the quantities of a node that change with some numbers; None if nothing does."""
        fit = self.allowed[effect.label]
        for probe in _PROBES[: None if len(effect.old) == 1 else 1]:
            new = [next((n + k for k in (probe, 1, -1) if n + k in fit), n) for n in effect.old]
            there = _quantities(ref, self.judge(effect.change(new)).facts)
            step = sum(new) - sum(effect.old)
            for key, number in now.items():
                if step and there.get(key, number) != number:
                    effect.slopes[key] = Fraction(there[key] - number, step), number
            if there != now:
                return effect
        return None

    def _conflict(self, refusal: _Refusal) -> SplitError:
        """Return that no number is right for two splits, if none was found; else the refusal."""
        every = chain(*(verdict.refusals.values() for verdict in self.judged.values()))
        paths = sorted({each.ref.path for each in every if each.weight == _RUNS})
        for label, path in product(self.numbers, paths):
            fit: dict[str, set[int]] = {each: set() for each in sorted((refusal.ref.path, path))}
            for key, verdict in self.judged.items():
                for each in fit.keys() - verdict.refusals.keys():
                    fit[each].update(dict(key).get(label, ()))
            if len(fit) == 2 and all(fit.values()) and set.isdisjoint(*fit.values()):
                required = " and ".join(
                    f"{' or '.join(map(str, sorted(numbers)[:_SHOWN]))} for '{each}'"
                    for each, numbers in fit.items()
                )
                problem = f"{label} must be {required}, which no number satisfies"
                error = refusal.error
                return SplitError(error.kind, problem, operator=error.operator, node=error.node)
        return refusal.error

    def completed(self, given: Mapping[str, object]) -> CompletedInputs:
        """Return values for the inputs, an optional is empty, and why the model refuses them."""
        made = CompletedInputs(dict(given))
        for entry in self.wanted:
            fact = self._fact({}, entry)
            shape: Any = fact.shape if isinstance(fact, Tensor) else fact.part
            is_empty = entry.kind.startswith("optional")
            made.random[entry.name] = shape
            made.feeds[entry.name] = None if is_empty else _value(self.rng, fact)
        grave = [each for each in self.judge({}).refusals.values() if each.weight == _RUNS]
        if grave:  # unless what the model declares of its nodes is wrong
            facts = analyse(self.model, made.feeds, declarations=False)
            sure = {each.error.node for each in facts.refusals if each.runs}
            problems = [self._conflict(each) for each in grave if each.ref.path in sure]
            made.problem = problems[0] if problems else None
        return made


def _moves(
    effect: _Effect, refusal: _Refusal, now: Quantities, rng: np.random.Generator
) -> set[tuple[int, ...]]:
    """Return the new values of numbers that would give quantities of a node their wanted values."""
    found, count, wants = set[tuple[int, ...]](), len(effect.old), refusal.error.wants
    for key, (_, number) in effect.slopes.items():
        for want in _wanted(refusal, now, number):
            found.add(_shared(rng, effect.solved(key, want), count))
    if count > 1:
        for fit in (range(2), range(1, 3), *wants.values()):
            found.add(tuple(rng.choice(fit[:_RANDOM_LIMIT], count).tolist()))
    elif not wants:
        found.update((number,) for number in (-1, 0, 1, 2, effect.old[0] + 1))
    return found


def _wanted(refusal: _Refusal, now: Quantities, number: int) -> Iterator[int]:
    """Yield the values that would do instead of a number of a node."""
    if not refusal.error.wants:
        node, more = refusal.ref.node, max(now.values(), default=0) + 1
        sizes = attribute_of(node, "kernel_shape", ir.AttributeType.INTS) or ()
        yield from {1, len(node.outputs), *sizes, *now.values(), more}
    for fit in refusal.error.wants.values():
        few = fit[:_LIMIT]
        near = min(max((number - fit.start) // fit.step, 0), len(few) - 1)
        yield from (*few[:12], *few[max(near - 1, 0) : near + 3], few[-1])


def _shared(rng: np.random.Generator, total: int, count: int) -> tuple[int, ...]:
    """Return random numbers that have a sum."""
    if count < 2 or not 0 <= total < _LIMIT:
        return (total,) * count
    return tuple(rng.multinomial(total, [1 / count] * count).tolist())


def _value(rng: np.random.Generator, fact: Tensor | SequenceFact) -> object:
    """Return the known values of an input as an array, or a list of them; the rest is random.

    That are small whole numbers, which every engine holds exactly in every type.
    """
    if isinstance(fact, SequenceFact):
        count: Any = fact.count
        return [_value(rng, fact.tensor) for _ in range(count)]
    shape: Any = fact.shape
    kind = fact.element_type or ir.DataType.FLOAT
    if fact.values is not None:
        return np.array(fact.values).astype(kind.numpy()).reshape(shape)
    try:
        numbers = rng.integers(1, _RANDOM_LIMIT, shape)
    except ValueError:  # more bytes than can be counted
        raise MemoryError from None
    if kind == ir.DataType.STRING:
        return np.array([f"s{number}" for number in numbers.flat], object).reshape(shape)
    return np.asarray(numbers % 2 if kind == ir.DataType.BOOL else numbers).astype(kind.numpy())


def _quantities(ref: NodeRef, facts: Facts) -> Quantities:
    """Return the known facts about a node's inputs as numbers."""
    found: Quantities = {}
    for place, value in enumerate(ref.node.inputs):
        fact, lists = facts.of(value), dict[str, Sequence[Dim]]()
        if isinstance(fact, Tensor):
            lists["shape"] = shape = fact.shape or ()
            if fact.element_type is not None and fact.element_type.is_integer():
                lists["values"] = tuple(islice(_elements(value, facts), _FEW))
            if fact.constant:
                lists["sum"] = (sum(fact.constant),)
            if shape and are_known(shape):
                lists["elements"] = (prod(shape),)
        elif isinstance(fact, SequenceFact):
            lists = {"count": (fact.count,), "part": fact.part or ()}
        for name, dims in lists.items():
            pairs = enumerate(dims, -len(dims))
            found.update({(place, name, k): dim for k, dim in pairs if is_known(dim)})
    return found


def _refusal(ref: NodeRef, facts: Facts) -> SplitError | None:
    """Return why an operator that is not checked is refused, by onnx or because of an index."""
    inputs = [facts.of(value) for value in ref.node.inputs]
    if refusal := refusal_of(ref.node, inputs, ref.opsets):
        return SplitError(OUTPUT_COUNT, refusal)
    place, fit = _range_of(ref, inputs)
    if not fit or place >= len(inputs):
        return None
    value = ref.node.inputs[place]
    if facts.tensor(value).values is None:
        fit = fit[:2]  # what is calculated from 0 and 1 is small as well
    if any(not -fit.stop <= element < fit.stop for element in _elements(value, facts)):
        return SplitError(SEQUENCE_INDEX, f"an index is not in {fit}", wants={"index": fit})
    return None


def _elements(value: ir.Value | None, facts: Facts) -> Iterator[int]:
    """Yield the elements of a value, or of the inputs that it comes from if they are not known."""
    pending = [value]
    for held in pending:
        known, node = facts.tensor(held).values, producer_of(held)
        is_input = held is not None and held.is_graph_input()
        if known is not None and (held is value or is_input):
            yield from filter(is_known, known)
        elif node is not None and node.op_type not in ("Shape", "Size", "Constant"):
            pending += [each for each in node.inputs if each not in pending]


def _range_of(ref: NodeRef, inputs: Sequence[Fact]) -> tuple[int, range]:
    """Return the input of a node whose elements must lie in a range, and the range, if known."""
    shape, name = as_tensor(inputs[0] if inputs else None).shape or (), ref.op_type
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
