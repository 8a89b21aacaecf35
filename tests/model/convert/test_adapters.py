"""Each adapter on both sides of its border: what it keeps, and what it refuses by name."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import AttributeProto, TensorProto, checker, helper, numpy_helper
from onnx.parser import parse_model

import tensorsplit as ts
from tensorsplit.model.convert import convert
from tensorsplit.model.convert.driver import open_converted
from tests.model.build import (
    BOOL,
    FLOAT,
    INT64,
    STRING,
    function,
    graph,
    known,
    model,
    node,
    outputs,
    tensor,
    untyped,
    value,
)
from tests.model.convert.legal import converted
from tests.refusals import refused

RNG = np.random.default_rng(17)
X = RNG.uniform(-2, 2, (2, 3, 4)).astype(np.float32)
DOUBLE, INT32, HALF = TensorProto.DOUBLE, TensorProto.INT32, TensorProto.FLOAT16
KINDS = {
    "float32": FLOAT,
    "float64": DOUBLE,
    "float16": HALF,
    "int64": INT64,
    "int32": INT32,
    "uint64": TensorProto.UINT64,
    "bool": BOOL,
}


def of(nodes: Any, opset: int, constants: Any = (), out: str = "y", **inputs: Any) -> Any:
    """A model at an opset; its inputs are declared by arrays like what they are fed."""
    given = [value(name, KINDS[held.dtype.name], held.shape) for name, held in inputs.items()]
    nodes = nodes if isinstance(nodes, list) else [nodes]
    return model(graph(nodes, given, [untyped(name) for name in out.split()], constants), opset)


def there(made: Any, opset: int, **inputs: Any) -> Any:
    """The first output of a model at another opset."""
    return outputs(convert(made, opset), **inputs)[0]


def attributes(made: Any, op_type: str) -> dict[str, Any]:
    """The attributes of the first node of an operator."""
    found = next(each for each in made.graph.node if each.op_type == op_type)
    return {entry.name: helper.get_attribute_value(entry) for entry in found.attribute}


def test_an_axis_of_an_old_broadcast_may_count_from_the_back() -> None:
    row = X[0, :, 0]
    made = of(node("Add", "x r", "y", broadcast=1, axis=-2), 6, x=X, r=row)
    np.testing.assert_array_equal(there(made, 7, x=X, r=row), X + row[:, None])


@pytest.mark.parametrize("op_type", ["Sub", "Div", "Pow", "Less"])
def test_only_of_symmetric_operators_the_first_operand_is_broadcast(op_type: str) -> None:
    """Before opset 7 only the second one is."""
    row = X[0, 0]
    made = of(node("Add", "r x", "y"), 7, x=X, r=row)
    np.testing.assert_array_equal(there(made, 6, x=X, r=row), row + X)
    with refused("TS512", op_type, "(4,)", "(2, 3, 4)"):
        convert(of(node(op_type, "r x", "y"), 9, x=X, r=row), 6)


def test_one_number_of_two_dimensions_is_not_broadcast_before_opset_7() -> None:
    one = np.ones((1, 1), np.float32)
    with refused("TS512", "Add", "(1, 1)"):
        convert(of(node("Add", "x o", "y"), 7, x=X, o=one), 6)
    for data in (X, X[0, 0]):  # of more dimensions, and of as many
        made = of(node("Add", "x o", "y"), 7, x=data, o=one[0])
        np.testing.assert_array_equal(there(made, 6, x=data, o=one[0]), data + 1)


@pytest.mark.parametrize("op_type", ["Sum", "Max", "Min", "Mean"])
def test_every_operand_of_a_sum_has_one_shape_before_opset_8(op_type: str) -> None:
    with refused("TS512", op_type, "(4,)"):
        convert(of(node(op_type, "x x r", "y"), 8, x=X, r=X[0, 0]), 7)


@pytest.mark.parametrize(("op_type", "extreme"), [("Max", np.maximum), ("Min", np.minimum)])
def test_integers_are_compared_one_by_one_before_opset_12(op_type: str, extreme: Any) -> None:
    a, b, c = np.array([[1, 5, 3], [4, 2, 6], [3, 7, 0]])
    made = of(node(op_type, "a b c", "y"), 12, a=a, b=b, c=c)
    for target in (9, 11):
        assert there(made, target, a=a, b=b, c=c).tolist() == extreme(extreme(a, b), c).tolist()
    with refused("TS512", op_type):
        convert(made, 8)  # Less takes no integers there


@pytest.mark.parametrize(("op_type", "compare"), [("Less", np.less), ("Greater", np.greater)])
def test_integers_are_compared_as_doubles_before_opset_9_where_these_are_exact(
    op_type: str, compare: Any
) -> None:
    edge = (1 << 53) - 1
    near = np.array([-(1 << 60), -edge, 5, edge - 1, edge, edge + 1, 1 << 62])
    for least in (edge, -edge):
        constants = [tensor("c", [least])]
        for inputs, wanted in (("x c", compare(near, least)), ("c x", compare(least, near))):
            made = of(node(op_type, inputs, "y"), 13, constants, x=near)
            assert there(made, 8, x=near).tolist() == wanted.tolist()
    with refused("TS512", op_type, "int64"):
        convert(of(node(op_type, "x c", "y"), 13, [tensor("c", [edge + 1])], x=near), 8)
    with refused("TS512", op_type, "int64"):
        convert(of(node(op_type, "x z", "y"), 13, x=near, z=near[::-1]), 8)
    short, other = RNG.integers(-(1 << 31), 1 << 31, (2, 40)).astype(np.int32)
    other[:9] = short[:9] + RNG.integers(-1, 2, 9)
    made = of(node(op_type, "x z", "y"), 13, x=short, z=other)
    assert there(made, 7, x=short, z=other).tolist() == compare(short, other).tolist()


@pytest.mark.parametrize("kind", ["float32", "float64", "float16", "uint64"])
@pytest.mark.parametrize("is_constant", [False, True])
def test_other_numbers_are_compared_twice_before_opset_11(is_constant: bool, kind: str) -> None:
    pairs: list[tuple[float, float]] = [(0, 0), (1, 2), (5, 5), (1 << 63, (1 << 63) + 1)]
    if kind != "uint64":
        pairs = [(0, -0.0), (1, 2), (np.nan, np.nan), (np.nan, 1), (np.inf, np.inf), (5, np.nan)]
    left, right = (np.array(each, kind) for each in zip(*pairs, strict=True))
    made, inputs = [node("Equal", "x z", "y")], [value("x", KINDS[kind], ["N"])]
    constants = [tensor("z", right, kind)] if is_constant else []
    feeds = {"x": left} if is_constant else {"x": left, "z": right}
    inputs += [] if is_constant else [value("z", KINDS[kind], ["N"])]
    whole = model(graph(made, inputs, [value("y", BOOL, ["N"])], constants), 13)
    for target in (9, 10):
        (found,) = outputs(converted(whole, target), **feeds)
        assert found.tolist() == (left == right).tolist()
    is_nan = [each.op_type for each in convert(whole, 10).graph.node].count("IsNaN")
    assert is_nan == (0 if kind == "uint64" else 2)


def test_a_constant_without_nan_needs_no_test_for_it_where_it_is_compared() -> None:
    made = of(node("Equal", "x z", "y"), 13, [tensor("z", [-np.inf], np.float32)], x=X[0, 0])
    assert [each.op_type for each in convert(made, 10).graph.node].count("IsNaN") == 1


@pytest.mark.parametrize("kind", [np.uint8, np.int16, np.uint32])
def test_short_integers_are_compared_as_int64_before_opset_11(kind: Any) -> None:
    made, named = node("Equal", "x z", "y"), helper.np_dtype_to_tensor_dtype(np.dtype(kind))
    inputs = [value(name, named, [3]) for name in "xz"]
    older = converted(model(graph([made], inputs, [value("y", BOOL, [3])]), 13), 7)
    x, z = np.array([1, 200, 7], kind), np.array([1, 201, 7], kind)
    assert outputs(older, x=x, z=z)[0].tolist() == [True, False, True]


@pytest.mark.parametrize("kind", ["int64", "int32"])
@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("dims", [(2, 3, 4), ("N", "M", "K"), (2, "M", 4)])
def test_elements_are_gathered_by_their_places_before_opset_11(
    dims: Any, axis: int, kind: str
) -> None:
    size = X.shape[axis]
    shape = [2, 2, 3]
    shape[axis] = 5
    places = RNG.integers(-size, size, shape).astype(kind)
    gathered, ending = node("GatherElements", "x i", "y", axis=axis), [None, None, None]
    declared = [None, shape[1], "L"] if axis else shape
    given = [value("x", FLOAT, dims), value("i", KINDS[kind], declared)]
    whole = model(graph([gathered], given, [value("y", FLOAT, ending)]), 13)
    rows = [slice(None if place == axis % 3 else shape[place]) for place in range(3)]
    wanted = np.take_along_axis(X[tuple(rows)], places, axis)
    for target in (9, 10):
        older = converted(whole, target)
        np.testing.assert_array_equal(outputs(older, x=X, i=places)[0], wanted, strict=True)
    for beyond in (size, -size - 1):  # elsewhere there are elements at that place
        places[0, 0, 0] = beyond
        with pytest.raises(ts.SplitError):
            outputs(older, x=X, i=places)
    with refused("TS512", "GatherElements", "convert to opset 9 or newer"):
        convert(whole, 8)


def test_elements_of_a_list_are_gathered_from_its_last_axis() -> None:
    fed = {"x": X[0, 0], "i": np.array([-1, 0, 2, 2])}
    whole = of(node("GatherElements", "x i", "y", axis=-1), 13, **fed)
    np.testing.assert_array_equal(there(whole, 9, **fed), fed["x"][fed["i"]])


@pytest.mark.parametrize("rank", [2, 3, 4])
def test_a_slope_for_each_channel_is_one_in_every_version(rank: int) -> None:
    data = RNG.uniform(-2, 2, (2, 3, 3, 3)[:rank]).astype(np.float32)
    slope = np.array([0.5, 2, -1], np.float32)
    whole = slope.reshape(3, *(1,) * (rank - 2))
    wanted = np.where(data < 0, data * whole, data)
    older = of(node("PRelu", "x s", "y"), 6, x=data, s=slope)
    np.testing.assert_array_equal(there(older, 9, x=data, s=slope), wanted)
    newer = of(node("PRelu", "x s", "y"), 9, x=data, s=whole)
    np.testing.assert_array_equal(there(newer, 6, x=data, s=whole), wanted)


def test_softmax_of_the_first_axis_moves_it_to_the_end_and_back() -> None:
    raised = np.exp(X)
    made = of(node("Softmax", "x", "y", axis=0), 13, x=X)
    np.testing.assert_allclose(there(made, 12, x=X), raised / raised.sum(0), rtol=1e-5)


@pytest.mark.parametrize(("axis", "written"), [(-1, 1), (1, 1)])
def test_the_last_axis_of_a_softmax_counts_from_the_front_where_the_rank_is_known(
    axis: int, written: int
) -> None:
    made = of(node("Softmax", "x", "y", axis=axis), 13, x=X[0])
    assert attributes(convert(made, 12), "Softmax") == {"axis": written}
    old = convert(of(node("Softmax", "x", "y", axis=axis), 12, x=X[0]), 13)
    assert [each.op_type for each in old.graph.node] == ["Softmax"]
    assert attributes(old, "Softmax") == {"axis": -1}


def test_of_unknown_ranks_only_axis_minus_1_is_the_last() -> None:
    def softmax(axis: int) -> Any:
        nodes = [node("Softmax", "x", "y", axis=axis)]
        return model(graph(nodes, [value("x", FLOAT, None)], [untyped("y")]), 13)

    assert attributes(convert(softmax(-1), 12), "Softmax") == {"axis": -1}
    with refused("TS512", "Softmax", "rank"):
        convert(softmax(0), 12)


def test_grid_sample_takes_images_alone_before_opset_20() -> None:
    volume, line = np.ones((1, 1, 2, 2, 2), np.float32), np.ones((1, 1, 3), np.float32)
    for data, rank in ((volume, 5), (line, 3)):
        grid = np.zeros((1, *data.shape[2:], rank - 2), np.float32)
        with refused("TS512", "GridSample", f"rank of its data is {rank}"):
            convert(of(node("GridSample", "x g", "y"), 20, x=data, g=grid), 19)


@pytest.mark.parametrize(
    "padding", [{"auto_pad": "SAME_UPPER"}, {"auto_pad": "SAME_LOWER"}, {"output_shape": [7]}]
)
def test_padding_that_follows_from_the_output_changed_its_sides(padding: Any) -> None:
    data, weights = np.ones((1, 1, 3), np.float32), np.ones((1, 1, 2), np.float32)
    made = of(node("ConvTranspose", "x w", "y", **padding), 10, x=data, w=weights)
    with refused("TS512", "ConvTranspose", "padding"):
        convert(made, 11)
    plain = of(node("ConvTranspose", "x w", "y"), 10, x=data, w=weights)
    assert there(plain, 11, x=data, w=weights).tolist() == [[[1, 2, 2, 1]]]


def test_the_exponent_of_lp_pool_is_a_whole_number_since_opset_2() -> None:
    def pool(opset: int, p: Any) -> Any:
        made = node("LpPool", "x", "y", kernel_shape=[2], p=p)
        return model(graph([made], [value("x", FLOAT, [1, 1, 4])], ["y"]), opset)

    assert attributes(convert(pool(1, 3.0), 2), "LpPool")["p"] == 3
    assert attributes(convert(pool(2, 3), 1), "LpPool")["p"] == 3.0
    for p in (1.5, float("nan")):
        with refused("TS512", "LpPool", f"'p' is {p}"):
            convert(pool(1, p), 2)


@pytest.mark.parametrize(
    ("other", "is_kept"), [((2, 3), True), ((2, 4), False), ((2, 3, 1), False), ((), False)]
)
def test_branches_give_one_shape_before_opset_11(other: tuple[int, ...], is_kept: bool) -> None:
    bodies = [
        graph([node("Constant", "", name, value=tensor("c", np.ones(shape)))], [], [ending])
        for name, shape in (("p", (2, 3)), ("q", other))
        for ending in [value(name, INT64, shape)]
    ]
    choice = node("If", "c", "y", then_branch=bodies[0], else_branch=bodies[1])
    made = model(graph([choice], [value("c", BOOL, [])], [value("y", INT64, [2, 3])]), 11)
    if is_kept:
        converted(made, 10)
        return
    with refused("TS512", "If", "different shapes"):
        convert(made, 10)


def test_a_branch_may_be_declared_wrong_where_its_shape_is_known() -> None:
    """Of both branches engines merge what is declared; PyTorch writes such of a repetition."""
    made = [node("Concat", "x x", "p", axis=0)], [node("Identity", "z", "q")]
    bodies = [
        graph(nodes, [], [value(name, FLOAT, shape)])
        for nodes, name, shape in zip(made, "pq", ((3, 3), (4, 3)), strict=True)
    ]
    choice = node("If", "c", "y", then_branch=bodies[0], else_branch=bodies[1])
    inputs = [value("c", BOOL, []), value("x", FLOAT, [2, 3]), value("z", FLOAT, [4, 3])]
    whole = graph([choice], inputs, [value("y", FLOAT, [None, 3])])
    data = X[:, :, 0]
    older = converted(model(whole, 11), 10)
    (found,) = outputs(older, c=np.array(True), x=data, z=np.zeros((4, 3), np.float32))
    np.testing.assert_array_equal(found, np.concatenate([data, data]))


@pytest.mark.parametrize("given", ['n, ""', "n, on", '"", on'])
@pytest.mark.parametrize("rounds", [0, 3])
def test_a_loop_carries_something_before_opset_11(given: str, rounds: int) -> None:
    made = parse_model(
        f"""<ir_version: 8, opset_import: ["": 18]> g (float[5] x, int64 n, bool on, int64 last)
        => (float[N, 2] y, int64[N] z) {{ y, z = Loop({given}) <body = b (int64 i, bool c)
        => (bool o, float[2] p, int64 j) {{ o = Less(i, last) p, q = Split<num_outputs = 2>(h)
        h = Slice(x, zero, four) j = Add(i, last) }}> }}"""
    )
    body = made.graph.node[0].attribute[0].g
    body.initializer.extend([tensor("zero", [0]), tensor("four", [4])])
    body.node.insert(0, body.node.pop(2))
    feeds = {"x": X.ravel()[:5], "n": np.array(rounds), "on": np.array(rounds > 0)}
    feeds["last"] = np.array(9 if "n" in given.split(", ") else rounds - 1)
    for opset in (10, 9):
        older = converted(made, opset)
        y, z = outputs(older, **feeds)
        np.testing.assert_array_equal(y, np.tile(feeds["x"][:2], (rounds, 1)))
        assert z.tolist() == [i + int(feeds["last"]) for i in range(rounds)]


@pytest.mark.engine("onnxruntime")
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    ("opset", "to", "is_bool"),
    [(7, 13, False), (9, 12, False), (9, 10, False), (13, 11, True), (12, 7, True), (10, 9, True)],
)
def test_the_mask_of_dropout_is_of_what_is_kept(
    opset: int, to: int, is_bool: bool, dtype: Any
) -> None:
    """ONNX Runtime fills a mask with zeros before opset 12: it is written as what is true."""
    x = X.astype(dtype)
    x[0, 1] = np.nan
    made = convert(of(node("Dropout", "x", "y m"), opset, out="y m", x=x), to)
    for found in (ts.run(made, {"x": x}), ts.run(made, {"x": x}, engine="onnxruntime")):
        np.testing.assert_array_equal(found["y"], x)
        assert found["m"].dtype == (bool if is_bool else dtype)
        if to != 10 or not is_bool:
            np.testing.assert_array_equal(found["m"], np.ones(x.shape))


@pytest.mark.parametrize("names", ["y m", "y _ v", "y m v s"])
def test_batch_normalization_that_gives_its_mean_is_in_training(names: str) -> None:
    given: dict[str, Any] = dict.fromkeys("abcd", X[0, 0])
    out = " ".join(name for name in names.split() if name != "_")
    made = of(node("BatchNormalization", "x a b c d", names), 13, out=out, x=X[0], **given)
    with refused("TS512", "BatchNormalization", "training"):
        convert(made, 14)


@pytest.mark.parametrize("flag", [{}, {"is_test": 0}, {"is_test": 1}])
def test_what_does_not_say_that_it_is_a_test_is_in_training_before_opset_7(flag: Any) -> None:
    made = of(node("Dropout", "x", "y", **flag), 6, x=X)
    if flag.get("is_test"):
        np.testing.assert_array_equal(there(made, 7, x=X), X)
        return
    with refused("TS512", "Dropout", "training mode"):
        convert(made, 7)


def test_old_batch_normalization_is_told_that_it_is_a_test_and_what_it_consumes() -> None:
    given: dict[str, Any] = dict.fromkeys("abcd", X[0, 0, :3])
    made = of(node("BatchNormalization", "x a b c d", "y"), 7, x=X[0], **given)
    there = attributes(convert(made, 5), "BatchNormalization")
    assert (there["is_test"], there["consumed_inputs"]) == (1, [0, 0, 0, 1, 1])


@pytest.mark.parametrize("groups", [0, -1])
def test_there_is_a_group_to_normalize(groups: int) -> None:
    made = of(
        node("GroupNormalization", "x s b", "y", num_groups=groups), 18, x=X, s=X[0, 0], b=X[0, 0]
    )
    with refused("TS512", "GroupNormalization", f"{groups} groups"):
        convert(made, 21)


def test_saturation_stays_with_the_floats_that_it_is_for() -> None:
    """Before opset 24 as since then; of other types it says nothing."""
    for eight in (TensorProto.FLOAT8E4M3FN, TensorProto.FLOAT8E5M2):
        made = of(node("Cast", "x", "y", to=eight, saturate=0), 24, x=X)
        assert attributes(convert(made, 23), "Cast") == {"to": eight, "saturate": 0}
    for opset in (19, 23, 24):  # opsets 19 and 24 changed it
        plain = of(node("Cast", "x", "y", to=HALF, saturate=0), opset, x=X)
        assert attributes(convert(plain, 18), "Cast") == {"to": HALF}


def test_cast_like_becomes_a_cast_to_the_type_of_its_second_operand() -> None:
    like = np.array([1])
    found = there(of(node("CastLike", "x l", "y"), 15, x=X, l=like), 14, x=X, l=like)
    np.testing.assert_array_equal(found, X.astype(np.int64), strict=True)
    eight = tensor("e", [1], np.float32)
    nodes = [
        node("Cast", "e", "f", to=TensorProto.FLOAT8E4M3FN),
        node("CastLike", "x f", "y", saturate=0),
    ]
    assert attributes(convert(of(nodes, 24, [eight], x=X), 23), "CastLike") == {"saturate": 0}
    nodes[-1].attribute.add(name="round_mode", s=b"nearest", type=AttributeProto.STRING)
    assert attributes(convert(of(nodes, 24, [eight], x=X), 23), "CastLike") == {"saturate": 0}
    unknown = [node("Foreign", "x", "l", domain="foreign"), node("CastLike", "x l", "y")]
    made = of(unknown, 15, x=X)
    made.opset_import.add(domain="foreign", version=1)
    with refused("TS512", "CastLike", "type of its data is not known; declare its type"):
        convert(made, 14)


@pytest.mark.skipif(24 not in known(24), reason="onnx has no Attention of 7 inputs yet")
def test_a_node_of_inputs_that_an_opset_does_not_have_or_wants_does_not_stay() -> None:
    dims = {"q": [1, 2, 3, 4], "k": [1, 2, 5, 4], "v": [1, 2, 5, 4]}
    inputs = [value(name, FLOAT, shape) for name, shape in dims.items()]
    inputs.append(value("n", INT64, [1]))
    attention = model(graph([node("Attention", "q k v _ _ _ n", "y")], inputs, ["y"]), 24)
    older = convert(attention, 23)
    assert "Attention" not in {each.op_type for each in older.graph.node}
    feeds: dict[str, Any] = {
        name: RNG.normal(size=d).astype(np.float32) for name, d in dims.items()
    }
    scores = np.exp(feeds["q"] @ feeds["k"][:, :, :3].swapaxes(2, 3) / 2)  # of three keys alone
    expected = scores / scores.sum(-1, keepdims=True) @ feeds["v"][:, :, :3]
    found = outputs(older, n=np.array([3]), **feeds)[0]
    np.testing.assert_allclose(found, expected, rtol=1e-5)
    nothing = model(graph([node("OptionalHasElement", "", "y")], [], ["y"]), 18)
    with refused("TS512", "OptionalHasElement", "it has 0 inputs"):
        convert(nothing, 17)


@pytest.mark.parametrize("scales", [[1, 1, 1, 1], [1, 1, 1, 2], [1, 1, 3, 1]])
def test_a_resize_by_1_or_more_is_an_upsample(scales: list[float]) -> None:
    constants = [tensor("s", scales, np.float32)]
    older = convert(of(node("Resize", "x s", "y"), 10, constants, x=IMAGE), 9)
    assert [each.op_type for each in older.graph.node] == ["Upsample"]
    larger = IMAGE.repeat(int(scales[2]), 2).repeat(int(scales[3]), 3)
    np.testing.assert_array_equal(outputs(older, x=IMAGE)[0], larger)


@pytest.mark.parametrize("op_type", ["QuantizeLinear", "DequantizeLinear"])
@pytest.mark.parametrize(("shape", "is_kept"), [([], True), ([1], True), (None, False)])
def test_there_is_one_scale_before_opset_13(op_type: str, shape: Any, is_kept: bool) -> None:
    kind = FLOAT if op_type == "QuantizeLinear" else TensorProto.UINT8
    inputs = [value("x", kind, [2, 4]), value("s", FLOAT, shape)]
    made = model(graph([node(op_type, "x s", "y")], inputs, ["y"]), 13)
    if is_kept:
        assert not attributes(convert(made, 12), op_type)
        return
    with refused("TS512", op_type, "a scale for each channel"):
        convert(made, 12)


@pytest.mark.parametrize("dims", [[3, 4, 5], ["A", "B", "C"], None])
@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize(
    ("op_type", "kind"),
    [
        *(("QuantizeLinear", kind) for kind in ("uint8", "int8", "no zero point")),
        *(("DequantizeLinear", kind) for kind in ("uint8", "int8", "int32", "no zero point")),
    ],
)
def test_scales_of_channels_are_calculated_with_before_opset_13(
    op_type: str, kind: str, axis: int, dims: Any, rng: np.random.Generator
) -> None:
    """y = saturate(round(x / scale) + zero point), half to even; y = (x - zero point) * scale."""
    is_up = op_type == "QuantizeLinear"
    number = np.dtype("uint8" if kind == "no zero point" else kind)
    size = (3, 4, 5)[axis]
    scale = rng.uniform(0.01, 0.3, size).astype(np.float32)
    zero = rng.integers(0, 20, size).astype(number) * (kind != "int32")
    given = [tensor("s", scale, np.float32)]
    given += [] if kind == "no zero point" else [tensor("z", zero, number)]
    low, high = np.iinfo(number).min, np.iinfo(number).max
    x = rng.normal(0, 30, (3, 4, 5)).astype(np.float32)
    x = x if is_up else rng.integers(low, high, (3, 4, 5), endpoint=True).astype(number)
    names = " ".join(["x", *(each.name for each in given)])
    held = value("x", FLOAT if is_up else getattr(TensorProto, number.name.upper()), dims)
    made = model(graph([node(op_type, names, "y", axis=axis)], [held], ["y"], given), 13)
    if dims is None and axis >= 0:
        with refused("TS512", op_type, "a scale for each channel"):
            convert(made, 12)
        return
    column = [-1 if place == axis % 3 else 1 for place in range(3)]
    scales, zeros = scale.reshape(column), zero.reshape(column).astype(np.int64)
    zeros = zeros * (kind != "no zero point")
    expected: Any = (x.astype(np.int64) - zeros).astype(np.float32) * scales
    if is_up:
        expected = np.clip(np.rint(x / scales) + zeros, low, high).astype(number)
    for opset in (12, 11) if is_up else (12, 9):
        older = convert(made, opset)
        assert op_type not in {each.op_type for each in older.graph.node}
        got = ts.run(older, {"x": x})["y"]
        assert got.dtype == expected.dtype
        np.testing.assert_array_equal(got, expected)


def test_an_output_type_that_follows_from_the_inputs_is_left_out() -> None:
    scale, zero = tensor("s", 2, np.float32), tensor("z", 0, np.uint8)
    quantize = node("QuantizeLinear", "x s z", "y", output_dtype=int(TensorProto.UINT8))
    assert not attributes(convert(of(quantize, 21, [scale, zero], x=X), 20), "QuantizeLinear")
    data = [value("x", TensorProto.UINT8, [3])]
    dequantize = node("DequantizeLinear", "x s z", "y", output_dtype=FLOAT)
    made = model(graph([dequantize], data, ["y"], [scale, zero]), 23)
    assert not attributes(convert(made, 22), "DequantizeLinear")
    other = node("DequantizeLinear", "x s z", "y", output_dtype=HALF)
    with refused("TS512", "DequantizeLinear", "output_dtype"):
        convert(model(graph([other], data, ["y"], [scale, zero]), 23), 22)


@pytest.mark.parametrize(
    ("name", "items"),
    [
        ("value_ints", [3, -1]),
        ("value_int", 3),
        ("value_strings", ["a", "é"]),
        ("value_string", "a"),
    ],
)
@pytest.mark.parametrize("opset", [11, 12])
def test_numbers_and_strings_of_a_constant_are_a_tensor_before_opset_13(
    name: str, items: Any, opset: int
) -> None:
    """OpenVINO reads them as attributes from opset 13 on, where ONNX has them from 12 on."""
    kind = STRING if "string" in name else INT64
    nodes = [node("Constant", "", "c", **{name: items}), node("Identity", "c", "y")]
    made = model(graph(nodes, [], [value("y", kind, np.shape(items))]), 13)
    made = converted(made, opset)
    assert [each.name for each in made.graph.node[0].attribute] == ["value"]
    assert outputs(made)[0].tolist() == items


@pytest.mark.parametrize(("size", "is_kept"), [(1 << 20, True), ((1 << 20) + 1, False)])
def test_a_sparse_constant_is_dense_before_opset_11_or_refused(size: int, is_kept: bool) -> None:
    values, places = tensor("v", [5], np.float32), tensor("i", [1])
    sparse = helper.make_sparse_tensor(values, places, [size])
    nodes = [node("Constant", "", "c", sparse_value=sparse), node("Slice", "c s e", "y")]
    made = of(nodes, 11, [tensor("s", [0]), tensor("e", [3])])
    if is_kept:
        assert there(made, 10).tolist() == [0, 5, 0]
        return
    with refused("TS512", "Constant", "sparse"):
        convert(made, 10)


@pytest.mark.parametrize("target", [5, 6, 8])
def test_integers_in_a_function_are_cast_from_floats_before_opset_9(target: int) -> None:
    """Before opset 6 the type is named, since then it has a number."""
    inner = function(
        "F",
        "x",
        "y",
        [node("Constant", "", "k", value=tensor("k", [2, 0])), node("Gather", "x k", "y")],
        opset=13,
    )
    call = node("F", "x", "y", domain="custom")
    whole = graph([call], [value("x", FLOAT, [3, 2])], [value("y", FLOAT, [None, None])])
    made = convert(model(whole, 13, [inner], custom=1), target)
    np.testing.assert_array_equal(outputs(made, x=X[0, :, :2])[0], X[0, [2, 0], :2])


@pytest.mark.parametrize("items", [np.array([2**53 + 1]), np.array(["a"], object)])
def test_values_that_no_float_holds_are_refused_in_a_function(items: Any) -> None:
    held = node("Constant", "", "y", value=tensor("k", items, items.dtype))
    inner = function("F", "", "y", [held], opset=13)
    call = node("F", "", "y", domain="custom")
    with refused("TS512", "Constant", "floats"):
        convert(model(graph([call], [], ["y"]), 13, [inner], custom=1), 8)


def test_an_initializer_that_is_no_input_needs_its_version_of_the_file() -> None:
    made = of(
        [node("Constant", "", "k", value=tensor("k", [1])), node("Gather", "x k", "y")], 9, x=X
    )
    for before, after in ((3, 4), (8, 8)):
        made.ir_version = before
        assert convert(made, 8).ir_version == after


@pytest.mark.parametrize("axes", [None, value("k", INT64, [1]), tensor("k", [])])
def test_what_reduces_nothing_without_axes_is_refused_before_opset_18(axes: Any) -> None:
    inputs: list[Any] = [value("x", FLOAT, X.shape)]
    constants: list[Any] = []
    if axes is not None:
        (constants if isinstance(axes, TensorProto) else inputs).append(axes)
    reduce = node("ReduceMean", "x k" if axes is not None else "x", "y", noop_with_empty_axes=1)
    with refused("TS512", "ReduceMean", "reduces nothing"):
        convert(model(graph([reduce], inputs, ["y"], constants), 18), 17)


def hot(indices: Any, axis: int, depth: int = 3) -> Any:
    """The rows of an identity for indices that are in range, and zeros for others, on an axis."""
    rows = np.concatenate([np.eye(depth, dtype=np.float32), np.zeros((1, depth), np.float32)])
    inside = (indices >= 0) & (indices < depth)
    return np.moveaxis(rows[np.where(inside, indices, depth)], -1, axis)


@pytest.mark.parametrize("kind", ["int64", "int32"])
@pytest.mark.parametrize("axis", [-1, -2, 0, 1, 2])
@pytest.mark.parametrize("is_constant", [False, True])
def test_an_index_of_onehot_counts_from_the_back_since_opset_11(
    is_constant: bool, axis: int, kind: str
) -> None:
    indices = np.array([[0, 2, 3], [-1, -3, -4]]).astype(kind)
    constants = [tensor("d", 3), tensor("v", [0, 1], np.float32)]
    given = [tensor("i", indices, kind)] if is_constant else []
    inputs = [] if is_constant else [value("i", KINDS[kind], ["N", "M"])]
    feeds = {} if is_constant else {"i": indices}
    made = node("OneHot", "i d v", "y", axis=axis)
    ending = [value("y", FLOAT, [None, None, None])]
    nodes = graph([made], inputs, ending, [*constants, *given])
    counted = np.where((indices < 0) & (indices >= -3), indices + 3, indices)
    for target in (9, 10):
        older = converted(model(nodes, 13), target)
        assert attributes(older, "OneHot").get("axis", -1) == (axis if axis >= 0 else axis + 3)
        np.testing.assert_array_equal(outputs(older, **feeds)[0], hot(counted, axis))
    newer = converted(model(nodes, 9), 11)  # where those below 0 set nothing
    if is_constant:
        last = graph([made], [], ending, [*constants, tensor("i", [[-1, 0]], kind)])
        np.testing.assert_array_equal(
            outputs(converted(model(last, 13), 9))[0], hot(np.array([[2, 0]]), axis)
        )
    np.testing.assert_array_equal(outputs(newer, **feeds)[0], hot(indices, axis))


@pytest.mark.parametrize("kind", ["float32", "int64"])
def test_an_index_of_onehot_that_can_not_be_chosen_is_not_below_zero(kind: str) -> None:
    indices = np.array([2, 1]).astype(kind)
    depth: dict[str, Any] = {"d": np.array(3)} if kind == "int64" else {}
    constants = [tensor("v", [0, 1], np.float32), *([] if depth else [tensor("d", 3)])]
    made = node("OneHot", "i d v", "y")
    with refused("TS512", "OneHot", "negative", "the depth as a constant"):
        convert(of(made, 11, constants, i=indices, **depth), 9)
    known_before = of(made, 11, [*constants, tensor("i", indices, kind)], **depth)
    assert len(convert(known_before, 9).graph.node) == 1


@pytest.mark.parametrize("bounds", [{"end": -1}, {"start": -2}, {"start": 1, "end": 2}, {"end": 0}])
def test_a_part_of_a_shape_is_a_slice_before_opset_15(bounds: dict[str, int]) -> None:
    made = of(node("Shape", "x", "y", **bounds), 15, x=X)
    wanted = [2, 3, 4][bounds.get("start") : bounds.get("end")]
    assert there(made, 14, x=X).tolist() == wanted


FROM_THE_BACK: dict[str, tuple[Any, Any]] = {
    "Squeeze<axes = [-1]>(x)": (lambda x: x[..., 0], [2]),
    "ReduceSum<axes = [-1, -3]>(x)": (lambda x: x.sum((0, 2), keepdims=True), [0, 2]),
    "Unsqueeze<axes = [-1, 0]>(x)": (lambda x: x[None, ..., None], [0, 4]),
    "Unsqueeze<axes = [-2]>(x)": (lambda x: x[:, :, None], [2]),
    "Concat<axis = -2>(x, x)": (lambda x: np.concatenate([x, x], 1), 1),
    "Flatten<axis = -1>(x)": (lambda x: x.reshape(6, 1), 2),
    "Gather<axis = -2>(x, i)": (lambda x: x[:, [1, 0]], 1),
    "ArgMax<axis = -2>(x)": (lambda x: x.argmax(1, keepdims=True), 1),
}
"""What a node gives, and its axes counted from the front."""


@pytest.mark.parametrize("text", FROM_THE_BACK)
@pytest.mark.parametrize("opset", [8, 10])
def test_axes_count_from_the_front_before_opset_11(text: str, opset: int) -> None:
    calculated, axes = FROM_THE_BACK[text]
    kind = "int64" if "ArgMax" in text else "float"
    made = parse_model(
        f"""<ir_version: 7, opset_import: ["": 11]> g (float[2,3,1] x) => ({kind} y)
        <int64[2] i = {{1, 0}}> {{ y = {text} }}"""
    )
    made.graph.output[0].type.tensor_type.ClearField("shape")
    data = np.random.default_rng(5).uniform(1, 2, (2, 3, 1)).astype(np.float32)
    found = converted(ts.infer_shapes(made), opset)
    (given,) = (each for each in found.graph.node[0].attribute if each.name.startswith("ax"))
    assert helper.get_attribute_value(given) == axes
    np.testing.assert_array_equal(ts.run(found, {"x": data})["y"], calculated(data))


@pytest.mark.parametrize(
    ("limits", "low", "high"),
    [
        ("", -np.inf, np.inf),
        ("low", 1.25, np.inf),
        (", high", -np.inf, 1.5),
        ("low, high", 1.25, 1.5),
    ],
)
def test_a_clip_may_lack_limits_in_every_version(limits: str, low: float, high: float) -> None:
    names = f"x, {limits}" if limits and limits[0] != "," else f"x{limits and ', ' + limits}"
    made = parse_model(
        f"""<ir_version: 7, opset_import: ["": 12]> g (float[6] x) => (float[6] y)
        <float low = {{1.25}}, float high = {{1.5}}> {{ y = Clip({names}) }}"""
    )
    data = np.random.default_rng(5).uniform(1, 2, 6).astype(np.float32)
    for opset in (7, 10):
        found = ts.run(converted(made, opset), {"x": data})["y"]
        np.testing.assert_array_equal(found, np.clip(data, low, high))


def test_axes_that_a_constant_of_a_function_takes_from_its_calls_become_attributes() -> None:
    made = parse_model(
        """<ir_version: 8, opset_import: ["": 13, "own": 1]> g (float[2,1,3] x) => (float[1,1,3] z)
        { y = own.F<k = [1]>(x) z = own.F<k = [0]>(y) }
        <opset_import: ["": 13], domain: "own"> F<k>(x) => (y)
        { a = Constant<value_ints: ints = @k>() y = ReduceSum(x, a) }"""
    )
    data = np.random.default_rng(5).uniform(1, 2, (2, 1, 3)).astype(np.float32)
    for opset in (9, 12):
        found = ts.run(convert(made, opset), {"x": data})["z"]
        np.testing.assert_allclose(found, data.sum((0, 1), keepdims=True), rtol=1e-6)


def test_slice_takes_no_negative_axes_before_opset_10() -> None:
    constants = [tensor("s", [1]), tensor("e", [3]), tensor("a", [-1])]
    made = of(node("Slice", "x s e a", "y"), 13, constants, x=X)
    older = convert(made, 9)
    assert attributes(older, "Slice") == {"starts": [1], "ends": [3], "axes": [2]}


LOWEST, HIGHEST = np.iinfo(np.int64).min, np.iinfo(np.int64).max
BOUNDS = [(1, 3), (-2, HIGHEST), (LOWEST, -1), (3, 1), (2, 2), (-9, 9), (9, -9), (0, 2), (-1, 4)]


@pytest.mark.parametrize("kind", [np.int64, np.int32])
@pytest.mark.parametrize("axes", [None, [1], [-1], [-1, 0]])
def test_bounds_known_only_at_run_time_are_positions_before_opset_10(axes: Any, kind: Any) -> None:
    places = axes or [0]
    held = [value(name, KINDS[np.dtype(kind).name], [len(places)]) for name in "se"]
    inputs = [value("x", FLOAT, ["N", "M", 4]), *held]
    given = " a" if axes else ""
    constants = [tensor("a", axes, kind)] if axes else []
    sliced = graph(
        [node("Slice", f"x s e{given}", "y")],
        inputs,
        [value("y", FLOAT, [None, None, None])],
        constants,
    )
    older = converted(model(sliced, 13), 9)
    lowest, highest = np.iinfo(kind).min, np.iinfo(kind).max
    for first in range(len(BOUNDS)):
        taken = [BOUNDS[(first + place) % len(BOUNDS)] for place in range(len(places))]
        starts, ends = (np.clip(each, lowest, highest).astype(kind) for each in np.transpose(taken))
        wanted = X
        for axis, start, end in zip(places, starts, ends, strict=True):
            wanted = np.moveaxis(np.moveaxis(wanted, axis, 0)[start:end], 0, axis)
        found = outputs(older, x=X, s=starts, e=ends)[0]
        np.testing.assert_array_equal(found, wanted, strict=True)


WALKS = [(0, HIGHEST, 2), (HIGHEST, LOWEST, -1), (-1, LOWEST, -3), (1, -1, 3), (-9, LOWEST, -1)]
WALKS += [(-2, 0, -2), (5, 1, -2), (3, 1, 2), (1, HIGHEST, HIGHEST), (-1, -3, -1), (1, 2, 2)]


def taken(data: Any, axis: int, start: int, end: int, step: int) -> Any:
    """What Slice takes: a step back starts at the first element, or after it."""
    moved = np.moveaxis(data, axis, 0)
    count = len(moved)
    if step < 0 and start < -count:
        start = -count
    return np.moveaxis(moved[start:end:step], 0, axis)


def stepping(kind: int, dims: Any, *walks: tuple[int, ...], rank: int = 3) -> Any:
    """Slices of the last axes by constant starts, ends and steps."""
    columns = [*zip(*walks, strict=True), range(-len(walks), 0)]
    held = [tensor(name, each) for name, each in zip("seta", columns, strict=True)]
    made = [node("Slice", "x s e a t", "y")]
    return model(graph(made, [value("x", kind, dims)], [value("y", kind, [None] * rank)], held), 13)


@pytest.mark.parametrize("kind", ["float32", "uint64", "bool"])
@pytest.mark.parametrize("walk", WALKS)
def test_elements_at_steps_are_taken_by_index_before_opset_10(walk: Any, kind: str) -> None:
    for size, other in ((4, (1, 3, 2)), (1, (0, 9, 1)), (0, walk)):
        data = RNG.integers(0, 2, (2, 3, size)).astype(kind)
        wanted = taken(taken(data, 2, *walk), 1, *other)
        known = stepping(KINDS[kind], data.shape, other, walk)
        for target in (7, 9):  # the indices are constant, or nothing is taken
            older = converted(known, target)
            assert {each.op_type for each in older.graph.node} <= {"Constant", "Gather", "Slice"}
            np.testing.assert_array_equal(outputs(older, x=data)[0], wanted, strict=True)
        older = converted(stepping(KINDS[kind], ["N", None, "M"], other, walk), 9)
        np.testing.assert_array_equal(outputs(older, x=data)[0], wanted, strict=True)


@pytest.mark.parametrize("walk", WALKS)
def test_steps_between_bounds_of_the_run_are_positions_before_opset_10(walk: Any) -> None:
    *bounds, step = walk
    held = [value(name, INT64, [1]) for name in "se"]
    constants = [tensor("a", [1]), tensor("t", [step])]
    sliced = [node("Slice", "x s e a t", "y")]
    inputs = [value("x", FLOAT, ["N", "M", 4]), *held]
    ending = [value("y", FLOAT, ["N", None, 4])]
    older = converted(model(graph(sliced, inputs, ending, constants), 13), 9)
    start, end = (np.array([bound]) for bound in bounds)
    for data in (X, X[:, :1], X[:, :0]):
        wanted = taken(data, 1, *walk)
        found = outputs(older, x=data, s=start, e=end)[0]
        np.testing.assert_array_equal(found, wanted, strict=True)


def test_a_slice_of_a_whole_axis_at_steps_needs_no_comparisons() -> None:
    """Its length is no number below 0, and its ends are those of the axis."""
    made = [
        each.op_type for each in converted(stepping(FLOAT, [2, 3, "N"], WALKS[0]), 9).graph.node
    ]
    assert "Less" not in made
    assert made.count("Gather") == 2  # of the shape, and of the data
    back = converted(stepping(FLOAT, [2, 3, "N"], (-1, LOWEST, -1)), 9)
    assert len([each for each in back.graph.node if each.op_type == "Less"]) == 1


def test_steps_of_long_axes_are_numbered() -> None:
    """A constant for each element could be longer than the memory."""
    walk = (0, HIGHEST, 2)
    made = converted(stepping(FLOAT, [1 << 40], walk, rank=1), 9)
    assert made.ByteSize() < 4096
    edge = np.arange(2 << 16, dtype=np.float32)
    short, long = (stepping(FLOAT, [size], walk, rank=1) for size in (len(edge), len(edge) + 1))
    assert [each.op_type for each in converted(short, 8).graph.node] == ["Gather"]
    np.testing.assert_array_equal(outputs(converted(short, 9), x=edge)[0], edge[::2])
    with refused("TS512", "Slice", "convert to opset 9 or newer"):
        convert(long, 8)


def test_the_steps_of_a_slice_are_constants_other_than_0_before_opset_10() -> None:
    with refused("TS512", "Slice", "its steps are [0]", "not 0"):
        convert(stepping(FLOAT, [2, 3, 4], (0, 1, 0)), 9)
    with refused("TS512", "Slice", "its steps are [2, 0]", "not 0"):
        convert(stepping(FLOAT, [2, 3, 4], (0, 1, 2), (0, 1, 0)), 9)
    constants = [tensor(name, [1]) for name in "sea"]
    made = of(node("Slice", "x s e a t", "y"), 13, constants, x=X, t=np.array([1]))
    with refused("TS512", "Slice", "its steps are known only at run time", "constant"):
        convert(made, 9)


@pytest.mark.parametrize("mode", ["DCR", "CRD", None])
@pytest.mark.parametrize("dims", [(2, 12, 2, 3), (1, 4, 1, 0), (0, 8, 2, 2), (2, 0, 1, 1)])
def test_depth_has_one_order_before_opset_11(mode: str | None, dims: tuple[int, ...]) -> None:
    data = np.arange(np.prod(dims), dtype=np.float32).reshape(dims)
    batch, depth, rows, columns = dims
    blocks = (depth // 4, 2, 2) if mode == "CRD" else (2, 2, depth // 4)
    order = (0, 1, 4, 2, 5, 3) if mode == "CRD" else (0, 3, 4, 1, 5, 2)
    wanted = data.reshape(batch, *blocks, rows, columns).transpose(order)
    wanted = wanted.reshape(batch, depth // 4, 2 * rows, 2 * columns)
    held = {"mode": mode} if mode else {}
    for channels, targets in ((depth, (7, 10)), ("C", (9, 10) if mode == "CRD" else (7,))):
        made = [node("DepthToSpace", "x", "y", blocksize=2, **held)]
        ending = [value("y", FLOAT, [None] * 4)]
        newer = model(graph(made, [value("x", FLOAT, ["N", channels, "H", "W"])], ending), 13)
        for target in targets:
            older = converted(newer, target)
            assert attributes(older, "DepthToSpace") == {"blocksize": 2}
            is_moved = mode == "CRD" and (depth > 4 or channels == "C")
            assert any(each.op_type == "Gather" for each in older.graph.node) == is_moved
            np.testing.assert_array_equal(outputs(older, x=data)[0], wanted, strict=True)
    if mode == "CRD":
        with refused("TS512", "DepthToSpace", "convert to opset 9 or newer"):
            convert(newer, 8)


def test_depth_in_an_unknown_order_is_refused() -> None:
    made = of(node("DepthToSpace", "x", "y", blocksize=2, mode="RCD"), 11, x=X[None])
    with refused("TS512", "DepthToSpace", "'RCD'"):
        convert(made, 10)


@pytest.mark.parametrize("axis", [0, 1])
def test_strings_between_bounds_are_taken_on_the_last_axis(axis: int) -> None:
    """There onnxruntime takes whole rows of them."""
    x = np.array([["a", "b", "c"], ["d", "e", "f"]], object)
    inputs = [value("x", STRING, ["N", "M"]), *(value(name, INT64, [1]) for name in "se")]
    sliced = [node("Slice", "x s e a", "y")]
    made = graph(sliced, inputs, [value("y", STRING, [None, None])], [tensor("a", [axis])])
    older = converted(model(made, 13), 9)
    assert [each for each in older.graph.node if each.op_type == "Gather"][-1].attribute[0].i == 1
    (found,) = outputs(older, x=x, s=np.array([1]), e=np.array([9]))
    assert found.tolist() == [x[1:], x[:, 1:]][axis].tolist()


def test_mod_of_one_multiplies_no_quotient_of_one_before_opset_10() -> None:
    """That onnxruntime takes for a quotient by the divisor."""
    divisors = np.array([1, -1, 4, -4, 9])
    made = of(node("Mod", "o r", "y"), 13, [tensor("o", [1])], r=divisors)
    older = convert(made, 9)
    found = outputs(older, r=divisors)[0]
    np.testing.assert_array_equal(found, [0, 0, 1, -3, 1])
    (quotient,) = (each for each in older.graph.node if each.op_type == "Div")
    one = next(each for each in older.graph.node if quotient.input[0] in each.output)
    assert numpy_helper.to_array(helper.get_attribute_value(one.attribute[0])).tolist() == [-1]


def test_a_slice_between_no_bounds_is_an_identity_before_opset_10() -> None:
    inputs = [value("x", FLOAT, ["N"]), *(value(name, INT64, [0]) for name in "se")]
    made = graph([node("Slice", "x s e", "y")], inputs, [value("y", FLOAT, [None])])
    older = converted(model(made, 13), 9)
    assert [each.name for each in older.graph.input] == ["x", "s", "e"]
    none = np.array([], np.int64)
    np.testing.assert_array_equal(outputs(older, x=X[0, 0], s=none, e=none)[0], X[0, 0])


@pytest.mark.parametrize(
    "operator", ["Slice", "Range", "Mod"], ids=["a slice", "a range", "a remainder"]
)
def test_what_needs_numbering_is_refused_before_opset_9(operator: str) -> None:
    numbers: dict[str, Any] = {name: np.array([3]) for name in "xse"}
    if operator == "Range":
        numbers = {name: np.array(3) for name in "se"}
    inputs = {"Slice": "x s e", "Range": "s e d", "Mod": "s e"}[operator]
    made = of(node(operator, inputs, "y"), 13, [tensor("d", 1)], **numbers)
    with refused("TS512", operator, "from opset 9 on", "convert to opset 9 or newer"):
        convert(made, 8)


def test_how_many_axes_a_slice_has_is_known_from_its_starts() -> None:
    inputs = [value("x", FLOAT, [2, 3, 4]), value("s", INT64, [2]), value("e", INT64, ["K"])]
    made = graph([node("Slice", "x s e", "y")], inputs, [value("y", FLOAT, [None] * 3)])
    starts, ends = np.array([1, -2]), np.array([2, 3])
    older = converted(model(made, 13), 9)
    np.testing.assert_array_equal(outputs(older, x=X, s=starts, e=ends)[0], X[1:2, -2:3])


def test_a_slice_by_axes_known_only_at_run_time_has_no_form_before_opset_10() -> None:
    bounds: dict[str, Any] = {name: np.array([1]) for name in "sea"}
    with refused("TS512", "Slice", "neither its bounds nor its axes", "make the axes one"):
        convert(of(node("Slice", "x s e a", "y"), 13, x=X, **bounds), 9)


@pytest.mark.parametrize("kind", [np.int64, np.int32])
@pytest.mark.parametrize("step", [1, -1, 3, -2])
@pytest.mark.parametrize("opset", [9, 10])
def test_a_range_numbers_ones_before_opset_11(opset: int, step: int, kind: Any) -> None:
    named = KINDS[np.dtype(kind).name]
    ends, made = [value(name, named, []) for name in "se"], [value("y", named, [None])]
    counted = graph([node("Range", "s e d", "y")], ends, made, [tensor("d", step, kind)])
    older = converted(model(counted, 13), opset)
    for start, end in [(0, 7), (2, 8), (5, 5), (7, 0), (-3, 4), (4, -5), (-9, -2), (0, 1), (1, 0)]:
        found = outputs(older, s=np.array(start, kind), e=np.array(end, kind))[0]
        wanted = np.array(range(start, end, step), kind)
        np.testing.assert_array_equal(found, wanted, strict=True)


@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize("step", [1, -1])
def test_a_range_of_floats_that_goes_by_one_is_a_range_of_integers(step: int, kind: Any) -> None:
    named = KINDS[np.dtype(kind).name]
    ending, counted = [value("y", named, [None])], [node("Range", "s e d", "y")]
    for start, end in [(0, 3), (0, 2.5), (0, -2.5), (-3, 0.25), (4, 4), (2, -1), (5, 9.75)]:
        wanted = np.arange(start, end, step, dtype=kind)
        constants = [tensor("s", start, kind), tensor("d", step, kind)]
        limit = np.array(end, kind)
        at_run_time = model(graph(counted, [value("e", named, [])], ending, constants), 13)
        for target in (9, 10):
            found = outputs(converted(at_run_time, target), e=limit)[0]
            np.testing.assert_array_equal(found, wanted, strict=True)
        known_before = graph(counted, [], ending, [*constants, tensor("e", end, kind)])
        found = outputs(converted(model(known_before, 13), 8))[0]
        np.testing.assert_array_equal(found, wanted, strict=True)
    with refused("TS512", "Range", "convert to opset 9 or newer"):
        convert(at_run_time, 8)


@pytest.mark.parametrize(("start", "step"), [(0.5, 1), (0, 0.5), (0, 2), (1 << 24, 1), (None, 1)])
def test_a_range_of_other_floats_has_no_form_before_opset_11(start: Any, step: float) -> None:
    """Engines add up the step, or multiply it, and only whole numbers are the same then."""
    inputs: dict[str, Any] = {"e": np.array(3, np.float32)}
    constants = [tensor("d", step, np.float32)]
    if start is None:
        inputs["s"] = np.array(0, np.float32)
    else:
        constants.append(tensor("s", start, np.float32))
    with refused("TS512", "there is no Range at opset 10", "whole number"):
        convert(of(node("Range", "s e d", "y"), 11, constants, **inputs), 10)


@pytest.mark.parametrize(("kind", "step"), [(np.int64, None), (np.int64, 0)])
def test_another_range_has_no_form_before_opset_11(kind: Any, step: int | None) -> None:
    inputs: dict[str, Any] = {
        name: np.array(1, kind) for name in ("s", "e", *("d" if step is None else ""))
    }
    constants = [] if step is None else [tensor("d", step, kind)]
    with refused("TS512", "there is no Range at opset 10", "int32 or int64 with a constant step"):
        convert(of(node("Range", "s e d", "y"), 11, constants, **inputs), 10)


@pytest.mark.parametrize("kind", [np.int64, np.int32, np.uint64])
@pytest.mark.parametrize("fmod", [0, 1])
def test_mod_is_what_a_division_leaves_before_opset_10(fmod: int, kind: Any) -> None:
    """It has the sign of the divisor, or with `fmod` that of the dividend."""
    left = np.array([7, -7, 7, -7, 6, -6, 0, 0, 1, -1], np.int64).astype(kind)
    right = np.array([3, 3, -3, -3, 3, -3, 5, -5, -4, 4], np.int64).astype(kind)
    made = of(node("Mod", "x r", "y", fmod=fmod), 13, x=left, r=right)
    found = ts.run(convert(made, 9), {"x": left, "r": right})["y"]
    signs = [1, 2, -2, -1, 0, 0, 0, 0, -3, 3] if not fmod else [1, -1, 1, -1, 0, 0, 0, 0, 1, -1]
    wanted = np.array(signs, kind) if kind is not np.uint64 else left % right
    np.testing.assert_array_equal(found, wanted, strict=True)


def test_mod_of_floats_has_no_form_before_opset_10() -> None:
    with refused("TS512", "there is no Mod at opset 9", "int32, int64, uint32, uint64"):
        convert(of(node("Mod", "x x", "y", fmod=1), 13, x=X), 9)


def test_the_limits_of_an_old_clip_are_those_of_float() -> None:
    """So doubles beyond them are clipped; before opset 11 no double may be without a limit."""
    data, most = np.array([-1e300, 1.5, 1e300]), float(np.finfo(np.float32).max)
    found = there(of(node("Clip", "x", "y"), 6, x=data), 11, x=data)
    assert found.tolist() == [-most, 1.5, most]
    with refused("TS512", "Clip", "'min'"):
        convert(of(node("Clip", "x", "y"), 11, x=data), 10)


def test_limits_known_only_at_run_time_are_compared_with() -> None:
    least, most = np.array(-1, np.float32), np.array(0.5, np.float32)
    made = of(node("Clip", "x l h", "y"), 11, x=X, l=least, h=most)
    np.testing.assert_array_equal(there(made, 8, x=X, l=least, h=most), np.clip(X, least, most))
    with refused("TS512", "Clip", "run time"):
        convert(made, 7)  # Max and Min broadcast since opset 8


@pytest.mark.parametrize(("filling", "is_kept"), [(0.5, True), (np.nan, True), (0.1, False)])
def test_what_pads_is_a_float_before_opset_11(filling: float, is_kept: bool) -> None:
    data, constants = (
        X.astype(np.float64),
        [tensor("k", [0, 0, 1, 0, 0, 0]), tensor("v", filling, float)],
    )
    made = of(node("Pad", "x k v", "y"), 11, constants, x=data)
    if is_kept:
        wanted = np.pad(data, [(0, 0), (0, 0), (1, 0)], constant_values=filling)
        np.testing.assert_array_equal(there(made, 10, x=data), wanted)
        return
    with refused("TS512", "Pad", "0.1"):
        convert(made, 10)


def test_pads_that_are_turned_around_in_a_table_are_constant() -> None:
    """So PyTorch writes them: from the last axis on, as rows of what is before and after."""
    nodes = [
        node("ConstantOfShape", "two", "rest", value=tensor("v", [0])),
        node("Concat", "given rest", "listed", axis=0),
        node("Reshape", "listed pair", "rows"),
        node("Slice", "rows minus lowest none minus", "turned"),
        node("Transpose", "turned", "columns", perm=[1, 0]),
        node("Reshape", "columns minus", "flat"),
        node("Cast", "flat", "pads", to=INT64),
        node("Pad", "x pads", "y"),
    ]
    constants = [tensor("two", [2]), tensor("given", [1, 2, 3, 4]), tensor("pair", [-1, 2])]
    constants += [tensor("minus", [-1]), tensor("none", [0]), tensor("lowest", [-(1 << 63) + 1])]
    made = graph(
        nodes, [value("x", FLOAT, ["N", 3, 4])], [value("y", FLOAT, [None] * 3)], constants
    )
    older = converted(model(made, 13), 8)
    assert attributes(older, "Pad")["pads"] == [0, 3, 1, 0, 4, 2]
    wanted = np.pad(X, [(0, 0), (3, 4), (1, 2)])
    np.testing.assert_array_equal(outputs(older, x=X)[0], wanted, strict=True)


def test_pads_of_some_axes_are_pads_of_all_before_opset_18() -> None:
    constants = [tensor("k", [1, 2, 3, 4]), tensor("a", [-1, 0])]
    made = of(node("Pad", "x k _ a", "y"), 18, constants, x=X)
    wanted = np.pad(X, [(2, 4), (0, 0), (1, 3)])
    np.testing.assert_array_equal(there(made, 17, x=X), wanted)


@pytest.mark.parametrize("training", [True, False])
def test_dropout_in_training_is_refused_before_opset_12(training: bool) -> None:
    constants = [tensor("r", 0.5, np.float32), tensor("t", training, bool)]
    made = of(node("Dropout", "x r t", "y"), 12, constants, x=X)
    if training:
        with refused("TS512", "Dropout", "training"):
            convert(made, 11)
        return
    np.testing.assert_array_equal(there(made, 11, x=X), X)


@pytest.mark.parametrize("repeats", [[1, 1, 1], [1, 0, 2], [0, 1, 1], [3, 1, 1]])
def test_tile_repeats_any_number_of_times_before_opset_6(repeats: list[int]) -> None:
    made = of(node("Tile", "x n", "y"), 6, [tensor("n", repeats)], x=X)
    np.testing.assert_array_equal(there(made, 5, x=X), np.tile(X, repeats), strict=True)


def test_no_times_is_not_expressible_by_joining() -> None:
    data = np.arange(3)
    made = of(node("Tile", "x n", "y"), 13, [tensor("n", [0])], x=data)
    with refused("TS512", "Tile", "INT64 0 times"):
        convert(made, 5)


def test_axes_are_sorted_and_count_from_the_front_before_opset_11() -> None:
    made = of(node("Unsqueeze", "x a", "y"), 13, [tensor("a", [-1, 0])], x=X)
    assert attributes(convert(made, 10), "Unsqueeze") == {"axes": [0, 4]}
    made = of(node("Squeeze", "x a", "y"), 13, [tensor("a", [2, 0])], x=X)
    made.graph.input[0].type.tensor_type.ClearField("shape")
    assert attributes(convert(made, 10), "Squeeze") == {"axes": [0, 2]}


def test_a_constant_of_the_caller_is_as_it_was() -> None:
    """Before opset 9 an initializer takes its place, with a name."""
    held = [node("Constant", "", "k", value=tensor("", [1])), node("Gather", "x k", "y")]
    made = of(held, 9, x=X)
    before = made.SerializeToString(deterministic=True)
    assert convert(made, 8).graph.initializer[0].name
    assert made.SerializeToString(deterministic=True) == before


@pytest.mark.parametrize("filled", [None, 7])
def test_a_constant_of_a_shape_is_expanded_before_opset_9(filled: int | None) -> None:
    shape = np.array([2, 3])
    held = {} if filled is None else {"value": tensor("v", [filled])}
    found = there(of(node("ConstantOfShape", "s", "y", **held), 9, s=shape), 8, s=shape)
    wanted = np.zeros((2, 3), np.float32) if filled is None else np.full((2, 3), filled)
    np.testing.assert_array_equal(found, wanted, strict=True)


@pytest.mark.parametrize("opset", [6, 7])
@pytest.mark.parametrize(
    ("dims", "wanted"),
    [([], [2, 0]), ([3], [3]), ([1, 3], [2, 1]), ([2, 1, 3], [4, 1, 5, 1]), ([0, 1], [0, 4])],
)
def test_what_is_expanded_is_repeated_before_opset_8(
    dims: list[int], wanted: list[int], opset: int
) -> None:
    data = np.random.default_rng(8).uniform(1, 2, dims).astype(np.float32)
    made = of(node("Expand", "x s", "y"), 8, [tensor("s", wanted)], x=data)
    expected = np.broadcast_to(data, np.broadcast_shapes(dims, wanted))
    np.testing.assert_array_equal(there(made, opset, x=data), expected, strict=True)


def test_what_is_expanded_by_lengths_of_run_time_is_refused_before_opset_8() -> None:
    data, shape = np.random.default_rng(8).uniform(1, 2, (1, 3)), np.array([2, 1])
    made = of(node("Expand", "x s", "y"), 8, x=data, s=shape)
    with refused("TS512", "no Expand at opset 7", "are not known"):
        convert(made, 7)
    made = of(node("Expand", "x s", "y"), 8, [tensor("s", shape)], x=data)
    made.graph.input[0].type.tensor_type.shape.dim[0].Clear()
    with refused("TS512", "no Expand at opset 7", "are not known"):
        convert(made, 7)


def added_up(data: Any, axis: int, exclusive: int = 0, reverse: int = 0) -> Any:
    """The sums of the elements of an axis up to each, without it, or from the end."""
    moved = np.moveaxis(data, axis, 0)[:: -1 if reverse else 1]
    sums = np.cumsum(moved, 0, dtype=data.dtype)
    if exclusive:
        sums = np.concatenate([np.zeros_like(sums[:1]), sums[:-1]])
    return np.moveaxis(sums[:: -1 if reverse else 1], 0, axis)


def summing(data: Any, dims: Any, axis: int, **held: int) -> Any:
    """A CumSum of data that are declared to have dimensions."""
    kind = KINDS[data.dtype.name]
    ending = [value("y", kind, [None] * data.ndim)]
    nodes = [node("CumSum", "x i", "y", **held)]
    return model(graph(nodes, [value("x", kind, dims)], ending, [tensor("i", axis)]), 11)


@pytest.mark.parametrize("dtype", [np.int64, np.int32, np.float32])
@pytest.mark.parametrize("count", [0, 1, 2, 64])
@pytest.mark.parametrize("reverse", [0, 1])
def test_a_short_cumulative_sum_is_added_up_before_opset_11(
    reverse: int, count: int, dtype: Any
) -> None:
    data = np.random.default_rng(count).uniform(-9, 9, (2, count, 3)).astype(dtype)
    wanted = added_up(data, 1, reverse=reverse)
    for opset in (10, 8):
        older = converted(summing(data, ["N", count, 3], -2, reverse=reverse), opset)
        assert not any(each.op_type == "Scan" for each in older.graph.node)
        np.testing.assert_array_equal(outputs(older, x=data)[0], wanted, strict=True)


@pytest.mark.parametrize(
    "held", [{}, {"exclusive": 1}, {"reverse": 1}, {"reverse": 1, "exclusive": 1}]
)
@pytest.mark.parametrize("dims", [(2, 70, 3), (2, 3, 2), (1, 0, 2), (0, 3, 1), (3,), (0,)])
def test_another_cumulative_sum_is_scanned_at_opset_9(
    dims: tuple[int, ...], held: dict[str, int]
) -> None:
    axis = min(1, len(dims) - 1)
    data = RNG.integers(-9, 9, dims)
    wanted = added_up(data, axis, **held)
    for declared in ([None] * len(dims), [*dims[:axis], "M", *dims[axis + 1 :]]):
        older = converted(summing(data, declared, axis, **held), 9)
        np.testing.assert_array_equal(outputs(older, x=data)[0], wanted, strict=True)
    long = converted(summing(data, [2, 70, 3], axis), 10) if dims[:2] == (2, 70) else older
    assert any(each.op_type == "Scan" for each in long.graph.node)
    with refused("TS512", "CumSum", "convert to opset 9 or newer"):
        convert(summing(data, [None] * len(dims), axis), 8)


@pytest.mark.engine("onnxruntime")
def test_onnx_runtime_knows_the_rank_of_a_sum_that_is_scanned() -> None:
    data = RNG.integers(-9, 9, (2, 5, 3))
    older = converted(summing(data, [None, None, None], 1), 9)
    (found,) = ts.run(older, {"x": data}, engine="onnxruntime").values()
    np.testing.assert_array_equal(found, np.cumsum(data, 1), strict=True)


def test_a_cumulative_sum_is_along_a_constant_axis_before_opset_11() -> None:
    made = of(node("CumSum", "x i", "y"), 11, x=X, i=np.array(0))
    with refused("TS512", "there is no CumSum at opset 10", "its axis", "constant"):
        convert(made, 10)


@pytest.mark.parametrize("kind", ["float32", "int64", "bool"])
@pytest.mark.parametrize("upper", [None, 0, 1])
@pytest.mark.parametrize("far", [None, 0, 1, -2])
def test_a_triangle_is_a_choice_by_a_mask_before_opset_14(
    far: int | None, upper: int | None, kind: str
) -> None:
    cut = np.tril if upper == 0 else np.triu
    made = node(
        "Trilu",
        "x k" if far is not None else "x",
        "y",
        **{"upper": upper} if upper is not None else {},
    )
    ending = [value("y", KINDS[kind], [None, None, None])]
    diagonal = [] if far is None else [tensor("k", far)]
    for dims in ((2, 3, 4), (1, 3, 2), (2, 0, 3)):
        data = (np.arange(np.prod(dims)).reshape(dims) + 1).astype(kind)
        wanted = cut(data, far or 0)
        for declared in (dims, ["N", "R", None]):
            inputs = [value("x", KINDS[kind], declared)]
            newer = model(graph([made], inputs, ending, diagonal), 14)
            for target in (9, 13):
                older = converted(newer, target)
                np.testing.assert_array_equal(outputs(older, x=data)[0], wanted, strict=True)
                is_known = declared is dims
                assert any(each.op_type == "Less" for each in older.graph.node) != is_known
    if far is not None:
        inputs = [value("x", KINDS[kind], dims), value("k", INT64, [])]
        older = converted(model(graph([made], inputs, ending), 14), 9)
        found = outputs(older, x=data, k=np.array(far))[0]
        np.testing.assert_array_equal(found, wanted, strict=True)


def test_a_large_triangle_is_calculated() -> None:
    inputs, ending = [value("x", FLOAT, [1 << 20, 1 << 20])], [value("y", FLOAT, [None, None])]
    made = model(graph([node("Trilu", "x", "y")], inputs, ending), 14)
    assert converted(made, 9).ByteSize() < 4096


@pytest.mark.parametrize("opset", [9, 10])
@pytest.mark.parametrize("axis", [-1, 0, 1])
def test_the_smallest_are_the_largest_of_the_other_sign_before_opset_11(
    axis: int, opset: int
) -> None:
    data = RNG.integers(-3, 3, (3, 4)).astype(np.float32)
    top = node("TopK", "x k", "y j", axis=axis, largest=0)
    inputs, ending = [value("x", FLOAT, ["N", "M"])], [value("y", FLOAT, [None, None])]
    ending.append(value("j", INT64, [None, None]))
    made = model(graph([top], inputs, ending, [tensor("k", [2])]), 11)
    for found, wanted in zip(
        outputs(converted(made, opset), x=data), outputs(made, x=data), strict=True
    ):
        np.testing.assert_array_equal(found, wanted, strict=True)
    integers = of([top], 11, [tensor("k", [2])], x=data.astype(np.int64))
    with refused("TS512", "TopK", "smallest integers"):
        convert(integers, opset)


def test_a_report_names_what_is_there_in_the_end() -> None:
    """Not the Max and the Min, which take no integers either."""
    constants = [tensor(name, 3) for name in "lh"]
    _, report = open_converted(of(node("Clip", "x l h", "y"), 13, constants, x=np.arange(9)), 11)
    (change,) = report.changes
    assert change.became == ["Less", "Where", "Less", "Where"]


@pytest.mark.parametrize(
    ("op_type", "opset", "target", "kind"),
    [("Gemm", 13, 10, "strings"), ("Clip", 6, 11, "int64")],
)
def test_types_that_an_operator_never_took_are_named(
    op_type: str, opset: int, target: int, kind: str
) -> None:
    """In a branch, which may never run."""
    held = INT64 if kind == "int64" else STRING
    operands = "x" if op_type == "Clip" else "x x"
    wrong = graph([node(op_type, operands, "a")], [], [untyped("a")])
    other = graph([node("Neg", "z", "b")], [], [untyped("b")])
    chosen = node("If", "c", "y", then_branch=wrong, else_branch=other)
    inputs = [value("x", held, [2, 2]), value("z", FLOAT, [2, 2]), value("c", BOOL, [])]
    with refused("TS512", f"{op_type} can't be converted", kind):
        convert(model(graph([chosen], inputs, [untyped("y")]), opset), target)


@pytest.mark.parametrize("names", ["x l h", "x l", "x _ h", "x"])
@pytest.mark.parametrize("is_constant", [False, True])
@pytest.mark.parametrize("kind", ["int64", "int32"])
def test_integers_are_clipped_by_choosing_before_opset_12(
    kind: str, is_constant: bool, names: str
) -> None:
    data = np.arange(-4, 5).astype(kind)
    for least, most in ((-2, 3), (3, -2)):  # of limits that cross, the upper one is given
        limits = {"l": np.array(least, kind), "h": np.array(most, kind)}
        held = {name: limit for name, limit in limits.items() if name in names}
        constants = [tensor(name, limit, kind) for name, limit in held.items() if is_constant]
        feeds = {"x": data, **({} if is_constant else held)}
        inputs = [value(name, KINDS[kind], each.shape) for name, each in feeds.items()]
        made = graph([node("Clip", names, "y")], inputs, [value("y", KINDS[kind], [9])], constants)
        wanted = np.maximum(data, least) if "l" in names else data
        wanted = np.minimum(wanted, most) if "h" in names else wanted
        for target in (9, 11):
            older = converted(model(made, 13), target)
            np.testing.assert_array_equal(outputs(older, **feeds)[0], wanted, strict=True)


IMAGE = np.arange(6, dtype=np.float32).reshape(1, 1, 2, 3)


@pytest.mark.parametrize("mode", [{}, {"mode": "nearest"}, {"mode": "linear"}])
def test_resize_rounds_down_in_opset_10(mode: Any) -> None:
    """It counts from the first element, and takes the one before."""
    made = of(
        node("Resize", "x s", "y", **mode), 10, [tensor("s", [1, 1, 1, 2], np.float32)], x=IMAGE
    )
    newer = attributes(convert(made, 11), "Resize")
    assert newer["coordinate_transformation_mode"] == b"asymmetric"
    assert newer.get("nearest_mode") == (None if mode.get("mode") == "linear" else b"floor")
    back = convert(convert(made, 11), 10)
    assert attributes(back, "Resize").get("mode", b"nearest").decode() == mode.get(
        "mode", "nearest"
    )


def resized(
    sizes: Any, mode: str = "nearest", *, is_constant: bool = True, dims: Any = None
) -> Any:
    """A Resize of an image by sizes, which counts from the first element."""
    nearest = {"nearest_mode": "floor"} if mode == "nearest" else {}
    options = {"coordinate_transformation_mode": "asymmetric", "mode": mode, **nearest}
    constants = [tensor("s", [], np.float32), tensor("r", [], np.float32)]
    inputs = [value("x", FLOAT, dims or IMAGE.shape)]
    if is_constant:
        constants.append(tensor("z", sizes))
    else:
        inputs.append(value("z", INT64, [4]))
    made = [node("Resize", "x r s z", "y", **options)]
    return model(graph(made, inputs, [value("y", FLOAT, [None] * 4)], constants), 11)


@pytest.mark.parametrize("opset", [13, 18])
@pytest.mark.parametrize("given", ["e, s", "f"])
def test_scales_or_sizes_that_are_empty_around_a_body_are_left_out(given: str, opset: int) -> None:
    """From opset 13 on, onnx's inference refuses a node that seems to have both."""
    made = parse_model(
        f"""<ir_version: 8, opset_import: ["": 11]> g (float[1, N] x, bool c) => (float[A, B] z)
        <float[0] e = {{}}, float[2] f = {{1, 2}}, int64[2] s = {{1, 6}}> {{
        z = If(c) <then_branch = a () => (float[C, D] y) {{ y = Resize(x, e, {given}) }},
        else_branch = b () => (float[E, F] w) {{ w = Neg(x) }}> }}"""
    )
    newer = converted(made, opset)
    x = np.array([[3, 1, 2]], np.float32)
    for yes, expected in ((True, [[3, 3, 1, 1, 2, 2]]), (False, -x)):
        found = ts.run(newer, {"x": x, "c": np.array(yes)})["z"]
        np.testing.assert_array_equal(found, np.array(expected, np.float32), strict=True)


