"""OpenVINO's own import, with the extensions, reads the splits that it refuses without them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import numpy as np
import onnx
import pytest
from onnx.parser import parse_model

import tensorsplit as ts
from tensorsplit.engines.process import EngineProcess
from tests.interpreters import printed

pytestmark = pytest.mark.engine
openvino = pytest.importorskip("openvino")

Result: TypeAlias = "list[np.ndarray] | str"
Imported: TypeAlias = Callable[..., Result]

X = np.random.default_rng(11).integers(1, 100, (7, 3)).astype(np.float32)
VENDOR = ', "org.openvinotoolkit" : 1'


def model(text: str, opset: int = 18, imports: str = "") -> onnx.ModelProto:
    """A model with the inputs and initializers that the text names."""
    return parse_model(f'<ir_version: 8, opset_import: ["" : {opset}{imports}]> {text}')


@pytest.fixture(scope="module")
def engine() -> Iterator[EngineProcess]:
    process = EngineProcess("openvino", "tests.engines.openvino_extended")
    yield process
    process.stop()


@pytest.fixture
def imported(engine: EngineProcess) -> Imported:
    """What OpenVINO gives, the same by path and from bytes; a text if it refuses."""

    def _imported(proto: onnx.ModelProto, *, extended: bool = True, **fed: np.ndarray) -> Result:
        by_path, from_bytes = engine.call((proto.SerializeToString(), fed, extended))
        assert type(by_path) is type(from_bytes)
        if isinstance(by_path, list):
            assert_equal(from_bytes, by_path)
        result: Result = by_path
        return result

    return _imported


def assert_equal(found: Result, expected: list[np.ndarray]) -> None:
    assert not isinstance(found, str), found
    assert len(found) == len(expected)
    for one, other in zip(found, expected, strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(one, other)


def assert_refused(found: Result, *texts: str) -> None:
    assert isinstance(found, str)
    for text in texts:
        assert text in found


def count_model(outputs: str, declared: str, axis: int = 0, shape: str = "N,3") -> Any:
    count = outputs.count(",") + 1
    return model(
        f"g (float[{shape}] x) => ({declared}) {{ {outputs} ="
        f" Split<axis={axis}, num_outputs={count}>(x) }}"
    )


THREE = "float[A,B] a, float[C,D] b, float[E,F] c"


@pytest.mark.parametrize("length", [7, 6, 5, 3, 2, 0])
def test_uneven_parts_of_a_dynamic_axis(imported: Imported, length: int) -> None:
    """Parts of the length rounded up, and the last one smaller."""
    x = X[:length]
    size = (length + 2) // 3
    expected = [x[:size], x[size : 2 * size], x[2 * size :]]
    assert_equal(imported(count_model("a, b, c", THREE), x=x), expected)


@pytest.mark.parametrize("length", [7, 4])
def test_uneven_parts_of_a_dynamic_axis_from_the_back(imported: Imported, length: int) -> None:
    x = X[:length].T.copy()
    size = (length + 1) // 2
    uneven = count_model("a, b", "float[A,B] a, float[C,D] b", axis=-1, shape="3,N")
    assert_equal(imported(uneven, x=x), [x[:, :size], x[:, size:]])


HALVES = {
    "by a comparison": "r = Mod(n, two) g = Greater(r, none) o = Cast<to = 7>(g) f = Add(h, o)",
    "rounded": "q = Cast<to = 1>(n) t = Mul(q, half) u = Ceil(t) f = Cast<to = 7>(u)",
    "by a choice": "r = Mod(n, two) e = Equal(r, none) p = Add(h, one) f = Where(e, h, p)",
}


@pytest.mark.parametrize("name", HALVES)
@pytest.mark.parametrize("shape", ["7,3", "N,3"])
def test_lengths_that_follow_from_a_shape(imported: Imported, name: str, shape: str) -> None:
    """OpenVINO does not load a guard of lengths that are constants, and that it does not fold."""
    made = model(
        f"""g (float[{shape}] x) => (float[A,3] a, float[B,3] b)
        <int64[1] none = {{0}}, int64[1] one = {{1}}, int64[1] two = {{2}}, float half = {{0.5}}> {{
        s = Shape(x) n = Gather(s, none) h = Div(n, two) {HALVES[name]} d = Sub(n, f)
        l = Concat<axis = 0>(f, d) a, b = Split(x, l) }}"""
    )
    assert_equal(imported(made, x=X), [X[:4], X[4:]])
    if shape == "N,3":
        assert_equal(imported(made, x=X[:6]), [X[:3], X[3:6]])


def test_lengths_that_do_not_fit_a_known_shape_are_refused(imported: Imported) -> None:
    made = model(
        """g (float[7,3] x) => (float[A,3] a, float[B,3] b)
        <int64[1] none = {0}, int64[1] two = {2}> {
        s = Shape(x) n = Gather(s, none) h = Div(n, two) l = Concat<axis = 0>(h, h)
        a, b = Split(x, l) }"""
    )
    assert isinstance(imported(made, x=X), str)


def test_divisions_that_do_not_end_are_not_followed() -> None:
    """OpenVINO's own end the process with SIGFPE: by 0, and of the least integer by -1."""
    assert printed(DIVISIONS).splitlines() == [
        f"{name} {kind} {value}"
        for name, of_seven in (("divide", "(-7,)"), ("mod", "(0,)"), ("floor_mod", "(0,)"))
        for kind in ("int32", "int64")
        for value in ("None", "None", of_seven)
    ]


