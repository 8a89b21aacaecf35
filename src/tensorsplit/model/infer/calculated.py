"""The lengths that a model calculates, identified by calculating them for many dimensions.

Guarded lengths are recognized by what their nodes compute, not by how the nodes look, so that other
tools may fold and merge them (ADR 26).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache, partial, reduce
from itertools import chain
from random import Random
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import onnx_ir as ir

from tensorsplit.core.dimensions import Dim, is_known
from tensorsplit.core.errors import SplitError
from tensorsplit.core.rules import LengthRule, apply, equal, explicit
from tensorsplit.model.graph.nodes import constant
from tensorsplit.model.graph.tensors import Array
from tensorsplit.model.infer.analysis import Facts

_MOST_NODES = 512
"""Lengths that more nodes than this calculate are not analysed."""

_MOST_PARTS = 1 << 14
"""More lengths than this are not calculated again and again."""

_DIMENSION = 0
"""The place of the dimension that is split among the variables."""


class _StopsError(Exception):
    """The running model stops at a node, on every engine; it would continue with an array."""

    def __init__(self, instead: Array) -> None:
        super().__init__()
        self.instead = instead


class _NotKnownError(Exception):
    """What a node does differs from engine to engine, or is not known here."""


class _AnythingError(Exception):
    """The result of one step is not known; the others can be calculated for whatever it may be."""

    def __init__(self, place: int) -> None:
        super().__init__()
        self.place = place


class Operation(NamedTuple):
    """A constant, what is sampled, or a node.

    Attributes:
        operator: Of a node; else ``constant``, ``shape``, ``sampled``, or ``unknown`` for what is
            neither a number nor a list.
        held: The attributes of a node; the shape and elements of a constant; the entries of a
            shape, each a number, or the place of a variable in a tuple; the place of a variable.
        inputs: The steps that a node reads; None for one that it leaves out.
    """

    operator: str
    held: tuple[Any, ...]
    inputs: tuple[int | None, ...] = ()


_NOTHING = Operation("constant", ((0,), ()))
"""In the place of a step that no other reads."""


class Program(NamedTuple):
    """The nodes that lead to some values, in order; programs of nodes that are alike are equal.

    Attributes:
        results: The steps whose results are wanted.
        variables: How many elements each variable has: an integer for a list, None for a list of
            any length, ``()`` for a number and ``"dimension"`` for a number that is >= 0. The first
            is the dimension that is split.
        dim: That dimension, if it is known.
        kinds: How many elements the result of each step has, as of a variable; ``"open"`` where
            that is not known.
    """

    steps: tuple[Operation, ...]
    results: tuple[int, ...]
    variables: tuple[object, ...]
    dim: int | None
    kinds: tuple[Any, ...]

    def with_anything_at(self, place: int) -> Program:
        """Make variables of the lists and numbers that go back to a step whose result is not known.

        Raises:
            _NotKnownError: If a result of the program is neither, and goes back to it.
        """
        steps, variables, open_steps = list(self.steps), list(self.variables), set[int | None]()
        for at in range(place, len(steps)):
            if at != place and open_steps.isdisjoint(steps[at].inputs):
                continue
            if self.kinds[at] == "open":
                open_steps.add(at)
                steps[at] = _NOTHING
            else:
                steps[at] = Operation("sampled", (len(variables),))
                variables.append(self.kinds[at])
        if not open_steps.isdisjoint(self.results):
            raise _NotKnownError
        return self._replace(steps=tuple(steps), variables=tuple(variables))


class _ProgramReader:
    """Reads the nodes that lead to values; what they do not calculate is a variable."""

    def __init__(self, data: ir.Value, axis: int, facts: Facts) -> None:
        self._facts, self._data = facts, data
        shape = facts.tensor(data).shape
        rank = len(shape) if shape is not None else axis + 1 if axis >= 0 else -axis
        self._shape: tuple[Dim, ...] = (None,) * rank if shape is None else shape
        self._axis = axis % rank if rank else 0
        self.dim = self._shape[self._axis] if rank else None
        self.steps: list[Operation] = []
        self.kinds: list[object] = []
        self._places: dict[ir.Value, int] = {}
        self.variables: list[object] = ["dimension"]
        self._named: dict[object, int] = {}

    def read(self, value: ir.Value) -> int:
        """Return the step of a value; the steps before it are read first."""
        waiting = [value]
        while waiting:
            if len(self.steps) + len(waiting) > _MOST_NODES:
                raise _NotKnownError
            now = waiting[-1]
            before = [
                each for each in self._read_by(now) if each is not None and each not in self._places
            ]
            waiting += before
            if not before:
                waiting.pop()
                if now not in self._places:
                    self._places[now] = self._added(now)
        return self._places[value]

    def _read_by(self, value: ir.Value) -> tuple[ir.Value | None, ...]:
        """Return what the node of a value reads; nothing where the value is not calculated here."""
        node = value.producer()
        if value in self._places or node is None or not self._is_calculated(value, node):
            return ()
        return tuple(node.inputs)

    def _is_calculated(self, value: ir.Value, node: ir.Node) -> bool:
        if node.domain != "" or node.op_type not in _OPERATORS or len(node.outputs) != 1:
            return False
        if any(held.is_ref() or held.type not in _PLAIN for held in node.attributes.values()):
            return False
        if node.op_type == "Shape" and not self._is_list(node.inputs[0]):
            return False
        kind = self._facts.tensor(value).element_type
        return kind in (None, ir.DataType.INT64, ir.DataType.BOOL)

    def _is_list(self, value: ir.Value | None) -> bool:
        """Return whether a value is a list of integers, whose length goes with its elements."""
        known = self._facts.tensor(value)
        is_list = known.element_type == ir.DataType.INT64 and len(known.shape or ()) == 1
        return is_list and value is not self._data

    def _added(self, value: ir.Value) -> int:
        held, node = constant(value), value.producer()
        if held is not None and held.dtype.kind in "iub":
            self.steps.append(Operation("constant", (held.shape, tuple(held.ravel().tolist()))))
        elif node is not None and self._is_calculated(value, node):
            attributes = tuple((k, _plain(held)) for k, held in sorted(node.attributes.items()))
            inputs = (None if each is None else self._places[each] for each in node.inputs)
            self.steps.append(Operation(node.op_type, attributes, tuple(inputs)))
        elif node is not None and (node.domain, node.op_type) == ("", "Shape"):
            self.steps.append(self._shape_of(value, node))
        else:
            self.steps.append(self._sampled(value))
        self.kinds.append(self._kind(value))
        return len(self.steps) - 1

    def _shape_of(self, value: ir.Value, node: ir.Node) -> Operation:
        """Return the shape of a tensor; a dimension sure to be the one split is that one."""
        of = node.inputs[0]
        shape = self._shape if of is self._data else self._facts.tensor(of).shape
        if shape is None or any(held.is_ref() for held in node.attributes.values()):
            return self._sampled(value)
        entries: list[object] = []
        for place, dim in enumerate(shape):
            if is_known(dim):
                entries.append(dim)
            elif (of is self._data and place == self._axis) or self._is_split(dim):
                entries.append((_DIMENSION,))
            else:
                key = (of, place) if dim is None else str(dim)
                entries.append((self._variable(key, "dimension"),))
        first, last = (node.attributes.get(name) for name in ("start", "end"))
        part = slice(None if first is None else first.value, None if last is None else last.value)
        return Operation("shape", tuple(entries[part]))

    def _is_split(self, dim: Dim) -> bool:
        return dim is not None and not is_known(self.dim) and str(dim) == str(self.dim)

    def _sampled(self, value: ir.Value) -> Operation:
        kind = self._kind(value)
        if kind == "open":
            return Operation("unknown", ())
        return Operation("sampled", (self._variable(value, kind),))

    def _kind(self, value: ir.Value) -> object:
        shape = self._facts.tensor(value).shape
        if shape is None or len(shape) > 1:
            return "open"
        return () if not shape else shape[0] if is_known(shape[0]) else None

    def _variable(self, key: object, count: object) -> int:
        if key not in self._named:
            self._named[key] = len(self.variables)
            self.variables.append(count)
        return self._named[key]


_PLAIN = (ir.AttributeType.INT, ir.AttributeType.INTS)


def _plain(held: ir.Attr) -> object:
    return tuple(held.value) if held.type == ir.AttributeType.INTS else held.value


def program_of(
    values: tuple[ir.Value, ...], data: ir.Value, axis: int, facts: Facts
) -> Program | None:
    """Return the nodes that lead to values for a split; None if they can't be calculated."""
    try:
        reader = _ProgramReader(data, axis, facts)
        results = tuple(map(reader.read, values))
    except (_NotKnownError, SplitError):
        return None
    dim = reader.dim if is_known(reader.dim) else None
    steps, kinds = tuple(reader.steps), tuple(reader.kinds)
    return Program(steps, results, tuple(reader.variables), dim, kinds)


