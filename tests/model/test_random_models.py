"""Random legal models through every tool; ``--seed N`` tries others, from that seed on.

``python -m tests.fuzz.graphs`` puts thousands of larger ones through the same, and the engines.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import pytest

import tensorsplit as ts
from tensorsplit.engines.process import EngineProcess
from tensorsplit.model.infer.seen import seen
from tensorsplit.model.profiles import load
from tests.fuzz import graphs
from tests.model.programs import Graph, NotExact, Program, Refused, Scope, Step, evaluate, loop
from tests.model.random_checks import Case, Wrong, case_of, checks, failure, without_defaults
from tests.model.random_models import Generator, random_program
from tests.model.shrinking import shrunk

HOLD = ("run", "check", "values")
OURS = list(checks(()))


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Make a test for each seed."""
    if "seed" in metafunc.fixturenames:
        first = metafunc.config.getoption("seed")
        metafunc.parametrize("seed", range(first, first + 30))


@pytest.fixture
def case(seed: int) -> Case:
    """The model of a seed, with data."""
    return case_of(Generator(seed, nodes=(5, 15)).make(), seed)


@pytest.mark.parametrize("name", [name for name in OURS if name in HOLD])
def test_a_tool_is_right(case: Case, name: str) -> None:
    checks(())[name](case)


@pytest.mark.parametrize("name", [name for name in OURS if name.startswith(("run", "conv", "low"))])
def test_a_tool_is_right_whatever_the_order_of_the_nodes(seed: int, name: str) -> None:
    program = replace(Generator(seed, nodes=(5, 10)).make(), shuffle=seed)
    checks(())[name](case_of(program, seed))


@pytest.mark.engine
@pytest.mark.parametrize(
    "name", [name for name in checks() if name in HOLD and name not in checks(())]
)
def test_an_engine_gives_the_same(case: Case, name: str) -> None:
    pytest.importorskip("onnxruntime")
    pytest.importorskip("openvino")
    checks()[name](case)


@pytest.fixture(scope="module")
def openvino() -> Iterator[EngineProcess]:
    """A process that says which shapes OpenVINO sees."""
    pytest.importorskip("openvino")
    process = EngineProcess("openvino", "tests.engines.guarded:shapes_in_openvino")
    yield process
    process.close()


@pytest.mark.engine("openvino")
def test_openvino_knows_all_that_we_take_it_to_know(case: Case, openvino: EngineProcess) -> None:
    made, view = case.lower("openvino"), load("openvino").view
    if made is None or view is None:
        return
    made = without_defaults(made)
    try:
        shapes = openvino.call([made.SerializeToString()])
    except ts.SplitError as error:
        if error.code != "TS603":  # it lacks an operator that is none of ours
            raise
        return
    model = ir.serde.deserialize_model(made)
    facts = seen(model, view)
    for value in (output for node in model.graph for output in node.outputs):
        taken = facts.tensor(value).shape
        if taken is not None and value.name in shapes:
            pairs = zip(taken, shapes[value.name], strict=True)
            assert all(dim is None or dim == known for dim, known in pairs), value.name


@pytest.fixture(scope="module")
def programs() -> list[Program]:
    """Some programs."""
    return [random_program(seed) for seed in range(60)]


class TestPrograms:
    """What is generated: many operators, at all opsets, legal and illegal data."""

    def test_a_loop_that_doubles_what_it_carries_ends(self) -> None:
        double = Step("Concat", ["x", "x"], ["y"], {}, lambda v, *_: [np.concatenate(v)])
        go = Step("Identity", ["c"], ["d"], {}, lambda v, *_: v)
        body = Graph([go, double], ["n", "c", "x"], ["d", "y"], {}, {})
        step = Step("Loop", ["times", "", "z"], ["r"], {"body": body}, loop)
        few, many = ({"times": np.array(n), "z": np.zeros(8)} for n in (3, 60))
        scope = Scope(few, {})
        evaluate([step], scope)
        assert scope.values["r"].shape == (64,)
        with pytest.raises(NotExact):
            evaluate([step], Scope(many, {}))

    def test_a_value_of_two_ranks_is_declared_without_one(self, programs: list[Program]) -> None:
        for program in programs:
            for feeds, values in case_of(program).legal:
                assert feeds
                for name, entry in program.graph.declared.items():
                    if isinstance(values[name], np.ndarray):
                        assert len(entry.type.tensor_type.shape.dim) == values[name].ndim

    def test_they_are_well_formed(self, programs: list[Program]) -> None:
        for program in programs:
            onnx.checker.check_model(program.model())

    def test_they_have_everything(self, programs: list[Program]) -> None:
        text = " ".join(onnx.printer.to_text(program.model()) for program in programs)
        for word in ("SequenceAt", "If (", "Loop (", "Scan (", "local.F0", "Resize", "TopK"):
            assert word in text
        for word in ("MatMul", "QuantizeLinear", "NonZero", "bfloat16[", "string[", "float[N"):
            assert word in text
        assert len({program.opset for program in programs}) > 15
        assert any(program.functions for program in programs)

    def test_some_data_is_illegal(self, programs: list[Program]) -> None:
        legal = refused = 0
        for program in programs:
            case = case_of(program)
            assert len(case.legal) > 0
            legal, refused = legal + len(case.legal), refused + len(case.illegal)
        assert legal > 90
        assert refused > 8


SPLIT = """
<ir_version: 8, opset_import: ["": 13]>
g (float[N] x, int64[2] l) => (float[?] b) { a, b = Split(x, l) }
"""


