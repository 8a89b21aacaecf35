"""Nodes whose result OpenVINO writes over their data in a loop."""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain

import onnx_ir as ir

from tensorsplit.core.dimensions import is_known
from tensorsplit.model.graph.called_in_onnx import gives_shape, operator_of
from tensorsplit.model.graph.held_tensors import constant, fixed_tensor_of
from tensorsplit.model.graph.nodes import Scope, attribute_of, scopes_in
from tensorsplit.model.graph.producers import (
    KEEPING_ELEMENTS,
    RESHAPING,
    first_input,
    is_identity,
    origins,
    passed_from,
    passed_on,
    producer_of,
)
from tensorsplit.model.graph.rejoined import rejoined_by
from tensorsplit.model.graph.split_records import is_split
from tensorsplit.model.graph.uses import is_unused
from tensorsplit.model.infer.analysis import Facts
from tensorsplit.model.reached import each_once

IN_PLACE = frozenset(
    {
        *("GroupNormalization", "InstanceNormalization", "LayerNormalization"),
        *("MeanVarianceNormalization", "RotaryEmbedding", "Softmax"),
        *("ScatterElements", "ScatterND"),
        *("GRN", "MVN", "ScatterElementsUpdate", "ScatterUpdate"),
    }
)
"""Operators whose result OpenVINO writes over their data, if nothing else reads those."""

IDEMPOTENT = frozenset({"Clip", "Max", "Min", "Relu", "Round"})
"""Operators that change nothing if they are applied again, joined with the node that reads them."""

ELEMENTWISE = frozenset(
    {
        *("Add", "Div", "Mean", "Mod", "Mul", "PRelu", "Pow", "Sub", "Sum"),
        *("Elu", "Erf", "Exp", "Gelu", "HardSwish", "LeakyRelu", "Log", "Mish", "Neg", "Not"),
        *("Reciprocal", "Sigmoid", "Softplus", "Softsign", "Sqrt", "Swish", "Tanh"),
    }
)
"""Operators whose result it writes so over a Concat without memory of its own, or over a view."""

NOT_FUSED = frozenset({"LayerNormalization", "LeakyRelu"})
"""Operators that it joins with no other node, so that the next node may overwrite as well."""

MAY_OVERWRITE = IN_PLACE | IDEMPOTENT | ELEMENTWISE | NOT_FUSED | {"Abs", "Ceil", "Floor"}
"""Operators whose result it may write over a row that nothing else reads."""

_EITHER_WAY = frozenset({"Add", "Max", "Min", "Mul", "Sum"})

_ROOTS = frozenset({"Add", "Pow", "Sqrt"})
"""What gives the root mean square, or adds a small number to it."""


@dataclass(frozen=True)
class LoopBody:
    """The body of a loop.

    Attributes:
        graph: The body.
        rows: What it gives of which the loop gives all rounds.
        adds_axis: Whether the loop gives views of the rows, with an axis more, as ONNX has it.
    """

    graph: ir.Graph
    rows: Collection[ir.Value]
    adds_axis: bool = True

    @cached_property
    def _scopes(self) -> frozenset[Scope]:
        return frozenset(scopes_in(self.graph))

    @cached_property
    def alike(self) -> Mapping[ir.Value, Sequence[ir.Value]]:
        """Return the values that nodes calculate alike, by each of them; an engine has one."""
        return _alike(self.graph)

    def same_as(self, held: ir.Value) -> Sequence[ir.Value]:
        """Return the values that are calculated as one is, the first first; that is among them."""
        return self.alike.get(held, [held])

    def joins(self, facts: Facts) -> set[ir.Node]:
        """Return the Concats whose inputs have no memory but that of the output."""
        made = [node for node in self.graph if is_joined_in_place(node, facts)]
        firsts = {part: part and self.same_as(part)[0] for node in made for part in node.inputs}
        once = {part: self.is_read_once(part) for part in {*firsts.values()}}
        return {node for node in made if all(once[firsts[part]] for part in node.inputs)}

    def is_read_once(self, held: ir.Value | None) -> bool:
        """Return whether one node of the body reads a value, once, but for its shape."""
        if held is None:
            return False
        same = self.same_as(held)
        readers = self.readers(same)
        partners = {
            self.first_alike(made)
            for node in readers
            if starts_softmax_or_norm(node) or _is_swish(node)
            for other in node.inputs
            if (made := producer_of(passed_from(other))) is not None
        }
        readers = [node for node in readers if self.first_alike(node) not in partners]
        is_given = any(each.graph in self._scopes and each.is_graph_output() for each in same)
        return len(readers) == 1 and not is_given

    def readers(self, values: Iterable[ir.Value]) -> list[ir.Node]:
        """Return the nodes of the body that read values, and not their shapes, for each use.

        Of nodes that calculate the same one is among them, and none whose results are unused.
        """
        uses = (use for each in values for use in each.uses() if use.node.graph in self._scopes)
        found = dict[tuple[int, ir.Node], ir.Node]()
        for node, place in uses:
            if not gives_shape(node) and not is_unused(node):
                found.setdefault((place, self.first_alike(node)), node)
        return [*found.values()]

    def first_alike(self, node: ir.Node) -> ir.Node:
        """Return the first node of the body that calculates the same."""
        made = next(iter(node.outputs), None)
        first = None if made is None else self.same_as(made)[0].producer()
        return first or node