class Trial(NamedTuple):
    """What a program calculates for some values of its variables.

    Attributes:
        dim: The dimension that is split.
        results: Lists of numbers; if the running model stops, they are what it would give if it
            went on, or None.
        stops: The steps at which it stops.
    """

    dim: int
    results: list[list[int]] | None
    stops: frozenset[int]


_Sample: TypeAlias = list[Any]
"""A value for each variable of a program: a number, or a list of them."""

_Samples: TypeAlias = Callable[[Program, int], Iterator[_Sample]]
"""Yields values of the variables of a program for so many parts."""


def _calculated(program: Program, variables: _Sample) -> Trial:
    """Return the outcome for values of the variables."""
    known: list[Any] = []
    stops: set[int] = set()
    for place, (operator, held, inputs) in enumerate(program.steps):
        if operator == "constant":
            made: Any = np.array(held[1], None if held[1] else np.int64).reshape(held[0])
        elif operator == "shape":
            made = np.array([e if is_known(e) else variables[e[0]] for e in held], np.int64)
        elif operator == "sampled":
            made = np.array(variables[held[0]], np.int64)
        elif operator == "unknown":
            raise _AnythingError(place)
        else:
            read = [None if at is None else known[at] for at in inputs]
            try:
                made = _OPERATORS[operator](read, dict(held))
            except _StopsError as error:
                stops.add(place)
                made = error.instead
            except Exception:  # noqa: BLE001 - NumPy raises of many kinds for what does not fit
                if not stops:
                    raise _AnythingError(place) from None
                return Trial(variables[_DIMENSION], None, frozenset(stops))
        known.append(made)
    results = [np.ravel(known[at]).tolist() for at in program.results]
    return Trial(variables[_DIMENSION], results, frozenset(stops))


