"""Finds all that can be known about every value of a model before it runs, in one walk.

Checks, inference, validation before a run, conversion and lowering all ask this analysis. What is
fed to a run is a fact like any other.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import zip_longest
from typing import NamedTuple

import numpy as np
import onnx_ir as ir

from tensorsplit.arrays.numpy import element_type
from tensorsplit.core.errors import SplitError
from tensorsplit.core.records.openvino import DOMAIN
from tensorsplit.core.rules import ceil, equal
from tensorsplit.model.graph.building import full_collections_deferred
from tensorsplit.model.graph.calls import (
    Attributes,
    attributes_of,
    call_key,
    called_by,
    functions_of,
    passed_to,
)
from tensorsplit.model.graph.facts import (
    ABSENT,
    UNKNOWN,
    Fact,
    NotKnownError,
    Other,
    SequenceFact,
    Tensor,
    as_tensor,
    declared,
    join,
    kind_only,
    merge_declared,
    of_parts,
    without_elements,
)
from tensorsplit.model.graph.node_paths import check_depth, function_label, node_paths
from tensorsplit.model.graph.nodes import NodeRef, Scope, bodies, scopes
from tensorsplit.model.graph.opsets import domain_opsets, model_opsets
from tensorsplit.model.graph.progress import counted
from tensorsplit.model.graph.split_records import is_split
from tensorsplit.model.graph.tensors import Array
from tensorsplit.model.infer.bodies import RULES as BODY_RULES
from tensorsplit.model.infer.bodies import AnalyseBody, Context
from tensorsplit.model.infer.layer_values import infer_layer
from tensorsplit.model.infer.node_outputs import infer_outputs, of_constant, values_of
from tensorsplit.model.infer.sequence_operators import RULES as SEQUENCE_RULES
from tensorsplit.model.infer.sequence_operators import check_position
from tensorsplit.model.infer.splits import KnownSplit, alike_of, before_check, split_of

_NODES_SEPARATE, _TIMES_SEPARATE = 1 << 12, 4
"""So many nodes, and so many times those of the model, are analysed in functions and loops for each
call and round separately. Beyond that calls and rounds are taken together, first those whose inputs
are of the same types, and beyond twice that all of them."""


_RULES = frozenset((*SEQUENCE_RULES, *BODY_RULES))
"""The operators of ONNX's own domain, beside splits, whose outputs onnx does not infer here."""


class Refusal(NamedTuple):
    """A node that is wrong.

    Attributes:
        error: What is wrong, with the path of the node.
        runs: Whether it is known to run (or never to; None if neither is).
        node: The node.
    """

    error: SplitError
    runs: bool | None
    node: ir.Node


