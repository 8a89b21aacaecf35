"""Random inputs respect what is known of the model."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import onnx.parser
import pytest

from tensorsplit.cli.random_inputs import InputChoice, ModelInputs, members
from tensorsplit.core import errors
from tensorsplit.core.errors import SplitError
from tensorsplit.model.reading import read_model
from tests.cli.conftest import Command, process
from tests.model.ir_files import IrFile
from tests.refusals import refused as refusal

Save = Callable[[str], Path]

_SPLIT = "a, b = Split<axis=0>(x, s)"
_TWO_THREE = "s = Constant<value=int64[2] {2,3}>()"

_A_B = "(float[?] a, float[?] b)"
_A_B_2 = "(float[?,?] a, float[?,?] b)"
_A_B_C = "(float[?] a, float[?] b, float[?] c)"

FIT: dict[str, str] = {
    "constant lengths": f"g (float[N,2] x) => {_A_B_2} {{ {_TWO_THREE} {_SPLIT} }}",
    "no name": f"g (float[?,?] x) => {_A_B_2} {{ {_TWO_THREE} {_SPLIT} }}",
    "no rank": f"g (float[] x) => (float[] a, float[] b) {{ {_TWO_THREE} {_SPLIT} }}",
    "odd names": f'g (float["a b/c[0]","batch-size"] x) => {_A_B_2} {{ {_TWO_THREE} {_SPLIT} }}',
    "large": f"g (float[B,C] x) => {_A_B_2}"
    " { s = Constant<value=int64[2] {768,1536}>() a, b = Split<axis=-1>(x, s) }",
    "fed lengths": f"g (float[N,2] x, int64[2] s) => {_A_B_2} {{ {_SPLIT} }}",
    "fed lengths of a short axis": f"g (float[1] x, int64[3] s) => {_A_B_C}"
    " { a, b, c = Split<axis=0>(x, s) }",
    "as many lengths as outputs": f"g (float[N] x, int64[K] s) => {_A_B_C}"
    " { a, b, c = Split<axis=0>(x, s) }",
    "lengths without a rank": f"g (float[N] x, int64[] s) => {_A_B} {{ {_SPLIT} }}",
    "lengths in two inputs": f"g (float[N] x, int64[1] p, int64[1] q) => {_A_B}"
    f" {{ s = Concat<axis=0>(p, q) {_SPLIT} }}",
    "calculated lengths": f"g (float[N] x, int64[2] t) => {_A_B}"
    f" {{ two = Constant<value=int64 {{2}}>() s = Mul(t, two) {_SPLIT} }}",
    "lengths of a sequence": "g (float[N] x, int64[K] s) => (seq(float[?]) a)"
    " { a = SplitToSequence<axis=0>(x, s) }",
    "chunk": "g (float[N] x, int64 c) => (seq(float[?]) a) { a = SplitToSequence<axis=0>(x, c) }",
    "position": "g (float[N] x, int64 i) => (float[?] a) { c = Constant<value=int64 {3}>()"
    " s = SplitToSequence<axis=0>(x, c) a = SequenceAt(s, i) }",
    "positions": "g (float[N] x, int64 i, int64 j) => (float[?] a)"
    " { c = Constant<value=int64 {3}>() s = SplitToSequence<axis=0>(x, c)"
    " t = SequenceInsert(s, x, i) u = SequenceErase(t, j) a = ConcatFromSequence<axis=0>(u) }",
    "position in an input": "g (seq(float[N]) s) => (float[?] a)"
    " { i = Constant<value=int64 {4}>() a = SequenceAt(s, i) }",
    "a first state of one batch": "g (float[T,N,3] x, float[1,1,4] h) => (float[?,?,?,?] y)"
    " { s = Constant<value_ints = [1, 12, 3]>() w = ConstantOfShape(s)"
    " t = Constant<value_ints = [1, 12, 4]>() r = ConstantOfShape(t)"
    " y = GRU<hidden_size = 4>(x, w, r, , , h) }",
    "a window": "g (float[1,2,L] x) => (float[?,?,?] y) { s = Constant<value_ints = [1, 2, 40]>()"
    " w = ConstantOfShape(s) y = Conv(x, w) }",
    "windows of windows": "g (float[1,1,H,W] x) => (float[?,?,?,?] y)"
    " { s = Constant<value_ints = [1, 1, 5, 9]>() w = ConstantOfShape(s)"
    " z = Conv<strides = [3, 3]>(x, w) y = MaxPool<kernel_shape = [4, 2]>(z) }",
    "a window beside a branch that never runs": "g (float[1,1,L] x) => (float[?,?,?] y)"
    " <int64[1] one = {1}, int64 zero = {0}> { s = Constant<value_ints = [1, 1, 99]>()"
    " w = ConstantOfShape(s) z = Conv(x, w) n = Shape(z) f = Gather(n, zero) c = Less(f, zero)"
    " y = If(c) <then_branch = t () => (float[?,?,?] p) { p = Squeeze(z, one) },"
    " else_branch = e () => (float[?,?,?] q) { q = Neg(z) }> }",
    "indices of floats": "g (float[3,2] x, float[B,S] i) => (float[?,?,?] a)"
    " { j = Cast<to = 7>(i) a = Gather<axis=0>(x, j) }",
    "indices": "g (float[3,2] x, int64[B,S] i) => (float[?,?,?] a) { a = Gather<axis=0>(x, i) }",
    "index": "g (float[N,2] x, int64 i) => (float[?] a) { a = Gather<axis=1>(x, i) }",
    "indices of elements": "g (float[3,4] x, int64[2,4] i) => (float[?,?] a)"
    " { a = GatherElements<axis=0>(x, i) }",
    "indices of rows": "g (float[3,2] x, int64[K,2] i) => (float[?] a) { a = GatherND(x, i) }",
    "axis": "g (float[2,3] x, int64 i) => (float[?,?] y) { y = CumSum(x, i) }",
    "calculated indices": "g (float[5,3] x, int64[V] p) => (float[?,?] a)"
    " { o = Constant<value=int64 {1}>() q = Add(p, o) a = Gather(x, q) }",
    "divisible": "g (float[2,M] x) => (float[?,?] a, float[?,?] b, float[?,?] c)"
    " { a, b, c = Split<axis=1>(x) }",
    "divisible by two numbers": "g (float[N] x) => (float[?] a, float[?] b, float[?] c, float[?] d,"
    " float[?] e) { a, b = Split<axis=0>(x) c, d, e = Split<axis=0>(x) }",
    "condition": "g (bool c, float[N] x) => (float[?] y) { y = If(c)"
    "<then_branch = t () => (float[?] a) { s = Constant<value=int64[2] {2,3}>()"
    " a, b = Split<axis=0>(x, s) }, else_branch = e () => (float[?] a2)"
    " { s2 = Constant<value=int64[2] {4,4}>() a2, b2 = Split<axis=0>(x, s2) }> }",
    "one branch fits": "g (bool c, float[5] x) => (float[?] y) { y = If(c)"
    "<then_branch = t () => (float[?] a) { s = Constant<value=int64[2] {4,4}>()"
    " a, b = Split<axis=0>(x, s) }, else_branch = e () => (float[?] a2)"
    " { s2 = Constant<value=int64[2] {1,4}>() a2, b2 = Split<axis=0>(x, s2) }> }",
    "shared name": "g (float[N,2] x, float[N,3] y) => (float[?,?] a, float[?,?] b, float[?,?] z)"
    f" {{ {_TWO_THREE} {_SPLIT} z = Concat<axis=1>(x, y) }}",
    "name in an expression": 'g (float[P] x, float["P + 1"] y) => (float[?] a, float[?] b,'
    f" float[?] c, float[?] d) {{ {_TWO_THREE} {_SPLIT} c, d = Split<axis=0>(y) }}",
    "other operators": f"g (float[N,K] x) => {_A_B_2}"
    " { w = Constant<value=float[3,4] {1,2,3,4,5,6,7,8,9,1,2,3}>() y = MatMul(x, w)"
    " a, b = Split<axis=1>(y) }",
    "behind a convolution": "g (float[1,1,H,W] x) => (float[?,?,?,?] a, float[?,?,?,?] b)"
    " { w = Constant<value=float[1,1,3,3] {1,2,3,4,5,6,7,8,9}>() y = Conv<strides=[2,2]>(x, w)"
    f" {_TWO_THREE} a, b = Split<axis=2>(y, s) }}",
    "behind a reshape": "g (float[B,T] x) => (float[?,?,?] a, float[?,?,?] b)"
    f" {{ r = Constant<value=int64[3] {{0,-1,3}}>() y = Reshape(x, r) {_TWO_THREE}"
    " a, b = Split<axis=1>(y, s) }",
    "fed shape": "g (float[N,S] x, int64[2] r) => (float[?,?] a) { a = Reshape(x, r) }",
    "count of the largest": "g (float[2,5] x, int64[1] k) => (float[?,?] a, int64[?,?] b)"
    " { a, b = TopK(x, k) }",
    "in a function": f"g (float[N] x, float[M] y) => {_A_B}"
    ' { a = c.F(x) b = c.F(y) }\n<domain: "c", opset_import: ["" : 13]> F (v) => (p)'
    " { s = Constant<value=int64[2] {2,3}>() p, q = Split<axis=0>(v, s) }",
    "lengths in a table": f"g (float[N,2] x, int64[1,K] s) => {_A_B_2}"
    " { r = Constant<value=int64[1] {-1}>() t = Reshape(s, r) a, b = Split<axis=0>(x, t) }",
    "many lengths": "g (float[6] x, int64[5] s) => (float[?] a, float[?] b, float[?] c, float[?] d,"
    " float[?] e) { a, b, c, d, e = Split<axis=0>(x, s) }",
    "chain of equal dimensions": "g (float[A] x, float[B] y, float[C] z) => (float[?] v,"
    f" float[?] a, float[?] b) {{ u = Add(x, y) v = Add(y, z) {_TWO_THREE}"
    " a, b = Split<axis=0>(z, s) }",
    "behind a Gemm": "g (float[K,N] x) => (float[?,?] a) { w = Constant<value=float[2,3]"
    " {1,2,3,4,5,6}>() a = Gemm<transA=1, transB=1>(x, w) }",
    "condition on a number": "g (int64 n, float[5] x) => (float[?] y) {"
    " k = Constant<value=int64 {3}>() c = Greater(n, k) y = If(c)"
    "<then_branch = t () => (float[?] a) { s = Constant<value=int64[2] {4,4}>()"
    " a, b = Split<axis=0>(x, s) }, else_branch = e () => (float[?] a2) { a2 = Identity(x) }> }",
    "divisible by three numbers": "g (float[N] x) => (float[?] a, float[?] d, float[?] h)"
    " { a, b, c = Split<axis=0>(x) d, e, f, g = Split<axis=0>(x)"
    " h, i, j, k, l = Split<axis=0>(x) }",
    "one of the fed numbers": "g (float[9] x, int64[4] d) => (float[?] a, float[?] b)"
    " { i = Constant<value=int64[1] {1}>() n = Gather(d, i) t = Constant<value=int64[1] {2}>()"
    " s = Concat<axis=0>(n, t) a, b = Split<axis=0>(x, s) }",
    "two dimensions of a shape": "g (float[N,M] x) => (float[?,?] y)"
    " { w = Constant<value=float[2,3] {1,2,3,4,5,6}>() y = Add(x, w) }",
    "fed shape of three dimensions": "g (float[2,3,4] x, int64[3] r) => (float[?,?,?] a)"
    " { a = Reshape(x, r) }",
    "many indices": "g (float[3,2] x, int64[1,300] i) => (float[?,?,?] a) { a = Gather(x, i) }",
    "calculated indices of elements": "g (float[3,5,2] x, int64[3,1,2] i) => (float[?,?,?] a)"
    " { o = Constant<value=int64 {1}>() j = Add(i, o) a = GatherElements<axis=1>(x, j) }",
    "state of a Scan": "g (float[T,N,M] x) => (float[?,?] a, float[?,?,?] b)"
    " { z = Constant<value=float[2,3] {1,2,3,4,5,6}>() a, b = Scan<num_scan_inputs=1,"
    " body = r (float[2,3] s, float[?,?] v) => (float[2,3] t, float[?,?] w)"
    " { t = Add(s, v) w = Identity(t) }>(z, x) }",
    "shape to expand to": "g (float[N,3] x, int64[2] r) => (float[?,?] a, float[?,?] b)"
    f" {{ y = Expand(x, r) {_TWO_THREE} a, b = Split<axis=0>(y, s) }}",
    "wrong declaration": "g (float[7,2] x) => (int64[?,?] a, int64[?,?] b) <int64[2,3] z>"
    " { z = NonZero(x) s = Constant<value=int64[2] {4,10}>() a, b = Split<axis=1>(z, s) }",
    "infinity": f"g (float[N] x) => {_A_B} {{ c = Constant<value_float = inf>() y = Min(x, c)"
    f" {_TWO_THREE} a, b = Split<axis=0>(y, s) }}",
    "strings": f"g (string[N] x) => (string[?] a, string[?] b) {{ {_TWO_THREE} {_SPLIT} }}",
    "bfloat16": f"g (bfloat16[N] x) => (bfloat16[?] a, bfloat16[?] b) {{ {_TWO_THREE} {_SPLIT} }}",
}
"""Models that seven elements on every axis, or any value from 1 to 99, do not fit."""

TWO_SPLITS = (
    f"g (float[N] x) => (float[?] a, float[?] b, float[?] c, float[?] d) {{ {_TWO_THREE} {_SPLIT}"
    " t = Constant<value=int64[2] {4,4}>() c, d = Split<axis=0>(x, t) }"
)


@pytest.fixture
def save(tmp_path: Path) -> Save:
    def _save(text: str) -> Path:
        imports = '"" : 13' + (', "c" : 1' if "c.F" in text else "")
        head = f"<ir_version: 8, opset_import: [{imports}]>\n"
        path = tmp_path / "model.onnx"
        # The parser of onnx 1.20 takes no quoted name of a dimension
        quoted = re.findall(r'[\[,]"([^"]+)"', text)
        for index, name in enumerate(quoted):
            text = text.replace(f'"{name}"', f"quoted_{index}")
        model = onnx.parser.parse_model(head + text)
        for value in model.graph.input:
            for dim in value.type.tensor_type.shape.dim:
                if dim.dim_param.startswith("quoted_"):
                    dim.dim_param = quoted[int(dim.dim_param.removeprefix("quoted_"))]
        onnx.save(model, path)
        return path

    return _save


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("name", FIT)
def test_random_inputs_fit(tensorsplit: Command, save: Save, name: str, seed: int) -> None:
    ended = tensorsplit("run", save(FIT[name]), "--seed", seed)
    assert (ended.status, ended.err) == (0, "")


@pytest.mark.parametrize("name", ["constant lengths", "fed lengths", "position", "indices"])
def test_every_command_makes_inputs_that_fit(tensorsplit: Command, save: Save, name: str) -> None:
    path = save(FIT[name])
    ended = tensorsplit("lower", path, "--for", "portable", "--dry-run", "--verify")
    assert ended.status == 0, ended
    assert "verified: on random inputs" in ended.out
    assert tensorsplit("run", path, "--compare", "tensorsplit").status == 0


def test_what_is_given_is_kept(tensorsplit: Command, save: Save, tmp_path: Path) -> None:
    path = save(FIT["fed lengths"])
    np.save(tmp_path / "s.npy", np.array([3, 6]))
    ended = tensorsplit("run", path, "--seed", 0, "--input", f"s={tmp_path / 's.npy'}")
    assert "a: float (3, 2)" in ended.out
    ended = tensorsplit("run", path, "--input-shape", "x:4,2")
    lengths = [int(found) for found in re.findall(r"float \((\d+), 2\)", ended.out)]
    assert sum(lengths) == 4


def test_a_dimension_of_a_name_is_as_long_in_every_input(tensorsplit: Command, save: Save) -> None:
    text = f"g (float[N] x, float[N] y) => {_A_B} {{ a = Identity(x) b = Identity(y) }}"
    for words in ("x:5", "y:5"):
        ended = tensorsplit("run", save(text), "--input-shape", words)
        assert re.findall(r"float \((\d+),\)", ended.out) == ["5", "5"]


def test_factors_of_dimensions_are_small(tensorsplit: Command, save: Save) -> None:
    text = "g (float[1,1,4,4] x, float[4] s) => (float[?,?,?,?] y)"
    path = save(f'{text} {{ y = Resize<mode="nearest">(x, , s) }}')
    for seed in range(3):
        ended = tensorsplit("run", path, "--seed", seed)
        assert re.search(r"float \([12], [12], [48], [48]\)", ended.out)


@pytest.mark.parametrize(
    ("pads", "axes", "shape"),
    [
        ("0, 0, 0, 64", "", "(7, 129)"),
        ("64, 0", ", , a", "(7, 129)"),
        ("0, 0, 0, 64", ", , b", "(129, 7)"),
    ],
)
def test_no_more_is_reflected_than_there_is(
    pads: str, axes: str, shape: str, tensorsplit: Command, save: Save
) -> None:
    count = len(pads.split(","))
    text = f"""g (float[H,L] x) => (float[?,?] y) <int64[{count}] p = {{{pads}}},
        int64[1] a = {{1}}, int64[2] b = {{1, 0}}> {{ y = Pad<mode = "reflect">(x, p{axes}) }}"""
    path = save(text)
    made = onnx.load(path)
    made.opset_import[0].version = 18
    onnx.save(made, path)
    ended = tensorsplit("run", path, "--seed", 0)
    assert ended.out.startswith(f"y: float {shape}")


@pytest.mark.parametrize("to", [999, -1])
def test_a_cast_to_a_type_that_does_not_exist_is_reported(
    to: int, refused: Callable[..., str], save: Save
) -> None:
    path = save("g (float[N] x) => (float[N] y) { y = Cast<to = 1>(x) }")
    made = onnx.load(path)
    made.graph.node[0].attribute[0].i = to
    onnx.save(made, path)
    assert "graph/Cast[0]" in refused("TS510", "run", path, "--seed", 0)


def test_a_window_after_strides_has_data(tensorsplit: Command, save: Save) -> None:
    """The length after them grows by one where the data grows by 32."""
    text = """g (float[1,1,L] x) => (float[?,?,?] y) {
        z = MaxPool<kernel_shape = [1], strides = [32]>(x) y = MaxPool<kernel_shape = [2]>(z) }"""
    ended = tensorsplit("run", save(text), "--seed", 0)
    assert ended.out.startswith("y: float (1, 1, 1)")


def test_an_axis_that_must_be_divisible_is_not_empty(tensorsplit: Command, save: Save) -> None:
    parts = [f"y{part}" for part in range(16)]
    outputs = ", ".join(f"float[?] {part}" for part in parts)
    text = f"g (float[N] x) => ({outputs}) {{ {', '.join(parts)} = Split<axis=0>(x) }}"
    ended = tensorsplit("run", save(text), "--seed", 0)
    assert re.findall(r"float \((\d+),\)", ended.out) == ["1"] * 16


def test_splits_that_contradict_each_other_are_named(
    refused: Callable[..., str], save: Save
) -> None:
    said = refused("TS302", "run", save(TWO_SPLITS), "--seed", 0)
    assert "the dimension N must be 5 for 'graph/Split[1]' and 8 for 'graph/Split[3]'" in said


def test_the_message_offers_a_shape_that_fits(refused: Callable[..., str], save: Save) -> None:
    path = save(FIT["constant lengths"])
    said = refused("TS302", "run", path, "--input-shape", "x:7,2")
    assert "--input-shape x:5,2" in said
    assert "--input x=FILE" in said


def test_a_shape_that_contradicts_the_model_is_refused(
    refused: Callable[..., str], save: Save
) -> None:
    for shape in ("x:5,3", "x:5"):
        said = refused("TS507", "run", save(FIT["constant lengths"]), "--input-shape", shape)
        assert "--input-shape x:5,2" in said


def test_a_default_that_fits_nothing_is_replaced(tensorsplit: Command, save: Save) -> None:
    text = f"g (float[3] x, int64[2] s) => {_A_B} <int64[2] s = {{9,9}}> {{ {_SPLIT} }}"
    assert tensorsplit("run", save(text), "--seed", 0).status == 0


def test_positions_behind_unknown_counts_are_searched(tensorsplit: Command, save: Save) -> None:
    text = "g (float[6] x, int64 c, int64 i) => (float[?] a)"
    text += " { s = SplitToSequence<axis=0>(x, c) t = SequenceErase(s, i) u = SequenceErase(t, i)"
    text += " a = SequenceAt(s, i) }"
    for seed in range(3):
        assert tensorsplit("run", save(text), "--seed", seed).status == 0


def test_a_position_is_searched_again_when_a_dimension_was_found(
    tensorsplit: Command, save: Save
) -> None:
    text = "g (float[N] x, int64 i) => (float[?] a, float[?] b, seq(float[?]) u) {"
    text += " y = Concat<axis=0>(x, x) p, q, r = Split<axis=0>(y) c = Constant<value=int64 {2}>()"
    text += " s = SplitToSequence<axis=0>(p, c) t = SequenceInsert(s, y) u = SequenceErase(t, i)"
    text += " l = Constant<value=int64[2] {2,4}>() a, b = Split<axis=0>(y, l) }"
    for seed in range(3):
        assert tensorsplit("run", save(text), "--seed", seed).status == 0


def test_an_element_type_is_not_blamed_on_shapes(refused: Callable[..., str], save: Save) -> None:
    text = "g (int4[N] x) => (int4[?] a, int4[?] b) { a, b = Split<axis=0>(x) }"
    assert "--input" not in refused("TS201", "run", save(text), "--seed", 0)


def test_what_no_name_tells_offers_shapes_and_files(
    refused: Callable[..., str], save: Save
) -> None:
    text = (
        f"g (float[B,3] x) => {_A_B_2} {{ n = NonZero(x)"
        " y = Transpose<perm=[1,0]>(n) z = Cast<to=1>(y)"
        f" {_TWO_THREE} a, b = Split<axis=0>(z, s) }}"
    )
    for words in (("run", "--seed", 3), ("lower", "--for", "portable", "--dry-run", "--verify")):
        said = refused("TS302", words[0], save(text), *words[1:])
        assert re.search(r"--input-shape x:\d+,3\b.*--input x=FILE", said)


def test_a_seed_gives_the_same_inputs_in_every_process(save: Save) -> None:
    path = save(FIT["divisible by two numbers"])
    ended = [
        process("run", path, "--seed", seed, env={"PYTHONHASHSEED": hashing})
        for seed, hashing in ((5, "1"), (5, "2"), (6, "1"))
    ]
    assert ended[0].status == 0
    assert ended[0] == ended[1] != ended[2]


@pytest.mark.parametrize("name", ["fed lengths", "strings", "bfloat16", "position in an input"])
def test_inputs_of_a_failing_comparison_are_saved(
    tensorsplit: Command, save: Save, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    path, archive = save(FIT[name]), tmp_path / "failing.npz"
    words = ("run", path, "--seed", 9, "--compare", "tensorsplit", "--save-inputs", archive)
    same = tensorsplit(*words)
    assert same.status == 0
    assert not archive.exists()
    with monkeypatch.context() as patch:
        patch.setattr("tensorsplit.engines.compare.run", lambda *_, **__: {})
        ended = tensorsplit(*words)
    assert ended.status == 1
    assert "--seed 9" in ended.out
    assert str(archive) in ended.out
    again = tensorsplit("run", path, "--input", archive)
    assert again.status == 0, again
    assert again.out == same.out.replace("tensorsplit: the same as tensorsplit\n", "")


def test_inputs_that_a_model_refuses_are_saved_too(
    refused: Callable[..., str], save: Save, tmp_path: Path
) -> None:
    text = "g (float[4] x, int64[2] t) => (float[?] a, float[?] b)"
    text += f" {{ n = Constant<value=int64[2] {{9,9}}>() s = Max(t, n) {_SPLIT} }}"
    archive = tmp_path / "failing.npz"
    said = refused("TS302", "run", save(text), "--seed", 1, "--save-inputs", archive)
    assert str(archive) in said
    assert sorted(np.load(archive).files) == ["t", "x"]


def test_an_archive_has_its_ending(refused: Callable[..., str], save: Save) -> None:
    path = save(FIT["chunk"])
    refused("TS703", "run", path, "--seed", 1, "--save-inputs", "inputs.txt")
    refused("TS703", "run", path, "--seed", "-1")


ARRAY = np.array([1.5, 2.5], np.float32)


def test_inputs_are_members_of_an_archive_by_name() -> None:
    """Of a sequence each element, by its position; nothing of an optional that is empty."""
    small = ARRAY.astype(ml_dtypes.bfloat16)
    feeds = {"x": ARRAY, "s": [ARRAY, ARRAY + 1], "n": [[ARRAY + 2]], "o": None, "b": small}
    stored = dict(members(feeds))
    assert list(stored) == ["x", "s[0]", "s[1]", "n[0][0]", "b"]
    for name, want in {"x": ARRAY, "s[1]": ARRAY + 1, "n[0][0]": ARRAY + 2}.items():
        np.testing.assert_array_equal(stored[name], want)
    assert stored["b"].dtype == np.dtype("V2")
    assert stored["b"].tobytes() == small.tobytes()
    with refusal("TS702", "can't hold its strings", "--save-inputs", parameter="t"):
        dict(members({"t": np.array(["a\0"], object)}))


@pytest.mark.parametrize(
    ("feeds", "seed", "lines"),
    [
        ({}, None, []),
        ({"x": ARRAY}, None, ["the inputs are in {}"]),
        ({"x": ARRAY}, 3, ["the random inputs are those of --seed 3", "the inputs are in {}"]),
    ],
)
def test_what_failed_is_saved_and_said(
    tmp_path: Path, feeds: dict[str, Any], seed: int | None, lines: list[str]
) -> None:
    model = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["" : 13]> g (float[N] x) => (float[N] y)'
        " { y = Identity(x) }"
    )
    source = read_model(model)

    def made(name: str | None) -> ModelInputs:
        shapes = {"x": (2,)} if seed is not None else {}
        return ModelInputs(source, feeds, shapes, seed, None if name is None else tmp_path / name)

    assert made("1.npz").failing() == [line.format(tmp_path / "1.npz") for line in lines]
    assert (tmp_path / "1.npz").exists() is bool(feeds)
    assert made(None).failing() == lines[: len(lines) - bool(feeds)]
    with pytest.raises(SplitError) as caught, made("2.npz").explained():
        raise SplitError(errors.LENGTHS_SUM, "it is wrong", "fix it")
    assert caught.value.fix.startswith("fix it")
    assert caught.value.fix.endswith("2.npz" if feeds else "fix it")
    is_random = "the inputs are random (--seed 3): give shapes, as in --input-shape x:2"
    assert (is_random in caught.value.fix) is (seed == 3)
    with pytest.raises(SplitError) as caught, made(None).explained():
        raise SplitError(errors.UNSUPPORTED_NODE, "no input is to blame")
    assert caught.value.fix == ""


def test_inputs_that_are_all_given_are_not_random() -> None:
    model = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["" : 13]> g (float[2] x) => (float[2] y)'
        " { y = Identity(x) }"
    )
    source = read_model(model)
    assert str(InputChoice((), (), None, None).completed(source)) == "random inputs"
    assert InputChoice((), (), None, None).completed(source).seed == 0
    assert str(ModelInputs(source, {"x": ARRAY})) == "the inputs given"
    for shapes, seed, is_asked in (((), None, False), ((), 0, True), (("x:2",), None, True)):
        assert InputChoice((), shapes, seed, None).asks_for_random is is_asked


def test_given_inputs_have_no_seed(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", ARRAY)
    model = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["" : 13]> g (float[2] x) => (float[2] y)'
        " { y = Identity(x) }"
    )
    choice = InputChoice((f"x={tmp_path / 'x.npy'}",), (), 7, None)
    completed = choice.completed(read_model(model))
    assert (completed.seed, str(completed), completed.random) == (None, "the inputs given", {})


def test_a_default_gives_way_to_a_shape_that_is_given(save: Save) -> None:
    text = "g (float[N] x, float[M] w) => (float[?] y) <float[2] w = {1.5, 2.5}>"
    source = read_model(save(f"{text} {{ y = Concat<axis=0>(x, w) }}"))
    plain = InputChoice((), (), None, None).completed(source)
    assert list(plain.random) == ["x"]
    shaped = InputChoice((), ("w:5",), None, None).completed(source)
    assert set(shaped.random) == {"x", "w"}
    assert shaped.feeds["w"].shape == (5,)


@pytest.mark.parametrize("seed", range(3))
def test_dimensions_stay_in_the_ranges_that_an_ir_declares(tmp_path: Path, seed: int) -> None:
    ir = IrFile()
    ir.result(ir.parameter("x", "f32", "1..3,9..,..2"))
    made = InputChoice((), (), seed, None).completed(read_model(ir.save(tmp_path)))
    few, many, at_most = made.feeds["x"].shape
    assert 1 <= few <= 3
    assert many >= 9
    assert at_most <= 2
