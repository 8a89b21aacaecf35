"""Sessions: a model is read, checked, compiled and loaded once, and run safely many times."""

from __future__ import annotations

import copy
import gc
import os
import pickle
import signal
import sys
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx.parser import parse_model

import tensorsplit as ts
from tensorsplit.engines import loaded, messages, outside
from tensorsplit.engines import sessions as engine_sessions
from tensorsplit.engines.process import process_of
from tensorsplit.model import reading
from tensorsplit.model.infer import analysis, validation
from tensorsplit.model.run import evaluator, reference_calls
from tests.engines.models import FLOAT, INT64, model, node, split_model, tensor
from tests.engines.test_run import DATA, every_engine, external_model, foreign_engine
from tests.interpreters import printed
from tests.model.ir_files import X, cut_file
from tests.refusals import refused

LINUX = pytest.mark.skipif(sys.platform != "linux", reason="needs /proc and memfd")
LARGE = np.arange(1 << 20, dtype=np.float32)


def moved(*shape: int | str) -> onnx.ModelProto:
    """What is fed, and its halves."""
    return model(
        [node("Identity", "x", "same"), node("Split", "x", "a b", num_outputs=2)],
        [tensor("x", FLOAT, list(shape))],
        [tensor("same"), tensor("a"), tensor("b")],
    )


def fed_lengths(*more: onnx.NodeProto) -> onnx.ModelProto:
    nodes = [*more, node("Relu", "x", "r"), node("Split", "r lengths", "a b")]
    inputs = [tensor("x", shape=["n"])] + ([] if more else [tensor("lengths", INT64, [2])])
    if more:
        inputs.append(tensor("given", INT64, ["k"]))
    return model(nodes, inputs, [tensor("a"), tensor("b")])


def refusal(session: ts.Session, inputs: Any) -> str | None:
    with pytest.raises(ts.SplitError) as caught:
        session.run(inputs)
    return caught.value.code


def count(monkeypatch: pytest.MonkeyPatch, owner: Any, name: str) -> list[tuple[Any, ...]]:
    """The calls of a function from now on."""
    calls: list[tuple[Any, ...]] = []
    function = getattr(owner, name)

    def counted(*arguments: Any, **options: Any) -> Any:
        calls.append(arguments)
        return function(*arguments, **options)

    monkeypatch.setattr(owner, name, counted)
    return calls


