"""What is quantised by a list of scales, beside nodes that ONNX Runtime then does not load."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tensorsplit as ts
from tests.model.lower.running import with_own
from tests.model.lower.test_requantized import Moved, gives, of_moved, without_optimiser

CHANNELS = ", float[3] r = {0.5, 2, 3}, TYPE[3] o = {3, 4, 5}, float[1] p = {0.5}, TYPE[1] i = {3}"
BY_CHANNELS = "d = DequantizeLinear<axis = 1>(x, r, o) "
TURNED = "y = Transpose<perm = [1, 0]>(d)"
LISTED = "d = DequantizeLinear(x, p, i) "
AGAIN_BY_CHANNELS = " q = QuantizeLinear<axis = 1>(m, r, o) y = Cast<to = 1>(q)"
AGAIN_BY_LIST = " q = QuantizeLinear(m, p, i) c = Cast<to = 1>(q) y = Flatten(c)"
NOT_LOADED = "must be a scalar"
LIST_OF_INT32 = "'tensor(int32)' of input"
POOL = "m = AveragePool<kernel_shape = [1, 2]>(d)"

BY_LISTS = {
    "turned": (BY_CHANNELS + TURNED, "int32", LIST_OF_INT32),
    "turned behind an Identity": (
        BY_CHANNELS + "v = Identity(d) y = Transpose<perm = [1, 0]>(v)",
        "int32",
        LIST_OF_INT32,
    ),
    "turned in a function": (BY_CHANNELS + "y = own.turns(d)", "int32", LIST_OF_INT32),
    "turned without a zero point": (BY_CHANNELS.replace(", o", "") + TURNED, "int32", ""),
    "turned without an order": (BY_CHANNELS + "y = Transpose(d)", "int32", ""),
    "turned of int8": (BY_CHANNELS + TURNED, "int8", ""),
    "turned and quantised again": (
        BY_CHANNELS + "m = Transpose<perm = [1, 0]>(d) q = QuantizeLinear(m, s, z2)"
        " c = Cast<to = 1>(q) y = Add(c, m)",
        "int32",
        "",
    ),
    **{
        f"{operator} of {kind}": (
            f"{BY_CHANNELS} m = {operator}(d) {AGAIN_BY_CHANNELS}",
            kind,
            NOT_LOADED,
        )
        for operator in ("LeakyRelu", "Sigmoid")
        for kind in ("int8", "uint8")
    },
    "given back by one number": (
        "d = DequantizeLinear(x, s, z) m = Sigmoid(d)" + AGAIN_BY_CHANNELS,
        "uint8",
        NOT_LOADED,
    ),
    "quantised by one number": (
        BY_CHANNELS + "v = Identity(d) m = Sigmoid(v) q = QuantizeLinear(m, s, z)"
        " y = Cast<to = 1>(q)",
        "uint8",
        NOT_LOADED,
    ),
    "quantised to another type": (
        BY_CHANNELS + "m = Sigmoid(d) q = QuantizeLinear(m, s, z2) y = Cast<to = 1>(q)",
        "int8",
        "",
    ),
    "read by others": (
        BY_CHANNELS + "m = Sigmoid(d)" + AGAIN_BY_CHANNELS.replace("y =", "c =") + " y = Add(c, m)",
        "uint8",
        "",
    ),
    "by a list of one": (LISTED + "m = Sigmoid(d)" + AGAIN_BY_LIST, "uint8", ""),
    "of a Tanh": (BY_CHANNELS + "m = Tanh(d)" + AGAIN_BY_CHANNELS, "uint8", ""),
}

FLAT = AGAIN_BY_CHANNELS.replace("y =", "c =") + " y = Flatten(c)"
OF_CONSTANT = f"e = Cast<to = 1>(x) h = ReduceMax(e) {BY_CHANNELS.replace('(x', '(f')} {POOL}" + (
    FLAT.replace("y = Flatten(c)", "j = Add(c, h) y = Flatten(j)")
)
BY_NUMBER = "q = QuantizeLinear(m, s, z) c = Cast<to = 1>(q) y = Flatten(c)"

POOLED = {
    "by channels": (BY_CHANNELS + POOL + FLAT, NOT_LOADED),
    "all of it, by channels": (BY_CHANNELS + "m = GlobalAveragePool(d)" + FLAT, NOT_LOADED),
    "by a list of one": (LISTED + POOL + AGAIN_BY_LIST, NOT_LOADED),
    "all of it, by a list of one": (LISTED + "m = GlobalAveragePool(d)" + AGAIN_BY_LIST, ""),
    "by one number": (f"d = DequantizeLinear(x, s, z) {POOL} {BY_NUMBER}", ""),
    "of a constant": (OF_CONSTANT, ""),
}


@with_own("onnxruntime")
@pytest.mark.parametrize("opset", [13, 21])
@pytest.mark.parametrize("name", [*BY_LISTS, *(f"pooled, {each}" for each in POOLED)])
def test_what_is_quantised_by_a_list_is_loaded(name: str, opset: int, engine: Any) -> None:
    """ONNX Runtime makes one node of three, or quantises int32 again."""
    pooled = POOLED.get(name.removeprefix("pooled, "))
    nodes, kind, says = (pooled[0], "uint8", pooled[1]) if pooled else BY_LISTS[name]
    constants = CHANNELS.replace("TYPE", kind) + ", uint8 z2 = {1}"
    constants += ", uint8[1, 3, 1, 2] f = {1, 2, 3, 4, 5, 6}"
    model = of_moved(Moved(nodes, "", opset, kind, constants, (1, 3, 1, 2) if pooled else (2, 3)))
    found = [each.message for each in ts.check(model, target="onnxruntime")]
    assert [says in each for each in found] == [True] * bool(says)
    lowered = ts.lower(model, target="onnxruntime")
    assert ts.check(lowered, target="onnxruntime") == []
    feeds = {
        "x": np.array([[2, 17, 5], [12, 5, 6]], kind).reshape((1, 3, 1, 2) if pooled else (2, 3)),
        "b": np.array(True),
    }
    expected = without_optimiser(model, feeds)
    for each, is_sound in ((lowered, True), (model, not says or engine == "tensorsplit")):
        assert gives(each, feeds, engine, expected) is is_sound