def test_what_only_other_modes_ask_for_is_left_out_in_opset_10() -> None:
    made = resized([1, 1, 2, 6], "linear")
    given: dict[str, Any] = {
        "cubic_coeff_a": -0.5,
        "extrapolation_value": 3.0,
        "exclude_outside": 1,
        "nearest_mode": "ceil",
    }
    held = made.graph.node[0].attribute
    held.extend(helper.make_attribute(*each) for each in given.items())
    assert attributes(converted(made, 10), "Resize") == {"mode": b"linear"}


@pytest.mark.parametrize("mode", ["nearest", "linear"])
@pytest.mark.parametrize("sizes", [[1, 1, 2, 6], [1, 1, 1, 3], [2, 1, 4, 3]])
def test_sizes_are_scales_in_opset_10_where_these_are_exact(sizes: list[int], mode: str) -> None:
    older = converted(resized(sizes, mode), 10)
    scales = numpy_helper.to_array(next(iter(older.graph.node)).attribute[0].t)
    assert scales.tolist() == [size / dim for size, dim in zip(sizes, IMAGE.shape, strict=True)]


@pytest.mark.parametrize(
    "made",
    [
        resized([1, 1, 2, 4]),
        resized([1, 1, 2, 6], is_constant=False),
        resized([1, 1, 2, 6], dims=["N", 1, 2, 3]),
        resized([0, 1, 2, 6], dims=[0, 1, 2, 3]),
    ],
    ids=["a scale of 4/3", "at run time", "of an open dimension", "of no elements"],
)
def test_resize_by_other_sizes_is_refused_in_opset_10(made: Any) -> None:
    with refused("TS512", "Resize", "sizes"):
        convert(made, 10)