class Facts:
    """The facts about the values of a model.

    Attributes:
        refusals: The split nodes and the positions in sequences that are wrong, in order.
        undecided: The paths of those that are right as far as is known, but whose operands or
            data are not fully known before the model runs; each with the nodes of the main graph
            that lead to it.
        uncalled: The functions that no node of the main graph leads to.
        counts_alike: Into how many parts splits that give no lengths split tensors of one type and
            shape along one axis; the same set for all these nodes.
    """

    def __init__(self) -> None:
        self.counts_alike: dict[ir.Node, set[int]] = {}
        self._splits: dict[ir.Node, KnownSplit] = {}
        self._known: dict[ir.Value, Fact] = {}
        self._types: dict[ir.Value, frozenset[ir.DataType]] = {}
        self._runs: dict[str, bool] = {}
        self.refusals: list[Refusal] = []
        self.undecided: dict[str, set[ir.Node]] = {}
        self.uncalled: tuple[ir.Function, ...] = ()

    @property
    def errors(self) -> list[SplitError]:
        """The refusals, in order, of nodes that never run too."""
        return [refusal.error for refusal in self.refusals]

    def __contains__(self, value: ir.Value) -> bool:
        """Return whether a value was met."""
        return value in self._known

    def of(self, value: ir.Value | None) -> Fact:
        """Return the fact about a value; if it was not met, the one that the model declares."""
        if value is None:
            return UNKNOWN
        known = self._known.get(value)
        return declared(value) if known is None else known

    def tensor(self, value: ir.Value | None) -> Tensor:
        """Return the fact about a tensor; an empty one for a value of another kind."""
        return as_tensor(self.of(value))

    def element_types(self, value: ir.Value | None) -> frozenset[ir.DataType]:
        """Return the element types of a value; several only where calls of a function differ."""
        fact = self.of(value)
        one = None if isinstance(fact, Other) else fact.element_type
        if one is not None or value is None:
            return frozenset(() if one is None else (one,))
        return self._types.get(value, frozenset())

    def split(self, ref: NodeRef) -> KnownSplit:
        """Return what is known about a split node; in a function, in all calls together."""
        found = self._splits.get(ref.node)
        if found is None:
            found = split_of(ref.node, ref.opset, [self.of(value) for value in ref.node.inputs])
        return found

    def note_split(self, node: ir.Node, split: KnownSplit) -> None:
        """Note the facts about a split node of the main graph or of a body in it."""
        self._splits[node] = split

    def set(self, value: ir.Value, fact: Fact) -> None:
        """Replace the fact about a value."""
        self._known[value] = fact

    def never_runs(self, path: str) -> bool:
        """Return whether constants and what is fed never let a node run."""
        return not self._runs.get(path, True)

    def note(self, path: str, runs: bool | None) -> None:
        """Note that a node was met, in code that runs, may run, or never runs."""
        self._runs[path] = self._runs.get(path, False) or runs is not False

    def fill(self, other: Facts) -> None:
        """Take over what others know of values of which nothing is known."""
        self._known = other._known | self._known

    def absorb(self, other: Facts) -> None:
        """Take over what was found in one call of a function."""
        for value, fact in other._known.items():
            known = self._known.get(value)
            both = fact if known is None else join(known, fact)
            if known is not None and not isinstance(both, Other) and both.element_type is None:
                self._types[value] = self.element_types(value) | other.element_types(value)
            elif value in other._types:
                self._types[value] = other._types[value]
            self._known[value] = both
        for path, runs in other._runs.items():
            self.note(path, runs)
        self.counts_alike |= other.counts_alike
        self.refusals += other.refusals
        for path, nodes in other.undecided.items():
            self.undecided.setdefault(path, set()).update(nodes)


@full_collections_deferred()
def analyse(
    model: ir.Model,
    feeds: Mapping[str, object] | None = None,
    *,
    strict: bool = False,
    declarations: bool = True,
    nodes: Container[ir.Node] | None = None,
    base: Facts | None = None,
) -> Facts:
    """Find all that can be known about every value of a model, which is not changed.

    Args:
        model: The model; no weights are read.
        feeds: What is fed, by the name of an input or of any other value of the main graph: arrays
            and lists of them as `check_feeds` returns them, or facts. Initializers that are inputs
            too, and are not fed, then hold (D20). None if nothing is fed yet.
        strict: Whether to raise the first refusal of a split node that may run.
        declarations: Whether to believe what the model declares of the outputs of its nodes.
        nodes: The nodes of the main graph to look at; None for all of them.
        base: What was found before, and holds of the values of the other nodes.

    Raises:
        SplitError: TS1xx to TS3xx for a wrong split node, if `strict`; TS502 for bodies or calls
            that are nested too deep.
    """
    analysis = Analysis(model, feeds or {}, strict, declarations)
    around = Surroundings("graph", model_opsets(model))
    if base is not None:
        analysis.facts.fill(base)
    for value in model.graph.inputs:
        if value.name and value.name in analysis.feeds:
            analysis.facts.set(value, fact_of_fed(value, analysis.feeds[value.name], around.opset))
        elif feeds is not None and value.is_initializer():
            analysis.facts.set(value, _of_initializer(value, around.opset))
    analysis.scope(model.graph, around, nodes)
    if feeds is None:
        analysis.uncalled_functions()
    return analysis.facts


