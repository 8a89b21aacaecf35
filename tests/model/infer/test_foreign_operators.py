"""What operators of ONNX Runtime give, as its optimiser and its tools for quantisation write them.

Each case is a node of its own: its inputs by type and shape, and what it gives. A dimension N is
4 where onnxruntime runs it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import tensorsplit as ts
from tests.model.build import FLOAT, INT64, graph, model, untyped, value

UINT8 = TensorProto.UINT8
Shape = tuple[Any, ...]


class Case(NamedTuple):
    inputs: Sequence[tuple[int, Shape]]
    given: tuple[int, Shape]
    attributes: dict[str, Any] | None = None


def quantised(*shapes: Shape) -> list[Any]:
    """Tensors of uint8, each with its scale and zero point, and those of the output."""
    each = [((UINT8, shape), (FLOAT, ()), (UINT8, ())) for shape in shapes]
    return [entry for group in each for entry in group] + [(FLOAT, ()), (UINT8, ())]


X = (FLOAT, ("N", 3, 8))
CONVOLUTION = [(FLOAT, ("N", 2, 5, 5)), (FLOAT, (6, 1, 3, 3)), (FLOAT, (6,))]
POOL = (UINT8, ("N", 2, 5, 5))
CASES: dict[str, Case] = {
    "BiasGelu": Case([X, (FLOAT, (8,))], X),
    "DequantizeLinear": Case(
        [(TensorProto.UINT16, ("N", 8)), (FLOAT, ()), (TensorProto.UINT16, ())], (FLOAT, ("N", 8))
    ),
    "DynamicQuantizeMatMul": Case(
        [X, (UINT8, (8, 5)), (FLOAT, ()), (UINT8, ())], (FLOAT, ("N", 3, 5))
    ),
    "FastGelu": Case([X], X),
    "FusedConv": Case(
        CONVOLUTION,
        (FLOAT, ("N", 6, 3, 2)),
        {"activation": "Relu", "group": 2, "strides": [2, 2], "pads": [1, 1, 1, 0]},
    ),
    "FusedGemm": Case(
        [(FLOAT, (8, "N")), (FLOAT, (5, 8)), (FLOAT, (5,))],
        (FLOAT, ("N", 5)),
        {"activation": "Relu", "transA": 1, "transB": 1},
    ),
    "FusedMatMul": Case([X, X], (FLOAT, ("N", 3, 3)), {"alpha": 0.5, "transB": 1}),
    "Gelu": Case([X], X),
    "MatMulNBits": Case(
        [(FLOAT, ("N", 3, 32)), (UINT8, (6, 1, 16)), (FLOAT, (6,))],
        (FLOAT, ("N", 3, 6)),
        {"K": 32, "N": 6, "bits": 4, "block_size": 32},
    ),
    "QGemm": Case(
        [
            *[(UINT8, ("N", 8)), (FLOAT, ()), (UINT8, ())],
            *[(UINT8, (5, 8)), (FLOAT, ()), (UINT8, ())],
            *[(TensorProto.INT32, (5,)), (FLOAT, ()), (UINT8, ())],
        ],
        (UINT8, ("N", 5)),
        {"transB": 1},
    ),
    "QLinearAdd": Case(quantised(("N", 1, 8), (3, 8)), (UINT8, ("N", 3, 8))),
    "QLinearAveragePool": Case(
        [POOL, *quantised(())[1:]],
        (UINT8, ("N", 2, 4, 3)),
        {"kernel_shape": [2, 3]},
    ),
    "QLinearConcat": Case(
        [*quantised()[:2], *quantised(("N", 3), ("N", 5))[:-2]], (UINT8, ("N", 8)), {"axis": 1}
    ),
    "QLinearGlobalAveragePool": Case(
        [POOL, *quantised(())[1:]], (UINT8, ("N", 2, 1, 1)), {"channels_last": 0}
    ),
    "QLinearLeakyRelu": Case(quantised(("N", 8)), (UINT8, ("N", 8)), {"alpha": 0.5}),
    "QLinearMul": Case(quantised(("N", 3, 1), (8,)), (UINT8, ("N", 3, 8))),
    "QLinearSigmoid": Case(quantised(("N", 8)), (UINT8, ("N", 8))),
    "QLinearSoftmax": Case(quantised(("N", 8)), (UINT8, ("N", 8)), {"axis": -1, "opset": 13}),
    "QuantizeLinear": Case(
        [(FLOAT, ("N", 8)), (FLOAT, ()), (TensorProto.UINT16, ())], (TensorProto.UINT16, ("N", 8))
    ),
    "QuickGelu": Case([X], X, {"alpha": 1.7}),
    "RotaryEmbedding": Case(
        [X, (INT64, (1,)), (FLOAT, (9, 2)), (FLOAT, (9, 2))], X, {"num_heads": 2}
    ),
    "SkipLayerNormalization": Case([X, X, (FLOAT, (8,)), (FLOAT, (8,))], X),
    "SkipSimplifiedLayerNormalization": Case([X, X, (FLOAT, (8,))], X),
    "Trilu": Case([X], X),
}


def model_of(op_type: str) -> onnx.ModelProto:
    case = CASES[op_type]
    names = [f"x{place}" for place in range(len(case.inputs))]
    attributes = {"domain": "com.microsoft", **(case.attributes or {})}
    made = helper.make_node(op_type, names, ["y"], **attributes)
    inputs = [value(name, *entry) for name, entry in zip(names, case.inputs, strict=True)]
    body = graph(
        [made], inputs, [value("y", case.given[0], [f"y{k}" for k in range(len(case.given[1]))])]
    )
    result = model(body, 17, (), **{"com.microsoft": 1})
    result.ir_version = 8
    return result


def inferred(made: onnx.ModelProto) -> Any:
    kind = ts.infer_shapes(made).graph.output[0].type.tensor_type
    return kind.elem_type, tuple([dim.dim_value or dim.dim_param for dim in kind.shape.dim])


@pytest.mark.parametrize("op_type", CASES)
def test_the_type_and_shape_are_inferred(op_type: str) -> None:
    made = model_of(op_type)
    del made.graph.output[:]
    made.graph.output.append(untyped("y"))
    assert inferred(made) == CASES[op_type].given


@pytest.mark.parametrize("op_type", CASES)
def test_a_node_with_too_few_inputs_is_no_error(op_type: str) -> None:
    """A node that ONNX Runtime does not take has an unknown output, or that of its first inputs."""
    made = model_of(op_type)
    del made.graph.output[:]
    made.graph.output.append(untyped("y"))
    (node,) = made.graph.node
    first_of_joined = [(UINT8, ("N", 3))] if op_type == "QLinearConcat" else []
    while node.input:
        node.input.pop()
        assert inferred(made) in (CASES[op_type].given, (0, ()), *first_of_joined)


@pytest.mark.parametrize("op_type", CASES)
def test_nothing_is_known_of_its_other_outputs(op_type: str) -> None:
    made = model_of(op_type)
    made.graph.node[0].output.append("z")
    del made.graph.output[:]
    made.graph.output.extend([untyped("y"), untyped("z")])
    assert inferred(made) == CASES[op_type].given
    assert not ts.infer_shapes(made).graph.output[1].type.tensor_type.elem_type


@pytest.mark.engine
@pytest.mark.parametrize("op_type", CASES)
def test_onnxruntime_gives_them(op_type: str) -> None:
    pytest.importorskip("onnxruntime")
    case, made = CASES[op_type], model_of(op_type)
    sizes: dict[Any, Any] = {"N": 4}
    feeds = {
        f"x{place}": np.ones(
            [sizes.get(dim) or dim for dim in shape], helper.tensor_dtype_to_np_dtype(element)
        )
        for place, (element, shape) in enumerate(case.inputs)
    }
    got = ts.run(made, feeds, engine="onnxruntime")["y"]
    assert got.shape == tuple([sizes.get(dim, dim) for dim in case.given[1]])
    assert got.dtype == helper.tensor_dtype_to_np_dtype(case.given[0])


@pytest.mark.parametrize(
    ("op_type", "change"),
    [
        ("FusedMatMul", {"transBatchA": 1}),
        ("FusedMatMul", {"transBatchB": 1}),
        ("QLinearAveragePool", {"channels_last": 1}),
        ("QLinearGlobalAveragePool", {"channels_last": 1}),
    ],
)
def test_other_layouts_are_not_known(op_type: str, change: dict[str, int]) -> None:
    made = model_of(op_type)
    del made.graph.output[:]
    made.graph.output.append(untyped("y"))
    given = {entry.name: entry for entry in made.graph.node[0].attribute}
    for name, held in change.items():
        if name in given:
            given[name].i = held
        else:
            made.graph.node[0].attribute.append(helper.make_attribute(name, held))
    assert inferred(made) == (0, ())


@pytest.mark.parametrize("operands", [["x7", ""], ["x7"], []])
def test_a_quantised_gemm_without_a_zero_point_gives_floats_that_are_not_known(
    operands: list[str],
) -> None:
    made = model_of("QGemm")
    del made.graph.output[:]
    made.graph.output.append(untyped("y"))
    made.graph.node[0].input[7:] = operands
    assert inferred(made) == (0, ())


def test_a_split_after_a_quantised_sum_is_lowered() -> None:
    """Its axis counts from the back, so that the rank has to be known."""
    made = model_of("QLinearAdd")
    made.graph.node.append(helper.make_node("Split", ["y"], ["a", "b"], axis=-1))
    made.graph.output[0].name = "a"
    lowered = ts.lower(made, target="portable")
    assert [each for each in ts.check(lowered, "portable") if each.severity == "error"] == []


@pytest.mark.parametrize("opset", [10, 13, 17, 21])
@pytest.mark.parametrize("scale", [TensorProto.FLOAT16, FLOAT])
def test_what_is_dequantised_has_the_type_of_its_scale(scale: int, opset: int) -> None:
    made = model_of("DequantizeLinear")
    made.opset_import[0].version = opset
    made.graph.input[1].type.tensor_type.elem_type = scale
    del made.graph.output[:]
    made.graph.output.append(untyped("y"))
    assert inferred(made) == (scale, ("N", 8))


@pytest.mark.parametrize(
    ("op_type", "operands", "dtype"),
    [
        ("Gelu", ["c"], np.float32),
        ("QLinearConcat", ["s", "z", "c", "s", "z"], np.uint8),
        ("Trilu", ["c"], np.int64),
    ],
)
def test_elements_are_not_those_of_the_operator_that_stands_for_it(
    op_type: str, operands: list[str], dtype: Any
) -> None:
    """So lengths that are calculated with it are not known: no split is refused for them."""
    held = {"c": np.array([2, 3], dtype), "s": np.float32(2), "z": np.uint8(0)}
    tensors = [onnx.numpy_helper.from_array(np.asarray(each), name) for name, each in held.items()]
    axis: dict[str, Any] = {"axis": 0} if op_type == "QLinearConcat" else {}
    nodes = [
        helper.make_node(op_type, operands, ["l"], domain="com.microsoft", **axis),
        helper.make_node("Cast", ["l"], ["lengths"], to=INT64),
        helper.make_node("Split", ["x", "lengths"], ["a", "b"]),
    ]
    body = graph(nodes, [value("x", FLOAT, [3])], ["a", "b"], tensors)
    made = model(body, 17, (), **{"com.microsoft": 1})
    assert [each for each in ts.check(made) if each.severity == "error"] == []
    assert inferred(made) == (FLOAT, ("",))


@pytest.mark.parametrize(
    ("nodes", "opset"),
    [
        ("h = GroupNormalization <num_groups = 2> (x, s, s)", 21),
        ("h = MeanVarianceNormalization <axes = [0, 2]> (x)", 13),
    ],
)
def test_a_normalisation_that_onnx_does_not_infer_keeps_the_type_and_shape(
    nodes: str, opset: int
) -> None:
    made = onnx.parser.parse_model(
        f"""<ir_version: 9, opset_import: ["": {opset}]> g (float16[N,4,M] x, float16[4] s) => (y)
        <int64[2] l = {{1, 3}}> {{ {nodes} y, z = Split <axis = 1> (h, l) }}"""
    )
    assert inferred(made) == (TensorProto.FLOAT16, ("N", 1, "M"))


@pytest.mark.parametrize(
    ("left", "right", "flags", "expected"),
    [
        (("N", 3), ("N", 2), {"transA": 1}, (3, 2)),
        ((5, "N", 3), (5, "N", 2), {"transA": 1}, (5, 3, 2)),
        (("N", 3), (2, 3), {"transB": 1}, ("N", 2)),
        (("N",), ("N", 2), {"transA": 1}, (2,)),  # a list has but one axis
        ((4, 3), (3,), {"transB": 1}, (4,)),
        (None, (3, 2), {"transA": 1}, None),
    ],
)
def test_matrices_that_are_turned_before_a_product(
    left: Any, right: Any, flags: Any, expected: Any
) -> None:
    made = helper.make_node("FusedMatMul", ["a", "b"], ["y"], domain="com.microsoft", **flags)
    inputs = [value("a", FLOAT, left), value("b", FLOAT, right)]
    result = model(graph([made], inputs, [untyped("y")]), 17, (), **{"com.microsoft": 1})
    kind = ts.infer_shapes(result).graph.output[0].type.tensor_type
    shape = tuple([dim.dim_value or dim.dim_param for dim in kind.shape.dim])
    assert (shape if kind.HasField("shape") else None) == expected
