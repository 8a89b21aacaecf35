"""Functions in the place of their calls: what ours keeps, and what onnx's inliner loses."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from onnx import AttributeProto, ModelProto, NodeProto, TensorProto, helper, inliner

import tensorsplit as ts
from tensorsplit.model.graph.calls import inline
from tests.refusals import refused

DATA = np.random.default_rng(5).standard_normal((4, 6)).astype(np.float32)
NEG = helper.make_node("Neg", ["a"], ["b"])


def call(inputs: Sequence[str], outputs: Sequence[str], **attributes: Any) -> NodeProto:
    return helper.make_node("F", inputs, outputs, domain="c", **attributes)


def function(inputs: Sequence[str], outputs: Sequence[str], *nodes: NodeProto, **more: Any) -> Any:
    imports = [helper.make_opsetid(*each) for each in (("", 18), ("ai.onnx.ml", 3), ("c", 1))]
    return helper.make_function("c", "F", inputs, outputs, list(nodes), imports, **more)


def model(nodes: Sequence[NodeProto], *functions: Any) -> ModelProto:
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in "xy"]
    graph = helper.make_graph(list(nodes), "g", ends[:1], ends[1:])
    imports = [helper.make_opsetid("", 18), helper.make_opsetid("c", 1)]
    return helper.make_model(graph, opset_imports=imports, functions=list(functions), ir_version=10)


def transposed() -> NodeProto:
    node = helper.make_node("Transpose", ["a"], ["b"])
    node.attribute.add(name="perm", ref_attr_name="order", type=AttributeProto.INTS)
    return node


def overloaded(name: str, overload: str) -> Any:
    made = function(["a"], ["b"], helper.make_node(name, ["a"], ["b"]))
    made.overload = overload
    return made


def called_twice() -> list[NodeProto]:
    nodes = [call(["x"], ["t"]), call(["t"], ["y"])]
    for node, overload in zip(nodes, ("one", "two"), strict=True):
        node.overload = overload
    return nodes


SOFT = helper.make_node("Clip", ["a", "low"], ["b"])
HALVES = helper.make_node("Split", ["a"], ["p", "q"], num_outputs=2, axis=0)
ABS = helper.make_node("Abs", ["q"], ["b"])
NORMAL = helper.make_node("Normalizer", ["a"], ["b"], domain="ai.onnx.ml", norm="L1")
ORDER = helper.make_attribute("order", [0, 1])

INNER = helper.make_function(
    "c",
    "G",
    ["a"],
    ["b"],
    [NEG],
    [helper.make_opsetid("", 18), helper.make_opsetid("ai.onnx.ml", 3)],
)


def _branch(name: str, *nodes: NodeProto) -> Any:
    made = helper.make_tensor_value_info(name, TensorProto.FLOAT, None)
    return helper.make_graph(list(nodes), name, [], [made])


BRANCHES = [
    helper.make_node("ReduceSum", ["a"], ["s"], keepdims=0),
    helper.make_node("Sub", ["s", "s"], ["zero"]),
    helper.make_node("Greater", ["s", "zero"], ["is_more"]),
    helper.make_node(
        "If",
        ["is_more"],
        ["b"],
        then_branch=_branch("p", helper.make_node("G", ["a"], ["p"], domain="c")),
        else_branch=_branch(
            "r",
            helper.make_node("Abs", ["a"], ["q"]),
            helper.make_node("G", ["q"], ["r"], domain="c"),
        ),
    ),
]


KEPT: dict[str, tuple[ModelProto, Callable[[Any], Any]]] = {
    "an attribute that is given": (
        model([call(["x"], ["y"], order=[0, 1])], function(
            ["a"], ["b"], transposed(), attributes=["order"])),
        lambda x: x,
    ),
    "an attribute that is left out": (
        model([call(["x"], ["y"])], function(["a"], ["b"], transposed(), attributes=["order"])),
        lambda x: x.T,
    ),
    "two overloads": (
        model(called_twice(), overloaded("Neg", "one"), overloaded("Abs", "two")),
        lambda x: abs(-x),
    ),
    "an input that is left out": (
        model([call(["x"], ["y"])], function(["a", "low"], ["b"], SOFT)),
        lambda x: x,
    ),
    "a call in a branch of a function": (
        model([call(["x"], ["y"])], function(["a"], ["b"], *BRANCHES), INNER),
        lambda x: -x if x.sum() > 0 else -abs(x),
    ),
    "an output that is left out": (
        model([call(["x"], ["", "y"])], function(["a"], ["p", "q"], HALVES)),
        lambda x: x[2:],
    ),
}  # fmt: skip
LOST: dict[str, tuple[ModelProto, Callable[[Any], Any]]] = {
    "the default of an attribute": (
        model([call(["x"], ["y"])], function(
            ["a"], ["b"], transposed(), attribute_protos=[ORDER])),
        lambda x: x,
    ),
    "an output that is an input": (
        model([call(["x"], ["y"])], function(["a"], ["a"])),
        lambda x: x,
    ),
    "an output that is given twice": (
        model([call(["x"], ["t", "u"]), helper.make_node("Add", ["t", "u"], ["y"])], function(
            ["a"], ["b", "b"], NEG)),
        lambda x: -2 * x,
    ),
    "an import of the function alone": (
        model([call(["x"], ["y"])], function(["a"], ["b"], NORMAL)),
        lambda x: x / abs(x).sum(1, keepdims=True),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", [*KEPT, *LOST])
def test_an_inlined_model_calculates_the_same(name: str) -> None:
    message, expected = (KEPT | LOST)[name]
    inlined = ir.from_proto(message)
    inline(inlined)
    assert not inlined.functions
    for made in (message, inlined):
        np.testing.assert_allclose(ts.run(made, {"x": DATA})["y"], expected(DATA), rtol=1e-6)


@pytest.mark.parametrize("name", LOST)
def test_onnx_inlines_something_else(name: str) -> None:
    """If this fails, onnx has mended it: ADR 30 says what then can go."""
    message, expected = LOST[name]
    inlined = inliner.inline_local_functions(message)
    with pytest.raises((ts.SplitError, AssertionError)):
        np.testing.assert_allclose(ts.run(inlined, {"x": DATA})["y"], expected(DATA), rtol=1e-6)


def test_what_is_noted_of_a_call_goes_to_its_nodes() -> None:
    message = model([call(["x"], ["y"])], function(["a"], ["b"], NEG))
    message.graph.node[0].metadata_props.add(key="layer", value="7")
    inlined = ir.from_proto(message)
    inline(inlined)
    (node,) = inlined.graph
    assert node.metadata_props == {"layer": "7"}
    lost = inliner.inline_local_functions(message)
    assert not lost.graph.node[0].metadata_props, f"onnx {onnx.__version__} keeps it: see ADR 30"


def test_calls_with_other_attributes_share_nothing() -> None:
    nodes = [call(["x"], ["t"], order=[1, 0]), call(["t"], ["y"], order=[0, 1])]
    message = model(nodes, function(["a"], ["b"], transposed(), attributes=["order"]))
    inlined = ir.from_proto(message)
    inline(inlined)
    orders = [list(node.attributes["perm"].value) for node in inlined.graph]
    assert orders == [[1, 0], [0, 1]]
    assert len({node.name for node in inlined.graph}) == 2


def test_bodies_are_copied_for_each_call() -> None:
    """A body reads what the call gives, and shares no node, value or name with another call's."""
    outs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in "tu"]
    negated = helper.make_graph([helper.make_node("Neg", ["a"], ["t"])], "yes", [], outs[:1])
    shifted = helper.make_graph(
        [helper.make_node("Add", ["a", "w"], ["u"])], "no", [], outs[1:],
        [helper.make_tensor("w", TensorProto.FLOAT, [], [2.5])],
    )  # fmt: skip
    choice = helper.make_node("If", ["which"], ["b"], then_branch=negated, else_branch=shifted)
    nodes = [
        helper.make_node("F", ["x", "p"], ["m"], domain="c"),
        helper.make_node("F", ["m", "q"], ["y"], domain="c"),
    ]
    message = model(nodes, function(["a", "which"], ["b"], choice))
    flags = [helper.make_tensor_value_info(name, TensorProto.BOOL, []) for name in "pq"]
    message.graph.input.extend(flags)
    inlined = ir.from_proto(message)
    inline(inlined)
    copies = list(inlined.graph.all_nodes())
    assert sorted(node.op_type for node in copies) == ["Add", "Add", "If", "If", "Neg", "Neg"]
    assert len({node.name for node in copies}) == 6
    assert len({value.name for node in copies for value in node.outputs}) == 6
    for p, q in ((True, False), (False, True)):
        feeds = {"x": DATA, "p": np.array(p), "q": np.array(q)}
        expected = 2.5 - DATA if p else -(DATA + 2.5)
        np.testing.assert_array_equal(ts.run(inlined, feeds)["y"], expected.astype(np.float32))


