"""Axes longer than 2^24, on which OpenVINO calculates with integers as float32 (D14)."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import onnx
import pytest

import tensorsplit as ts
from tensorsplit.engines.process import EngineProcess

pytestmark = pytest.mark.engine("openvino")

BYTES = np.frombuffer(np.random.default_rng(24).bytes(60_000_003), np.uint8)
SEQUENCE = "s = SplitToSequence(x, l) y = SequenceAt(s, i)"


class Long(NamedTuple):
    """A model of bytes, and its feeds: the first are legal, and give the lengths that are named."""

    opset: int
    text: str
    legal: list[tuple[dict[str, Any], list[int]]]
    illegal: list[dict[str, Any]]


def fed(dim: int, *lengths: int, **others: int) -> dict[str, Any]:
    held = {"l": np.array(lengths)} if lengths else {}
    return {"x": BYTES[:dim], **held, **{name: np.array(each) for name, each in others.items()}}


CASES = {
    "num_outputs": Long(
        18,
        "(uint8[N] x) => (uint8[A] a, uint8[B] b, uint8[C] c)"
        " { a, b, c = Split<num_outputs=3>(x) }",
        [
            (fed(60_000_003), [20_000_001, 20_000_001, 20_000_001]),
            (fed(33_554_437), [11_184_813, 11_184_813, 11_184_811]),
            (fed(16_777_219), [5_592_407, 5_592_407, 5_592_405]),
        ],
        [fed(1)],
    ),
    "equal parts": Long(
        13,
        "(uint8[N] x) => (uint8[A] a, uint8[B] b, uint8[C] c) { a, b, c = Split(x) }",
        [
            (fed(60_000_003), [20_000_001] * 3),
            (fed(16_777_221), [5_592_407] * 3),
        ],
        [fed(60_000_002), fed(33_554_437)],
    ),
    "lengths that are fed": Long(
        13,
        "(uint8[N] x, int64[3] l) => (uint8[A] a, uint8[B] b, uint8[C] c)"
        " { a, b, c = Split(x, l) }",
        [
            (fed(60_000_003, 16_777_217, 43_222_785, 1), [16_777_217, 43_222_785, 1]),
            (fed(33_554_439, 3, 16_777_219, 16_777_217), [3, 16_777_219, 16_777_217]),
        ],
        [
            fed(60_000_003, 16_777_217, 43_222_785, 2),
            fed(60_000_003, 16_777_216, 43_222_785, 1),
            fed(33_554_439, -1, 16_777_219, 16_777_221),
            fed(33_554_439, 33_554_440, 0, -1),
        ],
    ),
    "a tensor of a sequence": Long(
        17,
        f"(uint8[N] x, int64[K] l, int64 i) => (uint8[A] y) {{ {SEQUENCE} }}",
        [
            (fed(30_000_003, 20_000_003, 10_000_000, i=0), [20_000_003]),
            (fed(60_000_003, 30_000_002, 1, 30_000_000, i=-3), [30_000_002]),
        ],
        [
            fed(30_000_003, 20_000_003, 10_000_001, i=0),
            fed(30_000_003, 20_000_003, 10_000_000, i=2),
            fed(60_000_003, 60_000_003, -1, 1, i=0),
        ],
    ),
    "a chunk": Long(
        17,
        f"(uint8[N] x, int64 l, int64 i) => (uint8[A] y) {{ {SEQUENCE} }}",
        [
            (fed(30_000_003, l=20_000_003, i=0), [20_000_003]),
            (fed(60_000_003, l=20_000_003, i=-3), [20_000_003]),
        ],
        [fed(60_000_003, l=20_000_003, i=3), fed(60_000_003, l=0, i=0)],
    ),
}
WAYS = [
    *((name, "openvino", target) for name in CASES for target in ("openvino", "portable")),
    *((name, "openvino-extended", "") for name in ("num_outputs", "equal parts", "a chunk")),
]


@pytest.fixture(scope="module")
def process() -> Iterator[EngineProcess]:
    made = EngineProcess("openvino", "tests.engines.guarded:run_all")
    yield made
    made.close()


@pytest.mark.parametrize(("name", "engine", "target"), WAYS)
def test_a_long_axis_is_split_where_its_parts_are(
    name: str, engine: str, target: Any, process: EngineProcess
) -> None:
    """`lower` for the target, or OpenVINO's own import with the extensions."""
    case = CASES[name]
    head = f'<ir_version: 8, opset_import: ["": {case.opset}]> g '
    model = onnx.parser.parse_model(head + case.text)
    made = ts.lower(model, target) if target else model
    feeds = [*(given for given, _ in case.legal), *case.illegal]
    found = process.call([engine, made.SerializeToString(), feeds, 2])
    for (given, lengths), parts in zip(case.legal, found, strict=False):
        assert not isinstance(parts, str), parts
        ends = [0, *np.cumsum(lengths)]
        for part, (start, end) in zip(parts, pairwise(ends), strict=True):
            assert np.array_equal(part, given["x"][start:end])
    assert all(isinstance(each, str) for each in found[len(case.legal) :]), "illegal, not refused"


def test_a_slice_of_a_long_axis_is_warned_of() -> None:
    for dim, is_warned in ((1 << 24, False), ((1 << 24) + 1, True), ("N", False)):
        text = (
            f'<ir_version: 8, opset_import: ["": 17]> g (uint8[{dim}] x) => (uint8[A] y)'
            " <int64[1] s = {1}, int64[1] e = {9}> { y = Slice(x, s, e) }"
        )
        found = ts.check(onnx.parser.parse_model(text), "openvino")
        assert [each.severity for each in found] == ["warning"] * is_warned
