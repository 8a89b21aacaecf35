"""Joins where torch traces: one operation of torch, one node, and the same refusals."""

from __future__ import annotations

import importlib
import inspect
import io
import threading
import warnings
import weakref
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tensorsplit as ts
from tensorsplit import native
from tests.refusals import refused, refused_while_tracing

torch = pytest.importorskip("torch")
module: Any = importlib.import_module("tensorsplit.arrays.torch")

PLAN = ts.plan("onnx.Split-18", (4, 6), [2, 4], axis=1)
NAMED = ts.plan("onnx.Split-18", (4, 6), {"a": 2, "b": 4}, axis=1)
OPEN = ts.plan("onnx.Split-18", ("N", 6), num_outputs=2)
ROWS = ts.plan("onnx.SplitToSequence-24", (2, 6), keepdims=0)
POOL = ts.BufferPool(1 << 20)
AXIS, TWO = np.int64(1), np.int64(2)

X = torch.arange(24.0).reshape(4, 6)
A, B = X[:, :2].clone(), X[:, 2:].clone()

JOINS: dict[str, tuple[Callable[[Any, Any], Any], Any, Any, Any]] = {
    "join": (lambda a, b: ts.join([a, b], axis=1), A, B, X),
    "by the axis of NumPy": (lambda a, b: ts.join((a, b), axis=AXIS), A, B, X),
    "a dict": (lambda a, b: ts.join({"a": a, "b": b}, axis=-1, like=X), A, B, X),
    "a plan": (lambda a, b: PLAN.join([a, b]), A, B, X),
    "names": (lambda a, b: NAMED.join({"b": b, "a": a}), A, B, X),
    "a plan with a name": (lambda a, b: OPEN.join([a, b]), X[:2], X[2:], X),
    "a plan with another size": (lambda a, b: OPEN.join([a, b]), X[:2], X[2:3], X[:3]),
    "stacked": (lambda a, b: ROWS.join([a, b]), X[0], X[1], X[:2]),
}


def compiled(function: Any, **options: Any) -> Any:
    torch.compiler.reset()
    return torch.compile(function, fullgraph=True, backend="eager", **options)


@pytest.mark.parametrize("dynamic", [None, True])
@pytest.mark.parametrize("name", JOINS)
def test_compiled_in_one_graph(name: str, dynamic: bool | None) -> None:
    function, a, b, whole = JOINS[name]
    assert torch.equal(compiled(function, dynamic=dynamic)(a, b), whole)


def test_written_to_a_buffer() -> None:
    def into(a: Any, b: Any, out: Any) -> Any:
        return PLAN.join([a, b], out=out)

    out = torch.full((4, 6), 7.0)
    assert compiled(into)(A, B, out) is out
    assert torch.equal(out, X)


def test_one_graph_for_many_sizes() -> None:
    graphs: list[Any] = []

    def keep(graph: Any, _: Any) -> Any:
        graphs.append(graph)
        return graph

    torch.compiler.reset()
    function = torch.compile(
        lambda a, b: ts.join([a, b]), fullgraph=True, dynamic=True, backend=keep
    )
    for size in (4, 5, 8):
        assert len(function(torch.ones(size, 3), torch.ones(2, 3))) == size + 2
    (graph,) = graphs
    assert [str(node.target) for node in graph.graph.nodes if "cat" in node.name] != []


WRONG: dict[str, tuple[str, Callable[[Any, Any], Any], Any, Any]] = {
    "a part of another shape": ("TS312", lambda a, b: ts.join([a, b], axis=1), X, X[:3]),
    "lengths of another plan": ("TS312", lambda a, b: PLAN.join([a, b]), B, A),
    "lengths that the rule does not give": ("TS312", lambda a, b: OPEN.join([a, b]), X[:1], X[1:]),
    "too few": ("TS311", lambda a, _: PLAN.join([a]), A, B),
    "none": ("TS311", lambda a, b: ts.join([]), A, B),
    "another element type": ("TS313", lambda a, b: ts.join([a, b]), X, X.int()),
    "an axis out of range": ("TS203", lambda a, b: ts.join([a, b], axis=2), X, X),
    "without a copy": ("TS314", lambda a, b: PLAN.join([a, b], copy=False), A, B),
    "a pool": ("TS403", lambda a, b: PLAN.join([a, b], out=POOL), A, B),
    "a buffer that is a part": ("TS402", lambda a, b: PLAN.join([a, b], out=a), A, B),
}