DIVISIONS = """
import numpy as np
from openvino import opset13 as layers
from tensorsplit.openvino.followed_values import followed_values
for name in ("divide", "mod", "floor_mod"):
    for kind in (np.int32, np.int64):
        least = np.iinfo(kind).min
        for number, by in ((least, -1), (7, 0), (7, -1)):
            given = [layers.constant(np.array([each], kind)) for each in (number, by)]
            made = getattr(layers, name)(*given)
            print(name, kind.__name__, followed_values(made.output(0)))
"""


def test_stock_openvino_refuses_what_these_are_for(imported: Imported) -> None:
    """If this fails, OpenVINO has learnt it, and the extension is not needed any more."""
    assert_refused(imported(count_model("a, b, c", THREE), extended=False, x=X), "num_splits")
    assert_refused(
        imported(sequence_model(), extended=False, x=X, i=np.array(0)), "SplitToSequence"
    )


def test_a_last_part_below_zero_stops_the_running_model(imported: Imported) -> None:
    """D1: 4 into 5 outputs would leave -4."""
    five = "float[A,3] a, float[B,3] b, float[C,3] c, float[D,3] d, float[E,3] e"
    found = imported(count_model("a, b, c, d, e", five), x=X[:3])
    assert_refused(found, "reshape")


@pytest.mark.parametrize(
    ("node", "code"),
    [
        ("a, b = Split<num_outputs=5>(y)", "TS304"),
        ("a, b = Split<num_outputs=2, axis=2>(y)", "TS203"),
        ("a, b = Split(y, four)", "TS302"),
        ("a, b = Split(y, below)", "TS301"),
        ("a, b = Split<num_outputs=2>(y, four)", "TS104"),
    ],
)
def test_a_wrong_node_is_refused_in_our_words(imported: Imported, node: str, code: str) -> None:
    text = (
        "g (float[7,3] x) => (float[A,3] a, float[B,3] b) <int64[2] four = {2,2},"
        f" int64[2] below = {{8,-1}}> {{ y = Neg(x)  {node} }}"
    )
    found = imported(model(text), x=X)
    assert_refused(found, "onnx.Split-18")
    assert isinstance(found, str)
    assert f"[{code}]" in found, found


@pytest.mark.parametrize("lengths", [(-1, 8), (5, 3), (2, 2)])
def test_lengths_of_run_time_that_do_not_fit_stop_the_running_model(
    imported: Imported, lengths: tuple[int, int]
) -> None:
    """D6, D7: OpenVINO itself takes -1 for a remainder and reads outside of the data."""
    runtime = model(
        "g (float[N,3] x, int64[2] l) => (float[A,3] a, float[B,3] b) { a, b = Split(x, l) }"
    )
    fits = np.array([5, 2])
    assert_equal(imported(runtime, x=X, l=fits), [X[:5], X[5:]])
    assert_refused(imported(runtime, x=X, l=np.array(lengths)), "reshape")


