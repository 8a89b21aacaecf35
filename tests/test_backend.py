"""ONNX's own backend tests, run by ONNX's own runner against our backend."""

from __future__ import annotations

import unittest
import warnings
from collections.abc import Iterator
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from onnx.backend.base import BackendRep
from onnx.backend.test.loader import load_model_tests
from onnx.backend.test.runner import Runner

import tensorsplit
from tensorsplit import SplitError, backend
from tests.model.ir_files import cut_file
from tests.refusals import refused

_FAMILY = {"Split", "SplitToSequence"}
_KINDS = ("node", "simple", "pytorch-operator", "pytorch-converted")


def _nodes(graph: Any) -> Iterator[onnx.NodeProto]:
    for node in graph.node:
        yield node
        for attribute in node.attribute:
            yield from _nodes(attribute.g)


def _is_of_the_family(model: onnx.ModelProto) -> bool:
    graphs = (model.graph, *model.functions)
    return any(node.op_type in _FAMILY for graph in graphs for node in _nodes(graph))


@pytest.fixture(scope="module")
def family() -> set[str]:
    """The names of the cases whose model has a node of the family, in bodies and functions too."""
    found = set()
    for kind in _KINDS:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the cases' own arithmetic
            cases = load_model_tests(kind=kind)
        for case in cases:  # onnx before 1.21 keeps the cases of operators on disk too
            model = case.model or onnx.load(Path(case.model_dir or "") / "model.onnx")
            if _is_of_the_family(model):
                found.add(case.name)
    return found


def _run(tested: Any, names: set[str]) -> dict[str, str]:
    """Run cases by ONNX's runner; what became of each."""
    runner = Runner(tested, __name__)
    runner.include(f"^({'|'.join(sorted(names))})_cpu$")
    told = {}
    for case in _cases(runner.test_suite):
        name = case.id().rpartition(".")[2].removesuffix("_cpu")
        if name in names:
            result = unittest.TestResult()
            case.run(result)
            wrong = [text.splitlines()[-1] for _, text in (*result.errors, *result.failures)]
            skipped = [f"skipped: {text}" for _, text in result.skipped]
            told[name] = "; ".join(wrong + skipped) or "passed"
    return told


def _cases(suite: unittest.TestSuite) -> Iterator[unittest.TestCase]:
    for entry in suite:
        if isinstance(entry, unittest.TestSuite):
            yield from _cases(entry)
        else:
            yield entry


def test_every_case_of_the_family_runs_and_passes(family: set[str]) -> None:
    """37 in onnx 1.23: 19 of the operators' own, 12 of functions that use them, 6 others."""
    assert {name for name in family if name.startswith("test_split_")} >= {
        "test_split_2d_uneven_split_opset18",
        "test_split_variable_parts_2d_opset13",
        "test_split_zero_size_splits_opset13",
        "test_split_to_sequence_1",
        "test_split_to_sequence_2",
        "test_split_to_sequence_nokeepdims",
    }
    assert len(family) >= 28
    assert _run(backend, family) == dict.fromkeys(family, "passed")


def test_a_wrong_backend_fails(family: set[str]) -> None:
    """Each case compares what comes out: a backend that swaps or changes it passes none."""

    class Wrong(tensorsplit.backend.TensorSplitBackend):
        @classmethod
        def prepare(cls, model: Any, device: str = "CPU", **kwargs: Any) -> Any:
            right = super().prepare(model, device, **kwargs)

            class Rep(BackendRep):
                def run(self, inputs: Any, **_kwargs: Any) -> tuple[Any, ...]:
                    return tuple(_spoilt(output) for output in right.run(inputs))

            return Rep()

    told = _run(Wrong, family)
    assert set(told) == family
    assert [name for name, outcome in told.items() if outcome == "passed"] == []


def _spoilt(output: Any) -> Any:
    if isinstance(output, list):
        return [_spoilt(part) for part in output]
    return np.concatenate([output.reshape(-1), np.ones(1, output.dtype)])


X = np.array([3.0, -1.0, 4.0, 1.5, -9.0, 2.5], np.float32)


