"""OpenVINO runs what it can; where it is right, reading IR ourselves gives the same bits."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from onnx import TensorProto
from onnx.parser import parse_model

import tensorsplit as ts
from tensorsplit.engines.adapters import run_openvino
from tensorsplit.engines.process import EngineProcess, process_of
from tests.engines.models import model, node, split_model, tensor
from tests.model.ir_files import X, words
from tests.refusals import refused

pytestmark = pytest.mark.engine
ov = pytest.importorskip("openvino")

EXACT = {
    "boolean": np.bool_,
    "bf16": ml_dtypes.bfloat16,
    "f16": np.float16,
    "f32": np.float32,
    "f8e4m3": ml_dtypes.float8_e4m3fn,
    "f8e5m2": ml_dtypes.float8_e5m2,
    "f8e8m0": ml_dtypes.float8_e8m0fnu,
    "i4": ml_dtypes.int4,
    "i8": np.int8,
    "i16": np.int16,
    "i32": np.int32,
    "u4": ml_dtypes.uint4,
    "u8": np.uint8,
    "u16": np.uint16,
    "u32": np.uint32,
}
"""The types that OpenVINO itself splits exactly, whatever the values."""


def both(path: Path, **inputs: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    return ts.run(path, inputs), ts.run(path, inputs, engine="openvino")


def assert_same(ours: dict[str, Any], theirs: dict[str, Any]) -> None:
    assert list(ours) == list(theirs)
    for name, array in ours.items():
        assert theirs[name].dtype == array.dtype
        assert theirs[name].shape == array.shape
        assert theirs[name].tobytes() == array.tobytes()


def random_elements(element: str, count: int) -> Any:
    size = count * np.dtype(EXACT[element]).itemsize
    octets = np.random.default_rng(3).integers(0, 256, size, np.uint8)
    if element == "boolean":
        return (octets & 1).view(np.bool_)
    if element == "u4":
        return (octets & 15).astype(EXACT[element])
    if element == "i4":
        return ((octets & 15).astype(np.int8) - 8).astype(EXACT[element])
    return octets.view(EXACT[element])


def save(folder: Path, outputs: list[Any], parameters: list[Any], **options: Any) -> Path:
    """An IR file as OpenVINO writes it."""
    from openvino import op

    path = folder / "model.xml"
    ir = ov.Model([op.Result(output) for output in outputs], parameters, "m")
    ov.save_model(ir, path, compress_to_fp16=False) if options else ov.serialize(ir, path)
    return path


def parameter(name: str, element: str, shape: Any) -> Any:
    made = ov.op.Parameter(getattr(ov.Type, element), ov.PartialShape(shape))
    made.set_friendly_name(name)
    return made


def constant(element: str, shape: list[int], data: bytes) -> Any:
    held = ov.Tensor(getattr(ov.Type, element), ov.Shape(shape))
    held.data.reshape(-1).view(np.uint8)[:] = np.frombuffer(data, np.uint8)
    return ov.op.Constant(held)


def int64(*values: int, scalar: bool = False) -> Any:
    return ov.op.Constant(ov.Type.i64, ov.Shape([] if scalar else [len(values)]), list(values))


def cut(data: Any, *lengths: int, axis: int = 0) -> Any:
    made = ov.opset1.variadic_split(data, int64(axis, scalar=True), int64(*lengths))
    made.set_friendly_name("cut")
    return made


@pytest.mark.parametrize("element", EXACT)
def test_inputs_of_every_type_come_out_the_same(tmp_path: Path, element: str) -> None:
    x = parameter("x", element, [6])
    path = save(tmp_path, cut(x, 4, -1).outputs(), [x])
    data = random_elements(element, 6)
    ours, theirs = both(path, x=data)
    assert [part.tobytes() for part in ours.values()] == [data[:4].tobytes(), data[4:].tobytes()]
    assert_same(ours, theirs)


INEXACT = {"u32": np.uint32, "i64": np.int64, "u64": np.uint64, "f64": np.float64}
"""The types of which OpenVINO changes large values when they are constants (D16)."""


@pytest.mark.parametrize("element", sorted({*EXACT, *INEXACT} - {"i4", "u4"}))
def test_constants_of_every_type_come_out_the_same(tmp_path: Path, element: str) -> None:
    if element in INEXACT:
        data = np.arange(1, 13).astype(INEXACT[element]).view(np.uint8)
    else:
        size = 12 * np.dtype(EXACT[element]).itemsize
        data = np.random.default_rng(5).integers(0, 256, size, np.uint8)
    held = constant(element, [4, 3], (data & 1 if element == "boolean" else data).tobytes())
    path = save(tmp_path, [held.output(0), *cut(held, 2, 2).outputs()], [])
    ours, theirs = both(path)
    assert_same(ours, theirs)
    whole, top, bottom = ours.values()
    assert [top.tolist(), bottom.tolist()] == [whole[:2].tolist(), whole[2:].tolist()]


def elements_of_any(element: str, count: int) -> Any:
    """Random elements that OpenVINO gives as they are: of large types, small numbers."""
    if element not in INEXACT:
        return random_elements(element, count)
    return np.random.default_rng(8).integers(1, 100, count).astype(INEXACT[element])


@pytest.mark.parametrize("element", sorted({*EXACT, *INEXACT}))
@pytest.mark.parametrize("lengths", ["constant", "fed"])
def test_an_ir_of_version_10_gives_and_takes_the_types_that_it_declares(
    tmp_path: Path, element: str, lengths: str
) -> None:
    x, n = parameter("x", element, [6]), parameter("n", "i64", [2])
    given = n if lengths == "fed" else int64(4, 2)
    made = ov.opset1.variadic_split(x, int64(0, scalar=True), given)
    results = [ov.op.Result(output) for output in made.outputs()]
    path = tmp_path / "model.xml"
    ov.serialize(ov.Model(results, [x, n][: 1 + (lengths == "fed")], "m"), path, version="IR_V10")
    data = elements_of_any(element, 6)
    feeds = {"x": data, "n": np.array([4, 2])} if lengths == "fed" else {"x": data}
    for is_lowered in (False, True):
        with ts.session(path, engine="openvino", lower=is_lowered) as session:
            parts = [*session.run(feeds).values()]
        assert [part.dtype for part in parts] == [data.dtype] * 2
        assert [part.tobytes() for part in parts] == [data[:4].tobytes(), data[4:].tobytes()]


@pytest.mark.parametrize("version", ["IR_V10", "IR_V11"])
def test_an_ir_is_run_as_bytes_beside_its_weights(tmp_path: Path, version: str) -> None:
    x = parameter("x", "f32", [6])
    made = ov.opset1.add(x, ov.opset1.constant(np.arange(6, dtype=np.float32)))
    path = tmp_path / "model.xml"
    ov.serialize(ov.Model([ov.op.Result(made.output(0))], [x], "m"), path, version=version)
    data = elements_of_any("f32", 6)
    given = path.read_bytes(), path.with_suffix(".bin").read_bytes()
    found = run_openvino(*given, {"x": data}, ["y"])
    np.testing.assert_array_equal(found["y"], data + np.arange(6, dtype=np.float32), strict=True)


@pytest.mark.parametrize("is_lowered", [False, True])
def test_an_ir_of_version_10_keeps_its_constants_and_strings(
    tmp_path: Path, *, is_lowered: bool
) -> None:
    data = random_elements("f16", 6)
    held, texts = constant("f16", [6], data.tobytes()), parameter("texts", "string", [2])
    path = tmp_path / "model.xml"
    results = [ov.op.Result(output) for output in (*cut(held, 4, 2).outputs(), texts.output(0))]
    ov.serialize(ov.Model(results, [texts], "m"), path, version="IR_V10")
    fed = np.array(["é", "<>&"], object)
    with ts.session(path, engine="openvino", lower=is_lowered) as session:
        *parts, said = session.run({"texts": fed}).values()
    assert [part.dtype for part in parts] == [np.float16] * 2
    assert [part.tobytes() for part in parts] == [data[:4].tobytes(), data[4:].tobytes()]
    assert said.tolist() == fed.tolist()


@pytest.mark.parametrize("element", ["f4e2m1", "i4", "u4", "u2"])
def test_constants_that_openvino_can_return_but_not_cut_are_read_the_same(
    tmp_path: Path, element: str
) -> None:
    data = np.random.default_rng(5).integers(0, 256, 6, np.uint8)
    held = constant(element, [len(data) * 8 // (2 if element == "u2" else 4)], data.tobytes())
    assert_same(*both(save(tmp_path, [held.output(0)], [])))


def test_constant_strings_are_read_the_same(tmp_path: Path) -> None:
    held = ov.op.Constant(ov.Tensor(np.array([["a", ""], ["héé", "d\0e"]])))
    ours, theirs = both(save(tmp_path, [held.output(0)], []))
    assert [value.tolist() for value in ours.values()] == [[["a", ""], ["héé", "d\0e"]]]
    assert [value.tolist() for value in theirs.values()] == [[["a", ""], ["héé", "d\0e"]]]


@pytest.mark.parametrize(
    ("declared", "shape"),
    [("6,8", (6, 8)), ("?,8", (6, 8)), ("1..8,8", (6, 8)), ("?,?", (2, 0)), ("3..,..9", (6, 8))],
)
@pytest.mark.parametrize("options", [{}, {"save_model": True}])
def test_shapes_of_every_spelling_come_out_the_same(
    tmp_path: Path, declared: str, shape: tuple[int, ...], options: dict[str, Any]
) -> None:
    x = parameter("x", "f32", declared)
    outputs = [*cut(x, -1, 2).outputs(), x.output(0), x.output(0)]
    path = save(tmp_path, outputs, [x], **options)
    data = np.random.default_rng(2).standard_normal(shape).astype(np.float32)
    ours, theirs = both(path, x=data)
    assert_same(ours, theirs)
    np.testing.assert_array_equal(next(iter(ours.values())), data[:-2])


def test_several_results_inputs_and_names_keep_their_order(tmp_path: Path) -> None:
    x, y = parameter("x", "f32", [4]), parameter("y", "i32", [])
    parts = cut(x, 1, 1, 2)
    parts.output(2).set_names({"last, not least"})
    x.output(0).set_names({"tensor"})
    outputs = [parts.output(2), y.output(0), parts.output(0), parts.output(2), parts.output(1)]
    path = save(tmp_path, outputs, [y, x])
    data = np.array([1.5, 2.5, 3.5, 4.5], np.float32)
    ours, theirs = both(path, tensor=data, y=np.array(7, np.int32))
    assert_same(ours, theirs)
    assert [value.tolist() for value in ours.values()] == [[3.5, 4.5], 7, [1.5], [3.5, 4.5], [2.5]]
    assert next(iter(ours)) == "last, not least"
    assert {"last, not least"} == set(ov.Core().read_model(path).outputs[0].names)


def test_operands_at_run_time_come_out_the_same(tmp_path: Path) -> None:
    x, axis, lengths = (
        parameter("x", "f32", [6, 8]),
        parameter("axis", "i32", []),
        parameter("lengths", "i64", [2]),
    )
    parts = ov.opset1.variadic_split(x, axis, lengths)
    path = save(tmp_path, parts.outputs(), [x, axis, lengths])
    fed = {"x": X, "axis": np.array(-1, np.int32), "lengths": np.array([3, -1])}
    ours, theirs = both(path, **fed)
    assert_same(ours, theirs)
    with pytest.raises(ts.SplitError, match="TS306"):
        ts.run(path, {**fed, "lengths": np.array([-1, 9])}, engine="openvino")


@pytest.mark.parametrize("lengths", [(-1, 7), (-1, 400_000_000)])
def test_lengths_that_openvino_does_not_check_are_refused_before_it_runs(
    tmp_path: Path, lengths: tuple[int, int]
) -> None:
    """D7, behind a layer that only OpenVINO can compute, with known and unknown shapes."""
    x, n = parameter("x", "f32", "?"), parameter("n", "i64", [1])
    cases = (ov.opset1.relu(x), ov.opset1.reshape(x, n, False))
    inputs = {"x": np.ones(6, np.float32), "n": np.array([6])}
    for computed in cases:
        path = save(tmp_path, cut(computed, *lengths).outputs(), [x, n])
        with pytest.raises(ts.SplitError, match="TS509"):
            ts.run(path, inputs, engine="tensorsplit")
        with pytest.raises(ts.SplitError) as caught:
            ts.run(path, inputs, engine="openvino")
        assert (caught.value.code, caught.value.operator) == ("TS306", "openvino.VariadicSplit-1")
        assert str(caught.value.node).startswith("layer 'cut'")


def test_operands_that_openvino_computes_are_checked(tmp_path: Path) -> None:
    x, n = parameter("x", "f32", "?"), parameter("n", "i64", [2])
    lengths = ov.opset1.add(n, n)
    parts = ov.opset1.variadic_split(ov.opset1.relu(x), int64(0, scalar=True), lengths)
    path = save(tmp_path, parts.outputs(), [x, n])
    inputs = {"x": np.arange(6, dtype=np.float32), "n": np.array([1, 2])}
    first, second = ts.run(path, inputs, engine="openvino").values()
    assert (first.tolist(), second.tolist()) == ([0, 1], [2, 3, 4, 5])
    with pytest.raises(ts.SplitError, match="TS302"):
        ts.run(path, {**inputs, "n": np.array([1, 3])}, engine="openvino")


def test_a_model_with_other_layers_runs(tmp_path: Path) -> None:
    x = parameter("x", "f32", "?,8")
    left, right = ov.opset1.split(ov.opset1.relu(x), int64(1, scalar=True), 2).outputs()
    path = save(tmp_path, [ov.opset1.add(left, right).output(0)], [x])
    (total,) = ts.run(path, {"x": -X}, engine="openvino").values()
    assert total.tolist() == np.zeros((6, 4)).tolist()


def test_it_runs_what_numpy_does_not_where_no_engine_is_named(tmp_path: Path) -> None:
    x, y = parameter("x", "f32", "2,4"), parameter("y", "f32", "2,4")
    total = ov.opset1.add(x, y)
    total.output(0).set_names({"total"})
    path = save(tmp_path, total.outputs(), [x, y])
    fed = {"x": X[:2, :4], "y": X[2:4, :4]}
    (found,) = ts.run(path, fed).values()
    assert found.tolist() == (X[:2, :4] + X[2:4, :4]).tolist()
    assert_same(ts.run(path, fed, engine="openvino"), {"total": found})
    with pytest.raises(ts.SplitError, match=r"TS507.*feed a tensor of float and shape \(2, 4\)"):
        ts.run(path, {**fed, "x": X})
    with pytest.raises(ts.SplitError, match=r"TS509.*type Add"):
        ts.run(path, fed, engine="tensorsplit")


def test_splits_of_what_it_computes_are_checked_where_no_engine_is_named(tmp_path: Path) -> None:
    x = parameter("x", "f32", "?")
    path = save(tmp_path, cut(ov.opset1.relu(x), -1, 7).outputs(), [x])
    with pytest.raises(ts.SplitError, match=r"TS306.*layer 'cut'"):
        ts.run(path, {"x": np.ones(6, np.float32)})
    first, second = ts.run(path, {"x": np.ones(9, np.float32)}).values()
    assert (first.shape, second.shape) == ((2,), (7,))


@pytest.mark.parametrize("shape", [(2, 7, 4), (-1, -1, 4)])
def test_chunks_by_lengths_that_follow_from_a_shape_are_right(
    shape: tuple[int, ...], tmp_path: Path
) -> None:
    """PyTorch's `chunk`, as OpenVINO reads it: of a guard it can't load the constants."""
    from openvino import opset8 as ops

    def whole(value: Any) -> Any:
        return ops.constant(np.array(value, np.int64))

    data = ops.parameter(shape, np.float32, name="x")
    made = ops.hard_sigmoid(data, ops.constant(np.float32(0.1)), ops.constant(np.float32(0.5)))
    size, two = ops.gather(ops.shape_of(made, "i64"), whole(1), whole([0])), whole(2)
    rest = ops.convert(ops.greater(ops.mod(size, two), whole([0])), "i64")
    lengths = ops.concat([ops.add(ops.divide(size, two), rest), whole([-1])], 0)
    parts = ops.variadic_split(made, whole(1), lengths)
    results = [ops.result(part) for part in parts.outputs()]
    path = tmp_path / "m.xml"
    ov.save_model(ov.Model(results, [data], "chunk"), path, compress_to_fp16=False)
    with ts.session(path) as session:
        for length in (7, 6) if -1 in shape else (7,):
            x = np.random.default_rng(length).uniform(-2, 2, (2, length, 4)).astype(np.float32)
            first, second = session.run({"x": x}).values()
            wanted = 0.1 * x + 0.5
            np.testing.assert_allclose(first, wanted[:, : -(-length // 2)], rtol=1e-5)
            np.testing.assert_allclose(second, wanted[:, -(-length // 2) :], rtol=1e-5)


def test_a_session_checks_splits_of_what_it_computes_each_time(tmp_path: Path) -> None:
    x, n = parameter("x", "f32", "?"), parameter("n", "i64", [2])
    lengths = ov.opset1.add(n, n)
    parts = ov.opset1.variadic_split(ov.opset1.relu(x), int64(0, scalar=True), lengths)
    path = save(tmp_path, parts.outputs(), [x, n])
    data = np.arange(6, dtype=np.float32)
    for isolate in (None, False):
        session = ts.session(path, isolate=isolate)
        assert session.engine == "openvino"
        for half in (1, 2, 1):
            first, second = session.run({"x": data, "n": np.array([half, 3 - half])}).values()
            assert (first.size, second.size) == (2 * half, 6 - 2 * half)
            with pytest.raises(ts.SplitError, match="TS302"):
                session.run({"x": data, "n": np.array([half, 3])})


def test_a_session_goes_on_after_a_run_that_failed(tmp_path: Path) -> None:
    """What OpenVINO compiled would go on with the length 6."""
    x, w = parameter("x", "f32", "?"), parameter("w", "f32", "?")
    square = ov.opset8.reshape(w, int64(2, 2), special_zero=False)
    path = save(tmp_path, [ov.opset8.sign(x).output(0), square.output(0)], [x, w])
    session = ts.session(path, engine="openvino")
    for _ in range(2):
        signs, squared = session.run({"x": X[0, :4], "w": X[0, :4]}).values()
        assert (signs.tolist(), squared.tolist()) == ([1, 1, 1, 1], [[1, 2], [3, 4]])
        with pytest.raises(ts.SplitError, match=r"TS603.*Reshape"):
            session.run({"x": X[0, :6], "w": X[0, :5]})


@pytest.mark.parametrize("lower", [True, "openvino"])
@pytest.mark.parametrize("limits", [{}, {"timeout": 100}])
def test_a_session_lowers_an_ir(lower: Any, limits: dict[str, Any], tmp_path: Path) -> None:
    """OpenVINO 2026.4 splits no strings; what stands for that takes them one by one."""
    path = words(tmp_path)
    with pytest.raises(ts.SplitError), ts.session(path, engine="openvino", **limits) as session:
        session.run({"x": np.array(list("abcde"))})
    with ts.session(path, engine="openvino", lower=lower, **limits) as session:
        for text in ("abcde", "abc", "ab"):
            parts = session.run({"x": np.array(list(text))})
            assert ["".join(part) for part in parts.values()] == [text[:2], text[2:]]
    assert sorted(each.name for each in tmp_path.iterdir()) == ["model.bin", "model.xml"]


@pytest.mark.engine("onnxruntime")
def test_an_ir_is_lowered_for_openvino_alone(tmp_path: Path) -> None:
    path = words(tmp_path)
    for engine in ("openvino", "onnxruntime"):
        with refused("TS513", "which only OpenVINO reads"):
            ts.session(path, engine=engine, lower="portable")
    ts.session(path, lower=True).close()


def looped(*lengths: int) -> tuple[list[Any], Any]:
    """A Loop of two rounds whose body splits what it carries along; and its Parameter."""
    inner = parameter("inner", "f32", "2,?")
    parts = cut(ov.opset1.relu(inner), *lengths, axis=1)
    again = ov.opset8.constant(np.array(True))
    outputs = [inner.output(0), again.output(0), *parts.outputs()]
    body = ov.Model(outputs, [inner], "body")
    x = parameter("x", "f32", "2,?")
    loop = ov.opset13.loop(int64(2, scalar=True), ov.opset8.constant(np.array(True)))
    loop.set_function(body)
    loop.set_special_body_ports([-1, 1])
    loop.set_merged_input(inner, x.output(0), body.results[0].output(0))
    return [loop.get_iter_value(entry.output(0), -1) for entry in body.results[2:]], x


def test_splits_in_bodies_are_checked_before_it_runs(tmp_path: Path) -> None:
    """D7: OpenVINO would read what lies behind the data."""
    fed = {"x": X[:2, :6]}
    outputs, x = looped(-1, 2)
    first, second = ts.run(save(tmp_path, outputs, [x]), fed).values()
    assert (first.shape, second.shape) == ((2, 4), (2, 2))
    outputs, x = looped(-1, 7)
    with pytest.raises(ts.SplitError, match=r"TS306.*layer '.*' / layer 'cut'"):
        ts.run(save(tmp_path, outputs, [x]), fed)


@pytest.mark.parametrize("taken", [True, False])
def test_a_split_in_a_branch_is_checked_if_the_branch_is_taken(tmp_path: Path, taken: bool) -> None:
    x, flag = parameter("x", "f32", "2,?"), parameter("flag", "boolean", "")
    branches: list[Any] = []
    inner: list[Any] = []
    for lengths in ((-1, 7), (-1, 2)):
        inner.append(parameter("inner", "f32", "2,?"))
        parts = cut(ov.opset1.relu(inner[-1]), *lengths, axis=1)
        branches.append(ov.Model(parts.outputs(), [inner[-1]], "branch"))
    made = ov.opset13.if_op(flag)
    made.set_then_body(branches[0])
    made.set_else_body(branches[1])
    made.set_input(x.output(0), *inner)
    ends = zip(branches[0].results, branches[1].results, strict=True)
    path = save(tmp_path, [made.set_output(*pair) for pair in ends], [x, flag])
    fed = {"x": X[:2, :6], "flag": np.array(taken)}
    if taken:
        with pytest.raises(ts.SplitError, match=r"TS306.*layer '.*' / layer 'cut'"):
            ts.run(path, fed)
    else:
        assert [part.shape for part in ts.run(path, fed).values()] == [(2, 4), (2, 2)]


def test_an_onnx_model_saved_as_ir_is_read(tmp_path: Path) -> None:
    source = split_model()
    (tmp_path / "m.onnx").write_bytes(source.SerializeToString())
    path = tmp_path / "m.xml"
    ov.save_model(ov.Core().read_model(tmp_path / "m.onnx"), path, compress_to_fp16=False)
    x = np.random.default_rng(4).standard_normal(6).astype(np.float32)
    ours, theirs = both(path, x=x)
    assert_same(ours, theirs)
    assert_same(ours, ts.run(source, {"x": x}))


def test_wrong_strings_are_what_openvino_returns_and_harm_no_later_run() -> None:
    """D17: the second part repeats the first one's elements; the process is not used again."""
    source = split_model(element=TensorProto.STRING)
    texts = np.array(["a", "b", "c", "dd", "ee", "ff"], object)
    engine = process_of("openvino", "tensorsplit.engines.openvino")
    outputs = ts.run(source, {"x": texts}, engine="openvino")
    assert outputs["b"].shape == (4,)
    assert engine.pid is None
    assert ts.run(split_model(), {"x": X[0, :6]}, engine="openvino")["a"].shape == (2,)


