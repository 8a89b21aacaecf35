"""What belongs to what stays in a model comes back from every tool that writes it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from google.protobuf.unknown_fields import (  # type: ignore[import-untyped]  # it has none
    UnknownFieldSet,
)

import tensorsplit as ts
from tests.model.build import Shape
from tests.model.programs import shuffled
from tests.refusals import refused

Note: TypeAlias = tuple[str, str, str]
"""What something is noted of, in which field, and the text."""

GRAPH = """
g (float[N,6] x, bool c) => (float[N,3] y, float[N,3] z, float[N,3] w)
<int64[2] lengths = {3,3}, float scale = {0.5}, uint8 zero = {3}, float[3] trained = {1,2,3}> {
    [split] a, b = Split<axis=1>(x, lengths)
    [relu] p = Relu(a)
    [call] q = local.F(b)
    [branch] y = If(c) <then_branch = t () => (float[N,3] r) <float[1] inner = {1}>
        { [neg] v = Neg(p)  [add] r = Add(v, inner) },
        else_branch = e () => (float[N,3] u) { [abs] u = Abs(p) }>
    [moved] z = Add(q, trained)
    [count] w, rest = Split<axis=1, num_outputs=2>(x)
}
<domain: "local", opset_import: ["" : 18]> F <axis>(i) => (o) { [inside] h = Neg(i)  o = Abs(h) }
"""
TRAINING = """
step (float[N,6] t) => (float[3] new) <float[1] rate = {0.5}>
    { [loss] l, k = Split<axis=1, num_outputs=2>(t)  m = ReduceSum<keepdims=0>(z)  f = Add(l, m)
      n = Mul(m, rate)  new = Mul(trained, n) }
