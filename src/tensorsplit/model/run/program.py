"""Models made ready to run: names resolved, functions specialised for each call, well-formed.

Nothing runs here, and no tensor is read but those that attributes hold outside the file.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from onnx import AttributeProto, FunctionProto, GraphProto, NodeProto, TypeProto

from tensorsplit.core.errors import MALFORMED_MODEL, SplitError, show
from tensorsplit.model.graph.binding import bind_node, is_split
from tensorsplit.model.graph.constants import constant_of, initializers
from tensorsplit.model.graph.message import bodies, model_opsets, opset_imports, walk
from tensorsplit.model.graph.nodes import check_depth, domain_name, function_label, node_path
from tensorsplit.model.graph.reading import OnnxModel
from tensorsplit.model.run.blocks import Block, Step, plan_release
from tensorsplit.model.run.functions import Functions, passed_attributes
from tensorsplit.model.run.resolved import resolved
from tensorsplit.model.run.schemas import check_node

MAX_STEPS = 1 << 20
"""Functions that call functions can expand without bound; beyond this a model is refused."""

_MAX_SPECIALISED = 1 << 12
"""How many more ways of calling functions there may be than functions."""


@dataclass(frozen=True, slots=True)
class _Scope:
    """What holds at a place in the model."""

    path: str
    opsets: Mapping[str, int]
    names: ChainMap[str, None]
    passed: Mapping[str, AttributeProto] | None = None
    absent: frozenset[str] = frozenset()
    depth: int = 0


def compile_model(model: OnnxModel) -> Block:
    """Make a model ready to run.

    Args:
        model: The model.

    Returns:
        The main graph.

    Raises:
        SplitError: TS101 to TS107, TS305 for split nodes that are wrong whatever they are fed;
            TS502, TS504, TS509 for a model that is not well-formed or can't be run.
    """
    proto = model.original
    for _ in walk(proto):  # refuses nesting that copying and recursion would not survive
        pass
    scope = _Scope("graph", model_opsets(proto), ChainMap())
    if not proto.graph.output:
        raise _malformed("the graph has no outputs", "name what it computes", "graph")
    return _Compiler(model.folder, Functions(proto)).graph(proto.graph, scope, is_body=False)


class _Compiler:
    def __init__(self, folder: Path | None, functions: Functions) -> None:
        self._folder = folder
        self._functions = functions
        self._specialised: dict[Any, Block] = {}

    def graph(self, graph: GraphProto, scope: _Scope, *, is_body: bool = True) -> Block:
        """A graph. A body's initializers may be listed as inputs too; they are none."""
        check_depth(scope.depth, scope.path)
        constants = initializers(graph, self._folder, scope.path)
        values = [v for v in graph.input if not (is_body and v.name in constants)]
        own = {
            *constants,
            *(v.name for v in values),
            *(n for node in graph.node for n in node.output),
        }
        block = Block(
            tuple(value.name for value in values),
            tuple(value.type for value in values),
            tuple(value.name for value in graph.output),
            tuple(value.type for value in graph.output),
            constants,
        )
        return self._fill(block, graph.node, replace(scope, absent=scope.absent - own))

    def _function(
        self, function: FunctionProto, attributes: Mapping[str, AttributeProto], call: _Call
    ) -> Block:
        """A function for calls with these attributes that leave out these inputs."""
        passed = passed_attributes(function, attributes, call.path)
        absent = tuple(
            not (index < len(call.inputs) and call.inputs[index])
            for index in range(len(function.input))
        )
        label = function_label(function)
        values = ((name, passed[name].SerializeToString()) for name in sorted(passed))
        key = (function.domain, function.name, function.overload, absent, *values)
        if key in self._specialised:
            return self._specialised[key]
        limit = len(self._functions) + _MAX_SPECIALISED
        if len(self._specialised) >= limit:
            raise _malformed(
                f"functions are called in more than {limit} different ways",
                "call them with fewer attributes",
                call.path,
            )
        scope = _Scope(
            label,
            opset_imports(function.opset_import, label),
            ChainMap(),
            passed,
            frozenset(n for n, left_out in zip(function.input, absent, strict=True) if left_out),
            call.depth + 1,
        )
        check_depth(scope.depth, label)
        block = Block(
            tuple(function.input),
            (TypeProto(),) * len(function.input),
            tuple(function.output),
            (TypeProto(),) * len(function.output),
            {},
        )
        self._specialised[key] = self._fill(block, function.node, scope)
        return block

    def _fill(self, block: Block, nodes: Sequence[NodeProto], scope: _Scope) -> Block:
        """Add the steps to a block, checking that every name has one producer, before its use."""
        local = scope.names.new_child({})
        for name in block.inputs:
            if not name or name in local.maps[0]:
                raise _malformed(
                    f"the input {show(name)} is there twice or has no name", "", scope.path
                )
            local[name] = None
        local.maps[0].update(dict.fromkeys(block.constants))
        produced = {name for node in nodes for name in node.output if name}
        inside = replace(scope, names=local)
        for index, node in enumerate(nodes):
            path = node_path(scope.path, node, index)
            try:
                reads = self._add(block, node, replace(inside, path=path), produced)
            except SplitError as error:
                raise error.located(node=path) from None
            block.captures |= {name for name in reads if name not in local.maps[0]}
            for name in node.output:
                if name in local.maps[0]:
                    raise _malformed(f"{show(name)} is produced twice", "rename one of them", path)
                if name:
                    local[name] = None
        for name in block.outputs:
            if name not in local:
                raise _malformed(f"nothing produces the output {show(name)}", "", scope.path)
            if name not in local.maps[0]:
                block.captures.add(name)
        plan_release(block)
        if block.weight > MAX_STEPS:
            raise _malformed(
                f"functions expand to more than {MAX_STEPS} nodes", "call them less", scope.path
            )
        return block

    def _add(
        self, block: Block, original: NodeProto, scope: _Scope, produced: set[str]
    ) -> set[str]:
        """Add one node to a block; returns the names that it reads, in its bodies too."""
        node = resolved(original, scope.passed, scope.absent, self._folder)
        for name in node.input:
            if name and (name not in scope.names or _is_early(name, scope, produced)):
                raise _unproduced(name, produced)
        domain = domain_name(node.domain)
        if domain not in scope.opsets:
            raise _malformed(
                f"there is no opset import for the domain {show(domain or 'ai.onnx')}", "import it"
            )
        opset = scope.opsets[domain]
        step = Step(node, scope.path, domain, opset, scope.opsets, {})
        function = self._functions.find(node, scope.path)
        if function is not None:
            step.callee = self._call(function, node, scope)
        elif is_split(node):
            bind_node(node, opset)
        else:
            check_node(node, domain, opset)
            if (domain, node.op_type) == ("", "Constant"):
                block.constants.update(constant_of(node, self._folder))
                return set()
        step.blocks = {
            label: self.graph(
                body,
                replace(scope, path=f"{scope.path}.{label}", depth=scope.depth + 1),
            )
            for label, body in bodies(node.attribute)
        }
        block.steps.append(step)
        inner = [*step.blocks.values(), *([step.callee] if step.callee else [])]
        block.weight += 1 + sum(entry.weight for entry in inner)
        captured = set().union(*(entry.captures for entry in step.blocks.values()))
        early = sorted(name for name in captured if _is_early(name, scope, produced))
        if early:
            raise _unproduced(early[0], produced)
        return captured | {name for name in node.input if name}

    def _call(self, function: FunctionProto, node: NodeProto, scope: _Scope) -> Block:
        for what, given, declared in (
            ("inputs", node.input, function.input),
            ("outputs", node.output, function.output),
        ):
            if len(given) > len(declared):
                raise _malformed(
                    f"the call has {len(given)} {what}",
                    f"the {function_label(function)} has {len(declared)}",
                )
        attributes = {attribute.name: attribute for attribute in node.attribute}
        return self._function(
            function, attributes, _Call(scope.path, tuple(node.input), scope.depth)
        )


@dataclass(frozen=True, slots=True)
class _Call:
    path: str
    inputs: tuple[str, ...]
    depth: int


def _is_early(name: str, scope: _Scope, produced: Iterable[str]) -> bool:
    """Whether a name is read before the node of the same graph that produces it."""
    return name in produced and name not in scope.names.maps[0]


def _unproduced(name: str, produced: Iterable[str]) -> SplitError:
    if name in produced:
        return _malformed(f"{show(name)} is read before it is produced", "sort the nodes")
    return _malformed(f"nothing produces its input {show(name)}", "")


def _malformed(problem: str, fix: str, path: str | None = None) -> SplitError:
    return SplitError(MALFORMED_MODEL, problem, fix, node=path)