def test_no_process_is_used_again_that_had_any_strings() -> None:
    """D17; one that had numbers only is used again."""
    source = split_model(element=TensorProto.STRING)
    source.graph.node.append(node("Identity", "n", "m"))
    source.graph.input.append(tensor("n", TensorProto.FLOAT, [2]))
    source.graph.output.append(tensor("m", TensorProto.FLOAT))
    engine = process_of("openvino", "tensorsplit.engines.openvino")
    ts.run(split_model(), {"x": X[0, :6]}, engine="openvino")
    assert engine.pid is not None
    texts = np.array(["a", "b", "c", "dd", "ee", "ff"], object)
    ts.run(source, {"x": texts, "n": X[0, :2]}, engine="openvino")
    assert engine.pid is None


def test_strings_in_another_engine_end_no_process_of_openvino() -> None:
    engine = process_of("openvino", "tensorsplit.engines.openvino")
    ts.run(split_model(), {"x": X[0, :6]}, engine="openvino")
    before = engine.pid
    texts = np.array(["a", "b", "c", "dd", "ee", "ff"], object)
    ts.run(split_model(element=TensorProto.STRING), {"x": texts}, engine="onnx-reference")
    assert engine.pid == before is not None


def test_strings_that_its_tensors_would_change_are_refused() -> None:
    source = model(
        [node("Identity", "x", "y")],
        [tensor("x", TensorProto.STRING, [1])],
        [tensor("y", TensorProto.STRING)],
    )
    with pytest.raises(ts.SplitError, match=r"TS603.*NUL"):
        ts.run(source, {"x": np.array(["a\0"], object)}, engine="openvino")


