"""What the nodes of a model require of inputs that are still open, and numbers that fit.

The analysis runs with a name for every open dimension and every element of a small integer input.
A node requires that it is not refused once numbers stand for the names: a split or a position in a
sequence by this package's rules, any other node by onnx's inference.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import chain, combinations, product
from math import prod
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import onnx_ir as ir

from tensorsplit.core.dimensions import Dim, are_known, is_known
from tensorsplit.core.errors import OUTPUT_COUNT, SplitError
from tensorsplit.core.rules import explicit, remainder
from tensorsplit.core.schema import Operator
from tensorsplit.model.graph import facts as known
from tensorsplit.model.graph.facts import Fact, Tensor
from tensorsplit.model.graph.nodes import NodeRef, domain_name, is_split, record_of, walk
from tensorsplit.model.infer.analysis import Facts
from tensorsplit.model.infer.node_outputs import MOVED, refusal_of
from tensorsplit.model.infer.sequence_operators import POSITIONS, check_position
from tensorsplit.model.infer.splits import split_of

Values: TypeAlias = "Mapping[str, int]"
"""A number for each name."""

_EVERY = range(1, 65)
"""Numbers that are always tried."""

_FIRST = range(1, 25)
"""Those of which pairs are tried."""

_STEPS = 60
_MOST_PAIRS = 4096
_SHOWN = 4
_UNUSUAL = 1 << 20
_PLENTY = 12

_OPERANDS: Mapping[str, Sequence[int]] = {
    **dict.fromkeys(("ConstantOfShape", "Loop"), (0,)),
    **dict.fromkeys(("Reshape", "Expand", "Tile", "TopK", "Unsqueeze", "Squeeze"), (1,)),
    **dict.fromkeys(("OneHot", "CenterCropPad"), (1,)),
    **dict.fromkeys(("ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd"), (1,)),
    **{operator: (place,) for operator, place in POSITIONS.items()},
    "Pad": (1, 3),
    "Range": (0, 1, 2),
    "Slice": (3, 4),
    "Resize": (3,),
}
"""Inputs that are sizes, counts, axes or positions, by operator; of splits all but the data are."""

_INDICES: Mapping[str, int] = {
    **dict.fromkeys(("Gather", "GatherElements", "GatherND"), 1),
    **dict.fromkeys(("Scatter", "ScatterElements", "ScatterND"), 1),
    **dict.fromkeys(("NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss"), 1),
    "RoiAlign": 2,
}
"""The operators that take indices into their first input, and which input these are."""

_CLASSES = ("NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss")
"""Those whose indices are into its second axis."""

_AXES: Mapping[str, int] = {"CumSum": 1, "CumProd": 1}
"""The operators that take an axis of their first input which onnx does not check."""

_SCALES: Mapping[str, int] = {"Resize": 2, "Upsample": 1}
"""The operators that take factors for dimensions, and which input these are."""

_CALCULATED = ("Abs", "Add", "Clip", "CumSum", "Div", "Max", "Min", "Mod", "Mul", "ReduceSum")
"""Operators through which an index is still one of the numbers 0 and 1, or near."""


@dataclass(eq=False)
class Requirement:
    """What one node requires.

    Attributes:
        inputs: What is known of each input, with names in it.
        names: The names on which it depends, in order.
        weight: How grave it is if it is not met.
    """

    ref: NodeRef
    inputs: list[Fact]
    names: tuple[str, ...]
    weight: int
    _seen: dict[tuple[int, ...], SplitError | None] = field(default_factory=dict)

    @property
    def is_checked(self) -> bool:
        """Whether it is this package's rules that decide."""
        return is_split(self.ref.node) or self.ref.op_type in POSITIONS

    def refusal(self, values: Values) -> SplitError | None:
        """Why the node refuses numbers; None if it does not."""
        key = tuple(values[name] for name in self.names)
        if key not in self._seen:
            self._seen[key] = self._refused(values)
        return self._seen[key]

    def _refused(self, values: Values) -> SplitError | None:
        node, inputs = self.ref.node, [_substituted(fact, values) for fact in self.inputs]
        try:
            if not self.is_checked:
                refusal = refusal_of(node, inputs, self.ref.opsets) or _misfit(node, inputs)
                return SplitError(OUTPUT_COUNT, refusal) if refusal else None
            if not is_split(node):
                check_position(node, inputs)
                return None
            for error in split_of(node, self.ref.opset, inputs).errors:
                raise error
            self._check_count(inputs)
        except SplitError as error:
            return error.located(node=self.ref.path)
        return None

    def _check_count(self, inputs: Sequence[Fact]) -> None:
        """Refuse lengths whose number is not that of the outputs, though they are not known yet."""
        operator, count = record_of(self.ref.node, self.ref.opset), len(self.ref.node.outputs)
        ranks = input_ranks(operator)
        for place, fact in enumerate(inputs[1 : len(ranks)], 1):
            shape = fact.shape if isinstance(fact, Tensor) else None
            if operator.is_sequence or ranks[place] != 1 or shape is None or len(shape) != 1:
                continue
            if is_known(shape[0]) and shape[0] != count:
                problem = f"{shape[0]} lengths are given, but there are {count} outputs"
                raise SplitError(OUTPUT_COUNT, problem, f"give {count} lengths")

    def numbers(self, values: Values) -> set[int]:
        """The numbers in what is known of the inputs, and the sums and products of each list."""
        found = set(_EVERY)
        for dims in _lists(self.inputs):
            numbers = [n for n in (number_of(dim, values) for dim in dims) if n is not None]
            found |= {*numbers, sum(numbers), prod(n for n in numbers if n > 0)}
        count = len(self.ref.node.outputs)
        return found | {count, 2 * count}

    def candidates(self, name: str, values: Values) -> set[int]:
        """Numbers for a name: small ones, and those that make something equal to another number."""
        numbers = self.numbers(values)
        found, now = {-1, 0, *numbers}, values[name]
        for dim in chain.from_iterable(_lists(self.inputs)):
            if name not in names_in(dim) or str(dim) == name:
                continue
            here, there = (number_of(dim, {**values, name: v}) for v in (now, now + 1))
            if here is not None and there is not None and here != there:
                step = there - here
                found |= {now + (n - here) // step for n in numbers if (n - here) % step == 0}
        return found

    def shared_out(self, values: Values, rng: np.random.Generator) -> dict[str, int] | None:
        """Lengths that sum to the dimension, where the lengths of a split are open themselves."""
        if not is_split(self.ref.node):
            return None
        split = split_of(self.ref.node, self.ref.opset, self.inputs)
        if split.plan is None or split.intent is None or split.intent.given is None:
            return None
        lengths = list(map(str, split.intent.given))
        free = [name for name in lengths if name in self.names and lengths.count(name) == 1]
        dim = number_of(split.plan.input_shape[split.plan.axis], values)
        rest = [number_of(each, values) for each in split.intent.given if str(each) not in free]
        if split.intent.rule not in (explicit, remainder) or not free or None in (dim, *rest):
            return None
        left = (dim or 0) - sum(each or 0 for each in rest)
        if left < 0 or -1 in rest:
            return None
        least = int(left >= len(free))
        parts = rng.multinomial(left - least * len(free), [1 / len(free)] * len(free)) + least
        return dict(zip(free, map(int, parts), strict=True))


def input_ranks(operator: Operator) -> list[int]:
    """The least rank that each input of a split may have, by position."""
    ranks = {entry.operand: min(entry.rules) for entry in operator.lengths}
    return [ranks.get(entry.name, 0) for entry in operator.inputs]


def _misfit(node: ir.Node, inputs: Sequence[Fact]) -> str:
    """What onnx's inference lets pass, though the node fails; empty if that is nothing."""
    shapes = [fact.shape if isinstance(fact, Tensor) else None for fact in inputs[:2]]
    if len(shapes) < 2 or shapes[0] is None or not are_known(shapes[0]):
        return ""
    data, lengths = shapes[0], inputs[1]
    if node.op_type == "Reshape" and isinstance(lengths, Tensor) and lengths.constant is not None:
        keeps = node.attributes.get("allowzero")
        takes = keeps is None or keeps.value == 0
        made = [
            data[place] if takes and size == 0 and place < len(data) else size
            for place, size in enumerate(lengths.constant)
        ]
        one = prod(size for size in made if size != -1)
        fits = prod(data) == one if -1 not in made else one > 0 and prod(data) % one == 0
        return "" if fits and made.count(-1) < 2 and min(made, default=0) >= -1 else "it can't fit"
    if node.op_type == "Gemm" and shapes[1] is not None and are_known(shapes[1]):
        sides = [(node.attributes.get(name), 1 - k) for k, name in enumerate(("transA", "transB"))]
        ends = [k if flag is None or flag.value == 0 else 1 - k for flag, k in sides]
        pair = [dims[k] for dims, k in zip(shapes, ends, strict=True) if dims and len(dims) == 2]
        return "the matrices do not fit" if len(set(pair)) > 1 else ""
    return ""


def _lists(facts: Iterable[Fact]) -> Iterator[Sequence[Dim]]:
    """The shapes and the elements in facts."""
    for fact in facts:
        if isinstance(fact, Tensor):
            yield from (dims for dims in (fact.shape, fact.values) if dims)
        elif isinstance(fact, known.Sequence):
            yield (fact.count,)
            yield from (dims for dims in (fact.part, *(fact.parts or ())) if dims)


@lru_cache(maxsize=4096)
def _expression(text: str) -> tuple[ir.SymbolicDim, frozenset[str]] | None:
    expression = ir.SymbolicDim(text)
    try:
        return expression, expression.free_symbols()
    except Exception:  # noqa: BLE001 - any text may be a name, and a parser may raise anything
        return None


def names_in(dim: Dim) -> frozenset[str]:
    """The names in a dimension."""
    if dim is None or isinstance(dim, (int, float)):
        return frozenset()
    found = _expression(str(dim))
    return frozenset() if found is None else found[1]


def number_of(dim: Dim, values: Values) -> int | None:
    """A dimension with numbers for the names in it; None where one is missing."""
    if is_known(dim) or dim is None or isinstance(dim, float):
        return None if dim is None else int(dim)
    text = str(dim)
    if text in values:
        return values[text]
    found = _expression(text)
    if found is None or not found[1] <= values.keys():
        return None
    number: Any = found[0].evaluate({name: values[name] for name in found[1]})
    return number if is_known(number) else None


def _substituted(fact: Fact, values: Values) -> Fact:
    def numbers(dims: Sequence[Dim] | None) -> tuple[Dim, ...] | None:
        return None if dims is None else tuple(number_of(dim, values) for dim in dims)

    if isinstance(fact, Tensor):
        return replace(fact, shape=numbers(fact.shape), values=numbers(fact.values))
    if isinstance(fact, known.Sequence):
        parts = None if fact.parts is None else tuple(map(numbers, fact.parts))
        count = number_of(fact.count, values)
        return replace(fact, part=numbers(fact.part), count=count, parts=parts)
    return fact


def requirements(model: ir.Model, facts: Facts, names: Iterable[str]) -> list[Requirement]:
    """What the nodes of a model require of the names in the facts; alike ones only once."""
    open_names, found = set(names), dict[Any, Requirement]()
    called = {(domain_name(key[0]), key[1]) for key in model.functions}
    for ref in walk(model):
        inputs = [facts.of(value) for value in ref.node.inputs]
        used = open_names.intersection(chain.from_iterable(map(names_in, _flat(inputs))))
        is_checked = is_split(ref.node) or (ref.op_type in POSITIONS and ref.node.domain == "")
        if not used or facts.never_runs(ref.path):
            continue
        if is_checked:
            weight = 10_000 if ref.scope is model.graph else 100
        elif ref.node.domain == "" and (ref.node.domain, ref.op_type) not in called:
            weight = 1
        else:
            continue
        attributes = tuple(map(str, ref.node.attributes.values()))
        key = ref.path if is_checked else (ref.op_type, attributes, tuple(inputs))
        made = Requirement(ref, inputs, tuple(sorted(used)), weight)
        if is_checked or not refusal_of(ref.node, inputs, ref.opsets):  # else nothing would do
            found.setdefault(key, made)
    return list(found.values())


def _flat(facts: Iterable[Fact]) -> Iterator[Dim]:
    return chain.from_iterable(_lists(facts))


def operand_names(model: ir.Model, facts: Facts) -> set[str]:
    """The names of elements that are sizes, counts, axes or positions somewhere."""
    found: set[str] = set()
    for ref in walk(model):
        places: Iterable[int] = _OPERANDS.get(ref.op_type, ())
        if is_split(ref.node):
            places = range(1, len(ref.node.inputs))
        for place in places:
            fact = facts.of(ref.input(place))
            if isinstance(fact, Tensor):
                found |= frozenset().union(*map(names_in, fact.values or ()))
    return found


def fitted(
    wanted: Sequence[Requirement],
    start: Values,
    allowed: Mapping[str, range],
    rng: np.random.Generator,
) -> dict[str, int]:
    """Numbers that meet the requirements, as near to those of the start as is found.

    Args:
        wanted: The requirements.
        start: A number for every name.
        allowed: The names that may change, with the numbers that they may be.
        rng: Decides where several numbers would do.
    """
    search = _Search(wanted, start, allowed, rng)
    best = dict(start)
    for step in range(_STEPS):
        if search.burden(wanted) < search.burden(wanted, best):
            best = dict(search.values)
        broken = [each for each in wanted if each.refusal(search.values) is not None]
        gravest = [e for e in broken if e.weight == max(each.weight for each in broken)]
        if not gravest or not search.mend(gravest[step % len(gravest)]):
            break
    return best


@dataclass
class _Search:
    """A search for numbers that mends one broken requirement after the other."""

    wanted: Sequence[Requirement]
    start: Values
    allowed: Mapping[str, range]
    rng: np.random.Generator

    def __post_init__(self) -> None:
        self.values = dict(self.start)
        self._concerned = {
            name: [each for each in self.wanted if name in each.names] for name in self.allowed
        }

    def burden(self, of: Iterable[Requirement], values: Values | None = None) -> int:
        """How grave it is what numbers leave broken; those found if none are given."""
        numbers = self.values if values is None else values
        return sum(each.weight for each in of if each.refusal(numbers) is not None)

    def mend(self, broken: Requirement) -> bool:
        """Change a number or two so that it is met, and others as well as may be.

        Where that can't be done change one at random; False if none may change.
        """
        names = [name for name in broken.names if len(self.allowed.get(name, ())) > 1]
        for changes in (self._single(broken, names), self._pairs(names)):
            ranked = [entry for change in changes if (entry := self._ranked(broken, change))]
            if ranked:
                self.values |= min(ranked, key=lambda entry: entry[:2])[2]
                return True
        if names:
            name = names[int(self.rng.integers(len(names)))]
            numbers = self.allowed[name]
            self.values[name] = numbers[int(self.rng.integers(min(len(numbers), _PLENTY)))]
        return bool(names)

    def _single(self, broken: Requirement, names: Sequence[str]) -> Iterator[dict[str, int]]:
        shares = broken.shared_out(self.values, self.rng)
        if shares and shares.keys() <= set(names):
            yield shares
        for name in names:
            for number in sorted(broken.candidates(name, self.values)):
                if number in self.allowed[name]:
                    yield {name: number}

    def _pairs(self, names: Sequence[str]) -> Iterator[dict[str, int]]:
        tried = 0
        for pair in combinations(names, 2):
            for numbers in product(_FIRST, _FIRST):
                tried += 1
                if tried > _MOST_PAIRS:
                    return
                change = dict(zip(pair, numbers, strict=True))
                if all(number in self.allowed[name] for name, number in change.items()):
                    yield change

    def _ranked(
        self, broken: Requirement, change: dict[str, int]
    ) -> tuple[int, float, dict[str, int]] | None:
        """What a change adds to the burden, and how far it leads; None if it does not mend."""
        changed = {**self.values, **change}
        if broken.refusal(changed) is not None:
            return None
        touched = list({id(e): e for name in change for e in self._concerned[name]}.values())
        far = sum(abs(number - self.start[name]) for name, number in change.items())
        far += _UNUSUAL * sum(number < 1 for number in change.values())
        added = self.burden(touched, changed) - self.burden(touched)
        return added, far + self.rng.random(), change


def conflict(
    wanted: Sequence[Requirement],
    values: Values,
    allowed: Mapping[str, range],
    labels: Mapping[str, str],
) -> SplitError | None:
    """Why no numbers were found for a split or position of the main graph; None if they were.

    Args:
        wanted: The requirements.
        values: The numbers that came nearest.
        allowed: The names that may change, with the numbers that they may be.
        labels: What the names stand for.
    """
    worst = max((each.weight for each in wanted), default=0)
    grave = [each for each in wanted if each.weight == worst and each.is_checked]
    broken = next((each for each in grave if each.refusal(values) is not None), None)
    refusal = None if broken is None else broken.refusal(values)
    if broken is None or refusal is None or broken.ref.function is not None:
        return None
    for name in broken.names:
        if name not in allowed:
            continue
        needs = {
            each.ref.path: _need(each, name, values, allowed[name])
            for each in grave
            if name in each.names
        }
        needs = {path: need for path, need in needs.items() if need}
        if len(set(needs.values())) > 1:
            said = " and ".join(f"{need} for '{path}'" for path, need in list(needs.items())[:4])
            problem = f"{labels[name]} must be {said}, and no number is both"
            made = SplitError(refusal.kind, problem, operator=refusal.operator)
            return made.located(node=refusal.node)
    return refusal


def _need(each: Requirement, name: str, values: Values, allowed: range) -> str:
    """The numbers that one requirement allows for a name, as text; empty where all would do."""
    tried = sorted(n for n in each.candidates(name, values) if n in allowed and n > 0)
    fit = [n for n in tried if each.refusal({**values, name: n}) is None]
    if not fit or len(fit) == len(tried):
        return ""
    if len(fit) == 1:
        return f"{fit[0]}"
    if fit == [n for n in tried if n % fit[0] == 0]:
        return f"a multiple of {fit[0]}"
    more = ", ..." if len(fit) > _SHOWN else ""
    return f"one of {', '.join(map(str, fit[:_SHOWN]))}{more}"


class _Origin(NamedTuple):
    """An input of the graph from which a value comes, and whether unchanged."""

    value: ir.Value
    is_moved: bool


def _origins(value: ir.Value | None) -> set[_Origin]:
    """The inputs of the graph whose elements a value has, or is calculated from."""
    found: set[_Origin] = set()
    pending, seen = [(value, True)], set()
    while pending:
        held, is_moved = pending.pop()
        if held is None or (held, is_moved) in seen:
            continue
        seen.add((held, is_moved))
        node = held.producer()
        if node is None:
            found |= {_Origin(held, is_moved)} if held.is_graph_input() else set()
        elif is_split(node) or node.op_type in ("Cast", "SequenceAt"):
            pending.append((node.inputs[0] if node.inputs else None, is_moved))
        elif node.op_type in MOVED and node.domain == "":
            pending += [(each, is_moved) for each in node.inputs[MOVED[node.op_type]]]
        elif node.op_type in _CALCULATED and node.domain == "":
            pending += [(each, False) for each in node.inputs]
    return found


def limits(model: ir.Model, facts: Facts) -> dict[str, range]:
    """By input of the graph the numbers that fit where its elements are indices or factors.

    Args:
        model: The model.
        facts: What is known where the shapes of the inputs are.
    """
    found: dict[str, range] = {}
    for ref in walk(model):
        for table, numbers_of in ((_INDICES, _indices), (_AXES, _axes), (_SCALES, _scales)):
            if ref.op_type not in table or ref.node.domain != "":
                continue
            numbers = numbers_of(ref, facts)
            for origin in _origins(ref.input(table[ref.op_type])):
                name, fit = origin.value.name or "", numbers
                if not origin.is_moved:
                    fit = range(numbers.start, min(numbers.stop, numbers.start + 2))
                held = found.get(name, fit)
                both = range(max(held.start, fit.start), min(held.stop, fit.stop))
                found[name] = both or held
    return found


def _indices(ref: NodeRef, facts: Facts) -> range:
    """The indices that are in range; 0 alone where that is not known."""
    data, indices = facts.of(ref.input(0)), facts.of(ref.input(1))
    if not isinstance(data, Tensor) or not data.shape:
        return range(1)
    attribute = ref.node.attributes.get("axis")
    axis = int(ref.op_type in _CLASSES)
    if attribute is not None and not attribute.is_ref():
        axis = attribute.as_int()
    dims = data.shape[axis : axis + 1 or None]
    if ref.op_type.endswith("ND"):
        batch = ref.node.attributes.get("batch_dims")
        first = batch.as_int() if batch is not None and not batch.is_ref() else 0
        shape = indices.shape if isinstance(indices, Tensor) else None
        count = shape[-1] if shape and is_known(shape[-1]) else len(data.shape)
        dims = data.shape[first : first + count]
    known_dims = [dim for dim in dims if is_known(dim)]
    return (
        range(max(1, min(known_dims))) if known_dims and len(known_dims) == len(dims) else range(1)
    )


def _axes(ref: NodeRef, facts: Facts) -> range:
    data = facts.of(ref.input(0))
    return range(len(data.shape) if isinstance(data, Tensor) and data.shape else 1)


def _scales(_: NodeRef, __: Facts) -> range:
    return range(1, 3)