@pytest.mark.parametrize("mode", ["nearest", "linear"])
@pytest.mark.parametrize(
    "scale", [0.5, 0.25, 0.125, 0.2, 1 / 3, 0.4, 2 / 3, 0.75, 0.9, 1.0, 1.5, 2.0, 3.0]
)
def test_a_smaller_image_has_neighbours_that_are_nearest_however_it_is_rounded(
    scale: float, mode: str
) -> None:
    """Opset 10 does not say which; where each place is a whole number, it does not matter."""
    places = np.arange(9) / float(np.float32(scale))
    is_open = scale < 1 and mode == "nearest" and bool((places % 1).any())
    scales = [tensor("s", [1, 1, 1, scale], np.float32)]
    made = of(node("Resize", "x s", "y", mode=mode), 10, scales, x=IMAGE)
    if is_open:
        with refused("TS512", "Resize", "nearest"):
            convert(made, 11)
        return
    assert "floor" in str(attributes(convert(made, 11), "Resize")) or mode == "linear"


def test_what_is_nearest_where_an_image_becomes_smaller_is_open_in_opset_10() -> None:
    """onnxruntime rounds up there; of a half or a third every way of rounding is the same."""
    wide = [1, 1, 2, 8]
    with refused("TS512", "Resize", "0.75", "nearest"):
        convert(resized([1, 1, 2, 6], dims=wide), 10)
    converted(resized([1, 1, 2, 6], "linear", dims=wide), 10)
    converted(resized([1, 1, 2, 4], dims=wide), 10)
    older = of(node("Resize", "x s", "y"), 10, [tensor("s", [1, 1, 1, 0.75], np.float32)], x=IMAGE)
    with refused("TS512", "Resize", "0.75", "nearest"):
        convert(older, 11)


