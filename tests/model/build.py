"""Small ONNX models, written tersely, and running them."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np
from onnx import (
    AttributeProto,
    FunctionProto,
    GraphProto,
    ModelProto,
    NodeProto,
    SparseTensorProto,
    TensorProto,
    ValueInfoProto,
    defs,
    helper,
    numpy_helper,
)

from tensorsplit.model.feeds import check_feeds
from tensorsplit.model.infer.validation import validate
from tensorsplit.model.reading import OnnxModel, read_model
from tensorsplit.model.run.evaluator import CompiledModel
from tensorsplit.model.run.program import compile_model

FLOAT, INT64, BOOL, STRING = (
    TensorProto.FLOAT,
    TensorProto.INT64,
    TensorProto.BOOL,
    TensorProto.STRING,
)


def known(*opsets: int) -> list[int]:
    """Those opsets that the installed onnx knows, for its own operators."""
    return [opset for opset in opsets if opset <= defs.onnx_opset_version()]


@cache
def node_tests() -> tuple[Any, ...]:
    """The node tests of onnx, which take seconds to make; they are for all tests, as they are."""
    from onnx.backend.test.case.node import collect_testcases

    with warnings.catch_warnings(action="ignore"):  # of their own arithmetic
        return tuple(collect_testcases(None))


def nodes_of(graph: GraphProto) -> Iterator[NodeProto]:
    """The nodes of a graph, and of the bodies in it."""
    for node in graph.node:
        yield node
        for attribute in node.attribute:
            for body in (attribute.g, *attribute.graphs):
                yield from nodes_of(body)


TURNS = 8


def node_tests_at(turn: int) -> list[Any]:
    """Node tests of every kind: the same operators with the same attributes and operands.

    Of each kind they are one in eight, or one; each test is among them in one turn of eight.
    """
    kinds: dict[Any, list[Any]] = {}
    for case in node_tests():
        kinds.setdefault(_kind(case.model.graph), []).append(case)
    return [
        case for tests in kinds.values() for case in tests[turn % min(len(tests), TURNS) :: TURNS]
    ]


def _kind(graph: GraphProto) -> tuple[int, frozenset[Any]]:
    return len(graph.node), frozenset(
        (
            node.domain,
            node.op_type,
            tuple(sorted(attribute.name for attribute in node.attribute)),
            tuple(map(bool, node.input)),
            tuple(map(bool, node.output)),
        )
        for node in nodes_of(graph)
    )


Shape = Sequence[int | str | None] | None


def value(name: str, element: int = FLOAT, shape: Shape = None) -> ValueInfoProto:
    """A tensor input or output; without a shape, of any rank."""
    return helper.make_tensor_value_info(name, element, shape)


def sequence(name: str, element: int = FLOAT) -> ValueInfoProto:
    """A sequence input or output."""
    return helper.make_tensor_sequence_value_info(name, element, None)


def untyped(name: str) -> ValueInfoProto:
    """An input or output of which only the name is declared."""
    return ValueInfoProto(name=name)


def node(op_type: str, inputs: str, outputs: str, **attributes: Any) -> NodeProto:
    """A node; names are separated by blanks, and ``_`` stands for an omitted one."""
    return helper.make_node(op_type, _names(inputs), _names(outputs), **attributes)


def _names(text: str) -> list[str]:
    return ["" if name == "_" else name for name in text.split()]


def link(name: str, to: str, kind: int = AttributeProto.INT) -> AttributeProto:
    """An attribute that stands for an attribute of the function."""
    return AttributeProto(name=name, ref_attr_name=to, type=kind)  # type: ignore[arg-type]


def linked(
    op_type: str, inputs: str, outputs: str, *links: AttributeProto, **attributes: Any
) -> NodeProto:
    """A node of a function with attributes that stand for the function's."""
    made = node(op_type, inputs, outputs, **attributes)
    made.attribute.extend(links)
    return made


def tensor(name: str, items: Any, dtype: Any = np.int64) -> TensorProto:
    """An initializer."""
    return numpy_helper.from_array(np.asarray(items, dtype), name)


def graph(
    nodes: Iterable[NodeProto],
    inputs: Iterable[ValueInfoProto] = (),
    outputs: Iterable[ValueInfoProto | str] = (),
    initializers: Iterable[TensorProto] = (),
    sparse: Iterable[SparseTensorProto] = (),
) -> GraphProto:
    """A graph; outputs given as names have no type."""
    typed = [untyped(entry) if isinstance(entry, str) else entry for entry in outputs]
    made = helper.make_graph(list(nodes), "g", list(inputs), typed, list(initializers))
    made.sparse_initializer.extend(sparse)
    return made


def model(
    made: GraphProto,
    opset: int = 18,
    functions: Iterable[FunctionProto] = (),
    **domains: int,
) -> ModelProto:
    """A model; further domains are given as keywords."""
    imports = [helper.make_opsetid("", opset)]
    imports += [helper.make_opsetid(domain, version) for domain, version in domains.items()]
    return helper.make_model(made, opset_imports=imports, functions=list(functions))


def function(
    name: str,
    inputs: str,
    outputs: str,
    nodes: Iterable[NodeProto],
    attributes: Sequence[str] = (),
    defaults: Mapping[str, Any] | None = None,
    opset: int = 18,
    domain: str = "custom",
    overload: str = "",
) -> FunctionProto:
    """A model-local function of the domain ``custom`` that may call others of it."""
    made = helper.make_function(
        domain,
        name,
        _names(inputs),
        _names(outputs),
        list(nodes),
        [helper.make_opsetid("", opset), helper.make_opsetid("custom", 1)],
        list(attributes),
        [helper.make_attribute(key, item) for key, item in (defaults or {}).items()],
    )
    made.overload = overload
    return made


def onnx_model(made: ModelProto | Any) -> OnnxModel:
    """The model as the package reads it."""
    read = read_model(made)
    assert isinstance(read, OnnxModel)
    return read


def run(made: ModelProto | Any, **feeds: Any) -> dict[str, Any]:
    """Run a model on what is given by the names of its inputs."""
    return CompiledModel(onnx_model(made)).run(feeds)


def outputs(made: ModelProto | Any, **feeds: Any) -> list[Any]:
    """As `run`, the values in the graph's order."""
    return list(run(made, **feeds).values())


def check(made: ModelProto | Any, feeds: Mapping[str, Any] | None = None) -> list[str]:
    """The split nodes that can't be decided before the model runs."""
    read = onnx_model(made)
    fed = None if feeds is None else check_feeds(read.inputs, feeds)
    compile_model(read)
    return list(validate(read.model, fed).undecided)