@every_engine
@pytest.mark.parametrize("isolate", [None, False])
def test_a_session_runs_many_times(engine: Any, isolate: bool | None) -> None:
    with ts.session(moved("n"), engine=engine, isolate=isolate) as session:
        assert session.engine == engine
        for data in (DATA, DATA * 2, DATA[:4]):
            made = session.run({"x": data})
            assert list(made) == ["same", "a", "b"]
            np.testing.assert_array_equal(made["same"], data)
            np.testing.assert_array_equal(made["b"], data[len(data) // 2 :])
            assert all(array.flags.writeable for array in made.values())
        assert refusal(session, {"x": DATA.astype(np.float64)}) == "TS508"
        assert refusal(session, {}) == "TS505"
    assert refusal(session, {"x": DATA}) == "TS703"
    session.close()


def test_inputs_and_outputs_are_described(tmp_path: Path) -> None:
    session = ts.session(fed_lengths())
    assert [(e.name, e.element_type, e.shape, e.kind) for e in session.inputs] == [
        ("x", "float", ("n",), "tensor"),
        ("lengths", "int64", (2,), "tensor"),
    ]
    assert [entry.name for entry in session.outputs] == ["a", "b"]
    assert session.engine == "tensorsplit"
    assert repr(session) == "<Session: tensorsplit, inputs: 'x', 'lengths'>"
    many = [tensor(name, shape=[2]) for name in "cdefgxy"]
    session = ts.session(model([node("Relu", "x", "a")], many, [tensor("a")]))
    assert repr(session) == "<Session: tensorsplit, inputs: 'c', 'd', 'e', 'f', 'g', 'x'>"
    session.close()
    assert repr(session) == "<Session: tensorsplit, closed>"
    session = ts.session(cut_file().save(tmp_path))
    assert [entry.name for entry in session.inputs] == ["x"]
    assert session.outputs[0].name == "part0"
    np.testing.assert_array_equal(session.run({"x": X})["part0"], X[:2])


def test_it_is_read_and_compiled_once_and_shapes_are_checked_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    reads = count(monkeypatch, reading, "read_message")
    compiles = count(monkeypatch, evaluator, "compile_model")
    session = ts.session(moved("n"))
    analyses = count(monkeypatch, validation, "analyse")
    kernels = count(monkeypatch, reference_calls, "ReferenceEvaluator")
    for _ in range(3):
        for size in (6, 4):
            session.run({"x": DATA[:size]})
    assert [len(calls) for calls in (reads, compiles, analyses, kernels)] == [1, 1, 2, 1]


@pytest.mark.parametrize("engine", ["tensorsplit", "onnx-reference"])
def test_fed_lengths_are_checked_each_time(engine: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    data = np.ones(60, np.float32)

    def fed(*lengths: int) -> dict[str, Any]:
        return {"x": data, "lengths": np.array(lengths)}

    session = ts.session(fed_lengths(), engine=engine, isolate=False)
    assert refusal(session, fed(-1, 61)) == "TS301"
    assert session.run(fed(10, 50))["b"].shape == (50,)
    nodes: list[list[str]] = []
    analyse = analysis.analyse

    def noticed(*arguments: Any, **options: Any) -> Any:
        nodes.append([node.op_type for node in options["nodes"]])
        return analyse(*arguments, **options)

    monkeypatch.setattr(validation, "analyse", noticed)
    for first in (20, 30, 20):
        assert session.run(fed(first, 60 - first))["a"].size == first
    assert nodes == [["Split"], ["Split"]]
    assert refusal(session, fed(20, 50)) == "TS302"
    assert refusal(session, {**fed(20, 40), "x": data[:5]}) == "TS302"


def test_elements_that_decide_nothing_are_not_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    nodes = [node("Gather", "table ids", "x"), node("Split", "x", "a b", axis=1, num_outputs=2)]
    source = model(
        nodes,
        [tensor("ids", INT64, ["n"])],
        [tensor("a"), tensor("b")],
        table=np.ones((9, 4), np.float32),
    )
    session = ts.session(source)
    analyses = count(monkeypatch, validation, "analyse")
    for first in range(4):
        session.run({"ids": np.array([first, 2])})
    assert len(analyses) == 1


def test_computed_lengths_are_checked_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    source = fed_lengths(node("Unique", "given", "lengths"))
    seen: list[Any] = []

    def run(fed: Any, _: Any) -> dict[str, Any]:
        seen.append(fed)
        return {}

    monkeypatch.setattr(outside.OutsideModel, "_load", lambda *_, **__: run)
    session = ts.session(source, engine="onnx-reference")
    for given, code in (([2, 4], ""), ([2, 5], "TS302"), ([1, 5, 5], ""), ([1], "TS302")):
        if code:
            assert refusal(session, {"x": DATA, "given": np.array(given)}) in (code, "TS305")
        else:
            session.run({"x": DATA, "given": np.array(given)})
    assert len(seen) == 2


def test_what_is_wrong_whatever_is_fed_is_refused_at_once() -> None:
    for engine in ("tensorsplit", "onnx-reference"):
        with pytest.raises(ts.SplitError, match="TS302"):
            ts.session(split_model(2, 3), engine=engine)


@pytest.mark.parametrize(
    ("engine", "is_computed", "loader"),
    [
        ("openvino", True, "tensorsplit.engines.openvino_probe:load_guarded"),
        ("openvino", False, "tensorsplit.engines.adapters:load_openvino"),
        ("onnxruntime", True, "tensorsplit.engines.adapters:load_onnxruntime"),
    ],
)
def test_openvino_gets_guards_where_lengths_are_computed(
    engine: str, is_computed: bool, loader: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would read outside of the data. What our own rules can calculate was checked before."""
    loaded = list[str]()

    class Loaded:
        def __init__(self, process: object, loader: str, arguments: object) -> None:
            loaded.append(loader)

        def __call__(self, feeds: object, outputs: object) -> dict[str, Any]:
            return {}

    monkeypatch.setattr(outside, "LoadedModel", Loaded)
    made = fed_lengths(node("Unique", "given", "lengths")) if is_computed else fed_lengths()
    source = reading.read_model(made)
    model = outside.OutsideModel(engine, source, source, is_isolated=True)
    model.run({"x": DATA, "given" if is_computed else "lengths": np.array([2, 4])})
    assert loaded == [loader]


def nested_calls(depth: int) -> onnx.ModelProto:
    """A function that stands for 2 ** depth nodes: each calls another one twice."""
    head = '<domain: "d", opset_import: ["": 18, "d": 1]>'
    calls = [
        f"{head} f{number} (x) => (y) {{ a = d.f{number - 1}(x) y = d.f{number - 1}(a) }}"
        for number in range(1, depth + 1)
    ]
    return parse_model(
        f"""<ir_version: 9, opset_import: ["": 18, "d": 1]>
        g (float[4] x) => (float[4] y) {{ y = d.f{depth}(x) }}
        {head} f0 (x) => (y) {{ y = Neg(x) }} {" ".join(calls)}"""
    )


def test_functions_that_stand_for_too_many_nodes_run_in_our_engine_alone() -> None:
    """Other engines put the functions in the place of their calls: 16,384 nodes at most."""
    ts.session(nested_calls(14), engine="onnx-reference").close()
    with refused("TS502", "use engine='tensorsplit', which runs each function as it is"):
        ts.session(nested_calls(15), engine="onnx-reference")
    ts.session(nested_calls(15)).close()


@pytest.mark.parametrize("limits", [{}, {"isolate": True}, {"timeout": 60}])
def test_an_unknown_target_is_refused_at_once(limits: dict[str, Any]) -> None:
    for engine in ("tensorsplit", "onnx-reference"):
        targets: list[Any] = ["ort", "", "tensorsplit", "nowhere.json"]
        for target in targets:
            with pytest.raises(ts.SplitError) as caught:
                ts.session(split_model(2, 4), engine=engine, lower=target, **limits)
            assert caught.value.code == ("TS703" if target.endswith("json") else "TS601")
    ts.session(split_model(2, 4), lower="portable").close()


@pytest.mark.parametrize("engine", ["tensorsplit", "onnx-reference"])
def test_nobody_can_change_the_constants_of_a_session(engine: Any) -> None:
    source = model(
        [node("Identity", "c", "same"), node("Split", "c", "a b", num_outputs=2)],
        [],
        [tensor("same"), tensor("a"), tensor("b"), tensor("c")],
        c=DATA,
    )
    session = ts.session(source, engine=engine, isolate=False)
    for _ in range(2):
        made = session.run({})
        np.testing.assert_array_equal(made["a"], DATA[:3])
        for array in made.values():
            array[:] = 0
    del source.graph.node[:]
    source.graph.initializer[0].raw_data = bytes(24)
    np.testing.assert_array_equal(session.run({})["b"], DATA[3:])


def test_joined_memory_is_the_callers_as_long_as_there_is_a_view() -> None:
    source = model(
        [node("Concat", "x y", "z", axis=1)],
        [tensor("x", shape=["n", "m"]), tensor("y", shape=["n", "k"])],
        [tensor("z")],
    )
    session = ts.session(source)
    data = LARGE.reshape(1024, 1024)
    kept = [session.run({"x": data + step, "y": data})["z"][1:] for step in range(3)]
    for step, array in enumerate(kept):
        np.testing.assert_array_equal(array[:, :1024], data[1:] + step)
        array[:] = 0
    again = session.run({"x": data, "y": data[:, :2]})["z"]
    np.testing.assert_array_equal(again, np.concatenate([data, data[:, :2]], 1))
    assert refusal(session, {"x": data, "y": data[:2]}) == "TS510"


def loads(session: ts.Session) -> int:
    """How many models the process of the engine holds."""
    held: int = process_of(session.engine).call((), adapter="tests.engines.test_sessions:held")
    return held


def held() -> int:
    return len(loaded._loaded)


def test_the_engine_loads_a_model_once_and_forgets_it() -> None:
    first = ts.session(moved("n"), engine="onnx-reference")
    first.run({"x": DATA})
    before, pid = loads(first), process_of("onnx-reference").pid
    second = ts.session(split_model(), engine="onnx-reference")
    for _ in range(2):
        assert second.run({"x": DATA})["a"].shape == (2,)
        assert first.run({"x": DATA})["a"].shape == (3,)
    assert loads(first) == before + 1
    second.close()
    assert loads(first) == before
    ts.run(moved("n"), {"x": DATA}, engine="onnx-reference")
    assert loads(first) == before
    third: Any = ts.session(moved("n"), engine="onnx-reference")
    third.run({"x": DATA})
    third.cycle = third
    del third
    gc.collect()
    assert loads(first) == before
    assert process_of("onnx-reference").pid == pid


def test_sessions_in_threads_share_an_engine() -> None:
    sessions = [
        ts.session(split_model(first, 6 - first), engine="onnx-reference") for first in (1, 2, 3)
    ]

    def run(number: int) -> bool:
        made = sessions[number % 3].run({"x": DATA + number})
        return np.array_equal(np.concatenate([made["a"], made["b"]]), DATA + number)

    with ThreadPoolExecutor(6) as threads:
        assert all(threads.map(run, range(60)))


def test_a_crash_ends_the_model_and_the_next_call_loads_it_again() -> None:
    sessions = [ts.session(split_model(), engine="onnx-reference") for _ in range(2)]
    for session in sessions:
        session.run({"x": DATA})
    with pytest.raises(ts.SplitError, match="TS604"):
        process_of("onnx-reference").call((), adapter="os:abort")
    for session in (*sessions, *sessions):
        assert session.run({"x": DATA})["b"].shape == (4,)
    os.kill(process_of("onnx-reference").pid or 0, signal.SIGKILL)
    assert sessions[0].run({"x": DATA})["b"].shape == (4,)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_fork_has_engines_of_its_own() -> None:
    printed("""
        import os, gc
        import tensorsplit as ts
        from tests.engines.models import split_model
        from tests.engines.test_run import DATA
        make = lambda **options: ts.session(split_model(), **options)
        all = [make(engine="onnx-reference"), make(isolate=True), make()]
        run = lambda: [session.run({"x": DATA})["b"].shape for session in all]
        assert run() == [(4,)] * 3
        child = os.fork()
        if child == 0:
            assert run() == [(4,)] * 3
            all.clear(), gc.collect()
            raise SystemExit(0)
        assert os.waitpid(child, 0)[1] == 0
        assert run() == [(4,)] * 3
    """)


def test_our_own_engine_runs_elsewhere_where_it_is_asked_to(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(engine_sessions, "CompiledModel", None)
    with ts.session(moved("n"), isolate=True) as session:
        np.testing.assert_array_equal(session.run({"x": DATA})["same"], DATA)


@pytest.mark.skipif(sys.platform == "win32", reason="there are no such signals here")
@pytest.mark.parametrize("isolate", [True, False])
def test_an_interrupted_run_can_be_followed_by_another(isolate: bool) -> None:
    from tests.engines.test_limits import counting

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    session = ts.session(counting(), isolate=isolate)
    timer = threading.Timer(1.5, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            session.run({"times": np.array(10**8), "x": DATA})
    finally:
        timer.join()
        signal.signal(signal.SIGINT, before)
    assert session.run({"times": np.array(2), "x": DATA})["end"] == 2


@pytest.mark.parametrize("again", [pickle.dumps, copy.copy, copy.deepcopy])
def test_a_session_is_not_copied(again: Any) -> None:
    with (
        ts.session(moved("n")) as session,
        pytest.raises(TypeError, match=r"^a Session can't be copied or pickled; make one in each"),
    ):
        again(session)


def test_limits_hold_for_each_run() -> None:
    from tests.engines.test_limits import counting

    with ts.session(counting(), timeout=20) as session:
        assert [session.run({"times": np.array(k), "x": DATA})["end"] for k in (1, 2)] == [1, 2]
    with pytest.raises(ts.SplitError, match="TS703"):
        ts.session(counting(), timeout=1, isolate=False)
    with pytest.raises(ts.SplitError, match="TS703"):
        ts.session(counting(), lower=3)  # type: ignore[arg-type]


@pytest.mark.parametrize("isolate", ["no", 2, [], np.array([1, 0])])
def test_whether_a_session_is_isolated_is_true_or_false(isolate: Any) -> None:
    with pytest.raises(ts.SplitError, match=r"TS703.*'isolate'.*give True or False"):
        ts.session(moved("n"), isolate=isolate)


@pytest.mark.parametrize("limits", [{}, {"timeout": 60}])
@pytest.mark.parametrize("inputs", [None, 5, [DATA]])
def test_what_is_fed_is_a_mapping(inputs: Any, limits: Any) -> None:
    with ts.session(moved("n"), **limits) as session:
        assert refusal(session, inputs) == "TS703"


@pytest.mark.parametrize("engine", [None, 5, [], ["openvino"], np.array([2, 4]), np.array([])])
def test_an_engine_is_a_name(engine: Any) -> None:
    with pytest.raises(ts.SplitError, match=r"TS601.*'engine'.*the engines are tensorsplit"):
        ts.session(moved("n"), engine=engine)


@LINUX
def test_a_run_beyond_the_memory_can_be_followed_by_another() -> None:
    from tests.engines.test_limits import filled

    with ts.session(filled(), memory=1 << 30) as session:
        for _ in range(2):
            assert session.run({"n": np.array([8])})["sum"] == 0
            assert refusal(session, {"n": np.array([1 << 30])}) == "TS605"


@pytest.mark.engine("openvino")
@pytest.mark.parametrize("is_warned", [True, False])
def test_a_session_warns_of_what_a_lowered_model_does_wrongly(*, is_warned: bool) -> None:
    """Lengths beyond 32 bits that are fed, which are cut before any node sees them (D14)."""
    source = fed_lengths()
    if not is_warned:
        source.graph.input.pop()
        source.graph.initializer.append(onnx.numpy_helper.from_array(np.array([1, 2]), "lengths"))
    with warnings.catch_warnings(record=True) as given:
        warnings.simplefilter("always")
        ts.session(source, engine="openvino", lower=True).close()
    said = [each for each in given if issubclass(each.category, ts.SplitWarning)]
    assert any("(D14)" in str(each.message) for each in said) == is_warned
    assert all(each.filename == __file__ for each in said)


@foreign_engine
def test_an_engine_gets_a_lowered_model(engine: Any) -> None:
    nodes = [node("SplitToSequence", "x one", "s"), node("SequenceAt", "s at", "a")]
    source = model(
        nodes, [tensor("x", shape=[6]), tensor("at", INT64, [])], [tensor("a")], one=np.array(1)
    )
    with ts.session(source, engine=engine, lower=True) as session:
        assert session.run({"x": DATA, "at": np.array(-1)})["a"] == DATA[-1:]
        assert refusal(session, {"x": DATA, "at": np.array(6)}) == "TS511"
    with ts.session(source, engine=engine, lower="portable") as session:
        assert session.run({"x": DATA, "at": np.array(2)})["a"] == DATA[2:3]


@every_engine
def test_external_data_is_found(engine: Any, tmp_path: Path) -> None:
    session = ts.session(external_model(tmp_path), engine=engine)
    for _ in range(2):
        assert session.run({})["a"].tolist() == list(range(1, 11))


@foreign_engine
@pytest.mark.parametrize("in_file", [True, False])
def test_a_default_can_be_fed_in_one_run_and_left_out_in_the_next(
    engine: Any, tmp_path: Path, in_file: bool
) -> None:
    source = split_model()
    source.graph.input.append(tensor("split", INT64, [2]))
    path = tmp_path / "m.onnx"
    onnx.save(source, path)
    session = ts.session(path if in_file else source, engine=engine)
    for lengths in ([2, 4], [5, 1], [2, 4]):
        fed = {} if lengths[0] == 2 else {"split": np.array(lengths)}
        assert session.run({"x": DATA, **fed})["a"].size == lengths[0]


@LINUX
@pytest.mark.parametrize("has_files", [True, False])
def test_large_arrays_cross_in_files_of_memory(
    has_files: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = count(monkeypatch, messages, "_shared")
    session = ts.session(moved("n"), engine="onnx-reference")
    loads(session)
    if not has_files:

        def no_room(*_: object) -> int:
            raise OSError(28, "no space")

        monkeypatch.setattr(os, "memfd_create", no_room)
    mapped = count(monkeypatch, messages, "_mapped")
    files = len(list(Path("/proc/self/fd").iterdir()))
    kept = [session.run({"x": LARGE + step}) for step in range(3)]
    session.run({"x": DATA})
    assert len(made) == 3
    assert len(mapped) == 9  # the engine's files need not be ours
    assert len(list(Path("/proc/self/fd").iterdir())) == files
    for step, outputs in enumerate(kept):
        np.testing.assert_array_equal(outputs["same"], LARGE + step)
        np.testing.assert_array_equal(outputs["b"], LARGE[1 << 19 :] + step)
        outputs["same"][:] = -1
        np.testing.assert_array_equal(outputs["a"], LARGE[: 1 << 19] + step)
    session.close()
    process_of("onnx-reference").close()
    assert (kept[0]["a"] == LARGE[: 1 << 19]).all()


@LINUX
def test_a_file_that_can_be_changed_is_no_answer() -> None:
    import fcntl

    seals = {fcntl.F_SEAL_SHRINK, fcntl.F_SEAL_GROW, fcntl.F_SEAL_WRITE, fcntl.F_SEAL_SEAL}
    for missing in (*seals, 0):
        file = os.memfd_create("open", os.MFD_ALLOW_SEALING)
        os.truncate(file, 100)
        fcntl.fcntl(file, fcntl.F_ADD_SEALS, sum(seals - {missing}))
        with pytest.raises(ValueError, match=r"^$") if missing else nullcontext():
            messages._mapped(file, 100)
        with pytest.raises(ValueError, match=r"^$"):
            messages._mapped(file, 101)
        os.close(file)


def test_an_ir_runs_where_it_can(tmp_path: Path) -> None:
    path = cut_file().save(tmp_path)
    for isolate in (None, True):
        session = ts.session(path, engine="tensorsplit", isolate=isolate)
        for factor in (1, 2):
            np.testing.assert_array_equal(session.run({"x": X * factor})["part0"], X[:2] * factor)
    with pytest.raises(ts.SplitError, match="TS603"):
        ts.session(path, engine="onnx-reference")