def test_a_constant_that_no_version_before_reads_is_left_out() -> None:
    constants = [tensor("r", [0] * 8, np.float32), tensor("s", [1, 1, 2, 2], np.float32)]
    ways = {"nearest_mode": "floor", "coordinate_transformation_mode": "asymmetric"}
    older = convert(of(node("Resize", "x r s", "y", **ways), 11, constants, x=IMAGE), 10)
    assert [each.name for each in older.graph.initializer] == ["s"]


def test_upsample_makes_nothing_smaller() -> None:
    constants = [tensor("s", [1, 1, 1, 0.5], np.float32)]
    with refused("TS512", "Resize", "0.5", "Upsample"):
        convert(of(node("Resize", "x s", "y"), 10, constants, x=IMAGE), 9)


def test_upsample_scales_height_and_width_alone_before_opset_7() -> None:
    made = of(node("Upsample", "x", "y", height_scale=2.0, width_scale=3.0), 1, x=IMAGE)
    newer = convert(made, 7)
    assert attributes(newer, "Upsample")["scales"] == [1, 1, 2, 3]
    np.testing.assert_array_equal(there(made, 9, x=IMAGE), IMAGE.repeat(2, 2).repeat(3, 3))
    older = attributes(convert(newer, 6), "Upsample")
    assert (older["height_scale"], older["width_scale"]) == (2, 3)
    for scales in ([1.0, 2.0, 1.0, 1.0], [2.0, 1.0, 1.0, 1.0], [1.0, 1.0, 2.0]):
        wrong = of(node("Upsample", "x", "y", scales=scales), 7, x=IMAGE)
        with refused("TS512", "Upsample", "height and width"):
            convert(wrong, 6)


