"""Parts with names: a dict of lengths makes a dict of parts, and a dict in any order is joined."""

from __future__ import annotations

import pickle
from collections import OrderedDict
from collections.abc import Iterator
from enum import StrEnum
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest

import tensorsplit as ts
from tensorsplit.arrays import naming
from tests.refusals import refused

RNG = np.random.default_rng(3)
X = RNG.standard_normal((4, 6)).astype(np.float32)
WANT = {"q": X[:, :3], "k": X[:, 3:3], "v": X[:, 3:]}
LENGTHS = {"q": 3, "k": 0, "v": 3}


def check(parts: Any) -> None:
    assert type(parts) is dict
    assert list(parts) == ["q", "k", "v"]
    for name, part in parts.items():
        assert part.tobytes() == WANT[name].tobytes()
        assert part.shape == WANT[name].shape


@pytest.mark.parametrize("make", [dict, OrderedDict, MappingProxyType])
def test_a_dict_of_lengths(make: Any) -> None:
    for lengths in (LENGTHS, {name: np.int64(length) for name, length in LENGTHS.items()}):
        for opset in (1, 11, 13, 18):
            check(ts.split(X, make(lengths), axis=1, opset=opset))
        check(ts.split_to_sequence(X, make(lengths), 1))
        check(ts.split(X, make(lengths), -1, copy=True))
    check(ts.variadic_split(X, 1, make({"q": 3, "k": 0, "v": -1})))
    check(ts.openvino.variadic_split(X, 1, make(LENGTHS)))


def test_lengths_that_change_are_another_call() -> None:
    lengths = {"a": 2, "b": 4}
    for length in (2, 3, 2):
        lengths.update(a=length, b=6 - length)
        assert [part.shape[1] for part in ts.split(X, lengths, 1).values()] == [length, 6 - length]


def test_buffers_by_name() -> None:
    def by_function(out: Any) -> Any:
        return ts.split(X, LENGTHS, axis=1, out=out)

    def by_plan(out: Any) -> Any:
        return ts.plan("Split", X.shape, LENGTHS, axis=1)(X, out=out)

    for split in (by_function, by_plan):
        out = {name: np.full_like(WANT[name], np.nan) for name in ("v", "q", "k")}
        parts = split(out)
        check(parts)
        assert all(parts[name] is buffer for name, buffer in out.items())
        check(split(list(parts.values())))
        check(split(ts.BufferPool(1 << 20)))
        with refused("TS315", "without 'k'", parameter="out"):
            split({"q": out["q"], "v": out["v"]})
        with refused("TS315", "unknown 'w'", parameter="out"):
            split({**out, "w": out["q"]})
        with refused("TS402", parameter="out"):
            split({**out, "q": out["k"]})


PLANS = {
    "dict": ts.plan("onnx.Split-18", X.shape, LENGTHS, axis=1),
    "lengths": ts.plan(
        "openvino.VariadicSplit", X.shape, axis=1, split_lengths={"q": 3, "k": 0, "v": -1}
    ),
    "names": ts.plan("Split", ("N", 6), [3, 0, 3], axis=1, names=("q", "k", "v")),
    "iterator": ts.plan("Split", X.shape, [3, 0, 3], axis=1, names=iter("qkv")),
}


@pytest.mark.parametrize("name", PLANS)
def test_a_plan_with_names(name: str) -> None:
    plan = PLANS[name]
    assert plan.names == ("q", "k", "v")
    assert plan.sizes == (3, 0, 3)
    assert plan.offsets == (0, 3, 3)
    assert plan.indices == tuple((slice(None), slice(a, b)) for a, b in ((0, 3), (3, 3), (3, 6)))
    assert plan.find(-1) == (2, 2)
    for _ in range(2):
        check(plan(X))
        check(plan(X, copy=True))
    again = pickle.loads(pickle.dumps(plan))
    assert again == plan
    assert hash(again) == hash(plan)
    check(again(X))
    assert plan != ts.plan("onnx.Split-18", X.shape, {"a": 3, "b": 0, "c": 3}, axis=1)


@pytest.mark.parametrize("name", PLANS)
def test_parts_are_joined_in_any_order(name: str) -> None:
    plan = PLANS[name]
    parts = plan(X)
    mixed = {each: parts[each] for each in ("v", "q", "k")}
    for copy in (None, True):
        assert plan.join(mixed, copy=copy).tobytes() == X.tobytes()
    assert np.shares_memory(plan.join(mixed), X)
    assert plan.join(list(parts.values())).tobytes() == X.tobytes()
    out = np.full_like(X, np.nan)
    assert plan.join(mixed, out=out) is out
    assert out.tobytes() == X.tobytes()
    with refused("TS315", "without 'q'; the parts are 'q', 'k', 'v'", parameter="parts"):
        plan.join({"v": parts["v"], "k": parts["k"]})
    with refused("TS315", "with the unknown 'w'", operator=plan.operator):
        plan.join({**parts, "w": parts["q"]})
    with refused("TS315", "without 'k' and with the unknown 'K'"):
        plan.join({"q": parts["q"], "K": parts["k"], "v": parts["v"]})
    with refused("TS312", "part 1 has shape (4, 3)"):
        plan.join({**parts, "k": parts["v"], "v": parts["k"]})


