"""Changes to the graph of a model that mostly leave it legal, so that tools get to rewrite it.

A change of a single field makes most models malformed, and tools refuse those before they do much.
Here nodes go into branches, loops and functions, values lose their names, types and readers,
constants become inputs, and graphs are put beside each other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from random import Random
from typing import Any, TypeAlias

import numpy as np
import onnx
from google.protobuf.message import (  # type: ignore[import-untyped]  # it has none
    DecodeError,
)
from onnx import AttributeProto, FunctionProto, GraphProto, NodeProto, TypeProto, helper

from tests.model.build import node_tests
from tests.model.lower.corpus import CASES
from tests.model.random_models import random_model

Nodes: TypeAlias = "GraphProto | FunctionProto"

SOME_RANDOM_MODELS = 200
MOST_BYTES = 1 << 15
"""Models that have grown beyond this grow no more."""

FAMILY = ("Split", "Sequence", "Concat", "Optional", "If", "Loop", "Scan")
"""What the operators of the node tests that are taken start with."""


@cache
def seeds() -> list[bytes]:
    """Legal models: random ones, those that are lowered in tests, and node tests of onnx."""
    models = [random_model(seed).model for seed in range(SOME_RANDOM_MODELS)]
    models += [case.model for case in CASES]
    for test in node_tests():
        model = test.model
        if any(node.op_type.startswith(FAMILY) for node in model.graph.node):
            models.append(model)
    return [model.SerializeToString() for model in models]


def mutate(content: bytes, random: Random) -> bytes:
    """One change, or several; the model as it is where none can be made."""
    model: Any = onnx.ModelProto()
    try:
        model.ParseFromString(content)
    except DecodeError:
        return content
    for _ in range(random.choice([1, 1, 2, 3])):
        random.choice(CHANGES)(model, random)
    changed: bytes = model.SerializeToString()
    return changed if len(changed) <= MOST_BYTES or len(changed) < len(content) else content


def _lists(owner: Nodes) -> Iterator[Nodes]:
    """A graph or function, and the bodies in it."""
    yield owner
    for node in owner.node:
        for attribute in node.attribute:
            if attribute.type == AttributeProto.GRAPH:
                yield from _lists(attribute.g)


def _any_list(model: Any, random: Random) -> Nodes:
    owners = [each for owner in (model.graph, *model.functions) for each in _lists(owner)]
    return random.choice(owners)


def _any_node(model: Any, random: Random) -> NodeProto | None:
    """A node, more often one on splits and sequences or with a body."""
    nodes: list[NodeProto] = [
        node
        for owner in (model.graph, *model.functions)
        for each in _lists(owner)
        for node in each.node
    ]
    wanted = [node for node in nodes if node.op_type.startswith(FAMILY)]
    if wanted and random.random() < 0.7:
        return random.choice(wanted)
    return random.choice(nodes) if nodes else None


def _fresh(model: Any, random: Random, stem: str = "n") -> str:
    return f"{stem}{random.randrange(1 << 30)}"


def _names(owner: Nodes) -> list[str]:
    """The names of the values of a graph, in the order in which they are made."""
    names = [each if isinstance(each, str) else each.name for each in owner.input]
    if isinstance(owner, GraphProto):
        names += [tensor.name for tensor in owner.initializer]
    return [*names, *(name for node in owner.node for name in node.output if name)]


def _insert(owner: Nodes, at: int, *nodes: NodeProto) -> None:
    after = list(owner.node)
    after[at:at] = nodes
    _set_nodes(owner, after)


def _set_nodes(owner: Nodes, nodes: list[NodeProto]) -> None:
    copies = [NodeProto.FromString(node.SerializeToString()) for node in nodes]
    del owner.node[:]
    owner.node.extend(copies)


def _constant(name: str, value: Any, dtype: Any = np.int64) -> NodeProto:
    tensor = onnx.numpy_helper.from_array(np.array(value, dtype), name)
    return helper.make_node("Constant", [], [name], value=tensor)


def _types(model: Any) -> dict[str, TypeProto]:
    """What is declared, or follows by onnx's own inference, which may fail."""
    described = [*model.graph.input, *model.graph.output, *model.graph.value_info]
    for owner in (model.graph, *model.functions):
        for each in _lists(owner):
            if isinstance(each, GraphProto):
                described += [*each.input, *each.output, *each.value_info]
    return {value.name: value.type for value in described}


