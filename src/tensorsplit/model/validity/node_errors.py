"""The errors of a node by the standard: the types of its operands, and its bodies."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from itertools import chain, zip_longest
from operator import methodcaller
from typing import Any, NamedTuple, TypeAlias

import onnx_ir as ir
from onnx import defs

from tensorsplit.core.errors import SplitError, count_of, show
from tensorsplit.core.records.openvino import DOMAIN
from tensorsplit.model.graph.calls import Attributes, is_open
from tensorsplit.model.graph.equations import terms_of
from tensorsplit.model.graph.facts import (
    UNKNOWN,
    Fact,
    Other,
    SequenceFact,
    Tensor,
    as_tensor,
    declared,
)
from tensorsplit.model.graph.nodes import NodeRef, attribute_of, bodies, is_operator
from tensorsplit.model.graph.opsets import attribute_type
from tensorsplit.model.refusals import malformed

FactOf: TypeAlias = Callable[[ir.Value | None], Fact]


def wrong_signature(
    schema: defs.OpSchema,
    opset: int,
    attributes: Attributes,
    inputs: Sequence[object],
    outputs: Sequence[object],
) -> Iterator[SplitError]:
    """Yield the errors of the inputs, outputs and attributes of a node (TS502).

    Args:
        schema: The operator's schema.
        opset: The opset that it is of, for messages.
        attributes: Those that the node has.
        inputs: Its inputs; one that is left out is None, or a blank name.
        outputs: Its outputs, likewise.
    """
    where, operator = (
        f"{schema.name} at opset {opset}",
        f"{schema.domain or 'ai.onnx'}.{schema.name}",
    )
    ends = zip(("inputs", "outputs"), (inputs, outputs), signature_of(schema).sides, strict=True)
    found = chain.from_iterable(_wrong_ends(what, given, side, where) for what, given, side in ends)
    for error in chain(found, _wrong_attributes(schema, attributes, where)):
        yield error.located(operator=operator)


def _wrong_ends(
    what: str, given: Sequence[object], side: _Side, where: str
) -> Iterator[SplitError]:
    """Yield which inputs or outputs are left out, and whether there are too few or too many."""
    for place, entry in enumerate(given):
        formal = side.at(place)
        if (entry is None or entry == "") and formal is not None and formal.is_needed:
            yield malformed(f"its {what[:-1]} '{formal.name}' is left out", "give it")
    least, most = side.least, side.most
    if not least <= len(given) <= most:
        up_to = "or more" if most > _MANY else f"to {most}"
        wanted = f"{least}" if least == most else f"{least} {up_to}"
        yield malformed(f"it has {len(given)} {what}", f"give it {wanted}, as {where} has")


def _wrong_attributes(
    schema: defs.OpSchema, attributes: Attributes, where: str
) -> Iterator[SplitError]:
    """Yield which attributes are unknown, of another type, not readable or missing."""
    declared = signature_of(schema).attributes
    for name, attribute in attributes.items():
        seen = attribute.type.name
        if name not in declared:
            known = ", ".join(sorted(declared)) or "no attributes"
            yield malformed(
                f"it has the attribute {show(name)}", f"leave it out; {where} has {known}"
            )
        elif attribute.is_ref() and seen == "UNDEFINED":  # only a call says
            continue
        elif seen != (wanted := attribute_type(declared[name])):
            yield malformed(f"its attribute '{name}' is of type {seen}", f"give it as {wanted}")
        elif not attribute.is_ref():
            yield from _wrong_value((schema.name, name), attribute.value)
    for name in signature_of(schema).required:
        if name not in attributes:
            yield malformed(f"it has no attribute '{name}'", f"give it; {where} requires it")


def _wrong_value(place: tuple[str, str], value: object) -> Iterator[SplitError]:
    """Yield the error of an attribute's value that is wrong whatever the operands are."""
    if place == ("Einsum", "equation") and not _has_terms(value):
        yield malformed(
            f"its attribute '{place[1]}' is {show(value)}",
            "write letters for axes, as in 'ij,jk->ik' or '...ij->...ji'",
        )
    if place == ("Transpose", "perm") and not _is_order(value):
        yield malformed(
            f"its attribute '{place[1]}' is {show(value)}",
            "give each axis once, counted from 0 at the front",
        )


def _has_terms(equation: object) -> bool:
    return isinstance(equation, str) and terms_of(equation) is not None


def _is_order(axes: object) -> bool:
    return isinstance(axes, Sequence) and sorted(axes) == [*range(len(axes))]