def split_model(*, overridable: bool = False) -> onnx.ModelProto:
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, [6])]
    if overridable:
        inputs.append(helper.make_tensor_value_info("split", TensorProto.INT64, [2]))
    graph = helper.make_graph(
        [helper.make_node("Split", ["x", "split"], ["a", "b"])],
        "g",
        inputs,
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in ("a", "b")],
        initializer=[helper.make_tensor("split", TensorProto.INT64, [2], [2, 4])],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)])


@pytest.mark.parametrize("tested", [backend, backend.TensorSplitBackend])
def test_the_module_and_the_class_are_backends(tested: Any) -> None:
    assert tested.supports_device("CPU")
    assert tested.is_compatible(split_model())
    a, b = tested.prepare(split_model()).run([X])
    np.testing.assert_array_equal(a, X[:2])
    np.testing.assert_array_equal(b, X[2:])
    outputs = tested.run_model(split_model(), {"x": X})
    np.testing.assert_array_equal(outputs["b"], X[2:])
    np.testing.assert_array_equal(outputs.a, X[:2])


@pytest.mark.parametrize(
    ("device", "supported"),
    [("CPU", True), ("CPU:0", True), ("CUDA", False), ("TPU", False), ("CPU:x", False)],
)
def test_only_the_cpu_is_supported(device: str, supported: bool) -> None:
    assert backend.supports_device(device) is supported
    if supported:
        assert backend.run_model(split_model(), [X], device)[0].shape == (2,)
    else:
        with pytest.raises(SplitError, match="'CPU'"):
            backend.prepare(split_model(), device)
        with pytest.raises(SplitError, match="'CPU'"):
            backend.run_model(split_model(), [X], device)


def test_a_default_may_be_left_out_or_overridden() -> None:
    ready = backend.prepare(split_model(overridable=True))
    assert ready.run([X])[0].shape == (2,)
    assert ready.run([X, np.array([5, 1])])[0].shape == (5,)
    assert ready.run([X])[0].shape == (2,)
    with pytest.raises(SplitError, match="TS302"):
        ready.run([X, np.array([5, 2])])
    with pytest.raises(SplitError, match=r"TS506.* it is 3 inputs; give 2: 'x', 'split'"):
        ready.run([X, np.array([5, 1]), X])


def test_what_is_prepared_is_compiled_once(monkeypatch: pytest.MonkeyPatch) -> None:
    ready = backend.prepare(split_model())
    monkeypatch.delattr("tensorsplit.model.run.evaluator.compile_model")
    for _ in range(2):
        assert [part.shape for part in ready.run([X])] == [(2,), (4,)]


def test_an_openvino_ir_runs(tmp_path: Path) -> None:
    outputs = backend.prepare(cut_file().save(tmp_path)).run([np.zeros((6, 8), np.float32)])
    assert [part.shape for part in outputs] == [(2, 8), (4, 8)]


def test_a_wrong_split_node_is_refused() -> None:
    """D5: onnx's checker ends the process on such nodes, so it must not see them."""
    graph = helper.make_graph(
        [helper.make_node("Split", ["x"], ["a", "b", "c"], num_outputs=2)],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [6])],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in "abc"],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)])
    with pytest.raises(SplitError, match="TS305"):
        backend.run_model(model, [X])


@pytest.mark.parametrize(
    ("inputs", "code"),
    [([], "TS505"), ([X, X], "TS506"), ({"y": X}, "TS506"), (X, "TS703"), (None, "TS703")],
)
def test_wrong_inputs_are_refused(inputs: Any, code: str) -> None:
    with pytest.raises(SplitError, match=code):
        backend.run_model(split_model(), inputs)


def run_split(opset: int | None, inputs: Any, outputs: str, **attributes: Any) -> Any:
    names = ["x", "split"][: len(inputs)]
    kwargs: dict[str, Any] = {} if opset is None else {"opset_version": opset}
    node = helper.make_node("Split", names, outputs.split(), **attributes)
    return backend.run_node(node, inputs, **kwargs)


def test_a_node_runs_at_the_opset_that_is_asked_for() -> None:
    assert [part.size for part in run_split(11, [X], "a b", split=[1, 5])] == [1, 5]
    assert [part.size for part in run_split(13, [X, np.array([1, 5])], "a b")] == [1, 5]
    assert [part.size for part in run_split(18, [X], "a b c d", num_outputs=4)] == [2, 2, 2, 0]
    assert [part.size for part in run_split(None, [X], "a b", num_outputs=2)] == [3, 3]
    with pytest.raises(SplitError, match="TS303"):
        run_split(13, [X[:5]], "a b")
    with pytest.raises(SplitError, match="TS103"):
        run_split(18, [X], "a b", split=[1, 5])