def outcomes(program: Program, count: int, samples: _Samples | None = None) -> list[Trial]:
    """Return what is calculated for many values of the variables.

    A step whose result is not known for some of them is a variable too: what follows has to do with
    whatever it gives.

    Raises:
        _NotKnownError: If the results of the program are not known.
    """
    with np.errstate(all="ignore"):
        try:
            given = (samples or _samples)(program, count)
            return [_calculated(program, values) for values in given]
        except _AnythingError as error:
            return outcomes(program.with_anything_at(error.place), count, samples)


def _fits(dim: int, lengths: list[int], count: int) -> bool:
    return len(lengths) == count and min(lengths, default=0) >= 0 and sum(lengths) == dim


def always_fit(lengths: ir.Value, data: ir.Value, axis: int, count: int, facts: Facts) -> bool:
    """Return whether the running model stops before a Split wherever its lengths do not fit."""
    program = program_of((lengths,), data, axis, facts) if count <= _MOST_PARTS else None
    return program is not None and _always_fit(program, count)


@lru_cache(maxsize=1024)
def _always_fit(program: Program, count: int) -> bool:
    """Return whether the last guard stops the model exactly where lengths do not fit.

    Where they fit whatever they are calculated from, that needs no guard.
    """
    try:
        found = outcomes(program, count)
    except _NotKnownError:
        return False
    guard = {max(chain.from_iterable(each.stops for each in found), default=-1)}
    fitting = [
        each.results is not None and _fits(each.dim, each.results[0], count) for each in found
    ]
    return all(fitting) or not any(
        (not each.stops and not fits) or (each.stops == guard and fits)
        for each, fits in zip(found, fitting, strict=True)
    )