_MANY = 1 << 24
"""More inputs or outputs than this stand in a schema for any number of them."""


class _Formal(NamedTuple):
    """An input or output of a schema.

    Attributes:
        is_needed: Whether a node has to have it.
        types: The types that it may have.
        like: What those of one type have in common; empty if they may differ.
    """

    name: str
    is_needed: bool
    types: frozenset[str]
    like: str


class _Side(NamedTuple):
    """The inputs or the outputs of a schema, and how few and many a node may have."""

    formals: Sequence[_Formal]
    least: int
    most: int

    def at(self, index: int) -> _Formal | None:
        """Return the one at a position; the last may stand for many."""
        return self.formals[min(index, len(self.formals) - 1)] if self.formals else None


class _Signature(NamedTuple):
    """The inputs, outputs and attributes of a schema, which onnx makes again each time."""

    sides: tuple[_Side, _Side]
    attributes: Mapping[str, defs.OpSchema.Attribute]
    required: Sequence[str]


@lru_cache(maxsize=4096)
def signature_of(schema: defs.OpSchema) -> _Signature:
    """Return the inputs, outputs and attributes of a schema; the result is cached."""
    attributes = schema.attributes
    return _Signature(
        (
            _Side(_formals(schema, schema.inputs, _NEEDED), schema.min_input, schema.max_input),
            _Side(_formals(schema, schema.outputs), schema.min_output, schema.max_output),
        ),
        attributes,
        [name for name, entry in attributes.items() if entry.required],
    )


_NEEDED = ("Single", "Variadic")
"""Inputs that no node leaves out; of those that stand for many, engines read each one."""


def _formals(
    schema: defs.OpSchema, listed: Sequence[Any], needed: Sequence[str] = ("Single",)
) -> list[_Formal]:
    return [
        _Formal(
            each.name,
            each.option.name in needed,
            types_of(schema, each),
            each.type_str if each.is_homogeneous else "",
        )
        for each in listed
    ]


def types_of(schema: defs.OpSchema, formal: defs.OpSchema.FormalParameter) -> frozenset[str]:
    """Return the types that an input or output of a schema may have."""
    return _types(schema).get(formal.type_str) or frozenset({formal.type_str})


@lru_cache(maxsize=4096)
def _types(schema: defs.OpSchema) -> Mapping[str, frozenset[str]]:
    """Return the types that each type parameter of a schema may stand for."""
    return {
        each.type_param_str: frozenset(each.allowed_type_strs) for each in schema.type_constraints
    }


def wrong_bodies(node: ir.Node, opset: int, attributes: Attributes) -> Iterator[SplitError]:
    """Yield where the bodies of If, Loop, Scan or SequenceMap don't take and give what it does.

    Args:
        node: A node of ONNX's own domain that has what its schema requires.
        opset: The opset of that domain.
        attributes: Its attributes, as for `binding.bind`.
    """
    taken, given, carried = len(node.inputs), len(node.outputs), 0
    if node.op_type == "If":
        taken = 0
    elif node.op_type == "Loop":
        given, carried = given + 1, taken - 1
    elif node.op_type == "Scan":
        taken -= opset < 9  # there the lengths of the rows come first
        if is_open(attributes["num_scan_inputs"]):
            return
        count = attributes["num_scan_inputs"].as_int()
        carried = taken - count
        if not 1 <= count <= taken:
            problem = f"num_scan_inputs is {count}, of {count_of(taken, 'input')}"
            yield malformed(problem, f"give a number from 1 to {taken}")
            return
        yield from _wrong_lists(attributes, {"input": count, "output": given - carried})
    elif node.op_type != "SequenceMap":
        return
    if given < carried:
        problem = (
            f"it carries {count_of(carried, 'value')}, but has {count_of(given, 'output')} for them"
        )
        yield malformed(problem, "give it an output for each")
        return
    for label, body in bodies(node):
        inputs = sum(not value.is_initializer() for value in body.inputs)
        if inputs != taken:
            passed = count_of(taken, "value")
            problem = f"its {label} has {count_of(inputs, 'input')}, but is passed {passed}"
            yield malformed(problem, "give it one input for each")
        if len(body.outputs) != given:
            problem = (
                f"its {label} has {count_of(len(body.outputs), 'output')}, but it needs {given}"
            )
            yield malformed(problem, "give both as many")


