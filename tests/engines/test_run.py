"""`run`: the same model in every engine, and nothing wrong ever reaches an engine."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, external_data_helper

import tensorsplit as ts
from tensorsplit.core.extras import install_command
from tensorsplit.engines import outside
from tensorsplit.engines.engine_names import ENGINES, resolved
from tensorsplit.engines.outside import OutsideModel
from tensorsplit.model.reading import read_model
from tensorsplit.model.run.evaluator import evaluate
from tensorsplit.model.run.program import Block
from tests.engines.models import INT64, model, node, sequence, split_model, tensor
from tests.model.ir_files import X, cut_file

_FOREIGN = ENGINES[1:]


def _mark(name: str) -> Any:
    optional = name in ("onnxruntime", "openvino")
    return pytest.param(name, marks=pytest.mark.engine(name) if optional else ())


every_engine = pytest.mark.parametrize("engine", ["tensorsplit", *map(_mark, _FOREIGN)])
foreign_engine = pytest.mark.parametrize("engine", list(map(_mark, _FOREIGN)))
DATA = np.array([3.0, -1.0, 4.0, 1.5, -9.0, 2.5], np.float32)


def refused(source: Any, inputs: Any, engine: Any = "tensorsplit") -> ts.SplitError:
    with pytest.raises(ts.SplitError) as caught:
        ts.run(source, inputs, engine=engine)
    return caught.value


@every_engine
def test_outputs_come_by_name_in_the_graphs_order(engine: Any) -> None:
    source = split_model()
    source.graph.output.reverse()
    outputs = ts.run(source, {"x": DATA}, engine=engine)
    assert list(outputs) == ["b", "a"]
    np.testing.assert_array_equal(outputs["a"], DATA[:2])
    np.testing.assert_array_equal(outputs["b"], DATA[2:])
    assert outputs["a"].dtype == np.float32


@every_engine
def test_a_model_is_a_path_a_message_or_an_onnx_ir_model(engine: Any, tmp_path: Path) -> None:
    import onnx_ir

    source = split_model()
    path = tmp_path / "model.onnx"
    onnx.save(source, path)
    other = tmp_path / "model.of_another_name"
    other.write_bytes(path.read_bytes())
    for kind in (source, path, str(path), other, onnx_ir.from_proto(source)):
        np.testing.assert_array_equal(ts.run(kind, {"x": DATA}, engine=engine)["b"], DATA[2:])


@every_engine
def test_relative_paths_hold_wherever_the_engine_runs(
    engine: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    onnx.save(split_model(), tmp_path / "model.onnx")
    monkeypatch.chdir(tmp_path)
    assert ts.run("model.onnx", {"x": DATA}, engine=engine)["a"].shape == (2,)


@pytest.mark.parametrize(
    "engine", ["tensorsplit", *[_mark(name) for name in ("onnx-reference", "onnxruntime")]]
)
def test_sequences_come_and_go_as_lists(engine: Any) -> None:
    source = model(
        [node("SplitToSequence", "x", "parts", keepdims=0), node("Identity", "given", "back")],
        [tensor("x", shape=[3]), sequence("given")],
        [sequence("parts"), sequence("back")],
    )
    given = [DATA[:1], DATA[1:6]]
    outputs = ts.run(source, {"x": DATA[:3], "given": given}, engine=engine)
    assert [part.tolist() for part in outputs["parts"]] == DATA[:3].tolist()
    assert [part.shape for part in outputs["parts"]] == [()] * 3
    assert [part.tolist() for part in outputs["back"]] == [part.tolist() for part in given]


def test_an_engine_that_there_is_not_is_refused() -> None:
    for engine in ("tensorrt", "", None, 3, ["numpy"]):
        error = refused(split_model(), {"x": DATA}, engine)
        assert error.code == "TS601"
        assert all(name in str(error) for name in ENGINES)


@pytest.mark.parametrize("engine", ["onnxruntime", "openvino"])
def test_an_engine_that_is_not_installed_names_its_extra(
    engine: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, engine, None)
    error = refused(split_model(), {"x": DATA}, engine)
    assert error.code == "TS602"
    assert install_command(engine) in str(error)


@pytest.fixture
def no_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    def forbidden(*_arguments: object) -> None:
        pytest.fail("the engine saw the model")

    monkeypatch.setattr(outside, "process_of", forbidden)


WRONG = {
    "lengths that do not sum": (split_model(2, 3), "TS302"),
    "negative length": (split_model(-1, 7), "TS301"),
    "outputs that are not as many as num_outputs (D5)": (
        model(
            [node("Split", "x", "a b", num_outputs=3)],
            [tensor("x")],
            [tensor("a"), tensor("b")],
        ),
        "TS305",
    ),
    "chunks of length 0 (D10)": (
        model(
            [node("SplitToSequence", "x zero", "a")],
            [tensor("x")],
            [sequence("a")],
            zero=np.array(0, np.int64),
        ),
        "TS307",
    ),
    "wrong lengths of computed data": (
        model(
            [node("Neg", "x", "y"), node("Split", "y split", "a b")],
            [tensor("x")],
            [tensor("a"), tensor("b")],
            split=np.array([2, 3], np.int64),
        ),
        "TS302",
    ),
    "computed lengths": (
        model(
            [node("Add", "half half", "split"), node("Split", "x split", "a b")],
            [tensor("x")],
            [tensor("a"), tensor("b")],
            half=np.array([-1, 4], np.int64),
        ),
        "TS301",
    ),
    "index out of a sequence (D19)": (
        model(
            [node("SplitToSequence", "x", "s"), node("SequenceAt", "s nine", "a")],
            [tensor("x")],
            [tensor("a")],
            nine=np.array(9, np.int64),
        ),
        "TS511",
    ),
}


@pytest.mark.parametrize("engine", [pytest.param(name) for name in _FOREIGN])
@pytest.mark.parametrize("name", WRONG)
@pytest.mark.usefixtures("no_engine")
def test_a_wrong_split_node_never_reaches_an_engine(
    engine: Any, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tensorsplit.engines.engine_names.find_spec", lambda _: object())
    source, code = WRONG[name]
    assert refused(source, {"x": DATA}, engine).code == code


@pytest.mark.usefixtures("no_engine")
@pytest.mark.parametrize(
    ("inputs", "code"),
    [
        ({}, "TS505"),
        ({"x": DATA, "y": DATA}, "TS506"),
        ({"x": DATA[:3]}, "TS507"),
        ({"x": DATA.astype(np.float64)}, "TS508"),
        ({"x": DATA.tolist()}, "TS508"),
        ([DATA], "TS703"),
    ],
)
def test_wrong_inputs_never_reach_an_engine(inputs: Any, code: str) -> None:
    assert refused(split_model(), inputs, "onnx-reference").code == code


@foreign_engine
def test_lengths_at_run_time_reach_the_engine_when_they_are_right(engine: Any) -> None:
    source = model(
        [node("Split", "x split", "a b")],
        [tensor("x", shape=["N"]), tensor("split", INT64, [2])],
        [tensor("a"), tensor("b")],
        opset=13,
    )
    lengths = np.array([1, 5], np.int64)
    outputs = ts.run(source, {"x": DATA, "split": lengths}, engine=engine)
    np.testing.assert_array_equal(outputs["b"], DATA[1:])
    assert refused(source, {"x": DATA, "split": lengths - 1}, engine).code == "TS302"


@foreign_engine
def test_an_input_with_a_default_can_be_fed_or_left_out(engine: Any) -> None:
    source = split_model()
    source.graph.input.append(tensor("split", INT64, [2]))
    np.testing.assert_array_equal(ts.run(source, {"x": DATA}, engine=engine)["a"], DATA[:2])
    inputs = {"x": DATA, "split": np.array([5, 1])}
    np.testing.assert_array_equal(ts.run(source, inputs, engine=engine)["a"], DATA[:5])


@foreign_engine
def test_what_an_engine_refuses_is_told_in_its_words(engine: Any) -> None:
    source = model([node("Nothing", "x", "y")], [tensor("x")], [tensor("y")])
    source.graph.node[0].domain = "nowhere"
    source.opset_import.append(onnx.helper.make_opsetid("nowhere", 1))
    error = refused(source, {"x": DATA}, engine)
    assert error.code == "TS603"
    assert f"{engine} says: " in str(error)
    assert "Nothing" in str(error)
    assert "\n" not in str(error)


@pytest.mark.engine
@pytest.mark.parametrize("engine", [_mark("onnxruntime"), _mark("openvino")])
def test_what_only_the_reference_cant_run_does_not_stop_another_engine(engine: Any) -> None:
    source = model(
        [
            node("Gelu", "x", "y", domain="com.microsoft"),
            node("Split", "y split", "a b"),
        ],
        [tensor("x", shape=[6])],
        [tensor("a"), tensor("b")],
        split=np.array([2, 4], np.int64),
    )
    source.opset_import.append(onnx.helper.make_opsetid("com.microsoft", 1))
    assert refused(source, {"x": DATA}).code == "TS509"
    outputs = ts.run(source, {"x": DATA}, engine=engine)
    assert (outputs["a"].shape, outputs["b"].shape) == ((2,), (4,))


def external_model(folder: Path, location: str = "weights.bin") -> Path:
    """A model whose ``w``, of 64 elements, lies in another file."""
    w = np.arange(1, 65, dtype=np.float32)
    source = model(
        [node("Split", "w split", "a b")],
        [],
        [tensor("a"), tensor("b")],
        opset=13,
        w=w,
        split=np.array([10, 54], np.int64),
    )
    external_data_helper.set_external_data(source.graph.initializer[0], location)
    source.graph.initializer[0].ClearField("raw_data")
    source.graph.initializer[0].data_location = TensorProto.EXTERNAL
    (folder / "weights.bin").write_bytes(w.tobytes())
    path = folder / "model.onnx"
    path.write_bytes(source.SerializeToString())
    return path


@every_engine
def test_of_a_link_to_a_model_the_data_lies_beside_the_link(engine: Any, tmp_path: Path) -> None:
    """So it was checked, and no engine may read other data."""
    for name in ("real", "link"):
        (tmp_path / name).mkdir()
    path = external_model(tmp_path / "link")
    (tmp_path / "real" / "weights.bin").write_bytes(bytes(256))
    path.rename(tmp_path / "real" / "model.onnx")
    path.symlink_to("../real/model.onnx")
    assert ts.run(path, {}, engine=engine)["a"].tolist() == list(range(1, 11))


@every_engine
def test_external_data_is_found_beside_the_model(engine: Any, tmp_path: Path) -> None:
    import onnx_ir

    path = external_model(tmp_path)
    for source in (path, onnx_ir.load(path)):
        outputs = ts.run(source, {}, engine=engine)
        assert outputs["a"].tolist() == list(range(1, 11))
        assert outputs["b"].tolist() == list(range(11, 65))


@pytest.mark.parametrize("engine", ["tensorsplit", *_FOREIGN])
@pytest.mark.parametrize("location", ["../weights.bin", "/etc/hostname", "", "none.bin"])
@pytest.mark.usefixtures("no_engine")
def test_external_data_elsewhere_is_refused(
    engine: Any, location: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tensorsplit.engines.engine_names.find_spec", lambda _: object())
    folder = tmp_path / "inner"
    folder.mkdir()
    (tmp_path / "weights.bin").write_bytes(bytes(256))
    assert refused(external_model(folder, location), {}, engine).code == "TS504"


@pytest.mark.parametrize(
    ("is_there", "layer", "engine"),
    [(True, "Unknown", "openvino"), (False, "Unknown", "tensorsplit"), (True, None, "tensorsplit")],
)
def test_auto_is_openvino_for_layers_of_its_own_where_it_is_installed(
    is_there: bool, layer: str | None, engine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = object() if is_there else None
    monkeypatch.setattr("tensorsplit.engines.engine_names.find_spec", lambda _: spec)
    asked: Any = SimpleNamespace(foreign_layer=layer)
    assert resolved("auto", asked) == engine
    assert resolved("onnxruntime", asked) == "onnxruntime"


@pytest.mark.parametrize("is_more", [False, True])
def test_a_model_of_more_than_2_gib_is_not_passed_on(
    is_more: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outside, "MAX_MESSAGE", split_model().ByteSize() - is_more)
    if is_more:
        assert refused(split_model(), {"x": DATA}, "onnx-reference").code == "TS504"
    else:
        made = ts.run(split_model(), {"x": DATA}, engine="onnx-reference")
        np.testing.assert_array_equal(made["a"], DATA[:2])


@pytest.mark.parametrize("engine", ENGINES)
def test_files_that_are_no_model_are_refused(
    engine: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tensorsplit.engines.engine_names.find_spec", lambda _: object())
    path = tmp_path / "model.onnx"
    path.write_bytes(b"\x08\x07garbage")
    assert refused(path, {}, engine).code == "TS501"
    assert refused(tmp_path / "none.onnx", {}, engine).code == "TS501"


@pytest.mark.parametrize("engine", ["onnx-reference", "onnxruntime"])
def test_ir_files_run_only_where_they_can(
    engine: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tensorsplit.engines.engine_names.find_spec", lambda _: object())
    path = cut_file().save(tmp_path)
    np.testing.assert_array_equal(ts.run(path, {"x": X})["part0"], X[:2])
    error = refused(path, {"x": X}, engine)
    assert error.code == "TS603"
    assert "openvino" in str(error)


@pytest.fixture
def runs_here(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The operators of each model that runs here before another engine gets its own."""
    seen: list[list[str]] = []

    def noticed(block: Block, feeds: Any, wanted: Any) -> Any:
        seen.append([step.node.op_type for step in block.only(wanted).steps])
        return evaluate(block, feeds, wanted)

    monkeypatch.setattr(outside, "evaluate", noticed)
    monkeypatch.setattr(OutsideModel, "_load", lambda *_, **__: lambda *_: {})
    return seen


