"""Finds what can be known of every value of a model before it runs, in one walk.

Checks, inference, validation before a run, conversion and lowering all ask this analysis. What is
fed to a run is a fact like any other.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import onnx_ir as ir

from tensorsplit.arrays.numpy import element_type
from tensorsplit.core.errors import SplitError
from tensorsplit.model.graph.binding import open_attribute
from tensorsplit.model.graph.building import collector_paused
from tensorsplit.model.graph.facts import (
    ABSENT,
    UNKNOWN,
    Fact,
    Other,
    Sequence,
    Tensor,
    join,
    merge_declared,
    of_parts,
)
from tensorsplit.model.graph.nodes import (
    Scope,
    bodies,
    check_depth,
    domain_name,
    domain_opsets,
    function_label,
    is_split,
    model_opsets,
    node_path,
    readable_constant,
)
from tensorsplit.model.graph.progress import counted
from tensorsplit.model.infer.bodies import RULES as BODY_RULES
from tensorsplit.model.infer.node_outputs import (
    INTEGERS,
    Surroundings,
    fact_of,
    infer_outputs,
    split_outputs,
    values_of,
)
from tensorsplit.model.infer.sequence_operators import RULES as SEQUENCE_RULES
from tensorsplit.model.infer.sequence_operators import check_position


class Refusal(NamedTuple):
    """A node that is wrong, and whether it is known to run (or never to; None if neither is)."""

    error: SplitError
    runs: bool | None


class Facts:
    """What is known of the values of a model.

    Attributes:
        refusals: The split nodes and the positions in sequences that are wrong, in order.
        undecided: The paths of those that are right as far as can be told, but whose operands or
            data are not fully known before the model runs; each with the nodes of the main graph
            that lead to it.
    """

    def __init__(self) -> None:
        self._known: dict[ir.Value, Fact] = {}
        self._runs: dict[str, bool] = {}
        self.refusals: list[Refusal] = []
        self.undecided: dict[str, set[ir.Node]] = {}

    @property
    def errors(self) -> list[SplitError]:
        """The refusals, in order, of nodes that never run too."""
        return [refusal.error for refusal in self.refusals]

    def of(self, value: ir.Value | None) -> Fact:
        """What is known of a value; of one that was not met, what the model declares."""
        if value is None:
            return UNKNOWN
        known = self._known.get(value)
        return declared(value) if known is None else known

    def set(self, value: ir.Value, fact: Fact) -> None:
        """Replace what is known of a value."""
        self._known[value] = fact

    def never_runs(self, path: str) -> bool:
        """Whether constants and what is fed never let a checked node run."""
        return not self._runs.get(path, True)

    def note(self, path: str, runs: bool | None) -> None:
        """Note that a checked node was met, in code that runs, may run, or never runs."""
        self._runs[path] = self._runs.get(path, False) or runs is not False

    def absorb(self, other: Facts) -> None:
        """Take over what was found in one call of a function."""
        for value, fact in other._known.items():
            known = self._known.get(value)
            self._known[value] = fact if known is None else join(known, fact)
        for path, runs in other._runs.items():
            self.note(path, runs)
        self.refusals += other.refusals
        for path, nodes in other.undecided.items():
            self.undecided.setdefault(path, set()).update(nodes)


@collector_paused()
def analyse(
    model: ir.Model,
    feeds: Mapping[str, Any] | None = None,
    *,
    strict: bool = False,
    declarations: bool = True,
    nodes: Container[ir.Node] | None = None,
) -> Facts:
    """Find what can be known of every value of a model, which is not changed.

    Args:
        model: The model; no weights are read.
        feeds: What is fed, by the name of an input or of any other value of the main graph: arrays
            and lists of them as `check_feeds` returns them, or facts. Initializers that are inputs
            too, and are not fed, then hold (D20). None if nothing is fed yet.
        strict: Whether to raise the first refusal of a split node that may run.
        declarations: Whether to believe what the model declares of the outputs of its nodes.
        nodes: The nodes of the main graph to look at; None for all of them.

    Raises:
        SplitError: TS1xx to TS3xx for a wrong split node, if `strict`; TS502 for bodies or calls
            that are nested too deep.
    """
    analysis = Analysis(model, feeds or {}, strict, declarations)
    around = Surroundings("graph", model_opsets(model))
    for value in model.graph.inputs:
        if value.name and value.name in analysis.feeds:
            analysis.facts.set(value, _of_fed(value, analysis.feeds[value.name], around.opset))
        elif feeds is not None and value.is_initializer():
            analysis.facts.set(value, of_constant(value, around.opset))
    analysis.scope(model.graph, around, nodes)
    if feeds is None:
        analysis.uncalled_functions()
    return analysis.facts


class Analysis:
    """One walk through a model, with arguments as for `analyse`."""

    def __init__(
        self, model: ir.Model, feeds: Mapping[str, Any], strict: bool, declarations: bool
    ) -> None:
        self.model, self.feeds, self.facts = model, feeds, Facts()
        self._strict, self._declarations = strict, declarations
        self._functions = {
            (domain_name(key[0]), key[1], key[2]): function
            for key, function in model.functions.items()
        }
        self._called: set[Any] = set()
        self._results: dict[Any, tuple[list[Fact], tuple[str, ...]]] = {}
        self._leading: ir.Node | None = None

    def scope(
        self, scope: Scope, around: Surroundings, nodes: Container[ir.Node] | None = None
    ) -> list[Fact]:
        """Analyse the nodes of a graph or function; returns what is known of its outputs."""
        check_depth(around.depth, around.path)
        if isinstance(scope, ir.Graph):
            for value in scope.initializers.values():
                if not value.is_graph_input():
                    self.facts.set(value, of_constant(value, around.opset))
        is_main = scope is self.model.graph
        for index, node in enumerate(counted("finding shapes", scope) if is_main else scope):
            if nodes is not None and node not in nodes:
                continue
            if is_main:
                self._leading = node
            found = self._node(node, node_path(around.path, node, index), around)
            for position, value in enumerate(node.outputs):
                fact = self._declared(value, found[position] if position < len(found) else UNKNOWN)
                if is_main and value.name and value.name in self.feeds:
                    fact = _of_fed(value, self.feeds[value.name], around.opset)
                self.facts.set(value, fact)
        return [self.facts.of(value) for value in scope.outputs]

    def body(self, graph: ir.Graph, inputs: Iterable[Fact], around: Surroundings) -> list[Fact]:
        """Analyse a body with what is known of its inputs."""
        known = list(inputs)
        known += [UNKNOWN] * (len(graph.inputs) - len(known))
        for value, fact in zip(graph.inputs, known, strict=False):
            self.facts.set(value, self._declared(value, fact))
        return self.scope(graph, around)

    def uncalled_functions(self) -> None:
        """Analyse the functions that no node calls, with nothing known of their inputs."""
        for key, function in self._functions.items():
            if key not in self._called:
                inputs: list[Fact] = [UNKNOWN] * len(function.inputs)
                self._function(key, function, inputs, Surroundings("graph", {}, None, runs=None))

    def _declared(self, value: ir.Value, fact: Fact) -> Fact:
        return merge_declared(fact, declared(value)) if self._declarations else fact

    def _node(self, node: ir.Node, path: str, around: Surroundings) -> list[Fact]:
        key = (domain_name(node.domain), node.op_type, node.overload or "")
        inputs = [self.facts.of(value) for value in node.inputs]
        function = self._functions.get(key)
        if function is not None:
            return self._call(key, function, node, inputs, around)
        if is_split(node):
            return self._split(node, inputs, path, around)
        found = None
        if key[0] == "" and node.op_type in SEQUENCE_RULES:
            self._position(node, inputs, path, around)
            found = SEQUENCE_RULES[node.op_type](node, inputs)
        elif key[0] == "" and node.op_type in BODY_RULES:
            inside = replace(around, path=path)
            found = BODY_RULES[node.op_type](self.body, node, inputs, inside)
        if found is not None:
            return found
        for label, body in bodies(node):
            self.body(body, [], replace(around, path=path).inside(label, None))
        return infer_outputs(node, inputs, around)

    def _split(
        self, node: ir.Node, inputs: list[Fact], path: str, around: Surroundings
    ) -> list[Fact]:
        self.facts.note(path, around.runs)
        try:
            found, is_decided = split_outputs(node, inputs, around.opset, around.attributes)
        except SplitError as error:
            error.located(node=path)
            if self._strict and around.runs is not False:
                raise
            self._refuse(error, around)
            return []
        if not is_decided:
            self._leave_open(path, around)
        return found

    def _position(self, node: ir.Node, inputs: list[Fact], path: str, around: Surroundings) -> None:
        """Check a position in a sequence."""
        self.facts.note(path, around.runs)
        try:
            if not check_position(node, inputs):
                self._leave_open(path, around)
        except SplitError as error:
            self._refuse(error.located(node=path), around)

    def _leave_open(self, path: str, around: Surroundings) -> None:
        """Note a node that can't be decided before the model runs."""
        if around.runs is not False:
            leading = {self._leading} if self._leading is not None else set()
            self.facts.undecided.setdefault(path, set()).update(leading)

    def _refuse(self, error: SplitError, around: Surroundings) -> None:
        self.facts.refusals.append(Refusal(error, around.runs))
        if around.runs is None:
            self._leave_open(error.node or "", around)

    def _call(
        self,
        key: Any,
        function: ir.Function,
        node: ir.Node,
        inputs: list[Fact],
        around: Surroundings,
    ) -> list[Fact]:
        attributes = {
            name: attribute.value
            for name, attribute in function.attributes.items()
            if attribute.value is not None
        }
        for name, attribute in node.attributes.items():
            if not attribute.is_ref():
                attributes[name] = attribute.value
            elif around.attributes is None:
                attributes[name] = open_attribute(attribute)
            elif attribute.ref_attr_name in around.attributes:
                attributes[name] = around.attributes[attribute.ref_attr_name or ""]
        if key in around.calls:
            return []
        given = zip(node.inputs, inputs, strict=True)
        inputs = [ABSENT if value is None else fact for value, fact in given]
        shown = repr(sorted(attributes.items(), key=lambda item: item[0]))
        memo = (key, tuple(inputs), shown, around.runs)
        if memo not in self._results:
            call = replace(around, attributes=attributes)
            self._results[memo] = self._function(key, function, inputs, call)
        found, undecided = self._results[memo]
        for path in undecided:
            self._leave_open(path, around)
        return found

    def _function(
        self, key: Any, function: ir.Function, inputs: list[Fact], call: Surroundings
    ) -> tuple[list[Fact], tuple[str, ...]]:
        """Analyse one call; returns what is known of its outputs, and what is undecided."""
        self._called.add(key)
        outer, self.facts = self.facts, Facts()
        inside = replace(
            call,
            path=function_label(function),
            opsets=domain_opsets(function.opset_imports),
            depth=call.depth + 1,
            calls=call.calls | {key},
        )
        padded = inputs + [ABSENT] * (len(function.inputs) - len(inputs))
        for value, fact in zip(function.inputs, padded, strict=False):
            self.facts.set(value, fact)
        try:
            return self.scope(function, inside), tuple(self.facts.undecided)
        finally:
            outer.absorb(self.facts)
            self.facts = outer