@pytest.mark.parametrize(
    ("opset", "node"),
    [
        (2, "a, b = Split<axis=0>(y)"),
        (13, "a, b = Split(y)"),
        (11, "a, b = Split<axis=0, split=[3,3]>(y)"),
        (13, "a, b = Split(y, l)"),
        (18, "a, b = Split<num_outputs=2>(y)"),
        (18, 'a, "" = Split<num_outputs=2>(y) b = Slice(y, three, six)'),
        (13, 'a, "" = Split(y) b = Slice(y, three, six)'),
    ],
)
def test_every_spelling_below_the_newest_version_still_works(
    imported: Imported, opset: int, node: str
) -> None:
    """Also without lengths, though OpenVINO does not tell how many outputs there are."""
    text = (
        "g (float[6,3] x) => (float[3,3] a, float[3,3] b) <int64[2] l = {3,3}, int64[1] three ="
        f" {{3}}, int64[1] six = {{6}}> {{ y = Neg(x)  {node} }}"
    )
    assert_equal(imported(model(text, opset), x=X[:6]), [-X[:3], -X[3:6]])


def test_equal_parts_of_a_dimension_that_is_not_a_multiple_are_refused(imported: Imported) -> None:
    """D3; OpenVINO itself cuts 7 into 4 and 3."""
    text = "g (float[7,3] x) => (float[A,3] a, float[B,3] b) { a, b = Split(x) }"
    assert_refused(imported(model(text, 13), x=X), "TS303")


def sequence_model(node: str = "SplitToSequence(x, c)", shape: str = "N,3") -> onnx.ModelProto:
    return model(
        f"g (float[{shape}] x, int64 i) => (float[A,B] a, int64 n) <int64 c = {{3}}> {{ s = {node}"
        "  a = SequenceAt(s, i)  n = SequenceLength(s) }",
    )


@pytest.mark.parametrize("index", [0, 1, 2, -1, -3])
def test_chunks_of_a_dynamic_axis(imported: Imported, index: int) -> None:
    chunks = [X[:3], X[3:6], X[6:]]
    found = imported(sequence_model(), x=X, i=np.array(index))
    assert_equal(found, [chunks[index], np.array(3)])


@pytest.mark.parametrize("node", ["SplitToSequence(x, c)", "SplitToSequence<axis=-2>(x, c)"])
@pytest.mark.parametrize("shape", ["N,3", "7,3"])
@pytest.mark.parametrize("index", [3, -4])
def test_a_position_out_of_range_stops_the_running_model(
    imported: Imported, node: str, shape: str, index: int
) -> None:
    """D19: OpenVINO itself gives the last tensor."""
    assert_refused(imported(sequence_model(node, shape), x=X, i=np.array(index)), "Reshape")


@pytest.mark.parametrize("shape", ["N,3", "3,3"])
@pytest.mark.parametrize("index", [0, -1, 1, -2])
def test_a_position_in_a_sequence_of_one_tensor(imported: Imported, shape: str, index: int) -> None:
    """D19: OpenVINO takes any position of a list of one."""
    found = imported(sequence_model(shape=shape), x=X[:3], i=np.array(index))
    if index in (0, -1):
        assert_equal(found, [X[:3], np.array(1)])
    else:
        assert_refused(found, "Reshape")


@pytest.mark.parametrize("shape", ["N,3", "7,3"])
def test_a_constant_position_out_of_range_is_refused(imported: Imported, shape: str) -> None:
    text = (
        f"g (float[{shape}] x) => (float[A,3] a) <int64 c = {{3}}, int64 i = {{3}}>"
        " { s = SplitToSequence(x, c)  a = SequenceAt(s, i) }"
    )
    assert_refused(imported(model(text), x=X))


def test_single_steps_of_a_dynamic_axis(imported: Imported) -> None:
    dropped = sequence_model("SplitToSequence<keepdims=0>(x)")
    kept = sequence_model("SplitToSequence<axis=1>(x)", "7,N")
    assert_equal(imported(dropped, x=X, i=np.array(4)), [X[4], np.array(7)])
    assert_equal(imported(kept, x=X, i=np.array(-1)), [X[:, 2:], np.array(3)])


def test_chunks_of_a_length_of_run_time(imported: Imported) -> None:
    """D10: a length of 0 stops the running model."""
    text = (
        "g (float[N,3] x, int32 c) => (float[A,3] a) <int64 i = {1}>"
        " { s = SplitToSequence(x, c)  a = SequenceAt(s, i) }"
    )
    assert_equal(imported(model(text), x=X, c=np.array(4, np.int32)), [X[4:]])
    assert_refused(imported(model(text), x=X, c=np.array(0, np.int32)))


def test_listed_lengths_of_which_it_is_not_known_how_many(imported: Imported) -> None:
    text = (
        "g (float[N,3] x, int64[P] l, int64 i) => (float[A,3] a, int64 n)"
        " { s = SplitToSequence(x, l)  a = SequenceAt(s, i)  n = SequenceLength(s) }"
    )
    fed = {"x": X, "l": np.array([1, 0, 6]), "i": np.array(-1)}
    assert_equal(imported(model(text), **fed), [X[1:], np.array(3)])
    assert_refused(imported(model(text), **{**fed, "l": np.array([1, 0, 5])}))


