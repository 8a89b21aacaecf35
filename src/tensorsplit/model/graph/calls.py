"""Functions of a model and their calls: the attributes that each call passes.

Whatever has to know an attribute that a node of a function refers to finds its value here: the
analysis and a run for one call after the other; conversion by making the function once for each.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Container, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from graphlib import TopologicalSorter
from itertools import count, zip_longest
from operator import itemgetter
from typing import TypeAlias, TypeVar

import onnx_ir as ir

from tensorsplit.core.errors import UNSUPPORTED_NODE, SplitError, show
from tensorsplit.model.graph.building import Edits, Names
from tensorsplit.model.graph.copying import Copies
from tensorsplit.model.graph.node_paths import function_label
from tensorsplit.model.graph.nodes import (
    GRAPH_TYPES,
    NodeRef,
    Scope,
    change_inputs,
    nodes_in,
    walk,
    walk_function,
)
from tensorsplit.model.graph.opsets import domain_name, domain_opsets
from tensorsplit.model.reached import each_once
from tensorsplit.model.refusals import malformed

Attributes: TypeAlias = Mapping[str, ir.Attr]

Key: TypeAlias = tuple[str, str, str]
"""The domain, the name and the overload of a function."""

_Mark = TypeVar("_Mark", bound=Hashable)

MAX_EXPANDED = 1 << 14
"""Functions that stand for more nodes than this, with all calls in them, are not inlined."""

MAX_SPECIALISED = 1 << 10
"""How many more specialisations of functions there may be than functions."""


def functions_of(model: ir.Model) -> dict[Key, ir.Function]:
    """Return the functions of a model, by what `called_by` gives for the nodes that call them."""
    return {key_of(function): function for function in model.functions.values()}


def key_of(function: ir.Function) -> Key:
    """Return the key of a function."""
    domain, name, overload = function.identifier()
    return domain_name(domain), name, overload


def called_by(node: ir.Node) -> Key:
    """Return the function that a node calls, if the model has one of that key."""
    return node.domain, node.op_type, node.overload or ""


def called_in_part(
    model: ir.Model, without: Sequence[ir.Function] = ()
) -> list[ir.OperatorIdentifier]:
    """Return the functions of which a call lacks the last outputs, but for calls in some."""
    functions, left_out = functions_of(model), frozenset(without)
    callers = [each for each in functions.values() if each not in left_out]
    scopes: list[Scope] = [model.graph, *callers] if functions else []
    calls = ((functions.get(called_by(node)), node) for each in scopes for node in nodes_in(each))
    return [
        function.identifier()
        for function, node in calls
        if function is not None and len(node.outputs) < len(function.outputs)
    ]


def attributes_of(node: ir.Node, passed: Attributes | None) -> Attributes:
    """Return the attributes of a node in one call of the function around it.

    One that refers to an attribute of the function has the value that is passed, or refers to what
    the caller passes on, and is left out where nothing is passed. Where the calls are not known, it
    stays a reference.

    Args:
        node: The node.
        passed: What `passed_to` a function; empty outside of functions, None if not known.
    """
    held: dict[str, ir.Attr] = node.attributes.data  # onnx-ir's own mapping is slow
    if passed is None or not any(map(ir.Attr.is_ref, held.values())):
        return held
    found: dict[str, ir.Attr] = {}
    for name, attribute in held.items():
        given = passed.get(attribute.ref_attr_name or "") if attribute.is_ref() else attribute
        if given is attribute:
            found[name] = attribute
        elif given is not None and given.is_ref():  # the caller's, in a function itself
            found[name] = ir.RefAttr(name, given.ref_attr_name or "", attribute.type)
        elif given is not None:
            found[name] = ir.Attr(name, given.type, given.value)
    return found


def passed_to(function: ir.Function, attributes: Attributes) -> dict[str, ir.Attr]:
    """Return the attributes of a function in one call: what the call gives, else the defaults."""
    declared = function.attributes
    defaults = {name: entry for name, entry in declared.items() if entry.value is not None}
    return {**defaults, **attributes}


def call_key(passed: Attributes) -> tuple[tuple[str, bytes], ...]:
    """Return a key that differs for calls of a function with different attributes."""
    return tuple(
        (name, b"" if is_open(held) else ir.serde.serialize_attribute(held).SerializeToString())
        for name, held in sorted(passed.items(), key=itemgetter(0))
    )


def is_open(held: ir.Attr) -> bool:
    """Return whether an attribute has no value here: a reference, or one without a type."""
    return held.is_ref() or held.type == ir.AttributeType.UNDEFINED


@dataclass(frozen=True, slots=True)
class Place:
    """Where a graph, a body or a function in one call stands, and what is in force there.

    Attributes:
        passed: The attributes of the function around it in this call; None outside of functions.
        absent: The inputs of that function that the call omits.
        depth: How many bodies and calls are around it.
    """

    path: str
    opsets: Mapping[str, int]
    passed: Attributes | None = None
    absent: frozenset[ir.Value] = frozenset()
    depth: int = 0

    def inside(self, path: str) -> Place:
        """Return the place of a body."""
        return replace(self, path=path, depth=self.depth + 1)

    def inputs_of(self, node: ir.Node) -> tuple[ir.Value | None, ...]:
        """Return the inputs of a node here; None for those that it or the call omits."""
        if not self.absent:
            return tuple(node.inputs)
        return tuple(None if value in self.absent else value for value in node.inputs)

    def call(
        self,
        function: ir.Function,
        inputs: Sequence[ir.Value | None],
        attributes: Attributes,
    ) -> tuple[Place, Hashable]:
        """Return the place of a function that is called from here, and what calls alike share."""
        pairs = zip_longest(function.inputs, inputs)
        absent = frozenset(value for value, given in pairs if given is None)
        passed, opsets = passed_to(function, attributes), domain_opsets(function.opset_imports)
        place = Place(function_label(function), opsets, passed, absent, self.depth + 1)
        return place, (function, absent, call_key(passed))


def check_references(node: ir.Node, passed: Attributes | None, path: str) -> None:
    """Refuse references that mean nothing outside of functions, where None is passed (TS502).

    A body that is passed is refused too (TS509).
    """
    for name, attribute in node.attributes.data.items():  # onnx-ir's own mapping is slow
        if not attribute.is_ref():
            continue
        to = attribute.ref_attr_name or ""
        if passed is None:
            problem = f"the attribute {show(name)} refers to {show(to)} of a function"
            raise malformed(f"{problem}, but the node is in none", "give its value", path)
        if to in passed and passed[to].type in GRAPH_TYPES:
            problem, fix = "a body is passed to a function", "write the body in the function"
            raise SplitError(UNSUPPORTED_NODE, problem, fix, node=path)


def check_specialised(count: int, functions: int, path: str) -> None:
    """Refuse functions that are called in too many ways (TS502)."""
    limit = functions + MAX_SPECIALISED
    if count >= limit:
        problem = f"functions are called in more than {limit} different ways"
        raise malformed(problem, "call them with fewer attributes", path)


def specialise(model: ir.Model, needs: Callable[[NodeRef], bool]) -> None:
    """Make functions once for each combination of attributes that calls pass, where it is needed.

    The first keeps the function's name. A function that no node calls can't be made so, and is
    removed.

    Args:
        model: The model, which is well-formed, and is changed.
        needs: Whether the attributes of a node with references have to be known.

    Raises:
        SplitError: TS502 for more calls than are taken; TS509 for a body that is passed.
    """
    functions = functions_of(model)
    wanted = set[Key]()
    if functions:  # else the walk would be for nothing
        wanted = called_with_need(filter(_references, walk(model)), functions, needs)
    if not wanted:
        return
    made: dict[Key, dict[object, ir.Function]] = {key: {} for key in wanted}
    taken = {key[:2] for key in functions}
    calls = [ref for ref in walk(model) if ref.function is None or key_of(ref.function) not in made]
    while calls:
        ref = calls.pop()
        key = called_by(ref.node)
        if key not in made:
            continue
        passed = passed_to(functions[key], ref.node.attributes)
        mark = call_key(passed)
        if mark not in made[key]:
            check_specialised(sum(map(len, made.values())), len(functions), ref.path)
            name = _free_name(key, taken) if made[key] else key[1]
            taken.add((key[0], name))
            made[key][mark] = copy = _specialised(functions[key], passed, name)
            calls += walk_function(copy)
        ref.node.op_type = made[key][mark].name
        ref.node.attributes.clear()
    kept = [f for key, each in functions.items() for f in made.get(key, {"": each}).values()]
    model.functions.clear()
    model.functions.update((function.identifier(), function) for function in kept)


def _references(ref: NodeRef) -> bool:
    """Return whether a node has attributes that the calls of its function give."""
    return any(attribute.is_ref() for attribute in ref.node.attributes.values())


def called_with_need(
    refs: Iterable[NodeRef], functions: Iterable[Key], needs: Callable[[NodeRef], bool]
) -> set[Key]:
    """Return the functions with nodes that need to know their calls, and those that call one."""
    found: set[Key] = set()
    callers: dict[Key, set[Key]] = {key: set() for key in functions}
    for ref in refs:
        if ref.function is None:
            continue
        if called_by(ref.node) in callers:
            callers[called_by(ref.node)].add(key_of(ref.function))
        elif needs(ref):
            found.add(key_of(ref.function))
    return set(each_once(found, lambda key: callers.get(key, ())))


def _free_name(key: Key, taken: Container[tuple[str, str]]) -> str:
    """Return the name of a function with a number that no function of its domain has."""
    domain, name, _ = key
    return next(new for i in count(1) if (domain, new := f"{name}_{i}") not in taken)


def separate(
    model: ir.Model, mark_of: Callable[[ir.Function, ir.Node], _Mark | None]
) -> list[tuple[ir.Function, _Mark]]:
    """Make functions once for each mark of their calls; the first keeps the function's name.

    Args:
        model: The model; its nodes call the functions that are made for them.
        mark_of: Returns the mark of a call of a function; None for one that stays as it is.

    Returns:
        The functions that marked nodes call now, each with the mark of its calls.
    """
    functions = functions_of(model)
    calls: dict[Key, dict[_Mark, list[ir.Node]]] = {}
    for ref in walk(model):
        key = called_by(ref.node)
        if key in functions and (mark := mark_of(functions[key], ref.node)) is not None:
            calls.setdefault(key, {}).setdefault(mark, []).append(ref.node)
    made: list[tuple[ir.Function, _Mark]] = []
    for key, by_mark in calls.items():
        for number, (mark, nodes) in enumerate(by_mark.items()):
            function = _added_copy(model, functions[key]) if number else functions[key]
            for node in nodes:
                node.op_type = function.name
            made.append((function, mark))
    return made


def _added_copy(model: ir.Model, function: ir.Function) -> ir.Function:
    copy = function.clone()
    copy.name = _free_name(key_of(function), {key[:2] for key in functions_of(model)})
    model.functions[copy.identifier()] = copy
    return copy


def _specialised(function: ir.Function, passed: Attributes, name: str) -> ir.Function:
    """Return a copy of a function for the calls that pass these attributes."""
    _check_references(function, passed)
    copy = function.clone()
    for node in copy.all_nodes():
        known = dict(attributes_of(node, passed))
        node.attributes.clear()
        node.attributes.update(known)
    copy.name = name
    copy.attributes.clear()
    return copy


def _check_references(function: ir.Function, passed: Attributes) -> None:
    """Refuse a body that is passed to a function, and that it takes (TS509)."""
    if any(held.type in GRAPH_TYPES for held in passed.values()):
        for ref in walk_function(function):
            check_references(ref.node, passed, ref.path)


def check_expanded(model: ir.Model, fix: str) -> None:
    """Refuse functions that stand for too many nodes (TS502); none of them calls itself."""
    functions = functions_of(model)
    called = {
        key: Counter(map(called_by, nodes_in(function))) for key, function in functions.items()
    }
    sizes: dict[Key, int] = {}
    for key in TopologicalSorter(called).static_order():
        inner: Counter[Key] = called.get(key, Counter())
        sizes[key] = sum(times * sizes[each] for each, times in inner.items()) or 1
    nodes = map(called_by, nodes_in(model.graph))
    if sum(sizes[key] for key in nodes if key in functions) > MAX_EXPANDED:
        problem = f"its functions stand for more than {MAX_EXPANDED} nodes, with all calls in them"
        raise malformed(problem, fix, "graph")


def inline(model: ir.Model, wanted: Container[ir.OperatorIdentifier] | None = None) -> None:
    """Replace calls by their functions, all or those that are wanted, and remove these.

    The model is well-formed. onnx-ir's own pass looks for new names in quadratic time.

    Raises:
        SplitError: TS502 for functions that stand for too many nodes, and opsets that differ; TS509
            for a body that is passed.
    """
    gone = {
        key_of(function): function
        for name, function in model.functions.items()
        if wanted is None or name in wanted
    }
    if not gone:
        return
    check_expanded(model, "call them less, or have what calls them often be a Loop")
    names, edits = Names(model), Edits()
    calls: deque[NodeRef] = deque(ref for ref in walk(model) if called_by(ref.node) in gone)
    while calls:
        ref = calls.popleft()
        function = gone[called_by(ref.node)]
        if ref.function is not None and key_of(ref.function) in gone:
            continue
        imports = (model.graph if ref.function is None else ref.function).opset_imports
        for domain, version in function.opset_imports.items():
            if imports.setdefault(domain, version) != version:
                problem = (
                    f"the {function_label(function)} imports opset {version} of"
                    f" {show(domain or 'ai.onnx')}, and its caller {imports[domain]}"
                )
                raise malformed(problem, "convert the model to one opset", ref.path)
        for inner in _inlined(ref, function, names, edits):
            if called_by(inner) in gone:
                calls.append(replace(ref, node=inner, scope=inner.graph or ref.scope))
    edits.finish()
    for function in gone.values():
        model.functions.pop(function.identifier())


def check_ends(call: ir.Node, function: ir.Function) -> None:
    """Refuse a call with more inputs or outputs than its function has (TS502)."""
    for what, given, declared in (
        ("inputs", call.inputs, function.inputs),
        ("outputs", call.outputs, function.outputs),
    ):
        if len(given) > len(declared):
            fix = f"give it at most {len(declared)}, as the {function_label(function)} has"
            raise malformed(f"the call has {len(given)} {what}", fix)


def _inlined(ref: NodeRef, function: ir.Function, names: Names, edits: Edits) -> list[ir.Node]:
    """Replace one call by its function; return the new nodes, also those in bodies."""
    call, passed = ref.node, passed_to(function, ref.node.attributes)
    check_ends(call, function)
    _check_references(function, passed)
    given = dict(zip_longest(function.inputs, call.inputs))
    known = partial(attributes_of, passed=passed)
    copies = Copies(given, known, names.fresh, call.metadata_props)
    nodes = copies.of(function)
    taken: set[ir.Value] = set()
    replaced: list[tuple[ir.Value, ir.Value]] = []
    for old, result in zip(call.outputs, function.outputs, strict=False):
        new = copies.stands_for(result)
        if new is None:
            for reader, position in tuple(old.uses()):
                change_inputs(reader, {position: None})
            continue
        if result in given or new in taken:
            nodes.append(ir.Node("", "Identity", [new], name=names.fresh("Identity")))
            (new,) = nodes[-1].outputs
        taken.add(new)
        replaced.append((old, new))
    edits.stand_in(replaced)
    ref.scope.insert_before(call, nodes)
    edits.retire(call)
    return copies.nodes
