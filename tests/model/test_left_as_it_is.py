"""No tool changes a model, a file or an array that it was given, in a single byte."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import pytest

import tensorsplit as ts
from tensorsplit import SplitError, backend
from tests.model.build import (
    BOOL,
    FLOAT,
    function,
    graph,
    known,
    link,
    linked,
    model,
    node,
    node_tests,
    tensor,
    value,
)
from tests.model.random_models import random_model

Given = onnx.ModelProto | ir.Model
Tool = Callable[[Given], object]

OPSETS = known(*range(1, 29))
TARGETS: tuple[Any, ...] = ("onnxruntime", "openvino", "portable")
KINDS: dict[str, Callable[[onnx.ModelProto], Given]] = {
    "ModelProto": lambda made: made,
    "onnx_ir.Model": ir.serde.deserialize_model,
}


def tools(feeds: Mapping[str, Any], opsets: list[int]) -> Iterator[tuple[str, Tool]]:
    """Everything public that takes a model in memory."""
    yield "check", ts.check
    yield "infer_shapes", ts.infer_shapes
    yield "run", lambda given: ts.run(given, feeds)
    yield "prepare", lambda given: backend.prepare(given).run(feeds)
    yield "to_variadic", lambda given: ts.convert(given, variadic=True)
    for opset in opsets:
        yield f"convert {opset}", partial(ts.convert, opset=opset)
    for target in TARGETS:
        yield f"lower {target}", partial(ts.lower, target=target)
        yield f"check {target}", partial(ts.check, target=target)


def as_bytes(given: Given) -> bytes:
    """The model as a file would hold it."""
    made = ir.serde.serialize_model(given) if isinstance(given, ir.Model) else given
    return bytes(made.SerializeToString(deterministic=True))


def check_left(
    made: onnx.ModelProto, feeds: Mapping[str, Any], opsets: list[int], name: object
) -> None:
    """Give a model to every tool, as each kind, together with what is fed."""
    fed = repr(feeds)
    for kind, convert in KINDS.items():
        given = convert(made)
        before = as_bytes(given)
        for tool, call in tools(feeds, opsets):
            with (
                warnings.catch_warnings(action="ignore"),
                np.errstate(all="ignore"),
                contextlib.suppress(SplitError),
            ):
                call(given)
            assert as_bytes(given) == before, (kind, tool, name)
    assert repr(feeds) == fed, name


def with_everything() -> onnx.ModelProto:
    """Unnamed constants and nodes, bodies, functions, defaults, sparse and shared constants."""
    split = linked("Split", "t k", "p q", link("axis", "where"))
    lengths = node("Constant", "", "k", value=tensor("", [2, 2]))
    cut = function("F", "t", "q", [lengths, split], ["where"], opset=13)
    then = graph(
        [
            node("Constant", "", "h", value=tensor("", [2, 2])),
            node("Split", "x h", "a b", axis=-1),
        ],
        outputs=[value("a")],
    )
    other = graph([node("SplitToSequence", "x m", "s"), node("SequenceAt", "s z", "e")], [], ["e"])
    nodes = [
        node("Constant", "", "k", value=tensor("", [2, 2])),
        node("Constant", "", "v", value_ints=[1, 3]),
        node("Split", "x k", "a _", axis=0),
        node("Split", "x d", "b c", axis=1),
        node("If", "t", "y", then_branch=then, else_branch=other),
        node("F", "x", "f", domain="custom", where=1),
        node("F", "x", "g", domain="custom", where=-2),
        node("Softmax", "x", "w", axis=0),
    ]
    inputs = [value("x", FLOAT, [4, "N"]), value("t", BOOL, []), value("d", 7, [2])]
    held = tensor("values", [7], np.float32)
    sparse = onnx.helper.make_sparse_tensor(held, tensor("", [1]), [4])
    constants = [tensor("d", [2, 2]), tensor("m", 2), tensor("z", 0)]
    ends = [value(name) for name in "abcyfgw"]
    made = model(graph(nodes, inputs, ends, constants, [sparse]), 13, [cut], custom=1)
    made.graph.node[2].metadata_props.add(key="k", value="v")
    made.graph.value_info.append(value("f", FLOAT, [4, None]))
    return made


def test_models_with_everything() -> None:
    made = with_everything()
    feeds = {"x": np.arange(16, dtype=np.float32).reshape(4, 4), "t": np.array(True)}
    assert ts.run(made, feeds)["f"].shape == (4, 2)
    check_left(made, feeds, OPSETS, "everything")


def test_random_models(request: pytest.FixtureRequest) -> None:
    first = request.config.getoption("seed")
    for seed in range(first, first + 12):
        random = random_model(seed)
        check_left(random.model, random.feeds, OPSETS[::4], seed)


@pytest.mark.thorough
def test_node_tests(request: pytest.FixtureRequest) -> None:
    """One in 32; ``--seed`` tells which."""
    for case in node_tests()[request.config.getoption("seed") % 32 :: 32]:
        assert case.model is not None
        for inputs, _ in case.data_sets or ():
            fed = zip(case.model.graph.input, map(plain, inputs), strict=False)
            feeds = {entry.name: held for entry, held in fed}
            check_left(case.model, feeds, [6, 12, 17, OPSETS[-1]], case.name)


def plain(entry: Any) -> Any:
    return onnx.numpy_helper.to_array(entry) if isinstance(entry, onnx.TensorProto) else entry


@pytest.mark.engine
@pytest.mark.parametrize("engine", ["onnx-reference", "onnxruntime", "openvino"])
def test_engines(engine: Any) -> None:
    pytest.importorskip(engine.removesuffix("-reference"))
    split = node("Split", "x", "a b", num_outputs=2)
    made = model(graph([split], [value("x", FLOAT, [4])], [value("a"), value("b")]))
    made.ir_version = 10
    feeds = {"x": np.arange(4, dtype=np.float32)}
    for convert in KINDS.values():
        given = convert(made)
        before = as_bytes(given)
        ts.run(given, feeds, engine=engine)
        assert as_bytes(given) == before
    assert feeds["x"].tolist() == [0, 1, 2, 3]


@pytest.mark.engine
def test_the_extensions_of_openvino(tmp_path: Path) -> None:
    openvino = pytest.importorskip("openvino")
    split = node("Split", "x", "a b", num_outputs=2)
    path = tmp_path / "model.onnx"
    onnx.save(model(graph([split], [value("x", FLOAT, [3])], [value("a"), value("b")])), path)
    before, core = path.read_bytes(), openvino.Core()
    for extension in ts.openvino.extensions():
        core.add_extension(extension)
    core.read_model(path)
    assert path.read_bytes() == before


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "tool",
    [
        ts.infer_shapes,
        partial(ts.convert, opset=18),
        partial(ts.convert, opset=None, variadic=True),
        partial(ts.lower, target="onnxruntime"),
    ],
)
def test_what_comes_back_is_no_part_of_what_came_in(
    tool: Callable[[Given], Any], kind: str
) -> None:
    """Not even where there was nothing to do."""
    text = '<ir_version: 10, opset_import: ["": 18]> g (float[4] x) => (float[4] y) {y = Neg(x)}'
    given = KINDS[kind](onnx.parser.parse_model(text))
    before = as_bytes(given)
    made = tool(tool(given))
    made.graph.name = "another"
    next(iter(made.graph if kind != "ModelProto" else made.graph.node)).name = "another"
    assert as_bytes(given) == before