def declared(value: ir.Value) -> Fact:
    """What the model says of a value."""
    return fact_of(value.type, value.shape)


def of_constant(value: ir.Value, opset: int) -> Fact:
    """What is known of an initializer; its elements only if it may be an operand of something."""
    tensor = value.const_value
    if tensor is None:
        return declared(value)
    shape = tuple(tensor.shape.numpy())
    is_integer = tensor.dtype.name.lower().startswith(INTEGERS)
    is_operand = is_integer or (opset == 1 and tensor.dtype in _FLOATS)
    values = None
    if is_operand and len(shape) <= 1:
        values = values_of(readable_constant(value, default=True), opset)
    return Tensor(tensor.dtype, shape, values)


_FLOATS = (ir.DataType.FLOAT16, ir.DataType.FLOAT, ir.DataType.DOUBLE)


def _of_fed(value: ir.Value, fed: Any, opset: int) -> Fact:
    """What is known of a value that is fed; of one that may be absent only what is declared."""
    if isinstance(fed, (Tensor, Sequence, Other)):
        return fed
    if isinstance(fed, np.ndarray) and not isinstance(value.type, ir.OptionalType):
        return Tensor(_type_of(fed), fed.shape, values_of(fed, opset))
    is_sequence = isinstance(fed, list) and all(isinstance(item, np.ndarray) for item in fed)
    if is_sequence and not isinstance(value.type, ir.OptionalType):
        kinds = {_type_of(item) for item in fed}
        return of_parts(
            kinds.pop() if len(kinds) == 1 else value.dtype, [item.shape for item in fed]
        )
    return declared(value)


def _type_of(array: np.ndarray[Any, Any]) -> ir.DataType:
    return ir.DataType[element_type(array).upper()]
