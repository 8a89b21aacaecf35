"""Compile a model into steps: functions specialised for each call, lifetimes known.

Nothing runs here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from typing import Any, TypeAlias

import numpy as np
import onnx_ir as ir

from tensorsplit.arrays.pool import BufferPool
from tensorsplit.core.errors import NODE_FAILED, SplitError
from tensorsplit.model.graph.building import full_collections_deferred
from tensorsplit.model.graph.calls import Attributes, Place, attributes_of, called_by, functions_of
from tensorsplit.model.graph.facts import Tensor
from tensorsplit.model.graph.held_tensors import held_by
from tensorsplit.model.graph.node_paths import node_paths
from tensorsplit.model.graph.nodes import Scope, bodies, is_operator
from tensorsplit.model.graph.opsets import model_opsets
from tensorsplit.model.graph.split_records import is_split
from tensorsplit.model.graph.tensors import read_tensor
from tensorsplit.model.infer.analysis import analyse
from tensorsplit.model.reading import OnnxModel
from tensorsplit.model.validity.model_errors import causes_first, model_errors

_MOST_IDLE = 1 << 28
"""How many bytes a compiled model keeps for its next run."""


Values: TypeAlias = list[Any]
"""Values of a run: tensors in arrays, sequences in lists; None for an empty optional or nothing."""

Kernel: TypeAlias = Callable[[Sequence[Any]], Values]
"""Runs a node on the values of its inputs."""


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
        known: What is known of a value whatever is fed.
        kernel: What runs the node, if it is of another operator; made when it first runs.
    """

    node: ir.Node
    path: str
    opset: int
    opsets: Mapping[str, int]
    inputs: tuple[ir.Value | None, ...]
    attributes: Attributes
    pool: BufferPool
    known: Callable[[ir.Value], Tensor]
    blocks: Mapping[str, Block] = field(default_factory=dict)
    callee: Block | None = None
    release: tuple[ir.Value, ...] = ()
    kernel: Kernel | None = None

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
    """

    inputs: tuple[ir.Value, ...]
    outputs: tuple[ir.Value, ...]
    constants: dict[ir.Value, Callable[[], object]]
    steps: list[Step] = field(default_factory=list)
    captures: set[ir.Value] = field(default_factory=set)

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


def described(value: object) -> str:
    """Return the type and shape of a value of a run, such as ``float32[2, 3]``."""
    if isinstance(value, np.ndarray):
        return f"{value.dtype}{list(value.shape)}"
    return "nothing" if value is None else f"a {type(value).__name__}"


@full_collections_deferred()
def compile_model(model: OnnxModel) -> Block:
    """Make a model ready to run; returns its main graph. The model must not change any more.

    Raises:
        SplitError: TS101 to TS107, TS305 for split nodes of the main graph that are wrong whatever
            they are fed; TS502, TS504, TS509 for a model that is not well-formed or can't be run.
    """
    for error in causes_first(model_errors(model.model, needs_names=False)):
        raise error
    return compile_graph(model.model)


def compile_graph(model: ir.Model) -> Block:
    """Do as `compile_model` for a model that is known to have no errors."""
    return _Compiler(model).graph(model.graph, Place("graph", model_opsets(model)))


class _Compiler:
    """Compiles one model that has no errors."""

    def __init__(self, model: ir.Model) -> None:
        self._pool = BufferPool(_MOST_IDLE)
        self._functions = functions_of(model)
        self._specialised: dict[object, Block] = {}
        self._facts = cache(partial(analyse, model))  # of rare steps alone

    def _known(self, value: ir.Value) -> Tensor:
        return self._facts().tensor(value)

    def graph(self, graph: ir.Graph, place: Place, *, is_body: bool = False) -> Block:
        """Return a graph. A body's initializers may be listed as inputs too; they are none."""
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

    def _function(self, function: ir.Function, call: Step, around: Place) -> Block:
        """Return a function specialised for the attributes and the omitted inputs of a call."""
        place, key = around.call(function, call.inputs, call.attributes)
        if key not in self._specialised:
            block = Block(tuple(function.inputs), tuple(function.outputs), {})
            self._specialised[key] = self._fill(block, function, place)
        return self._specialised[key]

    def _fill(self, block: Block, scope: Scope, place: Place) -> Block:
        """Add the steps to a block."""
        for node, path in zip(scope, node_paths(place.path, scope), strict=True):
            self._add(block, node, path, place)
        _plan_release(block)
        return block

    def _add(self, block: Block, node: ir.Node, path: str, place: Place) -> None:
        """Add one node to a block."""
        inputs, attributes = place.inputs_of(node), attributes_of(node, place.passed)
        function = self._functions.get(called_by(node))
        if function is None and is_operator(node, "Constant"):
            held = held_by(attributes)
            if held is not None and node.outputs:
                block.constants[node.outputs[0]] = _reader(held, node.outputs[0].name, path)
                return
        opset = place.opsets[node.domain]
        step = Step(node, path, opset, place.opsets, inputs, attributes, self._pool, self._known)
        if function is not None:
            step.callee = self._function(function, step, place)
        step.blocks = {
            label: self.graph(body, place.inside(f"{path}.{label}"), is_body=True)
            for label, body in bodies(node)
        }
        block.steps.append(step)


def _reader(tensor: ir.TensorProtocol, name: str | None, path: str) -> Callable[[], object]:
    @cache
    def read() -> object:
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
