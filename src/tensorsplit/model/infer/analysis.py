"""Walks a model once and finds what can be known of every value before it runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import onnx_ir as ir

from tensorsplit.core.errors import SplitError
from tensorsplit.model.graph.building import collector_paused
from tensorsplit.model.graph.facts import (
    UNKNOWN,
    Fact,
    Other,
    Sequence,
    Tensor,
    join,
    merge_declared,
)
from tensorsplit.model.graph.nodes import (
    Scope,
    bodies,
    check_depth,
    domain_name,
    domain_opsets,
    function_label,
    node_path,
    readable_constant,
)
from tensorsplit.model.graph.progress import counted
from tensorsplit.model.infer import control, others, sequences, splits
from tensorsplit.model.infer.frame import Frame


class Facts:
    """What is known of the values of a model.

    Attributes:
        errors: The refusals of split nodes, in order; empty if the analysis was strict.
    """

    def __init__(self) -> None:
        self._known: dict[int, Fact] = {}
        self.errors: list[SplitError] = []

    def of(self, value: ir.Value | None) -> Fact:
        """What is known of a value; of one that was not met, what the model declares."""
        if value is None:
            return UNKNOWN
        known = self._known.get(id(value))
        return declared(value) if known is None else known

    def set(self, value: ir.Value, fact: Fact) -> None:
        """Replace what is known of a value."""
        self._known[id(value)] = fact

    def absorb(self, other: Facts) -> None:
        """Take over what was found in one call of a function."""
        for key, fact in other._known.items():
            known = self._known.get(key)
            self._known[key] = fact if known is None else join(known, fact)
        self.errors += other.errors


@collector_paused()
def analyse(model: ir.Model, *, strict: bool = False) -> Facts:
    """Find what can be known of every value of a model.

    Args:
        model: The model; it is not changed, and no weights are read.
        strict: Whether to raise the first refusal of a split node, and not collect them all.

    Returns:
        The facts.

    Raises:
        SplitError: TS1xx to TS3xx for a wrong split node, if `strict`; TS502 for bodies or calls
            that are nested too deep.
    """
    facts = Facts()
    run = Analysis(model, facts, strict)
    run.scope(model.graph, Frame("graph", domain_opsets(model.opset_imports)))
    run.uncalled_functions()
    return facts


class Analysis:
    """One walk through a model.

    Args:
        model: The model.
        facts: Where to note what is found.
        strict: Whether to raise at the first wrong split node.
    """

    def __init__(self, model: ir.Model, facts: Facts, strict: bool) -> None:
        self.model, self.facts, self.strict = model, facts, strict
        self._functions = {
            (domain_name(key[0]), key[1], key[2]): function
            for key, function in model.functions.items()
        }
        self._called: set[Any] = set()
        self._results: dict[Any, list[Fact]] = {}

    def scope(self, scope: Scope, frame: Frame) -> list[Fact]:
        """Analyse the nodes of a graph or function; returns what is known of its outputs."""
        check_depth(frame.depth, frame.path)
        if isinstance(scope, ir.Graph):
            for value in scope.initializers.values():
                if not value.is_graph_input():
                    self.facts.set(value, of_constant(value))
        is_main = scope is self.model.graph
        for index, node in enumerate(counted("finding shapes", scope) if is_main else scope):
            path = node_path(frame.path, node, index)
            found = self._node(node, path, frame)
            for position, value in enumerate(node.outputs):
                fact = found[position] if position < len(found) else UNKNOWN
                fact = merge_declared(fact, declared(value))
                self.facts.set(value, fact)
        return [self.facts.of(value) for value in scope.outputs]

    def body(self, graph: ir.Graph, inputs: Iterable[Fact], label: str, frame: Frame) -> list[Fact]:
        """Analyse a body with what is known of its inputs."""
        for value, fact in zip(graph.inputs, inputs, strict=False):
            self.facts.set(value, merge_declared(fact, declared(value)))
        inside = replace(frame, path=f"{frame.path}.{label}", depth=frame.depth + 1)
        return self.scope(graph, inside)

    def uncalled_functions(self) -> None:
        """Analyse the functions that no node calls, with nothing known of their inputs."""
        for key, function in self._functions.items():
            if key not in self._called:
                self._function(key, function, [], {}, Frame("graph", {}))

    def _node(self, node: ir.Node, path: str, frame: Frame) -> list[Fact]:
        key = (domain_name(node.domain), node.op_type, node.overload or "")
        inputs = [self.facts.of(value) for value in node.inputs]
        function = self._functions.get(key)
        if function is not None:
            return self._call(key, function, node, inputs, replace(frame, path=path))
        if splits.is_split(node) or splits.is_vendor_split(node):
            return self._split(node, inputs, path, frame)
        here = replace(frame, path=path)
        if key[0] == "":
            opset = frame.opsets.get("", 0)
            for rules in (sequences.RULES, control.RULES):
                if node.op_type in rules:
                    found = rules[node.op_type](self, node, inputs, here)
                    if found is not None:
                        return found
            computed = others.compute_values(node, inputs, opset)
        else:
            computed = None
        for label, body in bodies(node):
            self.body(body, [], label, here)
        return others.infer(node, inputs, frame.opsets, computed)

    def _split(self, node: ir.Node, inputs: list[Fact], path: str, frame: Frame) -> list[Fact]:
        try:
            return splits.infer(node, inputs, frame.opsets.get("", 0), frame.attributes)
        except SplitError as error:
            error.located(node=path)
            if self.strict:
                raise
            self.facts.errors.append(error)
            return []

    def _call(
        self, key: Any, function: ir.Function, node: ir.Node, inputs: list[Fact], frame: Frame
    ) -> list[Fact]:
        attributes = {
            name: attribute.value
            for name, attribute in function.attributes.items()
            if attribute.value is not None
        }
        for name, attribute in node.attributes.items():
            if not attribute.is_ref():
                attributes[name] = attribute.value
            elif attribute.ref_attr_name in frame.attributes:
                attributes[name] = frame.attributes[attribute.ref_attr_name or ""]
        if key in frame.calls:
            return []
        memo = (key, tuple(inputs), repr(sorted(attributes.items(), key=lambda item: item[0])))
        if memo not in self._results:
            self._results[memo] = self._function(key, function, inputs, attributes, frame)
        return self._results[memo]

    def _function(
        self,
        key: Any,
        function: ir.Function,
        inputs: list[Fact],
        attributes: Mapping[str, Any],
        frame: Frame,
    ) -> list[Fact]:
        self._called.add(key)
        outer, self.facts = self.facts, Facts()
        inside = Frame(
            function_label(function),
            domain_opsets(function.opset_imports),
            attributes,
            frame.depth + 1,
            frame.calls | {key},
        )
        padded = inputs + [UNKNOWN] * (len(function.inputs) - len(inputs))
        for value, fact in zip(function.inputs, padded, strict=False):
            self.facts.set(value, fact)
        try:
            return self.scope(function, inside)
        finally:
            outer.absorb(self.facts)
            self.facts = outer


def declared(value: ir.Value) -> Fact:
    """What the model says of a value."""
    if isinstance(value.type, ir.TensorType):
        return Tensor(value.dtype, _shape(value))
    if value.type is None and value.shape is not None:
        return Tensor(None, _shape(value))
    if isinstance(value.type, ir.SequenceType) and isinstance(value.type.elem_type, ir.TensorType):
        return Sequence(value.dtype, _shape(value))
    return UNKNOWN if value.type is None else Other(value.type)


def _shape(value: ir.Value) -> tuple[Any, ...] | None:
    """Exporters write -1, too, for a dimension that is not fixed."""
    if value.shape is None:
        return None
    return tuple(
        (dim if dim >= 0 else None) if isinstance(dim, int) else (dim.value or None)
        for dim in value.shape
    )


def of_constant(value: ir.Value) -> Fact:
    """What is known of an initializer; its elements only if it may be an operand of something."""
    tensor = value.const_value
    if tensor is None:
        return declared(value)
    shape = tuple(tensor.shape.numpy())
    values = None
    if tensor.dtype in _OPERAND_TYPES and len(shape) <= 1:
        array = readable_constant(value)
        values = None if array is None else tuple(map(int, array.ravel().tolist()))
    return Tensor(tensor.dtype, shape, values)


_OPERAND_TYPES = (ir.DataType.INT64, ir.DataType.INT32, ir.DataType.BOOL)