def test_what_is_noted_of_nodes_and_values_is_copied() -> None:
    message = model([call(["x"], ["y"])], function(["a"], ["b"], HALVES, ABS))
    source = ir.from_proto(message)
    (held,) = source.functions.values()
    halves, last = held
    device = ir.ModelConfiguration("two", 2)
    source.device_configurations = (device,)
    halves.shard(held.inputs[0], configuration=device, axis=0, num_shards=2)
    halves.shard(halves.outputs[1], configuration=device, axis=1, num_shards=2)
    halves.metadata_props["layer"] = "3"
    halves.doc_string, halves.meta["seen"] = "in halves", 5
    part = halves.outputs[1]
    part.shape, part.type = ir.Shape(["N", 6]), ir.TensorType(ir.DataType.FLOAT)
    part.metadata_props["scale"] = "7"
    inline(source)
    first, second = source.graph
    assert first is not halves
    assert second is not last
    assert (first.metadata_props, first.doc_string, first.meta["seen"]) == (
        {"layer": "3"}, "in halves", 5,
    )  # fmt: skip
    copy = first.outputs[1]
    assert second.inputs == (copy,)
    assert copy is not part
    assert copy.shape is not part.shape
    assert (copy.shape, copy.type, copy.metadata_props) == (part.shape, part.type, {"scale": "7"})
    (placed,) = first.device_configurations
    assert [spec.value for spec in placed.sharding_specs] == [source.graph.inputs[0], copy]