def _alike(body: ir.Graph) -> dict[ir.Value, list[ir.Value]]:
    """Return the values that nodes calculate alike from the same, or from what is alike itself."""
    known, alike = dict[object, list[ir.Node]](), dict[ir.Value | None, list[ir.Value]]()
    for node in body:
        inputs = [passed_from(each) for each in node.inputs]
        if is_identity(node) or not any(inputs) or operator_of(node) == "Where":
            continue  # a Where may be a copy that lowering made, to be in memory of its own
        firsts = (alike[each][0] if each in alike else _content(each) for each in inputs)
        chosen = frozenset(
            (name, held.value) for name, held in node.attributes.items() if _is_plain(held)
        )
        before = known.setdefault((node.domain, node.op_type, chosen, *firsts), [])
        twin = next((each for each in before if each.attributes == node.attributes), None)
        if twin is None:
            before.append(node)
            continue
        for one, other in zip(twin.outputs, node.outputs, strict=False):
            alike[other] = alike.setdefault(one, [one])
            alike[one].append(other)
    return {value: same for value, same in alike.items() if value is not None}


def _content(held: ir.Value | None) -> Hashable:
    """Return what the elements of a small constant, such as a shape, share with equal ones."""
    elements = constant(held, _FEW)
    if elements is None:
        return held
    return elements.dtype.str, elements.shape, elements.tobytes()


_FEW = 8
"""A shape or a list of axes has so many elements at most, with few exceptions."""


def _is_plain(held: ir.Attr) -> bool:
    """Return whether the value of an attribute has a hash that equal ones share."""
    return isinstance(held.value, int | float | str | tuple)


def is_in_place(node: ir.Node) -> bool:
    """Return whether a node, or one that is made of it and others, is written over its data."""
    return operator_of(node) in IN_PLACE or starts_softmax_or_norm(node)


def is_in_a_view(node: ir.Node, body: LoopBody, *, is_carried: bool) -> bool:
    """Return whether a node calculates by elements where a tensor is, of which it reads a view.

    So it does if the result, or a view of it, is a row of the loop, and something else reads that.
    If the tensor is not carried, but the same in each round, idempotent operators matter only if
    something else reads it.
    """
    data = data_of(node)
    if data is None or not node.outputs or not _has_other_shape(data):
        return False
    if operator_of(node) not in MAY_OVERWRITE or not _is_shared_row(node.outputs[0], body):
        return False
    before = _views_of([*origins(data, _viewed)][-1], body, _views)
    first = body.first_alike(node)

    def is_alone(views: Iterable[ir.Value]) -> bool:
        return all(body.first_alike(each) is first for each in _readers_of(views, body))

    is_changed = is_carried or not is_alone(before)
    known = (MAY_OVERWRITE if is_changed else ELEMENTWISE) - {"Mean", "Mod"}
    if operator_of(node) not in known or not is_alone(body.same_as(data)):
        return False
    return not any(each in before for each in body.graph.outputs)


def _is_shared_row(held: ir.Value, body: LoopBody) -> bool:
    """Return whether a value, or a view of it, is a row of a loop, and something else reads it."""
    after = _views_of(held, body, _copies)
    given = [each for each in body.graph.outputs if each in after]
    if not any(each in body.rows for each in given):
        return False
    read = [each for each in after for _ in _readers_of([each], body)]
    uses = [passed_from(each) for each in (*given, *read)]
    return len(uses if body.adds_axis else set(uses)) > 1


def _views_of(
    held: ir.Value, body: LoopBody, views: Callable[[ir.Value], list[ir.Value]]
) -> dict[ir.Value, None]:
    """Return a value, its views, and what is calculated alike."""

    def after(each: ir.Value) -> list[ir.Value]:
        same = body.same_as(each)
        return [*views(each), *(same if each is same[0] else same[:1])]

    return dict.fromkeys(each_once([held], after))


