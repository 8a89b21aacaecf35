"""Inference never knows less than onnx's own with data propagation."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, inliner

import tensorsplit as ts
from tests.model.build import INT64, node_tests, nodes_of
from tests.model.infer.test_infer_shapes import shape_of, shapes
from tests.model.random_models import random_model

TORCH = Path(__file__).parents[2] / "data" / "torch"


def inferred_by_onnx(made: onnx.ModelProto) -> onnx.ModelProto:
    """What onnx makes of a model, in which defaults of inputs are not constants (D20).

    It crashes, or never ends, where it follows elements through a Slice with large steps.
    """
    given = onnx.ModelProto.FromString(made.SerializeToString())
    inputs = {entry.name for entry in given.graph.input}
    kept = [tensor for tensor in given.graph.initializer if tensor.name not in inputs]
    del given.graph.initializer[:]
    given.graph.initializer.extend(kept)
    bodies = (given.graph, *given.functions)
    follows = not any(node.op_type == "Slice" for body in bodies for node in nodes_of(body))
    inferred: onnx.ModelProto = onnx.shape_inference.infer_shapes(given, data_prop=follows)
    return inferred


def values(graph: Any, path: str = "") -> Iterator[tuple[str, onnx.TypeProto]]:
    """The types of the values of a graph and of its bodies, by a path."""
    for entry in (*graph.value_info, *graph.output):
        yield path + entry.name, entry.type
    for index, node in enumerate(graph.node):
        for attribute in node.attribute:
            for body in (attribute.g, *attribute.graphs):
                yield from values(body, f"{path}{index}.{attribute.name}/")


def names(made: onnx.ModelProto) -> set[str]:
    """The names of dimensions of the model's inputs."""
    shapes = [shape_of(entry.type) or () for entry in made.graph.input]
    return {dim for shape in shapes for dim in shape if isinstance(dim, str)}


def declared_names(made: onnx.ModelProto) -> set[str]:
    """All names of dimensions that a model declares, in bodies too."""
    found = names(made)
    graphs = [made.graph]
    while graphs:
        graph = graphs.pop()
        graphs += [
            body
            for node in graph.node
            for attribute in node.attribute
            for body in (attribute.g, *attribute.graphs)
        ]
        for entry in (*graph.value_info, *graph.output, *graph.input):
            found |= {dim for dim in shape_of(entry.type) or () if isinstance(dim, str)}
    return found


def lost(made: onnx.ModelProto, by_onnx: onnx.ModelProto) -> list[str]:
    """The values of which onnx knows something that `infer_shapes` doesn't."""
    inferred = ts.infer_shapes(made)
    assert isinstance(inferred, onnx.ModelProto)
    ours = dict(values(inferred.graph))
    doubtful = after_loops(made, by_onnx) | after_ifs(made) | after_attention(made)
    reshaped = after_reshapes(made) | after_rounds(made)
    is_told, is_numbered = comparison(made), comparison(made, numbers=True)
    found = []
    for path, kind in values(by_onnx.graph):
        theirs, got = shape_of(kind), ours.get(path)
        if path.rpartition("/")[2] in doubtful:
            continue
        known = None if got is None else shape_of(got)
        wanted = kind.WhichOneof("value")
        is_kind = wanted is None or (got is not None and got.WhichOneof("value") == wanted)
        is_same = is_numbered if path.rpartition("/")[2] in reshaped else is_told
        is_shape = theirs is None or (known is not None and is_same(theirs, known))
        if not is_kind or not is_shape:
            found.append(f"{path}: {theirs}, not {known}")
    return found


def after_loops(made: onnx.ModelProto, by_onnx: onnx.ModelProto) -> set[str]:
    """What follows from sequences that a Loop gives.

    onnx takes the shape of the tensors that go in for that of all that come out.
    """
    entries = (*by_onnx.graph.value_info, *by_onnx.graph.output)
    known = {entry.name: entry.type for entry in entries}

    def gives_sequence(node: onnx.NodeProto) -> bool:
        kinds = [known[name] for name in node.output if name in known]
        return node.op_type == "Loop" and any(kind.HasField("sequence_type") for kind in kinds)

    return following(made, gives_sequence)