def test_nothing_runs_here_where_shapes_and_feeds_tell_the_lengths(
    runs_here: list[list[str]],
) -> None:
    x = np.ones((1, 3, 8, 8), np.float32)
    convolved = model(
        [node("Conv", "x w", "y"), node("Split", "y s", "a b", axis=1)],
        [tensor("x", shape=["n", 3, "h", "w"]), tensor("s", INT64, [2])],
        [tensor("a"), tensor("b")],
        w=np.ones((6, 3, 3, 3), np.float32),
    )
    ts.run(convolved, {"x": x, "s": np.array([2, 4])}, engine="onnx-reference")
    error = refused(convolved, {"x": x, "s": np.array([2, 5])}, "onnx-reference")
    assert error.code == "TS302"
    shaped = model(
        [
            node("Shape", "x", "shape"),
            node("Gather", "shape one", "d"),
            node("Div", "d two", "half"),
            node("Concat", "half half", "s", axis=0),
            node("Split", "x s", "a b", axis=1),
        ],
        [tensor("x", shape=["n", "d"])],
        [tensor("a"), tensor("b")],
        one=np.array([1]),
        two=np.array([2]),
    )
    ts.run(shaped, {"x": np.ones((2, 6), np.float32)}, engine="onnx-reference")
    assert refused(shaped, {"x": np.ones((2, 5), np.float32)}, "onnx-reference").code == "TS302"
    assert runs_here == []


