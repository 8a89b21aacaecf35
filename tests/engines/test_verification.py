"""`verify`: whether another model gives the same outputs, on given and on random inputs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto

import tensorsplit as ts
from tensorsplit.core.errors import INPUT_SHAPE, UNKNOWN_ENGINE, UNSUPPORTED_NODE, SplitError
from tensorsplit.engines import compare, verification
from tensorsplit.engines.compare import Difference, Tolerance
from tensorsplit.engines.sessions import run
from tensorsplit.engines.verification import EngineResult, Verification, reference_run
from tensorsplit.model.reading import read_model
from tests.engines.models import FLOAT, INT64, model, node, split_model, tensor
from tests.model.ir_files import IrFile, named
from tests.refusals import refused


def scaled_part(factor: float, length: int = 4) -> onnx.ModelProto:
    """A model whose output `y` is the first part of `x`, and `z` the second one times a factor."""
    nodes = [
        node("Split", "x", "y part", axis=0, split=[length, 7 - length]),
        node("Mul", "part factor", "z"),
    ]
    outputs = [tensor("y", TensorProto.FLOAT, [length]), tensor("z", TensorProto.FLOAT, None)]
    x = tensor("x", TensorProto.FLOAT, [7])
    return model(nodes, [x], outputs, opset=12, factor=np.array(factor, np.float32))


def custom() -> onnx.ModelProto:
    """A model with a node that our own engine does not know."""
    ends = [[tensor(name, TensorProto.FLOAT, [2])] for name in "xy"]
    made = model([node("Unknown", "x", "y", domain="com.example")], *ends)
    made.opset_import.append(onnx.helper.make_opsetid("com.example", 1))
    return made


def test_a_rewriting_is_verified_bit_for_bit() -> None:
    source = scaled_part(0.3)
    found = ts.verify(source, ts.convert(source, opset=18))
    assert found
    assert found.reference == "tensorsplit"
    assert [(each.engine, each.differences) for each in found.results] == [("tensorsplit", ())]
    np.testing.assert_array_equal(found.outputs["y"], found.inputs["x"][:4])
    assert str(found) == "tensorsplit: the same"
    assert repr(found) == "<Verification equal: tensorsplit: the same>"


def test_other_lengths_are_found() -> None:
    found = ts.verify(scaled_part(0.3), scaled_part(0.3, length=3))
    assert not found
    assert {each.aspect for each in found.results[0].differences} == {"shape"}
    assert "output 'y': shape (3,), but tensorsplit has (4,)" in str(found)
    assert repr(found).startswith("<Verification different: tensorsplit: output 'y'")


@pytest.mark.parametrize(("factor", "is_equal"), [(0.3, True), (0.4, False)])
def test_what_is_rewritten_for_other_sizes_is_verified_at_its_own(
    factor: float, is_equal: bool
) -> None:
    source, made = (read_model(scaled_part(each)) for each in (0.3, factor))
    assert bool(verification.verify_sizes(source, made)) is is_equal


def test_where_no_size_fits_it_is_said_why() -> None:
    nodes = [node("Split", "x split", "a b"), node("Split", "x other", "c d")]
    inputs, outputs = [tensor("x", shape=["N"])], [tensor(name) for name in "abcd"]
    held = model(nodes, inputs, outputs, split=np.array([2, 4]), other=np.array([2, 5]))
    source = read_model(held)
    with refused("TS302", "must be 6 for", "and 7 for", "which no number satisfies"):
        verification.verify_sizes(source, source)


def test_what_is_computed_may_be_rounded_and_what_is_moved_may_not() -> None:
    x = {"x": np.linspace(1, 2, 7, dtype=np.float32)}
    rounded = scaled_part(float(np.nextafter(np.float32(0.3), np.float32(1))))
    found = ts.verify(scaled_part(0.3), rounded, inputs=x)
    assert found
    (difference,) = found.results[0].differences
    assert (difference.output, difference.is_allowed) == ("z", True)
    assert not ts.verify(scaled_part(0.3), scaled_part(0.31), inputs=x)
    assert ts.verify(scaled_part(0.3), scaled_part(0.31), inputs=x, rtol=0.1)
    moved = scaled_part(0.3)
    moved.graph.node.append(node("Mul", "y0 one", "y"))
    moved.graph.node.append(node("Constant", "", "one", value_float=1.00001))
    moved.graph.node[0].output[0] = "y0"
    moved.graph.node.insert(0, moved.graph.node.pop())
    assert not ts.verify(scaled_part(0.3), moved, inputs=x)


def test_models_are_equal_if_they_are_in_every_engine() -> None:
    rounded = Difference("onnxruntime", "tensorsplit", "y", "values", is_allowed=True)
    other = Difference("onnxruntime", "tensorsplit", "z", "values")
    same = EngineResult("tensorsplit", ())
    for differences, is_equal in (((rounded,), True), ((rounded, other), False)):
        results = same, EngineResult("onnxruntime", differences)
        assert bool(Verification("tensorsplit", {}, {}, results)) is is_equal
        assert bool(Verification("tensorsplit", {}, {}, results[::-1])) is is_equal


def test_random_inputs_are_those_of_the_seed() -> None:
    """Which is 0 by default."""
    one = ts.verify(scaled_part(2), scaled_part(2)).inputs["x"]
    again, other = (
        ts.verify(scaled_part(2), scaled_part(2), seed=seed).inputs["x"] for seed in (0, 4)
    )
    np.testing.assert_array_equal(one, again)
    assert (one != other).any()


def test_random_inputs_are_small_and_not_zeros() -> None:
    """Factors of zero would hide what they are multiplied by."""
    nodes = [node("Split", "x", "a b", num_outputs=2), node("Neg", "n", "m")]
    fed = [tensor("x", FLOAT, [500, 2]), tensor("n", INT64, [1000])]
    factors = model(nodes, fed, [tensor("a"), tensor("m", INT64)])
    for values in ts.verify(factors, factors).inputs.values():
        assert 1 <= values.min() < values.max() < 100


def test_a_refusal_of_the_other_model_is_a_difference() -> None:
    wrong = scaled_part(2)
    wrong.graph.node[0].attribute[1].ints[:] = [4, 4]
    found = ts.verify(scaled_part(2), wrong)
    assert not found
    assert [each.aspect for each in found.results[0].differences] == ["refused"]


@pytest.mark.parametrize("engines", ["onnx-reference", "", b"x", 5, ["onnx-reference", 5]])
def test_engines_are_a_list_of_names(engines: Any) -> None:
    with refused("TS703", "such as ['onnxruntime']", parameter="engines"):
        ts.verify(scaled_part(2), scaled_part(2), engines=engines)


@pytest.mark.parametrize("inputs", [0, True, 2.5, "x", b"x", [], [("x", 5)]])
def test_inputs_are_a_mapping(inputs: Any) -> None:
    with refused("TS703", "give a mapping from input names to arrays", parameter="inputs"):
        ts.verify(scaled_part(2), scaled_part(2), inputs=inputs)


def test_a_seed_is_an_integer_from_0_on() -> None:
    endless: list[Any] = []
    endless.append(endless)
    wrong: list[Any] = [-1, -(10**30), 2.0, True, None, "1", [1, 2], [2.5], np.array([1, 2])]
    for seed in (*wrong, endless):
        with refused("TS703", "give an integer from 0 on", parameter="seed"):
            ts.verify(scaled_part(2), scaled_part(2), seed=seed)
    right: Any
    for right in (np.int64(3), 10**30):
        assert ts.verify(scaled_part(2), scaled_part(2), seed=right)


@pytest.mark.parametrize("name", ["rtol", "atol"])
def test_a_tolerance_is_a_number_from_0_on(name: str) -> None:
    wrong = [-1e-9, float("nan"), float("inf"), 10**400, True, "1", [0.1], 1j, np.array([0.1])]
    for given in wrong:
        with refused("TS703", "give a number from 0 on", parameter=name):
            ts.verify(scaled_part(2), scaled_part(2), **{name: given})  # type: ignore[arg-type]
    right = [0, 0.5, np.float32(0.5), np.int64(1)]
    assert all(ts.verify(scaled_part(2), scaled_part(2), **{name: each}) for each in right)  # type: ignore[arg-type]


def test_what_can_not_be_fed_is_refused() -> None:
    with pytest.raises(SplitError) as caught:
        ts.verify(scaled_part(2), scaled_part(2), inputs={"x": np.ones(6, np.float32)})
    assert caught.value.code == INPUT_SHAPE.code
    with pytest.raises(SplitError) as caught:
        ts.verify(scaled_part(2), scaled_part(2), engines=["onnxrumtime"])  # type: ignore[list-item]
    assert caught.value.code == UNKNOWN_ENGINE.code


@pytest.mark.engine
@pytest.mark.parametrize("engine", ["onnxruntime", "openvino"])
def test_other_engines_run_both_models(engine: Any) -> None:
    pytest.importorskip(engine)
    found = ts.verify(scaled_part(2), scaled_part(3), engines=[engine])
    assert [each.engine for each in found.results] == ["tensorsplit", engine]
    ours, others = found.results
    assert not ours.is_equal
    assert not others.is_equal
    assert not others.before


def test_a_model_that_is_refused_is_not_run_elsewhere() -> None:
    source = read_model(split_model(3, 4))
    with refused("TS302"):
        reference_run(source, {"x": np.ones(6, np.float32)}, ["no such engine"], Tolerance(), {})
    unknown = read_model(custom())
    with refused(UNSUPPORTED_NODE.code):
        reference_run(unknown, {"x": np.ones(2, np.float32)}, [], Tolerance(), {})
    with refused(UNKNOWN_ENGINE.code):
        reference_run(unknown, {"x": np.ones(2, np.float32)}, ["no such engine"], Tolerance(), {})


def test_the_first_other_engine_is_the_reference_where_ours_knows_no_operator(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """And only it runs the other model: ours would not. Each run has the limits."""
    given = list[dict[str, Any]]()

    def instead(model: Any, inputs: Any, *, engine: str = "tensorsplit", **limits: Any) -> Any:
        given.append(limits)
        return {"y": inputs["x"]} if engine != "tensorsplit" else run(model, inputs)

    for module in (verification, compare):
        monkeypatch.setattr(module, "run", instead)
    x = {"x": np.ones(2, np.float32)}
    found = ts.verify(custom(), custom(), inputs=x, engines=["onnx-reference"], timeout=60)
    assert found
    assert {limits.get("timeout") for limits in given} == {60}
    assert [each.engine for each in found.results] == ["onnx-reference"]
    assert found.reference == "onnx-reference"
    assert found.refusal is not None
    assert found.refusal.code == UNSUPPORTED_NODE.code
    assert str(found).startswith("tensorsplit does not run it: ")


def test_the_reference_of_an_ir_that_ours_does_not_know_is_openvino(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def instead(model: Any, inputs: Any, *, engine: str = "tensorsplit") -> Any:
        return {"y": inputs["x"]} if engine == "openvino" else run(model, inputs)

    monkeypatch.setattr(verification, "run", instead)
    ir, x = IrFile(), {"x": np.ones(2, np.float32)}
    ir.result(ir.layer("Unknown", (ir.parameter("x", "f32", "2", "x"),), 1, names=["y"])[0])
    source = read_model(ir.save(tmp_path))
    found, _ = reference_run(source, x, ["onnx-reference", "openvino"], Tolerance(), {})
    assert found.engine == "openvino"
    with refused(UNSUPPORTED_NODE.code):
        reference_run(source, x, ["onnx-reference"], Tolerance(), {})


@pytest.mark.engine("openvino")
@pytest.mark.filterwarnings("ignore:.*cut to 32 bits:tensorsplit.SplitWarning")
@pytest.mark.parametrize("is_guarded", [False, True])
def test_a_rewriting_that_only_openvino_runs_is_not_run_here(
    is_guarded: bool, tmp_path: Path
) -> None:
    """`lower` has an IR check lengths that come from an input, by layers that ours does not run."""
    ir = IrFile()
    x, lengths = ir.parameter("x", "f32", "7", "x"), ir.parameter("n", "i64", "2", "n")
    for part in ir.variadic_split(x, ir.int64(0, scalar=True), lengths, 2, ["y", "z"]):
        ir.result(part)
    source = ir.save(tmp_path, named(ir))
    made = source
    if is_guarded:
        made = tmp_path / "guarded.xml"
        ts.lower(source, target="openvino").save(made)
    given = {"x": np.arange(1, 8, dtype=np.float32), "n": np.array([4, 3])}
    found = ts.verify(source, made, inputs=given, engines=["openvino"])
    assert found
    assert found.reference == "tensorsplit"
    ran = ["openvino"] if is_guarded else ["tensorsplit", "openvino"]
    assert [each.engine for each in found.results] == ran
    assert (found.refusal is not None) == is_guarded


@pytest.mark.parametrize("is_ir", [False, True])
def test_the_same_model_in_another_engine_is_compared_beside_the_other_one(
    is_ir: bool, tmp_path: Path
) -> None:
    """Where that can read it: of all engines OpenVINO alone reads an IR."""
    ir = IrFile()
    x = ir.parameter("x", "f32", "7", "x")
    parts = ir.variadic_split(x, ir.int64(0, scalar=True), ir.int64(4, 3), 2, ["y", "z"])
    for part in parts:
        ir.result(part)
    source = ir.save(tmp_path, named(ir)) if is_ir else scaled_part(0.3)
    found = ts.verify(source, scaled_part(0.4), engines=["onnx-reference"])
    assert [each.engine for each in found.results] == ["tensorsplit", "onnx-reference"]
    assert not any(each.is_equal for each in found.results)
    assert found.results[1].before == ()
    assert found.refusal is None
    assert found.missing == ()


def test_random_inputs_that_fit_nothing_are_refused() -> None:
    with refused("TS302"):
        ts.verify(split_model(3, 4), split_model(3, 4))