def test_types_that_it_does_not_have_are_refused() -> None:
    source = model(
        [node("Identity", "x", "y")],
        [tensor("x", TensorProto.COMPLEX64, [1])],
        [tensor("y", TensorProto.COMPLEX64)],
    )
    with pytest.raises(ts.SplitError, match="TS603"):
        ts.run(source, {"x": np.ones(1, np.complex64)}, engine="openvino")


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="needs Linux")
def test_one_thread_raises_what_nodes_refuse() -> None:
    """D23: with one thread, `infer` swallows the errors of nodes."""
    proto = parse_model(
        '<ir_version: 8, opset_import: ["" : 13]>'
        " g (float[N] x, int64[2] s) => (float[A] a, float[B] b) { a, b = Split(x, s) }"
    )
    process = EngineProcess("openvino", "tests.engines.openvino_one_core")
    try:
        for lengths, fits in (([2, 4], True), ([2, 5], False), ([4, 2], True)):
            feeds = {"x": np.arange(6, dtype=np.float32), "s": np.array(lengths)}
            request = (proto.SerializeToString(), b"", feeds, ("a", "b"))
            if fits:
                assert [len(part) for part in process.call(request).values()] == lengths
            else:
                with pytest.raises(ts.SplitError, match="TS603"):
                    process.call(request)
    finally:
        process.stop()