def _wrong_lists(attributes: Attributes, counts: Mapping[str, int]) -> Iterator[SplitError]:
    """Yield the lists of Scan that don't have an entry for each input or output."""
    names = [
        (f"scan_{end}_{what}", n) for end, n in counts.items() for what in ("axes", "directions")
    ]
    for name, count in (*names, ("directions", counts["input"])):
        if name not in attributes or is_open(attributes[name]):
            continue
        entries = list(attributes[name].as_ints())
        if len(entries) != count:
            yield malformed(f"{name} has {len(entries)} entries", f"give {count}")
        elif name.endswith("directions") and not set(entries) <= {0, 1}:
            problem = f"{name} is {show(entries)}"
            yield malformed(problem, "give 0 (forward) or 1 (backward) for each")


def not_taken(
    node: ir.Node,
    schema: defs.OpSchema,
    where: str,
    fact_of: FactOf,
    before: defs.OpSchema | None = None,
) -> Iterator[str]:
    """Yield the operands whose type a schema does not take, each with the reason.

    Args:
        node: The node.
        schema: The operator's schema.
        where: What messages call the schema.
        fact_of: What is known of a value.
        before: Another schema: what it does not take either is not held against the first.
    """
    bound: dict[str, str] = {}
    is_wrong = False  # then the outputs follow
    own, old = signature_of(schema), None if before is None else signature_of(before)
    for end, values in enumerate((node.inputs, node.outputs)):
        for index, value in enumerate(() if is_wrong else values):
            entry, was = own.sides[end].at(index), old.sides[end].at(index) if old else None
            if entry is None:
                break
            fact, allowed = fact_of(value), entry.types
            seen = None if value is None else type_name(fact)
            if seen is None:
                kind = _KINDS.get(type(fact), "")
                if not any(map(methodcaller("startswith", kind), allowed)):
                    is_wrong = True
                    yield f"'{entry.name}' is a {kind[:-1]}, which {where} does not take"
                continue
            is_new = was is None or seen in was.types
            if is_new and seen not in allowed:
                is_wrong = True
                yield f"'{entry.name}' is a {seen}, which {where} does not take"
            elif entry.like and bound.setdefault(entry.like, seen) != seen:
                is_wrong = True
                wanted = f"a {bound[entry.like]}, as the other operands are"
                yield f"'{entry.name}' is a {seen}; {where} wants {wanted}"


def type_name(fact: Fact) -> str | None:
    """Return the type as the schemas write it; None if it is not known."""
    if isinstance(fact, Other):
        return _written(fact.type)
    if fact.element_type is None:
        return None
    return _name_of(fact.element_type, isinstance(fact, SequenceFact))


@cache
def _name_of(element_type: ir.DataType, is_sequence: bool) -> str:
    name = f"tensor({element_type.name.lower()})"
    return f"seq({name})" if is_sequence else name


def _written(kind: Any) -> str | None:
    if isinstance(kind, ir.TensorType):
        return _name_of(kind.dtype, is_sequence=False)
    wrapper = {ir.SequenceType: "seq", ir.OptionalType: "optional"}.get(type(kind))
    inner = _written(kind.elem_type) if wrapper else None
    return f"{wrapper}({inner})" if inner else None


def wrong_types(
    ref: NodeRef, schema: defs.OpSchema | None, fact_of: FactOf
) -> Iterator[SplitError]:
    """Yield the errors in types: those a node takes, those its bodies pass on, or declared ones.

    Args:
        ref: A node other than a split, with as many operands as it has to have.
        schema: The operator's schema; None for an operator that onnx does not know.
        fact_of: What is known of a value.
    """
    operands = tuple(wrong_operands(ref, schema, fact_of))
    yield from operands or contradicting_types(ref, fact_of)


def wrong_operands(
    ref: NodeRef, schema: defs.OpSchema | None, fact_of: FactOf
) -> Iterator[SplitError]:
    """Yield the operands whose types a node does not take; arguments as for `wrong_types`."""
    if schema is not None:
        where = f"{ref.op_type} at opset {ref.opset}"
        for problem in not_taken(ref.node, schema, where, fact_of):
            yield malformed(problem, "give it a type that it takes, with a Cast for example")