def rule_of_lengths(
    lengths: ir.Value, data: ir.Value, axis: int, count: int, facts: Facts
) -> tuple[LengthRule, tuple[int, ...]] | None:
    """Return the rule by which lengths that are not constant are calculated; see `rule_of`."""
    if constant(lengths) is not None:
        return None
    program = program_of((lengths,), data, axis, facts)
    return None if program is None else rule_of(program, count)


@lru_cache(maxsize=1024)
def rule_of(program: Program, count: int) -> tuple[LengthRule, tuple[int, ...]] | None:
    """Return the rule, and what it is given, by which a program gives the lengths of so many parts.

    The program gives the lengths as one list, and the node that gets them refuses those that do not
    fit; or it gives the start and the end of each part, and stops where parts do not follow each
    other. Only rules are found that need no lengths at run time: constant and equal lengths.
    """
    try:
        found = _lengths(program, count, _samples)
        fitting = [lengths for _, lengths in found if lengths is not None]
        candidates: list[tuple[LengthRule, tuple[int, ...]]] = [(equal, (count,))]
        candidates += [(explicit, lengths) for lengths in fitting[-1:]]
        for rule, wanted in candidates:
            if fitting and all(_by_rule(rule, dim, wanted) == lengths for dim, lengths in found):
                # of the dimension that constants fit there are few samples among so many
                again = partial(_at_dimension, sum(wanted)) if rule is explicit else None
                if again and any(got != wanted for _, got in _lengths(program, count, again)):
                    return None
                return rule, wanted
    except _NotKnownError:
        pass
    return None


def _lengths(
    program: Program, count: int, samples: _Samples
) -> list[tuple[int, tuple[int, ...] | None]]:
    """Return dimensions with the lengths that a program gives of them; None if they do not fit.

    Raises:
        _NotKnownError: If its results are not known, or are bounds of parts that do not fit and it
            does not stop.
    """
    found: list[tuple[int, tuple[int, ...] | None]] = []
    for dim, results, stops in outcomes(program, count, samples):
        if results is None or stops:
            found.append((dim, None))
            continue
        given = results[0] if len(results) == 1 else _between(results)
        fits = _fits(dim, given, count)
        if not fits and len(results) > 1:
            raise _NotKnownError
        found.append((dim, tuple(given) if fits else None))
    return found


def _between(bounds: list[list[int]]) -> list[int]:
    """Return the lengths of parts with these starts and ends; none unless one follows the other."""
    numbers = list(chain.from_iterable(bounds))
    starts, ends = numbers[::2], numbers[1::2]
    if len(numbers) != len(bounds) or starts != [0, *ends[:-1]]:
        return []
    return [end - start for start, end in zip(starts, ends, strict=True)]


@lru_cache(maxsize=1024)
def are_in_order(program: Program) -> bool:
    """Return whether a start is never after its end, and both are within the dimension."""
    try:
        return all(
            stops or (results is not None and _is_range(dim, *map(tuple, results)))
            for dim, results, stops in outcomes(program, 1)
        )
    except _NotKnownError:
        return False


def _is_range(dim: int, start: tuple[int, ...], end: tuple[int, ...]) -> bool:
    return len(start) == len(end) == 1 and 0 <= start[0] <= end[0] <= dim


def _by_rule(rule: LengthRule, dim: int, given: tuple[int, ...]) -> object:
    try:
        return apply(rule, dim, given)
    except SplitError:
        return None


_LARGE = (97, 1000, (1 << 16) + 1, (1 << 31) - 1, 1 << 31, (1 << 32) + 1, (1 << 40) + 3)
_LONGEST = 1 << 20
"""Lists of any length are not sampled for a dimension that is longer."""