def _declared(name: str, types: dict[str, TypeProto]) -> Any:
    made = onnx.ValueInfoProto(name=name)
    if name in types:
        made.type.CopyFrom(types[name])
    else:
        made.type.tensor_type.elem_type = onnx.TensorProto.FLOAT
    return made


# What is done to values


def unname_output(model: Any, random: Random) -> None:
    """Leave an output without a name; what read it reads nothing, or something else."""
    node = _any_node(model, random)
    if node is not None and len(node.output):
        at = random.randrange(len(node.output))
        old, node.output[at] = node.output[at], ""
        given_out = [value for value in model.graph.output if value.name == old]
        for value in given_out if len(model.graph.output) > len(given_out) else ():
            model.graph.output.remove(value)
        _rename_readers(model, old, random.choice(["", *_names(model.graph)[:1]]))


def _rename_readers(model: Any, old: str, new: str) -> None:
    if not old:
        return
    for owner in (model.graph, *model.functions):
        for each in _lists(owner):
            for node in each.node:
                for index, name in enumerate(node.input):
                    if name == old:
                        node.input[index] = new


def stop_reading(model: Any, random: Random) -> None:
    """Have a node read another value, so that nobody uses what it read."""
    owner = _any_list(model, random)
    names = [*_names(owner), *_names(model.graph)]
    if owner.node and names:
        node = random.choice(owner.node)
        if len(node.input):
            node.input[random.randrange(len(node.input))] = random.choice(names)


def share_name(model: Any, random: Random) -> None:
    """Give a value in a body the name of another, mostly of one around it."""
    owner, names = _any_list(model, random), _names(model.graph)
    own = _names(owner)
    if own and names:
        old, new = random.choice(own), random.choice(names)
        for node in owner.node:
            node.input[:] = [new if name == old else name for name in node.input]
            node.output[:] = [new if name == old else name for name in node.output]
        for value in owner.output if isinstance(owner, GraphProto) else ():
            value.name = new if value.name == old else value.name


def name_nodes_alike(model: Any, random: Random) -> None:
    """Give nodes one name, or none."""
    name = random.choice(["", "same", "a/b"])
    for node in _any_list(model, random).node:
        node.name = name


def give_out(model: Any, random: Random) -> None:
    """Have an inner value, or an output again, be an output of its graph."""
    owner, types = _any_list(model, random), _types(model)
    names = _names(owner)
    if isinstance(owner, GraphProto) and names:
        owner.output.append(_declared(random.choice(names), types))


def drop_output(model: Any, random: Random) -> None:
    """Have the model give out less."""
    if len(model.graph.output) > 1:
        del model.graph.output[random.randrange(len(model.graph.output))]


def forget_types(model: Any, random: Random) -> None:
    """Leave shapes or types out, or dimensions named or not known."""
    for value in (*model.graph.input, *model.graph.output, *model.graph.value_info):
        tensor = value.type.tensor_type
        if not value.type.HasField("tensor_type") or random.random() < 0.5:
            continue
        match random.randrange(4):
            case 0:
                tensor.ClearField("shape")
            case 1:
                for dim in tensor.shape.dim:
                    dim.dim_param = random.choice("NM")
            case 2:
                for dim in tensor.shape.dim:
                    dim.Clear()
            case _:
                del model.graph.value_info[:]
                return


def change_dimension(model: Any, random: Random) -> None:
    """Give an input another length, which may be 0."""
    if len(model.graph.input):
        tensor = random.choice(model.graph.input).type.tensor_type
        if tensor.shape.dim:
            random.choice(tensor.shape.dim).dim_value = random.choice([0, 1, 2, 5, 7])


def change_element_type(model: Any, random: Random) -> None:
    """Give the values of one element type another one."""
    values = [
        v for v in (*model.graph.input, *model.graph.output) if v.type.HasField("tensor_type")
    ]
    if not values:
        return
    old = random.choice(values).type.tensor_type.elem_type
    new = random.choice([1, 2, 3, 6, 7, 8, 9, 10, 11, 14, 16, 17, 22, 99])
    for owner in (model.graph, *model.functions):
        for each in _lists(owner):
            for value in (
                each.value_info
                if isinstance(each, FunctionProto)
                else (
                    *each.input,
                    *each.output,
                    *each.value_info,
                )
            ):
                kind = value.type
                while kind.WhichOneof("value") in ("sequence_type", "optional_type"):
                    kind = getattr(kind, kind.WhichOneof("value")).elem_type
                if kind.tensor_type.elem_type == old:
                    kind.tensor_type.elem_type = new


