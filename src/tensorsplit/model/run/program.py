"""Compile a model into steps: functions specialised for each call, nodes checked, lifetimes known.

Nothing runs here.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from graphlib import CycleError, TopologicalSorter
from itertools import islice, zip_longest
from typing import Any, TypeVar

import numpy as np
import onnx_ir as ir
from onnx import defs

from tensorsplit.arrays.pool import BufferPool
from tensorsplit.core.errors import NODE_FAILED, UNSUPPORTED_NODE, SplitError, show
from tensorsplit.model.graph.binding import bind
from tensorsplit.model.graph.building import collector_paused
from tensorsplit.model.graph.calls import (
    Attributes,
    Key,
    attributes_of,
    call_key,
    called_by,
    check_call,
    check_references,
    check_specialised,
    functions_of,
    passed_to,
)
from tensorsplit.model.graph.facts import ABSENT, UNKNOWN, Fact
from tensorsplit.model.graph.nodes import (
    FAMILY,
    Scope,
    bodies,
    check_depth,
    domain_opsets,
    function_label,
    held_by,
    is_split,
    malformed,
    model_opsets,
    node_paths,
    schema_of,
    scopes_in,
)
from tensorsplit.model.graph.reading import OnnxModel
from tensorsplit.model.graph.tensors import read_tensor
from tensorsplit.model.infer.splits import alike_of
from tensorsplit.model.infer.well_formed import wrong_bodies, wrong_signature

MAX_STEPS = 1 << 20
"""Models that expand to more nodes than this through calls of functions are refused."""

_MOST_IDLE = 1 << 28
"""How many bytes a compiled model keeps for its next run."""

_MOST_CYCLES = 100
"""The nodes of more cycles than this in one graph are told to be in a wrong order."""


@dataclass(slots=True, eq=False)
class Step:
    """A node, ready to run.

    Attributes:
        opset: The opset of its domain.
        inputs: What it reads; None for an input that the node or the call omits.
        attributes: Its attributes, none of which refers to one of a function.
        blocks: Its bodies by attribute name.
        release: Values whose last use this is.
        pool: Memory for large outputs, of all steps of the model.
        kernel: What runs the node, if it is of another operator; made when it first runs.
    """

    node: ir.Node
    path: str
    opset: int
    opsets: Mapping[str, int]
    inputs: tuple[ir.Value | None, ...]
    attributes: Attributes
    pool: BufferPool
    blocks: Mapping[str, Block] = field(default_factory=dict)
    callee: Block | None = None
    release: tuple[ir.Value, ...] = ()
    kernel: Callable[[Sequence[Any]], list[Any]] | None = None

    @property
    def op_type(self) -> str:
        """The operator."""
        return self.node.op_type

    @property
    def domain(self) -> str:
        """The domain of the operator; ONNX's own is ``""``."""
        return self.node.domain

    @property
    def is_split(self) -> bool:
        """Whether this package defines the operator."""
        return self.callee is None and is_split(self.node)


@dataclass(slots=True, eq=False)
class Block:
    """A graph, a body, or a function for one kind of call.

    Attributes:
        constants: What reads an initializer or the result of a Constant node, once.
        captures: For a body, the values that it reads from around it.
        weight: How many nodes it runs, with all that it calls.
    """

    inputs: tuple[ir.Value, ...]
    outputs: tuple[ir.Value, ...]
    constants: dict[ir.Value, Callable[[], Any]]
    steps: list[Step] = field(default_factory=list)
    captures: set[ir.Value] = field(default_factory=set)
    weight: int = 0

    def only(self, wanted: Sequence[ir.Value]) -> Block:
        """Return the part of the block that some of its values need."""
        needed, kept = set(wanted), []
        for step in reversed(self.steps):
            if not needed.isdisjoint(step.node.outputs):
                needed |= _read_by(step)
                kept.append(step)
        part = Block(self.inputs, tuple(wanted), self.constants, kept[::-1], self.captures)
        _plan_release(part)
        return part


def node_failed(problem: str, fix: str) -> SplitError:
    """Return the refusal of a node whose inputs or bodies it can't run on (TS510)."""
    return SplitError(NODE_FAILED, problem, fix)