def test_names_without_end_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def ending(*names: object) -> Iterator[Any]:
        yield from names
        raise AssertionError("more was read than needed")

    monkeypatch.setattr(naming, "_MOST", 3)
    for words, names in (("0 is not a string", (0,)), ("there are more than 3", "abcd")):
        with refused("TS316", words, operator="onnx.Split-18", parameter="names"):
            ts.plan("onnx.Split-18", (4, 6), [2, 4], axis=1, names=ending(*names))
    assert ts.plan("onnx.Split-18", (4, 6), [1, 2, 3], axis=1, names=iter("abc")).names == (*"abc",)


def test_names_that_can_not_be_used() -> None:
    shape = (4, 6)
    wrong: list[tuple[str, Any]] = [
        ("2 names; give 3 names", ("a", "b")),
        ("'b' is there twice", ("a", "b", "b")),
        ("3 is not a string", ("a", "b", 3)),
        ("it is 'abc'", "abc"),
        ("it is 3", 3),
        ("it is array(3)", np.array(3)),
        ("it is <memory at", memoryview(bytes(6)).cast("B", (2, 3))),
    ]
    for words, names in wrong:
        with refused("TS316", words, operator="onnx.Split-18", parameter="names"):
            ts.plan("onnx.Split-18", shape, [1, 2, 3], axis=1, names=names)
    with refused("TS316", "the lengths have names, too"):
        ts.plan("Split", shape, {"a": 2, "b": 4}, axis=1, names=["a", "b"])  # type: ignore[call-overload]
    with refused("TS316", "1 is not a string", parameter="split"):
        ts.split(X, {1: 2, "b": 4}, axis=1)  # type: ignore[dict-item]
    with refused("TS302", parameter="split"):
        ts.split(X, {"a": 2, "b": 3}, axis=1)
    with refused("TS105", parameter="split"):
        ts.split(X, {"a": 2.0, "b": 4.0}, axis=1)  # type: ignore[dict-item]
    with refused("TS104"):
        ts.split(X, {"a": 2, "b": 4}, axis=1, num_outputs=2)


def test_names_in_other_libraries() -> None:
    torch = pytest.importorskip("torch")
    jax = pytest.importorskip("jax")
    plan = ts.plan("onnx.Split-18", X.shape, LENGTHS, axis=1)
    x = torch.from_numpy(X).requires_grad_()
    parts = plan(x)
    assert {name: part.shape for name, part in parts.items()} == {
        name: part.shape for name, part in WANT.items()
    }
    plan.join(dict(reversed(parts.items()))).sum().backward()
    assert torch.equal(x.grad, torch.ones(4, 6))
    for function in (plan, lambda x: ts.split(x, LENGTHS, axis=1)):
        traced = jax.jit(function)(jax.numpy.asarray(X))
        assert {name: np.asarray(part).tobytes() for name, part in traced.items()} == {
            name: part.tobytes() for name, part in WANT.items()
        }
    back = jax.jit(plan.join)(jax.tree.map(lambda y: y, plan(X)))
    assert np.asarray(back).tobytes() == X.tobytes()


class Names(StrEnum):
    Q, K, V = "q", "k", "v"


@pytest.mark.parametrize("names", [("q", "k", "v"), tuple(Names)], ids=["strings", "of a class"])
def test_names_in_compiled_code(names: tuple[str, ...]) -> None:
    torch = pytest.importorskip("torch")
    plan = ts.plan("onnx.Split-18", X.shape, LENGTHS, axis=1)
    q, k, v = names

    def compiled(x: Any) -> Any:
        both = plan(x), ts.split(x, {q: 3, k: 0, v: 3}, axis=1)
        return [{name: part + 1 for name, part in parts.items()} for parts in both]

    x = torch.from_numpy(X)
    for parts in torch.compile(compiled, fullgraph=True, backend="eager")(x):
        assert list(parts) == ["q", "k", "v"]
        for name, part in parts.items():
            assert np.array_equal(part.numpy(), WANT[name] + 1)


@pytest.mark.parametrize(("count", "more"), [(8, ""), (9, ", ...")])
def test_no_more_than_eight_names_are_told(count: int, more: str) -> None:
    lengths = {f"n{number}": 1 for number in range(count)}
    plan = ts.plan("onnx.Split-18", (count,), lengths)
    with pytest.raises(ts.SplitError) as caught:
        plan.join({**plan(np.arange(count)), "m": np.arange(1)})
    names = ", ".join(f"'n{number}'" for number in range(8))
    assert caught.value.fix == f"the parts are {names}{more}"