def move_constant(model: Any, random: Random) -> None:
    """Make an initializer an input with a default, a Constant, or one of a body; or the reverse."""
    graph = model.graph
    constants = [node for node in graph.node if node.op_type == "Constant" and node.attribute]
    if constants and random.random() < 0.4:
        node = random.choice(constants)
        if node.attribute[0].type == AttributeProto.TENSOR:
            held = graph.initializer.add()
            held.CopyFrom(node.attribute[0].t)
            held.name = node.output[0]
            graph.node.remove(node)
        return
    if not len(graph.initializer):
        return
    held = random.choice(graph.initializer)
    match random.randrange(4):
        case 0:
            graph.input.add(name=held.name).type.CopyFrom(
                helper.make_tensor_type_proto(held.data_type, held.dims)
            )
        case 1:
            made = helper.make_node("Constant", [], [held.name], value=held)
            graph.initializer.remove(held)
            _insert(graph, 0, made)
        case 2:
            graph.input.add(name=held.name).type.CopyFrom(
                helper.make_tensor_type_proto(held.data_type, held.dims)
            )
            graph.initializer.remove(held)
        case _:
            owner = _any_list(model, random)
            if isinstance(owner, GraphProto):
                owner.initializer.add().CopyFrom(held)


# What is done to nodes


def omit_input(model: Any, random: Random) -> None:
    """Leave an input out, or add one that is left out."""
    node = _any_node(model, random)
    if node is None:
        return
    if len(node.input) and random.random() < 0.5:
        node.input[random.randrange(len(node.input))] = ""
    else:
        node.input.append("")


def change_attribute(model: Any, random: Random) -> None:
    """Remove an attribute, or give it another number."""
    node = _any_node(model, random)
    if node is None or not len(node.attribute):
        return
    attribute = random.choice(node.attribute)
    if random.random() < 0.3:
        node.attribute.remove(attribute)
    elif attribute.type == AttributeProto.INT:
        attribute.i = random.choice([-2, -1, 0, 1, 2, 3])
    elif attribute.type == AttributeProto.INTS and len(attribute.ints):
        attribute.ints[random.randrange(len(attribute.ints))] = random.choice([-1, 0, 1, 2, 4])


def change_operator(model: Any, random: Random) -> None:
    """Put another operator of as many inputs in the place of one."""
    node = _any_node(model, random)
    kinds = ["Split", "SplitToSequence", "Identity", "SequenceConstruct", "SequenceLength"]
    kinds += ["ConcatFromSequence", "SequenceAt", "SequenceErase", "SequenceInsert", "Optional"]
    kinds += ["OptionalGetElement", "OptionalHasElement", "Neg", "Shape", "Squeeze", "Concat"]
    if node is not None and node.op_type not in ("If", "Loop", "Scan"):
        node.op_type = random.choice(kinds)
        node.domain = ""


def repeat_node(model: Any, random: Random) -> None:
    """Put a node there again, whose outputs nobody uses, in the same graph or in a body."""
    source, owner = model.graph, _any_list(model, random)
    source = source if random.random() < 0.5 else owner
    if not source.node:
        return
    copy = NodeProto.FromString(random.choice(source.node).SerializeToString())
    for index, name in enumerate(copy.output):
        copy.output[index] = name and _fresh(model, random)
    _insert(owner, len(owner.node), copy)


def remove_node(model: Any, random: Random) -> None:
    """Take a node away, whose outputs may then be nowhere, or be inputs."""
    owner = _any_list(model, random)
    if not len(owner.node):
        return
    node = random.choice(owner.node)
    types = _types(model)
    if owner is model.graph and random.random() < 0.7:
        for name in filter(None, node.output):
            model.graph.input.append(_declared(name, types))
    owner.node.remove(node)


def use_parts(model: Any, random: Random) -> None:
    """Split a value, and make something of the parts that nobody uses, or that is given out."""
    owner = _any_list(model, random)
    names = _names(owner)
    if not names:
        return
    part, sequence, joined, at = (_fresh(model, random, stem) for stem in ("p", "s", "j", "i"))
    made = [helper.make_node("SplitToSequence", [random.choice(names)], [sequence])]
    match random.randrange(5):
        case 0:
            made.append(helper.make_node("ConcatFromSequence", [sequence], [joined], axis=0))
        case 1:
            made += [_constant(at, random.choice([-1, 0, 1]))]
            made.append(helper.make_node("SequenceAt", [sequence, at], [joined]))
        case 2:
            made.append(helper.make_node("SequenceInsert", [sequence, names[-1]], [joined]))
        case 3:
            made.append(helper.make_node("Identity", [sequence], [joined]))
        case _:
            made = [helper.make_node("Split", [random.choice(names)], [part, joined])]
    _insert(owner, len(owner.node), *made)
    if isinstance(owner, GraphProto) and random.random() < 0.5:
        owner.output.append(_declared(joined, {}))


