"""Loops and branches of IRs that OpenVINO runs wrongly, or not at all: through every tool."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

import tensorsplit as ts
from tests.model.openvino_ir import ir_checks, layers
from tests.model.openvino_ir.ir_checks import CHECKS, IrCase
from tests.model.programs import Array, Graph, Program, Step, declaration, one
from tests.model.shrinking import constant

pytestmark = [
    pytest.mark.engine("openvino"),
    pytest.mark.filterwarnings("ignore:.*lengths that are fed are cut"),
]

FLOATS = np.random.default_rng(5).standard_normal((4, 3), np.float32)
WORDS = np.array(["b", "", "\N{LATIN SMALL LETTER E WITH ACUTE}a"], object)
STATE = FLOATS[:2]


def graph(
    steps: Sequence[Step],
    fed: Mapping[str, Array],
    outputs: Sequence[str],
    shapes: Mapping[str, Sequence[Any]],
) -> Graph:
    declared = {name: declaration(name, value, shapes[name]) for name, value in fed.items()}
    return Graph(steps, [*fed], outputs, declared, fed)


def case_of(made: Graph, *more: Mapping[str, Array]) -> IrCase:
    """Make the case of a graph, with the data that it was made of, and other data."""
    feeds = [{name: made.samples[name] for name in made.inputs}, *map(dict, more)]
    case = ir_checks.case_of(Program(made, {}, 24, 10, feeds), is_careful=True)
    assert case is not None
    assert case.legal
    return case


def looped(
    op_type: str,
    data: Array,
    steps: Sequence[Step],
    ends: Sequence[str],
    *,
    axis: int = 0,
    used: Sequence[str] = ("state", "joined", "last"),
    is_open: bool = False,
) -> Graph:
    """A loop over ``row``; its body carries ``s``, and reads ``w``, both of two rows."""
    row, fed = data.take([0], axis) if data.size else data, {"x": data, "s": STATE, "w": STATE}
    inner = {"row": row, "t": STATE, "v": STATE}
    shapes = {name: ["?"] * value.ndim if is_open else value.shape for name, value in fed.items()}
    rows = ["?"] * data.ndim if is_open else [*data.shape]
    rows[axis] = 1
    body = graph(steps, inner, ends, {"row": rows, "t": shapes["s"], "v": shapes["w"]})
    options = {"axis": axis, "joined": axis, "rounds": data.shape[axis], "body": body}
    outputs = ["state", "joined", "last"]
    step = Step(op_type, ["x", "s", "w"], outputs, options, layers.iterated, "opset5")
    return graph([step], fed, used, shapes)


SHAPE, AGAIN = (
    Step(
        "ShapeOf",
        [fed],
        [given],
        {"output_type": "i64"},
        one(lambda v: np.array(v.shape)),
        "opset3",
    )
    for fed, given in (("row", "h"), ("h", "g"))
)
EMPTY = np.zeros((0, 4), np.float32)

LOOPS = {
    "rows of which the shape of the shape is read": (
        looped("TensorIterator", FLOATS, [SHAPE, AGAIN], ["t", "g", "v"]),
        "rows",
    ),
    "rows of which nothing that is used is calculated": (
        looped(
            "TensorIterator",
            FLOATS,
            [constant("k", np.ones((1, 3)))],
            ["t", "k", "row"],
            used=["joined"],
        ),
        "rows",
    ),
    "rows that are not read, and a state that starts as another": (
        looped("TensorIterator", FLOATS, [constant("k", np.ones(1))], ["v", "k", "k"]),
        "carries",
    ),
    "rows of strings": (looped("Loop", WORDS, [], ["t", "row", "v"], used=["joined"]), "strings"),
    "what may be empty, along the second axis": (
        looped("Loop", EMPTY, [], ["t", "row", "v"], axis=1, used=["joined"], is_open=True),
        "another axis",
    ),
}


@pytest.mark.parametrize(("made", "said"), LOOPS.values(), ids=LOOPS)
def test_a_loop_that_openvino_does_not_run_right_is_found(made: Graph, said: str) -> None:
    case = case_of(made)
    assert said in str(ts.check(case.path, target="openvino"))
    for check in CHECKS.values():
        check(case)


def test_loops_of_what_is_never_empty_or_of_which_the_shape_is_read_are_right() -> None:
    made = looped("Loop", FLOATS, [], ["t", "row", "v"], axis=1, used=["joined"])
    assert ts.check(case_of(made).path, target="openvino") == []
    measure = Step(
        "ShapeOf",
        ["joined"],
        ["n"],
        {"output_type": "i64"},
        one(lambda v: np.array(v.shape)),
        "opset3",
    )
    words = looped("Loop", WORDS, [], ["t", "row", "v"], used=["joined"])
    case = case_of(replace(words, steps=[*words.steps, measure], outputs=["n"]))
    assert ts.check(case.path, target="openvino") == []
    assert case.fault == ""
    read = looped("TensorIterator", FLOATS[:, 0], [SHAPE], ["t", "h", "v"], used=["joined"])
    assert ts.check(case_of(read).path, target="openvino") == []


@pytest.mark.parametrize("is_true", [True, False])
def test_a_branch_that_gives_no_elements_gets_no_loop(*, is_true: bool) -> None:
    """OpenVINO does not load a Loop of an empty constant and of an open length."""
    data, lengths = np.zeros((0, 6, 0), np.int16), np.zeros(2, np.int64)
    kind = {"a": data}
    then = graph([constant("k", data)], kind, ["k"], {"a": [0, 6, "?"]})
    other = graph([], kind, ["a"], {"a": [0, 6, "?"]})
    options = {"then_body": then, "else_body": other}
    steps = [
        constant("axis", np.array(2)),
        constant("c", np.array([is_true])),
        Step("VariadicSplit", ["x", "axis", "l"], ["p", "q"], {}, layers.variadic_split, "opset1"),
        Step("If", ["c", "p"], ["y"], options, layers.if_, "opset8"),
    ]
    fed: dict[str, Array] = {"x": data, "l": lengths}
    made = graph(steps, fed, ["y"], {name: value.shape for name, value in fed.items()})
    case = case_of(made)
    assert b"Loop" not in ts.lower(case.path, target="openvino").text
    for check in CHECKS.values():
        check(case)


@pytest.mark.parametrize("is_true", [True, False])
def test_what_an_if_gives_to_a_layer_goes_through_a_loop(*, is_true: bool) -> None:
    """Its first run would have it of a wrong shape."""
    fed: dict[str, Array] = {"x": np.arange(24, dtype=np.float32).reshape(2, 6, 2)}
    shape: list[int | str] = ["?", 6, "?"]

    def negated(name: str, result: str) -> Step:
        return Step("Negative", [name], [result], {}, one(np.negative), "opset1")

    then = graph([negated("a", "b")], {"a": fed["x"]}, ["b"], {"a": shape})
    other = graph([], {"a": fed["x"]}, ["a"], {"a": shape})
    options = {"then_body": then, "else_body": other}
    chosen = Step("If", ["c", "x"], ["y"], options, layers.if_, "opset8")
    steps = [constant("c", np.array([is_true])), chosen, negated("y", "z")]
    case = case_of(graph(steps, fed, ["z"], {"x": shape}))
    assert ts.lower(case.path, target="openvino").text.count(b'type="Loop"') == 1
    for check in CHECKS.values():
        check(case)


@pytest.mark.parametrize(("step", "size"), [("Concat <axis = 0>", 4), ("Add", 2)])
@pytest.mark.parametrize("rounds", [0, 1])
def test_a_loop_of_no_round_gives_what_it_was_given(
    rounds: int, step: str, size: int, tmp_path: Path
) -> None:
    """OpenVINO says that it gives what one round does, and does not run it."""
    import openvino

    model = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["": 18]> g (float[2] x) => (float[K] y)'
        f" <int64 n = {{{rounds}}}, bool c = {{1}}> {{ y = Loop(n, c, x) <body = b (int64 i,"
        f" bool k, float[2] s) => (bool g, float[{size}] u) {{ g = Identity(k)"
        f" u = {step}(s, s) }}> }}"
    )
    onnx.save(model, tmp_path / "m.onnx")
    path = tmp_path / "m.xml"
    openvino.save_model(openvino.convert_model(tmp_path / "m.onnx"), path)
    assert ("rounds may be 0" in str(ts.check(path, target="openvino"))) == (
        rounds == 0 and size == 4
    )
    (made,) = ts.infer_shapes(path).graph.output
    assert made.type.tensor_type.shape.dim[0].dim_value != 4
    x = np.ones(2, np.float32)
    assert ts.run(ts.convert(path, opset=18), {"x": x})["y"].shape == (size if rounds else 2,)


@pytest.mark.parametrize("op_type", ["Loop", "TensorIterator"])
@pytest.mark.parametrize("used", ["joined", "last"])
def test_parts_in_a_body_are_checked_whatever_else_it_gives_out(used: str, op_type: str) -> None:
    """OpenVINO leaves out what nothing reads after the loop."""
    steps = [
        constant("axis", np.array(1)),
        constant("k", np.array([1, 2, 0])),
        Step("VariadicSplit", ["row", "axis", "k"], [*"abc"], {}, layers.variadic_split, "opset1"),
        Step(
            "Concat", [*"abc"], ["j"], {"axis": 1}, one(lambda *v: np.concatenate(v, 1)), "opset1"
        ),
        Step("Negative", ["j"], ["n"], {}, one(np.negative), "opset1"),
    ]
    made = looped(op_type, FLOATS, steps, ["t", "n", "c"], used=[used], is_open=True)
    case = case_of(made, {"x": FLOATS[:, :2], "s": STATE, "w": STATE})
    assert len(case.illegal) == 1
    for check in CHECKS.values():
        check(case)


def test_a_tensor_iterator_without_rows_is_found() -> None:
    """OpenVINO does not run it, and does not load it where it knows so."""
    made = looped("TensorIterator", FLOATS, [], ["t", "row", "v"], is_open=True)
    case = case_of(made)
    assert "rows may be 0" in str(ts.check(case.path, target="openvino"))
    fed = {"x": FLOATS[:0], "s": STATE, "w": STATE}
    assert case.fault_of(case.path, [(fed, None)]) == ""
    text = case.path.read_text()
    case.path.write_text(
        text.replace('shape="?,?" element_type="f32"', 'shape="0,3" element_type="f32"', 1)
    )
    (found,) = [x for x in ts.check(case.path, "openvino") if x.severity == "error"]
    assert "without rows" in found.message
    assert "iteration component" in case.fault_of(case.path, [(fed, None)])