def test_the_attention_example_is_decided_by_what_is_fed(runs_here: list[list[str]]) -> None:
    examples = Path(__file__).parents[2] / "examples"
    x = np.load(examples / "attention_x.npy")
    ts.run(examples / "attention.onnx", {"x": x}, engine="onnx-reference")
    assert runs_here == []


def test_only_what_unknown_lengths_need_runs_here(runs_here: list[list[str]]) -> None:
    source = model(
        [
            node("Conv", "x w", "y"),
            node("Unique", "given", "lengths"),
            node("Split", "y lengths", "a b", axis=1),
            node("Relu", "a", "r"),
        ],
        [tensor("x", shape=["n", 3, "h", "w"]), tensor("given", INT64, ["k"])],
        [tensor("r"), tensor("b")],
        w=np.ones((6, 3, 3, 3), np.float32),
    )
    x = np.ones((1, 3, 8, 8), np.float32)
    ts.run(source, {"x": x, "given": np.array([4, 2, 2])}, engine="onnx-reference")
    assert runs_here == [["Unique"]]
    wrong = {"x": x, "given": np.array([4, 3])}
    assert refused(source, wrong, "onnx-reference").code == "TS302"


def test_data_of_unknown_shape_is_computed_too(runs_here: list[list[str]]) -> None:
    source = model(
        [node("Neg", "x", "y"), node("Unique", "y", "z"), node("Split", "z s", "a b")],
        [tensor("x", shape=["n"])],
        [tensor("a"), tensor("b")],
        s=np.array([1, 2]),
    )
    ts.run(source, {"x": np.array([1, 2, 3], np.float32)}, engine="onnx-reference")
    assert runs_here == [["Neg", "Unique"]]
    wrong = {"x": np.array([1, 2, 2], np.float32)}
    assert refused(source, wrong, "onnx-reference").code == "TS302"