def test_a_default_that_changed_is_written_out() -> None:
    made = of(node("Selu", "x", "y"), 1, x=X)
    written = attributes(convert(made, 6), "Selu")
    assert {name: round(number, 6) for name, number in written.items()} == {
        "alpha": 1.6732,
        "gamma": 1.0507,
    }


@pytest.mark.parametrize(
    ("op_type", "opset", "target", "written"),
    [
        ("Gemm", 7, 6, {"broadcast": 1}),  # before, C was broadcast only if asked for
        ("Concat", 3, 4, {"axis": 1}),  # since then there is no default
    ],
)
def test_what_the_other_version_has_to_be_told_is_written_out(
    op_type: str, opset: int, target: int, written: dict[str, int]
) -> None:
    a, b, c = X[0], X[0].T.copy(), X[0, :, :3].copy()
    inputs = {"a": a, "b": b, "c": c} if op_type == "Gemm" else {"a": a, "c": c}
    made = of(node(op_type, " ".join(inputs), "y"), opset, **inputs)
    assert attributes(convert(made, target), op_type) == written
    wanted = a @ b + c if op_type == "Gemm" else np.concatenate([a, c], 1)
    np.testing.assert_allclose(there(made, target, **inputs), wanted, rtol=1e-5)


def test_a_number_that_follows_from_shapes_alone_is_written_as_an_attribute() -> None:
    """Before opset 10 TopK has its k as one; of an open dimension there is none."""
    nodes = [node("Shape", "x", "s"), node("Gather", "s i", "k"), node("TopK", "x k", "y j")]
    made = of(nodes, 10, [tensor("i", [1])], x=X)
    assert attributes(convert(made, 9), "TopK")["k"] == 3
    np.testing.assert_array_equal(there(made, 9, x=X), -np.sort(-X)[..., :3])
    made.graph.input[0].type.tensor_type.shape.dim[1].dim_param = "N"
    with refused("TS512", "TopK"):
        convert(made, 9)