def contradicting_types(ref: NodeRef, fact_of: FactOf) -> Iterator[SplitError]:
    """Yield the types that bodies pass on, or that are declared, and that a node contradicts.

    OpenVINO reads no types of the ports of a layer, so that they contradict nothing.
    """
    node = ref.node
    yield from _wrong_axes(node, ref.opset, fact_of)
    passages = _passed(node, ref.opset, fact_of) if node.domain == "" else ()
    outputs = node.outputs if node.domain != DOMAIN else ()
    ends = ((f"its output '{v.name}'", fact_of(v), declared(v)) for v in outputs)
    for what, wanted, seen in chain(passages, ends):
        if wanted is UNKNOWN or seen is UNKNOWN:
            continue
        names = [(type_name(fact) or _KINDS.get(type(fact), "")) for fact in (wanted, seen)]
        one, other = (name.removeprefix("optional(").rstrip(")") for name in names)
        if not one.startswith(other) and not other.startswith(one):
            problem = f"{what} is a {names[1]}, but has to be a {names[0]}"
            yield malformed(problem, "give it the same type")


def _wrong_axes(node: ir.Node, opset: int, fact_of: FactOf) -> Iterator[SplitError]:
    """Yield the axes of a Scan that its inputs or outputs don't have."""
    if not is_operator(node, "Scan") or opset < 9:
        return
    count, body = _scanned(node), dict(bodies(node)).get("body")
    if body is None or count is None:
        return
    carried = len(node.inputs) - count
    for end, values, more in (("in", node.inputs, 0), ("out", body.outputs, 1)):
        axes = attribute_of(node, f"scan_{end}put_axes", ir.AttributeType.INTS) or ()
        for value, axis in zip(values[carried:], axes, strict=False):
            shape = as_tensor(fact_of(value)).shape
            rank = None if shape is None else len(shape) + more
            if rank is not None and not -rank <= axis < rank:
                problem = f"scan_{end}put_axes has {axis}, and its {end}put only rank {rank}"
                yield malformed(problem, f"give an axis in [{-rank}, {rank - 1}]")


_KINDS: Mapping[type[Fact], str] = {Tensor: "tensor(", SequenceFact: "seq("}
"""How the names of types begin of which the element type is not known."""


def _passed(node: ir.Node, opset: int, fact_of: FactOf) -> Iterator[tuple[str, Fact, Fact]]:
    """Yield the values a node passes to its bodies and gets from them, with both sides' facts.

    What is carried keeps its type, and what is collected is a tensor.
    """
    if node.op_type != "If" and node.op_type not in _ROUNDS:
        return
    held = dict(bodies(node))
    if node.op_type == "If" and held.keys() >= {"then_branch", "else_branch"}:
        branches = (held[label].outputs for label in ("then_branch", "else_branch"))
        for one, other in zip(*branches, strict=False):
            yield f"the output '{other.name}' of its else_branch", fact_of(one), fact_of(other)
    if "body" not in held or node.op_type == "If":
        return
    inputs, outputs = held["body"].inputs, held["body"].outputs
    given, carried = _ROUNDS[node.op_type](node, opset, fact_of)
    for taken, fact in zip(inputs, given, strict=False):
        yield f"the input '{taken.name}' of its body", fact, declared(taken)
    for made, fact in zip_longest(outputs, carried[: len(outputs)]):
        found = fact_of(made)
        collected = Tensor(found.element_type) if isinstance(found, SequenceFact) else UNKNOWN
        yield f"the output '{made.name}' of its body", fact or collected, found


_Rounds: TypeAlias = tuple[list[Fact], list[Fact]]
"""What the inputs of a body have to be, and the first outputs of it."""


def _of_loop(node: ir.Node, _: int, fact_of: FactOf) -> _Rounds:
    starts = [UNKNOWN if start is None else fact_of(start) for start in node.inputs[2:]]
    return [Tensor(ir.DataType.INT64), _CONDITION, *starts], [_CONDITION, *starts]


def _of_scan(node: ir.Node, opset: int, fact_of: FactOf) -> _Rounds:
    given = list(map(fact_of, node.inputs[opset < 9 :]))
    count = _scanned(node)
    return given, given[: 0 if count is None else len(given) - count]


def _scanned(node: ir.Node) -> int | None:
    """Return how many of its inputs a Scan runs along."""
    count: int | None = attribute_of(node, "num_scan_inputs", ir.AttributeType.INT)
    return count


def _of_map(node: ir.Node, _: int, fact_of: FactOf) -> _Rounds:
    facts = map(fact_of, node.inputs)
    return [f.tensor if isinstance(f, SequenceFact) else f for f in facts], []


_CONDITION = Tensor(ir.DataType.BOOL)
_ROUNDS = {"Loop": _of_loop, "Scan": _of_scan, "SequenceMap": _of_map}