def test_all_chunks_joined_again(imported: Imported) -> None:
    text = (
        "g (float[N,3] x) => (float[A,3] a) <int64 c = {3}>"
        " { s = SplitToSequence(x, c)  a = ConcatFromSequence<axis=0>(s) }"
    )
    assert_equal(imported(model(text), x=X), [X])


def test_the_same_tensor_of_a_sequence_twice_keeps_both_names(imported: Imported) -> None:
    text = (
        "g (float[7,3] x) => (float[A,3] a, float[B,3] b) <int64 c = {3}, int64 i = {1}>"
        " { s = SplitToSequence(x, c)  a = SequenceAt(s, i)  b = SequenceAt(s, i) }"
    )
    assert_equal(imported(model(text), x=X), [X[3:6], X[3:6]])


def test_strings_are_cut_right(imported: Imported) -> None:
    """D17: in OpenVINO's own split, later parts repeat the first elements."""
    text = (
        "g (string[N] x) => (string[A] a, string[B] b, string[C] c, string[D] d)"
        " <int64 size = {3}, int64 i = {1}> { a, b, c = Split<num_outputs=3>(x)"
        "  s = SplitToSequence(x, size)  d = SequenceAt(s, i) }"
    )
    x = np.array(["a", "bb", "", "dd", "e"], object)
    assert_equal(imported(model(text), x=x), [x[:2], x[2:4], x[4:], x[3:]])


def test_bodies(imported: Imported) -> None:
    text = (
        "g (float[N,3] x, bool yes) => (float[A,3] y) <int64 c = {3}, int64 i = {1}> { y = If(yes)"
        " <then_branch = t () => (float[A,3] p) { s = SplitToSequence(x, c)  p = SequenceAt(s, i)"
        " }, else_branch = e () => (float[A,3] q) { o, q = Split<num_outputs=2>(x) }> }"
    )
    assert_equal(imported(model(text), x=X, yes=np.array(True)), [X[3:6]])
    assert_equal(imported(model(text), x=X, yes=np.array(False)), [X[4:]])


@pytest.mark.parametrize(("axis", "lengths"), [(0, (2, -1)), (-2, (2, 5))])
def test_variadic_split_as_an_operator_of_onnx(
    imported: Imported, axis: int, lengths: tuple[int, int]
) -> None:
    text = (
        "g (float[N,3] x, int64 a, int32[2] l) => (float[A,3] y, float[B,3] z)"
        " { y, z = org.openvinotoolkit.VariadicSplit(x, a, l) }"
    )
    vendor = model(text, 18, VENDOR)
    fed = {"x": X, "a": np.array(axis)}
    assert_equal(imported(vendor, **fed, l=np.array(lengths, np.int32)), [X[:2], X[2:]])
    assert_refused(imported(vendor, **fed, l=np.array([-1, 9], np.int32)), "reshape")


def test_lengths_of_which_nobody_says_how_many(imported: Imported) -> None:
    text = (
        "g (float[N,3] x, int64[K] l) => (float[A,3] y, float[B,3] z) <int64 a = {0}>"
        " { y, z = org.openvinotoolkit.VariadicSplit(x, a, l) }"
    )
    found = imported(model(text, 18, VENDOR), x=X, l=np.array([3, 4]))
    assert_refused(found, "openvino.VariadicSplit-1, parameter 'split_lengths'", "how many lengths")


def test_a_model_converted_to_variadic_split(imported: Imported) -> None:
    uneven = count_model("a, b, c", THREE)
    made = ts.convert(uneven, variadic=True)
    assert isinstance(made, onnx.ModelProto)
    assert_equal(imported(made, x=X), [X[:3], X[3:6], X[6:]])


def test_an_empty_sequence_is_counted(imported: Imported) -> None:
    text = "g () => (int64 n) { s = SequenceEmpty()  n = SequenceLength(s) }"
    assert_equal(imported(model(text)), [np.array(0)])


def test_a_sequence_that_leaves_the_model_is_refused(imported: Imported) -> None:
    text = "g (float[N] x) => (seq(float[A]) s) <int64 c = {3}> { s = SplitToSequence(x, c) }"
    assert_refused(imported(model(text), x=X[0]), "TS310")