def test_a_topk_of_no_elements_stays_above_opset_9() -> None:
    """The page of TopK-1 wants a positive k, and so does onnx."""
    made = of([node("TopK", "x k", "y j")], 11, [tensor("k", [0])], x=X)
    with refused("TS512", "its k is 0; at opset 9 it is 1 or more"):
        convert(made, 9)
    one = of([node("TopK", "x k", "y j")], 11, [tensor("k", [1])], x=X)
    np.testing.assert_array_equal(there(one, 9, x=X), X.max(2, keepdims=True))


@pytest.mark.parametrize("number", [1.5, -2.5])
def test_the_type_of_a_cast_is_a_word_before_opset_6(number: float) -> None:
    data = np.array([number, 3], np.float32)
    word = of(node("Cast", "x", "y", to="INT32"), 5, x=data)
    assert attributes(convert(word, 6), "Cast") == {"to": INT32}
    numbered = of(node("Cast", "x", "y", to=INT32), 6, x=data)
    assert attributes(convert(numbered, 5), "Cast") == {"to": b"INT32"}
    for made, target in ((word, 6), (numbered, 5)):
        assert there(made, target, x=data).tolist() == [int(number), 3]


@pytest.mark.parametrize("target", [5, 4, 3])
def test_what_a_cast_gives_is_declared_before_opset_6(target: int) -> None:
    """onnx infers no type from such a word, and its checker refuses a Split of no type."""
    nodes = [
        node("Cast", "x", "d", to=TensorProto.DOUBLE),
        node("Split", "d", "a b", axis=2),
        node("Concat", "b a", "c", axis=2),
        node("Cast", "c", "y", to=TensorProto.FLOAT),
    ]
    made = of(nodes, 11, x=X)
    found = convert(made, target)
    checker.check_model(found, full_check=True)
    assert np.array_equal(there(made, target, x=X), np.roll(X, 2, 2))