"""
START = "start () => (float[3] first) { first = Constant<value = float[3] {0,0,0}>() }"
UNKNOWN = 1022
"""The number of a field that no version of onnx has."""


def stuffed(version: int) -> Any:
    """A model with a note wherever its messages have a place for one."""
    head = f'<ir_version: {version}, opset_import: ["" : 18, "local" : 1]> '
    model: Any = onnx.parser.parse_model(head + GRAPH)
    model.configuration.add(name="two", num_devices=2, device=["one", "other"])
    for graph in _graphs(model.graph):
        for name in (*(each.name for each in graph.initializer), *_made(graph), "elsewhere"):
            annotation = graph.quantization_annotation.add(tensor_name=name)
            annotation.quant_parameter_tensor_names.add(key="SCALE_TENSOR", value="scale")
        ends = {*(value.name for value in (*graph.input, *graph.output)), "rest"}
        _describe(graph, [*(name for name in _made(graph) if name not in ends), "elsewhere"])
        for node in graph.node:
            on = node.device_configurations.add(configuration_id="two", pipeline_stage=1)
            on.sharding_spec.add(tensor_name=node.output[0], device=[0, 1])
    _describe(model.functions[0], ["i", "h", "o"])
    kind = model.graph.value_info.add(name="b_map").type.map_type
    kind.key_type = onnx.TensorProto.INT64
    kind.value_type.tensor_type.elem_type = onnx.TensorProto.FLOAT
    for owner, message in _messages(model, "model"):
        fields = {field.name for field in message.DESCRIPTOR.fields}
        if "doc_string" in fields:
            message.doc_string = f"of {owner}"
        if "metadata_props" in fields:
            message.metadata_props.add(key="b", value=f"of {owner}")
            message.metadata_props.add(key="a", value=f"too of {owner}")
        if "denotation" in fields:
            message.denotation = f"{owner}"
        if not isinstance(message, (onnx.AttributeProto, onnx.TypeProto, _DIM)):
            _put_unknown(message, f"of {owner}")
    return model


def _made(graph: Any) -> list[str]:
    return [name for node in graph.node for name in node.output]


def _describe(owner: Any, names: list[str]) -> None:
    for name in names:
        shape: Shape = None if name == "elsewhere" else ["N", 3]
        value = onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, shape)
        owner.value_info.append(value)


def _graphs(graph: Any) -> Iterator[Any]:
    yield graph
    for attribute in (entry for node in graph.node for entry in node.attribute):
        if attribute.type == onnx.AttributeProto.GRAPH:
            yield from _graphs(attribute.g)


_DIM = onnx.TensorShapeProto.Dimension
_NOTED = (
    *(onnx.ModelProto, onnx.GraphProto, onnx.FunctionProto, onnx.NodeProto, onnx.ValueInfoProto),
    *(onnx.TensorProto, onnx.AttributeProto, onnx.TypeProto, _DIM),
)


def _messages(message: Any, owner: str) -> Iterator[tuple[str, Any]]:
    """The messages that can hold notes, each with a name that does not depend on its place."""
    if isinstance(message, onnx.NodeProto):
        owner = f"node of {message.output[0]}"
    elif isinstance(message, (onnx.ValueInfoProto, onnx.TensorProto, onnx.GraphProto)):
        owner = f"{owner} {type(message).__name__} {message.name}"
    elif isinstance(message, onnx.AttributeProto):
        owner = f"{owner} {message.name}"
    if isinstance(message, _NOTED):
        yield owner, message
    for field, value in message.ListFields():
        if field.message_type is None or field.name == "training_info":
            continue
        for index, each in enumerate(value if field.is_repeated else [value]):
            is_dim = isinstance(each, _DIM)
            yield from _messages(each, f"{owner} {index}" if is_dim else owner)


def _put_unknown(message: Any, text: str) -> None:
    octets = text.encode()
    key = UNKNOWN << 3 | 2
    message.MergeFromString(bytes([key & 127 | 128, key >> 7, len(octets)]) + octets)


def notes(model: Any) -> set[Note]:
    """All that is noted in a model, each with what it is noted of."""
    found: set[Note] = set()
    for owner, message in _messages(model, "model"):
        for name in ("doc_string", "denotation"):
            if getattr(message, name, ""):
                found.add((owner, name, getattr(message, name)))
        noted = [*getattr(message, "metadata_props", ())]
        found |= {(owner, entry.key, entry.value) for entry in noted}
        assert len({entry.key for entry in noted}) == len(noted)
        found |= {(owner, "unknown", str(each.data)) for each in UnknownFieldSet(message)}
        for entry in getattr(message, "quantization_annotation", ()):
            text = str(entry.quant_parameter_tensor_names)
            found.add((owner, f"annotation of {entry.tensor_name}", text))
        for entry in getattr(message, "device_configurations", ()):
            found.add((owner, "device", str(entry)))
        for entry in getattr(message, "configuration", ()):
            found.add((owner, "configuration", str(entry)))
    return found


TOOLS: dict[str, Callable[[Any], Any]] = {
    "infer_shapes": ts.infer_shapes,
    "convert to 19": lambda model: ts.convert(model, opset=19),
    "convert to 25": lambda model: ts.convert(model, opset=25),
}


@pytest.mark.parametrize("tool", TOOLS)
@pytest.mark.parametrize("version", [8, 10, 11])
def test_all_of_it_comes_back_where_no_node_is_replaced(tool: str, version: int) -> None:
    model = stuffed(version)
    made = TOOLS[tool](model)
    assert made != model
    assert notes(model) - notes(made) == set()
    for field in ("producer_name", "producer_version", "domain", "model_version"):
        assert getattr(made, field) == getattr(model, field)
    mapped = next(each for each in made.graph.value_info if each.name == "b_map")
    assert mapped.type.HasField("map_type")


SORTING: dict[str, Callable[[Any], Any]] = {
    **TOOLS,
    "lower": lambda model: ts.lower(model, target="onnxruntime"),
    "convert to the same": lambda model: ts.convert(model, opset=18),
}


@pytest.mark.parametrize("tool", SORTING)
def test_the_type_of_an_output_that_is_no_tensor_comes_back(tool: str) -> None:
    """A ZipMap gives a sequence of maps, which onnx-ir does not have; scikit-learn writes it."""
    text = """<ir_version: 8, opset_import: ["" : 18, "ai.onnx.ml" : 1]>
        g (float[2, 6] x) => (float[2, 3] p, seq(map(int64, float)) y) {
            p, q = Split<axis = 1, num_outputs = 2>(x)
            y = ai.onnx.ml.ZipMap<classlabels_int64s = [1, 2, 3]>(q)
        }"""
    model = onnx.parser.parse_model(text)
    assert SORTING[tool](model).graph.output[1] == model.graph.output[1]


@pytest.mark.parametrize("tool", SORTING)
@pytest.mark.parametrize("version", [8, 11])
def test_all_of_it_comes_back_where_nodes_are_put_in_order(tool: str, version: int) -> None:
    model = stuffed(version)
    late = shuffled(model, 4)
    assert [notes(late), late == model] == [notes(model), False]
    made = SORTING[tool](late)
    assert notes(model) - notes(made) == set()
    onnx.checker.check_model(made)


@pytest.mark.parametrize("tool", SORTING)
def test_what_is_noted_of_external_data_comes_back(tool: str, tmp_path: Path) -> None:
    text = """<ir_version: 8, opset_import: ["" : 18]>
        g (float[2, 6] x) => (float[2, 3] p, float[2, 3] q) <float[2, 6] w = {1}> {
            y = Add(x, w) p, q = Split<axis = 1, num_outputs = 2>(y) }"""
    model = onnx.parser.parse_model(text)
    (held,) = model.graph.initializer
    held.Clear()
    held.MergeFrom(onnx.TensorProto(name="w", data_type=1, dims=[2, 6], data_location="EXTERNAL"))
    noted = {"location": "w.bin", "offset": "0", "length": "48", "checksum": "ab1"}
    for key, text in noted.items():
        held.external_data.add(key=key, value=text)
    (tmp_path / "w.bin").write_bytes(np.arange(12, dtype=np.float32).tobytes())
    path = tmp_path / "model.onnx"
    path.write_bytes(model.SerializeToString())
    (made,) = SORTING[tool](path).graph.initializer
    assert made.data_location == onnx.TensorProto.EXTERNAL
    entries = [(entry.key, entry.value) for entry in made.external_data]
    assert len(entries) == len(dict(entries))
    assert dict(entries) | {"location": "w.bin"} == noted


def parsed(text: str, opset: int = 18) -> Any:
    """A model of a graph in onnx's text."""
    return onnx.parser.parse_model(f'<ir_version: 11, opset_import: ["" : {opset}]> {text}')


