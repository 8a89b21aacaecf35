"""The nodes that lead to lengths, as a program that can be calculated again and again."""

from __future__ import annotations

from typing import Any, NamedTuple

import onnx_ir as ir

from tensorsplit.core.dimensions import Dim, is_known
from tensorsplit.core.errors import SplitError
from tensorsplit.model.graph.held_tensors import constant
from tensorsplit.model.graph.nodes import is_operator
from tensorsplit.model.graph.producers import first_input
from tensorsplit.model.graph.tensors import MAX_RANK
from tensorsplit.model.infer.analysis import Facts
from tensorsplit.model.infer.length_operators import OPERATORS, UnknownResultError

_MOST_NODES = 512
"""Lengths that more nodes than this calculate are not analysed."""

DIMENSION = 0
"""The place of the dimension that is split among the variables."""


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

    @property
    def sampled(self) -> set[int]:
        """The steps that go back to lists that are sampled, and may be of another length."""
        found = set[int]()
        for place, step in enumerate(self.steps):
            if step.operator == "sampled" or not found.isdisjoint(step.inputs):
                found.add(place)
        return found

    def with_anything_at(self, place: int) -> Program:
        """Make variables of the lists and numbers that go back to a step whose result is not known.

        Raises:
            UnknownResultError: If a result of the program is neither, and goes back to it.
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
            raise UnknownResultError
        return self._replace(steps=tuple(steps), variables=tuple(variables))


class _ProgramReader:
    """Reads the nodes that lead to values; what they do not calculate is a variable."""

    def __init__(self, data: ir.Value, axis: int, facts: Facts) -> None:
        self._facts, self._data = facts, data
        shape = facts.tensor(data).shape
        rank = len(shape) if shape is not None else axis + 1 if axis >= 0 else -axis
        if rank > MAX_RANK:  # as of a split with an axis of 2^31
            raise UnknownResultError
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
                raise UnknownResultError
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
        """Return the inputs of the node of a value; none if the value is not calculated here."""
        node = value.producer()
        if value in self._places or node is None or not self._is_calculated(value, node):
            return ()
        return tuple(node.inputs)

    def _is_calculated(self, value: ir.Value, node: ir.Node) -> bool:
        if node.domain != "" or node.op_type not in OPERATORS or len(node.outputs) != 1:
            return False
        if any(held.is_ref() or held.type not in _PLAIN for held in node.attributes.values()):
            return False
        first = first_input(node)  # none, of a node that is refused elsewhere
        if first is None or (node.op_type == "Shape" and not self._is_list(first)):
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
        elif is_operator(node, "Shape") and node.inputs:
            self.steps.append(self._shape_of(value, node))
        else:
            self.steps.append(self._sampled(value))
        self.kinds.append(self._kind(value))
        return len(self.steps) - 1

    def _shape_of(self, value: ir.Value, node: ir.Node) -> Operation:
        """Return the shape of a tensor; a dimension sure to be the one split is that one."""
        of = node.inputs[0]
        shape = self._shape if of is self._data else self._facts.tensor(of).shape
        ends = [node.attributes.get(name) for name in ("start", "end")]
        if shape is None or any(each and not _is_integer(each) for each in ends):
            return self._sampled(value)
        entries: list[object] = []
        for place, dim in enumerate(shape):
            if is_known(dim):
                entries.append(dim)
            elif (of is self._data and place == self._axis) or self._is_split(dim):
                entries.append((DIMENSION,))
            else:
                key = (of, place) if dim is None else str(dim)
                entries.append((self._variable(key, "dimension"),))
        part = slice(*(None if each is None else each.value for each in ends))
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


def _is_integer(held: ir.Attr) -> bool:
    """Return whether an attribute is an integer, and no call gives it."""
    return held.type == ir.AttributeType.INT and not held.is_ref()


def _plain(held: ir.Attr) -> object:
    return tuple(held.value) if held.type == ir.AttributeType.INTS else held.value


def program_of(
    values: tuple[ir.Value, ...], data: ir.Value, axis: int, facts: Facts
) -> Program | None:
    """Return the nodes that lead to values for a split; None if they can't be calculated."""
    try:
        reader = _ProgramReader(data, axis, facts)
        results = tuple(map(reader.read, values))
    except (UnknownResultError, SplitError):
        return None
    dim = reader.dim if is_known(reader.dim) else None
    steps, kinds = tuple(reader.steps), tuple(reader.kinds)
    return Program(steps, results, tuple(reader.variables), dim, kinds)
