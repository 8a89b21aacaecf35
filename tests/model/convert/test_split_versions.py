"""Every spelling of a Split at every opset, brought to every other opset that can say it."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest
from onnx import ModelProto
from onnx.parser import parse_model

from tensorsplit import SplitError, convert, infer_shapes
from tests.model.build import FLOAT, INT64, graph, known, model, node, outputs, run, tensor, value
from tests.model.convert.legal import check_equal, converted
from tests.refusals import refused

OPSETS = known(*range(1, 29))
X = np.random.default_rng(7).uniform(1, 2, (7, 4)).astype(np.float32)


class Case(NamedTuple):
    """A Split of X: the lengths along the axis, and what else is fed."""

    model: ModelProto
    axis: int
    lengths: list[int]
    feeds: dict[str, Any]

    @property
    def expected(self) -> list[Any]:
        return np.split(X, np.cumsum(self.lengths)[:-1], self.axis)


def case(
    opset: int, made: Any, axis: int, lengths: list[int], rows: Any, more: Any = (), init: Any = ()
) -> Case:
    parts = [value(f"y{k}", shape=[None, None]) for k in range(len(lengths))]
    data = value("x", FLOAT, [rows, 4])
    feeds = {"c": np.array(lengths)} if more else {}
    nodes = made if isinstance(made, list) else [made]
    return Case(model(graph(nodes, [data, *more], parts, init), opset), axis, lengths, feeds)


def outputs_of(count: int) -> str:
    return " ".join(f"y{k}" for k in range(count))


def equal(opset: int, rows: Any) -> Case:
    extra = {"num_outputs": 2} if opset >= 18 else {}
    return case(opset, node("Split", "x", "y0 y1", axis=1, **extra), 1, [2, 2], rows)


def attribute(opset: int, rows: Any) -> Case:
    made = node("Split", "x", outputs_of(3), axis=0, split=[3, 0, 4])
    return case(opset, made, 0, [3, 0, 4], rows)


def negative_axis(opset: int, rows: Any) -> Case:
    made = node("Split", "x", outputs_of(2), axis=-2, split=[3, 4])
    return case(opset, made, 0, [3, 4], rows)


def initializer(opset: int, rows: Any) -> Case:
    made = node("Split", "x c", outputs_of(3))
    return case(opset, made, 0, [3, 0, 4], rows, init=[tensor("c", [3, 0, 4])])


def constant_node(opset: int, rows: Any) -> Case:
    made = [
        node("Constant", "", "c", value=tensor("c", [3, 0, 4])),
        node("Split", "x c", outputs_of(3), axis=-2),
    ]
    return case(opset, made, 0, [3, 0, 4], rows)


def integers_node(opset: int, rows: Any) -> Case:
    made = [
        node("Constant", "", "c", value_ints=[1, 6]),
        node("Split", "x c", outputs_of(2), axis=0),
    ]
    return case(opset, made, 0, [1, 6], rows)


def runtime(opset: int, rows: Any) -> Case:
    made = node("Split", "x c", outputs_of(3))
    return case(opset, made, 0, [3, 0, 4], rows, more=[value("c", INT64, [3])])


def overridable(opset: int, rows: Any) -> Case:
    made = node("Split", "x c", outputs_of(3))
    more, default = [value("c", INT64, [3])], [tensor("c", [3, 0, 4])]
    return case(opset, made, 0, [2, 4, 1], rows, more=more, init=default)


def uneven(opset: int, rows: Any) -> Case:
    made = node("Split", "x", outputs_of(3), axis=-2, num_outputs=3)
    return case(opset, made, 0, [3, 3, 1], rows)


def even(opset: int, rows: Any) -> Case:
    return case(opset, node("Split", "x", "y0 y1", axis=1, num_outputs=2), 1, [2, 2], rows)


SPELLINGS = {
    equal: (1, 28),
    attribute: (1, 12),
    negative_axis: (1, 12),
    initializer: (13, 28),
    constant_node: (13, 28),
    integers_node: (13, 28),
    runtime: (13, 28),
    overridable: (13, 28),
    uneven: (18, 28),
    even: (18, 28),
}
"""The opsets that have each spelling."""

AT_RUN_TIME = (runtime, overridable)


EDGES = [opset for opset in OPSETS if opset in (1, 2, 9, 10, 11, 12, 13, 17, 18, 24, 28)]
"""Both sides of each opset where the words of the family, or of what is around it, change."""


def sources(spelling: Any) -> list[int]:
    """The edges that have a spelling."""
    first, last = SPELLINGS[spelling]
    return [opset for opset in EDGES if first <= opset <= last]


def test_lengths_that_follow_from_a_dimension_are_refused_with_what_would_do() -> None:
    uneven_parts = uneven(18, "N").model
    with refused("TS310", "opset 9: the lengths follow from the dimension", "declare that dim"):
        convert(uneven_parts, opset=9)
    with refused("TS310", "opset 9: the lengths are known only at run time", "as a constant"):
        convert(AT_RUN_TIME[0](13, "N").model, opset=9)


@pytest.mark.thorough
@pytest.mark.parametrize("rows", [7, "N"])
@pytest.mark.parametrize(
    ("spelling", "source"), [(s, opset) for s in SPELLINGS for opset in sources(s)]
)
def test_split_goes_to_every_opset_that_can_say_it(spelling: Any, source: int, rows: Any) -> None:
    made = spelling(source, rows)
    lengths_at_run_time = spelling in AT_RUN_TIME or (spelling is uneven and rows == "N")
    for target in OPSETS if source == SPELLINGS[spelling][0] else EDGES:
        if lengths_at_run_time and target < 10:
            with refused("TS310", "run time", f"opset {target}"):
                converted(made.model, target)
            continue
        there = converted(made.model, target)
        check_equal(there, made.expected, x=X, **made.feeds)
        if lengths_at_run_time and target < 13:
            continue  # Slice nodes stay what they are
        back = converted(there, source)
        check_equal(back, made.expected, x=X, **made.feeds)


@pytest.mark.parametrize("rank", [1, 2, 3])
@pytest.mark.parametrize("target", known(10, 11, 12, 13, 17))
@pytest.mark.parametrize("size", [0, 1, 4, 5, 6])
def test_uneven_parts_of_a_dynamic_axis_are_calculated(rank: int, target: int, size: int) -> None:
    shape: list[int | str | None] = ["N"]
    shape += [2, 3][: rank - 1]
    parts = [value(f"y{k}", shape=[None] * rank) for k in range(2)]
    split = node("Split", "x", "y0 y1", num_outputs=2)
    made = converted(model(graph([split], [value("x", FLOAT, shape)], parts), 18), target)
    x = np.random.default_rng(size).uniform(1, 2, [size, 2, 3][:rank]).astype(np.float32)
    half = -(-size // 2)
    check_equal(made, [x[:half], x[half:]], x=x)


@pytest.mark.parametrize("target", known(10, 12))
@pytest.mark.parametrize(
    "lengths",
    [[3, 5], [3, 3], [-1, 8], [8, -1], [3, 4, 0], [7], [2**62, 2**62], [2**63 - 1, -(2**63 - 8)]],
)
def test_slices_refuse_lengths_that_the_split_refuses(target: int, lengths: list[int]) -> None:
    split = node("Split", "x c", "y0 y1")
    inputs = [value("x", FLOAT, [7, 4]), value("c", INT64, [None])]
    parts = [value(f"y{k}", shape=[None, None]) for k in range(2)]
    made = converted(model(graph([split], inputs, parts), 13), target)
    with pytest.raises(ValueError, match="TS51"):
        check_equal(made, [], x=X, c=np.array(lengths))


@pytest.mark.parametrize("target", known(10, 12, 13))
def test_uneven_parts_that_leave_a_negative_last_part_are_refused(target: int) -> None:
    split = node("Split", "x", "y0 y1 y2 y3", num_outputs=4)
    parts = [value(f"y{k}", shape=[None, None]) for k in range(4)]
    made = converted(model(graph([split], [value("x", FLOAT, ["N", 4])], parts), 18), target)
    with pytest.raises(ValueError, match=r"TS(30|51)"):
        check_equal(made, [], x=X[:5])


@pytest.mark.parametrize("ir_version", [1, 2])
def test_models_of_ir_version_1_and_2_are_converted_from_opset_1(ir_version: int) -> None:
    split = node("Split", "x", "a b", axis=1, split=[1, 3])
    declared = [value(name, shape=[7, None]) for name in "ab"]
    made = model(graph([split], [value("x", FLOAT, [7, 4])], declared))
    del made.opset_import[:]
    made.ir_version = ir_version
    done = converted(made, 13)
    assert len(done.graph.node[-1].input) == 2  # the lengths are an input from opset 13 on
    check_equal(done, [X[:, :1], X[:, 1:]], x=X)


def test_lengths_of_split_1_become_integers_if_they_are_constant() -> None:
    split = node("Split", "x c", "y0 y1", axis=0)
    init = [tensor("c", [3.0, 4.0], np.float32)]
    parts = [value(f"y{k}", shape=[None, None]) for k in range(2)]
    made = model(graph([split], [value("x", FLOAT, [7, 4])], parts, init), 1)
    for target in known(2, 11, 12, 13, 18, 28):
        there = converted(made, target)
        check_equal(there, [X[:3], X[3:]], x=X)
        assert not [entry for entry in there.graph.initializer if entry.data_type == FLOAT]


@pytest.mark.parametrize("target", known(2, 11, 13, 18))
def test_lengths_of_split_1_that_are_floats_at_run_time_are_refused(target: int) -> None:
    split = node("Split", "x c", "y0 y1", axis=0, name="s")
    inputs = [value("x", FLOAT, [7, 4]), value("c", FLOAT, [2])]
    parts = [value(f"y{k}", shape=[None, None]) for k in range(2)]
    with refused("TS310", "graph/s", "run time", operator="onnx.Split-1"):
        converted(model(graph([split], inputs, parts), 1), target)


@pytest.mark.parametrize(("element", "opset"), [("int64", 1), ("bfloat16", 2), ("bfloat16", 11)])
@pytest.mark.parametrize("place", ["if", "function"])
def test_a_type_that_only_the_target_takes_is_refused_in_any_body(
    element: str, opset: int, place: str
) -> None:
    """Else the converted model would run where the original is refused."""
    parts = f"({element}[2] a, {element}[4] b)"
    body = "a, b = Split<split=[2, 4]>(x)"
    call = f"a, b = If(c) <then_branch = t () => {parts} {{ {body} }},"
    call += f" else_branch = e () => {parts} {{ {body} }}>"
    text = f'<ir_version: 8, opset_import: ["": {opset}, "l": 1]>'
    text += f" g (bool c, {element}[6] x) => {parts} "
    if place == "function":
        text += f'{{ a, b = l.F(x) }} <domain: "l", opset_import: ["": {opset}]>'
        text += f" F (x) => (a, b) {{ {body} }}"
    else:
        text += f"{{ {call} }}"
    with refused("TS201", f"onnx.Split-{opset}", element):
        convert(parse_model(text), opset=18)


@pytest.mark.parametrize("target", known(10, 12, 13, 17))
def test_shapes_of_parts_are_known_where_lengths_are_calculated(target: int) -> None:
    """Bounds of slices and sums do not show that the parts fill the dimension."""
    made = parse_model(
        '<ir_version: 8, opset_import: ["": 18]> g (float[N] x) => (float[] a, float[] b)'
        " { a, b = Split<num_outputs = 2>(x) }"
    )
    newer = infer_shapes(convert(made, opset=target)).graph.output
    first, second = (output.type.tensor_type.shape.dim[0].dim_param for output in newer)
    for size in (0, 1, 4, 7):
        values = {"N": size, "floor": math.floor}
        assert eval(first, values) == (size + 1) // 2
        assert eval(second, values) == size // 2


@pytest.mark.parametrize("target", [2, 9])
def test_halves_that_nodes_calculate_are_equal_parts_where_bounds_are_attributes(
    target: int,
) -> None:
    """What only calculated them goes with them."""
    made = parse_model("""<ir_version: 8, opset_import: ["": 13]>
        g (float[2, N] x) => (float[2, A] a, float[2, B] b)
        <int64[1] one = {1}, int64[1] two = {2}> {
            shape = Shape(x)
            n = Gather(shape, one)
            half = Div(n, two)
            lengths = Concat<axis = 0>(half, half)
            a, b = Split<axis = 1>(x, lengths)
        }""")
    there = converted(made, target)
    assert [each.op_type for each in there.graph.node] == ["Split"]
    assert not there.graph.initializer
    x = X[:6].T.copy()[:2]
    check_equal(there, [x[:, :3], x[:, 3:]], x=x)
    with refused("TS303", "5"):
        run(there, x=x[:, :5])


@pytest.mark.parametrize(("lengths", "is_guarded"), [("sizes", False), ("fed", True)])
def test_lengths_that_fit_whatever_is_fed_are_not_checked_again(
    lengths: str, is_guarded: bool
) -> None:
    """A half and the rest fit every dimension; Reshape is what stops a model."""
    made = parse_model(f"""<ir_version: 8, opset_import: ["": 13]>
        g (float[N] x, int64[2] fed) => (float[A] a, float[B] b) <int64[1] two = {{2}}> {{
            n = Shape(x)
            half = Div(n, two)
            rest = Sub(n, half)
            sizes = Concat<axis = 0>(half, rest)
            a, b = Split(x, {lengths})
        }}""")
    there = converted(made, 11)
    assert ("Reshape" in [each.op_type for each in there.graph.node]) is is_guarded
    x = X[:, 0]
    check_equal(there, [x[:3], x[3:]], x=x, fed=np.array([3, 4]))


def test_lists_that_where_chooses_are_checked_unless_both_fit() -> None:
    made = parse_model("""<ir_version: 8, opset_import: ["": 13]>
        g (float[N] x, bool c) => (float[A] a, float[B] b) <int64[1] two = {2}> {
            n = Shape(x)
            half = Div(n, two)
            rest = Sub(n, half)
            fit = Concat<axis = 0>(half, rest)
            fail = Concat<axis = 0>(half, n)
            lengths = Where(c, fit, fail)
            a, b = Split(x, lengths)
        }""")
    there = converted(made, 11)
    x = X[:, 0]
    check_equal(there, [x[:3], x[3:]], x=x, c=np.array(True))
    with refused("TS510", "Reshape"):  # which stops a model on every engine
        run(there, x=x, c=np.array(False))
    (chosen,) = [each for each in made.graph.node if each.op_type == "Where"]
    chosen.input[2] = "fit"
    assert "Reshape" in [each.op_type for each in there.graph.node]
    assert "Reshape" not in [each.op_type for each in converted(made, 11).graph.node]


@pytest.mark.parametrize("target", [2, 9])
@pytest.mark.parametrize(("rows", "split"), [(6, [3, 3]), (7, [3, 4])])
def test_neighbouring_slices_with_calculated_bounds_are_one_split(
    rows: int, split: list[int], target: int
) -> None:
    """Before opset 10 bounds are attributes."""
    made = parse_model(f"""<ir_version: 8, opset_import: ["": 13]>
        g (float[{rows}, 4] x) => (float[A, 4] a, float[B, 4] b)
        <int64[1] zero = {{0}}, int64[1] two = {{2}}> {{
            shape = Shape(x)
            n = Gather(shape, zero)
            half = Div(n, two)
            a = Slice(x, zero, half, zero)
            b = Slice(x, half, n, zero)
        }}""")
    there = converted(made, target)
    (cut,) = there.graph.node
    assert cut.op_type == "Split"
    lengths = [list(entry.ints) for entry in cut.attribute if entry.name == "split"]
    assert lengths == [split]
    assert not there.graph.initializer
    assert [each.op_type for each in convert(made, 11).graph.node].count("Slice") == 2
    check_equal(there, [X[:3], X[3:rows]], x=X[:rows])
    twice = parse_model(f"""<ir_version: 8, opset_import: ["": 15]>
        g (float[{rows}, 4] x) => (a, b, c, d)
        <int64[1] zero = {{0}}, int64[1] two = {{2}}> {{
            n = Shape<start = 0, end = 1>(x)
            half = Div(n, two)
            a = Slice(x, zero, half, zero)
            b = Slice(x, half, n, zero)
            c = Slice(x, zero, half, zero)
            d = Slice(x, half, n, zero)
        }}""")
    there = convert(twice, target)
    assert [each.op_type for each in there.graph.node] == ["Split", "Split"]
    halves = np.split(X[:rows], [rows // 2])
    check_equal(there, [*halves, *halves], x=X[:rows])


@pytest.mark.parametrize("target", [9, 11])
def test_slices_of_equal_length_elsewhere_are_no_parts(target: int) -> None:
    """Where the second one does not start at the end of the first, no Split gives them."""
    made = parse_model("""<ir_version: 8, opset_import: ["": 13]>
        g (float[6, 4] x) => (float[A, 4] a, float[B, 4] b)
        <int64[1] zero = {0}, int64[1] two = {2}> {
            shape = Shape(x)
            n = Gather(shape, zero)
            half = Div(n, two)
            end = Add(half, two)
            a = Slice(x, zero, half, zero)
            b = Slice(x, two, end, zero)
        }""")
    there = converted(made, target)
    assert "Split" not in [each.op_type for each in there.graph.node]
    check_equal(there, [X[:3], X[2:5]], x=X[:6])


BOUNDS: dict[str, Callable[[int], int]] = {
    "zero": lambda _: 0,
    "two": lambda _: 2,
    "n": lambda n: n,
    "half": lambda n: n // 2,
    "before": lambda n: n - 2,
    "between": lambda n: n // 2 - 2,
}


@pytest.mark.parametrize("start", BOUNDS)
@pytest.mark.parametrize("end", BOUNDS)
def test_neighbours_with_calculated_bounds_are_those_of_numpy(start: str, end: str) -> None:
    """A Slice takes the place of a Gather only where it gives the same for every length.

    Indices below 0 count from the back; between bounds that are not in order lie none.
    """
    text = f"""<ir_version: 8, opset_import: ["": 13]> g (float[N] x) => (float[M] y)
        <int64[1] first = {{0}}, int64 zero = {{0}}, int64 one = {{1}}, int64 two = {{2}}>
        {{ shape = Shape(x) n = Squeeze(shape, first) half = Div(n, two) before = Sub(n, two)
        between = Sub(half, two) taken = Range({start}, {end}, one) y = Gather(x, taken) }}"""
    made = converted(parse_model(text), 10)
    for length in range(1, 7):
        x = np.arange(1, length + 1, dtype=np.float32)
        indices = np.arange(BOUNDS[start](length), BOUNDS[end](length))
        if any(not -length <= index < length for index in indices):
            with pytest.raises(SplitError):
                run(made, x=x)
        else:
            np.testing.assert_array_equal(run(made, x=x)["y"], x[indices])


@pytest.mark.parametrize("target", [9, 11, 13, 17])
def test_splits_of_one_tensor_that_engines_would_take_for_one_give_their_lengths(
    target: int,
) -> None:
    """Onnxruntime compares inputs and attributes, and not how many outputs there are."""
    made = parse_model("""<ir_version: 8, opset_import: ["": 18]> g (float[6, 4] x) => () {
        a, b = Split<num_outputs = 2>(x) c, d, e = Split<num_outputs = 3>(x)
        f, g = Split<axis = 1, num_outputs = 2>(x)
    }""")
    made.graph.output.extend(value(name, shape=[None, None]) for name in "abcdefg")
    there = infer_shapes(converted(made, target))
    x = X[:6]
    check_equal(there, [*np.split(x, 2), *np.split(x, 3), *np.split(x, 2, 1)], x=x)
    constants = {each.output[0]: each for each in there.graph.node if each.op_type == "Constant"}
    held = [each for each in there.graph.node if each.op_type == "Split"]
    is_given = [
        len(each.input) == 2 or any(attribute.name == "split" for attribute in each.attribute)
        for each in held
    ]
    assert is_given == [True, True, False]
    assert len(constants) == (2 if target >= 13 else 0)


def test_splits_of_one_tensor_that_num_outputs_tells_apart_need_no_lengths() -> None:
    made = parse_model("""<ir_version: 8, opset_import: ["": 13]> g (float[6, 4] x) => () {
        a, b = Split(x) c, d, e = Split(x)
    }""")
    made.graph.output.extend(value(name, shape=[None, None]) for name in "abcde")
    there = converted(made, 18)
    assert [[(each.name, each.i) for each in held.attribute] for held in there.graph.node] == [
        [("num_outputs", 2)],
        [("num_outputs", 3)],
    ]
    check_equal(there, [*np.split(X[:6], 2), *np.split(X[:6], 3)], x=X[:6])


HALVES = {
    "Concat": "y = Concat <axis = 0> (h, h)",
    "Concat from the back": "y = Concat <axis = -1> (h, h)",
    "Expand": "y = Expand(h, two)",
    "Mul": "y = Mul(h, ones)",
    "Sub": "a = Sub(n, h) b = Sub(n, a) y = Concat <axis = 0> (b, h)",
    "Add": "a = Mul(h, two) b = Add(a, h) c = Sub(b, a) y = Concat <axis = 0> (c, h)",
    "Sum": "a = Neg(h) b = Sum(h, h, a) y = Concat <axis = 0> (b, h)",
    "Div towards 0": "a = Neg(n) b = Neg(two) c = Div(a, b) y = Concat <axis = 0> (c, h)",
    "Max": "a = Neg(n) b = Max(a, h, zero) y = Concat <axis = 0> (b, h)",
    "Min": "a = Min(n, h) y = Concat <axis = 0> (a, h)",
    "CumSum": "a = Concat <axis = 0> (h, h) b = CumSum(a, axis) c = Slice(b, zero, one)"
    " y = Concat <axis = 0> (h, c)",
    "CumSum of a table": "a = Concat <axis = 0> (h, h) b = Reshape(a, row) c = CumSum(b, axis)"
    " y = Reshape(c, list)",
    "ReduceSum": "a = Concat <axis = 0> (h, zero) b = ReduceSum(a, zero)"
    " y = Concat <axis = 0> (b, h)",
    "ReduceSum without the axis": "a = Concat <axis = 0> (h, h) b = ReduceSum <keepdims = 0>"
    " (a, zero) c = Unsqueeze(b, zero) d = Sub(c, h) y = Concat <axis = 0> (d, h)",
    "Slice": "a = Concat <axis = 0> (n, h, h) y = Slice(a, one, three)",
    "Slice from the back": "a = Concat <axis = 0> (n, h, h) b = Neg(two) y = Slice(a, b, three)",
    "Slice with a step": "a = Concat <axis = 0> (h, n, h) y = Slice(a, zero, three, zero, two)",
    "Slice of a table": "a = Concat <axis = 0> (h, h, n) b = Reshape(a, row) c = Neg(one)"
    " d = Slice(b, zero, two, c) y = Reshape(d, list)",
    "Gather": "a = Concat <axis = 0> (n, h) y = Gather(a, ones)",
    "Gather from the back": "a = Concat <axis = 0> (h, n) b = Neg(two) c = Gather(a, b)"
    " y = Concat <axis = 0> (c, c)",
    "Gather of a table": "a = Concat <axis = 0> (h, n) b = Reshape(a, row) c = Gather <axis = -1>"
    " (b, zero) d = Reshape(c, list) y = Concat <axis = 0> (d, d)",
    "Squeeze": "a = Concat <axis = 0> (h, h) b = Reshape(a, row) y = Squeeze(b, zero)",
    "Unsqueeze": "a = Concat <axis = 0> (h, h) b = Unsqueeze(a, one) y = Reshape(b, list)",
    "Identity": "a = Identity(h) y = Concat <axis = 0> (a, h)",
    "Range": "a = Squeeze(one) b = Squeeze(three) c = Range(a, b, a) d = Less(c, three)"
    " y = Where(d, h, n)",
    "Cast": "a = Less(zero, ones) b = Cast <to = 7> (a) y = Mul(b, h)",
    "Less": "a = Less(h, h) b = Where(a, n, h) y = Concat <axis = 0> (b, h)",
    "LessOrEqual": "a = LessOrEqual(h, h) b = Where(a, h, n) y = Concat <axis = 0> (b, h)",
    "Greater": "a = Greater(h, h) b = Where(a, n, h) y = Concat <axis = 0> (b, h)",
    "GreaterOrEqual": "a = GreaterOrEqual(h, h) b = Where(a, h, n) y = Concat <axis = 0> (b, h)",
    "Where of lists": "a = Concat <axis = 0> (h, h) b = Concat <axis = 0> (n, n)"
    " c = Less(a, b) d = Less(b, a) e = And(c, d) y = Where(e, b, a)",
    "Equal": "a = Mul(h, two) b = Equal(a, n) c = Where(b, h, h) y = Concat <axis = 0> (c, h)",
    "Not": "a = Less(h, h) b = Not(a) c = Where(b, h, n) y = Concat <axis = 0> (c, h)",
    "And": "a = Less(n, zero) b = Less(zero, one) c = And(a, b) d = Where(c, n, h)"
    " y = Concat <axis = 0> (d, h)",
    "Or": "a = Less(n, zero) b = Less(zero, one) c = Or(a, b) d = Where(c, h, n)"
    " y = Concat <axis = 0> (d, h)",
    "Shape": "a = Shape <start = 0, end = 1> (x) b = Div(a, two) y = Concat <axis = 0> (b, h)",
    "Shape from the back": "a = Shape <start = -2, end = -1> (x) b = Div(a, two)"
    " y = Concat <axis = 0> (b, h)",
    "Shape of a list": "a = Concat <axis = 0> (h, h) b = Shape(a) c = Sub(b, one) y = Mul(c, a)",
}
"""Ways to calculate two lengths, each half of a dimension."""


@pytest.mark.parametrize("way", HALVES)
def test_halves_that_any_nodes_calculate_are_equal_parts_again(way: str) -> None:
    made = parse_model(f"""<ir_version: 8, opset_import: ["": 18]>
        g (float[N, 4] x) => (float[P, 4] p, float[Q, 4] q)
        <int64[1] zero = {{0}}, int64[1] one = {{1}}, int64[1] two = {{2}}, int64[1] three = {{3}},
         int64[2] ones = {{1, 1}}, int64[2] row = {{1, -1}}, int64[1] list = {{-1}},
         int64 axis = {{0}}> {{
            s = Shape(x) n = Slice(s, zero, one) h = Div(n, two)
            {HALVES[way]}
            p, q = Split(x, y)
        }}""")
    there = converted(made, 9)
    assert [each.op_type for each in there.graph.node] == ["Split"]
    check_equal(there, np.split(X[:6], 2), x=X[:6])


def of_another(dims: str) -> ModelProto:
    """Return a model that splits ``x`` into two halves of the first dimension of ``w``."""
    return parse_model(f"""<ir_version: 8, opset_import: ["": 18]>
        g (float[N, 4] x, float[{dims}] w) => (float[P, 4] p, float[Q, 4] q)
        <int64[1] zero = {{0}}, int64[1] one = {{1}}, int64[1] two = {{2}}> {{
            s = Shape(w) n = Slice(s, zero, one) h = Div(n, two) y = Concat <axis = 0> (h, h)
            p, q = Split(x, y)
        }}""")


def test_halves_of_another_tensor_are_equal_parts_if_its_dimension_is_the_same() -> None:
    there = converted(of_another("N, 3"), 9)
    assert [each.op_type for each in there.graph.node] == ["Split"]
    check_equal(there, np.split(X[:6], 2), x=X[:6], w=X[:6, :3])


@pytest.mark.parametrize("dims", ["M, N", "M"])
def test_halves_of_another_dimension_are_no_equal_parts(dims: str) -> None:
    with refused("TS310", "graph/Split"):
        convert(of_another(dims), 9)


def test_a_node_that_gives_out_another_part_stays_where_lengths_need_it_no_more() -> None:
    """The halves are calculated from the shape of its first part."""
    made = parse_model("""<ir_version: 8, opset_import: ["": 18]>
        g (float[N, 4] x) => (float[P, 4] a, float[P, 4] b, float[N, 3] q)
        <int64[2] l = {1, 3}, int64[1] zero = {0}, int64[1] two = {2}> {
            p, q = Split <axis = 1> (x, l)
            s = Shape(p) n = Gather(s, zero) h = Div(n, two) halves = Concat <axis = 0> (h, h)
            a, b = Split(x, halves)
        }""")
    there = converted(made, 9)
    assert [each.op_type for each in there.graph.node] == ["Split", "Split"]
    check_equal(there, [*np.split(X[:6], 2), X[:6, 1:]], x=X[:6])


def test_slices_with_constant_bounds_stay_slices() -> None:
    """Attributes hold bounds before opset 10; together they would be three equal parts."""
    made = parse_model("""<ir_version: 8, opset_import: ["": 13]>
        g (float[6, 4] x) => (float[2, 4] a, float[2, 4] b, float[2, 4] c)
        <int64[1] o = {0}, int64[1] p = {2}, int64[1] q = {4}, int64[1] r = {6}> {
            a = Slice(x, o, p, o) b = Slice(x, p, q, o) c = Slice(x, q, r, o)
        }""")
    there = converted(made, 9)
    assert [each.op_type for each in there.graph.node] == ["Slice"] * 3
    check_equal(there, np.split(X[:6], 3), x=X[:6])


@pytest.mark.parametrize("condition", [False, True])
def test_constant_lengths_below_0_are_refused_where_their_branch_is_taken(condition: bool) -> None:
    made = parse_model("""<ir_version: 8, opset_import: ["": 13]>
        g (float[4] x, bool c) => (float[A] y) <int64[2] l = {6, -2}> { y = If (c) <
          then_branch = t () => (float[A] a) { a, b = Split(x, l) },
          else_branch = e () => (float[B] d) { d = Neg(x) }> }""")
    data = np.arange(4, dtype=np.float32)
    for target in (10, 12):
        there = convert(made, target)
        if condition:
            with pytest.raises(SplitError):
                outputs(there, x=data, c=np.array(True))
        else:
            np.testing.assert_array_equal(outputs(there, x=data, c=np.array(False))[0], -data)


@pytest.mark.parametrize("lengths", ["m, seven", "seven, m", "m, five"])
def test_negative_lengths_are_refused_where_their_branch_is_taken(lengths: str) -> None:
    """They follow from a dimension that is known; as an attribute they would always be refused."""
    text = f"""<ir_version: 8, opset_import: ["": 13]> g (float[6] x, bool c) => (float[A] y)
        <int64[1] seven = {{7}}, int64[1] five = {{5}}> {{ n = Shape(x) m = Sub(n, seven)
          l = Concat <axis = 0> ({lengths}) y = If (c) <
            then_branch = t () => (float[A] a) {{ a, b = Split(x, l) }},
            else_branch = e () => (float[B] d) {{ d = Neg(x) }}> }}"""
    made, data = parse_model(text), np.arange(6, dtype=np.float32)
    for target in (11, 12, 13, 18):
        there = convert(made, target)
        np.testing.assert_array_equal(outputs(there, x=data, c=np.array(False))[0], -data)
        with pytest.raises(SplitError):
            outputs(there, x=data, c=np.array(True))
    there = convert(made, 18, variadic=True)
    np.testing.assert_array_equal(outputs(there, x=data, c=np.array(False))[0], -data)
    with pytest.raises(SplitError):
        outputs(there, x=data, c=np.array(True))
    with refused("TS310", "Split", "opset 10"):
        convert(made, 9)


@pytest.mark.parametrize(("target", "axes"), [(2, [1, 2]), (7, [1, 2]), (10, [1, 2]), (11, [2, 1])])
def test_axes_of_what_reads_a_part_are_in_order_where_onnx_wants_them_so(
    target: int, axes: list[int]
) -> None:
    """Onnx infers a shape of rank 2 of such a Squeeze from opset 2 to 10, and nothing at 1."""
    made = parse_model("""<ir_version: 4, opset_import: ["": 1]> g (float[7, 1, 1] x)
        => (float[3] y, float[4] z) { a, b = Split<axis = 0, split = [3, 4]>(x)
        y = Squeeze<axes = [2, 1]>(a) z = Squeeze<axes = [1, 2]>(b) }""")
    there = converted(made, target)
    check_equal(there, np.split(X[:, 0], [3]), x=X[:, :1, None])
    written = [list(each.attribute[0].ints) for each in there.graph.node if "Sq" in each.op_type]
    assert written == [axes, [1, 2]]
