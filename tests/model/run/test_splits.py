"""Split and SplitToSequence in a model: every opset, every spelling, every element type."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper

from tests.model.build import (
    FLOAT,
    INT64,
    check,
    graph,
    known,
    model,
    node,
    outputs,
    run,
    tensor,
    untyped,
    value,
)
from tests.oracle import ALLOWED, CLASSIC, DTYPES, SIXTEEN, assert_same, random_array, slices
from tests.refusals import refused

OPSETS = range(1, 29)
WITH_INPUT = range(13, 29)
WITH_COUNT = range(18, 29)
OF_SEQUENCE = range(11, 29)

ONNX_TYPES = {name: getattr(TensorProto, name.upper()) for name in SIXTEEN}


def version_at(opset: int) -> str:
    since = max(version for version in (1, 2, 11, 13, 18) if version <= opset)
    return f"onnx.Split-{since}"


def data(rng: np.random.Generator, *shape: int) -> Any:
    return random_array("float", shape, rng)


@pytest.mark.parametrize("opset", range(1, 13))
def test_before_opset_13_the_lengths_are_an_attribute(opset: int, rng: np.random.Generator) -> None:
    x = data(rng, 3, 7)
    made = model(graph([node("Split", "x", "a b c", axis=1, split=[2, 4, 1])], [value("x")], "abc"))
    made.opset_import[0].version = opset
    assert_same(outputs(made, x=x), slices(x, 1, [2, 4, 1]))


@pytest.mark.parametrize("opset", WITH_INPUT)
def test_from_opset_13_the_lengths_are_an_input(opset: int, rng: np.random.Generator) -> None:
    x = data(rng, 7, 2)
    made = model(
        graph([node("Split", "x s", "a b", axis=-2)], [value("x")], "ab", [tensor("s", [5, 2])]),
        opset,
    )
    assert_same(outputs(made, x=x), slices(x, 0, [5, 2]))


@pytest.mark.parametrize("opset", known(*WITH_INPUT))
def test_lengths_may_come_from_a_constant_node_or_be_computed(
    opset: int, rng: np.random.Generator
) -> None:
    x = data(rng, 6)
    nodes = [
        node("Constant", "", "c", value=tensor("", [1, 2])),
        node("Add", "c c", "s"),
        node("Split", "x s", "a b"),
        node("Constant", "", "t", value=tensor("", [3, 1])),
        node("Split", "b t", "p q"),
    ]
    made = model(graph(nodes, [value("x")], "apq"), opset)
    assert_same(outputs(made, x=x), slices(x, 0, [2, 3, 1]))
    with refused("TS302", "[2, 4]", "sums to 6", 7, "graph/Split[2]"):
        run(made, x=data(rng, 7))


@pytest.mark.parametrize("opset", WITH_INPUT)
def test_lengths_may_be_fed(opset: int, rng: np.random.Generator) -> None:
    x = data(rng, 6, 2)
    made = model(
        graph([node("Split", "x s", "a b")], [value("x"), value("s", INT64, [2])], "ab"), opset
    )
    assert_same(outputs(made, x=x, s=np.array([1, 5])), slices(x, 0, [1, 5]))
    assert_same(outputs(made, x=x, s=np.array([6, 0])), slices(x, 0, [6, 0]))
    with refused("TS302", "[1, 4]", "sums to 5", operator=version_at(opset), parameter="split"):
        run(made, x=x, s=np.array([1, 4]))
    with refused("TS301", "[-1, 7]", "graph/Split[0]"):
        run(made, x=x, s=np.array([-1, 7]))


@pytest.mark.parametrize("opset", OPSETS[:17])
def test_without_lengths_the_parts_are_equal(opset: int, rng: np.random.Generator) -> None:
    x = data(rng, 2, 9)
    made = model(graph([node("Split", "x", "a b c", axis=1)], [value("x")], "abc"), opset)
    assert_same(outputs(made, x=x), slices(x, 1, [3, 3, 3]))
    with refused("TS303", 8, 3, operator=version_at(opset)):
        run(made, x=data(rng, 2, 8))


@pytest.mark.parametrize("opset", WITH_COUNT)
def test_num_outputs_makes_the_last_part_smaller(opset: int, rng: np.random.Generator) -> None:
    x = data(rng, 2, 7)
    made = model(
        graph([node("Split", "x", "a b c", axis=1, num_outputs=3)], [value("x")], "abc"), opset
    )
    assert_same(outputs(made, x=x), slices(x, 1, [3, 3, 1]))
    assert_same(outputs(made, x=x[:, :0]), slices(x[:, :0], 1, [0, 0, 0]))
    with refused("TS304", 1, 3, "num_outputs"):
        run(made, x=data(rng, 2, 1))


def test_an_omitted_input_is_absent(rng: np.random.Generator) -> None:
    x = data(rng, 4)
    made = model(graph([node("Split", "x _", "a b", num_outputs=2)], [value("x")], "ab"))
    assert_same(outputs(made, x=x), slices(x, 0, [2, 2]))


def test_an_omitted_output_still_counts(rng: np.random.Generator) -> None:
    x = data(rng, 6)
    made = model(graph([node("Split", "x", "a _ c", num_outputs=3)], [value("x")], "ac"))
    first, _, last = slices(x, 0, [2, 2, 2])
    assert_same(outputs(made, x=x), [first, last])


def test_an_omitted_output_is_not_the_omitted_input_of_a_later_node(
    rng: np.random.Generator,
) -> None:
    x = data(rng, 6)
    nodes = [
        node("Split", "x", "a _ c", num_outputs=3),
        node("Clip", "x _ hi", "y"),
        node("Split", "x _", "p q", num_outputs=2),
    ]
    made = model(graph(nodes, [value("x")], "ypq", [tensor("hi", 1.0, np.float32)]))
    assert_same(outputs(made, x=x), [np.minimum(x, 1), *slices(x, 0, [3, 3])])


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_split_1_takes_lengths_of_the_data_s_own_float_type(
    dtype: Any, rng: np.random.Generator
) -> None:
    x = rng.random(5).astype(dtype)
    inputs = [untyped("x"), untyped("s")]
    made = model(graph([node("Split", "x s", "a b", axis=0)], inputs, "ab"), 1)
    assert_same(outputs(made, x=x, s=np.array([2, 3], dtype)), slices(x, 0, [2, 3]))
    other = np.float64 if dtype == np.float32 else np.float32
    with refused("TS201", operator="onnx.Split-1"):
        run(made, x=x, s=np.array([2, 3], other))
    with refused("TS107", "2.5"):
        run(made, x=x, s=np.array([2.5, 2.5], dtype))
    with refused("TS105", "int64"):
        run(made, x=x, s=np.array([2, 3]))


@pytest.mark.parametrize("opset", OF_SEQUENCE)
@pytest.mark.parametrize("where", ["initializer", "Constant", "fed", "override"])
@pytest.mark.parametrize(("split", "sizes"), [(3, [3, 3, 1]), ([4, 0, 3], [4, 0, 3]), ([7], [7])])
def test_split_to_sequence(
    opset: int, where: str, split: Any, sizes: list[int], rng: np.random.Generator
) -> None:
    x = data(rng, 2, 7)
    dtype = np.int32 if opset % 2 else np.int64
    given = tensor("s", split, dtype)
    if where == "Constant" and not known(opset):
        pytest.skip("the installed onnx does not know this opset's Constant")
    nodes = [node("SplitToSequence", "x s", "q", axis=1, keepdims=0)]
    declared = [value("x", FLOAT, [2, "N"])]
    feeds = {"x": x}
    if where in ("fed", "override"):
        declared.append(untyped("s"))
        feeds["s"] = np.array(split, dtype)
    if where == "Constant":
        nodes.insert(0, node("Constant", "", "s", value=given))
    held = {"initializer": [given], "override": [tensor("s", [99], dtype)]}.get(where, [])
    made = model(graph(nodes, declared, ["q"], held), opset)
    assert_same(run(made, **feeds)["q"], slices(x, 1, sizes))


@pytest.mark.parametrize("opset", OF_SEQUENCE)
@pytest.mark.parametrize("keepdims", [0, 1])
def test_split_to_sequence_without_lengths_makes_ones(
    opset: int, keepdims: int, rng: np.random.Generator
) -> None:
    x = data(rng, 3, 2)
    nodes = [node("SplitToSequence", "x", "q", axis=-1, keepdims=keepdims)]
    made = model(graph(nodes, [value("x")], ["q"]), opset)
    assert_same(run(made, x=x)["q"], slices(x, 1, [1, 1], keepdims=bool(keepdims)))


@pytest.mark.parametrize("opset", [2, 11, 13, 18, 28])
@pytest.mark.parametrize("name", [*SIXTEEN, "string as U", "string as StringDType"])
def test_every_element_type_keeps_its_bits(opset: int, name: str, rng: np.random.Generator) -> None:
    element = name.partition(" ")[0]
    x = random_array(name, (5, 2), rng)
    attributes = {"split": [3, 2]} if opset < 13 else {}
    inputs = "x" if opset < 13 else "x s"
    made = model(
        graph(
            [node("Split", inputs, "a b", **attributes)],
            [value("x", ONNX_TYPES[element], [5, 2])],
            "ab",
            [] if opset < 13 else [tensor("s", [3, 2])],
        ),
        opset,
    )
    if element not in ALLOWED[version_at(opset)]:
        with refused("TS201", element, operator=version_at(opset), parameter="input"):
            run(made, x=x)
        with refused("TS201", element):
            check(made)
    else:
        assert_same(outputs(made, x=x), slices(x, 0, [3, 2]))


@pytest.mark.parametrize("name", [*CLASSIC, "bfloat16"])
def test_split_to_sequence_of_every_element_type(name: str, rng: np.random.Generator) -> None:
    x = random_array(name, (3, 2), rng)
    made = model(graph([node("SplitToSequence", "x", "q")], [value("x", ONNX_TYPES[name])], ["q"]))
    if name == "bfloat16":
        with refused("TS201", "bfloat16", operator="onnx.SplitToSequence-11"):
            run(made, x=x)
        made.opset_import[0].version = 24
    assert_same(run(made, x=x)["q"], slices(x, 0, [1, 1, 1]))


@pytest.mark.parametrize("name", ["float8e4m3fn", "int4", "uint2", "float4e2m1"])
def test_types_outside_the_constraint_are_refused(name: str, rng: np.random.Generator) -> None:
    x = random_array(name, (4,), rng)
    nodes = [node("Split", "x", "a b", num_outputs=2)]
    made = model(graph(nodes, [value("x", getattr(TensorProto, name.upper()))], "ab"), 28)
    with refused("TS201", name, operator="onnx.Split-18"):
        run(made, x=x)


def test_an_initializer_that_is_an_input_is_a_default(rng: np.random.Generator) -> None:
    x = data(rng, 6)
    declared = [value("x", FLOAT, [6]), value("s", INT64, [2])]
    made = model(graph([node("Split", "x s", "a b")], declared, "ab", [tensor("s", [2, 4])]))
    assert_same(outputs(made, x=x), slices(x, 0, [2, 4]))
    assert_same(outputs(made, x=x, s=np.array([5, 1])), slices(x, 0, [5, 1]))
    with refused("TS302", "[5, 2]", "graph/Split[0]"):
        run(made, x=x, s=np.array([5, 2]))
    assert check(made) == ["graph/Split[0]"]
    made.graph.initializer[0].CopyFrom(tensor("s", [-1, 7]))
    assert check(made) == ["graph/Split[0]"]
    assert_same(outputs(made, x=x, s=np.array([3, 3])), slices(x, 0, [3, 3]))
    with refused("TS301", "[-1, 7]"):
        run(made, x=x)


def test_before_ir_version_4_every_initializer_is_listed_as_input(
    rng: np.random.Generator,
) -> None:
    x = data(rng, 6)
    declared = [value("x", FLOAT, [6]), value("s", INT64, [2])]
    made = model(graph([node("Split", "x s", "a b")], declared, "ab", [tensor("s", [2, 4])]), 13)
    made.ir_version = 3
    assert_same(outputs(made, x=x), slices(x, 0, [2, 4]))


@pytest.mark.parametrize("ir_version", [1, 2])
def test_models_of_ir_version_1_and_2_are_at_opset_1(
    ir_version: int, rng: np.random.Generator
) -> None:
    x = data(rng, 4)
    made = model(graph([node("Split", "x", "a b", split=[1, 3])], [value("x")], "ab"))
    del made.opset_import[:]
    made.ir_version = ir_version
    assert_same(outputs(made, x=x), slices(x, 0, [1, 3]))
    with refused("TS105", operator="onnx.Split-1"):
        made.graph.node[0].attribute[0].CopyFrom(helper.make_attribute("split", [1.0, 3.0]))
        run(made, x=x)


@pytest.mark.parametrize("domain", ["", "ai.onnx"])
@pytest.mark.parametrize("imported", ["", "ai.onnx"])
def test_ai_onnx_is_the_same_domain(domain: str, imported: str, rng: np.random.Generator) -> None:
    x = data(rng, 4)
    nodes = [
        node("Split", "x", "a b", num_outputs=2, domain=domain),
        node("Neg", "b", "c", domain="" if domain else "ai.onnx"),
    ]
    made = model(graph(nodes, [value("x")], "ac"))
    made.opset_import[0].domain = imported
    assert_same(outputs(made, x=x), [x[:2], -x[2:]])


REFUSED: dict[str, tuple[str, int, Any, list[Any], tuple[int, ...]]] = {
    "D1 five into four": ("TS304", 18, node("Split", "x", "a b c d", num_outputs=4), [], (5,)),
    "D3 seven into two": ("TS303", 13, node("Split", "x", "a b"), [], (7,)),
    "D4 both": ("TS104", 18, node("Split", "x s", "a b", num_outputs=2), [[2, 2]], (4,)),
    "D4 neither": ("TS104", 18, node("Split", "x", "a b"), [], (4,)),
    "D5 fewer": ("TS305", 18, node("Split", "x", "a b c", num_outputs=2), [], (4,)),
    "D5 more": ("TS305", 18, node("Split", "x", "a b", num_outputs=3), [], (6,)),
    "D5 lengths": ("TS305", 13, node("Split", "x s", "a b"), [[2, 1, 1]], (4,)),
    "D6 less": ("TS302", 13, node("Split", "x s", "a b"), [[2, 1]], (4,)),
    "D6 attribute": ("TS302", 11, node("Split", "x", "a b", split=[2, 3]), [], (4,)),
    "D7 negative": ("TS301", 13, node("Split", "x s", "a b"), [[-1, 5]], (4,)),
    "D7 attribute": ("TS301", 2, node("Split", "x", "a b", split=[-1, 5]), [], (4,)),
    "D10 chunk of 0": ("TS307", 11, node("SplitToSequence", "x s", "a"), [0], (4,)),
    "D12 both": ("TS104", 1, node("Split", "x s", "a b", split=[2, 2]), [[2.0, 2.0]], (4,)),
    "D14 beyond int32": ("TS302", 13, node("Split", "x s", "a b"), [[2**32 + 1, 5]], (6,)),
    "D14 overflow": ("TS302", 13, node("Split", "x s", "a b"), [[2**63 - 1, 2**63 - 1]], (6,)),
    "D18 scalar": ("TS202", 18, node("Split", "x", "a", num_outputs=1), [], ()),
    "axis": ("TS203", 18, node("Split", "x", "a b", num_outputs=2, axis=1), [], (4,)),
    "axis below": ("TS203", 11, node("Split", "x", "a b", axis=-2), [], (4,)),
    "float axis": ("TS105", 18, node("Split", "x", "a b", num_outputs=2, axis=0.0), [], (4,)),
    "list of axes": ("TS106", 18, node("Split", "x", "a b", num_outputs=2, axis=[0]), [], (4,)),
    "rank of lengths": ("TS106", 13, node("Split", "x s", "a b"), [[[2, 2]]], (4,)),
    "scalar lengths": ("TS106", 13, node("Split", "x s", "a"), [4], (4,)),
    "attribute at 13": ("TS103", 13, node("Split", "x", "a b", split=[2, 2]), [], (4,)),
    "input at 11": ("TS103", 11, node("Split", "x s", "a b"), [[2, 2]], (4,)),
    "count at 13": ("TS103", 13, node("Split", "x", "a b", num_outputs=2), [], (4,)),
    "unknown attribute": ("TS103", 18, node("Split", "x", "a", num_outputs=1, ax=0), [], (4,)),
    "three inputs": ("TS103", 18, node("Split", "x s s", "a b"), [[2, 2]], (4,)),
    "no input": ("TS102", 18, node("Split", "", "a b", num_outputs=2), [], (4,)),
    "omitted data": ("TS102", 18, node("Split", "_ s", "a b"), [[2, 2]], (4,)),
    "no output": ("TS305", 18, node("Split", "x s", ""), [[4]], (4,)),
    "two sequences": ("TS305", 18, node("SplitToSequence", "x", "a b"), [], (4,)),
    "no such opset": ("TS101", 10, node("SplitToSequence", "x", "a"), [], (4,)),
    "opset 29": ("TS101", 29, node("Split", "x", "a", num_outputs=1), [], (4,)),
    "keepdims": ("TS107", 18, node("SplitToSequence", "x", "a", keepdims=2), [], (4,)),
}


@pytest.mark.parametrize("name", REFUSED)
@pytest.mark.parametrize("where", ["initializer", "fed", "computed"])
def test_refusals_are_the_same_for_constants_and_at_run_time(
    name: str, where: str, rng: np.random.Generator
) -> None:
    code, opset, split, lengths, shape = REFUSED[name]
    dtype = np.float32 if lengths and isinstance(np.ravel(lengths[0])[0], np.floating) else np.int64
    declared, held, feeds = [value("x")], [], {"x": data(rng, *shape) if shape else np.float32(1)}
    nodes = [split]
    if lengths:
        if where == "fed":
            declared.append(untyped("s"))
            feeds["s"] = np.array(lengths[0], dtype)
        else:
            held = [tensor("s", lengths[0], dtype)]
        if where == "computed":
            held[0].name = "t"
            nodes.insert(0, node("Identity", "t", "s"))
    results = [name for name in split.output if name]
    made = model(graph(nodes, declared, results or ["x"], held), opset)
    with refused(code, f"graph/{split.op_type}["):
        run(made, **feeds)


@pytest.mark.parametrize("where", ["initializer", "fed", "computed"])
@pytest.mark.parametrize(
    ("opset", "dtype"),
    [(13, np.int32), (18, np.int32), (13, np.float32), (18, np.uint64), (13, bool), (13, np.int8)],
)
def test_lengths_of_a_wrong_element_type(
    opset: int, dtype: Any, where: str, rng: np.random.Generator
) -> None:
    lengths = np.array([1, 1], dtype)
    declared = [value("x"), *([untyped("s")] if where == "fed" else [])]
    nodes = [node("Split", "x s", "a b")]
    if where == "computed":
        nodes.insert(0, node("Identity", "t", "s"))
    held = [] if where == "fed" else [tensor("t" if where == "computed" else "s", lengths, dtype)]
    made = model(graph(nodes, declared, "ab", held), opset)
    feeds = {"x": data(rng, 2), **({"s": lengths} if where == "fed" else {})}
    with refused("TS105", np.dtype(dtype).name.replace("float32", "float"), parameter="split"):
        run(made, **feeds)


def test_an_attribute_given_twice_is_refused() -> None:
    split = node("Split", "x", "a b", axis=0, num_outputs=2)
    split.attribute.append(helper.make_attribute("axis", 1))
    made = model(graph([split], [value("x")], "ab"))
    with refused("TS502", "axis", "graph/Split[0]"):
        run(made, x=np.ones((2, 2), np.float32))


@pytest.mark.parametrize("type_", ["TENSOR", "STRING", "FLOATS", "UNDEFINED", "GRAPH"])
def test_an_attribute_of_another_kind_is_refused(type_: str) -> None:
    split = node("Split", "x", "a b", split=[1, 1])
    split.attribute[0].type = type(split.attribute[0]).AttributeType.Value(type_)
    made = model(graph([split], [value("x")], "ab"), 11)
    with refused("TS105", type_, operator="onnx.Split-11", parameter="split"):
        run(made, x=np.ones(2, np.float32))


def test_a_sequence_is_no_tensor_to_cut() -> None:
    nodes = [node("SplitToSequence", "x", "q"), node("Split", "q", "a b", num_outputs=2)]
    made = model(graph(nodes, [value("x")], "ab"))
    with refused("TS204", "sequence", "graph/Split[1]"):
        run(made, x=np.ones(2, np.float32))


def test_lengths_can_be_no_sequence() -> None:
    nodes = [node("SplitToSequence", "x", "q"), node("Split", "x q", "a b")]
    made = model(graph(nodes, [value("x")], "ab"))
    with refused("TS105", "sequence", parameter="split"):
        run(made, x=np.ones(2, np.float32))


def test_results_come_in_the_order_of_the_graph_s_outputs(rng: np.random.Generator) -> None:
    x = data(rng, 4)
    made = model(graph([node("Split", "x", "a b", num_outputs=2)], [value("x")], ["b", "x", "a"]))
    assert list(run(made, x=x)) == ["b", "x", "a"]
    assert_same(outputs(made, x=x), [x[2:], x, x[:2]])


@pytest.mark.parametrize("order", ["C", "F", "reversed", "read-only", "big-endian"])
def test_layouts_of_what_is_fed(order: str, rng: np.random.Generator) -> None:
    x = rng.random((4, 6)).astype(np.float32)
    fed = {
        "C": x,
        "F": np.asfortranarray(x),
        "reversed": x[::-1, ::-1].copy()[::-1, ::-1],
        "read-only": np.frombuffer(x.tobytes(), np.float32).reshape(4, 6),
        "big-endian": x.astype(">f4"),
    }[order]
    made = model(graph([node("Split", "x", "a b", axis=1, num_outputs=2)], [value("x")], "ab"))
    assert_same(outputs(made, x=fed), slices(x, 1, [3, 3]))


def test_all_element_types_are_covered() -> None:
    assert set(ONNX_TYPES) <= set(DTYPES)
    assert len(ONNX_TYPES) == 16
