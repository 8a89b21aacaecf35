"""Layers of PyTorch: each is one call, in whatever way a module is run, traced or exported."""

from __future__ import annotations

import copy
import pickle
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tensorsplit as ts
from tests.interpreters import printed
from tests.refusals import refused

torch = pytest.importorskip("torch")
nn: Any = torch.nn
layers: Any = ts.torch
"""Whatever is given: wrong arguments, too."""

X = torch.arange(28.0).reshape(4, 7).sin()
PLAN = ts.plan("VariadicSplit", (4, 7), axis=1, split_lengths=[-1, 5])
NAMED = ts.plan("onnx.Split-18", ("N", 7), {"a": 2, "b": 5}, axis=1)
ROWS = ts.plan("onnx.SplitToSequence-24", (4, 7), keepdims=0)

LAYERS: dict[str, tuple[Callable[[], Any], Callable[[], Any], list[Any]]] = {
    "lengths": (
        lambda: layers.Split([2, 5], axis=1),
        lambda: layers.Join(axis=1),
        [X[:, :2], X[:, 2:]],
    ),
    "lengths of NumPy": (
        lambda: layers.Split(np.array([2, 5]), np.int64(-1)),
        lambda: layers.Join(axis=np.int64(-1)),
        [X[:, :2], X[:, 2:]],
    ),
    "a number of parts": (
        lambda: layers.Split(num_outputs=np.int64(2), axis=1),
        lambda: layers.Join(axis=1),
        [X[:, :4], X[:, 4:]],
    ),
    "an older version": (
        lambda: layers.Split(num_outputs=2, opset=11),
        layers.Join,
        [X[:2], X[2:]],
    ),
    "a plan": (
        lambda: layers.Split(PLAN),
        lambda: layers.Join(PLAN),
        [X[:, :2], X[:, 2:]],
    ),
    "a plan that drops the axis": (
        lambda: layers.Split(ROWS),
        lambda: layers.Join(ROWS),
        [X[0], X[1], X[2], X[3]],
    ),
    "dropped without a plan": (
        lambda: layers.Split(ROWS),
        lambda: layers.Join(axis=0, keepdims=np.False_),
        [X[0], X[1], X[2], X[3]],
    ),
}
NAMES: dict[str, Callable[[], Any]] = {
    "names": lambda: layers.Split({"a": 2, "b": 5}, axis=1),
    "a plan with names": lambda: layers.Split(NAMED),
}


def check(parts: Any, want: list[Any]) -> None:
    assert type(parts) is tuple
    assert len(parts) == len(want)
    assert all(torch.equal(part, each) for part, each in zip(parts, want, strict=True))


def compiled(module: Any, **options: Any) -> Any:
    torch.compiler.reset()
    return torch.compile(module, fullgraph=True, backend="eager", **options)