CONVERTED = {
    "Slice": ("w, v = Split<num_outputs=2>(x)", 11),
    "Concat": ("w = LayerNormalization(x, scale)  v = Neg(w)", 15),
    "Reshape": ("v, k = TopK<axis=0>(x, two)  w = Neg(v)", 9),
}
"""Nodes that other nodes take the place of, and the opset where they have to."""

LOWERED = {
    "split for openvino": ("w, v = Split<num_outputs=2>(x)", "openvino"),
    "split": ("w, v = Split<num_outputs=2>(x)", "portable"),
    "split of given lengths": ("w, v = Split(x, both)", "portable"),
}
"""Splits that other nodes take the place of, and the target that needs it."""

REPLACED: dict[str, tuple[str, Callable[[Any], Any]]] = {
    **{name: (text, partial(ts.convert, opset=opset)) for name, (text, opset) in CONVERTED.items()},
    **{name: (text, partial(ts.lower, target=target)) for name, (text, target) in LOWERED.items()},
}


@pytest.mark.parametrize("name", REPLACED)
def test_what_takes_the_place_of_a_node_keeps_what_is_noted_of_it(name: str) -> None:
    text, tool = REPLACED[name]
    head = "g (float[N] x) => (float[A] w, float[B] v) <float[1] scale = {1}, int64[1] two = {2},"
    head += " int64[2] both = {2, 3}>"
    model = parsed(f"{head} {{ {text} }}")
    model.configuration.add(name="two", num_devices=2, device=["one", "other"])
    node = model.graph.node[0]
    node.doc_string = "why"
    node.metadata_props.add(key="module", value="net.head")
    on = node.device_configurations.add(configuration_id="two", pipeline_stage=1)
    on.sharding_spec.add(tensor_name=node.output[0], device=[0, 1])
    annotation = model.graph.quantization_annotation.add(tensor_name=node.output[0])
    annotation.quant_parameter_tensor_names.add(key="SCALE_TENSOR", value="scale")
    named = [each for each in model.graph.output if each.name == node.output[0]]
    described = named[0] if named else model.graph.value_info.add(name=node.output[0])
    described.metadata_props.add(key="of", value="the value")
    made = tool(model)
    values = {each.name: each for each in (*made.graph.output, *made.graph.value_info)}
    assert [entry.value for entry in values[node.output[0]].metadata_props] == ["the value"]
    new = [each for each in made.graph.node if each.op_type != "Neg"]
    assert {each.doc_string for each in new} == {"why"}
    assert {entry.value for each in new for entry in each.metadata_props} == {"net.head"}
    assert all(each.metadata_props for each in new)
    placed = {each.output[0]: each.device_configurations[0].sharding_spec for each in new}
    assert [spec.tensor_name for spec in placed[node.output[0]]] == [node.output[0]]
    assert [*made.graph.quantization_annotation] == [annotation]
    held = ir.to_proto(tool(ir.from_proto(model)))
    assert [*held.graph.quantization_annotation] == [annotation]