@pytest.mark.parametrize("dynamic", [None, True])
@pytest.mark.parametrize("name", WRONG)
def test_what_is_refused_is_caught_in_compiled_code(name: str, dynamic: bool | None) -> None:
    code, function, a, b = WRONG[name]

    def careful(a: Any, b: Any) -> Any:
        try:
            return function(a, b)
        except ts.SplitError as error:
            return a, error.code

    kept, found = compiled(careful, dynamic=dynamic)(a, b)
    assert found == code
    assert torch.equal(kept, a)


def test_buffers_that_meet_in_one_element() -> None:
    """Torch copies where gradients are needed, and not the kernel, which looks at memory itself."""
    held = torch.zeros(12)
    data = torch.arange(1.0, 7.0).requires_grad_()
    for first, second in ((held[:2], held[1:5]), (held[3:5], held[:4])):
        with refused("TS405", parameter="out"):
            ts.split(data, [2, 4], out=[first, second])
    assert not held.any()
    parts = [held[5:7], data[2:]]
    for start in (1, 6):
        with refused("TS405", parameter="out"):
            ts.join(parts, out=held[start : start + 6])
    assert not held.any()
    ts.join([data[:2], data[2:]], out=held[:6])
    assert torch.equal(held[:6], data)


def test_a_refusal_of_a_split() -> None:
    def careful(x: Any) -> Any:
        try:
            return ts.split(x, [2, 5], axis=1)
        except ts.SplitError as error:
            return x, error.code, error.parameter, error.operator

    assert compiled(careful)(X)[1:] == ("TS302", "split", "onnx.Split-18")
    with refused_while_tracing(r"\[TS302\] onnx.Split-18, parameter"):
        compiled(lambda x: ts.split(x, [2, 5], axis=1))(X)
    torch.compiler.reset()
    with pytest.raises(ts.SplitError) as caught:
        torch.compile(lambda x: ts.split(x, [2, 5], axis=1), backend="eager")(X)
    assert caught.value.code == "TS302"


@pytest.mark.parametrize("data", [[1.0, 2.0], "xy", None])
def test_data_that_is_no_tensor_is_refused_in_compiled_code_as_outside(data: Any) -> None:
    def careful(x: Any) -> Any:
        try:
            return ts.split(data, [1, 1])
        except ts.SplitError as error:
            return x, error.code, error.problem

    _, *told = careful(X)
    assert told[0] == "TS204"
    assert [*compiled(careful)(X)[1:]] == told


@pytest.mark.parametrize(
    "call",
    [
        lambda x, n: ts.split(x, num_outputs=n, axis=1),
        lambda x, n: ts.split(x, axis=n, num_outputs=2),
    ],
)
def test_counts_and_axes_that_the_trace_does_not_know_are_refused_for_that(call: Any) -> None:
    def careful(x: Any, count: Any) -> Any:
        try:
            return call(x, count.item())
        except ts.SplitError as error:
            return x, error.code, error.problem

    with torch._dynamo.config.patch(capture_scalar_outputs=True):
        _, code, problem = compiled(careful)(X, torch.tensor(1))
    assert (code, problem) == ("TS309", "an operand is known only when the trace runs")


def test_integers_of_numpy() -> None:
    lengths = compiled(lambda x: ts.split(x, [TWO, 4], axis=AXIS))(X)
    assert [len(part.T) for part in lengths] == [2, 4]
    chunks = compiled(lambda x: ts.split_to_sequence(x, TWO, axis=AXIS))(X)
    assert [len(part.T) for part in chunks] == [2, 2, 2]
    inside = torch.compile(lambda x: ts.split(x, [2, 4], axis=np.int64(1)), backend="eager")
    assert [len(part.T) for part in inside(X)] == [2, 4]


@torch.fx.wrap  # type: ignore[untyped-decorator, unused-ignore]
def two_parts(x: Any) -> Any:
    return ts.split(x, [1, 1])