def test_dilations_of_one_are_none() -> None:
    pool = node("AveragePool", "x", "y", kernel_shape=[2], dilations=[1])
    assert "dilations" not in attributes(convert(of(pool, 19, x=X), 18), "AveragePool")
    wide = node("AveragePool", "x", "y", kernel_shape=[2], dilations=[2])
    with refused("TS512", "AveragePool", "'dilations' is"):
        convert(of(wide, 19, x=X), 18)


def test_only_an_output_that_nothing_reads_is_dropped() -> None:
    """MaxPool gives no indices before opset 8."""
    unread = of(node("MaxPool", "x", "y i", kernel_shape=[2]), 8, x=X)
    assert len(convert(unread, 7).graph.node[0].output) == 1
    read = of(node("MaxPool", "x", "y i", kernel_shape=[2]), 8, out="y i", x=X)
    with refused("TS512", "MaxPool", "2 outputs"):
        convert(read, 7)


def test_an_input_that_the_older_version_lacks_leaves_the_definition() -> None:
    """Attention has a seventh input since opset 24."""
    heads = X[:, None]
    ends = np.array([2, 3])
    made = of(node("Attention", "q k v _ _ _ n", "y"), 24, q=heads, k=heads, v=heads, n=ends)
    older = convert(made, 23)
    assert "Attention" not in {each.op_type for each in older.graph.node}
    scores = heads @ heads.swapaxes(-1, -2) / 2
    scores = np.where(np.arange(3) < ends[:, None, None, None], scores, -np.inf)
    raised = np.exp(scores - scores.max(-1, keepdims=True))
    wanted = raised / raised.sum(-1, keepdims=True) @ heads
    found = outputs(older, q=heads, k=heads, v=heads, n=ends)[0]
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)