@dataclass(frozen=True)
class Surroundings:
    """The surroundings of the nodes of a graph or function under analysis.

    Attributes:
        path: The path of the graph or function.
        passed: The attributes of the function around it, in the call under analysis; None if
            the calls are not known.
        depth: How many bodies and calls lie around it.
        calls: The functions whose calls lie around it.
        runs: Whether it is known to run, or known never to run; None if neither is.
    """

    path: str
    opsets: Mapping[str, int]
    passed: Attributes | None = field(default_factory=dict)
    depth: int = 0
    calls: frozenset[ir.Function] = frozenset()
    runs: bool | None = True

    @property
    def opset(self) -> int:
        """The opset of ONNX's own domain; 0 where it is not imported."""
        return self.opsets.get("", 0)

    def inside(self, path: str, runs: bool | None) -> Surroundings:
        """Return the same for the nodes of a body, which runs, or may run, if its node does."""
        both = (self.runs, runs)
        known = False if False in both else None if None in both else True
        return replace(self, path=path, depth=self.depth + 1, runs=known)


class Analysis:
    """One walk through a model, with arguments as for `analyse`."""

    def __init__(
        self, model: ir.Model, feeds: Mapping[str, object], strict: bool, declarations: bool
    ) -> None:
        self.model, self.feeds, self.facts = model, feeds, Facts()
        self._strict, self._declarations = strict, declarations
        self._functions = functions_of(model)
        self._called: set[ir.Function] = set()
        self._results: dict[object, tuple[list[Fact], tuple[str, ...]]] = {}
        self._counts: dict[object, set[int]] = {}
        self._alike: dict[object, KnownSplit] = {}
        self._leading: ir.Node | None = None
        self._walked = 0

    @cached_property
    def _most_separate(self) -> int:
        """How many nodes are analysed before calls and rounds are taken together."""
        return _NODES_SEPARATE + _TIMES_SEPARATE * sum(len(scope) for scope in scopes(self.model))

    def scope(
        self, scope: Scope, around: Surroundings, nodes: Container[ir.Node] | None = None
    ) -> list[Fact]:
        """Analyse the nodes of a graph or function; returns what is known of its outputs."""
        check_depth(around.depth, around.path)
        if isinstance(scope, ir.Graph):
            for value in scope.initializers.values():
                if not value.is_graph_input() and value not in self.facts:
                    self.facts.set(value, _of_initializer(value, around.opset))
        is_main = scope is self.model.graph
        feeds: Mapping[str, object] = self.feeds if is_main else {}
        self._walked += len(scope)
        paths = node_paths(around.path, scope)
        every = counted("finding shapes", scope) if is_main else scope
        for node, path in zip(every, paths, strict=True):
            if nodes is not None and node not in nodes:
                continue
            if is_main:
                self._leading = node
            found = self.node(node, path, around)
            for value, fact in zip_longest(node.outputs, found[: len(node.outputs)]):
                known = self._declared(value, fact or UNKNOWN)
                if feeds and value.name and value.name in feeds:
                    known = fact_of_fed(value, feeds[value.name], around.opset)
                self.facts.set(value, known)
        return [self.facts.of(value) for value in scope.outputs]

    def uncalled_functions(self) -> None:
        """Analyse the functions that nobody calls, with nothing known of their inputs.

        Nothing is held against them, nor against what they call, of which no less is known for it.
        """
        functions = self._functions.values()
        self.facts.uncalled = tuple(each for each in functions if each not in self._called)
        for function in self.facts.uncalled:
            outer, self.facts = self.facts, Facts()
            inputs: list[Fact] = [UNKNOWN] * len(function.inputs)
            self._function(function, inputs, Surroundings("", {}, None, runs=False))
            outer.fill(self.facts)
            self.facts = outer

    def _declared(self, value: ir.Value, fact: Fact) -> Fact:
        return merge_declared(fact, declared(value)) if self._declarations else fact

    def node(self, node: ir.Node, path: str, around: Surroundings) -> list[Fact]:
        """Analyse a node; returns what is known of its outputs."""
        self.facts.note(path, around.runs)
        inputs = [self.facts.of(value) for value in node.inputs]
        attributes = attributes_of(node, around.passed)
        function = self._functions.get(called_by(node)) if self._functions else None
        if function is not None:
            pairs = zip(node.inputs, inputs, strict=True)
            given = [ABSENT if value is None else fact for value, fact in pairs]
            return self._call(function, given, passed_to(function, attributes), around)
        if is_split(node):
            return self.split(node, path, around, inputs, attributes)
        if node.domain == "" and node.op_type in _RULES:
            with suppress(NotKnownError):
                return self._by_rule(node, path, around, inputs)
        for label, graph in bodies(node):
            self._bodies_of(path, around)(label, graph, [], None)
        if node.domain == DOMAIN:
            return infer_layer(node, inputs)
        return infer_outputs(node, inputs, around.opsets, attributes)

    def _bodies_of(self, path: str, around: Surroundings) -> AnalyseBody:
        """Return the function that analyses a body of the node of this path."""

        def body(label: str, graph: ir.Graph, given: list[Fact], runs: bool | None) -> list[Fact]:
            for value, fact in zip_longest(graph.inputs, given[: len(graph.inputs)]):
                self.facts.set(value, self._declared(value, fact or UNKNOWN))
            return self.scope(graph, around.inside(f"{path}.{label}", runs))

        return body

    def _by_rule(
        self, node: ir.Node, path: str, around: Surroundings, inputs: list[Fact]
    ) -> list[Fact]:
        """Analyse a node that has a rule of its own here."""
        if node.op_type in BODY_RULES:
            context = Context(around.opset, self._declarations, self._walked <= self._most_separate)
            body = self._bodies_of(path, around)
            return BODY_RULES[node.op_type](body, node, inputs, context)
        try:
            self._judge(node, path, around, [], is_decided=check_position(node, inputs))
        except SplitError as error:
            self._judge(node, path, around, [error], is_decided=False)
        return [SEQUENCE_RULES[node.op_type](node, inputs)]

    def split(
        self,
        node: ir.Node,
        path: str,
        around: Surroundings,
        inputs: list[Fact],
        attributes: Attributes,
    ) -> list[Fact]:
        """Analyse a split node; returns what is known of its outputs."""
        split = self.known_split(node, around.opset, inputs, attributes)
        before = before_check(node, split.intent, inputs, self.facts.of)
        if before is not None:
            passed = self.known_split(node, around.opset, before, attributes)
            split = replace(passed, intent=split.intent)  # it asks for what is checked
        if not around.calls:
            self.facts.note_split(node, split)
        if split.errors and self._strict and around.runs is not False:
            raise split.errors[0].located(node=path)
        self._judge(node, path, around, split.errors, is_decided=split.is_decided)
        if split.intent is not None and split.intent.rule in (equal, ceil):
            data = without_elements(inputs[0])
            counts = self._counts.setdefault((data, split.intent.axis), set())
            counts.add(len(node.outputs))
            self.facts.counts_alike[node] = counts
        return split.outputs or _only_typed(split, node, inputs)

    def known_split(
        self, node: ir.Node, opset: int, inputs: list[Fact], attributes: Attributes
    ) -> KnownSplit:
        """Return what is known about a split node; models repeat theirs, right ones are cached."""
        alike = alike_of(node, opset, inputs, attributes)
        found = self._alike.get(alike)
        if found is None:
            found = split_of(node, opset, inputs, attributes)
            if alike is not None and found.plan is not None and not found.errors:
                self._alike[alike] = found
        return found

    def _judge(
        self,
        node: ir.Node,
        path: str,
        around: Surroundings,
        errors: list[SplitError],
        *,
        is_decided: bool,
    ) -> None:
        """Note the errors of a checked node, or that it can't be decided before the run."""
        self.facts.refusals += [
            Refusal(error.located(node=path), around.runs, node) for error in errors
        ]
        is_refused = bool(errors) and around.runs is True
        if not is_decided and not is_refused and around.runs is not False:
            self._leave_open(path)

    def _leave_open(self, path: str) -> None:
        leading = {self._leading} if self._leading is not None else set()
        self.facts.undecided.setdefault(path, set()).update(leading)

    def _call(
        self,
        function: ir.Function,
        inputs: list[Fact],
        passed: Attributes,
        around: Surroundings,
    ) -> list[Fact]:
        """Analyse a call; of calls that are alike, or taken for it, only the first."""
        if function in around.calls:
            return []
        known: Attributes | None = passed
        if self._walked > self._most_separate:
            is_far = self._walked > 2 * self._most_separate
            inputs = [UNKNOWN if is_far else kind_only(fact) for fact in inputs]
            known = None
        memo = (function, tuple(inputs), None if known is None else call_key(known), around.runs)
        if memo not in self._results:
            call = replace(around, passed=known)
            self._results[memo] = self._function(function, inputs, call)
        found, undecided = self._results[memo]
        for path in undecided if around.runs is not False else ():
            self._leave_open(path)
        return found

    def _function(
        self, function: ir.Function, inputs: list[Fact], call: Surroundings
    ) -> tuple[list[Fact], tuple[str, ...]]:
        """Analyse one call; returns what is known of its outputs, and what is undecided."""
        self._called.add(function)
        outer, self.facts = self.facts, Facts()
        inside = replace(
            call,
            path=function_label(function),
            opsets=domain_opsets(function.opset_imports),
            depth=call.depth + 1,
            calls=call.calls | {function},
        )
        for value, fact in zip_longest(function.inputs, inputs[: len(function.inputs)]):
            self.facts.set(value, fact or ABSENT)
        try:
            return self.scope(function, inside), tuple(self.facts.undecided)
        finally:
            outer.absorb(self.facts)
            self.facts = outer


