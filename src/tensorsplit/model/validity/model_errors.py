"""The errors of a model whatever it is fed: values, functions, imports, and every node.

Functions are looked at once for each kind of call: with which attributes, and without which inputs.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from graphlib import CycleError, TopologicalSorter
from itertools import islice
from math import inf
from typing import Any, TypeVar

import onnx_ir as ir
from onnx import defs

from tensorsplit.core.errors import MALFORMED_MODEL, UNSUPPORTED_NODE, SplitError, show
from tensorsplit.model.graph.binding import bind
from tensorsplit.model.graph.building import full_collections_deferred
from tensorsplit.model.graph.calls import (
    MAX_SPECIALISED,
    Attributes,
    Key,
    Place,
    attributes_of,
    called_by,
    check_ends,
    check_references,
    check_specialised,
    functions_of,
    is_open,
)
from tensorsplit.model.graph.engine_operators import in_onnx, is_of_engines
from tensorsplit.model.graph.facts import ABSENT, UNKNOWN, Fact
from tensorsplit.model.graph.held_tensors import held_by
from tensorsplit.model.graph.node_paths import check_depth, function_label, node_paths
from tensorsplit.model.graph.nodes import Scope, bodies, is_operator, nodes_in, scopes_inside
from tensorsplit.model.graph.opsets import model_opsets, schema_of
from tensorsplit.model.graph.ordering import is_ambiguous, value_names
from tensorsplit.model.graph.producers import producer_of, read_by
from tensorsplit.model.graph.split_records import FAMILY, is_split
from tensorsplit.model.refusals import malformed
from tensorsplit.model.validity.node_errors import wrong_bodies, wrong_signature

MAX_STEPS = 1 << 20
"""Models that expand to more nodes than this through calls of functions are refused."""

_SORT = "sort the nodes, as lower and convert do"
_SORT_AROUND = "sort the nodes of the main graph, as lower and convert do"

_MOST_CYCLES = 100
"""Beyond this number of cycles in one graph, the other nodes are reported as in a wrong order."""


class OrderError(SplitError):
    """The refusal of a node that reads what a later one gives (TS502); an engine may sort them."""


class BodyOrderError(SplitError):
    """The refusal (TS502) of a body that reads what the main graph gives later; few sort these."""


@full_collections_deferred()
def model_errors(model: ir.Model, *, needs_names: bool = True) -> list[SplitError]:
    """Return the errors of a model whatever it is fed, each with the path of its place.

    The errors come in the order in which the nodes would run, those of functions as a whole first.
    A domain without opset import is reported at the first node that needs it.

    Args:
        model: The model, of which no weights are read.
        needs_names: Whether a node has to name the outputs that its schema requires. A run does
            without.

    Returns:
        TS101 to TS107 and TS305 for split nodes of the main graph, TS509 for operators that there
        are not, TS502 for all else. Empty if the model is well-formed.
    """
    return _Search(model, needs_names).errors()


def check_well_formed(model: ir.Model) -> None:
    """Refuse to rewrite a model that is not well-formed (TS502).

    Functions that nothing calls are searched too, for they are rewritten as well. How many nodes a
    run would take does not matter; wrong splits and unknown operators are left to the rewriting.
    """
    for error in causes_first(_Search(model, is_rewritten=True).errors()):
        if error.kind is MALFORMED_MODEL:
            raise error


def causes_first(errors: Iterable[SplitError]) -> list[SplitError]:
    """Return errors with those of the order of nodes last: others may be why there is no order."""
    return sorted(errors, key=lambda error: isinstance(error, (OrderError, BodyOrderError)))


class _Search:
    """The search for the errors of one model; see `model_errors` and `check_well_formed`."""

    def __init__(
        self, model: ir.Model, needs_names: bool = True, *, is_rewritten: bool = False
    ) -> None:
        self._model, self._needs_names = model, needs_names
        self._is_rewritten, self._most = is_rewritten, inf if is_rewritten else MAX_STEPS
        self._functions = functions_of(model)
        self._names = {key[:2] for key in self._functions}
        self._found: list[SplitError] = []
        self._weights: dict[Any, int] = {}
        """How many nodes a function runs in one kind of call, with all that it calls."""
        self._known: set[ir.Value] = set()
        """Values that are inputs, constants or produced by a node so far."""
        self._cycles: dict[Scope | None, list[frozenset[ir.Node]]] = {}
        self._holders: dict[Scope | None, ir.Node] = {}
        """The nodes that have the bodies which were met."""
        self._names_in = cache(value_names)
        self._unimported: set[tuple[str, str]] = set()
        self._right: set[object] = set()
        """The checked properties by which right nodes differ."""

    def errors(self) -> list[SplitError]:
        """Return the errors, in order."""
        graph, self._found = self._model.graph, list(_function_errors(self._functions))
        if not graph.outputs:
            self._found.append(
                malformed("the graph has no outputs", "name what it computes", "graph")
            )
        try:
            place = Place("graph", model_opsets(self._model))
            self._scope(graph, place)
            if self._is_rewritten:
                self._uncalled(place)
        except SplitError as error:  # nothing after it can be looked at
            self._found.append(error)
        return self._found

    def _uncalled(self, place: Place) -> None:
        """Search the functions that nothing calls, whose attributes are not known."""
        called = {function for function, *_ in self._weights}
        for function in self._functions.values():
            if function not in called:
                names = function.attributes
                kind = ir.AttributeType.UNDEFINED
                passed = {name: ir.RefAttr(name, name, kind) for name in names}
                self._call(function, function.inputs, passed, place, place.path)

    def _note(self, error: SplitError, path: str) -> None:
        self._found.append(error.located(node=path))

    def _scope(self, scope: Scope, place: Place) -> int:
        """Search a graph or function; returns how many nodes it runs.

        Each node must read only what is produced before it.
        """
        check_depth(place.depth, place.path)
        self._known.update(scope.inputs)
        if isinstance(scope, ir.Graph):
            held = scope.initializers.values()
            self._known.update(value for value in held if value.const_value is not None)
        weight = 0
        for node, path in zip(scope, node_paths(place.path, scope), strict=True):
            try:
                weight += self._node(node, path, place)
            except SplitError as error:
                raise error.located(node=path) from None
            if weight > self._most:  # before the next call is looked at, which takes memory
                problem = f"functions expand to more than {MAX_STEPS} nodes"
                raise malformed(problem, "call them less", path)
            self._known.update(node.outputs)
        for value in scope.outputs:
            if value not in self._known:
                fix = "name an existing value, or add the node that produces it"
                problem = f"nothing produces the output {show(value.name)}"
                self._note(malformed(problem, fix), place.path)
        return weight

    def _node(self, node: ir.Node, path: str, place: Place) -> int:
        """Search a node and its bodies; returns how many nodes it runs."""
        inputs = place.inputs_of(node)
        for value in dict.fromkeys(inputs):
            if value is not None and value not in self._known:
                self._note(self._not_produced(value, node), path)
        weight = int(not is_operator(node, "Constant"))
        try:
            attributes = self._attributes(node, path, place)
            function = None if attributes is None else self._called(node)
            if function is None and attributes is not None:
                for error in self._operator_errors(node, inputs, attributes, place):
                    self._note(error, path)
        except SplitError as error:
            self._note(error, path)
            function = attributes = None
        if function is not None and attributes is not None:
            for name in attributes:
                if name not in function.attributes:
                    self._note(_no_attribute(function, name), path)
            weight += self._call(function, inputs, attributes, place, path)
        for label, body in bodies(node):
            self._holders[body] = node
            weight += self._scope(body, place.inside(f"{path}.{label}"))
        return weight

    def _not_produced(self, value: ir.Value, node: ir.Node) -> SplitError:
        """Return the refusal of a node that reads a value that is not there yet."""
        name, producer, scope = show(value.name), value.producer(), node.graph
        if producer is None:
            fix = "correct the name, or add the node, initializer or input that gives it"
            return malformed(f"nothing produces its input {name}", fix)
        if any(graph is scope for graph in scopes_inside(producer)):
            problem = f"its input {name} is what the node around it makes"
            return malformed(problem, "have it read another value: ONNX has no cycles")
        home, reader = producer.graph, node
        while reader.graph is not home and reader.graph in self._holders:
            reader = self._holders[reader.graph]
        if home not in self._cycles:
            reads = {each: filter(None, map(producer_of, read_by(each))) for each in home or ()}
            self._cycles[home] = list(map(frozenset, islice(_cycles(reads), _MOST_CYCLES)))
        if any(reader in cycle and producer in cycle for cycle in self._cycles[home]):
            problem = f"its input {name} is made of what the node itself makes"
            return malformed(problem, "have it read another value: ONNX has no cycles")
        if is_ambiguous(value.name, map(self._names_in, self._around(node))):
            problem = f"its input {name} is read early, and a graph around has a value of the name"
            return malformed(problem, "rename one of the two")
        problem = f"its input {name} is read before it is produced"
        is_in_body = reader is not node and home is self._model.graph
        if is_in_body:
            return BodyOrderError(MALFORMED_MODEL, problem, _SORT_AROUND)
        return OrderError(MALFORMED_MODEL, problem, _SORT)

    def _around(self, node: ir.Node) -> Iterator[Scope]:
        """Yield the graph or function that a node is in, and those around it."""
        scope = node.graph
        while scope is not None:
            yield scope
            holder = self._holders.get(scope)
            scope = None if holder is None else holder.graph

    def _attributes(self, node: ir.Node, path: str, place: Place) -> Attributes | None:
        """Return the attributes of a node; None where its domain is known to be missing."""
        if node.domain not in place.opsets:
            where = (place.path.partition("/")[0], node.domain)
            if where in self._unimported:
                return None
            self._unimported.add(where)
            problem = f"there is no opset import for the domain {show(node.domain or 'ai.onnx')}"
            owner = "model" if place.passed is None else "function"
            raise malformed(problem, f"add it to the opset_import of the {owner}")
        check_references(node, place.passed, path)
        return attributes_of(node, place.passed)

    def _called(self, node: ir.Node) -> ir.Function | None:
        """Return the function that a node calls, or None if it is an operator."""
        key = called_by(node)
        function = self._functions.get(key)
        if function is None and key[:2] in self._names:
            problem = f"the function {show(node.op_type)} has no overload {show(node.overload)}"
            raise malformed(problem, "name one that the model defines")
        if function is None:
            return None
        check_ends(node, function)
        return function

    def _call(
        self,
        function: ir.Function,
        inputs: Sequence[ir.Value | None],
        attributes: Attributes,
        around: Place,
        path: str,
    ) -> int:
        """Search a function in one call, unless one like it was met; returns how many nodes run."""
        place, key = around.call(function, inputs, attributes)
        if key not in self._weights:
            met, known = len(self._weights), len(self._functions)
            if self._is_rewritten and met >= known + MAX_SPECIALISED:
                return 0  # as far as is reasonable
            check_specialised(met, known, path)
            self._weights[key] = 0  # before it is searched: a function may call itself
            self._weights[key] = self._scope(function, place)
        return self._weights[key]

    def _operator_errors(
        self,
        node: ir.Node,
        inputs: Sequence[ir.Value | None],
        attributes: Attributes,
        place: Place,
    ) -> Iterator[SplitError]:
        """Yield the errors of a node by itself; models repeat theirs, which are cached."""
        opsets = place.opsets
        if is_split(node):
            if place.depth == 0:  # elsewhere it may never run (D22)
                known: list[Fact] = [ABSENT if value is None else UNKNOWN for value in inputs]
                bind(node, opsets.get("", 0), known, attributes)
            return
        made = [value.name if self._needs_names else value for value in node.outputs]
        alike = (
            *(node.domain, node.op_type, opsets[node.domain]),
            tuple([(name, int(entry.type)) for name, entry in attributes.items()]),
            tuple([value is None for value in inputs]),
            tuple(map(bool, made)),
        )
        errors: list[SplitError] = []
        if alike not in self._right:
            schema, opset, further = _schema_in_force(node, opsets[node.domain])
            if schema is not None:
                most = schema.max_output
                listed = made if len(made) > most + further else made[:most]
                errors += wrong_signature(schema, opset, attributes, node.inputs, listed)
            yield from errors
        if not errors:
            self._right.add(alike)
        if node.domain != "":
            return
        if not errors:
            yield from wrong_bodies(node, opsets[""], attributes)
        is_right = node.op_type != "Constant" or any(map(is_open, attributes.values()))
        if not is_right and held_by(attributes) is None:
            yield malformed(f"Constant has {len(attributes)} values", "give it exactly one")


def _no_attribute(function: ir.Function, name: str) -> SplitError:
    """Return the refusal of a call that gives an attribute that the function does not have."""
    known = ", ".join(map(show, sorted(function.attributes)[:12]))
    fix = f"give one of {known}" if known else "leave it out; the function has none"
    return malformed(f"the {function_label(function)} has no attribute {show(name)}", fix)


def _schema_in_force(node: ir.Node, opset: int) -> tuple[defs.OpSchema | None, int, int]:
    """Return the schema of a node, the opset that it is of, and how many more outputs it may have.

    An engine's own operator has the schema of the one of ONNX that means the same, or None; TS509
    where there is none of another operator.
    """
    newest = defs.onnx_opset_version()
    if node.domain == "" and opset > newest:
        problem = f"the operator {show(node.op_type)} is asked for at opset {opset}"
        fix = f"the installed onnx knows opsets up to {newest}"
        raise SplitError(UNSUPPORTED_NODE, problem, fix)
    if node.domain == "" and is_of_engines(node.op_type, opset):
        meant = in_onnx(node.op_type, opset)
        if meant is None:
            return None, opset, 0
        return schema_of(meant.op_type, meant.opset), meant.opset, meant.further
    schema = schema_of(node.op_type, opset, node.domain)
    if schema is None and node.domain == "":
        problem = f"there is no operator {show(node.op_type)} at opset {opset}"
        fix = "use an operator of that opset, or import the opset that has it"
        raise SplitError(UNSUPPORTED_NODE, problem, fix)
    if schema is not None and schema.deprecated:
        problem = f"the operator {node.op_type} is deprecated at opset {opset}"
        fix = "use what has taken its place, or import an older opset"
        raise SplitError(UNSUPPORTED_NODE, problem, fix)
    return schema, opset, 0


def _function_errors(functions: Mapping[Key, ir.Function]) -> Iterator[SplitError]:
    """Yield the functions that redefine a split, or call themselves.

    Engines disagree on what a redefined operator is.
    """
    for (domain, name, _), function in functions.items():
        if domain == "" and name in FAMILY:
            problem = f"the function redefines the operator {name}"
            yield malformed(problem, "give it a domain of its own", function_label(function))
    calls = {
        key: dict.fromkeys(map(called_by, nodes_in(function)))
        for key, function in functions.items()
    }
    for first, *others in _cycles(calls):
        through = ", ".join(function_label(functions[key]) for key in others)
        problem = f"the function calls itself{f', through the {through}' if through else ''}"
        fix = "write it as a Loop: ONNX has no recursion"
        yield malformed(problem, fix, function_label(functions[first]))


_K = TypeVar("_K", bound=Hashable)


def _cycles(edges: Mapping[_K, Iterable[_K]]) -> Iterator[tuple[_K, ...]]:
    """Yield cycles without nodes in common; each starts with its first node in the mapping."""
    left = {node: [each for each in others if each in edges] for node, others in edges.items()}
    places = {node: index for index, node in enumerate(edges)}
    while True:
        try:
            return TopologicalSorter(left).prepare()
        except CycleError as error:
            cycle: list[_K] = error.args[1][:0:-1]  # against the direction of the sorter
            first = cycle.index(min(cycle, key=places.__getitem__))
            yield (*cycle[first:], *cycle[:first])
            gone = set(cycle)
            left = {
                node: [each for each in others if each not in gone]
                for node, others in left.items()
                if node not in gone
            }