def test_nodes_with_sequences_and_empty_optionals_run() -> None:
    node = helper.make_node("SplitToSequence", ["x"], ["s"], keepdims=0)
    (parts,) = backend.run_node(node, [X[:2]])
    assert [part.tolist() for part in parts] == [3.0, -1.0]
    node = helper.make_node("SequenceLength", ["s"], ["n"])
    assert backend.run_node(node, [[X, X]])[0] == 2
    assert backend.run_node(node, [(X, X, X)])[0] == 3
    node = helper.make_node("OptionalHasElement", ["o"], ["has"])
    assert not backend.run_node(node, [None])[0]
    node = helper.make_node("Add", ["x", "x"], ["y"])
    assert backend.run_node(node, MappingProxyType({"x": X}))[0].tolist() == (X + X).tolist()


@pytest.mark.parametrize(
    ("domain", "imported"), [("", {"": 13}), ("ai.onnx", {"": 13}), ("own", {"": 13, "own": 1})]
)
def test_the_domain_of_a_node_is_imported(domain: str, imported: dict[str, int]) -> None:
    node = helper.make_node("Split", ["x"], ["a", "b"], domain=domain)
    made = backend._model_of(node, 13, {"x": X})
    assert {each.domain: each.version for each in made.opset_import} == imported


@pytest.mark.parametrize(("ours", "of_onnx"), [(18, 21), (21, 18), (18, 18)])
def test_the_newest_opset_is_one_that_both_we_and_onnx_know(
    monkeypatch: pytest.MonkeyPatch, ours: int, of_onnx: int
) -> None:
    monkeypatch.setattr(backend, "NEWEST_OPSET", ours)
    monkeypatch.setattr(onnx.defs, "onnx_opset_version", lambda: of_onnx)
    models = list[onnx.ModelProto]()
    run_model = backend.TensorSplitBackend.run_model

    def noting(model: onnx.ModelProto, *given: Any, **named: Any) -> Any:
        models.append(model)
        return run_model(model, *given, **named)

    monkeypatch.setattr(backend.TensorSplitBackend, "run_model", noting)
    run_split(None, [X], "a b", num_outputs=2)
    assert models[0].opset_import[0].version == 18


def test_names_that_a_node_leaves_out_are_left_out() -> None:
    node = helper.make_node("Clip", ["x", "", "most"], ["y"])
    (clipped,) = backend.run_node(node, [X, np.float32(2)])
    assert clipped.tolist() == [2.0, -1.0, 2.0, 1.5, -9.0, 2.0]
    node = helper.make_node("TopK", ["x", "k"], ["", "places"])
    outputs: Any = backend.run_node(node, [X, np.array([2])])
    assert outputs._fields == ("places",)
    assert outputs.places.tolist() == [2, 0]


@pytest.mark.parametrize("node", [None, 5, "Split", b"", [], split_model()])
def test_what_is_no_node_is_refused(node: Any) -> None:
    with refused("TS703", "give an onnx.NodeProto", parameter="node"):
        backend.run_node(node, [X])


@pytest.mark.parametrize("kind", ["g", "M8[s]", "m8[s]", "V3", [("a", "i4")]])
def test_elements_that_onnx_does_not_have_are_refused(kind: Any) -> None:
    with refused("TS508", "which ONNX does not have", parameter="x"):
        run_split(18, [np.zeros(6, kind)], "a b", num_outputs=2)


def test_names_of_inputs_are_strings() -> None:
    with refused("TS506", "no input 2", parameter="inputs"):
        backend.run_node(helper.make_node("Neg", ["x"], ["y"]), {2: X})


@pytest.mark.parametrize("opset", ["13", 13.0, True, 0, -1, 10**6, 2**63, -(2**63)])
def test_an_opset_that_there_is_not_is_refused(opset: Any) -> None:
    with pytest.raises(SplitError, match=r"opset|version"):
        run_split(opset, [X], "a b", num_outputs=2)