# What is done to graphs


def wrap_in_branch(model: Any, random: Random) -> None:
    """Put nodes into a branch of an If, mostly on a constant; the other has a copy, changed."""
    owner = _any_list(model, random)
    if not len(owner.node):
        return
    start = random.randrange(len(owner.node))
    stop = min(len(owner.node), start + random.choice([1, 1, 2, 3, 10]))
    nodes, types = list(owner.node)[start:stop], _types(model)
    outputs = [name for node in nodes for name in node.output if name]
    if random.random() < 0.3:
        outputs = outputs[-1:]
    condition, always = _fresh(model, random, "c"), random.random() < 0.5
    branches = []
    for label in "te":
        renamed = {name: f"{name}_{label}{random.randrange(1 << 20)}" for name in outputs}
        graph = GraphProto(name=label)
        graph.node.extend(nodes)
        for node in graph.node:
            node.input[:] = [renamed.get(name, name) for name in node.input]
            node.output[:] = [renamed.get(name, name) for name in node.output]
        for name in outputs:
            value = _declared(name, types)
            value.name = renamed[name]
            graph.output.append(value)
        branches.append(graph)
    names = _names(owner)
    if random.random() < 0.4 and names:  # the branch that may not be taken has something else
        _insert(branches[1], 0, helper.make_node("Identity", [random.choice(names)], ["unused_e"]))
    outer = [_fresh(model, random, "o") if random.random() < 0.3 else name for name in outputs]
    branch = helper.make_node(
        "If", [condition], outer, then_branch=branches[0], else_branch=branches[1]
    )
    made = [branch]
    if random.random() < 0.8 or not isinstance(owner, GraphProto) or owner is not model.graph:
        made.insert(0, _constant(condition, always, np.bool_))
    else:
        value = helper.make_tensor_value_info(condition, onnx.TensorProto.BOOL, [])
        model.graph.input.append(value)
    kept = list(owner.node)
    kept[start:stop] = made if random.random() < 0.6 else [*nodes, *made]
    if any(name in outer for node in kept[start:stop][: len(nodes)] for name in node.output):
        for index, name in enumerate(branch.output):
            if name in outputs and len(kept[start:stop]) > len(made):
                branch.output[index] = _fresh(model, random, "o")
    _set_nodes(owner, kept)


def wrap_in_loop(model: Any, random: Random) -> None:
    """Put a node into a Loop of no, one or a few rounds, which carries what the node reads."""
    owner, types = _any_list(model, random), _types(model)
    if not len(owner.node):
        return
    at = random.randrange(len(owner.node))
    node = owner.node[at]
    if not len(node.input) or not node.input[0] or not len(node.output) or not node.output[0]:
        return
    trips, going, number = (_fresh(model, random, stem) for stem in ("t", "g", "i"))
    carried = _fresh(model, random, "v")
    inner = NodeProto.FromString(node.SerializeToString())
    inner.input[0] = carried
    inner.output[:] = [name and f"{name}_in" for name in node.output]
    body = GraphProto(name="b")
    body.node.extend([inner, helper.make_node("Identity", [going], [f"{going}_out"])])
    scalar = helper.make_tensor_value_info
    body.input.extend(
        [scalar(number, onnx.TensorProto.INT64, []), scalar(going, onnx.TensorProto.BOOL, [])]
    )
    value = _declared(node.input[0], types)
    value.name = carried
    body.input.append(value)
    body.output.append(scalar(f"{going}_out", onnx.TensorProto.BOOL, []))
    ends = [random.choice([inner.output[0], inner.output[0], carried])]
    ends += [inner.output[-1]] if random.random() < 0.5 and inner.output[-1] else []
    outer = [node.output[0], _fresh(model, random, "r")]
    for name, source in zip(ends, (node.output[0], node.output[-1]), strict=False):
        value = _declared(source, types)
        value.name = name
        body.output.append(value)
    loop = helper.make_node("Loop", [trips, "", node.input[0]], outer[: len(ends)], body=body)
    made = [_constant(trips, random.choice([0, 1, 2, 3])), loop]
    kept = list(owner.node)
    kept[at : at + 1] = made
    _set_nodes(owner, kept)