@pytest.mark.parametrize("count", [2, 3, 5])
@pytest.mark.parametrize("is_wrong", [False, True])
def test_lengths_are_checked_beside_others_that_can_not_be_calculated(
    runs_here: list[list[str]], count: int, is_wrong: bool
) -> None:
    """Those are left to the engine, as nobody else knows the operator that they come from."""
    others = [node("Unknown", "x", f"n{i}", domain="other") for i in range(1, count)]
    splits = [node("Split", f"x n{i}", f"a{i} b{i}") for i in range(count)]
    source = model(
        [*others, node("Unique", "given", "n0"), *reversed(splits)],
        [tensor("x", shape=[6]), tensor("given", INT64, ["k"])],
        [tensor(f"a{i}") for i in range(count)],
    )
    source.opset_import.append(onnx.helper.make_opsetid("other", 1))
    feeds = {"x": DATA, "given": np.array([2, 5 if is_wrong else 4])}
    if is_wrong:
        assert refused(source, feeds, "onnx-reference").code == "TS302"
    else:
        ts.run(source, feeds, engine="onnx-reference")
    assert ["Unique"] in runs_here


@pytest.mark.parametrize("position", [1, 2])
def test_calculated_positions_in_a_branch_are_checked(
    runs_here: list[list[str]], position: int
) -> None:
    def branch(made: onnx.NodeProto) -> onnx.GraphProto:
        return onnx.helper.make_graph([made], "b", [], [tensor("p")])

    taken = branch(node("SequenceAt", "s at", "p"))
    source = model(
        [
            node("SplitToSequence", "x two", "s"),
            node("Unique", "given", "u"),
            node("ReduceMax", "u", "at", keepdims=0),
            node("Cast", "at", "c", to=9),
            node("If", "c", "y", then_branch=taken, else_branch=branch(node("Neg", "x", "p"))),
        ],
        [tensor("x", shape=[4]), tensor("given", INT64, ["k"])],
        [tensor("y")],
        two=np.array(2),
    )
    feeds = {"x": DATA[:4], "given": np.array([0, position])}
    if position == 2:
        assert refused(source, feeds, "onnx-reference").code == "TS511"
    else:
        ts.run(source, feeds, engine="onnx-reference")
    assert ["If"] in [each[-1:] for each in runs_here]