_MANY_PARTS = 24
_MOST_CONSTANTS = 64
_ROUNDS = 6


def _samples(program: Program, count: int) -> Iterator[_Sample]:
    """Yield values of the variables: dimensions, and lists that fit them and that do not.

    Raises:
        _NotKnownError: If the lists that matter are too long.
    """
    constants = _constants(program)
    dims = [program.dim] if program.dim is not None else _dimensions(constants, count)
    if len(program.variables) == 1:
        yield from ([dim] for dim in dims)
        return
    random = Random(0)  # noqa: S311 - the same numbers each time
    others = program.variables[1:]
    if None in others and program.dim is not None and program.dim >= _LONGEST:
        raise _NotKnownError
    are_few = all(kind == "dimension" for kind in others)  # lists take many values for each one
    if not are_few and program.dim is None:
        near = [number for number in constants[:8] if number >= 0]
        dims = list(dict.fromkeys([*dims[:8], *near, *dims[-4:]]))
    for dim in dims if program.dim is None else dims * 4:
        kinds = [list(_of_variable(kind, dim, count, constants)) for kind in others]
        for at in range(2 if are_few else _ROUNDS + max(map(len, kinds))):
            in_turn = len(kinds) == 1 and not are_few
            values = (k[at] if at < len(k) and in_turn else random.choice(k) for k in kinds)
            yield [dim, *values]


def _at_dimension(dim: int, program: Program, count: int) -> Iterator[_Sample]:
    """Yield values of the variables at one dimension: each value of each of them, in turn."""
    if program.dim not in (None, dim):
        return
    random, constants = Random(0), _constants(program)  # noqa: S311 - as above
    kinds = [list(_of_variable(kind, dim, count, constants)) for kind in program.variables[1:]]
    drawn = [random.choice(kind) for kind in kinds]
    yield [dim, *drawn]
    for place, kind in enumerate(kinds):
        for value in kind:
            yield [dim, *drawn[:place], value, *drawn[place + 1 :]]


def _constants(program: Program) -> list[int]:
    """Return the numbers that occur in the constants of a program, and their sums."""
    found: dict[int, None] = {}
    for step in program.steps:
        if step.operator == "constant":
            numbers = list(map(int, step.held[1]))
            found |= dict.fromkeys([*numbers[:_MOST_CONSTANTS], sum(numbers)])
    return [number for number in found if abs(number) < 1 << 40][: 4 * _MOST_CONSTANTS]