def test_a_function_inlined_in_another_refers_to_its_attribute() -> None:
    outer = helper.make_node("F", ["a"], ["b"], domain="c")
    outer.attribute.add(name="order", ref_attr_name="axes", type=AttributeProto.INTS)
    caller = function(["a"], ["b"], outer, attributes=["axes"])
    caller.name = "Outer"
    caller.opset_import.add(domain="c", version=1)
    inner = function(["a"], ["b"], transposed(), attributes=["order"])
    nodes = [helper.make_node("Outer", ["x"], ["y"], domain="c", axes=[0, 1])]
    inlined = ir.from_proto(model(nodes, inner, caller))
    inline(inlined, {("c", "F", "")})
    assert [key[1] for key in inlined.functions] == ["Outer"]
    np.testing.assert_array_equal(ts.run(inlined, {"x": DATA})["y"], DATA)


def test_a_function_that_uses_a_value_around_its_call_is_refused() -> None:
    """Models that are read are refused before: nothing in the function gives the value."""
    source = ir.from_proto(model([call(["x"], ["y"])], function(["a"], ["b"], NEG)))
    (held,) = source.functions.values()
    held.append(ir.Node("", "Add", [held.inputs[0], source.graph.inputs[0]]))
    with refused("TS502", "'x'", "make it an input of the function"):
        inline(source)


def test_a_list_of_bodies_comes_along() -> None:
    ends = [[helper.make_tensor_value_info(name, TensorProto.FLOAT, None)] for name in "pq"]
    bodies = [
        helper.make_graph([helper.make_node(name, ["a"], [end[0].name])], "b", [], end)
        for name, end in zip(("Neg", "Abs"), ends, strict=True)
    ]
    either = helper.make_node("Either", ["a"], ["b"], domain="ai.onnx.ml", branches=bodies)
    made = ir.from_proto(model([call(["x"], ["y"])], function(["a"], ["b"], either)))
    inline(made)
    (node,) = made.graph
    listed = node.attributes["branches"].as_graphs()
    assert [[each.op_type for each in body] for body in listed] == [["Neg"], ["Abs"]]
    assert [body[0].inputs[0] for body in listed] == [made.graph.inputs[0]] * 2