def test_an_operator_that_an_opset_gave_up_is_refused_by_name() -> None:
    made = of(node("Affine", "x", "y"), 6, x=X)
    with refused("TS512", "Affine"):
        convert(made, known(7)[0])


@pytest.mark.parametrize(("opset", "target"), [(8, 9), (9, 8)])
def test_a_scan_is_refused_at_opset_9_which_changed_what_it_scans(opset: int, target: int) -> None:
    body = graph([node("Identity", "a", "b")], [value("a", FLOAT, [4])], [value("b", FLOAT, [4])])
    operands = "_ x" if opset == 8 else "x"
    made = of(node("Scan", operands, "y", body=body, num_scan_inputs=1), opset, x=X)
    with refused("TS512", "Scan", "opset 9 changed what it scans"):
        convert(made, target)


@pytest.mark.parametrize("names", ["x", "x a"])
def test_a_sum_without_axes_is_of_all_elements_at_every_opset(names: str) -> None:
    made = of(node("ReduceSum", names, "y", keepdims=0), 13, [tensor("a", [])], x=X)
    np.testing.assert_allclose(there(made, 11, x=X), X.sum(), rtol=1e-5)
    assert attributes(convert(made, 11), "ReduceSum") == {"keepdims": 0}


@pytest.mark.parametrize("op_type", ["Squeeze", "ReduceSum"])
def test_an_empty_list_of_axes_is_none(op_type: str) -> None:
    """As onnxruntime 1.32.0 takes it at each opset."""
    made = of(node(op_type, "x", "y"), 11, x=X[:1])
    made.graph.node[0].attribute.add(name="axes", type=AttributeProto.INTS)
    newer = convert(made, 13)
    assert [list(each.input) for each in newer.graph.node] == [["x"]]


def test_absent_inputs_of_resize_are_empty_tensors_before_opset_13() -> None:
    image = X[None]
    made = of(node("Resize", "x _ _ z", "y"), 13, [tensor("z", [1, 2, 6, 4])], x=image)
    older = convert(made, 12)
    (resize,) = (each for each in older.graph.node if each.op_type == "Resize")
    assert all(resize.input)
    np.testing.assert_array_equal(outputs(older, x=image)[0], image.repeat(2, 2))


@pytest.mark.parametrize("mode", ["half_pixel_symmetric", "half_pixel"])
def test_a_place_of_pixels_that_is_new_at_opset_19_is_refused_before(mode: str) -> None:
    options = {"coordinate_transformation_mode": mode}
    made = of(node("Resize", "x _ _ z", "y", **options), 19, [tensor("z", [1, 2, 6, 4])], x=X[None])
    if mode == "half_pixel":
        assert attributes(convert(made, 18), "Resize")["coordinate_transformation_mode"]
        return
    with refused("TS512", "Resize", mode):
        convert(made, 18)


@pytest.mark.parametrize(("options", "bound"), [({}, 1.0), ({"alpha": 0.25}, 0.25)])
def test_a_definition_has_the_attributes_of_its_node_or_their_defaults(
    options: dict[str, float], bound: float
) -> None:
    made = of(node("ThresholdedRelu", "x", "y", **options), 10, x=X)
    np.testing.assert_array_equal(there(made, 9, x=X), np.where(bound < X, X, 0))


NORMALIZED = [
    ((1, 4, 0, 2), (2,), -1),
    ((2, 0, 3), (0, 3), -2),
    ((0, 3), (0, 3), 0),
    ((2, 3, 4), (3, 4), 1),
    ((2, 3, 4), (3, 1), -2),
    ((2, 3, 4), (2, 1, 4), 2),
    ((2, 3, 4), (1,), -1),
]
"""The shapes of data and of a scale that can be broadcast to it, and the first axis."""


@pytest.mark.parametrize("opset", [16, 13, 11, 10, 7])
@pytest.mark.parametrize(("shape", "of_scale", "axis"), NORMALIZED)
@pytest.mark.filterwarnings(
    "ignore:Mean of empty slice", "ignore:Degrees of freedom", "ignore:invalid value"
)
def test_a_layer_normalization_is_of_any_legal_shapes_before_opset_17(
    shape: tuple[int, ...], of_scale: tuple[int, ...], axis: int, opset: int
) -> None:
    """Data may have no elements; scale and bias are broadcast to it; both statistics keep axes."""
    x, scale, bias = (
        RNG.uniform(1, 2, each).astype(np.float32) for each in (shape, of_scale, of_scale)
    )
    inputs = {"x": x, "s": scale, "b": bias}
    made = of(
        node("LayerNormalization", "x s b", "y m i", axis=axis, epsilon=0.5),
        17,
        out="y m i",
        **inputs,
    )
    axes = tuple(range(axis % x.ndim, x.ndim))
    mean, root = x.mean(axes, keepdims=True), np.sqrt(x.var(axes, keepdims=True) + 0.5)
    wanted = [(x - mean) / root * scale + bias, mean, 1 / root]
    for expected, found in zip(wanted, outputs(convert(made, opset), **inputs), strict=True):
        assert found.shape == expected.shape
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("axis", [1, -1])
def test_a_layer_normalization_of_unknown_rank_is_converted(axis: int) -> None:
    """An axis that is counted from the back needs no rank; for another there is the definition."""
    x, scale = 0.01 * X.reshape(6, 4), np.arange(4, dtype=np.float32)
    data, factor = untyped("x"), value("s", FLOAT, [4])
    data.type.tensor_type.elem_type = FLOAT
    nodes = [node("LayerNormalization", "x s", "y", axis=axis)]
    older = convert(model(graph(nodes, [data, factor], [untyped("y")]), 17), 16)
    assert ("Flatten" in {each.op_type for each in older.graph.node}) == (axis == 1)
    (found,) = outputs(older, x=x, s=scale)
    deviation = x - x.mean(1, keepdims=True)
    wanted = deviation / np.sqrt(x.var(1, keepdims=True) + 1e-5) * scale
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)


def test_a_layer_normalization_is_calculated_in_the_type_of_its_statistics() -> None:
    x, scale = X.astype(np.float16), np.ones(4, np.float16)
    made = of(node("LayerNormalization", "x s", "y m"), 17, out="y m", x=x, s=scale)
    found, mean = outputs(convert(made, 13), x=x, s=scale)
    assert (found.dtype, mean.dtype) == (np.float16, np.float32)
    np.testing.assert_array_equal(mean, x.astype(np.float32).mean(2, keepdims=True))


def test_a_tile_along_one_axis_repeats_the_others_once() -> None:
    made = parse_model(
        """<ir_version: 3, opset_import: ["": 5]> g (float[2,3] x) => (float[A,B] y)
        <float[1] tiles = {2}, float[1] axis = {1}> { y = Tile(x, tiles, axis) }"""
    )
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    for each in (made, convert(made, opset=6), convert(made, opset=13)):
        np.testing.assert_array_equal(ts.run(each, {"x": x})["y"], np.tile(x, (1, 2)))


@pytest.mark.parametrize(("rounds_up", "is_refused"), [(0, False), (1, True), (None, False)])
def test_windows_that_start_in_the_padding_are_there_only_where_the_number_is_rounded_up(
    rounds_up: int | None, is_refused: bool
) -> None:
    said = "" if rounds_up is None else f", ceil_mode = {rounds_up}"
    made = parse_model(
        f"""<ir_version: 10, opset_import: ["": 21]> g (float[1,1,5] x) => (float[1,1,N] y) {{
        y = MaxPool<kernel_shape = [2], strides = [3], pads = [0, 1]{said}>(x) }}"""
    )
    if is_refused:
        with refused("TS512", "left out from opset 22 on"):
            convert(made, opset=22)
        return
    x = np.arange(5, dtype=np.float32)[None, None]
    want = ts.run(made, {"x": x})["y"]
    np.testing.assert_array_equal(ts.run(convert(made, opset=22), {"x": x})["y"], want)


@pytest.mark.parametrize("kind", ["float32", "float64", "float16"])
@pytest.mark.parametrize("target", [9, 10])
def test_halves_are_rounded_to_even_before_opset_11(target: int, kind: str) -> None:
    edges = [np.inf, -np.inf, np.nan, 0.49999997, -0.49999997, 2.5000002, 1023.5, 1022.5, 1e30]
    data = np.concatenate([np.arange(-9, 9, 0.25), edges, RNG.uniform(-99, 99, 50)]).astype(kind)
    wanted = {-8.75: -9, -2.5: -2, -1.5: -2, -0.5: 0, 0.5: 0, 1.5: 2, 2.5: 2, 3.5: 4, 4.25: 4}
    made = model(graph([node("Round", "x", "y")], [value("x", KINDS[kind], ["N"])], ["y"]), 13)
    made.graph.output[0].CopyFrom(value("y", KINDS[kind], ["N"]))
    (found,) = outputs(converted(made, target), x=data)
    np.testing.assert_array_equal(found, np.rint(data), strict=True)
    assert {key: found[data == key][0] for key in wanted} == wanted
    with refused("TS512", "Round", "opset 9"):
        convert(made, 8)
    (change,) = open_converted(made, target)[1].changes
    assert (change.operator, change.is_exact) == ("Round", True)


def dynamic_quantization() -> Any:
    ends = [value("y", TensorProto.UINT8, ["A", "B"]), value("s", FLOAT, [])]
    ends.append(value("z", TensorProto.UINT8, []))
    quantized = [node("DynamicQuantizeLinear", "x", "y s z")]
    return model(graph(quantized, [value("x", FLOAT, ["A", "B"])], ends), 13)


def test_a_quantization_of_its_own_scale_is_calculated_at_opset_10() -> None:
    """The zero point of 1.5 is rounded to even; that of data above 0 is 0."""
    there = converted(dynamic_quantization(), 10)
    for data, scale, zero, wanted in (
        ([[-1.5, 253.5, 0.5]], 1, 2, [[0, 255, 2]]),
        ([[-2.5, 252.5, 0.5]], 1, 2, [[0, 254, 2]]),
        ([[51, 102, 25.5]], 0.4, 0, [[128, 255, 64]]),
        ([[-51, -102, -25.5]], 0.4, 255, [[127, 0, 191]]),
        ([[0, 0, 0]], 1, 0, [[0, 0, 0]]),
    ):
        y, s, z = outputs(there, x=np.array(data, np.float32))
        assert (s == np.float32(scale), int(z), y.tolist()) == (True, zero, wanted)
    with refused("TS512", "DynamicQuantizeLinear", "QuantizeLinear at opset 9"):
        convert(dynamic_quantization(), 9)


@pytest.mark.engine("onnxruntime")
def test_onnxruntime_quantizes_to_the_same_bits_at_opset_10() -> None:
    before = dynamic_quantization()
    sessions = [ts.session(each, engine="onnxruntime") for each in (before, convert(before, 10))]
    for turn in range(200):
        spread, middle = RNG.choice([1e-3, 1, 50]), RNG.choice([-3, 0, 3, 100])
        data = RNG.normal(middle, spread, RNG.integers(1, 9, 2)).astype(np.float32)
        data = np.abs(data) if turn % 7 == 0 else np.round(data) if turn % 3 == 0 else data
        old, new = (session.run({"x": data}) for session in sessions)
        for name in old:
            np.testing.assert_array_equal(old[name], new[name], strict=True)


def test_a_mean_variance_normalization_names_its_axes_since_opset_13() -> None:
    """onnx 1.23.2 refuses one that does not, as the full check of `converted` does."""
    x = RNG.normal(size=(2, 3, 4, 5)).astype(np.float32)
    made = parse_model(
        """<ir_version: 8, opset_import: ["": 12]> g (float[2,3,4,5] x) => (float[2,3,4,5] y)
        { y = MeanVarianceNormalization(x) }"""
    )
    found = converted(made, 19)
    assert attributes(found, "MeanVarianceNormalization") == {"axes": [0, 2, 3]}
    np.testing.assert_array_equal(outputs(found, x=x)[0], outputs(made, x=x)[0])