def described(value: Any) -> str:
    """Return the type and shape of a value of a run, such as ``float32[2, 3]``."""
    if isinstance(value, np.ndarray):
        return f"{value.dtype}{list(value.shape)}"
    return "nothing" if value is None else f"a {type(value).__name__}"


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a graph or function stands, and what is in force there.

    Attributes:
        passed: The attributes of the function around it in this call; None outside of functions.
        absent: The inputs of that function that the call omits.
    """

    path: str
    opsets: Mapping[str, int]
    passed: Attributes | None = None
    absent: frozenset[ir.Value] = frozenset()
    depth: int = 0


@collector_paused()
def compile_model(model: OnnxModel) -> Block:
    """Make a model ready to run; returns its main graph. The model must not change any more.

    Raises:
        SplitError: TS101 to TS107, TS305 for split nodes that are wrong whatever they are fed;
            TS502, TS504, TS509 for a model that is not well-formed or can't be run.
    """
    return _Compiler(model.model, None).main()


@collector_paused()
def contradictions(model: OnnxModel) -> list[SplitError]:
    """Everything that `compile_model` may refuse, of which it raises the first.

    A domain without opset import is told of the first node that needs it.
    """
    found: list[SplitError] = []
    try:
        _Compiler(model.model, found).main()
    except SplitError as error:  # nothing behind it can be looked at
        found.append(error)
    return found


class _Compiler:
    """Compiles one model.

    Args:
        model: The model.
        found: Where to note what is wrong, and to go on; None to raise it.
    """

    def __init__(self, model: ir.Model, found: list[SplitError] | None) -> None:
        self._model, self._found = model, found
        self._pool = BufferPool(_MOST_IDLE)
        self._functions = self._checked_functions()
        self._names = {key[:2] for key in self._functions}
        self._specialised: dict[Any, Block] = {}
        self._known: set[ir.Value] = set()
        """Values that are inputs, constants or produced by a node so far."""
        self._cycles: dict[Scope | None, list[frozenset[ir.Node]]] = {}
        self._unimported: set[tuple[str, str]] = set()
        self._right: set[Any] = set()
        """What tells nodes apart as far as they were checked, of those that are right."""

    def main(self) -> Block:
        """Return the main graph."""
        graph = self._model.graph
        if not graph.outputs:
            self._refuse(malformed("the graph has no outputs", "name what it computes"), "graph")
        return self.graph(graph, _Place("graph", model_opsets(self._model)))

    def _refuse(self, error: SplitError, path: str) -> None:
        error.located(node=path)
        if self._found is None:
            raise error
        self._found.append(error)

    def graph(self, graph: ir.Graph, place: _Place) -> Block:
        """Return a graph. A body's initializers may be listed as inputs too; they are none."""
        check_depth(place.depth, place.path)
        is_body = place.depth > 0
        constants = {
            value: _reader(value.const_value, value.name, place.path)
            for value in graph.initializers.values()
            if value.const_value is not None
        }
        inputs = tuple(v for v in graph.inputs if not (is_body and v in constants))
        block = self._fill(Block(inputs, tuple(graph.outputs), constants), graph, place)
        if is_body:
            read = set(block.outputs).union(*map(_read_by, block.steps))
            block.captures = {value for value in read if value.graph is not graph}
        return block

    def _called(self, node: ir.Node) -> ir.Function | None:
        """Return the function that a node calls, or None if it is an operator."""
        key = called_by(node)
        function = self._functions.get(key)
        if function is None and key[:2] in self._names:
            problem = f"the function {show(node.op_type)} has no overload {show(node.overload)}"
            raise malformed(problem, "name one that the model defines")
        if function is None:
            return None
        for what, given, declared in (
            ("inputs", node.inputs, function.inputs),
            ("outputs", node.outputs, function.outputs),
        ):
            if len(given) > len(declared):
                fix = f"give it at most {len(declared)}, as the {function_label(function)} has"
                raise malformed(f"the call has {len(given)} {what}", fix)
        return function

    def _function(self, function: ir.Function, call: Step, depth: int) -> Block:
        """Return a function specialised for the attributes and the omitted inputs of a call."""
        for name, attribute in call.attributes.items():
            try:
                check_call(function, {name: attribute}, call.path)
            except SplitError as error:
                self._refuse(error, call.path)
        passed = passed_to(function, call.attributes)
        pairs = zip_longest(function.inputs, call.inputs)
        absent = frozenset(value for value, given in pairs if given is None)
        key = (function, absent, call_key(passed))
        if key in self._specialised:
            return self._specialised[key]
        check_specialised(len(self._specialised), len(self._functions), call.path)
        label = function_label(function)
        check_depth(depth, label)
        place = _Place(label, domain_opsets(function.opset_imports), passed, absent, depth)
        block = Block(tuple(function.inputs), tuple(function.outputs), {})
        self._specialised[key] = block  # before it is filled: a function may call itself
        return self._fill(block, function, place)

    def _fill(self, block: Block, scope: Scope, place: _Place) -> Block:
        """Add the steps to a block; each must read only what is produced before it."""
        self._known.update(block.inputs, block.constants)
        for node, path in zip(scope, node_paths(place.path, scope), strict=True):
            try:
                self._add(block, node, path, place)
            except SplitError as error:
                raise error.located(node=path) from None
            self._known.update(node.outputs)
        for value in block.outputs:
            if value not in self._known:
                fix = "name a value that is there, or add the node that makes it"
                problem = f"nothing produces the output {show(value.name)}"
                self._refuse(malformed(problem, fix), place.path)
        if self._found is None:  # else it is not going to run
            _plan_release(block)
        return block

    def _add(self, block: Block, node: ir.Node, path: str, place: _Place) -> None:
        """Add one node to a block."""
        inputs = tuple(None if value in place.absent else value for value in node.inputs)
        for value in dict.fromkeys(inputs):
            if value is not None and value not in self._known:
                self._refuse(self._not_produced(value, node), path)
        step = Step(
            node, path, place.opsets.get(node.domain, 0), place.opsets, inputs, {}, self._pool
        )
        try:
            function = self._checked(step, place)
        except SplitError as error:
            self._refuse(error, path)
            function = None
        if function is not None:
            step.callee = self._function(function, step, place.depth + 1)
        elif (node.domain, node.op_type) == ("", "Constant"):
            held = held_by(step.attributes)
            if held is not None and node.outputs:
                block.constants[node.outputs[0]] = _reader(held, node.outputs[0].name, path)
                return
        step.blocks = {
            label: self.graph(body, replace(place, path=f"{path}.{label}", depth=place.depth + 1))
            for label, body in bodies(node)
        }
        block.steps.append(step)
        inner = [*step.blocks.values(), *([step.callee] if step.callee else [])]
        block.weight += 1 + sum(entry.weight for entry in inner)
        if block.weight > MAX_STEPS:  # before the next call is specialised, which takes memory
            raise malformed(f"functions expand to more than {MAX_STEPS} nodes", "call them less")

    def _not_produced(self, value: ir.Value, node: ir.Node) -> SplitError:
        """Return the refusal of a node that reads a value that is not there yet."""
        name, producer, scope = show(value.name), value.producer(), node.graph
        if producer is None:
            fix = "correct the name, or add the node, initializer or input that gives it"
            return malformed(f"nothing produces its input {name}", fix)
        around = (graph for _, body in bodies(producer) for graph in scopes_in(body))
        if any(graph is scope for graph in around):
            problem = f"its input {name} is what the node around it makes"
            return malformed(problem, "have it read another value: ONNX has no cycles")
        if scope not in self._cycles:
            reads = {each: _read_directly(each) for each in scope or ()}
            self._cycles[scope] = list(map(frozenset, islice(_cycles(reads), _MOST_CYCLES)))
        problem, fix = f"its input {name} is read before it is produced", "sort the nodes"
        if any(node in cycle and producer in cycle for cycle in self._cycles[scope]):
            problem += ", and is made of what the node itself makes"
            fix = "have it read another value: ONNX has no cycles"
        return malformed(problem, fix)

    def _checked(self, step: Step, place: _Place) -> ir.Function | None:
        """Check a node by itself, and set its attributes; returns the function that it calls."""
        node = step.node
        if node.domain not in place.opsets:
            where = (place.path.partition("/")[0], node.domain)
            if where in self._unimported:
                return None
            self._unimported.add(where)
            problem = f"there is no opset import for the domain {show(node.domain or 'ai.onnx')}"
            owner = "model" if place.passed is None else "function"
            raise malformed(problem, f"add it to the opset_import of the {owner}")
        check_references(node, place.passed, step.path)
        step.attributes = attributes_of(node, place.passed)
        function = self._called(node)
        if function is None and step.is_split:
            known: list[Fact] = [ABSENT if value is None else UNKNOWN for value in step.inputs]
            alike = alike_of(node, step.opset, known, step.attributes)
            if alike is None or alike not in self._right:  # models repeat theirs
                bind(node, step.opset, known, step.attributes)
                self._right.add(alike)
        elif function is None:
            self._check_node(step)
        return function

    def _check_node(self, step: Step) -> None:
        """Check a node of another operator against the schema, where onnx has the domain."""
        newest = defs.onnx_opset_version()
        if step.domain == "" and step.opset > newest:
            problem = f"the operator {show(step.op_type)} is asked for at opset {step.opset}"
            fix = f"the installed onnx knows opsets up to {newest}"
            raise SplitError(UNSUPPORTED_NODE, problem, fix)
        schema = schema_of(step.op_type, step.opset, step.domain)
        if schema is None and step.domain != "":
            return
        if schema is None or schema.deprecated:
            problem = f"there is no operator {show(step.op_type)} at opset {step.opset}"
            fix = "use an operator of that opset, or import the opset that has it"
            if schema is not None:
                problem = f"the operator {step.op_type} is deprecated at opset {step.opset}"
                fix = "use what has taken its place, or import an older opset"
            raise SplitError(UNSUPPORTED_NODE, problem, fix)
        made: Sequence[object] = step.node.outputs  # here it runs with a name left out, too
        if self._found is not None:
            made = [value.name for value in step.node.outputs]
        node, held = step.node, step.attributes
        alike = (
            *(step.domain, step.op_type, step.opset),
            tuple([(name, int(entry.type)) for name, entry in held.items()]),
            tuple([value is None for value in node.inputs]),
            tuple(map(bool, made)),
        )
        refused: list[SplitError] = []
        if alike not in self._right:
            refused += wrong_signature(schema, step.opset, held, node.inputs, made)
        if not refused:
            self._right.add(alike)
        if step.domain == "" and not refused:
            refused += wrong_bodies(node, step.opset, held)
        for error in refused:
            self._refuse(error, step.path)
        is_constant = (step.domain, step.op_type) == ("", "Constant")
        if is_constant and held_by(step.attributes) is None:
            problem = f"Constant has {len(step.attributes)} values"
            self._refuse(malformed(problem, "give it exactly one"), step.path)

    def _checked_functions(self) -> dict[Key, ir.Function]:
        """Return the functions of the model, none of which may call itself.

        None may redefine an operator of this package: engines disagree on which of the two holds.
        """
        found = functions_of(self._model)
        for (domain, name, _), function in found.items():
            if domain == "" and name in FAMILY:
                problem = f"the function redefines the operator {name}"
                fix = "give it a domain of its own"
                self._refuse(malformed(problem, fix), function_label(function))
        calls = {
            key: dict.fromkeys(called_by(node) for scope in scopes_in(function) for node in scope)
            for key, function in found.items()
        }
        for first, *others in _cycles(calls):
            through = ", ".join(function_label(found[key]) for key in others)
            problem = f"the function calls itself{f', through the {through}' if through else ''}"
            error = malformed(problem, "write it as a Loop: ONNX has no recursion")
            self._refuse(error, function_label(found[first]))
        return found