@pytest.mark.parametrize("target", ["openvino", "portable"])
def test_what_is_noted_of_nodes_of_sequences_stays(target: Any) -> None:
    text = "g (float[N] x, int64 i) => (float[A] a) <int64 two = {2}>"
    model = parsed(f"{text} {{ s = SplitToSequence(x, two)  a = SequenceAt(s, i) }}")
    for node in model.graph.node:
        node.doc_string = node.op_type
        node.metadata_props.add(key="module", value=node.op_type)
    made = ts.lower(model, target=target)
    for noted in made.graph.node:
        assert [entry.value for entry in noted.metadata_props] == [noted.doc_string]
    assert {node.doc_string for node in made.graph.node} == {"SplitToSequence", "SequenceAt"}


def with_training(version: int = 11) -> Any:
    """The model, and a step that reads a value of its graph and sets an initializer."""
    model = stuffed(version)
    training = model.training_info.add()
    training.initialization.CopyFrom(onnx.parser.parse_graph(START))
    training.algorithm.CopyFrom(onnx.parser.parse_graph(TRAINING))
    training.initialization_binding.add(key="trained", value="first")
    training.update_binding.add(key="trained", value="new")
    return model


@pytest.mark.parametrize("tool", TOOLS)
def test_training_stays(tool: str) -> None:
    model = with_training()
    made = TOOLS[tool](model)
    (before,), (after,) = model.training_info, made.training_info
    for graph in ("initialization", "algorithm"):
        texts = [onnx.printer.to_text(getattr(each, graph)) for each in (before, after)]
        assert texts[0] == texts[1]
    assert after.initialization_binding == before.initialization_binding
    assert after.update_binding == before.update_binding


@pytest.mark.parametrize("target", ["onnxruntime", "openvino", "portable"])
def test_training_stays_where_its_model_is_lowered(target: Any) -> None:
    model = with_training()
    assert ts.lower(model, target=target).training_info == model.training_info


CALLED = """
<ir_version: 8, opset_import: ["": 18, "local": 1]> g (float[6] x) => (float[3] y) { y = %s(x) }
<domain: "local", opset_import: ["": 18]> F (i) => (o) { o, rest = Split<num_outputs=2>(i) }
<domain: "local", opset_import: ["": 18]> G (i) => (o) { rest, o = Split<num_outputs=2>(i) }
"""


@pytest.mark.parametrize("called", ["local.F", "local.G"])
def test_functions_that_training_calls_stay_with_their_names(called: str) -> None:
    """A target for which functions are put into the place of their calls would leave it without."""
    model = onnx.parser.parse_model(CALLED % called)
    text = "step (float[6] t) => (float[3] d) { d = local.F(t) }"
    model.training_info.add().algorithm.CopyFrom(onnx.parser.parse_graph(text))
    made = ts.lower(model, target="onnxruntime")
    onnx.checker.check_model(made, full_check=True)
    assert "F" in {each.name for each in made.functions}
    assert made.training_info == model.training_info
    with refused("TS512", "local::F"):
        ts.lower(model, target="portable")
    model.training_info[0].algorithm.node[0].op_type = "G"
    assert "G" in {each.name for each in ts.convert(model, opset=20).functions}
    del model.training_info[:]
    assert not ts.lower(model, target="portable").functions