def case_of_split() -> Case:
    """A split with lengths that are fed, and what it must refuse."""
    x = np.arange(5, dtype=np.float32)
    legal = {"x": x, "l": np.array([2, 3])}
    return Case(
        onnx.parser.parse_model(SPLIT),
        legal=[(legal, {**legal, "a": x[:2], "b": x[2:]})],
        illegal=[{"x": x, "l": np.array([2, 2])}],
        opsets=[18],
    )


class TestChecks:
    """Each check sees a tool that is wrong."""

    def test_all_is_well(self) -> None:
        for name, check in checks(()).items():
            check(case_of_split())
            assert name

    def other(self, *_: object, **__: object) -> onnx.ModelProto:
        """The parts exchanged."""
        made = onnx.parser.parse_model(SPLIT)
        made.graph.node[0].output[:] = ["b", "a"]
        return made

    def unguarded(self, *_: object, **__: object) -> onnx.ModelProto:
        """Slices, which refuse nothing."""
        return onnx.parser.parse_model("""
            <ir_version: 8, opset_import: ["": 13]>
            g (float[N] x, int64[2] l) => (float[?] b) {
                o = Constant<value_ints = [1]>()
                i = Constant<value = int64[1] {0}>()
                n = Gather(l, i)
                s = Shape(x)
                b = Slice(x, n, s)
            }""")

    @pytest.mark.parametrize(
        ("name", "tool"),
        [("convert", "convert"), ("lower portable", "lower"), ("infer", "infer_shapes")],
    )
    def test_other_values(self, name: str, tool: str, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(ts, tool, self.other)
        with pytest.raises(Wrong, match="values: b is"):
            checks(())[name](case_of_split())

    @pytest.mark.parametrize(
        ("name", "tool"), [("convert", "convert"), ("lower portable", "lower")]
    )
    def test_a_lost_refusal(self, name: str, tool: str, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(ts, tool, self.unguarded)
        with pytest.raises(Wrong, match="not refused"):
            checks(())[name](case_of_split())

    @pytest.mark.engine
    @pytest.mark.parametrize("engine", ["onnxruntime", "openvino"])
    def test_a_lost_refusal_in_an_engine(
        self, engine: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        pytest.importorskip(engine)
        case = case_of_split()
        case.plain = []
        monkeypatch.setattr(ts, "lower", self.unguarded)
        with pytest.raises(Wrong, match="not refused"):
            checks()[f"run {engine}"](case)

    @pytest.mark.parametrize("shape", [[3], ["N"], [None, None], ["N - 3"]])
    def test_a_shape_that_is_not_so(
        self, shape: list[Any], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def inferred(model: onnx.ModelProto) -> onnx.ModelProto:
            made = onnx.ModelProto()
            made.CopyFrom(model)
            made.graph.value_info.append(onnx.helper.make_tensor_value_info("a", 1, shape))
            return made

        monkeypatch.setattr(ts, "infer_shapes", inferred)
        if shape == ["N - 3"]:  # which is right
            checks(())["infer"](case_of_split())
            return
        with pytest.raises(Wrong, match="inferred"):
            checks(())["infer"](case_of_split())

    def test_a_model_that_was_changed(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def changed(model: onnx.ModelProto, **_: object) -> list[Any]:
            model.graph.name = "another"
            return []

        monkeypatch.setattr(ts, "check", changed)
        error = failure(checks(())["check"], case_of_split())
        assert "no longer the same" in str(error)


class TestShrinking:
    """What fails is found in as few nodes as can be."""

    @pytest.mark.parametrize("op_type", ["Split", "Transpose", "Scan", "TopK"])
    def test_one_node_stays(self, op_type: str) -> None:
        def fails(program: Program) -> bool:
            graph = case_of(program).model.graph  # which has to be a model
            return any(node.op_type == op_type for node in graph.node)

        program = next(each for each in map(random_program, range(60)) if fails(each))
        smallest = shrunk(program, fails)
        assert len(program.graph.steps) > 5
        assert len([step for step in smallest.graph.steps if step.op_type != "Constant"]) == 1
        assert len(smallest.feeds) == 1
        onnx.checker.check_model(smallest.model())

    def test_what_is_refused_stays_refused(self) -> None:
        def fails(program: Program) -> bool:
            return bool(case_of(program).illegal)

        program = next(each for each in map(random_program, range(60)) if fails(each))
        smallest = shrunk(program, fails)
        with pytest.raises(Refused):
            smallest.values(smallest.feeds[0])
        assert len(smallest.graph.steps) < 4


class TestRunner:
    def test_a_run(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        arguments = ["--models", "2", "--processes", "1", "--engines", "--keep", str(tmp_path)]
        graphs.main([*arguments, "--seed", "7"])
        text = capsys.readouterr().out
        assert text.startswith("random models from --seed 7\n")
        assert "2 models in " in text
        graphs.main([*arguments[:1], "0"])
        assert "--seed 7\n" not in capsys.readouterr().out

    def test_a_failure_can_be_checked_again(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        infer_shapes = ts.infer_shapes

        def wrong(model: onnx.ModelProto) -> Any:
            if any(node.op_type == "Transpose" for node in model.graph.node):
                raise KeyError("x")
            return infer_shapes(model)

        monkeypatch.setattr(ts, "infer_shapes", wrong)
        seed = next(
            n
            for n in range(60)
            if any(node.op_type == "Transpose" for node in random_program(n).model().graph.node)
        )
        outcome = graphs.check_seed(seed, (), tmp_path)
        assert "infer" in [name for name, *_ in outcome.failures]
        folder = tmp_path / f"{seed}-infer"
        assert len(onnx.load(folder / "model.onnx").graph.node) == 1
        assert graphs.main(["--again", str(folder)]) == 1
        assert "KeyError" in capsys.readouterr().out
        monkeypatch.undo()
        assert graphs.main(["--again", str(folder)]) == 0