def after_ifs(made: onnx.ModelProto) -> set[str]:
    """What follows from an If before opset 11, where onnx takes the shape of one branch."""
    is_old = any(not entry.domain and entry.version < 11 for entry in made.opset_import)
    return following(made, lambda node: is_old and node.op_type == "If")


def after_attention(made: onnx.ModelProto) -> set[str]:
    """What follows from Attention, where onnx takes a length that is not known for 0."""
    return following(made, lambda node: node.op_type == "Attention")


def after_rounds(made: onnx.ModelProto) -> set[str]:
    """What follows from a Loop or a Scan, of which onnx does not see that it may have no round."""
    return following(made, lambda node: node.op_type in ("Loop", "Scan"))


def after_reshapes(made: onnx.ModelProto) -> set[str]:
    """What follows from a Reshape to a shape that is calculated.

    onnx takes what is asked for as a dimension. But a name may be 0, and a 0 is the dimension of
    the data: ``[B, 4, S, 8]`` makes ``(0, 4, 1, 8)`` of ``(B, 4, 1, S, 8)`` where B and S are 0.
    """
    constants = {entry.name for entry in made.graph.initializer}
    nodes = (node for node in made.graph.node if node.op_type == "Constant")
    constants.update(name for node in nodes for name in node.output)
    return following(
        made,
        lambda node: (
            node.op_type == "Reshape" and len(node.input) > 1 and node.input[1] not in constants
        ),
    )


def following(made: onnx.ModelProto, starts: Callable[[onnx.NodeProto], bool]) -> set[str]:
    """The values that follow from what some nodes give."""
    found: set[str] = set()
    pending = list(made.graph.node)
    for node in pending:
        bodies = [body for entry in node.attribute for body in (entry.g, *entry.graphs)]
        pending += [inner for body in bodies for inner in body.node]
        read = {
            *node.input,
            *(name for body in bodies for inner in body.node for name in inner.input),
        }
        if starts(node) or read & found:
            found.update(node.output)
    return found


def comparison(made: onnx.ModelProto, *, numbers: bool = False) -> Callable[[Any, Any], bool]:
    """Whether a shape says what one of onnx says; with ``numbers`` its names say nothing.

    A number is the same number, and the name of a dimension of an input is the same or a number. A
    name that is declared elsewhere is another name, expression or number of ours. What onnx
    invents says nothing.
    """
    own, elsewhere = (set(), set()) if numbers else (names(made), declared_names(made))

    def same(theirs: Any, ours: Any) -> bool:
        if theirs is None or theirs == ours:
            return True
        if not isinstance(theirs, str) or (ours is None and theirs in elsewhere):
            return False
        return theirs not in own or isinstance(ours, int)

    return lambda theirs, ours: len(theirs) == len(ours) and all(map(same, theirs, ours))


LEGAL_ONLY_IF_NEVER_RUN = (
    "test_affine_grid_3d_expanded",
    "test_affine_grid_3d_align_corners_expanded",
)
"""They have a wrong split in a branch that never runs, of which onnx tells shapes (D22)."""

DECLARED_WRONG = ("test_loop13_seq", "test_loop16_seq_none")
"""They declare scalars in a sequence that holds lists."""


@pytest.mark.thorough
@pytest.mark.parametrize("given", ["as they are", "undeclared", "named", "named, with constants"])
def test_node_tests(given: str) -> None:
    rewritten: dict[str, Callable[[Any], onnx.ModelProto]] = {
        "as they are": lambda case: case.model,
        "undeclared": lambda case: undeclared(case.model),
        "named": lambda case: named(case.model),
        "named, with constants": with_constants,
    }
    found = {}
    for case in node_tests():
        made = rewritten[given](case)
        try:
            by_onnx = inferred_by_onnx(made)
        except onnx.shape_inference.InferenceError:
            continue
        if case.name not in LEGAL_ONLY_IF_NEVER_RUN + DECLARED_WRONG:
            found[case.name] = lost(made, by_onnx)
    assert len(found) > 1000
    assert {name: values for name, values in found.items() if values} == {}


def undeclared(made: onnx.ModelProto) -> onnx.ModelProto:
    """A model that says nothing of what follows from its inputs."""
    copy: onnx.ModelProto = onnx.ModelProto.FromString(made.SerializeToString())
    del copy.graph.value_info[:]
    for entry in copy.graph.output:
        entry.ClearField("type")
    return copy