def test_training_is_converted() -> None:
    """A step runs the nodes of both graphs as one graph, which has one opset."""
    model = with_training()
    made = ts.convert(model, opset=13)
    (training,) = made.training_info
    nodes = {node.output[0]: node for node in training.algorithm.node}
    assert [entry.name for entry in nodes["l"].attribute] == ["axis"]
    assert [value.name for value in training.algorithm.input] == ["t"]
    assert [held.name for held in training.algorithm.initializer] == ["rate"]
    assert training.update_binding == model.training_info[0].update_binding
    whole = onnx.ModelProto()
    whole.CopyFrom(made)
    whole.graph.input.extend(training.algorithm.input)
    whole.graph.initializer.extend(training.algorithm.initializer)
    whole.graph.node.extend(training.algorithm.node)
    whole.graph.output.extend(training.algorithm.output)
    onnx.checker.check_model(whole, full_check=True)


def test_what_training_needs_of_lengths_is_known() -> None:
    """Lengths of the model's graph are an attribute before opset 13; training still reads them."""
    model = parsed(
        "g (float[6] x) => (float[3] a) <int64[2] lengths = {3,3}> { a, b = Split(x, lengths) }", 13
    )
    training = model.training_info.add()
    text = "step (float[N] t) => (float[3] d) { c, d = Split(t, lengths)  e = Neg(lengths) }"
    training.algorithm.CopyFrom(onnx.parser.parse_graph(text))
    made = ts.convert(model, opset=11)
    assert [held.name for held in made.graph.initializer] == ["lengths"]
    (step,) = (each.algorithm for each in made.training_info)
    assert [*step.node[0].attribute[0].ints] == [3, 3]
    assert [*step.initializer, *step.input[1:]] == []


def test_new_values_of_the_model_and_of_its_training_have_other_names() -> None:
    split = "g (float[N] x) => (float[A] y) { y, rest = Split<num_outputs=2>(x) }"
    model = parsed(split)
    training = model.training_info.add()
    text = "step (float[N] t) => (float[A] c) { c, split_slice = Split<num_outputs=2>(t) }"
    training.algorithm.CopyFrom(onnx.parser.parse_graph(text))
    made = ts.convert(model, opset=11)
    nodes = (*made.graph.node, *made.training_info[0].algorithm.node)
    names = [name for node in nodes for name in node.output]
    assert {"y", "rest", "c", "split_slice", "split_shape"} < set(names)
    assert len(names) == len(set(names))


def test_what_training_changes_is_no_constant() -> None:
    model = parsed(
        "g (float[6] x) => (float[3] a) <int64[2] lengths = {3,3}> { a, b = Split(x, lengths) }", 13
    )
    training = model.training_info.add()
    training.algorithm.CopyFrom(
        onnx.parser.parse_graph("step () => (int64[2] d) { d = Add(lengths, lengths) }")
    )
    training.update_binding.add(key="lengths", value="d")
    with refused("TS512", "training_info", "lengths"):
        ts.convert(model, opset=11)


@pytest.mark.parametrize("target", ["openvino", "portable"])
def test_a_function_that_training_calls_is_not_taken_away(target: Any) -> None:
    model = with_training()
    call = model.training_info[0].algorithm.node.add(op_type="F", domain="local")
    call.input.append("t")
    call.output.append("called")
    with refused("TS512", "training_info", "local::F"):
        ts.lower(model, target=target)
    assert ts.lower(model, target="onnxruntime").training_info == model.training_info


def test_a_refusal_of_training_says_where() -> None:
    model = with_training()
    model.training_info[0].algorithm.node[0].attribute[1].i = 3  # parts of the one output
    with refused("TS305", "training_info[0].algorithm/loss"):
        ts.convert(model, opset=13)