_K = TypeVar("_K", bound=Hashable)


def _cycles(edges: Mapping[_K, Iterable[_K]]) -> Iterator[tuple[_K, ...]]:
    """Cycles of a graph without nodes in common; each starts with its first node in the mapping."""
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


def _read_directly(node: ir.Node) -> Iterator[ir.Node]:
    """Yield the nodes that a node reads from, not those that its bodies do."""
    for value in node.inputs:
        producer = None if value is None else value.producer()
        if producer is not None:
            yield producer


def _reader(tensor: ir.TensorProtocol, name: str | None, path: str) -> Callable[[], Any]:
    @cache
    def read() -> Any:
        try:
            array = read_tensor(tensor, name or "").view()
        except SplitError as error:
            raise error.located(node=path) from None
        array.flags.writeable = False  # the next run needs it as it is
        return array

    return read


def _read_by(step: Step) -> set[ir.Value]:
    """Return the values that a step reads, in its bodies too."""
    read = {value for value in step.inputs if value is not None}
    return read.union(*(entry.captures for entry in step.blocks.values()))


def _plan_release(block: Block) -> None:
    """Note after which step each value can be released."""
    needed = {*block.outputs, *block.constants}
    local = {*block.inputs, *(value for step in block.steps for value in step.node.outputs)}
    for step in reversed(block.steps):
        used = _read_by(step) | set(step.node.outputs)
        step.release = tuple((used & local) - needed)
        needed |= used