def test_what_a_refusal_says_of_a_trace_of_fx_works() -> None:
    with refused("TS204", "`torch.fx.wrap`"):
        torch.fx.symbolic_trace(lambda x: ts.split(x, [1, 1])[1])
    traced = torch.fx.symbolic_trace(lambda x: two_parts(x)[1])
    assert traced(torch.arange(3, 5)).tolist() == [4]


class Join(torch.nn.Module):  # type: ignore[misc, name-defined]
    def forward(self, a: Any, b: Any) -> Any:
        return ts.join([a, b], axis=1)


class Plan(torch.nn.Module):  # type: ignore[misc, name-defined]
    def forward(self, a: Any, b: Any) -> Any:
        return PLAN.join([a, b])


@pytest.mark.parametrize("module", [Join, Plan])
@pytest.mark.parametrize("strict", [True, False])
def test_exported(module: Any, strict: bool) -> None:
    made = torch.export.export(module(), (A, B), strict=strict)
    assert torch.equal(made.module()(A, B), X)
    assert [str(node.target) for node in made.graph.nodes if node.op == "call_function"] == [
        "aten.cat.default"
    ]


@pytest.mark.parametrize("module", [Join, Plan])
@pytest.mark.parametrize("dynamo", [True, False])
def test_exactly_one_concat(module: Any, dynamo: bool, tmp_path: Path) -> None:
    onnx = pytest.importorskip("onnx")
    if dynamo:
        pytest.importorskip("onnxscript")
    file = str(tmp_path / "model.onnx")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(module(), (A, B), file, dynamo=dynamo, verbose=False)
    model = onnx.load(file)
    assert [node.op_type for node in model.graph.node] == ["Concat"]
    feeds = {each.name: part.numpy() for each, part in zip(model.graph.input, (A, B), strict=True)}
    (whole,) = ts.run(model, feeds).values()
    assert np.array_equal(whole, X.numpy())


class SplitBytes(torch.nn.Module):  # type: ignore[misc, name-defined]
    def forward(self, x: Any) -> Any:
        return ts.variadic_split(x.to(torch.float8_e4m3fn), 0, [1, 3])[0].float()


class JoinBytes(torch.nn.Module):  # type: ignore[misc, name-defined]
    def forward(self, x: Any) -> Any:
        return ts.join([x.to(torch.float8_e4m3fn)] * 2).float()


@pytest.mark.parametrize(
    ("module", "words"),
    [
        (SplitBytes, r"\[TS310\].*Split-18 does not"),
        (JoinBytes, r"\[TS310\] join: Concat.*does not"),
    ],
)
def test_no_node_that_onnx_does_not_have(module: Any, words: str) -> None:
    pytest.importorskip("onnxscript")
    with pytest.raises(Exception, match=words):
        torch.onnx.export(module().eval(), (X,), io.BytesIO(), dynamo=True, verbose=False)