def _dimensions(constants: list[int], count: int) -> list[int]:
    """Return dimensions: small ones, those around the constants, and some large ones."""
    found = dict.fromkeys(range(2 * min(count, _MANY_PARTS) + 3))
    for number in chain(constants, (count, 2 * count, 5 * count)):
        found |= dict.fromkeys((number - 1, number, number + 1))
    found |= dict.fromkeys(_LARGE)
    found |= dict.fromkeys(number // count * count for number in _LARGE)
    return [dim for dim in found if dim >= 0]


def _of_variable(kind: Any, dim: int, count: int, constants: list[int]) -> Iterator[Any]:
    """Yield values for a variable beside a dimension."""
    numbers = [0, 1, 2, 3, 7, dim, dim - 1, dim + 1, dim // 2, *constants[:8], *_LARGE[-3:]]
    if kind == "dimension":
        yield from (number for number in numbers if number >= 0)
    elif kind == ():
        yield from (*numbers, -1, -2, -dim, -(1 << 63), (1 << 63) - 1)
    else:
        sizes = (count, max(0, count - 1), count + 1, 0, 1) if kind is None else (kind,)
        for size in dict.fromkeys(sizes):
            yield from _lists(dim, size)
        if kind is None and dim < _LONGEST:
            yield from _long_lists(dim, constants)


def _long_lists(dim: int, constants: list[int]) -> Iterator[Array]:
    """Yield lists that are longer than a dimension: of what is counted there may be more.

    What is counted may also be divided by a constant.
    """
    divisor = max(map(abs, constants), default=0) + 2
    for size in (dim + 1, min((dim + 1) * divisor, _LONGEST)):
        for entry in (1, 0, -1, dim + 1, 1 << 40):
            yield np.full(size, entry)


def _lists(dim: int, count: int) -> Iterator[list[int]]:
    """Yield lists of lengths: some that fit a dimension, with a wrong sum, below 0, too large."""
    if count == 0:
        yield []
        return
    random = Random(dim * 31 + count)  # noqa: S311 - as above
    for _ in range(3):
        cuts = sorted(random.randint(0, dim) for _ in range(count - 1))
        fitting = [b - a for a, b in zip([0, *cuts], [*cuts, dim], strict=True)]
        yield fitting
        for place in {0, count - 1, random.randrange(count)}:
            for more in (1, -1, -dim - 1, 1 << 32, (1 << 63) - 1 - fitting[place]):
                yield [*fitting[:place], fitting[place] + more, *fitting[place + 1 :]]
        if count > 1:
            place = random.randrange(count - 1)
            for much in (dim + 1, 1 << 32, 1 << 62):  # the sum fits, one of the lengths does not
                one, other = fitting[place] - much, fitting[place + 1] + much
                yield [*fitting[:place], one, other, *fitting[place + 2 :]]
    yield [-1] * count
    yield [0] * count
    wrapping = [(1 << 63) - 1] * (count - 1)
    yield [*wrapping, (dim - sum(wrapping) + (1 << 63)) % (1 << 64) - (1 << 63)]
    huge = [1 << 62] * count
    if count > 4:  # 2^62 four times is 0 in 64 bits
        yield [*huge[:4], dim, *[0] * (count - 5)]


Inputs: TypeAlias = "list[Any]"
Attributes: TypeAlias = Mapping[str, Any]


def _at(inputs: Inputs, index: int) -> Array | None:
    held: Array | None = inputs[index] if index < len(inputs) else None
    return held


def _axes(inputs: Inputs, attributes: Attributes, index: int = 1) -> tuple[int, ...] | None:
    held = _at(inputs, index)
    axes = attributes.get("axes") if held is None else tuple(held.tolist())
    return None if axes is None else tuple(axes)


def _divided(inputs: Inputs, _: Attributes) -> Array:
    left, right = inputs
    if not np.all(right):
        raise _NotKnownError  # it ends the process of some engines
    made: Array = np.sign(left) * np.sign(right) * (np.abs(left) // np.abs(right))
    return made


def _gathered(inputs: Inputs, attributes: Attributes) -> Array:
    data, places = inputs
    axis = attributes.get("axis", 0) % data.ndim
    inside = (places < data.shape[axis]) & (places >= -data.shape[axis])
    if np.all(inside):
        return np.asarray(np.take(data, places, axis))
    # OpenVINO takes 0 there, and the others stop: what follows has to do with a 0
    nothing = np.zeros((*data.shape[:axis], 1, *data.shape[axis + 1 :]), data.dtype)
    places = np.where(inside, places % max(data.shape[axis], 1), -1)
    return np.asarray(np.take(np.concatenate([data, nothing], axis), places, axis))


def _sliced(inputs: Inputs, attributes: Attributes) -> Array:
    data: Array = inputs[0]
    starts, ends = (
        attributes[name] if name in attributes else inputs[at].tolist()
        for at, name in ((1, "starts"), (2, "ends"))
    )
    axes = _axes(inputs, attributes, 3) or tuple(range(len(starts)))
    steps = _at(inputs, 4)
    for start, end, axis, step in zip(
        starts, ends, axes, [1] * len(starts) if steps is None else steps.tolist(), strict=True
    ):
        place = axis % data.ndim
        data = data[(*(slice(None),) * place, slice(start, end, step))]
    return data


def _reshaped(inputs: Inputs, attributes: Attributes) -> Array:
    """Return the value of a Reshape, which every engine refuses from no element to some."""
    data, shape = inputs
    wanted = tuple(shape.tolist())
    if attributes.get("allowzero") or 0 in wanted:
        raise _NotKnownError
    if not data.size and reduce(lambda a, b: a * b, wanted, 1) > 0:
        raise _StopsError(np.zeros(wanted, np.int64))
    made: Array = data.reshape(wanted)
    return made


def _chosen(inputs: Inputs, _: Attributes) -> Array:
    """Return the value of a choice, which every engine refuses of no element and several."""
    largest = max(inputs, key=np.size)
    if largest.size > 1 and any(not each.size for each in inputs):
        raise _StopsError(largest)
    condition, left, right = inputs
    return np.asarray(np.where(condition, left, right))


def _summed(inputs: Inputs, attributes: Attributes) -> Array:
    axes = _axes(inputs, attributes)
    if axes == () or (axes is None and attributes.get("noop_with_empty_axes")):
        raise _NotKnownError
    keepdims = bool(attributes.get("keepdims", 1))
    return np.asarray(np.sum(inputs[0], axis=axes, keepdims=keepdims, dtype=np.int64))


def _cumulated(inputs: Inputs, attributes: Attributes) -> Array:
    if attributes.get("exclusive") or attributes.get("reverse"):
        raise _NotKnownError
    made: Array = np.cumsum(inputs[0], axis=int(inputs[1]), dtype=np.int64)
    return made


def _ranged(inputs: Inputs, _: Attributes) -> Array:
    start, limit, step = map(int, inputs)
    numbers = range(start, limit, step)
    if len(numbers) > _MOST_PARTS:
        raise _NotKnownError
    return np.array(numbers, np.int64)


def _cast(inputs: Inputs, attributes: Attributes) -> Array:
    kind = {ir.DataType.INT64: np.int64, ir.DataType.BOOL: np.bool_}.get(attributes["to"])
    if kind is None:
        raise _NotKnownError
    made: Array = inputs[0].astype(kind)
    return made


def _many(function: Callable[[Array, Array], Array]) -> Callable[[Inputs, Attributes], Array]:
    return lambda inputs, _: reduce(function, inputs)


def _plainly(function: Callable[..., Array]) -> Callable[[Inputs, Attributes], Array]:
    return lambda inputs, _: function(*inputs)


_OPERATORS: Mapping[str, Callable[[Inputs, Attributes], Array]] = {
    "Add": _plainly(np.add),
    "And": _plainly(np.logical_and),
    "Cast": _cast,
    "Concat": lambda inputs, attributes: np.concatenate(inputs, attributes["axis"]),
    "CumSum": _cumulated,
    "Div": _divided,
    "Equal": _plainly(np.equal),
    "Expand": lambda inputs, _: inputs[0] * np.ones(inputs[1], inputs[0].dtype),
    "Gather": _gathered,
    "Greater": _plainly(np.greater),
    "GreaterOrEqual": _plainly(np.greater_equal),
    "Identity": lambda inputs, _: inputs[0],
    "Less": _plainly(np.less),
    "LessOrEqual": _plainly(np.less_equal),
    "Max": _many(np.maximum),
    "Min": _many(np.minimum),
    "Mul": _plainly(np.multiply),
    "Neg": _plainly(np.negative),
    "Not": _plainly(np.logical_not),
    "Or": _plainly(np.logical_or),
    "Range": _ranged,
    "ReduceSum": _summed,
    "Reshape": _reshaped,
    "Shape": lambda inputs, attributes: np.array(
        inputs[0].shape[attributes.get("start") : attributes.get("end")], np.int64
    ),
    "Slice": _sliced,
    "Squeeze": lambda inputs, attributes: np.squeeze(inputs[0], _axes(inputs, attributes)),
    "Sub": _plainly(np.subtract),
    "Sum": _many(np.add),
    "Unsqueeze": lambda inputs, attributes: np.expand_dims(
        inputs[0], _axes(inputs, attributes) or ()
    ),
    "Where": _chosen,
}
"""What the operators do that lengths are calculated with: int64 wraps around, as on engines."""