def _views(held: ir.Value) -> list[ir.Value]:
    readers = (use.node for use in held.uses() if use.idx == 0)
    return [node.outputs[0] for node in readers if _viewed(node) is held]


def _copies(held: ir.Value) -> list[ir.Value]:
    """Return the views of a value, and what joins all parts of it again."""
    splits = (use.node for use in held.uses() if is_split(use.node))
    joins = (join for node in splits for part in node.outputs for join in part.consumers())
    whole = [join for join in dict.fromkeys(joins) if rejoined_by(join) is held]
    return [*_views(held), *chain(*(join.outputs[:1] for join in whole))]


def _viewed(node: ir.Node) -> ir.Value | None:
    """Return the value of which a node gives a view; None for other nodes."""
    return first_input(node) if operator_of(node) in KEEPING_ELEMENTS and node.outputs else None


def _readers_of(views: Iterable[ir.Value], body: LoopBody) -> list[ir.Node]:
    """Return the nodes of a body that calculate something from values."""
    return [node for node in body.readers(views) if _viewed(node) is None]


def data_of(node: ir.Node) -> ir.Value | None:
    """Return the first input of a node; of a sum and its like, the first but constants."""
    if operator_of(node) not in _EITHER_WAY:
        return first_input(node)
    return next(iter(tensors_of(node)), None)


def tensors_of(node: ir.Node) -> list[ir.Value]:
    """Return the inputs of a node, but constants."""
    return [each for each in node.inputs if each and fixed_tensor_of(each) is None]


def _has_other_shape(held: ir.Value | None) -> bool:
    """Return whether a value is another one in another shape."""
    made = producer_of(passed_from(held))
    return made is not None and operator_of(made) in RESHAPING


def starts_softmax_or_norm(node: ir.Node) -> bool:
    """Return whether a node is the first of several that OpenVINO makes one of.

    These are Exp and a Div by its sum, also of what is below the largest element; and what is above
    the mean and a Div by its root mean square.
    """
    operator = operator_of(node)
    if operator not in ("Exp", "Sub"):
        return False
    held, *others = [*map(passed_from, node.inputs)] or [None]
    results = list(chain(*((made, *passed_on(made)) for made in node.outputs[:1])))
    readers = [use.node for made in results for use in made.uses() if use.idx == 0]
    divisors = [producer_of(passed_from(each.inputs[1])) for each in readers if _divides(each)]
    if operator == "Exp":
        return any(_is_of(each, "ReduceSum", results) and _has_axes(each) for each in divisors)
    below = [producer_of(each) for each in others[:1]] if operator == "Sub" else []
    if any(_is_of(each, "ReduceMax", [held]) for each in below):
        return any(starts_softmax_or_norm(each) for each in readers if operator_of(each) == "Exp")
    has_root = any(each is not None and operator_of(each) in _ROOTS for each in divisors)
    return has_root and any(_is_of(each, "ReduceMean", [held]) for each in below)


def _has_axes(reduction: ir.Node | None) -> bool:
    return reduction is not None and (len(reduction.inputs) > 1 or "axes" in reduction.attributes)


def _divides(node: ir.Node) -> bool:
    return operator_of(node) == "Div" and len(node.inputs) > 1


def _is_of(node: ir.Node | None, operator: str, values: Container[ir.Value | None]) -> bool:
    """Return whether a node is of an operator, and reads one of some values."""
    if node is None or operator_of(node) != operator:
        return False
    return passed_from(first_input(node)) in values


def _is_swish(node: ir.Node) -> bool:
    """Return whether a node multiplies what it reads by the Sigmoid of that."""
    factors = [*map(passed_from, node.inputs)] if operator_of(node) == "Mul" else []
    gates = (each for each in map(producer_of, factors) if each is not None)
    return any(_is_of(each, "Sigmoid", factors) for each in gates)


def is_joined_in_place(node: ir.Node, facts: Facts) -> bool:
    """Return whether a node is a Concat whose inputs an engine keeps in the memory of the output.

    It does so along an axis that has none before it but those of length 1, and copies constants.
    """
    if operator_of(node) != "Concat" or len(node.inputs) < 2 or not node.outputs:
        return False
    if any(each is not None and fixed_tensor_of(each) is not None for each in node.inputs):
        return False
    axis = attribute_of(node, "axis", ir.AttributeType.INT) or 0
    shape = facts.tensor(node.outputs[0]).shape
    return shape is None or all(dim == 1 or not is_known(dim) for dim in shape[:axis])