def test_what_traces_or_watches_sees_a_concatenation() -> None:
    """A view of the memory would have the shape of the example for ever."""

    def joined(x: Any) -> Any:
        return ts.join([x[:2], x[2:]])

    assert joined(X).data_ptr() == X.data_ptr()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what is traced may differ for other examples
        traced = torch.jit.trace(joined, X)
    longer = torch.cat([X, X])
    assert traced(longer).equal(longer)

    called = []
    Mode: Any = torch.overrides.TorchFunctionMode  # noqa: N806 - a class

    class Watching(Mode):  # type: ignore[misc]
        def __torch_function__(
            self, function: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            called.append(function)
            return function(*args, **(kwargs or {}))

    with Watching():
        whole = joined(X)
    assert torch.cat in called
    assert whole.equal(X)


WIDE = torch.arange(40 * 192.0).reshape(40, 192)
HALVES = [part.clone() for part in WIDE.chunk(2, 1)]


LARGE = torch.arange(200_000.0)
BYTES = torch.from_numpy(np.random.default_rng(7).integers(0, 256, (5000, 160), np.uint8))

IN_PYTHON: Any = inspect.unwrap(ts.join)
"""What is asked where the kernel does not join tensors at once, as those of older versions."""


@pytest.fixture(params=[ts.join, IN_PYTHON], ids=["at once", "in Python"])
def join(request: pytest.FixtureRequest) -> Any:
    """The function that joins, in each of its ways."""
    return request.param


@pytest.fixture
def by_kernel(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Whether the kernel joined, for each time that it was asked."""
    asked: list[bool] = []
    join = module.join_by_kernel

    def ask(*arguments: Any) -> bool:
        asked.append(join(*arguments))
        return asked[-1]

    monkeypatch.setattr(module, "join_by_kernel", ask)
    return asked


def test_buffers_are_written_by_the_kernel(by_kernel: list[bool]) -> None:
    out = torch.full_like(WIDE, torch.nan)
    assert IN_PYTHON(HALVES, axis=1, out=out) is out
    assert torch.equal(out, WIDE)
    assert torch.equal(ts.join(HALVES, axis=1, out=POOL), WIDE)
    assert by_kernel == [native.in_use != "numpy"] * 2


def test_memory_that_a_tensor_gives_up_meanwhile_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """As another thread may have it do."""
    array = WIDE.numpy() * 0
    memory, out = weakref.ref(array), torch.from_numpy(array)
    del array
    join = module.join_by_kernel

    def give_up(*arguments: Any) -> bool:
        out.set_()
        assert memory() is not None
        join(*arguments)
        written.append(np.array(memory()))
        return True

    written: list[Any] = []
    monkeypatch.setattr(module, "join_by_kernel", give_up)
    IN_PYTHON(HALVES, axis=1, out=out)
    if native.in_use != "numpy":
        assert (written[0] == WIDE.numpy()).all()
    assert memory() is None


TYPES = ["uint8", "bool", "float16", "bfloat16", "float32", "int64", "complex64", "float8_e4m3fn"]


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("keepdims", [0, 1])
def test_every_type_is_joined(join: Any, dtype: str, keepdims: int) -> None:
    kind = getattr(torch, dtype)
    whole = (BYTES[:40] % 2).to(kind) if dtype == "bool" else BYTES[:40].view(kind)
    split = whole.split(1, 1) if keepdims else whole.unbind(1)
    parts = [part.clone() for part in split]
    out = torch.zeros_like(whole)
    for given in (parts, tuple(parts)):
        for made in (
            join(given, axis=-1 - (whole.ndim - 2), keepdims=keepdims),
            join(given, axis=1, keepdims=bool(keepdims), copy=True),
            join(given, axis=1, keepdims=keepdims, out=out),
        ):
            assert made.dtype is whole.dtype
            assert torch.equal(made.view(torch.uint8), whole.view(torch.uint8))


def test_views_are_joined_where_they_lie(join: Any) -> None:
    for x in (X, X.T, X[:, ::2], X[::2].T, X.to(torch.complex64)[1:], X.to(torch.bfloat16)):
        for parts, keepdims in ((x.split(1, 1), 1), (x.unbind(1), 0)):
            whole = join(parts, axis=1, keepdims=keepdims)
            assert torch.equal(whole, x)
            assert (whole.data_ptr(), whole.stride()) == (x.data_ptr(), x.stride())
            assert whole.dtype is x.dtype
            copied = join(parts, axis=1, keepdims=keepdims, copy=True)
            assert torch.equal(copied, x)
            assert copied.data_ptr() != x.data_ptr()


def test_parts_without_elements_do_not_keep_the_others_from_being_views(join: Any) -> None:
    for parts in (
        [X[:, :0], X[:, :2], X[:, 2:]],
        [X[:, 3:3], X[:, :2], X[:, 2:]],
        [X[:, :2], X[:, 2:], X[:, 1:1]],
    ):
        whole = join(parts, axis=1)
        assert torch.equal(whole, X)
        assert whole.data_ptr() == X.data_ptr()
    assert torch.equal(join([torch.empty(4, 0), X], axis=1), X)


@pytest.mark.parametrize("copy", [None, True])
def test_wholes_without_elements(join: Any, copy: bool | None) -> None:
    for parts in ([X[:, :0], X[:, 3:3]], [X[:0, :2], X[:0, 2:]], [torch.empty(4, 0)]):
        whole = join(parts, axis=1, copy=copy)
        assert torch.equal(whole, torch.cat(parts, 1))


def test_views_that_gradients_flow_through_are_copied(join: Any) -> None:
    x = torch.arange(12.0).requires_grad_()
    whole = join(x.split(5))
    assert whole.data_ptr() != x.data_ptr()
    whole.sum().backward()
    with torch.no_grad():
        assert join(x.split(5)).data_ptr() == x.data_ptr()


def test_the_same_again_is_copied(join: Any) -> None:
    turned = [X.view(-1)[:4].view(2, 2), X.view(-1)[4:8].view(2, 2).T]
    for parts in ([X[:1].expand(2, 6)] * 2, [X, X], [X[2:], X[:2]], [X[:2], X[3:]], turned):
        whole = join(parts)
        assert torch.equal(whole, torch.cat(parts))
        assert whole.data_ptr() not in [part.data_ptr() for part in parts]


def test_neighbours_in_memory_of_two_tensors_are_no_views(join: Any) -> None:
    memory = np.arange(8.0)
    parts = [torch.from_numpy(memory[:3].copy()), torch.from_numpy(memory[3:].copy())]
    beside = [
        torch.frombuffer(memory, dtype=torch.float64, count=n, offset=8 * o)
        for n, o in ((3, 0), (5, 3))
    ]
    for given in (parts, beside):
        whole = join(given)
        assert whole.tolist() == memory.tolist()
        assert whole.data_ptr() not in [part.data_ptr() for part in given]


def test_rows_in_reverse_order_are_copied(join: Any) -> None:
    """Torch has no views with strides below zero."""
    whole = join(X.unbind()[::-1], keepdims=0)
    assert torch.equal(whole, X.flip(0))
    assert whole.stride() == X.stride()


def test_views_that_end_after_the_storage_of_the_first_are_copied(join: Any) -> None:
    memory = np.arange(8.0)
    parts = [torch.from_numpy(memory[:5])[:3], torch.from_numpy(memory)[3:]]
    whole = join(parts)
    assert whole.tolist() == memory.tolist()
    assert whole.data_ptr() != parts[0].data_ptr()


@pytest.mark.parametrize("bytes", [64, 1 << 20])
def test_no_memory_is_made_up_for_a_tensor_whose_storage_was_emptied(join: Any, bytes: int) -> None:
    """As fully sharded modules do it; torch says so, or Python would have to."""
    whole = torch.zeros(bytes, dtype=torch.uint8)
    parts = [torch.ones_like(part) for part in whole.chunk(2)]
    ts.split(whole, num_outputs=2, copy=True)
    whole.untyped_storage().resize_(0)
    with pytest.raises(RuntimeError, match="storage"):
        join(parts, out=whole)
    for options in ({"out": parts}, {"copy": True}):
        with pytest.raises(RuntimeError, match="storage"):
            ts.split(whole, num_outputs=2, **options)
    assert all((part == 1).all() for part in parts)


@pytest.mark.parametrize("name", ["copy", "out", "join", "whole"])
def test_memory_that_another_thread_takes_away_is_kept_while_it_is_copied(name: str) -> None:
    size = 1 << 24
    for _ in range(4):
        x = torch.ones(size, dtype=torch.uint8)
        parts = [torch.full_like(part, 2) for part in x.chunk(2)]
        whole = torch.zeros_like(x)
        taken = whole if name == "whole" else x
        others = torch.zeros_like(x)
        begins = threading.Event()

        def take(
            taken: Any = taken, others: Any = others, begins: threading.Event = begins
        ) -> None:
            begins.wait()
            taken.set_(others)

        thread = threading.Thread(target=take)
        thread.start()
        begins.set()
        if name == "copy":
            made = ts.split(x, num_outputs=2, copy=True)
        elif name == "out":
            made = ts.split(x, num_outputs=2, out=parts)
        elif name == "join":
            made = [ts.join([x, x.clone()], out=torch.empty(2 * size, dtype=torch.uint8))[:size]]
        else:
            made = [ts.join(parts, out=whole)]
        thread.join()
        assert all(set(part.unique().tolist()) <= {0, 1, 2} for part in made)


def test_gradients_flow_through_a_join(join: Any) -> None:
    parts = [part.clone().requires_grad_() for part in HALVES]
    for given in (
        parts,
        [torch.nn.Parameter(part) for part in HALVES],
        WIDE.clone().requires_grad_().chunk(2, 1),
    ):
        whole = join(given, axis=1)
        assert whole.grad_fn is not None
        whole.sum().backward()
    assert all((part.grad == 1).all() for part in parts)


def not_parts() -> dict[str, tuple[str, list[Any], dict[str, Any]]]:
    a, b = (part.clone() for part in X.chunk(2, 1))
    leaf = torch.zeros_like(X).requires_grad_()
    with torch.inference_mode():
        inferred = torch.zeros_like(X)
    return {
        "another shape": ("TS312", [a, b[:3]], {}),
        "another rank": ("TS312", [a, b[None]], {}),
        "another type": ("TS313", [a, b.int()], {}),
        "a type of the same size": ("TS313", [a.half(), b.bfloat16()], {}),
        "another device": ("TS313", [a, b.to("meta")], {}),
        "an array": ("TS313", [a, b.numpy()], {}),
        "a list": ("TS204", [a, b.tolist()], {}),
        "sparse": ("TS204", [a, b.to_sparse()], {}),
        "a buffer of another shape": ("TS402", [a, b], {"out": torch.zeros(4, 5)}),
        "a buffer of another type": ("TS403", [a, b], {"out": torch.zeros(4, 6).int()}),
        "a buffer of NumPy": ("TS403", [a, b], {"out": np.zeros((4, 6), np.float32)}),
        "a part as the buffer": ("TS402", [a, b], {"out": a}),
        "a buffer on a part": ("TS405", [leaf.detach()[:, :3], b], {"out": leaf.detach()}),
        "a leaf": ("TS404", [a, b], {"out": leaf}),
        "of inference": ("TS404", [a, b], {"out": inferred}),
    }


@pytest.mark.parametrize("name", not_parts())
def test_what_is_refused(join: Any, name: str) -> None:
    code, parts, options = not_parts()[name]
    out = options.get("out")
    before = repr(out)
    with refused(code):
        join(parts, axis=1, **options)
    assert repr(out) == before


@pytest.mark.skipif(
    native.kernel is None or not hasattr(torch.Tensor, "__dlpack_c_exchange_api__"),
    reason="Python joins tensors here",
)
def test_python_is_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("joined", "joined_view", "joined_into"):
        monkeypatch.setattr(module, name, None)
    for join in (PLAN.join, partial(ts.join, axis=1)):
        for parts in ([A, B], [torch.nn.Parameter(A), B], X.split([2, 4], 1)):
            assert torch.equal(join(list(parts)), X)
    assert torch.equal(ts.join(LARGE.clone().chunk(2)[::-1]), torch.cat(LARGE.chunk(2)[::-1]))
    for join in (PLAN.join, partial(ts.join, axis=1)):
        with torch.no_grad():
            assert torch.equal(join([torch.nn.Parameter(A), B], out=torch.zeros_like(X)), X)
        with torch.inference_mode():
            assert torch.equal(join([A, B], out=torch.zeros_like(X)), X)


def test_a_buffer_that_was_saved_for_gradients_has_changed(join: Any) -> None:
    factor, out = torch.ones_like(WIDE, requires_grad=True), torch.ones_like(WIDE)
    product = factor * out
    join(HALVES, axis=1, out=out)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        product.sum().backward()


def test_what_the_kernel_does_not_know_is_written_by_torch(
    join: Any, by_kernel: list[bool]
) -> None:
    parts = [part.clone().requires_grad_() for part in HALVES]
    out = torch.zeros_like(WIDE)
    join(parts, axis=1, out=out)
    out.sum().backward()
    assert all((part.grad == 1).all() for part in parts)
    numbers = torch.complex(WIDE, WIDE + 1).conj()
    out = torch.zeros_like(numbers)
    join(numbers.chunk(2, 1), axis=1, out=out)
    assert torch.equal(out, numbers)
    negative = numbers.imag
    assert negative.is_neg()
    for options in ({}, {"copy": True}, {"out": torch.zeros_like(WIDE)}):
        assert torch.equal(join(negative.chunk(2, 1), axis=1, **options), -(WIDE + 1))
    first, last = negative[:1, 0], negative[:1, -1]  # of one element, and so contiguous
    assert torch.equal(join([first, last], out=torch.zeros(2)), torch.cat([first, last]))
    assert torch.equal(ts.split(first, [1], out=[torch.zeros(1)])[0], first)
    join(HALVES, axis=1, out=negative)
    assert torch.equal(negative, WIDE)
    assert torch.equal(numbers.resolve_conj(), torch.complex(numbers.real, WIDE))
    assert by_kernel == []
    with torch.inference_mode():
        out = torch.zeros_like(WIDE)
        assert torch.equal(join(HALVES, axis=1, out=out), WIDE)


@pytest.mark.parametrize(
    "dtype", ["uint8", "float16", "bfloat16", "float32", "int64", "float8_e4m3fn"]
)
@pytest.mark.parametrize("keepdims", [0, 1])
def test_large_tensors_are_joined_by_the_kernel(
    by_kernel: list[bool], dtype: str, keepdims: int
) -> None:
    whole = BYTES.view(getattr(torch, dtype))
    split = whole.split(1, 1) if keepdims else whole.unbind(1)
    made = IN_PYTHON([part.clone() for part in split], axis=1, keepdims=keepdims)
    assert made.dtype is whole.dtype
    assert torch.equal(made.view(torch.uint8), BYTES)
    assert by_kernel == [native.in_use != "numpy"]


@pytest.mark.parametrize("dtype", ["uint8", "bool", "bfloat16", "complex64", "float8_e4m3fn"])
@pytest.mark.parametrize("keepdims", [0, 1])
def test_a_large_whole_has_memory_of_its_own(join: Any, dtype: str, keepdims: int) -> None:
    kind = getattr(torch, dtype)
    whole = (BYTES % 2).to(kind) if dtype == "bool" else BYTES.view(kind)
    split = whole.split(1, 1) if keepdims else whole.unbind(1)
    parts = [part.clone() for part in split]
    with torch.no_grad():
        made = join(
            [torch.nn.Parameter(parts[0], requires_grad=False), *parts[1:]],
            axis=1,
            keepdims=keepdims,
        )
    again = join(tuple(parts), axis=1, keepdims=keepdims, copy=True)
    for each in (made, again):
        assert (each.dtype, each.shape, each.stride()) == (whole.dtype, whole.shape, whole.stride())
        assert not each.requires_grad
    del each, parts, split
    assert torch.equal(made.view(torch.uint8), whole.view(torch.uint8))
    made.zero_()
    view = again.clone(), again[1:]
    del again
    assert torch.equal(view[0].view(torch.uint8), whole.view(torch.uint8))
    assert torch.equal(view[1].view(torch.uint8), whole[1:].view(torch.uint8))


def test_a_large_whole_is_as_torch_makes_it(join: Any) -> None:
    rng = torch.Generator().manual_seed(11)
    picture = torch.rand(2, 64, 40, 60, generator=rng)
    for parts, axis in (
        (picture.to(memory_format=torch.channels_last).chunk(4, 1), 1),
        (torch.complex(picture, picture + 1).conj().chunk(2, 2), 2),
        ([part.clone().requires_grad_() for part in picture.chunk(2, 3)], 3),
    ):
        made, want = join(parts, axis=axis, copy=True), torch.cat(parts, axis)
        assert torch.equal(made, want)
        assert made.stride() == want.stride()
        assert made.requires_grad == want.requires_grad
    parts = [part.clone() for part in picture.chunk(2, 3)]
    with torch.inference_mode():
        assert join(parts, axis=3).is_inference()
    with torch.no_grad():
        assert torch.equal(ts.join([torch.nn.Parameter(part) for part in parts], axis=3), picture)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what is traced may differ for other examples
        traced = torch.jit.trace(lambda a, b: ts.join([a, b], axis=3), tuple(parts))
    assert torch.equal(traced(*(part + 1 for part in parts)), picture + 1)


def test_a_part_that_only_means_its_memory_is_no_part_of_a_view(join: Any) -> None:
    real = torch.rand(8, generator=torch.Generator().manual_seed(12))
    whole = torch.complex(real, real + 1)
    parts = [whole[:3], whole[3:].conj()]
    assert torch.equal(join(parts, axis=0), torch.cat(parts))