def traced(module: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return torch.jit.trace(module, (X,))


def exported(module: Any, strict: bool) -> Any:
    return torch.export.export(module, (X,), strict=strict).module()


WAYS: dict[str, Callable[[Any], Any]] = {
    "called": lambda module: module,
    "copied": copy.deepcopy,
    "pickled": lambda module: pickle.loads(pickle.dumps(module)),
    "compiled": compiled,
    "compiled for all sizes": lambda module: compiled(module, dynamic=True),
    "traced": traced,
    "exported": lambda module: exported(module, strict=False),
    "exported by Dynamo": lambda module: exported(module, strict=True),
    "in a graph of fx": lambda module: torch.fx.symbolic_trace(nn.Sequential(module)),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", LAYERS)
def test_the_parts_and_the_way_back(name: str, way: str) -> None:
    make, back, want = LAYERS[name]
    check(WAYS[way](make())(X), want)
    assert torch.equal(WAYS[way](nn.Sequential(make(), back()))(X), X)


@pytest.mark.parametrize("way", [way for way in WAYS if way != "traced"])
@pytest.mark.parametrize("name", NAMES)
def test_parts_with_names(name: str, way: str) -> None:
    parts = WAYS[way](NAMES[name]())(X)
    assert list(parts) == ["a", "b"]
    check(tuple(parts.values()), [X[:, :2], X[:, 2:]])
    back = layers.Join(NAMED)
    assert torch.equal(back({"b": parts["b"], "a": parts["a"]}), X)


class Rotated(nn.Module):  # type: ignore[misc]
    def __init__(self) -> None:
        super().__init__()
        self.split, self.join = layers.Split([2, 5], axis=1), layers.Join(axis=1)
        self.named = layers.Join(ts.plan("Split", (4, 7), {"b": 5, "a": 2}, axis=1))

    def forward(self, x: Any) -> Any:
        a, b = self.split(x)
        return self.join([b, a]), self.named({"a": a, "b": b})


def test_a_layer_is_a_leaf_of_fx() -> None:
    graph = torch.fx.symbolic_trace(Rotated())
    calls = [node.target for node in graph.graph.nodes if node.op == "call_module"]
    assert calls == ["split", "join", "named"]
    want = torch.cat([X[:, 2:], X[:, :2]], 1)
    for again in (
        graph,
        copy.deepcopy(graph),
        torch.fx.Transformer(graph).transform(),
    ):
        assert all(torch.equal(whole, want) for whole in again(X))
    with refused("TS204", "`tensorsplit.torch.Split`"):
        torch.fx.symbolic_trace(lambda x: ts.split(x, [2, 5], axis=1)[0])


@pytest.mark.parametrize("layer", [layers.Split([2, 5], axis=1), layers.Join(axis=1)])
def test_a_layer_alone_is_not_traced_by_fx(layer: Any) -> None:
    with refused("TS703", "a Sequential"):
        torch.fx.symbolic_trace(layer, {"parts": [torch.fx.PH, torch.fx.PH]})


@pytest.mark.parametrize("layer", [layers.Split([2, 5], axis=1), layers.Join(axis=1)])
def test_a_layer_is_not_scripted(layer: Any) -> None:
    for module in (layer, nn.Sequential(nn.Linear(7, 7), layer)):
        with refused("TS703", "use torch.jit.trace"):
            torch.jit.script(module)


@pytest.mark.parametrize(
    ("name", "dynamo"),
    [("a plan", True), ("lengths", False), ("a number of parts", False), ("a plan", False)],
)
def test_each_layer_is_one_node_of_onnx(name: str, dynamo: bool, tmp_path: Path) -> None:
    onnx = pytest.importorskip("onnx")
    if dynamo:
        pytest.importorskip("onnxscript")
    make, back, _ = LAYERS[name]
    module, file = nn.Sequential(make(), back()), str(tmp_path / "model.onnx")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(module, (X,), file, dynamo=dynamo, opset_version=18, verbose=False)
    model = onnx.load(file)
    kinds = [node.op_type for node in model.graph.node if node.op_type != "Constant"]
    assert kinds == ["Split", "Concat"]
    (whole,) = ts.run(model, {model.graph.input[0].name: X.numpy()}).values()
    assert np.array_equal(whole, X.numpy())


def test_gradients_flow_and_there_is_no_state() -> None:
    layer = nn.Sequential(layers.Split([2, 5], axis=1), layers.Join(axis=1))
    assert not layer.state_dict()
    assert not list(layer.parameters())
    x = X.clone().requires_grad_()
    (layer(x) ** 2).sum().backward()
    assert torch.equal(x.grad, 2 * X)


def test_the_lengths_are_those_of_when_it_was_made() -> None:
    lengths = [2, 5]
    layer = layers.Split(lengths, axis=1)
    lengths[:] = [3, 4]
    check(layer(X), [X[:, :2], X[:, 2:]])


@pytest.mark.parametrize(
    ("layer", "text"),
    [
        (lambda: layers.Split([2, 5], axis=1), "Split(split=(2, 5), axis=1)"),
        (lambda: layers.Split(num_outputs=3, opset=11), "Split(num_outputs=3, opset=11)"),
        (lambda: layers.Split({"a": 2}), "Split(split={'a': 2})"),
        (lambda: layers.Join(axis=1, keepdims=0), "Join(axis=1, keepdims=0)"),
        (
            lambda: layers.Join(PLAN),
            f"Join({PLAN!r})",
        ),
    ],
)
def test_a_person_can_read_what_a_layer_is(layer: Callable[[], Any], text: str) -> None:
    assert repr(layer()) == text


@pytest.mark.parametrize(
    ("code", "words", "make"),
    [
        ("TS101", "opset", lambda: layers.Split([2, 5], opset=0)),
        ("TS104", "no lengths", layers.Split),
        ("TS105", "double", lambda: layers.Split(np.array([2.5, 4.5]))),
        ("TS105", "axis", lambda: layers.Split([2, 5], axis=1.5)),
        ("TS106", "rank 0", lambda: layers.Split(2)),
        ("TS301", "-1", lambda: layers.Split([-1, 8], axis=1)(X)),
        ("TS316", "not a string", lambda: layers.Split({1: 2})),
        ("TS305", "no lengths are given", lambda: layers.Split({})),
        ("TS305", "no lengths are given", lambda: layers.Split([], axis=-1)),
        ("TS301", "below 0", lambda: layers.Split([2, -1], opset=11)),
        ("TS107", "0 parts", lambda: layers.Split(num_outputs=0)),
        ("TS703", "a plan and other", lambda: layers.Split(PLAN, axis=1)),
        ("TS703", "a plan and other", lambda: layers.Split(PLAN, num_outputs=2)),
        ("TS703", "a plan and other", lambda: layers.Split(PLAN, opset=11)),
        ("TS703", "a plan and other", lambda: layers.Join(PLAN, keepdims=0)),
        ("TS703", "a plan and other", lambda: layers.Join(PLAN, axis=1)),
        ("TS105", "give a plan", lambda: layers.Join(1)),
        ("TS105", "axis", lambda: layers.Join(axis="1")),
        ("TS107", "keepdims", lambda: layers.Join(keepdims=2)),
        ("TS302", "sums to 6", lambda: layers.Split([2, 4], axis=1)(X)),
        ("TS206", "plan is for", lambda: layers.Split(PLAN)(X[1:])),
        ("TS311", "1 part given", lambda: layers.Join(PLAN)([X])),
        ("TS204", "type int", lambda: layers.Split([2, 5])(3)),
        ("TS311", "type int", lambda: layers.Join()(3)),
        ("TS311", "type generator", lambda: layers.Join()(pytest.fail("iterated") for _ in "a")),
    ],
)
def test_what_is_refused(code: str, words: str, make: Callable[[], Any]) -> None:
    with refused(code, words):
        make()


def test_nothing_of_torch_is_loaded_before_a_layer_is_named() -> None:
    code = "import sys, tensorsplit as ts; print(dir(ts.torch), 'torch' in sys.modules)"
    assert printed(code).split("\n")[0] == "['Join', 'Split'] False"


WITHOUT = """
import sys
sys.modules["torch"] = None
import tensorsplit as ts
print(hasattr(ts.torch, "Split"), hasattr(ts.torch, "Linear"))
try:
    ts.torch.Split([1, 2])
except ts.SplitError as error:
    print(error)
"""


def test_without_torch_a_layer_says_what_to_install() -> None:
    said = printed(WITHOUT).split("\n")
    assert said[0] == "True False"
    assert said[1].startswith("[TS711] torch is not installed; pip install ")
    assert said[1].endswith("[torch]'")