def body_inputs(shape: str, element: str, has_axis: bool) -> list[Any]:
    """Parameters: data, two lengths, a condition, and perhaps an axis."""
    made = [parameter("x", "f32", shape), parameter("l", element, "2")]
    made.append(parameter("f", "boolean", ""))
    return [*made, parameter("a", "i64", "")] if has_axis else made


def in_body(kinds: list[str], shape: str, element: str, has_axis: bool) -> tuple[Any, Any]:
    """Outputs and parameters of bodies in each other; the innermost computes the lengths itself."""
    ops, given = ov.opset8, body_inputs(shape, element, has_axis)
    if not kinds:
        axis = given[3] if has_axis else int64(-1, scalar=True)
        zero = ops.convert(int64(0), element)
        parts = ov.opset1.variadic_split(ops.relu(given[0]), axis, ops.add(given[1], zero))
        parts.set_friendly_name("cut")
        return parts.outputs(), given
    kind, *rest = kinds
    outputs, inner = in_body(rest, shape, element, has_axis)
    outside = [value.output(0) for value in given]
    true = ops.constant(np.array(True))
    if kind == "If":
        other = body_inputs(shape, element, has_axis)
        bodies = (ov.Model(outputs, inner, "t"), ov.Model([ops.relu(other[0])] * 2, other, "e"))
        made = ov.opset13.if_op(outside[2])
        made.set_then_body(bodies[0])
        made.set_else_body(bodies[1])
        for value, *ports in zip(outside, inner, other, strict=True):
            made.set_input(value, *ports)
        ends = zip(bodies[0].results, bodies[1].results, strict=True)
        return [made.set_output(*pair) for pair in ends], given
    if kind == "Loop":
        body = ov.Model([true.output(0), *outputs], inner, "b")
        made = ov.opset13.loop(int64(2, scalar=True), true)
        made.set_function(body)
        made.set_special_body_ports([-1, 0])
        results = body.results[1:]
    else:
        count = parameter("count", "i64", "1")
        body = ov.Model([*outputs, ops.add(count, int64(1)).output(0)], [*inner, count], "b")
        made = ops.tensor_iterator()
        made.set_body(body)
        made.set_sliced_input(count, int64(0, 1).output(0), 0, 1, 1, -1, 0)
        results = body.results[:-1]
    for port, value in zip(inner, outside, strict=True):
        made.set_invariant_input(port, value)
    return [made.get_iter_value(result.output(0), -1) for result in results], given