def _only_typed(split: KnownSplit, node: ir.Node, inputs: list[Fact]) -> list[Fact]:
    """Return the outputs of a refused split, which may stand in a branch that never runs."""
    data = inputs[0] if inputs else UNKNOWN
    if not isinstance(data, Tensor) or split.operator is None or split.operator.is_sequence:
        return []
    return [Tensor(data.element_type)] * len(node.outputs)


def _of_initializer(value: ir.Value, opset: int) -> Fact:
    return declared(value) if value.const_value is None else of_constant(value.const_value, opset)


def fact_of_fed(value: ir.Value, fed: object, opset: int | None) -> Fact:
    """Return the fact about a fed value; about one that may be absent only what is declared.

    Its elements are left out where the opset is None.
    """
    if isinstance(fed, (Tensor, SequenceFact, Other)):
        return fed
    if isinstance(value.type, ir.OptionalType):
        return declared(value)
    if isinstance(fed, np.ndarray):
        elements = None if opset is None else values_of(fed, opset)
        return Tensor(_type_of(fed), fed.shape, elements)
    if isinstance(fed, list) and all(isinstance(item, np.ndarray) for item in fed):
        kinds = {_type_of(item) for item in fed}
        return of_parts(
            kinds.pop() if len(kinds) == 1 else value.dtype, [item.shape for item in fed]
        )
    return declared(value)


def _type_of(array: Array) -> ir.DataType:
    return ir.DataType[element_type(array).upper()]
