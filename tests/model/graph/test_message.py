"""What ONNX messages hold and onnx-ir does not is kept, or refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import pytest

import tensorsplit as ts
from tensorsplit.model.graph.carried import holds
from tests.model.build import FLOAT, graph, model, node, onnx_model, tensor, value
from tests.oracle import assert_same
from tests.refusals import refused

X = np.random.default_rng(4).standard_normal((6, 2)).astype(np.float32)


@pytest.fixture
def made() -> onnx.ModelProto:
    split = node("Split", "x", "a _ _", num_outputs=3)
    return model(graph([split], [value("x", FLOAT, [6, 2])], ["a"]), opset=18)


@pytest.mark.parametrize(
    "tool",
    [
        lambda made: ts.convert(made, opset=13),
        lambda made: ts.convert(made, opset=21),
        ts.infer_shapes,
        lambda made: ts.lower(made, target="onnxruntime"),
        lambda made: ts.lower(made, target="portable"),
    ],
    ids=["convert down", "convert up", "infer", "lower for onnxruntime", "lower for portable"],
)
@pytest.mark.parametrize("kind", ["message", "onnx-ir"])
def test_the_tools_keep_outputs_without_a_name(
    made: onnx.ModelProto, tool: Callable[[Any], Any], kind: str
) -> None:
    result = tool(made if kind == "message" else ir.serde.deserialize_model(made))
    np.testing.assert_array_equal(ts.run(result, {"x": X})["a"], X[:2])
    assert not [finding for finding in ts.check(result) if finding.severity == "error"]


def test_a_body_keeps_them_too() -> None:
    body = graph([node("Split", "x", "a _", num_outputs=2)], [], ["a"])
    choice = node("If", "c", "y", then_branch=body, else_branch=body)
    inputs = [value("x", FLOAT, [6, 2]), value("c", onnx.TensorProto.BOOL, [])]
    result = ts.convert(model(graph([choice], inputs, ["y"]), opset=18), opset=13)
    np.testing.assert_array_equal(ts.run(result, {"x": X, "c": np.array(True)})["y"], X[:3])


def test_lists_of_bodies_are_gone_through_in_order() -> None:
    inner = graph([node("If", "c", "z", then_branch=graph([], [], "x"))], [], ["z"])
    bodies = [graph([node("Neg", "x", "n")], [], ["n"]), inner]
    call = node("Mine", "x", "y", domain="mine", steps=bodies, name="call")
    read = onnx_model(model(graph([call, node("Neg", "y", "w")], [value("x", FLOAT, [2])]), mine=1))
    assert [listed.path for listed in read.lists] == [
        "graph",
        "graph/call.steps[0]",
        "graph/call.steps[1]",
        "graph/call.steps[1]/If[0].then_branch",
    ]
    assert [node.op_type for listed in read.lists for node in listed.graph.node] == [
        *("Mine", "Neg"),
        *("Neg", "If"),
    ]


TOOLS: dict[str, Callable[[Any], Any]] = {
    "convert": lambda made: ts.convert(made, opset=13),
    "infer": ts.infer_shapes,
    "lower": lambda made: ts.lower(made, target="portable"),
}


def sparse(name: str, items: Any) -> onnx.SparseTensorProto:
    """One-dimensional int64 values, none of which is zero."""
    values = tensor(name, items)
    return onnx.SparseTensorProto(
        values=values, indices=tensor("", range(len(items))), dims=[len(items)]
    )


@pytest.mark.parametrize("name", TOOLS)
def test_the_tools_keep_sparse_constants(name: str) -> None:
    """onnx-ir drops sparse initializers, and refuses sparse attributes."""
    nodes = [
        node("Constant", "", "k", sparse_value=sparse("", [1, 5])),
        node("Split", "x s", "a b"),
        node("Split", "x k", "c d"),
        node("Split", "x", "e f", num_outputs=2),
    ]
    inputs = [value("x", FLOAT, [6, 2])]
    whole = graph(nodes, inputs, "abcdef", (), [sparse("s", [2, 4])])
    before = model(whole, opset=18)
    result = TOOLS[name](before)
    expected = [X[:2], X[2:], X[:1], X[1:], X[:3], X[3:]]
    for made in (before, result):
        assert_same(list(ts.run(made, {"x": X}).values()), expected)
    assert not [finding for finding in ts.check(result) if finding.severity == "error"]


@pytest.mark.parametrize("name", TOOLS)
def test_the_tools_keep_types_that_onnx_ir_does_not_know(name: str) -> None:
    kind = onnx.TypeProto()
    kind.map_type.key_type = onnx.TensorProto.INT64
    kind.map_type.value_type.tensor_type.elem_type = FLOAT
    nodes = [
        node("DictVectorizer", "m", "v", domain="ai.onnx.ml", int64_vocabulary=[7, 9]),
        node("Split", "x", "a b", num_outputs=2),
    ]
    inputs = [onnx.ValueInfoProto(name="m", type=kind), value("x", FLOAT, [6, 2])]
    before = model(graph(nodes, inputs, ["v", "a", "b"]), opset=18)
    before.opset_import.add(domain="ai.onnx.ml", version=3)
    result = TOOLS[name](before)
    assert result.graph.input[0] == before.graph.input[0]
    for made in (before, result):
        vector, *parts = ts.run(made, {"m": [{7: 1.0, 9: 2.0}], "x": X}).values()
        assert vector.tolist() == [[1, 2]]
        assert_same(parts, [X[:3], X[3:]])


_TYPE = onnx.TypeProto
_FLOATS = _TYPE(tensor_type=_TYPE.Tensor(elem_type=FLOAT))
_SHAPE = onnx.TensorShapeProto(dim=[onnx.TensorShapeProto.Dimension(dim_value=2)])


@pytest.mark.parametrize(
    "kind",
    [
        _TYPE(),
        _FLOATS,
        _TYPE(tensor_type=_TYPE.Tensor(shape=_SHAPE)),
        _TYPE(tensor_type=_TYPE.Tensor(elem_type=99)),
        _TYPE(sparse_tensor_type=_TYPE.SparseTensor(elem_type=FLOAT)),
        _TYPE(sequence_type=_TYPE.Sequence()),
        _TYPE(sequence_type=_TYPE.Sequence(elem_type=_TYPE())),
        _TYPE(sequence_type=_TYPE.Sequence(elem_type=_FLOATS)),
        _TYPE(
            sequence_type=_TYPE.Sequence(
                elem_type=_TYPE(tensor_type=_TYPE.Tensor(shape=_SHAPE)),
            )
        ),
        _TYPE(
            optional_type=_TYPE.Optional(
                elem_type=_TYPE(sequence_type=_TYPE.Sequence(elem_type=_FLOATS))
            )
        ),
        _TYPE(map_type=_TYPE.Map(key_type=7, value_type=_FLOATS)),
    ],
)
def test_a_type_is_kept_from_onnx_ir_if_that_refuses_it(kind: onnx.TypeProto) -> None:
    is_read = True
    try:
        ir.serde.deserialize_value_info_proto(onnx.ValueInfoProto(name="v", type=kind), None)
    except ir.serde.SerdeError:
        is_read = False
    assert holds(kind) is is_read


@pytest.mark.parametrize("name", TOOLS)
def test_a_body_may_give_out_a_value_from_around_it(name: str) -> None:
    then = graph([], [], ["h"])
    otherwise = graph([node("Neg", "h", "h_given")], [], ["h_given"])
    choice = node("If", "c", "y", then_branch=then, else_branch=otherwise)
    split = node("Split", "x", "h r", num_outputs=2)
    inputs = [value("x", FLOAT, [6, 2]), value("c", onnx.TensorProto.BOOL, [])]
    before = model(graph([split, choice], inputs, ["y", "r"]), opset=18)
    for made in (before, TOOLS[name](before)):
        for given, sign in ((True, 1), (False, -1)):
            got = ts.run(made, {"x": X, "c": np.array(given)})
            assert_same(list(got.values()), [sign * X[:3], X[3:]])


def test_a_body_may_give_out_a_value_of_a_body_around_it() -> None:
    negated = graph([node("Neg", "h", "n")], [], ["n"])
    inner = node("If", "c", "w", then_branch=graph([], [], ["h"]), else_branch=negated)
    split = node("Split", "x", "h r", num_outputs=2)
    other = graph([node("Split", "x", "p q", num_outputs=2)], [], ["p", "q"])
    outer = node("If", "c", "y z", then_branch=graph([split, inner], [], "wr"), else_branch=other)
    inputs = [value("x", FLOAT, [6, 2]), value("c", onnx.TensorProto.BOOL, [])]
    got = ts.run(model(graph([outer], inputs, ["y", "z"]), 18), {"x": X, "c": np.array(True)})
    assert_same(list(got.values()), [X[:3], X[3:]])


@pytest.mark.parametrize("name", TOOLS)
def test_the_tools_keep_data_that_was_read_into_the_message(name: str) -> None:
    """Data of which the message says, too, that it lies outside."""
    held = tensor("k", [1, 5])
    held.data_location = onnx.TensorProto.EXTERNAL
    held.external_data.add(key="location", value="weights.bin")
    nodes = [node("Split", "x k", "a b"), node("Split", "x", "c d", num_outputs=2)]
    before = model(graph(nodes, [value("x", FLOAT, [6, 2])], "abcd", [held]), opset=18)
    for made in (before, TOOLS[name](before)):
        assert_same(list(ts.run(made, {"x": X}).values()), [X[:1], X[1:], X[:3], X[3:]])


def texts(**names: str) -> onnx.ModelProto:
    """A model with the text `@@@@` where a name says so, turned into what is not UTF-8."""
    given = dict.fromkeys(("input", "node", "domain", "dim", "inner", "note", "described"), "_")
    given |= {"domain": ""} | names
    body = graph([node("Neg", "x", "n", name=given["inner"])], [], ["n"])
    nodes = [
        node("Split", "x", "a b", name=given["node"], num_outputs=2, domain=given["domain"]),
        node("If", "c", "y", then_branch=body, else_branch=body),
    ]
    inputs = [
        value("x", FLOAT, [6, given["dim"]]),
        value("c", onnx.TensorProto.BOOL, []),
        value(given["input"], FLOAT, [1]),
    ]
    made = model(graph(nodes, inputs, ["a", "y"], [tensor("k", [1])]), opset=18)
    made.doc_string = given["note"]
    made.graph.value_info.append(value(given["described"]))
    read = onnx.ModelProto()
    read.ParseFromString(made.SerializeToString().replace(b"@@@@", b"@\xff\xfe@"))
    return read


@pytest.mark.parametrize("kind", ["input", "node", "domain", "dim", "inner"])
def test_a_name_that_is_not_utf8_is_refused(kind: str) -> None:
    with refused("TS501", "is not UTF-8"):
        onnx_model(texts(**{kind: "@@@@"}))


@pytest.mark.parametrize("kind", [onnx.NodeProto, onnx.AttributeProto])
def test_every_name_of_a_node_and_of_a_number_of_it_is_looked_at(kind: Any) -> None:
    fields = kind.DESCRIPTOR.fields
    names = {each.name for each in fields if each.type == each.TYPE_STRING} - {"doc_string"}
    for name in names:
        made = model(graph([node("Neg", "x", "y", k=1)], [value("x", FLOAT, [1])], ["y"]))
        holder = made.graph.node[0]
        holder = holder if kind is onnx.NodeProto else holder.attribute[0]
        if name in ("input", "output"):
            getattr(holder, name)[:] = ["@@@@"]
        else:
            setattr(holder, name, "@@@@")
        octets = made.SerializeToString().replace(b"@@@@", b"@\xff\xfe@")
        with refused("TS501", "is not UTF-8"):
            onnx_model(onnx.ModelProto.FromString(octets))


@pytest.mark.parametrize("kind", ["note", "described"])
def test_other_text_may_be_anything(kind: str) -> None:
    fed = {"x": X, "c": np.array(True), "_": np.zeros(1, np.float32)}
    assert_same([ts.run(texts(**{kind: "@@@@"}), fed)["a"]], [X[:3]])