BODIES = ("Loop", "TensorIterator", "If", "Loop If", "TensorIterator Loop", "If TensorIterator")
RUN_TIME_LENGTHS = (
    *((legal, True) for legal in ([2, 4], [-1, 2], [6, 0], [6, -1])),
    *((wrong, False) for wrong in ([-1, 7], [7, -1], [-1, -1], [-2, 8], [3, 2], [0, 0])),
)


@pytest.mark.parametrize(
    ("shape", "element"), [("?", "i64"), ("6", "i32"), ("2,?", "i32"), ("1,2,6", "i64")]
)
@pytest.mark.parametrize("kinds", BODIES)
def test_lengths_that_a_body_computes_are_guarded(
    tmp_path: Path, kinds: str, shape: str, element: str
) -> None:
    """D7: OpenVINO would read what lies behind the data."""
    path = save(tmp_path, *in_body(kinds.split(), shape, element, has_axis=False))
    sizes = [int(size) for size in shape.replace("?", "6").split(",")]
    x = np.arange(np.prod(sizes), dtype=np.float32).reshape(sizes)
    for lengths, is_legal in RUN_TIME_LENGTHS:
        fed = {"x": x, "l": np.array(lengths, f"int{element[1:]}"), "f": np.array(True)}
        if not is_legal:
            with pytest.raises(ts.SplitError, match=r"TS603.*stops at layer '.*' / layer 'cut'"):
                ts.run(path, fed, engine="openvino")
            continue
        first, second = ts.run(path, fed).values()
        end = lengths[0] if lengths[0] >= 0 else 4
        np.testing.assert_array_equal(first, x[..., :end])
        np.testing.assert_array_equal(second, x[..., end:])