def wrap_in_function(model: Any, random: Random) -> None:
    """Make a function of nodes, and call it; it may be called again, or by another function."""
    owner = _any_list(model, random)
    if not len(owner.node):
        return
    start = random.randrange(len(owner.node))
    stop = min(len(owner.node), start + random.choice([1, 2, 3, 10]))
    nodes = list(owner.node)[start:stop]
    made = [name for node in nodes for name in node.output if name]
    read: dict[str, None] = {}
    for node in nodes:
        inner = [node, *(n for a in node.attribute for each in _lists(a.g) for n in each.node)]
        read.update((name, None) for each in inner for name in each.input if name)
    around = set(_names(owner)) | set(_names(model.graph))
    inputs = [name for name in read if name not in made and name in around]
    name = _fresh(model, random, "F")
    imports = list(model.opset_import)
    if isinstance(owner, FunctionProto):
        imports = list(owner.opset_import)
    if random.random() < 0.2:
        for entry in imports:
            if entry.domain in ("", "ai.onnx"):
                imports = [helper.make_opsetid("", random.choice([1, 8, 11, 13, 17, 18, 24]))]
    overload = random.choice(["", "", "", "o"])
    function = helper.make_function("local", name, inputs, made, nodes, imports, overload=overload)
    if overload:
        model.ir_version = max(model.ir_version, 10)
    model.ir_version = max(model.ir_version, 8)
    model.functions.append(function)
    calls = [helper.make_node(name, inputs, made, domain="local", overload=overload)]
    if random.random() < 0.4:
        other = [_fresh(model, random, "o") for _ in made]
        calls.append(helper.make_node(name, inputs, other, domain="local", overload=overload))
    for each in (model, *model.functions):
        if all(entry.domain != "local" for entry in each.opset_import):
            each.opset_import.add(domain="local", version=1)
    kept = list(owner.node)
    kept[start:stop] = calls
    _set_nodes(owner, kept)


def put_beside(model: Any, random: Random) -> None:
    """Put another model's graph beside the one that is there, under other names."""
    other: Any = onnx.ModelProto.FromString(random.choice(seeds()))
    if other.functions or len(model.SerializeToString()) > MOST_BYTES // 2:
        return
    try:
        prefixed: Any = onnx.compose.add_prefix(other, f"m{random.randrange(1 << 20)}_")
    except Exception:  # noqa: BLE001 - sequences and bodies are not for every version of onnx
        return
    model.graph.node.extend(prefixed.graph.node)
    model.graph.initializer.extend(prefixed.graph.initializer)
    model.graph.input.extend(prefixed.graph.input)
    model.graph.output.extend(prefixed.graph.output)


def change_opset(model: Any, random: Random) -> None:
    """Import another opset, under another name of the domain, or more domains."""
    owner = random.choice([model, *model.functions])
    for entry in owner.opset_import:
        if entry.domain in ("", "ai.onnx"):
            if random.random() < 0.7:
                entry.version = random.choice([1, 2, 7, 9, 10, 11, 12, 13, 15, 17, 18, 21, 24, 26])
            else:
                entry.domain = random.choice(["", "ai.onnx"])
    if random.random() < 0.2:
        owner.opset_import.add(domain=random.choice(["com.microsoft", "x"]), version=1)


def sparse_constant(model: Any, random: Random) -> None:
    """Have an initializer be sparse."""
    for held in model.graph.initializer:
        if len(held.dims) == 1 and held.data_type == onnx.TensorProto.INT64:
            values = onnx.numpy_helper.to_array(held)
            sparse = model.graph.sparse_initializer.add(dims=list(values.shape))
            places = np.flatnonzero(values)
            sparse.values.CopyFrom(onnx.numpy_helper.from_array(values[places], held.name))
            sparse.indices.CopyFrom(onnx.numpy_helper.from_array(places))
            model.graph.initializer.remove(held)
            return


CHANGES: tuple[Callable[[Any, Random], None], ...] = (
    *(unname_output, stop_reading, share_name, name_nodes_alike, give_out, drop_output),
    *(forget_types, change_dimension, change_element_type, move_constant, omit_input),
    *(change_attribute, change_operator, repeat_node, remove_node, use_parts, use_parts),
    *(wrap_in_branch, wrap_in_branch, wrap_in_branch, wrap_in_loop, wrap_in_loop),
    *(wrap_in_function, wrap_in_function, put_beside, change_opset, sparse_constant),
)
"""Every change; those that are there more than once are made more often."""