@pytest.mark.parametrize(
    ("engine", "lengths", "loader"),
    [
        ("onnxruntime", "computed", "adapters:load_onnxruntime"),
        ("openvino", "fixed", "adapters:load_openvino"),
        ("openvino", "computed", "openvino_probe:load_guarded"),
    ],
)
def test_openvino_alone_is_guarded_and_only_where_lengths_are_computed(
    monkeypatch: pytest.MonkeyPatch, engine: Any, lengths: str, loader: str
) -> None:
    """A guard that another engine is given runs the model in OpenVINO, with the same results."""
    loaders = []

    def load(_process: object, loader: str, _arguments: object) -> Any:
        loaders.append(loader)
        return lambda _fed, names: dict.fromkeys(names, DATA)

    monkeypatch.setattr(outside, "LoadedModel", load)
    source = read_model(
        model(
            [node("Unique", "given", "computed"), node("Split", f"x {lengths}", "a b")],
            [tensor("x", shape=[6]), tensor("given", INT64, ["k"])],
            [tensor("a"), tensor("b")],
            fixed=np.array([2, 4]),
        )
    )
    there = OutsideModel(engine, source, source, is_isolated=True)
    there.run({"x": DATA, "given": np.array([2, 4, 4])})
    assert loaders == [f"tensorsplit.engines.{loader}"]


