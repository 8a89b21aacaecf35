"""Splits whose dimension we know and an engine does not at import; each lowered and run there."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import onnx
import pytest

import tensorsplit as ts
from tensorsplit.engines.process import EngineProcess

X = np.random.default_rng(4).uniform(1, 2, 5).astype(np.float32)
FIVE = np.arange(5, 10, dtype=np.float32)
PARTS = "n = Shape(x) r = Sub(n, three) l = Concat<axis=0>(three, r) a, b = Split(x, l)"
THREE = "<int64[1] three = {3}, int64 two = {2}, int64 one = {1}>"


class Seen(NamedTuple):
    """A model, what it gives for some data, and data that it must refuse."""

    opset: int
    text: str
    feeds: dict[str, Any]
    expected: list[Any]
    illegal: dict[str, Any] | None = None


CASES = {
    "a split after one with lengths that are calculated": Seen(
        18,
        f"(float[N] x) => (float[P] c, float[Q] d, float[R] b) {THREE}"
        f" {{ {PARTS} c, d = Split<num_outputs=2>(a) }}",
        {"x": X},
        [X[:2], X[2:3], X[3:]],
        {"x": X[:2]},
    ),
    "a split of what a loop carries": Seen(
        18,
        "(float[4] x) => (float[P] y) <int64 n = {3}> { y = Loop(n, , x) <body = b"
        " (int64 i, bool on, float[S] s) => (bool on_, float[T] t) {"
        " p, q = Split<num_outputs=2>(s) t = Concat<axis=0>(q, p) on_ = Identity(on) }> }",
        {"x": X[:4]},
        [np.concatenate([X[2:4], X[:2]])],
    ),
    "lengths calculated from the shape of a part": Seen(
        13,
        "(float[N] x, int64[2] l, float[5] y) => (float[P] c, float[Q] d) { a, b = Split(x, l)"
        " k = Shape(a) n = Shape(y) r = Sub(n, k) m = Concat<axis=0>(k, r) c, d = Split(y, m) }",
        {"x": X, "l": np.array([2, 3]), "y": FIVE},
        [FIVE[:2], FIVE[2:]],
        {"x": X, "l": np.array([6, -1]), "y": FIVE},
    ),
    "the length of a sequence of a part": Seen(
        18,
        f"(float[N] x) => (int64 n_, float[P] c, float[R] b) {THREE}"
        f" {{ {PARTS} s = SplitToSequence(a, two) n_ = SequenceLength(s) c = SequenceAt(s, one) }}",
        {"x": X},
        [np.array(2), X[2:3], X[3:]],
        {"x": X[:2]},
    ),
    **{
        f"a sequence that a loop carries at opset {opset}": Seen(
            opset,
            "(float[5] x) => (float[P] y) <int64 n = {2}, int64 k = {2}>"
            " { s = SplitToSequence(x, k) t = Loop(n, , s) <body = b"
            " (int64 i, bool on, seq(float[A]) u) => (bool on_, seq(float[B]) v) {"
            " z = Constant<value = int64 {0}>() e = SequenceAt(u, z) v = SequenceInsert(u, e)"
            " on_ = Identity(on) }> y = ConcatFromSequence<axis=0>(t) }",
            {"x": X},
            [np.concatenate([X, X[:2], X[:2]])],
        )
        for opset in (11, 12, 13)
    },
}


@pytest.fixture(scope="module")
def processes() -> Iterator[dict[str, EngineProcess]]:
    """A process for each engine."""
    names = ("onnxruntime", "openvino")
    made = {name: EngineProcess(name, "tests.engines.guarded:run_all") for name in names}
    yield made
    for process in made.values():
        process.close()


@pytest.mark.engine
@pytest.mark.parametrize("engine", ["onnxruntime", "openvino"])
@pytest.mark.parametrize("name", CASES)
def test_the_engine_runs_what_it_does_not_see(
    name: str, engine: Any, processes: dict[str, EngineProcess]
) -> None:
    pytest.importorskip(engine)
    case = CASES[name]
    head = f'<ir_version: 8, opset_import: ["": {case.opset}]> g '
    model = onnx.parser.parse_model(head + case.text)
    made = ts.lower(model, target=engine)
    assert not [each for each in ts.check(made, target=engine) if each.severity == "error"]
    feeds = [case.feeds] if case.illegal is None else [case.feeds, case.illegal]
    request = [engine, made.SerializeToString(), feeds, 2]
    got, *refusals = processes[engine].call(request)
    assert not isinstance(got, str), got
    for part, want in zip(got, case.expected, strict=True):
        assert part.tolist() == want.tolist()
    assert all(isinstance(each, str) for each in refusals), "illegal, and not refused"
