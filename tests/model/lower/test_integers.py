"""Integers that engines calculate wrongly: fused or rounded quotients, an Abs that is left out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import onnx
import onnx.parser
import pytest

import tensorsplit as ts
from tests.model.lower.running import Runner, lowered_for, with_own

Array: TypeAlias = np.ndarray[Any, Any]

WEIGHTS = np.array([[1, 0, 2], [0, 1, 1], [1, 0, 1]])
CONSTANTS = (
    "one = Constant<value = int64[1] {1}>() three = Constant<value = int64[1] {3}>()"
    " yes = Constant<value = bool {1}>()"
    " zero = Constant<value = int64[1] {0}>() flat = Constant<value = int64[1] {-1}>()"
    " w = Constant<value = int64[3, 3] {1, 0, 2, 0, 1, 1, 1, 0, 1}>()"
    " sizes = Constant<value = int64[2] {4, 6}>()"
)
SUMS: dict[str, Callable[[Array], Any]] = {
    "ReduceMax<keepdims = 1>(x, one)": lambda x: x.max(1, keepdims=True),
    "ReduceMin<keepdims = 0>(x, one)": lambda x: x.min(1),
    "ReduceSum<keepdims = 1>(x, zero)": lambda x: x.sum(0, keepdims=True),
    "MatMul(x, w)": lambda x: x @ WEIGHTS,
    "Gemm(x, w)": lambda x: x @ WEIGHTS,
    'Einsum<equation = "ij,jk->ik">(x, w)': lambda x: x @ WEIGHTS,
    "Size(x)": lambda x: np.int64(x.size),
    'Resize<mode = "nearest">(x, , , sizes)': lambda x: x.repeat(2, 1),
}
PASSED_ON: dict[str, Callable[[Array], Array]] = {
    "m": lambda m: m,
    "Unsqueeze(m, zero)": lambda m: m[None],
    "Reshape(m, flat)": lambda m: m.ravel(),
    "Neg(m)": lambda m: -m,
    "Sub(three, m)": lambda m: 3 - m,
    "Where(yes, m, m)": lambda m: m,
}
QUOTIENTS: dict[str, Callable[[Array], Array]] = {
    "Div(s, three)": lambda s: np.trunc(s / 3),
    "Div(three, s)": lambda s: np.trunc(3 / s),
}


def divided(nodes: str, element_type: str = "int64", opset: int = 18) -> onnx.ModelProto:
    """A model that gives the elements of a quotient ``q``."""
    kind = f"{element_type}[N, 3] x, {element_type}[1] fed) => ({element_type}[M] y"
    line = "line = Constant<value = int64[1] {-1}>() y = Reshape(q, line)"
    head = f'<ir_version: 8, opset_import: ["": {opset}]>'
    return onnx.parser.parse_model(f"{head} g ({kind}) {{ {nodes} {line} }}")


def run_lowered(model: onnx.ModelProto, x: Array, process: Runner) -> Array:
    """Return what OpenVINO gives for a model that was lowered; it stays as it is then."""
    lowered = lowered_for("openvino", model)
    assert ts.check(lowered, target="openvino") == []
    feeds = {"x": x, "fed": x[0, :1]}
    read = {each.name for each in lowered.graph.input}
    given = {name: value for name, value in feeds.items() if name in read}
    (got,) = process.call(["openvino", lowered.SerializeToString(), [given], 1])
    return np.asarray(got[0])


@pytest.mark.engine("openvino")
@pytest.mark.parametrize("quotient", QUOTIENTS)
@pytest.mark.parametrize("passed_on", PASSED_ON)
@pytest.mark.parametrize("made", SUMS)
def test_a_quotient_after_a_sum_is_rounded_toward_zero(
    made: str,
    passed_on: str,
    quotient: str,
    rng: np.random.Generator,
    openvino: Runner,
) -> None:
    passed = "Identity(m)" if passed_on == "m" else passed_on
    model = divided(f"{CONSTANTS} m = {made} s = {passed} q = {quotient}")
    assert "fused" in str(ts.check(model, target="openvino"))
    x = rng.integers(4, 40, (4, 3))
    expected = QUOTIENTS[quotient](PASSED_ON[passed_on](np.asarray(SUMS[made](x))))
    np.testing.assert_array_equal(run_lowered(model, x, openvino), expected.ravel())


@pytest.mark.parametrize(("element_type", "opset"), [("int32", 9), ("uint64", 11), ("uint32", 13)])
def test_a_quotient_of_any_wide_type_and_opset(
    element_type: str, opset: int, rng: np.random.Generator, process: Runner
) -> None:
    constant = f"three = Constant<value = {element_type}[1] {{3}}>()"
    model = divided(f"{constant} m = ReduceMax(x) q = Div(m, three)", element_type, opset)
    x = rng.integers(4, 40, (4, 3)).astype(element_type)
    x[2, 1] = 44  # 14 after rounding toward zero, 15 to the nearest
    np.testing.assert_array_equal(run_lowered(model, x, process), [14])


@pytest.mark.parametrize("element_type", ["int8", "uint8"])
@pytest.mark.parametrize("divisor", ["fed", "three"])
@pytest.mark.parametrize("made", ["Identity(x)", "Abs(x)", "ReduceMax<keepdims = 1>(x)"])
def test_integers_of_8_bits_are_divided_as_int32(
    made: str, divisor: str, element_type: str, rng: np.random.Generator, process: Runner
) -> None:
    constant = f"three = Constant<value = {element_type}[1] {{3}}>()"
    model = divided(f"{constant} m = {made} q = Div(m, {divisor})", element_type)
    x = rng.integers(4, 100, (4, 3)).astype(element_type)
    m = x.max(keepdims=True) if made.startswith("Reduce") else x
    expected = m // (3 if divisor == "three" else x[0, 0])
    np.testing.assert_array_equal(run_lowered(model, x, process), expected.ravel(), strict=True)


@pytest.mark.parametrize(
    "nodes",
    [
        "m = Abs(x) q = Div(m, three)",
        "m = ReduceMax(x) q = Div(m, fed)",
        "m = ReduceMax(x) q = Div(m, m)",
        "m = ReduceMax(x) n = Sub(m, fed) q = Div(n, three)",
        "m = ReduceMax(x) n = Max(m, three) q = Div(n, three)",
        "m = ReduceMax(x) q = Mod(m, three)",
    ],
)
def test_other_quotients_stay(nodes: str) -> None:
    model = divided(f"{CONSTANTS} {nodes}")
    assert ts.check(model, target="openvino") == []
    assert ts.lower(model, target="openvino") == model


def test_quotients_of_floats_stay() -> None:
    constant = "three = Constant<value = float[1] {3}>()"
    model = divided(f"{constant} m = ReduceMax(x) q = Div(m, three)", "float")
    assert ts.lower(model, target="openvino") == model


def test_lengths_that_are_such_a_quotient_are_right(process: Runner) -> None:
    """8 / 3 is 2; the parts of a split had 3 and 2 rows."""
    model = divided(
        f"{CONSTANTS} five = Constant<value = int64[1] {{5}}>() m = ReduceMax<keepdims = 0>(x)"
        " h = Div(m, three) n = Reshape(h, one) r = Sub(five, n) l = Concat<axis = 0>(n, r)"
        " r5 = Expand(fed, five) q, rest = Split(r5, l)"
    )
    x = np.array([[7, 8, 1], [4, 5, 6]])
    lowered = ts.lower(model, target="openvino")
    request = ["openvino", lowered.SerializeToString(), [{"x": x, "fed": x[0, :1]}], 1]
    (got,) = process.call(request)
    np.testing.assert_array_equal(got[0], [7, 7])


DISTANCES = {
    "s = Shape<end = 1>(x) d = Sub(s, ten)": 6,
    "s = Shape<end = 1>(x) d = Neg(s)": 4,
    "s = Shape(x) n = Gather(s, zero) h = Cast<to = 6>(n) i = Neg(h) d = Cast<to = 7>(i)": 4,
    "s = Size(x) n = Reshape(s, one) d = Sub(n, twenty)": 8,
    "s = Shape<end = 1>(x) h = Div(s, three) d = Sub(h, ten)": 9,
    "s = Shape<end = 1>(x) h = Pow(s, one) n = Mod(h, three) d = Neg(n)": 1,
    "n = Neg(ten) d = ReduceMin<keepdims = 1>(n)": 10,
}


@pytest.mark.parametrize("nodes", DISTANCES)
@pytest.mark.parametrize("opset", [15, 18])
def test_the_distance_of_two_lengths_is_not_negative(
    nodes: str, opset: int, rng: np.random.Generator, process: Runner
) -> None:
    more = "ten = Constant<value = int64[1] {10}>() twenty = Constant<value = int64[1] {20}>()"
    model = divided(f"{CONSTANTS} {more} {nodes} q = Abs(d)", opset=opset)
    assert "Abs" in str(ts.check(model, target="openvino"))
    got = run_lowered(model, rng.integers(1, 9, (4, 3)), process)
    np.testing.assert_array_equal(got, [DISTANCES[nodes]])


def test_the_distance_of_two_lengths_may_be_joined_with_data(process: Runner) -> None:
    model = divided(
        "ten = Constant<value = int64[1] {10}>() s = Shape<end = 1>(x) n = Sub(s, ten)"
        " d = Concat<axis = 0>(n, fed) q = Abs(d)"
    )
    x = np.array([[-3, 2, 1], [4, 5, 6]])
    np.testing.assert_array_equal(run_lowered(model, x, process), [8, 3])


@pytest.mark.parametrize(
    "nodes",
    [
        "d = Neg(x)",
        "s = Shape<end = 1>(x) d = Sub(s, fed)",
        "d = Concat<axis = 1>(x, x)",
        "d = Concat<axis = 1>(x, x) s = Shape(d)",
        "h = Concat<axis = 1>(x, x) d = Neg(h) e = Concat<axis = 0>(h, h)",
        "n = Neg(x) d = Concat<axis = 1>(x, x) e = Concat<axis = 1>(x, n)",
        "d = Constant<value = int64[2] {-2, 3}>()",
        "k = Constant<value = int64[1] {-2}>() d = Concat<axis = 0>(fed, k)",
    ],
)
def test_an_abs_of_data_stays(nodes: str) -> None:
    model = divided(f"{nodes} q = Abs(d)")
    assert ts.check(model, target="openvino") == []
    assert ts.lower(model, target="openvino") == model


SHARED = {
    "an output": "q = Concat<axis = 0>(x, one) y = Abs(q) z = Identity(q)",
    "another node": "q = Concat<axis = 0>(x, one) y = Abs(q) z = Add(q, zero)",
    "a node beside a reshape": "q = Concat<axis = 0>(x, one) r = Reshape(q, line) y = Abs(r)"
    " z = Add(q, zero)",
    "a Concat that is joined": "z = Concat<axis = 0>(x, one) r = Concat<axis = 0>(z, one)"
    " a = Abs(r) y = Slice(a, start, line)",
    "a Concat of the same": "q = Concat<axis = 0>(x, one) y = Abs(q) z = Concat<axis = 0>(x, one)",
}


@pytest.mark.parametrize("element_type", ["float", "int64"])
@pytest.mark.parametrize("nodes", SHARED.values(), ids=SHARED)
def test_what_is_joined_keeps_its_sign_beside_abs(
    nodes: str, element_type: str, rng: np.random.Generator, process: Runner
) -> None:
    kind = f"{element_type}[N] x) => ({element_type}[A] y, {element_type}[B] z"
    one, zero = f"{element_type}[1] one = {{1}}", f"{element_type}[1] zero = {{0}}"
    line, start = "int64[1] line = {-1}", "int64[1] start = {0}"
    head = '<ir_version: 8, opset_import: ["": 18]>'
    model = onnx.parser.parse_model(
        f"{head} g ({kind}) <{one}, {zero}, {line}, {start}> {{ {nodes} }}"
    )
    assert "Abs" in str(ts.check(model, target="openvino"))
    x: Array = rng.integers(-9, 0, 4).astype(np.float32 if element_type == "float" else np.int64)
    lowered = ts.lower(model, target="openvino")
    assert ts.check(lowered, target="openvino") == []
    assert ts.lower(lowered, target="openvino") == lowered
    (got,) = process.call(["openvino", lowered.SerializeToString(), [{"x": x}], 1])
    np.testing.assert_array_equal(got[0], [*np.abs(x), 1])
    np.testing.assert_array_equal(got[1], [*x, 1])


@pytest.mark.parametrize("compared", ["r, one", "one, r"])
@pytest.mark.parametrize(("kind", "made"), [("int64", 7), ("int32", 6)])
def test_what_shapes_give_is_equal_to_a_number_below_0(
    compared: str, kind: str, made: int, process: Runner
) -> None:
    """A length follows from it: OpenVINO takes it for never equal then."""
    model = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["": 18]> g (float[N] x) => (float[M] y) <int64[1] k = {7},'
        f" int64[1] three = {{3}}, int64[1] two = {{2}}, int64[1] zero = {{0}},"
        f" {kind}[1] one = {{-1}}> {{ s = Shape(x) d = Sub(s, k) r = Cast<to = {made}>(d)"
        f" e = Equal({compared})"
        " n = Where(e, three, two) y = Slice(x, zero, n) }"
    )
    assert "equal" in str(ts.check(model, target="openvino"))
    lowered = ts.lower(model, target="openvino")
    assert ts.check(lowered, target="openvino") == []
    assert ts.lower(lowered, target="openvino") == lowered
    feeds = [{"x": np.arange(n, dtype=np.float32)} for n in (6, 7, 9)]
    got = [process.call(["openvino", lowered.SerializeToString(), [f], 1])[0][0] for f in feeds]
    assert [each.tolist() for each in got] == [[0, 1, 2], [0, 1], [0, 1]]


def test_an_abs_of_numbers_without_a_sign_stays() -> None:
    model = divided("h = Concat<axis = 0>(x, x) e = Add(h, h) q = Abs(h)", "uint32")
    assert ts.lower(model, target="openvino") == model


def test_an_abs_of_joined_parts_leaves_them_as_they_are(
    rng: np.random.Generator, process: Runner
) -> None:
    """The Concat is one that lowering makes of a sequence."""
    model = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["": 18]> g (float[4] x) => (float[4] y, float[4] z)'
        " <int64 two = {2}, int64 zero = {0}, int64 one = {1}> { s = SplitToSequence(x, two)"
        " a = SequenceAt(s, zero) b = SequenceAt(s, one) t = SequenceConstruct(b, a)"
        " q = ConcatFromSequence<axis = 0>(t) y = Abs(q) z = Identity(q) }"
    )
    x = rng.uniform(-9, -1, 4).astype(np.float32)
    lowered = ts.lower(model, target="openvino")
    assert ts.lower(lowered, target="openvino") == lowered
    (got,) = process.call(["openvino", lowered.SerializeToString(), [{"x": x}], 1])
    joined = np.concatenate([x[2:], x[:2]])
    np.testing.assert_array_equal(got, [-joined, joined])


@pytest.mark.parametrize(
    ("dividend", "divisor", "expected"),
    [([-2, 0, -7], 3, [0, 0, -2]), ([7, -9, 8], -2, [-3, 4, -4]), ([-6, 7, -8], 4, [-1, 1, -2])],
)
def test_quotients_of_constants_are_rounded_toward_zero(
    dividend: list[int], divisor: int, expected: list[int], process: Runner
) -> None:
    listed = ", ".join(map(str, dividend))
    model = divided(
        f"k = Constant<value = int64[1, 3] {{{listed}}}>() m = Constant<value_int = {divisor}>()"
        " h = Div(k, m) q = Concat<axis = 0>(h, x)"
    )
    x = np.array([[-5, 3, 4]])
    np.testing.assert_array_equal(run_lowered(model, x, process), [*expected, *x[0]])


def test_exact_quotients_of_constants_stay() -> None:
    model = divided(
        "k = Constant<value = int64[3] {-2, 0, -8}>() m = Constant<value = int64 {2}>()"
        " h = Div(k, m) q = Add(h, x)"
    )
    assert ts.check(model, target="openvino") == []
    assert ts.lower(model, target="openvino") == model


SOURCES = {
    "int64": ("Identity(x)", "Shape(f)", "Reshape(n, one)", "ReduceMax(x)", "Neg(three)"),
    "float": (
        "Cast<to = 1>(x)",
        "Reshape(f, line)",
        "Cast<to = 1>(s)",
        "ReduceSum<keepdims = 0>(f)",
    ),
}
"""What random calculations start from."""
STEPS = (
    *("Abs({a})", "Neg({a})", "Relu({a})", "Sign({a})", "ReduceMax({a})", "ReduceSum({a})"),
    *("Add({a}, {a})", "Add({a}, {b})", "Sub({a}, k)", "Sub(k, {a})", "Max({a}, k)"),
    *("Concat<axis = 0>({a}, {b})", "Concat<axis = 0>({a}, {a})", "Concat<axis = 0>(k, {a})"),
    *("Gather({a}, zero)", "Slice({a}, zero, one)", "Reshape({a}, line)", "Identity({a})"),
)
OF_INTEGERS = (
    "Div({a}, three)",
    "Div({a}, m)",
    "Div({a}, more)",
    "Div(k, more)",
    "Mod({a}, three)",
)


def calculation(seed: int, element_type: str) -> onnx.ModelProto:
    """A model of random steps that gives all that they give; some do not go together."""
    rng = np.random.default_rng(seed)
    steps = STEPS + (OF_INTEGERS if element_type == "int64" else ())
    made = [f"v{place} = {rng.choice(SOURCES[element_type])}" for place in range(2)]
    for place in range(2, int(rng.integers(4, 10))):
        a, b = (f"v{rng.integers(max(0, place - 4), place)}" for _ in range(2))
        made.append(f"v{place} = " + str(rng.choice(steps)).format(a=a, b=b))
    values = ", ".join(f"v{place}" for place in range(len(made)))
    return onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["": 18]>'
        f" g (int64[X] x, float[F, 3] f) => ({element_type}[A] y)"
        " <int64[1] one = {1}, int64[1] zero = {0}, int64[1] line = {-1}, int64[1] m = {-2},"
        f" int64[1] three = {{3}}, {element_type}[1] k = {{4}}>"
        " { n = Size(f) s = Shape(f) h = Abs(x) i = ReduceMax(h) more = Add(i, one)"
        f" {' '.join(made)} y = Concat<axis = 0>({values}) }}"
    )


@pytest.mark.engine("openvino")
@pytest.mark.parametrize("element_type", SOURCES)
@pytest.mark.parametrize("seed", range(0, 200, 20))
def test_random_calculations_are_right(
    seed: int, element_type: str, rng: np.random.Generator, openvino: Runner
) -> None:
    x, f = rng.integers(-9, 9, 4), rng.integers(-9, 9, (4, 3)).astype(np.float32)
    tried = 0
    for model in (calculation(number, element_type) for number in range(seed, seed + 20)):
        given = {each.name: {"x": x, "f": f}[each.name] for each in model.graph.input}
        try:
            expected = ts.run(model, given)["y"]
        except ts.SplitError:
            continue
        lowered = ts.lower(model, target="openvino")
        (got,) = openvino.call(["openvino", lowered.SerializeToString(), [given], 1])
        np.testing.assert_array_equal(got[0], expected, err_msg=onnx.printer.to_text(model))
        tried += 1
    assert tried > 5


RANGES = [(0, -2, 1), (0, 5, -1), (3, 3, 1), (5, 0, -2), (0, 5, 2), (2, -5, 3), (-1, 4, 2)]


@pytest.mark.parametrize("element_type", ["int64", "float"])
@pytest.mark.parametrize("opset", [11, 18])
@pytest.mark.parametrize("fed", ["all", "limit"])
@pytest.mark.parametrize("numbers", RANGES)
def test_a_range_whose_limit_is_on_the_other_side_is_empty(
    numbers: tuple[int, int, int], fed: str, opset: int, element_type: str, process: Runner
) -> None:
    given = [f"{element_type} {name}" for name in ("s", "l", "d")]
    fixed = (
        "" if fed == "all" else f"<{given[0]} = {{{numbers[0]}}}, {given[2]} = {{{numbers[2]}}}>"
    )
    inputs = ", ".join(given if fed == "all" else given[1:2])
    model = onnx.parser.parse_model(
        f'<ir_version: 8, opset_import: ["": {opset}]>'
        f" g ({inputs}) => ({element_type}[N] y) {fixed} {{ y = Range(s, l, d) }}"
    )
    (finding,) = ts.check(model, target="openvino")
    assert "a Range that may be empty" in finding.message
    lowered = ts.lower(model, target="openvino")
    assert ts.check(lowered, target="openvino") == []
    assert ts.lower(lowered, target="openvino") == lowered
    dtype = np.dtype(np.float32 if element_type == "float" else np.int64)
    feeds = dict(zip("sld", (np.array(number, dtype) for number in numbers), strict=True))
    read = {name: feeds[name] for name in ("sld" if fed == "all" else "l")}
    (got,) = process.call(["openvino", lowered.SerializeToString(), [read], 1])
    np.testing.assert_array_equal(got[0], np.array(range(*numbers), dtype))


NUMBERS = (
    "none = Constant<value_int = 0>() up = Constant<value_int = 1>()"
    " down = Constant<value_int = -1>()"
)
FOUND = "f = NonZero(x) s = Shape<start = 1>(f) n = Squeeze(s)"
"""A number of elements that is known only at run time."""


@pytest.mark.parametrize(
    "nodes",
    [
        "n = Size(x) q = Range(none, n, up)",
        "s = Shape(x) n = Gather(s, none) q = Range(none, n, up)",
        "s = Shape(x) n = Gather(s, none) q = Range(n, none, down)",
        f"{FOUND} q = Range(none, n, up)",
    ],
)
def test_a_range_of_as_many_as_there_are_stays(nodes: str) -> None:
    model = divided(f"{NUMBERS} {nodes}")
    assert ts.check(model, target="openvino") == []
    assert ts.lower(model, target="openvino") == model


@pytest.mark.parametrize(
    "nodes",
    [
        f"{FOUND} q = Range(none, n, down)",
        f"{FOUND} q = Range(n, none, up)",
        f"{FOUND} b = Less(up, n) l = Where(b, n, down) q = Range(up, l, up)",
    ],
)
def test_a_range_that_goes_the_other_way_is_found(nodes: str) -> None:
    model = divided(f"{NUMBERS} {nodes}")
    (finding,) = ts.check(model, target="openvino")
    assert "a Range that may be empty" in finding.message


def test_rounds_that_a_range_counts_are_none_if_it_is_empty(process: Runner) -> None:
    """A split in a loop of 0 rounds; it had 2."""
    model = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["": 18]> g (int64 v, float[4] x) => (float[P] y)'
        " <int64 zero = {0}, int64 one = {1}, bool on = {1}> {"
        " w = Range(zero, v, one) n = Size(w) y = Loop(n, on, x) <body = b (int64 i, bool go,"
        " float[S] s) => (bool go_, float[T] t) { go_ = Identity(go)"
        " p, q = Split<num_outputs = 2>(s) t = Concat<axis = 0>(q, p) }> }"
    )
    x = np.array([1, 2, 3, 4], np.float32)
    lowered = ts.lower(model, target="openvino")
    feeds = [{"v": np.array(rounds), "x": x} for rounds in (-3, 1)]
    got = process.call(["openvino", lowered.SerializeToString(), feeds, 1])
    np.testing.assert_array_equal(got[0][0], x)
    np.testing.assert_array_equal(got[1][0], [3, 4, 1, 2])


ORT: Any = "onnxruntime@1.32.0"
RATIOS: dict[str, bool] = {
    "d = Div(u, x) y = Mul(d, z)": True,
    "d = Div(u, x) y = Mul(z, d)": True,
    "d = Div(u, x) e = Identity(d) y = Mul(e, z)": True,
    "i = Identity(u) d = Div(i, x) y = Mul(d, z)": True,
    "d = Div(u, x) e = Abs(d) y = Mul(e, z)": False,
    "d = Div(u, x) e = Mul(d, z) y = Add(e, d)": False,
    "d = Div(u, x) y = Add(d, z)": False,
    "d = Div(two, x) y = Mul(d, z)": False,
    "d = Div(ones, x) y = Mul(d, z)": False,
    "d = Div(x, u) y = Mul(d, z)": False,
}
"""Calculations with 1 / x, and whether onnxruntime takes the product for one by x."""


def ratio(nodes: str, kind: str, shape: str = "", outputs: str = "y") -> onnx.ModelProto:
    """A model of three numbers x and z, and a constant 1 of a shape."""
    given = ", ".join(f"{kind}[3] {name}" for name in outputs.split())
    return onnx.parser.parse_model(
        f'<ir_version: 8, opset_import: ["": 14]> g ({kind}[3] x, {kind}[3] z) => ({given})'
        f" <{kind}{shape} u = {{1}}, {kind}[1] two = {{2}},"
        f" {kind}[3] ones = {{1, 1, 1}}> {{ {nodes} }}"
    )


@pytest.mark.parametrize("kind", ["int64", "int32", "uint64", "float"])
@pytest.mark.parametrize("nodes", RATIOS)
def test_only_the_product_of_one_by_integers_is_written_otherwise(nodes: str, kind: str) -> None:
    model = ratio(nodes, kind)
    is_fused = RATIOS[nodes] and kind.startswith("int")
    found = [finding.code for finding in ts.check(model, target=ORT)]
    assert found == ["TS843"] * is_fused
    assert (ts.lower(model, target=ORT) == model) is not is_fused


def test_a_ratio_that_the_model_gives_out_stays() -> None:
    model = ratio("d = Div(u, x) y = Mul(d, z)", "int64", outputs="y d")
    assert ts.check(model, target=ORT) == []


@with_own("onnxruntime")
@pytest.mark.parametrize("kind", ["int64", "int32"])
@pytest.mark.parametrize("shape", ["", "[1]"])
@pytest.mark.parametrize("nodes", [nodes for nodes in RATIOS if RATIOS[nodes]])
def test_one_is_multiplied_by_a_number(nodes: str, shape: str, kind: str, engine: Any) -> None:
    lowered = lowered_for(ORT, ratio(nodes, kind, shape))
    assert ts.check(lowered, target=ORT) == []
    x, z = np.array([[1, 2, -1], [-4, 8, 9]], kind), np.array([[5, 6, 7], [8, 16, -9]], kind)
    for numbers, factors in zip(x, z, strict=True):
        feeds = {"x": numbers, "z": factors}
        wanted = np.where(abs(numbers) == 1, numbers, 0) * factors
        got = ts.run(lowered, feeds, engine=engine)["y"]
        np.testing.assert_array_equal(got, wanted.astype(kind), strict=True)


@pytest.mark.parametrize("kind", ["int32", "int64", "int16"])
def test_a_quotient_of_constants_keeps_its_type(kind: str) -> None:
    model = onnx.parser.parse_model(
        f'<ir_version: 8, opset_import: ["": 18]> g (float[N] x) => ({kind}[2] y)'
        f" <{kind}[2] a = {{-7, 4}}, {kind}[2] b = {{2, 2}}> {{ y = Div(a, b) }}"
    )
    lowered = ts.lower(model, target="openvino")
    assert "Div" not in {node.op_type for node in lowered.graph.node}
    onnx.checker.check_model(lowered, full_check=True)
    found = ts.run(lowered, {"x": np.zeros(1, np.float32)})["y"]
    np.testing.assert_array_equal(found, np.array([-3, 2], kind), strict=True)


def test_a_quotient_of_constants_that_only_a_run_tells_is_rounded_toward_zero() -> None:
    model = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["": 18]> g (int64[N,2] x) => (int64[M,2] y)'
        " <int64[1,2] a = {7, -9}, int64[1,2] b = {2, 4}>"
        " { n = Neg(a) q = Div(n, b) y = Concat<axis = 0>(x, q) }"
    )
    lowered = ts.lower(model, target="openvino")
    assert "Div" not in {node.op_type for node in lowered.graph.node}
    found = ts.run(lowered, {"x": np.array([[5, 6]])})["y"]
    np.testing.assert_array_equal(found, [[5, 6], [-3, 2]])