def test_a_body_with_unknown_lengths_runs_whole(runs_here: list[list[str]]) -> None:
    def branch(*nodes: onnx.NodeProto) -> onnx.GraphProto:
        return onnx.helper.make_graph(list(nodes), "b", [], [tensor("p")])

    chosen = node(
        "If",
        "c",
        "y",
        then_branch=branch(node("Unique", "g", "s"), node("Split", "x s", "p q")),
        else_branch=branch(node("Identity", "x", "p")),
    )
    source = model(
        [
            node("Unique", "x", "u"),
            node("ReduceMax", "u", "m", keepdims=0),
            node("Cast", "m", "c", to=9),
            chosen,
        ],
        [tensor("x", shape=[6]), tensor("g", INT64, ["k"])],
        [tensor("y")],
    )
    wrong = np.array([1, 2])
    ts.run(source, {"x": np.zeros(6, np.float32), "g": wrong}, engine="onnx-reference")
    assert runs_here == [["Unique", "ReduceMax", "Cast", "If"]]
    error = refused(source, {"x": np.ones(6, np.float32), "g": wrong}, "onnx-reference")
    assert (error.code, error.node) == ("TS302", "graph/If[3].then_branch/Split[1]")


def test_positions_are_checked_where_they_are_known(runs_here: list[list[str]]) -> None:
    source = model(
        [node("SplitToSequence", "x", "s"), node("SequenceAt", "s at", "a")],
        [tensor("x", shape=["n"]), tensor("at", INT64, [])],
        [tensor("a")],
    )
    ts.run(source, {"x": DATA, "at": np.array(-6)}, engine="onnx-reference")
    error = refused(source, {"x": DATA, "at": np.array(6)}, "onnx-reference")
    assert error.code == "TS511"
    assert runs_here == []


def test_the_former_name_of_our_engine_is_an_alias() -> None:
    assert ts.session(split_model(), engine="numpy").engine == "tensorsplit"
    outputs = ts.run(split_model(), {"x": DATA}, engine="numpy")
    assert list(outputs) == list(ts.run(split_model(), {"x": DATA}, engine="tensorsplit"))


@pytest.mark.parametrize("name", ["model.onnx", "model.pb"])
def test_an_engine_gets_the_path_of_an_onnx_file_and_the_bytes_of_any_other(
    tmp_path: Path, name: str
) -> None:
    """By their names engines take other files for other formats."""
    onnx.save(split_model(), tmp_path / name)
    content = outside._content(read_model(tmp_path / name), frozenset())
    assert content == (
        str(tmp_path / name) if name == "model.onnx" else (tmp_path / name).read_bytes()
    )


@foreign_engine
@pytest.mark.parametrize("is_calculated", [True, False])
def test_only_openvino_has_splits_checked_and_only_by_lengths_that_are_calculated(
    engine: Any, monkeypatch: pytest.MonkeyPatch, *, is_calculated: bool
) -> None:
    monkeypatch.setattr(outside, "_PROBE", "tests.missing")
    source = model(
        [
            node("Sqrt", "squares", "r"),
            node("Cast", "r", "lengths", to=INT64),
            node("Split", "x lengths" if is_calculated else "x split", "a b"),
        ],
        [tensor("x", shape=[6]), tensor("squares", shape=[2])],
        [tensor("a"), tensor("b")],
        split=np.array([2, 4]),
    )
    inputs = {"x": DATA, "squares": np.array([4, 16], np.float32)}
    with ts.session(source, engine=engine, isolate=False) as session:
        if is_calculated and engine == "openvino":
            with pytest.raises(ts.SplitError, match=r"TS602.*tests\.missing"):
                session.run(inputs)
        else:
            np.testing.assert_array_equal(session.run(inputs)["b"], DATA[2:])


def test_strings_are_told_from_other_arrays_and_lists() -> None:
    numbers, strings = np.zeros(2, np.float32), np.array(["a", "b"], object)
    assert outside._has_strings([numbers, [numbers], strings])
    assert not outside._has_strings([numbers, [numbers]])
