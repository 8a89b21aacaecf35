"""A model that is being converted, and each of its nodes on the way to the target."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from operator import is_not
from typing import Any

import onnx_ir as ir

from tensorsplit.core.arithmetic import Number, dimension
from tensorsplit.core.dimensions import Shape, is_known
from tensorsplit.core.errors import NO_ADAPTER, SplitError, printable
from tensorsplit.core.resolve import Intent
from tensorsplit.model import exactness
from tensorsplit.model.convert.operator_versions import VersionStep
from tensorsplit.model.graph.building import Edits, Names, inherit
from tensorsplit.model.graph.calculation import (
    FIRST_WITH_ANY_CONSTANT,
    FIRST_WITH_INTEGERS_COMPARED,
    Calculation,
)
from tensorsplit.model.graph.carried import RESERVED
from tensorsplit.model.graph.facts import UNKNOWN, Tensor
from tensorsplit.model.graph.held_tensors import constant
from tensorsplit.model.graph.nodes import NodeRef, bodies, change_inputs, is_used
from tensorsplit.model.graph.split_records import FAMILY
from tensorsplit.model.graph.tensors import Array
from tensorsplit.model.infer.analysis import analyse
from tensorsplit.model.infer.elements import constant_array
from tensorsplit.model.infer.filling import fill_value
from tensorsplit.model.infer.node_outputs import infer_outputs


@dataclass(slots=True)
class ConvertedNode:
    """A node of the model, and what was made of it.

    Attributes:
        node: Its path, such as ``graph/loop_1.body/norm``.
        operator: What it was.
        opset: The opset that it was written for.
        became: The operators that stand in its place; empty if it has other operands only.
        is_exact: Whether every bit of its results is the same, but for NaNs and the sign of zero;
            else they are equal up to rounding, as other operators calculate them.
    """

    node: str
    operator: str
    opset: int
    became: list[str] = field(default_factory=list)
    is_exact: bool = True


@dataclass(slots=True)
class ConversionReport:
    """Everything that a conversion did.

    Attributes:
        is_changed: Whether anything of the model is another, if only its opset.
        changes: The nodes that were rewritten, in the order in which that was done.
        dropped: The functions that could be converted only for a call, of which there is none.
    """

    is_changed: bool = False
    changes: list[ConvertedNode] = field(default_factory=list)
    dropped: list[str] = field(default_factory=list)


class Conversion:
    """A model that is being converted.

    Attributes:
        target: The opset that it is converted to.
        facts: What is known of its values.
        pending: Nodes still to be converted.
        edits: What is replaced and removed.
        restored: Splits of which it was found what the lengths are that they were given.
        report: What was rewritten.
    """

    def __init__(self, model: ir.Model, target: int, report: ConversionReport) -> None:
        self.model, self.target, self.report = model, target, report
        self.facts, self.names, self.edits = analyse(model), Names(model), Edits()
        self._wrong = {error.node: error for error in reversed(self.facts.errors)}
        self.pending: list[NodeConversion] = []
        self.restored: dict[ir.Node, Intent] = {}
        self._maybe_unused: dict[ir.Value, None] = {}
        self._rewritten: dict[int, ConvertedNode] = {}

    def started(self, ref: NodeRef) -> NodeConversion:
        """Return the model's own node; a wrong one is refused.

        Not so in a body or function, where it may never run, and then is not a mistake (D22).
        """
        error = self._wrong.get(ref.path)
        if error is not None and ref.scope is self.model.graph:
            raise error
        return NodeConversion(ref, self)

    @contextmanager
    def rewriting(self, ref: NodeRef) -> Iterator[NodeConversion]:
        """Rewrite a node in the block, at its own opset, and report it."""
        self.target = ref.opset
        try:
            node = self.started(ref)
            yield node
        except SplitError as error:
            raise error.located(node=ref.path) from None
        node.origin.became.append(node.op_type)
        self.note(node.origin)

    def constant(self, value: ir.Value | None) -> Array | None:
        """Return the value of a constant, or of what follows from shapes alone."""
        found, tensor = constant(value), self.facts.tensor(value)
        follows = found is None and tensor.constant is not None
        return constant_array(tensor) if follows else found

    def note(self, node: ConvertedNode) -> None:
        """Report a node as rewritten."""
        self._rewritten[id(node)] = node

    def drop_unused(self, values: Iterable[ir.Value | None]) -> None:
        """Remove constants that a node read, unless something else reads them."""
        self._maybe_unused.update((value, None) for value in values if value is not None)

    def drop_calculated(
        self,
        values: Iterable[ir.Value | None],
        but: Callable[[ir.Node], bool] = lambda _: False,
    ) -> None:
        """Remove the nodes that calculate values, unless something else reads these.

        Those with bodies stay, and those that are excepted.
        """
        waiting = [value for value in values if value is not None]
        while waiting:
            value = waiting.pop()
            node = value.producer()
            if is_used(value) or node is None or bodies(node) or but(node):
                self.drop_unused([value])
            elif not any(map(is_used, node.outputs)):
                waiting += [each for each in node.inputs if each is not None]
                change_inputs(node, {}, 0)
                self.edits.retire(node)

    def drop_constants(self) -> None:
        """Remove the constants that nothing reads any more."""
        # Once for each, and not for each node that stopped reading it: onnx-ir copies the readers
        reserved = self.model.meta.get(RESERVED, ())
        for value in self._maybe_unused:
            if is_used(value) or value.is_graph_input():
                continue
            if value.name in reserved:  # training reads it
                continue
            producer = value.producer()
            if producer is None:
                if value.is_initializer() and value.graph is not None and value.name is not None:
                    del value.graph.initializers[value.name]
            elif producer.op_type == "Constant" and producer.domain in ("", "ai.onnx"):
                self.edits.retire(producer)
        self._maybe_unused.clear()

    def finish(self) -> None:
        """Remove nodes that were replaced or are no longer needed."""
        self.drop_constants()
        self.edits.finish()
        self.report.changes += self._rewritten.values()


class NodeConversion:
    """A node on its way to the target, version by version.

    Attributes:
        opset: The opset that it is written for at the moment.
        origin: The model's own node, for which it may have been made.
        step: The step that it is taking.
    """

    step: VersionStep

    def __init__(
        self, ref: NodeRef, conversion: Conversion, origin: ConvertedNode | None = None
    ) -> None:
        self.ref, self.node, self.input, self.conversion = ref, ref.node, ref.input, conversion
        self.opset = ref.opset
        self.origin = origin or ConvertedNode(ref.path, ref.op_type, ref.opset)
        self._made_as = ref.op_type
        self._before = self._written() if origin is None else None
        self._made: Calculation | None = None

    @property
    def op_type(self) -> str:
        """The operator."""
        return self.node.op_type

    def _written(self) -> list[object]:
        attributes = chain.from_iterable(self.node.attributes.data.items())
        return [self.op_type, *attributes, *self.node.inputs]

    def finish(self) -> None:
        """Report a node of the model if it is written otherwise than before."""
        before, now = self._before, self._written()
        if before is not None and (len(before) != len(now) or any(map(is_not, before, now))):
            self.conversion.note(self.origin)

    @property
    def is_replaced(self) -> bool:
        """Whether other nodes, which are converted by themselves, have replaced it."""
        return self.conversion.edits.is_retired(self.node)

    def refusal(self, reason: str, fix: str = "") -> SplitError:
        """Return the TS512 error for this node."""
        operator, made_as = printable(self.origin.operator), printable(self._made_as)
        why = printable(reason)
        if operator != made_as:
            why = f"it is replaced by {made_as} and others, and {why}"
        return SplitError(
            NO_ADAPTER,
            f"{operator} can't be converted from opset {self.origin.opset} to"
            f" {self.conversion.target}: {why}",
            fix,
            operator=f"ai.onnx.{operator}",
            node=self.ref.path,
        )

    def given(self, index: int) -> ir.Value:
        """Return an input that the operator needs."""
        held = self.input(index)
        assert held is not None  # noqa: S101 - a node that lacks it was refused before
        return held

    def shape(self, index: int = 0) -> Shape | None:
        """Return the shape of an input; None if not even its rank is known."""
        return self.conversion.facts.tensor(self.input(index)).shape

    def rank(self) -> int | None:
        """Return the rank of the data."""
        shape = self.shape()
        return None if shape is None else len(shape)

    def dtype(self, index: int = 0) -> ir.DataType | None:
        """Return the element type of an input."""
        return self.conversion.facts.tensor(self.input(index)).element_type

    def known(self, index: int) -> Array | None:
        """Return the value of an input; None if it is left out or known only at run time."""
        return self.conversion.constant(self.input(index))

    def needed_rank(self) -> int:
        """Return the rank of the data (TS512 if it is not known)."""
        rank = self.rank()
        if rank is None:
            raise self.refusal("the rank of its data is not known", "declare the data's shape")
        return rank

    def needed_dtype(self, index: int = 0) -> ir.DataType:
        """Return the element type of an input (TS512 if it is not known)."""
        dtype = self.dtype(index)
        if dtype is None:
            raise self.refusal("the element type of its data is not known", "declare its type")
        return dtype

    def needed(self, index: int, name: str) -> Array:
        """Return the value of an input that becomes an attribute; TS512 if it is not constant."""
        value = self.known(index)
        if value is None:
            raise self.refusal(
                f"its input '{name}' is known only at run time; at opset {self.opset} it is an"
                " attribute",
                "make it a constant",
            )
        return value

    def length(self, axis: int, index: int = 0) -> Number:
        """Return the length of an axis of an input: a number, or what the running model finds."""
        shape = self.shape(index)
        dim = None if shape is None else shape[axis]
        return dim if is_known(dim) else dimension(self.given(index), axis)

    def need_numbering(self) -> None:
        """Refuse a target where elements can't be numbered, nor integers be chosen (TS512)."""
        if self.conversion.target < FIRST_WITH_INTEGERS_COMPARED:
            first = FIRST_WITH_INTEGERS_COMPARED
            problem = f"what would be written in its place is there from opset {first} on"
            raise self.refusal(problem, f"convert to opset {first} or newer")

    def attribute(self, name: str, default: object = None) -> Any:
        """Return the value of an attribute, else the default."""
        attribute = self.node.attributes.get(name)
        return default if attribute is None else attribute.value

    def take(self, name: str, default: object = None) -> Any:
        """Remove an attribute; returns its value, or the default if it is absent."""
        value = self.attribute(name, default)
        self.node.attributes.pop(name, None)
        return value

    def put(self, **values: object) -> None:
        """Set attributes to Python values."""
        for name, value in values.items():
            self.ref.put(name, value)

    @property
    def make(self) -> Calculation:
        """Makes new nodes for this one, as its opset has them; see `set_inputs` and `replace`."""
        if self._made is None:
            stem = self.node.name or self.op_type.lower()
            self._made = Calculation(self.conversion.names, self.opset, stem)
        return self._made

    def set_inputs(self, *values: ir.Value | None) -> None:
        """Replace all inputs; what was made is inserted before the node."""
        self._insert_made()
        self.conversion.drop_unused(self.node.inputs)
        self.ref.set_inputs(values)

    def keep_inputs(self, count: int) -> None:
        """Keep the first inputs only."""
        self.set_inputs(*self.node.inputs[:count])

    def declare(self, *values: ir.Value | None) -> None:
        """Write the facts about values into them where they do not declare it already.

        It need not follow from what was made. In functions it may hold for these calls only.
        """
        for value in values if self.ref.function is None else ():
            if value is not None and (value.shape is None or value.shape.has_unknown_dim()):
                fill_value(value, self.conversion.facts)

    def replace(self, *outputs: ir.Value | None, is_exact: bool = False) -> None:
        """Replace the node by what `make` made, and values that were there before.

        What replaces an output may be None if nothing reads that. What is exact whatever the nodes
        are says so.
        """
        conversion = self.conversion
        pairs = zip(self.node.outputs, outputs, strict=True)
        replaced = [(old, new) for old, new in pairs if new is not None]
        for old, new in replaced:
            conversion.facts.set(new, conversion.facts.of(old))
        conversion.edits.stand_in(replaced)
        became = self.origin.became
        if self._before is None and self.op_type in became:
            became.remove(self.op_type)
        became += (node.op_type for node in self.make.nodes if node.op_type != "Constant")
        self._insert_made(replaced, is_exact=is_exact)
        conversion.drop_unused(self.node.inputs)
        self.ref.set_inputs([])
        conversion.edits.retire(self.node)

    def _insert_made(
        self, replaced: Iterable[tuple[ir.Value, ir.Value]] = (), *, is_exact: bool = False
    ) -> None:
        """Insert the new nodes before the node; they are converted unless they are at the target.

        What splits are made of is exact. The outputs that are replaced are given with what takes
        their place.
        """
        made, conversion, origin = self._made, self.conversion, self.origin
        if made is None:
            return
        self._made = None
        inherit(made.nodes, self.node, replaced)
        self.ref.scope.insert_before(self.node, made.nodes)
        conversion.note(origin)
        is_done = made.opset == conversion.target >= FIRST_WITH_ANY_CONSTANT
        if is_done and origin.operator in FAMILY:
            return
        here, facts = {"": made.opset}, conversion.facts
        for node in made.nodes:  # what is made of new values may have to know of them
            found = infer_outputs(node, list(map(facts.of, node.inputs)), here)
            for value, fact in zip(node.outputs, found, strict=False):
                if facts.of(value) in (UNKNOWN, Tensor()):
                    facts.set(value, fact)
        if not is_exact and origin.operator not in FAMILY:
            origin.is_exact &= all(map(partial(exactness.is_exact, facts=facts), made.nodes))
        for node in () if is_done else made.nodes:
            ref = NodeRef(node, self.ref.path, here, self.ref.scope, self.ref.function)
            conversion.pending.append(NodeConversion(ref, conversion, origin))
