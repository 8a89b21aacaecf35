"""Model-local functions: which one a node calls, and which attributes it passes on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeAlias

from onnx import AttributeProto, FunctionProto, GraphProto, ModelProto, NodeProto

from tensorsplit.core.errors import MALFORMED_MODEL, SplitError, show
from tensorsplit.model.graph.message import MAX_BODIES, bodies
from tensorsplit.model.graph.nodes import FAMILY, check_depth, domain_name, function_label

Key: TypeAlias = tuple[str, str, str]
"""Domain, name and overload."""


class Functions:
    """The functions of a model, by domain, name and overload.

    Args:
        model: The model.

    Raises:
        SplitError: TS502 for two functions of one name, a function that redefines an operator of
            this package (engines disagree on which of the two holds), and one that calls itself.
    """

    def __init__(self, model: ModelProto) -> None:
        self._by_key: dict[Key, FunctionProto] = {}
        for function in model.functions:
            domain = domain_name(function.domain)
            key = domain, function.name, function.overload
            if key in self._by_key:
                raise _malformed(function, "there are two functions of this name", "rename one")
            if domain == "" and function.name in FAMILY:
                raise _malformed(
                    function,
                    f"the function redefines the operator {function.name}",
                    "give it a domain of its own",
                )
            self._by_key[key] = function
        self._names = {key[:2] for key in self._by_key}
        self._check_recursion()

    def __len__(self) -> int:
        return len(self._by_key)

    def find(self, node: NodeProto, path: str) -> FunctionProto | None:
        """The function that a node calls, or None if it is an operator.

        Raises:
            SplitError: TS502 for an overload that the function does not have.
        """
        key = _key(node)
        function = self._by_key.get(key)
        if function is None and key[:2] in self._names:
            raise SplitError(
                MALFORMED_MODEL,
                f"the function {show(node.op_type)} has no overload {show(node.overload)}",
                "name one that the model defines",
                node=path,
            )
        return function

    def _check_recursion(self) -> None:
        """Depth first without Python's stack: functions may form chains of any length."""
        finished: set[Key] = set()
        for start in self._by_key:
            trail = {start: self._callees(start)}
            while trail:
                caller, callees = next(reversed(trail.items()))
                callee = next(callees, None)
                if callee is None:
                    finished.add(caller)
                    del trail[caller]
                elif callee in trail:
                    raise _malformed(
                        self._by_key[callee], "the function calls itself", "ONNX has no recursion"
                    )
                elif callee not in finished:
                    trail[callee] = self._callees(callee)

    def _callees(self, key: Key) -> Iterator[Key]:
        function = self._by_key[key]
        called = {_key(node) for node in _all_nodes(function, function_label(function))}
        return iter(called & self._by_key.keys())


def passed_attributes(
    function: FunctionProto, attributes: Mapping[str, AttributeProto], path: str
) -> dict[str, AttributeProto]:
    """What the attributes of a function stand for in one call.

    Args:
        function: The function.
        attributes: The attributes of the calling node, none of them a link any more.
        path: The calling node.

    Returns:
        The values by name: what the call gives, else the defaults. An attribute that has neither
        is left out, and so is each that stands for it in the body.

    Raises:
        SplitError: TS502 for an attribute that the function does not have.
    """
    passed = {attribute.name: attribute for attribute in function.attribute_proto}
    names = {*passed, *function.attribute}
    for name, attribute in attributes.items():
        if name not in names:
            raise SplitError(
                MALFORMED_MODEL,
                f"the {function_label(function)} has no attribute {show(name)}",
                f"its attributes are {', '.join(map(show, sorted(names)[:12])) or 'none'}",
                node=path,
            )
        passed[name] = attribute
    return passed


def _key(node: NodeProto) -> Key:
    return domain_name(node.domain), node.op_type, node.overload


def _all_nodes(graph: FunctionProto | GraphProto, path: str, depth: int = 0) -> Iterator[NodeProto]:
    check_depth(depth, path, MAX_BODIES)
    for node in graph.node:
        yield node
        for _, body in bodies(node.attribute):
            yield from _all_nodes(body, path, depth + 1)


def _malformed(function: FunctionProto, problem: str, fix: str) -> SplitError:
    return SplitError(MALFORMED_MODEL, problem, fix, node=function_label(function))