@pytest.mark.parametrize("kinds", ["Loop", "If TensorIterator"])
def test_an_axis_that_a_body_is_given_is_guarded(tmp_path: Path, kinds: str) -> None:
    path = save(tmp_path, *in_body(kinds.split(), "2,?", "i64", has_axis=True))
    for axis, lengths in ((-1, [2, 4]), (0, [-1, 2])):
        fed = {"x": X[:2, :6], "l": np.array(lengths), "f": np.array(True), "a": np.array(axis)}
        parts = ts.run(path, fed).values()
        np.testing.assert_array_equal(np.concatenate(list(parts), axis), X[:2, :6])
        with pytest.raises(ts.SplitError, match=r"TS603.*stops at"):
            ts.run(path, {**fed, "l": np.array([-1, 7])})
    for axis in (2, -3):
        fed |= {"a": np.array(axis), "l": np.array([0, 0])}
        with pytest.raises(ts.SplitError, match=r"TS603.*stops at"):
            ts.run(path, fed)


def test_its_words_come_without_the_places_in_its_source() -> None:
    taken = parse_model(
        """<ir_version: 8, opset_import: ["" : 18]>
        g (float[N] x) => (float[A] a, float[B] b) { a, b = Split <num_outputs = 2> (x) }"""
    )
    words = r"TS603.* openvino says: RuntimeError: (?!.*Exception from).*evenly divisible"
    with pytest.raises(ts.SplitError, match=words):
        ts.run(taken, {"x": X[0, :5]}, engine="openvino")


def test_a_guarded_split_in_a_branch_that_is_not_taken_does_not_stop(tmp_path: Path) -> None:
    path = save(tmp_path, *in_body(["If"], "2,?", "i64", has_axis=False))
    fed = {"x": X[:2, :6], "l": np.array([-1, 7]), "f": np.array(False)}
    assert [part.shape for part in ts.run(path, fed).values()] == [(2, 6), (2, 6)]


def test_inputs_that_openvino_renames_are_fed_in_their_order() -> None:
    """Each has the name of what a Dropout gives there."""
    made = parse_model(
        """<ir_version: 8, opset_import: ["": 13]> g (float[5] x, float[5] w) => (float[5] y)
        { d = Dropout(x) e = Dropout(w) y = Sub(d, e) }"""
    )
    x, w = np.random.default_rng(8).integers(1, 99, (2, 5)).astype(np.float32)
    (got,) = ts.run(made, {"w": w, "x": x}, engine="openvino").values()
    assert got.tolist() == (x - w).tolist()