def named(made: onnx.ModelProto) -> onnx.ModelProto:
    """The same, with a name for each length of the inputs that are not lists of integers."""
    copy = undeclared(made)
    constants = {tensor.name for tensor in copy.graph.initializer}
    for entry in copy.graph.input:
        if entry.name not in constants:
            name_dimensions(entry.type)
    return copy


def name_dimensions(kind: onnx.TypeProto) -> None:
    """Give each length above 1 a name, the same for the same length."""
    if kind.HasField("sequence_type"):
        name_dimensions(kind.sequence_type.elem_type)
    elif kind.HasField("optional_type"):
        name_dimensions(kind.optional_type.elem_type)
    else:
        tensor = kind.tensor_type
        if tensor.elem_type not in (TensorProto.INT32, INT64) or len(tensor.shape.dim) > 1:
            for dim in tensor.shape.dim:
                if dim.dim_value > 1:
                    dim.dim_param = f"d{dim.dim_value}"


def with_constants(case: Any) -> onnx.ModelProto:
    """The same, with what a test feeds as scalars and short lists as constants."""
    copy: onnx.ModelProto = named(case.model)
    fed = case.data_sets[0][0] if case.data_sets else ()
    for entry, item in zip(list(copy.graph.input), fed, strict=False):
        if isinstance(item, np.ndarray) and item.ndim < 2 and item.size < 20:
            copy.graph.initializer.append(onnx.numpy_helper.from_array(item, entry.name))
            copy.graph.input.remove(entry)
    return copy


def has_axes_in_order(made: onnx.ModelProto) -> bool:
    """Whether no axes are unsorted or negative attributes, of which onnx infers wrong shapes."""
    bodies = (made.graph, *made.functions)
    return all(
        list(each.ints) == sorted(each.ints) and min(each.ints, default=0) >= 0
        for node in (node for body in bodies for node in nodes_of(body))
        if node.op_type in ("Squeeze", "Unsqueeze")
        for each in node.attribute
    )


def test_random_models() -> None:
    models = {seed: random_model(seed).model for seed in range(150)}
    models = {seed: made for seed, made in models.items() if has_axes_in_order(made)}
    assert len(models) > 120
    found = {seed: lost(made, inferred_by_onnx(made)) for seed, made in models.items()}
    assert {seed: values for seed, values in found.items() if values} == {}


def test_calls_say_what_the_nodes_say_that_onnx_puts_in_their_place() -> None:
    models = {seed: random_model(seed).model for seed in range(200)}
    models = {seed: made for seed, made in models.items() if made.functions}
    assert len(models) > 20
    for seed, made in models.items():
        inlined = shapes(inliner.inline_local_functions(made))
        found = shapes(made)
        assert {name: inlined[name] for name in found if name in inlined} == found, seed


@pytest.mark.parametrize(
    ("node", "given"),
    [
        ("Slice(a, b, c, d)", "x, one, two"),
        ("ReduceSum<keepdims = 0>(a, b)", "x"),
        ("Squeeze(a, b)", "w"),
        ("Pad(a, b, c, d)", "x, four"),
        ("OptionalHasElement(a)", ""),
    ],
)
def test_what_a_call_leaves_out_is_left_out(node: str, given: str) -> None:
    made = onnx.parser.parse_model(f"""<ir_version: 8, opset_import: ["": 18, "l": 1]>
        g (float[N,M] x, float[1,5,1] w) => (y) <int64[1] one = {{1}}, int64[1] two = {{2}},
        int64[4] four = {{1, 2, 3, 4}}> {{ y = l.F({given}) }}
        <opset_import: ["": 18], domain: "l"> F (a, b, c, d) => (e) {{ e = {node} }}""")
    inlined = inliner.inline_local_functions(made)
    assert shapes(made)["y"] == shapes(inlined)["y"]
    assert shapes(made)["y"] is not None


@pytest.mark.parametrize("path", sorted(TORCH.glob("*.onnx")), ids=lambda path: path.stem)
def test_models_of_torch(path: Path) -> None:
    made = onnx.load(path)
    for each in (made, undeclared(made)):
        assert lost(each, inferred_by_onnx(each)) == []
