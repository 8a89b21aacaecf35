"""``tensorsplit explain``: the cut of an operator or of a model, drawn or refused."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import onnx
import pytest

from tests.cli.conftest import Command
from tests.model.build import (
    BOOL,
    FLOAT,
    INT64,
    function,
    graph,
    link,
    linked,
    model,
    node,
    tensor,
    value,
)
from tests.model.ir_files import IrFile

Refused = Callable[..., str]


def rows(out: str) -> list[list[str]]:
    """The table of parts: number, offset, size and shape of each."""
    lines = out.splitlines()
    start = next(n for n, line in enumerate(lines) if line.split()[:2] == ["part", "offset"])
    table = [line.split(maxsplit=3) for line in lines[start + 1 :]]
    return [row for row in table if len(row) == 4]


@pytest.mark.parametrize(
    "words",
    [
        ["onnx.Split-18", "7,4", "axis=0", "num_outputs=3"],
        ["onnx.Split-18", "--shape", "7x4", "--num-outputs", "3"],
        ["onnx.Split-18", "axis=-2", "num_outputs=3", "7×4"],
        ["Split", "7,4", "num_outputs=3"],
        ["Split", "7,4", "num_outputs=3", "--opset", "20"],
        ["onnx.Split", "--num-outputs", "3", "--axis", "-2", "7,4"],
    ],
)
def test_every_spelling_draws_the_same_cut(tensorsplit: Command, words: list[str]) -> None:
    ended = tensorsplit("explain", *words)
    assert (ended.status, ended.err) == (0, "")
    assert ended.out.startswith("onnx.Split-18")
    assert "axis 0 (7) of (7, 4): 3 parts" in ended.out
    assert rows(ended.out) == [
        ["0", "0", "3", "(3, 4)"],
        ["1", "3", "3", "(3, 4)"],
        ["2", "6", "1", "(1, 4)"],
    ]


def test_a_symbolic_dimension(tensorsplit: Command) -> None:
    ended = tensorsplit(
        "explain", "openvino.VariadicSplit-1", "N,8", "axis=0", "split_lengths=-1,2"
    )
    assert ended.status == 0
    assert "0     0       N - 2  (N - 2, 8)" in ended.out
    assert "1     N - 2   2      (2, 8)" in ended.out
    assert "not to scale" in ended.out


def test_a_scalar_is_a_chunk_length_and_a_list_are_lengths(
    tensorsplit: Command, refused: Refused
) -> None:
    chunks = tensorsplit("explain", "SplitToSequence", "5,4", "split=2")
    assert [row[2] for row in rows(chunks.out)] == ["2", "2", "1"]
    assert "sums to 2" in refused("TS302", "explain", "SplitToSequence", "5,4", "split=[2]")


def test_an_axis_that_is_dropped(tensorsplit: Command) -> None:
    out = tensorsplit("explain", "SplitToSequence", "2,4", "keepdims=0").out
    assert "Axis 0 is dropped" in out
    assert [row[3] for row in rows(out)] == ["(4,)", "(4,)"]


def test_floats_are_the_second_input_of_split_1(tensorsplit: Command) -> None:
    out = tensorsplit("explain", "onnx.Split-1", "7,4", "split=2.0,5.0").out
    assert [row[2] for row in rows(out)] == ["2", "5"]


@pytest.mark.parametrize(
    ("code", "words", "said"),
    [
        ("TS302", ["onnx.Split-13", "7,4", "split=2,6"], "sums to 8, but the dimension is 7"),
        ("TS304", ["onnx.Split-18", "5", "num_outputs=4"], "parameter 'num_outputs'"),
        ("TS303", ["onnx.Split-13", "7", "num_outputs=2"], "not divisible"),
        ("TS203", ["onnx.Split-13", "7", "axis=1", "split=7"], "[-1, 0]"),
        ("TS103", ["onnx.Split-13", "7", "num_splits=2"], "axis, split"),
        ("TS102", ["openvino.VariadicSplit-1", "7", "split_lengths=7"], "parameter 'axis'"),
        ("TS104", ["onnx.Split-18", "7"], "give input 'split' or attribute 'num_outputs'"),
        ("TS202", ["onnx.Split-18", "()", "num_outputs=1"], "rank 0"),
        ("TS308", ["onnx.Split-18", "7", f"num_outputs={'9' * 99}"], "16777216"),
        ("TS703", ["onnx.Split-18", "num_outputs=1"], "no shape is given"),
        ("TS703", ["onnx.Split-18", "7", "4", "num_outputs=1"], "7 and 4"),
        ("TS703", ["onnx.Split-18", "7", "--shape", "7", "num_outputs=1"], "7 and 7"),
        ("TS703", ["onnx.Split-18", "7", "num_outputs=1", "--num-outputs", "2"], "twice"),
        ("TS703", ["onnx.Split-18", "7", "num_outputs=1", "--opset", "18"], "opset"),
        ("TS703", ["onnx.Split-18", "-1,4", "num_outputs=1"], "--help"),
        ("TS703", ["onnx.Split-18", "--shape", "-1,4", "num_outputs=1"], "not a shape"),
        ("TS101", ["Split", "7", "num_outputs=1", "--opset", "99"], "1 to"),
        ("TS101", ["onnx.Split-12", "7", "split=7"], "neither an operator nor a model file"),
        ("TS101", ["Splitt", "7"], "did you mean Split?"),
        ("TS101", ["Foo", "7"], "onnx.Split-18"),
        ("TS501", ["missing.onnx"], "there is no such file"),
        ("TS501", ["folder/missing"], "there is no such file"),
    ],
)
def test_refusals(refused: Refused, code: str, words: list[str], said: str) -> None:
    assert said in refused(code, "explain", *words)


def save(path: Path, made: onnx.ModelProto) -> Path:
    onnx.save(made, path)
    return path


def test_a_model_is_drawn_node_by_node(tensorsplit: Command, tmp_path: Path) -> None:
    nodes = [
        node("Split", "x s", "a b", name="first", axis=1),
        node("Split", "b", "c d", name="second", axis=1, num_outputs=2),
        node("Relu", "d", "e"),
        node("Split", "e", "f g", name="third", axis=1, num_outputs=2),
        node("Split", "x t", "h i", name="fourth"),
        node("Odd", "x", "o", domain="custom"),
        node("Split", "o s", "j k", name="fifth"),
    ]
    inputs = [value("x", FLOAT, ["batch", 6]), value("t", INT64, [2])]
    made = model(graph(nodes, inputs, list("acfghijk"), [tensor("s", [2, 4])]), custom=1)
    ended = tensorsplit("explain", save(tmp_path / "m.onnx", made))
    assert (ended.status, ended.err) == (0, "")
    first, second, third, fourth, fifth = ended.out.split("graph/")[1:]
    assert "onnx.Split-18  axis = 1, split = 2, 4" in first
    assert ["1", "2", "4", "(batch, 4)"] in rows(first)
    assert rows(second) == [["0", "0", "2", "(batch, 2)"], ["1", "2", "2", "(batch, 2)"]]
    assert rows(third) == [["0", "0", "1", "(batch, 1)"], ["1", "1", "1", "(batch, 1)"]]
    assert "Not drawn: the lengths are known only at run time." in fourth
    assert "Not drawn: the shape of the data 'o' is not known." in fifth


def test_bodies_and_functions_are_explained_too(tensorsplit: Command, tmp_path: Path) -> None:
    then = graph([node("Split", "x", "p q", name="inner", num_outputs=2)], [], ["p"])
    other = graph([node("Identity", "x", "r")], [], ["r"])
    cuts = linked("Split", "y", "u v", link("axis", "where"), name="cut", num_outputs=2)
    made = model(
        graph(
            [
                node("If", "c", "z", name="if", then_branch=then, else_branch=other),
                node("F", "x", "k", domain="custom", where=1),
            ],
            [value("c", BOOL, []), value("x", FLOAT, [4, 6])],
            ["z", "k"],
        ),
        functions=[function("F", "y", "u", [cuts], ["where"])],
        custom=1,
    )
    out = tensorsplit("explain", save(tmp_path / "m.onnx", made)).out
    assert "graph/if.then_branch/inner  onnx.Split-18" in out
    assert ["1", "2", "2", "(2, 6)"] in rows(out)
    assert "function custom::F/cut  Split\nNot drawn: each call of the function gives axis." in out


def test_a_default_is_named_as_one(tensorsplit: Command, tmp_path: Path) -> None:
    inputs = [value("x", FLOAT, [6]), value("s", INT64, [2])]
    made = model(graph([node("Split", "x s", "a b")], inputs, ["a"], [tensor("s", [2, 4])]))
    out = tensorsplit("explain", save(tmp_path / "m.onnx", made)).out
    assert "With the default of 's', which can be fed otherwise." in out


def test_a_wrong_node_is_refused_with_its_path(refused: Refused, tmp_path: Path) -> None:
    nodes = [node("Split", "x s", "a b", name="bad\x1b[31m\n")]
    made = model(graph(nodes, [value("x", FLOAT, [7])], ["a"], [tensor("s", [3, 3])]))
    message = refused("TS302", "explain", save(tmp_path / "m.onnx", made))
    assert "node 'graph/'bad" in message
    assert "\x1b" not in message


def test_a_model_has_its_own_operands(refused: Refused, tmp_path: Path) -> None:
    path = save(tmp_path / "m.onnx", model(graph([node("Relu", "x", "y")], [value("x")], ["y"])))
    assert "has its own" in refused("TS703", "explain", path, "axis=0")
    assert "has its own" in refused("TS703", "explain", path, "7,4")
    assert "has its own" in refused("TS703", "explain", path, "--opset", "18")


def test_a_model_without_splits(tensorsplit: Command, refused: Refused, tmp_path: Path) -> None:
    path = save(tmp_path / "m.onnx", model(graph([node("Relu", "x", "y")], [value("x")], ["y"])))
    assert tensorsplit("explain", path) == (0, f"{path}: no split nodes\n", "")
    refused("TS702", "explain", path, "--svg", tmp_path / "cuts.svg")
    assert not (tmp_path / "cuts.svg").exists()


def test_an_openvino_model(tensorsplit: Command, tmp_path: Path) -> None:
    ir = IrFile()
    data = ir.parameter("x", "f32", "?,8")
    parts = ir.variadic_split(data, ir.int64(1, scalar=True), ir.int64(3, -1), 2)
    for part in parts:
        ir.result(part)
    out = tensorsplit("explain", ir.save(tmp_path)).out
    assert "openvino.VariadicSplit-1  axis = 1, split_lengths = 3, -1" in out
    assert rows(out) == [["0", "0", "3", "(?, 3)"], ["1", "3", "5", "(?, 5)"]]


def test_svg_is_written_beside_the_drawing(tensorsplit: Command, tmp_path: Path) -> None:
    target = tmp_path / "new" / "cut.svg"
    words = ("explain", "onnx.Split-18", "7,4", "num_outputs=3", "--svg", target)
    ended = tensorsplit(*words, "--create-dirs")
    assert ended.status == 0
    assert "3 parts" in ended.out
    root = ElementTree.fromstring(target.read_text(encoding="utf-8"))
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    assert [path.name for path in target.parent.iterdir()] == ["cut.svg"]
    assert ended.err == f"tensorsplit: {target}: 1 picture\n"


def test_an_svg_that_cannot_be_written_leaves_nothing(refused: Refused, tmp_path: Path) -> None:
    refused("TS702", "explain", "Split", "7", "num_outputs=1", "--svg", tmp_path)
    refused("TS302", "explain", "Split", "7", "split=6", "--svg", tmp_path / "a.svg")
    assert not list(tmp_path.iterdir())


def test_a_wrong_split_that_never_runs_is_named_as_one(
    tensorsplit: Command, tmp_path: Path
) -> None:
    then = graph([node("Split", "x s", "p q", name="inner")], [], ["p"])
    other = graph([node("Identity", "x", "r")], [], ["r"])
    nodes = [node("If", "c", "z", name="if", then_branch=then, else_branch=other)]
    constants = [tensor("c", False, np.bool_), tensor("s", [1, 2])]
    made = model(graph(nodes, [value("x", FLOAT, [4])], ["z"], constants))
    out = tensorsplit("explain", save(tmp_path / "m.onnx", made)).out
    assert "Not drawn: it never runs, and is wrong: [1, 2] sums to 3" in out


def test_a_dialect_is_drawn_as_an_operator_is(tensorsplit: Command) -> None:
    ended = tensorsplit("explain", "torch.chunk", "5", "chunks=4")
    assert ended.status == 0
    assert ended.out.startswith("torch.chunk  chunks = 4\nRule: at most n chunks")
    assert "axis 0 (5) of (5,): 3 parts" in ended.out
